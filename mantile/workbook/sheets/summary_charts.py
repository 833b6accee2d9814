"""The charts of the Summary sheet, each under a live title, and the chart data below what is printed."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.summary import LIMITS, placed_blocks
from mantile.equations.sweep import seen_from_elsewhere
from mantile.equations.tables import Equations
from mantile.graph.quantity import Input
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
    "kv": style.MEMORY,
    "activations": style.ACTIVATIONS,
    "runtime": style.OVERHEAD,
    "free": style.WHITE,
    "reserve": style.RESERVE,
}
_LOOKS = {name: _SMALL for name in ("group", "label", "sorted")} | dict.fromkeys(
    ("number", "rank", "entry"), _COUNT
)
_LOOKS |= {"key": _NUMBER.but(form="0.000000")}


def add_all(
    book: EstimateBook, sheet: Sheet, row: int, column: int, *names: str, rows: Equations | None = None
) -> None:
    """Texts that stand below the page, those there are: one beside the other.

    Args:
        names: of rows of the page.
        rows: those of a workbook; of its graph if they are not given.
    """
    found = book.estimate.equations.rows if rows is None else rows
    for name in names:
        if f"summary.{name}" in found:
            book.add_quantity(sheet, row, column, found[f"summary.{name}"], _SMALL)
            column += 1


class SummaryCharts:
    """The charts while they are laid out, and the next free row of chart data."""

    def __init__(self, book: EstimateBook, sheet: Sheet) -> None:
        self.book, self.sheet, self.rows = book, sheet, book.estimate.equations.rows
        self.row = CHART_DATA + 8

    def lay_out(self, sensitivity_part: SensitivityPart, sweep_part: SweepPart) -> None:
        """All charts of the page."""
        bold = style.Style(size=style.SMALL, bold=True, colour=style.GREY)
        self.sheet.set_text(CHART_DATA, _FIRST, "Chart data (live, not printed)", bold)
        self._split()
        self._memory()
        self._modules("prefill", 4)
        self._modules("decode", 7)
        self._roofline()
        self._outlook(sensitivity_part, sweep_part)

    def _add(self, row: int, column: int, name: str, look: style.Style) -> None:
        """A row of the page by its name."""
        figure = self.rows.figure(f"summary.{name}")
        if isinstance(figure, Input):
            self.book.add_constant(self.sheet, row, column, figure, look)
        else:
            self.book.add_quantity(self.sheet, row, column, figure, look)

    def _heads(self, row: int, heads: Sequence[str]) -> None:
        for column, head in enumerate(heads, _FIRST):
            self.sheet.set_text(row, column, head, _SMALL)

    def _split(self) -> None:
        """Both phases by what limits them."""
        for column, limit in enumerate(LIMITS, _FIRST + 1):
            self.sheet.set_text(self.row, column, limit, _SMALL)
        for row, name in enumerate(("Prefill", "Decode"), self.row + 1):
            self.sheet.set_text(row, _FIRST, name, _SMALL)
            for column, limit in enumerate(LIMITS, _FIRST + 1):
                self._add(row, column, f"split.{name.lower()}.{limit}", _NUMBER)
        self._add(_SPLIT, 1, "title.split", _TITLE)
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
        row, series = self.row, []
        for column, (part, colour) in enumerate(_MEMORY_COLOURS.items(), _FIRST + 1):
            self._add(row + 1, column, f"memory.{part}", _NUMBER)
            self._add(row, column, f"memory.{part}.label", _SMALL)
            values: charts.Range = ("Summary", row + 1, column, row + 1, column)
            series.append((colour, charts.cell("Summary", row, column), values))
        self._add(_MEMORY, 1, "title.memory", _TITLE)
        chart = charts.stack(
            "Memory of the fullest accelerator: weights, KV cache, activations, runtime, free and reserve "
            "against capacity",
            series,
            (422, 110),
            (0.03, 0.04, 0.94, 0.42),
        )
        self.sheet.charts.append((_MEMORY + 1, 1, chart))
        self.row += 3

    def _modules(self, name: str, place: int) -> None:
        """Time by group of modules, sorted live: groups, then their order, then the sorted series."""
        self._below((f"{name}: group", "number", "key, ms"), name, ("group", "number", "key"))
        heads = (f"{name}: sorted", "rank", "entry", *(f"{limit}, ms" for limit in LIMITS), "group")
        parts = ("label", "rank", "entry", *LIMITS, "sorted")
        first, last = self.row + 1, self._below(heads, name, parts)
        self._add(_SPLIT, place, f"title.{name}", _TITLE)
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
        self._add(self.row, 3, f"{name}.two_largest", _NUMBER)
        self._add(self.row, 4, f"{name}.time", _SMALL)
        self.row += 2

    def _below(self, heads: Sequence[str], phase: str, parts: Sequence[str]) -> int:
        """Parts of a pass one below the other under their heads; the last row."""
        self._heads(self.row, heads)
        number = 1
        while f"summary.{phase}.{parts[1]}.{number}" in self.rows:
            self.row += 1
            for column, part in enumerate(parts, _FIRST):
                name = f"{phase}.{part}.{number}"
                if f"summary.{name}" in self.rows:
                    self._add(self.row, column, name, _LOOKS.get(part, _NUMBER))
            number += 1
        self.row += 1
        return self.row - 1

    def _roofline(self) -> None:
        """Roofs, and below them modules of both phases."""
        graph, values = self.book.estimate.equations, self.book.estimate_values[0]
        heads = ("roofline", "FLOP per byte", "peak, TFLOP/s", "FLOP per byte", "reached, TFLOP/s")
        roofs, row = self.row, self.row + 5
        self._heads(roofs, heads)
        for column, roof, end in ((2, "datasheet", ""), (4, "reached", ".reached")):
            places = (f"roof.left{end}", f"roof.{roof}.ridge", f"roof.right{end}")
            for number, place in enumerate(places):
                self._add(roofs + 1 + number, column, place, _NUMBER)
                self._add(roofs + 1 + number, column + 1, f"roof.{roof}.rate.{number}", _NUMBER)
        points: list[tuple[str | None, charts.Range, charts.Range, str, str, str]] = []

        def cells(first: int, last: int, column: int) -> tuple[charts.Range, charts.Range]:
            """Those of a number and of the one beside it."""
            return ("Summary", first, column, last, column), ("Summary", first, column + 1, last, column + 1)

        for phase in (graph.prefill, graph.decode):
            name, look = phase.phase.id, (style.COMPUTE, "circle", "above")
            for block, label in placed_blocks(self.rows, phase, values):
                if name == "decode":
                    side = "below" if block.group == "attention" else "right"
                    look = (style.MEMORY, "diamond", side)
                self.sheet.set_text(row, _FIRST, f"{name}: {block.label}", _SMALL)
                self._add(row, 2, f"{name}.{block.id}.intensity", _NUMBER)
                self._add(row, 3, f"{name}.{block.id}.rate", _NUMBER)
                points.append((label or None, *cells(row, row, 2), *look))
                row += 1
        self._add(_OUTLOOK, 1, "title.roofline", _TITLE)
        chart = charts.roofline(
            "Roofline of one accelerator: reached TFLOP/s against arithmetic intensity; circles prefill, "
            "diamonds decode; the dashed line is what matrix products reach",
            [
                (*cells(roofs + 1, roofs + 3, 2), style.INK, False),
                (*cells(roofs + 1, roofs + 3, 4), style.REACHED_ROOF, True),
            ],
            points,
            _SIZE,
            (0.125, 0.03, 0.84, 0.74),
        )
        self.sheet.charts.append((_OUTLOOK + 1, 1, chart))

    def _outlook(self, sensitivity_part: SensitivityPart, sweep_part: SweepPart) -> None:
        """Throughput against speed for a user, and what moves the cost, or TPOT where there is no price."""
        self._add(_OUTLOOK, 4, "title.curve", _TITLE)
        chart = sweep_part.interactivity(_SIZE, (0.125, 0.03, 0.84, 0.74))
        self.sheet.charts.append((_OUTLOOK + 1, 4, chart))
        price = self.rows["cost.usd_per_million_output"]
        priced = not isinstance(self.book.estimate_values[0][price], str)
        label = self.book.currency.named("USD per million output tokens")
        key, label = ("usd", label) if priced else ("tpot", "TPOT")
        title = seen_from_elsewhere(sensitivity_part.figures.rankings[key].title)
        self.sheet.set_formula(_OUTLOOK, 7, title, _TITLE, scenario=ACROSS)
        self.sheet.charts.append((_OUTLOOK + 1, 7, sensitivity_part.tornado(key, label, _SIZE)))
