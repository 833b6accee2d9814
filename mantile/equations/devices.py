"""A pipeline over devices that are not alike: each holds some of the layers and works at its own pace.

The equations of the deployment are made again for every device, with its accelerators, its tensor parallelism
and its own memory: ids "devices.<number>.<id>". From them the passes of the deployment are put together. Of a
module in the layers a pass has the mean over the layers, wherever they stand; what stands at an end of the
model runs on the device that has that end. All that follows from a pass, follows as for equal accelerators.

    id behind "devices."                         function
    ------------------------------------------   -----------------------
    .<n>.split, .<n>.even and other splits       devices.splits
    .<n>.link.*, .<n>.link_to_<m>.*              devices.links
    .<n>.memory.all_weights                      devices.unlike
    .<n>.<phase>.layer.<kind> .<n>.<phase>.stage devices.stage_times
    .stages                                      devices.unlike
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mantile.equations.constant import GIGA, MICRO, NO_BOUND, NO_BOUND_TIME, SLIVER
from mantile.equations.devices_away import OF_RUN, Moved, goes_over, moved, on_device_before
from mantile.equations.forward import Pass
from mantile.equations.inputs import DeviceInputs, Workload
from mantile.equations.link import LinkTable, Machine, by_ports, in_system, link_table
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    LateDefault,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    all_of,
    ancestors,
    as_node,
    equal,
    expression,
    floor,
    maximum,
    minimum,
    remainder,
    span,
    substitute,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows
from mantile.ir.modules import Layer, ModelGraph
from mantile.library.device import MESH, RING, STAR, pairs
from mantile.library.links import INFERRED, NO_PORT
from mantile.library.profiles import Library

PREFIX = "devices."
_PARKED = ("memory.parked_places", "memory.parked_share")
SPLITS = ("even", "memory", "bandwidth")
"""Ways to split layers that a formula can follow; the solved split is found by the engine."""


@dataclass(frozen=True)
class Link:
    """Between two devices.

    Args:
        ends: their numbers; `kind` the input that states it.
        bandwidth: raw, GB/s; `rate` what a transfer reaches, B/s; `latency` s.
        stated: 1 where somebody stated it, 0 where it is inferred from ports.
        carried: how often the activations of a pass go over it.
        used: 1 where they do.
        missing: 1 where it is used and there is no way.
        laid: 1 where there is such a cable; None of the link to the next, which there always is.
    """

    ends: tuple[int, int]
    kind: Input
    bandwidth: Quantity
    rate: Quantity
    latency: Quantity
    stated: Quantity
    carried: Quantity
    used: Quantity
    missing: Quantity
    laid: Quantity | None = None

    @property
    def name(self) -> str:
        """What ids of its figures have."""
        one, other = self.ends
        return str(one) if other == one + 1 else f"{one}_to_{other}"

    @property
    def words(self) -> str:
        """Between which devices it is."""
        one, other = self.ends
        return f"device {one} to the next" if other == one + 1 else f"device {one} to device {other}"


@dataclass(frozen=True)
class Device:
    """One device.

    Args:
        workers: its accelerators, with what they hold.
        layers: that it holds.
        splits: layers that it would hold, by way to split them.
        capacity: requests for whose KV cache it has room.
        holds: above 0 where it has any of the KV cache.
        link: to the next; None of the last in the list.
        first, last: 1 where it holds the embedding, or the LM head.
        sections: blocks that no other workers have, by sheet.
    """

    number: int
    inputs: DeviceInputs
    workers: Workers
    layers: Node
    splits: Mapping[str, Quantity]
    capacity: Quantity
    holds: Node
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
class Split:
    """Layers split in another way: what a decode step would take, and whether it would fit.

    A mean layer stands for layers of all kinds.

    Args:
        name: the way, in words; `layers` of each device.
        step: seconds of a decode step.
        through: seconds of a prefill pass through all devices.
        fits: 1 if every device has the memory.
    """

    name: Quantity
    layers: tuple[Node, ...]
    step: Quantity
    through: Quantity
    fits: Quantity


@dataclass(frozen=True)
class Devices:
    """All devices of a replica, and the rows that only they need.

    Args:
        stages: by phase, for each device.
        links: from each device to the next; behind these others, where a scenario says which there are.
        sections: of the Network sheet; `passes` by sheet, below the rows of the pass.
        other_splits: other ways to split layers; `best` the shortest decode step of those that fit.
        of_layer: by phase, of each device the time of a layer of each kind; `layered` that of all layers.
        sent: by phase, seconds of the activations of a pass over each link.
        busiest: of each of these links, 1 where it takes longest in a prefill.
    """

    devices: tuple[Device, ...]
    table: LinkTable
    links: tuple[Link, ...]
    stages: Mapping[str, tuple[Stage, ...]]
    sections: tuple[Section, ...]
    passes: Mapping[str, tuple[Section, ...]]
    other_splits: Mapping[str, Split]
    best: Quantity | None = None
    of_layer: Mapping[str, tuple[Mapping[Input, Quantity], ...]] = field(default_factory=dict)
    layered: Mapping[str, Quantity] = field(default_factory=dict)
    sent: Mapping[str, tuple[Quantity, ...]] = field(default_factory=dict)
    busiest: tuple[Quantity, ...] = ()

    @property
    def sets(self) -> tuple[Workers, ...]:
        """The accelerators of each device."""
        return tuple(device.workers for device in self.devices)


def unlike(
    ir: ModelGraph, library: Library, inputs: Workload, base: Workers
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
    pinned = {entry: entry for entry in (*_pinned(inputs), base.ranks.replica, base.ranks.deployment)}
    cells = tuple(overridable.cell for overridable in base.overridable())
    rows = Rows("devices")
    chips = [
        _Chips(number, device, base, pinned, cells, figures)
        for number, device in enumerate(inputs.devices, start=1)
    ]
    ways = splits(rows, ir, inputs, [chip.first for chip in chips])
    stages = rows(
        "stages",
        "Devices that hold layers",
        "stage",
        maximum(1, sum_of([where(device.layers > 0, 1, 0) for device in inputs.devices])),
    )
    inputs.set_default("pp", stages)
    joined = links(rows, ir, inputs, base, [chip.first for chip in chips], table)
    away = [chip.moved(listed) for chip in chips]
    capacities = [
        chip.capacity(listed, out, into)
        for chip, out, into in zip(chips, away, [*away[1:], None], strict=True)
    ]
    bounds = [
        chip.bound(capacity, into)
        for chip, capacity, into in zip(chips, capacities, [*away[1:], None], strict=True)
    ]
    sequences = base.memory.capacity_sequences
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
        chip.device(
            settled, ways[place], capacities[place], joined[place] if place + 1 < len(chips) else None
        )
        for place, chip in enumerate(chips)
    )
    section = rows.section("Devices", "layers of each, and the links between them")
    return settled, Devices(devices, table, joined, {}, (section,), {}, {})


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
        visible = chips.rewrite(base.hardware.memory_visible)
        in_gb = self._row(
            "hardware.memory_shown", "Memory that the driver shows, in GB", "GB", visible / GIGA
        )
        _follow(device.memory, in_gb)
        used = self._row("hardware.memory_visible_used", "Memory it may use", "B", device.memory * GIGA)
        own = dict(chips.rewritten) | {base.hardware.memory_visible: used}
        self.rewrite = GraphRewrite(own, (), self.prefix, self.suffix, figures)
        self.extra: list[Row] = [*([ranks, visible] if number > 1 else []), in_gb]
        # not its memory: that follows from what is found of links and layers
        self.first = Machine(
            *self.rewrite.rewrite((base.inputs, base.hardware, base.efficiency, base.network))
        )

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
        room = holding.rewrite(base.memory.capacity_sequences)
        self.own = dict(holding.rewritten) | self.own
        self.extra.append(room)
        return room

    def bound(self, room: Quantity, into: Moved | None) -> Quantity:
        """The same where the device holds layers, or the KV cache of those of the next; else no bound."""
        self.holds: Node = self.inputs.layers
        if into is not None and into.share is not None:
            self.holds = self._row(
                "memory.holds_kv",
                "It has any of the KV cache",
                "flag",
                where(all_of(self.inputs.layers <= 0, into.share <= 0), 0, 1),
            )
            self.extra.append(self.holds)
        body = where(self.holds > 0, room, NO_BOUND)
        bound = self._row(
            "memory.room_of_layers", "Requests that it has room for, if it holds layers", "request", body
        )
        self.extra.append(bound)
        return bound

    def device(
        self, settled: Workers, ways: Mapping[str, Quantity], capacity: Quantity, link: Link | None
    ) -> Device:
        """The device, with the batch of the deployment in its memory."""
        memory, stages = settled.memory, settled.plan.stages
        rank = self.rewrite.rewrite(self.base.ranks.stage)
        replica = self._row("plan.ranks_per_replica", "Ranks of a replica", "rank", 1 * rank)
        pins: dict[Node, Node] = {
            figure: figure
            for figure in (memory.batch, memory.capacity_sequences, memory.redone, memory.swapped)
        }
        figures = [figure for section in settled.sections() for figure in section.figures()]
        # who is parked is that of all devices too, and nothing of a device follows from it
        pins |= {figure: figure for figure in figures if figure.id in _PARKED}
        own = self.own | pins | {settled.ranks.replica: replica}
        del own[settled.ranks.deployment]  # follows from the replica
        rewrite = GraphRewrite(
            own,
            (),
            self.prefix,
            self.suffix,
            (*figures, *settled.ranks.rows(), *settled.plan.copied.values()),
        )
        place = self.number - 1
        made = rewrite.rewrite(settled)
        self.extra += [replica, made.ranks.deployment]
        placed = {figure.id for section in made.sections() for figure in section.figures()}
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
            splits=ways,
            capacity=capacity,
            holds=self.holds,
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


def splits(
    rows: Rows, ir: ModelGraph, inputs: Workload, chips: Sequence[Machine]
) -> list[dict[str, Quantity]]:
    """Layers of each device by way to split them: evenly, by memory, by bandwidth; and what cells follow.

    Weights of devices are added up in their order; a device ends where the share of all so far ends.
    """
    devices, total = inputs.devices, ir.total_layers
    assert inputs.device_split is not None
    weights: dict[str, list[Node]] = {
        "even": [where(device.count > 0, 1, 0) for device in devices],
        "memory": [device.count * device.memory for device in devices],
        "bandwidth": [
            device.count * chip.hardware.memory_bandwidth for device, chip in zip(devices, chips, strict=True)
        ],
    }
    found: list[dict[str, Quantity]] = [{} for _ in devices]
    for way, of_devices in weights.items():
        units = {"even": "1", "memory": "GB", "bandwidth": "B/s"}
        so_far = [
            rows(
                f"{number}.{way}_so_far",
                f"Weight of devices up to {number}, {way}",
                units[way],
                sum_of(of_devices[:number]),
            )
            for number in range(1, len(devices) + 1)
        ]
        ends: list[Quantity] = []
        for number, weight in enumerate(so_far, start=1):
            share = total * weight / so_far[-1]
            # the first devices take one more where an even share is no whole number, others are cut off
            end = (
                weight * floor(total / so_far[-1]) + minimum(weight, remainder(total, so_far[-1]))
                if way == "even"
                else floor(share + SLIVER)
            )
            ends.append(rows(f"{number}.{way}_end", f"Last layer of device {number}, {way}", "layer", end))
            before = ends[-2] if number > 1 else None
            found[number - 1][way] = rows(
                f"{number}.{way}",
                f"Layers of device {number}, split {SPLIT_WORDS[way]}",
                "layer",
                1 * ends[-1] if before is None else ends[-1] - before,
            )
    for number, (device, ways) in enumerate(zip(devices, found, strict=True), start=1):
        default = device.layers.default
        assert isinstance(default, LateDefault)
        by_weight = rows(
            f"{number}.by_weight",
            f"Layers of device {number}, by memory or bandwidth",
            "layer",
            where(equal(inputs.device_split, "memory"), ways["memory"], ways["bandwidth"]),
        )
        by_rule = rows(
            f"{number}.by_rule",
            f"Layers of device {number}, by a rule",
            "layer",
            where(equal(inputs.device_split, "even"), ways["even"], by_weight),
        )
        others = sum_of([other.layers for other in devices[1:]])
        left: Node = as_node(0)
        if number == 1:
            left = rows("1.rest", "Layers that other devices leave", "layer", maximum(0, total - others))
        default.set(
            rows(
                f"{number}.split",
                f"Layers of device {number}, as they are split",
                "layer",
                where(equal(inputs.device_split, "rest"), left, by_rule),
                "what its cell follows; where the split was solved, the engine states the cells",
            )
        )
    return found


SPLIT_WORDS = {"even": "evenly", "memory": "by memory", "bandwidth": "by bandwidth"}


def links(
    rows: Rows,
    ir: ModelGraph,
    inputs: Workload,
    base: Workers,
    chips: Sequence[Machine],
    table: LinkTable,
) -> tuple[Link, ...]:
    """The link from each device to the next, and where a scenario says which links there are, all others.

    Each is stated, or the fastest that the ports of both machines allow.
    """
    count = len(inputs.devices)
    ends = [(number, number + 1) for number in range(1, count)]
    if inputs.links is None:
        cables = [_cable(rows, inputs, chips, table, pair, None) for pair in ends]
        before, total = base.plan.stages.before, ir.total_layers
        made = []
        for cable, device, following in zip(cables, inputs.devices, inputs.devices[1:], strict=False):
            goes_on = where(all_of(device.layers > 0, before[device.number] < total), 1, 0)
            made.append(cable.link(*_used(cable.rows, goes_on, goes_over(following, device))))
        return tuple(made)
    star = where(equal(inputs.links, STAR), 1, 0)
    switched = rows("switched", "Links go through a switch", "flag", star, "only Ethernet reaches one")
    cables = [_cable(rows, inputs, chips, table, pair, switched) for pair in (*ends, *pairs(count))]
    return _by_preset(rows, inputs, base.plan.stages.before, cables, switched)


def _used(rows: Rows, carried: Node, more: Node | None) -> tuple[Quantity, Quantity]:
    """Whether activations go over a link, and how many transfers from layers to the next ones do.

    Args:
        carried: these transfers; `more` whether any go to parts of layers.
    """
    if more is None:
        used = rows("used", "Activations go over it", "flag", carried)
        return used, used
    on = rows("carried", "Transfers over it", "number", carried)
    more = rows("back", "Activations go over it and back", "flag", more)
    return rows("used", "Activations go over it", "flag", where(all_of(on <= 0, more <= 0), 0, 1)), on


@dataclass(frozen=True)
class _Cable:
    """What two devices reach, whatever goes over it; the arguments are those of `Link`."""

    rows: Rows
    ends: tuple[int, int]
    kind: Input
    bandwidth: Quantity
    rate: Quantity
    latency: Quantity
    stated: Quantity

    def link(self, used: Quantity, carried: Quantity | None = None, laid: Quantity | None = None) -> Link:
        """The link, with what goes over it."""
        lacking = where(all_of(used > 0, self.rate <= 0), 1, 0)
        return Link(
            ends=self.ends,
            kind=self.kind,
            bandwidth=self.bandwidth,
            rate=self.rate,
            latency=self.latency,
            stated=self.stated,
            carried=used if carried is None else carried,
            used=used,
            missing=self.rows("missing", "No way", "flag", lacking),
            laid=laid,
        )


def _cable(
    rows: Rows,
    inputs: Workload,
    chips: Sequence[Machine],
    table: LinkTable,
    ends: tuple[int, int],
    switched: Quantity | None,
) -> _Cable:
    """The link between two devices: stated, or the fastest that the ports of both machines allow."""
    one, other = ends
    device, following = inputs.devices[one - 1], other == one + 1
    cells = (device.link, device.link_bandwidth, device.link_latency) if following else device.others[other]
    link, link_bandwidth, link_latency = cells
    assert link is not None and link_bandwidth is not None and link_latency is not None
    name, words = ("link", "the next") if following else (f"link_to_{other}", f"device {other}")
    own = Rows(f"devices.{one}.{name}", f", device {one} to {words}", rows.rows)
    here, there = chips[one - 1], chips[other - 1]
    ports = by_ports(own, here, there, table, switched)
    inferred = in_system(own, inputs, here, there, ports, switched)
    is_inferred = equal(link, INFERRED)
    kind = own("kind", "Kind of link", "1", where(is_inferred, NO_PORT, link))
    by_kind = own(
        "bandwidth_default",
        "Bandwidth",
        "GB/s",
        where(is_inferred, inferred.rate, table.of("bandwidth", kind)),
        "of its kind; where it is inferred, what a transfer reaches",
    )
    delay = own(
        "latency_default",
        "Latency",
        "us",
        where(is_inferred, inferred.latency, table.of("latency", kind)),
    )
    _follow(link_bandwidth, by_kind)
    _follow(link_latency, delay)
    share = own("share", "Share that transfers reach", "1", where(is_inferred, 1, table.of("share", kind)))
    rate = own(
        "rate",
        "Bytes a second that transfers reach",
        "B/s",
        link_bandwidth * GIGA * share * inputs.network_speed,
    )
    return _Cable(
        rows=own,
        ends=ends,
        kind=link,
        bandwidth=own("bandwidth", "Bandwidth in use", "GB/s", 1 * link_bandwidth),
        rate=rate,
        latency=own("latency", "Latency in use", "s", link_latency / MICRO),
        stated=own(
            "stated",
            "Somebody stated it",
            "flag",
            where(all_of(is_inferred, equal(link_bandwidth, by_kind)), 0, 1),
        ),
    )


def _by_preset(
    rows: Rows,
    inputs: Workload,
    before: Sequence[Quantity],
    cables: Sequence[_Cable],
    switched: Quantity,
) -> tuple[Link, ...]:
    """Links with what goes over each, by the preset: activations go from a device to the next with layers.

    In a chain they pass the devices between; in a ring too, or the other way round where that has fewer
    links; in a mesh as in a chain where two devices have no link of their own.
    """
    assert inputs.links is not None
    devices, ring = inputs.devices, equal(inputs.links, RING)
    joined = rows("any_two", "Links join any two", "flag", switched + where(equal(inputs.links, MESH), 1, 0))
    exists = [
        rows(f"{one.number}.there", f"There is a device {one.number}", "flag", where(one.count > 0, 1, 0))
        for one in devices
    ]
    there = rows("there", "Devices that there are", "device", sum_of(exists))
    last = [*(one * (1 - following) for one, following in pairwise(exists)), exists[-1]]
    passes, along, around, direct, laid = {}, {}, {}, {}, {}
    for cable in cables:
        (one, other), own = cable.ends, cable.rows
        holds = (devices[one - 1].layers > 0, devices[other - 1].layers > 0)
        if other == one + 1:
            passes[cable.ends] = own(
                "passes", "Activations go from the one to the other", "flag", where(all_of(*holds), 1, 0)
            )
            continue
        nothing_between = before[other - 1] <= before[one]
        passes[cable.ends] = own(
            "passes",
            "Activations go from the one to the other",
            "flag",
            where(all_of(*holds, nothing_between), 1, 0),
            "no device between them holds a layer",
        )
        straight = own(
            "straight", "By a link of their own", "flag", where(cable.rate + switched > 0, joined, 0)
        )
        links_between = own(
            "links_between", "Links of the chain between them", "number", sum_of(exists[one:other])
        )
        shorter = own(
            "round",
            "The other way round has fewer links",
            "flag",
            where(all_of(ring, there - links_between < links_between), 1, 0),
        )
        laid[cable.ends] = own(
            "laid",
            "There is such a link",
            "flag",
            joined + where(ring, last[other - 1], 0) if one == 1 else 1 * joined,
            "of a ring from the last to the first" if one == 1 else "",
        )
        direct[cable.ends] = own("direct", "Sent by it", "flag", passes[cable.ends] * straight)
        along[cable.ends] = own(
            "along",
            "Sent along the chain",
            "flag",
            passes[cable.ends] * (1 - straight) * (1 - shorter),
        )
        around[cable.ends] = own("around", "Sent the other way round", "flag", passes[cable.ends] * shorter)
    made = []
    for cable in cables:
        (one, other), own = cable.ends, cable.rows
        parts: list[Node] = []
        if other == one + 1:
            parts += [passes[cable.ends]]
            parts += [sent for (start, end), sent in along.items() if start <= one < end]
            parts += [exists[one] * sent for (start, end), sent in around.items() if not start <= one < end]
        else:
            parts += [direct[cable.ends]]
            parts += [last[other - 1] * sent for sent in around.values()] if one == 1 else []
        carried = own(
            "carried", "Transfers over it", "number", own.added("carried", "Transfers", "number", parts, 4)
        )
        more = goes_over(devices[other - 1], devices[one - 1]) if other == one + 1 else None
        flag = where(carried > 0, 1, 0)
        if more is not None:
            back = own("back", "Activations go over it and back", "flag", more)
            flag = where(all_of(carried <= 0, back <= 0), 0, 1)
        used = own("used", "Activations go over it", "flag", flag)
        made.append(cable.link(used, carried, laid.get(cable.ends)))
    return tuple(made)


def _follow(cell: Input, figure: Quantity) -> None:
    assert isinstance(cell.default, LateDefault)
    cell.default.set(figure)


def on_devices(ir: ModelGraph, base: Workers, devices: Devices, work: Pass) -> tuple[Pass, Devices]:
    """A pass through all devices, and the devices with their part of it.

    Args:
        base: the deployment; `work` its pass as if all devices were like the first.
    """
    phase = work.phase
    listed = [figure for section in work.sections for figure in section.figures()]
    blocks = [
        figure
        for section in work.sections[1:]
        for figure in section.figures()
        if isinstance(figure, Quantity)
    ]
    first = Rows(f"devices.{phase.id}", f", {phase.id}")  # what the rows of the pass follow from
    passes = [_pass_of(device, work, listed, blocks) for device in devices.devices]
    passes, over = on_device_before(first, ir, base, base.inputs.devices, devices.links, work, passes)
    replaced: dict[Node, Node] = {}
    runs: dict[str, list[Node]] = {}
    sent: tuple[Quantity, ...] = ()
    for place, block in enumerate(work.blocks):
        of_each = [one.blocks[place] for one in passes]
        if block.id == "p2p":
            sent = _sent(first, devices, base, block)
            of_all = first.added("sent", "Activations over links", "s", sent)
            mean = of_all / maximum(1, base.inputs.pp - 1)
            replaced[block.layer_time] = replace(
                block.layer_time, body=mean, note="mean over the links in use"
            )
        elif block.id == "host":
            replaced |= _hosts(first, base, block, of_each)
        else:
            if block.repeats is not None:
                runs[block.id] = _runs(first, base, devices, block)
            replaced |= _means(first, devices, block, of_each, runs.get(block.id, []))
    replaced |= _step(first, devices, work, passes)
    whole = GraphRewrite(replaced, (), "", "", tuple(listed)).rewrite(work)
    rows = Rows(f"devices.{phase.id}", f", {phase.id}")
    times = stage_times(rows, ir, base, devices, whole, passes, runs)
    whole = _held_against(rows, devices, whole, times.stages)
    sent = tuple(
        _all_over(first, link, one, over.get(place))
        for place, (link, one) in enumerate(zip(devices.links, sent, strict=True))
    )
    busiest = _busiest(first, devices.links, sent) if phase.id == "prefill" else devices.busiest
    modules = _sections(devices, whole, times, listed)
    found = replace(
        devices,
        sent={**devices.sent, phase.id: sent},
        busiest=busiest,
        stages={**devices.stages, phase.id: times.stages},
        of_layer={**devices.of_layer, phase.id: times.of_layer},
        layered={**devices.layered, phase.id: times.layered},
        passes={
            **devices.passes,
            phase.id: (rows.section(f"Stages of {phase.id}, by device", "seconds of a pass"),),
            f"{phase.id}.modules": (
                *modules,
                first.section(f"All devices together, {phase.id}", "what the rows of the pass are means of"),
            ),
        },
    )
    return replace(whole, slowest=times.slowest), found


def _pass_of(device: Device, work: Pass, listed: list[Named], blocks: list[Quantity]) -> Pass:
    """The pass as if all of it ran on accelerators like those of a device."""
    phase = work.phase
    entering = (phase.requests, phase.tokens, phase.rank_requests, phase.passes, phase.coverage)
    pins: dict[Node, Node] = {figure: figure for figure in entering if figure is not None}
    rewrite = GraphRewrite(
        {**device.rewrite.rewritten, **pins},
        (),
        device.prefix,
        f", device {device.number}",
        tuple(listed),
        tuple(blocks),
    )
    return rewrite.rewrite(work)


_EXPERT_BYTES = "memory.weights.experts"


def _in_counts(body: Node, counts: frozenset[Node]) -> Node:
    """An expression with no named figure between it and the counts of layers that it follows from."""
    between = {
        figure: _in_counts(figure.body, counts)
        for figure in expression(body)
        if isinstance(figure, Quantity) and not counts.isdisjoint(ancestors(figure))
    }
    return substitute(body, {figure: node for figure, node in between.items()})


def _runs(rows: Rows, base: Workers, devices: Devices, block: Block) -> list[Node]:
    """How often a module runs on each device, from how often it runs in the model.

    A message that is sent once beside those of the layers is the last device's.
    """
    assert block.repeats is not None
    held = base.plan.stages.layers
    unfolded = _in_counts(_repeats(block), frozenset(held))
    runs = [
        substitute(unfolded, {kind: of_stages[device.number - 1] for kind, of_stages in held.items()})
        for device in devices.devices
    ]
    if not block.network:
        return runs
    once = rows(
        f"{block.id}.once",
        f"Messages outside layers, {block.label}",
        "number",
        1 * substitute(unfolded, dict.fromkeys(held, as_node(0))),
    )
    own = Rows(rows.prefix, f", {block.label}{rows.suffix}", rows.rows)
    every = [
        own(
            f"{device.number}.{block.id}.all",
            f"Messages with those outside, device {device.number}",
            "number",
            run,
        )
        for run, device in zip(runs, devices.devices, strict=True)
    ]
    return [
        own(
            f"{device.number}.{block.id}.runs",
            f"Messages of device {device.number}",
            "number",
            number - where(device.last, 0, once),
        )
        for number, device in zip(every, devices.devices, strict=True)
    ]


def _repeats(block: Block) -> Node:
    """How often a module runs; of messages what the row says, which stands below what is made here."""
    assert block.repeats is not None
    return block.repeats.body if block.network and isinstance(block.repeats, Quantity) else block.repeats


def _means(
    rows: Rows, devices: Devices, block: Block, of_each: Sequence[Block], runs: Sequence[Node]
) -> dict[Node, Node]:
    """The figures of one run of a module: the mean over its runs, or that of the end where it stands."""
    replaced: dict[Node, Node] = {}
    at_start = block.id in ("embedding", "vision")
    own = Rows(rows.prefix, f", {block.label}{rows.suffix}", rows.rows)
    repeats = block.repeats
    if block.network and runs:
        repeats = own(f"{block.id}.count", "Messages of all devices", "number", sum_of(list(runs)))
    for name, unit in OF_RUN.items():
        figure = getattr(block, name)
        if figure is None or figure in replaced:
            continue
        each = [getattr(one, name) for one in of_each]
        label = figure.label if isinstance(figure, Quantity) else name.replace("_", " ").capitalize()
        if repeats is None:
            ends = [device.first if at_start else device.last for device in devices.devices]
            parts = [where(end, one, 0) for end, one in zip(ends, each, strict=True)]
            body = own.added(f"{block.id}.{name}", label.partition(",")[0], unit, parts, 4)
        else:
            products = [number * one for number, one in zip(runs, each, strict=True)]
            whole = own.added(f"{block.id}.{name}", label.partition(",")[0], unit, products, 2)
            body = where(repeats > 0, whole / maximum(SLIVER, repeats), 0)
        replaced[figure] = (
            replace(figure, body=body, note="mean over the layers of all devices")
            if isinstance(figure, Quantity)
            else body
        )
    return replaced


def _sent(rows: Rows, devices: Devices, base: Workers, block: Block) -> tuple[Quantity, ...]:
    """Seconds of the activations of a pass from each device to the next; 0 over a link that is not used."""
    size = next(
        figure
        for figure in block.section.figures()
        if isinstance(figure, Quantity) and figure.id.endswith("message_bytes")
    )
    message = rows("sent_bytes", "Activations from a device to the next", "B", size.body)
    overlap = base.efficiency.factors["p2p_overlap"]
    return tuple(
        rows(
            f"{link.name}.sent",
            f"Activations from {link.words}",
            "s",
            link.carried * where(link.rate > 0, link.latency + message / link.rate, 0) * (1 - overlap),
        )
        for link in devices.links
    )


def _all_over(rows: Rows, link: Link, sent: Quantity, more: Node | None) -> Quantity:
    """Seconds of all activations over a link, those to parts of layers on the device before among them."""
    if more is None:
        return sent
    return rows(f"{link.name}.over", f"All activations from {link.words}", "s", sent + more)


def _busiest(rows: Rows, links: Sequence[Link], sent: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Of each link whether none takes longer."""
    some = [sent[start : start + 7] for start in range(0, len(sent), 7)]
    longest_of = [
        rows(f"longest_sent.{place}", f"Longest time of a link, part {place}", "s", maximum(*few))
        for place, few in enumerate(some, start=1)
    ]
    of_all = maximum(*(sent if len(some) == 1 else longest_of))
    longest = rows("longest_sent", "Longest time of a link", "s", of_all)
    return tuple(
        rows(
            f"{link.name}.busiest",
            f"The link of {link.words} is the busiest",
            "flag",
            where(all_of(time > 0, time >= longest), 1, 0),
        )
        for link, time in zip(links, sent, strict=True)
    )


