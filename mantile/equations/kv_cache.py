"""KV cache and states of requests: what modules keep. Bytes and tokens stand in memory.eq."""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.formats import Formats
from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Named, Node, Quantity, as_node, sum_of, where
from mantile.ir.modules import (
    Attention,
    AttentionSpan,
    Indexer,
    LatentAttention,
    ModelGraph,
    Module,
    Recurrence,
)


def kept_of(module: Module) -> tuple[Node, AttentionSpan] | None:
    """Channels that a module keeps of every token, and how far back it looks; None if it keeps none."""
    work = module.operation
    if isinstance(work, Attention):
        return (work.key + work.value, work.span) if work.kept else None
    if isinstance(work, LatentAttention):
        return work.latent, work.span
    return (work.key, AttentionSpan("full")) if isinstance(work, Indexer) else None


def channels_of(module: Module) -> Node:
    """Channels that a module keeps of every token, of the whole model."""
    kept = kept_of(module)
    assert kept is not None
    return kept[0]


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


def expanded(features: frozenset[str], module: Module) -> Node | None:
    """Channels of the heads where a framework may keep latents expanded to them; None where it may not."""
    work = module.operation
    if not isinstance(work, LatentAttention) or work.entry_tokens is not None:
        return None
    return work.expanded if "latents_saved" in features else None


def make_caches(rows: Equations, ir: ModelGraph, formats: Formats, plan: Sharding) -> tuple[Module, ...]:
    """Make the rows of what modules keep of tokens and of requests; the modules that keep tokens."""
    of_module, states = list[Space](), list[Space]()
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
        facts |= {"bytes": bytes_kept.id, "layers": layers_of(module).id}
        facts["limit"] = suffix_of(limit_of(module))
        rows.know(layers_of(module))
        if (heads := expanded(rows.features, module)) is not None:
            rows.know_as(f"memory.expanded.{module.id}", plan.on_rank(heads, module))
        of_module.append(Space(facts=facts, features=frozenset({"expanded"} if heads is not None else {})))
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


def suffix_of(limit: Input | None) -> str:
    return "" if limit is None else f".{limit.id.removeprefix('model.')}"


def layers_of(module: Module) -> Named:
    """The layers that have a module."""
    assert isinstance(module.layers, Input | Quantity)
    return module.layers


def know_sums(rows: Equations, keep: tuple[Module, ...]) -> None:
    """Name what the tokens of all layers come to, and of those that look back as far."""
    of_prefix = list[Node]()
    for limit in dict.fromkeys(map(limit_of, keep)):
        within = (module for module in keep if limit_of(module) is limit)
        of_limit = sum_of(
            [rows[f"memory.kv_bytes_per_token.{module.id}"] * layers_of(module) for module in within]
        )
        rows.know_as(f"memory.in_layers_of{suffix_of(limit)}", of_limit)
        of_prefix.append(of_limit if limit is None else where(limit > 0, 0, of_limit))
    rows.know_as("memory.in_layers_of_prefix", sum_of(of_prefix or [as_node(0)]))
