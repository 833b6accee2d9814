"""From passes to what users see: TTFT, TPOT, end to end, throughput, at a concurrency or a request rate.

Continuous batching: prompts of other requests interrupt decode. A new request waits behind them and, where
memory holds fewer requests than there are, for a batch slot. Static batching: a batch prefills together, then
decodes. Disaggregated: nothing interrupts decode; the KV cache of a prompt goes from one worker to another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from mantile.equations.constant import (
    BEYOND_P50,
    BEYOND_P95,
    BILLION,
    HALF,
    ONE_REQUEST,
    P95,
    SMALLEST,
    TOKENS_PER_STEP,
)
from mantile.equations.decode import Decoding
from mantile.equations.efficiency import Efficiency
from mantile.equations.forward import Pass
from mantile.equations.framework import Frameworks
from mantile.equations.inputs import Workload
from mantile.equations.load import Arrivals, Concurrency, StepTimes, arrivals, concurrency, opened
from mantile.equations.memory import Memory
from mantile.equations.mixed import mixed_step
from mantile.equations.network import NO_WAY
from mantile.equations.roofline import OVERHEAD
from mantile.equations.scheduler import Scheduler, interleaved
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    defined,
    is_number,
    logarithm,
    maximum,
    minimum,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import FULL, ModelGraph, Module


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds, requests per second, tokens per second.

    Args:
        ttft_parts, tpot_parts: what adds up to TTFT and to TPOT.
        load, concurrency: the state under a request rate, and the requests in flight that follow from it;
            None where none may be given.
    """

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    interactivity: Quantity
    requests_per_s: Quantity
    output_tokens_per_s: Quantity
    output_tokens_per_s_per_accelerator: Quantity
    total_tokens_per_s: Quantity
    accelerators: Quantity
    ttft_parts: tuple[Quantity, ...]
    tpot_parts: tuple[Quantity, ...]
    ttft_p50: Quantity
    ttft_p95: Quantity
    e2e_p50: Quantity
    e2e_p95: Quantity
    prompt_time: Quantity
    in_batch: Node
    slots: Node
    step: Quantity
    sections: tuple[Section, ...]
    load: Arrivals | None = None
    concurrency: Concurrency | None = None


@dataclass(frozen=True)
class _Setting:
    """What serves: the workers that prefill and those that decode, their passes, and the scheduler."""

    ir: ModelGraph
    prefill_workers: Workers
    decode_workers: Workers
    prefill: Pass
    decode: Pass
    scheduler: Scheduler
    decoding: Decoding
    paced: DecodeStep
    prompt: Prompt
    experts: Quantity | None

    @property
    def inputs(self) -> Workload:
        """What is asked."""
        return self.prefill_workers.inputs

    @property
    def memory(self) -> Memory:
        """Memory of the workers that hold the batch."""
        return self.decode_workers.memory

    @property
    def efficiency(self) -> Efficiency:
        """Factors of the workers that prefill."""
        return self.prefill_workers.efficiency

    @property
    def continuous(self) -> Quantity:
        """1 in continuous batching, 0 in static."""
        return self.prefill_workers.ranks.continuous

    @property
    def disaggregated(self) -> Quantity | None:
        """1 where prefill and decode have workers of their own; None in a workbook without."""
        return self.prefill_workers.ranks.disaggregated

    @property
    def interleaved(self) -> Node:
        """1 where prompts interrupt decode steps: in continuous batching of aggregated serving."""
        return interleaved(self.prefill_workers.ranks)


def serving(
    ir: ModelGraph,
    turns: Scheduler,
    prefill_workers: Workers,
    decode_workers: Workers,
    prefill: Pass,
    decode: Pass,
    decoding: Decoding,
    paced: DecodeStep,
    alone: Prompt,
    experts: Quantity | None = None,
    steps: StepTimes | None = None,
) -> Serving:
    """The rows of the Serving sheet.

    Args:
        decode_workers: the same as the prefill workers where none are described apart.
        turns: how prompts get their turn.
        decoding: what a decode step works on; `paced` its time.
        alone: a prompt by itself.
        experts: parameters of the routed experts.
        steps: decode steps of the smallest and the largest batch, where requests may arrive at a rate.
    """
    setting = _Setting(
        ir=ir,
        prefill_workers=prefill_workers,
        decode_workers=decode_workers,
        prefill=prefill,
        decode=decode,
        scheduler=turns,
        decoding=decoding,
        paced=paced,
        prompt=alone,
        experts=experts,
    )
    stages = alone.stages
    loop = closed_loop(setting)
    load = settled = None
    if steps is not None:
        load, settled = _load(setting, loop, steps)
    token = tpot(loop, load)
    first = base(setting, loop, token, load)
    waits = queue(setting, loop, token, first, load)
    slots = batch_slots(setting, loop, token, first, waits, load)
    start = ttft(first, waits, slots)
    request = e2e(setting, token, first, waits, slots, start)
    total = throughput(setting, token, waits, slots, request.e2e, load)
    return Serving(
        ttft=start.ttft,
        tpot=token.tpot,
        e2e=request.e2e,
        interactivity=request.interactivity,
        requests_per_s=total.requests,
        output_tokens_per_s=total.output,
        output_tokens_per_s_per_accelerator=total.output_per_accelerator,
        total_tokens_per_s=total.tokens,
        accelerators=total.accelerators,
        ttft_parts=(*first.parts, waits.mean, *slots.waits, slots.burst_wait),
        tpot_parts=(token.step, token.stall),
        ttft_p50=request.ttft_p50,
        ttft_p95=request.ttft_p95,
        e2e_p50=request.e2e_p50,
        e2e_p95=request.e2e_p95,
        prompt_time=stages.through,
        in_batch=slots.in_batch if load is None else where(load.open > 0, 0, slots.in_batch),
        slots=setting.memory.batch if load is None else where(load.open > 0, load.most, setting.memory.batch),
        step=token.step,
        sections=(
            setting.scheduler.forms,
            loop.section,
            *(() if load is None else (_load_section(load), Section(STATE, load.state, "at the rate"))),
            token.section,
            first.section,
            waits.section,
            slots.section,
            start.section,
            request.section,
            total.section,
        ),
        load=None if load is None else replace(load, in_flight=total.in_flight),
        concurrency=settled,
    )


