"""Where headline results come from: the path from each down to the figure of the library that matters most.

At every step the path takes the part that is largest: of TTFT the largest wait, of a pass what binds it, of
that the module that takes most. So it leads to the rate, launch or message that the module runs at, and to the
figure of the library behind that, with its source. All of it is looked up, and follows every edit.

    id behind "trace"                     function
    -----------------------------------   ----------------------------------
    .METRIC.NUMBER                        path
    .parts.METRIC.NUMBER                  parts
    .limit.NUMBER .module.NUMBER          limits
    .rate.NUMBER                          rates
    .figure.NUMBER                        _Figures
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mantile.equations.display import as_known, converted, in_unit, usual_unit, words
from mantile.equations.efficiency import FactorInUse
from mantile.equations.forward import Pass
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.equations.override import Overridable
from mantile.equations.roofline import Block
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Apply,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    Words,
    all_of,
    as_node,
    choose,
    count_where,
    defined,
    equal,
    index,
    is_number,
    join,
    match,
    maximum,
    number_of,
    percent,
    precedents,
    span,
    text,
    where,
)

LIMITS, MODULES = "What binds a pass", "Module that takes most of it"
RATES, FIGURES = "What modules run at", "Figures of the library in use"
"""What stands over the tables that all paths share."""
NOTHING = "–"
"""In place of a step that a path does not have."""
WIDEST = "global"
"""The profile that has the figure where others have none."""
OWN, OWN_SOURCE = "override", "a figure of one's own: its row says why"
_COUNTS = ("1", "parameter", "request", "token")
_QUOTED = {"FLOP/s": "TFLOP/s", "W": "W"}


@dataclass(frozen=True)
class Line:
    """A line of a path, or of the tables that paths are looked up in.

    Args:
        cells: value; name with unit; id; status; said, who says so; lead, what it follows from: the key of a
            line elsewhere; key; place, of the line that it was looked up in.
        leads_to: the figure whose row a reader may go to; None where it is another after an edit.
        listed: what stands over the table that a step was looked up in.
    """

    cells: Mapping[str, Named]
    leads_to: Named | None = None
    listed: str = ""

    def __getitem__(self, role: str) -> Named:
        return self.cells[role]


Table = tuple[Line, ...]


@dataclass(frozen=True)
class Trace:
    """Paths by headline result, and the tables behind them by what stands over them."""

    paths: Mapping[Metric, Table]
    tables: Mapping[str, Table]

    @property
    def lines(self) -> Iterable[Line]:
        """All of them."""
        return [line for table in (*self.paths.values(), *self.tables.values()) for line in table]


def trace(graph: EstimateGraph) -> Trace:
    """The paths of all headline results."""
    figures = _Figures(graph)
    passes = (graph.prefill, graph.decode)
    reached = rates(graph, passes, figures)
    binding, modules = limits(passes)
    way = _Way(binding, modules, reached, figures)
    paths: dict[Metric, Table] = {}
    tables: dict[str, Table] = {}
    for metric, found in _parts(graph, figures, paths):
        table, via = parts(metric, found)
        paths[metric] = path(graph, metric, table, via, found, way)
        tables[_over(metric)] = table
        if via:
            tables[_over_via(metric)] = via
    return Trace(
        paths=paths,
        tables={
            **tables,
            LIMITS: binding,
            MODULES: modules,
            RATES: reached,
            FIGURES: figures.table,
        },
    )


def _over(metric: Metric) -> str:
    """What stands over the parts of a headline result."""
    return f"Parts: {metric.head}"


def _over_via(metric: Metric) -> str:
    """The same of one accelerator."""
    return f"Of one accelerator: {metric.head}"


def _text(identifier: str, text: str) -> Input:
    return defined(f"trace.{identifier}", identifier, "1", text)


def _quantity(identifier: str, body: Node) -> Quantity:
    return Quantity(f"trace.{identifier}", identifier, "1", body)


def _shown_unit(unit: str) -> str:
    return _QUOTED.get(unit, usual_unit(unit))


def _named(label: str, unit: str) -> str:
    """A label with its unit, unless it counts things."""
    return label if unit in _COUNTS else f"{label}, {unit}"


def _column(table: Sequence[Line], role: str) -> Span:
    return span(line[role] for line in table)


def _looked_up(table: Sequence[Line], role: str, key: Node) -> Node:
    """What stands in the line of a table with a key."""
    return index(_column(table, role), match(key, _column(table, "key")))


# --- figures of the library -------------------------------------------------------------------------------


@dataclass
class _Figures:
    """The figures of the library that paths end in: a line for each, by the id of the figure in use."""

    graph: EstimateGraph
    lines: dict[str, Line] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.overridable: dict[Quantity, tuple[Overridable, Node]] = {}
        self.factors: dict[Quantity, FactorInUse] = {}
        self.by_id: dict[str, Quantity] = {}
        for workers in self.graph.workers:
            for each in workers.overridable():
                for figure, default in zip(each.figures, each.defaults, strict=True):
                    self.overridable[figure] = each, default
            for factor in workers.efficiency.in_use.values():
                self.factors |= dict.fromkeys(factor.by_user.values(), factor)
        self.by_id = {figure.id: figure for figure in self.overridable}
        texts = dict.fromkeys(("key", "value", "name", "id", "status", "said", "place"), NOTHING)
        self.lines[NOTHING] = Line({role: _text(f"figure.0.{role}", text) for role, text in texts.items()})

    @property
    def table(self) -> Table:
        """All lines so far."""
        return tuple(self.lines.values())

    def of(self, figure: Named, key: str = "") -> str:
        """The key of the line of a figure in use, which is made where there is none yet.

        Args:
            key: its id if empty.
        """
        key = key or figure.id
        if key not in self.lines:
            line = f"figure.{len(self.lines)}"
            in_library = isinstance(figure, Quantity) and figure in self.overridable
            self.lines[key] = self._library(line, key, figure) if in_library else self._stated(line, key, figure)
        return key

    def nearest(self, figure: Quantity, unit: str, begins: str) -> Quantity:
        """The nearest figure of the library, with a unit, that a figure follows from."""
        waiting: list[Named] = [figure]
        for other in waiting:
            part = other.id.removeprefix("decode.")
            if isinstance(other, Quantity):
                if other in self.overridable and other.unit == unit and part.startswith(begins):
                    return other
                waiting += precedents(other)
        raise AssertionError(f"{figure.id} follows from no figure of the library in {unit}")

    def _stated(self, line: str, key: str, figure: Named) -> Line:
        """A figure that no profile states: what is asked, or follows from the model."""
        unit, given = _shown_unit(figure.unit), isinstance(figure, Input)
        return Line(
            {
                "key": _text(f"{line}.key", key),
                "value": _quantity(f"{line}.value", converted(figure, figure.unit, unit)),
                "name": _text(f"{line}.name", _named(figure.label, unit)),
                "id": _text(f"{line}.id", figure.id),
                "status": _text(f"{line}.status", "given" if given else "worked out"),
                "said": _text(f"{line}.said", "as asked" if given else "follows from the model and the formats"),
                "place": _text(f"{line}.place", NOTHING),
            },
            figure,
        )

    def _library(self, line: str, key: str, figure: Quantity) -> Line:
        """A figure of a profile, or the override that stands for it."""
        each, default = self.overridable[figure]
        unit = _shown_unit(figure.unit)
        rows, found = self._row(line, figure, default)
        stated = is_number(each.cell)

        def beside(what: str, own: str) -> Node:
            return where(stated, own, index(words(rows, what), found["place"]))

        value = converted(figure, figure.unit, unit)
        if ".price_" in f".{each.id}" or each.id.endswith("tdp"):
            value = where(figure > 0, value, NOT_KNOWN)
        name = beside("quantity", each.cell.label)
        cells: dict[str, Named] = {
            "key": _text(f"{line}.key", key),
            "value": _quantity(f"{line}.value", value),
            "name": _quantity(f"{line}.name", name if unit == "1" else join(name, f", {unit}")),
            "status": _quantity(f"{line}.status", beside("source", OWN)),
            "said": _quantity(f"{line}.said", beside("how it is worked out", OWN_SOURCE)),
        }
        if "id" not in found:
            cells["id"] = _quantity(f"{line}.id", beside("id", each.cell.id))
        return Line(cells | found, figure)

    def _row(
        self, line: str, figure: Quantity, default: Node
    ) -> tuple[tuple[Input, ...], dict[str, Named]]:
        """Rows of the library, and the place of the one in use among them; of some its id comes first."""
        factor = self.factors.get(figure)
        if factor is not None and factor.kind.condition is not None:
            return self._conditional(line, factor, figure)
        rows, place = _rows_of(default)
        return rows, {"place": _quantity(f"{line}.place", place)}

    def _conditional(
        self, line: str, factor: FactorInUse, figure: Quantity
    ) -> tuple[tuple[Input, ...], dict[str, Named]]:
        """The same of a factor that differs by condition: each condition chooses among profiles of its own."""
        user = next(user for user, other in factor.by_user.items() if other is figure)
        place = factor.places[user]
        assert place is not None
        named = Words(factor.of_condition, "source", tuple(each.source for each in factor.of_condition))
        choice = _quantity(f"{line}.part", index(named, place))
        in_use = [table.choice.profile for table in factor.tables if table.choice is not None]
        profiles = list({profile.id: profile for profile in self._profiles(in_use)}.values())
        ids = Words(tuple(profiles), "id", tuple(profile.id for profile in profiles))
        there = _quantity(f"{line}.fixed", count_where(ids, choice))
        found = index(span(profiles), match(choice, ids))
        profile = _quantity(f"{line}.lead", where(there > 0, found, WIDEST))
        condition: Node = index(span(factor.conditions), place)
        ranks = factor.kind.condition == "ranks"
        mark: tuple[Node | str, ...] = (".tp", text(condition, "0")) if ranks else (".", condition)
        identifier = _quantity(f"{line}.id", join(f"efficiency.{factor.kind.name}.", profile, *mark))
        rows = tuple(row for table in factor.tables for row in table.figures.values())
        return rows, {
            "part": choice,
            "fixed": there,
            "lead": profile,
            "id": identifier,
            "place": _quantity(f"{line}.place", match(identifier, words(rows, "id"))),
        }

    def _profiles(self, some: Sequence[Quantity]) -> tuple[Quantity, ...]:
        """The profiles in use of all choices of the workers that some are of."""
        of_all = [tuple(choice.profile for choice in workers.efficiency.choices) for workers in self.graph.workers]
        return next((profiles for profiles in of_all if set(some) <= set(profiles)), ())


def _rows_of(default: Node) -> tuple[tuple[Input, ...], Node]:
    """The rows of the library that a figure is looked up in, and the place of the one in use."""
    if isinstance(default, Input):
        return (default,), as_node(1)
    assert isinstance(default, Apply) and default.operation == "index"
    rows, place = default.arguments
    assert isinstance(rows, Span)
    return tuple(row for row in rows.members if isinstance(row, Input)), place


# --- passes -----------------------------------------------------------------------------------------------


def limits(passes: Sequence[Pass]) -> tuple[Table, Table]:
    """What binds each pass and how long, and of each the module that takes most of it."""
    binding: list[Line] = []
    largest: list[Line] = []
    for of in passes:
        for limit, shares in of.shares.items():
            number, time = len(binding) + 1, of.parts[limit]
            block, most = span(shares.figures), maximum(span(shares.figures))
            binding.append(
                Line(
                    {
                        "key": _text(f"limit.{number}.key", f"{of.phase.id} {limit}"),
                        "value": _quantity(f"limit.{number}.value", converted(time, "s", "ms")),
                        "name": _text(f"limit.{number}.name", _named(time.label, "ms")),
                        "id": _text(f"limit.{number}.id", time.id),
                    },
                    time,
                )
            )

            def beside(texts: Sequence[str], what: str, block: Span = block, most: Node = most) -> Node:
                return index(Words(block.members, what, tuple(texts)), match(most, block))

            name = beside([figure.label for figure in shares.figures], "quantity")
            ids = [figure.id for figure in shares.figures]
            largest.append(
                Line(
                    {
                        "value": _quantity(f"module.{number}.value", converted(most, "s", "ms")),
                        "name": _quantity(f"module.{number}.name", join(name, ", ms")),
                        "id": _quantity(f"module.{number}.id", beside(ids, "id")),
                        "lead": _quantity(
                            f"module.{number}.lead",
                            beside([figure.source for figure in shares.figures], "source"),
                        ),
                    },
                    shares.figures[0],
                )
            )
    return tuple(binding), tuple(largest)


def rates(graph: EstimateGraph, passes: Sequence[Pass], figures: _Figures) -> Table:
    """What modules run at where a limit binds them: a rate, a launch, the time of a message."""
    roles = ("key", "value", "name", "id", "lead", "status")
    nothing = {role: _text(f"rate.0.{role}", NOTHING) for role in roles}
    lines = {NOTHING: Line(nothing)}
    peaks = _peaks(graph)
    for of in passes:
        workers = graph.decode_workers if of.phase.decode else graph.prefill_workers
        reached = [(figure, block) for block in of.blocks for figure in block.reached.values()]
        for figure, block in (*reached, (workers.efficiency["step_host"], None)):
            if figure.id in lines:
                continue
            line, unit = f"rate.{len(lines)}", _shown_unit(figure.unit)
            cells: dict[str, Named] = {
                "key": _text(f"{line}.key", figure.id),
                "value": _quantity(f"{line}.value", converted(figure, figure.unit, unit)),
                "name": _text(f"{line}.name", _named(figure.label, unit)),
                "id": _text(f"{line}.id", figure.id),
            }
            if block is not None and block.network:
                cells |= _of_message(line, block, workers, figures)
            elif figure.unit == "FLOP/s":
                peak, key = _of_peak(figure, peaks, figures)
                cells |= {"lead": _quantity(f"{line}.lead", key), "status": _share(line, figure, peak)}
            else:
                begins = "hardware." if figure.unit == "B/s" else "efficiency."
                peak = figures.nearest(figure, figure.unit, begins)
                cells |= {"lead": _text(f"{line}.lead", figures.of(peak)), "status": _share(line, figure, peak)}
            lines[figure.id] = Line(cells, figure)
    return tuple(lines.values())


def _share(line: str, figure: Quantity, peak: Quantity) -> Quantity:
    """What a rate is against the figure that it follows from."""
    return _quantity(f"{line}.status", join(percent(figure / peak, 0), " of the figure below"))


_Peaks = Mapping[Quantity, tuple[Node, Workers]]
"""Peaks that products run at, each with the name by which the library states it."""


def _peaks(graph: EstimateGraph) -> _Peaks:
    peaks: dict[Quantity, tuple[Node, Workers]] = {}
    for workers in graph.workers:
        formats = workers.formats
        peaks.setdefault(formats.sixteen_peak, (formats.sixteen_format, workers))
        for kind in formats.classes.values():
            of = kind.peak
            narrow = where(of.value <= of.other_value, of.key, of.other_key)  # the smaller of both counts
            peaks.setdefault(kind.linear_peak, (choose(1 + kind.low_precision, of.wide, narrow), workers))
    return peaks


def _of_peak(figure: Quantity, peaks: _Peaks, figures: _Figures) -> tuple[Quantity, Node]:
    """The nearest peak that a rate follows from, and its key."""
    waiting: list[Named] = [figure]
    for other in waiting:
        if isinstance(other, Quantity) and other in peaks:
            name, workers = peaks[other]
            keys = [figures.of(peak) for peak in workers.hardware.peaks.values()]
            return other, join(keys[0].removesuffix(next(iter(workers.hardware.peaks))), name)
        waiting += precedents(other) if isinstance(other, Quantity) else ()
    raise AssertionError(f"{figure.id} follows from no peak")


def _of_message(line: str, block: Block, workers: Workers, figures: _Figures) -> dict[str, Named]:
    """The key of the figure behind a message: a fixed time, or the links where bytes take longer."""
    hardware, network = workers.hardware, workers.network
    inside, outside = figures.of(hardware.link_bandwidth), figures.of(hardware.scale_out_bandwidth)
    begins = inside.removesuffix("hardware.link_bandwidth")
    ways = block.ways
    if ways is None:
        assert block.bytes is not None
        place = _quantity(f"{line}.place", 1 + network.p2p_crosses)
        over = _quantity(f"{line}.part", network.p2p_latency - block.bytes * network.p2p_per_byte)
        factors = [figures.of(workers.efficiency.factors[name]) for name in ("p2p_latency", "network_latency")]
        fixed = choose(place, *factors)
        out: Node = network.p2p_crosses > 0
    else:
        place = _quantity(f"{line}.place", match(ways.cheapest, span(ways.times)))
        latency = number_of(index(span(ways.latencies), place))
        over = _quantity(f"{line}.part", latency + latency - number_of(ways.cheapest))
        for name in ways.names:
            figures.of(figures.by_id[f"{begins}{name.source}"])
        fixed = join(begins, index(words(ways.names, "source"), place))
        out = equal(index(span(ways.names), place), "hierarchical")
    links = _quantity(f"{line}.links", where(out, outside, inside))
    of_start = _quantity(f"{line}.fixed", fixed)
    return {
        "place": place,
        "part": over,
        "links": links,
        "fixed": of_start,
        "lead": _quantity(f"{line}.lead", where(over >= 0, of_start, links)),
        "status": _text(f"{line}.status", NOTHING),
    }


# --- parts of the headline results ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A part of a headline result.

    Args:
        figure: the part, or what `body` is made of, which then has a `label`.
        lead: the key of what it follows from.
        via: what stands on the way there.
        binds: whether it is taken in place of the largest part.
    """

    figure: Named
    lead: Node
    body: Node | None = None
    label: str = ""
    via: Named | None = None
    binds: Node | None = None


