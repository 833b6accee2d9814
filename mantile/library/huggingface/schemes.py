"""Quantisation schemes as configs state them: which formats, for which modules, and of the KV cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from typing import Any

from mantile.library.errors import InputError
from mantile.library.huggingface.config import Config

METHODS = (
    "fp8",
    "modelopt",
    "mxfp4",
    "mxfp8",
    "compressed-tensors",
    "awq",
    "gptq",
    "bitsandbytes",
    "fbgemm_fp8",
)
_FIELDS = ("quantization_config", "compression_config")
BODY = ("experts", "ffn", "attention")  # classes of matrices; the first that is quantised makes the headline
CLASSES = (*BODY, "head")
_ROOTS = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.", "")
_INT4 = {32: "int4-g32", 64: "int4-g64", 128: "int4", -1: "int4", 0: "int4"}

# What a format is called here, and the activations that its scheme fixes: 16 for 16 bit, nothing where either is possible.
_MODELOPT: dict[str, tuple[str, str] | None] = {
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


class Patterns:
    """Modules named one by one, with wildcards, or by regular expressions; what stands inside a named module is meant too."""

    def __init__(self, config: Config, where: str, texts: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._expressions: list[re.Pattern[str]] = []
        wildcards = []
        for text in texts:
            if text.startswith("re:") or re.search(r"[\\^$(|]", text):
                self._expressions.append(_expression(config, where, text.removeprefix("re:")))
            elif "*" in text or "?" in text:
                wildcards.append(re.sub(r"\\[Zz]$", "", translate(text)) + r"(?:\..*)?\Z")
            else:
                name = text.strip(".").removesuffix(".weight")
                self._plain.add(name.removeprefix(next(root for root in _ROOTS if name.startswith(root))))
        if len(self._expressions) > 200 or len(wildcards) > 2000:
            raise InputError(
                f"{config.name}: field {where}: too many patterns: expected at most 200 expressions and 2000 wildcards"
            )
        if wildcards:
            self._expressions.append(re.compile("|".join(wildcards)))

    def hit(self, names: Iterable[str]) -> bool:
        """Whether a module that goes by one of these names is meant; names begin at `layers` or are `lm_head`."""
        return any(self._named(name) for name in names)

    def _named(self, name: str) -> bool:
        parts = name.split(".")
        if self._plain and any(
            ".".join(parts[start:end]) in self._plain
            for start in range(len(parts))
            for end in range(start + 1, len(parts) + 1)
        ):
            return True
        return any(expression.match(root + name) for expression in self._expressions for root in _ROOTS)


def _expression(config: Config, where: str, text: str) -> re.Pattern[str]:
    """A regular expression that cannot take forever: no repeated groups and few repetitions."""
    if len(text) > 500 or re.search(r"(?<!\\)\)[*+{]", text) or len(re.findall(r"(?<!\\)[*+{]", text)) > 6:
        raise InputError(
            f"{config.name}: field {where}: the pattern {text!r:.80} repeats too much to be matched safely"
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"{config.name}: field {where}: {text!r:.80} is no regular expression: {error}"
        ) from error


@dataclass(frozen=True)
class Format:
    """A data type of matrices, and that of the activations if the scheme fixes it."""

    weights: str
    activations: str = ""


@dataclass(frozen=True)
class Rule:
    """Matrices of these classes, or the named ones among them, are in a format; None is 16 bit."""

    format: Format | None
    classes: Sequence[str] = BODY
    named: Patterns | None = None


@dataclass(frozen=True)
class Scheme:
    """How a checkpoint is quantised.

    Args:
        source: the field that says so.
        rules: the first that holds counts; what none holds for is in 16 bit.
        ignored: what stays in 16 bit whatever the rules say, and the field that says so.
        kv: data type of the KV cache, if it is fixed.
    """

    source: str
    rules: Sequence[Rule]
    ignored: Patterns | None = None
    ignoring: str = ""
    kv: str = ""

    def format(self, kind: str, names: Sequence[str]) -> Format | None:
        """The format of a matrix by its class and names."""
        if self.ignored is not None and self.ignored.hit(names):
            return None
        for rule in self.rules:
            if kind in rule.classes and (rule.named is None or rule.named.hit(names)):
                return rule.format
        return None


def scheme_of(config: Config) -> Scheme | None:
    """What the config, the whole it is a part of, or the file beside it says of quantisation."""
    for part in (config, config.parent):
        for name in _FIELDS:
            if part is not None and part.data.get(name) not in (None, {}):
                section = part.section(name, part.model_type)
                return _read(section, config)
    if config.sidecar:
        beside = replace(config, data=config.sidecar, path="hf_quant_config.json: ", parent=None)
        if beside.data.get("quantization") not in (None, {}):
            return _modelopt(beside.section("quantization", config.model_type))
    return None


def _read(section: Config, config: Config) -> Scheme:
    """A quantization_config by its method, or by the fields of one that names none."""
    data = section.data
    if data.get("quant_method") is None:
        if isinstance(data.get("quantization"), dict):
            return _modelopt(section.section("quantization", section.model_type))
        if "quant_algo" in data:
            return _modelopt(section)
        if "config_groups" in data:
            return _compressed(section)
        if "load_in_4bit" in data or "load_in_8bit" in data:
            return _bitsandbytes(section)
    method = section.text("quant_method", default="").value.lower().replace("_", "-")
    readers = {
        "fp8": lambda section: _with_expert_type(config, section, _fp8(section)),
        "mxfp4": _mxfp4,
        "mxfp8": _mxfp8,
        "compressed-tensors": _compressed,
        "awq": _awq,
        "gptq": _gptq,
        "bitsandbytes": _bitsandbytes,
        "fbgemm-fp8": _fbgemm,
    }
    if method.startswith("modelopt"):
        return _modelopt(
            section.section("quantization", section.model_type)
            if isinstance(data.get("quantization"), dict)
            else section
        )
    if method not in readers:
        raise section.invalid("quant_method", f"one of {', '.join(METHODS)}")
    return readers[method](section)


def _with_expert_type(config: Config, section: Config, scheme: Scheme) -> Scheme:
    """Routed experts stored apart from the rest: expert_dtype of DeepSeek-V4, moe_quant_algo of its NVFP4 form."""
    if section.has("moe_quant_algo"):
        experts, said = _algorithm(section, "moe_quant_algo"), f"{section.path}moe_quant_algo"
    else:
        part = section if section.has("expert_dtype") else config
        stated = part.text("expert_dtype", default="", among=("fp4", "fp8", "bf16")).value
        if stated in ("", "fp8"):
            return scheme
        base = next((rule.format.activations for rule in scheme.rules if rule.format), "")
        experts, said = (Format("mxfp4", base) if stated == "fp4" else None), f"{part.path}expert_dtype"
    return replace(
        scheme,
        rules=[Rule(experts, ("experts",)), *scheme.rules],
        source=f"{scheme.source}; routed experts by {said}",
    )


def _source(section: Config, what: str) -> str:
    return f"{section.path.rstrip('.')}: {what}"


def _ignored(section: Config, *fields: str) -> dict[str, Any]:
    """What stays in 16 bit, by the first of the fields that is there."""
    name = next((name for name in fields if section.has(name)), None)
    if name is None:
        return {}
    where = f"{section.path}{name}"
    return {"ignored": Patterns(section, where, section.texts(name) or ()), "ignoring": where}


def _fp8(section: Config) -> Scheme:
    """Fine-grained fp8 in blocks of 128 x 128, or one scale per tensor."""
    blocks = section.integers("weight_block_size")
    if blocks not in (None, [128, 128]):
        raise section.invalid("weight_block_size", "[128, 128] or null")
    if section.text("fmt", default="e4m3").value not in ("e4m3", "float8_e4m3fn", "float8_e4m3"):
        raise section.invalid("fmt", "e4m3")
    found = Format("fp8-block" if blocks else "fp8", "fp8")
    what = "fp8, one scale per block of 128 x 128" if blocks else "fp8, one scale per tensor"
    return Scheme(
        _source(section, what), [Rule(found)], **_ignored(section, "modules_to_not_convert", "ignored_layers")
    )


def _mxfp8(section: Config) -> Scheme:
    return Scheme(
        _source(section, "mxfp8"),
        [Rule(Format("fp8-mx", "fp8-mx"))],
        **_ignored(section, "modules_to_not_convert"),
    )


def _fbgemm(section: Config) -> Scheme:
    return Scheme(
        _source(section, "fbgemm_fp8, one scale per row"),
        [Rule(Format("fp8", "fp8"))],
        **_ignored(section, "modules_to_not_convert"),
    )


def _mxfp4(section: Config) -> Scheme:
    """The form of gpt-oss: experts only."""
    return Scheme(
        _source(section, "mxfp4, experts only"),
        [Rule(Format("mxfp4"), ("experts",))],
        **_ignored(section, "modules_to_not_convert"),
    )


def _awq(section: Config) -> Scheme:
    if section.integer("bits", "w_bit", default=4).value != 4:
        raise section.invalid("bits" if "bits" in section.data else "w_bit", "4")
    return Scheme(
        _source(section, "awq, 4 bit"),
        [Rule(Format(_int4(section, "group_size", "q_group_size"), "16"))],
        **_ignored(section, "modules_to_not_convert"),
    )


def _gptq(section: Config) -> Scheme:
    """GPTQ; `dynamic` may leave modules out, and the LM head may be quantised."""
    bits = section.integer("bits").value
    if bits not in (4, 8):
        raise section.invalid("bits", "4 or 8")
    dynamic = section.data.get("dynamic") or {}
    if not isinstance(dynamic, dict) or not all(
        isinstance(key, str) and key.startswith("-:") for key in dynamic
    ):
        raise section.invalid("dynamic", "only modules to leave out, as -:pattern")
    found = Format("int8" if bits == 8 else _int4(section, "group_size"), "16")
    classes = CLASSES if section.flag("lm_head", default=False).value else BODY
    named = None
    inside = section.data.get("modules_in_block_to_quantize")
    if inside is not None:
        flat = (
            [name for group in inside for name in (group if isinstance(group, list) else [group])]
            if isinstance(inside, list)
            else [None]
        )
        if not all(isinstance(name, str) for name in flat):
            raise section.invalid("modules_in_block_to_quantize", "lists of texts")
        named = Patterns(section, f"{section.path}modules_in_block_to_quantize", [str(name) for name in flat])
    where = f"{section.path}dynamic"
    left: dict[str, Any] = {}
    if dynamic:
        left = {
            "ignored": Patterns(section, where, ["re:.*" + key[2:] for key in dynamic]),
            "ignoring": where,
        }
    return Scheme(_source(section, f"gptq, {bits} bit"), [Rule(found, classes, named)], **left)


def _int4(section: Config, *fields: str) -> str:
    """4 bit integers by the values that share a scale; -1 is a whole channel."""
    name = next((name for name in fields if section.has(name)), fields[0])
    size = section.data.get(name, 128)
    size = -1 if size is None else size
    if isinstance(size, bool) or not isinstance(size, int) or size not in _INT4:
        raise section.invalid(name, "32, 64, 128 or -1")
    return _INT4[size]


def _bitsandbytes(section: Config) -> Scheme:
    four = section.flag("load_in_4bit", "_load_in_4bit", default=False).value
    eight = section.flag("load_in_8bit", "_load_in_8bit", default=False).value
    if four == eight:
        raise section.invalid("load_in_4bit", "either this or load_in_8bit to be true")
    found, what = (
        (Format("nf4", "16"), "bitsandbytes, 4 bit")
        if four
        else (Format("int8", "int8"), "bitsandbytes, 8 bit")
    )
    return Scheme(_source(section, what), [Rule(found)], **_ignored(section, "llm_int8_skip_modules"))


def _algorithm(section: Config, name: str = "quant_algo") -> Format | None:
    """A format by ModelOpt's name for it."""
    stated = section.text(name, default="NO_QUANT").value.upper()
    if stated not in _MODELOPT:
        raise section.invalid(
            name, f"one of {', '.join(_MODELOPT)}" + (", MIXED_PRECISION" if name == "quant_algo" else "")
        )
    found = _MODELOPT[stated]
    if found is None:
        return None
    weights = _int4(section, "group_size") if found[0] == "int4" else found[0]
    return Format(weights, found[1])


