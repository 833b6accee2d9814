"""Names of columns with measured figures: which metric of a run a column holds, and in which unit.

A name is taken apart into words, so that "Mean TTFT (ms)", mean_ttft_ms and ttft_sec are one metric:

    ttft, tpot, e2e             a time, with its unit, and mean, p50 or p95
    throughput, tokens/s, tps   output tokens per second: of the deployment, or per gpu
    prefill                     a time, or tokens per second
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mantile.measured.runs import Metrics

SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1e-6),
}
"""Seconds of each unit of time."""
_MEANS = {"mean", "avg", "average"}
_STATISTICS = {**dict.fromkeys(_MEANS, ""), "median": "_p50"}
_OTHER_STATISTIC = re.compile(r"p\d+(\.\d+)?|std|stddev|min|max")
_TIMES = {
    "ttft": "ttft",
    "time to first token": "ttft",
    "first token latency": "ttft",
    "tpot": "tpot",
    "time per output token": "tpot",
    "e2e": "e2e",
    "e2el": "e2e",
    "e2e latency": "e2e",
    "end to end latency": "e2e",
    "request latency": "e2e",
    "latency": "e2e",
    "prefill": "prefill",
    "prefill time": "prefill",
}
"""Times by the words that are left without statistic and unit."""
_BETWEEN_CHUNKS = ("itl", "inter token latency", "inter chunk latency")
_TOKENS = {"tok", "toks", "token", "tokens"}
_ACCELERATOR = {"gpu", "gpus", "accelerator", "accelerators", "chip", "chips", "device", "card"}
_RATES = {"throughput", "tput", "tps"}
_OF_OUTPUT = _RATES | {"per", "out", "output", "generated", "generation", "decode"}
_MEMORY = {"vram_peak_gb": "peak_memory_gb", "vram_peak": "peak_memory_bytes"}
_NOT_OUTPUT = {
    "total": "input and output tokens together: expected output tokens",
    "user": "of one user, not of the deployment",
    "request": "requests, not tokens",
    "requests": "requests, not tokens",
    "req": "requests, not tokens",
    "input": "input tokens, not output tokens",
    "prompt": "input tokens, not output tokens",
}

Place = tuple[str, float]
"""Field of `Metrics`, and what a figure is multiplied by to be SI."""


@dataclass(frozen=True)
class NoMetric:
    """Why a column is not read, in words."""

    why: str


NOT_KNOWN = NoMetric("not known")


def plain_name(column: object) -> str:
    """The name of a column in lower case, with _ between its words.

    >>> plain_name("Mean TTFT (ms)"), plain_name("Output Throughput tok/s/GPU")
    ('mean_ttft_ms', 'output_throughput_tok_per_s_per_gpu')
    """
    spelling = str(column).strip().lower().replace("/", "_per_")
    return re.sub(r"[^\w.]+|_+", "_", spelling).strip("_")


def metric_column(column: str) -> Place | NoMetric:
    """The metric that a column holds, or why it holds none that is compared.

    >>> metric_column("TPOT [ms]"), metric_column("throughput_tokens_per_sec_per_gpu")
    (('tpot_s', 0.001), ('output_tokens_per_s_per_accelerator', 1.0))
    """
    name = plain_name(column)
    if name in Metrics.model_fields:
        return name, 1.0
    name = _MEMORY.get(name, name)
    if (in_bytes := re.sub("_gb$", "_bytes", name)) in Metrics.model_fields:
        return in_bytes, 1e9
    words = name.split("_")
    held = {*words}
    rate = _RATES & held or (_TOKENS & held and words[-1] not in ("ms", "us"))
    return _rate(words) if rate and not {"latency", "time"} & held else _time(words)


def _time(words: list[str]) -> Place | NoMetric:
    """A column of times."""
    statistics = [word for word in words if word in _STATISTICS or _OTHER_STATISTIC.fullmatch(word)]
    rest = [word for word in words if word not in statistics]
    unit = SECONDS.get(rest[-1]) if rest else None
    named = " ".join(rest if unit is None else rest[:-1])
    if named in _BETWEEN_CHUNKS:
        return NoMetric("time between chunks of the stream, each of one token or several: not TPOT")
    if named not in _TIMES:
        return NOT_KNOWN
    ending = "".join(_STATISTICS.get(word, f"_{word}") for word in statistics)
    field = f"{_TIMES[named]}{ending}_s"
    if field not in Metrics.model_fields:
        return NoMetric("not among the metrics of a run")
    return (
        NoMetric("its unit is not stated: expected _ms or _s in its name") if unit is None else (field, unit)
    )


def _rate(words: list[str]) -> Place | NoMetric:
    """A column of tokens per second."""
    held = {*words} - _MEANS
    if "prefill" in held:
        known = held <= {"prefill", *_OF_OUTPUT, *_TOKENS, *SECONDS} - {"out", "output"}
        return ("prefill_tokens_per_s", 1.0) if known else NOT_KNOWN
    for word, why in _NOT_OUTPUT.items():
        if word in held:
            return NoMetric(why)
    if held == {"tput", "per", "gpu"}:
        return NoMetric("input and output tokens together in InferenceX: expected output_tput_per_gpu")
    if not held <= _OF_OUTPUT | _TOKENS | _ACCELERATOR | {*SECONDS} or held <= _TOKENS | _OF_OUTPUT - _RATES:
        return NOT_KNOWN
    if held <= {"throughput", "tput"}:
        return NoMetric("its unit is not stated: expected tokens_per_s in its name")
    of_one = bool(held & _ACCELERATOR)
    return f"output_tokens_per_s{'_per_accelerator' if of_one else ''}", 1.0


def metric_columns(columns: Mapping[str, object]) -> dict[str, tuple[str, float]]:
    """Which column holds each metric, and its factor to SI; of two that hold the same the first with a
    figure.

    Args:
        columns: of a row, with what they hold.
    """
    found: dict[str, tuple[str, float]] = {}
    for column, cell in columns.items():
        place = metric_column(column)
        if not isinstance(place, NoMetric) and cell not in ("", None):
            found.setdefault(place[0], (column, place[1]))
    return found


def why_unread(column: str) -> str:
    """Why nobody read a column of a file.

    >>> why_unread("request_throughput"), why_unread("colour")
    ('requests, not tokens', 'not known')
    """
    place = metric_column(column.removeprefix("metrics."))
    return place.why if isinstance(place, NoMetric) else "another column holds the same"
