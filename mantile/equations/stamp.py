"""Inputs and headline results as they were when a workbook was made, and what differs from them now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mantile.equations.checks import NO_EDIT, TOLERANCE, Check
from mantile.equations.constant import HALF
from mantile.equations.display import sum_across
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.equations.typed import AN_ERROR, NONE, Faults, SharedCells, Typed, assumptions_typed
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
    choose,
    count_where,
    defined,
    equal,
    floor,
    if_error,
    index,
    is_empty,
    is_error,
    is_number,
    join,
    match,
    maximum,
    minimum,
    number_of,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows

STAMPED = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, MEMORY_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS, POWER)


READABLE, OF_CHOICE = ("OVERRIDE_INVALID", "FIGURE_INVALID"), "CHOICE_INVALID"
"""Codes of the checks that cells hold what can be read; the last where plans are chosen among."""
EDITS = "What was edited"
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
        entries: inputs, overrides, measured values, dimensions and assumptions; `cells` the words for their
            cells, `stored` what they held, in the same order: of the first three per scenario. Whoever lays
            out the file fills in both.
        of_base: 1 in the base scenario, 0 in others; whoever lays out the file fills it in.
        invalid: how many overrides and measured values cannot be.
        told: the first that holds something else in words; a dash where there is none.
        count: how many hold something else now; `all` with the headline results that do. Cells of all
            scenarios, those of dimensions and assumptions, count in the base.
        listed: the first of these, of a scenario.
        left: how many are not listed.
        own: of each cell that scenarios have of their own the words for it, and what it holds now.
    """

    entries: tuple[Input, ...]
    cells: tuple[Input, ...]
    stored: tuple[Input, ...]
    of_base: Input
    invalid: Quantity
    told: Quantity
    count: Quantity
    all: Quantity
    left: Quantity
    listed: tuple[Edit, ...]
    own: tuple[tuple[Input, Quantity], ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Stamp:
    """Inputs and headline results, and what they were when the file was made.

    Args:
        figures: live results; `stored` their values at generation, per scenario, in the same order.
        edits: inputs and overrides that hold something else now.
        assumptions: their cells; `others` those that no headline result depends on; `of_assumptions` the
            blocks about all. `of_demand`: cells that cannot be, without which nobody knows what a demand
            costs.
        readable: that overrides and assumptions hold what can be read; `unchanged` the alert that inputs or
            results changed.
    """

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    edits: Edits
    assumptions: tuple[Typed, ...]
    others: SharedCells | None
    of_demand: Faults
    of_assumptions: tuple[Section, ...]
    readable: tuple[Check, ...]
    unchanged: Check
    section: Section


def stamp(
    graph: EstimateGraph,
    of_choice: Sequence[Input] = (),
    choice: Faults | None = None,
) -> Stamp:
    """The rows that compare live results with those of generation; the maker of the file fills these in.

    Args:
        of_choice: what is typed where plans are chosen among: limits, weights, what is wanted.
        choice: the cells of these that hold what cannot be.
    """
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
    none = defined("stamp.none", "No change", "flag", 0, "fixed side of a check")
    rows.add(none)
    others = _others(graph)
    kinds = [of for of in (graph.assumed, graph.paid, others) if of is not None]
    in_all = Rows("stamp.assumptions")
    words = "Cells of assumptions that cannot be, of all"
    count = in_all("faults", words, "flag", sum_of([of.faults.count for of in kinds]))
    of_demand = graph.checks.of_money
    if graph.capacity is not None and others is not None:
        both = others.faults.count + of_demand.count
        first = where(others.faults.count > 0, others.faults.message, of_demand.message)
        of_demand = Faults(
            in_all("demand.faults", "Cells that cannot be, behind what a demand costs", "flag", both),
            in_all("demand.message", "The first of them in words", "1", first),
        )
    assumptions = tuple(cell for of in kinds for cell in of.typed)
    edited = edits(graph, changed, assumptions, of_choice)
    readable = [Check(code, left, none) for code, left in zip(READABLE, (edited.invalid, count), strict=True)]
    if choice is not None:
        chosen, words = Rows("stamp"), "Cells of the decision that hold what cannot be, in the base"
        of_base = chosen("choice_faults", words, "flag", choice.count * edited.of_base)
        readable.append(Check(OF_CHOICE, of_base, none))
        edited = replace(edited, sections=(*edited.sections, chosen.section("Decision")))
    section = rows.section(
        "As generated", "headline results stored as values; live ones differ once an input is edited"
    )
    return Stamp(
        figures=figures,
        stored=stored,
        edits=edited,
        assumptions=assumptions,
        others=others,
        of_demand=of_demand,
        of_assumptions=(
            *(section for of in kinds for section in of.sections),
            in_all.section("All assumptions"),
        ),
        readable=tuple(readable),
        unchanged=Check("INPUTS_CHANGED", edited.all, none),
        section=section,
    )


def _others(graph: EstimateGraph) -> SharedCells | None:
    """What the cells of assumptions hold that no headline result depends on."""
    paid = () if graph.paid is None else graph.paid.typed
    items = (*graph.typed.inputs, *graph.assumed.typed, *paid)
    return assumptions_typed(
        graph.figures.values(), {item.input for item in items}, "assumptions, not behind results"
    )


def edits(
    graph: EstimateGraph,
    results: Quantity,
    assumptions: Sequence[Typed],
    of_choice: Sequence[Input],
) -> Edits:
    """Every input and override against what its cell held when the file was made.

    Args:
        results: how many headline results changed.
        assumptions: their cells.
        of_choice: what is typed where plans are chosen among; all scenarios share it.
    """
    values = graph.measured.values.values()
    of_all_scenarios = (*graph.model.typed.typed, *graph.typed.shared, *assumptions)
    own = _cells(graph.typed.own, map(_overridden, values))
    shared = _cells(of_all_scenarios, map(_overridden, of_choice))
    rows = Rows("stamp.edit")
    invalid = _invalid(rows, graph.typed.overrides_invalid, own.live[len(graph.typed.own) :])
    of_base = _fixed_flag("of_base", "The base scenario, in which cells of all scenarios count")
    rows.add(of_base)
    of_all = rows(
        "of_all", "Cells of all scenarios that hold something else", "flag", shared.counted[-1] * of_base
    )
    count = rows(
        "count",
        "Cells that hold something else",
        "flag",
        own.counted[-1] + of_all,
        "inputs and overrides; in the base also what all scenarios share: dimensions, assumptions, limits",
    )
    listed = tuple(_edit(rows, number, count, own, shared) for number in range(1, _LISTED + 1))
    both = rows(
        "all",
        "Inputs and headline results that changed",
        "flag",
        count + results,
    )
    most = defined("stamp.edit.most", "Edits that are listed", "flag", _LISTED, "of each scenario")
    rows.add(most)
    first_told = _told(rows, listed[0], count)
    left = rows("left", "Edits that are not listed", "flag", maximum(0, count - most))
    return Edits(
        entries=(*own.entries, *shared.entries),
        cells=(*own.cells, *shared.cells),
        stored=(*own.held, *shared.held),
        of_base=of_base,
        invalid=invalid,
        told=first_told,
        count=count,
        all=both,
        left=left,
        listed=listed,
        own=tuple(zip(own.cells, own.live, strict=True)),
        sections=(
            *own.sections(""),
            *shared.sections(", all scenarios"),
            rows.section(
                EDITS,
                "inputs, overrides, assumptions and dimensions that hold something else than as generated",
            ),
        ),
    )


@dataclass(frozen=True)
class _Cells:
    """Cells that something is typed into: words for them, what they held, what they hold.

    Args:
        entries: what is typed.
        counted: how many of those so far hold something else.
    """

    entries: tuple[Input, ...]
    cells: tuple[Input, ...]
    held: tuple[Input, ...]
    live: tuple[Quantity, ...]
    counted: tuple[Quantity, ...]

    def sections(self, of: str) -> tuple[Section, ...]:
        """Their blocks on Edits."""
        return (
            Section(f"Cells{of}", self.cells, "what an input is called, and where it is typed"),
            Section(f"Held as generated{of}", self.held, "what the cells held when the file was made"),
            Section(f"Held now{of}", self.live, "what the cells hold"),
            Section(
                f"Counted{of}", self.counted, "cells so far that hold something else: the last counts all"
            ),
        )


def _cells(typed: Sequence[Typed], others: Iterable[tuple[Input, Quantity]]) -> _Cells:
    """The rows about cells.

    Args:
        typed: those about which other sheets say what they hold.
        others: those about which nobody does, each with the row of what it holds.
    """
    cells = [*((item.input, _read(item)) for item in typed), *others]
    entries, live = tuple(entry for entry, _ in cells), tuple(now for _, now in cells)
    held = tuple(_fixed(entry, "held", f"Held: {entry.label}") for entry in entries)
    return _Cells(
        entries=entries,
        cells=tuple(_fixed(entry, "cell", f"Cell of {entry.label}") for entry in entries),
        held=held,
        live=live,
        counted=_counted(entries, held, live),
    )


def _invalid(rows: Rows, overrides: Quantity, live: Sequence[Quantity]) -> Quantity:
    """How many overrides and measured values hold what cannot be.

    Args:
        overrides: how many overrides do.
        live: what the cells of measured values hold.
    """
    body: Node = overrides
    if live:
        measured = defined("stamp.edit.measured", "Measured values", "flag", len(live))
        rows.add(measured)
        body = overrides + measured - count_where(span(live), at_least(0)) - count_where(span(live), NONE)
    return rows("invalid", "Overrides and measured values that cannot be", "flag", body, "or are below 0")


def _edit(rows: Rows, number: int, count: Quantity, own: _Cells, shared: _Cells) -> Edit:
    """A place of the list: first the cells of the scenario's own, then those that all share."""
    turn = defined(f"stamp.edit.{number}.number", f"Edit {number}", "flag", number, "its turn")
    rows.add(turn)
    of_own, of_shared = own.counted[-1], shared.counted[-1]
    place = rows(
        f"{number}.place",
        f"Edit {number}, place",
        "number",
        where(turn <= of_own, match(turn, span(own.counted)), 0),
        "0: there are fewer",
    )
    further = rows(
        f"{number}.shared_place",
        f"Edit {number}, place among cells of all scenarios",
        "number",
        where(
            all_of(turn > of_own, turn <= count),
            match(maximum(1, minimum(turn - of_own, of_shared)), span(shared.counted)),
            0,
        ),
        "0: it is none of these",
    )

    def told(name: str, label: str, block: Sequence[Named], others: Sequence[Named]) -> Quantity:
        other = choose(1 + minimum(1, further), NO_EDIT, index(span(others), maximum(1, further)))
        body = where(place > 0, index(span(block), place), other)
        return rows(f"{number}.{name}", f"Edit {number}, {label}", "1", body)

    return Edit(
        told("cell", "cell", own.cells, shared.cells),
        told("was", "as generated", own.held, shared.held),
        told("now", "now", own.live, shared.live),
    )


def _told(rows: Rows, first: Edit, count: Quantity) -> Quantity:
    """The first edit in words; a dash without one."""
    million = defined("stamp.edit.million", "Million", "1", 1e6, "to round to six decimals")
    rows.add(million)

    def shown(name: str, label: str, value: Quantity) -> Quantity:
        near = floor(number_of(value) * million + HALF) / million
        return rows(f"first.{name}", f"The first edit, {label}", "1", where(is_number(value), near, value))

    was, now = shown("was", "as generated", first.was), shown("now", "now", first.now)
    words = rows("first", "The first edit", "1", join(first.cell, " held ", was, ", holds ", now))
    edited = where(count > 0, join("Edited: ", words, ". "), NO_EDIT)
    found = rows("found", "The first edit, where cells can be read", "1", edited)
    told = where(is_error(found), "Edited: a cell holds an error. ", found)
    return rows("told", "The first edit in words", "1", told)


def _fixed_flag(name: str, label: str) -> Input:
    """A flag of each scenario that whoever lays out the file fills in."""
    return Input(
        id=f"stamp.edit.{name}",
        label=label,
        unit="flag",
        value=0,
        note="1 in the base, 0 in others",
        source="native engine",
        status="defined",
        fixed=True,
    )


def _fixed(entry: Input, name: str, label: str) -> Input:
    """A text or number that whoever lays out the file fills in; what an input held may follow as it does."""
    return Input(
        id=f"stamp.{entry.id}.{name}",
        label=label,
        unit=entry.unit if name == "held" else "1",
        value="",
        note="when the file was made",
        source="native engine",
        status="defined",
        shared=entry.shared,
        fixed=True,
        default=(lambda: entry.follows) if name == "held" else None,
    )


def _read(item: Typed) -> Quantity:
    """What stands on Inputs of an input, and on IR of a dimension."""
    return _now(item.input, where(is_error(item.content), AN_ERROR, item.content))


def _overridden(entry: Input) -> tuple[Input, Quantity]:
    """A cell that may be empty, and what it holds."""
    return entry, _now(entry, where(is_empty(entry), NONE, entry))


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


def unchanged(stamp: Stamp, scenarios: int) -> Quantity:
    """Whether inputs and results of all scenarios are those of generation, in words."""
    changed = if_error(sum_across(stamp.unchanged.left, scenarios, "edits of all scenarios"), 1)
    status = where(changed > 0, "! changed", "✓ unchanged")
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
