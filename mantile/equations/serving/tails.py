"""How far requests are from the mean: p50, p90, p95, p99 of TTFT, of gaps between tokens and of end to end.

Mean and variance of the parts of a request are worked out one by one; parts are taken to be independent of
each other, so that variances add up. The time of a request is then taken from a lognormal distribution with
that mean and variance. A gap between tokens is that of a step without prompts, or of one that carries some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mantile.equations.constant import (
    AT_P90,
    AT_P95,
    AT_P99,
    BEYOND_P50,
    BEYOND_P90,
    BEYOND_P95,
    BEYOND_P99,
    FAR,
    HALF,
    ONE_REQUEST,
    SMALLEST,
    THIRD,
)
from mantile.equations.load import Arrivals
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import ClosedLoop, Tpot
from mantile.equations.serving.request import Ttft
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.slots import Slots
from mantile.equations.serving.waits import Waits
from mantile.equations.spread import Spread, normal_percentile
from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    Section,
    exponential,
    logarithm,
    maximum,
    minimum,
    sum_of,
    where,
)
from mantile.graph.rows import Rows

SHARES: Mapping[str, tuple[Named, Named | None]] = {
    "p50": (BEYOND_P50, None),
    "p90": (BEYOND_P90, AT_P90),
    "p95": (BEYOND_P95, AT_P95),
    "p99": (BEYOND_P99, AT_P99),
}
"""By percentile the share beyond it, and standard deviations of a normal distribution; None for none."""
_NAMES = {"p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


@dataclass(frozen=True)
class Stages:
    """The parts of a request, and what serves it."""

    setting: Setting
    loop: ClosedLoop
    token: Tpot
    first: Base
    waits: Waits
    slots: Slots
    start: Ttft
    load: Arrivals | None

    @property
    def lengths(self) -> Spread:
        """How far lengths lie apart."""
        return self.setting.spread


@dataclass(frozen=True)
class Lognormal:
    """A time that is lognormal: its median in seconds, and the standard deviation of its logarithm."""

    median: Quantity
    deviation: Quantity


@dataclass(frozen=True)
class Parts:
    """What the distributions consist of, as a class of requests needs it.

    Args:
        ttft, tpot: means, seconds.
        variance: of TTFT against its square; `gaps` of the mean gap of a request against the square of TPOT.
        prompt: what grows with a request's own prompt, against TTFT.
        wait: behind prompts, against TTFT; its variance is wait x (wait + `wait_varies`).
        spare: by which the longest wait behind prompts is longer than the mean, seconds.
    """

    ttft: Quantity
    tpot: Quantity
    variance: Quantity
    gaps: Quantity
    prompt: Quantity
    wait: Quantity
    wait_varies: Quantity
    spare: Quantity


@dataclass(frozen=True)
class Burst:
    """What the warm-up burst of a benchmark makes of percentiles, as a class of requests needs it.

    Args:
        share: of the requests, that come in it.
        late: percentiles of TTFT where they lie in it, seconds; else 0.
        added: to the mean TTFT, seconds.
    """

    share: Quantity
    late: Mapping[str, Quantity]
    added: Quantity


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of all requests, seconds.

    Args:
        ttft, tpot, e2e: the distributions of requests outside a warm-up burst, of `parts`.
    """

    ttft_p50: Quantity
    ttft_p95: Quantity
    e2e_p50: Quantity
    e2e_p95: Quantity
    ttft: Lognormal
    tpot: Lognormal
    e2e: Lognormal
    parts: Parts
    burst: Burst
    sections: tuple[Section, ...]


