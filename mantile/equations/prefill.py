"""Prefill: what one prompt for every attention group, or a static batch of prompts, brings into a pass."""

from __future__ import annotations

from mantile.equations.constant import HALF, ONE_REQUEST, ONE_TOKEN
from mantile.equations.phase import Phase, SpanRows, context, coverage, norm_tokens, tokens_by_scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, floor, maximum, minimum, remainder, where
from mantile.graph.rows import Rows
from mantile.ir.modules import AttentionSpan, ModelGraph


def prefill(workers: Workers, ir: ModelGraph) -> Phase:
    """Continuous batching: a prompt for each attention group. Static batching: all prompts of the batch."""
    inputs, rows = workers.inputs, Rows("prefill")
    prompts = requests(rows, workers)
    of_group = rows(
        "rank_requests",
        "Prompts of an attention group",
        "request",
        maximum(1, prompts / inputs.attention_dp),
    )
    tokens = rows("tokens", "Tokens in the pass", "token", prompts * workers.prompt, called="tokens")
    on_rank = rows(
        "rank_tokens",
        "Tokens of a rank in attention",
        "token",
        of_group * workers.prompt / inputs.cp,
        called="tokens of a rank",
    )
    scoped = tokens_by_scope(rows, tokens, on_rank, workers, ir)
    in_norms = norm_tokens(rows, on_rank, workers)
    contexts = context(rows, ir, lambda span, row: prompt_context(span, row, workers))
    batch = workers.rows["memory.prompt_batch"]
    passes = rows(
        "passes",
        "Passes over the weights",
        "1",
        where(batch > 0, maximum(1, tokens / batch), 1),
        "several where the framework takes a prompt in parts",
        called="passes",
    )
    touched = coverage(rows, tokens / passes, workers, ir)
    return Phase(
        id="prefill",
        requests=prompts,
        tokens=tokens,
        rank_requests=of_group,
        scoped=scoped,
        norm_tokens=in_norms,
        contexts=contexts,
        decode=False,
        passes=passes,
        coverage=touched,
        rows=tuple(rows.rows),
    )


def requests(rows: Rows, workers: Workers) -> Quantity:
    """Prompts in the pass."""
    return rows(
        "requests",
        "Prompts in the pass",
        "request",
        where(
            workers.ranks.continuous > 0,
            minimum(
                workers.inputs.attention_dp * ONE_REQUEST,
                workers.rows["memory.allowed"],
                maximum(1, workers.rows["memory.capacity_sequences"]),
            ),
            workers.rows["memory.batch"],
        ),
        "continuous batching prefills one prompt for each attention group, static batching the whole batch",
    )


def prompt_context(span: AttentionSpan, row: SpanRows, workers: Workers) -> tuple[Node, str]:
    """Tokens that a token of the prompt which is worked out attends to on average, and why.

    Where the head of the prompt was found, all pairs of the prompt but those of its head.
    """
    prompt = workers.inputs.input_tokens
    of_prompt, why = mean_context(span, row, prompt)
    if "prefixes" not in workers.rows.features:
        return of_prompt, why
    found = workers.rows["prefix.found"]
    whole = row("context_whole", "Mean of the whole prompt", of_prompt, why)
    before = row("head", "Head of the prompt that is found", maximum(ONE_TOKEN / ONE_REQUEST, found))
    of_head = row(
        "context_head", "Mean of the head that is found", mean_context(span, row.of("head"), before)[0]
    )
    return (whole * prompt - of_head * found) / workers.rows["prefix.computed"], "of what is not found"


def mean_context(span: AttentionSpan, row: SpanRows, prompt: Node) -> tuple[Node, str]:
    """Tokens a token of the prompt attends to on average, and why."""
    limit = span.length
    if limit is None:
        return HALF * prompt, "every token attends to all before it"
    if span.kind == "chunked":
        rest = row("last_chunk", "Length of the last chunk", remainder(prompt, limit))
        full = floor(prompt / limit)
        return (
            HALF * (full * limit * limit + rest * rest) / prompt,
            "every token attends to those before it in its chunk",
        )
    window = row("window", "Reach of attention", where(limit > 0, minimum(limit, prompt), prompt))
    return window * (1 - HALF * window / prompt), "the first tokens see less than the window"
