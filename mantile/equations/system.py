"""What profiles state of every system, rows "system.<system>.<fact>"."""

from __future__ import annotations

from mantile.equations.library import FactKind, fact_rows, flag_rows, text_rows
from mantile.graph.quantity import Input, defined
from mantile.library.profiles import Library

ACCELERATOR = FactKind("of_accelerator", "Accelerator of the system", "1", "which chip it holds")
TOPOLOGY = FactKind("topology", "Topology", "1",
                    "switch, mesh (a link for each pair), pcie, torus, network, or single")  # fmt: skip
LINK = FactKind("link", "Kind of link", "1", "where efficiency profiles tell it from others of its topology")
MACHINE = FactKind("machine", "Class of machine", "1", "server, workstation, laptop or single-board")
FLAGS = (
    FactKind("in_switch_reduction", "The switch can sum", "flag", "1 if so"),
    FactKind("peer_to_peer", "Accelerators read one another's memory", "flag",
             "0 where messages go through the host"),
    FactKind("whole_machine", "Accelerators are whole machines", "flag",
             "1 where the purchase price holds the host"),
)  # fmt: skip
FACTS = (
    FactKind("accelerators", "Accelerators in a domain", "accelerator", "that the links below join", 1),
    FactKind("link_bandwidth", "Link bandwidth", "GB/s",
             "of an accelerator with all its links in the domain, per direction; 0 without links"),
    FactKind("pair_bandwidth", "Link of a pair", "GB/s",
             "between two accelerators of a full mesh, per direction; 0 elsewhere"),
    FactKind("torus_axes", "Axes of the torus", "axis", "each with two links; 0 elsewhere"),
    FactKind("domains", "Domains", "domain", "that the network can join; 0 without one"),
    FactKind("scale_out_bandwidth", "Network bandwidth", "GB/s",
             "of an accelerator out of its domain, per direction; 0 without a network"),
    FactKind("node_power", "Power of a domain", "W",
             "nameplate, with hosts and fans; 0 where nobody states it"),
    FactKind("hosts", "Hosts of a domain", "host",
             "each with as many accelerators; 0 where nobody states it: then all accelerators are on one"),
    FactKind("host_memory", "Host memory", "GiB",
             "main memory of all hosts of a domain; 0 where nobody states it: then it bounds nothing"),
    FactKind("host_memory_bandwidth", "Bandwidth of host memory", "GB/s",
             "of main memory of all hosts of a domain; 0 where nobody states it: then it bounds nothing"),
)  # fmt: skip
DISKS = (
    FactKind("disk", "Disks", "GB",
             "room on the disks of all hosts of a domain; 0 where nobody states it: then it bounds nothing"),
    FactKind("disk_bandwidth", "Bandwidth of disks", "GB/s",
             "read from all disks of a domain; 0 where nobody states it: then it bounds nothing"),
)  # fmt: skip
"""Of use only where prefixes are kept on disk."""


def systems(library: Library) -> tuple[Input, ...]:
    """The ids of the systems; the place of an id is the place of its facts in all blocks below."""
    return tuple(
        defined(
            f"system.{system.id}.id",
            f"System, {system.id}",
            "1",
            system.id,
            system.name,
            f"version {system.version}",
            name="systems",
        )
        for system in library.systems
    )


def accelerators(library: Library) -> tuple[Input, ...]:
    """The accelerator of every system."""
    return text_rows("system", ACCELERATOR, {system.id: system.accelerator for system in library.systems})


def topologies(library: Library) -> tuple[Input, ...]:
    """The topology of every system."""
    return text_rows("system", TOPOLOGY, {system.id: system.topology for system in library.systems})


def links(library: Library) -> tuple[Input, ...]:
    """The kind of link of every system; its topology where it has no name of its own."""
    return text_rows(
        "system", LINK, {system.id: system.link or system.topology for system in library.systems}
    )


def machines(library: Library) -> tuple[Input, ...]:
    """The class of every system."""
    return text_rows("system", MACHINE, {system.id: system.machine for system in library.systems})


def flags(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """1 or 0 of every system."""
    return flag_rows("system", kind, {system.id: getattr(system, kind.name) for system in library.systems})


def facts(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """A fact of every system."""
    return fact_rows("system", kind, {system.id: getattr(system, kind.name) for system in library.systems})
