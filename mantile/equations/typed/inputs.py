"""What was typed as inputs: whether it can be, and what is used where it cannot.

Every formula reads what is used: what was typed where that can be, else what the cell held when the file was
made.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from mantile.library.device import DEVICE_FIELDS
from mantile.library.scenario_fields import own_name

USED = "typed.used."
"""What ids of rows begin with that say what is used of an input."""
OF_CLASS = "class."
"""What names of inputs of a class begin with in these ids; 0.12 had rows of tables by their own ids."""
OF_CLASSES, OF_DEMAND = ", classes of requests", ", demand"
"""Behind labels of rows about them, and about the demand where there are no classes."""


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
    """The inputs of a scenario and their cells, in the order of the table.

    Args:
        own: of which each scenario has a cell.
        shared: those of classes of requests, one cell for all scenarios.
    """

    own: tuple[TypedInput, ...]
    shared: tuple[TypedInput, ...]
    faults: Faults
    sections: tuple[Section, ...]

    @property
    def inputs(self) -> tuple[TypedInput, ...]:
        """All of them."""
        return (*self.own, *self.shared)


def typed_inputs(
    inputs: Workload,
    hardware: Hardware,
    known: Frameworks,
    classes: Sequence[Input] = (),
    links: tuple[Input, ...] = (),
    demand: Sequence[Input] = (),
) -> TypedInputs:
    """The rows of the Inputs sheet about what its cells hold.

    Args:
        classes: what is asked of classes of requests; `demand` what is chosen of it.
        links: the kinds of links between devices.
    """
    of = OF_CLASSES if classes else OF_DEMAND
    bounds = Bounds()
    library = {
        "accelerator": hardware.accelerators,
        "system": hardware.systems,
        "framework": known.names,
    } | dict.fromkeys((name for name, field in DEVICE_FIELDS.items() if field.listed == "links"), links)
    listed = Rows("typed.listed")
    own = tuple(
        _typed(name, entry, library.get(own_name(name), ()), bounds, listed)
        for name, entry in inputs.named().items()
    )
    shared = tuple(
        _typed(f"{OF_CLASS}{entry.id.removeprefix('classes.')}", entry, (), bounds, listed)
        for entry in (*classes, *demand)
    )
    rows = Rows("typed.own" if shared else "typed")
    faults = _faults(rows, "inputs", own, bounds)
    in_lists = listed.section("In a list", "1 if the list has what was typed")
    sections = [*_sections(own, in_lists), rows.section("Inputs that cannot be", "the plan is then invalid")]
    if shared:
        of_shared, both = Rows("typed.classes", of), Rows("typed")
        of_classes = _faults(of_shared, of.removeprefix(", ").split()[0], shared, bounds)
        sections += [
            *_sections(shared, None, of),
            of_shared.section(
                "Classes that cannot be" if classes else "Demand that cannot be", "no plan can then be"
            ),
        ]
        count = both("faults", "Cells that hold what cannot be", "flag", faults.count + of_classes.count)
        words = where(faults.count > 0, faults.message, of_classes.message)
        faults = Faults(count, both("message", "The first of all cells, in words", "1", words))
        sections.append(both.section("Inputs and classes that cannot be"))
    return TypedInputs(
        own=own,
        shared=shared,
        faults=faults,
        sections=(
            Section(
                "Bounds and choices", tuple(bounds.rows), "between which inputs lie, and what they may be"
            ),
            *sections,
            *(
                Section(
                    f"Inputs as used{of_items}",
                    tuple(item.used for item in items),
                    "what was typed; where that cannot be, what was held as generated: formulas read these "
                    "rows",
                )
                for items, of_items in ((own, ""), (shared, of))
                if items
            ),
        ),
    )


def _faults(rows: Rows, what: str, items: Sequence[TypedInput], bounds: Bounds) -> Faults:
    """How many of some cells hold what cannot be, and the first."""
    return first_fault(
        rows,
        what,
        bounds.of(len(items), "flag"),
        [item.valid for item in items],
        (
            [item.place for item in items],
            [item.content for item in items],
            [item.expected for item in items],
        ),
    )


def _sections(items: Sequence[TypedInput], in_lists: Section | None, of: str = "") -> tuple[Section, ...]:
    """The blocks about some cells, one below the other.

    Args:
        in_lists: whether lists have what was typed, if some are chosen from one.
        of: what labels end with.
    """
    return (
        Section(f"Contents{of}", tuple(item.content for item in items), "what the cells of inputs hold"),
        Section(f"Cells{of}", tuple(item.place for item in items), "where an input is typed"),
        Section(
            f"Held as generated{of}",
            tuple(item.held for item in items),
            "what the cells held when the file was made",
        ),
        *(() if in_lists is None else (in_lists,)),
        Section(
            f"In range{of}",
            tuple(item.in_range for item in items if item.in_range is not None),
            "1 if a number lies between its bounds",
        ),
        Section(
            f"Can be{of}",
            tuple((item.valid, item.expected) for item in items),
            "1 if it is filled, of its type and in its range",
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
