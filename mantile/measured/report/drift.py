"""The report of drift: that of a reconciliation, and the sheet Drift."""

from __future__ import annotations

from pathlib import Path

from mantile.graph.quantity import Input, Quantity, absolute, where
from mantile.measured.drift import GROUP, Drift
from mantile.measured.report.contents import COUNT, PERCENT, SIGNED, add_heads, add_title_rows
from mantile.measured.report.runs import add_value
from mantile.measured.report.write import report_book
from mantile.workbook import style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.write import write_workbook

_NAMES = {"decode": "TPOT", "ttft": "TTFT", "memory": "memory"}
_LIMITS_AT, _TOP = 4, 6  # row of the limits, and of the first month


def write_drift(found: Drift, path: Path) -> Path:
    """Write the report as a workbook: every run beside its prediction, and each group by month. The limits
    are cells: alarms follow when one is changed.

    Raises:
        InputError: if the file cannot be written; nothing half-written stays behind.
    """
    book = report_book(found.reconciliation)
    sheet = Sheet("Drift", "outputs", default_height=20, one_page_wide=True)
    book.add_sheet(sheet)
    _fill(book, sheet, found)
    return write_workbook(book, path)


def _fill(book: Book, sheet: Sheet, found: Drift) -> None:
    names = tuple(_NAMES)
    first = len(GROUP) + 2  # column of the first shift
    add_title_rows(
        sheet,
        "Median of measured ÷ predicted − 1 by group and month, as generated. The newest month of a group "
        "raises an alarm beyond the limits below, which may be changed.",
        [170, 150, 110, 110, 80, 60, *[96] * len(names), *[110] * len(names)],
        (_TOP, 2),
    )
    heads = [
        *GROUP,
        "month",
        "runs",
        *(_NAMES[name] for name in names),
        *(f"{_NAMES[name]} alarm" for name in names),
    ]
    add_heads(sheet, _LIMITS_AT - 1, heads, range(first - 1, first + len(names)))
    sheet.set_text(_LIMITS_AT, 0, "limit", style.ROW_LABEL)
    look = style.VALUE.but(form=PERCENT, colour=style.INPUT)
    limits = {
        name: add_value(
            book, sheet, _LIMITS_AT, first + place, f"drift.limit.{name}", found.limits[name], look
        )
        for place, name in enumerate(names)
    }
    row = _TOP
    for group, periods in found.groups.items():
        for period in periods:
            for column, text in enumerate((*group, period.month)):
                sheet.set_text(row, column, text, style.ROW_LABEL)
            runs = style.VALUE.but(form=COUNT)
            add_value(book, sheet, row, first - 1, f"drift.{row}.runs", float(len(period.ids)), runs)
            for place, name in enumerate(names):
                shift = period.shifts[name]
                if shift is None:
                    continue
                value = add_value(
                    book,
                    sheet,
                    row,
                    first + place,
                    f"drift.{row}.{name}",
                    shift,
                    style.VALUE.but(form=SIGNED, colour=style.GREY),
                )
                if period is periods[-1]:
                    alarm = _alarm(row, name, value, limits[name])
                    book.add_quantity(sheet, row, first + len(names) + place, alarm, style.ROW_LABEL)
            row += 1


def _alarm(row: int, name: str, shift: Input, limit: Input) -> Quantity:
    """What the cell behind a shift says: "alarm" beyond the limit."""
    body = where(absolute(shift) > limit, "alarm", "within")
    return Quantity(f"drift.{row}.{name}.alarm", f"{_NAMES[name]} alarm", "1", body)
