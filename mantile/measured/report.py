"""A reconciliation as files: every run as a table, .csv, or a report workbook, .xlsx, whose errors are live formulas over its runs."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.library.dump import replacing
from mantile.library.errors import InputError
from mantile.library.version import __version__
from mantile.measured.reconcile import Reconciliation
from mantile.measured.report_sheets import COUNT, FIGURES, HEADS, NAMES, PERCENT, SCALES, TOP, UNITS, Sheets
from mantile.workbook import style
from mantile.workbook.style import Style

_CREATED = datetime.datetime(
    2026, 1, 1, tzinfo=datetime.timezone.utc
)  # fixed, so that the same runs give the same bytes
_UNIT, _CHART = 152, (442, 262)  # pixels of a column of Summary, and of a chart, which spans three
_MOST_BARS, _FEWEST = 8, 5  # bars of a chart, and runs of a group that is shown as one
_WITHIN, _STEP, _TAIL, _NEAR = (
    0.2,
    0.05,
    0.4,
    0.1,
)  # of errors: a share that is counted, bins, where they end, and which are near
_NOTE = Style(size=9.5, colour=style.GREY)
_FINDING = Style(size=10.5, bold=True)
_AXIS_FONT = {"name": "Calibri", "size": 8, "color": style.GREY}
_CATEGORY_FONT = {"name": "Calibri", "size": 9, "color": style.INK}

_METHOD = (
    "What is compared: the mean TPOT, TTFT, throughput … that a run reports, with what Mantile predicts for the same model, accelerators, plan, data types, "
    "lengths and load. No run is tuned by hand.",
    "Load: a closed loop. A fixed number of requests is kept in flight (concurrency); a new one starts when one ends. TTFT holds waiting behind other "
    "prompts. Times are means over requests.",
    "Error = predicted ÷ measured − 1. MAPE: mean of |error|. Symmetric: exp(mean |ln(predicted ÷ measured)|) − 1, which does not reward guessing low. "
    "Bias: mean error.",
    "Throughput is that of output tokens per accelerator; where a run does not report it, it follows from its mean TTFT and TPOT and the same closed loop.",
    "Aggregated and disaggregated runs are never mixed: tables of disaggregated ones mostly leave out the plan of prefill workers, see Assumptions.",
    "Efficiency factors may have been fitted to some of these runs; how runs not seen are predicted is what mantile calibrate --cross-validate says.",
    "* stored as generated: medians, 90th percentiles and root mean squares. All other errors are live formulas over the sheet Runs.",
)


def write_table(found: Reconciliation, path: Path) -> Path:
    """Write every run answered as a row of a .csv: what was asked, and each metric measured, predicted and as their ratio.

    Times are seconds, throughput tokens per second and accelerator; assumptions are joined by semicolons.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    table = found.table.assign(assumptions=found.table["assumptions"].map("; ".join))
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False)
    return path


def write_report(found: Reconciliation, path: Path) -> Path:
    """Write the report of a reconciliation as a workbook: the same bytes for the same runs and name of the source.

    Raises:
        InputError: if there is no run to report, or the file cannot be written; nothing half-written stays behind.
    """
    if not found.metrics():
        raise InputError(f"{path}: no run has a metric that is compared")
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("error")  # XlsxWriter only warns where it leaves something out
        _Report(found).write(temporary)
    return path


