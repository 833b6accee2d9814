"""Measured runs against predictions: how far off they are, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.checks import INSUFFICIENT, INVALID
from mantile.library.brief import Brief
from mantile.library.errors import InputError, unknown
from mantile.library.profiles import Library
from mantile.measured.coverage import RANGES, coverage
from mantile.measured.match import NOT_COMPARED, PADDING, TOLD, Batch, MatchedRun, MatchedRuns, match_runs
from mantile.measured.metrics import (
    COMPARED,
    DERIVED,
    OF_MEMORY,
    PREFILL_RATE,
    Array,
    errors,
    errors_in_units,
)
from mantile.measured.runs import Measurements, RejectedRun
from mantile.measured.select import mode_of, select_runs

MODES = ("aggregated", "disaggregated", "drafts")
OF_CASE = ("model", "accelerator", "framework", "precision", "parallelism", "concurrency", "lengths")
GROUPS = (*OF_CASE, "source")
"""What runs may have in common: what was asked of them, and the table or benchmark they are from."""

OF_METRIC = ("measured", "predicted", "ratio", "low", "high", "inside")
"""Columns of a metric; the last three of those that have a range."""
NOT_PREDICTED = "NOT_PREDICTED"
"""Reason code of runs that could not be read or predicted: what decides is missing, or the plan cannot be."""

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
    "excluded",
    "evidence",
    *(f"{name}_{what}" for name in COMPARED for what in OF_METRIC[: None if name in RANGES else 3]),
    DERIVED,
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
            measured; SI units, NaN where it was not measured. A throughput that nobody measured is in
            `throughput_derived`, and its ratio counts. A run with a reason code under `excluded` has no ratio
            but of memory. Metrics that have an 80 % range also have its ends, `_low` and `_high` in the unit
            of `_predicted`, and `_inside`, whether what was measured or derived lies between them; `evidence`
            says what the range rests on.
        rows: number of records in the file.
        rejected: those of them that could not be read or predicted.
        source: what the runs are called.
        where: the conditions that they were chosen by; `before` how many runs there were without them.
        unused: columns of the file that nobody read, with the reason.
    """

    table: pd.DataFrame
    rows: int
    rejected: tuple[RejectedRun, ...]
    source: str = ""
    where: tuple[str, ...] = ()
    before: int = 0
    unused: Mapping[str, str] = field(default_factory=dict)

    def metrics(self, table: pd.DataFrame | None = None) -> ErrorsByMetric:
        """Errors of each metric that was measured, as `mantile.measured.metrics.errors` gives them; of
        throughput also `derived`, of how many runs it was derived.

        Args:
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        figures = {name: errors(part[f"{name}_ratio"].to_numpy(float)) for name in COMPARED}
        derived = part[DERIVED].notna() & part["throughput_ratio"].notna()
        figures["throughput"]["derived"] = int(derived.sum())
        return {name: of_metric for name, of_metric in figures.items() if of_metric["n"]}

    def coverage(self, table: pd.DataFrame | None = None) -> dict[str, dict[str, Any]]:
        """Whether the 80 % ranges hold: how many runs lie inside those that `estimate` states for them.

        Args:
            table: a part of the table instead of all runs.

        Returns:
            by metric numbers of runs: `n` that have a range, `inside` of it, and `by_evidence`, the same two
            by what the range rests on. Runs that are excluded and metrics without a range do not count.

        Example:
            tpot = reconcile(load_measurements("runs.csv")).coverage()["tpot"]
            tpot["inside"] / tpot["n"]      # 0.8 where ranges hold, a fraction
        """
        return coverage(self.table if table is None else table)

    def in_units(self, table: pd.DataFrame | None = None) -> ErrorsByMetric:
        """Errors in the unit of each metric, SI, as `mantile.measured.metrics.errors_in_units` gives them.

        Args:
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        return {
            name: errors_in_units(
                reference(part, name).where(part[f"{name}_ratio"].notna()).to_numpy(float),
                part[f"{name}_predicted"].to_numpy(float),
            )
            for name in self.metrics(part)
        }

    @property
    def compared(self) -> pd.DataFrame:
        """The runs of the table that have a ratio, or nothing that speaks against one."""
        ratios = self.table[[f"{name}_ratio" for name in COMPARED]]
        return self.table[(self.table["excluded"] == "") | ratios.notna().any(axis=1)]

    @property
    def answered(self) -> int:
        """How many runs are predicted and not excluded."""
        return int((self.table["excluded"] == "").sum())

    @property
    def headline(self) -> str | None:
        """The first mode with errors; None where there is none."""
        return next((mode for mode, part in self.modes().items() if self.metrics(part)), None)

    def excluded(self) -> dict[str, int]:
        """How many runs are not compared, by reason code; `unanswered` has the reasons in words."""
        codes = self.table["excluded"]
        counts = {str(code): int(count) for code, count in codes[codes != ""].value_counts().items()}
        return counts | ({NOT_PREDICTED: len(self.rejected)} if self.rejected else {})

    def unanswered(self) -> tuple[RejectedRun, ...]:
        """The runs that are not compared, with the reason: those that could not be read or predicted, and the
        excluded ones."""
        excluded = self.table[self.table["excluded"] != ""]
        return (
            *self.rejected,
            *(
                RejectedRun(str(run), TOLD[code])
                for run, code in zip(excluded["id"], excluded["excluded"], strict=True)
            ),
        )

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
            group: {str(key): self.metrics(part) for key, part in self.compared.groupby(group, sort=False)}
            for group in GROUPS
        }

    def assumptions(self) -> dict[str, int]:
        """What reading the runs assumed, with the number of runs, the most frequent first."""
        counts = self.table["assumptions"].explode().dropna().value_counts()
        return {str(text): int(count) for text, count in counts.items()}

    def modes(self) -> dict[str, pd.DataFrame]:
        """The runs that are compared, by mode, as far as there are runs of it; the first is the headline."""
        table = self.compared
        parts = {mode: table[table["mode"] == mode] for mode in MODES}
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
        compared = self.compared
        aggregated = compared[compared["mode"] == "aggregated"]
        shown = ["id", *OF_CASE, "tpot_measured", "tpot_predicted", "tpot_ratio"]
        return {
            "source": self.source,
            "where": list(self.where),
            "rows": self.rows,
            "before": self.before,
            "answered": self.answered,
            "excluded": self.excluded(),
            "unused_columns": dict(self.unused),
            "metrics": self.metrics(aggregated if len(aggregated) else compared),
            "modes": {
                mode: {"answered": len(part), "metrics": self.metrics(part)}
                for mode, part in self.modes().items()
            },
            "in_units": self.in_units(aggregated if len(aggregated) else compared),
            "coverage": self.coverage(),
            "feasibility": self.verdicts(),
            "groups": self.groups(),
            "assumptions": self.assumptions(),
            "best": best[shown].to_dict("records"),
            "worst": worst[shown].to_dict("records"),
            "unanswered": [{"id": run.id, "reason": run.reason} for run in self.unanswered()],
            "reasons": dict(Counter(run.reason for run in self.unanswered()).most_common()),
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
    table = pd.concat(tables) if tables else pd.DataFrame(columns=[*COLUMNS, "why"])
    places = {run.id: place for place, run in enumerate(runs)}
    table = table.sort_values("id", key=lambda ids: ids.map(places), ignore_index=True)
    possible = table["feasibility"] != INVALID
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
        before=len(measured.runs) + len(measured.rejected),
        unused=measured.unused,
    )


