"""Deployments as people start them: what an engine takes by itself, as fields of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.cli.output import look
from mantile.library.errors import InputError, near


@dataclass(frozen=True)
class Preset:
    """How an engine is deployed by default.

    Args:
        fields: of a scenario. Formats, budget and blocks of an engine stand in profiles/frameworks with their
            sources, and `engine_defaults` asks for them.
        source: where what stands here was read.
        status: assumed where no document of the maker was read.
    """

    fields: Mapping[str, Any]
    source: str = "profiles/frameworks"
    status: str = "as there"


_LLAMA_CPP = {"framework": "llama.cpp", "engine_defaults": "framework"}
PRESETS: Mapping[str, Preset] = {
    "vllm": Preset({"framework": "vllm", "engine_defaults": "framework"}),
    "sglang": Preset({"framework": "sglang", "engine_defaults": "framework"}),
    "trtllm": Preset({"framework": "trtllm", "engine_defaults": "framework"}),
    "llama.cpp": Preset(_LLAMA_CPP),
    "ollama": Preset(
        _LLAMA_CPP | {"weights_dtype": "q4_k_m"},
        "quantization_level Q4_K_M of models pulled without a tag, in logs of its API read 2026-11; its "
        "documentation was not read",
        "assumed",
    ),
    "lmstudio": Preset(
        _LLAMA_CPP | {"weights_dtype": "q4_k_m"}, "as ollama: no document of LM Studio was read", "assumed"
    ),
    "mlx": Preset({"framework": "mlx"}),
}
"""What `--as` sets."""


def preset_fields(name: str, data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a preset below those that are stated; what it chose is told, here and in the workbook.

    Raises:
        InputError: for a preset that there is not.
    """
    from mantile.library.scenario import field_name

    key = name.lower().replace("tensorrt-llm", "trtllm").replace("lm-studio", "lmstudio")
    if key not in PRESETS:
        raise InputError(f"--as {name!r:.40}: there is no such preset; {near(name, PRESETS)}")
    preset = PRESETS[key]
    stated = {field_name(field) for field in (*fields, *data)}
    chosen = {field: value for field, value in preset.fields.items() if field not in stated}
    said = ", ".join(f"{field} {value}" for field, value in chosen.items()) or "nothing"
    look.note(f"--as {key}: {said}{' (assumed)' if preset.status == 'assumed' else ''}")
    column = {} if "name" in stated else {"name": f"as {key}: {', '.join(map(_value, chosen.items()))}"}
    return {**chosen, **(column if chosen else {}), **fields}


def _value(chosen: tuple[str, Any]) -> str:
    """What was chosen, in the words of a column's head."""
    field, value = chosen
    return "its defaults" if field == "engine_defaults" else str(value)
