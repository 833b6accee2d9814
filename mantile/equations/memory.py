"""What lies in the memory of the fullest accelerator, and how many sequences its KV cache holds."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import (
    CONV_BYTES,
    GIGA,
    LOGIT_BYTES,
    ONE_REQUEST,
    RESULT_BYTES,
    SLACK,
    STATE_BYTES,
    TOKENS_PER_STEP,
    VECTOR_BYTES,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import Formats
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.plan import Sharding, scope
from mantile.equations.tensors import VECTORS, Tensors
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    equal,
    maximum,
    minimum,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import (
    Attention,
    AttentionSpan,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
    Recurrence,
)


@dataclass(frozen=True)
class Memory:
    """Bytes in the fullest accelerator, and the batch that its KV cache allows.

    Args:
        stage_weights: of a rank on each pipeline stage, wherever they lie; `stage_kv` B of KV cache per request.
        host_weights, host_kv: what lies in host memory and is read over the host link.
    """

    layer_weights: tuple[Quantity, ...]
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
    seats: Quantity
    batch: Quantity
    sections: tuple[Section, ...]


def memory(
    ir: ModelGraph,
    inputs: Workload,
    ranks: Ranks,
    hardware: Hardware,
    formats: Formats,
    efficiency: Efficiency,
    plan: Sharding,
    stored: Tensors,
) -> Memory:
    """The rows of the Memory sheet."""
    parts: list[Quantity] = []
    by_kind: dict[Input, list[Quantity]] = {kind.count: [] for kind in ir.layers}
    for held in stored.of_layers:
        size: Node = VECTOR_BYTES if held.weights == VECTORS else formats.classes[held.weights].bytes
        name = held.parameters.id.removeprefix("tensors.")
        label = held.parameters.label.removesuffix(", of a layer on a rank")
        parts.append(
            Quantity(
                f"memory.weights.{name}",
                f"{label}, of a layer",
                "B",
                held.parameters * size,
                note="parameters of a layer on a rank × bytes per weight",
            )
        )
        for kind in kinds_of(ir, held.layers):
            by_kind[kind].append(parts[-1])
    head_class = formats.classes["head"]
    embedding = Quantity(
        "memory.embedding_weights", "Weights of the embedding", "B", stored.embedding * head_class.bytes
    )
    head = Quantity(
        "memory.head_weights",
        "Weights of the LM head",
        "B",
        stored.head * head_class.bytes
        + stored.final_vectors * VECTOR_BYTES
        + where(inputs.pp > 1, ir.facts["tied_embeddings"] * embedding, 0),
        note="LM head and final norm; a copy of a tied embedding where there are several stages",
        name="weights of the LM head",
    )
    start = embedding
    ends: tuple[Quantity, ...] = (embedding, head)
    if stored.vision is not None:
        vision = Quantity(
            "memory.vision_weights",
            "Weights of the vision tower",
            "B",
            stored.vision * VECTOR_BYTES / inputs.tp,
            note="parameters × 2 bytes ÷ TP: in 16 bit, on the first stage",
        )
        start = Quantity(
            "memory.first_weights",
            "Weights of embedding and vision tower",
            "B",
            embedding + vision,
            name="weights of the first stage's start",
        )
        ends = (*ends, vision, start)

    length = Quantity(
        "memory.sequence_length",
        "Length of a finished request",
        "token/request",
        inputs.input_tokens + inputs.output_tokens,
    )
    caches = _caches(ir, inputs, formats, plan, length)

    def of_layer(
        what: str, label: str, unit: str, members: dict[Input, list[Quantity]]
    ) -> dict[Input, Quantity]:
        return {
            kind.count: Quantity(
                f"memory.{what}.{'.'.join(kind.blocks)}",
                f"{label} {kind.name if len(ir.layers) > 1 else ''} layer".replace("  ", " "),
                unit,
                sum_of(list(members[kind.count])) if members[kind.count] else as_node(0),
                note="sum of its rows above",
            )
            for kind in ir.layers
        }

    layer_weights = of_layer("layer_weights", "Weights of a", "B", by_kind)
    layer_kv = of_layer("layer_kv", "KV cache and states of a request in a", "B/request", caches.by_kind)

    partial: list[Quantity] = []

    def on_stage(index: int, what: str, unit: str, sizes: dict[Input, Quantity]) -> Node:
        """What the layers of a stage come to; with many kinds in rows of their own, to keep formulas short."""
        parts: list[Node] = [plan.stages.layers[kind][index] * size for kind, size in sizes.items()]
        if len(parts) <= _KINDS:
            return sum_of(parts)
        rows = [
            Quantity(
                f"memory.{what}.{index}.{start}",
                f"Part {start // _KINDS + 1} of stage {index}, {what.replace('_', ' ')}",
                unit,
                sum_of(parts[start : start + _KINDS]),
            )
            for start in range(0, len(parts), _KINDS)
        ]
        partial.extend(rows)
        return sum_of(list(rows))

    stage_weights: list[Quantity] = []
    for index, number in enumerate(plan.stages.numbers):
        body = on_stage(index, "stage_weights", "B", layer_weights) + where(
            equal(number + 1, inputs.pp), head, 0
        )
        stage_weights.append(
            Quantity(
                f"memory.stage_weights.{index}",
                f"Weights of a rank on stage {index}",
                "B",
                body + start if index == 0 else body,
                note="layers on the stage × weights of a layer"
                + ("; the embedding" if index == 0 else "")
                + "; the LM head on the last stage",
            )
        )
    stage_kv = [
        Quantity(
            f"memory.stage_kv.{index}",
            f"KV cache of a request on stage {index}",
            "B/request",
            on_stage(index, "stage_kv", "B/request", layer_kv),
            note="layers on the stage × cache and states of a layer",
        )
        for index in range(len(plan.stages.numbers))
    ]
    everything = Quantity(
        "memory.all_weights",
        "Weights of the fullest stage",
        "B",
        maximum(span(stage_weights)),
        note="largest of the stages",
    )
    host_weights = Quantity(
        "memory.host_weights",
        "Weights on the host",
        "B",
        minimum(inputs.offload_weights * GIGA, everything),
        note="as asked, at most all",
    )
    weights = Quantity(
        "memory.weights",
        "Weights",
        "B",
        everything - host_weights,
        note="weights of the fullest stage − those on the host",
    )
    per_request = Quantity(
        "memory.kv_bytes_per_request",
        "KV bytes per request",
        "B/request",
        maximum(span(stage_kv)),
        note="largest of the stages",
    )
    widths = _widths(ir, plan)
    widest = Quantity(
        "memory.activation_width",
        "Channels in memory per token",
        "channel",
        sum_of([ir.facts["hidden_size"], *widths]),
        note="hidden + widest mixer and FFN projections per rank",
        name="channels in memory",
    )
    activations = Quantity(
        "memory.activations", "Activations", "B", inputs.token_budget * widest * RESULT_BYTES
    )
    asked: Node = maximum(1, inputs.concurrency / inputs.dp)
    note = "concurrency ÷ DP, at least 1"
    if ranks.disaggregated is not None:
        asked = where(ranks.disaggregated > 0, minimum(asked, inputs.attention_dp * ONE_REQUEST), asked)
        note += "; prefill workers hold a prompt for every attention-DP group"
    requests = Quantity("memory.requests", "Requests per replica", "request", asked, note=note)
    seat_logits = Quantity(
        "memory.logits_per_request",
        "Logits per request",
        "B/request",
        TOKENS_PER_STEP * plan.columns["vocabulary"] * LOGIT_BYTES,
    )
    reserve = Quantity(
        "memory.reserve", "Runtime", "B", efficiency["runtime_reserve"], note="runtime reserve of the profile"
    )
    usable = Quantity(
        "memory.usable", "Usable memory", "B", efficiency["memory_usable"] * hardware.memory_capacity
    )
    room = Quantity(
        "memory.kv_room", "Room for requests", "B", maximum(0, usable - weights - activations - reserve)
    )
    held_at_once = Quantity(
        "memory.rank_sequences",
        "KV capacity of a rank in sequences",
        "request",
        minimum((room + inputs.offload_kv * GIGA) / (per_request + seat_logits), room / seat_logits),
        note="room for requests, and what may lie on the host, ÷ (KV bytes + logits per request); logits stay here",
    )
    capacity = Quantity(
        "memory.capacity_sequences",
        "KV capacity in sequences",
        "request",
        held_at_once * inputs.attention_dp,
        note="of a rank × attention-DP",
        name="KV capacity",
    )
    batch = Quantity(
        "memory.batch",
        "Batch",
        "request",
        maximum(
            1, minimum(requests, capacity, where(inputs.max_requests > 0, inputs.max_requests, requests))
        ),
        note="requests per replica, at most the KV capacity, at least 1",
    )
    seats = Quantity(
        "memory.seats",
        "Requests on a rank",
        "request",
        maximum(1, batch / inputs.attention_dp),
        note="batch ÷ attention-DP, at least 1",
    )
    logits = Quantity("memory.logits", "Logits", "B", seats * seat_logits)
    all_kv = Quantity("memory.all_kv", "KV cache of the batch", "B", seats * per_request)
    host_kv = Quantity(
        "memory.host_kv",
        "KV cache on the host",
        "B",
        minimum(inputs.offload_kv * GIGA, maximum(0, all_kv + logits - room)),
        note="what has no room, at most as asked",
    )
    kv = Quantity("memory.kv", "KV cache", "B", all_kv - host_kv, note="of the batch − what lies on the host")
    used = Quantity("memory.used", "Memory used", "B", weights + kv + activations + logits + reserve)
    headroom = Quantity(
        "memory.headroom",
        "Headroom",
        "B",
        usable - used,
        note="usable memory − memory used; negative if it does not fit",
    )
    free = Quantity("memory.free", "Free memory", "B", maximum(0, headroom))
    outside = Quantity("memory.outside", "Memory left to others", "B", hardware.memory_capacity - usable)
    limit = Quantity(
        "memory.limit",
        "Most memory that may be used",
        "B",
        usable + SLACK,
        note="usable memory, and what rounding leaves",
    )
    fits = Quantity(
        "memory.fits",
        "Fits in memory",
        "flag",
        where(used <= limit, 1, 0),
        note="1 if memory used is at most that",
    )
    sections = (
        Section("Weights of a layer", (*parts, *layer_weights.values(), *ends), "of a rank"),
        Section(
            "KV cache of a request",
            (length, *caches.rows, *layer_kv.values()),
            "of a layer and rank; states of recurrent layers included",
        ),
        Section(
            "Stages in memory",
            (*partial, *stage_weights, everything, *stage_kv, per_request),
            "0 beyond the last stage",
        ),
        Section(
            "Working memory",
            (requests, *widths, widest, activations, seat_logits, reserve),
            "per accelerator",
        ),
        Section(
            "Capacity",
            (host_weights, weights, usable, room, held_at_once, capacity, batch),
            "how many requests run at once in a replica",
            Section.SUBTOTAL,
        ),
        Section(
            "Memory used",
            (seats, all_kv, logits, host_kv, kv, used, headroom, free, outside, limit, fits),
            "weights + KV cache of the batch + working memory",
        ),
    )
    return Memory(
        tuple(layer_weights.values()),
        tuple(stage_weights),
        tuple(stage_kv),
        host_weights,
        host_kv,
        logits,
        weights,
        kv,
        activations,
        reserve,
        used,
        usable,
        headroom,
        free,
        outside,
        limit,
        fits,
        caches,
        capacity,
        requests,
        seats,
        batch,
        sections,
    )


_KINDS = 2  # of layer in one formula


def kinds_of(ir: ModelGraph, layers: Node) -> list[Input]:
    """The kinds of layer, by their count, that a number of layers is the sum of."""
    return [kind.count for kind in ir.layers if any(module.layers is layers for module in kind.modules)]


@dataclass(frozen=True)
class Caches:
    """Every cache as (module, channels per token of the model, bytes per token of a layer on a rank), states, and what all come to.

    `by_kind` are the bytes of a request in a layer of each kind; `per_token` those of a token in all layers.
    """

    growing: tuple[tuple[Module, Node, Quantity], ...]
    states: dict[str, State]
    by_kind: dict[Input, list[Quantity]]
    per_token: Quantity
    rows: tuple[Row, ...]


def _caches(ir: ModelGraph, inputs: Workload, formats: Formats, plan: Sharding, length: Quantity) -> Caches:
    """The caches of one request."""
    kept: dict[AttentionSpan, Quantity] = {}

    def tokens_kept(reach: AttentionSpan) -> Quantity:
        limit = reach.length if reach.kind in ("sliding", "chunked") else None
        reach = reach if limit is not None else AttentionSpan("full")
        if reach not in kept:
            suffix = f".{limit.id.removeprefix('model.')}" if limit is not None else ""
            body: Node = length if limit is None else where(limit > 0, minimum(length, limit), length)
            words = "" if limit is None else limit.label.lower()
            kept[reach] = Quantity(
                f"memory.cached_tokens{suffix}",
                f"Tokens a rank keeps of a request{', ' if words else ''}{words}",
                "token/request",
                body / inputs.cp,
                note=f"its full length{', at most the ' if words else ''}{words}, ÷ CP",
            )
        return kept[reach]

    caches: list[tuple[Module, Node, Quantity]] = []
    by_kind: dict[Input, list[Quantity]] = {kind.count: [] for kind in ir.layers}
    requests: list[Quantity] = []
    states: dict[str, State] = {}
    for module in ir.modules:
        work = module.operation
        if isinstance(work, Recurrence):
            states[module.id] = state(module, work, plan)
            for kind in kinds_of(ir, module.layers):  # type: ignore[arg-type]
                by_kind[kind].append(states[module.id].bytes)
            continue
        if isinstance(work, Attention):
            width: Node = work.key + work.value
            reach = work.span
        elif isinstance(work, LatentAttention):
            width, reach = work.latent, work.span
        elif isinstance(work, Indexer):
            width, reach = work.key, AttentionSpan("full")
        else:
            continue
        each = Quantity(
            f"memory.kv_bytes_per_token.{module.id}",
            f"KV bytes per token of a layer, {module.label}",
            "B/token",
            plan.on_rank(width, module) * formats.kv_bytes,
            note="width per rank × bytes per KV value",
            name=f"KV bytes per token of a layer, {module.label}",
        )
        caches.append((module, width, each))
        requests.append(
            Quantity(
                f"memory.kv_bytes_per_request.{module.id}",
                f"KV bytes per request of a layer, {module.label}",
                "B/request",
                each * tokens_kept(reach),
            )
        )
        for kind in kinds_of(ir, module.layers):  # type: ignore[arg-type]
            by_kind[kind].append(requests[-1])
    per_token = Quantity(
        "memory.kv_bytes_per_token",
        "KV bytes per token",
        "B/token",
        sum_of([each * module.layers for module, _, each in caches if module.layers is not None])
        if caches
        else as_node(0),
        note="of a rank in all layers",
        name="KV bytes per token",
    )
    state_rows = [row for kept_state in states.values() for row in kept_state.rows()]
    rows = (*kept.values(), *(each for _, _, each in caches), per_token, *state_rows, *requests)
    return Caches(tuple(caches), states, by_kind, per_token, rows)


def _widths(ir: ModelGraph, plan: Sharding) -> list[Quantity]:
    """Channels per token and rank of the widest projection of a mixer and of an FFN, where there are any.

    Projections back to the hidden size are left out: the hidden size is counted beside them. What experts hand back is not,
    as it is there once for every expert of a token.
    """
    mixers: dict[object, Node] = {}
    ffns: dict[object, Node] = {}
    hidden = ir.facts["hidden_size"]
    for module in ir.modules:
        work = module.operation
        key = (getattr(work, "outputs", None), scope(module))
        if isinstance(work, GroupedMatMul):
            ffns[key] = plan.on_rank(work.outputs * work.per_token, module)
        elif isinstance(work, MatMul) and module.layers is not None and work.outputs is not hidden:
            (mixers if work.weights == "attention" else ffns)[key] = plan.on_rank(work.outputs, module)
    return [
        Quantity(
            f"memory.{name}_width",
            f"Widest projection of {words} per rank",
            "channel",
            maximum(*widths.values()) if len(widths) > 1 else next(iter(widths.values())),
            name=f"widest {name} projection",
        )
        for name, words, widths in (("mixer", "a mixer", mixers), ("ffn", "an FFN", ffns))
        if widths
    ]


@dataclass(frozen=True)
class State:
    """What a layer keeps for a request on a rank: values of the recurrent state, channels of the convolution, bytes of both."""

    values: Quantity
    conv: Quantity
    bytes: Quantity

    def rows(self) -> tuple[Quantity, ...]:
        """The rows of the Memory sheet."""
        return (self.values, self.conv, self.bytes)


def state(module: Module, work: Recurrence, plan: Sharding) -> State:
    """Sizes of one layer's state."""

    rows = Rows("memory", f", {module.label}")
    values = rows(
        f"state_values.{module.id}", "State values per rank", "channel", plan.on_rank(work.state, module)
    )
    conv = rows(
        f"conv_channels.{module.id}",
        "Convolution channels per rank",
        "channel",
        plan.on_rank(work.conv, module),
    )
    size = rows(
        f"layer_state.{module.id}",
        "State of a layer and request",
        "B/request",
        (values * STATE_BYTES + conv * (work.kernel - 1) * CONV_BYTES) / ONE_REQUEST,
        "the convolution keeps its last inputs",
    )
    return State(values, conv, size)
