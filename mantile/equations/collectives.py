"""Messages between ranks: all-reduces under tensor parallelism, point-to-point between pipeline stages."""

from __future__ import annotations

from mantile.equations.constants import RESULT_BYTES, RING_PHASES
from mantile.equations.efficiency import Efficiency
from mantile.equations.roofline import NETWORK, Block, Phase
from mantile.equations.workload import Workload
from mantile.graph.quantity import Node, Quantity, Row, Section, added, as_node, where
from mantile.ir.modules import ModelGraph, Module, Product, Small


def all_reduce(phase: Phase, inputs: Workload, efficiency: Efficiency, ir: ModelGraph) -> Block:
    """Sum of partial results over the TP ranks: after every mixer and FFN, and after the embedding.

    latency + 2(n-1)/n x bytes / bandwidth; nothing on one rank.
    """
    tp = inputs.tp

    def row(name: str, title: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"{phase.id}.all_reduce.{name}", f"{title}, all-reduce", unit, body, note=note,
                        name=title.lower())  # fmt: skip

    message = row("message_bytes", "Message bytes", "B", phase.tokens * ir.facts["hidden_size"] * RESULT_BYTES)
    factor = row("ring_factor", "Share of the message each rank sends", "1", RING_PHASES * (tp - 1) / tp)
    latency = row("latency", "Latency", "s", where(tp > 1, efficiency["all_reduce_time"], 0))
    transfer = row("transfer_time", "Transfer time", "s", factor * message / efficiency["all_reduce_bandwidth"])
    one = row("layer_time", "Time of one", "s", latency + transfer)
    counted = [module.layers for module in sums_after(ir) if module.layers is not None]
    often = [added([layers] * counted.count(layers)) for layers in dict.fromkeys(counted)]
    count = row("count", "Number in a pass", "1", added([*often, as_node(1)]), note="one per mixer and FFN, and one after the embedding")
    bound = row("bound", "Bound by", "1", as_node(NETWORK), note="the network")
    time = row("time", "Time", "s", one * count)
    rows: tuple[Row, ...] = (message, factor, latency, transfer, one, count, bound, time)
    return Block("all_reduce", "All-reduce",
                 Section("All-reduce", rows, "after mixer and FFN, over the TP ranks", Section.SUBTOTAL), time, bound, one,
                 None, None, None, None, message, count, network=True)  # fmt: skip


def sums_after(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules at the end of a mixer or FFN whose result is summed over the ranks."""
    inside = sums_inside(ir)
    return tuple(module for module in ir.modules if module.reduces and module not in inside)


def sums_inside(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules in the middle of a mixer that need a sum over the ranks: norms over all heads, products from split channels."""
    hidden = ir.facts["hidden_size"]
    return tuple(
        module for module in ir.modules
        if (isinstance(module.operation, Small) and module.operation.wide)
        or (isinstance(module.operation, Product) and module.reduces and module.operation.outputs is not hidden)
    )  # fmt: skip


def inner_reduce(phase: Phase, inputs: Workload, efficiency: Efficiency, ir: ModelGraph) -> Block | None:
    """All-reduces inside mixers: of a figure per token for a norm, whose bytes count as nothing, or of a product's few channels."""
    modules = sums_inside(ir)
    if not modules:
        return None
    tp = inputs.tp

    def row(name: str, title: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"{phase.id}.inner_reduce.{name}", f"{title}, all-reduce inside mixers", unit, body, note=note,
                        name=title.lower())  # fmt: skip

    widths = list(dict.fromkeys(module.operation.outputs for module in modules if isinstance(module.operation, Product)))
    assert len(widths) < 2, "one kind of mixer only sums a product inside"
    rows: list[Row] = []
    time_of_one: Node = where(tp > 1, efficiency["all_reduce_time"], 0)
    if widths:
        latency = row("latency", "Latency", "s", time_of_one)
        message = row("message_bytes", "Message bytes", "B", phase.tokens * widths[0] * RESULT_BYTES)
        transfer = row("transfer_time", "Transfer time", "s", RING_PHASES * (tp - 1) / tp * message / efficiency["all_reduce_bandwidth"])
        rows += [latency, message, transfer]
        time_of_one = latency + transfer
    one = row("layer_time", "Time of one", "s", time_of_one)
    count = row("count", "Number in a pass", "1", added([module.layers for module in modules if module.layers is not None]),
                note="one per layer with such a norm or product")  # fmt: skip
    bound = row("bound", "Bound by", "1", as_node(NETWORK), note="the network")
    time = row("time", "Time", "s", one * count)
    rows += [one, count, bound, time]
    return Block("inner_reduce", "All-reduce inside mixers",
                 Section("All-reduce inside mixers", tuple(rows), "over the TP ranks", Section.SUBTOTAL), time, bound, one,
                 None, None, None, None, None, count, network=True)  # fmt: skip


def point_to_point(phase: Phase, inputs: Workload, efficiency: Efficiency, ir: ModelGraph) -> Block:
    """Activations handed from stage to stage of the pipeline; nothing with one stage."""

    def row(name: str, title: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"{phase.id}.p2p.{name}", f"{title}, stage to stage", unit, body, note=note,
                        name=title.lower())  # fmt: skip

    message = row("message_bytes", "Message bytes", "B", phase.tokens * ir.facts["hidden_size"] * RESULT_BYTES)
    one = row("layer_time", "Time of one", "s",
              efficiency["p2p_latency"] + message / efficiency["p2p_bytes"])  # fmt: skip
    count = row("count", "Number in a pass", "1", inputs.pp - 1)
    bound = row("bound", "Bound by", "1", as_node(NETWORK), note="the network")
    time = row("time", "Time", "s", one * count)
    rows: tuple[Row, ...] = (message, one, count, bound, time)
    return Block("p2p", "Stage to stage", Section("Stage to stage", rows, "between pipeline stages", Section.SUBTOTAL), time,
                 bound, one, None, None, None, None, message, count, network=True)  # fmt: skip
