"""What was typed for a choice: whether it can be, and the first cell that cannot be, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.checks import NO_EDIT
from mantile.equations.decide.figures import as_typed
from mantile.equations.typed import AN_ERROR, NONE, Faults
from mantile.equations.typed.cells import Bounds, Guard, first_fault
from mantile.graph.quantity import (
    Cases,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    as_node,
    equal,
    index,
    is_empty,
    is_error,
    is_number,
    join,
    match,
    number_of,
    span,
    where,
)
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class ChoiceTyped:
    """The cells of a choice.

    Args:
        valid: 1 if a cell can be, by the id of what is typed.
        places: words for each cell, by the same id; whoever lays out the file fills them in.
        rows: everything that this follows from.
    """

    valid: dict[str, Quantity]
    places: dict[str, Input]
    faults: Faults
    rows: tuple[Named, ...]


def choice_typed(entries: Sequence[Input], labels: Sequence[Input], part: str, what: str) -> ChoiceTyped:
    """The rows about what the cells of a choice hold.

    Args:
        entries: what is typed; a number without a value may be left empty.
        labels: the texts that a text may be.
        part: the name of the part with the cells, in ids; `what` it in words.
    """
    bounds, rows = Bounds(part), Rows(f"typed.{part}")
    places, contents, ranges, valid, expected = [], [], [], [], []
    for entry in entries:
        guard = Guard(entry.id, entry)
        holds: Node
        if isinstance(entry.value, str):
            content = guard.row("content", "Content", "1", where(is_error(entry), AN_ERROR, join(entry, "")))
            holds = where(is_number(match(content, span(labels))), 1, 0)
        else:
            content = guard.row("content", "Content", "1", where(is_empty(entry), NONE, entry))
            fits = all_of(is_number(content), *guard.between(number_of(content), bounds))
            holds = where(fits, 1, 0)
            if not entry.integer:
                ranges.append(guard.row("in_range", "In range", "flag", holds))
                holds = where(is_empty(entry), 1, ranges[-1])
        contents.append(content)
        places.append(guard.place())
        valid.append(guard.valid(holds))
        none = "" if isinstance(entry.value, str) or entry.integer else ", or an empty cell"
        expected.append(guard.fixed("expected", "Expected", "1", f"{entry.expected}{none}", shared=True))
    told = (places, contents, expected)
    faults = first_fault(rows, what, bounds.of(len(entries), "flag"), valid, told)
    ids = [entry.id for entry in entries]
    figures = (*bounds.rows, *places, *expected, *contents, *ranges, *valid, *rows.rows)
    named: list[Named] = [row for row in figures if isinstance(row, Input | Quantity)]
    return ChoiceTyped(
        valid=dict(zip(ids, valid, strict=True)),
        places=dict(zip(ids, places, strict=True)),
        faults=faults,
        rows=tuple(named),
    )


def tell_taken(
    taken: Quantity, is_plan: Quantity, own: Sequence[tuple[Input, Quantity]], plans: int
) -> tuple[Quantity, ...]:
    """Whether the base scenario is the plan that is taken, in words: the last of these rows.

    Args:
        taken: the number of that plan; `is_plan` 1 if what is typed is one.
        own: of each cell that scenarios have of their own the words for it, and what it holds.
    """
    last: Node = as_node(NO_EDIT)
    rows = []
    for cell, now in own:
        there = index(Cases(now, plans + 1, "what plans hold"), taken + 1)
        label = f"The last cell that differs, up to {now.label.removeprefix('Now: ')}"
        body = where(equal(InCase(now, 0), there), last, as_typed(cell))
        last = Quantity(f"decide.differs.{cell.id.removeprefix('stamp.')}", label, "1", body)
        rows.append(last)
    differs = join("! ", last, " is not as in this plan: all sheets show another")
    said = where(equal(last, NO_EDIT), "Summary and all sheets show this plan", differs)
    rows.append(Quantity("decide.taken_shown", "What the base is, in words", "1", said))
    body = where(as_typed(is_plan) > 0, rows[-1], "! there is no such plan")
    return (*rows, Quantity("decide.taken_said", "The plan taken, in words", "1", body))
