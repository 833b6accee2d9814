"""Attention over compressed entries, and hyper-connections: deepseek_v4."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.reading import REQUIRED, Config, Facts, architecture, base_facts, block

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
            raise config.wrong(field, "false; such biases are not supported")
    for field in ("num_key_value_heads", "n_shared_experts"):
        if config.whole(field, default=1).value != 1:
            raise config.wrong(field, "1")
    counted = config.layers()
    count = counted.value
    mixers = [_MIXERS[kind] for kind in _kinds(config, count)]
    ffns = config.texts("mlp_layer_types", count, ("hash_moe", "moe"))
    if ffns is None:
        first = config.whole("num_hash_layers", default=3, least=0).value
        ffns = ["hash_moe" if number < first else "moe" for number in range(count)]
    size = config.whole("moe_intermediate_size", "intermediate_size")
    facts = (
        base_facts(config, 1_048_576)
        | _attention_facts(config)
        | {
            "residual_streams": config.whole("hc_mult", default=4),
            "experts": config.whole("n_routed_experts", "num_local_experts"),
            "experts_per_token": config.whole("num_experts_per_tok", default=6),
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
    heads, size = config.whole("num_attention_heads"), config.whole("head_dim", default=512)
    groups = config.whole("o_groups", default=8)
    if heads.value * size.value % groups.value:
        raise config.wrong(
            "o_groups", f"a divisor of num_attention_heads × head_dim, {heads.value * size.value}"
        )
    return {
        "attention_heads": heads,
        "head_dim": size,
        "q_lora_rank": config.whole("q_lora_rank", default=1024),
        "output_groups": groups,
        "output_rank": config.whole("o_lora_rank", default=1024),
        "sliding_window": config.whole("sliding_window", default=128),
    }


def _ratio_facts(config: Config, mixers: list[str]) -> Facts:
    """How many tokens an entry stands for, and what the indexer leaves, counted in tokens as elsewhere."""
    rates = config.data.get("compress_rates")
    if rates is not None and not isinstance(rates, dict):
        raise config.wrong("compress_rates", "a mapping of layer types to tokens per entry")
    nested = Config(config.name, config.model_type, rates or {}, f"{config.path}compress_rates.")
    facts: Facts = {}
    for mixer, kind, flat, default in (
        ("sparse", "compressed_sparse_attention", "compress_rate_csa", 4),
        ("heavy", "heavily_compressed_attention", "compress_rate_hca", 128),
    ):
        if mixer in mixers:
            default = default if rates is None else REQUIRED
            facts[f"{mixer}_ratio"] = (
                config.whole(flat) if flat in config.data else nested.whole(kind, default=default)
            )
    if "sparse" in mixers:
        entries, ratio = config.whole("index_topk", default=512), facts["sparse_ratio"]
        facts |= {
            "index_heads": config.whole("index_n_heads", default=64),
            "index_head_dim": config.whole("index_head_dim", default=128),
            "index_topk": config.derived(entries.value * ratio.value, f"{entries.source} × {ratio.source}"),
        }
    return facts


def _kinds(config: Config, count: int) -> list[str]:
    """The kind of attention of every layer: layer_types, else compress_ratios, else two heavy ones and then both by turns."""
    kinds = config.texts("layer_types", count, tuple(_MIXERS))
    if kinds is not None:
        return kinds
    ratios = config.numbers("compress_ratios")
    if ratios is None:
        heavy, sparse = _RATIOS[128], _RATIOS[4]
        return [heavy if number < 2 or number % 2 == 0 else sparse for number in range(count)]
    if len(ratios) < count or set(ratios) - set(_RATIOS):
        raise config.wrong("compress_ratios", f"at least {count} numbers, each one of 0, 4 and 128")
    return [_RATIOS[ratio] for ratio in ratios[:count]]
