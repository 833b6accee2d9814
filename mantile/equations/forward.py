"""A forward pass: every module as a block, then the pass as the sum of its modules, split by what binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.collectives import messages
from mantile.equations.draft import draft
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited, modules
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    defined,
    index,
    match,
    maximum,
    span,
    sum_range,
    sum_where,
)
from mantile.graph.rows import Rows
from mantile.graph.sentence import lowered
from mantile.ir.modules import (
    GroupedMatMul,
    ModelGraph,
    Recurrence,
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
        "lora": "Adapters",
        "draft": "Drafter",
        "step": "Step overhead",
    }


@dataclass(frozen=True)
class ByModule:
    """Seconds of modules, one below the other, and beside each its group, as `group_names` calls it."""

    figures: tuple[Quantity, ...]
    groups: tuple[Input, ...]

    def rows(self) -> tuple[Row, ...]:
        """Rows of a block."""
        return tuple(zip(self.figures, self.groups, strict=True))

    def of(self, group: Node) -> Node:
        """Seconds of a group of modules, by its name."""
        return sum_where(span(self.figures), span(self.groups), group)


@dataclass(frozen=True)
class OnDevice:
    """A pass on one of the devices that are not alike.

    Args:
        time: seconds of it there.
        part: share of the layers that it holds; `last` 1 where it has the end.
        blocks: modules of its layers as one run of them is there, and how often they run in its layers.
    """

    time: Quantity
    part: Node
    last: Node
    blocks: Mapping[str, tuple[Block, Node]]


@dataclass(frozen=True)
class Pass:
    """One phase, worked out.

    Args:
        blocks: modules in execution order, then messages between ranks.
        time: seconds of the pass, all stages of a pipeline included.
        parts: the same by what binds: compute, memory, network, overhead.
        times: seconds by module, in the order of `blocks`, then the step overhead.
        shares: what of them compute, memory, network and overhead take, of the modules that can.
        after: the messages that follow a module whose result is partial, by the ranks it is spread over.
        devices: each of these; none where accelerators are alike.
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
    devices: tuple[OnDevice, ...] = ()


_NOTES = {
    OVERHEAD: "launch of kernels, host time",
    COMPUTE: "where the peak limits",
    MEMORY: "where bandwidth limits",
    NETWORK: "messages between ranks",
}
"""What a pass is split by, and what it says above the rows."""


def forward(phase: Phase, ir: ModelGraph, workers: Workers, rows: Equations) -> Pass:
    """The rows of the Prefill or Decode part."""
    made = {block.id: block for block in modules(rows, ir, workers, phase.id)}
    adapted = made.pop("lora", None)
    sent = messages(phase, workers, ir, rows)
    blocks = [*made.values(), *sent.blocks, _host(rows, phase, workers)]
    if adapted is not None:
        blocks.append(adapted)
    (step_section,) = rows.sections("forward", "Step overhead", prefix=f"{phase.id}.")
    step_overhead = rows[f"{phase.id}.step.time"]
    drafter = draft(phase, ir, workers, blocks, sent.after, step_section, rows)
    if drafter is not None:
        blocks.append(drafter.block)
    by_module = _TimesByModule(phase.id, blocks, group_names(ir))

    times = by_module(
        "pass", "Time in the pass", {**{block.id: block.time for block in blocks}, "step": step_overhead}
    )
    time_of = dict(zip((block.id for block in blocks), times.figures[:-1], strict=True))
    launches = overhead(blocks, by_module, step_overhead, workers.efficiency["step_host"])
    shares = by_limit(blocks, by_module, time_of, launches)
    time = Quantity(
        f"{phase.id}.time",
        f"{phase.id.capitalize()} time",
        "s",
        sum_range(span(times.figures)),
        name=f"{phase.id} time",
    )
    parts, bottleneck, binds = bound(phase, shares)
    rows.know(time)
    classes = workers.formats.classes
    peaks = [formats.linear_peak for name, formats in classes.items() if name != "router"]
    rows.know_as(f"{phase.id}.peaks", span(peaks))
    (use,) = rows.sections("forward", "Use of the hardware", prefix=f"{phase.id}.")
    return Pass(
        phase=phase,
        blocks=tuple(blocks),
        time=time,
        flops=rows[f"{phase.id}.flops"],
        bytes=rows[f"{phase.id}.bytes"],
        mfu=rows[f"{phase.id}.mfu"],
        mbu=rows[f"{phase.id}.mbu"],
        parts=parts,
        bottleneck=bottleneck,
        times=times,
        shares=shares,
        after=sent.after,
        peak=rows[f"{phase.id}.peak"],
        sections=(
            Section("What enters", phase.rows, "workload of one pass"),
            *(block.section for block in blocks if drafter is None or block is not drafter.block),
            sent.section,
            step_section,
            *(() if drafter is None else drafter.sections),
            Section(
                "Time by module",
                (*times.rows(), time),
                "every module once; this is the number that Serving uses",
                Section.TOTAL,
            ),
            *(Section(f"Of it {limit}", shares[limit].rows(), note) for limit, note in _NOTES.items()),
            binds,
            use,
        ),
    )


