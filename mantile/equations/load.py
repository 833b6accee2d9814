"""Requests that arrive at a rate of their own: how many are in flight, how loaded the deployment is, how long they wait.

A decode step is taken as a line between one request and the batch of the Decode sheet. Arrivals are random (Poisson), and
prompts are served one after the other: waits are those of a single server with fixed service times. Beyond a load of 0.8
these forms no longer hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import (
    BEYOND_P50,
    BEYOND_P95,
    HALF,
    MOST_GROWTH,
    MOST_LOAD,
    MOST_REQUESTS,
    NEVER,
    ONE_REQUEST,
    SMALLEST,
    TOKENS_PER_STEP,
)
from mantile.equations.inputs import Workload
from mantile.equations.memory import Memory
from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    Section,
    all_of,
    floor,
    is_number,
    logarithm,
    maximum,
    minimum,
    where,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows

SECTION = "one replica; requests arrive at random and do not wait for one another's answers"
REFERENCE = "reference."
"""What ids of rows at the reference load begin with; `ESTIMATE` of those at a first estimate of it, `ALL_SLOTS` of those
with all batch slots taken."""
ESTIMATE = "estimate."
ALL_SLOTS = "all_slots."


@dataclass(frozen=True)
class Arrivals:
    """The state of a deployment under an arrival rate; all rows are of one replica.

    Args:
        open: 1 where a request rate is given, 0 where concurrency is.
        step: seconds of a decode step at the load there is.
        tpot: seconds per output token.
        stall: seconds per output token in which prompts hold up the step.
        wait, wait_p50, wait_p95: seconds before a prompt's turn.
        load: requests per second over the most that can be served, beyond 0.8 saturated.
        served: requests per second of all replicas that are served.
        rate: requests per second of a replica.
        delay: seconds by which a prompt delays a step.
        replicas: that share the requests.
        most: batch slots of a replica; `slots` of all.
        in_flight: requests of all replicas between arrival and last token.
    """

    open: Quantity
    step: Quantity
    tpot: Quantity
    stall: Quantity
    wait: Quantity
    wait_p50: Quantity
    wait_p95: Quantity
    load: Quantity
    served: Quantity
    rate: Quantity
    delay: Quantity
    replicas: Node
    most: Quantity
    slots: Quantity
    rows: tuple[Quantity, ...]
    in_flight: Quantity | None = None


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a decode step between whose batches a request rate lies: with one request, and with all slots taken.

    Args:
        most: batch slots of a replica.
        rewritten: rows of the step with all slots taken, by the row each was made from.
    """

    single: Quantity
    all_slots: Quantity
    most: Quantity
    rewritten: Mapping[Quantity, Quantity]


@dataclass(frozen=True)
class _Line:
    """Seconds of a decode step by the requests in it: `fixed`, and `slope` for each request."""

    slope: Quantity
    fixed: Quantity

    def at(self, requests: Node) -> Node:
        return self.fixed + self.slope * (requests / ONE_REQUEST)


def step_times(inputs: Workload, memory: Memory, single: Quantity, full: Quantity) -> StepTimes:
    """The decode step with all slots taken, made again from that of the Decode sheet.

    Args:
        single: seconds with one request; `full` with the batch of the Decode sheet.
    """
    asked = where(inputs.max_requests > 0, inputs.max_requests, memory.capacity_sequences)
    most = Quantity(
        "load.most", "Most requests in a batch", "request", minimum(memory.capacity_sequences, asked)
    )
    rewrite = GraphRewrite({memory.batch: most}, (), ALL_SLOTS, ", all slots taken", (full,))
    return StepTimes(single, rewrite.rewrite(full), most, _rewritten(rewrite))


