"""What a request calls hardware, as fields of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mantile.library.errors import InputError, naming, quoted
from mantile.library.ids import configured
from mantile.library.profiles import Library, System
from mantile.server.asked import Hardware


@dataclass(frozen=True)
class Configuration:
    """Accelerators of a request.

    Args:
        fields: of a scenario: accelerator and system, or devices that are not alike.
        count: of all accelerators.
        ram: GB of the host; None where nobody states it.
        told: what is told back, as no estimate follows from it.
        cpu: id of the CPU, where it is one that we know.
    """

    fields: dict[str, Any]
    count: int
    ram: float | None = None
    told: tuple[str, ...] = field(default=())
    cpu: str | None = None


def configuration(name: str, library: Library, where: str) -> Configuration:
    """An accelerator, or a system with all accelerators of its domain.

    Args:
        name: id of either, in any spelling, or a name such as nvidia_nvl72_rack.
        where: the field, for errors.

    Raises:
        InputError: where there is neither.
    """
    name = name[:200]
    chips = {chip.id for chip in library.accelerators}
    systems = {system.id for system in library.systems}
    found = next((one for one in (name, *configured(name)) if one in chips or one in systems), None)
    if found is None:
        with naming(where, "unknown ", "accelerator "):
            found = library.accelerator(name).id
    if found in chips:
        return Configuration({"accelerator": found}, 1)
    system = library.system(found)
    return Configuration(
        {"accelerator": system.accelerator, "system": system.id}, int(system.accelerators.value or 1)
    )


def hardware(asked: Hardware, library: Library) -> Configuration:
    """The hardware of a request.

    Raises:
        InputError: naming the field that is wrong.
    """
    if (asked.hardware_id is None) == (not asked.gpus):
        raise InputError("field hardware: expected hardware_id or gpus, one of both")
    told = tuple(
        f"{name} ({quoted(value)}) is told back: no figure follows from it"
        for name, value in (("cpu", asked.cpu), ("storage", asked.storage))
        if value
    )
    if asked.hardware_id is not None:
        found = configuration(asked.hardware_id, library, "field hardware.hardware_id")
        fields, count = found.fields, found.count
    elif len(asked.gpus) == 1:
        found = configuration(asked.gpus[0].gpu_id, library, "field hardware.gpus.0.gpu_id")
        fields, count = found.fields, found.count * asked.gpus[0].count
    else:
        fields, count = _unlike(asked, library)
    if asked.interconnect and "devices" not in fields:
        fields |= {"system": _system(asked.interconnect, str(fields["accelerator"]), library).id}
    return Configuration(fields, count, asked.ram_gb, told, _cpu(asked.cpu, library))


def _cpu(name: str | None, library: Library) -> str | None:
    """The id of a CPU; None where none is stated, or one that we do not know."""
    try:
        return None if name is None else library.accelerator(name).id
    except InputError:
        return None


def _unlike(asked: Hardware, library: Library) -> tuple[dict[str, Any], int]:
    """Accelerators that are not alike: a part of the layers each."""
    chips = [
        configuration(gpus.gpu_id, library, f"field hardware.gpus.{place}.gpu_id").fields["accelerator"]
        for place, gpus in enumerate(asked.gpus)
    ]
    devices: list[dict[str, Any]] = [
        {"accelerator": chip, "count": gpus.count} for chip, gpus in zip(chips, asked.gpus, strict=True)
    ]
    if asked.interconnect:
        with naming("field hardware.interconnect", "unknown ", "link "):
            link = library.link(asked.interconnect).id
        for device in devices[:-1]:
            device["link"] = link
    return {"devices": devices}, sum(gpus.count for gpus in asked.gpus)


def _system(words: str, chip: str, library: Library) -> System:
    """The system of an accelerator that a word means."""
    systems = [system for system in library.systems if system.accelerator == chip]
    wanted = words.lower()
    usual = library.usual_system(chip)
    for system in (usual, *systems):
        named = (system.id, system.name.lower(), system.topology, system.link)
        if wanted in named or any(wanted in name for name in named[:2]):
            return system
    if wanted.startswith(("nvlink", "nvswitch", "xgmi", "infinity")) and usual.topology in ("switch", "mesh"):
        return usual
    raise InputError(
        f"field hardware.interconnect: {quoted(words)}: expected one of "
        f"{', '.join(system.id for system in systems)} for {chip}"
    )
