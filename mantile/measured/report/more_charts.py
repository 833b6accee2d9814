"""The sheet Charts: for each metric where its errors lie by TP, framework and lengths; and what Summary draws
of the headline metric, for the others."""

from __future__ import annotations

import math

import numpy as np

from mantile.graph.quantity import Named, absolute, index, join, match, maximum, span
from mantile.measured.metrics import ComparedMetric
from mantile.measured.report import charts
from mantile.measured.report.charts import ChartData
from mantile.measured.report.contents import PERCENT, SIGNED, Report
from mantile.measured.report.runs import RunCells
from mantile.measured.report.summary import CHART_ROWS, COLUMN, FINDING, Drawing, add_section
from mantile.workbook import style

KINDS = {"tp": "TP", "framework": "framework", "lengths": "input and output"}
_MOST = 8
"""Groups of a chart: the largest."""
PARTS = {"median": 50, "p25": 25, "p75": 75, "p10": 10, "p90": 90}
"""Percentiles of a box and its line."""


def charts_sheet(report: Report, cells: RunCells, mode: Named, errors: dict[str, dict[str, Named]]) -> None:
    """Fill the sheet Charts.

    Args:
        mode: the cell that names the mode of the headline; `errors` of each metric in it.
    """
    sheet = report.book.sheets["Charts"]
    sheet.widths = [12, *[COLUMN] * 9]
    sheet.set_text(0, 1, "Errors of each metric", style.SHEET_TITLE)
    sheet.set_text(
        1,
        1,
        "A box holds half of the runs, its line 80 %, the mark is the median; as generated. Scatter and "
        "histogram are live over Runs; those of the headline metric are on Summary.",
        style.PURPOSE,
    )
    shown = [metric for metric in report.metrics if metric.name in errors]
    rows = {metric.name: 1 + (2 if metric is not report.metric else 1) * CHART_ROWS for metric in shown}
    data = ChartData(report.book, sheet, 4 + sum(rows.values()) + 6)
    row = 3
    for metric in shown:
        add_section(sheet, row, metric.label, f"{report.mode} runs")
        at = row + 1
        drawing = Drawing(report, metric, sheet, cells, data, mode, errors[metric.name], f"{metric.name}.")
        if metric is not report.metric:
            drawing.scatter(at, 1)
            drawing.histogram(at, 4)
            at += CHART_ROWS
        for column, kind in zip((1, 4, 7), KINDS, strict=True):
            _boxes(report, drawing, metric, kind, (at, column))
        row += rows[metric.name]
    sheet.print_area = (0, 1, row, 9)


def _boxes(
    report: Report, drawing: Drawing, metric: ComparedMetric, kind: str, place: tuple[int, int]
) -> None:
    """Boxes of the largest groups of a kind, with the group that is furthest off above them."""
    part = report.modes[report.mode]
    part = part[part[f"{metric.name}_ratio"].notna()]
    counts = part[kind].value_counts()
    keys = sorted(counts.index[:_MOST], key=lambda key: (isinstance(key, str), key))
    rows: list[list[Named]] = []
    least = most = 0.0
    for number, key in enumerate(keys):
        off = part[f"{metric.name}_ratio"][part[kind] == key].to_numpy(float) - 1
        name = f"box.{kind}.{number}"
        title = f"{key}" if isinstance(key, str) else f"{KINDS[kind]} {int(key)}"
        ends = dict(zip(PARTS, np.percentile(off, [*PARTS.values()]).tolist(), strict=True))
        label = drawing.constant(f"{name}.label", f"{title}   {len(off)}")
        median = drawing.constant(f"{name}.median", ends.pop("median"))
        away = [
            drawing.constant(f"{name}.{what}", abs(end - float(median.value or 0)))
            for what, end in ends.items()
        ]
        least, most = min(least, *ends.values()), max(most, *ends.values())
        rows.append([label, median, *away, drawing.quantity(f"{name}.off", absolute(median))])
    beside = [f"{what} from it *" for what in [*PARTS][1:]]
    titles = [f"{KINDS[kind]}, runs", "median *", *beside, "|median|"]
    first = drawing.data.add_block(titles, rows, ["", *[SIGNED] * len(PARTS), PERCENT])
    medians, labels = span([row[-1] for row in rows]), span([row[0] for row in rows])
    furthest = index(labels, match(maximum(medians), medians))
    row, column = place
    drawing.sheet.set_formula(row, column, join(f"By {KINDS[kind]}, furthest: ", furthest, " runs"), FINDING)
    names, middle, *places = (drawing.data.range(first, len(rows), at) for at in range(1, 2 + len(PARTS)))
    box, line = (places[0], places[1]), (places[2], places[3])
    chart = charts.boxes(metric.label_inside, KINDS[kind], names, middle, box, line, _axis(least, most))
    drawing.sheet.charts.append((row + 1, column, chart))


def _axis(least: float, most: float) -> tuple[float, float]:
    """Round ends of an axis that holds both, and 0."""
    step = next(step for step in (0.05, 0.1, 0.25, 0.5, 1.0, math.inf) if most - least <= 6 * step)
    if math.isinf(step):
        step = 10.0 ** math.ceil(math.log10(most - least)) / 2
    return step * math.floor(least / step), step * math.ceil(max(most, step) / step)
