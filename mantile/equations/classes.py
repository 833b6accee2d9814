"""Classes of requests in one deployment: what it sees of their mixture, and what each of them sees of it.

The deployment serves the mixture: lengths with the mean and the standard deviation of all classes together.
A request of a class has a prompt and an output of its own length; waits, steps and slots are those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST, TOKENS_PER_STEP
from mantile.equations.goodput import all_within
from mantile.equations.inputs import Workload
from mantile.equations.prefix import ClassHeads, Prefix
from mantile.equations.serving.tails import (
    Lognormal,
    Percentiles,
    e2e_percentiles,
    lognormal,
    ttft_percentiles,
)
from mantile.graph.quantity import Input, Node, Quantity, Section, maximum, minimum, sum_of, where
from mantile.graph.rows import Rows
from mantile.library.fields import ScenarioField
from mantile.library.request_classes import CLASS_FIELDS, RequestClass


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
        heads: what prompts of all classes have at their head; None where no class caches any.
        found: by class the share of a prompt that was there before, where classes cache prefixes.
    """

    classes: tuple[OneClass, ...]
    defaults: dict[str, Quantity]
    heads: ClassHeads | None
    found: tuple[Quantity, ...]
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
            for name, field in _asked(asked).items()
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
    found: tuple[Quantity, ...] = ()
    heads = None
    if "turns" in cells[0]:
        before, found = _found(rows, classes)
    for side, label in (("input", "prompts"), ("output", "outputs")):
        defaults[f"{side}_tokens"], parts = _mean(rows, side, label, classes)
        if side == "output" or not found:
            defaults[f"{side}_spread"] = _spread(
                rows, side, label, classes, defaults[f"{side}_tokens"], parts
            )
    if found:
        mean = defaults["input_tokens"]
        shared, hits = _shared(rows, classes, found, mean)
        defaults |= {"shared_prefix": shared, "prefix_hit_rate": hits}
        heads = _heads(rows, classes, before)
        defaults["input_spread"] = _computed_spread(rows, classes, found, defaults["input_tokens"], hits)
    if "think_time" in cells[0]:
        thought = [one.share * one.asked["think_time"] for one in classes]
        defaults["think_time"] = rows("think_time", "Mean think time", "s", sum_of(thought))
    return Mixture(
        classes=tuple(classes),
        defaults=defaults,
        heads=heads,
        found=found,
        inputs=Section(
            "Classes of requests",
            tuple(cell for of_one in cells for cell in of_one.values()),
            "the deployment serves all of them; the same for all scenarios",
        ),
        section=rows.section("Mixture of classes", "lengths that the deployment sees"),
    )


def _asked(classes: Sequence[RequestClass]) -> dict[str, ScenarioField]:
    """The fields of a class: of those that only some scenarios have, the kinds that a class states."""
    stated = {
        field.needs
        for name, field in CLASS_FIELDS.items()
        if any(getattr(one, name) is not None for one in classes)
    }
    return {name: field for name, field in CLASS_FIELDS.items() if field.needs in {None, *stated}}


def _found(rows: Rows, classes: Sequence[OneClass]) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """By class, tokens of shared prefix and answers before, and the share of a prompt that was there."""
    heads, shares = [], []
    for number, one in enumerate(classes, start=1):
        own, before = one.asked, HALF * (one.asked["turns"] - 1)
        head = rows(
            f"{number}.head",
            f"Shared prefix and answers before, {one.name}",
            "token/request",
            own["shared_prefix"] + before * own["output_tokens"],
            "the first turn has none before it, the last all others",
        )
        heads.append(head)
        shares.append(
            rows(
                f"{number}.before",
                f"Share of a prompt that was there before, {one.name}",
                "1",
                1 - maximum(0, own["input_tokens"] - head) / (1 + before) / own["input_tokens"],
                "as many new tokens in each turn",
            )
        )
    return tuple(heads), tuple(shares)


