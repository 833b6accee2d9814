"""Attention cores: fused and causal in prefill, reading a cache in decode. Ordinary, latent, and the indexer of sparse attention."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_PAIR
from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import Formats
from mantile.equations.plan import Sharding
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Node, Quantity
from mantile.ir.modules import FULL, Attention, Indexer, LatentAttention, Module


def attention(
    phase: Phase, module: Module, work: Attention, formats: Formats, efficiency: Efficiency, plan: Sharding
) -> Block:
    """Scores and weighted values of one layer: MHA, GQA and MQA, full, sliding or chunked.

    Prefill computes at the bf16 rate and moves next to nothing; decode reads the keys and values within reach.
    """
    context = phase.contexts[work.span]
    launch = efficiency["attention_launch_time"]
    flops = (
        FLOPS_PER_PAIR
        * phase.rank_tokens
        * context
        * (plan.on_rank(work.query, module) + plan.on_rank(work.result, module))
    )
    if not phase.decode:
        return operation(
            phase,
            module=module,
            launch=launch,
            flops=flops,
            rate=efficiency["attention_flops"],
            note="causal, fused: scores never leave the chip",
        )
    cache = (
        phase.rank_requests
        * context
        * (plan.on_rank(work.key, module) + plan.on_rank(work.value, module))
        * formats.kv_bytes
    )
    read = _cache(phase, module, cache)
    return operation(
        phase,
        module=module,
        launch=launch,
        flops=flops,
        rate=formats.sixteen_peak,
        traffic=read,
        bandwidth=efficiency["kv_read"],
        setup=(read,),
        reads=read,
        note="reads the KV cache of every request",
    )


def latent_attention(
    phase: Phase,
    module: Module,
    work: LatentAttention,
    formats: Formats,
    efficiency: Efficiency,
    plan: Sharding,
) -> Block:
    """Multi-head latent attention: expanded per head in prefill, absorbed in decode, where every rank reads all latents."""
    context = phase.contexts[work.span]
    launch = efficiency["latent_launch_time"]
    if not phase.decode:
        return operation(
            phase,
            module=module,
            launch=launch,
            rate=efficiency["attention_flops"],
            flops=FLOPS_PER_PAIR * phase.rank_tokens * context * plan.on_rank(work.expanded, module),
            note="keys and values expanded per head; causal, fused",
        )
    read = _cache(
        phase, module, phase.rank_requests * context * plan.on_rank(work.latent, module) * formats.kv_bytes
    )
    return operation(
        phase,
        module=module,
        launch=launch,
        rate=efficiency["latent_flops"],
        flops=FLOPS_PER_PAIR * phase.rank_tokens * context * plan.on_rank(work.absorbed, module),
        traffic=read,
        bandwidth=efficiency["latent_read"],
        setup=(read,),
        reads=read,
        note="queries absorb the key projection; the latent is the same on every rank",
    )


def indexer(
    phase: Phase, module: Module, work: Indexer, formats: Formats, efficiency: Efficiency, plan: Sharding
) -> Block:
    """Scores of every earlier token, from which attention takes the best."""
    context = phase.contexts[FULL]
    flops = (
        FLOPS_PER_PAIR
        * phase.rank_tokens
        * context
        * (plan.on_rank(work.query, module) + plan.on_rank(work.heads, module))
    )
    launch, rate = efficiency["attention_launch_time"], efficiency["attention_flops"]
    if not phase.decode:
        return operation(
            phase, module=module, launch=launch, flops=flops, rate=rate, note="the same on every rank; causal"
        )
    read = _cache(
        phase, module, phase.rank_requests * context * plan.on_rank(work.key, module) * formats.kv_bytes
    )
    return operation(
        phase,
        module=module,
        launch=launch,
        flops=flops,
        rate=rate,
        traffic=read,
        bandwidth=efficiency["kv_read"],
        setup=(read,),
        reads=read,
        note="the same on every rank; reads the indexer's keys of the whole context",
    )


def _cache(phase: Phase, module: Module, body: Node) -> Quantity:
    return Quantity(
        f"{phase.id}.{module.id}.cache_bytes", f"Cache read, {module.label}", "B", body, name="cache read"
    )
