"""What follows from other values of some figures: the results worked out again, and every figure on the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.assembly import Equations
from mantile.graph.mirror import Mirror, order
from mantile.graph.quantity import Named, Node, Quantity


@dataclass(frozen=True)
class Variation:
    """Results that follow from other values of some figures.

    Args:
        rows: the figures that change, by the sheet on which the originals stand, in the order of the workbook.
        results: each result worked out again; the original where nothing changes it.
    """

    rows: dict[str, tuple[Quantity, ...]]
    results: Mapping[str, Node]


class Variations:
    """Some results of a graph, to be worked out again for other values of this figure or that.

    Args:
        results: figures wanted, by name.
    """

    def __init__(self, equations: Equations, results: Mapping[str, Named]) -> None:
        self.equations, self.results = equations, results
        self._order = order(*results.values())

    def vary(self, replaced: Mapping[Any, Named], prefix: str, words: str) -> Variation:
        """Work the results out again with some figures replaced; all that does not change stays shared.

        Args:
            replaced: figures and what stands for them.
            prefix, words: what ids of the new figures begin with and labels end in.
        """
        mirror = Mirror(replaced, (), prefix, words, self._order)
        found = {name: mirror.of(figure) for name, figure in self.results.items()}
        rows: dict[str, tuple[Quantity, ...]] = {}
        for sheet, sections in self.equations.sheets.items():
            figures = (figure for section in sections for figure in section.figures() if figure not in replaced)
            mine = tuple(made for figure in figures if isinstance(made := mirror.made.get(figure), Quantity))
            if mine:
                rows[sheet] = mine
        missing = {made for original, made in mirror.made.items() if isinstance(made, Quantity) and original not in replaced}
        missing -= {figure for figures in rows.values() for figure in figures}
        assert not missing, f"{missing} stand on no sheet"
        return Variation(rows, found)
