"""Efficiency profiles: how much of the hardware is reached, and how fitted figures came about."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict
from mantile.library.figure import Profile, Status, Topology


class Factor(Strict):
    """One efficiency figure, where needed for one kernel format, KV format or number of ranks only."""

    factor: str
    value: float
    format: str | None = None
    kv: Literal["bf16", "fp8"] | None = None
    ranks: int | None = None
    source: str = Field(min_length=3)
    date: date
    status: Status


class Moved(Strict):
    """A factor that a fit moved: by how much, and the range in which it lies with 80 % certainty.

    Args:
        factor, condition: all its figures, or those of one format or number of ranks.
        change: new over old; `low` and `high` the tenth and ninetieth percentile of it.
        at_bound: it would have gone further.
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
        spread: of a log factor around its parent's, before the runs were seen.
        before, after: errors on these runs, by metric; `out_of_sample` on runs kept aside, by what was kept aside.
    """

    runs: int = Field(ge=1)
    source: str
    metrics: tuple[str, ...]
    spread: float = Field(gt=0)
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    out_of_sample: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)
    moved: tuple[Moved, ...]


class EfficiencyProfile(Profile):
    """How much of the hardware is reached, for everything (`global`), a generation or an accelerator, with or without
    a framework, a topology or a kind of link. A factor that a profile lacks is taken from the next wider one."""

    generation: str | None = None
    accelerator: str | None = None
    framework: str | None = None
    topology: Topology | None = None
    link: str | None = None
    factors: tuple[Factor, ...]
    fit: FitReport | None = None

    @model_validator(mode="after")
    def _one_place(self) -> EfficiencyProfile:
        places = [name for name in ("generation", "accelerator", "topology", "link") if getattr(self, name)]
        if len(places) > 1:
            raise ValueError(f"{' and '.join(places)}: expected one of them")
        if self.framework and places and places[0] in ("topology", "link"):
            raise ValueError(f"framework: expected none beside {places[0]}")
        return self

    @property
    def key(self) -> str:
        """What a case must have in its chain for the profile to apply."""
        if self.topology or self.link:
            return f"topology/{self.topology}" if self.topology else f"link/{self.link}"
        place = self.accelerator or self.generation or "global"
        return f"{place}/{self.framework}" if self.framework else place
