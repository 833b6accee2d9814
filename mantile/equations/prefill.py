"""Prefill: what one prompt, or a static batch of prompts, brings into a pass."""

from __future__ import annotations

from mantile.equations.constants import HALF
from mantile.equations.efficiency import Efficiency
from mantile.equations.memory import Memory
from mantile.equations.moe import coverage
from mantile.equations.roofline import Phase, contexts
from mantile.equations.workload import Workload
from mantile.graph.quantity import Node, Quantity, minimum, remainder, where, whole
from mantile.ir.modules import ModelGraph, Reach


def prefill(inputs: Workload, continuous: Quantity, held: Memory, efficiency: Efficiency,
            ir: ModelGraph) -> tuple[Phase, tuple[Quantity, ...]]:  # fmt: skip
    """One prompt at a time in continuous batching; all prompts of the batch together in static batching."""
    prompts = Quantity("prefill.requests", "Prompts in the pass", "request", where(continuous > 0, 1, held.batch),
                       note="1 in continuous batching, the whole batch in static batching")  # fmt: skip
    tokens = Quantity("prefill.tokens", "Tokens in the pass", "token", prompts * inputs.input_tokens, name="tokens")
    length = inputs.input_tokens

    def mean(reach: Reach, row: str, words: str) -> tuple[list[Quantity], Node, str]:
        limit = reach.length
        if limit is None:
            return [], HALF * length, "half the prompt: every token attends to all before it"
        if reach.kind == "chunked":
            rest = Quantity(f"prefill.last_chunk{row}", f"Length of the last chunk{words}", "token/request", remainder(length, limit))
            full = whole(length / limit)
            return [rest], HALF * (full * limit * limit + rest * rest) / length, "half of a chunk, by what each token has of its own"
        window = Quantity(f"prefill.window{row}", f"Reach of attention{words}", "token/request",
                          where(limit > 0, minimum(limit, length), length),
                          note=f"the prompt, at most the {limit.label.lower()}")  # fmt: skip
        return [window], window * (1 - HALF * window / length), "reach × (1 − half × reach ÷ prompt): the first tokens see less"

    rows, found = contexts("prefill", ir, mean)
    touched = coverage("prefill", tokens, efficiency, ir)
    phase = Phase("prefill", prompts, tokens, found, decode=False, coverage=touched)
    return phase, (prompts, tokens, *rows, *([touched] if touched is not None else []))