def _load(setting: _Setting, loop: _ClosedLoop, steps: StepTimes) -> tuple[Arrivals, Concurrency]:
    """The state under a request rate, from a step with one request and one with a full batch, and the
    concurrency that follows.
    """
    alone = setting.prompt
    before_decode = (alone.stages.through, *(() if alone.transfer is None else (alone.transfer,)))
    rates = arrivals(
        setting.inputs,
        setting.decoding.batch,
        setting.decode_workers.inputs.dp,
        loop.step,
        steps,
        setting.interleaved * setting.efficiency["interference"],
        loop.prompts.delay * (1 + setting.memory.redone),
        setting.prompt.service + setting.interleaved * setting.memory.redone * loop.prompts.delay,
    )
    settled = concurrency(setting.inputs, setting.memory, setting.decoding.batch, rates, before_decode, steps)
    return opened(setting.inputs, rates, settled.default), settled


STATE = "State"
"""The block of the Serving sheet before which the concurrency at a rate is worked out."""


def _load_section(load: Arrivals) -> Section:
    return Section("Load", load.rows, "one replica; requests arrive at random, whatever is in flight")


@dataclass(frozen=True)
class Pipeline:
    """Seconds of a prefill pass in the pipeline, through it, in launches.

    Args:
        share: of a pass on the fullest stage.
        chunks: of a prompt.
    """

    busy: Quantity
    through: Quantity
    launches: Quantity
    share: Quantity
    chunks: Quantity


@dataclass(frozen=True)
class Prompt:
    """A prompt by itself, whatever decodes: seconds.

    Args:
        service: for which it occupies the pipeline.
        handling: of the request before its prefill; `prefill` of the prompt; `transfer` of its KV cache to
            a worker that decodes, None in a workbook without any.
        others: prompts of all others at a worker that prefills; None in a workbook without any.
    """

    stages: Pipeline
    service: Quantity
    handling: Quantity
    prefill: Quantity
    transfer: Quantity | None
    others: Quantity | None
    sections: tuple[Section, ...]


def prompt(
    ir: ModelGraph,
    known: Frameworks,
    prefill_workers: Workers,
    decode_workers: Workers,
    prefill: Pass,
) -> Prompt:
    """A prompt from arrival to the workers that decode, without any wait."""
    ranks, factors = prefill_workers.ranks, prefill_workers.efficiency
    pipe = Rows("serving")
    stages = pipeline(pipe, ir, known, prefill_workers, prefill)
    service = pipe(
        "prefill_service",
        "Time a prompt occupies the pipeline",
        "s",
        stages.busy / maximum(1, prefill.phase.requests / ONE_REQUEST),
        called="prefill service time",
    )
    host = pipe(
        "prefill_host",
        "Time of the host to start the operations of a prompt",
        "s",
        stages.chunks * operations(pipe, prefill) * factors["eager_launch"],
        "one by one, those of a decode step as one graph",
    )
    handling = pipe("first_token", "Request handling", "s", factors["first_token"])
    of_prompt = pipe(
        "prefill",
        "Prefill of the prompt",
        "s",
        maximum(stages.through, host),
        "the host starts operations while others run",
    )
    handover = others = None
    sections: list[Section] = []
    if ranks.disaggregated is not None:
        inputs = prefill_workers.inputs
        others = pipe(
            "prefill_others",
            "Prompts of all others at a prefill worker",
            "s",
            maximum(0, inputs.concurrency / inputs.dp / ONE_REQUEST - 1) * service,
        )
        handover, section = transfer(prefill_workers, decode_workers)
        sections.append(section)
    return Prompt(
        stages=stages,
        service=service,
        handling=handling,
        prefill=of_prompt,
        transfer=handover,
        others=others,
        sections=(pipe.section("A prompt by itself", "through stages, chunk by chunk"), *sections),
    )


