"""Layers over unlike devices, split for the most tokens per second at the load that is asked for.

The graph works out every split of two or three devices. Of more devices it works out splits in equal units of
several layers, then splits near the best ones in units of half the size, down to a single layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mantile.equations.devices import SPLIT_WORDS
from mantile.equations.metrics import E2E, OUTPUT_TOKENS_PER_S
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


Split = tuple[int, ...]
SOLVED = "solved"
_AT_ONCE = 4096
"""Splits that the graph works out at once; that takes half a second."""


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
) -> Split:
    """Layers of each device, for the most tokens per second; of equally many for the shortest requests.

    Equal devices hold equally many, as the stages of a pipeline do, if that fits. Where no split fits, the
    split by memory.

    Args:
        inputs: of a column; `values` of its figures.
        count: of devices.
    """
    found = _Splits(graph, inputs, values, count)
    even, memory, _ = found.by_rule
    found.add(found.by_rule)
    if not found.present or (found.alike and found.fits[even]):
        return even
    units, width = found.layers, 1
    there = len(found.present)
    while comb(units + there - 1, there - 1) > _AT_ONCE:
        units, width = -(-units // 2), width * 2
    found.add(found.in_units(units))
    while width > 1:
        width //= 2
        best = None
        while best != (best := found.best()):
            found.add(found.near(width))
    best = found.best()
    return best if found.fits[best] else memory


class _Splits:
    """Splits of one column with what the graph says of them.

    Args:
        inputs, values, count: as `best_split`.
    """

    def __init__(
        self, graph: EstimateGraph, inputs: Mapping[str, Any], values: Mapping[Any, Any], count: int
    ) -> None:
        assert graph.devices is not None
        devices = graph.devices.devices
        self.inputs, self.all = inputs, len(devices)
        self.present = [place for place in range(count) if values[devices[place].inputs.count] > 0]
        self.layers = int(values[graph.ir.total_layers])
        self.by_rule: list[Split] = [
            tuple(int(values[graph.rows[f"{device.prefix}{way}"]]) for device in devices)
            for way in SPLIT_WORDS
        ]
        alike = {
            (
                values[devices[place].workers.rows["memory.limit"]],
                *(values[row] for phase in graph.devices.of_layer.values() for row in phase[place].values()),
            )
            for place in self.present
        }
        self.alike = len(alike) == 1
        self.wanted: dict[str, Node] = {
            "fits": graph.rows["checks.possible"],
            "speed": OUTPUT_TOKENS_PER_S.worked_out(graph.figures),
            "time": E2E.worked_out(graph.figures),
        }
        for place in self.present:
            workers = devices[place].workers
            self.wanted |= {
                f"used{place}": workers.rows["memory.used"],
                f"limit{place}": workers.rows["memory.limit"],
            }
        self.program = Program(self.wanted.values())
        self.fits: dict[Split, bool] = {}
        self.ranks: dict[Split, tuple[float, float, float]] = {}

    def add(self, splits: Iterable[Split]) -> None:
        """Work out those that are not known yet."""
        new = [split for split in dict.fromkeys(splits) if split not in self.ranks]
        if not new:
            return
        layers = np.array(new, float)
        columns = {f"inputs.{device_name(at + 1, 'layers')}": layers[:, at] for at in range(self.all)}
        figures = self.program.sweep({**self.inputs, **columns})
        found = {
            name: np.broadcast_to(np.nan_to_num(np.asarray(figures[node], float), nan=0.0), len(new))
            for name, node in self.wanted.items()
        }
        over = sum(np.maximum(0, found[f"used{at}"] - found[f"limit{at}"]) for at in self.present)
        for place, split in enumerate(new):
            self.fits[split] = bool(found["fits"][place])
            missing = 0.0 if self.fits[split] else 1 + float(over[place])
            self.ranks[split] = missing, -_rounded(found["speed"][place]), _rounded(found["time"][place])

    def best(self) -> Split:
        """The best split so far."""
        return min(self.ranks, key=self.ranks.__getitem__)

    def in_units(self, units: int) -> list[Split]:
        """Every split of the layers in so many equal units."""
        there = len(self.present)
        found = []
        for bars in combinations(range(units + there - 1), there - 1):
            ends = [(bar - at) * self.layers // units for at, bar in enumerate((*bars, units + there - 1))]
            found.append(self._of_present(np.diff([0, *ends]).tolist()))
        return found

    def near(self, width: int) -> list[Split]:
        """The best splits with so many layers more or fewer on each device."""
        moves = [move for move in product((-width, 0, width), repeat=len(self.present)) if sum(move) == 0]
        best = sorted(self.ranks, key=self.ranks.__getitem__)[: _AT_ONCE // len(moves)]
        held = [[split[at] for at in self.present] for split in best]
        near = [[one + more for one, more in zip(old, move, strict=True)] for old in held for move in moves]
        return [self._of_present(split) for split in near if min(split) >= 0]

    def _of_present(self, layers: Sequence[int]) -> Split:
        """The layers of all devices: none on those that there are not."""
        held = dict(zip(self.present, layers, strict=True))
        return tuple(held.get(place, 0) for place in range(self.all))


def _rounded(value: float) -> float:
    """Without what rounding makes: equal splits shall be equal."""
    return float(f"{value:.9e}")
