"""Which tensors a model stores, and by what each is split; what they come to stands in tensors.eq."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mantile.equations.formats import class_label
from mantile.equations.plan import Sharding
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Node, Quantity, Section, as_node, span, sum_of
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
        of_layers: weights of a rank in one layer, by class and kind of layer.
    """

    listed: tuple[Section, ...]
    on_rank: tuple[Section, ...]
    sizes: Mapping[Tensor, Quantity]
    beside: Mapping[Tensor, Quantity]
    of_layers: tuple[RankWeights, ...]


def features_of_tensors(ir: ModelGraph) -> Iterator[str]:
    """What an architecture stores, by the names of `when`."""
    has = {
        "buffers": any(tensor.buffer for tensor in ir.tensors()),
        "vision_tower": bool(ir.tower()),
        "prediction": bool(ir.prediction),
    }
    yield from (name for name, is_so in has.items() if is_so)


def tensors(ir: ModelGraph, plan: Sharding, rows: Equations) -> Tensors:
    """The rows of the Tensors part, and those of the tensors on a rank."""
    names = _Names()
    sizes = _modules(ir, plan, names, rows)
    beside = {
        tensor: Quantity(
            names.id(tensor.name, "vision"), tensor.name.replace("{}", "n"), "parameter", _stored(tensor)
        )
        for tensor in ir.tower()
        if not tensor.buffer
    }
    rows.know_as("tensors.of_vision", span(beside.values()))
    predicting = {tensor: _listed(tensor, plan, names, "prediction", "MTP: ") for tensor in ir.prediction}
    rows.know_as("tensors.of_prediction", span(predicting.values()))
    of_layers = _classes(ir, plan, names, rows)
    _know_ends(ir, plan, rows)
    return Tensors(
        listed=rows.sections("tensors", "{label}", "Parameters", "Vision tower", "Multi-token prediction"),
        on_rank=rows.sections("tensors", "{title}", "Embedding and LM head on a rank"),
        sizes=sizes,
        beside=beside | predicting,
        of_layers=of_layers,
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


def _modules(ir: ModelGraph, plan: Sharding, names: _Names, rows: Equations) -> dict[Tensor, Quantity]:
    """Every tensor of the decoder, by module."""
    sizes: dict[Tensor, Quantity] = {}
    stored, counted = list[Space](), list[Space]()
    for module in filter(lambda each: each.tensors, ir.modules):
        own = {tensor: _listed(tensor, plan, names, module.id) for tensor in module.tensors}
        sizes |= own
        parameters, buffers = (
            [own[tensor] for tensor in own if tensor.buffer == is_buffer] for is_buffer in (False, True)
        )
        rows.know_as(f"tensors.stored_of.{module.id}", span((*parameters, *buffers)))
        repeats = "once" if module.layers is None else f"in {_called(module.layers)}"
        stored.append(Space(facts={"m": module.id, "label": module.label, "repeats": repeats}))
        if parameters:
            rows.know_as(f"tensors.parameters_of.{module.id}", span(parameters))
            counted.append(stored[-1])
    rows.make_in("module with tensors", *stored)
    rows.make_in("module with parameters", *counted)
    if "buffers" in rows.features:
        buffers = [row for tensor, row in sizes.items() if tensor.buffer]
        rows.know_as("tensors.not_parameters", sum_of(list[Node](buffers)))
    return sizes


def _classes(ir: ModelGraph, plan: Sharding, names: _Names, rows: Equations) -> tuple[RankWeights, ...]:
    """What a rank holds of one layer, of each class of weights and kind of layer."""
    groups: dict[tuple[str, Node], list[Tensor]] = {}
    for tensor in ir.tensors():
        if tensor.layers is not None and not tensor.buffer:
            weights = tensor.stored if tensor.matrix else VECTORS
            groups.setdefault((weights, tensor.layers), []).append(tensor)
    classes = [weights for weights, _ in groups]
    owners, spaces = _owners(ir), list[Space]()
    for (weights, layers), members in groups.items():
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
        name, title = weights, "Norms, biases"
        if weights != VECTORS:
            of_class, _, kept = weights.partition(".")
            label = class_label(of_class)
            title = f"{label[0].upper()}{label[1:]} weights" + (f" kept in {kept}" if kept else "")
        words = f"{'norms and biases' if weights == VECTORS else lowered(title)} in"
        if classes.count(weights) > 1:
            kinds = _called(layers)
            name, title = f"{weights}.{_identifier(layers)}", f"{title}, {kinds}"
            words = f"{words} {'all layers' if kinds == 'layers' else kinds}"
        else:
            words = f"{words} a layer"
        rows.know_as(f"tensors.on_rank.{name}", span(on_rank))
        spaces.append(Space(facts={"class": name, "title": title, "words": words}))
    rows.make_in("class on a rank", *spaces)
    return tuple(
        RankWeights(
            weights,
            layers,
            rows[f"tensors.{space.facts['class']}"],
            tuple(members),
            space.facts["title"],
            space.facts["words"],
        )
        for ((weights, layers), members), space in zip(groups.items(), spaces, strict=True)
    )


def _outside_layers(ir: ModelGraph) -> tuple[list[Tensor], list[Tensor]]:
    """The matrices before the layers, and those behind them but for the LM head's."""
    outside = [module.layers is None for module in ir.modules]
    first = outside.index(False)
    before = [tensor for module in ir.modules[:first] for tensor in module.tensors if tensor.matrix]
    after = [module for module in ir.modules[first:] if module.layers is None and module.id != "lm_head"]
    return before, [tensor for module in after for tensor in module.tensors if tensor.matrix]


def _know_ends(ir: ModelGraph, plan: Sharding, rows: Equations) -> None:
    """Name what a rank holds before the layers, and behind them."""
    owners = _owners(ir)
    start, behind = _outside_layers(ir)
    head = [tensor for tensor in ir.module("lm_head").tensors if tensor.matrix]
    vectors = [tensor for tensor in ir.tensors() if tensor.layers is None and not tensor.matrix]

    def on_rank(members: Iterable[Tensor]) -> Node:  # norms of a class may have no weights
        parts = [plan.on_rank(_product(tensor.shape), owners[tensor]) for tensor in members]
        return sum_of(parts or [as_node(0)])

    placed = [Quantity("tensors.behind", "Weights behind the layers on a rank", "parameter", on_rank(behind))]
    rows.know_as("tensors.behind", placed[0] if behind else as_node(0))
    rows.know_as("tensors.matrices_behind", span(placed if behind else ()))
    rows.know_as("tensors.embedding_split", on_rank(start))
    rows.know_as("tensors.head_split", on_rank(head or start[:1]))
    rows.know_as("tensors.vectors_outside", on_rank(vectors))
    rows.know_as("tensors.embedding_whole", sum_of([_product(tensor.shape) for tensor in start]))


def _owners(ir: ModelGraph) -> dict[Tensor, Module]:
    """The module of each tensor."""
    return {tensor: module for module in ir.modules for tensor in module.tensors}


def _called(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return lowered(layers.label)


def _identifier(layers: Node) -> str:
    assert isinstance(layers, Input | Quantity)
    return layers.id.removeprefix("model.")
