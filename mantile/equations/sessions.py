"""Sessions: people or agents who send a request, wait for its answer, think, and send the next.

They are the closed loop of a concurrency, with a think time in it. A session waits for its answer during a
share of its time, so a request finds that share of all other sessions in flight. Steps and waits follow from
the requests in flight, itself among them, as from a concurrency. The share follows from the time of a
request, and that from the requests in flight: the rows of a closed loop are worked out at four numbers of
them. Between two of these the time of a request is taken as a line, on which the requests in flight have a
closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import HALF, MOST_REQUESTS, ONE_REQUEST, SLIVER, SMALLEST
from mantile.equations.inputs import Workload
from mantile.graph.quantity import Node, Quantity, absolute, all_of, is_number, maximum, minimum, where
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows

_ESTIMATES = 3
"""Numbers of requests in flight at which the rows are worked out, after that of all sessions."""

Block = tuple[str, tuple[Quantity, ...] | Mapping[Quantity, Quantity]]


@dataclass(frozen=True)
class Sessions:
    """The requests in flight of sessions.

    Args:
        default: what the concurrency follows.
        lead: 1 where it does, and no request rate or concurrency is stated beside sessions.
        alone, others: sessions that have a replica to themselves, one each, and all others.
        blocks: in the Serving part, in order.
    """

    default: Quantity
    lead: Quantity
    alone: Quantity
    others: Quantity
    blocks: tuple[Block, ...]

    def found(self, e2e: Node, think_time: Node) -> Node:
        """Requests in flight as a request finds them, itself among them, by the seconds it takes."""
        return _found(self.alone, self.others, e2e, think_time)


def _found(alone: Node, others: Node, e2e: Node, think_time: Node) -> Node:
    return alone + others * (e2e / (e2e + think_time))


@dataclass(frozen=True)
class _Point:
    """So many requests in flight, and seconds of a request then."""

    requests: Quantity
    e2e: Quantity


def sessions(
    inputs: Workload,
    replicas: Node,
    e2e: Quantity,
    closed: Mapping[Node, Node],
    at_rate: Quantity | None,
) -> Sessions:
    """The requests in flight of sessions.

    Args:
        replicas: that share the sessions.
        e2e: seconds of a request at the concurrency.
        closed: figures of a request rate, and what stands for them in a closed loop.
        at_rate: the concurrency that follows from a request rate; None where none may be given.
    """
    assert inputs.sessions is not None and inputs.think_time is not None
    rows = Rows("sessions")
    alone = rows(
        "alone",
        "Sessions that have a replica to themselves",
        "request",
        minimum(inputs.sessions, replicas * ONE_REQUEST),
        "one for each replica",
    )
    others = rows("others", "All other sessions", "request", inputs.sessions - alone)
    every = rows("every", "Requests in flight, all sessions at once", "request", alone + others)
    blocks: list[Block] = [("Sessions", rows.quantities())]

    def at(requests: Quantity, name: str, words: str) -> _Point:
        copy = GraphRewrite(
            {**closed, inputs.concurrency: requests}, (), f"sessions.{name}.", f", {words}", (e2e,)
        )
        point = _Point(requests, copy.rewrite(e2e))
        made = {
            original: row
            for original, row in copy.rewritten.items()
            if isinstance(original, Quantity) and isinstance(row, Quantity) and row.id.startswith("sessions.")
        }
        blocks.append((words[0].upper() + words[1:], made))
        return point

    high = low = at(every, "all", "all sessions at once")
    rows = Rows("sessions")
    search = _Search(inputs.think_time, inputs.sessions, alone, others)
    estimate = search.start(rows, high)
    for number in range(1, _ESTIMATES + 1):
        blocks.append((f"Requests in flight of sessions, estimate {number - 1}", rows.quantities()))
        point = at(estimate, str(number), f"sessions, estimate {number - 1}")
        rows = Rows("sessions")
        high, low, estimate = search.further(rows, number, point, high, low)
    default = rows(
        "concurrency",
        "Concurrency of the sessions",
        "request",
        where(is_number(estimate), minimum(MOST_REQUESTS, estimate), 1),
    )
    if at_rate is not None:
        default = rows(
            "concurrency_or_rate",
            "Concurrency of the sessions, or at the request rate",
            "request",
            where(inputs.by_sessions, default, at_rate),
            "a rate that is stated stands in place of sessions",
        )
    lead = rows(
        "lead",
        "The load follows from sessions",
        "flag",
        where(
            all_of(inputs.by_sessions, inputs.concurrency >= estimate, inputs.concurrency <= estimate), 1, 0
        ),
        "not where a rate or a concurrency is stated beside them",
    )
    blocks.append(("Requests in flight of sessions", rows.quantities()))
    return Sessions(default, lead, alone, others, tuple(blocks))


@dataclass(frozen=True)
class _Search:
    """The search for the requests in flight.

    With a sessions that have a replica to themselves, o others and z seconds of thought, requests in flight n
    are a + o t ÷ (t + z). On a line of requests that take t = c + d (n - a) seconds that is a square in n.
    """

    think_time: Node
    sessions: Node
    alone: Quantity
    others: Quantity

    def start(self, rows: Rows, most: _Point) -> Quantity:
        """The first estimate, between two bounds."""
        highest = rows(
            "highest",
            "Most requests in flight of the sessions",
            "request",
            self._found(most),
            "if requests take as long as with all at once",
        )
        lowest = rows(
            "lowest",
            "Fewest requests in flight of the sessions",
            "request",
            minimum(highest, self._least(most)),
            "if as many are served per second as with all at once",
            source="Little's law",
        )
        return rows(
            "estimate_0",
            "Requests in flight of the sessions, estimate 0",
            "request",
            (lowest * highest) ** HALF,
            "halfway on a logarithmic scale",
        )

    def further(
        self, rows: Rows, number: int, point: _Point, high: _Point, low: _Point
    ) -> tuple[_Point, _Point, Quantity]:
        """The estimate after another, on the line through two of the points that were worked out.

        Args:
            number: of the estimate.
            point: at the estimate before.
            high: the lowest point so far with too many requests in flight; `low` the highest with too few,
                or the one above `high` where there is none.
        """
        at, after = f"_{number}", f", estimate {number}"
        found = rows(
            f"found{at}",
            f"Requests in flight by the time they take{after}",
            "request",
            self._found(point),
            source="approximate mean value analysis of Bard and Schweitzer",
        )
        few = rows(
            f"few{at}",
            f"The estimate before is too low{after}",
            "flag",
            where(point.requests * (1 + SLIVER) < found, 1, 0),  # programs differ in the last digits
        )

        def point_of(name: str, words: str, kept: _Point, other: _Point, keeps: Node) -> _Point:
            return _Point(
                rows(
                    f"{name}{at}", f"{words}{after}", "request", where(keeps, kept.requests, other.requests)
                ),
                rows(
                    f"{name}_e2e{at}", f"{words}, end to end{after}", "s", where(keeps, kept.e2e, other.e2e)
                ),
            )

        upper = point_of("upper", "Upper end of the line", high, point, few > 0)
        below = point_of(
            "below", "Other end, if the estimate is too high", low, high, low.requests < high.requests
        )
        lower = point_of("lower", "Other end of the line", point, below, few > 0)
        return upper, lower, self._on_line(rows, number, upper, lower, found)

    def _found(self, point: _Point) -> Node:
        return _found(self.alone, self.others, point.e2e, self.think_time)

    def _least(self, point: _Point) -> Node:
        """All sessions but those that think, if as many requests are served per second."""
        return maximum(self.alone, self.sessions - point.requests * (self.think_time / point.e2e))

    def _on_line(self, rows: Rows, number: int, high: _Point, low: _Point, found: Quantity) -> Quantity:
        at, after = f"_{number}", f", estimate {number}"
        apart = rows(
            f"apart{at}", f"Requests between both ends{after}", "request", high.requests - low.requests
        )
        slope = rows(
            f"slope{at}",
            f"Time per further request in flight{after}",
            "s",
            where(
                absolute(apart) > SMALLEST * high.requests,
                maximum(0, (high.e2e - low.e2e) / (apart / ONE_REQUEST)),
                0,
            ),
        )
        first = rows(
            f"first{at}",
            f"Time of a request with a replica to itself, on that line{after}",
            "s",
            high.e2e - slope * ((high.requests - self.alone) / ONE_REQUEST),
        )
        half = rows(
            f"half{at}",
            f"Half of that and the think time, less what others add{after}",
            "s",
            HALF * (first + self.think_time - slope * (self.others / ONE_REQUEST)),
        )
        root = rows(
            f"root{at}",
            f"Root of the square{after}",
            "s",
            maximum(0, half * half + slope * first * (self.others / ONE_REQUEST)) ** HALF,
        )
        few = rows(
            f"few_others{at}",
            f"Others in flight, where they add little{after}",
            "request",
            self.others * (first / (maximum(0, half) + root)),
        )
        many = rows(
            f"many_others{at}",
            f"Others in flight, where they add much{after}",
            "request",
            ONE_REQUEST * ((root - half) / maximum(SMALLEST * half, slope)),
            "the same without a small difference of large figures",
        )
        line = rows(
            f"line{at}",
            f"Requests in flight on that line{after}",
            "request",
            self.alone + where(half > 0, few, many),
        )
        within = apart > 0
        lowest = rows(
            f"lowest{at}",
            f"Fewest requests in flight{after}",
            "request",
            where(within, low.requests, self._least(high)),
        )
        highest = rows(
            f"highest{at}", f"Most requests in flight{after}", "request", where(within, high.requests, found)
        )
        last = number == _ESTIMATES
        return rows(
            "in_flight" if last else f"estimate{at}",
            f"Requests in flight of the sessions{'' if last else after}",
            "request",
            maximum(minimum(lowest, highest), minimum(line, highest)),
            "as a request finds them, itself among them",
        )
