"""Columns that stand ready for a further scenario: what is typed into one counts once it has a name.

Their cells follow the base until somebody types over them.
"""

from __future__ import annotations

from mantile.equations.display import LETTERS
from mantile.equations.ready_columns import COUNTS, NAME, name_of
from mantile.graph.quantity import Input, Quantity
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, HEAD_ROW, SHARED, Cell, CellAddress, Room, Sheet, reference
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.references import link_to_typed

_COUNT_ROW = HEAD_ROW - 1  # of the sheet Inputs
_MOST = 60  # characters of a name
_SMALL = style.HEADER_RIGHT.but(size=style.SMALL, bold=False, colour=style.GREY, bottom=None)


def add_names(book: EstimateBook, sheet: Sheet, counted: Quantity) -> None:
    """Cells in which ready columns are named, and above all columns whether each counts."""
    book.register(NAME, CellAddress(sheet.name, HEAD_ROW))
    book.register(COUNTS, CellAddress(sheet.name, _COUNT_ROW))
    book.own_inputs[NAME.id] = NAME
    sheet.heights[_COUNT_ROW] = 18
    book.add_quantity(sheet, _COUNT_ROW, SHARED, counted, _SMALL.but(form='0" named"'), scenario=ACROSS)
    for column in range(book.columns):
        letter, at = LETTERS[column], FIRST + column
        look = _SMALL.but(form=f'[=1]"{letter}";"{letter}: type a name"')
        sheet.set_formula(_COUNT_ROW, at, COUNTS.body, look, scenario=column)
        if column in book.ready:
            room = Room(
                f"Scenario {letter}",
                "Type a name, and below what differs: cells follow the base until typed over. With a name "
                "the column counts in comparison, checks and edits.",
                _MOST,
            )
            look = style.reason(style.HEADER_WRAP.but(colour=style.INPUT, form="@"))
            sheet.set_cell(HEAD_ROW, at, Cell(look, scenario=column, entry=NAME, room=room))
            book.input_cells[NAME.id, column] = (sheet.name, HEAD_ROW, at)


def add_ready_head(sheet: Sheet, row: int, column: int, scenario: int, look: style.Style) -> None:
    """The name of a ready column at the head of a column behind its letter, live."""
    form = f'"{LETTERS[scenario]} · "@'
    sheet.set_formula(row, column, name_of(scenario), look.but(form=form), scenario=ACROSS)


def follow_base(book: EstimateBook, cell: Cell, figure: Input) -> None:
    """Let a cell of a ready column repeat what is used of the base."""
    used = book.used.get(figure)
    cell.expression, cell.follows = figure, (figure.id, 0)
    if used is None:
        cell.reference = link_to_typed(reference(*book.input_cells[figure.id, 0]))
    elif figure.value is None:  # of an override "none" where nobody set one
        cell.expression = used
