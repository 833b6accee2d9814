"""Architectures read from the code of a model class, where we have no reader of ours for its model type.

The class is built without weights in a process of its own (`process`, `limits`, `recorder`), a prompt is run,
and what was seen is cut into layers (`recording`) and read as steps (`steps`, `mixer`, `ffn`, `read`).
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from mantile.library.architecture import Architecture
from mantile.library.errors import InputError
from mantile.library.from_code.process import can_record, record
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES, meant
from mantile.library.huggingface.unread import unknown_fields


def read_from_code(config: Config, folder: Path | None = None) -> Architecture:
    """A config whose model type has no reader of ours, by running its class without weights.

    Args:
        folder: that holds the model's own code, where the user trusts it.

    Raises:
        InputError: if torch and transformers are not installed, or the class cannot be read.
    """
    if not can_record():
        raise _refusal(config, "its class is read where torch and transformers are installed (pip install "
                       "'mantile[transformers]')")  # fmt: skip
    recording = record(dict(config.data), config.name, folder)
    if "unknown" in recording:
        own_code = _own_code(config)
        close = [] if own_code else get_close_matches(config.model_type.lower(), recording["types"], n=3)
        hint = f" (it has {', '.join(close)})" if close else ""
        raise _refusal(config, f"{recording['unknown']} has no class of it{hint}{own_code}")
    architecture = read_recording(recording, config)
    known = {*recording["known"], "quantization_config", "model_type"}
    return architecture.model_copy(update={"unread": unknown_fields(config.data, known)})


def _refusal(config: Config, why: str) -> InputError:
    return InputError(
        f"{config.name}: model_type {config.model_type!r:.80} is not supported by a reader of ours, and {why}"
        f"{meant(config.model_type)}; supported: {', '.join(FAMILIES)}"
    )


def _own_code(config: Config) -> str:
    """What to do where a config names code of its own."""
    named = config.data.get("auto_map")
    modules = (
        sorted({f"{str(one).partition('.')[0]}.py" for one in named.values()})
        if isinstance(named, dict)
        else []
    )
    if not modules:
        return ""
    return (
        f"; its own code ({', '.join(modules)[:120]}) runs only where you say so: mantile list models add "
        "MODEL --trust-remote-code"
    )
