"""In which data types a checkpoint stores its matrices, class by class, from its quantization_config.

Classes are attention (every mixer), ffn (dense and shared experts), experts and head (embedding and LM head). Which
modules a scheme takes or leaves out is stated by patterns; a class of which only some matrices are named counts as most
of its weights are. Routers, norms and vision towers stay in 16 bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mantile.library.architecture import Block, Choice, Fact
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.schemes import BODY, CLASSES, Format, Scheme, scheme_of

_SIXTEEN = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
_MIXER = ("self_attn", "mixer", "attn")
_MLP = ("mlp", "feed_forward", "block_sparse_moe", "mixer", "ffn")
# Matrices of a block: where they stand, and each by the names it goes by.
_MATRICES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "attention": (_MIXER, tuple((f"{part}_proj", "qkv_proj") for part in "qkv") + (("o_proj",),)),
    "latent": (
        _MIXER,
        (
            ("q_a_proj", "q_proj", "wq_a", "fused_wqa_wkv"),
            ("q_b_proj", "q_proj", "wq_b"),
            ("kv_a_proj_with_mqa", "wkv", "fused_wqa_wkv"),
            ("kv_b_proj", "wkv", "fused_wqa_wkv"),
            ("o_proj", "wo_b"),
        ),
    ),
    "recurrent": (
        ("linear_attn", "mamba", *_MIXER),
        (("in_proj", "in_proj_qkvz", "in_proj_qkv", "q_proj"), ("out_proj", "o_proj")),
    ),
    "ffn": (_MLP, (("gate_proj", "gate_up_proj", "up_proj"), ("up_proj", "gate_up_proj"), ("down_proj",))),
    "experts": (
        _MLP,
        (
            ("experts.0.gate_proj", "experts.0.up_proj", "experts.0.w1", "experts.gate_up_proj"),
            ("experts.0.down_proj", "experts.0.w2", "experts.down_proj"),
        ),
    ),
    "shared": (
        _MLP,
        tuple((f"shared_experts.{part}_proj", f"shared_expert.{part}_proj") for part in ("up", "up", "down")),
    ),
}
_DRAWN = {
    "attention": "attention",
    "latent_attention": "latent",
    "compressed_attention": "latent",
    "ffn": "ffn",
    "moe": "experts",
}
_HEAD = ("lm_head", "head")


def data_types(
    config: Config, layers: Sequence[Sequence[Block]], facts: Mapping[str, Fact]
) -> dict[str, Choice]:
    """The data type of the matrices, that of each class that differs, of activations and KV cache where the scheme fixes them.

    Args:
        layers: the blocks each layer is made of.
        facts: of the decoder, which weigh the matrices of a class.
    """
    stated = _sixteen(config)
    scheme = scheme_of(config)
    if scheme is None:
        return {"weights_dtype": stated}
    counts = _count(scheme, layers, facts)
    formats = {kind: count.most_common(1)[0][0] for kind, count in counts.items()}
    headline = next((formats[kind] for kind in BODY if formats.get(kind) is not None), None)
    main = headline.weights if headline else stated.value
    found = {
        "weights_dtype": _choice(
            main,
            scheme.source,
            [_remark(scheme, counts, kind) for kind in BODY if _in(formats, kind, headline)],
        )
    }
    for kind in CLASSES:
        if kind in formats and not _in(formats, kind, headline):
            own = formats[kind]
            found[f"{kind}_dtype"] = _choice(
                own.weights if own else stated.value, scheme.source, [_remark(scheme, counts, kind)]
            )
    if headline and headline.activations:
        activations = stated.value if headline.activations == "16" else headline.activations
        found["activation_dtype"] = _choice(activations, scheme.source)
    if scheme.kv:
        found["kv_dtype"] = _choice(scheme.kv, scheme.source)
    return found


def _in(formats: Mapping[str, Format | None], kind: str, headline: Format | None) -> bool:
    """Whether a class is stored as the headline says."""
    own = formats.get(kind)
    return kind in formats and (own.weights if own else "") == (headline.weights if headline else "")


def _choice(value: str, source: str, remarks: Iterable[str] = ()) -> Choice:
    return Choice(
        value=value, origin="config", source="; ".join([source, *(remark for remark in remarks if remark)])
    )


def _remark(scheme: Scheme, counts: Mapping[str, Counter[Format | None]], kind: str) -> str:
    """How much of a class is stored otherwise than the class counts as, or why it is in 16 bit."""
    ranked = counts[kind].most_common()
    every, most = counts[kind].total(), ranked[0][1]
    said = f" ({scheme.ignoring})" if scheme.ignoring and kind != "head" else ""
    if len(ranked) > 1:
        others = ", ".join(found.weights if found else "16 bit" for found, _ in ranked[1:])
        return f"{(every - most) / every:.0%} of {kind} is in {others} and counted with the rest{said}"
    return f"{kind} in 16 bit{said}" if ranked[0][0] is None else ""


def _count(
    scheme: Scheme, layers: Sequence[Sequence[Block]], facts: Mapping[str, Fact]
) -> dict[str, Counter[Format | None]]:
    """How many values of each class are in which format."""
    counts: dict[str, Counter[Format | None]] = {"head": Counter({scheme.format("head", _HEAD): 1})}
    for index, blocks in enumerate(layers):
        for block in blocks:
            drawn, shared = (
                _DRAWN.get(block.kind, "recurrent"),
                block.uses.get("shared_expert_size", "shared_expert_size"),
            )
            for part in ("experts", "shared") if drawn == "experts" and shared in facts else (drawn,):
                kind = "experts" if part == "experts" else "ffn" if part in ("ffn", "shared") else "attention"
                places, matrices = _MATRICES[part]
                for matrix, size in zip(matrices, _sizes(part, block, facts), strict=True):
                    names = [f"layers.{index}.{place}.{name}" for place in places for name in matrix]
                    counts.setdefault(kind, Counter())[scheme.format(kind, names)] += size
    return counts


def _sizes(part: str, block: Block, facts: Mapping[str, Fact]) -> tuple[int, ...]:
    """Sizes of a block's matrices in the order of the table, by channels of the residual stream they are as wide as."""

    def of(role: str, missing: int = 1) -> int:
        name = block.uses.get(role, role)
        return facts[name].value if name in facts else missing

    match part:
        case "attention":
            query, key, size = of("attention_heads"), of("kv_heads"), of("head_dim")
            value = of("value_head_dim", size)
            return query * size, key * size, key * value, query * value
        case "latent":
            hidden, heads, rank, latent, rope = (
                of(name)
                for name in (
                    "hidden_size",
                    "attention_heads",
                    "q_lora_rank",
                    "kv_lora_rank",
                    "qk_rope_head_dim",
                )
            )
            nope, value = of("qk_nope_head_dim"), of("v_head_dim")
            return (
                rank,
                (rank or hidden) * heads * (nope + rope) // hidden,
                latent + rope,
                latent * heads * (nope + value) // hidden,
                heads * value,
            )
        case "recurrent":
            inner = of("mamba_inner", of("mamba_heads") * of("mamba_head_dim"))
            value = of("linear_value_heads", 0) * of("linear_value_dim", 0) or inner
            key = of("linear_key_heads", 0) * of("linear_key_dim", 0)
            return 2 * (key + value), value
        case "experts":
            return of("ffn_input_matrices"), 1
        case _:
            return (of("shared_expert_size" if part == "shared" else "ffn_size"),) * 3


def _sixteen(config: Config) -> Choice:
    """The 16-bit type of what is not quantised; float32 is served in 16 bit."""
    part = (
        config if config.parent is None or config.has("dtype") or config.has("torch_dtype") else config.parent
    )
    stated = part.text("dtype", "torch_dtype", default="bfloat16", among=tuple(_SIXTEEN))
    served = "" if stated.value != "float32" else ": float32, served in 16 bit"
    return Choice(value=_SIXTEEN[stated.value], origin=stated.origin, source=stated.source + served)
