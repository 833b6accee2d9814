"""Checkpoints of MLX: one number of bits for all matrices, embedding and LM head among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import ALL_CLASSES, Format, Rule, Scheme, source_of
from mantile.library.huggingface.module_patterns import ModulePatterns

# Bits and values that share a scale, to our data types: affine, with a 16-bit scale and a 16-bit bias.
_AFFINE = {
    (3, 64): "int3-g64",
    (4, 64): "int4-g64",
    (4, 32): "int4-g32-bias",
    (4, 128): "int4-bias",
    (5, 64): "int5-g64",
    (6, 64): "int6-g64",
    (8, 64): "int8-g64",
    (8, 32): "int8-g32-bias",
}
_MODES = {"mxfp4": "mxfp4", "nvfp4": "nvfp4", "mxfp8": "fp8-mx"}
_OWN = ("bits", "group_size", "mode", "quant_method")


def read_mlx(section: Config) -> Scheme:
    """The scheme of a `quantization` block; modules that it names have bits of their own, or are left out."""
    rules: list[Rule] = []
    for name in section.data:
        if name in _OWN:
            continue
        format, module = _own_format(section, name), name.replace(".switch_mlp.", ".experts.")
        rules.append(Rule(format, ALL_CLASSES, ModulePatterns(section, f"{section.path}{name}", [module])))
    bits = section.integer("bits").value
    rules.append(Rule(_format(section), ALL_CLASSES))
    return Scheme(source_of(section, f"MLX, {bits} bit"), rules, file="MLX")


def _own_format(section: Config, name: str) -> Format | None:
    """The format of a module that is named; None is 16 bit."""
    stated: Any = section.data[name]
    if isinstance(stated, bool):
        return _format(section) if stated else None
    own = section.section(name, "module")
    common = {key: section.data[key] for key in ("bits", "group_size", "mode") if key in section.data}
    return _format(replace(own, data={**common, **own.data}))


def _format(section: Config) -> Format:
    mode = section.text("mode", default="affine", among=("affine", *_MODES)).value
    if mode != "affine":
        return Format(_MODES[mode], "16")
    bits, size = section.integer("bits").value, section.integer("group_size", default=64).value
    if (bits, size) not in _AFFINE:
        known = ", ".join(f"{bits} bit in groups of {size}" for bits, size in _AFFINE)
        raise section.invalid("bits", known)
    return Format(_AFFINE[bits, size], "16")
