"""Figures worked out again for further cases of the base scenario: a row each, a column for each case."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.graph.quantity import Named, Quantity, Value
from mantile.workbook import style
from mantile.workbook.book import Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook


def add_labels(sheet: Sheet, row: int, figure: Named, label: str) -> None:
    """What stands on a row: label, unit if there is one, id."""
    sheet.set_text(row, 0, label, style.ROW_LABEL)
    if figure.unit != "1":
        sheet.set_text(row, 1, style.shown_unit(figure.unit), style.UNIT)
    sheet.ids[row] = figure.id


def add_varied_row(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    original: Named,
    figure: Quantity,
    cases: Mapping[int, int],
    id_column: int,
) -> None:
    """A row of a figure that is worked out again for every case.

    Args:
        original: what the figure stands for, whose id its own ends in.
        cases: numbers of the cases by their columns.
    """
    book.register(figure, CellAddress(sheet.name, row))
    add_labels(sheet, row, figure, original.label)
    sheet.set_text(row, id_column, figure.id, style.IDENTIFIER.but(wrap=False))
    look = style.value(figure.unit, is_text=isinstance(book.estimate_values[0].get(original), str))
    for column, case in cases.items():
        sheet.set_formula(row, column, figure.body, look, scenario=case)


def value_cell(look: style.Style, value: Value, case: int = 0) -> Cell:
    """A cell that holds a number or a text."""
    if isinstance(value, str):
        return Cell(look, text=value, scenario=case)
    return Cell(look, number=float(value), scenario=case)
