"""The architecture of a model: facts with their origin, and the blocks that its layers are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

from pydantic import Field, field_validator, model_validator

from mantile.library.checkpoints import Checkpoint, Tokenizer
from mantile.library.documents import Strict
from mantile.library.facts import VISION_FACTS, fact_kind, fact_order
from mantile.library.versions import Versioned

Origin = Literal["config", "default", "derived", "code", "override"]
BlockKind = Literal[
    "attention",
    "latent_attention",
    "compressed_attention",
    "gated_delta",
    "delta",
    "mamba",
    "mamba2",
    "ffn",
    "moe",
    "recorded",
]
FFN_KINDS = ("ffn", "moe")
# Recorded blocks that no layer has: what runs before the layers, after them, and what a text does not run.
BEFORE, AFTER, BESIDE = "before", "after", "beside"
BY_DEFAULT = "by default of the class"  # ends the source of a fact that a config does not state
NOT_RUN = "not_run"  # the recorded block of layers that a text does not run
Work = Literal[
    "product",
    "experts",
    "attention",
    "latent_attention",
    "indexer",
    "recurrence",
    "norm",
    "qk_norm",
    "rope",
    "activation",
    "embedding",
    "gate",
    "routing",
    "sorted",
]
_SIZES: dict[Work, tuple[str, ...]] = {
    "product": ("inputs", "outputs"),
    "experts": ("inputs", "outputs", "count", "per_token"),
    "attention": ("query", "key", "value", "result"),
    "latent_attention": ("expanded", "absorbed", "latent"),
    "indexer": ("query", "heads", "key"),
    "recurrence": ("state", "conv", "kernel", "macs"),
}


class Fact(Strict):
    """A number of an architecture, and where it comes from.

    Args:
        origin: config: a field states it; default: the model class implies it; derived: it follows from other
            fields; code: seen when the model class was run; override: the user states it.
        source: the field, the class, or the arithmetic.
    """

    value: int = Field(ge=0, le=2**40)
    origin: Origin
    source: str


class Choice(Strict):
    """A fact of an architecture that is a text: kind of norm, activation, position embedding, data type."""

    value: str
    origin: Origin
    source: str


Size = str
"""A number of channels as a sum of products of facts: "attention_heads*head_dim + kv_heads*head_dim"."""


def size_terms(size: Size) -> tuple[tuple[str, ...], ...]:
    """The facts of each product of a size; "1" and "0" stand for themselves.

    Example:
        size_terms("kv_heads*head_dim + 1")    # (("kv_heads", "head_dim"), ("1",))
    """
    return tuple(tuple(term.split("*")) for term in size.split(" + "))


def size_of(size: Size, facts: Mapping[str, Fact]) -> int:
    """What a size comes to."""
    return sum(
        prod(int(name) if name in ("0", "1") else facts[name].value for name in term)
        for term in size_terms(size)
    )


class StoredTensor(Strict):
    """A tensor that a recorded step reads.

    Args:
        name: as in a checkpoint; {} stands for the number of the layer, and of the expert.
        copies: the fact that says how many a layer holds, where they are several.
        matrix: False for norms, biases and tables, which stay in 16 bit.
        buffer: stored, but no parameter.
    """

    name: str
    shape: tuple[Size, ...]
    copies: str = ""
    matrix: bool = True
    buffer: bool = False


class Step(Strict):
    """A step of a block that was recorded when the model class was run.

    Args:
        step: what it is called; steps of blocks that are read by hand are called alike.
        sizes: product: inputs, outputs; experts: the same of one expert, count, per_token; attention: query,
            key, value, result, window where it has one, and kept, 0, where it looks at what an earlier layer
            keeps; latent_attention: expanded, absorbed, latent; both have selected where an indexer chooses;
            indexer: query, heads, key, and every where it scores groups of tokens; recurrence: state, conv,
            kernel, macs, and chunk where it works in chunks; all others: width.
        weights: the class that the data type of its matrices follows.
        kind: of the block it belongs to.
        remark: what a reader should know, where it is priced as something that it is not quite.
    """

    step: str
    label: str
    short: str
    work: Work
    sizes: dict[str, Size]
    tensors: tuple[StoredTensor, ...] = ()
    weights: Literal["attention", "ffn", "experts", "router", "head", "embedding"] = "attention"
    kind: str = ""
    remark: str = ""

    @model_validator(mode="after")
    def _sizes_are_those_of_the_work(self) -> Step:
        missing = [name for name in _SIZES.get(self.work, ("width",)) if name not in self.sizes]
        if missing:
            raise ValueError(f"step {self.step}: sizes.{missing[0]} is missing; {self.work} needs it")
        return self

    def facts(self) -> set[str]:
        """The facts that its sizes and shapes are made of."""
        sizes = [*self.sizes.values(), *(size for tensor in self.tensors for size in tensor.shape)]
        names = {name for size in sizes for term in size_terms(size) for name in term}
        names |= {tensor.copies for tensor in self.tensors if tensor.copies}
        return names - {"0", "1"}


class Block(Strict):
    """A mixer (attention and its relatives) or an FFN.

    Args:
        uses: facts by the role that they play in the block, where their names differ: a layer with a window
            uses {window: sliding_window}.
        steps: of a recorded block, in execution order, with its norms.
        stored: data types of matrices that the checkpoint keeps in another than that of their class, by our
            key of the matrix: {o: nvfp4}.
    """

    kind: BlockKind
    uses: dict[str, str] = Field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    stored: dict[str, str] = Field(default_factory=dict)


LayerKind = tuple[str, ...]
"""The names of the blocks that a layer is made of."""


class Run(Strict):
    """A sequence of layers that is repeated."""

    times: int = Field(ge=1, le=10_000)
    layers: tuple[LayerKind, ...]


class Tower(Strict):
    """A vision tower, and the projector that makes tokens of its patches."""

    kind: str
    projector: str
    facts: dict[str, Fact]

    @field_validator("facts")
    @classmethod
    def _in_order(cls, facts: dict[str, Fact]) -> dict[str, Fact]:
        """Facts in the order of the table, whatever the order of the document."""
        order = list(VISION_FACTS)
        return {
            name: facts[name]
            for name in sorted(facts, key=lambda name: order.index(name) if name in order else -1)
        }

    @model_validator(mode="after")
    def _facts_are_known(self) -> Tower:
        for name, fact in self.facts.items():
            if name not in VISION_FACTS:
                raise ValueError(f"vision.facts.{name}: there is no such fact")
            least = VISION_FACTS[name].least
            if fact.value < least:
                raise ValueError(
                    f"vision {name}: expected at least {least}, found {fact.value} ({fact.source})"
                )
        return self


class Architecture(Strict):
    """A decoder: facts, blocks, and the stack of layers made of them.

    Args:
        facts: numbers by name; flags are 0 or 1, a window of 0 is none.
        choices: texts by name.
        blocks: mixers and FFNs by name.
        stack: the layers from first to last.
        vision: the tower beside the decoder, if there is one.
        unread: fields of the config that nothing was read from, by their path, as JSON; None where nobody
            recorded them.
    """

    model_type: str
    facts: dict[str, Fact]
    choices: dict[str, Choice]
    blocks: dict[str, Block]
    stack: tuple[Run, ...] = Field(min_length=1)
    vision: Tower | None = None
    unread: dict[str, str] | None = None

    @field_validator("facts")
    @classmethod
    def _in_order(cls, facts: dict[str, Fact]) -> dict[str, Fact]:
        """Facts in the order of the table, whatever the order of the document."""
        return {name: facts[name] for name in sorted(facts, key=fact_order)}

    @model_validator(mode="after")
    def _facts_are_known(self) -> Architecture:
        for name, fact in self.facts.items():
            kind = fact_kind(name)
            if kind is None:
                raise ValueError(f"facts.{name}: there is no such fact")
            if fact.value < kind.least or (kind.most is not None and fact.value > kind.most):
                bounds = (
                    f"of at least {kind.least}" if kind.most is None else f"from {kind.least} to {kind.most}"
                )
                raise ValueError(
                    f"{name}: expected a whole number {bounds}, found {fact.value} ({fact.source})"
                )
        return self

    @model_validator(mode="after")
    def _parts_are_no_more_than_the_whole(self) -> Architecture:
        sliding = "sliding_heads" if "sliding_heads" in self.facts else "attention_heads"
        for part, total, things in (
            ("kv_heads", "attention_heads", "attention heads"),
            ("global_kv_heads", "attention_heads", "attention heads"),
            ("sliding_kv_heads", sliding, "attention heads"),
            ("experts_per_token", "experts", "experts"),
        ):
            if self.value(part) > self.value(total):
                raise ValueError(
                    f"{part}: {self.value(part)} ({self.facts[part].source}) is more than "
                    f"the {self.value(total)} {things}"
                )
        return self

    @model_validator(mode="after")
    def _heads_are_shared_out(self) -> Architecture:
        sliding = "sliding_heads" if "sliding_heads" in self.facts else "attention_heads"
        for shared, total in (
            ("kv_heads", "attention_heads"),
            ("global_kv_heads", "attention_heads"),
            ("sliding_kv_heads", sliding),
        ):
            if self.value(shared) and self.value(total) % self.value(shared):
                raise ValueError(
                    f"{shared}: {self.value(shared)} ({self.facts[shared].source}) does not divide the "
                    f"{self.value(total)} attention heads; expected as many query heads for each of them"
                )
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Architecture:
        for block in self.blocks.values():
            used = {*block.uses.values(), *(name for step in block.steps for name in step.facts())}
            missing = sorted(name for name in used if name not in self.facts)
            if missing:
                raise ValueError(f"blocks: {missing[0]} is not among the facts")
        for layer in (layer for run in self.stack for layer in run.layers):
            unknown = [name for name in layer if name not in self.blocks]
            if unknown or not layer:
                raise ValueError(
                    f"stack: {unknown[0] if unknown else 'an empty layer'} is not among the blocks"
                )
        missing = [name for name in self.groups().values() if name not in self.facts]
        if missing:
            raise ValueError(f"facts.{missing[0]}: expected the number of layers of this kind")
        return self

    def value(self, name: str) -> int:
        """A fact, 0 if the architecture does not have it."""
        return self.facts[name].value if name in self.facts else 0

    def groups(self) -> dict[LayerKind, str]:
        """The different kinds of layer in order of appearance, with the fact that counts them."""
        kinds = list(dict.fromkeys(layer for run in self.stack for layer in run.layers))
        return {kind: "layers" if len(kinds) == 1 else ".".join(("layers", *kind)) for kind in kinds}

    def sequence(self) -> list[LayerKind]:
        """Every layer in order.

        Where the number of layers of a kind was overridden, the last of them are left out, or more follow at
        the end.
        """
        groups = self.groups()
        left = {kind: self.value(name) for kind, name in groups.items()}
        layers = []
        for kind in (layer for run in self.stack for _ in range(run.times) for layer in run.layers):
            if left[kind]:
                left[kind] -= 1
                layers.append(kind)
        return layers + [kind for kind, count in left.items() for _ in range(count)]


LONGEST_PERIOD = 16  # layers


def runs(layers: Sequence[LayerKind]) -> tuple[Run, ...]:
    """Layers in order as runs, each as long as a reading from left to right finds it."""
    result: list[Run] = []
    start = 0
    while start < len(layers):
        period, times = _longest_run(layers, start)
        result.append(Run(times=times, layers=tuple(layers[start : start + period])))
        start += period * times
    return tuple(result)


def _longest_run(layers: Sequence[LayerKind], start: int) -> tuple[int, int]:
    """The period that covers most layers from `start` on, and how often it repeats; 1, 1 if nothing does."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, len(layers) - start) + 1):
        pattern, times = list(layers[start : start + period]), 1
        while list(layers[start + times * period : start + (times + 1) * period]) == pattern:
            times += 1
        if times > 1 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


