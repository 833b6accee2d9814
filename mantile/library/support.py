"""What documents say that a framework runs, and what it cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict
from mantile.library.profile_facts import Status

Way = Literal["tp", "pp", "ep", "attention_dp", "cp", "dcp", "disaggregated"]
WAYS: dict[Way, str] = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "ep": "expert parallelism",
    "attention_dp": "attention-DP",
    "cp": "context parallelism",
    "dcp": "decode context parallelism",
    "disaggregated": "workers of their own for prefill and decode",
}
"""How a model is spread and served, by the field of a scenario that asks for it."""


class Limit(Strict):
    """What an engine takes where nothing is stated. None: nobody states it.

    Args:
        token_budget: tokens of a step.
        max_requests: requests in a batch, of a group of attention-DP.
    """

    token_budget: int | None = Field(default=None, ge=1)
    max_requests: int | None = Field(default=None, ge=1)


class Block(Strict):
    """Tokens of a block of the KV cache, unless an engine is told otherwise."""

    tokens: int = Field(ge=1)
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""


SETTINGS = ("schedule_policy", "attention_backend", "moe_backend")
"""Fields whose values are names that each framework has its own of."""


class Setting(Strict):
    """What a setting of a framework may be, by the names that it gives them.

    Args:
        field: of a scenario.
        names: all that the release knows.
        usual: those of them with which an estimate is what it is without; others are not modelled.
    """

    field: Literal["schedule_policy", "attention_backend", "moe_backend"]
    names: tuple[str, ...] = Field(min_length=1)
    usual: tuple[str, ...] = ()
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""

    @model_validator(mode="after")
    def _usual_are_names(self) -> Setting:
        if not set(self.usual) <= set(self.names):
            raise ValueError(f"{self.field}: usual: expected some of names")
        return self


class Limits(Strict):
    """Limits of a framework, on accelerators with a large memory and on others.

    Args:
        large_from: GiB of memory that count as large; None: the size does not matter.
        small_on: generation that counts as small whatever its memory.
    """

    small: Limit
    large: Limit | None = None
    large_from: int | None = Field(default=None, ge=1)
    small_on: str | None = None
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""

    def on(self, size: str) -> Limit:
        """Of accelerators with a small or large memory."""
        return self.large if size == "large" and self.large is not None else self.small


class Statement(Strict):
    """What a document says of a framework: that it runs something, or that it cannot.

    What no document settles is not stated, and then it is allowed.

    Args:
        says: "runs" or "cannot".
        experimental: whether the document calls what it runs experimental.
        weights, kv: families of data types, of weights or of the KV cache.
        ways: ways to spread and serve a model.
        chips: makers or generations of chips, where it is about the chip itself.
        on: makers or generations of chips that the rest is about; none: all.
        needs: what it takes besides, such as a version of CUDA or ROCm.
    """

    says: Literal["runs", "cannot"]
    weights: tuple[str, ...] = ()
    kv: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    chips: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    needs: str = ""
    experimental: bool = False
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""

    @model_validator(mode="after")
    def _about_something(self) -> Statement:
        if not (self.weights or self.kv or self.ways or self.chips):
            raise ValueError("expected one of weights, kv, ways, chips: what the statement is about")
        if self.chips and self.on:
            raise ValueError("on: expected beside weights, kv and ways; chips names the chips itself")
        return self

    @property
    def formats(self) -> tuple[str, ...]:
        """The families of data types that it names."""
        return (*self.weights, *self.kv)

    @property
    def places(self) -> tuple[str, ...]:
        """The makers and generations that it names."""
        return (*self.chips, *self.on)

    def subjects(self, generations: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """What it is about, as weights/nvfp4, weights/nvfp4/hopper, kv/fp8, ep, chip/volta.

        Args:
            generations: of each maker. Of a chip that is none of them nothing is said.
        """
        known = {chip for chips in generations.values() for chip in chips}

        def of(places: tuple[str, ...]) -> list[str]:
            return [chip for place in places for chip in generations.get(place, (place,)) if chip in known]

        for chip in of(self.chips):
            yield f"chip/{chip}"
        parts = (
            *(f"weights/{name}" for name in self.weights),
            *(f"kv/{name}" for name in self.kv),
            *self.ways,
        )
        for part in parts:
            yield from (f"{part}/{chip}" for chip in of(self.on)) if self.on else (part,)
