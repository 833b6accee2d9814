"""What a model is made of: tensors, the modules that hold them, and the facts their shapes are made of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from mantile.graph.quantity import Input, Node, Quantity
from mantile.library.architecture import Architecture, Model

Kind = Literal["embedding", "norm", "linear", "qk_norm", "rope", "attention", "activation", "lm_head"]
Split = Literal["heads", "kv heads", "ffn columns", "vocabulary", "none"]

LABELS = {
    "layers": ("Layers", "layer", "transformer blocks"),
    "hidden_size": ("Hidden size", "channel", "width of the residual stream"),
    "attention_heads": ("Query heads", "head", "attention heads of the queries"),
    "kv_heads": ("KV heads", "head", "heads of keys and values: fewer than query heads in GQA, one in MQA"),
    "head_dim": ("Head size", "channel", "width of one attention head"),
    "ffn_size": ("FFN size", "channel", "width inside the feed-forward network"),
    "ffn_input_matrices": ("FFN input matrices", "matrix", "2 in a gated FFN (gate and up), 1 in a plain one"),
    "vocabulary": ("Vocabulary", "row", "rows of the embedding"),
    "max_positions": ("Longest context", "token/request", "positions the model was trained or extended for"),
    "sliding_window": ("Sliding window", "token/request", "how far back attention looks; 0 means without limit"),
    "tied_embeddings": ("Tied embeddings", "flag", "1 if the LM head is the embedding itself"),
    "qkv_bias": ("QKV bias", "flag", "1 if query, key and value projections have a bias"),
    "output_bias": ("Output bias", "flag", "1 if the attention output projection has a bias"),
    "ffn_bias": ("FFN bias", "flag", "1 if the FFN matrices have a bias"),
    "norm_bias": ("Norm bias", "flag", "1 if norms have a bias, as LayerNorm does"),
    "qk_norm": ("QK norm", "flag", "1 if every query and key head is normalised"),
}
# Structure: changing these changes which tensors and modules exist, so they are fixed when a workbook is generated.
STRUCTURAL = ("tied_embeddings", "qkv_bias", "output_bias", "ffn_bias", "norm_bias", "qk_norm")


@dataclass(frozen=True)
class Facts:
    """The figures of an architecture as inputs of the graph."""

    layers: Input
    hidden_size: Input
    attention_heads: Input
    kv_heads: Input
    head_dim: Input
    ffn_size: Input
    ffn_input_matrices: Input
    vocabulary: Input
    max_positions: Input
    sliding_window: Input
    tied_embeddings: Input
    qkv_bias: Input
    output_bias: Input
    ffn_bias: Input
    norm_bias: Input
    qk_norm: Input

    def rows(self) -> tuple[Input, ...]:
        """All facts, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Tensor:
    """A stored tensor, repeated in every layer or once.

    `name` holds {} where the layer number stands. `split` says what tensor parallelism shards it by. `matrix` is
    False for norms and biases, which stay in 16 bit.
    """

    name: str
    shape: tuple[Node, ...]
    split: Split
    per_layer: bool = True
    matrix: bool = True


@dataclass(frozen=True)
class Module:
    """A step of the forward pass and the tensors it reads."""

    id: str
    label: str
    kind: Kind
    tensors: tuple[Tensor, ...] = ()
    per_layer: bool = True


@dataclass(frozen=True)
class ModelGraph:
    """A model as modules in execution order."""

    model: Model
    facts: Facts
    modules: tuple[Module, ...]
    query_width: Quantity
    kv_width: Quantity

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors in execution order."""
        return tuple(tensor for module in self.modules for tensor in module.tensors)

    def module(self, identifier: str) -> Module:
        """A module by id."""
        return next(module for module in self.modules if module.id == identifier)


def fact_inputs(architecture: Architecture) -> Facts:
    """The figures of an architecture as shared inputs, each with its provenance."""
    inputs = {}
    for name, fact in architecture.facts().items():
        label, unit, note = LABELS[name]
        inputs[name] = Input(
            id=f"model.{name}", label=label, unit=unit, value=fact.value, note=note, shared=True, integer=True,
            source=f"{fact.origin}: {fact.source}", status=fact.origin, fixed=name in STRUCTURAL,
            minimum=0 if name == "sliding_window" else 1, maximum=10_000_000,
        )  # fmt: skip
    return Facts(**inputs)
