"""Attention cores: fused and causal in prefill, reading a cache in decode.

Ordinary and latent attention, and the indexer of sparse attention.
"""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_PAIR
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, maximum, where
from mantile.graph.rows import Rows
from mantile.ir.modules import FULL, Attention, Indexer, LatentAttention, Module


def attention(phase: Phase, module: Module, core: Attention, workers: Workers) -> Block:
    """Scores and weighted values of one layer: MHA, GQA and MQA, full, sliding or chunked.

    Prefill computes at the bf16 rate and moves next to nothing; decode reads keys and values within reach.
    """
    plan, formats, efficiency = workers.plan, workers.formats, workers.efficiency
    rows, context = rows_of(phase, module), phase.contexts[core.span]
    launch = phase.in_all_passes(efficiency["attention_launch_time"])
    channels = plan.on_rank(core.query, module) + plan.on_rank(core.result, module)
    flops = FLOPS_PER_PAIR * phase.rank_tokens * context * channels
    if not phase.decode:
        work = Work(launch, flops=flops, rate=efficiency["cached_attention_flops"])
        return operation(rows, module, work, "causal, fused: scores never leave the chip")
    if workers.inputs.dcp is not None:
        flops = flops * workers.inputs.dcp  # of the heads of all that share the tokens
    kept = plan.on_rank(core.key, module) + plan.on_rank(core.value, module)
    read = _cache(rows, phase, context, kept * formats.kv_bytes)
    work = Work(
        launch,
        flops=flops,
        rate=formats.sixteen_peak * workers.inputs.compute_speed,
        traffic=read,
        bandwidth=efficiency["kv_read"],
        reads=read,
    )
    return operation(rows, module, work, "reads the KV cache of every request")


def latent_attention(phase: Phase, module: Module, core: LatentAttention, workers: Workers) -> Block:
    """Multi-head latent attention: expanded per head in prefill, absorbed in decode.

    In decode every rank reads all latents. Where tokens of a prompt select theirs, prefill is absorbed too.
    """
    plan, efficiency = workers.plan, workers.efficiency
    rows, context = rows_of(phase, module), phase.contexts[core.span]
    launch = phase.in_all_passes(efficiency["latent_launch_time"])
    pairs = FLOPS_PER_PAIR * phase.rank_tokens * context
    if not phase.decode:
        expanded, note = (
            plan.on_rank(core.expanded, module),
            "keys and values expanded per head; causal, fused",
        )
        selected = core.span.length if core.span.kind == "selected" and core.entry_tokens is None else None
        if selected is not None:
            absorbed = plan.on_rank(core.absorbed, module)
            expanded = rows(
                "pair_channels",
                "Channels for a pair of tokens",
                "channel",
                where(workers.inputs.input_tokens > selected, absorbed, expanded),
                "absorbed where each token of the prompt selects its own",
            )
            note = "of selected tokens latents are read as in decode, else keys and values expanded per head"
        work = Work(launch, flops=pairs * expanded, rate=efficiency["attention_flops"])
        return operation(rows, module, work, note)
    absorbed = plan.on_rank(core.absorbed, module)
    if workers.inputs.dcp is not None:
        absorbed = absorbed * workers.inputs.dcp  # of the heads of all that share the tokens
    read = _cache(rows, phase, context, plan.on_rank(core.latent, module) * workers.formats.kv_bytes)
    work = Work(
        launch,
        flops=pairs * absorbed,
        rate=efficiency["latent_flops"],
        traffic=read,
        bandwidth=efficiency["latent_read"],
        reads=read,
    )
    return operation(
        rows, module, work, "queries absorb the key projection; the latent is the same on every rank"
    )


def indexer(phase: Phase, module: Module, core: Indexer, workers: Workers) -> Block:
    """Scores of every earlier token, from which attention takes the best."""
    plan, efficiency = workers.plan, workers.efficiency
    rows, context = rows_of(phase, module), phase.contexts[FULL]
    launch = phase.in_all_passes(efficiency["attention_launch_time"])
    rate = rows(
        "score_rate",
        "FLOP/s that scores reach",
        "FLOP/s",
        efficiency["attention_flops"]
        * maximum(1, workers.hardware.peaks["fp8"] / workers.formats.sixteen_peak),
        "queries and keys are fp8 where the accelerator multiplies in it",
    )
    channels = plan.on_rank(core.query, module) + plan.on_rank(core.heads, module)
    flops = FLOPS_PER_PAIR * phase.rank_tokens * context * channels
    if not phase.decode:
        work = Work(launch, flops=flops, rate=rate)
        return operation(rows, module, work, "the same on every rank; causal")
    read = _cache(rows, phase, context, plan.on_rank(core.key, module) * workers.formats.kept_bytes(core))
    work = Work(launch, flops=flops, rate=rate, traffic=read, bandwidth=efficiency["kv_read"], reads=read)
    return operation(
        rows, module, work, "the same on every rank; reads the indexer's keys of the whole context"
    )


def _cache(rows: Rows, phase: Phase, context: Quantity, bytes_per_token: Node) -> Quantity:
    """What of the cache one step reads: of every request, the tokens within reach."""
    return rows("cache_bytes", "Cache read", "B", phase.rank_requests * context * bytes_per_token)
