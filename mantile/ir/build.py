"""Architecture to modules in execution order. Modules that several blocks have alike are one module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mantile.graph.quantity import Input, Node, Quantity, Row, as_node, sum_of
from mantile.ir.attention import attention
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, signature
from mantile.ir.compressed import compressed_attention
from mantile.ir.delta import delta, gated_delta
from mantile.ir.ffn import ffn, moe
from mantile.ir.latent import latent_attention
from mantile.ir.mamba import mamba, mamba2
from mantile.ir.modules import Layer, MatMul, ModelGraph, Module, Tensor, Weights
from mantile.ir.prediction import drafting, prediction_tensors
from mantile.ir.recorded import recorded
from mantile.ir.stored import kept_apart
from mantile.ir.streams import collapse, streams
from mantile.ir.vision import vision
from mantile.library.architecture import AFTER, BEFORE, BESIDE, FFN_KINDS, LayerKind, Model
from mantile.library.facts import block_title
from mantile.library.huggingface.families import tensor_names_of

_BLOCKS: dict[str, Callable[[DecoderBuilder, BlockFacts], list[Module]]] = {
    "attention": attention,
    "latent_attention": latent_attention,
    "compressed_attention": compressed_attention,
    "gated_delta": gated_delta,
    "delta": delta,
    "mamba": mamba,
    "mamba2": mamba2,
    "ffn": ffn,
    "moe": moe,
    "recorded": recorded,
}
# Where norms stand around the mixer, and around the FFN.
NORM_PLACES = {
    "pre": (("before",), ("before",)),
    "sandwich": (("before", "after"), ("before", "after")),
    "post": (("after",), ("after",)),
    "parallel": (("before",), ()),
}


def build_ir(model: Model) -> ModelGraph:
    """The modules of a model in execution order.

    Raises:
        InputError: if the architecture names tensors of no family that we have.
    """
    architecture = model.architecture
    builder = DecoderBuilder(architecture, tensor_names_of(architecture))
    groups = architecture.groups()
    counts = _LayerCounts(builder, groups)
    layers = _layers(builder, groups, counts)
    before = _once(builder, BEFORE) or _before_layers(builder)
    after = _once(builder, AFTER) or _after_layers(builder)
    modules = (*before, *_in_order(layers), *after)
    tower, hidden = architecture.vision, builder.facts["hidden_size"]
    widths = tuple(builder.widths.values())
    return ModelGraph(
        model=model,
        facts=builder.facts,
        modules=modules,
        layers=layers,
        widths=widths,
        sizes=(*counts.rows(), *(width.total for width in widths if isinstance(width.total, Quantity))),
        total_layers=counts.total,
        vision=vision(tower, hidden) if tower else None,
        prediction=prediction_tensors(builder, _build_block),
        drafting=drafting(builder, layers),
        beside=tuple(tensor for module in _once(builder, BESIDE) for tensor in module.tensors),
    )


def _layers(builder: DecoderBuilder, groups: dict[LayerKind, str], counts: _LayerCounts) -> tuple[Layer, ...]:
    """The kinds of layer.

    A module that several blocks have alike is one module, counted over all their layers.
    """
    names = dict.fromkeys(name for kind in groups for name in kind)
    blocks = {name: _build_block(builder, name) for name in names}
    alike: dict[object, _Alike] = {}
    for name, modules in blocks.items():
        for module in modules:
            alike.setdefault(signature(module), _Alike(module, [])).blocks.append(name)
    steps = [merged.module.step for merged in alike.values()]
    placed: dict[object, Module] = {}
    for key, merged in alike.items():
        kinds = tuple(kind for kind in groups if any(name in kind for name in merged.blocks))
        block = merged.blocks[0] if steps.count(merged.module.step) > 1 else ""
        placed[key] = _placed(merged.module, counts.of(kinds), block)
    return tuple(
        Layer(
            blocks=kind,
            count=builder.facts[fact],
            modules=tuple(placed[signature(module)] for name in kind for module in blocks[name]),
        )
        for kind, fact in groups.items()
    )


@dataclass(frozen=True)
class _Alike:
    """A module, and the blocks that have it."""

    module: Module
    blocks: list[str]


def _build_block(builder: DecoderBuilder, name: str) -> list[Module]:
    """A block's modules with the norms and the residual streams around it."""
    block = builder.architecture.blocks[name]
    is_ffn = block.kind in FFN_KINDS
    modules = kept_apart(_BLOCKS[block.kind](builder, BlockFacts(builder, block)), block, builder.names)
    if block.kind == "recorded":  # with its norms
        return modules
    if is_ffn and builder.architecture.value("layer_scale"):
        scale = builder.vector("layer_scale", as_node(1), suffix="", buffer=True)
        modules[-1] = replace(modules[-1], tensors=(*modules[-1].tensors, scale))
    around_mixer, around_ffn = NORM_PLACES[builder.architecture.choices["norms"].value]
    norms = {where: _norm(builder, block.kind, where) for where in (around_ffn if is_ffn else around_mixer)}
    before, after = streams(builder, "ffn" if is_ffn else "mixer")
    return [
        *before,
        *([norms["before"]] if "before" in norms else []),
        *modules,
        *([norms["after"]] if "after" in norms else []),
        *after,
    ]