def _modelopt(section: Config) -> Scheme:
    """NVIDIA ModelOpt: one algorithm for all, or one for each module that is listed."""
    left = _ignored(section, "ignore", "exclude_modules")
    cache = section.text("kv_cache_quant_algo", default="").value
    if cache.upper() not in ("", "FP8", "NONE"):
        raise section.invalid("kv_cache_quant_algo", "FP8 or null")
    kv = "fp8" if cache.upper() == "FP8" else _kv(section)
    if section.text("quant_algo", default="").value.upper() != "MIXED_PRECISION":
        found = _algorithm(section)
        what = f"ModelOpt {section.data['quant_algo']}" if found else "ModelOpt, no weights"
        return Scheme(_source(section, what), [Rule(found)] if found else [], kv=kv, **left)
    where = f"{section.path}quantized_layers"
    listed = section.data.get("quantized_layers")
    if (
        not isinstance(listed, dict)
        or not listed
        or not all(isinstance(value, dict) for value in listed.values())
    ):
        raise section.invalid("quantized_layers", "a mapping of modules to their algorithms")
    by_format: dict[Format | None, list[str]] = {}
    for name, value in listed.items():
        own = replace(section, data=value, path=f"{where}.{name}.")
        by_format.setdefault(_algorithm(own), []).append(name)
    rules = [Rule(found, CLASSES, Patterns(section, where, names)) for found, names in by_format.items()]
    return Scheme(_source(section, "ModelOpt MIXED_PRECISION"), rules, kv=kv, **left)


