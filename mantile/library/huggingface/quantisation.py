"""The data types in which a checkpoint stores its matrices, by class, from its quantization_config.

Classes are attention (every mixer), ffn (dense and shared experts), experts, and head (embedding and LM
head). Patterns say which modules a scheme takes or leaves out. A class of which only some matrices are named
counts as most of its weights are. Routers, norms and vision towers stay in 16 bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from mantile.library.architecture import Block, Choice, Fact, Step, size_of
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import BODY_CLASSES, CLASSES, Format, Scheme
from mantile.library.huggingface.schemes import scheme_of

_SIXTEEN_BIT = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
_MIXERS = ("self_attn", "mixer", "attn")
_FFNS = ("mlp", "feed_forward", "block_sparse_moe", "mixer", "ffn")
# The matrices of a part of a block: the modules they may stand in, and for each matrix the names it may have.
_MATRICES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "attention": (_MIXERS, tuple((f"{part}_proj", "qkv_proj") for part in "qkv") + (("o_proj",),)),
    "latent": (
        _MIXERS,
        (
            ("q_a_proj", "q_proj", "wq_a", "fused_wqa_wkv"),
            ("q_b_proj", "q_proj", "wq_b"),
            ("kv_a_proj_with_mqa", "wkv", "fused_wqa_wkv"),
            ("kv_b_proj", "wkv", "fused_wqa_wkv"),
            ("o_proj", "wo_b"),
        ),
    ),
    "recurrent": (
        ("linear_attn", "mamba", *_MIXERS),
        (("in_proj", "in_proj_qkvz", "in_proj_qkv", "q_proj"), ("out_proj", "o_proj")),
    ),
    "ffn": (_FFNS, (("gate_proj", "gate_up_proj", "up_proj"), ("up_proj", "gate_up_proj"), ("down_proj",))),
    "experts": (
        _FFNS,
        (
            ("experts.0.gate_proj", "experts.0.up_proj", "experts.0.w1", "experts.gate_up_proj"),
            ("experts.0.down_proj", "experts.0.w2", "experts.down_proj"),
        ),
    ),
    "shared": (
        _FFNS,
        tuple((f"shared_experts.{part}_proj", f"shared_expert.{part}_proj") for part in ("up", "up", "down")),
    ),
}
_HEAD = ("lm_head", "head")
Counts = dict[str, Counter[Format | None]]
"""How many values of each class of matrices are in which format; None is 16 bit."""


def data_types(
    config: Config, layers: Sequence[Sequence[Block]], facts: Mapping[str, Fact]
) -> dict[str, Choice]:
    """The data type of the matrices, and of each class that differs.

    That of activations and KV cache too, where the scheme fixes them.

    Args:
        layers: the blocks of each layer.
        facts: of the decoder; they weigh the matrices of a class.

    Raises:
        InputError: for a quantisation that is not supported, or a field that is wrong.
    """
    sixteen_bit = _sixteen_bit(config)
    scheme = scheme_of(config)
    if scheme is None:
        return {"weights_dtype": sixteen_bit}
    counts = _counts(scheme, layers, facts)
    formats = {kind: count.most_common(1)[0][0] for kind, count in counts.items()}
    main = next((formats[kind] for kind in BODY_CLASSES if formats.get(kind) is not None), None)

    def stored_in(format: Format | None) -> str:
        return format.weights if format else sixteen_bit.value

    like_main = [kind for kind in formats if stored_in(formats[kind]) == stored_in(main)]
    remarks = [_remark(scheme, counts, kind) for kind in BODY_CLASSES if kind in like_main]
    choices = {"weights_dtype": _choice(stored_in(main), scheme.source, remarks)}
    for kind in CLASSES:
        if kind in formats and kind not in like_main:
            remark = _remark(scheme, counts, kind)
            choices[f"{kind}_dtype"] = _choice(stored_in(formats[kind]), scheme.source, [remark])
    if main and main.activations:
        activations = sixteen_bit.value if main.activations == "16" else main.activations
        choices["activation_dtype"] = _choice(activations, scheme.source)
    if scheme.kv:
        choices["kv_dtype"] = _choice(scheme.kv, scheme.source)
    return choices


def _choice(value: str, source: str, remarks: Iterable[str] = ()) -> Choice:
    texts = [source, *(remark for remark in remarks if remark)]
    return Choice(value=value, origin="config", source="; ".join(texts))


def _remark(scheme: Scheme, counts: Counts, kind: str) -> str:
    """How much of a class is in another format than it counts as, or why it is in 16 bit; empty otherwise."""
    ranked = counts[kind].most_common()
    total, most = counts[kind].total(), ranked[0][1]
    field = f" ({scheme.ignored_source})" if scheme.ignored_source and kind != "head" else ""
    if len(ranked) > 1:
        others = ", ".join(format.weights if format else "16 bit" for format, _ in ranked[1:])
        return f"{(total - most) / total:.0%} of {kind} is in {others} and counted with the rest{field}"
    return f"{kind} in 16 bit{field}" if ranked[0][0] is None else ""


def _counts(scheme: Scheme, layers: Sequence[Sequence[Block]], facts: Mapping[str, Fact]) -> Counts:
    counts: Counts = {"head": Counter({scheme.format("head", _HEAD): 1})}
    for index, blocks in enumerate(layers):
        for block in blocks:
            for step in block.steps:
                for name, size in recorded_matrices(step, facts):
                    weights = "ffn" if step.weights == "router" else step.weights
                    if step.weights not in ("router", "head"):
                        placed = name.replace("{}", str(index), 1).replace("{}", "0")
                        counts.setdefault(weights, Counter())[scheme.format(weights, [placed])] += size
            for part in _parts(block, facts):
                kind = part if part in ("experts", "ffn") else "ffn" if part == "shared" else "attention"
                places, matrices = _MATRICES[part]
                for matrix, size in zip(matrices, _sizes(part, block, facts), strict=True):
                    names = [f"layers.{index}.{place}.{name}" for place in places for name in matrix]
                    counts.setdefault(kind, Counter())[scheme.format(kind, names)] += size
    return counts


def recorded_matrices(step: Step, facts: Mapping[str, Fact]) -> Iterator[tuple[str, int]]:
    """The matrices of a recorded step: the module that each is the weight of, and its values."""
    for tensor in step.tensors:
        if tensor.matrix:
            size = prod(size_of(dimension, facts) for dimension in tensor.shape)
            copies = facts[tensor.copies].value if tensor.copies else 1
            yield tensor.name.removesuffix(".weight"), size * copies


def _parts(block: Block, facts: Mapping[str, Fact]) -> tuple[str, ...]:
    """The parts of a block in the table of matrices."""
    match block.kind:
        case "attention" | "ffn":
            return (block.kind,)
        case "latent_attention" | "compressed_attention":
            return ("latent",)
        case "recorded":
            return ()
        case "moe":
            shared = block.uses.get("shared_expert_size", "shared_expert_size")
            return ("experts", "shared") if shared in facts else ("experts",)
        case _:
            return ("recurrent",)


def _sizes(part: str, block: Block, facts: Mapping[str, Fact]) -> tuple[int, ...]:
    """Sizes of a part's matrices in the order of the table, each divided by the hidden size."""

    def of(role: str, missing: int = 1) -> int:
        name = block.uses.get(role, role)
        return facts[name].value if name in facts else missing

    match part:
        case "attention":
            query, key, size = of("attention_heads"), of("kv_heads"), of("head_dim")
            value_size = of("value_head_dim", size)
            return query * size, key * size, key * value_size, query * value_size
        case "latent":
            hidden, heads, query_rank = of("hidden_size"), of("attention_heads"), of("q_lora_rank")
            latent, rope = of("kv_lora_rank"), of("qk_rope_head_dim")
            plain, value = of("qk_nope_head_dim"), of("v_head_dim")
            return (
                query_rank,
                (query_rank or hidden) * heads * (plain + rope) // hidden,
                latent + rope,
                latent * heads * (plain + value) // hidden,
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


def _sixteen_bit(config: Config) -> Choice:
    """The 16-bit type of what is not quantised; float32 is served in 16 bit."""
    own = config.has("dtype") or config.has("torch_dtype")
    part = config if own or config.parent is None else config.parent
    stated = part.text("dtype", "torch_dtype", default="bfloat16", among=tuple(_SIXTEEN_BIT))
    remark = ": float32, served in 16 bit" if stated.value == "float32" else ""
    return Choice(value=_SIXTEEN_BIT[stated.value], origin=stated.origin, source=stated.source + remark)
