"""A choice among plans: what each reaches, which limits it misses, who wins, and whether that is certain.

The plans are the variants of a scenario; the base is the one of them that was taken. What is wanted and every
limit is a cell, so the choice follows each edit of them, of a price or of a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import MEGA, MILLI
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
from mantile.equations.roofline import NETWORK
from mantile.graph.quantity import (
    NOT_KNOWN,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    absolute,
    all_of,
    as_node,
    at_least,
    count_where,
    equal,
    exponential,
    if_error,
    index,
    is_empty,
    is_number,
    join,
    logarithm,
    match,
    maximum,
    nth_largest,
    number_of,
    percent,
    precedents,
    rounded,
    span,
    substitute,
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
NONE = "–"
_BAND = {TPOT.column: "tpot", INTERACTIVITY.column: "tpot", TTFT.column: "ttft", TTFT_P95.column: "ttft"}
"""Whose range a measure has; all others have that of throughput."""

_SPREAD = Input(
    "decide.percentile", "p90 of a normal distribution", "1", 1.2816, "in standard deviations", "defined",
    shared=True, fixed=True,
)  # fmt: skip
_SHARED = Input(
    "decide.shared",
    "Share of the error that two plans on one chip and framework have in common",
    "1",
    0.2,
    "it cancels in their difference",
    "fitted: residuals of throughput of 2,106 public serving runs; pairs of other plans of one model, chip "
    "and framework have 0.19 in common, pairs on other chips or frameworks 0.0 to 0.1; November 2026",
    shared=True,
    fixed=True,
)
_SECOND = Input("decide.rank_two", "Rank of the second", "number", 2, shared=True, fixed=True)
_LAST = Input("decide.last", "Key of what has no rank", "1", 1e6, shared=True, fixed=True)
_BANDS = tuple(BANDED)
_TOLD_MORE = Input(
    "decide.more",
    "Least difference told",
    "1",
    0.05,
    "of a price, or of a share of a step",
    shared=True,
    fixed=True,
)


@dataclass(frozen=True)
class Judged:
    """A measure of the plans.

    Args:
        measure: which it is.
        unit: in which it is shown; that of amounts is USD.
        label: the measure, for formulas.
        limit, weight: what is typed.
        limited: 1 where a limit is a number above 0; `said` what holds of it, in words; `bound` the limit
            or 0. `own` the weight that is typed, 0 where one measure is wanted.
        weighs: the weight that counts, by what is wanted.
        values: of each plan, in that unit; texts where nobody knows them.
        missed: 1 where a plan does not keep the limit.
    """

    measure: Measure
    unit: str
    label: Input
    limit: Input
    weight: Input
    limited: Quantity
    said: Quantity
    weighs: Quantity
    bound: Quantity
    own: Quantity
    values: tuple[Quantity, ...]
    missed: tuple[Quantity, ...]


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
    of = _Figures("decide.")
    numbers = _constants("plan", range(1, plans + 1))
    is_plan = count_where(span(numbers), _as_typed(take))
    of("taken", "Plan that the base scenario is", "number", where(is_plan > 0, _as_typed(take), 1))
    of(
        "taken_said",
        "The plan taken, in words",
        "1",
        where(
            is_plan > 0, "Summary and all sheets show this plan", "! there is no such plan: plan 1 is shown"
        ),
    )
    of("place", "Place of what is wanted", "number", if_error(match(_as_typed(objective), span(labels)), 0))
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
        _beside(row, rows, number, of)
    title, reason = _finding(rows, judged, amounts, of)
    _between(rows, pair, of)
    _drawn(rows, judged, of)
    return Decided(
        objective=objective,
        take=take,
        pair=pair,
        judged=judged,
        plans=tuple(Plan(number, row.figures) for number, row in zip(numbers, rows, strict=True)),
        title=title,
        reason=reason,
        constants=(count, *places, *bands, *amounts, *numbers, _SPREAD, _SHARED, _TOLD_MORE, _SECOND, _LAST),
        labels=labels,
        figures=of.figures,
        sorted=ordered,
    )


class _Figures:
    """Quantities by name, under ids that begin alike.

    Args:
        begin: of ids.
        end: of ids.
    """

    def __init__(self, begin: str, end: str = "") -> None:
        self.begin, self.end = begin, end
        self.figures: dict[str, Quantity] = {}

    def __call__(self, name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        made = Quantity(f"{self.begin}{name}{self.end}", label, unit, body, note)
        self.figures[name] = made
        return made

    def __getitem__(self, name: str) -> Quantity:
        return self.figures[name]


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


def _as_typed(figure: Input) -> InCase:
    """What stands in a cell of the choice."""
    return InCase(figure, 0, "as typed")


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
    make = _Figures("decide.", f".{of.key}")
    make(
        "bound",
        f"Limit of {label_} that holds, or 0",
        unit,
        where(is_number(_as_typed(limit)), _as_typed(limit), 0),
    )
    make("limited", f"{label_} has a limit", "flag", where(make["bound"] > 0, 1, 0))
    kind = "at most" if of.lower else "at least"
    read = where(is_number(_as_typed(limit)), 1, 0) * where(make["bound"] >= 0, 1, 0)
    unread = 1 - where(is_empty(_as_typed(limit)), 1, 0) - read
    make("unread", f"Limit of {label_} is no number from 0 on", "flag", unread)
    none = where(make["unread"] > 0, "! no number: no limit", "no limit")
    make("unsaid", f"No limit of {label_}, in words", "1", none)
    make("said", f"Limit of {label_}, in words", "1", where(make["limited"] > 0, kind, make["unsaid"]))
    own = where(wanted > 0, 0, maximum(0, number_of(_as_typed(weight))))
    make("own", f"Own weight of {label_}", "1", own)
    make("weighs", f"{label_} counts", "1", where(equal(wanted, number), 1, make["own"]))
    values = tuple(
        Quantity(f"decide.value.{of.key}.{plan}", label_, unit, _in_case(body, plan))
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


def _in_case(body: Node, case: int) -> Node:
    """An expression as a plan has it."""
    parts: tuple[Named, ...] = (body,) if isinstance(body, Input | Quantity) else precedents(body)
    varying = [part for part in parts if not (isinstance(part, Input) and part.fixed)]
    return substitute(body, {part: InCase(part, case, f"of plan {case}") for part in varying})


def _plan(
    graph: EstimateGraph, number: Input, judged: Sequence[Judged], labels: Span, choice: _Figures
) -> _Figures:
    """A plan by itself: whether it can be, the limits it misses, its score and its key."""
    case = int(cast(int, number.value))
    make = _Figures("decide.", f".{case}")
    values = [of.values[case - 1] for of in judged]
    missed = [of.missed[case - 1] for of in judged]
    _named(make, graph, case)
    make("possible", "Can be", "flag", _in_case(graph.checks.possible, case))
    make("reason", "Reason code", "1", _in_case(graph.checks.reason, case))
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
        spread = logarithm(_in_case(high, case) / _in_case(low, case)) / (_SPREAD + _SPREAD)
        make(f"deviation.{name}", f"Standard deviation of {name}, as a share", "1", if_error(spread, 0))
    deviations = span([make[f"deviation.{name}"] for name in _BANDS])
    make(
        "deviation",
        "Standard deviation of what is wanted, as a share",
        "1",
        index(deviations, choice["band"]),
    )
    make("chip", "Chip and framework", "1", _chip(graph, case))
    make("price", "Price of an accelerator per hour", "USD/h", _in_case(graph.cost.break_even.price, case))
    per_million = USD_PER_MILLION_OUTPUT_TOKENS.of(graph.figures)
    make("cost", "USD per million output tokens", "USD/Mtoken", _in_case(per_million, case))
    make(
        "hourly_tokens",
        "Output tokens of an accelerator in an hour",
        "token/h",
        _in_case(graph.cost.break_even.tokens, case),
    )
    make("share", "Share of links in a decode step", "1", _links(graph, case))
    per_chip = next(of for of in judged if of.measure.key == OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column)
    make(
        "tokens", "Output tokens per accelerator", "token/s/accelerator", number_of(per_chip.values[case - 1])
    )
    make("value", "What its first missed limit bounds", "1", index(span(values), make["first"]))
    make("value_known", "It is known", "flag", where(is_number(make["value"]), 1, 0))
    make("limit", "That limit", "1", index(span([of.bound for of in judged]), make["first"]))
    make("label", "Which it is", "1", index(labels, make["first"]))
    make("beyond", "Beyond the limit", "1", _beyond(make["value"], make["limit"]))
    return make


_DEGREES = (("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))


def _named(make: _Figures, graph: EstimateGraph, case: int) -> None:
    """What a plan is called, from its cells: B200 SXM · 3 × TP1 · nvfp4, fp8 KV · trtllm."""
    workers = graph.decode_workers
    inputs = workers.inputs.named()

    def of(name: str) -> Node:
        return _in_case(inputs[name], case)

    ranks = rounded(of("tp"), 0)
    told = make(
        "name.replicas",
        "Replicas and TP, in words",
        "1",
        where(of("dp") > 1, join(rounded(of("dp"), 0), " × TP", ranks), join("TP", ranks)),
    )
    for name, short in _DEGREES:
        more = join(told, f" {short}", rounded(of(name), 0))
        told = make(f"name.{name}", f"Degrees to {short}, in words", "1", where(of(name) > 1, more, told))
    make("name.formats", "Data types, in words", "1", join(of("weights_dtype"), ", ", of("kv_dtype"), " KV"))
    if len(graph.workers) > 1:
        told = _of_both(make, graph, case, told)
    chip = _in_case(workers.hardware.name, case)
    words = join(chip, " · ", told, " · ", make["name.formats"], " · ", of("framework"))
    make("name", "Plan", "1", words)


def _of_both(make: _Figures, graph: EstimateGraph, case: int, last: Quantity) -> Quantity:
    """Degrees of prefill workers, an arrow, and those of decode workers; of plans with both those alone."""
    inputs = graph.prefill_workers.inputs.named()

    def of(name: str) -> Node:
        return _in_case(inputs[name], case)

    ranks = rounded(of("tp"), 0)
    several = join(rounded(of("dp"), 0), " × TP", ranks)
    told = make(
        "name.prefill", "Prefill workers, in words", "1", where(of("dp") > 1, several, join("TP", ranks))
    )
    more = join(told, " DPA", rounded(of("attention_dp"), 0))
    told = make("name.prefill_dpa", "The same, with DPA", "1", where(of("attention_dp") > 1, more, told))
    both = join(told, " → ", last)
    return make("name.both", "Both, in words", "1", where(equal(of("serving"), "disaggregated"), both, last))


def _beyond(value: Quantity, limit: Quantity) -> Node:
    ratio = number_of(value) / limit
    return if_error(absolute(ratio - 1), 0)


def _chip(graph: EstimateGraph, case: int) -> Node:
    inputs = graph.decode_workers.inputs
    return join(_in_case(inputs.accelerator, case), " ", _in_case(inputs.framework, case))


def _links(graph: EstimateGraph, case: int) -> Node:
    decode = graph.decode
    return if_error(_in_case(decode.parts[NETWORK], case) / _in_case(decode.time, case), 0)


def _beside(row: _Figures, rows: Sequence[_Figures], number: Input, of: _Figures) -> None:
    """A plan beside the winner: how far behind it is, whether that is more than the error, and why."""

    def best(name: str) -> Node:
        return index(span([other[name] for other in rows]), of["at"])

    gap = number_of(row["score"]) - number_of(best("score"))
    row("gap", "Behind the winner, as a logarithm", "1", gap)
    placed = is_number(row["rank"])
    row("behind", "Worse than the winner", "1", where(placed, exponential(row["gap"]) - 1, NONE))
    row(
        "same",
        "On the chip and framework of the winner",
        "1",
        where(equal(row["chip"], best("chip")), _SHARED, 0),
    )
    row("best_deviation", "Standard deviation of the winner", "1", best("deviation"))
    mine, theirs = row["deviation"], row["best_deviation"]
    row(
        "variance",
        "Variance of the difference",
        "1",
        mine * mine + theirs * theirs - row["same"] * mine * (theirs + theirs),
        "what both plans share cancels",
    )
    row("error", "Range of the difference", "1", exponential(_SPREAD * row["variance"] ** 0.5) - 1)
    within = number_of(row["behind"]) <= row["error"]
    row("holds", "Whether the difference holds", "1", where(within, "within the error", "holds"))
    row("real", "Whether it holds, of a plan with a rank", "1", where(placed, row["holds"], NONE))
    row("told", "The difference, in words", "1", where(equal(row["rank"], 1), "winner", row["real"]))
    second = index(span([other["cost"] for other in rows]), maximum(1, of["second"]))
    row(
        "even",
        "Cost per million to break even with",
        "USD/Mtoken",
        where(equal(row["rank"], 1), second, best("cost")),
    )
    due = if_error(row["even"] * row["hourly_tokens"] / MEGA, NOT_KNOWN)
    row(
        "price_due",
        "Price at which it costs what the winner does",
        "USD/h",
        due,
        "per accelerator and hour; of the winner, what the second costs",
    )
    row("price_change", "Change of the price", "1", if_error(row["price_due"] / row["price"] - 1, NOT_KNOWN))
    row("dearer", "Dearer per accelerator and hour", "1", if_error(row["price"] / best("price") - 1, 0))
    row("fewer", "Fewer tokens per accelerator", "1", if_error(1 - row["tokens"] / best("tokens"), 0))
    row("best_share", "Share of links, the winner's", "1", best("share"))
    _lost(row, number, of)


def _lost(row: _Figures, number: Input, of: _Figures) -> None:
    """Why a plan lost: the first cause that holds, in words."""
    more = row["share"] - row["best_share"]
    unknown = all_of(row["misses"] > 0, row["value_known"] <= 0)
    causes: dict[str, tuple[Node, Node]] = {
        "cannot": (row["possible"] <= 0, join("cannot be: ", row["reason"])),
        "unknown": (unknown, join(row["label"], " is not known: no limit is kept")),
        "missed": (
            row["misses"] > 0,
            join(row["label"], " is ", percent(row["beyond"], 0), " beyond its limit"),
        ),
        "unranked": (row["unknown"] > 0, as_node("what is wanted is not known: it has no rank")),
        "won": (equal(number, of["winner"]), as_node("the best of those that keep every limit")),
        "links": (
            all_of(more >= _TOLD_MORE, more + more >= row["fewer"]),
            join(
                "links take ",
                percent(row["share"], 0),
                " of a step; the winner's ",
                percent(row["best_share"], 0),
            ),
        ),
        "price": (
            all_of(row["dearer"] >= _TOLD_MORE, row["dearer"] >= row["fewer"]),
            join("an accelerator costs ", percent(row["dearer"], 0), " more per hour"),
        ),
        "tokens": (
            row["fewer"] >= _TOLD_MORE,
            join(percent(row["fewer"], 0), " fewer tokens per accelerator"),
        ),
        "else": (as_node(1) > 0, as_node("small differences in everything")),
    }
    flags = [
        row(f"is.{name}", f"Cause: {name}", "flag", where(holds, 1, 0)) for name, (holds, _) in causes.items()
    ]
    words = [row(f"words.{name}", f"Words: {name}", "1", words) for name, (_, words) in causes.items()]
    row("lost", "Why it lost", "1", index(span(words), match(1, span(flags))))


def _finding(
    rows: Sequence[_Figures], judged: Sequence[Judged], amounts: Sequence[Input], of: _Figures
) -> tuple[Quantity, Quantity]:
    """Who wins, and how sure that is."""
    for row, number in zip(rows, range(len(rows)), strict=True):
        values = span([one.values[number] for one in judged])
        row("wanted", "What is wanted", "1", index(values, maximum(1, of["wanted"])))
        factor = exponential(_SPREAD * row["deviation"])
        row("low", "Lower end of 80 %", "1", if_error(row["wanted"] / factor, NONE))
        row("high", "Upper end of 80 %", "1", if_error(row["wanted"] * factor, NONE))
    of("best", "The winner's", "1", index(span([row["wanted"] for row in rows]), of["at"]))
    called = span([row["name"] for row in rows])
    of("name", "Name of the winner", "1", index(called, of["at"]))
    for name, key in (("speed", INTERACTIVITY.column), ("rate", OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column)):
        values = span(next(one for one in judged if one.measure.key == key).values)
        of(name, f"The winner's {name}, for the picture", "1", number_of(index(values, of["at"])))
    of(
        "what",
        "What is wanted, in words",
        "1",
        index(span(amounts), maximum(1, of["wanted"])),
    )
    amount = join(of["name"], ": ", rounded(number_of(of["best"]), 2), " ", of["what"])
    of("amount", "The winner, and what it reaches", "1", where(of["wanted"] > 0, amount, of["name"]))
    nothing = "! nothing is wanted: choose an objective, or type weights"
    of("none", "Why none wins", "1", where(of["asks"] > 0, "No plan keeps every limit", nothing))
    title = of(
        "title",
        "Finding",
        "1",
        where(of["winner"] > 0, join("Take ", of["amount"]), of["none"]),
    )
    place = maximum(1, of["second"])
    of("second_name", "Name of the second", "1", index(called, place))
    of(
        "second_behind",
        "The second, behind",
        "1",
        number_of(index(span([row["behind"] for row in rows]), place)),
    )
    of("second_told", "Whether that holds", "1", index(span([row["told"] for row in rows]), place))
    ahead = join(percent(of["second_behind"], 1), " ahead of ", of["second_name"], ": ", of["second_told"])
    of(
        "ahead",
        "The winner against the second",
        "1",
        where(of["second"] > 0, ahead, "no other plan has a rank"),
    )
    reason = of(
        "reason", "Why", "1", where(of["winner"] > 0, of["ahead"], "what each plan misses stands below")
    )
    return title, reason


def _between(rows: Sequence[_Figures], pair: tuple[Input, Input], of: _Figures) -> None:
    """How far two plans are apart, and whether that is more than the error that they do not share."""

    def both(name: str) -> tuple[Quantity, Quantity]:
        """A figure of the two plans."""
        column = span([row[name] for row in rows])
        ends = zip(("one", "other"), pair, strict=True)
        first, second = (
            of(
                f"{end}.{name}",
                f"{name} of the {end} plan",
                "1",
                if_error(index(column, number_of(_as_typed(at))), NONE),
            )
            for end, at in ends
        )
        return first, second

    scores, spreads, chips, names = (both(name) for name in ("score", "deviation", "chip", "name"))
    known = all_of(is_number(scores[0]), is_number(scores[1]))
    gap = number_of(scores[1]) - number_of(scores[0])
    apart = of("apart", "The other plan against the one", "1", where(known, exponential(gap) - 1, NONE))
    shared = of("apart.shared", "Error that both share", "1", where(equal(*chips), _SHARED, 0))
    one, other = (number_of(spread) for spread in spreads)
    variance = of(
        "apart.variance",
        "Variance of their difference",
        "1",
        one * one + other * other - shared * one * (other + other),
        "what both plans share cancels",
    )
    error = of("apart.error", "Range of their difference", "1", exponential(_SPREAD * variance**0.5) - 1)
    within = absolute(number_of(apart)) <= error
    holds = of("apart.within", "The same of known ones", "1", where(within, "within the error", "holds"))
    held = of("apart.holds", "Whether the difference holds", "1", where(known, holds, NONE))
    worse = where(number_of(apart) < 0, "better", "worse")
    way = of("apart.way", "Which way", "1", worse)
    size = percent(absolute(number_of(apart)), 1)
    told = join(
        names[1], " is ", size, " ", way, " than ", names[0], ", range ± ", percent(error, 0), ": ", held
    )
    unknown = "! no difference is known: type numbers of two plans of which what is wanted is known"
    of("apart.told", "Two plans, in words", "1", where(all_of(known, of["asks"] > 0), told, unknown))


def _drawn(rows: Sequence[_Figures], judged: Sequence[Judged], of: _Figures) -> None:
    """What pictures show: the bars of ranges, and the speed that limits ask for."""
    for row in rows:
        low, middle, high = (number_of(row[name]) for name in ("low", "wanted", "high"))
        best = equal(row["rank"], 1)
        row("bar.begin", "Where the bar begins", "1", low)
        below = row("bar.below", "From there to what is expected", "1", middle - low)
        above = row("bar.above", "From what is expected to its end", "1", high - middle)
        for name, part_ in (("below", below), ("above", above)):
            row(f"bar.best.{name}", f"The same {name}, of the winner", "1", where(best, part_, 0))
            row(f"bar.other.{name}", f"The same {name}, of others", "1", where(best, 0, part_))
    bounds = {one.measure.key: one.bound for one in judged}
    slowest = bounds.get(TPOT.column)
    speed = bounds.get(INTERACTIVITY.column)
    asked: list[Node] = [] if speed is None else [speed]
    asked += [] if slowest is None else [if_error(MILLI / slowest, 0)]
    of("limit_speed", "Least speed that limits allow, 0 without", "token/s", maximum(0, *asked))
