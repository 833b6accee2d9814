"""Checkpoints of AMD Quark: one form for all linear layers, others for layers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import (
    ALL_CLASSES,
    CLASSES,
    Format,
    Rule,
    Scheme,
    ignored_modules,
    int4,
    source_of,
)
from mantile.library.huggingface.module_patterns import ModulePatterns

_FP8 = ("fp8_e4m3", "fp8")


def read_quark(section: Config) -> Scheme:
    """The scheme of a quantization_config of Quark; what it does not leave out is quantised, LM head too."""
    common = _format(section.section("global_quant_config", "layers"))
    rules = [
        Rule(_format(own), ALL_CLASSES, ModulePatterns(section, own.path.rstrip("."), [name]))
        for name, own in _by_layer(section)
    ]
    said = f"Quark, {common.weights}" if common else "Quark"
    cache = section.data.get("kv_cache_quant_config")
    return Scheme(
        source_of(section, said),
        [*rules, Rule(common, CLASSES)],
        kv=_cache(section) if cache else "",
        **ignored_modules(section, "exclude"),
    )


def _by_layer(section: Config) -> list[tuple[str, Config]]:
    """What layers by name have, with the section of each."""
    if not section.data.get("layer_quant_config"):
        return []
    layers = section.section("layer_quant_config", "layers")
    return [(name, layers.section(name, "layer")) for name in layers.data]


def _cache(section: Config) -> str:
    """The data type of the KV cache: that of the first layer that is named."""
    layers = section.section("kv_cache_quant_config", "cache")
    first = layers.section(next(iter(layers.data)), "layer")
    outputs = first.section("output_tensors", "tensor")
    kind = outputs.text("dtype", default="").value
    if kind not in (*_FP8, "int8"):
        raise outputs.invalid("dtype", "fp8_e4m3 or int8")
    return "int8" if kind == "int8" else "fp8"


def _format(layers: Config) -> Format | None:
    """The format of some layers by what is stated of weights and inputs; None is 16 bit."""
    if not layers.has("weight"):
        return None
    weight = layers.section("weight", "tensor")
    inputs = layers.section("input_tensors", "tensor") if layers.has("input_tensors") else None
    return Format(_type(weight), "16" if inputs is None else _type(inputs))


def _type(tensor: Config) -> str:
    """Our data type of a tensor by its number and how many values share a scale."""
    stated: Mapping[str, Any] = tensor.data
    size = stated.get("group_size") if stated.get("qscheme") == "per_group" else None
    match tensor.text("dtype", default="").value:
        case "fp8_e4m3" | "fp8":
            return "fp8-mx" if size == 32 else "fp8"
        case "fp4" if size in (16, 32):
            return "mxfp4" if size == 32 else "nvfp4"
        case "int8":
            return "int8"
        case "int4" | "uint4":
            return int4(replace(tensor, data={"group_size": size}), "group_size", zero_points=True)
        case _:
            raise tensor.invalid("dtype", "fp8_e4m3, fp4 in groups of 16 or 32, int8 or int4")
