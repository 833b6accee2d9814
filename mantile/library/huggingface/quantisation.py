"""The data types in which a checkpoint stores its matrices, from its quantization_config.

Classes are attention (every mixer), ffn (dense and shared experts), experts, head and embedding. A class has
the data type of most of its weights; matrices that are kept in another are named in their block. Layers whose
matrices are kept otherwise than those of most layers are layers of another kind. Routers, norms and vision
towers stay in 16 bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mantile.library.architecture import Block, Choice, Fact, LayerKind
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import ALL_CLASSES, BODY_CLASSES, Format, Scheme
from mantile.library.huggingface.matrices import Matrix, Sizes, matrices_of
from mantile.library.huggingface.schemes import scheme_of

_SIXTEEN_BIT = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
_HEAD = ("lm_head", "head", "embed_out", "output")
_EMBEDDING = ("embed_tokens", "embeddings", "word_embeddings", "embed_in", "wte", "embed")
MOST_KINDS = 4  # of layers with the same blocks but other formats; what is rarer counts as the most common
Formats = dict[str, Format | None]
"""The format of each matrix of a block by our key of it; None is 16 bit."""
Counts = dict[str, Counter[Format | None]]
"""How many values of each class of matrices are in which format."""


@dataclass(frozen=True)
class Stored:
    """How a checkpoint stores its matrices.

    Args:
        choices: the data type of the matrices, and of each class that differs; that of activations and KV
            cache, and the kind of file, where the scheme fixes them.
        blocks, layers: as they were given, with the matrices that are kept in a data type of their own.
    """

    choices: dict[str, Choice]
    blocks: dict[str, Block]
    layers: list[LayerKind]


def stored(
    config: Config, blocks: Mapping[str, Block], layers: Sequence[LayerKind], facts: Mapping[str, Fact]
) -> Stored:
    """What the scheme of a config makes of blocks and layers.

    Args:
        blocks: by name.
        layers: the names of the blocks of each layer.
        facts: of the decoder; they weigh the matrices of a class.

    Raises:
        InputError: for a quantisation that is not supported, or a field that is wrong.
    """
    sixteen_bit = _sixteen_bit(config)
    scheme = scheme_of(config)
    if scheme is None:
        return Stored({"weights_dtype": sixteen_bit}, dict(blocks), list(layers))
    matrices = {name: matrices_of(block, facts) for name, block in blocks.items()}
    found = [
        {
            name: {item.key: scheme.format(item.weights, item.modules(index)) for item in matrices[name]}
            for name in layer
        }
        for index, layer in enumerate(layers)
    ]
    counts = _counts(scheme, blocks, matrices, found, facts)
    main = {kind: count.most_common(1)[0][0] for kind, count in counts.items()}
    variants = _Variants(blocks, matrices, main, sixteen_bit.value)
    variants.add(found)
    new_layers = [tuple(variants.name(name, layer[name]) for name in layer) for layer in found]
    return Stored(_choices(scheme, counts, main, sixteen_bit), variants.blocks(), new_layers)


def _counts(
    scheme: Scheme,
    blocks: Mapping[str, Block],
    matrices: Mapping[str, Sequence[Matrix]],
    found: Sequence[Mapping[str, Formats]],
    facts: Mapping[str, Fact],
) -> Counts:
    """How many values of each class are in which format."""
    tied = "tied_embeddings" in facts and bool(facts["tied_embeddings"].value)
    embedding = scheme.format("embedding", _EMBEDDING)
    counts: Counts = {"head": Counter({embedding if tied else scheme.format("head", _HEAD): 1})}
    if not tied:
        counts["embedding"] = Counter({embedding: 1})
    sizes = {
        name: [item.size(Sizes(blocks[name], facts)) for item in items] for name, items in matrices.items()
    }
    for layer in found:
        for name, formats in layer.items():
            for item, size in zip(matrices[name], sizes[name], strict=True):
                counts.setdefault(item.weights, Counter())[formats[item.key]] += max(1, size)
    return counts


class _Variants:
    """Blocks by how their matrices are kept."""

    def __init__(
        self,
        blocks: Mapping[str, Block],
        matrices: Mapping[str, Sequence[Matrix]],
        main: Mapping[str, Format | None],
        sixteen_bit: str,
    ) -> None:
        self._blocks, self._matrices, self._main, self._sixteen_bit = blocks, matrices, main, sixteen_bit
        self._names: dict[str, dict[tuple[tuple[str, str], ...], str]] = {}

    def add(self, layers: Sequence[Mapping[str, Formats]]) -> None:
        """Name the ways in which a block's matrices are kept in these layers, the most common after it."""
        for name in self._blocks:
            ways = Counter(self._kept(name, layer[name]) for layer in layers if name in layer)
            names: dict[tuple[tuple[str, str], ...], str] = {}
            for way, _ in ways.most_common(MOST_KINDS):
                names[way] = name if not names else self._title(name, way, next(iter(names)), names.values())
            self._names[name] = names

    def name(self, block: str, formats: Formats) -> str:
        """The block whose matrices are kept in these formats."""
        return self._names[block].get(self._kept(block, formats), block)

    def blocks(self) -> dict[str, Block]:
        """Every block that a layer is made of, and those that none is."""
        result: dict[str, Block] = {}
        for name, block in self._blocks.items():
            ways = self._names[name] or {(): name}
            result |= {title: block.model_copy(update={"stored": dict(way)}) for way, title in ways.items()}
        return result

    def _kept(self, block: str, formats: Formats) -> tuple[tuple[str, str], ...]:
        """The matrices that are in another data type than their class, and in which."""
        pairs = ((item, self._dtype(formats[item.key])) for item in self._matrices[block])
        return tuple(
            (item.key, dtype) for item, dtype in pairs if dtype != self._dtype(self._main[item.weights])
        )

    def _dtype(self, format: Format | None) -> str:
        return format.weights if format else self._sixteen_bit

    def _title(
        self,
        block: str,
        way: tuple[tuple[str, str], ...],
        usual: tuple[tuple[str, str], ...],
        taken: Iterable[str],
    ) -> str:
        """A name for a block after the data type that sets it apart from the usual one."""
        apart = [dtype for key, dtype in way if (key, dtype) not in usual]
        main = next((self._dtype(self._main[item.weights]) for item in self._matrices[block]), "")
        title = f"{block}_{(apart or [main])[0]}".replace(".", "_")
        return title if title not in taken else f"{title}_{len(list(taken)) + 1}"