def _shared(
    rows: Rows, classes: Sequence[OneClass], found: Sequence[Quantity], mean: Quantity
) -> tuple[Quantity, Quantity]:
    """Tokens of a shared prefix of a request, and the share of all prompts that was there before."""
    shared = rows(
        "shared_prefix",
        "Mean shared prefix",
        "token/request",
        sum_of([one.share * one.asked["shared_prefix"] for one in classes]),
        "requests of a class share its own",
    )
    parts = [one.share * one.asked["input_tokens"] * share for one, share in zip(classes, found, strict=True)]
    return shared, rows("before", "Share of all prompts that was there before", "1", sum_of(parts) / mean)


def _heads(rows: Rows, classes: Sequence[OneClass], before: Sequence[Quantity]) -> ClassHeads:
    once = rows(
        "shared_once",
        "Shared prefixes of all classes",
        "token/request",
        sum_of([one.asked["shared_prefix"] for one in classes]),
        "each lies in the KV cache once",
    )
    heads = [head / one.asked["input_tokens"] for one, head in zip(classes, before, strict=True)]
    longest = rows(
        "head",
        "Longest head of a prompt, against the prompt",
        "1",
        maximum(0, *heads),
        "shared prefix and answers before: above 1 no prompt holds them",
    )
    return ClassHeads(once, longest)


def _computed_spread(
    rows: Rows, classes: Sequence[OneClass], found: Sequence[Quantity], mean: Quantity, hits: Quantity
) -> Quantity:
    """Spread of what is worked out of prompts: who waits, waits behind that."""
    left = rows(
        "new", "Mean tokens of a prompt to work out", "token/request", maximum(SMALLEST, 1 - hits) * mean
    )
    squares = []
    for number, (one, share) in enumerate(zip(classes, found, strict=True), start=1):
        spread = one.asked["input_spread"]
        new = rows(
            f"{number}.new",
            f"Tokens to work out against the mean, {one.name}",
            "1",
            one.asked["input_tokens"] * (1 - share) / left,
        )
        squares.append(
            rows(
                f"{number}.new_square",
                f"Part of {one.name} in the mean square of what is new, against the square of the mean",
                "1",
                one.share * new * new * (1 + spread * spread),
            )
        )
    return rows(
        "new_spread",
        "Spread of what is worked out of prompts, over all classes",
        "1",
        maximum(0, sum_of(squares) - 1) ** HALF,
        "standard deviation against the mean; who waits, waits behind that",
    )


def _mean(rows: Rows, side: str, label: str, classes: Sequence[OneClass]) -> tuple[Quantity, list[Quantity]]:
    """Mean of a length over all classes, and the part of each in it."""
    parts = [
        rows(
            f"{number}.{side}_part",
            f"Part of {one.name} in the mean of {label}",
            "token/request",
            one.share * one.asked[f"{side}_tokens"],
        )
        for number, one in enumerate(classes, start=1)
    ]
    return rows(f"{side}_mean", f"Mean length of {label}", "token/request", sum_of(parts)), parts


def _spread(
    rows: Rows,
    side: str,
    label: str,
    classes: Sequence[OneClass],
    mean: Quantity,
    parts: Sequence[Quantity],
) -> Quantity:
    """Spread of a length over all classes."""
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
    return rows(
        f"{side}_spread",
        f"Spread of {label} over all classes",
        "1",
        maximum(0, sum_of(squares) - 1) ** HALF,
        "standard deviation against the mean",
    )


@dataclass(frozen=True)
class Told:
    """What requests of a class see: seconds, and the share of them within their limits."""

    name: str
    share: Quantity
    ttft: Quantity
    e2e: Quantity
    percentiles: dict[str, Quantity]
    good: Quantity
    sessions: Quantity | None = None


@dataclass(frozen=True)
class ClassesTold:
    """What each class sees, and the share of all requests within the limits of their classes."""

    told: tuple[Told, ...]
    good: Quantity
    section: Section