def reference(table: pd.DataFrame, metric: str) -> pd.Series[float]:
    """What predictions of a metric are compared with, of each run: measured, or a derived throughput.

    Args:
        table: a part of the table of a reconciliation.
        metric: its name.
    """
    measured = table[f"{metric}_measured"]
    return measured.fillna(table[DERIVED]) if metric == "throughput" else measured


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
    changed = {cell: changes[figure] for figure, cell in _changed_inputs(batch, changes).items()}
    values = batch.predict(changed)
    outputs, measured, compared = batch.outputs(), batch.measured, batch.compared
    asked = [_asked(run) for run in batch.runs]
    table = pd.DataFrame(asked)
    loads = pd.Series([one["concurrency"] for one in asked], dtype=object)
    table["concurrency"] = (
        loads.infer_objects()
    )  # whole numbers stay so beside runs at a rate, which have none
    table["gpus"] = batch.accelerators.astype(int)
    _judge_plans(table, batch, changed)
    excluded, has_room = table["excluded"] != "", table["feasibility"] != INSUFFICIENT
    for name, metric in COMPARED.items():
        predicted = pd.Series(values[outputs[metric.field]].astype(float))
        ratio = predicted / compared[metric.field]
        of_memory = name in OF_MEMORY
        table[f"{name}_measured"] = measured[metric.field]
        table[f"{name}_predicted"] = predicted if of_memory else predicted.where(has_room)
        table[f"{name}_ratio"] = ratio if of_memory else ratio.where(~excluded)
    reported = np.isfinite(table["throughput_measured"])
    table[DERIVED] = np.where(reported, np.nan, batch.derived_throughput)
    table["evidence"] = values[batch.evidence].astype(str)
    for name, ends in batch.ranges.items():
        _judge_range(table, name, *(values[end] for end in ends))
    _note_input_tokens(table, batch.derived_throughput)
    for what in ("measured", "predicted"):
        table[f"{PREFILL_RATE}_{what}"] = table["input_tokens"].astype(float) / table[f"prefill_{what}"]
    return table[[*COLUMNS, "why"]]


