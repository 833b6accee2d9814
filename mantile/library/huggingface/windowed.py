"""Decoders in which some layers look back over a window or a chunk only: gemma, cohere2, olmo3, gpt_oss, mimo, llama4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mantile.library.architecture import Architecture, Block, Choice, Fact
from mantile.library.huggingface.config import Config, Facts
from mantile.library.huggingface.reading import (
    architecture,
    attention_biases,
    block,
    decoder_facts,
    dense_facts,
    ffn_facts,
    uniform,
)

SLIDING, FULL, CHUNKED = "sliding_attention", "full_attention", "chunked_attention"
MIXERS = {"sliding": block("attention", window="sliding_window"), "full": block("attention")}
_NAMES = {SLIDING: "sliding", CHUNKED: "chunked", FULL: "full"}
_FFN = {"ffn": block("ffn")}


def stated_mixers(config: Config, limited: str = SLIDING) -> list[str] | None:
    """Which mixer each layer has as layer_types says; None if it does not."""
    listed = config.texts("layer_types", config.layers().value, among=(limited, FULL))
    return None if listed is None else [_NAMES[kind] for kind in listed]


def mixers(config: Config, period: int, limited: str = SLIDING, field: str = "") -> list[str]:
    """Which mixer each layer has: as layer_types says, or every `period`-th one full. `field` states the period where the class reads one."""
    every = config.integer(field, default=period).value if field else period
    every_so_many = [
        "full" if (layer + 1) % every == 0 else _NAMES[limited] for layer in range(config.layers().value)
    ]
    return stated_mixers(config, limited) or every_so_many


def layered(
    config: Config,
    facts: Facts,
    kinds: Sequence[str],
    ffn: Mapping[str, Block],
    *,
    ffns: Sequence[str] | None = None,
    blocks: Mapping[str, Block] = MIXERS,
    pattern: str = "layer_types or the class's pattern",
    **more: Any,
) -> Architecture:
    """Layers of the given mixers with the FFN of each by name, the one there is if they are alike."""
    ffns = ffns or [next(iter(ffn))] * len(kinds)
    used = {name: found for name, found in {**blocks, **ffn}.items() if name in kinds or name in ffns}
    return architecture(
        config,
        facts,
        used,
        list(zip(kinds, ffns, strict=True)),
        counted=config.layers(),
        pattern=pattern,
        **more,
    )


def with_window(
    config: Config,
    facts: Facts,
    window: Fact,
    limited: Callable[[int], bool],
    ffn: Mapping[str, Block] = _FFN,
    pattern: str = "layer_types",
    **more: Any,
) -> Architecture:
    """Layers that may have a window: those that layer_types names, else those the class chooses. One kind of layer if all are alike.

    Args:
        window: its length; 0 turns it off.
        limited: whether the class gives a layer a window.
    """
    kinds = stated_mixers(config) or [
        "sliding" if limited(layer) else "full" for layer in range(config.layers().value)
    ]
    if window.value and "sliding" not in kinds:
        window = config.derived(0, f"{pattern}: no layer has a window")
    if window.value and "full" in kinds:
        return layered(config, facts | {"sliding_window": window}, kinds, ffn, pattern=pattern, **more)
    blocks = {"attention": block("attention", window="sliding_window")}
    return layered(
        config,
        facts | {"sliding_window": window},
        ["attention"] * len(kinds),
        ffn,
        blocks=blocks,
        pattern=pattern,
        **more,
    )


def window(config: Config, default: int) -> Fact:
    """The sliding window; 0 is none, as null or a class without default have it."""
    if "sliding_window" in config.data and config.data["sliding_window"] is None:
        return Fact(value=0, origin="config", source=f"{config.path}sliding_window is null")
    if default or "sliding_window" in config.data:
        return config.integer("sliding_window", default=default)
    return config.implied(0, "no sliding window")


def switched_window(config: Config) -> Fact:
    """The sliding window of Qwen: off unless the file turns it on."""
    used = config.flag("use_sliding_window", default=False)
    return (
        window(config, 4096)
        if used.value
        else Fact(value=0, origin=used.origin, source="use_sliding_window is false")
    )


def limited_window(config: Config, facts: Facts) -> Fact:
    """A window on all layers; one that is not shorter than the longest context is none."""
    if not config.has("sliding_window"):
        return Fact(
            value=0,
            origin="config" if "sliding_window" in config.data else "default",
            source=f"{config.path}sliding_window absent or null",
        )
    found = config.integer("sliding_window")
    if found.value >= facts["max_positions"].value:
        return config.derived(0, f"{found.source} {found.value} reaches over the longest context")
    return found


def _window(config: Config, kinds: Sequence[str], default: int) -> Facts:
    """The window of the layers that have one."""
    return {"sliding_window": config.integer("sliding_window", default=default)} if "sliding" in kinds else {}


def _activation(config: Config) -> Choice:
    return config.text("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")


def gemma_facts(config: Config, positions: int, kv_heads: int) -> Facts:
    """What the gemma family has in common: wide heads, tied embeddings. Such a decoder may only look back, but at image tokens."""
    if config.data.get("use_bidirectional_attention") not in (None, False, "vision"):
        raise config.invalid(
            "use_bidirectional_attention", "false, null or vision: tokens of text look back only"
        )
    return dense_facts(config, positions, kv_heads=kv_heads, head_dim=256, tied=True) | attention_biases(
        config
    )


def gemma(config: Config) -> Architecture:
    """Gemma 1: every layer looks back without limit."""
    return uniform(
        config,
        gemma_facts(config, 8192, 16),
        {"attention": block("attention"), "ffn": block("ffn")},
        activation=_activation(config),
    )


def gemma2(config: Config) -> Architecture:
    """Gemma 2: every other layer has a window; norms before and after mixer and FFN."""
    kinds = mixers(config, 2)
    facts = gemma_facts(config, 8192, 4) | _window(config, kinds, 4096)
    return layered(config, facts, kinds, _FFN, norms="sandwich", activation=_activation(config))


def gemma3(config: Config) -> Architecture:
    """Gemma 3: five layers with a window to one without, queries and keys normed."""
    kinds = mixers(config, 6, field="sliding_window_pattern")
    facts = (
        gemma_facts(config, 131_072, 4)
        | _window(config, kinds, 4096)
        | {
            "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        }
    )
    return layered(config, facts, kinds, _FFN, norms="sandwich", activation=_activation(config))


def gemma4(config: Config) -> Architecture:
    """Gemma 4: layers without a window have heads of their own, whose values may be the keys; experts beside a dense FFN."""
    for field, default in (("hidden_size_per_layer_input", 256), ("num_kv_shared_layers", 0)):
        if config.optional(field, why="class default", value=default).value:
            raise config.invalid(
                field, "0; embeddings of each layer and caches shared by layers are not supported"
            )
    kinds = [*mixers(config, 6)[:-1], "full"]  # the class has no window in the last layer
    facts = (
        gemma_facts(config, 131_072, 4)
        | _window(config, kinds, 512)
        | {
            "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
            "layer_scale": config.implied(1, "every layer's output is scaled by a stored number"),
        }
    )
    facts |= _full_heads(config, kinds, facts)
    full = block(
        "attention",
        kv_heads="global_kv_heads",
        head_dim="global_head_dim",
        values_are_keys="global_values_are_keys",
    )
    ffn: Mapping[str, Block] = _FFN
    if config.flag("enable_moe_block", default=False).value:
        facts |= {
            "experts": config.integer("num_experts"),
            "experts_per_token": config.integer("top_k_experts", "num_experts_per_tok"),
            "expert_size": config.integer("moe_intermediate_size", "expert_intermediate_size"),
            "branch_norms": config.implied(1, "norms after the dense FFN and around the experts"),
            "router_scales": config.implied(1, "stored scales before and after the router"),
        }
        ffn = {"moe": block("moe", shared_expert_size="ffn_size")}
    return layered(
        config,
        facts,
        kinds,
        ffn,
        blocks=MIXERS | {"full": full},
        norms="sandwich",
        activation=_activation(config),
    )


def _full_heads(config: Config, kinds: Sequence[str], facts: Facts) -> Facts:
    """Heads of the layers without a window: stated once, or layer by layer as newer files have it."""
    shared = config.flag("attention_k_eq_v", default=False)
    stated = config.data.get("per_layer_config")
    if stated is None:
        several = shared.value and config.has("num_global_key_value_heads")
        size = config.integer("global_head_dim", default=512)
        kv_heads = config.integer("num_global_key_value_heads") if several else facts["kv_heads"]
    else:
        full = {str(layer) for layer, kind in enumerate(kinds) if kind == "full"}
        first = next(iter(stated.values()), None) if isinstance(stated, dict) else None
        if (
            not isinstance(first, dict)
            or set(stated) != full
            or any(own != first for own in stated.values())
            or set(first) - {"head_dim", "num_key_value_heads"}
        ):
            raise config.invalid(
                "per_layer_config",
                "the same head_dim and num_key_value_heads for every layer without a window, no other",
            )
        part = replace(config, data=first, path=f"{config.path}per_layer_config.", defaults={})
        size = part.integer("head_dim") if "head_dim" in first else facts["head_dim"]
        kv_heads = (
            part.integer("num_key_value_heads") if "num_key_value_heads" in first else facts["kv_heads"]
        )
    return {"global_head_dim": size, "global_kv_heads": kv_heads, "global_values_are_keys": shared}


def gpt_oss(config: Config) -> Architecture:
    """gpt-oss: every other layer has a window; sinks and biases everywhere; experts of the intermediate size."""
    kinds = mixers(config, 2)
    facts = (
        decoder_facts(config, 131_072, kv_heads=8, head_dim=64)
        | attention_biases(config, default=True)
        | _window(config, kinds, 128)
        | {
            "sinks": config.implied(1, "a learned sink for every head"),
            "experts": config.integer("num_local_experts", "num_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", "experts_per_token", default=4),
            "expert_size": config.integer("intermediate_size"),
            "expert_bias": config.implied(1, "experts have biases"),
            "router_bias": config.implied(1, "the router has a bias"),
        }
    )
    return layered(config, facts, kinds, {"moe": block("moe")})


def cohere2(config: Config) -> Architecture:
    """Command A and R7B: three layers with a window to one without; mixer and FFN share one norm."""
    kinds = mixers(config, 4, field="sliding_window_pattern")
    facts = dense_facts(config, 8192, tied=True) | attention_biases(config) | _window(config, kinds, 4096)
    return layered(config, facts, kinds, _FFN, norms="parallel", norm="LayerNorm without bias")


def olmo2_facts(config: Config) -> Facts:
    """OLMo 2: norms after mixer and FFN, and over the whole width of queries and keys."""
    return (
        dense_facts(config, 2048)
        | attention_biases(config)
        | {
            "qk_norm": config.implied(2, "RMSNorm over the width of all query and key heads"),
        }
    )


def olmo3(config: Config) -> Architecture:
    """OLMo 3: as OLMo 2, three layers with a window to one without."""
    kinds = mixers(config, 4)
    return layered(config, olmo2_facts(config) | _window(config, kinds, 4096), kinds, _FFN, norms="post")


def mimo_v2_flash(config: Config) -> Architecture:
    """MiMo-V2-Flash: layers with a window have KV heads of their own and sinks; values are narrower than keys."""
    if config.optional("n_shared_experts", why="no shared experts").value:
        raise config.invalid("n_shared_experts", "null; shared experts are not part of this class")
    kinds, ffns = _mimo_mixers(config), _mimo_ffns(config)
    facts = decoder_facts(config, 131_072, kv_heads=4, head_dim=192) | {
        "value_head_dim": config.integer("v_head_dim", default=128),
        "sinks": config.flag("add_full_attention_sink_bias", default=False),
        "qkv_bias": config.flag("attention_bias", default=False),
    }
    uses = {"window": "sliding_window"}
    if "sliding" in kinds:
        facts |= _mimo_window(config, facts)
        uses |= {role: name for role, name in _SLIDING.items() if name in facts}
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("n_routed_experts", "num_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=8),
            "expert_size": config.integer("moe_intermediate_size"),
            "correction_bias": config.implied(1, "a stored vector balances the routing"),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config)
    return layered(
        config,
        facts,
        kinds,
        {"ffn": block("ffn"), "moe": block("moe")},
        ffns=ffns,
        blocks={"full": block("attention"), "sliding": block("attention", **uses)},
        pattern="hybrid_layer_pattern and moe_layer_freq",
    )


_SLIDING = {
    "attention_heads": "sliding_heads",
    "kv_heads": "sliding_kv_heads",
    "head_dim": "sliding_head_dim",
    "value_head_dim": "sliding_value_head_dim",
    "sinks": "sliding_sinks",
}


def _mimo_window(config: Config, facts: Facts) -> Facts:
    """The window and the heads of layers that have one. Those alike in all layers stay one fact, so that projections are one module."""
    if config.has("sliding_window_size"):
        before = config.integer("sliding_window_size")
        found = {
            "sliding_window": config.derived(
                before.value + 1, f"{before.source} + 1: tokens before it, and the token itself"
            )
        }
    else:
        found = {"sliding_window": config.integer("sliding_window", default=129)}
    found["sliding_kv_heads"] = (
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
            found[_SLIDING[role]] = config.integer(field)
    return found | {"sliding_sinks": config.flag("add_swa_attention_sink_bias", default=True)}


def _mimo_mixers(config: Config) -> list[str]:
    """Which mixer each layer has. The class has no window in the first layer and in every sixth."""
    count = config.layers().value
    listed = config.integers("hybrid_layer_pattern", count)
    if listed is None:
        return stated_mixers(config) or [
            "full" if layer == 0 or (layer + 1) % 6 == 0 else "sliding" for layer in range(count)
        ]
    if set(listed) - {0, 1}:
        raise config.invalid("hybrid_layer_pattern", f"{count} numbers, 0 (full) or 1 (window)")
    return ["sliding" if kind else "full" for kind in listed]


def _mimo_ffns(config: Config) -> list[str]:
    """Which FFN each layer has. The class has a dense one in the first layer only."""
    count = config.layers().value
    kinds = config.texts("mlp_layer_types", count, among=("dense", "sparse"))
    listed = (
        [int(kind == "sparse") for kind in kinds]
        if kinds is not None
        else config.integers("moe_layer_freq", count)
    )
    if listed is None:
        return ["moe" if layer else "ffn" for layer in range(count)]
    if set(listed) - {0, 1}:
        raise config.invalid("moe_layer_freq", f"{count} numbers, 0 (dense) or 1 (experts)")
    return ["moe" if kind else "ffn" for kind in listed]


def llama4(config: Config) -> Architecture:
    """Llama 4: attention in chunks but for every fourth layer; experts in every or every other layer."""
    kinds, ffns = _llama4_mixers(config), _llama4_ffns(config)
    normed = config.flag("use_qk_norm", default=True)
    facts = decoder_facts(config, 131_072, kv_heads=8, head_dim=128) | attention_biases(config)
    uses: dict[str, str] = {}
    if normed.value:  # where there are positions only
        uses = {"qk_norm": "chunked_qk_norm"}
        facts["chunked_qk_norm"] = Fact(
            value=4, origin=normed.origin, source=f"{normed.source}: heads normed without weights"
        )
    if "chunked" in kinds:
        facts["attention_chunk"] = config.integer("attention_chunk_size", default=8192)
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=1),
            "expert_size": config.integer("intermediate_size"),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config, "intermediate_size_mlp")
    blocks = {"chunked": block("attention", chunk="attention_chunk", **uses), "full": block("attention")}
    return layered(
        config,
        facts,
        kinds,
        {"moe": block("moe", shared_expert_size="expert_size"), "ffn": block("ffn")},
        ffns=ffns,
        blocks=blocks,
        pattern="layer_types or no_rope_layers, moe_layers or interleave_moe_layer_step",
    )


def _llama4_mixers(config: Config) -> list[str]:
    """Which mixer each layer has: those with positions in chunks, the others full."""
    listed = (
        config.integers("no_rope_layers", config.layers().value)
        if config.data.get("no_rope_layers") != []
        else None
    )
    rotated = None if listed is None else ["chunked" if rope else "full" for rope in listed]
    kinds = stated_mixers(config, CHUNKED)
    if kinds and rotated and kinds != rotated:
        raise config.invalid(
            "layer_types", "chunked_attention where no_rope_layers is 1, full_attention where it is 0"
        )
    return kinds or rotated or mixers(config, 4, CHUNKED, "no_rope_layer_interval")


def _llama4_ffns(config: Config) -> list[str]:
    """Which FFN each layer has."""
    count = config.layers().value
    listed = config.integers("moe_layers")
    if listed is None:
        every = config.integer("interleave_moe_layer_step", default=1).value
        listed = [layer for layer in range(count) if (layer + 1) % every == 0]
    elif any(not 0 <= layer < count for layer in listed):
        raise config.invalid("moe_layers", f"layer numbers from 0 to {count - 1}")
    return ["moe" if layer in listed else "ffn" for layer in range(count)]
