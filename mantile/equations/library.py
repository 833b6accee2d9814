"""What profiles state of every accelerator, rows "library.<accelerator>.<fact>", and makers of such rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
USUAL_SYSTEM = FactKind("usual_system", "Usual system", "1", "the system an accelerator usually comes in")


def accelerators(library: Library) -> tuple[Input, ...]:
    """The ids of the accelerators; the place of an id is the place of its facts in all blocks below."""
    return tuple(
        defined(
            f"library.{chip.id}.id",
            f"Accelerator, {chip.id}",
            "1",
            chip.id,
            chip.name if chip.name.startswith(chip.vendor) else f"{chip.vendor} {chip.name}",
            f"version {chip.version}",
            name="accelerators",
        )
        for chip in library.accelerators
    )


def texts(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """A text of every accelerator."""
    return text_rows("library", kind, {chip.id: getattr(chip, kind.name) for chip in library.accelerators})


def usual_systems(library: Library) -> tuple[Input, ...]:
    """The system that every accelerator usually comes in."""
    systems = {chip.id: library.usual_system(chip.id).id for chip in library.accelerators}
    return text_rows("library", USUAL_SYSTEM, systems)


def facts(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """A fact of every accelerator."""
    return fact_rows("library", kind, {chip.id: getattr(chip, kind.name) for chip in library.accelerators})


def prices(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """A price of every accelerator, or the power that its price is about."""
    basis = kind.name.removeprefix("price_")
    values = {chip.id: getattr(library.price(chip.id), basis, None) for chip in library.accelerators}
    return fact_rows("library", kind, values)


def own_prices(library: Library, kind: FactKind) -> tuple[Input, ...]:
    """1 for every accelerator whose price the reader stated, as with `--price`."""
    basis = kind.name.removeprefix("price_").removesuffix("_own")
    facts = {chip.id: getattr(library.price(chip.id), basis, None) for chip in library.accelerators}
    own = {key: fact is not None and fact.provider == OWN_PRICE for key, fact in facts.items()}
    return flag_rows("library", kind, own)


def offers(library: Library) -> dict[str, tuple[Input, ...]]:
    """What is said of every price, by `OFFER_PARTS`; the first row of each is of one that nobody states."""
    stated = {"none": dict.fromkeys(OFFER_PARTS, NOT_KNOWN)} | {
        f"{price.id} {basis}": _offer(fact, f"{price.id} {basis}")
        for price in library.prices
        for basis, fact in price.bases.items()
        if fact.provider != OWN_PRICE
    }
    return {
        part: tuple(
            defined(
                f"library.{key.replace(' ', '.')}.{kind.name}",
                f"{kind.label}, {key}",
                kind.unit,
                said[part],
                kind.note,
                "library",
                name=f"{lowered(kind.label)} in the library",
            )
            for key, said in stated.items()
        )
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


def text_rows(prefix: str, kind: FactKind, values: Mapping[str, str]) -> tuple[Input, ...]:
    """A text of every profile, by id. `prefix` begins the ids: library, system or datatype."""
    return tuple(
        defined(
            f"{prefix}.{key}.{kind.name}",
            f"{kind.label}, {key}",
            "1",
            value,
            kind.note,
            "library",
            name=f"{lowered(kind.label)} in the library",
        )
        for key, value in values.items()
    )


def flag_rows(prefix: str, kind: FactKind, values: Mapping[str, bool]) -> tuple[Input, ...]:
    """1 or 0 of every profile, by id."""
    return tuple(
        defined(
            f"{prefix}.{key}.{kind.name}",
            f"{kind.label}, {key}",
            "flag",
            int(value),
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
