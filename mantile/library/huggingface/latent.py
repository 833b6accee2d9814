"""Multi-head latent attention with experts: deepseek_v2, deepseek_v3, kimi_k2, deepseek_v32, glm_moe_dsa, glm4_moe_lite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.library.architecture import Architecture, Block, Fact
from mantile.library.errors import InputError
from mantile.library.huggingface.config import MAX_LAYERS, Config, Facts
from mantile.library.huggingface.reading import architecture, base_facts, block

# An indexer of its own selects the tokens of a layer; layers that share the selection of the one before hold none.
INDEXED = block("latent_attention", selected="index_topk", indexer="index_heads")
SHARED = block("latent_attention", selected="index_topk")


def deepseek_v2(config: Config) -> Architecture:
    """DeepSeek-V2."""
    if config.flag("mlp_bias", default=False).value:
        raise config.invalid("mlp_bias", "false; experts with a bias are not supported")
    config.text("topk_method", default="greedy", among=("greedy", "group_limited_greedy"))
    return decoder(
        config, latent_facts(config, 1536, positions=2048), first=0, shared=2, listed=False, correction=False
    )


def deepseek_v3(config: Config) -> Architecture:
    """DeepSeek-V3 and R1, Kimi K2, Moonlight."""
    return decoder(config, latent_facts(config, 1536, positions=4096), first=3, per_token=8, listed=False)


def deepseek_v32(config: Config) -> Architecture:
    """DeepSeek-V3.2: an indexer in every layer."""
    facts = latent_facts(config, 1536, positions=163_840, direct=False) | index_facts(config, heads=64)
    return decoder(config, facts, {"attention": INDEXED}, first=3, per_token=8)


def glm_moe_dsa(config: Config) -> Architecture:
    """GLM-5: as DeepSeek-V3.2, where some layers share the selection of the one before."""
    count = config.layers().value
    mixers = ["attention" if kind == "full" else "shared_attention" for kind in _indexers(config, count)]
    facts = latent_facts(config, 2048, positions=202_752, nope=192, value=256, direct=False) | index_facts(
        config, heads=32
    )
    return decoder(
        config,
        facts,
        {"attention": INDEXED, "shared_attention": SHARED},
        mixers,
        first=3,
        per_token=8,
        pattern="indexer_types, mlp_layer_types or first_k_dense_replace",
    )


def glm4_moe_lite(config: Config) -> Architecture:
    """GLM-4.7-Flash. The class takes one dense layer where mlp_layer_types does not say otherwise."""
    facts = latent_facts(config, 768, positions=202_752, nope=192, value=256)
    return decoder(config, facts, first=1, fixed=True, per_token=4)


def decoder(
    config: Config,
    facts: Facts,
    mixer: Mapping[str, Block] | None = None,
    mixers: Sequence[str] | None = None,
    *,
    first: int,
    per_token: int | None = None,
    shared: int = 1,
    listed: bool = True,
    fixed: bool = False,
    correction: bool = True,
    pattern: str = "",
    positions: str = "RoPE",
) -> Architecture:
    """A decoder with the FFNs of DeepSeek: dense in the first layers, experts in the others.

    Args:
        facts: of embedding and mixers.
        mixer: the mixers by name, latent attention if None; `mixers` is which each layer has, the first if None. Prediction
            layers have the one called attention.
        first: class default of first_k_dense_replace; `fixed` if the class takes no other number.
        per_token, shared: class defaults of the experts of a token, and of the shared experts.
        listed: whether the class knows mlp_layer_types.
        correction: whether a stored vector balances the routing.
    """
    counted = config.layers()
    mixer = mixer or {"attention": block("latent_attention")}
    mixers = mixers or [next(iter(mixer))] * counted.value
    ffns = _ffns(config, counted.value, first, fixed, listed)
    if "ffn" in ffns:
        facts = facts | {
            "ffn_size": config.integer("intermediate_size"),
            "ffn_bias": config.implied(0, "no bias in the FFN"),
        }
    if "moe" in ffns:
        facts = facts | _expert_facts(config, per_token, shared, correction)
    predicted = config.optional("num_nextn_predict_layers", "num_mtp_layers", why="no prediction layers")
    used = {*mixers, *ffns} | ({"attention"} if predicted.value else set())
    blocks = {
        name: made
        for name, made in {**mixer, "ffn": block("ffn"), "moe": block("moe")}.items()
        if name in used
    }
    return architecture(
        config,
        facts | {"mtp_layers": predicted},
        blocks,
        list(zip(mixers, ffns, strict=True)),
        counted=counted,
        pattern=pattern or f"{'mlp_layer_types or ' if listed else ''}first_k_dense_replace",
        positions=positions,
        predicted=("attention", ffns[-1]),
    )


def latent_facts(
    config: Config, rank: int, *, positions: int, nope: int = 128, value: int = 128, direct: bool = True
) -> Facts:
    """Figures of embedding and latent attention. head_dim and the KV heads of such files mean nothing.

    Args:
        rank, positions, nope, value: class defaults; a rank of 0 is null.
        direct: whether queries may be projected without a latent.
    """
    bias = config.flag("attention_bias", default=False)
    return base_facts(config, positions) | {
        "attention_heads": config.integer("num_attention_heads"),
        "q_lora_rank": _query_rank(config, rank) if direct else config.integer("q_lora_rank", default=rank),
        "kv_lora_rank": config.integer("kv_lora_rank", default=512),
        "qk_nope_head_dim": config.integer("qk_nope_head_dim", default=nope),
        "qk_rope_head_dim": config.integer("qk_rope_head_dim", default=64),
        "v_head_dim": config.integer("v_head_dim", default=value),
        "qkv_bias": bias,
        "output_bias": bias,
    }


def index_facts(config: Config, *, heads: int) -> Facts:
    """Figures of an indexer."""
    return {
        "index_heads": config.integer("index_n_heads", default=heads),
        "index_head_dim": config.integer("index_head_dim", default=128),
        "index_topk": config.integer("index_topk", default=2048),
    }


def _query_rank(config: Config, default: int) -> Fact:
    """Width of the compressed query. null is not missing: it stands for a direct projection, a missing field for the class default."""
    given = "q_lora_rank" in config.data
    if config.has("q_lora_rank") or (default and not given):
        return config.integer("q_lora_rank", default=default)
    source = (
        f"{config.path}q_lora_rank is null"
        if given
        else f"{config.model_type} class default of {config.path}q_lora_rank"
    )
    return Fact(
        value=0, origin="config" if given else "default", source=f"{source}: queries are projected directly"
    )


def _expert_facts(config: Config, per_token: int | None, shared: int, correction: bool) -> Facts:
    """Figures of the mixture: routed experts, and shared ones as a single FFN of their common width."""
    size = config.integer("moe_intermediate_size")
    fields = ("num_experts_per_tok", "num_experts_per_token")
    found = {
        "experts": config.integer("n_routed_experts", "num_local_experts", "num_experts"),
        "experts_per_token": config.integer(*fields)
        if per_token is None
        else config.integer(*fields, default=per_token),
        "expert_size": size,
        "correction_bias": config.implied(
            int(correction), f"{'a' if correction else 'no'} stored vector balances the routing"
        ),
    }
    always = config.integer("n_shared_experts", "num_shared_experts", default=shared, least=0)
    if always.value:
        found["shared_expert_size"] = config.derived(
            always.value * size.value, f"{always.source} × {size.source}"
        )
    return found


def _ffns(config: Config, count: int, first: int, fixed: bool, listed: bool) -> list[str]:
    """Which FFN each layer has."""
    every = config.data.get("moe_layer_freq", 1)
    if isinstance(every, bool) or every != 1:
        raise config.invalid("moe_layer_freq", "1: experts in every layer after the first dense ones")
    kinds = config.texts("mlp_layer_types", count, ("dense", "sparse")) if listed else None
    if kinds is not None:
        return ["ffn" if kind == "dense" else "moe" for kind in kinds]
    dense = config.integer(
        "first_k_dense_replace",
        default=first,
        least=first if fixed else 0,
        most=first if fixed else MAX_LAYERS,
    )
    return ["ffn" if number < dense.value else "moe" for number in range(count)]


def _indexers(config: Config, count: int) -> list[str]:
    """Which layers have an indexer of their own: indexer_types, else a pattern of F and S, else every so many after the first."""
    pattern = config.data.get("index_topk_pattern")
    kinds = config.texts("indexer_types", count, ("full", "shared"))
    if kinds is None and isinstance(pattern, str):
        if len(pattern) != count or set(pattern) - {"F", "S"}:
            raise config.invalid("index_topk_pattern", f"{count} letters F (full) and S (shared)")
        kinds = ["full" if letter == "F" else "shared" for letter in pattern]
    kinds = kinds or config.texts("index_topk_pattern", count, ("full", "shared"))
    if kinds is None:
        every = config.integer("index_topk_freq", default=1, least=0).value or 1
        offset = config.integer("index_skip_topk_offset", default=2, least=0).value
        kinds = ["full" if max(number - offset + 1, 0) % every == 0 else "shared" for number in range(count)]
    if kinds[0] == "shared":
        raise InputError(
            f"{config.name}: field {config.path}indexer_types: the first layer has no layer before it to share with"
        )
    return kinds
