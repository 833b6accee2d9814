"""What a quantisation scheme says: formats of matrices, for which modules, and of the KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mantile.library.errors import InputError
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.module_patterns import ModulePatterns

BODY_CLASSES = ("experts", "ffn", "attention")
"""Classes of matrices in layers; the first of them that is quantised states the data type of the weights."""
CLASSES = (*BODY_CLASSES, "head")
"""Classes of what multiplies."""
ALL_CLASSES = (*CLASSES, "embedding")
"""Classes that a rule may name one by one."""
_KV_TYPES: dict[tuple[Any, Any], str] = {(8, "float"): "fp8", (8, "int"): "int8", (4, "int"): "int4-kv"}
"""Our data type of a KV cache by bits and type of compressed-tensors."""
_MOST_TRIED = 2_000_000  # rules compared with matrices, of one file: some seconds
_INT4 = {32: "int4-g32", 64: "int4-g64", 128: "int4", -1: "int4", 0: "int4"}


@dataclass(frozen=True)
class Format:
    """A data type of matrices, and that of the activations: "16" for 16 bit, empty where it is left open."""

    weights: str
    activations: str = ""


@dataclass(frozen=True)
class Rule:
    """Matrices of these classes, or the named ones among them, are in a format; None is 16 bit."""

    format: Format | None
    classes: Sequence[str] = BODY_CLASSES
    named: ModulePatterns | None = None


@dataclass(frozen=True)
class Scheme:
    """How a checkpoint is quantised.

    Args:
        source: the field that says so.
        rules: the first that holds for a matrix decides; a matrix that none holds for is in 16 bit.
        ignored: modules that stay in 16 bit whatever the rules say; `ignored_source` is the field that names
            them.
        kv: data type of the KV cache, if the scheme fixes it.
        file: kind of file that frameworks with files of their own take as it is; empty of others.
        tried: how many rules were compared with a matrix so far.
    """

    source: str
    rules: Sequence[Rule]
    ignored: ModulePatterns | None = None
    ignored_source: str = ""
    kv: str = ""
    file: str = ""
    tried: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def format(self, kind: str, names: Sequence[str]) -> Format | None:
        """The format of a matrix by its class and by the names it may have; None is 16 bit."""
        if self.ignored is not None and self.ignored.match(names):
            return None
        self.tried[0] += len(self.rules)
        if self.tried[0] > _MOST_TRIED:
            raise InputError(
                f"{self.source:.60}: {len(self.rules):,} rules are too many for so many layers: expected at "
                f"most {_MOST_TRIED:,} comparisons"
            )
        for rule in self.rules:
            if kind in rule.classes and (rule.named is None or rule.named.match(names)):
                return rule.format
        return None


def source_of(section: Config, scheme: str) -> str:
    """The field that a scheme stands in, and what it says."""
    return f"{section.path.rstrip('.')}: {scheme}"


def ignored_modules(section: Config, *fields: str) -> dict[str, Any]:
    """What stays in 16 bit as arguments of `Scheme`, by the first of the fields that is there."""
    name = next((name for name in fields if section.has(name)), None)
    if name is None:
        return {}
    field = f"{section.path}{name}"
    return {"ignored": ModulePatterns(section, field, section.texts(name) or ()), "ignored_source": field}


def int4(section: Config, *fields: str, zero_points: bool = False) -> str:
    """The 4 bit integer type by how many values share a scale; -1 is a whole channel.

    Args:
        zero_points: whether every group has a zero point beside its scale.
    """
    name = next((name for name in fields if section.has(name)), fields[0])
    size = section.data.get(name, 128)
    size = -1 if size is None else size
    if isinstance(size, bool) or not isinstance(size, int) or size not in _INT4:
        raise section.invalid(name, "32, 64, 128 or -1")
    return f"awq-g{size}" if zero_points and size in (32, 64) else _INT4[size]


def kv_cache_scheme(section: Config) -> str:
    """The data type of the KV cache by kv_cache_scheme; empty where it is left open."""
    stated = section.data.get("kv_cache_scheme")
    if stated is None:
        return ""
    if isinstance(stated, str) and stated.upper() == "FP8":
        return "fp8"
    scheme = section.section("kv_cache_scheme", "kv")
    stated = (scheme.data.get("num_bits"), scheme.data.get("type"))
    kind = next((kind for key, kind in _KV_TYPES.items() if key == stated), None)
    if kind is None:
        raise section.invalid(
            "kv_cache_scheme", "num_bits 8 and type float or int, or num_bits 4 and type int"
        )
    return kind
