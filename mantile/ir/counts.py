"""Counts of a model: parameters, tensors, KV bytes and FLOPs, by the conventions of published counts.

2 FLOPs per multiply-add; attention counts the full square of tokens; the LM head runs on every position.
These figures compare models and check the reader of configs; estimates of time do not use them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node, ancestors, as_node
from mantile.ir.modules import (
    FULL,
    Attention,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
    Operation,
    Recurrence,
    Tensor,
)
from mantile.library.architecture import BEFORE
from mantile.library.huggingface.unread import why_unread

KV_BYTES = 2  # of a cached value, by convention
ONE = as_node(1)


def _values(*nodes: Node) -> tuple[int, ...]:
    """Whole numbers of the model as it is stated."""
    values = Program(nodes).run({})
    return tuple(int(values[node]) for node in nodes)


def tensor_entries(tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
    """Tensors as {name, shape, count}; the same name and shape in several kinds of layer is one entry."""
    nodes = {
        node
        for tensor in tensors
        for node in (*tensor.shape, tensor.layers, tensor.copies)
        if node is not None
    }
    values = dict(zip(nodes, _values(*nodes), strict=True))
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for tensor in tensors:
        layers = 1 if tensor.layers is None else values[tensor.layers]
        copies = 1 if tensor.copies is None else values[tensor.copies]
        counts[tensor.name, tuple(values[dimension] for dimension in tensor.shape)] += layers * copies
    return [
        {"name": name, "shape": list(shape), "count": count}
        for (name, shape), count in counts.items()
        if count  # none is stored of a tied LM head
    ]


def tensor_list(ir: ModelGraph) -> list[dict[str, Any]]:
    """Every tensor as {name, shape, count}; {} in a name stands for the number of the layer or expert."""
    return tensor_entries([*ir.tensors(), *ir.tower()])


def _size(tensors: Iterable[Tensor]) -> int:
    """Parameters in tensors."""
    entries = tensor_entries([tensor for tensor in tensors if not tensor.buffer])
    return sum(prod(entry["shape"]) * entry["count"] for entry in entries)


def parameters(ir: ModelGraph) -> dict[str, int]:
    """Parameters of the model.

    Returns:
        total, active: with the vision tower. Active are all but the experts that a token does not go through.
        active_without_input_embedding: nor other tables that tokens are looked up in; a tied embedding is
            the LM head too and stays in.
        embedding: of the input embedding.
        vision: of towers and projectors.
    """
    facts = ir.model.architecture
    total = _size(ir.tensors())
    routed = _size(tensor for tensor in ir.tensors() if tensor.routed)
    used = routed * facts.value("experts_per_token") // facts.value("experts") if routed else 0
    active = total - routed + used
    rows = facts.value(f"vocabulary.{BEFORE}") or facts.value("vocabulary")  # some embeddings have more
    embedding = rows * facts.value("hidden_size")
    vision = _size(ir.tower())
    return {
        "total": total + vision,
        "active": active + vision,
        "active_without_input_embedding": active
        - _looked_up(ir)
        - (0 if facts.value("tied_embeddings") else embedding),
        "embedding": embedding,
        "vision": vision,
    }


def _looked_up(ir: ModelGraph) -> int:
    """Parameters of tables beside the embedding with a row for each token, which no product reads."""
    works = ((module, module.operation) for module in ir.modules)
    tables = [
        tensor
        for module, work in works
        if isinstance(work, Elementwise) and work.kind == "embedding" and module.id != "embedding"
        for tensor in module.tensors
    ]
    return _size(tensor for tensor in tables if _has_vocabulary(tensor.shape[0]))


def _has_vocabulary(size: Node) -> bool:
    return any(node.id.startswith("model.vocabulary") for node in ancestors(size) if isinstance(node, Input))


def kv_bytes_per_token(ir: ModelGraph) -> dict[str, int]:
    """KV-cache bytes of one more token at 2 bytes per value.

    Returns:
        all_layers: in all layers.
        beyond_window: in those layers that look back without limit.
    """
    all_layers = beyond_window = Fraction(0)
    for module, layers in _in_layers(ir):
        operation = module.operation
        match operation:
            case Attention(kept=False):
                continue
            case Attention(span=span):
                values = _share(operation.key + operation.value)
                limited = span.kind != "selected" and span.length is not None and bool(span.length.value)
            case LatentAttention(span=span):
                values, limited = _share(operation.latent, operation.entry_tokens), span.kind == "sliding"
            case Indexer():
                values, limited = _share(operation.key, operation.entry_tokens), False
            case _:
                continue
        all_layers += values * layers * KV_BYTES
        beyond_window += 0 if limited else values * layers * KV_BYTES
    return {"all_layers": int(all_layers), "beyond_window": int(beyond_window)}


def _share(channels: Node, entry_tokens: Input | None = None) -> Fraction:
    """Channels of one token, exactly: a token's share where one entry stands for several."""
    if entry_tokens is None:
        return Fraction(*_values(channels))
    return Fraction(*_values(channels * entry_tokens, entry_tokens))


