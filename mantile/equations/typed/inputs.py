"""What was typed as inputs and overrides: whether it can be, and what is used where it cannot.

Every formula reads what is used: what was typed where that can be, else what the cell held when the file was
made; of an override the figure of the library.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.equations.override import OVERRIDE
from mantile.equations.typed.cells import AN_ERROR, NONE, Bounds, Faults, Guard, Typed, first_fault
from mantile.graph.quantity import (
    Input,
    LateDefault,
    Node,
    Quantity,
    Section,
    Value,
    all_of,
    at_least,
    at_most,
    count_where,
    equal,
    is_empty,
    is_error,
    is_number,
    join,
    match,
    span,
    sum_of,
    sum_range,
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
OF_MONEY = ", power and price"
"""Behind labels of rows about cells from which only power and cost follow."""


@dataclass(frozen=True)
class TypedInput(Typed):
    """An input or an override, its cell, and what is used of it.

    Args:
        input: what formulas read: they are led to the row `used`.
        cell: what its cell holds; whoever lays out the file says where that is, and fills in what it `held`
            when the file was made: None of an override, in whose place the figure of the library holds.
        used: what was typed, or what was held.
    """

    cell: Input
    held: Input | None
    used: Quantity

    def refuses(self, value: Value | None) -> bool:
        """Whether it is a number that the input cannot be; texts are refused where a file is read."""
        if not isinstance(value, int | float) or isinstance(self.input.value, str):
            return False
        whole = int(value) if isinstance(self.input.default, LateDefault) else value
        return bool(self.input.outside(whole))


@dataclass(frozen=True)
class TypedInputs:
    """The inputs and overrides of a scenario and their cells: first those that times and memory follow from.

    Args:
        own: of which each scenario has a cell.
        shared: those of classes of requests, or of a demand, one cell for all scenarios.
        faults: of cells without which there is no plan, and `cause` the reason code of the first.
        of_money: of cells without which nobody knows what it costs.
        inputs_invalid, overrides_invalid: how many of all cells of a kind cannot be.
    """

    own: tuple[TypedInput, ...]
    shared: tuple[TypedInput, ...]
    faults: Faults
    cause: Quantity
    of_money: Faults
    inputs_invalid: Quantity
    overrides_invalid: Quantity
    sections: tuple[Section, ...]

    @property
    def inputs(self) -> tuple[TypedInput, ...]:
        """All of them."""
        return (*self.own, *self.shared)


def typed_inputs(
    inputs: Workload,
    hardware: Hardware,
    known: Frameworks,
    overrides: Iterable[Input],
    money: Container[Input],
    classes: Sequence[Input] = (),
    links: tuple[Input, ...] = (),
    demand: Sequence[Input] = (),
) -> TypedInputs:
    """The rows of the Inputs sheet about what its cells, and those of overrides, hold.

    Args:
        overrides: their cells.
        money: the inputs and overrides from which only power and cost follow.
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
    asked = [
        _typed(name, entry, library.get(own_name(name), ()), bounds, listed)
        for name, entry in inputs.named().items()
    ]
    cells = [_override(cell, bounds) for cell in overrides]
    named, overridden, paid_named, paid_overridden = (
        [item for item in items if (item.input in money) == paid]
        for paid in (False, True)
        for items in (asked, cells)
    )
    own = (*named, *overridden, *paid_named, *paid_overridden)
    shared = tuple(
        _typed(f"{OF_CLASS}{entry.id.removeprefix('classes.')}", entry, (), bounds, listed)
        for entry in (*classes, *demand)
    )
    sections = [*_sections(own, listed.section("In a list", "1 if the list has what was typed"))]
    others = None
    if shared:
        rows = Rows("typed.classes", of)
        others = _faults(rows, of.removeprefix(", ").split()[0], shared, bounds)
        title = "Classes that cannot be" if classes else "Demand that cannot be"
        sections += [*_sections(shared, None, of), rows.section(title, "in cells of all scenarios")]
    faults, of_plan = _of_kind("", [*named, *overridden], others if classes else None, bounds)
    of_money, of_cost = _of_kind(
        OF_MONEY, [*paid_named, *paid_overridden], None if classes else others, bounds
    )
    rows = Rows("typed")
    left = [
        rows(
            f"overrides{name}",
            f"Overrides that cannot be{label}",
            "flag",
            bounds.of(len(items), "flag") - sum_range(span([item.valid for item in items])),
        )
        for name, label, items in (("", "", overridden), (".money", OF_MONEY, paid_overridden))
    ]
    cause = where(faults.count > left[0], "INPUT_INVALID", "OVERRIDE_INVALID")
    typed = TypedInputs(
        own=own,
        shared=shared,
        faults=faults,
        of_money=of_money,
        overrides_invalid=rows("overrides.all", "Overrides that cannot be, of all", "flag", sum_of(left)),
        inputs_invalid=rows(
            "inputs",
            "Inputs that cannot be, of all",
            "flag",
            faults.count + of_money.count - rows.last,
        ),
        cause=rows("cause", "Which cells cannot be, inputs or overrides", "1", cause, "inputs come first"),
        sections=(),
    )
    bounded = Section(
        "Bounds and choices", tuple(bounds.rows), "between which inputs lie, and what they may be"
    )
    used = (
        Section(
            f"Inputs as used{of_items}",
            tuple(item.used for item in items),
            "what was typed; where that cannot be, what was held as generated: formulas read these rows",
        )
        for items, of_items in ((own, ""), (shared, of))
        if items
    )
    counted = rows.section("Inputs and overrides that cannot be", "how many, and of which kind")
    return replace(typed, sections=(bounded, *sections, *of_plan, *of_cost, counted, *used))


