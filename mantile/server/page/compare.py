"""The view `Compare`: pinned runs side by side, what differs, and which is best for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.display import LETTERS
from mantile.equations.metrics import (
    ACCELERATORS,
    E2E,
    INTERACTIVITY,
    JOULES_PER_OUTPUT_TOKEN,
    KV_CAPACITY_SEQUENCES,
    MEMORY_CAPACITY,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.library.errors import InputError
from mantile.library.runs import NOTHING_NEAR
from mantile.library.scenario import Case
from mantile.library.scenario_fields import input_field
from mantile.server.page import charts
from mantile.server.page.answers import Answer, answer
from mantile.server.page.run import at
from mantile.server.page.state import State, unpacked
from mantile.server.page.text import headline, parts, signed

QUESTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("How fast for one user?", (TTFT, TTFT_P95, TPOT, INTERACTIVITY, E2E)),
    ("How much in total?", (OUTPUT_TOKENS_PER_S, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR)),
    (
        "What does it cost?",
        (USD_PER_MILLION_OUTPUT_TOKENS, USD_PER_HOUR, POWER, JOULES_PER_OUTPUT_TOKEN),
    ),
    (
        "Does it fit?",
        (ACCELERATORS, MEMORY_PER_ACCELERATOR, MEMORY_CAPACITY, KV_CAPACITY_SEQUENCES),
    ),
)
_CHARTED = ((TTFT, "ttft"), (TPOT, "tpot"), (USD_PER_MILLION_OUTPUT_TOKENS, "usd_per_million_output_tokens"))
_SAME = 1e-9
_OF_A_COLUMN = frozenset(Case.model_fields)
"""What columns of a workbook may have otherwise."""


@dataclass(frozen=True)
class Pinned:
    """A pinned run.

    Args:
        letter: by which it is called.
        found: the answer; None where it cannot be estimated, and `error` says why.
    """

    letter: str
    state: State
    found: Answer | None
    error: str = ""

    @property
    def name(self) -> str:
        """What it is of."""
        return self.error if self.found is None else self.found.estimate.title

    def value(self, metric: Metric) -> float | None:
        """A metric; None where nobody knows it."""
        return None if self.found is None else at(self.found.results, metric.key)


def pinned(state: State) -> list[Pinned]:
    """The runs that are pinned, the first is the base of all deltas."""
    runs = []
    for letter, pin in zip(LETTERS, state.pins, strict=False):
        one = State(unpacked(pin), state.pins)
        try:
            runs.append(Pinned(letter, one, answer(one)))
        except InputError as error:
            runs.append(Pinned(letter, one, None, str(error)))
    return runs


def comparison(runs: Sequence[Pinned]) -> dict[str, Any]:
    """Title, charts, the table of deltas, and fields that differ."""
    return {
        "title": _title(runs),
        "cards": [_card(run, runs[0]) for run in runs],
        "charts": [_ranges(runs, metric, band) for metric, band in _CHARTED],
        "groups": [(question, [_row(runs, metric) for metric in listed]) for question, listed in QUESTIONS],
        "words": _words(runs),
        "differs": differing(runs),
        "best": _best_for(runs),
    }


def as_scenario(runs: Sequence[Pinned]) -> dict[str, Any]:
    """The runs as one scenario: the first is the base, each other a variant with what it has otherwise.

    Raises:
        InputError: where one cannot be estimated, or is of another model or structure than the first.
    """
    found = []
    for run in runs:
        if run.found is None:
            raise InputError(f"run {run.letter} cannot be in a workbook: {run.error}")
        found.append(run.found)
    if not found:
        raise InputError("no run is pinned: pin one on Run, then another")
    base, *others = (_stated(one) for one in found)
    variants = []
    for run, fields, one in zip(runs[1:], others, found[1:], strict=True):
        unlike = sorted(key for key in {*base, *fields} - _OF_A_COLUMN if base.get(key) != fields.get(key))
        if unlike:
            raise InputError(
                f"run {run.letter} differs from {runs[0].letter} in {', '.join(unlike)}; columns of one "
                "workbook are alike in that: take it out, or compare two workbooks"
            )
        own = {key: value for key, value in fields.items() if value != base.get(key)}
        left = {key: getattr(one.scenario, key) for key in base if key not in fields}
        own |= {key: value for key, value in left.items() if value is not None}
        own |= _overrides(base, fields)
        own["without"] = [*own.get("without", ()), *(f"inputs.{key}" for key in left if left[key] is None)]
        variants.append({"name": f"{run.letter} · {run.name}", **own})
    return {**base, "variants": variants} if variants else base


def _stated(found: Answer) -> dict[str, Any]:
    """The fields of a run, without what it is called."""
    unnamed = {"name", "title", "date"}
    return found.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude=unnamed)


def _overrides(base: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Figures that a run replaces otherwise than the base, and those of the base that it does not."""
    before, own = ({item["id"]: item for item in one.get("overrides", [])} for one in (base, fields))
    changed = [item for key, item in own.items() if item != before.get(key)]
    return {"overrides": changed, "without": [key for key in before if key not in own]}


def _best(runs: Sequence[Pinned], metric: Metric) -> list[Pinned]:
    """The runs that are best in a metric, all that are; none where all are alike, or none is better."""
    known = {run.letter: value for run in runs if (value := run.value(metric)) is not None}
    if metric.better is None or len(known) < 2:
        return []
    most = (min if metric.better == "lower" else max)(known.values())
    best = [run for run in runs if run.letter in known and abs(known[run.letter] - most) <= _SAME * abs(most)]
    return best if len(best) < len(known) else []


def _named(runs: Sequence[Pinned]) -> str:
    return " and ".join(run.letter for run in runs)


