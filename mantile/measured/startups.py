"""Start-up figures of servers, read as scenarios: what an engine prints of its memory before the first
request.

A table has one server a row, with columns framework, version, model, quantisation, accelerator,
weights_gib_per_gpu, kv_gib_per_gpu, kv_tokens, activation_gib, oom and others; sizes in GiB per accelerator.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from mantile.ir.build import build_ir
from mantile.library.clock import Clock
from mantile.library.documents import read_text
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, parse_scenario
from mantile.measured.numbers import require_numbers, whole
from mantile.measured.runs import RejectedRun
from mantile.measured.spellings import find_accelerator, find_model
from mantile.measured.startup_defaults import accounting, share_of_memory, steps_and_requests
from mantile.measured.startup_words import (
    cache_layout,
    cache_type,
    generation_of,
    same_shapes,
    weight_types,
)
from mantile.measured.tables import table_rows

NEEDED = frozenset({"framework", "model", "quantisation", "weights_gib_per_gpu", "kv_tokens", "oom"})
"""Columns by which a table of start-up figures is known."""

GIB = 2.0**30
STAND_IN = "h100-sxm"
"""An accelerator for servers whose own is not in the library: weights and bytes of a token do not depend on
it."""
_LENGTH, _REQUESTS = 8192, 256  # where a table does not say them
_ON_CPU = re.compile(r"(layers|experts|weights|KV) on CPU|a further|split unevenly")
"""Notes of rows that do not have all of the model on their accelerators."""
_TOLD = re.compile(r"max-total-tokens set|took a further|another process held|title, rounded")
"""Notes of rows whose room is not what the memory alone leaves."""
_PARTS = ("kv_gib_per_gpu", "activation_gib", "non_torch_gib", "graph_gib")


@dataclass(frozen=True)
class StartUp:
    """A server as it started.

    Args:
        id: of the row.
        scenario: requests of the longest length that the server takes.
        framework, version: as the table names them; `generation` is the version without its last parts.
        measured: by name, in bytes per accelerator, or tokens of a rank.
        outgrown: whether it ran out of memory, or refused its length; None where nothing is known of it.
        chip_known: whether the accelerator and its memory are known; without it room and verdict are not.
        figure_of: the id that predicts a metric, where it is another than usual.
        assumptions: what reading the row took for granted.
    """

    id: str
    scenario: Scenario
    framework: str
    version: str
    generation: str
    measured: Mapping[str, float]
    outgrown: bool | None
    chip_known: bool
    figure_of: Mapping[str, str]
    source: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class StartUps:
    """The servers of a file, and the rows that could not be read as one."""

    servers: tuple[StartUp, ...]
    rejected: tuple[RejectedRun, ...]


def is_startup_table(path: Path) -> bool:
    """Whether a file is a table of start-up figures, by its columns."""
    if path.suffix.lower() != ".csv":
        return False
    try:
        return set(next(csv.reader(StringIO(read_text(path))), [])) >= NEEDED
    except csv.Error:
        return False  # whoever reads it says so


def load_startups(path: Path) -> StartUps:
    """Read a table of start-up figures.

    Args:
        path: a .csv file. A model that we do not ship is read from a config beside the table, as
            configs*/ORGANISATION--NAME.json or configs*/ORGANISATION--NAME/config.json, where there is one.

    Returns:
        The servers in the order of the file, sizes in bytes, and the rows that were set aside.

    Raises:
        InputError: naming the file, if no row is a server.
    """
    servers: list[StartUp] = []
    rejected: list[RejectedRun] = []
    with Clock(str(path)) as clock:
        rows = list(table_rows(path, clock))
    for number, row in enumerate(rows, 1):
        name = row.get("id") or f"row {number}"
        try:
            servers.append(read_startup(row, name, path.parent))
        except InputError as error:
            rejected.append(RejectedRun(name, str(error).splitlines()[0]))
    if not servers:
        reason = f"; the first: {rejected[0].id}: {rejected[0].reason}" if rejected else ""
        raise InputError(f"{path}: no row is a server that started{reason}")
    return StartUps(tuple(servers), tuple(rejected))


def read_startup(row: Mapping[str, str], name: str, folder: Path) -> StartUp:
    """A row as a server.

    Raises:
        InputError: for a model or a format that is not known, and a value that is no number.
    """
    require_numbers(row)
    notes: list[str] = []
    framework = load_library().framework(row["framework"]).id
    model = _model(row["model"], folder, notes)
    chip = _chip(row, notes)
    fields: dict[str, Any] = {
        "model": model,
        "framework": framework,
        **chip.fields,
        **_plan(row, framework, model),
        **_load(row, framework, notes),
        **weight_types(row["quantisation"], framework, model, notes),
        **cache_type(row.get("kv_dtype", ""), notes),
        **_layout(row, framework, model),
    }
    overrides = [*chip.overrides, *_share(row, framework), *accounting(row, framework)]
    return StartUp(
        id=name,
        scenario=parse_scenario({**fields, "overrides": overrides}, name),
        framework=framework,
        version=row.get("version", ""),
        generation=generation_of(framework, row.get("version", "")),
        measured=_measured(row, framework),
        outgrown={"yes": True, "no": False}.get(row["oom"]),
        chip_known=chip.known,
        figure_of={}
        if row.get("non_torch_gib") or framework == "mlx"
        else {"peak_memory": "startup.buffers"},
        source=row.get("source", ""),
        assumptions=tuple(notes),
    )


def _layout(row: Mapping[str, str], framework: str, model: str) -> dict[str, str]:
    """What the release keeps of windows and latents, of a model that has them."""
    chosen = cache_layout(framework, row.get("version", ""), row.get("source", ""))
    return (
        {} if chosen == "default" or not build_ir(load_model(model)).saves_cache else {"cache_policy": chosen}
    )


def _share(row: Mapping[str, str], framework: str) -> list[Mapping[str, Any]]:
    """The share of memory that the server was told, or that its release takes."""
    ranks = whole(row.get("tp"))
    stated = row.get("memory_fraction") or ""
    share = float(stated) if stated else share_of_memory(framework, row.get("version", ""), ranks)
    if share is None:
        return []
    reason = "as the server was told" if stated else "what the release takes unless it is told"
    return [{"id": "efficiency.memory_usable", "value": max(share, 0.05), "reason": reason}]


def _model(name: str, folder: Path, notes: list[str]) -> str:
    """Our id of a model, or the path of its config beside the table."""
    title = same_shapes(name, notes)
    try:
        found = find_model(title)
    except InputError:
        config = _config(title, folder)
        if config is None:
            raise
        return str(config)
    if found.granted and title == name:
        notes.append(found.granted)
    return found.id


def _config(name: str, folder: Path) -> Path | None:
    asked = name.rpartition("/")[2].lower()
    for path in sorted((*folder.glob("configs*/*.json"), *folder.glob("configs*/*/config.json"))):
        called = path.parent.name if path.name == "config.json" else path.stem
        if called.rpartition("--")[2].lower() == asked:
            return path
    return None


_SAME_MEMORY = {
    "a10g": "a10",
    "gb10": "dgx-spark-gb10",
    "h800": "h100-sxm",
    "a800-80gb-sxm": "a100-80gb-sxm",
    "rtx 3090 ti": "rtx-3090",
}
"""Accelerators with the memory of one in the library, where only memory counts."""


@dataclass(frozen=True)
class _Chip:
    """The accelerator of a row as fields of a scenario; a memory that the log prints replaces ours."""

    fields: Mapping[str, Any]
    overrides: tuple[Mapping[str, Any], ...]
    known: bool


def _chip(row: Mapping[str, str], notes: list[str]) -> _Chip:
    stated = row.get("memory_gib_total") or ""
    elsewhere = bool(_ON_CPU.search(row.get("notes", "")))
    overrides: list[Mapping[str, Any]] = []
    try:
        named = row["accelerator"].lower()
        accelerator, known = find_accelerator(_SAME_MEMORY.get(named, named)).id, True
        if named in _SAME_MEMORY:
            notes.append(f"accelerator {row['accelerator']}: {accelerator} has the same memory")
    except InputError:
        accelerator, known = STAND_IN, bool(stated)
        size = float(stated) if stated else 1024.0
        notes.append(f"accelerator {row['accelerator'] or 'not named'}: {STAND_IN} stands in for it")
        overrides.append(_override("hardware.memory_capacity", size))
    if stated:
        overrides.append(_override("hardware.memory_visible", float(stated)))
    return _Chip({"accelerator": accelerator}, tuple(overrides), known and not elsewhere)


def _override(identifier: str, gib: float) -> dict[str, Any]:
    return {"id": identifier, "value": gib, "reason": "as the log prints it"}


def _plan(row: Mapping[str, str], framework: str, model: str) -> dict[str, int]:
    """Ranks of the server; data-parallel groups of SGLang within TP share the experts."""
    tp, pp, dp, ep = (whole(row.get(name)) for name in ("tp", "pp", "dp", "ep"))
    if dp > 1 and framework == "sglang":
        return {"tp": max(1, tp // dp), "attention_dp": dp, "pp": pp, "ep": max(ep, 1)}
    return {"tp": tp, "pp": pp, "dp": dp, "ep": ep}


def _load(row: Mapping[str, str], framework: str, notes: list[str]) -> dict[str, Any]:
    """One request of the longest length for each that the server takes at once."""
    longest = whole(row.get("max_model_len"), 0)
    if not longest:
        longest = whole(row.get("kv_tokens"), 0) or _LENGTH
        longest = min(longest, _LENGTH)
        notes.append(f"longest request not stated: {longest} tokens")
    slots = row["framework"] in ("llama.cpp", "mlx")
    requests = whole(row.get("max_seqs"), 1 if slots else _REQUESTS)
    if slots and requests > 1:
        longest //= requests  # llama.cpp divides its context among slots
    fields: dict[str, Any] = {
        "input_tokens": max(1, longest - 1),
        "output_tokens": 1,
        "concurrency": requests,
        **steps_and_requests(framework, row.get("version", ""), longest),
    }
    if row.get("token_budget"):
        fields["token_budget"] = whole(row["token_budget"])
    if row.get("max_seqs"):
        fields["max_requests"] = requests
    return fields


_MOST_UNLIKE = 1.25


def _unlike(notes: str) -> bool:
    """Whether accelerators hold shares that only their owner knows: buffers that differ by a quarter."""
    buffers = re.search(r"GPU model buffers ([\d. +]+) MiB", notes)
    sizes = [float(size) for size in buffers.group(1).split("+")] if buffers else []
    return "unevenly" in notes or (len(sizes) > 1 and max(sizes) > _MOST_UNLIKE * min(sizes))


def _measured(row: Mapping[str, str], framework: str) -> dict[str, float]:
    """What the log says, by the name of the metric."""
    sizes = {name: float(row[name]) * GIB for name in ("weights_gib_per_gpu", *_PARTS) if row.get(name)}
    found: dict[str, float] = {}
    if "weights_gib_per_gpu" in sizes and not _unlike(row.get("notes", "")):
        found["weights"] = sizes["weights_gib_per_gpu"]
    if "kv_gib_per_gpu" in sizes:
        found["kv_cache"] = sizes["kv_gib_per_gpu"]
    if "activation_gib" in sizes:
        found["activations"] = sizes["activation_gib"]
    asked = framework in ("llama.cpp", "mlx", "exo")
    told = _TOLD.search(row.get("notes", ""))
    if row.get("kv_tokens") and not asked and not told:
        found["kv_tokens"] = float(row["kv_tokens"])
    if {"weights_gib_per_gpu", "kv_gib_per_gpu", "activation_gib"} <= set(sizes):
        found["peak_memory"] = sum(sizes.values())
    peak = re.search(r"peak memory [\d.]+ GB \(1e9\) = ([\d.]+) GiB", row.get("notes", ""))
    if peak:
        found["peak_memory"] = float(peak.group(1)) * GIB
    return found
