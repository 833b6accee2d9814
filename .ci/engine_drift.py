"""How fast engines get faster: the same configuration measured on several days, by framework.

    python .ci/engine_drift.py FILE.csv [OTHER.csv ...]

Prints lines of `drift` of profiles/evidence.yaml: percentiles of the change of a logarithm between each two
days of a configuration that lie at least half a month apart, over the root of the months; each configuration
has the same weight. Then whether a rate or a range that was fitted to the days before a day holds for those
after it.
"""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from mantile.equations.constant import MONTH
from mantile.measured.load import load_measurements
from mantile.measured.select import mode_of

LEAST_MONTHS, LEAST_CONFIGURATIONS = 0.5, 5
METRICS = {"tpot": ("tpot_s", "tpot_p50_s"), "ttft": ("ttft_s",)}
SAME = ("model", "accelerator", "framework", "tp", "pp", "dp", "ep", "attention_dp", "weights_dtype")
ASKED = ("kv_dtype", "input_tokens", "output_tokens", "concurrency")
AFTER = ("2026-02-01", "2026-04-01", "2026-05-01")


def pairs_of(files: list[Path]) -> pd.DataFrame:
    """Each two days of a configuration: metric, framework, configuration, days, months between, change."""
    rows = []
    for file in files:
        for run in load_measurements(file).runs:
            if mode_of(run) == "aggregated" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", run.date or ""):
                key = "/".join(str(getattr(run, name)) for name in (*SAME, *ASKED))
                for metric, fields in METRICS.items():
                    for field in fields:
                        if value := getattr(run.metrics, field, None):
                            rows.append((metric, field, run.framework, key, run.date, np.log(value)))
    table = pd.DataFrame(rows, columns=["metric", "field", "framework", "key", "day", "log"])
    days = table.groupby(["metric", "field", "framework", "key", "day"])["log"].median().reset_index()
    found = []
    for (metric, _, framework, key), part in days.groupby(["metric", "field", "framework", "key"]):
        for (_, first), (_, last) in combinations(part.sort_values("day").iterrows(), 2):
            months = (pd.Timestamp(last["day"]) - pd.Timestamp(first["day"])).days / float(MONTH.value)
            if months >= LEAST_MONTHS:
                change = last["log"] - first["log"]
                found.append((metric, framework, key, first["day"], last["day"], months, change))
    names = ["metric", "framework", "key", "first", "last", "months", "change"]
    return pd.DataFrame(found, columns=names).drop_duplicates(["metric", "key", "first", "last"])


def changes(pairs: pd.DataFrame, power: float = 0.5) -> tuple[float, float, float]:
    """Tenth, fiftieth and ninetieth percentile of the change over a power of the months."""
    weights = (1 / pairs.groupby("key")["key"].transform("size")).to_numpy(float)
    values = (pairs["change"] / pairs["months"] ** power).to_numpy(float)
    order = np.argsort(values)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, middle, high = np.interp([0.1, 0.5, 0.9], places, values[order])
    return float(low), float(middle), float(high)


def main(files: list[Path]) -> None:
    """Print the lines of the profile, and how they hold."""
    pairs = pairs_of(files)
    for metric, of_metric in pairs.groupby("metric", sort=False):
        for framework, part in [*of_metric.groupby("framework"), ("all", of_metric)]:
            count = part["key"].nunique()
            if count >= LEAST_CONFIGURATIONS:
                low, middle, high = changes(part)
                print(
                    f"  - {{metric: {metric}, framework: {framework}, configurations: {count}, "
                    f"first: {part['first'].min()}, last: {part['last'].max()}, "
                    f"p10: {min(low, 0):.3f}, p50: {middle:.3f}, p90: {max(high, 0):.3f}}}"
                )
        for day in AFTER:
            before, after = of_metric[of_metric["last"] < day], of_metric[of_metric["last"] >= day]
            for framework, later in after.groupby("framework"):
                earlier = before[before["framework"] == framework]
                if earlier["key"].nunique() >= LEAST_CONFIGURATIONS:
                    print_held(f"{metric}, {framework}, from {day} on", earlier, later)


def print_held(name: str, earlier: pd.DataFrame, later: pd.DataFrame) -> None:
    """How far off the later of two days is with a rate of earlier ones, with none, and how often it lies in
    the range that holds 80 % of the earlier ones."""
    rate = changes(earlier, 1)[1]
    low, _, high = changes(earlier)
    root = np.sqrt(later["months"])
    inside = (later["change"] >= min(low, 0) * root) & (later["change"] <= max(high, 0) * root)
    left = later["change"] - rate * later["months"]
    print(
        f"# {name}, {later['key'].nunique()} configurations: rate {rate:+.3f} a month, median change left "
        f"{100 * np.expm1(left.abs().median()):.1f} %, without it "
        f"{100 * np.expm1(later['change'].abs().median()):.1f} %; in the range {100 * inside.mean():.0f} %"
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([Path(name) for name in sys.argv[1:]])
