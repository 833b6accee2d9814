"""What a model is made of: modules in order, their tensors, what each computes and keeps in a cache.

Shapes and sizes are expressions over the architecture's facts, for the whole model; sharding replaces the
widths that are split by those of a rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from mantile.graph.quantity import Input, Node, Quantity, Row
from mantile.library.architecture import BY_DEFAULT, Model
from mantile.library.facts import block_title

Weights = Literal["attention", "ffn", "experts", "router", "head", "embedding"]
"""Classes of matrices that a checkpoint may store in different data types; a tied embedding is the head."""
Split = Literal["heads", "kv heads", "columns"]
Part = Literal["projections", "attention", "ffn", "experts", "small", "head", "vision", "lora"]
"""What a module belongs to where times are shown by kind."""


@dataclass(frozen=True)
class Tensor:
    """A stored tensor.

    Args:
        name: {} stands for an index: of the layer, and of the expert where each is stored by itself.
        shape: dimensions of the whole model, whatever tensor parallelism splits.
        layers: how many layers hold it; None if it stands once.
        copies: how many a layer holds, for experts stored one by one; None for one.
        matrix: False for norms and biases, which stay in 16 bit.
        weights: the class that its data type follows.
        kept: the data type that the checkpoint keeps it in, where that is not the one of its class.
        routed: belongs to the experts, of which a token goes through some only.
        buffer: stored, but no parameter.
    """

    name: str
    shape: tuple[Node, ...]
    layers: Node | None = None
    copies: Node | None = None
    matrix: bool = True
    weights: Weights = "attention"
    kept: str = ""
    routed: bool = False
    buffer: bool = False

    @property
    def stored(self) -> str:
        """Its class, with the data type behind it where that is one of its own: "attention.nvfp4"."""
        return stored_as(self.weights, self.kept)


def stored_as(weights: Weights, kept: str) -> str:
    """A class of matrices, or the part of it that is kept in a data type of its own."""
    return f"{weights}.{kept}" if kept else weights


@dataclass(frozen=True)
class AttentionSpan:
    """How far back attention looks: without limit, a window, a chunk, or what an indexer selects."""

    kind: Literal["full", "sliding", "chunked", "selected"]
    length: Input | None = None


FULL = AttentionSpan("full")


@dataclass(frozen=True)
class MatMul:
    """Rows times a matrix of `outputs` x `inputs` channels.

    `rows`: every token, or the last of each request. `kept`: as of the largest of its tensors.
    """

    inputs: Node
    outputs: Node
    weights: Weights
    rows: Literal["tokens", "requests"] = "tokens"
    kept: str = ""

    @property
    def stored(self) -> str:
        """As of its tensors."""
        return stored_as(self.weights, self.kept)


@dataclass(frozen=True)
class GroupedMatMul:
    """A product of each token with `per_token` of `count` matrices of `outputs` x `inputs` channels.

    `kept`: as of its tensors.
    """

    inputs: Node
    outputs: Node
    count: Input
    per_token: Input
    kept: str = ""

    @property
    def stored(self) -> str:
        """As of its tensors."""
        return stored_as("experts", self.kept)


@dataclass(frozen=True)
class Attention:
    """Scores and weighted values over a KV cache.

    Args:
        query, result, key, value: channels over all heads; keys and values are kept.
        kept: False where the keys and values are those that an earlier layer kept.
    """

    query: Node
    result: Node
    key: Node
    value: Node
    span: AttentionSpan
    kept: bool = True


@dataclass(frozen=True)
class LatentAttention:
    """Attention over a latent, expanded per head in prefill and absorbed into the queries in decode.

    Args:
        expanded: channels of queries and results over all heads, as expanded.
        absorbed: the same in the width of the latent.
        latent: channels kept per token, the same for all heads.
        entry_tokens: tokens that one kept entry stands for, where they are several; the channels are then a
            token's share.
    """

    expanded: Node
    absorbed: Node
    latent: Node
    span: AttentionSpan
    entry_tokens: Input | None = None


@dataclass(frozen=True)
class Indexer:
    """Scores of every earlier token, or entry of tokens, by a few small heads; keys of one head are kept.

    Args:
        query: channels over all indexer heads.
        key: channels kept per token.
        entry_tokens: as for `LatentAttention`.
    """

    query: Node
    heads: Node
    key: Node
    entry_tokens: Input | None = None


@dataclass(frozen=True)
class Recurrence:
    """A layer whose state does not grow with the context.

    Args:
        state: values of the recurrent state per request and layer.
        conv: channels of the short convolution; its last inputs are kept too.
        kernel: tokens the convolution looks at.
        macs: multiply-adds of one token beyond the convolution when a prompt is worked through in chunks;
            matrix products only.
        chunk: tokens of a chunk, to a multiple of which a prompt is padded; None if there are no chunks.
    """

    state: Node
    conv: Node
    kernel: Input
    macs: Node
    chunk: Input | None = None


Family = Literal["dense", "experts", "latent", "recurrent"]
ElementwiseKind = Literal["norm", "qk_norm", "rope", "activation", "embedding", "gate", "routing", "sorted"]


@dataclass(frozen=True)
class Elementwise:
    """A streaming kernel over `width` channels of every token.

    How often they are read and written follows from its kind.

    Args:
        wide: a norm over the width of all heads, which tensor-parallel ranks have to sum over.
    """

    kind: ElementwiseKind
    width: Node
    wide: bool = False


@dataclass(frozen=True)
class Vision:
    """The vision tower with its projector, which stay in 16 bit.

    Args:
        tensors: `matrix` is False for what no product reads.
        patches_per_image: patches that attend to each other.
        patches_per_token: patches that become one token of the decoder.
        matrices: rows of every matrix, and the two sums below.
        patch_parameters, token_parameters: values of the matrices that every patch, and every image token,
            goes through.
        attended: patches that a patch attends to, summed over the layers.
        width: channels of the queries, of the keys and of the values over all heads.
    """

    facts: Mapping[str, Input]
    tensors: tuple[Tensor, ...]
    patches_per_image: Input | Quantity
    patches_per_token: Quantity
    matrices: tuple[Quantity, ...]
    patch_parameters: Quantity
    token_parameters: Quantity
    attended: Quantity
    width: Input | Quantity
    layers: Input

    def rows(self) -> tuple[Row, ...]:
        """What follows from the facts, for the sheet IR."""
        figures = (self.patches_per_image, self.patches_per_token, *self.matrices, self.attended, self.width)
        return tuple(figure for figure in figures if isinstance(figure, Quantity))


@dataclass(frozen=True)
class LowRank:
    """Two narrow products beside every matrix of the layers, of the adapters that requests ask for."""


Operation = (
    MatMul
    | GroupedMatMul
    | Attention
    | LatentAttention
    | Indexer
    | Recurrence
    | Elementwise
    | Vision
    | LowRank
)


@dataclass(frozen=True)
class Module:
    """A step of the forward pass: what it computes and the tensors it reads.

    Args:
        id: unique in the model; `step` is the same without the block's name.
        short: a few letters for charts.
        part: what it belongs to where times are shown by kind.
        layers: how many layers have it; None if it runs once in a pass.
        reduces: its result is partial on every tensor-parallel rank, so that an all-reduce follows.
        kind: of the block it belongs to: mha, gqa, mqa, mla, sliding, chunked, linear, mamba2, dsa, dense,
            moe, ...
        remark: what is not as the class does it, of modules that were recorded.
    """

    id: str
    step: str
    label: str
    short: str
    part: Part
    operation: Operation
    tensors: tuple[Tensor, ...] = ()
    layers: Node | None = None
    reduces: bool = False
    kind: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Layer:
    """Layers made of the same blocks: how many there are, and their modules in execution order."""

    blocks: tuple[str, ...]
    count: Input
    modules: tuple[Module, ...]

    @property
    def name(self) -> str:
        """The blocks it is made of."""
        return " + ".join(block_title(block) for block in self.blocks)


@dataclass(frozen=True)
class Width:
    """A dimension that tensor parallelism splits: `units` of `size` channels, or of one if `size` is None.

    Args:
        total: channels of the whole model.
        split: how units are handed out to ranks; KV heads may be copied where there are fewer of them than
            ranks.
    """

    total: Quantity | Input
    units: Input
    size: Input | None
    split: Split


@dataclass(frozen=True)
class ModelGraph:
    """A model as modules in execution order.

    Args:
        modules: every distinct module once.
        layers: the kinds of layer.
        widths: the dimensions that tensor parallelism splits.
        facts: inputs by the name of the fact.
        sizes: the widths that are quantities, and layer counts, for the sheet IR.
        prediction: tensors of multi-token prediction, which runs where tokens are drafted.
        drafting: kinds of layer that a prediction layer is made of; the last kind where there is none.
        beside: tensors of towers that were recorded, and that a text does not run.
    """

    model: Model
    facts: Mapping[str, Input]
    modules: tuple[Module, ...]
    layers: tuple[Layer, ...]
    widths: tuple[Width, ...]
    sizes: tuple[Row, ...]
    total_layers: Input | Quantity
    vision: Vision | None = None
    prediction: tuple[Tensor, ...] = ()
    drafting: tuple[Layer, ...] = ()
    beside: tuple[Tensor, ...] = ()

    def tower(self) -> tuple[Tensor, ...]:
        """What is stored beside the decoder: a vision tower, or towers that nobody runs here."""
        return self.beside if self.vision is None else self.vision.tensors

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of the decoder in execution order."""
        return tuple(tensor for module in self.modules for tensor in module.tensors)

    def weight_classes(self) -> tuple[Weights, ...]:
        """The classes of matrices the model has, in order."""
        classes = {tensor.weights for tensor in self.tensors() if tensor.matrix} | {"head"}
        return tuple(name for name in get_args(Weights) if name in classes)

    def kept_apart(self) -> tuple[tuple[Weights, str], ...]:
        """The classes with matrices in a data type of their own, and which, in order."""
        tensors = (*self.tensors(), *self.prediction)
        pairs = dict.fromkeys((tensor.weights, tensor.kept) for tensor in tensors if tensor.kept)
        return tuple(pair for name in get_args(Weights) for pair in pairs if pair[0] == name)

    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What a reader should know of a model that was read from code, and of what.

        Steps that are priced as something that they are not quite, and dimensions that its class fills in.
        """
        of_steps = [(module.label, module.remark) for module in self.modules if module.remark]
        facts = self.model.architecture.facts
        filled = [(self.facts[name].label, fact.source) for name, fact in facts.items()
                  if fact.source.endswith(BY_DEFAULT)]  # fmt: skip
        return (*of_steps, *filled)

    @property
    def saves_cache(self) -> bool:
        """Whether its KV cache may be kept smaller than keys and values of all tokens: windows or latents."""
        return any(_saves(module.operation) for module in self.modules)

    def operations(self) -> frozenset[type]:
        """Which kinds of operation its modules are."""
        return frozenset(type(module.operation) for module in self.modules)

    @property
    def family(self) -> Family:
        """The kind of model: what makes its passes unlike those of others."""
        work = self.operations()
        if Recurrence in work:
            return "recurrent"
        if LatentAttention in work:
            return "latent"
        return "experts" if GroupedMatMul in work else "dense"

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The different spans of its attention layers, in order."""
        return tuple(
            dict.fromkeys(
                module.operation.span
                for module in self.modules
                if isinstance(module.operation, Attention | LatentAttention)
            )
        )

    def module(self, identifier: str) -> Module:
        """A module by id."""
        return next(module for module in self.modules if module.id == identifier)


def _saves(work: object) -> bool:
    """Whether an operation keeps latents, or looks back no further than a window that the model states."""
    if isinstance(work, LatentAttention):
        return True
    within = isinstance(work, Attention) and work.span.kind in ("sliding", "chunked")
    length = work.span.length if isinstance(work, Attention) and within else None
    return length is not None and isinstance(length.value, int | float) and length.value > 0
