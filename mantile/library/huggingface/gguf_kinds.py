"""What an architecture of llama.cpp is as a config: fields of its header, and names of its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mantile.library.errors import InputError
from mantile.library.gguf_header import GgufHeader

FIELDS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
}
OF_EXPERTS = {
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
_LATENT = {
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_b": "self_attn.kv_b_proj",
    "attn_k_b": "self_attn.kv_b_proj",  # newer files keep the two halves apart
    "attn_v_b": "self_attn.kv_b_proj",
}
_SHARED = {f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")}
_SIGMOID = 2  # of expert_gating_func
_WITHOUT_NORM = 128  # experts of the Llama 4 whose queries and keys are not normed


def _as_it_is(header: GgufHeader, data: dict[str, Any]) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Kind:
    """What an architecture of llama.cpp is as a config.

    Args:
        model_type: with dense FFNs; `of_experts` with experts, whose number stands in `count`.
        more: fields of the class that the header does not state.
        biases: names of the biases that the class has, as an expression.
        modules: matrices that hold more than their name says, or that other architectures have not.
        others: names of tensors that are no matrices, or stay in 16 bit, as an expression.
        fields, of_experts_fields: names of a config by those of the header.
        read: names of the header that `follows` reads.
        follows: fields of the config that follow from several of the header; given the config so far.
    """

    model_type: str
    of_experts: str = ""
    count: str = "num_experts"
    more: Mapping[str, Any] = field(default_factory=dict)
    biases: str = ""
    modules: Mapping[str, str] = field(default_factory=dict)
    others: str = ""
    fields: Mapping[str, str] = field(default_factory=lambda: FIELDS)
    of_experts_fields: Mapping[str, str] = field(default_factory=lambda: OF_EXPERTS)
    read: tuple[str, ...] = ()
    follows: Callable[[GgufHeader, dict[str, Any]], dict[str, Any]] = _as_it_is


def _deepseek(header: GgufHeader, data: dict[str, Any]) -> dict[str, Any]:
    """Widths of latent attention, and which of the two classes it is.

    Newer files state the width of a head under names of their own, beside that of what attention keeps.

    Raises:
        InputError: for prediction layers, whose tensors stand among those of the layers.
    """

    def stated(name: str) -> Any:
        return header.fields.get(f"deepseek2.{name}")

    if stated("nextn_predict_layers"):
        raise InputError(
            f"{header.name}: field deepseek2.nextn_predict_layers: prediction layers are not read from a "
            "GGUF file; give the config.json of the model, with --weights-dtype"
        )
    key = stated("attention.key_length_mla") or stated("attention.key_length")
    value = stated("attention.value_length_mla") or stated("attention.value_length")
    turned = data.get("qk_rope_head_dim")
    balanced = any(".exp_probs_b." in tensor.name for tensor in header.tensors)
    is_third = balanced or stated("expert_gating_func") == _SIGMOID
    widths = {"q_lora_rank": data.get("q_lora_rank")}
    if isinstance(key, int) and isinstance(turned, int) and key > turned:
        widths["qk_nope_head_dim"] = key - turned
    if value is not None:
        widths["v_head_dim"] = value
    return widths | {"model_type": "deepseek_v3" if is_third else "deepseek_v2"}


def _llama4(header: GgufHeader, data: dict[str, Any]) -> dict[str, Any]:
    """Whether queries and keys are normed, which no tensor shows.

    Raises:
        InputError: for a file whose layers all look back without limit.
    """
    if header.fields.get("llama4.attention.sliding_window") == 0:
        raise InputError(
            f"{header.name}: field llama4.attention.sliding_window: 0, attention without chunks, is not read "
            "from a GGUF file; give the config.json of the model, with --weights-dtype"
        )
    return {"use_qk_norm": data.get("num_local_experts") != _WITHOUT_NORM}


def _without(*names: str) -> dict[str, str]:
    return {key: name for key, name in FIELDS.items() if key not in names}


KINDS = {
    "llama": Kind("llama", "mixtral", "num_local_experts"),
    "llama4": Kind(
        "",
        "llama4_text",
        "num_local_experts",
        modules={name: module.replace("experts", "expert") for name, module in _SHARED.items()},
        fields=_without("attention.sliding_window")
        | {
            "feed_forward_length": "intermediate_size_mlp",
            "interleave_moe_layer_step": "interleave_moe_layer_step",
        },
        of_experts_fields=OF_EXPERTS | {"expert_feed_forward_length": "intermediate_size"},
        read=("attention.sliding_window",),
        follows=_llama4,
    ),
    "qwen2": Kind("qwen2", more={"use_sliding_window": False}, biases=r"blk\.\d+\.attn_[qkv]\.bias"),
    "qwen3": Kind("qwen3", more={"use_sliding_window": False}),
    "qwen3moe": Kind("", "qwen3_moe", more={"use_sliding_window": False}),
    "phi3": Kind("phi3", modules={"ffn_up": "mlp.gate_up_proj"}),
    "gemma": Kind("gemma"),
    "gemma2": Kind("gemma2"),
    "gemma3": Kind(
        "gemma3_text", fields=FIELDS | {"attention.sliding_window_pattern": "sliding_window_pattern"}
    ),
    "olmo2": Kind("olmo2"),
    "deepseek2": Kind(
        "",
        "deepseek_v3",
        "n_routed_experts",
        modules=_LATENT | _SHARED,
        biases=r"blk\.\d+\.exp_probs_b\.bias",
        others=r"blk\.\d+\.(?:attn_q_a_norm|attn_kv_a_norm)\.weight",
        fields=_without("attention.head_count_kv", "attention.key_length", "attention.sliding_window")
        | {
            "leading_dense_block_count": "first_k_dense_replace",
            "attention.q_lora_rank": "q_lora_rank",
            "attention.kv_lora_rank": "kv_lora_rank",
            "rope.dimension_count": "qk_rope_head_dim",
            "expert_shared_count": "n_shared_experts",
        },
        read=(
            "attention.head_count_kv",
            "attention.key_length",
            "attention.value_length",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "expert_gating_func",
            "nextn_predict_layers",
        ),
        follows=_deepseek,
    ),
    "gpt-oss": Kind(
        "",
        "gpt_oss",
        "num_local_experts",
        biases=r"blk\.\d+\.(?:attn_[qkv]|attn_output|ffn_gate_inp|ffn_(?:gate|up|down)_exps)\.bias",
        others=r"blk\.\d+\.attn_sinks\.weight",
        fields=_without("feed_forward_length"),
        of_experts_fields=OF_EXPERTS | {"expert_feed_forward_length": "intermediate_size"},
        read=("feed_forward_length",),
    ),
}
"""By general.architecture."""
