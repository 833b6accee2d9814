"""Entries of the library in every version there has been: profiles and models alike."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from mantile.library.documents import Strict, load_ours
from mantile.library.errors import InputError, unknown


class Versioned(Strict):
    """What has versions: an id, as the file is called, and a version, which changes with any fact."""

    id: str
    version: str


Entry = TypeVar("Entry", bound=Versioned)


def _as_it_is(entry: Entry) -> Entry:
    return entry


@dataclass(frozen=True)
class Shelf(Generic[Entry]):
    """A folder of entries of one kind: ID.yaml as it is now, versions/ID@VERSION.yaml as it was.

    Args:
        name: of the folder, for errors: models, profiles/accelerators.
        place: where it lies.
        kind: what its files hold.
        older: an older version as it is read now.

    Example:
        Shelf("models", Path("models"), Model).load("llama-3.1-8b@1")
    """

    name: str
    place: Path
    kind: type[Entry]
    older: Callable[[Entry], Entry] = field(default=_as_it_is)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the entries in use."""
        names = os.listdir(self.place) if self.place.is_dir() else []
        return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))

    def files(self) -> tuple[Path, ...]:
        """The files of all entries, current and older."""
        return (*sorted(self.place.glob("*.yaml")), *sorted((self.place / "versions").glob("*.yaml")))

    def versions(self, identifier: str) -> list[str]:
        """The versions of an entry that can be loaded, the current one first.

        Raises:
            InputError: if there is no such entry, with the nearest ids.
        """
        stems = (path.stem.partition("@") for path in (self.place / "versions").glob("*.yaml"))
        older = sorted((version for name, _, version in stems if name == identifier), key=_age, reverse=True)
        if identifier in self.ids:
            return [self._current(identifier).version, *older]
        if not older:  # an entry that is no longer in use still has its versions
            raise unknown(self.name.rpartition("/")[2].removesuffix("s"), identifier, self.ids)
        return older

    def load(self, name: str) -> Entry:
        """An entry by id, or by id@version in any version there has been.

        Raises:
            InputError: if there is no such entry or version, or its file is wrong.
        """
        identifier, _, version = name.partition("@")
        if not version and identifier in self.ids:
            return self._current(identifier)
        available = self.versions(identifier)
        if version and version not in available:
            raise InputError(
                f"{self.name}/{identifier}: version {version!r} is unknown; expected one of "
                f"{', '.join(available)}"
            )
        if identifier in self.ids and version == available[0]:
            return self._current(identifier)
        file = self.place / "versions" / f"{identifier}@{version or available[0]}.yaml"
        return self.older(load_ours(self.kind, file))

    def _current(self, identifier: str) -> Entry:
        """The entry in use.

        Raises:
            InputError: if it is not called as its file, or states no version.
        """
        path = self.place / f"{identifier}.yaml"
        entry = load_ours(self.kind, path)
        if entry.id != identifier:
            raise InputError(
                f"{path}: field id: expected {identifier!r} as the file is called, found {entry.id!r}"
            )
        if not entry.version:
            raise InputError(f"{path}: field version: expected one, which is raised with every changed fact")
        return entry


def _age(version: str) -> tuple[int, str]:
    """The order of versions: numbers by their size, other texts as texts."""
    return (int(version), "") if version.isdigit() else (-1, version)


def digest(data: Any) -> str:
    """What a version is told from another by: 12 hexadecimal digits of its content, comments left out."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
