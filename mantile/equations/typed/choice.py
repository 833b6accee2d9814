"""What was typed for a choice: whether it can be, and the first cell that cannot be, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.typed.cells import NONE, Faults, Guard, first_fault, told
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    count_where,
    defined,
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


def as_typed(figure: Named) -> InCase:
    """What stands in a cell of the choice, or follows from it."""
    return InCase(figure, 0, "as typed")


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
