"""What would have to change for another plan to win: the efficiency factor that has to grow by least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.override import OVERRIDE
from mantile.graph.quantity import Node
from mantile.search.evaluate import Evaluator, numbers
from mantile.search.objective import Objective

FACTORS = ("efficiency.gemm_bandwidth", "efficiency.gemm_compute", "efficiency.moe_bandwidth")
_STEPS = 64  # values of a factor that are looked at, up to 1
_LEAST = 1.001  # change of a factor that is told


def turned(evaluator: Evaluator, objective: Objective, plans: pd.DataFrame) -> Iterator[Mapping[str, Any]]:
    """For each plan behind the first the factor that has to grow by least for it to win, as far as one can.

    A factor is a share, at most 1. What it has to be is found among values in even steps.

    Args:
        plans: those of an answer, the winner first, each with its load.
    """
    graph = evaluator.graph
    nodes: dict[str, Node] = {
        name: graph.overridable[name].figures[0] for name in FACTORS if name in graph.overridable
    }
    score = objective.score({of.key: evaluator.measures[of.key] for of in objective.measures})
    now = evaluator.run(plans, {**nodes, "score": score})
    best = float(numbers(now["score"])[0])
    rows = []
    for place in range(1, len(plans)):
        for name in nodes:
            value = float(now[name][place])
            if not np.isfinite(value) or value >= 1:
                continue
            for due in np.linspace(value, 1, _STEPS)[1:]:
                rows.append((place, name, value, float(due)))
    if not rows or not np.isfinite(best):
        return
    asked = pd.DataFrame(rows, columns=["place", "factor", "now", "due"])
    points = plans.iloc[asked["place"]].reset_index(drop=True)
    for name in nodes:
        points[f"{name}{OVERRIDE}"] = asked["due"].where(asked["factor"] == name, np.nan)
    wins = numbers(evaluator.run(points, {"score": score})["score"]) <= best
    found = asked[wins].assign(change=lambda table: table["due"] / table["now"])
    for place, of in found[found["change"] > _LEAST].groupby("place"):
        row = of.loc[of["change"].idxmin()]
        yield {
            "plan": int(str(place)) + 1,
            "factor": str(row["factor"]),
            "now": float(row["now"]),
            "due": float(f"{row['due']:.3g}"),
        }
