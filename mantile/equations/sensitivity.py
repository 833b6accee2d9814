"""How far results move: each input of an analysis taken lower and higher, all else as it is.

An input is varied in two further cases of the base scenario, the low and the high end of its range. What
follows from it is worked out again for both; everything else is the base scenario's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.display import Currency, Shown, told, usual, usual_text, usual_unit
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS
from mantile.equations.typed.choice import ChoiceTyped, as_typed, choice_typed
from mantile.equations.variation import Variation, Variations
from mantile.graph.excel import Cells
from mantile.graph.quantity import (
    NOT_KNOWN,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    absolute,
    all_of,
    floor,
    if_known,
    index,
    is_number,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
    number_of,
    span,
    sum_of,
    where,
)

JUDGED = {"ttft": TTFT, "tpot": TPOT, "usd": USD_PER_MILLION_OUTPUT_TOKENS}
"""The results that inputs are judged by, under their names in ids."""
RANGE = "sensitivity.swing."
"""Before the id of an input, that of the percentage by which it is taken lower and higher."""

HUNDRED = Input(
    id="sensitivity.percent",
    label="Percent",
    unit="%",
    value=100,
    note="per cent, to the hundred",
    source="definition",
    status="defined",
    shared=True,
    fixed=True,
)
SIGN = Input(
    id="sensitivity.sign",
    label="Side",
    unit="1",
    value=0,
    note="−1 lower, 1 higher",
    source="definition",
    status="defined",
    fixed=True,
)
ROOM = Input(
    id="sensitivity.wider",
    label="Bars and their labels over bars",
    unit="1",
    value=1.5,
    shared=True,
    fixed=True,
)


Ends = Mapping[str, int]
"""Numbers of the cases in which inputs are at their "low" and "high" end."""


@dataclass(frozen=True)
class SensitivityInput:
    """An input, price or factor of the base scenario that could be otherwise.

    Args:
        id: of the input or factor, without what marks an override.
        figures: what is scaled: one input, or all figures that one factor is used as. The first is shown.
        status: given, override, price, or how the figure is known: measured, fitted, datasheet, assumed.
        source: where it comes from.
        range_percent: percent by which it is taken lower and higher.
        at_most_one: a share, which never exceeds 1.
        at_least_one: a multiple of a mean, or of the power of the machines, which is never below 1.
    """

    id: str
    label: str
    figures: tuple[Named, ...]
    status: str
    source: str
    range_percent: int
    at_most_one: bool = False
    at_least_one: bool = False

    @property
    def figure(self) -> Named:
        """The figure that is shown."""
        return self.figures[0]

    @property
    def is_price(self) -> bool:
        """Whether it is a price, which may be a text because nobody states it."""
        return self.status == "price"

    @property
    def name(self) -> str:
        """Its name in ids."""
        short = self.id.removeprefix("inputs.").removeprefix("cost.").removeprefix("efficiency.")
        return short.replace(".", "_")


@dataclass(frozen=True)
class InputEnds:
    """An input at both ends of its range, and what follows.

    Args:
        range_percent: percent by which the input is taken lower and higher; typed on the sheet.
        varied: what stands for the scaled figures in the two cases.
        variation: the results worked out again.
        base: the input in the unit in which it is quoted.
        shown: the same at both ends; None where `varied` is in that unit.
        results: results at the low and the high end, by key, in the units in which they are shown.
    """

    input: SensitivityInput
    range_percent: Input
    varied: Mapping[Named, Quantity]
    variation: Variation
    base: Quantity
    shown: tuple[Quantity, ...] | None
    results: Mapping[str, tuple[Quantity, Quantity]]


@dataclass(frozen=True)
class RankedInput:
    """One place of a ranking: its number, which input stands there, and its bars beside the base."""

    rank: Input
    entry: Quantity
    name: Quantity
    better: Quantity
    worse: Quantity


@dataclass(frozen=True)
class Ranking:
    """The inputs by how far they move a result: what its tornado chart shows.

    Args:
        title: the two that move it most, in words.
        changes: relative change of the result at the low and the high end, for every input.
        keys: what is ranked by: the distance between both ends.
        ranked: the largest first.
        room: of the chart, on both sides: bars and their labels.
    """

    result: Shown
    title: Quantity
    changes: tuple[tuple[Quantity, Quantity], ...]
    keys: tuple[Quantity, ...]
    ranked: tuple[RankedInput, ...]
    room: tuple[Quantity, Quantity]


@dataclass(frozen=True)
class Sensitivity:
    """How far each input moves each result.

    Args:
        base: the results as they are, by key.
        inputs: every input at both ends.
        numbers, names: of the inputs from 1, and as the charts call them.
        labels: each with its range.
        rankings: by key of the result.
        effects: by id of the input and key of the result, the relative change of the result from the low to
            the high end.
    """

    results: tuple[Shown, ...]
    base: Mapping[str, Quantity]
    inputs: tuple[InputEnds, ...]
    numbers: tuple[Input, ...]
    names: tuple[Input, ...]
    labels: tuple[Quantity, ...]
    rankings: Mapping[str, Ranking]
    effects: Mapping[str, Mapping[str, Quantity]]
    guards: ChoiceTyped
    fault: Quantity


def results(graph: EstimateGraph, currency: Currency | None = None) -> dict[str, Shown]:
    """The results that inputs are judged by: TTFT, TPOT, USD per million output tokens."""
    money = currency or Currency()
    return {
        key: metric.on(graph.figures, key, money, metric.heading or metric.label)
        for key, metric in JUDGED.items()
    }


def sensitivity(
    graph: EstimateGraph,
    inputs: Sequence[SensitivityInput],
    cases: Ends,
    currency: Currency,
    cells: Cells,
) -> Sensitivity:
    """How far inputs move the results.

    Args:
        cells: where figures stand.
    """
    judged = results(graph, currency)
    variations = Variations(graph, {key: result.figure for key, result in judged.items()}, cells)
    percents = [range_percent(item) for item in inputs]
    guards = choice_typed(percents, (), "sensitivity", "the sensitivity")
    both = tuple(
        input_ends(variations, item, (percent, guards.valid[percent.id]), cases, judged)
        for item, percent in zip(inputs, percents, strict=True)
    )
    numbers = tuple(
        _constant(f"number.{number}", f"Number {number}", "number", number)
        for number in range(1, len(inputs) + 1)
    )
    names = tuple(
        _constant(f"head.{number}", f"Head {number}", "1", item.label)
        for number, item in enumerate(inputs, 1)
    )
    labels = tuple(_label(number, ends, cases) for number, ends in enumerate(both, 1))
    base = {key: _base(result) for key, result in judged.items()}
    rankings = {
        key: ranking(result, base[key], both, numbers, names, labels) for key, result in judged.items()
    }
    message = Quantity(
        "sensitivity.fault",
        "The first percentage that cannot be",
        "1",
        where(
            as_typed(guards.faults.count) > 0,
            join("! ", as_typed(guards.faults.message)),
            "± percent: type over yellow cells",
        ),
    )
    return Sensitivity(
        guards=guards,
        fault=message,
        results=tuple(judged.values()),
        base=base,
        inputs=both,
        numbers=numbers,
        names=names,
        labels=labels,
        rankings=rankings,
        effects={
            ends.input.id: {
                key: _effect(key, ends, base[key], of.changes[place]) for key, of in rankings.items()
            }
            for place, ends in enumerate(both)
        },
    )


def input_ends(
    variations: Variations,
    item: SensitivityInput,
    typed: tuple[Input, Quantity],
    cases: Ends,
    judged: Mapping[str, Shown],
) -> InputEnds:
    """An input at both ends of its range, and the results there.

    Args:
        typed: the percentage of its range, and 1 where that can be.
    """
    percent, valid = typed
    varied = input_values(item, percent, valid)
    variation = variations.vary(varied, f"sensitivity.{item.name}.", f" · {item.label}")
    shown = tuple(
        _quoted(
            f"{item.name}.{end}",
            f"{item.label}, {end} end",
            item.figure,
            InCase(varied[item.figure], case, _at(end)),
        )
        for end, case in cases.items()
    )
    return InputEnds(
        input=item,
        range_percent=percent,
        varied=varied,
        variation=variation,
        base=_quoted(f"{item.name}.base", f"{item.label}, base", item.figure, _as_it_is(item.figure)),
        shown=None if usual_unit(item.figure.unit) == item.figure.unit else shown,
        results={key: _at_ends(item, result, variation, cases) for key, result in judged.items()},
    )


def input_values(
    item: SensitivityInput, percent: Input, valid: Quantity | None = None
) -> dict[Named, Quantity]:
    """What stands for the figures of an input: so many percent lower or higher, as the case says.

    Args:
        valid: 1 where the percentage can be: else the figure is not known; None where it is not typed.
    """
    return {
        figure: Quantity(
            f"sensitivity.{item.name}.value{number or ''}",
            f"{figure.label} · varied{f', {item.label}' if number else ''}",
            figure.unit,
            _scaled(item, figure, HUNDRED + SIGN * percent, valid),
        )
        for number, figure in enumerate(item.figures)
    }


def range_percent(item: SensitivityInput) -> Input:
    """The percentage by which an input is taken lower and higher."""
    return Input(
        id=f"{RANGE}{item.id}",
        label=f"Lower and higher by, {item.label}",
        unit="%",
        value=item.range_percent,
        note="percent of the value of the base scenario",
        source="assumed",
        shared=True,
        integer=True,
        minimum=0,
        maximum=90,
        name="range",
    )


def ranking(
    result: Shown,
    base: Quantity,
    inputs: Sequence[InputEnds],
    numbers: Sequence[Input],
    names: Sequence[Input],
    labels: Sequence[Quantity],
) -> Ranking:
    """The inputs by how far they move a result."""
    changes = tuple(_changes(result, base, number, ends) for number, ends in enumerate(inputs, 1))
    keys = tuple(
        _key(result, low, high, number) for (low, high), number in zip(changes, numbers, strict=True)
    )
    ranked = tuple(_ranked(result, rank, keys, labels, changes) for rank in range(1, len(inputs) + 1))
    better, worse = span([place.better for place in ranked]), span([place.worse for place in ranked])
    first, second = (index(span(names), place.entry) for place in ranked[:2])
    return Ranking(
        result=result,
        title=Quantity(
            f"sensitivity.title.{result.key}",
            "Finding",
            "1",
            told(
                base, join(first, " and ", second, f" move {result.label} most"), f"{result.label}: not known"
            ),
        ),
        changes=changes,
        keys=keys,
        ranked=ranked,
        room=(
            Quantity(f"sensitivity.{result.key}.room.better", "Room, better", "1", minimum(better) * ROOM),
            Quantity(f"sensitivity.{result.key}.room.worse", "Room, worse", "1", maximum(worse) * ROOM),
        ),
    )


def _constant(name: str, label: str, unit: str, value: str | int) -> Input:
    return Input(f"sensitivity.{name}", label, unit, value, shared=True, fixed=True)


def _scaled(item: SensitivityInput, figure: Named, percent: Node, valid: Quantity | None) -> Node:
    """A figure at so many percent of the base scenario's, as far as it can be that."""
    value: Node = figure * (percent / HUNDRED)
    if isinstance(figure, Input) and figure.integer:
        value = maximum(floor(figure * percent / HUNDRED), 1)
    elif item.at_most_one:
        value = minimum(value, 1)
    elif item.at_least_one:
        value = maximum(value, 1)
    known = [is_number(figure)] if item.is_price else []
    known += [] if valid is None else [valid > 0]
    if not known:
        return value
    return where(all_of(*known) if len(known) > 1 else known[0], value, NOT_KNOWN)