def _kv(section: Config) -> str:
    """The data type of the KV cache in the form of compressed-tensors."""
    stated = section.data.get("kv_cache_scheme")
    if stated is None:
        return ""
    if isinstance(stated, str) and stated.upper() == "FP8":
        return "fp8"
    scheme = section.section("kv_cache_scheme", "kv")
    if scheme.data.get("num_bits") != 8 or scheme.data.get("type") != "float":
        raise section.invalid("kv_cache_scheme", "num_bits 8 and type float")
    return "fp8"


def _compressed(section: Config) -> Scheme:
    """Compressed-tensors: groups of modules, each with its arguments for weights and activations."""
    groups = section.data.get("config_groups")
    if not isinstance(groups, dict) or (not groups and not section.has("kv_cache_scheme")):
        raise section.invalid("config_groups", "a mapping of groups")
    sparsity = section.data.get("sparsity_config")
    if isinstance(sparsity, dict) and sparsity.get("format") not in (None, "dense"):
        raise section.invalid("sparsity_config", "none, or format dense")
    rules: list[Rule] = []
    holder = section.section("config_groups", "groups")
    for name in groups:
        group = holder.section(name, "group")
        if not group.has("weights"):
            continue
        found = _arguments(group)
        targets = group.texts("targets") or ["Linear"]
        named = [target for target in targets if target not in ("Linear", "FusedMoE")]
        if any(re.fullmatch(r"[A-Z]\w*", target) for target in named):
            raise group.invalid("targets", "Linear, or names and patterns of modules")
        if "Linear" in targets:
            rules.append(Rule(found, CLASSES))
        elif "FusedMoE" in targets:
            rules.append(Rule(found, ("experts",)))
        if named:  # a name counts before a class of modules
            rules.insert(0, Rule(found, CLASSES, Patterns(group, f"{group.path}targets", named)))
    if not rules and not section.has("kv_cache_scheme"):
        raise section.invalid("config_groups", "a group with weights")
    what = f"compressed-tensors {section.text('format', default='').value}".strip()
    return Scheme(_source(section, what), rules, kv=_kv(section), **_ignored(section, "ignore"))


