"""The matrices of each kind of block: our keys of them, what checkpoints call them, how large they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mantile.library.architecture import Block, Fact, Step, size_of

_MIXERS = ("self_attn", "mixer", "attn", "attention")
_LINEAR = ("linear_attn", "mamba", *_MIXERS)
_FFNS = ("mlp", "feed_forward", "block_sparse_moe", "mixer", "ffn", "moe")
_EXPERTS = tuple(f"{place}.experts" for place in _FFNS)


class Sizes:
    """Facts of a block by role, for the sizes of its matrices."""

    def __init__(self, block: Block, facts: Mapping[str, Fact]) -> None:
        self._block, self._facts = block, facts

    def __call__(self, role: str, missing: int = 1) -> int:
        """A fact, or `missing` where the architecture has none."""
        name = self._block.uses.get(role, role)
        return self._facts[name].value if name in self._facts else missing

    def has(self, role: str) -> bool:
        """Whether the block has a fact that is not 0."""
        return bool(self(role, 0))


@dataclass(frozen=True)
class Matrix:
    """A matrix of a block.

    Args:
        key: ours, as in `tensor_names`.
        weights: its class of matrices.
        places: modules that it may stand in, as part of a layer.
        names: that it may have there, by checkpoint, transformers or serving engine.
        size: values divided by the hidden size; they weigh the matrices of a class.
    """

    key: str
    weights: str
    places: Sequence[str]
    names: Sequence[str]
    size: Callable[[Sizes], int]

    def modules(self, layer: int) -> list[str]:
        """All names of the matrix in a layer."""
        return [f"layers.{layer}.{place}.{name}" for place in self.places for name in self.names]


@dataclass(frozen=True)
class RecordedMatrix(Matrix):
    """A matrix that was seen in a class: its key is its whole name, {} for the layer."""

    def modules(self, layer: int) -> list[str]:
        """Its name in a layer; of experts that of the first."""
        return [self.key.replace("{}", str(layer), 1).replace("{}", "0")]


def _mixer(key: str, *names: str, size: Callable[[Sizes], int]) -> Matrix:
    return Matrix(key, "attention", _MIXERS, (f"{key}_proj", *names), size)


def _linear(key: str, *names: str, size: Callable[[Sizes], int]) -> Matrix:
    return Matrix(key, "attention", _LINEAR, names, size)


def _keys(of: Sizes) -> int:
    return of("kv_heads") * of("head_dim")


def _values(of: Sizes) -> int:
    return of("kv_heads") * of("value_head_dim", of("head_dim"))


def _query_latent(of: Sizes) -> int:
    """Rows of the projection of queries, from the latent or from the hidden state, in hidden sizes."""
    width = of("attention_heads") * (of("qk_nope_head_dim") + of("qk_rope_head_dim"))
    return (of("q_lora_rank") or of("hidden_size")) * width // of("hidden_size")


def _key_value_latent(of: Sizes) -> int:
    width = of("attention_heads") * (of("qk_nope_head_dim") + of("v_head_dim"))
    return of("kv_lora_rank") * width // of("hidden_size")


def _linear_value(of: Sizes) -> int:
    return of("linear_value_heads") * of("linear_value_dim")


def _linear_key(of: Sizes) -> int:
    return of("linear_key_heads") * of("linear_key_dim")


def _linear_width(of: Sizes) -> int:
    return of("linear_heads") * of("linear_head_dim")


def _inner(of: Sizes) -> int:
    return of("mamba_inner", of("mamba_heads") * of("mamba_head_dim"))


def _expert_values(of: Sizes) -> int:
    return of("experts") * of("expert_size") * of("latent_size", of("hidden_size")) // of("hidden_size")


_ATTENTION = (
    _mixer(
        "q", "qkv_proj", "query_key_value", "c_attn", size=lambda of: of("attention_heads") * of("head_dim")
    ),
    _mixer("k", "qkv_proj", "query_key_value", "c_attn", size=_keys),
    _mixer("v", "qkv_proj", "query_key_value", "c_attn", size=_values),
    _mixer(
        "o",
        "out_proj",
        "dense",
        "c_proj",
        size=lambda of: of("attention_heads") * of("value_head_dim", of("head_dim")),
    ),
)
_HEAD_GATE = (_mixer("head_gate", "g_proj", size=lambda of: of("attention_heads")),)
_INDEXER = (
    _mixer("index_q", "indexer.wq_b", size=lambda of: of("index_heads") * of("index_head_dim")),
    _mixer("index_k", "indexer.wk", size=lambda of: of("index_head_dim")),
    _mixer("index_weights", "indexer.weights_proj", size=lambda of: of("index_heads")),
)
_LATENT = (
    _mixer("q_a", "q_a_proj", size=lambda of: of("q_lora_rank", 0)),
    _mixer("q_b", size=_query_latent),
    _mixer("kv_a", "kv_a_proj_with_mqa", size=lambda of: of("kv_lora_rank") + of("qk_rope_head_dim")),
    _mixer("kv_b", size=_key_value_latent),
    _mixer("o", size=lambda of: of("attention_heads") * of("v_head_dim")),
)
_LATENT_DIRECT = (_mixer("q", size=_query_latent), *_LATENT[2:])
_COMPRESSED = (
    _mixer("q_a", "wq_a", "fused_wqa_wkv", size=lambda of: of("q_lora_rank")),
    _mixer("kv", "wkv", "fused_wqa_wkv", size=lambda of: of("head_dim")),
    _mixer(
        "q_b",
        "wq_b",
        size=lambda of: of("q_lora_rank") * of("attention_heads") * of("head_dim") // of("hidden_size"),
    ),
    _mixer(
        "o_a",
        "wo_a",
        size=lambda of: of("output_rank") * of("attention_heads") * of("head_dim") // of("hidden_size"),
    ),
    _mixer("o_b", "wo_b", size=lambda of: of("output_groups") * of("output_rank")),
)
_COMPRESSOR = (
    _mixer("compressor_kv", "compressor.wkv", "compressor.fused_wkv_wgate", size=lambda of: of("head_dim")),
    _mixer(
        "compressor_gate", "compressor.wgate", "compressor.fused_wkv_wgate", size=lambda of: of("head_dim")
    ),
)
_COMPRESSED_INDEXER = (
    _INDEXER[0],
    _INDEXER[2],
    _mixer("index_compressor_kv", "indexer.compressor.wkv", size=lambda of: of("index_head_dim")),
    _mixer("index_compressor_gate", "indexer.compressor.wgate", size=lambda of: of("index_head_dim")),
)
_GATED_DELTA = (
    _linear(
        "delta_qkv",
        "in_proj_qkv",
        "in_proj_qkvz",
        "in_proj",
        size=lambda of: 2 * _linear_key(of) + _linear_value(of),
    ),
    _linear("delta_z", "in_proj_z", "in_proj_qkvz", "in_proj", size=_linear_value),
    _linear("delta_b", "in_proj_b", "in_proj_ba", size=lambda of: of("linear_value_heads")),
    _linear("delta_a", "in_proj_a", "in_proj_ba", size=lambda of: of("linear_value_heads")),
    _linear("delta_out", "out_proj", size=_linear_value),
)
_DELTA = (
    *(_mixer(key, size=_linear_width) for key in ("q", "k", "v")),
    _mixer("delta_b", "b_proj", size=lambda of: of("linear_heads")),
    _mixer("decay_in", "f_a_proj", size=lambda of: of("linear_head_dim")),
    _mixer("gate_in", "g_a_proj", size=lambda of: of("linear_head_dim")),
    _mixer("decay_out", "f_b_proj", size=lambda of: of("linear_head_dim")),
    _mixer("gate_out", "g_b_proj", size=lambda of: of("linear_head_dim")),
    _mixer("o", size=_linear_width),
)
_MAMBA2 = (
    _linear("mamba_in", "in_proj", size=lambda of: 2 * _inner(of)),
    _linear("mamba_out", "out_proj", size=_inner),
)
_MAMBA = (
    *_MAMBA2,
    _linear("mamba_x", "x_proj", size=lambda of: of("mamba_dt_rank") + 2 * of("mamba_state")),
    _linear("mamba_dt", "dt_proj", size=lambda of: of("mamba_dt_rank")),
)
_FFN = (
    Matrix("gate", "ffn", _FFNS, ("gate_proj", "gate_up_proj", "w1"), lambda of: of("ffn_size")),
    Matrix(
        "up",
        "ffn",
        _FFNS,
        ("up_proj", "gate_up_proj", "w3", "c_fc", "fc1", "dense_h_to_4h"),
        lambda of: of("ffn_size"),
    ),
    Matrix(
        "down", "ffn", _FFNS, ("down_proj", "w2", "c_proj", "fc2", "dense_4h_to_h"), lambda of: of("ffn_size")
    ),
)


def _routed(places: Sequence[str]) -> tuple[Matrix, ...]:
    """Experts, each by itself or all of a layer in one tensor."""
    return tuple(
        Matrix(
            f"expert_{part}",
            "experts",
            places,
            (f"0.{part}_proj", f"0.{own}", fused, f"{part}_proj"),
            _expert_values,
        )
        for part, own, fused in (
            ("gate", "w1", "gate_up_proj"),
            ("up", "w3", "gate_up_proj"),
            ("down", "w2", "down_proj"),
        )
    )


def _shared(names: Callable[[str, str], tuple[str, ...]]) -> tuple[Matrix, ...]:
    return tuple(
        Matrix(f"shared_{part}", "ffn", _FFNS, names(part, own), lambda of: of("shared_expert_size"))
        for part, own in (("gate", "w1"), ("up", "w3"), ("down", "w2"))
    )


def _in_shared_expert(part: str, own: str) -> tuple[str, ...]:
    modules, names = ("shared_experts", "shared_expert"), (f"{part}_proj", own)
    return tuple(f"{module}.{name}" for module in modules for name in names)


_ROUTED, _SHARED = _routed(_EXPERTS), _shared(_in_shared_expert)
# Where dense FFN and experts stand side by side, the FFN has the names of one alone, and the experts stand
# outside it.
_BESIDE = _routed(("experts", "moe.experts"))
_DENSE = _shared(
    lambda part, own: (f"{part}_proj", own) if part == "down" else (f"{part}_proj", "gate_up_proj")
)
_LATENTS = (
    Matrix("latent_down", "ffn", _FFNS, ("fc1_latent_proj",), lambda of: of("latent_size")),
    Matrix("latent_up", "ffn", _FFNS, ("fc2_latent_proj",), lambda of: of("latent_size")),
)


def _constant(size: int) -> Callable[[Sizes], int]:
    return lambda _: size


def _recorded(step: Step, facts: Mapping[str, Fact]) -> Iterator[Matrix]:
    """The matrices of a recorded step."""
    for tensor in step.tensors:
        if tensor.matrix and step.weights not in ("router", "head", "embedding"):
            values = prod(size_of(dimension, facts) for dimension in tensor.shape)
            values *= facts[tensor.copies].value if tensor.copies else 1
            size = values // facts["hidden_size"].value
            yield RecordedMatrix(tensor.name.removesuffix(".weight"), step.weights, (), (), _constant(size))


def matrices_of(block: Block, facts: Mapping[str, Fact]) -> tuple[Matrix, ...]:
    """The matrices of a block whose data type a checkpoint may choose; routers stay in 16 bit.

    Args:
        facts: of the decoder.
    """
    of = Sizes(block, facts)
    gated = of("ffn_input_matrices", 2) == 2
    match block.kind:
        case "attention":
            own = tuple(matrix for matrix in _ATTENTION if matrix.key != "v" or not of("values_are_keys", 0))
            return own + _HEAD_GATE if of("head_gate", 0) else own
        case "latent_attention":
            plain = _LATENT if of.has("q_lora_rank") else _LATENT_DIRECT
            return (*plain, *(_INDEXER if of.has("indexer") else ()))
        case "compressed_attention":
            more = _COMPRESSED_INDEXER if of.has("indexer") else ()
            return (*_COMPRESSED, *(_COMPRESSOR if of.has("every") else ()), *more)
        case "gated_delta":
            return _GATED_DELTA
        case "delta":
            return _DELTA
        case "mamba":
            return _MAMBA
        case "mamba2":
            return _MAMBA2
        case "ffn":
            return _FFN if gated else _FFN[1:]
        case "recorded":
            return tuple(matrix for step in block.steps for matrix in _recorded(step, facts))
        case "moe":
            routed, shared = (_BESIDE, _DENSE) if of.has("branch_norms") else (_ROUTED, _SHARED)
            first = 0 if gated else 1
            return (
                *routed[first:],
                *(shared[first:] if of.has("shared_expert_size") else ()),
                *(_LATENTS if of.has("latent_size") else ()),
            )
