"""Words of start-up tables: models, formats of weights and caches, and releases, as ours."""

from __future__ import annotations

import re

from mantile.library.profiles import load_library
from mantile.measured.spellings import architecture_of

_SHAPES = {
    "midnight-miqu-70b-v1.0": "llama-2-70b",
    "functionary-small-v2.4": "mistral-7b",
    "e5-mistral-7b-instruct": "mistral-7b",
    "zephyr-7b-beta": "mistral-7b",
    "rank_zephyr_7b_v1_full": "mistral-7b",
    "phi-3-mini-4k-instruct-llamafied": "phi-3.5-mini",
    "qwen2-72b": "qwen2.5-72b",
    "qwen2-7b": "qwen2.5-7b",
    "deepseek-v3-0324": "deepseek-v3",
    "deepseek-coder-v2-lite": "deepseek-v2-lite",
    "nvidia-llama-3.1-nemotron-70b-instruct-hf": "llama-3.1-70b",
    "ai21-jamba-1.5-mini": "jamba-v0.1",
    "ai21-jamba-mini-1.7": "jamba-v0.1",
    "llama 70b": "llama-3.1-70b",
    "llava-v1.5-7b": "llama-2-7b",
    "llava-v1.5-13b": "llama-2-13b",
    "qwen3.8-27b": "qwen3.5-27b",
    "deepseek-v4-flash-0731": "deepseek-v4-flash",
    "llava-v1.6-mistral-7b-hf": "mistral-7b",
}
"""Models with the shapes of one that we ship, by the bare name in lower case."""

_FORMAT = re.compile(
    r"[ -](awq|gptq|fp8|fp4|nvfp4|mxfp4(-q8)?|int4|int8|autoround|auto-round|w4a16|w8a8|mlx|bf16|fp16|\d ?bit"
    r"|bnb|gguf|instruct|chat|it|hf)$",
    re.IGNORECASE,
)


def same_shapes(name: str, notes: list[str]) -> str:
    """A name without the format of its weights, or the model that has its shapes.

    Args:
        notes: gets what that assumes.
    """
    bare = re.sub(r"\s*\([^)]*\)", "", name.rpartition("/")[2]).strip().lower()
    while bare not in _SHAPES and (shorter := _FORMAT.sub("", bare)) != bare:
        bare = shorter
    alike = _SHAPES.get(bare)
    if alike is None:
        publisher = name.rpartition("/")[0]
        plain = re.sub(r"\s*\([^)]*\)", "", name).strip()
        return plain if publisher not in ("mlx-community",) else bare
    notes.append(f"{name} has the shapes of {alike}")
    return alike


_WEIGHTS = {
    "": {},
    "fp8 block": {"weights_dtype": "fp8-block"},
    "experts_int8": {"weights_dtype": "bf16", "experts_dtype": "int8"},
    "mxfp4 experts": {},
    "mxfp4-q8": {"weights_dtype": "int8-g64", "experts_dtype": "mxfp4"},
    "6bit": {"weights_dtype": "int6-g64"},
    "5bit": {"weights_dtype": "q5_0", "head_dtype": "q5_0", "embedding_dtype": "q5_0"},
    "iq3_s mix": {"weights_dtype": "q3_k"},
}
_SIXTEEN = ("bf16", "fp16")


