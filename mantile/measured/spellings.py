"""Names that published tables give to models, accelerators, frameworks and data types, as ours."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.errors import InputError, unknown
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Accelerator, load_library

_FRAMEWORKS = {
    "trt": "trtllm",
    "trt-llm": "trtllm",
    "tensorrt-llm": "trtllm",
    "dynamo-trt": "trtllm",
    "dynamo-trtllm": "trtllm",
    "dynamo-sglang": "sglang",
    "dynamo-vllm": "vllm",
    "exo 1.0": "exo",
    "llama.cpp/lm studio": "llama.cpp",
    "llama.cpp (wsl2)": "llama.cpp",
}
_TUNING = re.compile(r"-(instruct|it|chat|hf|fp8|fp4|nvfp4|mxfp4|bf16|preview|dynamic|v2|0528|turbo)$")
_SAME_SHAPES = {
    "llama-3-8b": "llama-3.1-8b",
    "llama-3-70b": "llama-3.1-70b",
    "qwen2.5-coder-7b": "qwen2.5-7b",
}


def framework_id(name: Any) -> str:
    """Our id of a framework; a name that is not known here is left as it is, in lower case."""
    spelling = str(name).strip().lower()
    return "vllm" if spelling.startswith("vllm") else _FRAMEWORKS.get(spelling, spelling)


@cache
def model_id(name: str) -> tuple[str, str]:
    """Our id of a model, and what that assumes; no assumption where the name is the id.

    Raises:
        InputError: for a model that is not in models/.
    """
    bare = name.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    while (shorter := _TUNING.sub("", bare)) != bare:
        bare = shorter
    if bare in model_ids():
        return bare, "" if bare == name else f"{name} is {bare}"
    if bare in _SAME_SHAPES:
        return _SAME_SHAPES[bare], f"{name} has the shapes of {_SAME_SHAPES[bare]}"
    raise unknown("model", name, model_ids())


@cache
def architecture_of(model: str) -> Architecture:
    """The architecture of one of our models."""
    return load_model(model).architecture


@cache
def find_accelerator(name: str) -> Accelerator:
    """An accelerator by one of the names it goes by: b200_sxm, gb200, RTX 4090, M2 Ultra 76-Core GPU 192GB.

    Raises:
        InputError: for one that is not in the library.
    """
    library = {accelerator.id: accelerator for accelerator in load_library().accelerators}
    lower = name.lower()
    spelling = lower.replace("\u2011", "-").replace("_", "-")
    spelling = re.sub(r"\b\d+(-core gpu|c\b|gb\b)", "", spelling)
    spelling = re.sub(r"\b(nvidia|amd|apple|geforce|hbm3|blackwell|radeon)\b", "", spelling)
    bare = "-".join(re.sub(r"\([^)]*\)", "", spelling).split())
    candidates = [bare, f"{bare}-sxm", f"{bare}-nvl72", f"rtx-{bare}", f"{bare}-bw", f"{bare}-80gb-sxm"]
    memory = re.search(r"(\d+) ?gb", lower)
    if memory and bare.startswith("a100"):
        form_factor = bare.removeprefix("a100").strip("-") or "sxm"
        candidates.insert(0, f"a100-{memory.group(1)}gb-{form_factor}")
    for candidate in candidates:
        if candidate in library:
            return library[candidate]
    raise unknown("accelerator", name, library)


def weight_formats(
    model: str, accelerator: Accelerator, precision: str, experts: str, notes: list[str]
) -> dict[str, str]:
    """Data types of the weights behind the one word that a table of serving runs has for the precision.

    Args:
        precision: bf16, fp16, fp8 or fp4.
        experts: what the table says of the experts' weights; may be empty.
        notes: gets what that assumes.

    Raises:
        InputError: for another precision.
    """
    architecture = architecture_of(model)
    mixture = bool(architecture.value("experts"))
    match precision:
        case "bf16" | "fp16":
            return {"weights_dtype": precision}
        case "fp8":
            by_block = mixture or "block" in experts
            if by_block and "block" not in experts:
                notes.append(
                    "fp8 of a mixture-of-experts model: scaled by block, as its publisher releases it"
                )
            return {"weights_dtype": "fp8-block" if by_block else "fp8"}
        case "fp4" if architecture.choices["weights_dtype"].value == "mxfp4":
            return {}
        case "fp4":
            kind = "mxfp4" if accelerator.vendor == "AMD" else "nvfp4"
            notes.append(f"fp4 is {kind}" + (", attention stays bf16" if mixture else ""))
            return {"weights_dtype": kind} | ({"attention_dtype": "bf16"} if mixture else {})
    raise InputError(f"precision is {precision!r}; expected bf16, fp16, fp8 or fp4")


def cache_format(spelling: Any, notes: list[str]) -> str:
    """Data type of the KV cache, from a column that often only guesses it.

    Args:
        notes: gets what that assumes.
    """
    text = str(spelling or "")
    if "fp8" in text:
        if text != "fp8":
            notes.append("KV cache in fp8: likely, not stated")
        return "fp8"
    if text not in ("bf16", "fp16"):
        notes.append("KV cache in bf16: not stated")
    return "bf16"


def quantised_formats(model: str, quantisation: str) -> dict[str, str]:
    """Data types of a quantised file of weights by its name, such as Q4_K_M; embedding and head are quantised
    as well."""
    if quantisation == "MXFP4":
        return (
            {"attention_dtype": "q8_0", "head_dtype": "q8_0"}
            if architecture_of(model).choices["weights_dtype"].value == "mxfp4"
            else {"weights_dtype": "mxfp4"}
        )
    if quantisation in ("F16", "FP16"):
        return {"weights_dtype": "fp16", "head_dtype": "fp16", "activation_dtype": "fp16"}
    weights = {"4BIT": "int4-g64"}.get(quantisation, quantisation.lower())
    head = {"q4_0": "q6_k", "q4_k_m": "q6_k", "nvfp4": "bf16", "int4-g64": "bf16"}.get(weights, weights)
    return {"weights_dtype": weights, "head_dtype": head}
