"""The overrides of a scenario: what each stands for, what holds without it, what it does to the results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.metrics import Metric
from mantile.equations.sensitivity import results
from mantile.estimates.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Named, Node

SOURCE = "override"
"""The source and the status of a figure that an override states."""


@dataclass(frozen=True)
class OverrideInUse:
    """An override and what would hold without it.

    Args:
        id: as a scenario calls it.
        cell: the input that holds it, one for all scenarios where `cell.shared`.
        figures: in use, that it stands for; the cell itself for a fact of the model or a shared figure.
        value: in the unit of the cell.
        defaults: of each of the figures without it, in the unit of the cell.
        without: the figures without it, each in its own unit.
        stated: whether the scenario states it; else somebody typed it into a workbook since.
        reason: why, as the scenario says.
        before, after: the results without and with it, in SI units, by key: ttft, tpot, usd.
    """

    id: str
    cell: Input
    figures: tuple[Named, ...]
    value: float
    defaults: tuple[float, ...]
    without: Mapping[Named, float]
    stated: bool
    reason: str
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]

    @property
    def default(self) -> float:
        """Of the figure that is shown, in the unit of the cell."""
        return self.defaults[0]

    @property
    def effects(self) -> dict[str, float | None]:
        """The relative change of each result from the default to the value.

        None where nobody knows a result.
        """
        return {
            key: now / before - 1 if before and (now := self.after[key]) else None
            for key, before in self.before.items()
        }


def source(reason: str) -> str:
    """What stands as the source of an override with a reason."""
    return f"{SOURCE}: {reason}"


def overrides(
    estimate: Estimate, column: int = 0, inputs: Mapping[str, Any] | None = None
) -> list[OverrideInUse]:
    """The overrides of library figures that a scenario has.

    Those it states in its order, then those typed since.

    Args:
        column: of the scenario.
        inputs: values of its inputs where somebody has edited them since.
    """
    values = estimate.inputs(column) if inputs is None else dict(inputs)
    stated = {item.id: item for item in estimate.columns[column].overrides}
    items = []
    for identifier, overridable in estimate.equations.overridable.items():
        value = values.get(overridable.cell.id)
        if value is None:
            continue
        used = [
            (figure, default)
            for figure, default in zip(overridable.figures, overridable.defaults, strict=True)
            if figure.id in estimate.equations.figures
        ]
        item = stated.get(identifier)
        is_stated = item is not None and math.isclose(item.value, value, rel_tol=1e-9)
        items.append(
            _override(
                estimate,
                identifier=identifier,
                cell=overridable.cell,
                figures=[figure for figure, _ in used],
                defaults=[default for _, default in used],
                inputs=values,
                without={**values, overridable.cell.id: None},
                reason=item.reason if item is not None and is_stated else None,
            )
        )
    order = list(stated)
    return sorted(items, key=lambda item: order.index(item.id) if item.id in stated else len(order))


def shared_overrides(estimate: Estimate, inputs: Mapping[str, Any] | None = None) -> list[OverrideInUse]:
    """The overrides that all scenarios share: facts of the model, and figures that no profile states.

    Args:
        inputs: values of the inputs of the base scenario where somebody has edited them since.
    """
    values = estimate.inputs(0) if inputs is None else dict(inputs)
    return [
        _override(
            estimate,
            identifier=item.id,
            cell=cell,
            figures=[cell],
            defaults=[cell],
            inputs=values,
            without={**values, cell.id: _fact(estimate, cell)},
            reason=item.reason,
        )
        for item in estimate.scenario.overrides
        if isinstance(cell := estimate.equations.figures.get(item.id), Input)
    ]


def by_scenario(estimate: Estimate) -> Iterator[tuple[tuple[int, ...], OverrideInUse]]:
    """Every override with the numbers of the scenarios that have it; those that several state alike once."""
    alike: dict[tuple[str, float], tuple[list[int], OverrideInUse]] = {}
    for column in range(len(estimate.columns)):
        for item in overrides(estimate, column):
            alike.setdefault((item.id, item.value), ([], item))[0].append(column)
    for columns, item in alike.values():
        yield tuple(columns), item
    for item in shared_overrides(estimate):
        yield tuple(range(len(estimate.columns))), item


def _override(
    estimate: Estimate,
    *,
    identifier: str,
    cell: Input,
    figures: Sequence[Named],
    defaults: Sequence[Node],
    inputs: Mapping[str, Any],
    without: Mapping[str, Any],
    reason: str | None,
) -> OverrideInUse:
    """An override, with the results worked out with and without it."""
    judged = {key: result.figure for key, result in results(estimate.equations).items()}
    program = Program([*judged.values(), *figures, *defaults, cell])
    now, then = program.run(inputs), program.run(without)
    return OverrideInUse(
        id=identifier,
        cell=cell,
        figures=tuple(figures),
        value=float(now[cell]),
        defaults=tuple(float(then[default]) for default in defaults),
        without={figure: float(then[figure]) for figure in figures},
        stated=reason is not None,
        reason=reason or "",
        before={key: Metric.known(then[figure]) for key, figure in judged.items()},
        after={key: Metric.known(now[figure]) for key, figure in judged.items()},
    )


def _fact(estimate: Estimate, cell: Input) -> float | None:
    """A shared figure without an override: the checkpoint's fact, or what the graph has."""
    architecture = estimate.model.architecture
    facts = dict(architecture.facts)
    if architecture.vision is not None:
        facts |= {f"vision.{name}": fact for name, fact in architecture.vision.facts.items()}
    fact = facts.get(cell.id.removeprefix("model."))
    if cell.id.startswith("model.") and fact is not None:
        return float(fact.value)
    return None if cell.value is None else float(cell.value)
