"""Which accelerator holds what: its replica, stage, ranks, and the slices of layers, heads, experts and memory it has.

Accelerators are counted from 0: tensor-parallel ranks stand next to each other, then attention-DP groups, then CP groups, then
stages, then replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.constant import GIGA, RANKS_TO_ACCELERATORS
from mantile.equations.display import converted, in_unit
from mantile.equations.graph import EstimateGraph
from mantile.equations.roofline import Block
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    all_of,
    floor,
    index,
    join,
    maximum,
    minimum,
    remainder,
    span,
    sum_of,
    text,
    where,
)
from mantile.ir.modules import ModelGraph

MOST_SHOWN = 72
BAND = 8  # accelerators side by side


@dataclass(frozen=True)
class Line:
    """One property of every accelerator.

    Args:
        short: part of the short form that large systems are shown in; `only_short` of nothing else.
        memory: an amount of memory in GB, not a slice.
    """

    name: str
    label: str
    rule: str
    form: str
    figures: tuple[Quantity, ...]
    short: bool = False
    only_short: bool = False
    memory: bool = False


@dataclass(frozen=True)
class Placement:
    """Accelerators by number, and what each holds."""

    accelerators: tuple[Input, ...]
    lines: tuple[Line, ...]

    def line(self, name: str) -> Line:
        """A line by name."""
        return next(line for line in self.lines if line.name == name)


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
    """A kind of message: between which ranks, and how it is sent in each phase."""

    label: str
    between: str
    prefill: SentMessage
    decode: SentMessage


def messages(graph: EstimateGraph) -> tuple[Message, ...]:
    """Every kind of message of both phases: over which links, how large, how often, how long."""
    decode = {block.id: block for block in graph.decode.blocks}
    return tuple(
        Message(block.label, block.section.note, _sent(block), _sent(decode[block.id]))
        for block in graph.prefill.blocks
        if block.network
    )


def _sent(block: Block) -> SentMessage:
    rows = {figure.id.rpartition(".")[2]: figure for figure in block.section.figures()}
    sent = all_of(rows["count"] > 0, rows["layer_time"] > 0)
    size = rows.get("message_bytes", block.bytes)
    return SentMessage(
        algorithm=where(sent, rows["algorithm"], "–") if "algorithm" in rows else None,
        size=None if size is None else where(sent, size, 0),
        number=where(sent, rows["count"], 0),
        time=converted(where(sent, rows["layer_time"], 0), "s", "us"),
    )


def title(side: Workers, prefix: str, words: str) -> Quantity:
    """The degrees of parallelism in words, and what the fullest accelerator holds.

    Args:
        prefix: what the id begins with.
        words: what the title begins with.
    """
    inputs, ranks = side.inputs, side.ranks
    body = join(
        words,
        "TP ",
        text(inputs.tp, "0"),
        " × groups ",
        text(ranks.groups, "0"),
        " × stages ",
        text(inputs.pp, "0"),
        " × replicas ",
        text(inputs.dp, "0"),
        "; ",
        text(in_unit(side.memory.used, "GB"), "0.0"),
        " GB used on the fullest accelerator",
    )
    return Quantity(f"{prefix}.title", "Title", "1", body)


def placement(side: Workers, ir: ModelGraph, prefix: str, count: int) -> Placement:
    """What each of the first `count` accelerators holds.

    Args:
        prefix: what ids begin with.
    """
    plan, held, inputs, ranks, facts = side.plan, side.memory, side.inputs, side.ranks, ir.facts
    gpus = tuple(
        Input(f"{prefix}.number.{number}", f"Accelerator {number}", "number", number, shared=True, fixed=True)
        for number in range(count)
    )
    made: dict[str, Line] = {}

    def line(
        name: str,
        label: str,
        rule: str,
        form: str,
        body: Callable[[int, Input], Node],
        unit: str = "1",
        short: bool = False,
        only_short: bool = False,
        memory: bool = False,
    ) -> tuple[Quantity, ...]:
        figures = tuple(
            Quantity(f"{prefix}.{name}.{number}", f"{label}, accelerator {number}", unit, body(number, gpu))
            for number, gpu in enumerate(gpus)
        )
        made[name] = Line(name, label, rule, form, figures, short or only_short, only_short, memory)
        return figures

    used = line(
        "used",
        "In use",
        "1 if the plan uses it",
        "used",
        lambda i, gpu: where(gpu < ranks.deployment / RANKS_TO_ACCELERATORS, 1, 0),
        "flag",
        short=True,
    )

    def if_used(index: int, words: Node) -> Node:
        return where(used[index] > 0, words, "–")

    def run(low: Node, high: Node) -> Node:
        return join(text(low, "0"), " – ", text(high, "0"))

    line(
        "domain",
        "Domain",
        "number ÷ accelerators of a domain",
        "domain",
        lambda i, gpu: floor(gpu * RANKS_TO_ACCELERATORS / side.hardware.system_accelerators),
        "number",
    )
    line(
        "replica",
        "Replica",
        "number ÷ ranks of a replica",
        "replica",
        lambda i, gpu: floor(gpu / ranks.replica),
        "number",
    )
    stage = line(
        "stage",
        "Pipeline stage",
        "number; colour = stage",
        "stage",
        lambda i, gpu: floor(remainder(gpu, ranks.replica) / ranks.stage),
        "number",
        short=True,
    )
    rank = line(
        "rank",
        "Tensor-parallel rank",
        "remainder of number ÷ TP",
        "rank",
        lambda i, gpu: remainder(gpu, inputs.tp),
        "number",
    )
    place = line(
        "place",
        "Rank in its stage",
        "remainder of number ÷ ranks of a stage",
        "rank",
        lambda i, gpu: remainder(gpu, ranks.stage),
        "number",
    )

    def group(gpu: Input) -> Node:
        return remainder(floor(remainder(gpu, ranks.stage) / inputs.tp), inputs.attention_dp)

    line(
        "group", "Attention-DP group", "rank in its stage ÷ TP", "group", lambda i, gpu: group(gpu), "number"
    )
    line(
        "short_place",
        "Replica, group, TP rank",
        "as for the first eight",
        "text",
        lambda i, gpu: if_used(
            i,
            join(
                "r",
                text(floor(gpu / ranks.replica), "0"),
                " g",
                text(group(gpu), "0"),
                " t",
                text(remainder(gpu, inputs.tp), "0"),
            ),
        ),
        only_short=True,
    )
    line(
        "context",
        "Context-parallel part",
        "rank in its stage ÷ (TP × attention-DP)",
        "part",
        lambda i, gpu: floor(place[i] / (inputs.tp * inputs.attention_dp)),
        "number",
    )
    kinds = list(plan.stages.layers.values())

    def layers_before(i: int) -> Node:
        """Layers on the stages before."""
        return index(span(plan.stages.before), stage[i] + 1)

    def layers_on(i: int) -> Node:
        return sum_of([index(span(figures), stage[i] + 1) for figures in kinds])

    line(
        "layer_count",
        "Layers held",
        "layers of the stage, of all kinds",
        "layers",
        lambda i, gpu: used[i] * layers_on(i),
        "layer",
    )
    line(
        "layers",
        "Layers",
        "from – to, in order of stages",
        "text",
        lambda i, gpu: if_used(i, run(layers_before(i) + 1, layers_before(i) + layers_on(i))),
        short=True,
    )
    heads, kv_heads = plan.heads, plan.kv_heads
    if heads is not None:
        line(
            "heads",
            "Query heads",
            "heads ÷ TP",
            "text",
            lambda i, gpu: if_used(
                i, run(rank[i] * heads, minimum(facts["attention_heads"], (rank[i] + 1) * heads) - 1)
            ),
        )
    if kv_heads is not None:
        first = line(
            "kv_first",
            "First KV head",
            "TP rank × KV heads ÷ TP",
            "0",
            lambda i, gpu: used[i] * floor(rank[i] * facts["kv_heads"] / inputs.tp),
            "head",
        )
        line(
            "kv_last",
            "Last KV head",
            "copied where there are more ranks than heads",
            "0",
            lambda i, gpu: used[i] * (minimum(facts["kv_heads"], first[i] + kv_heads) - 1),
            "head",
        )
    shards = (
        ("ffn_size", "FFN columns", "columns ÷ ranks of a stage", place),
        ("vocabulary", "Vocabulary rows", "rows ÷ TP; first and last stage", rank),
    )
    for name, label, rule, number in shards:
        if name in plan.columns:
            line(
                name,
                label,
                rule,
                "text",
                lambda i, gpu, name=name, number=number: if_used(  # type: ignore[misc]
                    i,
                    run(
                        number[i] * plan.columns[name],
                        minimum(facts[name], (number[i] + 1) * plan.columns[name]) - 1,
                    ),
                ),
            )
    if plan.experts is not None:
        experts, together = plan.experts.per_rank, plan.experts.ranks.tp

        def experts_from(gpu: Input) -> Node:
            return floor(remainder(gpu, ranks.stage) / together) * experts

        line(
            "experts",
            "Experts",
            "experts ÷ EP, by rank in its stage",
            "text",
            lambda i, gpu: if_used(
                i, run(experts_from(gpu), minimum(facts["experts"], experts_from(gpu) + experts) - 1)
            ),
            short=True,
        )
        if "expert_size" in plan.columns:
            share = plan.columns["expert_size"]
            line(
                "expert_columns",
                "Columns of an expert",
                "columns ÷ ranks that share it",
                "text",
                lambda i, gpu: if_used(
                    i,
                    run(
                        remainder(place[i], together) * share,
                        minimum(facts["expert_size"], (remainder(place[i], together) + 1) * share) - 1,
                    ),
                ),
            )

    def weights(i: int) -> Node:
        return used[i] * maximum(0, index(span(held.stage_weights), stage[i] + 1) - held.host_weights) / GIGA

    def cache(i: int) -> Node:
        return (
            used[i]
            * maximum(0, held.rank_requests * index(span(held.stage_kv), stage[i] + 1) - held.host_kv)
            / GIGA
        )

    working = (held.activations + held.logits + held.reserve) / GIGA
    line("weights", "Weights", "GB", "GB", lambda i, gpu: weights(i), "GB", memory=True)
    line("kv", "KV cache", "GB, for the batch", "GB", lambda i, gpu: cache(i), "GB", memory=True)
    line(
        "working",
        "Activations, logits, runtime",
        "GB",
        "GB",
        lambda i, gpu: used[i] * working,
        "GB",
        memory=True,
    )
    line(
        "sum",
        "Used",
        "GB; bar = share of capacity",
        "GB",
        lambda i, gpu: weights(i) + cache(i) + used[i] * working,
        "GB",
        short=True,
        memory=True,
    )
    return Placement(gpus, tuple(made.values()))


def shown(side: Workers, values: Mapping[Node, Any]) -> int:
    """How many accelerators to show: the domain and all in use, in full bands, as far as can be read."""
    domain, used = (
        float(values[figure]) for figure in (side.hardware.system_accelerators, side.ranks.deployment)
    )
    most = min(MOST_SHOWN, max(BAND, int(min(domain, MOST_SHOWN)), int(used)))
    return -(-most // BAND) * BAND