class _Report(Sheets):
    """The whole report; here Summary with its charts."""

    def write(self, path: Path) -> None:
        self.book = xlsxwriter.Workbook(
            str(path), {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        )
        self.book.set_properties(
            {
                "title": f"Reconciliation of {self.found.source}",
                "author": "Mantile",
                "created": _CREATED,
                "comments": f"Mantile {__version__}",
            }
        )
        self.book.set_calc_mode("auto")
        families = {
            "Summary": "front",
            "Groups": "outputs",
            "Best and worst": "outputs",
            "Runs": "workings",
            "Not answered": "control",
            "Assumptions": "control",
        }
        self.sheets = {name: self.book.add_worksheet(name) for name in families}
        for name, sheet in self.sheets.items():
            sheet.hide_gridlines(2)
            sheet.set_tab_color(style.TABS[families[name]])
            sheet.set_default_row(15)
            self._page(name, sheet)
        self._runs()
        self._groups()
        self._extremes()
        self._unanswered()
        self._assumptions()
        self._summary()
        self.sheets["Summary"].activate()
        self.book.close()

    def _summary(self) -> None:
        sheet, found = self.sheets["Summary"], self.found
        sheet.set_column_pixels(0, 0, 12)
        for column in range(1, 10):
            sheet.set_column_pixels(column, column, _UNIT)
        sheet.set_row_pixels(0, 36)
        sheet.set_row_pixels(1, 22)
        where = f" · where {' '.join(found.where)}" if found.where else ""
        counts = " and ".join(f"{len(part):,} {mode}" for mode, part in self.modes.items())
        self.put(
            sheet,
            1,
            1,
            f"{Path(found.source).name or 'measured runs'}{where} · {len(self.table):,} of {found.rows:,} records answered: {counts} · "
            f"Mantile {__version__}",
            style.PURPOSE,
        )
        self._head(sheet, 3, "How far predictions are from measurements", "error = predicted ÷ measured − 1")
        self._header(
            sheet, 4, ["metric", "mode", "runs", *(HEADS[figure] for figure in FIGURES)], range(2, 9), first=1
        )
        row = 5
        self.summary_rows: dict[tuple[str, str], int] = {}
        for mode, metrics in self.head_metrics.items():
            edge = (style.THIN, style.HAIRLINE) if row > 5 else None
            for name, figures in metrics.items():
                self.put(
                    sheet, row, 1, f"{NAMES[name]}", style.LABEL.but(top=edge, bold=mode == self.head_mode)
                )
                self.put(sheet, row, 2, mode, style.UNIT.but(top=edge))
                self._figures(
                    sheet, row, 3, name, figures, [(self._range("mode"), f"$C{row + 1}")], FIGURES, True, edge
                )
                self.summary_rows[mode, name] = row
                row, edge = row + 1, None
        self._title(sheet)
        data = _Data(row + 2 * 16 + 8 + len(_METHOD))
        self._head(sheet, row + 1, "Where they are off", f"{NAMES[self.metric]}, {self.head_mode} runs")
        first, second = row + 2, row + 2 + 15
        self._scatter(sheet, first, 1, data)
        self._histogram(sheet, first, 4, data)
        for place, (kind, words) in enumerate(
            (
                ("parallelism", "plan"),
                ("framework", "framework"),
                ("lengths", "input and output"),
                ("model", "model"),
            )
        ):
            self._bars(
                sheet, *((first, 7) if not place else (second, 1 + 3 * (place - 1))), kind, words, data
            )
        end = second + 15
        self._head(sheet, end, "What was measured and what is compared", "")
        for line, words in enumerate(_METHOD, end + 1):
            self.put(sheet, line, 1, words, _NOTE)
        sheet.print_area(0, 1, end + len(_METHOD), 9)
        assert data.top > end + len(_METHOD)

    def _title(self, sheet: Any) -> None:
        """The finding in one line, live."""
        mode = self.head_mode
        shown = [name for name in ("tpot", "ttft", "throughput") if (mode, name) in self.summary_rows] or [
            self.metric
        ]
        parts = [
            f'"{NAMES[name] if not place else _inside(name)} is off by "&TEXT({self._figure(name, "mape")},"0.0%")'
            if not place
            else f'"{_inside(name)} by "&TEXT({self._figure(name, "mape")},"0.0%")'
            for place, name in enumerate(shown)
        ]
        told = [
            f"{NAMES[name] if not place else _inside(name)} {'is off ' if not place else ''}by {self.head_metrics[mode][name]['mape']:.1%}"
            for place, name in enumerate(shown)
        ]
        self.put(
            sheet,
            0,
            1,
            "=" + '&", "&'.join(parts) + '&" on average"',
            style.SUMMARY_TITLE,
            ", ".join(told) + " on average",
        )

    def _figure(self, metric: str, figure: str) -> str:
        """The cell of Summary that holds an error of the headline runs."""
        return str(
            xl_rowcol_to_cell(
                self.summary_rows[self.head_mode, metric], 3 + ("n", *FIGURES).index(figure), True, True
            )
        )

    def _head(self, sheet: Any, row: int, words: str, right: str) -> None:
        sheet.set_row_pixels(row, 22)
        for column in range(1, 10):
            self.put(
                sheet,
                row,
                column,
                words if column == 1 else right if column == 9 else "",
                style.SECTION_HEAD
                if column < 9
                else style.SECTION_HEAD.but(size=9.5, bold=False, colour=style.GREY, align="right"),
            )

    def _chart(
        self,
        sheet: Any,
        row: int,
        column: int,
        kind: dict[str, str],
        series: Sequence[dict[str, Any]],
        x: dict[str, Any],
        y: dict[str, Any],
        plot: tuple[float, float, float, float],
        alt: str,
    ) -> None:
        chart = self.book.add_chart(kind)
        for one in series:
            chart.add_series(one)
        chart.set_title({"none": True})
        chart.set_x_axis(x)
        chart.set_y_axis(y)
        chart.set_legend({"none": True})
        chart.set_size({"width": _CHART[0], "height": _CHART[1]})
        left, top, width, height = plot
        chart.set_plotarea(
            {"layout": {"x": left, "y": top, "width": width, "height": height}, "fill": {"none": True}}
        )
        chart.set_chartarea({"border": {"none": True}, "fill": {"none": True}})
        sheet.insert_chart(row, column, chart, {"object_position": 1, "description": alt, "y_offset": 2})

    def _scatter(self, sheet: Any, row: int, column: int, data: _Data) -> None:
        name, unit = self.metric, UNITS[self.metric]
        mode = self._range("mode")
        near = data.number(self, sheet, "share within", _WITHIN, PERCENT)
        part = self.modes[self.head_mode]
        ratios = part[f"{name}_ratio"]
        share = float(((ratios - 1).abs() <= _WITHIN).sum() / max(1, ratios.notna().sum()))
        criteria = f'{mode},$C${self.summary_rows[self.head_mode, name] + 1},{self._range(metric=name, what="|error|")},"<="&{near}'
        self.put(
            sheet,
            row,
            column,
            f'=TEXT(COUNTIFS({criteria})/{self._figure(name, "n")},"0%")&" of runs within "&TEXT({near},"0%")&" of measured"',
            _FINDING,
            f"{share:.0%} of runs within {_WITHIN:.0%} of measured",
        )
        known = self.table[self.table[f"{name}_ratio"].notna()]
        values = [
            value * SCALES[name] for what in ("measured", "predicted") for value in known[f"{name}_{what}"]
        ]
        low, high = (
            10.0**bound
            for bound in (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.0001)))
        )
        ends = data.block(
            self,
            sheet,
            [f"diagonal, {unit}", "exact", "+20 %", "−20 %"],
            [
                [low, low, low * (1 + _WITHIN), low * (1 - _WITHIN)],
                [high, high, high * (1 + _WITHIN), high * (1 - _WITHIN)],
            ],
            style.number_format("us"),
        )
        row_of, at = ends
        series: list[dict[str, Any]] = []
        for place in (1, 2, 3):  # exact, and what counts as near
            line: dict[str, Any] = (
                {"color": style.INK, "width": 1}
                if place == 1
                else {"color": style.SECOND, "width": 1, "dash_type": "dash"}
            )
            series.append(
                {
                    "categories": ["Summary", row_of, at, row_of + 1, at],
                    "values": ["Summary", row_of, at + place, row_of + 1, at + place],
                    "marker": {"type": "none"},
                    "line": line,
                }
            )
        x, y = (self.places["", name, what] for what in ("measured", "predicted"))
        start = TOP
        for mode_name, colour in zip(self.modes, (style.COMPUTE, style.MEMORY), strict=False):
            end = start + len(self.modes[mode_name]) - 1
            marker = {
                "type": "circle",
                "size": 3,
                "fill": {"color": colour, "transparency": 45},
                "border": {"none": True},
            }
            points = {"categories": ["Runs", start, x, end, x], "values": ["Runs", start, y, end, y]}
            series.insert(
                0 if colour == style.MEMORY else len(series),
                {"name": mode_name, **points, "line": {"none": True}, "marker": marker},
            )
            start = end + 1
        axis = _axis("#,##0.###" if low < 1 else "#,##0") | {
            "log_base": 10,
            "min": low,
            "max": high,
            "crossing": low,
            "line": {"color": style.GRID},
        }
        apart = f"; orange: {list(self.modes)[1]}" if len(self.modes) > 1 else ""
        self._chart(
            sheet,
            row + 1,
            column,
            {"type": "scatter", "subtype": "straight"},
            series,
            axis | _named(f"measured {_inside(name)}, {unit}; dashed: ±20 %{apart}"),
            axis | _named(f"predicted, {unit}"),
            (0.125, 0.03, 0.85, 0.76),
            f"Predicted against measured {_inside(name)} of every run, both axes logarithmic",
        )

    def _histogram(self, sheet: Any, row: int, column: int, data: _Data) -> None:
        name = self.metric
        figures = self.head_metrics[self.head_mode][name]
        self.put(
            sheet,
            row,
            column,
            f'="Half of the runs within "&TEXT({self._figure(name, "median")},"0.0%")&", bias "&TEXT({self._figure(name, "bias")},'
            '"+0.0%;−0.0%")',
            _FINDING,
            f"Half of the runs within {figures['median']:.1%}, bias {figures['bias']:+.1%}".replace("-", "−"),
        )
        limit = data.number(self, sheet, "near: up to", _NEAR, PERCENT)
        edges = [
            -1.0,
            *(round(-_TAIL + _STEP * step, 2) for step in range(round(2 * _TAIL / _STEP) + 1)),
            1e6,
        ]
        part = self.modes[self.head_mode].dropna(subset=[f"{name}_ratio"])
        off = (part[f"{name}_predicted"] * SCALES[name]) / (
            part[f"{name}_measured"] * SCALES[name]
        ) - 1  # to the last digit as in Runs
        rows: list[list[Any]] = []
        top = data.next_row
        criterion = f"{self._range('mode')},$C${self.summary_rows[self.head_mode, name] + 1}"
        column_of_errors = self._range(metric=name, what="error")
        for place, (low, high) in enumerate(pairwise(edges)):
            at = top + 1 + place + 1  # 1-based row of this bin, below the heads
            count = int(((off >= low) & (off < high)).sum())
            inside = low >= -_NEAR and high <= _NEAR
            label = "…" if not place else f"{low * 100:.0f}".replace("-", "−")
            rows.append(
                [
                    label,
                    low,
                    high,
                    (
                        f'=COUNTIFS({criterion},{column_of_errors},">="&$C{at},{column_of_errors},"<"&$D{at})',
                        count,
                    ),
                    (f"=IF(AND($C{at}>=-{limit},$D{at}<={limit}),$E{at},0)", count if inside else 0),
                    (f"=$E{at}-$F{at}", 0 if inside else count),
                ]
            )
        first, _ = data.block(
            self,
            sheet,
            ["bin, %", "from", "to", "runs", "near", "far"],
            rows,
            COUNT,
            {1: PERCENT, 2: PERCENT},
        )
        last = first + len(rows) - 1
        series = [
            {
                "categories": ["Summary", first, 1, last, 1],
                "values": ["Summary", first, place, last, place],
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": 12,
            }
            for place, colour in ((5, style.COMPUTE), (6, style.OVERHEAD))
        ]
        self._chart(
            sheet,
            row + 1,
            column,
            {"type": "column", "subtype": "stacked"},
            series,
            {
                "num_font": _AXIS_FONT,
                "line": {"color": style.GRID},
                "major_tick_mark": "none",
                "major_gridlines": {"visible": False},
            }
            | _named(
                f"{_inside(name)} error, %, from … of each bin; first and last: all beyond; blue: within ±10 %"
            ),
            _axis("#,##0") | _named("runs"),
            (0.125, 0.03, 0.85, 0.76),
            f"How many runs by error of {_inside(name)}, in steps of five percent",
        )

    def _bars(self, sheet: Any, row: int, column: int, kind: str, words: str, data: _Data) -> None:
        """MAPE of the largest groups of a kind, the one furthest off in the colour of attention."""
        name = self.metric
        groups = [
            group
            for group in self.groups
            if group.kind == kind and group.mode == self.head_mode and name in group.metrics
        ]
        groups = sorted(groups, key=lambda group: -group.metrics[name]["n"])
        large = [group for group in groups if group.metrics[name]["n"] >= _FEWEST]
        shown = (large if len(large) > 1 else groups)[:_MOST_BARS]
        wide = len(FIGURES)  # of a metric on Groups: runs, and all figures but RMSE
        first_column = 3 + self.metrics.index(name) * wide
        top = data.next_row + 1
        span = f"$C${top + 1}:$C${top + len(shown)}"
        values = [float(group.metrics[name]["mape"]) for group in shown]
        rows = []
        for place, (group, value) in enumerate(zip(shown, values, strict=True)):
            at, source = top + place + 1, self.group_rows[kind, group.key, group.mode]
            count = int(group.metrics[name]["n"])
            rows.append(
                [
                    (
                        f'=$F{at}&"   "&TEXT(Groups!{xl_rowcol_to_cell(source, first_column, True, True)},"#,##0")',
                        f"{group.key}   {count:,}",
                    ),
                    (f"=Groups!{xl_rowcol_to_cell(source, first_column + 1, True, True)}", value),
                    (f"=IF($C{at}=MAX({span}),$C{at},0)", value if value == max(values) else 0.0),
                    (f"=$C{at}-$D{at}", 0.0 if value == max(values) else value),
                    (f'=Groups!$B${source + 1}&""', str(group.key)),
                ]
            )
        first, _ = data.block(
            self, sheet, [f"{kind}, runs", "MAPE", "furthest", "others", "name"], rows, PERCENT, text=(0, 4)
        )
        last = first + len(shown) - 1
        worst = shown[values.index(max(values))]
        if len(shown) > 1:
            index = f"INDEX($F${first + 1}:$F${last + 1},MATCH(MAX({span}),{span},0))"
            self.put(
                sheet,
                row,
                column,
                f'="By {words}: "&{index}&" is furthest off"',
                _FINDING,
                f"By {words}: {worst.key} is furthest off",
            )
        else:
            self.put(
                sheet,
                row,
                column,
                f'="By {words}: all "&$F${first + 1}',
                _FINDING,
                f"By {words}: all {worst.key}",
            )
        marked = (style.MEMORY, style.MEMORY_TEXT) if len(shown) > 1 else (style.COMPUTE, style.INK)
        series = [
            {
                "categories": ["Summary", first, 1, last, 1],
                "values": ["Summary", first, place, last, place],
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": 45,
                "overlap": 100,
                "data_labels": {
                    "value": True,
                    "position": "outside_end",
                    "num_format": "[>0]0.0%;;",
                    "font": {"name": "Calibri", "size": 8.5, "bold": True, "color": text},
                },
            }
            for place, colour, text in ((3, *marked), (4, style.COMPUTE, style.INK))
        ]
        longest = max(len(f"{group.key}") for group in shown) + 7
        left = min(0.52, max(0.22, 0.0145 * longest))
        axis = (
            _axis("0%")
            | {"max": _round_up(1.15 * max(values))}
            | _named(f"MAPE of {_inside(name)}; behind the name: runs")
        )
        self._chart(
            sheet,
            row + 1,
            column,
            {"type": "bar"},
            series,
            axis,
            {
                "reverse": True,
                "num_font": _CATEGORY_FONT,
                "line": {"none": True},
                "major_tick_mark": "none",
                "crossing": "max",
                "major_gridlines": {"visible": False},
            },
            (left, 0.03, 0.96 - left, 0.76),
            f"Mean absolute error of {_inside(name)} by {words}",
        )


