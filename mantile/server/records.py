"""Measured runs that were sent: in a file of SQLite, or in memory until the server ends."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Any

from mantile.library.errors import InputError
from mantile.server.errors import Limited

_TABLE = "create table if not exists runs (id text primary key, stored text not null, record text not null)"
_PATIENCE = 10.0  # seconds until another process has written


class Records:
    """Measured runs, by id; several processes may share a file.

    Args:
        path: None keeps them in memory.
        most: that are kept.

    Raises:
        InputError: naming the file, if it is no database.
    """

    def __init__(self, path: Path | None, most: int) -> None:
        self.most, self._lock = most, Lock()
        try:
            self._base = sqlite3.connect(
                ":memory:" if path is None else path, timeout=_PATIENCE, check_same_thread=False
            )
            with self._base:
                self._base.execute(_TABLE)
        except sqlite3.Error as error:
            raise InputError(f"{path}: expected a file of SQLite, or a new name: {error}") from error

    def add(self, record: dict[str, Any]) -> bool:
        """Store a run; whether it was new. The same run again is stored once.

        Raises:
            InputError: if another run has its id.
            Limited: if there are too many.
        """
        text = json.dumps(record, sort_keys=True)
        with self._lock, self._base:
            self._base.execute("begin immediate")
            found = self._base.execute("select record from runs where id = ?", (record["id"],)).fetchone()
            if found is not None:
                if found[0] == text:
                    return False
                raise InputError(
                    f"field id: {record['id']!r:.60}: another run has this id; expected a new one"
                )
            if self._base.execute("select count(*) from runs").fetchone()[0] >= self.most:
                raise Limited(503, f"{self.most:,} runs are stored: no more are kept here")
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self._base.execute("insert into runs values (?, ?, ?)", (record["id"], now, text))
        return True

    def list(self, most: int, after: str = "") -> list[dict[str, Any]]:
        """Runs in the order of their ids.

        Args:
            most: of them.
            after: the id behind which they begin.
        """
        with (
            self._lock,
            closing(
                self._base.execute(
                    "select stored, record from runs where id > ? order by id limit ?", (after, most)
                )
            ) as rows,
        ):
            return [json.loads(record) | {"stored": stored} for stored, record in rows]

    def count(self) -> int:
        """How many there are."""
        with self._lock:
            return int(self._base.execute("select count(*) from runs").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._base.close()
