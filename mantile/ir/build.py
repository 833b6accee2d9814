"""Architecture to modules in execution order: blocks drawn up, norms put around them, what is the same in several merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mantile.graph.quantity import Input, Node, Quantity, Row, as_node, sum_of
from mantile.ir.attention import attention
from mantile.ir.draft import BlockFacts, DecoderBuilder, signature, small, step
from mantile.ir.ffn import ffn, moe
from mantile.ir.latent import compressed_attention, latent_attention
from mantile.ir.modules import Elementwise, Layer, MatMul, ModelGraph, Module, Tensor
from mantile.ir.prediction import prediction
from mantile.ir.recurrent import delta, gated_delta, mamba, mamba2
from mantile.ir.streams import collapse, streams
from mantile.ir.vision import vision
from mantile.library.architecture import FFN_KINDS, Model
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
}
# Which norms stand around mixer and FFN.
ARRANGEMENTS = {
    "pre": (("before",), ("before",)),
    "sandwich": (("before", "after"), ("before", "after")),
    "post": (("after",), ("after",)),
    "parallel": (("before",), ()),
}


def build_ir(model: Model) -> ModelGraph:
    """The modules of a model in execution order."""
    architecture = model.architecture
    draft = DecoderBuilder(architecture, tensor_names_of(architecture))
    groups = architecture.groups()
    blocks = {name: _block(draft, name) for name in dict.fromkeys(name for kind in groups for name in kind)}
    used = {name: tuple(kind for kind in groups if name in kind) for name in blocks}
    counts = _Counts(draft, groups)
    merged: dict[object, list[str]] = {}
    for name, modules in blocks.items():
        for module in modules:
            merged.setdefault(signature(module), []).append(name)
    steps = [
        module.step
        for name, modules in blocks.items()
        for module in modules
        if merged[signature(module)][0] == name
    ]
    made: dict[object, Module] = {}
    for name, modules in blocks.items():
        for module in modules:
            key = signature(module)
            if key not in made:
                kinds = tuple(kind for kind in groups if any(kind in used[block] for block in merged[key]))
                made[key] = _placed(module, name, steps.count(module.step) > 1, counts.of(kinds))
    layers = tuple(
        Layer(
            kind,
            draft.facts[fact],
            tuple(made[signature(module)] for name in kind for module in blocks[name]),
        )
        for kind, fact in groups.items()
    )
    ordered = (*_start(draft), *_in_order(layers), *_end(draft))
    sizes: tuple[Row, ...] = (
        *counts.rows(),
        *(width.whole for width in draft.widths.values() if isinstance(width.whole, Quantity)),
    )
    return ModelGraph(
        model,
        draft.facts,
        ordered,
        layers,
        tuple(draft.widths.values()),
        sizes,
        counts.total,
        vision(architecture.vision, draft.facts["hidden_size"]) if architecture.vision else None,
        prediction(draft, _block),
    )


def _block(draft: DecoderBuilder, name: str) -> list[Module]:
    """A block's modules with norms and residual streams around it."""
    block = draft.architecture.blocks[name]
    roles = BlockFacts(draft, block)
    arrangement = ARRANGEMENTS[draft.architecture.choices["norms"].value]
    is_ffn = block.kind in FFN_KINDS
    place, title = (
        ("ffn", "FFN") if is_ffn else ("mixer", "Attention" if "attention" in block.kind else "Mixer")
    )
    modules = _BLOCKS[block.kind](draft, roles)

    def norm(where: str) -> Module:
        after = where == "after"
        stem = "ffn" if is_ffn else "attention" if title == "Attention" else "mixer"
        return small(
            f"{stem}_norm{'_after' if after else ''}",
            f"{title} norm{' after' if after else ''}",
            ("norm 2" if is_ffn else "norm 1") + (" after" if after else ""),
            Elementwise("norm", draft.facts["hidden_size"]),
            draft.norm(f"{place}_{where}", draft.facts["hidden_size"], draft.architecture.value("norm_bias")),
        )

    wanted = arrangement[1 if is_ffn else 0]
    if is_ffn and draft.architecture.value("layer_scale"):
        scale = draft.vector("layer_scale", as_node(1), suffix="", buffer=True)
        modules[-1] = replace(modules[-1], tensors=(*modules[-1].tensors, scale))
    before, after = streams(draft, place)
    return [
        *before,
        *(norm(where) for where in wanted if where == "before"),
        *modules,
        *(norm(where) for where in wanted if where == "after"),
        *after,
    ]


