"""Who writes an estimate to a file. Estimates know nothing of workbooks: the package registers who does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError

Writer = Callable[[Any, Path], Path]
"""Writes an estimate to a file and returns its path."""

_LOADERS: dict[str, Callable[[], Writer]] = {}


def register(suffix: str, load: Callable[[], Writer]) -> None:
    """Say who writes files of a suffix.

    Args:
        load: called when the first such file is written, so that registering imports nothing.
    """
    _LOADERS[suffix] = load


def writer(path: Path) -> Writer:
    """Who writes a file.

    Raises:
        InputError: if nobody writes files that end so.
    """
    if path.suffix not in _LOADERS:
        raise InputError(f"{path}: expected a file name that ends in {' or '.join(_LOADERS)}")
    return _LOADERS[path.suffix]()
