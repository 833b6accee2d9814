"""Whole numbers of a model: parameters, tensors, KV bytes and FLOPs under the conventions of the published counts.

2 FLOPs per multiply-add; matrix products and attention only; attention counts the full square; the LM head runs on
every position. These are for comparing models and checking the reader, not for estimating time.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod
from typing import Any

from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node
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
    Recurrence,
    Tensor,
)

KV_BYTES = 2  # of a cached value, by convention


def _whole(nodes: Iterable[Node]) -> dict[Node, int]:
    wanted = list(nodes)
    values = Program(wanted).run({})
    return {node: int(values[node]) for node in wanted}


def _entries(tensors: Iterable[Tensor]) -> list[dict[str, Any]]:
    """Tensors as {name, shape, count}; the same name and shape in several kinds of layer is one entry."""
    held = list(tensors)
    values = _whole(
        node for tensor in held for node in (*tensor.shape, tensor.layers, tensor.copies) if node is not None
    )
    found: dict[tuple[str, tuple[int, ...]], int] = {}
    for tensor in held:
        count = (1 if tensor.layers is None else values[tensor.layers]) * (
            1 if tensor.copies is None else values[tensor.copies]
        )
        key = tensor.name, tuple(values[dimension] for dimension in tensor.shape)
        found[key] = found.get(key, 0) + count
    return [{"name": name, "shape": list(shape), "count": count} for (name, shape), count in found.items()]


def tensor_list(ir: ModelGraph) -> list[dict[str, Any]]:
    """Every tensor as {name, shape, count}, {} standing for the number of the layer or expert; the vision tower's last."""
    return _entries([*ir.tensors(), *(ir.vision.tensors if ir.vision else ())])


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(
        prod(entry["shape"]) * entry["count"]
        for entry in _entries(tensor for tensor in tensors if not tensor.buffer)
    )


