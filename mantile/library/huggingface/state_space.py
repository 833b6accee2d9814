"""Decoders with state space mixers (Mamba): nemotron_h, mamba2, jamba."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.library.architecture import Architecture, BlockKind, Choice, Fact, LayerKind
from mantile.library.huggingface.assembly import assemble, block
from mantile.library.huggingface.common_facts import (
    base_facts,
    ffn_facts,
    plain_attention,
    plain_ffn,
    routing_correction,
)
from mantile.library.huggingface.config import MAX_LAYERS, Config, Facts

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
    """Nemotron-H and Nemotron 3: every layer is one mixer or one FFN.

    Attention has no positions and no bias.
    """
    for field in ("attention_bias", "mamba_proj_bias", "tie_word_embeddings"):
        if config.flag(field, default=False).value:
            raise config.invalid(field, "false; the class has no such bias and no tied embeddings")
    blocks = _nemotron_blocks(config)
    layer_count = _nemotron_layers(config, blocks)
    facts = base_facts(config, 4096) | plain_ffn(config)
    facts["mtp_layers"] = _nemotron_prediction(config, blocks)
    if "attention" in blocks:
        facts |= _attention_facts(config, config.integer("head_dim", "attention_head_dim", default=128))
    if "mamba" in blocks:
        facts |= _mamba2_facts(
            config,
            heads=config.integer("mamba_num_heads", default=128),
            head_dim=config.integer("mamba_head_dim", default=64),
            state=config.integer("ssm_state_size", default=128),
            chunk=128,
        )
    bias = config.flag("mlp_bias", default=False)
    if "ffn" in blocks:
        facts |= {"ffn_size": config.integer("intermediate_size"), "ffn_bias": bias}
    if "moe" in blocks:
        if bias.value:
            raise config.invalid("mlp_bias", "false where there are experts")
        facts |= _nemotron_expert_facts(config)
    return _assemble(
        config,
        facts,
        [(name,) for name in blocks],
        layer_count,
        "mamba2",
        pattern="hybrid_override_pattern or layers_block_type",
        activation=config.text("mlp_hidden_act", default="relu2"),
        prediction_blocks=("attention", "moe"),
    )


def _nemotron_blocks(config: Config) -> list[str]:
    """The block of each layer, from words or from letters."""
    field = next((field for field in ("layers_block_type", "layer_types") if config.has(field)), None)
    if field is not None:
        block_types = config.texts(field, among=tuple(_WORDS))
        if not block_types or len(block_types) > MAX_LAYERS:
            raise config.invalid(field, f"from 1 to {MAX_LAYERS} texts")
        return [_WORDS[word] for word in block_types]
    letters = config.data.get("hybrid_override_pattern")
    if not isinstance(letters, str) or not 1 <= len(letters) <= MAX_LAYERS or set(letters) - set(_LETTERS):
        raise config.invalid(
            "hybrid_override_pattern", "letters M (Mamba), * (attention), E (experts), - (FFN)"
        )
    return [_LETTERS[letter] for letter in letters]


def _nemotron_layers(config: Config, blocks: Sequence[str]) -> Fact:
    """How many layers there are; a stated number has to be the length of the pattern."""
    stated = config.optional("num_hidden_layers", why="as many as the pattern has", value=len(blocks))
    if stated.value != len(blocks):
        raise config.invalid("num_hidden_layers", f"{len(blocks)}, the length of the pattern")
    return stated if config.has("num_hidden_layers") else config.derived(len(blocks), "length of the pattern")


def _nemotron_prediction(config: Config, blocks: Sequence[str]) -> Fact:
    """How many prediction layers there are. Only attention followed by experts is supported."""
    count = config.optional("num_nextn_predict_layers", why="no prediction layers")
    block_types = config.texts("mtp_layers_block_type", among=tuple(_WORDS))
    if not count.value:
        return count
    if config.data.get("mtp_hybrid_override_pattern", "*E") != "*E":
        raise config.invalid("mtp_hybrid_override_pattern", "*E: attention, then experts")
    if block_types is not None and [_WORDS[word] for word in block_types] != ["attention", "moe"]:
        raise config.invalid("mtp_layers_block_type", "attention, then moe")
    if not {"attention", "moe"} <= set(blocks):
        raise config.invalid("num_nextn_predict_layers", "0 in a model without both attention and experts")
    return count


def _nemotron_expert_facts(config: Config) -> Facts:
    facts = {
        "experts": config.integer("n_routed_experts", "num_local_experts"),
        "experts_per_token": config.integer("num_experts_per_tok", default=2),
        "expert_size": config.integer("moe_intermediate_size"),
        "shared_expert_size": config.integer("moe_shared_expert_intermediate_size"),
        **routing_correction(config),
    }
    if config.has("moe_latent_size"):
        facts["latent_size"] = config.integer("moe_latent_size")
    return facts


def mamba2(config: Config) -> Architecture:
    """Mamba 2: nothing but mixers. There is no longest context and no KV cache."""
    facts = base_facts(config, None) | _mamba2_facts(
        config,
        heads=config.integer("num_heads", default=128),
        head_dim=config.integer("head_dim", default=64),
        state=config.integer("state_size", default=128),
        chunk=256,
    )
    inner = facts["mamba_heads"].value * facts["mamba_head_dim"].value
    expand = config.integer("expand", default=2)
    hidden = facts["hidden_size"].value
    if expand.value * hidden != inner:
        raise config.invalid("expand", f"num_heads × head_dim ÷ hidden_size, {inner} ÷ {hidden}")
    layer_count = config.layers()
    return _assemble(config, facts, [("mamba",)] * layer_count.value, layer_count, "mamba2")


def _mamba2_facts(config: Config, *, heads: Fact, head_dim: Fact, state: Fact, chunk: int) -> Facts:
    """The mixer of Mamba 2; `chunk` is the class default of chunk_size."""
    groups = config.integer("n_groups", default=8)
    if heads.value % groups.value:
        raise config.invalid("n_groups", f"a divisor of the {heads.value} heads")
    return {
        "mamba_heads": heads,
        "mamba_head_dim": head_dim,
        "mamba_groups": groups,
        "mamba_state": state,
        "mamba_chunk": config.integer("chunk_size", default=chunk),
        "conv_kernel": config.integer("conv_kernel", default=4),
        "conv_bias": config.flag("use_conv_bias", default=True),
        "projection_bias": config.flag("use_bias", default=False),
    }


def jamba(config: Config) -> Architecture:
    """Jamba: Mamba 1 with attention every few layers, experts every few layers.

    Attention has no positions.
    """
    layer_count, hidden = config.layers(), config.integer("hidden_size")
    heads, experts = config.integer("num_attention_heads"), config.integer("num_experts", "num_local_experts")
    has_attention = _periodic(config, "attn_layer", layer_count.value, period=8, offset=4)
    has_experts = _periodic(config, "expert_layer", layer_count.value, period=2, offset=1)
    mixers = ["attention" if attention else "mamba" for attention in has_attention]
    ffns = ["moe" if sparse and experts.value > 1 else "ffn" for sparse in has_experts]
    facts = base_facts(config, 262_144)
    if "attention" in mixers:
        facts |= _attention_facts(config, config.head_dim(hidden, heads))
    if "mamba" in mixers:
        facts |= _mamba_facts(config, hidden)
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    if "moe" in ffns:
        facts |= {
            "experts": experts,
            "experts_per_token": config.integer("num_experts_per_tok", default=2),
            "expert_size": config.integer("intermediate_size"),
        }
    return _assemble(
        config,
        facts,
        list(zip(mixers, ffns, strict=True)),
        layer_count,
        "mamba",
        pattern="attn_layer_period and expert_layer_period",
    )


def _mamba_facts(config: Config, hidden: Fact) -> Facts:
    """The mixer of Mamba 1."""
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


def _periodic(config: Config, stem: str, count: int, *, period: int, offset: int) -> list[bool]:
    """Which layers stand a number of periods behind the first one.

    Args:
        stem: what the two fields are called before _period and _offset.
        period, offset: class defaults.
    """
    every = config.integer(f"{stem}_period", default=period)
    first = config.integer(f"{stem}_offset", default=offset, least=0)
    if first.value >= every.value:
        raise config.invalid(f"{stem}_offset", f"less than {every.source}, {every.value}")
    return [layer % every.value == first.value for layer in range(count)]


def _attention_facts(config: Config, head_dim: Fact) -> Facts:
    heads = config.integer("num_attention_heads")
    kv_heads = config.kv_heads(heads, class_default=8)
    return {
        "attention_heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        **plain_attention(config),
    }


def _assemble(
    config: Config,
    facts: Facts,
    layers: Sequence[LayerKind],
    layer_count: Fact,
    mixer: BlockKind,
    *,
    pattern: str = "",
    activation: Choice | None = None,
    prediction_blocks: LayerKind = (),
) -> Architecture:
    """An architecture without positions, with the blocks that layers use; `mixer` is the kind of Mamba."""
    used = {name for layer in layers for name in layer}
    if prediction_blocks and facts["mtp_layers"].value:
        used |= set(prediction_blocks)
    kinds: dict[str, BlockKind] = {"mamba": mixer, "attention": "attention", "ffn": "ffn", "moe": "moe"}
    return assemble(
        config,
        facts,
        {name: block(kind) for name, kind in kinds.items() if name in used},
        layers,
        layer_count=layer_count,
        pattern=pattern,
        positions="none",
        activation=activation,
        prediction_blocks=prediction_blocks,
    )