def _of_pass(of: Pass) -> Node:
    """The key of what binds a pass."""
    return join(f"{of.phase.id} ", of.bottleneck)


def _of_ttft(graph: EstimateGraph, figures: _Figures) -> list[_Part]:
    """Prompts wait for prefills and for decode steps, or for something that a factor stands for."""
    prefill, decode = _of_pass(graph.prefill), _of_pass(graph.decode)
    factors = graph.prefill_workers.efficiency.factors
    leads = {
        "first_token": as_node(figures.of(factors["first_token"])),
        "first_step": decode,
        "held_back": decode,
        "seat_wait": decode,
        "transfer": as_node(figures.of(graph.prefill_workers.hardware.scale_out_bandwidth)),
        "burst_wait": _of_burst(graph, figures),
    }
    return [
        _Part(figure, leads.get(figure.id.rpartition(".")[2], prefill)) for figure in graph.serving.ttft_parts
    ]


def _of_burst(graph: EstimateGraph, figures: _Figures) -> Node:
    """Of the warm-up burst the prefills, or what a cold start takes where that is more."""
    factors = graph.prefill_workers.efficiency.factors
    cold, burst = (graph.figures[f"serving.{name}"] for name in ("cold_start", "burst"))
    keys = [as_node(figures.of(factors["cold_start"]))]
    slow = cold + cold >= burst
    of_experts: Node = as_node(0)
    if "expert_cold_start" in factors:
        keys.append(as_node(figures.of(factors["expert_cold_start"])))
        of_experts = where(all_of(slow, cold > factors["cold_start"] + factors["cold_start"]), 1, 0)
    return choose(1 + where(slow, 1, 0) + of_experts, _of_pass(graph.prefill), *keys)


