"""Multi-head latent attention: keys and values of all heads in one latent, with or without an indexer that selects tokens."""

from __future__ import annotations

from mantile.graph.quantity import Node
from mantile.ir.draft import BlockFacts, DecoderBuilder, small, step
from mantile.ir.modules import FULL, AttentionSpan, Elementwise, Indexer, LatentAttention, MatMul, Module


def latent_attention(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of one latent attention block.

    The latent and the indexer are the same for all heads and stand on every rank; what is made of them is split by heads.
    """
    hidden = draft.facts["hidden_size"]
    heads, rank, rope = roles["attention_heads"], roles["kv_lora_rank"], roles["qk_rope_head_dim"]
    plain = draft.width(
        "query_plain_width",
        "Width of all queries without position",
        heads,
        roles["qk_nope_head_dim"],
        "heads",
    )
    rotated = draft.width("query_rope_width", "Width of all queries with position", heads, rope, "heads")
    result = draft.width("result_width", "Width of all results", heads, roles["v_head_dim"], "heads")
    absorbed = draft.width("absorbed_width", "Width of all absorbed queries", heads, rank, "heads")
    query, latent = plain + rotated, rank + rope

    bias = roles.value("qkv_bias")
    down = draft.matrix("kv_a", latent, hidden, bias=bias)
    modules: list[Module] = []
    if roles.value("q_lora_rank"):
        q_rank = roles["q_lora_rank"]
        modules += [
            step(
                "latent_in",
                "Query and KV latents",
                "latents",
                "projections",
                MatMul(hidden, q_rank + latent, "attention"),
                draft.matrix("q_a", q_rank, hidden, bias=bias),
                down,
                kind="mla",
            ),
            small(
                "q_latent_norm",
                "Query latent norm",
                "Q norm",
                Elementwise("norm", q_rank),
                draft.norm("q_a_norm", q_rank),
                kind="mla",
            ),
            small(
                "kv_latent_norm",
                "KV latent norm",
                "KV norm",
                Elementwise("norm", rank),
                draft.norm("kv_a_norm", rank),
                kind="mla",
            ),
            step(
                "query",
                "Queries from the latent",
                "Q",
                "projections",
                MatMul(q_rank, query, "attention"),
                draft.matrix("q_b", query, q_rank),
                kind="mla",
            ),
        ]
    else:
        modules += [
            step(
                "query",
                "Query projection",
                "Q",
                "projections",
                MatMul(hidden, query, "attention"),
                draft.matrix("q", query, hidden),
                kind="mla",
            ),
            step(
                "latent_in",
                "KV latent",
                "latent",
                "projections",
                MatMul(hidden, latent, "attention"),
                down,
                kind="mla",
            ),
            small(
                "kv_latent_norm",
                "KV latent norm",
                "KV norm",
                Elementwise("norm", rank),
                draft.norm("kv_a_norm", rank),
                kind="mla",
            ),
        ]
    turned = "RoPE" in draft.architecture.choices["position_embedding"].value
    written = rotated + rope + latent if turned else latent
    modules += [
        small(
            "rope",
            "RoPE and latent write" if turned else "Latent write",
            "RoPE" if turned else "KV write",
            Elementwise("rope", written),
            kind="mla",
        ),
        step(
            "keys_values",
            "Keys and values from the latent",
            "KV",
            "projections",
            MatMul(rank, plain + result, "attention"),
            draft.matrix("kv_b", plain + result, rank),
            kind="mla",
        ),
    ]
    if "indexer" in roles:
        modules += _indexer(draft, roles, hidden)
    reach = AttentionSpan("selected", roles["selected"]) if "selected" in roles else FULL
    core = LatentAttention(query + result, absorbed + absorbed + rotated, latent, reach)
    modules += [
        step("attention", "Attention core", "attention", "attention", core, kind="mla"),
        step(
            "output",
            "Output projection",
            "output",
            "projections",
            MatMul(result, hidden, "attention"),
            draft.matrix("o", hidden, result, bias=roles.value("output_bias")),
            reduces=True,
            kind="mla",
        ),
    ]
    return modules


def _indexer(draft: DecoderBuilder, roles: BlockFacts, hidden: Node) -> list[Module]:
    """A few small heads that score every earlier token; the best are attended to. Its keys are kept beside the latents."""
    heads, size, q_rank = roles["indexer"], roles["index_head_dim"], roles["q_lora_rank"]
    query = heads * size
    return [
        step(
            "index_query",
            "Indexer queries",
            "index Q",
            "projections",
            MatMul(q_rank, query, "attention"),
            draft.matrix("index_q", query, q_rank),
            kind="dsa",
        ),
        step(
            "index_key",
            "Indexer key and head weights",
            "index K",
            "projections",
            MatMul(hidden, size + heads, "attention"),
            draft.matrix("index_k", size, hidden),
            draft.matrix("index_weights", heads, hidden),
            kind="dsa",
        ),
        small(
            "index_norm",
            "Indexer key norm",
            "index norm",
            Elementwise("norm", size),
            draft.norm("index_k_norm", size, bias=1),
            kind="dsa",
        ),
        small(
            "index_rope",
            "Indexer RoPE and key write",
            "index RoPE",
            Elementwise("rope", query + size),
            kind="dsa",
        ),
        step("indexer", "Indexer", "indexer", "attention", Indexer(query, heads, size), kind="dsa"),
    ]


def compressed_attention(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of DeepSeek-V4's attention: one KV head whose keys are its values, over a window and over compressed entries.

    Every layer attends to the tokens of a window. Where there is a compressor, so many tokens become one entry beside them; all
    entries are attended to, or those an indexer leaves. Window and entries share a softmax and are drawn as two cores, as they
    reach differently; what a core costs and keeps per entry is stated per token. Pooling tokens into an entry and turning the
    results back count as nothing.
    """
    hidden, heads, size, q_rank = (
        draft.facts["hidden_size"],
        roles["attention_heads"],
        roles["head_dim"],
        roles["q_lora_rank"],
    )
    groups = roles["output_groups"]
    query = draft.width("query_width", "Width of all query heads", heads, size, "heads")
    low = draft.width(
        "output_latent_width", "Width of all output latents", groups, roles["output_rank"], "heads"
    )
    kind = "mqa, sliding"
    modules = [
        step(
            "latent_in",
            "Query latent and key/value",
            "latents",
            "projections",
            MatMul(hidden, q_rank + size, "attention"),
            draft.matrix("q_a", q_rank, hidden),
            draft.matrix("kv", size, hidden),
            kind=kind,
        ),
        small(
            "q_latent_norm",
            "Query latent norm",
            "Q norm",
            Elementwise("norm", q_rank),
            draft.norm("q_a_norm", q_rank),
            kind=kind,
        ),
        small(
            "kv_latent_norm",
            "Key/value norm",
            "KV norm",
            Elementwise("norm", size),
            draft.norm("kv_norm", size),
            kind=kind,
        ),
        step(
            "query",
            "Queries from the latent",
            "Q",
            "projections",
            MatMul(q_rank, query, "attention"),
            draft.matrix("q_b", query, q_rank),
            kind=kind,
        ),
        small("query_norm", "Query norm", "Q norm", Elementwise("qk_norm", query), kind=kind),
        small("rope", "RoPE and KV write", "RoPE", Elementwise("rope", query + size), kind=kind),
    ]
    if "every" in roles:
        series = (
            size + size if "indexer" in roles else size
        )  # with an indexer, entries overlap: two series are pooled
        modules += _compressor(draft, "compressor", "Compressor", roles["every"], size, series)
    if "indexer" in roles:
        modules += _entry_indexer(draft, roles, hidden, q_rank)
    both = query + query
    modules.append(
        step(
            "attention",
            "Attention core, window",
            "attention",
            "attention",
            LatentAttention(both, both, size, AttentionSpan("sliding", roles["window"])),
            (draft.vector("sinks", heads, suffix=""),),
            kind=kind,
        )
    )
    if "every" in roles:
        every = roles["every"]
        reach = AttentionSpan("selected", roles["selected"]) if "selected" in roles else FULL
        modules.append(
            step(
                "entries",
                "Attention core, entries",
                "entries",
                "attention",
                LatentAttention(both / every, both / every, size / every, reach, every),
                kind="compressed",
            )
        )
    modules += [
        step(
            "output_latent",
            "Output latents by group",
            "output in",
            "projections",
            MatMul(query / groups, low, "attention"),
            draft.matrix("o_a", low, query / groups),
            kind=kind,
        ),
        step(
            "output",
            "Output projection",
            "output",
            "projections",
            MatMul(low, hidden, "attention"),
            draft.matrix("o_b", hidden, low),
            reduces=True,
            kind=kind,
        ),
    ]
    return modules


def _compressor(
    draft: DecoderBuilder, key: str, label: str, every: Node, size: Node, series: Node
) -> list[Module]:
    """What makes one entry of so many tokens: values and gates of each, summed up with weights by gate and position, normed."""
    hidden = draft.facts["hidden_size"]
    return [
        step(
            key,
            label,
            "compress",
            "projections",
            MatMul(hidden, series + series, "attention"),
            draft.matrix(f"{key}_kv", series, hidden),
            draft.matrix(f"{key}_gate", series, hidden),
            (draft.vector(f"{key}_position", every, series, suffix=""),),
            kind="compressed",
        ),
        small(
            f"{key}_norm",
            f"{label} norm and write",
            "entry norm",
            Elementwise("norm", size / every),
            draft.norm(f"{key}_norm", size),
            kind="compressed",
        ),
    ]


def _entry_indexer(draft: DecoderBuilder, roles: BlockFacts, hidden: Node, q_rank: Node) -> list[Module]:
    """A few small heads that score every entry by a compressed key of their own; the best entries are attended to."""
    heads, size, every = roles["indexer"], roles["index_head_dim"], roles["every"]
    query = heads * size
    return [
        step(
            "index_query",
            "Indexer queries",
            "index Q",
            "projections",
            MatMul(q_rank, query, "attention"),
            draft.matrix("index_q", query, q_rank),
            kind="dsa",
        ),
        step(
            "index_weights",
            "Indexer head weights",
            "index W",
            "projections",
            MatMul(hidden, heads, "attention"),
            draft.matrix("index_weights", heads, hidden),
            kind="dsa",
        ),
        *_compressor(draft, "index_compressor", "Indexer compressor", every, size, size + size),
        small("index_rope", "Indexer RoPE", "index RoPE", Elementwise("rope", query), kind="dsa"),
        step(
            "indexer",
            "Indexer",
            "indexer",
            "attention",
            Indexer(query / every, heads / every, size / every, every),
            kind="dsa",
        ),
    ]
