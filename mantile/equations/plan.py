"""What one rank holds: heads, columns, experts and layers, and how many tokens of a pass it works on.

A stage has TP x attention-DP x CP ranks. Attention is split over TP and copied in every attention group; FFNs and experts are
spread over all ranks of the stage, experts over EP first and their columns over what remains. KV heads shard as far as they go and
are copied beyond; latents and indexers stand on every TP rank. Where a degree does not divide, the fullest rank counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mantile.equations.constant import HALF
from mantile.equations.inputs import ON, Ranks, Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
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
from mantile.ir.modules import Attention, GroupedMatMul, Layer, ModelGraph, Module, Split
from mantile.library.scenario import MOST_STAGES

Scope = Literal["attention", "stage", "shared", "experts"]
"""Ranks a module is spread over: those of an attention group, of the stage, or of EP; shared experts as the stage, or as an attention
group where tokens are sent to experts."""


def scope(module: Module) -> Scope:
    """The ranks a module is spread over."""
    if isinstance(module.operation, GroupedMatMul) or module.step == "experts_activation":
        return "experts"
    if (
        module.step.startswith("shared_")
        and module.kind == "moe"
        and module.step in ("shared_up", "shared_activation", "shared_down")
    ):
        return "shared"
    return "stage" if module.kind == "dense" else "attention"


@dataclass(frozen=True)
class Sharding:
    """Shards of the fullest rank.

    Args:
        rank: what a split dimension is on a rank, by the ranks it is split over.
        copied: KV dimensions as the TP ranks together hold them, copies counted.
        stages: which layers stand on which stage.
        heads, kv_heads, kv_copies: of attention, None in a model without; copies of the KV heads that have most.
        columns: columns of an FFN or the vocabulary on a rank, by fact.
        experts: on a rank; None without experts.
        sends_tokens: 1 where tokens are sent to the ranks of their experts; `expert_tp` ranks share one of
            `expert_groups`. None without experts.
        sequence: TP where sequence parallelism is on, else 1.
        copies: how many ranks of a stage hold the same attention weights, and the same shared experts.
        heads_left, kv_left, columns_left, experts_left, layers_left, ranks_left: what a degree leaves over, 0 if it divides;
            None where there is none.
    """

    ranks: Ranks
    rank: Mapping[Scope, Mapping[Node, Node]]
    copied: Mapping[Node, Node]
    splits: Mapping[Node, Split]
    stages: Stages
    heads: Quantity | None
    kv_heads: Quantity | None
    kv_copies: Quantity | None
    columns: Mapping[str, Quantity]
    experts: Quantity | None
    sends_tokens: Quantity | None
    expert_tp: Quantity | None
    expert_groups: Quantity | None
    sequence: Quantity
    shared_copies: Quantity | None
    heads_left: Quantity | None
    kv_left: Quantity | None
    columns_left: Quantity
    experts_left: Quantity | None
    layers_left: Quantity
    ranks_left: Quantity
    sections: tuple[Section, ...]

    def on_rank(self, expression: Node, module: Module) -> Node:
        """A whole-model dimension of a module as a rank has it."""
        return substitute(expression, self.rank[scope(module)])

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


_CALLED = {"ffn_size": "plan.ffn", "vocabulary": "plan.vocabulary"}
_COLUMNS = {"ffn_size": "FFN columns", "vocabulary": "Vocabulary rows"}
_OVER = {
    "attention": "TP",
    "stage": "ranks of a stage",
    "shared": "ranks that share it",
    "experts": "ranks that share an expert",
}


def sharding(ir: ModelGraph, inputs: Workload, ranks: Ranks) -> Sharding:
    """The rows of the plan, on the Memory sheet."""
    tp = inputs.tp
    routed = GroupedMatMul in ir.operations()
    sequence = Quantity(
        "plan.sequence",
        "Ranks that share the tokens of a norm",
        "rank",
        where(equal(inputs.sequence_parallel, ON), tp, 1),
        note="TP with sequence parallelism, else 1",
    )
    rows: list[Quantity] = [sequence]
    over: dict[Scope, Node] = {"attention": tp, "stage": ranks.stage}
    sends = expert_tp = groups = shared_copies = None
    if routed:
        sends = Quantity(
            "plan.sends_tokens",
            "Tokens are sent to their experts",
            "flag",
            where(all_of(inputs.ep > 1, ranks.groups > 1), 1, 0),
            note="1 with expert parallelism among several attention groups; else every rank sees all tokens",
        )
        expert_tp = Quantity(
            "plan.expert_tp",
            "Ranks that share an expert",
            "rank",
            maximum(1, floor(ranks.stage / inputs.ep)),
            note="ranks of a stage ÷ EP, at least 1",
        )
        groups = Quantity(
            "plan.expert_groups",
            "Groups of experts",
            "rank",
            minimum(inputs.ep, ranks.stage),
            note="EP, at most the ranks of a stage",
        )
        over["experts"] = expert_tp
        rows += [sends, expert_tp, groups]
    if sends is not None and any(scope(module) == "shared" for module in ir.modules):
        shared = Quantity(
            "plan.shared_ranks",
            "Ranks that share a shared expert",
            "rank",
            where(sends > 0, tp, ranks.stage),
            note="those of a stage; of an attention group where tokens are sent to their experts",
        )
        shared_copies = Quantity(
            "plan.shared_copies", "Copies of shared experts in a stage", "1", ranks.stage / shared
        )
        over["shared"] = shared
        rows += [shared, shared_copies]
    rank: dict[Scope, dict[Node, Node]] = {name: {} for name in ("attention", "stage", "shared", "experts")}
    copied: dict[Node, Node] = {}
    splits: dict[Node, Split] = {}
    columns: dict[str, Quantity] = {}
    left: dict[Split, list[Node]] = {"heads": [], "kv heads": [], "columns": []}
    units: dict[Input, Quantity] = {}
    copies: dict[Input, Quantity] = {}
    names = {"attention_heads": "heads"}
    for width in ir.widths:
        fact = width.units.id.removeprefix("model.")
        name, label = names.get(fact, fact), width.units.label
        splits[width.total] = width.split
        if width.split == "columns":
            users = _users(ir, width.total)
            for user in users:
                alone = user == users[0]
                here = Quantity(
                    _CALLED.get(fact, f"plan.{fact}") + ("" if alone else f".{user}"),
                    f"{_COLUMNS.get(fact, label)} per rank{'' if alone else f', {user}'}",
                    width.units.unit,
                    round_up(width.units / over[user]),
                    note=f"{_COLUMNS.get(fact, label).lower().replace('ffn', 'FFN')} ÷ {_OVER[user]}, rounded up",
                )
                rank[user][width.total] = here
                columns.setdefault(fact, here)
                rows.append(here)
                if fact != "vocabulary":
                    left["columns"].append(remainder(width.units, over[user]))
            continue
        if width.units not in units:
            held = round_up(width.units / tp)
            copying = width.split == "kv heads"
            kept = any(
                isinstance(module.operation, Attention)
                and width.total in (module.operation.key, module.operation.value)
                for module in ir.modules
            )
            units[width.units] = Quantity(
                f"plan.{name}",
                f"{label} per rank",
                width.units.unit,
                maximum(1, held) if copying else held,
                note=f"{label[0].lower() if label[1:2].islower() else label[0]}{label[1:]} ÷ TP, rounded up, at least one: beyond that they are copied"
                if copying
                else "",
            )
            rows.append(units[width.units])
            if copying:
                if kept:
                    copies[width.units] = Quantity(
                        f"plan.{'kv' if fact == 'kv_heads' else fact}_copies",
                        f"Copies of each of {label}",
                        "1",
                        maximum(1, tp / width.units),
                        note=f"TP ÷ {label} where there are more ranks",
                    )
                    rows.append(copies[width.units])
                left["kv heads"].append(remainder(maximum(width.units, tp), minimum(width.units, tp)))
            else:
                left["heads"].append(remainder(width.units, tp))
            rank["attention"][width.units] = units[width.units]
        if width.size is not None:
            identifier = width.total.id.removeprefix("model.")
            here = Quantity(
                f"plan.{identifier}",
                f"{width.total.label} per rank",
                "channel",
                units[width.units] * width.size,
                note=f"{width.units.label} per rank × {width.size.label.lower()}",
            )
            rank["attention"][width.total] = here
            rows.append(here)
        if width.units in copies:
            copied[width.total] = width.total * copies[width.units]
    most = next(iter(copies.values()), None)
    if len(copies) > 1:
        most = Quantity(
            "plan.most_copies", "Copies of KV heads", "1", maximum(*copies.values()), note="most of any kind"
        )
        rows.append(most)
    experts = experts_left = None
    if groups is not None:
        count = next(
            module.operation.count for module in ir.modules if isinstance(module.operation, GroupedMatMul)
        )
        experts = Quantity(
            "plan.experts",
            "Experts per rank",
            "expert",
            round_up(count / groups),
            note="experts ÷ groups of experts, rounded up",
        )
        experts_left = Quantity(
            "plan.experts_left",
            "Experts left over",
            "expert",
            remainder(count, inputs.ep),
            note="remainder of experts ÷ EP",
        )
        rank["experts"][count] = experts
        rows.append(experts)

    def remains(split: Split, name: str, label: str, unit: str, note: str = "") -> Quantity | None:
        parts = left[split]
        return Quantity(f"plan.{name}", label, unit, sum_of(parts), note=note) if parts else None

    heads_left = remains(
        "heads", "heads_left", "Heads left over", "head", "remainder of heads ÷ TP, all kinds of head"
    )
    kv_left = remains(
        "kv heads",
        "kv_left",
        "KV heads left over",
        "head",
        "remainder of KV heads and TP: one must divide the other",
    )
    columns_left = remains(
        "columns",
        "ffn_left",
        "FFN columns left over",
        "channel",
        "remainder of columns ÷ ranks that share them, all FFNs",
    )
    if columns_left is None:
        columns_left = Quantity(
            "plan.ffn_left", "FFN columns left over", "channel", tp - tp, note="there is no FFN"
        )
    layers_left = Quantity(
        "plan.layers_left",
        "Layers left over",
        "layer",
        remainder(ir.total_layers, inputs.pp),
    )
    assigned = stages(ir, inputs, layers_left)
    ranks_left = Quantity(
        "plan.ranks_left",
        "Ranks left over by EP",
        "rank",
        remainder(ranks.stage, inputs.ep),
        note="remainder of ranks of a stage ÷ EP",
    )
    rows += [
        row
        for row in (heads_left, kv_left, columns_left, experts_left, layers_left, ranks_left)
        if row is not None
    ]
    by_name = {row.id: row for row in rows}
    return Sharding(
        ranks,
        rank,
        copied,
        splits,
        assigned,
        by_name.get("plan.heads"),
        by_name.get("plan.kv_heads"),
        most,
        columns,
        experts,
        sends,
        expert_tp,
        groups,
        sequence,
        shared_copies,
        heads_left,
        kv_left,
        columns_left,
        experts_left,
        layers_left,
        ranks_left,
        (Section("Shards", tuple(rows), "of the fullest rank"), assigned.section),
    )


def _users(ir: ModelGraph, whole: Node) -> list[Scope]:
    """The scopes of the modules in whose dimensions a width stands, in order."""
    found: dict[Scope, None] = {}
    for module in ir.modules:
        shapes = [dimension for tensor in module.tensors for dimension in tensor.shape]
        work = module.operation
        shapes += [
            getattr(work, name)
            for name in ("inputs", "outputs", "width")
            if isinstance(getattr(work, name, None), Node)
        ]
        if any(mentions(shape, whole) for shape in shapes) or (
            scope(module) == "attention"
            and any(mentions(value, whole) for value in vars(work).values() if isinstance(value, Node))
        ):
            found[scope(module)] = None
    return list(found)


@dataclass(frozen=True)
class Stages:
    """Which layers stand on which stage: layers go to the stages in order, the first stages take one more.

    Args:
        numbers: of the stages there can be, from 0.
        before: layers on the stages before each.
        layers: on each stage, of each kind, by their count in the model.
        fullest: layers on the fullest stage, of all kinds.
    """

    numbers: tuple[Input, ...]
    before: tuple[Quantity, ...]
    layers: Mapping[Input, tuple[Quantity, ...]]
    fullest: Quantity
    section: Section

    def of_layer(self, number: Input) -> Node:
        """The stage of a layer by its number in the model, from 1."""
        return match_at_most(number - HALF, span(self.before)) - 1


def stages(ir: ModelGraph, inputs: Workload, layers_left: Quantity) -> Stages:
    """The one assignment of layers to stages."""
    rows = Rows("plan")
    numbers = tuple(_stage_number(number) for number in range(MOST_STAGES))
    rows.add(*numbers)
    before = tuple(
        rows(
            f"before.{number.value}",
            f"Layers before stage {number.value}",
            "layer",
            minimum(
                ir.total_layers, number * floor(ir.total_layers / inputs.pp) + minimum(number, layers_left)
            ),
            called="layers before it",
        )
        for number in numbers
    )
    layers = _layers(ir, inputs, numbers, rows)
    fullest = rows("layers", "Layers per stage", "layer", round_up(ir.total_layers / inputs.pp))
    section = rows.section("Stages", "layers of each kind by pipeline stage; none beyond the last stage")
    return Stages(numbers, before, layers, fullest, section)


def _layers(
    ir: ModelGraph, inputs: Workload, numbers: tuple[Input, ...], rows: Rows
) -> dict[Input, tuple[Quantity, ...]]:
    """Layers of each kind on each stage: its share, and what is left over goes one by one to the stages after."""
    layers: dict[Input, tuple[Quantity, ...]] = {}
    taken: Quantity | None = None
    for kind in ir.layers:
        turns = [number if taken is None else remainder(number - taken, inputs.pp) for number in numbers]
        layers[kind.count] = tuple(
            rows(
                f"{_identifier(kind)}.{number.value}",
                f"Layers on stage {number.value}{_of_kind(ir, kind)}",
                "layer",
                where(number < inputs.pp, floor((kind.count + inputs.pp - 1 - turn) / inputs.pp), 0),
            )
            for number, turn in zip(numbers, turns, strict=True)
        )
        if kind is not ir.layers[-1]:
            left = remainder(kind.count, inputs.pp)
            taken = rows(
                f"{_identifier(kind)}.after",
                f"Layers left over up to here{_of_kind(ir, kind)}",
                "layer",
                left if taken is None else taken + left,
                "those of the next kind go to the stages after",
            )
    return layers


def _stage_number(number: int) -> Input:
    return Input(
        f"plan.stage.{number}",
        f"Stage {number}",
        "number",
        number,
        "number of a pipeline stage",
        "definition",
        "defined",
        shared=True,
        fixed=True,
        name="stage",
    )


def _identifier(kind: Layer) -> str:
    return kind.count.id.removeprefix("model.")


def _of_kind(ir: ModelGraph, kind: Layer) -> str:
    """What labels of a kind of layer end in."""
    return "" if len(ir.layers) == 1 else f", {kind.name}"
