"""Names that published tables give to models, accelerators, frameworks and data types, as ours."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.errors import InputError, unknown
from mantile.library.ids import find_named, words
from mantile.library.models import ids_by_hub_id, load_model, model_ids
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
    "llama-cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
}
_VERSIONED = ("vllm", "sglang")
"""Frameworks whose names go on with a release in tables."""
_TUNING = re.compile(
    r"-(instruct|it|chat|hf|fp8|fp4|nvfp4|mxfp4|bf16|awq|gptq|int4|int8|w4a16|w8a8|gguf|preview|dynamic"
    r"|v2|v0\.1|0528|turbo|quantized(\.w\d+a\d+)?)$"
)
_BEYOND_ITS_CONTEXT = {"llama-3-8b": "llama-3.1-8b", "llama-3-70b": "llama-3.1-70b"}
"""Models that tables measure beyond their 8,192 tokens: those of their shapes with a longer context."""
_SAME_SHAPES = {
    "qwen2.5-coder-7b": "qwen2.5-7b",
    "minimax-m2": "minimax-m2.5",
}
_SHORT = {"dsr1": "deepseek-r1", "gptoss": "gpt-oss-120b"}
"""Short names of models in InferenceX."""


def framework_id(name: Any) -> str:
    """Our id of a framework; a name that is not known here is left as it is, in lower case.

    >>> framework_id("vLLM-v1"), framework_id("mori-sglang"), framework_id("b200-trt")
    ('vllm', 'sglang', 'trtllm')
    """
    spelling = str(name).strip().lower().replace("_", "-")
    behind = spelling.rpartition("-")[2]
    for known in _VERSIONED:
        if spelling.startswith(known) or behind == known:
            return known
    return _FRAMEWORKS.get(spelling) or _FRAMEWORKS.get(behind, spelling)


_RUNNER = re.compile(r"-(?:(trt|trtllm|vllm|sglang|atom)|nv[^-]*|amd[^-]*|docker)$")
"""What names of a benchmark's machines end in: the engine, or whose machine it is."""


def runner_engine(machine: str) -> str | None:
    """Our id of the engine in the name of a benchmark's machine; None where it names none.

    >>> runner_engine("b200-trt"), runner_engine("h100-sxm")
    ('trtllm', None)
    """
    found = _RUNNER.search(machine.lower())
    return framework_id(found.group(1)) if found and found.group(1) else None


@cache
def model_id(name: str) -> tuple[str, str]:
    """Our id of a model, and what that assumes; no assumption where the name is the id.

    Raises:
        InputError: for a model that is not in models/.
    """
    plain = name.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    beyond = _BEYOND_ITS_CONTEXT.get(plain.removesuffix("-instruct"))
    if beyond is not None:
        return beyond, f"{name} has the shapes of {beyond}"
    if name in ids_by_hub_id():
        return ids_by_hub_id()[name], f"{name} is {ids_by_hub_id()[name]}"
    bare = "-".join(name.rsplit("/", 1)[-1].lower().split()).removeprefix("meta-")
    while bare not in model_ids() and (shorter := _TUNING.sub("", bare)) != bare:
        bare = shorter
    if bare in model_ids():
        return bare, "" if bare == name else f"{name} is {bare}"
    spelt = next((own for own in model_ids() if words(own) == words(bare)), None)
    if spelt is not None:
        return spelt, f"{name} is {spelt}"
    if bare in _SHORT:
        return _SHORT[bare], f"{name} is {_SHORT[bare]}"
    alike = _SAME_SHAPES.get(bare) or _ids_without_tuning().get(bare)
    if alike is not None:
        return alike, f"{name} has the shapes of {alike}"
    raise unknown("model", name, model_ids())


@cache
def _ids_without_tuning() -> dict[str, str]:
    """Our id of each model by its name without what does not change its shapes."""
    names: dict[str, str] = {}
    for hub_id, identifier in (*ids_by_hub_id().items(), *((known, known) for known in model_ids())):
        bare = hub_id.rsplit("/", 1)[-1].lower().removeprefix("meta-")
        while (shorter := _TUNING.sub("", bare)) != bare:
            bare = shorter
        names.setdefault(bare, identifier)
    return names


@cache
def architecture_of(model: str) -> Architecture:
    """The architecture of one of our models."""
    return load_model(model).architecture


_BESIDE = (
    "nvidia|amd|instinct|apple|geforce|radeon|hbm3|blackwell|oam|ac|generation|(server|workstation)-edition"
    "|(server|workstation) edition"
)
"""Words of drivers and tables beside the name of a chip: who makes it, its memory, its form."""


_GRAPHICS = {"8060s": "ryzen-ai-max-395"}
"""Chips by the graphics in them, as drivers have it."""


