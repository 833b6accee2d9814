"""One operation: launch overhead plus the larger of compute time and memory time. Every module is a block of this form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mantile.equations.plan import Scope, scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Row, Section, maximum, where
from mantile.ir.modules import FULL, AttentionSpan, Elementwise, Indexer, ModelGraph, Module

COMPUTE, MEMORY, NETWORK, OVERHEAD = "compute", "memory", "network", "overhead"


@dataclass(frozen=True)
class Phase:
    """A forward pass: prefill or decode.

    Args:
        id: prefix of its quantities.
        requests: requests in the pass of a replica.
        tokens: tokens that enter the pass, of all attention groups.
        rank_requests: requests of the busiest attention group.
        scoped: tokens that a rank works on, by the ranks a module is spread over.
        norm_tokens: the same of a norm between mixer and FFN.
        contexts: mean number of tokens a token attends to, per request, for each reach of the model's attention.
        decode: keys and values come from the cache; in prefill they are still on chip.
        coverage: share of a layer's experts that some token goes through; None in a model without experts.
    """

    id: str
    requests: Quantity
    tokens: Quantity
    rank_requests: Quantity
    scoped: Mapping[Scope, Quantity]
    norm_tokens: Quantity
    contexts: Mapping[AttentionSpan, Quantity]
    decode: bool
    coverage: Quantity | None = None

    @property
    def rank_tokens(self) -> Quantity:
        """Tokens that a rank of an attention group works on."""
        return self.scoped["attention"]

    def tokens_of(self, module: Module) -> Quantity:
        """Tokens that a rank works on in a module."""
        if isinstance(module.operation, Elementwise) and module.operation.kind == "norm":
            return self.norm_tokens
        return self.scoped[scope(module)]


@dataclass(frozen=True)
class Block:
    """A module's rows in one phase, and the rows other places need.

    `time` is that of the whole pass; the others are of one execution. `reads` are weights and cache it reads.
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

    @property
    def group(self) -> str:
        """What it belongs to where times are shown by kind."""
        if self.module is not None:
            return self.module.part
        if not self.network or self.id == "p2p":
            return self.id
        return "all_reduce" if self.id in ("all_reduce", "inner_reduce") else "messages"


def contexts(
    phase: str, ir: ModelGraph, mean: Callable[[AttentionSpan, str, str], tuple[list[Quantity], Node, str]]
) -> tuple[tuple[Quantity, ...], dict[AttentionSpan, Quantity]]:
    """Mean number of tokens attended to, for every reach of a model's attention and indexers; the rows, and the figures by reach.

    Args:
        mean: for a reach, what its rows and labels end in, to rows before it, its expression and the words for it.
    """
    reaches = list(ir.spans())
    if Indexer in ir.operations() and FULL not in reaches:
        reaches.append(FULL)
    rows: list[Quantity] = []
    found: dict[AttentionSpan, Quantity] = {}
    for reach in reaches:
        alone = len(reaches) == 1
        limit = "" if reach.length is None else reach.length.id.removeprefix("model.")
        row, words = (
            ("", "")
            if alone
            else (
                f".{limit or reach.kind}",
                f", {reach.length.label.lower() if reach.length is not None else 'full'}",
            )
        )
        before, body, note = mean(reach, row, words)
        found[reach] = Quantity(
            f"{phase}.context{row}",
            f"Mean tokens attended to{words}",
            "token/request",
            body,
            note=note,
            name=f"mean context{words}",
        )
        rows += [*before, found[reach]]
    return tuple(rows), found


