"""Dense decoders whose layers are all alike: llama, mistral, qwen, phi3, cohere, olmo2, glm, granite, starcoder2."""

from __future__ import annotations

from mantile.library.architecture import Architecture, Fact
from mantile.library.errors import InputError
from mantile.library.huggingface.reading import Config, Facts, block, dense_facts, uniform
from mantile.library.huggingface.windowed import limited_window, olmo2_facts, refused

LAYER = {"attention": block("attention", window="sliding_window"), "ffn": block("ffn")}
PLAIN = {"attention": block("attention"), "ffn": block("ffn")}


def window(config: Config, default: int, switch: bool) -> Fact:
    """The sliding window; 0 is none. Where the class has a switch, it is off unless the file turns it on."""
    if switch:
        used = config.flag("use_sliding_window", default=False)
        if not used.value:
            return Fact(value=0, origin=used.origin, source="use_sliding_window is false")
        full = config.data.get("max_window_layers", 28)  # layers below it attend to everything
        if isinstance(full, int) and not isinstance(full, bool) and full >= config.layers().value:
            return config.derived(0, "max_window_layers: no layer has a window")
        if full != 0 or isinstance(full, bool):
            raise InputError(
                f"{config.name}: field {config.path}max_window_layers: a window on some layers only is not supported for "
                f"{config.model_type}; expected 0 or use_sliding_window false"
            )
    if "sliding_window" in config.data and config.data["sliding_window"] is None:
        return Fact(value=0, origin="config", source=f"{config.path}sliding_window is null")
    if default or "sliding_window" in config.data:
        return config.whole("sliding_window", default=default)
    return config.implied(0, "no sliding window")


def llama(config: Config) -> Architecture:
    """Llama 1 to 3."""
    bias = config.flag("attention_bias", default=False)
    return uniform(config, dense_facts(config) | {
        "max_positions": config.whole("max_position_embeddings", default=2048),
        "sliding_window": config.implied(0, "no sliding window"),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": config.flag("mlp_bias", default=False),
    }, LAYER)  # fmt: skip


def mistral(config: Config) -> Architecture:
    """Mistral and Ministral."""
    facts = dense_facts(config)
    return uniform(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "sliding_window": window(config, 4096, switch=False),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
    }, LAYER)  # fmt: skip


def ministral3(config: Config) -> Architecture:
    """Ministral 3 and Devstral 2."""
    facts = dense_facts(config)
    return uniform(config, facts | {
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "sliding_window": window(config, 0, switch=False),
        "max_positions": config.whole("max_position_embeddings", default=262_144),
    }, LAYER)  # fmt: skip


def qwen2(config: Config) -> Architecture:
    """Qwen 1.5 to 2.5."""
    facts = dense_facts(config)
    return uniform(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=32),
        "sliding_window": window(config, 4096, switch=True),
        "max_positions": config.whole("max_position_embeddings", default=32_768),
        "qkv_bias": config.implied(1, "query, key and value always have a bias"),
    }, LAYER)  # fmt: skip


def qwen3(config: Config) -> Architecture:
    """Qwen 3, dense."""
    facts = dense_facts(config)
    bias = config.flag("attention_bias", default=False)
    return uniform(config, facts | {
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=32),
        "sliding_window": window(config, 4096, switch=True),
        "max_positions": config.whole("max_position_embeddings", default=32_768),
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        "qkv_bias": bias,
        "output_bias": bias,
    }, LAYER)  # fmt: skip


def starcoder2(config: Config) -> Architecture:
    """StarCoder 2."""
    facts = dense_facts(config)
    bias = config.flag("use_bias", default=True)
    return uniform(config, facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=2),
        "sliding_window": window(config, 0, switch=False),
        "max_positions": config.whole("max_position_embeddings", default=4096),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "norm_bias": config.implied(1, "LayerNorm has a bias"),
        "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": bias,
    }, LAYER, norm="LayerNorm", activation=config.word("hidden_act", default="gelu_pytorch_tanh"))  # fmt: skip


def phi3(config: Config) -> Architecture:
    """Phi-3, 3.5-mini and 4: query, key and value in one matrix, gate and up in another."""
    facts = dense_facts(config) | {"max_positions": config.whole("max_position_embeddings", default=4096)}
    return uniform(config, facts | {"sliding_window": limited_window(config, facts)}, LAYER)


def cohere(config: Config) -> Architecture:
    """Command R and Aya: mixer and FFN side by side behind one LayerNorm without bias."""
    if config.flag("use_qk_norm", default=False).value:
        raise refused(config, "use_qk_norm", "a norm of its own for every head is not supported")
    bias = config.flag("attention_bias", default=False)
    return uniform(config, dense_facts(config) | {
        "max_positions": config.whole("max_position_embeddings", "model_max_length", default=8192),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "qkv_bias": bias,
        "output_bias": bias,
    }, PLAIN, norms="parallel", norm="LayerNorm without bias")  # fmt: skip


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
    facts = dense_facts(config)
    return facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=2),
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "qkv_bias": config.flag("attention_bias", default=True),
    }  # fmt: skip


def granite(config: Config) -> Architecture:
    """Granite 3, dense: the tensors of llama."""
    bias = config.flag("attention_bias", default=False)
    return uniform(config, dense_facts(config) | {
        "max_positions": config.whole("max_position_embeddings", default=2048),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": config.flag("mlp_bias", default=False),
    }, PLAIN)  # fmt: skip
