"""One request as its user sees it: TTFT, end to end, percentiles, interactivity."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, TOKENS_PER_STEP
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import Tpot
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.slots import Slots
from mantile.equations.serving.waits import Waits
from mantile.graph.quantity import Quantity, Section, maximum, sum_of
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Ttft:
    """Mean TTFT."""

    ttft: Quantity
    section: Section


def ttft(first: Base, waits: Waits, slots: Slots) -> Ttft:
    """Mean time from arrival to the first token."""
    rows = Rows("serving")
    steady = rows("ttft_steady", "TTFT in steady state", "s", sum_of([first.base, waits.mean, *slots.waits]))
    total = rows("ttft", "Time to first token, TTFT", "s", steady + slots.burst_wait, "mean", called="TTFT")
    return Ttft(
        ttft=total,
        section=rows.section("Time to first token", "mean, from arrival", Section.SUBTOTAL),
    )


@dataclass(frozen=True)
class Tails:
    """Median and p95 of TTFT and of end to end, seconds."""

    ttft_p50: Quantity
    ttft_p95: Quantity
    e2e_p50: Quantity
    e2e_p95: Quantity


@dataclass(frozen=True)
class Request:
    """One request as its user sees it: seconds, and tokens per second.

    Args:
        told: None where all percentiles are worked out from the spread of lengths.
    """

    e2e: Quantity
    interactivity: Quantity
    told: Tails | None
    section: Section


def e2e(setting: Setting, token: Tpot, first: Base, waits: Waits, slots: Slots, start: Ttft) -> Request:
    """End to end, percentiles of TTFT and of end to end, interactivity."""
    rows = Rows("serving")
    mean = rows("e2e", "End to end", "s", start.ttft + waits.generation)
    told = None
    if setting.spread is None:
        told = _median_and_p95(rows, setting, first, waits, slots, start)
    interactivity = rows(
        "interactivity",
        "Interactivity",
        "token/request/s",
        TOKENS_PER_STEP / token.tpot,
        "tokens per second that one user sees",
    )
    return Request(
        e2e=mean,
        told=told,
        interactivity=interactivity,
        section=rows.section(
            "One request",
            "as its user sees it; half of the requests, or 1 in 20, see more than median and p95",
        ),
    )


def _median_and_p95(
    rows: Rows, setting: Setting, first: Base, waits: Waits, slots: Slots, start: Ttft
) -> Tails:
    """Percentiles where nobody says how far lengths lie apart."""
    others = "other waits as in the mean"
    in_burst = rows(
        "burst_median",
        "How far the median lies in the warm-up burst",
        "1",
        maximum(0, (slots.burst_share - HALF) / HALF),
        "from half of the requests of a benchmark on; 1 where all are in it",
    )
    steady = rows(
        "steady_p50",
        "TTFT before batch slots, median without a burst",
        "s",
        maximum(first.base + waits.p50, waits.saturation),
    )
    ttft_p50 = rows(
        "ttft_p50",
        "TTFT, median",
        "s",
        (1 - in_burst) * steady + in_burst * slots.burst + slots.p50,
        others,
        called="median TTFT",
    )
    tail = rows(
        "ttft_tail",
        "TTFT with the p95 of waits",
        "s",
        maximum(first.base + waits.p95, waits.saturation) + slots.p95,
    )
    ttft_p95 = rows(
        "ttft_p95",
        "TTFT, p95",
        "s",
        maximum(tail, ttft_p50, start.ttft),
        others,
        called="p95 TTFT",
    )
    e2e_p50 = rows("e2e_p50", "End to end, median", "s", ttft_p50 + waits.generation, "of a mean output")
    e2e_p95 = rows(
        "e2e_p95",
        "End to end, p95",
        "s",
        maximum(ttft_p95 + waits.generation, ttft_p50 + setting.inputs.p95_output_ratio * waits.generation),
        "a late first token, or a long output",
    )
    return Tails(ttft_p50, ttft_p95, e2e_p50, e2e_p95)
