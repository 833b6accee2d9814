"""A forward pass: every module of the model as a block, then the pass as the sum of its modules, split by what binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.attention import attention, indexer, latent_attention
from mantile.equations.collectives import messages
from mantile.equations.constant import NO_LINK, ONE_REQUEST
from mantile.equations.elementwise import elementwise
from mantile.equations.linear import product
from mantile.equations.moe import experts
from mantile.equations.plan import Scope
from mantile.equations.recurrence import recurrence
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, Phase, limited
from mantile.equations.vision import vision_tower
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    index,
    match,
    maximum,
    span,
    sum_range,
    sum_where,
    where,
)
from mantile.ir.modules import (
    Attention,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
    Recurrence,
    Vision,
)


def group_names(ir: ModelGraph) -> dict[str, str]:
    """What modules belong to where times are shown by kind, in order."""
    attentive = Recurrence not in ir.operations()
    return {
        "vision": "Vision tower",
        "projections": "Attention projections" if attentive else "Mixer projections",
        "attention": "Attention core" if attentive else "Attention core, states",
        "ffn": "FFN",
        "experts": "Experts",
        "small": "Norms, elementwise",
        "head": "LM head",
        "all_reduce": "All-reduce",
        "messages": "Other messages",
        "p2p": "Stage to stage",
        "host": "Host memory",
        "step": "Step overhead",
    }


@dataclass(frozen=True)
class ByModule:
    """Seconds of modules, one below the other, and beside each what the module belongs to, as `group_names` calls it."""

    figures: tuple[Quantity, ...]
    groups: tuple[Input, ...]

    def rows(self) -> tuple[Row, ...]:
        """Rows of a block."""
        return tuple(zip(self.figures, self.groups, strict=True))

    def of(self, group: Node) -> Node:
        """Seconds of a group of modules, by its name."""
        return sum_where(span(self.figures), span(self.groups), group)


@dataclass(frozen=True)
class Pass:
    """One phase, worked out.

    Args:
        blocks: modules in execution order, then messages between ranks.
        time: seconds of the pass, all stages of a pipeline included.
        parts: the same by what binds: compute, memory, network, overhead.
        times: seconds by module, in the order of `blocks`, then the step overhead.
        shares: what of them compute, memory, network and overhead account for, of the modules for which they can.
        after: the messages that follow a module whose result is partial, by the ranks it is spread over.
    """

    phase: Phase
    blocks: tuple[Block, ...]
    time: Quantity
    flops: Quantity
    bytes: Quantity
    mfu: Quantity
    mbu: Quantity
    parts: dict[str, Quantity]
    bottleneck: Quantity
    times: ByModule
    shares: dict[str, ByModule]
    after: Mapping[Scope, Block]
    peak: Quantity
    sections: tuple[Section, ...]


def forward(phase: Phase, workload_rows: tuple[Named, ...], ir: ModelGraph, side: Workers) -> Pass:
    """The rows of the Prefill or Decode sheet.

    Args:
        workload_rows: the quantities that say what enters the pass; the first block of the sheet.
    """
    inputs, efficiency = side.inputs, side.efficiency
    blocks = [_block(phase, module, side) for module in ir.modules]
    if ir.vision is not None and inputs.image_tokens is not None and not phase.decode:
        blocks.insert(0, vision_tower(phase, ir.vision, inputs, efficiency))
    sent, after, messages_section = messages(phase, side, ir)
    blocks += [*sent, _host(phase, side)]
    step = Quantity(
        f"{phase.id}.step.time",
        "Time, step overhead",
        "s",
        efficiency["step_host"] + efficiency["step_row"] * (phase.rank_requests / ONE_REQUEST),
        name="step overhead",
        note="host time per step + host time per request × requests of an attention group",
    )
    step_section = Section("Step overhead", (step,), "once per pass: scheduler, sampling", Section.SUBTOTAL)

    named = {block.id: (block.label, block.group) for block in blocks} | {"step": ("Step overhead", "step")}
    called = group_names(ir)

    def by_module(kind: str, label: str, bodies: Mapping[str, Node | None], note: str) -> ByModule:
        found = {identifier: body for identifier, body in bodies.items() if body is not None}
        return ByModule(
            tuple(
                Quantity(
                    f"{phase.id}.{kind}.{identifier}",
                    f"{label}, {named[identifier][0]}",
                    "s",
                    body,
                    note=note,
                    name=f"{label.lower()}, {named[identifier][0]}",
                )
                for identifier, body in found.items()
            ),
            tuple(
                Input(
                    f"{phase.id}.{kind}.group.{identifier}",
                    f"{label}, group of {named[identifier][0]}",
                    "1",
                    called[named[identifier][1]],
                    "what it is shown under on Summary and Layers",
                    "definition",
                    "defined",
                    shared=True,
                    fixed=True,
                    name="groups",
                )
                for identifier in found
            ),
        )

    times = by_module(
        "pass",
        "Time in the pass",
        {**{block.id: block.time for block in blocks}, "step": step},
        "time of the block above",
    )
    launches: dict[str, Node | None] = {
        block.id: block.launch
        if block.launch is None or block.repeats is None
        else block.launch * block.repeats
        for block in blocks
    }
    overhead = by_module(
        "overhead", "Overhead", {**launches, "step": step}, "launch time × repeats; all of the step overhead"
    )
    rest: dict[str, Node] = {
        block.id: figure for block, figure in zip(blocks, times.figures[:-1], strict=True)
    }
    for figure in overhead.figures[:-1]:
        identifier = figure.id.removeprefix(f"{phase.id}.overhead.")
        rest[identifier] = rest[identifier] - figure
    shares = {
        kind: by_module(
            kind,
            kind.capitalize(),
            {block.id: limited(block, kind, rest[block.id]) for block in blocks},
            note,
        )
        for kind, note in ((COMPUTE, _BOUND), (MEMORY, _BOUND), (NETWORK, "messages between ranks"))
    } | {OVERHEAD: overhead}

    time = Quantity(
        f"{phase.id}.time",
        f"{phase.id.capitalize()} time",
        "s",
        sum_range(span(times.figures)),
        note="sum of the module times",
        name=f"{phase.id} time",
    )
    parts = {
        kind: Quantity(
            f"{phase.id}.bound.{kind}",
            f"{kind.capitalize()} time of {phase.id}",
            "s",
            sum_range(span(held.figures)),
            note=f"sum of the {kind} rows above",
            name=f"{kind} time",
        )
        for kind, held in shares.items()
    }
    kinds = tuple(
        Input(
            f"{phase.id}.bound_name.{kind}",
            f"Bound {number}",
            "1",
            kind,
            "name of a limit",
            "definition",
            "defined",
            shared=True,
            fixed=True,
            name="limits",
        )
        for number, kind in enumerate(parts, 1)
    )
    part_span = span(parts.values())
    bottleneck = Quantity(
        f"{phase.id}.bottleneck",
        "Bottleneck",
        "1",
        index(span(kinds), match(maximum(part_span), part_span)),
        note="the limit with the largest time",
    )
    computing = [block for block in blocks if block.flops is not None]
    flops = [
        Quantity(
            f"{phase.id}.flops.{block.id}",
            f"FLOPs in the pass, {block.label}",
            "FLOP",
            block.flops * block.repeats if block.repeats is not None else block.flops,  # type: ignore[operator,arg-type]
            note="FLOPs × repeats",
        )
        for block in computing
    ]
    all_flops = Quantity(
        f"{phase.id}.flops",
        "FLOPs of the pass",
        "FLOP",
        sum_range(span(flops)),
        note="sum of the rows above, per rank",
    )
    reading = [
        Quantity(
            f"{phase.id}.read.{block.id}",
            f"Read in the pass, {block.label}",
            "B",
            block.reads * block.repeats if block.repeats is not None else block.reads,
            note="weights, cache or state read × repeats",
        )
        for block in blocks
        if block.reads is not None
    ]
    read = Quantity(
        f"{phase.id}.bytes",
        "Weights and cache read in the pass",
        "B",
        sum_range(span(reading)),
        name="bytes read",
        note="sum of the rows above, per rank",
    )
    peak = Quantity(
        f"{phase.id}.peak",
        "Largest peak of its products",
        "FLOP/s",
        maximum(*(kind.linear_peak for name, kind in side.formats.classes.items() if name != "router")),
    )
    mfu = Quantity(f"{phase.id}.mfu", "Compute used, MFU", "1", all_flops / (time * peak), name="MFU")
    mbu = Quantity(
        f"{phase.id}.mbu",
        "Bandwidth used, MBU",
        "1",
        read / (time * side.hardware.memory_bandwidth),
        name="MBU",
    )
    sections = (
        Section("What enters", workload_rows, "workload of one pass"),
        *(block.section for block in blocks),
        messages_section,
        step_section,
        Section(
            "Time by module",
            (*times.rows(), time),
            "every module once; this is the number that Serving uses",
            Section.TOTAL,
        ),
        *(Section(f"Of it {kind}", shares[kind].rows(), words) for kind, words in _LIMITS.items()),
        Section(
            "What binds",
            (*kinds, *parts.values(), bottleneck),
            "the four add up to the pass",
            Section.SUBTOTAL,
        ),
        Section(
            "Use of the hardware",
            (*flops, all_flops, *reading, read, peak, mfu, mbu),
            "against the datasheet peaks",
        ),
    )
    return Pass(
        phase,
        tuple(blocks),
        time,
        all_flops,
        read,
        mfu,
        mbu,
        parts,
        bottleneck,
        times,
        shares,
        after,
        peak,
        sections,
    )


_BOUND = "time in the pass − overhead, where this is the larger time"
_LIMITS = {
    OVERHEAD: "launch of kernels, host time",
    COMPUTE: "where the peak limits",
    MEMORY: "where bandwidth limits",
    NETWORK: "messages between ranks",
}


def _block(phase: Phase, module: Module, side: Workers) -> Block:
    formats, efficiency, plan = side.formats, side.efficiency, side.plan
    match module.operation:
        case MatMul() as work:
            return product(phase, module, work, formats, efficiency, plan)
        case GroupedMatMul() as work:
            return experts(phase, module, work, formats, efficiency, plan)
        case Attention() as work:
            return attention(phase, module, work, formats, efficiency, plan)
        case LatentAttention() as work:
            return latent_attention(phase, module, work, formats, efficiency, plan)
        case Indexer() as work:
            return indexer(phase, module, work, formats, efficiency, plan)
        case Recurrence() as work:
            return recurrence(phase, module, work, side.memory.caches.states[module.id], efficiency, plan)
        case Elementwise() as work:
            return elementwise(phase, module, work, efficiency, plan)
        case Vision():
            raise AssertionError("the vision tower is no module of the decoder")


def _host(phase: Phase, side: Workers) -> Block:
    """Weights, and in decode KV cache, that lie in host memory and are read over its link in every pass."""
    held, rate = side.memory, side.efficiency["host_bytes"]

    def row(name: str, title: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(
            f"{phase.id}.host.{name}", f"{title}, host memory", unit, body, note=note, name=title.lower()
        )

    moved = row(
        "bytes",
        "Bytes",
        "B",
        held.host_weights * side.inputs.pp + held.host_kv
        if phase.decode
        else held.host_weights * side.inputs.pp,
        "weights on the host, of all stages" + (", and KV cache on the host" if phase.decode else ""),
    )
    slope = row(
        "per_byte",
        "Time per byte",
        "s/B",
        where(rate > 0, 1 / rate, NO_LINK),
        "1 ÷ host link bandwidth reached",
    )
    bound = row("bound", "Bound by", "1", as_node(MEMORY), "the host link")
    time = row("time", "Time", "s", moved * slope)
    return Block(
        "host",
        "Host memory",
        Section(
            "Host memory",
            (moved, slope, bound, time),
            "nothing unless weights or KV cache are offloaded",
            Section.SUBTOTAL,
        ),
        time,
        bound,
        time,
        None,
        None,
        time,
        None,
        None,
        None,
    )