def _placed(module: Module, block: str, crowded: bool, layers: Node) -> Module:
    """A module with its layers counted, and the block's name where several have such a step."""
    tensors = tuple(replace(tensor, layers=layers) for tensor in module.tensors)
    if not crowded:
        return replace(module, tensors=tensors, layers=layers)
    return replace(
        module, id=f"{block}.{module.step}", label=f"{module.label}, {block}", tensors=tensors, layers=layers
    )


def _in_order(layers: tuple[Layer, ...]) -> list[Module]:
    """Every module of the layers once, one that is new in a later kind of layer after the step it follows there."""
    ordered: list[Module] = []
    for layer in layers:
        place = 0
        for module in layer.modules:
            if module in ordered:
                place = ordered.index(module) + 1
                continue
            while place < len(ordered) and ordered[place].step == module.step:
                place += 1
            ordered.insert(place, module)
            place += 1
    return ordered


class _Counts:
    """How many layers there are of a kind, of several, and in all."""

    def __init__(self, draft: DecoderBuilder, groups: dict[tuple[str, ...], str]) -> None:
        self._inputs = {kind: draft.facts[fact] for kind, fact in groups.items()}
        self._sums: dict[tuple[tuple[str, ...], ...], Quantity] = {}
        self.total: Input | Quantity = next(iter(self._inputs.values()))
        if len(groups) > 1:
            self.total = Quantity(
                "model.layers",
                "Layers",
                "layer",
                sum_of(list(self._inputs.values())),
                note="sum of the kinds of layer",
            )
            self._sums[tuple(groups)] = self.total

    def of(self, kinds: tuple[tuple[str, ...], ...]) -> Node:
        """Layers of these kinds."""
        if len(kinds) == 1:
            return self._inputs[kinds[0]]
        if kinds not in self._sums:
            common = [name for name in kinds[0] if all(name in kind for kind in kinds)]
            name = common[0] if common else "+".join(".".join(kind) for kind in kinds)
            taken = {quantity.id for quantity in self._sums.values()}
            identifier = f"model.layers_with.{name}"
            if identifier in taken:
                identifier = "model.layers_with." + "+".join(".".join(kind) for kind in kinds)
            self._sums[kinds] = Quantity(
                identifier, f"Layers with {name}", "layer", sum_of([self._inputs[kind] for kind in kinds])
            )
        return self._sums[kinds]

    def rows(self) -> tuple[Quantity, ...]:
        """The sums, for the Model sheet."""
        return tuple(self._sums.values())


def _start(draft: DecoderBuilder) -> list[Module]:
    vocabulary, hidden = draft.columns(draft.facts["vocabulary"]), draft.facts["hidden_size"]
    top, names = draft.names.top, draft.names
    tensors = [Tensor(f"{top}{names['embedding']}.weight", (vocabulary, hidden), weights="head")]
    if draft.architecture.value("learned_positions"):
        tensors.append(
            Tensor(
                f"{top}{names['positions']}.weight", (draft.facts["position_rows"], hidden), weights="head"
            )
        )
    return [small("embedding", "Embedding", "embedding", Elementwise("embedding", hidden), tuple(tensors))]


def _end(draft: DecoderBuilder) -> list[Module]:
    vocabulary, hidden = draft.columns(draft.facts["vocabulary"]), draft.facts["hidden_size"]
    facts, names = draft.architecture, draft.names
    kinds = ("weight", "bias") if facts.value("norm_bias") else ("weight",)
    norm = tuple(
        Tensor(f"{names.top}{names['final_norm']}.{kind}", (hidden,), matrix=False) for kind in kinds
    )
    head: tuple[Tensor, ...] = ()
    if not facts.value("tied_embeddings"):
        head = (Tensor(f"{names.head_prefix}{names['head']}.weight", (vocabulary, hidden), weights="head"),)
    if facts.value("head_bias"):
        head += (Tensor(f"{names.head_prefix}{names['head']}.bias", (vocabulary,), matrix=False),)
    return [
        *collapse(draft),
        small("final_norm", "Final norm", "final norm", Elementwise("norm", hidden), norm),
        step("lm_head", "LM head", "LM head", "head", MatMul(hidden, vocabulary, "head", "requests"), head),
    ]
