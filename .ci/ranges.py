"""Ranges by level of evidence, of public runs that no fit has seen.

    python .ci/ranges.py FILE [OTHER ...]

Prints lines of `bands` of profiles/evidence.yaml: the tenth and ninetieth percentile of measured ÷ predicted.
Runs of one table, model, accelerator, framework, format and mode are wrong together: they are a group, and
groups of five runs and more weigh the same. A range is no narrower than that of refits without whole models,
accelerators or frameworks (.ci/public_accuracy.py ranges), nor than one with more evidence. Then what the
ranges hold, made anew without each whole campaign, model, accelerator, and accelerator with its framework:
percent of the runs left out, and of the groups.

A source that an earlier file has is not read again. TTFT is the median where a run has no mean, or one so far
above its median that a few cold requests make it.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from mantile.library.evidence import BAND_METRICS, EVIDENCE_LEVELS
from mantile.measured.load import load_measurements
from mantile.measured.reconcile import reconcile

LEVELS = ("pair", "framework", "unseen")
"""From the most evidence to the least."""
REFITTED: dict[tuple[str, str], tuple[float, float, float]] = {
    ("tpot", "pair"): (0.888, 1.001, 1.176),
    ("tpot", "framework"): (0.896, 1.035, 1.321),
    ("tpot", "unseen"): (0.888, 1.078, 3.283),
    ("ttft", "pair"): (0.627, 1.022, 1.782),
    ("ttft", "framework"): (0.604, 1.055, 1.82),
    ("ttft", "unseen"): (0.557, 1.153, 2.488),
    ("throughput", "pair"): (0.835, 1.001, 1.138),
    ("throughput", "framework"): (0.756, 0.968, 1.122),
    ("throughput", "unseen"): (0.323, 0.938, 1.138),
    ("throughput", "apart"): (0.756, 0.997, 1.138),
}
"""p10, p50 and p90 of runs left out of refits, as .ci/public_accuracy.py printed them; p50 stays."""
NOT_STATED = ("GPUStack", "gpustack", "sglang_cookbook2")
"""Beginnings of tables whose client or limits of running requests are not stated."""
FEWEST, FULL = 4, 5  # groups of a range, and runs of a group that weighs as much as any other
COLD = 5  # a mean TTFT so many times its median is that of a few cold requests
NOT_FIELDS = ("table", "stated", "run_url", "plan_unclear", "gpus")  # columns that our records do not have
APART = "inferencex_disagg"  # stands in a file of its own, with the decode side as a mapping
WAYS = ("campaign", "model", "accelerator", "pair")
CASE = ["campaign", "model", "accelerator", "framework", "precision", "mode"]


def records(file: Path, folder: Path) -> tuple[Path, set[str]]:
    """A table as reconcile reads it, and ids of runs whose plan is not clear."""
    if file.suffix != ".csv":
        return file, set()
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    if "plan_unclear" not in rows[0]:
        return file, set()
    kept = [
        {name: cell for name, cell in row.items() if cell and name not in NOT_FIELDS}
        | {"source": f"{row['table']}, {row['source']}"}
        for row in rows
        if row["table"] != APART
    ]
    path = folder / f"{file.stem}.csv"
    with path.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(dict.fromkeys(name for row in kept for name in row)))
        writer.writeheader()
        writer.writerows(kept)
    return path, {row["id"] for row in rows if row["plan_unclear"] == "yes"}


def runs_of(files: Iterable[Path]) -> pd.DataFrame:
    """Runs that are compared, with campaign, level, group and logarithm of measured ÷ predicted by metric."""
    levels = {words: level for level, words in EVIDENCE_LEVELS.items()}
    tables: list[pd.DataFrame] = []
    seen: set[str] = set()
    unclear: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path, ids = records(file, Path(folder))
            unclear |= ids
            table = reconcile(load_measurements(path), source=file.name).table
            tables.append(table[~table["source"].isin(seen)])
            seen |= set(table["source"])
    table = pd.concat(tables, ignore_index=True)
    unsteady = table["source"].str.startswith("MLPerf") & (table["model"] == "deepseek-r1")
    left_out = unsteady | table["source"].str.startswith(NOT_STATED) | table["id"].isin(unclear)
    table = table[(table["excluded"] == "") & ~left_out]
    cold = table["ttft_measured"] > COLD * table["ttft_p50_measured"]
    table = table.assign(
        campaign=table["source"],
        level=table["evidence"].map(levels),
        pair=table["accelerator"] + "/" + table["framework"],
        ttft_ratio=table["ttft_ratio"].mask(cold).fillna(table["ttft_p50_ratio"]),
    )
    return table.assign(
        group=table[CASE].agg("|".join, axis=1),
        **{name: -np.log(table[f"{name}_ratio"].astype(float)) for name in BAND_METRICS},
    )


def weights(runs: pd.DataFrame) -> pd.Series[float]:
    """What each run counts: groups of five runs and more weigh the same."""
    sizes = runs["group"].map(runs["group"].value_counts())
    return np.minimum(1, sizes / FULL) / sizes


def percentiles(runs: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The tenth and ninetieth percentile of the logarithms of a metric."""
    ordered = runs.sort_values(metric)
    counts = weights(ordered).to_numpy(float)
    places = (np.cumsum(counts) - counts / 2) / counts.sum()
    low, high = np.interp([0.1, 0.9], places, ordered[metric].to_numpy(float))
    return float(low), float(high)


