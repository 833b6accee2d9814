"""A full batch in which the next request follows each that ends: decode step, prompts of others, TPOT."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, SMALLEST, TOKENS_PER_STEP
from mantile.equations.mixed import beside_products, mixed_step
from mantile.equations.serving.setting import Setting
from mantile.graph.quantity import Node, Quantity, Section, all_of, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Prompts:
    """What prompts of other requests cost a request of a full batch.

    Args:
        others: requests in the batch beside one.
        added: seconds by which it lengthens a step that runs anyway; `delay` by which it delays the others,
            `held` with what the host takes where that is longer.
        per_token: prompts of other requests per token of one; `in_step` in a step.
        most: prompts in the fullest step there can be.
    """

    others: Quantity
    added: Quantity
    delay: Quantity
    held: Quantity
    per_token: Quantity
    in_step: Quantity
    most: Quantity


@dataclass(frozen=True)
class ClosedLoop:
    """A full batch, in which the next request follows each that ends.

    Args:
        step, stall: seconds of a decode step, and lost to prompts per token.
    """

    prompts: Prompts
    step: Quantity
    stall: Quantity
    section: Section


def closed_loop(setting: Setting) -> ClosedLoop:
    """Decode step and prefill stall of a full batch."""
    rows = Rows("serving")
    rows.add(*setting.paced.rows)
    others = prompts(rows, setting)
    step = setting.paced.step
    together = rows(
        "together",
        "Requests start together",
        "flag",
        where(setting.inputs.prompts_per_slot > 0, 1, 0),
        "those of a benchmark; of a service nobody says it",
    )
    alike = rows(
        "alike",
        "Requests of equal lengths, prompts first",
        "flag",
        where(
            all_of(
                setting.scheduler.first > 0,
                setting.inputs.length_range_ratio <= 0,
                setting.inputs.output_tokens > TOKENS_PER_STEP,
            ),
            1,
            0,
        ),
        "with a second token at least",
    )
    synchronous_share: Node = setting.interleaved * alike * HALF * (1 + together)
    thinking = None
    if setting.inputs.sessions is not None:
        assert setting.inputs.think_time is not None
        thinking = rows(
            "thinking",
            "Time between an answer and the next request",
            "s",
            where(setting.inputs.by_sessions, setting.inputs.think_time, 0),
            "of sessions; else the next request follows at once",
        )
        apart = rows(
            "thought_apart",
            "Share of a synchronous batch that think times take apart",
            "1",
            minimum(1, thinking / maximum(SMALLEST * step, others.others * others.held)),
            "all of it where they are as long as the prompts of all others",
        )
        synchronous_share = synchronous_share * (1 - apart)
    synchronous = rows(
        "lockstep",
        "Share of a synchronous batch",
        "1",
        synchronous_share,
        "of equal lengths: requests that start together end, and are prefilled, together; half where that "
        "is not known",
    )
    gaps = rows(
        "gaps",
        "Output tokens against the gaps between them",
        "1",
        setting.inputs.output_tokens / maximum(1, setting.inputs.output_tokens - TOKENS_PER_STEP),
        "a synchronous batch has all its prompts in these gaps",
    )
    stalled = rows(
        "stalled",
        "Share of the prompts of others that stall a request",
        "1",
        1 - synchronous + synchronous * HALF * gaps,
        "in a synchronous batch those after one's own",
    )
    stall = rows(
        "stall",
        "Prefill stall per token",
        "s",
        setting.interleaved * setting.efficiency["interference"] * others.in_step * others.held * stalled,
        "in a synchronous batch prompts before one's own do not count",
    )
    return ClosedLoop(
        prompts=others,
        step=step,
        stall=stall,
        section=rows.section("Time per output token", "of a closed loop"),
    )


def prompts(rows: Rows, setting: Setting) -> Prompts:
    """Prompts of the other requests of the batch: what each costs, and how many there are."""
    inputs, stops, stages = setting.inputs, setting.scheduler.first, setting.prompt.stages
    others = rows(
        "others",
        "Other requests in the batch",
        "1",
        maximum(0, setting.decode_workers.rows["memory.batch"] / ONE_REQUEST - 1),
    )
    per_step = rows(
        "prompts_per_step",
        "Prompts in a full step",
        "1",
        setting.prefill_workers.rows["memory.step_tokens"] / (setting.prefill_workers.prompt * ONE_REQUEST),
    )
    per_token = rows(
        "prompts_per_token",
        "Prompts of others per step of a request",
        "1",
        (
            others
            + setting.decode_workers.rows["memory.batch"]
            / ONE_REQUEST
            * setting.decode_workers.rows["memory.redone"]
        )
        * setting.emitted
        / inputs.output_tokens,
        "each of them prefills once while the request lives, and all again that lose their places",
        source="closed loop",
    )
    in_step = rows(
        "prompts_in_step",
        "Prompts of others in a step",
        "1",
        where(stops > 0, per_token, minimum(per_token, per_step)),
        "steps that carry prompts hold a limited number",
    )
    most = rows(
        "prompts_at_most",
        "Most prompts in a step",
        "1",
        minimum(per_step, setting.decode_workers.rows["memory.batch"] / ONE_REQUEST),
        "as many as there are, and as the token budget allows",
    )
    together = rows(
        "prompts_together",
        "Prompts in a step that carries any",
        "1",
        minimum(
            most,
            maximum(
                minimum(1, per_step),
                in_step * maximum(1, maximum(inputs.receive_interval, inputs.batch_wait_steps)),
            ),
        ),
        "all that arrive between two looks of the scheduler, or while it waits for more; a part of one where "
        "the token budget is smaller than a prompt",
    )
    beside = beside_products(setting)
    step = mixed_step(setting, beside, together, stops)
    rows.add(*beside.rows, *step.rows)
    added = rows(
        "prefill_added",
        "Time a prompt adds to a step that runs anyway",
        "s",
        step.longer / together,
        "weights are read once in a step, launches are paid by it",
        called="prefill time in a step that runs anyway",
    )
    delay = rows(
        "prompt_delay",
        "Time a prompt delays the others",
        "s",
        added + where(stops > 0, stages.launches * stages.share / maximum(1, together), 0),
        "decode stops for it and its launches, or carries it in a step",
    )
    host = rows(
        "prompt_host",
        "Host time of a prompt",
        "s",
        setting.prompt.host * stages.share / maximum(1, together),
        "no graph holds a step with prompts: the host starts its operations one by one, once for all of them",
    )
    covered = rows(
        "prompt_covered",
        "Host time that the decode beside a prompt covers",
        "s",
        where(stops > 0, 0, setting.covers * stages.share / together),
    )
    waited: Node = delay
    if setting.paced.idle is not None:
        waited = rows(
            "prompt_beyond",
            "Time a prompt takes beyond what accelerators wait for the host",
            "s",
            maximum(0, delay - where(stops > 0, 0, setting.paced.idle * stages.share / together)),
            "it runs where they would wait",
        )
    held = rows(
        "prompt_held",
        "Time the others wait for a prompt",
        "s",
        maximum(waited, host - covered),
        "no step with prompts is over before the host has started it",
    )
    full = mixed_step(setting, beside, most, stops, is_full=True)
    rows.add(*full.rows)
    return Prompts(
        others=others,
        added=added,
        delay=delay,
        held=held,
        per_token=per_token,
        in_step=in_step,
        most=most,
    )
