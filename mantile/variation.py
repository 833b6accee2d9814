"""What follows from other values of some figures: the results worked out again, and every figure on the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.assembly import Equations
from mantile.graph.mirror import Mirror
from mantile.graph.quantity import Named, Node, Quantity, ancestors


@dataclass(frozen=True)
class Variation:
    """Results that follow from other values of some figures.

    Args:
        rows: the figures that change, by the sheet on which the originals stand, in the order of the workbook.
        results: each result worked out again; the original where nothing changes it.
    """

    rows: dict[str, tuple[Quantity, ...]]
    results: Mapping[str, Node]


def vary(equations: Equations, replaced: Mapping[Any, Named], results: Mapping[str, Named], prefix: str, words: str) -> Variation:
    """Work results out again with some figures replaced; all that does not change stays shared.

    Args:
        replaced: figures and what stands for them.
        results: figures wanted, by name.
        prefix, words: what ids of the new figures begin with and labels end in.
    """
    mirror = Mirror(replaced, (), prefix, words, tuple(results.values()))
    found = {name: mirror.of(figure) for name, figure in results.items()}
    given = set(replaced.values())
    needed = {node for node in ancestors(*found.values()) if isinstance(node, Quantity) and node.id.startswith(prefix) and node not in given}
    rows: dict[str, tuple[Quantity, ...]] = {}
    for sheet, sections in equations.sheets.items():
        made = [mirror.of(figure) for section in sections for figure in section.figures() if isinstance(figure, Quantity) and figure not in replaced]
        mine = tuple(figure for figure in made if figure in needed)
        if mine:
            rows[sheet] = mine
    missing = needed - {figure for figures in rows.values() for figure in figures}
    assert not missing, f"{missing} stand on no sheet"
    return Variation(rows, found)
