"""Requests that arrive at a rate of their own.

How many are in flight, how loaded the deployment is, how long they wait.

A decode step is taken as a line between one request and the batch of the Decode part. Arrivals are random
(Poisson), and prompts are served one after the other: waits are those of a single server with fixed service
times. Beyond a load of 0.8 these forms no longer hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from mantile.equations.constant import (
    HALF,
    MOST_LOAD,
    MOST_REQUESTS,
    ONE_REQUEST,
    SMALLEST,
)
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.inputs import Workload
from mantile.equations.moe import coverage_growth
from mantile.equations.serving.stages import DecodeStep
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Node,
    Quantity,
    Section,
    all_of,
    is_number,
    maximum,
    minimum,
    sum_of,
    where,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul

SECTION = "one replica; requests arrive at random and do not wait for one another's answers"
ALL_SLOTS = "all_slots."
"""What ids of rows with all batch slots taken begin with; `ESTIMATE` of those at an estimate of the batch."""
ESTIMATE = "estimate."
_ESTIMATES = 3


Block = tuple[str, tuple[Quantity, ...] | Mapping[Quantity, Quantity]]
"""A title and rows of the Serving part; of rows made again the row each was made from."""


@dataclass(frozen=True, kw_only=True)
class ArrivalRates:
    """What a deployment comes to under an arrival rate; all rows are of one replica.

    Args:
        decoding: requests of a replica that decode.
        step: seconds of a decode step at the load there is.
        tpot: seconds per output token.
        stall: seconds per output token in which prompts hold up the step.
        wait: seconds before a prompt's turn; `steady_wait` without a growing queue.
        load: requests per second over the most that can be served, beyond 0.8 saturated.
        served: requests per second of all replicas that are served.
        rate: requests per second of a replica.
        delay: seconds by which a prompt delays a step; `longest_delay` is never less, whatever the batch.
        fixed: seconds of a step without requests, and `slope` for each, on the line of so many as there are.
        replicas: that share the requests.
        steps: decode steps of a request.
        most: batch slots of a replica; `slots` of all.
        most_decoding: requests of a replica that decode with all slots taken.
        prompts: share of the time in which prompts are prefilled; `takes` seconds of one of them.
    """

    decoding: Quantity
    step: Quantity
    tpot: Quantity
    stall: Quantity
    wait: Quantity
    steady_wait: Quantity
    load: Quantity
    served: Quantity
    rate: Quantity
    delay: Quantity
    longest_delay: Node
    fixed: Node
    slope: Node
    replicas: Node
    steps: Node
    most: Quantity
    most_decoding: Quantity
    slots: Quantity
    prompts: Quantity
    takes: Node
    rows: tuple[Quantity, ...]


@dataclass(frozen=True, kw_only=True)
class Arrivals(ArrivalRates):
    """The state of a deployment where requests may arrive at a rate.

    Args:
        open: 1 where they do, whatever is in flight; 0 where so many are kept in flight.
        state: the rows that say so.
        in_flight: requests of all replicas between arrival and last token.
    """

    open: Quantity
    state: tuple[Quantity, ...]
    in_flight: Quantity | None = None


@dataclass(frozen=True)
class RoutedExperts:
    """What a decode step reads of routed experts.

    Args:
        reading: seconds to read all of them.
        coverage: share of them that the batch of the Decode part touches; `all_slots` that all slots touch.
        spread: exponent of the tokens that touch experts.
    """

    reading: Quantity
    coverage: Quantity
    single: Quantity
    all_slots: Quantity
    spread: Node


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a decode step between whose batches a request rate lies.

    With one request, and with all slots taken.

    Args:
        most: batch slots of a replica.
        most_decoding: requests that decode with all slots taken.
        experts: None in a model without.
        at_all_slots: figures with all slots taken; `rewritten` are its rows, by the row each was made from.
        emitted: tokens of a request that a step gives.
        paces: steps by the pace of each stage, and of the slowest, with all slots taken, by those of the
            batch.
        blocks: in the Serving part, in order.
    """

    single: Quantity
    all_slots: Quantity
    most: Quantity
    most_decoding: Quantity
    experts: RoutedExperts | None
    at_all_slots: GraphRewrite
    rewritten: Mapping[Quantity, Quantity]
    emitted: Node
    paces: Mapping[Quantity, Quantity]
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class _Line:
    """Seconds of a decode step by the requests in it: `fixed`, and `slope` for each request."""

    slope: Node
    fixed: Quantity

    def at(self, requests: Node) -> Node:
        return self.fixed + self.slope * (requests / ONE_REQUEST)


