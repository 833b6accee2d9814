"""The line of a client of benchmarks, read by the table in profiles/forms.yaml: lengths, load, prompts."""

from __future__ import annotations

import re
import shlex
from typing import Any

from mantile.library.errors import InputError, quoted
from mantile.measured.forms import ClientTool, form_table

_WHOLE = (
    "prompts",
    "concurrency",
    "input_tokens_asked",
    "output_tokens_asked",
    "tp",
    "pp",
    "ep",
    "prefix_tokens",
)
_REAL = ("request_rate", "range_ratio", "rate")
_SYNTHETIC = re.compile(r"(prompt_tokens|output_tokens)\W+(\d+)")
_STREAMS = re.compile(r"kind=(\w+)(?:.*?\b(streams|rate)=([\d.]+))?")


def read_client(line: str) -> dict[str, Any]:
    """What the line of a client says of its requests, in our fields.

    Args:
        line: as it is typed: vllm bench serve --random-input-len 1024 --max-concurrency 16 --num-prompts 160.

    Returns:
        `input_tokens_asked`, `output_tokens_asked`, `range_ratio` with `ratio_meaning`, `prompts`,
        `concurrency`, `request_rate` (inf: all at once), `model`; those that the tool takes by default as
        well. Nothing of what it leaves open.

    Raises:
        InputError: for a line of no tool that is known, or a value that is no number.

    Example:
        read_client("vllm bench serve --max-concurrency 16 --num-prompts 160")["prompts"]     # 160
    """
    try:
        words = shlex.split(re.sub(r"\\\s*\n", " ", line))
    except ValueError as error:
        raise InputError(f"client line: {str(error).lower()}; expected quotes in pairs") from error
    tool = _tool(" ".join(words))
    found = dict(_flags(tool, words))
    dataset = _value(words, tool.dataset) or str(tool.otherwise.get("dataset", "random"))
    given = {name: value for name, value in tool.otherwise.items() if name != "dataset"}
    if dataset.startswith("random"):
        given |= tool.random
    else:
        found = {name: value for name, value in found.items() if not name.endswith(("_asked", "range_ratio"))}
    given |= found
    if tool.ratio is not None and "range_ratio" in given:
        given["ratio_meaning"] = tool.ratio
    if "prefix_tokens" in given:
        given["input_tokens_asked"] = given.get("input_tokens_asked", 0) + given.pop("prefix_tokens")
    if given.get("request_rate") == "inf":
        given["request_rate"] = float("inf")
    return _of_guidellm(given)


def _tool(line: str) -> ClientTool:
    for tool in form_table().clients:
        if any(start in line for start in tool.starts):
            return tool
    starts = ", ".join(tool.starts[0] for tool in form_table().clients)
    raise InputError(
        f"client line: starts no client that is known (found {quoted(line)}); expected one of {starts}"
    )


def _flags(tool: ClientTool, words: list[str]) -> list[tuple[str, Any]]:
    """The flags of the table that are given, as fields."""
    found: list[tuple[str, Any]] = []
    for flag, field in tool.flags.items():
        text = _value(words, flag)
        if text is None:
            continue
        if field not in (*_WHOLE, *_REAL):
            found.append((field, text))
            continue
        number = _number(flag, text, -1 if field == "concurrency" else 0)
        if field in _WHOLE and not number.is_integer():
            raise InputError(f"client line: {flag} {text}: expected a whole number")
        if field == "concurrency" and number <= 0:
            continue  # all at once
        found.append((field, int(number) if field in _WHOLE else number))
    return found


def _number(flag: str, text: str, least: float = 0) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number >= least:
        raise InputError(f"client line: {flag} {text}: expected a number")
    return number


def _value(words: list[str], flag: str | None) -> str | None:
    """The word behind a flag, or behind its =; the last one holds. - and _ are alike."""
    value = None
    for place, word in enumerate(words):
        name, equals, behind = word.partition("=")
        if flag is None or name.replace("_", "-") != flag.replace("_", "-"):
            continue
        value = behind if equals else words[place + 1] if place + 1 < len(words) else None
    return value


def _of_guidellm(given: dict[str, Any]) -> dict[str, Any]:
    """Lengths of synthetic texts, and what a rate is of."""
    for name, tokens in _SYNTHETIC.findall(str(given.pop("data", ""))):
        given[{"prompt_tokens": "input_tokens_asked"}.get(name, "output_tokens_asked")] = int(tokens)
    kind, rate = given.pop("rate_type", None), given.pop("rate", None)
    if profile := _STREAMS.search(str(given.pop("profile", ""))):
        kind, rate = profile[1], _number("--profile", profile[3]) if profile[3] else None
    if kind == "synchronous":
        given["concurrency"] = 1
    elif kind == "concurrent" and rate:
        if not float(rate).is_integer():
            raise InputError(f"client line: {rate:g} streams: expected a whole number")
        given["concurrency"] = int(rate)
    elif kind in ("constant", "poisson") and rate is not None:
        given["request_rate"] = rate
    return given