def _hosts(rows: Rows, base: Workers, block: Block, of_each: Sequence[Block]) -> dict[Node, Node]:
    """What lies on hosts: each device reads its own."""
    body = rows.added("host", "Reading of hosts", "s", [one.time for one in of_each], 4) / base.inputs.pp
    return {block.time: replace(block.time, body=body, note="each device reads what lies on its own host")}


def _step(rows: Rows, devices: Devices, work: Pass, passes: Sequence[Pass]) -> dict[Node, Node]:
    """Host time of a pass: that of the device which samples."""
    section = next(section for section in work.sections if section.title == "Step overhead")
    time = section.rows[-1]
    assert isinstance(time, Quantity)
    place = work.sections.index(section)
    each = [one.sections[place].rows[-1] for one in passes]
    parts: list[Node] = [
        where(device.last, own, 0)
        for device, own in zip(devices.devices, each, strict=True)
        if isinstance(own, Node)
    ]
    body = rows.added("step", "Host time of a pass", "s", parts, 4)
    return {time: replace(time, body=body, note="of the device that samples")}


def _held_against(rows: Rows, devices: Devices, whole: Pass, stages: Sequence[Stage]) -> Pass:
    """The pass held against peaks and bandwidths of all devices, each for the time that it works."""
    worked = rows("worked", "Time on all devices", "s", sum_of([stage.time for stage in stages]))

    def mean(name: str, label: str, unit: str, of_each: Sequence[Node]) -> Node:
        work: list[Node] = [stage.time * own for stage, own in zip(stages, of_each, strict=True)]
        return rows(name, label, unit, rows.added(f"{name}.part", label, unit, work, 3) / worked)

    peaks = [
        rows(
            f"{device.number}.peak",
            f"Largest peak of device {device.number}",
            "FLOP/s",
            maximum(
                *(
                    kind.linear_peak
                    for name, kind in device.workers.formats.classes.items()
                    if name != "router"
                )
            ),
        )
        for device in devices.devices
    ]
    peak = mean("peak", "Peak of the devices that work", "FLOP/s", peaks)
    bandwidth = mean(
        "bandwidth",
        "Bandwidth of the devices that work",
        "B/s",
        [one.hardware.memory_bandwidth for one in devices.sets],
    )
    held = {
        whole.peak: replace(whole.peak, body=1 * peak, note="of each device for the time that it works"),
        whole.mbu: replace(whole.mbu, body=whole.bytes / (whole.time * bandwidth)),
    }
    listed = tuple(figure for section in whole.sections for figure in section.figures())
    return GraphRewrite(held, (), "", "", listed).rewrite(whole)


