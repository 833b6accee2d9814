"""Layers over unlike devices, split for the smallest decode step: exact for up to eight devices.

What a layer takes on each device, in time and in memory, is read from the graph. For each set of devices that
may hold layers the best split is found by dynamic programming; what the graph says of the best ones decides,
also against the splits that a formula can follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mantile.equations.devices import SPLITS
from mantile.graph.evaluate import Program
from mantile.library.device import DEVICE, device_name

if TYPE_CHECKING:
    from mantile.equations.graph import EstimateGraph
    from mantile.graph.quantity import Node
    from mantile.library.columns import Column
    from mantile.library.scenario import Scenario


class Worked(Protocol):
    """What is asked of an estimate here."""

    @property
    def scenario(self) -> Scenario:
        """What is asked."""

    @property
    def columns(self) -> Sequence[Column]:
        """One per scenario."""

    @property
    def equations(self) -> EstimateGraph:
        """The graph."""

    def inputs(self, column: int) -> dict[str, Any]:
        """Values of all inputs that differ from the graph's own."""

    def values(self, column: int = 0) -> dict[Any, Any]:
        """All numbers of one column."""


Array = NDArray[np.float64]
SOLVED = "solved"


def solved(estimate: Worked) -> Scenario | None:
    """The scenario with layers stated for every column that asks for the best split and states none.

    None where no column does.

    Example: solved(mantile.estimate(mantile.load_scenario("devices.yaml")))
    """
    scenario = estimate.scenario
    cases: list[Any] = [scenario, *scenario.variants]
    changed = False
    for number, (case, column) in enumerate(zip(cases, estimate.columns, strict=True)):
        counts = [name for name in column.values if name.startswith(DEVICE) and name.endswith("_count")]
        if not counts or column.values.get("device_split", SOLVED) != SOLVED:
            continue
        devices = case.devices or scenario.devices
        if any(device.layers is not None for device in devices):
            continue
        layers = best_split(
            estimate.equations, estimate.inputs(number), estimate.values(number), len(devices)
        )
        stated = tuple(
            device.model_copy(update={"layers": int(count)})
            for device, count in zip(devices, layers, strict=False)
        )
        cases[number] = case.model_copy(update={"devices": stated})
        changed = True
    if not changed:
        return None
    base, *variants = cases
    in_full: Scenario = base.model_copy(update={"variants": tuple(variants)})
    return in_full


def best_split(
    graph: EstimateGraph, inputs: Mapping[str, Any], values: Mapping[Any, Any], count: int
) -> list[int]:
    """Layers of each device, for the smallest decode step among splits that fit.

    Where none fits, the split by memory.

    Args:
        inputs: of a column; `values` of its figures.
        count: of devices.
    """
    table = _Table(graph, inputs, values, count)
    tried = [table.by_rule(way) for way in SPLITS]
    sets = _subsets(table)
    for active, costs in zip(sets, table.costs(sets), strict=True):
        found = _best(table, active, costs)
        if found is not None:
            tried.append(found)
    unique = [list(split) for split in dict.fromkeys(map(tuple, tried))]
    values = table.evaluate(unique)
    fits, step, through = values["fits"] > 0, values["step"], values["through"]
    if not fits.any():
        return tried[SPLITS.index("memory")]
    order = np.lexsort((through, np.where(fits, step, np.inf)))
    return unique[int(order[0])]


def _subsets(table: _Table) -> list[tuple[int, ...]]:
    """Sets of devices that may hold layers: those that there are."""
    there = [place for place in range(table.count) if table.present[place]]
    return [
        some for size in range(1, min(len(there), table.layers) + 1) for some in combinations(there, size)
    ]


@dataclass(frozen=True)
class _Costs:
    """Of one set of devices: what the graph says where only these hold layers.

    Args:
        time, memory, cache: of a layer of each kind on each device: s, B, B of the batch.
        room: B of each device for weights and caches.
        common, end: s of a pass outside layers, and of LM head and drafter.
        start, head: B of the embedding and of the LM head on each device.
        cuts: micro-batches.
    """

    time: Array
    memory: Array
    room: Array
    common: float
    end: float
    start: Array
    head: Array
    cuts: float


