"""Measured runs against predictions: how far off they are, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.checks import INSUFFICIENT
from mantile.library.brief import Brief
from mantile.library.errors import InputError, unknown
from mantile.library.profiles import Library
from mantile.measured.match import PADDING, Batch, MatchedRun, MatchedRuns, match_runs
from mantile.measured.metrics import COMPARED, PREFILL_RATE, errors, errors_in_units
from mantile.measured.runs import Measurements, RejectedRun
from mantile.measured.select import mode_of, select_runs

MODES = ("aggregated", "disaggregated", "drafts")
OF_CASE = ("model", "accelerator", "framework", "precision", "parallelism", "concurrency", "lengths")
GROUPS = (*OF_CASE, "source")
"""What runs may have in common: what was asked of them, and the table or benchmark they are from."""

COLUMNS = [
    "id",
    "mode",
    *GROUPS,
    "request_rate",
    "input_tokens",
    "output_tokens",
    "prompts_per_slot",
    "tp",
    "ep",
    "gpus",
    "feasibility",
    *(f"{name}_{what}" for name in COMPARED for what in ("measured", "predicted", "ratio")),
    *(f"{PREFILL_RATE}_{what}" for what in ("measured", "predicted")),
    "version",
    "date",
    "reference",
    "assumptions",
]
"""Columns of the table of a reconciliation."""

_DEGREES = {"tp": "TP", "attention_dp": "DPA", "ep": "EP", "pp": "PP", "cp": "CP", "dp": "DP"}

ErrorsByMetric = dict[str, dict[str, float]]


@dataclass(frozen=True, repr=False)
class Reconciliation(Brief):
    """Measured runs beside what is predicted for them.

    Args:
        table: one row a run: id, what was asked, each metric measured, predicted and as the ratio predicted ÷
            measured; SI units, NaN where it was not measured.
        rows: number of records in the file.
        rejected: those of them that could not be read or predicted.
        source: what the runs are called.
        where: the conditions that they were chosen by.
    """

    table: pd.DataFrame
    rows: int
    rejected: tuple[RejectedRun, ...]
    source: str = ""
    where: tuple[str, ...] = ()

    def metrics(self, table: pd.DataFrame | None = None) -> ErrorsByMetric:
        """Errors of each metric that was measured, as `mantile.measured.metrics.errors` gives them.

        Args:
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        figures = {name: errors(part[f"{name}_ratio"].to_numpy(float)) for name in COMPARED}
        return {name: of_metric for name, of_metric in figures.items() if of_metric["n"]}

    def in_units(self, table: pd.DataFrame | None = None) -> ErrorsByMetric:
        """Errors in the unit of each metric, SI, as `mantile.measured.metrics.errors_in_units` gives them.

        Args:
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        return {
            name: errors_in_units(
                part[f"{name}_measured"].to_numpy(float), part[f"{name}_predicted"].to_numpy(float)
            )
            for name in self.metrics(part)
        }

    def verdicts(self) -> dict[str, int]:
        """How many runs ran, and how many of these are said not to fit: `false_negatives`.

        Whether a plan is wrongly said to fit no table of runs can tell: what did not start is in none. Logs
        of servers that did not start do, see `mantile.measured.startup_errors`.
        """
        refused = self.table["feasibility"] == INSUFFICIENT
        return {"ran": len(self.table), "false_negatives": int(refused.sum())}

    def groups(self) -> dict[str, dict[str, ErrorsByMetric]]:
        """The same by model, accelerator, source and so on."""
        return {
            group: {str(key): self.metrics(part) for key, part in self.table.groupby(group, sort=False)}
            for group in GROUPS
        }

    def assumptions(self) -> dict[str, int]:
        """What reading the runs assumed, with the number of runs, the most frequent first."""
        counts = self.table["assumptions"].explode().dropna().value_counts()
        return {str(text): int(count) for text, count in counts.items()}

    def modes(self) -> dict[str, pd.DataFrame]:
        """The table by mode, as far as there are runs of it; the first is the headline."""
        parts = {mode: self.table[self.table["mode"] == mode] for mode in MODES}
        return {mode: part for mode, part in parts.items() if len(part)}

    def extremes(
        self, count: int = 10, metric: str = "tpot", table: pd.DataFrame | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The runs that are predicted best, and those that are predicted worst.

        Args:
            count: how many of each.
            metric: by which they are judged.
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        part = part[part[f"{metric}_ratio"].notna()]
        order = np.log(part[f"{metric}_ratio"]).abs().sort_values(kind="stable").index
        return part.loc[order[:count]], part.loc[order[::-1][:count]]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        best, worst = self.extremes()
        aggregated = self.table[self.table["mode"] == "aggregated"]
        shown = ["id", *OF_CASE, "tpot_measured", "tpot_predicted", "tpot_ratio"]
        return {
            "source": self.source,
            "where": list(self.where),
            "rows": self.rows,
            "answered": len(self.table),
            "metrics": self.metrics(aggregated if len(aggregated) else self.table),
            "modes": {
                mode: {"answered": len(part), "metrics": self.metrics(part)}
                for mode, part in self.modes().items()
            },
            "in_units": self.in_units(aggregated if len(aggregated) else self.table),
            "feasibility": self.verdicts(),
            "groups": self.groups(),
            "assumptions": self.assumptions(),
            "best": best[shown].to_dict("records"),
            "worst": worst[shown].to_dict("records"),
            "unanswered": [{"id": run.id, "reason": run.reason} for run in self.rejected],
            "reasons": dict(Counter(run.reason for run in self.rejected).most_common()),
        }


def reconcile(
    measured: Measurements,
    where: Iterable[str] = (),
    library: Library | None = None,
    source: str = "",
    changes: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda model: None,
) -> Reconciliation:
    """Predict measured runs and compare: how far off predictions are, and where.

    Args:
        measured: runs as `load_measurements` reads them.
        where: conditions field=value or field!=value on what was asked; several values with commas; all must
            hold.
        library: profiles to predict with, instead of those we ship.
        source: what the runs are called.
        changes: values that replace figures of the library in all runs, by id, in the unit of their cells.
        progress: called with the name of the model that is worked on next.

    Returns:
        The runs with what is predicted for them. Those that cannot be predicted are in `rejected`, with the
        reason.

    Raises:
        InputError: for a condition or a changed figure that there is not, or if no run is left.

    Example:
        measurements = load_measurements("workbooks/accuracy.yaml")
        reconciliation = reconcile(measurements, ["framework=vllm", "mode=aggregated"])
        reconciliation.metrics()["tpot"]["mape"]    # mean of |predicted ÷ measured − 1|, a fraction
        reconciliation.table                        # one row a run, SI units
    """
    conditions, changes = tuple(where), changes or {}
    runs = select_runs(measured.runs, conditions, source)
    matched = match_runs(runs, library, progress)
    _require_known(changes, matched)
    tables = [_compared(batch, changes) for batch in matched.batches]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*COLUMNS, "why"])
    possible = table["feasibility"] != IMPOSSIBLE
    unread = () if conditions else measured.rejected
    return Reconciliation(
        table=table[possible].drop(columns="why").reset_index(drop=True),
        rows=len(runs) + len(unread),
        rejected=(
            *unread,
            *matched.rejected,
            *(
                RejectedRun(str(run["id"]), f"the plan is not possible: {run['why']}")
                for run in table[~possible].to_dict("records")
            ),
        ),
        source=source,
        where=conditions,
    )


def _require_known(changes: Mapping[str, float], matched: MatchedRuns) -> None:
    """Refuse a changed figure that no graph has.

    Raises:
        InputError: with the nearest ids.
    """
    figures = {identifier for batch in matched.batches for identifier in _changed_inputs(batch, changes)}
    missing = set(changes) - figures
    if missing and matched.batches:
        ids = {figure.id for figure in matched.batches[0].equations.all_inputs()}
        raise InputError(f"--set: {unknown('figure', min(missing), ids)}")


def _changed_inputs(batch: Batch, changes: Mapping[str, float]) -> dict[str, str]:
    """The input that a changed figure is written to, by the figure's id: its override cell, or the figure of
    the library itself."""
    inputs = {figure.id for figure in batch.equations.all_inputs()}
    cells = batch.equations.replaceable
    written = {figure: cells[figure].id if figure in cells else figure for figure in changes}
    return {figure: cell for figure, cell in written.items() if cell in inputs}


def _compared(batch: Batch, changes: Mapping[str, float]) -> pd.DataFrame:
    """The rows of a batch: what was asked, and each metric measured, predicted and as their ratio."""
    values = batch.predict(
        {cell: changes[figure] for figure, cell in _changed_inputs(batch, changes).items()}
    )
    outputs, measured = batch.outputs(), batch.measured
    asked = [_asked(run) for run in batch.runs]
    table = pd.DataFrame(asked)
    loads = pd.Series([one["concurrency"] for one in asked], dtype=object)
    table["concurrency"] = (
        loads.infer_objects()
    )  # whole numbers stay so beside runs at a rate, which have none
    table["gpus"] = batch.accelerators.astype(int)
    _judge_plans(table, batch, [str(verdict) for verdict in values[batch.equations.checks.feasibility]])
    for name, metric in COMPARED.items():
        predicted = values[outputs[metric.field]].astype(float)
        table[f"{name}_measured"] = measured[metric.field]
        table[f"{name}_predicted"] = predicted
        table[f"{name}_ratio"] = predicted / measured[metric.field]
    for what in ("measured", "predicted"):
        table[f"{PREFILL_RATE}_{what}"] = table["input_tokens"].astype(float) / table[f"prefill_{what}"]
    return table[[*COLUMNS, "why"]]


def other_load(run: Mapping[Any, Any]) -> str:
    """What stands for the concurrency of a run that states none: its rate of requests.

    Args:
        run: a row of the table.

    >>> other_load({"request_rate": 2.5}), other_load({"request_rate": None})
    ('2.5/s', 'sessions')
    """
    return f"{run['request_rate']:g}/s" if run["request_rate"] else "sessions"


IMPOSSIBLE, PADDED = "invalid", "padded"


def _judge_plans(table: pd.DataFrame, batch: Batch, verdicts: list[str]) -> None:
    """Fill in whether each plan is possible, and why not.

    A run was measured, so its plan was: heads and columns that do not divide among the ranks were padded, and
    are counted so. Any other check that does not hold is a misreading of the record.
    """
    unmet = batch.unmet_plan_checks() if IMPOSSIBLE in verdicts else [()] * len(verdicts)
    padded = [bool(codes) and set(codes) <= PADDING for codes in unmet]
    table["feasibility"] = [
        PADDED if pads else verdict for verdict, pads in zip(verdicts, padded, strict=True)
    ]
    table["why"] = [", ".join(codes) for codes in unmet]
    for assumptions, codes, pads in zip(table["assumptions"], unmet, padded, strict=True):
        if pads:
            assumptions.append(f"padded to the next multiple of the ranks ({', '.join(codes)})")


def _asked(matched: MatchedRun) -> dict[str, Any]:
    """What was asked of a run, and where it comes from: the columns of the table that hold no metric."""
    run, values = matched.run, matched.column.values
    degrees = (
        f"{short}{values[name]}" for name, short in _DEGREES.items() if name == "tp" or int(values[name]) > 1
    )
    name, _, reference = run.source.partition(", ")
    return {
        "id": run.id,
        "mode": mode_of(run),
        "model": run.model,
        "accelerator": values["accelerator"],
        "framework": values["framework"],
        "precision": values["weights_dtype"],
        "parallelism": " ".join(degrees),
        "concurrency": values.get("concurrency"),
        "request_rate": values.get("request_rate"),
        "lengths": f"{values['input_tokens']}/{values['output_tokens']}",
        "input_tokens": values["input_tokens"],
        "output_tokens": values["output_tokens"],
        "prompts_per_slot": values["prompts_per_slot"],
        "tp": values["tp"],
        "ep": values["ep"],
        "version": run.environment.framework_version,
        "date": run.date,
        "source": name,
        "reference": reference,
        "assumptions": list(run.assumptions),
    }
