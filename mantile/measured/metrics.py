"""The metrics in which predictions are compared with measured runs, and the error figures of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ComparedMetric:
    """A metric that runs report and estimates predict.

    Args:
        name: in tables of results and in --json.
        field: of a run's `metrics`, in SI units; throughput in tokens per second and accelerator.
        label: in a heading.
        unit: that is shown; `scale` takes the SI value to it.
    """

    name: str
    field: str
    label: str
    unit: str = "ms"
    scale: float = 1e3

    @property
    def label_inside(self) -> str:
        """The label inside a sentence."""
        return self.label if self.label.startswith("T") and self.name != "throughput" else self.label.lower()


THROUGHPUT = "output_tokens_per_s_per_accelerator"
COMPARED = {
    metric.name: metric
    for metric in (
        ComparedMetric("tpot", "tpot_s", "TPOT"),
        ComparedMetric("ttft", "ttft_s", "TTFT"),
        ComparedMetric("ttft_p50", "ttft_p50_s", "TTFT median"),
        ComparedMetric("throughput", THROUGHPUT, "Throughput", "token/s/accelerator", 1.0),
        ComparedMetric("prefill", "prefill_s", "Prefill"),
        ComparedMetric("e2e", "e2e_s", "End to end"),
    )
}

ERROR_FIGURES = {
    "mape": "MAPE",
    "median": "median",
    "p90": "p90",
    "bias": "bias",
    "symmetric": "symmetric",
    "rmse": "RMSE",
}
"""What `errors` gives beside the number of runs, and its heading."""


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
