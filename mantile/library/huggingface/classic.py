"""Decoders of the first years, with biases, LayerNorm and a plain FFN: gpt2 and its like, falcon, phi."""

from __future__ import annotations

from mantile.library.architecture import Architecture, Choice, Fact
from mantile.library.huggingface.assembly import assemble_uniform, block
from mantile.library.huggingface.common_facts import (
    dense_facts,
    layer_norm,
    plain_ffn,
    require_off,
    switched,
)
from mantile.library.huggingface.config import Config, Facts

LAYER = {"attention": block("attention"), "ffn": block("ffn")}


def gpt2(config: Config) -> Architecture:
    """GPT-2: learned positions, one norm before mixer and FFN each."""
    return assemble_uniform(
        config,
        _gpt_facts(config, positions=1024) | _learned_positions(config, 1024),
        LAYER,
        layer_count=_gpt_layers(config),
        norm="LayerNorm",
        activation=_gpt_activation(config),
        positions="learned",
    )


def gpt_bigcode(config: Config) -> Architecture:
    """SantaCoder and StarCoder 1: as GPT-2, with one KV head."""
    facts = _gpt_facts(config, positions=1024) | _learned_positions(config, 1024)
    multi_query = config.flag("multi_query", default=True)
    if multi_query.value:
        facts["kv_heads"] = switched(multi_query, 1, "one KV head")
    return assemble_uniform(
        config,
        facts,
        LAYER,
        layer_count=_gpt_layers(config),
        norm="LayerNorm",
        activation=config.text("activation_function", default="gelu_pytorch_tanh"),
        positions="learned",
    )


def gptj(config: Config) -> Architecture:
    """GPT-J: mixer and FFN side by side behind one norm; no biases in attention, one in the LM head."""
    no_bias = config.implied(0, "no biases in attention")
    facts = _gpt_facts(config, positions=2048) | {
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "qkv_bias": no_bias,
        "output_bias": no_bias,
        "head_bias": config.implied(1, "the LM head has a bias"),
    }
    return assemble_uniform(
        config,
        facts,
        LAYER,
        layer_count=_gpt_layers(config),
        norms="parallel",
        norm="LayerNorm",
        activation=_gpt_activation(config),
    )


def _gpt_facts(config: Config, *, positions: int) -> Facts:
    """Sizes under the fields of GPT-2; `positions` is the class default of the longest context."""
    require_off(config, "add_cross_attention")
    hidden, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    return _facts(
        config,
        hidden=hidden,
        heads=heads,
        kv_heads=_as_many(config, heads),
        ffn=_four_times(config, hidden, "n_inner"),
        tied=True,
        positions=_gpt_positions(config, positions),
    )


def _gpt_positions(config: Config, default: int) -> Fact:
    return config.integer("n_positions", "max_position_embeddings", default=default)


def _gpt_layers(config: Config) -> Fact:
    return config.layers("n_layer", "num_hidden_layers")


def _gpt_activation(config: Config) -> Choice:
    return config.text("activation_function", "hidden_act", default="gelu_new")


def _learned_positions(config: Config, default: int) -> Facts:
    """A table of learned positions; `default` is the class default of the longest context."""
    return {
        "learned_positions": config.implied(1, "a table of positions"),
        "position_rows": _gpt_positions(config, default),
    }


def gpt_neox(config: Config) -> Architecture:
    """GPT-NeoX and Pythia: a norm of its own before mixer and FFN, whether they run side by side or not."""
    heads = config.integer("num_attention_heads")
    facts = _facts(
        config,
        hidden=config.integer("hidden_size"),
        heads=heads,
        kv_heads=_as_many(config, heads),
        ffn=config.integer("intermediate_size"),
        tied=False,
        positions=config.integer("max_position_embeddings", default=2048),
    )
    bias = config.flag("attention_bias", default=True)
    return assemble_uniform(
        config,
        facts | {"qkv_bias": bias, "output_bias": bias},
        LAYER,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu"),
    )