def step_times(
    workers: Workers, decoding: Decoding, single: Pass, full: Pass, paced: DecodeStep
) -> StepTimes:
    """The decode step with all slots taken, made again from that of the Decode part.

    Args:
        workers: those that decode.
        decoding: what a decode step works on.
        single: a decode step with one request; `full` with the batch of the Decode part.
        paced: that step, as fast as the fullest stage of a pipeline.
    """
    rows, step = Rows("load"), paced.step
    asked = workers.inputs.max_requests
    most = rows(
        "most",
        "Most requests in a batch",
        "request",
        maximum(
            1,
            minimum(
                workers.rows["memory.capacity_sequences"],
                where(asked > 0, asked, workers.rows["memory.capacity_sequences"]),
            ),
        ),
    )
    all_run = {workers.rows["memory.batch"]: most, workers.rows["memory.allowed"]: most}
    at_most = GraphRewrite(all_run, (), ALL_SLOTS, ", all slots taken", (decoding.most,))
    of_slots = at_most.rewrite(decoding).of_slots(most)
    blocks: list[Block] = [("Batch slots", rows.quantities()), ("All slots taken", rows_made_again(at_most))]
    rows = Rows("load")
    most_decoding = rows("most_decoding", "Requests that decode with all slots taken", "request", of_slots)
    at_all_slots = GraphRewrite(
        {**at_most.rewritten, decoding.batch: most_decoding},
        (),
        ALL_SLOTS,
        ", all slots taken",
        (step, full.time, *paced.paces, paced.slowest),
    )
    all_slots = at_all_slots.rewrite(step)
    paces = {pace: at_all_slots.rewrite(pace) for pace in (*paced.paces, paced.slowest)}
    alone = single.time
    if paced.host_of_one is not None:
        alone = rows("single", "Decode step with one request", "s", maximum(single.time, paced.host_of_one))
    experts = routed_experts(rows, workers, single, full, at_all_slots)
    return StepTimes(
        single=alone,
        all_slots=all_slots,
        most=most,
        most_decoding=most_decoding,
        experts=experts,
        at_all_slots=at_all_slots,
        rewritten=rows_made_again(at_all_slots),
        emitted=workers.emitted,
        paces=paces,
        blocks=(
            *blocks,
            ("Requests that decode", rows.quantities()),
            ("Steps with all slots taken", _further(at_all_slots, rows_made_again(at_most))),
        ),
    )


def routed_experts(
    rows: Rows, workers: Workers, single: Pass, full: Pass, at_all_slots: GraphRewrite
) -> RoutedExperts | None:
    """Time to read all routed experts, and the shares of them that batches touch.

    Args:
        single: a decode step with one request; `full` with the batch of the Decode part.
        at_all_slots: figures with all slots taken.
    """
    touched, by_one = full.phase.coverage, single.phase.coverage
    if touched is None or by_one is None:
        return None
    of_one = [
        block.memory * block.repeats
        for block in single.blocks
        if block.module is not None and isinstance(block.module.operation, GroupedMatMul)
        if block.memory is not None and block.repeats is not None
    ]
    return RoutedExperts(
        reading=rows(
            "reading",
            "Time to read all experts",
            "s",
            sum_of(of_one) / by_one,
            "from those that one request reads: its step does little else",
        ),
        coverage=touched,
        single=by_one,
        all_slots=at_all_slots.rewrite(touched),
        spread=workers.efficiency["routing_spread"],
    )