@cache
def find_accelerator(name: str) -> Accelerator:
    """An accelerator by one of the names it goes by: b200_sxm, gb200, RTX 4090, M2 Ultra 76-Core GPU 192GB,
    NVIDIA-A100-SXM4-80GB as drivers and clusters have it, or as the command line takes it.

    Raises:
        InputError: for one that is not in the library.
    """
    library = {accelerator.id: accelerator for accelerator in load_library().accelerators}
    lower = name.lower()
    spelling = lower.replace("\u2011", "-").replace("_", "-")
    spelling = re.sub(r"\b\d+(-core gpu|c\b|gb\b)", "", spelling)
    spelling = re.sub(r"\bsxm\d\b", "sxm", spelling)
    spelling = re.sub(rf"\b({_BESIDE})\b", "", spelling)
    bare = "-".join(filter(None, re.split(r"[\s-]+", re.sub(r"\([^)]*\)", "", spelling))))
    candidates = [
        lower.replace(" ", "-"),
        bare,
        f"{bare}-sxm",
        f"{bare}-nvl72",
        f"rtx-{bare}",
        f"{bare}-bw",
        f"{bare}-80gb-sxm",
        _GRAPHICS.get(bare, bare),
    ]
    if _RUNNER.search(lower) and not library.keys() & {*candidates}:
        return find_accelerator(_RUNNER.sub("", lower))
    memory = re.search(r"(\d+) ?gb", lower)
    if memory and bare.startswith("a100"):
        form_factor = bare.removeprefix("a100").strip("-") or "sxm"
        candidates.insert(0, f"a100-{memory.group(1)}gb-{form_factor}")
    for candidate in candidates:
        if candidate in library:
            return library[candidate]
    return library[find_named("accelerator", name, {key: chip.name for key, chip in library.items()})]


def weight_formats(
    model: str, accelerator: Accelerator, framework: str, word: str, experts: str, notes: list[str]
) -> dict[str, str]:
    """Data types of the weights behind the one word that a table has for them.

    Args:
        framework: our id; files of llama.cpp have embedding and head quantised as well.
        word: bf16, fp8, int4, AWQ, w8a8, Q4_K_M, ...: a data type of the library or another name of one, in
            any spelling, with others beside it.
        experts: what the table says of the experts' weights; may be empty.
        notes: gets what that assumes.

    Raises:
        InputError: for a word that names no data type.
    """
    stored = architecture_of(model).choices["weights_dtype"].value
    mixture = bool(architecture_of(model).value("experts"))
    kind = _format_of(word)
    if kind == "fp8" and stored == "mxfp4":
        notes.append("fp8 of a model that is released in mxfp4: its weights as they are released")
        return {}
    by_block = stored == "fp8-block" or (mixture and framework != "trtllm")
    if kind == "fp8" and (by_block or "block" in experts):
        if "block" not in experts:
            notes.append("fp8 of a mixture-of-experts model: scaled by block, as its publisher releases it")
        return {"weights_dtype": "fp8-block"}
    if kind == "fp8" and mixture:
        notes.append("fp8 of a mixture-of-experts model with TensorRT-LLM: one scale per matrix")
    if kind == "fp4" and stored == "nvfp4":
        return {}  # the checkpoint's own
    if kind == "fp4" and stored != "mxfp4":
        kind = "mxfp4" if accelerator.vendor == "AMD" else "nvfp4"
        notes.append(f"fp4 is {kind}" + (", attention stays bf16" if mixture else ""))
        return {"weights_dtype": kind} | ({"attention_dtype": "bf16"} if mixture else {})
    if framework.startswith("llama.cpp") or kind in _WITH_HEAD:
        return _of_file(kind, stored)
    if kind in ("fp4", stored) and stored not in ("bf16", "fp16"):
        return {}  # as released, with the data types of its classes
    if kind == "int4" and stored.startswith("int4"):
        return {}
    if word.lower() != kind:
        notes.append(f"{word} is {kind}")
    return {"weights_dtype": kind}


_WITH_HEAD = {"q4_0", "q4_k_m", "q8_0"}
_METHODS, _EIGHT = frozenset({"awq", "gptq"}), frozenset({"int8", "8bit", "w8a16"})
"""Ways of quantising, 4 bit where nothing beside them says that it is 8."""
_WIDTHS = frozenset({"w8a8", "w8a16"})
"""Widths, whole numbers unless a format stands beside them: w8a8-fp8."""
_OTHER_WORDS = {
    "4bit": "int4-g64",
    "mlx-4bit": "int4-g64",
    "8bit": "int8-g64",
    "mlx-8bit": "int8-g64",
    "w8a16": "int8-g128",
    "smoothquant": "int8",
    "fp4": "fp4",
}


def _format_of(word: str) -> str:
    """Our id of a data type of weights, or fp4, which is one of two.

    The words of a spelling stand for themselves: int4-awq, gptq (4 bit), w4a16_marlin.

    Raises:
        InputError: for a word that names none.
    """
    spelling = re.sub(r"[\s()_,]+", "-", word.strip().lower()).strip("-")
    spelling = re.sub(r"(\d)-bits?\b", r"\1bit", spelling)
    parts = spelling.split("-")
    if _METHODS & {*parts} and _EIGHT & {*parts}:
        return "int8-g128"
    for name in (spelling, *sorted(parts, key=_WIDTHS.__contains__)):
        if name in _OTHER_WORDS:
            return _OTHER_WORDS[name]
        try:
            return load_library().datatype(name, "weights").id
        except InputError:
            continue
    known = ", ".join(["fp4", *(kind.id for kind in load_library().datatypes if "weights" in kind.roles)])
    raise InputError(f"precision is {word!r}; expected one of {known}, or another name of one")


def _of_file(kind: str, stored: str) -> dict[str, str]:
    """Data types of a quantised file of weights; embedding and head are quantised as well."""
    if kind in ("fp4", "mxfp4"):
        as_released = {"attention_dtype": "q8_0", "head_dtype": "q8_0"}
        return as_released if stored == "mxfp4" else {"weights_dtype": "mxfp4"}
    if kind == "fp16":
        return {"weights_dtype": "fp16", "head_dtype": "fp16", "activation_dtype": "fp16"}
    head = {"q4_0": "q6_k", "q4_k_m": "q6_k", "nvfp4": "bf16", "int4-g64": "bf16"}.get(kind, kind)
    return {"weights_dtype": kind, "head_dtype": head}


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
