"""KV cache and states of requests: bytes of a token, how many tokens are kept, and of which requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.constant import CONV_BYTES, ONE_REQUEST, STATE_BYTES
from mantile.equations.formats import Formats
from mantile.equations.framework import Frameworks
from mantile.equations.inputs import Workload
from mantile.equations.kinds_of_layers import by_kind, kinds_of
from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    equal,
    minimum,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import (
    Attention,
    AttentionSpan,
    Indexer,
    LatentAttention,
    ModelGraph,
    Module,
    Recurrence,
)
from mantile.library.profiles import CACHE_POLICIES
from mantile.library.scenario_fields import DEFAULT

SAVED, IN_FULL = "saved", "full"
assert {SAVED, IN_FULL} <= set(CACHE_POLICIES)


@dataclass(frozen=True)
class Cache:
    """What a module keeps of every token.

    Args:
        module: that attends to it.
        channels: of a token, of the whole model.
        bytes_per_token: of a layer on a rank.
        expanded: where a framework may keep latents expanded to heads: whether it keeps them as they are, and
            the channels of the heads.
    """

    module: Module
    channels: Node
    bytes_per_token: Quantity
    expanded: tuple[Node, Node] | None = None

    @property
    def in_layers(self) -> Node:
        """Bytes of a token in all layers."""
        layers = self.module.layers
        return self.bytes_per_token if layers is None else self.bytes_per_token * layers


@dataclass(frozen=True)
class State:
    """What a layer keeps of a request on a rank, however long it is: the recurrent state and the convolution.

    Args:
        values: of the recurrent state.
        conv: channels of the convolution.
        bytes: of both.
    """

    values: Quantity
    conv: Quantity
    bytes: Quantity


@dataclass(frozen=True)
class Caches:
    """KV caches and states of a rank.

    Args:
        growing: what grows with the length of a request.
        states: what does not, by module.
        per_token: bytes of a token in all layers.
        to_come: bytes, in all layers, that a running request gets until its end; None where nothing grows.
        layers: bytes of a request in a layer of each kind.
        kept_of_token: bytes of a token of a prefix on a rank of the fullest stage; `shared` of what all
            requests share. None where no scenario caches prefixes.
    """

    growing: tuple[Cache, ...]
    states: Mapping[str, State]
    per_token: Quantity
    to_come: Node | None
    layers: Mapping[Input, Quantity]
    kept_of_token: Quantity | None
    shared: Quantity | None
    section: Section


@dataclass(frozen=True)
class Policy:
    """What is kept of windows and latents.

    Args:
        windows: 1 where layers with a window keep no more than it; `step` tokens beside it.
        latents: 1 where latents are kept as they are.
    """

    windows: Node
    latents: Node
    step: Node
    rows: tuple[Row, ...]


def policy(ir: ModelGraph, inputs: Workload, known: Frameworks) -> Policy | None:
    """What the framework keeps of windows and latents; None for a model without."""
    if inputs.cache_policy is None:
        return None
    rows = Rows("memory")
    chosen = rows(
        "cache_policy",
        "KV cache policy in use",
        "1",
        where(
            equal(inputs.cache_policy, DEFAULT),
            known.of(known.cache_policies, inputs.framework),
            inputs.cache_policy,
        ),
    )
    windows: Node = as_node(1)
    step: Node = as_node(0)
    if any(_limit(kept[1]) is not None for module in ir.modules if (kept := kept_of(module)) is not None):
        windows = rows(
            "windows_saved",
            "Layers with a window keep no more than it",
            "flag",
            where(equal(chosen, SAVED), 1, 0),
        )
        step = rows(
            "window_step",
            "Tokens of a pass that a window keeps beside its own",
            "token/request",
            known.of(known.prompt_batches, inputs.framework) / ONE_REQUEST,
            "where prompts are taken in passes of fixed size",
        )
    latents: Node = as_node(1)
    if LatentAttention in ir.operations():
        latents = rows(
            "latents_saved", "Latents are kept as they are", "flag", where(equal(chosen, IN_FULL), 0, 1)
        )
    if not any(isinstance(part, Quantity) for part in (windows, latents)):
        return None
    return Policy(windows, latents, step, tuple(rows.rows))


def kv_bytes(
    ir: ModelGraph,
    inputs: Workload,
    formats: Formats,
    plan: Sharding,
    texts: Equations,
    saved: Policy | None = None,
) -> Caches:
    """The caches of one request; what all requests share is none of them's."""
    rows, per_request, states = Rows("memory"), Rows("memory"), Rows("memory")
    kept = {module.id: what for module in ir.modules if (what := kept_of(module)) is not None}
    caches_prefixes = "prefixes" in texts.features
    shared = texts["prefix.shared"] if caches_prefixes else None
    if saved is not None:
        rows.add(*saved.rows)
    tokens, to_come = cached_tokens(rows, inputs, texts, [span for _, span in kept.values()], shared, saved)
    caches: list[Cache] = []
    states_of: dict[str, State] = {}
    members: dict[Input, list[Node]] = {kind.count: [] for kind in ir.layers}
    for module in ir.modules:
        if isinstance(module.operation, Recurrence):
            states_of[module.id] = state(states, module, module.operation, plan)
            size = states_of[module.id].bytes
        elif module.id in kept:
            channels, span_ = kept[module.id]
            caches.append(_cache(rows, module, channels, formats, plan, saved))
            size = per_request(
                f"kv_bytes_per_request.{module.id}",
                f"KV bytes per request of a layer, {module.label}",
                "B/request",
                caches[-1].bytes_per_token * tokens[_limit(span_)],
            )
        else:
            continue
        for kind in kinds_of(ir, module.layers):
            members[kind].append(size)
    per_token = rows(
        "kv_bytes_per_token",
        "KV bytes per token",
        "B/token",
        sum_of([cache.in_layers for cache in caches] or [as_node(0)]),
        called="KV bytes per token",
    )
    rows.add(*states.rows, *per_request.rows)
    grown = [
        rows(
            _of_limit("kv_to_come", limit),
            f"KV bytes that a request still gets{_limit_words(limit)}",
            "B/request",
            left * sum_of([cache.in_layers for cache in caches if _limit(kept[cache.module.id][1]) is limit]),
            "in all layers, on a rank",
        )
        for limit, left in to_come.items()
    ]
    of_token = of_shared = None
    if shared is not None:
        of_token = _of_prefix(
            rows, ir, inputs, plan, caches, {key: _limit(span) for key, (_, span) in kept.items()}
        )
        of_shared = rows(
            "shared_prefix",
            "KV cache of what all requests share",
            "B",
            ONE_REQUEST * texts["prefix.once" if "prefix.once" in texts else shared.id] * of_token,
            "once",
        )
    layers = by_kind(rows, ir, "layer_kv", "KV cache and states of a request in a", "B/request", members)
    section = rows.section(
        "KV cache of a request", "of a layer and rank; states of recurrent layers included"
    )
    return Caches(
        growing=tuple(caches),
        states=states_of,
        per_token=per_token,
        to_come=sum_of(grown) if grown else None,
        layers=layers,
        kept_of_token=of_token,
        shared=of_shared,
        section=section,
    )


