"""What was typed as dimensions of the model: whether it can be."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.typed.cells import Bounds, Faults, Guard, Typed, first_fault
from mantile.graph.quantity import (
    Input,
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
class Dimensions:
    """The dimensions of the model and of its vision tower, and their cells."""

    typed: tuple[Typed, ...]
    faults: Faults
    sections: tuple[Section, ...]


def dimensions_typed(ir: ModelGraph) -> Dimensions:
    """The rows of the Model sheet about what the cells of its dimensions hold."""
    bounds, rows = Bounds("dimensions"), Rows("typed.dimensions")
    of_vision = tuple(ir.vision.facts.values()) if ir.vision else ()
    dimensions = (figure for figure in (*of_vision, *ir.sizes) if isinstance(figure, Input))
    figures = (*ir.facts.values(), *(figure for figure in dimensions if not figure.fixed))
    found = tuple(_typed(figure, bounds) for figure in figures)
    faults = first_fault(
        rows,
        "dimensions",
        bounds.of(len(found), "flag"),
        [item.valid for item in found],
        (
            [item.place for item in found],
            [item.content for item in found],
            [item.expected for item in found],
        ),
    )
    return Dimensions(
        typed=found,
        faults=faults,
        sections=(
            Section("Bounds of dimensions", tuple(bounds.rows), "between which they lie"),
            Section("Contents", tuple(item.content for item in found), "what the cells of dimensions hold"),
            Section("Cells", tuple(item.place for item in found), "where a dimension is typed"),
            Section(
                "In range",
                tuple(item.in_range for item in found if item.in_range is not None),
                "1 if a number lies between its bounds",
            ),
            Section(
                "Can be", tuple((item.valid, item.expected) for item in found), "1 if a number in its range"
            ),
            rows.section("Dimensions that cannot be", "the plan is then invalid"),
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