def measured(runs: pd.DataFrame, metric: str, level: str) -> pd.DataFrame:
    """The runs of a level that measured a metric."""
    return runs[(runs["level"] == level) & runs[metric].notna()]


def ranges(runs: pd.DataFrame, metric: str) -> dict[str, tuple[float, float]]:
    """Both ends of the range of each level, as logarithms. Where decode is apart TPOT is not made anew, and
    TTFT is as far off as that of the unseen."""
    found: dict[str, tuple[float, float]] = {}
    low, high = np.inf, -np.inf
    for level in (*LEVELS, *(["apart"] if metric == "throughput" else [])):
        part, (least, _, most) = measured(runs, metric, level), REFITTED[metric, level]
        if level == "apart":
            low, high = np.inf, -np.inf
        low, high = min(low, np.log(least)), max(high, np.log(most))
        if part["group"].nunique() >= FEWEST:
            ends = percentiles(part, metric)
            low, high = min(low, ends[0]), max(high, ends[1])
        found[level] = (low, high)
    return found


def inside(runs: pd.DataFrame, metric: str, ends: tuple[float, float]) -> pd.Series[bool]:
    """Which runs lie in a range."""
    return runs[metric].between(*ends)


def held(runs: pd.DataFrame, holds: pd.Series[bool]) -> str:
    """Percent of runs and of groups."""
    counts = weights(runs)
    return f"{100 * holds.mean():.0f}/{100 * (holds * counts).sum() / counts.sum():.0f}"


def main(names: list[str]) -> None:
    """Print the lines, and what the ranges hold."""
    runs = runs_of(map(Path, names))
    for metric in BAND_METRICS:
        for level, (low, high) in ranges(runs, metric).items():
            middle = REFITTED[metric, level][1]
            figures = f"p10: {np.exp(low):.3f}, p50: {middle:g}, p90: {np.exp(high):.3f}"
            print(f"  - {{metric: {metric}, level: {level}, {figures}}}")
    for metric in BAND_METRICS:
        for level, ends in ranges(runs, metric).items():
            part = measured(runs, metric, level)
            told = [f"fitted here {held(part, inside(part, metric, ends))}"]
            for way in WAYS:
                holds = pd.Series(False, part.index)
                for name, others in part.groupby(way):
                    anew = ranges(runs[runs[way] != name], metric)[level]
                    holds[others.index] = inside(others, metric, anew)
                told.append(f"{way} left out {held(part, holds)}")
            counts = (
                f"{len(part)} runs, {part['group'].nunique()} groups, {part['campaign'].nunique()} campaigns"
            )
            print(f"{metric} {level}: {counts}; {', '.join(told)}; width {np.exp(ends[1] - ends[0]):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
