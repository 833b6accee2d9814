"""The Audit sheet: what is checked, what is taken on trust, what changed since the file was made."""

from __future__ import annotations

from mantile.graph.quantity import Quantity
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

AUDIT = "Audit"
CHECKS, ASSUMPTIONS, LOG = "Checks", "Assumptions", "Log"
"""Its parts."""
LAST = 11
"""The last column that is always printed."""
_WIDTHS = (40, 230, 66, 192, 70, 156, 82, 80, 98, 98, 92, 62)
_FURTHER = 88  # width of a column behind them


def audit_sheet(book: EstimateBook, master: Quantity, last: int) -> Sheet:
    """The sheet before its parts are drawn.

    Args:
        last: the last column that a part needs.
    """
    sheet = book.add_sheet(
        Sheet(
            AUDIT,
            "control",
            "Whether it holds together, what it takes on trust, and what changed since it was made.",
        )
    )
    sheet.widths = [*_WIDTHS, *([_FURTHER] * (last - LAST))]
    add_title_rows(book, sheet, AUDIT, LAST, master)
    sheet.freeze, sheet.repeat_rows, sheet.one_page_wide = (2, 0), (0, 1), True
    return sheet
