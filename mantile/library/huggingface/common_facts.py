"""Facts that most decoders state under the same fields, with the defaults of their class."""

from __future__ import annotations

from typing import Any

from mantile.library.architecture import Fact
from mantile.library.huggingface.config import Config, Facts


def base_facts(config: Config, positions: int | None) -> Facts:
    """Facts outside mixers and FFNs.

    Args:
        positions: class default of the longest context; None for a class that has no such limit.
    """
    facts = {
        "hidden_size": config.integer("hidden_size"),
        "vocabulary": config.integer("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }
    if positions is None:
        return facts
    fields = ("max_position_embeddings", "model_max_length")
    return {"max_positions": config.integer(*fields, default=positions)} | facts


def decoder_facts(
    config: Config,
    positions: int,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    tied: bool = False,
) -> Facts:
    """Sizes, heads and vocabulary. Flags are those of llama: no bias, no QK norm.

    Args:
        positions, kv_heads, head_dim, tied: class defaults. None: as many KV heads as query heads, and heads
            that divide the hidden size among them.
    """
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    return {
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads, kv_heads),
        "head_dim": config.head_dim(hidden, heads, head_dim),
        "vocabulary": config.integer("vocab_size"),
        "max_positions": config.integer("max_position_embeddings", default=positions),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        **plain_attention(config),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }


def plain_attention(config: Config) -> Facts:
    """Attention without biases and without a norm of queries and keys."""
    return {
        "qkv_bias": config.implied(0, "no bias on query, key and value"),
        "output_bias": config.implied(0, "no bias on the output projection"),
        "qk_norm": config.implied(0, "no norm of queries and keys"),
    }


def ffn_facts(config: Config, field: str = "intermediate_size") -> Facts:
    """A dense FFN without bias."""
    return {"ffn_size": config.integer(field), "ffn_bias": config.implied(0, "no bias in the FFN")}


def dense_facts(config: Config, positions: int, **defaults: Any) -> Facts:
    """A decoder with a dense FFN in every layer; the arguments are those of `decoder_facts`."""
    return decoder_facts(config, positions, **defaults) | ffn_facts(config)


def attention_biases(config: Config, default: bool = False) -> Facts:
    """One switch for the biases of query, key, value and output."""
    bias = config.flag("attention_bias", default=default)
    return {"qkv_bias": bias, "output_bias": bias}


def layer_norm(config: Config) -> Facts:
    """LayerNorm with a bias, as most classes have it."""
    return {"norm_bias": config.implied(1, "LayerNorm has a bias")}


def plain_ffn(config: Config) -> Facts:
    """An FFN without gate."""
    return {"ffn_input_matrices": config.implied(1, "plain FFN: one input matrix")}


def head_norms(config: Config) -> Facts:
    """A norm of every query and every key head."""
    return {"qk_norm": config.implied(1, "RMSNorm of every query and key head")}


def routing_correction(config: Config) -> Facts:
    """A stored vector that is added to the scores of the experts."""
    return {"correction_bias": config.implied(1, "a stored vector balances the routing")}


def switched(flag: Fact, value: int, meaning: str) -> Fact:
    """The value that a switch of the file stands for; it comes from where the switch comes from."""
    return Fact(value=value, origin=flag.origin, source=f"{flag.source}: {meaning}")


def require_off(config: Config, *fields: str) -> None:
    """Raise where a switch that changes the structure is on.

    Raises:
        InputError: naming the field.
    """
    for name in fields:
        if config.flag(name, default=False).value:
            raise config.uncovered(name, f"false; nothing else is supported for {config.model_type}")