def _as_it_is(figure: Named) -> InCase:
    """A figure of the base scenario."""
    return InCase(figure, 0, "as it is")


def _at(end: str) -> str:
    return f"at the {end} end"


def _quoted(name: str, label: str, figure: Named, value: Node) -> Quantity:
    """A value of a figure in the unit in which the figure is quoted."""
    return Quantity(f"sensitivity.{name}", label, usual_unit(figure.unit), _usual(value, figure))


def _usual(value: Node, figure: Named) -> Node:
    """A value of a figure in the unit in which it is quoted, if it is known."""
    quoted = usual(value, figure.unit)
    return quoted if quoted is value else where(is_number(value), quoted, NOT_KNOWN)


def _base(result: Shown) -> Quantity:
    body = result.of(_as_it_is(result.figure))
    return Quantity(f"sensitivity.{result.key}.base", f"{result.label}, as it is", result.unit, body)


def _at_ends(
    item: SensitivityInput, result: Shown, variation: Variation, cases: Ends
) -> tuple[Quantity, Quantity]:
    """A result at the low and the high end of an input."""
    low, high = (
        Quantity(
            f"sensitivity.{item.name}.{result.key}.{end}",
            f"{result.label}, {item.label} at its {end} end",
            result.unit,
            result.of(variation.in_case(result.key, case, _at(end))),
        )
        for end, case in cases.items()
    )
    return low, high


