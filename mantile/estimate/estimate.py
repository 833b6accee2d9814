"""One estimate: a model, a scenario with its columns, and the numbers of the graph for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from mantile.equations.graph import EstimateGraph, build_graph
from mantile.estimate.results import results
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named, Node
from mantile.ir.build import build_ir
from mantile.library.architecture import Model
from mantile.library.columns import Column, columns
from mantile.library.errors import InputError, unknown
from mantile.library.models import load_model
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import (
    WORKER_FIELDS,
    Override,
    Scenario,
    apply_model_overrides,
    with_fields,
    with_own_accelerators,
)
from mantile.library.template import Template, load_template


@dataclass(frozen=True)
class Estimate:
    """A scenario worked out.

    Args:
        scenario: as given, with ids in place of accelerators given as files.
        model: as loaded, before overrides of its facts.
        columns: one per case, base first.
        equations: the graph.
        template: how its workbook is laid out.
    """

    scenario: Scenario
    model: Model
    library: Library
    columns: tuple[Column, ...]
    equations: EstimateGraph
    template: Template

    def again(self, scenario: Scenario, library: Library | None = None, name: str = "scenario") -> Estimate:
        """Another scenario on the same model, with the same template, and the same library unless another is given."""
        return estimate(scenario, self.model, library or self.library, name, self.template)

    @property
    def title(self) -> str:
        """What the workbook is called: the template's or the scenario's title, or model and accelerators."""
        if self.template.title or self.scenario.title:
            return str(self.template.title or self.scenario.title)
        values = self.columns[0].values
        prefixes = ("", "decode_") if values.get("serving") == "disaggregated" else ("",)
        parts = []
        for prefix in prefixes:
            stated = {field: values.get(f"{prefix}{field}", values[field]) for field in WORKER_FIELDS}
            count = prod(int(stated[field]) for field in ("tp", "attention_dp", "cp", "pp", "dp"))
            parts.append(f"{count} × {self.library.accelerator(str(stated['accelerator'])).name}")
        return f"{self.model.name} on {' → '.join(parts)}"

    def inputs(self, column: int) -> dict[str, Any]:
        """Values of all inputs that differ from the graph's own, for one column."""
        return dict(self._inputs[column])

    @cached_property
    def _inputs(self) -> list[dict[str, Any]]:
        named, found = self.equations.inputs.named(), []
        for chosen in self.columns:
            values: dict[str, Any] = {
                f"inputs.{name}": chosen.values[name] for name in named if name in chosen.values
            }
            for override in chosen.overrides:
                if not override.id.startswith("model."):
                    values[self.equations.replaceable[override.id].id] = override.value
            found.append(
                values
                | {
                    self.equations.measured.values[field].id: value
                    for field, value in chosen.measured.given().items()
                }
            )
        return found

    @cached_property
    def program(self) -> Program:
        """Every figure of the graph, every check, and the efficiency profiles in use, ready to run."""
        equations = self.equations
        return Program(
            [
                *equations.figures.values(),
                *(check.result for check in equations.checks.checks),
                *(choice.profile for side in equations.workers for choice in side.efficiency.choices),
            ]
        )

    def values(self, column: int = 0) -> dict[Node, Any]:
        """All numbers of one column."""
        return self._values[column]

    @cached_property
    def _values(self) -> list[dict[Node, Any]]:
        return [self.program.run(self.inputs(column)) for column in range(len(self.columns))]

    def figure(self, identifier: str) -> Named:
        """A figure by id.

        Raises:
            InputError: with the nearest ids.
        """
        figures = self.equations.figures
        if identifier not in figures:
            raise unknown("quantity", identifier, figures)
        return figures[identifier]

    def results(self, column: int = 0) -> dict[str, Any]:
        """The headline results of one column in SI units; the keys of `mantile estimate --json`.

        A figure that nobody knows is None, as are latencies, throughput and prices of a plan that cannot be.
        """
        named = {"model": self.model.id, "name": self.columns[column].name}
        return named | results(self.equations, self.values(column))


def estimate(
    scenario: Scenario,
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
    template: Template | None = None,
) -> Estimate:
    """Work a scenario out.

    Args:
        scenario: what is asked.
        model: instead of loading the model the scenario names.
        library: instead of the profiles we ship.
        name: stands for the scenario in errors.
        template: instead of the one the scenario names.

    Raises:
        InputError: naming the field that is wrong and what was expected.
    """
    scenario, library = with_own_accelerators(scenario, library or load_library(scenario.profiles))
    model = model or load_model(scenario.model)
    changed = apply_model_overrides(model, scenario.overrides, name)
    equations = build_graph(build_ir(changed), library, scenario.disaggregated, scenario.open_loop)
    found = columns(scenario, model, library, name)
    for column in found:
        for override in column.overrides:
            if not override.id.startswith("model."):
                require_override(equations, override, name)
    known = equations.replaceable
    for number, variant in enumerate(scenario.variants):
        for identifier in (*(override.id for override in variant.overrides), *variant.without):
            if identifier in known and known[identifier].shared:
                raise InputError(
                    f"{name}: variants.{number}: {identifier} is shared by all columns; override it in the base"
                )
    made = Estimate(scenario, model, library, found, equations, template or load_template(scenario.template))
    return made


def at_points(made: Estimate, points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Inputs of the base scenario with other values of some fields, and what follows from them by default.

    Args:
        points: fields of a scenario, those of decode workers as decode_<field>, and their values.

    Raises:
        InputError: for a field or value that a scenario cannot have.
    """
    found = []
    for point in points:
        scenario = with_fields(made.scenario, point, "sweep")
        one = replace(
            made,
            scenario=scenario,
            columns=columns(scenario, made.model, made.library, "sweep", made.scenario.disaggregated),
        )
        found.append(one.inputs(0))
    return found


def require_override(equations: EstimateGraph, override: Override, name: str) -> None:
    """Refuse an override of a figure there is not, or beyond what its cell may hold.

    Raises:
        InputError: with the nearest ids, or the range.
    """
    known = equations.replaceable
    if override.id not in known:
        raise InputError(f"{name}: overrides: {unknown('figure', override.id, known)}")
    wrong = known[override.id].outside(override.value)
    if wrong:
        raise InputError(f"{name}: overrides: {override.id} = {override.value:g}: expected {wrong}")