def _row(runs: Sequence[Pinned], metric: Metric) -> dict[str, Any]:
    base, best = runs[0].value(metric), _best(runs, metric)
    cells = []
    for place, run in enumerate(runs):
        value = run.value(metric)
        delta, words = "", ""
        if place and value is not None and base:
            relative = value / base - 1
            delta = signed(relative)
            if metric.better is not None and delta != "=":
                words = "better" if (relative > 0) == (metric.better == "higher") else "worse"
        cells.append(
            {
                "text": metric.text(value).replace(" ", "\u00a0"),
                "delta": delta,
                "words": words,
                "best": run in best,
                "link": run.state.link("/drill", id=metric.id) if run.found is not None else "",
            }
        )
    return {"label": metric.label, "cells": cells}


def _ranges(runs: Sequence[Pinned], metric: Metric, band: str) -> dict[str, Any]:
    best = _best(runs, metric)
    rows = []
    for run in runs:
        value = run.value(metric)
        ends: Mapping[str, float | None] = (
            run.found.results["range_80"].get(band, {}) if run.found is not None and band else {}
        )
        rows.append(
            (run.letter, value, ends.get("p10"), ends.get("p90"), headline(metric, value), run in best)
        )
    title = (
        f"{_named(best)} {'have' if len(best) > 1 else 'has'} the best {metric.label}"
        if best
        else f"{metric.label}: all alike"
    )
    return {"title": title, "unit": metric.head, "chart": charts.ranges(rows)}


def _card(run: Pinned, base: Pinned) -> dict[str, Any]:
    count = len(differing([base, run])) if run is not base else 0
    return {
        "letter": run.letter,
        "name": run.name,
        "said": "base of the deltas"
        if run is base
        else "1 field differs"
        if count == 1
        else f"{count} fields differ",
        "auto": run.state.auto,
        "open": run.state.link(),
        "drop": run.state.with_pins(pin for pin in run.state.pins if pin != run.state.packed).link(
            "/compare"
        ),
    }


def differing(runs: Sequence[Pinned]) -> list[tuple[str, list[str]]]:
    """Fields in which runs differ, with what each has."""
    known = [run.found for run in runs if run.found is not None]
    if len(known) < len(runs):
        return []
    columns = [found.estimate.columns[0].values for found in known]
    names = dict.fromkeys(name for values in columns for name in values)
    rows = [("Model", [found.estimate.model.id for found in known])]
    rows += [(input_field(name).label, [f"{values.get(name, '–')}" for values in columns]) for name in names]
    replaced = [
        {item.id: f"{item.value:g}" for item in found.estimate.columns[0].overrides} for found in known
    ]
    rows += [
        (identifier, [of.get(identifier, "–") for of in replaced])
        for identifier in dict.fromkeys(name for of in replaced for name in of)
    ]
    return [(label, texts) for label, texts in rows if len(set(texts)) > 1]


def _words(runs: Sequence[Pinned]) -> list[tuple[str, list[str]]]:
    """What limits each run, and how well it is known."""
    rows: list[tuple[str, list[str]]] = [("Prefill · decode", []), ("Evidence", []), ("Nearest run", [])]
    for run in runs:
        results = {} if run.found is None or not run.found.possible else run.found.results
        limit = at(results, "bottleneck") or {}
        rows[0][1].append(f"{limit['prefill']} · {limit['decode']}" if limit else "–")
        rows[1][1].append(str(results.get("evidence", "–")))
        near = results.get("nearest_run")
        rows[2][1].append(f"{len(near['differs'])} fields away" if near else NOTHING_NEAR if results else "–")
    return rows


def _title(runs: Sequence[Pinned]) -> str:
    if len(runs) == 1:
        return "One run is pinned: pin another to compare"
    cheapest, fastest = _best(runs, USD_PER_MILLION_OUTPUT_TOKENS), _best(runs, TPOT)
    said = []
    if cheapest:
        usd = headline(USD_PER_MILLION_OUTPUT_TOKENS, cheapest[0].value(USD_PER_MILLION_OUTPUT_TOKENS))
        verb = "are" if len(cheapest) > 1 else "is"
        said.append(f"{_named(cheapest)} {verb} the cheapest at {usd} per million output tokens")
    if fastest:
        pace = headline(TPOT, fastest[0].value(TPOT))
        verb = "write" if len(fastest) > 1 else "writes"
        said.append(f"{_named(fastest)} {verb} fastest, a token every {pace}")
    return ", ".join(said) or "These runs come to the same"


def _best_for(runs: Sequence[Pinned]) -> list[tuple[str, str]]:
    """What each run is best in, with the runner-up."""
    listed = []
    for run in runs:
        won = []
        for _, metrics in QUESTIONS:
            for metric in metrics:
                if _best(runs, metric) == [run]:
                    others = [
                        value for one in runs if one is not run and (value := one.value(metric)) is not None
                    ]
                    nearest = (min if metric.better == "lower" else max)(others)
                    own = run.value(metric)
                    assert own is not None
                    won.append(
                        f"{metric.label} {parts(headline(metric, own))[0]}, next {headline(metric, nearest)}"
                    )
        if won:
            listed.append((run.letter, "; ".join(won)))
    return listed


def csv_rows(runs: Sequence[Pinned]) -> list[list[str]]:
    """The table as rows, in SI units."""
    rows = [["figure", "unit", *(f"{run.letter}: {run.name}" for run in runs)]]
    for _, metrics in QUESTIONS:
        for metric in metrics:
            values = [run.value(metric) for run in runs]
            rows.append(
                [metric.key, metric.unit, *("" if value is None else f"{value!r}" for value in values)]
            )
    return rows
