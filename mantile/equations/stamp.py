"""Headline results as they were when a workbook was made, and whether the live ones still equal them."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE, Check
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.graph.quantity import (
    Input,
    Quantity,
    Section,
    absolute,
    defined,
    number_of,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows

STAMPED = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, MEMORY_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS)


@dataclass(frozen=True)
class Stamp:
    """Headline results and what they were when the file was made.

    Args:
        figures: live results; `stored` their values at generation, per scenario, in the same order.
        unchanged: the alert that inputs changed.
    """

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    unchanged: Check
    section: Section


def stamp(graph: EstimateGraph) -> Stamp:
    """The rows that compare live results with those of generation; the maker of the file fills these in."""
    figures = tuple(metric.of(graph.figures) for metric in STAMPED)
    behind = [metric.worked_out(graph.figures) for metric in STAMPED]
    stored = tuple(_stored(figure) for figure in behind)
    rows = Rows("stamp")
    rows.add(*stored)
    flags = [
        rows(
            f"{worked_out.id}.changed",
            f"Changed: {worked_out.label}",
            "flag",
            where(absolute(number_of(figure) - number_of(then)) <= TOLERANCE * number_of(then), 0, 1),
        )
        for worked_out, figure, then in zip(behind, figures, stored, strict=True)
    ]
    changed = rows("changed", "Headline results that changed", "flag", sum_range(span(flags)))
    none = defined("stamp.none", "No change", "flag", 0, "fixed side of a check")
    rows.add(none)
    alert = Check("INPUTS_CHANGED", changed, none)
    section = rows.section(
        "As generated", "headline results stored as values; live ones differ once an input is edited"
    )
    return Stamp(figures=figures, stored=stored, unchanged=alert, section=section)


def unchanged(stamp: Stamp) -> Quantity:
    """Whether the live results are those of generation, in words."""
    status = where(stamp.unchanged.result > 0, "✓ unchanged", "! changed")
    return Quantity("stamp.unchanged", "Live results", "1", status)


def _stored(figure: Quantity) -> Input:
    """The value of a result when the file was made, one per scenario."""
    return Input(
        id=f"stamp.{figure.id}",
        label=f"As generated: {figure.label}",
        unit=figure.unit,
        value=0,
        note="result when the file was made",
        source="native engine",
        status="defined",
        fixed=True,
    )