def classes_told(
    known: Mixture,
    inputs: Workload,
    all_of_them: Percentiles,
    continuous: Quantity,
    batch: Quantity,
    cached: Prefix | None = None,
    requests: Quantity | None = None,
) -> ClassesTold:
    """Percentiles and goodput of each class.

    Args:
        cached: what is found of prompts; `requests` per second: with them sessions are told.
        all_of_them: percentiles of the mixture.
        continuous: 1 in continuous batching; `batch` requests of a static one.
    """
    rows, parts = Rows("classes"), all_of_them.parts
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
    kept = None
    if known.found and cached is not None:
        kept = rows(
            "kept",
            "What is found against what was there before",
            "1",
            cached.hit_rate / maximum(SMALLEST, known.defaults["prefix_hit_rate"]),
            "of all classes alike: room for prefixes, whole blocks, or a rate that is typed",
        )
    shared = _Shared(inputs, all_of_them, prompt, others, cached, known.found, kept)
    told = tuple(_told(rows, number, one, shared) for number, one in enumerate(known.classes, start=1))
    if requests is not None and inputs.think_time is not None:
        told = tuple(
            replace(one, sessions=_sessions(rows, number, one, asked, inputs.think_time, requests))
            for number, (one, asked) in enumerate(zip(told, known.classes, strict=True), start=1)
        )
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
        cached: what is found of prompts; `found` of each class was there before, `kept` of it is found.
    """

    inputs: Workload
    times: Percentiles
    prompt: Quantity
    others: Quantity
    cached: Prefix | None
    found: tuple[Quantity, ...]
    kept: Quantity | None


def _sessions(
    rows: Rows, number: int, told: Told, one: OneClass, mean: Quantity | Input, requests: Quantity
) -> Quantity:
    """Sessions of a class: who waits for an answer, or thinks."""
    thinks = one.asked.get("think_time", mean)
    return rows(
        f"{number}.sessions",
        f"Sessions, {one.name}",
        "request",
        requests * one.share * (told.e2e + thinks),
        "requests per second times the seconds of an answer and of the thought after it",
        source="Little's law",
    )


def _told(rows: Rows, number: int, one: OneClass, shared: _Shared) -> Told:
    """A class: its own prompt and output, in place of those of the mixture."""
    own, mean, name = one.asked, shared.times.parts, one.name
    ttft, varies = _first_token(rows, number, one, shared)
    first = lognormal(rows, f"{number}.ttft", f"TTFT, {name}", ttft, varies)
    burst = shared.times.burst
    mean_ttft = rows(f"{number}.ttft", f"TTFT, {name}", "s", ttft + burst.added)
    generation = rows(
        f"{number}.generation",
        f"Generation after the first token, {name}",
        "s",
        maximum(0, own["output_tokens"] / TOKENS_PER_STEP - 1) * mean.tpot,
    )
    e2e = rows(f"{number}.e2e_steady", f"End to end in steady state, {name}", "s", ttft + generation)
    mean_e2e = rows(f"{number}.e2e", f"End to end, {name}", "s", mean_ttft + generation)
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
    longest = ttft + mean.spare, own["input_spread"] * own["input_spread"]
    of_ttft = ttft_percentiles(rows, f"{number}.ttft", f"TTFT, {name}", first, burst, longest)
    late = of_ttft["p50"] - first.median
    of_e2e = e2e_percentiles(rows, f"{number}.e2e", f"End to end, {name}", request, late, of_ttft)
    told = {f"ttft_{percentile}": figure for percentile, figure in of_ttft.items()}
    told |= {f"e2e_{percentile}": figure for percentile, figure in of_e2e.items()}
    good = _good(rows, number, one, shared.inputs, {"ttft": first, "tpot": shared.times.tpot, "e2e": request})
    return Told(name, one.share, mean_ttft, mean_e2e, told, good)


def _first_token(rows: Rows, number: int, one: OneClass, shared: _Shared) -> tuple[Quantity, Quantity]:
    """TTFT of a class, and its variance against its square."""
    own, of_all, name = one.asked, shared.times.parts.ttft, one.name
    length: Node = own["input_tokens"] / shared.inputs.input_tokens
    if shared.kept is not None and shared.cached is not None:
        new = 1 - minimum(1, shared.found[number - 1] * shared.kept)
        length = own["input_tokens"] * new / shared.cached.computed
    longer = rows(f"{number}.longer", f"Prompt to work out against the mean, {name}", "1", length)
    ttft = rows(
        f"{number}.ttft_steady",
        f"TTFT in steady state, {name}",
        "s",
        of_all * maximum(SMALLEST, 1 + shared.prompt * (longer - 1)),
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
