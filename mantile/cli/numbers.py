"""Numbers as people type them on a command line: 2048, 2,048, 1k, 2.5M, 70b."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from mantile.library.errors import InputError
from mantile.library.typed_numbers import plain_number

_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30}
_NUMBER = re.compile(
    r"([-+]?(?:\d[\d,_]*\.?\d*|[.,]\d+)(?:[eE][-+]?\d+)?)\s*([kmgbt]?|[kmg]i)", re.IGNORECASE
)


def number_of(text: str) -> float | int | None:
    """The number that a text stands for; a whole one as int. None for what is no number.

    k, M, G or b, and T stand for thousands, Ki, Mi and Gi for powers of 1,024.

    >>> number_of("2.5M"), number_of("1Ki"), number_of("0,5"), number_of("1,024"), number_of("many")
    (2500000, 1024, 0.5, 1024, None)

    Raises:
        InputError: for a text that can be read in two ways: 0,650.
    """
    found = _NUMBER.fullmatch(plain_number(text))
    digits = "," if found is None else plain_number(found[1])
    if found is None or "," in digits:
        return None
    digits, scale = digits.replace("_", ""), found[2].lower()
    factor = {**_SCALES, **_BINARY}[scale]
    value = float(digits) * factor
    whole = ("." not in digits and "e" not in digits.lower()) or (scale and value.is_integer())
    return int(value) if whole else value


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
