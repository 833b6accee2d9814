"""The Calibration sheet: measured values are typed here, beside what is predicted; one figure over all scenarios says how far off it is."""

from __future__ import annotations

from mantile.graph.quantity import InCase, Quantity, sum_of
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, SHARED, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.workings import workings

TOTAL = "measured.error_of_all"


def calibration_sheet(book: EstimateBook, master: Quantity) -> Quantity:
    """Lay out the Calibration sheet.

    Returns:
        the error over all scenarios, which a solver can make small.
    """
    known = book.estimate.equations.measured
    sheet = workings(
        book,
        "Calibration",
        "outputs",
        "Type what was measured and look at predicted ÷ measured. To bring them together: edit override "
        "cells on Efficiency, or run mantile calibrate FILE.xlsx.",
        known.sections,
        master,
    )
    sheet.widths[SHARED] = 112
    sheet.cells[3, SHARED].text = "all\u00a0\u00a0\nscenarios\u00a0\u00a0"
    for row, identifier in sheet.ids.items():
        if identifier.startswith(("measured.ratio.", "measured.error.")):
            for column in range(book.columns):
                cell = sheet.cells[row, FIRST + column]
                cell.style = cell.style.but(form=style.FRONT["ratio"])
    _total(book, sheet, max(sheet.ids) + 1)
    return next(figure for figure in book.addresses if isinstance(figure, Quantity) and figure.id == TOTAL)


def _total(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """The last row: all scenarios together."""
    error = book.estimate.equations.measured.error
    whole = Quantity(
        TOTAL,
        "Error of all scenarios",
        "1",
        sum_of([InCase(error, column) for column in range(book.columns)]),
        note="sum of all; Solver: minimise it by changing override cells on Efficiency",
    )
    texts = ("How far off", whole.label, "1", whole.note, "", whole.id)
    styles = (style.SECTION, style.ROW_LABEL, style.UNIT, style.SENTENCE, style.SOURCE, style.IDENTIFIER)
    for column, (text, look) in enumerate(zip(texts, styles, strict=True)):
        sheet.set_text(row, column, text, style.emphasised(look, 2).but(bold=look is style.ROW_LABEL))
    book.add_quantity(
        sheet,
        row,
        SHARED,
        whole,
        style.emphasised(style.value("1").but(form=style.FRONT["ratio"]), 2),
        scenario=ACROSS,
    )
    sheet.set_style(row, 0, FIRST + book.columns - 1, style.emphasised(style.VALUE, 2))
    sheet.ids[row] = whole.id
    start, _ = sheet.blocks[-1]
    sheet.blocks[-1] = (start, row)