def _of_tpot(graph: EstimateGraph) -> list[_Part]:
    step, stall = graph.serving.tpot_parts
    return [_Part(step, _of_pass(graph.decode)), _Part(stall, _of_pass(graph.prefill))]


def _of_throughput(graph: EstimateGraph, ttft: Table, figures: _Figures) -> list[_Part]:
    """Requests follow each other: what a request takes. At a rate that is served, the rate itself."""
    served, load = graph.serving, graph.serving.load
    step, stall = served.tpot_parts
    later = served.e2e - served.ttft
    found = [
        _Part(served.ttft, ttft[1]["lead"]),
        _Part(step, _of_pass(graph.decode), later * step / served.tpot, "Decode steps of a request"),
        _Part(stall, _of_pass(graph.prefill), later * stall / served.tpot, "Prefill stalls of a request"),
    ]
    if load is not None:
        rate = graph.inputs.named()["request_rate"]
        found.append(_Part(load.served, as_node(figures.of(rate)), binds=all_of(load.open > 0, load.load <= 1)))
    return found


def _of_memory(graph: EstimateGraph, figures: _Figures) -> list[_Part]:
    memory, factors = graph.decode_workers.memory, graph.decode_workers.efficiency.factors
    requests = as_node(figures.of(memory.batch))
    return [
        _Part(memory.weights, as_node(figures.of(graph.model.parameters))),
        _Part(memory.kv, requests),
        _Part(memory.logits, requests),
        _Part(memory.activations, as_node(figures.of(memory.step_tokens))),
        _Part(memory.reserve, as_node(figures.of(factors["runtime_reserve"]))),
    ]


