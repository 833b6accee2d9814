"""What the command line shows of a sweep: all points where they are few, else those that no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from mantile.cli.output.tables import new_table, number, open_console
from mantile.equations.metrics import (
    INTERACTIVITY,
    METRICS,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)

if TYPE_CHECKING:
    from mantile.estimates.sweep import Digest

ROWS = 20  # points shown
MOST = 1000  # of those that were chosen
_METRICS = (
    TTFT,
    TPOT,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    USD_PER_MILLION_OUTPUT_TOKENS,
)


def print_sweep(digest: Digest, parameters: Sequence[str], title: str, written: Sequence[Path]) -> None:
    """The points, or their Pareto front, thinned out where it is long.

    Args:
        parameters: columns that say which point it is.
        written: files that hold all points.
    """
    out = open_console()
    out.print(
        Text(f"{title}: {number(digest.points)} points, {number(digest.feasible)} of them fit", style="bold")
    )
    everything = digest.points <= ROWS
    shown = digest.first if everything else digest.front
    if not everything and len(shown):
        thinned = f", {ROWS} of {number(len(shown))} shown" if len(shown) > ROWS else ""
        out.print(
            f"Pareto front of interactivity against output tokens per second and accelerator{thinned}: no "
            "other point is better in both"
        )
        if len(shown) > ROWS:
            shown = shown.iloc[[round(place * (len(shown) - 1) / (ROWS - 1)) for place in range(ROWS)]]
    if len(shown):
        said = set(shown["feasibility"]) == {"fits"} and set(shown["reasons"]) == {""}  # by the first line
        verdict = ("feasibility", "reasons") if not said else ()
        numbers = range(len(parameters), len(parameters) + len(_METRICS))
        table = new_table(
            *parameters,
            *(metric.short_heading or metric.head for metric in _METRICS),
            *verdict,
            right=numbers,
            keep=(*range(len(parameters)), *range(len(parameters) + len(_METRICS), len(parameters) + 8)),
        )
        for row in shown.to_dict("records"):
            results = (_number(metric, row[metric.column]) for metric in _METRICS)
            table.add_row(
                *(_plain(row[key]) for key in parameters), *results, *(_plain(row[key]) for key in verdict)
            )
        out.print(table)
    for path in written:
        out.print(f"{path}: written")


def print_points(
    table: Any,
    total: int,
    fits: int,
    parameters: Sequence[str],
    title: str,
    written: Sequence[Path],
    sort: str | None,
) -> None:
    """Points that were chosen, in their order.

    Args:
        total, fits: points in all, and those of them that fit.
        parameters: columns that say which point it is.
        sort: what they are sorted by.
    """
    out = open_console()
    said = f"{title}: {number(total)} points, {number(fits)} of them fit, {number(len(table))} shown"
    out.print(Text(said, style="bold"))
    name = (sort or "").removeprefix("-")
    extra = [column for column in (name, f"{name}_s") if column in table.columns]
    shown = [metric for metric in _METRICS if metric.column not in extra]
    by_column = {metric.column: metric for metric in METRICS}
    first = [by_column[column] for column in extra if column in by_column]
    heads = [metric.short_heading or metric.head for metric in (*first, *shown)]
    right = range(len(parameters), len(parameters) + len(heads))
    rows = new_table(*parameters, *heads, right=right)
    for row in table.head(MOST).to_dict("records"):
        cells = (_number(metric, row[metric.column]) for metric in (*first, *shown))
        rows.add_row(*(_plain(row[key]) for key in parameters), *cells)
    out.print(rows)
    if len(table) > MOST:
        out.print(f"{number(len(table) - MOST)} more; --top or -o table.csv")
    for path in written:
        out.print(f"{path}: written")


def json_rows(table: Any) -> list[dict[str, Any]]:
    """Points for --json; None where nobody knows a figure."""
    return [
        {key: None if isinstance(value, float) and isnan(value) else value for key, value in row.items()}
        for row in table.head(MOST).to_dict("records")
    ]


def _number(metric: Metric, value: float) -> str:
    return metric.text(None) if isnan(value) else number(metric.shown(value), 4)


def _plain(value: Any) -> str:
    return number(value.item() if hasattr(value, "item") else value)
