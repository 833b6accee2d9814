"""The attention core: fused and causal in prefill, reading the KV cache in decode. MHA, GQA and MQA alike."""

from __future__ import annotations

from mantile.equations.constants import FLOPS_PER_PAIR, KEYS_AND_VALUES, QK_AND_PV
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.roofline import Block, Phase, operation
from mantile.equations.sharding import Sharding
from mantile.graph.quantity import Input


def attention(phase: Phase, hardware: Hardware, efficiency: Efficiency, plan: Sharding, layers: Input) -> Block:
    """Scores and weighted values of one layer.

    Prefill computes at the bf16 rate and moves next to nothing; decode reads the keys and values of the whole context.
    """
    launch = efficiency["attention_launch_time"]
    flops = FLOPS_PER_PAIR * QK_AND_PV * phase.tokens * phase.context * plan.query_width
    if not phase.decode:
        return operation(
            phase, "attention", "Attention core", launch=launch, flops=flops,
            rate=efficiency["attention_flops"],
            layers=layers, note="causal, fused: scores never leave the chip",
        )  # fmt: skip
    return operation(
        phase, "attention", "Attention core", launch=launch, flops=flops, rate=hardware.peak_bf16,
        traffic=phase.requests * phase.context * KEYS_AND_VALUES * plan.kv_width * hardware.kv_bytes,
        bandwidth=efficiency["kv_read"],
        layers=layers, note="reads the KV cache of every request",
    )  # fmt: skip
