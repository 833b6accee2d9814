"""The column behind the last scenario, in which somebody types a further one.

Its cells follow the base until they are typed over; `mantile import` takes it up once it differs.
"""

from __future__ import annotations

from mantile.equations.display import LETTERS
from mantile.graph.quantity import Input
from mantile.workbook import style
from mantile.workbook.book import FIRST, HEAD_ROW, Cell, Room, Sheet
from mantile.workbook.estimate_book import EstimateBook

NAME = "type a name"
"""What stands for the name of a scenario until one is typed."""
_WIDTH = 112
_MOST = 60  # characters of a name


def add_free_head(book: EstimateBook, sheet: Sheet) -> None:
    """Head the column; on Inputs its name is typed there."""
    letter, column = LETTERS[book.columns], FIRST + book.columns
    sheet.widths += [_WIDTH] * (column + 1 - len(sheet.widths))
    if sheet.name != "Inputs":
        sheet.set_text(
            HEAD_ROW, column, head(letter, "next scenario"), style.HEADER_WRAP.but(colour=style.GREY)
        )
        return
    room = Room(
        f"Scenario {letter}",
        "Type a name, and below what differs: cells follow the base until typed over. Its results are "
        "worked out by mantile import FILE.xlsx -o new.yaml, then mantile build new.yaml -o new.xlsx.",
        _MOST,
    )
    look = style.reason(style.HEADER_WRAP.but(colour=style.INPUT))
    sheet.set_cell(HEAD_ROW, column, Cell(look, text=head(letter, NAME), room=room))


def add_free_cell(book: EstimateBook, sheet: Sheet, row: int, figure: Input, look: style.Style) -> None:
    """The cell of an input: as the base has it; of overrides and of what was measured, empty."""
    if not book.has_free_column:
        return
    cell = Cell(look.but(colour=style.MUTE), entry=figure)
    if figure.value is not None and not figure.id.startswith("measured."):
        cell.expression, cell.follows, cell.reference = (
            book.typed_cell(figure),
            (figure.id, 0),
            f"$H{row + 1}",
        )
    sheet.set_cell(row, FIRST + book.columns, cell)


def head(letter: str, name: str) -> str:
    """A heading in two lines, with air at the end of each."""
    return f"{letter}\u00a0\u00a0\n{name}\u00a0\u00a0"
