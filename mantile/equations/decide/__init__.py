"""A choice among plans: what each reaches, which limits it misses, who wins, and whether that is certain.

The plans are the variants of a scenario; the base is the one of them that was taken. What is wanted and every
limit is a cell, so the choice follows each edit of them, of a price or of a factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mantile.equations.checks import TOLERANCE
from mantile.equations.decide.figures import (
    NONE,
    SHARED,
    SMALL,
    SPREAD,
    TOLD_MORE,
    Figures,
    Judged,
    as_typed,
    in_case,
)
from mantile.equations.decide.typed import ChoiceTyped, choice_typed
from mantile.equations.decide.words import (
    beyond_limit,
    chip_in,
    links_in,
    offers_in,
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
    OUTPUT_TOKENS_PER_USD,
    POWER,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
)
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Span,
    all_of,
    as_node,
    at_least,
    count_where,
    equal,
    if_error,
    index,
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
from mantile.graph.sentence import lowered
from mantile.library.brief import Brief
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
EXACT = "exact"
_BAND = {TPOT.column: "tpot", INTERACTIVITY.column: "tpot", TTFT.column: "ttft", TTFT_P95.column: "ttft"} | {
    metric.column: EXACT for metric in (ACCELERATORS, EVIDENCE, USD_PER_HOUR, USD_PER_MONTH)
}
"""Whose range a measure has; all others have that of throughput. Counts and prices of an hour have none."""

_PER_TOKEN = (USD_PER_MILLION_OUTPUT_TOKENS, OUTPUT_TOKENS_PER_USD)
_BY_STEPS = (*_PER_TOKEN, TPOT, INTERACTIVITY, OUTPUT_TOKENS_PER_S, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR)
KINDS: Mapping[str, Callable[[Measure], int]] = {
    "scale": lambda of: 100 if of.metric.display_unit == "%" else 1,
    "sign": lambda of: 1 if of.lower else -1,
    "per_token": lambda of: of.metric in _PER_TOKEN,
    "by_steps": lambda of: of.metric in _BY_STEPS,
}
"""What formulas know of a measure: how it is said, whether less is better, and which causes it may have."""

_OF_WINNER = "of the winner: the price at which the second costs as much"
_SECOND = Input("decide.rank_two", "Rank of the second", "number", 2, shared=True, fixed=True)
_LAST = Input("decide.last", "Key of what has no rank", "1", 1e6, shared=True, fixed=True)
_BANDS = (*BANDED, EXACT)


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


@dataclass(frozen=True, repr=False)
class Decided(Brief):
    """The choice.

    Args:
        objective, take: what is typed; `pair` the two plans that are compared.
        judged: measures; `plans` the plans.
        title, reason: what it comes to, in words.
        constants: what formulas refer to; `labels` the choices of what is wanted.
        figures: of the choice as a whole, by name: place, wanted, band, ranked, winner, at, second.
        sorted: keys of the plans, the best first.
        guards: what the cells hold, and whether it can be.
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
    guards: ChoiceTyped

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


def key_of_choice(label: str, currency: Currency) -> str:
    """The measure that a choice of what is wanted stands for, or that weights are typed."""
    return next((of.key for of in MEASURES if currency.named(of.metric.label) == label), OWN_WEIGHTS)


def unit_of(graph: EstimateGraph, of: Measure) -> str:
    """The unit in which a measure is shown and its limit typed; that of amounts is USD in every currency."""
    unit = of.of(graph).unit
    return unit if unit.startswith("USD") or of.metric.display_unit == "%" else of.metric.display_unit


def in_si(graph: EstimateGraph, of: Measure, shown: float, currency: Currency) -> float:
    """A limit as it is typed, in SI units.

    Example:
        in_si(graph, measure("tpot"), 40, Currency())    # 0.04
    """
    return shown / _size(graph, of, currency)


def _size(graph: EstimateGraph, of: Measure, currency: Currency) -> float:
    """What 1 of a measure is in the unit in which its limit is typed, and in the currency."""
    unit = of.of(graph).unit
    if unit.startswith("USD"):
        return float(evaluate(currency.convert(as_node(1))))
    return number_in(1.0, unit, unit_of(graph, of))