def falcon(config: Config) -> Architecture:
    """Falcon in both layouts.

    The first has one KV head or as many as query heads, and one norm where mixer and FFN run side by side.
    The second has groups of heads, and one norm or two.
    """
    hidden = config.integer("n_embed" if config.has("n_embed") else "hidden_size")
    heads = config.integer("num_attention_heads")
    second = config.flag("new_decoder_architecture", default=False)
    parallel = config.flag("parallel_attn", default=True)
    two_norms = _falcon_two_norms(config, second, parallel)
    alibi, bias = config.flag("alibi", default=False), config.flag("bias", default=False)
    facts = _facts(
        config,
        hidden=hidden,
        heads=heads,
        kv_heads=_falcon_kv_heads(config, heads, second),
        ffn=_four_times(config, hidden, "ffn_hidden_size"),
        tied=True,
        positions=config.integer("max_position_embeddings", default=2048),
    )
    return assemble_uniform(
        config,
        facts | {"qkv_bias": bias, "output_bias": bias, "ffn_bias": bias},
        LAYER,
        norms="parallel" if parallel.value and not two_norms else "pre",
        norm="LayerNorm",
        activation=config.text("activation", default="gelu"),
        positions="ALiBi" if alibi.value else "RoPE",
        tensor_names="falcon_grouped" if two_norms else "falcon",
    )


def _falcon_two_norms(config: Config, second: Fact, parallel: Fact) -> bool:
    """Whether mixer and FFN run side by side with a norm each, which the second layout alone can do."""
    if second.value and not parallel.value:
        raise config.invalid("parallel_attn", f"true where {second.source} is")
    if not parallel.value:
        return False
    norms = config.optional("num_ln_in_parallel_attn", why="by the layout", value=1 + second.value)
    if norms.value == 2 and not second.value:
        raise config.invalid("num_ln_in_parallel_attn", f"1 where {second.source} is false")
    return norms.value == 2


def _falcon_kv_heads(config: Config, heads: Fact, second: Fact) -> Fact:
    """KV heads. The first layout takes no number: one, or as many as query heads."""
    if second.value:
        return config.kv_heads(heads, field="num_kv_heads")
    multi_query = config.flag("multi_query", default=True)
    if multi_query.value:
        return switched(multi_query, 1, "one KV head")
    return config.derived(heads.value, f"{multi_query.source} is false: as many as attention heads")


def phi(config: Config) -> Architecture:
    """Phi-1, 1.5 and 2: mixer and FFN side by side behind one norm, biases everywhere."""
    normed = config.flag("qk_layernorm", default=False)
    facts = dense_facts(config, 2048) | layer_norm(config) | plain_ffn(config) | _biases(config)
    return assemble_uniform(
        config,
        facts
        | {
            "head_bias": config.implied(1, "the LM head has a bias"),
            "qk_norm": normed,
            "qk_norm_bias": normed,
        },
        LAYER,
        norms="parallel",
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu_new"),
    )


def _facts(
    config: Config, *, hidden: Fact, heads: Fact, kv_heads: Fact, ffn: Fact, tied: bool, positions: Fact
) -> Facts:
    """What the families have in common; `tied` is the class default of tie_word_embeddings."""
    return {
        "hidden_size": hidden,
        "vocabulary": config.integer("vocab_size"),
        "max_positions": positions,
        "attention_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": config.head_dim(hidden, heads),
        "ffn_size": ffn,
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qk_norm": config.implied(0, "no norm of queries and keys"),
        **plain_ffn(config),
        **_biases(config),
        **layer_norm(config),
    }


def _biases(config: Config) -> Facts:
    bias = config.implied(1, "biases everywhere")
    return {"qkv_bias": bias, "output_bias": bias, "ffn_bias": bias}


def _as_many(config: Config, heads: Fact) -> Fact:
    return config.derived(heads.value, f"{heads.source}: as many KV heads")


def _four_times(config: Config, hidden: Fact, field: str) -> Fact:
    """The FFN size, where a file may leave out that it is four times the hidden size."""
    if config.has(field):
        return config.integer(field)
    return config.derived(4 * hidden.value, f"4 × {hidden.source}: {field} absent")
