"""What a model is made of, a row for each module in execution order, and every tensor with its shape.

Built where it is shown, for the base scenario: no estimate needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mantile.equations.constant import CONV_BYTES, STATE_BYTES, VECTOR_BYTES
from mantile.equations.graph import EstimateGraph
from mantile.equations.kv_cache import channels_of, kept_of
from mantile.equations.order import LayerOrder
from mantile.equations.plan import mentions, scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    ancestors,
    as_node,
    defined,
    equal,
    if_error,
    index,
    join,
    match,
    maximum,
    percent,
    rounded,
    span,
    sum_range,
    text,
    where,
)
from mantile.ir.modules import (
    Attention,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    MatMul,
    Module,
    Recurrence,
    Tensor,
)
from mantile.ir.words import kind_word
from mantile.library.architecture import Fact
from mantile.library.structure import OVERRIDE

SIXTEEN_BIT = "16 bit"
"""The format of norms, biases and the vision tower, which no input changes."""


@dataclass(frozen=True)
class TensorRow:
    """A stored tensor.

    Args:
        module: number of the module that it belongs to.
        shape: its dimensions; 1 stands for a plain 1.
        values: in all its layers; `size` bytes of one, `bytes` of all.
        dtype: the data type, or a text that no input changes.
    """

    tensor: Tensor
    module: int
    shape: tuple[Node, ...]
    values: Quantity
    dtype: Node | str
    size: Node
    bytes: Quantity


@dataclass(frozen=True)
class Dims:
    """Dimensions of what a module computes: so many matrices of outputs x inputs, or a width."""

    copies: Node | None
    outputs: Node
    inputs: Node | None


@dataclass(frozen=True)
class ModuleRow:
    """A module, or what stands beside the decoder.

    Args:
        id: of the module, or of what stands beside the decoder.
        layers: which layers have it, in words; None where it runs once. `counts` are the facts behind it.
        times: how many layers; None for once.
        parameters: in all layers.
        dtype: format of its matrices; a text that no input changes; None without tensors.
        bytes: of all its tensors; a fixed 0 without.
        split: how the ranks share it, by workers.
        cache: what it keeps of each token, or of each request.
        facts: names of the facts that its dimensions follow from.
        as_made: whether these facts, and numbers of layers, are those of the model as made; None without.
        remark: what is not as the class does it.
    """

    id: str
    number: int
    name: Input
    kind: str
    layers: Node | None
    counts: tuple[str, ...]
    times: Node | None
    dims: Dims | None
    parameters: Quantity | Input
    dtype: Node | str | None
    bytes: Quantity | Input
    split: tuple[Node, ...]
    cache: Quantity | None
    facts: tuple[str, ...]
    remark: str = ""
    as_made: Node | None = None

    @property
    def shared(self) -> Node:
        """How the ranks share it, in words; of both kinds of workers where these are apart."""
        if len(self.split) == 1:
            return self.split[0]
        phases = ("prefill ", " · decode ")
        return join(*(part for named in zip(phases, self.split, strict=True) for part in named))


@dataclass(frozen=True)
class IrSheet:
    """The modules and tensors of a model.

    Args:
        rows: in execution order; those behind `apart` are not run and not in the sums.
        parameters, bytes: sums over the rows that count, and of tensors beside them in `stored`.
        check: whether the parameters are those of the tensor list.
        order: what the words for layers need; None where nothing.
        layout: what lies in the cache, label and figure, or text.
    """

    title: Quantity
    rows: tuple[ModuleRow, ...]
    apart: tuple[ModuleRow, ...]
    parameters: Quantity
    bytes: Quantity
    shares: tuple[Node, ...]
    check: Node
    order: Quantity | None
    tensors: tuple[TensorRow, ...]
    layout: tuple[tuple[str, Node | str], ...]


def ir_sheet(graph: EstimateGraph) -> IrSheet:
    """Rows of the IR sheet."""
    return _Sheet(graph).made()


def weakest(facts: Sequence[Fact]) -> Fact | None:
    """The fact that a person states, else the least certain by its origin; None without facts."""
    order = [name for name in ORIGINS if name != OVERRIDE] + [OVERRIDE]
    return max(facts, key=lambda fact: order.index(origin(fact)), default=None)


TYPED = "user override"
"""What is said of facts that somebody typed over."""
ORIGINS = ("config", "derived", "code", "override", "default")
"""Where facts come from, the most certain first."""


def origin(fact: Fact) -> str:
    """Where a fact comes from; apart are what the class does, and a default in place of a field."""
    if fact.origin != "default":
        return fact.origin
    silent = "class default of" in fact.source or " absent" in fact.source
    return "default" if silent else "code"


def origin_words(row: ModuleRow, words: str) -> Node | str:
    """Where the facts of a module come from, until one of them is typed over."""
    return words if row.as_made is None else where(row.as_made, words, TYPED)


def flag_words(figure: Input) -> Node | str:
    """A flag as yes or no; live where it may be typed over."""
    if figure.fixed:
        return "yes" if figure.value else "no"
    return where(figure > 0, "yes", "no")


class _Sheet:
    """The sheet while it is made."""

    def __init__(self, graph: EstimateGraph) -> None:
        self.graph, self.ir = graph, graph.ir
        self.workers, self.stored = graph.prefill_workers, graph.prefill_workers.tensors
        self.order = LayerOrder(graph.ir, "ir")
        self.tensors: list[TensorRow] = []

    def made(self) -> IrSheet:
        rows: list[ModuleRow] = []
        towers = bool(self.ir.tower())
        if self.ir.vision is not None and towers:
            rows.append(self._vision(len(rows) + 1))
        for module in self.ir.modules:
            rows.append(self._module(len(rows) + 1, module))
        apart: list[ModuleRow] = []
        if self.ir.vision is None and towers:
            apart.append(self._vision(len(rows) + 1))
        apart += self._prediction(len(rows) + len(apart) + 1)
        sums = [
            Quantity(f"ir.{name}", f"All {unit}s", unit, sum_range(span(figures)))
            for name, unit, figures in (
                ("parameters", "parameter", [row.parameters for row in rows]),
                ("bytes", "B", [row.bytes for row in rows]),
            )
        ]
        listed: Node = self.graph.rows["tensors.parameters"]
        if self.ir.vision is not None:
            listed = listed + self.graph.rows["tensors.vision"]
        check = where(equal(sums[0], listed), "✓ sums to the tensor list", "✗ not the tensor list")
        return IrSheet(
            title=self._title(rows, sums[1]),
            rows=tuple(rows),
            apart=tuple(apart),
            parameters=sums[0],
            bytes=sums[1],
            shares=tuple(row.bytes / sums[1] for row in rows),
            check=check,
            order=self.order.as_made,
            tensors=tuple(self.tensors),
            layout=tuple(layout(self.graph)),
        )

    def _title(self, rows: Sequence[ModuleRow], total: Quantity) -> Quantity:
        """How many kinds of module there are, and which holds most bytes."""
        names, sizes = span([row.name for row in rows]), span([row.bytes for row in rows])
        body = join(
            f"IR: {self.ir.model.name} has {len(rows)} kinds of module; ",
            index(names, match(maximum(sizes), sizes)),
            " holds ",
            percent(maximum(sizes) / total, 0),
            " of its bytes",
        )
        return Quantity("ir.title", "Title", "1", body)

    def _module(self, number: int, module: Module) -> ModuleRow:
        kinds = [kind for kind in self.ir.layers if module in kind.modules]
        stores = any(not tensor.buffer for tensor in module.tensors)
        parameters = _parameters(number, self.graph.rows[f"tensors.module.{module.id}"] if stores else None)
        sizes = self._listed(number, [(t, self.stored.sizes[t]) for t in module.tensors])
        return ModuleRow(
            id=module.id,
            number=number,
            name=_name(number, module.label),
            kind=kind_word(module),
            layers=self.order.words(kinds) if kinds else None,
            counts=tuple(_fact(kind.count) for kind in kinds),
            times=module.layers,
            dims=dims(module),
            parameters=parameters,
            dtype=self._dtype(module),
            bytes=_bytes(number, sizes),
            split=tuple(split(module, workers) for workers in self.graph.workers),
            cache=self._cache(module),
            facts=_facts(module),
            remark=module.remark,
            as_made=self._as_made((*(_fact(kind.count) for kind in kinds), *_facts(module))),
        )

    def _as_made(self, names: Iterable[str]) -> Node | None:
        facts = [self.ir.facts[name] for name in dict.fromkeys(names) if name in self.ir.facts]
        typed = [fact for fact in facts if not fact.fixed]
        if not typed:
            return None
        now = join("", *[part for fact in typed for part in (" ", fact)][1:])
        return if_error(equal(now, " ".join(str(fact.value) for fact in typed)), 0)

    def _vision(self, number: int) -> ModuleRow:
        """The vision tower, in 16 bit on every rank of the first stage; or towers that no text runs."""
        members = [(t, self.stored.beside[t]) for t in self.ir.tower() if t in self.stored.beside]
        sizes = self._listed(number, members, sixteen_bit=True)
        all_values = _parameters(number, self.graph.rows["tensors.vision"])
        return ModuleRow(
            id="vision",
            number=number,
            name=_name(number, "Vision tower and projector" if self.ir.vision else "Towers, not run"),
            kind="Vision",
            layers=join("1 – ", text(self.ir.vision.layers)) if self.ir.vision else None,
            counts=(),
            times=None,
            dims=None,
            parameters=all_values,
            dtype=SIXTEEN_BIT,
            bytes=_bytes(number, sizes),
            split=tuple(_over(workers.inputs.tp, "weights") for workers in self.graph.workers),
            cache=None,
            facts=(),
        )

    def _prediction(self, number: int) -> Iterator[ModuleRow]:
        """Layers that predict further tokens, which no pass runs."""
        if not self.ir.prediction:
            return
        parameters = _parameters(number, self.graph.rows["tensors.prediction"])
        count = self.ir.facts["mtp_layers"]
        sizes = self._listed(number, [(t, self.stored.beside[t]) for t in self.ir.prediction])
        yield ModuleRow(
            id="prediction",
            number=number,
            name=_name(number, "Prediction layers, not run"),
            kind="MTP",
            layers=None,
            counts=(),
            times=count,
            dims=None,
            parameters=parameters,
            dtype=None,
            bytes=_bytes(number, sizes),
            split=tuple(as_node("as its blocks") for _ in self.graph.workers),
            cache=None,
            facts=("mtp_layers",),
        )

    def _listed(
        self, number: int, members: Sequence[tuple[Tensor, Quantity]], sixteen_bit: bool = False
    ) -> list[Quantity]:
        """Rows of the tensors of a module, and their bytes."""
        sizes: list[Quantity] = []
        for tensor, values in members:
            of_class = (
                None if sixteen_bit or not tensor.matrix else self.workers.formats.stored[tensor.stored]
            )
            size: Node = VECTOR_BYTES if of_class is None else of_class.bytes
            stored = Quantity(f"ir.{values.id}", f"Bytes of {values.label}", "B", values * size)
            dtype: Node | str = SIXTEEN_BIT if of_class is None else of_class.dtype
            self.tensors.append(TensorRow(tensor, number, tensor.shape, values, dtype, size, stored))
            sizes.append(stored)
        return sizes

    def _dtype(self, module: Module) -> Node | str | None:
        matrices = [tensor for tensor in module.tensors if tensor.matrix]
        if matrices:
            return self.workers.formats.stored[getattr(module.operation, "stored", matrices[0].stored)].dtype
        return SIXTEEN_BIT if module.tensors else None

    def _cache(self, module: Module) -> Quantity | None:
        """Bytes that a layer keeps of a token over all heads, or of a request."""
        identifier, label = f"ir.cache.{module.id}", f"Kept by {module.label}"
        work = module.operation
        if kept_of(module) is not None:
            formats = self.graph.decode_workers.formats
            return Quantity(identifier, label, "B/token", channels_of(module) * formats.kept_bytes(work))
        if not isinstance(work, Recurrence):
            return None
        kept = work.state * STATE_BYTES + work.conv * (work.kernel - 1) * CONV_BYTES
        return Quantity(identifier, label, "B", kept)


def _name(number: int, label: str) -> Input:
    return defined(f"ir.name.{number}", f"Module {number}", "1", label, name="modules")


def _none(number: int, what: str, unit: str) -> Input:
    return defined(f"ir.none.{what}.{number}", f"No {what}, module {number}", unit, 0)


def _parameters(number: int, listed: Quantity | None) -> Quantity | Input:
    """Parameters of a module in all its layers, as the list of tensors has them."""
    if listed is None:
        return _none(number, "parameters", "parameter")
    return Quantity(f"ir.parameters.{number}", f"Parameters, module {number}", "parameter", listed)


def _bytes(number: int, sizes: Sequence[Quantity]) -> Quantity | Input:
    """Bytes of the tensors of a module."""
    if not sizes:
        return _none(number, "bytes", "B")
    return Quantity(f"ir.bytes.{number}", f"Bytes, module {number}", "B", sum_range(span(sizes)))


def _fact(figure: Node) -> str:
    return figure.id.removeprefix("model.") if isinstance(figure, Input) else ""


def _facts(module: Module) -> tuple[str, ...]:
    """Names of the facts that the dimensions of a module follow from."""
    nodes = [value for value in vars(module.operation).values() if isinstance(value, Node)]
    nodes += [dimension for tensor in module.tensors for dimension in tensor.shape]
    inputs = (node for node in ancestors(*nodes) if isinstance(node, Input))
    return tuple(dict.fromkeys(_fact(figure) for figure in inputs if figure.id.startswith("model.")))


def dims(module: Module) -> Dims | None:
    """Dimensions of what a module computes."""
    match module.operation:
        case GroupedMatMul() as work:
            return Dims(work.count, work.outputs, work.inputs)
        case MatMul() as work:
            return Dims(None, work.outputs, work.inputs)
        case Attention() as work:
            return Dims(None, work.query, work.key)
        case LatentAttention() as work:
            return Dims(None, work.expanded, work.latent)
        case Indexer() as work:
            return Dims(work.heads, work.query, work.key)
        case Recurrence() as work:
            return Dims(None, work.state, None)
        case Elementwise() as work if module.id == "embedding":
            return Dims(None, module.tensors[0].shape[0], work.width)
        case Elementwise() as work:
            return Dims(None, work.width, None)
    return None


# --- how ranks share a module -------------------------------------------------------------------------------


def _over(ranks: Node, words: str, behind: str = "") -> Node:
    """Something divided by so many ranks; with one rank nothing is."""
    return where(ranks > 1, join(f"{words} ÷ ", text(ranks), behind), "whole on each rank")


def split(module: Module, workers: Workers) -> Node:
    """How the ranks of some workers share a module, in words."""
    plan, work = workers.plan, module.operation
    if isinstance(work, GroupedMatMul):
        return _of_experts(work, workers)
    ranks = plan.over.get(scope(module), workers.inputs.tp)
    inputs = [work.inputs] if isinstance(work, MatMul) else []
    splits = plan.splits_of(*inputs)
    if splits:
        return _over(ranks, "rows" if splits == ("columns",) else "heads in", ", summed")
    outputs = [value for value in vars(work).values() if isinstance(value, Node)]
    splits = plan.splits_of(*outputs, *(size for tensor in module.tensors for size in tensor.shape))
    if not splits:
        if isinstance(work, Elementwise) and work.kind == "norm":
            return _over(workers.rows["plan.sequence"], "tokens")
        return as_node("whole on each rank")
    if "kv heads" in splits and plan.kv_copies is not None:
        copies = where(plan.kv_copies > 1, join(", KV × ", rounded(plan.kv_copies, 0)), "")
        return join(_over(ranks, "heads"), copies)
    if splits != ("columns",):
        return _over(ranks, "heads")
    shapes = (*outputs, *(size for tensor in module.tensors for size in tensor.shape))
    words = next((node for node in plan.splits if _fact(node) == "vocabulary"), None)
    of_words = words is not None and any(mentions(size, words) for size in shapes)
    return _over(ranks, "vocabulary" if of_words else "columns")


def _of_experts(work: GroupedMatMul, workers: Workers) -> Node:
    """Experts over groups of ranks, and the columns of one over the ranks that share it."""
    groups, tp, held = (workers.rows[f"plan.{name}"] for name in ("expert_groups", "expert_tp", "experts"))
    some = where(groups > 1, join(text(held), " of "), "all ")
    return join(some, text(work.count), where(tp > 1, join(", each ÷ ", text(tp)), ""))


# --- what lies in the cache ---------------------------------------------------------------------------------


def layout(graph: EstimateGraph) -> Iterator[tuple[str, Node | str]]:
    """What is kept of a token and of a request, and on how many ranks, as far as the workbook needs it."""
    for label, figure in _kept(graph):
        if not isinstance(figure, Quantity) or graph.figures.get(figure.id) is figure:
            yield label, figure


def _kept(graph: EstimateGraph) -> Iterator[tuple[str, Node | str]]:
    workers = graph.decode_workers
    for module in workers.memory.caches:
        work = module.operation
        kind = (
            "keys and values of all KV heads" if isinstance(work, Attention) else "one latent for all heads"
        )
        yield module.label, "keys of one head" if isinstance(work, Indexer) else kind
        yield "values a token and layer", channels_of(module)
        span_ = getattr(work, "span", None)
        if span_ is not None and span_.length is not None:
            yield f"attention span: {span_.kind}", span_.length
    for module in graph.ir.modules:
        if isinstance(module.operation, Recurrence):
            yield f"state a request, {module.label}", workers.rows[f"memory.layer_state.{module.id}"]
    if workers.memory.caches:
        yield "data type", workers.inputs.kv_dtype
        yield "bytes a value", workers.formats.kv_bytes
        yield "bytes a token, all layers, on a rank", workers.rows["memory.kv_bytes_per_token"]
        copies = workers.plan.kv_copies
        yield "copies of a KV head", "one on every TP rank" if copies is None else copies
        if workers.inputs.dcp is not None:
            yield "ranks that divide its tokens", workers.inputs.dcp
