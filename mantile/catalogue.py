"""What the library ships: models, hardware and efficiency profiles, listed and shown entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import describe, kv_bytes_per_token, parameters
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
        counts = parameters(ir)
        rows.append({
            "id": model.id, "name": model.name, "hub_id": model.hub_id, "model_type": facts.model_type,
            "layers": len(facts.sequence()), "parameters": counts["total"], "active": counts["active"],
            "kv_bytes_per_token": kv_bytes_per_token(ir)["all_layers"], "max_positions": facts.value("max_positions") or None,
            "weights_dtype": facts.choices["weights_dtype"].value,
        })  # fmt: skip
    return rows


def _model(identifier: str) -> dict[str, Any]:
    if identifier not in model_ids():
        raise unknown("model", identifier, model_ids())
    model = load_model(identifier)
    described = describe(build_ir(model))
    own = {name: getattr(model, name) for name in ("id", "name", "hub_id", "source", "date")}
    groups = [{"layer": " + ".join(group["blocks"]), "times": group["count"]} for group in described["layer_groups"]]
    return own | {"model_type": model.architecture.model_type, "parameters": described["parameters"], "layers": groups,
                  "facts": described["facts"]} | ({"vision": described["vision"]} if "vision" in described else {})  # fmt: skip


def differences(left: str, right: str) -> dict[str, Any]:
    """Where two models differ: facts, layers, counts and tensors, field by field.

    Args:
        left, right: models as `load_model` takes them.
    """
    fields = [_flat(describe(build_ir(load_model(name)), with_tensors=True)) for name in (left, right)]
    return {
        "a": left, "b": right,
        "differences": [{"field": name, "a": fields[0].get(name), "b": fields[1].get(name)}
                        for name in dict.fromkeys((*fields[0], *fields[1])) if fields[0].get(name) != fields[1].get(name)],
    }  # fmt: skip


def _flat(described: dict[str, Any]) -> dict[str, Any]:
    """A description as single fields; where a figure comes from is no difference between models."""
    found: dict[str, Any] = {"model_type": described["model_type"], "layers": described["layers"]}
    for group in ("parameters", "kv_bytes_per_token"):
        found |= {f"{group}.{name}": value for name, value in described[group].items()}
    for group in ("facts", "vision"):
        found |= {f"{group}.{name}": fact["value"] for name, fact in described.get(group, {}).items()}
    found |= {f"layers.{' + '.join(group['blocks'])}": group["count"] for group in described["layer_groups"]}
    for tensor in described["tensors"]:
        found[f"tensor.{tensor['name']} {' × '.join(map(str, tensor['shape']))}"] = tensor["count"]
    return found


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
