"""From passes to what users see: TTFT, TPOT, end to end, throughput, at a concurrency or a request rate.

Continuous batching: prompts of other requests interrupt decode. A new request waits behind them and, where
memory holds fewer requests than there are, for a batch slot. Static batching: a batch prefills together, then
decodes. Disaggregated: nothing interrupts decode; the KV cache of a prompt goes from one worker to another.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from mantile.equations.classes import told
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.load import Arrivals, Concurrency, StepTimes, arrivals, concurrency, opened
from mantile.equations.scheduler import Scheduler
from mantile.equations.serving.alone import Prompt
from mantile.equations.serving.loop import ClosedLoop, closed_loop
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.stages import DecodeStep
from mantile.equations.sessions import Sessions, sessions
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import Quantity, Section, as_node, precedents
from mantile.ir.modules import ModelGraph


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds; all others are rows of serving.eq.

    Args:
        ttft_parts, tpot_parts: what adds up to TTFT and to TPOT.
        load, concurrency: the state under a request rate, and the requests in flight that follow from it;
            None where none may be given.
        asked_by: what follows from the sessions of a scenario; None without any.
    """

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    ttft_parts: tuple[Quantity, ...]
    tpot_parts: tuple[Quantity, ...]
    sections: tuple[Section, ...]
    load: Arrivals | None = None
    concurrency: Concurrency | None = None
    asked_by: Sessions | None = None


def serving(
    ir: ModelGraph,
    turns: Scheduler,
    prefill_workers: Workers,
    decode_workers: Workers,
    prefill: Pass,
    decode: Pass,
    decoding: Decoding,
    paced: DecodeStep,
    alone: Prompt,
    steps: StepTimes | None,
    rows: Equations,
) -> Serving:
    """The rows of the Serving part.

    Args:
        decode_workers: the same as the prefill workers where none are described apart.
        turns: how prompts get their turn.
        decoding: what a decode step works on; `paced` its time.
        alone: a prompt by itself.
        steps: decode steps of the smallest and the largest batch, where requests may arrive at a rate.
        rows: those that stand as text.
    """
    setting = Setting(
        ir=ir,
        prefill_workers=prefill_workers,
        decode_workers=decode_workers,
        prefill=prefill,
        decode=decode,
        scheduler=turns,
        decoding=decoding,
        paced=paced,
        prompt=alone,
    )
    loop = closed_loop(setting)
    load = settled = None
    if steps is not None:
        load, settled = _load(setting, loop, steps, rows["spread.waits"])
    before = (
        *rows.sections("spread"),
        setting.scheduler.forms,
        loop.section,
        *(() if load is None else (_load_section(load), Section(STATE, load.state, "at the rate"))),
    )
    rows.know(*(figure for section in (*alone.sections, *before) for figure in section.figures()))
    if load is not None:
        rows.know_as("slope_used", load.slope)
        rows.know_as("fixed_used", load.fixed)
    asked_by = None
    if setting.inputs.sessions is not None:
        asked_by = sessions(
            setting.inputs,
            decode_workers.inputs.dp,
            rows["serving.e2e"],
            {} if load is None else {load.open: as_node(0)},
            None if settled is None else settled.default,
        )
        rows.know(asked_by.lead)
    *blocks, total = rows.sections("serving")
    return Serving(
        ttft=rows["serving.ttft"],
        tpot=rows["serving.tpot"],
        e2e=rows["serving.e2e"],
        ttft_parts=parts_of(rows["serving.ttft"], ("serving.ttft_steady", "serving.base")),
        tpot_parts=parts_of(rows["serving.tpot"]),
        sections=(
            *before,
            *blocks,
            *(() if load is None else rows.sections("load")),
            total,
            *(() if "sessions" not in rows.features else rows.sections("sessions")),
            *told(rows),
            *rows.sections("goodput"),
        ),
        load=load,
        concurrency=settled,
        asked_by=asked_by,
    )


def parts_of(total: Quantity, through: Container[str] = ()) -> tuple[Quantity, ...]:
    """What adds up to a row, with what some of these add up of.

    Args:
        through: ids of sums whose parts count in their place.
    """
    found: list[Quantity] = []
    for part in precedents(total):
        assert isinstance(part, Quantity), f"{part.id} is no part of {total.id}"
        found += parts_of(part, through) if part.id in through else (part,)
    return tuple(found)


def _load(
    setting: Setting, loop: ClosedLoop, steps: StepTimes, waits: Quantity
) -> tuple[Arrivals, Concurrency]:
    """The state under a request rate, from a step with one request and one with a full batch, and the
    concurrency that follows.
    """
    alone = setting.prompt
    before_decode = (alone.stages.through, *(() if alone.transfer is None else (alone.transfer,)))
    rates = arrivals(
        setting.inputs,
        setting.decoding.batch,
        setting.decode_workers.inputs.dp,
        loop.step,
        steps,
        setting.interleaved * setting.efficiency["interference"],
        loop.prompts.delay * (1 + setting.decode_workers.rows["memory.redone"]),
        setting.prompt.service
        + setting.interleaved * setting.decode_workers.rows["memory.redone"] * loop.prompts.delay,
        waits,
    )
    full_batch = setting.decode_workers.rows["memory.batch"]
    settled = concurrency(setting.inputs, full_batch, setting.decoding.batch, rates, before_decode, steps)
    return opened(setting.inputs, rates, settled.default), settled


STATE, THROUGHPUT = "State", "Throughput"
"""Blocks of the Serving part before which the concurrency at a rate, or of sessions, is worked out."""


def _load_section(load: Arrivals) -> Section:
    return Section("Load", load.rows, "one replica; requests arrive at random, whatever is in flight")
