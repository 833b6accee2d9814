"""Many plans through the graph at once: a row of a table is a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.checks import Check
from mantile.equations.graph import EstimateGraph
from mantile.equations.measures import MEASURES, Measure
from mantile.equations.override import OVERRIDE
from mantile.equations.reasons import PLAN
from mantile.estimate.estimate import require_override
from mantile.estimate.structure import graph_of
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named, Node
from mantile.library.architecture import Model
from mantile.library.columns import columns
from mantile.library.fields import DECODE
from mantile.library.profiles import Library
from mantile.library.scenario import STATED_FIELDS, Scenario, apply_model_overrides, with_fields

Array = np.ndarray[Any, np.dtype[Any]]

_FORMAT_OF = ("framework", "weights_dtype")  # other data types follow from these together


@dataclass(frozen=True)
class Evaluator:
    """The graph of a model, and what all plans share.

    Args:
        scenario: what is asked; plans state the rest.
        needs: what `needs` of fields say that plans state beyond the scenario.
    """

    scenario: Scenario
    model: Model
    library: Library
    name: str = "optimize"
    needs: frozenset[str] = frozenset()
    _formats: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def graph(self) -> EstimateGraph:
        """The equations."""
        changed = apply_model_overrides(self.model, self.scenario.overrides, self.name)
        disaggregated, open_loop, prefixes, stated = self.scenario.parts
        graph = graph_of(
            changed,
            self.library,
            disaggregated,
            open_loop,
            prefixes,
            stated | self.needs,
            self.scenario.classes,
            devices=self.scenario.device_count,
        )
        for override in self.scenario.overrides:
            if not override.id.startswith("model."):
                require_override(graph, override, self.name)
        return graph

    @cached_property
    def measures(self) -> dict[str, Named]:
        """What the graph has of what plans are judged by, by key."""
        of: dict[str, Named] = {}
        for measure in MEASURES:
            if self.has(measure):
                of[measure.key] = measure.of(self.graph)
        return of

    def has(self, measure: Measure) -> bool:
        """Whether the graph has a measure."""
        return measure.metric.id in self.graph.figures or measure.metric.id.startswith("measures.")

    @cached_property
    def plan_checks(self) -> tuple[Check, ...]:
        """The rules of the checker that need no times: they are asked first."""
        return tuple(check for check in self.graph.checks.checks if check.group == PLAN)

    @cached_property
    def _shared(self) -> dict[str, Any]:
        overrides = {
            self.graph.replaceable[override.id].id: override.value
            for override in self.scenario.overrides
            if not override.id.startswith("model.")
        }
        return overrides

    def run(self, plans: pd.DataFrame, wanted: Mapping[str, Node]) -> dict[str, Array]:
        """Values of every plan, by the names of what is wanted.

        Args:
            plans: a column for every field that plans state, and for override cells.
        """
        if not len(plans):
            return {name: np.array([]) for name in wanted}
        outputs = Program(wanted.values())
        values = outputs.sweep(self._inputs(plans))
        return {name: np.broadcast_to(values[node], len(plans)) for name, node in wanted.items()}

    def _inputs(self, plans: pd.DataFrame) -> dict[str, Any]:
        """Inputs of the graph: those that differ as arrays, all other ones once."""
        named = self.graph.inputs.named()
        keys, places = _unique(plans, [name for name in _FORMAT_OF if name in plans])
        resolved = [self._resolved(plans.iloc[first]) for first in keys]
        inputs: dict[str, Any] = dict(self._shared)
        inputs |= {name: _array(plans[name]) for name in plans if name.endswith(OVERRIDE)}
        for name in named:
            if name in plans:
                inputs[f"inputs.{name}"] = _array(plans[name])
                continue
            held = [column.get(name) for column in resolved]
            if all(value == held[0] for value in held):
                if held[0] is not None:
                    inputs[f"inputs.{name}"] = held[0]
            else:
                inputs[f"inputs.{name}"] = np.array(held)[places]
        return inputs

    def _resolved(self, plan: pd.Series[Any]) -> dict[str, Any]:
        """A plan as a column of a scenario: every default filled in."""
        key = tuple(str(plan.get(name)) for name in _FORMAT_OF)
        if key not in self._formats:
            stated = {
                name: plan[name]
                for name in ("accelerator", *_FORMAT_OF, f"{DECODE}accelerator")
                if name in plan
            }
            scenario = with_fields(self.scenario, stated, self.name)
            column = columns(scenario, self.model, self.library, self.name, self.scenario.disaggregated)[0]
            self._formats[key] = column.values
        return self._formats[key]


def _unique(plans: pd.DataFrame, names: list[str]) -> tuple[list[int], Array]:
    """Rows that differ in some columns, the first of each kind, and the place of each row among them."""
    if not names:
        return [0], np.zeros(len(plans), int)
    groups = plans.groupby(names, sort=False, observed=True)
    places = groups.ngroup().to_numpy()
    _, firsts = np.unique(places, return_index=True)
    return [int(first) for first in firsts], places


def _array(column: pd.Series[Any]) -> Array:
    values = column.to_numpy()
    return values if values.dtype.kind in "if" else np.array([str(value) for value in values])


def stated_needs(fields: Iterable[str]) -> frozenset[str]:
    """What `needs` says of fields that only some scenarios have."""
    return frozenset(STATED_FIELDS[name] for name in fields if name in STATED_FIELDS)


def numbers(values: Array) -> Array:
    """Numbers; NaN where somebody says in words that nobody knows one."""
    if values.dtype.kind in "if":
        return values.astype(float)
    return np.array([value if isinstance(value, float | int) else np.nan for value in values], float)
