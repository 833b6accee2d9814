"""How far the power of GPUs lies from what is estimated, in public runs at a request rate below saturation.

    python .ci/power_ranges.py FILE.csv

Prints lines of `power` of profiles/evidence.yaml: percentiles of measured ÷ estimated power of a GPU, of each
accelerator and framework; each model and format has the same weight. Then the share of runs of each that
lie between the percentiles of the others.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

import mantile

ENDS = (0.1, 0.5, 0.9)
FORMATS = {"float16": "bf16"}
"""16-bit formats take the same time and power."""


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Runs that are not saturated, with measured ÷ estimated power of a GPU, and the group of each."""
    runs = table[table["measured_load"] <= 1].copy()
    runs["group"] = runs["model"] + "/" + runs["weights"]
    runs["ratio"] = [row["measured_gpu_power_w"] / estimated(row) for row in runs.to_dict("records")]
    return runs


def estimated(run: dict[str, Any]) -> float:
    """What one GPU draws, in W."""
    made = mantile.estimate(
        model=run["model"],
        accelerator=run["accelerator"],
        framework=run["engine"],
        weights_dtype=FORMATS.get(run["weights"], run["weights"]),
        input_tokens=int(run["input_tokens"]),
        output_tokens=int(run["output_tokens"]),
        request_rate=float(run["request_rate"]),
        tp=int(run["gpus"]),
    )
    return float(made.values()[made.equations.figures["cost.draw"]])


def percentiles(runs: pd.DataFrame) -> Any:
    """p10, p50 and p90 of the ratio, each group with the same weight."""
    ordered = runs.sort_values("ratio", kind="stable")
    weights = (1 / ordered.groupby("group")["group"].transform("size")).to_numpy(float)
    places = (np.cumsum(weights) - weights / 2) / weights.sum()
    return np.interp(ENDS, places, ordered["ratio"].to_numpy(float))


def main() -> None:
    """Print the lines, and how many runs of a group the others hold."""
    runs = ratios(pd.read_csv(sys.argv[1]))
    for (chip, engine), part in runs.groupby(["accelerator", "engine"]):
        low, middle, high = percentiles(part)
        print(
            f"  - {{accelerator: {chip}, framework: {engine}, runs: {len(part)}, p10: {low:.2f}, "
            f"p50: {middle:.2f}, p90: {high:.2f}}}"
        )
        inside = []
        for group, own in part.groupby("group"):
            first, _, last = percentiles(part[part["group"] != group])
            inside.append(float(own["ratio"].between(first, last).mean()))
        print(f"    left out, a group at a time: {np.mean(inside):.0%} inside, {min(inside):.0%} at least")


if __name__ == "__main__":
    main()
