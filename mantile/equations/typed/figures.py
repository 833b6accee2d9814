"""What was typed over figures of profiles: whether the tables in which they are looked up are still whole.

A deleted figure would count as 0. There are thousands, so it is the tables that are looked at: each has as
many numbers in its range as when the file was made.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from mantile.equations.typed.cells import Bounds, Faults, count_faults, fine, looked_up
from mantile.graph.quantity import (
    Apply,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    Span,
    at_least,
    at_most,
    count_where,
    expression,
    join,
    span,
    where,
)
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class FigureTables:
    """The tables of figures that anyone may type over.

    Args:
        tables: the figures of each; `places` the words for its cells, which whoever lays out the file fills
            in.
    """

    tables: tuple[tuple[Input, ...], ...]
    places: tuple[Input, ...]
    faults: Faults
    sections: tuple[Section, ...]


def figure_tables(figures: Iterable[Named], guarded: Container[Input] = ()) -> FigureTables:
    """The rows about all tables that some figures are looked up in, or that stand alone.

    Args:
        guarded: inputs of which other rows say whether they can be.
    """
    tables = tuple(table for table in _tables(figures) if table[0] not in guarded)
    bounds = Bounds("figures")
    places = tuple(_fixed(table, "cell_of", "Cells of", _name(table)) for table in tables)
    valid = [_valid(table, bounds) for table in tables]
    expected = tuple(_fixed(table, "expected", "Expected", _expected(table)) for table in tables)
    rows = Rows("typed.figures")
    faults, place = count_faults(rows, "figures", bounds.of(len(tables), "flag"), valid)
    cells = looked_up(rows, "cell", "its cells", places, faults, place)
    wanted = looked_up(rows, "expected", "what is expected", expected, faults, place)
    words = join(cells, " is missing or cannot be; expected ", wanted)
    message = rows("message", "In words", "1", where(faults > 0, words, fine("figures")))
    return FigureTables(
        tables=tables,
        places=places,
        faults=Faults(faults, message),
        sections=(
            Section(
                "Bounds of figures", tuple(bounds.rows), "between which they lie, and how many there are"
            ),
            Section("Tables of figures", places, "where they stand"),
            Section("What they hold", expected, "how many figures, and between which bounds"),
            Section(
                "Tables that can be",
                tuple(valid),
                "1 if there are as many numbers as when the file was made",
            ),
            rows.section("Tables that cannot be", "a figure of them is missing, or out of its range"),
        ),
    )


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


def _valid(table: tuple[Input, ...], bounds: Bounds) -> Quantity:
    """1 if all numbers of a table lie between its bounds."""
    first, members = table[0], span(table)
    low = min(figure.minimum or 0 for figure in table)
    conditions: tuple[Node, ...] = (members, at_least(bounds.of(low, first.unit)))
    highest = [figure.maximum for figure in table if figure.maximum is not None]
    if len(highest) == len(table):
        conditions = (*conditions, members, at_most(bounds.of(max(highest), first.unit)))
    complete = count_where(*conditions) >= bounds.of(len(table), "number")
    return Quantity(f"typed.valid.{first.id}", f"Can be: {_name(table)}", "flag", where(complete, 1, 0))


def _expected(table: tuple[Input, ...]) -> str:
    first = table[0]
    how_many = f"{len(table)}, each " if len(table) > 1 else ""
    return f"{how_many}{first.expected}"


def _name(table: tuple[Input, ...]) -> str:
    """What the labels of its figures have in common."""
    between = " · " if " · " in table[0].label else ", "
    labels = [figure.label.split(between) for figure in table]
    return between.join(part for part in labels[0] if all(part in label for label in labels))


def _fixed(table: tuple[Input, ...], kind: str, label: str, value: str) -> Input:
    return Input(
        f"typed.{kind}.{table[0].id}",
        f"{label}: {_name(table)}",
        "1",
        value,
        note="of a table of figures",
        source="native engine",
        status="defined",
        shared=True,
        fixed=True,
    )
