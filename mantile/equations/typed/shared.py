"""What was typed into cells of all scenarios, dimensions of the model and assumptions: whether it can be."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from mantile.equations.typed.cells import Faults, Guard, Typed, faults_of, number_typed
from mantile.graph.quantity import Input, Named, Section
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph

DIMENSIONS, CLASSES, ASSUMPTIONS, PAID, OTHERS, CHOICE = range(6000, 0, -1000)
"""The first number of cells of each kind, in the order of their lines."""


@dataclass(frozen=True)
class SharedCells:
    """Figures of one kind, and their cells; `section` the rows about what cannot be."""

    typed: tuple[Typed, ...]
    faults: Faults
    section: Section


def dimensions_typed(ir: ModelGraph) -> SharedCells:
    """What the cells of the model's dimensions hold."""
    of_vision = tuple(ir.vision.facts.values()) if ir.vision else ()
    dimensions = (figure for figure in (*of_vision, *ir.sizes) if isinstance(figure, Input))
    figures = (*ir.facts.values(), *(figure for figure in dimensions if not figure.fixed))
    return shared_cells("dimensions", figures, DIMENSIONS)


def assumptions_typed(
    figures: Iterable[Named], guarded: Container[Named], number: int, what: str = "assumptions"
) -> SharedCells | None:
    """What the cells of assumptions among some figures hold; None where there is none.

    Args:
        guarded: inputs of which other lines say whether they can be.
        number: the first number of their cells.
    """
    found = dict.fromkeys(
        figure
        for figure in figures
        if isinstance(figure, Input)
        and figure.shared
        and not figure.fixed
        and isinstance(figure.value, int | float)
        and not figure.id.startswith("model.")
        and figure not in guarded
    )
    return shared_cells(what, found, number) if found else None


def shared_cells(what: str, figures: Iterable[Input], number: int) -> SharedCells:
    """What some cells of all scenarios hold.

    Args:
        what: they are, in the plural.
        number: the first of them.
    """
    name, behind, kind = what.partition(", ")
    rows = Rows(".".join(("typed", name, *([kind.replace(" ", "_")] if kind else []))), behind + kind)
    items = tuple(
        number_typed(Guard(figure.id, figure, number - place)) for place, figure in enumerate(figures)
    )
    faults = faults_of(rows, name, items)
    return SharedCells(items, faults, rows.section(f"Cells of {what} that cannot be", "the first of them"))
