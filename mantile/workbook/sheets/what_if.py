"""The What-if sheet: what would be otherwise, and what it changes.

Its parts stand below each other in one grid: plans that were searched for, scenarios side by side, another
accelerator, drivers lower and higher, an input over a list of values. What is decided or compared is printed;
without either, what the results hang on.
"""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.decide import Decided
from mantile.equations.sensitivity import SensitivityInput
from mantile.equations.typed import Typed
from mantile.graph.quantity import Quantity
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets import compare, decide
from mantile.workbook.sheets.alternative import add_alternative
from mantile.workbook.sheets.folding import WHAT_IF
from mantile.workbook.sheets.frame import add_title_rows
from mantile.workbook.sheets.sensitivity import SENSITIVITY, SensitivityPart
from mantile.workbook.sheets.sweep import SweepPart

_LABELS, _COLUMN = 310, 90  # widths of the first column and of the others
_LAST = 11  # column that A4 has room for
_TOP = 2  # row
_PURPOSE = "What would be otherwise, and what it changes: every part is live and follows the inputs."


def what_if_sheet(
    book: EstimateBook,
    master: Quantity,
    choice: Decided | None,
    own: Sequence[Typed],
    inputs: Sequence[SensitivityInput],
    counted: Quantity | None,
) -> tuple[SensitivityPart, SweepPart]:
    """Lay out the sheet.

    Args:
        choice: the figures of the decision; None of a scenario without one.
        inputs: what is taken lower and higher.
        counted: how many scenarios have a name; None without ready columns.
    """
    last = max(_LAST, compare.last_column(book), 0 if choice is None else decide.LAST)
    sheet = book.add_sheet(Sheet(WHAT_IF, "outputs", _PURPOSE))
    sheet.widths = [_LABELS, *([_COLUMN] * last)]
    add_title_rows(book, sheet, WHAT_IF, last, master)
    sheet.freeze, sheet.repeat_rows = (_TOP, 1), (0, 1)
    row = decide.add_decision(book, sheet, _TOP, last, choice, own)
    alternative = row = compare.add_comparison(book, sheet, row, last, counted)
    row = add_alternative(book, sheet, row, last)
    sensitivity = SensitivityPart(book, sheet, row, last, inputs)
    sweep = SweepPart(book, sheet, sensitivity.end, last)
    sheet.widths += [_COLUMN] * (max(column for _, column in sheet.cells) - last)
    sheet.print_area = (0, 0, alternative - 1, last)
    if alternative == _TOP:  # nothing is decided or compared
        first = sheet.parts[SENSITIVITY] - 1
        folded = min(row for row, _ in sheet.folds if row > first)
        sheet.print_area = (first, 0, folded - 3, last)
    sheet.breaks = sorted([*sheet.breaks, *(head - 1 for head in sheet.parts.values())])[1:]
    return sensitivity, sweep
