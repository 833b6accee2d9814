"""A plan as data: which accelerator holds what, which messages they exchange, whether it is possible."""

from __future__ import annotations

from typing import Any

from mantile.equations.forward import Pass
from mantile.equations.placement import Placement, shown
from mantile.estimates.estimate import Estimate
from mantile.estimates.shards import shards
from mantile.estimates.topology import topology
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node, Quantity

NAMES = {
    "used": "in_use",
    "sum": "used_gb",
    "weights": "weights_gb",
    "kv": "kv_cache_gb",
    "working": "working_gb",
}


def plan(estimate: Estimate, column: int = 0) -> dict[str, Any]:
    """The placement of one scenario, as `mantile estimate --plan --json` prints it.

    Returns:
        feasibility; the reason codes of all checks that do not hold; for each set of accelerators what
        every one of them holds, as far as Layers shows them; and the messages of a prefill pass and
        a decode step, in bytes and seconds; the topology, as `topology` gives it. Of devices that are not
        alike there are no sides: `devices` says what each holds. `shards` are the same in EXO's spelling.

    Example:
        plan = mantile.plan(estimate)
        plan["feasibility"], [check["code"] for check in plan["checks"]["errors"]]
        plan["sides"][0]["accelerators"][0]["weights_gb"]
    """
    equations, values = estimate.equations, estimate.values(column)
    results = estimate.results(column)
    sides: list[dict[str, Any]] = []
    for workers in () if equations.devices is not None else equations.workers:
        places = Placement(workers, "placement", shown(workers, values))
        lines = places.lines
        figures = [figure for line in lines for figure in line.figures]
        shown_values = Program(figures).run(estimate.inputs(column))
        sides.append(
            {
                "role": "all"
                if len(equations.workers) == 1
                else "prefill"
                if workers is equations.prefill_workers
                else "decode",
                "system": str(values[workers.rows["hardware.system"]]),
                "accelerators_in_use": float(values[workers.ranks.deployment]),
                "memory_capacity_gb": float(values[workers.rows["hardware.memory_capacity"]]) / 1e9,
                "accelerators": [
                    {"number": index}
                    | {
                        NAMES.get(line.name, line.name): _plain(shown_values[line.figures[index]])
                        for line in lines
                    }
                    for index in range(len(places.accelerators))
                ],
            }
        )
    return {
        "name": results["name"],
        "feasibility": results["feasibility"],
        "checks": results["checks"],
        "sides": sides,
        **{name: results[name] for name in ("devices", "links") if name in results},
        "shards": shards(equations, values),
        "topology": topology(estimate, column, sides),
        "messages": {
            phase.phase.id: _messages(phase, values) for phase in (equations.prefill, equations.decode)
        },
    }


def _messages(phase: Pass, values: dict[Node, Any]) -> list[dict[str, Any]]:
    """Every kind of message that a pass has any of."""
    messages = []
    for block in phase.blocks:
        if not block.network:
            continue
        rows = {
            figure.id.rsplit(".", 1)[1]: figure
            for figure in block.section.figures()
            if isinstance(figure, Quantity)
        }
        if float(values[rows["count"]]) * float(values[rows["layer_time"]]) > 0:
            messages.append(
                {
                    "message": block.id,
                    "label": block.label,
                    "between": block.section.note,
                    "algorithm": str(values[rows["algorithm"]]) if "algorithm" in rows else None,
                    "bytes": float(values[rows["message_bytes"]]),
                    "count": float(values[rows["count"]]),
                    "seconds_each": float(values[rows["layer_time"]]),
                    "seconds": float(values[block.time]),
                }
            )
    return messages


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)
