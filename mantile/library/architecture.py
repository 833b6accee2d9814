"""The architecture of a model: the normalised facts of a config.json, each with where it comes from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict

Origin = Literal["config", "default", "derived", "override"]


class Fact(Strict):
    """A figure of an architecture.

    `origin` says whether the config states it, the model class implies it, or we worked it out; `source` names the
    config field, the class, or the arithmetic.
    """

    value: int = Field(ge=0, le=2**40)
    origin: Origin
    source: str


class Choice(Strict):
    """A word of an architecture: norm, activation, position embedding."""

    value: str
    origin: Origin
    source: str


class Architecture(Strict):
    """A dense decoder-only transformer. Flags are 0 or 1; a sliding window of 0 means that there is none."""

    model_type: str
    layers: Fact
    hidden_size: Fact
    attention_heads: Fact
    kv_heads: Fact
    head_dim: Fact
    ffn_size: Fact
    ffn_input_matrices: Fact
    vocabulary: Fact
    max_positions: Fact
    sliding_window: Fact
    tied_embeddings: Fact
    qkv_bias: Fact
    output_bias: Fact
    ffn_bias: Fact
    norm_bias: Fact
    qk_norm: Fact
    norm: Choice
    activation: Choice
    position_embedding: Choice
    weights_dtype: Choice

    @model_validator(mode="after")
    def _positive(self) -> Architecture:
        for name in ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_size", "vocabulary",
                     "max_positions"):  # fmt: skip
            fact: Fact = getattr(self, name)
            if fact.value < 1:
                raise ValueError(f"{name}: expected a whole number of at least 1, found {fact.value} ({fact.source})")
        if self.kv_heads.value > self.attention_heads.value:
            raise ValueError(f"kv_heads: {self.kv_heads.value} is more than the {self.attention_heads.value} attention heads")
        return self

    def facts(self) -> dict[str, Fact]:
        """The figures by name, in order."""
        return {name: value for name, value in self if isinstance(value, Fact)}

    def choices(self) -> dict[str, Choice]:
        """The words by name, in order."""
        return {name: value for name, value in self if isinstance(value, Choice)}


class Model(Strict):
    """A model of the library, or one read from a config.json."""

    id: str = Field(min_length=1, max_length=120)
    name: str = Field(min_length=1, max_length=120)
    hub_id: str = ""
    source: str
    date: str = ""
    architecture: Architecture
