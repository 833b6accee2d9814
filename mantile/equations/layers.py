"""Where in a pass the time goes: one layer of each kind by what its steps belong to, and all layers.

Built where it is shown, for the base scenario: no estimate needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.checks import TOLERANCE
from mantile.equations.collectives import sums_after, sums_inside
from mantile.equations.constant import MICRO, MILLI
from mantile.equations.forward import Pass
from mantile.equations.graph import EstimateGraph
from mantile.equations.order import LayerOrder
from mantile.equations.plan import scope
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    absolute,
    defined,
    equal,
    index,
    join,
    match,
    maximum,
    percent,
    rounded,
    span,
    sum_of,
    sum_range,
    sum_where,
    text,
    where,
)
from mantile.ir.modules import (
    Attention,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    Layer,
    Module,
    Recurrence,
)
from mantile.ir.words import layer_words

PHASES = ("prefill", "decode")
LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
COLUMNS = (
    "norms",
    "streams",
    "latents",
    "indexer",
    "Q, K, V",
    "inputs",
    "core",
    "state",
    "output",
    "network",
    "router",
    "shared",
    "experts",
    "FFN",
)
"""What the steps of a layer belong to, in the order in which it is shown."""


def column_of(module: Module) -> str:
    """What a module belongs to: one of `COLUMNS`."""
    work, step = module.operation, module.step
    for start, name in (("index", "indexer"), ("shared", "shared"), ("router", "router"), ("ffn_", "FFN")):
        if step.startswith(start) and not step.startswith(("ffn_norm", "ffn_streams", "ffn_mix")):
            return name
    if module.kind == "streams":
        return "streams"
    if isinstance(work, Elementwise):
        if module.kind == "moe":
            return "router" if work.kind == "routing" else "experts"
        return {"activation": "FFN", "gate": "output"}.get(work.kind, "norms")
    if isinstance(work, Recurrence):
        return "state"
    if isinstance(work, Attention | LatentAttention | Indexer):
        return "core"
    if isinstance(work, GroupedMatMul) or module.part == "experts":
        return "experts"
    return _projection(step)


def _projection(step: str) -> str:
    """What a product of a mixer belongs to."""
    if step == "latent_in" or "compressor" in step:
        return "latents"
    if step.startswith("output") or step.endswith("_out"):
        return "output"
    return "inputs" if step.startswith(("linear", "mamba")) else "Q, K, V"


@dataclass(frozen=True)
class Timing:
    """A step in a phase: time in us, what binds it, and its start where a timeline shows it.

    Args:
        sent: bytes of messages; None of a module.
        parts: the time under the limit that binds the step, 0 under the others that could.
    """

    block: Block
    time: Quantity
    bound: Quantity
    start: Quantity | None
    sent: Node | None
    parts: Mapping[str, Quantity]


@dataclass(frozen=True)
class Step:
    """One step of a layer on a rank: a module, or the messages after one.

    Args:
        name: a few letters for charts.
        column: what it belongs to, one of `COLUMNS`.
        within: for each kind of layer 1 if it has the step, else 0.
        timings: by phase.
    """

    name: Input
    column: Input
    within: tuple[Input, ...]
    timings: Mapping[str, Timing]


@dataclass(frozen=True)
class Group:
    """Equal layers in a phase.

    Args:
        cells: us of one layer by column; a fixed 0 where it has no such step.
        bars: the same by what binds its steps, where something can.
        time: us of one layer.
        all_cells, all_time: ms of all layers together.
    """

    cells: tuple[Quantity | Input, ...]
    bars: Mapping[tuple[int, str], Quantity]
    time: Quantity
    all_cells: tuple[Quantity | None, ...]
    all_time: Quantity


@dataclass(frozen=True)
class End:
    """What runs once in a pass: us by phase, and the figure that it leads to; a fixed 0 leads nowhere."""

    label: str
    times: Mapping[str, tuple[Quantity | Input, Quantity | None]]


@dataclass(frozen=True)
class PhaseMatrix:
    """A phase: groups by kind of layer, then the pass.

    Args:
        title: time of the pass in words.
        layer_title: of the timeline of one layer.
        columns: ms of the pass by column; `shares` of the pass, and last its own.
        time: of the pass in ms; `shown` the sum of all that is shown; `sums` says whether that is the pass.
        limits: share of the pass by what binds.
    """

    title: Quantity
    layer_title: Quantity
    groups: Mapping[Layer, Group]
    columns: tuple[Quantity, ...]
    shares: tuple[Node, ...]
    time: Quantity
    shown: Quantity
    sums: Node
    limits: Mapping[str, Node]


@dataclass(frozen=True)
class Layers:
    """Layers of the base scenario.

    Args:
        heads: the columns that the model has.
        ranges: which layers each kind is, in words; `order` the figure that these need.
        steps: of all kinds of layers; those of `main`, the kind that takes most time, stand first, in order.
        before, after: what runs once, before and after the layers.
        phases: by name.
    """

    title: Quantity
    heads: tuple[Input, ...]
    ranges: Mapping[Layer, Node]
    order: Quantity | None
    main: Layer
    steps: tuple[Step, ...]
    before: tuple[End, ...]
    after: tuple[End, ...]
    phases: Mapping[str, PhaseMatrix]


def layers(graph: EstimateGraph, values: Mapping[Node, Any]) -> Layers:
    """One layer of each kind, what runs once, and the pass.

    Args:
        values: as generated: the kind of layers that takes most of a step is drawn.
    """
    kinds = graph.ir.layers

    def of_step(layer: Layer) -> float:
        """Seconds of a decode step in layers of a kind."""
        times = [
            _block_of(key, graph.decode, module).layer_time for key, *_, module in _sequence(graph, layer)
        ]
        return float(values[layer.count]) * sum(float(values[time]) for time in times)

    main = max(kinds, key=of_step)
    steps = _steps(graph, main)
    present = {step.column.value for step in steps}
    heads = tuple(
        defined(f"layers.head.{place}", f"Column {name}", "1", name, name="columns")
        for place, name in enumerate(name for name in COLUMNS if name in present)
    )
    before, after = tuple(_first(graph)), tuple(_last(graph))
    order = LayerOrder(graph.ir, "layers")
    phases = {
        name: _Matrix(graph, phase, heads, steps, main).made(before, after)
        for name, phase in _phases(graph).items()
    }
    return Layers(
        title=_title(main, heads, phases["decode"]),
        heads=heads,
        ranges={kind: join("Layers ", order.words([kind])) for kind in kinds},
        order=order.as_made,
        main=main,
        steps=steps,
        before=before,
        after=after,
        phases=phases,
    )


def _phases(graph: EstimateGraph) -> dict[str, Pass]:
    return {"prefill": graph.prefill, "decode": graph.decode}


def _title(main: Layer, heads: Sequence[Input], decode: PhaseMatrix) -> Quantity:
    """What most layers take of a step, and what of it takes most."""
    group = decode.groups[main]
    cells = span(group.cells)
    body = join(
        "Layers: ",
        text(main.count),
        " equal layers take ",
        percent(group.all_time / decode.time, 0),
        " of a decode step, the largest part of them ",
        index(span(heads), match(maximum(cells), cells)),
        " with ",
        percent(maximum(cells) / group.time * group.all_time / decode.time, 0),
    )
    return Quantity("layers.title", "Title", "1", body)


# --- the steps of a layer -----------------------------------------------------------------------------------

_Key = tuple[str, str, int]


def _sequence(graph: EstimateGraph, layer: Layer) -> Iterator[tuple[_Key, str, str, Module]]:
    """The steps of a layer in execution order, messages included: after mixer and FFN, inside of mixers.

    Each with what tells it from others, its name, its column, and the module that it is or follows.
    """
    after, inside = sums_after(graph.ir), sums_inside(graph.ir)
    messages = 0
    for module in layer.modules:
        yield ("module", module.id, 0), module.short, column_of(module), module
        if module in inside:
            yield ("inside", module.id, 0), f"{module.short} sum", "network", module
        elif module in after:
            messages += 1
            yield ("after", scope(module), messages), f"messages {messages}", "network", module


def _block_of(key: _Key, phase: Pass, module: Module) -> Block:
    """The block of a step in a phase."""
    if key[0] == "after":
        return phase.after[scope(module)]
    return _block(phase, "inner_reduce" if key[0] == "inside" else module.id)


def _steps(graph: EstimateGraph, main: Layer) -> tuple[Step, ...]:
    """The steps of all kinds of layers, each once; those of one kind first, in execution order."""
    kinds = graph.ir.layers
    has = {kind: {key for key, *_ in _sequence(graph, kind)} for kind in kinds}
    steps: dict[_Key, Step] = {}
    starts: dict[str, Node] = {}
    for kind in (main, *(kind for kind in kinds if kind is not main)):
        for key, name, column, module in _sequence(graph, kind):
            if key in steps:
                continue
            number = len(steps)
            timings: dict[str, Timing] = {}
            for phase, work in _phases(graph).items():
                timing = _timing(f"{phase}.{number}", name, _block_of(key, work, module))
                if kind is main:
                    timing = _drawn(f"{phase}.{number}", name, timing, starts.get(phase))
                    assert timing.start is not None
                    starts[phase] = timing.start + timing.time
                timings[phase] = timing
            steps[key] = Step(
                name=defined(f"layers.name.{number}", f"Step {number}", "1", name, name="steps"),
                column=defined(f"layers.column.{number}", f"Step {number} belongs to", "1", column),
                within=tuple(
                    defined(
                        f"layers.within.{place}.{number}",
                        f"{name} in {kind.name}",
                        "flag",
                        int(key in has[kind]),
                    )
                    for place, kind in enumerate(kinds)
                ),
                timings=timings,
            )
    return tuple(steps.values())


def _timing(identifier: str, name: str, block: Block) -> Timing:
    """Time and limit of a step; a lone rank sends no messages."""
    time = Quantity(f"layers.step.{identifier}", f"Time of {name}", "us", block.layer_time * MICRO)
    limit = where(block.layer_time > 0, block.bound, "–") if block.network else block.bound
    bound = Quantity(f"layers.bound.{identifier}", f"Bound of {name}", "1", limit)
    size = where(block.layer_time > 0, block.bytes, 0) if block.network and block.bytes is not None else None
    return Timing(block, time, bound, None, size, {})


def _drawn(identifier: str, name: str, timing: Timing, start: Node | None) -> Timing:
    """The same with its start in the layer, and its time under the limit that binds it."""
    time = timing.time
    parts = {
        limit: Quantity(
            f"layers.part.{limit}.{identifier}",
            f"{name}, {limit}",
            "us",
            where(equal(timing.bound, limit), time, 0),
        )
        for limit in _can_bind(timing.block)
    }
    begin = Quantity(
        f"layers.start.{identifier}", f"Start of {name}", "us", time - time if start is None else start
    )
    return Timing(timing.block, time, timing.bound, begin, timing.sent, parts)


def _can_bind(block: Block) -> tuple[str, ...]:
    """The limits that can bind a step."""
    if block.network:
        return (NETWORK,)
    can = {COMPUTE: block.compute, MEMORY: block.memory, OVERHEAD: block.launch}
    return tuple(limit for limit in LIMITS if can.get(limit) is not None)


def _block(phase: Pass, identifier: str) -> Block:
    return next(block for block in phase.blocks if block.id == identifier)


# --- what runs once -----------------------------------------------------------------------------------------


def _end(identifier: str, label: str, times: Mapping[str, tuple[Node, Quantity]]) -> End:
    """What runs once, from its seconds and the figure that these are of, by phase."""
    shown: dict[str, tuple[Quantity | Input, Quantity | None]] = {}
    for phase in PHASES:
        name, words = f"layers.{identifier}.{phase}", f"{label}, {phase}"
        shown[phase] = (defined(name, words, "us", 0), None)
        if phase in times:
            seconds, source = times[phase]
            shown[phase] = (Quantity(name, words, "us", seconds * MICRO), source)
    return End(label, shown)


def _once(graph: EstimateGraph, identifier: str, label: str, phases: Sequence[str] = ()) -> End:
    """A block that runs once in a pass."""
    times = {
        name: (block.time, block.time)
        for name, phase in _phases(graph).items()
        if not phases or name in phases
        for block in (_block(phase, identifier),)
    }
    return _end(identifier, label, times)


def _first(graph: EstimateGraph) -> Iterator[End]:
    """What stands before the layers."""
    phases = _phases(graph)
    steps = {name: (phase.times.figures[-1], phase.times.figures[-1]) for name, phase in phases.items()}
    yield _end("step", "Step overhead", steps)
    if graph.ir.vision is not None and any(block.id == "vision" for block in graph.prefill.blocks):
        yield _once(graph, "vision", "Vision tower", ("prefill",))
    yield _end(
        "embedding",
        "Embedding, its messages",
        {
            name: (block.time + phase.after["attention"].layer_time, block.time)
            for name, phase in phases.items()
            for block in (_block(phase, "embedding"),)
        },
    )


def _last(graph: EstimateGraph) -> Iterator[End]:
    """What stands after the layers, and what a pass takes beside them."""
    for module in graph.ir.modules:
        if module.layers is None and module.id != "embedding":
            yield _once(graph, module.id, module.label)
    beside = {"context": "Context exchange", "host": "Host memory", "p2p": "Stage to stage"}
    for identifier, label in beside.items():
        if any(block.id == identifier for block in graph.decode.blocks):
            yield _once(graph, identifier, label)


# --- a phase ------------------------------------------------------------------------------------------------


class _Matrix:
    """A phase while it is made."""

    def __init__(
        self,
        graph: EstimateGraph,
        phase: Pass,
        heads: tuple[Input, ...],
        steps: tuple[Step, ...],
        main: Layer,
    ) -> None:
        self.kinds, self.phase, self.heads, self.steps, self.main = graph.ir.layers, phase, heads, steps, main
        self.name = phase.phase.id
        self.timings = [step.timings[self.name] for step in steps]
        self.times = span([timing.time for timing in self.timings])
        self.bounds = span([timing.bound for timing in self.timings])
        self.of_column = span([step.column for step in steps])

    def made(self, before: Sequence[End], after: Sequence[End]) -> PhaseMatrix:
        """The phase.

        Args:
            before, after: what runs once in it.
        """
        name, phase = self.name, self.phase
        groups = {kind: self._group(place, kind) for place, kind in enumerate(self.kinds)}
        time = Quantity(f"layers.pass.{name}", f"Whole pass, {name}", "ms", phase.time * MILLI)
        columns = tuple(
            Quantity(
                f"layers.pass.{name}.{place}",
                f"Whole pass, {name}, {head.value}",
                "ms",
                sum_of([cell for group in groups.values() if (cell := group.all_cells[place]) is not None]),
            )
            for place, head in enumerate(self.heads)
        )
        ends = [sum_range(span([end.times[name][0] for end in part])) for part in (before, after)]
        shown = Quantity(
            f"layers.shown.{name}",
            f"Sum of groups and ends, {name}",
            "ms",
            sum_range(*(group.all_time for group in groups.values())) + sum_of(ends) / MICRO * MILLI,
        )
        same = absolute(shown - time) <= TOLERANCE * time
        sheet = name.capitalize()
        limits = {limit: phase.parts[limit] / phase.time for limit in LIMITS}
        return PhaseMatrix(
            title=Quantity(
                f"layers.title.pass.{name}",
                "Title",
                "1",
                join(f"{name}: ", rounded(time, 1), " ms a step" if name == "decode" else " ms a pass"),
            ),
            layer_title=self._layer_title(),
            groups=groups,
            columns=columns,
            shares=tuple(column / time for column in (*columns, time)),
            time=time,
            shown=shown,
            sums=where(same, f"✓ sums to {sheet}", f"✗ does not sum to {sheet}"),
            limits=limits,
        )

    def _group(self, place: int, kind: Layer) -> Group:
        """One layer of a kind, and all of them."""
        label = f"{kind.name}, {self.name}"
        within = span([step.within[place] for step in self.steps])
        columns = {str(step.column.value) for step in self.steps if step.within[place].value}
        time = Quantity(
            f"layers.layer.{place}.{self.name}", f"One layer, {label}", "us", sum_where(self.times, within, 1)
        )
        cells: list[Quantity | Input] = []
        everywhere: list[Quantity | None] = []
        bars: dict[tuple[int, str], Quantity] = {}
        for number, head in enumerate(self.heads):
            identifier, words = f"{place}.{self.name}.{number}", f"{head.value} of {label}"
            if head.value not in columns:
                cells.append(defined(f"layers.none.{identifier}", f"No {words}", "us", 0))
                everywhere.append(None)
                continue
            keys = (self.of_column, head, within, 1)
            cell = Quantity(f"layers.cell.{identifier}", words, "us", sum_where(self.times, *keys))
            cells.append(cell)
            everywhere.append(
                Quantity(f"layers.all.{identifier}", f"All, {words}", "ms", cell * kind.count / MICRO * MILLI)
            )
            for limit in self._limits(place, str(head.value)):
                bars[number, limit] = Quantity(
                    f"layers.bar.{identifier}.{limit}",
                    f"{words}, {limit}",
                    "us",
                    sum_where(self.times, *keys, self.bounds, limit),
                )
        all_time = Quantity(
            f"layers.all.{place}.{self.name}", f"All layers, {label}", "ms", time * kind.count / MICRO * MILLI
        )
        return Group(tuple(cells), bars, time, tuple(everywhere), all_time)

    def _limits(self, place: int, column: str) -> tuple[str, ...]:
        """What can bind steps of a column in a kind of layer."""
        can = {
            limit
            for step, timing in zip(self.steps, self.timings, strict=True)
            if step.within[place].value and step.column.value == column
            for limit in _can_bind(timing.block)
        }
        return tuple(limit for limit in LIMITS if limit in can)

    def _layer_title(self) -> Quantity:
        """How long a layer of the main kind takes, and which step of it the longest."""
        drawn = [
            (step.name, timing)
            for step, timing in zip(self.steps, self.timings, strict=True)
            if timing.start is not None
        ]
        times, names = span([timing.time for _, timing in drawn]), span([name for name, _ in drawn])
        body = join(
            f"{self.name.capitalize()}, {layer_words(self.main)}: ",
            text(sum_range(times)),
            " us, longest ",
            index(names, match(maximum(times), times)),
            " ",
            rounded(maximum(times), 1),
            " us",
        )
        return Quantity(f"layers.title.layer.{self.name}", "Title", "1", body)
