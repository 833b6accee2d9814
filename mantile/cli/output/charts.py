"""Charts of a sweep: the front that no point beats, how a figure is spread, a figure over two parameters.

Points that cannot be are on none of them. Charts need matplotlib, the extra `charts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mantile.equations.metrics import METRICS, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR, Metric
from mantile.library.errors import InputError, near

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["front", "histogram", "heatmap"]
KINDS: tuple[Kind, ...] = ("front", "histogram", "heatmap")
ENDINGS = (".png", ".svg", ".html")
MOST_POINTS = 2_000_000  # that a chart is made of
MOST_DOTS = 4_000  # behind a front
MOST_LABELS = 14  # of points of a front
MOST_CELLS = 400  # of a heat map that say their number
BINS = 40
_SIZE = (9.0, 6.0)  # inches
_LABEL_ROOM = 0.25  # of the width, right of the last point
_APART = 0.045  # of the height, between two labels
DARK, LIGHT = "#1f4e79", "#c9d3dd"
SETTINGS: Any = {"svg.hashsalt": "mantile", "svg.fonttype": "none", "font.size": 10.0, "figure.dpi": 120.0}


def require_matplotlib(path: Path) -> None:
    """Refuse to draw without matplotlib.

    Raises:
        InputError: saying how to get it.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{path}: charts need matplotlib: pip install 'mantile[charts]'; or a file name that ends in .csv"
        )


@dataclass
class Chart:
    """What a chart is made of: the points that can be, as tables pass by.

    Args:
        kind: of chart.
        figure: that a histogram or heat map shows.
        parameters: columns that say which point it is.
    """

    kind: Kind
    figure: Metric
    parameters: tuple[str, ...]
    points: list[Any] = field(default_factory=list)
    count: int = 0

    def add(self, table: pd.DataFrame) -> None:
        """Take the points of a table that can be.

        Raises:
            InputError: for more points than a chart takes.
        """
        from mantile.estimates.sweep import FRONT, possible

        wanted = dict.fromkeys(
            (*self.parameters, *(FRONT if self.kind == "front" else (self.figure.column,)))
        )
        kept = table.loc[possible(table), [*wanted]]
        self.count += len(kept)
        if self.count > MOST_POINTS:
            raise InputError(
                f"a chart is made of at most {MOST_POINTS:,} points; fewer values with --over, or --where"
            )
        self.points.append(kept)

    def table(self) -> pd.DataFrame:
        """All points so far."""
        import pandas as pd

        return pd.concat(self.points, ignore_index=True)


def chart_of(kind: str | None, figure: str | None, parameters: Sequence[str], files: Sequence[Path]) -> Chart:
    """The chart that was asked for, before anything is worked out.

    Raises:
        InputError: for a kind or figure that there is not, two parameters that are missing, a folder that is
            not there, or where matplotlib is absent.
    """
    name = kind or "front"
    if name not in KINDS:
        raise InputError(f"--kind {name!r:.40}: expected one of {', '.join(KINDS)}; {near(name, KINDS)}")
    if figure is not None and name == "front":
        raise InputError(
            f"--figure {figure}: a front shows two figures; expected --kind histogram or heatmap"
        )
    if name == "heatmap" and len(parameters) < 2:
        raise InputError(
            "--kind heatmap: expected two parameters with --over, such as tp=1,2 and concurrency=1..8"
        )
    for path in files:
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}")
    require_matplotlib(files[0])
    columns = {metric.column: metric for metric in METRICS}
    asked = figure or OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column
    found = columns.get(asked) or columns.get(f"{asked}_s")
    if found is None:
        raise InputError(f"--figure {asked!r:.40}: there is no such figure; {near(asked, columns)}")
    return Chart(name, found, (*parameters,))


def write_chart(chart: Chart, title: str, path: Path) -> None:
    """Draw it.

    Args:
        path: ends in .png, .svg or .html; the page holds all that it shows.
    """
    import matplotlib
    from matplotlib.figure import Figure

    from mantile.library.files import replacing

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        shown = _DRAW[chart.kind](chart, chart.table(), axes, figure)
        axes.set_title(f"{title}\n{chart.count:,} possible points", loc="left", fontsize=11)
        with replacing(path) as temporary:
            if path.suffix == ".html":
                temporary.write_text(_page(title, _svg(figure), shown), encoding="utf-8")
            else:
                metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {"Software": None}
                figure.savefig(temporary, format=path.suffix[1:], metadata=metadata)


def _svg(figure: Any) -> str:
    text = BytesIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue().decode()
    return svg[svg.index("<svg") :]


