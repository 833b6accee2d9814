"""Deployments as people start them: what an engine takes by itself, as fields of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.cli.output import look
from mantile.library.errors import InputError, near


@dataclass(frozen=True)
class Choice:
    """What an engine takes by itself, of one field.

    Args:
        value: of the field.
        source: what was read.
        date: on which.
        status: as of figures: datasheet where a document of the maker says it, secondary where somebody else
            does, assumed where nobody was read.
    """

    value: Any
    source: str
    date: str = "2026-11-26"
    status: str = "secondary"


def _engine(framework: str) -> dict[str, Choice]:
    """The engine itself, with what its file in profiles/frameworks states, each with a source there."""
    there = f"profiles/frameworks/{framework}.yaml"
    chosen = {"framework": Choice(framework, f"what --as names; {there}", "2026-11-25", "defined")}
    if framework == "mlx":  # its file states all that it does by default
        return chosen
    return chosen | {"engine_defaults": Choice("framework", there, "2026-11-25", "defined")}


_F16 = "smcleod.net on K/V context quantisation in Ollama, by who wrote it: the default is F16, citing nobody"
PRESETS: Mapping[str, Mapping[str, Choice]] = {
    "vllm": _engine("vllm"),
    "sglang": _engine("sglang"),
    "trtllm": _engine("trtllm"),
    "llama.cpp": _engine("llama.cpp"),
    "ollama": _engine("llama.cpp")
    | {
        "weights_dtype": Choice(
            "q4_k_m", "quantization_level of models pulled without a tag, in logs of its API, citing nobody"
        ),
        "kv_dtype": Choice("fp16", _F16),
        "max_requests": Choice(
            1, "ArthurDEV44/velollm docs/guides/CONFIG_GUIDE.md, OLLAMA_NUM_PARALLEL, citing nobody"
        ),
    },
    "lmstudio": _engine("llama.cpp")
    | {
        "weights_dtype": Choice(
            "q4_k_m",
            "LM Studio documentation, Download an LLM; section Which download option to choose; "
            "https://lmstudio.ai/docs/app/basics/download-model: a 4-bit option or higher; that it is this "
            "one is as in Ollama",
            status="assumed",
        ),
        "kv_dtype": Choice("fp16", "as in Ollama, on llama.cpp too: nobody was read", status="assumed"),
        "max_requests": Choice(
            4,
            "LM Studio documentation, Parallel Requests; section Setting Max Concurrent Predictions; "
            "https://lmstudio.ai/docs/app/advanced/parallel-requests",
            status="datasheet",
        ),
    },
    "mlx": _engine("mlx"),
}
"""What `--as` sets, by field."""


def preset_fields(name: str, data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a preset below those that are stated; what it chose is told, here and in the workbook.

    Raises:
        InputError: for a preset that there is not.
    """
    from mantile.library.scenario_fields import field_name

    key = name.lower().replace("tensorrt-llm", "trtllm").replace("lm-studio", "lmstudio")
    if key not in PRESETS:
        raise InputError(f"--as {name!r:.40}: there is no such preset; {near(name, PRESETS)}")
    stated = {field_name(field) for field in (*fields, *data)}
    choices = {field: choice for field, choice in PRESETS[key].items() if field not in stated}
    said = ", ".join(
        f"{field} {choice.value}{' (assumed)' if choice.status == 'assumed' else ''}"
        for field, choice in choices.items()
    )
    look.note(f"--as {key}: {said or 'nothing'}; `mantile list presets {key}` says where from")
    chosen = {field: choice.value for field, choice in choices.items()}
    column = {} if "name" in stated else {"name": f"as {key}: {', '.join(map(_value, chosen.items()))}"}
    return {**chosen, **(column if chosen else {}), **fields}


def _value(chosen: tuple[str, Any]) -> str:
    """What was chosen, in the words of a column's head."""
    field, value = chosen
    if field == "engine_defaults":
        return "its defaults"
    return {"kv_dtype": f"{value} KV", "max_requests": f"{value} at a time"}.get(field, str(value))
