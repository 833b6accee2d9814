"""Other ways to split layers over devices that are not alike, and what a step would take with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import NO_BOUND_TIME
from mantile.equations.devices import SPLIT_WORDS, SPLITS, Device, Devices, Split
from mantile.equations.forward import Pass
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, all_of, as_node, equal, maximum, minimum, sum_of, where
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.device import CHAIN


def other_splits(
    ir: ModelGraph, base: Workers, devices: Devices, microbatches: Node, work: Mapping[str, Pass]
) -> Devices:
    """The devices with what other ways to split layers would give.

    Args:
        microbatches: into which the batch is cut now.
        work: the passes, by phase.
    """
    rows = Rows("devices.other")
    found: dict[str, Split] = {}
    means = {
        phase: [_mean_layer(rows, ir, device, devices, phase) for device in devices.devices] for phase in work
    }
    total = ir.total_layers
    for way in SPLITS:
        layers = [device.splits[way] for device in devices.devices]
        ends = list(_ends(rows, way, layers, total))
        steps: dict[str, tuple[list[Node], list[Node]]] = {}
        for phase, of_phase in work.items():
            last = rows(
                f"{way}.{phase}.end",
                f"LM head and drafter, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                sum_of([block.time for block in of_phase.blocks if block.id in ("lm_head", "draft")]),
            )
            layered: list[Node] = [count * mean for count, mean in zip(layers, means[phase], strict=True)]
            of_all = rows(
                f"{way}.{phase}.layers",
                f"Time of all layers, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                sum_of(layered),
            )
            common = rows(
                f"{way}.{phase}.common",
                f"Time of all else, {phase}, split {SPLIT_WORDS[way]}",
                "s",
                of_phase.time - devices.layered[phase] - last,
                "as it is now",
            )
            stages: list[Node] = [
                rows(
                    f"{way}.{phase}.{number}.stage",
                    f"Time on device {number}, {phase}, split {SPLIT_WORDS[way]}",
                    "s",
                    own + common * (count / total) + where(end.is_last, last, 0),
                )
                for number, (own, count, end) in enumerate(zip(layered, layers, ends, strict=True), start=1)
            ]
            steps[phase] = [of_all, common, last], stages
        parts, of_devices = steps["decode"]
        slowest = rows(
            f"{way}.slowest", f"Slowest device, split {SPLIT_WORDS[way]}", "s", maximum(*of_devices)
        )
        step = rows(
            f"{way}.step",
            f"Decode step, split {SPLIT_WORDS[way]}",
            "s",
            maximum(sum_of(parts), microbatches * slowest),
        )
        through = rows(
            f"{way}.through",
            f"Prefill pass through all devices, split {SPLIT_WORDS[way]}",
            "s",
            sum_of(steps["prefill"][0]),
        )
        held = [
            rows(
                f"{way}.{device.number}.used",
                f"Memory used by device {device.number}, split {SPLIT_WORDS[way]}",
                "B",
                _held(rows, way, ir, device, count, end.is_first, end.is_last),
            )
            for device, count, end in zip(devices.devices, layers, ends, strict=True)
        ]
        room = rows(
            f"{way}.room",
            f"Every device has room, split {SPLIT_WORDS[way]}",
            "flag",
            where(
                all_of(
                    *(
                        size <= device.workers.memory.limit
                        for size, device in zip(held, devices.devices, strict=True)
                    )
                ),
                1,
                0,
            ),
        )
        fits = rows(
            f"{way}.fits",
            f"Possible, split {SPLIT_WORDS[way]}",
            "flag",
            where(sum_of(_no_ways(rows, way, base, devices, [end.upto for end in ends], total)) > 0, 0, room),
            "with room, and a way from each device to the next",
        )
        name = rows(f"{way}.name", f"Way to split, {way}", "1", as_node(f"split {SPLIT_WORDS[way]}"))
        found[way] = Split(name, tuple(layers), step, through, fits)
    fitting = [
        rows(
            f"{way}.counted",
            f"Decode step if it fits, split {SPLIT_WORDS[way]}",
            "s",
            where(split.fits > 0, split.step, NO_BOUND_TIME),
        )
        for way, split in found.items()
    ]
    best = rows(
        "best",
        "Shortest decode step of other splits that fit",
        "s",
        minimum(*fitting),
        "a day where none fits",
    )
    section = rows.section("Other ways to split layers", "a mean layer stands for layers of all kinds")
    return replace(
        devices,
        other_splits=found,
        best=best,
        sections=devices.sections,
        passes={**devices.passes, "splits": (section,)},
    )


@dataclass(frozen=True)
class _End:
    """Of a device whether it has the first and the last layer, and the layers up to it."""

    is_first: Node
    is_last: Node
    upto: Quantity


def _ends(rows: Rows, way: str, layers: Sequence[Node], total: Node) -> Iterator[_End]:
    """The same of each device."""
    upto: Quantity | None = None
    for number, count in enumerate(layers, start=1):
        own = Rows(f"{rows.prefix}.{way}.{number}", f", device {number}, split {SPLIT_WORDS[way]}", rows.rows)
        before, upto = (
            upto,
            own("upto", "Layers up to it", "layer", 1 * count if upto is None else upto + count),
        )
        is_first = count > 0 if before is None else all_of(count > 0, before <= 0)
        first = own("first", "It has the embedding", "flag", where(is_first, 1, 0))
        last = own("last", "It has the LM head", "flag", where(all_of(count > 0, upto >= total), 1, 0))
        yield _End(first > 0, last > 0, upto)


def _no_ways(
    rows: Rows, way: str, base: Workers, devices: Devices, upto: Sequence[Quantity], total: Node
) -> list[Quantity]:
    """Of each link from a device to the next, 1 where activations have to go over it and it carries nothing.

    In a ring, a star or a mesh there may be another way: nothing is said of those.
    """
    joined = base.inputs.links
    chain = [] if joined is None else [equal(joined, CHAIN)]
    found = []
    for link in devices.links:
        one, other = link.ends
        if other != one + 1:
            continue
        needed = all_of(link.rate <= 0, upto[one - 1] > 0, upto[one - 1] < total, *chain)
        found.append(
            rows(
                f"{way}.{one}.no_way",
                f"No way from device {one} to the next, split {SPLIT_WORDS[way]}",
                "flag",
                where(needed, 1, 0),
            )
        )
    return found


def _mean_layer(rows: Rows, ir: ModelGraph, device: Device, devices: Devices, phase: str) -> Quantity:
    """Seconds of a mean layer on a device."""
    each = devices.of_layer[phase][device.number - 1]
    body = sum_of([kind * row for kind, row in each.items()]) / ir.total_layers
    return rows(
        f"{device.number}.{phase}.mean_layer",
        f"Time of a mean layer, device {device.number}, {phase}",
        "s",
        body,
    )


def _held(
    rows: Rows, way: str, ir: ModelGraph, device: Device, layers: Node, first: Node, last: Node
) -> Node:
    """Bytes that a device would hold with so many mean layers."""
    memory, number = device.workers.memory, device.number
    own = Rows(f"{rows.prefix}.{way}.{number}", f", device {number}, split {SPLIT_WORDS[way]}", rows.rows)
    start, head = memory.ends
    weights = sum_of([kind * size for kind, size in memory.of_layers.items()]) / ir.total_layers
    caches = sum_of([kind * size for kind, size in memory.caches.layers.items()]) / ir.total_layers
    mean = own("layer", "Weights of a mean layer", "B", weights)
    cache = own("cache", "KV cache of a mean layer", "B/request", caches)
    ends = own("ends", "Embedding and LM head", "B", where(first, start, 0) + where(last, head, 0))
    beside = own(
        "beside",
        "Beside layers and caches",
        "B",
        where(layers > 0, memory.activations + memory.logits + memory.reserve, 0),
    )
    return layers * (mean + memory.rank_requests * cache) + ends + beside
