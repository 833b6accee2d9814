"""Messages between ranks: all-reduce under tensor parallelism, point-to-point between pipeline stages."""

from __future__ import annotations

from mantile.equations.constants import RESULT_BYTES, RING_PHASES
from mantile.equations.efficiency import Efficiency
from mantile.equations.roofline import NETWORK, Block, Phase
from mantile.equations.workload import Workload
from mantile.graph.quantity import Quantity, Row, Section, added, as_node, where
from mantile.ir.modules import ModelGraph, Small


def all_reduce(phase: Phase, inputs: Workload, efficiency: Efficiency, ir: ModelGraph) -> Block:
    """Sum of partial results over the TP ranks, after every mixer and FFN and after the embedding.

    latency + 2(n-1)/n x bytes / bandwidth; nothing on one rank. A norm over all query heads sums one figure more.
    """
    tp = inputs.tp

    def row(name: str, title: str, unit: str, body: object, note: str = "") -> Quantity:
        return Quantity(f"{phase.id}.all_reduce.{name}", f"{title}, all-reduce", unit, body, note=note,  # type: ignore[arg-type]
                        name=title.lower())  # fmt: skip

    message = row("message_bytes", "Message bytes", "B", phase.tokens * ir.facts["hidden_size"] * RESULT_BYTES)
    factor = row("ring_factor", "Share of the message each rank sends", "1", RING_PHASES * (tp - 1) / tp)
    latency = row("latency", "Latency", "s", where(tp > 1, efficiency["all_reduce_time"], 0))
    transfer = row("transfer_time", "Transfer time", "s", factor * message / efficiency["all_reduce_bandwidth"])
    one = row("layer_time", "Time of one", "s", latency + transfer)
    count = row("count", "Number in a pass", "1", ir.blocks + 1, note="one per mixer and FFN, and one after the embedding")
    wide = [module.layers for module in ir.modules if isinstance(module.operation, Small) and module.operation.wide and module.layers is not None]
    small = [row("small_count", "Sums of a single figure", "1", added(wide), note="one per norm over all query heads")] if wide else []
    bound = row("bound", "Bound by", "1", as_node(NETWORK), note="the network")
    time = row("time", "Time", "s", one * count + latency * small[0] if small else one * count)
    rows: tuple[Row, ...] = (message, factor, latency, transfer, one, count, *small, bound, time)
    return Block("all_reduce", "All-reduce",
                 Section("All-reduce", rows, "after mixer and FFN, over the TP ranks", Section.SUBTOTAL), time, bound, one,
                 None, None, None, None, message, count, network=True)  # fmt: skip


def point_to_point(phase: Phase, inputs: Workload, efficiency: Efficiency, ir: ModelGraph) -> Block:
    """Activations handed from stage to stage of the pipeline; nothing with one stage."""

    def row(name: str, title: str, unit: str, body: object, note: str = "") -> Quantity:
        return Quantity(f"{phase.id}.p2p.{name}", f"{title}, stage to stage", unit, body, note=note,  # type: ignore[arg-type]
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
