"""A step that carries prompts beside the tokens of running requests.

Operation by operation, by the same roofline as the passes by themselves. Weights are read once for all tokens
of the step: where decode waits for memory, the FLOPs of prompts fit into that wait and add nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST
from mantile.equations.forward import Pass
from mantile.equations.roofline import Block
from mantile.graph.quantity import Node, Quantity, maximum, span, sum_range, where
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


def mixed_step(
    prefill: Pass, decode: Pass, prompts: Node, stops: Node, *, is_full: bool = False
) -> MixedStep:
    """The time that prompts add to a step.

    Args:
        prefill: the pass of a prompt for each attention group.
        decode: the step of the running requests.
        prompts: in a step that carries any.
        stops: 1 where decode stops for prompts, so that they read the weights for themselves.
        is_full: whether it holds as many prompts as there can be.
    """
    rows = Rows("mixed.full", ", full step") if is_full else Rows("mixed")
    share = rows(
        "share",
        "Prompts in a step, against those of a prefill pass",
        "1",
        prompts * ONE_REQUEST / prefill.phase.requests,
    )
    passes = prefill.phase.passes
    assert passes is not None
    again = rows(
        "reads",
        "Reads of the weights for them, against those of a prefill pass",
        "1",
        where(passes > 1, maximum(1, share * passes), 1) / passes,
        "once, or for each part in which the framework takes prompts",
    )
    runs = rows("decode_runs", "Decode runs in the same step", "flag", 1 - stops)
    steps = {block.id: block for block in decode.blocks}
    blocks = [block for block in prefill.blocks if block.id != "host"]
    times = {
        block.id: _step_time(rows, block, steps[block.id], share, again, runs)
        for block in blocks
        if _is_product(block) and block.id in steps
    }
    added = [
        rows(
            block.id,
            f"Time prompts add to a step, {lowered(block.label)}",
            "s",
            _in_all_runs(block, _added(block, steps.get(block.id), times.get(block.id), share, runs)),
        )
        for block in blocks
    ]
    total = rows("added", "Time prompts add to a step", "s", sum_range(span(added)))
    return MixedStep(total, rows.quantities())


def _is_product(block: Block) -> bool:
    """Whether an operation multiplies with weights: one operation for prompts and running requests alike."""
    return block.module is not None and isinstance(block.module.operation, MatMul | GroupedMatMul)


def _in_all_runs(block: Block, once: Node) -> Node:
    return once if block.repeats is None else once * block.repeats


def _step_time(
    rows: Rows, prompts: Block, step: Block, share: Quantity, again: Quantity, runs: Quantity
) -> Quantity:
    """Seconds of a product in a step with prompts: weights are read once, for the tokens of all.

    Args:
        prompts: the product in the prefill pass; `step` in the decode step.
        share: prompts in the step, against those of the prefill pass; `again` reads of the weights for them.
        runs: 1 where decode runs in the same step.
    """
    assert prompts.bytes is not None and prompts.reads is not None and prompts.memory is not None
    assert step.bytes is not None and step.reads is not None
    assert prompts.compute is not None and step.compute is not None
    label = lowered(prompts.label)
    weights = rows(
        f"{prompts.id}.weights",
        f"Weight bytes of the step, {label}",
        "B",
        maximum(again * prompts.reads, runs * step.reads),
        "read once",
    )
    activations = share * (prompts.bytes - prompts.reads) + runs * (step.bytes - step.reads)
    moved = rows(f"{prompts.id}.bytes", f"Bytes of the step, {label}", "B", weights + activations)
    return rows(
        f"{prompts.id}.time",
        f"Time of the step with prompts, {label}",
        "s",
        maximum(share * prompts.compute + runs * step.compute, moved * (prompts.memory / prompts.bytes)),
        "launches left out",
    )


def _added(
    prompts: Block, step: Block | None, together: Quantity | None, share: Quantity, runs: Quantity
) -> Node:
    """Seconds by which prompts lengthen one run of an operation.

    Args:
        prompts: the operation in the prefill pass; `step` in the decode step.
        together: seconds of a product in a step with prompts.
        share: prompts in the step, against those of the prefill pass.
        runs: 1 where decode runs in the same step.
    """
    if step is None or together is None:
        return share * (prompts.layer_time if prompts.launch is None else prompts.layer_time - prompts.launch)
    assert step.compute is not None and step.memory is not None
    return maximum(0, together - runs * maximum(step.compute, step.memory))
