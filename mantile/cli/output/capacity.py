"""What the command line shows of a demand: replicas at the peak, what a year costs, NPV and break-even."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mantile.cli.output import look
from mantile.cli.output.tables import number, scaled

if TYPE_CHECKING:
    from mantile.estimates.estimate import Estimate

_OPTIONS = {"buy": "buy", "rent": "rent", "api": "API"}
_EVEN = {
    "rent_against_api": "rent against API",
    "buy_against_api": "buy against API",
    "buy_against_rent": "buy against rent, of hours rented",
}


def demand_lines(estimate: Estimate, found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Lines of the capacity of the base scenario, each with its head.

    Args:
        found: the part `capacity` of its results.
    """
    yield "Demand", _demand(found)
    paid = [
        f"{name} {_paid(found['cash_usd'][option][1])}{_at_start(found['cash_usd'][option][0])}"
        for option, name in _OPTIONS.items()
    ]
    yield "A year", f"the first: {', '.join(paid)}"
    worth = [f"{name} {_signed(found['npv_usd'][option])}" for option, name in _OPTIONS.items()]
    yield "NPV", ", ".join(worth)
    capacity, values = estimate.equations.rows.of("capacity"), estimate.values(0)
    even = [f"{words} {_share(values[capacity[f'break_even.{name}']])}" for name, words in _EVEN.items()]
    yield "Even", f"mean utilisation: {'; '.join(even)}"


def _demand(found: Mapping[str, Any]) -> str:
    peak, replicas, rate = (
        found["peak_requests_per_s"][0],
        found["replicas"][0],
        found["requests_per_s_per_replica"],
    )
    asked = f"{_number(peak)} requests/s at the peak"
    if rate is None or replicas is None:
        return f"{asked}; replicas {look.NOT_KNOWN}: no rate is sustained ({found['bound_by']})"
    count = f"{number(replicas)} replicas with {number(found['spares'])} to spare"
    return f"{asked}: {count}; one carries {_number(rate)}, bound by {found['bound_by']}"


def _number(value: float | None) -> str:
    return look.NOT_KNOWN if value is None else number(value, 3)


def _paid(cash: float | None) -> str:
    """Cash out as a price."""
    return scaled(None if cash is None else -cash, "USD")


def _at_start(cash: float | None) -> str:
    return f" and {_paid(cash)} at its start" if cash else ""


def _signed(value: float | None) -> str:
    return scaled(value, "USD").replace("-", "−")


def _share(value: Any) -> str:
    """A share in percent, or the words of the graph on why there is none."""
    return str(value) if isinstance(value, str) else f"{number(100 * float(value), 3)} %"
