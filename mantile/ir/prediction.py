"""Multi-token prediction: tensors of layers after the last, which no pass of ours runs and no count of parameters holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mantile.graph.quantity import Node
from mantile.ir.draft import DecoderBuilder
from mantile.ir.modules import Module, Tensor, Weights
from mantile.ir.streams import collapsing


def prediction(
    draft: DecoderBuilder, drawn: Callable[[DecoderBuilder, str], list[Module]]
) -> tuple[Tensor, ...]:
    """Tensors of the prediction layers: norms of embedding and hidden state, what joins them, a decoder layer, a norm.

    The decoder layer is what the architecture says, else of the last kind. Some checkpoints hold copies of embedding and LM head.

    Args:
        drawn: draws up the modules of a block.
    """
    architecture, names, hidden = draft.architecture, draft.names.prediction, draft.facts["hidden_size"]
    if not architecture.value("mtp_layers"):
        return ()
    stated = architecture.choices.get("prediction_layer")
    blocks = stated.value.split(" + ") if stated is not None else architecture.stack[-1].layers[-1]
    count = draft.facts["mtp_layers"]
    own = None if names.once else count
    table = (draft.columns(draft.facts["vocabulary"]), hidden)

    def stored(name: str, *shape: Node, weights: Weights = "attention") -> tuple[Tensor, ...]:
        return (
            (Tensor(f"{names.prefix}{name}.weight", shape, own, matrix=len(shape) > 1, weights=weights),)
            if name
            else ()
        )

    inside = (
        replace(tensor, name=names.layer + tensor.name.removeprefix(draft.names.layer), layers=count)
        for name in blocks
        for module in drawn(draft, name)
        for tensor in module.tensors
    )
    joined = hidden if names.join_hidden else hidden + hidden
    return (
        *stored(names.embedding, *table, weights="head"),
        *stored(names.embedding_norm, hidden),
        *stored(names.hidden_norm, hidden),
        *stored(names.join, hidden, joined),
        *stored(names.join_hidden, hidden, hidden),
        *inside,
        *(replace(tensor, layers=own) for tensor in collapsing(draft, names.prefix)),
        *stored(names.norm, hidden),
        *stored(names.head, *table, weights="head"),
    )
