"""Matrix products: QKV and output projections, FFN matrices, LM head."""

from __future__ import annotations

from mantile.equations.constants import FLOPS_PER_MAC, RESULT_BYTES
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Input, Node, Quantity


def product(
    phase: Phase,
    identifier: str,
    label: str,
    hardware: Hardware,
    efficiency: Efficiency,
    *,
    inputs: Node,
    outputs: Node,
    weight_bytes: Node,
    layers: Input | None,
    tokens: Node | None = None,
    flops_per_s: Node | None = None,
    note: str,
) -> Block:
    """A product of `tokens` rows with a matrix of `outputs` x `inputs` channels on each rank.

    2 x tokens x parameters FLOPs against weights read once, input and result moved once.
    """
    rows = phase.tokens if tokens is None else tokens
    low = label if label.startswith(("QKV", "FFN", "LM")) else label.lower()
    parameters = Quantity(f"{phase.id}.{identifier}.parameters", f"Parameters per rank, {low}", "parameter", inputs * outputs,
                          name="parameters")  # fmt: skip
    weights = Quantity(f"{phase.id}.{identifier}.weight_bytes", f"Weight bytes, {low}", "B", parameters * weight_bytes,
                       name="weight bytes")  # fmt: skip
    return operation(
        phase, identifier, label,
        launch=efficiency["gemm_launch_time"],
        flops=FLOPS_PER_MAC * rows * parameters,
        rate=efficiency["gemm_flops"] if flops_per_s is None else flops_per_s,
        traffic=weights + rows * (inputs * hardware.activation_bytes + outputs * RESULT_BYTES),
        bandwidth=efficiency["gemm_bytes"],
        layers=layers, setup=(parameters, weights), note=note,
    )  # fmt: skip