def _choices(
    scheme: Scheme, counts: Counts, main: Mapping[str, Format | None], sixteen_bit: Choice
) -> dict[str, Choice]:
    """The data types of the classes."""
    of_body = next((main[kind] for kind in BODY_CLASSES if main.get(kind) is not None), None)

    def stored_in(format: Format | None) -> str:
        return format.weights if format else sixteen_bit.value

    like_body = [
        kind for kind in BODY_CLASSES if kind in main and stored_in(main[kind]) == stored_in(of_body)
    ]
    remarks = [_remark(scheme, counts, kind) for kind in like_body]
    choices = {"weights_dtype": _choice(stored_in(of_body), scheme.source, remarks)}
    for kind in ALL_CLASSES:
        if kind in main and kind not in like_body:
            remark = _remark(scheme, counts, kind)
            choices[f"{kind}_dtype"] = _choice(stored_in(main[kind]), scheme.source, [remark])
    if of_body and of_body.activations:
        activations = sixteen_bit.value if of_body.activations == "16" else of_body.activations
        choices["activation_dtype"] = _choice(activations, scheme.source)
    if scheme.kv:
        choices["kv_dtype"] = _choice(scheme.kv, scheme.source)
    if scheme.file:
        choices["file"] = _choice(scheme.file, scheme.source)
    return choices


def _choice(value: str, source: str, remarks: Iterable[str] = ()) -> Choice:
    texts = [source, *(remark for remark in remarks if remark)]
    return Choice(value=value, origin="config", source="; ".join(texts))


def _remark(scheme: Scheme, counts: Counts, kind: str) -> str:
    """How much of a class is in another format than the most of it, or why it is in 16 bit; else empty."""
    ranked = counts[kind].most_common()
    total, most = counts[kind].total(), ranked[0][1]
    ends = ("head", "embedding")
    field = f" ({scheme.ignored_source})" if scheme.ignored_source and kind not in ends else ""
    if len(ranked) > 1:
        others = ", ".join(format.weights if format else "16 bit" for format, _ in ranked[1:])
        return f"{(total - most) / total:.0%} of {kind} is in {others}{field}"
    return f"{kind} in 16 bit{field}" if ranked[0][0] is None else ""


def _sixteen_bit(config: Config) -> Choice:
    """The 16-bit type of what is not quantised; float32 is served in 16 bit."""
    own = config.has("dtype") or config.has("torch_dtype")
    part = config if own or config.parent is None else config.parent
    stated = part.text("dtype", "torch_dtype", default="bfloat16", among=tuple(_SIXTEEN_BIT))
    remark = ": float32, served in 16 bit" if stated.value == "float32" else ""
    return Choice(value=_SIXTEEN_BIT[stated.value], origin=stated.origin, source=stated.source + remark)
