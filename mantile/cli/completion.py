"""What a shell completes: ids of the library and choices, by what help calls the value.

Ids are read from names of files and by a pattern, as a shell waits for them: the library itself takes longer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from copy import copy
from typing import Annotated, Any, get_args

import typer

from mantile.library.places import data_folder

_FORMAT = re.compile(r"^  - \{id: ([^,]+),", re.MULTILINE)
_FOLDERS = {
    "<chip>": ("profiles/accelerators",),
    "<system>": ("profiles/systems",),
    "<framework>": ("profiles/frameworks",),
    "MODEL": ("models",),
    "MODEL_OR_SCENARIO": ("models",),
    "[MODEL_OR_SCENARIO]": ("models",),
    "ACCELERATOR[:COUNT]": ("profiles/accelerators",),
}
_OF_COMMANDS = {  # values that the same word of help stands for, by command
    "models": ("models",),
    "hardware": ("profiles/accelerators", "profiles/systems"),
    "profiles": ("profiles/efficiency",),
}
_OF_GROUP = ("ID", "A", "B")


def ids(metavar: str) -> tuple[str, ...]:
    """The words that a value may be: ids, or choices.

    Args:
        metavar: how help calls it.

    >>> ids("<table|csv>")
    ('table', 'csv')
    """
    if metavar == "<format>":
        return _formats()
    if metavar in _FOLDERS:
        return _in_folders(_FOLDERS[metavar])
    choices = metavar.removeprefix("<").removesuffix(">").split("|")
    return tuple(choice for choice in choices if len(choice) > 1) if len(choices) > 1 else ()


def _in_folders(folders: Iterable[str]) -> tuple[str, ...]:
    places = (data_folder(top) / rest for top, _, rest in (folder.partition("/") for folder in folders))
    return tuple(sorted(path.stem for place in places for path in place.glob("*.yaml")))


def _formats() -> tuple[str, ...]:
    return tuple(_FORMAT.findall((data_folder("profiles") / "datatypes.yaml").read_text(encoding="utf-8")))


def completes_no_flag() -> bool:
    """Whether a shell asks for what goes on, and no flag was typed: those of fields are slow to make."""
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    return "_MANTILE_COMPLETE" in os.environ and typed is not None and " -" not in typed


def beginning(words: Iterable[str], incomplete: str) -> list[str]:
    """Words that go on where somebody stopped; behind a comma those of a further one."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last.lower())]


def _words_of(ctx: typer.Context, metavar: str) -> tuple[str, ...]:
    """The words of a value; ID stands for what the group of commands is about."""
    if metavar not in _OF_GROUP:
        return ids(metavar)
    return _in_folders(_OF_COMMANDS.get(ctx.parent.info_name or "", ()) if ctx.parent else ())


def completed(parameter: Any) -> Any:
    """A parameter of a command, with what a shell completes of it."""
    parts = get_args(parameter.annotation)
    info = next((part for part in parts[1:] if hasattr(part, "autocompletion")), None)
    metavar = getattr(info, "metavar", None) or ""
    known = metavar in ("<format>", *_OF_GROUP, *_FOLDERS) or ("|" in metavar and metavar.islower())
    if info is None or info.autocompletion is not None or not known:
        return parameter

    def words(ctx: typer.Context, incomplete: str) -> list[str]:
        return beginning(_words_of(ctx, metavar), incomplete)

    info = copy(info)
    info.autocompletion = words
    return parameter.replace(annotation=Annotated[parts[0], info])
