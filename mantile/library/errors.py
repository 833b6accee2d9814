"""The one error of wrong input. The command line turns it into a message and exit status 2."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Somebody handed us something wrong; the message names file and field and says what was expected."""


def unknown(kind: str, given: str, known: Iterable[str]) -> InputError:
    """An error for a name we do not have, with the nearest names."""
    names = sorted(known)
    near = get_close_matches(given.lower(), names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {given!r}; {hint}")