def arrivals(
    inputs: Workload,
    batch: Quantity,
    replicas: Node,
    full: Quantity,
    steps: StepTimes,
    mixed: Node,
    blocked: Node,
    taken: Node,
    uneven: Node,
) -> ArrivalRates:
    """The rows of the load block.

    Args:
        batch: requests that decode at a time.
        replicas: that share the requests.
        full: seconds of a decode step with the batch of the Decode part.
        steps: those of the smallest and the largest batch.
        mixed: 1 where prompts interrupt decode, times their interference.
        blocked: seconds by which a prompt delays the others' steps.
        taken: seconds in which no other prompt can be taken up.
        uneven: waits against those of lengths drawn evenly.
    """
    assert inputs.request_rate is not None
    rows = Rows("load")
    occupied = rows("occupied", "Time a prompt occupies the pipeline, work done again included", "s", taken)
    rate = rows("rate", "Requests per second of a replica", "request/s", inputs.request_rate / replicas)
    delay = rows(
        "delay",
        "Time a prompt delays a step",
        "s",
        mixed * blocked,
        "0 where prompts have workers of their own",
    )
    slots = rows(
        "seats", "Batch slots of all replicas", "request", minimum(MOST_REQUESTS, steps.most * replicas)
    )
    tokens = inputs.output_tokens / steps.emitted
    saturated = _limits(rows, steps, delay, tokens)
    prompts = rows(
        "prompts",
        "Share of the time prompts are prefilled",
        "1",
        inputs.request_rate / inputs.dp * occupied / ONE_REQUEST,
        "of a replica, or of a worker that prefills",
    )
    load = rows("utilisation", "Load", "1", maximum(rate / saturated.limit, prompts))
    passed_on = rows(
        "passed_on",
        "Requests per second of a replica that reach decode",
        "request/s",
        rate / maximum(1, prompts),
    )
    lines = _lines(rows, batch, full, steps)
    arriving = _Arriving(passed_on, delay, tokens)
    token = _at_rate(rows, batch, lines, steps.most_decoding, steps.single, saturated, arriving)
    assert inputs.load_duration is not None
    takes = occupied * uneven
    steady_wait, wait = _waits(rows, prompts, takes, load, inputs.load_duration)
    served = rows(
        "served",
        "Requests per second that are served",
        "request/s",
        inputs.request_rate / maximum(1, load),
    )
    return ArrivalRates(
        decoding=token.decoding,
        step=token.step,
        tpot=token.tpot,
        stall=token.stall,
        wait=wait,
        steady_wait=steady_wait,
        load=load,
        served=served,
        rate=rate,
        delay=delay,
        longest_delay=mixed * occupied,
        fixed=where(token.decoding <= batch, lines[0].fixed, lines[1].fixed),
        slope=where(token.decoding <= batch, lines[0].slope, lines[1].slope),
        replicas=replicas,
        steps=tokens,
        most=steps.most,
        most_decoding=steps.most_decoding,
        slots=slots,
        prompts=prompts,
        takes=takes,
        rows=rows.quantities(),
    )


@dataclass(frozen=True)
class _Saturated:
    """All slots taken: the most requests per second of a replica, seconds of a step and per output token."""

    limit: Quantity
    step: Quantity
    tpot: Quantity


def _limits(rows: Rows, steps: StepTimes, delay: Quantity, tokens: Node) -> _Saturated:
    """What a replica comes to with all slots taken."""
    full_step = rows("full_step", "Decode step with all slots taken", "s", steps.all_slots)
    limit = rows(
        "limit",
        "Most requests per second of a replica",
        "request/s",
        ONE_REQUEST / (delay + tokens * full_step / (steps.most_decoding / ONE_REQUEST)),
        "saturation: all slots are taken all the time",
    )
    worst = rows(
        "worst",
        "Step and stalls with all slots taken",
        "s",
        full_step + delay * (steps.most_decoding / ONE_REQUEST) / tokens,
    )
    return _Saturated(limit, full_step, worst)


@dataclass(frozen=True)
class _Arriving:
    """Requests per second of a replica, seconds by which a prompt delays a step, and steps of a request."""

    rate: Quantity
    delay: Quantity
    tokens: Node


