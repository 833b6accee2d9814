"""Mixtures of experts over ordinary attention: mixtral, phimoe, qwen_moe, glm4_moe, minimax_m2."""

from __future__ import annotations

from collections.abc import Callable

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import assemble_uniform, block
from mantile.library.huggingface.common_facts import (
    attention_biases,
    decoder_facts,
    ffn_facts,
    head_norms,
    layer_norm,
    routing_correction,
    switched,
)
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.deepseek import assemble_deepseek
from mantile.library.huggingface.layer_kinds import (
    assemble_with_window,
    limited_window,
    switched_window,
    window,
)

WINDOW_LAYER = {"attention": block("attention", window="sliding_window"), "moe": block("moe")}


def mixtral(config: Config) -> Architecture:
    """Mixtral: every layer has experts, whose width is the intermediate size."""
    facts = decoder_facts(config, 131_072, kv_heads=8) | _wide_experts(config, 2)
    return assemble_uniform(config, facts | {"sliding_window": window(config, 0)}, WINDOW_LAYER)


def phimoe(config: Config) -> Architecture:
    """Phi-3.5-MoE: as Mixtral, with biases and LayerNorm."""
    facts = decoder_facts(config, 131_072, kv_heads=8) | attention_biases(config) | layer_norm(config)
    facts |= _wide_experts(config, 2)
    facts["head_bias"] = config.flag("lm_head_bias", default=False)
    if facts["experts_per_token"].value != 2:
        raise config.invalid("num_experts_per_tok", "2: the class sends every token to two experts")
    facts["sliding_window"] = limited_window(config, facts)
    return assemble_uniform(config, facts, WINDOW_LAYER, norm="LayerNorm")


def _wide_experts(config: Config, per_token: int) -> Facts:
    """Experts of the intermediate size; `per_token` is the class default of the experts of a token."""
    return {
        "experts": config.integer("num_local_experts", "num_experts"),
        "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
        "expert_size": config.integer("intermediate_size"),
    }


def qwen2_moe(config: Config) -> Architecture:
    """Qwen 1.5 and 2 with experts: a shared expert behind a gate, biases on query, key and value.

    If a window is turned on, the class has it in every other of the layers before max_window_layers.
    """
    first_full = config.integer("max_window_layers", default=28, least=0).value
    facts = decoder_facts(config, 32_768, kv_heads=16) | {"qkv_bias": config.flag("qkv_bias", default=True)}
    return _qwen(
        config,
        facts,
        per_token=4,
        has_window=lambda layer: layer % 2 == 0 and layer < first_full,
        shared={
            "shared_expert_size": config.integer("shared_expert_intermediate_size"),
            "shared_expert_gate": config.implied(1, "a gate weighs the shared expert"),
        },
    )


def qwen3_moe(config: Config) -> Architecture:
    """Qwen 3 with experts: no shared expert, queries and keys normed.

    If a window is turned on, the class has it in every layer.
    """
    facts = decoder_facts(config, 32_768, kv_heads=4) | attention_biases(config) | head_norms(config)
    return _qwen(config, facts, per_token=8, has_window=lambda layer: True, shared={})


def _qwen(
    config: Config, facts: Facts, *, per_token: int, has_window: Callable[[int], bool], shared: Facts
) -> Architecture:
    """Experts in every decoder_sparse_step-th layer, dense FFNs in the layers that mlp_only_layers names."""
    count = config.layers().value
    step = config.integer("decoder_sparse_step", default=1).value
    dense = config.integers("mlp_only_layers") or []
    if any(not 0 <= layer < count for layer in dense):
        raise config.invalid("mlp_only_layers", f"layer numbers from 0 to {count - 1}")
    ffns = ["ffn" if layer in dense or (layer + 1) % step else "moe" for layer in range(count)]
    if "moe" in ffns:
        facts |= shared | {
            "experts": config.integer("num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
            "expert_size": config.integer("moe_intermediate_size"),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    return assemble_with_window(
        config,
        facts,
        switched_window(config),
        has_window,
        {"moe": block("moe"), "ffn": block("ffn")},
        ffns=ffns,
        pattern="decoder_sparse_step and mlp_only_layers, layer_types or max_window_layers",
    )


def glm4_moe(config: Config) -> Architecture:
    """GLM-4.5 to 4.7: the FFNs of DeepSeek over grouped-query attention."""
    facts = decoder_facts(config, 131_072, kv_heads=8) | {
        "qkv_bias": config.flag("attention_bias", default=False),
        "qk_norm": config.flag("use_qk_norm", default=False),
    }
    return _glm(config, facts)


def glm4v_moe(config: Config) -> Architecture:
    """The decoder of GLM-4.5V."""
    bias = config.flag("attention_bias", default=True)
    return _glm(config, decoder_facts(config, 65_536, kv_heads=8) | {"qkv_bias": bias})


def _glm(config: Config, facts: Facts) -> Architecture:
    attention = {"attention": block("attention")}
    return assemble_deepseek(config, facts, attention, dense_layers=1, per_token=8)


def minimax_m2(config: Config) -> Architecture:
    """MiniMax-M2: experts of the intermediate size; norms over all query heads and over all key heads."""
    kinds = config.integers("attn_type_list", config.layers().value)
    if kinds is not None and set(kinds) != {1}:
        raise config.invalid("attn_type_list", "1 for every layer: full attention")
    if config.optional("shared_intermediate_size", why="no shared expert").value:
        raise config.uncovered("shared_intermediate_size", "0; a shared expert is not supported")
    config.text("qk_norm_type", default="per_layer", among=("per_layer",))
    normed = config.flag("use_qk_norm", default=True)
    if not normed.value:
        raise config.invalid("use_qk_norm", "true: the class always norms queries and keys")
    facts = decoder_facts(config, 196_608, kv_heads=8, head_dim=128) | _wide_experts(config, 8)
    facts |= routing_correction(config)
    facts["qk_norm"] = switched(normed, 2, "over the width of all heads")
    return assemble_uniform(config, facts, {"attention": block("attention"), "moe": block("moe")})
