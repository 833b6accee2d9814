"""The block `devices:` of a scenario: machines that are not alike and hold a part of the layers each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.library.documents import Strict
from mantile.library.fields import DEPLOYMENT, Name, Real, ScenarioField, Text, Whole, field, read_fields
from mantile.library.links import INFERRED

MOST_DEVICES = 8
DEVICE = "device"
"""What names of fields of a device begin with; its number from 1 and _ follow: device2_layers."""


def _kind_to(number: int) -> Any:
    return field(
        f"Link to device {number}",
        f"kind of link to device {number}, where it is not the next; {INFERRED}: as link",
        group=DEPLOYMENT,
        default=INFERRED,
        listed="links",
    )


def _bandwidth_to(number: int) -> Any:
    return field(
        f"Bandwidth to device {number}",
        "raw, per direction; until stated that of the kind of link",
        group=DEPLOYMENT,
        unit="GB/s",
        initial=0,
        least=0,
        most=100_000,
    )


def _latency_to(number: int) -> Any:
    return field(
        f"Latency to device {number}",
        "of a message; until stated that of the kind of link",
        group=DEPLOYMENT,
        unit="us",
        initial=0,
        least=0,
        most=1_000_000,
    )


class Device(Strict):
    """A machine, or a group of equal accelerators, of a pipeline of unlike ones.

    What is left out follows: the accelerator that of the first device, layers the way in which they are
    split, the link what the ports of both machines allow. link_to_3 and on lead to devices that are not the
    next one; `links` of the scenario says which links there are.

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
    experts_away: Whole | None = field(
        "Layers with experts elsewhere",
        "of its layers so many have their experts on the device before, as --n-cpu-moe of llama.cpp",
        group=DEPLOYMENT,
        unit="layer",
        default=0,
        least=0,
        most=1000,
    )
    kv_away: Whole | None = field(
        "Layers with KV cache elsewhere",
        "of its layers so many have their KV cache on the device before, which computes attention, as "
        "--no-kv-offload of llama.cpp",
        group=DEPLOYMENT,
        unit="layer",
        default=0,
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
    link_to_3: Text | None = _kind_to(3)
    link_to_3_bandwidth: Real | None = _bandwidth_to(3)
    link_to_3_latency: Real | None = _latency_to(3)
    link_to_4: Text | None = _kind_to(4)
    link_to_4_bandwidth: Real | None = _bandwidth_to(4)
    link_to_4_latency: Real | None = _latency_to(4)
    link_to_5: Text | None = _kind_to(5)
    link_to_5_bandwidth: Real | None = _bandwidth_to(5)
    link_to_5_latency: Real | None = _latency_to(5)
    link_to_6: Text | None = _kind_to(6)
    link_to_6_bandwidth: Real | None = _bandwidth_to(6)
    link_to_6_latency: Real | None = _latency_to(6)
    link_to_7: Text | None = _kind_to(7)
    link_to_7_bandwidth: Real | None = _bandwidth_to(7)
    link_to_7_latency: Real | None = _latency_to(7)
    link_to_8: Text | None = _kind_to(8)
    link_to_8_bandwidth: Real | None = _bandwidth_to(8)
    link_to_8_latency: Real | None = _latency_to(8)


DEVICE_FIELDS: Mapping[str, ScenarioField] = {declared.name: declared for declared in read_fields(Device)}
OF_FIRST = {"accelerator": "accelerator", "system": "system", "count": "tp"}
"""Fields of the first device, and the fields of a deployment that they are."""
OF_LINK = ("link", "link_bandwidth", "link_latency")
"""Fields of the way to the next device: the last one has none."""
AWAY = {"experts_away": "experts away", "kv_away": "KV cache away"}
"""Fields of devices behind the first, and what a scenario asks for that states one."""
CHAIN, RING, STAR, MESH = "chain", "ring", "star", "mesh"
LINK_PRESETS = (CHAIN, RING, STAR, MESH)
"""Which links there are: to the next; also from the last to the first; through a switch; between any two."""


def link_fields(one: int, other: int) -> tuple[str, str, str]:
    """Kind, bandwidth and latency of the link between two devices: fields of the first of them.

    >>> link_fields(1, 2), link_fields(1, 3)[0]
    (('link', 'link_bandwidth', 'link_latency'), 'link_to_3')
    """
    start = "link" if other == one + 1 else f"link_to_{other}"
    return start, f"{start}_bandwidth", f"{start}_latency"


def pairs(count: int) -> tuple[tuple[int, int], ...]:
    """Devices between which there may be a link, beside that from each to the next.

    >>> pairs(4)
    ((1, 3), (1, 4), (2, 4))
    """
    return tuple((one, other) for one in range(1, count + 1) for other in range(one + 2, count + 1))


def with_links(devices: Sequence[Any], links: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The preset of a block `links:`, and the devices with the links that it states.

    Args:
        links: preset; link, bandwidth, latency of all links; between: a list of links of two devices each.

    Raises:
        ValueError: naming what is wrong and what is expected.

    >>> with_links([{}, {}, {}], {"preset": "mesh", "between": [{"devices": [1, 3], "link": "10gbe"}]})
    ('mesh', [{'link_to_3': '10gbe'}, {}, {}])
    """
    own = ("link", "bandwidth", "latency")
    _only(links, ("preset", "between", *own), "links")
    count = len(devices)
    if count < 2:
        raise ValueError("links: expected devices beside them; list two at least under devices")
    stated = [dict(one) if isinstance(one, Mapping) else one.model_dump(exclude_none=True) for one in devices]
    every = [*((one, one + 1) for one in range(1, count)), *pairs(count)]
    listed: list[tuple[tuple[int, int], Mapping[str, Any]]] = [(pair, links) for pair in every]
    between = links.get("between") or ()
    if not isinstance(between, Sequence) or isinstance(between, str):
        raise ValueError("links.between: expected a list such as [{devices: [1, 3], link: 10gbe}]")
    for place, given in enumerate(between):
        where = f"links.between.{place}"
        if not isinstance(given, Mapping):
            raise ValueError(f"{where}: expected a block such as {{devices: [1, 3], link: 10gbe}}")
        _only(given, ("devices", *own), where)
        ends = given.get("devices")
        if not (isinstance(ends, Sequence) and all(type(end) is int for end in ends) and len(ends) == 2):
            raise ValueError(f"{where}.devices: expected the numbers of two devices, found {ends!r:.60}")
        pair = (min(ends), max(ends))
        if pair not in every:
            raise ValueError(f"{where}.devices: expected two of the devices 1 to {count}, found {ends!r:.60}")
        listed.append((pair, given))
    for (one, other), given in listed:
        named = zip(link_fields(one, other), own, strict=True)
        stated[one - 1] |= {name: given[what] for name, what in named if given.get(what) is not None}
    return str(links.get("preset", MESH)), stated


def _only(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{where}: unknown field {name!r:.60}; expected {', '.join(known)}")


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
