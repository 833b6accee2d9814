"""A reconciliation as files: every run as a table, .csv, or a report workbook, .xlsx, whose errors are live formulas over its runs."""

from __future__ import annotations

import datetime
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

import mantile
from mantile.library.dump import replacing
from mantile.library.errors import InputError
from mantile.reconciliation import GROUPS, METRICS, Reconciliation, errors
from mantile.workbook import style
from mantile.workbook.style import Style

_CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)  # fixed, so that the same runs give the same bytes
_NAMES = {"tpot": "TPOT", "ttft": "TTFT", "ttft_p50": "TTFT median", "throughput": "Throughput", "prefill": "Prefill", "e2e": "End to end"}
_UNITS = dict.fromkeys(METRICS, "ms") | {"throughput": "token/s/acc"}
_SCALES = dict.fromkeys(METRICS, 1e3) | {"throughput": 1.0}  # from SI to the unit shown
_FIGURES = ("mape", "median", "p90", "bias", "symmetric", "rmse")
_STORED = ("median", "p90", "rmse")  # figures that the functions we allow cannot work out by group
_HEADS = {"mape": "MAPE", "median": "median *", "p90": "p90 *", "bias": "bias", "symmetric": "symmetric", "rmse": "RMSE *"}
_TOP, _GROUP_TOP = 5, 5  # first row of data of Runs and of Groups
_UNIT, _CHART = 152, (442, 262)  # pixels of a column of Summary, and of a chart, which spans three
_MOST_BARS, _FEWEST = 8, 5  # bars of a chart, and runs of a group that is shown as one
_WITHIN, _STEP, _TAIL, _NEAR = 0.2, 0.05, 0.4, 0.1  # of errors: a share that is counted, bins, where they end, and which are near
_LONGEST = 32_000  # characters of a cell

_AIR = "_)_)"
_PERCENT, _SIGNED = f"0.0%{_AIR}", f'+0.0%{_AIR};"−"0.0%{_AIR};0.0%{_AIR}'
_COUNT = style.number_format("token")
_RATIO = style.number_format("1")
_LINKED = style.VALUE.but(colour=style.LINK)
_TEXT_LINK = style.LABEL.but(colour=style.LINK, shrink=True)
_NOTE = Style(size=9.5, colour=style.GREY)
_FINDING = Style(size=10.5, bold=True)
_STORED_VALUE = style.VALUE.but(colour=style.GREY)

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
)  # fmt: skip


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


@dataclass(frozen=True)
class _Column:
    """A column of Runs. `metric` and `what` where it belongs to a metric."""

    head: str
    width: int
    key: str = ""
    metric: str = ""
    what: str = ""


_ASKED = (
    _Column("id", 136, "id"), _Column("mode", 92, "mode"), _Column("model", 176, "model"), _Column("accelerator", 104, "accelerator"),
    _Column("framework", 80, "framework"), _Column("precision", 78, "precision"), _Column("parallelism", 120, "parallelism"),
    _Column("concurrency", 84, "concurrency"), _Column("input tokens", 84, "input_tokens"), _Column("output tokens", 90, "output_tokens"),
    _Column("lengths", 150, "lengths"), _Column("memory", 92, "feasibility"),
)  # fmt: skip
_TOLD = (_Column("version", 90, "version"), _Column("date", 84, "date"), _Column("source", 260, "source"), _Column("assumptions", 520, "assumptions"))
_READ = (("measured", 84), ("predicted", 84), ("ratio", 66), ("error", 76))
_WORKED = (("|error|", 76), ("|ln ratio|", 76))


@dataclass(frozen=True)
class _Group:
    """A row of Groups: runs of one mode that have one thing in common."""

    kind: str
    key: Any
    mode: str
    metrics: Mapping[str, Mapping[str, float]]
    runs: int