@dataclass(frozen=True)
class _Stages:
    """Seconds of a pass on each device; on the slowest; of a layer of each kind by device; of all layers."""

    stages: tuple[Stage, ...]
    slowest: Quantity
    of_layer: tuple[Mapping[Input, Quantity], ...]
    layered: Quantity


def stage_times(
    rows: Rows,
    ir: ModelGraph,
    base: Workers,
    devices: Devices,
    whole: Pass,
    passes: Sequence[Pass],
    runs: Mapping[str, Sequence[Node]],
) -> _Stages:
    """Seconds of a pass on each device, and on the one that takes most.

    A layer of each kind takes what its modules take; what is not in layers, such as embedding, messages and
    host time, is spread over the layers, but for the LM head and the drafter, which the last device has.
    """
    kinds, total = list(ir.layers), ir.total_layers
    once = _in_a_layer(rows, kinds, whole)
    of_layers: list[list[Quantity]] = []
    kinds_of: list[dict[Input, Quantity]] = []
    for device, one in zip(devices.devices, passes, strict=True):
        place = device.number - 1
        parts = []
        by_kind: dict[Input, Quantity] = {}
        for kind in kinds:
            times = [
                block.layer_time * once[original.id, kind.count]
                for block, original in zip(one.blocks, whole.blocks, strict=True)
                if (original.id, kind.count) in once
            ]
            name = kind.count.id.removeprefix("model.")
            own = Rows(rows.prefix, f", device {device.number}{rows.suffix}", rows.rows)
            of_kind = own(
                f"{device.number}.layer.{name}",
                f"Time of a layer, {kind.name}",
                "s",
                own.added(
                    f"{device.number}.layer.{name}.part", f"Time of a layer, {kind.name}", "s", times, 4
                ),
            )
            by_kind[kind.count] = of_kind
            parts.append(base.plan.stages.layers[kind.count][place] * of_kind)
        kinds_of.append(by_kind)
        of_layers.append(
            [
                rows(
                    f"{device.number}.layers",
                    f"Time of the layers of device {device.number}",
                    "s",
                    sum_of(parts),
                )
            ]
        )
    in_layers = rows("layers", "Time of all layers", "s", sum_of([times[0] for times in of_layers]))
    last = sum_of([block.time for block in whole.blocks if block.id in ("lm_head", "draft")])
    at_end = rows("end", "Time of LM head and drafter", "s", last)
    common = rows(
        "common", "Time of all else", "s", whole.time - in_layers - at_end, "spread over the layers"
    )
    stages = []
    for device, one, (layered,) in zip(devices.devices, passes, of_layers, strict=True):
        time = rows(
            f"{device.number}.stage",
            f"Time on device {device.number}",
            "s",
            layered + common * (device.layers / total) + where(device.last, at_end, 0),
        )
        own = Rows(rows.prefix, f", device {device.number}{rows.suffix}", rows.rows)
        stages.append(Stage(time, _parts(own, device, one, whole, runs)))
    slowest = rows("slowest", "Time on the slowest device", "s", maximum(*(stage.time for stage in stages)))
    return _Stages(tuple(stages), slowest, tuple(kinds_of), in_layers)


