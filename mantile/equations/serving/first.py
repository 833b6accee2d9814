"""Time to a first token without a queue, while others decode."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST, STEPS_AHEAD
from mantile.equations.inputs import ON
from mantile.equations.load import Arrivals
from mantile.equations.serving.loop import ClosedLoop, Tpot
from mantile.equations.serving.setting import Setting
from mantile.equations.spread import longest as longest_of
from mantile.graph.quantity import Node, Quantity, Section, equal, maximum, minimum, sum_of, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Base:
    """Seconds to a first token on one's own, while others decode, and the parts they consist of.

    Args:
        any_time: 1 where requests arrive at any time of a step, 0 where one follows as another ends; None if
            all do that.
    """

    base: Quantity
    parts: tuple[Quantity, ...]
    section: Section
    any_time: Node | None = None


def base(setting: Setting, loop: ClosedLoop, token: Tpot, load: Arrivals | None) -> Base:
    """Time to a first token without a queue."""
    factors, continuous, alone = setting.efficiency, setting.continuous, setting.prompt
    rows = Rows("serving")
    others: Node = loop.prompts.others
    if load is not None:
        others = where(load.open > 0, load.decoding / ONE_REQUEST, others)
    steps = wait_steps(rows, setting, loop)
    lag: Node = factors["step_lag"]
    any_time: Node | None = None if load is None else load.open
    if loop.thinking is not None:
        thought = minimum(1, loop.thinking / token.step)
        any_time = rows(
            "any_time",
            "Requests arrive at any time of a step",
            "1",
            thought if any_time is None else maximum(any_time, thought),
            "at a rate, and after a think time as long as a step",
        )
    if any_time is not None:
        lag = arrival_lag(rows, setting, loop, token, any_time)
    running = rows(
        "first_step",
        "Running step",
        "s",
        continuous * minimum(1, others) * lag * token.step,
        "rest of the step that runs for others, and the token's way out",
    )
    delay = rows(
        "held_back",
        "Batching delay",
        "s",
        (continuous * steps + (1 - continuous) * rest_of_batch(rows, setting)) * token.whole,
        "steps until a scheduler takes a request up; a static batch waits for its longest output",
    )
    parts = [alone.handling, alone.prefill, running, delay]
    if alone.transfer is not None:
        parts.append(alone.transfer)
    total = rows("base", "First token without a queue", "s", sum_of(parts))
    return Base(
        base=total,
        parts=tuple(parts),
        any_time=any_time,
        section=rows.section(
            "First token without a queue", "on its own, while others decode", Section.SUBTOTAL
        ),
    )


def arrival_lag(rows: Rows, setting: Setting, loop: ClosedLoop, token: Tpot, any_time: Node) -> Quantity:
    """Decode steps around a prefill, where requests may arrive at any time.

    Who arrives at any time waits for half of the running step and for those that are scheduled already; a
    prompt that rides along takes what its step has beyond the prefill by itself. The factor was fitted to
    clients that send the next request as one ends: it bounds the steps of those that arrive at any time.
    """
    fitted = setting.efficiency["step_lag"]
    beyond = rows(
        "ride_beyond",
        "Time of the step that carries a prompt, beyond its prefill",
        "s",
        (1 - setting.scheduler.first) * maximum(0, loop.prompts.delay + token.step - setting.prompt.service),
        "weights are read once for both",
    )
    ahead: Node = STEPS_AHEAD
    if setting.inputs.async_scheduling is not None:
        ahead = where(equal(setting.inputs.async_scheduling, ON), STEPS_AHEAD, 0)
    arriving = rows(
        "arrival_steps",
        "Steps around a prefill of who arrives at any time",
        "1",
        HALF + ahead + beyond / token.step,
        "half the running step, those scheduled ahead, the rest of one's own",
    )
    return rows(
        "lag_in_use",
        "First-step lag in use",
        "1",
        minimum(fitted, (1 - any_time) * fitted + any_time * arriving),
        "of who arrives at any time not above that of a closed loop",
    )


def rest_of_batch(rows: Rows, setting: Setting) -> Quantity:
    """Decode steps from the mean end of a request to that of its static batch, on average.

    The longest of B lengths that are drawn evenly from a range r below the largest is (1 - r/(B + 1)) of it,
    the mean (1 - r/2).
    """
    inputs, spread = setting.inputs, setting.inputs.length_range_ratio
    longest = rows(
        "longest_output",
        "Longest output of a batch, against the mean",
        "1",
        (1 - spread / (setting.memory.batch / ONE_REQUEST + 1)) / (1 - HALF * spread),
        "of lengths drawn evenly",
    )
    stated = setting.spread
    drawn = longest_of(rows, stated, setting.memory.batch)
    longest = rows(
        "longest_in_use",
        "Longest output of a batch in use, against the mean",
        "1",
        where(equal(stated.outputs, stated.usual), longest, drawn),
        "drawn evenly until somebody states another spread",
    )
    return rows(
        "rest_of_batch",
        "Steps between the end of a request and of its batch",
        "1",
        (longest - 1) * inputs.output_tokens / setting.emitted,
        "a static batch ends with its longest output",
    )


def wait_steps(rows: Rows, setting: Setting, loop: ClosedLoop) -> Quantity:
    """Steps before a scheduler takes requests up: half of those between two looks, some to fill a batch."""
    inputs, rate = setting.inputs, loop.prompts.per_token
    steps = rows(
        "batch_steps",
        "Steps until a batch of prompts is full",
        "1",
        minimum(inputs.batch_wait_steps, loop.prompts.per_step / maximum(rate, SMALLEST)),
        "so many prompts arrive in a step",
    )
    return rows(
        "wait_steps",
        "Steps waited for a batch",
        "1",
        HALF * inputs.receive_interval + steps * (1 + HALF * rate * steps) / (1 + rate * steps),
        "prompts that come later wait less",
    )
