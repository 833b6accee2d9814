"""What rows of the library held when the file was made: a column of their sheets, behind the scenarios."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.graph.quantity import Input
from mantile.workbook import style
from mantile.workbook.book import FIRST, HEAD_ROW, Sheet
from mantile.workbook.estimate_book import EstimateBook

_HEAD, _WIDTH = "as\u00a0\u00a0\ngenerated\u00a0\u00a0", 88


def add_generated(book: EstimateBook, generated: Mapping[Input, Input]) -> None:
    """Place what rows held beside each of them, and head the column.

    Args:
        generated: by row.
    """
    columns: dict[str, int] = {}
    for row, held in generated.items():
        address = book.addresses[row]
        sheet = book.sheets[address.sheet]
        if sheet.name not in columns:
            columns[sheet.name] = _add_column(book, sheet)
        look = style.value(held.unit, role="fixed", integer=held.integer).but(colour=style.GREY)
        if not held.value:
            look = style.zero_as_dash(look)
        book.add_constant(sheet, address.row, columns[sheet.name], held, look)


def _add_column(book: EstimateBook, sheet: Sheet) -> int:
    """Head the column; behind the one in which a further scenario is typed, where there is one."""
    free = FIRST + book.columns
    column = free + 1 if (HEAD_ROW, free) in sheet.cells else free
    sheet.set_text(HEAD_ROW, column, _HEAD, style.HEADER_WRAP.but(colour=style.GREY))
    sheet.widths = [*sheet.widths[:column], _WIDTH]
    return column
