"""Small streaming kernels: norms with residual, RoPE and KV write, activations, gates, routing, embedding."""

from __future__ import annotations

from mantile.equations.constant import ADD_NORM_PASSES, BOTH_WAYS, RESULT_BYTES, TWO_KERNELS
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node
from mantile.ir.modules import Elementwise, Module

_NOTES = {
    "norm": "on every rank: add residual, normalise",
    "qk_norm": "each query and key head",
    "rope": "rotate, write keys and values to the cache",
    "activation": "matrices read, product written",
    "embedding": "one row per token",
    "gate": "gate and result read, product written",
    "sorted": "one copy per token and expert; its launch is in that of the grouped products",
    "routing": "scores, the best experts, tokens sorted by expert",
}


def elementwise(phase: Phase, module: Module, small: Elementwise, workers: Workers) -> Block:
    """One small module: its kernels' overhead plus its bytes at streaming bandwidth."""
    efficiency, width = workers.efficiency, workers.plan.on_rank(small.width, module)
    kernels: Node = efficiency["small_kernel"]
    values: Node = BOTH_WAYS * width
    if small.kind == "norm":
        values = ADD_NORM_PASSES * width
    elif small.kind in ("activation", "sorted"):
        values = width
    elif small.kind in ("rope", "routing"):
        kernels = TWO_KERNELS * kernels
    work = Work(
        launch=None if small.kind == "sorted" else phase.in_all_passes(kernels),
        traffic=phase.tokens_of(module) * values * RESULT_BYTES,
        bandwidth=efficiency["streaming"],
    )
    return operation(rows_of(phase, module), module, work, _NOTES[small.kind])
