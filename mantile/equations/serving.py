"""From passes to what users see: TTFT, TPOT, end to end, throughput, at a fixed concurrency or a request rate.

Continuous batching: decode is interrupted by other requests' prefills, a new request waits behind them and, where
memory holds fewer requests than there are, for a seat. Static batching: a batch prefills together, then decodes alone.
Disaggregated: decode is not interrupted; a request passes a prefill worker, hands its KV cache over, and decodes elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mantile.equations.constant import (
    HALF,
    NEVER,
    NINETEEN_IN_TWENTY,
    ONE_REQUEST,
    QUARTER,
    SMALLEST,
    TOKENS_PER_STEP,
)
from mantile.equations.forward import Pass
from mantile.equations.inputs import Workload
from mantile.equations.load import Arrivals, arrivals
from mantile.equations.roofline import OVERHEAD
from mantile.equations.scheduler import scheduler
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, all_of, maximum, minimum, span, sum_range, where
from mantile.ir.modules import FULL, ModelGraph
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds, requests per second, tokens per second."""

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    interactivity: Quantity
    requests_per_s: Quantity
    output_tokens_per_s: Quantity
    output_tokens_per_s_per_accelerator: Quantity
    total_tokens_per_s: Quantity
    accelerators: Quantity
    ttft_parts: dict[str, Quantity]
    tpot_parts: tuple[Quantity, ...]
    ttft_p50: Quantity
    ttft_p95: Quantity
    e2e_p50: Quantity
    e2e_p95: Quantity
    sections: tuple[Section, ...]
    load: Arrivals | None = None


