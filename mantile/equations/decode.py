"""Decode: what one step of the running batch brings into a pass."""

from __future__ import annotations

from mantile.equations.constants import HALF, TOKENS_PER_STEP
from mantile.equations.efficiency import Efficiency
from mantile.equations.memory import Memory
from mantile.equations.moe import coverage
from mantile.equations.roofline import Phase, contexts
from mantile.equations.workload import Workload
from mantile.graph.quantity import Node, Quantity, maximum, minimum, where
from mantile.ir.modules import ModelGraph, Reach


def decode(inputs: Workload, held: Memory, efficiency: Efficiency, ir: ModelGraph) -> tuple[Phase, tuple[Quantity, ...]]:
    """One token for every request of a micro-batch; a pipeline runs as many micro-batches as it has stages."""
    requests = Quantity("decode.requests", "Requests in the pass", "request", maximum(1, held.batch / inputs.pp),
                        note="batch ÷ PP: each stage works on its own share, at least 1")  # fmt: skip
    tokens = Quantity("decode.tokens", "Tokens in the pass", "token", requests * TOKENS_PER_STEP, name="tokens")
    length = Quantity("decode.length", "Mean length so far", "token/request", inputs.input_tokens + HALF * inputs.output_tokens)

    def mean(reach: Reach, row: str, words: str) -> tuple[list[Quantity], Node, str]:
        limit = reach.length
        if limit is None:
            return [], length, "mean length so far"
        if reach.kind == "chunked":
            return [], where(length <= limit, length, HALF * limit), "mean length so far; half a chunk once it is past the first"
        return [], where(limit > 0, minimum(length, limit), length), f"mean length so far, at most the {limit.label.lower()}"

    rows, found = contexts("decode", ir, mean)
    touched = coverage("decode", tokens, efficiency, ir)
    phase = Phase("decode", requests, tokens, found, decode=True, coverage=touched)
    return phase, (requests, tokens, length, *rows, *([touched] if touched is not None else []))
