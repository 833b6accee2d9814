"""Time to a first token without a queue, while others decode."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST
from mantile.equations.load import Arrivals
from mantile.equations.serving.loop import ClosedLoop, Tpot
from mantile.equations.serving.setting import Setting
from mantile.graph.quantity import Node, Quantity, Section, maximum, minimum, sum_of, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Base:
    """Seconds to a first token on one's own, while others decode, and the parts they consist of."""

    base: Quantity
    parts: tuple[Quantity, ...]
    section: Section


def base(setting: Setting, loop: ClosedLoop, token: Tpot, load: Arrivals | None) -> Base:
    """Time to a first token without a queue."""
    factors, continuous, alone = setting.efficiency, setting.continuous, setting.prompt
    rows = Rows("serving")
    others: Node = loop.prompts.others
    if load is not None:
        others = where(load.open > 0, load.decoding / ONE_REQUEST, others)
    steps = wait_steps(rows, setting, loop)
    running = rows(
        "first_step",
        "Running step",
        "s",
        continuous * minimum(1, others) * factors["step_lag"] * token.step,
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
        section=rows.section(
            "First token without a queue", "on its own, while others decode", Section.SUBTOTAL
        ),
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
