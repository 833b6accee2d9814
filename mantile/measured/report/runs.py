"""The sheet Runs: every run with what was asked, measured and predicted, and its errors as formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mantile.graph.quantity import Input, Named, Quantity, Span, absolute, all_of, logarithm, span, where
from mantile.measured.coverage import RANGES
from mantile.measured.metrics import DERIVED, ComparedMetric
from mantile.measured.reconcile import other_load
from mantile.measured.report.contents import (
    COUNT,
    FORMS,
    LONGEST,
    PERCENT,
    RATIO,
    SIGNED,
    Report,
    add_heads,
    add_title_rows,
)
from mantile.workbook import style
from mantile.workbook.book import Book, Cell, CellAddress, Sheet
from mantile.workbook.style import Style

TOP = 5  # first row of data
NUMBERS = ("concurrency", "input_tokens", "output_tokens")
ASKED = {
    "id": ("id", 136),
    "mode": ("mode", 92),
    "model": ("model", 176),
    "accelerator": ("accelerator", 104),
    "framework": ("framework", 80),
    "precision": ("precision", 78),
    "parallelism": ("parallelism", 120),
    "concurrency": ("concurrency", 84),
    "input_tokens": ("input tokens", 84),
    "output_tokens": ("output tokens", 90),
    "lengths": ("lengths", 150),
    "feasibility": ("memory", 92),
    "source": ("source", 190),
}
"""Head and width in pixels of the columns that say what was asked."""

_ORIGIN = {"version": 90, "date": 84, "reference": 260, "assumptions": 520}
_COMPARED = {"measured": 84, "predicted": 84, "ratio": 66, "error": 76}
_RANGE = {"low": 84, "high": 84, "inside": 66}
_WORKINGS = {"|error|": 76, "|ln ratio|": 76}

_LOOKS = {
    **dict.fromkeys(NUMBERS, style.VALUE.but(form=COUNT)),
    **dict.fromkeys(_ORIGIN, style.SOURCE.but(shrink=False)),
    "lengths": style.ROW_LABEL.but(indent=1),
}
_ERROR_LOOKS = {
    what: style.VALUE.but(form=form)
    for what, form in (("ratio", RATIO), ("error", SIGNED), ("|error|", PERCENT), ("|ln ratio|", RATIO))
}
_INSIDE = style.VALUE.but(form=COUNT)
_METRIC_LOOKS = {
    (name, what): style.VALUE.but(colour=colour, form=form)
    for name, form in FORMS.items()
    for what, colour in (
        ("measured", style.INPUT),
        ("predicted", style.GREY),
        ("low", style.GREY),
        ("high", style.GREY),
    )
}


@dataclass(frozen=True)
class RunCells:
    """The figures on the sheet Runs, by column; a metric's under its name and what they are: tpot_error.

    Args:
        columns: number of each column.
        figures: of each column, from the first run to the last. An empty cell is an empty text.
    """

    columns: dict[str, int]
    figures: dict[str, list[Named]]

    @cached_property
    def spans(self) -> dict[str, Span]:
        """Each column as a block of cells."""
        return {column: span(figures) for column, figures in self.figures.items()}


def runs_sheet(report: Report) -> RunCells:
    """Fill the sheet Runs."""
    sheet = report.book.sheets["Runs"]
    widths = _widths(report)
    columns = {column: place for place, column in enumerate(widths)}
    add_title_rows(
        sheet,
        "Every run that was predicted. Blue: as measured. Grey: as predicted when this file was made, or "
        "derived from TTFT and TPOT in place of measured; low and high: the 80 % range. "
        "Black: formulas; inside is 1 where measured lies in the range; all errors of Summary and "
        "Groups are worked out from them.",
        list(widths.values()),
        (TOP, 1),
    )
    _heads(report, sheet, columns)
    cells = RunCells(columns, {column: [] for column in columns if column not in _ORIGIN})
    for row, run in enumerate(report.table.to_dict("records"), TOP):
        for column in (*ASKED, *_ORIGIN):
            _asked_cell(report.book, sheet, row, column, run, cells)
        for metric in report.metrics:
            _metric_cells(report.book, sheet, row, metric, run, cells)
    last = TOP + len(report.table) - 1
    sheet.paper = 8
    sheet.autofilter = (TOP - 1, 0, last, len(columns) - 1)
    sheet.print_area = (0, 0, last, columns["version"] - 1)
    return cells


def _widths(report: Report) -> dict[str, int]:
    """All columns in their order, with their widths."""
    compared, workings = (
        {
            f"{metric.name}_{what}": width
            for metric in report.metrics
            for what, width in of(metric.name).items()
        }
        for of in (_compared, lambda name: _WORKINGS)
    )
    return {column: width for column, (_, width) in ASKED.items()} | compared | _ORIGIN | workings


def _compared(metric: str) -> dict[str, int]:
    """What a metric has for each run, with widths."""
    return _COMPARED | (_RANGE if metric in RANGES else {})


def _heads(report: Report, sheet: Sheet, columns: dict[str, int]) -> None:
    """The metric above its columns, and the heads."""
    for metric in report.metrics:
        title = f"{metric.label}, {style.shown_unit(metric.unit)}"
        for parts in (_compared(metric.name), _WORKINGS):
            for what in parts:
                first = what == next(iter(parts))
                look = style.BLOCK_HEAD.but(left=(style.THIN, style.HAIRLINE) if first else None)
                sheet.set_text(TOP - 2, columns[f"{metric.name}_{what}"], title if first else "", look)
    texts = {*ASKED, *_ORIGIN} - {*NUMBERS}
    right = tuple(place for column, place in columns.items() if column not in texts)
    beside = {f"{metric.name}_measured": metric.beside for metric in report.metrics}
    heads = [
        ASKED[column][0] if column in ASKED else beside.get(column, column.rpartition("_")[2])
        for column in columns
    ]
    add_heads(sheet, TOP - 1, heads, right)
    lengths = sheet.cells[TOP - 1, columns["lengths"]]
    lengths.style = lengths.style.but(indent=1)


def _asked_cell(
    book: Book, sheet: Sheet, row: int, column: str, run: Mapping[Any, Any], cells: RunCells
) -> None:
    value = "; ".join(run[column]) if column == "assumptions" else run[column]
    look = _LOOKS.get(column, style.ROW_LABEL)
    if column in _ORIGIN:
        sheet.set_text(row, cells.columns[column], str(value or "")[:LONGEST], look)
        return
    if value is None:
        value = other_load(run)
    value = float(value) if column in NUMBERS and not isinstance(value, str) else str(value)
    cells.figures[column].append(
        add_value(book, sheet, row, cells.columns[column], f"run.{row}.{column}", value, look)
    )


def _metric_cells(
    book: Book, sheet: Sheet, row: int, metric: ComparedMetric, run: Mapping[Any, Any], cells: RunCells
) -> None:
    """A metric measured and predicted, their ratio and errors; those stay empty where it was not measured."""
    shown: dict[str, Input] = {}
    for what in ("measured", "predicted"):
        column = f"{metric.name}_{what}"
        derived = what == "measured" and metric.name == "throughput" and math.isfinite(run[DERIVED])
        value = (run[DERIVED] if derived else run[column]) * metric.scale
        value = value if math.isfinite(value) and value > 0 else ""
        look = _METRIC_LOOKS[metric.name, "predicted" if derived else what]
        shown[what] = add_value(book, sheet, row, cells.columns[column], f"run.{row}.{column}", value, look)
        cells.figures[column].append(shown[what])
    compared = math.isfinite(run[f"{metric.name}_ratio"]) and "" not in [one.value for one in shown.values()]
    errors = _error_formulas(f"run.{row}.{metric.name}", shown["measured"], shown["predicted"])
    for what, quantity in errors.items():
        column = f"{metric.name}_{what}"
        place = (sheet, row, cells.columns[column])
        if compared:
            book.add_quantity(*place, quantity, _ERROR_LOOKS[what])
            cells.figures[column].append(quantity)
        else:
            cells.figures[column].append(add_value(book, *place, quantity.id, "", _ERROR_LOOKS[what]))
    if metric.name in RANGES:
        _range_cells(book, sheet, row, metric, run, cells, shown["measured"] if compared else None)


def _range_cells(
    book: Book,
    sheet: Sheet,
    row: int,
    metric: ComparedMetric,
    run: Mapping[Any, Any],
    cells: RunCells,
    measured: Input | None,
) -> None:
    """Both ends of the 80 % range, and whether what was measured lies between them; empty where the range is
    not known."""
    ends: list[Input] = []
    for what in ("low", "high"):
        column = f"{metric.name}_{what}"
        value = run[column] * metric.scale
        value, look = value if math.isfinite(value) else "", _METRIC_LOOKS[metric.name, what]
        ends.append(add_value(book, sheet, row, cells.columns[column], f"run.{row}.{column}", value, look))
        cells.figures[column].append(ends[-1])
    column = f"{metric.name}_inside"
    name, place = f"run.{row}.{column}", (sheet, row, cells.columns[column])
    inside: Named
    if measured is None or "" in [end.value for end in ends]:
        inside = add_value(book, *place, name, "", _INSIDE)
    else:
        between = where(all_of(measured >= ends[0], measured <= ends[1]), 1, 0)
        inside = Quantity(name, "Inside the range", "flag", between)
        book.add_quantity(*place, inside, _INSIDE)
    cells.figures[column].append(inside)


def _error_formulas(name: str, measured: Input, predicted: Input) -> dict[str, Quantity]:
    """Ratio and errors of a run."""
    ratio = Quantity(f"{name}_ratio", "Predicted ÷ measured", "1", predicted / measured)
    error = Quantity(f"{name}_error", "Error", "1", ratio - 1)
    return {
        "ratio": ratio,
        "error": error,
        "|error|": Quantity(f"{name}_absolute", "Size of the error", "1", absolute(error)),
        "|ln ratio|": Quantity(
            f"{name}_log", "Size of the logarithm of the ratio", "1", absolute(logarithm(ratio))
        ),
    }


def add_value(
    book: Book, sheet: Sheet, row: int, column: int, identifier: str, value: float | str, look: Style
) -> Input:
    """A number or text that formulas refer to; an empty text leaves the cell empty."""
    figure = Input(identifier, identifier, "1", value)
    book.register(figure, CellAddress(sheet.name, row, column))
    is_text = isinstance(value, str)
    text, number = (str(value)[:LONGEST], None) if is_text else (None, float(value))
    sheet.set_cell(row, column, Cell(look, text=text, number=number))
    return figure
