"""A launch line as people paste it, to the engine that it starts and the words behind the start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mantile.library.errors import InputError
from mantile.library.launch_table import LaunchTable, launch_tables

_CONTINUED = re.compile(r"\\[ \t]*(?:#[^\n]*)?\r?\n")  # documents put comments behind the backslash
_COMMENT = re.compile(r"^[ \t]*#[^\n]*$", re.MULTILINE)
_ASSIGNED = re.compile(r"^(?:--env=)?([A-Z_][A-Z0-9_]*)=(.*)$", re.DOTALL)
_ENDS = {"&", "&&", "||", "|", ";"}
_LONGEST = 100_000  # characters of a line
_REDIRECTED = re.compile(r"^(?:[12&]?>|<)")


@dataclass(frozen=True)
class Words:
    """The words of a launch line.

    Args:
        table: the flags of its engine.
        words: behind the start of the engine.
        environment: values of variables that are set before it, by name.
    """

    table: LaunchTable
    words: tuple[str, ...]
    environment: dict[str, str]


def split_line(line: str) -> Words:
    """The words of a launch line: continued lines, quotes, variables and commands before it, containers.

    Raises:
        InputError: if it starts no engine that has a table, or its quotes are not closed.
    """
    if len(line) > _LONGEST:
        raise InputError(f"launch line: {len(line):,} characters; expected at most {_LONGEST:,}")
    text = _COMMENT.sub("", _CONTINUED.sub(" ", line))
    try:
        words = [word.strip() for word in shlex.split(text)]
    except ValueError as error:
        raise InputError(f"launch line: {str(error).lower()}; expected quotes in pairs") from error
    found = _found([word for word in words if word])
    if found is None:
        starts = ", ".join(" ".join(start) for table in launch_tables().values() for start in table.starts)
        raise InputError(
            f"launch line: starts no engine that Mantile has a table of (found {line.strip()!r:.60}); "
            f"expected one of {starts}, or a container of one"
        )
    return found


def _found(words: Sequence[str]) -> Words | None:
    tables = launch_tables().values()
    starts = [(table, start) for table in tables for start in table.starts]
    starts.sort(key=lambda pair: -len(pair[1]))
    for place in range(len(words)):
        for table, start in starts:
            if _begins(words[place : place + len(start)], start):
                return _words(table, words, place, place + len(start))
    for place, word in enumerate(words):
        for table in tables:
            if any(image in word for image in table.images):
                return _words(table, words, place, place + 1)
    inner = (_within(word) for word in words if re.search(r"\s", word))
    return next((found for found in inner if found is not None), None)


def _within(word: str) -> Words | None:
    """The line that is one word of another: bash -c "vllm serve ..."."""
    try:
        return _found(shlex.split(word))
    except ValueError:
        return None


def _begins(words: Sequence[str], start: Sequence[str]) -> bool:
    if len(words) < len(start):
        return False
    first = words[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return (first, *words[1 : len(start)]) == tuple(start)


def _words(table: LaunchTable, words: Sequence[str], place: int, behind: int) -> Words:
    own: list[str] = []
    for word in words[behind:]:
        if word in _ENDS or _REDIRECTED.match(word):
            break
        own.append(word)
    assigned = [match for word in words[:place] if (match := _ASSIGNED.match(word))]
    return Words(table, tuple(own), {match[1]: match[2] for match in assigned})