def decide(graph: EstimateGraph, asked: Decision, plans: int, currency: Currency) -> Decided:
    """The choice among plans.

    Args:
        plans: how many there are: scenarios 1, 2 and so on.
    """
    measures = judged_by(graph, asked)
    choices = (*(currency.named(of.metric.label) for of in measures), OWN_WEIGHTS)
    own = asked.objective == OWN_WEIGHTS
    chosen = OWN_WEIGHTS if own else currency.named(measure(asked.objective, "decision").metric.label)
    objective = _typed(OBJECTIVE, "Objective", "1", chosen, "what is wanted", choices)
    note = "the base scenario, and with it Summary, is this plan"
    take = _number(TAKE, "Plan taken", asked.take, plans, note)
    pair = _pair(asked.pair or (1, 2), plans)
    labels, places = _constants("label", choices), _constants("place", range(1, len(measures) + 1))
    numbers = _constants("plan", range(1, plans + 1))
    [count] = _constants("measures", [len(measures)])
    entries = [_entries(graph, one, asked, currency) for one in measures]
    typed = (objective, take, *pair, *(cell for of_measure in entries for cell in of_measure))
    guards = choice_typed(typed, labels, "decide", "the decision")
    of = Figures("decide.")
    of("faults", "Cells that hold what cannot be", "flag", as_typed(guards.faults.count))
    is_plan = as_typed(guards.valid[TAKE]) > 0
    of("taken", "Plan that the base scenario is", "number", where(is_plan, as_typed(take), 1))
    of("place", "Place of what is wanted", "number", if_error(match(as_typed(objective), span(labels)), 0))
    wanted = where(of["place"] > count, 0, of["place"])
    of("wanted", "Measure that is wanted, 0 with weights of one's own", "number", wanted)
    judged = tuple(
        _judged(graph, one, label, number, cells, of["wanted"], guards, plans, currency)
        for one, label, number, cells in zip(measures, labels, places, entries, strict=False)
    )
    amounts = _constants("amount", [currency.named(_amount(one, unit_of(graph, one))) for one in measures])
    kinds = {kind: _constants(kind, map(number, measures)) for kind, number in KINDS.items()}
    counting = sum_range(span([one.weighs for one in judged]))
    of("asks", "Weights that count", "1", counting, "0: nothing is wanted")
    bands = _constants("band", [_BANDS.index(_BAND.get(one.key, "throughput")) + 1 for one in measures])
    of("band", "Range of what is wanted", "number", index(span(bands), maximum(1, of["wanted"])))
    [stored] = _constants("own_weights", [str(graph.ir.model.architecture.choices["weights_dtype"].value)])
    found = {number.value: "no factor alone" for number in numbers} | {numbers[0].value: "the winner"}
    found |= {one.plan: f"{one.factor} {one.now:.3g} → {one.due:.3g}" for one in asked.turned}
    rows = [_plan(graph, number, judged, span(labels), stored, of) for number in numbers]
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
    of("next", "Place of the second", "number", maximum(1, of["second"]))
    of(
        "no_choice",
        "Nothing is wanted, or cells hold what cannot be",
        "flag",
        where(of["asks"] > 0, of["faults"], 1),
    )
    costs = span([row["cost"] for row in rows])
    first, second = index(costs, of["at"]), index(costs, of["next"])
    of("cost_first", "Cost per million of the winner", "USD/Mtoken", where(of["winner"] > 0, first, NONE))
    of("cost_second", "Cost per million of the second", "USD/Mtoken", where(of["second"] > 0, second, NONE))
    for number, row in zip(numbers, rows, strict=True):
        tell_beside(row, rows, judged, kinds, number, of)
        row("by", "What the search found", "1", where(equal(row["rank"], 1), _OF_WINNER, found[number.value]))
    title, reason = tell_finding(
        rows, judged, amounts, kinds["scale"], as_typed(guards.faults.message), numbers[-1], of
    )
    tell_between(rows, [(at, guards.valid[at.id]) for at in pair], of)
    tell_drawn(rows, judged, of)
    return Decided(
        objective=objective,
        take=take,
        pair=pair,
        judged=judged,
        plans=tuple(Plan(number, row.figures) for number, row in zip(numbers, rows, strict=True)),
        title=title,
        reason=reason,
        constants=(
            *(count, *places, *bands, *amounts, *(number for kind in kinds.values() for number in kind)),
            *(*numbers, stored, SPREAD, SHARED, TOLD_MORE, SMALL, _SECOND, _LAST),
        ),
        labels=labels,
        figures=of.figures,
        sorted=ordered,
        guards=guards,
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
    label = lowered(of.metric.label)
    if of.metric is EVIDENCE:
        return "of 3 in evidence"
    if unit.startswith("USD"):
        return of.metric.label if "USD" in of.metric.label else f"USD per {label.rpartition(' ')[2]}"
    if of.metric.display_unit in ("%", "ms", "s", "kW"):
        return f"{of.metric.display_unit} {label}"
    return of.metric.heading or label


def _entries(graph: EstimateGraph, of: Measure, asked: Decision, currency: Currency) -> tuple[Input, Input]:
    """The limit and the weight of a measure, as they are typed."""
    bounds = {measure(limit.measure, "decision").key: limit.bound for limit in asked.limits}
    bound = bounds.get(of.key)
    shown = None if bound is None else bound * _size(graph, of, currency)
    most = 1 if of.metric.display_unit == "%" else None
    label, note = currency.named(of.metric.label), "empty: no limit"
    limit = replace(
        _typed(f"{LIMIT}{of.key}", f"Limit of {label}", unit_of(graph, of), shown, note), maximum=most
    )
    weight = asked.weights.get(of.key, 0.0)
    return limit, _typed(f"{WEIGHT}{of.key}", f"Weight of {label}", "1", weight, f"with {OWN_WEIGHTS}")


def _judged(
    graph: EstimateGraph,
    of: Measure,
    label: Input,
    number: Input,
    cells: tuple[Input, Input],
    wanted: Quantity,
    guards: ChoiceTyped,
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
    label_, (limit, weight) = metric.label, cells
    make = Figures("decide.", f".{of.key}")
    good, is_set = as_typed(guards.valid[limit.id]) > 0, is_number(as_typed(limit))
    bound = where(all_of(good, is_set), as_typed(limit), 0)
    make("bound", f"Limit of {label_} that holds, or 0", unit, bound)
    make("limited", f"{label_} has a limit", "flag", where(make["bound"] > 0, 1, 0))
    kind = "at most" if of.lower else "at least"
    make("none", f"No limit of {label_}, in words", "1", where(good, "no limit", "! cannot be"))
    make("said", f"Limit of {label_}, in words", "1", where(make["limited"] > 0, kind, make["none"]))
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
        make["none"],
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
    graph: EstimateGraph,
    number: Input,
    judged: Sequence[Judged],
    labels: Span,
    stored: Input,
    choice: Figures,
) -> Figures:
    """A plan by itself: whether it can be, the limits it misses, its score and its key."""
    case = int(cast(int, number.value))
    make = Figures("decide.", f".{case}")
    values = [of.values[case - 1] for of in judged]
    missed = [of.missed[case - 1] for of in judged]
    tell_name(make, graph, stored, case)
    make("possible", "Can be", "flag", in_case(graph.rows["checks.possible"], case))
    make("reason", "Reason code", "1", in_case(graph.rows["checks.reason"], case))
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
    of_first = index(labels, if_error(match(1, span(lacking)), 1))
    make("lacking", "The first of them", "1", of_first)
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
            all_of(
                *(make["possible"] > 0, make["misses"] <= 0, is_number(make["score"])),
                *(choice["asks"] > 0, choice["faults"] <= 0),
            ),
            1,
            0,
        ),
    )
    held = where(make["good"] > 0, -number_of(make["score"]), -_LAST)
    make("key", "Ranked by, the largest is best", "1", held - number * TOLERANCE)
    for name in BANDED:
        low, high = (graph.rows[f"evidence.{name}.{end}"] for end in ("p10", "p90"))
        spread = logarithm(in_case(high, case) / in_case(low, case)) / (SPREAD + SPREAD)
        make(f"deviation.{name}", f"Standard deviation of {name}, as a share", "1", if_error(spread, 0))
    make(f"deviation.{EXACT}", "The same of counts, and of prices of an hour", "1", as_node(0))
    deviations = span([make[f"deviation.{name}"] for name in _BANDS])
    of_one = index(deviations, choice["band"])
    make(
        "deviation",
        "Standard deviation of what is wanted, as a share",
        "1",
        where(choice["wanted"] > 0, of_one, maximum(deviations)),
        "with weights of one's own the largest of them",
    )
    make("chip", "Chip and framework", "1", chip_in(graph, case))
    fine = in_case(graph.checks.of_money.count, case) <= 0
    price = where(fine, in_case(graph.rows["break_even.price"], case), NOT_KNOWN)
    make("price", "Price of an accelerator per hour", "USD/h", price)
    make("price_known", "It is known", "flag", where(is_number(make["price"]), 1, 0))
    make("offers", "No price, in words", "1", offers_in(graph, case))
    per_million = USD_PER_MILLION_OUTPUT_TOKENS.of(graph.figures)
    make("cost", "USD per million output tokens", "USD/Mtoken", in_case(per_million, case))
    make(
        "hourly_tokens",
        "Output tokens of an accelerator in an hour",
        "token/h",
        where(fine, in_case(graph.rows["break_even.tokens"], case), NOT_KNOWN),
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
