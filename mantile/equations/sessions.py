"""Sessions: people or agents who send a request, wait for its answer, think, and send the next.

By Little's law so many sessions send as many requests per second as they are, over the seconds of an
answer and of the thought after it; and answers take longer the more are sent. On a line of steps over the
requests in them the rate has a closed form, with the wait behind prompts of a single server in it. The
reading of routed experts is no line: it is taken as one at the estimate before, as for the concurrency at a
rate. No more is sent than is served: what is beyond that waits in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST
from mantile.equations.inputs import Workload
from mantile.equations.moe import coverage_growth
from mantile.graph.quantity import Node, Quantity, all_of, maximum, minimum, where
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows

_ESTIMATES = 2
"""Of the share of the experts that the requests there are touch, after that of all slots."""

Block = tuple[str, tuple[Quantity, ...] | Mapping[Quantity, Quantity]]


class Experts(Protocol):
    """What a decode step reads of routed experts: `load.RoutedExperts`."""

    @property
    def reading(self) -> Quantity:
        """Seconds to read all of them."""

    @property
    def coverage(self) -> Quantity:
        """Share of them that the batch of the Decode sheet touches."""

    @property
    def all_slots(self) -> Quantity:
        """Share of them that all slots touch."""

    @property
    def spread(self) -> Node:
        """Exponent of the tokens that touch experts."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a request of a replica takes, with all slots taken.

    Args:
        before: seconds of a prompt through prefill, and to the workers that decode.
        delay: seconds by which a prompt delays a step; it keeps other prompts out for `occupied`.
        steps: decode steps of a request.
        fixed: seconds of a step without requests, experts apart, and `slope` for each.
        full_step: seconds of a step with all slots taken, in which `most` requests decode.
        replicas: that share the requests.
        batch: requests that decode, of the Decode sheet.
    """

    before: Node
    delay: Quantity
    occupied: Node
    steps: Node
    fixed: Quantity
    slope: Quantity
    full_step: Quantity
    most: Quantity
    replicas: Node
    batch: Quantity
    experts: Experts | None


@dataclass(frozen=True)
class Sessions:
    """Requests per second of sessions.

    Args:
        rate: of all replicas.
        full: 1 where sessions would send more than is served; `waiting` are then in flight.
    """

    rate: Quantity
    full: Quantity
    waiting: Quantity
    blocks: tuple[Block, ...]


def sessions(inputs: Workload, loaded: Loaded) -> Sessions:
    """The request rate that follows from sessions and their think time."""
    assert inputs.sessions is not None and inputs.think_time is not None
    assert inputs.request_rate is not None
    rows, blocks = Rows("sessions"), list[Block]()
    of_replica = rows(
        "of_replica", "Sessions of a replica", "1", inputs.sessions / loaded.replicas / ONE_REQUEST
    )
    apart = rows(
        "apart", "Think time and prefill", "s", inputs.think_time + loaded.before, "whatever others do"
    )
    line, shares = _Line(loaded.fixed, loaded.slope), loaded.experts
    if shares is not None:
        line = _Line(loaded.fixed + shares.reading * shares.all_slots, loaded.slope)
    forms = _Forms(inputs, loaded, of_replica, apart)
    if shares is None:
        own = forms.rate(rows, "", line)
    else:
        own = forms.rate(rows, "_0", line)
        for number in range(1, _ESTIMATES + 1):
            decoding = forms.decoding(rows, f"_{number - 1}", own, line)
            again = GraphRewrite(
                {loaded.batch: decoding},
                (),
                f"sessions.{number}.",
                f", sessions, estimate {number - 1}",
                (shares.coverage,),
            )
            share = again.rewrite(shares.coverage)
            blocks.append((f"Sessions, estimate {number - 1}", rows.quantities()))
            made = {
                original: row
                for original, row in again.rewritten.items()
                if isinstance(original, Quantity) and isinstance(row, Quantity) and row is not decoding
            }
            blocks.append((f"Experts of sessions, estimate {number - 1}", made))
            rows = Rows("sessions")
            growth = rows(
                f"growth_{number}",
                f"Growth of the share of the experts touched, estimate {number - 1}",
                "1",
                coverage_growth(share, shares.spread),
                "for each per cent of requests, times a hundred",
            )
            line = _Line(
                rows(
                    f"fixed_{number}",
                    f"Step time without requests, estimate {number}",
                    "s",
                    loaded.fixed + shares.reading * (share - growth),
                ),
                rows(
                    f"slope_{number}",
                    f"Step time per request, estimate {number}",
                    "s",
                    loaded.slope + shares.reading * growth / (decoding / ONE_REQUEST),
                ),
            )
            own = forms.rate(rows, "" if number == _ESTIMATES else f"_{number}", line)
    return _bounded(rows, blocks, inputs, loaded, own)


@dataclass(frozen=True)
class _Line:
    """Seconds of a decode step by the requests in it."""

    fixed: Node
    slope: Node


@dataclass(frozen=True)
class _Forms:
    """The closed form of the rate on a line of steps.

    With N sessions, z seconds that nobody else changes, S steps of a + b n seconds and a delay D of each
    prompt, a request takes z + S a ÷ (1 - r w) + half r o² ÷ (1 - r w) seconds at r requests per second, with
    w = D + S b and prompts that take o seconds; N = r times that is a square in r.
    """

    inputs: Workload
    loaded: Loaded
    sessions: Quantity
    apart: Quantity

    def rate(self, rows: Rows, suffix: str, line: _Line) -> Quantity:
        """Requests per second of a replica."""
        number = f", estimate {suffix[1:]}" if suffix else ""
        loaded, taken = self.loaded, self.loaded.occupied
        adds = rows(
            f"adds{suffix}",
            f"Time a request adds to the steps of others{number}",
            "s",
            loaded.delay + loaded.steps * line.slope,
        )
        alone = rows(
            f"alone{suffix}",
            f"Think time and a request without others{number}",
            "s",
            self.apart + loaded.steps * line.fixed,
        )
        linear = rows(
            f"linear{suffix}",
            f"Half of the linear part of the square in the rate{number}",
            "s",
            HALF * (alone + self.sessions * adds),
        )
        square = rows(
            f"square{suffix}",
            f"Square part of it{number}",
            "s*s",
            self.apart * adds - HALF * taken * taken,
            "less what a prompt waits for others",
        )
        root = rows(
            f"root{suffix}",
            f"Root of the square{number}",
            "s",
            maximum(0, linear * linear - self.sessions * square) ** HALF,
        )
        return rows(
            f"rate{suffix}",
            f"Requests per second of a replica{number or ', if all are served'}",
            "request/s",
            ONE_REQUEST * self.sessions / (linear + root),
            "sessions ÷ (end to end + think time)",
            source="Little's law",
        )

    def decoding(self, rows: Rows, suffix: str, rate: Quantity, line: _Line) -> Quantity:
        """Requests of a replica that decode, at least one."""
        loaded = self.loaded
        left = maximum(SMALLEST, 1 - rate * (loaded.delay + loaded.steps * line.slope) / ONE_REQUEST)
        return rows(
            f"decoding{suffix}",
            f"Requests of a replica that decode, estimate {suffix[1:]}",
            "request",
            maximum(ONE_REQUEST, minimum(loaded.most, rate * loaded.steps * line.fixed / left)),
            source="Little's law",
        )


def _bounded(rows: Rows, blocks: list[Block], inputs: Workload, loaded: Loaded, own: Quantity) -> Sessions:
    """No more than is served; what is beyond that is in flight."""
    assert inputs.sessions is not None and inputs.think_time is not None
    assert inputs.request_rate is not None
    served = rows(
        "served",
        "Most requests per second of a replica, all slots taken",
        "request/s",
        ONE_REQUEST / (loaded.delay + loaded.steps * loaded.full_step / (loaded.most / ONE_REQUEST)),
    )
    prompts = rows(
        "prompts",
        "Most requests per second that prompts allow",
        "request/s",
        inputs.dp * ONE_REQUEST / loaded.occupied,
        "of all replicas, or of the workers that prefill",
    )
    limit = rows(
        "limit",
        "Most requests per second of sessions",
        "request/s",
        minimum(loaded.replicas * served, prompts),
        "all slots taken, or prompts prefilled, all the time",
    )
    asked = rows("asked", "Requests per second, if all are served", "request/s", own * loaded.replicas)
    rate = rows("rate_of_all", "Requests per second of sessions", "request/s", minimum(limit, asked))
    full = rows(
        "full",
        "Sessions would send more than is served",
        "flag",
        where(
            all_of(
                inputs.sessions > 0,
                asked >= limit,
                inputs.request_rate >= rate,
                inputs.request_rate <= rate,
            ),
            1,
            0,
        ),
        "not where a rate is typed over theirs",
    )
    waiting = rows(
        "waiting",
        "Requests in flight where sessions send more than is served",
        "request",
        maximum(1, inputs.sessions - limit * inputs.think_time),
        "all but who think",
    )
    blocks.append(("Sessions", rows.quantities()))
    return Sessions(rate, full, waiting, tuple(blocks))
