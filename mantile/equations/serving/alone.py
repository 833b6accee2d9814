"""A prompt by itself: through the stages of the pipeline, chunk by chunk, and on to decode workers."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import GIGA, MICRO, ONE_REQUEST
from mantile.equations.forward import Pass
from mantile.equations.framework import Frameworks
from mantile.equations.inputs import ON, Workload
from mantile.equations.link import LinkTable, Machine, by_ports
from mantile.equations.network import NO_WAY
from mantile.equations.roofline import OVERHEAD
from mantile.equations.serving.stages import FULLEST, fullest_stage, operations, stage_times
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Node,
    Quantity,
    Section,
    all_of,
    equal,
    is_number,
    maximum,
    minimum,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import FULL, ModelGraph, Module


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
        host: for which the host starts its operations.
        handling: of the request before its prefill; `prefill` of the prompt; `rate` its tokens ÷ that time,
            what is fetched left out; `transfer` of its KV cache to a worker that decodes, None in a workbook
            without any.
        others: prompts of all others at a worker that prefills; None in a workbook without any.
        bandwidth: of that transfer, B/s; `known_bandwidth` what networks and ports give, GB/s, where a
            scenario states another.
    """

    stages: Pipeline
    service: Quantity
    host: Quantity
    handling: Quantity
    prefill: Quantity
    rate: Quantity
    transfer: Quantity | None
    others: Quantity | None
    sections: tuple[Section, ...]
    bandwidth: Quantity | None = None
    known_bandwidth: Quantity | None = None


