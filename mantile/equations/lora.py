"""LoRA adapters in a pass: what those cost that its requests ask for. Their memory stands in adapters.eq.

Every token goes through the two narrow products of its adapter beside each matrix, in kernels of their own
that follow one another. Each request asks for one adapter, all equally often.
"""

from __future__ import annotations

from dataclasses import replace

from mantile.equations.constant import FLOPS_PER_MAC, ONE_REQUEST, SATURATED, VECTOR_BYTES
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, maximum, minimum, where
from mantile.ir.modules import LowRank, ModelGraph, Module


def lora(phase: Phase, ir: ModelGraph, workers: Workers) -> Block | None:
    """The adapters of a pass as one block; None where no scenario states any.

    Weights are read once for each adapter that some request asks for, FLOPs are those of every token once.
    """
    inputs, efficiency = workers.inputs, workers.efficiency
    count = inputs.lora_adapters
    if count is None:
        return None
    products, started = workers.rows["adapters.products"], workers.rows["adapters.kernels"]
    module = Module("lora", "lora", "Adapters", "LoRA", "lora", LowRank())
    rows = rows_of(phase, module)
    used = rows("used", "There are adapters", "flag", where(count > 0, 1, 0))
    draws = rows(
        "draws",
        "Requests that choose an adapter",
        "1",
        minimum(phase.rank_requests / ONE_REQUEST, SATURATED * maximum(1, count)),
        "of an attention group; so many that no more change anything",
    )
    touched = rows(
        "touched",
        "Adapters that some request asks for",
        "number",
        count * (1 - (1 - 1 / maximum(1, count)) ** draws),
        "one is left out by chance",
    )
    parameters: Node = products
    multiplied: Node = products * phase.rank_tokens
    if workers.plan.experts is not None:
        assert phase.coverage is not None
        of_experts = workers.rows["adapters.of_experts"]
        read_there = rows(
            "of_experts",
            "Parameters of an adapter beside experts that are touched",
            "parameter",
            of_experts * phase.coverage,
        )
        parameters = parameters + read_there
        chosen = phase.scoped["experts"] * ir.facts["experts_per_token"] / workers.plan.experts.per_rank
        multiplied = multiplied + rows(
            "by_experts", "Tokens through adapters of experts", "parameter*token", of_experts * chosen
        )
    read = rows("weight_bytes", "Weight bytes", "B", phase.in_all_passes(touched * parameters * VECTOR_BYTES))
    work = Work(
        launch=phase.in_all_passes(used * started * efficiency["gemm_launch_time.attention"]),
        flops=FLOPS_PER_MAC * used * multiplied,
        rate=efficiency["gemm_flops.attention"],
        traffic=read,
        bandwidth=efficiency["gemm_bytes.attention"],
        reads=read,
    )
    block = operation(rows, module, work, "beside the matrices of all layers; nothing without adapters")
    return replace(block, kernels=started)
