"""The charts of the Summary sheet, each under a live title, and the chart data below what is printed."""

from __future__ import annotations

from mantile.equations.forward import Pass
from mantile.equations.summary import (
    LIMITS,
    ModuleTimes,
    PlacedBlock,
    Roofline,
    RooflinePoint,
    memory_use,
    module_times,
    outlook,
    roofline,
    split,
)
from mantile.equations.sweep import seen_from_elsewhere
from mantile.graph.quantity import Input, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.sensitivity import SensitivityPart
from mantile.workbook.sheets.sweep import SweepPart

CHART_DATA = 120  # first row below what is printed
_FIRST = 1  # column of labels
_SPLIT, _MEMORY, _OUTLOOK = 17, 23, 32  # rows of titles; the charts stand below
_SIZE = (422, 222)
_SMALL = style.Style(size=style.SMALL)
_NUMBER = style.Style(size=style.SMALL, form="#,##0.000", align="right")
_COUNT = _NUMBER.but(form="0")
_TITLE = style.Style(size=10.5, bold=True)
_MEMORY_COLOURS = {
    "weights": style.NAVY,
    "KV cache": style.MEMORY,
    "activations": style.ACTIVATIONS,
    "runtime": style.OVERHEAD,
    "free": style.WHITE,
    "reserve": style.RESERVE,
}


