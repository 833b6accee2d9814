"""What was typed as inputs: whether it can be, and what is used where it cannot.

Every formula reads what is used: what was typed where that can be, else what the cell held when the file was
made.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.equations.typed.cells import AN_ERROR, Bounds, Faults, Guard, Typed, first_fault
from mantile.graph.quantity import (
    Input,
    LateDefault,
    Node,
    Quantity,
    Section,
    Value,
    equal,
    is_error,
    is_number,
    join,
    match,
    span,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.fields import DECODE

USED = "typed.used."
"""What ids of rows begin with that say what is used of an input."""


@dataclass(frozen=True)
class TypedInput(Typed):
    """An input, its cell, and what is used of it.

    Args:
        input: what formulas read: they are led to the row `used`.
        cell: what its cell holds; whoever lays out the file says where that is, and fills in what it `held`
            when the file was made.
        used: what was typed, or what was held.
    """

    cell: Input
    held: Input
    used: Quantity

    def refuses(self, value: Value | None) -> bool:
        """Whether it is a number that the input cannot be; texts are refused where a file is read."""
        if not isinstance(value, int | float) or not isinstance(self.input.value, int | float):
            return False
        whole = int(value) if isinstance(self.input.default, LateDefault) else value
        return bool(self.input.outside(whole))


@dataclass(frozen=True)
class TypedInputs:
    """The inputs of a scenario and their cells, in the order of the table."""

    inputs: tuple[TypedInput, ...]
    faults: Faults
    sections: tuple[Section, ...]


def typed_inputs(inputs: Workload, hardware: Hardware, known: Frameworks) -> TypedInputs:
    """The rows of the Inputs sheet about what its cells hold."""
    bounds = Bounds()
    library = {"accelerator": hardware.accelerators, "system": hardware.systems, "framework": known.names}
    listed = Rows("typed.listed")
    found = tuple(
        _typed(name, entry, library.get(name.removeprefix(DECODE), ()), bounds, listed)
        for name, entry in inputs.named().items()
    )
    rows = Rows("typed")
    faults = first_fault(
        rows,
        "inputs",
        bounds.of(len(found), "flag"),
        [item.valid for item in found],
        (
            [item.place for item in found],
            [item.content for item in found],
            [item.expected for item in found],
        ),
    )
    return TypedInputs(
        inputs=found,
        faults=faults,
        sections=(
            Section(
                "Bounds and choices", tuple(bounds.rows), "between which inputs lie, and what they may be"
            ),
            Section("Contents", tuple(item.content for item in found), "what the cells of inputs hold"),
            Section("Cells", tuple(item.place for item in found), "where an input is typed"),
            Section(
                "Held as generated",
                tuple(item.held for item in found),
                "what the cells held when the file was made",
            ),
            listed.section("In a list", "1 if the list has what was typed"),
            Section(
                "In range",
                tuple(item.in_range for item in found if item.in_range is not None),
                "1 if a number lies between its bounds",
            ),
            Section(
                "Can be",
                tuple((item.valid, item.expected) for item in found),
                "1 if it is filled, of its type and in its range",
            ),
            rows.section("Inputs that cannot be", "the plan is then invalid"),
            Section(
                "Inputs as used",
                tuple(item.used for item in found),
                "what was typed; where that cannot be, what was held as generated: formulas read these rows",
            ),
        ),
    )


def _typed(name: str, entry: Input, library: tuple[Input, ...], bounds: Bounds, listed: Rows) -> TypedInput:
    """The rows of an input.

    Args:
        library: the ids it is chosen from, where they stand in the library.
    """
    guard = Guard(name, entry)
    cell = guard.fixed("cell", "Cell", entry.unit, entry.value or 0)
    held = guard.held()
    in_range = None
    if isinstance(entry.value, str):
        content = guard.row("content", "Content", "1", where(is_error(cell), AN_ERROR, join(cell, "")))
        valid = guard.valid(_one_of(name, entry, content, library, bounds, listed))
    else:
        content = guard.content(cell)
        in_range = guard.in_range(content, bounds)
        valid = guard.valid(where(is_number(content), in_range, 0))
    return TypedInput(
        input=entry,
        cell=cell,
        content=content,
        place=guard.place(),
        held=held,
        in_range=in_range,
        valid=valid,
        expected=guard.expected(),
        used=guard.row("used", "As used", entry.unit, where(valid > 0, cell, held)),
    )


def _one_of(
    name: str, entry: Input, content: Quantity, library: tuple[Input, ...], bounds: Bounds, listed: Rows
) -> Node:
    """1 where a text is one of those that an input may be. Those of the library stand there."""
    ids = {str(item.value) for item in library}
    others = [choice for choice in entry.choices if choice not in ids]
    members = library or bounds.choices(name, entry.choices)
    found = where(is_number(match(content, span(members))), 1, 0)
    if not library or not others:
        return found
    (word,) = others  # that stands for none of them
    in_list = listed(name, f"In the list: {entry.label}", "flag", found)
    return where(equal(content, str(word)), 1, in_list)