def _of_power(graph: EstimateGraph, figures: _Figures) -> list[_Part]:
    return [
        _Part(of.total, as_node(figures.of(workers.hardware.tdp)), via=of.building)
        for of, workers in zip(graph.cost.accelerators, graph.workers, strict=True)
    ]


def _of_cost(graph: EstimateGraph, figures: _Figures) -> list[_Part]:
    found = []
    for of, workers in zip(graph.cost.accelerators, graph.workers, strict=True):
        hardware, basis = workers.hardware, workers.inputs.price_basis
        begins = hardware.prices["purchase"].id.removesuffix("purchase")
        for name, price in (("cloud", "cloud"), ("rental", "rental"), ("owned", "purchase"), ("own", "owned")):
            figures.of(hardware.prices[price], f"{begins}{name}")
        own = all_of(equal(basis, "owned"), hardware.owned_stated > 0)
        found.append(_Part(of.hourly, where(own, f"{begins}own", join(begins, basis)), via=of.price))
    return found


def _parts(
    graph: EstimateGraph, figures: _Figures, paths: Mapping[Metric, Table]
) -> Iterator[tuple[Metric, list[_Part]]]:
    """The parts of each headline result; those of throughput follow from the path of TTFT."""
    yield TTFT, _of_ttft(graph, figures)
    yield TPOT, _of_tpot(graph)
    yield OUTPUT_TOKENS_PER_S, _of_throughput(graph, paths[TTFT], figures)
    yield MEMORY_PER_ACCELERATOR, _of_memory(graph, figures)
    yield POWER, _of_power(graph, figures)
    yield USD_PER_MILLION_OUTPUT_TOKENS, _of_cost(graph, figures)


