"""Links between devices that are not alike: which there are, what they reach, and which are used.

id behind "devices."                         function
------------------------------------------   -----------------------
.<n>.link.*, .<n>.link_to_<m>.*              links
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mantile.equations.devices_away import goes_over
from mantile.equations.inputs import Workload
from mantile.equations.link import way
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, LateDefault, Node, Quantity, all_of, equal, sum_of, where
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.device import MESH, RING, STAR, pairs


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


def links(
    rows: Rows,
    ir: ModelGraph,
    inputs: Workload,
    base: Workers,
    known: Equations,
) -> tuple[Link, ...]:
    """The link from each device to the next, and where a scenario says which links there are, all others.

    Each is stated, or the fastest that the ports of both machines allow.
    """
    count = len(inputs.devices)
    ends = [(number, number + 1) for number in range(1, count)]
    if inputs.links is None:
        cables = _cables(rows, known, inputs, ends)
        before, total = base.plan.stages.before, ir.total_layers
        made = []
        for cable, device, following in zip(cables, inputs.devices, inputs.devices[1:], strict=False):
            goes_on = where(all_of(device.layers > 0, before[device.number] < total), 1, 0)
            made.append(cable.link(*_used(cable.rows, goes_on, goes_over(following, device))))
        return tuple(made)
    star = where(equal(inputs.links, STAR), 1, 0)
    switched = rows("switched", "Links go through a switch", "flag", star, "only Ethernet reaches one")
    known.know(switched)
    cables = _cables(rows, known, inputs, (*ends, *pairs(count)))
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


def _cables(rows: Rows, known: Equations, inputs: Workload, ends: Sequence[tuple[int, int]]) -> list[_Cable]:
    """The links between devices: stated, or the fastest that the ports of both machines allow."""
    spaces = []
    for one, other in ends:
        here, there = ("" if number == 1 else f"devices.{number}." for number in (one, other))
        name, words = ("link", "the next") if other == one + 1 else (f"link_to_{other}", f"device {other}")
        cell = _cells(inputs, one, other)[0].id
        spaces.append(way(f"devices.{one}.{name}", f", device {one} to {words}", here, there, cell))
    known.make_in("way", *spaces)
    known.make_in("cable", *spaces)
    return [
        _cable(rows, known, inputs, pair, space.home, space.suffix)
        for pair, space in zip(ends, spaces, strict=True)
    ]


def _cells(inputs: Workload, one: int, other: int) -> tuple[Input, Input, Input]:
    """What states a link: kind, bandwidth and latency."""
    device = inputs.devices[one - 1]
    if other != one + 1:
        return device.others[other]
    assert device.link is not None and device.link_bandwidth is not None and device.link_latency is not None
    return device.link, device.link_bandwidth, device.link_latency


def _cable(
    rows: Rows, known: Equations, inputs: Workload, ends: tuple[int, int], home: str, suffix: str
) -> _Cable:
    """The link between two devices, whose cells follow what is worked out."""
    link, bandwidth, latency = _cells(inputs, *ends)
    own = Rows(home, suffix, rows.rows)
    for section in known.sections("link", prefix=f"{home}."):
        own.add(*section.rows)
    follow(bandwidth, known[f"{home}.bandwidth_default"])
    follow(latency, known[f"{home}.latency_default"])
    return _Cable(
        rows=own,
        ends=ends,
        kind=link,
        bandwidth=known[f"{home}.bandwidth"],
        rate=known[f"{home}.rate"],
        latency=known[f"{home}.latency"],
        stated=known[f"{home}.stated"],
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
    last = [
        *(
            rows(f"{number}.is_last", f"Device {number} is the last", "flag", one * (1 - following))
            for number, (one, following) in enumerate(pairwise(exists), start=1)
        ),
        exists[-1],
    ]
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


def follow(cell: Input, figure: Quantity) -> None:
    assert isinstance(cell.default, LateDefault)
    cell.default.set(figure)
