"""Conditions on measured runs: field=value, as in `mantile reconcile --where`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from mantile.library.errors import InputError, unknown
from mantile.library.models import load_model
from mantile.library.scenario_fields import SCENARIO_FIELDS, field_name
from mantile.measured.runs import Run

ALIASES = {"system": "accelerator", "precision": "weights_dtype"}  # columns of published tables


def mode_of(run: Run) -> str:
    """Whether a run is aggregated or disaggregated; runs in which tokens are drafted stand apart."""
    if run.speculation not in (None, "none"):
        return "drafts"
    return "aggregated" if run.decode is None else "disaggregated"


def select_runs(runs: Sequence[Run], where: Iterable[str], source: str = "") -> list[Run]:
    """The runs for which all conditions hold.

    Args:
        runs: to choose from.
        where: conditions field=value or field!=value, several values with commas. Fields are those of a run,
            and mode.
        source: what the runs are called in errors.

    Raises:
        InputError: for a condition on a field there is not, or if no run is left.
    """
    conditions = tuple(where)
    selected = [run for run in runs if all(_holds(run, condition) for condition in conditions)]
    if not selected:
        raise InputError(f"{source or 'measurements'}: no run with {' '.join(conditions)}")
    return selected


def _holds(run: Run, condition: str) -> bool:
    name, equals, values = condition.partition("=")
    if not equals:
        raise InputError(f"--where {condition}: expected field=value")
    negated = name.endswith("!")
    given = name.rstrip("!")
    field = ALIASES.get(given) or field_name(given)
    if field not in (*Run.model_fields, "mode"):
        raise InputError(
            f"--where {condition}: {unknown('field', given, [*Run.field_names(), *ALIASES, 'mode'])}"
        )
    return (str(_value(run, field)) in values.split(",")) != negated


def _value(run: Run, field: str) -> Any:
    """A field of a run, or its default where the run leaves it out."""
    if field == "mode":
        return mode_of(run)
    value = getattr(run, field)
    if value is not None:
        return value
    if field == "weights_dtype":
        return _stored_format(run.model)
    declared = SCENARIO_FIELDS.get(field)
    return declared.default if declared is not None and not declared.otherwise else None


@cache
def _stored_format(model: str) -> Any:
    """Format of the weights of a checkpoint; None for a model that does not exist, which is said where the
    run is matched."""
    try:
        return load_model(model).architecture.choices["weights_dtype"].value
    except InputError:
        return None
