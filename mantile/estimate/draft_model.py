"""A draft model by its name: its size, layers and cache, as fields of the scenario that names it."""

from __future__ import annotations

from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.scenario import Case, Scenario

_FIELDS = ("draft_parameters", "draft_layers", "draft_kv_channels")
_BILLION, _BYTES = 1e9, 2  # figures of caches are stated at 2 bytes per value


def with_draft_models(scenario: Scenario, name: str) -> Scenario:
    """The scenario with the figures of each draft model it names; a figure that it states stays.

    Args:
        name: stands for the scenario in errors.

    Raises:
        InputError: for a model that is not known, or has no vocabulary of the size of the model's.
    """
    variants = [_changes(case, f"{name}, variant {place}") for place, case in enumerate(scenario.variants, 1)]
    changed = scenario.model_copy(update=_changes(scenario, name))
    if not any(variants):
        return changed
    made = [case.model_copy(update=change) for case, change in zip(scenario.variants, variants, strict=True)]
    return changed.model_copy(update={"variants": tuple(made)})


def _changes(case: Case, where: str) -> dict[str, Any]:
    """The figures of the draft model of a column that nobody states."""
    missing = [field for field in _FIELDS if getattr(case, field) is None]
    if case.draft_model is None or not missing:
        return {}
    try:
        model = build_ir(load_model(case.draft_model))
    except InputError as error:
        raise InputError(f"{where}: draft_model: {error}") from None
    figures = {
        "draft_parameters": parameters(model)["active_without_input_embedding"] / _BILLION,
        "draft_layers": model.model.architecture.value("layers"),
        "draft_kv_channels": kv_bytes_per_token(model)["all_layers"] / _BYTES,
    }
    return {field: figures[field] for field in missing}
