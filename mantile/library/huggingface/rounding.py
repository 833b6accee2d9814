"""Checkpoints of AutoRound: the matrices of the blocks, and modules with bits of their own."""

from __future__ import annotations

from dataclasses import replace

from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import ALL_CLASSES, Format, Rule, Scheme, int4, source_of
from mantile.library.huggingface.module_patterns import ModulePatterns

_COMMON = ("bits", "group_size", "sym", "data_type", "act_bits", "act_data_type")


def read_auto_round(section: Config) -> Scheme:
    """The scheme of a quantization_config of AutoRound; extra_config names modules with bits of their own."""
    rules: list[Rule] = []
    if section.has("extra_config"):
        extra = section.section("extra_config", "modules")
        common = {name: section.data[name] for name in _COMMON if name in section.data}
        for name in extra.data:
            own = extra.section(name, "module")
            format = _format(replace(own, data={**common, **own.data}))
            rules.append(Rule(format, ALL_CLASSES, ModulePatterns(section, own.path.rstrip("."), [name])))
    bits = section.integer("bits").value
    return Scheme(source_of(section, f"auto-round, {bits} bit"), [*rules, Rule(_format(section))])


def _format(section: Config) -> Format | None:
    """A format by bits and kind of number; None is 16 bit."""
    bits = section.integer("bits").value
    kind = section.text("data_type", default="int").value
    narrow = section.optional("act_bits", why="activations in 16 bit", value=16).value
    activations = "16" if narrow >= 16 else ""
    match bits, kind:
        case ((16 | 32), _):
            return None
        case 8, "int":
            return Format("int8", activations or "int8")
        case 4, "int":
            return Format(int4(section, "group_size", zero_points=True), activations or "int8")
        case 8, ("fp" | "fp8" | "fp8_sym"):
            return Format("fp8", activations or "fp8")
        case 8, ("mx_fp" | "mx_fp8"):
            return Format("fp8-mx", activations or "fp8-mx")
        case 4, ("mx_fp" | "mx_fp4"):
            return Format("mxfp4", activations or "mxfp4")
        case 4, ("nv_fp" | "nv_fp4"):
            return Format("nvfp4", activations or "nvfp4")
        case _:
            raise section.invalid("bits", "4 or 8 of data_type int, mx_fp, nv_fp or fp")
