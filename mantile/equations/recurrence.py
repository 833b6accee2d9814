"""Layers with a state that does not grow: gated delta rule, KDA, Mamba. In chunks in prefill, one update a token in decode."""

from __future__ import annotations

from mantile.equations.constant import (
    BOTH_WAYS,
    FLOPS_PER_MAC,
    RESULT_BYTES,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.memory import State
from mantile.equations.plan import Sharding
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Node, Quantity, as_node, substitute
from mantile.ir.modules import Module, Recurrence


def recurrence(
    phase: Phase, module: Module, work: Recurrence, kept: State, efficiency: Efficiency, plan: Sharding
) -> Block:
    """Convolution and state update of one layer."""
    prefix = f"{phase.id}.{module.id}"
    here: dict[Node, Node] = {work.state: kept.values, work.conv: kept.conv}
    if phase.decode and work.chunk is not None:
        here[work.chunk] = as_node(1)  # a chunk of one token
    macs = plan.on_rank(substitute(work.macs, here), module)
    products = Quantity(
        f"{prefix}.macs",
        f"Products per token and rank, {module.label}",
        "channel",
        macs,
        name="products",
        note="multiply-adds of one token, by itself"
        if phase.decode
        else "multiply-adds of one token in the chunked form",
    )
    moved = Quantity(
        f"{prefix}.state_moved",
        f"States read and written, {module.label}",
        "B",
        BOTH_WAYS * phase.rank_requests * kept.bytes,
        name="states read and written",
    )
    return operation(
        phase,
        module=module,
        launch=efficiency["state_launch_time"],
        flops=FLOPS_PER_MAC * phase.rank_tokens * (products + kept.conv * work.kernel),
        rate=efficiency["attention_flops"],
        traffic=moved + phase.rank_tokens * kept.conv * BOTH_WAYS * RESULT_BYTES,
        bandwidth=efficiency["state_bytes"],
        setup=(products, moved),
        reads=moved,
        note="one update of the state per token" if phase.decode else "the prompt in chunks",
    )
