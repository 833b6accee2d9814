"""The sheet Summary: errors of every metric, where they are large, and what was compared."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    absolute,
    all_of,
    at_least,
    below,
    count_where,
    equal,
    index,
    join,
    match,
    maximum,
    percent,
    span,
    text,
    where,
)
from mantile.library.version import __version__
from mantile.measured.metrics import COMPARED, ERROR_FIGURES, ComparedMetric, labelled
from mantile.measured.reconcile import reference
from mantile.measured.report import charts
from mantile.measured.report.charts import ChartData
from mantile.measured.report.contents import COUNT, PERCENT, Report, add_heads, edge_above
from mantile.measured.report.errors import add_errors, error_formulas, heads
from mantile.measured.report.groups import Group, GroupCells
from mantile.measured.report.runs import TOP, RunCells, add_value
from mantile.workbook import style
from mantile.workbook.book import Sheet
from mantile.workbook.charts import Range
from mantile.workbook.style import Style

FIGURES = tuple(ERROR_FIGURES)
HEADLINE: tuple[str, ...] = ("tpot", "ttft", "throughput")  # metrics in the title
COLUMN = 152  # pixels; a chart spans three columns
CHART_ROWS = 15
_MOST_BARS, _FEWEST = 8, 5  # bars of a chart, and runs of a group that is shown as one
_WITHIN, _NEAR = 0.2, 0.1  # errors: a share that is counted, and those in colour
_BIN, _TAIL = 0.05, 0.4  # of errors: width of a bin, and where the last ones begin
_NOTE = Style(size=9.5, colour=style.GREY)
FINDING = Style(size=10.5, bold=True)
_KINDS = {
    "parallelism": "plan",
    "framework": "framework",
    "lengths": "input and output",
    "model": "model",
}  # what groups of the bar charts have in common, inside a sentence

_METHOD = (
    "What is compared: the mean TPOT, TTFT, throughput … that a run reports, with what Mantile predicts "
    "for the same model, accelerators, plan, data types, lengths and load. No run is tuned by hand.",
    "Load: a closed loop. A fixed number of requests is kept in flight (concurrency); a new one starts "
    "when one ends. TTFT holds the wait for other prompts. Times are means over requests.",
    "Error = predicted ÷ measured − 1. MAPE: mean of |error|. Symmetric: exp(mean |ln(predicted ÷ "
    "measured)|) − 1, which does not reward guessing low. Bias: mean error.",
    "Throughput is output tokens per second and accelerator. Where a run does not report it, it is derived "
    "from its mean TTFT and TPOT and the same closed loop, and called derived.",
    "Not compared: runs that are said not to fit, and runs at which more requests arrive than can be served; "
    "see Not answered. A median of TPOT stands beside the mean where no spread of lengths is stated.",
    "Aggregated and disaggregated runs are never mixed: tables of disaggregated ones mostly leave out the "
    "plan of prefill workers, see Assumptions.",
    "Efficiency factors may have been fitted to some of these runs; how runs not seen are predicted is "
    "what mantile calibrate --cross-validate says.",
    "* stored as generated: medians, 90th percentiles and root mean squares. All other errors are live "
    "formulas over the sheet Runs.",
)


def summary_sheet(
    report: Report, cells: RunCells, groups: list[tuple[Group, GroupCells]]
) -> tuple[Named, dict[str, dict[str, Named]]]:
    """Fill the sheet Summary; the cell that names the mode of the headline, and its errors by metric."""
    sheet = report.book.sheets["Summary"]
    sheet.one_page = True
    sheet.widths = [12, *[COLUMN] * 9]
    sheet.heights |= {0: 36, 1: 22}
    sheet.set_text(1, 1, _subtitle(report), style.PURPOSE)
    add_section(sheet, 3, "How far predictions are from measurements", "error = predicted ÷ measured − 1")
    add_heads(sheet, 4, ["metric", "mode", *heads(FIGURES)], range(3, 10), first=1)
    row, modes, errors = _errors(report, sheet, cells)
    sheet.set_formula(0, 1, _finding(report, errors), style.SUMMARY_TITLE)
    top = row + 1
    end = top + 1 + 2 * CHART_ROWS
    add_section(sheet, top, "Where they are off", f"{report.metric.label}, {report.mode} runs")
    data = ChartData(report.book, sheet, end + len(_METHOD) + 7)
    drawing = Drawing(
        report, report.metric, sheet, cells, data, modes[report.mode], errors[report.metric.name]
    )
    drawing.scatter(top + 1, 1)
    drawing.histogram(top + 1, 4)
    places = [(top + 1, 7), *((top + 1 + CHART_ROWS, column) for column in (1, 4, 7))]
    for (at, column), kind in zip(places, _KINDS, strict=True):
        drawing.bars(at, column, kind, groups)
    add_section(sheet, end, "What was measured and what is compared", "")
    for line, sentence in enumerate(_METHOD, end + 1):
        sheet.set_text(line, 1, sentence, _NOTE)
    sheet.print_area = (0, 1, end + len(_METHOD), 9)
    return modes[report.mode], errors


def _subtitle(report: Report) -> str:
    reconciliation = report.reconciliation
    source = Path(reconciliation.source).name or "measured runs"
    conditions = f" · where {' '.join(reconciliation.where)}" if reconciliation.where else ""
    counts = " and ".join(f"{len(part):,} {mode}" for mode, part in report.modes.items())
    excluded = len(reconciliation.table) - reconciliation.answered
    apart = f", {excluded:,} not compared" if excluded else ""
    predicted = f"{len(reconciliation.table):,} of {reconciliation.rows:,} records predicted{apart}: {counts}"
    return f"{source}{conditions} · {predicted} · Mantile {__version__}"


def add_section(sheet: Sheet, row: int, title: str, note: str) -> None:
    """A heading across the page, with a note on the right."""
    sheet.heights[row] = 22
    sheet.set_text(row, 1, title, style.SECTION_HEAD)
    sheet.set_style(row, 2, 8, style.SECTION_HEAD)
    look = style.SECTION_HEAD.but(size=9.5, bold=False, colour=style.GREY, align="right")
    sheet.set_text(row, 9, note, look)


def _errors(
    report: Report, sheet: Sheet, cells: RunCells
) -> tuple[int, dict[str, Named], dict[str, dict[str, Named]]]:
    """The table of errors.

    Returns:
        The row below, the cell that names each mode, and the errors of the headline mode by metric and
        figure.
    """
    row = 5
    names: dict[str, Named] = {}
    headline: dict[str, dict[str, Named]] = {}
    for mode, metrics in report.errors.items():
        for name, stored in metrics.items():
            edge = row > 5 and name == next(iter(metrics))
            label = style.LABEL.but(bold=mode == report.mode)
            sheet.set_text(row, 1, labelled(name, stored).label, edge_above(label, edge))
            at = add_value(
                report.book, sheet, row, 2, f"summary.{row}.mode", mode, edge_above(style.UNIT, edge)
            )
            formulas = error_formulas(cells, COMPARED[name], (cells.spans["mode"], at), f"summary.{row}")
            shown = add_errors(report, sheet, (row, 3), formulas, stored, FIGURES, edge)
            if mode == report.mode:
                headline[name] = shown
            if name == report.metric.name or mode not in names:
                names[mode] = at
            row += 1
    return row, names, headline


def _finding(report: Report, errors: dict[str, dict[str, Named]]) -> Node:
    """The title: how far off the headline metrics are."""
    shown = [name for name in HEADLINE if name in errors] or [report.metric.name]
    parts: list[Node | str] = []
    for name in shown:
        metric = labelled(name, report.errors[report.mode][name])
        parts.append(f", {metric.label_inside} by " if parts else f"{metric.label} is off by ")
        parts.append(percent(errors[name]["mape"], 1))
    return join(*parts, " on average")


class Drawing:
    """The charts, each with its finding above it.

    Args:
        mode: the cell that names the mode of the headline.
        errors: of the metric in that mode.
        prefix: of names of cells, where a sheet has drawings of several metrics.
    """

    def __init__(
        self,
        report: Report,
        metric: ComparedMetric,
        sheet: Sheet,
        cells: RunCells,
        data: ChartData,
        mode: Named,
        errors: dict[str, Named],
        prefix: str = "",
    ) -> None:
        self.report, self.sheet, self.cells, self.data = report, sheet, cells, data
        self.of_mode = (cells.spans["mode"], mode)
        self.errors = errors
        self.metric, self.prefix = metric, prefix
        self.unit = style.shown_unit(self.metric.unit)

    def constant(self, name: str, value: float | str) -> Input:
        """A cell that a chart is drawn from."""
        return _constant(f"{self.prefix}{name}", value)

    def quantity(self, name: str, body: Node) -> Quantity:
        """The same with a formula."""
        return _quantity(f"{self.prefix}{name}", body)

    def column(self, what: str) -> str:
        """A column of Runs that belongs to the metric."""
        return f"{self.metric.name}_{what}"

    def scatter(self, row: int, column: int) -> None:
        """Predicted against measured of every run."""
        within = self.constant("share within", _WITHIN)
        self.data.add_block(["share within"], [[within]], [PERCENT])
        absolute_errors = self.cells.spans[self.column("|error|")]
        share = count_where(absolute_errors, below(within), *self.of_mode) / self.errors["n"]
        finding = join(percent(share, 0), " of runs within ", percent(within, 0), " of measured")
        self.sheet.set_formula(row, column, finding, FINDING)
        low, high = self._decades()
        ends = [self.constant(f"end.{name}", value) for name, value in (("low", low), ("high", high))]
        rows: list[list[Named]] = [
            [
                end,
                _quantity(f"{end.id}.exact", end),
                _quantity(f"{end.id}.above", end * (1 + within)),
                _quantity(f"{end.id}.below", end * (1 - within)),
            ]
            for end in ends
        ]
        titles = [f"diagonal, {self.unit}", "exact", "above", "below"]
        first = self.data.add_block(titles, rows, [style.number_format("us")] * 4)
        lines = [
            (self.data.range(first, 2, 1), self.data.range(first, 2, place), place > 2) for place in (2, 3, 4)
        ]
        chart = charts.scatter(self.metric.label_inside, self.unit, self._runs(), lines, (low, high))
        self.sheet.charts.append((row + 1, column, chart))

    def _runs(self) -> list[tuple[str, Range, Range, str]]:
        """Mode, measured, predicted and colour of the runs on the sheet Runs."""
        series: list[tuple[str, Range, Range, str]] = []
        start = TOP
        for (mode, part), colour in zip(
            self.report.modes.items(), (style.COMPUTE, style.MEMORY), strict=False
        ):
            end = start + len(part) - 1
            x, y = (self.cells.columns[self.column(what)] for what in ("measured", "predicted"))
            series.append((mode, ("Runs", start, x, end, x), ("Runs", start, y, end, y), colour))
            start = end + 1
        return series

    def _decades(self) -> tuple[float, float]:
        """The powers of ten between which all runs lie."""
        table = self.report.table[self.report.table[f"{self.metric.name}_ratio"].notna()]
        ends = [reference(table, self.metric.name), table[self.column("predicted")]]
        low = min(float(figures.min()) for figures in ends) * self.metric.scale
        high = max(float(figures.max()) for figures in ends) * self.metric.scale * 1.0001
        return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))

    def histogram(self, row: int, column: int) -> None:
        """How many runs by error."""
        bias, median = self.errors["bias"], self.errors["median"]
        signed = join(where(bias >= 0, "+", "−"), percent(absolute(bias), 1))
        finding = join("Half of the runs within ", percent(median, 1), ", bias ", signed)
        self.sheet.set_formula(row, column, finding, FINDING)
        limit = self.constant("near: up to", _NEAR)
        self.data.add_block(["near: up to"], [[limit]], [PERCENT])
        steps = round(2 * _TAIL / _BIN)
        edges = [-1.0, *(round(-_TAIL + _BIN * step, 2) for step in range(steps + 1)), 1e6]
        rows = [self._bin(place, low, high, limit) for place, (low, high) in enumerate(pairwise(edges))]
        titles = ["bin, %", "from", "to", "runs", "near", "far"]
        first = self.data.add_block(titles, rows, ["", PERCENT, PERCENT, COUNT, COUNT, COUNT])
        labels, near, far = (self.data.range(first, len(rows), place) for place in (1, 5, 6))
        chart = charts.histogram(self.metric.label_inside, labels, near, far)
        self.sheet.charts.append((row + 1, column, chart))

    def _bin(self, place: int, low: float, high: float, limit: Input) -> list[Named]:
        """A bin of errors: its label and ends, its runs, and how many of them are near and far."""
        label = f"{low * 100:.0f}".replace("-", "−") if place else "…"
        name = f"bin.{place}"
        start, end = self.constant(f"{name}.from", low), self.constant(f"{name}.to", high)
        errors = self.cells.spans[self.column("error")]
        runs = self.quantity(
            f"{name}.runs", count_where(*self.of_mode, errors, at_least(start), errors, below(end))
        )
        near = self.quantity(f"{name}.near", where(all_of(start >= -limit, end <= limit), runs, 0))
        return [
            self.constant(f"{name}.label", label),
            start,
            end,
            runs,
            near,
            self.quantity(f"{name}.far", runs - near),
        ]

    def bars(self, row: int, column: int, kind: str, groups: list[tuple[Group, GroupCells]]) -> None:
        """MAPE of the largest groups of a kind."""
        shown = self._largest(kind, groups)
        names = [_quantity(f"bars.{kind}.{place}.name", of.key) for place, (_, of) in enumerate(shown)]
        mapes = [
            _quantity(f"bars.{kind}.{place}.mape", of.errors[self.metric.name]["mape"])
            for place, (_, of) in enumerate(shown)
        ]
        furthest = maximum(span(mapes))
        rows: list[list[Named]] = []
        for name, mape, (_, of) in zip(names, mapes, shown, strict=True):
            runs = text(of.errors[self.metric.name]["n"])
            label = _quantity(f"{name.id}.label", join(name, "   ", runs))
            most = _quantity(f"{mape.id}.furthest", where(equal(mape, furthest), mape, 0))
            rows.append([label, mape, most, _quantity(f"{mape.id}.others", mape - most), name])
        titles = [f"{kind}, runs", "MAPE", "furthest", "others", "name"]
        first = self.data.add_block(titles, rows, ["", PERCENT, PERCENT, PERCENT, ""])
        several = len(shown) > 1
        farthest = index(span(names), match(furthest, span(mapes)))
        finding = (
            join(f"By {_KINDS[kind]}: ", farthest, " is furthest off")
            if several
            else join(f"By {_KINDS[kind]}: all ", names[0])
        )
        self.sheet.set_formula(row, column, finding, FINDING)
        labels, most_off, others = (self.data.range(first, len(shown), place) for place in (1, 3, 4))
        chart = charts.bars(
            self.metric.label_inside,
            _KINDS[kind],
            labels,
            most_off,
            others,
            end=_axis_end(1.15 * max(group.errors[self.metric.name]["mape"] for group, _ in shown)),
            longest=max(len(str(group.key)) for group, _ in shown) + 7,
            several=several,
        )
        self.sheet.charts.append((row + 1, column, chart))

    def _largest(self, kind: str, groups: list[tuple[Group, GroupCells]]) -> list[tuple[Group, GroupCells]]:
        """The groups of a kind with most runs, in the mode of the headline; small ones only where there is no
        other choice."""
        name = self.metric.name
        of_kind = [
            (group, of)
            for group, of in groups
            if group.kind == kind and group.mode == self.report.mode and name in group.errors
        ]
        of_kind.sort(key=lambda pair: -pair[0].errors[name]["n"])
        large = [pair for pair in of_kind if pair[0].errors[name]["n"] >= _FEWEST]
        return (large if len(large) > 1 else of_kind)[:_MOST_BARS]


def _constant(name: str, value: float | str) -> Input:
    return Input(f"chart.{name}", name, "1", value)


def _quantity(name: str, body: Node) -> Quantity:
    return Quantity(name if name.startswith("chart.") else f"chart.{name}", name, "1", body)


def _axis_end(value: float) -> float:
    """The next round number, as the end of an axis."""
    step = 10 ** math.floor(math.log10(max(value, 1e-6)))
    return next(
        float(f"{step * times:.6g}") for times in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * times >= value
    )
