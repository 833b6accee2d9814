"""Calibration: factors fitted to measured runs, and the new versions of profiles that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from mantile.equations.factors import OF_TPOT, OF_TTFT
from mantile.equations.metrics import TPOT, TTFT, TTFT_P50
from mantile.library.brief import Brief
from mantile.library.documents import validate
from mantile.library.efficiency import EfficiencyProfile, FitReport
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.measured.contradictions import Contradiction, contradictions
from mantile.measured.cross_validation import LeftOut, cross_validate
from mantile.measured.fit import SPREAD, FitProblem, Loss, counted
from mantile.measured.match import MatchedRuns
from mantile.measured.metrics import COMPARED, THROUGHPUT, Array
from mantile.measured.profile_versions import Fit, FittedFactor, updated_profiles

FITTED_METRICS = tuple(COMPARED[name].field for name in ("tpot", "ttft", "ttft_p50", "prefill", "throughput"))
"""What counts, in a file of runs as in a workbook; throughput only where mean TTFT or TPOT is not known, from
which it follows, and median TTFT only where the mean is not."""

USUAL_FACTORS = {
    TPOT.key: OF_TPOT,
    TTFT.key: OF_TTFT,
    COMPARED["prefill"].field: ("gemm_compute",),
    TTFT_P50.key: OF_TTFT,
    THROUGHPUT: OF_TPOT,
}
"""What is fitted to a metric unless something else is asked for."""


@dataclass(frozen=True)
class PredictedRun:
    """A metric of a run, in SI units: measured, and predicted with the profiles before and after a fit."""

    id: str
    metric: str
    measured: float
    before: float
    after: float


@dataclass(frozen=True, repr=False)
class Calibration(Brief):
    """Profiles with fitted figures, and what the fit did.

    Args:
        profiles: new versions; their `fit` says how they came about.
        fit: the parameters.
        runs: how many there were.
        before, after: errors by metric on the runs fitted, after with the profiles as they are written;
            `out_of_sample` those on runs left out, by what was left out.
        predicted: every figure that was fitted, with the same profiles.
        contradictions: runs of one case that measured different figures.
    """

    profiles: tuple[EfficiencyProfile, ...]
    fit: Fit
    runs: int
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    out_of_sample: dict[str, dict[str, dict[str, float]]]
    predicted: tuple[PredictedRun, ...]
    contradictions: tuple[Contradiction, ...]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "runs": self.runs,
            "before": self.before,
            "after": self.after,
            "out_of_sample": self.out_of_sample,
            "moved": [
                {
                    "factor": str(factor),
                    "group": group,
                    "change": change.change,
                    "low": change.low,
                    "high": change.high,
                    "at_bound": change.at_bound,
                }
                for factor, group, change in self.fit.changes()
            ],
            "profiles": [f"{profile.id}@{profile.version}" for profile in self.profiles],
            "holds_for": [profile.holds_for for profile in self.profiles],
            "predicted": [asdict(run) for run in self.predicted],
            "contradictions": [asdict(contradiction) for contradiction in self.contradictions],
        }


def calibrate(
    matched: MatchedRuns,
    factors: Sequence[FittedFactor] = (),
    spread: float = SPREAD,
    leave_out: Sequence[LeftOut] = (),
    source: str = "measured runs",
    loss: Loss = "soft_l1",
    on: date | None = None,
    progress: Callable[[str], None] = lambda what: None,
    metrics: Sequence[str] = FITTED_METRICS,
) -> Calibration:
    """Fit efficiency factors to measured runs and write them into new versions of profiles.

    Args:
        matched: the runs, on the profiles they start from.
        factors: that may change, such as `FittedFactor.parse("gemm_compute[fp8]@pair")`; the usual ones, by
            accelerator and framework, if none.
        spread: of the logarithm of a factor around where it starts, before any run is seen: the smaller, the
            closer it stays.
        leave_out: what to leave out in turn, to say how runs not seen are predicted: config, model, system or
            framework.
        source: what the runs are called in the profiles.
        loss: how outliers count: soft_l1 less than squared, cauchy hardly at all.
        on: the day; today if None.
        progress: called with what is done next.
        metrics: fields of a run's metrics that count, as far as they were measured.

    Raises:
        InputError: if no run has one of the metrics, or all runs are alike in what is left out.

    Example:
        measurements = load_measurements("runs.csv")
        calibration = calibrate(match_runs(measurements.runs), leave_out=["config"])
        calibration.before["tpot_s"]["mape"], calibration.after["tpot_s"]["mape"]    # fractions
        calibration.profiles                                                         # new versions
    """
    fitted = _measured(matched, metrics, source)
    problem = FitProblem(matched, factors or usual_factors(matched, fitted), fitted)
    progress("fitting")
    fit = problem.fit(spread=spread, loss=loss)
    start = problem.residuals(np.zeros(len(problem.names)))
    out_of_sample: dict[str, dict[str, dict[str, float]]] = {}
    for by in leave_out:
        progress(f"cross-validation by {by}")
        out_of_sample[by] = problem.errors(cross_validate(problem, by, spread, loss))
    report = FitReport(
        runs=len(problem.runs),
        source=source,
        metrics=fitted,
        spread=spread,
        before=problem.errors(start),
        after={},
        out_of_sample=out_of_sample,
        moved=(),
    )
    written = updated_profiles(problem.library, fit, problem.cases(), report, on or date.today())
    progress("predicting with the new profiles")
    residuals = fitted_residuals(matched, with_profiles(matched.library, written, source), fitted)
    after = problem.errors(residuals)
    return Calibration(
        profiles=tuple(_reported(profile, after) for profile in written),
        fit=fit,
        runs=len(problem.runs),
        before=report.before,
        after=after,
        out_of_sample=out_of_sample,
        predicted=predicted_runs(matched, fitted, start, residuals),
        contradictions=contradictions([run.run for run in matched.runs]),
    )


def _reported(profile: EfficiencyProfile, after: dict[str, dict[str, float]]) -> EfficiencyProfile:
    """A profile whose report says how far off it is."""
    assert profile.fit is not None
    return profile.model_copy(update={"fit": profile.fit.model_copy(update={"after": after})})


def with_profiles(library: Library, profiles: Sequence[EfficiencyProfile], name: str) -> Library:
    """The library with new versions in place of the old ones."""
    new = {profile.id: profile for profile in profiles}
    efficiency = [new.pop(profile.id, profile) for profile in library.efficiency]
    return validate(Library, dict(library) | {"efficiency": (*efficiency, *new.values())}, name)


def fitted_residuals(matched: MatchedRuns, library: Library, metrics: Sequence[str]) -> Array:
    """Log ratios of runs with the profiles of a library, predicted over measured: runs by metrics."""
    return FitProblem(matched.on(library), (), metrics).residuals(np.zeros(0))


def with_library(calibration: Calibration, matched: MatchedRuns, library: Library) -> Calibration:
    """A calibration whose predictions and errors after the fit are those with the profiles of a library, such
    as those of the files it was written to."""
    metrics = tuple(calibration.before)
    problem = FitProblem(matched, (), metrics)
    residuals = fitted_residuals(matched, library, metrics)
    return replace(
        calibration,
        after=problem.errors(residuals),
        predicted=predicted_runs(matched, metrics, problem.residuals(np.zeros(0)), residuals),
    )


def predicted_runs(
    matched: MatchedRuns, metrics: Sequence[str], before: Array, after: Array
) -> tuple[PredictedRun, ...]:
    """Every figure that was measured and counts.

    Args:
        before, after: log ratios, predicted over measured: runs by metrics.
    """
    measured = {
        metric: np.concatenate([counted(batch, metric) for batch in matched.batches]) for metric in metrics
    }
    return tuple(
        PredictedRun(
            id=run.run.id,
            metric=metric,
            measured=float(measured[metric][row]),
            before=float(measured[metric][row] * np.exp(before[row, column])),
            after=float(measured[metric][row] * np.exp(after[row, column])),
        )
        for row, run in enumerate(matched.runs)
        for column, metric in enumerate(metrics)
        if np.isfinite(before[row, column])
    )


def _measured(matched: MatchedRuns, metrics: Sequence[str], source: str) -> tuple[str, ...]:
    """Those of the metrics that were measured of any run.

    Raises:
        InputError: if none was.
    """
    fitted = tuple(
        metric
        for metric in metrics
        if any(np.isfinite(counted(batch, metric)).any() for batch in matched.batches)
    )
    if not fitted:
        raise InputError(f"{source}: expected runs with one of {', '.join(metrics)}")
    return fitted


def usual_factors(matched: MatchedRuns, metrics: Sequence[str]) -> list[FittedFactor]:
    """The factors that are fitted to metrics unless others are asked for, by accelerator and framework."""
    needed = {name for batch in matched.batches for name in batch.equations.prefill_workers.efficiency.in_use}
    names = dict.fromkeys(name for metric in metrics for name in USUAL_FACTORS[metric] if name in needed)
    return [FittedFactor(name, scope="pair") for name in names]
