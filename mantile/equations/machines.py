"""What a deployment runs on, in words: how many accelerators of which name. Titles say it."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.devices import Devices
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, Node, Quantity, Section, equal, join, where
from mantile.graph.rows import Rows

NONE = "–"


def machines(workers: Sequence[Workers], devices: Devices | None) -> tuple[Quantity, Section]:
    """What a deployment runs on, and its rows: then those that decode, or each device, where they are others.

    A device that holds no part of the model is left out.
    """
    rows = Rows("machines")
    if devices is None:
        first, second = (_counted(of, of.ranks.deployment) for of in (workers[0], workers[-1]))
        apart = workers[0].ranks.disaggregated
        both = first if apart is None else join(first, where(apart > 0, join(" → ", second), ""))
        said = rows("words", "What it runs on", "1", both)
        return said, rows.section("What it runs on", "accelerators by name")
    told: Quantity | None = None
    alike: Quantity | None = None
    held = [*zip(devices.devices, workers[0].ranks.counted, strict=True)]
    for place, (device, count) in enumerate(held):
        name, number = device.workers.rows["hardware.name"], device.number
        before = None if place == 0 else held[place - 1][0].workers.rows["hardware.name"]
        more: Node = count
        if before is not None and alike is not None:
            more = count + where(equal(before, name), alike, 0)
        alike = rows(f"alike.{number}", f"Accelerators alike up to device {number}", "accelerator", more)
        last: Node = alike
        if place + 1 < len(held):
            last = where(equal(held[place + 1][0].workers.rows["hardware.name"], name), 0, alike)
        ended = rows(
            f"ended.{number}", f"Accelerators of a kind that ends there, {number}", "accelerator", last
        )
        own: Node = join(ended, " × ", name)
        if told is not None:
            several = where(equal(told, NONE), own, join(told, " + ", own))
            label = f"Devices up to {number}, if it holds any of the model"
            own = rows(f"with.{number}", label, "1", several)
        body = where(ended > 0, own, NONE if told is None else told)
        told = rows(f"words.{number}", f"What it runs on, devices up to {number}", "1", body)
    assert told is not None
    return told, rows.section("What it runs on", "accelerators by name, devices that hold any")


def _counted(workers: Workers, count: Quantity) -> Node:
    return join(count, " × ", workers.rows["hardware.name"])


def ram_of_machine(ram: Quantity, ranks: int) -> Quantity:
    """Main memory of a machine on which so many ranks of a server stand.

    Args:
        ram: of a rank.
    """
    count = Input("startup.ranks_of_machine", "Ranks on a machine", "number", ranks, shared=True, fixed=True)
    return Quantity("startup.ram_of_machine", "Main memory of a machine", "B", ram * count, "of its ranks")
