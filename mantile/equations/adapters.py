"""Which modules have LoRA adapters beside them. What these take in memory stands in adapters.eq."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Node
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module


def make_adapters(rows: Equations, ir: ModelGraph, plan: Sharding) -> None:
    """Make the rows of adapters: of modules, of kinds of layers, of the model."""
    modules = dict.fromkeys(module for kind in ir.layers for module in kind.modules if _carries(module))
    rows.make_in("adapted module", *(_module(rows, module, plan) for module in modules))
    rows.make_in(
        "adapted layer",
        *(
            Space(
                facts={
                    "kind": ".".join(kind.blocks),
                    "name": f" {kind.name}" if len(ir.layers) > 1 else "",
                    "sides": " + ".join(
                        f"adapters.sides.{each.id}" for each in kind.modules if each in modules
                    ),
                }
            )
            for kind in ir.layers
        ),
    )
    of_layers: dict[Node, list[Module]] = {}
    for module in modules:
        assert module.layers is not None
        of_layers.setdefault(module.layers, []).append(module)
    groups = {f"{number}": layers for number, layers in enumerate(of_layers, 1)}
    for number, layers in groups.items():
        rows.know_as(f"adapters.layers.{number}", layers)
    rows.make_in(
        "group of adapted layers",
        *(Space(facts={"n": n, "count": str(len(of_layers[layers]))}) for n, layers in groups.items()),
    )
    in_layers = {
        module: f"adapters.sides.{module.id} * adapters.layers.{number}"
        for number, layers in groups.items()
        for module in of_layers[layers]
    }
    plain, grouped = (
        [in_layers[module] for module in modules if isinstance(module.operation, kind)]
        for kind in (MatMul, GroupedMatMul)
    )
    facts = {
        "products": _sum(rows, "products_of", "part of adapters", plain),
        "of_experts": _sum(rows, "of_experts_of", "part of adapters of experts", grouped),
        "kernels": " + ".join(f"adapters.modules.{n} * adapters.layers.{n}" for n in groups),
    }
    rows.make_in("adapted model", Space(facts=facts, features=frozenset({"grouped"} if grouped else {})))


def _carries(module: Module) -> bool:
    """Whether an adapter has matrices beside those of a module."""
    work = module.operation
    if isinstance(work, MatMul):
        return work.weights in ("attention", "ffn") and work.rows == "tokens" and module.layers is not None
    return isinstance(work, GroupedMatMul)


def _module(rows: Equations, module: Module, plan: Sharding) -> Space:
    """A module with adapters: its channels in and out on a rank, and how many matrices it has."""
    work = module.operation
    assert isinstance(work, MatMul | GroupedMatMul)
    sides: Mapping[str, Node] = {"inputs": work.inputs, "outputs": work.outputs}
    for side, channels in sides.items():
        rows.know_as(f"adapters.{side}.{module.id}", plan.on_rank(channels, module))
    facts = {side: f"adapters.{side}.{module.id}" for side in sides}
    matrices = max(1, sum(tensor.matrix for tensor in module.tensors))
    facts |= {"m": module.id, "name": module.label, "count": str(matrices)}
    return Space(facts=facts, features=frozenset({"grouped"} if isinstance(work, GroupedMatMul) else {}))


_MOST = 4
"""Modules that a formula may add."""


def _sum(rows: Equations, name: str, each: str, parts: list[str]) -> str:
    """What adds up parts; of many, some in a row each."""
    if len(parts) <= _MOST:
        return " + ".join(parts) or "0"
    some = [parts[start : start + _MOST] for start in range(0, len(parts), _MOST)]
    rows.make_in(each, *(Space(facts={"n": f"{n}", "sum": " + ".join(of)}) for n, of in enumerate(some, 1)))
    return " + ".join(f"adapters.{name}.{n}" for n, _ in enumerate(some, 1))
