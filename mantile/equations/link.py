"""Links between machines: the kinds there are, rows "link.<kind>.<fact>", and the ports of machines.

What two machines reach stands in link.eq.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.library import FactKind, stated_rows
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Section, defined
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
        family: stated_rows(
            "link.port",
            FactKind(family, f"Port, {family}", "1", "kind of link"),
            {chip.id: known.port(chip.id, family) for chip in library.accelerators},
        )
        for family in FAMILIES
    }
    return LinkTable(kinds, facts, ports)


def know_links(rows: Equations, table: LinkTable) -> None:
    """Make the kinds of links known, and the ports of accelerators."""
    rows.know_table("link", {"kinds": table.kinds} | table.facts)
    rows.know_table("link.port", table.ports)


def way(home: str, suffix: str, here: str, there: str, cell: str = "") -> Space:
    """Where what two machines reach is made.

    Args:
        home: what ids begin with; `suffix` what labels end in.
        here, there: what ids of each of them begin with; `cell` the id of the input that states the link.
    """
    facts = {"here": here, "there": there, "cell": cell}
    for end, prefix in (("here", here), ("there", there)):
        number = prefix.removeprefix("devices.").removesuffix(".")
        own = {"": "", "decode": "decode_"}.get(number, f"device{number}_")
        facts[f"{end}_inputs"] = f"inputs.{own}"
    return Space(home=home, suffix=suffix, facts=facts)