def arrivals(
    inputs: Workload,
    memory: Memory,
    replicas: Node,
    full: Quantity,
    steps: StepTimes,
    blocked: Node,
    occupied: Quantity,
) -> Arrivals:
    """The rows of the load block.

    Args:
        replicas: that share the requests.
        full: seconds of a decode step with the batch of the Decode sheet.
        steps: those of the smallest and the largest batch.
        blocked: seconds by which a prompt delays the others' steps, interference included.
        occupied: seconds in which no other prompt can be taken up.
    """
    assert inputs.request_rate is not None
    rows = Rows("load")
    is_open = rows(
        "open",
        "Requests arrive at a rate",
        "flag",
        where(inputs.request_rate > 0, 1, 0),
        called="open loop",
    )
    rate = rows("rate", "Requests per second of a replica", "request/s", inputs.request_rate / replicas)
    delay = rows(
        "delay", "Time a prompt delays a step", "s", blocked, "0 where prompts have workers of their own"
    )
    tokens = inputs.output_tokens / TOKENS_PER_STEP
    below = _line_below(rows, memory, full, steps)
    above = _line(rows, "above", "the batch", memory.batch, full, steps)
    slots = rows(
        "seats", "Batch slots of all replicas", "request", minimum(MOST_REQUESTS, steps.most * replicas)
    )
    full_step = rows("full_step", "Decode step with all slots taken", "s", steps.all_slots)
    limit = rows(
        "limit",
        "Most requests per second of a replica",
        "request/s",
        ONE_REQUEST / (delay + tokens * full_step / (steps.most / ONE_REQUEST)),
        "saturation: all slots are taken all the time",
    )
    prompts = rows("prompts", "Share of the time prompts are prefilled", "1", rate * occupied / ONE_REQUEST)
    load = rows("utilisation", "Load", "1", maximum(rate / limit, prompts))
    worst = rows(
        "worst",
        "TPOT with all slots taken",
        "s",
        full_step + delay * (steps.most / ONE_REQUEST) / tokens,
    )
    tpot_below = _tpot(rows, "", "up to the batch", below, rate, delay, tokens)
    tpot_above = _tpot(rows, "_above", "beyond the batch", above, rate, delay, tokens)
    fewer = rate * tokens * tpot_below <= memory.batch
    tpot = rows(
        "tpot",
        "TPOT at this rate",
        "s",
        minimum(where(fewer, tpot_below, tpot_above), worst),
    )
    decoding = rows(
        "decoding",
        "Requests that decode",
        "request",
        minimum(steps.most, rate * tokens * tpot),
        source="Little's law",
    )
    step_below = rows("step_below", "Decode step, up to the batch", "s", below.at(decoding))
    step_above = rows("step_above", "Decode step, beyond the batch", "s", above.at(decoding))
    within = decoding <= memory.batch
    step = rows("step", "Decode step at this rate", "s", where(within, step_below, step_above))
    stall = rows("stall", "Prefill stall per token at this rate", "s", maximum(0, tpot - step))
    waits = _waits(rows, prompts, occupied)
    served = rows(
        "served",
        "Requests per second that are served",
        "request/s",
        minimum(inputs.request_rate, limit * replicas),
    )
    _state(rows, is_open, load)
    return Arrivals(
        open=is_open,
        step=step,
        tpot=tpot,
        stall=stall,
        wait=waits["wait"],
        wait_p50=waits["wait_p50"],
        wait_p95=waits["wait_p95"],
        load=load,
        served=served,
        rate=rate,
        delay=delay,
        replicas=replicas,
        most=steps.most,
        slots=slots,
        rows=rows.quantities(),
    )


def _line_below(rows: Rows, memory: Memory, full: Quantity, steps: StepTimes) -> _Line:
    """From one request to the batch of the Decode sheet."""
    slope = rows(
        "slope",
        "Step time per further request",
        "s",
        maximum(0, full - steps.single) / maximum(1, memory.batch / ONE_REQUEST - 1),
    )
    return _Line(slope, rows("fixed", "Step time without requests", "s", steps.single - slope))


