"""Tables of measured runs as text, in bounded time and space."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from mantile.library.clock import Clock
from mantile.library.documents import read_text
from mantile.library.errors import InputError

MAX_COLUMNS = 1_000
MAX_CELLS = 2_000_000  # missing ones too: a row of one comma has as many as there are headings


def table_rows(path: Path, clock: Clock) -> Iterator[dict[str, str]]:
    """The rows of a .csv file by heading; cells without a heading are left out, missing ones are empty.

    Args:
        clock: of the file; it is looked at before each row.

    Raises:
        InputError: naming the file, for what is no table, for too much of it, and once the time is over.

    Example:
        with Clock("runs.csv") as clock:
            rows = list(table_rows(Path("runs.csv"), clock))
    """
    yield from rows_of_text(str(path), read_text(path), clock)


def rows_of_text(path: str, text: str, clock: Clock) -> Iterator[dict[str, str]]:
    """The same of the text of a file, whose name is `path`."""
    reader = csv.DictReader(StringIO(text), restval="", strict=True)
    try:
        columns = len(reader.fieldnames or ())
        if columns > MAX_COLUMNS:
            raise InputError(f"{path}: {columns:,} columns; expected at most {MAX_COLUMNS:,}")
        for number, row in enumerate(reader, 1):
            clock.check()
            if number * columns > MAX_CELLS:
                raise InputError(f"{path}: more than {MAX_CELLS:,} cells; expected fewer: split the file")
            row.pop(None, None)  # cells beyond the last heading
            yield row
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not a table: {error}") from error