@dataclass(frozen=True)
class _AtRate:
    """Seconds of a decode step, per output token, and lost to prompts per token, at the rate there is.

    Args:
        decoding: requests that decode.
    """

    decoding: Quantity
    step: Quantity
    tpot: Quantity
    stall: Quantity


def _at_rate(
    rows: Rows,
    batch: Quantity,
    lines: tuple[_Line, _Line],
    most: Quantity,
    single: Quantity,
    saturated: _Saturated,
    arriving: _Arriving,
) -> _AtRate:
    """Step time and TPOT on the line of fewer requests than in the batch, or on that of more."""
    below, above = lines
    tpot_below = _tpot(rows, "", "up to the batch", below, arriving, saturated.tpot)
    tpot_above = _tpot(rows, "_above", "beyond the batch", above, arriving, saturated.tpot)
    least = rows(
        "tpot_least",
        "TPOT of a request by itself at this rate",
        "s",
        single / maximum(SMALLEST, 1 - arriving.rate * arriving.delay / ONE_REQUEST),
        "prompts of others take their share of the time",
    )
    few = rows(
        "decoding_below",
        "Requests that decode, if up to the batch",
        "request",
        arriving.rate * arriving.tokens * tpot_below,
        source="Little's law",
    )
    tpot = rows(
        "tpot",
        "TPOT at this rate",
        "s",
        maximum(single, minimum(maximum(least, where(few <= batch, tpot_below, tpot_above)), saturated.tpot)),
        "no step is shorter than that of one request",
    )
    decoding = rows(
        "decoding",
        "Requests that decode",
        "request",
        minimum(most, arriving.rate * arriving.tokens * tpot),
        source="Little's law",
    )
    step_below = rows("step_below", "Decode step, up to the batch", "s", below.at(decoding))
    step_above = rows("step_above", "Decode step, beyond the batch", "s", above.at(decoding))
    within = decoding <= batch
    step = rows(
        "step",
        "Decode step at this rate",
        "s",
        maximum(single, minimum(where(within, step_below, step_above), saturated.step)),
        "no shorter than with one request, no longer than with all slots taken",
    )
    stall = rows(
        "stall",
        "Prefill stall per token at this rate",
        "s",
        where(arriving.delay > 0, maximum(0, tpot - step), 0),
        "none where prompts delay no step",
    )
    return _AtRate(decoding, step, tpot, stall)


def _lines(rows: Rows, batch: Quantity, full: Quantity, steps: StepTimes) -> tuple[_Line, _Line]:
    """Lines through the step of the Decode part: for fewer requests, and for more.

    Experts apart, each goes to the step with one request, or with all slots taken. What more experts take
    grows as it does at the batch.
    """
    fewer: Node = full - steps.single
    more: Node = steps.all_slots - full
    growth: Quantity | None = None
    apart = ""
    if steps.experts is not None:
        experts, apart = steps.experts, ", experts apart"
        fewer = fewer - experts.reading * (experts.coverage - experts.single)
        more = more - experts.reading * (experts.all_slots - experts.coverage)
        growth = rows(
            "slope_experts",
            "Time to read more experts, per further request",
            "s",
            experts.reading
            * coverage_growth(experts.coverage, experts.spread)
            / maximum(1, batch / ONE_REQUEST),
        )
    slope = rows(
        "slope",
        f"Step time per further request{apart}",
        "s",
        maximum(0, fewer) / maximum(1, batch / ONE_REQUEST - 1),
    )
    slope_above = rows(
        "slope_above",
        f"Step time per request beyond the batch{apart}",
        "s",
        where(
            steps.most_decoding > batch,
            maximum(0, more) / maximum(1, (steps.most_decoding - batch) / ONE_REQUEST),
            0,
        ),
        "none where the batch has all that may decode",
    )
    below = slope if growth is None else slope + growth
    above = slope_above if growth is None else slope_above + growth
    return (
        _Line(below, rows("fixed", "Step time without requests", "s", _start(full, batch, below))),
        _Line(
            above,
            rows(
                "fixed_above",
                "Step time without requests, beyond the batch",
                "s",
                _start(full, batch, above),
            ),
        ),
    )