def operations(rows: Rows, prefill: Pass) -> Quantity:
    """Operations of a prefill pass, those of all layers."""
    counts = Counter(block.module.layers for block in prefill.blocks if block.module is not None)
    of_groups: list[Node] = []
    for number, (layers, count) in enumerate(counts.items(), start=1):
        once = defined(
            f"serving.operations.{number}",
            "Operations outside layers" if layers is None else f"Operations of a layer, group {number}",
            "1",
            count,
            "of the list of modules",
        )
        rows.add(once)
        of_groups.append(
            once
            if layers is None
            else rows(
                f"operations_of.{number}", f"Operations of all layers, group {number}", "1", once * layers
            )
        )
    return rows("operations", "Operations of a prefill pass", "1", sum_of(of_groups or [as_node(0)]))


def pipeline(rows: Rows, ir: ModelGraph, known: Frameworks, workers: Workers, prefill: Pass) -> Pipeline:
    """What uneven stages cost, and chunks of a prompt on which stages work one after the other."""
    inputs, continuous, passes = workers.inputs, workers.ranks.continuous, prefill.phase.passes
    assert passes is not None
    stage = rows(
        "prefill_stage",
        "Time of the fullest prefill stage",
        "s",
        _stage_time(prefill, workers, ir),
        _FULLEST,
    )
    chunks = rows(
        "prefill_chunks",
        "Chunks of a pass",
        "1",
        where(continuous > 0, maximum(1, inputs.input_tokens * ONE_REQUEST / workers.memory.step_tokens), 1),
        "the last may be a part; a static batch is prefilled in one pass",
    )
    host = next(block for block in prefill.blocks if block.id == "host")
    repeated = rows(
        "prefill_repeated",
        "Time that every pass takes again, of all passes",
        "s",
        prefill.parts[OVERHEAD] + host.time,
        "launches, and reads from host memory",
        called="repeated time of all passes",
    )
    fixed = rows(
        "prefill_fixed",
        "Time that every chunk takes again",
        "s",
        repeated / passes,
        "a chunk is a pass of its own",
    )
    chunk = rows(
        "prefill_chunk",
        "Time of a chunk through all stages",
        "s",
        (prefill.time - repeated) / chunks + fixed,
    )
    fixed_of_stage = rows(
        "prefill_stage_fixed", "Time that every chunk takes again on a stage", "s", fixed / inputs.pp
    )
    of_stage = rows(
        "prefill_stage_chunk",
        "Time of a chunk on the fullest stage",
        "s",
        where(inputs.pp > 1, maximum(0, stage - repeated / inputs.pp) / chunks + fixed_of_stage, chunk),
    )
    busy = rows(
        "prefill_busy",
        "Time a prefill pass occupies the pipeline",
        "s",
        chunks * of_stage,
        "a stage works on a chunk while the next works on the one before",
    )
    at_once = rows(
        "prefill_at_once",
        "Prompt tokens in the pipeline at once",
        "token",
        known.of(known.pipeline_batches, inputs.framework),
        "0: as many as there are",
    )
    fills = rows(
        "prefill_fills",
        "Times the pipeline is filled for a prompt",
        "1",
        where(at_once > 0, minimum(chunks, maximum(1, inputs.input_tokens * ONE_REQUEST / at_once)), 1),
    )
    through = rows(
        "prefill_through",
        "Time of a prompt through the stages",
        "s",
        fills * chunk + (chunks - fills) * of_stage,
        "the first chunk of a filling through all stages, each other one on the fullest",
    )
    share = rows(
        "prefill_stage_share",
        "Share of a pass on the fullest stage",
        "1",
        where(inputs.pp > 1, stage / prefill.time, 1),
    )
    launches = rows(
        "prefill_launches",
        "Launches of a prompt, all chunks",
        "s",
        chunks * prefill.parts[OVERHEAD] / passes,
    )
    return Pipeline(busy=busy, through=through, launches=launches, share=share, chunks=chunks)


_FULLEST = "layers and LM head of the stage that has most"


def _stage_time(work: Pass, workers: Workers, ir: ModelGraph) -> Node:
    """Time of the fullest stage: one with a layer more, else the last one, which has the LM head."""
    head = next(block for block in work.blocks if block.id == "lm_head")
    of_layers = (work.time - head.time) * workers.plan.stages.fullest / ir.total_layers
    return of_layers + where(workers.plan.left.layers > 0, 0, head.time)


