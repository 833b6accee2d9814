"""What is compared of scenarios side by side; changes, ranks and finding stand in compare.eq."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from mantile.equations.ready_columns import COUNTS, NAME
from mantile.equations.roofline import NETWORK
from mantile.equations.tables import OfSubject, Space
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    is_number,
    maximum,
    precedents,
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

HEADLINES = (TTFT, TPOT, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS)
"""Results that the finding counts."""


@dataclass(frozen=True, eq=False)
class Line:
    """What is compared.

    Args:
        key: its name in ids.
        body: of one scenario, in the unit.
        shown_unit: the unit as readers write it, where it differs.
        changes: whether changes against the base are told.
        chart: what its chart is called.
        metric: where it is a headline metric, which says its digits, and which direction is better.
        of: the figure that its row leads to, where that is not the first of the body.
        better: the direction that is, where one scenario can be better than another.
    """

    key: str
    label: str
    unit: str
    body: Node
    shown_unit: str = ""
    changes: bool = True
    chart: str = ""
    metric: Metric | None = None
    of: Named | None = None
    better: Better | None = None

    @property
    def subject(self) -> Named:
        """The figure that its row leads to."""
        if self.of is not None:
            return self.of
        return self.body if isinstance(self.body, Input | Quantity) else precedents(self.body)[0]

    @property
    def identifier(self) -> str:
        """Of what is compared: of a metric the figure that it is worked out as."""
        first = self.subject.id
        return first if self.metric is None or first != self.metric.shown_id else self.metric.id

    def space(self, scenarios: int) -> Space:
        """Where its rows are made."""
        base, lower = f"{self.key}.0", self.better == "lower"
        ratio = f"sum([chart.*]) / {base}"
        features = {"changes": self.changes, "headline": self.metric in HEADLINES}
        facts = {
            "line": self.key,
            "label": self.label,
            "unit": self.unit,
            "chart": self.chart,
            "last": str(scenarios - 1),
            "worse": "+" if lower else "-",
            "first": "min" if lower else "max",
            "gain": f"1 - {ratio}" if lower else f"{ratio} - 1",
            "side": "below" if lower else "above",
        }
        named = {name for name, holds in features.items() if holds} | {self.better or ""}
        return Space(home=f"compare.{self.key}", facts=facts, features=frozenset(named))


@dataclass(frozen=True)
class Comparison:
    """Scenarios side by side: the lines by what they are about, and the rows of compare.eq."""

    sections: Mapping[str, tuple[Line, ...]]
    rows: OfSubject

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines in order."""
        return tuple(line for lines in self.sections.values() for line in lines)


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
    rows, count = graph.rows.fork(), len(names)
    numbers = tuple(_constants("number", range(1, count + 1)))
    rows.know(COUNTS, NAME, *numbers, *_constants("letter", [name[0] for name in names]))
    rows.know(*(name for at, name in enumerate(_constants("name", names)) if at not in ready))
    rows.know_as("compare.places", numbers[-1] if counted is None else counted)
    sections = {
        CONFIGURATION: tuple(_configuration(graph, values, counted is not None)),
        "Memory": tuple(_memory(graph)),
        "Latency": (
            _metric(graph, TTFT),
            _chart(graph, TPOT),
            _metric(graph, E2E),
            _metric(graph, INTERACTIVITY),
        ),
        "Throughput": _throughput(graph),
        "Limits": tuple(_limits(graph)),
        "Cost": tuple(_cost(graph, currency)),
    }
    compared = Comparison(sections, rows.of("compare"))
    spaces = {line: line.space(count) for line in compared.lines}
    for line in spaces:
        rows.know_as(f"body.{line.key}", line.body)
    ranked = {line: space for line, space in spaces.items() if line.better is not None}
    rows.make_in("line", *spaces.values())
    rows.make_in("ranked", *ranked.values())
    rows.make_in("chart", *(space for line, space in ranked.items() if line.chart))
    rows.make_in("scenario", *(_scenario(at, at in ready) for at in range(count)))
    rows.make_in("comparison", Space())
    return compared


def _scenario(number: int, ready: bool) -> Space:
    fits = f"fits.{number}"
    facts = {"n": str(number), "letter": LETTERS[number], "fits": f"number_of({fits})" if ready else fits}
    return Space(facts=facts, features=frozenset({"ready"} if ready else {} if number else {"base"}))


def _constants(kind: str, values: Iterable[str | int]) -> Iterator[Input]:
    """What is said of each scenario and never changes."""
    for scenario, value in enumerate(values):
        yield Input(f"compare.{kind}.{scenario}", kind, "1", value, shared=True, fixed=True)


