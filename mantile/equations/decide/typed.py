"""What was typed for a choice: whether it can be, and the first cell that cannot be, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.checks import NO_EDIT
from mantile.equations.decide.figures import as_typed
from mantile.equations.typed import NONE, Faults, Typed
from mantile.equations.typed.cells import Guard, first_fault, told
from mantile.graph.quantity import (
    Cases,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    as_node,
    count_where,
    defined,
    equal,
    index,
    is_number,
    join,
    match,
    span,
    sum_range,
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
    rows = Rows(f"typed.{part}")
    limits: list[Input] = []
    places, contents, valid, expected = [], [], [], []
    for entry in entries:
        guard = Guard(entry.id, entry)
        if isinstance(entry.value, str):
            content = guard.row("", "Holds", "1", told(entry, join(entry, "")))
            can_be: Node = is_number(match(content, span(labels)))
        else:
            own = guard.limits()
            limits += own
            content = guard.number_or_none(entry)
            if entry.integer:
                can_be = guard.is_within(content, own)
            else:
                is_none = count_where(span([content]), NONE)
                can_be = guard.count_within(content, own) + is_none > 0
        contents.append(content)
        places.append(guard.place())
        valid.append(guard.row("valid.", "Can be", "flag", where(can_be, 1, 0)))
        none = "" if isinstance(entry.value, str) or entry.integer else ", or an empty cell"
        expected.append(guard.fixed("expected", "Expected", "1", f"{entry.expected}{none}"))
    all_cells = defined(f"{rows.prefix}.cells", f"Cells of {what}", "flag", len(entries))
    label = f"Cells of {what} that hold what cannot be"
    count = rows("faults", label, "flag", all_cells - sum_range(span(valid)))
    place = rows("first", "The first of them", "number", where(count > 0, match(0, span(valid)), 1))
    faults = first_fault(rows, (count, place), span(contents), span(places), span(expected))
    ids = [entry.id for entry in entries]
    figures: list[Named] = [all_cells, *limits, *places, *expected, *contents, *valid, *rows.quantities()]
    return ChoiceTyped(
        valid=dict(zip(ids, valid, strict=True)),
        places=dict(zip(ids, places, strict=True)),
        faults=faults,
        rows=tuple(figures),
    )


def tell_taken(taken: Quantity, is_plan: Quantity, own: Sequence[Typed], plans: int) -> tuple[Quantity, ...]:
    """Whether the base scenario is the plan that is taken, in words: the last of these rows.

    Args:
        taken: the number of that plan; `is_plan` 1 if what is typed is one.
        own: cells that scenarios have of their own.
    """
    last: Node = as_node(NO_EDIT)
    rows = []
    for item in own:
        now, cell = item.content, item.place
        there = index(Cases(now, plans + 1, "what plans hold"), taken + 1)
        label = f"The last cell that differs, up to {item.input.label}"
        body = where(equal(InCase(now, 0), there), last, as_typed(cell))
        last = Quantity(f"decide.differs.{cell.id.removeprefix('typed.cell_of.')}", label, "1", body)
        rows.append(last)
    differs = join("! ", last, " is not as in this plan: all sheets show another")
    said = where(equal(last, NO_EDIT), "Summary and all sheets show this plan", differs)
    rows.append(Quantity("decide.taken_shown", "What the base is, in words", "1", said))
    body = where(as_typed(is_plan) > 0, rows[-1], "! there is no such plan")
    return (*rows, Quantity("decide.taken_said", "The plan taken, in words", "1", body))