@dataclass(frozen=True)
class _Prompts:
    """What prompts of other requests cost a request of a full batch.

    Args:
        others: requests in the batch beside one.
        added: seconds by which it lengthens a step that runs anyway; `delay` by which it delays the others.
        per_step: prompts in a full step; `per_token` of other requests per token of one; `in_step` in a step.
        most: prompts in the fullest step there can be; `in_full_step` seconds by which they lengthen it.
    """

    others: Quantity
    added: Quantity
    delay: Quantity
    per_step: Quantity
    per_token: Quantity
    in_step: Quantity
    most: Quantity
    in_full_step: Quantity


@dataclass(frozen=True)
class _ClosedLoop:
    """A full batch, in which the next request follows each that ends.

    Args:
        synchronous: 1 where all requests of the batch start and end together, half where they may.
        step, stall: seconds of a decode step, and lost to prompts per token.
    """

    prompts: _Prompts
    synchronous: Quantity
    step: Quantity
    stall: Quantity
    section: Section


def closed_loop(setting: _Setting) -> _ClosedLoop:
    """Decode step and prefill stall of a full batch."""
    rows = Rows("serving")
    others = prompts(rows, setting)
    step = setting.paced.step
    rows.add(*setting.paced.rows)
    together = rows(
        "together",
        "Requests start together",
        "flag",
        where(setting.inputs.prompts_per_slot > 0, 1, 0),
        "those of a benchmark; of a service nobody says it",
    )
    synchronous = rows(
        "lockstep",
        "Share of a synchronous batch",
        "1",
        setting.interleaved
        * where(
            all_of(setting.scheduler.first > 0, setting.inputs.length_range_ratio <= 0),
            HALF * (1 + together),
            0,
        ),
        "of equal lengths: requests that start together end, and are prefilled, together; half where that "
        "is not known",
    )
    stall = rows(
        "stall",
        "Prefill stall per token",
        "s",
        setting.interleaved
        * setting.efficiency["interference"]
        * others.in_step
        * others.delay
        * (1 - HALF * synchronous),
        "in a synchronous batch prompts before one's own do not count",
    )
    return _ClosedLoop(
        prompts=others,
        synchronous=synchronous,
        step=step,
        stall=stall,
        section=rows.section("Time per output token", "of a closed loop"),
    )


