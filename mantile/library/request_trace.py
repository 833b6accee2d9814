"""A trace of requests, as services log it, in numbers that a scenario takes: rate, classes, lengths.

A CSV with a line for each request: when it came, tokens of its prompt and of its answer, and its class if it
has one. Columns go by the names that public traces and serving engines give them.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from mantile.library.errors import InputError
from mantile.library.request_classes import MOST_CLASSES
from mantile.library.scenario_fields import MOST_REQUESTS, MOST_TOKENS

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "arrival": ("arrival", "arrival_time", "arrived_at", "timestamp", "time", "start_time"),
    "input_tokens": (
        "input_tokens",
        "prompt_tokens",
        "context_tokens",
        "contexttokens",
        "request_tokens",
        "num_prefill_tokens",
        "input_length",
        "isl",
    ),
    "output_tokens": (
        "output_tokens",
        "completion_tokens",
        "generated_tokens",
        "generatedtokens",
        "response_tokens",
        "num_decode_tokens",
        "output_length",
        "osl",
    ),
    "class": ("class", "request_class", "kind", "log_type", "type"),
    "session": ("session", "session_id", "conversation", "conversation_id", "chat_id", "user", "user_id"),
    "seconds": ("e2e", "e2e_latency", "e2e_s", "latency", "duration", "elapsed_time", "request_latency"),
}
"""What a column may be called, without regard to case and to what joins its parts."""
OTHERS = "others"
_MOST_SPREAD = 5.0  # of a field of a scenario


@dataclass(frozen=True)
class Lengths:
    """Requests of a class: how many, mean lengths, and standard deviations over them.

    Args:
        turns: requests of a session, on average, where prompts have what was said before at their head; None
            where they have not, or no column says which session a request belongs to.
        think_time: mean seconds from an answer to the next request of its session; None where no columns say
            when requests came and how long they took.
    """

    name: str
    requests: int
    input_tokens: float
    output_tokens: float
    input_spread: float
    output_spread: float
    turns: float | None = None
    think_time: float | None = None


@dataclass(frozen=True)
class _Line:
    """A request: tokens of prompt and answer, when it came, its session, and seconds to its last token."""

    prompt: float
    answer: float
    moment: float | None = None
    session: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class RequestTrace:
    """What a trace comes to.

    Args:
        requests: with a prompt and an answer; `left_out` had none, such as those that failed.
        seconds: from the first to the last; None where no column says when they came.
        rate: requests per second.
        burstiness: standard deviation of the time between two ÷ its mean: 1 where they come at random.
        classes: the largest first; where there are too many the smallest are together.
    """

    requests: int
    left_out: int
    seconds: float | None
    rate: float | None
    burstiness: float | None
    classes: tuple[Lengths, ...]

    def fields(self) -> dict[str, Any]:
        """The same as fields of a scenario."""
        rate = {} if self.rate is None else {"request_rate": _short(min(self.rate, MOST_REQUESTS))}
        if len(self.classes) == 1:
            return rate | _lengths(self.classes[0])
        return rate | {
            "classes": [
                {"name": one.name, "share": _short(one.requests / self.requests)} | _lengths(one)
                for one in self.classes
            ]
        }


def read_trace(path: str | Path) -> RequestTrace:
    """Read a trace.

    Raises:
        InputError: naming the file and line, if it cannot be read, or a column is missing or no number.

    Example:
        trace = read_trace("requests.csv")
        trace.rate, trace.fields()
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if not rows:
        raise InputError(f"{path}: empty; expected a line of column names, then one for each request")
    places = _places(rows[0], path)
    arrivals: list[float] = []
    lengths: dict[str, list[_Line]] = {}
    left_out = 0
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        where = f"{path}: line {number}"
        prompt, answer = (_tokens(row, places, name, where) for name in ("input_tokens", "output_tokens"))
        if prompt < 1 or answer < 1:
            left_out += 1
            continue
        came = _moment(_cell(row, places, "arrival"), where) if "arrival" in places else None
        if came is not None:
            arrivals.append(came)
        name = _cell(row, places, "class")[:30] if "class" in places else ""
        session = _cell(row, places, "session") if "session" in places else ""
        took = _took(_cell(row, places, "seconds"), where) if "seconds" in places else None
        lengths.setdefault(name or "requests", []).append(_Line(prompt, answer, came, session, took))
    if not lengths:
        raise InputError(f"{path}: no request with a prompt and an answer; expected one at least")
    seconds, rate, burstiness = _arrivals(arrivals)
    return RequestTrace(
        requests=sum(map(len, lengths.values())),
        left_out=left_out,
        seconds=seconds,
        rate=rate,
        burstiness=burstiness,
        classes=tuple(_classes(lengths)),
    )


