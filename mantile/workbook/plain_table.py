"""Plain tables of values as .xlsx or .csv. Texts stay texts, whatever they begin with."""

from __future__ import annotations

import csv
import datetime
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xlsxwriter

from mantile.library.dump import replacing
from mantile.workbook import style

_CREATED = datetime.datetime(
    2026, 1, 1, tzinfo=datetime.timezone.utc
)  # fixed, so that the same tables give the same bytes
_RISKY = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets take a text that begins so for a formula


@dataclass(frozen=True)
class Table:
    """Heads, widths of the columns in pixels, and rows of numbers, texts, truth values and None."""

    heads: Sequence[str]
    widths: Sequence[int]
    rows: Sequence[Sequence[Any]]


def write_csv(table: Table, path: Path) -> Path:
    """Write a table as .csv in UTF-8; a text that a spreadsheet would take for a formula gets an apostrophe in front.

    Raises:
        InputError: if the file cannot be written; nothing half-written stays behind.
    """
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.heads)
        writer.writerows([_text(value) for value in row] for row in table.rows)
    return path


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_RISKY) else value
    return "" if value is None else value


def write_xlsx(tables: Mapping[str, Table], path: Path, title: str, footer: str) -> Path:
    """Write tables as sheets of values: the same bytes for the same tables.

    Raises:
        InputError: if the file cannot be written; nothing half-written stays behind.
    """
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("error")  # XlsxWriter only warns where it leaves something out
        book = xlsxwriter.Workbook(
            str(temporary),
            {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False},
        )
        book.set_properties({"title": title, "author": "Mantile", "created": _CREATED})
        head = book.add_format(style.HEADER.but(wrap=True).properties())
        words = book.add_format(style.LABEL.but(size=9, wrap=True, valign="top").properties())
        number = book.add_format(style.VALUE.but(size=9, valign="top").properties())
        for name, table in tables.items():
            sheet = book.add_worksheet(name)
            sheet.hide_gridlines(2)
            for column, width in enumerate(table.widths):
                sheet.set_column_pixels(column, column, width)
            for column, text in enumerate(table.heads):
                sheet.write_string(0, column, text, head)
            for row, values in enumerate(table.rows, 1):
                for column, value in enumerate(values):
                    if isinstance(value, bool) or value is None:
                        sheet.write_string(
                            row, column, "" if value is None else "yes" if value else "no", words
                        )
                    elif isinstance(value, int | float) and math.isfinite(value):
                        sheet.write_number(row, column, value, number)
                    else:
                        sheet.write_string(
                            row, column, "error" if isinstance(value, float) else str(value), words
                        )
            sheet.freeze_panes(1, 0)
            sheet.autofilter(0, 0, max(len(table.rows), 1), len(table.heads) - 1)
            sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})
            sheet.set_landscape()
            sheet.set_paper(9)
            sheet.fit_to_pages(1, 0)
            sheet.repeat_rows(0)
            sheet.set_footer(f"&L&8&F · &A&R&8{footer} · page &P of &N")
        book.close()
    return path