def _line(rows: Rows, name: str, place: str, start: Named, step: Quantity, steps: StepTimes) -> _Line:
    """From a batch, with its step time, to all slots taken."""
    slope = rows(
        f"slope_{name}",
        f"Step time per request beyond {place}",
        "s",
        maximum(0, steps.all_slots - step) / maximum(1, (steps.most - start) / ONE_REQUEST),
    )
    fixed = rows(
        f"fixed_{name}",
        f"Step time without requests, beyond {place}",
        "s",
        step - slope * (start / ONE_REQUEST),
    )
    return _Line(slope, fixed)


def _tpot(
    rows: Rows, suffix: str, place: str, line: _Line, rate: Quantity, delay: Quantity, tokens: Node
) -> Quantity:
    """Seconds per token if steps lie on a line: steps have the time that prompts and further requests leave."""
    work = rows(
        f"work{suffix}",
        f"Time a request adds to the steps of others, {place}",
        "s",
        delay + tokens * line.slope,
    )
    left = rows(
        f"left{suffix}",
        f"Share of the time left for steps themselves, {place}",
        "1",
        maximum(SMALLEST, 1 - rate * work / ONE_REQUEST),
    )
    return rows(f"tpot{suffix or '_below'}", f"TPOT, {place}", "s", line.fixed / left)


def _waits(rows: Rows, prompts: Quantity, occupied: Quantity) -> Mapping[str, Quantity]:
    """The wait of a prompt for its turn: mean, median and p95. The tail of the wait is exponential."""
    free = rows("free", "Share of the time without prompts", "1", maximum(SMALLEST, 1 - prompts))
    wait = rows(
        "wait",
        "Mean wait at this rate",
        "s",
        minimum(NEVER, HALF * prompts * occupied / free),
        source="single server, fixed service time, random arrivals",
    )
    drain = rows("drain", "Time in which the queue falls by e", "s", HALF * occupied / free)

    def tail(share: Named) -> Node:
        return minimum(NEVER, drain * maximum(0, logarithm(maximum(SMALLEST, prompts / share))))

    return {
        "wait": wait,
        "wait_p50": rows("wait_p50", "Median wait at this rate", "s", tail(BEYOND_P50)),
        "wait_p95": rows("wait_p95", "p95 of the wait at this rate", "s", tail(BEYOND_P95)),
    }


def _state(rows: Rows, is_open: Quantity, load: Quantity) -> None:
    calm = rows("calm", "State below saturation", "1", where(is_open > 0, "stable", "closed loop"))
    rows(
        "state",
        "State",
        "1",
        where(all_of(is_open > 0, load > MOST_LOAD), "saturated", calm),
        "beyond this load waits are no longer what the forms say",
    )


def section(load: Arrivals) -> Section:
    """The load block of the Serving sheet."""
    return Section("Load", load.rows, SECTION)


@dataclass(frozen=True)
class Concurrency:
    """The concurrency that follows from a request rate.

    Args:
        default: what the input follows.
        blocks: titles and rows on the Serving sheet, in order; of rows made again the row each was made from.
    """

    default: Quantity
    blocks: tuple[tuple[str, tuple[Quantity, ...] | Mapping[Quantity, Quantity]], ...]


