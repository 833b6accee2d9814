"""The points of a workbook's sweep: what is swept, and the results of points that are stored as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, isfinite, log2, prod
from typing import Any

from mantile.equations.display import Shown
from mantile.estimates.estimate import Estimate, at_points
from mantile.graph.evaluate import Program
from mantile.graph.quantity import NOT_KNOWN, Value
from mantile.library.errors import InputError, unknown

MOST_LIVE, MOST = 40, 2000  # points as live columns; points at all
_SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1)  # of a request rate


@dataclass(frozen=True)
class SweepPoints:
    """The points of a sweep.

    Args:
        over: values by field; the first field runs fastest.
        points: values of the fields at each point.
        inputs: of the graph at each point, with what follows by default from the fields.
        live: whether a workbook has them as formulas.
    """

    over: Mapping[str, Sequence[Any]]
    points: list[dict[str, Any]]
    inputs: list[dict[str, Any]]
    live: bool


def sweep_points(estimate: Estimate) -> SweepPoints:
    """The points that a scenario asks for, or the usual ones.

    Raises:
        InputError: for an unknown field, a value it cannot have, or more points than a workbook holds.
    """
    over = estimate.scenario.sweep or usual(estimate)
    named = estimate.equations.inputs.named()
    for field in over:
        if field not in named:
            raise InputError(f"sweep: {unknown('input', field, named)}")
    count = prod(map(len, over.values()))
    if count > MOST:
        raise InputError(
            f"sweep: {count:,} points; expected at most {MOST:,} in a workbook; "
            "`mantile sweep` has no such limit"
        )
    points = grid(over)
    live = bool(estimate.scenario.sweep) and len(points) <= MOST_LIVE
    return SweepPoints(over, points, at_points(estimate, points), live)


def usual(estimate: Estimate) -> dict[str, tuple[Any, ...]]:
    """The load, by doublings; where requests arrive at a rate or come from sessions, by shares of them."""
    values = estimate.columns[0].values
    sessions = float(values.get("sessions") or 0)
    if sessions:
        return {"sessions": tuple(round(sessions * share, 6) for share in _SHARES)}
    rate = float(values.get("request_rate") or 0)
    if rate:
        return {"request_rate": tuple(round(rate * share, 6) for share in _SHARES)}
    doublings = max(6, ceil(log2(float(values["concurrency"]))) + 3)
    return {"concurrency": tuple(2**power for power in range(doublings + 1))}


def grid(over: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values of fields. The first field runs fastest: its values are a curve."""
    *outer, inner = reversed(list(over))
    return [
        {inner: value} | dict(zip(outer, others, strict=True))
        for others in product(*(over[field] for field in outer))
        for value in over[inner]
    ]


def point_values(
    estimate: Estimate, shown: Mapping[str, Shown], inputs: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Value], list[dict[str, Value]]]:
    """Results of the base scenario and of points, by key, in the units shown."""
    nodes = {key: of.of(of.figure) for key, of in shown.items()}
    program, base = Program(nodes.values()), estimate.inputs(0)
    changed = {name for point in inputs for name in point if point[name] != base.get(name)}
    again = program.partial(base, changed)
    at_base, *at_points = (
        {key: _plain(values[node]) for key, node in nodes.items()}
        for values in (program.run(base), *map(again, inputs))
    )
    return at_base, at_points


def _plain(value: Any) -> Value:
    """A number, or a text that says that nobody knows it; the same for an error."""
    if isinstance(value, str):
        return str(value)
    return float(value) if isfinite(value) else NOT_KNOWN