def serving(
    ir: ModelGraph,
    library: Library,
    side: Workers,
    decoders: Workers,
    prefill: Pass,
    decode: Pass,
    microbatches: Quantity,
    single: Quantity | None = None,
) -> Serving:
    """The rows of the Serving sheet.

    Args:
        side: accelerators that prefill.
        decoders: those that decode; the same where none are apart.
        microbatches: into which a pipeline of decoders cuts its batch.
        single: time of a decode step with one request, where requests may arrive at a rate.
    """
    inputs, held, reached = side.inputs, decoders.memory, side.efficiency
    continuous, apart = side.ranks.continuous, side.ranks.disaggregated
    together: Node = continuous if apart is None else continuous * (1 - apart)
    words = "0 in static batching" if apart is None else "0 in static batching and where decode is apart"
    kind = scheduler(library, inputs)
    pipes, chunk, occupied, through = _pipeline(prefill, side, ir)
    alone = Quantity(
        "serving.prefill",
        "Prefill of the prompt",
        "s",
        through * where(continuous > 0, reached["prefill_alone"], 1),
        note="time through the stages × prefill of a lone prompt; a static batch has many",
    )
    slowest = Quantity(
        "serving.decode_stage",
        "Time of the fullest decode stage",
        "s",
        _stage_time(decode, decoders, ir),
        note="layers' share of the pass × layers per stage ÷ layers, and the LM head",
    )
    step = Quantity(
        "serving.decode_step",
        "Decode step",
        "s",
        where(decoders.inputs.pp > 1, maximum(decode.time, microbatches * slowest), decode.time),
        note="decode time; with several stages at least micro-batches × time of the fullest stage",
    )
    bubble = Quantity(
        "serving.bubble",
        "Idle share of the fullest stage",
        "1",
        where(decoders.inputs.pp > 1, 1 - microbatches * slowest / step, 0),
        note="1 − micro-batches × time of the fullest stage ÷ decode step: the pipeline's bubble",
    )
    others = Quantity(
        "serving.others",
        "Other requests in the batch",
        "1",
        maximum(0, held.batch / ONE_REQUEST - 1),
        note="batch − 1, at least 0",
    )
    added = Quantity(
        "serving.prefill_added",
        "Time a prompt adds to a step that runs anyway",
        "s",
        occupied * (1 - prefill.parts[OVERHEAD] / prefill.time),
        name="prefill time in a step that runs anyway",
        note="prefill service time × (1 − share of overhead in the pass): launches are paid by the step",
    )
    delay = Quantity(
        "serving.prompt_delay",
        "Time a prompt delays the others",
        "s",
        where(kind.first > 0, occupied, added),
        note="its service time where decode stops for it, else what it adds to their steps",
    )
    places = Quantity(
        "serving.prompts_per_step",
        "Prompts in a full step",
        "1",
        inputs.token_budget / (inputs.input_tokens * ONE_REQUEST),
        note="token budget ÷ input tokens",
    )
    share = Quantity(
        "serving.prompts_per_token",
        "Prompts of others per token of mine",
        "1",
        others * TOKENS_PER_STEP / inputs.output_tokens,
        note="other requests ÷ output tokens: each of them prefills once in my lifetime",
        source="closed loop",
    )
    rate = Quantity(
        "serving.prompts_in_step",
        "Of them in a step",
        "1",
        where(kind.first > 0, share, minimum(share, places)),
        note="at most what a full step holds, unless decode stops for prompts",
    )
    locked = Quantity(
        "serving.lockstep",
        "Requests run in lockstep",
        "flag",
        together * where(all_of(kind.first > 0, inputs.length_spread <= 0), 1, 0),
        note="1 if decode stops for prompts and all lengths are alike: all then end, and are prefilled, together",
    )
    stall = Quantity(
        "serving.stall",
        "Prefill stall per token",
        "s",
        together * reached["interference"] * rate * delay * (1 - HALF * locked),
        note=f"interference × prompts in a step × delay of each, half in lockstep: those prefilled before mine do not count; {words}",
    )
    load, pace, held_up = None, step, stall
    loaded: tuple[Quantity, ...] = ()
    if single is not None:
        load = arrivals(
            inputs,
            held,
            decoders.inputs.dp,
            step,
            single,
            together * reached["interference"] * delay,
            occupied,
        )
        pace = Quantity(
            "serving.step_in_use",
            "Decode step in use",
            "s",
            where(load.open > 0, load.step, step),
            note="at the request rate, or of the batch",
        )
        held_up = Quantity(
            "serving.stall_in_use",
            "Prefill stall in use",
            "s",
            where(load.open > 0, load.stall, stall),
            note="at the request rate, or of the batch",
        )
        loaded = (pace, held_up)
    tpot = Quantity(
        "serving.tpot",
        "Time per output token, TPOT",
        "s",
        pace + held_up,
        note="decode step + prefill stall per token",
        name="TPOT",
    )
    rest = Quantity(
        "serving.generation",
        "Generation after the first token",
        "s",
        (inputs.output_tokens / TOKENS_PER_STEP - 1) * tpot,
        note="(output tokens − 1) × TPOT",
    )
    handling = Quantity(
        "serving.first_token", "Request handling", "s", reached["first_token"], note="first-token overhead"
    )
    running = Quantity(
        "serving.first_step",
        "Running step",
        "s",
        continuous * reached["step_lag"] * pace,
        note="first-step lag × decode step: rest of the one that runs, and the token's way out; 0 in static batching",
    )
    held_back, more = _held_back(inputs, tpot, share, places, continuous)
    hand_over, transfer = _transfer(side, decoders) if apart is not None else ((), None)
    ahead = [handling, alone, running, held_back, *([transfer] if transfer is not None else [])]
    base = Quantity(
        "serving.base",
        "First token without a queue",
        "s",
        sum_range(span(ahead)),
        note="sum of the rows above",
    )
    given = Quantity(
        "serving.prefill_share",
        "Share of the time given to prompts of others",
        "1",
        held_up / tpot,
        note="prefill stall ÷ TPOT",
    )
    full = Quantity(
        "serving.full_step",
        "Step full of prompts",
        "s",
        where(kind.first > 0, occupied * maximum(1, places), step + added * places),
        note="decode step + prompts × what each adds; where decode stops, its prompts alone",
    )
    per_prompt = Quantity(
        "serving.saturated",
        "Service time of a prompt in full steps",
        "s",
        where(kind.first > 0, occupied, full / places),
        note="full step ÷ prompts in it",
    )
    limit = Quantity(
        "serving.saturation",
        "Wait where prompts fill every step",
        "s",
        together
        * (1 - locked)
        * (1 if load is None else 1 - load.open)
        * maximum(0, held.batch / ONE_REQUEST * per_prompt - rest),
        note=f"batch × service time in full steps − generation: the token budget cannot keep up; {words}",
    )
    lined = Quantity(
        "serving.line",
        "Prefills of all others",
        "s",
        others * per_prompt,
        note="other requests × service time of each in full steps: no wait behind prompts is longer, and in lockstep it is their queue",
    )

    def waits(statistic: str, label: str, before: Node) -> tuple[Quantity, Quantity]:
        form = Quantity(
            f"serving.form_{statistic}",
            f"{label}, closed form",
            "s",
            kind.wait(statistic, alone, given, others),
            note="factor × prefill of the prompt × share of the time ^ exponent × others ^ exponent",
        )
        return form, Quantity(
            f"serving.wait_{statistic}",
            label,
            "s",
            minimum(reached["queueing"] * where(locked > 0, before * lined, form), lined),
            note="prefill queueing × closed form, or × prefills of those before me in lockstep; at most those of all others",
        )

    (mean_form, queue), (half_form, median), (bench_form, bench) = (
        waits(name, label, HALF)
        for name, label in (
            ("mean", "Mean wait behind prompts"),
            ("p50", "Median wait behind prompts"),
            ("benchmark", "Median in a benchmark"),
        )
    )
    tail_form, tail = waits("p95", "Wait of one in twenty", NINETEEN_IN_TWENTY)
    shut: Node = maximum(queue, limit - base)
    behind = Quantity(
        "serving.queue",
        "Wait behind other prompts",
        "s",
        shut if load is None else where(load.open > 0, load.wait, shut),
        note="mean wait; where prompts fill every step, what is left of that wait"
        + ("" if load is None else "; at a request rate that of random arrivals"),
    )
    served = Quantity(
        "serving.service_time",
        "Time in the batch",
        "s",
        base + rest,
        note="first token without a queue + generation after it",
    )
    seat = Quantity(
        "serving.seat_wait",
        "Wait for a seat",
        "s",
        (held.requests - held.batch) / held.batch * served,
        note="(requests − batch) ÷ batch × time in the batch: more requests than memory holds",
        source="Little's law",
    )
    rates, line = _rates(side, decoders, occupied, tpot, served, seat) if apart is not None else ((), None)
    steady = Quantity(
        "serving.ttft_steady",
        "TTFT of a service that runs on",
        "s",
        (base + behind + seat) if line is None else base + behind + seat + line,
        note="first token without a queue + waits",
    )
    wave_places = Quantity(
        "serving.burst_prompts",
        "Prompts in a step of the first wave",
        "1",
        minimum(places, held.batch / ONE_REQUEST),
        note="prompts in a full step, at most the batch",
    )
    wave_step = Quantity(
        "serving.burst_step",
        "Step of the first wave",
        "s",
        where(kind.first > 0, occupied * maximum(1, wave_places), step + added * wave_places),
        note="decode step + prompts × what each adds; where decode stops, its prompts alone",
    )
    waiting_steps = Quantity(
        "serving.burst_steps",
        "Steps before a prompt of the first wave",
        "1",
        HALF * (held.batch / ONE_REQUEST / wave_places + 1),
        note="half of (batch ÷ prompts in a step + 1): all requests come at once",
    )
    first_wave = Quantity(
        "serving.burst",
        "TTFT of the first wave",
        "s",
        maximum(base, handling + wave_step * waiting_steps + step) + reached["cold_start"],
        note="request handling + full steps + decode step + cold start",
    )
    first_share = Quantity(
        "serving.first_share",
        "Share of the first wave",
        "1",
        where(inputs.waves > 0, together / maximum(1, inputs.waves), 0),
        note="1 ÷ waves of a benchmark; 0 in a service that runs on",
    )
    burst = Quantity(
        "serving.burst_wait",
        "First wave of a benchmark",
        "s",
        where(first_share > 0, first_share * (first_wave - steady), 0),
        note="share of the first wave × (its TTFT − TTFT of a service that runs on)",
    )
    parts = {
        "Request handling": handling,
        "Prefill of the prompt": alone,
        "Running step": running,
        "Waiting for a batch": held_back,
        **({"KV transfer": transfer} if transfer is not None else {}),
        "Wait behind prompts": behind,
        "Wait for a seat": seat,
        **({"Wait for a prefill worker": line} if line is not None else {}),
        "First wave": burst,
    }
    ttft = Quantity(
        "serving.ttft",
        "Time to first token, TTFT",
        "s",
        steady + burst,
        note="mean: of a service that runs on, and the first wave's share",
        name="TTFT",
    )
    e2e = Quantity("serving.e2e", "End to end", "s", ttft + rest, note="TTFT + (output tokens − 1) × TPOT")
    others_wait: Node = seat if line is None else seat + line
    wait_half = Quantity(
        "serving.wait_half",
        "Median wait in use",
        "s",
        where(inputs.waves > 0, bench, median),
        note="of a benchmark where there are waves",
    )
    halfway: Node = wait_half if load is None else where(load.open > 0, load.wait_p50, wait_half)
    lately: Node = tail if load is None else where(load.open > 0, load.wait_p95, tail)
    half = Quantity(
        "serving.ttft_p50",
        "TTFT, median",
        "s",
        maximum(base + halfway, limit) + others_wait,
        note="first token without a queue + median wait; other waits as in the mean",
    )
    late = Quantity(
        "serving.ttft_p95",
        "TTFT, one in twenty",
        "s",
        maximum(maximum(base + lately, limit) + others_wait, half),
        note="first token without a queue + the wait of one in twenty; other waits as in the mean",
    )
    half_e2e = Quantity(
        "serving.e2e_p50",
        "End to end, median",
        "s",
        half + rest,
        note="median TTFT + generation of a mean output",
    )
    late_e2e = Quantity(
        "serving.e2e_p95",
        "End to end, one in twenty",
        "s",
        maximum(late + rest, half + inputs.long_outputs * rest),
        note="the larger of a late first token and a long output",
    )
    interactivity = Quantity(
        "serving.interactivity",
        "Interactivity",
        "token/request/s",
        TOKENS_PER_STEP / tpot,
        note="1 ÷ TPOT, tokens per second one user sees",
    )
    ramp = Quantity(
        "serving.ramp",
        "Mean load of a benchmark",
        "1",
        where(inputs.waves > 0, 1 - QUARTER / maximum(1, inputs.waves), 1),
        note="1 − a quarter ÷ waves: requests run out at its end; 1 in a service that runs on",
    )
    requests = Quantity(
        "serving.requests_per_s",
        "Requests per second",
        "request/s",
        ramp * inputs.concurrency / e2e
        if load is None
        else where(load.open > 0, load.served, ramp * inputs.concurrency / e2e),
        note="concurrency ÷ end to end × mean load"
        + ("" if load is None else "; at a request rate as they are served"),
        source="Little's law",
    )
    if load is not None:
        flying = Quantity(
            "load.in_flight",
            "Requests in flight",
            "request",
            where(load.open > 0, load.served * e2e, inputs.concurrency),
            note="requests per second that are served × end to end; all replicas",
            source="Little's law",
        )
    output = Quantity(
        "serving.output_tokens_per_s", "Output tokens per second", "token/s", requests * inputs.output_tokens
    )
    count: Node = side.ranks.deployment
    if apart is not None:
        count = side.ranks.deployment + apart * decoders.ranks.deployment
    accelerators = Quantity(
        "serving.accelerators",
        "Accelerators in use",
        "accelerator",
        count,
        name="accelerators in use",
        note="of all replicas" if apart is None else "of prefill and decode workers",
    )
    each = Quantity(
        "serving.output_tokens_per_s_per_accelerator",
        "Output tokens per second and accelerator",
        "token/s/accelerator",
        output / accelerators,
        name="output tokens per accelerator",
    )
    all_tokens = Quantity(
        "serving.total_tokens_per_s",
        "Input and output tokens per second",
        "token/s",
        requests * (inputs.input_tokens + inputs.output_tokens),
    )
    sections = (
        Section("Pipeline", (*pipes, *chunk, slowest), "what uneven stages and chunks cost"),
        *kind.sections,
        Section(
            "Time per output token",
            (others, occupied, added, delay, places, share, rate, step, bubble, locked, stall),
            "of a closed loop",
        ),
        *(
            [Section("Load", load.rows, "one replica; requests arrive at random, whatever is in flight")]
            if load is not None
            else []
        ),
        Section("TPOT", (*loaded, tpot), "mean gap between tokens of one request", Section.SUBTOTAL),
        *([Section("KV transfer", hand_over, "from prefill to decode workers")] if hand_over else []),
        Section(
            "First token without a queue",
            (*more, *ahead, base),
            "on its own, while others decode",
            Section.SUBTOTAL,
        ),
        Section(
            "Waits",
            (
                rest,
                given,
                full,
                per_prompt,
                limit,
                lined,
                mean_form,
                queue,
                half_form,
                median,
                tail_form,
                tail,
                bench_form,
                bench,
                wait_half,
                behind,
                served,
                seat,
                *rates,
                *([line] if line is not None else []),
            ),
            "behind other requests",
        ),
        Section(
            "Time to first token",
            (steady, wave_places, wave_step, waiting_steps, first_wave, first_share, burst, ttft),
            "mean, from arrival",
            Section.SUBTOTAL,
        ),
        Section(
            "One request",
            (e2e, half, late, half_e2e, late_e2e, interactivity),
            "as its user sees it; half, or one in twenty, see more than the figures so called",
        ),
        Section(
            "Throughput",
            (
                ramp,
                requests,
                *((flying,) if load is not None else ()),
                output,
                accelerators,
                each,
                all_tokens,
            ),
            "whole deployment, all replicas",
        ),
    )
    return Serving(
        ttft,
        tpot,
        e2e,
        interactivity,
        requests,
        output,
        each,
        all_tokens,
        accelerators,
        parts,
        (pace, held_up),
        half,
        late,
        half_e2e,
        late_e2e,
        sections,
        None if load is None else replace(load, in_flight=flying),
    )


