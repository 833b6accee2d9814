"""What was typed as inputs and overrides: whether it can be, and what is used where it cannot.

Every formula reads what is used: what was typed where that can be, else what the cell held when the file was
made, or followed then; of an override the figure of the library.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from mantile.equations.datatype import DataTypes
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.equations.override import OVERRIDE
from mantile.equations.typed.cells import (
    FAULT,
    NONE,
    OWN_COLUMNS,
    Faults,
    Guard,
    Typed,
    count_faults,
    faults_of,
    told,
)
from mantile.equations.typed.shared import CLASSES
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    at_least,
    count_where,
    equal,
    is_number,
    join,
    match,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.device import DEVICE_FIELDS
from mantile.library.scenario_fields import SCENARIO_FIELDS, own_name

LINES, STATES = "Cells", "States of cells"
"""Titles of blocks on Inputs."""
OF_CLASS = "class."
"""What names of inputs of a class begin with in these ids; 0.12 had rows of tables by their own ids."""
OF_CLASSES, OF_DEMAND = ", classes of requests", ", demand"
"""Behind labels of rows about them, and about the demand where there are no classes."""
OF_MONEY = ", power and price"
"""Behind labels of rows about cells from which only power and cost follow."""
_NOTE = "what cells hold, held as generated, and may hold"
_OF_USED = "what cells hold; where that cannot be, what they held as generated: formulas read these rows"
_OF_STATES = "0: as generated; much more than 1,000: cannot be; else edited"
_FIRST = 5000  # number of the first cell


@dataclass(frozen=True)
class TypedInputs:
    """The inputs and overrides of a scenario and their cells: first those that times and memory follow from.

    Args:
        own: of which each scenario has a cell.
        shared: those of classes of requests, or of a demand, one cell for all scenarios.
        faults: of cells without which there is no plan, and `cause` the reason code of the first.
        of_money: of cells without which nobody knows what it costs.
        inputs_invalid, overrides_invalid: how many of all cells of a kind cannot be.
        sections: of Inputs.
    """

    own: tuple[Typed, ...]
    shared: tuple[Typed, ...]
    faults: Faults
    cause: Quantity
    of_money: Faults
    inputs_invalid: Quantity
    overrides_invalid: Quantity
    sections: tuple[Section, ...]

    @property
    def inputs(self) -> tuple[Typed, ...]:
        """All of them."""
        return (*self.own, *self.shared)


def typed_inputs(
    inputs: Workload,
    hardware: Hardware,
    frameworks: tuple[Input, ...],
    types: DataTypes,
    overrides: Iterable[Input],
    money: Container[Input],
    classes: Sequence[Input] = (),
    links: tuple[Input, ...] = (),
    demand: Sequence[Input] = (),
) -> TypedInputs:
    """The lines about what the cells of inputs, and those of overrides, hold.

    Args:
        frameworks: their ids; `types` the data types of the library.
        overrides: their cells.
        money: the inputs and overrides from which only power and cost follow.
        classes: what is asked of classes of requests; `demand` what is chosen of it.
        links: the kinds of links between devices.
    """
    library = {
        "accelerator": hardware.accelerators,
        "system": hardware.systems,
        "framework": frameworks,
    } | dict.fromkeys((name for name, field in DEVICE_FIELDS.items() if field.listed == "links"), links)
    entries = {
        **{entry: name for name, entry in inputs.named().items()},
        **{cell: cell.id.removesuffix(OVERRIDE) for cell in overrides},
    }
    named, overridden, paid_named, paid_overridden = (
        [entry for entry in entries if (entry in money) == paid and (entry.value is None) == is_override]
        for paid in (False, True)
        for is_override in (False, True)
    )
    kinds = (named, overridden, paid_named, paid_overridden)
    numbers = iter(range(_FIRST, 0, -1))
    of_kinds = [
        [
            _typed(Guard(entries[entry], entry, next(numbers)), _list(entries[entry], entry, library, types))
            for entry in kind
        ]
        for kind in kinds
    ]
    named_cells, cells, paid_cells, paid = of_kinds
    shared = tuple(
        _typed(Guard(f"{OF_CLASS}{entry.id.removeprefix('classes.')}", entry, CLASSES - place), ())
        for place, entry in enumerate((*classes, *demand))
    )
    own = tuple(item for kind in of_kinds for item in kind)
    of = OF_CLASSES if classes else OF_DEMAND
    of_shared: tuple[Section, ...] = ()
    others = None
    if shared:
        rows = Rows("typed.classes", of)
        others = faults_of(rows, of.removeprefix(", ").split()[0], shared)
        title = "Classes that cannot be" if classes else "Demand that cannot be"
        used = tuple(item.used for item in shared)
        of_shared = (
            Section(f"Inputs as used{of}", used, _OF_USED),
            rows.section(title, "in cells of all scenarios"),
        )
    faults, of_plan = _of_kind("", [*named_cells, *cells], others if classes else None)
    of_money, of_cost = _of_kind(OF_MONEY, [*paid_cells, *paid], None if classes else others)
    rows = Rows("typed")
    left = [
        rows(f"overrides{name}", f"Overrides that cannot be{label}", "flag", count_faults(items))
        for name, label, items in (("", "", cells), (".money", OF_MONEY, paid))
        if items
    ]
    cause = where(faults.count > left[0], "INPUT_INVALID", "OVERRIDE_INVALID")
    invalid = rows("overrides.all", "Overrides that cannot be, of all", "flag", sum_of(left))
    used = tuple(item.used for item in own)
    lines: list[Row] = [FAULT, *(item.line for item in own)]
    return TypedInputs(
        own=own,
        shared=shared,
        faults=faults,
        of_money=of_money,
        overrides_invalid=invalid,
        inputs_invalid=rows(
            "inputs", "Inputs that cannot be, of all", "flag", faults.count + of_money.count - invalid
        ),
        cause=rows("cause", "Which cells cannot be, inputs or overrides", "1", cause, "inputs come first"),
        sections=(
            Section(LINES, tuple(lines), _NOTE, over=OWN_COLUMNS),
            Section("Inputs as used", used, _OF_USED),
            Section(STATES, tuple(item.state for item in own), _OF_STATES),
            *of_shared,
            *of_plan,
            *of_cost,
            rows.section("Inputs and overrides that cannot be", "how many, and of which kind"),
        ),
    )


def _of_kind(of: str, items: Sequence[Typed], others: Faults | None) -> tuple[Faults, list[Section]]:
    """How many cells of a kind hold what cannot be, and the first; with the rows that say it.

    Args:
        of: what labels end with.
        others: cells of all scenarios that count among them.
    """
    name = "typed.money" if of else "typed"
    means = "nobody then knows what it costs" if of else "the plan is then invalid"
    rows = Rows(name if others is None else f"{name}.own", of)
    own = faults_of(rows, "inputs", items)
    sections = [rows.section(f"Inputs that cannot be{of}", means)]
    if others is None:
        return own, sections
    both = Rows(name, of)
    count = both("faults", "Cells that hold what cannot be", "flag", own.count + others.count)
    words = where(own.count > 0, own.message, others.message)
    faults = Faults(count, both("message", "The first of all cells, in words", "1", words))
    return faults, [*sections, both.section(f"Inputs that cannot be, with all scenarios{of}", means)]


def _list(
    name: str, entry: Input, library: dict[str, tuple[Input, ...]], types: DataTypes
) -> tuple[Input, ...]:
    """The texts of the library that an input is chosen from; none where its line lists them."""
    field = SCENARIO_FIELDS.get(own_name(name))
    if field is not None and field.role == "weights" and len(entry.choices) > 1:
        listed = types.listed(entry)
        if tuple(item.value for item in listed) == entry.choices:
            return listed
    return library.get(own_name(name), ())


def _typed(guard: Guard, library: tuple[Input, ...]) -> Typed:
    """The line of an input.

    Args:
        library: the texts it is chosen from, where they stand in the library.
    """
    entry, cell = guard.entry, guard.cell
    if isinstance(entry.value, str):
        content = guard.row("", "Holds", "1", told(cell, join(cell, "")))
        bounds = () if library else guard.choices()
        is_listed: Node = is_number(match(content, span(library or bounds)))
        for word in {*entry.choices} - {item.value for item in library or bounds}:  # one at most
            is_listed = is_listed + equal(content, str(word)) > 0
        used = guard.row("used.", "As used", "1", where(is_listed, content, guard.held))
        as_used = equal(content, used)  # of a line for all scenarios what is used stands below
        return guard.typed(cell, content, bounds, is_listed if entry.shared else as_used, used)
    limits = guard.limits()
    if entry.value is None:
        content = guard.number_or_none(cell)
        is_in = guard.count_within(content, limits) > 0
        used = guard.row("used.", "As used", entry.unit, where(is_in, content, NONE))
        return guard.typed(cell, content, limits, count_where(span([content]), used) > 0, used)
    content = guard.a_number(cell)
    within = guard.is_within(content, limits)
    used = guard.row("used.", "As used", entry.unit, where(within, content, guard.held))
    return guard.typed(cell, content, limits, within, used)


def is_number_or_none(content: Quantity) -> Node:
    """Whether a cell that may be empty is so, or holds a number of at least 0."""
    here = span([content])
    return count_where(here, at_least(0)) + count_where(here, NONE) > 0
