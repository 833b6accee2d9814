"""Numbers as people type them on a command line: 2048, 2,048, 1k, 2.5M, 70b."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from mantile.library.errors import InputError
from mantile.library.typed_numbers import number_of


def whole(least: float | None = None, most: float | None = None, auto: bool = False) -> Callable[[Any], Any]:
    """What reads a whole number of an option."""
    return _reader(True, least, most, auto)


def real(least: float | None = None, most: float | None = None) -> Callable[[Any], Any]:
    """What reads any number of an option."""
    return _reader(False, least, most, False)


def _reader(integer: bool, least: float | None, most: float | None, auto: bool) -> Callable[[Any], Any]:
    kind = "a whole number, such as 2048 or 2k" if integer else "a number, such as 0.5 or 2k"
    expected = f"expected {kind}{', or auto' if auto else ''}"

    def read(text: Any) -> Any:
        if not isinstance(text, str) or (auto and text == "auto"):
            return text
        try:
            value = number_of(text)
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
        if value is None or (integer and not isinstance(value, int)):
            raise typer.BadParameter(expected)
        if (least is not None and value < least) or (most is not None and value > most):
            raise typer.BadParameter(f"{expected}, {span(least, most)}")
        return value if integer else float(value)

    return read


def span(least: float | None, most: float | None) -> str:
    """A range in words; empty where there is none.

    >>> span(1, 1024)
    '1 to 1,024'
    """
    if least is None and most is None:
        return ""
    if most is None:
        return f"{least:,} or more"
    return f"at most {most:,}" if least is None else f"{least:,} to {most:,}"
