"""Efficiency profiles: which share of its peaks hardware comes to, what overheads it has, and how fitted
figures came about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from string import Formatter
from typing import Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict
from mantile.library.profile_facts import Profile, Status, Topology


@dataclass(frozen=True)
class Level:
    """A level of the fallback chain: for which cases its profiles hold.

    Args:
        name: as ids have it.
        label: what a profile of this level is of.
        key: by which a case finds its profile; in braces the fields that profile and case have in common.
    """

    name: str
    label: str
    key: str

    @cached_property
    def parts(self) -> tuple[tuple[str, str | None], ...]:
        """What the key is made of: texts, each with the field that follows it."""
        return tuple((text, field) for text, field, _, _ in Formatter().parse(self.key))

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields that a profile of this level states."""
        return frozenset(field for _, field in self.parts if field is not None)

    @property
    def number(self) -> int:
        """Its place in the chain, from 1."""
        return FALLBACK_CHAIN.index(self) + 1

    @property
    def of_links(self) -> bool:
        """Whether its profiles are about the links between accelerators only."""
        return bool(self.fields & {"topology", "link"})


FALLBACK_CHAIN = (
    Level("global", "everything", "global"),
    Level("framework", "framework", "global/{framework}"),
    Level("generation", "generation", "{generation}"),
    Level("generation_framework", "generation and framework", "{generation}/{framework}"),
    Level("topology", "topology", "topology/{topology}"),
    Level("accelerator", "accelerator", "{accelerator}"),
    Level("accelerator_framework", "accelerator and framework", "{accelerator}/{framework}"),
    Level("link", "kind of link", "link/{link}"),
)
"""From wide to specific. Of the profiles that hold for a case and have a factor, the one of the last level is
used."""


def fallback_chain(case: Mapping[str, str | None]) -> list[tuple[Level, str]]:
    """The levels of the fallback chain of a case with the keys of their profiles, from wide to specific.

    Args:
        case: framework, generation, accelerator, topology and kind of link, as far as they are known.
    """
    stated = {field: value for field, value in case.items() if value}
    return [(level, level.key.format(**stated)) for level in FALLBACK_CHAIN if level.fields <= stated.keys()]


def profile_keys(case: Mapping[str, str | None]) -> list[str]:
    """Keys of the efficiency profiles that hold for a case, from wide to specific.

    Args:
        case: framework, generation, accelerator, topology and kind of link, as far as they are known.

    Example:
        profile_keys({"framework": "vllm", "generation": "hopper"})
        ["global", "global/vllm", "hopper", "hopper/vllm"]
    """
    return [key for _, key in fallback_chain(case)]


class Factor(Strict):
    """One figure of an efficiency factor; `format`, `kv` or `ranks` where it holds for one kernel format, KV
    format or number of ranks only."""

    factor: str
    value: float
    format: str | None = None
    kv: Literal["bf16", "fp8"] | None = None
    ranks: int | None = None
    source: str = Field(min_length=3)
    date: date
    status: Status

    @property
    def condition(self) -> tuple[str | None, str | None, int | None]:
        """What it holds for."""
        return self.format, self.kv, self.ranks


class FactorChange(Strict):
    """By how much a fit changed a factor.

    Args:
        factor: its name; `condition` one kernel format, KV format or number of ranks, None for all its
            figures.
        change: new ÷ old; `low` and `high` the ends of its 80 % interval.
        at_bound: whether it stopped at the end of its range.
    """

    factor: str
    condition: str | None = None
    change: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    at_bound: bool = False


class FitReport(Strict):
    """How a profile came out of measured runs.

    Args:
        runs: how many; `source` where they come from; `metrics` which were fitted.
        spread: standard deviation of the logarithm of a factor around where it started, before the runs were
            seen.
        before, after: errors on these runs, by metric; `out_of_sample` those on runs left out, by what was
            left out.
        moved: the factors that changed.
    """

    runs: int = Field(ge=1)
    source: str
    metrics: tuple[str, ...]
    spread: float = Field(gt=0)
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    out_of_sample: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)
    moved: tuple[FactorChange, ...]


class EfficiencyProfile(Profile):
    """Figures of efficiency factors for the cases of one level of the fallback chain: for everything
    (`global`), a generation or an accelerator, with or without a framework, for a topology or a kind of link.
    A factor that a profile lacks is taken from the next wider one that holds."""

    generation: str | None = None
    accelerator: str | None = None
    framework: str | None = None
    topology: Topology | None = None
    link: str | None = None
    factors: tuple[Factor, ...]
    fit: FitReport | None = None

    @model_validator(mode="after")
    def _of_one_level(self) -> EfficiencyProfile:
        if all(level.fields != self.case.keys() for level in FALLBACK_CHAIN):
            levels = ", ".join(level.label for level in FALLBACK_CHAIN[1:])
            raise ValueError(f"{' and '.join(self.case)}: expected one of {levels}, or none of them")
        return self

    @property
    def case(self) -> dict[str, str]:
        """The fields that it states."""
        fields = ("generation", "accelerator", "topology", "link", "framework")
        return {field: value for field in fields if (value := getattr(self, field))}

    @property
    def level(self) -> Level:
        """Its level in the fallback chain."""
        return next(level for level in FALLBACK_CHAIN if level.fields == self.case.keys())

    @property
    def key(self) -> str:
        """What a case must have in its chain for the profile to hold."""
        return self.level.key.format(**self.case)

    @property
    def holds_for(self) -> str:
        """The cases it holds for, in words."""
        if self.topology or self.link:
            return f"links of the kind {self.topology or self.link}"
        place = self.generation or self.accelerator or "every accelerator"
        return f"{place} with {self.framework or 'every framework'}"


FigureKey = tuple[str, tuple[str | None, str | None, int | None]]
"""A factor, and the condition under which a figure of it holds."""


def figures_in_use(
    profiles: Iterable[EfficiencyProfile], chain: Iterable[str]
) -> dict[FigureKey, tuple[EfficiencyProfile, Factor]]:
    """The figures that a case uses, by factor and condition, each with the profile that it is from.

    Args:
        profiles: those there are.
        chain: keys of those that hold for the case, from wide to specific.
    """
    by_key = {profile.key: profile for profile in profiles}
    return {
        (factor.factor, factor.condition): (by_key[key], factor)
        for key in chain
        if key in by_key
        for factor in by_key[key].factors
    }
