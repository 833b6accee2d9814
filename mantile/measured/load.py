"""Files of measured runs: .csv, .json or .yaml, in our own form or in one that others publish; and databases
of records, .db."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mantile.library.clock import Clock
from mantile.library.documents import parse_json, parse_yaml, read_text
from mantile.library.errors import InputError
from mantile.measured.dialects import Reader, names_field, reader_named, reader_of, serving
from mantile.measured.metric_columns import why_unread
from mantile.measured.reading import Stated, is_many, recognised, row_of, texts_of
from mantile.measured.recorded import recorded_runs
from mantile.measured.rows import Row, unread
from mantile.measured.runs import Environment, Measurements, RejectedRun, Run
from mantile.measured.tables import rows_of_text
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
    path: str | Path,
    trusted: Mapping[bytes, str] | None = None,
    model: str | None = None,
    beside: Stated | None = None,
) -> Measurements:
    """Read measured runs from a file, or from all files of a folder or an archive.

    A record that is wrong is set aside with its reason. A file without one valid record is an error.

    Args:
        path: the output of a benchmark in one of the forms of mantile/measured/README.md; a .csv, .json or
            .yaml file of runs in our own form, a table of serving runs or of llama-bench;
            `mantile.measured.dialects` lists their columns. Or a database of records, .db: one that was
            changed is refused as a whole. Or a folder, .zip or .tar.gz of outputs and tables.
        trusted: keys, by one of which each record of a database must be signed.
        model: of a file that names none.
        beside: what files say nothing of, as `mantile.measured.reading.stated` has it.

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
    beside = beside or Stated()
    if model is not None:
        beside = replace(beside, fields={**beside.fields, "model": model})
    if is_many(path):
        _require_no_keys(path, trusted)
        return _of_many(path, beside)
    if is_database(path):
        return _recorded(path, trusted)
    _require_no_keys(path, trusted)
    return measurements_of_text(str(path), read_text(path), beside)


def _require_no_keys(path: Path, trusted: Mapping[bytes, str] | None) -> None:
    if trusted is not None:
        raise InputError(f"{path}: --trusted is for records; nobody signs a file of runs")


def _of_many(path: Path, beside: Stated) -> Measurements:
    """The runs of all files; those that have none are set aside with the reason."""
    runs: list[Run] = []
    rejected: list[RejectedRun] = []
    unused: dict[str, str] = {}
    for name, text in texts_of([path]):
        short = name.removeprefix(f"{path}/")
        try:
            if isinstance(text, InputError):
                raise text
            found = measurements_of_text(name, text, beside)
        except InputError as error:
            rejected.append(RejectedRun(short, str(error).removeprefix(f"{name}: ")))
            continue
        runs += [run.model_copy(update={"id": f"{short}: {run.id}"}) for run in found.runs]
        rejected += [RejectedRun(f"{short}: {one.id}", one.reason) for one in found.rejected]
        unused |= found.unused
    if not runs:
        first = f"; the first: {rejected[0].id}: {rejected[0].reason}" if rejected else ""
        raise InputError(f"{path}: no measured run in its {len(rejected)} files{first}")
    return Measurements(tuple(runs), tuple(rejected), unused)


def measurements_of_text(name: str, text: str, beside: Stated | None = None) -> Measurements:
    """The runs of the text of a file.

    Args:
        name: of the file; its ending says what a table of runs is written in.
        beside: what it says nothing of.
    """
    beside = beside or Stated()
    found = recognised(name, text, beside)
    with Clock(name) as clock:
        if found is None:
            return _measurements(name, text, clock, beside)
        read, form = found
        rows = [(run.id, Row(row_of(run, form, beside)), run.excluded) for run in read.runs]
        others = tuple(RejectedRun(*one) for one in read.rejected)
        measured = _runs_of(name, rows, reader_named(form.rows), clock)
        unused = {key: why_unread(key) if why == "not known" else why for key, why in read.unread.items()}
        return replace(measured, rejected=(*measured.rejected, *others), unused=unused | read.not_compared)


def _measurements(path: str, text: str, clock: Clock, beside: Stated) -> Measurements:
    """The runs of a table of runs, while its clock runs."""
    records = [Row(record) for record in _records(path, text, clock)]
    for field, value in beside.fields.items():
        if names_field(records[0], field):
            raise InputError(
                f"{path}: --{field.replace('_', '-')} is for a table that names none; this one has a column "
                "of it"
            )
        records = [Row({**record, field: value}) for record in records]
    lines = {key: value for key, value in beside.in_tables.items() if not names_field(records[0], key)}
    records = [Row({**record, **lines}) for record in records] if lines else records
    read = reader_of(records[0], path)
    if beside.scenario and read == serving:
        records = [Row({**record, "scenario": beside.scenario}) for record in records]
    rows = []
    for number, record in enumerate(records, 1):
        names = [record.get(column) for column in ("id", "row_id", "run_id")]
        rows.append((str(next(filter(None, names), f"record {number}")), record, ""))
    return replace(
        _runs_of(path, rows, read, clock), unused={column: why_unread(column) for column in unread(records)}
    )


def _runs_of(path: str, rows: list[tuple[str, Row, str]], read: Reader, clock: Clock) -> Measurements:
    """The runs of rows: the name of each, its cells, and why it is set aside."""
    runs: dict[str, Run] = {}
    rejected: list[RejectedRun] = []
    for name, record, why in rows:
        clock.check()
        try:
            if why:
                raise InputError(why)
            for run in read(record, name):
                if run.id in runs:
                    raise InputError(f"the id {run.id} is given twice")
                runs[run.id] = run
        except InputError as error:
            reasons = [line.removeprefix(f"{name}: ") for line in str(error).splitlines()]
            rejected.append(RejectedRun(name, "; ".join(reasons)))
    if not runs:
        raise InputError(
            f"{path}: none of its {len(rows)} records is a measured run; "
            f"the first: {rejected[0].id}: {rejected[0].reason}"
        )
    return Measurements(tuple(runs.values()), tuple(rejected))


def _recorded(path: Path, trusted: Mapping[bytes, str] | None) -> Measurements:
    """The runs of a database of records, at least one."""
    runs = recorded_runs(path, trusted)
    if not runs:
        raise InputError(f"{path}: no records in it")
    return Measurements(tuple(runs))


def _records(path: str, text: str, clock: Clock) -> list[dict[str, Any]]:
    """The records of a file as plain objects, at least one."""
    match Path(path).suffix.lower():
        case ".csv":
            records = [_typed(row) for row in rows_of_text(path, text, clock)]
        case ".json":
            records = _documents(parse_json(text, path), path)
        case ".yaml" | ".yml":
            records = _documents(parse_yaml(text, path), path)
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


def _documents(data: Any, path: str) -> list[dict[str, Any]]:
    """The records of a document: a list, a mapping with `runs`, or one record."""
    records = data.get("runs", [data]) if isinstance(data, dict) else data
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InputError(f"{path}: expected a list of runs, or a mapping with the field runs")
    return records