def _start(full: Quantity, batch: Quantity, slope: Node) -> Node:
    """Where a line through the step of the batch begins."""
    return full - slope * (batch / ONE_REQUEST)


def _tpot(rows: Rows, suffix: str, place: str, line: _Line, arriving: _Arriving, worst: Quantity) -> Quantity:
    """Seconds per token if steps lie on a line.

    Steps have the time that prompts and further requests leave; where they leave none all slots are taken.
    """
    work = rows(
        f"work{suffix}",
        f"Time a request adds to the steps of others, {place}",
        "s",
        arriving.delay + arriving.tokens * line.slope,
    )
    left = rows(
        f"left{suffix}",
        f"Share of the time left for steps themselves, {place}",
        "1",
        maximum(SMALLEST, 1 - arriving.rate * work / ONE_REQUEST),
    )
    return rows(
        f"tpot{suffix or '_below'}",
        f"Step and stalls, {place}",
        "s",
        where(left > SMALLEST, line.fixed / left, worst),
    )


def _waits(
    rows: Rows, prompts: Quantity, occupied: Node, load: Quantity, duration: Node
) -> tuple[Quantity, Quantity]:
    """The mean wait of a prompt for its turn: if the queue does not grow, and as it is.

    Where more requests arrive than are served the queue grows as long as they do.
    """
    free = rows("free", "Share of the time without prompts", "1", maximum(SMALLEST, 1 - prompts))
    backlog = rows(
        "backlog",
        "Wait of the last to arrive",
        "s",
        duration * maximum(0, load - 1),
        "where more requests arrive than are served, for as long as they do",
    )
    steady = rows(
        "wait_steady",
        "Mean wait if the queue does not grow",
        "s",
        minimum(duration * HALF, HALF * prompts * occupied / free),
        source="single server, fixed service time, random arrivals",
    )
    return steady, rows("wait", "Mean wait at this rate", "s", steady + backlog * HALF)


def opened(inputs: Workload, load: ArrivalRates, settled: Quantity) -> Arrivals:
    """The same, with whether requests arrive at the rate whatever is in flight.

    A concurrency typed beside the rate is the most that may be in flight. Where the rate needs more, so many
    are kept in flight, and the others wait outside.

    Args:
        settled: the concurrency that follows from the rate.
    """
    assert inputs.request_rate is not None
    rows = Rows("load")
    is_open = rows(
        "open",
        "Requests arrive at a rate",
        "flag",
        where(all_of(inputs.request_rate > 0, settled <= inputs.concurrency), 1, 0),
        "not where fewer may be in flight than the rate needs",
        called="open loop",
    )
    _state(rows, is_open, load.load)
    parts = {item.name: getattr(load, item.name) for item in fields(load)}
    return Arrivals(**parts, open=is_open, state=rows.quantities())


def _state(rows: Rows, is_open: Quantity, load: Quantity) -> None:
    calm = rows("calm", "State below saturation", "1", where(is_open > 0, "stable", "closed loop"))
    borne = rows(
        "borne",
        "State below overload",
        "1",
        where(all_of(is_open > 0, load > MOST_LOAD), "saturated", calm),
        "beyond this load waits are no longer what the forms say",
    )
    rows(
        "state",
        "State",
        "1",
        where(all_of(is_open > 0, load > 1), "overloaded", borne),
        "the queue grows for as long as the load lasts",
    )


def section(load: Arrivals) -> Section:
    """The load block of the Serving part."""
    return Section("Load", load.rows, SECTION)


@dataclass(frozen=True)
class Concurrency:
    """The concurrency that follows from a request rate.

    Args:
        default: what the input follows.
        blocks: in the Serving part, in order.
    """

    default: Quantity
    blocks: tuple[Block, ...]


