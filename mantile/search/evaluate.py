"""Many plans through the graph at once: a row of a table is a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from mantile.estimates.estimate import require_override
from mantile.estimates.structure import graph_of
from mantile.graph.evaluate import Program, in_chunks
from mantile.graph.quantity import Named, Node
from mantile.library.architecture import Model
from mantile.library.columns import columns
from mantile.library.fields import DECODE
from mantile.library.profiles import Library
from mantile.library.scenario import Scenario, apply_model_overrides, with_fields
from mantile.library.scenario_fields import STATED_FIELDS

Array = np.ndarray[Any, np.dtype[Any]]

_FORMAT_OF = ("framework", "weights_dtype")  # other data types follow from these together


@dataclass(frozen=True)
class _Prepared:
    """A program for plans of some kinds; plans of one kind differ in numbers alone.

    Args:
        places: of the kinds, by what is no number of them.
        run: values of plans, of the places of their kinds and of their numbers.
    """

    program: Program
    places: Mapping[tuple[Any, ...], int]
    run: Callable[[Array, Mapping[str, Array]], dict[Node, Any]]


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
    _prepared: dict[tuple[Any, ...], _Prepared] = field(default_factory=dict, init=False, repr=False)

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
            self.scenario.classes_in_use,
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
        fields = self.graph.inputs.named()
        stated = [name for name in plans if name in fields or name.endswith(OVERRIDE)]
        numbers_ = [name for name in stated if plans[name].dtype.kind in "if"]
        named = [name for name in stated if name not in numbers_]
        firsts, kinds = unique(plans, named)
        rows = [*plans[named].iloc[firsts].itertuples(index=False, name=None)] if named else [()]
        nodes = tuple(wanted.values())
        program = self._program(nodes, named, numbers_, rows)
        places = np.array([program.places[row] for row in rows])[kinds]
        varying = {_input(name): plans[name].to_numpy() for name in numbers_}

        def values_of(part: slice) -> dict[Node, Any]:
            return program.run(places[part], {name: array[part] for name, array in varying.items()})

        values = in_chunks(values_of, nodes, len(plans))
        return {name: values[node] for name, node in wanted.items()}

    def _program(
        self, nodes: tuple[Node, ...], named: list[str], numbers: list[str], rows: list[tuple[Any, ...]]
    ) -> _Prepared:
        """What works nodes out for plans of some kinds, made anew only for kinds that have not come up."""
        key = (nodes, *named, *numbers)
        before = self._prepared.get(key)
        if before is not None and before.places.keys() >= {*rows}:
            return before
        known = [*dict.fromkeys([*(before.places if before else ()), *rows])]
        kinds = pd.DataFrame(known, columns=named, index=range(len(known)))
        shared, of_kinds = self._inputs(kinds, numbers)
        program = before.program if before else Program(nodes)
        self._prepared[key] = _Prepared(
            program,
            {row: place for place, row in enumerate(known)},
            program.of_kinds(shared, of_kinds, {*map(_input, numbers)}),
        )
        return self._prepared[key]

    def _inputs(self, kinds: pd.DataFrame, numbers: list[str]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Inputs of the graph that all plans share, and those that differ by the kind of a plan.

        Args:
            kinds: what is no number of plans, a row for each kind.
            numbers: fields that plans state beside it.
        """
        keys, places = unique(kinds, [name for name in _FORMAT_OF if name in kinds])
        resolved = [self._resolved(kinds.iloc[first]) for first in keys]
        shared: dict[str, Any] = dict(self._shared)
        of_kinds: dict[str, Array] = {}
        for name in self.graph.inputs.named():
            if name in kinds:
                of_kinds[_input(name)] = np.array([str(value) for value in kinds[name]])
            elif name not in numbers:
                held = [column.get(name) for column in resolved]
                if any(value != held[0] for value in held):
                    of_kinds[_input(name)] = np.array(held)[places]
                elif held[0] is not None:
                    shared[_input(name)] = held[0]
        return shared, of_kinds

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


def unique(plans: pd.DataFrame, names: list[str]) -> tuple[list[int], Array]:
    """Rows that differ in some columns, the first of each kind, and the place of each row among them."""
    if not names:
        return [0], np.zeros(len(plans), int)
    groups = plans.groupby(names, sort=False, observed=True)
    places = groups.ngroup().to_numpy()
    _, firsts = np.unique(places, return_index=True)
    return [int(first) for first in firsts], places


def _input(name: str) -> str:
    """The id of a field among the inputs of the graph; an override cell has one already."""
    return name if name.endswith(OVERRIDE) else f"inputs.{name}"


def stated_needs(fields: Iterable[str]) -> frozenset[str]:
    """What `needs` says of fields that only some scenarios have."""
    return frozenset(STATED_FIELDS[name] for name in fields if name in STATED_FIELDS)


def numbers(values: Array) -> Array:
    """Numbers; NaN where somebody says in words that nobody knows one."""
    if values.dtype.kind in "if":
        return values.astype(float)
    return np.array([value if isinstance(value, float | int) else np.nan for value in values], float)
