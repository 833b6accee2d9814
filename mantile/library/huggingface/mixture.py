"""Mixtures of experts over ordinary attention: mixtral, qwen2_moe, qwen3_moe, phimoe, glm4_moe, minimax_m2."""

from __future__ import annotations

from collections.abc import Callable

from mantile.library.architecture import Architecture, Fact
from mantile.library.huggingface import latent
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.reading import (
    attention_biases,
    block,
    decoder_facts,
    ffn_facts,
    layer_norm,
    uniform,
)
from mantile.library.huggingface.windowed import limited_window, switched_window, window, with_window

LAYER = {"attention": block("attention", window="sliding_window"), "moe": block("moe")}


def mixtral(config: Config) -> Architecture:
    """Mixtral: every layer has experts, whose width is the intermediate size."""
    return uniform(
        config,
        decoder_facts(config, 131_072, kv_heads=8)
        | _wide_experts(config, 2)
        | {
            "sliding_window": window(config, 0),
        },
        LAYER,
    )


def phimoe(config: Config) -> Architecture:
    """Phi-3.5-MoE: as Mixtral, with biases and LayerNorm."""
    facts = (
        decoder_facts(config, 131_072, kv_heads=8)
        | attention_biases(config)
        | layer_norm(config)
        | _wide_experts(config, 2)
        | {
            "head_bias": config.flag("lm_head_bias", default=False),
        }
    )
    if facts["experts_per_token"].value != 2:
        raise config.invalid("num_experts_per_tok", "2: the class sends every token to two experts")
    return uniform(config, facts | {"sliding_window": limited_window(config, facts)}, LAYER, norm="LayerNorm")


def _wide_experts(config: Config, per_token: int) -> Facts:
    """Experts of the intermediate size."""
    return {
        "experts": config.integer("num_local_experts", "num_experts"),
        "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
        "expert_size": config.integer("intermediate_size"),
    }


def qwen2_moe(config: Config) -> Architecture:
    """Qwen 1.5 and 2 with experts: a shared expert behind a gate, biases on query, key and value.

    If a window is turned on, the class has it in every other of the layers before max_window_layers.
    """
    below = config.integer("max_window_layers", default=28, least=0).value
    facts = decoder_facts(config, 32_768, kv_heads=16) | {"qkv_bias": config.flag("qkv_bias", default=True)}
    return _qwen(
        config,
        facts,
        4,
        lambda layer: layer % 2 == 0 and layer < below,
        {
            "shared_expert_size": config.integer("shared_expert_intermediate_size"),
            "shared_expert_gate": config.implied(1, "a gate weighs the shared expert"),
        },
    )


def qwen3_moe(config: Config) -> Architecture:
    """Qwen 3 with experts: no shared expert, queries and keys normed; a window, if it is turned on, in every layer."""
    facts = (
        decoder_facts(config, 32_768, kv_heads=4)
        | attention_biases(config)
        | {
            "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        }
    )
    return _qwen(config, facts, 8, lambda layer: True, {})


def _qwen(
    config: Config, facts: Facts, per_token: int, limited: Callable[[int], bool], shared: Facts
) -> Architecture:
    """Qwen's mixtures: experts in every step-th layer, dense FFNs in the layers mlp_only_layers names."""
    count = config.layers().value
    step = config.integer("decoder_sparse_step", default=1).value
    listed = config.integers("mlp_only_layers") or []
    if any(not 0 <= layer < count for layer in listed):
        raise config.invalid("mlp_only_layers", f"layer numbers from 0 to {count - 1}")
    ffns = ["ffn" if layer in listed or (layer + 1) % step else "moe" for layer in range(count)]
    if "moe" in ffns:
        facts |= shared | {
            "experts": config.integer("num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
            "expert_size": config.integer("moe_intermediate_size"),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    return with_window(
        config,
        facts,
        switched_window(config),
        limited,
        {"moe": block("moe"), "ffn": block("ffn")},
        ffns=ffns,
        pattern="decoder_sparse_step and mlp_only_layers, layer_types or max_window_layers",
    )


def glm4_moe(config: Config) -> Architecture:
    """GLM-4.5 to 4.7: the FFNs of DeepSeek over grouped-query attention."""
    return _glm(
        config,
        decoder_facts(config, 131_072, kv_heads=8)
        | {
            "qkv_bias": config.flag("attention_bias", default=False),
            "qk_norm": config.flag("use_qk_norm", default=False),
        },
    )


def glm4v_moe(config: Config) -> Architecture:
    """The decoder of GLM-4.5V."""
    return _glm(
        config,
        decoder_facts(config, 65_536, kv_heads=8) | {"qkv_bias": config.flag("attention_bias", default=True)},
    )


def _glm(config: Config, facts: Facts) -> Architecture:
    return latent.decoder(config, facts, {"attention": block("attention")}, first=1, per_token=8)


def minimax_m2(config: Config) -> Architecture:
    """MiniMax-M2: experts of the intermediate size, one norm over all query heads and one over all key heads."""
    kinds = config.integers("attn_type_list", config.layers().value)
    if kinds is not None and set(kinds) != {1}:
        raise config.invalid("attn_type_list", "1 for every layer: full attention")
    if config.optional("shared_intermediate_size", why="no shared expert").value:
        raise config.invalid("shared_intermediate_size", "0; a shared expert is not supported")
    config.text("qk_norm_type", default="per_layer", among=("per_layer",))
    normed = config.flag("use_qk_norm", default=True)
    if not normed.value:
        raise config.invalid("use_qk_norm", "true: the class always norms queries and keys")
    return uniform(
        config,
        decoder_facts(config, 196_608, kv_heads=8, head_dim=128)
        | _wide_experts(config, 8)
        | {
            "qk_norm": Fact(
                value=2, origin=normed.origin, source=f"{normed.source}: over the width of all heads"
            ),
            "correction_bias": config.implied(1, "a stored vector balances the routing"),
        },
        {"attention": block("attention"), "moe": block("moe")},
    )
