"""Matrix products: projections of mixers, FFN matrices, routers, LM head."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_MAC, RESULT_BYTES, TOKENS_PER_STEP
from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import Formats
from mantile.equations.plan import Sharding, scope
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Apply, Node, Quantity
from mantile.ir.modules import MatMul, Module


def product(
    phase: Phase, module: Module, work: MatMul, formats: Formats, efficiency: Efficiency, plan: Sharding
) -> Block:
    """Rows of tokens with a matrix of outputs x inputs channels, on each rank what it holds of both.

    2 x tokens x parameters FLOPs against weights read once, input and result moved once.
    """
    prefix = f"{phase.id}.{module.id}"
    held = formats.classes[work.weights]
    rows = phase.rank_requests * TOKENS_PER_STEP if work.rows == "requests" else phase.tokens_of(module)
    inputs, outputs, channels = channels_on_rank(prefix, module, plan, work.inputs, work.outputs)
    parameters = Quantity(
        f"{prefix}.parameters",
        f"Parameters per rank, {module.label}",
        "parameter",
        inputs * outputs,
        name="parameters",
    )
    weights = Quantity(
        f"{prefix}.weight_bytes",
        f"Weight bytes, {module.label}",
        "B",
        parameters * held.bytes,
        name="weight bytes",
    )
    return operation(
        phase,
        module=module,
        launch=efficiency[f"gemm_launch_time.{work.weights}"],
        flops=FLOPS_PER_MAC * rows * parameters,
        rate=efficiency[f"gemm_flops.{work.weights}"],
        traffic=weights + rows * (inputs * held.activation_bytes + outputs * RESULT_BYTES),
        bandwidth=efficiency[f"gemm_bytes.{work.weights}"],
        setup=(*channels, parameters, weights),
        reads=weights,
        note=_sharded(module, work, plan),
    )


def channels_on_rank(
    prefix: str, module: Module, plan: Sharding, inputs: Node, outputs: Node
) -> tuple[Node, Node, tuple[Quantity, ...]]:
    """Channels in and out on a rank; rows for those that are made of several dimensions."""
    found: list[Node] = []
    rows: list[Quantity] = []
    for name, label, whole in (("inputs", "Channels in", inputs), ("outputs", "Channels out", outputs)):
        here = plan.on_rank(whole, module)
        if isinstance(here, Apply):
            rows.append(
                Quantity(
                    f"{prefix}.{name}",
                    f"{label} per rank, {module.label}",
                    "channel",
                    here,
                    name=label.lower(),
                )
            )
            here = rows[-1]
        found.append(here)
    return found[0], found[1], tuple(rows)


def _sharded(module: Module, work: MatMul, plan: Sharding) -> str:
    words = "last token of every request; " if work.rows == "requests" else ""
    among = {"attention": "the TP ranks", "stage": "the ranks of a stage"}.get(
        scope(module), "the ranks that share it"
    )
    if plan.splits_of(work.outputs):
        return f"{words}columns split over {among}"
    return words + (f"rows split over {among}" if plan.splits_of(work.inputs) else "the same on every rank")
