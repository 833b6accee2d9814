"""A step that carries prompts beside the tokens of running requests.

Operation by operation, by the same roofline as the passes by themselves. Weights are read once for all tokens
of the step: where decode waits for memory, the FLOPs of prompts fit into that wait and add nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST
from mantile.equations.forward import Pass
from mantile.equations.roofline import Block
from mantile.graph.quantity import Node, Quantity, maximum, span, sum_range
from mantile.graph.rows import Rows
from mantile.graph.sentence import lowered
from mantile.ir.modules import GroupedMatMul, MatMul


@dataclass(frozen=True)
class MixedStep:
    """What prompts add to a decode step, or take where decode stops for them.

    Args:
        added: seconds of all prompts in the step, launches left out.
        rows: by module, and their sum.
    """

    added: Quantity
    rows: tuple[Quantity, ...]


def mixed_step(prefill: Pass, decode: Pass, prompts: Node, stops: Node) -> MixedStep:
    """The time that prompts add to a step.

    Args:
        prefill: the pass of a prompt for each attention group.
        decode: the step of the running requests.
        prompts: in a step that carries any.
        stops: 1 where decode stops for prompts, so that they read the weights for themselves.
    """
    rows = Rows("mixed")
    share = rows(
        "share",
        "Prompts in a step, against those of a prefill pass",
        "1",
        prompts * ONE_REQUEST / prefill.phase.requests,
    )
    runs = rows("decode_runs", "Decode runs in the same step", "flag", 1 - stops)
    steps = {block.id: block for block in decode.blocks}
    added = [
        rows(
            block.id,
            f"Time prompts add to a step, {lowered(block.label)}",
            "s",
            _added(rows, block, steps.get(block.id), share, runs),
        )
        for block in prefill.blocks
        if block.id != "host"
    ]
    total = rows("added", "Time prompts add to a step", "s", sum_range(span(added)))
    return MixedStep(total, rows.quantities())


def _added(rows: Rows, prompts: Block, step: Block | None, share: Quantity, runs: Quantity) -> Node:
    """Seconds by which prompts lengthen an operation in all its runs of a step.

    Args:
        prompts: the operation in the prefill pass; `step` in the decode step.
        share: prompts in the step, against those of the prefill pass.
        runs: 1 where decode runs in the same step.
    """
    once = _added_once(rows, prompts, step, share, runs)
    return once if prompts.repeats is None else once * prompts.repeats


def _added_once(rows: Rows, prompts: Block, step: Block | None, share: Quantity, runs: Quantity) -> Node:
    """The same of one run. Only products of weights are one operation for prompts and running requests."""
    product = prompts.module is not None and isinstance(prompts.module.operation, MatMul | GroupedMatMul)
    if not product or step is None:
        return share * (prompts.layer_time if prompts.launch is None else prompts.layer_time - prompts.launch)
    assert prompts.bytes is not None and prompts.reads is not None and prompts.memory is not None
    assert step.bytes is not None and step.reads is not None and step.memory is not None
    assert prompts.compute is not None and step.compute is not None
    memory = rows(
        f"{prompts.id}.memory_time",
        f"Memory time of the step, {lowered(prompts.label)}",
        "s",
        (
            maximum(prompts.reads, runs * step.reads)
            + share * (prompts.bytes - prompts.reads)
            + runs * (step.bytes - step.reads)
        )
        * (prompts.memory / prompts.bytes),
        "weights are read once",
    )
    compute = share * prompts.compute + runs * step.compute
    return maximum(0, maximum(compute, memory) - runs * maximum(step.compute, step.memory))
