"""One operation: launch overhead plus the larger of compute and memory time. Every module is such a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mantile.equations.phase import Phase
from mantile.graph.quantity import Input, Node, Quantity, Section, as_node, expression, maximum, where
from mantile.graph.rows import Rows
from mantile.graph.sentence import lowered
from mantile.ir.modules import Module

COMPUTE, MEMORY, NETWORK, OVERHEAD = "compute", "memory", "network", "overhead"


@dataclass(frozen=True)
class Ways:
    """The algorithms of a message.

    Args:
        names: of the algorithms; `latencies` their fixed times, `times` those of the message.
        cheapest: of these times.
    """

    names: tuple[Input, ...]
    latencies: tuple[Quantity, ...]
    times: tuple[Quantity, ...]
    cheapest: Quantity


@dataclass(frozen=True)
class Block:
    """A module's rows in one phase, and the rows other places need.

    `time` is that of the whole pass; the others are of one execution. `reads` are weights and cache it reads.
    `reached` is what its time follows from where a limit binds: the rate, the launch, the time of a message;
    `kernels` that it starts, where they are not one in each layer.
    """

    id: str
    label: str
    section: Section
    time: Quantity
    bound: Quantity
    layer_time: Quantity
    launch: Quantity | None
    compute: Quantity | None
    memory: Quantity | None
    flops: Quantity | None
    bytes: Node | None
    repeats: Node | None
    reads: Node | None = None
    network: bool = False
    module: Module | None = None
    reached: Mapping[str, Quantity] = field(default_factory=dict)
    ways: Ways | None = None
    kernels: Quantity | None = None

    @property
    def group(self) -> str:
        """What it belongs to where times are shown by kind."""
        if self.module is not None:
            return self.module.part
        if not self.network or self.id == "p2p":
            return self.id
        return "all_reduce" if self.id in ("all_reduce", "inner_reduce") else "messages"


@dataclass(frozen=True)
class Work:
    """What one execution of an operation takes on an accelerator.

    Args:
        launch: seconds before the first byte; None where that of another operation covers it.
        flops, rate: FLOPs, and the FLOP/s it reaches. Both or none.
        traffic, bandwidth: bytes moved, and the B/s it reaches. Both or none.
        reads: bytes of weights and cache among the traffic.
    """

    launch: Node | None = None
    flops: Node | None = None
    rate: Node | None = None
    traffic: Node | None = None
    bandwidth: Node | None = None
    reads: Node | None = None


def rows_of(phase: Phase, module: Module) -> Rows:
    """Where the rows of a module in a pass go: first those of its own file, then those of `operation`."""
    return Rows(f"{phase.id}.{module.id}", f", {lowered(module.label)}")


def operation(rows: Rows, module: Module, work: Work, note: str = "") -> Block:
    """The block of one operation.

    Args:
        rows: of the module, with those that lead to its FLOPs and bytes; gets the others.
        module: what it is an operation of; says how often it runs in a pass.
        note: how it is sharded.
    """
    layers, low = module.layers, lowered(module.label)
    flops = traffic = compute = memory = None
    if work.flops is not None:
        flops = rows("flops", "FLOPs", "FLOP", work.flops, called="FLOPs")
    if work.traffic is not None:
        traffic = rows("bytes", "Bytes", "B", work.traffic)
    if flops is not None and work.rate is not None:
        compute = rows("compute_time", "Compute time", "s", flops / work.rate)
    if traffic is not None and work.bandwidth is not None:
        memory = rows("memory_time", "Memory time", "s", traffic / work.bandwidth)
    launch = None if work.launch is None else rows("launch_time", "Launch time", "s", work.launch)
    busy, limit = _busy(rows, compute, memory)
    per_run = "Time per layer" if layers is not None else "Time of one run"
    layer_time = rows("layer_time", per_run, "s", busy if launch is None else launch + busy)
    limited_by = limit if launch is None else where(launch > busy, OVERHEAD, limit)
    bound = rows("bound", "Bound by", "1", as_node(limited_by))
    in_pass = layer_time * layers if layers is not None else layer_time
    time = rows("time", "Time", "s", in_pass, called=f"time of the {low}")
    often = _how_often(layers)
    return Block(
        id=module.id,
        label=module.label,
        section=rows.section(module.label, f"{often} · {note}" if note else often, Section.SUBTOTAL),
        time=time,
        bound=bound,
        layer_time=layer_time,
        launch=launch,
        compute=compute,
        memory=memory,
        flops=flops,
        bytes=traffic,
        repeats=layers,
        reads=work.reads,
        module=module,
        reached=_reached(work),
    )


def _reached(work: Work) -> dict[str, Quantity]:
    """What compute, memory and launch time follow from: the first figure that is named."""
    of = {COMPUTE: (work.rate, "FLOP/s"), MEMORY: (work.bandwidth, "B/s"), OVERHEAD: (work.launch, "s")}
    return {
        limit: next(part for part in expression(node) if isinstance(part, Quantity) and part.unit == unit)
        for limit, (node, unit) in of.items()
        if node is not None
    }


def _busy(rows: Rows, compute: Quantity | None, memory: Quantity | None) -> tuple[Node, Node | str]:
    """The time after launch, and which of compute and memory it is."""
    if compute is None or memory is None:
        single = compute if compute is not None else memory
        assert single is not None, f"{rows.prefix} neither computes nor moves anything"
        return single, COMPUTE if compute is not None else MEMORY
    limit = rows("limit", "Larger of compute and memory", "1", where(compute >= memory, COMPUTE, MEMORY))
    return maximum(compute, memory), limit


def _how_often(layers: Node | None) -> str:
    if not isinstance(layers, Input | Quantity):
        return "once per pass"
    name = layers.name or lowered(layers.label)
    return "in every layer" if name == "layers" else f"in {name}"


def limited(block: Block, limit: str, rest: Node) -> Node | None:
    """What a limit takes of a time without launch overhead: all or none, live; None where it never does."""
    if block.network:
        return rest if limit == NETWORK else None
    if block.compute is not None and block.memory is not None:
        if limit == COMPUTE:
            return where(block.compute >= block.memory, rest, 0)
        return where(block.memory > block.compute, rest, 0) if limit == MEMORY else None
    return rest if limit == (COMPUTE if block.compute is not None else MEMORY) else None
