"""Dense decoders whose layers are alike or differ by a window only: llama, mistral, qwen, phi3, glm, ..."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import assemble_uniform, block
from mantile.library.huggingface.common_facts import (
    attention_biases,
    dense_facts,
    head_norms,
    layer_norm,
    plain_ffn,
    require_off,
    switched,
)
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.layer_kinds import (
    assemble_with_window,
    limited_window,
    switched_window,
    window,
)

WINDOW_LAYER = {"attention": block("attention", window="sliding_window"), "ffn": block("ffn")}
LAYER = {"attention": block("attention"), "ffn": block("ffn")}


def llama(config: Config) -> Architecture:
    """Llama 1 to 3."""
    facts = dense_facts(config, 2048) | attention_biases(config) | _ffn_bias(config)
    facts["sliding_window"] = config.implied(0, "no sliding window")
    return assemble_uniform(config, facts, WINDOW_LAYER)


def mistral(config: Config) -> Architecture:
    """Mistral: a window in every layer, if there is one and layer_types does not say otherwise."""
    facts = dense_facts(config, 131_072, kv_heads=8)
    return assemble_with_window(config, facts, window(config, 4096), lambda layer: True)


def ministral3(config: Config) -> Architecture:
    """Ministral 3 and Devstral 2."""
    facts = dense_facts(config, 262_144, kv_heads=8, head_dim=128)
    return assemble_with_window(config, facts, window(config, 0), lambda layer: True)


def qwen2(config: Config) -> Architecture:
    """Qwen 1.5 to 2.5."""
    bias = config.implied(1, "query, key and value always have a bias")
    return _qwen(config, dense_facts(config, 32_768, kv_heads=32) | {"qkv_bias": bias})


def qwen3(config: Config) -> Architecture:
    """Qwen 3, dense."""
    facts = dense_facts(config, 32_768, kv_heads=32, head_dim=128)
    return _qwen(config, facts | attention_biases(config) | head_norms(config))


def _qwen(config: Config, facts: Facts) -> Architecture:
    """A window, if it is turned on, in layers from max_window_layers on."""
    first = config.integer("max_window_layers", default=28, least=0).value
    return assemble_with_window(
        config, facts, switched_window(config), lambda layer: layer >= first, pattern="max_window_layers"
    )


def starcoder2(config: Config) -> Architecture:
    """StarCoder 2."""
    bias = config.flag("use_bias", default=True)
    facts = dense_facts(config, 4096, kv_heads=2, tied=True) | layer_norm(config) | plain_ffn(config)
    facts |= {"qkv_bias": bias, "output_bias": bias, "ffn_bias": bias}
    return assemble_uniform(
        config,
        facts | {"sliding_window": window(config, 0)},
        WINDOW_LAYER,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu_pytorch_tanh"),
    )


def phi3(config: Config) -> Architecture:
    """Phi-3, 3.5-mini and 4: query, key and value in one matrix, gate and up in another, no biases."""
    require_off(config, "attention_bias", "mlp_bias", "lm_head_bias")
    facts = dense_facts(config, 4096)
    return assemble_uniform(config, facts | {"sliding_window": limited_window(config, facts)}, WINDOW_LAYER)


def cohere(config: Config) -> Architecture:
    """Command R and Aya: mixer and FFN side by side behind one LayerNorm without bias."""
    facts = dense_facts(config, 8192, tied=True) | attention_biases(config)
    facts |= _own_head_norms(config, "use_qk_norm")
    return assemble_uniform(config, facts, LAYER, norms="parallel", norm="LayerNorm without bias")


def olmo2(config: Config) -> Architecture:
    """OLMo 2: norms after mixer and FFN."""
    return assemble_uniform(config, olmo2_facts(config), LAYER, norms="post")


def olmo2_facts(config: Config) -> Facts:
    """Facts of OLMo 2 and 3: queries and keys are normed over their whole width."""
    norm = config.implied(2, "RMSNorm over the width of all query and key heads")
    return dense_facts(config, 2048) | attention_biases(config) | {"qk_norm": norm}


def glm4(config: Config) -> Architecture:
    """GLM-4-0414: gate and up in one matrix, norms before and after mixer and FFN."""
    return assemble_uniform(config, _glm_facts(config), LAYER, norms="sandwich")


def glm(config: Config) -> Architecture:
    """GLM-4-9B in its transformers form: as GLM-4-0414 with two norms a layer."""
    return assemble_uniform(config, _glm_facts(config), LAYER)


def _glm_facts(config: Config) -> Facts:
    bias = config.flag("attention_bias", default=True)
    return dense_facts(config, 131_072, kv_heads=2, head_dim=128) | {"qkv_bias": bias}


def granite(config: Config) -> Architecture:
    """Granite 3, dense: the tensors of llama."""
    facts = dense_facts(config, 2048) | attention_biases(config) | _ffn_bias(config)
    return assemble_uniform(config, facts, LAYER)


def nemotron(config: Config) -> Architecture:
    """Nemotron 4 and Minitron: LayerNorm, and a plain FFN."""
    facts = dense_facts(config, 4096) | attention_biases(config) | layer_norm(config)
    return assemble_uniform(
        config,
        facts | plain_ffn(config) | _ffn_bias(config),
        LAYER,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="relu2"),
    )


def stablelm(config: Config) -> Architecture:
    """StableLM: LayerNorm, one for mixer and FFN where they run side by side."""
    facts = dense_facts(config, 4096, kv_heads=32) | layer_norm(config)
    facts |= _own_head_norms(config, "qk_layernorm")
    facts["qkv_bias"] = config.flag("use_qkv_bias", default=False)
    parallel = config.flag("use_parallel_residual", default=False).value
    return assemble_uniform(config, facts, LAYER, norms="parallel" if parallel else "pre", norm="LayerNorm")


def _ffn_bias(config: Config) -> Facts:
    return {"ffn_bias": config.flag("mlp_bias", default=False)}


def _own_head_norms(config: Config, field: str) -> Facts:
    """A norm of queries and keys with weights for every head, if the field turns it on."""
    flag = config.flag(field, default=False)
    if not flag.value:
        return {}
    return {"qk_norm": switched(flag, 3, "LayerNorm of every head with weights of its own")}
