"""Tables on sheets of workings, behind the scenarios: figures in rows, what their columns are over them.

A figure has a mark for how it is known, and tells who states it where it is selected.
"""

from __future__ import annotations

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.display import SIDE_BY_SIDE, origin
from mantile.equations.things import source_key
from mantile.graph.quantity import Input, Section, Table
from mantile.workbook import style
from mantile.workbook.book import FIRST, KEYS, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import cut, needed_height

_LEVEL, _FACT = 88, 104  # widths of columns of tables and of facts of things
_SMALL = 9.5  # size of figures of tables
_FREE, _GAP = 108, 24  # widths of columns between scenarios and tables
_TOLD = 255  # letters that are told where a figure is selected
_MARKS = {"measured": "◆", "fitted": "≈", "datasheet": "▤", "secondary": "○", "assumed": "?"}


def add_row(book: EstimateBook, sheet: Sheet, row: int, figures: Table, keyed: bool = False) -> None:
    """Place a row of a table behind the scenarios, each figure with how it is known; what is in use stands
    out.

    Args:
        keyed: the row is a thing, whose key stands before the scenarios.
    """
    first, last = first_column(book), FIRST + book.columns - 1
    for place, (figure, (_, column)) in enumerate(zip(figures.members, figures.places, strict=True)):
        at, look, tip = first + column - keyed, _look(figure), ""
        number = figures.sources[place] if figures.sources else 0
        mark = "" if keyed and not number else _MARKS.get(figure.status, "")
        if keyed and not column:
            at, look = KEYS, style.ROW_LABEL
        elif figures.sources and not number and figure.value == 0:
            book.register(figure, CellAddress(sheet.name, row, at, absolute=True))  # nobody states it
            continue
        elif mark or number:
            tip = _told(figure, f" · {source_key(number)}" if number else "")
        if keyed:
            look = look.but(align="left") if isinstance(figure.value, str) else look
        else:
            look = look.but(colour=style.GREY, size=_SMALL, bold=figures.in_use is None and bool(mark))
        form = ";".join(f'{part}" {mark}"' for part in look.form.split(";")) if mark else look.form
        book.add_constant(sheet, row, at, figure, look.but(form=form, wrap=False))
        sheet.cells[row, at].tip = tip
        widen(sheet, at, _LEVEL)
    sheet.tables.append((row, row, KEYS if keyed else first))
    if figures.in_use is not None:
        at = book.addresses[figures.in_use].row + 1
        of_scenarios = f"${xl_col_to_name(FIRST)}${at}:${xl_col_to_name(last)}${at}"
        used = style.Style(bold=True, colour=style.INK, fill=style.USED)
        rule = {"type": "formula", "criteria": f"=COUNTIF({of_scenarios},COLUMN()-{first})>0", "format": used}
        sheet.conditional.append(((row, first, row, first + figures.width - 1), rule))


def add_columns(book: EstimateBook, sheet: Sheet, row: int, section: Section) -> None:
    """Place what stands over the columns of things and facts, in a row of its own."""
    facts: dict[int, Input] = {}
    for figures in section.rows:
        assert isinstance(figures, Table)
        facts |= {column: figure for figure, (_, column) in zip(figures.members, figures.places, strict=True)}
    height = 20.0
    for column, head in enumerate(section.columns):
        unit, is_text = facts[column].unit, isinstance(facts[column].value, str)
        text = head if unit in ("1", "flag") else f"{head}, {style.shown_unit(unit)}"
        at = first_column(book) + column - 1 if column else KEYS
        widen(sheet, at, _FACT)
        look = style.HEADER_WRAP.but(align="left") if is_text else style.HEADER_WRAP
        sheet.set_text(row, at, text, look)
        height = max(height, needed_height(text, look, sheet.widths[at]))
    sheet.set_style(row, 0, at, style.HEADER)
    sheet.heights[row] = height
    sheet.tables.append((row, row, 0))


def add_heads(book: EstimateBook, sheet: Sheet, row: int, heads: Table) -> None:
    """Place what stands over the columns of tables behind the scenarios."""
    first = first_column(book)
    sheet.widths += [_FREE]  # where a further scenario is typed
    sheet.widths += [_GAP] * (first - len(sheet.widths))
    for figure, (_, column) in zip(heads.members, heads.places, strict=True):
        book.add_constant(sheet, row, first + column, figure, style.HEADER_WRAP)
        widen(sheet, first + column, _LEVEL)


def first_column(book: EstimateBook) -> int:
    """Behind all columns in which scenarios may stand or be typed: these are copied across whole sheets."""
    return FIRST + max(SIDE_BY_SIDE, book.columns) + 1


def _told(figure: Input, end: str = "") -> str:
    """What is told where a figure is selected."""
    words, status = origin(figure)
    return cut(f"{status}: {words}", _TOLD - len(end)) + end


def _look(figure: Input) -> style.Style:
    is_text = isinstance(figure.value, str)
    look = style.value(figure.unit, is_text=is_text, role="fixed", integer=figure.integer)
    return style.zero_as_dash(look) if figure.value == 0 and figure.unit not in ("1", "flag") else look


def widen(sheet: Sheet, column: int, width: float) -> None:
    """Make room for a column behind those that a sheet has."""
    sheet.widths += [width] * (column + 1 - len(sheet.widths))
