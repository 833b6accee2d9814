"""A step that carries prompts beside the tokens of running requests.

Operation by operation, by the same roofline as the passes by themselves. Weights are read once for all tokens
of the step: where decode waits for memory, the FLOPs of prompts fit into that wait and add nothing. Devices
that are not alike do so each for itself: one may wait for memory where another computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST
from mantile.equations.forward import Pass
from mantile.equations.roofline import Block
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.stages import AT_END, layers_beside_head, stage_names
from mantile.graph.quantity import (
    Node,
    Quantity,
    maximum,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.graph.sentence import lowered
from mantile.ir.modules import GroupedMatMul, MatMul


@dataclass(frozen=True)
class MixedStep:
    """What prompts add to a decode step, or take where decode stops for them.

    Args:
        longer: seconds by which all prompts in the step hold it up, launches left out.
        rows: by module, their sum, and what a pipeline makes of it.
    """

    longer: Quantity
    rows: tuple[Quantity, ...]


def mixed_step(setting: Setting, prompts: Node, stops: Node, *, is_full: bool = False) -> MixedStep:
    """The time that prompts add to a step.

    Args:
        setting: with the pass of a prompt for each attention group, and the step of the running requests.
        prompts: in a step that carries any.
        stops: 1 where decode stops for prompts, so that they read the weights for themselves.
        is_full: whether it holds as many prompts as there can be.
    """
    rows = Rows("mixed.full", ", full step") if is_full else Rows("mixed")
    prefill, decode = setting.prefill, setting.decode
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
    step = _Carried(rows, share, again, runs)
    blocks = [block for block in prefill.blocks if block.id != "host"]
    apart = [
        step.on_device(number, one.blocks, other.blocks)
        for number, (one, other) in enumerate(zip(prefill.devices, decode.devices, strict=True), start=1)
    ]
    steps = {block.id: block for block in decode.blocks}
    in_all_runs = {
        block.id: sum_of([device[block.id] for device in apart])
        if apart and block.id in apart[0] and not block.network
        else step.added(block.id, lowered(block.label), block, steps.get(block.id), block.repeats)
        for block in blocks
    }
    added = {
        name: rows(name, f"Time prompts add to a step, {lowered(block.label)}", "s", in_all_runs[name])
        for name, block in ((block.id, block) for block in blocks)
    }
    total = rows("added", "Time prompts add to a step", "s", sum_range(span(list(added.values()))))
    at_end = sum_of([row for name, row in added.items() if name in AT_END])
    if apart:
        on_stages = _on_devices(rows, prefill, apart, total, at_end)
    else:
        on_stages = _on_equal_stages(rows, setting, total, at_end)
    return MixedStep(_longer(rows, setting, on_stages, total), rows.quantities())


def _on_equal_stages(rows: Rows, setting: Setting, total: Quantity, at_end: Node) -> list[Node]:
    """Seconds that prompts add on a stage with most layers, and on the last one."""
    ir, workers = setting.ir, setting.decode_workers
    of_layer = rows(
        "layer",
        "Time prompts add on a mean layer",
        "s",
        (total - at_end) / ir.total_layers,
        "with all but the LM head",
    )
    return [workers.plan.stages.fullest * of_layer, layers_beside_head(workers, ir) * of_layer + at_end]


def _on_devices(
    rows: Rows, prefill: Pass, apart: list[dict[str, Quantity]], total: Quantity, at_end: Node
) -> list[Node]:
    """Seconds that prompts add on each device."""
    in_layers = [
        rows(
            f"{number}.layers",
            f"Time prompts add in the layers of device {number}",
            "s",
            rows.added(
                f"{number}.layers.part", f"Time prompts add, device {number}", "s", list(device.values()), 8
            ),
        )
        for number, device in enumerate(apart, start=1)
    ]
    elsewhere = rows(
        "elsewhere",
        "Time prompts add outside layers",
        "s",
        total - rows.added("in_layers", "Time prompts add in layers", "s", in_layers, 4) - at_end,
        "spread over the layers",
    )
    return [
        layered + elsewhere * device.part + where(device.last, at_end, 0)
        for layered, device in zip(in_layers, prefill.devices, strict=True)
    ]


def _longer(rows: Rows, setting: Setting, on_stages: list[Node], total: Quantity) -> Quantity:
    """Seconds by which the slowest stage takes longer than the slowest without prompts: it may be another."""
    paces = setting.paced.paces
    carried = [
        rows(f"pace.{number}", f"Step with prompts by the pace of {name}", "s", pace + on_stage)
        for number, (name, pace, on_stage) in enumerate(
            zip(stage_names(setting.decode), paces, on_stages, strict=True), start=1
        )
    ]
    pace = rows("pace", "Step with prompts by its slowest stage", "s", maximum(*carried))
    alone = rows("pace_alone", "Step without prompts by its slowest stage", "s", maximum(*paces))
    return rows(
        "longer",
        "Time prompts hold up a step",
        "s",
        where(setting.decode_workers.inputs.pp > 1, pace - alone, total),
        "in a pipeline its slowest stage",
    )


@dataclass(frozen=True)
class _Carried:
    """What a step carries.

    Args:
        share: prompts in it, against those of a prefill pass; `again` reads of the weights for them.
        runs: 1 where decode runs in the same step.
    """

    rows: Rows
    share: Quantity
    again: Quantity
    runs: Quantity

    def on_device(
        self,
        number: int,
        prompts: Mapping[str, tuple[Block, Node]],
        step: Mapping[str, tuple[Block, Node]],
    ) -> dict[str, Quantity]:
        """Seconds by which prompts lengthen all runs of the operations of layers on a device."""
        found = {}
        for name, (block, repeats) in prompts.items():
            label = f"{lowered(block.label)}, device {number}"
            other = step[name][0] if name in step else None
            longer = self.added(f"{number}.{name}", label, block, other, repeats)
            found[name] = self.rows(f"{number}.{name}.added", f"Time prompts add, {label}", "s", longer)
        return found

    def added(self, name: str, label: str, prompts: Block, step: Block | None, repeats: Node | None) -> Node:
        """Seconds by which prompts lengthen all runs of an operation.

        Args:
            name, label: of its rows.
            prompts: the operation in the prefill pass; `step` in the decode step.
            repeats: how often it runs; None: once.
        """
        if step is not None and _is_product(prompts):
            together = self._time(name, label, prompts, step)
            once: Node = maximum(0, together - self.runs * _alone(step))
        else:
            alone = prompts.layer_time if prompts.launch is None else prompts.layer_time - prompts.launch
            once = self.share * alone
        return once if repeats is None else once * repeats

    def _time(self, name: str, label: str, prompts: Block, step: Block) -> Quantity:
        """Seconds of a product in a step with prompts: weights are read once, for the tokens of all."""
        assert prompts.bytes is not None and prompts.reads is not None and prompts.memory is not None
        assert step.bytes is not None and step.reads is not None
        assert prompts.compute is not None and step.compute is not None
        rows, share, runs = self.rows, self.share, self.runs
        weights = rows(
            f"{name}.weights",
            f"Weight bytes of the step, {label}",
            "B",
            maximum(self.again * prompts.reads, runs * step.reads),
            "read once",
        )
        activations = share * (prompts.bytes - prompts.reads) + runs * (step.bytes - step.reads)
        moved = rows(f"{name}.bytes", f"Bytes of the step, {label}", "B", weights + activations)
        return rows(
            f"{name}.time",
            f"Time of the step with prompts, {label}",
            "s",
            maximum(share * prompts.compute + runs * step.compute, moved * (prompts.memory / prompts.bytes)),
            "launches left out",
        )


def _is_product(block: Block) -> bool:
    """Whether an operation multiplies with weights: one operation for prompts and running requests alike."""
    return block.module is not None and isinstance(block.module.operation, MatMul | GroupedMatMul)


def _alone(step: Block) -> Node:
    """Seconds of a product in a decode step without prompts, its launch left out."""
    assert step.compute is not None and step.memory is not None
    return maximum(step.compute, step.memory)
