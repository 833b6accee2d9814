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
from math import ceil, floor
from typing import Any, Literal

from mantile.equations.kv_cache import limit_of
from mantile.estimates.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node
from mantile.ir.modules import Attention, LatentAttention, Recurrence
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
_BAND_OLDER, _BAND_UNIFIED = 0.05, 0.03  # more of older releases (0.90, graphs beside it), of shared memory
_MOST = 10_000_000  # tokens of a request that an estimate takes
_IN_FLIGHT = 2  # steps that a window keeps, since vLLM 0.26
_OF_MACHINE = (
    *("model", "accelerator", "system", "framework", "memory_taken", "tp_padding", "draft_model"),
    *("gpu_memory_utilization", "mem_fraction_static", "overrides", "profiles", "framework_support"),
    *("engine_release", "draft_parameters", "draft_layers", "draft_kv_channels"),
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
        room: for the KV cache, negative where the rest has none; `need`: of one request of a length; `most`:
            where windows keep the tokens of steps too; `band`: how far the room may be off.
    """

    room: float
    need: float
    most: float
    band: float

    @property
    def verdict(self) -> Verdict:
        if self.most <= self.room - self.band:
            return "starts"
        return "refuses" if self.need > self.room + self.band else "borderline"


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
    own = figures.get("model.max_positions")
    asked = int(scenario.max_model_len or (0 if own is None else _value(made, own)))
    if not asked:
        return None
    name = made.library.framework(engine).name
    if engine in REFUSES and (taken := _taken(made, name)) is not None:
        return taken
    try:
        room = _room(made, min(asked, _MOST))
    except InputError:
        return None
    if engine in CUTS:
        longest = asked if room.verdict == "starts" else _longest(made, asked)
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
    needs, longest = _longest_asked(made), _longest(made, asked)
    sure = longest >= needs
    if not sure:
        longest = _longest(made, asked, surely=False)
    of = "as stated" if stated else "the model's own, as none is stated"
    gb = 1e9
    said = (
        f"one request of {asked:,} tokens ({of}) needs {room.need / gb:.3g} GB of KV cache, and "
        f"{max(0.0, room.room) / gb:.3g} GB are free"
    )
    helps = []
    if longest >= needs:
        have = "have room" if sure else "just have room"
        helps.append(Help({"max_model_len": longest}, f"requests of up to {longest:,} tokens {have}"))
    if not made.scenario.gpu_memory_utilization:
        larger = start(made.again(made.scenario.replace(gpu_memory_utilization=_LARGER)))
        if larger is not None and larger.verdict == "starts":
            why = "a larger share of the memory has room for it"
            helps.append(Help({"gpu_memory_utilization": _LARGER}, why))
    verb = "refuses to start" if room.verdict == "refuses" else "may refuse to start"
    return Start(room.verdict, f"{name} {verb}: {said}", tuple(helps))


def _longest_asked(made: Estimate) -> float:
    """Tokens of the longest request of the load: of the longest class, and with the longest outputs."""
    results, values = made.results(), made.columns[0].values
    longer = max(1.0, float(values.get("p95_output_ratio") or 1))
    lengths = [results["input_tokens"] + longer * results["output_tokens"]]
    lengths += [
        (one.input_tokens or results["input_tokens"])
        + longer * (one.output_tokens or results["output_tokens"])
        for one in made.scenario.classes
    ]
    return float(max(lengths))


def _slots(made: Estimate, name: str) -> Start | None:
    """Batch slots are more than blocks of the cache, of a model that keeps states; None where they are not.

    A block holds the state of one group of layers. Only newest releases refuse, and with graphs alone.
    """
    values = made.columns[0].values
    if values.get("enforce_eager") == "on" or values.get("engine_release", "current") != "current":
        return None
    groups = _state_groups(made)
    if not groups:
        return None
    slots = _value(made, made.equations.figures["runtime.seats"])
    short = _room(made, _SHORTEST)  # what it needs is its states
    least, most = (max(0, floor(groups * (short.room + side * short.band) / short.need)) for side in (-1, 1))
    if slots <= least:
        return None
    refuses = slots > most
    helps = [
        Help({"max_requests": least * int(values.get("attention_dp") or 1)}, f"{least:,} surely have room")
    ]
    return Start(
        "refuses" if refuses else "borderline",
        f"{name} {'refuses' if refuses else 'may refuse'} to start: {slots:,.0f} batch slots (max_requests) "
        f"ask for a state each, and some {(least + most) // 2:,} have room",
        tuple(helps) if least else (),
    )


def _state_groups(made: Estimate) -> int:
    """Groups of layers with states, each as large as the layers of the rarer kind; 0 without states."""
    layers = {True: 0.0, False: 0.0}
    for module in made.equations.ir.modules:
        if (
            isinstance(module.operation, Recurrence | Attention | LatentAttention)
            and module.layers is not None
        ):
            layers[isinstance(module.operation, Recurrence)] += _value(made, module.layers)
    states, others = layers[True], layers[False]
    return ceil(states / min(states, others or states)) if states else 0


def _longest(made: Estimate, asked: int, surely: bool = True) -> int:
    """Tokens of the longest request that has room, a multiple of 256 where it is as long.

    Args:
        surely: with what the room may be off to spare.
    """
    low, high = 0, min(asked, _MOST) // _BLOCK
    while low < high:
        middle = (low + high + 1) // 2
        room = _room(made, max(_SHORTEST, middle * _BLOCK))
        if room.verdict == "starts" or (not surely and room.most <= room.room):
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
    def at(length: int, **fields: Any) -> Estimate:
        load: dict[str, Any] = {"input_tokens": length - 1, "output_tokens": 1, "concurrency": 1}
        return asked.made.again(Scenario(**(asked.fields | fields), **load))

    def need(made: Estimate) -> float:
        return float(made.values()[made.equations.fullest["startup.request"]])

    at_length = at(length)
    figures, values = at_length.equations.fullest, at_length.values()
    needed = most = need(at_length)
    windows = _windows(at_length)
    if windows and asked.fields.get("framework", "vllm") in REFUSES and "cache_policy" not in asked.fields:
        steps = _IN_FLIGHT * float(values[at_length.equations.decode_workers.rows["memory.step_tokens"]])
        kept = min(length, int(max(windows) + steps))
        most += max(0.0, need(at(kept, cache_policy="full-windows")) - need(at(kept)))
    older = asked.fields.get("engine_release", "current") != "current"
    chip = asked.made.library.accelerator(str(at_length.columns[0].values["accelerator"]))
    share = _BAND_SHARE + _BAND_OLDER * older + _BAND_UNIFIED * (chip.memory_free is not None)
    memory = float(values[figures["hardware.memory_capacity"]])
    return _Room(float(values[figures["memory.room"]]), needed, most, _BAND + share * memory)


def _windows(made: Estimate) -> list[float]:
    """Tokens that windows of the model hold."""
    limits = (limit_of(module) for module in made.equations.ir.modules)
    return [_value(made, limit) for limit in limits if limit is not None]


def _value(made: Estimate, figure: Node) -> float:
    return float(Program([figure]).run(made.inputs(0))[figure])
