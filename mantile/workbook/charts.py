"""Charts as plain descriptions, in one look; the writer hands them to XlsxWriter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

from mantile.workbook import style

Range = tuple[str, int, int, int, int]
"""Sheet, first row, first column, last row, last column, from 0."""


@dataclass
class Chart:
    """What XlsxWriter needs for one chart.

    The finding stands in the cell above the chart, where it is live; `series` and axes are XlsxWriter's own
    words. `lines` are series over the columns of `series`, on the same axes.
    """

    kind: dict[str, str]
    alt: str
    size: tuple[int, int]
    plot: tuple[float, float, float, float]
    series: list[dict[str, Any]]
    x_axis: dict[str, Any] = field(default_factory=dict)
    y_axis: dict[str, Any] = field(default_factory=dict)
    legend: dict[str, Any] = field(default_factory=lambda: {"none": True})
    lines: list[dict[str, Any]] = field(default_factory=list)


AXIS_FONT = {"name": "Calibri", "size": style.SMALL, "color": style.GREY}
_CATEGORY_FONT = {"name": "Calibri", "size": style.SMALL, "color": style.INK}
_GRID = {"visible": True, "line": {"color": style.GRID, "width": 0.5}}
_NO_LINE = {"none": True}


def cells(place: Range) -> list[Any]:
    """A range as XlsxWriter takes it."""
    sheet, row, column, last_row, last_column = place
    return [sheet, row, column, last_row, last_column]


def area(place: Range) -> str:
    """A range as a formula, for ends of bars."""
    sheet, row, column, last_row, last_column = place
    first, last = (xl_rowcol_to_cell(*at, True, True) for at in ((row, column), (last_row, last_column)))
    return f"='{sheet}'!{first}:{last}"


def cell(sheet: str, row: int, column: int) -> str:
    """A cell as a formula, for titles and series names."""
    return f"='{sheet}'!${xl_col_to_name(column)}${row + 1}"


def value_axis(unit: str, **more: Any) -> dict[str, Any]:
    """An axis of numbers from 0, with grid lines and without a line of its own."""
    return {
        "num_font": AXIS_FONT,
        "num_format": f'#,##0" {unit}"' if unit else "#,##0",
        "major_gridlines": _GRID,
        "line": _NO_LINE,
        "min": 0,
        "major_tick_mark": "none",
        **more,
    }


def point_axis(name: str, form: str = "#,##0", **more: Any) -> dict[str, Any]:
    """An axis of numbers under points or lines between them, with its name."""
    return {
        "num_font": AXIS_FONT,
        "num_format": form,
        "major_gridlines": _GRID,
        "line": {"color": style.GRID},
        "name": name,
        "name_font": AXIS_FONT | {"bold": False},
        **more,
    }


def category_axis(**more: Any) -> dict[str, Any]:
    """Top to bottom, with the value axis kept at the bottom."""
    return {
        "reverse": True,
        "num_font": _CATEGORY_FONT,
        "line": _NO_LINE,
        "major_tick_mark": "none",
        "crossing": "max",
        "major_gridlines": {"visible": False},
        **more,
    }


def bars(
    alt: str,
    categories: Range,
    series: list[tuple[str, Range]],
    unit: str,
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
    gap: int = 38,
) -> Chart:
    """Stacked horizontal bars, one series per limit or plain colour."""
    return Chart(
        {"type": "bar", "subtype": "stacked"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": gap,
            }
            for colour, values in series
        ],
        x_axis=value_axis(unit),
        y_axis=category_axis(),
    )


def singled_out(
    alt: str,
    categories: Range,
    others: Range,
    best: Range,
    form: str,
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Horizontal bars with their values at the ends and no value axis, one of them in colour.

    A value is 0 where the bar is of the other series.
    """
    form = form if form.startswith("[") else f"{form};;"  # nothing where the bar is of the other series
    label = {
        "value": True,
        "position": "outside_end",
        "num_format": form,
        "font": {"name": "Calibri", "size": style.SMALL, "bold": True, "color": style.INK},
    }
    return Chart(
        {"type": "bar"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": 38,
                "overlap": 100,
                "data_labels": label,
            }
            for colour, values in ((style.OVERHEAD, others), (style.COMPUTE, best))
        ],
        x_axis={"visible": False, "min": 0, "major_gridlines": {"visible": False}},
        y_axis=category_axis(),
    )


