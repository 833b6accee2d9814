"""What one rank holds: heads, columns, experts, and layers by pipeline stage.

A stage has TP x attention-DP x CP ranks. Attention is split over TP and copied in every attention group; FFNs
and experts are spread over all ranks of the stage, experts over EP first and their columns over what remains.
KV heads shard as far as they go and are copied beyond; latents and indexers stand on every TP rank. Where a
degree does not divide, the fullest rank counts.

    id behind "plan"                                      function
    ---------------------------------------------------   ----------------------
    .sequence                                             plan.sequence
    .sends_tokens .expert_tp .expert_groups               plan.expert_ranks
    .shared_ranks .shared_copies                          plan.shared_ranks
    .ffn_ranks                                            plan.sharding
    .ffn .vocabulary and other columns                    plan.columns
    .heads .kv_heads .query_width and other heads         plan.heads
      .kv_copies .most_copies                               and plan.most_copies
    .experts                                              plan.experts
    .heads_left .kv_left .ffn_left .experts_left          plan.left_over
      .layers_left .ranks_left
    .stage .before .layers                                plan.stages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from mantile.equations.constant import HALF
from mantile.equations.inputs import ON, Ranks, Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    as_node,
    defined,
    equal,
    expression,
    floor,
    match_at_most,
    maximum,
    minimum,
    remainder,
    round_up,
    span,
    substitute,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import Attention, GroupedMatMul, Layer, ModelGraph, Module, Split, Width
from mantile.library.scenario_fields import MOST_STAGES

EXPERT_STEPS = ("experts_sorted", "experts_activation", "experts_summed")
"""Small kernels that work on the tokens of a rank's experts."""

Scope = Literal["attention", "stage", "shared", "experts"]
"""Ranks a module is spread over: those of an attention group, of the stage, or of EP.

Dense FFNs and shared experts of a model with experts are spread as the stage is, or as an attention group
where tokens are sent to experts.
"""


def scope(module: Module) -> Scope:
    """The ranks a module is spread over."""
    if isinstance(module.operation, GroupedMatMul) or module.step in EXPERT_STEPS:
        return "experts"
    if module.kind == "moe" and module.step in ("shared_up", "shared_activation", "shared_down"):
        return "shared"
    return "stage" if module.kind == "dense" else "attention"


@dataclass(frozen=True)
class ExpertRanks:
    """How the ranks of a stage share routed experts.

    Args:
        sends_tokens: 1 where tokens are sent to the ranks of their experts.
        tp: ranks that share an expert.
        groups: groups of experts, each on ranks of its own.
    """

    sends_tokens: Quantity
    tp: Quantity
    groups: Quantity


@dataclass(frozen=True)
class Experts:
    """Routed experts of a rank: how many, and how the ranks of a stage share them."""

    per_rank: Quantity
    ranks: ExpertRanks


@dataclass(frozen=True)
class LeftOver:
    """What a degree leaves over, 0 if it divides; None in a model without such a dimension."""

    heads: Quantity | None
    kv_heads: Quantity | None
    columns: Quantity
    experts: Quantity | None
    layers: Quantity
    ranks: Quantity
    kv_ranks: Quantity | None = None


@dataclass(frozen=True)
class Sharding:
    """Shards of the fullest rank.

    Args:
        over: how many ranks modules are spread over, by scope.
        on_ranks: what a split dimension is on a rank, by the ranks it is split over.
        copied: KV dimensions as the TP ranks together hold them, copies counted.
        splits: by what each split dimension is split.
        stages: which layers stand on which stage.
        heads, kv_heads: of attention; None in a model without.
        kv_copies: of the KV heads that have most.
        columns: columns of an FFN or the vocabulary on a rank, by fact; `shared` ranks that share them, and
            `holders` the kinds of layer that have them, by their count.
        experts: None in a model without.
        sequence: TP where sequence parallelism is on, else 1.
        left: what the degrees leave over.
    """

    over: Mapping[Scope, Node]
    on_ranks: Mapping[Scope, Mapping[Node, Node]]
    copied: Mapping[Node, Node]
    splits: Mapping[Node, Split]
    stages: Stages
    heads: Quantity | None
    kv_heads: Quantity | None
    kv_copies: Quantity | None
    columns: Mapping[str, Quantity]
    shared: Mapping[str, Node]
    holders: Mapping[str, tuple[Input, ...]]
    experts: Experts | None
    sequence: Quantity
    left: LeftOver
    sections: tuple[Section, ...]

    def on_rank(self, expression: Node, module: Module) -> Node:
        """A whole-model dimension of a module as a rank has it."""
        return substitute(expression, self.on_ranks[scope(module)])

    def splits_of(self, *dimensions: Node) -> tuple[Split, ...]:
        """By what dimensions are split, each once."""
        return tuple(
            dict.fromkeys(
                split
                for node, split in self.splits.items()
                for dimension in dimensions
                if mentions(dimension, node)
            )
        )


