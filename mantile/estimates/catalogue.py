"""What the library ships: models, hardware and profiles, listed, shown entry by entry, and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import describe, kv_bytes_per_token, parameters
from mantile.library.architecture import Architecture, Model
from mantile.library.correction import SHIPPED, Correction, load_correction
from mantile.library.documents import load, parse_yaml, read_text, validate
from mantile.library.efficiency import EfficiencyProfile, Factor
from mantile.library.errors import InputError, unknown
from mantile.library.ids import find_named
from mantile.library.models import load_model, model_ids
from mantile.library.models import shelf as model_shelf
from mantile.library.profile_facts import ProfileFact
from mantile.library.profiles import alone, load_library, shelf

GIB, GB, TERA = 2**30, 10**9, 10**12
_FILES = (".yaml", ".yml")


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
        rows.append(
            {
                "id": model.id,
                "aliases": [model.id.replace("-", "_")],
                "version": model.version,
                "name": model.name,
                "hub_id": model.hub_id,
                "model_type": facts.model_type,
                "layers": len(facts.sequence()),
                "parameters": counts["total"],
                "active": counts["active"],
                "kv_bytes_per_token": kv_bytes_per_token(ir)["all_layers"],
                "max_positions": facts.value("max_positions") or None,
                "weights_dtype": facts.choices["weights_dtype"].value,
                "family": facts.model_type,
                **{name: facts.value(fact) or None for name, fact in _SHAPE.items()},
                "attention": _attention(facts),
                "mixture": {name: facts.value(fact) or None for name, fact in _MIXTURE.items()}
                if facts.value("experts")
                else None,
                "tokenizer_vocabulary": model.tokenizer.vocabulary if model.tokenizer else None,
                "formats": [
                    {"format": facts.choices["weights_dtype"].value, "hub_id": model.hub_id},
                    *({"format": one.weights_dtype, "hub_id": one.hub_id} for one in model.formats),
                ],
            }
        )
    return rows


_SHAPE = {
    "hidden_size": "hidden_size",
    "heads": "attention_heads",
    "kv_heads": "kv_heads",
    "intermediate_size": "ffn_size",
}
_MIXTURE = {
    "experts": "experts",
    "top_k": "experts_per_token",
    "expert_size": "expert_size",
    "shared_expert_size": "shared_expert_size",
}
_NO_MIXERS = ("ffn", "moe", "recorded")
_SEQUENCE_MIXERS = {
    "latent_attention": "latent (MLA)",
    "compressed_attention": "compressed",
    "gated_delta": "linear (gated delta)",
    "delta": "linear (delta)",
    "mamba": "state space (Mamba)",
    "mamba2": "state space (Mamba 2)",
}


def _attention(facts: Architecture) -> str | None:
    """The kinds of attention of a model in words; None where its class was recorded and does not say it.

    Example: "grouped-query, sliding window"
    """
    words = []
    for block in facts.blocks.values():
        if block.kind == "attention":
            heads, kv_heads = facts.value("attention_heads"), facts.value("kv_heads")
            words.append(
                "multi-head" if kv_heads == heads else "multi-query" if kv_heads == 1 else "grouped-query"
            )
            if facts.value(block.uses.get("window", "sliding_window")):
                words.append("sliding window")
        elif block.kind not in _NO_MIXERS:
            words.append(_SEQUENCE_MIXERS[block.kind])
    return ", ".join(dict.fromkeys(words)) or None


def _model(name: str) -> dict[str, Any]:
    model = load_model(name)
    described = describe(build_ir(model))
    own: dict[str, Any] = {"id": model.id, "version": model.version or None}
    own |= {"versions": model_shelf().versions(model.id)} if model.version else {}
    own |= {name: getattr(model, name) for name in ("name", "hub_id", "source", "date")}
    groups = [
        {"layer": " + ".join(group["blocks"]), "times": group["count"]} for group in described["layer_groups"]
    ]
    return (
        own
        | {
            "model_type": model.architecture.model_type,
            "parameters": described["parameters"],
            "layers": groups,
            "tokenizer": {"tokenizer": model.tokenizer.model_dump(mode="json")} if model.tokenizer else {},
            "formats": [checkpoint.model_dump(mode="json") for checkpoint in model.formats],
            "facts": described["facts"],
        }
        | ({"vision": described["vision"]} if "vision" in described else {})
    )


def differences(kind: str, left: str, right: str) -> dict[str, Any]:
    """Where two entries differ, field by field; hardware with units and sources.

    Args:
        kind: models, hardware or profiles.
        left, right: models as `load_model` takes them, id@version too; accelerators or systems by id or
            id@version; efficiency profiles so too, or files of them or of corrections.

    Raises:
        InputError: if there is no such entry, or both are not of the same kind.
    """
    return {"a": left, "b": right, "differences": _DIFFERENCES[kind](left, right)}


def _differing(left: dict[str, Any], right: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"field": name, "a": left.get(name), "b": right.get(name)}
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    ]


def _model_differences(left: str, right: str) -> list[dict[str, Any]]:
    return _differing(*(_model_fields(load_model(name)) for name in (left, right)))


def _model_fields(model: Model) -> dict[str, Any]:
    """All that an entry says as single fields, without who says it."""
    fields = _flat(describe(build_ir(model), with_tensors=True))
    if model.tokenizer is not None:
        fields["tokenizer.vocabulary"] = model.tokenizer.vocabulary
    fields |= {f"formats.{checkpoint.hub_id}": checkpoint.weights_dtype for checkpoint in model.formats}
    return fields


def _hardware_differences(left: str, right: str) -> list[dict[str, Any]]:
    """A figure differs by its value; that another source states the same is no difference."""
    entries = [_accelerator_or_system(name) for name in (left, right)]
    if ("accelerator" in entries[0]) != ("accelerator" in entries[1]):
        raise InputError(f"{left} and {right}: expected two accelerators or two systems")
    sides = [_fields(entry) for entry in entries]
    differing = _differing(
        *({name: field.get("value") for name, field in fields.items()} for fields in sides)
    )
    for item in differing:
        a, b = (fields.get(item["field"]) or {} for fields in sides)
        item |= {
            "unit": a.get("unit") or b.get("unit"),
            "source_a": a.get("source"),
            "source_b": b.get("source"),
        }
    return differing


def _profile_differences(left: str, right: str) -> list[dict[str, Any]]:
    """A factor differs by its value, or is in one of them only; with its sources."""
    entries = [_profile_or_correction(name) for name in (left, right)]
    if type(entries[0]) is not type(entries[1]):
        raise InputError(f"{left} and {right}: expected two efficiency profiles or two corrections")
    sides = [_steps(entry) if isinstance(entry, Correction) else _factors(entry) for entry in entries]
    differing = _differing(*({name: value for name, (value, _) in side.items()} for side in sides))
    for item in differing:
        a, b = (side.get(item["field"], (None, None))[1] for side in sides)
        item |= {"source_a": a, "source_b": b}
    return differing


def _factors(profile: EfficiencyProfile) -> dict[str, tuple[Any, str]]:
    """The factors of a profile with their sources."""
    return {
        "[".join(filter(None, (factor.factor, _condition(factor)))): (factor.value, factor.source)
        for factor in profile.factors
    }


def _steps(correction: Correction) -> dict[str, tuple[Any, str]]:
    """The steps of a correction, each with the source of all: logarithms of multipliers."""
    found: dict[str, Any] = {}
    for one in correction.metrics:
        for group in one.groups:
            of_group = f"[{group.model}/{group.accelerator}/{group.framework}]"
            found |= {
                f"{one.metric}.{name}{of_group}": getattr(group, name) for name in ("step", "runs", "newest")
            }
        for along in one.along:
            for start, step in zip(along.starts, along.steps, strict=True):
                found[f"{one.metric}.{along.what}[from {start:g}]"] = step
        found |= {f"{one.metric}.{end}": getattr(one, end) for end in ("low", "high")}
    source = f"{correction.id} {correction.version}: {correction.source}"
    return {name: (value, source) for name, value in found.items()}


def _condition(factor: Factor) -> str:
    """What a factor holds for, as behind its name in --factor: fp8], or nothing."""
    stated = [str(part) for part in factor.condition if part is not None]
    return f"{', '.join(stated)}]" if stated else ""


def _profile_or_correction(name: str) -> EfficiencyProfile | Correction:
    """An efficiency profile by id or id@version, the correction that is shipped, or what a file holds, a
    profile or a correction."""
    if name == SHIPPED:
        return load_correction()
    if Path(name).suffix in _FILES:
        data = parse_yaml(read_text(Path(name)), name)
        if isinstance(data, dict) and "metrics" in data:
            return validate(Correction, data, name)
    return _efficiency(name)


def _efficiency(name: str) -> EfficiencyProfile:
    """An efficiency profile by id or id@version, or of a file."""
    if Path(name).suffix in _FILES:
        return load(EfficiencyProfile, Path(name))
    profiles = {profile.id for profile in load_library().efficiency}
    if name.partition("@")[0] not in profiles:
        raise unknown("efficiency profile", name, profiles)
    profile: EfficiencyProfile = shelf("efficiency").load(name)
    return profile


def _fields(entry: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Figures and facts of hardware as <part>.<field>, without what names an entry or comments on it."""
    return {
        f"{part}.{name}": value if isinstance(value, dict) else {"value": value}
        for part in ("accelerator", "system", "prices")
        for name, value in (entry.get(part) or {}).items()
        if name not in ("id", "name", "version", "accelerator", "year", "note")
    }


