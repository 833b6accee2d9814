"""One operation: launch overhead plus the larger of compute time and memory time. Every module is a block of this form."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Input, Node, Quantity, Row, Section, maximum, where

COMPUTE, MEMORY, NETWORK, OVERHEAD = "compute", "memory", "network", "overhead"


@dataclass(frozen=True)
class Phase:
    """A forward pass: prefill or decode.

    Args:
        id: prefix of its quantities.
        requests: requests in the pass, per replica and pipeline stage.
        tokens: tokens that enter the pass.
        context: mean number of tokens a token attends to, per request.
        kv_context: tokens of the KV cache read per request; None where keys are still on chip (prefill).
    """

    id: str
    requests: Quantity
    tokens: Quantity
    context: Quantity
    decode: bool


@dataclass(frozen=True)
class Block:
    """A module's rows in one phase, and the rows other places need. Times are those of the whole pass."""

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
    bytes: Quantity | None
    repeats: Node | None
    per_layer: bool
    network: bool = False


def limited(block: Block, limit: str, rest: Node) -> Node | None:
    """What of a time without launch overhead a limit accounts for: all of it or none, live; None where it never does."""
    if block.network:
        return rest if limit == NETWORK else None
    if block.compute is not None and block.memory is not None:
        if limit == COMPUTE:
            return where(block.compute >= block.memory, rest, 0)
        return where(block.memory > block.compute, rest, 0) if limit == MEMORY else None
    return rest if limit == (COMPUTE if block.compute is not None else MEMORY) else None


def operation(
    phase: Phase,
    identifier: str,
    label: str,
    *,
    launch: Node,
    flops: Node | None = None,
    rate: Node | None = None,
    traffic: Node | None = None,
    bandwidth: Node | None = None,
    layers: Input | None,
    setup: tuple[Row, ...] = (),
    note: str = "",
) -> Block:
    """A block of rows for one operation.

    Args:
        launch: seconds before the first byte.
        flops, rate: FLOPs of one execution per accelerator, and the FLOP/s it reaches. Both or none.
        traffic, bandwidth: bytes moved by one execution per accelerator, and the B/s it reaches. Both or none.
        layers: how often it runs in a pass; None for once.
        setup: rows to show first.
        note: how it is sharded.
    """
    prefix = f"{phase.id}.{identifier}"
    low = _lower(label)

    def row(name: str, title: str, unit: str, body: Node, note: str = "", called: str = "") -> Quantity:
        return Quantity(f"{prefix}.{name}", f"{title}, {low}", unit, body, note=note, name=called or _lower(title))

    rows: list[Row] = list(setup)
    flops_row = bytes_row = compute = memory = None
    if flops is not None and rate is not None:
        flops_row = row("flops", "FLOPs", "FLOP", flops, called="FLOPs")
        compute = row("compute_time", "Compute time", "s", flops_row / rate)
        rows += [flops_row]
    if traffic is not None and bandwidth is not None:
        bytes_row = row("bytes", "Bytes", "B", traffic)
        memory = row("memory_time", "Memory time", "s", bytes_row / bandwidth)
        rows += [bytes_row]
    rows += [time for time in (compute, memory) if time is not None]
    overhead = row("launch_time", "Launch time", "s", launch)
    rows.append(overhead)
    if compute is not None and memory is not None:
        busy: Node = maximum(compute, memory)
        larger = row("limit", "Larger of compute and memory", "1", where(compute >= memory, COMPUTE, MEMORY),
                     note="which of the two times is larger")  # fmt: skip
        rows.append(larger)
        name: Node | str = larger
    else:
        single = compute if compute is not None else memory
        assert single is not None, f"{prefix} neither computes nor moves anything"
        busy, name = single, COMPUTE if compute is not None else MEMORY
    layer_time = row("layer_time", "Time per layer" if layers is not None else "Time of one run", "s", overhead + busy,
                     called="time per layer" if layers is not None else "time of one run")  # fmt: skip
    bound = row("bound", "Bound by", "1", where(overhead > busy, OVERHEAD, name),
                note="the largest of launch, compute and memory time")  # fmt: skip
    time = row("time", "Time", "s", layer_time * layers if layers is not None else layer_time)
    rows += [layer_time, bound, time]
    title = "once per pass" if layers is None else "in every layer"
    section = Section(label, tuple(rows), f"{title} · {note}" if note else title, Section.SUBTOTAL)
    return Block(identifier, label, section, time, bound, layer_time, overhead, compute, memory, flops_row, bytes_row,
                 layers, layers is not None)  # fmt: skip


def _lower(label: str) -> str:
    head = label.split(" ", 1)[0]
    return label[0].lower() + label[1:] if head[1:].islower() or head[1:] == "" else label
