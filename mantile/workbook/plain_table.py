"""Plain tables of values as .xlsx or .csv. Texts stay texts, whatever they begin with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mantile.workbook import style
from mantile.workbook.book import Book, Cell, Document, Sheet
from mantile.workbook.write import write_workbook

_HEAD = style.HEADER.but(wrap=True)
_TEXT = style.LABEL.but(size=9, wrap=True, valign="top")
_NUMBER = style.VALUE.but(size=9, valign="top")


@dataclass(frozen=True)
class Table:
    """Heads, widths of the columns in pixels, and rows of numbers, texts, truth values and None."""

    heads: Sequence[str]
    widths: Sequence[int]
    rows: Sequence[Sequence[Any]]


def write_csv(table: Table, path: Path) -> Path:
    """Write a table as .csv in UTF-8.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.

    Raises:
        InputError: if the file cannot be written; nothing half-written stays behind.
    """
    import pandas as pd

    from mantile.estimates.tables import table_file

    with table_file(path) as append:
        append(pd.DataFrame(list(table.rows), columns=list(table.heads), dtype=object))
    return path


def write_tables(tables: Mapping[str, Table], path: Path, title: str, footer: str) -> Path:
    """Write tables as sheets of an .xlsx file: the same bytes for the same tables.

    Args:
        footer: stands on each page, before its number.

    Raises:
        InputError: if the path does not end in .xlsx or the file cannot be written; nothing half-written
            stays behind.
    """
    book = Book(Document(title=title, comment="", footer=footer))
    for name, table in tables.items():
        book.add_sheet(_sheet(name, table))
    return write_workbook(book, path)


def _sheet(name: str, table: Table) -> Sheet:
    sheet = Sheet(
        name=name,
        family="outputs",
        widths=list(table.widths),
        freeze=(1, 0),
        autofilter=(0, 0, max(len(table.rows), 1), len(table.heads) - 1),
        repeat_rows=(0, 0),
        one_page_wide=True,
        protected=False,
        default_height=None,
    )
    for column, text in enumerate(table.heads):
        sheet.set_text(0, column, text, _HEAD)
    for row, values in enumerate(table.rows, 1):
        for column, value in enumerate(values):
            sheet.set_cell(row, column, _cell(value))
    return sheet


def _cell(value: Any) -> Cell:
    match value:
        case None:
            return Cell(_TEXT)
        case bool():
            return Cell(_TEXT, text="yes" if value else "no")
        case int() | float():
            return Cell(_NUMBER, number=value) if math.isfinite(value) else Cell(_TEXT, text="error")
    return Cell(_TEXT, text=str(value))
