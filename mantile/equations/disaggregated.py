"""Requests that decode where prefill has workers of its own, by Little's law.

A request is either with the workers that prefill, or on its way from them, or in decode. How many decode
follows from the time of each part. The decode step is taken as a line over the requests in it, and beside it
the reading of routed experts, which follows the share of them that these requests touch: with both, the
number has a closed form. It is taken three times. The first line leads from one request to all of them; the
step waits for memory at first and for FLOPs later, so that this line lies above it. The next ones lead to the
step worked out at the estimate before, as does the share of the experts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST
from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.load import Block, RoutedExperts, routed_experts, rows_made_again
from mantile.equations.moe import coverage_growth
from mantile.equations.serving.alone import Prompt
from mantile.equations.serving.stages import DecodeStep
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, all_of, ancestors, maximum, minimum, where
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul

PREFIX = "disaggregated"
ALL = f"{PREFIX}.all."
ONE = f"{PREFIX}.one."
ESTIMATE = f"{PREFIX}.estimate_"
"""What ids of rows begin with: with all requests in decode, with one, and at an estimate of how many are."""

ESTIMATES = 3


@dataclass(frozen=True)
class InDecode:
    """The decode step with the requests that are in decode.

    Args:
        decoding: what it works on; `step` its pass, `paced` its time.
        blocks: in the Serving part, in order.
    """

    decoding: Decoding
    step: Pass
    paced: DecodeStep
    blocks: tuple[Block, ...]


def in_decode(
    prefill_workers: Workers,
    decode_workers: Workers,
    alone: Prompt,
    decoding: Decoding,
    step: Pass,
    paced: DecodeStep,
) -> InDecode:
    """The decode step made again for the requests that are in decode.

    Args:
        alone: a prompt by itself.
        decoding: what a decode step works on if no request is elsewhere; `step` its pass, `paced` its time.
    """
    disaggregated = prefill_workers.ranks.disaggregated
    assert disaggregated is not None
    copies = _Copies(decoding, step, paced, decode_workers.rows["memory.batch"])
    few = Rows(PREFIX)
    least = _least(few, decode_workers)
    at_all, at_one = copies.at_all, copies.at(least, ONE, ", few in decode")
    single = _of_one(step, at_one)
    start = _Start(least, at_one.rewrite(paced.step))
    rows = Rows(PREFIX)
    cycle = _cycle(rows, prefill_workers, decode_workers, alone)
    experts = _experts_of_step(
        rows, routed_experts(rows, decode_workers, single, step, at_all), single, start
    )
    share = None if experts is None else experts.all_slots
    line = _line(
        rows, 0, decode_workers.rows["memory.batch"], start, at_all.rewrite(paced.step), experts, share
    )
    blocks: list[Block] = [
        ("All requests in decode", rows_made_again(at_all)),
        ("Few requests in decode", few.quantities()),
        ("A step with few requests in decode", rows_made_again(at_one)),
    ]
    fixed: Node = line.fixed
    if experts is not None:
        fixed = fixed + experts.reading * experts.all_slots
    tangent = _Line(fixed, line.slope)
    requests = _estimate(rows, 0, cycle, cycle.away, tangent, decode_workers.rows["memory.batch"])
    for number in range(1, ESTIMATES):
        again = copies.at(requests, f"{ESTIMATE}{number}.", f", estimate {number - 1} in decode")
        share = None if experts is None else again.rewrite(experts.coverage)
        found = again.rewrite(paced.step)
        blocks.append((f"Requests in decode, estimate {number - 1}", rows.quantities()))
        blocks.append((f"At estimate {number - 1} in decode", rows_made_again(again)))
        rows = Rows(PREFIX)
        tangent = _line(rows, number, requests, start, found, experts, share)
        if experts is not None and share is not None:
            tangent = _tangent(rows, number, tangent, experts, share, requests)
        away = _away(rows, number, cycle, tangent, requests, alone)
        requests = _estimate(rows, number, cycle, away, tangent, decode_workers.rows["memory.batch"])
    together = Quantity(
        f"{PREFIX}.together",
        "Requests that decode where the same workers prefill",
        "request",
        decoding.batch.body,
    )
    blocks.append(("Requests in decode", rows.quantities()))
    batch = Quantity(
        decoding.batch.id,
        decoding.batch.label,
        "request",
        where(disaggregated > 0, requests, together),
        note="fewer than the batch where requests wait for their prefill",
        name=decoding.batch.name,
    )
    settled = GraphRewrite({decoding.batch: batch}, (), "", "", (*copies.figures, *paced.rows))
    settled_step = settled.rewrite(step)
    entering = settled_step.sections[0]
    place = entering.rows.index(batch)
    entering = replace(entering, rows=(*entering.rows[:place], together, *entering.rows[place:]))
    settled_step = replace(settled_step, sections=(entering, *settled_step.sections[1:]))
    return InDecode(settled.rewrite(decoding), settled_step, settled.rewrite(paced), tuple(blocks))


@dataclass(frozen=True)
class _Start:
    """Where lines begin: so many requests in decode, and seconds of their step."""

    requests: Quantity
    step: Quantity


def _least(rows: Rows, workers: Workers) -> Quantity:
    """The requests from which on a step grows with them: one, or one in each part of a pipeline's batch."""
    inputs = workers.inputs
    parts = where(all_of(inputs.pp > 1, inputs.microbatches > 0), inputs.microbatches, inputs.pp)
    return rows(
        "few",
        "Few requests in decode",
        "request",
        minimum(workers.rows["memory.batch"], ONE_REQUEST * parts),
        "one, or one in each part into which a pipeline cuts the batch",
    )


