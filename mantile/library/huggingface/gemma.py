"""Gemma 1 to 4: wide heads, tied embeddings, windows in some layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mantile.library.architecture import Architecture, Block, Choice
from mantile.library.huggingface.assembly import assemble_uniform, block
from mantile.library.huggingface.common_facts import attention_biases, dense_facts, head_norms
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.layer_kinds import (
    DENSE_FFN,
    MIXERS,
    assemble_layers,
    periodic_mixers,
    sliding_window,
)


def gemma(config: Config) -> Architecture:
    """Gemma 1: every layer looks back without limit."""
    blocks = {"attention": block("attention"), "ffn": block("ffn")}
    return assemble_uniform(config, _facts(config, 8192, 16), blocks, activation=_activation(config))


def gemma2(config: Config) -> Architecture:
    """Gemma 2: every other layer has a window; norms before and after mixer and FFN."""
    mixers = periodic_mixers(config, 2)
    facts = _facts(config, 8192, 4) | sliding_window(config, mixers, 4096)
    return assemble_layers(config, facts, mixers, DENSE_FFN, norms="sandwich", activation=_activation(config))


def gemma3(config: Config) -> Architecture:
    """Gemma 3: five layers with a window to one without, queries and keys normed."""
    mixers = periodic_mixers(config, 6, field="sliding_window_pattern")
    facts = _facts(config, 131_072, 4) | sliding_window(config, mixers, 4096) | head_norms(config)
    return assemble_layers(config, facts, mixers, DENSE_FFN, norms="sandwich", activation=_activation(config))


def gemma4(config: Config) -> Architecture:
    """Gemma 4, with or without experts, which stand beside a dense FFN.

    Layers without a window have heads of their own, whose keys may serve as values.
    """
    for field, default in (("hidden_size_per_layer_input", 256), ("num_kv_shared_layers", 0)):
        if config.optional(field, why="class default", value=default).value:
            raise config.uncovered(
                field, "0; embeddings of each layer and caches shared by layers are not supported"
            )
    mixers = [*periodic_mixers(config, 6)[:-1], "full"]  # the class has no window in the last layer
    facts = _facts(config, 131_072, 4) | sliding_window(config, mixers, 512) | head_norms(config)
    facts["layer_scale"] = config.implied(1, "every layer's output is scaled by a stored number")
    facts |= _full_heads(config, mixers, facts)
    full = block(
        "attention",
        kv_heads="global_kv_heads",
        head_dim="global_head_dim",
        values_are_keys="global_values_are_keys",
    )
    ffn: Mapping[str, Block] = DENSE_FFN
    if config.flag("enable_moe_block", default=False).value:
        facts |= _expert_facts(config)
        ffn = {"moe": block("moe", shared_expert_size="ffn_size")}
    return assemble_layers(
        config,
        facts,
        mixers,
        ffn,
        mixer_blocks=MIXERS | {"full": full},
        norms="sandwich",
        activation=_activation(config),
    )


def _facts(config: Config, positions: int, kv_heads: int) -> Facts:
    """What the families have in common.

    Tokens of text look back only; those of an image may see each other.
    """
    if config.data.get("use_bidirectional_attention") not in (None, False, "vision"):
        raise config.invalid(
            "use_bidirectional_attention", "false, null or vision: tokens of text look back only"
        )
    facts = dense_facts(config, positions, kv_heads=kv_heads, head_dim=256, tied=True)
    return facts | attention_biases(config)


def _activation(config: Config) -> Choice:
    return config.text("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")


def _expert_facts(config: Config) -> Facts:
    return {
        "experts": config.integer("num_experts"),
        "experts_per_token": config.integer("top_k_experts", "num_experts_per_tok"),
        "expert_size": config.integer("moe_intermediate_size", "expert_intermediate_size"),
        "branch_norms": config.implied(1, "norms after the dense FFN and around the experts"),
        "router_scales": config.implied(1, "stored scales before and after the router"),
    }


def _full_heads(config: Config, mixers: Sequence[str], facts: Facts) -> Facts:
    """Heads of the layers without a window: stated once, or layer by layer as newer files have it."""
    shared = config.flag("attention_k_eq_v", default=False)
    stated = config.data.get("per_layer_config")
    if stated is None:
        own_kv_heads = shared.value and config.has("num_global_key_value_heads")
        size = config.integer("global_head_dim", default=512)
        kv_heads = config.integer("num_global_key_value_heads") if own_kv_heads else facts["kv_heads"]
    else:
        fields = _full_layer_fields(config, mixers, stated)
        layer = replace(config, data=fields, path=f"{config.path}per_layer_config.", defaults={})
        size = layer.integer("head_dim") if "head_dim" in fields else facts["head_dim"]
        kv_heads = (
            layer.integer("num_key_value_heads") if "num_key_value_heads" in fields else facts["kv_heads"]
        )
    return {"global_head_dim": size, "global_kv_heads": kv_heads, "global_values_are_keys": shared}


def _full_layer_fields(config: Config, mixers: Sequence[str], stated: Any) -> dict[str, Any]:
    """What per_layer_config says of every layer without a window."""
    full = {str(layer) for layer, mixer in enumerate(mixers) if mixer == "full"}
    first = next(iter(stated.values()), None) if isinstance(stated, dict) else None
    if (
        not isinstance(first, dict)
        or set(stated) != full
        or any(fields != first for fields in stated.values())
        or set(first) - {"head_dim", "num_key_value_heads"}
    ):
        raise config.invalid(
            "per_layer_config",
            "the same head_dim and num_key_value_heads for every layer without a window, and nothing else",
        )
    return first
