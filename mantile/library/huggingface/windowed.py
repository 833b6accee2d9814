"""Decoders with a window in some layers: cohere2, olmo3, gpt_oss, mimo_v2_flash."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import block
from mantile.library.huggingface.common_facts import (
    attention_biases,
    decoder_facts,
    dense_facts,
    ffn_facts,
    routing_correction,
)
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.dense import olmo2_facts
from mantile.library.huggingface.layer_kinds import (
    DENSE_FFN,
    assemble_layers,
    periodic_mixers,
    sliding_window,
    stated_mixers,
)

# Facts of MiMo's layers with a window, by role, where they differ from those of the other layers.
_MIMO_SLIDING = {
    "attention_heads": "sliding_heads",
    "kv_heads": "sliding_kv_heads",
    "head_dim": "sliding_head_dim",
    "value_head_dim": "sliding_value_head_dim",
    "sinks": "sliding_sinks",
}


def cohere2(config: Config) -> Architecture:
    """Command A and R7B: three layers with a window to one without; mixer and FFN share one norm."""
    mixers = periodic_mixers(config, 4, field="sliding_window_pattern")
    facts = dense_facts(config, 8192, tied=True) | attention_biases(config)
    facts |= sliding_window(config, mixers, 4096)
    return assemble_layers(config, facts, mixers, DENSE_FFN, norms="parallel", norm="LayerNorm without bias")


def olmo3(config: Config) -> Architecture:
    """OLMo 3: as OLMo 2, three layers with a window to one without."""
    mixers = periodic_mixers(config, 4)
    facts = olmo2_facts(config) | sliding_window(config, mixers, 4096)
    return assemble_layers(config, facts, mixers, DENSE_FFN, norms="post")


def gpt_oss(config: Config) -> Architecture:
    """gpt-oss: every other layer has a window; sinks and biases everywhere; experts in every layer."""
    mixers = periodic_mixers(config, 2)
    facts = (
        decoder_facts(config, 131_072, kv_heads=8, head_dim=64)
        | attention_biases(config, default=True)
        | sliding_window(config, mixers, 128)
        | {
            "sinks": config.implied(1, "a learned sink for every head"),
            "experts": config.integer("num_local_experts", "num_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", "experts_per_token", default=4),
            "expert_size": config.integer("intermediate_size"),
            "expert_bias": config.implied(1, "experts have biases"),
            "router_bias": config.implied(1, "the router has a bias"),
        }
    )
    return assemble_layers(config, facts, mixers, {"moe": block("moe")})


def mimo_v2_flash(config: Config) -> Architecture:
    """MiMo-V2-Flash: layers with a window have own KV heads and sinks; values are narrower than keys."""
    if config.optional("n_shared_experts", why="no shared experts").value:
        raise config.invalid("n_shared_experts", "null; shared experts are not part of this class")
    mixers, ffns = _mimo_mixers(config), _mimo_ffns(config)
    facts = decoder_facts(config, 131_072, kv_heads=4, head_dim=192) | {
        "value_head_dim": config.integer("v_head_dim", default=128),
        "sinks": config.flag("add_full_attention_sink_bias", default=False),
        "qkv_bias": config.flag("attention_bias", default=False),
    }
    uses = {"window": "sliding_window"}
    if "sliding" in mixers:
        facts |= _mimo_window(config, facts)
        uses |= {role: name for role, name in _MIMO_SLIDING.items() if name in facts}
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("n_routed_experts", "num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=8),
            "expert_size": config.integer("moe_intermediate_size"),
            **routing_correction(config),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    return assemble_layers(
        config,
        facts,
        mixers,
        {"ffn": block("ffn"), "moe": block("moe")},
        ffns=ffns,
        mixer_blocks={"full": block("attention"), "sliding": block("attention", **uses)},
        pattern="hybrid_layer_pattern and moe_layer_freq",
    )


def _mimo_window(config: Config, facts: Facts) -> Facts:
    """The window, and the heads of layers that have one.

    What is the same in all layers stays one fact, so that their projections are one module.
    """
    if config.has("sliding_window_size"):
        before = config.integer("sliding_window_size")
        source = f"{before.source} + 1: tokens before it, and the token itself"
        sliding = {"sliding_window": config.derived(before.value + 1, source)}
    else:
        sliding = {"sliding_window": config.integer("sliding_window", default=129)}
    sliding["sliding_kv_heads"] = (
        config.integer("swa_num_key_value_heads")
        if config.has("swa_num_key_value_heads")
        else config.derived(2 * facts["kv_heads"].value, f"2 × {facts['kv_heads'].source}")
    )
    for role, field in (
        ("attention_heads", "swa_num_attention_heads"),
        ("head_dim", "swa_head_dim"),
        ("value_head_dim", "swa_v_head_dim"),
    ):
        if config.has(field) and config.integer(field).value != facts[role].value:
            sliding[_MIMO_SLIDING[role]] = config.integer(field)
    return sliding | {"sliding_sinks": config.flag("add_swa_attention_sink_bias", default=True)}


def _mimo_mixers(config: Config) -> list[str]:
    """Which mixer each layer has. The class has no window in the first layer and in every sixth."""
    count = config.layers().value
    limited = config.integers("hybrid_layer_pattern", count)
    if limited is None:
        return stated_mixers(config) or [
            "full" if layer == 0 or (layer + 1) % 6 == 0 else "sliding" for layer in range(count)
        ]
    if set(limited) - {0, 1}:
        raise config.invalid("hybrid_layer_pattern", f"{count} numbers, 0 (full) or 1 (window)")
    return ["sliding" if kind else "full" for kind in limited]


def _mimo_ffns(config: Config) -> list[str]:
    """Which FFN each layer has. The class has a dense one in the first layer only."""
    count = config.layers().value
    kinds = config.texts("mlp_layer_types", count, among=("dense", "sparse"))
    if kinds is not None:
        return ["moe" if kind == "sparse" else "ffn" for kind in kinds]
    sparse = config.integers("moe_layer_freq", count)
    if sparse is None:
        return ["moe" if layer else "ffn" for layer in range(count)]
    if set(sparse) - {0, 1}:
        raise config.invalid("moe_layer_freq", f"{count} numbers, 0 (dense) or 1 (experts)")
    return ["moe" if kind else "ffn" for kind in sparse]