def _norm(builder: DecoderBuilder, block_kind: str, where: str) -> Module:
    """The norm before or after a block."""
    if block_kind in FFN_KINDS:
        place, stem, title, short = "ffn", "ffn", "FFN", "norm 2"
    elif "attention" in block_kind:
        place, stem, title, short = "mixer", "attention", "Attention", "norm 1"
    else:
        place, stem, title, short = "mixer", "mixer", "Mixer", "norm 1"
    hidden, after = builder.facts["hidden_size"], where == "after"
    return elementwise(
        f"{stem}_norm_after" if after else f"{stem}_norm",
        "norm",
        hidden,
        builder.norm(f"{place}_{where}", hidden, builder.architecture.value("norm_bias")),
        label=f"{title} norm after" if after else f"{title} norm",
        short=f"{short} after" if after else short,
    )


def _placed(module: Module, layers: Node, block: str) -> Module:
    """A module with its layers counted, and with the block's name where several modules are the same step."""
    tensors = tuple(replace(tensor, layers=layers) for tensor in module.tensors)
    placed = replace(module, tensors=tensors, layers=layers)
    if not block:
        return placed
    return replace(placed, id=f"{block}.{module.step}", label=f"{module.label}, {block}")


def _in_order(layers: tuple[Layer, ...]) -> list[Module]:
    """Every module of the layers once.

    One that only a later kind of layer has stands after the step it follows there.
    """
    ordered: list[Module] = []
    for layer in layers:
        position = 0
        for module in layer.modules:
            if module in ordered:
                position = ordered.index(module) + 1
                continue
            while position < len(ordered) and ordered[position].step == module.step:
                position += 1
            ordered.insert(position, module)
            position += 1
    return ordered