def percentiles(stages: Stages) -> Percentiles:
    """All percentiles."""
    rows = Rows("serving")
    variance, prompt, wait, wait_varies, spare = _before_first_token(rows, stages)
    first = lognormal(rows, "ttft", "TTFT", stages.start.steady, variance)
    burst = _burst(rows, stages)
    longest = stages.start.steady + spare, stages.lengths.prompts_squared
    of_ttft = ttft_percentiles(rows, "ttft", "TTFT", first, burst, longest)
    sections = [rows.section("Percentiles of TTFT", "mean and variance of its parts; lognormal")]
    rows = Rows("serving")
    gap = _gaps(rows, stages)
    _told_gaps(rows, stages, gap)
    per_token = lognormal(rows, "tpot", "TPOT of a request", stages.token.tpot, gap.of_request)
    sections.append(rows.section("Percentiles of gaps between tokens", "steps with prompts and without"))
    rows = Rows("serving")
    mean, whole = _end_to_end(rows, stages, variance, gap)
    request = lognormal(rows, "e2e", "End to end", mean, whole)
    late = rows(
        "e2e_burst", "Median TTFT with the burst beyond that without", "s", of_ttft["p50"] - first.median
    )
    of_e2e = e2e_percentiles(rows, "e2e", "End to end", request, late, of_ttft)
    sections.append(rows.section("Percentiles of end to end", "mean and variance of its parts; lognormal"))
    return Percentiles(
        ttft_p50=of_ttft["p50"],
        ttft_p95=of_ttft["p95"],
        e2e_p50=of_e2e["p50"],
        e2e_p95=of_e2e["p95"],
        ttft=first,
        tpot=per_token,
        e2e=request,
        parts=Parts(
            stages.start.steady,
            stages.token.tpot,
            variance,
            gap.of_request,
            prompt,
            wait,
            wait_varies,
            spare,
        ),
        burst=burst,
        sections=tuple(sections),
    )


def _burst(rows: Rows, stages: Stages) -> Burst:
    """The warm-up burst of a benchmark: its requests wait for each other, the last the longest."""
    slots = stages.slots
    waits = sum_of(slots.waits)
    first = rows(
        "burst_first", "TTFT of the first request of the warm-up burst", "s", slots.first_in_burst + waits
    )
    last = rows(
        "burst_last",
        "TTFT of the last request of the warm-up burst",
        "s",
        maximum(first, slots.burst + waits + (slots.burst + waits - first)),
        "as far beyond the mean as the first is below",
    )
    late = {
        percentile: rows(
            f"burst_{percentile}",
            f"TTFT of the warm-up burst, {_NAMES[percentile]} of all",
            "s",
            where(
                slots.burst_share > beyond,
                first + (last - first) * (1 - beyond / maximum(SMALLEST, slots.burst_share)),
                0,
            ),
            "its requests lie evenly, and beyond all others; 0: none of them is so late",
        )
        for percentile, (beyond, _) in SHARES.items()
    }
    return Burst(slots.burst_share, late, slots.burst_wait)


def _end_to_end(rows: Rows, stages: Stages, variance: Quantity, gap: _Gap) -> tuple[Quantity, Quantity]:
    """Mean of end to end outside a warm-up burst, and its variance against its square: a late first token, a
    long output, slow gaps.

    Args:
        variance: of TTFT against its square.
    """
    e2e = rows("e2e_steady", "End to end in steady state", "s", stages.start.steady + stages.waits.generation)
    first = rows("e2e_first", "TTFT against end to end", "1", stages.start.steady / e2e)
    generation = rows("e2e_generation", "Generation against end to end", "1", stages.waits.generation / e2e)
    return e2e, rows(
        "e2e_variance",
        "Variance of end to end against its square",
        "1",
        variance * first * first
        + (stages.lengths.outputs_squared + gap.of_request) * generation * generation,
        "a late first token, a long output, slow gaps",
    )


def lognormal(rows: Rows, name: str, label: str, mean: Quantity, variance: Quantity) -> Lognormal:
    """The distribution of a time by its moments.

    Args:
        variance: against the square of the mean.
    """
    deviation = rows(
        f"{name}_deviation",
        f"{label}, standard deviation of its logarithm",
        "1",
        logarithm(1 + variance) ** HALF,
    )
    median = rows(
        f"{name}_median",
        f"{label}, median in steady state",
        "s",
        mean * exponential(-HALF * deviation * deviation),
    )
    return Lognormal(median, deviation)


