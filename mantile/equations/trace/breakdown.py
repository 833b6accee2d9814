"""The parts of each headline result, and what each follows from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.display import as_known, converted
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
from mantile.equations.trace.figures import Figures
from mantile.equations.trace.lines import (
    Line,
    Table,
    fixed_text,
    looked,
    looked_up,
    named,
    shown_unit,
)
from mantile.graph.quantity import (
    Named,
    Node,
    all_of,
    as_node,
    defined,
    join,
    where,
)


def over(metric: Metric) -> str:
    """What stands over the parts of a headline result."""
    return f"Parts: {metric.head}"


def over_via(metric: Metric) -> str:
    """The same of one accelerator."""
    return f"Of one accelerator: {metric.head}"


@dataclass(frozen=True)
class Part:
    """A part of a headline result.

    Args:
        figure: the part, or what `body` is made of, which then has a `label`.
        lead: the key of what it follows from.
        via: what stands on the way there.
        binds: whether it is taken in place of the largest part.
        instead: whether it follows from something else, and the key of that.
    """

    figure: Named
    lead: Node
    body: Node | None = None
    label: str = ""
    via: Named | None = None
    binds: Node | None = None
    instead: tuple[Node, Node] | None = None


def _of_pass(of: Pass) -> Node:
    """The key of what binds a pass."""
    return join(f"{of.phase.id} ", of.bottleneck)


def _of_ttft(graph: EstimateGraph, figures: Figures) -> list[Part]:
    """Prompts wait for prefills and for decode steps, or for something that a factor stands for."""
    prefill, decode = _of_pass(graph.prefill), _of_pass(graph.decode)
    factors = graph.prefill_workers.efficiency.factors
    leads = {
        "first_token": as_node(figures.of(factors["first_token"])),
        "first_step": decode,
        "held_back": decode,
        "seat_wait": decode,
        "transfer": as_node(figures.of(graph.prefill_workers.rows["hardware.scale_out_bandwidth"])),
    }
    cold = {"burst_wait": _cold_start(graph, figures)}
    names = [figure.id.rpartition(".")[2] for figure in graph.serving.ttft_parts]
    return [
        Part(figure, leads.get(name, prefill), instead=cold.get(name))
        for figure, name in zip(graph.serving.ttft_parts, names, strict=True)
    ]


def _cold_start(graph: EstimateGraph, figures: Figures) -> tuple[Node, Node]:
    """Whether a cold start takes most of the warm-up burst, and the key of the factor behind most of it."""
    factors = graph.prefill_workers.efficiency.factors
    cold, burst = (graph.figures[f"serving.{name}"] for name in ("cold_start", "burst"))
    key: Node = as_node(figures.of(factors["cold_start"]))
    if "expert_cold_start" in factors:
        of_experts = figures.of(factors["expert_cold_start"])
        key = where(cold > factors["cold_start"] + factors["cold_start"], of_experts, key)
    return cold + cold >= burst, key


def _of_tpot(graph: EstimateGraph) -> list[Part]:
    step, stall = graph.serving.tpot_parts
    return [Part(step, _of_pass(graph.decode)), Part(stall, _of_pass(graph.prefill))]


def _of_throughput(graph: EstimateGraph, ttft: Table, figures: Figures) -> list[Part]:
    """Requests follow each other: what a request takes. At a rate that is served, the rate itself."""
    served = graph.serving
    step, stall = served.tpot_parts
    later = served.e2e - served.ttft
    found = [
        Part(served.ttft, ttft[1]["lead"]),
        Part(step, _of_pass(graph.decode), later * step / served.tpot, "Decode steps of a request"),
        Part(stall, _of_pass(graph.prefill), later * stall / served.tpot, "Prefill stalls of a request"),
    ]
    if "request_rate" in graph.rows.features:
        rate, load = as_node(figures.of(graph.inputs.named()["request_rate"])), graph.rows.of("load")
        carried = all_of(load["open"] > 0, load["utilisation"] <= 1)
        found.append(Part(graph.rows["load.served"], rate, binds=carried))
    return found


def _of_memory(graph: EstimateGraph, figures: Figures) -> list[Part]:
    workers, factors = graph.decode_workers, graph.decode_workers.efficiency.factors
    requests = as_node(figures.of(workers.rows["memory.batch"]))
    return [
        Part(workers.rows["memory.weights"], as_node(figures.of(graph.model.parameters))),
        Part(workers.rows["memory.kv"], requests),
        Part(workers.rows["memory.logits"], requests),
        Part(workers.rows["memory.activations"], as_node(figures.of(workers.rows["memory.step_tokens"]))),
        Part(workers.rows["memory.reserve"], as_node(figures.of(factors["runtime_reserve"]))),
    ]


def _of_power(graph: EstimateGraph, figures: Figures) -> list[Part]:
    return [
        Part(total, as_node(figures.of(workers.rows["hardware.tdp"])), via=building)
        for total, building, workers in zip(
            graph.rows.each("pool", "cost.total_power"),
            graph.rows.each("pool", "cost.building"),
            graph.pools,
            strict=True,
        )
    ]


def _of_cost(graph: EstimateGraph, figures: Figures) -> list[Part]:
    found = []
    for workers, price, hourly, figure in zip(
        graph.pools,
        *(graph.rows.each("pool", f"cost.{name}") for name in ("price", "hourly", "offer_figure")),
        strict=True,
    ):
        begins = f"{workers.prefix}hardware.price_"
        for name, stated in (
            ("cloud", "cloud"),
            ("rental", "rental"),
            ("owned", "purchase"),
            ("own", "owned"),
        ):
            figures.of(workers.rows[f"hardware.price_{stated}"], f"{begins}{name}")
        found.append(Part(hourly, figure, via=price))
    return found


def prices(graph: EstimateGraph, figures: Figures) -> dict[Named, tuple[Node, Node]]:
    """Status and source of the price of each kind of accelerator, by price."""
    return {
        part.via: offered(graph, part.via, figures.table)
        for part in _of_cost(graph, figures)
        if part.via is not None
    }


def offered(graph: EstimateGraph, price: Named, listed: Table) -> tuple[Node, Node]:
    """Status and source of a price: who asks it, where, and on which terms; of one's own how it came there.

    Args:
        listed: the figures of the library in use.
    """
    begins = price.id.removesuffix("price")
    own, provider, region, term = (
        graph.figures[f"{begins}offer_{part}"] for part in ("own", "provider", "region", "term")
    )
    key = graph.figures[f"{begins}offer_figure"]
    asked = join(provider, ", ", region, ", ", term)
    return looked_up(listed, "status", key), where(own > 0, looked_up(listed, "said", key), asked)


def all_parts(
    graph: EstimateGraph, figures: Figures, paths: Mapping[Metric, Table]
) -> Iterator[tuple[Metric, list[Part]]]:
    """The parts of each headline result; those of throughput follow from the path of TTFT."""
    yield TTFT, _of_ttft(graph, figures)
    yield TPOT, _of_tpot(graph)
    yield OUTPUT_TOKENS_PER_S, _of_throughput(graph, paths[TTFT], figures)
    yield MEMORY_PER_ACCELERATOR, _of_memory(graph, figures)
    yield POWER, _of_power(graph, figures)
    yield USD_PER_MILLION_OUTPUT_TOKENS, _of_cost(graph, figures)


def parts(metric: Metric, found: Sequence[Part]) -> tuple[Table, Table]:
    """The parts of a headline result, and what stands on the way to what they follow from."""
    table: list[Line] = []
    via: list[Line] = []
    for number, part in enumerate(found, 1):
        line = f"parts.{metric.attribute}.{number}"
        cells = _shown(line, part.figure, part.body, part.label)
        lead: Node = part.lead
        if part.instead is not None:
            test, key = part.instead
            cells["links"], cells["fixed"] = looked(f"{line}.links", lead), looked(f"{line}.fixed", key)
            lead = where(test, cells["fixed"], cells["links"])
        cells["lead"] = looked(f"{line}.lead", lead)
        if part.binds is not None:
            cells["place"] = defined(f"trace.{line}.place", line, "number", number)
        table.append(Line(cells, part.figure))
        if part.via is not None:
            via.append(Line(_shown(f"via.{metric.attribute}.{number}", part.via), part.via))
    return tuple(table), tuple(via)


_IN_QUOTED = {"s": "ms", "W": "kW"}


def _shown(line: str, figure: Named, body: Node | None = None, label: str = "") -> dict[str, Named]:
    """Value, name and id of a figure."""
    unit = _IN_QUOTED.get(figure.unit, shown_unit(figure.unit))
    value = converted(figure if body is None else body, figure.unit, unit)
    return {
        "value": looked(f"{line}.value", as_known(figure, figure, value)),
        "name": fixed_text(f"{line}.name", named(label or figure.label, unit)),
        "id": fixed_text(f"{line}.id", figure.id),
    }
