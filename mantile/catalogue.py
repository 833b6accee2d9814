"""What the library ships: models, hardware and efficiency profiles, listed and shown entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mantile.ir.counts import kv_bytes_per_token, parameters
from mantile.ir.dense import build_ir
from mantile.library.errors import unknown
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Figure, load_library

GIB, GB, TERA = 2**30, 10**9, 10**12


def listing(kind: str) -> list[dict[str, Any]]:
    """A line of figures in SI units for every entry.

    Args:
        kind: models, hardware or profiles.
    """
    return _LISTINGS[kind]()


def entry(kind: str, identifier: str) -> dict[str, Any]:
    """All that is known of one entry, every figure with unit, source and date.

    Raises:
        InputError: if there is no such entry, with the nearest ids.
    """
    return _ENTRIES[kind](identifier)


def _models() -> list[dict[str, Any]]:
    rows = []
    for identifier in model_ids():
        model = load_model(identifier)
        ir, facts = build_ir(model), model.architecture
        rows.append({
            "id": model.id, "name": model.name, "hub_id": model.hub_id, "model_type": facts.model_type,
            "layers": facts.layers.value, "parameters": parameters(ir)["total"],
            "kv_bytes_per_token": kv_bytes_per_token(ir)["all_layers"], "max_positions": facts.max_positions.value,
            "weights_dtype": facts.weights_dtype.value,
        })  # fmt: skip
    return rows


def _model(identifier: str) -> dict[str, Any]:
    if identifier not in model_ids():
        raise unknown("model", identifier, model_ids())
    model = load_model(identifier)
    return {"parameters": parameters(build_ir(model))["total"]} | model.model_dump(mode="json")


def _hardware() -> list[dict[str, Any]]:
    library = load_library()
    rows = []
    for chip in library.accelerators:
        system = library.system(chip.id)
        rows.append({
            "id": chip.id, "name": chip.name, "generation": chip.generation,
            "memory_capacity_bytes": _si(chip.memory_capacity, GIB),
            "memory_bandwidth_bytes_per_s": _si(chip.memory_bandwidth, GB),
            "peak_bf16_flops": _si(chip.peak_bf16, TERA), "peak_fp8_flops": _si(chip.peak_fp8, TERA),
            "peak_fp4_flops": _si(chip.peak_fp4, TERA), "system": system.id, "accelerators": system.accelerators.value,
            "link_bandwidth_bytes_per_s": _si(system.link_bandwidth, GB),
        })  # fmt: skip
    return rows


def _accelerator(identifier: str) -> dict[str, Any]:
    library = load_library()
    chips = {system.id: system.accelerator for system in library.systems}
    chip = library.accelerator(chips.get(identifier, identifier))
    system = library.system(chip.id)
    return {"id": chip.id, "accelerator": chip.model_dump(mode="json"), "system": system.model_dump(mode="json")}


def _profiles() -> list[dict[str, Any]]:
    return [
        {"id": profile.id, "key": profile.key, "version": profile.version, "factors": len(profile.factors)}
        for profile in load_library().efficiency
    ]


def _profile(identifier: str) -> dict[str, Any]:
    profiles = {profile.id: profile for profile in load_library().efficiency}
    if identifier not in profiles:
        raise unknown("efficiency profile", identifier, profiles)
    return profiles[identifier].model_dump(mode="json", exclude_none=True)


def _si(figure: Figure, scale: int) -> float | None:
    return None if figure.value is None else figure.value * scale


_LISTINGS: dict[str, Callable[[], list[dict[str, Any]]]] = {"models": _models, "hardware": _hardware, "profiles": _profiles}
_ENTRIES: dict[str, Callable[[str], dict[str, Any]]] = {"models": _model, "hardware": _accelerator, "profiles": _profile}
