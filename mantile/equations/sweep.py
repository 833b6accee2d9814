"""One or two inputs of the base scenario over lists of values: each point's results, live or stored.

A live point is a further case of the base scenario in which the inputs that vary, and all that follows from
them, are worked out again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.checks import TOLERANCE
from mantile.equations.display import Currency, Shown
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    INTERACTIVITY,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.equations.sensitivity import JUDGED
from mantile.equations.variation import Variation, Variations
from mantile.graph.excel import Cells
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    Value,
    absolute,
    at_least,
    count_where,
    if_error,
    index,
    is_error,
    is_number,
    join,
    match,
    minimum,
    number_of,
    rounded,
    span,
    where,
)

_RESULTS: dict[str, Metric | None] = {
    "ttft": TTFT,
    "tpot": TPOT,
    "interactivity": INTERACTIVITY,
    "tokens": OUTPUT_TOKENS_PER_S,
    "per_accelerator": OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    "memory": MEMORY_PER_ACCELERATOR,
    "usd": USD_PER_MILLION_OUTPUT_TOKENS,
    "power": POWER,
    "plan": None,
}
"""What a sweep shows of each point, under its name in ids; whether the plan can be is no metric."""


CHART_METRIC = "sweep.metric"
"""Id of the metric that is chosen for the chart over the first input."""
CHOSEN, ACROSS, UP = "chosen", "interactivity", "per_accelerator"
CHARTED = (ACROSS, UP, CHOSEN)
"""What charts show: the metric that is chosen; and one along the axis of another, a number in each point."""
NO_POINT = Input("sweep.no_point", "Where there is no point", "1", math.nan, shared=True, fixed=True)


@dataclass(frozen=True)
class Choice:
    """The metric that a chart shows.

    Args:
        metric: what is typed, one of `choices`.
        place: of it among the choices; the first where something else is typed.
    """

    metric: Input
    choices: tuple[Input, ...]
    place: Quantity

    @property
    def listed(self) -> Span:
        """The choices, for the list of the cell."""
        return span(self.choices)

    def title(self, chosen: Sequence[Quantity], over: str) -> Quantity:
        """What the chart shows, or that nobody knows it at any point."""
        label = index(self.listed, self.place)
        return _title(CHOSEN, label, chosen, f" over {over}")


@dataclass(frozen=True)
class Point:
    """One line of a sweep.

    Args:
        fields: values of the swept inputs.
        results: by key, in the units in which they are shown.
        charted: those that charts show; no point is drawn where nobody knows one.
        name: after which a curve is called, where a second input tells curves apart.
    """

    fields: tuple[Quantity, ...]
    results: Mapping[str, Quantity]
    charted: Mapping[str, Quantity]
    name: Quantity | None = None


@dataclass(frozen=True)
class StoredPoint:
    """The results of a point as values, by key, and the one that is chosen for a chart."""

    results: Mapping[str, Input]
    chosen: Quantity


@dataclass(frozen=True)
class Stored:
    """What says whether points that are stored as values still are those of the scenario.

    Args:
        then: results of the scenario when the points were worked out, by key.
        same: for some of them, whether they still are so.
        note: the same in words.
    """

    then: Mapping[str, Input]
    same: Mapping[str, Quantity]
    note: Quantity


@dataclass(frozen=True)
class Live:
    """Points as formulas.

    Args:
        inputs: the inputs that vary, each with what stands for it in the cases of the points.
        variation: everything that follows from them.
        points: in order.
    """

    inputs: Mapping[Input, Input]
    variation: Variation
    points: tuple[Point, ...]


def results(graph: EstimateGraph, currency: Currency) -> dict[str, Shown]:
    """What a sweep shows of each point."""
    figures, verdict = graph.figures, graph.checks.state
    return {
        key: Shown(key, "plan", verdict.unit, verdict, currency)
        if metric is None
        else metric.on(figures, key, currency)
        for key, metric in _RESULTS.items()
    }


def choice(shown: Mapping[str, Shown]) -> Choice:
    """The metric that a chart shows, of all that are numbers."""
    labels = {key: of.label for key, of in shown.items() if of.digits is not None}
    choices = tuple(
        Input(f"sweep.choice.{key}", f"Choice, {label}", "1", label, shared=True, fixed=True)
        for key, label in labels.items()
    )
    metric = Input(
        CHART_METRIC,
        "Metric of the chart",
        "1",
        labels["tpot"],
        "the chart below and its title follow",
        choices=tuple(labels.values()),
        shared=True,
    )
    typed = match(InCase(metric, 0, "as typed"), span(choices))
    place = Quantity("sweep.metric.place", "Place of the metric", "number", if_error(typed, 1))
    return Choice(metric, choices, place)


def title_across(up: Sequence[Named]) -> Quantity:
    """What the chart of throughput against speed shows, or that nobody knows it at any point."""
    label = "Throughput per accelerator against speed for a user"
    return _title(UP, label, up, "")


def _title(key: str, label: Node | str, figures: Sequence[Named], behind: str) -> Quantity:
    known = count_where(span(figures), at_least(0)) > 0
    return Quantity(
        f"sweep.title.{key}",
        "Chart title",
        "1",
        join(label, where(known, behind, ": not known at any point")),
    )


def now(inputs: Sequence[Input], shown: Mapping[str, Shown], chosen: Choice) -> Point:
    """The live scenario as a line of the sweep."""
    shown_now = {key: _result("now", of, _now(of.figure)) for key, of in shown.items()}
    return Point(
        fields=tuple(_field("now", figure, _now(figure)) for figure in inputs),
        results=shown_now,
        charted=_charted("now", shown_now, chosen),
    )


def stored(shown: Mapping[str, Shown], here: Point, values: Mapping[str, Value]) -> Stored:
    """The comparison of the live scenario with itself as generated.

    Args:
        here: the live scenario.
        values: results as generated, by key, in the units in which they are shown.
    """
    then = {
        key: Input(
            f"sweep.generated.{key}",
            f"As generated, {of.label}",
            of.unit,
            values[key],
            shared=True,
            fixed=True,
        )
        for key, of in shown.items()
    }
    same = {key: _same(shown[key], here.results[key], then[key]) for key in JUDGED}
    note = where(
        minimum(*same.values()) > 0,
        "✓ points are those of this scenario",
        "! inputs changed: points are as generated",
    )
    return Stored(then, same, Quantity("sweep.note", "Points as generated", "1", note))


def seen_from_elsewhere(words: Quantity) -> Node:
    """What another sheet shows of words on What-if: somebody may have deleted the sheet What-if."""
    return where(is_error(words), "! the sheet What-if is not there", words)


def varied_inputs(inputs: Sequence[Input]) -> dict[Input, Input]:
    """What stands for inputs in the cases of the points."""
    return {
        figure: replace(figure, id=f"sweep.{figure.id}", label=f"{figure.label} · swept") for figure in inputs
    }


def stored_point(
    number: int, shown: Mapping[str, Shown], values: Mapping[str, Value], chosen: Choice
) -> StoredPoint:
    """A point whose results are values."""
    name = f"point.{number}"
    there = {
        key: Input(f"sweep.{name}.{key}", of.label, of.unit, values[key], shared=True, fixed=True)
        for key, of in shown.items()
    }
    return StoredPoint(there, _charted(name, there, chosen)[CHOSEN])


def live(
    graph: EstimateGraph,
    swept: Sequence[Input],
    inputs: Mapping[Input, Input],
    shown: Mapping[str, Shown],
    chosen: Choice,
    cases: Sequence[int],
    cells: Cells,
) -> Live:
    """Points as formulas.

    Args:
        swept: the inputs of the sweep; the first runs fastest.
        inputs: all that vary with them, each with what stands for it.
        cases: the number of the case of each point.
        cells: where figures stand.
    """
    figures = {key: of.figure for key, of in shown.items()}
    variation = Variations(graph, figures, cells).vary(inputs, "sweep.", " · swept")
    points = []
    for number, case in enumerate(cases, 1):
        name, label = f"point.{number}", f"at point {number}"
        fields = {figure: InCase(inputs[figure], case, label) for figure in swept}
        there = {key: _result(name, of, variation.in_case(key, case, label)) for key, of in shown.items()}
        points.append(
            Point(
                fields=tuple(_field(name, figure, value) for figure, value in fields.items()),
                results=there,
                charted=_charted(name, there, chosen),
                name=_name(name, swept[1], fields[swept[1]]) if len(swept) > 1 else None,
            )
        )
    return Live(inputs, variation, tuple(points))


def _now(figure: Named) -> InCase:
    """A figure of the live scenario."""
    return InCase(figure, 0, "of the base scenario")


def _field(point: str, figure: Input, value: Node) -> Quantity:
    return Quantity(f"sweep.{point}.{figure.id}", figure.label, figure.unit, value)


def _result(point: str, of: Shown, value: Node) -> Quantity:
    return Quantity(f"sweep.{point}.{of.key}", of.label, of.unit, of.of(value))


def _charted(point: str, results: Mapping[str, Named], chosen: Choice) -> dict[str, Quantity]:
    """Results for charts, of which none is a text: a chart would draw it as 0."""
    of_choices = span([of for key, of in results.items() if key != "plan"])
    shown = {CHOSEN: index(of_choices, chosen.place), UP: results[UP]}
    charted = {key: where(is_number(value), value, NO_POINT) for key, value in shown.items()}
    charted[ACROSS] = number_of(results[ACROSS])
    return {
        key: Quantity(f"sweep.{point}.{key}.charted", f"For charts, {key}", "1", charted[key])
        for key in CHARTED
    }


def _name(point: str, outer: Input, value: Node) -> Quantity:
    """The value of the second input, after which a curve is called; it may be typed over."""
    if not isinstance(outer.value, str):
        value = rounded(value, 0 if outer.integer else 2)
    return Quantity(f"sweep.{point}.name", "Curve", "1", join(f"{outer.label} ", value))


def _same(of: Shown, live: Quantity, then: Input) -> Quantity:
    """Whether a result still is what it was; a text is as 0, which no result is."""
    now, before = number_of(live), number_of(then)
    still = absolute(now - before) <= TOLERANCE * absolute(before)
    return Quantity(f"sweep.same.{of.key}", f"Still so, {of.label}", "flag", where(still, 1, 0))
