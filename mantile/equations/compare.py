"""Scenarios side by side: results, their changes against the base, and who is best at what."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import MEGA
from mantile.equations.display import LETTERS, Currency, as_known, in_scenario, in_unit
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    DECODE_MBU,
    E2E,
    INTERACTIVITY,
    KV_CAPACITY_SEQUENCES,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    PREFILL_MFU,
    REQUESTS_PER_S,
    TPOT,
    TTFT,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
    Better,
    Metric,
)
from mantile.equations.ready_columns import if_it_counts, name_of
from mantile.equations.roofline import NETWORK
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    at_least,
    count_where,
    equal,
    index,
    is_number,
    join,
    match,
    maximum,
    minimum,
    number_of,
    percent,
    precedents,
    span,
    substitute,
    sum_of,
    sum_range,
    text,
    where,
)
from mantile.library.fields import DECODE
from mantile.library.scenario_fields import CLASS_DTYPES, SCENARIO_FIELDS

_DEGREES = ("tp", "pp", "dp", "ep", "attention_dp", "cp")
_CONFIGURATION = (
    "serving",
    *(f"{prefix}{name}" for name in ("accelerator", "framework", *_DEGREES) for prefix in ("", DECODE)),
    "weights_dtype",
    *CLASS_DTYPES,
    "kv_dtype",
    "price_basis",
    "concurrency",
    "request_rate",
    "sessions",
    "input_tokens",
    "output_tokens",
)
# Inputs that say nothing at their default: their row is left out where no scenario has another value.
_PLAIN = {
    name: SCENARIO_FIELDS[name.removeprefix(DECODE)].default
    for name in (*_DEGREES, *(f"{DECODE}{degree}" for degree in _DEGREES), *CLASS_DTYPES, "request_rate")
}
CONFIGURATION = "Configuration"
FITS = "fits"  # the key of the row that says which scenarios fit

LEAST_GAIN = Input("compare.least", "Least gain told", "1", 0.005, shared=True, fixed=True)


@dataclass(frozen=True, eq=False)
class Line:
    """What is compared.

    Args:
        key: its name in ids.
        body: of one scenario, in the unit.
        shown_unit: the unit as readers write it, where it differs.
        better: the direction that is, where one scenario can be better than another.
        changes: whether changes against the base are told.
        chart: what its chart is called.
        headline: whether the finding counts it.
        metric: where it is a headline metric, which says its digits.
        of: the figure that its row leads to, where that is not the first of the body.
    """

    key: str
    label: str
    unit: str
    body: Node
    shown_unit: str = ""
    better: Better | None = None
    changes: bool = True
    chart: str = ""
    headline: bool = False
    metric: Metric | None = None
    of: Quantity | None = None

    @property
    def subject(self) -> Named:
        """The figure that its row leads to."""
        return self.figures[0] if self.of is None else self.of

    @property
    def identifier(self) -> str:
        """Of what is compared: of a metric the figure that it is worked out as."""
        first = self.subject.id
        return first if self.metric is None or first != self.metric.shown_id else self.metric.id

    @property
    def figures(self) -> tuple[Named, ...]:
        """What it is made of, but for definitions, which are the same in every scenario."""
        parts = (self.body,) if isinstance(self.body, Input | Quantity) else precedents(self.body)
        return tuple(figure for figure in parts if not (isinstance(figure, Input) and figure.fixed))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Who is best in a row.

    Args:
        keys: what scenarios are ranked by.
        number: of the first who is best, from 1; 0 where all are alike or none has a place.
        none: what stands in place of a letter then.
        placed: how many have a place.
        alike: whether all have one and are alike.
        letter: of the best; = where all are alike, a dash where none has a place.
        limit: up to, or from, which key a scenario is best as well; for headlines.
        best: whether each scenario is; for headlines.
    """

    keys: tuple[Quantity, ...]
    placed: Quantity
    alike: Quantity
    number: Quantity
    none: Quantity
    letter: Quantity
    limit: Quantity | None
    best: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """A line in every scenario.

    Args:
        changes: of every scenario but the base, against it; none where they are not told.
        ranking: where one scenario can be better than another.
    """

    line: Line
    values: tuple[Quantity, ...]
    changes: tuple[Quantity, ...]
    ranking: Ranking | None


@dataclass(frozen=True)
class Scenarios:
    """The scenarios: their numbers from 1, letters, names, and names that say who does not fit."""

    numbers: tuple[Input, ...]
    letters: tuple[Input, ...]
    names: tuple[Named, ...]
    labels: tuple[Quantity, ...]


