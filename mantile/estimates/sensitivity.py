"""How far results move with what they follow from: the sensitivity to inputs, prices and factors.

The sensitivity of a result to an input is the relative change of the result from the low to the high end of
the input's range, all else as it is. Workbooks and audits both say it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mantile.equations.efficiency import FactorInUse
from mantile.equations.sensitivity import JUDGED, SIGN, SensitivityInput, input_values, range_percent, results
from mantile.estimates import overrides
from mantile.estimates.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node, Quantity, ancestors, children
from mantile.library.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

MEANING = "Effect = change of the result from the low to the high end of its range"
RANGE_PERCENT = {
    "given": 25,
    "override": 25,
    "measured": 10,
    "fitted": 15,
    "datasheet": 10,
    "secondary": 10,
    "price": 20,
    "assumed": 30,
}
"""Percent by which an input is taken lower and higher unless the scenario says otherwise, by its status."""

_ASKED = (
    "concurrency",
    "request_rate",
    "sessions",
    "input_tokens",
    "output_tokens",
    "utilisation",
    "electricity_price",
    "pue",
    "compute_speed",
    "network_speed",
)
_LOADS = ("concurrency", "request_rate", "sessions")
_AT_MOST_ONE = ("utilisation", "compute_speed", "network_speed")
_ENDS = np.array([-1.0, 1.0])


@dataclass(frozen=True)
class InputEffects:
    """An input and the relative change of each result from the low to the high end of its range.

    Args:
        effects: by key of the result: ttft, tpot, usd; None where nobody knows one.
        largest: how far it moves the result that it moves most, also where the plan cannot be.
    """

    input: SensitivityInput
    effects: dict[str, float | None]
    largest: float


def sensitivity(estimate: Estimate) -> list[InputEffects]:
    """What the results of the base scenario follow from, those inputs first that move a result most.

    Example:
        for item in sensitivity(mantile.estimate(scenario)):
            print(item.input.label, item.effects["tpot"])
    """
    inputs = list(sensitivity_inputs(estimate))
    figures = {key: result.figure for key, result in results(estimate.equations).items()}
    behind = {key: metric.worked_out(estimate.equations.figures) for key, metric in JUDGED.items()}
    ends = [input_values(item, range_percent(item)) for item in inputs]
    program = Program(
        [*figures.values(), *behind.values(), *(value for values in ends for value in values.values())]
    )
    base = program.run(estimate.inputs(0) | {SIGN.id: _ENDS})
    moved = []
    for item, values in zip(inputs, ends, strict=True):
        varied = program.vary(base, {figure: base[value] for figure, value in values.items()})
        effects = {key: _effect(varied[figure], base[figure]) for key, figure in figures.items()}
        moves = [_effect(varied[figure], base[figure]) for figure in behind.values()]
        moved.append(InputEffects(item, effects, max(abs(move or 0.0) for move in moves)))
    return sorted(moved, key=lambda item: -item.largest)


def drivers(estimate: Estimate) -> pd.DataFrame:
    """What the results of the base scenario follow from, as a table: first the inputs that move one most.

    Returns:
        A row for each input, by id: label, status, source, the percentage by which it is taken lower and
        higher, and the relative change of TTFT, TPOT and USD per million output tokens from the low to the
        high end.

    Example:
        mantile.drivers(estimate).head(5)
        mantile.drivers(estimate)["tpot"].abs().idxmax()    # what moves TPOT most
    """
    import pandas as pd

    rows = {
        item.input.id: {
            "label": item.input.label,
            "status": item.input.status,
            "source": item.input.source,
            "range_percent": item.input.range_percent,
            **item.effects,
        }
        for item in sensitivity(estimate)
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("id")


def sensitivity_inputs(
    estimate: Estimate, reasons: Mapping[str, str] | None = None
) -> Iterator[SensitivityInput]:
    """What the results of the base scenario follow from: what is asked, factors, prices.

    Args:
        reasons: of its overrides, by id; those that the scenario states where None.
    """
    yield from _asked(estimate)
    if reasons is None:
        reasons = {item.id: item.reason for item in estimate.columns[0].overrides}
    yield from _factors(estimate, reasons)
    yield from _prices(estimate)


MOST_ROWS = 8_500
"""Rows that a workbook has, with those that its drivers have of their own."""
LEAST = 2  # drivers that a finding names


def _within(estimate: Estimate, drivers: Sequence[tuple[str, Node]], most: int) -> list[str]:
    """The first drivers, by name, whose rows have room; one of many rows gives way to those behind it."""
    served = estimate.equations.serving
    results = (served.ttft, served.tpot, estimate.equations.rows["cost.usd_per_million_output"])
    parts = [(node, children(node)) for node in ancestors(*results)]
    found: list[str] = []
    left = MOST_ROWS - len(estimate.equations.quantities())
    for name, figure in drivers:
        if len(found) == most:
            break
        follow: set[Node] = {figure}
        rows = 0
        for node, own in parts:
            if node not in follow and not follow.isdisjoint(own):
                follow.add(node)
                rows += isinstance(node, Quantity)
        if rows <= left or len(found) < LEAST:
            left -= rows
            found.append(name)
    return found


def selected(effects: list[InputEffects], estimate: Estimate) -> list[SensitivityInput]:
    """The inputs of a workbook, as many as its template has, in the order of `effects`.

    Those for which the scenario states a percentage, then those that move a result most. Each has rows of its
    own for what follows from it: fewer of them in a large workbook, so that it can still be recalculated.

    Raises:
        InputError: if a percentage is stated for something else.
    """
    stated = estimate.scenario.sensitivity
    names = {item.input.id: item for item in effects}
    for identifier in stated:
        if identifier not in names:
            raise InputError(f"sensitivity: {unknown('driver', identifier, names)}")
    others = [item.input.id for item in effects if item.largest > 0 and item.input.id not in stated]
    wanted = estimate.template.drivers
    if wanted != "all":
        figures = {item.input.id: item.input.figure for item in effects}
        others = _within(estimate, [(name, figures[name]) for name in others], max(0, wanted - len(stated)))
    return [item.input for item in effects if item.input.id in stated or item.input.id in others]


def _effect(ends: object, base: object) -> float | None:
    """The change from the low to the high end, over the base; None where nobody knows a result."""
    if isinstance(ends, str) or isinstance(base, str):
        return None
    now = float(np.asarray(base, dtype=float))
    low, high = np.broadcast_to(np.asarray(ends, dtype=float), 2)
    change = (high - low) / now if now > 0 else np.nan
    return float(change) if np.isfinite(change) else None


def _range_percent(estimate: Estimate, identifier: str, status: str) -> int:
    return estimate.scenario.sensitivity.get(identifier, RANGE_PERCENT[status])


def _asked(estimate: Estimate) -> Iterator[SensitivityInput]:
    """What the scenario asks for. The load is what is given: sessions, a request rate, else a concurrency."""
    named, values = estimate.equations.inputs.named(), estimate.columns[0].values
    load = next((name for name in ("request_rate", "sessions") if values.get(name)), "concurrency")
    for name in _ASKED:
        if name in named and (name == load or name not in _LOADS):
            figure, asked = named[name], name in estimate.columns[0].given
            yield SensitivityInput(
                id=figure.id,
                label=figure.label,
                figures=(figure,),
                status="given" if asked else "assumed",
                source="as asked" if asked else "nobody asked for another",
                range_percent=_range_percent(estimate, figure.id, "given"),
                at_most_one=name in _AT_MOST_ONE,
                at_least_one=name == "pue",
            )


def _prices(estimate: Estimate) -> Iterator[SensitivityInput]:
    """The price of an accelerator, of prefill and of decode workers."""
    for figure in estimate.equations.rows.each("pool", "cost.price"):
        if figure.id in estimate.equations.figures:
            yield SensitivityInput(
                id=figure.id,
                label=figure.label,
                figures=(figure,),
                status="price",
                source=f"{estimate.columns[0].values['price_basis']} price",
                range_percent=_range_percent(estimate, figure.id, "price"),
            )


def _factors(estimate: Estimate, reasons: Mapping[str, str]) -> Iterator[SensitivityInput]:
    """Efficiency factors; those that decode workers share with prefill workers once."""
    equations = estimate.equations
    seen: set[Quantity] = set()
    for workers in equations.workers:
        prefix, suffix = ("", "") if workers is equations.prefill_workers else ("decode.", ", decode")
        for name, factor in workers.efficiency.in_use.items():
            main = factor.main
            if main.id not in equations.figures or main in seen:
                continue
            users = [quantity for quantity in factor.by_user.values() if quantity.id in equations.figures]
            seen |= {main, *users}
            identifier = f"{prefix}efficiency.{name}"
            status, source = _origin(estimate, factor, reasons.get(identifier))
            yield SensitivityInput(
                id=identifier,
                label=main.label.partition(" in use")[0] + suffix,
                figures=tuple(dict.fromkeys((main, *users))),
                status=status,
                source=source,
                range_percent=_range_percent(estimate, identifier, status),
                at_most_one=factor.kind.fraction,
                at_least_one=factor.kind.low >= 1,
            )


def _origin(estimate: Estimate, factor: FactorInUse, reason: str | None) -> tuple[str, str]:
    """Status and source of a factor: of its override if there is a reason for one, else of the library."""
    if reason is not None:
        return overrides.SOURCE, overrides.source(reason)
    figure = factor.library_figure(factor.main, estimate.values())
    return figure.status, figure.source.partition(": ")[2]