def _places(heads: list[str], path: Path) -> dict[str, int]:
    """By what it is, the place of a column."""
    plain = [re.sub(r"[^a-z0-9]+", "_", head.strip().lower()).strip("_") for head in heads]
    places = {
        name: next(place for place, head in enumerate(plain) if head in known)
        for name, known in COLUMNS.items()
        if set(plain) & set(known)
    }
    for name in ("input_tokens", "output_tokens"):
        if name not in places:
            raise InputError(
                f"{path}: no column {name}; expected one of {', '.join(COLUMNS[name])}; "
                f"there are {', '.join(heads)}"
            )
    return places


def _cell(row: list[str], places: Mapping[str, int], name: str) -> str:
    return row[places[name]].strip() if places[name] < len(row) else ""


def _tokens(row: list[str], places: Mapping[str, int], name: str, where: str) -> float:
    text = _cell(row, places, name)
    try:
        value = float(text or 0)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_TOKENS:
        raise InputError(f"{where}: {name}: {text!r}; expected a number from 0 to {MOST_TOKENS:,}")
    return value


def _moment(text: str, where: str) -> float:
    """Seconds, or a date with a time."""
    try:
        value = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: arrival: {text!r}; expected seconds, or 2026-11-23 12:00:00")
    return value


def _took(text: str, where: str) -> float | None:
    """Seconds from arrival to the last token; None where the line does not say it."""
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0 <= value < math.inf:
        raise InputError(f"{where}: seconds of a request: {text!r}; expected a number of at least 0")
    return value


def _sessions(lines: list[_Line]) -> tuple[float | None, float | None]:
    """Turns of a session and think time; None for what the trace does not say.

    Turns are told where most prompts are at least as long as the prompt and the answer before: then they have
    what was said at their head.
    """
    sessions: dict[str, list[_Line]] = {}
    for line in lines:
        if line.session:
            sessions.setdefault(line.session, []).append(line)
    if not sessions:
        return None, None
    pairs = []
    for session in sessions.values():
        timed = [line for line in session if line.moment is not None]
        ordered = sorted(timed, key=lambda line: line.moment or 0) if len(timed) == len(session) else session
        pairs += list(pairwise(ordered))
    whole = sum(later.prompt >= before.prompt + before.answer for before, later in pairs)
    turns = sum(map(len, sessions.values())) / len(sessions) if pairs and 2 * whole >= len(pairs) else None
    thought = [
        max(0.0, later.moment - before.moment - before.seconds)
        for before, later in pairs
        if later.moment is not None and before.moment is not None and before.seconds is not None
    ]
    return turns, fmean(thought) if thought else None


def _arrivals(moments: list[float]) -> tuple[float | None, float | None, float | None]:
    """Seconds that the trace lasts, requests per second, and how uneven the times between them are."""
    gaps = [later - earlier for earlier, later in pairwise(sorted(moments))]
    seconds = sum(gaps)
    if seconds <= 0:
        return None, None, None
    mean = fmean(gaps)
    return seconds, 1 / mean, pstdev(gaps) / mean


def _classes(lengths: Mapping[str, list[_Line]]) -> Iterable[Lengths]:
    """The largest first; the smallest together where there are more than a scenario may have."""
    ordered = sorted(lengths.items(), key=lambda item: (-len(item[1]), item[0]))
    kept = ordered if len(ordered) <= MOST_CLASSES else ordered[: MOST_CLASSES - 1]
    rest = [line for _, lines in ordered[len(kept) :] for line in lines]
    for name, lines in (*kept, *([(OTHERS, rest)] if rest else ())):
        prompts, answers = [line.prompt for line in lines], [line.answer for line in lines]
        turns, think_time = _sessions(lines)
        yield Lengths(
            name=name,
            requests=len(lines),
            input_tokens=fmean(prompts),
            output_tokens=fmean(answers),
            input_spread=pstdev(prompts) / fmean(prompts),
            output_spread=pstdev(answers) / fmean(answers),
            turns=turns,
            think_time=think_time,
        )


def _lengths(one: Lengths) -> dict[str, Any]:
    said = {"turns": one.turns, "think_time": one.think_time}
    return {name: _short(value) for name, value in said.items() if value is not None} | {
        "input_tokens": max(1, round(one.input_tokens)),
        "output_tokens": max(1, round(one.output_tokens)),
        "input_spread": min(_MOST_SPREAD, _short(one.input_spread)),
        "output_spread": min(_MOST_SPREAD, _short(one.output_spread)),
    }


def _short(value: float) -> float:
    """Four digits that mean something."""
    return float(f"{value:.4g}")
