"""Routed experts: grouped products that read the experts some token goes through."""

from __future__ import annotations

from mantile.equations.constant import (
    FLOPS_PER_MAC,
    HALF,
    ONE_TOKEN,
    RESULT_BYTES,
    SATURATED,
)
from mantile.equations.linear import bytes_per_weight, channels_on_rank
from mantile.equations.phase import Phase
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, logarithm, minimum, where
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, ModelGraph, Module


def coverage(rows: Rows, tokens: Node, workers: Workers, ir: ModelGraph) -> Quantity | None:
    """Share of its experts that the busiest rank reads in a pass; None in a model without experts.

    On average a share of 1 - (1 - k/E)^(T^spread) is touched: a token misses an expert with probability
    1 - k/E, and the exponent of T is below 1 because routing is skewed. How many of its experts a rank reads
    scatters like independent draws, and the layer waits for the rank that reads most. The largest of n such
    numbers lies about sqrt(ln n) deviations above their mean.
    """
    routed = [module.operation for module in ir.modules if isinstance(module.operation, GroupedMatMul)]
    if not routed:
        return None
    per_token, count = routed[0].per_token, routed[0].count
    if not isinstance(tokens, Quantity):
        tokens = rows("pass_tokens", "Tokens in one pass", "token", tokens)
    missed = 1 - per_token / count
    draws = minimum(
        (tokens / ONE_TOKEN) ** workers.efficiency["routing_spread"], SATURATED * count / per_token
    )  # LibreOffice knows no smaller power
    untouched = rows(
        "untouched",
        "Share of the experts not touched",
        "1",
        missed**draws,
        "a token misses an expert by chance; skewed routing counts as fewer tokens",
    )
    share = rows(
        "coverage",
        "Share of the experts touched",
        "1",
        1 - untouched,
        called="expert coverage",
    )
    deviation = rows(
        "coverage_deviation",
        "Deviation of that share between ranks",
        "1",
        (share * untouched / workers.rows["plan.experts"]) ** HALF,
        "as of independent draws",
        called="deviation of the coverage",
    )
    return rows(
        "coverage_busiest",
        "Share of its experts that the busiest rank reads",
        "1",
        minimum(1, share + deviation * logarithm(workers.rows["plan.expert_groups"]) ** HALF),
        "a layer waits for it; of n draws the highest lies about sqrt(ln n) deviations above their mean",
        called="coverage on the busiest rank",
    )


def experts(phase: Phase, module: Module, product: GroupedMatMul, workers: Workers) -> Block:
    """One of the two grouped products of a layer; the launch of the pair is shared between them."""
    efficiency, plan, formats = workers.efficiency, workers.plan, workers.formats.classes["experts"]
    assert phase.coverage is not None
    rows = rows_of(phase, module)
    inputs, outputs = channels_on_rank(rows, module, product, plan)
    routed = rows(
        "rows",
        "Tokens times experts on a rank",
        "token",
        phase.tokens_of(module) * product.per_token,
        called="routed tokens",
    )
    parameters = rows(
        "parameters",
        "Parameters of an expert per rank",
        "parameter",
        inputs * outputs,
        called="parameters of an expert",
    )
    touched = rows(
        "touched",
        "Experts touched on the busiest rank",
        "expert",
        phase.coverage * workers.rows["plan.experts"],
    )
    weights = rows(
        "weight_bytes",
        "Weight bytes",
        "B",
        phase.in_all_passes(touched * parameters * bytes_per_weight(rows, module, product, workers)),
    )
    row_bytes = rows(
        "row_bytes",
        "Bytes of a row in and out",
        "B/token",
        inputs * formats.activation_bytes + outputs * RESULT_BYTES,
        called="bytes of a row",
    )
    sends = workers.rows["plan.sends_tokens"] > 0
    fastest = where(sends, efficiency["moe_sent_flops"], efficiency["moe_flops"])
    multiplied = rows(
        "row_product", "Product of a row", "s", FLOPS_PER_MAC * ONE_TOKEN * parameters / fastest
    )
    moved = rows("row_moved", "Row moved in and out", "s", ONE_TOKEN * row_bytes / efficiency["streaming"])
    rate = rows(
        "rate",
        "FLOP/s reached",
        "FLOP/s",
        fastest * multiplied / (multiplied + moved),
        "a tile has few rows: no product hides that they are moved",
    )
    work = Work(
        launch=phase.in_all_passes(HALF * efficiency["moe_launch_time"]),
        flops=FLOPS_PER_MAC * routed * parameters * efficiency["expert_imbalance"],
        rate=rate,
        traffic=weights + routed * row_bytes,
        bandwidth=efficiency["moe_bytes"],
        reads=weights,
    )
    return operation(rows, module, work, "experts divided over EP, each split over the ranks that share it")
