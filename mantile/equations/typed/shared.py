"""What was typed into cells of all scenarios, dimensions of the model and assumptions: whether it can be."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from mantile.equations.typed.cells import Bounds, Faults, Guard, Typed, first_fault
from mantile.graph.quantity import (
    Input,
    Named,
    Quantity,
    Section,
    at_least,
    at_most,
    count_where,
    is_number,
    span,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph


@dataclass(frozen=True)
class SharedCells:
    """Figures of one kind, and their cells."""

    typed: tuple[Typed, ...]
    faults: Faults
    sections: tuple[Section, ...]


def dimensions_typed(ir: ModelGraph) -> SharedCells:
    """The rows of IR about what the cells of its dimensions hold."""
    of_vision = tuple(ir.vision.facts.values()) if ir.vision else ()
    dimensions = (figure for figure in (*of_vision, *ir.sizes) if isinstance(figure, Input))
    figures = (*ir.facts.values(), *(figure for figure in dimensions if not figure.fixed))
    return shared_cells("dimensions", figures)


def assumptions_typed(
    figures: Iterable[Named], guarded: Container[Named], what: str = "assumptions"
) -> SharedCells | None:
    """The rows about the cells of assumptions among some figures; None where there is none.

    Args:
        guarded: inputs of which other rows say whether they can be.
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
    return shared_cells(what, found) if found else None


def shared_cells(what: str, figures: Iterable[Input]) -> SharedCells:
    """The rows about what some cells of all scenarios hold.

    Args:
        what: they are, in the plural.
    """
    name, behind, kind = what.partition(", ")
    part = ".".join((name, *([kind.replace(" ", "_")] if kind else [])))
    bounds, rows = Bounds(part), Rows(f"typed.{part}", behind + kind)
    found = tuple(_typed(figure, bounds) for figure in figures)
    faults = first_fault(
        rows,
        name,
        bounds.of(len(found), "flag"),
        [item.valid for item in found],
        (
            [item.place for item in found],
            [item.content for item in found],
            [item.expected for item in found],
        ),
    )
    return SharedCells(
        typed=found,
        faults=faults,
        sections=(
            Section(f"Bounds of {what}", tuple(bounds.rows), "between which they lie"),
            Section(f"Contents, {what}", tuple(item.content for item in found), "what the cells hold"),
            Section(f"Cells, {what}", tuple(item.place for item in found), "where one is typed"),
            Section(
                f"In range, {what}",
                tuple(item.in_range for item in found if item.in_range is not None),
                "1 if a number lies between its bounds",
            ),
            Section(f"Can be, {what}", tuple(item.valid for item in found), "1 if a number in its range"),
            Section(f"Expected, {what}", tuple(item.expected for item in found), "in words"),
            rows.section(f"Cells of {what} that cannot be", "the first of them"),
        ),
    )


def _typed(figure: Input, bounds: Bounds) -> Typed:
    guard = Guard(figure.id, figure)
    content = guard.content(figure)
    in_range: Quantity | None = None
    if figure.fixed:  # the structure follows it
        assert figure.minimum is not None
        here, bound = span([content]), bounds.of(figure.minimum, figure.unit)
        valid = guard.valid(count_where(here, at_least(bound), here, at_most(bound)))
    else:
        in_range = guard.in_range(content, bounds)
        valid = guard.valid(where(is_number(content), in_range, 0))
    return Typed(
        input=figure,
        content=content,
        place=guard.place(),
        in_range=in_range,
        valid=valid,
        expected=guard.expected(),
    )