def mentions(body: Node, figure: Node) -> bool:
    """Whether a figure stands in an expression."""
    return any(part is figure for part in expression(body))


def sharding(ir: ModelGraph, inputs: Workload, ranks: Ranks) -> Sharding:
    """The rows of the plan, in the Memory part."""
    rows = Rows("plan")
    norms = sequence(rows, inputs)
    experts_over = expert_ranks(rows, ir, inputs, ranks)
    over = _over(rows, ir, inputs, ranks, experts_over)
    shards = _Shards(ir, rows, over)
    for width in ir.widths:
        if width.split == "columns":
            columns(shards, width)
        else:
            heads(shards, width)
    copies = most_copies(shards)
    routed = experts(shards, experts_over)
    left = left_over(shards, inputs, ranks)
    assigned = stages(ir, inputs, left.layers)
    return Sharding(
        over=over,
        on_ranks=shards.on_ranks,
        copied=shards.copied,
        splits=shards.splits,
        stages=assigned,
        heads=shards.row("heads"),
        kv_heads=shards.row("kv_heads"),
        kv_copies=copies,
        columns=shards.columns,
        shared=shards.shared,
        holders=shards.holders,
        experts=routed,
        sequence=norms,
        left=left,
        sections=(rows.section("Shards", "of the fullest rank"), assigned.section),
    )


def sequence(rows: Rows, inputs: Workload) -> Quantity:
    """Ranks that share the tokens of a norm: TP with sequence parallelism, else each has them all."""
    return rows(
        "sequence",
        "Ranks that share the tokens of a norm",
        "rank",
        where(equal(inputs.sequence_parallel, ON), inputs.tp, 1),
    )


def expert_ranks(rows: Rows, ir: ModelGraph, inputs: Workload, ranks: Ranks) -> ExpertRanks | None:
    """How the ranks of a stage share routed experts; None in a model without."""
    if GroupedMatMul not in ir.operations():
        return None
    sends = rows(
        "sends_tokens",
        "Tokens are sent to their experts",
        "flag",
        where(all_of(inputs.ep > 1, ranks.groups > 1), 1, 0),
        "with one attention group every rank sees all tokens anyway",
    )
    tp = rows("expert_tp", "Ranks that share an expert", "rank", maximum(1, floor(ranks.stage / inputs.ep)))
    groups = rows("expert_groups", "Groups of experts", "rank", minimum(inputs.ep, ranks.stage))
    return ExpertRanks(sends, tp, groups)


def _over(
    rows: Rows, ir: ModelGraph, inputs: Workload, ranks: Ranks, experts: ExpertRanks | None
) -> dict[Scope, Node]:
    """How many ranks each scope has."""
    over: dict[Scope, Node] = {"attention": inputs.tp, "stage": ranks.stage}
    if experts is not None:
        over["experts"] = experts.tp
        if any(scope(module) in ("stage", "shared") for module in ir.modules):
            over["stage"] = over["shared"] = shared_ranks(rows, inputs, ranks, experts)
    if inputs.ffn_tp is not None:
        over["stage"] = over["shared"] = rows(
            "ffn_ranks",
            "Ranks that share a dense FFN",
            "rank",
            where(inputs.ffn_tp > 0, inputs.ffn_tp, over["stage"]),
        )
    return over


