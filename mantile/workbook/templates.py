"""What a template changes of a laid-out workbook: sheets that are left out, and formulas shown as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mantile.graph.quantity import Cases, InCase, Node, expression
from mantile.library.errors import InputError, unknown
from mantile.workbook import style
from mantile.workbook.book import FIRST, HEAD_ROW, HEADS, Sheet
from mantile.workbook.estimate_book import EstimateBook

_ALWAYS = ("Summary", "Audit")
_OF_SHEET = re.compile(r"^(?:internal:|=)?'?([\w-]+)'?!")  # a reference, a link, or a range of a chart


def leave_out(book: EstimateBook, shown: tuple[str, ...]) -> None:
    """Leave out sheets that nothing shown needs: neither a formula nor a chart of those that stay.

    Raises:
        InputError: if a sheet to be shown does not exist in any workbook.
    """
    for name in shown:
        if name not in book.sheets:
            raise InputError(f"template: sheets: {unknown('sheet', name, book.sheets)}")
    kept: dict[str, None] = {}
    stack = [name for name in (*_ALWAYS, *shown) if name in book.sheets]
    while stack:
        name = stack.pop()
        if name not in kept:
            kept[name] = None
            stack += {other for other in _needed(book, book.sheets[name]) if other in book.sheets}
    book.sheets = {name: sheet for name, sheet in book.sheets.items() if name in kept}
    book.input_cells = {key: place for key, place in book.input_cells.items() if place[0] in kept}
    book.names = {name: place for name, place in book.names.items() if _sheet_of(place) in kept}
    for sheet in book.sheets.values():
        for cell in sheet.cells.values():
            if cell.link is not None and _sheet_of(cell.link) not in kept:
                cell.link = None


def show_formulas(book: EstimateBook) -> None:
    """On sheets with a column for each scenario, the formulas of the base as text, behind the last column."""
    column = FIRST + book.columns
    for sheet in book.sheets.values():
        rows = [
            row
            for row, at in sheet.cells
            if at == FIRST and sheet.cells[row, at].expression is not None and row in sheet.ids
        ]
        heads = sheet.cells.get((HEAD_ROW, len(HEADS) - 1))
        if not rows or heads is None or heads.text != HEADS[-1]:  # no columns of scenarios
            continue
        sheet.widths[column : column + 1] = [330]
        sheet.set_text(HEAD_ROW, column, "formula of the base scenario", style.HEADER)
        for row in rows:
            sheet.set_text(row, column, book.formula_text(sheet, sheet.cells[row, FIRST]), style.IDENTIFIER)


def _needed(book: EstimateBook, sheet: Sheet) -> Iterator[str]:
    """Sheets that the formulas, lists and charts of a sheet refer to."""
    for cell in sheet.cells.values():
        if cell.reference is not None:
            yield _sheet_of(cell.reference)
        if cell.expression is not None:
            yield from _homes(book, cell.expression)
        members = book.library_choices(cell.entry) if cell.entry is not None else None
        if members is not None:
            yield from _homes(book, members)
    for _, _, chart in sheet.charts:
        yield from _mentioned(chart.series)


def _homes(book: EstimateBook, node: Node) -> Iterator[str]:
    for part in expression(node):
        figure = part.figure if isinstance(part, InCase | Cases) else part
        if figure in book.addresses:
            yield book.addresses[figure].sheet


def _mentioned(thing: Any) -> Iterator[str]:
    """Every text in the description of a chart, of references their sheet.

    These are more than names of sheets, but all of those.
    """
    if isinstance(thing, str):
        yield _sheet_of(thing)
    elif isinstance(thing, dict | list | tuple):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from _mentioned(part)


def _sheet_of(text: str) -> str:
    """The sheet that a reference leads to; a text that is none, as it is."""
    match = _OF_SHEET.match(text)
    return match[1] if match else text
