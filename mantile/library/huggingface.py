"""A HuggingFace config.json to our architecture facts, without torch and without network.

A missing key is not null, defaults differ by model class, and some biases are implied by the class and stated
nowhere: each family below states its own. What a family does not cover is refused by name, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mantile.library.architecture import Architecture, Choice, Fact
from mantile.library.documents import parse_json, read_text, validate
from mantile.library.errors import InputError

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
_REQUIRED = object()


@dataclass(frozen=True)
class _Config:
    """A config with the file's name for errors."""

    name: str
    model_type: str
    data: Mapping[str, Any]

    def whole(self, field: str, default: Any = _REQUIRED, maximum: int = 2**40) -> Fact:
        if field not in self.data:
            if default is _REQUIRED:
                raise InputError(f"{self.name}: field {field} is missing; model_type {self.model_type!r} needs it")
            return Fact(value=default, origin="default", source=f"{self.model_type} class default of {field}")
        value = self.data[field]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
            raise InputError(f"{self.name}: field {field}: expected a whole number from 1 to {maximum}, found {value!r:.60}")
        return Fact(value=value, origin="config", source=field)

    def flag(self, field: str, default: bool) -> Fact:
        if field not in self.data:
            return Fact(value=int(default), origin="default", source=f"{self.model_type} class default of {field}")
        value = self.data[field]
        if not isinstance(value, bool):
            raise InputError(f"{self.name}: field {field}: expected true or false, found {value!r:.60}")
        return Fact(value=int(value), origin="config", source=field)

    def implied(self, value: int, why: str) -> Fact:
        return Fact(value=value, origin="default", source=f"{self.model_type} class: {why}")

    def word(self, field: str, default: str) -> Choice:
        value = self.data.get(field)
        if value is None:
            return Choice(value=default, origin="default", source=f"{self.model_type} class default of {field}")
        if not isinstance(value, str):
            raise InputError(f"{self.name}: field {field}: expected a text, found {value!r:.60}")
        return Choice(value=value, origin="config", source=field)

    def head_dim(self, hidden: Fact, heads: Fact, class_default: int | None = None) -> Fact:
        if self.data.get("head_dim") is not None:
            return self.whole("head_dim")
        if class_default is not None and "head_dim" not in self.data:
            return Fact(value=class_default, origin="default", source=f"{self.model_type} class default of head_dim")
        if hidden.value % heads.value:
            raise InputError(
                f"{self.name}: hidden_size {hidden.value} is not a multiple of num_attention_heads {heads.value} "
                "and head_dim is not given"
            )
        return Fact(value=hidden.value // heads.value, origin="derived", source="hidden_size ÷ num_attention_heads")

    def kv_heads(self, heads: Fact, class_default: int | None = None) -> Fact:
        if self.data.get("num_key_value_heads") is not None:
            return self.whole("num_key_value_heads")
        if class_default is not None and "num_key_value_heads" not in self.data:
            return Fact(value=class_default, origin="default",
                        source=f"{self.model_type} class default of num_key_value_heads")  # fmt: skip
        return Fact(value=heads.value, origin="derived", source="num_key_value_heads absent: as many as attention heads")

    def window(self, default: int, switch: bool) -> Fact:
        """The sliding window; 0 is none. Where the class has a switch, it is off unless the file turns it on."""
        if switch:
            used = self.flag("use_sliding_window", False)
            if not used.value:
                return Fact(value=0, origin=used.origin, source="use_sliding_window is false")
            full = self.data.get("max_window_layers", 28)  # layers below it attend to everything
            layers = self.whole("num_hidden_layers").value
            if isinstance(full, int) and not isinstance(full, bool) and full >= layers:
                return Fact(value=0, origin="derived", source="max_window_layers: no layer has a window")
            if full != 0 or isinstance(full, bool):
                raise InputError(
                    f"{self.name}: field max_window_layers: a window on some layers only is not supported for "
                    f"{self.model_type}; expected 0 or use_sliding_window false"
                )
        if "sliding_window" in self.data and self.data["sliding_window"] is None:
            return Fact(value=0, origin="config", source="sliding_window is null")
        return self.whole("sliding_window", default) if default or "sliding_window" in self.data else Fact(
            value=0, origin="default", source=f"{self.model_type} class has no sliding window"
        )  # fmt: skip


def _common(config: _Config, vocabulary: Any = _REQUIRED) -> dict[str, Any]:
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    return {
        "model_type": config.model_type,
        "layers": config.whole("num_hidden_layers", maximum=10_000),
        "hidden_size": hidden,
        "attention_heads": heads,
        "kv_heads": config.kv_heads(heads),
        "head_dim": config.head_dim(hidden, heads),
        "ffn_size": config.whole("intermediate_size"),
        "vocabulary": config.whole("vocab_size", vocabulary),
        "sliding_window": config.implied(0, "no sliding window"),
        "norm_bias": config.implied(0, "RMSNorm has no bias"),
        "qk_norm": config.implied(0, "no norm of queries and keys"),
        "ffn_input_matrices": config.implied(2, "gated FFN: gate and up"),
        "norm": Choice(value="RMSNorm", origin="default", source=f"{config.model_type} class"),
        "activation": config.word("hidden_act", "silu"),
        "position_embedding": Choice(value="RoPE", origin="default", source=f"{config.model_type} class"),
        "tied_embeddings": config.flag("tie_word_embeddings", False),
        "weights_dtype": _weights_dtype(config),
    }


def _llama(config: _Config) -> dict[str, Any]:
    bias = config.flag("attention_bias", False)
    return _common(config) | {
        "max_positions": config.whole("max_position_embeddings", 2048),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": config.flag("mlp_bias", False),
    }


def _mistral(config: _Config) -> dict[str, Any]:
    none = config.implied(0, "no biases")
    facts = _common(config)
    return facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=8),
        "sliding_window": config.window(4096, switch=False),
        "max_positions": config.whole("max_position_embeddings", 131_072),
        "qkv_bias": none,
        "output_bias": none,
        "ffn_bias": none,
    }