def concurrency(
    inputs: Workload,
    full_batch: Quantity,
    batch: Quantity,
    load: ArrivalRates,
    before_decode: Sequence[Quantity],
    steps: StepTimes,
) -> Concurrency:
    """The requests in flight that follow from a request rate, in closed form and without a circle.

    Little's law needs the time of a request, which needs the batch. The step time is taken as a line over the
    batch, and beside it the reading of routed experts, which follows the share of them that the batch
    touches. On a line, the batch at which requests arrive as fast as they leave has a closed form. With
    experts it is taken three times: with the share that all slots touch, then twice with the share at the
    estimate before and how fast it grows there, which is Newton's method. How long prompts hold up the
    slowest stage of a pipeline is taken against the paces of stages with all slots taken.

    Args:
        batch: requests that decode at a time.
        before_decode: seconds of a prompt through prefill, and to the workers that decode.
    """
    at_all_slots = GraphRewrite(
        {**steps.at_all_slots.rewritten, inputs.concurrency: load.slots},
        (),
        ALL_SLOTS,
        ", all slots taken",
        (load.longest_delay, load.delay, load.steady_wait, *before_decode),
    )
    time_before = sum_of(at_all_slots.rewrite((load.steady_wait, *before_decode)))
    rows, blocks = Rows("load"), list[Block]()
    longest = rows(
        "longest_delay",
        "Longest time a prompt delays a step",
        "s",
        at_all_slots.rewrite(load.longest_delay),
        "as if nothing of it fitted into the waits of decode",
    )
    blocks.append(("Before decode, all slots taken", _further(at_all_slots, steps.rewritten)))
    line, shares = _arrival_line(rows, load, steps), steps.experts
    alike = line.fixed if shares is None else line.fixed + shares.reading * shares.all_slots
    most = _estimate(rows, load, "_0", _filling(rows, "_0", load, line, longest) * alike)
    asked = rows(
        "in_flight_0",
        "Requests in flight, estimate 0",
        "request",
        minimum(load.slots, most * load.replicas),
        "of all replicas",
    )
    at_most = GraphRewrite(
        {batch: most, full_batch: most, inputs.concurrency: asked, **steps.paces},
        (),
        f"{ESTIMATE}1.",
        ", estimate 0",
        (load.delay,),
    )
    delay = at_most.rewrite(load.delay)
    blocks.append(("Concurrency, estimate 0", rows.quantities()))
    blocks.append(("At estimate 0", rows_made_again(at_most)))
    rows = Rows("load")
    filling = _filling(rows, "", load, line, delay)
    dense = shares is None
    decoding = _estimate(rows, load, "" if dense else "_1", filling * alike, last=dense)
    if shares is not None:
        for number in range(2, _ESTIMATES + 1):
            again = GraphRewrite(
                {batch: decoding},
                (),
                f"{ESTIMATE}{number}.",
                f", estimate {number - 1}",
                (shares.coverage,),
            )
            share = again.rewrite(shares.coverage)
            blocks.append((f"Concurrency, estimate {number - 1}", rows.quantities()))
            blocks.append((f"At estimate {number - 1}", rows_made_again(again)))
            rows = Rows("load")
            decoding = _next_estimate(rows, load, number, line, filling, shares, share, decoding)
    default = _requests_in_flight(rows, load, decoding, time_before)
    blocks.append(("Concurrency", rows.quantities()))
    return Concurrency(default, tuple(blocks))


@dataclass(frozen=True)
class _ArrivalLine:
    """A decode step over the requests in it, but for the reading of routed experts.

    Args:
        fixed: seconds without requests; `slope` for each request.
    """

    fixed: Quantity
    slope: Quantity


def _arrival_line(rows: Rows, load: ArrivalRates, steps: StepTimes) -> _ArrivalLine:
    """The line from one request to all slots taken."""
    further: Node = steps.all_slots - steps.single
    first: Node = steps.single
    if steps.experts is not None:
        shares = steps.experts
        further = further - shares.reading * (shares.all_slots - shares.single)
        first = steps.single - shares.reading * shares.single
    apart = ", experts apart" if steps.experts is not None else ""
    slope = rows(
        "line",
        f"Step time per request, from one request to all slots taken{apart}",
        "s",
        maximum(0, further) / maximum(1, load.most_decoding / ONE_REQUEST - 1),
    )
    fixed = rows("line_fixed", f"Step time without requests, on that line{apart}", "s", first - slope)
    return _ArrivalLine(fixed, slope)


