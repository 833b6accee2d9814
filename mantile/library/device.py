"""The block `devices:` of a scenario: machines that are not alike and hold a part of the layers each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.library.documents import Strict
from mantile.library.fields import DEPLOYMENT, Name, Real, ScenarioField, Text, Whole, field, read_fields
from mantile.library.links import INFERRED

MOST_DEVICES = 8
DEVICE = "device"
"""What names of fields of a device begin with; its number from 1 and _ follow: device2_layers."""


class Device(Strict):
    """A machine, or a group of equal accelerators, of a pipeline of unlike ones.

    What is left out follows: the accelerator that of the first device, layers the way in which they are
    split, the link what the ports of both machines allow.

    Example: {accelerator: m3-ultra, count: 2, link: thunderbolt-5-rdma}
    """

    accelerator: Name | None = field("Accelerator", "of the device", group=DEPLOYMENT, listed="accelerators")
    system: Text | None = field(
        "System", "how its accelerators are linked", group=DEPLOYMENT, default="default", listed="systems"
    )
    count: Whole | None = field(
        "Accelerators",
        "that split each layer of the device, as TP; 0: there is no such device",
        group=DEPLOYMENT,
        unit="rank",
        initial=1,
        least=0,
        most=1024,
    )
    layers: Whole | None = field(
        "Layers",
        "that the device holds, in order; until stated by the way in which layers are split",
        group=DEPLOYMENT,
        unit="layer",
        initial=0,
        least=0,
        most=1000,
    )
    memory: Real | None = field(
        "Memory it may use",
        "of one accelerator; until stated what the driver shows",
        group=DEPLOYMENT,
        unit="GB",
        initial=1,
        least=0.1,
        most=100_000,
    )
    link: Text | None = field(
        "Link to the next",
        f"kind of link to the next device; {INFERRED}: the fastest that the ports of both allow",
        group=DEPLOYMENT,
        default=INFERRED,
        listed="links",
    )
    link_bandwidth: Real | None = field(
        "Bandwidth to the next",
        "raw, per direction; until stated that of the kind of link",
        group=DEPLOYMENT,
        unit="GB/s",
        initial=0,
        least=0,
        most=100_000,
    )
    link_latency: Real | None = field(
        "Latency to the next",
        "of a message; until stated that of the kind of link",
        group=DEPLOYMENT,
        unit="us",
        initial=0,
        least=0,
        most=1_000_000,
    )


DEVICE_FIELDS: Mapping[str, ScenarioField] = {declared.name: declared for declared in read_fields(Device)}
OF_FIRST = {"accelerator": "accelerator", "system": "system", "count": "tp"}
"""Fields of the first device, and the fields of a deployment that they are."""
OF_LINK = ("link", "link_bandwidth", "link_latency")
"""Fields of the way to the next device: the last one has none."""


def device_name(number: int, name: str) -> str:
    """The name of a field of a device among the inputs of a scenario.

    >>> device_name(2, "layers"), device_name(1, "count")
    ('device2_layers', 'tp')
    """
    return OF_FIRST[name] if number == 1 and name in OF_FIRST else f"{DEVICE}{number}_{name}"


def of_device(name: str) -> tuple[int, str] | None:
    """Number and field of an input of a device; None for any other input.

    >>> of_device("device2_layers"), of_device("tp")
    ((2, 'layers'), None)
    """
    number, _, field_name = name.removeprefix(DEVICE).partition("_")
    if not name.startswith(DEVICE) or not number.isdigit() or field_name not in DEVICE_FIELDS:
        return None
    return int(number), field_name


def flat(devices: tuple[Device, ...]) -> dict[str, Any]:
    """What devices state, by the names of inputs."""
    return {
        device_name(number, name): value
        for number, device in enumerate(devices, start=1)
        for name in DEVICE_FIELDS
        if (value := getattr(device, name)) is not None
    }


def machines(values: Mapping[str, Any]) -> list[tuple[int, str]]:
    """How many accelerators of which id the devices of a column are, equal neighbours together; empty where
    accelerators are alike.

    >>> machines({"accelerator": "a", "tp": 1, "device2_count": 2, "device2_accelerator": "b"})
    [(1, 'a'), (2, 'b')]
    """
    found = [(int(values.get("tp", 1)), str(values["accelerator"]))]
    for number in range(2, MOST_DEVICES + 1):
        count = int(values.get(f"{DEVICE}{number}_count", 0))
        chip = str(values.get(f"{DEVICE}{number}_accelerator", values["accelerator"]))
        if count and found[-1][1] == chip:
            found[-1] = found[-1][0] + count, chip
        elif count:
            found.append((count, chip))
    return found if f"{DEVICE}2_count" in values else []
