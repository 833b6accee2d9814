"""Inputs and headline results as they were when a workbook was made, and what differs from them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations import constant
from mantile.equations.checks import TOLERANCE, Check
from mantile.equations.display import sum_across
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.equations.ready_columns import COUNTS
from mantile.equations.tables import Equations, Space
from mantile.equations.typed import (
    OTHERS,
    SHARED_COLUMNS,
    Faults,
    SharedCells,
    Typed,
    assumptions_typed,
    count_faults,
)
from mantile.equations.typed.cells import Guard
from mantile.equations.typed.inputs import is_number_or_none
from mantile.equations.typed.shared import CHOICE
from mantile.graph.quantity import Input, Quantity, Section, if_error, span, sum_of, where

STAMPED = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, MEMORY_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS, POWER)
READABLE, OF_CHOICE = ("OVERRIDE_INVALID", "FIGURE_INVALID"), "CHOICE_INVALID"
"""Codes of the checks that cells hold what can be read; the last where plans are chosen among."""
EDITS = 8  # that are named
_MEASURED = 1000  # number of the first cell of what was measured


@dataclass(frozen=True)
class Stamp:
    """Inputs and headline results, and what they were when the file was made; the rows stand in stamp.eq.

    Args:
        figures: live results; `stored` their values at generation, per scenario, in the same order.
        own: cells that scenarios have of their own: inputs, overrides, values that were `measured`; `shared`
            those of dimensions, assumptions, and of what is asked of classes and choices. Whoever lays out
            the file fills in what they held, and words for them.
        others: those of assumptions that no headline result depends on. `of_demand`: cells that cannot be,
            without which nobody knows what a demand costs.
        readable: that overrides and assumptions hold what can be read; `unchanged` the alert that inputs or
            results changed.
        rows: those of a workbook that stand as text, by id.
    """

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    own: tuple[Typed, ...]
    shared: tuple[Typed, ...]
    measured: tuple[Typed, ...]
    others: SharedCells | None
    of_demand: Faults
    readable: tuple[Check, ...]
    unchanged: Check
    rows: Equations

    @property
    def lines(self) -> Section:
        """What the cells of all scenarios hold."""
        lines, note = tuple(item.line for item in self.shared), "dimensions, assumptions and choices"
        return Section("Cells of all scenarios", lines, note, over=SHARED_COLUMNS)


def stamp(
    graph: EstimateGraph,
    of_choice: Sequence[Input] = (),
    choice: Faults | None = None,
    ready: bool = False,
) -> Stamp:
    """The rows that compare live results with those of generation; the maker of the file fills these in.

    Args:
        of_choice: what is typed where plans are chosen among: limits, weights, what is wanted.
        choice: the cells of these that hold what cannot be.
        ready: whether there are ready columns.
    """
    figures = tuple(metric.of(graph.figures) for metric in STAMPED)
    behind = [metric.worked_out(graph.figures) for metric in STAMPED]
    stored = tuple(
        _filled_in(figure.id, f"As generated: {figure.label}", figure.unit, "result when the file was made")
        for figure in behind
    )
    others = _others(graph)
    kinds = [*graph.shared_cells[1:], *(() if others is None else (others,))]
    measured = tuple(_beside(cell, _MEASURED - n, True) for n, cell in enumerate(graph.measured.values()))
    cells = {
        "own": (*graph.typed.own, *measured),
        "shared": (
            *graph.model.typed.typed,
            *graph.typed.shared,
            *(cell for of in kinds for cell in of.typed),
            *(_beside(cell, CHOICE - place, False) for place, cell in enumerate(of_choice)),
        ),
    }
    asks_money = graph.capacity is not None and others is not None
    has = {"choice": choice is not None, "ready": ready, "demand": asks_money}
    rows = Equations(frozenset({"workbook", *(name for name, is_so in has.items() if is_so)}))
    of_demand, base = graph.checks.of_money, "The base scenario, in which cells of all scenarios count"
    rows.know(
        *constant.ALL,
        TOLERANCE,
        *figures,
        *stored,
        of_demand.count,
        of_demand.message,
        COUNTS,
        *(figure for of in kinds for figure in (of.faults.count, of.faults.message)),
        _filled_in("edit.of_base", base, "flag", "1 in the base, 0 in others"),
        _filled_in(
            "edit.counted", "The scenario counted when the file was made", "flag", "0 in ready columns"
        ),
    )
    rows.know_as("stamp.stored", span(stored))
    rows.know_as("stamp.faults_of_kinds", sum_of([of.faults.count for of in kinds]))
    rows.know_as("stamp.invalid_cells", graph.typed.overrides_invalid + count_faults(measured))
    if choice is not None:
        rows.know_as("stamp.faults_of_choice", choice.count)
    for of, items in cells.items():
        for what in ("state", "place", "held", "content"):
            rows.know_as(f"stamp.{of}.{what}", span([getattr(item, what) for item in items]))
    facts = (
        {"id": then.id, "label": then.label, "shown": now.id}
        for then, now in zip(behind, figures, strict=True)
    )
    rows.make_in("headline", *(Space(facts=each) for each in facts))
    if asks_money:
        demand = "stamp.assumptions.demand"
        of_demand = Faults(rows[f"{demand}.faults"], rows[f"{demand}.message"])
    codes = (*READABLE, *(() if choice is None else (OF_CHOICE,)))
    return Stamp(
        figures=figures,
        stored=stored,
        own=cells["own"],
        shared=cells["shared"],
        measured=measured,
        others=others,
        of_demand=of_demand,
        readable=tuple(Check(rows[f"check.{code}"]) for code in codes),
        unchanged=Check(rows["check.INPUTS_CHANGED"]),
        rows=rows,
    )


def _others(graph: EstimateGraph) -> SharedCells | None:
    """What the cells of assumptions hold that no headline result depends on."""
    items = (*graph.typed.inputs, *graph.assumed.typed, *graph.paid.typed)
    return assumptions_typed(
        graph.figures.values(),
        {item.input for item in items},
        OTHERS,
        "assumptions, of no result",
    )


def _beside(entry: Input, number: int, is_measured: bool) -> Typed:
    """The line of a cell that may be empty: of a value that was measured, which is a number of at least 0, or
    of a choice, of which other rows say whether it can be.
    """
    guard = Guard(entry.id, entry, number)
    content = guard.number_or_none(entry)
    return guard.typed(entry, content, (), is_number_or_none(content) if is_measured else None)


def _filled_in(name: str, label: str, unit: str, note: str) -> Input:
    """A figure of each scenario that whoever lays out the file fills in."""
    return Input(
        id=f"stamp.{name}",
        label=label,
        unit=unit,
        value=0,
        note=note,
        source="native engine",
        status="defined",
        fixed=True,
    )


def unchanged(stamp: Stamp, scenarios: int) -> Quantity:
    """Whether inputs and results of all scenarios are those of generation, in words."""
    changed = if_error(sum_across(stamp.unchanged.left, scenarios, "edits of all scenarios"), 1)
    status = where(changed > 0, "! changed", "✓ unchanged")
    return Quantity("stamp.unchanged", "Live results", "1", status)
