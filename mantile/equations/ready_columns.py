"""Columns that stand ready for a further scenario: each counts once somebody types a name."""

from __future__ import annotations

from mantile.equations.display import in_scenario, sum_across
from mantile.graph.quantity import Input, Node, Quantity, choose, equal, where

NAME = Input(
    "scenario.name", "Name of the scenario", "1", "named", "a column without one does not count", fixed=True
)
"""The heading of a column; empty in a ready one until somebody types there."""
COUNTS = Quantity(
    "scenario.counts", "The scenario counts", "flag", where(equal(NAME, ""), 0, 1), "1: it has a name"
)
READY = "ready"
"""What a column is called until it has a name."""


def counted(scenarios: int) -> Quantity:
    """How many scenarios have a name."""
    words = "scenarios that count"
    return Quantity("scenario.counted", "Scenarios", "number", sum_across(COUNTS, scenarios, words))


def name_of(scenario: int, otherwise: str = READY) -> Node:
    """The name of a ready column, or what is said where it has none."""
    return choose(1 + in_scenario(COUNTS, scenario), otherwise, in_scenario(NAME, scenario))


def where_it_counts(count: Node) -> Node:
    """A count of a scenario; 0 where the scenario has no name."""
    return count * COUNTS