def _in_a_layer(rows: Rows, kinds: Sequence[Layer], whole: Pass) -> dict[tuple[str, Input], Node]:
    """How often a module runs in a layer of a kind, by module and count of the kind."""
    found: dict[tuple[str, Input], Node] = {}
    nothing: dict[Node, Node] = {kind.count: as_node(0) for kind in kinds}
    for block in whole.blocks:
        if block.repeats is None or block.id == "p2p":
            continue
        runs = _in_counts(block.repeats, frozenset(nothing))
        for kind in kinds:
            if not any(part is kind.count for part in expression(runs)):
                continue
            alone: Node = substitute(runs, nothing | {kind.count: as_node(1)})
            if not block.network:
                found[block.id, kind.count] = alone
                continue
            name = kind.count.id.removeprefix("model.")
            own = Rows(rows.prefix, f", {block.label}, {kind.name}{rows.suffix}", rows.rows)
            of_all = own(f"{block.id}.{name}.all", "Messages with those outside layers", "number", 1 * alone)
            outside = own(
                f"{block.id}.{name}.outside",
                "Messages outside layers",
                "number",
                1 * substitute(runs, nothing),
            )
            found[block.id, kind.count] = own(
                f"{block.id}.{name}.once", "Messages of a layer", "number", of_all - outside
            )
    return found


