"""Decoders with recurrent mixers: qwen3_next, qwen3_5, kimi_linear, nemotron_h, mamba2, jamba."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mantile.library.architecture import Architecture, BlockKind, Fact
from mantile.library.huggingface.config import MAX_LAYERS, Config, Facts
from mantile.library.huggingface.latent import decoder, latent_facts
from mantile.library.huggingface.reading import architecture, base_facts, block

DELTA_CHUNK = 64  # tokens: what the kernels of delta rules are written for


def qwen3_next(config: Config) -> Architecture:
    """Qwen3-Next: experts but where mlp_only_layers or decoder_sparse_step leave them out."""
    count = config.layers().value
    dense = config.integers("mlp_only_layers") or []
    experts = config.integer("num_experts", least=0)
    step = config.integer("decoder_sparse_step", default=1).value
    ffns = [
        "moe" if experts.value and number not in dense and (number + 1) % step == 0 else "ffn"
        for number in range(count)
    ]
    return _gated_delta(config, ffns, per_token=10, kv_heads=2)


def qwen3_5(config: Config) -> Architecture:
    """Qwen3.5, dense."""
    return _gated_delta(config, ["ffn"] * config.layers().value, per_token=0, kv_heads=4)


def qwen3_5_moe(config: Config) -> Architecture:
    """Qwen3.5 with experts in every layer."""
    if config.integers("mlp_only_layers"):
        raise config.invalid("mlp_only_layers", "an empty list: every layer has experts")
    return _gated_delta(config, ["moe"] * config.layers().value, per_token=8, kv_heads=2)


def _gated_delta(config: Config, ffns: Sequence[str], *, per_token: int, kv_heads: int) -> Architecture:
    """Gated DeltaNet with gated full attention in between."""
    for field, expected in (
        ("attn_output_gate", True),
        ("use_sliding_window", False),
        ("mtp_use_dedicated_embeddings", False),
    ):
        if bool(config.flag(field, default=expected).value) != expected:
            raise config.invalid(field, str(expected).lower())
    counted = config.layers()
    kinds = config.texts("layer_types", counted.value, ("linear_attention", "full_attention"))
    if kinds is None:
        every = config.integer("full_attention_interval", default=4).value
        kinds = [
            "linear_attention" if (number + 1) % every else "full_attention"
            for number in range(counted.value)
        ]
    heads = config.integer("num_attention_heads")
    bias = config.flag("attention_bias", default=False)
    facts = base_facts(config, 32_768) | {
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads, class_default=kv_heads),
        "head_dim": config.integer("head_dim", default=256),
        "qkv_bias": bias,
        "output_bias": bias,
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        "output_gate": config.implied(1, "the query projection also makes a gate"),
        "mtp_layers": config.optional(
            "mtp_num_hidden_layers", "num_nextn_predict_layers", why="no prediction layers stated"
        ),
    }
    if "linear_attention" in kinds:
        facts |= {
            "linear_key_heads": config.integer("linear_num_key_heads", default=16),
            "linear_value_heads": config.integer("linear_num_value_heads", default=32),
            "linear_key_dim": config.integer("linear_key_head_dim", default=128),
            "linear_value_dim": config.integer("linear_value_head_dim", default=128),
            "linear_chunk": config.implied(DELTA_CHUNK, "kernels work in chunks of this length"),
            "conv_kernel": config.integer("linear_conv_kernel_dim", default=4),
            "conv_bias": config.implied(0, "the short convolution has no bias"),
        }
        if facts["linear_value_heads"].value % facts["linear_key_heads"].value:
            raise config.invalid(
                "linear_num_value_heads", f"a multiple of the {facts['linear_key_heads'].value} key heads"
            )
    if "ffn" in ffns:
        facts |= {
            "ffn_size": config.integer("intermediate_size"),
            "ffn_bias": config.implied(0, "no bias in the FFN"),
        }
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=per_token),
            "expert_size": config.integer("moe_intermediate_size"),
            "shared_expert_size": config.integer("shared_expert_intermediate_size"),
            "shared_expert_gate": config.implied(1, "a gate weighs the shared expert"),
        }
    mixers = ["linear" if kind == "linear_attention" else "attention" for kind in kinds]
    return _mixed(
        config,
        facts,
        list(zip(mixers, ffns, strict=True)),
        counted,
        "layer_types or full_attention_interval",
        predicted=("attention", ffns[-1]),
    )


def kimi_linear(config: Config) -> Architecture:
    """Kimi Linear: delta attention with latent attention in between, neither with positions; experts as DeepSeek has them."""
    if config.flag("tie_word_embeddings", default=False).value:
        raise config.invalid("tie_word_embeddings", "false; the class ties nothing")
    counted = config.layers()
    nested = config.data.get("linear_attn_config", {})
    if not isinstance(nested, dict):
        raise config.invalid("linear_attn_config", "a mapping of fields")
    linear = replace(config, data=nested, path=f"{config.path}linear_attn_config.")
    kinds = config.texts("layer_types", counted.value, ("linear_attention", "full_attention"))
    if kinds is None and ("full_attn_layers" in nested or "kda_layers" in nested):
        kinds = _from_one(linear, counted.value)
    elif kinds is None:
        kinds = [
            "full_attention" if number and number % 4 == 0 else "linear_attention"
            for number in range(counted.value)
        ]
    facts = latent_facts(config, 0, positions=1_048_576)

    def either(field: str, flat: str, default: int) -> Fact:
        return linear.integer(field) if field in nested else config.integer(flat, default=default)

    if "linear_attention" in kinds:
        facts |= {
            "linear_heads": either("num_heads", "linear_num_heads", 32),
            "linear_head_dim": either("head_dim", "linear_head_dim", 128),
            "linear_chunk": config.implied(DELTA_CHUNK, "kernels work in chunks of this length"),
            "conv_kernel": either("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
            "conv_bias": config.implied(0, "the short convolutions have no bias"),
        }
    mixers = ["linear" if kind == "linear_attention" else "attention" for kind in kinds]
    return decoder(
        config,
        facts,
        {"linear": block("delta"), "attention": block("latent_attention")},
        mixers,
        first=1,
        per_token=8,
        pattern="layer_types or linear_attn_config, mlp_layer_types or first_k_dense_replace",
        positions="none",
    )


def _from_one(linear: Config, count: int) -> list[str]:
    """The kind of every layer from two lists of layers that are counted from 1."""
    full, delta = linear.integers("full_attn_layers"), linear.integers("kda_layers")
    if full is None or delta is None or sorted([*full, *delta]) != list(range(1, count + 1)):
        raise linear.invalid("kda_layers", f"with full_attn_layers every layer from 1 to {count} once")
    return ["full_attention" if number in full else "linear_attention" for number in range(1, count + 1)]


_LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "ffn"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "moe": "moe",
    "mlp": "ffn",
}


def nemotron_h(config: Config) -> Architecture:
    """Nemotron-H and Nemotron 3: every layer is one mixer or one FFN. Attention has no positions and no bias."""
    for field in ("attention_bias", "mamba_proj_bias", "tie_word_embeddings"):
        if config.flag(field, default=False).value:
            raise config.invalid(field, "false; the class has no such bias and ties nothing")
    kinds = _pattern(config)
    stated = config.optional("num_hidden_layers", why="as many as the pattern has", value=len(kinds))
    if stated.value != len(kinds):
        raise config.invalid("num_hidden_layers", f"{len(kinds)}, the length of the pattern")
    counted = (
        stated if config.has("num_hidden_layers") else config.derived(len(kinds), "length of the pattern")
    )
    bias = config.flag("mlp_bias", default=False)
    facts = base_facts(config, 4096) | {
        "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
        "mtp_layers": _predicted(config, kinds),
    }
    if "attention" in kinds:
        heads = config.integer("num_attention_heads")
        facts |= {
            "attention_heads": heads,
            "kv_heads": config.kv_heads(heads, class_default=8),
            "head_dim": config.integer("head_dim", "attention_head_dim", default=128),
            "qkv_bias": config.implied(0, "no bias on query, key and value"),
            "output_bias": config.implied(0, "no bias on the output projection"),
            "qk_norm": config.implied(0, "no norm of queries and keys"),
        }
    if "mamba" in kinds:
        facts |= _mamba2_facts(
            config, ("mamba_num_heads", 128), ("mamba_head_dim", 64), ("ssm_state_size", 128), 128
        )
    if "ffn" in kinds:
        facts |= {"ffn_size": config.integer("intermediate_size"), "ffn_bias": bias}
    if "moe" in kinds:
        if bias.value:
            raise config.invalid("mlp_bias", "false where there are experts")
        facts |= {
            "experts": config.integer("n_routed_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=2),
            "expert_size": config.integer("moe_intermediate_size"),
            "shared_expert_size": config.integer("moe_shared_expert_intermediate_size"),
            "correction_bias": config.implied(1, "a stored vector balances the routing"),
        }
        if config.has("moe_latent_size"):
            facts["latent_size"] = config.integer("moe_latent_size")
    return _mixed(
        config,
        facts,
        [(kind,) for kind in kinds],
        counted,
        "hybrid_override_pattern or layers_block_type",
        mixer="mamba2",
        activation="mlp_hidden_act",
        default="relu2",
        positions="none",
        predicted=("attention", "moe"),
    )


def _pattern(config: Config) -> list[str]:
    """The kind of every layer, from words or from letters."""
    field = next((field for field in ("layers_block_type", "layer_types") if config.has(field)), None)
    if field is not None:
        words = config.texts(field, among=tuple(_WORDS))
        if not words or len(words) > MAX_LAYERS:
            raise config.invalid(field, f"from 1 to {MAX_LAYERS} texts")
        return [_WORDS[word] for word in words]
    letters = config.data.get("hybrid_override_pattern")
    if not isinstance(letters, str) or not 1 <= len(letters) <= MAX_LAYERS or set(letters) - set(_LETTERS):
        raise config.invalid(
            "hybrid_override_pattern", "letters M (Mamba), * (attention), E (experts), - (FFN)"
        )
    return [_LETTERS[letter] for letter in letters]


def _predicted(config: Config, kinds: Sequence[str]) -> Fact:
    """Prediction layers, which are known as attention followed by experts only."""
    count = config.optional("num_nextn_predict_layers", why="no prediction layers")
    words = config.texts("mtp_layers_block_type", among=tuple(_WORDS))
    if count.value and config.data.get("mtp_hybrid_override_pattern", "*E") != "*E":
        raise config.invalid("mtp_hybrid_override_pattern", "*E: attention, then experts")
    if count.value and words is not None and [_WORDS[word] for word in words] != ["attention", "moe"]:
        raise config.invalid("mtp_layers_block_type", "attention, then moe")
    if count.value and not {"attention", "moe"} <= set(kinds):
        raise config.invalid("num_nextn_predict_layers", "0 in a model without both attention and experts")
    return count


def mamba2(config: Config) -> Architecture:
    """Mamba 2: nothing but mixers. There is no longest context and no KV cache."""
    facts = base_facts(config, None) | _mamba2_facts(
        config, ("num_heads", 128), ("head_dim", 64), ("state_size", 128), 256
    )
    inner = facts["mamba_heads"].value * facts["mamba_head_dim"].value
    expand = config.integer("expand", default=2)
    if expand.value * facts["hidden_size"].value != inner:
        raise config.invalid("expand", f"{inner} (num_heads × head_dim) ÷ hidden_size")
    counted = config.layers()
    return _mixed(config, facts, [("mamba",)] * counted.value, counted, "", mixer="mamba2", positions="none")


def _mamba2_facts(
    config: Config, heads: tuple[str, int], size: tuple[str, int], state: tuple[str, int], chunk: int
) -> Facts:
    """Figures of Mamba 2: how the file spells heads, head size and state size, with the class defaults."""
    found = {
        "mamba_heads": config.integer(heads[0], default=heads[1]),
        "mamba_head_dim": config.integer(size[0], default=size[1]),
        "mamba_groups": config.integer("n_groups", default=8),
        "mamba_state": config.integer(state[0], default=state[1]),
        "mamba_chunk": config.integer("chunk_size", default=chunk),
        "conv_kernel": config.integer("conv_kernel", default=4),
        "conv_bias": config.flag("use_conv_bias", default=True),
        "projection_bias": config.flag("use_bias", default=False),
    }
    if found["mamba_heads"].value % found["mamba_groups"].value:
        raise config.invalid("n_groups", f"a divisor of the {found['mamba_heads'].value} heads")
    return found


def jamba(config: Config) -> Architecture:
    """Jamba: Mamba 1 with attention every few layers, experts every few layers. Attention has no positions."""
    counted, hidden, heads = (
        config.layers(),
        config.integer("hidden_size"),
        config.integer("num_attention_heads"),
    )
    experts = config.integer("num_experts", "num_local_experts")
    mixers = _every(config, "attn_layer", 8, 4, counted.value, "attention", "mamba")
    ffns = _every(config, "expert_layer", 2, 1, counted.value, "moe" if experts.value > 1 else "ffn", "ffn")
    facts = base_facts(config, 262_144)
    if "attention" in mixers:
        facts |= {
            "attention_heads": heads,
            "kv_heads": config.kv_heads(heads, class_default=8),
            "head_dim": config.head_dim(hidden, heads),
            "qkv_bias": config.implied(0, "no bias on query, key and value"),
            "output_bias": config.implied(0, "no bias on the output projection"),
            "qk_norm": config.implied(0, "no norm of queries and keys"),
        }
    if "mamba" in mixers:
        facts |= _mamba_facts(config, hidden)
    size = config.integer("intermediate_size")
    if "ffn" in ffns:
        facts |= {"ffn_size": size, "ffn_bias": config.implied(0, "no bias in the FFN")}
    if "moe" in ffns:
        facts |= {
            "experts": experts,
            "experts_per_token": config.integer("num_experts_per_tok", default=2),
            "expert_size": size,
        }
    return _mixed(
        config,
        facts,
        list(zip(mixers, ffns, strict=True)),
        counted,
        "attn_layer_period and expert_layer_period",
        mixer="mamba",
        positions="none",
    )


def _mamba_facts(config: Config, hidden: Fact) -> Facts:
    """Figures of Mamba 1."""
    expand = config.integer("mamba_expand", default=2)
    if config.data.get("mamba_dt_rank", "auto") == "auto":
        rank = config.derived(-(-hidden.value // 16), f"{hidden.source} ÷ 16, rounded up")
    else:
        rank = config.integer("mamba_dt_rank")
    return {
        "mamba_inner": config.derived(expand.value * hidden.value, f"{expand.source} × {hidden.source}"),
        "mamba_state": config.integer("mamba_d_state", default=16),
        "mamba_dt_rank": rank,
        "conv_kernel": config.integer("mamba_d_conv", default=4),
        "conv_bias": config.flag("mamba_conv_bias", default=True),
        "projection_bias": config.flag("mamba_proj_bias", default=False),
    }


def _every(
    config: Config, stem: str, period: int, offset: int, count: int, chosen: str, other: str
) -> list[str]:
    """One kind every few layers, the first at an offset, another kind in between."""
    every = config.integer(f"{stem}_period", default=period)
    first = config.integer(f"{stem}_offset", default=offset, least=0)
    if first.value >= every.value:
        raise config.invalid(f"{stem}_offset", f"less than {every.source}, {every.value}")
    return [chosen if number % every.value == first.value else other for number in range(count)]


def _mixed(
    config: Config,
    facts: Facts,
    layers: list[tuple[str, ...]],
    counted: Fact,
    pattern: str,
    *,
    mixer: BlockKind = "gated_delta",
    activation: str = "hidden_act",
    default: str = "silu",
    positions: str = "RoPE",
    predicted: tuple[str, ...] = (),
) -> Architecture:
    """An architecture of layers that are different, with the blocks that some layer uses."""
    known: dict[str, BlockKind] = {
        "linear": mixer,
        "mamba": mixer,
        "attention": "attention",
        "ffn": "ffn",
        "moe": "moe",
    }
    used = {name for layer in layers for name in layer} | set(
        predicted if predicted and facts["mtp_layers"].value else ()
    )
    blocks = {name: block(kind) for name, kind in known.items() if name in used}
    return architecture(
        config,
        facts,
        blocks,
        layers,
        counted=counted,
        pattern=pattern,
        positions=positions,
        predicted=predicted,
        activation=config.text(activation, default=default),
    )