def shared_ranks(rows: Rows, inputs: Workload, ranks: Ranks, experts: ExpertRanks) -> Quantity:
    """Ranks that share a dense FFN or a shared expert, and its copies in a stage."""
    shared = rows(
        "shared_ranks",
        "Ranks that share a dense FFN or a shared expert",
        "rank",
        where(experts.sends_tokens > 0, inputs.tp, ranks.stage),
        "an attention group that sends tokens away keeps its own",
    )
    rows("shared_copies", "Copies of dense FFNs and shared experts in a stage", "1", ranks.stage / shared)
    return shared


@dataclass
class _Shards:
    """Dimensions of a rank while their rows are made.

    Args:
        over: how many ranks each scope has.
        units, copies: heads on a rank, and copies of KV heads, by how many heads the model has.
        remainders: what the number of ranks leaves over of each dimension.
    """

    ir: ModelGraph
    rows: Rows
    over: Mapping[Scope, Node]
    on_ranks: dict[Scope, dict[Node, Node]] = field(
        default_factory=lambda: {"attention": {}, "stage": {}, "shared": {}, "experts": {}}
    )
    copied: dict[Node, Node] = field(default_factory=dict)
    splits: dict[Node, Split] = field(default_factory=dict)
    columns: dict[str, Quantity] = field(default_factory=dict)
    shared: dict[str, Node] = field(default_factory=dict)
    holders: dict[str, tuple[Input, ...]] = field(default_factory=dict)
    units: dict[Input, Quantity] = field(default_factory=dict)
    copies: dict[Input, Quantity] = field(default_factory=dict)
    remainders: dict[Split, list[Node]] = field(
        default_factory=lambda: {"heads": [], "kv heads": [], "columns": []}
    )

    def row(self, name: str) -> Quantity | None:
        """A row by what its id has behind "plan."."""
        figures = (row for row in self.rows.rows if isinstance(row, Quantity))
        return next((row for row in figures if row.id == f"plan.{name}"), None)


_COLUMNS = {"ffn_size": ("ffn", "FFN columns"), "vocabulary": ("vocabulary", "Vocabulary rows")}
"""Ids and labels of columns that are not called as their fact is."""


def columns(shards: _Shards, width: Width) -> None:
    """Columns of an FFN, or rows of the vocabulary, on a rank: once for all ranks they are spread over."""
    fact = width.units.id.removeprefix("model.")
    name, label = _COLUMNS.get(fact, (fact, width.units.label))
    shards.splits[width.total] = width.split
    shards.holders[fact] = tuple(
        kind.count for kind in shards.ir.layers if any(_uses(module, width.total) for module in kind.modules)
    )
    for number, user in enumerate(_users(shards.ir, width.total)):
        on_rank = shards.rows(
            f"{name}.{user}" if number else name,
            f"{label} per rank, {user}" if number else f"{label} per rank",
            width.units.unit,
            round_up(width.units / shards.over[user]),
        )
        shards.on_ranks[user][width.total] = on_rank
        shards.columns.setdefault(fact, on_rank)
        shards.shared.setdefault(fact, shards.over[user])
        if fact != "vocabulary":
            shards.remainders["columns"].append(remainder(width.units, shards.over[user]))


def heads(shards: _Shards, width: Width) -> None:
    """Heads on a rank, and the channels they make; with more ranks than KV heads these are copied."""
    shards.splits[width.total] = width.split
    units = shards.units.get(width.units)
    if units is None:
        units = _units(shards, width)
    if width.size is not None:
        name = width.total.id.removeprefix("model.")
        channels = shards.rows(name, f"{width.total.label} per rank", "channel", units * width.size)
        shards.on_ranks["attention"][width.total] = channels
    if width.units in shards.copies:
        shards.copied[width.total] = width.total * shards.copies[width.units]