class _Report:
    """One run of XlsxWriter over a reconciliation."""

    def __init__(self, found: Reconciliation) -> None:
        import pandas as pd

        self.found = found
        self.modes = {mode: part.assign(lengths=[_lengths(text) for text in part["lengths"]]) for mode, part in found.modes().items()}
        self.table = pd.concat(list(self.modes.values()), ignore_index=True)
        self.metrics = list(found.metrics())
        self.head_mode = next(iter(self.modes))
        self.head_metrics = {mode: found.metrics(part) for mode, part in self.modes.items()}
        known = self.head_metrics[self.head_mode] or found.metrics()
        self.metric = "tpot" if "tpot" in known else next(iter(known))
        self.columns = [
            *_ASKED, *(_Column(what, width, metric=name, what=what) for name in self.metrics for what, width in _READ),
            *_TOLD, *(_Column(what, width, metric=name, what=what) for name in self.metrics for what, width in _WORKED),
        ]  # fmt: skip
        self.places = {(column.key, column.metric, column.what): place for place, column in enumerate(self.columns)}
        self.last = _TOP + len(self.table)  # of Runs, 1-based
        self.formats: dict[Style, Any] = {}
        self.groups = [group for kind in GROUPS for group in self._groups_of(kind)]
        self.group_rows = {(group.kind, group.key, group.mode): _GROUP_TOP + row for row, group in enumerate(self.groups)}

    def write(self, path: Path) -> None:
        self.book = xlsxwriter.Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False})
        self.book.set_properties({"title": f"Reconciliation of {self.found.source}", "author": "Mantile", "created": _CREATED,
                                  "comments": f"Mantile {mantile.__version__}"})  # fmt: skip
        self.book.set_calc_mode("auto")
        families = {"Summary": "front", "Groups": "outputs", "Best and worst": "outputs", "Runs": "workings", "Not answered": "control",
                    "Assumptions": "control"}  # fmt: skip
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

    # --- what all sheets share ------------------------------------------------------------------------------------------------

    def _format(self, look: Style) -> Any:
        if look not in self.formats:
            self.formats[look] = self.book.add_format(look.properties())
        return self.formats[look]

    def _put(self, sheet: Any, row: int, column: int, value: Any, look: Style, cached: Any = None) -> None:
        """A formula where `cached` is given, else a number, text or nothing. Texts are never read as formulas."""
        made = self._format(look)
        if cached is not None:
            sheet.write_formula(row, column, value, made, "" if isinstance(cached, float) and not math.isfinite(cached) else cached)
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            sheet.write_number(row, column, value, made)
        elif isinstance(value, str) and value:
            sheet.write_string(row, column, value[:_LONGEST], made)
        else:
            sheet.write_blank(row, column, None, made)

    def _page(self, name: str, sheet: Any) -> None:
        sheet.set_landscape()
        sheet.set_paper(8 if name == "Runs" else 9)
        sheet.set_margins(left=0.39, right=0.39, top=0.39, bottom=0.55)
        sheet.center_horizontally()
        sheet.set_footer(f"&L&8&K{style.GREY[1:]}&F · {name}&R&8&K{style.GREY[1:]}Mantile {mantile.__version__} · page &P of &N")
        sheet.fit_to_pages(1, 1 if name == "Summary" else 0)

    def _top(self, sheet: Any, title: str, purpose: str, widths: Sequence[int], rows: int, frozen: int) -> None:
        """Title, purpose and widths; what stands above `rows` stays in sight and is repeated in print."""
        for column, width in enumerate(widths):
            sheet.set_column_pixels(column, column, width)
        sheet.set_row_pixels(0, 34)
        self._put(sheet, 0, 0, title, style.SHEET_TITLE)
        self._put(sheet, 1, 0, purpose, style.PURPOSE)
        sheet.freeze_panes(rows, frozen)
        sheet.repeat_rows(0, rows - 1)

    def _header(self, sheet: Any, row: int, heads: Iterable[str], right: Iterable[int] = (), first: int = 0) -> None:
        numbers = set(right)
        sheet.set_row_pixels(row, 22)
        for column, head in enumerate(heads):
            self._put(sheet, row, first + column, head, style.HEADER_RIGHT if column in numbers else style.HEADER)

    def _range(self, key: str = "", metric: str = "", what: str = "") -> str:
        """A column of Runs as a reference."""
        letter = xl_col_to_name(self.places[key, metric, what])
        return f"Runs!${letter}${_TOP + 1}:${letter}${self.last}"

    # --- Runs -----------------------------------------------------------------------------------------------------------------

    def _runs(self) -> None:
        sheet = self.sheets["Runs"]
        self._top(sheet, "Runs", "Every run that was answered. Blue: as measured. Grey: as predicted when this file was made. Black: formulas; all errors "
                  "of Summary and Groups are worked out from them.", [column.width for column in self.columns], _TOP, 1)  # fmt: skip
        for name in self.metrics:
            words = f"{_NAMES[name]}, {_UNITS[name]}"
            for what, count in (("measured", len(_READ)), ("|error|", len(_WORKED))):
                first = self.places["", name, what]
                for column in range(first, first + count):
                    self._put(sheet, 3, column, words if column == first else "", style.BLOCK_HEAD.but(left=(style.THIN, style.HAIRLINE) if column == first else None))
        numeric = [place for place, column in enumerate(self.columns) if column.metric or column.key in _NUMBERS]
        self._header(sheet, 4, [column.head for column in self.columns], numeric)
        for place, run in enumerate(self.table.to_dict("records")):
            self._run(sheet, _TOP + place, run)
        sheet.autofilter(4, 0, self.last - 1, len(self.columns) - 1)
        sheet.print_area(0, 0, self.last - 1, self.places["version", "", ""] - 1)

    def _run(self, sheet: Any, row: int, run: Mapping[Any, Any]) -> None:
        for column in (*_ASKED, *_TOLD):
            value = "; ".join(run["assumptions"]) if column.key == "assumptions" else run[column.key]
            look = style.VALUE.but(form=_COUNT) if column.key in _NUMBERS else style.ROW_LABEL if column in _ASKED else style.SOURCE.but(shrink=False)
            self._put(sheet, row, self.places[column.key, "", ""], value, look)
        for name in self.metrics:
            at = {what: xl_rowcol_to_cell(row, self.places["", name, what]) for what, _ in (*_READ, *_WORKED)}
            measured, predicted = (_known(run[f"{name}_{what}"], _SCALES[name]) for what in ("measured", "predicted"))
            self._put(sheet, row, self.places["", name, "measured"], measured, _MEASURED)
            self._put(sheet, row, self.places["", name, "predicted"], predicted, _PREDICTED)
            ratio = predicted / measured
            formulas = {
                "ratio": (f"=IF(AND(ISNUMBER({at['measured']}),ISNUMBER({at['predicted']})),{at['predicted']}/{at['measured']},\"\")", ratio, _RATIO),
                "error": (f"=IF(ISNUMBER({at['ratio']}),{at['ratio']}-1,\"\")", ratio - 1, _SIGNED),
                "|error|": (f"=IF(ISNUMBER({at['error']}),ABS({at['error']}),\"\")", abs(ratio - 1), _PERCENT),
                "|ln ratio|": (f"=IF(ISNUMBER({at['ratio']}),ABS(LN({at['ratio']})),\"\")", abs(math.log(ratio)), _RATIO),
            }  # fmt: skip
            for what, (formula, cached, form) in formulas.items():
                self._put(sheet, row, self.places["", name, what], formula, style.VALUE.but(form=form), cached)

    # --- Groups ---------------------------------------------------------------------------------------------------------------

    def _groups_of(self, kind: str) -> list[_Group]:
        """The groups of a kind, those of each mode together, the largest first; concurrencies in order."""
        made: list[_Group] = []
        for mode, part in self.modes.items():
            sizes = part[kind].value_counts()
            keys = sorted(sizes.index, key=(lambda key: key) if kind == "concurrency" else lambda key, sizes=sizes: (-sizes[key], str(key)))
            made += [_Group(kind, key, mode, self.found.metrics(part[part[kind] == key]), int(sizes[key])) for key in keys]
        return made

    def _formulas(self, metric: str, count: str, conditions: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The live errors of a metric over the runs for which conditions hold.

        Args:
            count: cell of the number of runs.
            conditions: columns of Runs and criteria.
        """
        held = ",".join(f"{place},{criterion}" for place, criterion in conditions)
        total = {what: f"SUMIFS({self._range(metric=metric, what=what)},{held})/{count}" for what in ("|error|", "error", "|ln ratio|")}
        return {
            "n": f"=COUNTIFS({held},{self._range(metric=metric, what='|error|')},\">=0\")", "mape": f'=IF({count}>0,{total["|error|"]},"")',
            "bias": f'=IF({count}>0,{total["error"]},"")', "symmetric": f'=IF({count}>0,EXP({total["|ln ratio|"]})-1,"")',
        }  # fmt: skip

    def _groups(self) -> None:
        sheet = self.sheets["Groups"]
        figures = [figure for figure in _FIGURES if figure != "rmse"]
        widths = [104, 190, 96, *[56, *[66] * len(figures)] * len(self.metrics)]
        self._top(sheet, "Groups", "The same errors by what runs have in common, each mode apart. Live formulas over Runs; * stored as generated.", widths,
                  _GROUP_TOP, 3)  # fmt: skip
        wide = 1 + len(figures)
        for place, name in enumerate(self.metrics):
            for column in range(wide):
                look = style.BLOCK_HEAD.but(left=(style.THIN, style.HAIRLINE) if not column else None)
                self._put(sheet, 3, 3 + place * wide + column, _NAMES[name] if not column else "", look)
        heads = ["group", "", "mode", *["runs", *(_HEADS[figure] for figure in figures)] * len(self.metrics)]
        self._header(sheet, 4, heads, range(3, len(heads)))
        for row, group in enumerate(self.groups, _GROUP_TOP):
            new = row == _GROUP_TOP or group.kind != self.groups[row - _GROUP_TOP - 1].kind
            edge = (style.THIN, style.HAIRLINE) if new else None
            self._put(sheet, row, 0, group.kind, style.SECTION.but(top=edge, bold=new, colour=style.NAVY if new else style.MUTE))
            self._put(sheet, row, 1, group.key, (style.VALUE.but(form="0", align="left") if isinstance(group.key, int) else style.ROW_LABEL).but(top=edge))
            self._put(sheet, row, 2, group.mode, style.UNIT.but(top=edge))
            conditions = [(self._range(group.kind), f'"="&$B{row + 1}'), (self._range("mode"), f"$C{row + 1}")]
            for place, name in enumerate(self.metrics):
                self._figures(sheet, row, 3 + place * wide, name, group.metrics.get(name), conditions, figures, _plain(group.key), edge)
        for place in range(len(self.metrics)):
            column = 4 + place * wide
            sheet.conditional_format(_GROUP_TOP, column, _GROUP_TOP + len(self.groups) - 1, column, {
                "type": "data_bar", "data_bar_2010": True, "bar_solid": True, "bar_color": style.SHARE_BAR, "min_type": "num", "max_type": "num",
                "min_value": 0, "max_value": 0.8, "bar_no_border": True})  # fmt: skip

    def _figures(self, sheet: Any, row: int, column: int, metric: str, found: Mapping[str, float] | None, conditions: Sequence[tuple[str, str]],
                 figures: Sequence[str], live: bool, edge: tuple[int, str] | None = None) -> None:  # fmt: skip
        """Number of runs and errors of a metric in a row, live where they can be."""
        found = found or (errors_of_none | {"n": 0})
        formulas = self._formulas(metric, "$" + xl_rowcol_to_cell(row, column), conditions) if live else {}
        for place, figure in enumerate(("n", *figures)):
            form = _COUNT if figure == "n" else _SIGNED if figure == "bias" else _PERCENT
            look = (_STORED_VALUE if figure in _STORED else style.VALUE).but(form=form, top=edge, bold=figure == "mape")
            if figure in formulas:
                self._put(sheet, row, column + place, formulas[figure], look, found[figure])
            else:
                self._put(sheet, row, column + place, found[figure], look)

    # --- Best and worst, Not answered, Assumptions ---------------------------------------------------------------------------

    def _extremes(self) -> None:
        sheet, name = self.sheets["Best and worst"], self.metric
        others = [other for other in self.metrics if other != name]
        keys = ("id", "model", "accelerator", "framework", "precision", "parallelism", "concurrency", "lengths")
        widths = [44, *(column.width for key in keys for column in _ASKED if column.key == key), 96, 96, 84, *[104] * len(others)]
        self._top(sheet, "Best and worst", f"The ten runs of each mode whose {_NAMES[name]} is predicted best and worst as generated; every cell is a link to "
                  "Runs.", widths, 3, 2)  # fmt: skip
        row = 3
        for mode, part in self.modes.items():
            for words, runs in zip(("Best", "Worst"), self.found.extremes(10, name, self.table[self.table["mode"] == mode]), strict=True):
                if not len(runs):
                    continue
                self._put(sheet, row, 0, f"{words} predicted, {mode}: {len(runs)} of {len(part):,} runs", style.SECTION_HEAD)
                heads = ["", *keys, f"measured, {_UNITS[name]}", f"predicted, {_UNITS[name]}", "error", *(f"{_NAMES[other]} error" for other in others)]
                self._header(sheet, row + 1, heads, range(7, len(heads)))
                self._put(sheet, row + 1, 8, heads[8], style.HEADER)
                for rank, (index, run) in enumerate(runs.iterrows()):
                    self._extreme(sheet, row + 2 + rank, rank + 1, int(index), run, keys, (name, *others))
                row += len(runs) + 4

    def _extreme(self, sheet: Any, row: int, rank: int, index: int, run: Any, keys: Sequence[str], metrics: Sequence[str]) -> None:
        self._put(sheet, row, 0, rank, style.VALUE.but(form=_COUNT, colour=style.MUTE))
        for column, key in enumerate(keys, 1):
            look = _LINKED.but(form=_COUNT) if key in _NUMBERS else _TEXT_LINK
            self._put(sheet, row, column, f"=Runs!{xl_rowcol_to_cell(_TOP + index, self.places[key, '', ''])}", look, run[key])
        first, column = metrics[0], 1 + len(keys)
        cells = [(first, "measured"), (first, "predicted"), *((name, "error") for name in metrics)]
        for name, what in cells:
            value = run[f"{name}_ratio"] - 1 if what == "error" else run[f"{name}_{what}"] * _SCALES[name]
            look = _LINKED.but(form=_SIGNED if what == "error" else style.number_format("us"), bold=what == "error" and name == first)
            self._put(sheet, row, column, f"=Runs!{xl_rowcol_to_cell(_TOP + index, self.places['', name, what])}", look, float(value))
            column += 1

    def _unanswered(self) -> None:
        sheet, broken = self.sheets["Not answered"], self.found.broken
        self._top(sheet, "Not answered", "Records that are no measured run, or that no graph of ours answers, and why." if broken else
                  "Every record was answered.", [220, 760, 90, 90], 3, 0)  # fmt: skip
        if not broken:
            return
        self._header(sheet, 3, ["such as", "reason", "records", "share"], (2, 3))
        row = 4
        for reason, count in Counter(item.reason for item in broken).most_common():
            self._put(sheet, row, 0, next(item.id for item in broken if item.reason == reason), style.SOURCE)
            self._put(sheet, row, 1, reason, style.ROW_LABEL)
            self._put(sheet, row, 2, count, style.VALUE.but(form=_COUNT))
            self._put(sheet, row, 3, count / self.found.rows, style.VALUE.but(form=_PERCENT))
            row += 1
        self._header(sheet, row + 1, ["record", "reason", "", ""])
        for item in broken:
            self._put(sheet, row + 2, 0, item.id, style.SOURCE)
            self._put(sheet, row + 2, 1, item.reason, style.ROW_LABEL)
            row += 1

    def _assumptions(self) -> None:
        sheet, taken = self.sheets["Assumptions"], self.found.assumptions()
        self._top(sheet, "Assumptions", "What reading the runs took for granted where their table does not say it. Those of each run stand in Runs." if taken else
                  "Nothing was taken for granted: the records say all that is asked.", [44, 860, 90, 90], 4, 0)  # fmt: skip
        self._header(sheet, 3, ["", "taken for granted", "runs", "share"], (2, 3))
        for row, (words, count) in enumerate(taken.items(), 4):
            self._put(sheet, row, 0, row - 3, style.VALUE.but(form=_COUNT, colour=style.MUTE))
            self._put(sheet, row, 1, words, style.ROW_LABEL)
            self._put(sheet, row, 2, count, style.VALUE.but(form=_COUNT))
            self._put(sheet, row, 3, count / len(self.table), style.VALUE.but(form=_PERCENT))

    # --- Summary --------------------------------------------------------------------------------------------------------------

    def _summary(self) -> None:
        sheet, found = self.sheets["Summary"], self.found
        sheet.set_column_pixels(0, 0, 12)
        for column in range(1, 10):
            sheet.set_column_pixels(column, column, _UNIT)
        sheet.set_row_pixels(0, 36)
        sheet.set_row_pixels(1, 22)
        where = f" · where {' '.join(found.where)}" if found.where else ""
        counts = " and ".join(f"{len(part):,} {mode}" for mode, part in self.modes.items())
        self._put(sheet, 1, 1, f"{Path(found.source).name or 'measured runs'}{where} · {len(self.table):,} of {found.rows:,} records answered: {counts} · "
                  f"Mantile {mantile.__version__}", style.PURPOSE)  # fmt: skip
        self._head(sheet, 3, "How far predictions are from measurements", "error = predicted ÷ measured − 1")
        self._header(sheet, 4, ["metric", "mode", "runs", *(_HEADS[figure] for figure in _FIGURES)], range(2, 9), first=1)
        row = 5
        self.summary_rows: dict[tuple[str, str], int] = {}
        for mode, metrics in self.head_metrics.items():
            edge = (style.THIN, style.HAIRLINE) if row > 5 else None
            for name, figures in metrics.items():
                self._put(sheet, row, 1, f"{_NAMES[name]}", style.LABEL.but(top=edge, bold=mode == self.head_mode))
                self._put(sheet, row, 2, mode, style.UNIT.but(top=edge))
                self._figures(sheet, row, 3, name, figures, [(self._range("mode"), f"$C{row + 1}")], _FIGURES, True, edge)
                self.summary_rows[mode, name] = row
                row, edge = row + 1, None
        self._title(sheet)
        data = _Data(row + 2 * 16 + 8 + len(_METHOD))
        self._head(sheet, row + 1, "Where they are off", f"{_NAMES[self.metric]}, {self.head_mode} runs")
        first, second = row + 2, row + 2 + 15
        self._scatter(sheet, first, 1, data)
        self._histogram(sheet, first, 4, data)
        for place, (kind, words) in enumerate((("parallelism", "plan"), ("framework", "framework"), ("lengths", "input and output"), ("model", "model"))):
            self._bars(sheet, *((first, 7) if not place else (second, 1 + 3 * (place - 1))), kind, words, data)
        end = second + 15
        self._head(sheet, end, "What was measured and what is compared", "")
        for line, words in enumerate(_METHOD, end + 1):
            self._put(sheet, line, 1, words, _NOTE)
        sheet.print_area(0, 1, end + len(_METHOD), 9)
        assert data.top > end + len(_METHOD)

    def _title(self, sheet: Any) -> None:
        """The finding in one line, live."""
        mode = self.head_mode
        shown = [name for name in ("tpot", "ttft", "throughput") if (mode, name) in self.summary_rows] or [self.metric]
        parts = [f'"{_NAMES[name] if not place else _inside(name)} is off by "&TEXT({self._figure(name, "mape")},"0.0%")' if not place else
                 f'"{_inside(name)} by "&TEXT({self._figure(name, "mape")},"0.0%")' for place, name in enumerate(shown)]  # fmt: skip
        told = [f"{_NAMES[name] if not place else _inside(name)} {'is off ' if not place else ''}by {self.head_metrics[mode][name]['mape']:.1%}"
                for place, name in enumerate(shown)]  # fmt: skip
        self._put(sheet, 0, 1, "=" + '&", "&'.join(parts) + '&" on average"', style.SUMMARY_TITLE, ", ".join(told) + " on average")

    def _figure(self, metric: str, figure: str) -> str:
        """The cell of Summary that holds an error of the headline runs."""
        return xl_rowcol_to_cell(self.summary_rows[self.head_mode, metric], 3 + ("n", *_FIGURES).index(figure), True, True)

    def _head(self, sheet: Any, row: int, words: str, right: str) -> None:
        sheet.set_row_pixels(row, 22)
        for column in range(1, 10):
            self._put(sheet, row, column, words if column == 1 else right if column == 9 else "",
                      style.SECTION_HEAD if column < 9 else style.SECTION_HEAD.but(size=9.5, bold=False, colour=style.GREY, align="right"))  # fmt: skip

    def _chart(self, sheet: Any, row: int, column: int, kind: dict[str, str], series: Sequence[dict[str, Any]], x: dict[str, Any], y: dict[str, Any],
               plot: tuple[float, float, float, float], alt: str) -> None:  # fmt: skip
        chart = self.book.add_chart(kind)
        for one in series:
            chart.add_series(one)
        chart.set_title({"none": True})
        chart.set_x_axis(x)
        chart.set_y_axis(y)
        chart.set_legend({"none": True})
        chart.set_size({"width": _CHART[0], "height": _CHART[1]})
        left, top, width, height = plot
        chart.set_plotarea({"layout": {"x": left, "y": top, "width": width, "height": height}, "fill": {"none": True}})
        chart.set_chartarea({"border": {"none": True}, "fill": {"none": True}})
        sheet.insert_chart(row, column, chart, {"object_position": 1, "description": alt, "y_offset": 2})

    def _scatter(self, sheet: Any, row: int, column: int, data: _Data) -> None:
        name, unit = self.metric, _UNITS[self.metric]
        mode = self._range("mode")
        near = data.number(self, sheet, "share within", _WITHIN, _PERCENT)
        part = self.modes[self.head_mode]
        ratios = part[f"{name}_ratio"]
        share = float(((ratios - 1).abs() <= _WITHIN).sum() / max(1, ratios.notna().sum()))
        criteria = f'{mode},$C${self.summary_rows[self.head_mode, name] + 1},{self._range(metric=name, what="|error|")},"<="&{near}'
        self._put(sheet, row, column, f'=TEXT(COUNTIFS({criteria})/{self._figure(name, "n")},"0%")&" of runs within "&TEXT({near},"0%")&" of measured"',
                  _FINDING, f"{share:.0%} of runs within {_WITHIN:.0%} of measured")  # fmt: skip
        values = [_known(value, _SCALES[name]) for what in ("measured", "predicted") for value in self.table.loc[self.table[f"{name}_ratio"].notna(), f"{name}_{what}"]]
        low, high = (10.0 ** bound for bound in (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.0001))))
        ends = data.block(self, sheet, [f"diagonal, {unit}", "exact", "+20 %", "−20 %"], [[low, low, low * (1 + _WITHIN), low * (1 - _WITHIN)],
                          [high, high, high * (1 + _WITHIN), high * (1 - _WITHIN)]], style.number_format("us"))  # fmt: skip
        series: list[dict[str, Any]] = [
            {"categories": ["Summary", ends[0], ends[1], ends[0] + 1, ends[1]], "values": ["Summary", ends[0], ends[1] + place, ends[0] + 1, ends[1] + place],
             "marker": {"type": "none"}, "line": {"color": style.INK if place == 1 else style.SECOND, "width": 1, **({} if place == 1 else {"dash_type": "dash"})}}
            for place in (1, 2, 3)
        ]  # fmt: skip
        x, y = (self.places["", name, what] for what in ("measured", "predicted"))
        start = _TOP
        for mode_name, colour in zip(self.modes, (style.COMPUTE, style.MEMORY), strict=False):
            end = start + len(self.modes[mode_name]) - 1
            marker = {"type": "circle", "size": 3, "fill": {"color": colour, "transparency": 45}, "border": {"none": True}}
            series.insert(0 if colour == style.MEMORY else len(series), {
                "name": mode_name, "categories": ["Runs", start, x, end, x], "values": ["Runs", start, y, end, y], "line": {"none": True}, "marker": marker})  # fmt: skip
            start = end + 1
        axis = _axis("#,##0.###" if low < 1 else "#,##0") | {"log_base": 10, "min": low, "max": high, "crossing": low, "line": {"color": style.GRID}}
        apart = f"; orange: {list(self.modes)[1]}" if len(self.modes) > 1 else ""
        self._chart(sheet, row + 1, column, {"type": "scatter", "subtype": "straight"}, series,
                    axis | _named(f"measured {_inside(name)}, {unit}; dashed: ±20 %{apart}"), axis | _named(f"predicted, {unit}"), (0.125, 0.03, 0.85, 0.76),
                    f"Predicted against measured {_inside(name)} of every run, both axes logarithmic")  # fmt: skip

    def _histogram(self, sheet: Any, row: int, column: int, data: _Data) -> None:
        name = self.metric
        figures = self.head_metrics[self.head_mode][name]
        self._put(sheet, row, column, f'="Half of the runs within "&TEXT({self._figure(name, "median")},"0.0%")&", bias "&TEXT({self._figure(name, "bias")},'
                  '"+0.0%;−0.0%")', _FINDING, f"Half of the runs within {figures['median']:.1%}, bias {figures['bias']:+.1%}".replace("-", "−"))  # fmt: skip
        limit = data.number(self, sheet, "near: up to", _NEAR, _PERCENT)
        edges = [-1.0, *(round(-_TAIL + _STEP * step, 2) for step in range(round(2 * _TAIL / _STEP) + 1)), 1e6]
        off = self.modes[self.head_mode][f"{name}_ratio"].dropna() - 1
        rows: list[list[Any]] = []
        top = data.next_row
        criterion = f"{self._range('mode')},$C${self.summary_rows[self.head_mode, name] + 1}"
        column_of_errors = self._range(metric=name, what="error")
        for place, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
            at = top + 1 + place + 1  # 1-based row of this bin, below the heads
            count = int(((off >= low) & (off < high)).sum())
            inside = low >= -_NEAR and high <= _NEAR
            label = f"<−{_TAIL * 100:.0f}" if not place else f"≥{_TAIL * 100:.0f}" if high > 1e5 else f"{low * 100:.0f}".replace("-", "−")
            rows.append([label, low, high,
                         (f'=COUNTIFS({criterion},{column_of_errors},">="&$C{at},{column_of_errors},"<"&$D{at})', count),
                         (f"=IF(AND($C{at}>=-{limit},$D{at}<={limit}),$E{at},0)", count if inside else 0), (f"=$E{at}-$F{at}", 0 if inside else count)])  # fmt: skip
        first, _ = data.block(self, sheet, ["bin, %", "from", "to", "runs", "near", "far"], rows, _COUNT, {1: _PERCENT, 2: _PERCENT})
        last = first + len(rows) - 1
        series = [{"categories": ["Summary", first, 1, last, 1], "values": ["Summary", first, place, last, place], "fill": {"color": colour},
                   "border": {"none": True}, "gap": 12} for place, colour in ((5, style.COMPUTE), (6, style.OVERHEAD))]  # fmt: skip
        self._chart(sheet, row + 1, column, {"type": "column", "subtype": "stacked"}, series,
                    {"num_font": _AXIS_FONT, "line": {"color": style.GRID}, "major_tick_mark": "none", "interval_unit": 2, "major_gridlines": {"visible": False}}
                    | _named(f"{_inside(name)} error, %: lower edge of each bin; blue within ±10 %"), _axis("#,##0") | _named("runs"),
                    (0.125, 0.03, 0.85, 0.76), f"How many runs by error of {_inside(name)}, in steps of five percent")  # fmt: skip

    def _bars(self, sheet: Any, row: int, column: int, kind: str, words: str, data: _Data) -> None:
        """MAPE of the largest groups of a kind, the one furthest off in the colour of attention."""
        name = self.metric
        groups = [group for group in self.groups if group.kind == kind and group.mode == self.head_mode and name in group.metrics]
        groups = sorted(groups, key=lambda group: -group.metrics[name]["n"])
        large = [group for group in groups if group.metrics[name]["n"] >= _FEWEST] or groups
        shown = large[:_MOST_BARS]
        wide = 1 + len(_FIGURES) - 1
        first_column = 3 + self.metrics.index(name) * wide
        top = data.next_row + 1
        span = f"$C${top + 1}:$C${top + len(shown)}"
        values = [float(group.metrics[name]["mape"]) for group in shown]
        rows = []
        for place, (group, value) in enumerate(zip(shown, values, strict=True)):
            at, source = top + place + 1, self.group_rows[kind, group.key, group.mode]
            count = int(group.metrics[name]["n"])
            rows.append([(f"=Groups!$B${source + 1}&\"   \"&TEXT(Groups!{xl_rowcol_to_cell(source, first_column, True, True)},\"#,##0\")", f"{group.key}   {count:,}"),
                         (f"=Groups!{xl_rowcol_to_cell(source, first_column + 1, True, True)}", value),
                         (f"=IF($C{at}=MAX({span}),$C{at},0)", value if value == max(values) else 0.0),
                         (f"=$C{at}-$D{at}", 0.0 if value == max(values) else value)])  # fmt: skip
        first, _ = data.block(self, sheet, [f"{kind}, runs", "MAPE", "furthest", "others"], rows, _PERCENT, text=(0,))
        last = first + len(shown) - 1
        worst = shown[values.index(max(values))]
        sources = [self.group_rows[kind, group.key, group.mode] + 1 for group in shown]
        if len(shown) > 1:
            index = f"INDEX($B${first + 1}:$B${last + 1},MATCH(MAX({span}),{span},0))"
            label = f"{worst.key}   {int(worst.metrics[name]['n']):,}"
            self._put(sheet, row, column, f'="By {words}: furthest off "&{index}&" runs"', _FINDING, f"By {words}: furthest off {label} runs")
        else:
            self._put(sheet, row, column, f'="By {words}: all "&Groups!$B${sources[0]}', _FINDING, f"By {words}: all {worst.key}")
        series = [{"categories": ["Summary", first, 1, last, 1], "values": ["Summary", first, place, last, place], "fill": {"color": colour},
                   "border": {"none": True}, "gap": 45, "overlap": 100,
                   "data_labels": {"value": True, "position": "outside_end", "num_format": "[>0]0.0%;;",
                                   "font": {"name": "Calibri", "size": 8.5, "bold": True, "color": text}}}
                  for place, colour, text in ((3, style.MEMORY, style.MEMORY_TEXT), (4, style.COMPUTE, style.INK))]  # fmt: skip
        longest = max(len(f"{group.key}") for group in shown) + 7
        left = min(0.52, max(0.22, 0.0145 * longest))
        self._chart(sheet, row + 1, column, {"type": "bar"}, series, _axis("0%") | {"max": _round_up(1.15 * max(values))} | _named(f"MAPE of {_inside(name)}; behind the name: runs"),
                    {"reverse": True, "num_font": _CATEGORY_FONT, "line": {"none": True}, "major_tick_mark": "none", "crossing": "max",
                     "major_gridlines": {"visible": False}}, (left, 0.03, 0.96 - left, 0.76), f"Mean absolute error of {_inside(name)} by {words}")  # fmt: skip


class _Data:
    """The block of chart data below the printed page of Summary."""

    def __init__(self, top: int) -> None:
        self.top, self.next_row = top, top + 1

    def block(self, report: _Report, sheet: Any, heads: Sequence[str], rows: Sequence[Sequence[Any]], form: str, forms: Mapping[int, str] | None = None,
              text: Sequence[int] = ()) -> tuple[int, int]:  # fmt: skip
        """Write heads and rows; a pair is a formula and its value. Returns first row and column of the figures."""
        if self.next_row == self.top + 1:
            report._put(sheet, self.top, 1, "Chart data (live, not printed)", style.BLOCK_NOTE)
        for column, head in enumerate(heads, 1):
            report._put(sheet, self.next_row, column, head, style.UNIT)
        first = self.next_row + 1
        for row, values in enumerate(rows, first):
            for column, value in enumerate(values, 1):
                formula, cached = value if isinstance(value, tuple) else (value, None)
                look = style.VALUE.but(size=9, form=(forms or {}).get(column - 1, form))
                report._put(sheet, row, column, formula, style.UNIT if isinstance(formula, str) and cached is None or column - 1 in text else look, cached)
        self.next_row = first + len(rows) + 1
        return first, 1

    def number(self, report: _Report, sheet: Any, head: str, value: float, form: str) -> str:
        """One figure with its name; returns its cell."""
        row, _ = self.block(report, sheet, [head], [[value]], form)
        return xl_rowcol_to_cell(row, 1, True, True)


errors_of_none = errors(__import__("numpy").array([]))
_NUMBERS = ("concurrency", "input_tokens", "output_tokens")
_MEASURED = style.VALUE.but(colour=style.INPUT, form=style.number_format("us"))
_PREDICTED = style.VALUE.but(colour=style.GREY, form=style.number_format("us"))
_AXIS_FONT = {"name": "Calibri", "size": 8, "color": style.GREY}
_CATEGORY_FONT = {"name": "Calibri", "size": 9, "color": style.INK}


def _axis(form: str) -> dict[str, Any]:
    return {"num_font": _AXIS_FONT, "num_format": form, "major_gridlines": {"visible": True, "line": {"color": style.GRID, "width": 0.5}},
            "line": {"none": True}, "min": 0, "major_tick_mark": "none"}  # fmt: skip


def _named(words: str) -> dict[str, Any]:
    return {"name": words, "name_font": {"name": "Calibri", "size": 8, "color": style.GREY, "bold": False}}


def _inside(metric: str) -> str:
    """A metric's name inside a sentence."""
    name = _NAMES[metric]
    return name if name.startswith("T") and metric != "throughput" else name.lower()


def _lengths(text: str) -> str:
    """Lengths in words: a spreadsheet reads some that are joined by a slash as dates."""
    first, _, second = text.partition("/")
    return f"{int(first):,} in, {int(second):,} out"


def _known(value: float, scale: float) -> float:
    """A figure in the unit shown, NaN where there is none."""
    return value * scale if math.isfinite(value) and value > 0 else math.nan


def _plain(key: Any) -> bool:
    """Whether a criterion of COUNTIFS takes a name literally."""
    return not isinstance(key, str) or (len(key) < 200 and not set("*?~") & set(key))


def _round_up(value: float) -> float:
    """The end of an axis."""
    step = 10 ** math.floor(math.log10(max(value, 1e-6)))
    return next(float(f"{step * times:.6g}") for times in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * times >= value)