class _LayerCounts:
    """How many layers there are of a kind, of several kinds, and in all."""

    def __init__(self, builder: DecoderBuilder, groups: dict[LayerKind, str]) -> None:
        self._blocks = builder.architecture.blocks
        self._inputs = {kind: builder.facts[fact] for kind, fact in groups.items()}
        self._sums: dict[tuple[LayerKind, ...], Quantity] = {}
        self.total: Input | Quantity = next(iter(self._inputs.values()))
        if len(groups) > 1:
            self.total = self._sum("model.layers", "Layers", tuple(groups))

    def of(self, kinds: tuple[LayerKind, ...]) -> Node:
        """Layers of these kinds."""
        if len(kinds) == 1:
            return self._inputs[kinds[0]]
        if kinds in self._sums:
            return self._sums[kinds]
        listed = "+".join(".".join(kind) for kind in kinds)
        common = [name for name in kinds[0] if all(name in kind for kind in kinds)]
        name = common[0] if common else listed
        ids = {quantity.id for quantity in self._sums.values()}
        identifier = f"model.layers_with.{name}"
        if identifier in ids:
            identifier, common = f"model.layers_with.{listed}", []
        titles = [self._title(block) for block in common[:1]] or [
            " and ".join(self._title(block) for block in kind) for kind in kinds
        ]
        return self._sum(identifier, f"Layers with {' or '.join(titles)}", kinds)

    def _title(self, block: str) -> str:
        """What a block is called in a label: "linear attention", "MoE"."""
        title, kind = block_title(block), self._blocks[block].kind
        is_ffn = kind in FFN_KINDS or (kind == "recorded" and block.partition("_")[0] in ("ffn", "moe"))
        plain = is_ffn or kind.startswith("mamba") or "attention" in title
        return title if plain else f"{title} attention"

    def _sum(self, identifier: str, label: str, kinds: tuple[LayerKind, ...]) -> Quantity:
        counts = sum_of([self._inputs[kind] for kind in kinds])
        self._sums[kinds] = Quantity(identifier, label, "layer", counts)
        return self._sums[kinds]

    def rows(self) -> tuple[Row, ...]:
        """The sums, for the sheet IR."""
        return tuple(self._sums.values())


def _once(builder: DecoderBuilder, name: str) -> list[Module]:
    """What was recorded before the layers, or after them; nothing where the architecture is read by hand."""
    if name not in builder.architecture.blocks:
        return []
    modules = recorded(builder, BlockFacts(builder, builder.architecture.blocks[name]))
    if name == AFTER:  # only the last token of a request goes on
        works = ((module, module.operation) for module in modules)
        modules = [
            replace(module, operation=replace(work, rows="requests")) if isinstance(work, MatMul) else module
            for module, work in works
        ]
    return modules


def _before_layers(builder: DecoderBuilder) -> list[Module]:
    """The embedding."""
    vocabulary, hidden = builder.columns(builder.facts["vocabulary"]), builder.facts["hidden_size"]
    top, names = builder.names.top, builder.names
    weights: Weights = "head" if builder.architecture.value("tied_embeddings") else "embedding"
    tensors = [Tensor(f"{top}{names['embedding']}.weight", (vocabulary, hidden), weights=weights)]
    if builder.architecture.value("learned_positions"):
        shape = (builder.facts["position_rows"], hidden)
        tensors.append(Tensor(f"{top}{names['positions']}.weight", shape, weights=weights))
    return [
        elementwise("embedding", "embedding", hidden, tuple(tensors), label="Embedding", short="embedding")
    ]


def _after_layers(builder: DecoderBuilder) -> list[Module]:
    """The last norm and the LM head, which holds no matrix of its own where it is the embedding."""
    vocabulary, hidden = builder.columns(builder.facts["vocabulary"]), builder.facts["hidden_size"]
    architecture, names = builder.architecture, builder.names
    suffixes = ("weight", "bias") if architecture.value("norm_bias") else ("weight",)
    norm = tuple(
        Tensor(f"{names.top}{names['final_norm']}.{suffix}", (hidden,), matrix=False) for suffix in suffixes
    )
    stem = f"{names.head_prefix}{names['head']}"
    own = 1 - builder.facts["tied_embeddings"]
    head: tuple[Tensor, ...] = (Tensor(f"{stem}.weight", (vocabulary, hidden), copies=own, weights="head"),)
    if architecture.value("head_bias"):
        head += (Tensor(f"{stem}.bias", (vocabulary,), matrix=False),)
    return [
        *collapse(builder),
        elementwise("final_norm", "norm", hidden, norm, label="Final norm", short="final norm"),
        build_module(
            "lm_head",
            MatMul(hidden, vocabulary, "head", "requests"),
            head,
            label="LM head",
            short="LM head",
            part="head",
        ),
    ]
