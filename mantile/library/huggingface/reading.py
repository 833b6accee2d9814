"""Fields of a config.json to facts, each with its origin. A missing key is not null, and a figure is never guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mantile.library.architecture import Architecture, Block, BlockKind, Choice, Fact, Origin, Tower, runs
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.huggingface.quantisation import data_types

REQUIRED: Any = object()
MAX_LAYERS = 10_000
LARGEST = 100_000_000  # of any dimension: more would be a slip, and would not fit a cell's limits
Facts = dict[str, Fact]
Layer = tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """A config, or the part of one that describes the decoder, with the file's name for errors.

    Args:
        name: of the file.
        model_type: of this part; `outer` is that of the whole file where parts are nested.
        data: the fields.
        path: what stands before a field's name in errors and sources: "text_config." or nothing.
        sidecar: content of hf_quant_config.json beside the file, if there is one.
        above: what a nested part is a part of.
        defaults: figures of the model class that a nested part may leave out.
    """

    name: str
    model_type: str
    data: Mapping[str, Any]
    path: str = ""
    outer: str = ""
    sidecar: Mapping[str, Any] | None = None
    above: Config | None = None
    defaults: Mapping[str, int] = field(default_factory=dict)

    def wrong(self, field: str, expected: str) -> InputError:
        """An error about a field: what was found and what was expected."""
        if field not in self.data:
            return InputError(
                f"{self.name}: field {self.path}{field} is missing; model_type {self.model_type!r} needs {expected}"
            )
        return InputError(
            f"{self.name}: field {self.path}{field}: expected {expected}, found {self.data[field]!r:.60}"
        )

    def part(self, field: str, default_type: str = "") -> Config:
        """A nested config: text_config, vision_config."""
        data = self.data.get(field)
        if not isinstance(data, dict):
            raise self.wrong(field, "a mapping of fields")
        inner = data.get("model_type") or default_type
        if not isinstance(inner, str) or not inner:
            raise InputError(f"{self.name}: field {self.path}{field}.model_type is missing or not a text")
        return replace(
            self,
            model_type=inner,
            data=data,
            path=f"{self.path}{field}.",
            outer=self.outer or self.model_type,
            above=self,
        )

    def has(self, field: str) -> bool:
        """Whether a field is there and not null."""
        return self.data.get(field) is not None

    def whole(self, *fields: str, default: Any = REQUIRED, least: int = 1, most: int = LARGEST) -> Fact:
        """A whole number by the first of several spellings that is there.

        Args:
            default: of the model class, where the field is missing (null is not missing).
        """
        field = next((field for field in fields if field in self.data), fields[0])
        default = next((self.defaults[field] for field in fields if field in self.defaults), default)
        if field not in self.data and default is not REQUIRED:
            return Fact(
                value=default,
                origin="default",
                source=f"{self.model_type} class default of {self.path}{field}",
            )
        value = self.data.get(field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(field, f"a whole number from {least} to {most}")
        return Fact(value=value, origin="config", source=f"{self.path}{field}")

    def optional(self, *fields: str, why: str, value: int = 0) -> Fact:
        """A whole number that may be missing or null, and what that stands for."""
        field = next((field for field in fields if self.has(field)), None)
        if field is not None:
            return self.whole(field, least=0)
        given = any(field in self.data for field in fields)
        return Fact(
            value=value,
            origin="config" if given else "default",
            source=f"{self.path}{fields[0]} {'null' if given else 'absent'}: {why}",
        )

    def flag(self, *fields: str, default: bool) -> Fact:
        """A switch, 0 or 1; null counts as missing."""
        field = next((field for field in fields if self.has(field)), fields[0])
        if not self.has(field):
            return Fact(
                value=int(default),
                origin="default",
                source=f"{self.model_type} class default of {self.path}{field}",
            )
        if not isinstance(self.data[field], bool):
            raise self.wrong(field, "true or false")
        return Fact(value=int(self.data[field]), origin="config", source=f"{self.path}{field}")

    def implied(self, value: int, why: str) -> Fact:
        """What the model class does and no field says."""
        return Fact(value=value, origin="default", source=f"{self.model_type} class: {why}")

    def derived(self, value: int, how: str) -> Fact:
        """What follows from other fields."""
        return Fact(value=value, origin="derived", source=how)

    def word(self, *fields: str, default: str, among: Sequence[str] = ()) -> Choice:
        """A text; missing or null stands for the class default."""
        field = next((field for field in fields if self.has(field)), fields[0])
        value = self.data.get(field)
        if value is None:
            return Choice(
                value=default,
                origin="default",
                source=f"{self.model_type} class default of {self.path}{field}",
            )
        if not isinstance(value, str) or (among and value not in among):
            raise self.wrong(field, f"one of {', '.join(among)}" if among else "a text")
        return Choice(value=value, origin="config", source=f"{self.path}{field}")

    def texts(self, field: str, count: int | None = None, among: Sequence[str] = ()) -> list[str] | None:
        """A list of texts, one per layer; None if missing or null."""
        value = self.data.get(field)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or not all(isinstance(item, str) and (not among or item in among) for item in value)
            or (count is not None and len(value) != count)
        ):
            raise self.wrong(
                field,
                f"a list of {'texts' if count is None else f'{count} texts'}"
                + (f", each one of {', '.join(among)}" if among else ""),
            )
        return value

    def numbers(self, field: str, count: int | None = None) -> list[int] | None:
        """A list of whole numbers; None if missing or null."""
        value = self.data.get(field)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or not all(isinstance(item, int) and not isinstance(item, bool) for item in value)
            or (count is not None and len(value) != count)
        ):
            raise self.wrong(
                field, f"a list of {'whole numbers' if count is None else f'{count} whole numbers'}"
            )
        return value

    def head_dim(
        self, hidden: Fact, heads: Fact, class_default: int | None = None, field: str = "head_dim"
    ) -> Fact:
        """Width of a head; where the file and the class say nothing, hidden size ÷ heads."""
        if self.has(field):
            return self.whole(field)
        class_default = self.defaults.get(field, class_default)
        if class_default is not None and field not in self.data:
            return Fact(
                value=class_default,
                origin="default",
                source=f"{self.model_type} class default of {self.path}{field}",
            )
        if hidden.value % heads.value:
            raise InputError(
                f"{self.name}: {hidden.source} {hidden.value} is not a multiple of {heads.source} {heads.value} and {self.path}{field} "
                "is not given"
            )
        return self.derived(hidden.value // heads.value, f"{hidden.source} ÷ {heads.source}")

    def kv_heads(
        self, heads: Fact, class_default: int | None = None, field: str = "num_key_value_heads"
    ) -> Fact:
        """KV heads; null, or missing where the class has no default, stands for as many as query heads."""
        if self.has(field):
            return self.whole(field)
        class_default = self.defaults.get(field, class_default)
        if class_default is not None and field not in self.data:
            return Fact(
                value=class_default,
                origin="default",
                source=f"{self.model_type} class default of {self.path}{field}",
            )
        return self.derived(heads.value, f"{self.path}{field} absent: as many as attention heads")

    def layers(self, *fields: str, default: Any = REQUIRED) -> Fact:
        """How many layers."""
        return self.whole(*(fields or ("num_hidden_layers",)), default=default, most=MAX_LAYERS)


def choice(config: Config, value: str, why: str = "", origin: Origin = "default") -> Choice:
    """A word the class implies."""
    return Choice(value=value, origin=origin, source=f"{config.model_type} class{': ' + why if why else ''}")


def base_facts(config: Config, positions: int | None) -> Facts:
    """Figures outside mixers and FFNs; `positions` is the class default of the longest context, None where there is no such thing."""
    longest = (
        {}
        if positions is None
        else {"max_positions": config.whole("max_position_embeddings", "model_max_length", default=positions)}
    )
    return longest | {
        "hidden_size": config.whole("hidden_size"),
        "vocabulary": config.whole("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }


def decoder_facts(
    config: Config,
    positions: int,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    tied: bool = False,
) -> Facts:
    """Figures nearly every decoder spells alike: sizes, heads, vocabulary. Flags are those of llama: no bias, no QK norm.

    Args:
        positions, kv_heads, head_dim, tied: class defaults; None where the class has as many KV heads as query heads, and heads
            that share the hidden size among them.
    """
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    return {
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads, kv_heads),
        "head_dim": config.head_dim(hidden, heads, head_dim),
        "vocabulary": config.whole("vocab_size"),
        "max_positions": config.whole("max_position_embeddings", default=positions),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": config.implied(0, "no bias on query, key and value"),
        "output_bias": config.implied(0, "no bias on the output projection"),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "qk_norm": config.implied(0, "no norm of queries and keys"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
    }


def ffn_facts(config: Config, field: str = "intermediate_size") -> Facts:
    """Figures of a dense FFN without bias."""
    return {"ffn_size": config.whole(field), "ffn_bias": config.implied(0, "no bias in the FFN")}


def dense_facts(config: Config, positions: int, **defaults: Any) -> Facts:
    """Figures of a decoder with a dense FFN in every layer."""
    return decoder_facts(config, positions, **defaults) | ffn_facts(config)


def attention_biases(config: Config, default: bool = False) -> Facts:
    """One switch for the biases of query, key, value and output."""
    bias = config.flag("attention_bias", default=default)
    return {"qkv_bias": bias, "output_bias": bias}


def layer_norm(config: Config) -> Facts:
    """LayerNorm as most have it."""
    return {"norm_bias": config.implied(1, "LayerNorm has a bias")}


def without(config: Config, *fields: str) -> None:
    """An error where a switch that changes the structure is on."""
    for name in fields:
        if config.flag(name, default=False).value:
            raise config.wrong(name, f"false; nothing else is supported for {config.model_type}")


def block(kind: BlockKind, /, **uses: str) -> Block:
    """A block; `uses` names the facts that play a role under another name."""
    return Block(kind=kind, uses=uses)


def architecture(
    config: Config,
    facts: Facts,
    blocks: Mapping[str, Block],
    layers: Sequence[Layer],
    *,
    counted: Fact,
    norms: str = "pre",
    norm: str = "RMSNorm",
    activation: Choice | None = None,
    positions: str = "RoPE",
    pattern: str = "",
    tensor_names: str = "",
    predicted: Layer = (),
    vision: Tower | None = None,
) -> Architecture:
    """Put an architecture together.

    Args:
        facts: figures without those that count layers.
        layers: every layer in order, as block names.
        counted: how many layers there are, with its source.
        norms: where norms stand: pre, sandwich, post, parallel.
        pattern: which field says what kind each layer is.
        tensor_names: whose tensor names hold, if not those of the model type.
        predicted: blocks of a layer that predicts further tokens, where it is not of the last kind.
    """
    kinds = dict.fromkeys(layers)
    if len(kinds) == 1:
        counts = {"layers": counted}
    else:
        source = f"layers of this kind, from {pattern or counted.source}"
        counts = {
            ".".join(("layers", *kind)): config.derived(list(layers).count(kind), source) for kind in kinds
        }
    outer = config.outer or config.model_type
    described = {
        "model_type": outer,
        "facts": counts | facts,
        "blocks": dict(blocks),
        "stack": runs(layers),
        "choices": {
            "norms": choice(config, norms, "where norms stand"),
            "norm": choice(config, norm),
            "activation": activation or config.word("hidden_act", default="silu"),
            "position_embedding": choice(config, positions),
            "tensor_names": choice(config, tensor_names or config.model_type, "whose names the tensors have"),
        }
        | _prediction(config, facts, predicted)
        | data_types(config, [[blocks[name] for name in layer] for layer in layers], facts),
        "vision": vision,
    }
    return validate(Architecture, described, config.name)


def _prediction(config: Config, facts: Facts, blocks: Layer) -> dict[str, Choice]:
    """Of which blocks a layer that predicts further tokens is made, if there is one and its family says so."""
    if not blocks or not facts["mtp_layers"].value:
        return {}
    return {
        "prediction_layer": choice(
            config, " + ".join(blocks), "blocks of a layer that predicts further tokens"
        )
    }


def uniform(config: Config, facts: Facts, blocks: Mapping[str, Block], **more: Any) -> Architecture:
    """An architecture whose layers are all alike."""
    counted = more.pop("counted", None) or config.layers()
    return architecture(config, facts, blocks, [tuple(blocks)] * counted.value, counted=counted, **more)
