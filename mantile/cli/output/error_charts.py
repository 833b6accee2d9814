"""Charts of errors of measured runs: scatter, histogram, and boxes by TP, framework and lengths."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mantile.cli.output.charts import DARK, LIGHT, SETTINGS
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.measured.metrics import COMPARED, ComparedMetric, labelled
from mantile.measured.reconcile import reference

if TYPE_CHECKING:
    import pandas as pd

    from mantile.measured.reconcile import Reconciliation

BOXES = {"tp": "TP", "framework": "framework", "lengths": "input/output tokens"}
MOST_BOXES = 8  # the largest groups
EDGES = np.linspace(-0.5, 0.5, 41)  # of a histogram; what lies beyond is in the first and last bin
_WIDE, _HIGH = 4.0, 3.4  # inches of a chart


def draw_errors(reconciliation: Reconciliation, path: Path) -> None:
    """A row for each metric: predicted against measured, how errors are spread, and boxes of groups.

    Runs are those of the headline mode. A box holds half of the runs, its whiskers 80 %.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    mode = reconciliation.headline
    if mode is None:
        raise InputError(f"{path}: no run has a metric that is compared")
    table = reconciliation.modes()[mode]
    errors = reconciliation.metrics(table)
    metrics = [labelled(name, errors[name]) for name in COMPARED if name in errors]
    with rc_context(SETTINGS):
        figure = Figure(figsize=(_WIDE * (2 + len(BOXES)), _HIGH * len(metrics)), layout="constrained")
        axes = figure.subplots(len(metrics), 2 + len(BOXES), squeeze=False)
        for row, metric in zip(axes, metrics, strict=True):
            part = table[table[f"{metric.name}_ratio"].notna()]
            error = part[f"{metric.name}_ratio"].to_numpy(float) - 1
            _scatter(row[0], part, metric)
            _histogram(row[1], error, metric)
            for place, group in zip(row[2:], BOXES, strict=True):
                _boxes(place, part[group], error, group, metric)
        figure.suptitle(f"{reconciliation.source}: {len(table):,} {mode} runs, predicted ÷ measured − 1")
        drawn = BytesIO()
        metadata: Any = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(drawn, format=path.suffix[1:], metadata=metadata)
    with replacing(path) as temporary:
        temporary.write_bytes(drawn.getvalue())


def _scatter(axes: Any, table: pd.DataFrame, metric: ComparedMetric) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    figures = (reference(table, metric.name), table[f"{metric.name}_predicted"])
    measured, predicted = (figure.to_numpy(float) * metric.scale for figure in figures)
    ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
    axes.plot(measured, predicted, ".", color=DARK, alpha=0.4, markersize=4)
    axes.plot(ends, ends, color="black", linewidth=0.8)
    for times in (0.8, 1.2):
        axes.plot(ends, [end * times for end in ends], "--", color=LIGHT, linewidth=0.8)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel=f"{metric.beside}, {metric.unit}", ylabel=f"predicted, {metric.unit}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_title(f"{metric.label}, dashed: ±20 %")


def _histogram(axes: Any, error: Any, metric: ComparedMetric) -> None:
    axes.hist(np.clip(error, EDGES[0], EDGES[-1]) * 100, bins=EDGES * 100, color=DARK)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="error, %; first and last: all beyond", ylabel="runs")
    axes.set_title(f"{metric.label}: half within {100 * np.median(np.abs(error)):.1f} %")


def _boxes(axes: Any, keys: Any, error: Any, group: str, metric: ComparedMetric) -> None:
    counts = keys.value_counts()
    shown = sorted(counts.index[:MOST_BOXES], key=lambda key: (isinstance(key, str), key))
    values = keys.to_numpy()
    boxes = [100 * error[values == key] for key in shown]
    axes.boxplot(boxes, whis=(10, 90), showfliers=False, medianprops={"color": DARK, "linewidth": 1.5})
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(1, len(shown) + 1), [f"{key}\n{counts[key]:,}" for key in shown])
    if group != "tp":
        axes.tick_params(axis="x", labelrotation=30)
    axes.set(xlabel=f"{BOXES[group]}; below: runs", ylabel="error, %")
    axes.set_title(f"{metric.label} by {BOXES[group]}")
