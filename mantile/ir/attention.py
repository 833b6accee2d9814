"""Attention over a KV cache: multi-head, grouped-query and multi-query; full, sliding or chunked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mantile.graph.quantity import Input, Node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, projection
from mantile.ir.modules import FULL, Attention, AttentionSpan, Module, Tensor


@dataclass(frozen=True)
class _Widths:
    """Channels over all heads: of queries, keys, values, and of the results of the attention core."""

    query: Node
    key: Node
    value: Node
    result: Node


def attention(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of one attention block."""
    hidden, widths, kind = facts["hidden_size"], _widths(builder, facts), _kind(facts)
    rotated = "RoPE" in builder.architecture.choices["position_embedding"].value
    modules = [_qkv(builder, facts, widths, kind), *_qk_norm(builder, facts, widths, kind)]
    modules.append(
        elementwise(
            "rope",
            "rope",
            widths.query + widths.key + widths.value,
            label="RoPE and KV write" if rotated else "KV write",
            short="RoPE" if rotated else "KV write",
            kind=kind,
        )
    )
    modules.append(_core(builder, facts, widths, kind))
    if facts.value("head_gate"):
        heads = builder.count(facts["attention_heads"], "heads")
        gate = builder.matrix("head_gate", heads, hidden)
        modules.append(
            projection("head_gate", hidden, heads, gate, label="Head gate", short="head gate", kind=kind)
        )
    if facts.value("output_gate") or facts.value("head_gate"):
        modules.append(
            elementwise("output_gate", "gate", widths.result, label="Output gate", short="gate", kind=kind)
        )
    output = builder.matrix("o", hidden, widths.result, bias=facts.value("output_bias"))
    modules.append(
        projection(
            "output",
            widths.result,
            hidden,
            output,
            label="Output projection",
            short="output",
            reduces=True,
            kind=kind,
        )
    )
    return modules


def _widths(builder: DecoderBuilder, facts: BlockFacts) -> _Widths:
    heads, kv_heads, size = facts["attention_heads"], facts["kv_heads"], facts["head_dim"]
    value_size = facts.get("value_head_dim", size)
    alike = "width of all KV heads" if value_size is size else ""
    return _Widths(
        query=builder.width("query_width", "Width of all query heads", heads, size, "heads"),
        key=builder.width("kv_width", "Width of all key heads", kv_heads, size, "kv heads", called=alike),
        value=builder.width("value_width", "Width of all value heads", kv_heads, value_size, "kv heads"),
        result=builder.width("result_width", "Width of all results", heads, value_size, "heads"),
    )


def _kind(facts: BlockFacts) -> str:
    """Multi-head, grouped-query or multi-query attention, by the number of KV heads."""
    if facts.value("kv_heads") == facts.value("attention_heads"):
        return "mha"
    return "mqa" if facts.value("kv_heads") == 1 else "gqa"


def _span(facts: BlockFacts) -> AttentionSpan:
    """How far back the block's attention looks."""
    if "window" in facts:
        return AttentionSpan("sliding", facts["window"])
    return AttentionSpan("chunked", facts["chunk"]) if "chunk" in facts else FULL


def _qkv(builder: DecoderBuilder, facts: BlockFacts, widths: _Widths, kind: str) -> Module:
    """The projections of query and its gate, key and value; no value where the keys are the values."""
    hidden, bias = facts["hidden_size"], facts.value("qkv_bias")
    query = widths.query + widths.query if facts.value("output_gate") else widths.query
    outputs = query + widths.key if facts.value("values_are_keys") else query + widths.key + widths.value
    if builder.names.fused_qkv:
        tensors = builder.matrix("qkv", outputs, hidden, bias=bias)
    else:
        tensors = builder.matrix("q", query, hidden, bias=bias)
        tensors += builder.matrix("k", widths.key, hidden, bias=bias)
        if not facts.value("values_are_keys"):
            tensors += builder.matrix("v", widths.value, hidden, bias=bias)
    return projection("qkv", hidden, outputs, tensors, label="QKV projection", short="QKV", kind=kind)


def _qk_norm(builder: DecoderBuilder, facts: BlockFacts, widths: _Widths, kind: str) -> list[Module]:
    if not facts.value("qk_norm"):
        return []
    return [
        elementwise(
            "qk_norm",
            "qk_norm",
            widths.query + widths.key,
            _norm_tensors(builder, facts, "q_norm", facts["attention_heads"], widths.query),
            _norm_tensors(builder, facts, "k_norm", facts["kv_heads"], widths.key),
            label="QK norm",
            short="QK norm",
            kind=kind,
            wide=facts.value("qk_norm") == 2,
        )
    ]


def _norm_tensors(
    builder: DecoderBuilder, facts: BlockFacts, key: str, heads: Input, width: Node
) -> tuple[Tensor, ...]:
    """Weights of the norm of queries or keys.

    As wide as one head (1), as all heads (2), a weight for every head, in one tensor or one each (3), or none
    (4).
    """
    size, bias = facts["head_dim"], facts.value("qk_norm_bias")
    match facts.value("qk_norm"):
        case 1:
            return builder.norm(key, size, bias)
        case 2:
            return builder.norm(key, width, bias)
        case 3 if "{}" in builder.names[key]:
            return (replace(builder.vector(key, size), copies=heads),)
        case 3:
            return (builder.vector(key, heads, size),)
        case _:
            return ()


def _core(builder: DecoderBuilder, facts: BlockFacts, widths: _Widths, kind: str) -> Module:
    """Scores and weighted values, with a learned sink for every head if there is one."""
    span = _span(facts)
    sinks = (builder.vector("sinks", facts["attention_heads"], suffix=""),) if facts.value("sinks") else ()
    limited = span.length is not None and span.length.value
    return build_module(
        "attention",
        Attention(query=widths.query, result=widths.result, key=widths.key, value=widths.value, span=span),
        sinks,
        label="Attention core",
        short="attention",
        part="attention",
        kind=f"{kind}, {span.kind}" if limited else kind,
    )
