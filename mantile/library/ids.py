"""Ids as people spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mantile.library.errors import InputError, unknown


def find_id(kind: str, given: str, ids: Iterable[str]) -> str:
    """The id that a spelling stands for.

    Case does not matter, and `_`, `.` and `-` are the same. The beginning of an id is enough where only one
    id begins so; it must not end inside a version number: olmo-3 does not stand for olmo-3.1-32b.

    >>> find_id("model", "Llama_3.3_70B", ["llama-3.1-70b", "llama-3.3-70b"])
    'llama-3.3-70b'

    Args:
        kind: what it is an id of, for errors.

    Raises:
        InputError: if there is no such id, or several could be meant, with those.
    """
    candidates = list(ids)
    if given in candidates:
        return given
    spelling = _spelling(given)
    alike = [name for name in candidates if _spelling(name) == spelling]
    meant = alike or [name for name in candidates if spelling and _goes_on(name, spelling)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InputError(f"{kind} {given!r} is not clear: expected one of {', '.join(sorted(meant))}")
    raise unknown(kind, given, candidates)


def _goes_on(name: str, spelling: str) -> bool:
    """Whether an id begins with a spelling and goes on with a part of its own."""
    return _spelling(name).startswith(f"{spelling}-") and name[len(spelling)] != "."


def _spelling(name: str) -> str:
    """A name without regard to case and to what joins its parts."""
    return re.sub(r"[_.\s-]+", "-", name.lower()).strip("-")
