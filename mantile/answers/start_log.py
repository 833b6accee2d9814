"""Why a server did not start, from its log: what it took, what was expected, the cause, and what helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any

from mantile.answers.estimate import Answer
from mantile.answers.text import scaled
from mantile.answers.ways import Way
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.start import start
from mantile.library.errors import InputError
from mantile.library.launch_table import launch_tables
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.measured.spellings import find_accelerator, find_model
from mantile.measured.start_logs import BUFFERS, CACHE, CAUSES, GRAPHS, WEIGHTS, StartLog

_OF_LOG = ("tp", "pp", "max_model_len", "max_requests", "gpu_memory_utilization", "mem_fraction_static")
_NO_HELP: Mapping[str, tuple[str, ...]] = {
    "weights": ("max_model_len", "gpu_memory_utilization", "enforce_eager"),
    "length": ("max_requests", "token_budget"),
    "slots": ("max_model_len", "token_budget"),
    "no_cache": ("max_model_len",),
}
"""Fields that people change and that do not help, by cause."""
_FEWER_SLOTS, _LESS, _MORE = 4, 0.05, 0.03  # slots are divided by; shares of memory that are left or taken
_SLOTS = 64  # to try, where the log does not say how many there are
_SHARE, _SHARE_BEFORE, _SINCE = 0.92, 0.9, [0, 20]  # of memory that vLLM takes by itself, by release
_SHARES = {"gpu_memory_utilization": ("vllm",), "mem_fraction_static": ("sglang",)}
_USUAL = {"input_tokens": 1000, "output_tokens": 256, "concurrency": 1}
_ENGINES = {"ollama": "llama.cpp"}


@dataclass(frozen=True)
class Helps:
    """A change that helps, or that is worth a try: a flag of the engine, and why.

    Args:
        sure: whether the log or the estimate shows that it helps.
    """

    words: str
    why: str
    fields: Mapping[str, Any]
    sure: bool = True

    def to_dict(self) -> dict[str, Any]:
        """One of `helps` in --json."""
        return {"words": self.words, "why": self.why, "fields": dict(self.fields), "sure": self.sure}


def _known(find: Callable[[str], Any], called: str, what: str, flag: str) -> Any:
    """What the library knows under a name of the log.

    Raises:
        InputError: where it knows none, with the flag that says what is meant.
    """
    try:
        return find(called)
    except InputError as error:
        raise InputError(
            f"{what} {called!r} of the log is not known; say which it is: {flag} ({error})"
        ) from error


class Diagnosis:
    """What a start-up log says, beside the estimate of the same server.

    Args:
        log: as it was read.
        stated: fields of a scenario that the log does not say, or that go before it: accelerator, model.

    Raises:
        InputError: for a model or an accelerator that neither the log nor the fields name.

    Example:
        Diagnosis(read_start_log(text), {"accelerator": "rtx-4090"}).sentence
    """

    def __init__(self, log: StartLog, stated: Mapping[str, Any], name: str = "log") -> None:
        self.log = log
        fields: dict[str, Any] = {
            field: log.fields[field] for field in _OF_LOG if log.fields.get(field) and field not in stated
        }
        fields |= {"framework": _ENGINES.get(log.engine, log.engine), **_USUAL, **stated}
        if "model" not in fields:
            if not log.model:
                raise InputError(f"{name}: it does not name the model; state it: --model ID")
            found = _known(find_model, log.model, f"{name}: model", "--model ID")
            fields |= {"model": found.id}
            if str(log.fields.get("kv_dtype", "")).startswith("fp8"):
                fields = {"kv_dtype": "fp8"} | fields
            if found.weights_dtype and "weights_dtype" not in fields:
                fields |= {"weights_dtype": found.weights_dtype}
        if "accelerator" not in fields:
            fields |= {"accelerator": self._card(name)}
        longest = fields.get("max_model_len")
        if longest and longest <= fields["input_tokens"] + fields["output_tokens"]:
            fields |= {"input_tokens": max(1, int(longest) - 1), "output_tokens": 1}
        self.made: Estimate = estimate(Scenario(**fields), name=name)

    def _card(self, name: str) -> str:
        if not self.log.card_name:
            raise InputError(f"{name}: it does not name the accelerator; state it: --gpu rtx-4090")
        found = _known(find_accelerator, self.log.card_name, f"{name}: accelerator", "--gpu ID")
        return str(found.id)

    @cached_property
    def answer(self) -> Answer:
        """Of the same server."""
        return Answer(self.made)

    @property
    def engine(self) -> str:
        """What people call it."""
        return load_library().framework(_ENGINES.get(self.log.engine, self.log.engine)).name

    @cached_property
    def predicted(self) -> dict[str, float]:
        """Bytes of one accelerator by the parts of the log, and kv_tokens."""
        fullest, values = self.made.equations.fullest, self.made.values()
        weights, kept, tokens, runtime, buffers = (
            float(values[fullest[name]])
            for name in (
                "memory.weights",
                "memory.kv_room",
                "startup.kv_tokens",
                "memory.reserve",
                "memory.activations",
            )
        )
        return {WEIGHTS: weights, CACHE: kept, BUFFERS: buffers + runtime, "kv_tokens": tokens}

    @cached_property
    def sentence(self) -> str:
        """Why it did not start, in one or two sentences."""
        log, card = self.log, self.answer.machines
        if not log.cause:
            return f"{self.engine} started: the log has no error. What it took stands beside the estimate."
        said = CAUSES[log.cause]
        need = scaled(self._need, "B")
        if log.cause == "weights":
            said = f"the weights do not fit: {self.made.model.name} needs {need}, {self._has}"
        elif log.cause == "length":
            asked = self._asked
            said = f"one request of {asked:,.0f} tokens has no room" if asked else said
            if log.needed and CACHE in log.took:
                needs, free = scaled(log.needed, "B"), scaled(log.took[CACHE], "B")
                said = f"{said}: it needs {needs} of KV cache, and {free} are free"
        elif log.cause == "slots" and log.asked and log.longest:
            said = f"{log.asked:,.0f} batch slots ask for a state each, and {log.longest:,.0f} have room"
        return f"{said[0].upper()}{said[1:]}, on {card}."

    @property
    def _need(self) -> float:
        return self.predicted[WEIGHTS] + self.predicted[BUFFERS]

    @property
    def _has(self) -> str:
        total = self.log.card_total
        return f"this accelerator has {scaled(self.answer.usable if total is None else total, 'B')}"

    @property
    def _asked(self) -> float | None:
        return self.log.asked or self.log.fields.get("max_model_len")

    @cached_property
    def rows(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """What the engine took and what was expected, in bytes of one accelerator; tokens of the KV cache."""
        names = {WEIGHTS: "weights", CACHE: "KV cache", GRAPHS: "graphs", BUFFERS: "buffers and the rest"}
        rows = [
            (words, self.log.took.get(key), self.predicted.get(key))
            for key, words in names.items()
            if key in self.log.took or key in self.predicted
        ]
        return tuple(rows)

    @cached_property
    def helps(self) -> tuple[Helps, ...]:
        """Flags of the engine that help, the one that gives up least first."""
        return tuple(self._helps())

    def _helps(self) -> Iterator[Helps]:
        log, share, field = self.log, self._share, self._share_field
        less = round(share - _LESS, 2)
        slots = int(log.asked or log.fields.get("max_requests") or 0)
        if log.cause == "length":
            longest = log.longest or self._longest()
            if longest:
                yield self._flag("max_model_len", int(longest), "so many tokens have room")
            needed, free = log.needed, log.took.get(CACHE)
            if needed is None or free is None:
                return
            if share + _MORE < 1 and needed <= free + _MORE * self._card_bytes:
                yield self._flag(field, round(share + _MORE, 2), "more of the memory")
            if needed / 2 <= free and "kv_dtype" not in log.fields:
                yield self._flag("kv_dtype", "fp8", "half the bytes of a token")
        elif log.cause == "slots" and log.longest:
            yield self._flag("max_requests", int(log.longest), "so many states have room")
        elif log.cause == "not_free" and log.free and log.card_total:
            left = floor(100 * log.free / log.card_total) / 100
            yield self._flag(field, left, "as much as is free; other programs hold the rest")
        elif log.cause in ("sampler", "capture", "buffers", "serving"):
            fewer = max(1, slots // _FEWER_SLOTS) if slots else _SLOTS
            yield self._flag("max_requests", fewer, "sampling and graphs are for fewer requests", sure=False)
            yield self._flag(field, less, "leaves more beside the cache", sure=False)
        elif log.cause == "no_cache" and share + _MORE < 1:
            more = round(share + _MORE, 2)
            if log.took.get(WEIGHTS, 0.0) < more * self._card_bytes:
                yield self._flag(field, more, "more of the memory", sure=False)

    @property
    def _share_field(self) -> str:
        return "mem_fraction_static" if self.log.engine == "sglang" else "gpu_memory_utilization"

    @property
    def _share(self) -> float:
        """Of memory that the engine was told to take, or takes by itself."""
        release = [int(part) for part in re.findall(r"\d+", self.log.release)[:2]]
        usual = _SHARE if not release or release >= _SINCE else _SHARE_BEFORE
        return float(self.log.fields.get(self._share_field) or usual)

    @property
    def _card_bytes(self) -> float:
        fullest = self.made.equations.fullest["hardware.memory_capacity"]
        return self.log.card_total or float(self.made.values()[fullest])

    def _longest(self) -> int | None:
        found = start(self.made)
        fields = {} if found is None else {k: v for one in found.helps for k, v in one.fields.items()}
        return fields.get("max_model_len")

    def _flag(self, field: str, value: Any, why: str, sure: bool = True) -> Helps:
        """A field as the flag of the engine."""
        return Helps(f"{self._spelt(field) or field} {value}", why, {field: value}, sure)

    def _spelt(self, field: str) -> str | None:
        """The flag of the engine for a field; None where it has none."""
        table = launch_tables().get(_ENGINES.get(self.log.engine, self.log.engine))
        flags = [] if table is None else table.of_field(field)
        if flags:
            return flags[0].name
        longest = None if table is None or field != "max_model_len" else table.of_fact("longest")
        if longest is not None or field not in _SHARES:
            return None if longest is None else longest.name
        return None if self.log.engine not in _SHARES[field] else f"--{field.replace('_', '-')}"

    @cached_property
    def no_help(self) -> tuple[str, ...]:
        """Flags that people try, and that do not help here."""
        fields = [field for field in _NO_HELP.get(self.log.cause, ()) if field in SCENARIO_FIELDS]
        return tuple(flag for field in fields if (flag := self._spelt(field)))

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Other plans that fit, where the estimate too has no room."""
        return self.answer.ways

    def to_dict(self) -> dict[str, Any]:
        """What `mantile why --json` prints: sizes in bytes of one accelerator."""
        parts = (WEIGHTS, CACHE, GRAPHS, BUFFERS, "kv_tokens")
        return {
            "engine": self.log.engine,
            "release": self.log.release or None,
            "model": self.made.model.id,
            "sentence": self.sentence,
            "cause": self.log.cause or None,
            "said": self.log.said or None,
            "took": {part: self.log.took.get(part) for part in parts},
            "predicted": {part: self.predicted.get(part) for part in parts},
            "helps": [one.to_dict() for one in self.helps],
            "no_help": list(self.no_help),
            "remedies": [way.to_dict() for way in self.ways],
        }
