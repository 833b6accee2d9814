"""Checkpoints of MLX by their names: those that EXO lists are models we ship, in another format."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mantile.library.architecture import Architecture, Choice

PUBLISHERS = ("mlx-community", "lmstudio-community")
"""Who puts up models of others as files of MLX."""
_FORMATS: Mapping[str, tuple[str, str]] = {
    "3bit": ("int3-g64", "3 bit in groups of 64"),
    "4bit": ("int4-g64", "4 bit in groups of 64"),
    "4bits": ("int4-g64", "4 bit in groups of 64"),
    "5bit": ("int5-g64", "5 bit in groups of 64"),
    "6bit": ("int6-g64", "6 bit in groups of 64"),
    "8bit": ("int8-g64", "8 bit in groups of 64"),
    "8bit-gs32": ("int8-g32-bias", "8 bit in groups of 32"),
    "mxfp4": ("mxfp4", "mxfp4"),
    "mxfp8": ("fp8-mx", "mxfp8"),
    "nvfp4": ("nvfp4", "nvfp4"),
    "mxfp4-q8": ("mxfp4", "mxfp4, all but experts 8 bit in groups of 64"),
    "mxfp4-bf16": ("mxfp4", "mxfp4, all but experts 16 bit"),
    "4bit-mxfp4": ("mxfp4", "mxfp4"),
    "8bit-mxfp8": ("fp8-mx", "mxfp8"),
    "bf16": ("bf16", "16 bit"),
    "fp16": ("fp16", "16 bit"),
}
_BESIDE_EXPERTS = {"mxfp4-q8": "int8-g64", "mxfp4-bf16": "bf16"}
_ENDS = ("head_dtype", "embedding_dtype")
_MIXED: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "kimi-k2-thinking": (
        "kimi-k2",
        {"weights_dtype": "bf16", "experts_dtype": "int4-g32-bias"} | dict.fromkeys(_ENDS, "bf16"),
        "experts are published in 4 bit, all else in 16 bit; in groups of 32 of MLX that comes to 657.6 GB, "
        "and EXO's card says 658; assumed",
    ),
    "nemotron-3-ultra-550b-a55b-4bit": (
        "nemotron-3-ultra",
        {"weights_dtype": "int4-g32-bias"} | dict.fromkeys(_ENDS, "int4-g32-bias"),
        "name of the checkpoint: 4 bit; in groups of 32 of MLX that comes to 343 GB, in groups of 64 to 309, "
        "and EXO's card says 347; assumed",
    ),
    "trevorjs/gemma-4-e2b-it-uncensored": (
        "gemma-4-e2b",
        {"weights_dtype": "int4-g64", "head_dtype": "int4-g64"},
        "EXO's card: 4 bit; in groups of 64, its towers in 16 bit, that comes to 3.55 GB, and the card says "
        "3.58; assumed",
    ),
}
"""Checkpoints whose formats no rule for names gives, by their name: model, data types, and their source."""
_NAMED = re.compile(r"(?P<title>.+?)(?:-MLX)?-(?P<format>" + "|".join(_FORMATS) + ")", re.IGNORECASE)
_NOT_STATED = re.compile(r"(?P<title>.+?)(?:-MLX)?-(?P<format>[odv]q-?(?P<bits>\d)[\w.-]*)", re.IGNORECASE)


def of_mlx(hub_id: str) -> tuple[str, str] | None:
    """Model and format of a checkpoint of MLX, as its name says them; None for any other name.

    >>> of_mlx("mlx-community/DeepSeek-V3.1-4bit")
    ('DeepSeek-V3.1', '4bit')
    >>> of_mlx("mlx-community/GLM-5.1")  # as its maker published it
    ('GLM-5.1', '')
    """
    publisher, _, name = hub_id.rpartition("/")
    if publisher.lower() not in PUBLISHERS:
        return None
    found = _NAMED.fullmatch(name)
    return (name, "") if found is None else (found["title"], found["format"].lower())


def format_not_stated(hub_id: str) -> tuple[str, str, str] | None:
    """Model, format and nearest data type of a checkpoint whose name says a mix that no document states.

    The data type is empty where none is near; None for any other name.

    >>> format_not_stated("mlx-community/GLM-5.1-DQ4plus-q8")
    ('GLM-5.1', 'DQ4plus-q8', 'int4-g64')
    """
    found = _NOT_STATED.fullmatch(hub_id.rpartition("/")[2])
    if found is None:
        return None
    return found["title"], found["format"], _FORMATS.get(f"{found['bits']}bit", ("",))[0]


def mixed_formats(hub_id: str) -> tuple[str, str] | None:
    """Model, and the format to ask `in_format` for, of a checkpoint that no rule for names covers; else None.

    >>> mixed_formats("mlx-community/Kimi-K2-Thinking")
    ('kimi-k2', 'kimi-k2-thinking')
    """
    publisher, _, name = hub_id.lower().rpartition("/")
    key = name if publisher in PUBLISHERS else hub_id.lower()
    return (_MIXED[key][0], key) if key in _MIXED else None


def in_format(architecture: Architecture, form: str) -> Architecture:
    """An architecture with all matrices in a format of MLX, embedding and LM head among them.

    Args:
        form: as `of_mlx` or `mixed_formats` gives it. That groups have 64 values is the default of
            mlx_lm.convert.
    """
    if form in _MIXED:
        _, mixed, source = _MIXED[form]
        return _with(architecture, {"activation_dtype": "bf16", "file": "MLX"} | dict(mixed), source)
    stored, words = _FORMATS[form]
    source = f"name of the checkpoint: {words}, LM head too, as mlx_lm.convert does; assumed"
    values = {"weights_dtype": stored, "activation_dtype": "bf16", "file": "MLX"}
    ends = ("head_dtype",) if architecture.value("tied_embeddings") else ("head_dtype", "embedding_dtype")
    if form == "mxfp4-bf16" and architecture.value("experts"):
        values |= {"weights_dtype": "bf16", "experts_dtype": stored}
    if form in _BESIDE_EXPERTS:
        ends, stored = ("attention_dtype", *ends), _BESIDE_EXPERTS[form]
    return _with(architecture, values | dict.fromkeys(ends, stored), source)


def _with(architecture: Architecture, values: Mapping[str, str], source: str) -> Architecture:
    """An architecture with these data types and no others."""
    own = {name: choice for name, choice in architecture.choices.items() if not name.endswith("_dtype")}
    made = {name: Choice(value=value, origin="derived", source=source) for name, value in values.items()}
    return architecture.model_copy(update={"choices": own | made})
