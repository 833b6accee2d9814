"""Prefill: what one prompt, or a static batch of prompts, brings into a pass."""

from __future__ import annotations

from mantile.equations.constants import HALF
from mantile.equations.memory import Memory
from mantile.equations.roofline import Phase
from mantile.equations.workload import Workload
from mantile.graph.quantity import Quantity, minimum, where
from mantile.ir.modules import Facts


def prefill(inputs: Workload, continuous: Quantity, held: Memory, facts: Facts) -> tuple[Phase, tuple[Quantity, ...]]:
    """One prompt at a time in continuous batching; all prompts of the batch together in static batching."""
    prompts = Quantity("prefill.requests", "Prompts in the pass", "request", where(continuous > 0, 1, held.batch),
                       note="1 in continuous batching, the whole batch in static batching")  # fmt: skip
    tokens = Quantity("prefill.tokens", "Tokens in the pass", "token", prompts * inputs.input_tokens, name="tokens")
    window = Quantity("prefill.window", "Reach of attention", "token/request",
                      where(facts.sliding_window > 0, minimum(facts.sliding_window, inputs.input_tokens), inputs.input_tokens),
                      note="the prompt, at most the sliding window")  # fmt: skip
    context = Quantity("prefill.context", "Mean tokens attended to", "token/request",
                       window * (1 - HALF * window / inputs.input_tokens),
                       note="half the prompt when attention reaches back to its start (causal)", name="mean context")  # fmt: skip
    return Phase("prefill", prompts, tokens, context, decode=False), (prompts, tokens, window, context)
