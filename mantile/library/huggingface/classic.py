"""Decoders of the first years, with biases, LayerNorm and a plain FFN: falcon, gpt2, gptj, gpt_neox, gpt_bigcode, phi."""

from __future__ import annotations

from mantile.library.architecture import Architecture, Choice, Fact
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.reading import block, dense_facts, layer_norm, uniform, without

LAYER = {"attention": block("attention"), "ffn": block("ffn")}


def _facts(
    config: Config, hidden: Fact, heads: Fact, kv_heads: Fact, ffn: Fact, tied: bool, positions: Fact
) -> Facts:
    yes = config.implied(1, "biases everywhere")
    return {
        "hidden_size": hidden,
        "vocabulary": config.integer("vocab_size"),
        "max_positions": positions,
        "attention_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": config.head_dim(hidden, heads),
        "ffn_size": ffn,
        "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": yes,
        "output_bias": yes,
        "ffn_bias": yes,
        "qk_norm": config.implied(0, "no norm of queries and keys"),
    } | layer_norm(config)


def _four_times(config: Config, hidden: Fact, *fields: str) -> Fact:
    """The FFN size, where a file may leave out that it is four times the hidden size."""
    if any(config.has(field) for field in fields):
        return config.integer(*(field for field in fields if config.has(field)))
    return config.derived(4 * hidden.value, f"4 × {hidden.source}: {fields[0]} absent")


def _gpt(config: Config, positions: int, kv_heads: Fact | None = None) -> Facts:
    """Sizes as GPT-2 spells them; `positions` is the class default of the longest context."""
    without(config, "add_cross_attention")
    hidden, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    many = config.derived(heads.value, f"{heads.source}: as many KV heads")
    return _facts(
        config,
        hidden,
        heads,
        kv_heads or many,
        _four_times(config, hidden, "n_inner"),
        tied=True,
        positions=config.integer("n_positions", "max_position_embeddings", default=positions),
    )


def _learned(config: Config, facts: Facts) -> Facts:
    """Facts with a table of learned positions."""
    return facts | {
        "learned_positions": config.implied(1, "a table of positions"),
        "position_rows": facts["max_positions"],
    }


def _activation(config: Config) -> Choice:
    return config.text("activation_function", "hidden_act", default="gelu_new")


def gpt2(config: Config) -> Architecture:
    """GPT-2: learned positions, one norm before mixer and FFN each."""
    facts = _learned(config, _gpt(config, 1024))
    return uniform(
        config,
        facts,
        LAYER,
        counted=config.layers("n_layer", "num_hidden_layers"),
        norm="LayerNorm",
        activation=_activation(config),
        positions="learned",
    )


def gpt_bigcode(config: Config) -> Architecture:
    """SantaCoder and StarCoder 1: as GPT-2, with one KV head."""
    many = config.flag("multi_query", default=True)
    one = Fact(value=1, origin=many.origin, source=f"{many.source}: one KV head") if many.value else None
    facts = _learned(config, _gpt(config, 1024, one))
    return uniform(
        config,
        facts,
        LAYER,
        counted=config.layers("n_layer", "num_hidden_layers"),
        norm="LayerNorm",
        activation=config.text("activation_function", default="gelu_pytorch_tanh"),
        positions="learned",
    )


def gptj(config: Config) -> Architecture:
    """GPT-J: mixer and FFN side by side behind one norm; no biases in attention, one in the LM head."""
    none = config.implied(0, "no biases in attention")
    facts = _gpt(config, 2048) | {
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "qkv_bias": none,
        "output_bias": none,
        "head_bias": config.implied(1, "the LM head has a bias"),
    }
    return uniform(
        config,
        facts,
        LAYER,
        counted=config.layers("n_layer", "num_hidden_layers"),
        norms="parallel",
        norm="LayerNorm",
        activation=_activation(config),
    )


def gpt_neox(config: Config) -> Architecture:
    """GPT-NeoX and Pythia: a norm of its own before mixer and FFN, whether they run side by side or not."""
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    facts = _facts(
        config,
        hidden,
        heads,
        config.derived(heads.value, f"{heads.source}: as many KV heads"),
        config.integer("intermediate_size"),
        tied=False,
        positions=config.integer("max_position_embeddings", default=2048),
    )
    bias = config.flag("attention_bias", default=True)
    return uniform(
        config,
        facts | {"qkv_bias": bias, "output_bias": bias},
        LAYER,
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu"),
    )


def falcon(config: Config) -> Architecture:
    """Falcon, in its first layout (one KV head or as many as query heads) and its second (grouped heads, one norm or two)."""
    hidden, heads = (
        config.integer("n_embed" if config.has("n_embed") else "hidden_size"),
        config.integer("num_attention_heads"),
    )
    second = config.flag("new_decoder_architecture", default=False)
    parallel = config.flag("parallel_attn", default=True)
    if second.value and not parallel.value:
        raise config.invalid("parallel_attn", f"true where {second.source} is")
    two = (
        bool(parallel.value)
        and config.optional("num_ln_in_parallel_attn", why="by the layout", value=1 + second.value).value == 2
    )
    if two and not second.value:
        raise config.invalid("num_ln_in_parallel_attn", f"1 where {second.source} is false")
    alibi, bias = config.flag("alibi", default=False), config.flag("bias", default=False)
    facts = _facts(
        config,
        hidden,
        heads,
        _falcon_kv_heads(config, heads, second),
        _four_times(config, hidden, "ffn_hidden_size"),
        tied=True,
        positions=config.integer("max_position_embeddings", default=2048),
    )
    return uniform(
        config,
        facts | {"qkv_bias": bias, "output_bias": bias, "ffn_bias": bias},
        LAYER,
        norms="parallel" if parallel.value and not two else "pre",
        norm="LayerNorm",
        activation=config.text("activation", default="gelu"),
        positions="ALiBi" if alibi.value else "RoPE",
        tensor_names="falcon_grouped" if two else "falcon",
    )


def _falcon_kv_heads(config: Config, heads: Fact, second: Fact) -> Fact:
    """KV heads. The first layout takes no number: one, or as many as query heads."""
    if second.value:
        return config.kv_heads(heads, field="num_kv_heads")
    many = config.flag("multi_query", default=True)
    if many.value:
        return Fact(value=1, origin=many.origin, source=f"{many.source}: one KV head")
    return config.derived(heads.value, f"{many.source} is false: as many as attention heads")


def phi(config: Config) -> Architecture:
    """Phi-1, 1.5 and 2: mixer and FFN side by side behind one norm, biases everywhere."""
    yes = config.implied(1, "biases everywhere")
    normed = config.flag("qk_layernorm", default=False)
    return uniform(
        config,
        dense_facts(config, 2048)
        | layer_norm(config)
        | {
            "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
            "qkv_bias": yes,
            "output_bias": yes,
            "ffn_bias": yes,
            "head_bias": config.implied(1, "the LM head has a bias"),
            "qk_norm": normed,
            "qk_norm_bias": normed,
        },
        LAYER,
        norms="parallel",
        norm="LayerNorm",
        activation=config.text("hidden_act", default="gelu_new"),
    )
