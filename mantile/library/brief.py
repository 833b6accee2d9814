"""Results with many parts in one line, for who looks at them in a notebook."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

_MOST = 100  # characters of a part


class Brief:
    """A dataclass, made with repr=False, that prints what it holds: lists and tables by their length."""

    def __repr__(self) -> str:
        parts = (f"{part.name}={short(getattr(self, part.name))}" for part in fields(self) if part.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"


class Counted:
    """Stands for a list where it is printed."""

    def __init__(self, items: Any) -> None:
        self.count = len(items)

    def __repr__(self) -> str:
        return f"<{self.count:,}>"


def short(value: Any) -> str:
    """A value in a few words.

    >>> short([1, 2, 3]), short("fits")
    ('<3>', "'fits'")
    """
    counted = hasattr(value, "__len__") and not isinstance(value, str)
    text = repr(Counted(value) if counted else value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