def _held_back(
    inputs: Workload, tpot: Quantity, arrivals: Quantity, places: Quantity, continuous: Quantity
) -> tuple[Quantity, tuple[Quantity, ...]]:
    """What a scheduler lets pass before it takes requests up, as its flags say: half of the steps between two looks, and steps to fill a batch."""
    steps = Quantity(
        "serving.batch_steps",
        "Steps until a batch of prompts is full",
        "1",
        minimum(inputs.batch_wait, places / maximum(arrivals, SMALLEST)),
        note="as asked, at most prompts of a full step ÷ prompts that arrive in a step",
    )
    waited = Quantity(
        "serving.wait_steps",
        "Steps waited for a batch",
        "1",
        HALF * inputs.receive_interval + steps * (1 + HALF * arrivals * steps) / (1 + arrivals * steps),
        note="half the receive interval + steps of the batch wait, fewer for those that come later",
    )
    return Quantity(
        "serving.held_back",
        "Waiting for a batch",
        "s",
        continuous * waited * tpot,
        note="steps waited × TPOT",
    ), (steps, waited)


def _stage_time(done: Pass, side: Workers, ir: ModelGraph) -> Node:
    """Time of the fullest stage: its share of the layers' time, or the last stage with the LM head where the layers divide."""
    head = next(block for block in done.blocks if block.id == "lm_head")
    return (done.time - head.time) * side.plan.stages.fullest / ir.total_layers + where(
        side.plan.layers_left > 0, 0, head.time
    )


