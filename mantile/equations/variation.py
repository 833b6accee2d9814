"""What follows from other values of some figures: the results again, and every figure on the way to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.graph import EstimateGraph
from mantile.graph.quantity import InCase, Input, Named, Quantity, Section
from mantile.graph.rewrite import GraphRewrite, order


@dataclass(frozen=True)
class Variation:
    """Results that follow from other values of some figures.

    Args:
        rows: figures that change, each behind its original, by the sheet of the originals, in the order of
            the workbook.
        results: by name the original and what stands for it; both are one where nothing changes it.
    """

    rows: dict[str, tuple[tuple[Named, Quantity], ...]]
    results: Mapping[str, tuple[Named, Named]]

    def in_case(self, name: str, case: int, label: str) -> InCase:
        """A result in a case; that of the base scenario where nothing changes it.

        Args:
            label: which case that is, as in "at the low end".
        """
        original, varied = self.results[name]
        return InCase(varied, 0 if varied is original else case, label)


class Variations:
    """Some results of a graph, to be worked out again for other values of this figure or that.

    Args:
        results: figures wanted, by name.
    """

    def __init__(self, graph: EstimateGraph, results: Mapping[str, Named]) -> None:
        self.graph, self.results = graph, results
        self._order = order(*results.values())

    def vary(self, replacements: Mapping[Any, Named], id_prefix: str, label_suffix: str) -> Variation:
        """Work the results out again with some figures replaced; all that does not change stays shared.

        Args:
            replacements: figures and what stands for them.
            id_prefix, label_suffix: what ids of the new figures begin with and labels end in.
        """
        rewrite = GraphRewrite(replacements, (), id_prefix, label_suffix, self._order, once=True)
        results = {name: (figure, rewrite.rewrite(figure)) for name, figure in self.results.items()}
        varied = {
            original: again
            for original, again in rewrite.rewritten.items()
            if isinstance(original, Input | Quantity)
            and isinstance(again, Quantity)
            and again.id == f"{id_prefix}{original.id}"  # else it says what another one does
            and original not in replacements
        }
        results_of_checks = Section("Checks", tuple(check.result for check in self.graph.checks.checks))
        rows = {
            sheet: tuple(
                (figure, varied.pop(figure))
                for section in sections
                for figure in section.figures()
                if figure in varied
            )
            for sheet, sections in {"Checks": (results_of_checks,), **self.graph.sheets}.items()
        }
        assert not varied, f"{[*varied]} stand on no sheet"
        return Variation({sheet: figures for sheet, figures in rows.items() if figures}, results)