def _filling(rows: Rows, suffix: str, load: ArrivalRates, line: _ArrivalLine, delay: Quantity) -> Quantity:
    """Requests that decode at a time, per second of a step that does not grow with them.

    Args:
        delay: seconds by which a prompt delays a step.
    """
    number = f", estimate {suffix[1:]}" if suffix else ""
    left = rows(
        f"line_left{suffix}",
        f"Share of the time left for steps themselves, on that line{number}",
        "1",
        maximum(SMALLEST, 1 - load.rate * (delay + load.steps * line.slope) / ONE_REQUEST),
    )
    return rows(
        f"filling{suffix}",
        f"Requests that decode, per second of a step{number}",
        "request/s",
        load.rate * load.steps / left,
        "as many as arrive while a request generates its tokens",
        source="Little's law",
    )


def _estimate(rows: Rows, load: ArrivalRates, suffix: str, requests: Node, last: bool = False) -> Quantity:
    """Requests of a replica that decode, as far as there are slots.

    Args:
        last: no step is worked out for them. A step has one request at least; on average there may be fewer.
    """
    number = f", estimate {suffix[1:]}" if suffix else ""
    in_slots = minimum(load.most_decoding, requests)
    return rows(
        f"estimate{suffix}",
        f"Requests of a replica that decode{number}",
        "request",
        in_slots if last else maximum(ONE_REQUEST, in_slots),
        source="Little's law",
    )


def _next_estimate(
    rows: Rows,
    load: ArrivalRates,
    number: int,
    line: _ArrivalLine,
    filling: Quantity,
    experts: RoutedExperts,
    share: Quantity,
    before: Quantity,
) -> Quantity:
    """The estimate after another, by Newton's method.

    Args:
        share: of the experts that the estimate before touches.
        before: the estimate before.
    """
    growth = rows(
        f"growth_{number}",
        f"Growth of the share of the experts touched, estimate {number - 1}",
        "1",
        coverage_growth(share, experts.spread),
        "for each per cent of requests, times a hundred",
    )
    fixed = rows(
        f"line_fixed_{number}",
        f"Step time without requests, estimate {number - 1}",
        "s",
        line.fixed + experts.reading * (share - growth),
    )
    kept = rows(
        f"kept_{number}",
        f"Share of the requests that more experts do not keep longer, estimate {number - 1}",
        "1",
        maximum(SMALLEST, 1 - filling * experts.reading * growth / before),
    )
    return _estimate(rows, load, f"_{number}", filling * fixed / kept, last=number == _ESTIMATES)


def _requests_in_flight(rows: Rows, load: ArrivalRates, decoding: Quantity, time_before: Node) -> Quantity:
    """The concurrency: requests that decode and those before their first token, at most all slots.

    Args:
        time_before: seconds before the first token.
    """
    in_flight = rows(
        "batch_in_flight",
        "Requests of a replica in flight",
        "request",
        decoding + load.rate * time_before,
        source="Little's law",
    )
    requests = rows(
        "batch_whole",
        "Requests in flight, at most all slots",
        "request",
        maximum(1, minimum(load.slots, in_flight * load.replicas)),
    )
    return rows(
        "concurrency",
        "Concurrency at the request rate",
        "request",
        where(is_number(requests), requests, 1),
        "on average",
    )


def _further(rewrite: GraphRewrite, others: Mapping[Quantity, Quantity]) -> Mapping[Quantity, Quantity]:
    """The rows that were made again, without others."""
    return {original: row for original, row in rows_made_again(rewrite).items() if original not in others}


def rows_made_again(rewrite: GraphRewrite) -> Mapping[Quantity, Quantity]:
    """The rows that were made again, by the row each was made from."""
    return {
        original: row
        for original, row in rewrite.rewritten.items()
        if isinstance(original, Quantity)
        and isinstance(row, Quantity)
        and row.id.startswith(rewrite.id_prefix)
    }
