"""The Sensitivity sheet: each input lower and higher, the results there, and every figure on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.equations.assumption import Origin
from mantile.equations.display import Shown
from mantile.equations.grid import UTILISATIONS
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
from mantile.workbook.sheets.cases import add_varied_row
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning

# Columns of the table of inputs; those of low and high are also the columns of all figures worked out again.
_BASE, _RANGE, LOW, HIGH, _FIRST_RESULT, _SOURCE = 2, 3, 4, 5, 6, 12
_LAST = _SOURCE
_ROOM = (5, 6)  # of the sorted rows: ends of unseen bars
_CHART_ROWS = 13
_PRICE_COLUMNS = {4: "price −20 %", 5: "as it is", 6: "+20 %"}
_TABLE = _CHART_ROWS + 4  # row
_SMALL = style.Style(size=style.SMALL)
_NUMBER = style.Style(size=style.SMALL, form="#,##0.0000", align="right")
_COUNT = _NUMBER.but(form="0")


class SensitivitySheet:
    """The sheet, the figures on it, and where the rows of its tornado charts stand."""

    def __init__(self, book: EstimateBook, master: Quantity, inputs: Sequence[SensitivityInput]) -> None:
        self.book = book
        self.sheet = book.add_sheet(
            Sheet(
                "Sensitivity",
                "outputs",
                "What the results of the base scenario hang on: each driver lower and higher by the "
                "percentage typed, all else as it is. A row below repeats the row that its id names, with "
                "steps that only it needs.",
            )
        )
        self.sheet.widths = [214, 88, 84, 62, 94, 94, *([78] * 6), 200]
        add_title_rows(book, self.sheet, "Sensitivity", _LAST, master)
        self.sheet.heights[2] = 6
        self.sheet.freeze, self.sheet.repeat_rows = (2, 1), (0, 1)
        low = book.add_case(self.sheet, LOW, {SIGN.id: -1})
        high = book.add_case(self.sheet, HIGH, {SIGN.id: 1})
        self.cases = {LOW: low, HIGH: high}
        self.figures: Sensitivity = sensitivity(
            book.estimate.equations,
            inputs,
            {"low": low, "high": high},
            book.currency,
            book.planned("Sensitivity", low),
        )
        self.ranked_rows: dict[str, tuple[int, int]] = {}
        self._lay_out()

    def tornado(self, key: str, label: str, size: tuple[int, int]) -> charts.Chart:
        """The tornado of a result: labels of the sorted rows, then better and worse."""
        first, last = self.ranked_rows[key]
        return charts.tornado(
            f"Change of {label} at the low and high end of each driver, largest first",
            ("Sensitivity", first, 0, last, 0),
            [
                (style.COMPUTE, style.COMPUTE, ("Sensitivity", first, 1, last, 1)),
                (style.MEMORY, style.MEMORY_TEXT, ("Sensitivity", first, 2, last, 2)),
            ],
            [("Sensitivity", first, column, last, column) for column in _ROOM],
            size,
        )

    def _lay_out(self) -> None:
        self._heads(_TABLE)
        self._base(_TABLE + 2)
        first = _TABLE + 4
        for row, ends in enumerate(self.figures.inputs, first):
            self._input(row, ends)
        row = self._grid(first + len(self.figures.inputs) + 1) + 1
        for ends in self.figures.inputs:
            row = self._block(row, ends)
        self.sheet.print_area = (0, 0, row - 1, _LAST)
        self._typed(self._chart_data(row + 2) + 1)
        fault = style.Style(size=style.SMALL, colour=style.GREY)
        self.book.add_quantity(self.sheet, _TABLE - 1, 0, self.figures.fault, fault, scenario=ACROSS)
        mark_beginning(self.sheet, _TABLE - 1, 0, "!", style.FAIL)
        title = style.Style(size=10.5, bold=True)
        for column, ranking in zip((0, 4, 9), self.figures.rankings.values(), strict=True):
            self.book.add_quantity(self.sheet, 3, column, ranking.title, title, scenario=ACROSS)
            chart = self.tornado(ranking.result.key, ranking.result.label, (428, 18 * (_CHART_ROWS - 1)))
            self.sheet.charts.append((4, column, chart))

    def _heads(self, row: int) -> None:
        """Heads of the table, above them the results."""
        top = style.HEADER.but(bottom=None)
        for place, result in enumerate(self.figures.results):
            unit = f", {result.shown_unit}"
            head = result.label if result.is_money else f"{result.label}{unit}"
            self.sheet.set_text(row, _high_of(place), head, style.HEADER_RIGHT.but(bottom=None))
        self.sheet.set_style(row, 0, _LAST, top)
        heads = ("driver", "unit", "base", "± percent", "lower", "higher", *(("low", "high") * 3), "source")
        for column, head in enumerate(heads):
            look = style.HEADER if column in (0, 1, _SOURCE) else style.HEADER_RIGHT
            self.sheet.set_text(row + 1, column, head, look)

    def _base(self, row: int) -> None:
        """The results as they are; which column is which end."""
        book, sheet = self.book, self.sheet
        bold = style.LABEL.but(bold=True, fill=style.PANEL)
        small = style.VALUE.but(size=style.SMALL, colour=style.GREY, fill=style.PANEL)
        sheet.set_text(row, 0, "As it is", bold)
        book.register(SIGN, CellAddress("Sensitivity", row))
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
        sheet.set_text(row, 1, style.shown_unit(ends.base.unit), style.UNIT)
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

    def add_origins(self, origins: Mapping[str, Origin]) -> None:
        """How each input is known and where it comes from, as Assumptions says."""
        for row, identifier in self.sheet.ids.items():
            if identifier in origins:
                said = origins[identifier].words
                self.sheet.set_formula(row, _SOURCE, said, style.SOURCE.but(wrap=False))

    def _grid(self, row: int) -> int:
        """The cost of output tokens of the base scenario by utilisation and price; the row after it."""
        book, sheet, grid = self.book, self.sheet, self.book.estimate.equations.grid
        label = book.currency.named(USD_PER_MILLION_OUTPUT_TOKENS.head)
        sheet.heights |= {row: 8}
        sheet.set_text(row + 1, 0, f"{label}, by utilisation and price of an hour", style.HEADER)
        sheet.set_text(row + 1, _SOURCE, "rows of Cost, for every scenario", style.HEADER)
        for column, name in _PRICE_COLUMNS.items():
            sheet.set_text(row + 1, column, name, style.HEADER_RIGHT)
        sheet.set_style(row + 1, 1, _LAST, style.HEADER)
        row += 2
        for percent in UTILISATIONS:
            sheet.set_text(row, 0, f"{percent} % of the paid hours used", style.LABEL)
            for column, price in zip(_PRICE_COLUMNS, ("lower", "same", "higher"), strict=True):
                figure = grid.cells[percent, price]
                look = style.VALUE.but(form=style.amount(3), colour=style.LINK, bold=price == "same")
                shown = book.displayed(figure, figure.unit)
                sheet.set_formula(row, column, shown, look)
            row += 1
        return row

    def _block(self, row: int, ends: InputEnds) -> int:
        """The figures that follow from an input, in the order of the workbook; the row after them."""
        sheet = self.sheet
        sheet.heights |= {row: 6, row + 1: 21}
        note = "what follows from it, up to the results; all other figures are those of the base scenario"
        sheet.set_text(row + 1, 0, ends.input.label, style.BLOCK_HEAD)
        sheet.set_text(row + 1, _FIRST_RESULT, note, style.BLOCK_NOTE)
        sheet.set_style(row + 1, 1, _LAST, style.BLOCK_HEAD)
        rows = [pair for pair in ends.varied.items() if pair[1] not in self.book.addresses]
        rows += ends.variation.rows
        for below, (original, figure) in enumerate(rows, row + 2):
            add_varied_row(self.book, sheet, below, original, figure, self.cases, _FIRST_RESULT)
        sheet.blocks.append((row, row + len(rows) + 1))
        sheet.folds.append((row + 2, row + len(rows) + 1))
        return row + len(rows) + 2

    def _chart_data(self, row: int) -> int:
        """What the charts show: inputs with their ranges, the change of each result, and the sorted rows; the
        row after them.
        """
        book, sheet, figures = self.book, self.sheet, self.figures
        bold = style.Style(size=style.SMALL, bold=True, colour=style.GREY)
        sheet.set_text(row, 0, "Chart data (live, not printed)", bold)
        book.add_constant(sheet, row, _ROOM[0], ROOM, _NUMBER)
        sheet.set_text(row, _ROOM[1], "× longest bars: room for labels", _SMALL)
        row += 1
        for column, head in ((0, "driver with its range"), (2, "number"), (_LAST, "driver")):
            sheet.set_text(row, column, head, _SMALL)
        inputs = zip(figures.labels, figures.numbers, figures.names, strict=True)
        for below, (label, number, name) in enumerate(inputs, row + 1):
            book.add_quantity(sheet, below, 0, label, _SMALL, scenario=ACROSS)
            book.add_constant(sheet, below, 2, number, _COUNT)
            book.add_constant(sheet, below, _LAST, name, _SMALL)
        for place, ranking in enumerate(figures.rankings.values()):
            self._changes(row, 3 + 3 * place, ranking)
            self._ranked(row + len(figures.inputs) + 2 + place * (len(figures.inputs) + 3), ranking)
        return row + len(figures.inputs) + 2 + len(figures.rankings) * (len(figures.inputs) + 3)

    def _typed(self, row: int) -> None:
        """Whether the percentages that are typed can be."""
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

    def _changes(self, row: int, column: int, ranking: Ranking) -> None:
        """The change of a result at both ends of every input, and what inputs are ranked by."""
        for offset, head in enumerate((f"{ranking.result.label}, lower", "higher", "key")):
            self.sheet.set_text(row, column + offset, head, _SMALL)
        lines = zip(ranking.changes, ranking.keys, strict=True)
        for below, ((low, high), key) in enumerate(lines, row + 1):
            for offset, figure in enumerate((low, high, key)):
                self.book.add_quantity(self.sheet, below, column + offset, figure, _NUMBER, scenario=ACROSS)

    def _ranked(self, row: int, ranking: Ranking) -> None:
        """The inputs by how far they move a result, the largest first."""
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


def input_of(identifier: str) -> str:
    """The input whose range an id is; nothing for other ids."""
    return identifier.removeprefix(RANGE) if identifier.startswith(RANGE) else ""


def _high_of(place: int) -> int:
    """The column of a result at the high end; that at the low end is to the left of it."""
    return _FIRST_RESULT + 2 * place + 1


def _result_look(result: Shown, prefix: str = "") -> style.Style:
    form = style.amount(result.digits or 0)
    return style.VALUE.but(form=f'"{prefix}"{form}' if prefix else form)
