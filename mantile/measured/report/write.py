"""A reconciliation to files: every run as a table, .csv, or the report, .xlsx."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mantile.estimates.tables import table_file
from mantile.library.errors import InputError
from mantile.measured.match import TOLD
from mantile.measured.reconcile import Reconciliation
from mantile.measured.report.contents import Report
from mantile.measured.report.groups import all_groups, groups_sheet
from mantile.measured.report.lists import assumptions_sheet, extremes_sheet, unanswered_sheet
from mantile.measured.report.more_charts import charts_sheet
from mantile.measured.report.runs import runs_sheet
from mantile.measured.report.summary import summary_sheet
from mantile.workbook.book import Book
from mantile.workbook.write import write_workbook


def write_report(reconciliation: Reconciliation, path: Path) -> Path:
    """Write the report of a reconciliation as a workbook: the same bytes for the same runs and name of the
    source.

    Raises:
        InputError: if no run has a metric that is compared, or the file cannot be written; nothing
            half-written stays behind.
    """
    if not reconciliation.metrics():
        raise InputError(f"{path}: no run has a metric that is compared")
    return write_workbook(report_book(reconciliation), path)


def report_book(reconciliation: Reconciliation) -> Book:
    """The report of a reconciliation as a book, all sheets filled."""
    report = Report.of(reconciliation)
    cells = runs_sheet(report)
    groups = all_groups(report)
    rows = groups_sheet(report, cells, groups)
    extremes_sheet(report, cells)
    unanswered_sheet(report)
    assumptions_sheet(report)
    mode, errors = summary_sheet(report, cells, list(zip(groups, rows, strict=True)))
    charts_sheet(report, cells, mode, errors)
    return report.book


_OF_BENCHMARK = {
    "throughput": ("throughput", "throughput_per_gpu"),
    "ttft": ("ttft", "ttft_sec"),
    "tpot": ("tpot", "tpot_sec"),
    "e2e": ("e2e_latency", "e2e_latency_sec"),
}
"""What tables of benchmarks call a metric: in a column of errors, and in one of figures."""


def _of_benchmark(table: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """Predictions and errors in columns as tables of benchmarks have them: seconds, and tokens per second of
    an accelerator.

    `_abs_error` is |predicted − measured|, `_pct_error` (predicted ÷ measured − 1) × 100; of a derived
    throughput there is none.
    """
    predicted, errors = {}, {}
    for metric, (short, long) in _OF_BENCHMARK.items():
        figures, measured = table[f"{metric}_predicted"], table[f"{metric}_measured"]
        measured = measured.where(table[f"{metric}_ratio"].notna())
        predicted[f"predicted_{long}"] = figures
        errors[f"{short}_abs_error"] = (figures - measured).abs()
        errors[f"{short}_pct_error"] = (figures / measured - 1) * 100
    return predicted | errors


def write_table(reconciliation: Reconciliation, path: Path) -> Path:
    """Write every run as a row of a .csv: what was asked, and each metric measured, predicted and as their
    ratio; of one that is not compared the reason. Rows without an answer stand below, with id and reason
    alone.

    Times are seconds, throughput tokens per second and accelerator; assumptions are joined by semicolons.
    Behind them stand predictions and errors under the names of tables of benchmarks: predicted_ttft_sec, ...,
    ttft_abs_error, ttft_pct_error.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    table = reconciliation.table
    table = table.assign(**_of_benchmark(table))
    with table_file(path) as append:
        reasons = table["excluded"].map(TOLD).fillna("")
        answered = table.assign(assumptions=table["assumptions"].map("; ".join), reason=reasons)
        rejected = pd.DataFrame(
            [{"id": run.id, "reason": run.reason} for run in reconciliation.rejected],
            columns=["id", "reason"],
        )
        append(answered)
        if len(rejected):
            append(rejected.reindex(columns=answered.columns))
    return path