def _units(shards: _Shards, width: Width) -> Quantity:
    """Heads of one kind on a rank."""
    tp, fact = shards.over["attention"], width.units.id.removeprefix("model.")
    name, label = "heads" if fact == "attention_heads" else fact, f"{width.units.label} per rank"
    if width.split == "kv heads":
        share = maximum(1, round_up(width.units / tp))
        units = shards.rows(name, label, width.units.unit, share, "beyond one for each rank they are copied")
        if in_cache(shards.ir, width.total):
            shards.copies[width.units] = shards.rows(
                "kv_copies" if fact == "kv_heads" else f"{fact}_copies",
                f"Copies of each of {width.units.label}",
                "1",
                maximum(1, tp / width.units),
            )
        rest = remainder(maximum(width.units, tp), minimum(width.units, tp))
    else:
        units = shards.rows(name, label, width.units.unit, round_up(width.units / tp))
        rest = remainder(width.units, tp)
    shards.remainders[width.split].append(rest)
    shards.units[width.units] = units
    shards.on_ranks["attention"][width.units] = units
    return units


def in_cache(ir: ModelGraph, channels: Node) -> bool:
    """Whether channels lie in the KV cache of attention."""
    cores = (module.operation for module in ir.modules)
    return any(isinstance(core, Attention) and channels in (core.key, core.value) for core in cores)


def _users(ir: ModelGraph, width: Node) -> list[Scope]:
    """The scopes of the modules in whose dimensions a width stands, in order."""
    return [*dict.fromkeys(scope(module) for module in ir.modules if _uses(module, width))]


def _uses(module: Module, width: Node) -> bool:
    """Whether a width stands in the dimensions of a module."""
    work = module.operation
    shapes = [dimension for tensor in module.tensors for dimension in tensor.shape]
    names = ("inputs", "outputs", "width") if scope(module) != "attention" else tuple(vars(work))
    shapes += [value for name in names if isinstance(value := getattr(work, name, None), Node)]
    return any(mentions(shape, width) for shape in shapes)


def most_copies(shards: _Shards) -> Quantity | None:
    """Copies of the KV heads that have most; None in a model without KV heads."""
    copies = list(shards.copies.values())
    if len(copies) > 1:
        return shards.rows("most_copies", "Copies of KV heads", "1", maximum(*copies))
    return copies[0] if copies else None


def experts(shards: _Shards, ranks: ExpertRanks | None) -> Experts | None:
    """Routed experts on a rank; None in a model without."""
    count = _experts(shards.ir)
    if ranks is None or count is None:
        return None
    per_rank = shards.rows("experts", "Experts per rank", "expert", round_up(count / ranks.groups))
    shards.on_ranks["experts"][count] = per_rank
    return Experts(per_rank, ranks)


def _experts(ir: ModelGraph) -> Input | None:
    """How many routed experts a layer has."""
    works = (module.operation for module in ir.modules)
    return next((work.count for work in works if isinstance(work, GroupedMatMul)), None)


def left_over(shards: _Shards, inputs: Workload, ranks: Ranks) -> LeftOver:
    """What the degrees leave over, of all dimensions of a kind together."""
    rows, rest, count = shards.rows, shards.remainders, _experts(shards.ir)
    heads = kv_heads = kv_ranks = experts = None
    if inputs.dcp is not None:
        copied = [remainder(inputs.tp, heads * inputs.dcp) for heads in shards.copies]
        kv_ranks = rows(
            "kv_ranks_left",
            "Ranks left over by decode CP",
            "rank",
            where(inputs.dcp > 1, sum_of(copied or [remainder(inputs.tp, inputs.dcp)]), 0),
            "tokens are divided among ranks that would hold the same heads",
        )
    if rest["heads"]:
        heads = rows("heads_left", "Heads left over", "head", sum_of(rest["heads"]))
    if rest["kv heads"]:
        of_kv = sum_of(rest["kv heads"])
        kv_heads = rows("kv_left", "KV heads left over", "head", of_kv, "one must divide the other")
    of_columns = rows.added(
        "ffn_left", "FFN columns left over", "channel", rest["columns"] or [inputs.tp - inputs.tp], most=4
    )
    why = "" if rest["columns"] else "there is no FFN"
    columns = rows("ffn_left", "FFN columns left over", "channel", of_columns, why)
    if count is not None:
        experts = rows("experts_left", "Experts left over", "expert", remainder(count, inputs.ep))
    return LeftOver(
        heads=heads,
        kv_heads=kv_heads,
        columns=columns,
        experts=experts,
        layers=rows(
            "layers_left",
            "Layers left over",
            "layer",
            remainder(shards.ir.total_layers, inputs.pp)
            if not inputs.devices
            else absolute(shards.ir.total_layers - sum_of([device.layers for device in inputs.devices])),
            "" if not inputs.devices else "on no device, or on more than there are",
        ),
        ranks=rows("ranks_left", "Ranks left over by EP", "rank", remainder(ranks.stage, inputs.ep)),
        kv_ranks=kv_ranks,
    )


