"""Links between devices that are not alike: which there are; what goes over each stands in devices.eq."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mantile.equations.inputs import DeviceInputs, Workload
from mantile.equations.link import way
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, LateDefault, Quantity
from mantile.library.device import AWAY, pairs

PHASES = ("prefill", "decode")


@dataclass(frozen=True)
class Link:
    """Between two devices; its rows by their names, such as `rate` and `used`.

    Args:
        ends: their numbers; `kind` the input that states it.
    """

    ends: tuple[int, int]
    kind: Input
    rows: Equations

    @property
    def to_next(self) -> bool:
        """Whether it leads to the next device: such a link there always is."""
        one, other = self.ends
        return other == one + 1

    @property
    def home(self) -> str:
        """What ids of its rows begin with."""
        one, other = self.ends
        return f"devices.{one}.link" if self.to_next else f"devices.{one}.link_to_{other}"

    @property
    def name(self) -> str:
        """What ids of its figures in a pass have."""
        one, other = self.ends
        return str(one) if self.to_next else f"{one}_to_{other}"

    @property
    def words(self) -> str:
        """Between which devices it is."""
        one, other = self.ends
        return f"device {one} to {'the next' if self.to_next else f'device {other}'}"

    @property
    def carried(self) -> Quantity:
        """How often the activations of a pass go over it."""
        own = f"{self.home}.carried"
        return self.rows[own if own in self.rows else f"{self.home}.used"]

    def sent(self, phase: str) -> Quantity:
        """Seconds of all activations of a pass over it."""
        own = f"devices.{phase}.{self.name}.over"
        return self.rows[own if own in self.rows else f"devices.{phase}.{self.name}.sent"]

    def __getitem__(self, name: str) -> Quantity:
        return self.rows[f"{self.home}.{name}"]


def make_links(rows: Equations, inputs: Workload, away: Sequence[str]) -> tuple[Link, ...]:
    """Make the link from each device to the next, and where a scenario says which links there are, all
    others; and what goes over them in each pass.

    Args:
        away: parts of layers that may lie on the device before.
    """
    count = len(inputs.devices)
    ends = [
        *((number, number + 1) for number in range(1, count)),
        *(() if inputs.links is None else pairs(count)),
    ]
    links = tuple(Link(pair, _cells(inputs, *pair)[0], rows) for pair in ends)
    spaces = [_space(link, links, inputs.devices, away) for link in links]
    rows.make_in("way", *spaces)
    rows.make_in("cable", *spaces)
    passes = [Space("", f", {phase}", facts={"phase": phase}, home=f"devices.{phase}") for phase in PHASES]
    rows.make_in("pass of devices", *passes)
    rows.make_in("prefill of devices", passes[0])
    of_passes = [[_transfer(link, of, away) for link in links] for of in passes]
    rows.make_in("transfer", *(space for spaces in of_passes for space in spaces))
    rows.make_in("transfer of a prefill", *of_passes[0])
    for link in links:
        _, bandwidth, latency = _cells(inputs, *link.ends)
        follow(bandwidth, link["bandwidth_default"])
        follow(latency, link["latency_default"])
    return links


def _space(link: Link, links: Sequence[Link], devices: Sequence[DeviceInputs], away: Sequence[str]) -> Space:
    one, other = link.ends
    here, there = ("" if number == 1 else f"devices.{number}." for number in link.ends)
    space = way(link.home, f", {link.words}", here, there, link.kind.id)
    is_last = f"devices.{other}.{'is_last' if other < len(devices) else 'there'}"
    following = devices[other - 1]
    parts = [cell.id for name in AWAY if link.to_next and (cell := getattr(following, name)) is not None]
    features = {"to the next": link.to_next, "of the first": one == 1, "parts": bool(parts)}
    facts = {
        "one": str(one),
        "other": str(other),
        "count": devices[one - 1].count.id,
        "parts": " + ".join(parts),
        "name": link.name,
        "sent": _sent(link, away),
        "exists": f"all(rate > 0{'' if link.to_next else ', laid > 0'})",
        "is_last": is_last,
        "between": " + ".join(f"devices.{number}.there" for number in range(one + 1, other + 1)),
        "carried": " + ".join(_carried(link, links, is_last)),
    }
    return replace(
        space, facts=space.facts | facts, features=frozenset(name for name in features if features[name])
    )


def _transfer(link: Link, of: Space, away: Sequence[str]) -> Space:
    """What goes over a link in a pass."""
    own = {"name": link.name, "words": link.words, "link": link.home, "carried": link.carried.id}
    own["sent"] = _sent(link, away)
    own["over"] = " + ".join(f"devices.{of.facts['phase']}.{link.ends[1]}.{part}_over" for part in away)
    return replace(of, facts=of.facts | own, features=frozenset({"over"} if own["sent"] == "over" else {}))


def _sent(link: Link, away: Sequence[str]) -> str:
    """The row of all that goes over a link in a pass."""
    return "over" if link.to_next and away else "sent"


def _carried(link: Link, links: Sequence[Link], is_last: str) -> Iterator[str]:
    """What goes over a link: activations to its end, and on the way to another."""
    (one, other), others = link.ends, [each for each in links if not each.to_next]
    yield f"{link.home}.{'passes' if link.to_next else 'direct'}"
    if link.to_next:
        yield from (f"{each.home}.along" for each in others if each.ends[0] <= one < each.ends[1])
    around = [each for each in others if not (link.to_next and each.ends[0] <= one < each.ends[1])]
    if link.to_next or one == 1:
        there = f"devices.{other}.there" if link.to_next else is_last
        yield from (f"{there} * {each.home}.around" for each in around)


def _cells(inputs: Workload, one: int, other: int) -> tuple[Input, Input, Input]:
    """What states a link: kind, bandwidth and latency."""
    device = inputs.devices[one - 1]
    if other != one + 1:
        return device.others[other]
    assert device.link is not None and device.link_bandwidth is not None and device.link_latency is not None
    return device.link, device.link_bandwidth, device.link_latency


def follow(cell: Input, figure: Quantity) -> None:
    assert isinstance(cell.default, LateDefault)
    cell.default.set(figure)
