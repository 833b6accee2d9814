"""Measured runs as records, and records as measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError
from mantile.measured.runs import Run, parse_run
from mantile.records.record import Record
from mantile.records.store import Stored, read


def record_of(run: Run, when: datetime | None = None, **beside: Any) -> Record:
    """A run as a record. Its id is left out: that of the record stands for it.

    Args:
        run: as it was measured.
        when: it ended; the day of the run at 0:00 UTC if None.
        beside: further fields of the record.

    Raises:
        InputError: for a run without a day, or one that names a place on a machine.
    """
    fields = run.model_dump(mode="json", exclude_defaults=True, exclude={"id", "status"})
    return Record(timestamp_utc=_utc(run, when), run=fields, **beside)


def _utc(run: Run, when: datetime | None) -> str:
    if when is not None:
        return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        day = datetime.strptime(run.date or "", "%Y-%m-%d")
    except ValueError as error:
        raise InputError(f"{run.id}: field date: expected the day of the run, YYYY-MM-DD") from error
    return day.strftime("%Y-%m-%dT%H:%M:%SZ")


def run_of(stored: Stored, name: str) -> Run:
    """The run of a record; its id is the first 12 digits of that of the record.

    Raises:
        InputError: naming the record, if it holds no run.
    """
    record, short = stored.record, stored.id[:12]
    when: Mapping[str, Any] = {"date": record.timestamp_utc[:10]}
    return parse_run({**when, **record.run, "id": short}, f"{name}: record {short}")


def recorded_runs(path: Path, trusted: Mapping[bytes, str] | None = None) -> list[Run]:
    """The runs of a database of records, in the order in which they were added.

    Args:
        path: of the database.
        trusted: keys, by one of which each record must be signed.

    Raises:
        InputError: naming the file, and the record that is not as it was written, or not signed so.
    """
    return [run_of(one, str(path)) for one in read(path, trusted)]