def parameters(ir: ModelGraph) -> dict[str, int]:
    """Parameters: total and active with the vision tower; the decoder's active ones without the input embedding; embedding; vision.

    Active are all but the experts a token does not go through. A tied embedding works as the LM head and stays in.
    """
    total = _size(ir.tensors())
    routed = _size(tensor for tensor in ir.tensors() if tensor.routed)
    facts = ir.model.architecture
    active = (
        total
        - routed
        + (routed * facts.value("experts_per_token") // facts.value("experts") if routed else 0)
    )
    embedding = facts.value("vocabulary") * facts.value("hidden_size")
    vision = _size(ir.vision.tensors) if ir.vision else 0
    return {
        "total": total + vision,
        "active": active + vision,
        "active_without_input_embedding": active if facts.value("tied_embeddings") else active - embedding,
        "embedding": embedding,
        "vision": vision,
    }


def kv_bytes_per_token(ir: ModelGraph) -> dict[str, int]:
    """KV-cache bytes of one more token at 2 bytes per value: in all layers, and in those that look back without limit."""
    every = beyond = Fraction(0)
    for module, layers in _in_layers(ir):
        operation = module.operation
        match operation:
            case Attention():
                size = _share(operation.key + operation.value)
                limited = operation.reach.length is not None and bool(operation.reach.length.value)
            case LatentAttention():
                size, limited = _share(operation.latent, operation.every), operation.reach.kind == "sliding"
            case Indexer():
                size, limited = _share(operation.key, operation.every), False
            case _:
                continue
        every += size * layers * KV_BYTES
        beyond += 0 if limited else size * layers * KV_BYTES
    return {"all_layers": int(every), "beyond_window": int(beyond)}


def _share(channels: Node, every: Input | None = None) -> Fraction:
    """Channels of one token, exactly, where an entry of several is divided among them."""
    if every is None:
        return Fraction(_whole([channels])[channels])
    entry = channels * every
    size = _whole([every, entry])
    return Fraction(size[entry], size[every])


def _channels(tokens: int, every: Input, share: Node) -> int:
    """Channels of all entries that so many tokens make, from a token's share; tokens that do not fill an entry make none."""
    size = _whole([every])[every]
    return int(tokens // size * size * _share(share, every))


def caches(ir: ModelGraph) -> list[dict[str, Any]]:
    """What each kind of layer keeps: layout, values per token or per request, how far back, and who shares it."""
    found = []
    for module, layers in _in_layers(ir):
        work = module.operation
        kept: dict[str, Any]
        if isinstance(work, Attention):
            size = _whole([work.query, work.key, work.value])
            kept = {
                "layout": "keys and values",
                "values_per_token": size[work.key] + size[work.value],
                "reach": work.reach,
                "shared_by": f"{size[work.query] // size[work.key]} query heads each",
            }
        elif isinstance(work, LatentAttention):
            kept = {
                "layout": "latent",
                "values_per_token": _whole([work.latent])[work.latent],
                "reach": work.reach,
                "shared_by": "all query heads",
            }
        elif isinstance(work, Indexer):
            kept = {
                "layout": "indexer keys",
                "values_per_token": _whole([work.key])[work.key],
                "reach": FULL,
                "shared_by": "all indexer heads",
            }
        elif isinstance(work, Recurrence):
            size = _whole([work.state, work.conv, work.kernel])
            kept = {
                "layout": "state",
                "values_per_request": size[work.state] + size[work.conv] * (size[work.kernel] - 1),
                "reach": FULL,
                "shared_by": "each head its own",
            }
        else:
            continue
        reach = kept.pop("reach")
        limit = int(reach.length.value or 0) if reach.length is not None else 0
        found.append({"module": module.id, "layers": layers, **kept} | ({reach.kind: limit} if limit else {}))
    return found


def _in_layers(ir: ModelGraph) -> Iterable[tuple[Module, int]]:
    counted = [module for module in ir.modules if module.layers is not None]
    layers = _whole(module.layers for module in counted if module.layers is not None)
    return [(module, 1 if module.layers is None else layers[module.layers]) for module in ir.modules]


def prefill_flops(ir: ModelGraph, tokens: int) -> dict[str, int]:
    """FLOPs of a forward pass over `tokens` positions: matrix products with the LM head, attention as a full square, other.

    Other are indexers, compressed entries, mixed residual streams, short convolutions and recurrences, whose count depends on
    how they are worked out; a recurrence without chunks reads its state out by a product with a matrix.
    """
    linear = square = other = 0
    for module, layers in _in_layers(ir):
        operation = module.operation
        match operation:
            case MatMul():
                size = _whole([operation.inputs, operation.outputs])
                linear += 2 * tokens * size[operation.inputs] * size[operation.outputs] * layers
            case GroupedMatMul():
                size = _whole([operation.inputs, operation.outputs, operation.per_token])
                linear += (
                    2
                    * tokens
                    * size[operation.inputs]
                    * size[operation.outputs]
                    * size[operation.per_token]
                    * layers
                )
            case Attention():
                size = _whole([operation.query, operation.result])
                square += 2 * tokens * tokens * (size[operation.query] + size[operation.result]) * layers
            case LatentAttention() if operation.every is not None:
                other += 2 * tokens * _channels(tokens, operation.every, operation.expanded) * layers
            case LatentAttention():
                square += 2 * tokens * tokens * _whole([operation.expanded])[operation.expanded] * layers
            case Indexer() if operation.every is not None:  # scores of heads are summed up element by element
                other += 2 * tokens * _channels(tokens, operation.every, operation.query) * layers
            case Indexer():
                size = _whole([operation.query, operation.heads])
                other += 2 * tokens * tokens * (size[operation.query] + size[operation.heads]) * layers
            case Elementwise() if module.kind == "streams":
                size = _whole([operation.width, ir.facts["residual_streams"]])
                other += 2 * tokens * size[operation.width] * size[ir.facts["residual_streams"]] * layers
            case Recurrence():
                size = _whole([operation.conv, operation.kernel, operation.macs])
                conv = (
                    2 * size[operation.conv] * size[operation.kernel] * (tokens + size[operation.kernel] - 1)
                )
                other += conv * layers
                if operation.chunk is None:
                    linear += 2 * tokens * size[operation.macs] * layers
                else:
                    chunk = _whole([operation.chunk])[operation.chunk]
                    other += 2 * -(-tokens // chunk) * chunk * size[operation.macs] * layers
    return {"tokens": tokens, "linear": linear, "attention_full_square": square, "other": other}


def describe(ir: ModelGraph, tokens: int | None = None, with_tensors: bool = False) -> dict[str, Any]:
    """What `mantile ir --json` prints; its keys are public."""
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
    if ir.extra:
        description["multi_token_prediction"] = {
            "parameters": _size(ir.extra),
            "tensors": len(_entries(ir.extra)),
        }
    if tokens is not None:
        description["prefill_flops"] = prefill_flops(ir, tokens)
    if with_tensors:
        description["tensors"] = tensor_list(ir)
        if ir.extra:
            description["multi_token_prediction"]["tensors"] = _entries(ir.extra)
    return description
