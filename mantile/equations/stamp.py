"""Inputs and headline results as they were when a workbook was made, and what differs from them now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mantile.equations import constant
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
from mantile.equations.ready_columns import COUNTS, where_it_counts
from mantile.equations.tables import Equations
from mantile.equations.typed import (
    OTHERS,
    SHARED_COLUMNS,
    Faults,
    SharedCells,
    Typed,
    assumptions_typed,
    count_faults,
)
from mantile.equations.typed.cells import Guard
from mantile.equations.typed.inputs import is_number_or_none
from mantile.equations.typed.shared import CHOICE
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    at_least,
    choose,
    count_where,
    defined,
    floor,
    if_error,
    index,
    is_error,
    is_number,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
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
_MEASURED = 1000  # number of the first cell of what was measured


@dataclass(frozen=True)
class Edit:
    """A place of the list of edits: dashes where there are fewer."""

    cell: Quantity
    was: Quantity
    now: Quantity


@dataclass(frozen=True)
class NamedSince:
    """Whether a scenario counts that did not when the file was made: somebody named a ready column.

    Args:
        then: 1 where it counted; whoever lays out the file fills it in.
        now: 1 where it was named since.
    """

    then: Input
    now: Quantity


@dataclass(frozen=True)
class Edits:
    """Cells that inputs and overrides are typed into, and what they held when the file was made.

    Args:
        own: cells that scenarios have of their own: inputs, overrides, values that were `measured`; `shared`
            those of dimensions, assumptions, and of what is asked of classes and choices. Whoever lays out
            the file fills in what they held, and words for them.
        of_base: 1 in the base scenario, 0 in others; whoever lays out the file fills it in.
        invalid: how many overrides and measured values cannot be.
        told: the first that holds something else in words; a dash where there is none.
        count: how many hold something else now; `all` with the headline results that do, and with a name
            that was given to a ready column: without one nothing in it counts. Cells of all scenarios count
            in the base.
        named: in a workbook with ready columns.
        listed: the first of these, of a scenario.
    """

    own: tuple[Typed, ...]
    shared: tuple[Typed, ...]
    measured: tuple[Typed, ...]
    of_base: Input
    invalid: Quantity
    told: Quantity
    count: Quantity
    all: Quantity
    named: NamedSince | None
    listed: tuple[Edit, ...]
    section: Section


@dataclass(frozen=True)
class Stamp:
    """Inputs and headline results, and what they were when the file was made.

    Args:
        figures: live results; `stored` their values at generation, per scenario, in the same order.
        edits: inputs and overrides that hold something else now.
        assumptions: their cells; `others` those that no headline result depends on; `lines` of all
            cells of all scenarios; `of_others` the blocks about cells on no sheet of the graph. `of_demand`:
            cells that cannot be, without which nobody knows what a demand costs.
        readable: that overrides and assumptions hold what can be read; `unchanged` the alert that inputs or
            results changed.
        rows: those of a workbook that stand as text, by id.
    """

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    edits: Edits
    assumptions: tuple[Typed, ...]
    others: SharedCells | None
    of_demand: Faults
    lines: Section
    of_others: tuple[Section, ...]
    readable: tuple[Check, ...]
    unchanged: Check
    section: Section
    rows: Equations


def stamp(
    graph: EstimateGraph,
    of_choice: Sequence[Input] = (),
    choice: Faults | None = None,
    ready: bool = False,
) -> Stamp:
    """The rows that compare live results with those of generation; the maker of the file fills these in.

    Args:
        of_choice: what is typed where plans are chosen among: limits, weights, what is wanted.
        choice: the cells of these that hold what cannot be.
        ready: whether there are ready columns.
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
    kinds = [*graph.shared_cells[1:], *(() if others is None else (others,))]
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
    edited = edits(graph, changed, assumptions, of_choice, ready)
    if choice is not None:
        words = "Cells of the decision that hold what cannot be, in the base"
        rows("choice_faults", words, "flag", choice.count * edited.of_base)
    of_workbook = Equations(frozenset({"workbook"}))
    of_workbook.know(*constant.ALL, *stored, *rows.quantities(), none, count, edited.invalid, edited.all)
    readable = [Check(of_workbook[f"check.{code}"]) for code in READABLE]
    if choice is not None:
        readable.append(Check(of_workbook[f"check.{OF_CHOICE}"]))
    section = rows.section(
        "As generated", "headline results stored as values; live ones differ once an input is edited"
    )
    lines = tuple(item.line for item in edited.shared)
    return Stamp(
        figures=figures,
        stored=stored,
        edits=edited,
        assumptions=assumptions,
        others=others,
        of_demand=of_demand,
        lines=Section(
            "Cells of all scenarios", lines, "dimensions, assumptions and choices", over=SHARED_COLUMNS
        ),
        of_others=(
            *(() if others is None else (others.section,)),
            in_all.section("All assumptions"),
        ),
        readable=tuple(readable),
        unchanged=Check(of_workbook["check.INPUTS_CHANGED"]),
        section=section,
        rows=of_workbook,
    )


def _others(graph: EstimateGraph) -> SharedCells | None:
    """What the cells of assumptions hold that no headline result depends on."""
    items = (*graph.typed.inputs, *graph.assumed.typed, *graph.paid.typed)
    return assumptions_typed(
        graph.figures.values(),
        {item.input for item in items},
        OTHERS,
        "assumptions, of no result",
    )


