"""The params.json of Mistral's own checkpoints as a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.library.errors import InputError
from mantile.library.huggingface.own_words import OwnWords

FILE = "params.json"
_FIELDS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
    "activation": "hidden_act",
    "tied_embeddings": "tie_word_embeddings",
}
_OF_EXPERTS = {"num_experts": "num_local_experts", "num_experts_per_tok": "num_experts_per_tok"}
_OUTSIDE = ("tie_word_embeddings", "quantization", "quantization_config")
"""Fields of the whole, where a vision tower stands beside the decoder."""
WORDS = OwnWords(
    {name: own for own, name in _FIELDS.items()}
    | {
        "num_local_experts": "moe.num_experts",
        "num_experts_per_tok": "moe.num_experts_per_tok",
        "vision_config": "vision_encoder",
    }
)
"""Fields of a config.json as params.json calls them."""


def is_params(fields: Mapping[str, Any]) -> bool:
    """Whether a file is in the form of Mistral's params.json; early files of MLX are too.

    Example:
        is_params({"dim": 4096, "n_layers": 32})    # True
    """
    return "dim" in fields and "n_layers" in fields


def config_of_params(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of a config.json that mean the same.

    Args:
        name: of the file, for errors.

    Raises:
        InputError: for a form that is not read, with a way out.
    """
    _require_read(params, name)
    data = {_FIELDS.get(field, field): value for field, value in params.items()}
    data.pop("moe", None)
    data |= {
        "model_type": "mixtral" if params.get("moe") else "mistral",
        "tie_word_embeddings": bool(params.get("tied_embeddings")),
        "num_key_value_heads": params.get("n_kv_heads", params.get("n_heads")),
        **_window(params, name),
        **_experts(params, name),
        **_quantisation(params),
    }
    return _with_tower(data, name) if params.get("vision_encoder") else data


def _require_read(params: Mapping[str, Any], name: str) -> None:
    """Refuse what is no plain decoder, with or without experts or a tower."""
    if "hidden_dim" not in params or params.get("model_type") not in (None, "transformer", "mistral"):
        raise InputError(
            f"{name}: in the form of Mistral's {FILE}, but field "
            + ("model_type is another" if "hidden_dim" in params else "hidden_dim is missing")
            + ": expected a transformer of Mistral; of other models give the config.json"
        )
    moe = params.get("moe") or {}
    others = {
        "multimodal": params.get("multimodal"),
        "kv_lora_rank": params.get("kv_lora_rank"),
        "moe.expert_hidden_dim": isinstance(moe, dict) and moe.get("expert_hidden_dim"),
    }
    field = next((field for field, value in others.items() if value), None)
    if field is not None:
        raise InputError(
            f"{name}: field {field} is not read from a {FILE}: give the config.json of the model"
        )


def _window(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The sliding window of all layers, or of those for which a list that is repeated states one."""
    stated = params.get("sliding_window")
    if not isinstance(stated, list):
        return {"sliding_window": stated}
    lengths, layers = {length for length in stated if length is not None}, params["n_layers"]
    if len(lengths) > 1 or not stated or not isinstance(layers, int) or layers % len(stated):
        raise InputError(
            f"{name}: field sliding_window: expected a length or null, or a list of them with one length, "
            f"which goes into the {layers!r:.20} layers evenly"
        )
    kinds = ["full_attention" if length is None else "sliding_attention" for length in stated]
    return {"sliding_window": next(iter(lengths), None), "layer_types": kinds * (layers // len(stated))}


def _experts(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    moe = params.get("moe") or {}
    if not isinstance(moe, dict):
        raise InputError(f"{name}: field moe: expected a mapping of fields, found {moe!r:.60}")
    return {_OF_EXPERTS.get(field, f"moe.{field}"): value for field, value in moe.items()}


def _quantisation(params: Mapping[str, Any]) -> dict[str, Any]:
    """fp8 in Mistral's words as a quantization_config; other forms stand as they are."""
    stated = params.get("quantization")
    if not isinstance(stated, dict) or stated.get("qformat_weight") != "fp8_e4m3":
        return {}
    scheme = "dynamic" if stated.get("qscheme_act") == "NO_SCALES" else "static"
    return {"quantization": {"quant_method": "fp8", "activation_scheme": scheme}}


def _with_tower(data: dict[str, Any], name: str) -> dict[str, Any]:
    """A decoder beside the tower of vision_encoder, as Mistral Small 3.1 and later have it."""
    tower = data.pop("vision_encoder")
    expected = {"mm_projector_id": "patch_merge", "add_pre_mm_projector_layer_norm": True}
    for field, value in expected.items():
        if not isinstance(tower, dict) or tower.get(field) != value:
            raise InputError(
                f"{name}: field vision_encoder.{field}: expected {value!r}; of other towers give the "
                "config.json of the model"
            )
    outside = {field: data.pop(field) for field in _OUTSIDE if field in data}
    projector = (*expected, "adapter_bias", "spatial_merge_size")
    kept = {field: value for field, value in tower.items() if field not in projector}
    return outside | {
        "model_type": "mistral3",
        "text_config": data,
        "vision_config": kept | {"model_type": "pixtral"},
        "multimodal_projector_bias": bool(tower.get("adapter_bias")),
        "spatial_merge_size": tower.get("spatial_merge_size", 2),
    }
