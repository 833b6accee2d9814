"""Prefill: what one prompt for every attention group, or a static batch of prompts, brings into a pass."""

from __future__ import annotations

from mantile.equations.constant import HALF, ONE_REQUEST
from mantile.equations.moe import coverage
from mantile.equations.roofline import Phase, contexts, tokens_by_scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, floor, maximum, minimum, remainder, where
from mantile.ir.modules import AttentionSpan, ModelGraph


def prefill(side: Workers, ir: ModelGraph) -> tuple[Phase, tuple[Quantity, ...]]:
    """A prompt for each attention group in continuous batching; all prompts of the batch together in static batching."""
    inputs, held = side.inputs, side.memory
    prompts = Quantity(
        "prefill.requests",
        "Prompts in the pass",
        "request",
        where(
            side.ranks.continuous > 0, minimum(inputs.attention_dp * ONE_REQUEST, held.requests), held.batch
        ),
        note="one for every attention-DP group in continuous batching, the whole batch in static batching",
    )
    busiest = Quantity(
        "prefill.rank_requests",
        "Prompts of an attention group",
        "request",
        maximum(1, prompts / inputs.attention_dp),
        note="prompts in the pass ÷ attention-DP, at least 1",
    )
    tokens = Quantity(
        "prefill.tokens", "Tokens in the pass", "token", prompts * inputs.input_tokens, name="tokens"
    )
    on_rank = Quantity(
        "prefill.rank_tokens",
        "Tokens of a rank in attention",
        "token",
        busiest * inputs.input_tokens / inputs.cp,
        name="tokens of a rank",
        note="prompts of an attention group × input tokens ÷ CP",
    )
    length = inputs.input_tokens

    def mean(reach: AttentionSpan, row: str, words: str) -> tuple[list[Quantity], Node, str]:
        limit = reach.length
        if limit is None:
            return [], HALF * length, "half the prompt: every token attends to all before it"
        if reach.kind == "chunked":
            rest = Quantity(
                f"prefill.last_chunk{row}",
                f"Length of the last chunk{words}",
                "token/request",
                remainder(length, limit),
            )
            full = floor(length / limit)
            return (
                [rest],
                HALF * (full * limit * limit + rest * rest) / length,
                "half of a chunk, by what each token has of its own",
            )
        window = Quantity(
            f"prefill.window{row}",
            f"Reach of attention{words}",
            "token/request",
            where(limit > 0, minimum(limit, length), length),
            note=f"the prompt, at most the {limit.label.lower()}",
        )
        return (
            [window],
            window * (1 - HALF * window / length),
            "reach × (1 − half × reach ÷ prompt): the first tokens see less",
        )

    rows, found = contexts("prefill", ir, mean)
    touched = coverage("prefill", tokens, side.efficiency, ir)
    scoped, norms, more = tokens_by_scope("prefill", tokens, on_rank, side, ir)
    phase = Phase("prefill", prompts, tokens, busiest, scoped, norms, found, decode=False, coverage=touched)
    return phase, (
        prompts,
        busiest,
        tokens,
        on_rank,
        *more,
        *rows,
        *([touched] if touched is not None else []),
    )
