"""Inputs and headline results as they were when a workbook was made, and what differs from them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE, Check
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.equations.typed import AN_ERROR, FigureTables, figure_tables
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    as_node,
    at_least,
    count_where,
    defined,
    equal,
    index,
    is_empty,
    is_error,
    is_number,
    join,
    match,
    maximum,
    number_of,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows

STAMPED = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, MEMORY_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS, POWER)


EDITS = "What was edited"
NO_EDIT = "–"
NONE = "none"
"""In place of what an empty override holds."""
_LISTED = 8  # edits that are named


@dataclass(frozen=True)
class Edit:
    """A place of the list of edits: dashes where there are fewer."""

    cell: Quantity
    was: Quantity
    now: Quantity


@dataclass(frozen=True)
class Edits:
    """Cells that inputs and overrides are typed into, and what they held when the file was made.

    Args:
        entries: overrides and assumptions; `cells` the words for their cells, `stored` what they held, per
            scenario, in the same order. Whoever lays out the file fills in both.
        invalid: how many overrides are neither empty nor a number from 0 on.
        count: how many hold something else now; `all` with the headline results that do.
        listed: the first of these, of a scenario.
        left: how many are not listed.
    """

    entries: tuple[Input, ...]
    cells: tuple[Input, ...]
    stored: tuple[Input, ...]
    invalid: Quantity
    count: Quantity
    all: Quantity
    left: Quantity
    listed: tuple[Edit, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Stamp:
    """Inputs and headline results, and what they were when the file was made.

    Args:
        figures: live results; `stored` their values at generation, per scenario, in the same order.
        edits: inputs and overrides that hold something else now.
        tables: of figures that may be typed over.
        readable: that overrides and these tables hold what can be read; `unchanged` the alert that inputs or
            results changed.
    """

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    edits: Edits
    tables: FigureTables
    readable: tuple[Check, ...]
    unchanged: Check
    section: Section


def stamp(graph: EstimateGraph) -> Stamp:
    """The rows that compare live results with those of generation; the maker of the file fills these in."""
    figures = tuple(metric.of(graph.figures) for metric in STAMPED)
    behind = [metric.worked_out(graph.figures) for metric in STAMPED]
    stored = tuple(_stored(figure) for figure in behind)
    rows = Rows("stamp")
    rows.add(*stored)
    flags = [
        rows(
            f"{worked_out.id}.changed",
            f"Changed: {worked_out.label}",
            "flag",
            where(absolute(number_of(figure) - number_of(then)) <= TOLERANCE * number_of(then), 0, 1),
        )
        for worked_out, figure, then in zip(behind, figures, stored, strict=True)
    ]
    changed = rows("changed", "Headline results that changed", "flag", sum_range(span(flags)))
    edited = edits(graph, changed)
    none = defined("stamp.none", "No change", "flag", 0, "fixed side of a check")
    rows.add(none)
    alert = Check("INPUTS_CHANGED", edited.all, none)
    tables = figure_tables(graph.figures.values())
    section = rows.section(
        "As generated", "headline results stored as values; live ones differ once an input is edited"
    )
    return Stamp(
        figures=figures,
        stored=stored,
        edits=edited,
        tables=tables,
        readable=(
            Check("OVERRIDE_INVALID", edited.invalid, none),
            Check("FIGURE_INVALID", tables.faults.count, none),
        ),
        unchanged=alert,
        section=section,
    )


def edits(graph: EstimateGraph, results: Quantity) -> Edits:
    """Every input and override against what its cell held when the file was made.

    Args:
        results: how many headline results changed.
    """
    overrides = [overridable.cell for overridable in graph.overridable.values()]
    typed = (*graph.typed.inputs, *graph.model.typed.typed)
    fields = tuple(item.input for item in typed)
    overridden = {override.id for override in overrides}
    shared = [figure for figure in graph.replaceable.values() if figure.id not in overridden]
    others = (*overrides, *shared)
    cells = tuple(_fixed(entry, "cell", f"Cell of {entry.label}") for entry in others)
    stored = tuple(_fixed(entry, "held", f"Held: {entry.label}") for entry in others)
    live = (*map(_overridden, overrides), *map(_assumed, shared))
    all_cells: tuple[Named, ...] = (*(_linked(item.input, item.place, "cell") for item in typed), *cells)
    all_stored: tuple[Named, ...] = (*(_linked(item.input, item.held, "held") for item in typed), *stored)
    all_live: tuple[Named, ...] = (*(_linked(item.input, item.content, "now") for item in typed), *live)
    counted = _counted((*fields, *others), all_stored, all_live)
    count = counted[-1]
    rows = Rows("stamp.edit")
    of_overrides = span(live[: len(overrides)])
    numbers = count_where(of_overrides, at_least(0))
    how_many = defined("stamp.edit.overrides", "Overrides", "flag", len(overrides))
    rows.add(how_many)
    invalid = rows(
        "invalid",
        "Overrides that are neither empty nor a number from 0 on",
        "flag",
        how_many - numbers - count_where(of_overrides, NONE),
    )
    rows(
        "count", "Cells that hold something else", "flag", count, "inputs, overrides, assumptions, dimensions"
    )
    listed = []
    for number in range(1, _LISTED + 1):
        turn = defined(f"stamp.edit.{number}.number", f"Edit {number}", "flag", number, "its turn")
        rows.add(turn)
        place = rows(
            f"{number}.place",
            f"Edit {number}, place",
            "number",
            where(turn <= count, match(turn, span(counted)), 0),
            "0: there are fewer",
        )
        words = {
            name: rows(f"{number}.{name}", f"Edit {number}, {label}", "1", _told(block, place))
            for name, label, block in (
                ("cell", "cell", all_cells),
                ("was", "as generated", all_stored),
                ("now", "now", all_live),
            )
        }
        listed.append(Edit(words["cell"], words["was"], words["now"]))
    both = rows("all", "Inputs and headline results that changed", "flag", count + results)
    left = rows("left", "Edits that are not listed", "flag", maximum(0, count - turn))
    return Edits(
        entries=others,
        cells=cells,
        stored=stored,
        invalid=invalid,
        count=count,
        all=both,
        left=left,
        listed=tuple(listed),
        sections=(
            Section("Cells", all_cells, "what an input is called, and where it is typed"),
            Section("Held as generated", all_stored, "what the cells held when the file was made"),
            Section("Held now", all_live, "what the cells hold"),
            Section("Counted", counted, "cells so far that hold something else: the last counts all"),
            rows.section(
                EDITS,
                "inputs, overrides, assumptions and dimensions that hold something else than as generated",
            ),
        ),
    )


def _told(block: Sequence[Named], place: Quantity) -> Node:
    """What stands at a place of a block."""
    return where(place > 0, index(span(block), place), NO_EDIT)


def _fixed(entry: Input, name: str, label: str) -> Input:
    """A text or number that whoever lays out the file fills in."""
    return Input(
        id=f"stamp.{entry.id}.{name}",
        label=label,
        unit=entry.unit if name == "held" else "1",
        value="",
        note="when the file was made",
        source="native engine",
        status="defined",
        fixed=True,
    )


def _linked(entry: Input, figure: Named, name: str) -> Named:
    """What stands on Inputs of an input, and on Model of a dimension."""
    label = {"cell": "Cell of", "held": "Held:", "now": "Now:"}[name]
    what: Node = where(is_error(figure), AN_ERROR, figure) if name == "now" else figure
    return Quantity(f"stamp.{entry.id}.{name}", f"{label} {entry.label}", figure.unit, what)


def _overridden(entry: Input) -> Quantity:
    """What the cell of an override holds. Only a number overrides anything."""
    return _now(entry, where(is_empty(entry), NONE, entry))


def _assumed(entry: Input) -> Quantity:
    """What the cell of a shared figure holds."""
    return _now(entry, where(is_number(entry), entry, join("'", entry, "'")))


def _now(entry: Input, what: Node) -> Quantity:
    return Quantity(f"stamp.{entry.id}.now", f"Now: {entry.label}", entry.unit, what)


def _counted(
    entries: tuple[Input, ...], stored: tuple[Named, ...], live: tuple[Named, ...]
) -> tuple[Quantity, ...]:
    """How many cells hold something else, counted from the first on. No number counts as 0 here."""
    counted: list[Quantity] = []
    for entry, then, now in zip(entries, stored, live, strict=True):
        before = counted[-1] if counted else as_node(0)
        same = equal(now, then)
        if isinstance(entry.value, int | float):  # not a text, nor an override, which may hold no number
            held = number_of(then)
            same = all_of(is_number(now), absolute(number_of(now) - held) <= TOLERANCE * absolute(held))
        edits = where(same, before, before + 1)
        counted.append(Quantity(f"stamp.{entry.id}.edits", f"Edits up to {entry.label}", "flag", edits))
    return tuple(counted)


def unchanged(stamp: Stamp) -> Quantity:
    """Whether the live results are those of generation, in words."""
    status = where(stamp.unchanged.result > 0, "✓ unchanged", "! changed")
    return Quantity("stamp.unchanged", "Live results", "1", status)


def _stored(figure: Quantity) -> Input:
    """The value of a result when the file was made, one per scenario."""
    return Input(
        id=f"stamp.{figure.id}",
        label=f"As generated: {figure.label}",
        unit=figure.unit,
        value=0,
        note="result when the file was made",
        source="native engine",
        status="defined",
        fixed=True,
    )
