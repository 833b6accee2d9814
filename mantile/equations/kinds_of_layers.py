"""Figures by kind of layer, where a model has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.graph.quantity import Input, Node, Quantity, as_node, sum_of
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph


def kinds_of(ir: ModelGraph, layers: Node | None) -> list[Input]:
    """The kinds of layer, by their count, that a number of layers is the sum of."""
    return [kind.count for kind in ir.layers if any(module.layers is layers for module in kind.modules)]


def by_kind(
    rows: Rows,
    ir: ModelGraph,
    name: str,
    label: str,
    unit: str,
    members: Mapping[Input, Sequence[Node]],
) -> dict[Input, Quantity]:
    """What the parts of a layer come to, for each kind of layer."""
    return {
        kind.count: rows(
            f"{name}.{'.'.join(kind.blocks)}",
            f"{label} {kind.name} layer" if len(ir.layers) > 1 else f"{label} layer",
            unit,
            sum_of(list(members[kind.count]) or [as_node(0)]),
        )
        for kind in ir.layers
    }
