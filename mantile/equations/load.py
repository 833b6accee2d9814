"""Requests that arrive at a rate of their own: how many are in flight, how loaded the deployment is, how long they wait.

A decode step is taken as a line between one request and the batch of the Decode sheet. Arrivals are random (Poisson), and prompts are
served one after the other: waits are those of a single server with fixed service times. Beyond a load of 0.8 the forms no longer hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import (
    HALF,
    HALF_LEFT,
    MOST_LOAD,
    MOST_REQUESTS,
    NEVER,
    ONE_IN_TWENTY,
    ONE_REQUEST,
    SMALLEST,
    TOKENS_PER_STEP,
)
from mantile.equations.inputs import Workload
from mantile.equations.memory import Memory
from mantile.graph.quantity import Node, Quantity, Section, all_of, logarithm, maximum, minimum, where


@dataclass(frozen=True)
class Arrivals:
    """The state of a deployment under an arrival rate; all rows are of one replica.

    Args:
        open: 1 where a request rate is given, 0 where concurrency is.
        step: seconds of a decode step at the load there is.
        tpot: seconds per output token; `wait`, `wait_p50` and `wait_p95` before a prompt's turn.
        load: requests per second over the most that can be served, beyond 0.8 saturated.
        served: requests per second of all replicas that are served.
        seats: of all replicas.
        in_flight: requests of all replicas between arrival and last token.
    """

    open: Quantity
    step: Quantity
    tpot: Quantity
    stall: Quantity
    wait: Quantity
    wait_p50: Quantity
    wait_p95: Quantity
    load: Quantity
    served: Quantity
    seats: Quantity
    rows: tuple[Quantity, ...]
    in_flight: Quantity | None = None


def arrivals(
    inputs: Workload,
    held: Memory,
    replicas: Node,
    full: Quantity,
    alone: Quantity,
    blocked: Node,
    occupied: Quantity,
) -> Arrivals:
    """The rows of the load block.

    Args:
        replicas: that share the requests.
        full: seconds of a decode step with the batch of the Decode sheet; `alone` with one request.
        blocked: seconds by which a prompt delays the others' steps, interference included.
        occupied: seconds in which no other prompt can be taken up.
    """
    assert inputs.request_rate is not None
    flag = Quantity(
        "load.open",
        "Requests arrive at a rate",
        "flag",
        where(inputs.request_rate > 0, 1, 0),
        name="open loop",
        note="1 if a request rate is given, 0 if concurrency is",
    )
    delay = Quantity(
        "load.delay",
        "Time a prompt delays a step",
        "s",
        blocked,
        note="interference × its delay of the others; 0 where they are apart",
    )
    rate = Quantity(
        "load.rate", "Requests per second of a replica", "request/s", inputs.request_rate / replicas
    )
    spread = Quantity(
        "load.slope",
        "Step time per further request",
        "s",
        maximum(0, full - alone) / maximum(1, held.batch / ONE_REQUEST - 1),
        note="(decode step − that of one request) ÷ (batch − 1)",
    )
    fixed = Quantity(
        "load.fixed",
        "Step time without requests",
        "s",
        alone - spread,
        note="decode step of one request − step time per further request",
    )
    tokens = inputs.output_tokens / TOKENS_PER_STEP
    per_request = Quantity(
        "load.work",
        "Time a request adds to the steps of others",
        "s",
        delay + tokens * spread,
        note="delay by its prompt + output tokens × step time per further request",
    )
    left = Quantity(
        "load.left",
        "Share of the time left for steps themselves",
        "1",
        maximum(SMALLEST, 1 - rate * per_request / ONE_REQUEST),
        note="1 − requests per second × time each adds",
    )
    most = Quantity(
        "load.most",
        "Most requests in a batch",
        "request",
        minimum(
            held.capacity_sequences,
            where(inputs.max_requests > 0, inputs.max_requests, held.capacity_sequences),
        ),
        note="KV capacity, or as asked",
    )
    seats = Quantity(
        "load.seats",
        "Seats of all replicas",
        "request",
        minimum(MOST_REQUESTS, most * replicas),
        note="most requests in a batch × replicas",
    )
    full_step = Quantity(
        "load.full_step",
        "Decode step with all seats taken",
        "s",
        fixed + spread * (most / ONE_REQUEST),
        note="step time without requests + most requests × step time of each",
    )
    limit = Quantity(
        "load.limit",
        "Most requests per second of a replica",
        "request/s",
        ONE_REQUEST / (delay + tokens * full_step / (most / ONE_REQUEST)),
        note="1 ÷ (delay by a prompt + output tokens × step with all seats taken ÷ seats): saturation",
    )
    prompts = Quantity(
        "load.prompts",
        "Share of the time prompts are prefilled",
        "1",
        rate * occupied / ONE_REQUEST,
        note="requests per second × prefill service time",
    )
    load = Quantity(
        "load.utilisation",
        "Load",
        "1",
        maximum(rate / limit, prompts),
        note="requests per second ÷ most, or share of prompts, the larger",
    )
    worst = Quantity(
        "load.worst",
        "TPOT with all seats taken",
        "s",
        full_step + delay * (most / ONE_REQUEST) / tokens,
        note="step with all seats taken + prompts of all others × delay by each ÷ output tokens",
    )
    tpot = Quantity(
        "load.tpot",
        "TPOT at this rate",
        "s",
        minimum(fixed / left, worst),
        note="step time without requests ÷ share left, at most that with all seats taken",
    )
    flying = Quantity(
        "load.decoding",
        "Requests that decode",
        "request",
        minimum(most, rate * tokens * tpot),
        note="requests per second × output tokens × TPOT",
        source="Little's law",
    )
    step = Quantity(
        "load.step",
        "Decode step at this rate",
        "s",
        fixed + spread * (flying / ONE_REQUEST),
        note="step time without requests + requests that decode × step time of each",
    )
    stall = Quantity(
        "load.stall",
        "Prefill stall per token at this rate",
        "s",
        maximum(0, tpot - step),
        note="TPOT − decode step",
    )
    free = Quantity(
        "load.free",
        "Share of the time without prompts",
        "1",
        maximum(SMALLEST, 1 - prompts),
        note="1 − share of the time prompts are prefilled",
    )
    wait = Quantity(
        "load.wait",
        "Mean wait at this rate",
        "s",
        minimum(NEVER, HALF * prompts * occupied / free),
        note="half × share of prompts × prefill service time ÷ share without",
        source="single server, fixed service time, random arrivals",
    )
    drain = Quantity(
        "load.drain",
        "Time in which the queue falls by e",
        "s",
        HALF * occupied / free,
        note="half × prefill service time ÷ share without prompts",
    )
    half = Quantity(
        "load.wait_p50",
        "Median wait at this rate",
        "s",
        minimum(NEVER, drain * maximum(0, logarithm(maximum(SMALLEST, prompts / HALF_LEFT)))),
        note="queue's time × ln(share of prompts ÷ 0.5), at least 0: the tail of the wait is exponential",
    )
    tail = Quantity(
        "load.wait_p95",
        "Wait of one in twenty at this rate",
        "s",
        minimum(NEVER, drain * maximum(0, logarithm(maximum(SMALLEST, prompts / ONE_IN_TWENTY)))),
        note="queue's time × ln(share of prompts ÷ 0.05), at least 0",
    )
    served = Quantity(
        "load.served",
        "Requests per second that are served",
        "request/s",
        minimum(inputs.request_rate, limit * replicas),
        note="as they arrive, at most what all replicas can do",
    )
    calm = Quantity(
        "load.calm",
        "State below saturation",
        "1",
        where(flag > 0, "stable", "closed loop"),
        note="stable, or driven by concurrency",
    )
    state = Quantity(
        "load.state",
        "State",
        "1",
        where(all_of(flag > 0, load > MOST_LOAD), "saturated", calm),
        note="saturated beyond a load of 0.8, where waits are no longer what the forms say",
    )
    rows = (
        flag,
        rate,
        delay,
        spread,
        fixed,
        per_request,
        left,
        most,
        seats,
        full_step,
        limit,
        prompts,
        load,
        worst,
        tpot,
        flying,
        step,
        stall,
        free,
        wait,
        drain,
        half,
        tail,
        served,
        calm,
        state,
    )
    return Arrivals(flag, step, tpot, stall, wait, half, tail, load, served, seats, rows)


SECTION = "one replica; requests arrive at random and do not wait for one another's answers"


def section(found: Arrivals) -> Section:
    """The load block of the Serving sheet."""
    return Section("Load", found.rows, SECTION)
