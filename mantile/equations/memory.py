"""Which layers, classes of weights and stages there are, and the widest projections.

Rows of the memory of a rank stand in memory.eq, but for widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mantile.equations.adapters import make_adapters
from mantile.equations.formats import Formats
from mantile.equations.kv_cache import kept_of, know_sums, make_caches
from mantile.equations.plan import Sharding, scope
from mantile.equations.tables import Equations, Space
from mantile.equations.tensors import Tensors
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    as_node,
    expression,
    is_named,
    maximum,
    sum_of,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module, Recurrence
from mantile.library.scenario_fields import MOST_STAGES


@dataclass(frozen=True)
class Memory:
    """What a rank holds of layers and stages; and the blocks of all that lies in its memory.

    Args:
        stage_weights: of a rank on each pipeline stage, wherever they lie.
        stage_kv: KV cache of a request on a rank of each stage.
        caches: modules that keep tokens.
        of_layers: weights of a layer of each kind; `kv_of_layers` KV cache and states of a request in it.
        ends: what the first stage holds before its layers, and the last behind them.
    """

    stage_weights: tuple[Quantity, ...]
    stage_kv: tuple[Quantity, ...]
    caches: tuple[Module, ...]
    of_layers: Mapping[Input, Quantity]
    kv_of_layers: Mapping[Input, Quantity]
    ends: tuple[Quantity, Quantity]
    sections: tuple[Section, ...]


def memory(
    ir: ModelGraph,
    formats: Formats,
    plan: Sharding,
    tensors: Tensors,
    rows: Equations,
) -> Memory:
    """What a rank holds.

    Args:
        rows: know hardware, factors and shards; get layers and stages.
    """
    keep = make_caches(rows, ir, formats, plan)
    make_weights(rows, ir, formats, tensors, plan)
    know_sums(rows, keep)
    if "adapters" in rows.features:
        make_adapters(rows, ir, plan)
    layers = _by_kind(rows, ir, "adapters.layer" if "adapters" in rows.features else "memory.layer_weights")
    ends = (
        rows["memory.first_weights" if "vision_tower" in rows.features else "memory.embedding_weights"],
        rows["memory.draft_weights" if "speculation" in rows.features else "memory.head_weights"],
    )
    make_stages(rows, ir, layers)
    sections = (
        *rows.sections("memory", "Weights of a layer"),
        *rows.sections("adapters"),
        *rows.sections("memory", "KV admission", "KV cache of a request", "Drafter"),
        *rows.sections("memory", "Stages in memory"),
        *rows.sections("engine"),
    )
    of_token = Rows("memory")
    rows.know_as("memory.widest", widest(widths(of_token, ir, plan)))
    rows.know(*of_token.quantities(), *(figure for section in sections for figure in section.figures()))
    return Memory(
        stage_weights=tuple(rows[f"memory.stage_weights.{stage}"] for stage in range(MOST_STAGES)),
        stage_kv=tuple(rows[f"memory.stage_kv.{stage}"] for stage in range(MOST_STAGES)),
        caches=keep,
        of_layers=layers,
        kv_of_layers=_by_kind(rows, ir, "memory.layer_kv"),
        ends=ends,
        sections=(*sections, *rows.sections("memory", "Working memory", "Capacity", "Memory used")),
    )


_EXPERTS = "experts"


def features_of_weights(ir: ModelGraph) -> Iterator[str]:
    """What an architecture stores, by the names of `when`."""
    if len(ir.layers) > _KINDS:
        yield "many_kinds"
    if _back(ir) is not None:
        yield "padded_experts"


def _back(ir: ModelGraph) -> tuple[Module, GroupedMatMul] | None:
    """The matrices of experts back to the hidden size, which kernels pad; None in a model without."""
    for module in ir.modules:
        work = module.operation
        if isinstance(work, GroupedMatMul) and work.outputs is ir.facts["hidden_size"]:
            return (module, work) if _EXPERTS in ir.weight_classes() else None
    return None


def make_weights(rows: Equations, ir: ModelGraph, formats: Formats, tensors: Tensors, plan: Sharding) -> None:
    """Make the rows of weights: of each class, of each kind of layer, of what drafts."""
    rows.know_as("memory.embedding_bytes", formats.stored.get("embedding", formats.stored["head"]).bytes)
    back = _back(ir)
    if back is not None:
        rows.know_as("memory.expert_width", plan.on_rank(back[1].inputs, back[0]))
    members: dict[Input, list[str]] = {kind.count: [] for kind in ir.layers}
    plain, padded = list[Space](), list[Space]()
    for of_layer in tensors.of_layers:
        stored = formats.stored.get(of_layer.weights)
        name = of_layer.parameters.id.removeprefix("tensors.")
        facts = {"class": name, "title": of_layer.title, "words": of_layer.words}
        facts["bytes"] = "vector_bytes" if stored is None else stored.bytes.id
        (padded if of_layer.weights == _EXPERTS and back is not None else plain).append(Space(facts=facts))
        for kind in ir.layers:  # of which these layers are the sum
            if any(module.layers is of_layer.layers for module in kind.modules):
                members[kind.count].append(f"`memory.weights.{name}`")
    rows.make_in("class of weights", *plain)
    rows.make_in("class of padded weights", *padded)
    several = len(ir.layers) > 1
    rows.make_in(
        "kind of layer",
        *(
            Space(
                facts={
                    "kind": ".".join(kind.blocks),
                    "name": f", {kind.name}" if several else "",
                    "weights": " + ".join(members[kind.count]) or "0",
                    "kv": " + ".join(map(_kept_in, filter(_keeps, kind.modules))) or "0",
                }
            )
            for kind in ir.layers
        ),
    )
    names = [".".join(layer.blocks) for layer in ir.drafting]
    of_drafter = {
        "weights": " + ".join(f"memory.layer_weights.{name}" for name in names),
        "kv": f"({' + '.join(f'memory.layer_kv.{name}' for name in names)})",
    }
    rows.make_in("drafter", Space(facts=of_drafter))


def _keeps(module: Module) -> bool:
    return isinstance(module.operation, Recurrence) or kept_of(module) is not None


def _kept_in(module: Module) -> str:
    """The row of what a module keeps of a request."""
    state = isinstance(module.operation, Recurrence)
    return f"memory.{'layer_state' if state else 'kv_bytes_per_request'}.{module.id}"


def _by_kind(rows: Equations, ir: ModelGraph, name: str) -> dict[Input, Quantity]:
    return {kind.count: rows[f"{name}.{'.'.join(kind.blocks)}"] for kind in ir.layers}


_KINDS = 2
"""Kinds of layer in one formula."""


def make_stages(rows: Equations, ir: ModelGraph, weights: Mapping[Input, Quantity]) -> None:
    """Make the rows of what a rank holds on each stage; of many kinds in parts, to keep formulas short.

    Args:
        weights: of a layer of each kind.
    """
    rows.know(*weights.values())
    kinds = [
        Space(
            facts={
                "on_stages": kind.count.id.replace("model.", "plan."),
                "of_weights": weights[kind.count].id,
                "of_kv": f"memory.layer_kv.{'.'.join(kind.blocks)}",
            }
        )
        for kind in ir.layers
    ]
    rows.make_in("kind in stages", *kinds)
    firsts = range(0, len(kinds), _KINDS) if len(kinds) > _KINDS else range(0)
    facts = [{"first": f"{first}", "number": f"{first // _KINDS + 1}"} for first in firsts]
    for first in firsts:
        rows.make_in(f"kind from {first}", *kinds[first : first + _KINDS])
    rows.make_in("part of stages", *(Space(facts=of) for of in facts))
    rows.make_in(
        "part of a stage", *(Space(facts={"s": f"{s}"} | of) for s in range(MOST_STAGES) for of in facts)
    )


def widths(rows: Rows, ir: ModelGraph, plan: Sharding) -> dict[str, list[Quantity]]:
    """Channels per token and rank that a mixer, and an FFN, hold: the widest projection, and the widest input
    of one back to the hidden size.

    What experts hand back is counted too, as it is there once for every expert of a token.
    """
    found: dict[str, list[Quantity]] = {}
    for of, article, words in (("mixer", "a", "mixer"), ("ffn", "an", "FFN")):
        outer, inner = _channels_of(of, ir, plan)
        for name, label, channels in (
            (f"{of}_width", f"Widest projection of {article} {words} per rank", outer),
            (f"{of}_inner", f"What {article} {words} projects back per rank", inner),
        ):
            if channels:
                body = _largest(_candidates(rows, name, channels))
                found.setdefault(of, []).append(rows(name, label, "channel", body))
    return found


_Channels = list[tuple[Module, Node]]


def _channels_of(of: str, ir: ModelGraph, plan: Sharding) -> tuple[_Channels, _Channels]:
    """What projections of a mixer or FFN put out per token and rank, and what those back take in."""
    outer: dict[object, tuple[Module, Node]] = {}
    inner: dict[object, tuple[Module, Node]] = {}
    hidden = ir.facts["hidden_size"]
    for module in ir.modules:
        work = module.operation
        grouped = isinstance(work, GroupedMatMul)
        if not isinstance(work, GroupedMatMul | MatMul) or (module.layers is None and not grouped):
            continue
        if (isinstance(work, MatMul) and work.weights == "attention") != (of == "mixer"):
            continue
        times: Node = work.per_token if isinstance(work, GroupedMatMul) else as_node(1)
        back = work.outputs is hidden
        if grouped or not back:
            channels = work.outputs * times if grouped else work.outputs
            outer[work.outputs, scope(module)] = module, plan.on_rank(channels, module)
        if back:
            channels = work.inputs * times if grouped else work.inputs
            inner[work.inputs, scope(module)] = module, plan.on_rank(channels, module)
    return [*outer.values()], [*inner.values()]


def widest(found: Mapping[str, list[Quantity]]) -> Node:
    """Channels of the mixer or of the FFN, whichever has more."""
    return _largest([sum_of(parts) for parts in found.values()] or [as_node(0)])


def _candidates(rows: Rows, name: str, channels: list[tuple[Module, Node]]) -> list[Node]:
    """Widths of projections.

    In rows of their own where a formula would have more references than one can read.
    """
    bodies = [body for _, body in channels]
    if sum(map(is_named, expression(*bodies))) <= _READABLE:
        return bodies
    return [
        body
        if is_named(body)
        else rows(f"{name}.{module.id}", f"Width of {module.label} per rank", "channel", body)
        for module, body in channels
    ]


def _largest(widths: list[Node]) -> Node:
    return maximum(*widths) if len(widths) > 1 else widths[0]


_READABLE = 8  # references in a formula