def concurrency(
    inputs: Workload, memory: Memory, load: Arrivals, ttft: Quantity, full: Quantity, steps: StepTimes
) -> Concurrency:
    """The requests in flight that follow from a request rate, in closed form and without a circle.

    Little's law needs the time of a request, which needs the batch. If the step time is a line or a power of the batch,
    the batch in which requests arrive as fast as they leave has a closed form. It is worked out three times, each time
    up to all slots taken: on the line from one request, on the power from that estimate, which gives the reference load,
    and on the line from there. Dense models lie on the line, mixtures of experts near the power.

    Args:
        ttft: seconds to the first token.
        full: seconds of a decode step with the batch of the Decode sheet.
        steps: those of the smallest and the largest batch.
    """
    rows, further, last = Rows("load"), Rows("load"), Rows("load")
    arriving = rows(
        "arriving",
        "Decode steps that arriving requests need",
        "request/s",
        load.rate * (inputs.output_tokens / TOKENS_PER_STEP),
    )
    estimate = _on_line(rows, arriving, load.most, steps)
    at_estimate = GraphRewrite({memory.batch: estimate}, (), ESTIMATE, ", first estimate", (full,))
    reference = _on_power(further, arriving, estimate, at_estimate.rewrite(full), steps)
    at_reference = GraphRewrite(
        {inputs.concurrency: reference * load.replicas},
        (),
        REFERENCE,
        ", reference load",
        (load.delay, full, ttft),
    )
    step = at_reference.rewrite(full)
    tpot = _tpot(
        last,
        "_reference",
        "from the reference load",
        _line(last, "reference", "the reference load", reference, step, steps),
        load.rate,
        at_reference.rewrite(load.delay),
        inputs.output_tokens / TOKENS_PER_STEP,
    )
    decoding = minimum(load.most, arriving * maximum(step, tpot))
    in_flight = last(
        "batch_in_flight",
        "Requests of a replica in flight",
        "request",
        decoding + load.rate * at_reference.rewrite(ttft),
        source="Little's law",
    )
    whole = last(
        "batch_whole",
        "Whole requests in flight, at most all slots",
        "request",
        maximum(1, floor(minimum(load.slots, in_flight * load.replicas))),
    )
    default = last(
        "concurrency",
        "Concurrency at the request rate",
        "request",
        where(is_number(whole), whole, 1),
        "whole requests",
    )
    blocks = (
        ("Concurrency, first estimate", rows.quantities()),
        ("At the first estimate", _rewritten(at_estimate)),
        ("Concurrency, reference load", further.quantities()),
        ("At the reference load", _rewritten(at_reference)),
        ("Concurrency", last.quantities()),
    )
    return Concurrency(default, blocks)


def _on_line(rows: Rows, arriving: Quantity, most: Quantity, steps: StepTimes) -> Quantity:
    """The batch at which requests arrive as fast as they leave, if step times lie on a line over the batch."""
    slope = rows(
        "line",
        "Step time per request, from one request to all slots taken",
        "s",
        maximum(0, steps.all_slots - steps.single) / maximum(1, most / ONE_REQUEST - 1),
    )
    left = rows(
        "line_left",
        "Share of the time left for steps themselves, on that line",
        "1",
        maximum(SMALLEST, 1 - arriving * slope / ONE_REQUEST),
    )
    return rows(
        "estimate",
        "Requests of a replica that decode, first estimate",
        "request",
        maximum(ONE_REQUEST, minimum(most, arriving * (steps.single - slope) / left)),
        source="Little's law",
    )


def _on_power(rows: Rows, arriving: Node, estimate: Quantity, step: Quantity, steps: StepTimes) -> Quantity:
    """The same, if the step time is a power of the batch from the estimate to all slots taken.

    Args:
        step: seconds with the batch of the estimate.
    """
    exponent = rows(
        "growth",
        "Growth of the step time with the batch, from the first estimate",
        "1",
        minimum(
            MOST_GROWTH,
            logarithm(maximum(1, steps.all_slots / step))
            / maximum(SMALLEST, logarithm(steps.most / estimate)),
        ),
        "exponent of the power",
    )
    crowding = rows(
        "crowding",
        "Requests that need a slot over those of the first estimate",
        "1",
        (arriving * step / estimate) ** (1 / (1 - exponent)),
    )
    return rows(
        "reference",
        "Requests of a replica that decode, reference load",
        "request",
        maximum(ONE_REQUEST, minimum(steps.most, estimate * crowding)),
        source="Little's law",
    )


def _rewritten(rewrite: GraphRewrite) -> Mapping[Quantity, Quantity]:
    """The rows that were made again, by the row each was made from."""
    return {
        original: row
        for original, row in rewrite.rewritten.items()
        if isinstance(original, Quantity)
        and isinstance(row, Quantity)
        and row.id.startswith(rewrite.id_prefix)
    }
