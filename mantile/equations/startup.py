"""What a server prints of its memory when it starts: the room for its KV cache, before the first request."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST, SLACK
from mantile.graph.quantity import Node, Quantity, Section, all_of, equal, where
from mantile.graph.rows import Rows
from mantile.library.profiles import FILLED


@dataclass(frozen=True)
class StartUp:
    """Start-up figures of the fullest rank.

    Args:
        kv_tokens: for which its KV cache has room, in requests of the length asked for.
        requests: of that length that it holds at once.
        kv_cache: bytes that it takes for its KV cache.
        peak: bytes in use when the server has started.
        buffers: the same without the runtime.
        starts: 1 if that is there, and one request of this length has room.
    """

    kv_tokens: Quantity
    requests: Quantity
    kv_cache: Quantity
    peak: Quantity
    buffers: Quantity
    starts: Quantity
    section: Section


def startup(
    length: Quantity,
    per_request: Quantity,
    growth: Quantity,
    kv_room: Quantity,
    kv: Quantity,
    others: Node,
    runtime: Quantity,
    fills: Node,
    seen: Quantity,
) -> StartUp:
    """The rows of a server that has started.

    Args:
        length: of a finished request; `per_request` its bytes while it runs, `growth` what it still gets.
        kv_room: bytes that are left to requests; `kv` those that the batch needs.
        others: bytes of all but the KV cache; `runtime` those of them outside the framework.
        fills: whether the engine takes all of the room when it starts, or as much as requests need.
        seen: memory that the accelerator may use.
    """
    rows = Rows("startup")
    at_end = rows(
        "request", "KV cache of a finished request", "B/request", per_request + growth / ONE_REQUEST
    )
    requests = rows(
        "requests",
        "Requests of this length that the KV cache of a rank holds",
        "request",
        kv_room / at_end,
        "at their full length",
    )
    tokens = rows(
        "kv_tokens",
        "Tokens for which the KV cache of a rank has room",
        "token",
        requests * length,
        "in requests of this length, as engines print it",
        called="KV capacity in tokens",
    )
    cache = rows(
        "kv_cache",
        "KV cache after the start",
        "B",
        where(equal(fills, FILLED), kv_room, kv),
        "all of the room, where the engine takes it at once",
    )
    peak = rows("peak", "Memory in use after the start", "B", others + cache)
    holds = rows(
        "holds",
        "Room against one request",
        "1",
        where(equal(fills, FILLED), requests / ONE_REQUEST, 1),
        "1 where the engine takes as much as requests need",
    )
    starts = rows(
        "starts",
        "The server starts",
        "flag",
        where(all_of(peak <= seen + SLACK, holds >= 1), 1, 0),
        "it has the memory, and room for one request of this length",
    )
    buffers = rows(
        "buffers",
        "Weights, KV cache and activations after the start",
        "B",
        peak - runtime,
        "without the runtime",
    )
    return StartUp(
        kv_tokens=tokens,
        requests=requests,
        kv_cache=cache,
        peak=peak,
        buffers=buffers,
        starts=starts,
        section=rows.section("Start of the server", "what its log says"),
    )
