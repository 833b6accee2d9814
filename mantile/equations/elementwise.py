"""Norms with their residual, RoPE with the KV write, activations, gates, routing, embedding lookup: small streaming kernels."""

from __future__ import annotations

from mantile.equations.constant import ADD_NORM_PASSES, BOTH_WAYS, RESULT_BYTES, TWO_KERNELS
from mantile.equations.efficiency import Efficiency
from mantile.equations.plan import Sharding
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Node
from mantile.ir.modules import Elementwise, Module

_NOTES = {
    "norm": "on every rank: add residual, normalise",
    "qk_norm": "each query and key head",
    "rope": "rotate, write keys and values to the cache",
    "activation": "matrices read, product written",
    "embedding": "one row per token",
    "gate": "gate and result read, product written",
    "routing": "scores, the best experts, tokens sorted by expert",
}


def elementwise(
    phase: Phase, module: Module, work: Elementwise, efficiency: Efficiency, plan: Sharding
) -> Block:
    """One small module: its kernels' overhead plus its bytes at streaming bandwidth."""
    width = plan.on_rank(work.width, module)
    kernels: Node = efficiency["small_kernel"]
    values: Node = BOTH_WAYS * width
    if work.kind == "norm":
        values = ADD_NORM_PASSES * width
    elif work.kind == "activation":
        values = width
    elif work.kind in ("rope", "routing"):
        kernels = TWO_KERNELS * kernels
    return operation(
        phase,
        module=module,
        launch=kernels,
        traffic=phase.tokens_of(module) * values * RESULT_BYTES,
        bandwidth=efficiency["streaming"],
        note=_NOTES[work.kind],
    )
