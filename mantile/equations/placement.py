"""Which accelerator holds what: its replica, stage and ranks, its slices of the model, its memory.

Accelerators are counted from 0: tensor-parallel ranks stand next to each other, then attention-DP
groups, then CP groups, then stages, then replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.constant import RANKS_TO_ACCELERATORS
from mantile.equations.display import converted, in_unit
from mantile.equations.graph import EstimateGraph
from mantile.equations.roofline import Block
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    all_of,
    as_node,
    floor,
    index,
    join,
    maximum,
    minimum,
    remainder,
    rounded,
    span,
    sum_of,
    text,
    where,
)
from mantile.ir.modules import ModelGraph

MOST_SHOWN = 72
ALL_SHOWN = "all accelerators in use are shown"
BAND = 8  # accelerators side by side


@dataclass(frozen=True)
class Line:
    """One property of every accelerator.

    Args:
        memory: an amount of memory in GB, not a slice.
    """

    name: str
    label: str
    rule: str
    figures: tuple[Quantity, ...]
    memory: bool = False


@dataclass(frozen=True)
class Placement:
    """Accelerators by number, and what each holds."""

    accelerators: tuple[Input, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class SentMessage:
    """A kind of message in a phase, as an accelerator sends it; a lone rank sends none.

    Args:
        algorithm: by which it is sent, where there is a choice.
        size: bytes of one message, where it has a size.
        number: of messages; `time` of one in us.
    """

    algorithm: Node | None
    size: Node | None
    number: Node
    time: Node


@dataclass(frozen=True)
class Message:
    """A kind of message: between which ranks, and how it is sent in each phase; None: not in this one."""

    label: str
    between: str
    prefill: SentMessage | None
    decode: SentMessage | None


def messages(graph: EstimateGraph) -> tuple[Message, ...]:
    """Every kind of message of both phases: over which links, how large, how often, how long."""
    prefill, decode = (
        {block.id: block for block in phase.blocks if block.network}
        for phase in (graph.prefill, graph.decode)
    )
    return tuple(
        Message(block.label, block.section.note, _sent(prefill.get(name)), _sent(decode.get(name)))
        for name, block in (prefill | decode).items()
    )


def _sent(block: Block | None) -> SentMessage | None:
    if block is None:
        return None
    rows = {figure.id.rpartition(".")[2]: figure for figure in block.section.figures()}
    sent = all_of(rows["count"] > 0, rows["layer_time"] > 0)
    size = rows.get("message_bytes", block.bytes)
    return SentMessage(
        algorithm=where(sent, rows["algorithm"], "–") if "algorithm" in rows else None,
        size=None if size is None else where(sent, size, 0),
        number=where(sent, rows["count"], 0),
        time=converted(where(sent, rows["layer_time"], 0), "s", "us"),
    )


def title(workers: Workers, prefix: str, start: str) -> Quantity:
    """The degrees of parallelism in words, and what the fullest accelerator holds.

    Args:
        prefix: what the id begins with.
        start: what the title begins with.
    """
    inputs, ranks = workers.inputs, workers.ranks
    body = join(
        start,
        "TP ",
        text(inputs.tp),
        " × groups ",
        text(ranks.groups),
        " × stages ",
        text(inputs.pp),
        " × replicas ",
        text(inputs.dp),
        "; ",
        rounded(in_unit(workers.rows["memory.used"], "GB"), 1),
        " GB used on the fullest accelerator",
    )
    return Quantity(f"{prefix}.title", "Title", "1", body)


def beyond(workers: Workers, last: Node, prefix: str) -> Quantity:
    """How many accelerators in use are not among those shown, in words.

    Args:
        last: number of the last one shown; `prefix` what the id begins with.
    """
    left = workers.ranks.deployment / RANKS_TO_ACCELERATORS - last - 1
    words = join("! ", text(left), " more accelerators are not shown")
    return Quantity(f"{prefix}.beyond", "Accelerators not shown", "1", where(left > 0, words, ALL_SHOWN))


def room(workers: Workers, rows: Equations, values: Mapping[Node, Any]) -> int:
    """How many accelerators Layers has room for: all that a system can join, as far as can be read.

    Args:
        values: of the scenario. Without a network between domains no more than one domain.
    """
    domain, out = (
        float(values[figure])
        for figure in (workers.rows["hardware.accelerators"], rows[f"{workers.prefix}network.out"])
    )
    most = MOST_SHOWN if out > 0 else max(int(min(domain, MOST_SHOWN)), int(values[workers.ranks.deployment]))
    return -(-min(MOST_SHOWN, max(BAND, most)) // BAND) * BAND


@dataclass(frozen=True)
class Further:
    """Accelerators behind the first band in short, and what each stage holds.

    Args:
        title: which of them are in use, in words.
        numbers: of the accelerators; `stage` -1 where one is not in use.
        place: replica, attention group and TP rank; `experts` empty in a model without any.
        layers, held, used: of each stage, from 0; texts, GB of weights and KV cache, and GB of all.
    """

    title: Quantity
    numbers: tuple[Input, ...]
    stage: tuple[Quantity, ...]
    place: tuple[Quantity, ...]
    experts: tuple[Quantity, ...]
    layers: tuple[Quantity, ...]
    held: tuple[Quantity, ...]
    used: tuple[Quantity, ...]


def further(workers: Workers, ir: ModelGraph, prefix: str, start: str, last: int) -> Further:
    """Accelerators from the ninth to number `last`.

    Args:
        prefix: what ids begin with; `start` what the title begins with.
    """
    ranks, inputs = workers.ranks, workers.inputs
    in_use = ranks.deployment / RANKS_TO_ACCELERATORS
    numbers = tuple(_numbered(prefix, number) for number in range(BAND, last + 1))
    one = text(minimum(in_use - 1, numbers[-1]))
    some = where(
        in_use > numbers[0],
        join("accelerators 8 – ", one, " in short"),
        "no accelerator behind the first eight",
    )

    def each(name: str, label: str, bodies: Iterable[Node], unit: str = "1") -> tuple[Quantity, ...]:
        return tuple(
            Quantity(f"{prefix}.{name}.{at.value}", f"{label}, accelerator {at.value}", unit, body)
            for at, body in zip(numbers, bodies, strict=True)
        )

    stages = [floor(remainder(number, ranks.replica) / ranks.stage) for number in numbers]
    stage = each(
        "stage_in_use",
        "Stage if it is in use",
        (where(at < in_use, its, as_node(0) - 1) for at, its in zip(numbers, stages, strict=True)),
        "number",
    )
    groups = (remainder(floor(remainder(at, ranks.stage) / inputs.tp), inputs.attention_dp) for at in numbers)
    parts = (
        (
            "r",
            text(floor(at / ranks.replica)),
            " g",
            text(group),
            " t",
            text(remainder(at, inputs.tp)),
        )
        for at, group in zip(numbers, groups, strict=True)
    )
    place = each(
        "place_in_use",
        "Replica, group, TP rank",
        (where(its >= 0, join(*words), "–") for its, words in zip(stage, parts, strict=True)),
    )
    experts: tuple[Quantity, ...] = ()
    if workers.plan.experts is not None:
        per_rank, sharing = workers.plan.experts.per_rank, workers.plan.experts.ranks.tp
        first = [floor(remainder(at, ranks.stage) / sharing) * per_rank for at in numbers]
        held = ((expert, minimum(ir.facts["experts"], expert + per_rank) - 1) for expert in first)
        bodies = (_run(run, its >= 0) for its, run in zip(stage, held, strict=True))
        experts = each("experts_in_use", "Experts", bodies)
    of_stages = _held_of_stages(workers, prefix)
    return Further(
        title=Quantity(f"{prefix}.further", "Further accelerators", "1", join(start, some)),
        numbers=numbers,
        stage=stage,
        place=place,
        experts=experts,
        layers=_layers_of_stages(workers, prefix),
        held=of_stages,
        used=_used_of_stages(workers, prefix, of_stages),
    )


def _layers_of_stages(workers: Workers, prefix: str) -> tuple[Quantity, ...]:
    stages = workers.plan.stages
    kinds = list(stages.layers.values())
    bodies = []
    for place, (number, before) in enumerate(zip(stages.numbers, stages.before, strict=True)):
        count = sum_of([figures[place] for figures in kinds])
        bodies.append(_run((before + 1, before + count), number < workers.inputs.pp))
    return tuple(
        Quantity(f"{prefix}.stage_layers.{number}", f"Layers of stage {number}", "1", body)
        for number, body in enumerate(bodies)
    )


def _held_of_stages(workers: Workers, prefix: str) -> tuple[Quantity, ...]:
    memory = workers.memory
    return tuple(
        Quantity(
            f"{prefix}.stage_held.{number}",
            f"Weights and KV cache on an accelerator of stage {number}",
            "GB",
            converted(
                maximum(0, weights - workers.rows["memory.host_weights"])
                + maximum(0, workers.rows["memory.seats"] * cache - workers.rows["memory.host_kv"]),
                "B",
                "GB",
            ),
        )
        for number, (weights, cache) in enumerate(zip(memory.stage_weights, memory.stage_kv, strict=True))
    )


def _used_of_stages(workers: Workers, prefix: str, held: Sequence[Quantity]) -> tuple[Quantity, ...]:
    numbers = workers.plan.stages.numbers
    working = converted(
        workers.rows["memory.activations"] + workers.rows["memory.logits"] + workers.rows["memory.reserve"],
        "B",
        "GB",
    )
    return tuple(
        Quantity(
            f"{prefix}.stage_used.{place}",
            f"Used by an accelerator of stage {place}",
            "GB",
            where(number < workers.inputs.pp, its + working, 0),
        )
        for place, (number, its) in enumerate(zip(numbers, held, strict=True))
    )


def _numbered(prefix: str, number: int) -> Input:
    return Input(
        f"{prefix}.number.{number}", f"Accelerator {number}", "number", number, shared=True, fixed=True
    )


_Run = tuple[Node, Node]
"""The first and the last of what an accelerator holds; nothing where the last is below the first."""


class _Lines:
    """The lines while they are made: of each a quantity for every accelerator.

    Args:
        prefix: what ids begin with.
        count: of accelerators.
    """

    def __init__(self, workers: Workers, ir: ModelGraph, prefix: str, count: int) -> None:
        self.workers, self.facts, self.prefix = workers, ir.facts, prefix
        self.accelerators = tuple(_numbered(prefix, number) for number in range(count))
        self.lines: list[Line] = []

    def add(
        self,
        name: str,
        label: str,
        rule: str,
        bodies: Iterable[Node],
        unit: str = "1",
        *,
        memory: bool = False,
    ) -> tuple[Quantity, ...]:
        """A line.

        Args:
            bodies: of the accelerators, in order.
            unit: of the figures; the rest is as for `Line`.
        """
        figures = tuple(
            Quantity(f"{self.prefix}.{name}.{number}", f"{label}, accelerator {number}", unit, body)
            for number, body in enumerate(bodies)
        )
        self.lines.append(Line(name, label, rule, figures, memory))
        return figures

    def texts(
        self,
        name: str,
        label: str,
        rule: str,
        used: Sequence[Node],
        runs: Iterable[_Run],
    ) -> None:
        """A line of runs; a dash where an accelerator is not in use, or holds nothing of it."""
        bodies = (_run(held, flag > 0) for flag, held in zip(used, runs, strict=True))
        self.add(name, label, rule, bodies)


@dataclass(frozen=True)
class _Ranks:
    """Of every accelerator whether it is in use, its stage, its TP rank, and its rank in the stage."""

    used: tuple[Quantity, ...]
    stage: tuple[Quantity, ...]
    tp: tuple[Quantity, ...]
    place: tuple[Quantity, ...]


def placement(workers: Workers, ir: ModelGraph, prefix: str, count: int) -> Placement:
    """What each of the first `count` accelerators holds.

    Args:
        prefix: what ids begin with.
    """
    lines = _Lines(workers, ir, prefix, count)
    ranks = _ranks(lines)
    _groups(lines, ranks)
    _layers(lines, ranks)
    _heads(lines, ranks)
    _columns(lines, ranks)
    _experts(lines, ranks)
    _memory(lines, ranks)
    return Placement(lines.accelerators, tuple(lines.lines))


def _ranks(lines: _Lines) -> _Ranks:
    """Whether an accelerator is in use; its domain, replica, stage and ranks."""
    ranks, inputs, numbers = lines.workers.ranks, lines.workers.inputs, lines.accelerators
    in_use = ranks.deployment / RANKS_TO_ACCELERATORS
    domain = lines.workers.rows["hardware.accelerators"]
    used = lines.add(
        "used",
        "In use",
        "1 if the plan uses it",
        (where(number < in_use, 1, 0) for number in numbers),
        "flag",
    )
    lines.add(
        "domain",
        "Domain",
        "number ÷ accelerators of a domain",
        (floor(number * RANKS_TO_ACCELERATORS / domain) for number in numbers),
        "number",
    )
    lines.add(
        "replica",
        "Replica",
        "number ÷ ranks of a replica",
        (floor(number / ranks.replica) for number in numbers),
        "number",
    )
    stage = lines.add(
        "stage",
        "Pipeline stage",
        "number; colour = stage",
        (floor(remainder(number, ranks.replica) / ranks.stage) for number in numbers),
        "number",
    )
    tp = lines.add(
        "rank",
        "Tensor-parallel rank",
        "remainder of number ÷ TP",
        (remainder(number, inputs.tp) for number in numbers),
        "number",
    )
    place = lines.add(
        "place",
        "Rank in its stage",
        "remainder of number ÷ ranks of a stage",
        (remainder(number, ranks.stage) for number in numbers),
        "number",
    )
    return _Ranks(used, stage, tp, place)


def _groups(lines: _Lines, ranks: _Ranks) -> None:
    """The attention-DP group and the context-parallel part."""
    inputs, numbers, stage = lines.workers.inputs, lines.accelerators, lines.workers.ranks.stage
    groups = [
        remainder(floor(remainder(number, stage) / inputs.tp), inputs.attention_dp) for number in numbers
    ]
    lines.add("group", "Attention-DP group", "rank in its stage ÷ TP", groups, "number")
    lines.add(
        "context",
        "Context-parallel part",
        "rank in its stage ÷ (TP × attention-DP)",
        (floor(place / (inputs.tp * inputs.attention_dp)) for place in ranks.place),
        "number",
    )


def _layers(lines: _Lines, ranks: _Ranks) -> None:
    """How many layers a stage has, and which."""
    stages = lines.workers.plan.stages
    kinds = list(stages.layers.values())
    before = [index(span(stages.before), stage + 1) for stage in ranks.stage]
    counts = [sum_of([index(span(figures), stage + 1) for figures in kinds]) for stage in ranks.stage]
    lines.add(
        "layer_count",
        "Layers held",
        "layers of the stage, of all kinds",
        (used * count for used, count in zip(ranks.used, counts, strict=True)),
        "layer",
    )
    lines.texts(
        "layers",
        "Layers",
        "from – to, in order of stages",
        ranks.used,
        ((first + 1, first + count) for first, count in zip(before, counts, strict=True)),
    )


def _heads(lines: _Lines, ranks: _Ranks) -> None:
    """Query and KV heads of a TP rank."""
    plan, facts = lines.workers.plan, lines.facts
    if plan.heads is not None:
        lines.texts(
            "heads",
            "Query heads",
            "heads ÷ TP",
            ranks.used,
            [_slice(rank, plan.heads, facts["attention_heads"]) for rank in ranks.tp],
        )
    if plan.kv_heads is None:
        return
    kv_heads = facts["kv_heads"]
    first = lines.add(
        "kv_first",
        "First KV head",
        "TP rank × KV heads ÷ TP",
        (
            used * floor(rank * kv_heads / lines.workers.inputs.tp)
            for used, rank in zip(ranks.used, ranks.tp, strict=True)
        ),
        "head",
    )
    lines.add(
        "kv_last",
        "Last KV head",
        "copied where there are more ranks than heads",
        [
            used * (minimum(kv_heads, head + plan.kv_heads) - 1)
            for used, head in zip(ranks.used, first, strict=True)
        ],
        "head",
    )


def _columns(lines: _Lines, ranks: _Ranks) -> None:
    """Columns of the FFN and rows of the vocabulary, on the stages that hold any."""
    plan, pp = lines.workers.plan, lines.workers.inputs.pp
    if "ffn_size" in plan.columns:
        counts = [plan.stages.layers[kind] for kind in plan.holders["ffn_size"]]
        dense = [sum_of([index(span(count), stage + 1) for count in counts]) for stage in ranks.stage]
        rule = "columns ÷ ranks, on stages with such layers"
        _sliced(lines, ranks, "ffn_size", "FFN columns", rule, dense)
    between = [stage * (pp - 1 - stage) for stage in ranks.stage]  # 0 at both ends
    ends = [1 - minimum(1, inner) for inner in between]
    _sliced(lines, ranks, "vocabulary", "Vocabulary rows", "rows ÷ TP; first and last stage", ends)


def _sliced(lines: _Lines, ranks: _Ranks, name: str, label: str, rule: str, holding: Sequence[Node]) -> None:
    """A line of slices of a dimension, of the stages that hold any of it."""
    plan = lines.workers.plan
    used = [flag * held for flag, held in zip(ranks.used, holding, strict=True)]
    slices = [
        _slice(remainder(place, plan.shared[name]), plan.columns[name], lines.facts[name])
        for place in ranks.place
    ]
    lines.texts(name, label, rule, used, slices)


def _experts(lines: _Lines, ranks: _Ranks) -> None:
    """Routed experts of a rank, and the columns of one where ranks share it."""
    plan, facts = lines.workers.plan, lines.facts
    if plan.experts is None:
        return
    per_rank, sharing = plan.experts.per_rank, plan.experts.ranks.tp
    first = [
        floor(remainder(number, lines.workers.ranks.stage) / sharing) * per_rank
        for number in lines.accelerators
    ]
    lines.texts(
        "experts",
        "Experts",
        "experts ÷ EP, by rank in its stage",
        ranks.used,
        ((expert, minimum(facts["experts"], expert + per_rank) - 1) for expert in first),
    )
    if "expert_size" in plan.columns:
        size, share = facts["expert_size"], plan.columns["expert_size"]
        lines.texts(
            "expert_columns",
            "Columns of an expert",
            "columns ÷ ranks that share it",
            ranks.used,
            (_slice(remainder(place, sharing), share, size) for place in ranks.place),
        )


def _memory(lines: _Lines, ranks: _Ranks) -> None:
    """What the slices take."""
    workers, memory = lines.workers, lines.workers.memory
    working = converted(
        workers.rows["memory.activations"] + workers.rows["memory.logits"] + workers.rows["memory.reserve"],
        "B",
        "GB",
    )
    weights = [
        converted(
            used
            * maximum(0, index(span(memory.stage_weights), stage + 1) - workers.rows["memory.host_weights"]),
            "B",
            "GB",
        )
        for used, stage in zip(ranks.used, ranks.stage, strict=True)
    ]
    cache = [
        converted(
            used
            * maximum(
                0,
                workers.rows["memory.seats"] * index(span(memory.stage_kv), stage + 1)
                - workers.rows["memory.host_kv"],
            ),
            "B",
            "GB",
        )
        for used, stage in zip(ranks.used, ranks.stage, strict=True)
    ]
    rest = [used * working for used in ranks.used]
    held = (
        lines.add("weights", "Weights", "GB", weights, "GB", memory=True),
        lines.add("kv", "KV cache", "GB, for the batch", cache, "GB", memory=True),
        lines.add("working", "Activations, logits, runtime", "GB", rest, "GB", memory=True),
    )
    lines.add(
        "sum",
        "Used",
        "GB; bar = share of capacity",
        (sum_of(parts) for parts in zip(*held, strict=True)),
        "GB",
        memory=True,
    )


def _run(held: _Run, condition: Node) -> Node:
    """From – to; a dash where a condition does not hold or there is nothing between."""
    low, high = held
    return where(all_of(condition, high >= low), join(text(low), " – ", text(high)), "–")


def _slice(number: Node, size: Node, of: Node) -> _Run:
    """The slice with a number, of so many equal ones; the last one may be shorter, and others empty."""
    return number * size, minimum(of, (number + 1) * size) - 1


def shown(workers: Workers, values: Mapping[Node, Any]) -> int:
    """How many accelerators to show: the domain and all in use, in full bands, as far as can be read."""
    domain, used = (
        float(values[figure]) for figure in (workers.rows["hardware.accelerators"], workers.ranks.deployment)
    )
    most = min(MOST_SHOWN, max(BAND, int(min(domain, MOST_SHOWN)), int(used)))
    return -(-most // BAND) * BAND
