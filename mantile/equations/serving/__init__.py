"""From passes to what users see: TTFT, TPOT, end to end, throughput, at a concurrency or a request rate.

Continuous batching: prompts of other requests interrupt decode. A new request waits behind them and, where
memory holds fewer requests than there are, for a batch slot. Static batching: a batch prefills together, then
decodes. Disaggregated: nothing interrupts decode; the KV cache of a prompt goes from one worker to another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mantile.equations.classes import told
from mantile.equations.constant import ONE_REQUEST
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.load import Arrivals, Concurrency, StepTimes, arrivals, concurrency, opened
from mantile.equations.scheduler import Scheduler
from mantile.equations.serving.alone import Prompt
from mantile.equations.serving.first import base
from mantile.equations.serving.loop import ClosedLoop, closed_loop, tpot
from mantile.equations.serving.request import e2e, ttft
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.slots import batch_slots
from mantile.equations.serving.stages import DecodeStep
from mantile.equations.serving.totals import throughput
from mantile.equations.serving.waits import queue
from mantile.equations.sessions import Sessions, sessions
from mantile.equations.spread import Spread
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, as_node, sum_of, where
from mantile.ir.modules import ModelGraph


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds, requests per second, tokens per second.

    Args:
        ttft_parts, tpot_parts: what adds up to TTFT and to TPOT.
        prefill_service: seconds for which a prompt occupies the accelerators.
        load, concurrency: the state under a request rate, and the requests in flight that follow from it;
            None where none may be given.
        sessions: that the load comes to; `asked_by` what follows from those of a scenario. None without any.
        law, waiting: as in `Throughput`.
    """

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    interactivity: Quantity
    requests_per_s: Quantity
    output_tokens_per_s: Quantity
    output_tokens_per_s_per_accelerator: Quantity
    total_tokens_per_s: Quantity
    accelerators: Quantity
    ttft_parts: tuple[Quantity, ...]
    tpot_parts: tuple[Quantity, ...]
    prompt_time: Quantity
    prefill_service: Quantity
    in_batch: Node
    slots: Node
    step: Quantity
    law: tuple[Quantity, Quantity]
    sections: tuple[Section, ...]
    load: Arrivals | None = None
    concurrency: Concurrency | None = None
    sessions: Quantity | None = None
    asked_by: Sessions | None = None
    waiting: Quantity | None = None


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
    lengths: Spread,
    experts: Quantity | None,
    steps: StepTimes | None,
    rows: Equations,
) -> Serving:
    """The rows of the Serving part.

    Args:
        decode_workers: the same as the prefill workers where none are described apart.
        turns: how prompts get their turn.
        decoding: what a decode step works on; `paced` its time.
        alone: a prompt by itself; `lengths` how far they lie apart.
        experts: parameters of the routed experts.
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
        experts=experts,
        spread=lengths,
    )
    stages = alone.stages
    loop = closed_loop(setting)
    load = settled = None
    if steps is not None:
        load, settled = _load(setting, loop, steps)
    token = tpot(loop, load, decode_workers.speculation)
    first = base(setting, loop, token, load)
    waits = queue(setting, loop, token, first, load)
    slots = batch_slots(setting, loop, token, first, waits, load)
    start = ttft(first, waits, slots)
    request = e2e(token, waits, start)
    asked_by = None
    if setting.inputs.sessions is not None:
        asked_by = sessions(
            setting.inputs,
            decode_workers.inputs.dp,
            request.e2e,
            {} if load is None else {load.open: as_node(0)},
            None if settled is None else settled.default,
        )
    total = throughput(setting, token, first, waits, slots, request.e2e, load, asked_by)
    sections = (
        lengths.section,
        setting.scheduler.forms,
        loop.section,
        *(() if load is None else (_load_section(load), Section(STATE, load.state, "at the rate"))),
        token.section,
        first.section,
        waits.section,
        slots.section,
        start.section,
        request.section,
        total.section,
    )
    rows.know(*(figure for section in (*alone.sections, *sections) for figure in section.figures()))
    rows.know_as("step_used", token.step)
    rows.know_as("stall_used", token.stall)
    rows.know_as("gap_used", token.whole)
    rows.know_as("slots", setting.memory.batch / ONE_REQUEST)
    rows.know_as("slot_waits", sum_of(slots.waits))
    if load is not None:
        rows.know_as("slope_used", load.slope)
        rows.know_as("fixed_used", load.fixed)
    if first.any_time is not None:
        rows.know_as("any_time", first.any_time)
    return Serving(
        ttft=start.ttft,
        tpot=token.tpot,
        e2e=request.e2e,
        interactivity=request.interactivity,
        requests_per_s=total.requests,
        output_tokens_per_s=total.output,
        output_tokens_per_s_per_accelerator=total.output_per_accelerator,
        total_tokens_per_s=total.tokens,
        accelerators=total.accelerators,
        ttft_parts=(*first.parts, waits.mean, *slots.waits, slots.burst_wait),
        tpot_parts=token.parts,
        prompt_time=stages.through,
        prefill_service=alone.service,
        in_batch=slots.in_batch if load is None else where(load.open > 0, 0, slots.in_batch),
        slots=setting.memory.batch if load is None else where(load.open > 0, load.most, setting.memory.batch),
        step=token.step,
        law=total.law,
        sections=(
            *sections[:-1],
            *rows.sections("serving"),
            sections[-1],
            *told(rows),
            *rows.sections("goodput"),
        ),
        load=None if load is None else replace(load, in_flight=total.in_flight),
        concurrency=settled,
        sessions=total.sessions,
        asked_by=asked_by,
        waiting=total.waiting,
    )


def _load(setting: Setting, loop: ClosedLoop, steps: StepTimes) -> tuple[Arrivals, Concurrency]:
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
        loop.prompts.delay * (1 + setting.memory.redone),
        setting.prompt.service + setting.interleaved * setting.memory.redone * loop.prompts.delay,
        setting.spread.waits,
    )
    settled = concurrency(setting.inputs, setting.memory, setting.decoding.batch, rates, before_decode, steps)
    return opened(setting.inputs, rates, settled.default), settled


STATE, THROUGHPUT = "State", "Throughput"
"""Blocks of the Serving part before which the concurrency at a rate, or of sessions, is worked out."""


def _load_section(load: Arrivals) -> Section:
    return Section("Load", load.rows, "one replica; requests arrive at random, whatever is in flight")