def _of_prefix(
    rows: Rows,
    ir: ModelGraph,
    inputs: Workload,
    plan: Sharding,
    caches: Sequence[Cache],
    limits: Mapping[str, Input | None],
) -> Quantity:
    """Bytes of a token of a prefix on a rank; what lies in a window is left out."""
    parts: list[Node] = []
    for limit in dict.fromkeys(limits[cache.module.id] for cache in caches):
        of_limit = sum_of([cache.in_layers for cache in caches if limits[cache.module.id] is limit])
        parts.append(of_limit if limit is None else where(limit > 0, 0, of_limit))
    return rows(
        "prefix_bytes_per_token",
        "KV bytes of a token of a prefix on a rank",
        "B/token",
        sum_of(parts or [as_node(0)]) * plan.stages.fullest / ir.total_layers / inputs.token_groups,
        "on the fullest stage, in layers that look back without limit",
    )


def kept_of(module: Module) -> tuple[Node, AttentionSpan] | None:
    """Channels that a module keeps of every token, and how far back it looks; None if it keeps none."""
    work = module.operation
    if isinstance(work, Attention):
        return (work.key + work.value, work.span) if work.kept else None
    if isinstance(work, LatentAttention):
        return work.latent, work.span
    return (work.key, AttentionSpan("full")) if isinstance(work, Indexer) else None


