"""Cells that something is typed into: what they hold and held, and the first that cannot be.

A line says all about a cell. Its state is 0 as long as the cell holds what it held when the file was made,
its number once it holds something else, and `FAULT` more if that cannot be: the largest state is the first
fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mantile.graph.quantity import (
    Input,
    LateDefault,
    Line,
    Named,
    Node,
    Quantity,
    Span,
    Value,
    Words,
    at_least,
    at_most,
    choose,
    count_where,
    defined,
    equal,
    floor,
    index,
    is_empty,
    is_error,
    is_number,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
    number_of,
    span,
    where,
)
from mantile.graph.rows import Rows

AN_ERROR, NONE = "an error", "none"
"""What is said of a cell that holds an error, and of an empty override."""
TYPED, USED = "typed.", "typed.used."
"""What ids of figures about cells begin with: of what one holds, and of what is used of it. The name of the
input follows.
"""
FAULT = defined("typed.fault", "Fault", "number", 1_000_000, "state of a cell that cannot be")
OWN_COLUMNS, SHARED_COLUMNS = ("holds", "cell", "as generated"), ("holds", "state", "cell", "as generated")
"""Heads of the columns of lines: of cells that scenarios have of their own, whose states have their own rows,
and of those that all scenarios share.
"""
_HOW = "how it is worked out"


@dataclass(frozen=True)
class Typed:
    """An input and its cell.

    Args:
        input: what is typed; `cell` what its cell holds, where formulas read `used` in place of the input.
        content: what its cell holds; a text where it is no number but should be.
        held: what it held when the file was made, or what it followed then; `place` words for the cell.
            Whoever lays out the file fills in both.
        state: 0 if it holds that still, `FAULT` or more if it holds what cannot be, else `number`.
        bounds: of a number; the choices of a text.
        used: the content, if there is no figure of its own for that.
    """

    input: Input
    cell: Input
    content: Quantity
    held: Input
    place: Input
    state: Quantity
    number: Input
    bounds: tuple[Input, ...]
    expected: str
    used: Quantity

    @property
    def is_override(self) -> bool:
        """Whether the figure of the library holds in its place."""
        return self.input.value is None

    def refuses(self, value: Value | None) -> bool:
        """Whether it is a number that the input cannot be; texts are refused where a file is read."""
        if not isinstance(value, int | float) or isinstance(self.input.value, str):
            return False
        whole = int(value) if isinstance(self.input.default, LateDefault) else value
        return bool(self.input.outside(whole))

    @property
    def line(self) -> Line:
        """All of this, but for what is used; of a cell that scenarios have of their own but for its state."""
        state = (self.state,) if self.input.shared else ()
        figures = (self.content, *state, self.place, self.held)
        return Line(self.content.id, self.input.label, self.number, figures, self.bounds, self.expected)


@dataclass(frozen=True)
class Faults:
    """How many cells hold what cannot be, and the first of them in words."""

    count: Quantity
    message: Quantity


@dataclass(frozen=True)
class Guard:
    """Makes the figures about a cell.

    Args:
        name: of the input, the last part of all ids.
        entry: the input.
        number: of the cell, less for each that follows.
    """

    name: str
    entry: Input
    number: int = 0

    @cached_property
    def cell(self) -> Input:
        """What the cell holds; in the graph alone the input."""
        return self.fixed("cell", "Cell", self.entry.unit, self.entry.value or 0, lambda: self.entry)

    @cached_property
    def held(self) -> Input:
        """What the cell held when the file was made, or followed; in the graph alone what it holds."""
        value = NONE if self.entry.value is None else self.entry.value
        follows = not self.entry.shared and self.entry.value is not None
        default = self._followed if follows else None
        return self.fixed("held", "Held", self.entry.unit, value, default)

    def row(self, kind: str, label: str, unit: str, body: Node) -> Quantity:
        """A figure that is worked out."""
        return Quantity(
            f"{TYPED}{kind}{self.name}", f"{label}: {self.entry.label}", unit, body, name=self.entry.name
        )

    def fixed(
        self, kind: str, label: str, unit: str, value: float | str, default: Callable[[], Named] | None = None
    ) -> Input:
        """A figure that whoever lays out the file fills in."""
        return Input(
            f"{TYPED}{kind}.{self.name}",
            f"{label}: {self.entry.label}",
            unit,
            value,
            status="defined",
            note=f"of {self.entry.id}",
            source="native engine",
            shared=self.entry.shared,
            fixed=True,
            default=default,
        )

    def _followed(self) -> Named:
        follows = self.entry.follows
        return self.entry if follows is None else follows

    def place(self) -> Input:
        """Words for the cell."""
        return self.fixed("cell_of", "Cell of", "1", self.entry.label)

    def limits(self) -> tuple[Input, ...]:
        """The least and the most that a number may be."""
        found = (("low", "From", self.entry.minimum), ("high", "To", self.entry.maximum))
        return tuple(
            defined(f"{TYPED}{kind}.{self.name}", f"{label}: {self.entry.label}", self.entry.unit, value)
            for kind, label, value in found
            if value is not None
        )

    def choices(self) -> tuple[Input, ...]:
        """The texts that the input may be."""
        return tuple(
            defined(f"{TYPED}choice.{self.name}.{place}", f"Choice {place}: {self.entry.label}", "1", value)
            for place, value in enumerate(self.entry.choices, 1)
        )

    def a_number(self, cell: Input) -> Quantity:
        """What a cell holds that takes a number."""
        words = choose(1 + is_error(cell), join(cell, ""), AN_ERROR)
        return self.row("", "Holds", self.entry.unit, where(is_number(cell), cell, words))

    def number_or_none(self, cell: Input) -> Quantity:
        """What a cell holds that takes a number, or may be empty."""
        held = choose(1 + is_error(cell), cell, AN_ERROR)
        return self.row("", "Holds", self.entry.unit, where(is_empty(cell), NONE, held))

    def is_within(self, content: Quantity, limits: Sequence[Input]) -> Node:
        """Whether what a cell holds is a number within its limits, and whole where it should be."""
        nearest: Node = number_of(content)
        if self.entry.integer and not isinstance(self.entry.default, LateDefault):
            nearest = floor(nearest)  # what is worked out need not be whole
        of = [maximum] * (self.entry.minimum is not None) + [minimum] * (self.entry.maximum is not None)
        for function, limit in zip(reversed(of), reversed(limits), strict=True):
            nearest = function(limit, nearest)
        return equal(content, nearest)

    def count_within(self, content: Quantity, limits: Sequence[Input]) -> Node:
        """1 if what a cell holds is a number within its limits, whatever else it may hold."""
        of = [at_least] * (self.entry.minimum is not None) + [at_most] * (self.entry.maximum is not None)
        pairs = [(span([content]), function(limit)) for function, limit in zip(of, limits, strict=True)]
        return count_where(*(part for pair in pairs for part in pair))

    def typed(
        self,
        cell: Input,
        content: Quantity,
        bounds: tuple[Input, ...],
        valid: Node | None,
        used: Quantity | None = None,
    ) -> Typed:
        """All about a cell.

        Args:
            valid: a condition: that it holds what can be; None if other rows say that.
        """
        number = defined(f"{TYPED}number.{self.name}", f"Number: {self.entry.label}", "number", self.number)
        same = equal(content, self.held)
        if self.entry.value is None:
            same = count_where(span([content]), self.held) > 0  # an error is none, and makes none of it
        edited = where(same, 0, number)
        state = edited if valid is None else edited + where(valid, 0, FAULT)
        return Typed(
            input=self.entry,
            cell=cell,
            content=content,
            held=self.held,
            place=self.place(),
            state=self.row("state.", "State", "number", state),
            number=number,
            bounds=bounds,
            expected=self.entry.expected,
            used=content if used is None else used,
        )


def number_typed(guard: Guard) -> Typed:
    """The line of a number that formulas read from its cell."""
    limits, content = guard.limits(), guard.a_number(guard.entry)
    return guard.typed(guard.entry, content, limits, guard.is_within(content, limits))


def count_faults(items: Sequence[Typed]) -> Node:
    """How many of some cells hold what cannot be."""
    return count_where(span([item.state for item in items]), at_least(FAULT))


def faults_of(rows: Rows, what: str, items: Sequence[Typed]) -> Faults:
    """The rows that count what cannot be, and say the first of it in words.

    Args:
        what: cells of something, such as "inputs".
        items: their cells, on lines below each other.
    """
    count = rows("faults", f"Cells of {what} that hold what cannot be", "flag", count_faults(items))
    states, contents = span([item.state for item in items]), [item.content for item in items]
    first = where(count > 0, match(nth_largest(states, 1), states), 1)
    place = rows("first", "The first of them", "number", first)
    expected = Words(tuple(contents), _HOW, tuple(item.expected for item in items))
    cells = span([item.place for item in items])
    return first_fault(rows, (count, place), span(contents), cells, expected)


def first_fault(
    rows: Rows,
    faults: tuple[Quantity, Quantity],
    contents: Span,
    cells: Span,
    expected: Span | Words,
) -> Faults:
    """The first cell that holds what cannot be, in words.

    Args:
        faults: how many there are, and the place of the first.
        contents: what the cells hold; `cells` words for them; `expected` what they may hold.
    """
    count, place = faults
    found = index(contents, place)
    shown = where(equal(found, AN_ERROR), f" holds {AN_ERROR}", join(" holds '", found, "'"))
    holds = rows("first.holds", "The first: what it holds", "1", shown)
    words = join(index(cells, place), holds, "; expected ", index(expected, place))
    return Faults(count, rows("message", "In words", "1", where(count > 0, words, "all cells can be")))


def told(content: Node, otherwise: Node) -> Node:
    """What is said of a cell that holds an error; else something else."""
    return where(is_error(content), AN_ERROR, otherwise)