def tokens_by_scope(
    phase: str, tokens: Quantity, on_rank: Quantity, side: Workers, ir: ModelGraph
) -> tuple[dict[Scope, Quantity], Quantity, tuple[Quantity, ...]]:
    """Tokens that a rank works on, by the ranks a module is spread over; of a norm; and the rows for them."""
    found: dict[Scope, Quantity] = {"attention": on_rank, "stage": tokens}
    scopes = {scope(module) for module in ir.modules}
    if "shared" in scopes and side.plan.sends_tokens is not None:
        found["shared"] = Quantity(
            f"{phase}.shared_tokens",
            "Tokens of a rank in shared experts",
            "token",
            where(side.plan.sends_tokens > 0, on_rank, tokens),
            name="tokens of a rank in shared experts",
            note="its own where tokens are sent to their experts, else all",
        )
    if "experts" in scopes and side.plan.expert_groups is not None:
        found["experts"] = Quantity(
            f"{phase}.expert_tokens",
            "Tokens of a rank's experts",
            "token",
            tokens / side.plan.expert_groups,
            note="tokens ÷ groups of experts, which are chosen evenly",
            name="tokens of a rank's experts",
        )
    norms = Quantity(
        f"{phase}.norm_tokens",
        "Tokens of a rank in norms",
        "token",
        on_rank / side.plan.sequence,
        name="tokens of a rank in norms",
        note="tokens of a rank ÷ ranks that share the tokens of a norm",
    )
    return found, norms, (*(row for name, row in found.items() if name in ("shared", "experts")), norms)


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
    *,
    launch: Node,
    flops: Node | None = None,
    rate: Node | None = None,
    traffic: Node | None = None,
    bandwidth: Node | None = None,
    module: Module,
    setup: tuple[Row, ...] = (),
    reads: Node | None = None,
    note: str = "",
) -> Block:
    """A block of rows for one operation.

    Args:
        launch: seconds before the first byte.
        flops, rate: FLOPs of one execution per accelerator, and the FLOP/s it reaches. Both or none.
        traffic, bandwidth: bytes moved by one execution per accelerator, and the B/s it reaches. Both or none.
        module: what it is an operation of; says how often it runs in a pass.
        setup: rows to show first.
        reads: bytes of weights and cache among the traffic.
        note: how it is sharded.
    """
    identifier, label, layers = module.id, module.label, module.layers
    prefix = f"{phase.id}.{identifier}"
    low = _lower(label)

    def row(name: str, title: str, unit: str, body: Node, note: str = "", called: str = "") -> Quantity:
        return Quantity(
            f"{prefix}.{name}", f"{title}, {low}", unit, body, note=note, name=called or _lower(title)
        )

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
        larger = row(
            "limit",
            "Larger of compute and memory",
            "1",
            where(compute >= memory, COMPUTE, MEMORY),
            note="which of the two times is larger",
        )
        rows.append(larger)
        name: Node | str = larger
    else:
        single = compute if compute is not None else memory
        assert single is not None, f"{prefix} neither computes nor moves anything"
        busy, name = single, COMPUTE if compute is not None else MEMORY
    layer_time = row(
        "layer_time",
        "Time per layer" if layers is not None else "Time of one run",
        "s",
        overhead + busy,
        called="time per layer" if layers is not None else "time of one run",
    )
    bound = row(
        "bound",
        "Bound by",
        "1",
        where(overhead > busy, OVERHEAD, name),
        note="the largest of launch, compute and memory time",
    )
    time = row("time", "Time", "s", layer_time * layers if layers is not None else layer_time)
    rows += [layer_time, bound, time]
    called = "" if layers is None else layers.name or layers.label.lower()  # type: ignore[attr-defined]
    title = "once per pass" if layers is None else "in every layer" if called == "layers" else f"in {called}"
    section = Section(label, tuple(rows), f"{title} · {note}" if note else title, Section.SUBTOTAL)
    return Block(
        identifier,
        label,
        section,
        time,
        bound,
        layer_time,
        overhead,
        compute,
        memory,
        flops_row,
        bytes_row,
        layers,
        reads,
        module=module,
    )


def _lower(label: str) -> str:
    """A label inside a sentence; abbreviations stay as they are."""
    head = label.split(" ", 1)[0]
    return label[0].lower() + label[1:] if head[1:].islower() or head[1:] == "" else label