def _parts(
    rows: Rows, device: Device, one: Pass, whole: Pass, runs: Mapping[str, Sequence[Node]]
) -> dict[str, Quantity]:
    """Seconds of the layers of a device by what binds: compute, memory, network, overhead."""
    times: dict[str, list[Node]] = {limit: [] for limit in (COMPUTE, MEMORY, NETWORK, OVERHEAD)}
    for block, original in zip(one.blocks, whole.blocks, strict=True):
        if original.repeats is None or block.id == "p2p":
            continue
        number = runs[block.id][device.number - 1]
        rest: Node = block.layer_time
        if block.launch is not None:
            times[OVERHEAD].append(block.launch * number)
            rest = rest - block.launch
        worked = rows(
            f"{device.number}.{block.id}.worked", f"Time without launches, {block.label}", "s", rest * number
        )
        for limit in (COMPUTE, MEMORY, NETWORK):
            share = limited(block, limit, worked)
            if share is not None:
                times[limit].append(share)
    parts: dict[str, Quantity] = {}
    for limit, of_limit in times.items():
        label = f"{limit.capitalize()} time of its layers"
        some = [of_limit[start : start + 2] for start in range(0, len(of_limit), 2)] or [[as_node(0)]]
        members = [
            rows(f"{device.number}.{limit}.part.{place}", f"{label}, part {place}", "s", sum_of(few))
            for place, few in enumerate(some, start=1)
        ]
        parts[limit] = rows(f"{device.number}.{limit}", label, "s", sum_range(span(members)))
    return parts


