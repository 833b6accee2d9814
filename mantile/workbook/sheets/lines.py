"""Lines on sheets of workings: several figures each, in groups of columns behind those of the scenarios."""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.display import LETTERS, SIDE_BY_SIDE
from mantile.graph.quantity import Input, Line, Named, Section
from mantile.workbook import style
from mantile.workbook.book import FIRST, OF_LETTER, SHARED, Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.tables import first_column, widen

_WIDTH, _EMPTY = 96, 8
_LIMITS = ("from, or choices", "to")  # heads of what a cell may hold


class Lines:
    """Places the lines of a block.

    Behind the columns of the scenarios stands what cells may hold, then a group of columns for each further
    figure. Columns of scenarios may be copied across: a group has room for as many.

    Args:
        row: with the title of the block.
    """

    def __init__(self, book: EstimateBook, sheet: Sheet, row: int, section: Section) -> None:
        self.book, self.sheet = book, sheet
        lines = [entry for entry in section.rows if isinstance(entry, Line)]
        self._shared = any(isinstance(one, Input) and one.shared for one in lines[0].figures)
        self._limits = first_column(book)
        self._behind = self._limits + max(len(line.fixed) for line in lines)
        for column, head in enumerate(_LIMITS, self._limits):
            self._head(row, column, head)
        for place, head in enumerate(section.over):
            columns = [*self._columns(place)]
            for letter, column in zip(LETTERS, columns, strict=False):
                self._head(row, column, f"{letter}{OF_LETTER}{head}" if len(columns) > 1 else head)

    def add(self, row: int, line: Line) -> None:
        """Place the figures of a line."""
        book, sheet = self.book, self.sheet
        book.add_constant(sheet, row, SHARED, line.number, style.value(line.number.unit, role="fixed"))
        for column, limit in enumerate(line.fixed, self._limits):
            look = style.value(limit.unit, is_text=isinstance(limit.value, str), role="fixed")
            book.add_constant(sheet, row, column, limit, look)
        for place, figure in enumerate(line.figures):
            self._figure(row, figure, [*self._columns(place)])
        sheet.tables.append((row, row, self._limits))

    def _figure(self, row: int, figure: Named, columns: list[int]) -> None:
        """Place a figure of each scenario, or of all."""
        book, sheet = self.book, self.sheet
        place = (columns[0], True, FIRST) if self._shared else (None, False, columns[0])
        book.register(figure, CellAddress(sheet.name, row, *place))
        for scenario, column in enumerate(columns):
            is_text = isinstance(book.estimate_values[scenario].get(figure), str)
            if isinstance(figure, Input):
                cell = Cell(style.value(figure.unit, is_text=is_text, role="fixed"), scenario=scenario)
                book.later.append((sheet, figure, scenario, cell))
            else:
                look = style.value(figure.unit, is_text=is_text)
                cell = Cell(look, expression=figure.body, scenario=scenario)
            sheet.set_cell(row, column, cell)

    def _columns(self, place: int) -> Iterator[int]:
        """The columns of a figure."""
        room, columns = (1, 1) if self._shared else (max(SIDE_BY_SIDE, self.book.columns), self.book.columns)
        first = self._behind + (place - 1) * room if place else FIRST
        yield from range(first, first + columns)

    def _head(self, row: int, column: int, text: str) -> None:
        widen(self.sheet, column - 1, _EMPTY)
        widen(self.sheet, column, _WIDTH)
        self.sheet.cells[row, column] = Cell(style.BLOCK_NOTE, text=text)