def parts(metric: Metric, found: Sequence[_Part]) -> tuple[Table, Table]:
    """The parts of a headline result, and what stands on the way to what they follow from."""
    table: list[Line] = []
    via: list[Line] = []
    for number, part in enumerate(found, 1):
        line = f"parts.{metric.attribute}.{number}"
        cells = _shown(line, part.figure, part.body, part.label)
        cells["lead"] = _quantity(f"{line}.lead", part.lead)
        if part.binds is not None:
            cells["place"] = defined(f"trace.{line}.place", line, "number", number)
        table.append(Line(cells, part.figure))
        if part.via is not None:
            via.append(Line(_shown(f"via.{metric.attribute}.{number}", part.via), part.via))
    return tuple(table), tuple(via)


_IN_QUOTED = {"s": "ms", "W": "kW"}


def _shown(line: str, figure: Named, body: Node | None = None, label: str = "") -> dict[str, Named]:
    """Value, name and id of a figure."""
    unit = _IN_QUOTED.get(figure.unit, _shown_unit(figure.unit))
    value = converted(figure if body is None else body, figure.unit, unit)
    return {
        "value": _quantity(f"{line}.value", as_known(figure, figure, value)),
        "name": _text(f"{line}.name", _named(label or figure.label, unit)),
        "id": _text(f"{line}.id", figure.id),
    }


