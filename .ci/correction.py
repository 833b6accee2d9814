"""Whether a correction of the physics holds for runs that it has not seen: models, accelerators,
later days.

    python .ci/correction.py FILE.csv [OTHER.csv ...]
    python .ci/correction.py FILE.csv [OTHER.csv ...] --write    writes profiles/correction.yaml instead

Boosted quantile trees on shares of the estimate and on what was asked are fitted to what the profiles as they
are leave over of the runs; a linear fit and the five nearest runs of the same columns stand beside them, and
the correction that `mantile calibrate --multipliers` writes. In the first table each model is left out in
turn, then each accelerator, then all runs from a day on. The last table says how much of what was left
out lies in a range that holds 80 % of the rest. Needs scikit-learn.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from mantile.library.correction import SHIPPED, SHIPPED_FILE
from mantile.library.dump import dump_yaml
from mantile.measured.correct import (
    ASKED,
    SHARES,
    applied,
    conformal,
    fitted_everywhere,
    learn,
    learned_from,
    off,
    residuals,
)
from mantile.measured.load import load_measurements
from mantile.measured.select import mode_of

DAYS = ("2026-02-01", "2026-04-01", "2026-05-01")
MOST = np.log(1.5)
SHRUNK = (0.3, 1.0)
"""What of a fit is applied."""


def table_of(files: list[Path]) -> tuple[pd.DataFrame, list[str]]:
    """What is left of the runs of all files, with their columns; and the columns that are fitted to."""
    tables = []
    for file in files:
        runs = [run for run in load_measurements(file).runs if mode_of(run) == "aggregated"]
        tables.append(residuals(runs))
    table = pd.concat(tables, ignore_index=True)
    for what in ASKED:
        table[f"log_{what}"] = np.log(table[what].to_numpy(float))
    marks = pd.get_dummies(table["framework"], dtype=float)
    table = pd.concat([table, marks], axis=1)
    table["day"] = pd.to_datetime(table["date"], errors="coerce", format="%Y-%m-%d")
    return table, [*SHARES, *(f"log_{what}" for what in ASKED), *marks]


def changes(seen: pd.DataFrame, unseen: pd.DataFrame, metric: str, columns: list[str]) -> dict[str, Any]:
    """Logarithms of multipliers of runs that were not seen, by what was fitted."""
    left = np.clip(seen[metric].to_numpy(float), -MOST, MOST)
    weights = 1 / np.sqrt(seen.groupby("group")["group"].transform("size").to_numpy(float))
    trees = HistGradientBoostingRegressor(
        loss="quantile", quantile=0.5, max_leaf_nodes=8, max_iter=40, min_samples_leaf=40, random_state=0
    )
    trees.fit(seen[columns], left, sample_weight=weights)
    found = {"trees": trees.predict(unseen[columns])}
    for name, model in (
        ("linear", RidgeCV(np.logspace(0, 4, 9))),
        ("nearest", KNeighborsRegressor(5, weights="distance")),
    ):
        found[name] = make_pipeline(StandardScaler(), model).fit(seen[columns], left).predict(unseen[columns])
    made = {
        f"{name}, {share:g} of it": np.clip(share * change, -MOST, MOST)
        for name, change in found.items()
        for share in SHRUNK
    }
    return made | {
        "steps everywhere": applied(unseen, fitted_everywhere(seen, metric)),
        "mantile calibrate --multipliers": applied(unseen, learned_from(metric, seen)),
    }


def print_split(
    name: str, table: pd.DataFrame, metric: str, columns: list[str], by: str, masks: list[Any]
) -> None:
    """Errors of runs that were left out, without and with each fit: over all, and of the worst group."""
    out = np.logical_or.reduce(masks)
    made: dict[str, Any] = {}
    for mask in masks:
        seen = table[~mask] if by != "day" else table[(table["day"] < table[mask]["day"].min())]
        for fit, change in changes(seen, table[mask], metric, columns).items():
            made.setdefault(fit, np.zeros(len(table)))[mask] = change
    left = table[metric].to_numpy(float)[out]
    group = "framework" if by == "day" else by
    groups = table[group].to_numpy()[out]
    before = pd.Series(off(left)).groupby(groups).median()
    print(f"\n{name}, {metric}: {out.sum()} runs, {len(before)} groups")
    for fit, change in {"without": np.zeros(len(table)), **made}.items():
        error = off(left - change[out])
        worse = 100 * (pd.Series(error).groupby(groups).median() - before)
        print(
            f"  {fit:24s} median {100 * np.median(error):5.1f}  mean {100 * error.mean():5.1f}  worst group "
            f"{worse.max():+5.1f} ({worse.idxmax()})  groups worse by more than a point {(worse > 1).sum()}",
            flush=True,
        )


def main(files: list[Path]) -> None:
    """Print both tables."""
    whole, columns = table_of(files)
    for metric in ("tpot", "ttft"):
        left = whole[metric].to_numpy(float)
        table = whole[np.isfinite(left) & (np.abs(np.nan_to_num(left)) < 3)].reset_index(drop=True)
        for by in ("model", "accelerator"):
            masks = [(table[by] == key).to_numpy() for key in table[by].unique()]
            print_split(f"a whole {by} left out", table, metric, columns, by, masks)
        dated = table[table["day"].notna()].reset_index(drop=True)
        for day in DAYS:
            later = (dated["day"] >= pd.Timestamp(day)).to_numpy()
            if later.any() and not later.all():
                print_split(f"runs from {day} on left out", dated, metric, columns, "day", [later])
        for by in ("model", "accelerator", "fold"):
            groups = table["group" if by == "fold" else by].to_numpy()
            (low, high), covered = conformal(table[metric].to_numpy(float), groups, table[by].to_numpy())
            print(
                f"{metric}, without a correction, {by} left out: range {np.exp(low):.2f} to "
                f"{np.exp(high):.2f}, holds {100 * covered:.0f} % of the runs of a group that was left out"
            )


def write(files: list[Path]) -> None:
    """Write the correction that is shipped, fitted to the runs of all files."""
    runs = [run for file in files for run in load_measurements(file).runs]
    learned = learn(runs, name=SHIPPED, source="public runs of InferenceMAX and InferenceX", progress=print)
    if learned.correction is None:
        sys.exit("no metric gets better: nothing was written")
    data = learned.correction.model_dump(mode="json", exclude_none=True)
    SHIPPED_FILE.write_text(dump_yaml(data), encoding="utf-8")
    print(f"wrote {SHIPPED_FILE}")


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--write"]
    if not names:
        sys.exit(__doc__)
    with threadpool_limits(1):
        (write if "--write" in sys.argv else main)([Path(name) for name in names])
