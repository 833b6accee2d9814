"""What was typed over figures of the library: tables that hold something else than when the file was made.

There are thousands of figures, so it is two sums of each table that are kept: of its figures, and of its
figures times the cubes of their places, which change if figures change places. One figure that was typed over
moves both: their quotient is the cube of its place. No two figures look like a third, as no cube is the mean
of two others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mantile.equations.constant import HALF
from mantile.equations.typed import FigureTables
from mantile.equations.typed.figures import BEFORE_FIRST, name_of
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    count_where,
    defined,
    floor,
    index,
    join,
    match,
    maximum,
    span,
    sum_products,
    where,
)
from mantile.graph.rows import Rows

_ROUNDING = 1e-13  # of sums of a hundred figures
_SMALL = 1e-3
_NEAR = 1e-4  # a tenth of how far the nearest mean of two cubes is from a cube
_COUNT = "Tables of the library that hold something else"

_AN_ERROR = "a figure of the library holds an error"
_AS_GENERATED = "figures of the library are as generated"


@dataclass(frozen=True)
class Altered:
    """Tables of the library and their sums.

    Args:
        live: both sums of each table; `stored` the same when the file was made, in the same order: whoever
            lays out the file fills these in.
        count: tables that hold something else.
        message: the first of them in words, with its cell where one figure was typed over.
    """

    live: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    count: Quantity
    message: Quantity
    sections: tuple[Section, ...]


def altered(kinds: Sequence[FigureTables]) -> Altered:
    """The rows about tables of the library that hold something else.

    Args:
        kinds: tables that results depend on, and others.
    """
    each = [_of_kind(kind, number) for number, kind in enumerate(kinds)]
    if len(each) == 1:
        return each[0]
    results, others = each
    rows = Rows("altered.all")
    count = rows("count", f"{_COUNT}, of all", "flag", results.count + others.count)
    message = rows(
        "message", "Of all, in words", "1", where(results.count > 0, results.message, others.message)
    )
    return Altered(
        live=(*results.live, *others.live),
        stored=(*results.stored, *others.stored),
        count=count,
        message=message,
        sections=(*results.sections, *others.sections, rows.section("All figures that were edited")),
    )


def _of_kind(kind: FigureTables, number: int) -> Altered:
    """The rows about tables of one kind."""
    behind, name = (", not behind results", "altered.others") if number else ("", "altered")
    tables = kind.tables
    sums = _both(tables, "sum", "Sum", lambda table: sum_products(span(table)))
    by_place = _both(
        tables,
        "weighted",
        "Sum by places",
        lambda table: sum_products(*[span(kind.numbers[: len(table)])] * 3, span(table)),
    )
    rows = Rows(name, behind)
    tolerance = defined(f"{name}.tolerance", f"Rounding of sums{behind}", "1", _ROUNDING, "relative")
    flags = tuple(
        _quantity(
            table,
            "differs",
            "Differs",
            where(absolute(now - then) <= tolerance * absolute(then), 0, 1),
        )
        for table, now, then in zip(tables, by_place.now, by_place.then, strict=True)
    )
    tables_in_all = defined(f"{name}.tables", f"Tables of the library{behind}", "flag", len(tables))
    rows.add(tables_in_all)
    same = count_where(span(flags), 0)
    count = rows("count", _COUNT, "flag", tables_in_all - same, "those with an error value are among them")
    plain = rows("plain", "Of them without an error value", "flag", count_where(span(flags), 1))
    first = where(plain > 0, match(1, span(flags)), 1)
    place = rows("first", "The first of them", "number", first, "1 where none does")
    named = _named(rows, kind, (sums, by_place), (place, tolerance))
    some = rows("told", "The first of them in words", "1", where(plain > 0, named, _AN_ERROR))
    message = rows("message", "In words", "1", where(count > 0, some, _AS_GENERATED))
    blocks: tuple[tuple[str, tuple[Input | Quantity, ...], str], ...] = (
        ("Sums of tables", (tolerance, *sums.now), "of all figures of a table of the library"),
        ("Sums of tables as generated", sums.then, "when the file was made"),
        ("Sums of tables by places", by_place.now, "each figure times the cube of its place"),
        ("Sums of tables by places as generated", by_place.then, "when the file was made"),
        ("Tables that differ", flags, "1 where a figure was typed over, or changed places"),
    )
    return Altered(
        live=(*sums.now, *by_place.now),
        stored=(*sums.then, *by_place.then),
        count=count,
        message=message,
        sections=(
            *(Section(f"{title}{behind}", figures, note) for title, figures, note in blocks),
            rows.section(f"Figures of the library that were edited{behind}", "the first table of them"),
        ),
    )


def _named(
    rows: Rows, kind: FigureTables, both: tuple[_Sums, _Sums], at_place: tuple[Quantity, Input]
) -> Quantity:
    """The table at a place in words: its cell where one figure was typed over, else all its cells.

    Args:
        at_place: the place, and what rounding leaves of sums.
    """
    place, tolerance = at_place

    def at(block: Sequence[Named]) -> Node:
        return index(span(block), place)

    def fixed(name: str, label: str, unit: str, value: float, note: str) -> Input:
        rows.add(defined(f"{rows.prefix}.{name}", f"{label}{rows.suffix}", unit, value, note))
        found = rows.rows[-1]
        assert isinstance(found, Input)
        return found

    more, moved = (
        rows(f"first.{name}", f"The first: {label} is larger by", "number", at(sums.now) - at(sums.then))
        for (name, label), sums in zip(
            (("more", "its sum"), ("moved", "its sum by places")), both, strict=True
        )
    )
    third = fixed("third", "Cube root, as a power", "1", 1 / 3, "of the quotient of both")
    before = fixed("before", "Number before the first place", "number", BEFORE_FIRST, "of all tables")
    near = fixed("near", "How near to a whole number", "number", _NEAR, "for one figure alone")
    root = rows(
        "first.root",
        "The first: place of a figure alone",
        "number",
        where(absolute(more) > tolerance * absolute(at(both[0].then)), maximum(0, moved / more) ** third, 0),
        "0 where the sum is what it was",
    )
    whole = rows("first.place", "The first: this place, rounded", "number", floor(root + HALF))
    alone = rows(
        "first.alone",
        "The first: one figure was typed over",
        "flag",
        where(all_of(whole > before, absolute(root - whole) <= near), 1, 0),
    )
    row = rows("first.row", "The first: its row", "number", at(kind.firsts) + maximum(1, whole - before) - 1)
    cell = rows("first.cell", "The first: its cell", "1", join(at(kind.columns), row, " changed by "))
    million = fixed("million", "Million", "1", 1e6, "to round to six decimals")
    millionths = rows(
        "first.millionths", "The first: by how many millionths", "number", floor(more * million + HALF)
    )
    by = rows("first.by", "The first: by how much", "number", millionths / million)
    small = fixed("small", "What is told in millionths", "number", _SMALL, "programs write it in many ways")
    told = rows(
        "first.told",
        "The first: by how much, in words",
        "1",
        where(absolute(by) < small, join(millionths, " millionths"), join(by, "")),
    )
    one = rows("first.one", "The first, one figure", "1", join(cell, told))
    changed = join(at(kind.places), " changed, or they changed places")
    several = rows("first.several", "The first, several figures", "1", changed)
    return rows("first.words", "The first in words", "1", where(alone > 0, one, several))


@dataclass(frozen=True)
class _Sums:
    """Of each table a sum, and what it was when the file was made."""

    now: tuple[Quantity, ...]
    then: tuple[Input, ...]


def _both(
    tables: Sequence[tuple[Input, ...]], name: str, label: str, body: Callable[[tuple[Input, ...]], Node]
) -> _Sums:
    return _Sums(
        tuple(_quantity(table, name, label, body(table)) for table in tables),
        tuple(_stored(table, name, f"{label} as generated") for table in tables),
    )


def _quantity(table: tuple[Input, ...], name: str, label: str, body: Node) -> Quantity:
    unit = "flag" if name == "differs" else "number"
    return Quantity(f"altered.{name}.{table[0].id}", f"{label}: {name_of(table)}", unit, body)


def _stored(table: tuple[Input, ...], name: str, label: str) -> Input:
    """A sum that whoever lays out the file fills in."""
    return Input(
        f"altered.{name}_then.{table[0].id}",
        f"{label}: {name_of(table)}",
        "number",
        0,
        note="when the file was made",
        source="native engine",
        status="defined",
        shared=True,
        fixed=True,
    )
