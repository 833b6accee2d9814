"""What follows from other values of some figures: the results worked out again, and every figure on the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.graph import EstimateGraph
from mantile.graph.quantity import InCase, Named, Quantity
from mantile.graph.rewrite import GraphRewrite, order


@dataclass(frozen=True)
class Variation:
    """Results that follow from other values of some figures.

    Args:
        rows: figures that change, each behind the original it was made from, by the sheet of the originals, in the order of the workbook.
        results: original and what it is now, which is the same where nothing changes it, by name.
    """

    rows: dict[str, tuple[tuple[Quantity, Quantity], ...]]
    results: Mapping[str, tuple[Named, Named]]

    def at(self, name: str, case: int) -> InCase:
        """A result in a case; that of the base scenario where nothing changes it."""
        original, now = self.results[name]
        return InCase(now, 0 if now is original else case)


class Variations:
    """Some results of a graph, to be worked out again for other values of this figure or that.

    Args:
        results: figures wanted, by name.
    """

    def __init__(self, equations: EstimateGraph, results: Mapping[str, Named]) -> None:
        self.equations, self.results = equations, results
        self._order = order(*results.values())

    def vary(self, replaced: Mapping[Any, Named], prefix: str, words: str) -> Variation:
        """Work the results out again with some figures replaced; all that does not change stays shared.

        Args:
            replaced: figures and what stands for them.
            prefix, words: what ids of the new figures begin with and labels end in.
        """
        rewrite = GraphRewrite(replaced, (), prefix, words, self._order)
        found = {name: (figure, rewrite.rewrite(figure)) for name, figure in self.results.items()}
        made = {
            original: now
            for original, now in rewrite.rewritten.items()
            if isinstance(original, Quantity) and isinstance(now, Quantity) and original not in replaced
        }
        rows = {
            sheet: tuple(
                (figure, made.pop(figure))
                for section in sections
                for figure in section.figures()
                if figure in made
            )
            for sheet, sections in self.equations.sheets.items()
        }
        assert not made, f"{[*made]} stand on no sheet"
        return Variation({sheet: figures for sheet, figures in rows.items() if figures}, found)
