"""Decoders with a window in some layers: cohere2, olmo3, gpt_oss, mimo_v2_flash, step3p5."""

from __future__ import annotations

import re

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import block
from mantile.library.huggingface.common_facts import (
    attention_biases,
    decoder_facts,
    dense_facts,
    ffn_facts,
    head_norms,
    routing_correction,
)
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.dense import olmo2_facts
from mantile.library.huggingface.layer_kinds import (
    DENSE_FFN,
    FULL,
    SLIDING,
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


def step3p5(config: Config) -> Architecture:
    """Step-3.5-Flash: a gate for every head, more query heads where there is a window, a shared expert.

    The lists by layer may go on over the prediction layers.
    """
    predicted = config.optional("num_nextn_predict_layers", "num_mtp_layers", why="no prediction layers")
    count = config.layers().value
    kinds = _step_mixers(config, count, predicted.value)
    mixers, ffns = kinds[:count], _step_ffns(config, count, predicted.value)
    facts = decoder_facts(config, 128_000, head_dim=128) | attention_biases(config) | head_norms(config)
    facts |= {
        "kv_heads": config.integer("num_attention_groups", "num_key_value_heads", default=8),
        "head_gate": config.flag("use_head_wise_attn_gate", default=True),
        "mtp_layers": predicted,
    }
    uses = {"window": "sliding_window"}
    if "sliding" in kinds:
        facts["sliding_window"] = config.integer("sliding_window")
        facts |= _step_sliding_heads(config, facts)
        uses |= {"attention_heads": "sliding_heads"} if "sliding_heads" in facts else {}
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("moe_num_experts", "n_routed_experts", default=288),
            "experts_per_token": config.integer("moe_top_k", "num_experts_per_tok", default=8),
            "expert_size": config.integer("moe_intermediate_size", default=1280),
            "shared_expert_size": config.integer("share_expert_dim", "share_expert_dims", default=1280),
            "correction_bias": config.flag("use_moe_router_bias", default=True),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    return assemble_layers(
        config,
        facts,
        mixers,
        {"ffn": block("ffn"), "moe": block("moe")},
        ffns=ffns[:count],
        mixer_blocks={"full": block("attention"), "sliding": block("attention", **uses)},
        pattern="layer_types and moe_layers_enum",
        prediction_blocks=(kinds[-1], ffns[-1]),
    )


def _step_sliding_heads(config: Config, facts: Facts) -> Facts:
    """The query heads of layers with a window, where they are other than those of full attention."""
    if not config.has("attention_other_setting"):
        return {}
    other = config.section("attention_other_setting", default_type=config.model_type)
    for field, role in (("num_attention_groups", "kv_heads"), ("head_dim", "head_dim")):
        if other.has(field) and other.integer(field).value != facts[role].value:
            raise other.uncovered(field, f"{facts[role].value}, as in layers without a window")
    heads = other.integer("num_attention_heads", default=facts["attention_heads"].value)
    return {"sliding_heads": heads} if heads.value != facts["attention_heads"].value else {}


def _step_mixers(config: Config, count: int, predicted: int) -> list[str]:
    """Which mixer each layer has, prediction layers among them; without layer_types none has a window."""
    stated = config.texts("layer_types", among=(SLIDING, FULL))
    if stated is None:
        return ["full"] * (count + predicted)
    if len(stated) not in (count, count + predicted):
        raise config.invalid("layer_types", f"{count} of them, one for each layer")
    return ["sliding" if kind == SLIDING else "full" for kind in stated]


def _step_ffns(config: Config, count: int, predicted: int) -> list[str]:
    """Which FFN each layer has, prediction layers among them: experts where moe_layers_enum says so.

    The class has experts in all layers but the first three, and in no prediction layer.
    """
    numbers = config.data.get("moe_layers_enum")
    if isinstance(numbers, str) and re.fullmatch(r"\s*\d{1,4}(\s*,\s*\d{1,4})*\s*", numbers):
        sparse = {int(number) for number in numbers.split(",")}
    elif isinstance(numbers, str):
        raise config.invalid("moe_layers_enum", "numbers of layers with commas between them")
    else:
        stated = config.integers("moe_layers_enum")
        sparse = set(range(3, count)) if stated is None else {*stated}
    return ["moe" if layer in sparse else "ffn" for layer in range(count + predicted)]