def _configuration(graph: EstimateGraph, values: Sequence[Mapping[Node, Any]], ready: bool) -> Iterator[Line]:
    """The inputs that say something in any of the scenarios."""
    accelerators = graph.rows["serving.accelerators"]
    yield Line("accelerators", "Accelerators", "accelerator", accelerators, changes=False)
    inputs = graph.inputs.named()
    for name in _CONFIGURATION:
        if name in inputs and (
            name not in _PLAIN or ready or any(scenario[inputs[name]] != _PLAIN[name] for scenario in values)
        ):
            figure = inputs[name]
            yield Line(name, figure.label, figure.unit, figure, changes=False)


def _memory(graph: EstimateGraph) -> Iterator[Line]:
    memory, load, rows = graph.fullest, graph.figures.get("load.state"), graph.rows
    suffix = ", fullest" if len(graph.workers) > 1 else ""
    share = memory["memory.used"] / maximum(1, memory["memory.usable"])
    yield _metric(graph, MEMORY_PER_ACCELERATOR, "memory_used", f"Used per accelerator{suffix}")
    yield Line("memory_share", f"Share of usable memory{suffix}", "1", share, "%", better="lower")
    yield _metric(graph, KV_CAPACITY_SEQUENCES, "capacity_sequences", KV_CAPACITY_SEQUENCES.label)
    yield Line(
        FITS, "Fits, and the plan is possible", "flag", rows["checks.possible"], "yes/no", changes=False
    )
    yield Line("reason", "Feasibility", "1", rows["checks.reason"], changes=False)
    if load is not None:
        yield Line("state", "Load", "1", load, changes=False)


def _throughput(graph: EstimateGraph) -> tuple[Line, ...]:
    metric = OUTPUT_TOKENS_PER_S_PER_ACCELERATOR
    of_one = replace(_chart(graph, metric), label=metric.label)
    return _metric(graph, OUTPUT_TOKENS_PER_S), of_one, _metric(graph, REQUESTS_PER_S)


def _limits(graph: EstimateGraph) -> Iterator[Line]:
    network, possible = graph.decode.parts[NETWORK], graph.rows["checks.possible"] > 0

    def limit(key: str, label: str, of: Quantity, body: Node, shown_unit: str = "") -> Line:
        shown = where(possible, body, NOT_KNOWN)
        return Line(key, label, "1", shown, shown_unit, changes=bool(shown_unit), of=of)

    for phase, of in (("prefill", graph.prefill.bottleneck), ("decode", graph.decode.bottleneck)):
        yield limit(f"{phase}_bottleneck", f"{phase.capitalize()} is limited by", of, of)
    yield _metric(graph, PREFILL_MFU, label="Prefill compute used, MFU")
    yield _metric(graph, DECODE_MBU, label="Decode bandwidth used, MBU")
    share = network / graph.decode.time
    yield limit("decode_network_share", "Network share of decode", network, share, "%")


def _cost(graph: EstimateGraph, currency: Currency) -> Iterator[Line]:

    def money(label: str, metric: Metric, chart: str = "") -> Line:
        figure = metric.of(graph.figures)
        return Line(
            metric.id.rpartition(".")[2],
            label,
            figure.unit,
            as_known(figure, figure, currency.convert(figure)),
            currency.named(figure.unit),
            chart=currency.named(chart),
            metric=metric,
            better=metric.better,
        )

    def price(key: str, label: str, of: Quantity, usd: Node, needed: Node) -> Line:
        known = all_of(graph.checks.of_money.count <= 0, is_number(needed))
        shown = where(known, currency.convert(usd), NOT_KNOWN)
        return Line(key, label, of_one.unit, shown, currency.named(of_one.unit), changes=False, of=of)

    of_one, tokens = graph.rows["break_even.price"], graph.rows["break_even.tokens"]
    per_token = USD_PER_MILLION_OUTPUT_TOKENS
    of_base = in_scenario(per_token.of(graph.figures), 0)
    yield money("Per hour, all accelerators", USD_PER_HOUR)
    yield _metric(graph, POWER)
    yield money("Per million output tokens", per_token, per_token.head)
    yield money("Per month, all accelerators", USD_PER_MONTH)
    yield price("price", "Price of an accelerator per hour", of_one, of_one, of_one)
    yield price(
        "break_even", "Price at which it costs as much as A", tokens, of_base * tokens / MEGA, of_base
    )


def _metric(graph: EstimateGraph, metric: Metric, key: str = "", label: str = "") -> Line:
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
        metric.written_unit,
        metric=metric,
        better=metric.better,
    )


def _chart(graph: EstimateGraph, metric: Metric) -> Line:
    """A headline metric with a chart."""
    return replace(_metric(graph, metric), chart=metric.head[0].upper() + metric.head[1:])
