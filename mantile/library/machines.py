"""Hosts and runtimes as records: what a client calls its hardware and its engine, in its own words.

A host is its GPUs and what is around them; a runtime is an engine in a version. Shipped ones lie in
profiles/hosts and profiles/runtimes; a user's own in the folder of user data, or in that of a server.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from mantile.library.documents import Strict, load, parse_yaml, read_text, validate
from mantile.library.errors import InputError, quoted
from mantile.library.files import replacing
from mantile.library.ids import words
from mantile.library.places import data_folder
from mantile.library.profiles import Accelerator, Library
from mantile.library.releases import known_releases

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,98}$")]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1, le=100_000)]
Status = Literal["datasheet", "secondary", "measured", "assumed", "stated"]


class Gpus(Strict):
    """GPUs of one kind.

    Args:
        sku: an accelerator of the library in any spelling, or a card of one's own with its figures.
        vram_gb: GiB of one, as cards are sold; mem_bw_gbps in GB/s; fp16_tflops dense, in TFLOP/s.
        pcie_gen, pcie_lanes: of its slot.
    """

    sku: Word
    count: Whole = 1
    vram_gb: Positive | None = None
    mem_bw_gbps: Positive | None = None
    fp16_tflops: Positive | None = None
    pcie_gen: Annotated[int, Field(ge=1, le=8)] | None = None
    pcie_lanes: Annotated[int, Field(ge=1, le=32)] | None = None


class Interconnect(Strict):
    """What joins the GPUs: its kind, GB/s per direction of a GPU, and us of a message."""

    type: Word
    bw_gbps: Positive | None = None
    latency_us: Positive | None = None


class Cpu(Strict):
    """The processor: its name, cores, GB/s of its memory, NUMA nodes."""

    sku: Word
    cores: Whole | None = None
    mem_bw_gbps: Positive | None = None
    numa_nodes: Whole | None = None


class Storage(Strict):
    """Disks: their kind, and GB/s that they read."""

    type: Word
    read_gbps: Positive | None = None


class _Recorded(Strict):
    source: Word | None = None
    date: datetime.date | None = None
    status: Status = "stated"


class Host(_Recorded):
    """A host.

    Args:
        ram_gb: GB of its memory.
    """

    hardware_id: Identifier
    gpus: tuple[Gpus, ...] = Field(min_length=1, max_length=8)
    interconnect: Interconnect | None = None
    cpu: Cpu | None = None
    ram_gb: Positive | None = None
    storage: Storage | None = None


class Runtime(_Recorded):
    """An engine in a version.

    Args:
        engine: a framework of the library, in any spelling.
        kernel_flags: settings of its kernels, by their names.
        supported_formats: where the version has others than its framework in the library.
    """

    runtime_id: Identifier
    engine: Word
    version: Word | None = None
    cuda: Word | None = None
    kernel_flags: dict[str, str | bool | int | float] = Field(default_factory=dict)
    supported_formats: tuple[Word, ...] = ()
    scheduler: Word | None = None


Kind = Literal["hosts", "runtimes"]
_CLASSES: Mapping[Kind, type[Host] | type[Runtime]] = {"hosts": Host, "runtimes": Runtime}
_IDS: Mapping[Kind, str] = {"hosts": "hardware_id", "runtimes": "runtime_id"}
Record = TypeVar("Record", Host, Runtime)


def user_folder() -> Path:
    """Where records that a user added lie."""
    from platformdirs import user_data_path

    return user_data_path("mantile")


def hosts(*folders: Path) -> dict[str, Host]:
    """Hosts by id: shipped, the user's, and those of more folders.

    Example: hosts()["dual-4090-epyc"].ram_gb    # 256.0
    """
    return {one.hardware_id: one for one in _records("hosts", folders) if isinstance(one, Host)}


def runtimes(*folders: Path) -> dict[str, Runtime]:
    """Runtimes by id, as `hosts`."""
    return {one.runtime_id: one for one in _records("runtimes", folders) if isinstance(one, Runtime)}


def find(known: Mapping[str, Record], name: str) -> Record | None:
    """The record of a name in any spelling; None where there is none."""
    spelling = words(name)
    return next((one for key, one in known.items() if key == name or words(key) == spelling), None)


def read_record(path: Path) -> Host | Runtime:
    """A record of a file, YAML or JSON.

    Raises:
        InputError: naming file and field.
    """
    found = load(_either(path), path)
    assert isinstance(found, Host | Runtime)
    return found


def is_record(path: Path, key: str) -> bool:
    """Whether a file, YAML or JSON, is a mapping with that key."""
    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return False
    data = parse_yaml(read_text(path), str(path))
    return isinstance(data, dict) and key in data


def _either(path: Path) -> type[Host] | type[Runtime]:
    return Runtime if is_record(path, "runtime_id") else Host


def parse_record(data: Mapping[str, Any], kind: Kind, name: str) -> Host | Runtime:
    """A record of a request.

    Raises:
        InputError: naming the field that is wrong.
    """
    return validate(_CLASSES[kind], dict(data), name)


def add(record: Host | Runtime, folder: Path | None = None, most: int = 10_000) -> Path:
    """Store a record; the same again changes nothing.

    Args:
        folder: whose; the user's own without.
        most: records of a kind that the folder may hold.

    Raises:
        InputError: if another record has that id, or there are too many.
    """
    kind: Kind = "hosts" if isinstance(record, Host) else "runtimes"
    identifier = str(getattr(record, _IDS[kind]))
    folders = () if folder is None else (folder,)
    held = find({str(getattr(one, _IDS[kind])): one for one in _records(kind, folders)}, identifier)  # type: ignore[type-var]
    path = (folder or user_folder()) / kind / f"{identifier}.json"
    if held is not None:
        if held == record:
            return path
        raise InputError(f"{_IDS[kind]} {quoted(identifier)}: another record has that id: choose another")
    path.parent.mkdir(parents=True, exist_ok=True)
    if len([*path.parent.iterdir()]) >= most:
        raise InputError(f"{most:,} {kind} are stored: no more are kept here")
    with replacing(path) as part:
        part.write_text(
            json.dumps(record.model_dump(mode="json", exclude_none=True), indent=1), encoding="utf-8"
        )
    return path


def _records(kind: Kind, folders: tuple[Path, ...]) -> Iterator[Host | Runtime]:
    for folder in (data_folder("profiles"), user_folder(), *folders):
        for path in sorted((folder / kind).glob("*.yaml")) + sorted((folder / kind).glob("*.json")):
            yield load(_CLASSES[kind], path)


@dataclass(frozen=True)
class Card:
    """GPUs of a host as the library knows them.

    Args:
        accelerator: id in the library; of a card of one's own, the one whose efficiency it is given.
        overrides: figures of a card of one's own, by id.
        notes: what was stated and is not used, and what stands in for it.
    """

    accelerator: str
    overrides: Mapping[str, float]
    notes: tuple[str, ...] = ()


def card_of(gpus: Gpus, library: Library, where: str) -> Card:
    """The accelerator that GPUs are, or the one that is like a card of one's own.

    A card of one's own needs memory, bandwidth and FLOP/s; its efficiency is that of the nearest card.

    Raises:
        InputError: for a card that is not in the library and lacks one of these.
    """
    stated = {figure: getattr(gpus, name) for name, (figure, _) in _OWN_FIGURES.items()}
    try:
        chip = library.accelerator(gpus.sku)
    except InputError as error:
        missing = [name for name, (figure, _) in _OWN_FIGURES.items() if stated[figure] is None]
        if missing:
            raise InputError(
                f"{where}.sku: {quoted(gpus.sku)} is not in the library; of a card of one's own expected "
                f"{', '.join(missing)} too ({str(error)[:200]})"
            ) from None
        like = _nearest(gpus, library)
        note = (
            f"{gpus.sku} is not in the library: memory, bandwidth and FLOP/s as stated, efficiency and "
            f"others as of {like.name}, no price"
        )
        ratio = float(gpus.fp16_tflops or 0) / float((like.peak_fp16 and like.peak_fp16.value) or 1)
        peaks = {
            f"hardware.{name}": fact.value * ratio
            for name in _PEAKS
            if (fact := getattr(like, name, None)) is not None and fact.value
        }
        return Card(like.id, peaks | {name: float(value) for name, value in stated.items() if value}, (note,))
    notes = []
    for name, (figure, unit) in _OWN_FIGURES.items():
        known, said = getattr(chip, figure.removeprefix("hardware.")), stated[figure]
        if said and known and known.value and abs(said / known.value - 1) > _ALIKE:
            notes.append(
                f"{name} of {chip.name}: {said:g} stated, {known.value:g} {unit} of its datasheet used"
            )
    return Card(chip.id, {}, tuple(notes))


_OWN_FIGURES: Mapping[str, tuple[str, str]] = {
    "vram_gb": ("hardware.memory_capacity", "GiB"),
    "mem_bw_gbps": ("hardware.memory_bandwidth", "GB/s"),
    "fp16_tflops": ("hardware.peak_fp16", "TFLOP/s"),
}
"""Figures of a card of one's own: what each is in an estimate, and its unit there."""
_PEAKS = ("peak_bf16", "peak_fp16", "peak_fp8", "peak_int8", "peak_fp4")
_ALIKE = 0.1  # as a share: closer figures are the same