def prompts(rows: Rows, setting: _Setting) -> _Prompts:
    """Prompts of the other requests of the batch: what each costs, and how many there are."""
    inputs, stops, stages = setting.inputs, setting.scheduler.first, setting.prompt.stages
    others = rows(
        "others", "Other requests in the batch", "1", maximum(0, setting.memory.batch / ONE_REQUEST - 1)
    )
    per_step = rows(
        "prompts_per_step",
        "Prompts in a full step",
        "1",
        setting.prefill_workers.memory.step_tokens / (inputs.input_tokens * ONE_REQUEST),
    )
    per_token = rows(
        "prompts_per_token",
        "Prompts of others per token of a request",
        "1",
        (others + setting.memory.batch / ONE_REQUEST * setting.memory.redone)
        * TOKENS_PER_STEP
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
        minimum(per_step, setting.memory.batch / ONE_REQUEST),
        "as many as there are, and as the token budget allows",
    )
    together = rows(
        "prompts_together",
        "Prompts in a step that carries any",
        "1",
        minimum(most, maximum(minimum(1, per_step), in_step)),
        "a part of one where the token budget is smaller than a prompt",
    )
    step = mixed_step(setting.prefill, setting.decode, together, stops)
    rows.add(*step.rows)
    added = rows(
        "prefill_added",
        "Time a prompt adds to a step that runs anyway",
        "s",
        step.added * stages.share / together,
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
    full = mixed_step(setting.prefill, setting.decode, most, stops, is_full=True)
    rows.add(*full.rows)
    return _Prompts(
        others=others,
        added=added,
        delay=delay,
        per_step=per_step,
        per_token=per_token,
        in_step=in_step,
        most=most,
        in_full_step=full.added,
    )


@dataclass(frozen=True)
class DecodeStep:
    """Seconds of a decode step, and the rows that it follows from."""

    step: Quantity
    rows: tuple[Quantity, ...]


def decode_step(ir: ModelGraph, workers: Workers, decoding: Decoding, decode: Pass) -> DecodeStep:
    """Seconds of a decode step; a pipeline is as fast as its fullest stage.

    Args:
        workers: those that decode.
        decoding: what a step works on; `decode` its pass.
    """
    rows, pp, step_time = Rows("serving"), workers.inputs.pp, decode.time
    stage = rows(
        "decode_stage", "Time of the fullest decode stage", "s", _stage_time(decode, workers, ir), _FULLEST
    )
    of_stage = decoding.microbatches * stage
    step = rows("decode_step", "Decode step", "s", where(pp > 1, maximum(step_time, of_stage), step_time))
    rows(
        "bubble",
        "Idle share of the fullest stage",
        "1",
        where(pp > 1, 1 - of_stage / step, 0),
        "the pipeline's bubble",
    )
    return DecodeStep(step, rows.quantities())


@dataclass(frozen=True)
class _Tpot:
    """Decode step, prefill stall and their sum as they are in use: of a closed loop, or at a request rate."""

    step: Quantity
    stall: Quantity
    tpot: Quantity
    section: Section


def tpot(loop: _ClosedLoop, load: Arrivals | None) -> _Tpot:
    """TPOT: the mean gap between tokens of one request."""
    rows = Rows("serving")
    step, stall = loop.step, loop.stall
    if load is not None:
        step = rows("step_in_use", "Decode step in use", "s", where(load.open > 0, load.step, step))
        stall = rows("stall_in_use", "Prefill stall in use", "s", where(load.open > 0, load.stall, stall))
    total = rows("tpot", "Time per output token, TPOT", "s", step + stall, called="TPOT")
    return _Tpot(
        step=step,
        stall=stall,
        tpot=total,
        section=rows.section("TPOT", "mean gap between tokens of one request", Section.SUBTOTAL),
    )


def transfer(prefill_workers: Workers, decode_workers: Workers) -> tuple[Quantity, Section]:
    """Seconds by which the way of a prompt's KV cache to a decode worker delays the first token."""
    inputs, factors = prefill_workers.inputs, prefill_workers.efficiency
    disaggregated = prefill_workers.ranks.disaggregated
    assert disaggregated is not None
    rows = Rows("serving")
    caches = [
        (cache.module, cache.channels)
        for cache in prefill_workers.memory.caches.growing
        if cache.module.layers is not None
    ]
    tokens = _transferred_tokens(rows, inputs, [module for module, _ in caches])

    def _kept(module: Module) -> Node:
        return prefill_workers.formats.kept_bytes(module.operation)

    sizes = [
        rows(
            f"transfer.{module.id}",
            f"KV cache of a prompt, {module.label}",
            "B",
            ONE_REQUEST * tokens[module.id] * width * _kept(module) * module.layers,
        )
        for module, width in caches
        if module.layers is not None
    ]
    size = rows(
        "transfer_bytes",
        "KV cache of a prompt",
        "B",
        sum_range(span(sizes)) if sizes else ONE_REQUEST * 0,
        "recurrent states are left out",
    )
    bandwidth = rows(
        "transfer_bandwidth",
        "Bandwidth of the transfer",
        "B/s",
        minimum(_group_bandwidth(prefill_workers), _group_bandwidth(decode_workers)),
        "of the workers with less",
    )
    in_full = rows(
        "transfer_time",
        "Transfer, nothing hidden",
        "s",
        where(bandwidth > 0, factors["network_latency"] + size / bandwidth, NO_WAY),
        "there is none without a network",
    )
    visible = rows(
        "transfer",
        "KV transfer",
        "s",
        where(
            all_of(disaggregated > 0, is_number(in_full)),
            in_full * (1 - factors["kv_transfer_overlap"]),
            0,
        ),
        "what is not hidden behind prefill",
    )
    return visible, rows.section("KV transfer", "from prefill to decode workers")


def _transferred_tokens(rows: Rows, inputs: Workload, modules: list[Module]) -> dict[str, Quantity]:
    """Tokens of a prompt in the cache of each module, by its id: all, or what its window or chunk holds."""
    by_limit: dict[Node | None, Quantity] = {}
    tokens: dict[str, Quantity] = {}
    for module in modules:
        reach = getattr(module.operation, "span", FULL)
        limit = reach.length if reach.kind in ("sliding", "chunked") else None
        if limit not in by_limit:
            prompt: Node = inputs.input_tokens
            by_limit[limit] = (
                rows("transfer_tokens", "Tokens handed over", "token/request", prompt)
                if limit is None
                else rows(
                    f"transfer_tokens.{limit.id.removeprefix('model.')}",
                    f"Tokens handed over, {limit.label.lower()}",
                    "token/request",
                    where(limit > 0, minimum(limit, prompt), prompt),
                )
            )
        tokens[module.id] = by_limit[limit]
    return tokens


def _group_bandwidth(workers: Workers) -> Node:
    """B/s of all ranks of an attention group out of their domain."""
    return workers.network.out * workers.inputs.tp * workers.inputs.cp


@dataclass(frozen=True)
class _Base:
    """Seconds to a first token on one's own, while others decode, and the parts they consist of."""

    base: Quantity
    parts: tuple[Quantity, ...]
    section: Section


def base(setting: _Setting, loop: _ClosedLoop, token: _Tpot, load: Arrivals | None) -> _Base:
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
        (continuous * steps + (1 - continuous) * rest_of_batch(rows, setting)) * token.tpot,
        "steps until a scheduler takes a request up; a static batch waits for its longest output",
    )
    parts = [alone.handling, alone.prefill, running, delay]
    if alone.transfer is not None:
        parts.append(alone.transfer)
    total = rows("base", "First token without a queue", "s", sum_of(parts))
    return _Base(
        base=total,
        parts=tuple(parts),
        section=rows.section(
            "First token without a queue", "on its own, while others decode", Section.SUBTOTAL
        ),
    )


