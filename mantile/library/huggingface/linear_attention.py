"""Decoders with linear attention in most layers: qwen3_next, qwen3_5, kimi_linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mantile.library.architecture import Architecture, Fact
from mantile.library.huggingface.assembly import assemble, block
from mantile.library.huggingface.common_facts import base_facts, ffn_facts, head_norms
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.deepseek import assemble_deepseek, latent_facts

CHUNK = 64  # tokens: what the kernels of delta rules are written for


def qwen3_next(config: Config) -> Architecture:
    """Qwen3-Next: experts, except where mlp_only_layers or decoder_sparse_step leave them out."""
    count = config.layers().value
    dense = config.integers("mlp_only_layers") or []
    experts = config.integer("num_experts", least=0)
    step = config.integer("decoder_sparse_step", default=1).value
    ffns = [
        "moe" if experts.value and layer not in dense and (layer + 1) % step == 0 else "ffn"
        for layer in range(count)
    ]
    return _qwen(config, ffns, per_token=10, kv_heads=2)


def qwen3_5(config: Config) -> Architecture:
    """Qwen3.5, dense."""
    return _qwen(config, ["ffn"] * config.layers().value, per_token=0, kv_heads=4)


def qwen3_5_moe(config: Config) -> Architecture:
    """Qwen3.5 with experts in every layer."""
    if config.integers("mlp_only_layers"):
        raise config.invalid("mlp_only_layers", "an empty list: every layer has experts")
    return _qwen(config, ["moe"] * config.layers().value, per_token=8, kv_heads=2)


def _qwen(config: Config, ffns: Sequence[str], *, per_token: int, kv_heads: int) -> Architecture:
    """Gated DeltaNet with gated full attention in between.

    Args:
        ffns: the FFN of each layer.
        per_token, kv_heads: class defaults of the experts of a token, and of the KV heads.
    """
    for field, expected in (
        ("attn_output_gate", True),
        ("use_sliding_window", False),
        ("mtp_use_dedicated_embeddings", False),
    ):
        if bool(config.flag(field, default=expected).value) != expected:
            raise config.invalid(field, str(expected).lower())
    layer_count = config.layers()
    mixers = _qwen_mixers(config, layer_count.value)
    facts = _qwen_attention_facts(config, kv_heads)
    if "linear" in mixers:
        facts |= _gated_delta_facts(config)
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
            "expert_size": config.integer("moe_intermediate_size"),
            "shared_expert_size": config.integer("shared_expert_intermediate_size"),
            "shared_expert_gate": config.implied(1, "a gate weighs the shared expert"),
        }
    prediction_blocks = ("attention", ffns[-1])
    used = {*mixers, *ffns, *(prediction_blocks if facts["mtp_layers"].value else ())}
    blocks = {
        "linear": block("gated_delta"),
        "attention": block("attention"),
        "ffn": block("ffn"),
        "moe": block("moe"),
    }
    return assemble(
        config,
        facts,
        {name: blocks[name] for name in blocks if name in used},
        list(zip(mixers, ffns, strict=True)),
        layer_count=layer_count,
        pattern="layer_types or full_attention_interval",
        prediction_blocks=prediction_blocks,
    )


def _qwen_mixers(config: Config, count: int) -> list[str]:
    """Which mixer each layer has: by layer_types, else every so many layers full attention."""
    kinds = config.texts("layer_types", count, ("linear_attention", "full_attention"))
    if kinds is not None:
        return ["linear" if kind == "linear_attention" else "attention" for kind in kinds]
    period = config.integer("full_attention_interval", default=4).value
    return ["linear" if (layer + 1) % period else "attention" for layer in range(count)]


def _qwen_attention_facts(config: Config, kv_heads: int) -> Facts:
    """Everything but the linear layers and the FFNs."""
    heads = config.integer("num_attention_heads")
    bias = config.flag("attention_bias", default=False)
    mtp_fields = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
    return base_facts(config, 32_768) | {
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads, class_default=kv_heads),
        "head_dim": config.integer("head_dim", default=256),
        "qkv_bias": bias,
        "output_bias": bias,
        **head_norms(config),
        "output_gate": config.implied(1, "the query projection also makes a gate"),
        "mtp_layers": config.optional(*mtp_fields, why="no prediction layers stated"),
    }


def _gated_delta_facts(config: Config) -> Facts:
    key_heads = config.integer("linear_num_key_heads", default=16)
    value_heads = config.integer("linear_num_value_heads", default=32)
    if value_heads.value % key_heads.value:
        raise config.invalid("linear_num_value_heads", f"a multiple of the {key_heads.value} key heads")
    return {
        "linear_key_heads": key_heads,
        "linear_value_heads": value_heads,
        "linear_key_dim": config.integer("linear_key_head_dim", default=128),
        "linear_value_dim": config.integer("linear_value_head_dim", default=128),
        "linear_chunk": config.implied(CHUNK, "kernels work in chunks of this length"),
        "conv_kernel": config.integer("linear_conv_kernel_dim", default=4),
        "conv_bias": config.implied(0, "the short convolution has no bias"),
    }


def kimi_linear(config: Config) -> Architecture:
    """Kimi Linear: delta and latent attention, neither with positions; experts as DeepSeek has them."""
    if config.flag("tie_word_embeddings", default=False).value:
        raise config.invalid("tie_word_embeddings", "false; the class has an LM head of its own")
    fields = config.data.get("linear_attn_config", {})
    if not isinstance(fields, dict):
        raise config.invalid("linear_attn_config", "a mapping of fields")
    linear = replace(config, data=fields, path=f"{config.path}linear_attn_config.")
    mixers = _kimi_mixers(config, linear, config.layers().value)
    facts = latent_facts(config, query_rank=0, positions=1_048_576)
    if "linear" in mixers:
        facts |= _kimi_delta_facts(config, linear)
    return assemble_deepseek(
        config,
        facts,
        {"linear": block("delta"), "attention": block("latent_attention")},
        mixers,
        dense_layers=1,
        per_token=8,
        pattern="layer_types or linear_attn_config, mlp_layer_types or first_k_dense_replace",
        positions="none",
    )


def _kimi_mixers(config: Config, linear: Config, count: int) -> list[str]:
    """Which mixer each layer has: by layer_types, by two lists, else every fourth one full attention."""
    kinds = config.texts("layer_types", count, ("linear_attention", "full_attention"))
    if kinds is not None:
        return ["linear" if kind == "linear_attention" else "attention" for kind in kinds]
    if "full_attn_layers" not in linear.data and "kda_layers" not in linear.data:
        return ["attention" if layer and layer % 4 == 0 else "linear" for layer in range(count)]
    full, delta = linear.integers("full_attn_layers"), linear.integers("kda_layers")
    if full is None or delta is None or sorted([*full, *delta]) != list(range(1, count + 1)):
        raise linear.invalid(
            "kda_layers", f"every layer from 1 to {count} once, together with full_attn_layers"
        )
    return ["attention" if number in full else "linear" for number in range(1, count + 1)]  # from 1


def _kimi_delta_facts(config: Config, linear: Config) -> Facts:
    """Delta attention, stated in linear_attn_config or at the top level."""

    def either(nested: str, flat: str, default: int) -> Fact:
        return linear.integer(nested) if nested in linear.data else config.integer(flat, default=default)

    return {
        "linear_heads": either("num_heads", "linear_num_heads", 32),
        "linear_head_dim": either("head_dim", "linear_head_dim", 128),
        "linear_chunk": config.implied(CHUNK, "kernels work in chunks of this length"),
        "conv_kernel": either("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
        "conv_bias": config.implied(0, "the short convolutions have no bias"),
    }
