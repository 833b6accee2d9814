"""What a request calls hardware, as fields of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError, naming, quoted
from mantile.library.ids import configured
from mantile.library.machines import Gpus, card_of, find, hosts
from mantile.library.profiles import Library, System
from mantile.server.asked import Cpu, Hardware, Interconnect, Storage
from mantile.server.asked import Gpus as GpusAsked


@dataclass(frozen=True)
class Configuration:
    """Accelerators of a request.

    Args:
        fields: of a scenario: accelerator and system, or devices that are not alike.
        count: of all accelerators.
        ram: GB of the host; None where nobody states it.
        told: what is told back, as no estimate follows from it.
        cpu: id of the CPU, where it is one that we know.
        overrides: figures of the hardware as they were stated, by id.
    """

    fields: dict[str, Any]
    count: int
    ram: float | None = None
    told: tuple[str, ...] = field(default=())
    cpu: str | None = None
    overrides: Mapping[str, float] = field(default_factory=dict)

    @property
    def scenario(self) -> dict[str, Any]:
        """The fields of a scenario of this hardware."""
        reason = "as stated in the request"
        stated = [{"id": name, "value": value, "reason": reason} for name, value in self.overrides.items()]
        return {**self.fields, **({"overrides": stated} if stated else {})}

    @property
    def is_own(self) -> bool:
        """Whether the cards are no accelerators of the library, and so have no price."""
        return "hardware.memory_capacity" in self.overrides


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


def hardware(asked: Hardware, library: Library, folder: Path | None = None) -> Configuration:
    """The hardware of a request.

    Args:
        folder: of hosts that were sent to the server.

    Raises:
        InputError: naming the field that is wrong.
    """
    if asked.hardware_id is None and not asked.gpus:
        raise InputError("field hardware: expected hardware_id or gpus")
    where = "field hardware"
    if asked.hardware_id is not None and not asked.gpus:
        host = find(hosts(*(() if folder is None else (folder,))), asked.hardware_id)
        if host is None:
            found = configuration(asked.hardware_id, library, "field hardware.hardware_id")
            return _with_surroundings(found, asked, library)
        stated = host.model_dump(exclude={"source", "date", "status"}, exclude_none=True)
        asked = Hardware.model_validate(
            stated | asked.model_dump(exclude={"hardware_id", "gpus"}, exclude_none=True)
        )
        where = f"host {host.hardware_id}"
    cards = [_cards(gpus, library, f"{where}.gpus.{place}") for place, gpus in enumerate(asked.gpus)]
    if len(cards) == 1:
        found = cards[0]
    elif any(card.overrides for card in cards):
        raise InputError(f"{where}.gpus: a card of one's own is possible where all GPUs are alike")
    else:
        found = _unlike(asked, cards, library)
    return _with_surroundings(found, asked, library)


def _cards(gpus: GpusAsked, library: Library, where: str) -> Configuration:
    """GPUs of one kind: of the library, a system of it, or a card of one's own."""
    try:
        one = configuration(gpus.sku, library, f"{where}.sku")
    except InputError:
        if gpus.vram_gb is None and gpus.mem_bw_gbps is None and gpus.fp16_tflops is None:
            raise
        one = Configuration({}, 1)
    card = card_of(Gpus(sku=str(one.fields.get("accelerator", gpus.sku)), **_figures(gpus)), library, where)
    return Configuration(
        one.fields or {"accelerator": card.accelerator},
        one.count * gpus.count,
        told=card.notes,
        overrides=card.overrides,
    )


def _figures(gpus: GpusAsked) -> dict[str, Any]:
    return {name: getattr(gpus, name) for name in ("vram_gb", "mem_bw_gbps", "fp16_tflops")}


def _with_surroundings(found: Configuration, asked: Hardware, library: Library) -> Configuration:
    """What is around the GPUs: how they are joined, host memory, processor, disks."""
    fields, told, overrides = dict(found.fields), list(found.told), dict(found.overrides)
    if asked.interconnect and "devices" not in fields:
        link = asked.interconnect if isinstance(asked.interconnect, Interconnect) else None
        name = link.type if link else str(asked.interconnect)
        system = _system(name, str(fields["accelerator"]), library)
        fields["system"] = system.id
        if link is not None and link.bw_gbps is not None:
            known = system.link_bandwidth.value
            if not known or abs(link.bw_gbps / known - 1) > _SAME_LINK:
                overrides["hardware.link_bandwidth"] = link.bw_gbps
        if link is not None and link.latency_us is not None:
            told.append(
                f"latency of the interconnect ({link.latency_us:g} us) is told back: timed ones are used"
            )
    cpu = asked.cpu.sku if isinstance(asked.cpu, Cpu) else asked.cpu
    for name, value in (("cpu", cpu), ("storage", _type_of(asked.storage))):
        if value:
            told.append(f"{name} ({quoted(value)}) is told back: no figure follows from it")
    return replace(
        found, fields=fields, ram=asked.ram_gb, told=tuple(told), cpu=_cpu(cpu, library), overrides=overrides
    )


_SAME_LINK = 0.05  # as a share: closer bandwidths are the same


def _type_of(storage: str | Storage | None) -> str | None:
    return storage.type if isinstance(storage, Storage) else storage


def _cpu(name: str | None, library: Library) -> str | None:
    """The id of a CPU; None where none is stated, or one that we do not know."""
    try:
        return None if name is None else library.accelerator(name).id
    except InputError:
        return None


def _unlike(asked: Hardware, cards: list[Configuration], library: Library) -> Configuration:
    """Accelerators that are not alike: a part of the layers each."""
    devices: list[dict[str, Any]] = [
        {"accelerator": card.fields["accelerator"], "count": gpus.count}
        for card, gpus in zip(cards, asked.gpus, strict=True)
    ]
    if asked.interconnect:
        name = asked.interconnect.type if isinstance(asked.interconnect, Interconnect) else asked.interconnect
        with naming("field hardware.interconnect", "unknown ", "link "):
            link = library.link(name).id
        for device in devices[:-1]:
            device["link"] = link
    told = tuple(note for card in cards for note in card.told)
    return Configuration({"devices": devices}, sum(gpus.count for gpus in asked.gpus), told=told)


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