def times_of_experts(rows: Equations, step: Pass, name: str, prefix: str = "") -> None:
    """For each grouped product of a pass, on each device, its time in memory and its layers, for sums.

    Args:
        name: of the spaces.
        prefix: of the pass in ids.
    """
    found = []
    for each in step.blocks:
        if each.module is not None and isinstance(each.module.operation, GroupedMatMul):
            of_devices = [device.blocks[each.id] for device in step.devices]
            for number, (own, layers) in enumerate(of_devices or [(each, each.repeats)]):
                assert own.memory is not None and layers is not None
                facts = {
                    "time": f"{name}.{each.id}.{number}.time",
                    "layers": f"{name}.{each.id}.{number}.layers",
                }
                rows.know_as(facts["time"], own.memory)
                rows.know_as(facts["layers"], layers)
                found.append(Space(facts=facts | {"time": f"{prefix}{facts['time']}"}))
    rows.make_in(name, *found)


def _host(rows: Equations, phase: Phase, workers: Workers) -> Block:
    """Reading of hosts as a block."""
    place = f"{phase.id}.host."
    (section,) = rows.sections("forward", "Host memory", prefix=f"{phase.id}.")
    time = rows[f"{place}time"]
    return Block(
        id="host",
        label="Host memory",
        section=section,
        time=time,
        bound=rows[f"{place}bound"],
        layer_time=time,
        memory=time,
        reached={MEMORY: workers.efficiency["host_bytes"]},
    )


class _TimesByModule:
    """Makes seconds by module.

    Args:
        phase: "prefill" or "decode".
        blocks: of the pass; the step overhead comes behind them.
        groups: what a group is called, as `group_names` says.
    """

    def __init__(self, phase: str, blocks: Sequence[Block], groups: Mapping[str, str]) -> None:
        self.phase, self.groups = phase, groups
        self.labels = {block.id: (block.label, block.group) for block in blocks}
        self.labels["step"] = ("Step overhead", "step")

    def __call__(
        self, kind: str, label: str, bodies: Mapping[str, Node], reached: Mapping[str, Quantity] | None = None
    ) -> ByModule:
        """One row for each body, by the module's id.

        Args:
            reached: by the same ids, what the times follow from; their source.
        """
        rows = Rows(f"{self.phase}.{kind}")
        groups: list[Input] = []
        figures: list[Quantity] = []
        for module, body in bodies.items():
            of, group = self.labels[module]
            source = "" if reached is None else reached[module].id
            figures.append(rows(module, f"{label}, {lowered(of)}", "s", body, source=source))
            groups.append(
                defined(
                    f"{self.phase}.{kind}.group.{module}",
                    f"{label}, group of {of}",
                    "1",
                    self.groups[group],
                    "what it is shown under on Summary and Layers",
                    name="groups",
                )
            )
        return ByModule(tuple(figures), tuple(groups))


def overhead(
    blocks: Sequence[Block], by_module: _TimesByModule, step_overhead: Quantity, step_host: Quantity
) -> ByModule:
    """Launch time of every module in the pass, and the step overhead."""
    reached = {block.id: block.reached[OVERHEAD] for block in blocks if OVERHEAD in block.reached}
    launches = {
        block.id: block.launch if block.repeats is None else block.launch * block.repeats
        for block in blocks
        if block.launch is not None
    }
    return by_module(
        "overhead", "Overhead", {**launches, "step": step_overhead}, {**reached, "step": step_host}
    )


def by_limit(
    blocks: Sequence[Block], by_module: _TimesByModule, time_of: Mapping[str, Quantity], launches: ByModule
) -> dict[str, ByModule]:
    """What compute, memory, network and overhead account for of the time of every module."""
    rest: dict[str, Node] = dict(time_of)
    for figure in launches.figures[:-1]:
        module = figure.id.split(".", 2)[-1]
        rest[module] = rest[module] - figure
    shares = {}
    for limit in (COMPUTE, MEMORY, NETWORK):
        bodies = {block.id: limited(block, limit, rest[block.id]) for block in blocks}
        shares[limit] = by_module(
            limit,
            limit.capitalize(),
            {module: body for module, body in bodies.items() if body is not None},
            {block.id: block.reached[limit] for block in blocks if limit in block.reached},
        )
    return shares | {OVERHEAD: launches}


def bound(phase: Phase, shares: Mapping[str, ByModule]) -> tuple[dict[str, Quantity], Quantity, Section]:
    """The pass by what binds, and the limit that takes most of it."""
    rows = Rows(phase.id)
    limits = tuple(
        defined(
            f"{phase.id}.bound_name.{limit}",
            f"Bound {number}",
            "1",
            limit,
            "name of a limit",
            name="limits",
        )
        for number, limit in enumerate(shares, 1)
    )
    rows.add(*limits)
    parts = {
        limit: rows(
            f"bound.{limit}",
            f"{limit.capitalize()} time of {phase.id}",
            "s",
            sum_range(span(of_modules.figures)),
            called=f"{limit} time",
        )
        for limit, of_modules in shares.items()
    }
    times = span(parts.values())
    bottleneck = rows("bottleneck", "Bottleneck", "1", index(span(limits), match(maximum(times), times)))
    return parts, bottleneck, rows.section("What binds", "the four add up to the pass", Section.SUBTOTAL)
