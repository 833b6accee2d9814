"""Links between machines: the kinds there are, rows "link.<kind>.<fact>", and the ports of machines."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import GIGA, MICRO
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.equations.library import FactKind, text_rows
from mantile.equations.tables import Equations
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    defined,
    equal,
    index,
    match,
    maximum,
    minimum,
    span,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.links import INFERRED, NO_PORT
from mantile.library.profiles import Library

FACTS = (
    FactKind("bandwidth", "Bandwidth of a link", "GB/s", "raw, per direction", 0),
    FactKind("latency", "Latency of a link", "us", "of a message", 0),
    FactKind("share", "Share of a link that transfers reach", "1", "of the raw bandwidth", 0),
)
FAMILIES = ("ethernet", "thunderbolt")
"""Ports that only reach ports of their own family."""
WORDS = {INFERRED: "the fastest that the ports of both allow", NO_PORT: "there is no link"}
"""What stands above the kinds of links in a list to choose from, and what it means."""


@dataclass(frozen=True)
class LinkTable:
    """The kinds of links; a machine without a port has one called none, with no bandwidth.

    Args:
        facts: bandwidth in GB/s, latency in us, share, each of every kind.
        ports: kinds by family, of every accelerator of the library.
    """

    kinds: tuple[Input, ...]
    facts: dict[str, tuple[Input, ...]]
    ports: dict[str, tuple[Input, ...]]

    def sections(self) -> tuple[Section, ...]:
        """Their blocks."""
        return (
            Section("Links between machines", self.kinds),
            *(Section(kind.label, self.facts[kind.name], kind.note) for kind in FACTS),
            *(
                Section(f"Ports of machines, {family}", self.ports[family], "used where nobody states a link")
                for family in FAMILIES
            ),
        )

    def place(self, kind: Node) -> Node:
        """Where a kind of link stands in the blocks."""
        return match(kind, span(self.kinds))

    def at(self, fact: str, place: Node) -> Node:
        """A fact of the kind of link at a place."""
        return index(span(self.facts[fact]), place)

    def of(self, fact: str, kind: Node) -> Node:
        """A fact of a kind of link."""
        return self.at(fact, self.place(kind))

    def port(self, family: str, place: Node) -> Node:
        """The kind of link that a machine has, by the place of its accelerator."""
        return index(span(self.ports[family]), place)


def link_table(library: Library) -> LinkTable:
    """The links of the library."""
    known = library.links
    kinds = (
        *(
            defined(
                f"link.{word}.id", f"Link, {word}", "1", word, note, "a word of the scenario", name="links"
            )
            for word, note in WORDS.items()
        ),
        *(
            defined(f"link.{kind.id}.id", f"Link, {kind.id}", "1", kind.id, kind.name, "links", name="links")
            for kind in known.links
        ),
    )
    facts = {
        fact.name: (
            *(
                defined(
                    f"link.{word}.{fact.name}",
                    f"{fact.label}, {word}",
                    fact.unit,
                    0,
                    note,
                    name=fact.label.lower(),
                )
                for word, note in WORDS.items()
            ),
            *(
                Input(
                    f"link.{kind.id}.{fact.name}",
                    f"{fact.label}, {kind.id}",
                    fact.unit,
                    stated.value,
                    stated.note,
                    f"{stated.source}, {stated.date.isoformat()}",
                    stated.status,
                    shared=True,
                    minimum=1e-6,
                    maximum=1e6,
                    name=fact.label.lower(),
                )
                for kind in known.links
                for stated in (getattr(kind, fact.name),)
            ),
        )
        for fact in FACTS
    }
    ports = {
        family: text_rows(
            "link.port",
            FactKind(family, f"Port, {family}", "1", "kind of link"),
            {chip.id: known.port(chip.id, family) for chip in library.accelerators},
        )
        for family in FAMILIES
    }
    return LinkTable(kinds, facts, ports)


@dataclass(frozen=True)
class Machine:
    """What a machine is, whatever lies in its memory."""

    inputs: Workload
    hardware: Hardware
    efficiency: Efficiency

    @property
    def prefix(self) -> str:
        """What ids of its rows begin with."""
        return self.hardware.tdp.id.removesuffix("hardware.tdp")


@dataclass(frozen=True)
class Way:
    """What two machines reach: GB/s after losses, and us."""

    rate: Quantity
    latency: Quantity


def by_ports(rows: Rows, one: Machine, other: Machine, table: LinkTable, switched: Node | None = None) -> Way:
    """The fastest of ports of one family on both, and of their networks.

    Args:
        switched: 1 where they are joined by a switch: only Ethernet reaches one.
    """
    found: list[tuple[Node, Node]] = []
    for family in FAMILIES:
        rates, delays = [], []
        for side, chip in (("here", one), ("there", other)):
            place = match(chip.inputs.accelerator, span(chip.hardware.accelerators))
            port = rows(f"{family}.{side}", f"Port, {family}, {side}", "1", table.port(family, place))
            kind = rows(f"{family}.{side}.place", f"Its place, {family}, {side}", "number", table.place(port))
            raw = rows(
                f"{family}.{side}.raw",
                f"Its bandwidth, {family}, {side}",
                "GB/s",
                table.at("bandwidth", kind),
            )
            of_port: Node = raw * table.at("share", kind)
            delay: Node = table.at("latency", kind)
            if family == "ethernet":
                factors = chip.efficiency
                network = chip.hardware.scale_out_bandwidth * factors["network_bandwidth"] / GIGA
                of_port = where(equal(port, NO_PORT), network, of_port)
                delay = where(equal(port, NO_PORT), factors["network_latency"] * MICRO, delay)
            rates.append(
                rows(f"{family}.{side}.rate", f"Rate of the port, {family}, {side}", "GB/s", of_port)
            )
            delays.append(
                rows(f"{family}.{side}.latency", f"Latency of the port, {family}, {side}", "us", delay)
            )
        slower: Node = minimum(*rates)
        if switched is not None and family != "ethernet":
            slower = where(switched > 0, 0, slower)
        found.append(
            (
                rows(f"{family}.rate", f"Rate by {family}", "GB/s", slower, "of the slower port"),
                rows(f"{family}.latency", f"Latency by {family}", "us", maximum(*delays)),
            )
        )
    (by_port, port_delay), (by_cable, cable_delay) = found
    rate = rows("ports.rate", "Rate by ports", "GB/s", maximum(by_port, by_cable), "of the faster family")
    latency = rows(
        "ports.latency", "Latency by ports", "us", where(by_cable >= rate, cable_delay, port_delay)
    )
    return Way(rate, latency)


def in_system(
    known: Equations,
    rows: Rows,
    inputs: Workload,
    one: Machine,
    other: Machine,
    ports: Way,
    switched: Node | None = None,
) -> Way:
    """The same, or the links of a system of which both are accelerators, if these are faster.

    Args:
        switched: 1 where they are joined by a switch, and by no system.
    """
    alike = all_of(
        equal(one.inputs.accelerator, other.inputs.accelerator),
        equal(one.inputs.system, other.inputs.system),
    )
    if switched is not None:
        in_one = where(alike, 1 - switched, 0)
        alike = (
            rows("alike", "Both are accelerators of one system", "flag", in_one, "and no switch is between")
            > 0
        )
    way = f"{one.prefix}network.p2p"
    per_byte = known[f"{way}.per_byte"]
    rate = rows(
        "system.rate",
        "Rate in their system",
        "GB/s",
        where(all_of(alike, per_byte > 0), 1 / per_byte / inputs.network_speed / GIGA, 0),
        "where both are accelerators of one system",
    )
    best = rows("inferred.rate", "Rate that is inferred", "GB/s", maximum(rate, ports.rate))
    latency = rows(
        "inferred.latency",
        "Latency that is inferred",
        "us",
        where(all_of(rate > 0, rate >= best), known[f"{way}.latency"] * MICRO, ports.latency),
    )
    return Way(best, latency)
