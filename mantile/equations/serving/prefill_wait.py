"""What a prompt waits for a worker that only prefills."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.load import Arrivals
from mantile.equations.serving.alone import Prompt
from mantile.equations.serving.loop import Tpot
from mantile.equations.serving.setting import Setting
from mantile.graph.quantity import Node, Quantity, maximum
from mantile.graph.rows import Rows


def _others(alone: Prompt) -> Quantity:
    assert alone.others is not None
    return alone.others


def half_excess(before: Node, elsewhere: Node) -> Node:
    """Half of what the prompts of all others exceed the time of a request without waits by."""
    return HALF * (before - elsewhere)


def wait_in_loop(half: Quantity, before: Node, service: Quantity) -> Node:
    """Mean wait at a single server for requests that come again after their time elsewhere.

    The wait w of a server with fixed service time s and random arrivals is s/2 r/(1 - r). With the share of
    the time r = others' prompts / (time elsewhere + w) this is a quadratic equation.

    Args:
        half: of what the others' prompts exceed the time elsewhere by.
        before: prompts of all others; `service` of one: seconds.
    """
    return half + (half * half + HALF * before * service) ** HALF


@dataclass(frozen=True)
class PrefillWait:
    """Seconds that a prompt waits for a prefill worker.

    Args:
        before: prompts of all others: no wait is longer.
        backlog: that all wait because prefill is too slow.
    """

    before: Quantity
    backlog: Quantity
    mean: Quantity


def prefill_wait(
    rows: Rows, setting: Setting, token: Tpot, served: Quantity, slot: Quantity, load: Arrivals | None
) -> PrefillWait:
    """Rates of prefill and decode workers, how many of them match, and the wait for a prefill worker.

    Prompts come to a worker at random, so that those of others may be there before. Where prefill is too slow
    all that are not in decode wait.
    """
    inputs, decode_inputs, service = setting.inputs, setting.decode_workers.inputs, setting.prompt.service
    assert setting.disaggregated is not None
    applies = setting.disaggregated if load is None else setting.disaggregated * (1 - load.open)
    prefill_rate = rows(
        "prefill_rate",
        "Requests per second of a prefill worker",
        "request/s",
        ONE_REQUEST / service,
    )
    decode_rate = rows(
        "decode_rate",
        "Requests per second of a decode worker",
        "request/s",
        setting.memory.batch * TOKENS_PER_STEP / (inputs.output_tokens * token.tpot),
    )
    ratio = rows(
        "workers_ratio",
        "Prefill workers per decode worker",
        "1",
        decode_rate / prefill_rate,
        "both are fully used at this ratio",
    )
    rows("matched_workers", "Prefill workers that match", "1", ratio * decode_inputs.dp)
    limit = rows(
        "prefill_limit",
        "Requests per second of all prefill workers",
        "request/s",
        prefill_rate * inputs.dp,
    )
    elsewhere = rows(
        "prefill_away", "Time of a request without that wait", "s", served + slot, "prefill included"
    )
    before = rows(
        "prefill_before",
        "Prompts of all others before one's own",
        "s",
        applies * _others(setting.prompt),
        "if all came at once: no wait for a prefill worker is longer",
    )
    backlog = rows(
        "prefill_backlog",
        "Wait where prefill is too slow",
        "s",
        maximum(0, applies * inputs.concurrency / limit - elsewhere),
        "requests that are not in decode",
        source="Little's law",
    )
    takes = rows(
        "prefill_takes",
        "Time of a prompt for which others wait, with the spread of lengths",
        "s",
        service * setting.spread.waits,
    )
    half = rows(
        "prefill_half",
        "Half of what prompts of others exceed that time by",
        "s",
        half_excess(before, elsewhere),
    )
    mean = rows(
        "prefill_wait",
        "Wait for a prefill worker",
        "s",
        maximum(backlog, wait_in_loop(half, before, takes)),
        "the mean; who waits sends no other prompt, so a longer wait makes for fewer: a quadratic equation",
        source="single server, fixed service time, requests that come again",
    )
    return PrefillWait(before, backlog, mean)