def rest_of_batch(rows: Rows, setting: _Setting) -> Quantity:
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
        (longest - 1) * inputs.output_tokens / TOKENS_PER_STEP,
        "a static batch ends with its longest output",
    )


def wait_steps(rows: Rows, setting: _Setting, loop: _ClosedLoop) -> Quantity:
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


@dataclass(frozen=True)
class _Waits:
    """Seconds that a request waits behind prompts of others, in its place of the batch.

    Args:
        generation: seconds from the first token to the last.
        full_step: seconds of a step full of prompts; `saturation` wait where they fill every step.
        line: prefills of all others.
        mean, p50, p95: waits behind prompts.
    """

    generation: Quantity
    full_step: Quantity
    saturation: Quantity
    line: Quantity
    mean: Quantity
    p50: Node
    p95: Node
    section: Section


def queue(setting: _Setting, loop: _ClosedLoop, token: _Tpot, first: _Base, load: Arrivals | None) -> _Waits:
    """Waits behind other prompts."""
    rows = Rows("serving")
    generation = rows(
        "generation",
        "Generation after the first token",
        "s",
        (setting.inputs.output_tokens / TOKENS_PER_STEP - 1) * token.tpot,
    )
    share = rows(
        "prefill_share", "Share of the time given to prompts of others", "1", token.stall / token.tpot
    )
    full_step, limit, line = saturation(rows, setting, loop, generation, load)

    def wait(statistic: str, label: str, before: Node) -> Quantity:
        form = rows(
            f"form_{statistic}",
            f"{label}, closed form",
            "s",
            setting.scheduler.wait(statistic, setting.prompt.prefill, share, loop.prompts.others),
        )
        queued = loop.synchronous * before * line + (1 - loop.synchronous) * form
        factor = setting.efficiency["queueing"]
        return rows(f"wait_{statistic}", label, "s", minimum(factor * queued, line))

    mean = wait("mean", "Mean wait behind prompts", HALF)
    p50 = wait("p50", "Median wait behind prompts", HALF)
    p95 = wait("p95", "p95 wait behind prompts", P95)
    in_benchmark = wait("benchmark", "Median wait behind prompts in a benchmark", HALF)
    in_use = rows(
        "wait_half", "Median wait in use", "s", where(setting.inputs.prompts_per_slot > 0, in_benchmark, p50)
    )
    in_loop: Node = maximum(mean, limit - first.base)
    behind_prompts = rows(
        "queue",
        "Wait behind other prompts",
        "s",
        in_loop if load is None else where(load.open > 0, load.wait, in_loop),
        "the mean; where prompts fill every step, what is left of that wait",
    )
    return _Waits(
        generation=generation,
        full_step=full_step,
        saturation=limit,
        line=line,
        mean=behind_prompts,
        p50=in_use if load is None else where(load.open > 0, load.wait_p50, in_use),
        p95=p95 if load is None else where(load.open > 0, load.wait_p95, p95),
        section=rows.section("Waits", "behind prompts of other requests"),
    )


def saturation(
    rows: Rows, setting: _Setting, loop: _ClosedLoop, generation: Quantity, load: Arrivals | None
) -> tuple[Quantity, Quantity, Quantity]:
    """A step full of prompts, the wait where they fill every step, and the prefills of all others.

    No wait exceeds the last.
    """
    stops = setting.scheduler.first
    prompts, stages = loop.prompts, setting.prompt.stages
    added = rows(
        "full_added",
        "Time that prompts add to a full step",
        "s",
        prompts.in_full_step * stages.share,
        "on the fullest stage",
    )
    launches = rows(
        "full_launches",
        "Launches of a full step",
        "s",
        stages.launches * minimum(1, prompts.most) * stages.share,
        "where decode stops for prompts",
    )
    full_step = rows(
        "full_step",
        "Step full of prompts",
        "s",
        where(
            stops > 0,
            added + launches,
            loop.step + setting.efficiency["interference"] * added,
        ),
        "theirs alone where decode stops for them",
    )
    service = rows(
        "saturated",
        "Service time of a prompt in full steps",
        "s",
        full_step / prompts.most,
    )
    applies = setting.interleaved * (1 - loop.synchronous)
    if load is not None:
        applies = applies * (1 - load.open)
    may_fill = rows("fills", "Prompts may fill every step", "1", applies, "with others, at any time")
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
    return full_step, limit, line


@dataclass(frozen=True)
class _Slots:
    """How long a request has its place in the batch, and what it waits for one.

    Args:
        in_batch: seconds that a request holds its slot.
        waits: mean waits for a batch slot and, where there are decode workers, for a prefill worker.
        p50, p95: of both.
        burst_wait: what the warm-up burst of a benchmark adds to the mean wait.
        burst_share: share of the requests that are in it.
    """

    in_batch: Quantity
    waits: tuple[Quantity, ...]
    p50: Node
    p95: Node
    burst_wait: Quantity
    burst_share: Quantity
    section: Section