def _of_stages(times: _Stages) -> Iterator[Quantity]:
    yield times.slowest
    for stage in times.stages:
        yield from stage.parts.values()


def _sections(devices: Devices, whole: Pass, times: _Stages, listed: Sequence[Named]) -> tuple[Section, ...]:
    """The rows of all devices that the pass is made of, a block for each device."""
    needed = [
        node
        for node in ancestors(
            whole.time, *_of_stages(times), *(f for section in whole.sections for f in section.figures())
        )
        if isinstance(node, Quantity)
    ]
    order = {figure.id: place for place, figure in enumerate(listed)}
    sections = []
    for device in devices.devices:
        begin = f"{device.prefix}{whole.phase.id}."
        own = [node for node in needed if node.id.startswith(begin)]
        own.sort(key=lambda node: order.get(node.id.removeprefix(device.prefix), -1))
        sections.append(
            Section(f"Modules on device {device.number}", tuple(own), "one run of each, on its accelerators")
        )
    return tuple(sections)


def other_splits(
    ir: ModelGraph, base: Workers, devices: Devices, microbatches: Node, work: Mapping[str, Pass]
) -> Devices:
    """The devices with what other ways to split layers would give.

    Args:
        microbatches: into which the batch is cut now.
        work: the passes, by phase.
    """
    rows = Rows("devices.other")
    found: dict[str, Split] = {}
    means = {
        phase: [_mean_layer(rows, ir, device, devices, phase) for device in devices.devices] for phase in work
    }
    total = ir.total_layers
    for way in SPLITS:
        layers = [device.splits[way] for device in devices.devices]
        ends = list(_ends(rows, way, layers, total))
        steps: dict[str, tuple[list[Node], list[Node]]] = {}
        for phase, of_phase in work.items():
            last = rows(
                f"{way}.{phase}.end",
                f"LM head and drafter, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                sum_of([block.time for block in of_phase.blocks if block.id in ("lm_head", "draft")]),
            )
            layered: list[Node] = [count * mean for count, mean in zip(layers, means[phase], strict=True)]
            of_all = rows(
                f"{way}.{phase}.layers",
                f"Time of all layers, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                sum_of(layered),
            )
            common = rows(
                f"{way}.{phase}.common",
                f"Time of all else, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                of_phase.time - devices.layered[phase] - last,
                "as it is now",
            )
            stages: list[Node] = [
                rows(
                    f"{way}.{phase}.{number}.stage",
                    f"Time on device {number}, {phase}, split {SPLIT_WORDS[way]}",
                    "s",
                    own + common * (count / total) + where(is_last, last, 0),
                )
                for number, (own, count, (_, is_last)) in enumerate(
                    zip(layered, layers, ends, strict=True), start=1
                )
            ]
            steps[phase] = [of_all, common, last], stages
        parts, of_devices = steps["decode"]
        slowest = rows(
            f"{way}.slowest", f"Slowest device, split {SPLIT_WORDS[way]}", "s", maximum(*of_devices)
        )
        step = rows(
            f"{way}.step",
            f"Decode step, split {SPLIT_WORDS[way]}",
            "s",
            maximum(sum_of(parts), microbatches * slowest),
        )
        through = rows(
            f"{way}.through",
            f"Prefill pass through all devices, split {SPLIT_WORDS[way]}",
            "s",
            sum_of(steps["prefill"][0]),
        )
        held = [
            rows(
                f"{way}.{device.number}.used",
                f"Memory used by device {device.number}, split {SPLIT_WORDS[way]}",
                "B",
                _held(rows, way, ir, device, count, is_first, is_last),
            )
            for device, count, (is_first, is_last) in zip(devices.devices, layers, ends, strict=True)
        ]
        fits = rows(
            f"{way}.fits",
            f"Fits, split {SPLIT_WORDS[way]}",
            "flag",
            where(
                all_of(
                    *(
                        size <= device.workers.memory.limit
                        for size, device in zip(held, devices.devices, strict=True)
                    )
                ),
                1,
                0,
            ),
        )
        name = rows(f"{way}.name", f"Way to split, {way}", "1", as_node(f"split {SPLIT_WORDS[way]}"))
        found[way] = Split(name, tuple(layers), step, through, fits)
    fitting = [
        rows(
            f"{way}.counted",
            f"Decode step if it fits, split {SPLIT_WORDS[way]}",
            "s",
            where(split.fits > 0, split.step, NO_BOUND_TIME),
        )
        for way, split in found.items()
    ]
    best = rows(
        "best",
        "Shortest decode step of other splits that fit",
        "s",
        minimum(*fitting),
        "a day where none fits",
    )
    section = rows.section("Other ways to split layers", "a mean layer stands for layers of all kinds")
    return replace(
        devices,
        other_splits=found,
        best=best,
        sections=devices.sections,
        passes={**devices.passes, "splits": (section,)},
    )


