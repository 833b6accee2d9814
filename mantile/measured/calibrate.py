"""Calibration: factors fitted to measured runs, and the new versions of profiles that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, TPOT, TTFT, TTFT_P50
from mantile.library.efficiency import EfficiencyProfile, FitReport
from mantile.library.errors import InputError
from mantile.measured.cross_validation import LeftOut, cross_validate
from mantile.measured.fit import SPREAD, FitProblem, Loss
from mantile.measured.match import MatchedRuns
from mantile.measured.metrics import COMPARED, THROUGHPUT
from mantile.measured.profile_versions import Fit, FittedFactor, updated_profiles

FITTED_METRICS = tuple(
    COMPARED[name].field for name in ("tpot", "ttft", "prefill")
)  # throughput follows from them
_OF_TPOT = (
    "launch_scale",
    "gemm_bandwidth_scale",
    "attention_decode_scale",
    "moe_bandwidth_scale",
    "all_reduce_latency_scale",
    "interference",
    "step_row",
)
_OF_TTFT = ("gemm_compute", "first_token", "queueing")
USUAL_FACTORS = {
    TPOT.key: _OF_TPOT,
    TTFT.key: _OF_TTFT,
    COMPARED["prefill"].field: ("gemm_compute",),
    TTFT_P50.key: _OF_TTFT,
    THROUGHPUT: _OF_TPOT,
}
"""What is fitted to a metric unless something else is asked for: a factor for each part of a time that runs
can tell apart."""


@dataclass(frozen=True)
class Calibration:
    """Profiles with fitted figures, and what the fit did.

    Args:
        profiles: new versions; their `fit` says how they came about.
        fit: the parameters.
        runs: how many there were.
        before, after: errors by metric on the runs fitted; `out_of_sample` those on runs left out, by what
            was left out.
    """

    profiles: tuple[EfficiencyProfile, ...]
    fit: Fit
    runs: int
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    out_of_sample: dict[str, dict[str, dict[str, float]]]

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
    before, after = (
        problem.errors(problem.residuals(offsets)) for offsets in (np.zeros(len(problem.names)), fit.offsets)
    )
    out_of_sample: dict[str, dict[str, dict[str, float]]] = {}
    for by in leave_out:
        progress(f"cross-validation by {by}")
        out_of_sample[by] = problem.errors(cross_validate(problem, by, spread, loss))
    report = FitReport(
        runs=len(problem.runs),
        source=source,
        metrics=fitted,
        spread=spread,
        before=before,
        after=after,
        out_of_sample=out_of_sample,
        moved=(),
    )
    return Calibration(
        profiles=updated_profiles(
            problem.library, problem.matching_profiles, fit, report, on or date.today()
        ),
        fit=fit,
        runs=len(problem.runs),
        before=before,
        after=after,
        out_of_sample=out_of_sample,
    )


def _measured(matched: MatchedRuns, metrics: Sequence[str], source: str) -> tuple[str, ...]:
    """Those of the metrics that were measured of any run.

    Raises:
        InputError: if none was.
    """
    reported = {field for run in matched.runs for field in run.run.metrics.given()}
    measured = reported | ({THROUGHPUT} if OUTPUT_TOKENS_PER_S.key in reported else set())
    fitted = tuple(field for field in metrics if field in measured)
    if not fitted:
        raise InputError(f"{source}: expected runs with one of {', '.join(metrics)}")
    return fitted


def usual_factors(matched: MatchedRuns, metrics: Sequence[str]) -> list[FittedFactor]:
    """The factors that are fitted to metrics unless others are asked for, by accelerator and framework."""
    needed = {name for batch in matched.batches for name in batch.equations.prefill_workers.efficiency.in_use}
    names = dict.fromkeys(name for metric in metrics for name in USUAL_FACTORS[metric] if name in needed)
    return [FittedFactor(name, scope="pair") for name in names]
