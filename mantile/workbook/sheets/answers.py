"""What stands first on a sheet of workings or a part of it: what it comes to, in the units people quote.

Each row repeats a figure of it, which stands below with all that leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.graph import EstimateGraph
from mantile.equations.override import Overridable
from mantile.equations.workers import DECODE
from mantile.graph.quantity import Named, Node, Quantity, Section
from mantile.workbook.estimate_book import EstimateBook

_MEMORY = (
    "memory.fits",
    "memory.used",
    "memory.limit",
    "memory.weights",
    "memory.kv",
    "memory.activations",
    "memory.reserve",
    "memory.capacity_sequences",
    "memory.batch",
    "memory.kv_bytes_per_request",
)
_NETWORK = (
    "network.tp.inside",
    "network.tp.reached",
    "network.stage.inside",
    "network.stage.reached",
    "network.p2p.bandwidth",
    "network.out",
)
_PHASE = (
    "time",
    "bottleneck",
    "bound.compute",
    "bound.memory",
    "bound.network",
    "bound.overhead",
    "mfu",
    "mbu",
)
_PRICE = (
    "price",
    *(f"offer_{part}" for part in ("provider", "region", "term", "day", "age")),
    *(f"offer_{end}{by}" for end in ("lowest", "highest") for by in ("", "_by")),
)
_HARDWARE = ("name", "generation", "vendor", "system", "topology", "link", "memory_seen", "native")
PERCENT = "%"  # a matter of the number format: the value stays a share
_UNITS = {"s": "ms", "B": "GB", "B/s": "GB/s", "FLOP/s": "TFLOP/s"}


def answers(
    book: EstimateBook, sheet: str, sections: tuple[Section, ...]
) -> list[tuple[Quantity, str, Node]]:
    """The figures that stand first on a sheet, or in the part that some blocks are, each with its unit there
    and its value in that unit.
    """
    own = {figure for section in sections for figure in section.figures()}
    part = next((section.part for section in sections), "")
    chosen = dict.fromkeys(_chosen(book.estimate.equations, part or sheet))
    return [
        (figure, unit, figure if unit == PERCENT else book.displayed(figure, unit))
        for figure, asked in chosen
        if figure in own and isinstance(figure, Quantity)
        for unit in [asked or _UNITS.get(figure.unit, figure.unit)]
    ]


def _chosen(graph: EstimateGraph, part: str) -> Iterator[tuple[Named, str]]:
    """Figures of a part, or a sheet without parts, with the unit they are shown in; "" for the usual one."""
    figures, prefixes = graph.figures, ("", DECODE)
    match part:
        case "Hardware":
            for prefix in prefixes:
                for name in _HARDWARE:
                    if f"{prefix}hardware.{name}" in figures:
                        yield figures[f"{prefix}hardware.{name}"], ""
            for overridable in graph.overridable.values():
                yield from _in_use(overridable)
        case "Memory" | "Network":
            listed = _MEMORY if part == "Memory" else _NETWORK
            names = [f"{prefix}{name}" for prefix in prefixes for name in listed]
            yield from ((figures[name], "") for name in names if name in figures)
        case "Prefill" | "Decode":
            phase = part.lower()
            for name in _PHASE:
                if f"{phase}.{name}" in figures:
                    yield figures[f"{phase}.{name}"], PERCENT if name in ("mfu", "mbu") else ""
            step = graph.prefill if part == "Prefill" else graph.decode
            unit = "ms" if part == "Prefill" else "us"
            yield from ((block.time, unit) for block in step.blocks)
            yield from ((figures[name], unit) for name in (f"{phase}.step.time",) if name in figures)
        case "Serving" | "Cost":
            yield from ((figure, metric.display_unit) for metric, figure in graph.headlines.items())
            yield from ((figure, "") for figure in graph.per_day)
            names = [f"{prefix}cost.{name}" for prefix in prefixes for name in _PRICE]
            yield from ((figures[name], "") for name in names if name in figures)


def _in_use(overridable: Overridable) -> Iterator[tuple[Named, str]]:
    yield from ((figure, overridable.cell.unit) for figure in overridable.figures)
