"""Decoders of DeepSeek and their relatives: latent attention, and experts after some dense layers.

deepseek_v2, deepseek_v3, deepseek_v32, glm_moe_dsa, glm4_moe_lite; deepseek_v4 is in `compressed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.library.architecture import Architecture, Block, Fact
from mantile.library.errors import InputError
from mantile.library.huggingface.assembly import assemble, block
from mantile.library.huggingface.common_facts import base_facts, ffn_facts
from mantile.library.huggingface.config import MAX_LAYERS, Config, Facts

# The indexer of a layer selects the tokens that are attended to. A layer that shares the selection of the one
# before has none.
INDEXED = block("latent_attention", selected="index_topk", indexer="index_heads")
SHARED = block("latent_attention", selected="index_topk")


def deepseek_v2(config: Config) -> Architecture:
    """DeepSeek-V2."""
    if config.flag("mlp_bias", default=False).value:
        raise config.uncovered("mlp_bias", "false; experts with a bias are not supported")
    config.text("topk_method", default="greedy", among=("greedy", "group_limited_greedy"))
    facts = latent_facts(config, query_rank=1536, positions=2048)
    return assemble_deepseek(
        config, facts, dense_layers=0, shared_experts=2, knows_layer_types=False, correction=False
    )


def deepseek_v3(config: Config) -> Architecture:
    """DeepSeek-V3 and R1, Kimi K2, Moonlight."""
    facts = latent_facts(config, query_rank=1536, positions=4096)
    return assemble_deepseek(config, facts, dense_layers=3, per_token=8, knows_layer_types=False)


def deepseek_v32(config: Config) -> Architecture:
    """DeepSeek-V3.2: an indexer in every layer."""
    facts = latent_facts(config, query_rank=1536, positions=163_840, may_be_direct=False)
    facts |= _indexer_facts(config, heads=64)
    return assemble_deepseek(config, facts, {"attention": INDEXED}, dense_layers=3, per_token=8)


def glm_moe_dsa(config: Config) -> Architecture:
    """GLM-5: as DeepSeek-V3.2, where some layers share the selection of the one before."""
    kinds = _indexer_kinds(config, config.layers().value)
    facts = latent_facts(
        config, query_rank=2048, positions=202_752, plain_key=192, value=256, may_be_direct=False
    )
    return assemble_deepseek(
        config,
        facts | _indexer_facts(config, heads=32),
        {"attention": INDEXED, "shared_attention": SHARED},
        ["attention" if kind == "full" else "shared_attention" for kind in kinds],
        dense_layers=3,
        per_token=8,
        pattern="indexer_types, mlp_layer_types or first_k_dense_replace",
    )


def glm4_moe_lite(config: Config) -> Architecture:
    """GLM-4.7-Flash. The class takes one dense layer where mlp_layer_types does not say otherwise."""
    facts = latent_facts(config, query_rank=768, positions=202_752, plain_key=192, value=256)
    return assemble_deepseek(config, facts, dense_layers=1, dense_layers_fixed=True, per_token=4)


def assemble_deepseek(
    config: Config,
    facts: Facts,
    mixer_blocks: Mapping[str, Block] | None = None,
    mixers: Sequence[str] | None = None,
    *,
    dense_layers: int,
    dense_layers_fixed: bool = False,
    per_token: int | None = None,
    shared_experts: int = 1,
    knows_layer_types: bool = True,
    correction: bool = True,
    pattern: str = "",
    positions: str = "RoPE",
) -> Architecture:
    """A decoder with the FFNs of DeepSeek: dense in the first layers, experts in the others.

    Args:
        facts: of embedding and mixers.
        mixer_blocks: the mixers by name, latent attention if None. A prediction layer has the one called
            attention.
        mixers: the mixer of each layer, the first one if None.
        dense_layers: class default of first_k_dense_replace; `dense_layers_fixed` if the class takes no other
            number.
        per_token, shared_experts: class defaults of the experts of a token, and of the shared experts.
        knows_layer_types: whether the class reads mlp_layer_types.
        correction: whether a stored vector balances the routing.
        pattern, positions: as for `assemble`.
    """
    layer_count = config.layers()
    mixer_blocks = mixer_blocks or {"attention": block("latent_attention")}
    mixers = mixers or [next(iter(mixer_blocks))] * layer_count.value
    stated = (
        config.texts("mlp_layer_types", layer_count.value, ("dense", "sparse")) if knows_layer_types else None
    )
    ffns = _ffns(config, layer_count.value, stated, dense_layers, fixed=dense_layers_fixed)
    if "ffn" in ffns:
        facts = facts | ffn_facts(config)
    if "moe" in ffns:
        facts = facts | _expert_facts(config, per_token, shared_experts, correction)
    predicted = config.optional("num_nextn_predict_layers", "num_mtp_layers", why="no prediction layers")
    used = {*mixers, *ffns, *(("attention",) if predicted.value else ())}
    blocks = {**mixer_blocks, "ffn": block("ffn"), "moe": block("moe")}
    return assemble(
        config,
        facts | {"mtp_layers": predicted},
        {name: blocks[name] for name in blocks if name in used},
        list(zip(mixers, ffns, strict=True)),
        layer_count=layer_count,
        pattern=pattern or f"{'mlp_layer_types or ' if knows_layer_types else ''}first_k_dense_replace",
        positions=positions,
        prediction_blocks=("attention", ffns[-1]),
    )


def latent_facts(
    config: Config,
    *,
    query_rank: int,
    positions: int,
    plain_key: int = 128,
    value: int = 128,
    may_be_direct: bool = True,
) -> Facts:
    """Embedding and latent attention. head_dim and the KV heads of such files mean nothing.

    Args:
        query_rank, positions, plain_key, value: class defaults; a query rank of 0 stands for null.
        may_be_direct: whether queries may be projected without a latent.
    """
    bias = config.flag("attention_bias", default=False)
    return base_facts(config, positions) | {
        "attention_heads": config.integer("num_attention_heads"),
        "q_lora_rank": _query_rank(config, query_rank)
        if may_be_direct
        else config.integer("q_lora_rank", default=query_rank),
        "kv_lora_rank": config.integer("kv_lora_rank", default=512),
        "qk_nope_head_dim": config.integer("qk_nope_head_dim", default=plain_key),
        "qk_rope_head_dim": config.integer("qk_rope_head_dim", default=64),
        "v_head_dim": config.integer("v_head_dim", default=value),
        "qkv_bias": bias,
        "output_bias": bias,
    }


def _indexer_facts(config: Config, *, heads: int) -> Facts:
    """An indexer; `heads` is the class default."""
    return {
        "index_heads": config.integer("index_n_heads", default=heads),
        "index_head_dim": config.integer("index_head_dim", default=128),
        "index_topk": config.integer("index_topk", default=2048),
    }


def _query_rank(config: Config, default: int) -> Fact:
    """Width of the query latent; 0 for a direct projection.

    Null is not missing: null is a direct projection, a missing field is the class default.
    """
    given = "q_lora_rank" in config.data
    if config.has("q_lora_rank") or (default and not given):
        return config.integer("q_lora_rank", default=default)
    field = f"{config.path}q_lora_rank"
    source = f"{field} is null" if given else f"{config.model_type} class default of {field}"
    return Fact(
        value=0, origin="config" if given else "default", source=f"{source}: queries are projected directly"
    )


def _expert_facts(config: Config, per_token: int | None, shared_experts: int, correction: bool) -> Facts:
    """Routed experts, and the shared ones as a single FFN of their common width."""
    size = config.integer("moe_intermediate_size")
    fields = ("num_experts_per_tok", "num_experts_per_token")
    default = {} if per_token is None else {"default": per_token}
    balance = f"{'a' if correction else 'no'} stored vector balances the routing"
    facts = {
        "experts": config.integer("n_routed_experts", "num_local_experts", "num_experts"),
        "experts_per_token": config.integer(*fields, **default),
        "expert_size": size,
        "correction_bias": config.implied(int(correction), balance),
    }
    shared = config.integer("n_shared_experts", "num_shared_experts", default=shared_experts, least=0)
    if shared.value:
        source = f"{shared.source} × {size.source}"
        facts["shared_expert_size"] = config.derived(shared.value * size.value, source)
    return facts


def _ffns(
    config: Config, count: int, stated: Sequence[str] | None, dense_layers: int, *, fixed: bool
) -> list[str]:
    """Which FFN each layer has: as stated, else dense ones first."""
    every = config.data.get("moe_layer_freq", 1)
    if isinstance(every, bool) or every != 1:
        raise config.invalid("moe_layer_freq", "1: experts in every layer after the first dense ones")
    if stated is not None:
        return ["ffn" if kind == "dense" else "moe" for kind in stated]
    dense = config.integer(
        "first_k_dense_replace",
        default=dense_layers,
        least=dense_layers if fixed else 0,
        most=dense_layers if fixed else MAX_LAYERS,
    )
    if dense.origin == "config" and dense.value > count:
        raise config.invalid("first_k_dense_replace", f"at most as many dense layers as the {count} layers")
    return ["ffn" if layer < dense.value else "moe" for layer in range(count)]


def _indexer_kinds(config: Config, count: int) -> list[str]:
    """Which layers have an indexer of their own ("full") and which share the selection before ("shared").

    By indexer_types, else by index_topk_pattern, else every so many layers after the first ones.
    """
    pattern = config.data.get("index_topk_pattern")
    kinds = config.texts("indexer_types", count, ("full", "shared"))
    if kinds is None and isinstance(pattern, str):
        if len(pattern) != count or set(pattern) - {"F", "S"}:
            raise config.invalid("index_topk_pattern", f"{count} letters F (full) and S (shared)")
        kinds = ["full" if letter == "F" else "shared" for letter in pattern]
    kinds = kinds or config.texts("index_topk_pattern", count, ("full", "shared"))
    if kinds is None:
        period = config.integer("index_topk_freq", default=1, least=0).value or 1
        offset = config.integer("index_skip_topk_offset", default=2, least=0).value
        kinds = ["full" if max(layer - offset + 1, 0) % period == 0 else "shared" for layer in range(count)]
    if kinds[0] == "shared":
        raise InputError(
            f"{config.name}: field {config.path}indexer_types: the first layer cannot be shared; "
            "there is no layer before it"
        )
    return kinds
