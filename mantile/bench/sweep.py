"""What a bench asks: every prompt length with every output length at every load."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from mantile.library.documents import Strict

BUCKETS = (256, 2_000, 8_000, 32_000, 128_000)
"""Lengths of prompts that are asked unless others are, as far as the model allows: below powers of two, so
that a model of 32,768 tokens has room for the answer too."""
OUTPUTS = (128,)
CONCURRENCY = (1, 2, 4, 8, 16, 32)
REPEATS = 10
BY_RATE = 10
"""At a rate each repeat is so many requests: ten arrivals alone would say little of a rate."""

Tokens = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]
Rate = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]


@dataclass(frozen=True)
class Point:
    """A load that is measured by itself.

    Args:
        prompt, output: tokens of each request.
        concurrency: requests in flight, each followed by the next (closed loop); None at a rate.
        rate: requests per second that arrive, whatever is in flight (open loop); None at a concurrency.
        repeats: measured requests of each slot; at a rate ten times as many in all.
    """

    prompt: int
    output: int
    concurrency: int | None
    rate: float | None
    repeats: int

    @property
    def id(self) -> str:
        """Its name in the sweep.

        >>> Point(2048, 128, 4, None, 10).id, Point(256, 64, None, 0.5, 10).id
        ('in2048-out128-c4', 'in256-out64-r0.5')
        """
        load = f"c{self.concurrency}" if self.rate is None else f"r{self.rate:g}"
        return f"in{self.prompt}-out{self.output}-{load}"

    @property
    def requests(self) -> int:
        """How many are measured."""
        return self.repeats * (BY_RATE if self.concurrency is None else self.concurrency)


class Sweep(Strict):
    """The dimensions of a sweep; every combination is a point.

    Args:
        prompts, outputs: tokens.
        concurrency: requests in flight; empty where `rates` are given.
        rates: requests per second, Poisson arrivals; empty where `concurrency` is given.
        repeats: see `Point`.
        warmup: requests of each slot before those that are measured.
        seed: of words and arrivals.
        chat: whether /v1/chat/completions is asked, else /v1/completions.
    """

    prompts: Annotated[tuple[Tokens, ...], Field(min_length=1)] = BUCKETS
    outputs: Annotated[tuple[Tokens, ...], Field(min_length=1)] = OUTPUTS
    concurrency: tuple[Count, ...] = ()
    rates: tuple[Rate, ...] = ()
    repeats: Count = REPEATS
    warmup: Annotated[int, Field(strict=True, ge=0, le=1000)] = 1
    seed: Annotated[int, Field(strict=True, ge=0)] = 0
    chat: bool = False

    @model_validator(mode="after")
    def _one_load(self) -> Sweep:
        if bool(self.concurrency) == bool(self.rates):
            raise ValueError("expected either concurrency or rates")
        return self

    def points(self) -> list[Point]:
        """Its points, short prompts and small loads first, none twice."""
        loads = [(count, None) for count in sorted({*self.concurrency})]
        rates = [(None, rate) for rate in sorted({*self.rates})]
        return [
            Point(prompt, output, *load, self.repeats)
            for prompt, output, load in itertools.product(
                sorted({*self.prompts}), sorted({*self.outputs}), [*loads, *rates]
            )
        ]