def _nearest(gpus: Gpus, library: Library) -> Accelerator:
    """The GPU of the library whose bandwidth and FLOP/s are nearest, by their ratios."""

    def far(chip: Accelerator) -> float:
        pairs = ((gpus.mem_bw_gbps, chip.memory_bandwidth), (gpus.fp16_tflops, chip.peak_fp16))
        return sum(abs(log(a / b.value)) for a, b in pairs if a and b is not None and b.value)

    return min(
        (chip for chip in library.accelerators if chip.vendor in _GPU_MAKERS and chip.peak_fp16), key=far
    )


_GPU_MAKERS = ("NVIDIA", "AMD")


def engine_of(name: str, library: Library, *folders: Path) -> dict[str, Any]:
    """The fields of a scenario that a runtime stands for: its framework, and the day of its release if known.

    A record's; else a framework by name, or a name such as vllm-0.6.4-cuda12.4: an engine and its version.

    Raises:
        InputError: for an engine that is not in the library.

    Example:
        engine_of("vllm-0.6.4-cuda12.4", load_library())["framework"]    # vllm
    """
    found = find(runtimes(*folders), name)
    engine, version = (found.engine, found.version) if found else (name, None)
    if found is None and (named := _VERSIONED.fullmatch(name)):
        engine, version = named["engine"], named["version"]
    framework = library.framework(engine).id
    fields: dict[str, Any] = {"framework": framework}
    if version is not None and version in known_releases().get(framework, {}):
        fields["engine_date"] = f"{framework} {version}"
    return fields


_VERSIONED = re.compile(r"(?P<engine>[A-Za-z][A-Za-z._ -]*?)[-_ ]v?(?P<version>\d+(?:\.\d+)+)(?:[-_+].*)?")
