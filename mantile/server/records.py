"""Measured runs that were sent: records in a database as `mantile records` keeps them, or in memory until the
server ends."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Any

from mantile.library.documents import validate
from mantile.measured.recorded import record_of
from mantile.measured.runs import Run
from mantile.records.record import Record
from mantile.records.store import Stored, add, read, stored
from mantile.server.errors import Limited


class Records:
    """Measured runs, in the order in which they were sent; several processes may share a file.

    Args:
        path: a database of records, which is made where there is none; None keeps them in memory.
        most: that are kept.

    Raises:
        InputError: naming the file, if it is no database of records, or was changed.
    """

    def __init__(self, path: Path | None, most: int) -> None:
        self.most, self._path, self._lock = most, path, Lock()
        self._sent: dict[str, Stored] = {}
        if path is not None:
            add(path, [])
            read(path)

    def add(self, run: dict[str, Any]) -> tuple[str, bool]:
        """Store a run: the id of its record, and whether it was new. The same run again is stored once.

        Raises:
            InputError: if it names a place on a machine.
            Limited: if there are too many.
        """
        one = stored(_record(run))
        with self._lock:
            held = self._all()
            if one.id not in {other.id for other in held} and len(held) >= self.most:
                raise Limited(503, f"{self.most:,} runs are stored: no more are kept here")
            if self._path is not None:
                return one.id, add(self._path, [one]) > 0
            new = one.id not in self._sent
            self._sent.setdefault(one.id, one)
        return one.id, new

    def runs(self) -> list[dict[str, Any]]:
        """All runs; the id of each is that of its record."""
        return [{**one.record.run, "id": one.id} for one in self._all()]

    def others(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """All runs but this one."""
        own = _record(run).id
        return [one for one in self.runs() if one["id"] != own]

    def _all(self) -> list[Stored]:
        return [*self._sent.values()] if self._path is None else read(self._path)


def _record(run: dict[str, Any]) -> Record:
    """A run as a record; one without a day is of today."""
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    return record_of(validate(Run, {"date": today} | run, "run"))
