"""What was typed into the cells of inputs: whether it can be, and what is used where it cannot.

A cell may hold anything: a person deletes it, types a text into it, or a number out of its range. Every
formula reads what is used: what was typed where that can be, else what the cell held when the file was made.
A plan with such a cell is invalid, and a sentence names the cell, what it holds and what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    LateDefault,
    Node,
    Quantity,
    Section,
    Value,
    all_of,
    as_node,
    at_least,
    below,
    count_where,
    defined,
    equal,
    floor,
    index,
    is_error,
    is_number,
    join,
    match,
    number_of,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.fields import DECODE

AN_ERROR, NO_FAULT = "an error", "–"
USED = "typed.used."
"""What ids of rows begin with that say what is used of an input."""
TOLD = ("typed.faults", "typed.first", "typed.message")
"""Rows that say which inputs cannot be; the others of this file lead there."""


@dataclass(frozen=True)
class TypedInput:
    """An input and its cell.

    Args:
        input: what formulas read: they are led to the row `used`.
        cell: what its cell holds; whoever lays out the file says where that is.
        content: the same; a text where it is no number but should be.
        place: words for the cell, and `held`, what it held when the file was made. Whoever lays out the file
            fills in both.
        in_range: of a number, whether it lies between its bounds.
        valid: 1 if it can be; beside it, in words, what is `expected`.
        used: what was typed, or what was held.
    """

    input: Input
    cell: Input
    content: Quantity
    place: Input
    held: Input
    in_range: Quantity | None
    valid: Quantity
    expected: Input
    used: Quantity

    def refuses(self, value: Value | None) -> bool:
        """Whether it is a number that the input cannot be; texts are refused where a file is read."""
        if not isinstance(value, int | float) or not isinstance(self.input.value, int | float):
            return False
        whole = int(value) if isinstance(self.input.default, LateDefault) else value
        return bool(self.input.outside(whole))


@dataclass(frozen=True)
class TypedInputs:
    """The inputs of a scenario and their cells.

    Args:
        inputs: in the order of the table.
        faults: how many cells hold what cannot be.
        message: the first of them, in words.
    """

    inputs: tuple[TypedInput, ...]
    faults: Quantity
    message: Quantity
    sections: tuple[Section, ...]


def typed_inputs(inputs: Workload, hardware: Hardware, known: Frameworks) -> TypedInputs:
    """The rows of the Inputs sheet about what its cells hold."""
    bounds = _Bounds()
    library = {"accelerator": hardware.accelerators, "system": hardware.systems, "framework": known.names}
    listed = Rows("typed.listed")
    found = tuple(
        _typed(name, entry, library.get(name.removeprefix(DECODE), ()), bounds, listed)
        for name, entry in inputs.named().items()
    )
    in_range = tuple(item.in_range for item in found if item.in_range is not None)
    valid = [item.valid for item in found]
    rows = Rows("typed")
    count = bounds.of(len(found), "flag")
    faults = rows(
        "faults", "Cells of inputs that hold what cannot be", "flag", count - sum_range(span(valid))
    )
    place = rows("first", "The first of them", "number", where(faults > 0, match(0, span(valid)), 1))
    cell, content, expected = (
        rows(
            f"first.{name}",
            f"The first: {label}",
            "1",
            where(faults > 0, index(span(members), place), NO_FAULT),
        )
        for name, label, members in (
            ("cell", "its cell", [item.place for item in found]),
            ("content", "what is there", [item.content for item in found]),
            ("expected", "what is expected", [item.expected for item in found]),
        )
    )
    holds = rows(
        "first.holds",
        "The first: what it holds",
        "1",
        where(is_error(content), AN_ERROR, join("'", content, "'")),
    )
    message = rows(
        "message",
        "In words",
        "1",
        where(faults > 0, join(cell, " holds ", holds, "; expected ", expected), "every input can be"),
    )
    return TypedInputs(
        inputs=found,
        faults=faults,
        message=message,
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
            Section("In range", in_range, "1 if a number lies between its bounds"),
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


@dataclass(frozen=True)
class Dimensions:
    """The dimensions of the model as they are typed on Model.

    Args:
        faults: how many hold what cannot be; `message` the first of them, in words.
    """

    faults: Quantity
    message: Quantity
    section: Section


def dimensions_typed(ir: ModelGraph) -> Dimensions:
    """The rows of the Model sheet about what the cells of its dimensions hold."""
    bounds, rows = _Bounds(), Rows("typed.dimensions")
    typed = [figure for figure in (*ir.facts.values(), *ir.sizes) if isinstance(figure, Input)]
    typed = [figure for figure in typed if not figure.fixed]
    valid = [
        Quantity(
            f"typed.valid.{figure.id}",
            f"Can be: {figure.label}",
            "flag",
            count_where(
                span([figure]),
                at_least(bounds.of(figure.minimum or 0, figure.unit)),
                span([figure]),
                below(bounds.of(figure.maximum or math.inf, figure.unit)),
            ),
        )
        for figure in typed
    ]
    expected = [
        Input(
            f"typed.expected.{figure.id}",
            f"Expected: {figure.label}",
            "1",
            f"{figure.label} (Model): expected {figure.expected}",
            note="what is said where it cannot be",
            source="native engine",
            shared=True,
            fixed=True,
        )
        for figure in typed
    ]
    faults = rows(
        "faults",
        "Dimensions that hold what cannot be",
        "flag",
        bounds.of(len(typed), "flag") - sum_range(span(valid)),
    )
    place = rows("first", "The first dimension", "number", where(faults > 0, match(0, span(valid)), 1))
    message = rows("message", "The first dimension, in words", "1", index(span(expected), place))
    rows_of_dimensions = (*bounds.rows, *zip(valid, expected, strict=True), *rows.rows)
    return Dimensions(
        faults=faults,
        message=message,
        section=Section("Dimensions that can be", rows_of_dimensions, "1 if a number between its bounds"),
    )


class _Bounds:
    """Numbers and texts that inputs are compared with, each once."""

    def __init__(self) -> None:
        self.rows: list[Input] = []
        self._numbers: dict[tuple[float, str], Input] = {}
        self._choices: dict[tuple[Value, ...], tuple[Input, ...]] = {}

    def of(self, value: float, unit: str) -> Node:
        """A number; 0 and 1 stand for themselves."""
        if value in (0, 1):
            return as_node(int(value))
        if (value, unit) not in self._numbers:
            label = f"Bound {value:,g}" if unit == "1" else f"Bound {value:,g} {unit}"
            identifier = f"typed.bound.{unit.replace('/', '_per_')}.{value:g}"
            self._numbers[value, unit] = defined(identifier, label, unit, value, "of inputs")
            self.rows.append(self._numbers[value, unit])
        return self._numbers[value, unit]

    def choices(self, name: str, values: tuple[Value, ...]) -> tuple[Input, ...]:
        """The texts that an input may be."""
        if values not in self._choices:
            self._choices[values] = tuple(
                defined(
                    f"typed.choice.{name}.{number}", f"Choice {number}, {name}", "1", value, "of an input"
                )
                for number, value in enumerate(values, 1)
            )
            self.rows += self._choices[values]
        return self._choices[values]


def _typed(name: str, entry: Input, library: tuple[Input, ...], bounds: _Bounds, listed: Rows) -> TypedInput:
    """The rows of an input.

    Args:
        library: the ids it is chosen from, where they stand in the library.
    """
    is_text = isinstance(entry.value, str)

    def row(kind: str, label: str, unit: str, body: Node) -> Quantity:
        return Quantity(f"typed.{kind}.{name}", f"{label}: {entry.label}", unit, body, name=entry.name)

    def fixed(kind: str, label: str, unit: str, value: Value, shared: bool = False) -> Input:
        return Input(
            f"typed.{kind}.{name}",
            f"{label}: {entry.label}",
            unit,
            value,
            status="defined",
            note=f"of {entry.id}",
            source="native engine",
            shared=shared,
            fixed=True,
            default=None if shared or kind == "cell_of" else lambda: entry,
        )

    cell = fixed("cell", "Cell", entry.unit, entry.value or 0)
    if is_text:
        content = row("content", "Content", "1", where(is_error(cell), AN_ERROR, join(cell, "")))
    else:
        content = row("content", "Content", entry.unit, where(is_number(cell), cell, join(cell, "")))
    held = fixed("held", "Held", entry.unit, entry.value or 0)
    in_range = None
    if is_text:
        can_be = _one_of(name, entry, content, library, bounds, listed)
    else:
        in_range = row(
            "in_range", "In range", "flag", where(all_of(*_in_range(entry, content, bounds)), 1, 0)
        )
        can_be = where(is_number(content), in_range, 0)
    valid = row("valid", "Can be", "flag", can_be)
    return TypedInput(
        input=entry,
        cell=cell,
        content=content,
        place=fixed("cell_of", "Cell of", "1", entry.label),
        held=held,
        in_range=in_range,
        valid=valid,
        expected=fixed("expected", "Expected", "1", entry.expected, shared=True),
        used=row("used", "As used", entry.unit, where(valid > 0, cell, held)),
    )


def _in_range(entry: Input, content: Quantity, bounds: _Bounds) -> Iterator[Node]:
    """What holds where a number can be."""
    number = number_of(content)
    if entry.minimum is not None:
        yield number >= bounds.of(entry.minimum, entry.unit)
    if entry.maximum is not None:
        yield number <= bounds.of(entry.maximum, entry.unit)
    if entry.integer and not isinstance(entry.default, LateDefault):  # what is worked out need not be whole
        yield equal(floor(number), number)


def _one_of(
    name: str, entry: Input, content: Quantity, library: tuple[Input, ...], bounds: _Bounds, listed: Rows
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
