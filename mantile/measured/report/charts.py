"""The charts on a report's Summary, and the cells below the printed page that they are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mantile.graph.quantity import Named, Quantity
from mantile.workbook import style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.charts import AXIS_FONT, Chart, Range, area, category_axis, cells, value_axis
from mantile.workbook.style import Style

Ends = tuple[Range, Range]
"""Cells of how far something goes below and above."""
SIZE = (442, 262)  # pixels; a chart spans three columns of Summary
_PLOT = (0.125, 0.03, 0.85, 0.76)
_NAME_FONT = {"name": "Calibri", "size": 8, "color": style.GREY, "bold": False}


@dataclass
class ChartData:
    """Cells that charts are drawn from, below the printed page.

    Args:
        book, sheet: where they stand.
        row: where the next block begins.
    """

    book: Book
    sheet: Sheet
    row: int

    def __post_init__(self) -> None:
        self.sheet.set_text(self.row, 1, "Chart data (live, not printed)", style.BLOCK_NOTE)
        self.row += 1

    def add_block(self, heads: Sequence[str], rows: Sequence[Sequence[Named]], forms: Sequence[str]) -> int:
        """A block of figures with their heads.

        Args:
            forms: number format of each column; an empty one for texts.

        Returns:
            Its first row of figures.
        """
        for column, head in enumerate(heads, 1):
            self.sheet.set_text(self.row, column, head, style.UNIT)
        first = self.row + 1
        for row, figures in enumerate(rows, first):
            for column, (figure, form) in enumerate(zip(figures, forms, strict=True), 1):
                look = style.VALUE.but(size=9, form=form) if form else style.UNIT
                self._add(row, column, figure, look)
        self.row = first + len(rows) + 1
        return first

    def range(self, first: int, count: int, column: int) -> Range:
        """The cells of a column of a block."""
        return (self.sheet.name, first, column, first + count - 1, column)

    def _add(self, row: int, column: int, figure: Named, look: Style) -> None:
        if isinstance(figure, Quantity):
            self.book.add_quantity(self.sheet, row, column, figure, look)
        else:
            self.book.add_constant(self.sheet, row, column, figure, look)


def _axis_name(text: str) -> dict[str, Any]:
    return {"name": text, "name_font": _NAME_FONT}


def _points(x: Range, y: Range, **look: Any) -> dict[str, Any]:
    return {"categories": cells(x), "values": cells(y), **look}


def scatter(
    metric: str,
    unit: str,
    runs: Sequence[tuple[str, Range, Range, str]],
    lines: Sequence[tuple[Range, Range, bool]],
    ends: tuple[float, float],
) -> Chart:
    """Predicted against measured, both axes logarithmic.

    Args:
        metric: its name inside a sentence; `unit` that of both axes.
        runs: mode, measured, predicted and colour of each series of runs.
        lines: x, y and whether dashed: predicted as measured, and the limits of what counts as near.
        ends: of both axes.
    """
    series = [
        _points(
            x,
            y,
            name=mode,
            line={"none": True},
            marker={
                "type": "circle",
                "size": 3,
                "fill": {"color": colour, "transparency": 45},
                "border": {"none": True},
            },
        )
        for mode, x, y, colour in runs
    ]
    solid, dash = {"color": style.INK, "width": 1}, {"color": style.SECOND, "width": 1, "dash_type": "dash"}
    drawn = [_points(x, y, marker={"type": "none"}, line=dash if dashed else solid) for x, y, dashed in lines]
    low, high = ends
    axis = value_axis("", num_format="#,##0.###" if low < 1 else "#,##0") | {
        "log_base": 10,
        "min": low,
        "max": high,
        "crossing": low,
        "line": {"color": style.GRID},
    }
    others = f"; orange: {runs[1][0]}" if len(runs) > 1 else ""
    return Chart(
        {"type": "scatter", "subtype": "straight"},
        f"Predicted against measured {metric} of every run, both axes logarithmic",
        SIZE,
        _PLOT,
        [*series[1:], *drawn, *series[:1]],
        x_axis=axis | _axis_name(f"measured {metric}, {unit}; dashed: ±20 %{others}"),
        y_axis=axis | _axis_name(f"predicted, {unit}"),
    )


def histogram(metric: str, labels: Range, near: Range, far: Range) -> Chart:
    """How many runs by error, those near to what was measured in colour."""
    return Chart(
        {"type": "column", "subtype": "stacked"},
        f"How many runs by error of {metric}, in steps of five percent",
        SIZE,
        _PLOT,
        [
            _points(labels, values, fill={"color": colour}, border={"none": True}, gap=12)
            for values, colour in ((near, style.COMPUTE), (far, style.OVERHEAD))
        ],
        x_axis={
            "num_font": AXIS_FONT,
            "line": {"color": style.GRID},
            "major_tick_mark": "none",
            "major_gridlines": {"visible": False},
        }
        | _axis_name(
            f"{metric} error, %, from … of each bin; first and last: all beyond; blue: within ±10 %"
        ),
        y_axis=value_axis("") | _axis_name("runs"),
    )


def boxes(
    metric: str, kind: str, labels: Range, medians: Range, box: Ends, line: Ends, ends: tuple[float, float]
) -> Chart:
    """Where errors of groups lie: a box holds half of the runs, its line 80 %, the mark is the median.

    Args:
        kind: what the groups have in common, inside a sentence.
        box, line: how far each goes below and above the median; `ends` of the axis.
    """
    mark = {"type": "diamond", "size": 6, "fill": {"color": style.INK}, "border": {"color": style.INK}}
    drawn = ((box, style.CAPACITY_BAR, 11, {"type": "none"}), (line, style.COMPUTE, 1.25, mark))
    return Chart(
        {"type": "line"},
        f"Errors of {metric} by {kind}: box half of the runs, line 80 %, mark the median",
        SIZE,
        (0.125, 0.03, 0.85, 0.68),
        [
            _points(
                labels,
                medians,
                line={"none": True},
                marker=marker,
                y_error_bars={
                    "type": "custom",
                    "minus_values": area(below),
                    "plus_values": area(above),
                    "end_style": 0,
                    "line": {"color": colour, "width": width},
                },
            )
            for (below, above), colour, width, marker in drawn
        ],
        x_axis={
            "num_font": AXIS_FONT,
            "label_position": "low",
            "line": {"color": style.INK},
            "major_tick_mark": "none",
            "major_gridlines": {"visible": False},
        }
        | _axis_name(f"{kind}; behind the name: runs"),
        y_axis=value_axis("", num_format="0%")
        | {"min": ends[0], "max": ends[1]}
        | _axis_name(f"error of {metric}"),
    )


def bars(
    metric: str,
    kind: str,
    labels: Range,
    furthest: Range,
    others: Range,
    end: float,
    longest: int,
    several: bool,
) -> Chart:
    """MAPE of groups, the one furthest off in the colour of attention.

    Args:
        kind: what the groups have in common, inside a sentence.
        end: of the axis.
        longest: characters of the longest label.
        several: whether there are more groups than one.
    """
    marked = (style.MEMORY, style.MEMORY_TEXT) if several else (style.COMPUTE, style.INK)
    left = min(0.52, max(0.22, 0.0145 * longest))

    def labelled(colour: str) -> dict[str, Any]:
        font = {"name": "Calibri", "size": 8.5, "bold": True, "color": colour}
        return {"value": True, "position": "outside_end", "num_format": "[>0]0.0%;;", "font": font}

    return Chart(
        {"type": "bar"},
        f"Mean absolute error of {metric} by {kind}",
        SIZE,
        (left, 0.03, 0.96 - left, 0.76),
        [
            _points(
                labels,
                values,
                fill={"color": colour},
                border={"none": True},
                gap=45,
                overlap=100,
                data_labels=labelled(text),
            )
            for values, (colour, text) in ((furthest, marked), (others, (style.COMPUTE, style.INK)))
        ],
        x_axis=value_axis("", num_format="0%", max=end)
        | _axis_name(f"MAPE of {metric}; behind the name: runs"),
        y_axis=category_axis(),
    )
