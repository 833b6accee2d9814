"""Attention over compressed entries, and hyper-connections: deepseek_v4."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import assemble, block
from mantile.library.huggingface.common_facts import base_facts, require_off, routing_correction
from mantile.library.huggingface.config import REQUIRED, Config, Facts

_RATIOS = {0: "sliding", 4: "sparse", 128: "heavy"}
_MIXERS = {
    "sliding_attention": "sliding",
    "compressed_sparse_attention": "sparse",
    "heavily_compressed_attention": "heavy",
}
_BLOCKS = {
    "sliding": block("compressed_attention", window="sliding_window"),
    "sparse": block(
        "compressed_attention",
        window="sliding_window",
        every="sparse_ratio",
        selected="index_topk",
        indexer="index_heads",
    ),
    "heavy": block("compressed_attention", window="sliding_window", every="heavy_ratio"),
    "hash_moe": block("moe", routing_table="hash_routing", correction_bias="hash_correction"),
    "moe": block("moe"),
}
_PREDICTION = ("sliding", "moe")


def deepseek_v4(config: Config) -> Architecture:
    """DeepSeek-V4: a window in every layer, in most of them compressed entries too; experts in every layer.

    The first layers choose a token's experts by a stored table. Shapes are those of the class. KV bytes per
    token are those of its cache, which grows by one entry of a layer every so many tokens. The attention core
    counts the square of tokens for the window, and entries apart.
    """
    require_off(config, "attention_bias", "mlp_bias")
    for field in ("num_key_value_heads", "n_shared_experts"):
        if config.integer(field, default=1).value != 1:
            raise config.invalid(field, "1")
    layer_count = config.layers()
    mixers, ffns = _mixers(config, layer_count.value), _ffns(config, layer_count.value)
    facts = (
        base_facts(config, 1_048_576)
        | _attention_facts(config)
        | _ratio_facts(config, mixers)
        | _expert_facts(config, ffns)
    )
    facts |= {
        "residual_streams": config.integer("hc_mult", default=4),
        "mtp_layers": config.optional("num_nextn_predict_layers", why="no prediction layers"),
    }
    used = {*mixers, *ffns, *(_PREDICTION if facts["mtp_layers"].value else ())}
    return assemble(
        config,
        facts,
        {name: _BLOCKS[name] for name in _BLOCKS if name in used},
        list(zip(mixers, ffns, strict=True)),
        layer_count=layer_count,
        pattern="layer_types or compress_ratios, mlp_layer_types or num_hash_layers",
        prediction_blocks=_PREDICTION,
    )


def _ffns(config: Config, count: int) -> list[str]:
    """Which FFN each layer has: as stated, else experts by a table in the first layers."""
    ffns = config.texts("mlp_layer_types", count, ("hash_moe", "moe"))
    if ffns is not None:
        return ffns
    hashed = config.integer("num_hash_layers", default=3, least=0).value
    return ["hash_moe" if layer < hashed else "moe" for layer in range(count)]


def _expert_facts(config: Config, ffns: list[str]) -> Facts:
    """Routed experts and a shared one of the same width."""
    size = config.integer("moe_intermediate_size", "intermediate_size")
    facts = {
        "experts": config.integer("n_routed_experts", "num_local_experts"),
        "experts_per_token": config.integer("num_experts_per_tok", default=6),
        "expert_size": size,
        "shared_expert_size": config.derived(size.value, f"{size.source}: one shared expert"),
        **routing_correction(config),
    }
    if "hash_moe" not in ffns:
        return facts
    table = "a table says which experts a token of the vocabulary goes through"
    return facts | {
        "hash_routing": config.implied(1, table),
        "hash_correction": config.implied(0, "no vector balances the routing by a table"),
    }


def _attention_facts(config: Config) -> Facts:
    heads, size = config.integer("num_attention_heads"), config.integer("head_dim", default=512)
    groups = config.integer("o_groups", default=8)
    if heads.value * size.value % groups.value:
        raise config.invalid(
            "o_groups", f"a divisor of num_attention_heads × head_dim, {heads.value * size.value}"
        )
    return {
        "attention_heads": heads,
        "head_dim": size,
        "q_lora_rank": config.integer("q_lora_rank", default=1024),
        "output_groups": groups,
        "output_rank": config.integer("o_lora_rank", default=1024),
        "sliding_window": config.integer("sliding_window", default=128),
    }


def _ratio_facts(config: Config, mixers: list[str]) -> Facts:
    """How many tokens an entry stands for, and what the indexer selects, counted in tokens as elsewhere."""
    rates = config.data.get("compress_rates")
    if rates is not None and not isinstance(rates, dict):
        raise config.invalid("compress_rates", "a mapping of layer types to tokens per entry")
    nested = Config(config.name, config.model_type, rates or {}, f"{config.path}compress_rates.")
    facts: Facts = {}
    for mixer, kind, field, default in (
        ("sparse", "compressed_sparse_attention", "compress_rate_csa", 4),
        ("heavy", "heavily_compressed_attention", "compress_rate_hca", 128),
    ):
        if mixer in mixers and field in config.data:
            facts[f"{mixer}_ratio"] = config.integer(field)
        elif mixer in mixers:
            facts[f"{mixer}_ratio"] = nested.integer(kind, default=default if rates is None else REQUIRED)
    if "sparse" in mixers:
        entries, ratio = config.integer("index_topk", default=512), facts["sparse_ratio"]
        facts |= {
            "index_heads": config.integer("index_n_heads", default=64),
            "index_head_dim": config.integer("index_head_dim", default=128),
            "index_topk": config.derived(entries.value * ratio.value, f"{entries.source} × {ratio.source}"),
        }
    return facts


def _mixers(config: Config, count: int) -> list[str]:
    """The attention of each layer: as stated, else two heavy ones and then heavy and sparse by turns."""
    kinds = config.texts("layer_types", count, tuple(_MIXERS))
    if kinds is not None:
        return [_MIXERS[kind] for kind in kinds]
    ratios = config.integers("compress_ratios")
    if ratios is None:
        return ["heavy" if layer < 2 or layer % 2 == 0 else "sparse" for layer in range(count)]
    if len(ratios) < count or set(ratios) - set(_RATIOS):
        raise config.invalid("compress_ratios", f"at least {count} numbers, each one of 0, 4 and 128")
    return [_RATIOS[ratio] for ratio in ratios[:count]]
