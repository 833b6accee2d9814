"""Every tensor as it is stored, and what of the tensors the fullest rank holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mantile.equations.formats import class_label
from mantile.equations.plan import Sharding
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    as_node,
    equal,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.graph.sentence import lowered
from mantile.ir.modules import ModelGraph, Module, Tensor

VECTORS = "vectors"
"""The class of norms and biases, which stay in 16 bit."""


@dataclass(frozen=True)
class RankWeights:
    """Weights of one class in the layers of one kind, on the fullest rank.

    Args:
        weights: the class: one of matrices, or `VECTORS`.
        layers: how many layers there are.
        parameters: in one of them.
        tensors: that the parameters are of.
        title, words: how labels and sentences call them.
    """

    weights: str
    layers: Node
    parameters: Quantity
    tensors: tuple[Tensor, ...]
    title: str
    words: str

    @property
    def of_class(self) -> str:
        """The class, whatever data type the weights are kept in."""
        return self.weights.partition(".")[0]


@dataclass(frozen=True)
class Tensors:
    """Stored tensors.

    Args:
        listed: blocks of the Tensors part: every tensor of the model once.
        on_rank: blocks of the Memory part: what the fullest rank holds.
        sizes: parameters of each tensor, in all its layers.
        beside: the same of tensors that are no part of the decoder: vision tower, multi-token prediction.
        of_module: parameters of a module, by its id.
        predicted: parameters of multi-token prediction; None in a model without.
        parameters: of the decoder.
        of_layers: weights of a rank in one layer, by class and kind of layer.
        embedding, head, final_vectors: parameters of the model's ends on a rank.
        vision: parameters of the vision tower; None in a model without.
    """

    listed: tuple[Section, ...]
    on_rank: tuple[Section, ...]
    sizes: Mapping[Tensor, Quantity]
    beside: Mapping[Tensor, Quantity]
    of_module: Mapping[str, Quantity]
    predicted: Quantity | None
    parameters: Quantity
    of_layers: tuple[RankWeights, ...]
    embedding: Quantity
    head: Quantity
    final_vectors: Quantity
    vision: Quantity | None


def tensors(ir: ModelGraph, plan: Sharding, embedding_tp: Input | None) -> Tensors:
    """The rows of the Tensors part, and those of the tensors on a rank.

    Args:
        embedding_tp: ranks that share the rows of the embedding; None where no scenario states it.
    """
    names = _Names()
    sizes, by_module, sums = _modules(ir, plan, names)
    parameters, totals = _parameters(ir, sizes, sums)
    vision, of_vision, tower = _vision(ir, names)
    predicted, of_prediction, predicting = _prediction(ir, plan, names)
    of_layers, layer_sections = _layers(ir, plan, names)
    embedding, head, final_vectors, ends = _ends(ir, plan, embedding_tp)
    return Tensors(
        listed=(*by_module, totals, *of_vision, *of_prediction),
        on_rank=(*layer_sections, ends),
        sizes=sizes,
        beside=tower | predicting,
        of_module={row.id.removeprefix("tensors.module."): row for row in sums},
        predicted=predicted,
        parameters=parameters,
        of_layers=of_layers,
        embedding=embedding,
        head=head,
        final_vectors=final_vectors,
        vision=vision,
    )


@dataclass
class _Names:
    """Ids and labels of tensors, each once."""

    ids: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)

    def id(self, name: str, origin: str) -> str:
        """The id of a tensor; with where it comes from behind it until no other has it."""
        identifier = f"tensor.{name}"
        while identifier in self.ids:
            identifier += f".{origin}"
        self.ids.add(identifier)
        return identifier

    def label(self, name: str, origin: str) -> str:
        """The label of a tensor; n stands for an index."""
        label = name.replace("{}", "n")
        if label in self.labels:
            label = f"{label} ({origin})"
        self.labels.add(label)
        return label


def _product(shape: Iterable[Node]) -> Node:
    size, *others = shape
    for dimension in others:
        size = size * dimension
    return size


def of_layer(tensor: Tensor) -> Node:
    """Values of a tensor in one layer."""
    size = _product(tensor.shape)
    return size if tensor.copies is None else size * tensor.copies


def _stored(tensor: Tensor) -> Node:
    """Values of a tensor in all its layers."""
    size = of_layer(tensor)
    return size if tensor.layers is None else size * tensor.layers


def _listed(tensor: Tensor, plan: Sharding, names: _Names, origin: str, before: str = "") -> Quantity:
    """The row of one tensor; its source says how tensor parallelism treats it."""
    splits = plan.splits_of(*tensor.shape)
    treated = f"split by {' and '.join(splits)}" if splits else "on every rank"
    return Quantity(
        names.id(tensor.name, origin),
        names.label(before + tensor.name, origin),
        "parameter",
        _stored(tensor),
        source=f"{treated}; no parameter" if tensor.buffer else treated,
    )


def _modules(
    ir: ModelGraph, plan: Sharding, names: _Names
) -> tuple[dict[Tensor, Quantity], list[Section], list[Quantity]]:
    """Every tensor of the decoder by module: sizes by tensor, blocks, and the parameters of each module."""
    sizes: dict[Tensor, Quantity] = {}
    sections: list[Section] = []
    sums: list[Quantity] = []
    for module in ir.modules:
        rows = {tensor: _listed(tensor, plan, names, module.id) for tensor in module.tensors}
        sizes |= rows
        parameters = [row for tensor, row in rows.items() if not tensor.buffer]
        buffers = [row for tensor, row in rows.items() if tensor.buffer]
        if rows:
            repeats = "once" if module.layers is None else f"in {_called(module.layers)}"
            sections.append(Section(module.label, (*parameters, *buffers), repeats))
        if parameters:
            sums.append(
                Quantity(
                    f"tensors.module.{module.id}",
                    f"Parameters, {module.label}",
                    "parameter",
                    sum_range(span(parameters)),
                )
            )
    return sizes, sections, sums


def _parameters(
    ir: ModelGraph, sizes: Mapping[Tensor, Quantity], sums: Sequence[Quantity]
) -> tuple[Quantity, Section]:
    """Parameters of the decoder, and beside them what is stored but no parameter."""
    rows = Rows("tensors")
    rows.add(*sums)
    buffers: list[Node] = [row for tensor, row in sizes.items() if tensor.buffer]
    if buffers:
        rows("buffers", "Stored values that are no parameters", "parameter", sum_of(buffers))
    parameters = rows("parameters", "Parameters", "parameter", sum_range(span(sums)))
    return parameters, rows.section("Parameters", "of the decoder", Section.TOTAL)


_Beside = tuple[Quantity | None, list[Section], dict[Tensor, Quantity]]
"""Parameters, blocks, and sizes by tensor of what is no part of the decoder."""


def _vision(ir: ModelGraph, names: _Names) -> _Beside:
    """Tensors of the vision tower."""
    if not ir.tower():
        return None, [], {}
    rows = Rows("tensors")
    members = {
        tensor: Quantity(
            names.id(tensor.name, "vision"), tensor.name.replace("{}", "n"), "parameter", _stored(tensor)
        )
        for tensor in ir.tower()
        if not tensor.buffer
    }
    rows.add(*members.values())
    body = sum_range(span(members.values()))
    parameters = rows("vision", "Parameters of the vision tower", "parameter", body)
    note = "beside the decoder; the projector included"
    return parameters, [rows.section("Vision tower", note, Section.SUBTOTAL)], members


def _prediction(ir: ModelGraph, plan: Sharding, names: _Names) -> _Beside:
    """Tensors of multi-token prediction."""
    if not ir.prediction:
        return None, [], {}
    rows = Rows("tensors")
    members = {tensor: _listed(tensor, plan, names, "prediction", "MTP: ") for tensor in ir.prediction}
    rows.add(*members.values())
    body = sum_range(span(members.values()))
    parameters = rows("prediction", "Parameters of multi-token prediction", "parameter", body)
    note = "listed apart: not run, and not among the parameters"
    return parameters, [rows.section("Multi-token prediction", note, Section.SUBTOTAL)], members


def _layers(ir: ModelGraph, plan: Sharding, names: _Names) -> tuple[tuple[RankWeights, ...], list[Section]]:
    """What a rank holds of one layer, a block for each class of weights and kind of layer."""
    groups: dict[tuple[str, Node], list[Tensor]] = {}
    for tensor in ir.tensors():
        if tensor.layers is not None and not tensor.buffer:
            weights = tensor.stored if tensor.matrix else VECTORS
            groups.setdefault((weights, tensor.layers), []).append(tensor)
    classes = [weights for weights, _ in groups]
    owners = _owners(ir)
    of_layers: list[RankWeights] = []
    sections: list[Section] = []
    for (weights, layers), members in groups.items():
        rows = Rows("tensors")
        on_rank = [
            Quantity(
                names.id(f"{tensor.name}.rank", weights),
                names.label(f"On a rank, {tensor.name}", _identifier(layers)),
                "parameter",
                plan.on_rank(of_layer(tensor), owners[tensor]),
                name=f"{tensor.name.replace('{}', 'n')} on a rank",
            )
            for tensor in members
        ]
        rows.add(*on_rank)
        name, title = weights, "Norms, biases"
        if weights != VECTORS:
            of_class, _, kept = weights.partition(".")
            label = class_label(of_class)
            title = f"{label[0].upper()}{label[1:]} weights" + (f" kept in {kept}" if kept else "")
        label = f"{'norms and biases' if weights == VECTORS else lowered(title)} in"
        if classes.count(weights) > 1:
            kinds = _called(layers)
            name, title = f"{weights}.{_identifier(layers)}", f"{title}, {kinds}"
            label = f"{label} {'all layers' if kinds == 'layers' else kinds}"
        else:
            label = f"{label} a layer"
        parameters = rows(
            name,
            f"{title}, of a layer on a rank",
            "parameter",
            sum_range(span(on_rank)),
            called=f"{label} on a rank",
        )
        of_layers.append(RankWeights(weights, layers, parameters, tuple(members), title, label))
        sections.append(rows.section(title, "fullest rank, one layer", Section.SUBTOTAL))
    return tuple(of_layers), sections


def _outside_layers(ir: ModelGraph) -> tuple[list[Tensor], list[Tensor]]:
    """The matrices before the layers, and those behind them but for the LM head's."""
    outside = [module.layers is None for module in ir.modules]
    first = outside.index(False)
    before = [tensor for module in ir.modules[:first] for tensor in module.tensors if tensor.matrix]
    after = [module for module in ir.modules[first:] if module.layers is None and module.id != "lm_head"]
    return before, [tensor for module in after for tensor in module.tensors if tensor.matrix]


