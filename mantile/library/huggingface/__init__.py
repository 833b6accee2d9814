"""A HuggingFace config.json to our architecture facts, without torch and without network.

A missing key is not null, defaults differ by model class, and some biases are implied by the class and stated
nowhere: each family states its own. What no family covers is refused by name, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.documents import parse_json, read_text
from mantile.library.errors import InputError
from mantile.library.huggingface import classic, compressed, dense, hybrid, latent, mixture, windowed
from mantile.library.huggingface.reading import Config
from mantile.library.huggingface.vision import NESTINGS, nested

FAMILIES: dict[str, Callable[[Config], Architecture]] = {
    "llama": dense.llama,
    "mistral": dense.mistral,
    "ministral": dense.mistral,
    "ministral3": dense.ministral3,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "starcoder2": dense.starcoder2,
    "phi3": dense.phi3,
    "cohere": dense.cohere,
    "olmo2": dense.olmo2,
    "glm": dense.glm,
    "glm4": dense.glm4,
    "granite": dense.granite,
    "nemotron": dense.nemotron,
    "stablelm": dense.stablelm,
    "falcon": classic.falcon,
    "gpt2": classic.gpt2,
    "gptj": classic.gptj,
    "gpt_neox": classic.gpt_neox,
    "gpt_bigcode": classic.gpt_bigcode,
    "phi": classic.phi,
    "gemma": windowed.gemma,
    "gemma2": windowed.gemma2,
    "gemma3_text": windowed.gemma3,
    "gemma4_text": windowed.gemma4,
    "cohere2": windowed.cohere2,
    "olmo3": windowed.olmo3,
    "gpt_oss": windowed.gpt_oss,
    "mimo_v2_flash": windowed.mimo_v2_flash,
    "llama4_text": windowed.llama4,
    "mixtral": mixture.mixtral,
    "phimoe": mixture.phimoe,
    "qwen2_moe": mixture.qwen2_moe,
    "qwen3_moe": mixture.qwen3_moe,
    "qwen3_vl_moe_text": mixture.qwen3_moe,
    "glm4_moe": mixture.glm4_moe,
    "glm4v_moe_text": mixture.glm4v_moe,
    "minimax_m2": mixture.minimax_m2,
    "deepseek_v2": latent.deepseek_v2,
    "deepseek_v3": latent.deepseek_v3,
    "kimi_k2": latent.deepseek_v3,
    "deepseek_v32": latent.deepseek_v32,
    "deepseek_v4": compressed.deepseek_v4,
    "glm_moe_dsa": latent.glm_moe_dsa,
    "glm4_moe_lite": latent.glm4_moe_lite,
    "kimi_linear": hybrid.kimi_linear,
    "qwen3_next": hybrid.qwen3_next,
    "qwen3_5_text": hybrid.qwen3_5,
    "qwen3_5_moe_text": hybrid.qwen3_5_moe,
    "nemotron_h": hybrid.nemotron_h,
    "mamba2": hybrid.mamba2,
    "jamba": hybrid.jamba,
    "qwen2_vl_text": dense.qwen2,
    "qwen2_5_vl_text": dense.qwen2,
    "qwen3_vl_text": dense.qwen3,
}
SIDECAR = "hf_quant_config.json"


def parse_config(data: Any, name: str, sidecar: Any = None) -> Architecture:
    """A config.json's content to an architecture.

    Args:
        data: the parsed JSON.
        name: stands for the file in errors.
        sidecar: the parsed hf_quant_config.json beside it, if there is one.

    Raises:
        InputError: for an unsupported model_type, or a field that is missing or wrong, naming it.
    """
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected a JSON object, found {type(data).__name__}")
    model_type = data.get("model_type")
    if not isinstance(model_type, str):
        raise InputError(
            f"{name}: field model_type is missing or not a text; supported: {', '.join((*FAMILIES, *NESTINGS))}"
        )
    if sidecar is not None and not isinstance(sidecar, dict):
        raise InputError(
            f"{name}: {SIDECAR} beside it: expected a JSON object, found {type(sidecar).__name__}"
        )
    config = Config(name, model_type, data, sidecar=sidecar)
    return nested(config, decoder) if model_type in NESTINGS else decoder(config)


def decoder(config: Config) -> Architecture:
    """A config, or the part of one, of a decoder to an architecture, by its model type."""
    if config.model_type not in FAMILIES:
        raise InputError(
            f"{config.name}: {config.path}model_type {config.model_type!r:.80} is not supported; "
            f"supported: {', '.join((*FAMILIES, *NESTINGS))}"
        )
    return FAMILIES[config.model_type](config)


def read_config(path: Path) -> Architecture:
    """A config.json, or the folder it lies in, to an architecture; a quantisation sidecar beside it is read too."""
    file = path / "config.json" if path.is_dir() else path
    beside = file.with_name(SIDECAR)
    sidecar = (
        parse_json(read_text(beside), str(beside))
        if file.name == "config.json" and beside.is_file()
        else None
    )
    return parse_config(parse_json(read_text(file), str(file)), str(file), sidecar)
