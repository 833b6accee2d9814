"""Measurements that contradict each other: the same case measured twice, with different figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.measured.metrics import COMPARED
from mantile.measured.runs import Run

ALLOWED = 1.2  # largest ÷ smallest figure of one case: about twice the noise that a fit allows for
_NOT_THE_CASE = {
    "id",
    "name",
    "metrics",
    "measured",
    "environment",
    "source",
    "date",
    "assumptions",
    "status",
}
_METRICS = tuple(metric.field for metric in COMPARED.values())


@dataclass(frozen=True)
class Contradiction:
    """Runs of one case that measured different figures of a metric.

    Args:
        metric: field of a run's metrics, in SI units.
        low, high: the smallest and the largest figure; `low_id` and `high_id` the runs that measured them.
        runs: how many runs of the case measured it.
    """

    metric: str
    low: float
    low_id: str
    high: float
    high_id: str
    runs: int


def contradictions(runs: Sequence[Run]) -> tuple[Contradiction, ...]:
    """The metrics of one case that were measured more than a factor of ALLOWED apart, the worst first.

    A case is all that is asked: what a run ran on beside that, such as a version, is not told apart.
    """
    cases: dict[str, list[Run]] = {}
    for run in runs:
        cases.setdefault(case_of(run), []).append(run)
    found = [
        Contradiction(metric=metric, low=low, low_id=low_id, high=high, high_id=high_id, runs=len(figures))
        for alike in cases.values()
        if len(alike) > 1
        for metric, figures in _by_metric(alike).items()
        for (low, low_id), (high, high_id) in [(min(figures), max(figures))]
        if high > ALLOWED * low
    ]
    return tuple(sorted(found, key=lambda entry: entry.low / entry.high))


def case_of(run: Run) -> str:
    """All that was asked of a run."""
    fields = run.model_dump(exclude=_NOT_THE_CASE, exclude_none=True)
    return repr(sorted((key, repr(value)) for key, value in fields.items()))


def _by_metric(runs: Sequence[Run]) -> dict[str, list[tuple[float, str]]]:
    figures: dict[str, list[tuple[float, str]]] = {}
    for run in runs:
        for metric, value in run.metrics.given().items():
            if metric in _METRICS:
                figures.setdefault(metric, []).append((value, run.id))
    return figures
