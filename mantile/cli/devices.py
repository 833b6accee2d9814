"""The flag --device: machines that are not alike, each as CHIP:COUNT with what else it states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mantile.library.errors import InputError
from mantile.library.typed_numbers import number_of

if TYPE_CHECKING:
    from mantile.library.fields import ScenarioField

EXAMPLES = "--device rtx-5090 --device m3-ultra:2,link=10gbe"
_SHORT = {"bandwidth": "link_bandwidth", "latency": "link_latency", "chip": "accelerator"}
"""What fields of a device may be called on a command line."""


def device_fields(texts: list[str]) -> dict[str, Any]:
    """Devices of a command line as fields of a scenario; the first is the deployment itself.

    Args:
        texts: CHIP, CHIP:COUNT, or either with fields behind commas. A link leads to the next device, that of
            the last one from the device before.

    Raises:
        InputError: naming the flag, what is wrong and what is expected.

    >>> device_fields(["rtx-5090", "m3-ultra:2,layers=20"])["devices"][1]
    {'accelerator': 'm3-ultra', 'count': 2, 'layers': 20}
    """
    from mantile.library.device import OF_FIRST

    first, *others = read_devices(texts)
    own = {OF_FIRST[name]: first.pop(name) for name in OF_FIRST if name in first}
    # nothing is left of the machine of a scenario file
    return {"tp": 1, "system": "default"} | own | {"devices": [first, *others]}


def read_devices(texts: list[str], fewest: int = 2) -> list[dict[str, Any]]:
    """Devices of a command line, each as a scenario states it.

    Args:
        fewest: that there may be.

    Raises:
        InputError: as `device_fields`.
    """
    from mantile.library.device import MOST_DEVICES

    if not fewest <= len(texts) <= MOST_DEVICES:
        way = "one device is the deployment itself: --accelerator" if len(texts) == 1 else "leave some out"
        raise InputError(f"--device: expected 2 to {MOST_DEVICES} devices, found {len(texts)}; {way}")
    found = [_device(text) for text in texts]
    if len(found) > 1:
        _link_to_last(found, texts[-1])
    return found


def _link_to_last(devices: list[dict[str, Any]], text: str) -> None:
    """What the last device states of a link is of the one that leads to it."""
    from mantile.library.device import OF_LINK

    before, last = devices[-2:]
    for name in OF_LINK:
        if name in last and name in before:
            raise InputError(
                f"--device {text}: {name}: the device before states its link to the next; leave one out"
            )
        if name in last:
            before[name] = last.pop(name)


def _device(text: str) -> dict[str, Any]:
    from mantile.library.device import DEVICE_FIELDS

    chip, *stated = [part.strip() for part in text.split(",")]
    name, colon, count = chip.partition(":")
    if not name or "=" in chip:
        raise InputError(f"--device {text}: expected CHIP or CHIP:COUNT first, such as {EXAMPLES}")
    device: dict[str, Any] = {"accelerator": name}
    if colon:
        device["count"] = _number(text, DEVICE_FIELDS["count"], count)
    for part in stated:
        given, equals, value = part.partition("=")
        field = _SHORT.get(given.strip(), given.strip().replace("-", "_"))
        if field not in DEVICE_FIELDS or not equals:
            raise InputError(
                f"--device {text}: {part}: expected FIELD=VALUE of {', '.join(DEVICE_FIELDS)}, such as "
                f"{EXAMPLES}"
            )
        if field in device:
            raise InputError(f"--device {text}: {field}: given twice; leave one out")
        declared = DEVICE_FIELDS[field]
        device[field] = value.strip() if declared.kind is str else _number(text, declared, value)
    return device


def _number(text: str, declared: ScenarioField, value: str) -> float | int:
    number = number_of(value)
    if number is None or (declared.kind is int and not isinstance(number, int)):
        unit = f" in {declared.unit}" if declared.kind is float else ""
        kind = "a whole number" if declared.kind is int else "a number"
        raise InputError(
            f"--device {text}: {declared.name}: expected {kind}{unit}, found {value!r}; such as {EXAMPLES}"
        )
    return number
