"""The memory of the fullest accelerator, where workers or devices have accelerators of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.startup import StartUp
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    choose,
    equal,
    match,
    maximum,
    minimum,
    span,
    where,
)
from mantile.graph.rows import Rows

FULLEST = "fullest."
_LABELS = {
    "used": "Memory used",
    "usable": "Usable memory",
    "weights": "Weights",
    "kv": "KV cache",
    "activations": "Activations",
    "logits": "Logits",
    "reserve": "Runtime",
    "free": "Free memory",
    "outside": "Memory left to others",
}
_RANGED = {
    "weights": "Weights, fullest device",
    "kv_tokens": "Tokens of the KV cache, device with least room",
    "peak_memory": "Memory in use after the start, fullest device",
}
_PARTS = ("used", "usable", "weights", "kv", "activations", "logits", "reserve", "free", "outside")


@dataclass(frozen=True)
class Fullest:
    """What lies in the memory of the fullest accelerator, in B.

    Args:
        capacity: of the accelerator; `usable` what of it a framework may use.
        kv_tokens, requests: for which the KV cache of a rank has room: of those that decode, or of the device
            with least room.
        peak: in use when the server has started; `ranges` p10 and p90 of weights, KV tokens and peak.
        host: main memory of the machine with most; `host_range` its p10 and p90.
        section: the rows that choose between prefill and decode workers; None where these are the same.
    """

    used: Quantity
    usable: Quantity
    weights: Quantity
    kv: Quantity
    activations: Quantity
    logits: Quantity
    reserve: Quantity
    free: Quantity
    outside: Quantity
    capacity: Quantity
    kv_tokens: Quantity
    requests: Quantity
    peak: Quantity
    ranges: Mapping[str, tuple[Quantity, Quantity]]
    host: Quantity
    host_range: tuple[Quantity, Quantity]
    section: Section | None


def fullest(sets: tuple[Workers, ...]) -> Fullest:
    """The accelerator of which the largest share of usable memory is taken."""
    first, last = sets[0], sets[-1]
    if first is last:
        parts = {name: getattr(first.memory, name) for name in _PARTS}
        return Fullest(
            **parts,
            **_started(first.memory.startup),
            capacity=first.hardware.memory_capacity,
            host=first.memory.startup.host,
            host_range=first.memory.startup.host_range,
            section=None,
        )
    if first.ranks.disaggregated is None:
        return _of_devices(sets)
    rows = Rows(f"{FULLEST}memory")
    fuller = rows(
        "of_prefill",
        "Prefill workers are fuller",
        "flag",
        where(
            first.memory.used * last.memory.usable > last.memory.used * first.memory.usable,
            1,
            0,
        ),
        "by the share of usable memory",
    )

    def chosen(name: str, prefill: Quantity, decode: Quantity) -> Quantity:
        label = f"{prefill.label}, fullest accelerator"
        return rows(name, label, prefill.unit, where(fuller > 0, prefill, decode))

    parts = {name: chosen(name, getattr(first.memory, name), getattr(last.memory, name)) for name in _PARTS}
    capacity = _capacity(where(fuller > 0, first.hardware.memory_capacity, last.hardware.memory_capacity))
    rows.add(capacity)
    host, host_range = _host(rows, sets)
    section = rows.section("Fullest accelerator", "of both workers")
    return Fullest(
        **parts,
        **_started(last.memory.startup),
        capacity=capacity,
        host=host,
        host_range=host_range,
        section=section,
    )


def _started(of: StartUp) -> dict[str, Any]:
    return {"kv_tokens": of.kv_tokens, "requests": of.requests, "peak": of.peak, "ranges": of.ranges}


def _host(
    rows: Rows, sets: Sequence[Workers], together: Sequence[Node] = ()
) -> tuple[Quantity, tuple[Quantity, Quantity]]:
    """Main memory of the machine with most, and its p10 and p90.

    Args:
        together: of each set the ranks on its machine against its own; none: no machine is shared.
    """
    started, after = [of.memory.startup for of in sets], Rows(f"{FULLEST}startup", rows=rows.rows)
    scales = together or [as_node(1)] * len(sets)
    each: list[list[Node]] = [
        [size * scale if together else size for size in (of.host, *of.host_range)]
        for of, scale in zip(started, scales, strict=True)
    ]
    label = started[0].host.label
    ends = zip(("", ".p10", ".p90"), ("", ", p10", ", p90"), zip(*each, strict=True), strict=True)
    host, low, high = (
        after(f"host{end}", f"{label}{name}, the one with most", "B", maximum(*sizes))
        for end, name, sizes in ends
    )
    return host, (low, high)


def _together(rows: Rows, sets: Sequence[Workers]) -> list[Quantity]:
    """Of each device the ranks on its machine, of all devices that are alike, against its own there."""
    found = []
    counted = sets[0].ranks.counted
    for number, of in enumerate(sets, start=1):
        alike = [
            where(
                all_of(
                    count > 0,
                    equal(of.inputs.accelerator, other.inputs.accelerator),
                    equal(of.inputs.system, other.inputs.system),
                ),
                other.ranks.deployment,
                0,
            )
            for other, count in zip(sets, counted, strict=True)
        ]
        label = f"Ranks of devices like device {number}"
        all_alike = rows(
            f"alike.{number}",
            label,
            "accelerator",
            rows.added(f"alike.{number}", label, "accelerator", alike, most=1),
        )
        room = of.hardware.host_accelerators
        found.append(
            rows(
                f"together.{number}",
                f"Ranks on the machine of device {number}, against its own",
                "1",
                where(
                    counted[number - 1] > 0,
                    minimum(all_alike, room) / minimum(of.ranks.deployment, room),
                    0,
                ),
            )
        )
    return found


def _capacity(body: Node) -> Quantity:
    """Memory of the fullest, under the id by which results find it."""
    label = "Memory of the fullest accelerator"
    return Quantity(f"{FULLEST}hardware.memory_capacity", label, "B", body)


def _of_devices(sets: tuple[Workers, ...]) -> Fullest:
    """The fullest of several devices that are not alike."""
    rows = Rows(f"{FULLEST}memory")
    shares = [
        rows(
            f"share.{number}",
            f"Share of usable memory, device {number}",
            "1",
            where(count > 0, 1, 0)
            * where(
                of.memory.usable > 0,
                of.memory.used / of.memory.usable,
                1 + of.memory.used / of.hardware.memory_capacity,
            ),
        )
        for number, (of, count) in enumerate(zip(sets, sets[0].ranks.counted, strict=True), start=1)
    ]
    place = rows("device", "Fullest device", "number", match(maximum(*shares), span(shares)))

    def chosen(name: str, each: Sequence[Quantity]) -> Quantity:
        return rows(name, f"{_LABELS[name]}, fullest device", each[0].unit, choose(place, *each))

    parts = {name: chosen(name, [getattr(of.memory, name) for of in sets]) for name in _PARTS}
    capacity = _capacity(choose(place, *(of.hardware.memory_capacity for of in sets)))
    rows.add(capacity)
    started = [of.memory.startup for of in sets]
    after = Rows(f"{FULLEST}startup", rows=rows.rows)
    kv_tokens = after(
        "kv_tokens",
        "Tokens for which the KV cache has room, device with least room",
        "token",
        minimum(*(of.kv_tokens for of in started)),
    )
    requests = after(
        "requests",
        "Requests of this length that it holds",
        "request",
        minimum(*(of.requests for of in started)),
    )
    peak = after(
        "peak",
        "Memory in use after the start, fullest device",
        "B",
        choose(place, *(of.peak for of in started)),
    )
    ranges = {name: _range(after, name, place, [of.ranges[name] for of in started]) for name in _RANGED}
    host, host_range = _host(rows, sets, _together(rows, sets))
    section = rows.section("Fullest device", "by the share of usable memory")
    return Fullest(
        **parts,
        capacity=capacity,
        kv_tokens=kv_tokens,
        requests=requests,
        peak=peak,
        ranges=ranges,
        host=host,
        host_range=host_range,
        section=section,
    )


def _range(
    rows: Rows, name: str, place: Node, each: Sequence[tuple[Quantity, Quantity]]
) -> tuple[Quantity, Quantity]:
    """p10 and p90 of the device with least room for a KV cache, or else of the fullest."""
    low, high = (
        rows(
            f"range.{name}.{percentile}",
            f"{_RANGED[name]}, {percentile}",
            ends[0].unit,
            minimum(*ends) if name == "kv_tokens" else choose(place, *ends),
        )
        for percentile, ends in zip(("p10", "p90"), zip(*each, strict=True), strict=True)
    )
    return low, high
