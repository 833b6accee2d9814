"""Where a run stands among other loads and plans: speed of a user against tokens of an accelerator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pandas as pd

from mantile.equations.metrics import METRICS
from mantile.estimates.sweep import FRONT, pareto, possible, sweep
from mantile.library.errors import InputError
from mantile.library.scenario import with_fields
from mantile.server.page import charts
from mantile.server.page.answers import Answer
from mantile.server.page.state import DEGREES

_PLANS = 3  # of the picture
_LOADS = tuple(2**power for power in range(9))


@lru_cache(maxsize=64)
def _tables(found: Answer) -> tuple[pd.DataFrame, ...]:
    scenario = found.scenario.model_copy(update={"variants": (), "decision": None})
    loads = sorted({*_LOADS, int(found.results["concurrency"])})
    plans: list[dict[str, Any]] = [{}]
    if found.optimum is not None:
        plans += [
            {name: int(one.plan.get(name, 1)) for name in DEGREES}
            for one in found.optimum.candidates[1:_PLANS]
        ]
    else:
        tp = int(found.results["tp"])
        plans += [{"tp": tp // 2}] if tp > 1 else [{"tp": 2}]
    tables = []
    for plan in plans:
        try:
            asked = with_fields(scenario, plan, "page") if plan else scenario
            tables.append(sweep(asked, {"concurrency": loads}).assign(plan=_plan_name(asked)))
        except InputError:
            continue
    return tuple(tables)


def _plan_name(scenario: Any) -> str:
    said = [
        f"{short}{value}"
        for name, short in (("tp", "TP"), ("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))
        if (value := getattr(scenario, name) or 1) > 1 or name == "tp"
    ]
    copies = scenario.dp or 1
    return f"{copies} × {' '.join(said)}" if copies > 1 else " ".join(said)


def standing(found: Answer) -> dict[str, Any] | None:
    """Where a run stands among other loads and plans: speed of a user against tokens of a GPU."""
    scenario = found.scenario
    loaded = not (scenario.request_rate or scenario.sessions or scenario.classes or scenario.devices)
    if not loaded or not found.possible or found.results["tpot_s"] is None:
        return None
    tables = [table[possible(table)] for table in _tables(found)]
    tables = [table for table in tables if len(table)]
    if not tables:
        return None
    every = pd.concat([table.astype({"plan": object}) for table in tables], ignore_index=True)
    front = pareto(every)
    across, up = (next(metric for metric in METRICS if metric.column == name) for name in FRONT)
    own = str(tables[0]["plan"].iloc[0])
    load = int(found.results["concurrency"])
    on_front = bool(((front["plan"] == own) & (front["concurrency"] == load)).any())
    here = float(found.results[FRONT[0]]), float(found.results[FRONT[1]])
    title = f"{own} at {load} requests is on the front: nothing shown here is better on both axes"
    if not on_front:
        better = front[(front[FRONT[0]] >= here[0]) & (front[FRONT[1]] >= here[1])]
        said = " and ".join(
            f"{row['plan']} at {int(row['concurrency'])}" for row in better.to_dict("records")
        )
        title = f"{said or 'another point'} beats {own} at {load} requests on both axes"
    series = [
        charts.Series(
            f"beaten plan{place}",
            [(x, y, "") for x, y in zip(table[FRONT[0]].tolist(), table[FRONT[1]].tolist(), strict=True)],
            mark=("circle", "square", "diamond")[place % 3],
        )
        for place, table in enumerate(tables)
    ]
    points = front.sort_values(FRONT[0])
    series.append(
        charts.Series(
            "front",
            [
                (float(row[FRONT[0]]), float(row[FRONT[1]]), f"{int(row['concurrency'])}")
                for row in points.to_dict("records")
                if not (row["plan"] == own and int(row["concurrency"]) == load)
            ],
        )
    )
    series.append(charts.Series("now", [(*here, f"now: {load} requests")], joined=False, mark="diamond"))
    rows = [
        (
            str(row["plan"]),
            f"{int(row['concurrency'])}",
            across.text(float(row[FRONT[0]])),
            up.text(float(row[FRONT[1]])),
        )
        for row in points.to_dict("records")
    ]
    return {
        "title": title,
        "chart": charts.chart(series, "tokens/s per user", "output tokens/s per GPU", f"{title}.", 380),
        "plans": [
            (str(table["plan"].iloc[0]), ("●", "■", "◆")[place % 3]) for place, table in enumerate(tables)
        ],
        "rows": rows,
    }
