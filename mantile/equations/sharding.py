"""What one rank holds: heads, columns, rows and layers under tensor and pipeline parallelism.

KV heads shard as far as they go and replicate beyond; latents and indexers stand on every rank. Where a degree does not
divide, the fullest rank counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constants import RANKS_TO_ACCELERATORS
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    added,
    maximum,
    minimum,
    remainder,
    round_up,
    substitute,
)  # fmt: skip
from mantile.ir.modules import Attention, ModelGraph, Split


@dataclass(frozen=True)
class Sharding:
    """Shards of the fullest rank.

    Args:
        rank: what a split dimension is on a rank; `on_rank` applies it to an expression.
        copied: KV dimensions as all ranks together hold them, copies counted.
        stage: layers of a kind on the fullest pipeline stage.
        heads, kv_heads, kv_copies: of attention, None in a model without; copies of the KV heads that have most.
        columns: columns of an FFN or the vocabulary on a rank, by fact.
        layers: on the fullest stage, of all kinds.
        heads_left, kv_left, columns_left, layers_left: what a degree leaves over, 0 if it divides; None where there is none.
    """

    accelerators: Quantity
    ranks_per_replica: Quantity
    rank: Mapping[Node, Node]
    copied: Mapping[Node, Node]
    splits: Mapping[Node, Split]
    stage: Mapping[Node, Quantity]
    heads: Quantity | None
    kv_heads: Quantity | None
    kv_copies: Quantity | None
    columns: Mapping[str, Quantity]
    layers: Quantity
    heads_left: Quantity | None
    kv_left: Quantity | None
    columns_left: Quantity
    layers_left: Quantity
    section: Section

    def on_rank(self, whole: Node) -> Node:
        """A whole-model dimension as a rank has it."""
        return substitute(whole, self.rank)

    def is_split(self, *dimensions: Node) -> bool:
        """Whether any of these is split over the tensor-parallel ranks."""
        return bool(self.splits_of(*dimensions))

    def splits_of(self, *dimensions: Node) -> tuple[Split, ...]:
        """By what dimensions are split over the tensor-parallel ranks, each once."""
        return tuple(dict.fromkeys(split for node, split in self.splits.items() for dimension in dimensions if _mentions(dimension, node)))


def _mentions(expression: Node, figure: Node) -> bool:
    return expression is figure or any(_mentions(argument, figure) for argument in getattr(expression, "arguments", ()))


_CALLED = {"ffn_size": ("plan.ffn", "FFN columns per rank"), "vocabulary": ("plan.vocabulary", "Vocabulary rows per rank")}


def sharding(ir: ModelGraph, inputs: Workload) -> Sharding:
    """The rows of the plan."""
    tp, pp, dp = inputs.tp, inputs.pp, inputs.dp
    ranks = Quantity("plan.ranks_per_replica", "Ranks of a replica", "rank", tp * pp)
    accelerators = Quantity("plan.accelerators", "Accelerators", "accelerator", ranks * dp * RANKS_TO_ACCELERATORS)
    rows: list[Quantity] = [ranks, accelerators]
    rank: dict[Node, Node] = {}
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
        splits[width.whole] = width.split
        if width.split == "columns":
            identifier, called = _CALLED.get(fact, (f"plan.{fact}", f"{label} per rank"))
            columns[fact] = Quantity(identifier, called, width.units.unit, round_up(width.units / tp))
            rows.append(columns[fact])
            rank[width.whole] = columns[fact]
            if fact != "vocabulary":
                left["columns"].append(remainder(width.units, tp))
            continue
        if width.units not in units:
            held = round_up(width.units / tp)
            copying = width.split == "kv heads"
            kept = any(isinstance(module.operation, Attention) and width.whole in (module.operation.key, module.operation.value)
                       for module in ir.modules)  # fmt: skip
            units[width.units] = Quantity(
                f"plan.{name}", f"{label} per rank", width.units.unit, maximum(1, held) if copying else held,
                note=f"{label[0].lower() if label[1:2].islower() else label[0]}{label[1:]} ÷ TP, rounded up, at least one: beyond that they are copied"
                if copying else "")  # fmt: skip
            rows.append(units[width.units])
            if copying:
                if kept:
                    copies[width.units] = Quantity(f"plan.{'kv' if fact == 'kv_heads' else fact}_copies", f"Copies of each of {label}", "1",
                                                   maximum(1, tp / width.units), note=f"TP ÷ {label} where there are more ranks")  # fmt: skip
                    rows.append(copies[width.units])
                left["kv heads"].append(remainder(maximum(width.units, tp), minimum(width.units, tp)))
            else:
                left["heads"].append(remainder(width.units, tp))
            rank[width.units] = units[width.units]
        if width.size is not None:
            identifier = width.whole.id.removeprefix("model.")
            rank[width.whole] = Quantity(f"plan.{identifier}", f"{width.whole.label} per rank", "channel",
                                         units[width.units] * width.size, note=f"{width.units.label} per rank × {width.size.label.lower()}")  # fmt: skip
            rows.append(rank[width.whole])  # type: ignore[arg-type]
        if width.units in copies:
            copied[width.whole] = width.whole * copies[width.units]
    most = next(iter(copies.values()), None)
    if len(copies) > 1:
        most = Quantity("plan.most_copies", "Copies of KV heads", "1", maximum(*copies.values()), note="most of any kind")
        rows.append(most)
    stage: dict[Node, Quantity] = {}
    for count in dict.fromkeys((ir.total_layers, *(module.layers for module in ir.modules if module.layers is not None))):
        assert isinstance(count, Input | Quantity)
        label = "Layers per stage" if count is ir.total_layers else f"{count.label}, per stage"
        stage[count] = Quantity(f"plan.{count.id.removeprefix('model.')}", label, "layer", round_up(count / pp),
                                note="layers ÷ PP, rounded up: the fullest stage")  # fmt: skip
    rows += stage.values()

    def over(split: Split, name: str, label: str, unit: str, note: str = "") -> Quantity | None:
        parts = left[split]
        return Quantity(f"plan.{name}", label, unit, added(parts), note=note) if parts else None

    heads_left = over("heads", "heads_left", "Heads left over", "head", "remainder of heads ÷ TP, all kinds of head")
    kv_left = over("kv heads", "kv_left", "KV heads left over", "head", "remainder of KV heads and TP: one must divide the other")
    columns_left = over("columns", "ffn_left", "FFN columns left over", "channel", "remainder of columns ÷ TP, all FFNs")
    if columns_left is None:
        columns_left = Quantity("plan.ffn_left", "FFN columns left over", "channel", tp - tp, note="there is no FFN")
    layers_left = Quantity("plan.layers_left", "Layers left over", "layer", remainder(ir.total_layers, pp))
    rows += [row for row in (heads_left, kv_left, columns_left, layers_left) if row is not None]
    by_name = {row.id: row for row in rows}
    return Sharding(
        accelerators, ranks, rank, copied, splits, stage, by_name.get("plan.heads"), by_name.get("plan.kv_heads"),
        most, columns, stage[ir.total_layers], heads_left, kv_left, columns_left, layers_left,
        Section("Shards", tuple(rows), "of the fullest rank"),
    )  # fmt: skip
