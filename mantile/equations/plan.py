"""Which dimensions of a model are split over which ranks, and which kinds of layer stand where.

The rows of a rank stand in plan.eq.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mantile.equations.inputs import Workload
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    defined,
    expression,
    substitute,
)
from mantile.ir.modules import Attention, GroupedMatMul, Layer, ModelGraph, Module, Split
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
class Sharding:
    """Shards of the fullest rank.

    Args:
        over: how many ranks modules are spread over, by scope.
        on_ranks: what a split dimension is on a rank, by the ranks it is split over.
        copied: KV dimensions as the TP ranks together hold them, copies counted.
        splits: by what each split dimension is split.
        kv_copies: of the KV heads that have most; None in a model without.
        stages: which layers stand on which stage.
    """

    over: Mapping[Scope, Node]
    on_ranks: Mapping[Scope, Mapping[Node, Node]]
    copied: Mapping[Node, Node]
    splits: Mapping[Node, Split]
    kv_copies: Quantity | None
    stages: Stages
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


@dataclass(frozen=True)
class Stages:
    """Which layers stand on which stage.

    Args:
        before: layers on the stages before each.
        layers: on each stage, of each kind, by their count in the model.
        fullest: layers on the fullest stage, of all kinds.
        first, last: of devices that are not alike, whether one holds the embedding, or the LM head.
    """

    before: tuple[Quantity, ...]
    layers: Mapping[Input, tuple[Quantity, ...]]
    fullest: Quantity
    first: tuple[Node, ...]
    last: tuple[Node, ...]
    section: Section


def mentions(body: Node, figure: Node) -> bool:
    """Whether a figure stands in an expression."""
    return any(part is figure for part in expression(body))


def features_of_plan(ir: ModelGraph) -> Iterator[str]:
    """What an architecture splits, by the names of `when`."""
    copied = _copied(ir)
    has = {
        "attention_heads": any(width.units.id == "model.attention_heads" for width in ir.widths),
        "ffn_columns": _columns_of_ffns(ir) is not None,
        "heads": any(width.split == "heads" for width in ir.widths),
        "kv_heads": any(width.split == "kv heads" for width in ir.widths),
        "kv_heads_alike": any(width.units.id == "model.kv_heads" for width in ir.widths),
        "kv_copies": bool(copied),
        "several_copies": len(copied) > 1,
        "shared_ffns": _experts(ir) is not None
        and any(scope(module) in ("stage", "shared") for module in ir.modules),
    }
    yield from (name for name, is_so in has.items() if is_so)


def _copied(ir: ModelGraph) -> set[Input]:
    """KV heads whose channels lie in the KV cache of attention."""
    cores = (module.operation for module in ir.modules)
    cached = [node for core in cores if isinstance(core, Attention) for node in (core.key, core.value)]
    return {width.units for width in ir.widths if width.split == "kv heads" and width.total in cached}


def _copies(units: Input) -> str:
    fact = units.id.removeprefix("model.")
    return "kv_copies" if fact == "kv_heads" else f"{fact}_copies"


def _columns_of_ffns(ir: ModelGraph) -> Node | None:
    return next((width.total for width in ir.widths if width.units.id == "model.ffn_size"), None)


def _experts(ir: ModelGraph) -> Input | None:
    """How many routed experts a layer has."""
    works = (module.operation for module in ir.modules)
    return next((work.count for work in works if isinstance(work, GroupedMatMul)), None)


def sharding(ir: ModelGraph, inputs: Workload, rows: Equations) -> Sharding:
    """What is split over which ranks.

    Args:
        rows: know inputs and ranks.
    """
    rows.know(ir.total_layers, *(kind.count for kind in ir.layers), *(each.layers for each in inputs.devices))
    dense = "ranks_of_dense"
    over: dict[Scope, str] = {"attention": "inputs.tp", "stage": dense, "shared": dense}
    if (count := _experts(ir)) is not None:
        over["experts"] = "plan.expert_tp"
    on_ranks = _make_dimensions(rows, ir, over)
    if count is not None:
        on_ranks["experts"][count] = "plan.experts"
    _make_stages_of_devices(rows, inputs)
    _make_kinds(rows, ir)
    sections = rows.sections("plan")
    (stages,) = rows.sections("plan", "Stages")
    copies = {width.total: width.units for width in ir.widths if width.units in _copied(ir)}
    several = "several_copies" in rows.features
    most = "most_copies" if several else "".join({_copies(units) for units in copies.values()})
    return Sharding(
        over={name: rows.node(ranks) for name, ranks in over.items()},
        on_ranks={name: {node: rows[row] for node, row in each.items()} for name, each in on_ranks.items()},
        copied={total: total * rows[f"plan.{_copies(units)}"] for total, units in copies.items()},
        splits={width.total: width.split for width in ir.widths},
        kv_copies=rows[f"plan.{most}"] if copies else None,
        stages=_stages(rows, ir, inputs, stages),
        sections=sections,
    )


_NAMES = {
    "attention_heads": ("heads", ""),
    "ffn_size": ("ffn", "FFN columns"),
    "vocabulary": ("vocabulary", "Vocabulary rows"),
}
"""Ids and labels of units that are not called as their fact is."""


_LEFT_OVER = ("heads", "KV heads", "columns", "copied heads")
"""Of which the text counts what degrees leave over."""


def _make_dimensions(
    rows: Equations, ir: ModelGraph, over: Mapping[Scope, str]
) -> dict[Scope, dict[Node, str]]:
    """Make the rows of dimensions that are split; these by the ranks they are split over.

    Columns have one for all ranks they are spread over, heads those of each kind and the channels they make.
    """
    on_ranks: dict[Scope, dict[Node, str]] = {name: {} for name in over}
    made, left = list[Space](), {name: list[Space]() for name in _LEFT_OVER}
    copied = _copied(ir)

    def make(name: str, ranks: Scope, node: Node, feature: str, facts: Mapping[str, str]) -> Space:
        made.append(Space(facts={**facts, "name": name, "ranks": over[ranks]}, features=frozenset({feature})))
        on_ranks[ranks][node] = f"plan.{name}"
        return made[-1]

    for width in ir.widths:
        units = width.units
        fact = units.id.removeprefix("model.")
        name, label = _NAMES.get(fact, (fact, ""))
        facts = {"units": units.id, "unit": units.unit, "label": label or units.label, "user": ""}
        if width.split == "columns":
            users = dict.fromkeys(scope(module) for module in ir.modules if _uses(module, width.total))
            for number, user in enumerate(users):
                of, words = (f".{user}", f", {user}") if number else ("", "")
                space = make(f"{name}{of}", user, width.total, "even", facts | {"user": words})
                if fact != "vocabulary":
                    left["columns"].append(space)
            continue
        if units not in on_ranks["attention"]:
            kind, feature = ("heads", "even") if width.split == "heads" else ("KV heads", "at_least_one")
            left[kind].append(make(name, "attention", units, feature, facts))
            if units in copied:
                of_copies = {"copies": _copies(units), **facts}
                made.append(Space(facts=of_copies, features=frozenset({"copied"})))
                left["copied heads"].append(made[-1])
        if width.size is not None:
            facts |= {"heads": f"plan.{name}", "size": width.size.id, "label": width.total.label}
            make(width.total.id.removeprefix("model."), "attention", width.total, "wide", facts)
    rows.make_in("dimension", *made)
    for kind, spaces in left.items():
        rows.make_in(kind, *spaces)
    return on_ranks


def _uses(module: Module, width: Node) -> bool:
    """Whether a width stands in the dimensions of a module."""
    work = module.operation
    shapes = [dimension for tensor in module.tensors for dimension in tensor.shape]
    names = ("inputs", "outputs", "width") if scope(module) != "attention" else tuple(vars(work))
    shapes += [value for name in names if isinstance(value := getattr(work, name, None), Node)]
    return any(mentions(shape, width) for shape in shapes)


def _make_stages_of_devices(rows: Equations, inputs: Workload) -> None:
    """Say which layers stand on devices that are not alike: as many as their cells say, in order."""
    count = len(inputs.devices)
    numbers = range(MOST_STAGES) if count else range(0)
    ends = ["model.layers" if number + 1 == MOST_STAGES else f"before.{number + 1}" for number in numbers]
    stages = [Space(facts={"n": f"{s + 1}", "s": f"{s}", "end": ends[s]}) for s in numbers]
    later = [Space(facts={"s": f"{number}"}) for number in numbers[1:]]
    rows.make_in("holder", *stages[:count])
    rows.make_in("stage behind a device", *later[: count - 1])
    rows.make_in("stage behind all", *later[count - 1 :])
    for number in numbers:
        rows.make_in(f"device before {number}", *stages[:number])


def _make_kinds(rows: Equations, ir: ModelGraph) -> None:
    """Say where the layers of each kind stand: of rare kinds by their places, of the last what remains."""
    order = ir.model.architecture.sequence()
    kinds = sorted(ir.layers, key=lambda kind: order.count(kind.blocks))
    before, starts, rare = "before", dict[Input, str](), list[Space]()
    for place, kind in enumerate(kinds[:-1], 1):
        name = _identifier(kind)
        facts = {"kind": name, "name": kind.name, "count": kind.count.id, "left": before}
        facts["others"] = " + ".join(other.count.id for other in kinds[place:])
        facts["why"] = "those of the kinds above left out" if place > 1 else ""
        rare.append(Space(facts=facts))
        rows.know(*_places(kind, order))
        starts[kind.count], before = f"before.{name}", f"before.not.{name}"
        order = [blocks for blocks in order if blocks != kind.blocks]
    starts[kinds[-1].count] = before
    rows.make_in("rare kind", *rare)
    rows.make_in("kind with FFN columns", *_with_columns(ir))
    rows.make_in(
        "kind on stages",
        *(
            Space(
                facts={
                    "kind": _identifier(kind),
                    "of": f", {kind.name}" if rare else "",
                    "count": kind.count.id,
                    "left": starts[kind.count],
                }
            )
            for kind in ir.layers
        ),
    )


def _with_columns(ir: ModelGraph) -> Iterator[Space]:
    """Kinds of layer with columns of a dense FFN."""
    columns = _columns_of_ffns(ir)
    for kind in ir.layers:
        if columns is not None and any(_uses(module, columns) for module in kind.modules):
            yield Space(facts={"on_stages": f"plan.{_identifier(kind)}"})


def _places(kind: Layer, order: Sequence[tuple[str, ...]]) -> Iterator[Input]:
    """Where the layers of a kind stand in an order of layers, from 1."""
    places = (place for place, blocks in enumerate(order, 1) if blocks == kind.blocks)
    for number, place in enumerate(places, 1):
        yield defined(
            f"plan.place.{_identifier(kind)}.{number}",
            f"Place of layer {number}, {kind.name}",
            "layer",
            place,
            "among the layers, without those of the kinds above",
            "order of layers in the model",
            name=f"places of {kind.name} layers",
        )


def _stages(rows: Equations, ir: ModelGraph, inputs: Workload, section: Section) -> Stages:
    """The assignment of layers to stages."""
    figures = {figure.id.removeprefix("plan."): figure for figure in section.figures()}

    def of(name: str) -> tuple[Any, ...]:
        return tuple(figures[f"{name}.{stage}"] for stage in range(MOST_STAGES))

    ends = {
        name: tuple(rows[f"plan.{name}.{s}"] > 0 for s, _ in enumerate(inputs.devices))
        for name in ("first", "last")
    }
    return Stages(
        before=of("before"),
        layers={kind.count: of(_identifier(kind)) for kind in ir.layers},
        fullest=rows["plan.layers"],
        section=section,
        **ends,
    )


def _identifier(kind: Layer) -> str:
    return kind.count.id.removeprefix("model.")