def _of_kind(
    of: str, items: Sequence[TypedInput], others: Faults | None, bounds: Bounds
) -> tuple[Faults, list[Section]]:
    """How many cells of a kind hold what cannot be, and the first; with the rows that say it.

    Args:
        of: what labels end with.
        others: cells of all scenarios that count among them.
    """
    name = "typed.money" if of else "typed"
    means = "nobody then knows what it costs" if of else "the plan is then invalid"
    rows = Rows(name if others is None else f"{name}.own", of)
    own = _faults(rows, "inputs", items, bounds)
    sections = [rows.section(f"Inputs that cannot be{of}", means)]
    if others is None:
        return own, sections
    both = Rows(name, of)
    count = both("faults", "Cells that hold what cannot be", "flag", own.count + others.count)
    words = where(own.count > 0, own.message, others.message)
    faults = Faults(count, both("message", "The first of all cells, in words", "1", words))
    return faults, [*sections, both.section(f"Inputs that cannot be, with all scenarios{of}", means)]


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
            tuple(item.held for item in items if item.held is not None),
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


def _override(entry: Input, bounds: Bounds) -> TypedInput:
    """The rows of an override, whose cell may be empty."""
    guard = Guard(entry.id.removesuffix(OVERRIDE), entry)
    cell = guard.fixed("cell", "Cell", entry.unit, 0)
    content = guard.row("content", "Content", entry.unit, where(is_empty(cell), NONE, cell))
    assert entry.minimum is not None and entry.maximum is not None
    inside = (
        span([content]),
        at_least(bounds.of(entry.minimum, entry.unit)),
        span([content]),
        at_most(bounds.of(entry.maximum, entry.unit)),
    )
    valid = guard.valid(where(is_empty(cell), 1, count_where(*inside)))
    return TypedInput(
        input=entry,
        cell=cell,
        content=content,
        place=guard.place(),
        held=None,
        in_range=None,
        valid=valid,
        expected=guard.expected(),
        used=guard.row(
            "used", "As used", entry.unit, where(all_of(is_number(content), valid > 0), content, NONE)
        ),
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
