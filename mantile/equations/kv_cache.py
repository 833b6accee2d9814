"""KV cache and states of requests: what modules keep. Bytes and tokens stand in memory.eq."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mantile.equations.formats import Formats
from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Node, Quantity, as_node, sum_of, where
from mantile.ir.modules import (
    Attention,
    AttentionSpan,
    Indexer,
    LatentAttention,
    ModelGraph,
    Module,
    Recurrence,
)


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
        layers: bytes of a request in a layer of each kind.
    """

    growing: tuple[Cache, ...]
    states: Mapping[str, State]
    per_token: Quantity
    layers: Mapping[Input, Quantity]


def kept_of(module: Module) -> tuple[Node, AttentionSpan] | None:
    """Channels that a module keeps of every token, and how far back it looks; None if it keeps none."""
    work = module.operation
    if isinstance(work, Attention):
        return (work.key + work.value, work.span) if work.kept else None
    if isinstance(work, LatentAttention):
        return work.latent, work.span
    return (work.key, AttentionSpan("full")) if isinstance(work, Indexer) else None


def limit_of(module: Module) -> Input | None:
    """The length behind which tokens need not be kept; None where all must be."""
    kept = kept_of(module)
    return kept[1].length if kept is not None and kept[1].kind in ("sliding", "chunked") else None


def features_of_caches(ir: ModelGraph) -> Iterator[str]:
    """What an architecture keeps, by the names of `when`."""
    if any(kept_of(module) is not None for module in ir.modules):
        yield "growing_cache"
    windows = any(limit_of(module) is not None for module in ir.modules)
    saved = {"windows_saved": windows, "latents_saved": LatentAttention in ir.operations()}
    if ir.saves_cache and any(saved.values()):
        yield from ("cache_policy", *(name for name, is_there in saved.items() if is_there))


def make_caches(rows: Equations, ir: ModelGraph, formats: Formats, plan: Sharding) -> tuple[Module, ...]:
    """Make the rows of what modules keep of tokens and of requests; the modules that keep tokens."""
    of_module: list[Space] = []
    plain, latents, states = list[Space](), list[Space](), list[Space]()
    keep = tuple(module for module in ir.modules if kept_of(module) is not None)
    for module in ir.modules:
        facts, work = {"module": module.id, "label": module.label}, module.operation
        if isinstance(work, Recurrence):
            rows.know_as(f"memory.state.{module.id}", plan.on_rank(work.state, module))
            rows.know_as(f"memory.conv.{module.id}", plan.on_rank(work.conv, module))
            rows.know(work.kernel)
            states.append(Space(facts=facts | {"kernel": work.kernel.id}))
        if (kept := kept_of(module)) is None:
            continue
        rows.know_as(f"memory.channels.{module.id}", plan.on_rank(kept[0], module))
        bytes_kept = formats.kept_bytes(work)
        assert isinstance(bytes_kept, Input | Quantity)
        space = Space(facts=facts | {"bytes": bytes_kept.id, "limit": suffix_of(limit_of(module))})
        of_module.append(space)
        if _may_expand(rows, module) and isinstance(work, LatentAttention):
            rows.know_as(f"memory.expanded.{module.id}", plan.on_rank(work.expanded, module))
            latents.append(space)
        else:
            plain.append(space)
    rows.make_in("cache", *plain)
    rows.make_in("cache of latents", *latents)
    rows.make_in("cache of a module", *of_module)
    rows.make_in("recurrence", *states)
    limits = dict.fromkeys(map(limit_of, keep))
    windows = [limit for limit in limits if limit is not None]
    rows.know(*windows)
    rows.make_in("reach without limit", *(Space() for limit in limits if limit is None))
    rows.make_in(
        "window",
        *(
            Space(facts={"limit": suffix_of(limit)[1:], "length": limit.id, "words": limit.label.lower()})
            for limit in windows
        ),
    )
    words = {limit: "" if limit is None else f", {limit.label.lower()}" for limit in limits}
    rows.make_in(
        "reach", *(Space(facts={"limit": suffix_of(limit), "words": words[limit]}) for limit in limits)
    )
    return keep


def _may_expand(rows: Equations, module: Module) -> bool:
    """Whether a framework may keep latents of a module expanded to heads."""
    work = module.operation
    return (
        isinstance(work, LatentAttention) and "latents_saved" in rows.features and work.entry_tokens is None
    )


def suffix_of(limit: Input | None) -> str:
    return "" if limit is None else f".{limit.id.removeprefix('model.')}"


def caches(rows: Equations, ir: ModelGraph, keep: tuple[Module, ...]) -> Caches:
    """What a rank keeps, from the rows that are made; what all layers come to is made known."""
    growing = tuple(_cache(rows, module) for module in keep)
    rows.know_as("memory.in_layers", sum_of([cache.in_layers for cache in growing] or [as_node(0)]))
    to_come, of_prefix = list[Node](), list[Node]()
    for limit in dict.fromkeys(map(limit_of, keep)):
        of_limit = sum_of([cache.in_layers for cache in growing if limit_of(cache.module) is limit])
        rows.know_as(f"memory.in_layers_of{suffix_of(limit)}", of_limit)
        of_prefix.append(of_limit if limit is None else where(limit > 0, 0, of_limit))
        to_come.append(rows[f"memory.kv_to_come{suffix_of(limit)}"])
    rows.know_as("memory.in_layers_of_prefix", sum_of(of_prefix or [as_node(0)]))
    if to_come:
        rows.know_as("memory.to_come", sum_of(to_come))
    return Caches(
        growing=growing,
        states={
            module.id: State(
                rows[f"memory.state_values.{module.id}"],
                rows[f"memory.conv_channels.{module.id}"],
                rows[f"memory.layer_state.{module.id}"],
            )
            for module in ir.modules
            if isinstance(module.operation, Recurrence)
        },
        per_token=rows["memory.kv_bytes_per_token"],
        layers={kind.count: rows[f"memory.layer_kv.{'.'.join(kind.blocks)}"] for kind in ir.layers},
    )


def _cache(rows: Equations, module: Module) -> Cache:
    kept, work = kept_of(module), module.operation
    assert kept is not None
    size = rows[f"memory.kv_bytes_per_token.{module.id}"]
    if _may_expand(rows, module) and isinstance(work, LatentAttention):
        return Cache(module, kept[0], size, (rows["memory.latents_saved"], work.expanded))
    return Cache(module, kept[0], size)
