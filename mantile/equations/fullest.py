"""The memory of the fullest accelerator, where workers or devices have accelerators of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, choose, match, maximum, minimum, span, where
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
_PARTS = ("used", "usable", "weights", "kv", "activations", "logits", "reserve", "free", "outside")


@dataclass(frozen=True)
class Fullest:
    """What lies in the memory of the fullest accelerator, in B.

    Args:
        capacity: of the accelerator; `usable` what of it a framework may use.
        fits: 1 where accelerators hold their part: those that decode, or all devices.
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
    fits: Quantity
    section: Section | None


def fullest(sets: tuple[Workers, ...]) -> Fullest:
    """The accelerator of which the largest share of usable memory is taken."""
    first, last = sets[0], sets[-1]
    if first is last:
        parts = {name: getattr(first.memory, name) for name in _PARTS}
        return Fullest(**parts, capacity=first.hardware.memory_capacity, fits=first.memory.fits, section=None)
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
    section = rows.section("Fullest accelerator", "of both workers")
    return Fullest(**parts, capacity=capacity, fits=last.memory.fits, section=section)


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
            where(
                of.memory.usable > 0,
                of.memory.used / of.memory.usable,
                1 + of.memory.used / of.hardware.memory_capacity,
            ),
        )
        for number, of in enumerate(sets, start=1)
    ]
    place = rows("device", "Fullest device", "number", match(maximum(*shares), span(shares)))

    def chosen(name: str, each: Sequence[Quantity]) -> Quantity:
        return rows(name, f"{_LABELS[name]}, fullest device", each[0].unit, choose(place, *each))

    parts = {name: chosen(name, [getattr(of.memory, name) for of in sets]) for name in _PARTS}
    capacity = _capacity(choose(place, *(of.hardware.memory_capacity for of in sets)))
    rows.add(capacity)
    fits = rows("fits", "Every device fits", "flag", minimum(*(of.memory.fits for of in sets)))
    section = rows.section("Fullest device", "by the share of usable memory")
    return Fullest(**parts, capacity=capacity, fits=fits, section=section)
