"""What a request waits behind prompts of others, and where prompts fill every step."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.load import Arrivals
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import ClosedLoop, Tpot
from mantile.equations.serving.setting import Setting
from mantile.graph.quantity import Node, Quantity, Section, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Waits:
    """Seconds that a request waits behind prompts of others, in its place of the batch.

    Args:
        generation: seconds from the first token to the last.
        full_step: seconds of a step full of prompts; `saturation` wait where they fill every step;
            `saturated` for which a prompt then occupies the replica.
        line: prefills of all others.
        mean: wait behind prompts; `random` without what all wait where prompts fill every step.
    """

    generation: Quantity
    full_step: Quantity
    saturation: Quantity
    saturated: Quantity
    line: Quantity
    mean: Quantity
    random: Quantity
    section: Section


def queue(setting: Setting, loop: ClosedLoop, token: Tpot, first: Base, load: Arrivals | None) -> Waits:
    """Waits behind other prompts."""
    rows = Rows("serving")
    generation = rows(
        "generation",
        "Generation after the first token",
        "s",
        (setting.inputs.output_tokens / TOKENS_PER_STEP - 1) * token.tpot,
    )
    share = rows(
        "prefill_share", "Share of the time given to prompts of others", "1", token.stall / token.whole
    )
    full_step, service, limit, line = saturation(rows, setting, loop, generation, load)

    form = rows(
        "form_mean",
        "Mean wait, closed form",
        "s",
        setting.scheduler.wait(setting.prompt.prefill, share, loop.prompts.others),
    )
    queued = loop.synchronous * HALF * line + (1 - loop.synchronous) * form
    mean = rows(
        "wait_mean",
        "Mean wait behind prompts",
        "s",
        minimum(setting.efficiency["queueing"] * setting.spread.waits * queued, line),
    )
    in_loop: Node = maximum(mean, limit - first.base)
    behind_prompts = rows(
        "queue",
        "Wait behind other prompts",
        "s",
        in_loop if load is None else where(load.open > 0, load.wait, in_loop),
        "the mean; where prompts fill every step, what is left of that wait",
    )
    return Waits(
        generation=generation,
        full_step=full_step,
        saturation=limit,
        saturated=service,
        line=line,
        mean=behind_prompts,
        random=mean,
        section=rows.section("Waits", "behind prompts of other requests"),
    )


def saturation(
    rows: Rows, setting: Setting, loop: ClosedLoop, generation: Quantity, load: Arrivals | None
) -> tuple[Quantity, Quantity, Quantity, Quantity]:
    """A step full of prompts, what each takes of it, the wait where they fill every step, and the prefills of
    all others.

    No wait exceeds the last.
    """
    stops = setting.scheduler.first
    prompts, stages = loop.prompts, setting.prompt.stages
    launches = rows(
        "full_launches",
        "Launches of a full step",
        "s",
        stages.launches * minimum(1, prompts.most) * stages.share,
        "where decode stops for prompts",
    )
    started = rows(
        "full_host",
        "Host time of a full step beyond its decode",
        "s",
        maximum(
            0,
            setting.prompt.host * minimum(1, prompts.most) - where(stops > 0, 0, setting.covers),
        )
        * stages.share,
        "no step with prompts is over before the host has started it",
    )
    in_step: Node = prompts.in_full_step + where(stops > 0, launches, 0)
    if setting.paced.idle is not None:
        in_step = in_step - where(stops > 0, 0, setting.paced.idle)
    of_prompts = rows("full_prompts", "Prompts of a full step, or its host", "s", maximum(in_step, started))
    full_step = rows(
        "full_step",
        "Step full of prompts",
        "s",
        where(stops > 0, of_prompts, loop.step + setting.efficiency["interference"] * of_prompts),
        "theirs alone where decode stops for them",
    )
    service = rows(
        "saturated",
        "Service time of a prompt in full steps",
        "s",
        full_step / prompts.most,
    )
    applies = setting.interleaved * where(loop.synchronous < 1, 1, 0)
    if load is not None:
        applies = applies * (1 - load.open)
    may_fill = rows("fills", "Prompts may fill every step", "1", applies, "not where all start together")
    limit = rows(
        "saturation",
        "Wait where prompts fill every step",
        "s",
        may_fill
        * maximum(0, setting.memory.batch / ONE_REQUEST * service * (1 + setting.memory.redone) - generation),
        "the token budget cannot keep up",
    )
    line = rows(
        "line",
        "Prefills of all others",
        "s",
        loop.prompts.others * service,
        "no wait behind prompts is longer; in a synchronous batch they are the queue",
    )
    return full_step, service, limit, line