def _experts_of_step(
    rows: Rows, experts: RoutedExperts | None, single: Pass, start: _Start
) -> RoutedExperts | None:
    """The experts with the time that a step takes to read them, which has several passes in a pipeline."""
    if experts is None:
        return None
    reading = rows(
        "reading_of_step",
        "Time of a step to read all experts",
        "s",
        experts.reading * start.step / single.time,
        "a pass for each part of a pipeline's batch, on the fullest stage",
    )
    return replace(experts, reading=reading)


def _of_one(step: Pass, at_one: GraphRewrite) -> Pass:
    """What of the step with few requests is asked for: its time, and what it reads of routed experts."""
    blocks = tuple(
        replace(block, memory=at_one.rewrite(block.memory))
        if block.module is not None and isinstance(block.module.operation, GroupedMatMul)
        else block
        for block in step.blocks
    )
    phase = replace(step.phase, coverage=at_one.rewrite(step.phase.coverage))
    return replace(step, time=at_one.rewrite(step.time), phase=phase, blocks=blocks)


class _Copies:
    """The decode step made again, above its own rows.

    With all requests every row is copied that its time follows from; with another number only those that
    follow from it.

    Args:
        paced: the time of the step.
        batch: all requests.
    """

    def __init__(self, decoding: Decoding, step: Pass, paced: DecodeStep, batch: Quantity) -> None:
        self.decoding = decoding
        listed = [figure for section in step.sections for figure in section.figures()]
        of_stages = [row for row in paced.rows if row in ancestors(paced.step)]
        self.figures = (*listed, decoding.microbatches, *of_stages)
        followed = GraphRewrite({decoding.batch: batch}, (), ALL, "", self.figures)
        needed = {*ancestors(followed.rewrite(paced.step)), *followed.rewritten} - {decoding.batch}
        rows = tuple(figure for figure in self.figures if isinstance(figure, Quantity) and figure in needed)
        self.at_all = GraphRewrite({decoding.batch: batch}, (), ALL, ", all in decode", self.figures, rows)
        self.at_all.rewrite(rows)

    def at(self, requests: Node, id_prefix: str, label_suffix: str) -> GraphRewrite:
        """The figures with so many requests in decode."""
        replaced = {self.decoding.batch: requests}
        follow = GraphRewrite(replaced, (), "", "", self.figures)
        shared = {node: copy for node, copy in self.at_all.rewritten.items() if not follow.depends(node)}
        return GraphRewrite({**shared, **replaced}, (), id_prefix, label_suffix, self.figures)