_CHOICES = {
    "weights_dtype": "the data type of the weights",
    "norms": "where norms stand",
    "position_embedding": "how positions are told",
    "tensor_names": "how tensors are called",
}
"""What every model says of itself in a word."""


class Model(Versioned):
    """A model of the library, or one read from a config.json.

    Args:
        version: of its entry in the library; empty of any other model.
        tokenizer: None where nobody states it.
        formats: checkpoints of it in other data types, as far as they are known.
        code: SHA-256 of each file of the model's own code that was run to read it, by name.
    """

    id: str = Field(min_length=1, max_length=120)
    version: str = Field(default="", pattern=r"^[A-Za-z0-9.-]*$")
    name: str = Field(min_length=1, max_length=120)
    hub_id: str = ""
    source: str
    date: str = ""
    tokenizer: Tokenizer | None = None
    formats: tuple[Checkpoint, ...] = ()
    code: dict[str, str] = Field(default_factory=dict)
    architecture: Architecture

    @model_validator(mode="after")
    def _choices_are_made(self) -> Model:
        for name, meaning in _CHOICES.items():
            if name not in self.architecture.choices:
                raise ValueError(f"architecture.choices.{name} is missing: expected {meaning}")
        return self

    @property
    def pin(self) -> str:
        """What brings back exactly this entry: id@version; the id alone of a model without versions."""
        return f"{self.id}@{self.version}" if self.version else self.id