@dataclass(frozen=True)
class Stages:
    """Which layers stand on which stage: layers go to the stages in order, the first stages take one more.

    Args:
        numbers: of the stages there can be, from 0.
        before: layers on the stages before each.
        layers: on each stage, of each kind, by their count in the model.
        fullest: layers on the fullest stage, of all kinds.
        first, last: of each stage, 1 where it holds the embedding, or the LM head.
    """

    numbers: tuple[Input, ...]
    before: tuple[Quantity, ...]
    layers: Mapping[Input, tuple[Quantity, ...]]
    fullest: Quantity
    first: tuple[Node, ...]
    last: tuple[Node, ...]
    section: Section

    def of_layer(self, number: Input) -> Node:
        """The stage of a layer by its number in the model, from 1."""
        return match_at_most(number - HALF, span(self.before)) - 1


def stages(ir: ModelGraph, inputs: Workload, layers_left: Quantity) -> Stages:
    """The one assignment of layers to stages."""
    rows = Rows("plan")
    numbers = tuple(_stage_number(number) for number in range(MOST_STAGES))
    rows.add(*numbers)
    if inputs.devices:
        return _on_devices(ir, inputs, numbers, rows)
    before = tuple(
        rows(
            f"before.{number.value}",
            f"Layers before stage {number.value}",
            "layer",
            where(
                number < inputs.pp,
                number * floor(ir.total_layers / inputs.pp) + minimum(number, layers_left),
                ir.total_layers,
            ),
            called="layers before it",
        )
        for number in numbers
    )
    layers = _layers(ir, before, numbers, rows)
    fullest = rows("layers", "Layers per stage", "layer", round_up(ir.total_layers / inputs.pp))
    section = rows.section("Stages", STAGES_NOTE)
    first = tuple(as_node(1 if number == 0 else 0) for number in range(MOST_STAGES))
    last = tuple(equal(number + 1, inputs.pp) for number in numbers)
    return Stages(numbers, before, layers, fullest, first, last, section)


STAGES_NOTE = "layers of each kind by pipeline stage; none beyond the last stage"


def _on_devices(ir: ModelGraph, inputs: Workload, numbers: tuple[Input, ...], rows: Rows) -> Stages:
    """A stage is a device: it holds as many layers as its cell says, in order."""
    held = [device.layers for device in inputs.devices]
    before = tuple(
        rows(
            f"before.{number.value}",
            f"Layers before stage {number.value}",
            "layer",
            minimum(ir.total_layers, sum_of(held[:place])) if place < len(held) else ir.total_layers,
            called="layers before it",
        )
        if place
        else rows("before.0", "Layers before stage 0", "layer", 0 * held[0], called="layers before it")
        for place, number in enumerate(numbers)
    )
    layers = _layers(ir, before, numbers, rows)
    fullest = rows("layers", "Layers of the fullest stage", "layer", maximum(*held))
    ends = [*pairwise((*before, ir.total_layers))][: len(held)]
    first = _flags(rows, "first", "the embedding", [all_of(start <= 0, end > 0) for start, end in ends])
    total = ir.total_layers
    last = _flags(rows, "last", "the LM head", [all_of(start < total, end >= total) for start, end in ends])
    return Stages(numbers, before, layers, fullest, first, last, rows.section("Stages", STAGES_NOTE))


