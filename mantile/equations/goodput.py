"""Goodput: the share of requests within the limits that a scenario states, and how many a second that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import FAR, NORMAL_CUBE, NORMAL_LINE, SMALLEST
from mantile.equations.inputs import Workload
from mantile.equations.serving.tails import Lognormal, Percentiles
from mantile.graph.quantity import Named, Quantity, Section, exponential, logarithm, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Goodput:
    """Requests within all limits: the share of them, and so many a second."""

    share: Quantity
    requests: Quantity
    section: Section


def goodput(
    inputs: Workload, times: Percentiles, requests: Quantity, of_classes: Quantity | None = None
) -> Goodput:
    """The share of requests within all limits.

    A request with a late first token ends late as well: end to end takes away what TTFT and TPOT leave, not
    what they take.

    Args:
        requests: that are served per second.
        of_classes: the share where there are classes of requests, each with its own lengths and limits.
    """
    limits = {"ttft": inputs.ttft_limit, "tpot": inputs.tpot_limit, "e2e": inputs.e2e_limit}
    of_all = {"ttft": times.ttft, "tpot": times.tpot, "e2e": times.e2e}
    rows = Rows("goodput")
    if of_classes is not None:
        share = rows("share", "Share of requests within all limits", "1", of_classes, "of their classes")
    else:
        share = all_within(rows, limits, of_all)
    good = rows("requests_per_s", "Goodput", "request/s", share * requests, "requests within all limits")
    return Goodput(share, good, rows.section("Goodput", "requests within the limits stated"))


def all_within(
    rows: Rows,
    limits: Mapping[str, Named],
    times: Mapping[str, Lognormal],
    prefix: str = "",
    suffix: str = "",
) -> Quantity:
    """The share of requests within all limits.

    Args:
        limits, times: by "ttft", "tpot" and "e2e"; a limit of 0 is none.
        prefix, suffix: of ids and labels.
    """
    labels = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}
    within = {
        name: share_within(rows, f"{prefix}{name}", f"{label}{suffix}", limits[name], times[name])
        for name, label in labels.items()
    }
    return rows(
        f"{prefix}share",
        f"Share of requests within all limits{suffix}",
        "1",
        minimum(within["ttft"] * within["tpot"], within["e2e"]),
        "who is late to the first token is late to the last",
    )


def share_within(rows: Rows, name: str, label: str, limit: Named, time: Lognormal) -> Quantity:
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
