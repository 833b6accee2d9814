"""Requests and tokens per second of the deployment, and how a benchmark runs out of requests."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST
from mantile.equations.inputs import Workload
from mantile.equations.load import Arrivals
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import Tpot
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.slots import Slots
from mantile.equations.serving.waits import Waits
from mantile.equations.sessions import Sessions
from mantile.graph.quantity import Node, Quantity, Section, all_of, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Throughput:
    """Requests and tokens per second of the deployment, and the requests in flight at a request rate.

    Args:
        sessions: that the load comes to; None where no scenario has any.
        law: both sides of Little's law: requests in flight and sessions that think, and those by the requests
            per second and the time of each.
        waiting: share of its time in which a session waits for its answer.
    """

    requests: Quantity
    in_flight: Quantity | None
    sessions: Quantity | None
    law: tuple[Quantity, Quantity]
    waiting: Quantity | None
    output: Quantity
    accelerators: Quantity
    output_per_accelerator: Quantity
    tokens: Quantity
    section: Section


def prompts_in_turn(
    rows: Rows, setting: Setting, first: Base, waits: Waits, end_to_end: Quantity
) -> Quantity:
    """The most requests in flight on average, against all, that a benchmark can have with all its prompts.

    It is no shorter than all of them one after the other, where prompts fill every step, and one request.
    """
    count = maximum(1, setting.inputs.prompts_per_slot)
    prompts = rows(
        "benchmark_prompts",
        "Prompts of a benchmark but one, of a replica",
        "1",
        maximum(0, count * setting.memory.requests / ONE_REQUEST - 1),
    )
    together = rows(
        "benchmark_least",
        "Shortest a benchmark can be",
        "s",
        setting.interleaved * prompts * waits.saturated * (1 + setting.memory.redone)
        + first.base
        + waits.generation,
        "all its prompts in turn, then the last request",
    )
    return rows(
        "flight_most",
        "Most requests of a benchmark in flight on average, against all",
        "1",
        where(
            all_of(setting.inputs.prompts_per_slot > 0, setting.memory.requests > setting.memory.batch),
            count * end_to_end / together,
            1,
        ),
        "as its prompts take their time, where there are more requests than slots",
        source="Little's law",
    )


def last_ends(rows: Rows, setting: Setting, token: Tpot, waits: Waits, end_to_end: Quantity) -> Quantity:
    """Mean load of a benchmark: its requests start together and end apart.

    n requests one after the other take n x the time of one. The last of all ends later by as much as its
    prompts are through after the mean and its outputs are longer, and sooner by what no prompt interrupts it.
    """
    per_slot, spread = setting.inputs.prompts_per_slot, setting.inputs.length_range_ratio
    count = rows("slot_prompts", "Requests of a benchmark one after the other", "1", maximum(1, per_slot))
    one_by_one = rows(
        "slot_line",
        "Prompts of a benchmark one by one",
        "s",
        count * setting.interleaved * waits.line,
        "no benchmark is shorter",
    )
    longest = rows(
        "length_excess",
        "Longest output of a benchmark against the mean, less 1",
        "1",
        count**HALF * HALF * spread / (1 - HALF * spread),
        "of lengths drawn evenly, one draw after the other",
    )
    longer = rows(
        "ends_lengths",
        "Longest outputs behind the mean",
        "s",
        minimum(HALF * end_to_end, longest * waits.generation),
        "no more than half of a request",
    )
    last = rows(
        "ends_last",
        "Last end behind the mean end",
        "s",
        maximum(
            0,
            HALF * one_by_one / count
            + longer
            - (setting.inputs.output_tokens / setting.emitted - 1) * token.stall,
        ),
        "its prompt comes last, its outputs are longest, and no prompt interrupts it",
    )
    all_of_them = rows("all_requests", "Time of a benchmark's requests in a slot", "s", count * end_to_end)
    return rows(
        "ramp",
        "Mean load of a benchmark",
        "1",
        where(
            per_slot > 0,
            all_of_them / maximum(one_by_one, all_of_them + last),
            1,
        ),
        "requests run out at its end",
    )


def _closed_loop(rows: Rows, inputs: Workload, asked_by: Sessions | None) -> tuple[Node, Quantity | None]:
    """What goes round in a closed loop, requests or sessions, and the seconds of thought in it."""
    if asked_by is None:
        return inputs.concurrency, None
    assert inputs.sessions is not None and inputs.think_time is not None
    asking = rows(
        "asking",
        "Requests kept in flight, or sessions",
        "request",
        where(asked_by.lead > 0, inputs.sessions, inputs.concurrency),
    )
    thinking = rows("thought", "Think time in use", "s", where(asked_by.lead > 0, inputs.think_time, 0))
    return asking, thinking


def throughput(
    setting: Setting,
    token: Tpot,
    first: Base,
    waits: Waits,
    slots: Slots,
    end_to_end: Quantity,
    load: Arrivals | None,
    asked_by: Sessions | None,
) -> Throughput:
    """Requests and tokens per second.

    Args:
        asked_by: what follows from sessions; None where no scenario has any.
    """
    inputs, deployment = setting.inputs, setting.prefill_workers.ranks.deployment
    rows = Rows("serving")
    end = last_ends(rows, setting, token, waits, end_to_end)
    memory = setting.memory
    loaded = rows(
        "in_flight_share",
        "Share of the requests that is in flight",
        "1",
        minimum(
            end * (1 - HALF * slots.burst_share * (1 - memory.batch / memory.requests)),
            prompts_in_turn(rows, setting, first, waits, end_to_end),
        ),
        "in the warm-up burst requests wait for a slot half as long",
    )
    asking, thinking = _closed_loop(rows, inputs, asked_by)
    cycle: Node = end_to_end if thinking is None else end_to_end + thinking
    in_loop = loaded * asking / cycle
    requests = rows(
        "requests_per_s",
        "Requests per second",
        "request/s",
        in_loop if load is None else where(load.open > 0, load.served, in_loop),
        source="Little's law",
    )
    in_flight = told = waiting = None
    kept: Node = loaded * asking
    if load is not None:
        in_flight = Rows("load")(
            "in_flight",
            "Requests in flight",
            "request",
            where(load.open > 0, load.served * end_to_end, inputs.concurrency),
            "of all replicas",
            source="Little's law",
        )
        rows.add(in_flight)
        kept = where(load.open > 0, in_flight, kept)
    if inputs.think_time is not None:
        of_sessions = Rows("sessions")
        waiting = of_sessions(
            "waiting", "Share of its time in which a session waits for its answer", "1", end_to_end / cycle
        )
        told = of_sessions(
            "told",
            "Sessions that this load comes to",
            "request",
            requests * (end_to_end + inputs.think_time),
            "who wait for an answer, and who think",
            source="Little's law",
        )
        rows.add(*of_sessions.rows)
    law = (
        rows("law_kept", "Requests in flight, and sessions that think", "request", kept),
        rows(
            "law_served",
            "The same by the requests per second",
            "request",
            requests * cycle,
            "what a client has in flight or thinks over; both sides are equal",
            source="Little's law",
        ),
    )
    output = rows(
        "output_tokens_per_s", "Output tokens per second", "token/s", requests * inputs.output_tokens
    )
    count: Node = deployment
    if setting.disaggregated is not None:
        count = deployment + setting.disaggregated * setting.decode_workers.ranks.deployment
    accelerators = rows(
        "accelerators", "Accelerators in use", "accelerator", count, called="accelerators in use"
    )
    return Throughput(
        requests=requests,
        in_flight=in_flight,
        sessions=told,
        law=law,
        waiting=waiting,
        output=output,
        accelerators=accelerators,
        output_per_accelerator=rows(
            "output_tokens_per_s_per_accelerator",
            "Output tokens per second and accelerator",
            "token/s/accelerator",
            output / accelerators,
            called="output tokens per accelerator",
        ),
        tokens=rows(
            "total_tokens_per_s",
            "Input and output tokens per second",
            "token/s",
            requests * (inputs.input_tokens + inputs.output_tokens),
        ),
        section=rows.section("Throughput", "whole deployment, all replicas"),
    )
