"""Results of the workbook before this one, beside those of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.display import Currency, Shown
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    E2E,
    INTERACTIVITY,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_HOUR,
    USD_PER_MILLION_INPUT_TOKENS_BY_TIME,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME,
    Metric,
)
from mantile.graph.quantity import NOT_KNOWN, InCase, Input, Quantity, all_of, is_number, where

FOLLOWED = (
    TTFT,
    TPOT,
    E2E,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S,
    MEMORY_PER_ACCELERATOR,
    POWER,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MILLION_INPUT_TOKENS_BY_TIME,
    USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME,
)
"""The results of the base scenario that are followed from version to version."""


@dataclass(frozen=True)
class Followed:
    """A result of the base scenario, in the unit in which it is shown.

    Args:
        was: of the workbook before; `now` of this one, live; `change` of now against was.
    """

    result: Shown
    was: Input
    now: Quantity
    change: Quantity


def followed(graph: EstimateGraph, before: Mapping[str, float | None]) -> tuple[Followed, ...]:
    """The results that the workbook before this one had; money in US dollars, whatever the front sheets show.

    Args:
        before: its results by the attribute of the metric; None where nobody knew one.
    """
    return tuple(
        _followed(metric, metric.on(graph.figures, metric.attribute, Currency(), metric.label), before)
        for metric in FOLLOWED
        if metric.attribute in before
    )


def _followed(metric: Metric, result: Shown, before: Mapping[str, float | None]) -> Followed:
    name, value = f"since.{result.key}", before[metric.attribute]
    was = Input(
        f"{name}.was",
        f"{result.label}, before",
        result.unit,
        NOT_KNOWN if value is None else metric.shown(value),
        shared=True,
        fixed=True,
    )
    now = Quantity(
        f"{name}.now", f"{result.label}, now", result.unit, result.of(InCase(result.figure, 0, "of A"))
    )
    known = all_of(is_number(was), is_number(now), was > 0)
    change = where(known, now / was - 1, NOT_KNOWN)
    return Followed(result, was, now, Quantity(f"{name}.change", f"{result.label}, change", "1", change))


@dataclass(frozen=True)
class FollowedInput:
    """A number that was typed otherwise: as it was and as it was made, and the change of now against was."""

    was: Input
    now: Input
    change: Quantity


def followed_input(number: int, label: str, unit: str, was: float, now: float) -> FollowedInput:
    """An input that differs from the workbook before.

    Args:
        number: its place in the list.
    """
    before, after = (
        Input(f"since.input.{number}.{name}", f"{label}, {name}", unit, value, shared=True, fixed=True)
        for name, value in (("was", was), ("now", now))
    )
    change = where(before > 0, after / before - 1, NOT_KNOWN)
    return FollowedInput(
        before, after, Quantity(f"since.input.{number}.change", f"{label}, change", "1", change)
    )
