"""Checkpoints of MLX by their names: those that EXO lists are models we ship, in another format."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mantile.library.architecture import Architecture, Choice

PUBLISHERS = ("mlx-community", "lmstudio-community")
"""Who puts up models of others as files of MLX."""
_FORMATS: Mapping[str, tuple[str, str]] = {
    "4bit": ("int4-g64", "4 bit in groups of 64"),
    "4bits": ("int4-g64", "4 bit in groups of 64"),
    "6bit": ("int6-g64", "6 bit in groups of 64"),
    "8bit": ("int8-g64", "8 bit in groups of 64"),
    "mxfp4": ("mxfp4", "mxfp4"),
    "mxfp8": ("fp8-mx", "mxfp8"),
    "nvfp4": ("nvfp4", "nvfp4"),
    "mxfp4-q8": ("mxfp4", "mxfp4, all but experts 8 bit in groups of 64"),
    "4bit-mxfp4": ("mxfp4", "mxfp4"),
    "8bit-mxfp8": ("fp8-mx", "mxfp8"),
    "bf16": ("bf16", "16 bit"),
    "fp16": ("fp16", "16 bit"),
}
_MIXED: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "kimi-k2-thinking": (
        "kimi-k2",
        {"weights_dtype": "bf16", "experts_dtype": "int4-g32-bias"}
        | dict.fromkeys(("head_dtype", "embedding_dtype"), "bf16"),
        "experts are published in 4 bit, all else in 16 bit; in groups of 32 of MLX that comes to 657.6 GB, "
        "and EXO's card says 658; assumed",
    ),
}
"""By title: checkpoints with formats by part and none in their name: the model, formats, and their source."""
_NAMED = re.compile(r"(?P<title>.+?)(?:-MLX)?-(?P<format>" + "|".join(_FORMATS) + ")", re.IGNORECASE)


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


def mixed_formats(title: str) -> tuple[str, str] | None:
    """Model, and the format to ask `in_format` for, of a checkpoint with formats by part; None for others.

    >>> mixed_formats("Kimi-K2-Thinking")
    ('kimi-k2', 'kimi-k2-thinking')
    """
    found = _MIXED.get(title.lower())
    return None if found is None else (found[0], title.lower())


def in_format(architecture: Architecture, form: str) -> Architecture:
    """An architecture with all matrices in a format of MLX, embedding and LM head among them.

    Args:
        form: as `of_mlx` gives it. That groups have 64 values is the default of mlx_lm.convert.
    """
    if form in _MIXED:
        _, mixed, source = _MIXED[form]
        return _with(architecture, {"activation_dtype": "bf16", "file": "MLX"} | dict(mixed), source)
    stored, words = _FORMATS[form]
    source = f"name of the checkpoint: {words}, LM head too, as mlx_lm.convert does; assumed"
    values = {"weights_dtype": stored, "activation_dtype": "bf16", "file": "MLX"}
    ends = ("head_dtype",) if architecture.value("tied_embeddings") else ("head_dtype", "embedding_dtype")
    if form == "mxfp4-q8":
        ends, stored = ("attention_dtype", *ends), "int8-g64"
    return _with(architecture, values | dict.fromkeys(ends, stored), source)


def _with(architecture: Architecture, values: Mapping[str, str], source: str) -> Architecture:
    """An architecture with these data types and no others."""
    own = {name: choice for name, choice in architecture.choices.items() if not name.endswith("_dtype")}
    made = {name: Choice(value=value, origin="derived", source=source) for name, value in values.items()}
    return architecture.model_copy(update={"choices": own | made})
