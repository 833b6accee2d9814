"""What lies in the memory of the fullest accelerator, and how many sequences its KV cache holds.

id behind "memory"                                              function
-------------------------------------------------------------   ---------------------------
.weights.CLASS                                                  memory.weights
.layer_weights.KIND .layer_kv.KIND                              kinds_of_layers.by_kind
.embedding_weights .head_weights .vision_weights                memory.end_weights
  .first_weights
.admission .held_share .sequence_length .held_length            kv_cache.admission
.cached_tokens .tokens_to_come                                  kv_cache.cached_tokens
.kv_bytes_per_token .kv_bytes_per_request.MODULE .kv_to_come    kv_cache.kv_bytes
.state_values .conv_channels .layer_state                       kv_cache.state
.stage_weights .stage_kv .all_weights .kv_bytes_per_request     memory.stages
.mixer_width .ffn_width                                         memory.widths
.requests .activation_width .activations .logits_per_request    memory.working
  .reserve
.host_weights .weights .usable .kv_room .kv_growth              memory.capacity
  .cache_room .request_held .request_end .oldest
  .rank_sequences .capacity_sequences .allowed .batch
.output_ratio .kv_pressure .stopped .redone .swapped            memory.redone
  .parked_places .parked_share
.seats .all_kv .logits .host_kv .kv .used .headroom .free       memory.used
  .outside .limit .fits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mantile.equations.adapters import Adapters, adapters
from mantile.equations.constant import (
    BILLION,
    BOTH_WAYS,
    CALM,
    GIGA,
    JOINED,
    LOGIT_BYTES,
    ONE_REQUEST,
    PARKED,
    REDONE,
    REDONE_FROM,
    RESULT_BYTES,
    RUSH,
    SLACK,
    SMALLEST,
    STREAMS,
    VECTOR_BYTES,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.engine import Share, share
from mantile.equations.formats import Formats
from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.kinds_of_layers import by_kind, kinds_of
from mantile.equations.kv_cache import Caches, Held, admission, kv_bytes, policy
from mantile.equations.plan import Sharding, Stages, scope
from mantile.equations.runtime import Runtime, beside_step, room_of, runtime, sampler
from mantile.equations.speculation import Speculation, checked
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
    minimum,
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
    """Bytes in the fullest accelerator, and the batch that its KV cache allows.

    Args:
        stage_weights: of a rank on each pipeline stage, wherever they lie.
        stage_kv: KV cache of a request on a rank of each stage.
        host_weights, host_kv: what lies in host memory and is read over the host link.
        caches: KV caches and states of a layer.
        requests: of a replica that ask; `batch` of them run at once, `rank_requests` on a rank.
        prompt_batch: prompt tokens in one pass, 0 where a prompt is one; `step_tokens` the most in a step.
        allowed: of them, that the engine would run.
        redone: prompts prefilled again for each request, as its place was given to others.
        swapped: bytes that go to the host and come back instead, of each request on a rank.
        fits: 1 where `used` is at most `limit`.
        of_layers: weights of a layer of each kind; `ends` what the first stage holds before its layers, and
            the last behind them.
        adapters: of LoRA; None where no scenario states any.
    """

    stage_weights: tuple[Quantity, ...]
    stage_kv: tuple[Quantity, ...]
    host_weights: Quantity
    host_kv: Quantity
    logits: Quantity
    weights: Quantity
    kv: Quantity
    activations: Quantity
    reserve: Quantity
    used: Quantity
    usable: Quantity
    headroom: Quantity
    free: Quantity
    outside: Quantity
    limit: Quantity
    fits: Quantity
    caches: Caches
    capacity_sequences: Quantity
    requests: Quantity
    prompt_batch: Quantity
    step_tokens: Quantity
    rank_requests: Quantity
    allowed: Quantity
    batch: Quantity
    redone: Quantity
    swapped: Quantity
    of_layers: Mapping[Input, Quantity]
    ends: tuple[Quantity, Quantity]
    adapters: Adapters | None
    sections: tuple[Section, ...]


def memory(
    ir: ModelGraph,
    inputs: Workload,
    ranks: Ranks,
    known: Frameworks,
    hardware: Hardware,
    formats: Formats,
    efficiency: Efficiency,
    plan: Sharding,
    tensors: Tensors,
    known_rows: Equations,
    drafts: Speculation | None = None,
) -> Memory:
    """The rows of the Memory part."""
    stored = weights(ir, inputs, known, formats, plan, tensors)
    held = admission(inputs, ranks, known)
    caches = kv_bytes(ir, inputs, formats, plan, held, known_rows, policy(ir, inputs, known))
    drafter = None if drafts is None else drafting(ir, inputs, formats, stored, caches, held, drafts)
    carried = adapters(ir, inputs, plan, stored.layers)
    if carried is not None:
        stored = replace(stored, layers=carried.layers)
    on_stages = stages(inputs, plan.stages, stored, caches, drafter)
    told = share(inputs, efficiency, known)
    extra = working(ir, inputs, ranks, known, efficiency, plan, hardware, held.full, checked(drafts))
    room = capacity(ir, inputs, hardware, told, on_stages, extra, held, caches, plan.stages)
    total = used(inputs, hardware, on_stages, extra, room, caches)
    return Memory(
        stage_weights=on_stages.weights,
        stage_kv=on_stages.kv,
        host_weights=room.host_weights,
        host_kv=total.host_kv,
        logits=total.logits,
        weights=room.weights,
        kv=total.kv,
        activations=extra.activations,
        reserve=extra.reserve,
        used=total.used,
        usable=room.usable,
        headroom=total.headroom,
        free=total.free,
        outside=total.outside,
        limit=total.limit,
        fits=total.fits,
        caches=caches,
        capacity_sequences=room.sequences,
        requests=extra.requests,
        prompt_batch=extra.prompt_batch,
        step_tokens=extra.step_tokens,
        rank_requests=total.rank_requests,
        allowed=room.allowed,
        batch=room.batch,
        redone=room.again.redone,
        swapped=room.again.swapped,
        of_layers=stored.layers,
        ends=(stored.start, stored.head if drafter is None else drafter.weights),
        adapters=carried,
        sections=(
            stored.section,
            *(() if carried is None else (carried.section,)),
            held.section,
            caches.section,
            *(() if drafter is None else (drafter.section,)),
            on_stages.section,
            *(() if told.section is None else (told.section,)),
            extra.section,
            room.section,
            total.section,
        ),
    )


@dataclass(frozen=True)
class _Weights:
    """Bytes of weights on a rank: of a layer of each kind, before the first layer, and behind the last."""

    layers: Mapping[Input, Quantity]
    start: Quantity
    head: Quantity
    on_host: Quantity
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
    start, head, on_host = end_weights(rows, ir, inputs, known, formats, tensors)
    return _Weights(layers, start, head, on_host, rows.section("Weights of a layer", "of a rank"))


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
) -> tuple[Quantity, Quantity, Quantity]:
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
        return embedding, head, host
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
    return start, head, host


@dataclass(frozen=True)
class _OnStages:
    """Bytes of a rank on each stage: weights, and KV cache of a request; and those of the fullest."""

    weights: tuple[Quantity, ...]
    kv: tuple[Quantity, ...]
    all_weights: Quantity
    per_request: Quantity
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
    held: Held,
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
        + kept * held.length / inputs.cp,
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
    fullest = rows("all_weights", "Weights of the fullest stage", "B", maximum(span(on_stages)))
    kv = tuple(
        rows(f"stage_kv.{stage}", f"KV cache of a request on stage {stage}", "B/request", size)
        for stage, size in enumerate(of_kv)
    )
    per_request = rows("kv_bytes_per_request", "KV bytes per request", "B/request", maximum(span(kv)))
    section = rows.section("Stages in memory", "0 beyond the last stage")
    return _OnStages(on_stages, kv, fullest, per_request, section)


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


@dataclass(frozen=True)
class _Working:
    """Memory beside weights and caches: activations, logits of a request, the runtime."""

    requests: Quantity
    prompt_batch: Quantity
    step_tokens: Quantity
    activations: Quantity
    logits_per_request: Quantity
    runtime: Runtime
    section: Section

    @property
    def reserve(self) -> Quantity:
        """Bytes of the runtime."""
        return self.runtime.reserve


def working(
    ir: ModelGraph,
    inputs: Workload,
    ranks: Ranks,
    known: Frameworks,
    efficiency: Efficiency,
    plan: Sharding,
    hardware: Hardware,
    length: Quantity,
    checks: Node,
) -> _Working:
    """Requests of a replica, and the memory that work on them needs.

    Args:
        length: of a finished request; `checks` tokens of a request that a decode step works on.
    """
    rows = Rows("memory")
    asked: Node = maximum(1, inputs.concurrency / inputs.dp)
    why = ""
    if ranks.disaggregated is not None:
        prompts = minimum(asked, inputs.attention_dp * ONE_REQUEST)
        asked = where(ranks.disaggregated > 0, prompts, asked)
        why = "prefill workers hold a prompt for every attention group"
    requests = rows("requests", "Requests per replica", "request", asked, why)
    channels = rows(
        "activation_width",
        "Channels in memory per token",
        "channel",
        STREAMS * ir.facts["hidden_size"] + widest(widths(rows, ir, plan)),
        "products of mixer and FFN are not held together",
        called="channels in memory",
    )
    prompt_batch = rows(
        "prompt_batch",
        "Prompt tokens in a pass",
        "token",
        known.of(known.prompt_batches, inputs.framework),
        "0: a prompt is one pass",
    )
    step_tokens = rows(
        "step_tokens",
        "Most tokens in a step",
        "token",
        where(prompt_batch > 0, minimum(inputs.token_budget, prompt_batch), inputs.token_budget),
        "the token budget, or what the framework takes at once",
    )
    sampling = sampler(ir, inputs, known, efficiency, hardware, step_tokens)
    rows.add(*sampling.rows)
    behind = beside_step(rows, ir, efficiency, plan, sampling.seats, length, step_tokens)
    activations = rows(
        "activations",
        "Activations",
        "B",
        maximum(step_tokens * channels * RESULT_BYTES + behind, sampling.peak),
        "a full step, or sampling behind it",
    )
    logits = rows(
        "logits_per_request",
        "Logits per request",
        "B/request",
        checks * plan.columns["vocabulary"] * LOGIT_BYTES,
    )
    parts = runtime(rows, inputs, ranks, efficiency, plan, hardware, sampling.seats)
    section = rows.section("Working memory", "per accelerator")
    return _Working(requests, prompt_batch, step_tokens, activations, logits, parts, section)


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


@dataclass(frozen=True)
class _Capacity:
    """Room for requests, and how many of them run at once in a replica."""

    host_weights: Quantity
    weights: Quantity
    usable: Quantity
    kv_room: Quantity
    growth: Quantity
    sequences: Quantity
    allowed: Quantity
    batch: Quantity
    again: _Again
    section: Section


def capacity(
    ir: ModelGraph,
    inputs: Workload,
    hardware: Hardware,
    told: Share,
    on_stages: _OnStages,
    extra: _Working,
    held: Held,
    caches: Caches,
    assigned: Stages,
) -> _Capacity:
    """How many sequences the room beside weights and working memory holds."""
    rows = Rows("memory")
    host = rows(
        "host_weights",
        "Weights on the host",
        "B",
        minimum(inputs.offload_weights * GIGA, on_stages.all_weights),
    )
    weights = rows("weights", "Weights", "B", on_stages.all_weights - host)
    left = room_of(rows, told, hardware, weights, extra.activations, extra.runtime)
    usable = rows(
        "usable",
        "Usable memory",
        "B",
        maximum(0, minimum(hardware.memory_visible, weights + left + extra.activations + extra.reserve)),
    )
    room = rows("kv_room", "Room for requests", "B", maximum(0, left))
    logits = extra.logits_per_request
    growth = rows(
        "kv_growth",
        "Room for one request to grow to its end",
        "B",
        as_node(0)
        if caches.to_come is None
        else ONE_REQUEST * caches.to_come * assigned.fullest / ir.total_layers,
        "on the fullest stage; the oldest one always ends",
    )
    cache_room = rows(
        "cache_room",
        "Room for caches and logits",
        "B",
        room + inputs.offload_kv * GIGA
        if caches.shared is None
        else maximum(0, room + inputs.offload_kv * GIGA - caches.shared),
        "host memory too",
    )
    of_request = rows(
        "request_held", "Room of a running request", "B/request", on_stages.per_request + logits
    )
    at_end = rows(
        "request_end", "Room of a request at its end", "B/request", of_request + growth / ONE_REQUEST
    )
    oldest = rows(
        "oldest",
        "Requests with room to their end",
        "request",
        minimum(ONE_REQUEST, cache_room / at_end),
        "the oldest one",
    )
    of_rank = rows(
        "rank_sequences",
        "KV capacity of a rank in sequences",
        "request",
        minimum(
            oldest + maximum(0, cache_room - ONE_REQUEST * at_end) / of_request,
            room / logits,
        ),
        "others with what they have now; a KV cache may lie on the host, logits may not",
    )
    sequences = rows(
        "capacity_sequences",
        "KV capacity in sequences",
        "request",
        of_rank * inputs.attention_dp,
        called="KV capacity",
    )
    allowed = rows(
        "allowed",
        "Requests that the engine would run",
        "request",
        where(inputs.max_requests > 0, minimum(extra.requests, inputs.max_requests), extra.requests),
    )
    again = redone(rows, inputs, held, allowed, sequences, on_stages.per_request)
    running = rows(
        "batch",
        "Batch",
        "request",
        maximum(1, minimum(allowed, sequences)),
        "as far as the KV cache holds them",
    )
    section = rows.section("Capacity", "how many requests run at once in a replica", Section.SUBTOTAL)
    return _Capacity(
        host_weights=host,
        weights=weights,
        usable=usable,
        kv_room=room,
        growth=growth,
        sequences=sequences,
        allowed=allowed,
        batch=running,
        again=again,
        section=section,
    )


@dataclass(frozen=True)
class _Again:
    """What requests that lose their place cost, per request.

    Args:
        redone: prompts prefilled again.
        swapped: bytes that a rank moves to the host and back instead.
    """

    redone: Quantity
    swapped: Quantity


def redone(
    rows: Rows, inputs: Workload, held: Held, allowed: Quantity, sequences: Quantity, per_request: Quantity
) -> _Again:
    """Work of requests that are stopped where memory runs out, in prompts of a request.

    A simulation, request by request, stops the newest where the KV cache is full: 0.02 prompts a request
    where the output is a tenth of the prompt, 0.6 where it is as long, 3.5 where it is five times as long.
    They are prefilled again, or their KV cache is parked on the host as far as there is room.
    """
    longer = rows(
        "output_ratio",
        "Output against the prompt",
        "1",
        inputs.output_tokens / inputs.input_tokens,
    )
    asked = rows(
        "kv_asked",
        "Requests against KV capacity",
        "1",
        allowed / ONE_REQUEST / maximum(SMALLEST, sequences / ONE_REQUEST),
    )
    pressure = rows(
        "kv_pressure",
        "How full the KV cache is kept",
        "1",
        minimum(1, maximum(0, (asked - CALM) / (RUSH - CALM))),
        "all the time if 1",
    )
    stopped = rows(
        "stopped",
        "Prompts that lose their place, per request",
        "1",
        where(
            held.share < 1,
            pressure * REDONE * longer * longer / (longer + REDONE_FROM),
            0,
        ),
        "older requests take it; with what they have generated so far",
        source="simulation, 2026-11",
    )
    places = rows(
        "parked_places",
        "Requests that may be parked",
        "request",
        inputs.kv_swap * GIGA / per_request * inputs.attention_dp,
        "in host memory",
    )
    parked = rows(
        "parked_share",
        "Share of them that is parked",
        "1",
        where(stopped > 0, minimum(1, places / maximum(ONE_REQUEST, PARKED * stopped * sequences)), 0),
        "few are stopped at a time",
        source="simulation, 2026-11",
    )
    return _Again(
        redone=rows(
            "redone",
            "Prompts prefilled again, per request",
            "1",
            (1 - parked) * stopped,
            "of requests that are stopped and not parked",
        ),
        swapped=rows(
            "swapped",
            "KV bytes to the host and back, per request",
            "B/request",
            BOTH_WAYS * parked * stopped * per_request * inputs.input_tokens / held.length,
            "of a rank",
        ),
    )


@dataclass(frozen=True)
class _Used:
    """Memory with the batch in it, against what may be used."""

    rank_requests: Quantity
    logits: Quantity
    host_kv: Quantity
    kv: Quantity
    used: Quantity
    headroom: Quantity
    free: Quantity
    outside: Quantity
    limit: Quantity
    fits: Quantity
    section: Section


def used(
    inputs: Workload,
    hardware: Hardware,
    on_stages: _OnStages,
    extra: _Working,
    room: _Capacity,
    caches: Caches,
) -> _Used:
    """What the batch and all else come to."""
    rows = Rows("memory")
    on_rank = rows("seats", "Requests on a rank", "request", maximum(1, room.batch / inputs.attention_dp))
    of_batch = on_rank * on_stages.per_request + room.growth
    all_kv = rows(
        "all_kv",
        "KV cache of the batch",
        "B",
        of_batch if caches.shared is None else of_batch + caches.shared,
    )
    logits = rows("logits", "Logits", "B", on_rank * extra.logits_per_request)
    host_kv = rows(
        "host_kv",
        "KV cache on the host",
        "B",
        minimum(inputs.offload_kv * GIGA, maximum(0, all_kv + logits - room.kv_room)),
        "only what has no room goes there",
    )
    kv = rows("kv", "KV cache", "B", all_kv - host_kv)
    total = rows("used", "Memory used", "B", room.weights + kv + extra.activations + logits + extra.reserve)
    headroom = rows("headroom", "Headroom", "B", room.usable - total, "negative where it does not fit")
    spare = headroom if caches.shared is None else headroom - SLACK
    free = rows("free", "Free memory", "B", maximum(0, spare))
    outside = rows("outside", "Memory left to others", "B", hardware.memory_capacity - room.usable)
    limit = rows(
        "limit",
        "Most memory that may be used",
        "B",
        room.usable + SLACK,
        "a full memory fits, however rounded",
        called="usable memory with slack",
    )
    fits = rows("fits", "Fits in memory", "flag", where(total <= limit, 1, 0))
    return _Used(
        rank_requests=on_rank,
        logits=logits,
        host_kv=host_kv,
        kv=kv,
        used=total,
        headroom=headroom,
        free=free,
        outside=outside,
        limit=limit,
        fits=fits,
        section=rows.section("Memory used", "weights + KV cache of the batch + working memory"),
    )
