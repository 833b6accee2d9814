"""Drift: whether servers still do what is predicted, by what was measured and when.

Records are compared with what is predicted for them, by group (model, accelerator, framework, release) and
month. A group raises an alarm where the median of its newest month lies further from the prediction than a
limit, either way; older months stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mantile.equations.metrics import MEMORY_PER_ACCELERATOR
from mantile.graph.evaluate import Program
from mantile.library.errors import InputError
from mantile.library.profiles import Library, load_library
from mantile.measured.calibrate import Calibration, calibrate
from mantile.measured.match import match_runs
from mantile.measured.reconcile import Reconciliation, reconcile
from mantile.measured.recorded import run_of
from mantile.measured.runs import Measurements, Run
from mantile.records.store import Stored

LIMITS: Mapping[str, float] = {"decode": 0.12, "ttft": 0.18, "memory": 0.07}
"""How far a median may lie from the prediction, as a fraction: TPOT, TTFT, peak memory of an accelerator."""
COLUMNS = {"decode": "tpot", "ttft": "ttft"}
"""The metrics of a reconciliation that times are compared in."""
GROUP = ("model", "accelerator", "framework", "version")
PEAK = "memory_peak_bytes"
"""The figure of a record that memory is compared in."""
TAKES_ALL = ("vllm", "sglang", "trtllm", "atom")
"""Engines that take their share of memory when they start: their peak says nothing of what they use."""
_MONTH = 7  # characters of 2026-11


@dataclass(frozen=True)
class Period:
    """A month of a group.

    Args:
        month: YYYY-MM.
        ids: of its runs.
        shifts: median of measured ÷ predicted − 1, by metric; None where it was not measured.
        alarms: metrics whose shift is beyond its limit; of the newest month of a group alone.
    """

    month: str
    ids: tuple[str, ...]
    shifts: Mapping[str, float | None]
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drift:
    """Records beside predictions, by group and month.

    Args:
        groups: what runs have in common, as GROUP names it, and the months of each, the newest last.
        limits: by metric.
        reconciliation: the same runs, one by one.
    """

    groups: Mapping[tuple[str, ...], Sequence[Period]]
    limits: Mapping[str, float]
    reconciliation: Reconciliation

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """Each alarm: its group, month, metric, shift and limit."""
        return [
            {
                **dict(zip(GROUP, group, strict=True)),
                "month": period.month,
                "runs": len(period.ids),
                "metric": metric,
                "shift": period.shifts[metric],
                "limit": self.limits[metric],
            }
            for group, periods in self.groups.items()
            for period in periods
            for metric in period.alarms
        ]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "source": self.reconciliation.source,
            "rows": self.reconciliation.rows,
            "answered": self.reconciliation.answered,
            "limits": dict(self.limits),
            "alarms": self.alarms,
            "groups": [
                {
                    **dict(zip(GROUP, group, strict=True)),
                    "months": [
                        {
                            "month": period.month,
                            "runs": len(period.ids),
                            **dict(period.shifts),
                            "alarms": list(period.alarms),
                        }
                        for period in periods
                    ],
                }
                for group, periods in self.groups.items()
            ],
            "unanswered": [{"id": run.id, "reason": run.reason} for run in self.reconciliation.unanswered()],
        }


def drift(
    records: Sequence[Stored],
    limits: Mapping[str, float] | None = None,
    library: Library | None = None,
    source: str = "records",
    progress: Callable[[str], None] = lambda model: None,
) -> Drift:
    """Compare records with what is predicted for them, by group and month.

    Args:
        records: of `mantile.records.store.read`.
        limits: fractions by metric, in place of those of LIMITS.
        library: profiles to predict with, such as those that `calibrate` wrote.
        source: what the records are called.
        progress: told of each model.

    Raises:
        InputError: for a limit of a metric that there is not, or if no record can be predicted.

    Example:
        found = drift(read(Path("records.db")), {"decode": 0.1})
        found.alarms    # [] while servers do what is predicted
    """
    allowed = {**LIMITS, **(limits or {})}
    if unknown := [name for name in allowed if name not in LIMITS]:
        raise InputError(f"limit {unknown[0]}: expected one of {', '.join(LIMITS)}")
    if not records:
        raise InputError(f"{source}: no records in it")
    library = library or load_library()
    runs = [run_of(one, source) for one in records]
    compared = reconcile(Measurements(tuple(runs)), library=library, source=source, progress=progress)
    if not len(compared.table):
        first = compared.rejected[0]
        raise InputError(
            f"{source}: none of {len(runs)} records can be predicted; the first: {first.id}: {first.reason}"
        )
    shifts = _shifts(compared, _peaks(records, runs), library)
    groups: dict[tuple[str, ...], list[Period]] = {}
    for group, months in sorted(_grouped(compared).items()):
        periods = [_period(month, ids, shifts, allowed) for month, ids in sorted(months.items())]
        older = [Period(period.month, period.ids, period.shifts) for period in periods[:-1]]
        groups[group] = [*older, periods[-1]]
    return Drift(groups, allowed, compared)


def retrain(
    found: Drift,
    records: Sequence[Stored],
    library: Library | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Calibration:
    """Fit efficiency factors to the months that raised an alarm.

    The new versions of profiles say which releases, drivers and CUDA their runs had. Nothing uses them by
    itself.

    Args:
        found: with an alarm of a time; memory has no factor that is fitted.
        records: that it is of.
        library: the profiles to start from.
        progress: told what is done next.

    Raises:
        InputError: if no time raised an alarm.
    """
    periods = [periods[-1] for periods in found.groups.values() if {*periods[-1].alarms} & {*COLUMNS}]
    ids = {identifier for period in periods for identifier in period.ids}
    source = found.reconciliation.source
    chosen = [(one, run) for one in records if (run := run_of(one, source)).id in ids]
    if not chosen:
        raise InputError(f"{source}: no alarm of decode or TTFT: nothing to fit anew")
    tags = {tag for one, run in chosen for tag in _tags(one, run)}
    matched = match_runs([run for _, run in chosen], library, progress).possible()
    return calibrate(matched, source="; ".join([source, *sorted(tags)])[:200], progress=progress)


def _tags(one: Stored, run: Run) -> list[str]:
    """Release, driver and CUDA of a run, as far as they are known."""
    env, told = one.record.env, run.environment
    release = f"{run.framework} {told.framework_version}" if told.framework_version else None
    driver = env.driver or told.driver
    tags = (release, driver and f"driver {driver}", env.cuda and f"CUDA {env.cuda}")
    return [tag for tag in tags if tag]


def _grouped(compared: Reconciliation) -> dict[tuple[str, ...], dict[str, list[str]]]:
    """The ids of runs by group and month."""
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for row in compared.table.to_dict("records"):
        group = tuple(str(row[name] or "not told") for name in GROUP)
        months = found.setdefault(group, {})
        months.setdefault(str(row["date"])[:_MONTH], []).append(str(row["id"]))
    return found


def _period(
    month: str, ids: Sequence[str], shifts: Mapping[str, Mapping[str, float]], limits: Mapping[str, float]
) -> Period:
    medians: dict[str, float | None] = {}
    for metric, of_runs in shifts.items():
        values = [of_runs[identifier] for identifier in ids if identifier in of_runs]
        medians[metric] = float(np.median(values)) if values else None
    beyond = tuple(
        metric for metric, shift in medians.items() if shift is not None and abs(shift) > limits[metric]
    )
    return Period(month, tuple(ids), medians, beyond)


def _shifts(
    compared: Reconciliation, peaks: Mapping[str, tuple[Run, float]], library: Library
) -> dict[str, dict[str, float]]:
    """Measured ÷ predicted − 1 of each run, by metric and id."""
    ids = compared.table["id"].astype(str)
    found: dict[str, dict[str, float]] = {}
    for metric, column in COLUMNS.items():
        ratios = compared.table[f"{column}_ratio"].to_numpy(float)
        found[metric] = {
            identifier: 1 / ratio - 1
            for identifier, ratio in zip(ids, ratios, strict=True)
            if np.isfinite(ratio) and ratio > 0
        }
    predicted = _predicted_memory([run for run, _ in peaks.values()], library)
    found["memory"] = {
        identifier: peak / predicted[identifier] - 1
        for identifier, (_, peak) in peaks.items()
        if predicted.get(identifier)
    }
    return found


def _peaks(records: Sequence[Stored], runs: Sequence[Run]) -> dict[str, tuple[Run, float]]:
    """Runs whose peak memory was measured and says what they use, by id."""
    return {
        run.id: (run, one.record.metrics[PEAK])
        for one, run in zip(records, runs, strict=True)
        if PEAK in one.record.metrics and run.framework not in TAKES_ALL
    }


def _predicted_memory(runs: Sequence[Run], library: Library) -> dict[str, float]:
    """Memory of the fullest accelerator of each run that can be predicted, in bytes, by id."""
    found: dict[str, float] = {}
    for batch in match_runs(runs, library).batches if runs else ():
        figure = MEMORY_PER_ACCELERATOR.worked_out(batch.equations.figures)
        values = Program([figure]).sweep(batch.inputs)[figure]
        for run, value in zip(batch.runs, np.broadcast_to(values, len(batch.runs)), strict=True):
            found[run.run.id] = float(value)
    return found
