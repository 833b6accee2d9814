"""Weights of layers, of the ends of a model, and of stages; what projections hold of a token. The rest of the
memory of the fullest accelerator stands in memory.eq.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mantile.equations.adapters import Adapters, adapters
from mantile.equations.constant import (
    BILLION,
    JOINED,
    VECTOR_BYTES,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.engine import share
from mantile.equations.formats import Formats
from mantile.equations.framework import Frameworks
from mantile.equations.inputs import Workload
from mantile.equations.kinds_of_layers import by_kind, kinds_of
from mantile.equations.kv_cache import Caches, kv_bytes, policy
from mantile.equations.plan import Sharding, Stages, scope
from mantile.equations.speculation import Speculation
from mantile.equations.tables import Equations
from mantile.equations.tensors import VECTORS, RankWeights, Tensors
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    as_node,
    equal,
    expression,
    is_named,
    maximum,
    round_up,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module
from mantile.library.profiles import ON_HOST


@dataclass(frozen=True)
class Memory:
    """What a rank holds of layers and stages; and the blocks of all that lies in its memory.

    Args:
        stage_weights: of a rank on each pipeline stage, wherever they lie.
        stage_kv: KV cache of a request on a rank of each stage.
        caches: KV caches and states of a layer.
        of_layers: weights of a layer of each kind; `ends` what the first stage holds before its layers, and
            the last behind them.
        adapters: of LoRA; None where no scenario states any.
    """

    stage_weights: tuple[Quantity, ...]
    stage_kv: tuple[Quantity, ...]
    caches: Caches
    of_layers: Mapping[Input, Quantity]
    ends: tuple[Quantity, Quantity]
    adapters: Adapters | None
    sections: tuple[Section, ...]


def memory(
    ir: ModelGraph,
    inputs: Workload,
    known: Frameworks,
    formats: Formats,
    efficiency: Efficiency,
    plan: Sharding,
    tensors: Tensors,
    rows: Equations,
    drafts: Speculation | None = None,
) -> Memory:
    """What a rank holds.

    Args:
        rows: know hardware, factors and shards; get layers and stages.
    """
    stored = weights(ir, inputs, known, formats, plan, tensors)
    caches = kv_bytes(ir, inputs, formats, plan, rows, policy(ir, inputs, known))
    drafter = None if drafts is None else drafting(ir, inputs, formats, stored, caches, rows, drafts)
    carried = adapters(ir, inputs, plan, stored.layers)
    if carried is not None:
        stored = replace(stored, layers=carried.layers)
    on_stages = stages(inputs, plan.stages, stored, caches, drafter)
    told = share(inputs, efficiency, known)
    sections = (
        stored.section,
        *(() if carried is None else (carried.section,)),
        *rows.sections("memory", "KV admission"),
        caches.section,
        *(() if drafter is None else (drafter.section,)),
        on_stages.section,
        *(() if told.section is None else (told.section,)),
    )
    of_token = Rows("memory")
    rows.know_as("memory.widest", widest(widths(of_token, ir, plan)))
    rows.know(*of_token.quantities(), *(figure for section in sections for figure in section.figures()))
    if caches.to_come is not None:
        rows.know_as("memory.to_come", caches.to_come)
    if plan.heads is None:
        rows.know_as("plan.heads", as_node(0))
    return Memory(
        stage_weights=on_stages.weights,
        stage_kv=on_stages.kv,
        caches=caches,
        of_layers=stored.layers,
        ends=(stored.start, stored.head if drafter is None else drafter.weights),
        adapters=carried,
        sections=(*sections, *rows.sections("memory", "Working memory", "Capacity", "Memory used")),
    )


@dataclass(frozen=True)
class _Weights:
    """Bytes of weights on a rank: of a layer of each kind, before the first layer, and behind the last."""

    layers: Mapping[Input, Quantity]
    start: Quantity
    head: Quantity
    section: Section


def weights(
    ir: ModelGraph,
    inputs: Workload,
    known: Frameworks,
    formats: Formats,
    plan: Sharding,
    tensors: Tensors,
) -> _Weights:
    """Bytes of weights on a rank."""
    rows = Rows("memory")
    padded = padding(rows, ir, inputs, known, formats, plan)
    members: dict[Input, list[Node]] = {kind.count: [] for kind in ir.layers}
    for of_layer in tensors.of_layers:
        size = rows(
            f"weights.{of_layer.parameters.id.removeprefix('tensors.')}",
            f"{of_layer.title}, of a layer",
            "B",
            of_layer.parameters * _bytes_per_weight(of_layer, formats)
            if padded is None or of_layer.weights != EXPERTS
            else of_layer.parameters * formats.stored[EXPERTS].bytes * padded,
            called=of_layer.words,
        )
        for kind in kinds_of(ir, of_layer.layers):
            members[kind].append(size)
    layers = by_kind(rows, ir, "layer_weights", "Weights of a", "B", members)
    start, head = end_weights(rows, ir, inputs, known, formats, tensors)
    return _Weights(layers, start, head, rows.section("Weights of a layer", "of a rank"))


EXPERTS, MXFP4 = "experts", "mxfp4"


def padding(
    rows: Rows, ir: ModelGraph, inputs: Workload, known: Frameworks, formats: Formats, plan: Sharding
) -> Quantity | None:
    """What experts take against their size where kernels pad them; None for a model without experts."""
    back = next(
        (
            (module, module.operation)
            for module in ir.modules
            if isinstance(module.operation, GroupedMatMul)
            and module.operation.outputs is ir.facts["hidden_size"]
        ),
        None,
    )
    if back is None or EXPERTS not in formats.stored:
        return None
    of_hidden, of_width = (
        rows(f"multiple_{name}", f"Multiple of the {words}", "channel", known.of(multiples, inputs.framework))
        for name, words, multiples in (
            ("hidden", "hidden size", known.pads_hidden),
            ("expert", "expert size on a rank", known.pads_expert),
        )
    )
    of_expert, hidden = plan.on_rank(back[1].inputs, back[0]), ir.facts["hidden_size"]
    ratios = [
        rows(
            f"padded_{name}",
            f"Padded against its size, {words}",
            "1",
            round_up(size / multiple) * multiple / size,
            "of experts in mxfp4",
        )
        for name, words, size, multiple in (
            ("hidden", "hidden size", hidden, of_hidden),
            ("expert", "expert size on a rank", of_expert, of_width),
        )
    ]
    return rows(
        "expert_padding",
        "Experts as stored against their size",
        "1",
        where(equal(formats.stored[EXPERTS].dtype, MXFP4), ratios[0] * ratios[1], 1),
        "kernels of mxfp4 pad them",
    )


def _bytes_per_weight(of_layer: RankWeights, formats: Formats) -> Node:
    return VECTOR_BYTES if of_layer.weights == VECTORS else formats.stored[of_layer.weights].bytes


def end_weights(
    rows: Rows,
    ir: ModelGraph,
    inputs: Workload,
    known: Frameworks,
    formats: Formats,
    tensors: Tensors,
) -> tuple[Quantity, Quantity]:
    """What the first stage holds before its layers, and the last behind them."""
    of_head = formats.stored["head"].bytes
    of_embedding = formats.stored.get("embedding", formats.stored["head"]).bytes
    on_host = where(equal(known.of(known.embeddings, inputs.framework), ON_HOST), 1, 0)
    host = rows(
        "host_embedding",
        "Embedding on the host",
        "B",
        tensors.embedding * of_embedding * on_host,
        "where the framework reads it there",
    )
    embedding = rows(
        "embedding_weights",
        "Weights of the embedding",
        "B",
        tensors.embedding * of_embedding - (1 - ir.facts["tied_embeddings"]) * host,
        "0 where the framework reads it on the host, unless it is the LM head too",
    )
    head = rows(
        "head_weights",
        "Weights of the LM head",
        "B",
        tensors.head * of_head
        + tensors.final_vectors * VECTOR_BYTES
        + where(inputs.pp > 1, ir.facts["tied_embeddings"] * embedding, 0),
        "the last of several stages needs a copy of a tied embedding",
        called="weights of the LM head",
    )
    if tensors.vision is None:
        return embedding, head
    vision = rows(
        "vision_weights",
        "Weights of the vision tower",
        "B",
        tensors.vision * VECTOR_BYTES / inputs.tp,
        "in 16 bit, on the first stage",
    )
    start = rows(
        "first_weights",
        "Weights of embedding and vision tower",
        "B",
        embedding + vision,
        called="weights of the first stage's start",
    )
    return start, head


@dataclass(frozen=True)
class _OnStages:
    """Bytes of a rank on each stage: weights, and KV cache of a request."""

    weights: tuple[Quantity, ...]
    kv: tuple[Quantity, ...]
    section: Section


@dataclass(frozen=True)
class _Drafter:
    """What drafts, on a rank of the last stage: bytes of weights, LM head included, and of a cache."""

    weights: Quantity
    kv: Quantity
    section: Section


def drafting(
    ir: ModelGraph,
    inputs: Workload,
    formats: Formats,
    stored: _Weights,
    caches: Caches,
    texts: Equations,
    drafts: Speculation,
) -> _Drafter:
    """What drafts: a layer like the model's own with what joins its inputs, or another model in 16 bit."""
    assert inputs.draft_parameters is not None and inputs.draft_kv_channels is not None
    rows, hidden = Rows("memory"), ir.facts["hidden_size"]
    of_layer = rows(
        "draft_layer",
        "Weights of a prediction layer",
        "B",
        sum_of([stored.layers[layer.count] for layer in ir.drafting])
        + JOINED * hidden * hidden * VECTOR_BYTES,
        "a layer like the model's own, and what joins its inputs, in 16 bit",
    )
    of_model = rows(
        "draft_model",
        "Weights of a draft model",
        "B",
        inputs.draft_parameters * BILLION * VECTOR_BYTES / inputs.tp,
        "in 16 bit",
    )
    weights = rows(
        "draft_weights",
        "Weights behind the layers, drafter included",
        "B",
        stored.head + drafts.by_layer * of_layer + drafts.by_model * of_model,
        "on the last stage",
    )
    kept = rows(
        "draft_kept",
        "Cache of a draft model for a token",
        "B/token",
        drafts.by_model * inputs.draft_kv_channels * formats.kv_bytes / inputs.tp,
    )
    kv = rows(
        "draft_kv",
        "Cache of the drafter for a request",
        "B/request",
        drafts.by_layer * sum_of([caches.layers[layer.count] for layer in ir.drafting])
        + kept * texts["memory.held_length"] / inputs.cp,
    )
    return _Drafter(weights, kv, rows.section("Drafter", "on a rank of the last stage"))


