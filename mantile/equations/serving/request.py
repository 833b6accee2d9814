"""One request as its user sees it: mean TTFT and end to end, interactivity."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import TOKENS_PER_STEP
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import Tpot
from mantile.equations.serving.slots import Slots
from mantile.equations.serving.waits import Waits
from mantile.graph.quantity import Quantity, Section, sum_of
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Ttft:
    """Mean TTFT; `steady` without the warm-up burst of a benchmark."""

    ttft: Quantity
    steady: Quantity
    section: Section


def ttft(first: Base, waits: Waits, slots: Slots) -> Ttft:
    """Mean time from arrival to the first token."""
    rows = Rows("serving")
    steady = rows("ttft_steady", "TTFT in steady state", "s", sum_of([first.base, waits.mean, *slots.waits]))
    total = rows("ttft", "Time to first token, TTFT", "s", steady + slots.burst_wait, "mean", called="TTFT")
    return Ttft(
        ttft=total,
        steady=steady,
        section=rows.section("Time to first token", "mean, from arrival", Section.SUBTOTAL),
    )


@dataclass(frozen=True)
class Request:
    """One request as its user sees it: seconds, and tokens per second."""

    e2e: Quantity
    interactivity: Quantity
    section: Section


def e2e(token: Tpot, waits: Waits, start: Ttft) -> Request:
    """Mean end to end, and interactivity."""
    rows = Rows("serving")
    mean = rows("e2e", "End to end", "s", start.ttft + waits.generation)
    interactivity = rows(
        "interactivity",
        "Interactivity",
        "token/request/s",
        TOKENS_PER_STEP / token.tpot,
        "tokens per second that one user sees",
    )
    return Request(mean, interactivity, rows.section("One request", "as its user sees it, on average"))