@dataclass(frozen=True)
class _Cycle:
    """A closed loop of requests: each is away from decode, then takes its steps, and another follows.

    Args:
        requests: of a decode worker.
        away: seconds outside decode, without a wait.
        steps: of a request in decode; `around` those of others that pass around its prefill.
        most: requests per second and decode worker that the workers which prefill pass on.
    """

    requests: Quantity
    away: Quantity
    steps: Quantity
    around: Quantity
    most: Quantity


def _cycle(rows: Rows, prefill_workers: Workers, decode_workers: Workers, alone: Prompt) -> _Cycle:
    assert alone.transfer is not None
    inputs = prefill_workers.inputs
    return _Cycle(
        requests=decode_workers.rows["memory.requests"],
        away=rows(
            "away",
            "Time of a request outside decode",
            "s",
            alone.handling + alone.prefill + alone.transfer,
            "without a wait",
        ),
        steps=rows(
            "steps",
            "Decode steps of a request",
            "1",
            maximum(SMALLEST, inputs.output_tokens / decode_workers.emitted - 1),
            "the first token comes from prefill",
        ),
        around=rows(
            "around",
            "Decode steps around the prefill of a request",
            "1",
            minimum(1, maximum(0, decode_workers.rows["memory.batch"] / ONE_REQUEST - 1))
            * prefill_workers.efficiency["step_lag"]
            + HALF * inputs.receive_interval,
            "as long as others decode",
        ),
        most=rows(
            "most",
            "Most requests per second that reach a decode worker",
            "request/s",
            ONE_REQUEST / alone.service * inputs.dp / decode_workers.inputs.dp,
            "prefill workers can pass on no more",
        ),
    )


@dataclass(frozen=True)
class _Line:
    """Seconds of a decode step: `fixed`, and `slope` for each request."""

    fixed: Node
    slope: Node


def _line(
    rows: Rows,
    number: int,
    requests: Quantity,
    start: _Start,
    step: Quantity,
    experts: RoutedExperts | None,
    share: Quantity | None,
) -> _Line:
    """The line from few requests to so many.

    Args:
        number: of the estimate that the line is for; `start` where it begins.
        step: seconds with so many; `share` of the experts that they touch.
    """
    more = requests > start.requests
    first: Node = where(more, start.step, step)
    further: Node = step - start.step
    apart, touched = "", None
    if experts is not None and share is not None:
        touched = where(more, experts.single, share)
        further = further - experts.reading * (share - experts.single)
        apart = ", experts apart"
    name, after, at = ("", "", "") if number == 0 else ("line_", f"_{number}", f", estimate {number - 1}")
    if touched is not None and experts is not None:
        of_experts = rows(
            f"{name}touched{after}", f"Experts touched at the start of the line{at}", "1", touched
        )
        first = first - experts.reading * of_experts
    begins = rows(f"{name}first{after}", f"Step at the start of the line{apart}{at}", "s", first)
    rise = rows(
        f"{name}further{after}", f"What the step grows by along the line{apart}{at}", "s", maximum(0, further)
    )
    slope = rows(
        f"{name}slope{after}",
        f"Step time per further request in decode{apart}{at}",
        "s",
        where(more, rise / maximum(SMALLEST, (requests - start.requests) / ONE_REQUEST), 0),
        "none up to few requests",
    )
    fixed = rows(
        f"{name}fixed{after}",
        f"Step time without requests in decode{apart}{at}",
        "s",
        maximum(SMALLEST * start.step, begins - slope * (start.requests / ONE_REQUEST)),
        "next to none where requests take longer than as many steps of one",
    )
    return _Line(fixed, slope)