def columns(alt: str, series: list[tuple[str, Range]], size: tuple[int, int]) -> Chart:
    """Stacked columns over the cells of a row, without axes: each stands above the cell of its number."""
    return Chart(
        {"type": "column", "subtype": "stacked"},
        alt,
        size,
        (0.0, 0.06, 1.0, 0.94),
        [
            {"values": cells(values), "fill": {"color": colour}, "border": {"none": True}, "gap": 70}
            for colour, values in series
        ],
        x_axis={"visible": False, "major_gridlines": {"visible": False}},
        y_axis={"visible": False, "major_gridlines": {"visible": False}, "min": 0},
    )


def split(
    alt: str,
    categories: Range,
    series: list[tuple[str, str, Range]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Two bars of 100 %, labelled where there is room."""
    return Chart(
        {"type": "bar", "subtype": "percent_stacked"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"color": colour},
                "gap": 35,
                "border": {"color": style.WHITE, "width": 1},
                "data_labels": {
                    "value": True,
                    "position": "center",
                    "num_format": style.FRONT["share"],
                    "font": {"name": "Calibri", "size": style.SMALL, "bold": True, "color": text},
                },
            }
            for colour, text, values in series
        ],
        x_axis={"visible": False, "major_gridlines": {"visible": False}},
        y_axis=category_axis(),
    )


def stack(
    alt: str,
    series: list[tuple[str, str, Range]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """One bar up to a capacity; the names of the series carry their values and stand in the one legend."""
    return Chart(
        {"type": "bar", "subtype": "stacked"},
        alt,
        size,
        plot,
        [
            {
                "name": name,
                "values": cells(values),
                "fill": {"color": colour},
                "gap": 20,
                "border": {"color": style.SECOND, "width": 0.75} if colour == style.WHITE else {"none": True},
            }
            for colour, name, values in series
        ],
        x_axis=value_axis("GB") | {"major_gridlines": {"visible": False}},
        y_axis={"visible": False, "major_gridlines": {"visible": False}},
        legend={"position": "bottom", "font": {"name": "Calibri", "size": style.SMALL, "color": style.GREY}},
    )


def roofline(
    alt: str,
    roof: list[tuple[Range, Range, str, bool]],
    points: list[tuple[str | None, Range, Range, str, str, str]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Log-log: roofs as lines, a point per module.

    Args:
        roof: x, y, colour and whether dashed.
        points: label (None for none), x, y, colour, marker, label position.
    """
    return Chart(
        {"type": "scatter", "subtype": "straight"},
        alt,
        size,
        plot,
        [*(_roof(*line) for line in roof), *(_point(*point) for point in points)],
        x_axis=point_axis("arithmetic intensity, FLOP per byte", log_base=10, crossing=1, min=1, max=10_000),
        y_axis=point_axis("TFLOP/s per accelerator", log_base=10, crossing=1, min=1),
    )


def _roof(x: Range, y: Range, colour: str, dashed: bool) -> dict[str, Any]:
    """A series that is a line without markers."""
    line = {"color": colour, "width": 1, "dash_type": "dash"} if dashed else {"color": colour, "width": 1.5}
    return {"categories": cells(x), "values": cells(y), "marker": {"type": "none"}, "line": line}


def _point(label: str | None, x: Range, y: Range, colour: str, marker: str, position: str) -> dict[str, Any]:
    """A series of one marker, with its label beside it if it has one."""
    series: dict[str, Any] = {
        "categories": cells(x),
        "values": cells(y),
        "line": {"none": True},
        "marker": {"type": marker, "size": 8, "fill": {"color": colour}, "border": {"color": colour}},
    }
    if label is None:
        return series
    font = {
        "name": "Calibri",
        "size": style.SMALL,
        "bold": True,
        "color": style.MEMORY_TEXT if colour == style.MEMORY else colour,
    }
    data_labels = {"series_name": True, "value": False, "position": position, "font": font}
    return series | {"name": label, "data_labels": data_labels}


def lines(
    alt: str,
    categories: Range,
    series: list[Range],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """A line per series over values of an input, the first in colour."""
    return Chart(
        {"type": "line"},
        alt,
        size,
        plot,
        [
            {"categories": cells(categories), "values": cells(values), **_stroke(place)}
            for place, values in enumerate(series)
        ],
        x_axis={
            "num_font": AXIS_FONT,
            "line": {"color": style.GRID},
            "major_tick_mark": "none",
            "major_gridlines": {"visible": False},
        },
        y_axis=value_axis("", num_format="General"),
    )


def curves(
    alt: str,
    series: list[tuple[Range, Range]],
    notes: list[tuple[str, Range, Range]],
    now: tuple[Range, Range],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Points joined by lines, the first curve in colour.

    Some points carry a name; a large mark is the live scenario.
    """
    made: list[dict[str, Any]] = [
        {"categories": cells(x), "values": cells(y), **_stroke(place)} for place, (x, y) in enumerate(series)
    ]

    def mark(name: str, x: Range, y: Range, size: int, position: str, colour: str) -> dict[str, Any]:
        return {
            "name": name,
            "categories": cells(x),
            "values": cells(y),
            "line": {"none": True},
            "marker": {
                "type": "circle",
                "size": size,
                "fill": {"color": colour},
                "border": {"color": colour},
            },
            "data_labels": {
                "series_name": True,
                "value": False,
                "position": position,
                "font": {"name": "Calibri", "size": style.SMALL, "bold": True, "color": colour},
            },
        }

    made += [mark(name, x, y, 5, "right", style.COMPUTE) for name, x, y in notes]
    made.append(mark("now", *now, 10, "below", style.NAVY))  # curves fall: there is room
    return Chart(
        {"type": "scatter", "subtype": "straight_with_markers"},
        alt,
        size,
        plot,
        made,
        x_axis=point_axis("interactivity, tokens/s per user", min=0),
        y_axis=point_axis("output tokens/s per accelerator", min=0),
    )


def front(
    alt: str,
    best: tuple[Range, Range],
    others: tuple[Range, Range],
    winner: tuple[Range, Range],
    limit: tuple[Range, Range],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Points, those that no other beats joined by a line, a large mark for the winner, a line as limit."""

    def marks(x: Range, y: Range, size: int, colour: str, joined: bool) -> dict[str, Any]:
        line = {"color": colour, "width": 1.5} if joined else {"none": True}
        fill = {"fill": {"color": colour}, "border": {"color": colour}}
        return {
            "categories": cells(x),
            "values": cells(y),
            "line": line,
            "marker": {"type": "circle", "size": size, **fill},
        }

    return Chart(
        {"type": "scatter", "subtype": "straight_with_markers"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(limit[0]),
                "values": cells(limit[1]),
                "line": {"color": style.SECOND, "width": 1.25, "dash_type": "dash"},
                "marker": {"type": "none"},
            },
            marks(*others, 3, style.MUTE, False),
            marks(*best, 5, style.COMPUTE, True),
            marks(*winner, 11, style.NAVY, False),
        ],
        x_axis=point_axis("interactivity, tokens/s per user", min=0),
        y_axis=point_axis("output tokens/s per accelerator", min=0),
    )


def demand(
    alt: str,
    categories: Range,
    series: list[tuple[str, Range]],
    lines: list[tuple[str, bool, Range]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Stacked columns over categories, and lines above them: colour, whether dashed, values."""
    return Chart(
        {"type": "column", "subtype": "stacked"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": 40,
            }
            for colour, values in series
        ],
        x_axis={
            "num_font": AXIS_FONT,
            "line": {"color": style.GRID},
            "major_tick_mark": "none",
            "major_gridlines": {"visible": False},
        },
        y_axis=value_axis("", visible=False),
        lines=[
            {
                "categories": cells(categories),
                "values": cells(values),
                "marker": {"type": "none"},
                "line": _line(colour, dashed, 1.75),
            }
            for colour, dashed, values in lines
        ],
    )


def options(
    alt: str,
    lines: list[tuple[str, bool, Range, Range]],
    marks: list[tuple[str | None, str, Range, Range]],
    axes: tuple[dict[str, Any], dict[str, Any]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
) -> Chart:
    """Lines of options, and points on them.

    Args:
        lines: colour, whether dashed, x, y.
        marks: name beside the point (None for none), colour, x, y.
    """
    return Chart(
        {"type": "scatter", "subtype": "straight"},
        alt,
        size,
        plot,
        [
            {
                "categories": cells(x),
                "values": cells(y),
                "marker": {"type": "none"},
                "line": _line(colour, dashed, 1.75),
            }
            for colour, dashed, x, y in lines
        ]
        + [_point(name, x, y, colour, "circle", "right") for name, colour, x, y in marks],
        x_axis=axes[0],
        y_axis=axes[1],
    )


def _line(colour: str, dashed: bool, width: float) -> dict[str, Any]:
    return {"color": colour, "width": width} | ({"dash_type": "dash"} if dashed else {})


def _stroke(place: int) -> dict[str, Any]:
    colour = style.SECOND if place else style.COMPUTE
    return {
        "line": {"color": colour, "width": 1.25 if place else 2},
        "marker": {
            "type": "square" if place else "circle",
            "size": 5,
            "fill": {"color": colour},
            "border": {"color": colour},
        },
    }


def tornado(
    alt: str,
    categories: Range,
    series: list[tuple[str, str, Range]],
    room: list[Range],
    size: tuple[int, int],
    form: str = '+0.0%;"−"0.0%;""',
) -> Chart:
    """Signed changes to both sides of 0, largest first.

    Colour of bars, colour of their labels, values; and unseen bars that keep room for labels.
    """
    return Chart(
        {"type": "bar", "subtype": "clustered"},
        alt,
        size,
        (0.47, 0.02, 0.48, 0.94),
        [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"color": colour},
                "border": {"none": True},
                "gap": 38,
                "overlap": 100,
                "data_labels": {
                    "value": True,
                    "position": "outside_end",
                    "num_format": form,
                    "font": {"name": "Calibri", "size": style.SMALL, "bold": True, "color": label},
                },
            }
            for colour, label, values in series
        ]
        + [
            {
                "categories": cells(categories),
                "values": cells(values),
                "fill": {"none": True},
                "border": {"none": True},
                "gap": 38,
                "overlap": 100,
            }
            for values in room
        ],
        x_axis={"visible": False, "major_gridlines": {"visible": False}},
        y_axis=category_axis(label_position="low", line={"color": style.SECOND}),
    )


def ranges(
    alt: str,
    categories: Range,
    begin: Range,
    series: list[tuple[str, Range]],
    size: tuple[int, int],
    share: float,
) -> Chart:
    """Bars from one end of a range to the other, in two parts that meet where a value is expected.

    Args:
        begin: where bars begin.
        series: colour and lengths of the parts, one after the other.
        share: of the height that bars have; below them stands the axis.
    """
    made = bars(alt, categories, series, "", size, (0.02, 0.0, 0.94, share), gap=90)
    for one in made.series:
        one["border"] = {"color": "#FFFFFF", "width": 1}
    made.series.insert(
        0,
        {
            "categories": cells(categories),
            "values": cells(begin),
            "fill": {"none": True},
            "border": {"none": True},
            "gap": 90,
        },
    )
    made.y_axis |= {"num_font": _CATEGORY_FONT, "label_position": "none"}
    made.x_axis |= {"num_format": "General"}
    return made


def timeline(
    alt: str,
    categories: Range,
    start: Range,
    series: list[tuple[str, Range]],
    size: tuple[int, int],
    plot: tuple[float, float, float, float],
    unit: str = "us",
) -> Chart:
    """Steps one after the other: an unseen bar up to the start, then the step in the colour of its limit."""
    made = bars(alt, categories, series, unit, size, plot, gap=20)
    made.y_axis |= {"num_font": _CATEGORY_FONT, "interval_unit": 1}
    made.x_axis |= {"num_font": AXIS_FONT | {"size": 9.3}}
    made.series.insert(
        0,
        {
            "categories": cells(categories),
            "values": cells(start),
            "fill": {"none": True},
            "border": {"none": True},
            "gap": 20,
        },
    )
    return made