def weight_types(word: str, framework: str, model: str, notes: list[str]) -> dict[str, str]:
    """Data types of the weights behind the word of a table.

    Args:
        framework: our id; files for llama.cpp and MLX hold no other weights than they say.
        model: our id of it, or the path of its config.
        notes: gets what that assumes.

    Raises:
        InputError: for a word that names no data type.
    """
    architecture = architecture_of(model)
    stored, plain = str(architecture.choices["weights_dtype"].value), word.strip().lower()
    if plain in _WEIGHTS:
        fields = dict(_WEIGHTS[plain])
    else:
        fields = {"weights_dtype": load_library().format_in(plain).id}
    if architecture.value("tied_embeddings"):
        fields.pop("embedding_dtype", None)
    kind = fields.get("weights_dtype", "")
    if "experts_dtype" in fields:
        return fields
    if kind in _FALLS_BACK and architecture.value("expert_size") % _BLOCK:
        notes.append(
            f"{word}: experts fall back to blocks of 32 values, as their width is no multiple of 256"
        )
        return fields | {"experts_dtype": _FALLS_BACK[kind]}
    if framework in ("vllm", "sglang", "trtllm") and (
        kind == stored or (kind in _SIXTEEN and stored in _SIXTEEN) or (kind[:4] == stored[:4] == "int4")
    ):
        return {}
    if kind == "nvfp4" and "experts" in architecture.facts:
        notes.append("nvfp4 of a mixture of experts: attention stays bf16")
        fields["attention_dtype"] = "bf16"
    if plain == "fp8" and architecture.value("hidden_size") > _WIDE:
        notes.append(
            "fp8 of a model as wide as Llama-3.1-405B: attention stays bf16, as in Meta's checkpoint"
        )
        fields["attention_dtype"] = "bf16"
    return fields


_BLOCK = 256
_FALLS_BACK = {"q4_k_m": "q5_k", "q5_k_m": "q5_1"}
"""Kinds of GGUF files, and what experts come to whose last matrix has no rows of 256: half of it in blocks of
5 bit, half in Q8_0."""
_WIDE = 16_000
"""Hidden size beyond which an fp8 checkpoint is taken to be Meta's of 405B."""


_CACHES = {"": "bf16", "auto": "bf16"}


def cache_type(word: str, notes: list[str]) -> dict[str, str]:
    """Data type of the KV cache."""
    plain = word.strip().lower()
    if plain in _CACHES:
        return {"kv_dtype": _CACHES[plain]}
    mixed = re.fullmatch(r"k (\S+), v (\S+)", plain)
    if mixed:
        notes.append(f"cache of {word}: keys and values taken alike, as the keys")
        plain = mixed.group(1)
    return {"kv_dtype": load_library().datatype(plain, "kv").id}


def release_of(framework: str, version: str) -> tuple[int, ...]:
    """A version as numbers to compare, builds of llama.cpp as one; empty where it is not stated."""
    build = re.fullmatch(r"b(\d+)", version.strip())
    if build:
        return (int(build.group(1)),)
    numbers = re.match(r"(?:v|mlx )?(\d+)\.(\d+)(?:\.(\d+))?", version.strip())
    return () if numbers is None else tuple(int(part or 0) for part in numbers.groups())


def is_v0(version: str) -> bool:
    """Whether it is the V0 engine of vLLM: a table says so, or the release had no other."""
    release = release_of("vllm", version)
    return "(V0)" in version or ((0,) < release < (0, 8) and "(V1)" not in version)


def generation_of(framework: str, version: str) -> str:
    """A version without its last parts, by which rows are grouped."""
    if framework == "vllm" and is_v0(version):
        return "V0"
    release = release_of(framework, version)
    if not release:
        return version or "not stated"
    if framework == "llama.cpp":
        return f"b{release[0] // 1000}xxx"
    return ".".join(map(str, release[:2]))


def day_of(source: str) -> str:
    """The day or month that a source states, as 2025-06-10; empty where it states none."""
    found = re.search(r"\b(20\d\d-\d\d(?:-\d\d)?)\b", source)
    return found.group(1) if found else ""


_LATENTS_SINCE, _WINDOWS_SINCE = 5_130, 5_430  # builds of llama.cpp, of April and May 2025
_LATENTS_DAY, _WINDOWS_DAY = "2025-04-15", "2025-05-20"


def cache_layout(framework: str, version: str, source: str) -> str:
    """What a release keeps of windows and latents; default where it is as in the current one."""
    release, day = release_of(framework, version), day_of(source)
    if framework == "llama.cpp":
        build = release[0] if release else 0
        if build < _LATENTS_SINCE if build else day < _LATENTS_DAY:
            return "full"
        return "full-windows" if (build < _WINDOWS_SINCE if build else day < _WINDOWS_DAY) else "default"
    if framework == "sglang":
        old = release < (0, 5) if release else day < "2025-09"
        return "full-windows" if old else "default"
    if framework == "vllm" and release and release < (0, 12):
        return "full" if release < (0, 7) else "full-windows"
    return "default"