def _ends(
    ir: ModelGraph, plan: Sharding, embedding_tp: Input | None
) -> tuple[Quantity, Quantity, Quantity, Section]:
    """What a rank holds of embedding, LM head, and the norm before it."""
    owners = _owners(ir)
    start, others = _outside_layers(ir)
    head_matrices = [tensor for tensor in ir.module("lm_head").tensors if tensor.matrix]
    vectors = [tensor for tensor in ir.tensors() if tensor.layers is None and not tensor.matrix]

    def each(members: Sequence[Tensor]) -> list[Node]:
        return [plan.on_rank(_product(tensor.shape), owners[tensor]) for tensor in members]

    def on_rank(members: Sequence[Tensor]) -> Node:
        return sum_of(each(members) or [as_node(0)])  # norms of a class may have no weights

    rows = Rows("tensors")
    of_start = rows.added("embedding", "Embedding weights on a rank", "parameter", each(start), most=3)
    if embedding_tp is not None:
        whole = sum_of([_product(tensor.shape) for tensor in start])
        of_start = where(equal(embedding_tp, 1), whole, of_start)
    embedding = rows("embedding", "Embedding weights on a rank", "parameter", of_start)
    behind = (
        rows("behind", "Weights behind the layers on a rank", "parameter", on_rank(others)) if others else 0
    )
    head = rows(
        "head",
        "LM head weights on a rank",
        "parameter",
        where(ir.facts["tied_embeddings"] > 0, 0, on_rank(head_matrices or start[:1])) + behind,
        "a tied head uses the embedding",
    )
    final = rows("final_vectors", "Final norm and bias weights on a rank", "parameter", on_rank(vectors))
    section = rows.section("Embedding and LM head on a rank", "vocabulary split over the TP ranks")
    return embedding, head, final, section


def _owners(ir: ModelGraph) -> dict[Tensor, Module]:
    """The module of each tensor."""
    return {tensor: module for module in ir.modules for tensor in module.tensors}


def _called(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return lowered(layers.label)


def _identifier(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return layers.id.removeprefix("model.")
