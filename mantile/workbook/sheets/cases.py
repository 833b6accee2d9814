"""Figures worked out again for further cases of the base scenario: a row each, a column for each case."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.graph.quantity import Input, Named, Node, Quantity, precedents
from mantile.workbook import style
from mantile.workbook.book import CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook


def describe(sheet: Sheet, row: int, figure: Named, label: str) -> None:
    """What stands on a row: label, unit, id."""
    sheet.set_text(row, 0, label, style.ROW_LABEL)
    sheet.set_text(row, 1, style.shown_unit(figure.unit), style.UNIT)
    sheet.ids[row] = figure.id


def work_out(
    book: EstimateBook, sheet: Sheet, row: int, original: Named, figure: Quantity, cases: Mapping[int, int]
) -> None:
    """A row of a figure that was made again.

    Args:
        original: what it was made from.
        cases: the cases by their columns.
    """
    book.register(figure, CellAddress(sheet.name, row))
    describe(sheet, row, figure, original.label)
    look = style.value(figure.unit, is_text=isinstance(book.estimate_values[0].get(original), str))
    for column, case in cases.items():
        sheet.set_formula(row, column, figure.body, look, scenario=case)


def figures_of(body: Node) -> tuple[Named, ...]:
    """What an expression is made of, but for definitions, which are the same in every scenario."""
    found = (body,) if isinstance(body, Input | Quantity) else precedents(body)
    return tuple(figure for figure in found if not (isinstance(figure, Input) and figure.fixed))
