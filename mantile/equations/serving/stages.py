"""The fullest stage of a pipeline, and a decode step, which is as fast as that."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.inputs import ON
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    defined,
    equal,
    floor,
    maximum,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph

FULLEST = "layers and LM head of the stage that has most"


AT_END = ("lm_head", "draft")
"""Modules that only the last stage has."""


def stage_times(rows: Rows, name: str, work: Pass, workers: Workers, ir: ModelGraph) -> tuple[Node, ...]:
    """Times of the stages of which one is the fullest: of unlike devices each; else one with most layers, and
    the last one, with LM head and drafter.

    Args:
        rows: get the time of a mean layer; `name` is what its id ends in.
    """
    if work.devices:
        return tuple(device.time for device in work.devices)
    last = sum_of([block.time for block in work.blocks if block.id in AT_END])
    of_layer = rows(
        name, "Time of a mean layer", "s", (work.time - last) / ir.total_layers, "with all but the LM head"
    )
    return workers.plan.stages.fullest * of_layer, layers_beside_head(workers, ir) * of_layer + last


def stage_names(work: Pass) -> tuple[str, ...]:
    """What sentences call the stages of `stage_times`."""
    if work.devices:
        return tuple(f"device {number}" for number in range(1, len(work.devices) + 1))
    return "a stage with most layers", "the last stage"


def layers_beside_head(workers: Workers, ir: ModelGraph) -> Node:
    """How many layers a stage has that has the fewest, as the one with the LM head."""
    return floor(ir.total_layers / workers.inputs.pp)


def fullest_stage(work: Pass, times: tuple[Node, ...]) -> Node:
    """Time of the fullest of these stages."""
    return maximum(*times) if work.slowest is None else work.slowest


@dataclass(frozen=True)
class DecodeStep:
    """Seconds of a decode step, and the rows that it follows from.

    Args:
        host: seconds in which the host starts it without graphs, and its section, of the Decode part; None
            where no scenario asks. `host_of_one` of a step of one request.
        paces: seconds of a step in a pipeline by each stage that may be the fullest; `slowest` of them.
        idle: seconds of a step in which accelerators wait for the host.
    """

    step: Quantity
    paces: tuple[Quantity, ...]
    slowest: Quantity
    rows: tuple[Quantity, ...]
    host: Quantity | None
    launches: Section | None
    host_of_one: Quantity | None = None
    idle: Quantity | None = None


def decode_step(ir: ModelGraph, workers: Workers, decoding: Decoding, decode: Pass) -> DecodeStep:
    """Seconds of a decode step; a pipeline is as fast as its fullest stage.

    Args:
        workers: those that decode.
        decoding: what a step works on; `decode` its pass.
    """
    rows, pp, step_time = Rows("serving"), workers.inputs.pp, decode.time
    stages = stage_times(rows, "decode_layer", decode, workers, ir)
    stage = rows(
        "decode_stage", "Time of the fullest decode stage", "s", fullest_stage(decode, stages), FULLEST
    )
    of_stage = decoding.microbatches * stage
    paces = tuple(
        rows(
            f"decode_pace.{number}",
            f"Decode step by the pace of {name}",
            "s",
            maximum(step_time, decoding.microbatches * one),
            "in a pipeline",
        )
        for number, (name, one) in enumerate(zip(stage_names(decode), stages, strict=True), start=1)
    )
    slowest = rows("decode_pace", "Decode step by its slowest stage", "s", maximum(*paces), "in a pipeline")
    taken: Node = where(pp > 1, slowest, step_time)
    launches = Rows("serving")
    host, host_of_one = started(launches, workers, decode)
    idle = None
    if host is not None:
        idle = rows(
            "decode_idle",
            "Time of a decode step in which accelerators wait for the host",
            "s",
            maximum(0, host - taken),
        )
        taken = maximum(taken, host)
    step = rows("decode_step", "Decode step", "s", taken)
    rows(
        "bubble",
        "Idle share of the fullest stage",
        "1",
        where(pp > 1, 1 - of_stage / step, 0),
        "the pipeline's bubble",
    )
    section = None if host is None else launches.section("Launches of a decode step", "without graphs")
    return DecodeStep(step, paces, slowest, rows.quantities(), host, section, host_of_one, idle)


def operations(rows: Rows, work: Pass, of: str = "a prefill pass", prefix: str = "") -> Quantity:
    """Operations of a pass, those of all layers.

    Args:
        of: which pass, in words; `prefix` of the ids.
    """
    counts = Counter(
        block.module.layers for block in work.blocks if block.module is not None and block.kernels is None
    )
    of_groups: list[Node] = [block.kernels for block in work.blocks if block.kernels is not None]
    for number, (layers, count) in enumerate(counts.items(), start=1):
        once = defined(
            f"serving.{prefix}operations.{number}",
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
                f"{prefix}operations_of.{number}",
                f"Operations of all layers, group {number}",
                "1",
                once * layers,
            )
        )
    total = rows.added(f"{prefix}operations_of_all", "Operations", "1", of_groups or [as_node(0)])
    return rows(f"{prefix}operations", f"Operations of {of}", "1", total)


def started(rows: Rows, workers: Workers, decode: Pass) -> tuple[Quantity | None, Quantity | None]:
    """Seconds in which the host starts a decode step without graphs, 0 with, and one of a single request;
    None where no scenario asks."""
    asked, largest = workers.inputs.enforce_eager, workers.inputs.graph_max_batch
    if asked is None or largest is None:
        return None, None
    count = operations(rows, decode, "a decode step", "decode_")
    of_one = rows(
        "decode_host_of_one",
        "Time of the host to start the operations of a decode step of one request",
        "s",
        where(equal(asked, ON), count * workers.efficiency["eager_mode_launch"], 0),
        "one by one; 0 where a graph holds them",
    )
    batch = decode.phase.rank_requests
    beyond = rows(
        "beyond_graphs",
        "The batch is larger than the largest graph",
        "flag",
        where(all_of(largest > 0, batch > largest), 1, 0),
        "of a rank",
    )
    of_all = beyond * count * workers.efficiency["eager_launch"]
    host = rows(
        "decode_host",
        "Time of the host to start the operations of a decode step",
        "s",
        maximum(of_one, of_all),
        "one by one; 0 where a graph holds them",
    )
    return host, of_one
