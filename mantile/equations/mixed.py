"""A step that carries prompts beside the tokens of running requests.

Operation by operation, by the same roofline as the passes by themselves. Weights are read once for all tokens
of the step: where decode waits for memory, the FLOPs of prompts fit into that wait and add nothing. Devices
that are not alike do so each for itself: one may wait for memory where another computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.constant import ONE_REQUEST
from mantile.equations.roofline import Block
from mantile.equations.serving.setting import Setting
from mantile.equations.serving.stages import AT_END, layers_beside_head
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

_BESIDE = "Prefill pass without its products of weights"
_SLOWEST = "Step with prompts by its slowest stage"


@dataclass(frozen=True)
class MixedStep:
    """What prompts add to a decode step, or take where decode stops for them.

    Args:
        longer: seconds by which all prompts in the step hold it up, launches left out.
        rows: by product, the sum of all, and what a pipeline makes of it.
    """

    longer: Quantity
    rows: tuple[Quantity, ...]


@dataclass(frozen=True)
class Beside:
    """What a prefill pass does beside the products of weights: it takes as long in a step with other tokens.

    Args:
        whole: seconds of it in a pass, launches left out; `parts` by operation.
        in_layers: seconds of it in the layers of each device, where they are not alike.
    """

    whole: Quantity
    parts: Mapping[str, Quantity]
    in_layers: tuple[Quantity, ...]
    rows: tuple[Quantity, ...]


def beside_products(setting: Setting) -> Beside:
    """The time of a prefill pass beside its products of weights, operation by operation."""
    rows = Rows("mixed.beside")
    prefill, decode = setting.prefill, setting.decode
    apart = [
        {
            name: rows(
                f"{number}.{name}",
                f"{_BESIDE}, {lowered(block.label)}, device {number}",
                "s",
                _in_all_runs(_without_launch(block), repeats),
            )
            for name, (block, repeats) in device.blocks.items()
            if not (_is_product(block) and name in other.blocks)
        }
        for number, (device, other) in enumerate(zip(prefill.devices, decode.devices, strict=True), start=1)
    ]
    in_step = {block.id for block in decode.blocks}
    parts = {
        block.id: rows(
            block.id,
            f"{_BESIDE}, {lowered(block.label)}",
            "s",
            sum_of([device[block.id] for device in apart])
            if apart and block.id in apart[0] and not block.network
            else _in_all_runs(_without_launch(block), block.repeats),
        )
        for block in prefill.blocks
        if block.id != "host" and not (_is_product(block) and block.id in in_step)
    }
    whole = rows("whole", _BESIDE, "s", sum_range(span(list(parts.values()))), "launches left out")
    in_layers = tuple(
        rows(
            f"{number}.layers",
            f"{_BESIDE}, layers of device {number}",
            "s",
            rows.added(f"{number}.layers.part", f"{_BESIDE}, device {number}", "s", list(one.values()), 8),
        )
        for number, one in enumerate(apart, start=1)
    )
    return Beside(whole, parts, in_layers, rows.quantities())


def mixed_step(
    setting: Setting, beside: Beside, prompts: Node, stops: Node, *, is_full: bool = False
) -> MixedStep:
    """The time that prompts add to a step.

    Args:
        setting: with the pass of a prompt for each attention group, and the step of the running requests.
        beside: what that pass does beside products of weights.
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
    apart = [
        step.on_device(number, one.blocks, other.blocks)
        for number, (one, other) in enumerate(zip(prefill.devices, decode.devices, strict=True), start=1)
    ]
    steps = {block.id: block for block in decode.blocks}
    products = [block for block in prefill.blocks if _is_product(block) and block.id in steps]
    in_all_runs = {
        block.id: sum_of([device[block.id] for device in apart])
        if apart and block.id in apart[0]
        else step.added(block.id, lowered(block.label), block, steps[block.id], block.repeats)
        for block in products
    }
    added = {
        block.id: rows(
            block.id, f"Time prompts add to a step, {lowered(block.label)}", "s", in_all_runs[block.id]
        )
        for block in products
    }
    total = rows(
        "added",
        "Time prompts add to a step",
        "s",
        share * beside.whole + sum_range(span(list(added.values()))),
    )
    ends: list[Node] = [
        *(share * row for name, row in beside.parts.items() if name in AT_END),
        *(row for name, row in added.items() if name in AT_END),
    ]
    at_end = ends[0]
    if len(ends) > 1:
        at_end = rows("at_end", "Time prompts add at the end of the last stage", "s", sum_of(ends))
    if apart:
        pace = _on_devices(rows, setting, step.in_layers(apart, beside), total, at_end)
    else:
        pace = _on_equal_stages(rows, setting, total, at_end)
    longer = rows(
        "longer",
        "Time prompts hold up a step",
        "s",
        where(setting.decode_workers.inputs.pp > 1, pace - setting.paced.slowest, total),
        "in a pipeline its slowest stage, which may be another with them",
    )
    return MixedStep(longer, rows.quantities())