def _channels(tokens: int, entry_tokens: Input, share: Node) -> int:
    """Channels of all entries that the tokens fill, from one token's share; a part of an entry is none."""
    (size,) = _values(entry_tokens)
    return int(tokens // size * size * _share(share, entry_tokens))


def caches(ir: ModelGraph) -> list[dict[str, Any]]:
    """What each kind of layer keeps: layout, values per token or request, how far back, and who shares it."""
    entries = []
    for module, layers in _in_layers(ir):
        kept = _cache(module.operation)
        if kept is None:
            continue
        entry = {"module": module.id, "layers": layers, **kept}
        span = getattr(module.operation, "span", FULL)
        if span.length is not None and span.length.value:
            entry[span.kind] = int(span.length.value)
        entries.append(entry)
    return entries


def _cache(operation: Operation) -> dict[str, Any] | None:
    """What an operation keeps, and who shares it; None if it keeps nothing."""
    match operation:
        case Attention(query=query, key=key, value=value, kept=True):
            query_size, key_size, value_size = _values(query, key, value)
            return {
                "layout": "keys and values",
                "values_per_token": key_size + value_size,
                "shared_by": f"{query_size // key_size} query heads each",
            }
        case LatentAttention(latent=latent):
            (size,) = _values(latent)
            return {"layout": "latent", "values_per_token": size, "shared_by": "all query heads"}
        case Indexer(key=key):
            (size,) = _values(key)
            return {"layout": "indexer keys", "values_per_token": size, "shared_by": "all indexer heads"}
        case Recurrence(state=state, conv=conv, kernel=kernel):
            state_size, conv_size, length = _values(state, conv, kernel)
            values = state_size + conv_size * (length - 1)
            return {"layout": "state", "values_per_request": values, "shared_by": "each head its own"}
    return None


def _in_layers(ir: ModelGraph) -> list[tuple[Module, int]]:
    """The modules, each with how many layers have it; 1 for what stands once."""
    counts = [ONE if module.layers is None else module.layers for module in ir.modules]
    return list(zip(ir.modules, _values(*counts), strict=True))


def prefill_flops(ir: ModelGraph, tokens: int) -> dict[str, int]:
    """FLOPs of a forward pass over `tokens` positions.

    Returns:
        linear: matrix products, the LM head among them. A recurrence without chunks reads its state out by
            one.
        attention_full_square: attention.
        other: indexers, compressed entries, mixed residual streams, short convolutions and recurrences, whose
            count depends on how they are worked out.
    """
    flops: Counter[str] = Counter()
    for module, layers in _in_layers(ir):
        for kind, count in _module_flops(module, tokens, ir.facts).items():
            flops[kind] += count * layers
    return {
        "tokens": tokens,
        "linear": flops["linear"],
        "attention_full_square": flops["square"],
        "other": flops["other"],
    }


def _module_flops(module: Module, tokens: int, facts: Mapping[str, Input]) -> dict[str, int]:
    """FLOPs of one execution of a module, by kind: linear, square, other."""
    operation = module.operation
    match operation:
        case MatMul():
            inputs, outputs = _values(operation.inputs, operation.outputs)
            return {"linear": 2 * tokens * inputs * outputs}
        case GroupedMatMul():
            inputs, outputs, chosen = _values(operation.inputs, operation.outputs, operation.per_token)
            return {"linear": 2 * tokens * inputs * outputs * chosen}
        case Attention():
            return {"square": 2 * tokens * tokens * sum(_values(operation.query, operation.result))}
        case LatentAttention(entry_tokens=None):
            return {"square": 2 * tokens * tokens * sum(_values(operation.expanded))}
        case LatentAttention(entry_tokens=Input() as entry_tokens):
            return {"other": 2 * tokens * _channels(tokens, entry_tokens, operation.expanded)}
        case Indexer(entry_tokens=None):
            return {"other": 2 * tokens * tokens * sum(_values(operation.query, operation.heads))}
        case Indexer(entry_tokens=Input() as entry_tokens):  # scores of heads are summed element by element
            return {"other": 2 * tokens * _channels(tokens, entry_tokens, operation.query)}
        case Elementwise() if module.kind == "streams":
            width, streams = _values(operation.width, facts["residual_streams"])
            return {"other": 2 * tokens * width * streams}
        case Recurrence():
            return _recurrence_flops(operation, tokens)
    return {}


def _recurrence_flops(recurrence: Recurrence, tokens: int) -> dict[str, int]:
    """FLOPs of a recurrence with its short convolution; chunks pad the prompt to a multiple of them."""
    channels, kernel, macs = _values(recurrence.conv, recurrence.kernel, recurrence.macs)
    convolution = 2 * channels * kernel * (tokens + kernel - 1)
    if recurrence.chunk is None:
        return {"linear": 2 * tokens * macs, "other": convolution}
    (chunk,) = _values(recurrence.chunk)
    return {"other": convolution + 2 * -(-tokens // chunk) * chunk * macs}


def describe(ir: ModelGraph, tokens: int | None = None, with_tensors: bool = False) -> dict[str, Any]:
    """What `mantile list models ir --json` prints; its keys are public API.

    Args:
        tokens: length of a prompt whose FLOPs are counted; None leaves them out.
        with_tensors: whether every tensor is listed.
    """
    architecture = ir.model.architecture
    description: dict[str, Any] = {
        "id": ir.model.id,
        "model_type": architecture.model_type,
        "parameters": parameters(ir),
        "layers": len(architecture.sequence()),
        "kv_bytes_per_token": kv_bytes_per_token(ir),
        "facts": {
            name: fact.model_dump() for name, fact in (architecture.facts | architecture.choices).items()
        },
        "layer_groups": [
            {
                "blocks": list(layer.blocks),
                "count": int(layer.count.value or 0),
                "modules": [module.id for module in layer.modules],
            }
            for layer in ir.layers
        ],
        "order": [".".join(layer) for layer in architecture.sequence()],
        "modules": [
            {"id": module.id, "label": module.label, "kind": module.kind or module.step, "count": count}
            for module, count in _in_layers(ir)
        ],
        "caches": caches(ir),
    }
    if architecture.vision is not None:
        description["vision"] = {name: fact.model_dump() for name, fact in architecture.vision.facts.items()}
    if ir.prediction:
        description["multi_token_prediction"] = {
            "parameters": _size(ir.prediction),
            "tensors": len(tensor_entries(ir.prediction)),
        }
    if architecture.unread is not None:
        description["not_used"] = [
            {"field": path, "value": value, "why": why_unread(path, value)}
            for path, value in architecture.unread.items()
        ]
    if ir.remarks():
        description["remarks"] = [{"of": of, "remark": remark} for of, remark in ir.remarks()]
    if tokens is not None:
        description["prefill_flops"] = prefill_flops(ir, tokens)
    if with_tensors:
        description["tensors"] = tensor_list(ir)
        if ir.prediction:
            description["multi_token_prediction"]["tensors"] = tensor_entries(ir.prediction)
    return description
