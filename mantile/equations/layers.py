"""Where in a pass the time goes: the steps of one layer of each kind, and all layers in execution order.

Built where it is shown, for the base scenario: no estimate needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from mantile.equations.collectives import sums_after, sums_inside
from mantile.equations.constant import MICRO, MILLI
from mantile.equations.forward import Pass
from mantile.equations.graph import EstimateGraph
from mantile.equations.plan import scope
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    index,
    join,
    match,
    maximum,
    rounded,
    span,
    sum_range,
    text,
    where,
)
from mantile.ir.modules import Layer

LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)


@dataclass(frozen=True)
class Step:
    """One step of a layer on a rank: a module, or the messages after one.

    Args:
        name: a few letters for charts.
        block: the operation or message.
        time, start: in us; the start counts from that of the layer.
        share: of the layer's time.
        bound: what limits it; a dash where no message is sent.
        parts: what of the time each limit accounts for, in us, where it can.
        flops, read, sent: FLOPs, bytes moved in memory, bytes sent; None where there are none.
    """

    name: Input
    block: Block
    time: Quantity
    start: Quantity
    share: Node
    bound: Node
    parts: Mapping[str, Node]
    flops: Node | None
    read: Node | None
    sent: Node | None


@dataclass(frozen=True)
class LayerSteps:
    """One layer of a kind in a phase: its steps in execution order, its time in us, and both in words."""

    steps: tuple[Step, ...]
    time: Quantity
    title: Quantity


@dataclass(frozen=True)
class LayerNumber:
    """A layer of the model: its number from 1, in the model and of its kind, and its stage from 0."""

    layer: Layer
    number: Input
    of_kind: Input
    stage: Quantity


@dataclass(frozen=True)
class Timing:
    """Start and time of a line in a phase, in ms, and the figure that the time is of; None for a layer."""

    start: Quantity
    time: Quantity
    source: Named | None


@dataclass(frozen=True)
class Line:
    """What a pass goes through: a layer, or what runs once; `timings` by phase."""

    label: str
    layer: LayerNumber | None
    timings: Mapping[str, Timing]


@dataclass(frozen=True)
class Layers:
    """Layers of the base scenario.

    Args:
        steps: of one layer of each kind, by phase.
        lines: a whole pass in execution order.
        passes: time of a whole pass in ms, by phase; `titles` say it in words.
    """

    steps: Mapping[Layer, Mapping[str, LayerSteps]]
    lines: tuple[Line, ...]
    passes: Mapping[str, Quantity]
    titles: Mapping[str, Quantity]


def layers(graph: EstimateGraph) -> Layers:
    """Steps of a layer, and all layers of a pass."""
    phases = {"prefill": graph.prefill, "decode": graph.decode}
    steps = {
        layer: {name: _step(graph, number, layer, phase) for name, phase in phases.items()}
        for number, layer in enumerate(graph.ir.layers)
    }
    passes = {
        name: Quantity(f"layers.pass.{name}", f"Whole pass, {name}", "ms", phase.time * MILLI)
        for name, phase in phases.items()
    }
    entries = (*_first(graph, phases), *_stack(graph, steps), *_last(graph, phases))
    return Layers(
        steps=steps,
        lines=_timed(entries),
        passes=passes,
        titles={name: _pass_title(name, time) for name, time in passes.items()},
    )


def _step(graph: EstimateGraph, number: int, layer: Layer, phase: Pass) -> LayerSteps:
    """The steps of one layer in one phase, each with its start."""
    name = phase.phase.id
    blocks = _blocks(graph, layer, phase)
    times = [
        Quantity(f"layers.step.{number}.{name}.{step}", f"Time of {short}", "us", block.layer_time * MICRO)
        for step, (short, block) in enumerate(blocks)
    ]
    total = Quantity(
        f"layers.layer.{number}.{name}", f"One layer, {layer.name}, {name}", "us", sum_range(span(times))
    )
    steps: list[Step] = []
    for step, ((short, block), time) in enumerate(zip(blocks, times, strict=True)):
        start = Quantity(
            f"layers.start.{number}.{name}.{step}",
            f"Start of {short}",
            "us",
            steps[-1].start + steps[-1].time if steps else time - time,
        )
        label = Input(
            f"layers.name.{number}.{name}.{step}", f"Step {step}", "1", short, shared=True, fixed=True
        )
        steps.append(_described(label, block, time, start, total))
    kind = "one layer" if len(graph.ir.layers) == 1 else f"one {layer.name} layer"
    return LayerSteps(tuple(steps), total, _layer_title(number, name, kind, steps, total))


def _pass_title(phase: str, time: Quantity) -> Quantity:
    title = join(f"{phase.capitalize()}, a whole pass: ", rounded(time, 1), " ms")
    return Quantity(f"layers.title.pass.{phase}", "Title", "1", title)


def _layer_title(number: int, phase: str, kind: str, steps: Sequence[Step], total: Quantity) -> Quantity:
    """How long a layer takes, and which step of it the longest."""
    times, names = span([step.time for step in steps]), span([step.name for step in steps])
    title = join(
        f"{phase.capitalize()}: {kind} takes ",
        text(total, "0"),
        " us, the longest step (",
        index(names, match(maximum(times), times)),
        ") ",
        rounded(maximum(times), 1),
        " us",
    )
    return Quantity(f"layers.title.{number}.{phase}", "Title", "1", title)


def _described(name: Input, block: Block, time: Quantity, start: Quantity, total: Quantity) -> Step:
    """A step with what limits it and what it moves; a lone rank sends no messages."""
    sends = block.layer_time > 0
    busy: Node = block.layer_time if block.launch is None else block.layer_time - block.launch
    limits = {limit: block.launch if limit == OVERHEAD else limited(block, limit, busy) for limit in LIMITS}
    flops, moved = (
        where(sends, figure, 0) if block.network and figure is not None else figure
        for figure in (block.flops, block.bytes)
    )
    return Step(
        name=name,
        block=block,
        time=time,
        start=start,
        share=time / total,
        bound=where(sends, block.bound, "–") if block.network else block.bound,
        parts={limit: part * MICRO for limit, part in limits.items() if part is not None},
        flops=flops,
        read=None if block.network else moved,
        sent=moved if block.network else None,
    )


def _blocks(graph: EstimateGraph, layer: Layer, phase: Pass) -> list[tuple[str, Block]]:
    """The blocks of a layer in execution order, messages included: after mixer and FFN, inside of mixers."""
    blocks = {block.id: block for block in phase.blocks}
    after, inside = sums_after(graph.ir), sums_inside(graph.ir)
    steps: list[tuple[str, Block]] = []
    for module in layer.modules:
        steps.append((module.short, blocks[module.id]))
        if module in inside:
            steps.append((f"{module.short} sum", blocks["inner_reduce"]))
        elif module in after:
            number = 1 + sum(block.id == "all_reduce" for _, block in steps)
            steps.append((f"messages {number}", phase.after[scope(module)]))
    return steps


@dataclass(frozen=True)
class _Entry:
    """A line before its starts are known: time in ms and the figure it is of, by phase."""

    id: str
    label: str
    times: Mapping[str, tuple[Node, Named | None]]
    layer: LayerNumber | None = None


def _once(identifier: str, label: str, times: Mapping[str, Quantity]) -> _Entry:
    """What runs once in a pass."""
    return _Entry(identifier, label, {name: (time * MILLI, time) for name, time in times.items()})


def _first(graph: EstimateGraph, phases: Mapping[str, Pass]) -> Iterator[_Entry]:
    """What stands before the layers."""
    step = {name: (phase.times.figures[-1] * MILLI, phase.time) for name, phase in phases.items()}
    yield _Entry("step", "Step overhead", step)
    if graph.ir.vision is not None:
        yield _once("vision", "Vision tower", {"prefill": _block(graph.prefill, "vision").time})
    embedding = {
        name: (
            (_block(phase, "embedding").time + phase.after["attention"].layer_time) * MILLI,
            phase.time,
        )
        for name, phase in phases.items()
    }
    yield _Entry("embedding", "Embedding, its messages", embedding)


def _stack(graph: EstimateGraph, steps: Mapping[Layer, Mapping[str, LayerSteps]]) -> Iterator[_Entry]:
    """Every layer; those that a smaller count leaves out take no time."""
    kinds = {layer.blocks: layer for layer in graph.ir.layers}
    numbers = {blocks: count(1) for blocks in kinds}
    stages = graph.decode_workers.plan.stages
    for position, blocks in enumerate(graph.ir.model.architecture.sequence(), 1):
        kind = kinds[blocks]
        number = of_kind = _number(f"layers.number.{position}", f"Layer {position}", position)
        if len(kinds) > 1:
            of_kind = _number(
                f"layers.of_kind.{position}",
                f"Number of its kind, layer {position}",
                next(numbers[blocks]),
            )
        stage = Quantity(
            f"layers.stage.{position}", f"Stage of layer {position}", "number", stages.of_layer(number)
        )
        times: dict[str, tuple[Node, Named | None]] = {
            name: (where(of_kind <= kind.count, layer.time / MICRO * MILLI, 0), None)
            for name, layer in steps[kind].items()
        }
        yield _Entry(f"layer.{position}", "", times, LayerNumber(kind, number, of_kind, stage))


def _number(identifier: str, label: str, value: int) -> Input:
    return Input(identifier, label, "number", value, shared=True, fixed=True)


def _last(graph: EstimateGraph, phases: Mapping[str, Pass]) -> Iterator[_Entry]:
    """What stands after the layers, and what a pass takes beside them."""
    for module in graph.ir.modules:
        if module.layers is None and module.id != "embedding":
            times = {name: _block(phase, module.id).time for name, phase in phases.items()}
            yield _once(module.id, module.label, times)
    beside = {"context": "Context exchange", "host": "Host memory", "p2p": "Stage to stage"}
    for identifier, label in beside.items():
        if any(block.id == identifier for block in graph.decode.blocks):
            times = {name: _block(phase, identifier).time for name, phase in phases.items()}
            yield _once(identifier, label, times)


def _block(phase: Pass, identifier: str) -> Block:
    return next(block for block in phase.blocks if block.id == identifier)


def _timed(entries: tuple[_Entry, ...]) -> tuple[Line, ...]:
    """Lines with their starts: the running sum of the times before, phase by phase."""
    ends: dict[str, Node] = {}
    lines: list[Line] = []
    for entry in entries:
        timings: dict[str, Timing] = {}
        for name, (body, source) in entry.times.items():
            time = Quantity(f"layers.{entry.id}.{name}.time", f"Time, {entry.id}, {name}", "ms", body)
            start = Quantity(
                f"layers.{entry.id}.{name}.start",
                f"Start, {entry.id}, {name}",
                "ms",
                ends.get(name, time - time),
            )
            timings[name] = Timing(start, time, source)
            ends[name] = start + time
        lines.append(Line(entry.label, entry.layer, timings))
    return tuple(lines)
