"""Names and numbers that all of capacity and money share."""

from __future__ import annotations

from mantile.graph.quantity import (
    defined,
)

PROFILE = "capacity.asked.profile"
"""The id of the cell of the demand profile."""
YEARS = 5
HOURS = 24
WHOLE = defined("capacity.whole", "Share of the busiest hour", "1", 100, "100 is the peak", name="100")
DAY = defined("capacity.day", "Hours of a day", "h/day", HOURS, "definition", name="24 h a day")
HOURLY = defined("capacity.hourly", "One share an hour", "h/day", 1, "shares stand for hours", name="1 h")
YEAR = defined("capacity.one_year", "One year", "year", 1, "turns what is paid by the year into an amount")
NUMBERS = tuple(
    defined(f"capacity.number.{year}", f"Year {year}", "number", year, "its number", name=f"year {year}")
    for year in range(YEARS + 1)
)

THOUSAND = defined("capacity.thousand", "Thousand", "1", 1000, "definition", name="1000")
MILLION = defined("capacity.million", "A million USD", "USD", 1_000_000, "definition", name="1,000,000 USD")
DOLLAR = defined("capacity.dollar", "One USD", "USD", 1, "the least that a cost is divided by", name="1 USD")
NOTHING = defined(
    "capacity.nothing", "Cash at the start, rent and API", "USD", 0, "nothing is paid in advance"
)
OPTIONS = {"buy": "buy", "rent": "rent", "api": "API"}
PARTS = {
    "rent": "Rent of accelerators",
    "energy_idle": "Electricity while nothing runs",
    "energy_load": "Electricity that follows load",
    "colocation": "Colocation",
    "staff": "Staff",
    "staff_rented": "Staff where rented",
}
DRIVERS = {
    "rent": "Rent",
    "purchase": "Purchase",
    "electricity": "Electricity",
    "colocation": "Colocation",
    "staff": "Staff",
}
NO_BREAK_EVEN = "no break-even"
NEVER = "not within the years"
NOT_CLEAR = "not clear"
FIRST_POINT, POINTS = 2, 20  # of the curves: from 10 % in steps of 5
LITTLE = defined(
    "capacity.little", "Least tokens", "Mtoken", 1e-9, "the least that is divided by", name="1e-9"
)


def at_year(year: int) -> str:
    return f"year {year}" if year else "start"
