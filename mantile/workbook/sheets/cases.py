"""Figures worked out again for further cases of the base scenario: a row each, a column for each case."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.graph.quantity import Named, Quantity, Value
from mantile.workbook import style
from mantile.workbook.book import Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook


def add_folded_head(sheet: Sheet, row: int, title: str, last: int) -> int:
    """The head of rows that are folded away below it; the first of them."""
    sheet.heights |= {row: 6, row + 1: 21}
    sheet.set_text(row + 1, 0, title, style.BLOCK_HEAD)
    sheet.set_style(row + 1, 1, last, style.BLOCK_HEAD)
    return row + 2


def fold(sheet: Sheet, first: int, after: int) -> None:
    """Fold rows away below their head."""
    sheet.blocks.append((first - 2, after - 1))
    sheet.folds.append((first, after - 1))


def add_label(sheet: Sheet, row: int, figure: Named, label: str) -> None:
    """What stands on a row that repeats none, which has an id but does not say it."""
    sheet.set_text(row, 0, label, style.ROW_LABEL)
    sheet.ids[row] = figure.id


def add_varied_row(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    original: Named,
    figure: Quantity,
    cases: Mapping[int, int],
) -> None:
    """A row of a figure that is worked out again for every case.

    Its id ends in that of the row that it repeats, which has its label, its unit and words.

    Args:
        original: what the figure stands for.
        cases: numbers of the cases by their columns.
    """
    book.register(figure, CellAddress(sheet.name, row))
    sheet.ids[row] = figure.id
    sheet.set_text(row, 0, figure.id, style.IDENTIFIER.but(wrap=False))
    look = style.value(figure.unit, is_text=isinstance(book.estimate_values[0].get(original), str))
    for column, case in cases.items():
        sheet.set_formula(row, column, figure.body, look, scenario=case)


def value_cell(look: style.Style, value: Value, case: int = 0) -> Cell:
    """A cell that holds a number or a text."""
    if isinstance(value, str):
        return Cell(look, text=value, scenario=case)
    return Cell(look, number=float(value), scenario=case)
