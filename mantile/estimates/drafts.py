"""Drafts as people state them: a draft model by its name, an acceptance by position."""

from __future__ import annotations

from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.scenario import Case, Scenario

DRAFT_FIGURES = ("draft_parameters", "draft_layers", "draft_kv_channels")
_BILLION, _BYTES = 1e9, 2  # figures of caches are stated at 2 bytes per value


def with_drafts(scenario: Scenario, name: str) -> Scenario:
    """The scenario with the figures of each draft model, and the length of each acceptance by position.

    A figure that a column states stays.

    Args:
        name: stands for the scenario in errors.

    Raises:
        InputError: for a draft model that is not known.
    """
    variants = [_changes(case, f"{name}, variant {place}") for place, case in enumerate(scenario.variants, 1)]
    changed = scenario.model_copy(update=_changes(scenario, name))
    if not any(variants):
        return changed
    made = [case.model_copy(update=change) for case, change in zip(scenario.variants, variants, strict=True)]
    return changed.model_copy(update={"variants": tuple(made)})


def _changes(case: Case, where: str) -> dict[str, Any]:
    """The fields that follow from a draft model and an acceptance by position."""
    figures = _of_model(case, where) | _of_positions(case)
    return {field: figure for field, figure in figures.items() if getattr(case, field) is None}


def _of_model(case: Case, where: str) -> dict[str, Any]:
    if case.draft_model is None or all(getattr(case, field) is not None for field in DRAFT_FIGURES):
        return {}
    try:
        model = build_ir(load_model(case.draft_model))
    except InputError as error:
        raise InputError(f"{where}: draft_model: {error}") from None
    return {
        "draft_parameters": parameters(model)["active_without_input_embedding"] / _BILLION,
        "draft_layers": model.model.architecture.value("layers"),
        "draft_kv_channels": kv_bytes_per_token(model)["all_layers"] / _BYTES,
    }


def _of_positions(case: Case) -> dict[str, Any]:
    """Engines report how often each draft token was accepted: their sum, and the model's own."""
    if not case.acceptance_by_position:
        return {}
    shares = case.acceptance_by_position
    return {"draft_tokens": len(shares), "acceptance_length": 1 + sum(shares[: case.draft_tokens])}