def _label(number: int, ends: InputEnds, cases: Ends) -> Quantity:
    """An input with its range, in words.

    A billionth more: engines do not agree on which way a number half way between two is rounded.
    """
    figure, varied = ends.input.figure, ends.varied[ends.input.figure]
    values = (usual(InCase(varied, case, _at(end)), figure.unit) for end, case in cases.items())
    texts = [(value, usual_text(value * (1 + TOLERANCE), usual_unit(figure.unit))) for value in values]
    low, high = (where(is_number(value), words, NOT_KNOWN) for value, words in texts)
    label = join(f"{ends.input.label} ", low, " – ", high)
    return Quantity(f"sensitivity.label.{number}", "Label", "1", label)


def _changes(result: Shown, base: Quantity, number: int, ends: InputEnds) -> tuple[Quantity, Quantity]:
    """The relative change of a result at both ends of an input.

    None where engines differ by as much, or nobody knows the result.
    """
    now = number_of(base)

    def change(value: Quantity) -> Node:
        there = number_of(value)
        moved = absolute(there - now) > TOLERANCE * now
        return where(all_of(minimum(there, now) > 0, moved), value / base - 1, 0)

    low, high = (
        Quantity(
            f"sensitivity.{result.key}.{end}.{number}",
            f"Change of {result.label}, {ends.input.label} at its {end} end",
            "1",
            change(value),
        )
        for end, value in zip(("low", "high"), ends.results[result.key], strict=True)
    )
    return low, high