def _flat(described: dict[str, Any]) -> dict[str, Any]:
    """A description as single fields; where a figure comes from is no difference between models."""
    flat: dict[str, Any] = {"model_type": described["model_type"], "layers": described["layers"]}
    for group in ("parameters", "kv_bytes_per_token"):
        flat |= {f"{group}.{name}": value for name, value in described[group].items()}
    for group in ("facts", "vision"):
        flat |= {f"{group}.{name}": fact["value"] for name, fact in described.get(group, {}).items()}
    flat |= {f"layers.{' + '.join(group['blocks'])}": group["count"] for group in described["layer_groups"]}
    for tensor in described["tensors"]:
        flat[f"tensor.{tensor['name']} {' × '.join(map(str, tensor['shape']))}"] = tensor["count"]
    return flat


def _hardware() -> list[dict[str, Any]]:
    library = load_library()
    rows = []
    for chip in library.accelerators:
        system = library.usual_system(chip.id)
        rows.append(
            {
                "id": chip.id,
                "name": chip.name,
                "generation": chip.generation,
                "memory_capacity_bytes": _si(chip.memory_capacity, GIB),
                "memory_bandwidth_bytes_per_s": _si(chip.memory_bandwidth, GB),
                "peak_bf16_flops": _si(chip.peak_bf16, TERA),
                "peak_fp16_flops": _si(chip.peak_fp16, TERA),
                "peak_fp8_flops": _si(chip.peak_fp8, TERA),
                "peak_fp4_flops": _si(chip.peak_fp4, TERA),
                "system": system.id,
                "accelerators": system.accelerators.value,
                "topology": system.topology,
                "link_bandwidth_bytes_per_s": _si(system.link_bandwidth, GB),
            }
        )
    return rows


