"""Attention over compressed entries, and hyper-connections: deepseek_v4."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.config import REQUIRED, Config, Facts
from mantile.library.huggingface.reading import architecture, base_facts, block

_RATIOS = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
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


def deepseek_v4(config: Config) -> Architecture:
    """DeepSeek-V4: a window in every layer, in most of them compressed entries too; experts everywhere, first ones by a table.

    Shapes are those of the class. KV bytes per token are those of its cache, which grows by one entry of a layer every so many
    tokens; the attention core counts the square of tokens for the window, and entries apart.
    """
    for field in ("attention_bias", "mlp_bias"):
        if config.flag(field, default=False).value:
            raise config.invalid(field, "false; such biases are not supported")
    for field in ("num_key_value_heads", "n_shared_experts"):
        if config.integer(field, default=1).value != 1:
            raise config.invalid(field, "1")
    counted = config.layers()
    count = counted.value
    mixers = [_MIXERS[kind] for kind in _kinds(config, count)]
    ffns = config.texts("mlp_layer_types", count, ("hash_moe", "moe"))
    if ffns is None:
        first = config.integer("num_hash_layers", default=3, least=0).value
        ffns = ["hash_moe" if number < first else "moe" for number in range(count)]
    size = config.integer("moe_intermediate_size", "intermediate_size")
    facts = (
        base_facts(config, 1_048_576)
        | _attention_facts(config)
        | {
            "residual_streams": config.integer("hc_mult", default=4),
            "experts": config.integer("n_routed_experts", "num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=6),
            "expert_size": size,
            "shared_expert_size": config.derived(size.value, f"{size.source}: one shared expert"),
            "correction_bias": config.implied(1, "a stored vector balances the routing"),
            "mtp_layers": config.optional("num_nextn_predict_layers", why="no prediction layers"),
        }
    )
    facts |= _ratio_facts(config, mixers)
    if "hash_moe" in ffns:
        facts |= {
            "hash_routing": config.implied(
                1, "a table says which experts a token of the vocabulary goes through"
            ),
            "hash_correction": config.implied(0, "no vector balances the routing by a table"),
        }
    used = {*mixers, *ffns} | ({"sliding", "moe"} if facts["mtp_layers"].value else set())
    return architecture(
        config,
        facts,
        {name: made for name, made in _BLOCKS.items() if name in used},
        list(zip(mixers, ffns, strict=True)),
        counted=counted,
        pattern="layer_types or compress_ratios, mlp_layer_types or num_hash_layers",
        predicted=("sliding", "moe"),
    )


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
    """How many tokens an entry stands for, and what the indexer leaves, counted in tokens as elsewhere."""
    rates = config.data.get("compress_rates")
    if rates is not None and not isinstance(rates, dict):
        raise config.invalid("compress_rates", "a mapping of layer types to tokens per entry")
    nested = Config(config.name, config.model_type, rates or {}, f"{config.path}compress_rates.")
    facts: Facts = {}
    for mixer, kind, flat, default in (
        ("sparse", "compressed_sparse_attention", "compress_rate_csa", 4),
        ("heavy", "heavily_compressed_attention", "compress_rate_hca", 128),
    ):
        if mixer in mixers:
            default = default if rates is None else REQUIRED
            facts[f"{mixer}_ratio"] = (
                config.integer(flat) if flat in config.data else nested.integer(kind, default=default)
            )
    if "sparse" in mixers:
        entries, ratio = config.integer("index_topk", default=512), facts["sparse_ratio"]
        facts |= {
            "index_heads": config.integer("index_n_heads", default=64),
            "index_head_dim": config.integer("index_head_dim", default=128),
            "index_topk": config.derived(entries.value * ratio.value, f"{entries.source} × {ratio.source}"),
        }
    return facts


def _kinds(config: Config, count: int) -> list[str]:
    """The kind of attention of every layer: layer_types, else compress_ratios, else two heavy ones and then both by turns."""
    kinds = config.texts("layer_types", count, tuple(_MIXERS))
    if kinds is not None:
        return kinds
    ratios = config.integers("compress_ratios")
    if ratios is None:
        heavy, sparse = _RATIOS[128], _RATIOS[4]
        return [heavy if number < 2 or number % 2 == 0 else sparse for number in range(count)]
    if len(ratios) < count or set(ratios) - set(_RATIOS):
        raise config.invalid("compress_ratios", f"at least {count} numbers, each one of 0, 4 and 128")
    return [_RATIOS[ratio] for ratio in ratios[:count]]