def _qwen2(config: _Config) -> dict[str, Any]:
    facts = _common(config)
    return facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=32),
        "sliding_window": config.window(4096, switch=True),
        "max_positions": config.whole("max_position_embeddings", 32_768),
        "qkv_bias": config.implied(1, "query, key and value always have a bias"),
        "output_bias": config.implied(0, "no bias on the output projection"),
        "ffn_bias": config.implied(0, "no bias in the FFN"),
    }


def _qwen3(config: _Config) -> dict[str, Any]:
    facts = _common(config)
    bias = config.flag("attention_bias", False)
    return facts | {
        "head_dim": config.head_dim(facts["hidden_size"], facts["attention_heads"], class_default=128),
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=32),
        "sliding_window": config.window(4096, switch=True),
        "max_positions": config.whole("max_position_embeddings", 32_768),
        "qk_norm": config.implied(1, "RMSNorm of every query and key head"),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": config.implied(0, "no bias in the FFN"),
    }


def _starcoder2(config: _Config) -> dict[str, Any]:
    facts = _common(config)
    bias = config.flag("use_bias", True)
    return facts | {
        "kv_heads": config.kv_heads(facts["attention_heads"], class_default=2),
        "sliding_window": config.window(0, switch=False),
        "max_positions": config.whole("max_position_embeddings", 4096),
        "tied_embeddings": config.flag("tie_word_embeddings", True),
        "norm": Choice(value="LayerNorm", origin="default", source="starcoder2 class"),
        "norm_bias": config.implied(1, "LayerNorm has a bias"),
        "activation": config.word("hidden_act", "gelu_pytorch_tanh"),
        "ffn_input_matrices": config.implied(1, "plain FFN: one input matrix"),
        "qkv_bias": bias,
        "output_bias": bias,
        "ffn_bias": bias,
    }


FAMILIES: dict[str, Callable[[_Config], dict[str, Any]]] = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "starcoder2": _starcoder2,
}


def _weights_dtype(config: _Config) -> Choice:
    quantisation = config.data.get("quantization_config")
    if quantisation is None:
        field = "dtype" if "dtype" in config.data else "torch_dtype"
        stated = config.word(field, "bfloat16")
        if stated.value not in _DTYPES:
            raise InputError(f"{config.name}: field {field}: expected one of {', '.join(_DTYPES)}, found {stated.value!r}")
        return Choice(value=_DTYPES[stated.value], origin=stated.origin, source=stated.source)
    if not isinstance(quantisation, dict):
        raise InputError(f"{config.name}: field quantization_config: expected a mapping, found {quantisation!r:.60}")
    if quantisation.get("quant_method") == "fp8":
        block = quantisation.get("weight_block_size")
        return Choice(value="fp8-block" if block else "fp8", origin="config", source="quantization_config")
    raise InputError(
        f"{config.name}: field quantization_config: method {quantisation.get('quant_method')!r:.60} is not supported; "
        "expected fp8, or no quantization_config and the data types given as inputs"
    )


def parse_config(data: Any, name: str) -> Architecture:
    """A config.json's content to an architecture.

    Args:
        data: the parsed JSON.
        name: stands for the file in errors.

    Raises:
        InputError: for an unsupported model_type, or a field that is missing or wrong, naming it.
    """
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected a JSON object, found {type(data).__name__}")
    model_type = data.get("model_type")
    if not isinstance(model_type, str):
        raise InputError(f"{name}: field model_type is missing or not a text; supported: {', '.join(FAMILIES)}")
    if model_type not in FAMILIES:
        raise InputError(f"{name}: model_type {model_type!r:.80} is not supported; supported: {', '.join(FAMILIES)}")
    return validate(Architecture, FAMILIES[model_type](_Config(name, model_type, data)), name)


def read_config(path: Path) -> Architecture:
    """A config.json, or the folder it lies in, to an architecture."""
    file = path / "config.json" if path.is_dir() else path
    return parse_config(parse_json(read_text(file), str(file)), str(file))
