"""Matrix products: projections of mixers, FFN matrices, routers, LM head."""

from __future__ import annotations

from mantile.equations.constant import FLOPS_PER_MAC, RESULT_BYTES, TOKENS_PER_STEP
from mantile.equations.phase import Phase
from mantile.equations.plan import Sharding, scope
from mantile.equations.roofline import Block, Work, operation, rows_of
from mantile.equations.workers import Workers
from mantile.graph.quantity import Apply, Node, sum_of
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, Module


def linear(phase: Phase, module: Module, product: MatMul, workers: Workers) -> Block:
    """Rows of tokens with a matrix of outputs x inputs channels, on each rank what it holds of both.

    2 x tokens x parameters FLOPs against weights read once, input and result moved once.
    """
    efficiency, weights_class = workers.efficiency, product.stored
    formats = workers.formats.classes[weights_class]
    ends = workers.checked if phase.decode else TOKENS_PER_STEP
    tokens = phase.rank_requests * ends if product.rows == "requests" else phase.tokens_of(module)
    rows = rows_of(phase, module)
    inputs, outputs = channels_on_rank(rows, module, product, workers.plan)
    parameters = rows("parameters", "Parameters per rank", "parameter", inputs * outputs, called="parameters")
    of_head = product.rows == "requests"
    once = parameters * bytes_per_weight(rows, module, product, workers)
    weights = rows("weight_bytes", "Weight bytes", "B", once if of_head else phase.in_all_passes(once))
    launch = efficiency[f"gemm_launch_time.{weights_class}"]
    work = Work(
        launch=launch if of_head else phase.in_all_passes(launch),
        flops=FLOPS_PER_MAC * tokens * parameters,
        rate=efficiency[f"gemm_flops.{weights_class}"],
        traffic=weights + tokens * (inputs * formats.activation_bytes + outputs * RESULT_BYTES),
        bandwidth=efficiency[f"gemm_bytes.{weights_class}"],
        reads=weights,
    )
    return operation(rows, module, work, _sharded(module, product, workers.plan))


def bytes_per_weight(rows: Rows, module: Module, product: MatMul | GroupedMatMul, workers: Workers) -> Node:
    """Bytes of a weight; a row where a module's matrices are kept in several data types."""
    stored, sizes = workers.formats.stored, workers.tensors.sizes
    matrices = [tensor for tensor in module.tensors if tensor.matrix]
    if len({tensor.stored for tensor in matrices}) < 2:
        return stored[product.stored].bytes
    values: list[Node] = []
    held: list[Node] = []
    for kind in dict.fromkeys(tensor.stored for tensor in matrices):
        of_kind = sum_of([sizes[tensor] for tensor in matrices if tensor.stored == kind])
        _, _, kept = kind.partition(".")
        called = f"in {kept}" if kept else "in the data type of the class"
        values.append(rows(f"values.{kind}", f"Weights {called}", "parameter", of_kind, "of all layers"))
        held.append(rows(f"held.{kind}", f"Bytes {called}", "B", values[-1] * stored[kind].bytes))
    body = sum_of(held) / sum_of(values)
    return rows("weight_size", "Bytes per weight", "B", body, "of matrices in several data types")


def channels_on_rank(
    rows: Rows, module: Module, product: MatMul | GroupedMatMul, plan: Sharding
) -> tuple[Node, Node]:
    """Channels in and out on a rank; a row where they are made of several dimensions."""

    def channels(name: str, label: str, dimension: Node) -> Node:
        on_rank = plan.on_rank(dimension, module)
        if not isinstance(on_rank, Apply):
            return on_rank
        return rows(name, f"{label} per rank", "channel", on_rank, called=label.lower())

    return channels("inputs", "Channels in", product.inputs), channels(
        "outputs", "Channels out", product.outputs
    )


def _sharded(module: Module, product: MatMul, plan: Sharding) -> str:
    prefix = "last token of every request; " if product.rows == "requests" else ""
    ranks = {"attention": "the TP ranks", "stage": "the ranks of a stage"}
    among = ranks.get(scope(module), "the ranks that share it")
    if plan.splits_of(product.outputs):
        return f"{prefix}columns split over {among}"
    if plan.splits_of(product.inputs):
        return f"{prefix}rows split over {among}"
    return f"{prefix}the same on every rank"
