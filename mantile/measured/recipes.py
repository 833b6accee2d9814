"""How public benchmarks were run, as far as their tables of results leave it out: flags of their servers,
what their clients did. And what engines do unless they are told otherwise."""

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
    speculation: bool | None = None

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
                or self.concurrency[0] <= fields.get("concurrency", 0) <= self.concurrency[1]
            )
            and (self.tp is None or self.tp[0] <= fields["tp"] <= self.tp[1])
            and self.attention_dp in (None, fields["attention_dp"] > 1)
            and (self.dates is None or self.dates[0] <= day <= self.dates[1])
            and self.speculation in (None, "speculation" in fields)
        )


class Flags(Strict):
    """What a recipe sets: fields of a scenario, experts over all ranks, a warmed-up server."""

    kv_dtype: str | None = None
    token_budget: int | Literal["prompt"] | None = None
    max_requests: Literal["concurrency"] | None = None
    receive_interval: float | None = None
    batch_wait_steps: float | None = None
    draft_tokens: int | None = None
    acceptance_rate: float | None = None
    experts: Literal["all"] | None = None
    warm: bool | None = None


class Recipe(Strict):
    """Flags of some runs, and the script that says so."""

    match: Match
    set: Flags
    source: str = Field(min_length=3)


class ClientFlags(Strict):
    """What the client of a benchmark did.

    Args:
        prompts_per_slot: prompts it sent ÷ concurrency.
        drawn_from: shortest ÷ longest length where the table does not say how lengths were drawn.
        free_slot: whether requests waited as if the batch had a slot fewer than there were requests.
        batching: as in a scenario.
    """

    prompts_per_slot: float | None = None
    drawn_from: float | None = None
    free_slot: bool | None = None
    batching: Literal["continuous", "static"] | None = None


class Client(Strict):
    """A benchmark whose client is known: words in the source of its runs, and which of them are meant."""

    names: tuple[str, ...]
    framework: str | None = None
    set: ClientFlags
    source: str = Field(min_length=3)

    def holds(self, framework: str, source: str) -> bool:
        """Whether runs of a source with a framework are meant."""
        return self.framework in (None, framework) and any(name in source for name in self.names)


class EngineLimits(Strict):
    """What an engine does unless it is told otherwise; on the accelerators named, or on all."""

    framework: str
    accelerator: tuple[str, ...] = ()
    max_requests: int
    token_budget: int | None = None
    source: str = Field(min_length=3)


class Recipes(Strict):
    """The recipes of a benchmark; `names` are words in the source of its runs. Clients of this and other
    benchmarks, and limits of engines; the first that holds counts."""

    names: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    clients: tuple[Client, ...] = ()
    engines: tuple[EngineLimits, ...] = ()

    def client(self, framework: str, source: str) -> ClientFlags | None:
        """What the client of a benchmark did; None where nobody knows."""
        known = [client.set for client in self.clients if client.holds(framework, source)]
        return known[0] if known else None

    def engine(self, framework: str, accelerator: str) -> EngineLimits | None:
        """The limits of an engine; None where nobody states them."""
        for limits in self.engines:
            if limits.framework == framework and accelerator in (limits.accelerator or (accelerator,)):
                return limits
        return None
