"""The model's own figures: its facts, the dimensions that follow from them, and how many parameters it has.

Parameters are counted by what the modules compute; the checks compare them with the tensors as stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.tensors import of_layer
from mantile.equations.typed import SharedCells, dimensions_typed
from mantile.graph.quantity import Node, Quantity, Row, Section, expression, is_named, span, sum_of, sum_range
from mantile.graph.rows import Rows
from mantile.ir.modules import Elementwise, GroupedMatMul, MatMul, ModelGraph, Module, Tensor
from mantile.library.architecture import NOT_RUN


@dataclass(frozen=True)
class ModelSize:
    """Parameters of the decoder, and those that a token goes through.

    Args:
        experts: parameters of the routed experts; None in a model without.
        typed: what the cells of dimensions hold.
        sections: the blocks of Facts on IR.
    """

    parameters: Quantity
    active_parameters: Quantity
    experts: Quantity | None
    typed: SharedCells
    sections: tuple[Section, ...]


def model(ir: ModelGraph) -> ModelSize:
    """The rows of Facts on IR."""
    rows = Rows("model")
    routed: list[Quantity] = []
    for module in ir.modules:
        row = size(rows, module)
        if row is not None and isinstance(module.operation, GroupedMatMul):
            routed.append(row)
    parameters = rows(
        "parameters",
        "Parameters by the modules",
        "parameter",
        sum_range(span([row for row in rows.rows if isinstance(row, Quantity)])),
        called="parameters",
    )
    experts = None
    if routed:
        experts = rows("expert_parameters", "Parameters of the routed experts", "parameter", sum_of(routed))
    active = rows(
        "active_parameters",
        "Parameters active for a token",
        "parameter",
        parameters if experts is None else parameters - experts * (1 - _chosen(ir)),
        "" if experts is None else "all but the routed experts a token does not go through",
    )
    typed = dimensions_typed(ir)
    return ModelSize(
        experts=experts,
        typed=typed,
        parameters=parameters,
        active_parameters=active,
        sections=(
            Section(
                "Architecture",
                tuple(ir.facts.values()),
                "type another number, and why beside it; grey ones change in a scenario file",
            ),
            *_vision(ir),
            Section("Dimensions", ir.sizes, "made of the facts above"),
            rows.section("Size", "from the dimensions above", Section.SUBTOTAL),
        ),
    )


def size(rows: Rows, module: Module) -> Quantity | None:
    """Parameters of a module in all its layers; many norms and biases get rows of their own.

    Returns:
        the row of the module; None if it has no parameters, or none beside those rows.
    """
    matrices = _matrices(module)
    vectors = [tensor for tensor in module.tensors if _stands_apart(tensor, module)]
    if not matrices and not vectors:
        return None
    values = [of_layer(tensor) for tensor in vectors]
    work = module.operation
    if isinstance(work, GroupedMatMul):  # biases of experts are stored together
        body = sum_of([*(matrix * work.count for matrix in matrices), *values])
        if not values:
            body = sum_of(matrices) * work.count
    else:
        body = sum_of([*matrices, *values])
        if len(vectors) > 2 or (vectors and _references(body) > _READABLE):
            _vector_rows(rows, module)
            if not matrices:
                return None
            body = sum_of(matrices)
    return rows(f"size.{module.id}", f"Parameters of {module.label}", "parameter", _in_layers(body, module))


def _vector_rows(rows: Rows, module: Module) -> None:
    """A row for each norm and bias of a module."""
    for number, tensor in enumerate(module.tensors):
        if _stands_apart(tensor, module):
            rows(
                f"size.{module.id}.{number}",
                f"Parameters of {module.label}, {tensor.name.split('.', 3)[-1]}",
                "parameter",
                _in_layers(of_layer(tensor), module),
            )


def _matrices(module: Module) -> list[Node]:
    """Values of the matrices of a module, in one layer and of one expert, by what it multiplies."""
    work = module.operation
    values: list[Node] = []
    held = [tensor for tensor in module.tensors if tensor.matrix]
    if isinstance(work, MatMul | GroupedMatMul) and held:
        product = work.inputs * work.outputs
        # an LM head has none of its own where it is the embedding
        own = held[0].copies if module.step == "lm_head" else None
        values.append(product if own is None else product * own)
    if isinstance(work, Elementwise) and work.kind == "embedding":
        values += [of_layer(tensor) for tensor in module.tensors if tensor.matrix and not tensor.buffer]
    return values


def _stands_apart(tensor: Tensor, module: Module) -> bool:
    """Whether no product tells its size: norms, biases, and what no pass runs."""
    return not tensor.buffer and (not tensor.matrix or module.step == NOT_RUN)


def _in_layers(values: Node, module: Module) -> Node:
    return values if module.layers is None else values * module.layers


def _chosen(ir: ModelGraph) -> Node:
    """The share of the experts that a token goes through."""
    work = next(
        module.operation for module in reversed(ir.modules) if isinstance(module.operation, GroupedMatMul)
    )
    return work.per_token / work.count


_READABLE = 7  # references in a formula, before the layers


def _references(body: Node) -> int:
    return sum(map(is_named, expression(body)))


def _vision(ir: ModelGraph) -> tuple[Section, ...]:
    """The facts of a vision tower and what follows from them."""
    if ir.vision is None:
        return ()
    rows: tuple[Row, ...] = (*ir.vision.facts.values(), *ir.vision.rows())
    return (Section("Vision tower", rows, "facts of its own config"),)
