"""Decode: what one step of the running batch brings into a pass."""

from __future__ import annotations

from mantile.equations.constants import HALF, TOKENS_PER_STEP
from mantile.equations.memory import Memory
from mantile.equations.roofline import Phase
from mantile.equations.workload import Workload
from mantile.graph.quantity import Quantity, maximum, minimum, where
from mantile.ir.modules import Facts


def decode(inputs: Workload, held: Memory, facts: Facts) -> tuple[Phase, tuple[Quantity, ...]]:
    """One token for every request of a micro-batch; a pipeline runs as many micro-batches as it has stages."""
    requests = Quantity("decode.requests", "Requests in the pass", "request", maximum(1, held.batch / inputs.pp),
                        note="batch ÷ PP: each stage works on its own share, at least 1")  # fmt: skip
    tokens = Quantity("decode.tokens", "Tokens in the pass", "token", requests * TOKENS_PER_STEP, name="tokens")
    length = Quantity("decode.length", "Mean length so far", "token/request", inputs.input_tokens + HALF * inputs.output_tokens)
    context = Quantity("decode.context", "Mean tokens attended to", "token/request",
                       where(facts.sliding_window > 0, minimum(length, facts.sliding_window), length),
                       note="mean length so far, at most the sliding window", name="mean context")  # fmt: skip
    return Phase("decode", requests, tokens, context, decode=True), (requests, tokens, length, context)