def stages(
    inputs: Workload, assigned: Stages, stored: _Weights, caches: Caches, drafter: _Drafter | None = None
) -> _OnStages:
    """What a rank holds on each pipeline stage, and on the fullest."""
    parts, rows = Rows("memory"), Rows("memory")
    of_weights: list[Node] = _in_layers(parts, assigned, "stage_weights", "B", stored.layers)
    of_kv: list[Node] = _in_layers(parts, assigned, "stage_kv", "B/request", caches.layers)
    last = stored.head if drafter is None else drafter.weights
    of_weights = _on_last(assigned, of_weights, last)
    if inputs.devices:
        of_weights = [
            size + where(is_first, stored.start, 0)
            for is_first, size in zip(assigned.first, of_weights, strict=True)
        ]
    else:
        of_weights[0] = of_weights[0] + stored.start
    if drafter is not None:
        of_kv = _on_last(assigned, of_kv, drafter.kv)
    rows.add(*parts.rows)
    on_stages = tuple(
        rows(f"stage_weights.{stage}", f"Weights of a rank on stage {stage}", "B", size)
        for stage, size in enumerate(of_weights)
    )
    rows("all_weights", "Weights of the fullest stage", "B", maximum(span(on_stages)))
    kv = tuple(
        rows(f"stage_kv.{stage}", f"KV cache of a request on stage {stage}", "B/request", size)
        for stage, size in enumerate(of_kv)
    )
    rows("kv_bytes_per_request", "KV bytes per request", "B/request", maximum(span(kv)))
    section = rows.section("Stages in memory", "0 beyond the last stage")
    return _OnStages(on_stages, kv, section)


def _on_last(assigned: Stages, sizes: list[Node], more: Quantity) -> list[Node]:
    """The sizes of all stages, with what the last one holds beside its layers."""
    return [size + where(is_last, more, 0) for is_last, size in zip(assigned.last, sizes, strict=True)]


_KINDS = 2
"""Kinds of layer in one formula."""


def _in_layers(
    rows: Rows, assigned: Stages, name: str, unit: str, sizes: Mapping[Input, Quantity]
) -> list[Node]:
    """What the layers of each stage come to; of many kinds in parts, to keep formulas short."""
    totals: list[Node] = []
    for stage in range(len(assigned.numbers)):
        parts: list[Node] = [assigned.layers[kind][stage] * size for kind, size in sizes.items()]
        if len(parts) > _KINDS:
            parts = [
                rows(
                    f"{name}.{stage}.{first}",
                    f"Part {first // _KINDS + 1} of stage {stage}, {name.replace('_', ' ')}",
                    unit,
                    sum_of(parts[first : first + _KINDS]),
                )
                for first in range(0, len(parts), _KINDS)
            ]
        totals.append(sum_of(parts))
    return totals


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
