"""How output looks: as tables for people, Markdown, or CSV; as wide as the terminal, coloured only on one."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

NOT_KNOWN = "not known"
PIPE_WIDTH = 200  # columns where there is no terminal to ask
_LEAST = 40


@dataclass(frozen=True)
class Look:
    """What was asked for.

    Args:
        form: table, markdown, csv or json.
        quiet: whether notes and progress are left out.
        told: notes that were told.
    """

    form: str = "table"
    quiet: bool = False
    told: set[str] = field(default_factory=set)


_now = Look()


def now() -> Look:
    """What the command that runs was asked for."""
    return _now


@contextmanager
def as_asked(form: str, quiet: bool) -> Iterator[None]:
    """Within, output looks so."""
    global _now
    before, _now = _now, Look(form, quiet)
    try:
        yield
    finally:
        _now = before


def width() -> int:
    """Columns of the terminal, also where output goes through a pipe to it; many where there is none."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdigit() and int(stated) > 0:
        return max(_LEAST, int(stated))
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        try:
            if stream.isatty():
                return max(_LEAST, os.get_terminal_size(stream.fileno()).columns or 80)
        except (OSError, ValueError, AttributeError):
            continue
    return PIPE_WIDTH


def text_width() -> int:
    """Columns of running text: no wider than is read with ease."""
    return min(width(), max(80, min(shutil.get_terminal_size((100, 24)).columns, 120)))


def note(text: str) -> None:
    """A note on stderr beside the answer, once, unless none is wanted."""
    if not _now.quiet and text not in _now.told:
        _now.told.add(text)
        say(text)


def say(text: str) -> None:
    """A line on stderr; on a terminal it goes on between words, in a file it is one line."""
    line = f"mantile: {text}"
    if sys.stderr.isatty():
        line = textwrap.fill(
            line, width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    print(line, file=sys.stderr)
