"""What a fit of efficiency factors found, and the new versions of profiles that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, get_args

import numpy as np

from mantile.equations.factors import DOMAINS, KINDS
from mantile.graph.quantity import Input
from mantile.library.efficiency import EfficiencyProfile, Factor, FitReport, Moved
from mantile.library.errors import InputError, unknown
from mantile.library.profiles import Library
from mantile.library.scenario import DEFAULT_SYSTEM
from mantile.measured.runs import Run

Level = Literal["global", "generation", "framework", "pair"]
Array = np.ndarray[Any, np.dtype[Any]]
BAND = 1.2816  # deviations to the tenth and ninetieth percentile


@dataclass(frozen=True)
class Choice:
    """A factor that may move: all its figures together, or those of one condition; the same for all runs of a group.

    Args:
        factor: name of the factor.
        condition: kernel format, KV format or number of ranks; None for all figures.
        level: whether all runs share it, those of a generation, of a framework, or of an accelerator with a framework.
    """

    factor: str
    condition: str | None = None
    level: Level = "global"

    @classmethod
    def parse(cls, text: str) -> Choice:
        """From name, name[condition], name@level, or all three.

        Raises:
            InputError: naming the factor or level there is not.
        """
        rest, _, level = text.partition("@")
        name, _, condition = rest.rstrip("]").partition("[")
        known = {kind.name: kind for kind in KINDS}
        if name not in known:
            raise unknown("factor", name, known)
        if level not in ("", *get_args(Level)):
            raise InputError(f"{text}: expected one of {', '.join(get_args(Level))} after @")
        if condition and condition not in map(str, DOMAINS[known[name].condition]):
            raise InputError(
                f"{text}: expected one of {', '.join(map(str, DOMAINS[known[name].condition]))} in the brackets"
            )
        return cls(name, condition or None, level or "global")  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.factor + (f"[{self.condition}]" if self.condition else "")

    def has(self, figure: Input) -> bool:
        """Whether a figure of the library is among those that move."""
        return self.condition is None or figure.id.endswith((f".{self.condition}", f".tp{self.condition}"))

    def moves(self, factor: Factor) -> bool:
        """Whether a figure of a profile is among those that move."""
        condition = factor.format or factor.kv or factor.ranks
        return factor.factor == self.factor and self.condition in (None, str(condition))


@dataclass(frozen=True)
class Fit:
    """Factors fitted to runs.

    Args:
        names: factor and group of each parameter.
        offsets: log of the factor over that it started from; `deviations` their standard deviations after the runs.
        at_bound: whether a parameter ended at its bound.
    """

    names: tuple[tuple[Choice, str], ...]
    offsets: Array
    deviations: Array
    at_bound: tuple[bool, ...]


def chain(run: Run, library: Library) -> set[str]:
    """Keys of the efficiency profiles that hold for a run."""
    chip = library.accelerator(str(run.accelerator))
    system = (
        library.system(str(run.system))
        if run.system not in (None, DEFAULT_SYSTEM)
        else library.usual_system(chip.id)
    )
    places = ("global", chip.generation, chip.id)
    return {
        *places,
        *(f"{place}/{run.framework or 'vllm'}" for place in places),
        f"topology/{system.topology}",
        f"link/{system.link}",
    }


def updated_profiles(
    library: Library, reached: set[str], fit: Fit, report: FitReport, on: date
) -> tuple[EfficiencyProfile, ...]:
    """New versions of the profiles whose figures a fit moved.

    What all runs share moves in every profile that has it and holds for one of them. What a generation, a framework or a pair
    shares moves in the profiles of that group alone, which get the figures they lack from the next wider one.

    Args:
        library: the profiles that the fit started from.
        reached: keys of the profiles that hold for some run.
        fit: the factors as fitted.
        report: how the fit came about; each profile gets it with its own factors.
        on: the day.
    """
    profiles = {profile.id: profile for profile in library.efficiency}
    moved: dict[str, list[Moved]] = {}
    for (choice, group), offset, deviation, bound in zip(
        fit.names, fit.offsets, fit.deviations, fit.at_bound, strict=True
    ):
        change, low, high = (float(np.exp(offset + sign * BAND * deviation)) for sign in (0, -1, 1))
        entry = Moved(
            factor=choice.factor,
            condition=choice.condition,
            change=_rounded(change),
            low=_rounded(low),
            high=_rounded(high),
            at_bound=bound,
        )
        for identifier in _homes(profiles, choice, group, reached):
            profiles[identifier] = _scaled(
                profiles, identifier, choice, change, f"{report.source}; {report.runs} runs", on, library
            )
            moved.setdefault(identifier, []).append(entry)
    old = {profile.id: profile.version for profile in library.efficiency}
    return tuple(
        profiles[identifier].model_copy(
            update={
                "version": _next(old.get(identifier)),
                "fit": report.model_copy(update={"moved": tuple(entries)}),
            }
        )
        for identifier, entries in moved.items()
    )


def _next(version: str | None) -> str:
    return "1" if version is None else str(int(version) + 1) if version.isdigit() else f"{version}.1"


def _homes(
    profiles: dict[str, EfficiencyProfile], choice: Choice, group: str, reached: set[str]
) -> list[str]:
    """Ids of the profiles in which a factor moves; one that is not there yet is made."""
    if choice.level == "global":
        return [
            profile.id
            for profile in profiles.values()
            if profile.key in reached and any(choice.moves(factor) for factor in profile.factors)
        ]
    accelerator, _, framework = group.partition("--")
    place = {
        "generation": {"generation": group},
        "framework": {"framework": group},
        "pair": {"accelerator": accelerator, "framework": framework},
    }[choice.level]
    identifier = {"generation": group, "framework": f"global--{group}", "pair": group}[choice.level]
    if identifier not in profiles:
        profiles[identifier] = EfficiencyProfile.model_validate(
            {"id": identifier, "version": "0", "factors": (), **place}
        )
    return [identifier]


def _scaled(
    profiles: dict[str, EfficiencyProfile],
    identifier: str,
    choice: Choice,
    change: float,
    source: str,
    on: date,
    library: Library,
) -> EfficiencyProfile:
    """A profile with a factor's figures multiplied; figures it lacks come from the next wider profile that has them."""
    profile = profiles[identifier]
    kept = [factor for factor in profile.factors if not choice.moves(factor)]
    found: dict[tuple[Any, ...], Factor] = {}
    for other in (profile, *_wider(profiles, profile, library)):
        for factor in other.factors:
            if choice.moves(factor) and (choice.level != "global" or other is profile):
                found.setdefault((factor.format, factor.kv, factor.ranks), factor)
    kind = next(kind for kind in KINDS if kind.name == choice.factor)
    fresh = [
        factor.model_copy(
            update={
                "value": _rounded(min(max(factor.value * change, kind.low), kind.high)),
                "status": "fitted",
                "date": on,
                "source": f"fit to {source}; was {factor.value:g}"[:300],
            }
        )
        for factor in found.values()
    ]
    return profile.model_copy(update={"factors": (*kept, *fresh)})


def _wider(
    profiles: dict[str, EfficiencyProfile], profile: EfficiencyProfile, library: Library
) -> list[EfficiencyProfile]:
    """Profiles that hold where this one does, the nearest first."""
    generation = (
        library.accelerator(profile.accelerator).generation if profile.accelerator else profile.generation
    )
    keys = [
        profile.accelerator,
        f"{generation}/{profile.framework}",
        generation,
        f"global/{profile.framework}",
        "global",
    ]
    by_key = {other.key: other for other in profiles.values()}
    return [by_key[key] for key in keys if key in by_key and by_key[key] is not profile]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
