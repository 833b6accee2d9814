"""What a deployment runs on, in words: how many accelerators of which name. Titles say it."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.devices import Devices
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, equal, join, where
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
    for device, count in zip(devices.devices, workers[0].ranks.counted, strict=True):
        own = _counted(device.workers, count)
        if told is not None:
            several = where(equal(told, NONE), own, join(told, " + ", own))
            label = f"Devices up to {device.number}, if it holds any of the model"
            own = rows(f"with.{device.number}", label, "1", several)
        body = where(count > 0, own, NONE if told is None else told)
        label = f"What it runs on, devices up to {device.number}"
        told = rows(f"words.{device.number}", label, "1", body)
    assert told is not None
    return told, rows.section("What it runs on", "accelerators by name, devices that hold any")


def _counted(workers: Workers, count: Quantity) -> Node:
    return join(count, " × ", workers.hardware.name)
