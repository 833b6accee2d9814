"""Lines of paths and of the tables that paths are looked up in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.display import usual_unit
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Span,
    defined,
    index,
    match,
    span,
)

LIMITS, MODULES = "What binds a pass", "Module that takes most of it"
RATES, FIGURES = "What modules run at", "Figures of the library in use"
"""What stands over the tables that all paths share."""
NOTHING = "–"
"""In place of a step that a path does not have."""
OWN = "override"
"""The status of a figure of one's own; the reason stands beside its cell."""
_COUNTS = ("1", "parameter", "request", "token")
_QUOTED = {"FLOP/s": "TFLOP/s", "W": "W"}


@dataclass(frozen=True)
class Line:
    """A line of a path, or of the tables that paths are looked up in.

    Args:
        cells: value; name with unit; id; status; said, who says so; lead, what it follows from: the key of a
            line elsewhere; key; place, of the line that it was looked up in.
        leads_to: the figure whose row a reader may go to; None where it is another after an edit.
        listed: what stands over the table that a step was looked up in.
    """

    cells: Mapping[str, Named]
    leads_to: Named | None = None
    listed: str = ""

    def __getitem__(self, role: str) -> Named:
        return self.cells[role]


Table = tuple[Line, ...]


def fixed_text(identifier: str, text: str) -> Input:
    """A text that is the same whatever is edited."""
    return defined(f"trace.{identifier}", identifier, "1", text)


def looked(identifier: str, body: Node) -> Quantity:
    """A value or text that is looked up; what it is stands beside it."""
    return Quantity(f"trace.{identifier}", identifier, "1", body)


def shown_unit(unit: str) -> str:
    """The unit in which a figure of the library, or what is reached of it, is read."""
    return _QUOTED.get(unit, usual_unit(unit))


def named(label: str, unit: str) -> str:
    """A label with its unit, unless it counts things."""
    return label if unit in _COUNTS else f"{label}, {unit}"


def column(table: Sequence[Line], role: str) -> Span:
    """The cells of a role, one below the other."""
    return span(line[role] for line in table)


def looked_up(table: Sequence[Line], role: str, key: Node) -> Node:
    """What stands in the line of a table with a key."""
    return index(column(table, role), match(key, column(table, "key")))
