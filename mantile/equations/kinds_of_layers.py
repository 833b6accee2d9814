"""Figures by kind of layer, where a model has several."""

from __future__ import annotations

from mantile.graph.quantity import Input, Node
from mantile.ir.modules import ModelGraph


def kinds_of(ir: ModelGraph, layers: Node | None) -> list[Input]:
    """The kinds of layer, by their count, that a number of layers is the sum of."""
    return [kind.count for kind in ir.layers if any(module.layers is layers for module in kind.modules)]
