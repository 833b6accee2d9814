"""Deployments as people start them: what an engine takes by itself, as fields of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.cli.output import look
from mantile.library.errors import InputError, near

_LLAMA_CPP = {"framework": "llama.cpp", "engine_defaults": "framework"}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"framework": "vllm", "engine_defaults": "framework"},
    "sglang": {"framework": "sglang", "engine_defaults": "framework"},
    "trtllm": {"framework": "trtllm", "engine_defaults": "framework"},
    "llama.cpp": _LLAMA_CPP,
    "ollama": _LLAMA_CPP | {"weights_dtype": "q4_k_m"},
    "lmstudio": _LLAMA_CPP | {"weights_dtype": "q4_k_m"},
    "mlx": {"framework": "mlx"},
}
"""What each sets. Formats, budget and blocks of an engine stand in profiles/frameworks with their sources."""


def preset_fields(name: str, data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a preset below those that are stated; what it chose is told.

    Raises:
        InputError: for a preset that there is not.
    """
    from mantile.library.scenario import field_name

    key = name.lower().replace("tensorrt-llm", "trtllm").replace("lm-studio", "lmstudio")
    if key not in PRESETS:
        raise InputError(f"--as {name!r:.40}: there is no such preset; {near(name, PRESETS)}")
    stated = {field_name(field) for field in (*fields, *data)}
    chosen = {field: value for field, value in PRESETS[key].items() if field not in stated}
    look.note(f"--as {key}: {', '.join(f'{field} {value}' for field, value in chosen.items()) or 'nothing'}")
    return {**chosen, **fields}
