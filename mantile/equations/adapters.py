"""Which modules have LoRA adapters beside their matrices; what these take stands in adapters.eq."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Quantity, defined
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module

_PRODUCTS = 4
"""Modules in one formula."""


def make_adapters(rows: Equations, ir: ModelGraph, plan: Sharding) -> None:
    """Make the rows of adapters."""
    carriers = dict.fromkeys(module for kind in ir.layers for module in kind.modules if _carries(module))
    spaces = {module: _adapted(rows, module, plan) for module in carriers}
    rows.make_in("adapted module", *spaces.values())
    for number, kind in enumerate(ir.layers):
        own = (spaces[module] for module in kind.modules if module in spaces)
        rows.make_in(f"module of kind {number}", *own)
    several = len(ir.layers) > 1
    facts = (
        {"kind": ".".join(kind.blocks), "name": f", {kind.name}" if several else ""} for kind in ir.layers
    )
    rows.make_in("adapted kind", *(Space(facts=of | {"k": f"{number}"}) for number, of in enumerate(facts)))
    plain = [space for module, space in spaces.items() if isinstance(module.operation, MatMul)]
    parts = [plain[first : first + _PRODUCTS] for first in range(0, len(plain), _PRODUCTS)] or [[]]
    for number, part in enumerate(parts, 1):
        rows.make_in(f"module of part {number}", *part)
    numbers = range(1, len(parts) + 1) if len(parts) > 1 else ()
    rows.make_in("part of an adapter", *(Space(facts={"p": f"{number}"}) for number in numbers))
    rows.make_in("adapter", Space(features=frozenset({"in_parts"} if numbers else {})))
    rows.make_in("adapted experts", *(space for space in spaces.values() if space not in plain))
    _make_groups(rows, spaces.values())


def _carries(module: Module) -> bool:
    """Whether an adapter has matrices beside those of a module."""
    work = module.operation
    if isinstance(work, MatMul):
        return work.weights in ("attention", "ffn") and work.rows == "tokens" and module.layers is not None
    return isinstance(work, GroupedMatMul)


def _adapted(rows: Equations, module: Module, plan: Sharding) -> Space:
    """A module with channels in of every matrix, and channels out, on a rank."""
    work, layers = module.operation, module.layers
    assert isinstance(work, MatMul | GroupedMatMul) and isinstance(layers, Input | Quantity)
    matrices = defined(
        f"adapters.matrices.{module.id}",
        f"Matrices with an adapter, {module.label}",
        "number",
        max(1, sum(tensor.matrix for tensor in module.tensors)),
        "of the list of tensors",
    )
    rows.know(matrices, layers)
    rows.know_as(f"adapters.inputs_of.{module.id}", plan.on_rank(work.inputs, module))
    rows.know_as(f"adapters.outputs_of.{module.id}", plan.on_rank(work.outputs, module))
    facts = {"m": module.id, "label": module.label, "layers": layers.id}
    return Space(facts=facts, features=frozenset({"of_experts"} if isinstance(work, GroupedMatMul) else {}))


def _make_groups(rows: Equations, adapted: Iterable[Space]) -> None:
    """Count the modules of a layer, by the layers that have them."""
    groups = []
    for number, (layers, count) in enumerate(Counter(space.facts["layers"] for space in adapted).items(), 1):
        once = defined(
            f"adapters.modules.{number}",
            f"Modules of a layer with an adapter, group {number}",
            "number",
            count,
            "of the list of modules",
        )
        rows.know(once)
        groups.append(Space(facts={"g": f"{number}", "layers": layers}))
    rows.make_in("group of adapted modules", *groups)
