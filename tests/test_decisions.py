"""What a choice by estimates costs, as `.ci/decision_quality.py` reads it from measured curves."""

from __future__ import annotations

import numpy as np
import pytest
from decision_quality import LEVELS, PLANS, Curve, _choices


def curve(factor: float, low: float = 10, high: float = 100) -> Curve:
    """Throughput falls with the speed; points in any order."""
    speed = np.array([high, low, 40.0])
    return Curve.of(speed, factor * 1000 / speed)


def test_a_curve_is_read_between_its_points_alone() -> None:
    of = curve(1)
    assert np.exp(of.at(np.log(20))) == pytest.approx(50)
    assert np.isnan(of.at(np.log(9))) and np.isnan(of.at(np.log(101)))
    assert np.exp(of.at_least(np.log(5))) == pytest.approx(100)
    assert np.exp(of.at_least(np.log(20))) == pytest.approx(50) and np.isnan(of.at_least(np.log(101)))


def test_only_measured_curves_decide_the_loss() -> None:
    """The estimates choose the second best; whatever they promise, it loses a tenth."""
    measured = {f"plan {place}": 1 - place / 10 for place in range(PLANS)}
    estimated = {"plan 1": 50.0}
    curves = {plan: (curve(factor), curve(estimated.get(plan, 1))) for plan, factor in measured.items()}
    found = [*_choices("llama-3.3-70b of a case", curves)]
    assert [row["loss"] for row in found] == pytest.approx([0.1] * LEVELS)
    assert {(row["chosen"], row["best"], row["plans"]) for row in found} == {("plan 1", "plan 0", PLANS)}
    assert [row["drawn"] for row in found] == pytest.approx([0.15] * LEVELS)


def test_plans_are_compared_where_enough_were_measured() -> None:
    curves = {f"plan {place}": (curve(1, 10, 50 + place), curve(1)) for place in range(PLANS)}
    assert all(10 <= row["speed"] <= 50.1 for row in _choices("llama-3.3-70b", curves))
    del curves["plan 0"]
    assert not [*_choices("llama-3.3-70b", curves)]
