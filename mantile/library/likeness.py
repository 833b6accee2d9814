"""An accelerator of one's own from a few figures of its spec sheet: the rest is as another has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.profile_facts import OWN_PRICE
from mantile.library.profiles import Library, data_folder, with_accelerator

PEAKS = ("peak_bf16", "peak_fp16", "peak_fp8", "peak_fp6", "peak_fp4", "peak_int8", "peak_fp32", "peak_tf32")
_STATED = "spec sheet of the chip, as entered by hand"


def write_likeness(
    identifier: str,
    like: str,
    stated: Mapping[str, float],
    price: float | None,
    folder: Path,
    library: Library,
    today: date,
) -> list[Path]:
    """Write an accelerator, its system and its price; no file is replaced.

    Peaks that are not stated stand to those of the other chip as the stated ones do.

    Args:
        like: the chip that the rest is taken from.
        stated: figures by field, in the unit of the field; link_bandwidth is of the system.
        price: of one accelerator, in USD.

    Returns:
        the files: accelerator, system, and prices where one is stated.

    Raises:
        InputError: for an id that cannot be one or is taken, or files that are there.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", identifier):
        raise InputError(
            f"{identifier!r}: expected an id of lower-case letters, digits, . and -, such as my-chip"
        )
    if (data_folder("profiles") / "accelerators" / f"{identifier}.yaml").exists():
        raise InputError(
            f"{identifier} is in the library, see `mantile list hardware show {identifier}`; choose another "
            "id"
        )
    other = library.accelerator(like)
    system = library.usual_system(other.id)
    day = today.isoformat()
    given = [
        stated[name] / fact.value
        for name in PEAKS
        if name in stated and (fact := getattr(other, name, None)) and fact.value
    ]
    ratio = given[0] if given else 1.0

    def figure(name: str, held: Mapping[str, Any]) -> dict[str, Any]:
        """A figure as it is stated, or as the other chip has it."""
        own = {"unit": held["unit"], "date": day, "status": "assumed"}
        if name in stated:
            return {
                "value": stated[name],
                **own,
                "source": _STATED,
                "confidence": "medium",
                "note": "not checked",
            }
        value = held["value"]
        scaled = name in PEAKS and value is not None and ratio != 1
        note = f"not stated: as {other.id}{', in the ratio of the peak that is stated' if scaled else ''}"
        if value is None and held.get("note"):
            note = f"{note}; {held['note']}"
        return {
            "value": value * ratio if scaled else value,
            **own,
            "source": f"{other.id} of the library",
            "confidence": "low",
            "note": note,
        }

    def of(data: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: figure(name, value) if isinstance(value, dict) and "unit" in value else value
            for name, value in data.items()
            if value not in (None, "", [], ())
        }

    chip = of(other.model_dump(mode="json", exclude_none=False))
    for name in set(stated) - set(chip) - {"link_bandwidth"}:
        raise InputError(f"{identifier}: {name}: {other.id} has no such figure; choose another --like")
    chip |= {"id": identifier, "name": identifier, "system": f"{identifier}-system", "version": "1"}
    box = of(system.model_dump(mode="json", exclude_none=False))
    box |= {
        "id": f"{identifier}-system",
        "name": f"Accelerators {identifier}, linked as {system.id}",
        "accelerator": identifier,
        "version": "1",
    }
    files = {folder / f"{identifier}.yaml": chip, folder / f"{identifier}-system.yaml": box}
    if price is not None:
        bought = {
            "value": price,
            "unit": "USD",
            "provider": OWN_PRICE,  # as one typed in a workbook: how old it is is not asked
            "region": None,
            "term": "bought",
            "source": _STATED,
        }
        bought |= {"date": day, "status": "assumed", "confidence": "medium"}
        files[folder / f"{identifier}-prices.yaml"] = {"id": identifier, "version": "1", "purchase": bought}
    taken = next((path for path in files if path.exists()), None)
    if taken is not None:
        raise InputError(f"{taken}: is there already; choose another id or folder")
    for path, data in files.items():
        with replacing(path, overwrite=False) as temporary:
            temporary.write_text(
                f"# {identifier}: stated figures and those of {other.id}; see the notes.\n"
                + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000),
                encoding="utf-8",
            )
    try:
        with_accelerator(library, folder / f"{identifier}.yaml")
    except InputError:
        for path in files:
            path.unlink(missing_ok=True)
        raise
    return [*files]
