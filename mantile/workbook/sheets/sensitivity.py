"""The sensitivity on What-if: each input lower and higher, the results there, and every figure on the way."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.display import Shown
from mantile.equations.metrics import USD_PER_MILLION_OUTPUT_TOKENS
from mantile.equations.sensitivity import (
    HUNDRED,
    RANGE,
    ROOM,
    SIGN,
    InputEnds,
    Ranking,
    Sensitivity,
    SensitivityInput,
    sensitivity,
)
from mantile.graph.quantity import Input, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import add_folded_head, add_varied_row, fold
from mantile.workbook.sheets.frame import add_part, mark_beginning, thirds

SENSITIVITY = "Sensitivity"
# Columns of the table of inputs; those of low and high are also the columns of all figures worked out again.
_UNIT, _BASE, _RANGE, LOW, HIGH, FIRST_RESULT, _LAST = 1, 2, 3, 4, 5, 6, 11
_ROOM = (5, 6)  # of the sorted rows: ends of unseen bars
_CHART_ROWS = 13
_PRICE_COLUMNS = {2: "price −20 %", 3: "as it is", 4: "+20 %"}
_SMALL = style.Style(size=style.SMALL)
_NUMBER = style.Style(size=style.SMALL, form="#,##0.0000", align="right")
_COUNT = _NUMBER.but(form="0")


class SensitivityPart:
    """The part, the figures in it, and where the rows of its tornado charts stand.

    Attributes:
        end: the row after it.
    """

    def __init__(
        self, book: EstimateBook, sheet: Sheet, row: int, last: int, inputs: Sequence[SensitivityInput]
    ) -> None:
        self.book, self.sheet, self.last = book, sheet, last
        low = book.add_case(sheet, LOW, SENSITIVITY, {SIGN.id: -1})
        high = book.add_case(sheet, HIGH, SENSITIVITY, {SIGN.id: 1})
        self.cases = {LOW: low, HIGH: high}
        self.figures: Sensitivity = sensitivity(
            book.estimate.equations,
            inputs,
            {"low": low, "high": high},
            book.currency,
            book.planned(sheet.name, low),
        )
        self.ranked_rows: dict[str, tuple[int, int]] = {}
        purpose = "Each driver lower and higher by the percentage typed, all else as it is."
        self.end = self._lay_out(add_part(sheet, row, SENSITIVITY, purpose, last, _UNIT))

    def tornado(self, key: str, label: str, size: tuple[int, int]) -> charts.Chart:
        """The tornado of a result: labels of the sorted rows, then better and worse."""
        (first, last), name = self.ranked_rows[key], self.sheet.name
        return charts.tornado(
            f"Change of {label} at the low and high end of each driver, largest first",
            (name, first, 0, last, 0),
            [
                (style.COMPUTE, style.COMPUTE, (name, first, 1, last, 1)),
                (style.MEMORY, style.MEMORY_TEXT, (name, first, 2, last, 2)),
            ],
            [(name, first, column, last, column) for column in _ROOM],
            size,
        )

    def _lay_out(self, row: int) -> int:
        """All of it from a row on; the row after it."""
        titles, table = row + 1, row + _CHART_ROWS + 2
        self.sheet.heights[row] = 6
        self._heads(table)
        self._base(table + 2)
        first = table + 4
        for below, ends in enumerate(self.figures.inputs, first):
            self._input(below, ends)
        row = self._grid(first + len(self.figures.inputs))
        for ends in self.figures.inputs:
            row = self._block(row, ends)
        row = self._chart_data(row)
        fault = style.Style(size=style.SMALL, colour=style.GREY)
        self.book.add_quantity(self.sheet, table - 1, 0, self.figures.fault, fault, scenario=ACROSS)
        mark_beginning(self.sheet, table - 1, 0, "!", style.FAIL)
        title = style.Style(size=10.5, bold=True)
        places = zip(thirds(self.sheet, _LAST), self.figures.rankings.values(), strict=True)
        for (column, width), ranking in places:
            self.book.add_quantity(self.sheet, titles, column, ranking.title, title, scenario=ACROSS)
            size = (width, 18 * (_CHART_ROWS - 1))
            chart = self.tornado(ranking.result.key, ranking.result.label, size)
            self.sheet.charts.append((titles + 1, column, chart))
        return row

    def _heads(self, row: int) -> None:
        """Heads of the table, above them the results."""
        top = style.HEADER.but(bottom=None)
        for place, result in enumerate(self.figures.results):
            unit = f", {result.shown_unit}"
            head = result.label if result.is_money else f"{result.label}{unit}"
            self.sheet.set_text(row, _high_of(place), head, style.HEADER_RIGHT.but(bottom=None))
        self.sheet.set_style(row, 0, _LAST, top)
        heads = ("driver", "unit", "base", "± percent", "lower", "higher", *(("low", "high") * 3))
        for column, head in enumerate(heads):
            look = style.HEADER if column <= _UNIT else style.HEADER_RIGHT
            self.sheet.set_text(row + 1, column, head, look)

    def _base(self, row: int) -> None:
        """The results as they are; which column is which end."""
        book, sheet = self.book, self.sheet
        bold = style.LABEL.but(bold=True, fill=style.PANEL)
        small = style.VALUE.but(size=style.SMALL, colour=style.GREY, fill=style.PANEL)
        sheet.set_text(row, 0, "As it is", bold)
        book.register(SIGN, CellAddress(sheet.name, row))
        for column, sign in ((LOW, -1), (HIGH, 1)):
            look = small.but(form='[=-1]"lower"_)_);"higher"_)_)')
            sheet.set_cell(row, column, Cell(look, number=sign, scenario=self.cases[column]))
        book.add_constant(sheet, row, _RANGE, HUNDRED, small.but(form='"of "0_)_)'))
        for place, result in enumerate(self.figures.results):
            book.add_quantity(
                sheet,
                row,
                _high_of(place),
                self.figures.base[result.key],
                _result_look(result, "base ").but(bold=True, fill=style.PANEL),
                scenario=ACROSS,
                link=book.link_to(result.figure),
            )
        sheet.set_style(row, 1, _LAST, bold)
        sheet.heights[row + 1] = 4

    def _input(self, row: int, ends: InputEnds) -> None:
        """An input at the base and at both ends, and the results at both."""
        book, sheet, figure = self.book, self.sheet, ends.input.figure
        look = style.value(ends.base.unit, integer=isinstance(figure, Input) and figure.integer)
        sheet.set_text(row, 0, ends.input.label, style.LABEL)
        sheet.set_text(row, _UNIT, style.shown_unit(ends.base.unit), style.UNIT)
        link, green = book.link_to(figure), look.but(colour=style.LINK)
        book.add_quantity(sheet, row, _BASE, ends.base, green, scenario=ACROSS, link=link)
        book.add_input(sheet, row, _RANGE, ends.range_percent)
        if ends.shown is None:
            book.register(ends.varied[figure], CellAddress(sheet.name, row))
            for column, case in self.cases.items():
                sheet.set_formula(row, column, ends.varied[figure].body, look, scenario=case)
        else:
            for column, value in zip((LOW, HIGH), ends.shown, strict=True):
                book.add_quantity(sheet, row, column, value, look, scenario=ACROSS)
        for place, result in enumerate(self.figures.results):
            for column, value in zip(
                (_high_of(place) - 1, _high_of(place)), ends.results[result.key], strict=True
            ):
                book.add_quantity(sheet, row, column, value, _result_look(result), scenario=ACROSS)
        sheet.ids[row] = ends.input.id

    def _grid(self, row: int) -> int:
        """The cost of output tokens of the base scenario by utilisation and price; the row after it."""
        book, sheet, grid = self.book, self.sheet, self.book.estimate.equations.rows.of("grid")
        label = book.currency.named(USD_PER_MILLION_OUTPUT_TOKENS.head)
        sheet.heights |= {row: 8}
        sheet.set_text(row + 1, 0, f"{label}, by utilisation and price of an hour", style.HEADER)
        for column, name in _PRICE_COLUMNS.items():
            sheet.set_text(row + 1, column, name, style.HEADER_RIGHT)
        sheet.set_style(row + 1, 1, _LAST, style.HEADER)
        row += 2
        for used in grid.all("same.*"):
            percent = used.id.rpartition(".")[2]
            sheet.set_text(row, 0, f"{percent} % of the paid hours used", style.LABEL)
            for column, price in zip(_PRICE_COLUMNS, ("lower", "same", "higher"), strict=True):
                figure = grid[f"{price}.{percent}"]
                look = style.VALUE.but(form=style.amount(3), colour=style.LINK, bold=price == "same")
                shown = book.displayed(figure, figure.unit)
                sheet.set_formula(row, column, shown, look)
            row += 1
        return row

    def _block(self, row: int, ends: InputEnds) -> int:
        """The figures that follow from an input, in the order of the workbook; the row after them."""
        sheet = self.sheet
        row = first = add_folded_head(sheet, row, f"What follows from {ends.input.label}", self.last)
        rows = [pair for pair in ends.varied.items() if pair[1] not in self.book.addresses]
        for original, figure in (*rows, *ends.variation.rows):
            add_varied_row(self.book, sheet, row, original, figure, self.cases)
            row += 1
        fold(sheet, first, row)
        return row

    def _chart_data(self, row: int) -> int:
        """What the charts show: inputs with their ranges, the change of each result, and the sorted rows;
        whether what is typed can be. The row after them.
        """
        book, sheet, figures = self.book, self.sheet, self.figures
        row = first = add_folded_head(sheet, row, "What the charts follow from", self.last)
        book.add_constant(sheet, row, _ROOM[0], ROOM, _NUMBER)
        sheet.set_text(row, _ROOM[1], "× longest bars: room for labels", _SMALL)
        row += 1
        inputs = zip(figures.labels, figures.numbers, figures.names, strict=True)
        for below, (label, number, name) in enumerate(inputs, row + 1):
            book.add_quantity(sheet, below, 0, label, _SMALL, scenario=ACROSS)
            book.add_constant(sheet, below, 1, number, _COUNT)
            book.add_constant(sheet, below, 2, name, _SMALL)
        for place, ranking in enumerate(figures.rankings.values()):
            self._changes(row, 3 + 3 * place, ranking)
        row += len(figures.inputs) + 1
        for ranking in figures.rankings.values():
            row = self._ranked(row, ranking)
        row = self._typed(row)
        fold(sheet, first, row)
        return row

    def _typed(self, row: int) -> int:
        """Whether the percentages that are typed can be; the row after it."""
        book, guards = self.book, self.figures.guards
        percents = (ends.range_percent for ends in self.figures.inputs)
        book.store_places((percent, guards.places[percent.id]) for percent in percents)
        for below, guard in enumerate(guards.rows, row):
            self.sheet.set_text(below, 0, guard.label, _SMALL)
            if isinstance(guard, Quantity):
                book.register(guard, CellAddress(self.sheet.name, below, 1, absolute=True))
                self.sheet.set_formula(below, 1, guard.body, _SMALL)
            else:
                book.add_constant(self.sheet, below, 1, guard, _SMALL, book.stamps[0].get(guard.id))
        return row + len(guards.rows)

    def _changes(self, row: int, column: int, ranking: Ranking) -> None:
        """The change of a result at both ends of every input, and what inputs are ranked by."""
        for offset, head in enumerate((f"{ranking.result.label}, lower", "higher", "key")):
            self.sheet.set_text(row, column + offset, head, _SMALL)
        lines = zip(ranking.changes, ranking.keys, strict=True)
        for below, ((low, high), key) in enumerate(lines, row + 1):
            for offset, figure in enumerate((low, high, key)):
                self.book.add_quantity(self.sheet, below, column + offset, figure, _NUMBER, scenario=ACROSS)

    def _ranked(self, row: int, ranking: Ranking) -> int:
        """The inputs by how far they move a result, the largest first; the row after them."""
        book, sheet = self.book, self.sheet
        heads = (f"{ranking.result.label}: sorted", "better", "worse", "rank", "entry", "room", "room")
        for column, head in enumerate(heads):
            sheet.set_text(row, column, head, _SMALL)
        for below, place in enumerate(ranking.ranked, row + 1):
            book.add_constant(sheet, below, 3, place.rank, _COUNT)
            cells = ((place.name, _SMALL), (place.better, _NUMBER), (place.worse, _NUMBER))
            for column, (figure, look) in enumerate(cells):
                book.add_quantity(sheet, below, column, figure, look, scenario=ACROSS)
            book.add_quantity(sheet, below, 4, place.entry, _COUNT, scenario=ACROSS)
        for column, figure in zip(_ROOM, ranking.room, strict=True):
            book.add_quantity(sheet, row + 1, column, figure, _NUMBER, scenario=ACROSS)
        self.ranked_rows[ranking.result.key] = (row + 1, row + len(ranking.ranked))
        return row + len(ranking.ranked) + 1


def input_of(identifier: str) -> str:
    """The input whose range an id is; nothing for other ids."""
    return identifier.removeprefix(RANGE) if identifier.startswith(RANGE) else ""


def _high_of(place: int) -> int:
    """The column of a result at the high end; that at the low end is to the left of it."""
    return FIRST_RESULT + 2 * place + 1


def _result_look(result: Shown, prefix: str = "") -> style.Style:
    form = style.amount(result.digits or 0)
    return style.VALUE.but(form=f'"{prefix}"{form}' if prefix else form)
