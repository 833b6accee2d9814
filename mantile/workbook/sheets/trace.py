"""The trace on the Log sheet: the path of each headline result down to the figure of the library behind it."""

from __future__ import annotations

from mantile.equations.trace import Line, Table, Trace
from mantile.graph.quantity import Input, Named
from mantile.workbook import style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook

_NUMBER = 0
_COLUMNS = {"value": 1, "name": 2, "id": 3, "status": 4, "said": 5, "lead": 8, "key": 9, "place": 10, "part": 0}
_RULE = (style.THIN, style.FAINT)
_LOOKS = {
    "value": style.VALUE.but(form=style.amount(2)),
    "name": style.LABEL,
    "id": style.IDENTIFIER.but(wrap=False),
    "status": style.SOURCE.but(wrap=False),
    "said": style.SOURCE.but(wrap=False),
}
_BEHIND = style.SECTION  # what paths are looked up by
_HEIGHT = 18


def add_paths(book: EstimateBook, sheet: Sheet, row: int, last: int, trace: Trace) -> int:
    """The paths, a block for each headline result; the row after them."""
    _head(sheet, row, last, "Trace", "from each headline result down to the figure behind it: the largest part each time")
    heads = {"part": "step", "value": "value", "name": "what it is", "id": "id of its row", "status": "status", "said": "source"}
    row = _heads(sheet, row + 1, last, heads)
    for path in trace.paths.values():
        for number, line in enumerate(path):
            look = style.Style(bold=True) if not number else style.LABEL
            sheet.set_text(row, _NUMBER, str(number), style.SECTION)
            row = _line(book, sheet, row, last, line, bold=not number, rule=number == len(path) - 1)
            del look
    return row


def add_tables(book: EstimateBook, sheet: Sheet, row: int, last: int, trace: Trace) -> int:
    """The tables behind the paths; the row after them."""
    _head(sheet, row, last, "Behind the trace", "what its steps are chosen from, live")
    heads = {"part": "", "value": "value", "name": "what it is", "id": "id of its row", "status": "status", "said": "source",
             "lead": "leads to", "key": "key", "place": "place"}
    row = _heads(sheet, row + 1, last, heads)
    for title, table in trace.tables.items():
        sheet.set_text(row, 2, title, style.SECTION_HEAD)
        row = _table(book, sheet, row + 1, last, table)
    return row


def _table(book: EstimateBook, sheet: Sheet, row: int, last: int, table: Table) -> int:
    for line in table:
        row = _line(book, sheet, row, last, line)
    return row


def _head(sheet: Sheet, row: int, last: int, title: str, note: str) -> None:
    sheet.set_text(row, 0, title, style.SECTION_HEAD)
    sheet.set_text(row, 2, note, style.SECTION_HEAD.but(bold=False, size=9.5, colour=style.GREY))
    sheet.set_style(row, 1, last, style.SECTION_HEAD)


def _heads(sheet: Sheet, row: int, last: int, heads: dict[str, str]) -> int:
    for role, text in heads.items():
        look = style.HEADER_RIGHT if role == "value" else style.HEADER
        sheet.set_text(row, _COLUMNS[role], text, look)
    sheet.set_style(row, 0, last, style.HEADER)
    sheet.heights[row] = 20
    return row + 1


def _line(
    book: EstimateBook, sheet: Sheet, row: int, last: int, line: Line, bold: bool = False, rule: bool = False
) -> int:
    """A step of a path, or a line of a table."""
    bottom = (style.THIN, style.GREY) if rule else _RULE
    for role, figure in line.cells.items():
        look = _LOOKS.get(role, _BEHIND).but(bottom=bottom, bold=bold and role in ("value", "name"))
        _place(book, sheet, row, _COLUMNS[role], figure, look)
    if line.leads_to is not None:
        cell = sheet.cells[row, _COLUMNS["id"]]
        cell.link = book.link_to(line.leads_to)
        cell.style = cell.style.but(colour=style.LINK)
    sheet.set_style(row, 0, last, style.Style(bottom=bottom))
    sheet.heights[row] = _HEIGHT
    return row + 1


def _place(book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Named, look: style.Style) -> None:
    if isinstance(figure, Input):
        book.add_constant(sheet, row, column, figure, look)
    else:
        book.add_quantity(sheet, row, column, figure, look)
