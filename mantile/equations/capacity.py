"""What is asked of capacity and money: cells of demand and prices, and the shapes of a day.

What follows from them stands in capacity.eq.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.tables import Equations
from mantile.equations.typed import Faults
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    as_node,
    defined,
    if_error,
    is_number,
    join,
    where,
)
from mantile.library.capacity import CAPACITY_FIELDS, OWN, PROFILES, CapacityAsked

PROFILE = "capacity.asked.profile"
"""The id of the cell of the demand profile."""
NO_POINT = Input(
    "capacity.no_point", "Where there is no point", "1", math.nan, status="defined", shared=True, fixed=True
)


@dataclass(frozen=True)
class DemandCells:
    """What is asked.

    Args:
        cells: by field; `profile` fills the shares of the hours.
        shapes: names of profiles, and the shape of a day of each.
    """

    profile: Input
    cells: Mapping[str, Input]
    shapes: tuple[Input, ...]
    shares: tuple[Input, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All of them."""
        return (*self.cells.values(), *self.shapes, *self.shares, self.profile)


def demand_cells(asked: CapacityAsked, rows: Equations) -> DemandCells:
    """The cells of a demand. An hour that nobody stated follows the profile."""
    names = (*PROFILES, OWN)
    shapes = [
        *(
            defined(f"capacity.profile.{number}", f"Profile {number}", "1", name, "of demand")
            for number, name in enumerate(names, 1)
        ),
        *(
            defined(
                f"capacity.profile.{number}.{hour}",
                f"{name.capitalize()}, at {hour} h",
                "1",
                share,
                "shape of a day, assumed 2026-11",
            )
            for number, (name, shares) in enumerate(PROFILES.items(), 1)
            for hour, share in enumerate(shares)
        ),
    ]
    return DemandCells(demand_profile(asked), _cells(asked), tuple(shapes), _shares(asked, rows))


def demand_profile(asked: CapacityAsked) -> Input:
    """The cell of the demand profile, which fills the shares of the hours."""
    stated = asked.profile != CapacityAsked.model_fields["profile"].default
    return Input(
        id=PROFILE,
        label="Demand profile",
        unit="1",
        value=asked.profile,
        note="fills the 24 shares of the hours, but for those typed over; own: the peak until typed",
        source="scenario" if stated else "assumed 2026-11: nobody stated it",
        status="given" if stated else "assumed",
        choices=(*PROFILES, OWN),
        shared=True,
    )


def _cells(asked: CapacityAsked) -> dict[str, Input]:
    return {
        name: Input(
            id=f"capacity.asked.{name}",
            label=field.label,
            unit=field.unit,
            value=asked.value(name),
            note=field.meaning,
            source="scenario" if getattr(asked, name) is not None else "assumed 2026-11: nobody stated it",
            status="given" if getattr(asked, name) is not None else "assumed",
            minimum=field.least,
            maximum=field.most,
            integer=field.kind is int,
            shared=True,
        )
        for name, field in CAPACITY_FIELDS.items()
    }


def _shares(asked: CapacityAsked, rows: Equations) -> tuple[Input, ...]:
    def share(hour: int, value: float) -> Input:
        return Input(
            f"capacity.hour.{hour}.share",
            f"Demand at {hour} h",
            "1",
            value,
            "of the busiest hour of the day, 100 the peak",
            "scenario" if asked.hours else "assumed 2026-11: shape of a day",
            "given" if asked.hours else "assumed",
            shared=True,
            minimum=0,
            maximum=100,
            default=None if asked.hours else lambda: rows[f"capacity.hour.{hour}.usual"],
        )

    return tuple(share(hour, value) for hour, value in enumerate(asked.shares()))


def point(figure: Named, shown: Node) -> Node:
    """A figure as a chart draws it: no point where nobody knows it."""
    return shown if isinstance(figure, Input) else where(is_number(figure), shown, NO_POINT)


def shown(titles: Sequence[Named], faults: Faults) -> tuple[Quantity, ...]:
    """Findings in words, where all figures can be that they follow from.

    Those of `titles` stand elsewhere.

    Args:
        faults: cells that cannot be, such as what is typed here, and prices.
    """
    refused = (join("! not known: ", faults.message), *[as_node(NOT_KNOWN)] * (len(titles) - 1))
    return tuple(
        Quantity(
            f"capacity.shown.{title.id.rpartition('.')[2]}",
            title.label,
            "1",
            where(faults.count > 0, instead, if_error(title, NOT_KNOWN)),
        )
        for title, instead in zip(titles, refused, strict=True)
    )
