"""What binds a pass, the module that takes most of it, and what modules run at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.equations.display import converted, words
from mantile.equations.forward import Pass
from mantile.equations.graph import EstimateGraph
from mantile.equations.roofline import Block
from mantile.equations.tables import Equations
from mantile.equations.trace.figures import Figures
from mantile.equations.trace.lines import (
    NOTHING,
    Line,
    Table,
    fixed_text,
    looked,
    named,
    shown_unit,
)
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    Span,
    Words,
    choose,
    equal,
    index,
    join,
    match,
    maximum,
    number_of,
    percent,
    precedents,
    span,
    where,
)


def limits(passes: Sequence[Pass]) -> tuple[Table, Table]:
    """What binds each pass and how long, and of each the module that takes most of it."""
    binding: list[Line] = []
    largest: list[Line] = []
    for of in passes:
        for limit, shares in of.shares.items():
            number, time = len(binding) + 1, of.parts[limit]
            block, most = span(shares.figures), maximum(span(shares.figures))
            binding.append(
                Line(
                    {
                        "key": fixed_text(f"limit.{number}.key", f"{of.phase.id} {limit}"),
                        "value": looked(f"limit.{number}.value", converted(time, "s", "ms")),
                        "name": fixed_text(f"limit.{number}.name", named(time.label, "ms")),
                        "id": fixed_text(f"limit.{number}.id", time.id),
                    },
                    time,
                )
            )

            def beside(texts: Sequence[str], what: str, block: Span = block, most: Node = most) -> Node:
                return index(Words(block.members, what, tuple(texts)), match(most, block))

            name = beside([figure.label for figure in shares.figures], "quantity")
            ids = [figure.id for figure in shares.figures]
            largest.append(
                Line(
                    {
                        "value": looked(f"module.{number}.value", converted(most, "s", "ms")),
                        "name": looked(f"module.{number}.name", join(name, ", ms")),
                        "id": looked(f"module.{number}.id", beside(ids, "id")),
                        "lead": looked(
                            f"module.{number}.lead",
                            beside([figure.source for figure in shares.figures], "source"),
                        ),
                    },
                    time,
                )
            )
    return tuple(binding), tuple(largest)


def rates(graph: EstimateGraph, passes: Sequence[Pass], figures: Figures) -> Table:
    """What modules run at where a limit binds them: a rate, a launch, the time of a message."""
    roles = ("key", "value", "name", "id", "lead", "status")
    nothing = {role: fixed_text(f"rate.0.{role}", NOTHING) for role in roles}
    lines = {NOTHING: Line(nothing)}
    peaks = _peaks(graph)
    for of in passes:
        workers = graph.decode_workers if of.phase.decode else graph.prefill_workers
        reached = [(figure, block) for block in of.blocks for figure in block.reached.values()]
        for figure, block in (*reached, (workers.efficiency["step_host"], None)):
            if figure.id in lines:
                continue
            line, unit = f"rate.{len(lines)}", shown_unit(figure.unit)
            cells: dict[str, Named] = {
                "key": fixed_text(f"{line}.key", figure.id),
                "value": looked(f"{line}.value", converted(figure, figure.unit, unit)),
                "name": fixed_text(f"{line}.name", named(figure.label, unit)),
                "id": fixed_text(f"{line}.id", figure.id),
            }
            if block is not None and block.network:
                cells |= _of_message(line, block, workers, figures, graph.rows)
            elif figure.unit == "FLOP/s":
                peak, key = _of_peak(figure, peaks, figures)
                cells |= {"lead": looked(f"{line}.lead", key), "status": _share(line, figure, peak)}
            else:
                begins = "hardware." if figure.unit == "B/s" else "efficiency."
                peak = figures.nearest(figure, figure.unit, begins)
                cells |= {
                    "lead": fixed_text(f"{line}.lead", figures.of(peak)),
                    "status": _share(line, figure, peak),
                }
            lines[figure.id] = Line(cells, figure)
    return tuple(lines.values())


def _share(line: str, figure: Quantity, peak: Quantity) -> Quantity:
    """What a rate is against the figure that it follows from."""
    share = join(percent(figure / peak, 0), " of the figure below")
    return looked(f"{line}.status", where(peak > 0, share, NOTHING))


_Peaks = Mapping[Quantity, tuple[Node, Workers]]
"""Peaks that products run at, each with the name by which the library states it."""


def _peaks(graph: EstimateGraph) -> _Peaks:
    peaks: dict[Quantity, tuple[Node, Workers]] = {}
    for workers in graph.workers:
        rows = workers.rows
        peaks.setdefault(rows["hardware.sixteen_peak"], (rows["hardware.sixteen_format"], workers))
        for name in workers.formats.classes:
            own, asked = f"hardware.{name}.", "hardware.activation_peak"
            stored = f"{own}stored_peak"  # the smaller of both counts
            narrow = where(rows[stored] <= rows[asked], rows[f"{stored}_key"], rows[f"{asked}_key"])
            format = choose(1 + rows[f"{own}low_precision"], rows[f"{own}wide_format"], narrow)
            peaks.setdefault(rows[f"{own}linear_peak"], (format, workers))
    return peaks


def _of_peak(figure: Quantity, peaks: _Peaks, figures: Figures) -> tuple[Quantity, Node]:
    """The nearest peak that a rate follows from, and its key."""
    waiting: list[Named] = [figure]
    for other in waiting:
        if isinstance(other, Quantity) and other in peaks:
            name, workers = peaks[other]
            keys = [figures.of(peak) for peak in workers.hardware.peaks.values()]
            return other, join(keys[0].removesuffix(next(iter(workers.hardware.peaks))), name)
        waiting += precedents(other) if isinstance(other, Quantity) else ()
    raise AssertionError(f"{figure.id} follows from no peak")


def _of_message(
    line: str, block: Block, workers: Workers, figures: Figures, rows: Equations
) -> dict[str, Named]:
    """The key of the figure behind a message: a fixed time, or the links where bytes take longer."""
    hardware, hop = workers.hardware, f"{workers.prefix}network.p2p"
    inside, outside = figures.of(hardware.link_bandwidth), figures.of(hardware.scale_out_bandwidth)
    begins = inside.removesuffix("hardware.link_bandwidth")
    ways = block.ways
    if ways is None:
        assert block.bytes is not None
        place = looked(f"{line}.place", 1 + rows[f"{hop}.crosses"])
        over = looked(f"{line}.part", rows[f"{hop}.latency"] - block.bytes * rows[f"{hop}.per_byte"])
        factors = [
            figures.of(workers.efficiency.factors[name]) for name in ("p2p_latency", "network_latency")
        ]
        fixed = choose(place, *factors)
        out: Node = rows[f"{hop}.crosses"] > 0
    else:
        place = looked(f"{line}.place", match(ways.cheapest, span(ways.times)))
        latency = number_of(index(span(ways.latencies), place))
        over = looked(f"{line}.part", latency + latency - number_of(ways.cheapest))
        for name in ways.names:
            figures.of(figures.by_id[f"{begins}{name.source}"])
        fixed = join(begins, index(words(ways.names, "source"), place))
        out = equal(index(span(ways.names), place), "hierarchical")
    ends = (key.removeprefix(f"{begins}hardware.") for key in (outside, inside))
    links = looked(f"{line}.links", join(f"{begins}hardware.", where(out, *ends)))
    of_start = looked(f"{line}.fixed", fixed)
    return {
        "place": place,
        "part": over,
        "links": links,
        "fixed": of_start,
        "lead": looked(f"{line}.lead", where(over >= 0, of_start, links)),
        "status": fixed_text(f"{line}.status", NOTHING),
    }
