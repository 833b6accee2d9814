"""The sheets Best and worst, Not answered and Assumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mantile.graph.quantity import Input, Quantity
from mantile.measured.metrics import ComparedMetric
from mantile.measured.reconcile import OF_CASE
from mantile.measured.report.contents import (
    COUNT,
    FORMS,
    LINKED,
    LINKED_TEXT,
    LONGEST,
    PERCENT,
    SIGNED,
    Report,
    add_heads,
    add_title_rows,
)
from mantile.measured.report.runs import ASKED, NUMBERS, RunCells, add_value
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet

EXTREMES = 10  # runs of each list
_SHOWN = ("id", *OF_CASE)
_RANK = style.VALUE.but(form=COUNT, colour=style.MUTE)


def extremes_sheet(report: Report, cells: RunCells) -> None:
    """Fill the sheet Best and worst: links to the runs that are predicted best and worst."""
    sheet, metric = report.book.sheets["Best and worst"], report.metric
    metrics = [metric, *(other for other in report.metrics if other is not metric)]
    add_title_rows(
        sheet,
        f"The ten runs of each mode whose {metric.label} is predicted best and worst as generated; every "
        "cell is a link to Runs.",
        [44, *(ASKED[column][1] for column in _SHOWN), 96, 96, 84, *[124] * (len(metrics) - 1)],
        (3, 2),
    )
    unit = style.shown_unit(metric.unit)
    heads = ["", *_SHOWN, f"measured, {unit}", f"predicted, {unit}", "error"]
    heads += [f"{other.label} error" for other in metrics[1:]]
    row = 3
    for mode, part in report.modes.items():
        of_mode = report.table[report.table["mode"] == mode]
        lists = report.reconciliation.extremes(EXTREMES, metric.name, of_mode)
        for title, runs in zip(("Best", "Worst"), lists, strict=True):
            if not len(runs):
                continue
            head = f"{title} predicted, {mode}: {len(runs)} of {len(part):,} runs"
            sheet.set_text(row, 0, head, style.SECTION_HEAD)
            add_heads(sheet, row + 1, heads, range(_SHOWN.index("concurrency") + 1, len(heads)))
            sheet.cells[row + 1, 8].style = style.HEADER.but(indent=1)
            for rank, index in enumerate(runs.index, 1):
                _extreme_row(sheet, row + 1 + rank, rank, int(index), metrics, cells)
            row += len(runs) + 4


def _extreme_row(
    sheet: Sheet, row: int, rank: int, index: int, metrics: Sequence[ComparedMetric], cells: RunCells
) -> None:
    """Links to the cells of a run.

    Args:
        index: of the run on the sheet Runs.
    """
    sheet.set_cell(row, 0, Cell(_RANK, number=rank))
    for place, column in enumerate(_SHOWN, 1):
        text = LINKED_TEXT.but(indent=int(column == "lengths"))
        look = LINKED.but(form=COUNT) if column in NUMBERS else text
        sheet.set_formula(row, place, cells.figures[column][index], look)
    headline = metrics[0]
    shown = [(headline, "measured"), (headline, "predicted"), *((metric, "error") for metric in metrics)]
    for place, (metric, what) in enumerate(shown, 1 + len(_SHOWN)):
        form = SIGNED if what == "error" else FORMS[metric.name]
        look = LINKED.but(form=form, bold=what == "error" and metric is headline)
        figure = cells.figures[f"{metric.name}_{what}"][index]
        if isinstance(figure, Input) and figure.value == "":  # not measured: a link to it would show 0
            sheet.set_style(row, place, place, look)
        else:
            sheet.set_formula(row, place, figure, look)


def unanswered_sheet(report: Report) -> None:
    """Fill the sheet Not answered: why records could not be predicted, and which."""
    sheet, rejected = report.book.sheets["Not answered"], report.reconciliation.unanswered()
    purpose = (
        "Records that are no measured run, or that no estimate predicts or is compared with, and why."
        if rejected
        else "Every record was predicted."
    )
    add_title_rows(sheet, purpose, [220, 760, 90, 90], (3, 0))
    if not rejected:
        return
    reasons = dict(Counter(run.reason for run in rejected).most_common())
    examples = {run.reason: run.id for run in reversed(rejected)}
    add_heads(sheet, 3, ["such as", "reason", "records", "share"], (2, 3))
    for row, reason in enumerate(reasons, 4):
        sheet.set_text(row, 0, examples[reason], style.SOURCE)
    total = ("records in the file", report.reconciliation.rows)
    row = _counted_rows(report, sheet, 4, reasons, total)
    add_heads(sheet, row + 1, ["record", "reason", "", ""])
    for place, run in enumerate(rejected, row + 2):
        sheet.set_text(place, 0, run.id, style.SOURCE)
        sheet.set_text(place, 1, run.reason, style.ROW_LABEL)


def assumptions_sheet(report: Report) -> None:
    """Fill the sheet Assumptions: what reading the runs assumed."""
    sheet, assumptions = report.book.sheets["Assumptions"], report.reconciliation.assumptions()
    purpose = (
        "What was assumed where the table of the runs does not say it; the assumptions of each run stand on "
        "Runs."
        if assumptions
        else "Nothing was assumed: the records say all that is asked."
    )
    add_title_rows(sheet, purpose, [44, 860, 90, 90], (4, 0))
    add_heads(sheet, 3, ["", "assumed", "runs", "share"], (2, 3))
    if not assumptions:
        return
    for number in range(1, len(assumptions) + 1):
        sheet.set_cell(3 + number, 0, Cell(_RANK, number=number))
    _counted_rows(report, sheet, 4, assumptions, ("runs predicted", len(report.table)))


def _counted_rows(
    report: Report, sheet: Sheet, top: int, counts: Mapping[str, int], total: tuple[str, int]
) -> int:
    """Texts, how often each holds and its share of a total, which stands in the last row.

    Returns:
        The row below.
    """
    label, count = total
    row = top + len(counts)
    sheet.set_style(row, 0, 0, style.emphasised(style.LABEL, 1))
    sheet.set_text(row, 1, label, style.emphasised(style.ROW_LABEL, 1))
    look = style.VALUE.but(form=COUNT)
    name = sheet.name.lower().replace(" ", "_")
    total_count = add_value(
        report.book, sheet, row, 2, f"{name}.total", float(count), style.emphasised(look, 1)
    )
    sheet.set_style(row, 3, 3, style.emphasised(look, 1))
    for place, (text, number) in enumerate(counts.items(), top):
        sheet.set_text(place, 1, text[:LONGEST], style.ROW_LABEL)
        figure = add_value(report.book, sheet, place, 2, f"{name}.{place}", float(number), look)
        share = Quantity(f"{name}.{place}.share", "Share", "1", figure / total_count)
        report.book.add_quantity(sheet, place, 3, share, style.VALUE.but(form=PERCENT))
    return row + 1
