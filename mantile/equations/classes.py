"""Classes of requests in one deployment: what it sees of their mixture, and what each of them sees of it.

The deployment serves the mixture: lengths with the mean and the standard deviation of all classes together.
A request of a class has a prompt and an output of its own length; waits, steps and slots are those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST, TOKENS_PER_STEP
from mantile.equations.goodput import all_within
from mantile.equations.inputs import Workload
from mantile.equations.serving.percentiles import Lognormal, Percentiles, lognormal, percentiles_of
from mantile.graph.quantity import Input, Quantity, Section, maximum, sum_of, where
from mantile.graph.rows import Rows
from mantile.library.scenario import CLASS_FIELDS, RequestClass


@dataclass(frozen=True)
class OneClass:
    """What is asked of a class.

    Args:
        asked: its inputs, by the field of a scenario.
        share: of all requests.
    """

    name: str
    asked: dict[str, Input]
    share: Quantity


@dataclass(frozen=True)
class Mixture:
    """Classes of requests, and the lengths that the deployment sees of them.

    Args:
        defaults: by the name of the input what it follows until somebody types over it.
    """

    classes: tuple[OneClass, ...]
    defaults: dict[str, Quantity]
    inputs: Section
    section: Section

    @property
    def entries(self) -> tuple[Input, ...]:
        """Their inputs, class by class."""
        return tuple(entry for one in self.classes for entry in one.asked.values())


def mixture(asked: Sequence[RequestClass]) -> Mixture | None:
    """The classes of a scenario; None where it has none."""
    if not asked:
        return None
    cells = [
        {
            name: Input(
                id=f"classes.{number}.{name}",
                label=f"{field.label}, {one.name}",
                unit=field.unit,
                value=one.value(name),
                note=field.meaning,
                source="scenario",
                status="given",
                minimum=field.least,
                maximum=field.most,
                integer=field.kind is int,
                shared=True,
                name=f"{field.label[0].lower()}{field.label[1:]} of {one.name}",
            )
            for name, field in CLASS_FIELDS.items()
        }
        for number, one in enumerate(asked, start=1)
    ]
    rows = Rows("classes")
    weights = sum_of([of_one["share"] for of_one in cells])
    whole = rows("weights", "Sum of the weights of all classes", "1", weights)
    classes = []
    for number, (one, of_one) in enumerate(zip(asked, cells, strict=True), start=1):
        share = rows(f"{number}.part", f"Share of all requests, {one.name}", "1", of_one["share"] / whole)
        classes.append(OneClass(one.name, of_one, share))
    defaults: dict[str, Quantity] = {}
    for side, label in (("input", "prompts"), ("output", "outputs")):
        mean, spread = _moments(rows, side, label, classes)
        defaults |= {f"{side}_tokens": mean, f"{side}_spread": spread}
    return Mixture(
        classes=tuple(classes),
        defaults=defaults,
        inputs=Section(
            "Classes of requests",
            tuple(cell for of_one in cells for cell in of_one.values()),
            "the deployment serves all of them; the same for all scenarios",
        ),
        section=rows.section("Mixture of classes", "lengths that the deployment sees"),
    )


def _moments(rows: Rows, side: str, label: str, classes: Sequence[OneClass]) -> tuple[Quantity, Quantity]:
    """Mean and spread of a length over all classes."""
    parts = [
        rows(
            f"{number}.{side}_part",
            f"Part of {one.name} in the mean of {label}",
            "token/request",
            one.share * one.asked[f"{side}_tokens"],
        )
        for number, one in enumerate(classes, start=1)
    ]
    mean = rows(f"{side}_mean", f"Mean length of {label}", "token/request", sum_of(parts))
    squares = []
    for number, (one, part) in enumerate(zip(classes, parts, strict=True), start=1):
        own = one.asked[f"{side}_spread"]
        length = one.asked[f"{side}_tokens"]
        squares.append(
            rows(
                f"{number}.{side}_square",
                f"Part of {one.name} in the mean square of {label}, against the square of the mean",
                "1",
                part / mean * (length / mean) * (1 + own * own),
            )
        )
    spread = rows(
        f"{side}_spread",
        f"Spread of {label} over all classes",
        "1",
        maximum(0, sum_of(squares) - 1) ** HALF,
        "standard deviation ÷ mean",
    )
    return mean, spread


@dataclass(frozen=True)
class Told:
    """What requests of a class see: seconds, and the share of them within their limits."""

    name: str
    share: Quantity
    ttft: Quantity
    e2e: Quantity
    percentiles: dict[str, Quantity]
    good: Quantity


@dataclass(frozen=True)
class ClassesTold:
    """What each class sees, and the share of all requests within the limits of their classes."""

    told: tuple[Told, ...]
    good: Quantity
    section: Section


def classes_told(
    known: Mixture, inputs: Workload, all_of_them: Percentiles, continuous: Quantity, batch: Quantity
) -> ClassesTold:
    """Percentiles and goodput of each class.

    Args:
        all_of_them: percentiles of the mixture.
        continuous: 1 in continuous batching; `batch` requests of a static one.
    """
    rows, parts = Rows("classes"), all_of_them.parts
    assert inputs.input_spread is not None
    prompt = rows(
        "own_prompt",
        "What grows with a request's own prompt, against TTFT",
        "1",
        where(continuous > 0, parts.prompt, parts.prompt / (batch / ONE_REQUEST)),
        "in a static batch prompts are prefilled together",
    )
    others = rows(
        "others",
        "Variance of TTFT but for one's own prompt, against its square",
        "1",
        maximum(0, parts.variance - prompt * prompt * inputs.input_spread * inputs.input_spread),
        "for all classes alike",
    )
    shared = _Shared(inputs, all_of_them, prompt, others)
    told = tuple(_told(rows, number, one, shared) for number, one in enumerate(known.classes, start=1))
    good_parts = [
        rows(f"{number}.good", f"Requests within limits, of all, {one.name}", "1", one.share * one.good)
        for number, one in enumerate(told, start=1)
    ]
    good = rows("good", "Share of requests within the limits of their classes", "1", sum_of(good_parts))
    section = rows.section("Classes", "what requests of a class see; gaps between tokens are those of all")
    return ClassesTold(told, good, section)


@dataclass(frozen=True)
class _Shared:
    """What requests of all classes share.

    Args:
        prompt: what grows with a request's own prompt, against TTFT.
        others: variance of TTFT but for that.
    """

    inputs: Workload
    times: Percentiles
    prompt: Quantity
    others: Quantity


def _told(rows: Rows, number: int, one: OneClass, shared: _Shared) -> Told:
    """A class: its own prompt and output, in place of those of the mixture."""
    own, mean, name = one.asked, shared.times.parts, one.name
    ttft, varies = _first_token(rows, number, one, shared)
    first = lognormal(rows, f"{number}.ttft", f"TTFT, {name}", ttft, varies)
    generation = rows(
        f"{number}.generation",
        f"Generation after the first token, {name}",
        "s",
        maximum(0, own["output_tokens"] / TOKENS_PER_STEP - 1) * mean.tpot,
    )
    e2e = rows(f"{number}.e2e", f"End to end, {name}", "s", ttft + generation)
    length = rows(f"{number}.e2e_generation", f"Generation against end to end, {name}", "1", generation / e2e)
    start = rows(f"{number}.e2e_first", f"TTFT against end to end, {name}", "1", ttft / e2e)
    gaps = rows(
        f"{number}.gap_variance",
        f"Variance of outputs and of their gaps, {name}",
        "1",
        own["output_spread"] * own["output_spread"] + mean.gaps,
        "against the square of the generation",
    )
    whole = rows(
        f"{number}.e2e_variance",
        f"Variance of end to end against its square, {name}",
        "1",
        varies * start * start + gaps * length * length,
    )
    request = lognormal(rows, f"{number}.e2e", f"End to end, {name}", e2e, whole)
    told = {
        f"{time}_{percentile}": figure
        for time, label, of in (("ttft", "TTFT", first), ("e2e", "End to end", request))
        for percentile, figure in percentiles_of(rows, f"{number}.{time}", f"{label}, {name}", of).items()
    }
    good = _good(rows, number, one, shared.inputs, {"ttft": first, "tpot": shared.times.tpot, "e2e": request})
    return Told(name, one.share, ttft, e2e, told, good)


def _first_token(rows: Rows, number: int, one: OneClass, shared: _Shared) -> tuple[Quantity, Quantity]:
    """TTFT of a class, and its variance against its square."""
    own, of_all, name = one.asked, shared.times.parts.ttft, one.name
    longer = rows(
        f"{number}.longer",
        f"Prompt against the mean, {name}",
        "1",
        own["input_tokens"] / shared.inputs.input_tokens,
    )
    ttft = rows(
        f"{number}.ttft", f"TTFT, {name}", "s", of_all * maximum(SMALLEST, 1 + shared.prompt * (longer - 1))
    )
    against = rows(f"{number}.of_all", f"TTFT of all against that of {name}", "1", of_all / ttft)
    spread = rows(
        f"{number}.own_prompt",
        f"Spread of TTFT by one's own prompt, against TTFT of all, {name}",
        "1",
        shared.prompt * longer * own["input_spread"],
        "standard deviation",
    )
    varies = rows(
        f"{number}.ttft_variance",
        f"Variance of TTFT against its square, {name}",
        "1",
        (shared.others + spread * spread) * against * against,
    )
    return ttft, varies


def _good(rows: Rows, number: int, one: OneClass, inputs: Workload, times: dict[str, Lognormal]) -> Quantity:
    """The share of a class within its limits; where it has none of its own, those of the scenario hold."""
    limits = {}
    for time in times:
        own, of_all = one.asked[f"{time}_limit"], getattr(inputs, f"{time}_limit")
        limits[time] = rows(
            f"{number}.{time}_limit_in_use", f"{own.label}, in use", "s", where(own > 0, own, of_all)
        )
    return all_within(rows, limits, times, f"{number}.good_", f", {one.name}")