def batch_slots(
    setting: _Setting, loop: _ClosedLoop, token: _Tpot, first: _Base, waits: _Waits, load: Arrivals | None
) -> _Slots:
    """The time in the batch and, by Little's law, the wait for a place in it, and for a prefill worker."""
    rows, memory = Rows("serving"), setting.memory
    share, burst_wait = burst(rows, setting, loop, first, waits, load)
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
    waiting, p50, p95 = [slot], as_node(slot), as_node(slot)
    if setting.disaggregated is not None:
        of_prefill = prefill_wait(rows, setting, token, in_batch, steady, load)
        waiting.append(of_prefill.mean)
        p50, p95 = slot + of_prefill.p50, slot + of_prefill.p95
    return _Slots(
        in_batch=held,
        waits=tuple(waiting),
        p50=p50,
        p95=p95,
        burst_wait=burst_wait,
        burst_share=share,
        section=rows.section("Batch slots", "the time of a request in the batch, and the wait for a slot"),
    )


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
class _PrefillWait:
    """Seconds that a prompt waits for a prefill worker."""

    mean: Quantity
    p50: Quantity
    p95: Quantity


def prefill_wait(
    rows: Rows, setting: _Setting, token: _Tpot, served: Quantity, slot: Quantity, load: Arrivals | None
) -> _PrefillWait:
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
        maximum(backlog, wait_in_loop(half, before, service)),
        "the mean; who waits sends no other prompt, so a longer wait makes for fewer: a quadratic equation",
        source="single server, fixed service time, requests that come again",
    )
    used = rows(
        "prefill_load",
        "Share of the time a prefill worker works for others",
        "1",
        before / (elsewhere + mean),
    )
    drain = rows(
        "prefill_drain",
        "Time in which the rest of the wait falls by e",
        "s",
        maximum(0, mean - backlog) / maximum(SMALLEST, used),
    )

    def percentile(name: str, label: str, share: Named) -> Quantity:
        return rows(
            f"prefill_wait_{name}",
            f"{label} for a prefill worker",
            "s",
            minimum(backlog + drain * maximum(0, logarithm(maximum(SMALLEST, used / share))), before),
        )

    return _PrefillWait(
        mean=mean,
        p50=percentile("p50", "Median wait", BEYOND_P50),
        p95=percentile("p95", "p95 wait", BEYOND_P95),
    )


@dataclass(frozen=True)
class _Ttft:
    """Mean TTFT."""

    ttft: Quantity
    section: Section


def ttft(first: _Base, waits: _Waits, slots: _Slots) -> _Ttft:
    """Mean time from arrival to the first token."""
    rows = Rows("serving")
    steady = rows("ttft_steady", "TTFT in steady state", "s", sum_of([first.base, waits.mean, *slots.waits]))
    total = rows("ttft", "Time to first token, TTFT", "s", steady + slots.burst_wait, "mean", called="TTFT")
    return _Ttft(
        ttft=total,
        section=rows.section("Time to first token", "mean, from arrival", Section.SUBTOTAL),
    )


def burst(
    rows: Rows,
    setting: _Setting,
    loop: _ClosedLoop,
    first: _Base,
    waits: _Waits,
    load: Arrivals | None,
) -> tuple[Quantity, Quantity]:
    """The share of the warm-up burst of a benchmark, in which all requests come at once, and what it adds."""
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
    return share, wait


@dataclass(frozen=True)
class _Request:
    """One request as its user sees it: seconds, and tokens per second."""

    e2e: Quantity
    ttft_p50: Quantity
    ttft_p95: Quantity
    e2e_p50: Quantity
    e2e_p95: Quantity
    interactivity: Quantity
    section: Section


def e2e(
    setting: _Setting, token: _Tpot, first: _Base, waits: _Waits, slots: _Slots, start: _Ttft
) -> _Request:
    """End to end, percentiles of TTFT and of end to end, interactivity."""
    rows = Rows("serving")
    others = "other waits as in the mean"
    mean = rows("e2e", "End to end", "s", start.ttft + waits.generation)
    ttft_p50 = rows(
        "ttft_p50",
        "TTFT, median",
        "s",
        maximum(first.base + waits.p50, waits.saturation) + slots.p50,
        others,
        called="median TTFT",
    )
    tail = rows(
        "ttft_tail",
        "TTFT with the p95 of waits",
        "s",
        maximum(first.base + waits.p95, waits.saturation) + slots.p95,
    )
    ttft_p95 = rows(
        "ttft_p95",
        "TTFT, p95",
        "s",
        maximum(tail, ttft_p50, start.ttft),
        others,
        called="p95 TTFT",
    )
    e2e_p50 = rows("e2e_p50", "End to end, median", "s", ttft_p50 + waits.generation, "of a mean output")
    e2e_p95 = rows(
        "e2e_p95",
        "End to end, p95",
        "s",
        maximum(ttft_p95 + waits.generation, ttft_p50 + setting.inputs.p95_output_ratio * waits.generation),
        "a late first token, or a long output",
    )
    interactivity = rows(
        "interactivity",
        "Interactivity",
        "token/request/s",
        TOKENS_PER_STEP / token.tpot,
        "tokens per second that one user sees",
    )
    return _Request(
        e2e=mean,
        ttft_p50=ttft_p50,
        ttft_p95=ttft_p95,
        e2e_p50=e2e_p50,
        e2e_p95=e2e_p95,
        interactivity=interactivity,
        section=rows.section(
            "One request",
            "as its user sees it; half of the requests, or 1 in 20, see more than median and p95",
        ),
    )


