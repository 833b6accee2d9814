"""New versions of efficiency profiles that hold what a fit of factors to measured runs found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, cast, get_args

import numpy as np

from mantile.equations.factors import DOMAINS, KINDS
from mantile.graph.quantity import Input
from mantile.library.efficiency import (
    EfficiencyProfile,
    Factor,
    FactorChange,
    FitReport,
    Level,
    fallback_chain,
    figures_in_use,
)
from mantile.library.errors import InputError, unknown
from mantile.library.fields import DECODE
from mantile.library.given import Worker, case_of, workers_of
from mantile.library.profiles import Library
from mantile.library.scenario_fields import DEFAULT_SYSTEM, SCENARIO_FIELDS
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


Case = tuple[tuple[Level, str], ...]
"""The fallback chain of a run: levels with the keys of their profiles, from wide to specific."""


def cases_of(run: Run, library: Library) -> tuple[Case, ...]:
    """The fallback chain of a run, and that of its decode workers where these are described apart.

    Raises:
        InputError: for an accelerator or a system that the library lacks.
    """
    return tuple(tuple(fallback_chain(case_of(worker, library))) for worker in workers_of_run(run, library))


def workers_of_run(run: Run, library: Library) -> tuple[Worker, ...]:
    """The workers of a run, those of decode where they are described apart."""
    names = ("accelerator", "system", "framework")
    values = {name: getattr(run, name) or SCENARIO_FIELDS[name].default for name in names}
    if run.decode is not None:
        stated = {name: getattr(run.decode, name) for name in names}
        other_chip = stated["accelerator"] not in (None, values["accelerator"])
        follows = values | ({"system": DEFAULT_SYSTEM} if other_chip else {})
        values |= {f"{DECODE}{name}": stated[name] or follows[name] for name in names}
    return workers_of(values, library)


def matching_keys(run: Run, library: Library) -> set[str]:
    """Keys of the efficiency profiles that hold for a run."""
    return {key for case in cases_of(run, library) for _, key in case}


def updated_profiles(
    library: Library, fit: Fit, cases: Sequence[Sequence[Case]], report: FitReport, on: date
) -> tuple[EfficiencyProfile, ...]:
    """New versions of the profiles whose figures a fit changed: with them, the runs are predicted as by the
    fit.

    A factor of all runs changes in every profile that has it and holds for one of them. One of a generation,
    a framework or a pair changes where its figure in use comes from, if that profile holds for the group
    alone; else it is written into the widest profile of the group that no other one outranks: a factor of a
    framework whose figure is that of a generation into the profile of that generation with the framework.

    Args:
        library: the profiles that the fit started from.
        fit: the factors as fitted.
        cases: of the runs that share each parameter of the fit.
        report: how the fit came about; each profile gets it with its own factors.
        on: the day.

    Raises:
        InputError: if no profile can hold what was fitted: runs that share one would need two figures.
    """
    versions = _Versions(library, f"{report.source}; {report.runs} runs", on)
    for (factor, group, change), of_group in zip(fit.changes(), cases, strict=True):
        versions.change(factor, group, change, of_group)
    before = {profile.id: profile.version for profile in library.efficiency}
    return tuple(
        versions.finished(identifier).model_copy(
            update={
                "version": _next_version(before.get(identifier)),
                "fit": report.model_copy(update={"moved": tuple(entries)}),
            }
        )
        for identifier, entries in versions.changes.items()
    )


def _next_version(version: str | None) -> str:
    return "1" if version is None else str(int(version) + 1) if version.isdigit() else f"{version}.1"


_Condition = tuple[str | None, str | None, int | None]


class _Versions:
    """The profiles of a library while fitted factors are written into them.

    Args:
        source: what the figures were fitted to.
        on: the day.
    """

    def __init__(self, library: Library, source: str, on: date) -> None:
        self.library, self.source, self.on = library, source, on
        self.profiles = {profile.id: profile for profile in library.efficiency}
        self.changes: dict[str, list[FactorChange]] = {}

    def change(self, factor: FittedFactor, group: str, change: Change, cases: Sequence[Case]) -> None:
        """Multiply the figures of a factor that are in use in the cases of a group."""
        if factor.scope == "global":
            written = self._everywhere(factor, change.change, cases)
        else:
            written = self._in_use(factor, group, change.change, cases)
        entry = FactorChange(
            factor=factor.factor,
            condition=factor.condition,
            change=_rounded(change.change),
            low=_rounded(change.low),
            high=_rounded(change.high),
            at_bound=change.at_bound,
        )
        for identifier in dict.fromkeys(identifier for identifier, _ in written):
            self.changes.setdefault(identifier, []).append(entry)

    def _everywhere(
        self, fitted: FittedFactor, change: float, cases: Sequence[Case]
    ) -> dict[tuple[str, _Condition], Factor]:
        """All figures of a factor in profiles that hold for a case, written."""
        keys = {key for case in cases for _, key in case}
        written = {
            (profile.id, factor.condition): self._scaled(factor, change)
            for profile in self.profiles.values()
            if profile.key in keys
            for factor in profile.factors
            if fitted.has_factor(factor)
        }
        self._write(fitted.factor, written)
        return written

    def _in_use(
        self, fitted: FittedFactor, group: str, change: float, cases: Sequence[Case]
    ) -> dict[tuple[str, _Condition], Factor]:
        """The figures in use in the cases, written where they hold for the group and nothing outranks them.

        Raises:
            InputError: if two cases need different figures in one profile.
        """
        written: dict[tuple[str, _Condition], Factor] = {}
        wanted: list[tuple[Case, _Condition, float]] = []
        for case in cases:
            for condition, (profile, factor) in self._figures(fitted, case).items():
                target = self._target(fitted.scope, case, profile)
                scaled = self._scaled(factor, change)
                written.setdefault((target, condition), scaled)
                wanted.append((case, condition, scaled.value))
        self._write(fitted.factor, written)
        for case, condition, value in wanted:
            profile, factor = self._figures(fitted, case)[condition]
            if factor.value != value:
                raise InputError(
                    f"factor {fitted}@{fitted.scope}: runs of {group} take its figure from different "
                    f"profiles, which {profile.key} cannot tell apart; expected {fitted}@global, or runs "
                    "with the same links"
                )
        return written

    def _figures(
        self, fitted: FittedFactor, case: Case
    ) -> dict[_Condition, tuple[EfficiencyProfile, Factor]]:
        """The figures of a factor that a case uses, by condition, each with its profile."""
        in_use = figures_in_use(self.profiles.values(), [key for _, key in case])
        return {condition: found for (_, condition), found in in_use.items() if fitted.has_factor(found[1])}

    def _target(self, scope: Scope, case: Case, profile: EfficiencyProfile) -> str:
        """Id of the widest profile that outranks the one a figure is from, or is that one, and holds only
        where both the group and that figure do. A new one starts empty.

        A kind of link outranks everything, whatever the framework: its own profile changes.
        """
        fields = {*_FIELDS[scope], *profile.level.fields} - {"topology", "link"}
        for level, key in case:
            known = level.fields | ({"generation"} if "accelerator" in level.fields else set())
            if level.number >= profile.level.number and not level.of_links and fields <= known:
                return self._at(level, key).id
        return profile.id

    def _at(self, level: Level, key: str) -> EfficiencyProfile:
        """The profile of a key; an empty one, of version 0, where there is none yet."""
        found = next((profile for profile in self.profiles.values() if profile.key == key), None)
        if found is None:
            place, _, framework = key.partition("/")
            fields = {"framework": framework, "generation": place, "accelerator": place}
            stated = {name: value for name, value in fields.items() if name in level.fields}
            found = EfficiencyProfile.model_validate(
                {"id": key.replace("/", "--"), "version": "0", "factors": (), **stated}
            )
            self.profiles[found.id] = found
        return found

    def _scaled(self, factor: Factor, change: float) -> Factor:
        """A figure times a change. Several changes may follow one another: its range counts at the end."""
        source = f"fit to {self.source}; was {factor.value:g}"[:300]
        again = factor.source.startswith(f"fit to {self.source}; was ") and factor.date == self.on
        return factor.model_copy(
            update={
                "value": factor.value * change,
                "status": "fitted",
                "date": self.on,
                "source": factor.source if again else source,
            }
        )

    def finished(self, identifier: str) -> EfficiencyProfile:
        """A profile whose new figures are rounded and within the ranges of their factors."""
        profile = self.profiles[identifier]
        before = next((old for old in self.library.efficiency if old.id == identifier), None)
        old = before.factors if before is not None else ()
        figures = [
            factor if factor in old else factor.model_copy(update={"value": _rounded(_within_range(factor))})
            for factor in profile.factors
        ]
        return profile.model_copy(update={"factors": tuple(figures)})

    def _write(self, name: str, written: Mapping[tuple[str, _Condition], Factor]) -> None:
        """Replace or add figures of a factor, by profile and condition."""
        for identifier in dict.fromkeys(identifier for identifier, _ in written):
            profile = self.profiles[identifier]
            mine = {condition: factor for (of, condition), factor in written.items() if of == identifier}
            kept = [
                factor for factor in profile.factors if factor.factor != name or factor.condition not in mine
            ]
            self.profiles[identifier] = profile.model_copy(update={"factors": (*kept, *mine.values())})


_FIELDS: Mapping[Scope, tuple[str, ...]] = {
    "framework": ("framework",),
    "generation": ("generation",),
    "pair": ("accelerator", "framework"),
}
"""The fields of a profile that holds for one group of a scope alone."""


def _within_range(factor: Factor) -> float:
    kind = next(kind for kind in KINDS if kind.name == factor.factor)
    return min(max(factor.value, kind.low), kind.high)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