# --- paths ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """The tables that paths are looked up in."""

    limits: Table
    modules: Table
    rates: Table
    figures: _Figures


_SHOWN = ("value", "name", "id")
_SAID = ("status", "said")


def path(
    graph: EstimateGraph, metric: Metric, table: Table, via: Table, found: Sequence[_Part], way: _Way
) -> Table:
    """The path of a headline result: a line for each step, itself first."""
    figure = metric.of(graph.figures)
    line = f"{metric.attribute}"
    unit = metric.display_unit
    start = Line(
        {
            "value": _quantity(f"{line}.0.value", in_unit(figure, unit)),
            "name": _text(f"{line}.0.name", metric.head),
            "id": _text(f"{line}.0.id", figure.id),
        },
        figure,
    )
    known = is_number(start["value"])
    place = _quantity(f"{line}.1.place", _largest(table, found, known))

    def step(number: int, roles: Sequence[str], body: Callable[[str], Node]) -> dict[str, Named]:
        return {role: _quantity(f"{line}.{number}.{role}", body(role)) for role in roles}

    first = step(
        1, (*_SHOWN, "lead"), lambda role: where(known, index(_column(table, role), place), NOTHING)
    )
    lines = [start, Line(first | {"place": place}, listed=_over(metric))]
    key = first["lead"]
    if via:
        lines.append(
            Line(
                step(2, _SHOWN, lambda role: where(known, index(_column(via, role), place), NOTHING)),
                listed=_over_via(metric),
            )
        )
    elif metric in (TTFT, TPOT, OUTPUT_TOKENS_PER_S):
        lines += _through_pass(step, line, key, way)
        key = lines[-1]["lead"]
    last = step(
        len(lines), (*_SHOWN, *_SAID), lambda role: _looked_up(way.figures.table, role, key)
    )
    return (*lines, Line(last, listed=FIGURES))