def edits(
    graph: EstimateGraph,
    results: Quantity,
    assumptions: Sequence[Typed],
    of_choice: Sequence[Input],
    ready: bool = False,
) -> Edits:
    """Every input and override against what its cell held when the file was made.

    Args:
        results: how many headline results changed.
        assumptions: their cells.
        of_choice: what is typed where plans are chosen among; all scenarios share it.
        ready: whether there are ready columns.
    """
    cells = enumerate(graph.measured.values())
    values = tuple(_beside(cell, _MEASURED - place, True) for place, cell in cells)
    choices = (_beside(cell, CHOICE - place, False) for place, cell in enumerate(of_choice))
    own = (*graph.typed.own, *values)
    shared = (*graph.model.typed.typed, *graph.typed.shared, *assumptions, *choices)
    rows = Rows("stamp.edit")
    invalid = graph.typed.overrides_invalid + count_faults(values)
    words = "Overrides and measured values that cannot be"
    found_invalid = rows("invalid", words, "flag", invalid, "or are below 0")
    of_base = _fixed_flag("of_base", "The base scenario, in which cells of all scenarios count")
    rows.add(of_base)
    of_own = rows("of_own", "Cells of the scenario that hold something else", "flag", _changed(own))
    of_all = rows(
        "of_all", "Cells of all scenarios that hold something else", "flag", _changed(shared) * of_base
    )
    count = rows(
        "count",
        "Cells that hold something else",
        "flag",
        of_own + of_all,
        "inputs and overrides; in the base also what all scenarios share: dimensions, assumptions, limits",
    )
    listed = tuple(_edit(rows, number, (of_own, own), (count, shared)) for number in range(1, _LISTED + 1))
    named, changed = None, count + results
    if ready:
        named = _named_since(rows)
        changed = where_it_counts(rows("any", "Cells and results that changed", "flag", changed)) + named.now
    both = rows("all", "Inputs and headline results that changed", "flag", changed)
    first_told = _told(rows, listed[0], count)
    return Edits(
        own=own,
        shared=shared,
        measured=values,
        of_base=of_base,
        invalid=found_invalid,
        told=first_told,
        count=count,
        all=both,
        named=named,
        listed=listed,
        section=rows.section(
            EDITS, "inputs, overrides, assumptions and dimensions that hold something else than as generated"
        ),
    )


def _beside(entry: Input, number: int, is_measured: bool) -> Typed:
    """The line of a cell that may be empty: of a value that was measured, which is a number of at least 0, or
    of a choice, of which other rows say whether it can be.
    """
    guard = Guard(entry.id, entry, number)
    content = guard.number_or_none(entry)
    return guard.typed(entry, content, (), is_number_or_none(content) if is_measured else None)


def _changed(items: Sequence[Typed]) -> Node:
    """How many cells hold something else than as generated."""
    return count_where(span([item.state for item in items]), at_least(1))


def _edit(
    rows: Rows, number: int, own: tuple[Quantity, Sequence[Typed]], shared: tuple[Quantity, Sequence[Typed]]
) -> Edit:
    """A place of the list: first the cells of the scenario's own, then those that all share.

    Args:
        own, shared: how many edits there are up to these, and their cells.
    """
    turn = defined(f"stamp.edit.{number}.number", f"Edit {number}", "flag", number, "its turn")
    rows.add(turn)
    of_own, own_states = own[0], span([item.state for item in own[1]])
    count, states = shared[0], span([item.state for item in shared[1]])
    place = rows(
        f"{number}.place",
        f"Edit {number}, place",
        "number",
        where(turn <= of_own, match(nth_largest(own_states, turn), own_states), 0),
        "0: there are fewer",
    )
    further = rows(
        f"{number}.shared_place",
        f"Edit {number}, place among cells of all scenarios",
        "number",
        where(
            all_of(turn > of_own, turn <= count),
            match(nth_largest(states, maximum(1, turn - of_own)), states),
            0,
        ),
        "0: it is none of these",
    )

    def told(name: str, label: str, of: Callable[[Typed], Named]) -> Quantity:
        other = choose(1 + minimum(1, further), NO_EDIT, index(span(map(of, shared[1])), maximum(1, further)))
        body = where(place > 0, index(span(map(of, own[1])), place), other)
        return rows(f"{number}.{name}", f"Edit {number}, {label}", "1", body)

    return Edit(
        told("cell", "cell", lambda item: item.place),
        told("was", "as generated", lambda item: item.held),
        told("now", "now", lambda item: item.content),
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


def _named_since(rows: Rows) -> NamedSince:
    then = _fixed_flag("counted", "The scenario counted when the file was made", "0 in ready columns")
    rows.add(then)
    return NamedSince(then, rows("named", "A ready column was named", "flag", COUNTS - then))


def _fixed_flag(name: str, label: str, note: str = "1 in the base, 0 in others") -> Input:
    """A flag of each scenario that whoever lays out the file fills in."""
    return Input(
        id=f"stamp.edit.{name}",
        label=label,
        unit="flag",
        value=0,
        note=note,
        source="native engine",
        status="defined",
        fixed=True,
    )


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
