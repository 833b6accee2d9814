"""Results times multipliers that were fitted to measured runs: beside the results, never in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import CORRECTION_LARGEST, CORRECTION_LEAST, CORRECTION_THIN
from mantile.equations.metrics import E2E, TPOT, TTFT
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
from mantile.library.correction import Along, Corrected, Correction

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
}
NOWHERE = "none"
_SHOWN = 12  # characters of a digest


@dataclass(frozen=True)
class CorrectedResult:
    """A result as a correction has it.

    Args:
        physics: the result itself.
        multiplier: by which it is multiplied; 1 where no run of the kind was measured.
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


def corrections(
    known: Correction,
    model: str,
    workers: Workers,
    results: Mapping[str, Quantity],
    ranges: Mapping[str, tuple[Quantity, Quantity]],
) -> Corrections:
    """The rows of a correction. Only its groups of this model have rows.

    Args:
        known: as its file has it.
        model: id of the model.
        workers: those that serve.
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
                known, one, model, workers, key, fit, results[one.metric], ranges.get(one.metric)
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
    key: Quantity,
    fit: Quantity,
    result: Quantity,
    known_range: tuple[Quantity, Quantity] | None,
) -> tuple[CorrectedResult, list[Named]]:
    name, label = f"correction.{one.metric}", LABELS[one.metric]
    groups = [group for group in one.groups if group.model == model]
    stated: dict[str, list[Input]] = {"key": [], "runs": [], "step": [], "newest": []}
    for number, group in enumerate(groups, 1):
        of_group = f"{group.accelerator}/{group.framework}"
        for what, unit, value in (
            ("key", "1", of_group),
            ("runs", "number", group.runs),
            ("step", "1", group.step),
            ("newest", "1", group.newest or "not known"),
        ):
            stated[what].append(_stated(known, f"{name}.{what}.{number}", label, what, unit, value))
    if not groups:
        for what, unit, value in (
            ("key", "1", NOWHERE),
            ("runs", "number", 0),
            ("step", "1", 0),
            ("newest", "1", "not known"),
        ):
            stated[what].append(_stated(known, f"{name}.{what}.1", label, what, unit, value))
    keys = span(stated["key"])
    runs = Quantity(
        f"{name}.runs",
        f"Measured runs behind it, {label}",
        "number",
        sum_where(span(stated["runs"]), keys, key) * fit,
        note=f"of {model}, this accelerator and this framework",
    )
    weight = Quantity(
        f"{name}.weight",
        f"Weight of the correction, {label}",
        "1",
        runs / (runs + CORRECTION_THIN),
        note="few runs count for little: without any the multiplier is 1",
    )
    step = Quantity(
        f"{name}.step", f"Step of the kind of runs, {label}", "1", sum_where(span(stated["step"]), keys, key)
    )
    steps: list[Quantity] = [step]
    tables: list[Named] = []
    for along in one.along:
        found, added = _along(known, name, label, along, workers)
        steps.append(found)
        tables += [*added, found]
    total = Quantity(
        f"{name}.logarithm",
        f"Logarithm of the multiplier, {label}",
        "1",
        weight * sum_of(steps),
    )
    multiplier = Quantity(
        f"{name}.multiplier",
        f"Multiplier, {label}",
        "1",
        minimum(maximum(exponential(total), CORRECTION_LEAST), CORRECTION_LARGEST),
    )
    middle = Quantity(f"{name}.p50", f"{label}, corrected", result.unit, result * multiplier)
    ends = []
    for percentile, place, value in (("p10", 0, one.low), ("p90", 1, one.high)):
        spread = _stated(known, f"{name}.{percentile}.fitted", label, percentile, "1", value)
        otherwise: Node = middle * exponential(spread) if known_range is None else known_range[place]
        ends.append(
            Quantity(
                f"{name}.{percentile}",
                f"{label}, corrected, {percentile}",
                result.unit,
                where(runs > 0, middle * exponential(spread), otherwise),
                note="" if known_range is None else "without runs behind it: the range of the result itself",
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
    rows += [runs, weight, step, *tables, total, multiplier, middle, *ends, newest]
    return CorrectedResult(result, multiplier, (ends[0], middle, ends[1]), runs, newest), rows


def _along(
    known: Correction, name: str, label: str, along: Along, workers: Workers
) -> tuple[Quantity, list[Named]]:
    """The step for what was asked, and its table."""
    asked: Node | None = (
        workers.ranks.replica if along.what == "ranks" else getattr(workers.inputs, along.what)
    )
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