def _on_equal_stages(rows: Rows, setting: Setting, total: Quantity, at_end: Node) -> Quantity:
    """Seconds of a step with prompts by its slowest stage: one with most layers, or the last one."""
    ir, workers = setting.ir, setting.decode_workers
    of_layer = rows(
        "layer",
        "Time prompts add on a mean layer",
        "s",
        (total - at_end) / ir.total_layers,
        "with all but the LM head",
    )
    fullest, last = setting.paced.paces
    return rows(
        "pace",
        _SLOWEST,
        "s",
        maximum(
            workers.plan.stages.fullest * of_layer + fullest,
            layers_beside_head(workers, ir) * of_layer + at_end + last,
        ),
    )


def _on_devices(
    rows: Rows, setting: Setting, in_layers: list[Quantity], total: Quantity, at_end: Node
) -> Quantity:
    """Seconds of a step with prompts by its slowest device.

    Args:
        in_layers: seconds that prompts add in the layers of each.
    """
    elsewhere = rows(
        "elsewhere",
        "Time prompts add outside layers",
        "s",
        total - rows.added("in_layers", "Time prompts add in layers", "s", in_layers, 4) - at_end,
        "spread over the layers",
    )
    paces = [
        rows(
            f"pace.{number}",
            f"Step with prompts by the pace of device {number}",
            "s",
            pace + layered + elsewhere * device.part + where(device.last, at_end, 0),
        )
        for number, (pace, layered, device) in enumerate(
            zip(setting.paced.paces, in_layers, setting.prefill.devices, strict=True), start=1
        )
    ]
    return rows("pace", _SLOWEST, "s", maximum(*paces))


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
        """Seconds by which prompts lengthen all runs of the products of layers on a device."""
        found = {}
        for name, (block, repeats) in prompts.items():
            if not (_is_product(block) and name in step):
                continue
            label = f"{lowered(block.label)}, device {number}"
            longer = self.added(f"{number}.{name}", label, block, step[name][0], repeats)
            found[name] = self.rows(f"{number}.{name}.added", f"Time prompts add, {label}", "s", longer)
        return found

    def added(self, name: str, label: str, prompts: Block, step: Block, repeats: Node | None) -> Node:
        """Seconds by which prompts lengthen all runs of a product.

        Args:
            name, label: of its rows.
            prompts: the product in the prefill pass; `step` in the decode step.
            repeats: how often it runs; None: once.
        """
        together = self._time(name, label, prompts, step)
        return _in_all_runs(maximum(0, together - self.runs * _alone(step)), repeats)

    def in_layers(self, apart: Sequence[Mapping[str, Quantity]], beside: Beside) -> list[Quantity]:
        """Seconds that prompts add in the layers of each device.

        Args:
            apart: by product, for each device.
        """
        return [
            self.rows(
                f"{number}.layers",
                f"Time prompts add in the layers of device {number}",
                "s",
                self.rows.added(
                    f"{number}.layers.part",
                    f"Time prompts add, device {number}",
                    "s",
                    [self.share * others, *products.values()],
                    7,
                ),
            )
            for number, (products, others) in enumerate(zip(apart, beside.in_layers, strict=True), start=1)
        ]

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


def _in_all_runs(once: Node, repeats: Node | None) -> Node:
    return once if repeats is None else once * repeats


def _without_launch(prompts: Block) -> Node:
    """Seconds of an operation, its launch left out."""
    return prompts.layer_time if prompts.launch is None else prompts.layer_time - prompts.launch


def _alone(step: Block) -> Node:
    """Seconds of a product in a decode step without prompts, its launch left out."""
    assert step.compute is not None and step.memory is not None
    return maximum(step.compute, step.memory)
