"""Decoders in which some layers look back over a window or a chunk only: gemma, gpt_oss, mimo, llama4, cohere2, olmo3."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.library.architecture import Architecture, Block, Choice, Fact
from mantile.library.errors import InputError
from mantile.library.huggingface.reading import Config, Facts, architecture, block, decoder_facts, dense_facts, uniform

SLIDING, FULL, CHUNKED = "sliding_attention", "full_attention", "chunked_attention"
MIXERS = {"sliding": block("attention", window="sliding_window"), "full": block("attention")}


def mixers(config: Config, count: int, period: int, limited: str = SLIDING, pattern: str = "sliding_window_pattern") -> list[str]:
    """Which mixer each layer has: as layer_types says, or every `period`-th one full where it does not."""
    names = {SLIDING: "sliding", CHUNKED: "chunked", FULL: "full"}
    listed = config.texts("layer_types", count, among=(limited, FULL))
    if listed is not None:
        return [names[kind] for kind in listed]
    every = config.whole(pattern, default=period).value if config.has(pattern) else period
    return ["full" if (layer + 1) % every == 0 else names[limited] for layer in range(count)]


def _activation(config: Config) -> Choice:
    return config.word("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")


def _layered(config: Config, facts: Facts, kinds: list[str], ffn: Mapping[str, Block], blocks: Mapping[str, Block] = MIXERS,
             pattern: str = "layer_types or the class's pattern", **more: object) -> Architecture:  # fmt: skip
    """Layers of the given mixers, all with the same FFN."""
    used = {name: found for name, found in blocks.items() if name in kinds}
    layers = [(kind, *ffn) for kind in kinds]
    return architecture(config, facts, used | dict(ffn), layers, counted=config.layers(), pattern=pattern, **more)  # type: ignore[arg-type]


def gemma_facts(config: Config, kv_heads: int, positions: int) -> Facts:
    """What the gemma family has in common: wide heads, tied embeddings, a window."""
    facts = dense_facts(config)
    bias = config.flag("attention_bias", default=False)
    return facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=kv_heads),
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=256),
        "max_positions": config.whole("max_position_embeddings", default=positions),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "qkv_bias": bias,
        "output_bias": bias,
    }  # fmt: skip


def gemma(config: Config) -> Architecture:
    """Gemma 1: every layer looks back without limit."""
    return uniform(config, gemma_facts(config, 16, 8192), {"attention": block("attention"), "ffn": block("ffn")},
                   activation=_activation(config))  # fmt: skip


def gemma2(config: Config) -> Architecture:
    """Gemma 2: every other layer has a window; norms before and after mixer and FFN."""
    facts = gemma_facts(config, 4, 8192) | {"sliding_window": config.whole("sliding_window", default=4096)}
    return _layered(config, facts, mixers(config, config.layers().value, 2), {"ffn": block("ffn")}, norms="sandwich",
                    activation=_activation(config))  # fmt: skip


def gemma3(config: Config) -> Architecture:
    """Gemma 3: five layers with a window to one without, queries and keys normed."""
    facts = gemma_facts(config, 4, 131_072) | {
        "sliding_window": config.whole("sliding_window", default=4096),
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
    }  # fmt: skip
    return _layered(config, facts, mixers(config, config.layers().value, 6), {"ffn": block("ffn")}, norms="sandwich",
                    activation=_activation(config))  # fmt: skip


def gemma4(config: Config) -> Architecture:
    """Gemma 4: layers without a window have heads of their own, whose values may be the keys; experts beside a dense FFN."""
    for field, expected in (("hidden_size_per_layer_input", 256), ("num_kv_shared_layers", 0)):
        if config.optional(field, why="class default", value=expected).value:
            raise config.wrong(field, "0; embeddings of each layer and caches shared by layers are not supported")
    if config.flag("use_double_wide_mlp", default=False).value:
        raise config.wrong("use_double_wide_mlp", "false")
    facts = gemma_facts(config, 4, 131_072)
    shared = config.flag("attention_k_eq_v", default=False)
    facts |= {
        "sliding_window": config.whole("sliding_window", default=512),
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        "layer_scale": config.implied(1, "every layer's output is scaled by a stored number"),
        "global_head_dim": config.whole("global_head_dim", default=512),
        "global_kv_heads": config.whole("num_global_key_value_heads") if shared.value and config.has("num_global_key_value_heads")
        else facts["kv_heads"],
        "global_values_are_keys": shared,
    }  # fmt: skip
    full = block("attention", kv_heads="global_kv_heads", head_dim="global_head_dim", values_are_keys="global_values_are_keys")
    blocks = MIXERS | {"full": full}
    ffn = {"ffn": block("ffn")}
    if config.flag("enable_moe_block", default=False).value:
        facts |= {
            "experts": config.whole("num_experts"),
            "experts_per_token": config.whole("top_k_experts", "num_experts_per_tok"),
            "expert_size": config.whole("moe_intermediate_size", "expert_intermediate_size"),
            "branch_norms": config.implied(1, "norms after the dense FFN and around the experts"),
            "router_scales": config.implied(1, "stored scales before and after the router"),
        }  # fmt: skip
        ffn = {"moe": block("moe", shared_expert_size="ffn_size")}
    return _layered(config, facts, mixers(config, config.layers().value, 6), ffn, blocks, norms="sandwich", activation=_activation(config))


def gpt_oss(config: Config) -> Architecture:
    """gpt-oss: every other layer has a window; sinks and biases everywhere; experts of the intermediate size."""
    facts = decoder_facts(config)
    bias = config.flag("attention_bias", default=True)
    facts |= {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=64),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "sliding_window": config.whole("sliding_window", default=128),
        "qkv_bias": bias,
        "output_bias": bias,
        "sinks": config.implied(1, "a learned sink for every head"),
        "experts": config.whole("num_local_experts", "num_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", "experts_per_token", default=4),
        "expert_size": config.whole("intermediate_size"),
        "expert_bias": config.implied(1, "experts have biases"),
        "router_bias": config.implied(1, "the router has a bias"),
    }  # fmt: skip
    return _layered(config, facts, mixers(config, config.layers().value, 2), {"moe": block("moe")})


def cohere2(config: Config) -> Architecture:
    """Command A and R7B: three layers with a window to one without; mixer and FFN share one norm."""
    facts = dense_facts(config)
    bias = config.flag("attention_bias", default=False)
    facts |= {
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"]),
        "max_positions": config.whole("max_position_embeddings", default=8192),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "sliding_window": config.whole("sliding_window", default=4096),
        "qkv_bias": bias,
        "output_bias": bias,
    }  # fmt: skip
    return _layered(config, facts, mixers(config, config.layers().value, 4), {"ffn": block("ffn")}, norms="parallel",
                    norm="LayerNorm without bias")  # fmt: skip


def olmo3(config: Config) -> Architecture:
    """OLMo 3: as OLMo 2, three layers with a window to one without."""
    facts = olmo2_facts(config) | {"sliding_window": config.whole("sliding_window", default=4096)}
    return _layered(config, facts, mixers(config, config.layers().value, 4), {"ffn": block("ffn")}, norms="post")


def olmo2_facts(config: Config) -> Facts:
    """OLMo 2: norms after mixer and FFN, and over the whole width of queries and keys."""
    bias = config.flag("attention_bias", default=False)
    return dense_facts(config) | {
        "max_positions": config.whole("max_position_embeddings", default=2048),
        "qkv_bias": bias,
        "output_bias": bias,
        "qk_norm": config.implied(2, "RMSNorm over the width of all query and key heads"),
    }  # fmt: skip


def mimo_v2_flash(config: Config) -> Architecture:
    """MiMo-V2-Flash: layers with a window have KV heads of their own and sinks; values are narrower than keys."""
    count = config.layers().value
    listed = config.numbers("hybrid_layer_pattern", count)
    if listed is not None and set(listed) - {0, 1}:
        raise config.wrong("hybrid_layer_pattern", "a list of 0 (full) and 1 (window)")
    kinds = mixers(config, count, 6) if listed is None else ["sliding" if kind else "full" for kind in listed]
    if listed is None and config.texts("layer_types", count) is None:
        raise config.wrong("hybrid_layer_pattern", f"a list of {count} numbers")
    dense = _dense_layers(config, count)
    facts = decoder_facts(config)
    bias = config.flag("attention_bias", default=False)
    heads = facts["attention_heads"]
    facts |= {
        "kv_heads": config.kv_heads(heads, class_default=4),
        "head_dim": config.head_dim(facts["hidden_size"], heads, class_default=192),
        "value_head_dim": config.whole("v_head_dim", default=128),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "sliding_window": config.whole("sliding_window", "sliding_window_size", default=129),
        "sliding_heads": config.whole("swa_num_attention_heads", default=heads.value),
        "sliding_kv_heads": config.whole("swa_num_key_value_heads", default=8),
        "sliding_head_dim": config.whole("swa_head_dim", default=192),
        "sliding_value_head_dim": config.whole("swa_v_head_dim", default=128),
        "sinks": config.flag("add_full_attention_sink_bias", default=False),
        "sliding_sinks": config.flag("add_swa_attention_sink_bias", default=True),
        "qkv_bias": bias,
        "experts": config.whole("n_routed_experts", "num_experts", "num_local_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", default=8),
        "expert_size": config.whole("moe_intermediate_size"),
        "correction_bias": config.implied(1, "a stored vector balances the routing"),
        "ffn_size": config.whole("intermediate_size"),
        "ffn_bias": config.implied(0, "no bias in the FFN"),
    }  # fmt: skip
    if config.optional("n_shared_experts", why="no shared experts").value:
        raise config.wrong("n_shared_experts", "null; shared experts are not part of this class")
    blocks = {
        "full": block("attention"),
        "sliding": block("attention", attention_heads="sliding_heads", kv_heads="sliding_kv_heads", head_dim="sliding_head_dim",
                         value_head_dim="sliding_value_head_dim", window="sliding_window", sinks="sliding_sinks"),
        "ffn": block("ffn"),
        "moe": block("moe"),
    }  # fmt: skip
    if all(facts[f"sliding_{name}"].value == facts[other].value for name, other in _SAME_SLIDING):
        # heads alike in both kinds of layer stay one fact, so that their projections are one module
        blocks["sliding"] = block("attention", kv_heads="sliding_kv_heads", window="sliding_window", sinks="sliding_sinks")
        for name, _ in _SAME_SLIDING:
            del facts[f"sliding_{name}"]
    layers = [(kind, "ffn" if flat else "moe") for kind, flat in zip(kinds, dense, strict=True)]
    used = {name: found for name, found in blocks.items() if any(name in layer for layer in layers)}
    return architecture(config, facts, used, layers, counted=config.layers(), pattern="hybrid_layer_pattern and moe_layer_freq")


_SAME_SLIDING = (("heads", "attention_heads"), ("head_dim", "head_dim"), ("value_head_dim", "value_head_dim"))


def _dense_layers(config: Config, count: int) -> list[bool]:
    """Which layers have a dense FFN: where moe_layer_freq is 0, or the first layer."""
    if isinstance(config.data.get("moe_layer_freq"), list):
        listed = config.numbers("moe_layer_freq", count) or []
        return [not routed for routed in listed]
    first = config.optional("first_k_dense_replace", why="the first layer is dense", value=1).value
    return [layer < first for layer in range(count)]


def llama4(config: Config) -> Architecture:
    """Llama 4: attention in chunks but for every fourth layer; experts in every or every other layer."""
    count = config.layers().value
    facts = decoder_facts(config)
    bias = config.flag("attention_bias", default=False)
    facts |= {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "max_positions": config.whole("max_position_embeddings", default=131_072),
        "attention_chunk": config.whole("attention_chunk_size", default=8192),
        "qkv_bias": bias,
        "output_bias": bias,
        "experts": config.whole("num_local_experts"),
        "experts_per_token": config.whole("num_experts_per_tok", default=1),
        "expert_size": config.whole("intermediate_size"),
        "ffn_size": config.whole("intermediate_size_mlp"),
        "ffn_bias": config.implied(0, "no bias in the FFN"),
    }  # fmt: skip
    rotated = config.numbers("no_rope_layers", count) if config.data.get("no_rope_layers") else None
    if config.texts("layer_types", count) is None and rotated is not None:
        kinds = ["chunked" if rope else "full" for rope in rotated]
    else:
        kinds = mixers(config, count, 4, CHUNKED, "no_rope_layer_interval")
    routed = _llama4_routed(config, count)
    blocks = {
        "chunked": block("attention", chunk="attention_chunk"),
        "full": block("attention"),
        "moe": block("moe", shared_expert_size="expert_size"),
        "ffn": block("ffn"),
    }  # fmt: skip
    layers = [(kind, "moe" if layer in routed else "ffn") for layer, kind in enumerate(kinds)]
    used = {name: found for name, found in blocks.items() if any(name in layer for layer in layers)}
    if "ffn" not in used:
        del facts["ffn_size"], facts["ffn_bias"]
    return architecture(config, facts, used, layers, counted=config.layers(),
                        pattern="layer_types or no_rope_layers, moe_layers or interleave_moe_layer_step")  # fmt: skip


def _llama4_routed(config: Config, count: int) -> set[int]:
    """Which layers have experts."""
    listed = config.numbers("moe_layers")
    if listed is not None:
        if any(not 0 <= layer < count for layer in listed):
            raise config.wrong("moe_layers", f"layer numbers from 0 to {count - 1}")
        return set(listed)
    every = config.whole("interleave_moe_layer_step", default=1).value
    return {layer for layer in range(count) if (layer + 1) % every == 0}


def limited_window(config: Config, facts: Facts) -> Fact:
    """A window on all layers; one that is not shorter than the longest context is none."""
    if not config.has("sliding_window"):
        return Fact(value=0, origin="config" if "sliding_window" in config.data else "default", source=f"{config.path}sliding_window absent or null")
    window = config.whole("sliding_window")
    if window.value >= facts["max_positions"].value:
        return config.derived(0, f"{window.source} {window.value} reaches over the longest context")
    return window


def refused(config: Config, field: str, why: str) -> InputError:
    """A switch of a class that we do not represent."""
    return config.wrong(field, f"false; {why}")