def _front(chart: Chart, table: pd.DataFrame, axes: Any, figure: Any) -> pd.DataFrame:
    """All points in grey, those that no other beats joined, and what they are."""
    from mantile.estimates.sweep import FRONT, pareto

    first, second = ({metric.column: metric for metric in METRICS}[name] for name in FRONT)
    front = pareto(table)
    dots = table.iloc[:: max(1, len(table) // MOST_DOTS)]
    axes.scatter(
        _shown(first, dots[first.column]),
        _shown(second, dots[second.column]),
        s=8,
        color=LIGHT,
        label="points",
    )
    across, up = _shown(first, front[first.column]), _shown(second, front[second.column])
    axes.plot(across, up, "o-", color=DARK, markersize=4, linewidth=1.2, label="no other is better in both")
    axes.set_xlabel(first.head)
    axes.set_ylabel(second.head)
    if len(dots):
        left, right = axes.get_xlim()
        axes.set_xlim(left, right + _LABEL_ROOM * (right - left))
    axes.grid(color="#e6e6e6", linewidth=0.6)
    varying = [name for name in chart.parameters if front[name].nunique() > 1] or [*chart.parameters]
    top, below = (max(up), min(up)) if len(up) else (1.0, 0.0)
    height, placed = (top - below) or 1.0, float("inf")
    for place in sorted(_spread(len(front), MOST_LABELS), key=lambda place: -up[place]):
        if placed - up[place] < _APART * height:
            continue
        placed = up[place]
        said = ", ".join(f"{name} {_plain(front[name].iloc[place])}" for name in varying)
        axes.annotate(said, (across[place], up[place]), (6, 3), textcoords="offset points", fontsize=8)
    axes.legend(loc="upper right", frameon=False, fontsize=9)
    return front


def _histogram(chart: Chart, table: pd.DataFrame, axes: Any, figure: Any) -> pd.DataFrame:
    """How many points have which figure."""
    import numpy as np

    values = _shown(chart.figure, table[chart.figure.column].dropna())
    axes.hist(values, bins=BINS, color=DARK, edgecolor="white", linewidth=0.5)
    if len(values):
        median = float(np.median(values))
        axes.axvline(median, color="#c55a11", label=f"median {median:,.4g}")
        axes.legend(loc="upper right", frameon=False)
    axes.set_xlabel(chart.figure.head)
    axes.set_ylabel("points")
    return table.nsmallest(0, chart.figure.column)


def _heatmap(chart: Chart, table: pd.DataFrame, axes: Any, figure: Any) -> pd.DataFrame:
    """The best figure for each pair of values of the first two parameters; empty where no plan can be."""
    import numpy as np

    rows, columns = chart.parameters[:2]
    grouped = table.groupby([rows, columns], observed=True)[chart.figure.column]
    best = (grouped.max() if chart.figure.better == "higher" else grouped.min()).unstack()
    cells = _shown(chart.figure, best)
    image = axes.imshow(cells, aspect="auto", origin="lower", cmap="viridis")
    figure.colorbar(image, ax=axes, label=chart.figure.head)
    for names, ticks, labels, put in (
        (columns, axes.set_xticks, best.columns, axes.set_xlabel),
        (rows, axes.set_yticks, best.index, axes.set_ylabel),
    ):
        places = _spread(len(labels), 20)
        ticks(places, [_plain(labels[place]) for place in places])
        put(names)
    if cells.size <= MOST_CELLS:
        middle = (np.nanmin(cells) + np.nanmax(cells)) / 2 if np.isfinite(cells).any() else 0.0
        for (row, column), value in np.ndenumerate(cells):
            said, dark = ("–", False) if np.isnan(value) else (f"{value:,.4g}", value < middle)
            colour = "white" if dark else "black"
            axes.text(column, row, said, ha="center", va="center", fontsize=7, color=colour)
    return table.nsmallest(0, chart.figure.column)


_DRAW = {"front": _front, "histogram": _histogram, "heatmap": _heatmap}


def _shown(metric: Metric, values: Any) -> Any:
    """Values of a table as an array, in the unit in which people quote them."""
    return values.to_numpy(dtype=float) * metric.shown(1.0)


def _spread(count: int, most: int) -> list[int]:
    """Places of a list, evenly spread."""
    if count <= most:
        return [*range(count)]
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def _plain(value: Any) -> str:
    if isinstance(value, float) or hasattr(value, "dtype"):
        return f"{float(value):g}"
    return str(value)


def _page(title: str, svg: str, shown: pd.DataFrame) -> str:
    """A page that needs nothing else: the chart, and the points of a front below."""
    out = StringIO()
    out.write(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        "<style>body{font-family:sans-serif;max-width:70em;margin:2em auto}svg{max-width:100%;height:auto}"
        "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;"
        "border-bottom:1px solid #ddd}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{svg}\n"
    )
    if len(shown):
        heads = {metric.column: metric for metric in METRICS}
        names = [heads[name].head if name in heads else name for name in shown.columns]
        out.write(f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>\n")
        for row in shown.to_dict("records"):
            cells = (
                f"{heads[name].shown(value):,.4g}" if name in heads else _plain(value)
                for name, value in row.items()
            )
            out.write(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n")
        out.write("</table>\n")
    out.write("</body></html>\n")
    return out.getvalue()
