"""Hardware, data types, frameworks and efficiency profiles, as they stand in profiles/: every figure with its source."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, model_validator

from mantile.library.documents import Strict, load
from mantile.library.errors import InputError, unknown

Status = Literal["measured", "fitted", "datasheet", "assumed", "defined"]
KernelFormat = Literal["bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only"]
Peak = Literal["bf16", "fp8", "fp4"]


class Figure(Strict):
    """One figure and why to believe it. `value` is None where the thing does not exist."""

    value: float | None
    unit: str
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""


class Accelerator(Strict):
    """A chip. Peaks are dense, without sparsity; None means that there is no native path."""

    id: str
    name: str
    vendor: str
    generation: str
    version: str
    peak_bf16: Figure
    peak_fp8: Figure
    peak_fp4: Figure
    memory_capacity: Figure
    memory_bandwidth: Figure
    tdp: Figure | None = None

    @model_validator(mode="after")
    def _units(self) -> Accelerator:
        expected = dict.fromkeys(("peak_bf16", "peak_fp8", "peak_fp4"), "TFLOP/s") | {
            "memory_capacity": "GiB", "memory_bandwidth": "GB/s", "tdp": "W",
        }  # fmt: skip
        _require_units(self, expected)
        if not self.peak_bf16.value:
            raise ValueError("peak_bf16 must be above 0: every other format falls back to it")
        return self


class System(Strict):
    """Accelerators of one kind and the link between them; any number of them up to `accelerators` may be used."""

    id: str
    name: str
    accelerator: str
    version: str
    topology: Literal["switch", "mesh", "pcie"]
    accelerators: Figure
    link_bandwidth: Figure

    @model_validator(mode="after")
    def _units(self) -> System:
        _require_units(self, {"accelerators": "accelerator", "link_bandwidth": "GB/s"})
        return self


class Framework(Strict):
    """A serving framework."""

    id: str
    name: str
    source: str


class DataType(Strict):
    """A number format: what it costs to store, which peak it computes at, whose kernels it runs on.

    `kernels_bf16` are the kernels used when activations are 16 bit, `kernels_native` when they have their own peak.
    `aliases` are other names for the format of weights; neither case nor - or _ matter.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    bits: float = Field(gt=0)
    roles: tuple[Literal["weights", "activations", "kv"], ...]
    peak: Peak
    kernels_bf16: KernelFormat
    kernels_native: KernelFormat
    source: str


class DataTypes(Strict):
    """All number formats."""

    datatypes: tuple[DataType, ...]


class Factor(Strict):
    """One efficiency figure, where needed for one kernel format, KV format or number of ranks only."""

    factor: str
    value: float
    format: str | None = None
    kv: Literal["bf16", "fp8"] | None = None
    ranks: int | None = None
    source: str = Field(min_length=3)
    date: date
    status: Status


class EfficiencyProfile(Strict):
    """How much of the hardware is reached, for everything (`global`), a generation or an accelerator, with or without
    a framework. A factor that a profile lacks is taken from the next wider one."""

    id: str
    version: str
    generation: str | None = None
    accelerator: str | None = None
    framework: str | None = None
    factors: tuple[Factor, ...]

    @property
    def key(self) -> str:
        """What a case must have in its chain for the profile to apply."""
        place = self.accelerator or self.generation or "global"
        return f"{place}/{self.framework}" if self.framework else place


class Library(Strict):
    """All profiles one estimate may choose among; travels inside the workbook."""

    accelerators: tuple[Accelerator, ...]
    systems: tuple[System, ...]
    frameworks: tuple[Framework, ...]
    datatypes: tuple[DataType, ...]
    efficiency: tuple[EfficiencyProfile, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Library:
        accelerators = {accelerator.id for accelerator in self.accelerators}
        generations = {accelerator.generation for accelerator in self.accelerators}
        for accelerator in accelerators:
            if sum(system.accelerator == accelerator for system in self.systems) != 1:
                raise ValueError(f"accelerator {accelerator} needs exactly one system in profiles/systems")
        for profile in self.efficiency:
            if profile.accelerator and profile.accelerator not in accelerators:
                raise ValueError(f"efficiency profile {profile.id}: unknown accelerator {profile.accelerator}")
            if profile.generation and profile.generation not in generations:
                raise ValueError(f"efficiency profile {profile.id}: unknown generation {profile.generation}")
        names = [_spelling(name) for kind in self.datatypes for name in (kind.id, *kind.aliases)]
        if len(set(names)) < len(names):
            raise ValueError(f"datatypes: {next(name for name in names if names.count(name) > 1)} is the name of two formats")
        if "global" not in {profile.key for profile in self.efficiency}:
            raise ValueError("profiles/efficiency lacks global.yaml, the end of every fallback chain")
        return self

    def accelerator(self, name: str) -> Accelerator:
        """An accelerator by id."""
        return _pick("accelerator", name, self.accelerators)

    def system(self, accelerator: str) -> System:
        """The system an accelerator comes in."""
        return next(system for system in self.systems if system.accelerator == accelerator)

    def framework(self, name: str) -> Framework:
        """A framework by id."""
        return _pick("framework", name, self.frameworks)

    def datatype(self, name: str, role: str) -> DataType:
        """A number format by id, which must be usable for weights, activations or kv; weights also go by other names."""
        usable = [kind for kind in self.datatypes if role in kind.roles]
        if role == "weights":
            called = {_spelling(other): kind.id for kind in usable for other in (kind.id, *kind.aliases)}
            name = called.get(_spelling(name), name)
        return _pick(f"{role} data type", name, usable)


_Item = TypeVar("_Item", Accelerator, Framework, DataType)


def _spelling(name: str) -> str:
    """A name without regard to case and to what joins its parts."""
    return name.lower().replace("_", "-")


def _pick(kind: str, name: str, items: Iterable[_Item]) -> _Item:
    known = {item.id: item for item in items}
    if name not in known:
        raise unknown(kind, name, known)
    return known[name]


def _require_units(holder: Strict, expected: dict[str, str]) -> None:
    for field, unit in expected.items():
        figure = getattr(holder, field)
        if figure is not None and figure.unit != unit:
            raise ValueError(f"{field}: expected a figure in {unit}, found {figure.unit}")


def data_folder(name: str) -> Path:
    """Where profiles/, models/ and templates/ lie: inside an installed wheel or beside the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    return next((folder for folder in (package / name, package.parent / name) if folder.is_dir()), package / name)


@cache
def load_library() -> Library:
    """All profiles we ship."""
    folder = data_folder("profiles")

    def every(kind: type[Accelerator] | type[System] | type[Framework] | type[EfficiencyProfile], name: str) -> list[Strict]:
        items: list[Strict] = []
        for path in sorted((folder / name).glob("*.yaml")):
            item: Accelerator | System | Framework | EfficiencyProfile = load(kind, path)
            if item.id != path.stem:
                raise InputError(f"{path}: field id: expected {path.stem!r} as the file is called, found {item.id!r}")
            items.append(item)
        return items

    return Library.model_validate({
        "accelerators": every(Accelerator, "accelerators"),
        "systems": every(System, "systems"),
        "frameworks": every(Framework, "frameworks"),
        "datatypes": load(DataTypes, folder / "datatypes.yaml").datatypes,
        "efficiency": every(EfficiencyProfile, "efficiency"),
    })  # fmt: skip
