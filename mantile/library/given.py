"""Profiles that a user gives, in a scenario or by --profile: where they hold, and which of their figures are
used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mantile.library.correction import NO_CORRECTION, SHIPPED, SHIPPED_FILE, load_correction
from mantile.library.device import DEVICE, MOST_DEVICES
from mantile.library.efficiency import EfficiencyProfile, fallback_chain, figures_in_use
from mantile.library.errors import InputError, naming
from mantile.library.fields import DECODE
from mantile.library.profile_facts import OWN_PRICE, PriceFact
from mantile.library.profiles import Accelerator, Library, Prices, System, load_pinned
from mantile.library.scenario_fields import DEFAULT_SYSTEM, SCENARIO_FIELDS

Worker = tuple[str, str, str]
"""Accelerator, system and framework of workers: what profiles hold for."""


@dataclass(frozen=True)
class GivenProfile:
    """A profile as it was given.

    Args:
        pin: its file, or folder/id@version.
    """

    pin: str
    profile: Accelerator | System | Prices | EfficiencyProfile

    @property
    def holds_for(self) -> str:
        """The cases it holds for, in words."""
        return self.profile.holds_for if isinstance(self.profile, EfficiencyProfile) else self.profile.id

    def holds(self, worker: Worker, library: Library) -> bool:
        """Whether it holds for workers."""
        match self.profile:
            case EfficiencyProfile():
                return self.profile.key in chain_of(worker, library)
            case System():
                return self.profile.id == worker[1]
        return self.profile.id == worker[0]  # an accelerator, or its prices


@dataclass(frozen=True)
class Usage:
    """What becomes of an efficiency profile that was given.

    Args:
        pin: its file, or folder/id@version.
        used: factors of which a figure of it is used.
        not_used: the others, each with what is used instead: the key of a profile, or an override.
        not_for: workers it does not hold for, in words.
    """

    pin: str
    used: tuple[str, ...]
    not_used: Mapping[str, str]
    not_for: tuple[str, ...]


def given_profiles(pins: Iterable[str]) -> tuple[GivenProfile, ...]:
    """The profiles that are given.

    Raises:
        InputError: naming the pin or the file that is wrong.
    """
    return tuple(GivenProfile(pin, load_pinned(pin)[1]) for pin in pins)


def workers_of(values: Mapping[str, Any], library: Library) -> tuple[Worker, ...]:
    """The workers of a column of a scenario: those of prefill, and those of decode where they are apart."""
    names = ("accelerator", "system", "framework")
    found = []
    for prefix in ("", DECODE):
        accelerator, system, framework = (values.get(f"{prefix}{name}", values[name]) for name in names)
        found.append(_worker(accelerator, system, framework, library))
    for number in range(2, MOST_DEVICES + 1):
        if values.get(f"{DEVICE}{number}_count"):
            accelerator, system = (
                values.get(f"{DEVICE}{number}_{name}", otherwise)
                for name, otherwise in (("accelerator", values["accelerator"]), ("system", DEFAULT_SYSTEM))
            )
            found.append(_worker(accelerator, system, values["framework"], library))
    return tuple(dict.fromkeys(found))


def _worker(accelerator: Any, system: Any, framework: Any, library: Library) -> Worker:
    linked = library.usual_system(str(accelerator)).id if system in (None, DEFAULT_SYSTEM) else str(system)
    return str(accelerator), linked, str(framework)


def case_of(worker: Worker, library: Library) -> dict[str, str | None]:
    """The fields by which efficiency profiles hold for workers."""
    accelerator, system, framework = worker
    linked = library.system(system)
    return {
        "framework": framework,
        "generation": library.accelerator(accelerator).generation,
        "accelerator": accelerator,
        "topology": linked.topology,
        "link": linked.link,
    }


def chain_of(worker: Worker, library: Library) -> list[str]:
    """Keys of the efficiency profiles that hold for workers, from wide to specific."""
    return [key for _, key in fallback_chain(case_of(worker, library))]


def require_use(pins: Sequence[str], library: Library, workers: Sequence[Worker], name: str) -> None:
    """Refuse a profile that applies to nothing: one that holds for none of the workers, or none of whose
    figures is used.

    Args:
        library: with those profiles in it.
        name: of what they were given for.

    Raises:
        InputError: naming the profile, and what would make it apply.
    """
    for given in given_profiles(pins):
        if not any(given.holds(worker, library) for worker in workers):
            raise InputError(
                f"{name}: profiles: {given.pin} applies to nothing: it holds for {given.holds_for}, found "
                f"{', '.join(dict.fromkeys(map(_words, workers)))}; expected what it holds for, or the "
                "profile left out"
            )
        use = usage(given, library, workers)
        if use is not None and not use.used:
            others = ", ".join(dict.fromkeys(use.not_used.values()))
            raise InputError(
                f"{name}: profiles: {given.pin} applies to nothing: all its factors are those of {others}, "
                f"which are more specific than {given.holds_for}; expected a version of these, or the "
                "profile left out"
            )


def usage(
    given: GivenProfile, library: Library, workers: Sequence[Worker], overridden: Iterable[str] = ()
) -> Usage | None:
    """Which figures of an efficiency profile are used; None for any other profile.

    Args:
        library: with that profile in it.
        overridden: factors for which an override stands in every case.
    """
    profile = given.profile
    if not isinstance(profile, EfficiencyProfile):
        return None
    used: dict[str, None] = {}
    outranked: dict[str, str] = dict.fromkeys(overridden, "an override")
    for worker in workers:
        if not given.holds(worker, library):
            continue
        in_use = figures_in_use(library.efficiency, chain_of(worker, library))
        for factor in profile.factors:
            holder, _ = in_use[factor.factor, factor.condition]
            if holder.key == profile.key:
                used[factor.factor] = None
            else:
                outranked.setdefault(factor.factor, holder.key)
    mine = {factor.factor for factor in profile.factors}
    replaced = set(overridden)
    return Usage(
        pin=given.pin,
        used=tuple(name for name in used if name not in replaced),
        not_used={
            name: by
            for name, by in outranked.items()
            if name in mine and (name not in used or name in replaced)
        },
        not_for=tuple(
            dict.fromkeys(_words(worker) for worker in workers if not given.holds(worker, library))
        ),
    )


def _words(worker: Worker) -> str:
    return f"{worker[0]} with {worker[2]}"


def with_correction(library: Library, named: str, name: str) -> Library:
    """The library with the correction that a scenario names; as it is where that is `none`.

    Raises:
        InputError: for a file that there is not, or that holds something else.
    """
    if named == NO_CORRECTION:
        return library
    path = SHIPPED_FILE if named == SHIPPED else Path(named)
    if not path.is_file():
        raise InputError(
            f"{name}: field correction: expected {NO_CORRECTION}, {SHIPPED} or a file of "
            f"mantile calibrate --multipliers, found {named!r}"
        )
    return library.model_copy(update={"correction": load_correction(path)})


def with_prices(library: Library, stated: Mapping[str, float], basis: str | None, name: str) -> Library:
    """The library with prices of a scenario in place of its own, each of one accelerator.

    Args:
        stated: USD per hour, by accelerator.
        basis: the price basis that they are of; None: the usual one.

    A price that was typed into a workbook stays.

    Raises:
        InputError: for an accelerator that there is not, for one that is named twice, and where accelerators
            are bought.
    """
    if not stated:
        return library
    basis = basis or str(SCENARIO_FIELDS["price_basis"].default)
    if basis == "owned":
        raise InputError(
            f"{name}: prices: they are per hour, an accelerator that is owned has none; expected price_basis "
            "cloud or rental (--price-basis rental), or an override of hardware.price_purchase in their place"
        )
    found = {prices.id: prices for prices in library.prices}
    own: dict[str, Prices] = {}
    for named, price in stated.items():
        with naming(f"{name}: field prices", "unknown "):
            chip = library.accelerator(named)
        if chip.id in own:
            raise InputError(f"{name}: prices: {named} is {chip.id}, which is named twice; leave one out")
        known = found.get(chip.id) or Prices(id=chip.id, version="none")
        was: PriceFact | None = getattr(known, basis)
        if was is not None and was.provider == OWN_PRICE:
            continue
        replaced = "" if was is None else f"; was {was.value:g}: {was.source}"
        fact = PriceFact(
            value=price,
            unit=Prices.UNITS[basis],
            provider=OWN_PRICE,
            region=None,
            term=None,
            source=f"stated in the scenario{replaced}"[:300],
            date=chip.memory_capacity.date,
            status="assumed",
        )
        own[chip.id] = known.model_copy(update={basis: fact, "version": f"{known.version}-edited"})
    return library.model_copy(update={"prices": tuple((found | own).values())}) if own else library
