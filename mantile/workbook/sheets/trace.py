"""The trace on the Audit sheet: the path of each headline result down to the figure behind it."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.equations.trace import Trace
from mantile.equations.trace.lines import FIGURES, Line
from mantile.graph.quantity import Input, Named
from mantile.workbook import style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import mark_beginning

_STEP, _NAME, _VALUE, _ID, _STATUS = range(5)
_PATH = {"value": _VALUE, "name": _NAME, "id": _ID, "status": _STATUS}
_TABLE = {**_PATH, "part": 0, "said": 5, "links": 6, "fixed": 7, "lead": 8, "key": 9, "place": 10}
_HEADS = {_NAME: "what it is", _VALUE: "value", _ID: "id of its row"}
_BEHIND = {**_HEADS, _STATUS: "status", 5: "source", 8: "leads to", 9: "key", 10: "place"}
_HEIGHT = 18
_RULE, _END = (style.THIN, style.FAINT), (style.THIN, style.GREY)
_LOOKS = {
    "value": style.table("traced"),
    "name": style.LABEL,
    "id": style.IDENTIFIER.but(wrap=False, colour=style.LINK),
    "status": style.SOURCE.but(wrap=False),
    "said": style.SOURCE.but(wrap=False),
    "fixed": style.table("whole"),
    "place": style.table("whole"),
    "links": style.table("whole"),
}


def add_trace(book: EstimateBook, sheet: Sheet, row: int, last: int, found: Trace) -> int:
    """The paths, and below them the tables that they are looked up in; the row after them."""
    end, steps = _paths(book, sheet, row, last, found)
    heads, after = _tables(book, sheet, end + 1, last, found)
    for place, title in steps.items():
        sheet.cells[place, _ID].link = heads[title]
    return after


def add_figures(book: EstimateBook, sheet: Sheet, row: int, last: int, found: Trace) -> int:
    """The figures of the library in use, each with its status and source; the row after them."""
    note = "what sources above, and steps of the trace below, are chosen from, live"
    row = _head(sheet, row, last, (FIGURES, note), _BEHIND)
    for line in found.tables[FIGURES]:
        _cells(book, sheet, row, line, _TABLE)
        sheet.ids[row] = line["key"].id.removesuffix(".key")
        row = _finish(sheet, row, last)
    sheet.folds.append((row - len(found.tables[FIGURES]), row - 1))
    return row


def _paths(book: EstimateBook, sheet: Sheet, row: int, last: int, found: Trace) -> tuple[int, dict[int, str]]:
    """A block for each headline result; the row after them, and by row the table that a step is looked up in.

    What a path was chosen by stands with the tables.
    """
    note = "base scenario: from a headline result down to the figure behind it, the largest part each time"
    row = _head(sheet, row, last, ("Trace", note), {_STEP: "step", **_HEADS, _STATUS: "share, status"})
    steps: dict[int, str] = {}
    for path in found.paths.values():
        for number, line in enumerate(path):
            sheet.set_text(row, _STEP, str(number), style.SECTION.but(bottom=_RULE))
            _cells(book, sheet, row, line, _PATH, bold=not number)
            steps |= {row: line.listed} if line.listed else {}
            row = _finish(sheet, row, last)
        mark_beginning(sheet, row - 1, _STATUS, "assumed", style.ALERT)
        sheet.set_text(row, _STEP, "source", style.SECTION.but(bottom=_END))
        _place(book, sheet, row, _NAME, path[-1]["said"], _LOOKS["said"].but(bottom=_END))
        row = _finish(sheet, row, last, _END)
    return row, steps


def _tables(
    book: EstimateBook, sheet: Sheet, row: int, last: int, found: Trace
) -> tuple[dict[str, str], int]:
    """The tables behind the paths but that of figures; links to all by what stands over them.

    And the row after them.
    """
    row = _head(sheet, row, last, ("Behind the trace", "what its steps are chosen from, live"), _BEHIND)
    row = _title(sheet, row, last, "Choices of the paths")
    first = row
    for metric, path in found.paths.items():
        for number, line in enumerate(path):
            if line.cells.keys() & {"lead", "place"}:
                sheet.set_text(row, _NAME, f"{metric.label}, step {number}", _LOOKS["name"].but(bottom=_RULE))
                _cells(book, sheet, row, line, {role: _TABLE[role] for role in ("lead", "place")})
                row = _finish(sheet, row, last)
    sheet.folds.append((first, row - 1))
    heads: dict[str, str] = {}
    for title, table in found.tables.items():
        if title == FIGURES:
            above = book.addresses[table[0]["key"]].row - 1  # the title of the table, over its heads
            heads[title] = f"internal:'{sheet.name}'!A{above}"
            continue
        heads[title] = f"internal:'{sheet.name}'!A{row + 1}"
        row = _title(sheet, row, last, title)
        for line in table:
            _cells(book, sheet, row, line, _TABLE)
            row = _finish(sheet, row, last)
        sheet.folds.append((row - len(table), row - 1))
    return heads, row


def _head(sheet: Sheet, row: int, last: int, texts: tuple[str, str], heads: Mapping[int, str]) -> int:
    """Title and note of a block, and the heads of its columns; the row after them."""
    title, note = texts
    sheet.set_text(row, 0, title, style.SECTION_HEAD)
    sheet.set_text(row, _ID, note, style.SECTION_HEAD.but(bold=False, size=9.5, colour=style.GREY))
    sheet.set_style(row, 1, last, style.SECTION_HEAD)
    for column, text in heads.items():
        sheet.set_text(row + 1, column, text, style.HEADER_RIGHT if column == _VALUE else style.HEADER)
    sheet.set_style(row + 1, 0, last, style.HEADER)
    sheet.heights[row + 1] = 20
    return row + 2


def _title(sheet: Sheet, row: int, last: int, title: str) -> int:
    sheet.set_text(row, 0, title, style.BLOCK_HEAD)
    sheet.set_style(row, 1, last, style.BLOCK_HEAD)
    return row + 1


def _cells(
    book: EstimateBook, sheet: Sheet, row: int, line: Line, columns: Mapping[str, int], bold: bool = False
) -> None:
    """The cells of a line that have a column; its id leads to its row."""
    for role, figure in line.cells.items():
        if role in columns:
            look = _LOOKS.get(role, style.SECTION)
            if role in ("value", "name"):
                look = look.but(bold=bold)
            _place(book, sheet, row, columns[role], figure, look.but(bottom=_RULE))
    if line.leads_to is not None and "id" in columns and "id" in line.cells:
        sheet.cells[row, _ID].link = book.link_to(line.leads_to)


def _place(book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Named, look: style.Style) -> None:
    if isinstance(figure, Input):
        book.add_constant(sheet, row, column, figure, look)
    else:
        book.add_quantity(sheet, row, column, figure, look)


def _finish(sheet: Sheet, row: int, last: int, rule: tuple[int, str] = _RULE) -> int:
    """The rule below a line; the row after it."""
    sheet.set_style(row, 0, last, style.Style(bottom=rule))
    sheet.heights[row] = _HEIGHT
    return row + 1
