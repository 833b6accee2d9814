"""Start-up logs of serving engines: what the engine took, and why it stopped.

A line of a log is known by a pattern of start_logs.table. Sizes are in bytes, of one accelerator.
Sources: messages that vLLM 0.6 to 0.33, SGLang 0.4 to 0.5, TensorRT-LLM 1.x, llama.cpp since b3000 and Ollama
since 0.3 print when they start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError

_GIB, _MIB = 2.0**30, 2.0**20
_UNITS = {"B": 1.0, "KIB": 2.0**10, "MIB": _MIB, "GIB": _GIB, "MB": _MIB, "GB": _GIB}
"""Engines that write GB in a log count in GiB."""

WEIGHTS, CACHE, GRAPHS, BUFFERS = "weights", "kv_cache", "graphs", "other"
CAUSES: Mapping[str, str] = {
    "weights": "the weights do not fit",
    "length": "there is no room for one request of the longest length",
    "no_cache": "the weights fit, and nothing is left for the KV cache",
    "slots": "there is no room for a state of every batch slot",
    "not_free": "the memory that the engine asks for is not free",
    "sampler": "there is no room to try sampling with all batch slots",
    "capture": "there is no room for graphs",
    "cache": "the KV cache does not fit",
    "buffers": "there is no room for buffers of a step",
    "host": "the main memory is too small",
    "memory": "the accelerator is out of memory",
}
"""Why an engine stopped, by code, in words."""

_SIZE = r"(?P<s>[\d.]+)\s*(?P<u>[KMG]i?B)"
_MARKS = (
    ("ollama", r"\bollama\b"),
    ("sglang", r"\bsglang\b|server_args=ServerArgs"),
    ("trtllm", r"TensorRT-LLM|trtllm|TRT-LLM"),
    ("vllm", r"\bvllm\b|vLLM|EngineCore"),
    ("llama.cpp", r"llama[-_]server|llama_model_load|llama_kv_cache|ggml_|load_tensors:|llama_context"),
)
"""Words by which the engine of a log is known, the most particular first."""
_STAGES = (
    ("capture", r"[Cc]apturing (?:CUDA|cuda) graphs?|Capture cuda graph begin"),
    (
        "weights",
        r"[Ll]oading (?:safetensors|model|weights)|Load weight begin|Starting to load model|load_tensors",
    ),
)
"""What was going on, by words of the lines before an error that does not say it."""


@dataclass(frozen=True)
class StartLog:
    """What a start-up log says.

    Args:
        engine: framework; release as it is printed, empty where it is not.
        model: as it is called there; empty where it is not named.
        fields: of a scenario.
        took: bytes of one accelerator by weights, kv_cache, graphs and other, and kv_tokens.
        card_name: of the accelerator; card_total its bytes.
        cause: why it stopped, of CAUSES; empty where it started.
        asked, needed, longest, tried: what the error names: tokens or slots that were asked for, bytes of one
            request, tokens or slots that have room, bytes that were not there.
        said: the line of the error.
    """

    engine: str
    release: str = ""
    model: str = ""
    quantisation: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)
    card_name: str = ""
    card_total: float | None = None
    cause: str = ""
    asked: float | None = None
    needed: float | None = None
    longest: float | None = None
    tried: float | None = None
    said: str = ""


def read_start_log(text: str, name: str = "log") -> StartLog:
    """A start-up or out-of-memory log of vLLM, SGLang, TensorRT-LLM, llama.cpp or Ollama.

    Args:
        name: stands for the log in errors.

    Raises:
        InputError: where no engine is known by the text.

    Example:
        read_start_log("vLLM API server version 0.11.0 ... Model loading took 14.99 GiB").took["weights"]
    """
    engine = next((engine for engine, mark in _MARKS if re.search(mark, text)), None)
    if engine is None:
        raise InputError(
            f"{name}: no line of it is of an engine that is known; expected the log of vLLM, SGLang, "
            "TensorRT-LLM, llama.cpp or Ollama from its start on"
        )
    found = {"fields": {}, "took": {}}  # type: dict[str, Any]
    for line in text.splitlines():
        for what, match in _matches(engine, line):
            _take(found, what, match, line)
    cause = found.pop("cause", "")
    if cause == "memory":
        cause = _stage(text, engine, found) or cause
    return StartLog(engine=engine, cause=cause, **found)


def _matches(engine: str, line: str) -> Iterator[tuple[str, re.Match[str]]]:
    for of, what, pattern in _patterns():
        if of in ("any", engine) or (engine == "ollama" and of == "llama.cpp"):
            match = pattern.search(line)
            if match is not None:
                yield what, match


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Engine, what a line says, and its pattern."""
    text = Path(__file__).with_suffix(".table").read_text(encoding="utf-8")
    rows = (line.split(None, 2) for line in text.splitlines() if line.strip() and line[0] != "#")
    return tuple((engine, what, re.compile(pattern.replace("SIZE", _SIZE))) for engine, what, pattern in rows)


def _take(found: dict[str, Any], what: str, match: re.Match[str], line: str) -> None:
    """Put what a line says into its place."""
    value: Any = None
    groups = match.groupdict()
    if groups.get("s") is not None:
        value = float(groups["s"].replace(",", "")) * _UNITS[groups["u"].upper()]
    elif groups.get("n") is not None:
        value = float(groups["n"].replace(",", ""))
    elif groups.get("f") is not None:
        value = float(groups["f"])
    elif groups.get("t") is not None:
        value = groups["t"].strip()
    kind, _, rest = what.partition(".")
    took = found["took"]
    if kind == "error":
        if found.get("cause", "memory") == "memory":
            found["cause"], found["said"] = rest, " ".join(line.split())[:300]
        if value is not None:
            found["asked"] = value
    elif kind == "field":
        found["fields"][rest] = int(value) if isinstance(value, float) and value.is_integer() else value
    elif kind == "sum":
        took[rest] = took.get(rest, 0.0) + value
    elif kind == "places":
        found["longest"] = value
    elif kind in (WEIGHTS, CACHE, GRAPHS, BUFFERS, "kv_tokens"):
        took[kind] = value
    elif kind in _FIRST:
        found.setdefault(kind, value)
    elif kind in _LAST:
        found[kind] = value


_FIRST = ("release", "model", "card_name")
"""What a log says several times, of which the first counts; of others the last."""
_LAST = ("quantisation", "card_total", "needed", "longest", "tried")


def _stage(text: str, engine: str, found: Mapping[str, Any]) -> str:
    """What was going on when the accelerator ran out of memory; empty where the log does not tell."""
    before = text[: text.find(str(found.get("said", ""))[:40]) if found.get("said") else len(text)]
    last = {stage: before.rfind(match[-1]) for stage, match in _seen(before)}
    if WEIGHTS in found["took"] and "capture" not in last:
        return "buffers" if CACHE not in found["took"] else "capture"
    return max(last, key=lambda stage: last[stage]) if last else ""


def _seen(text: str) -> Iterator[tuple[str, list[str]]]:
    for stage, pattern in _STAGES:
        match = re.findall(pattern, text)
        if match:
            yield stage, match
