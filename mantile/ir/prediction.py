"""Multi-token prediction: layers behind the last.

They run where tokens are drafted; no count of parameters holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mantile.graph.quantity import Node
from mantile.ir.builder import DecoderBuilder
from mantile.ir.modules import Layer, Module, Tensor, Weights
from mantile.ir.streams import collapse_tensors


def prediction_tensors(
    builder: DecoderBuilder, build_block: Callable[[DecoderBuilder, str], list[Module]]
) -> tuple[Tensor, ...]:
    """Tensors of the prediction layers; none in a model without.

    A prediction layer norms the embedding and the hidden state, joins both, and runs a decoder layer and a
    norm. The decoder layer is made of the blocks that the architecture names, else it is of the last kind.
    Some checkpoints hold copies of embedding and LM head.

    Args:
        build_block: makes the modules of a block by its name.
    """
    architecture, names = builder.architecture, builder.names.prediction
    if not architecture.value("mtp_layers"):
        return ()
    hidden, count = builder.facts["hidden_size"], builder.facts["mtp_layers"]
    layers = None if names.once else count
    vocabulary = builder.columns(builder.facts["vocabulary"])

    def stored(name: str, *shape: Node, weights: Weights = "attention") -> tuple[Tensor, ...]:
        """A tensor beside the decoder layer; none where the family has no name for it."""
        if not name:
            return ()
        matrix = len(shape) > 1
        return (Tensor(f"{names.prefix}{name}.weight", shape, layers, matrix=matrix, weights=weights),)

    of_embedding: Weights = "head" if architecture.value("tied_embeddings") else "embedding"
    joined = hidden if names.join_hidden else hidden + hidden
    return (
        *stored(names.embedding, vocabulary, hidden, weights=of_embedding),
        *stored(names.embedding_norm, hidden),
        *stored(names.hidden_norm, hidden),
        *stored(names.join, hidden, joined),
        *stored(names.join_hidden, hidden, hidden),
        *(
            replace(tensor, name=names.layer + tensor.name.removeprefix(builder.names.layer), layers=count)
            for block in prediction_blocks(builder)
            for module in build_block(builder, block)
            for tensor in module.tensors
        ),
        *(replace(tensor, layers=layers) for tensor in collapse_tensors(builder, names.prefix)),
        *stored(names.norm, hidden),
        *stored(names.head, vocabulary, hidden, weights="head"),
    )


def drafting(builder: DecoderBuilder, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The kinds of layer that drafts: that of prediction layers, or those that its blocks stand in."""
    blocks = prediction_blocks(builder)
    same = [layer for layer in layers if layer.blocks == blocks]
    parts = [layer for layer in layers if set(layer.blocks) <= set(blocks)]
    return tuple(same[:1] or parts or layers[-1:])


def prediction_blocks(builder: DecoderBuilder) -> tuple[str, ...]:
    """The blocks that a prediction layer is made of."""
    stated = builder.architecture.choices.get("prediction_layer")
    if stated is None:
        return builder.architecture.stack[-1].layers[-1]
    return tuple(stated.value.split(" + "))
