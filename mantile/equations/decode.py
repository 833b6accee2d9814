"""Decode: what one step of the running batch brings into a pass."""

from __future__ import annotations

from mantile.equations.constant import HALF, ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.moe import coverage
from mantile.equations.roofline import Phase, contexts, tokens_by_scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, maximum, minimum, where
from mantile.ir.modules import AttentionSpan, ModelGraph


def decode(side: Workers, ir: ModelGraph) -> tuple[Phase, tuple[Quantity, ...], Quantity]:
    """One token for every request of a micro-batch; the phase, its rows, and the number of micro-batches of a pipeline."""
    inputs = side.inputs
    parts = Quantity(
        "decode.microbatches",
        "Micro-batches",
        "number",
        where(
            inputs.microbatches > 0,
            inputs.microbatches,
            minimum(inputs.pp, maximum(1, side.memory.batch / ONE_REQUEST)),
        ),
        note="as asked, or as many as stages, at most the batch",
    )
    requests = Quantity(
        "decode.requests",
        "Requests in the pass",
        "request",
        maximum(1, side.memory.batch / parts),
        note="batch ÷ micro-batches: each stage works on one of them, at least 1 request",
    )
    busiest = Quantity(
        "decode.rank_requests",
        "Requests of an attention group",
        "request",
        maximum(1, requests / inputs.attention_dp),
        note="requests in the pass ÷ attention-DP, at least 1",
    )
    tokens = Quantity(
        "decode.tokens", "Tokens in the pass", "token", requests * TOKENS_PER_STEP, name="tokens"
    )
    on_rank = Quantity(
        "decode.rank_tokens",
        "Tokens of a rank in attention",
        "token",
        busiest * TOKENS_PER_STEP,
        name="tokens of a rank",
    )
    length = Quantity(
        "decode.length",
        "Mean length so far",
        "token/request",
        inputs.input_tokens + HALF * inputs.output_tokens,
    )

    def mean(reach: AttentionSpan, row: str, words: str) -> tuple[list[Quantity], Node, str]:
        limit = reach.length
        if limit is None:
            return [], length / inputs.cp, "mean length so far ÷ CP"
        if reach.kind == "chunked":
            return (
                [],
                where(length <= limit, length, HALF * limit) / inputs.cp,
                "mean length so far, half a chunk once it is past the first, ÷ CP",
            )
        return (
            [],
            where(limit > 0, minimum(length, limit), length) / inputs.cp,
            f"mean length so far, at most the {limit.label.lower()}, ÷ CP",
        )

    rows, found = contexts("decode", ir, mean)
    touched = coverage("decode", tokens, side.efficiency, ir)
    scoped, norms, more = tokens_by_scope("decode", tokens, on_rank, side, ir)
    phase = Phase("decode", requests, tokens, busiest, scoped, norms, found, decode=True, coverage=touched)
    return (
        phase,
        (
            parts,
            requests,
            busiest,
            tokens,
            on_rank,
            *more,
            length,
            *rows,
            *([touched] if touched is not None else []),
        ),
        parts,
    )