def _key(result: Shown, low: Quantity, high: Quantity, number: Input) -> Quantity:
    """The distance between both ends.

    A billionth of it per place keeps inputs of equal weight in one order in every engine, and a billionth
    those without any. Less than that some engines take for equal.
    """
    order = number * TOLERANCE
    distance = absolute(high - low) * (1 + order) + order
    return Quantity(f"sensitivity.{result.key}.key.{number.value}", "Key", "1", distance)


def _ranked(
    result: Shown,
    rank: int,
    keys: Sequence[Quantity],
    labels: Sequence[Quantity],
    changes: Sequence[tuple[Quantity, Quantity]],
) -> RankedInput:
    """The input of a rank, with its bars."""
    place = _constant(f"{result.key}.rank.{rank}", f"Rank {rank}", "number", rank)
    key = nth_largest(span(keys), place)
    entry = Quantity(f"sensitivity.{result.key}.entry.{rank}", "Entry", "number", match(key, span(keys)))
    low = index(span([low for low, _ in changes]), entry)
    high = index(span([high for _, high in changes]), entry)
    return RankedInput(
        rank=place,
        entry=entry,
        name=Quantity(f"sensitivity.{result.key}.name.{rank}", "Name", "1", index(span(labels), entry)),
        better=Quantity(f"sensitivity.{result.key}.better.{rank}", "Better", "1", minimum(low, high, 0)),
        worse=Quantity(f"sensitivity.{result.key}.worse.{rank}", "Worse", "1", maximum(low, high, 0)),
    )


def _effect(key: str, ends: InputEnds, base: Quantity, changes: tuple[Quantity, Quantity]) -> Quantity:
    """The relative change of a result from the low to the high end of an input."""
    low, high = changes
    body = if_known(high - low, sum_of([base, *ends.results[key]]))
    label = f"Effect of {ends.input.label}"
    return Quantity(f"sensitivity.{ends.input.name}.effect.{key}", label, "1", body)
