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
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)

if TYPE_CHECKING:
    from mantile.estimate.sweep import Digest

ROWS = 20  # points shown
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
        )
        for row in shown.to_dict("records"):
            results = (_number(metric, row[metric.column]) for metric in _METRICS)
            table.add_row(
                *(_plain(row[key]) for key in parameters), *results, *(_plain(row[key]) for key in verdict)
            )
        out.print(table)
    for path in written:
        out.print(f"{path}: written")


def _number(metric: Metric, value: float) -> str:
    return metric.text(None) if isnan(value) else number(metric.shown(value), 4)


def _plain(value: Any) -> str:
    return number(value.item() if hasattr(value, "item") else value)