def _pipeline(
    done: Pass, side: Workers, ir: ModelGraph
) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...], Quantity, Quantity]:
    """Stages of a pipeline work on chunks of a prompt one after the other: rows, those of chunks, time a prompt occupies, time until it is through."""
    inputs = side.inputs
    chunks = Quantity(
        "serving.prefill_chunks",
        "Chunks of a prompt",
        "1",
        maximum(1, inputs.input_tokens * ONE_REQUEST / inputs.token_budget),
        note="input tokens ÷ token budget, at least 1; the last may be a part",
    )
    slowest = Quantity(
        "serving.prefill_stage",
        "Time of the fullest prefill stage",
        "s",
        _stage_time(done, side, ir),
        note="layers' share of the pass × layers per stage ÷ layers, and the LM head",
    )
    busy = Quantity(
        "serving.prefill_busy",
        "Time a prefill pass occupies the pipeline",
        "s",
        where(inputs.pp > 1, slowest, done.time),
        note="the fullest stage's; the whole pass without a pipeline",
    )
    occupied = Quantity(
        "serving.prefill_service",
        "Time a prompt occupies the pipeline",
        "s",
        busy / maximum(1, done.phase.requests / ONE_REQUEST),
        note="of the pass ÷ prompts in it",
        name="prefill service time",
    )
    host = next(block for block in done.blocks if block.id == "host")
    fixed = Quantity(
        "serving.prefill_fixed",
        "Time of a stage for every chunk",
        "s",
        minimum(slowest, (done.parts[OVERHEAD] + host.time) / inputs.pp),
        note="(launches and host + reads from host memory) ÷ PP: paid for each chunk again",
    )
    each = Quantity(
        "serving.prefill_chunk",
        "Time of a chunk on the fullest stage",
        "s",
        (slowest - fixed) / chunks + fixed,
        note="what is not fixed, ÷ chunks, + the fixed time",
    )
    through = Quantity(
        "serving.prefill_through",
        "Time of a prompt through the stages",
        "s",
        where(inputs.pp > 1, minimum(done.time, (chunks + inputs.pp - 1) * each), done.time),
        note="prefill time; through several stages (chunks + stages − 1) × time of a chunk, at most one after the other",
    )
    return (slowest, busy, fixed), (chunks, each, through), occupied, through