def _limit(span: AttentionSpan) -> Input | None:
    """The length behind which tokens need not be kept; None where all must be."""
    return span.length if span.kind in ("sliding", "chunked") else None


def cached_tokens(
    rows: Rows,
    inputs: Workload,
    texts: Equations,
    spans: Iterable[AttentionSpan],
    shared: Quantity | None = None,
    saved: Policy | None = None,
) -> tuple[dict[Input | None, Quantity], dict[Input | None, Quantity]]:
    """Tokens that a rank keeps of a request, and those it still gets, by how many attention looks back."""
    limits = dict.fromkeys(map(_limit, spans))

    def _within(length: Quantity, whole: Node, limit: Input | None) -> Node:
        if limit is None:
            return whole
        if saved is None:
            return where(limit > 0, minimum(length, limit), whole)
        return where(limit * saved.windows > 0, minimum(length, limit + saved.step), whole)

    held, full = texts["memory.held_length"], texts["memory.sequence_length"]
    own: Node = held
    own_full: Node = full
    if shared is not None:
        own, own_full = (
            rows(f"own_{name}", f"{label}, without what all share", "token/request", length - shared)
            for name, label, length in (
                ("tokens", "Tokens with room", held),
                ("length", "Length of a finished request", full),
            )
        )
    kept = {
        limit: rows(
            _of_limit("cached_tokens", limit),
            f"Tokens a rank keeps of a request{_limit_words(limit)}",
            "token/request",
            _within(held, own, limit) / inputs.token_groups,
        )
        for limit in limits
    }
    to_come = {
        limit: rows(
            _of_limit("tokens_to_come", limit),
            f"Tokens it keeps at the end beside them{_limit_words(limit)}",
            "token/request",
            _within(full, own_full, limit) / inputs.token_groups - kept[limit],
        )
        for limit in limits
    }
    return kept, to_come


def _of_limit(name: str, limit: Input | None) -> str:
    return name if limit is None else f"{name}.{limit.id.removeprefix('model.')}"


def _limit_words(limit: Input | None) -> str:
    return "" if limit is None else f", {limit.label.lower()}"


def _cache(
    rows: Rows,
    module: Module,
    channels: Node,
    formats: Formats,
    plan: Sharding,
    saved: Policy | None,
) -> Cache:
    label = f"KV bytes per token of a layer, {module.label}"
    work = module.operation
    on_rank = plan.on_rank(channels, module)
    expanded: tuple[Node, Node] | None = None
    if isinstance(work, LatentAttention) and saved is not None and work.entry_tokens is None:
        on_rank = where(saved.latents > 0, on_rank, plan.on_rank(work.expanded, module))
        expanded = saved.latents, work.expanded
    bytes_per_token = rows(
        f"kv_bytes_per_token.{module.id}",
        label,
        "B/token",
        on_rank * formats.kept_bytes(module.operation),
        called=label,
    )
    return Cache(module, channels, bytes_per_token, expanded)


def state(rows: Rows, module: Module, work: Recurrence, plan: Sharding) -> State:
    """Sizes of one layer's state."""
    of_module = Rows("memory", f", {module.label}")
    values = of_module(
        f"state_values.{module.id}", "State values per rank", "channel", plan.on_rank(work.state, module)
    )
    conv = of_module(
        f"conv_channels.{module.id}",
        "Convolution channels per rank",
        "channel",
        plan.on_rank(work.conv, module),
    )
    size = of_module(
        f"layer_state.{module.id}",
        "State of a layer and request",
        "B/request",
        (values * STATE_BYTES + conv * (work.kernel - 1) * CONV_BYTES) / ONE_REQUEST,
        "the convolution keeps its last inputs",
    )
    rows.add(*of_module.rows)
    return State(values, conv, size)