def prompt(
    ir: ModelGraph,
    known: Frameworks,
    prefill_workers: Workers,
    decode_workers: Workers,
    prefill: Pass,
    table: LinkTable | None = None,
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
    launch: Node = factors["eager_launch"]
    if prefill_workers.inputs.enforce_eager is not None:
        launch = pipe(
            "prefill_launch",
            "Time of the host to start an operation of a prompt",
            "s",
            where(
                equal(prefill_workers.inputs.enforce_eager, ON),
                factors["eager_mode_launch"],
                factors["eager_launch"],
            ),
        )
    host = pipe(
        "prefill_host",
        "Time of the host to start the operations of a prompt",
        "s",
        stages.chunks * operations(pipe, prefill) * launch,
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
    rate = pipe(
        "prefill_tokens_per_s",
        "Prefill tokens per second",
        "token/s",
        prefill.phase.rank_requests * prefill_workers.prompt / of_prompt,
        "of a prompt by itself; of all prompts of a static batch",
    )
    if "prefixes" in prefill_workers.rows.features:
        fetch = prefill_workers.rows["prefix.fetch"]
        of_prompt = pipe(
            "prefill_fetched", "Prefill of the prompt, its prefix fetched", "s", of_prompt + fetch
        )
    handover: Handover | None = None
    others: Quantity | None = None
    sections: list[Section] = []
    if ranks.disaggregated is not None:
        inputs = prefill_workers.inputs
        others = pipe(
            "prefill_others",
            "Prompts of all others at a prefill worker",
            "s",
            maximum(0, inputs.concurrency / inputs.dp / ONE_REQUEST - 1) * service,
        )
        assert table is not None
        handover = transfer(prefill_workers, decode_workers, stages, ir, table)
        sections.append(handover.section)
    return Prompt(
        stages=stages,
        service=service,
        host=host,
        handling=handling,
        prefill=of_prompt,
        rate=rate,
        transfer=None if handover is None else handover.visible,
        others=others,
        bandwidth=None if handover is None else handover.bandwidth,
        known_bandwidth=None if handover is None else handover.known,
        sections=(pipe.section("A prompt by itself", "through stages, chunk by chunk"), *sections),
    )


def pipeline(rows: Rows, ir: ModelGraph, known: Frameworks, workers: Workers, prefill: Pass) -> Pipeline:
    """What uneven stages cost, and chunks of a prompt on which stages work one after the other."""
    inputs, continuous, passes = workers.inputs, workers.ranks.continuous, prefill.phase.passes
    assert passes is not None
    stage = rows(
        "prefill_stage",
        "Time of the fullest prefill stage",
        "s",
        fullest_stage(prefill, stage_times(rows, "prefill_layer", prefill, workers, ir)),
        FULLEST,
    )
    chunks = rows(
        "prefill_chunks",
        "Chunks of a pass",
        "1",
        where(
            continuous > 0, maximum(1, workers.prompt * ONE_REQUEST / workers.rows["memory.step_tokens"]), 1
        ),
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
        where(at_once > 0, minimum(chunks, maximum(1, workers.prompt * ONE_REQUEST / at_once)), 1),
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


@dataclass(frozen=True)
class Handover:
    """The way of a prompt's KV cache to a decode worker.

    Args:
        visible: seconds by which it delays the first token.
        bandwidth: B/s; `known` that of networks and ports in GB/s, None where no scenario states another.
    """

    visible: Quantity
    bandwidth: Quantity
    known: Quantity | None
    section: Section


def transfer(
    prefill_workers: Workers,
    decode_workers: Workers,
    stages: Pipeline,
    ir: ModelGraph,
    table: LinkTable,
) -> Handover:
    """The way of a prompt's KV cache to a decode worker.

    Layers that follow prefill one by one are hidden behind the layers after them, so no longer than prefill
    takes, and never the last.

    Args:
        stages: a prompt by itself.
        table: of links, for machines whose systems state no network.
    """
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
    way = Rows("serving.transfer_link", "", rows.rows)
    ports = by_ports(way, _machine(prefill_workers), _machine(decode_workers), table)
    network = rows(
        "transfer_network",
        "Bandwidth of the transfer by network",
        "B/s",
        minimum(_group_bandwidth(prefill_workers), _group_bandwidth(decode_workers)),
        "of the workers with less",
    )
    reached: Node = maximum(network, ports.rate * GIGA * inputs.network_speed)
    known: Quantity | None = None
    if inputs.handover_bandwidth is not None:
        known = rows(
            "transfer_known",
            "Bandwidth between workers, by networks and ports",
            "GB/s",
            reached / GIGA,
            "until another is stated",
        )
        reached = inputs.handover_bandwidth * GIGA
    bandwidth = rows(
        "transfer_bandwidth",
        "Bandwidth of the transfer",
        "B/s",
        reached,
        "of their networks, or of the ports of both machines" if known is None else "",
    )
    latency = rows(
        "transfer_latency",
        "Latency of the transfer",
        "s",
        where(network >= bandwidth, factors["network_latency"], ports.latency / MICRO),
    )
    in_full = rows(
        "transfer_time",
        "Transfer, nothing hidden",
        "s",
        where(bandwidth > 0, latency + size / bandwidth, NO_WAY),
        "there is none without a link",
    )
    hidden = rows(
        "transfer_hidden",
        "Hidden behind prefill",
        "s",
        where(
            is_number(in_full),
            factors["kv_transfer_overlap"] * (1 - 1 / ir.total_layers) * minimum(in_full, stages.through),
            0,
        ),
        "of all layers but the last, no longer than prefill takes",
    )
    visible = rows(
        "transfer",
        "KV transfer",
        "s",
        where(all_of(disaggregated > 0, is_number(in_full)), in_full - hidden, 0),
        "what is not hidden behind prefill",
    )
    return Handover(visible, bandwidth, known, rows.section("KV transfer", "from prefill to decode workers"))


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


def _machine(workers: Workers) -> Machine:
    return Machine(workers.inputs, workers.hardware, workers.efficiency, workers.network)


def _group_bandwidth(workers: Workers) -> Node:
    """B/s of all ranks of an attention group out of their domain."""
    return workers.network.out * workers.inputs.tp * workers.inputs.cp
