"""The registry of model types: which reader takes a config, what it nests, what its tensors are called.

A new family is entered here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.errors import InputError
from mantile.library.huggingface import (
    classic,
    compressed,
    deepseek,
    dense,
    gemma,
    linear_attention,
    llama4,
    mixture,
    state_space,
    tensor_names,
    text_defaults,
    towers,
    windowed,
)
from mantile.library.huggingface.config import Config, Uncovered
from mantile.library.huggingface.nesting import VisionFamily
from mantile.library.huggingface.tensor_names import TensorNames


@dataclass(frozen=True)
class DecoderFamily:
    """A model type that is a decoder, alone or in the text_config of a vision-language model.

    Args:
        read: its config to an architecture.
        tensors: what its checkpoints call their tensors.
        layouts: names of checkpoints that are laid out otherwise, by the key that the reader states as
            `tensor_names`.
    """

    read: Callable[[Config], Architecture]
    tensors: TensorNames = field(default_factory=TensorNames)
    layouts: Mapping[str, TensorNames] = field(default_factory=dict)


_GPT = TensorNames(tensor_names.GPT2, top="transformer.", layers="h.{}.", fused_qkv=True)
_FALCON = replace(_GPT, table=tensor_names.FALCON)

RECORDED = "recorded"
FAMILIES: dict[str, DecoderFamily | VisionFamily] = {
    # dense, all layers alike
    "llama": DecoderFamily(dense.llama),
    "mistral": DecoderFamily(dense.mistral),
    "ministral": DecoderFamily(dense.mistral),
    "ministral3": DecoderFamily(dense.ministral3),
    "qwen2": DecoderFamily(dense.qwen2),
    "qwen3": DecoderFamily(dense.qwen3),
    "starcoder2": DecoderFamily(dense.starcoder2, TensorNames(tensor_names.STARCODER2)),
    "phi3": DecoderFamily(dense.phi3, TensorNames(fused_qkv=True, fused_gate_up=True)),
    "cohere": DecoderFamily(dense.cohere),
    "olmo2": DecoderFamily(dense.olmo2),
    "glm": DecoderFamily(dense.glm, TensorNames(fused_gate_up=True)),
    "glm4": DecoderFamily(dense.glm4, TensorNames(tensor_names.GLM4, fused_gate_up=True)),
    "granite": DecoderFamily(dense.granite),
    "nemotron": DecoderFamily(dense.nemotron),
    "stablelm": DecoderFamily(dense.stablelm, TensorNames(tensor_names.STABLELM)),
    "qwen2_vl_text": DecoderFamily(dense.qwen2),
    "qwen2_5_vl_text": DecoderFamily(dense.qwen2),
    "qwen3_vl_text": DecoderFamily(dense.qwen3),
    # dense, with biases, LayerNorm and a plain FFN
    "falcon": DecoderFamily(
        classic.falcon,
        _FALCON,
        layouts={"falcon_grouped": replace(_FALCON, table=tensor_names.FALCON_GROUPED)},
    ),
    "gpt2": DecoderFamily(classic.gpt2, replace(_GPT, transposed=True)),
    "gptj": DecoderFamily(classic.gptj, replace(_GPT, table=tensor_names.GPTJ, fused_qkv=False)),
    "gpt_neox": DecoderFamily(
        classic.gpt_neox, TensorNames(tensor_names.NEOX, top="gpt_neox.", fused_qkv=True)
    ),
    "gpt_bigcode": DecoderFamily(classic.gpt_bigcode, _GPT),
    "phi": DecoderFamily(classic.phi, TensorNames(tensor_names.PHI)),
    # windows or chunks in some layers
    "gemma": DecoderFamily(gemma.gemma),
    "gemma2": DecoderFamily(gemma.gemma2, TensorNames(tensor_names.SANDWICH)),
    "gemma3_text": DecoderFamily(gemma.gemma3, TensorNames(tensor_names.SANDWICH)),
    "gemma4_text": DecoderFamily(gemma.gemma4, TensorNames(tensor_names.GEMMA4, experts="output first")),
    "cohere2": DecoderFamily(windowed.cohere2),
    "olmo3": DecoderFamily(windowed.olmo3),
    "gpt_oss": DecoderFamily(windowed.gpt_oss, TensorNames(tensor_names.GPT_OSS, experts="input first")),
    "mimo_v2_flash": DecoderFamily(windowed.mimo_v2_flash, TensorNames(tensor_names.MIMO)),
    "step3p5": DecoderFamily(
        windowed.step3p5,
        TensorNames(tensor_names.STEP, experts="output first", prediction=tensor_names.STEP_PREDICTION),
    ),
    "llama4_text": DecoderFamily(llama4.llama4, TensorNames(tensor_names.LLAMA4, experts="input first")),
    # experts over ordinary attention
    "mixtral": DecoderFamily(mixture.mixtral, TensorNames(tensor_names.MIXTRAL)),
    "phimoe": DecoderFamily(mixture.phimoe, TensorNames(tensor_names.MIXTRAL)),
    "qwen2_moe": DecoderFamily(mixture.qwen2_moe, TensorNames(tensor_names.QWEN_MOE)),
    "qwen3_moe": DecoderFamily(mixture.qwen3_moe),
    "qwen3_vl_moe_text": DecoderFamily(mixture.qwen3_moe, TensorNames(experts="input first")),
    "glm4_moe": DecoderFamily(mixture.glm4_moe),
    "glm4v_moe_text": DecoderFamily(mixture.glm4v_moe),
    "minimax_m2": DecoderFamily(mixture.minimax_m2, TensorNames(tensor_names.MIXTRAL)),
    # latent attention
    "deepseek_v2": DecoderFamily(deepseek.deepseek_v2),
    "deepseek_v3": DecoderFamily(deepseek.deepseek_v3),
    "kimi_k2": DecoderFamily(deepseek.deepseek_v3),
    "deepseek_v32": DecoderFamily(deepseek.deepseek_v32),
    "deepseek_v4": DecoderFamily(
        compressed.deepseek_v4,
        TensorNames(tensor_names.DEEPSEEK_V4, top="", prediction=tensor_names.DEEPSEEK_V4_PREDICTION),
    ),
    "glm_moe_dsa": DecoderFamily(
        deepseek.glm_moe_dsa, TensorNames(prediction=tensor_names.GLM_DSA_PREDICTION)
    ),
    "glm4_moe_lite": DecoderFamily(deepseek.glm4_moe_lite),
    # recurrent mixers
    "kimi_linear": DecoderFamily(linear_attention.kimi_linear, TensorNames(tensor_names.KIMI_LINEAR)),
    "qwen3_next": DecoderFamily(
        linear_attention.qwen3_next,
        TensorNames(tensor_names.QWEN_HYBRID, fused_delta=True, prediction=tensor_names.QWEN_PREDICTION),
    ),
    "qwen3_5_text": DecoderFamily(
        linear_attention.qwen3_5, TensorNames(tensor_names.DELTA, prediction=tensor_names.QWEN_PREDICTION)
    ),
    "qwen3_5_moe_text": DecoderFamily(
        linear_attention.qwen3_5_moe,
        TensorNames(tensor_names.QWEN_HYBRID, prediction=tensor_names.QWEN_PREDICTION),
    ),
    "nemotron_h": DecoderFamily(
        state_space.nemotron_h,
        TensorNames(tensor_names.NEMOTRON, top="backbone.", prediction=tensor_names.NEMOTRON_PREDICTION),
    ),
    "mamba2": DecoderFamily(state_space.mamba2, TensorNames(tensor_names.MAMBA2, top="backbone.")),
    "jamba": DecoderFamily(state_space.jamba, TensorNames(tensor_names.JAMBA)),
    # a decoder beside a vision tower
    "llava": VisionFamily(
        decoders={
            "llama": text_defaults.LLAMA,
            "mistral": text_defaults.MISTRAL,
            "qwen2": text_defaults.QWEN2,
            "qwen3": text_defaults.QWEN2,
        },
        tower=towers.llava,
        vision_type="clip_vision_model",
        top="language_model.model.",
        head_prefix="language_model.",
        text_ties=True,
    ),
    "mistral3": VisionFamily(
        decoders={"mistral": text_defaults.MISTRAL, "ministral3": text_defaults.MINISTRAL3},
        tower=towers.mistral3,
        vision_type="pixtral",
        top="language_model.model.",
        head_prefix="language_model.",
        tied=True,
    ),
    "gemma3": VisionFamily(
        decoders={"gemma3_text": text_defaults.GEMMA3},
        tower=towers.gemma3,
        vision_type="siglip_vision_model",
        top="language_model.model.",
        head_prefix="language_model.",
        tied=True,
    ),
    "gemma4": VisionFamily(
        decoders={"gemma4_text": text_defaults.GEMMA4},
        tower=towers.gemma4,
        vision_type="gemma4_vision",
        top="model.language_model.",
        tied=True,
    ),
    "llama4": VisionFamily(
        decoders={"llama4_text": text_defaults.LLAMA4},
        tower=towers.llama4,
        vision_type="llama4_vision_model",
        top="language_model.model.",
        head_prefix="language_model.",
        default_tower=True,
    ),
    "qwen2_vl": VisionFamily(
        decoders={"qwen2_vl_text": text_defaults.QWEN2_VL},
        tower=towers.qwen2_vl,
        vision_type="qwen2_vl_vision",
        flat=True,
        text_ties=True,
    ),
    "qwen2_5_vl": VisionFamily(
        decoders={"qwen2_5_vl_text": text_defaults.QWEN2_VL},
        tower=towers.qwen2_5_vl,
        vision_type="qwen2_5_vl_vision",
        flat=True,
        text_ties=True,
    ),
    "qwen3_vl": VisionFamily(
        decoders={"qwen3_vl_text": text_defaults.QWEN3_VL},
        tower=towers.qwen3_vl,
        vision_type="qwen3_vl_vision",
        top="model.language_model.",
    ),
    "qwen3_vl_moe": VisionFamily(
        decoders={"qwen3_vl_moe_text": text_defaults.QWEN3_VL_MOE},
        tower=towers.qwen3_vl,
        vision_type="qwen3_vl_moe_vision",
        top="model.language_model.",
    ),
    "qwen3_5": VisionFamily(
        decoders={"qwen3_5_text": text_defaults.QWEN3_5},
        tower=towers.qwen3_5,
        vision_type="qwen3_5_vision",
        top="model.language_model.",
    ),
    "qwen3_5_moe": VisionFamily(
        decoders={"qwen3_5_moe_text": text_defaults.QWEN3_5_MOE},
        tower=towers.qwen3_5,
        vision_type="qwen3_5_moe_vision",
        top="model.language_model.",
    ),
    "glm4v_moe": VisionFamily(
        decoders={"glm4v_moe_text": text_defaults.GLM4V_MOE},
        tower=towers.glm4v,
        vision_type="glm4v_moe_vision",
        top="model.language_model.",
        text_ties=True,
    ),
    "kimi_k25": VisionFamily(
        decoders={"deepseek_v3": text_defaults.DEEPSEEK_V3, "kimi_k2": text_defaults.DEEPSEEK_V3},
        tower=towers.kimi_k25,
        vision_type="kimi_k25_vision",
        top="language_model.model.",
        head_prefix="language_model.",
        tied=True,
    ),
}


def meant(model_type: str) -> str:
    """The model types of ours that come near to one that nobody has, as a hint; empty where none does."""
    close = get_close_matches(model_type.lower(), FAMILIES, n=2, cutoff=0.8)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def type_of_class(architectures: Any) -> str:
    """The model type of ours whose class a config names, where it states no model type; empty for none."""
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(named, str):
        return ""
    asked = named.partition("For")[0].lower()
    return next((name for name in FAMILIES if name.replace("_", "") == asked), "")


def read_architecture(config: Config) -> Architecture:
    """A config to an architecture, by its model type.

    Raises:
        InputError: if we do not have the model type, or a field is missing or wrong.
    """
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise Uncovered(
            f"{config.name}: {config.path}model_type {config.model_type!r:.80} is not supported; "
            f"supported: {', '.join(FAMILIES)}"
        )
    return family.read(config, read_architecture) if isinstance(family, VisionFamily) else family.read(config)


def tensor_names_of(architecture: Architecture) -> TensorNames:
    """What checkpoints of an architecture call their tensors.

    Raises:
        InputError: if no family has names under the key that the architecture states.
    """
    key = architecture.choices["tensor_names"].value
    if key == RECORDED:
        return TensorNames()  # the steps name their tensors themselves
    names: dict[str, TensorNames] = {}
    for model_type, family in FAMILIES.items():
        if isinstance(family, DecoderFamily):
            names |= {model_type: family.tensors, **family.layouts}
    if key not in names:
        raise InputError(f"choices.tensor_names: expected one of {', '.join(names)}, found {key!r:.60}")
    outer = FAMILIES.get(architecture.model_type)
    if not isinstance(outer, VisionFamily):
        return names[key]
    return replace(names[key], top=outer.top, head_prefix=outer.head_prefix)
