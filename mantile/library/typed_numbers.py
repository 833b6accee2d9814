"""Numbers and switches as people type and paste them: 1,024 and 0,65, 1k and 2.5M, blanks, yes and no."""

from __future__ import annotations

import re
from unicodedata import normalize

from mantile.library.errors import InputError, quoted

_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]*,(?:[0-9]{1,2}|[0-9]{4,})")
_TWO_WAYS = re.compile(r"[-+]?0,[0-9]{3}")
_BLANKS = re.compile(r"(?<=\d)[ \u202f\u00a0](?=\d{3}(?!\d))")


_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30}
_NUMBER = re.compile(
    r"([-+]?(?:\d[\d,_]*\.?\d*|[.,]\d+)(?:[eE][-+]?\d+)?)\s*([kmgbt]?|[kmg]i)", re.IGNORECASE
)


def plain_number(text: str) -> str:
    """A number as Python reads it; a text that is none as it is.

    >>> plain_number("1,024"), plain_number("0,65"), plain_number("12 000"), plain_number("many")
    ('1024', '0.65', '12000', 'many')

    Raises:
        InputError: for one that can be read in two ways: 0,650.
    """
    plain = _BLANKS.sub("", normalize("NFKC", text).strip().replace("\u2212", "-"))
    if _TWO_WAYS.fullmatch(plain):
        ways = f"{float(plain.replace(',', '')):g} or {float(plain.replace(',', '.')):g}"
        raise InputError(f"{quoted(text)} could be {ways}; expected a number without a comma")
    if _GROUPED.fullmatch(plain):
        return plain.replace(",", "")
    return plain.replace(",", ".") if _DECIMAL_COMMA.fullmatch(plain) else plain


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


def typed(value: object) -> object:
    """What stands for a number in a document: a text that is one, as people type it; all else as it is."""
    if not isinstance(value, str):
        return value
    number = number_of(value)
    return value if number is None else number


SWITCHES = {"true": "on", "yes": "on", "on": "on", "false": "off", "no": "off", "off": "off"}
"""What people write for on and off, to what a field holds."""


def switched(value: object) -> object:
    """On or off, also of a truth value or a word for one; anything else as it is.

    >>> switched(True), switched("No"), switched("auto")
    ('on', 'off', 'auto')
    """
    return SWITCHES.get(str(value).lower(), value) if isinstance(value, bool | str) else value
