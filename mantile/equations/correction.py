"""Results times multipliers that were fitted to measured runs: beside the results, never in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.constant import CORRECTION_LARGEST, CORRECTION_LEAST, CORRECTION_THIN
from mantile.equations.forward import Pass
from mantile.equations.metrics import E2E, TPOT, TTFT
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    defined,
    exponential,
    index,
    join,
    match,
    match_at_most,
    maximum,
    minimum,
    span,
    sum_of,
    sum_where,
    where,
)
from mantile.library.correction import Along, Corrected, Correction, Group

LABELS = {
    "tpot": TPOT.label,
    "ttft": TTFT.label,
    "e2e": E2E.label,
    "prefill": "Prefill",
    "weights": "Weights",
    "kv_tokens": "KV tokens",
    "peak_memory": "Peak memory",
}
OF_MEMORY = {"weights": "B", "kv_tokens": "token", "peak_memory": "B"}
"""Results that are no times, and their units."""
ASKED = {
    "concurrency": "concurrency",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "ranks": "ranks of a replica",
    "engine_date": "engine day",
    "launch_share": "share of launches in a decode step",
    "compute_share": "share of compute in a decode step",
    "memory_share": "share of memory in a decode step",
    "network_share": "share of messages in a decode step",
    "stall_share": "share of other prompts in TPOT",
}
LIMITS = {
    "launch_share": OVERHEAD,
    "compute_share": COMPUTE,
    "memory_share": MEMORY,
    "network_share": NETWORK,
}
"""By what a decode step is bound."""
NOWHERE = "none"
_SHOWN = 12  # characters of a digest


@dataclass(frozen=True)
class CorrectedResult:
    """A result as a correction has it.

    Args:
        physics: the result itself.
        multiplier: by which it is multiplied; 1 where no run of the kind was measured, or, of steps that hold
            everywhere, none of the framework.
        percentiles: the tenth, fiftieth and ninetieth, in the unit of the result. The fiftieth is
            physics × multiplier.
        runs: measured runs of this model, accelerator and framework behind it.
        newest: the day of the newest of them, in words.
    """

    physics: Quantity
    multiplier: Quantity
    percentiles: tuple[Quantity, Quantity, Quantity]
    runs: Quantity
    newest: Quantity


@dataclass(frozen=True)
class Corrections:
    """All results that a correction is of, by metric, its version in words, and their block."""

    results: Mapping[str, CorrectedResult]
    version: str
    section: Section


def shares_of_step(decode: Pass, stall: Node, tpot: Node) -> dict[str, Node]:
    """What share each limit has of a decode step, and the prompts of others of TPOT."""
    shares: dict[str, Node] = {name: decode.parts[limit] / decode.time for name, limit in LIMITS.items()}
    return shares | {"stall_share": stall / tpot}


def corrections(
    known: Correction,
    model: str,
    workers: Workers,
    shares: Mapping[str, Node],
    results: Mapping[str, Quantity],
    ranges: Mapping[str, tuple[Quantity, Quantity]],
) -> Corrections:
    """The rows of a correction. Only its groups of this model have rows.

    Args:
        known: as its file has it.
        model: id of the model.
        workers: those that serve.
        shares: of `shares_of_step`.
        results: by metric.
        ranges: p10 and p90 of results, which hold where the correction has no runs.
    """
    version = defined(
        "correction.version", f"Correction {known.id}", "1", known.version, "its version", known.source
    )
    digest = defined(
        "correction.digest",
        f"Correction {known.id}, digest",
        "1",
        known.digest[:_SHOWN] or NOWHERE,
        "of its content, as its file begins it; none: it is not as it was fitted",
        known.source,
    )
    key = Quantity(
        "correction.key",
        "Accelerator and framework",
        "1",
        join(workers.inputs.accelerator, "/", workers.inputs.framework),
    )
    fit = _fit_for_it(workers)
    rows: list[Named] = [version, digest, key, fit]
    made: dict[str, CorrectedResult] = {}
    for one in known.metrics:
        if one.metric in results:
            made[one.metric], added = _corrected(
                known, one, model, workers, shares, key, fit, results[one.metric], ranges.get(one.metric)
            )
            rows += added
    note = "physics × multiplier, beside the results: nothing else is worked out from it"
    return Corrections(
        made, f"{known.id} {known.version}, digest {digest.value}", Section("Correction", tuple(rows), note)
    )


def _fit_for_it(workers: Workers) -> Quantity:
    """Whether the case is of the kind that was fitted: one set of workers, continuous batches, no drafts."""
    body: Node = workers.ranks.continuous
    if workers.ranks.disaggregated is not None:
        body = body * (1 - workers.ranks.disaggregated)
    if workers.speculation is not None:
        body = body * (1 - workers.speculation.on)
    return Quantity(
        "correction.applies",
        "Correction applies",
        "flag",
        body,
        note="fitted to runs with continuous batches, without drafts, whose workers prefill and decode",
    )


def _corrected(
    known: Correction,
    one: Corrected,
    model: str,
    workers: Workers,
    shares: Mapping[str, Node],
    key: Quantity,
    fit: Quantity,
    result: Quantity,
    known_range: tuple[Quantity, Quantity] | None,
) -> tuple[CorrectedResult, list[Named]]:
    name, label = f"correction.{one.metric}", LABELS[one.metric]
    groups = [group for group in one.groups if group.model == model]
    none = Group(model=model, accelerator=NOWHERE, framework=NOWHERE, runs=1, step=0)
    stated: dict[str, list[Input]] = {"key": [], "runs": [], "step": [], "newest": []}
    if one.everywhere:
        del stated["step"]
    for number, group in enumerate(groups or [none], 1):
        values: dict[str, tuple[str, float | str]] = {
            "key": ("1", f"{group.accelerator}/{group.framework}" if groups else NOWHERE),
            "runs": ("number", group.runs if groups else 0),
            "step": ("1", group.step),
            "newest": ("1", group.newest or "not known"),
        }
        for what, figures in stated.items():
            unit, value = values[what]
            figures.append(_stated(known, f"{name}.{what}.{number}", label, what, unit, value))
    keys = span(stated["key"])
    runs = Quantity(
        f"{name}.runs",
        f"Measured runs behind it, {label}",
        "number",
        sum_where(span(stated["runs"]), keys, key) * fit,
        note=f"of {model}, this accelerator and this framework",
    )
    steps: list[Quantity] = []
    tables: list[Named] = []
    for along in one.along:
        found, added = _along(known, name, label, along, workers, shares)
        steps.append(found)
        tables += [*added, found]
    behind = runs
    if one.everywhere:
        behind, added = _of_framework(known, name, label, one.groups, workers, fit)
        tables += added
    else:
        step = sum_where(span(stated["step"]), keys, key)
        steps.insert(0, Quantity(f"{name}.step", f"Step of the kind of runs, {label}", "1", step))
        tables.insert(0, steps[0])
    weight = Quantity(
        f"{name}.weight",
        f"Weight of the correction, {label}",
        "1",
        behind / (behind + CORRECTION_THIN),
        note="few runs count for little: without any the multiplier is 1",
    )
    tables.append(weight)
    total = Quantity(
        f"{name}.logarithm",
        f"Logarithm of the multiplier, {label}",
        "1",
        weight * sum_of(steps),
        note="the steps hold for all models and accelerators" if one.everywhere else "",
    )
    multiplier = Quantity(
        f"{name}.multiplier",
        f"Multiplier, {label}",
        "1",
        minimum(maximum(exponential(total), CORRECTION_LEAST), CORRECTION_LARGEST),
    )
    middle = Quantity(f"{name}.p50", f"{label}, corrected", result.unit, result * multiplier)
    ends = []
    without = "" if known_range is None else "without runs behind it: the range of the result itself"
    if without and one.everywhere:
        without = "without runs behind it: the range of the result, times the multiplier"
    for percentile, place, value in (("p10", 0, one.low), ("p90", 1, one.high)):
        spread = _stated(known, f"{name}.{percentile}.fitted", label, percentile, "1", value)
        otherwise: Node = middle * exponential(spread)
        if known_range is not None:
            otherwise = known_range[place] * multiplier if one.everywhere else known_range[place]
        ends.append(
            Quantity(
                f"{name}.{percentile}",
                f"{label}, corrected, {percentile}",
                result.unit,
                where(runs > 0, middle * exponential(spread), otherwise),
                note=without,
            )
        )
        tables.append(spread)
    newest = Quantity(
        f"{name}.newest",
        f"Newest run behind it, {label}",
        "1",
        where(runs > 0, index(span(stated["newest"]), match(key, keys)), NOWHERE),
    )
    rows: list[Named] = [figure for figures in stated.values() for figure in figures]
    rows += [runs, *tables, total, multiplier, middle, *ends, newest]
    return CorrectedResult(result, multiplier, (ends[0], middle, ends[1]), runs, newest), rows


def _of_framework(
    known: Correction, name: str, label: str, groups: Sequence[Group], workers: Workers, fit: Quantity
) -> tuple[Quantity, list[Named]]:
    """Measured runs of the framework, and of all frameworks."""
    counts = Counter[str]()
    for group in groups:
        counts[group.framework] += group.runs
    names: list[Input] = []
    runs: list[Input] = []
    for number, (framework, count) in enumerate(sorted(counts.items()), 1):
        for what, unit, value, stated in (
            ("framework", "1", framework, names),
            ("framework_runs", "number", count, runs),
        ):
            stated.append(_stated(known, f"{name}.{what}.{number}", label, what, unit, value))
    found = Quantity(
        f"{name}.of_framework",
        f"Measured runs of the framework, {label}",
        "number",
        sum_where(span(runs), span(names), workers.inputs.framework) * fit,
        note="of all models and accelerators",
    )
    return found, [*names, *runs, found]


def _along(
    known: Correction,
    name: str,
    label: str,
    along: Along,
    workers: Workers,
    shares: Mapping[str, Node],
) -> tuple[Quantity, list[Named]]:
    """The step for what was asked, and its table."""
    asked: Node | None
    if along.what in shares:
        asked = shares[along.what]
    else:
        asked = workers.ranks.replica if along.what == "ranks" else getattr(workers.inputs, along.what)
    called = ASKED[along.what]
    starts, steps = [], []
    for number, (start, step) in enumerate(zip(along.starts, along.steps, strict=True), 1):
        ends = f"{name}.{along.what}"
        starts.append(
            _stated(known, f"{ends}.from.{number}", label, f"{called} from", "1", start, f", {number}")
        )
        steps.append(
            _stated(known, f"{ends}.step.{number}", label, f"step of {called}", "1", step, f", {number}")
        )
    found = Quantity(
        f"{name}.{along.what}",
        f"Step of {called}, {label}",
        "1",
        index(span(steps), match_at_most(maximum(span(starts)) if asked is None else asked, span(starts))),
        note="" if asked is not None else "nobody states its day: the newest one",
    )
    return found, [*starts, *steps]


_WORDS = {
    "key": "accelerator and framework of runs",
    "runs": "runs",
    "step": "step of runs",
    "newest": "newest of runs",
    "framework": "framework of runs",
    "framework_runs": "runs of the framework",
    "p10": "spread below",
    "p90": "spread above",
}
_NOTES = {
    "runs": "that were fitted",
    "step": "logarithm of measured ÷ predicted",
    "p10": "logarithm of measured ÷ corrected, tenth percentile of runs that were not fitted",
    "p90": "logarithm of measured ÷ corrected, ninetieth percentile of runs that were not fitted",
}


def _stated(
    known: Correction, identifier: str, label: str, what: str, unit: str, value: float | str, more: str = ""
) -> Input:
    """A figure of the file."""
    words = _WORDS.get(what, what)
    number = identifier.rsplit(".", 1)[-1]
    place = f" {number}" if number.isdigit() and not more else more
    return defined(
        identifier,
        f"{label}: {words}{place}",
        unit,
        value,
        _NOTES.get(what, ""),
        known.source,
        status="fitted",
        name=f"{words} of {label}",
    )
