"""Dense decoders with separate projections: llama, mistral, qwen, phi3, cohere, olmo2, glm, granite, nemotron, stablelm, starcoder2."""

from __future__ import annotations

from mantile.library.architecture import Architecture, Fact
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.reading import (
    attention_biases,
    block,
    dense_facts,
    layer_norm,
    uniform,
    without,
)
from mantile.library.huggingface.windowed import (
    limited_window,
    olmo2_facts,
    switched_window,
    window,
    with_window,
)

LAYER = {"attention": block("attention", window="sliding_window"), "ffn": block("ffn")}
PLAIN = {"attention": block("attention"), "ffn": block("ffn")}


def llama(config: Config) -> Architecture:
    """Llama 1 to 3."""
    return uniform(
        config,
        dense_facts(config, 2048)
        | attention_biases(config)
        | {
            "sliding_window": config.implied(0, "no sliding window"),
            "ffn_bias": config.flag("mlp_bias", default=False),
        },
        LAYER,
    )


def mistral(config: Config) -> Architecture:
    """Mistral: a window in every layer, if there is one and layer_types does not say otherwise."""
    return with_window(
        config, dense_facts(config, 131_072, kv_heads=8), window(config, 4096), lambda layer: True
    )


def ministral3(config: Config) -> Architecture:
    """Ministral 3 and Devstral 2."""
    return with_window(
        config, dense_facts(config, 262_144, kv_heads=8, head_dim=128), window(config, 0), lambda layer: True
    )


def qwen2(config: Config) -> Architecture:
    """Qwen 1.5 to 2.5."""
    return _qwen(
        config,
        dense_facts(config, 32_768, kv_heads=32)
        | {
            "qkv_bias": config.implied(1, "query, key and value always have a bias"),
        },
    )


def qwen3(config: Config) -> Architecture:
    """Qwen 3, dense."""
    return _qwen(
        config,
        dense_facts(config, 32_768, kv_heads=32, head_dim=128)
        | attention_biases(config)
        | {
            "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        },
    )


def _qwen(config: Config, facts: Facts) -> Architecture:
    """A window, if it is turned on, in layers from max_window_layers on."""
    first = config.integer("max_window_layers", default=28, least=0).value
    return with_window(
        config, facts, switched_window(config), lambda layer: layer >= first, pattern="max_window_layers"
    )


def starcoder2(config: Config) -> Architecture:
    """StarCoder 2."""
    bias = config.flag("use_bias", default=True)
    return uniform(
        config,
        dense_facts(config, 4096, kv_heads=2, tied=True)
        | layer_norm(config)
        | {
            "sliding_window": window(config, 0),
            "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
            "qkv_bias": bias,
            "output_bias": bias,
            "ffn_bias": bias,
        },
        LAYER,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu_pytorch_tanh"),
    )


def phi3(config: Config) -> Architecture:
    """Phi-3, 3.5-mini and 4: query, key and value in one matrix, gate and up in another, no biases."""
    without(config, "attention_bias", "mlp_bias", "lm_head_bias")
    facts = dense_facts(config, 4096)
    return uniform(config, facts | {"sliding_window": limited_window(config, facts)}, LAYER)


def cohere(config: Config) -> Architecture:
    """Command R and Aya: mixer and FFN side by side behind one LayerNorm without bias."""
    normed = config.flag("use_qk_norm", default=False)
    own = Fact(
        value=3,
        origin=normed.origin,
        source=f"{normed.source}: LayerNorm of every head with weights of its own",
    )
    facts = (
        dense_facts(config, 8192, tied=True)
        | attention_biases(config)
        | ({"qk_norm": own} if normed.value else {})
    )
    return uniform(config, facts, PLAIN, norms="parallel", norm="LayerNorm without bias")


def olmo2(config: Config) -> Architecture:
    """OLMo 2."""
    return uniform(config, olmo2_facts(config), PLAIN, norms="post")


def glm4(config: Config) -> Architecture:
    """GLM-4-0414: gate and up in one matrix, norms before and after mixer and FFN."""
    return uniform(config, _glm_facts(config), PLAIN, norms="sandwich")


def glm(config: Config) -> Architecture:
    """GLM-4-9B in its transformers form: as GLM-4-0414 with two norms a layer."""
    return uniform(config, _glm_facts(config), PLAIN)


def _glm_facts(config: Config) -> Facts:
    return dense_facts(config, 131_072, kv_heads=2, head_dim=128) | {
        "qkv_bias": config.flag("attention_bias", default=True)
    }


def granite(config: Config) -> Architecture:
    """Granite 3, dense: the tensors of llama."""
    facts = (
        dense_facts(config, 2048)
        | attention_biases(config)
        | {"ffn_bias": config.flag("mlp_bias", default=False)}
    )
    return uniform(config, facts, PLAIN)


def nemotron(config: Config) -> Architecture:
    """Nemotron 4 and Minitron: LayerNorm, and a plain FFN."""
    return uniform(
        config,
        dense_facts(config, 4096)
        | attention_biases(config)
        | layer_norm(config)
        | {
            "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
            "ffn_bias": config.flag("mlp_bias", default=False),
        },
        PLAIN,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="relu2"),
    )


def stablelm(config: Config) -> Architecture:
    """StableLM: LayerNorm, one for mixer and FFN where they run side by side."""
    normed = config.flag("qk_layernorm", default=False)
    own = Fact(
        value=3,
        origin=normed.origin,
        source=f"{normed.source}: LayerNorm of every head with weights of its own",
    )
    facts = (
        dense_facts(config, 4096, kv_heads=32)
        | layer_norm(config)
        | ({"qk_norm": own} if normed.value else {})
        | {
            "qkv_bias": config.flag("use_qkv_bias", default=False),
        }
    )
    parallel = config.flag("use_parallel_residual", default=False).value
    return uniform(config, facts, PLAIN, norms="parallel" if parallel else "pre", norm="LayerNorm")
