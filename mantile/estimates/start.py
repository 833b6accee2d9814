"""Does the server start? What an engine makes sure of before it takes the first request, and what helps.

vLLM sets room aside for one request of its longest length, the model's own unless it is told another,
and for a state of every batch slot of a model that keeps states. Where that room is not there it refuses to
start. SGLang and TensorRT-LLM start and take shorter requests.
Source: vLLM 0.20 to 0.33, v1/core/kv_cache_utils.py and v1/worker/gpu_worker.py; SGLang 0.5,
srt/mem_cache; TensorRT-LLM 1.x, pyexecutor/resource_manager.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor
from typing import Any, Literal

from mantile.estimates.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named
from mantile.ir.modules import Recurrence
from mantile.library.errors import InputError
from mantile.library.launch_line import ENGINE_FIELDS
from mantile.library.scenario import Scenario

Verdict = Literal["starts", "refuses", "borderline"]

REFUSES = ("vllm",)
"""Engines that refuse to start without room for one request of the longest length."""
CUTS = ("sglang", "trtllm")
"""Engines that start, and turn longer requests away."""
_KEPT = 1024  # rooms: that of a length takes some milliseconds
_SHORTEST = 2  # tokens of a request
_BLOCK = 16  # tokens of a block of the KV cache
_LARGER = 0.95  # share of the memory that an engine may be told to take
_ROUND = 256  # tokens that a proposed length is a multiple of
_GIB = 2.0**30
_BAND, _BAND_SHARE = _GIB, 0.02  # bytes, and share of the memory, by which room is not known better
_OF_MACHINE = (
    *("model", "accelerator", "system", "framework", "memory_taken", "tp_padding", "draft_model"),
    *("gpu_memory_utilization", "mem_fraction_static", "overrides", "profiles", "framework_support"),
)


@dataclass(frozen=True)
class Help:
    """A change with which the server starts: fields of the scenario, and why."""

    fields: dict[str, Any]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """One of `helps` in --json."""
        return {"fields": self.fields, "why": self.why}


@dataclass(frozen=True)
class Start:
    """Whether a server starts.

    Args:
        verdict: starts; refuses; or borderline, where the room is not known well enough.
        message: why, in words.
        helps: changes with which it starts; none where it starts anyway.
    """

    verdict: Verdict
    message: str
    helps: tuple[Help, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """`starts` of `mantile estimate --json`."""
        return {
            "verdict": self.verdict,
            "message": self.message,
            "helps": [one.to_dict() for one in self.helps],
        }


@dataclass(frozen=True)
class _Room:
    """Bytes of the fullest rank.

    Args:
        room: for the KV cache; `need`: of one request of a length; `memory`: of the accelerator.
    """

    room: float
    need: float
    memory: float

    @property
    def band(self) -> float:
        """How far the room may be off."""
        return _BAND + _BAND_SHARE * self.memory

    @property
    def verdict(self) -> Verdict:
        if self.need <= self.room - self.band:
            return "starts"
        return "refuses" if self.need > self.room else "borderline"


def start(made: Estimate) -> Start | None:
    """Whether the server of the base scenario starts; None where its engine's rules are not known.

    Example:
        made = mantile.estimate(
            model="llama-3.1-8b", accelerator="rtx-4090", input_tokens=1000, output_tokens=256, concurrency=8
        )
        start(made).verdict    # "refuses"
    """
    scenario, values = made.scenario, made.columns[0].values
    engine, figures = str(values["framework"]), made.equations.figures
    if engine not in (*REFUSES, *CUTS) or scenario.devices or scenario.disaggregated:
        return None
    if "model.max_positions" not in figures:
        return None
    own = int(_value(made, figures["model.max_positions"]))
    asked = int(scenario.max_model_len or own)
    name = made.library.framework(engine).name
    if engine in REFUSES and (taken := _taken(made, name)) is not None:
        return taken
    try:
        room = _room(made, asked)
    except InputError:
        return None
    if engine in CUTS:
        longest = asked if room.verdict == "starts" else min(asked, _longest(made, asked))
        cut = "" if longest >= asked else f"; requests longer than some {longest:,} tokens are turned away"
        return Start("starts", f"{name} starts{cut}")
    if room.verdict != "starts":
        return _without_length(made, name, asked, room, bool(scenario.max_model_len))
    slots = _slots(made, name)
    return slots or Start("starts", f"{name} starts with requests of up to {asked:,} tokens")


def _taken(made: Estimate, name: str) -> Start | None:
    """The share of memory that is asked for is not free, of a memory that the system uses too."""
    free = made.library.accelerator(str(made.columns[0].values["accelerator"])).memory_free
    if free is None or free.value is None:
        return None
    rows, values = made.equations.decode_workers.rows, made.values()
    asked, left = float(values[rows["memory.usable"]]), free.value * _GIB
    if asked <= left:
        return None
    most = floor(100 * left / float(values[rows["hardware.memory_seen"]])) / 100
    return Start(
        "refuses",
        f"{name} refuses to start: it asks for {asked / _GIB:,.4g} GiB, and at best {free.value:,.4g} "
        "GiB are free beside the system",
        (Help({"gpu_memory_utilization": most}, "as much as is free"),),
    )


def _without_length(made: Estimate, name: str, asked: int, room: _Room, stated: bool) -> Start:
    """The room is not enough, or may not be, for one request of the longest length."""
    results = made.results()
    needs = results["input_tokens"] + results["output_tokens"]
    longest = _longest(made, asked)
    if longest < needs:
        longest = _longest(made, asked, surely=False)
    of = "as stated" if stated else "the model's own, as none is stated"
    gb = 1e9
    said = (
        f"one request of {asked:,} tokens ({of}) needs {room.need / gb:.3g} GB of KV cache, and "
        f"{room.room / gb:.3g} GB are free"
    )
    helps = []
    if longest >= needs:
        helps.append(Help({"max_model_len": longest}, f"requests of up to {longest:,} tokens have room"))
    if not made.scenario.gpu_memory_utilization:
        larger = made.again(made.scenario.replace(gpu_memory_utilization=_LARGER))
        if _room(larger, asked).verdict != "refuses":
            why = "a larger share of the memory has room for it"
            helps.append(Help({"gpu_memory_utilization": _LARGER}, why))
    verb = "refuses to start" if room.verdict == "refuses" else "may refuse to start"
    return Start(room.verdict, f"{name} {verb}: {said}", tuple(helps))


def _slots(made: Estimate, name: str) -> Start | None:
    """A state of every batch slot has no room, of a model that keeps states; None where it has."""
    if not any(isinstance(module.operation, Recurrence) for module in made.equations.ir.modules):
        return None
    slots = _value(made, made.equations.figures["runtime.seats"])
    short = _room(made, _SHORTEST)  # what it needs is its states
    places = floor(short.room / short.need)
    if slots <= places:
        return None
    return Start(
        "refuses",
        f"{name} refuses to start: {slots:,.0f} batch slots (max_requests) ask for a state each, and "
        f"{places:,} have room",
        (Help({"max_requests": places}, f"{places:,} batch slots have room for their states"),),
    )


def _longest(made: Estimate, asked: int, surely: bool = True) -> int:
    """Tokens of the longest request that has room, a multiple of 256 where it is as long.

    Args:
        surely: with what the room may be off to spare.
    """
    enough = ("starts",) if surely else ("starts", "borderline")
    low, high = 0, asked // _BLOCK
    while low < high:
        middle = (low + high + 1) // 2
        if _room(made, max(_SHORTEST, middle * _BLOCK)).verdict in enough:
            low = middle
        else:
            high = middle - 1
    longest = low * _BLOCK
    return longest // _ROUND * _ROUND if longest >= _ROUND else longest


def _room(made: Estimate, length: int) -> _Room:
    """The room for the KV cache of an engine that takes requests of a length, and what one of them needs."""
    stated = made.scenario.model_dump(exclude_none=True, exclude_defaults=True)
    kept = {name: stated[name] for name in (*_OF_MACHINE, *ENGINE_FIELDS) if name in stated}
    kept.pop("max_model_len", None)
    key = id(made.library), id(made.model), json.dumps(kept, sort_keys=True, default=str)
    return _room_of(_Deployment(key, made, kept), length)


@dataclass(frozen=True)
class _Deployment:
    """What the room follows from: servers that are asked for in the same words have the same.

    Args:
        key: the objects that library and model are, which the cache keeps alive, and the fields.
    """

    key: tuple[int, int, str]
    made: Estimate = field(compare=False)
    fields: dict[str, Any] = field(compare=False)


@lru_cache(_KEPT)
def _room_of(asked: _Deployment, length: int) -> _Room:
    load: dict[str, Any] = {"input_tokens": length - 1, "output_tokens": 1, "concurrency": 1}
    at_length = asked.made.again(Scenario(**asked.fields, **load))
    figures, values = at_length.equations.fullest, at_length.values()
    return _Room(
        float(values[figures["memory.kv_room"]]),
        float(values[figures["startup.request"]]),
        float(values[figures["hardware.memory_capacity"]]),
    )


def _value(made: Estimate, figure: Named) -> float:
    return float(Program([figure]).run(made.inputs(0))[figure])
