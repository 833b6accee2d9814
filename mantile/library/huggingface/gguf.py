"""A GGUF file as a config.json: dimensions by its header, data types by its tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mantile.library.errors import InputError
from mantile.library.gguf_header import GgufHeader, GgufTensor
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import ALL_CLASSES, Format, Rule, Scheme, source_of
from mantile.library.huggingface.gguf_kinds import KINDS, Kind
from mantile.library.huggingface.module_patterns import ModulePatterns
from mantile.library.huggingface.own_words import OwnWords

_LIKE = {"f16": "fp16"}
_MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_exps": "mlp.experts.gate_proj",
    "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_down_exps": "mlp.experts.down_proj",
}
TYPES = (
    *("f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"),
    *("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "mxfp4"),
)
"""Types of the values of matrices that are read: data types of the library, f16 as fp16."""
_ENDS = {"token_embd.weight": "embed_tokens", "output.weight": "lm_head"}
_OTHERS = re.compile(
    r"rope_freqs\.weight|rope_factors_(?:long|short)\.weight|output_norm\.(?:weight|bias)"
    r"|blk\.\d+\.(?:attn_norm|ffn_norm|attn_q_norm|attn_k_norm|post_attention_norm|post_ffw_norm"
    r"|ffn_gate_inp|rope_freqs)\.weight"
)


def config_of(header: GgufHeader) -> dict[str, Any]:
    """The fields of a config.json, with the data type of every matrix in quantization_config.

    Raises:
        InputError: for an architecture, a tensor or a type of values that is not read, with a way out.
    """
    architecture = header.fields.get("general.architecture")
    kind = KINDS.get(architecture) if isinstance(architecture, str) else None
    experts = header.fields.get(f"{architecture}.expert_count") or 0
    model_type = None if kind is None else kind.of_experts if experts else kind.model_type
    if kind is None or not model_type:
        raise InputError(
            f"{header.name}: general.architecture {architecture!r:.40} is not read from a GGUF file; those "
            f"read are {', '.join(KINDS)}. Give the config.json of the model, with --weights-dtype"
        )
    data = {
        "model_type": model_type,
        "dtype": "float16",
        **kind.more,
        **_dimensions(header, architecture, kind),
    }
    if experts:
        data[kind.count] = experts
        for key, name in kind.of_experts_fields.items():
            _copy(header, f"{architecture}.{key}", name, data)
    data |= kind.follows(header, data)
    data |= _others(header, f"{architecture}.", kind)
    data["tie_word_embeddings"] = not any(tensor.name == "output.weight" for tensor in header.tensors)
    types = _types(header, kind)
    return data | {"quantization_config": {"quant_method": "gguf", "tensors": types}}


def words_of(header: GgufHeader) -> OwnWords:
    """Fields of a config.json as the header of this file calls them."""
    architecture = header.fields["general.architecture"]
    kind = KINDS[architecture]
    fields = {**kind.fields, **kind.of_experts_fields, "expert_count": kind.count}
    names = {name: f"{architecture}.{key}" for key, name in fields.items()}
    return OwnWords(names | {"quantization_config": "types of tensors"})


def _types(header: GgufHeader, kind: Kind) -> dict[str, str]:
    """The type of every matrix, by its name as in a config.

    Raises:
        InputError: where two tensors are one matrix of ours, and are not of one type.
    """
    types: dict[str, str] = {}
    for tensor in header.tensors:
        if re.fullmatch(kind.biases, tensor.name) or not _is_matrix(header, tensor, kind.others):
            continue
        module = _module(header, tensor, {**_MODULES, **kind.modules})
        if types.setdefault(module, tensor.type) != tensor.type:
            raise InputError(
                f"{header.name}: tensor {tensor.name} is of {tensor.type}, and another that makes one matrix "
                f"with it of {types[module]}; expected one type. Give the config.json of the model, with "
                "--weights-dtype"
            )
    return types


def _dimensions(header: GgufHeader, architecture: Any, kind: Kind) -> dict[str, Any]:
    """Dimensions by the header, with llama.cpp's own defaults; rows of the embedding by its tensor."""
    data: dict[str, Any] = {}
    for key, name in kind.fields.items():
        _copy(header, f"{architecture}.{key}", name, data)
    heads, hidden = data.get("num_attention_heads"), data.get("hidden_size")
    if "num_key_value_heads" in kind.fields.values():
        data.setdefault("num_key_value_heads", heads)
    has_width = "head_dim" in kind.fields.values()
    if has_width and isinstance(heads, int) and isinstance(hidden, int) and heads > 0:
        data.setdefault("head_dim", hidden // heads)
    embedding = next((tensor for tensor in header.tensors if tensor.name == "token_embd.weight"), None)
    if embedding is None or len(embedding.shape) != 2:
        raise InputError(f"{header.name}: tensor token_embd.weight is missing or no matrix")
    return data | {"vocab_size": embedding.shape[1]}


def _others(header: GgufHeader, prefix: str, kind: Kind) -> dict[str, Any]:
    """What the header says of the architecture and nothing here reads, under its own names.

    Raises:
        InputError: where values have another width than keys.
    """
    read = {*kind.fields, *kind.of_experts_fields, *kind.read, "expert_count", "attention.value_length"}
    widths = [header.fields.get(f"{prefix}attention.{name}_length") for name in ("key", "value")]
    if "head_dim" in kind.fields.values() and None not in widths and widths[0] != widths[1]:
        raise InputError(
            f"{header.name}: field {prefix}attention.value_length: expected {widths[0]}, as of keys, found "
            f"{widths[1]!r:.60}; give the config.json of the model, with --weights-dtype"
        )
    return {
        key: f"a list of {len(value)}" if isinstance(value, range) else value
        for key, value in header.fields.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in read
    }


def _copy(header: GgufHeader, key: str, name: str, data: dict[str, Any]) -> None:
    value = header.fields.get(key)
    if isinstance(value, range):
        raise InputError(
            f"{header.name}: field {key}: expected one value for all layers, found a list of {len(value)}; "
            "give the config.json of the model, with --weights-dtype"
        )
    if value is not None:
        data[name] = value


def _is_matrix(header: GgufHeader, tensor: GgufTensor, others: str) -> bool:
    """Whether a tensor is a matrix whose type counts; others are norms, routers, positions."""
    if _OTHERS.fullmatch(tensor.name) or re.fullmatch(others, tensor.name):
        return False
    if len(tensor.shape) > 1 and tensor.type not in TYPES:
        raise InputError(
            f"{header.name}: tensor {tensor.name}: values of {tensor.type} are not read; those read are "
            f"{', '.join(TYPES)}. Give the config.json of the model, with the nearest --weights-dtype"
        )
    return True


def _module(header: GgufHeader, tensor: GgufTensor, modules: Mapping[str, str]) -> str:
    """The name of a matrix as in a config."""
    if tensor.name in _ENDS:
        return _ENDS[tensor.name]
    found = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", tensor.name)
    if found is None or found.group(2) not in modules:
        raise InputError(
            f"{header.name}: tensor {tensor.name!r:.80} is none that is read; give the config.json of the "
            "model, with --weights-dtype"
        )
    return f"layers.{found.group(1)}.{modules[found.group(2)]}"


def read_tensors(section: Config) -> Scheme:
    """The scheme of a quantization_config that lists the type of every matrix, as `config_of` makes it."""
    tensors = section.section("tensors", "tensors")
    types: dict[str, list[str]] = {}
    for name in tensors.data:
        kind = tensors.text(name, default="").value
        types.setdefault(kind, []).append(name)
    rules = [
        Rule(
            Format(_LIKE.get(kind, kind), "16"),
            ALL_CLASSES,
            ModulePatterns(section, f"{section.path}tensors", names),
        )
        for kind, names in types.items()
    ]
    source = source_of(section, ", ".join(sorted(types)))
    return Scheme(source, rules, file="GGUF")
