"""What lies in the memory of the fullest accelerator, and how many sequences its KV cache holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mantile.equations.constant import (
    GIGA,
    LOGIT_BYTES,
    ONE_REQUEST,
    RESULT_BYTES,
    SLACK,
    TOKENS_PER_STEP,
    VECTOR_BYTES,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import CLASSES, Formats
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.plan import Sharding
from mantile.equations.recurrence import State, state
from mantile.graph.evaluate import Program
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
    sum_range,
    where,
)
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
    Tensor,
)


@dataclass(frozen=True)
class Held:
    """Weights of one class in the layers of one kind, on the fullest rank: parameters in a layer, and those layers."""

    weights: str
    layers: Node
    parameters: Quantity
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True)
class Tensors:
    """Stored tensors: parameters of each, and what the fullest rank holds of the layers and of the ends."""

    listed: tuple[Section, ...]
    on_rank: tuple[Section, ...]
    sizes: dict[Tensor, Quantity]
    parameters: Quantity
    held: tuple[Held, ...]
    embedding: Quantity
    head: Quantity
    final_vectors: Quantity
    vision: Quantity | None


def _product(shape: Iterable[Node]) -> Node:
    size: Node | None = None
    for dimension in shape:
        size = dimension if size is None else size * dimension
    assert size is not None
    return size


def tensors(ir: ModelGraph, plan: Sharding) -> Tensors:
    """The rows of the Tensors sheet: every tensor once, with its repeats."""
    listed: list[Section] = []
    parts: list[Quantity] = []
    taken: set[str] = set()
    called: set[str] = set()

    def titled(name: str, where_from: str) -> str:
        name = name.replace("{}", "n")
        name = name if name not in called else f"{name} ({where_from})"
        called.add(name)
        return name

    def named(name: str, where_from: str) -> str:
        identifier = f"tensor.{name}"
        while identifier in taken:
            identifier += f".{where_from}"
        taken.add(identifier)
        return identifier

    def sized(tensor: Tensor, where_from: str, title: str = "") -> Quantity:
        size = _product(tensor.shape)
        size = size if tensor.copies is None else size * tensor.copies
        split = plan.splits_of(*tensor.shape)
        note = f"split by {' and '.join(split)}" if split else "on every rank"
        return Quantity(
            named(tensor.name, where_from),
            titled(title + tensor.name, where_from),
            "parameter",
            size if tensor.layers is None else size * tensor.layers,
            source=f"{note}; no parameter" if tensor.buffer else note,
        )

    sizes: dict[Tensor, Quantity] = {}
    for module in ir.modules:
        rows = {tensor: sized(tensor, module.id) for tensor in module.tensors}
        sizes |= rows
        counted = [row for tensor, row in rows.items() if not tensor.buffer]
        if rows:
            listed.append(
                Section(
                    module.label,
                    (*counted, *(row for row in rows.values() if row not in counted)),
                    "once" if module.layers is None else f"in {_called(module.layers)}",
                )
            )
        if counted:
            parts.append(
                Quantity(
                    f"tensors.module.{module.id}",
                    f"Parameters, {module.label}",
                    "parameter",
                    sum_range(span(counted)),
                    note="sum of its tensors",
                )
            )
    parameters = Quantity(
        "tensors.parameters", "Parameters", "parameter", sum_range(span(parts)), note="sum of the modules"
    )
    buffers = [row for tensor, row in sizes.items() if tensor.buffer]
    beside = (
        [
            Quantity(
                "tensors.buffers", "Stored values that are no parameters", "parameter", sum_of(list(buffers))
            )
        ]
        if buffers
        else []
    )
    listed.append(Section("Parameters", (*parts, *beside, parameters), "of the decoder", Section.TOTAL))
    vision = _vision(ir, listed, named)
    if ir.extra:
        apart = [sized(tensor, "prediction", "MTP: ") for tensor in ir.extra]
        every = Quantity(
            "tensors.prediction",
            "Parameters of multi-token prediction",
            "parameter",
            sum_range(span(apart)),
            note="sum of its tensors",
        )
        listed.append(
            Section(
                "Multi-token prediction",
                (*apart, every),
                "listed apart: not run, and not among the parameters",
                Section.SUBTOTAL,
            )
        )

    held: list[Held] = []
    sections: list[Section] = []
    groups: dict[tuple[str, Node], list[Tensor]] = {}
    owner = {tensor: module for module in ir.modules for tensor in module.tensors}
    for tensor in ir.tensors():
        if tensor.layers is not None and not tensor.buffer:
            groups.setdefault((tensor.weights if tensor.matrix else "vectors", tensor.layers), []).append(
                tensor
            )
    kinds = [weights for weights, _ in groups]
    for (weights, layers), members in groups.items():
        rows_ = []
        for tensor in members:
            size = _product(tensor.shape) if tensor.copies is None else _product(tensor.shape) * tensor.copies
            size = plan.on_rank(size, owner[tensor])
            rows_.append(
                Quantity(
                    named(f"{tensor.name}.rank", weights),
                    titled(f"On a rank, {tensor.name}", _identifier(layers)),
                    "parameter",
                    size,
                )
            )
        suffix = "" if kinds.count(weights) == 1 else f".{_identifier(layers)}"
        name = f"{weights}{suffix}"
        words = (
            "Norms, biases"
            if weights == "vectors"
            else f"{CLASSES[weights][0].upper()}{CLASSES[weights][1:]} weights"
        )
        words += f", {_called(layers)}" if suffix else ""
        each = Quantity(
            f"tensors.{name}",
            f"{words}, of a layer on a rank",
            "parameter",
            sum_range(span(rows_)),
            note="sum of the rows above",
        )
        held.append(Held(weights, layers, each, tuple(members)))
        sections.append(Section(words, (*rows_, each), "fullest rank, one layer", Section.SUBTOTAL))
    ends = {tensor.name: tensor for tensor in ir.tensors() if tensor.layers is None}
    in_start = ir.module("embedding").tensors
    in_head = [tensor for tensor in ir.module("lm_head").tensors if tensor.matrix]
    vectors = [tensor for tensor in ends.values() if not tensor.matrix]

    def rank_sum(members: Sequence[Tensor]) -> Node:
        return sum_of([plan.on_rank(_product(tensor.shape), owner[tensor]) for tensor in members])

    embedding = Quantity("tensors.embedding", "Embedding weights on a rank", "parameter", rank_sum(in_start))
    facts = ir.facts
    head = Quantity(
        "tensors.head",
        "LM head weights on a rank",
        "parameter",
        where(facts["tied_embeddings"] > 0, 0, rank_sum(in_head or in_start[:1])),
        note="vocabulary rows × hidden size; 0 where tied to the embedding",
    )
    final = Quantity(
        "tensors.final_vectors", "Final norm and bias weights on a rank", "parameter", rank_sum(vectors)
    )
    sections.append(
        Section(
            "Embedding and LM head on a rank", (embedding, head, final), "vocabulary split over the TP ranks"
        )
    )
    return Tensors(
        tuple(listed), tuple(sections), sizes, parameters, tuple(held), embedding, head, final, vision
    )


def _vision(ir: ModelGraph, listed: list[Section], named: Callable[[str, str], str]) -> Quantity | None:
    if ir.vision is None:
        return None
    rows = [
        Quantity(
            named(tensor.name, "vision"),
            tensor.name.replace("{}", "n"),
            "parameter",
            _product(tensor.shape) if tensor.layers is None else _product(tensor.shape) * tensor.layers,
        )
        for tensor in ir.vision.tensors
        if not tensor.buffer
    ]
    every = Quantity(
        "tensors.vision",
        "Parameters of the vision tower",
        "parameter",
        sum_range(span(rows)),
        note="sum of its tensors",
    )
    listed.append(
        Section(
            "Vision tower", (*rows, every), "beside the decoder; the projector included", Section.SUBTOTAL
        )
    )
    return every


def _called(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return layers.label.lower()


def _identifier(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return layers.id.removeprefix("model.")


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
    for held in stored.held:
        size: Node = VECTOR_BYTES if held.weights == "vectors" else formats.classes[held.weights].bytes
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
        parts: list[Node] = [plan.stage_layers[kind][index] * size for kind, size in sizes.items()]
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
    for index, number in enumerate(plan.stage_numbers):
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
        for index in range(len(plan.stage_numbers))
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
    widths = _widest(ir, plan)
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
            reach = work.reach
        elif isinstance(work, LatentAttention):
            width, reach = work.latent, work.reach
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


def _widest(ir: ModelGraph, plan: Sharding) -> list[Quantity]:
    """Channels per token and rank of the widest projection of a mixer and of an FFN, where there are any."""
    mixers: dict[Node, Module] = {}
    ffns: dict[Node, Module] = {}
    for module in ir.modules:
        work = module.operation
        if isinstance(work, MatMul) and module.layers is not None:
            (mixers if work.weights == "attention" else ffns)[work.outputs] = module
        elif isinstance(work, GroupedMatMul):
            ffns[work.outputs * work.per_token] = module
    values = Program([*mixers, *ffns]).run({})
    rows = []
    for name, words, outputs in (("mixer", "a mixer", mixers), ("ffn", "an FFN", ffns)):
        if outputs:
            widest = max(outputs, key=lambda node: float(values[node]))
            rows.append(
                Quantity(
                    f"memory.{name}_width",
                    f"Widest projection of {words} per rank",
                    "channel",
                    plan.on_rank(widest, outputs[widest]),
                    name=f"widest {name} projection",
                )
            )
    return rows
