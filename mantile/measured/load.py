"""Files of measured runs: .csv, .json or .yaml, in our own form or in one that others publish; and databases
of records, .db."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mantile.library.clock import Clock
from mantile.library.documents import parse_json, parse_yaml, read_text
from mantile.library.errors import InputError
from mantile.measured.dialects import names_model, reader_of
from mantile.measured.metric_columns import why_unread
from mantile.measured.recorded import recorded_runs
from mantile.measured.rows import Row, unread
from mantile.measured.runs import Environment, Measurements, RejectedRun, Run
from mantile.measured.tables import table_rows
from mantile.records.store import is_database

TEXT_COLUMNS = {
    *Environment.model_fields,
    "id",
    "row_id",
    "name",
    "source",
    "source_ref",
    "date",
    "measured_on",
    "notes",
    "version",
}  # never read as numbers: version 0.10 is not 0.1


def load_measurements(
    path: str | Path, trusted: Mapping[bytes, str] | None = None, model: str | None = None
) -> Measurements:
    """Read measured runs from a file.

    A record that is wrong is set aside with its reason. A file without one valid record is an error.

    Args:
        path: a .csv, .json or .yaml file: runs in our own form, a table of serving runs, InferenceMAX's
            agg_bmk.json or a table of llama-bench; `mantile.measured.dialects` lists their columns. Or a
            database of records, .db: one that was changed is refused as a whole.
        trusted: keys, by one of which each record of a database must be signed.
        model: of a table that names none.

    Returns:
        The runs in the order of the file, times in seconds, and the records that were set aside.

    Raises:
        InputError: naming the file, if it cannot be read, is in no form we know, or no record is valid.

    Example:
        measurements = load_measurements("runs.yaml")
        measurements.runs[0].metrics.tpot_s     # seconds
        measurements.rejected                   # records that could not be read, with the reason
    """
    path = Path(path)
    if is_database(path):
        return _recorded(path, trusted)
    if trusted is not None:
        raise InputError(f"{path}: --trusted is for records; nobody signs a file of runs")
    with Clock(str(path)) as clock:
        return _measurements(path, clock, model)


def _measurements(path: Path, clock: Clock, model: str | None) -> Measurements:
    """The runs of a file, while its clock runs."""
    records = [Row(record) for record in _records(path, clock)]
    if model is not None:
        if names_model(records[0]):
            raise InputError(f"{path}: --model is for a table that names none; this one has a column of it")
        records = [Row({**record, "model": model}) for record in records]
    read = reader_of(records[0], str(path))
    runs: dict[str, Run] = {}
    rejected: list[RejectedRun] = []
    for number, record in enumerate(records, 1):
        clock.check()
        names = [record.get(column) for column in ("id", "row_id", "run_id")]
        name = str(next(filter(None, names), f"record {number}"))
        try:
            for run in read(record, name):
                if run.id in runs:
                    raise InputError(f"the id {run.id} is given twice")
                runs[run.id] = run
        except InputError as error:
            reasons = [line.removeprefix(f"{name}: ") for line in str(error).splitlines()]
            rejected.append(RejectedRun(name, "; ".join(reasons)))
    if not runs:
        raise InputError(
            f"{path}: none of its {len(records)} records is a measured run; "
            f"the first: {rejected[0].id}: {rejected[0].reason}"
        )
    return Measurements(
        tuple(runs.values()), tuple(rejected), {column: why_unread(column) for column in unread(records)}
    )


def _recorded(path: Path, trusted: Mapping[bytes, str] | None) -> Measurements:
    """The runs of a database of records, at least one."""
    runs = recorded_runs(path, trusted)
    if not runs:
        raise InputError(f"{path}: no records in it")
    return Measurements(tuple(runs))


def _records(path: Path, clock: Clock) -> list[dict[str, Any]]:
    """The records of a file as plain objects, at least one."""
    match path.suffix.lower():
        case ".csv":
            records = [_typed(row) for row in table_rows(path, clock)]
        case ".json":
            records = _documents(parse_json(read_text(path), str(path)), path)
        case ".yaml" | ".yml":
            records = _documents(parse_yaml(read_text(path), str(path)), path)
        case _:
            raise InputError(f"{path}: expected a .csv, .json, .yaml or .db file of measured runs")
    if not records:
        raise InputError(f"{path}: no measured runs in it")
    return records


def _typed(row: dict[str, str]) -> dict[str, Any]:
    """A row of a table; what reads as a number is one."""
    return {column: cell.strip() if column in TEXT_COLUMNS else _value(cell) for column, cell in row.items()}


def _value(text: str) -> int | float | str:
    """A cell as a whole number, a number or a text, the first that it can be."""
    text = text.strip()
    if not text:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _documents(data: Any, path: Path) -> list[dict[str, Any]]:
    """The records of a document: a list, a mapping with `runs`, or one record."""
    records = data.get("runs", [data]) if isinstance(data, dict) else data
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InputError(f"{path}: expected a list of runs, or a mapping with the field runs")
    return records
