"""The day on which something is made."""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta, timezone

from mantile.library.errors import InputError

_DAY_OF = "SOURCE_DATE_EPOCH"
_BEFORE_ALL = date(1899, 12, 30)  # day 0 of a spreadsheet


def serial(day: date) -> int:
    """A day as spreadsheets count it: 46349 is 2026-11-23."""
    return (day - _BEFORE_ALL).days


def day_of(number: float) -> date:
    """The day of a number that a spreadsheet shows as a date."""
    return _BEFORE_ALL + timedelta(days=int(number))


def today() -> str:
    """The day in UTC as 2026-11-23.

    It is that of the environment variable SOURCE_DATE_EPOCH, in seconds since 1970, where that is set, so
    that the same file can be made again on another day.

    Raises:
        InputError: if the variable holds anything else than a whole number of seconds.
    """
    seconds = os.environ.get(_DAY_OF)
    if seconds is None:
        return datetime.now(timezone.utc).date().isoformat()
    try:
        return datetime.fromtimestamp(int(seconds), timezone.utc).date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{_DAY_OF}: {seconds!r:.40}; expected whole seconds since 1970") from error
