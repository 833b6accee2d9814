"""What the part Devices of Layers says of devices that are not alike, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mantile.equations.devices import Device, Devices
from mantile.equations.devices_away import layers_away
from mantile.equations.display import converted, in_unit
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    choose,
    join,
    maximum,
    minimum,
    rounded,
    sum_of,
    text,
    where,
)
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class DeviceTold:
    """A device as a reader sees it.

    Args:
        count: accelerators; `layers` that it holds; `which` they are, in words.
        room: requests for whose KV cache it has room; a dash where it holds no layer.
        way: the link to the next device, in words.
    """

    count: Node
    layers: Node
    which: Node
    room: Node
    way: Node


@dataclass(frozen=True)
class BoxTold:
    """A device in the picture: three lines, and its link to the next in three lines.

    Args:
        name: with the number of accelerators; `layers` that it holds; `figures` of its memory.
        rate: kind of the link and what transfers reach; `line` it is drawn with; `details`: latency, time
            of a prefill, and what is to be said of it, as `BUSIEST`. All three None of the last device.
    """

    name: Node
    layers: Node
    figures: Node
    rate: Node | None = None
    line: Node | None = None
    details: Node | None = None


BUSIEST, INFERRED_WORD, NOT_USED, NO_LAYERS = "busiest", "inferred", "not used", "no layers"
IN_USE, NO_LINK = "in use", "none"
WORDS = "devices.words"
"""Id of the row that says how many layers run on which device."""
"""Words of the picture that colours follow."""
_DRAWN, _DASHED = "━━━━━━━━━━━━━━▶", "╍ ╍ ╍ ╍ ╍ ╍ ╍ ╍▶"


def finding(devices: Devices, numbers: Sequence[Input], rate: Quantity, stages: Node) -> Node:
    """What it comes to: output tokens per second, and the device that takes longest in decode.

    Args:
        numbers: of the stages there can be, from 0; `stages` how many devices hold layers.
        rate: output tokens per second.
    """
    of_decode = devices.stages["decode"]
    slowest = maximum(*(stage.time for stage in of_decode))
    last = numbers[len(of_decode) - 1]
    place = minimum(
        *(
            where(stage.time >= slowest, number, last)
            for stage, number in zip(of_decode, numbers, strict=False)
        )
    )
    counted = where(stages > 1, " devices; ", " device; ")
    name = choose(place + 1, *(device.workers.hardware.name for device in devices.devices))
    return join(text(rate), " tokens/s from ", text(stages), counted, name, " takes longest in decode")


def held_in_words(devices: Devices, counted: Sequence[Quantity]) -> Section:
    """Rows of who holds how many layers, in words.

    Args:
        counted: of each device, the ranks that hold a part of the model.
    """
    rows = Rows("devices")
    parts: list[Node] = []
    for device, count in zip(devices.devices, counted, strict=True):
        name = device.workers.hardware.name
        said = join(device.layers, " layers run on ", name, *_away_in_words(rows, devices, device), ". ")
        unused = ": it counts neither as an accelerator nor in power and cost. "
        none = rows(
            f"{device.number}.words.none",
            f"Where device {device.number} has no layers, in words",
            "1",
            join("No layers run on ", name, where(count > 0, ". ", unused)),
        )
        parts.append(
            rows(
                f"{device.number}.words",
                f"Layers of device {device.number}, in words",
                "1",
                where(device.layers > 0, said, none),
            )
        )
    rows(WORDS.removeprefix("devices."), "Layers of devices, in words", "1", join(*parts))
    return rows.section("Who holds layers", "in words")


def _away_in_words(rows: Rows, devices: Devices, device: Device) -> Iterator[Node]:
    """Which of its layers have experts or KV cache on the device before."""
    there = devices.devices[device.number - 2]
    for name, called in (("experts", "experts"), ("kv", "the KV cache")):
        away = layers_away(name, device.inputs, there.inputs)
        if away is not None:
            before = there.workers.hardware.name
            said = join(f", with {called} of ", minimum(away, device.layers), " layers on ", before)
            yield rows(
                f"{device.number}.words.{name}",
                f"Where {called} of device {device.number} lie, in words",
                "1",
                choose(1 + minimum(1, away), "", said),
            )


def device_told(device: Device, before: Quantity) -> DeviceTold:
    """A device in words; `before` are the layers of the devices before it."""
    return DeviceTold(
        count=1 * device.inputs.count,
        layers=1 * device.layers,
        which=where(device.layers > 0, _named(device, before), "–"),
        room=where(device.holds > 0, device.capacity, "–"),
        way=_way(device),
    )


def box_told(devices: Devices, device: Device, before: Quantity) -> BoxTold:
    """A device in the picture; `before` are the layers of the devices before it."""
    hardware, count = device.workers.hardware, device.inputs.count
    box = BoxTold(
        name=where(count > 1, join(text(count), " × ", hardware.name), hardware.name),
        layers=where(device.layers > 0, join("layers ", _named(device, before)), NO_LAYERS),
        figures=join(
            text(in_unit(hardware.memory_bandwidth, "GB/s")),
            " GB/s · ",
            rounded(in_unit(device.workers.rows["memory.used"], "GB"), 1),
            " of ",
            rounded(in_unit(device.workers.rows["memory.usable"], "GB"), 1),
            " GB",
        ),
    )
    link, kind = device.link, device.inputs.link
    if link is None or kind is None:
        return box
    place = device.number - 1
    of_prefill = join(rounded(converted(devices.sent["prefill"][place], "s", "ms"), 2), " ms of a prefill")
    return replace(
        box,
        rate=join(
            where(link["stated"] > 0, kind, INFERRED_WORD),
            " · ",
            rounded(converted(link["rate"], "B/s", "GB/s"), 2),
            " GB/s",
        ),
        line=where(link["stated"] > 0, _DRAWN, _DASHED),
        details=join(
            rounded(converted(link["latency"], "s", "us"), 0),
            " us · ",
            where(link["used"] > 0, of_prefill, NOT_USED),
            where(devices.busiest[place] > 0, f" · {BUSIEST}", ""),
        ),
    )


def link_told(devices: Devices, one: int, other: int) -> tuple[Node, Node]:
    """What transfers reach between two devices in GB/s, with a wave where it is inferred; and whether it is
    used, in a word.
    """
    place = next(at for at, link in enumerate(devices.links) if link.ends == (one, other))
    link = devices.links[place]
    reached = join(rounded(converted(link["rate"], "B/s", "GB/s"), 2), choose(1 + link["stated"], " ~", ""))
    there = all_of(link["rate"] > 0, *(() if link.to_next else (link["laid"] > 0,)))
    used = choose(1 + link["used"] + devices.busiest[place], NOT_USED, IN_USE, BUSIEST)
    return where(there, reached, NO_LINK), where(there, used, NO_LINK)


def preset_told(devices: Devices) -> Node:
    """Which links there are, in words."""
    preset = devices.devices[0].workers.inputs.links
    assert preset is not None
    return join("links: ", preset)


def _named(device: Device, before: Quantity) -> Node:
    return join(text(before + 1), " – ", text(before + device.layers))


def _way(device: Device) -> Node:
    link = device.link
    if link is None or device.inputs.link is None or device.inputs.link_latency is None:
        return join("the last", " of the list")
    return join(
        rounded(link["bandwidth"], 2),
        " GB/s, ",
        rounded(device.inputs.link_latency, 0),
        " us, ",
        where(link["stated"] > 0, device.inputs.link, "inferred from ports"),
    )


def totals(devices: Devices, counted: Sequence[Quantity]) -> tuple[Node, Node]:
    """Accelerators and layers of all devices.

    Args:
        counted: of each device, the ranks that hold a part of the model.
    """
    return sum_of(list(counted)), sum_of([device.inputs.layers for device in devices.devices])


def split_told(fits: Quantity, layers: Sequence[Node]) -> tuple[Node, Node]:
    """Whether a split fits, and the layers of the devices, in words."""
    parts: list[Node | str] = []
    for count in layers:
        parts += [" · ", text(count)] if parts else [text(count)]
    return where(fits > 0, "yes", "no"), join(*parts)
