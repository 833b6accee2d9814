"""How long a request has its place in the batch, what it waits for one, and the burst of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import BILLION, HALF, ONE_REQUEST
from mantile.equations.load import Arrivals
from mantile.equations.serving.first import Base
from mantile.equations.serving.loop import ClosedLoop, Tpot
from mantile.equations.serving.prefill_wait import PrefillWait, prefill_wait
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.waits import Waits
from mantile.graph.quantity import Node, Quantity, Section, all_of, maximum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Slots:
    """How long a request has its place in the batch, and what it waits for one.

    Args:
        in_batch: seconds that a request holds its slot.
        waits: mean waits for a batch slot and, where there are decode workers, for a prefill worker.
        burst_wait: what the warm-up burst of a benchmark adds to the mean wait.
        burst: TTFT in that burst, without a wait for a slot; `first_in_burst` of its first request;
            `burst_share` share of the requests in it.
        of_prefill: waits for a prefill worker; None in a workbook without decode workers.
    """

    in_batch: Quantity
    waits: tuple[Quantity, ...]
    burst_wait: Quantity
    burst: Quantity
    first_in_burst: Node
    burst_share: Quantity
    section: Section
    of_prefill: PrefillWait | None = None


def batch_slots(
    setting: Setting, loop: ClosedLoop, token: Tpot, first: Base, waits: Waits, load: Arrivals | None
) -> Slots:
    """The time in the batch and, by Little's law, the wait for a place in it, and for a prefill worker."""
    rows, memory = Rows("serving"), setting.memory
    in_burst, first_in_burst, share, burst_wait = burst(rows, setting, loop, first, waits, load)
    in_batch = rows(
        "service_time",
        "Time in the batch",
        "s",
        first.base + waits.mean + burst_wait + waits.generation,
        "from the first look at a request to its last token",
    )
    held, apart = in_batch, setting.disaggregated
    if apart is not None:
        held = rows(
            "slot_held",
            "Time a request holds its batch slot",
            "s",
            where(apart > 0, waits.generation, in_batch),
            "that of a decode worker from the first token on",
        )
    behind: Node = maximum(0, memory.requests / memory.batch * held - in_batch)
    if apart is not None:
        behind = where(all_of(apart > 0, setting.decoding.batch < memory.batch), 0, behind)
    if load is not None:
        behind = (1 - load.open) * behind
    steady = rows(
        "slot_wait",
        "Wait for a batch slot in steady state",
        "s",
        behind,
        "there are more requests than the batch holds",
        source="Little's law",
    )
    slot = rows(
        "seat_wait",
        "Wait for a batch slot",
        "s",
        steady * (1 - HALF * share),
        "in the warm-up burst of a benchmark half of it",
    )
    waiting = [slot]
    of_prefill = None
    if setting.disaggregated is not None:
        of_prefill = prefill_wait(rows, setting, token, in_batch, steady, load)
        waiting.append(of_prefill.mean)
    return Slots(
        in_batch=held,
        waits=tuple(waiting),
        burst_wait=burst_wait,
        burst=in_burst,
        first_in_burst=first_in_burst,
        burst_share=share,
        section=rows.section("Batch slots", "the time of a request in the batch, and the wait for a slot"),
        of_prefill=of_prefill,
    )


def burst(
    rows: Rows,
    setting: Setting,
    loop: ClosedLoop,
    first: Base,
    waits: Waits,
    load: Arrivals | None,
) -> tuple[Quantity, Node, Quantity, Quantity]:
    """The warm-up burst of a benchmark, in which all requests come at once: TTFT, that of its first request,
    its share, what it adds.
    """
    per_slot, batch = setting.inputs.prompts_per_slot, setting.memory.batch / ONE_REQUEST
    in_loop = setting.interleaved if load is None else setting.interleaved * (1 - load.open)
    steps = rows(
        "burst_steps",
        "Steps before a prompt of the warm-up burst",
        "1",
        HALF * (batch / loop.prompts.most + 1),
        "all requests come at once",
    )
    cold: Node = setting.efficiency["cold_start"]
    if setting.experts is not None:
        of_experts = setting.efficiency["expert_cold_start"] * (setting.experts / BILLION)
        cold = cold + of_experts
    cold = rows(
        "cold_start",
        "Cold start of the warm-up burst",
        "s",
        cold,
        "all requests of it wait for that; none where the server is warm",
    )
    in_burst = rows(
        "burst",
        "TTFT of the warm-up burst",
        "s",
        maximum(first.base, setting.prompt.handling + waits.full_step * steps + loop.step) + cold,
    )
    share = rows(
        "first_share",
        "Share of the warm-up burst",
        "1",
        where(per_slot > 0, in_loop / maximum(1, per_slot), 0),
        "of the requests of a benchmark; a service in steady state has none, and none comes at a rate",
    )
    wait = rows(
        "burst_wait",
        "Warm-up burst of a benchmark",
        "s",
        where(share > 0, share * (in_burst - first.base - waits.mean), 0),
        "by which its mean TTFT is longer",
    )
    return in_burst, first.base + cold, share, wait
