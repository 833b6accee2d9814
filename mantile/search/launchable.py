"""Which plans `launch` accepts, and which weights nobody publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mantile.estimates.launch import spread
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.launch_line import says
from mantile.library.launch_server import cluster
from mantile.library.launch_table import LaunchTable, launch_tables
from mantile.library.profiles import CHECKPOINT, Library
from mantile.library.scenario_fields import DEFAULT_SYSTEM
from mantile.search.evaluate import Array, unique
from mantile.search.space import DEGREES, FFN_TP, OFFLOADED, TOGETHER, published

NO_LAUNCH_LINE = "NO_LAUNCH_LINE"
"""The code of a plan that `launch` refuses."""
_SIXTEEN_BIT = ("bf16", "fp16")


def unpublished(plan: Mapping[str, Any], model: Model, library: Library) -> str:
    """What is to be said of the weights of a plan that nobody publishes; empty of others.

    Example:
        plan = {"weights_dtype": "mxfp4", "framework": "vllm", "accelerator": "b200-sxm"}
        unpublished(plan, model, library)
        # "mxfp4: no checkpoint of DeepSeek-R1 for B200 SXM and vLLM is known"
    """
    framework = library.framework(str(plan["framework"]))
    chip = library.accelerator(str(plan["accelerator"]))
    weights = str(plan["weights_dtype"])
    if framework.weights != CHECKPOINT or weights in published(model, framework, chip):
        return ""
    told = f"{weights}: no checkpoint of {model.name} for {chip.name} and {framework.name} is known"
    table = launch_tables().get(framework.id)
    flag = None if table is None else table.of_fact("quantization")
    own = model.architecture.choices["weights_dtype"].value
    if flag is not None and own in _SIXTEEN_BIT and weights in flag.values.values():
        return f"{told}; {flag.name} makes it of {own} when the server starts"
    return told


def accepted(plans: pd.DataFrame, model: Model, library: Library) -> Array:
    """Whether `launch` has flags that say each plan, and documents that start it on its machines.

    A framework that `launch` does not start is in the plans because somebody named it: it is not judged.
    """
    tables, architecture = launch_tables(), model.architecture
    kept = np.ones(len(plans), bool)

    def require(names: list[str], holds: Callable[..., bool], rows: pd.DataFrame = plans) -> None:
        firsts, places = unique(rows, ["framework", *names])
        kinds = rows[["framework", *names]].iloc[firsts].itertuples(index=False, name=None)
        held = [name not in tables or holds(tables[name], *values) for name, *values in kinds]
        np.logical_and(kept, np.array(held, bool)[places], out=kept)

    def said(names: tuple[str, ...]) -> Callable[..., bool]:
        return lambda table, *values: says(table, dict(zip(names, values, strict=True)), architecture)

    require(["kv_dtype"], said(("kv_dtype",)))
    require([*OFFLOADED], said(OFFLOADED))
    for role in ("", DECODE) if f"{DECODE}tp" in plans else ("",):
        degrees = [f"{role}{name}" for name in DEGREES]
        require(degrees, said(DEGREES))
        if FFN_TP in plans:
            require([*degrees, FFN_TP], said((*DEGREES, FFN_TP)))
        require([*degrees, "machine"], _starts, plans.assign(machine=_machines(plans, role, library)))
    if "serving" in plans:
        require(["serving"], lambda table, serving: serving == TOGETHER or table.server.apart is not None)
    return kept


def _starts(table: LaunchTable, *values: int) -> bool:
    """Whether a document says how degrees are spread over machines; the last value is the size of one."""
    try:
        spread(table, dict(zip(DEGREES, values[:-1], strict=True)), values[-1])
    except InputError:
        return False
    return True


def _machines(plans: pd.DataFrame, role: str, library: Library) -> Array:
    """Accelerators of a machine of each plan."""
    chips, systems = plans[f"{role}accelerator"], plans["system"]
    if role:
        systems = systems.where(chips == plans["accelerator"], DEFAULT_SYSTEM)
    firsts, places = unique(pd.DataFrame({"chip": chips, "system": systems}), ["chip", "system"])
    sizes = []
    for chip, name in zip(chips.iloc[firsts], systems.iloc[firsts], strict=True):
        system = library.usual_system(chip) if name == DEFAULT_SYSTEM else library.system(name)
        sizes.append(cluster().on_a_machine(system.id, int(system.accelerators.value or 1)))
    return np.array(sizes, int)[places]