def _largest(table: Table, found: Sequence[_Part], known: Node) -> Node:
    """The place of the largest part; the last, which is none of them, where that binds."""
    last = found[-1]
    values = span(line["value"] for line, part in zip(table, found, strict=True) if part.binds is None)
    place = match(maximum(values), values)
    if last.binds is None:
        return where(known, place, 1)
    return choose(1 + where(last.binds, 1, 0), place, table[-1]["place"])


def _through_pass(
    step: Callable[[int, Sequence[str], Callable[[str], Node]], dict[str, Named]],
    line: str,
    key: Named,
    way: _Way,
) -> list[Line]:
    """What binds the pass that a part follows from, the module that takes most, and what that runs at.

    Dashes where the part follows from a figure of the library at once.
    """
    keys = _column(way.limits, "key")
    place = _quantity(f"{line}.2.place", where(is_number(match(key, keys)), match(key, keys), 0))

    def of(table: Table) -> Callable[[str], Node]:
        return lambda role: where(place > 0, index(_column(table, role), place), NOTHING)

    module = step(3, (*_SHOWN, "lead"), of(way.modules))
    rate = step(4, (*_SHOWN, "status"), lambda role: _looked_up(way.rates, role, module["lead"]))
    found = _looked_up(way.rates, "lead", module["lead"])
    rate["lead"] = _quantity(f"{line}.4.lead", where(place > 0, found, key))
    return [
        Line(step(2, _SHOWN, of(way.limits)) | {"place": place}, listed=LIMITS),
        Line(module, listed=MODULES),
        Line(rate, listed=RATES),
    ]
