"""Routed experts: grouped products that read the experts some token goes through."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_MAC, HALF, ONE_TOKEN, RESULT_BYTES, SATURATED
from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import Formats
from mantile.equations.linear import channels_on_rank
from mantile.equations.plan import Sharding
from mantile.equations.roofline import Block, Phase, operation
from mantile.graph.quantity import Quantity, minimum
from mantile.ir.modules import GroupedMatMul, ModelGraph, Module


def coverage(phase: str, tokens: Quantity, efficiency: Efficiency, ir: ModelGraph) -> Quantity | None:
    """Share of a layer's experts that at least one token of a pass goes through: 1 - (1 - k/E)^(T^spread).

    A token misses an expert with probability 1 - k/E; the exponent of T is below 1 because routing is skewed. None in a
    model without experts.
    """
    found = next(
        (module.operation for module in ir.modules if isinstance(module.operation, GroupedMatMul)), None
    )
    if found is None:
        return None
    chosen = 1 - found.per_token / found.count
    counted = minimum(
        (tokens / ONE_TOKEN) ** efficiency["routing_spread"], SATURATED * found.count / found.per_token
    )  # LibreOffice knows no smaller power
    return Quantity(
        f"{phase}.coverage",
        "Share of the experts touched",
        "1",
        1 - chosen**counted,
        name="expert coverage",
        note="1 − (1 − experts per token ÷ experts) to the power (tokens to the power routing spread)",
    )


def experts(
    phase: Phase,
    module: Module,
    work: GroupedMatMul,
    formats: Formats,
    efficiency: Efficiency,
    plan: Sharding,
) -> Block:
    """One of the two grouped products of a layer; the launch of the pair is shared between them."""
    assert phase.coverage is not None and plan.experts is not None
    prefix = f"{phase.id}.{module.id}"
    held = formats.classes["experts"]
    inputs, outputs, channels = channels_on_rank(prefix, module, plan, work.inputs, work.outputs)
    routed = Quantity(
        f"{prefix}.rows",
        f"Tokens times experts on a rank, {module.label}",
        "token",
        phase.tokens_of(module) * work.per_token,
        name="routed tokens",
        note="tokens a rank's experts work on × experts per token",
    )
    parameters = Quantity(
        f"{prefix}.parameters",
        f"Parameters of an expert per rank, {module.label}",
        "parameter",
        inputs * outputs,
        name="parameters of an expert",
    )
    weights = Quantity(
        f"{prefix}.weight_bytes",
        f"Weight bytes, {module.label}",
        "B",
        phase.coverage * plan.experts * parameters * held.bytes,
        name="weight bytes",
        note="expert coverage × experts per rank × parameters of an expert × bytes per weight",
    )
    return operation(
        phase,
        module=module,
        launch=HALF * efficiency["moe_launch_time"],
        flops=FLOPS_PER_MAC * routed * parameters * efficiency["expert_imbalance"],
        rate=efficiency["moe_flops"],
        traffic=weights + routed * (inputs * held.activation_bytes + outputs * RESULT_BYTES),
        bandwidth=efficiency["moe_bytes"],
        setup=(*channels, routed, parameters, weights),
        reads=weights,
        note="experts divided over EP, each split over the ranks that share it",
    )