def _flags(rows: Rows, name: str, what: str, conditions: Sequence[Node]) -> tuple[Node, ...]:
    """Of each stage there can be whether it holds an end of the model."""
    flags = [
        rows(f"{name}.{place}", f"Stage {place} holds {what}", "flag", where(condition, 1, 0)) > 0
        for place, condition in enumerate(conditions)
    ]
    return (*flags, *(as_node(0) > 0 for _ in range(MOST_STAGES - len(flags))))


def _layers(
    ir: ModelGraph, before: tuple[Quantity, ...], numbers: tuple[Input, ...], rows: Rows
) -> dict[Input, tuple[Quantity, ...]]:
    """Layers of each kind on each stage: those before the next stage without those before this one."""
    starts = _before_of_kind(ir, before, rows)
    return {
        kind.count: tuple(
            rows(
                f"{_identifier(kind)}.{number.value}",
                f"Layers on stage {number.value}{_of_kind(ir, kind)}",
                "layer",
                end - start,
            )
            for number, start, end in zip(
                numbers, starts[kind.count], (*starts[kind.count][1:], kind.count), strict=True
            )
        )
        for kind in ir.layers
    }


def _before_of_kind(
    ir: ModelGraph, before: tuple[Quantity, ...], rows: Rows
) -> dict[Input, tuple[Quantity, ...]]:
    """Layers of each kind before each stage.

    Of rare kinds by where their layers stand, of the last kind what remains.
    Where a count is edited, the last layers of that kind are left out, or more of them follow at the end.
    """
    order = ir.model.architecture.sequence()
    kinds = sorted(ir.layers, key=lambda kind: order.count(kind.blocks))
    of_kind: dict[Input, tuple[Quantity, ...]] = {}
    remaining = before
    for place, kind in enumerate(kinds[:-1]):
        others = rows(
            f"others.{_identifier(kind)}",
            f"Layers of other kinds{_of_kind(ir, kind)}",
            "layer",
            sum_of([other.count for other in kinds[place + 1 :]]),
            "those of the kinds above left out" if place else "",
        )
        places = span(_places(kind, order, rows))
        own = tuple(
            rows(
                f"before.{_identifier(kind)}.{stage}",
                f"Layers before stage {stage}{_of_kind(ir, kind)}",
                "layer",
                maximum(
                    layers - others,
                    minimum(
                        kind.count,
                        where(layers < places.members[0], 0, match_at_most(layers, places)),
                    ),
                ),
            )
            for stage, layers in enumerate(remaining)
        )
        of_kind[kind.count] = own
        order = [blocks for blocks in order if blocks != kind.blocks]
        remaining = tuple(
            rows(
                f"before.not.{_identifier(kind)}.{stage}",
                f"Other layers before stage {stage}{_of_kind(ir, kind)}",
                "layer",
                layers - taken,
            )
            for stage, (layers, taken) in enumerate(zip(remaining, own, strict=True))
        )
    of_kind[kinds[-1].count] = remaining
    return of_kind


def _places(kind: Layer, order: Sequence[tuple[str, ...]], rows: Rows) -> list[Input]:
    """Where the layers of a kind stand in an order of layers, from 1."""
    places = [
        defined(
            f"plan.place.{_identifier(kind)}.{number}",
            f"Place of layer {number}, {kind.name}",
            "layer",
            place,
            "among the layers, without those of the kinds above",
            "order of layers in the model",
            name=f"places of {kind.name} layers",
        )
        for number, place in enumerate((n for n, blocks in enumerate(order, 1) if blocks == kind.blocks), 1)
    ]
    rows.add(*places)
    return places


def _stage_number(number: int) -> Input:
    return defined(
        f"plan.stage.{number}",
        f"Stage {number}",
        "number",
        number,
        "number of a pipeline stage",
        name="stage",
    )


def _identifier(kind: Layer) -> str:
    return kind.count.id.removeprefix("model.")


def _of_kind(ir: ModelGraph, kind: Layer) -> str:
    """What labels of a kind of layer end in."""
    return "" if len(ir.layers) == 1 else f", {kind.name}"
