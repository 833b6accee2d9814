"""Prefill: what one prompt for every attention group, or a static batch of prompts, brings into a pass.

Where the formula of an id is, for prefill and decode alike ("decode.qkv.time" is ".MODULE.time"):

    id behind "prefill" or "decode"              formula
    ------------------------------------------   -------------------------------------------------------------
    .requests .rank_requests .tokens             prefill.prefill, decode.decode: what enters the pass
      .rank_tokens .length
    .most .batch .microbatches                   decode.decode, decode.microbatches
    .context .window .last_chunk                 phase.context, of prefill.mean_context, decode.mean_context
    .norm_tokens                                 phase.norm_tokens
    .shared_tokens .expert_tokens                phase.tokens_by_scope
    .coverage                                    moe.coverage
    .MODULE.flops .bytes .compute_time           roofline.operation: every module is a block of this form,
      .memory_time .launch_time .limit             of the work that the function for its kind hands over:
      .layer_time .bound .time
    .qkv .output .ffn_up .ffn_down .router       linear.linear: matrix products, with .inputs .outputs
      .lm_head .latent_in .linear_in ...           .parameters .weight_bytes
    .experts_up .experts_down                    moe.experts: grouped matrix products, with .rows
    .attention                                   attention.attention, attention.latent_attention,
                                                   with .cache_bytes
    .indexer                                     attention.indexer
    .linear_core .mamba_core ...                 recurrence.recurrence, with .macs .state_moved
    .embedding .ffn_norm .rope .activation ...   elementwise.elementwise
    .vision                                      vision.vision
    .lora                                        lora.lora
    .all_reduce .sequence .gather .dispatch      messages.eq: messages between ranks, of the fixed times and
      .combine .context .p2p .after                times per byte of network.eq
    .host .step                                  forward.host, forward.step
    .pass .time                                  forward.forward: seconds by module, and their sum
    .overhead                                    forward.overhead
    .compute .memory .network                    forward.by_limit
    .bound .bottleneck                           forward.bound
    .flops .read .bytes                          forward.flops, forward.bytes_read
    .peak .mfu .mbu                              forward.mfu

Which module is of which kind says `forward.block`; what modules a model has, mantile/ir.
"""

from __future__ import annotations

from mantile.equations.constant import HALF, ONE_REQUEST, ONE_TOKEN
from mantile.equations.moe import coverage
from mantile.equations.phase import Phase, SpanRows, context, norm_tokens, tokens_by_scope
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
