"""The one error of wrong input. The command line turns it into a message and exit status 2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

HIDDEN = re.compile(
    "[\\x7f-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164"
    "\\ufdd0-\\ufdef\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff\\ud800-\\udfff\\U000110bd\\U000110cd\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
    + "".join(f"\\U{plane:04x}fffe\\U{plane:04x}ffff" for plane in range(1, 17))
    + "]"
)
"""Characters that no reader sees, that turn a text around or start a new line, that terminals obey, or that
no file of XML can hold."""
_SHOWN_ESCAPED = re.compile(f"[\\x00-\\x08\\x0b-\\x1f]|{HIDDEN.pattern}")


class InputError(ValueError):
    """Somebody handed us something wrong; the message names file and field and says what was expected.

    Example:
        try:
            scenario.replace(tp=-4)
        except mantile.InputError as error:
            print(error)    # scenario: field tp: expected at least 1 (found -4)
    """

    def __init__(self, message: object = "") -> None:
        """Hidden characters are escaped: a message repeats what others wrote, and a terminal obeys it."""
        super().__init__(_SHOWN_ESCAPED.sub(lambda found: ascii(found[0])[1:-1], str(message)))


MOST_QUOTED = 60  # characters of a value in a message
MOST_NAMES = 20  # that a message lists


def quoted(value: object) -> str:
    """A value as messages quote it: escaped, and at most 60 characters of it.

    >>> quoted("h100\u202e")
    "'h100\\u202e'"
    """
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return f"{text:.{MOST_QUOTED}}"


def unknown(kind: str, given: str, choices: Iterable[str]) -> InputError:
    """An error for a name we do not have, with the nearest names."""
    return InputError(f"unknown {kind} {quoted(given)}; {near(given, choices)}")


@contextmanager
def naming(place: str, *starts: str) -> Iterator[None]:
    """Name the file, and the field, in an error that begins like one which does not: that of a name we do
    not have."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith(starts) or place.startswith("command line"):
            raise  # who typed the name knows where
        raise InputError(f"{place}: {error}") from error


def near(given: str, choices: Iterable[str]) -> str:
    """The names that come near to one we do not have; where none does all of them, or the first of many."""
    names = sorted(set(choices))
    close = get_close_matches(given.lower()[:200], names, n=3, cutoff=0.4)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"known: {', '.join(names[:MOST_NAMES])}{more}"
