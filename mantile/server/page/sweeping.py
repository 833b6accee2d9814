"""The view `Sweep`: one or two fields over values, as a chart, a table and a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mantile.equations.metrics import METRICS, Metric
from mantile.estimates.sweep import possible, sweep
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.server.page import charts
from mantile.server.page.answers import NAME, Answer, FieldError
from mantile.server.page.state import State, elsewhere

MOST_VALUES = 200
MOST_POINTS = 2_000
_SHOWN = 60
FIELDS = (
    "concurrency",
    "input_tokens",
    "output_tokens",
    "tp",
    "pp",
    "dp",
    "ep",
    "attention_dp",
    "weights_dtype",
    "kv_dtype",
    "accelerator",
    "framework",
    "token_budget",
    "utilisation",
    "electricity_price",
    "pue",
    "network_speed",
    "compute_speed",
)
"""Fields that are offered; those that a model has no use for are refused with the reason."""
USUAL: Mapping[str, str] = {
    "x": "concurrency",
    "over": "1, 2, 4, 8, 16, 32, 64, 128",
    "by": "",
    "values": "",
    "y": "tpot_s",
}


@dataclass(frozen=True)
class Asked:
    """A sweep as it was typed: the field across with its values, another one, and what is shown."""

    x: str
    over: str
    by: str
    values: str
    y: str


def asked_of(query: Mapping[str, str]) -> Asked:
    """What was typed; what is usual where nobody typed."""
    return Asked(**{name: query.get(name, usual) for name, usual in USUAL.items()})


def figures() -> list[Metric]:
    """What may be shown."""
    return [metric for metric in METRICS if metric.better is not None]


def values_of(name: str, text: str, at_field: str) -> list[Any]:
    """Values of a field, with commas between them; 1..8 is every whole number.

    Raises:
        FieldError: naming the field of the form.
    """
    declared = SCENARIO_FIELDS[name]
    found: list[Any] = []
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        low, dots, high = part.partition("..")
        try:
            if dots and declared.kind is int:
                first, last = int(low), int(high)
                if last - first > MOST_VALUES:
                    raise FieldError(f"expected at most {MOST_VALUES} values", at_field)
                found += range(first, last + 1)
            else:
                found.append(part if declared.kind is str else declared.kind(part))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            kind = "whole numbers" if declared.kind is int else "numbers"
            raise FieldError(
                f"expected {kind} with commas, such as 1, 2, 4 (found {part[:20]!r})", at_field
            ) from None
    if not found:
        raise FieldError("expected one value at least", at_field)
    if len(found) > MOST_VALUES:
        raise FieldError(f"expected at most {MOST_VALUES} values", at_field)
    return found


def table_of(found: Answer, asked: Asked) -> pd.DataFrame:
    """Every combination worked out, a row each.

    Raises:
        FieldError: for a field or value that cannot be.
    """
    over = {}
    for name, text, field in ((asked.x, asked.over, "over"), (asked.by, asked.values, "values")):
        if not name:
            continue
        if name not in FIELDS:
            raise FieldError("expected one of the list", "x" if field == "over" else "by")
        if name in over:
            raise FieldError("expected another field than the one across", "by")
        over[name] = values_of(name, text, field)
    points = 1
    for listed in over.values():
        points *= len(listed)
    if points > MOST_POINTS:
        raise FieldError(f"{points:,} points; expected at most {MOST_POINTS:,}", "over")
    scenario = found.scenario.model_copy(update={"variants": (), "decision": None})
    if "accelerator" in over:
        scenario = parse_scenario(elsewhere(found.fields), NAME)
    return sweep(scenario, over, name=NAME)


def shown(table: pd.DataFrame, asked: Asked, found: Answer, state: State) -> dict[str, Any]:
    """Chart and rows.

    Raises:
        FieldError: for a figure that this scenario does not have.
    """
    metric = next((one for one in figures() if one.column == asked.y and one.column in table), None)
    if metric is None:
        raise FieldError("this scenario has no such figure; expected another", "y")
    fits = table[possible(table)]
    kinds: Sequence[Any] = list(dict.fromkeys(table[asked.by].astype(object))) if asked.by else [""]
    numeric = SCENARIO_FIELDS[asked.x].kind is not str
    series = []
    for place, kind in enumerate(kinds[:8]):
        rows = fits[fits[asked.by].astype(object) == kind] if asked.by else fits
        rows = rows[rows[metric.column].notna()]
        across = rows[asked.x].astype(float) if numeric else range(1, len(rows) + 1)
        points = [
            (float(x), metric.shown(float(y)), str(name) if not numeric else "")
            for x, y, name in zip(across, rows[metric.column], rows[asked.x].astype(object), strict=True)
        ]
        if points and numeric and asked.by:
            points[-1] = (*points[-1][:2], str(kind))
        series.append(
            charts.Series(f"swept swept{place}", points, mark=("circle", "square", "diamond")[place % 3])
        )
    best = None
    known = fits[fits[metric.column].notna()]
    if len(known):
        best = known.loc[
            known[metric.column].idxmin() if metric.better == "lower" else known[metric.column].idxmax()
        ]
    label = SCENARIO_FIELDS[asked.x].label
    title = (
        f"{metric.label} is best at {label.lower()} {_plain(best[asked.x])}"
        + (f", {SCENARIO_FIELDS[asked.by].label.lower()} {_plain(best[asked.by])}" if asked.by else "")
        + f": {metric.text(float(best[metric.column]))}"
        if best is not None
        else "No point can be: the reasons stand in the table"
    )
    columns = [asked.x, *([asked.by] if asked.by else [])]
    wanted = [
        one
        for one in figures()
        if one.column
        in ("ttft_s", "tpot_s", "output_tokens_per_s", "usd_per_million_tokens_output", metric.column)
    ]
    base = state.by_hand(found.fields)
    rows = [
        {
            "cells": [_plain(row[name]) for name in columns],
            "figures": [one.text(_known(row[one.column])) for one in wanted],
            "verdict": str(row["feasibility"]).replace("_", " "),
            "reasons": str(row["reasons"] or "") if isinstance(row["reasons"], str) else "",
            "link": base.with_fields(**{name: _value(row[name]) for name in columns}).link(),
        }
        for row in table.head(_SHOWN).to_dict("records")
    ]
    return {
        "title": title,
        "chart": charts.chart(series, label, metric.head, f"{title}.", 380),
        "key": [(("●", "■", "◆")[place % 3], _plain(kind), place) for place, kind in enumerate(kinds[:8])]
        if asked.by
        else [],
        "key_of": SCENARIO_FIELDS[asked.by].label if asked.by else "",
        "heads": [SCENARIO_FIELDS[name].label for name in columns],
        "figures": [one.head for one in wanted],
        "rows": rows,
        "more": max(0, len(table) - _SHOWN),
        "points": len(table),
        "fits": len(fits),
    }


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: Any) -> str:
    value = _value(value)
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def csv_rows(table: pd.DataFrame) -> list[list[str]]:
    """All points as rows, in SI units."""
    heads = [str(name) for name in table.columns]
    rows = [
        ["" if value is None or value != value else f"{value}" for value in row]
        for row in table.astype(object).to_numpy().tolist()
    ]
    return [heads, *rows]
