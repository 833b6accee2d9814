"""Cells that stand for figures of the library once somebody fills them."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Apply, Input, Node, Quantity, is_number, where
from mantile.graph.sentence import lowered

OVERRIDE = ".override"
"""After the id of the figure that such a cell stands for."""


@dataclass(frozen=True)
class Overridable:
    """A cell and the figures that it stands for once filled.

    Args:
        cell: empty until somebody fills it.
        figures: in use, all alike once the cell is filled.
        defaults: what holds for each of them while it is empty, in the unit of the cell.
    """

    cell: Input
    figures: tuple[Quantity, ...]
    defaults: tuple[Node, ...]

    @property
    def id(self) -> str:
        """What a scenario calls it: the id of its cell without the ending."""
        return self.cell.id.removesuffix(OVERRIDE)


def override_cell(identifier: str, label: str, unit: str, low: float, high: float) -> Input:
    """An empty cell for a figure with this id.

    Args:
        low, high: what may be typed there.
    """
    return Input(
        f"{identifier}{OVERRIDE}",
        f"Override, {label}",
        unit,
        None,
        "empty: the figure of the library holds",
        "scenario",
        "given",
        minimum=low,
        maximum=high,
        name=f"override of {lowered(label)}",
    )


def unless_overridden(cell: Node, default: Node) -> Apply:
    """The figure of a cell once it is filled, the default until then."""
    return where(is_number(cell), cell, default)
