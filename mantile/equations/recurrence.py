"""Layers with a state that does not grow: gated delta rule, KDA, Mamba.

A prompt is worked on in chunks; decode updates the state once per token.
"""

from __future__ import annotations

from mantile.equations.constant import BOTH_WAYS, FLOPS_PER_MAC, RESULT_BYTES, TOKENS_PER_STEP
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, as_node, substitute
from mantile.ir.modules import Module, Recurrence


def recurrence(phase: Phase, module: Module, core: Recurrence, workers: Workers) -> Block:
    """Convolution and state update of one layer."""
    of_state, conv, kept_bytes = (
        workers.rows[f"memory.{name}.{module.id}"]
        for name in ("state_values", "conv_channels", "layer_state")
    )
    efficiency = workers.efficiency
    rows = rows_of(phase, module)
    here: dict[Node, Node] = {core.state: of_state, core.conv: conv}
    if phase.decode and core.chunk is not None:
        here[core.chunk] = as_node(1)  # a chunk of one token
    products = rows(
        "macs",
        "Products per token and rank",
        "channel",
        workers.plan.on_rank(substitute(core.macs, here), module),
        "a token by itself" if phase.decode else "the chunked form",
        called="products",
    )
    times, kept = (
        (BOTH_WAYS, "")
        if workers.speculation is None or not phase.decode
        else (
            1 + workers.checked / TOKENS_PER_STEP,
            "one is read, and one kept behind each token until it is known which are right",
        )
    )
    moved = rows(
        "state_moved", "States read and written", "B", times * phase.rank_requests * kept_bytes, kept
    )
    work = Work(
        launch=phase.in_all_passes(efficiency["state_launch_time"]),
        flops=FLOPS_PER_MAC * phase.rank_tokens * (products + conv * core.kernel),
        rate=efficiency["attention_flops"],
        traffic=moved + phase.rank_tokens * conv * BOTH_WAYS * RESULT_BYTES,
        bandwidth=efficiency["state_bytes"],
        reads=moved,
    )
    note = "one update of the state per token" if phase.decode else "the prompt in chunks"
    return operation(rows, module, work, note)
