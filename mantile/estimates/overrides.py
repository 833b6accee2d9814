"""The overrides of a scenario: what each stands for, what holds without it, what it does to the results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mantile.equations.metrics import Metric
from mantile.equations.sensitivity import results
from mantile.estimates.estimate import Estimate
from mantile.estimates.estimate import estimate as estimate_of
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Named, Node
from mantile.library.architecture import Fact
from mantile.library.errors import InputError
from mantile.library.scenario import Override
from mantile.library.structure import MODEL

SOURCE = "override"
"""The source and the status of a figure that an override states."""


@dataclass(frozen=True)
class OverrideInUse:
    """An override and what would hold without it.

    Args:
        id: as a scenario calls it.
        cell: what holds it: an input, one for all scenarios where `cell.shared`; or the sum of layers of
            several kinds.
        figures: in use, that it stands for; the cell itself for a fact of the model or a shared figure.
        value: in the unit of the cell.
        defaults: of each of the figures without it, in the unit of the cell.
        without: the figures without it, each in its own unit.
        stated: whether the scenario states it; else somebody typed it into a workbook since.
        reason: why, as the scenario says.
        before, after: the results without and with it, in SI units, by key: ttft, tpot, usd.
    """

    id: str
    cell: Named
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
    items = []
    for item in estimate.scenario.overrides:
        cell = estimate.equations.figures.get(item.id)
        if cell is None and item.id.startswith(f"{MODEL}layers."):
            cell = estimate.equations.figures["model.layers"]  # all layers are of that kind
        if not (isinstance(cell, Input) or (cell is not None and item.id.startswith(MODEL))):
            continue
        default = _fact(estimate, cell, item.id)
        found = _override(
            estimate,
            identifier=item.id,
            cell=cell,
            figures=[cell],
            defaults=[cell],
            inputs=values,
            without={**values, cell.id: default},
            reason=item.reason,
        )
        if item.id.startswith(MODEL) and not _is_dimension(estimate, item.id):
            known = 0.0 if default is None else default
            before = _before(estimate, item, found.after)
            found = replace(found, defaults=(known,), without={cell: known}, before=before)
        items.append(found)
    return items


def _is_dimension(estimate: Estimate, identifier: str) -> bool:
    """Whether a fact is a number that formulas follow: the config has it, and no tensor depends on it."""
    figure = estimate.equations.figures.get(identifier)
    return isinstance(figure, Input) and not figure.fixed and identifier in _facts_of(estimate)


def _before(
    estimate: Estimate, item: Override, after: Mapping[str, float | None]
) -> Mapping[str, float | None]:
    """The results without an override that other formulas follow from, by an estimate of its own.

    Without layers of a kind nothing reads the facts that the config lacks; these have no effect of theirs.
    """
    of_layers = item.id.startswith(f"{MODEL}layers.") and item.id not in _facts_of(estimate)
    kept = [
        other
        for other in estimate.scenario.overrides
        if other is not item
        and not (of_layers and other.id.startswith(MODEL) and other.id not in _facts_of(estimate))
    ]
    fields = {"overrides": [other.model_dump() for other in kept]}
    try:
        plain = estimate_of(estimate.scenario.replace(**fields), estimate.model, estimate.library)
    except InputError:
        return dict.fromkeys(after)
    values = plain.values()
    return {key: Metric.known(values[result.figure]) for key, result in results(plain.equations).items()}


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
    cell: Named,
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


def _facts_of(estimate: Estimate) -> dict[str, Fact]:
    """The facts that the checkpoint's config states, by their ids."""
    architecture = estimate.model.architecture
    facts = {f"{MODEL}{name}": fact for name, fact in architecture.facts.items()}
    if architecture.vision is not None:
        facts |= {f"{MODEL}vision.{name}": fact for name, fact in architecture.vision.facts.items()}
    return facts


def _fact(estimate: Estimate, cell: Named, identifier: str) -> float | None:
    """A shared figure without an override: the checkpoint's fact, 0 if it has none, or what the graph has."""
    if identifier.startswith(MODEL):
        fact = _facts_of(estimate).get(identifier)
        return 0.0 if fact is None else float(fact.value)
    return None if not isinstance(cell, Input) or cell.value is None else float(cell.value)
