"""The end of Calibration, on Efficiency: one figure says how far predictions are off what was measured."""

from __future__ import annotations

from mantile.equations.graph import EFFICIENCY
from mantile.equations.measured import error_of_all
from mantile.graph.quantity import Quantity
from mantile.graph.sentence import sentence
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, SHARED, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import needed_height


def add_error(book: EstimateBook) -> Quantity:
    """The last row: the error over all scenarios, which a solver can make small."""
    sheet = book.sheets[EFFICIENCY]
    for row, identifier in sheet.ids.items():
        if identifier.startswith(("measured.ratio.", "measured.error.")):
            for column in range(book.columns):
                cell = sheet.cells[row, FIRST + column]
                cell.style = cell.style.but(form=style.FRONT["ratio"])
    error = error_of_all(book.estimate.equations.rows, book.columns)
    _total(book, sheet, max(sheet.ids) + 1, error)
    return error


def _total(book: EstimateBook, sheet: Sheet, row: int, error: Quantity) -> None:
    """The last row: all scenarios together."""
    texts = ("How far off", error.label, error.unit, sentence(error), "", error.id)
    styles = (style.SECTION, style.ROW_LABEL, style.UNIT, style.SENTENCE, style.SOURCE, style.IDENTIFIER)
    for column, (text, look) in enumerate(zip(texts, styles, strict=True)):
        sheet.set_text(row, column, text, style.emphasised(look, 2).but(bold=look is style.ROW_LABEL))
    sheet.heights[row] = max(map(needed_height, texts, styles, sheet.widths))
    look = style.emphasised(style.value(error.unit).but(form=style.FRONT["ratio"]), 2)
    book.add_quantity(sheet, row, SHARED, error, look, scenario=ACROSS)
    sheet.set_style(row, 0, FIRST + book.columns - 1, style.emphasised(style.VALUE, 2))
    sheet.ids[row] = error.id
    start, _ = sheet.blocks[-1]
    sheet.blocks[-1] = (start, row)
