"""Rows of others' tables that remember which of their columns were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Row(dict[str, Any]):
    """A row, and the columns of its file that somebody has read.

    Args:
        cells: by name.
        columns: the column of the file behind a name, where that is another.
        read: columns of the file; rows that are made of one another have theirs in common.
    """

    def __init__(
        self,
        cells: Mapping[str, Any],
        columns: Mapping[str, str] | None = None,
        read: set[str] | None = None,
    ) -> None:
        super().__init__(cells)
        self.columns = dict(columns or {})
        self.read: set[str] = set() if read is None else read
        self.parts: list[Row] = []

    def __getitem__(self, name: str) -> Any:
        self.note(name)
        return super().__getitem__(name)

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A cell, as of any mapping."""
        self.note(name)
        return super().get(name, otherwise)

    def inside(self, name: str) -> Row:
        """The mapping that a cell holds, whose columns are those of the file behind a dot; empty if none."""
        cells = self.get(name) or {}
        part = Row(cells, {key: f"{name}.{key}" for key in cells}, self.read)
        self.parts.append(part)
        return part

    def note(self, *names: str) -> None:
        """Take columns as read."""
        self.read.update(self.columns.get(name, name) for name in names)


def unread(rows: Iterable[Row]) -> tuple[str, ...]:
    """Columns that hold something in some row and that nobody read of any."""
    parts = [part for row in rows for part in (row, *row.parts)]
    read = {column for part in parts for column in part.read}
    held = dict.fromkeys(
        part.columns.get(name, name)
        for part in parts
        for name, cell in part.items()
        if cell not in ("", None)
    )
    return tuple(column for column in held if column not in read)