class _Table:
    """What is read of the graph for one column."""

    def __init__(
        self, graph: EstimateGraph, inputs: Mapping[str, Any], values: Mapping[Any, Any], count: int
    ) -> None:
        assert graph.devices is not None
        self.graph, self.devices = graph, graph.devices
        self.inputs = inputs
        self.count = count
        self.all = len(graph.devices.devices)
        self.present = [values[device.inputs.count] > 0 for device in graph.devices.devices]
        self.rules = {
            way: [int(values[device.splits[way]]) for device in graph.devices.devices] for way in SPLITS
        }
        self.kinds = list(graph.ir.layers)
        order = graph.ir.model.architecture.sequence()
        self.order = [
            next(place for place, kind in enumerate(self.kinds) if kind.blocks == blocks) for blocks in order
        ]
        self.layers = len(self.order)
        self.before = np.zeros((self.layers + 1, len(self.kinds)))
        for place, kind in enumerate(self.order):
            self.before[place + 1] = self.before[place]
            self.before[place + 1, kind] += 1

    def by_rule(self, way: str) -> list[int]:
        """The layers by a way that a formula can follow."""
        return self.rules[way]

    def run(self, splits: Sequence[Sequence[int]], wanted: Mapping[str, Node]) -> dict[str, Array]:
        """Figures of the graph for splits."""
        columns = {
            f"inputs.{device_name(place + 1, 'layers')}": np.array(
                [float(split[place]) if place < len(split) else 0.0 for split in splits]
            )
            for place in range(self.all)
        }
        values = Program(wanted.values()).sweep({**self.inputs, **columns})
        return {
            name: np.broadcast_to(np.asarray(values[node], float), len(splits))
            for name, node in wanted.items()
        }

    def evaluate(self, splits: Sequence[Sequence[int]]) -> dict[str, Array]:
        """Whether splits fit, and what they take."""
        served, graph = self.graph.serving, self.graph
        return self.run(
            splits,
            {"fits": graph.checks.possible, "step": served.tpot_parts[0], "through": graph.prefill.time},
        )

    def costs(self, sets: Sequence[tuple[int, ...]]) -> list[_Costs]:
        """What layers cost where these devices hold them, for each set of devices."""
        splits = []
        for active in sets:
            split = [0] * self.all
            each, left = divmod(self.layers, len(active))
            for place, device in enumerate(active):
                split[device] = each + (place < left)
            splits.append(split)
        found, devices = self.devices, self.devices.devices
        memories = [device.workers.memory for device in devices]
        ends = [block for block in self.graph.decode.blocks if block.id in ("lm_head", "draft")]
        wanted: dict[str, Node] = {
            "time": self.graph.decode.time,
            "layered": found.layered["decode"],
            "cuts": self.graph.decoding.microbatches,
            **{f"end.{block.id}": block.time for block in ends},
        }
        for place, memory in enumerate(memories):
            wanted |= {
                f"limit{place}": memory.limit,
                f"beside{place}": memory.activations + memory.logits + memory.reserve,
                f"seats{place}": memory.rank_requests,
                f"start{place}": memory.ends[0],
                f"head{place}": memory.ends[1],
            }
            for number, kind in enumerate(self.kinds):
                wanted |= {
                    f"t{place}.{number}": found.of_layer["decode"][place][kind.count],
                    f"w{place}.{number}": memory.of_layers[kind.count],
                    f"c{place}.{number}": memory.caches.layers[kind.count],
                }
        values = self.run(splits, wanted)
        places, kinds = range(self.all), range(len(self.kinds))

        def of_layers(name: str, row: int) -> Array:
            return np.array([[values[f"{name}{place}.{kind}"][row] for kind in kinds] for place in places])

        def of_devices(name: str, row: int) -> Array:
            return np.array([values[f"{name}{place}"][row] for place in places])

        made = []
        for row in range(len(splits)):
            end = float(sum(values[f"end.{block.id}"][row] for block in ends))
            seats = of_devices("seats", row)[:, None]
            made.append(
                _Costs(
                    time=of_layers("t", row),
                    memory=of_layers("w", row) + seats * of_layers("c", row),
                    room=of_devices("limit", row) - of_devices("beside", row),
                    common=float(values["time"][row] - values["layered"][row]) - end,
                    end=end,
                    start=of_devices("start", row),
                    head=of_devices("head", row),
                    cuts=float(values["cuts"][row]),
                )
            )
        return made


def _best(table: _Table, active: tuple[int, ...], costs: _Costs) -> list[int] | None:
    """The split over these devices, each with a layer at least, for the smallest step; None where none fits.

    The step is the larger of all devices one after the other, and of the slowest for each micro-batch. With a
    bound on the slowest the sum is least by dynamic programming; the bound is found by halving.
    """
    layers = table.layers
    spread = costs.common / layers
    kinds = table.before
    counts = kinds[None, :, :] - kinds[:, None, :]  # layers of each kind from start to end
    many = np.arange(layers + 1)
    number = many[None, :] - many[:, None]
    times, stages = [], []
    for place, device in enumerate(active):
        time = counts @ costs.time[device]
        held = counts @ costs.memory[device]
        last = place == len(active) - 1
        held = held + (costs.start[device] if place == 0 else 0) + (costs.head[device] if last else 0)
        possible = (number >= 1) & (held <= costs.room[device])
        times.append(np.where(possible, time, np.inf))
        stages.append(time + spread * number + (costs.end if last else 0))
    bounds = np.unique(
        np.concatenate([stage[np.isfinite(time)] for stage, time in zip(stages, times, strict=True)])
    )
    low, high, best = 0, len(bounds) - 1, None
    fixed = costs.common + costs.end
    while low <= high:
        middle = (low + high) // 2
        found = _least(times, stages, bounds[middle], layers)
        if found is None:
            low = middle + 1
            continue
        total, split = found
        step = max(fixed + total, costs.cuts * bounds[middle])
        if best is None or step < best[0]:
            best = step, split
        if fixed + total > costs.cuts * bounds[middle]:
            low = middle + 1  # a looser bound may shorten the sum
        else:
            high = middle - 1
    if best is None:
        return None
    whole = [0] * table.all
    for device, count in zip(active, best[1], strict=True):
        whole[device] = count
    return whole


def _least(
    times: Sequence[Array], stages: Sequence[Array], bound: float, layers: int
) -> tuple[float, list[int]] | None:
    """The smallest sum of times where no stage is above the bound, and the layers of each device."""
    cost = np.full(layers + 1, np.inf)
    cost[0] = 0.0
    choices = []
    for time, stage in zip(times, stages, strict=True):
        reached = cost[:, None] + np.where(stage <= bound, time, np.inf)
        choices.append(np.argmin(reached, axis=0))
        cost = np.min(reached, axis=0)
    if not np.isfinite(cost[layers]):
        return None
    ends, end = [], layers
    for choice in reversed(choices):
        start = int(choice[end])
        ends.append(end - start)
        end = start
    return float(cost[layers]), ends[::-1]