def _arguments(group: Config) -> Format:
    """Weights and activations of a group by bits, kind of number and values that share a scale."""
    weights = group.section("weights", "weights")
    bits, kind = (
        weights.integer("num_bits", most=64).value,
        weights.text("type", default="int", among=("int", "float")).value,
    )
    strategy = weights.text("strategy", default="").value
    size = None if strategy in ("channel", "tensor", "token", "block") else weights.data.get("group_size")
    match bits, kind:
        case 4, "int":
            found = _int4(replace(weights, data={"group_size": size}), "group_size")
        case 8, "int":
            found = "int8"
        case 8, "float" if strategy == "block":
            if weights.integers("block_structure") != [128, 128]:
                raise weights.invalid("block_structure", "[128, 128]")
            found = "fp8-block"
        case 8, "float":
            found = "fp8-mx" if size == 32 else "fp8"
        case 4, "float" if size in (16, 32):
            found = "nvfp4" if size == 16 else "mxfp4"
        case 4, "float":
            raise weights.invalid("group_size", "16 (nvfp4) or 32 (mxfp4)")
        case _:
            raise weights.invalid("num_bits", "4 or 8")
    return Format(found, _activations(group, found))


def _activations(group: Config, weights: str) -> str:
    if not group.has("input_activations"):
        return "16"
    inputs = group.section("input_activations", "activations")
    bits, kind = (
        inputs.integer("num_bits", most=64).value,
        inputs.text("type", default="int", among=("int", "float")).value,
    )
    match bits, kind:
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
