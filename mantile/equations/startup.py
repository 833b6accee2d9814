"""What a server prints of its memory when it starts: the room for its KV cache, before the first request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.constant import (
    NO_BOUND,
    ONE_REQUEST,
    PEAK_P10,
    PEAK_P90,
    RAM_P90,
    RAM_PROCESS_P10,
    RANKS_TO_ACCELERATORS,
    SLACK,
    TOKENS_P10,
    TOKENS_P90,
    WEIGHTS_P10,
    WEIGHTS_P90,
)
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks
from mantile.graph.quantity import Input, Node, Quantity, Section, all_of, equal, minimum, where
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
        ram: bytes of main memory of a rank; `host` those of all ranks on a machine, `host_range` its p10 and
            p90.
        ranges: p10 and p90 of weights, KV tokens and peak.
    """

    kv_tokens: Quantity
    requests: Quantity
    kv_cache: Quantity
    peak: Quantity
    buffers: Quantity
    starts: Quantity
    ram: Quantity
    host: Quantity
    host_range: tuple[Quantity, Quantity]
    ranges: Mapping[str, tuple[Quantity, Quantity]]
    section: Section


_RANGED = ("weights", "kv_tokens", "peak_memory")
FEW_SEEN = "assumed, by single reports of vLLM"
SPREAD = "spread of predicted ÷ printed on 96 start-up logs of 2023 to 2026"


def startup(
    length: Quantity,
    per_request: Quantity,
    growth: Quantity,
    kv_room: Quantity,
    weights: Quantity,
    kv: Quantity,
    others: Node,
    runtime: Quantity,
    fills: Node,
    seen: Quantity,
    process: Node,
    on_host: Sequence[Node],
    used: Quantity,
    hardware: Hardware,
    ranks: Ranks,
) -> StartUp:
    """The rows of a server that has started.

    Args:
        length: of a finished request; `per_request` its bytes while it runs, `growth` what it still gets.
        weights: bytes of them on the accelerator.
        kv_room: bytes that are left to requests; `kv` those that the batch needs.
        others: bytes of all but the KV cache; `runtime` those of them outside the framework.
        fills: whether the engine takes all of the room when it starts, or as much as requests need.
        seen: memory that the accelerator may use.
        on_host: bytes that a rank has in the memory of its host, `process` those of its processes.
        used: bytes that a rank has in the memory of its accelerator.
    """
    rows = Rows("startup")
    at_end = rows(
        "request", "KV cache of a finished request", "B/request", per_request + growth / ONE_REQUEST
    )
    requests = rows(
        "requests",
        "Requests of this length that the KV cache of a rank holds",
        "request",
        where(at_end > 0, kv_room / at_end, NO_BOUND),
        "at their full length; no bound where a device holds none of the KV cache",
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
    low, high = (
        tuple(
            rows(
                f"{name}.p{percent}",
                f"{label}, p{percent}",
                figure.unit,
                figure * share,
                "of 100 servers",
                source=SPREAD,
            )
            for name, label, figure, share in (
                ("weights", "Weights", weights, of_weights),
                ("tokens", "KV tokens that fit", tokens, of_tokens),
                ("peak", "Memory in use after the start", peak, of_peak),
            )
        )
        for percent, of_weights, of_tokens, of_peak in (
            (10, WEIGHTS_P10, TOKENS_P10, PEAK_P10),
            (90, WEIGHTS_P90, TOKENS_P90, PEAK_P90),
        )
    )
    ram, host, host_range = _main_memory(rows, process, on_host, used, (low[-1], high[-1]), hardware, ranks)
    return StartUp(
        ram=ram,
        host=host,
        host_range=host_range,
        ranges={name: (first, last) for name, first, last in zip(_RANGED, low, high, strict=True)},
        kv_tokens=tokens,
        requests=requests,
        kv_cache=cache,
        peak=peak,
        buffers=buffers,
        starts=starts,
        section=rows.section("Start of the server", "what its log says"),
    )


def _main_memory(
    rows: Rows,
    process: Node,
    on_host: Sequence[Node],
    used: Quantity,
    likely: tuple[Quantity, Quantity],
    hardware: Hardware,
    ranks: Ranks,
) -> tuple[Quantity, Quantity, tuple[Quantity, Quantity]]:
    """Main memory of a rank, of a machine, and p10 and p90 of that.

    Args:
        likely: p10 and p90 of the memory that a rank uses on its accelerator.
    """
    shared = rows(
        "shared",
        "Main memory is that of the accelerator",
        "flag",
        where(
            all_of(hardware.host_bandwidth <= 0, hardware.system_accelerators <= RANKS_TO_ACCELERATORS), 1, 0
        ),
        "a CPU, or a chip beside one; no link leads from it to a host",
    )
    ram = rows(
        "ram",
        "Main memory of a rank",
        "B",
        where(shared > 0, used, rows.added("on_host", "On the host for a rank", "B", on_host, most=5)),
        "its processes and what lies on the host for it; all that it holds where memory is shared",
    )
    count = rows(
        "host_ranks",
        "Ranks on a machine",
        "rank",
        minimum(ranks.deployment, hardware.host_accelerators) / RANKS_TO_ACCELERATORS,
    )
    host = rows("host", "Main memory of a machine", "B", ram * count, "of all ranks on it")
    ends = (ram - process * (1 - RAM_PROCESS_P10), ram * RAM_P90)
    low, high = (
        rows(
            f"host.{name}",
            f"{host.label}, {name}",
            "B",
            where(shared > 0, seen, end) * count,
            source=FEW_SEEN,
        )
        for name, seen, end in zip(("p10", "p90"), likely, ends, strict=True)
    )
    return ram, host, (low, high)


def ram_of_machine(ram: Quantity, ranks: int) -> Quantity:
    """Main memory of a machine on which so many ranks of a server stand.

    Args:
        ram: of a rank.
    """
    count = Input("startup.ranks_of_machine", "Ranks on a machine", "number", ranks, shared=True, fixed=True)
    return Quantity("startup.ram_of_machine", "Main memory of a machine", "B", ram * count, "of its ranks")
