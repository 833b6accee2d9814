"""Checkpoints in the form of compressed-tensors: groups of modules, with a data type for each group."""

from __future__ import annotations

import re
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


def read_compressed_tensors(section: Config) -> Scheme:
    """The scheme of a quantization_config with config_groups."""
    groups = section.data.get("config_groups")
    if not isinstance(groups, dict) or (not groups and not section.has("kv_cache_scheme")):
        raise section.invalid("config_groups", "a mapping of groups")
    sparsity = section.data.get("sparsity_config")
    if isinstance(sparsity, dict) and sparsity.get("format") not in (None, "dense"):
        raise section.invalid("sparsity_config", "null, or format dense: sparse weights are not supported")
    config_groups = section.section("config_groups", "groups")
    by_name: list[Rule] = []
    by_class: list[Rule] = []
    for name in groups:
        group = config_groups.section(name, "group")
        if group.has("weights"):
            named, classes = _group_rules(group)
            by_name, by_class = named + by_name, by_class + classes
    rules = by_name + by_class  # a name goes before a class of modules
    if not rules and not section.has("kv_cache_scheme"):
        raise section.invalid("config_groups", "at least one group with weights")
    source = source_of(section, f"compressed-tensors {section.text('format', default='').value}".strip())
    return Scheme(source, rules, kv=kv_cache_scheme(section), **ignored_modules(section, "ignore"))


def _group_rules(group: Config) -> tuple[list[Rule], list[Rule]]:
    """The rules of a group for modules by name, and for classes of modules."""
    format = _weights_format(group)
    targets = group.texts("targets") or ["Linear"]
    names = [target for target in targets if target not in ("Linear", "FusedMoE")]
    if any(re.fullmatch(r"[A-Z]\w*", name) for name in names):
        raise group.invalid("targets", "Linear, or names and patterns of modules")
    by_name = (
        [Rule(format, ALL_CLASSES, ModulePatterns(group, f"{group.path}targets", names))] if names else []
    )
    if "Linear" in targets:
        return by_name, [Rule(format, CLASSES)]
    return by_name, [Rule(format, ("experts",))] if "FusedMoE" in targets else []


def _weights_format(group: Config) -> Format:
    """The format of a group by bits, kind of number, and how many values share a scale."""
    weights = group.section("weights", "weights")
    strategy = weights.text("strategy", default="").value
    shared_scale = None
    if strategy not in ("channel", "tensor", "token", "block"):
        shared_scale = weights.data.get("group_size")
    match _number(weights):
        case 4, "int":
            name = int4(replace(weights, data={"group_size": shared_scale}), "group_size")
        case 8, "int":
            name = "int8"
        case 8, "float" if strategy == "block":
            if weights.integers("block_structure") != [128, 128]:
                raise weights.invalid("block_structure", "[128, 128]")
            name = "fp8-block"
        case 8, "float":
            name = "fp8-mx" if shared_scale == 32 else "fp8"
        case 4, "float" if shared_scale in (16, 32):
            name = "nvfp4" if shared_scale == 16 else "mxfp4"
        case 4, "float":
            raise weights.invalid("group_size", "16 (nvfp4) or 32 (mxfp4)")
        case _:
            raise weights.invalid("num_bits", "4 or 8")
    return Format(name, _activations(group, name))


def _activations(group: Config, weights: str) -> str:
    """The data type of a group's activations, "16" where they are not quantised."""
    if not group.has("input_activations"):
        return "16"
    inputs = group.section("input_activations", "activations")
    match _number(inputs):
        case 8, "float":
            return "fp8-mx" if inputs.data.get("group_size") == 32 else "fp8"
        case 8, "int":
            return "int8"
        case 4, "float":
            return weights if weights in ("nvfp4", "mxfp4") else "nvfp4"
        case 16, _:
            return "16"
        case _:
            raise inputs.invalid("num_bits", "4 (float) or 8")


def _number(arguments: Config) -> tuple[int, str]:
    """Bits and kind of a number."""
    bits = arguments.integer("num_bits", most=64).value
    return bits, arguments.text("type", default="int", among=("int", "float")).value
