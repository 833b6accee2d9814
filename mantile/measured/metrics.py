"""The metrics in which predictions are compared with measured runs, and the error figures of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mantile.equations.metrics import (
    E2E,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT,
    TTFT_P50,
    TTFT_P95,
    Metric,
)

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ComparedMetric:
    """A metric that runs report and estimates predict.

    Args:
        name: in tables of results and in --json.
        field: of a run's `metrics`, in SI units; throughput in tokens per second and accelerator.
        label: in a heading.
        unit: that is shown; `scale` takes the SI value to it, `digits` are shown after the point.
        metric: the headline metric; None for what estimates do not have among theirs: the median of TPOT, the
            prefill of a bench, and memory.
        beside: what predictions are compared with: measured figures, or derived ones.
    """

    name: str
    field: str
    label: str
    unit: str
    scale: float
    digits: int
    metric: Metric | None = None
    beside: str = "measured"

    @property
    def label_inside(self) -> str:
        """The label inside a sentence."""
        return self.label if self.label[:2].isupper() else self.label.lower()


def _compared(metric: Metric, name: str = "", label: str = "") -> ComparedMetric:
    """A headline metric. Name and label where they are not its own."""
    return ComparedMetric(
        name=name or metric.attribute,
        field=metric.key,
        label=label or metric.label,
        unit=metric.display_unit,
        scale=metric.shown(1.0),
        digits=metric.digits,
        metric=metric,
    )


THROUGHPUT = OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.key
PREFILL_RATE = "prefill_tokens_per_s"
"""Input tokens ÷ time of their prefill, as tables of single users have it."""

COMPARED = {
    compared.name: compared
    for compared in (
        _compared(TPOT),
        _compared(TTFT),
        _compared(TTFT_P50, label="TTFT median"),
        replace(_compared(TPOT), name="tpot_p50", field="tpot_p50_s", label="TPOT median", metric=None),
        _compared(TTFT_P95, label="TTFT p95"),
        _compared(OUTPUT_TOKENS_PER_S_PER_ACCELERATOR, "throughput", "Throughput"),
        ComparedMetric(name="prefill", field="prefill_s", label="Prefill", unit="ms", scale=1e3, digits=1),
        _compared(E2E),
        ComparedMetric("weights", "weights_bytes", "Weights", "GB", 1e-9, 2),
        ComparedMetric("kv_tokens", "kv_tokens", "KV tokens", "token", 1.0, 0),
        ComparedMetric("peak_memory", "peak_memory_bytes", "Peak memory", "GB", 1e-9, 2),
    )
}

OF_MEMORY = ("weights", "kv_tokens", "peak_memory")
"""Metrics that a plan has that does not fit."""
DERIVED = f"{COMPARED['throughput'].name}_derived"
"""Column of a throughput that no run reports: what its mean TTFT and TPOT come to."""

ERROR_FIGURES = {
    "mape": "MAPE",
    "median": "median",
    "p90": "p90",
    "bias": "bias",
    "symmetric": "symmetric",
    "rmse": "RMSE",
}
"""What `errors` gives beside the number of runs, and its heading."""


def labelled(name: str, figures: Mapping[str, float]) -> ComparedMetric:
    """A metric with a label that says how much of it was derived instead of measured.

    Args:
        name: of the metric.
        figures: its errors.

    >>> labelled("throughput", {"n": 3, "derived": 3}).label, labelled("throughput", {"n": 3}).label
    ('Throughput, derived', 'Throughput')
    >>> labelled("throughput", {"n": 3, "derived": 1}).label
    'Throughput, 1 of 3 derived'
    """
    metric, derived, runs = COMPARED[name], int(figures.get("derived", 0)), int(figures["n"])
    if not derived:
        return metric
    if derived == runs:
        return replace(metric, label=f"{metric.label}, derived", beside="derived")
    return replace(
        metric, label=f"{metric.label}, {derived:,} of {runs:,} derived", beside="measured or derived"
    )


IN_UNITS = {"mae": "mean |error|", "rmse_in_units": "RMSE", "least": "min", "largest": "max"}
"""What `errors_in_units` gives, and its heading."""


def errors_in_units(measured: Array, predicted: Array) -> dict[str, float]:
    """How far predictions are off in the unit of the metric, and between which errors they lie.

    Args:
        measured, predicted: one of each for each run, SI; a run without both, or with one that is not above
            0, does not count.

    Returns:
        `mae` the mean of |predicted − measured| and `rmse_in_units` its root mean square, SI; `least` and
        `largest` of predicted ÷ measured − 1, fractions. NaN where there is no run.
    """
    known = np.isfinite(measured) & np.isfinite(predicted) & (measured > 0) & (predicted > 0)
    if not known.any():
        return dict.fromkeys(IN_UNITS, float("nan"))
    off = predicted[known] - measured[known]
    relative = off / measured[known]
    return {
        "mae": float(np.abs(off).mean()),
        "rmse_in_units": float(np.sqrt((off**2).mean())),
        "least": float(relative.min()),
        "largest": float(relative.max()),
    }


def errors(ratios: Array) -> dict[str, float]:
    """How far predictions are off, from the ratios predicted ÷ measured.

    Args:
        ratios: one for each run; those that are not finite or not above 0 do not count.

    Returns:
        Fractions, not percent: `mape` the mean of |ratio − 1|, `median` and `p90` its percentiles, `rmse` its
        root mean square, `bias` the mean of ratio − 1, `symmetric` exp(mean |ln ratio|) − 1, which does not
        reward guessing low as MAPE does; and `n`, the number of ratios. All but `n` are NaN where there is
        none.
    """
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return dict.fromkeys(ERROR_FIGURES, float("nan")) | {"n": 0}
    absolute = np.abs(ratios - 1)
    return {
        "mape": float(absolute.mean()),
        "median": float(np.median(absolute)),
        "p90": float(np.quantile(absolute, 0.9)),
        "bias": float((ratios - 1).mean()),
        "symmetric": float(np.expm1(np.abs(np.log(ratios)).mean())),
        "rmse": float(np.sqrt((absolute**2).mean())),
        "n": len(ratios),
    }
