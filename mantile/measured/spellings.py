"""Names that published tables give to models, accelerators, frameworks and data types, as ours."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.errors import InputError, unknown
from mantile.library.model_names import Named
from mantile.library.models import known_models, load_model, model_ids
from mantile.library.profiles import Accelerator, load_library

_TUNING = re.compile(
    r"-(instruct|it|chat|hf|fp8|fp4|nvfp4|mxfp4|bf16|awq|gptq|int4|int8|w4a16|w8a8|gguf|preview|dynamic"
    r"|v2|v0\.1|0528|turbo|quantized(\.w\d+a\d+)?)$"
)
_BEYOND_ITS_CONTEXT = {"llama-3-8b": "llama-3.1-8b", "llama-3-70b": "llama-3.1-70b"}
"""Models that tables measure beyond their 8,192 tokens: those of their shapes with a longer context."""
_SAME_SHAPES = {"minimax-m2": "minimax-m2.5"}
_SHORT = {"dsr1": "deepseek-r1", "gptoss": "gpt-oss-120b"}
"""Short names of models in InferenceX."""


_RUNNER = re.compile(r"-(?:(trt|trtllm|vllm|sglang|atom)|nv[^-]*|amd[^-]*|docker)$")
"""What names of a benchmark's machines end in: the engine, or whose machine it is."""


def runner_engine(machine: str) -> str | None:
    """Our id of the engine in the name of a benchmark's machine; None where it names none.

    >>> runner_engine("b200-trt"), runner_engine("h100-sxm")
    ('trtllm', None)
    """
    found = _RUNNER.search(machine.lower())
    return load_library().framework(found[1]).id if found and found[1] else None


@cache
def find_model(name: str) -> Named:
    """The model of a name in a table, whoever published it, and what that assumes; the name of a checkpoint
    says the data type of its weights too.

    >>> find_model("zai-org/GLM-5.2-FP8").weights_dtype
    'fp8-block'

    Raises:
        InputError: for a model that is not in models/.
    """
    title = name.rpartition("/")[2]
    bare = title.lower().removeprefix("meta-")
    beyond = _BEYOND_ITS_CONTEXT.get(bare.removesuffix("-instruct"))
    if beyond is not None:
        return Named(beyond, granted=f"{name} has the shapes of {beyond}")
    if bare in _SHORT:
        return Named(_SHORT[bare], granted=f"{name} is {_SHORT[bare]}")
    tried = [name, title]
    while (shorter := _TUNING.sub("", tried[-1].lower())) != tried[-1].lower():
        tried.append(shorter)
    for called in tried:
        with suppress(InputError):
            found = known_models().find(called)
            if found is not None:
                granted = found.granted or ("" if found.id == name else f"{name} is {found.id}")
                return found._replace(granted=granted)
    alike = _SAME_SHAPES.get(tried[-1].lower())
    if alike is None:
        raise unknown("model", name, model_ids())
    return Named(alike, granted=f"{name} has the shapes of {alike}")


@cache
def architecture_of(model: str) -> Architecture:
    """The architecture of one of our models."""
    return load_model(model).architecture


@cache
def find_accelerator(name: str) -> Accelerator:
    """An accelerator as `Library.accelerator` finds it, or by a benchmark's machine: b200-trt, h100-nv.

    Raises:
        InputError: for one that is not in the library.
    """
    machine = _RUNNER.sub("", name.lower())
    for known in (name, _USUAL.get(machine, machine)):
        with suppress(InputError):
            return load_library().accelerator(known)
    return load_library().accelerator(name)


_USUAL = {"a100": "a100-80gb-sxm"}
"""Chips in several forms, the one of which is meant that most tables have."""


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


def _format_of(word: str) -> str:
    """Our id of a data type of weights, or fp4, which is one of two.

    Raises:
        InputError: for a word that names none.
    """
    plain = word.strip().lower()
    if plain == "fp4":
        return plain
    try:
        return load_library().format_in(plain).id
    except InputError:
        kinds = (kind.id for kind in load_library().datatypes if "weights" in kind.roles)
        known = ", ".join(["fp4", *kinds])
        raise InputError(f"precision is {word!r}; expected one of {known}, or another name of one") from None


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
    if "fp8" in text and text != "fp8":
        notes.append("KV cache in fp8: likely, not stated")
        return "fp8"
    try:
        return load_library().datatype(text, "kv").id
    except InputError:
        notes.append("KV cache in bf16: not stated")
        return "bf16"
