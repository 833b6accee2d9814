"""Goodput: the share of requests within the limits that a scenario states, and how many a second that is."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import FAR, NORMAL_CUBE, NORMAL_LINE, SMALLEST
from mantile.equations.inputs import Workload
from mantile.equations.serving.percentiles import Lognormal, Percentiles
from mantile.graph.quantity import Input, Quantity, Section, exponential, logarithm, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Goodput:
    """Requests within all limits: the share of them, and so many a second."""

    share: Quantity
    requests: Quantity
    section: Section


def goodput(inputs: Workload, times: Percentiles, requests: Quantity) -> Goodput:
    """The share of requests within all limits.

    A request with a late first token ends late as well: end to end takes away what TTFT and TPOT leave, not
    what they take.

    Args:
        requests: that are served per second.
    """
    assert inputs.ttft_limit is not None and inputs.tpot_limit is not None and inputs.e2e_limit is not None
    rows = Rows("goodput")
    ttft = _within(rows, "ttft", "TTFT", inputs.ttft_limit, times.ttft)
    tpot = _within(rows, "tpot", "TPOT", inputs.tpot_limit, times.tpot)
    e2e = _within(rows, "e2e", "end to end", inputs.e2e_limit, times.e2e)
    share = rows(
        "share",
        "Share of requests within all limits",
        "1",
        minimum(ttft * tpot, e2e),
        "who is late to the first token is late to the last",
    )
    good = rows("requests_per_s", "Goodput", "request/s", share * requests, "requests within all limits")
    return Goodput(share, good, rows.section("Goodput", "requests within the limits stated"))


def _within(rows: Rows, name: str, label: str, limit: Input, time: Lognormal) -> Quantity:
    """The share of requests whose time is within a limit; all where none is stated."""
    far = rows(
        f"{name}_far",
        f"Limit of {label}, standard deviations above the median",
        "1",
        minimum(
            FAR,
            maximum(
                -FAR,
                logarithm(maximum(SMALLEST, limit / time.median)) / maximum(SMALLEST, time.deviation),
            ),
        ),
        "of the logarithm",
    )
    return rows(
        f"{name}_share",
        f"Share of requests within the limit of {label}",
        "1",
        where(limit > 0, 1 / (1 + exponential(-far * (NORMAL_LINE + NORMAL_CUBE * far * far))), 1),
        "no limit: all",
    )
