"""How runs are predicted that a fit has not seen: parts of the runs left out in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from mantile.library.errors import InputError
from mantile.measured.fit import SPREAD, FitProblem, Loss
from mantile.measured.metrics import Array
from mantile.measured.runs import Run

LeftOut = Literal["config", "model", "system", "framework"]
_RESULTS = {
    "id",
    "name",
    "concurrency",
    "metrics",
    "environment",
    "source",
    "date",
    "assumptions",
    "status",
}  # what a configuration is not told apart by


def folds(runs: Sequence[Run], by: LeftOut, parts: int = 5) -> list[Array]:
    """Which runs are left out, for each part of a cross-validation: an array of truth values over the runs.

    Args:
        by: what a part has in common. A configuration is everything but concurrency; configurations are dealt
            out to `parts` parts in order of their names, so that parts are the same each time.
    """
    if by == "config":
        keys = [_configuration(run) for run in runs]
        part_of = {key: place % parts for place, key in enumerate(sorted(set(keys)))}
        return [np.array([part_of[key] == part for key in keys]) for part in range(parts)]
    field = "accelerator" if by == "system" else by
    keys = [str(getattr(run, field)) for run in runs]
    return [np.array([key == left_out for key in keys]) for left_out in dict.fromkeys(keys)]


def _configuration(run: Run) -> str:
    fields = run.model_dump(exclude=_RESULTS, exclude_none=True)
    return repr(sorted((key, repr(value)) for key, value in fields.items()))


def cross_validate(
    problem: FitProblem,
    by: LeftOut,
    spread: float = SPREAD,
    loss: Loss = "soft_l1",
    progress: Callable[[int], None] = lambda part: None,
) -> Array:
    """Log ratios of runs as predicted by a fit without them: runs by metrics.

    Raises:
        InputError: if all runs are in one part.
    """
    residuals = np.full((len(problem.runs), len(problem.metrics)), np.nan)
    start = problem.fit(spread=spread, loss=loss).offsets
    for number, left_out in enumerate(folds(problem.runs, by)):
        progress(number)
        if left_out.all():
            raise InputError(f"--cross-validate {by}: all runs have the same {by}; expected at least two")
        fit = problem.fit(np.logical_not(left_out), spread, start=start, loss=loss)
        residuals[left_out] = problem.residuals(fit.offsets)[left_out]
    return residuals
