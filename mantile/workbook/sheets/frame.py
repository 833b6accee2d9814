"""What every sheet has: title, purpose, the master check, the way back to the Summary."""

from __future__ import annotations

from itertools import pairwise

from mantile.equations.display import LETTERS
from mantile.graph.quantity import Quantity
from mantile.workbook import style
from mantile.workbook.book import ACROSS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.text_width import cut_to, height, lines

TO_CHECKS = "internal:'Audit'!A1"
_PAGE, _WIDTH = 970, 1308  # pixels of A4 within narrow margins, at the smallest scale


def add_title_rows(
    book: EstimateBook, sheet: Sheet, title: str, last_column: int, master: Quantity | None
) -> None:
    """Rows 1 and 2: title and purpose on the left, master check and link to the Summary on the right."""
    sheet.set_text(0, 0, title, style.SHEET_TITLE)
    sheet.set_text(1, 0, sheet.purpose, style.PURPOSE)
    sheet.heights |= {0: 34, 1: 20}
    if master is not None:
        show_master(sheet, 0, last_column, master)
        sheet.set_text(1, last_column, "‹ Summary", style.BACK, link="internal:'Summary'!A1")


def add_part(sheet: Sheet, row: int, title: str, purpose: str, last_column: int, at: int = 3) -> int:
    """The head of a part of a sheet that has several, below some air; the row after it.

    Args:
        at: the column in which its purpose begins.
    """
    sheet.heights |= {row: 14, row + 1: 26}
    sheet.parts[title] = row + 1
    sheet.set_text(row + 1, 0, title, style.PART_HEAD)
    seen = cut_to(purpose, style.PART_NOTE.size, sum(sheet.widths[at : last_column + 1]))
    sheet.set_text(row + 1, at, seen, style.PART_NOTE)
    sheet.set_style(row + 1, 1, last_column, style.PART_HEAD)
    return row + 2


def thirds(sheet: Sheet, last: int) -> list[tuple[int, int]]:
    """Where three charts beside each other begin, up to a column, and how wide they are."""
    edges = [sum(sheet.widths[:column]) for column in range(last + 2)]
    ends = [
        min((abs(edge - edges[-1] * part / 3), column) for column, edge in enumerate(edges))[1]
        for part in range(4)
    ]
    return [(start, round(edges[end] - edges[start]) - 14) for start, end in pairwise(ends)]


def show_master(sheet: Sheet, row: int, column: int, master: Quantity) -> None:
    """The verdict of all checks, green or red."""
    sheet.set_formula(row, column, master, style.MASTER, scenario=ACROSS, link=TO_CHECKS)
    mark_beginning(sheet, row, column, "✗", style.FAIL)


def mark_beginning(sheet: Sheet, row: int, column: int, sign: str, colour: str) -> None:
    """Colour a text that begins with a sign."""
    look = style.Style(colour=colour, bold=True)
    rule = {"type": "text", "criteria": "begins with", "value": sign, "format": look}
    sheet.conditional.append(((row, column, row, column), rule))


def needed_height(text: str, look: style.Style, pixels: float) -> float:
    """The height of a row in which a text is seen whole in a column."""
    count = lines(text, look.size, pixels, mono=look.font != style.LABEL.font) if look.wrap else 1
    return height(count, look.size)


def room_on_page(sheet: Sheet, last: int) -> float:
    """Pixels that rows up to the last leave of a page of A4 on which texts can be read; below 0 they do not
    fit.
    """
    return _PAGE - sum(sheet.heights.get(row, sheet.default_height or 0) for row in range(last + 1))


def fits_on_page(sheet: Sheet, first: int, last: int) -> bool:
    """Whether rows of a part have room on a page below the title; of A3 if the sheet is too wide for A4."""
    rows = (*range(2), *range(first, last + 1))
    high = sum(sheet.heights.get(row, sheet.default_height or 0) for row in rows)
    return high <= (_PAGE if sum(sheet.widths) <= _WIDTH else _PAGE * 2**0.5)


def cut(text: str, most: int) -> str:
    """Words that fit in so many characters, with a sign where some are left out."""
    return text if len(text) <= most else text[: most - 1].rstrip(" ,;") + "…"


def scenario_heads(book: EstimateBook) -> list[tuple[str, str]]:
    """A · base, B, C, ... each with the scenario's name."""
    return [
        (f"{letter}{'' if index else ' · base'}", cut(column.name, 18))
        for index, (letter, column) in enumerate(zip(LETTERS, book.estimate.columns, strict=False))
    ]


def column_heads(book: EstimateBook) -> list[str]:
    """The heads of scenarios, in two lines of one cell."""
    return [f"{letter}  \n{name}  " for letter, name in scenario_heads(book)]
