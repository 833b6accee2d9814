"""Numbers as people type and paste them: 1,024 and 0,65, full-width digits, blanks between digits."""

from __future__ import annotations

import re
from unicodedata import normalize

from mantile.library.errors import InputError, quoted

_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]*,(?:[0-9]{1,2}|[0-9]{4,})")
_TWO_WAYS = re.compile(r"[-+]?0,[0-9]{3}")
_BLANKS = re.compile(r"(?<=\d)[ \u202f\u00a0](?=\d{3}(?!\d))")


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
