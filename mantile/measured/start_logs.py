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
    "serving": "it started, and ran out of memory later, while it served",
}
"""Why an engine stopped, by code, in words."""

_SIZE = r"\b(?P<s>\d[\d,]*(?:\.\d+)?)\s*(?P<u>[KMG]i?B)"
_MARKS = (
    ("ollama", r"\bollama\b"),
    ("sglang", r"\bsglang\b|server_args=ServerArgs"),
    ("trtllm", r"TensorRT-LLM|trtllm|TRT-LLM"),
    ("vllm", r"\bvllm\b|vLLM|EngineCore"),
    ("llama.cpp", r"llama[-_]server|llama_model_load|llama_kv_cache|ggml_|load_tensors:|llama_context"),
)
"""Words by which the engine of a log is known: that which comes first, but for Ollama, which runs another."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OTHER_RANK = re.compile(r"\bTP[1-9]\d*\b")  # of SGLang: every rank prints its own
_STARTED = re.compile(r"Application startup complete|ready to roll|server is listening on")
_AGAIN = re.compile(r"vLLM API server version|server_args=ServerArgs|TensorRT-LLM version|^build: \d")
_AFTER = ("out of memory", "OutOfMemory", "version", "server_args=", "build: ")
"""Of what a server prints once it has started, lines with none of these words say nothing here."""
_LONGEST_LINE = 20_000
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
        asked, needed, longest, free: what the error names: tokens or slots that were asked for, bytes of one
            request, tokens or slots that have room, bytes that were free before the start.
        said: the line of the error.
    """

    engine: str
    release: str = ""
    model: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)
    card_name: str = ""
    card_total: float | None = None
    cause: str = ""
    asked: float | None = None
    needed: float | None = None
    longest: float | None = None
    free: float | None = None
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
    engine = _engine(text)
    if engine is None:
        raise InputError(
            f"{name}: no line of it is of an engine that is known; expected the log of vLLM, SGLang, "
            "TensorRT-LLM, llama.cpp or Ollama from its start on"
        )
    found = _nothing()
    stage, started = "", False
    for line in text.splitlines():
        if started and not any(word in line for word in _AFTER):
            continue
        line = _COLOUR.sub("", line[:_LONGEST_LINE])
        if _AGAIN.search(line) and (started or found.get("cause")):
            found, stage, started = _nothing(), "", False  # the last start counts
        if started:
            if "cause" not in found and re.search("out of memory|OutOfMemory", line):
                found |= {"cause": "serving", "said": _short(line)}
            continue
        started = "cause" not in found and _STARTED.search(line) is not None
        if "cause" not in found:
            stage = next((name for name, pattern in _STAGES if re.search(pattern, line)), stage)
        for what, match in _matches(engine, line):
            _take(found, what, match, line)
    cause = found.pop("cause", "")
    if cause == "memory":
        cause = _stage(stage, found["took"]) or cause
    return StartLog(engine=engine, cause=cause, **found)


def log_text(data: bytes) -> str:
    """The text of a log: wrong bytes are replaced; Windows' own files have two bytes a letter."""
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return data.decode("utf-16" if wide else "utf-8", errors="replace")


def _engine(text: str) -> str | None:
    """The engine whose words come first; None where there are none."""
    first = {engine: match.start() for engine, mark in _MARKS if (match := re.search(mark, text))}
    return "ollama" if "ollama" in first else min(first, key=lambda engine: first[engine], default=None)


def _nothing() -> dict[str, Any]:
    return {"fields": {}, "took": {}}


def _short(line: str) -> str:
    return " ".join(line.split())[:300]


def _matches(engine: str, line: str) -> Iterator[tuple[str, re.Match[str]]]:
    for of, what, pattern in _patterns():
        if of in ("any", engine) or (engine == "ollama" and of == "llama.cpp"):
            if not what.startswith("sum."):
                match = pattern.search(line)
                if match is not None:
                    yield what, match
            elif not _OTHER_RANK.search(line):
                yield from ((what, match) for match in pattern.finditer(line))


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
            found["cause"], found["said"] = rest, _short(line)
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
_LAST = ("card_total", "needed", "longest", "free")


def _stage(stage: str, took: Mapping[str, float]) -> str:
    """What was going on when the accelerator ran out of memory; empty where the log does not tell."""
    if WEIGHTS in took and stage != "capture":
        return "capture" if CACHE in took else "buffers"
    return stage
