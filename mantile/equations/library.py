"""What profiles state of every accelerator and system, rows "library.<accelerator>.<fact>" and
"system.<system>.<fact>", and makers of such rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mantile.graph.quantity import NOT_KNOWN, Input, defined
from mantile.graph.sentence import lowered
from mantile.library.dates import serial
from mantile.library.profile_facts import OWN_PRICE, PriceFact, ProfileFact
from mantile.library.profiles import Library

MOST = 1e9
"""The largest that a fact may be, in its unit."""
PEAKS = ("bf16", "fp16", "fp8", "int8", "fp4")


@dataclass(frozen=True)
class FactKind:
    """A fact that profiles state of each of their things.

    Args:
        name: what ids end in.
        label, unit, note: of its block.
        least: the smallest value that an override may have.
    """

    name: str
    label: str
    unit: str
    note: str
    least: float = 0


TEXTS = (
    FactKind("generation", "Generation", "1", "architecture; efficiency profiles fall back to it"),
    FactKind("name", "Name", "1", "as its maker calls it"),
    FactKind("vendor", "Maker", "1", "of the chip"),
)
PEAK_FACTS = tuple(
    FactKind(f"peak_{name}", f"Dense peak {name}", "TFLOP/s",
             "without sparsity; 0 where there is no native path; int8 in TOP/s")
    for name in PEAKS
)  # fmt: skip
FACTS = (
    FactKind("memory_capacity", "Memory", "GiB", "as the driver reports it", 0.001),
    FactKind("memory_visible", "Memory for the accelerator", "GiB",
             "what the driver shows, or what it may use of a memory it shares with the CPU; 0: all of it"),
    FactKind("memory_bandwidth", "Memory bandwidth", "GB/s", "datasheet", 0.001),
    FactKind("host_bandwidth", "Host link", "GB/s",
             "to the memory of the host, per direction; 0 where memory is one"),
    FactKind("tdp", "Power limit", "W", "TDP of one accelerator; 0 where nobody states it"),
    FactKind("idle", "Idle power", "W", "of one accelerator; 0 where nobody states it"),
)  # fmt: skip
PRICES = (
    FactKind("price_cloud", "Cloud price", "USD/h", "on demand, of one accelerator; 0 where none is known"),
    FactKind("price_rental", "Rental price", "USD/h", "on a contract of three years; 0 where none is known"),
    FactKind("price_owned", "Cost of owning", "USD/h",
             "published, with host, network and building, to compare; 0 where none is known"),
    FactKind("price_purchase", "Purchase price", "USD", "of one accelerator; 0 where none is known"),
    FactKind("price_provisioned_power", "Provisioned power", "W",
             "with host, network and its share of the facility; 0 where nobody states it"),
)  # fmt: skip
OWN_PRICES = tuple(
    FactKind(f"price_{price}_own", f"{basis}: one's own price", "flag", "1 if so")
    for basis, price in (("Cloud", "cloud"), ("Rental", "rental"), ("Owned", "purchase"))
)
USUAL_SYSTEM = FactKind("usual_system", "Usual system", "1", "the system an accelerator usually comes in")
SYSTEM_TEXTS = (
    FactKind("of_accelerator", "Accelerator of the system", "1", "which chip it holds"),
    FactKind("topology", "Topology", "1",
             "switch, mesh (a link for each pair), pcie, torus, network, or single"),
    FactKind("link", "Kind of link", "1", "where efficiency profiles tell it from others of its topology"),
    FactKind("machine", "Class of machine", "1", "server, workstation, laptop or single-board"),
)  # fmt: skip
SYSTEM_FLAGS = (
    FactKind("in_switch_reduction", "The switch can sum", "flag", "1 if so"),
    FactKind("peer_to_peer", "Accelerators read one another's memory", "flag",
             "0 where messages go through the host"),
    FactKind("whole_machine", "Accelerators are whole machines", "flag",
             "1 where the purchase price holds the host"),
)  # fmt: skip
SYSTEM_FACTS = (
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
OFFER_PARTS = {
    "key": FactKind("price_key", "Price", "1", "accelerator and basis; what is bought stands for owned"),
    "provider": FactKind("price_provider", "Provider", "1", "who asks the price"),
    "region": FactKind("price_region", "Region", "1", "where the price holds"),
    "term": FactKind("price_term", "Term", "1", "contract on which the price holds"),
    "day": FactKind("price_day", "Day of the price", "date", "on which it was read, or of which it is"),
    "lowest": FactKind("price_lowest", "Lowest price of others", "USD/h", "of those that were read"),
    "lowest_by": FactKind("price_lowest_by", "Who asks the lowest price", "1", ""),
    "highest": FactKind("price_highest", "Highest price of others", "USD/h", "of those that were read"),
    "highest_by": FactKind("price_highest_by", "Who asks the highest price", "1", ""),
}
"""What is said of a price; in words where nobody knows it."""


@dataclass(frozen=True)
class Things:
    """All accelerators, or all systems; the place of an id is the place of its facts in all columns.

    Args:
        kind: what all of them are called; `prefix` what ids of their facts begin with.
        facts: of all of them, by kind.
    """

    kind: str
    prefix: str
    ids: tuple[Input, ...]
    facts: Mapping[FactKind, tuple[Input, ...]]


def accelerators(library: Library) -> Things:
    """What is stated of every accelerator: flags are 1 where the reader stated a price, as with `--price`."""
    names = {
        chip.id: chip.name if chip.name.startswith(chip.vendor) else f"{chip.vendor} {chip.name}"
        for chip in library.accelerators
    }

    def said(chip: Any, kind: FactKind) -> Any:
        if kind is USUAL_SYSTEM:
            return library.usual_system(chip.id).id
        if kind not in (*PRICES, *OWN_PRICES):
            return getattr(chip, kind.name)
        basis = kind.name.removeprefix("price_").removesuffix("_own")
        price = getattr(library.price(chip.id), basis, None)
        return price if kind in PRICES else int(price is not None and price.provider == OWN_PRICE)

    kinds = (*TEXTS, *PEAK_FACTS, *FACTS, *PRICES, *OWN_PRICES, USUAL_SYSTEM)
    return _things("accelerators", "library", library.accelerators, names, kinds, said)


def systems(library: Library) -> Things:
    """What is stated of every system: its kind of link is its topology where it has no name of its own."""

    def said(system: Any, kind: FactKind) -> Any:
        found = getattr(system, kind.name.removeprefix("of_"))
        if kind.name == "link":
            return found or system.topology
        return int(found) if kind.unit == "flag" else found

    names = {system.id: system.name for system in library.systems}
    kinds = (*SYSTEM_TEXTS, *SYSTEM_FLAGS, *SYSTEM_FACTS, *DISKS)
    return _things("systems", "system", library.systems, names, kinds, said)


def _things(
    kind: str,
    prefix: str,
    profiles: Iterable[Any],
    names: Mapping[str, str],
    kinds: Iterable[FactKind],
    said: Callable[[Any, FactKind], Any],
) -> Things:
    """Rows of what is said of each profile."""
    known = {profile.id: profile for profile in profiles}
    word = kind.removesuffix("s").capitalize()
    ids = tuple(
        defined(
            f"{prefix}.{key}.id",
            f"{word}, {key}",
            "1",
            key,
            names[key],
            f"version {profile.version}",
            name=kind,
        )
        for key, profile in known.items()
    )
    facts = {
        fact: (stated_rows if fact.unit in ("1", "flag") else fact_rows)(
            prefix, fact, {key: said(profile, fact) for key, profile in known.items()}
        )
        for fact in kinds
    }
    return Things(kind, prefix, ids, facts)


def offers(library: Library) -> dict[str, tuple[Input, ...]]:
    """What is said of every price, by `OFFER_PARTS`; the first row of each is of one that nobody states."""
    stated = {"none": dict.fromkeys(OFFER_PARTS, NOT_KNOWN)} | {
        f"{price.id} {basis}": _offer(fact, f"{price.id} {basis}")
        for price in library.prices
        for basis, fact in price.bases.items()
        if fact.provider != OWN_PRICE
    }
    return {
        part: stated_rows("library", kind, {key: said[part] for key, said in stated.items()})
        for part, kind in OFFER_PARTS.items()
    }


def _offer(fact: PriceFact, key: str) -> dict[str, str | float]:
    """What is said of a price. One that nobody read has no day; what others ask is told of hours only."""
    others = [
        (other.value, other.source)
        for other in fact.others
        if fact.unit == "USD/h" and not isinstance(other.value, str)
    ]
    lowest, highest = (min(others), max(others)) if others else ((NOT_KNOWN, NOT_KNOWN),) * 2
    return {
        "key": key,
        "provider": fact.provider or NOT_KNOWN,
        "region": fact.region or NOT_KNOWN,
        "term": fact.term or NOT_KNOWN,
        "day": NOT_KNOWN if fact.status == "assumed" else serial(fact.date),
        "lowest": lowest[0],
        "lowest_by": lowest[1],
        "highest": highest[0],
        "highest_by": highest[1],
    }


def peak_keys() -> tuple[Input, ...]:
    """The names by which data types refer to peaks."""
    return tuple(
        defined(
            f"library.peak_key.{kind}",
            f"Peak {place}",
            "1",
            kind,
            "name of the peak in the data types below",
            "library",
            name=kind,
        )
        for place, kind in enumerate(PEAKS, 1)
    )


def stated_rows(prefix: str, kind: FactKind, values: Mapping[str, str | float]) -> tuple[Input, ...]:
    """What is said of every profile, by id. `prefix` begins the ids: library, system or datatype."""
    return tuple(
        defined(
            f"{prefix}.{key.replace(' ', '.')}.{kind.name}",
            f"{kind.label}, {key}",
            kind.unit,
            value,
            kind.note,
            "library",
            name=f"{lowered(kind.label)} in the library",
        )
        for key, value in values.items()
    )


def fact_rows(prefix: str, kind: FactKind, values: Mapping[str, ProfileFact | None]) -> tuple[Input, ...]:
    """A fact of every profile, by id, with its source; 0 where there is none or nobody states it."""
    return tuple(
        Input(
            f"{prefix}.{key}.{kind.name}",
            f"{kind.label}, {key}",
            kind.unit,
            (fact.value if fact else None) or 0.0,
            _note(fact) if fact else "none stated",
            f"{fact.status} {fact.date:%Y-%m}: {fact.source}" if fact else "no source",
            fact.status if fact else "defined",
            shared=True,
            fixed=True,
            name=f"{lowered(kind.label)} in the library",
        )
        for key, fact in values.items()
    )


def _note(fact: ProfileFact) -> str:
    """What is to be said of a fact: how sure it is, its note, and what other sources say."""
    others = "; ".join(f"{other.value} by {other.source}" for other in fact.others)
    confidence = f"{fact.confidence} confidence" if fact.confidence else ""
    return "; ".join(part for part in (confidence, fact.note, f"others: {others}" if others else "") if part)
