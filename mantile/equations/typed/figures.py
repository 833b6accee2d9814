"""What was typed over figures of profiles: whether the tables in which they are looked up are still whole.

A deleted figure would count as 0. There are thousands, so it is the tables that are looked at. Each place of
a table has a number, from 1,001 on; those of figures that cannot be are added. A sum below two of them is the
place of the only such figure, whose cell is named. Where a row was put into a table or taken out of it, there
is no such sum: what is looked up by its place is then another thing's.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, fields

from mantile.equations.typed.cells import Bounds, Faults, fine, looked_up
from mantile.graph.quantity import (
    Apply,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    Span,
    Value,
    all_of,
    at_least,
    at_most,
    count_where,
    defined,
    expression,
    index,
    join,
    match,
    maximum,
    span,
    sum_range,
    sum_where,
    where,
)
from mantile.graph.rows import Rows

BEFORE_FIRST = 1000
"""The number before that of the first place: more figures than any table has."""
RESULTS, OTHERS = "tables", "others"
"""Tables that headline results depend on, and all others."""
_BEHIND = {RESULTS: "", OTHERS: ", not behind results"}
_MOVED = "rows were put into a table of the library or taken out; undo that"


@dataclass(frozen=True)
class FigureTables:
    """The tables of figures that anyone may type over.

    Args:
        tables: the figures of each.
        places: words for several of its cells; `columns` words for one of them but for its row, and `firsts`
            the row of the first. Whoever lays out the file fills in all three.
        numbers: of places in a table, from `BEFORE_FIRST` + 1 on.
        faults: of tables but those of money; `of_money` of these, None where there are none.
    """

    tables: tuple[tuple[Input, ...], ...]
    places: tuple[Input, ...]
    columns: tuple[Input, ...]
    firsts: tuple[Input, ...]
    numbers: tuple[Input, ...]
    faults: Faults
    of_money: Faults | None
    sections: tuple[Section, ...]


def figure_tables(
    figures: Iterable[Named],
    guarded: Container[Input] = (),
    kind: str = RESULTS,
    plan: Container[Named] | None = None,
) -> FigureTables:
    """The rows about all tables that some figures are looked up in, or that stand alone.

    Args:
        guarded: inputs of which other rows say whether they can be.
        kind: of tables, `RESULTS` or `OTHERS`.
        plan: what times and memory follow from: tables without any of it are about money. None: all tables
            are of one kind.
    """
    found = [table for table in _tables(figures) if table[0] not in guarded]
    paid = [table for table in found if plan is not None and not any(figure in plan for figure in table)]
    tables = (*(table for table in found if table not in paid), *paid)
    bounds, behind = Bounds("figures" if kind == RESULTS else kind), _BEHIND[kind]
    places = tuple(_fixed(table, "cells_of", "Cells of", name_of(table)) for table in tables)
    columns = tuple(_fixed(table, "column_of", "Column of", name_of(table)) for table in tables)
    firsts = tuple(_fixed(table, "first_of", "First row of", 0) for table in tables)
    numbers = _numbers(kind, max(map(len, tables), default=0))
    faulty = tuple(_faulty(table, numbers, bounds) for table in tables)
    expected = tuple(_fixed(table, "wanted", "Expected", table[0].expected) for table in tables)
    told = _Told(faulty, places, columns, firsts, expected)
    rows = Rows(f"typed.{kind}", behind)
    of_money = Rows(f"typed.{kind}.money", f"{behind}, power and price")
    others = len(tables) - len(paid)
    faults = _faults(rows, told.of(slice(others)), bounds)
    money = _faults(of_money, told.of(slice(others, None)), bounds) if paid else None
    note = "a figure of them is missing, or out of its range"
    return FigureTables(
        tables=tables,
        places=places,
        columns=columns,
        firsts=firsts,
        numbers=numbers,
        faults=faults,
        of_money=money,
        sections=(
            Section(f"Bounds of figures{behind}", tuple(bounds.rows), "between which they lie"),
            Section(f"Places in a table{behind}", numbers, "from the first figure on"),
            Section(f"Tables of figures{behind}", places, "where they stand"),
            Section(f"Columns of tables{behind}", columns, "in which a figure stands"),
            Section(f"First rows of tables{behind}", firsts, "in which the first figure stands"),
            Section(f"What they hold{behind}", expected, "between which bounds"),
            Section(
                f"Places of figures that cannot be{behind}",
                faulty,
                "their sum; 0 where all are numbers in their range",
            ),
            rows.section(f"Tables that cannot be{behind}", note),
            *([of_money.section(f"Tables that cannot be{of_money.suffix}", note)] if paid else []),
        ),
    )


@dataclass(frozen=True)
class _Told:
    """Of tables the places of what cannot be, and words for their cells."""

    faulty: tuple[Quantity, ...]
    places: tuple[Input, ...]
    columns: tuple[Input, ...]
    firsts: tuple[Input, ...]
    expected: tuple[Input, ...]

    def of(self, some: slice) -> _Told:
        """The same of some of them."""
        return _Told(*(getattr(self, part.name)[some] for part in fields(self)))


def _faults(rows: Rows, told: _Told, bounds: Bounds) -> Faults:
    """How many tables hold what cannot be, and words for the first of it."""
    faulty = span(told.faulty)
    count = bounds.of(len(told.faulty), "flag")
    whole = rows("whole", "Tables with as many rows as generated", "flag", count_where(faulty, at_least(0)))
    faults = rows("faults", "Tables with what cannot be", "flag", count - count_where(faulty, at_most(0)))
    known = all_of(faults > 0, whole >= count)
    place = rows("first", "One of them", "number", where(known, match(maximum(faulty), faulty), 1))
    cells = looked_up(rows, "cells", "its cells", told.places, faults, place)
    column = looked_up(rows, "column", "its column", told.columns, faults, place)
    wanted = looked_up(rows, "expected", "what is expected", told.expected, faults, place)
    sum_of_places = rows(
        "first.faulty", "The first: places of what cannot be", "number", index(faulty, place)
    )
    before = bounds.of(BEFORE_FIRST, "number")
    row = rows(
        "first.row",
        "The first: its row",
        "number",
        index(span(told.firsts), place) + maximum(1, sum_of_places - before) - 1,
        "where only one cannot be",
    )
    several = rows(
        "first.several",
        "The first: more than one cannot be",
        "flag",
        where(sum_of_places > before + before, 1, 0),
    )
    cell = rows("first.cell", "The first: its cell", "1", where(several > 0, cells, join(column, row)))
    named = rows("named", "The first", "1", join(cell, " is missing or cannot be; expected ", wanted))
    words = rows("words", "What cannot be", "1", where(whole < count, _MOVED, named))
    return Faults(faults, rows("message", "In words", "1", where(faults > 0, words, fine("figures"))))


def _tables(figures: Iterable[Named]) -> Iterable[tuple[Input, ...]]:
    """The tables, each once, and figures that stand in none, each a table of its own."""
    seen: dict[Input, None] = {}
    alone: dict[Input, None] = {}
    for figure in figures:
        if isinstance(figure, Input):
            alone[figure] = None
            continue
        assert isinstance(figure, Quantity)
        for node in expression(figure.body):
            members = _chosen_from(node)
            if members and members[0] not in seen:
                seen |= dict.fromkeys(members)
                yield members
    for figure in alone:
        stated = figure.shared and not figure.fixed and isinstance(figure.value, int | float)
        if stated and figure not in seen and not figure.id.startswith("model."):
            yield (figure,)


def _chosen_from(node: Node) -> tuple[Input, ...]:
    """The figures that a lookup chooses from, where they may be typed over."""
    if not isinstance(node, Apply) or node.operation != "index" or not isinstance(node.arguments[0], Span):
        return ()
    members = tuple(
        member
        for member in node.arguments[0].members
        if isinstance(member, Input) and not member.fixed and isinstance(member.value, int | float)
    )
    return members if len(members) == len(node.arguments[0].members) else ()


def _numbers(kind: str, count: int) -> tuple[Input, ...]:
    """The numbers of places, in their order."""
    return tuple(
        defined(f"typed.{kind}.place.{place}", f"Place {place}", "number", BEFORE_FIRST + place, "in a table")
        for place in range(1, count + 1)
    )


def _faulty(table: tuple[Input, ...], numbers: tuple[Input, ...], bounds: Bounds) -> Quantity:
    """The places of all figures of a table that are no numbers between its bounds, added."""
    first, members = table[0], span(table)
    low = min(figure.minimum or 0 for figure in table)
    conditions: tuple[Node, ...] = (members, at_least(bounds.of(low, first.unit)))
    highest = [figure.maximum for figure in table if figure.maximum is not None]
    if len(highest) == len(table):
        conditions = (*conditions, members, at_most(bounds.of(max(highest), first.unit)))
    places = span(numbers[: len(table)])
    body = sum_range(places) - sum_where(places, *conditions)
    return Quantity(f"typed.faulty.{first.id}", f"Cannot be: {name_of(table)}", "number", body)


def name_of(table: tuple[Input, ...]) -> str:
    """What the labels of its figures have in common."""
    between = " · " if " · " in table[0].label else ", "
    labels = [figure.label.split(between) for figure in table]
    return between.join(part for part in labels[0] if all(part in label for label in labels))


def _fixed(table: tuple[Input, ...], kind: str, label: str, value: Value) -> Input:
    return Input(
        f"typed.{kind}.{table[0].id}",
        f"{label}: {name_of(table)}",
        "1",
        value,
        note="of a table of figures",
        source="native engine",
        status="defined",
        shared=True,
        fixed=True,
    )
