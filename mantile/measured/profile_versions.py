"""New versions of efficiency profiles that hold what a fit of factors to measured runs found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal, cast, get_args

import numpy as np

from mantile.equations.factors import DOMAINS, KINDS
from mantile.graph.quantity import Input
from mantile.library.efficiency import EfficiencyProfile, Factor, FactorChange, FitReport, profile_keys
from mantile.library.errors import InputError, unknown
from mantile.library.profiles import Library
from mantile.library.scenario import DEFAULT_SYSTEM
from mantile.measured.metrics import Array
from mantile.measured.runs import Run

Scope = Literal["global", "generation", "framework", "pair"]
"""Which runs share a fitted factor: all, those of a generation, of a framework, or of an accelerator with a
framework."""

P90 = (
    1.2816  # standard deviations from the mean of a normal distribution to its tenth and ninetieth percentile
)


@dataclass(frozen=True)
class FittedFactor:
    """An efficiency factor that a fit may change: all its figures together, or those of one condition.

    Args:
        factor: name of the factor.
        condition: kernel format, KV format or number of ranks; None for all figures.
        scope: which runs share it.
    """

    factor: str
    condition: str | None = None
    scope: Scope = "global"

    @classmethod
    def parse(cls, text: str) -> FittedFactor:
        """From name, name[condition], name@scope, or name[condition]@scope, such as gemm_compute[fp8]@pair.

        Raises:
            InputError: naming the factor, condition or scope there is not.
        """
        rest, _, scope = text.partition("@")
        name, _, condition = rest.rstrip("]").partition("[")
        kinds = {kind.name: kind for kind in KINDS}
        if name not in kinds:
            raise unknown("factor", name, kinds)
        if scope not in ("", *get_args(Scope)):
            raise InputError(f"{text}: expected one of {', '.join(get_args(Scope))} after @")
        conditions = [str(condition) for condition in DOMAINS[kinds[name].condition]]
        if condition and condition not in conditions:
            raise InputError(f"{text}: expected one of {', '.join(conditions)} in the brackets")
        return cls(name, condition or None, cast(Scope, scope or "global"))

    def __str__(self) -> str:
        return self.factor + (f"[{self.condition}]" if self.condition else "")

    def has_figure(self, figure: Input) -> bool:
        """Whether a figure of the library is among those that are fitted."""
        return self.condition is None or figure.id.endswith((f".{self.condition}", f".tp{self.condition}"))

    def has_factor(self, factor: Factor) -> bool:
        """Whether a factor of a profile is among those that are fitted."""
        condition = factor.format or factor.kv or factor.ranks
        return factor.factor == self.factor and self.condition in (None, str(condition))


@dataclass(frozen=True)
class Fit:
    """Factors fitted to runs, a parameter for each factor and group of runs that share it.

    Args:
        names: factor and group of each parameter.
        offsets: logarithm of new ÷ old; `deviations` their standard deviations after the runs were seen.
        at_bound: whether a parameter ended at its bound.
    """

    names: tuple[tuple[FittedFactor, str], ...]
    offsets: Array
    deviations: Array
    at_bound: tuple[bool, ...]

    def changes(self) -> Iterator[tuple[FittedFactor, str, Change]]:
        """Factor, group and change of each parameter."""
        for (factor, group), offset, deviation, bound in zip(
            self.names, self.offsets, self.deviations, self.at_bound, strict=True
        ):
            change, low, high = (float(np.exp(offset + sign * P90 * deviation)) for sign in (0, -1, 1))
            yield factor, group, Change(change, low, high, bound)


@dataclass(frozen=True)
class Change:
    """New ÷ old of a factor, the ends of its 80 % interval, and whether it ended at its bound."""

    change: float
    low: float
    high: float
    at_bound: bool


def matching_keys(run: Run, library: Library) -> set[str]:
    """Keys of the efficiency profiles that hold for a run."""
    accelerator = library.accelerator(str(run.accelerator))
    system = (
        library.system(str(run.system))
        if run.system not in (None, DEFAULT_SYSTEM)
        else library.usual_system(accelerator.id)
    )
    return set(
        profile_keys(
            {
                "framework": run.framework or "vllm",
                "generation": accelerator.generation,
                "accelerator": accelerator.id,
                "topology": system.topology,
                "link": system.link,
            }
        )
    )


def updated_profiles(
    library: Library, matching_profiles: set[str], fit: Fit, report: FitReport, on: date
) -> tuple[EfficiencyProfile, ...]:
    """New versions of the profiles whose figures a fit changed.

    A factor of all runs changes in every profile that has it and holds for one of them. A factor of a
    generation, a framework or a pair changes in the profile of that group alone, which gets the figures it
    lacks from the next wider one.

    Args:
        library: the profiles that the fit started from.
        matching_profiles: keys of the profiles that hold for some run.
        fit: the factors as fitted.
        report: how the fit came about; each profile gets it with its own factors.
        on: the day.
    """
    versions = _Versions(library, matching_profiles, f"{report.source}; {report.runs} runs", on)
    for factor, group, change in fit.changes():
        versions.change(factor, group, change)
    before = {profile.id: profile.version for profile in library.efficiency}
    return tuple(
        versions.profiles[identifier].model_copy(
            update={
                "version": _next_version(before.get(identifier)),
                "fit": report.model_copy(update={"moved": tuple(entries)}),
            }
        )
        for identifier, entries in versions.changes.items()
    )


def _next_version(version: str | None) -> str:
    return "1" if version is None else str(int(version) + 1) if version.isdigit() else f"{version}.1"


class _Versions:
    """The profiles of a library while fitted factors are written into them.

    Args:
        source: what the figures were fitted to.
        on: the day.
    """

    def __init__(self, library: Library, matching_profiles: set[str], source: str, on: date) -> None:
        self.library, self.matching_profiles, self.source, self.on = library, matching_profiles, source, on
        self.profiles = {profile.id: profile for profile in library.efficiency}
        self.changes: dict[str, list[FactorChange]] = {}

    def change(self, factor: FittedFactor, group: str, change: Change) -> None:
        """Multiply the figures of a factor in all profiles of its group."""
        entry = FactorChange(
            factor=factor.factor,
            condition=factor.condition,
            change=_rounded(change.change),
            low=_rounded(change.low),
            high=_rounded(change.high),
            at_bound=change.at_bound,
        )
        for profile in self._profiles_of(factor, group):
            self.profiles[profile.id] = self._scaled(profile, factor, change.change)
            self.changes.setdefault(profile.id, []).append(entry)

    def _profiles_of(self, factor: FittedFactor, group: str) -> list[EfficiencyProfile]:
        """The profiles in which a factor changes; an empty one for a group that has none yet."""
        if factor.scope == "global":
            return [
                profile
                for profile in self.profiles.values()
                if profile.key in self.matching_profiles
                and any(factor.has_factor(other) for other in profile.factors)
            ]
        accelerator, _, framework = group.partition("--")
        fields = {
            "generation": {"id": group, "generation": group},
            "framework": {"id": f"global--{group}", "framework": group},
            "pair": {"id": group, "accelerator": accelerator, "framework": framework},
        }[factor.scope]
        profile = self.profiles.get(fields["id"])
        return [profile or EfficiencyProfile.model_validate({"version": "0", "factors": (), **fields})]

    def _scaled(self, profile: EfficiencyProfile, fitted: FittedFactor, change: float) -> EfficiencyProfile:
        """A profile with a factor's figures multiplied; those it lacks come from the next wider profile that
        has them."""
        sources = [profile] if fitted.scope == "global" else [profile, *self._wider(profile)]
        figures: dict[object, Factor] = {}
        for source in sources:
            for factor in source.factors:
                if fitted.has_factor(factor):
                    figures.setdefault((factor.format, factor.kv, factor.ranks), factor)
        kind = next(kind for kind in KINDS if kind.name == fitted.factor)
        scaled = [
            factor.model_copy(
                update={
                    "value": _rounded(min(max(factor.value * change, kind.low), kind.high)),
                    "status": "fitted",
                    "date": self.on,
                    "source": f"fit to {self.source}; was {factor.value:g}"[:300],
                }
            )
            for factor in figures.values()
        ]
        others = [factor for factor in profile.factors if not fitted.has_factor(factor)]
        return profile.model_copy(update={"factors": (*others, *scaled)})

    def _wider(self, profile: EfficiencyProfile) -> list[EfficiencyProfile]:
        """Profiles that hold wherever this one does, the nearest first."""
        case = profile.case
        if profile.accelerator:
            case["generation"] = self.library.accelerator(profile.accelerator).generation
        by_key = {other.key: other for other in self.profiles.values()}
        nearest_first = reversed(profile_keys(case))
        return [by_key[key] for key in nearest_first if key in by_key and key != profile.key]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