def _transfer(side: Workers, decoders: Workers) -> tuple[tuple[Quantity, ...], Quantity]:
    """The KV cache of a prompt on its way to a decode worker."""
    inputs, apart = side.inputs, side.ranks.disaggregated
    assert apart is not None
    tokens: dict[Node | None, Quantity] = {}
    each: list[Quantity] = []
    for module, width, _ in side.memory.caches.growing:
        reach = getattr(module.operation, "span", FULL)
        limit = reach.length if reach.kind in ("sliding", "chunked") else None
        if limit not in tokens:
            words = "" if limit is None else f", {limit.label.lower()}"
            far: Node = (
                inputs.input_tokens
                if limit is None
                else where(limit > 0, minimum(limit, inputs.input_tokens), inputs.input_tokens)
            )
            tokens[limit] = Quantity(
                f"serving.transfer_tokens{'' if limit is None else '.' + limit.id.removeprefix('model.')}",
                f"Tokens handed over{words}",
                "token/request",
                far,
                note="the prompt, or as much of it as is kept",
            )
        assert module.layers is not None
        each.append(
            Quantity(
                f"serving.transfer.{module.id}",
                f"KV cache of a prompt, {module.label}",
                "B",
                ONE_REQUEST * tokens[limit] * width * side.formats.kv_bytes * module.layers,
                note="tokens handed over × width × bytes per KV value × layers, each once",
            )
        )
    size = Quantity(
        "serving.transfer_bytes",
        "KV cache of a prompt",
        "B",
        sum_range(span(each)) if each else ONE_REQUEST * 0,
        note="sum of the rows above; recurrent states are left out",
    )
    rate = Quantity(
        "serving.transfer_bandwidth",
        "Bandwidth of the transfer",
        "B/s",
        minimum(
            side.network.out * inputs.tp * inputs.cp,
            decoders.network.out * decoders.inputs.tp * decoders.inputs.cp,
        ),
        note="network bandwidth × ranks of an attention group, of the side with less",
    )
    whole = Quantity(
        "serving.transfer_time",
        "Transfer, nothing hidden",
        "s",
        where(rate > 0, side.efficiency["network_latency"] + size / rate, NEVER),
        note="network latency + bytes ÷ bandwidth; never without a network",
    )
    seen = Quantity(
        "serving.transfer",
        "KV transfer",
        "s",
        where(apart > 0, whole * (1 - side.efficiency["kv_transfer_overlap"]), 0),
        note="what is not hidden behind prefill; 0 where serving is aggregated",
    )
    return (*tokens.values(), *each, size, rate, whole), seen


