"""Fields of a config.json to facts, each with its origin. A missing key is not null, and a figure is never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.library.architecture import Architecture, Block, BlockKind, Choice, Fact, Origin, Tower, runs
from mantile.library.documents import validate
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.quantisation import data_types

Layer = tuple[str, ...]


def choice(config: Config, value: str, why: str = "", origin: Origin = "default") -> Choice:
    """A word the class implies."""
    return Choice(value=value, origin=origin, source=f"{config.model_type} class{': ' + why if why else ''}")


def base_facts(config: Config, positions: int | None) -> Facts:
    """Figures outside mixers and FFNs; `positions` is the class default of the longest context, None where there is no such thing."""
    longest = (
        {}
        if positions is None
        else {
            "max_positions": config.integer("max_position_embeddings", "model_max_length", default=positions)
        }
    )
    return longest | {
        "hidden_size": config.integer("hidden_size"),
        "vocabulary": config.integer("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }


def decoder_facts(
    config: Config,
    positions: int,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    tied: bool = False,
) -> Facts:
    """Figures nearly every decoder spells alike: sizes, heads, vocabulary. Flags are those of llama: no bias, no QK norm.

    Args:
        positions, kv_heads, head_dim, tied: class defaults; None where the class has as many KV heads as query heads, and heads
            that share the hidden size among them.
    """
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    return {
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads, kv_heads),
        "head_dim": config.head_dim(hidden, heads, head_dim),
        "vocabulary": config.integer("vocab_size"),
        "max_positions": config.integer("max_position_embeddings", default=positions),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": config.implied(0, "no bias on query, key and value"),
        "output_bias": config.implied(0, "no bias on the output projection"),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "qk_norm": config.implied(0, "no norm of queries and keys"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }


def ffn_facts(config: Config, field: str = "intermediate_size") -> Facts:
    """Figures of a dense FFN without bias."""
    return {"ffn_size": config.integer(field), "ffn_bias": config.implied(0, "no bias in the FFN")}


def dense_facts(config: Config, positions: int, **defaults: Any) -> Facts:
    """Figures of a decoder with a dense FFN in every layer."""
    return decoder_facts(config, positions, **defaults) | ffn_facts(config)


def attention_biases(config: Config, default: bool = False) -> Facts:
    """One switch for the biases of query, key, value and output."""
    bias = config.flag("attention_bias", default=default)
    return {"qkv_bias": bias, "output_bias": bias}


def layer_norm(config: Config) -> Facts:
    """LayerNorm as most have it."""
    return {"norm_bias": config.implied(1, "LayerNorm has a bias")}


def without(config: Config, *fields: str) -> None:
    """An error where a switch that changes the structure is on."""
    for name in fields:
        if config.flag(name, default=False).value:
            raise config.invalid(name, f"false; nothing else is supported for {config.model_type}")


def block(kind: BlockKind, /, **uses: str) -> Block:
    """A block; `uses` names the facts that play a role under another name."""
    return Block(kind=kind, uses=uses)


def architecture(
    config: Config,
    facts: Facts,
    blocks: Mapping[str, Block],
    layers: Sequence[Layer],
    *,
    counted: Fact,
    norms: str = "pre",
    norm: str = "RMSNorm",
    activation: Choice | None = None,
    positions: str = "RoPE",
    pattern: str = "",
    tensor_names: str = "",
    predicted: Layer = (),
    vision: Tower | None = None,
) -> Architecture:
    """Put an architecture together.

    Args:
        facts: figures without those that count layers.
        layers: every layer in order, as block names.
        counted: how many layers there are, with its source.
        norms: where norms stand: pre, sandwich, post, parallel.
        pattern: which field says what kind each layer is.
        tensor_names: whose tensor names hold, if not those of the model type.
        predicted: blocks of a layer that predicts further tokens, where it is not of the last kind.
    """
    kinds = dict.fromkeys(layers)
    if len(kinds) == 1:
        counts = {"layers": counted}
    else:
        source = f"layers of this kind, from {pattern or counted.source}"
        counts = {
            ".".join(("layers", *kind)): config.derived(list(layers).count(kind), source) for kind in kinds
        }
    outer = config.outer_type or config.model_type
    described = {
        "model_type": outer,
        "facts": counts | facts,
        "blocks": dict(blocks),
        "stack": runs(layers),
        "choices": {
            "norms": choice(config, norms, "where norms stand"),
            "norm": choice(config, norm),
            "activation": activation or config.text("hidden_act", default="silu"),
            "position_embedding": choice(config, positions),
            "tensor_names": choice(config, tensor_names or config.model_type, "whose names the tensors have"),
        }
        | _prediction(config, facts, predicted)
        | data_types(config, [[blocks[name] for name in layer] for layer in layers], facts),
        "vision": vision,
    }
    return validate(Architecture, described, config.name)


def _prediction(config: Config, facts: Facts, blocks: Layer) -> dict[str, Choice]:
    """Of which blocks a layer that predicts further tokens is made, if there is one and its family says so."""
    if not blocks or not facts["mtp_layers"].value:
        return {}
    return {
        "prediction_layer": choice(
            config, " + ".join(blocks), "blocks of a layer that predicts further tokens"
        )
    }


def uniform(config: Config, facts: Facts, blocks: Mapping[str, Block], **more: Any) -> Architecture:
    """An architecture whose layers are all alike."""
    counted = more.pop("counted", None) or config.layers()
    return architecture(config, facts, blocks, [tuple(blocks)] * counted.value, counted=counted, **more)
