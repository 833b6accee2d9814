"""Multi-head latent attention: one latent holds keys and values of all heads.

An indexer may select tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Input, Node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, projection
from mantile.ir.modules import FULL, AttentionSpan, Indexer, LatentAttention, Module


@dataclass(frozen=True)
class _Widths:
    """Channels of a latent attention block.

    Args:
        plain, rotated: of all queries, the part without position and the part with.
        result: of the results of all heads.
        absorbed: of all queries in the width of the latent.
        latent: of one token, kept for all heads: what keys and values are made of, and the key's part with
            position.
    """

    plain: Node
    rotated: Node
    result: Node
    absorbed: Node
    latent: Node

    @property
    def query(self) -> Node:
        """Channels of all queries."""
        return self.plain + self.rotated


def latent_attention(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of one latent attention block.

    The latent and the indexer are the same for all heads and stand on every rank; what is made of them is
    split by heads.
    """
    hidden, rank, widths = facts["hidden_size"], facts["kv_lora_rank"], _widths(builder, facts)
    return [
        *_query_and_latent(builder, facts, widths),
        _rope(builder, facts, widths),
        projection(
            "keys_values",
            rank,
            widths.plain + widths.result,
            builder.matrix("kv_b", widths.plain + widths.result, rank),
            label="Keys and values from the latent",
            short="KV",
            kind="mla",
        ),
        *(_indexer(builder, facts) if "indexer" in facts else ()),
        build_module(
            "attention",
            LatentAttention(
                expanded=widths.query + widths.result,
                absorbed=widths.absorbed + widths.absorbed + widths.rotated,
                latent=widths.latent,
                span=selected_span(facts),
            ),
            label="Attention core",
            short="attention",
            part="attention",
            kind="mla",
        ),
        projection(
            "output",
            widths.result,
            hidden,
            builder.matrix("o", hidden, widths.result, bias=facts.value("output_bias")),
            label="Output projection",
            short="output",
            kind="mla",
            reduces=True,
        ),
    ]


def selected_span(facts: BlockFacts) -> AttentionSpan:
    """The tokens that an indexer leaves, or all of them where there is none."""
    return AttentionSpan("selected", facts["selected"]) if "selected" in facts else FULL


def query_latent_norm(builder: DecoderBuilder, facts: BlockFacts, kind: str) -> Module:
    """The norm of the latent that queries are made of."""
    rank = facts["q_lora_rank"]
    tensors = builder.norm("q_a_norm", rank)
    return elementwise(
        "q_latent_norm", "norm", rank, tensors, label="Query latent norm", short="Q norm", kind=kind
    )


def query_from_latent(builder: DecoderBuilder, facts: BlockFacts, query: Node, kind: str) -> Module:
    """The projection from the query latent to the queries of all heads."""
    rank = facts["q_lora_rank"]
    tensors = builder.matrix("q_b", query, rank)
    return projection("query", rank, query, tensors, label="Queries from the latent", short="Q", kind=kind)


def index_query(builder: DecoderBuilder, facts: BlockFacts) -> Module:
    """The queries of an indexer's heads, from the query latent."""
    rank, query = facts["q_lora_rank"], facts["indexer"] * facts["index_head_dim"]
    tensors = builder.matrix("index_q", query, rank)
    return projection(
        "index_query", rank, query, tensors, label="Indexer queries", short="index Q", kind="dsa"
    )


def _widths(builder: DecoderBuilder, facts: BlockFacts) -> _Widths:
    heads, rank, rope = facts["attention_heads"], facts["kv_lora_rank"], facts["qk_rope_head_dim"]

    def over_heads(name: str, label: str, size: Input) -> Node:
        return builder.width(name, label, heads, size, "heads")

    return _Widths(
        plain=over_heads(
            "query_plain_width", "Width of all queries without position", facts["qk_nope_head_dim"]
        ),
        rotated=over_heads("query_rope_width", "Width of all queries with position", rope),
        result=over_heads("result_width", "Width of all results", facts["v_head_dim"]),
        absorbed=over_heads("absorbed_width", "Width of all absorbed queries", rank),
        latent=rank + rope,
    )


def _query_and_latent(builder: DecoderBuilder, facts: BlockFacts, widths: _Widths) -> list[Module]:
    """Queries and the KV latent from the hidden state; in most models queries have a latent of their own."""
    hidden, rank, bias = facts["hidden_size"], facts["kv_lora_rank"], facts.value("qkv_bias")
    down = builder.matrix("kv_a", widths.latent, hidden, bias=bias)
    norm = elementwise(
        "kv_latent_norm",
        "norm",
        rank,
        builder.norm("kv_a_norm", rank),
        label="KV latent norm",
        short="KV norm",
        kind="mla",
    )
    if not facts.value("q_lora_rank"):
        direct = builder.matrix("q", widths.query, hidden)
        return [
            projection(
                "query", hidden, widths.query, direct, label="Query projection", short="Q", kind="mla"
            ),
            projection(
                "latent_in", hidden, widths.latent, down, label="KV latent", short="latent", kind="mla"
            ),
            norm,
        ]
    query_rank = facts["q_lora_rank"]
    return [
        projection(
            "latent_in",
            hidden,
            query_rank + widths.latent,
            builder.matrix("q_a", query_rank, hidden, bias=bias),
            down,
            label="Query and KV latents",
            short="latents",
            kind="mla",
        ),
        query_latent_norm(builder, facts, "mla"),
        norm,
        query_from_latent(builder, facts, widths.query, "mla"),
    ]


def _rope(builder: DecoderBuilder, facts: BlockFacts, widths: _Widths) -> Module:
    """The latent written to the cache; queries and the shared key rotated where there are positions."""
    rotates = "RoPE" in builder.architecture.choices["position_embedding"].value
    rotated = widths.rotated + facts["qk_rope_head_dim"]
    return elementwise(
        "rope",
        "rope",
        rotated + widths.latent if rotates else widths.latent,
        label="RoPE and latent write" if rotates else "Latent write",
        short="RoPE" if rotates else "KV write",
        kind="mla",
    )


def _indexer(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """A few small heads that score every earlier token; the best are attended to.

    Its keys are kept beside the latents.
    """
    hidden, heads, size = facts["hidden_size"], facts["indexer"], facts["index_head_dim"]
    return [
        index_query(builder, facts),
        projection(
            "index_key",
            hidden,
            size + heads,
            builder.matrix("index_k", size, hidden),
            builder.matrix("index_weights", heads, hidden),
            label="Indexer key and head weights",
            short="index K",
            kind="dsa",
        ),
        elementwise(
            "index_norm",
            "norm",
            size,
            builder.norm("index_k_norm", size, bias=1),
            label="Indexer key norm",
            short="index norm",
            kind="dsa",
        ),
        elementwise(
            "index_rope",
            "rope",
            heads * size + size,
            label="Indexer RoPE and key write",
            short="index RoPE",
            kind="dsa",
        ),
        build_module(
            "indexer",
            Indexer(query=heads * size, heads=heads, key=size),
            label="Indexer",
            short="indexer",
            part="attention",
            kind="dsa",
        ),
    ]
