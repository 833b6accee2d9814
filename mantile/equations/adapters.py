"""LoRA adapters in memory: two narrow matrices beside every matrix of the layers.

An engine reserves as many places as it is told, each of the largest rank, for every matrix of mixers, FFNs
and experts; router, embedding and LM head have none. On the side that tensor parallelism splits, a rank has
its part of an adapter, on the other all of it, as in vLLM and SGLang by default. There are rows only where a
scenario states adapters. What they cost in a pass is in lora.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import NARROW_PRODUCTS, VECTOR_BYTES
from mantile.equations.inputs import Workload
from mantile.equations.plan import Sharding
from mantile.graph.quantity import Input, Node, Quantity, Section, as_node, defined, sum_of
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module


@dataclass(frozen=True)
class Adapters:
    """Adapters of a rank.

    Args:
        layers: weights of a layer of each kind, adapters included.
        products: parameters of one adapter beside plain matrices, in all layers; `of_experts` beside experts,
            None in a model without.
        kernels: that a pass starts for them.
    """

    layers: Mapping[Input, Quantity]
    products: Quantity
    of_experts: Quantity | None
    kernels: Quantity
    section: Section


def adapters(
    ir: ModelGraph, inputs: Workload, plan: Sharding, stored: Mapping[Input, Quantity]
) -> Adapters | None:
    """What a rank holds of adapters; None where no scenario states any.

    Args:
        stored: weights of a layer of each kind, without adapters.
    """
    count, rank = inputs.lora_adapters, inputs.lora_rank
    if count is None or rank is None:
        return None
    rows = Rows("adapters")
    carriers = dict.fromkeys(module for kind in ir.layers for module in kind.modules if _carries(module))
    sides = {module: _sides(rows, module, plan) for module in carriers}
    layers: dict[Input, Quantity] = {}
    for kind in ir.layers:
        name = ".".join(kind.blocks)
        of_kind = f" {kind.name}" if len(ir.layers) > 1 else ""
        own = [sides[module] for module in kind.modules if module in sides]
        held = rows(
            f"held.{name}",
            f"Adapters of a{of_kind} layer",
            "B",
            count
            * rank
            * rows.added(f"sides.{name}", f"Sides of a{of_kind} layer", "channel", own)
            * VECTOR_BYTES,
            "in 16 bit",
        )
        layers[kind.count] = rows(
            f"layer.{name}", f"Weights of a{of_kind} layer, adapters included", "B", stored[kind.count] + held
        )
    plain, grouped = (
        [module for module in sides if isinstance(module.operation, kind)] for kind in (MatMul, GroupedMatMul)
    )
    return Adapters(
        layers=layers,
        products=_in_all_layers(rows, "products", "Parameters of an adapter", plain, sides, rank),
        of_experts=_in_all_layers(
            rows, "of_experts", "Parameters of an adapter of experts", grouped, sides, rank
        )
        if grouped
        else None,
        kernels=_kernels(rows, sides),
        section=rows.section("Adapters", "on a rank, beside the weights"),
    )


def _carries(module: Module) -> bool:
    """Whether an adapter has matrices beside those of a module."""
    work = module.operation
    if isinstance(work, MatMul):
        return work.weights in ("attention", "ffn") and work.rows == "tokens" and module.layers is not None
    return isinstance(work, GroupedMatMul)


def _sides(rows: Rows, module: Module, plan: Sharding) -> Quantity:
    """Channels in of every matrix, and channels out, on a rank; of all its experts."""
    work = module.operation
    assert isinstance(work, MatMul | GroupedMatMul)
    matrices = defined(
        f"adapters.matrices.{module.id}",
        f"Matrices with an adapter, {module.label}",
        "number",
        max(1, sum(tensor.matrix for tensor in module.tensors)),
        "of the list of tensors",
    )
    rows.add(matrices)
    channels: Node = matrices * plan.on_rank(work.inputs, module) + plan.on_rank(work.outputs, module)
    if isinstance(work, GroupedMatMul):
        channels = plan.on_rank(work.count, module) * channels
    return rows(f"sides.{module.id}", f"Channels in and out on a rank, {module.label}", "channel", channels)


def _in_all_layers(
    rows: Rows, name: str, label: str, modules: list[Module], sides: Mapping[Module, Quantity], rank: Input
) -> Quantity:
    parts: list[Node] = [sides[module] * _layers(module) for module in modules]
    total = rows.added(f"{name}_of", label, "channel", parts or [as_node(0)], most=4)
    return rows(name, f"{label} on a rank", "parameter", rank * total, "of all layers")


def _kernels(rows: Rows, sides: Mapping[Module, Quantity]) -> Quantity:
    """Kernels of a pass: for the module of a layer one that narrows and one that widens."""
    of_layers: dict[Node, list[Module]] = {}
    for module in sides:
        of_layers.setdefault(_layers(module), []).append(module)
    parts: list[Node] = []
    for number, (layers, modules) in enumerate(of_layers.items(), start=1):
        once = defined(
            f"adapters.modules.{number}",
            f"Modules of a layer with an adapter, group {number}",
            "number",
            len(modules),
            "of the list of modules",
        )
        rows.add(once)
        parts.append(once * layers)
    return rows(
        "kernels",
        "Kernels of adapters in a pass",
        "number",
        NARROW_PRODUCTS * sum_of(parts),
        "narrow, then widen",
    )


def _layers(module: Module) -> Node:
    assert module.layers is not None
    return module.layers