class _Data:
    """The block of chart data below the printed page of Summary."""

    def __init__(self, top: int) -> None:
        self.top, self.next_row = top, top + 1

    def block(
        self,
        report: _Report,
        sheet: Any,
        heads: Sequence[str],
        rows: Sequence[Sequence[Any]],
        form: str,
        forms: Mapping[int, str] | None = None,
        text: Sequence[int] = (),
    ) -> tuple[int, int]:
        """Write heads and rows; a pair is a formula and its value. Returns first row and column of the figures."""
        if self.next_row == self.top + 1:
            report.put(sheet, self.top, 1, "Chart data (live, not printed)", style.BLOCK_NOTE)
        for column, head in enumerate(heads, 1):
            report.put(sheet, self.next_row, column, head, style.UNIT)
        first = self.next_row + 1
        for row, values in enumerate(rows, first):
            for column, value in enumerate(values, 1):
                formula, cached = value if isinstance(value, tuple) else (value, None)
                look = style.VALUE.but(size=9, form=(forms or {}).get(column - 1, form))
                words = column - 1 in text or (isinstance(formula, str) and cached is None)
                report.put(sheet, row, column, formula, style.UNIT if words else look, cached)
        self.next_row = first + len(rows) + 1
        return first, 1

    def number(self, report: _Report, sheet: Any, head: str, value: float, form: str) -> str:
        """One figure with its name; returns its cell."""
        row, _ = self.block(report, sheet, [head], [[value]], form)
        return str(xl_rowcol_to_cell(row, 1, True, True))


def _axis(form: str) -> dict[str, Any]:
    return {
        "num_font": _AXIS_FONT,
        "num_format": form,
        "major_gridlines": {"visible": True, "line": {"color": style.GRID, "width": 0.5}},
        "line": {"none": True},
        "min": 0,
        "major_tick_mark": "none",
    }


def _named(words: str) -> dict[str, Any]:
    return {"name": words, "name_font": {"name": "Calibri", "size": 8, "color": style.GREY, "bold": False}}


def _inside(metric: str) -> str:
    """A metric's name inside a sentence."""
    name = NAMES[metric]
    return name if name.startswith("T") and metric != "throughput" else name.lower()


def _round_up(value: float) -> float:
    """The end of an axis."""
    step = 10 ** math.floor(math.log10(max(value, 1e-6)))
    return next(
        float(f"{step * times:.6g}") for times in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * times >= value
    )
