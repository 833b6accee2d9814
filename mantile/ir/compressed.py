"""Attention of DeepSeek-V4, over a window and compressed entries: one KV head whose keys are its values."""

from __future__ import annotations

from mantile.graph.quantity import Node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, projection
from mantile.ir.latent import index_query, query_from_latent, query_latent_norm, selected_span
from mantile.ir.modules import AttentionSpan, Indexer, LatentAttention, Module

_KIND = "mqa, sliding"


def compressed_attention(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of one block.

    Every layer attends to the tokens of a window. Where there is a compressor, several tokens become one
    entry beside them, and all entries are attended to, or those that an indexer leaves. Window and entries
    share one softmax; they are two cores here, because they look back differently. What a core costs and
    keeps per entry is stated per token. Pooling tokens into an entry and rotating the results back count as
    nothing.
    """
    query = builder.width(
        "query_width", "Width of all query heads", facts["attention_heads"], facts["head_dim"], "heads"
    )
    output_latent = builder.width(
        "output_latent_width",
        "Width of all output latents",
        facts["output_groups"],
        facts["output_rank"],
        "heads",
    )
    modules = _query_and_key(builder, facts, query)
    if "every" in facts:
        modules += _entry_compressor(builder, facts)
    if "indexer" in facts:
        modules += _entry_indexer(builder, facts)
    modules.append(_window_core(builder, facts, query))
    if "every" in facts:
        modules.append(_entries_core(facts, query))
    return modules + _output(builder, facts, query, output_latent)


def _query_and_key(builder: DecoderBuilder, facts: BlockFacts, query: Node) -> list[Module]:
    """Queries by way of a latent, the one key that is the value too, norms and positions."""
    hidden, size, rank = facts["hidden_size"], facts["head_dim"], facts["q_lora_rank"]
    key_norm = builder.norm("kv_norm", size)
    return [
        projection(
            "latent_in",
            hidden,
            rank + size,
            builder.matrix("q_a", rank, hidden),
            builder.matrix("kv", size, hidden),
            label="Query latent and key/value",
            short="latents",
            kind=_KIND,
        ),
        query_latent_norm(builder, facts, _KIND),
        elementwise(
            "kv_latent_norm", "norm", size, key_norm, label="Key/value norm", short="KV norm", kind=_KIND
        ),
        query_from_latent(builder, facts, query, _KIND),
        elementwise("query_norm", "qk_norm", query, label="Query norm", short="Q norm", kind=_KIND),
        elementwise("rope", "rope", query + size, label="RoPE and KV write", short="RoPE", kind=_KIND),
    ]


def _entry_compressor(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The compressor of the keys that are attended to.

    With an indexer entries overlap, so two series are pooled.
    """
    size = facts["head_dim"]
    series = size + size if "indexer" in facts else size
    return _compressor(builder, facts, "compressor", "Compressor", size, series)


def _compressor(
    builder: DecoderBuilder, facts: BlockFacts, key: str, label: str, size: Node, series: Node
) -> list[Module]:
    """What makes one entry of several tokens: their values, summed with weights by gate and position."""
    hidden, every = facts["hidden_size"], facts["every"]
    return [
        projection(
            key,
            hidden,
            series + series,
            builder.matrix(f"{key}_kv", series, hidden),
            builder.matrix(f"{key}_gate", series, hidden),
            (builder.vector(f"{key}_position", every, series, suffix=""),),
            label=label,
            short="compress",
            kind="compressed",
        ),
        elementwise(
            f"{key}_norm",
            "norm",
            size / every,
            builder.norm(f"{key}_norm", size),
            label=f"{label} norm and write",
            short="entry norm",
            kind="compressed",
        ),
    ]


def _entry_indexer(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """A few small heads that score every entry by a key of their own; the best entries are attended to."""
    hidden, every = facts["hidden_size"], facts["every"]
    heads, size = facts["indexer"], facts["index_head_dim"]
    query = heads * size
    weights = builder.matrix("index_weights", heads, hidden)
    return [
        index_query(builder, facts),
        projection(
            "index_weights", hidden, heads, weights, label="Indexer head weights", short="index W", kind="dsa"
        ),
        *_compressor(builder, facts, "index_compressor", "Indexer compressor", size, size + size),
        elementwise("index_rope", "rope", query, label="Indexer RoPE", short="index RoPE", kind="dsa"),
        build_module(
            "indexer",
            Indexer(query=query / every, heads=heads / every, key=size / every, entry_tokens=every),
            label="Indexer",
            short="indexer",
            part="attention",
            kind="dsa",
        ),
    ]


def _window_core(builder: DecoderBuilder, facts: BlockFacts, query: Node) -> Module:
    span = AttentionSpan("sliding", facts["window"])
    return build_module(
        "attention",
        LatentAttention(expanded=query + query, absorbed=query + query, latent=facts["head_dim"], span=span),
        (builder.vector("sinks", facts["attention_heads"], suffix=""),),
        label="Attention core, window",
        short="attention",
        part="attention",
        kind=_KIND,
    )


def _entries_core(facts: BlockFacts, query: Node) -> Module:
    every = facts["every"]
    return build_module(
        "entries",
        LatentAttention(
            expanded=(query + query) / every,
            absorbed=(query + query) / every,
            latent=facts["head_dim"] / every,
            span=selected_span(facts),
            entry_tokens=every,
        ),
        label="Attention core, entries",
        short="entries",
        part="attention",
        kind="compressed",
    )


def _output(builder: DecoderBuilder, facts: BlockFacts, query: Node, output_latent: Node) -> list[Module]:
    """Results of each group of heads to a latent, and the latents of all groups to the hidden size."""
    hidden, per_group = facts["hidden_size"], query / facts["output_groups"]
    return [
        projection(
            "output_latent",
            per_group,
            output_latent,
            builder.matrix("o_a", output_latent, per_group),
            label="Output latents by group",
            short="output in",
            kind=_KIND,
        ),
        projection(
            "output",
            output_latent,
            hidden,
            builder.matrix("o_b", hidden, output_latent),
            label="Output projection",
            short="output",
            kind=_KIND,
            reduces=True,
        ),
    ]
