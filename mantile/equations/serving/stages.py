"""The fullest stage of a pipeline, and a decode step, which is as fast as that."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.decode import Decoding
from mantile.equations.forward import Pass
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, floor, maximum, sum_of, where
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph

FULLEST = "layers and LM head of the stage that has most"


def stage_time(work: Pass, workers: Workers, ir: ModelGraph) -> Node:
    """Time of the fullest stage: one with a layer more, or the last one, with LM head and drafter."""
    if work.slowest is not None:
        return work.slowest
    last = sum_of([block.time for block in work.blocks if block.id in ("lm_head", "draft")])
    layers, of_layer = ir.total_layers, (work.time - last) / ir.total_layers
    with_head = floor(layers / workers.inputs.pp) * of_layer + last
    return maximum(workers.plan.stages.fullest * of_layer, with_head)


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
        "decode_stage", "Time of the fullest decode stage", "s", stage_time(decode, workers, ir), FULLEST
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
