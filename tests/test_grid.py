"""The cost at other utilisations and prices: as if the scenario had been asked so."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Make

from mantile.estimates.estimate import Estimate
from mantile.graph.quantity import NOT_KNOWN

UTILISATIONS = (20, 40, 60, 80, 100)
SHAPES: dict[str, dict[str, Any]] = {
    "cloud": {},
    "owned, where electricity counts": {"price_basis": "owned", "utilisation": 0.37},
    "apart": {"decode": {"tp": 4, "accelerator": "h200-sxm"}, "price_basis": "owned"},
    "at a rate": {"request_rate": 2.0},
}


def cells(made: Estimate) -> dict[tuple[int, str], Any]:
    """The grid of the base scenario."""
    values, grid = made.values(), made.equations.rows.of("grid")
    return {
        (percent, price): values[grid[f"{price}.{percent}"]]
        for percent in UTILISATIONS
        for price in ("lower", "same", "higher")
    }


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_as_if_asked_so(name: str, make: Make) -> None:
    """Each cell is what an estimate at that utilisation says, and a price a fifth lower or higher of it."""
    grid = cells(make(**SHAPES[name]))
    assert len(grid) == 15
    for percent in UTILISATIONS:
        there = make(**SHAPES[name] | {"utilisation": percent / 100}).usd_per_million_output_tokens
        row = [grid[percent, price] for price in ("lower", "same", "higher")]
        assert row == pytest.approx([0.8 * there, there, 1.2 * there], rel=1e-12)


def test_the_utilisation_of_the_scenario_does_not_matter(make: Make) -> None:
    """The grid has its own; everything else moves it."""
    grid = cells(make())
    assert cells(make(utilisation=0.5)) == pytest.approx(grid)
    assert all(
        now < before for now, before in zip(cells(make(concurrency=64)).values(), grid.values(), strict=True)
    )


def test_it_knows_no_cost_where_there_is_none(make: Make) -> None:
    """Of a plan that cannot be, and without a price."""
    for made in (make(tp=1), make(accelerator="tpu7x", tp=8)):
        assert set(cells(made).values()) == {NOT_KNOWN}