def _tangent(
    rows: Rows, number: int, line: _Line, experts: RoutedExperts, share: Quantity, requests: Quantity
) -> _Line:
    """The line with the experts that an estimate touches, and how their share grows there.

    Args:
        share: of the experts that the estimate touches.
        requests: the estimate.
    """
    at = f", estimate {number - 1}"
    growth = rows(
        f"growth_{number}",
        f"Growth of the time to read experts, with the requests in decode{at}",
        "s",
        experts.reading * coverage_growth(share, experts.spread),
        "for each per cent of requests, times a hundred",
    )
    fixed = rows(
        f"tangent_{number}",
        f"Step time without requests in decode{at}",
        "s",
        line.fixed + experts.reading * share - growth,
    )
    return _Line(fixed, line.slope + growth * ONE_REQUEST / requests)


def _away(rows: Rows, number: int, cycle: _Cycle, line: _Line, requests: Quantity, alone: Prompt) -> Quantity:
    """Seconds outside decode, with the wait for a prefill worker at the estimate before."""
    assert alone.others is not None
    at = f", estimate {number - 1}"
    step = rows(f"step_{number}", f"Decode step{at}", "s", line.fixed + line.slope * (requests / ONE_REQUEST))
    whole = rows(
        f"whole_{number}",
        f"Time of a request without that wait{at}",
        "s",
        cycle.away + (cycle.steps + cycle.around) * step,
    )
    half = rows(
        f"half_wait_{number}",
        f"Half of what prompts of others exceed that time by{at}",
        "s",
        HALF * (alone.others - whole),
    )
    return rows(
        f"away_{number}",
        f"Time of a request outside decode, with the wait for a prefill worker{at}",
        "s",
        cycle.away + (half + (half * half + HALF * alone.others * alone.service) ** HALF),
    )


def _estimate(
    rows: Rows, number: int, cycle: _Cycle, away: Quantity, line: _Line, batch: Quantity
) -> Quantity:
    """The requests in decode if steps lie on a line: as many as leave decode come back to it.

    Args:
        away: seconds outside decode.
    """
    after = f", estimate {number}"
    fixed = rows(
        f"fixed_{number}", f"Steps of a request, without others{after}", "s", cycle.steps * line.fixed
    )
    slope = rows(
        f"slope_{number}",
        f"Time a request adds to the steps of another{after}",
        "s",
        cycle.steps * line.slope,
    )
    whole = rows(
        f"around_{number}",
        f"Steps of a request with those around its prefill, against those alone{after}",
        "1",
        1 + cycle.around / cycle.steps,
    )
    half = rows(
        f"half_{number}",
        f"Half of a request's time by itself, less what all others add{after}",
        "s",
        HALF * (away + fixed * whole - slope * (cycle.requests / ONE_REQUEST)),
    )
    square = rows(
        f"square_{number}",
        f"What the root is taken of{after}",
        "s^2",
        half * half + fixed * whole * slope * (cycle.requests / ONE_REQUEST),
    )
    by_law = rows(
        f"in_decode_{number}",
        f"Requests in decode by the time they take{after}",
        "request",
        fixed * cycle.requests / (half + square**HALF),
        "as many come to decode as leave it: a quadratic equation",
        source="Little's law",
    )
    limited = rows(
        f"passed_on_{number}",
        f"Requests in decode if prefill is never idle{after}",
        "request",
        cycle.most * fixed / maximum(SMALLEST, 1 - cycle.most * slope / ONE_REQUEST),
        source="Little's law",
    )
    return rows(
        f"requests_{number}",
        f"Requests in decode{after}",
        "request",
        maximum(ONE_REQUEST, minimum(batch, by_law, limited)),
    )
