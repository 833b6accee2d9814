"""Cells that something is typed into: what they hold, between which bounds, and the first that cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mantile.graph.quantity import (
    Input,
    LateDefault,
    Named,
    Node,
    Quantity,
    Value,
    all_of,
    as_node,
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

AN_ERROR, NO_FAULT, NONE = "an error", "–", "none"
"""What is said of a cell that holds an error, where no cell is wrong, and of an empty override."""


@dataclass(frozen=True)
class Typed:
    """An input and its cell.

    Args:
        input: what is typed.
        content: what its cell holds; a text where it is no number but should be.
        place: words for the cell; whoever lays out the file fills them in.
        in_range: of a number, whether it lies between its bounds.
        valid: 1 if it can be; beside it, in words, what is `expected`.
    """

    input: Input
    content: Quantity
    place: Input
    in_range: Quantity | None
    valid: Quantity
    expected: Input


@dataclass(frozen=True)
class Faults:
    """How many cells hold what cannot be, and the first of them in words."""

    count: Quantity
    message: Quantity


class Bounds:
    """Numbers and texts that cells are compared with, each once.

    Args:
        of: what these are the bounds of: a part of their ids.
    """

    def __init__(self, of: str = "") -> None:
        self.rows: list[Input] = []
        self._of = f"{of}." if of else ""
        self._numbers: dict[tuple[float, str], Input] = {}
        self._choices: dict[tuple[Value, ...], tuple[Input, ...]] = {}

    def of(self, value: float, unit: str) -> Node:
        """A number; 0 and 1 stand for themselves."""
        if value in (0, 1):
            return as_node(int(value))
        if (value, unit) not in self._numbers:
            label = f"Bound {value:,g}" if unit == "1" else f"Bound {value:,g} {unit}"
            identifier = f"typed.bound.{self._of}{unit.replace('/', '_per_')}.{value:g}"
            self._numbers[value, unit] = defined(identifier, label, unit, value, "of what is typed")
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


@dataclass(frozen=True)
class Guard:
    """Makes the rows of a cell.

    Args:
        name: of the input, the last part of all ids.
        entry: the input.
    """

    name: str
    entry: Input

    def row(self, kind: str, label: str, unit: str, body: Node) -> Quantity:
        """A row that is worked out."""
        return Quantity(
            f"typed.{kind}.{self.name}", f"{label}: {self.entry.label}", unit, body, name=self.entry.name
        )

    def fixed(self, kind: str, label: str, unit: str, value: Value, shared: bool = False) -> Input:
        """A row that is stored; once where the cell is of all scenarios."""
        shared = shared or self.entry.shared
        return Input(
            f"typed.{kind}.{self.name}",
            f"{label}: {self.entry.label}",
            unit,
            value,
            status="defined",
            note=f"of {self.entry.id}",
            source="native engine",
            shared=shared,
            fixed=True,
            default=None if shared or kind == "cell_of" else lambda: self.entry,
        )

    def content(self, cell: Named) -> Quantity:
        """What a cell holds that takes a number."""
        return self.row("content", "Content", self.entry.unit, where(is_number(cell), cell, join(cell, "")))

    def in_range(self, content: Quantity, bounds: Bounds) -> Quantity:
        """1 if a number lies between its bounds."""
        holds = all_of(*self.between(number_of(content), bounds))
        return self.row("in_range", "In range", "flag", where(holds, 1, 0))

    def between(self, number: Node, bounds: Bounds) -> Iterator[Node]:
        """What holds of a number that the input can be."""
        entry = self.entry
        if entry.minimum is not None:
            yield number >= bounds.of(entry.minimum, entry.unit)
        if entry.maximum is not None:
            yield number <= bounds.of(entry.maximum, entry.unit)
        if entry.integer and not isinstance(
            entry.default, LateDefault
        ):  # what is worked out need not be whole
            yield equal(floor(number), number)

    def valid(self, body: Node) -> Quantity:
        """1 if it can be."""
        return self.row("valid", "Can be", "flag", body)

    def place(self) -> Input:
        """Words for the cell."""
        return self.fixed("cell_of", "Cell of", "1", self.entry.label)

    def held(self) -> Input:
        """What the cell held when the file was made."""
        return self.fixed("held", "Held", self.entry.unit, self.entry.value or 0)

    def expected(self) -> Input:
        """What it may be, in words."""
        return self.fixed("expected", "Expected", "1", self.entry.expected, shared=True)


def first_fault(
    rows: Rows,
    what: str,
    count: Node,
    valid: Sequence[Quantity],
    told: tuple[Sequence[Named], Sequence[Named], Sequence[Named]],
) -> Faults:
    """The rows that count what cannot be, and say the first of it in words.

    Args:
        what: cells of something, such as "inputs".
        count: of all cells.
        valid: 1 for each that can be.
        told: of each the words for its cell, what it holds, and what is expected.
    """
    places, contents, expectations = told
    faults, place = count_faults(rows, what, count, valid)
    cell = looked_up(rows, "cell", "its cell", places, faults, place)
    content = looked_up(rows, "content", "what is there", contents, faults, place)
    expected = looked_up(rows, "expected", "what is expected", expectations, faults, place)
    in_words = where(is_error(content), AN_ERROR, join("'", content, "'"))
    holds = rows("first.holds", "The first: what it holds", "1", in_words)
    words = join(cell, " holds ", holds, "; expected ", expected)
    return Faults(faults, rows("message", "In words", "1", where(faults > 0, words, fine(what))))


def count_faults(rows: Rows, what: str, count: Node, valid: Sequence[Quantity]) -> tuple[Quantity, Quantity]:
    """How many cells hold what cannot be, and the place of the first."""
    label = f"Cells of {what} that hold what cannot be"
    faults = rows("faults", label, "flag", count - sum_range(span(valid)))
    first = where(faults > 0, match(0, span(valid)), 1)
    return faults, rows("first", "The first of them", "number", first)


def looked_up(
    rows: Rows, name: str, label: str, members: Sequence[Named], faults: Quantity, place: Quantity
) -> Quantity:
    """What is told of the first cell that holds what cannot be."""
    told = where(faults > 0, index(span(members), place), NO_FAULT)
    return rows(f"first.{name}", f"The first: {label}", "1", told)


def fine(what: str) -> str:
    """What is said where all cells hold what they can."""
    return f"all cells of {what} can be"
