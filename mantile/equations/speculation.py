"""Tokens of a request in a decode step, as other equations ask for them. They stand in speculation.eq.

What drafting costs stands in draft.eq.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from mantile.equations.constant import TOKENS_PER_STEP
from mantile.equations.tables import Equations
from mantile.graph.quantity import Node, Quantity, defined
from mantile.library.scenario_fields import SCENARIO_FIELDS

MTP = "mtp"


@dataclass(frozen=True)
class Speculation:
    """Tokens of a request in a decode step.

    Args:
        on: 1 where anything is drafted.
        drafts: tokens that are drafted; `checked` are these and the one before; `emitted` what a step gives.
        by_layer, by_model: 1 where a layer like the model's own drafts, or another model.
        check_time: seconds by which a step is longer for each request whose drafts it checks.
        length: tokens that a step gives, until somebody states how many.
        assumed: 1 where nobody does and a layer drafts that was trained for it; `unknown` for other drafters.
    """

    on: Quantity
    drafts: Quantity
    checked: Quantity
    emitted: Quantity
    by_layer: Quantity
    by_model: Quantity
    check_time: Quantity
    length: Quantity
    assumed: Quantity
    unknown: Quantity


def emitted(speculation: Speculation | None) -> Node:
    """Tokens of a request that a decode step gives, on average."""
    return TOKENS_PER_STEP if speculation is None else speculation.emitted


def speculation(rows: Equations) -> Speculation | None:
    """Tokens of a step; None where no scenario speculates."""
    if "speculation" not in rows.features:
        return None
    rate = SCENARIO_FIELDS["acceptance_rate"].default
    assert isinstance(rate, float)
    rows.know(
        defined(
            "speculation.published_rate", "Acceptance rate by default", "1", rate, "published of one model"
        )
    )
    return Speculation(**{field.name: rows[f"speculation.{field.name}"] for field in fields(Speculation)})