@dataclass(frozen=True)
class Finding:
    """Who is best most often.

    Args:
        won: headline results at which each scenario is best.
        most, ahead, sharing: the most of these, whose they are, and how many share them.
        leader: who leads, in words.
        title: the same as a heading.
    """

    won: tuple[Quantity, ...]
    most: Quantity
    ahead: Quantity
    sharing: Quantity
    leader: Quantity
    title: Quantity


@dataclass(frozen=True)
class ComparedChart:
    """A chart of one row, the best scenario singled out.

    Args:
        best, others: the value of the best scenario, and of the others that fit; 0 for the rest.
        gain, words: of the best against the base, as a share and in words.
    """

    row: Row
    title: Quantity
    best: tuple[Quantity, ...]
    others: tuple[Quantity, ...]
    gain: Quantity
    words: Quantity


@dataclass(frozen=True)
class Comparison:
    """Scenarios side by side. `sections` holds the rows by what they are about."""

    sections: Mapping[str, tuple[Row, ...]]
    scenarios: Scenarios
    finding: Finding
    charts: tuple[ComparedChart, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in order."""
        return tuple(row for rows in self.sections.values() for row in rows)


def compare(
    graph: EstimateGraph,
    names: Sequence[str],
    values: Sequence[Mapping[Node, Any]],
    currency: Currency,
    ready: Container[int] = (),
    counted: Quantity | None = None,
) -> Comparison:
    """Scenarios side by side.

    Args:
        names: of the scenarios, each behind its letter: "A · base".
        values: of each scenario, as generated; those of inputs decide which rows say something.
        ready: scenarios that count only with a name; without one their results do not show.
        counted: how many scenarios count, where some are such.
    """
    count = len(names)
    lines = lines_by_section(graph, values, currency, counted is not None)
    numbers = _constants("number", range(1, count + 1))
    letters = _constants("letter", [name[0] for name in names])
    called = tuple(
        _ready_name(scenario, name) if scenario in ready else name
        for scenario, name in enumerate(_constants("name", names))
    )
    fits_line = next(line for line in lines["Memory"] if line.key == FITS)
    shown_fits = _values(fits_line, count, ready)
    fits = [number_of(fit) if scenario in ready else fit for scenario, fit in enumerate(shown_fits)]
    places = numbers[-1] if counted is None else counted
    sections = {
        section: tuple(
            _row(
                line,
                shown_fits if line is fits_line else _values(line, count, ready),
                fits,
                numbers,
                letters,
                places,
            )
            for line in section_lines
        )
        for section, section_lines in lines.items()
    }
    rows = [row for section_rows in sections.values() for row in section_rows]
    labels = tuple(
        _label(scenario, name, fit, scenario in ready)
        for scenario, (name, fit) in enumerate(zip(called, fits, strict=True))
    )
    return Comparison(
        sections=sections,
        scenarios=Scenarios(numbers, letters, called, labels),
        finding=finding([row for row in rows if row.line.headline], numbers, called),
        charts=tuple(chart(row, fits, numbers, called) for row in rows if row.line.chart),
    )


def _constants(kind: str, values: Iterable[str | int]) -> tuple[Input, ...]:
    """What is said of each scenario and never changes."""
    return tuple(
        Input(f"compare.{kind}.{scenario}", kind, "1", value, shared=True, fixed=True)
        for scenario, value in enumerate(values)
    )


def lines_by_section(
    graph: EstimateGraph, values: Sequence[Mapping[Node, Any]], currency: Currency, ready: bool = False
) -> dict[str, tuple[Line, ...]]:
    """What is compared, by what it is about.

    Args:
        ready: whether there are ready columns, in which any input may differ.
    """
    return {
        CONFIGURATION: tuple(_configuration(graph, values, ready)),
        "Memory": _memory(graph),
        "Latency": _latency(graph),
        "Throughput": _throughput(graph),
        "Limits": _limits(graph),
        "Cost": _cost(graph, currency),
    }


def _configuration(graph: EstimateGraph, values: Sequence[Mapping[Node, Any]], ready: bool) -> Iterable[Line]:
    """The inputs that say something in any of the scenarios."""
    yield Line(
        "accelerators", "Accelerators", "accelerator", graph.rows["serving.accelerators"], changes=False
    )
    inputs = graph.inputs.named()
    for name in _CONFIGURATION:
        if name in inputs and (
            name not in _PLAIN or ready or any(scenario[inputs[name]] != _PLAIN[name] for scenario in values)
        ):
            figure = inputs[name]
            yield Line(name, figure.label, figure.unit, figure, changes=False)


def _memory(graph: EstimateGraph) -> tuple[Line, ...]:
    memory, load = graph.fullest, graph.figures.get("load.state")
    suffix = ", fullest" if len(graph.workers) > 1 else ""
    share = memory["memory.used"] / maximum(1, memory["memory.usable"])
    used = f"Used per accelerator{suffix}"
    return (
        _metric(graph, MEMORY_PER_ACCELERATOR, key="memory_used", label=used),
        Line("memory_share", f"Share of usable memory{suffix}", "1", share, shown_unit="%", better="lower"),
        _metric(graph, KV_CAPACITY_SEQUENCES, key="capacity_sequences", label=KV_CAPACITY_SEQUENCES.label),
        Line(
            FITS,
            "Fits, and the plan is possible",
            "flag",
            graph.rows["checks.possible"],
            shown_unit="yes/no",
            changes=False,
        ),
        Line("reason", "Feasibility", "1", graph.rows["checks.reason"], changes=False),
        *(() if load is None else (Line("state", "Load", "1", load, changes=False),)),
    )


def _latency(graph: EstimateGraph) -> tuple[Line, ...]:
    return (
        _metric(graph, TTFT, headline=True),
        _metric(graph, TPOT, headline=True, chart=TPOT.head),
        _metric(graph, E2E),
        _metric(graph, INTERACTIVITY),
    )


def _throughput(graph: EstimateGraph) -> tuple[Line, ...]:
    metric = OUTPUT_TOKENS_PER_S_PER_ACCELERATOR
    chart = metric.head[0].upper() + metric.head[1:]
    return (
        _metric(graph, OUTPUT_TOKENS_PER_S),
        _metric(graph, metric, label=metric.label, headline=True, chart=chart),
        _metric(graph, REQUESTS_PER_S),
    )


def _limits(graph: EstimateGraph) -> tuple[Line, ...]:
    prefill, decode = graph.prefill, graph.decode
    share = decode.parts[NETWORK] / decode.time

    def limit(key: str, label: str, unit: str, body: Node, of: Quantity, shown_unit: str = "") -> Line:
        shown = where(graph.rows["checks.possible"] > 0, body, NOT_KNOWN)
        return Line(key, label, unit, shown, shown_unit=shown_unit, changes=bool(shown_unit), of=of)

    of_prefill, of_decode = prefill.bottleneck, decode.bottleneck
    return (
        limit("prefill_bottleneck", "Prefill is limited by", "1", of_prefill, of_prefill),
        limit("decode_bottleneck", "Decode is limited by", "1", of_decode, of_decode),
        _metric(graph, PREFILL_MFU, label="Prefill compute used, MFU"),
        _metric(graph, DECODE_MBU, label="Decode bandwidth used, MBU"),
        limit("decode_network_share", "Network share of decode", "1", share, decode.parts[NETWORK], "%"),
    )


def _cost(graph: EstimateGraph, currency: Currency) -> tuple[Line, ...]:

    def money(label: str, metric: Metric, chart: str = "", headline: bool = False) -> Line:
        figure = metric.of(graph.figures)
        return Line(
            metric.id.rpartition(".")[2],
            label,
            figure.unit,
            as_known(figure, figure, currency.convert(figure)),
            shown_unit=currency.named(figure.unit),
            better=metric.better,
            chart=currency.named(chart),
            headline=headline,
            metric=metric,
        )

    def price(key: str, label: str, of: Quantity, usd: Node, *needed: Node) -> Line:
        known = all_of(graph.checks.of_money.count <= 0, *map(is_number, needed))
        shown = where(known, currency.convert(usd), NOT_KNOWN)
        unit = graph.rows["break_even.price"].unit
        return Line(key, label, unit, shown, currency.named(unit), changes=False, of=of)

    of_one, tokens = graph.rows["break_even.price"], graph.rows["break_even.tokens"]
    per_token = USD_PER_MILLION_OUTPUT_TOKENS
    of_base = in_scenario(per_token.of(graph.figures), 0)
    return (
        money("Per hour, all accelerators", USD_PER_HOUR),
        _metric(graph, POWER),
        money("Per million output tokens", per_token, chart=per_token.head, headline=True),
        money("Per month, all accelerators", USD_PER_MONTH),
        price("price", "Price of an accelerator per hour", of_one, of_one, of_one),
        price("break_even", "Price at which it costs as much as A", tokens, of_base * tokens / MEGA, of_base),
    )


def _metric(
    graph: EstimateGraph,
    metric: Metric,
    *,
    key: str = "",
    label: str = "",
    headline: bool = False,
    chart: str = "",
) -> Line:
    """A headline metric.

    Args:
        key: in ids, where it is not the attribute of the metric.
        label: where it is not that of the quantity.
    """
    quantity = metric.of(graph.figures)
    percent = metric.display_unit == "%"
    return Line(
        key or metric.attribute,
        label or quantity.label,
        quantity.unit if percent else metric.display_unit,
        quantity if percent else in_unit(quantity, metric.display_unit),
        shown_unit=metric.written_unit,
        better=metric.better,
        chart=chart,
        headline=headline,
        metric=metric,
    )


def _ready_name(scenario: int, name: Input) -> Quantity:
    """The name of a ready column behind its letter."""
    return Quantity(name.id, name.label, "1", join(f"{LETTERS[scenario]} · ", name_of(scenario)))


def _label(scenario: int, name: Named, fit: Node, ready: bool) -> Quantity:
    label: Node = where(fit > 0, name, join(name, ", not possible"))
    if ready:
        label = if_it_counts(scenario, label, name)
    return Quantity(f"compare.label.{scenario}", "Label", "1", label)


def _values(line: Line, count: int, ready: Container[int]) -> tuple[Quantity, ...]:
    """A line in every scenario; of a ready column once that has a name."""
    values = [
        substitute(line.body, {figure: in_scenario(figure, scenario) for figure in line.figures})
        for scenario in range(count)
    ]
    return tuple(
        Quantity(
            f"compare.{line.key}.{scenario}",
            line.label,
            line.unit,
            if_it_counts(scenario, value) if scenario in ready else value,
        )
        for scenario, value in enumerate(values)
    )


def _row(
    line: Line,
    values: tuple[Quantity, ...],
    fits: Sequence[Node],
    numbers: Sequence[Input],
    letters: Sequence[Input],
    places: Named,
) -> Row:
    base, *others = values
    changes = tuple(_change(line, number, value, base) for number, value in enumerate(others, 1))
    ranked = ranking(line, line.better, values, fits, numbers, letters, places) if line.better else None
    return Row(line, values, changes if line.changes else (), ranked)


def _change(line: Line, scenario: int, value: Quantity, base: Quantity) -> Quantity:
    """The relative change against the base; a dash where nobody knows one of both."""
    body = where(all_of(is_number(value), number_of(base) > 0), value / base - 1, "–")
    return Quantity(f"compare.{line.key}.change.{scenario}", f"Change of {line.label}", "1", body)


def ranking(
    line: Line,
    better: Better,
    values: Sequence[Quantity],
    fits: Sequence[Node],
    numbers: Sequence[Input],
    letters: Sequence[Input],
    places: Named,
) -> Ranking:
    """Who is best in a row.

    What cannot be, or nobody knows, has no place. A billionth per place makes the first of equals the first
    in every engine.

    Args:
        places: how many there may be.
    """
    lower = better == "lower"
    keys = tuple(
        Quantity(
            f"compare.{line.key}.key.{number.value}", "Ranked by", line.unit, _key(lower, value, fit, number)
        )
        for value, fit, number in zip(values, fits, numbers, strict=True)
    )
    block, spread = span(keys), numbers[-1] * TOLERANCE
    placed = Quantity(
        f"compare.{line.key}.placed", "Scenarios with a place", "1", count_where(block, at_least(0))
    )
    alike = Quantity(
        f"compare.{line.key}.alike",
        "All are alike",
        "flag",
        where(all_of(placed >= places, maximum(block) - minimum(block) <= spread * maximum(block)), 1, 0),
    )
    first = match(minimum(block) if lower else maximum(block), block)
    number = Quantity(
        f"compare.{line.key}.best",
        "Number of the best",
        "1",
        where(all_of(placed > 0, alike <= 0), first, 0),
    )
    of_none = Quantity(f"compare.{line.key}.none", "In place of a letter", "1", where(alike > 0, "=", "–"))
    letter = where(number > 0, index(span(letters), maximum(1, number)), of_none)
    limit = _limit(line, lower, keys, number, spread) if line.headline else None
    return Ranking(
        keys=keys,
        placed=placed,
        alike=alike,
        number=number,
        none=of_none,
        letter=Quantity(f"compare.{line.key}.letter", f"Best, {line.label}", "1", letter),
        limit=limit,
        best=() if limit is None else tuple(_is_best(lower, key, limit) for key in keys),
    )


def _key(lower: bool, value: Quantity, fit: Node, number: Input) -> Node:
    order = number * TOLERANCE
    key = value * (1 + order if lower else 1 - order)
    return where(all_of(number_of(value) > 0, fit > 0), key, "–")


def _is_best(lower: bool, key: Quantity, limit: Quantity) -> Node:
    """Whether a scenario is as good as the best; one without a place is not. A text is above any number."""
    return key <= limit if lower else number_of(key) >= limit


def _limit(line: Line, lower: bool, keys: Sequence[Quantity], number: Quantity, spread: Node) -> Quantity:
    """The key up to which, or from which on, a scenario is as good as the best."""
    block = span(keys)
    name = f"compare.{line.key}.limit"
    if lower:
        return Quantity(name, "Best up to", line.unit, where(number > 0, minimum(block) * (1 + spread), 0))
    return Quantity(name, "Best from", line.unit, where(number > 0, maximum(block) * (1 - spread), "–"))


def finding(headlines: Sequence[Row], numbers: Sequence[Input], names: Sequence[Named]) -> Finding:
    """Who is best most often at the headline results."""
    rankings = [row.ranking for row in headlines if row.ranking is not None]
    won = tuple(
        Quantity(
            f"compare.won.{number.value}",
            "Results at which it is best",
            "1",
            sum_of([where(of.best[scenario], 1, 0) for of in rankings]),
        )
        for scenario, number in enumerate(numbers)
    )
    block = span(won)
    most = Quantity("compare.most", "Most results", "1", maximum(block))
    sharing = Quantity("compare.sharing", "Best equally often", "1", count_where(block, most))
    first = index(span(names), match(most, block))
    ahead = Quantity("compare.ahead", "Best most often", "1", first)
    several = join(text(sharing), " scenarios lead")
    leader = Quantity("compare.who", "Who leads", "1", where(sharing > 1, several, join(ahead, " leads")))
    leader_text = join(leader, " in ", text(most), " headline results")
    title = where(most > 0, leader_text, "No scenario is ahead of the others")
    return Finding(won, most, ahead, sharing, leader, Quantity("compare.title", "Finding", "1", title))


def chart(row: Row, fits: Sequence[Node], numbers: Sequence[Input], names: Sequence[Named]) -> ComparedChart:
    """A chart of one row, the best scenario singled out, under a title that says by how much."""
    line, of = row.line, row.ranking
    assert of is not None
    best = tuple(
        Quantity(
            f"compare.{line.key}.chart.{number.value}",
            line.chart,
            line.unit,
            where(equal(of.number, number), number_of(value), 0),
        )
        for value, number in zip(row.values, numbers, strict=True)
    )
    others = tuple(
        Quantity(
            f"compare.{line.key}.others.{number.value}",
            f"{line.chart}, others",
            line.unit,
            number_of(value) * fit - singled,
        )
        for value, fit, singled, number in zip(row.values, fits, best, numbers, strict=True)
    )
    gain = _gain(line, of, best, row.values[0])
    direction = "below" if line.better == "lower" else "above"
    told = where(
        gain >= LEAST_GAIN, join(", ", percent(gain * (1 + TOLERANCE), 0), f" {direction} A"), " is best"
    )
    gain_text = Quantity(f"compare.{line.key}.words", "Gain in words", "1", told)
    named = join(index(span(names), maximum(1, of.number)), gain_text)
    title = join(f"{line.chart}: ", where(of.number > 0, named, "none is ahead"))
    return ComparedChart(
        row=row,
        title=Quantity(f"compare.{line.key}.title", "Chart title", "1", title),
        best=best,
        others=others,
        gain=gain,
        words=gain_text,
    )


def _gain(line: Line, of: Ranking, best: Sequence[Quantity], base: Quantity) -> Quantity:
    """How far the best is from the base."""
    ratio = sum_range(span(best)) / base
    gain = 1 - ratio if line.better == "lower" else ratio - 1
    body = where(all_of(of.number > 0, number_of(base) > 0), gain, 0)
    return Quantity(f"compare.{line.key}.gain", "Gain against the base", "1", body)
