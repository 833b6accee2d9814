"""`tp: auto`: fields of a scenario that shall be chosen, solved before the scenario is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mantile.library.errors import InputError
from mantile.library.models import caches, load_model
from mantile.library.profiles import load_library
from mantile.library.scenario import merge_fields
from mantile.library.scenario_fields import SCENARIO_FIELDS, field_name
from mantile.search.optimize import Optimum, solve
from mantile.search.question import PLANNED, ask, workload_of
from mantile.search.space import AUTO, CONTEXT, DEGREES, published

_FIXED = (*DEGREES, "dp")
_OBJECTIVES = ("cost", "throughput-per-accelerator")  # the second where nobody knows a price
_MOST = 8  # accelerators


def asks(data: Mapping[str, Any]) -> bool:
    """Whether a scenario leaves a field to be chosen."""
    return any(value == AUTO for value in data.values()) or any(
        isinstance(case, Mapping) and any(value == AUTO for value in case.values())
        for case in (*(data.get("variants") or ()), data.get("decode"))
    )


def chosen(
    data: Mapping[str, Any],
    name: str,
    step: Callable[[str], None] = lambda words: None,
    most: int = _MOST,
) -> tuple[dict[str, Any], Optimum]:
    """A scenario with what was left to be chosen, the cheapest plan on so many accelerators, and why.

    Where nobody knows a price, the plan with the most output tokens per second and accelerator. Degrees that
    are neither stated nor left to be chosen are 1.

    Args:
        data: fields of a scenario, some of them auto.
        name: stands for the scenario in errors.
        most: accelerators.

    Raises:
        InputError: for auto in a field that is no part of a plan, or in variants; where no plan can be.
    """
    fields = merge_fields(data, {}, name)
    free = {key for key, value in fields.items() if value == AUTO}
    can = (*PLANNED, CONTEXT)
    wrong = next((key for key in free if field_name(key) not in can), None)
    if wrong is not None:
        raise InputError(f"{name}: {wrong}: auto: expected a value; auto holds for {', '.join(can)}")
    if asks({key: value for key, value in fields.items() if key not in free}):
        raise InputError(f"{name}: auto stands in a variant or in decode: expected it in the base scenario")
    stated = {key: fields[key] for key in PLANNED if key in fields and key not in free}
    stated |= {degree: 1 for degree in _FIXED if degree not in fields}
    workload = {key: value for key, value in workload_of(fields, name).items() if key not in free}
    over = {CONTEXT: (AUTO,)} if CONTEXT in free else {}
    if not any(workload.get(load) for load in ("concurrency", "request_rate", "sessions")):
        raise InputError(f"{name}: concurrency is missing: expected a load where a plan shall be chosen")
    if "accelerator" not in stated and "accelerator" not in free:
        raise InputError(f"{name}: accelerator is missing: expected an id, or auto")
    stated |= {key: value for key, value in _usual(fields, stated).items() if key not in {*stated, *free}}
    for objective in _OBJECTIVES:
        found = solve(ask(workload | stated, objective, [], most, over, name=name, host_memory=0), step)
        if found.has_winner:
            break
    winner = found.scenario.variants[0].model_dump(exclude_none=True)
    plan = {key: value for key, value in winner.items() if key in can}
    return fields | {key: plan[key] for key in free if key in plan}, found


def _usual(fields: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, str]:
    """What a scenario has by default where it does not say it: framework and data types."""
    model, library = load_model(str(fields["model"])), load_library(tuple(fields.get("profiles", ())))
    framework = str(stated.get("framework") or SCENARIO_FIELDS["framework"].default)
    [weights, *_] = published(model, library.framework(framework))
    return {"framework": framework, "kv_dtype": caches(model)[0], "weights_dtype": weights}
