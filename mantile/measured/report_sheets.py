"""The sheets of a reconciliation's report: every run with its errors as formulas, errors by group, extremes, what was left out or taken for granted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

from mantile.library.version import __version__
from mantile.measured.metrics import COMPARED as METRICS
from mantile.measured.reconcile import GROUPS, Reconciliation
from mantile.workbook import style
from mantile.workbook.style import Style

NAMES = {
    "tpot": "TPOT",
    "ttft": "TTFT",
    "ttft_p50": "TTFT median",
    "throughput": "Throughput",
    "prefill": "Prefill",
    "e2e": "End to end",
}
UNITS = dict.fromkeys(METRICS, "ms") | {"throughput": "token/s/acc"}
SCALES = dict.fromkeys(METRICS, 1e3) | {"throughput": 1.0}  # from SI to the unit shown
FIGURES = ("mape", "median", "p90", "bias", "symmetric", "rmse")
_STORED = ("median", "p90", "rmse")  # figures that the functions we allow cannot work out by group
HEADS = {
    "mape": "MAPE",
    "median": "median *",
    "p90": "p90 *",
    "bias": "bias",
    "symmetric": "symmetric",
    "rmse": "RMSE *",
}
TOP, _GROUP_TOP = 5, 5  # first row of data of Runs and of Groups
_LONGEST = 32_000  # characters of a cell

_AIR = "_)_)"
PERCENT, _SIGNED = f"0.0%{_AIR}", f'+0.0%{_AIR};"−"0.0%{_AIR};0.0%{_AIR}'
COUNT = style.number_format("token")
_RATIO = style.number_format("1")
_LINKED = style.VALUE.but(colour=style.LINK)
_TEXT_LINK = style.LABEL.but(colour=style.LINK, shrink=True)
_STORED_VALUE = style.VALUE.but(colour=style.GREY)


@dataclass(frozen=True)
class _Column:
    """A column of Runs. `metric` and `what` where it belongs to a metric."""

    head: str
    width: int
    key: str = ""
    metric: str = ""
    what: str = ""


_NUMBERS = ("concurrency", "input_tokens", "output_tokens")
_ASKED = (
    _Column("id", 136, "id"),
    _Column("mode", 92, "mode"),
    _Column("model", 176, "model"),
    _Column("accelerator", 104, "accelerator"),
    _Column("framework", 80, "framework"),
    _Column("precision", 78, "precision"),
    _Column("parallelism", 120, "parallelism"),
    _Column("concurrency", 84, "concurrency"),
    _Column("input tokens", 84, "input_tokens"),
    _Column("output tokens", 90, "output_tokens"),
    _Column("lengths", 150, "lengths"),
    _Column("memory", 92, "feasibility"),
)
_TOLD = (
    _Column("version", 90, "version"),
    _Column("date", 84, "date"),
    _Column("source", 260, "source"),
    _Column("assumptions", 520, "assumptions"),
)
_READ = (("measured", 84), ("predicted", 84), ("ratio", 66), ("error", 76))
_WORKED = (("|error|", 76), ("|ln ratio|", 76))

_LOOKS = {
    **dict.fromkeys(_NUMBERS, style.VALUE.but(form=COUNT)),
    **dict.fromkeys((column.key for column in _TOLD), style.SOURCE.but(shrink=False)),
    "lengths": style.ROW_LABEL.but(indent=1),
}
_WORKINGS = {
    what: style.VALUE.but(form=form)
    for what, form in (("ratio", _RATIO), ("error", _SIGNED), ("|error|", PERCENT), ("|ln ratio|", _RATIO))
}
_FORMS = dict.fromkeys(METRICS, style.number_format("us")) | {"tpot": style.FRONT["ms2"] + _AIR}
_MEASURED = {name: style.VALUE.but(colour=style.INPUT, form=form) for name, form in _FORMS.items()}
_PREDICTED = {name: style.VALUE.but(colour=style.GREY, form=form) for name, form in _FORMS.items()}


@dataclass(frozen=True)
class _Group:
    """A row of Groups: runs of one mode that have one thing in common."""

    kind: str
    key: Any
    mode: str
    metrics: Mapping[str, Mapping[str, float]]
    runs: int


class Sheets:
    """The sheets of a report but Summary, in one run of XlsxWriter."""

    def __init__(self, found: Reconciliation) -> None:
        import pandas as pd

        self.found = found
        self.modes = {
            mode: part.assign(lengths=[_lengths(text) for text in part["lengths"]])
            for mode, part in found.modes().items()
        }
        self.table = pd.concat(list(self.modes.values()), ignore_index=True)
        self.metrics = list(found.metrics())
        self.head_metrics = {mode: found.metrics(part) for mode, part in self.modes.items()}
        self.head_mode = next(mode for mode, metrics in self.head_metrics.items() if metrics)
        known = self.head_metrics[self.head_mode]
        self.metric = "tpot" if "tpot" in known else next(iter(known))
        self.columns = [
            *_ASKED,
            *(_Column(what, width, metric=name, what=what) for name in self.metrics for what, width in _READ),
            *_TOLD,
            *(
                _Column(what, width, metric=name, what=what)
                for name in self.metrics
                for what, width in _WORKED
            ),
        ]
        self.places = {
            (column.key, column.metric, column.what): place for place, column in enumerate(self.columns)
        }
        self.last = TOP + len(self.table)  # of Runs, 1-based
        self.book: Any = None  # of XlsxWriter
        self.sheets: dict[str, Any] = {}
        self.formats: dict[Style, Any] = {}
        self.groups = [group for kind in GROUPS for group in self._groups_of(kind)]
        self.group_rows = {
            (group.kind, group.key, group.mode): _GROUP_TOP + row for row, group in enumerate(self.groups)
        }

    def _format(self, look: Style) -> Any:
        if look not in self.formats:
            self.formats[look] = self.book.add_format(look.properties())
        return self.formats[look]

    def put(self, sheet: Any, row: int, column: int, value: Any, look: Style, cached: Any = None) -> None:
        """A formula where `cached` is given, else a number, text or nothing. Texts are never read as formulas."""
        made = self._format(look)
        if cached is not None:
            sheet.write_formula(
                row,
                column,
                value,
                made,
                "" if isinstance(cached, float) and not math.isfinite(cached) else cached,
            )
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
        sheet.set_footer(
            f"&L&8&K{style.GREY[1:]}&F · {name}&R&8&K{style.GREY[1:]}Mantile {__version__} · page &P of &N"
        )
        sheet.fit_to_pages(1, 1 if name == "Summary" else 0)

    def _top(
        self, sheet: Any, title: str, purpose: str, widths: Sequence[int], rows: int, frozen: int
    ) -> None:
        """Title, purpose and widths; what stands above `rows` stays in sight and is repeated in print."""
        for column, width in enumerate(widths):
            sheet.set_column_pixels(column, column, width)
        sheet.set_row_pixels(0, 34)
        self.put(sheet, 0, 0, title, style.SHEET_TITLE)
        self.put(sheet, 1, 0, purpose, style.PURPOSE)
        sheet.freeze_panes(rows, frozen)
        sheet.repeat_rows(0, rows - 1)

    def _header(
        self, sheet: Any, row: int, heads: Iterable[str], right: Iterable[int] = (), first: int = 0
    ) -> None:
        numbers = set(right)
        sheet.set_row_pixels(row, 22)
        for column, head in enumerate(heads):
            self.put(
                sheet, row, first + column, head, style.HEADER_RIGHT if column in numbers else style.HEADER
            )

    def _range(self, key: str = "", metric: str = "", what: str = "") -> str:
        """A column of Runs as a reference."""
        letter = xl_col_to_name(self.places[key, metric, what])
        return f"Runs!${letter}${TOP + 1}:${letter}${self.last}"

    # --- Runs -----------------------------------------------------------------------------------------------------------------

    def _runs(self) -> None:
        sheet = self.sheets["Runs"]
        self._top(
            sheet,
            "Runs",
            "Every run that was answered. Blue: as measured. Grey: as predicted when this file was made. Black: formulas; all errors "
            "of Summary and Groups are worked out from them.",
            [column.width for column in self.columns],
            TOP,
            1,
        )
        for name in self.metrics:
            words = f"{NAMES[name]}, {UNITS[name]}"
            for what, count in (("measured", len(_READ)), ("|error|", len(_WORKED))):
                first = self.places["", name, what]
                for column in range(first, first + count):
                    edge = (style.THIN, style.HAIRLINE) if column == first else None
                    self.put(
                        sheet, 3, column, words if column == first else "", style.BLOCK_HEAD.but(left=edge)
                    )
        numeric = [
            place for place, column in enumerate(self.columns) if column.metric or column.key in _NUMBERS
        ]
        self._header(sheet, 4, [column.head for column in self.columns], numeric)
        self.put(sheet, 4, self.places["lengths", "", ""], "lengths", style.HEADER.but(indent=1))
        for place, run in enumerate(self.table.to_dict("records")):
            self._run(sheet, TOP + place, run)
        sheet.autofilter(4, 0, self.last - 1, len(self.columns) - 1)
        sheet.print_area(0, 0, self.last - 1, self.places["version", "", ""] - 1)

    def _run(self, sheet: Any, row: int, run: Mapping[Any, Any]) -> None:
        for column in (*_ASKED, *_TOLD):
            value = "; ".join(run["assumptions"]) if column.key == "assumptions" else run[column.key]
            self.put(
                sheet, row, self.places[column.key, "", ""], value, _LOOKS.get(column.key, style.ROW_LABEL)
            )
        for name in self.metrics:
            places = {what: self.places["", name, what] for what, _ in (*_READ, *_WORKED)}
            at = {what: xl_rowcol_to_cell(row, place) for what, place in places.items()}
            measured, predicted = (
                _known(run[f"{name}_{what}"], SCALES[name]) for what in ("measured", "predicted")
            )
            self.put(sheet, row, places["measured"], measured, _MEASURED[name])
            self.put(sheet, row, places["predicted"], predicted, _PREDICTED[name])
            ratio = predicted / measured
            formulas = {
                "ratio": (
                    f'=IF(AND(ISNUMBER({at["measured"]}),ISNUMBER({at["predicted"]})),{at["predicted"]}/{at["measured"]},"")',
                    ratio,
                ),
                "error": (f'=IF(ISNUMBER({at["ratio"]}),{at["ratio"]}-1,"")', ratio - 1),
                "|error|": (f'=IF(ISNUMBER({at["error"]}),ABS({at["error"]}),"")', abs(ratio - 1)),
                "|ln ratio|": (
                    f'=IF(ISNUMBER({at["ratio"]}),ABS(LN({at["ratio"]})),"")',
                    abs(math.log(ratio)),
                ),
            }
            for what, (formula, cached) in formulas.items():
                self.put(sheet, row, places[what], formula, _WORKINGS[what], cached)

    # --- Groups ---------------------------------------------------------------------------------------------------------------

    def _groups_of(self, kind: str) -> list[_Group]:
        """The groups of a kind, those of each mode together, the largest first; concurrencies in order."""
        made: list[_Group] = []
        for mode, part in self.modes.items():
            sizes = part[kind].value_counts()
            keys = sorted(
                sizes.index,
                key=(lambda key: key)
                if kind == "concurrency"
                else lambda key, sizes=sizes: (-sizes[key], str(key)),
            )
            made += [
                _Group(kind, key, mode, self.found.metrics(part[part[kind] == key]), int(sizes[key]))
                for key in keys
            ]
        return made

    def _formulas(self, metric: str, count: str, conditions: Sequence[tuple[str, str]]) -> dict[str, str]:
        """The live errors of a metric over the runs for which conditions hold.

        Args:
            count: cell of the number of runs.
            conditions: columns of Runs and criteria.
        """
        held = ",".join(f"{place},{criterion}" for place, criterion in conditions)
        total = {
            what: f"SUMIFS({self._range(metric=metric, what=what)},{held})/{count}"
            for what in ("|error|", "error", "|ln ratio|")
        }
        return {
            "n": f'=COUNTIFS({held},{self._range(metric=metric, what="|error|")},">=0")',
            "mape": f'=IF({count}>0,{total["|error|"]},"")',
            "bias": f'=IF({count}>0,{total["error"]},"")',
            "symmetric": f'=IF({count}>0,EXP({total["|ln ratio|"]})-1,"")',
        }

    def _groups(self) -> None:
        sheet = self.sheets["Groups"]
        figures = [figure for figure in FIGURES if figure != "rmse"]
        widths = [104, 190, 96, *[56, *[66] * len(figures)] * len(self.metrics)]
        self._top(
            sheet,
            "Groups",
            "The same errors by what runs have in common, each mode apart. Live formulas over Runs; * stored as generated.",
            widths,
            _GROUP_TOP,
            3,
        )
        wide = 1 + len(figures)
        for place, name in enumerate(self.metrics):
            for column in range(wide):
                look = style.BLOCK_HEAD.but(left=(style.THIN, style.HAIRLINE) if not column else None)
                self.put(sheet, 3, 3 + place * wide + column, NAMES[name] if not column else "", look)
        heads = ["group", "", "mode", *["runs", *(HEADS[figure] for figure in figures)] * len(self.metrics)]
        self._header(sheet, 4, heads, range(3, len(heads)))
        for row, group in enumerate(self.groups, _GROUP_TOP):
            new = row == _GROUP_TOP or group.kind != self.groups[row - _GROUP_TOP - 1].kind
            edge = (style.THIN, style.HAIRLINE) if new else None
            self.put(
                sheet,
                row,
                0,
                group.kind,
                style.SECTION.but(top=edge, bold=new, colour=style.NAVY if new else style.MUTE),
            )
            self.put(
                sheet,
                row,
                1,
                group.key,
                (
                    style.VALUE.but(form="0", align="left") if isinstance(group.key, int) else style.ROW_LABEL
                ).but(top=edge),
            )
            self.put(sheet, row, 2, group.mode, style.UNIT.but(top=edge))
            conditions = [
                (self._range(group.kind), f'"="&$B{row + 1}'),
                (self._range("mode"), f"$C{row + 1}"),
            ]
            for place, name in enumerate(self.metrics):
                self._figures(
                    sheet,
                    row,
                    3 + place * wide,
                    name,
                    group.metrics.get(name),
                    conditions,
                    figures,
                    _plain(group.key),
                    edge,
                )
        for place in range(len(self.metrics)):
            column = 4 + place * wide
            sheet.conditional_format(
                _GROUP_TOP,
                column,
                _GROUP_TOP + len(self.groups) - 1,
                column,
                {
                    "type": "data_bar",
                    "data_bar_2010": True,
                    "bar_solid": True,
                    "bar_color": style.SHARE_BAR,
                    "min_type": "num",
                    "max_type": "num",
                    "min_value": 0,
                    "max_value": 0.8,
                    "bar_no_border": True,
                },
            )

    def _figures(
        self,
        sheet: Any,
        row: int,
        column: int,
        metric: str,
        found: Mapping[str, float] | None,
        conditions: Sequence[tuple[str, str]],
        figures: Sequence[str],
        live: bool,
        edge: tuple[int, str] | None = None,
    ) -> None:
        """Number of runs and errors of a metric in a row, live where they can be."""
        found = found or {"n": 0, **dict.fromkeys(FIGURES, math.nan)}
        formulas = self._formulas(metric, "$" + xl_rowcol_to_cell(row, column), conditions) if live else {}
        for place, figure in enumerate(("n", *figures)):
            form = COUNT if figure == "n" else _SIGNED if figure == "bias" else PERCENT
            look = (_STORED_VALUE if figure in _STORED else style.VALUE).but(
                form=form, top=edge, bold=figure == "mape"
            )
            if figure in formulas:
                self.put(sheet, row, column + place, formulas[figure], look, found[figure])
            else:
                self.put(sheet, row, column + place, found[figure], look)

    # --- Best and worst, Not answered, Assumptions ---------------------------------------------------------------------------

    def _extremes(self) -> None:
        sheet, name = self.sheets["Best and worst"], self.metric
        others = [other for other in self.metrics if other != name]
        keys = (
            "id",
            "model",
            "accelerator",
            "framework",
            "precision",
            "parallelism",
            "concurrency",
            "lengths",
        )
        widths = [
            44,
            *(column.width for key in keys for column in _ASKED if column.key == key),
            96,
            96,
            84,
            *[104] * len(others),
        ]
        self._top(
            sheet,
            "Best and worst",
            f"The ten runs of each mode whose {NAMES[name]} is predicted best and worst as generated; every cell is a link to "
            "Runs.",
            widths,
            3,
            2,
        )
        row = 3
        for mode, part in self.modes.items():
            for words, runs in zip(
                ("Best", "Worst"),
                self.found.extremes(10, name, self.table[self.table["mode"] == mode]),
                strict=True,
            ):
                if not len(runs):
                    continue
                self.put(
                    sheet,
                    row,
                    0,
                    f"{words} predicted, {mode}: {len(runs)} of {len(part):,} runs",
                    style.SECTION_HEAD,
                )
                heads = [
                    "",
                    *keys,
                    f"measured, {UNITS[name]}",
                    f"predicted, {UNITS[name]}",
                    "error",
                    *(f"{NAMES[other]} error" for other in others),
                ]
                self._header(sheet, row + 1, heads, range(7, len(heads)))
                self.put(sheet, row + 1, 8, heads[8], style.HEADER.but(indent=1))
                for rank, (index, run) in enumerate(
                    zip(runs.index.tolist(), runs.to_dict("records"), strict=True)
                ):
                    self._extreme(sheet, row + 2 + rank, rank + 1, int(index), run, keys, (name, *others))
                row += len(runs) + 4

    def _extreme(
        self,
        sheet: Any,
        row: int,
        rank: int,
        index: int,
        run: Any,
        keys: Sequence[str],
        metrics: Sequence[str],
    ) -> None:
        self.put(sheet, row, 0, rank, style.VALUE.but(form=COUNT, colour=style.MUTE))
        for column, key in enumerate(keys, 1):
            look = (
                _LINKED.but(form=COUNT) if key in _NUMBERS else _TEXT_LINK.but(indent=int(key == "lengths"))
            )
            self.put(
                sheet,
                row,
                column,
                f"=Runs!{xl_rowcol_to_cell(TOP + index, self.places[key, '', ''])}",
                look,
                run[key],
            )
        first, column = metrics[0], 1 + len(keys)
        cells = [(first, "measured"), (first, "predicted"), *((name, "error") for name in metrics)]
        for name, what in cells:
            value = run[f"{name}_ratio"] - 1 if what == "error" else run[f"{name}_{what}"] * SCALES[name]
            look = _LINKED.but(
                form=_SIGNED if what == "error" else _FORMS[name], bold=what == "error" and name == first
            )
            self.put(
                sheet,
                row,
                column,
                f"=Runs!{xl_rowcol_to_cell(TOP + index, self.places['', name, what])}",
                look,
                float(value),
            )
            column += 1

    def _unanswered(self) -> None:
        sheet, broken = self.sheets["Not answered"], self.found.rejected
        self._top(
            sheet,
            "Not answered",
            "Records that are no measured run, or that no graph of ours answers, and why."
            if broken
            else "Every record was answered.",
            [220, 760, 90, 90],
            3,
            0,
        )
        if not broken:
            return
        self._header(sheet, 3, ["such as", "reason", "records", "share"], (2, 3))
        row = 4
        for reason, count in Counter(item.reason for item in broken).most_common():
            self.put(sheet, row, 0, next(item.id for item in broken if item.reason == reason), style.SOURCE)
            self.put(sheet, row, 1, reason, style.ROW_LABEL)
            self.put(sheet, row, 2, count, style.VALUE.but(form=COUNT))
            self.put(sheet, row, 3, count / self.found.rows, style.VALUE.but(form=PERCENT))
            row += 1
        self._header(sheet, row + 1, ["record", "reason", "", ""])
        for item in broken:
            self.put(sheet, row + 2, 0, item.id, style.SOURCE)
            self.put(sheet, row + 2, 1, item.reason, style.ROW_LABEL)
            row += 1

    def _assumptions(self) -> None:
        sheet, taken = self.sheets["Assumptions"], self.found.assumptions()
        self._top(
            sheet,
            "Assumptions",
            "What reading the runs took for granted where their table does not say it; those of each run: Runs."
            if taken
            else "Nothing was taken for granted: the records say all that is asked.",
            [44, 860, 90, 90],
            4,
            0,
        )
        self._header(sheet, 3, ["", "taken for granted", "runs", "share"], (2, 3))
        for row, (words, count) in enumerate(taken.items(), 4):
            self.put(sheet, row, 0, row - 3, style.VALUE.but(form=COUNT, colour=style.MUTE))
            self.put(sheet, row, 1, words, style.ROW_LABEL)
            self.put(sheet, row, 2, count, style.VALUE.but(form=COUNT))
            self.put(sheet, row, 3, count / len(self.table), style.VALUE.but(form=PERCENT))


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
