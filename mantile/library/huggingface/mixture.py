"""Mixtures of experts over ordinary attention: mixtral, qwen2_moe, qwen3_moe, phimoe, glm4_moe, minimax_m2."""

from __future__ import annotations

from mantile.library.architecture import Architecture, Fact
from mantile.library.huggingface import latent
from mantile.library.huggingface.dense import window
from mantile.library.huggingface.reading import Config, Facts, architecture, block, decoder_facts, uniform
from mantile.library.huggingface.windowed import limited_window

LAYER = {"attention": block("attention", window="sliding_window"), "moe": block("moe")}


def mixtral(config: Config) -> Architecture:
    """Mixtral: every layer has experts, whose width is the intermediate size."""
    facts = decoder_facts(config)
    return uniform(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "sliding_window": window(config, 0, switch=False),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "experts": config.whole("num_local_experts", "num_experts", default=8),
        "experts_per_token": config.whole("num_experts_per_tok", default=2),
        "expert_size": config.whole("intermediate_size"),
    }, LAYER)  # fmt: skip


def phimoe(config: Config) -> Architecture:
    """Phi-3.5-MoE: as Mixtral, with biases and LayerNorm."""
    facts = decoder_facts(config)
    bias = config.flag("attention_bias", default=False)
    facts |= {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "qkv_bias": bias,
        "output_bias": bias,
        "norm_bias": config.implied(1, "LayerNorm has a bias"),
        "head_bias": config.flag("lm_head_bias", default=False),
        "experts": config.whole("num_local_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", default=2),
        "expert_size": config.whole("intermediate_size"),
    }  # fmt: skip
    return uniform(config, facts | {"sliding_window": limited_window(config, facts)}, LAYER, norm="LayerNorm")


def _qwen(config: Config, facts: Facts, per_token: int) -> Architecture:
    """Qwen's mixtures: experts in every step-th layer, dense FFNs in the layers mlp_only_layers names."""
    count = config.layers()
    step = config.whole("decoder_sparse_step", default=1).value
    listed = config.numbers("mlp_only_layers") or []
    if any(not 0 <= layer < count.value for layer in listed):
        raise config.wrong("mlp_only_layers", f"layer numbers from 0 to {count.value - 1}")
    dense = [layer in listed or (layer + 1) % step != 0 for layer in range(count.value)]
    facts |= {
        "sliding_window": window(config, 0, switch=True) if config.data.get("use_sliding_window") else config.implied(0, "no sliding window"),
        "max_positions": config.whole("max_position_embeddings", default=32_768),
        "experts": config.whole("num_experts", "num_local_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", default=per_token),
        "expert_size": config.whole("moe_intermediate_size"),
    }  # fmt: skip
    if any(dense):
        facts |= {"ffn_size": config.whole("intermediate_size"), "ffn_bias": config.implied(0, "no bias in the FFN")}
    blocks = LAYER | ({"ffn": block("ffn")} if any(dense) else {})
    if all(dense):
        del blocks["moe"]
    return architecture(config, facts, blocks, [("attention", "ffn" if flat else "moe") for flat in dense], counted=count,
                        pattern="decoder_sparse_step and mlp_only_layers")  # fmt: skip


def qwen2_moe(config: Config) -> Architecture:
    """Qwen 1.5 and 2 with experts: a shared expert behind a gate, biases on query, key and value."""
    facts = decoder_facts(config)
    return _qwen(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=16),
        "qkv_bias": config.flag("qkv_bias", default=True),
        "shared_expert_size": config.whole("shared_expert_intermediate_size"),
        "shared_expert_gate": config.implied(1, "a gate weighs the shared expert"),
    }, per_token=4)  # fmt: skip


def qwen3_moe(config: Config) -> Architecture:
    """Qwen 3 with experts: no shared expert, queries and keys normed."""
    facts = decoder_facts(config)
    bias = config.flag("attention_bias", default=False)
    return _qwen(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=4),
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        "qkv_bias": bias,
        "output_bias": bias,
    }, per_token=8)  # fmt: skip


def glm4_moe(config: Config) -> Architecture:
    """GLM-4.5 to 4.7: the FFNs of DeepSeek over grouped-query attention."""
    facts = decoder_facts(config)
    return latent.decoder(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "qkv_bias": config.flag("attention_bias", default=False),
        "qk_norm": config.flag("use_qk_norm", default=False),
    }, {"attention": block("attention")}, first=1, per_token=8)  # fmt: skip


def minimax_m2(config: Config) -> Architecture:
    """MiniMax-M2: experts of the intermediate size, one norm over all query heads and one over all key heads."""
    kinds = config.numbers("attn_type_list", config.layers().value)
    if kinds is not None and set(kinds) != {1}:
        raise config.wrong("attn_type_list", "1 for every layer: full attention")
    facts = decoder_facts(config)
    normed = config.flag("use_qk_norm", default=True)
    return uniform(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "max_positions": config.whole("max_position_embeddings", default=196_608),
        "qk_norm": Fact(value=2 * normed.value, origin=normed.origin, source=f"{normed.source}: over the width of all heads"),
        "experts": config.whole("num_local_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", default=8),
        "expert_size": config.whole("intermediate_size"),
        "correction_bias": config.implied(1, "a stored vector balances the routing"),
    }, {"attention": block("attention"), "moe": block("moe")})  # fmt: skip
