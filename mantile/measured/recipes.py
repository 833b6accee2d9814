"""How the servers of public benchmarks were started: flags that their tables of results leave out, from their
scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from mantile.library.documents import Strict

Span = tuple[int, int]


class Match(Strict):
    """Which runs a recipe holds for; what is not stated holds for all."""

    model: tuple[str, ...] = ()
    accelerator: tuple[str, ...] = ()
    framework: str | None = None
    precision: str | None = None
    lengths: Span | None = None
    concurrency: Span | None = None
    tp: Span | None = None
    attention_dp: bool | None = None
    dates: tuple[str, str] | None = None

    def holds(self, fields: dict[str, Any], record: dict[str, Any]) -> bool:
        """Whether a run is meant.

        Args:
            fields: of its scenario.
            record: its row as published, with the lengths stated and the day.
        """
        day = str(record.get("measured_on", ""))[:10]
        return (
            (not self.model or fields["model"] in self.model)
            and (not self.accelerator or fields["accelerator"] in self.accelerator)
            and self.framework in (None, fields["framework"])
            and self.precision in (None, record["precision"])
            and self.lengths in (None, (record["isl"], record["osl"]))
            and (
                self.concurrency is None
                or self.concurrency[0] <= fields["concurrency"] <= self.concurrency[1]
            )
            and (self.tp is None or self.tp[0] <= fields["tp"] <= self.tp[1])
            and self.attention_dp in (None, fields["attention_dp"] > 1)
            and (self.dates is None or self.dates[0] <= day <= self.dates[1])
        )


class Flags(Strict):
    """What a recipe sets: fields of a scenario, experts over all ranks, a warmed-up server."""

    kv_dtype: str | None = None
    token_budget: int | Literal["prompt"] | None = None
    receive_interval: float | None = None
    batch_wait_steps: float | None = None
    experts: Literal["all"] | None = None
    warm: bool | None = None


class Recipe(Strict):
    """Flags of some runs, and the script that says so."""

    match: Match
    set: Flags
    source: str = Field(min_length=3)


class Recipes(Strict):
    """The recipes of a benchmark; `names` are words in the source of its runs."""

    names: tuple[str, ...]
    recipes: tuple[Recipe, ...]
