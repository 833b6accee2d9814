"""What is typed of a choice among plans, and what it judges them by; its rows stand in decide.eq."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from mantile.equations.checks import NO_EDIT
from mantile.equations.display import Currency, as_known, in_unit, number_in
from mantile.equations.evidence import BANDED
from mantile.equations.graph import EstimateGraph
from mantile.equations.measures import EVIDENCE, HEADROOM, MEASURES, Measure, measure
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
from mantile.equations.tables import Equations, Space
from mantile.equations.typed import Typed
from mantile.equations.typed.choice import ChoiceTyped, as_typed, choice_typed
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import (
    Cases,
    InCase,
    Input,
    Node,
    Quantity,
    Span,
    as_node,
    equal,
    index,
    join,
    span,
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

_BANDS = (*BANDED, EXACT)


@dataclass(frozen=True)
class Judged:
    """A measure of the plans.

    Args:
        measure: which it is.
        unit: in which it is shown; that of amounts is USD.
        label: the measure, for formulas.
        limit, weight: what is typed.
    """

    measure: Measure
    unit: str
    label: Input
    limit: Input
    weight: Input

    @property
    def key(self) -> str:
        """The measure's name in ids."""
        return self.measure.key

    def space(self, place: int) -> Space:
        """Where its rows are made."""
        lower = self.measure.lower
        words = {"kind": "at most" if lower else "at least", "sign": "" if lower else "-"}
        words |= {"within": "<=" if lower else ">=", "room": "+" if lower else "-"}
        facts = {"key": self.key, "label": self.measure.metric.label, "unit": self.unit, "place": str(place)}
        return Space(home=f"decide.{self.key}", facts=facts | words)


@dataclass(frozen=True, repr=False)
class Decided(Brief):
    """The choice.

    Args:
        objective, take: what is typed; `pair` the two plans that are compared.
        judged: measures.
        numbers: of the plans, from 1.
        constants: what formulas refer to; `labels` the choices of what is wanted.
        guards: what the cells hold, and whether it can be.
        rows: where those of decide.eq are; here by name: "winner", of a plan "2.rank", of a measure
            "tpot_s.bound".
    """

    objective: Input
    take: Input
    pair: tuple[Input, Input]
    judged: tuple[Judged, ...]
    numbers: tuple[Input, ...]
    constants: tuple[Input, ...]
    labels: tuple[Input, ...]
    guards: ChoiceTyped
    rows: Equations

    @property
    def typed(self) -> tuple[Input, ...]:
        """Everything that is typed."""
        of_measures = (cell for of in self.judged for cell in (of.limit, of.weight))
        return (self.objective, self.take, *self.pair, *of_measures)

    @property
    def lists(self) -> dict[str, Span]:
        """The cells that something typed is chosen from, by its id."""
        return {self.objective.id: span(self.labels), **dict.fromkeys((TAKE, ONE, OTHER), span(self.numbers))}

    def __getitem__(self, name: str) -> Quantity:
        return self.rows[f"decide.{name}"]

    def of_plan(self, number: int) -> tuple[Quantity, ...]:
        """The rows of a plan, in order."""
        (section,) = self.rows.sections("decide", "Plans", prefix=f"decide.{number}.")
        return tuple(figure for figure in section.figures() if isinstance(figure, Quantity))


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
    one, other = (min(number, plans) for number in asked.pair or (1, 2))
    pair = _number(ONE, "A plan", one, plans), _number(OTHER, "Another plan", other, plans)
    labels, numbers = _constants("label", choices), _constants("plan", range(1, plans + 1))
    judged = tuple(
        Judged(of, unit_of(graph, of), label, *_entries(graph, of, asked, currency))
        for of, label in zip(measures, labels, strict=False)
    )
    typed = (objective, take, *pair, *(cell for of in judged for cell in (of.limit, of.weight)))
    guards = choice_typed(typed, labels, "decide", "the decision")
    bands = (_BANDS.index(_BAND.get(of.key, "throughput")) + 1 for of in measures)
    constants = (
        *_constants("measures", [len(measures)]),
        *_constants("place", range(1, len(measures) + 1)),
        *_constants("band", bands),
        *_constants("amount", [currency.named(_amount(of.measure, of.unit)) for of in judged]),
        *chain(*(_constants(kind, map(number, measures)) for kind, number in KINDS.items())),
        *numbers,
        *_constants("own_weights", [str(graph.ir.model.architecture.choices["weights_dtype"].value)]),
    )
    rows = graph.rows.fork()
    cost = USD_PER_MILLION_OUTPUT_TOKENS.of(graph.figures)
    rows.know(*constants, *labels, *typed, *guards.rows, cost)
    for of in judged:
        rows.know_as(f"body.{of.key}", _body(graph, of, currency))
    turned = {one.plan: f"{one.factor} {one.now:.3g} → {one.due:.3g}" for one in asked.turned}
    for plan in range(1, plans + 1):
        none = "the winner" if plan == 1 else "no factor alone"
        rows.know_as(f"decide.{plan}.found", as_node(turned.get(plan, none)))
    of_plans = [{"n": str(number.value)} for number in numbers]
    rows.make_in("choice", Space(facts={"plans": str(plans)}))
    rows.make_in("key", *(Space(facts=facts) for facts in of_plans))
    rows.make_in("plan", *(Space(home=f"decide.{facts['n']}", facts=facts) for facts in of_plans))
    rows.make_in("measure", *(of.space(place) for place, of in enumerate(judged, 1)))
    constants += tuple(
        figure for figure in rows.sections("decide", "Constants")[0].figures() if isinstance(figure, Input)
    )
    return Decided(objective, take, pair, judged, numbers, constants, labels, guards, rows)


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


def _body(graph: EstimateGraph, of: Judged, currency: Currency) -> Node:
    """A measure in the unit in which it is shown."""
    figure = of.measure.of(graph)
    if of.measure.metric is HEADROOM:
        assert isinstance(figure, Quantity)
        return figure.body
    is_money = figure.unit.startswith("USD")
    return as_known(figure, figure, currency.convert(figure)) if is_money else in_unit(figure, of.unit)


def tell_taken(taken: Quantity, is_plan: Quantity, own: Sequence[Typed], plans: int) -> tuple[Quantity, ...]:
    """Whether the base scenario is the plan that is taken, in words: the last of these rows.

    Args:
        taken: the number of that plan; `is_plan` 1 if what is typed is one.
        own: cells that scenarios have of their own.
    """
    last: Node = as_node(NO_EDIT)
    rows = []
    for item in own:
        now, cell = item.content, item.place
        there = index(Cases(now, plans + 1, "what plans hold"), taken + 1)
        label = f"The last cell that differs, up to {item.input.label}"
        body = where(equal(InCase(now, 0), there), last, as_typed(cell))
        last = Quantity(f"decide.differs.{cell.id.removeprefix('typed.cell_of.')}", label, "1", body)
        rows.append(last)
    differs = join("! ", last, " is not as in this plan: all sheets show another")
    said = where(equal(last, NO_EDIT), "Summary and all sheets show this plan", differs)
    rows.append(Quantity("decide.taken_shown", "What the base is, in words", "1", said))
    body = where(as_typed(is_plan) > 0, rows[-1], "! there is no such plan")
    return (*rows, Quantity("decide.taken_said", "The plan taken, in words", "1", body))
