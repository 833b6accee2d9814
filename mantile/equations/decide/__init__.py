"""A choice among plans: what each reaches, which limits it misses, who wins, and whether that is certain.

The plans are the variants of a scenario; the base is the one of them that was taken. What is wanted and every
limit is a cell, so the choice follows each edit of them, of a price or of a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mantile.equations.checks import TOLERANCE
from mantile.equations.decide.figures import (
    NONE,
    SHARED,
    SPREAD,
    TOLD_MORE,
    Figures,
    Judged,
    as_typed,
    in_case,
)
from mantile.equations.decide.words import (
    beyond_limit,
    chip_in,
    links_in,
    tell_beside,
    tell_between,
    tell_drawn,
    tell_finding,
    tell_name,
)
from mantile.equations.display import Currency, as_known, in_unit, number_in
from mantile.equations.evidence import BANDED
from mantile.equations.graph import EstimateGraph
from mantile.equations.measures import EVIDENCE, HEADROOM, MEASURES, Measure, lacks, measure, part
from mantile.equations.metrics import (
    ACCELERATORS,
    E2E,
    E2E_P95,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_KWH,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
)
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Span,
    all_of,
    at_least,
    count_where,
    equal,
    if_error,
    index,
    is_empty,
    is_number,
    logarithm,
    match,
    maximum,
    nth_largest,
    number_of,
    span,
    sum_range,
    where,
)
from mantile.library.decision import Decision

SHOWN = tuple(
    metric.column
    for metric in (
        ACCELERATORS,
        TTFT_P95,
        TPOT,
        INTERACTIVITY,
        OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
        OUTPUT_TOKENS_PER_S,
        USD_PER_MILLION_OUTPUT_TOKENS,
        USD_PER_MONTH,
        POWER,
        HEADROOM,
        EVIDENCE,
        E2E_P95,
        TTFT,
        E2E,
        OUTPUT_TOKENS_PER_KWH,
    )
)
"""Measures that every choice shows, by key."""
OWN_WEIGHTS = "weights as typed"
OBJECTIVE, LIMIT, WEIGHT, TAKE = "decide.objective", "decide.limit.", "decide.weight.", "decide.take"
"""Ids of what is typed: what is wanted, limits and weights of measures, the plan that the base is."""
ONE, OTHER = "decide.one", "decide.other"
"""Ids of two plans that somebody compares."""
_BAND = {TPOT.column: "tpot", INTERACTIVITY.column: "tpot", TTFT.column: "ttft", TTFT_P95.column: "ttft"}
"""Whose range a measure has; all others have that of throughput."""

_SECOND = Input("decide.rank_two", "Rank of the second", "number", 2, shared=True, fixed=True)
_LAST = Input("decide.last", "Key of what has no rank", "1", 1e6, shared=True, fixed=True)
_BANDS = tuple(BANDED)


@dataclass(frozen=True)
class Plan:
    """What is said of one plan.

    Args:
        number: from 1.
        name: what it is, as its cells have it now.
        possible: 1 if the plan can be; `reason` its code where it cannot.
        misses: limits it does not keep.
        rank: from 1; a dash without.
        behind: how much worse than the winner it is in what is wanted, as a share.
        error: the range of that difference that holds 80 % of outcomes, as a share up and down.
        told: what that means.
        low, high: of what is wanted, the range that holds 80 % of outcomes.
        lost: why it lost, in words.
        figures: all of these and what they need, by name.
    """

    number: Input
    figures: Mapping[str, Quantity]

    def __getattr__(self, name: str) -> Quantity:
        """A figure by name."""
        if name.startswith("_") or name not in self.figures:
            raise AttributeError(name)
        return self.figures[name]


@dataclass(frozen=True)
class Decided:
    """The choice.

    Args:
        objective, take: what is typed; `pair` the two plans that are compared.
        judged: measures; `plans` the plans.
        title, reason: what it comes to, in words.
        constants: what formulas refer to; `labels` the choices of what is wanted.
        figures: of the choice as a whole, by name: place, wanted, band, ranked, winner, at, second.
        sorted: keys of the plans, the best first.
    """

    objective: Input
    take: Input
    pair: tuple[Input, Input]
    judged: tuple[Judged, ...]
    plans: tuple[Plan, ...]
    title: Quantity
    reason: Quantity
    constants: tuple[Input, ...]
    labels: tuple[Input, ...]
    figures: Mapping[str, Quantity]
    sorted: tuple[Quantity, ...]

    @property
    def choices(self) -> Span:
        """The cells that what is wanted is chosen from."""
        return span(self.labels)

    @property
    def numbers(self) -> Span:
        """The cells that the number of a plan is chosen from."""
        return span([plan.number for plan in self.plans])

    @property
    def typed(self) -> tuple[Input, ...]:
        """Everything that is typed."""
        of_measures = (cell for of in self.judged for cell in (of.limit, of.weight))
        return (self.objective, self.take, *self.pair, *of_measures)


def judged_by(graph: EstimateGraph, asked: Decision) -> tuple[Measure, ...]:
    """The measures of a choice: those that are always shown, and what is asked for beside them."""
    keys = dict.fromkeys(
        (*SHOWN, *map(_key_of, (asked.objective, *asked.weights, *(limit.measure for limit in asked.limits))))
    )
    known = {of.key: of for of in MEASURES}
    return tuple(
        known[key]
        for key in keys
        if key in known and (known[key].metric.id in graph.figures or known[key].metric is HEADROOM)
    )


def _key_of(name: str) -> str:
    return "" if name == OWN_WEIGHTS else measure(name, "decision").key


def key_of_choice(label: str) -> str:
    """The measure that a choice of what is wanted stands for, or that weights are typed."""
    return next((of.key for of in MEASURES if of.metric.label == label), OWN_WEIGHTS)


def unit_of(graph: EstimateGraph, of: Measure) -> str:
    """The unit in which a measure is shown and its limit typed; that of amounts is USD."""
    unit = of.of(graph).unit
    return unit if unit.startswith("USD") or of.metric.display_unit == "%" else of.metric.display_unit


def in_si(graph: EstimateGraph, of: Measure, shown: float) -> float:
    """A limit as it is typed, in SI units.

    Example:
        in_si(graph, measure("tpot"), 40)    # 0.04
    """
    unit, typed = of.of(graph).unit, unit_of(graph, of)
    return shown if unit == typed else shown / number_in(1.0, unit, typed)


def decide(graph: EstimateGraph, asked: Decision, plans: int, currency: Currency) -> Decided:
    """The choice among plans.

    Args:
        plans: how many there are: scenarios 1, 2 and so on.
    """
    measures = judged_by(graph, asked)
    choices = (*(of.metric.label for of in measures), OWN_WEIGHTS)
    own = asked.objective == OWN_WEIGHTS
    chosen = OWN_WEIGHTS if own else measure(asked.objective, "decision").metric.label
    objective = _typed(OBJECTIVE, "Objective", "1", chosen, "what is wanted", choices)
    note = "the base scenario, and with it Summary, is this plan"
    take = _number(TAKE, "Plan taken", asked.take, plans, note)
    pair = _pair(asked.pair or (1, 2), plans)
    labels, places = _constants("label", choices), _constants("place", range(1, len(measures) + 1))
    [count] = _constants("measures", [len(measures)])
    of = Figures("decide.")
    numbers = _constants("plan", range(1, plans + 1))
    is_plan = count_where(span(numbers), as_typed(take))
    of("taken", "Plan that the base scenario is", "number", where(is_plan > 0, as_typed(take), 1))
    of(
        "taken_said",
        "The plan taken, in words",
        "1",
        where(
            is_plan > 0, "Summary and all sheets show this plan", "! there is no such plan: plan 1 is shown"
        ),
    )
    of("place", "Place of what is wanted", "number", if_error(match(as_typed(objective), span(labels)), 0))
    of(
        "wanted",
        "Measure that is wanted, 0 with weights of one's own",
        "number",
        where(of["place"] > count, 0, of["place"]),
    )
    judged = tuple(
        _judged(graph, one, label, number, of["wanted"], asked, plans, currency)
        for one, label, number in zip(measures, labels, places, strict=False)
    )
    amounts = _constants("amount", [_amount(one, unit_of(graph, one)) for one in measures])
    counting = sum_range(span([one.weighs for one in judged]))
    of("asks", "Weights that count", "1", counting, "0: nothing is wanted")
    bands = _constants("band", [_BANDS.index(_BAND.get(one.key, "throughput")) + 1 for one in measures])
    of("band", "Range of what is wanted", "number", index(span(bands), maximum(1, of["wanted"])))
    rows = [_plan(graph, number, judged, span(labels), of) for number in numbers]
    keys = span([row["key"] for row in rows])
    ordered = tuple(
        Quantity(
            f"decide.sorted.{number.value}",
            f"Key {number.value}",
            "1",
            nth_largest(keys, number),
        )
        for number in numbers
    )
    for row in rows:
        row("rank", "Rank", "number", where(row["good"] > 0, match(row["key"], span(ordered)), NONE))
    ranks = span([row["rank"] for row in rows])
    of("winner", "Number of the winner, 0 without", "number", if_error(match(1, ranks), 0))
    of("at", "Place of the winner", "number", maximum(1, of["winner"]))
    of("ranked", "Plans with a rank", "number", count_where(ranks, at_least(1)))
    of("second", "Number of the second, 0 without", "number", if_error(match(_SECOND, ranks), 0))
    for number, row in zip(numbers, rows, strict=True):
        tell_beside(row, rows, number, of)
    title, reason = tell_finding(rows, judged, amounts, of)
    tell_between(rows, pair, of)
    tell_drawn(rows, judged, of)
    return Decided(
        objective=objective,
        take=take,
        pair=pair,
        judged=judged,
        plans=tuple(Plan(number, row.figures) for number, row in zip(numbers, rows, strict=True)),
        title=title,
        reason=reason,
        constants=(count, *places, *bands, *amounts, *numbers, SPREAD, SHARED, TOLD_MORE, _SECOND, _LAST),
        labels=labels,
        figures=of.figures,
        sorted=ordered,
    )


def _constants(kind: str, values: Iterable[str | int]) -> tuple[Input, ...]:
    """What formulas refer to and never changes."""
    return tuple(
        Input(f"decide.{kind}.{place}", f"{kind} {place}", "1", value, shared=True, fixed=True)
        for place, value in enumerate(values, 1)
    )


def _typed(
    identifier: str,
    label: str,
    unit: str,
    value: str | float | None,
    note: str,
    choices: tuple[str, ...] = (),
) -> Input:
    return Input(
        identifier, label, unit, value, note, shared=True, choices=choices, minimum=None if choices else 0
    )


def _number(identifier: str, label: str, value: int, most: int, note: str = "") -> Input:
    """The number of a plan, as it is typed."""
    return Input(identifier, label, "number", value, note, shared=True, minimum=1, maximum=most, integer=True)


def _pair(asked: tuple[int, int], plans: int) -> tuple[Input, Input]:
    """Two plans that somebody compares."""
    one, other = (min(number, plans) for number in asked)
    return _number(ONE, "A plan", one, plans), _number(OTHER, "Another plan", other, plans)


def _amount(of: Measure, unit: str) -> str:
    """What stands behind an amount of a measure: ms TPOT, USD per million output tokens."""
    if unit.startswith("USD"):
        return of.metric.label
    return of.metric.heading or (
        of.metric.label.lower() if unit == of.key[:-1] else f"{unit} {of.metric.label}"
    )


def _judged(
    graph: EstimateGraph,
    of: Measure,
    label: Input,
    number: Input,
    wanted: Quantity,
    asked: Decision,
    plans: int,
    currency: Currency,
) -> Judged:
    """A measure in every plan, with its limit and its weight."""
    figure, metric = of.of(graph), of.metric
    is_money, unit = figure.unit.startswith("USD"), unit_of(graph, of)
    body = as_known(figure, figure, currency.convert(figure)) if is_money else in_unit(figure, unit)
    if of.metric is HEADROOM:
        assert isinstance(figure, Quantity)
        body = figure.body
    bounds = {measure(limit.measure, "decision").key: limit.bound for limit in asked.limits}
    bound = bounds.get(of.key)
    shown = None if bound is None else bound if is_money else number_in(bound, figure.unit, unit)
    label_ = metric.label
    limit = _typed(f"{LIMIT}{of.key}", f"Limit of {label_}", unit, shown, "empty: no limit")
    weight = _typed(
        f"{WEIGHT}{of.key}", f"Weight of {label_}", "1", asked.weights.get(of.key, 0.0), f"with {OWN_WEIGHTS}"
    )
    make = Figures("decide.", f".{of.key}")
    make(
        "bound",
        f"Limit of {label_} that holds, or 0",
        unit,
        where(is_number(as_typed(limit)), as_typed(limit), 0),
    )
    make("limited", f"{label_} has a limit", "flag", where(make["bound"] > 0, 1, 0))
    kind = "at most" if of.lower else "at least"
    read = where(is_number(as_typed(limit)), 1, 0) * where(make["bound"] >= 0, 1, 0)
    unread = 1 - where(is_empty(as_typed(limit)), 1, 0) - read
    make("unread", f"Limit of {label_} is no number from 0 on", "flag", unread)
    none = where(make["unread"] > 0, "! no number: no limit", "no limit")
    make("unsaid", f"No limit of {label_}, in words", "1", none)
    make("said", f"Limit of {label_}, in words", "1", where(make["limited"] > 0, kind, make["unsaid"]))
    own = where(wanted > 0, 0, maximum(0, number_of(as_typed(weight))))
    make("own", f"Own weight of {label_}", "1", own)
    make("weighs", f"{label_} counts", "1", where(equal(wanted, number), 1, make["own"]))
    values = tuple(
        Quantity(f"decide.value.{of.key}.{plan}", label_, unit, in_case(body, plan))
        for plan in range(1, plans + 1)
    )
    missed = tuple(
        Quantity(
            f"decide.missed.{of.key}.{plan}",
            f"{label_} misses its limit",
            "flag",
            make["limited"]
            * (1 - where(all_of(is_number(value), _keeps(of.lower, value, make["bound"])), 1, 0)),
        )
        for plan, value in enumerate(values, 1)
    )
    return Judged(
        of,
        unit,
        label,
        limit,
        weight,
        make["limited"],
        make["said"],
        make["unread"],
        make["unsaid"],
        make["weighs"],
        make["bound"],
        make["own"],
        values,
        missed,
    )


def _keeps(lower: bool, value: Quantity, bound: Quantity) -> Node:
    """Whether a value keeps a limit; what is equal up to rounding does."""
    if lower:
        return number_of(value) <= bound * (1 + TOLERANCE)
    return number_of(value) >= bound * (1 - TOLERANCE)


def _plan(
    graph: EstimateGraph, number: Input, judged: Sequence[Judged], labels: Span, choice: Figures
) -> Figures:
    """A plan by itself: whether it can be, the limits it misses, its score and its key."""
    case = int(cast(int, number.value))
    make = Figures("decide.", f".{case}")
    values = [of.values[case - 1] for of in judged]
    missed = [of.missed[case - 1] for of in judged]
    tell_name(make, graph, case)
    make("possible", "Can be", "flag", in_case(graph.checks.possible, case))
    make("reason", "Reason code", "1", in_case(graph.checks.reason, case))
    make("misses", "Limits that it misses", "number", sum_range(span(missed)))
    make("first", "First limit missed", "number", if_error(match(1, span(missed)), 1))
    parts = [
        make(
            f"part.{of.measure.key}",
            f"Part of {of.measure.metric.label} in the score",
            "1",
            part(value, of.measure.lower, of.weighs),
        )
        for of, value in zip(judged, values, strict=True)
    ]
    lacking = [
        make(f"lacks.{of.measure.key}", f"{of.measure.metric.label} is wanted and not known", "flag", flag)
        for of, value in zip(judged, values, strict=True)
        for flag in (lacks(value, of.weighs),)
    ]
    make("unknown", "Measures that are wanted and not known", "number", sum_range(span(lacking)))
    make(
        "score",
        "Score, the least is best",
        "1",
        where(make["unknown"] > 0, NOT_KNOWN, sum_range(span(parts))),
    )
    make(
        "good",
        "Has a rank",
        "flag",
        where(
            all_of(make["possible"] > 0, make["misses"] <= 0, is_number(make["score"]), choice["asks"] > 0),
            1,
            0,
        ),
    )
    held = where(make["good"] > 0, -number_of(make["score"]), -_LAST)
    make("key", "Ranked by, the largest is best", "1", held - number * TOLERANCE)
    for name in _BANDS:
        low, _, high = graph.evidence.bands[name]
        spread = logarithm(in_case(high, case) / in_case(low, case)) / (SPREAD + SPREAD)
        make(f"deviation.{name}", f"Standard deviation of {name}, as a share", "1", if_error(spread, 0))
    deviations = span([make[f"deviation.{name}"] for name in _BANDS])
    make(
        "deviation",
        "Standard deviation of what is wanted, as a share",
        "1",
        index(deviations, choice["band"]),
    )
    make("chip", "Chip and framework", "1", chip_in(graph, case))
    even, fine = graph.cost.break_even, in_case(graph.checks.of_money.count, case) <= 0
    price = where(fine, in_case(even.price, case), NOT_KNOWN)
    make("price", "Price of an accelerator per hour", "USD/h", price)
    per_million = USD_PER_MILLION_OUTPUT_TOKENS.of(graph.figures)
    make("cost", "USD per million output tokens", "USD/Mtoken", in_case(per_million, case))
    make(
        "hourly_tokens",
        "Output tokens of an accelerator in an hour",
        "token/h",
        where(fine, in_case(even.tokens, case), NOT_KNOWN),
    )
    make("share", "Share of links in a decode step", "1", links_in(graph, case))
    per_chip = next(of for of in judged if of.measure.key == OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column)
    make(
        "tokens", "Output tokens per accelerator", "token/s/accelerator", number_of(per_chip.values[case - 1])
    )
    make("value", "What its first missed limit bounds", "1", index(span(values), make["first"]))
    make("value_known", "It is known", "flag", where(is_number(make["value"]), 1, 0))
    make("limit", "That limit", "1", index(span([of.bound for of in judged]), make["first"]))
    make("label", "Which it is", "1", index(labels, make["first"]))
    make("beyond", "Beyond the limit", "1", beyond_limit(make["value"], make["limit"]))
    return make
