"""Plain objects as YAML, with comments behind values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PLAIN = re.compile(r"(?:-{1,2}[A-Za-z]|[A-Za-z/])[\w./@+-]*(?::[\w./@+-]+)*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


@dataclass(frozen=True)
class Noted:
    """A value with a comment behind it."""

    value: Any
    note: str


def yaml_text(data: Any) -> str:
    """A document.

    Example:
        >>> yaml_text({"replicas": Noted(2, "dp"), "image": "a/b:c"})
        'replicas: 2  # dp\\nimage: a/b:c\\n'
    """
    return "".join(f"{line}\n" for line in _lines(data))


def _lines(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _entry(f"{_scalar(str(name))}:", value, "  ")
    else:
        for value in data:
            inner, note = _unpacked(value)
            if isinstance(inner, Mapping) and inner:
                first, *rest = _lines(inner)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
            else:
                yield from _entry("-", Noted(inner, note), "  ")


def _entry(name: str, value: Any, indent: str) -> Iterator[str]:
    value, note = _unpacked(value)
    behind = f"  # {note}" if note else ""
    if isinstance(value, Mapping | list | tuple) and value:
        yield f"{name}{behind}"
        yield from (f"{indent}{line}" for line in _lines(value))
    elif isinstance(value, str) and "\n" in value:
        yield f"{name} |{behind}"
        yield from (f"{indent}{line}" for line in value.splitlines())
    else:
        yield f"{name} {_scalar(value)}{behind}"


def _unpacked(value: Any) -> tuple[Any, str]:
    return (value.value, value.note) if isinstance(value, Noted) else (value, "")


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