def _ends(rows: Rows, way: str, layers: Sequence[Node], total: Node) -> Iterator[tuple[Node, Node]]:
    """Of each device whether it has the first and the last layer."""
    upto: Node = as_node(0)
    for number, count in enumerate(layers, start=1):
        own = Rows(f"{rows.prefix}.{way}.{number}", f", device {number}, split {SPLIT_WORDS[way]}", rows.rows)
        before, upto = (
            upto,
            own("upto", "Layers up to it", "layer", 1 * count if number == 1 else upto + count),
        )
        is_first = count > 0 if number == 1 else all_of(count > 0, before <= 0)
        first = own("first", "It has the embedding", "flag", where(is_first, 1, 0))
        last = own("last", "It has the LM head", "flag", where(all_of(count > 0, upto >= total), 1, 0))
        yield first > 0, last > 0


def _mean_layer(rows: Rows, ir: ModelGraph, device: Device, devices: Devices, phase: str) -> Quantity:
    """Seconds of a mean layer on a device."""
    each = devices.of_layer[phase][device.number - 1]
    body = sum_of([kind * row for kind, row in each.items()]) / ir.total_layers
    return rows(
        f"{device.number}.{phase}.mean_layer",
        f"Time of a mean layer, device {device.number}, {phase}",
        "s",
        body,
    )


def _held(
    rows: Rows, way: str, ir: ModelGraph, device: Device, layers: Node, first: Node, last: Node
) -> Node:
    """Bytes that a device would hold with so many mean layers."""
    memory, number = device.workers.memory, device.number
    own = Rows(f"{rows.prefix}.{way}.{number}", f", device {number}, split {SPLIT_WORDS[way]}", rows.rows)
    start, head = memory.ends
    weights = sum_of([kind * size for kind, size in memory.of_layers.items()]) / ir.total_layers
    caches = sum_of([kind * size for kind, size in memory.caches.layers.items()]) / ir.total_layers
    mean = own("layer", "Weights of a mean layer", "B", weights)
    cache = own("cache", "KV cache of a mean layer", "B/request", caches)
    ends = own("ends", "Embedding and LM head", "B", where(first, start, 0) + where(last, head, 0))
    beside = own(
        "beside",
        "Beside layers and caches",
        "B",
        where(layers > 0, memory.activations + memory.logits + memory.reserve, 0),
    )
    return layers * (mean + memory.rank_requests * cache) + ends + beside
