"""Which accelerators are shown, with what each of them holds, and the messages they send.

What each holds stands in placement.eq.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.display import converted
from mantile.equations.graph import EstimateGraph
from mantile.equations.roofline import Block
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, Node, Quantity, all_of, as_node, where
from mantile.library.scenario_fields import MOST_STAGES

MOST_SHOWN = 72
BAND = 8  # accelerators side by side


@dataclass(frozen=True)
class SentMessage:
    """A kind of message in a phase, as an accelerator sends it; a lone rank sends none.

    Args:
        algorithm: by which it is sent, where there is a choice.
        size: bytes of one message, where it has a size.
        number: of messages; `time` of one in us.
    """

    algorithm: Node | None
    size: Node | None
    number: Node
    time: Node


@dataclass(frozen=True)
class Message:
    """A kind of message: between which ranks, and how it is sent in each phase; None: not in this one."""

    label: str
    between: str
    prefill: SentMessage | None
    decode: SentMessage | None


def messages(graph: EstimateGraph) -> tuple[Message, ...]:
    """Every kind of message of both phases: over which links, how large, how often, how long."""
    prefill, decode = (
        {block.id: block for block in phase.blocks if block.network}
        for phase in (graph.prefill, graph.decode)
    )
    return tuple(
        Message(block.label, block.section.note, _sent(prefill.get(name)), _sent(decode.get(name)))
        for name, block in (prefill | decode).items()
    )


def _sent(block: Block | None) -> SentMessage | None:
    if block is None:
        return None
    rows = {figure.id.rpartition(".")[2]: figure for figure in block.section.figures()}
    sent = all_of(rows["count"] > 0, rows["layer_time"] > 0)
    size = rows.get("message_bytes", block.bytes)
    return SentMessage(
        algorithm=where(sent, rows["algorithm"], "–") if "algorithm" in rows else None,
        size=None if size is None else where(sent, size, 0),
        number=where(sent, rows["count"], 0),
        time=converted(where(sent, rows["layer_time"], 0), "s", "us"),
    )


@dataclass(frozen=True)
class Line:
    """One property of every accelerator; in GB an amount of memory, not a slice."""

    name: str
    label: str
    rule: str
    figures: tuple[Quantity, ...]

    @property
    def memory(self) -> bool:
        """Whether it is an amount of memory."""
        return self.figures[0].unit == "GB"


class Placement:
    """Accelerators by number, and what each holds.

    Args:
        prefix: what ids begin with.
        count: how many there are in full; up to `last` further ones in short.
        start: what the title begins with.
    """

    def __init__(self, workers: Workers, prefix: str, count: int, last: int = 0, start: str = "") -> None:
        self.rows, self.prefix = workers.rows.rows.fork(), prefix
        self.stages = range(MOST_STAGES)
        self.accelerators = tuple(_numbered(prefix, number) for number in range(count))
        self.further = tuple(_numbered(prefix, number) for number in range(count, last + 1))
        own, decode = workers.rows.prefix, "inputs.decode_" if workers.rows.prefix else ""

        def space(facts: dict[str, str], suffix: str = "") -> Space:
            return Space(own, suffix, decode, facts, called=False, home=prefix)

        self.rows.know(*self.accelerators, *self.further)
        self.rows.know_as("placement.nowhere", as_node(0) - 1)
        told = space({"start": start, "last": f"{max(count - 1, last)}"})
        self.rows.make_in("placement", told)
        self.rows.make_in("placement with more", *([told] if self.further else []))
        numbers = range(count)
        self.rows.make_in("accelerator", *(space({"n": f"{n}"}, f", accelerator {n}") for n in numbers))
        numbers = range(count, last + 1)
        self.rows.make_in("further accelerator", *(space({"n": f"{n}"}) for n in numbers))

    def __getitem__(self, name: str) -> Quantity:
        return self.rows[f"{self.prefix}.{name}"]

    def of_stages(self, name: str) -> tuple[Quantity, ...]:
        """What each stage has."""
        return tuple(self[f"{name}.{stage}"] for stage in self.stages)

    def of_further(self, name: str) -> tuple[Quantity, ...]:
        """What each of the further accelerators has; nothing where the model has none of it."""
        names = [f"{name}.{number.value}" for number in self.further]
        return tuple(self[each] for each in names if f"{self.prefix}.{each}" in self.rows)

    @property
    def lines(self) -> tuple[Line, ...]:
        """What each accelerator has, in full."""
        ids = [name for block, _, name in self.rows.places("placement") if block.each == "accelerator"]
        count = len(ids) // len(self.accelerators)
        return tuple(self._line(ids[first::count]) for first in range(count))

    def _line(self, ids: list[str]) -> Line:
        figures = tuple(self.rows[name] for name in ids)
        name = ids[0].removeprefix(f"{self.prefix}.").removesuffix(".0")
        return Line(name, figures[0].label.removesuffix(", accelerator 0"), figures[0].note, figures)


def _numbered(prefix: str, number: int) -> Input:
    return Input(
        f"{prefix}.number.{number}", f"Accelerator {number}", "number", number, shared=True, fixed=True
    )


def room(workers: Workers, rows: Equations, values: Mapping[Node, Any]) -> int:
    """How many accelerators Layers has room for: all that a system can join, as far as can be read.

    Args:
        values: of the scenario. Without a network between domains no more than one domain.
    """
    domain, out = (
        float(values[figure])
        for figure in (workers.rows["hardware.accelerators"], rows[f"{workers.prefix}network.out"])
    )
    most = MOST_SHOWN if out > 0 else max(int(min(domain, MOST_SHOWN)), int(values[workers.ranks.deployment]))
    return -(-min(MOST_SHOWN, max(BAND, most)) // BAND) * BAND


def shown(workers: Workers, values: Mapping[Node, Any]) -> int:
    """How many accelerators to show: the domain and all in use, in full bands, as far as can be read."""
    domain, used = (
        float(values[figure]) for figure in (workers.rows["hardware.accelerators"], workers.ranks.deployment)
    )
    most = min(MOST_SHOWN, max(BAND, int(min(domain, MOST_SHOWN)), int(used)))
    return -(-most // BAND) * BAND
