"""What rows of the library held when the file was made: a column of their sheets, behind all scenarios."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.equations.display import SIDE_BY_SIDE
from mantile.graph.quantity import Input
from mantile.workbook import style
from mantile.workbook.book import FIRST, HEAD_ROW
from mantile.workbook.estimate_book import EstimateBook

_HEAD, _WIDTH, _GAP = "as\u00a0\u00a0\ngenerated\u00a0\u00a0", 88, 64


def generated_column(book: EstimateBook) -> int:
    """Behind all columns in which scenarios may stand or be typed."""
    return FIRST + max(SIDE_BY_SIDE, book.columns) + 1


def add_generated(book: EstimateBook, generated: Mapping[Input, Input]) -> None:
    """Place what rows held beside each of them, and head the column.

    Args:
        generated: by row.
    """
    at = generated_column(book)
    for name in dict.fromkeys(book.addresses[row].sheet for row in generated):
        sheet = book.sheets[name]
        sheet.set_text(HEAD_ROW, at, _HEAD, style.HEADER_WRAP.but(colour=style.GREY))
        sheet.widths += [_GAP] * (at - len(sheet.widths)) + [_WIDTH]
    for row, held in generated.items():
        address = book.addresses[row]
        look = style.value(held.unit, role="fixed", integer=held.integer).but(colour=style.GREY)
        if not held.value:
            look = style.zero_as_dash(look)
        book.add_constant(book.sheets[address.sheet], address.row, at, held, look)