def e2e_percentiles(
    rows: Rows, name: str, label: str, time: Lognormal, late: Node, ttft: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """The percentiles of end to end, `late` by so many seconds, and none before the first token."""
    return _percentiles(
        rows, name, label, time, lambda steady, percentile: maximum(steady + late, ttft[percentile])
    )


def ttft_percentiles(
    rows: Rows, name: str, label: str, time: Lognormal, burst: Burst, longest: tuple[Node, Node]
) -> dict[str, Quantity]:
    """The percentiles of TTFT: the requests of a warm-up burst are the late ones.

    Args:
        longest: TTFT behind the prompts of all others, seconds, and the variance of the own prompt against
            the square of its length.
    """
    last = rows(f"{name}_last", f"{label}, behind the prompts of all others", "s", longest[0])
    own = rows(
        f"{name}_own",
        f"{label}, standard deviation of the logarithm by the own prompt",
        "1",
        logarithm(1 + longest[1]) ** HALF,
    )

    def told(steady: Node, percentile: str) -> Node:
        at = SHARES[percentile][1]
        if at is not None:
            steady = minimum(steady, last * exponential(at * own))
        return maximum(steady, burst.late[percentile])

    return _percentiles(rows, name, label, time, told)


def _percentiles(
    rows: Rows, name: str, label: str, time: Lognormal, told: Callable[[Node, str], Node]
) -> dict[str, Quantity]:
    return {
        percentile: rows(
            f"{name}_{percentile}",
            f"{label}, {_NAMES[percentile]}",
            "s",
            told(time.median if at is None else time.median * exponential(at * time.deviation), percentile),
            called=f"{_NAMES[percentile]} {label}",
        )
        for percentile, (_, at) in SHARES.items()
    }


# --- before the first token ---------------------------------------------------------------------------------


def _before_first_token(rows: Rows, stages: Stages) -> tuple[Quantity, ...]:
    """Variance of TTFT against its square; against TTFT what grows with a request's own prompt, and the wait
    behind prompts with what it varies by; by how many seconds the longest wait exceeds the mean.
    """
    setting, ttft = stages.setting, stages.start.steady
    batch = setting.memory.batch / ONE_REQUEST
    interrupts = rows("interrupts", "Prompts interrupt decode", "flag", setting.interleaved)
    prefill = rows(
        "varies_prefill",
        "Time of a prompt that grows with its length, against TTFT",
        "1",
        where(interrupts > 0, stages.loop.prompts.delay, setting.prompt.prefill) / ttft,
    )
    own = rows(
        "variance_prompt",
        "Variance of TTFT by the lengths of prompts",
        "1",
        stages.lengths.prompts_squared * prefill * prefill / where(setting.continuous > 0, 1, batch),
        "of all variances against the square of TTFT; in a static batch prompts are prefilled together",
    )
    *behind, wait, wait_varies, spare = _waits_behind(rows, stages, interrupts)
    parts = [own, *behind, _slots(rows, stages), _rest(rows, stages)]
    if stages.first.any_time is not None:
        varies = rows("varies_step", "Step against TTFT", "1", stages.token.step / ttft)
        step = rows(
            "variance_step",
            "Variance of TTFT by the step that runs",
            "1",
            interrupts * stages.first.any_time * HALF * HALF * THIRD * varies * varies,
            "a request arrives at any time of it",
        )
        parts.append(step)
    whole = rows("ttft_variance", "Variance of TTFT against its square", "1", sum_of(parts))
    return whole, prefill, wait, wait_varies, spare


def _waits_behind(rows: Rows, stages: Stages, interrupts: Quantity) -> tuple[Quantity, ...]:
    """Variance of waits behind prompts: of the rest, as at a single server, and of the part that all have;
    then the rest against TTFT, and what it varies by; last by how much the longest exceeds the mean.

    The wait w of a server with service time s and random arrivals has the variance w² + 2/3 w s x (third by
    second moment of s). Where there are more prompts than are served, all wait for the same backlog at least,
    whose variance is that of the prompts it is made of; at a rate it grows from 0 on.
    """
    ttft, service = stages.start.steady, stages.setting.prompt.service
    of_prefill = stages.slots.of_prefill
    behind: Node = stages.waits.mean
    backlog: Node = interrupts * maximum(0, stages.waits.mean - stages.waits.random)
    if of_prefill is not None:
        behind, backlog = behind + of_prefill.mean, backlog + of_prefill.backlog
    if stages.load is not None:
        in_loop = rows(
            "backlog_in_loop", "Prompts before one that nothing hides, in a closed loop", "s", backlog
        )
        backlog = where(stages.load.open > 0, stages.load.wait - stages.load.steady_wait, in_loop)
    backlog = rows(
        "backlog", "Wait behind prompts that all have", "s", backlog, "more prompts than are served"
    )
    waited = rows("wait_share", "Waits behind prompts against TTFT", "1", behind / ttft)
    common = rows(
        "wait_common", "Part of these waits that all have, against TTFT", "1", minimum(waited, backlog / ttft)
    )
    rest = rows("wait_rest", "The rest of these waits, against TTFT", "1", waited - common)
    steps: Node = service
    if stages.first.any_time is not None:
        steps = service + interrupts * stages.first.any_time * stages.token.step
    occupied = rows(
        "wait_service",
        "Time a prompt occupies the pipeline, against TTFT",
        "1",
        steps / ttft,
        "at a rate with the step that it has to wait for",
    )
    squared = stages.lengths.prompts_squared
    single = rows(
        "wait_single",
        "What waits for a single server vary by, against TTFT",
        "1",
        (THIRD + THIRD) * occupied * (1 + squared + squared),
        source="single server, random arrivals",
    )
    line: Node = stages.waits.line
    if of_prefill is not None:
        line = line + of_prefill.before
    longest = rows("wait_longest", "Prompts of all others, against TTFT", "1", line / ttft)
    most = rows(
        "wait_most",
        "Largest variance of these waits, against the square of TTFT",
        "1",
        waited * maximum(0, longest - waited),
        "none is below 0 or beyond the prompts of all others",
    )
    in_line = minimum(single, most / maximum(SMALLEST, rest) - rest)
    varies_by = rows(
        "wait_varies",
        "What the rest of these waits varies by, against TTFT",
        "1",
        in_line if stages.load is None else where(stages.load.open > 0, single, in_line),
        "in a closed loop no wait is longer than the prompts of all others",
    )
    of_rest = rows(
        "variance_wait", "Variance of TTFT by the rest of these waits", "1", rest * (rest + varies_by)
    )
    varies: Node = occupied * squared
    if stages.load is not None:
        varies = where(stages.load.open > 0, THIRD * common, varies)
    of_common = rows("variance_common", "Variance of TTFT by the part that all have", "1", common * varies)
    beyond: Node = maximum(0, longest - waited) * ttft
    if stages.load is not None:
        beyond = where(stages.load.open > 0, FAR * FAR * ttft, beyond)
    spare = rows(
        "wait_spare",
        "The longest of these waits beyond the mean",
        "s",
        beyond,
        "prompts of all others; at a rate there is no longest",
    )
    return of_rest, of_common, rest, varies_by, spare


def _slots(rows: Rows, stages: Stages) -> Quantity:
    """Variance of the wait for a batch slot, of which so many end before.

    Slots that end one after the other have the variance of the time a request holds them; those of many that
    end at any time have more, until requests wait much longer than others hold them.
    """
    setting, ttft, slots = stages.setting, stages.start.steady, stages.slots
    batch = setting.memory.batch / ONE_REQUEST
    [slot, *_] = slots.waits
    in_batch = rows(
        "slot_time",
        "Time a request holds its slot, never none",
        "s",
        maximum(slots.in_batch, SMALLEST * ttft),
        "decode workers hold no request of one token",
    )
    held = rows(
        "held_varies",
        "Variance of the time a request holds its slot, against its square",
        "1",
        minimum(
            1,
            stages.lengths.outputs_squared
            * (stages.waits.generation / in_batch)
            * (stages.waits.generation / in_batch),
        ),
    )
    ends = rows(
        "ends_vary",
        "Variance of the time between two slots that end, against its square",
        "1",
        held + (1 - held) * (1 - 1 / batch) / (1 + slot / in_batch),
    )
    return rows(
        "variance_slot",
        "Variance of TTFT by the wait for a batch slot",
        "1",
        setting.continuous * (slot / ttft) * (slots.in_batch / ttft) / batch * ends,
        "where there are more requests than slots",
    )


def _rest(rows: Rows, stages: Stages) -> Quantity:
    """Variance of what a request of a static batch waits for the longest of the batch before."""
    setting, batch = stages.setting, stages.setting.memory.batch / ONE_REQUEST
    output = rows(
        "varies_output",
        "Generation against TTFT",
        "1",
        stages.waits.generation / stages.start.steady,
    )
    return rows(
        "variance_rest",
        "Variance of TTFT by the rest of a static batch",
        "1",
        (1 - setting.continuous)
        * stages.lengths.outputs_squared
        * output
        * output
        * (1 - 1 / (batch * batch)),
        "the longest output less that of the request before",
    )


# --- between tokens -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gap:
    """The gaps between tokens.

    Args:
        prompts: that delay a gap, on average; `none` share of the gaps without any.
        step: variance of a step without prompts, s^2 against the square of the step.
        of_request: variance of the mean gap of a request against the square of TPOT.
        delay: seconds of a prompt, or of its part where several steps carry it.
    """

    prompts: Quantity
    none: Quantity
    delay: Quantity
    step: Quantity
    of_request: Quantity


def _gaps(rows: Rows, stages: Stages) -> _Gap:
    """How many prompts a gap has, how long each takes, how the step varies with the requests that decode.

    At a rate the requests that decode vary as random arrivals do. A step that gets longer keeps requests
    longer, which makes for longer steps: what varies slowly is that much larger.
    """
    setting, token, prompts = stages.setting, stages.token, stages.loop.prompts
    parts = rows(
        "gap_parts",
        "Steps that carry a prompt",
        "1",
        where(setting.scheduler.first > 0, 1, maximum(1, 1 / prompts.per_step)),
        "of the size that the token budget allows",
    )
    delay = rows("gap_delay", "Time by which a prompt delays a step", "s", prompts.delay / parts)
    count = rows("gap_prompts", "Prompts in a gap between tokens", "1", token.stall / delay, "on average")
    none = rows(
        "gap_none", "Share of the gaps without prompts", "1", exponential(-count), "prompts come at random"
    )
    tokens = maximum(1, setting.inputs.output_tokens / setting.emitted - 1)
    varies = 1 + stages.lengths.prompts_squared
    of_prompts = rows(
        "gap_variance",
        "Variance of the mean gap of a request by its prompts, against the square of TPOT",
        "1",
        count * varies / tokens * (delay / token.whole) * (delay / token.whole),
    )
    if stages.load is None:
        steady = rows(
            "step_variance",
            "Variance of a step by the requests that decode",
            "1",
            0 * none,
            "a closed loop keeps them",
        )
        label = "Variance of the mean gap of a request against its square"
        of_request = rows("tpot_variance", label, "1", minimum(1, of_prompts))
        return _Gap(count, none, delay, steady, of_request)
    load = stages.load
    slope = rows("step_slope", "Step time per further request in use", "s", load.slope)
    fixed = rows("step_fixed", "Step time without requests in use", "s", load.fixed)
    left = rows(
        "step_left",
        "Share of the time left for steps themselves, in use",
        "1",
        where(load.open > 0, minimum(1, maximum(SMALLEST, fixed / token.whole)), 1),
    )
    running = rows("running", "Requests that decode at the rate", "1", load.decoding / ONE_REQUEST)
    vary = rows(
        "running_variance",
        "Variance of the requests that decode",
        "1",
        load.open * minimum(running * running, running / (left * left)),
        "they come at random, but a step that gets longer keeps them longer",
    )
    step = rows(
        "step_variance",
        "Variance of a step by the requests that decode, against its square",
        "1",
        vary * (slope / token.step) * (slope / token.step),
    )
    share = rows("step_share", "Step against TPOT", "1", token.step / token.whole)
    of_request = rows(
        "tpot_variance",
        "Variance of the mean gap of a request against its square",
        "1",
        (THIRD + THIRD) * step * share * share + minimum(1, of_prompts / (left * left)),
        "requests that are there together see the same",
    )
    return _Gap(count, none, delay, step, of_request)


def _told_gaps(rows: Rows, stages: Stages, gap: _Gap) -> None:
    """Percentiles of all gaps: of those without prompts, then of those with."""
    step, count = stages.token.step, gap.prompts
    with_some = rows("gap_some", "Share of the gaps with prompts", "1", 1 - gap.none)
    mean = rows(
        "gap_added",
        "Time that prompts add to a gap that has some",
        "s",
        where(with_some > SMALLEST, count * gap.delay / with_some, 0),
    )
    second = rows(
        "gap_moment",
        "Second moment of that time against its square",
        "1",
        where(
            with_some > SMALLEST,
            maximum(1, with_some * (1 + (1 + stages.lengths.prompts_squared) / count)),
            1,
        ),
        "so many prompts at random, of lengths that vary",
    )
    deviation = rows("gap_deviation", "Standard deviation of its logarithm", "1", logarithm(second) ** HALF)
    spread = rows(
        "gap_step", "Standard deviation of a step by the requests that decode", "s", step * gap.step**HALF
    )
    median = rows("gap_median", "Median of that time", "s", mean / second**HALF)
    for percentile, (beyond, at) in SHARES.items():
        name = _NAMES[percentile]
        within = rows(
            f"gap_within_{percentile}",
            f"Share of the gaps with prompts up to the {name} of all",
            "1",
            1 - minimum(1, beyond / maximum(SMALLEST, with_some)),
        )
        far = rows(
            f"gap_far_{percentile}",
            f"Place of the {name} among gaps with prompts",
            "1",
            normal_percentile(within),
            "standard deviations of a normal distribution",
        )
        plain: Node | int = 0 if at is None else at * spread
        rows(
            f"itl_{percentile}",
            f"ITL, {name}",
            "s",
            step + where(beyond < with_some, median * exponential(far * deviation), plain),
            "gap between two tokens",
            called=f"{name} ITL",
        )
