"""An architecture put together: facts and blocks of a reader, how many layers of each kind, data types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.library.architecture import Architecture, Block, BlockKind, Choice, Fact, LayerKind, Tower, runs
from mantile.library.documents import validate
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.quantisation import stored


def block(kind: BlockKind, /, **uses: str) -> Block:
    """A block; `uses` names the facts that play a role under another name."""
    return Block(kind=kind, uses=uses)


def assemble(
    config: Config,
    facts: Facts,
    blocks: Mapping[str, Block],
    layers: Sequence[LayerKind],
    *,
    layer_count: Fact,
    norms: str = "pre",
    norm: str = "RMSNorm",
    activation: Choice | None = None,
    positions: str = "RoPE",
    pattern: str = "",
    tensor_names: str = "",
    prediction_blocks: LayerKind = (),
    vision: Tower | None = None,
) -> Architecture:
    """Put an architecture together.

    Args:
        facts: without those that count layers.
        blocks: by name; no layer uses another.
        layers: every layer in order.
        layer_count: how many layers there are, with its source.
        norms: where norms stand: pre, sandwich, post, parallel.
        norm, activation, positions: what kind of norm, activation and position embedding; hidden_act states
            the activation where it is None.
        pattern: the fields that say what kind each layer is.
        tensor_names: key of the tensor names in `families`, if not the model type.
        prediction_blocks: blocks of a layer that predicts further tokens, where it is not of the last kind.

    Raises:
        InputError: if the facts contradict each other.
    """
    kept = stored(config, blocks, layers, facts)
    description = {
        "model_type": config.outer_type or config.model_type,
        "facts": _layer_counts(config, kept.layers, layer_count, pattern) | facts,
        "blocks": kept.blocks,
        "stack": runs(kept.layers),
        "choices": {
            "norms": _class_choice(config, norms, "where norms stand"),
            "norm": _class_choice(config, norm),
            "activation": activation or config.text("hidden_act", default="silu"),
            "position_embedding": _class_choice(config, positions),
            "tensor_names": _class_choice(
                config, tensor_names or config.model_type, "whose names the tensors have"
            ),
        }
        | _prediction_layer(config, facts, prediction_blocks)
        | kept.choices,
        "vision": vision,
    }
    return validate(Architecture, description, config.name)


def assemble_uniform(
    config: Config, facts: Facts, blocks: Mapping[str, Block], *, layer_count: Fact | None = None, **more: Any
) -> Architecture:
    """An architecture whose layers all have the same blocks; further arguments are those of `assemble`."""
    count = config.layers() if layer_count is None else layer_count
    return assemble(config, facts, blocks, [tuple(blocks)] * count.value, layer_count=count, **more)


def _layer_counts(config: Config, layers: Sequence[LayerKind], layer_count: Fact, pattern: str) -> Facts:
    """How many layers there are of each kind."""
    kinds = dict.fromkeys(layers)
    if len(kinds) == 1:
        return {"layers": layer_count}
    source = f"layers of this kind, from {pattern or layer_count.source}"
    return {".".join(("layers", *kind)): config.derived(list(layers).count(kind), source) for kind in kinds}


def _prediction_layer(config: Config, facts: Facts, blocks: LayerKind) -> dict[str, Choice]:
    """The blocks of a layer that predicts further tokens, if there is one and its family says so."""
    if not blocks or not facts["mtp_layers"].value:
        return {}
    meaning = "blocks of a layer that predicts further tokens"
    return {"prediction_layer": _class_choice(config, " + ".join(blocks), meaning)}


def _class_choice(config: Config, value: str, meaning: str = "") -> Choice:
    """What the class implies and no field says."""
    source = f"{config.model_type} class{': ' + meaning if meaning else ''}"
    return Choice(value=value, origin="default", source=source)
