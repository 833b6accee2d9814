"""What follows from other values of some figures: the results again, and every figure on the way to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.graph import EstimateGraph
from mantile.graph.excel import Cells
from mantile.graph.inline import Inlined
from mantile.graph.quantity import InCase, Input, Named, Quantity
from mantile.graph.rewrite import GraphRewrite, order


@dataclass(frozen=True)
class Variation:
    """Results that follow from other values of some figures.

    Args:
        rows: figures that change, each behind its original, in the order of the workbook.
        results: by name the original and what stands for it; both are one where nothing changes it.
    """

    rows: tuple[tuple[Named, Quantity], ...]
    results: Mapping[str, tuple[Named, Named]]

    def in_case(self, name: str, case: int, label: str) -> InCase:
        """A result in a case; that of the base scenario where nothing changes it.

        Args:
            label: which case that is, as in "at the low end".
        """
        original, varied = self.results[name]
        return InCase(varied, 0 if varied is original else case, label)


MOST_CHARACTERS = 400
"""Of a formula that works a figure out again: its steps stand in short formulas on sheets of their own, and
its row names by its id the row that it repeats. So these formulas are longer, and fewer."""


class Variations:
    """Some results of a graph, to be worked out again for other values of this figure or that.

    Args:
        results: figures wanted, by name.
        cells: where figures stand, as formulas of the sheet see it on which they are worked out; None where
            each has a formula to itself.
    """

    def __init__(self, graph: EstimateGraph, results: Mapping[str, Named], cells: Cells | None) -> None:
        self.graph, self.results, self.cells = graph, results, cells
        self._order = order(*results.values())
        self._nodes = {node for node, _ in self._order}

    def vary(self, replacements: Mapping[Any, Named], id_prefix: str, label_suffix: str) -> Variation:
        """Work the results out again with some figures replaced; all that does not change stays shared.

        Args:
            replacements: figures and what stands for them.
            id_prefix, label_suffix: what ids of the new figures begin with and labels end in.
        """
        rewrite = GraphRewrite(replacements, (), id_prefix, label_suffix, self._order, short=True)
        for node, _ in self._order:  # those first that others follow from: a long way is no deep recursion
            if isinstance(node, Quantity) and rewrite.depends(node):
                rewrite.rewrite(node)
        changed = {name: rewrite.rewrite(figure) for name, figure in self.results.items()}
        originals: dict[Named, Named] = {
            again: original
            for original, again in rewrite.rewritten.items()
            if isinstance(original, Input | Quantity)
            and isinstance(again, Quantity)
            and again.id == f"{id_prefix}{original.id}"  # else it says what another one does
            and original not in replacements
        }
        left: Mapping[Named, Quantity] = {row: row for row in originals if isinstance(row, Quantity)}
        if self.cells is not None:
            left = Inlined(changed.values(), originals, self.cells, MOST_CHARACTERS, self._nodes).figures
        results = {
            name: (figure, left.get(changed[name], changed[name])) for name, figure in self.results.items()
        }
        varied = {originals[again]: figure for again, figure in left.items()}
        checks = (check.result for check in self.graph.checks.checks)
        listed = (*checks, *self.graph.figures.values())
        rows = tuple((figure, varied.pop(figure)) for figure in listed if figure in varied)
        assert not varied, f"{[*varied]} stand on no sheet"
        return Variation(rows, results)
