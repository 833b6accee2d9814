"""Norms with their residual, RoPE with the KV write, activations, QK norm, embedding lookup: small streaming kernels."""

from __future__ import annotations

from mantile.equations.constants import ADD_NORM_PASSES, BOTH_WAYS, KEYS_AND_VALUES, RESULT_BYTES, ROPE_KERNELS
from mantile.equations.efficiency import Efficiency
from mantile.equations.roofline import Block, Phase, operation
from mantile.equations.sharding import Sharding
from mantile.graph.quantity import Input, Node
from mantile.ir.modules import Facts, Module


def elementwise(phase: Phase, module: Module, efficiency: Efficiency, plan: Sharding,
                facts: Facts) -> Block:  # fmt: skip
    """One small module: its kernels' overhead plus its bytes at streaming bandwidth."""
    values: Node
    kernels: Node = efficiency["small_kernel"]
    layers: Input | None = facts.layers if module.per_layer else None
    match module.kind:
        case "norm":
            values, note = ADD_NORM_PASSES * facts.hidden_size, "on every rank: add residual, normalise"
        case "qk_norm":
            values, note = BOTH_WAYS * (plan.query_width + plan.kv_width), "each query and key head"
        case "rope":
            values = BOTH_WAYS * (plan.query_width + KEYS_AND_VALUES * plan.kv_width)
            kernels, note = ROPE_KERNELS * efficiency["small_kernel"], "rotate, write keys and values to the cache"
        case "activation":
            values, note = (facts.ffn_input_matrices + 1) * plan.ffn, "matrices read, product written"
        case "embedding":
            values, note = BOTH_WAYS * facts.hidden_size, "one row per token"
        case kind:
            raise AssertionError(f"{module.id}: {kind} is not elementwise")
    return operation(
        phase, module.id, module.label, launch=kernels, traffic=phase.tokens * values * RESULT_BYTES,
        bandwidth=efficiency["streaming"], layers=layers, note=note,
    )  # fmt: skip
