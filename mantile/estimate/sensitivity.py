"""What the results of an estimate hang on: inputs, prices and factors that could be otherwise, and how much each moves the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mantile.equations.efficiency import Efficiency
from mantile.estimate.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Named, Quantity
from mantile.library.errors import InputError, unknown

RESULTS = ("ttft", "tpot", "usd")
# Percent by which a figure is taken lower and higher unless the scenario says otherwise, by how well it is known.
SWINGS = {"given": 25, "measured": 10, "fitted": 15, "datasheet": 10, "price": 20, "assumed": 30}
_ASKED = (
    "concurrency",
    "request_rate",
    "input_tokens",
    "output_tokens",
    "utilisation",
    "electricity_price",
    "pue",
)
_NUDGE = 1.1


@dataclass(frozen=True)
class Driver:
    """A figure of the base scenario that could be otherwise.

    Args:
        id: of the input or figure, without what marks an override.
        figures: what is scaled: one input, or all figures that one factor is used as. The first is shown.
        status: given, price, or how the figure is known: measured, fitted, datasheet, assumed.
        source: where it comes from.
        at_most_one, at_least_one: shares never exceed 1; multiples of a mean, or of the power of the machines, are never below.
        effects: relative change of TTFT, TPOT and USD per million output tokens when it is a tenth higher.
    """

    id: str
    label: str
    figures: tuple[Named, ...]
    status: str
    source: str
    at_most_one: bool = False
    at_least_one: bool = False
    effects: tuple[float, ...] = ()

    @property
    def figure(self) -> Named:
        """The figure that is shown."""
        return self.figures[0]

    @property
    def swing(self) -> int:
        """Percent by which it is taken lower and higher."""
        return SWINGS[self.status]

    @property
    def weight(self) -> float:
        """How much it moves the result that it moves most, over its range."""
        return max(abs(effect) for effect in self.effects) * self.swing


def results(made: Estimate) -> dict[str, Quantity]:
    """The results that drivers are judged by: TTFT, TPOT, USD per million output tokens."""
    return dict(
        zip(
            RESULTS,
            (
                made.equations.serving.ttft,
                made.equations.serving.tpot,
                made.equations.cost.usd_per_million_output,
            ),
            strict=True,
        )
    )


def drivers(made: Estimate) -> list[Driver]:
    """All drivers of the base scenario, those first that move a result most."""
    inputs = made.inputs(0)
    program = Program(results(made).values())
    base = program.run(inputs)
    found = [*_asked(made), *_factors(made)]
    changes = [change for _, change in found]
    names = {name for change in changes for name in change}
    known = {given.id: given.value for given in program.inputs} | inputs
    columns = {
        name: np.array([change.get(name, known.get(name)) for change in changes], dtype=float)
        for name in names
        if name in known
    }
    after = program.sweep(inputs | columns)
    listed = []
    for place, (driver, _) in enumerate(found):
        effects = tuple(
            _effect(float(after[result][place]), float(base[result])) for result in results(made).values()
        )
        listed.append(replace(driver, effects=effects))
    return sorted([*listed, *_prices(made)], key=lambda driver: -driver.weight)


def chosen(listed: list[Driver], made: Estimate) -> list[Driver]:
    """The drivers of a workbook: those for which the scenario states a percentage, then those that move a result most, as many as its template has.

    Raises:
        InputError: if a percentage is stated for something else.
    """
    known = {driver.id: driver for driver in listed}
    for identifier in made.scenario.sensitivity:
        if identifier not in known:
            raise InputError(f"sensitivity: {unknown('driver', identifier, known)}")
    stated = [driver for driver in listed if driver.id in made.scenario.sensitivity]
    moving = [driver for driver in listed if driver.weight > 0 and driver not in stated]
    wanted = made.template.drivers
    picked = stated + (moving if wanted == "all" else moving[: max(0, wanted - len(stated))])
    return [driver for driver in listed if driver in picked]


def _effect(after: float, before: float) -> float:
    return after / before - 1 if before > 0 and np.isfinite(after) else 0.0


def _asked(made: Estimate) -> Iterator[tuple[Driver, dict[str, float]]]:
    named = made.equations.inputs.named()
    left_out = (
        "concurrency" if made.columns[0].values.get("request_rate") else "request_rate"
    )  # the load is said by one of them
    for name in _ASKED:
        figure = named.get(name)
        if figure is None or name == left_out:
            continue
        value = float(made.columns[0].values[name])
        higher = np.ceil(value * _NUDGE) if figure.integer else value * _NUDGE
        yield (
            Driver(
                figure.id,
                figure.label,
                (figure,),
                "given",
                "as asked",
                at_most_one=name == "utilisation",
                at_least_one=name == "pue",
            ),
            {figure.id: float(higher)},
        )


def _prices(made: Estimate) -> Iterator[Driver]:
    """The price of an accelerator of each side: it moves the cost alone, by the share that the side has in it."""
    equations, values = made.equations, made.values()
    whole = float(values[equations.cost.usd_per_hour])
    for workers, money in zip(equations.workers, equations.cost.accelerators, strict=True):
        figure = money.price
        if figure.id not in equations.figures:
            continue
        share = float(values[money.hourly]) / whole if whole > 0 else 0.0
        if workers is not equations.prefill_workers and workers.ranks.disaggregated is not None:
            share *= float(values[workers.ranks.disaggregated])
        yield Driver(
            figure.id,
            figure.label,
            (figure,),
            "price",
            f"{made.columns[0].values['price_basis']} price",
            effects=(0.0, 0.0, (_NUDGE - 1) * share),
        )


def _factors(made: Estimate) -> Iterator[tuple[Driver, dict[str, float]]]:
    equations, inputs = made.equations, made.inputs(0)
    seen: set[Quantity] = set()
    for side in equations.workers:
        reached = side.efficiency
        for kind in reached.kinds():
            main = reached.factors[kind.name]
            if main.id not in equations.figures or main in seen:
                continue  # decode workers share it, or have no use for it
            users = [
                figure
                for (name, _), figure in reached.by_user.items()
                if name == kind.name and figure.id in equations.figures
            ]
            seen |= {main, *users}
            higher = {
                item.id: item.value * _NUDGE
                for item in reached.figures[kind.name]
                if isinstance(item.value, int | float)
            }
            name = f"{'' if side is equations.prefill_workers else 'decode.'}efficiency.{kind.name}.override"
            if isinstance(inputs.get(name), int | float):
                higher[name] = inputs[name] * _NUDGE
            status, _, source = _in_use(made, reached, kind.name, main).source.partition(": ")
            label = main.label.partition(" in use")[0] + (
                "" if side is equations.prefill_workers else ", decode"
            )
            yield (
                Driver(
                    name.removesuffix(".override"),
                    label,
                    tuple(dict.fromkeys((main, *users))),
                    status.split(" ")[0],
                    source,
                    at_most_one=kind.fraction,
                    at_least_one=kind.low >= 1,
                ),
                higher,
            )


def _in_use(made: Estimate, reached: Efficiency, name: str, figure: Quantity) -> Input:
    """The library figure behind a factor of the base scenario: of those equal to it, the one of the highest level."""
    values = made.values()
    scale = {"s": 1e6, "B": 1e-9, "B/s": 1e-9}.get(figure.unit, 1.0)
    rows = reached.in_use[name]
    value = float(values[figure]) * scale
    fitting = [row for row in rows if abs(float(row[0].value or 0) - value) <= 1e-9 * abs(value)] or list(
        rows
    )
    return max(fitting, key=lambda row: reached.level(row[1], values))[0]
