"""The architecture of a model: normalised facts of a config.json, each with where it comes from, and how layers are built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, field_validator, model_validator

from mantile.library.documents import Strict
from mantile.library.facts import VISION_FACTS, fact_kind, fact_order

Origin = Literal["config", "default", "derived", "override"]
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
]
FFN_KINDS = ("ffn", "moe")


class Fact(Strict):
    """A figure of an architecture.

    `origin` says whether the config states it, the model class implies it, or we worked it out; `source`
    names the config field, the class, or the arithmetic.
    """

    value: int = Field(ge=0, le=2**40)
    origin: Origin
    source: str


class Choice(Strict):
    """A word of an architecture: norm, activation, position embedding, data type."""

    value: str
    origin: Origin
    source: str


class Block(Strict):
    """A mixer (attention and its relatives) or an FFN.

    `uses` says which fact plays a role of the block where it is not called as the role is: a layer with a
    window uses {window: sliding_window}.
    """

    kind: BlockKind
    uses: dict[str, str] = Field(default_factory=dict)


class Run(Strict):
    """A sequence of layers, each a tuple of block names, that is repeated."""

    times: int = Field(ge=1, le=10_000)
    layers: tuple[tuple[str, ...], ...]


class Tower(Strict):
    """A vision tower and the projector that makes tokens of its patches, in the facts of its own config."""

    kind: str
    projector: str
    facts: dict[str, Fact]

    @field_validator("facts")
    @classmethod
    def _in_order(cls, facts: dict[str, Fact]) -> dict[str, Fact]:
        """One order of facts, whatever the order of the document."""
        order = list(VISION_FACTS)
        return {
            name: facts[name]
            for name in sorted(facts, key=lambda name: order.index(name) if name in order else -1)
        }

    @model_validator(mode="after")
    def _consistent(self) -> Tower:
        for name, fact in self.facts.items():
            if name not in VISION_FACTS:
                raise ValueError(f"vision.facts.{name}: no such fact")
            if fact.value < VISION_FACTS[name].least:
                raise ValueError(
                    f"vision {name}: expected at least {VISION_FACTS[name].least}, found {fact.value} ({fact.source})"
                )
        return self


class Architecture(Strict):
    """A decoder: facts, blocks, and the stack of layers made of them.

    Flags are 0 or 1; a window of 0 is none.
    """

    model_type: str
    facts: dict[str, Fact]
    choices: dict[str, Choice]
    blocks: dict[str, Block]
    stack: tuple[Run, ...] = Field(min_length=1)
    vision: Tower | None = None

    @field_validator("facts")
    @classmethod
    def _in_order(cls, facts: dict[str, Fact]) -> dict[str, Fact]:
        """One order of facts, whatever the order of the document."""
        return {name: facts[name] for name in sorted(facts, key=fact_order)}

    @model_validator(mode="after")
    def _consistent(self) -> Architecture:
        for name, fact in self.facts.items():
            kind = fact_kind(name)
            if kind is None:
                raise ValueError(f"facts.{name}: no such fact")
            if fact.value < kind.least:
                raise ValueError(
                    f"{name}: expected a whole number of at least {kind.least}, found {fact.value} ({fact.source})"
                )
        sliding = "sliding_heads" if "sliding_heads" in self.facts else "attention_heads"
        for heads, kv in (
            ("attention_heads", "kv_heads"),
            ("attention_heads", "global_kv_heads"),
            (sliding, "sliding_kv_heads"),
        ):
            if self.value(kv) > self.value(heads):
                raise ValueError(
                    f"{kv}: {self.value(kv)} ({self.facts[kv].source}) is more than the {self.value(heads)} attention heads"
                )
        if self.value("experts_per_token") > self.value("experts"):
            raise ValueError(
                f"experts_per_token: {self.value('experts_per_token')} ({self.facts['experts_per_token'].source}) is more than "
                f"the {self.value('experts')} experts"
            )
        for block in self.blocks.values():
            missing = [fact for fact in block.uses.values() if fact not in self.facts]
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
            raise ValueError(f"facts.{missing[0]}: expected the number of such layers")
        return self

    def value(self, name: str) -> int:
        """A figure, 0 if the architecture does not have it."""
        return self.facts[name].value if name in self.facts else 0

    def groups(self) -> dict[tuple[str, ...], str]:
        """The different kinds of layer in order of appearance, with the fact that counts them."""
        kinds = list(dict.fromkeys(layer for run in self.stack for layer in run.layers))
        return {kind: "layers" if len(kinds) == 1 else ".".join(("layers", *kind)) for kind in kinds}

    def sequence(self) -> list[tuple[str, ...]]:
        """Every layer in order; where a count was overridden, the last of a kind are left out or more follow at the end."""
        groups = self.groups()
        left = {kind: self.value(name) for kind, name in groups.items()}
        layers = []
        for kind in (layer for run in self.stack for _ in range(run.times) for layer in run.layers):
            if left[kind]:
                left[kind] -= 1
                layers.append(kind)
        return layers + [kind for kind, count in left.items() for _ in range(count)]


def runs(layers: Sequence[tuple[str, ...]]) -> tuple[Run, ...]:
    """Layers in order to the shortest runs a left-to-right reading finds."""
    found: list[Run] = []
    start = 0
    while start < len(layers):
        best, cover = (1, 1), 1
        for period in range(1, min(16, len(layers) - start) + 1):
            pattern = list(layers[start : start + period])
            times = 1
            while list(layers[start + times * period : start + (times + 1) * period]) == pattern:
                times += 1
            if (times > 1 or period == 1) and times * period > cover:
                best, cover = (period, times), times * period
        period, times = best
        found.append(Run(times=times, layers=tuple(layers[start : start + period])))
        start += period * times
    return tuple(found)


class Model(Strict):
    """A model of the library, or one read from a config.json."""

    id: str = Field(min_length=1, max_length=120)
    name: str = Field(min_length=1, max_length=120)
    hub_id: str = ""
    source: str
    date: str = ""
    architecture: Architecture
