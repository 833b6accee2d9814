"""Checkpoints of torchao: one form for all linear layers but the LM head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.library.huggingface.config import Config
from mantile.library.huggingface.formats import (
    ALL_CLASSES,
    BODY_CLASSES,
    Format,
    Rule,
    Scheme,
    ignored_modules,
    source_of,
)

# A form by its name, of the function and of the class, to our data types of weights and activations.
_FORMS = {
    "int4weightonly": ("int4", "16"),
    "int8weightonly": ("int8", "16"),
    "int8dynamicactivationint8weight": ("int8", "int8"),
    "int8dynamicactivationint4weight": ("int4", "int8"),
    "float8weightonly": ("fp8", "16"),
    "float8dynamicactivationfloat8weight": ("fp8", "fp8"),
}
_INT4 = {32: "int4-g32-bias", 64: "int4-g64", 128: "int4-bias"}  # 16-bit scale and zero point per group


def read_torchao(section: Config) -> Scheme:
    """The scheme of a quantization_config of torchao."""
    name, arguments = _form(section)
    key = name.lower().replace("_", "").removesuffix("config")
    if key not in _FORMS:
        raise section.invalid("quant_type", f"one of {', '.join(_FORMS)}")
    weights, activations = _FORMS[key]
    if weights == "int4":
        size = arguments.get("group_size", 128)
        if not isinstance(size, int) or size not in _INT4:
            raise section.invalid("quant_type", "int4 in groups of 32, 64 or 128")
        weights = _INT4[size]
    ends = section.flag("include_input_output_embeddings", default=False).value
    rule = Rule(Format(weights, activations), ALL_CLASSES if ends else BODY_CLASSES)
    source = source_of(section, f"torchao {name}")
    return Scheme(source, [rule], **ignored_modules(section, "modules_to_not_convert"))


def _form(section: Config) -> tuple[str, Mapping[str, Any]]:
    """The name of the form and its arguments, however they are spelt."""
    stated = section.data.get("quant_type")
    if isinstance(stated, str):
        arguments = section.data.get("quant_type_kwargs")
        return stated, arguments if isinstance(arguments, dict) else {}
    inner = stated.get("default") if isinstance(stated, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("_type"), str):
        raise section.invalid("quant_type", "the name of a form, or {default: {_type: its class}}")
    data = inner.get("_data")
    return inner["_type"], data if isinstance(data, dict) else {}
