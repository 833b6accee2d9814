"""Attention over a KV cache: MHA, GQA and MQA, full, sliding or chunked, with or without gate, sinks, biases and QK norm."""

from __future__ import annotations

from dataclasses import replace

from mantile.graph.quantity import Input, Node
from mantile.ir.draft import BlockFacts, DecoderBuilder, small, step
from mantile.ir.modules import FULL, Attention, AttentionSpan, Elementwise, MatMul, Module, Tensor


def reach_of(roles: BlockFacts) -> AttentionSpan:
    """How far back a block's attention looks."""
    if "window" in roles:
        return AttentionSpan("sliding", roles["window"])
    return AttentionSpan("chunked", roles["chunk"]) if "chunk" in roles else FULL


def attention(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of one attention block."""
    hidden = draft.facts["hidden_size"]
    heads, kv_heads, size = roles["attention_heads"], roles["kv_heads"], roles["head_dim"]
    value_size = roles.get("value_head_dim", size)
    query = draft.width("query_width", "Width of all query heads", heads, size, "heads")
    key = draft.width(
        "kv_width",
        "Width of all key heads",
        kv_heads,
        size,
        "kv heads",
        called="width of all KV heads" if value_size is size else "",
    )
    value = draft.width("value_width", "Width of all value heads", kv_heads, value_size, "kv heads")
    result = draft.width("result_width", "Width of all results", heads, value_size, "heads")

    reach = reach_of(roles)
    shared = roles.value("values_are_keys")
    projected: Node = query + query if roles.value("output_gate") else query
    outputs = projected + key if shared else projected + key + value
    bias = roles.value("qkv_bias")
    if draft.names.fused_qkv:
        stored = draft.matrix("qkv", outputs, hidden, bias=bias)
    else:
        stored = draft.matrix("q", projected, hidden, bias=bias) + draft.matrix("k", key, hidden, bias=bias)
        if not shared:
            stored += draft.matrix("v", value, hidden, bias=bias)
    one = roles.value("kv_heads") == 1
    kind = "mha" if roles.value("kv_heads") == roles.value("attention_heads") else "mqa" if one else "gqa"
    limited = reach.length is not None and reach.length.value
    core_kind = f"{kind}, {reach.kind}" if limited else kind
    modules = [
        step(
            "qkv",
            "QKV projection",
            "QKV",
            "projections",
            MatMul(hidden, outputs, "attention"),
            stored,
            kind=kind,
        )
    ]
    normed = roles.value("qk_norm")
    if normed:
        modules.append(
            small(
                "qk_norm",
                "QK norm",
                "QK norm",
                Elementwise("qk_norm", query + key, wide=normed == 2),
                _qk_norm(draft, roles, "q_norm", heads, query),
                _qk_norm(draft, roles, "k_norm", kv_heads, key),
                kind=kind,
            )
        )
    rotated = "RoPE" in draft.architecture.choices["position_embedding"].value
    modules.append(
        small(
            "rope",
            "RoPE and KV write" if rotated else "KV write",
            "RoPE" if rotated else "KV write",
            Elementwise("rope", query + key + value),
            kind=kind,
        )
    )
    sinks = (draft.vector("sinks", heads, suffix=""),) if roles.value("sinks") else ()
    modules.append(
        step(
            "attention",
            "Attention core",
            "attention",
            "attention",
            Attention(query, result, key, value, reach),
            sinks,
            kind=core_kind,
        )
    )
    if roles.value("output_gate"):
        modules.append(small("output_gate", "Output gate", "gate", Elementwise("gate", result), kind=kind))
    modules.append(
        step(
            "output",
            "Output projection",
            "output",
            "projections",
            MatMul(result, hidden, "attention"),
            draft.matrix("o", hidden, result, bias=roles.value("output_bias")),
            reduces=True,
            kind=kind,
        )
    )
    return modules


def _qk_norm(
    draft: DecoderBuilder, roles: BlockFacts, key: str, heads: Input, width: Node
) -> tuple[Tensor, ...]:
    """Weights of the norm of queries or keys: of a head, of all their width, or of every head its own, in one tensor or in many."""
    size, bias = roles["head_dim"], roles.value("qk_norm_bias")
    match roles.value("qk_norm"):
        case 1:
            return draft.norm(key, size, bias)
        case 2:
            return draft.norm(key, width, bias)
        case 3 if "{}" in draft.names[key]:
            return (replace(draft.vector(key, size), copies=heads),)
        case 3:
            return (draft.vector(key, heads, size),)
        case _:
            return ()