def _accelerator_or_system(name: str) -> dict[str, Any]:
    """An accelerator with its usual system and its prices, or a system.

    By id, or id@version in any version there has been.
    """
    identifier, _, version = name.partition("@")
    library = load_library()
    systems = {system.id: system for system in library.systems}
    chips = {chip.id: chip for chip in library.accelerators}
    if identifier not in chips and identifier not in systems:
        called = {item.id: item.name for item in library.systems} | {
            item.id: item.name for item in library.accelerators
        }
        try:
            identifier = library.accelerator(identifier).id
        except InputError:
            identifier = find_named("accelerator or system", identifier, called)
        name = f"{identifier}@{version}" if version else identifier
    folder = "accelerators" if identifier in chips else "systems"
    if version:
        library = load_library((f"{folder}/{name}",))
    if folder == "systems":
        system = library.system(identifier)
        own = system != alone(
            library.accelerator(system.accelerator)
        )  # such a one has no file and goes with its accelerator
        return {
            "id": identifier,
            "version": system.version,
            "versions": shelf(folder).versions(identifier) if own else [system.version],
            "system": system.model_dump(mode="json"),
        }
    chip, system, price = (
        library.accelerator(identifier),
        library.usual_system(identifier),
        library.price(identifier),
    )
    return {
        "id": identifier,
        "version": chip.version,
        "versions": shelf(folder).versions(identifier),
        "other_systems": [
            other.id for other in library.systems if other.accelerator == identifier and other.id != system.id
        ],
        "accelerator": chip.model_dump(mode="json"),
        "system": system.model_dump(mode="json"),
        "prices": price.model_dump(mode="json") if price else None,
    }


def _profiles() -> list[dict[str, Any]]:
    return [
        {
            "id": profile.id,
            "key": profile.key,
            "level": f"{profile.level.number}: {profile.level.label}",
            "version": profile.version,
            "factors": len(profile.factors),
        }
        for profile in load_library().efficiency
    ]


def _profile(name: str) -> dict[str, Any]:
    profile = _efficiency(name)
    entries = shelf("efficiency")
    return {
        "id": profile.id,
        "key": profile.key,
        "versions": entries.versions(profile.id) if profile.id in entries.ids else [profile.version],
    } | profile.model_dump(mode="json", exclude_none=True)


def _si(figure: ProfileFact | None, scale: int) -> float | None:
    return None if figure is None or figure.value is None else figure.value * scale


_LISTINGS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "models": _models,
    "hardware": _hardware,
    "profiles": _profiles,
}
_ENTRIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "models": _model,
    "hardware": _accelerator_or_system,
    "profiles": _profile,
}
_DIFFERENCES: dict[str, Callable[[str, str], list[dict[str, Any]]]] = {
    "models": _model_differences,
    "hardware": _hardware_differences,
    "profiles": _profile_differences,
}
