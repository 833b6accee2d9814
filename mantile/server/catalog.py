"""What the library holds, as lists: hardware, models, runtimes, number formats."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mantile.estimates.catalogue import GB, listing
from mantile.library import machines
from mantile.library.ids import configurations
from mantile.library.profiles import SCHEDULERS, Framework, System, load_library


@cache
def hardware() -> dict[str, Any]:
    """Configurations: an accelerator by itself, or a system with all that one of its domains holds."""
    library = load_library()
    chips = {row["id"]: row for row in listing("hardware")}
    named = configurations()
    details: dict[str, Any] = {}
    for identifier, row in chips.items():
        chip = library.accelerator(identifier)
        price = library.price(identifier)
        cloud = price.cloud.value if price and price.cloud else None
        details[identifier] = row | {
            "kind": "accelerator",
            "vendor": chip.vendor,
            "accelerator": identifier,
            "accelerators": 1,
            "in_a_system": row["accelerators"],
            "usd_per_hour_cloud": cloud,
            "source": chip.memory_capacity.source,
        }
    for system in library.systems:
        if system.id not in details:
            details[system.id] = _system(system) | {"vendor": library.accelerator(system.accelerator).vendor}
    for identifier, row in details.items():
        row["aliases"] = [name for name, ids in named.items() if ids[0] == identifier]
    return {"configs": [*details], "details": details}


def _system(system: System) -> dict[str, Any]:
    def si(name: str) -> float | None:
        figure = getattr(system, name)
        return None if figure is None or figure.value is None else figure.value * GB

    return {
        "id": system.id,
        "name": system.name,
        "kind": "system",
        "system": system.id,
        "accelerator": system.accelerator,
        "accelerators": system.accelerators.value,
        "topology": system.topology,
        "link_bandwidth_bytes_per_s": si("link_bandwidth"),
        "scale_out_bandwidth_bytes_per_s": si("scale_out_bandwidth"),
        "domains": None if system.domains is None else system.domains.value,
        "source": system.link_bandwidth.source,
    }


@cache
def models() -> dict[str, Any]:
    """The models that we ship."""
    return {"models": [{"model_id": row["id"], **row} for row in listing("models")]}


def runtimes(*folders: Path) -> dict[str, Any]:
    """Serving frameworks: releases, what runs on them, their schedulers and the names of their back ends.

    Behind them engines in a version, as records.
    """
    library, told = load_library(), [*_frameworks()]
    for record in machines.runtimes(*folders).values():
        framework = library.framework(record.engine)
        own = {
            "runtime_id": record.runtime_id,
            "framework": framework.id,
            "version": record.version,
            "cuda": record.cuda and [record.cuda],
            "source": record.source,
        }
        stated = {
            name: value
            for name in ("kernel_flags", "supported_formats", "scheduler")
            if (value := getattr(record, name))
        }
        told.append(_runtime(framework) | own | stated)
    return {"runtimes": told}


@cache
def _frameworks() -> tuple[dict[str, Any], ...]:
    return tuple(_runtime(framework) for framework in load_library().frameworks)


def hosts(*folders: Path) -> dict[str, Any]:
    """Hosts, as they were shipped or sent."""
    return {"hosts": [one.model_dump(mode="json") for one in machines.hosts(*folders).values()]}


def _runtime(framework: Framework) -> dict[str, Any]:
    settings = {one.field: list(one.names) for one in framework.settings}
    statements = [one.model_dump(mode="json", exclude_none=True) for one in framework.support]
    return {
        "runtime_id": framework.id,
        "name": framework.name,
        "version": framework.release or None,
        "former": framework.former,
        "vendors": list(framework.vendors),
        "backend": settings.get("attention_backend"),
        "cuda": [one["needs"] for one in statements if "CUDA" in one.get("needs", "")] or None,
        "kernel_flags": settings,
        "supported_formats": _formats(framework),
        "scheduler": {"kind": framework.scheduler, "meaning": SCHEDULERS[framework.scheduler]},
        "kv_admission": framework.kv_admission,
        "multiplies": list(framework.multiplies),
        "support": statements,
        "source": framework.source,
    }


def _formats(framework: Framework) -> list[str]:
    """Families of formats that its documents say it runs, on some chips at least; `support` says on which."""
    runs = (one for one in framework.support if one.says == "runs")
    return [*dict.fromkeys(name for one in runs for name in one.formats)]


@cache
def quantizations() -> dict[str, Any]:
    """Number formats."""
    rows = [one.model_dump(mode="json", exclude_none=True) for one in load_library().datatypes]
    return {"quantizations": [{"quantization_id": row["id"], **row} for row in rows]}
