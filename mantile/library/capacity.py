"""The block `capacity:` of a scenario: demand by hour of the day, and what it costs to serve it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict
from mantile.library.fields import MONEY, Real, ScenarioField, Whole, field, read_fields

Profile = Literal["office day", "evening", "flat", "own"]
OWN: Profile = "own"
"""The profile whose shares are typed hour by hour."""
PROFILES: Mapping[str, tuple[float, ...]] = {
    "office day": (
        22,
        16,
        12,
        10,
        10,
        13,
        20,
        34,
        55,
        78,
        92,
        97,
        90,
        93,
        100,
        98,
        91,
        80,
        66,
        58,
        52,
        46,
        38,
        29,
    ),
    "evening": (
        50,
        34,
        22,
        14,
        10,
        10,
        14,
        20,
        28,
        34,
        40,
        46,
        52,
        52,
        52,
        54,
        58,
        66,
        78,
        90,
        98,
        100,
        92,
        72,
    ),
    "flat": (100,) * 24,
}
"""Demand by hour of the day, 100 the peak: shapes that are assumed, to be typed over."""


class CapacityFields(Strict):
    """What is asked of demand and money; each field is a cell of the Capacity sheet."""

    users: Real | None = field(
        "Active users at the peak",
        "users who ask in the busiest hour",
        group=MONEY,
        unit="number",
        default=0,
        least=0,
        most=1000000000.0,
    )
    requests_per_user: Real | None = field(
        "Requests of a user",
        "of a user in the busiest hour",
        group=MONEY,
        unit="request/h",
        default=0,
        least=0,
        most=1000000.0,
    )
    requests_per_day: Real | None = field(
        "Requests a day",
        "of all users; 0: of users and their requests",
        group=MONEY,
        unit="request/day",
        default=0,
        least=0,
        most=1000000000000.0,
    )
    peak_factor: Real | None = field(
        "Peak factor",
        "busiest minutes against the mean of the busiest hour",
        group=MONEY,
        unit="1",
        default=1,
        least=1,
        most=100,
    )
    growth: Real | None = field(
        "Growth a year",
        "of demand, at the start of each year after the first",
        group=MONEY,
        unit="1",
        default=0,
        least=-0.9,
        most=10,
    )
    spares: Whole | None = field(
        "Spare replicas",
        "that may fail at the peak: N + k",
        group=MONEY,
        unit="replica",
        default=1,
        least=0,
        most=1000,
    )
    busiest: Real | None = field(
        "Busiest replica, at most",
        "share of what it carries",
        group=MONEY,
        unit="1",
        default=1,
        least=0.01,
        most=1,
    )
    ttft_p95: Real | None = field(
        "TTFT, p95, at most",
        "19 of 20 requests have their first token within so long; 0: no limit",
        group=MONEY,
        unit="s",
        default=0,
        least=0,
        most=1000000.0,
    )
    tpot: Real | None = field(
        "TPOT, at most",
        "mean gap between tokens; 0: no limit",
        group=MONEY,
        unit="s",
        default=0,
        least=0,
        most=1000000.0,
    )
    e2e_p95: Real | None = field(
        "End to end, p95, at most",
        "19 of 20 requests are done within so long; 0: no limit",
        group=MONEY,
        unit="s",
        default=0,
        least=0,
        most=1000000.0,
    )
    years: Whole | None = field(
        "Years", "for which cash is counted", group=MONEY, unit="number", default=5, least=1, most=5
    )
    discount_rate: Real | None = field(
        "Discount rate", "of a year", group=MONEY, unit="1", default=0.08, least=0, most=1
    )
    purchase: Real | None = field(
        "Purchase price of one",
        "of an accelerator; 0: that of the library, with its share of a machine",
        group=MONEY,
        unit="USD/accelerator",
        default=0,
        least=0,
        most=1000000000.0,
    )
    hosts: Real | None = field(
        "Hosts",
        "of an accelerator whose purchase price is stated: its share of a machine",
        group=MONEY,
        unit="USD/accelerator",
        default=0,
        least=0,
        most=1000000000.0,
    )
    network: Real | None = field(
        "Network",
        "of an accelerator whose purchase price is stated: its share of switches",
        group=MONEY,
        unit="USD/accelerator",
        default=0,
        least=0,
        most=1000000000.0,
    )
    residual: Real | None = field(
        "Residual value",
        "share of the purchase that is left after the years",
        group=MONEY,
        unit="1",
        default=0,
        least=0,
        most=1,
    )
    rent: Real | None = field(
        "Rent",
        "of an accelerator; 0: the price of the scenario",
        group=MONEY,
        unit="USD/h/accelerator",
        default=0,
        least=0,
        most=1000000.0,
    )
    api_input: Real | None = field(
        "API, input",
        "price of a million input tokens",
        group=MONEY,
        unit="USD/Mtoken",
        default=0,
        least=0,
        most=1000000.0,
    )
    api_output: Real | None = field(
        "API, output",
        "price of a million output tokens; 0: not known",
        group=MONEY,
        unit="USD/Mtoken",
        default=0,
        least=0,
        most=1000000.0,
    )
    electricity: Real | None = field(
        "Electricity",
        "paid per kWh that enters the building",
        group=MONEY,
        unit="USD/kWh",
        default=0.1,
        least=0,
        most=10,
    )
    colocation: Real | None = field(
        "Colocation",
        "of the power to provide; 0: none",
        group=MONEY,
        unit="USD/kW/month",
        default=0,
        least=0,
        most=100000.0,
    )
    staff: Real | None = field(
        "Staff where bought",
        "of a year",
        group=MONEY,
        unit="USD/year",
        default=0,
        least=0,
        most=10000000000.0,
    )
    staff_rented: Real | None = field(
        "Staff where rented",
        "of a year",
        group=MONEY,
        unit="USD/year",
        default=0,
        least=0,
        most=10000000000.0,
    )
    upkeep: Real | None = field(
        "Upkeep",
        "of a year, share of the purchase",
        group=MONEY,
        unit="1/year",
        default=0.04,
        least=0,
        most=1,
    )
    swing: Real | None = field(
        "Swing of drivers",
        "share by which prices are taken higher, to see what moves the saving",
        group=MONEY,
        unit="1",
        default=0.25,
        least=0,
        most=0.9,
    )


CAPACITY_FIELDS: Mapping[str, ScenarioField] = {
    declared.name: declared for declared in read_fields(CapacityFields)
}
"""What is stated of demand and money, in the order in which a reader meets it."""


class CapacityAsked(CapacityFields):
    """Demand and money: replicas by hour, and what it costs to buy, to rent, or to call an API.

    `profile` fills the 24 shares of the hours; `own` takes them from `hours`, 100 the peak.

    Example: {users: 200, requests_per_user: 360, profile: office day, growth: 0.15}
    """

    profile: Profile = "office day"
    hours: tuple[Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)], ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> CapacityAsked:
        if (self.profile == OWN) != bool(self.hours):
            raise ValueError("hours: expected 24 shares with profile: own, and none with another profile")
        if self.hours and (len(self.hours) != len(PROFILES["flat"]) or not max(self.hours)):
            raise ValueError(f"hours: expected 24 shares, one above 0, found {len(self.hours)}")
        if not self.requests_per_day and not (self.users and self.requests_per_user):
            raise ValueError("expected users and requests_per_user, or requests_per_day")
        return self

    def shares(self) -> tuple[float, ...]:
        """Demand by hour of the day, 100 the peak."""
        return self.hours or PROFILES[self.profile]

    def value(self, name: str) -> float | int:
        """What is stated of it, or the default."""
        stated = getattr(self, name)
        default = CAPACITY_FIELDS[name].default if stated is None else stated
        assert isinstance(default, float | int)
        return default
