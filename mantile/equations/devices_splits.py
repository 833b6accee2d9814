"""Other ways to split layers over devices that are not alike, and what a step would take with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import NO_BOUND_TIME, SLIVER
from mantile.equations.decode import Decoding
from mantile.equations.devices import SPLIT_WORDS, SPLITS, Device, Devices, Split
from mantile.equations.forward import Pass
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    all_of,
    as_node,
    equal,
    maximum,
    minimum,
    sum_of,
    where,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.device import CHAIN


def other_splits(
    ir: ModelGraph, base: Workers, devices: Devices, decoding: Decoding, work: Mapping[str, Pass]
) -> Devices:
    """The devices with what other ways to split layers would give, at the batch as it is now.

    Args:
        decoding: what a decode step works on now.
        work: the passes, by phase.
    """
    rows = Rows("devices.other")
    now = work["prefill"]
    assert now.slowest is not None
    found: dict[str, Split] = {}
    counted: list[Node] = []
    for way in SPLITS:
        own = Rows(f"{rows.prefix}.{way}", f", split {SPLIT_WORDS[way]}", rows.rows)
        layers = [device.splits[way] for device in devices.devices]
        held = _held_layers(own, base, devices, layers)
        prefill, decode = (_pass(own, ir, devices, work[phase], held) for phase in ("prefill", "decode"))
        slowest = own("slowest", "Slowest device", "s", maximum(*decode.stages))
        step = own("step", "Decode step", "s", maximum(sum_of(decode.parts), decoding.microbatches * slowest))
        through = own("through", "Prefill pass through all devices", "s", sum_of(prefill.parts))
        of_prefill = own("prefill.slowest", "Slowest device, prefill", "s", maximum(*prefill.stages))
        used = [
            own(f"{on.device.number}.used", f"Memory used by device {on.device.number}", "B", _used(own, on))
            for on in held
        ]
        room = own(
            "room",
            "Every device has room",
            "flag",
            where(
                all_of(
                    *(
                        size <= on.device.workers.rows["memory.limit"]
                        for size, on in zip(used, held, strict=True)
                    )
                ),
                1,
                0,
            ),
        )
        fits = own(
            "fits",
            "Possible",
            "flag",
            where(sum_of(_no_ways(own, base, devices, held, ir.total_layers)) > 0, 0, room),
            "with room, and a way from each device to the next",
        )
        name = rows(f"{way}.name", f"Way to split, {way}", "1", as_node(f"split {SPLIT_WORDS[way]}"))
        found[way] = Split(name, tuple(layers), step, through, fits)
        stages = own(
            "stages",
            "Devices that hold layers",
            "stage",
            sum_of([where(count > 0, 1, 0) for count in layers]),
        )
        as_soon = own(
            "as_soon",
            "Prefill takes no longer",
            "flag",
            where(
                all_of(
                    through <= now.time * (1 + SLIVER),
                    of_prefill <= now.slowest * (1 + SLIVER),
                ),
                1,
                0,
            ),
            "on the slowest device too",
        )
        counted.append(
            own(
                "counted",
                "Decode step if nothing else is worse",
                "s",
                where(all_of(fits > 0, as_soon > 0, equal(stages, base.inputs.pp)), step, NO_BOUND_TIME),
                "as many devices hold layers and have room for the batch, and prefill takes no longer",
            )
        )
    best = rows(
        "best",
        "Shortest decode step of other splits",
        "s",
        minimum(*counted),
        "of those with which nothing else is worse; a day where there is none",
    )
    section = rows.section("Other ways to split layers", "at the batch as it is now")
    return replace(devices, other_splits=found, best=best, passes={**devices.passes, "splits": (section,)})


@dataclass(frozen=True)
class _Held:
    """What a device would hold: layers, of each kind by its count in the model; and the ends of the model.

    Args:
        before: layers on the devices before.
    """

    device: Device
    layers: Node
    kinds: Mapping[Input, Node]
    before: Node
    first: Node
    last: Node


def _held_layers(rows: Rows, base: Workers, devices: Devices, layers: Sequence[Node]) -> list[_Held]:
    """What each device would hold, worked out as for the split that there is."""
    stages = base.plan.stages
    split: dict[Node, Node] = {
        device.layers: count for device, count in zip(devices.devices, layers, strict=True)
    }
    rewrite = GraphRewrite(split, (), f"{rows.prefix}.", rows.suffix, tuple(stages.section.figures()))
    held = [
        _Held(
            device,
            count,
            {kind: rewrite.rewrite(counts[place]) for kind, counts in stages.layers.items()},
            rewrite.rewrite(stages.before[place]),
            rewrite.rewrite(stages.first[place]),
            rewrite.rewrite(stages.last[place]),
        )
        for place, (device, count) in enumerate(zip(devices.devices, layers, strict=True))
    ]
    rows.add(*rewrite.made(stages.section.figures()))
    return held


@dataclass(frozen=True)
class _Pass:
    """Seconds of a pass: all layers, all else, LM head and drafter; and of each device."""

    parts: tuple[Quantity, ...]
    stages: tuple[Quantity, ...]


def _pass(rows: Rows, ir: ModelGraph, devices: Devices, work: Pass, held: Sequence[_Held]) -> _Pass:
    phase, total = work.phase.id, ir.total_layers
    last = rows(
        f"{phase}.end",
        f"LM head and drafter, {phase}",
        "s",
        sum_of([block.time for block in work.blocks if block.id in ("lm_head", "draft")]),
    )
    layered = []
    for on in held:
        number = on.device.number
        of_kinds = devices.of_layer[phase][number - 1]
        label = f"Time of the layers of device {number}, {phase}"
        times: list[Node] = [on.kinds[kind] * time for kind, time in of_kinds.items()]
        layered.append(
            rows(
                f"{phase}.{number}.layers",
                label,
                "s",
                rows.added(f"{phase}.{number}.layers.part", label, "s", times, 4),
            )
        )
    of_all = rows(f"{phase}.layers", f"Time of all layers, {phase}", "s", sum_of(layered))
    common = rows(
        f"{phase}.common",
        f"Time of all else, {phase}",
        "s",
        work.time - devices.layered[phase] - last,
        "as it is now",
    )
    stages = [
        rows(
            f"{phase}.{on.device.number}.stage",
            f"Time on device {on.device.number}, {phase}",
            "s",
            own + common * (on.layers / total) + where(on.last, last, 0),
        )
        for own, on in zip(layered, held, strict=True)
    ]
    return _Pass((of_all, common, last), tuple(stages))


def _no_ways(
    rows: Rows, base: Workers, devices: Devices, held: Sequence[_Held], total: Node
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
        upto = held[one].before
        needed = all_of(link.rate <= 0, upto > 0, upto < total, *chain)
        found.append(
            rows(f"{one}.no_way", f"No way from device {one} to the next", "flag", where(needed, 1, 0))
        )
    return found


def _used(rows: Rows, on: _Held) -> Node:
    """Bytes that a device would use with the batch as it is."""
    memory, number = on.device.workers.memory, on.device.number
    start, head = memory.ends
    sizes: list[Node] = [
        count * (memory.of_layers[kind] + on.device.workers.rows["memory.seats"] * memory.kv_of_layers[kind])
        for kind, count in on.kinds.items()
    ]
    label = f"Layers and caches, device {number}"
    layers = rows(f"{number}.layers", label, "B", rows.added(f"{number}.layers.part", label, "B", sizes, 2))
    ends = rows(
        f"{number}.ends",
        f"Embedding and LM head, device {number}",
        "B",
        where(on.first, start, 0) + where(on.last, head, 0),
    )
    beside = rows(
        f"{number}.beside",
        f"Beside layers and caches, device {number}",
        "B",
        where(
            on.layers > 0,
            on.device.workers.rows["memory.activations"]
            + on.device.workers.rows["memory.logits"]
            + on.device.workers.rows["memory.reserve"],
            0,
        ),
    )
    return layers + ends + beside
