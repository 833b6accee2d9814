"""A pipeline over devices that are not alike: each holds some of the layers and works at its own pace.

The equations of the deployment are made again for every device, with its accelerators, its tensor parallelism
and its own memory: ids "devices.<number>.<id>". From them the passes of the deployment are put together. Of a
module in the layers a pass has the mean over the layers, wherever they stand; what stands at an end of the
model runs on the device that has that end. All that follows from a pass, follows as for equal accelerators.

Splits, links, words and what goes over links stand in devices.eq.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mantile.equations.constant import GIGA, NO_BOUND
from mantile.equations.devices_away import Moved, moved, parts_away
from mantile.equations.devices_links import Link, follow, make_links
from mantile.equations.inputs import DeviceInputs, Workload
from mantile.equations.link import LinkTable, know_links, link_table
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    all_of,
    maximum,
    minimum,
    where,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library

PREFIX = "devices."
OF_FIRST = Space(f"{PREFIX}1.", ", device 1", called=False)
"""The first device, with what only it needs; its other rows are those of the deployment."""
_HOPS = ("Stage to stage", "Links")
_EXPERT_BYTES = "memory.weights.experts"
_OF_ALL = frozenset(
    f"memory.{name}"
    for name in ("capacity_sequences", "batch", "redone", "swapped", "parked_places", "parked_share")
)
"""Rows that devices have in common; nothing of a device follows from who is parked."""
SPLIT_WORDS = {"even": "evenly", "memory": "by memory", "bandwidth": "by bandwidth"}
"""Ways to split layers that a formula can follow; the engine finds the solved split."""


@dataclass(frozen=True)
class Device:
    """One device.

    Args:
        workers: its accelerators, with what they hold.
        layers: that it holds.
        link: to the next; None of the last in the list.
        first, last: 1 where it holds the embedding, or the LM head.
        sections: blocks that no other workers have, by sheet.
    """

    number: int
    inputs: DeviceInputs
    workers: Workers
    layers: Node
    link: Link | None
    first: Node
    last: Node
    rewrite: GraphRewrite
    sections: Mapping[str, tuple[Section, ...]]

    @property
    def prefix(self) -> str:
        """What ids of its figures begin with."""
        return f"{PREFIX}{self.number}."


@dataclass(frozen=True)
class Stage:
    """Seconds of a pass on a device; `parts` are compute, memory, network and overhead of its layers."""

    time: Quantity
    parts: Mapping[str, Quantity]


@dataclass(frozen=True)
class Devices:
    """All devices of a replica, and the rows that only they need.

    Args:
        stages: by phase, for each device.
        links: from each device to the next; behind these others, where a scenario says which there are.
        sections: of the Network part; `passes` by sheet, below the rows of the pass.
        of_layer: by phase, of each device the time of a layer of each kind.
    """

    devices: tuple[Device, ...]
    table: LinkTable
    links: tuple[Link, ...]
    stages: Mapping[str, tuple[Stage, ...]]
    sections: tuple[Section, ...]
    passes: Mapping[str, tuple[Section, ...]]
    of_layer: Mapping[str, tuple[Mapping[Input, Quantity], ...]] = field(default_factory=dict)

    @property
    def sets(self) -> tuple[Workers, ...]:
        """The accelerators of each device."""
        return tuple(device.workers for device in self.devices)


def unlike(
    ir: ModelGraph, library: Library, inputs: Workload, base: Workers, known: Equations
) -> tuple[Workers, Devices] | None:
    """The workers of the deployment with the memory of all devices, and the devices; None where all are
    alike.

    Args:
        base: the deployment as if all were like the first device.
    """
    if not inputs.devices:
        return None
    table = link_table(library)
    listed = {figure.id: figure for section in base.sections() for figure in section.figures()}
    figures = (*listed.values(), *base.ranks.rows(), *base.plan.copied.values())
    pinned = {entry: entry for entry in (*_pinned(inputs), *base.ranks.counted, base.ranks.replica)}
    pinned[base.ranks.deployment] = base.ranks.deployment
    cells = tuple(overridable.cell for overridable in base.overridable())
    make_places(known, ir, inputs, base)
    chips = [
        _Chips(number, device, base, pinned, cells, figures, known)
        for number, device in enumerate(inputs.devices, start=1)
    ]
    for device in inputs.devices:
        follow(device.layers, known[f"{PREFIX}{device.number}.split"])
    inputs.set_default("pp", known["devices.stages"])
    know_links(known, table)
    joined = make_links(known, inputs, parts_away(ir, base.memory.caches, inputs.devices))
    away = [chip.moved(listed) for chip in chips]
    capacities = [
        chip.capacity(listed, out, into)
        for chip, out, into in zip(chips, away, [*away[1:], None], strict=True)
    ]
    bounds = [
        chip.bound(capacity, into)
        for chip, capacity, into in zip(chips, capacities, [*away[1:], None], strict=True)
    ]
    sequences = base.rows["memory.capacity_sequences"]
    of_all = Quantity(
        sequences.id,
        sequences.label,
        sequences.unit,
        minimum(*bounds),
        note="of the device with least room",
        name=sequences.name,
    )
    settled = GraphRewrite({sequences: of_all}, (), "", "", figures).rewrite(base)
    devices = tuple(
        chip.device(settled, joined[place] if place + 1 < len(chips) else None)
        for place, chip in enumerate(chips)
    )
    return settled, Devices(devices, table, joined, {}, (_of_links(known, joined),), {})


def make_places(rows: Equations, ir: ModelGraph, inputs: Workload, base: Workers) -> None:
    """Name devices in their order, ways to split layers over them, and kinds of layer."""
    rows.know(ir.total_layers)
    for figure in (inputs.tp, base.rows["hardware.name"]):  # where another device asks for them
        rows.know_as(f"{PREFIX}1.{figure.id}", figure)
    words = SPLIT_WORDS.items()
    rows.make_in(
        "way to split",
        *(
            Space("", f", split {said}", facts={"way": way}, home=f"devices.other.{way}")
            for way, said in words
        ),
    )
    start, behind = base.memory.ends
    places = [_place(inputs, device.number, start.id, behind.id) for device in inputs.devices]
    rows.make_in("device in line", *places)
    rows.make_in("earlier device", *places[:-1])
    rows.make_in("later device", *(replace(of, facts=of.facts | {"m": of.facts["n"]}) for of in places[1:]))
    kinds = (
        {
            "kind": kind.count.id.removeprefix("model."),
            "weights": base.memory.of_layers[kind.count].id,
            "cache": base.memory.kv_of_layers[kind.count].id,
        }
        for kind in ir.layers
    )
    rows.make_in("kind in line", *(Space(facts=facts) for facts in kinds))


def _place(inputs: Workload, number: int, start: str, behind: str) -> Space:
    """Where what is said of a device is made.

    Args:
        start: bytes of what stands before the layers, `behind` of what stands behind them.
    """
    device, before, last = inputs.devices[number - 1], inputs.devices[number - 2], len(inputs.devices)
    away = [name for name in ("experts", "kv") if number > 1 and getattr(device, f"{name}_away") is not None]
    kv_of_next = number < last and inputs.devices[number].kv_away is not None
    facts = {
        "n": str(number),
        "stage": str(number - 1),
        "last": str(last),
        "machine": f"{PREFIX}{number}." if number > 1 else "",
        "count": device.count.id,
        "count_before": f"{PREFIX}1.{before.count.id}" if number == 2 else before.count.id,
        "holds": f"{PREFIX}{number}.memory.holds_kv" if kv_of_next else device.layers.id,
        "words": "".join(f"{PREFIX}{number}.words.{name}, " for name in away),
        "start": start,
        "behind": behind,
    }
    features = {"first": number == 1, "last": number == last}
    return Space(
        facts=facts,
        features=frozenset(name for name, holds in features.items() if holds),
        within=f"{PREFIX}{number}.",
    )


def _of_links(rows: Equations, links: Sequence[Link]) -> Section:
    """The rows of devices, and of the links between them with what goes over each."""
    of_devices, over = rows.sections("devices", "Devices", "What goes over links")
    cables = [
        row for link in links for part in rows.sections("link", prefix=f"{link.home}.") for row in part.rows
    ]
    return replace(of_devices, rows=(*of_devices.rows, *cables, *over.rows))


def _pinned(inputs: Workload) -> list[Named]:
    """Inputs that all devices share, though some follow from the accelerator of the first."""
    limits = (inputs.token_budget, inputs.max_requests, inputs.prefix_block, inputs.concurrency, inputs.pp)
    cells = [entry for device in inputs.devices for entry in device.named().values()]
    return [*(entry for entry in limits if entry is not None), *cells]


class _Chips:
    """The figures of the deployment, made again for one device."""

    def __init__(
        self,
        number: int,
        device: DeviceInputs,
        base: Workers,
        pinned: Mapping[Named, Node],
        cells: tuple[Input, ...],
        figures: tuple[Node, ...],
        known: Equations,
    ) -> None:
        self.number, self.inputs, self.base, self.figures = number, device, base, figures
        self.prefix, self.suffix = f"{PREFIX}{number}.", f", device {number}"
        shared = base.inputs
        own: dict[Node, Node] = {figure: node for figure, node in pinned.items()}
        ranks = self._row(
            "inputs.ranks",
            "Ranks that split a layer",
            "rank",
            maximum(1, device.count),
            "one where there is none",
        )
        if number > 1:
            own |= {
                shared.accelerator: device.accelerator,
                shared.system: device.system,
                shared.tp: ranks,
            }
        private = cells if number > 1 else ()
        chips = GraphRewrite(own, private, self.prefix, self.suffix, figures)
        visible = chips.rewrite(base.rows["hardware.memory_seen"])
        in_gb = self._row(
            "hardware.memory_shown", "Memory that the driver shows, in GB", "GB", visible / GIGA
        )
        follow(device.memory, in_gb)
        used = self._row("hardware.memory_visible_used", "Memory it may use", "B", device.memory * GIGA)
        own = dict(chips.rewritten) | {base.rows["hardware.memory_seen"]: used}
        self.rewrite = GraphRewrite(own, (), self.prefix, self.suffix, figures)
        self.extra: list[Row] = [*([ranks, visible] if number > 1 else []), in_gb]
        # not its memory: that follows from what is found of links and layers
        self.rewrite.rewrite((base.hardware, base.efficiency))
        self.rewrite.rewrite(base.ranks.stage)
        self.known = known
        self.messages: dict[Node, Node] = {}
        if number > 1:
            made = [figure for figure in self.rewrite.rewritten.values() if isinstance(figure, Named)]
            known.know(*(figure for figure in made if figure.id.startswith(self.prefix)))
            known.know_as(f"{self.prefix}{shared.tp.id}", ranks)
            self.messages = self._messages(*known.sections("network", prefix=""))

    def _messages(self, *sections: Section) -> dict[Node, Node]:
        """What messages cost on the device, by what they cost on those of the deployment."""
        return {
            row: self.known[f"{self.prefix}{row.id}"]
            for section in sections
            for row in section.figures()
            if isinstance(row, Quantity)
        }

    def _row(self, name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"{self.prefix}{name}", f"{label}{self.suffix}", unit, body, note=note)

    def moved(self, listed: Mapping[str, Named]) -> Moved:
        """What of its layers lies on the device before."""
        size = next((row for name, row in listed.items() if name.startswith(_EXPERT_BYTES)), None)
        found = moved(
            self.inputs,
            self.base.inputs.devices[max(0, self.number - 2)],
            self._row,
            None if size is None else self.rewrite.rewrite(size),
            self.rewrite.rewrite(self.base.memory.stage_kv[self.number - 1]),
            maximum(1, self.inputs.count),
        )
        self.away = [row for row in (found.weights, found.share) if row is not None]
        return found

    def capacity(self, listed: Mapping[str, Named], out: Moved, into: Moved | None) -> Quantity:
        """Requests for whose KV cache the device has room.

        Args:
            out: what of it lies on the device before; `into` what of the next lies here.
        """
        base, stage = self.base, self.number - 1
        held: Node = self.rewrite.rewrite(base.memory.stage_weights[stage])
        kept: Node = self.rewrite.rewrite(base.memory.stage_kv[stage])
        if out.weights is not None:
            held = maximum(0, held - out.weights)
        if out.share is not None:
            kept = kept * (1 - out.share)
        ranks = maximum(1, self.inputs.count)
        if into is not None and into.weights is not None:
            held = held + into.weights_there(ranks)
        if into is not None and into.share is not None:
            kept = kept + into.kv_there(ranks)
        weights = self._row("memory.all_weights", "Weights of its layers", "B", held)
        cache = self._row(
            "memory.kv_bytes_per_request",
            "KV bytes per request",
            "B/request",
            kept,
        )
        held = self._row("plan.layers", "Layers", "layer", 1 * self.inputs.layers)
        self.own = dict(self.rewrite.rewritten) | {
            listed["memory.all_weights"]: weights,
            listed["memory.kv_bytes_per_request"]: cache,
            base.plan.stages.fullest: held,
        }
        holding = GraphRewrite(self.own, (), self.prefix, self.suffix, self.figures)
        room = holding.rewrite(base.rows["memory.capacity_sequences"])
        self.own = dict(holding.rewritten) | self.own
        self.extra.append(room)
        return room

    def bound(self, room: Quantity, into: Moved | None) -> Quantity:
        """The same where the device holds layers, or the KV cache of those of the next; else no bound."""
        holds: Node = self.inputs.layers
        if into is not None and into.share is not None:
            holds = self._row(
                "memory.holds_kv",
                "It has any of the KV cache",
                "flag",
                where(all_of(self.inputs.layers <= 0, into.share <= 0), 0, 1),
            )
            self.extra.append(holds)
        body = where(holds > 0, room, NO_BOUND)
        bound = self._row(
            "memory.room_of_layers", "Requests that it has room for, if it holds layers", "request", body
        )
        self.extra.append(bound)
        return bound

    def device(self, settled: Workers, link: Link | None) -> Device:
        """The device, with the batch of the deployment in its memory."""
        stages = settled.plan.stages
        rank = self.rewrite.rewrite(self.base.ranks.stage)
        replica = self._row("plan.ranks_per_replica", "Ranks of a replica", "rank", 1 * rank)
        pins: dict[Node, Node] = {
            figure: figure
            for section in settled.memory.sections
            for figure in section.figures()
            if figure.id in _OF_ALL
        }
        figures = [figure for section in settled.sections() for figure in section.figures()]
        if self.number == 1:
            self.known.know(replica)
            self.messages = self._messages(*self.known.sections("network", *_HOPS, prefix=""))
        own = self.own | pins | self.messages | {settled.ranks.replica: replica}
        del own[settled.ranks.deployment]  # follows from the replica
        rewrite = GraphRewrite(
            own,
            (),
            self.prefix,
            self.suffix,
            (*figures, *settled.ranks.rows(), *settled.plan.copied.values()),
        )
        place = self.number - 1
        made = replace(rewrite.rewrite(settled), rows=settled.rows.rows.in_space(self.prefix))
        self.extra += [replica, made.ranks.deployment]
        placed = {figure.id for section in made.sections() for figure in section.figures()}
        placed |= {row.id for row in self.messages.values() if isinstance(row, Quantity)}
        placed |= {figure.id for figure in (*self.extra, *self.away) if not isinstance(figure, tuple)}
        self.extra += [
            figure
            for figure in rewrite.rewritten.values()
            if isinstance(figure, Quantity) and figure.id.startswith(self.prefix) and figure.id not in placed
        ]
        return Device(
            number=self.number,
            inputs=self.inputs,
            workers=made,
            layers=self.inputs.layers,
            link=link,
            first=stages.first[place],
            last=stages.last[place],
            rewrite=rewrite,
            sections=_of_device(self.number, self.prefix, self.extra, self.away),
        )


def _of_device(
    number: int, prefix: str, rows: Sequence[Row], away: Sequence[Quantity]
) -> Mapping[str, tuple[Section, ...]]:
    """The rows of a device that no block of the deployment has, by sheet.

    Args:
        away: those of what lies on the device before, whose rows follow from them.
    """
    machine = (f"{prefix}hardware.", f"{prefix}inputs.")
    of_inputs = (f"{prefix}inputs.ranks", f"{prefix}plan.stage_ranks")
    asked = tuple(row for row in rows if not isinstance(row, tuple) and row.id in of_inputs)
    first = tuple(
        row for row in rows if row not in asked and not isinstance(row, tuple) and row.id.startswith(machine)
    )
    rest = tuple(row for row in rows if row not in first and row not in asked)
    title = f"Device {number}"
    before = Section(f"{title}, on the device before", tuple(away), "of its part of the model")
    return {
        "Hardware": (Section(title, first, "what it is"),),
        "Memory": (*((before,) if away else ()), Section(title, rest, "its part of the model")),
        "Inputs": (Section(title, asked, "ranks, in numbers"),),
    }