def _judge_range(table: pd.DataFrame, name: str, low: Array, high: Array) -> None:
    """Fill in the range of a metric, and whether what a run measured lies in it; nothing where it is not
    known."""
    predicted = table[f"{name}_predicted"].notna()
    for what, end in (("low", low), ("high", high)):
        table[f"{name}_{what}"] = pd.to_numeric(pd.Series(end), errors="coerce").where(predicted)
    ends = table[f"{name}_low"], table[f"{name}_high"]
    known = table[f"{name}_ratio"].notna() & ends[0].notna() & ends[1].notna()
    inside = reference(table, name).between(*ends)
    table[f"{name}_inside"] = inside.astype("boolean").where(known)


MOST_ABOVE = 1.25
"""How far a throughput may lie above what the times of a run allow: rounding, and what a mean leaves out."""


def _note_input_tokens(table: pd.DataFrame, derived: Array) -> None:
    """Say of runs that report more output tokens than their TTFT, TPOT and concurrency allow."""
    above = table["throughput_measured"].to_numpy(float) > MOST_ABOVE * derived
    for assumptions in table["assumptions"][above]:
        assumptions.append(
            "throughput above what TTFT, TPOT and concurrency allow: input tokens may be counted in it"
        )


def other_load(run: Mapping[Any, Any]) -> str:
    """What stands for the concurrency of a run that states none: its rate of requests.

    Args:
        run: a row of the table.

    >>> other_load({"request_rate": 2.5}), other_load({"request_rate": None})
    ('2.5/s', 'sessions')
    """
    return f"{run['request_rate']:g}/s" if run["request_rate"] else "sessions"


def _judge_plans(table: pd.DataFrame, batch: Batch, changes: Mapping[str, Any]) -> None:
    """Fill in whether each plan is possible, and why it is not, or its run is not compared."""
    verdicts, unmet = batch.verdicts(changes)
    table["feasibility"] = verdicts
    table["excluded"] = [NOT_COMPARED.get(verdict, "") for verdict in verdicts]
    table["why"] = [", ".join(codes) for codes in unmet]
    for assumptions, codes in zip(table["assumptions"], unmet, strict=True):
        if codes and set(codes) <= PADDING:
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