class SummaryCharts:
    """The charts while they are laid out, and the next free row of chart data."""

    def __init__(self, book: EstimateBook, sheet: Sheet) -> None:
        self.book, self.sheet = book, sheet
        self.row = CHART_DATA + 8

    def lay_out(self, sensitivity_part: SensitivityPart, sweep_part: SweepPart) -> None:
        """All charts of the page."""
        bold = style.Style(size=style.SMALL, bold=True, colour=style.GREY)
        self.sheet.set_text(CHART_DATA, _FIRST, "Chart data (live, not printed)", bold)
        equations = self.book.estimate.equations
        self._split()
        self._memory()
        self._modules(equations.prefill, 4)
        self._modules(equations.decode, 7)
        self._roofline()
        self._outlook(sensitivity_part, sweep_part)

    def _add(self, row: int, column: int, figure: Quantity, look: style.Style) -> None:
        self.book.add_quantity(self.sheet, row, column, figure, look)

    def _heads(self, row: int, heads: tuple[str, ...]) -> None:
        for column, head in enumerate(heads, _FIRST):
            self.sheet.set_text(row, column, head, _SMALL)

    def _split(self) -> None:
        """Both phases by what limits them."""
        figures = split(self.book.estimate.equations)
        for column, limit in enumerate(LIMITS, _FIRST + 1):
            self.sheet.set_text(self.row, column, limit, _SMALL)
        for row, (name, shares) in enumerate(figures.shares.items(), self.row + 1):
            self.sheet.set_text(row, _FIRST, name, _SMALL)
            for column, share in enumerate(shares.values(), _FIRST + 1):
                self._add(row, column, share, _NUMBER)
        self._add(_SPLIT, 1, figures.title, _TITLE)
        labels = (style.WHITE, style.INK, style.INK, style.INK)
        first, last = self.row + 1, self.row + 2
        series = [
            (style.BOUND_COLOURS[limit], label, ("Summary", first, column, last, column))
            for column, (limit, label) in enumerate(zip(LIMITS, labels, strict=True), _FIRST + 1)
        ]
        chart = charts.split(
            "Share of prefill and decode time by compute, memory, network and overhead",
            ("Summary", first, _FIRST, last, _FIRST),
            series,
            (422, 94),
            (0.12, 0.04, 0.86, 0.92),
        )
        self.sheet.charts.append((_SPLIT + 1, 1, chart))
        self.row += 4

    def _memory(self) -> None:
        """The memory of the fullest accelerator."""
        figures, row = memory_use(self.book.estimate.equations), self.row
        series = []
        for column, part in enumerate(figures.parts, _FIRST + 1):
            self._add(row + 1, column, part.amount, _NUMBER)
            self._add(row, column, part.label, _SMALL)
            values: charts.Range = ("Summary", row + 1, column, row + 1, column)
            series.append((_MEMORY_COLOURS[part.name], charts.cell("Summary", row, column), values))
        self._add(_MEMORY, 1, figures.title, _TITLE)
        chart = charts.stack(
            "Memory of the fullest accelerator: weights, KV cache, activations, runtime, free and reserve "
            "against capacity",
            series,
            (422, 110),
            (0.03, 0.04, 0.94, 0.42),
        )
        self.sheet.charts.append((_MEMORY + 1, 1, chart))
        self.row += 3

    def _modules(self, phase: Pass, place: int) -> None:
        """Time by group of modules, sorted live: groups, then their order, then the sorted series."""
        name, figures = phase.phase.id, module_times(self.book.estimate.equations, phase)
        self._groups(name, figures)
        self._ranked_groups(name, figures)
        self._add(_SPLIT, place, figures.title, _TITLE)
        first, last = self.row - len(figures.ranked), self.row - 1
        series = [
            (style.BOUND_COLOURS[limit], ("Summary", first, column, last, column))
            for column, limit in enumerate(LIMITS, 4)
        ]
        chart = charts.bars(
            f"{name.capitalize()} time by group of modules in ms, largest first, coloured by what limits it",
            ("Summary", first, _FIRST, last, _FIRST),
            series,
            "ms",
            _SIZE,
            (0.345, 0.03, 0.62, 0.85),
        )
        self.sheet.charts.append((_SPLIT + 1, place, chart))
        self.sheet.set_text(self.row, _FIRST, "share of the two largest", _SMALL)
        self._add(self.row, 3, figures.two_largest, _NUMBER)
        self._add(self.row, 4, figures.time, _SMALL)
        self.row += 2

    def _groups(self, name: str, figures: ModuleTimes) -> None:
        self._heads(self.row, (f"{name}: group", "number", "key, ms"))
        for group in figures.groups:
            self.row += 1
            self.book.add_constant(self.sheet, self.row, 1, group.name, _SMALL)
            self.book.add_constant(self.sheet, self.row, 2, group.number, _COUNT)
            self._add(self.row, 3, group.key, _NUMBER.but(form="0.000000"))
        self.row += 1

    def _ranked_groups(self, name: str, figures: ModuleTimes) -> None:
        limits = (f"{limit}, ms" for limit in LIMITS)
        self._heads(self.row, (f"{name}: sorted", "rank", "entry", *limits, "group"))
        for place in figures.ranked:
            self.row += 1
            self.book.add_constant(self.sheet, self.row, 2, place.rank, _COUNT)
            self._add(self.row, 3, place.entry, _COUNT)
            self._add(self.row, 8, place.group, _SMALL)
            self._add(self.row, 1, place.label, _SMALL)
            for column, limit in enumerate(LIMITS, 4):
                if limit in place.times:
                    self._add(self.row, column, place.times[limit], _NUMBER)
        self.row += 1

    def _roofline(self) -> None:
        """Roofs, and below them the blocks of both phases."""
        equations = self.book.estimate.equations
        figures = roofline(equations, self.book.estimate_values[0])
        heads = ("roofline", "FLOP per byte", "peak, TFLOP/s", "FLOP per byte", "reached, TFLOP/s")
        roofs, points = self.row, self.row + 5
        self._heads(roofs, heads)
        for column, roof in ((2, figures.datasheet), (4, figures.reached)):
            for row, point in enumerate(roof, roofs + 1):
                self._point(row, column, point)
        for row, placed in enumerate(figures.blocks, points):
            self.sheet.set_text(row, _FIRST, f"{placed.phase}: {placed.block.label}", _SMALL)
            self._point(row, 2, placed.point)
        self._add(_OUTLOOK, 1, figures.title, _TITLE)
        self.sheet.charts.append((_OUTLOOK + 1, 1, _roofline_chart(figures, roofs + 1, points)))

    def _point(self, row: int, column: int, point: RooflinePoint) -> None:
        if isinstance(point.intensity, Input):
            self.book.add_constant(self.sheet, row, column, point.intensity, _NUMBER)
        else:
            self._add(row, column, point.intensity, _NUMBER)
        self._add(row, column + 1, point.rate, _NUMBER)

    def _outlook(self, sensitivity_part: SensitivityPart, sweep_part: SweepPart) -> None:
        """Throughput against speed for a user, and what moves the cost, or TPOT where there is no price."""
        equations = self.book.estimate.equations
        self._add(_OUTLOOK, 4, outlook(equations), _TITLE)
        chart = sweep_part.interactivity(_SIZE, (0.125, 0.03, 0.84, 0.74))
        self.sheet.charts.append((_OUTLOOK + 1, 4, chart))
        price = equations.rows["cost.usd_per_million_output"]
        priced = not isinstance(self.book.estimate_values[0][price], str)
        label = self.book.currency.named("USD per million output tokens")
        key, label = ("usd", label) if priced else ("tpot", "TPOT")
        title = seen_from_elsewhere(sensitivity_part.figures.rankings[key].title)
        self.sheet.set_formula(_OUTLOOK, 7, title, _TITLE, scenario=ACROSS)
        self.sheet.charts.append((_OUTLOOK + 1, 7, sensitivity_part.tornado(key, label, _SIZE)))


def _roofline_chart(figures: Roofline, roofs: int, points: int) -> charts.Chart:
    """The chart of roofs and blocks whose data begin at these rows."""

    def column(first: int, last: int, at: int) -> charts.Range:
        return ("Summary", first, at, last, at)

    def block(row: int, placed: PlacedBlock) -> tuple[str | None, charts.Range, charts.Range, str, str, str]:
        where = (placed.label, column(row, row, 2), column(row, row, 3))
        if placed.phase == "prefill":
            return (*where, style.COMPUTE, "circle", "above")
        return (*where, style.MEMORY, "diamond", "below" if placed.block.group == "attention" else "right")

    ends = (roofs, roofs + 2)
    return charts.roofline(
        "Roofline of one accelerator: reached TFLOP/s against arithmetic intensity; circles prefill, "
        "diamonds decode; the dashed line is what matrix products reach",
        [
            (column(*ends, 2), column(*ends, 3), style.INK, False),
            (column(*ends, 4), column(*ends, 5), style.REACHED_ROOF, True),
        ],
        [block(row, placed) for row, placed in enumerate(figures.blocks, points)],
        _SIZE,
        (0.125, 0.03, 0.84, 0.74),
    )