def _rates(
    side: Workers, decoders: Workers, occupied: Quantity, tpot: Quantity, served: Quantity, seat: Quantity
) -> tuple[tuple[Quantity, ...], Quantity]:
    """What prefill and decode workers can each do, how many of one the other needs, and the wait where prefill is too slow."""
    inputs, apart = side.inputs, side.ranks.disaggregated
    assert apart is not None
    each = Quantity(
        "serving.prefill_rate", "Requests per second of a prefill worker", "request/s", ONE_REQUEST / occupied
    )
    one = Quantity(
        "serving.decode_rate",
        "Requests per second of a decode worker",
        "request/s",
        decoders.memory.batch * TOKENS_PER_STEP / (inputs.output_tokens * tpot),
        note="batch ÷ (output tokens × TPOT)",
    )
    ratio = Quantity(
        "serving.workers_ratio",
        "Prefill workers per decode worker",
        "1",
        one / each,
        note="at which both are fully used: the rate match",
    )
    matched = Quantity(
        "serving.matched_workers",
        "Prefill workers that match",
        "1",
        ratio * decoders.inputs.dp,
        note="prefill workers per decode worker × decode workers",
    )
    most = Quantity(
        "serving.prefill_limit", "Requests per second of all prefill workers", "request/s", each * inputs.dp
    )
    line = Quantity(
        "serving.prefill_wait",
        "Wait for a prefill worker",
        "s",
        apart * maximum(0, inputs.concurrency / most - served - seat),
        note="concurrency ÷ what prefill workers can do − time in the batch − wait for a seat; 0 where they keep up",
        source="Little's law",
    )
    return (each, one, ratio, matched, most), line
