"""Quantisation schemes as configs state them, by their method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mantile.library.errors import InputError
from mantile.library.huggingface.compressed_tensors import read_compressed_tensors
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import (
    BODY_CLASSES,
    CLASSES,
    Format,
    Rule,
    Scheme,
    ignored_modules,
    int4,
    source_of,
)
from mantile.library.huggingface.gguf import read_tensors
from mantile.library.huggingface.mlx import read_mlx
from mantile.library.huggingface.modelopt import format_of_algorithm, read_modelopt
from mantile.library.huggingface.module_patterns import ModulePatterns
from mantile.library.huggingface.quark import read_quark
from mantile.library.huggingface.rounding import read_auto_round
from mantile.library.huggingface.torchao import read_torchao

_FIELDS = ("quantization_config", "compression_config", "quantization")


def scheme_of(config: Config) -> Scheme | None:
    """How a checkpoint is quantised; None if it is not.

    The config says so, or the file that it is a section of, or the hf_quant_config.json beside that file.

    Raises:
        InputError: for a method that is not supported, a field that is wrong, or two files that contradict
            each other.
    """
    stated, beside = _stated(config), _beside(config)
    if stated is None or beside is None:
        return stated or beside
    others = _weights(beside) - _weights(stated)
    if others or (stated.kv and beside.kv and stated.kv != beside.kv):
        said = [f"{scheme.source}, KV cache {scheme.kv or 'left open'}" for scheme in (stated, beside)]
        raise InputError(
            f"{config.name}: {'; but '.join(said)}: expected both files to say the same; leave out "
            "the one that does not hold"
        )
    return stated


def _weights(scheme: Scheme) -> set[str]:
    return {rule.format.weights for rule in scheme.rules if rule.format is not None}


def _stated(config: Config) -> Scheme | None:
    """What the config says, or the file that it is a section of."""
    for part in (config, config.parent):
        for name in _FIELDS:
            if part is not None and part.data.get(name) not in (None, {}):
                return _read(part.section(name, part.model_type), config)
    return None


def _beside(config: Config) -> Scheme | None:
    """What the hf_quant_config.json beside the file says."""
    if config.sidecar:
        sidecar = replace(config, data=config.sidecar, path="hf_quant_config.json: ", parent=None)
        if sidecar.data.get("quantization") not in (None, {}):
            return read_modelopt(sidecar.section("quantization", config.model_type))
    return None


def _read(section: Config, config: Config) -> Scheme:
    """A quantization_config by its method, or by the fields of one that names none."""
    method = _method(section)
    if method == "modelopt":
        nested = isinstance(section.data.get("quantization"), dict)
        return read_modelopt(section.section("quantization", section.model_type) if nested else section)
    if method == "fp8":
        return _with_expert_type(config, section, _fp8(section))
    if method not in _READERS:
        raise section.invalid("quant_method", f"one of {', '.join(METHODS)}")
    return _READERS[method](section)


def _method(section: Config) -> str:
    """The method of a quantization_config, however it is spelt."""
    data = section.data
    if data.get("quant_method") is None:
        if isinstance(data.get("quantization"), dict) or "quant_algo" in data:
            return "modelopt"
        if "config_groups" in data:
            return "compressed-tensors"
        if "bits" in data and "group_size" in data:
            return "mlx"
        if "load_in_4bit" in data or "load_in_8bit" in data:
            return "bitsandbytes"
    method = section.text("quant_method", default="").value.lower().replace("_", "-")
    if method.startswith("modelopt"):
        return "modelopt"
    if method == "intel/auto-round":
        return "auto-round"
    return next((name for name in METHODS if name.replace("_", "-") == method), method)


def _with_expert_type(config: Config, section: Config, scheme: Scheme) -> Scheme:
    """Routed experts in another format: expert_dtype of DeepSeek-V4, moe_quant_algo of its NVFP4 form."""
    if section.has("moe_quant_algo"):
        experts, field = format_of_algorithm(section, "moe_quant_algo"), f"{section.path}moe_quant_algo"
    else:
        part = section if section.has("expert_dtype") else config
        stated = part.text("expert_dtype", default="", among=("fp4", "fp8", "bf16")).value
        if stated in ("", "fp8"):
            return scheme
        activations = next((rule.format.activations for rule in scheme.rules if rule.format), "")
        experts = Format("mxfp4", activations) if stated == "fp4" else None
        field = f"{part.path}expert_dtype"
    return replace(
        scheme,
        rules=[Rule(experts, ("experts",)), *scheme.rules],
        source=f"{scheme.source}; routed experts by {field}",
    )


def _fp8(section: Config) -> Scheme:
    """Fine-grained fp8 in blocks of 128 x 128, or one scale per tensor."""
    blocks = section.integers("weight_block_size")
    if blocks not in (None, [128, 128]):
        raise section.invalid("weight_block_size", "[128, 128] or null")
    if section.text("fmt", default="e4m3").value not in ("e4m3", "float8_e4m3fn", "float8_e4m3"):
        raise section.invalid("fmt", "e4m3")
    source = "fp8, one scale per block of 128 x 128" if blocks else "fp8, one scale per tensor"
    return Scheme(
        source_of(section, source),
        [Rule(Format("fp8-block" if blocks else "fp8", "fp8"))],
        **ignored_modules(section, "modules_to_not_convert", "ignored_layers"),
    )


def _mxfp8(section: Config) -> Scheme:
    return _plain(section, "mxfp8", Rule(Format("fp8-mx", "fp8-mx")))


def _fbgemm(section: Config) -> Scheme:
    return _plain(section, "fbgemm_fp8, one scale per row", Rule(Format("fp8", "fp8")))


def _mxfp4(section: Config) -> Scheme:
    """The form of gpt-oss: experts only."""
    return _plain(section, "mxfp4, experts only", Rule(Format("mxfp4"), ("experts",)))


def _awq(section: Config) -> Scheme:
    if section.integer("bits", "w_bit", default=4).value != 4:
        raise section.invalid("bits" if "bits" in section.data else "w_bit", "4")
    weights = int4(section, "group_size", "q_group_size", zero_points=True)
    return _plain(section, "awq, 4 bit", Rule(Format(weights, "16")))


def _plain(section: Config, scheme: str, rule: Rule) -> Scheme:
    """A scheme of one rule."""
    return Scheme(source_of(section, scheme), [rule], **ignored_modules(section, "modules_to_not_convert"))


def _gptq(section: Config) -> Scheme:
    """GPTQ. `dynamic` may leave modules out, and the LM head may be quantised."""
    bits = section.integer("bits").value
    if bits not in (4, 8):
        raise section.invalid("bits", "4 or 8")
    dynamic = section.data.get("dynamic") or {}
    if not isinstance(dynamic, dict) or not all(
        isinstance(key, str) and key.startswith("-:") for key in dynamic
    ):
        raise section.invalid("dynamic", "only modules to leave out, as -:pattern")
    format = _gptq_format(section, bits)
    classes = CLASSES if section.flag("lm_head", default=False).value else BODY_CLASSES
    ignored: dict[str, Any] = {}
    if dynamic:
        field = f"{section.path}dynamic"
        patterns = ModulePatterns(section, field, ["re:.*" + key[2:] for key in dynamic])
        ignored = {"ignored": patterns, "ignored_source": field}
    rule = Rule(format, classes, _gptq_modules(section))
    return Scheme(source_of(section, f"gptq, {bits} bit"), [rule], **ignored)


def _gptq_format(section: Config, bits: int) -> Format:
    if bits == 4:
        return Format(int4(section, "group_size", zero_points=True), "16")
    return Format("int8" if section.data.get("group_size", 128) in (-1, 0, None) else "int8-g128", "16")


def _gptq_modules(section: Config) -> ModulePatterns | None:
    """The modules that are quantised, where the file lists them; None for all."""
    field = "modules_in_block_to_quantize"
    groups = section.data.get(field)
    if groups is None:
        return None
    if not isinstance(groups, list):
        raise section.invalid(field, "lists of texts")
    names = [name for group in groups for name in (group if isinstance(group, list) else [group])]
    if not all(isinstance(name, str) for name in names):
        raise section.invalid(field, "lists of texts")
    return ModulePatterns(section, f"{section.path}{field}", names)


def _bitsandbytes(section: Config) -> Scheme:
    four = section.flag("load_in_4bit", "_load_in_4bit", default=False).value
    eight = section.flag("load_in_8bit", "_load_in_8bit", default=False).value
    if four == eight:
        raise section.invalid("load_in_4bit", "either this or load_in_8bit to be true")
    format, scheme = Format("int8", "int8"), "bitsandbytes, 8 bit"
    if four:
        double = section.flag("bnb_4bit_use_double_quant", default=False).value
        format = Format("nf4-dq" if double else "nf4", "16")
        scheme = f"bitsandbytes, 4 bit{', scales quantised too' if double else ''}"
    ignored = ignored_modules(section, "llm_int8_skip_modules")
    return Scheme(source_of(section, scheme), [Rule(format)], **ignored)


_READERS: dict[str, Callable[[Config], Scheme]] = {
    "gguf": read_tensors,
    "quark": read_quark,
    "mlx": read_mlx,
    "auto-round": read_auto_round,
    "torchao": read_torchao,
    "mxfp4": _mxfp4,
    "mxfp8": _mxfp8,
    "compressed-tensors": read_compressed_tensors,
    "awq": _awq,
    "gptq": _gptq,
    "bitsandbytes": _bitsandbytes,
    "fbgemm_fp8": _fbgemm,
}
METHODS = ("fp8", "modelopt", *_READERS)
