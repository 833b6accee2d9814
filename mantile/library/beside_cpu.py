"""A CPU and accelerators of one machine as devices of a scenario: layers that have no room run on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.library.models import load_model
from mantile.library.profiles import Library

ALL = 1000
"""More layers than any model has."""
_SLOT = "pcie"  # what ids of slots begin with


def beside_cpu(
    library: Library,
    cpu: str,
    chip: str,
    count: int,
    layers: int | None = None,
    model: str | None = None,
    away: int = 0,
    kv_stays: bool = False,
) -> dict[str, Any]:
    """Fields of a CPU and accelerators in one machine, joined by the slot of the accelerator.

    Args:
        cpu, chip: ids; `count` of the accelerators.
        layers: on the accelerators, the last ones; None: as is fastest.
        model: whose layers are all that there may be.
        away: of these layers so many have their experts on the CPU.
        kv_stays: the KV cache of all layers stays in main memory, and the CPU computes attention.

    Raises:
        InputError: for an unknown chip or model.

    Example:
        beside_cpu(load_library(), "ryzen-9-9950x", "rtx-3090", 1, 24)["device_split"]    # rest
    """
    slot = library.accelerator(chip).host_bandwidth
    raw = 0.0 if slot is None or slot.value is None else slot.value
    kinds = [kind for kind in library.links.links if kind.id.startswith(_SLOT)]
    fast = [kind for kind in kinds if (kind.bandwidth.value or 0) >= raw]
    if layers is not None and model is not None:
        stack = load_model(model).architecture.stack
        layers = min(layers, sum(part.times * len(part.layers) for part in stack))
    beside: dict[str, Any] = {"accelerator": chip, "count": count}
    if layers is not None:
        beside["layers"] = layers
    if away:
        beside["experts_away"] = away if layers is None else min(away, layers)
    if kv_stays:
        beside["kv_away"] = ALL if layers is None else layers
    first = {"link": (fast or kinds[-1:])[0].id}
    # nothing is left of the machine of a scenario file
    machine = {"tp": 1, "system": "default", "accelerator": cpu}
    return machine | {"devices": [first, beside], "device_split": "solved" if layers is None else "rest"}


def is_beside_cpu(fields: Mapping[str, Any]) -> bool:
    """Whether the devices of a scenario are a CPU and accelerators in its slot.

    Example:
        is_beside_cpu(beside_cpu(load_library(), "ryzen-9-9950x", "rtx-3090", 1))    # True
    """
    devices: Sequence[Mapping[str, Any]] = fields.get("devices") or []
    return len(devices) == 2 and str(devices[0].get("link")).startswith(_SLOT)
