"""Checkpoints of NVIDIA ModelOpt: one algorithm for all matrices, or one for each module that is listed."""

from __future__ import annotations

from dataclasses import replace

from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import (
    ALL_CLASSES,
    CLASSES,
    Format,
    Rule,
    Scheme,
    ignored_modules,
    int4,
    kv_cache_scheme,
    source_of,
)
from mantile.library.huggingface.module_patterns import ModulePatterns

# ModelOpt's name of an algorithm to our data types of weights and activations, as in `Format`; None is 16
# bit.
_ALGORITHMS: dict[str, tuple[str, str] | None] = {
    "FP8": ("fp8", "fp8"),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8"),
    "FP8_PB_WO": ("fp8-block", "16"),
    "FP8_BLOCK_SCALES": ("fp8-block", "fp8"),
    "MXFP8": ("fp8-mx", "fp8-mx"),
    "NVFP4": ("nvfp4", "nvfp4"),
    "NVFP4_AWQ": ("nvfp4", "nvfp4"),
    "W4A16_NVFP4": ("nvfp4", "16"),
    "W4A8_NVFP4_FP8": ("nvfp4", "fp8"),
    "W4A16_MXFP4": ("mxfp4", "16"),
    "W4A8_MXFP4_FP8": ("mxfp4", "fp8"),
    "W4A8_MXFP4_MXFP8": ("mxfp4", "fp8-mx"),
    "W4A16": ("int4", "16"),
    "W4A16_AWQ": ("int4", "16"),
    "W4A8_AWQ": ("int4", "fp8"),
    "W8A16": ("int8", "16"),
    "W8A8_SQ_PER_CHANNEL": ("int8", "int8"),
    "UNQUANTIZED": None,
    "NO_QUANT": None,
}
_CACHES = {"FP8": "fp8", "INT8": "int8"}
"""Our data type of a KV cache by ModelOpt's name."""


def read_modelopt(section: Config) -> Scheme:
    """The scheme of a quantization_config, or of a hf_quant_config.json, in the form of ModelOpt."""
    ignored = ignored_modules(section, "ignore", "exclude_modules")
    cache = section.text("kv_cache_quant_algo", default="").value
    if cache.upper() not in ("", "NONE", *_CACHES):
        raise section.invalid("kv_cache_quant_algo", f"{', '.join(_CACHES)} or null")
    kv = _CACHES.get(cache.upper()) or kv_cache_scheme(section)
    if section.text("quant_algo", default="").value.upper() == "MIXED_PRECISION":
        source = source_of(section, "ModelOpt MIXED_PRECISION")
        return Scheme(source, _rules_by_module(section), kv=kv, **ignored)
    format = format_of_algorithm(section)
    scheme = f"ModelOpt {section.data['quant_algo']}" if format else "ModelOpt, no weights"
    if not ignored and format:
        scheme += ", no list of modules left out: the LM head is taken to be quantised too"
    rules = [Rule(format, CLASSES)] if format else []
    return Scheme(source_of(section, scheme), rules, kv=kv, **ignored)


def format_of_algorithm(section: Config, field: str = "quant_algo") -> Format | None:
    """The format that a field states by ModelOpt's name for it; None is 16 bit."""
    algorithm = section.text(field, default="NO_QUANT").value.upper()
    if algorithm not in _ALGORITHMS:
        mixed = ", MIXED_PRECISION" if field == "quant_algo" else ""
        raise section.invalid(field, f"one of {', '.join(_ALGORITHMS)}{mixed}")
    types = _ALGORITHMS[algorithm]
    if types is None:
        return None
    weights, activations = types
    return Format(int4(section, "group_size") if weights == "int4" else weights, activations)


def _rules_by_module(section: Config) -> list[Rule]:
    """A rule for each format, with the modules that quantized_layers lists for it."""
    field = f"{section.path}quantized_layers"
    modules = section.data.get("quantized_layers")
    if (
        not isinstance(modules, dict)
        or not modules
        or not all(isinstance(fields, dict) for fields in modules.values())
    ):
        raise section.invalid("quantized_layers", "a mapping of modules to their algorithms")
    names_by_format: dict[Format | None, list[str]] = {}
    for name, fields in modules.items():
        format = format_of_algorithm(replace(section, data=fields, path=f"{field}.{name}."))
        names_by_format.setdefault(format, []).append(name)
    return [
        Rule(format, ALL_CLASSES, ModulePatterns(section, field, names))
        for format, names in names_by_format.items()
    ]
