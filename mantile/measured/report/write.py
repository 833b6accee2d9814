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


def write_table(reconciliation: Reconciliation, path: Path) -> Path:
    """Write every run as a row of a .csv: what was asked, and each metric measured, predicted and as their
    ratio; of one that is not compared the reason. Rows without an answer stand below, with id and reason
    alone.

    Times are seconds, throughput tokens per second and accelerator; assumptions are joined by semicolons.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    table = reconciliation.table
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
