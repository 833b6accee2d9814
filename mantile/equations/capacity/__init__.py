"""Capacity and money: how many replicas a demand needs, and what it costs to buy, to rent, or to call an API.

Demand follows the hours of a day. Replicas carry its peak, with spares. Each year is a column of the life of
the purchase: cash out is negative, a purchase stands at the start of the year that needs it, all else at the
end of its year.
"""

from __future__ import annotations

from mantile.equations.capacity.demand import (
    cells_of,
    demand_of,
    demand_profile,
    profiles_of,
    rate_of,
    shares_of,
)
from mantile.equations.capacity.fixed import (
    DAY,
    DOLLAR,
    HOURLY,
    LITTLE,
    MILLION,
    NOTHING,
    NUMBERS,
    PROFILE,
    THOUSAND,
    WHOLE,
    YEAR,
)
from mantile.equations.capacity.found import NO_POINT, Capacity, Ranked, figures_of, point, shown
from mantile.equations.capacity.money import Money
from mantile.equations.cost import Cost
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.serving import Serving
from mantile.graph.quantity import Input, Node, Quantity, Section, as_node, where
from mantile.graph.rows import Rows
from mantile.library.capacity import CapacityAsked

__all__ = [
    "NO_POINT",
    "PROFILE",
    "Capacity",
    "Ranked",
    "capacity",
    "demand_profile",
    "figures_of",
    "point",
    "shown",
]


def capacity(
    asked: CapacityAsked,
    profile: Input,
    inputs: Workload,
    ranks: tuple[Ranks, Ranks],
    served: Serving,
    cost: Cost,
    possible: Quantity,
) -> Capacity:
    """The rows of Finance, on Calculation.

    Args:
        profile: the cell of the demand profile.
        ranks: of the workers that prefill, or do everything, and of those that decode.
        possible: 1 if the plan of the scenario can be.
    """
    cells = cells_of(asked)
    profiles = profiles_of(profile)
    shares = shares_of(asked, profiles)
    rows = Rows("capacity")
    units: Node = (
        inputs.dp / as_node(1)
        if ranks[0].disaggregated is None
        else where(ranks[0].disaggregated > 0, 1, inputs.dp)
    )
    units = rows(
        "units", "Replicas of the scenario", "replica", units, "with workers apart all of them are one"
    )
    rate, binds = rate_of(rows, units, inputs, served, possible, cells)
    one_replica = rows.section("One replica", "what the scenario sustains, and so what a replica carries")
    demand = demand_of(cells, shares, rate)
    money = Money(cells, units, inputs, ranks, served, cost, rate, demand, profile, shares, binds)
    return money.worked_out(
        (
            Section(
                "Demand and money",
                (
                    *cells.values(),
                    WHOLE,
                    DAY,
                    HOURLY,
                    YEAR,
                    THOUSAND,
                    MILLION,
                    DOLLAR,
                    NOTHING,
                    LITTLE,
                    *NUMBERS,
                ),
                "what is asked; typed on Capacity",
            ),
            *profiles.sections,
            Section("Demand by hour", shares, "share of the busiest hour; of the profile until typed over"),
            one_replica,
            *demand.sections,
        )
    )
