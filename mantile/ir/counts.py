"""Whole numbers of a model: parameters, tensors, KV bytes and FLOPs under the conventions of the published counts.

2 FLOPs per multiply-add; matrix products and attention only; attention counts the full square; the LM head runs on
every position. These are for comparing models and checking the reader, not for estimating time.
"""

from __future__ import annotations

from math import prod
from typing import Any

from mantile.graph.evaluate import Program
from mantile.ir.modules import ModelGraph


def tensor_list(ir: ModelGraph) -> list[dict[str, Any]]:
    """Every tensor as {name, shape, count}, {} standing for the layer number."""
    tensors = ir.tensors()
    values = Program([dimension for tensor in tensors for dimension in tensor.shape]).run({})
    layers = ir.model.architecture.layers.value
    return [
        {
            "name": tensor.name,
            "shape": [int(values[dimension]) for dimension in tensor.shape],
            "count": layers if tensor.per_layer else 1,
        }
        for tensor in tensors
    ]


def parameters(ir: ModelGraph) -> dict[str, int]:
    """Parameters: total, active per token (all, in a dense model), the same without the input embedding, embedding."""
    total = sum(prod(tensor["shape"]) * tensor["count"] for tensor in tensor_list(ir))
    facts = ir.model.architecture
    embedding = facts.vocabulary.value * facts.hidden_size.value
    without = total if facts.tied_embeddings.value else total - embedding
    return {"total": total, "active": total, "active_without_input_embedding": without, "embedding": embedding, "vision": 0}


def kv_bytes_per_token(ir: ModelGraph) -> dict[str, int]:
    """KV-cache bytes of one more token at 2 bytes per element: in all layers, and beyond the sliding window."""
    facts = ir.model.architecture
    every = 2 * facts.kv_heads.value * facts.head_dim.value * facts.layers.value * 2
    return {"all_layers": every, "beyond_window": 0 if facts.sliding_window.value else every}


def prefill_flops(ir: ModelGraph, tokens: int) -> dict[str, int]:
    """FLOPs of a forward pass over `tokens` positions: linear layers with the LM head, attention as a full square."""
    facts = ir.model.architecture
    matrices = {tensor.name for tensor in ir.tensors() if tensor.matrix} - {"model.embed_tokens.weight", "lm_head.weight"}
    per_token = sum(prod(tensor["shape"]) * tensor["count"] for tensor in tensor_list(ir) if tensor["name"] in matrices)
    per_token += facts.vocabulary.value * facts.hidden_size.value
    square = 4 * tokens * tokens * facts.attention_heads.value * facts.head_dim.value * facts.layers.value
    return {"tokens": tokens, "linear": 2 * tokens * per_token, "attention_full_square": square, "other": 0}


def describe(ir: ModelGraph, tokens: int | None = None, with_tensors: bool = False) -> dict[str, Any]:
    """What `mantile ir --json` prints; its keys are public."""
    architecture = ir.model.architecture
    description: dict[str, Any] = {
        "id": ir.model.id,
        "model_type": architecture.model_type,
        "parameters": parameters(ir),
        "layers": architecture.layers.value,
        "kv_bytes_per_token": kv_bytes_per_token(ir),
        "facts": {name: fact.model_dump() for name, fact in (architecture.facts() | architecture.choices()).items()},
        "modules": [{"id": module.id, "label": module.label, "kind": module.kind,
                     "count": architecture.layers.value if module.per_layer else 1} for module in ir.modules],
    }  # fmt: skip
    if tokens is not None:
        description["prefill_flops"] = prefill_flops(ir, tokens)
    if with_tensors:
        description["tensors"] = tensor_list(ir)
    return description