@dataclass(frozen=True)
class _Throughput:
    """Requests and tokens per second of the deployment, and the requests in flight at a request rate."""

    requests: Quantity
    in_flight: Quantity | None
    output: Quantity
    accelerators: Quantity
    output_per_accelerator: Quantity
    tokens: Quantity
    section: Section


def last_ends(rows: Rows, setting: _Setting, token: _Tpot, waits: _Waits, end_to_end: Quantity) -> Quantity:
    """Mean load of a benchmark: its requests start together and end apart.

    n requests one after the other take n x the time of one. The last of all ends later by as much as its
    prompts are through after the mean and its outputs are longer, and sooner by what no prompt interrupts it.
    """
    per_slot, spread = setting.inputs.prompts_per_slot, setting.inputs.length_range_ratio
    count = rows("slot_prompts", "Requests of a benchmark one after the other", "1", maximum(1, per_slot))
    one_by_one = rows(
        "slot_line",
        "Prompts of a benchmark one by one",
        "s",
        count * setting.interleaved * waits.line,
        "no benchmark is shorter",
    )
    longest = rows(
        "length_excess",
        "Longest output of a benchmark against the mean, less 1",
        "1",
        count**HALF * HALF * spread / (1 - HALF * spread),
        "of lengths drawn evenly, one draw after the other",
    )
    longer = rows(
        "ends_lengths",
        "Longest outputs behind the mean",
        "s",
        minimum(HALF * end_to_end, longest * waits.generation),
        "no more than half of a request",
    )
    last = rows(
        "ends_last",
        "Last end behind the mean end",
        "s",
        HALF * one_by_one / count
        + longer
        - (setting.inputs.output_tokens / TOKENS_PER_STEP - 1) * token.stall,
        "its prompt comes last, its outputs are longest, and no prompt interrupts it",
    )
    all_of_them = rows("all_requests", "Time of a benchmark's requests in a slot", "s", count * end_to_end)
    return rows(
        "ramp",
        "Mean load of a benchmark",
        "1",
        where(
            per_slot > 0,
            minimum(1, all_of_them / maximum(one_by_one, all_of_them + last)),
            1,
        ),
        "requests run out at its end",
    )


def throughput(
    setting: _Setting, token: _Tpot, waits: _Waits, slots: _Slots, end_to_end: Quantity, load: Arrivals | None
) -> _Throughput:
    """Requests and tokens per second."""
    inputs, deployment = setting.inputs, setting.prefill_workers.ranks.deployment
    rows = Rows("serving")
    end = last_ends(rows, setting, token, waits, end_to_end)
    memory = setting.memory
    loaded = rows(
        "in_flight_share",
        "Share of the requests that is in flight",
        "1",
        end * (1 - HALF * slots.burst_share * (1 - memory.batch / memory.requests)),
        "in the warm-up burst requests wait for a slot half as long",
    )
    in_loop = loaded * inputs.concurrency / end_to_end
    requests = rows(
        "requests_per_s",
        "Requests per second",
        "request/s",
        in_loop if load is None else where(load.open > 0, load.served, in_loop),
        source="Little's law",
    )
    in_flight = None
    if load is not None:
        in_flight = Rows("load")(
            "in_flight",
            "Requests in flight",
            "request",
            where(load.open > 0, load.served * end_to_end, inputs.concurrency),
            "of all replicas",
            source="Little's law",
        )
        rows.add(in_flight)
    output = rows(
        "output_tokens_per_s", "Output tokens per second", "token/s", requests * inputs.output_tokens
    )
    count: Node = deployment
    if setting.disaggregated is not None:
        count = deployment + setting.disaggregated * setting.decode_workers.ranks.deployment
    accelerators = rows(
        "accelerators", "Accelerators in use", "accelerator", count, called="accelerators in use"
    )
    return _Throughput(
        requests=requests,
        in_flight=in_flight,
        output=output,
        accelerators=accelerators,
        output_per_accelerator=rows(
            "output_tokens_per_s_per_accelerator",
            "Output tokens per second and accelerator",
            "token/s/accelerator",
            output / accelerators,
            called="output tokens per accelerator",
        ),
        tokens=rows(
            "total_tokens_per_s",
            "Input and output tokens per second",
            "token/s",
            requests * (inputs.input_tokens + inputs.output_tokens),
        ),
        section=rows.section("Throughput", "whole deployment, all replicas"),
    )
