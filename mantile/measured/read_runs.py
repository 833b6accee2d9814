"""Files of measurements, whatever wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mantile.library.errors import InputError
from mantile.measured.forms import form_table
from mantile.measured.load import load_measurements, measurements_of_text
from mantile.measured.reading import (
    ASKED,
    FIGURES,
    MeasuredRow,
    Read,
    Stated,
    is_many,
    missing_of,
    recognised,
    stated,
    texts_of,
)
from mantile.measured.runs import Measurements
from mantile.records.store import is_database


def read_runs(
    *paths: str | Path, launched: str | None = None, client: str | None = None, **fields: object
) -> tuple[Read, ...]:
    """Read files of measurements: outputs of benchmarks, pages of metrics, tables of runs.

    Args:
        paths: files, folders, or archives (.zip, .tar.gz) of many.
        launched: launch line of the server that was measured.
        client: line of the client that measured it.
        fields: what the files say nothing of: accelerator, tp, model, weights_dtype, framework, ...

    Returns:
        One of each file, times in seconds, rates per second. What nobody knows is None, never 0. Of several
        files one that cannot be read has no runs and the reason in `rejected`.

    Raises:
        InputError: naming the file, if none can be read.

    Example:
        for read in mantile.read_runs("workbooks/accuracy.yaml"):
            print(read.form, len(read.runs), read.missing)
    """
    return read_stated(paths, stated(launched, client, **fields))


def read_stated(paths: Sequence[str | Path], beside: Stated) -> tuple[Read, ...]:
    """The same with what is stated beside the files."""
    found: list[Read] = []
    problems: list[InputError] = []
    for name, content in _contents(paths):
        try:
            if isinstance(content, InputError):
                raise content
            if isinstance(content, Path):
                found.append(_of_measurements(name, load_measurements(content)))
            else:
                found.append(read_text_of(name, content, beside))
        except InputError as error:
            problems.append(error)
            reason = str(error).removeprefix(f"{name}: ")
            found.append(Read(name, "not read", (), rejected=((name, reason),)))
    if problems and len(problems) == len(found):
        if len(found) == 1:
            raise problems[0]
        raise InputError(f"none of {len(found)} files can be read; the first: {problems[0]}")
    return tuple(found)


def _contents(paths: Sequence[str | Path]) -> Iterator[tuple[str, str | Path | InputError]]:
    """Name and text of each file, the path of a database, the error of what cannot be read."""
    if not paths:
        yield from texts_of(paths)
    for path in map(Path, paths):
        if not is_many(path) and is_database(path):
            yield str(path), path
            continue
        try:
            yield from texts_of([path])
        except InputError as error:
            yield str(path), error


def read_text_of(name: str, text: str, beside: Stated) -> Read:
    """One file of measurements.

    Raises:
        InputError: naming the file and what was expected.
    """
    read = recognised(name, text, beside)
    return read[0] if read is not None else _table_of_runs(name, text, beside)


def _table_of_runs(name: str, text: str, beside: Stated) -> Read:
    """A table of runs that `load` reads, in our own columns or in those of others."""
    try:
        return _of_measurements(name, measurements_of_text(name, text, beside))
    except InputError as error:
        if "expected a .csv" not in str(error):
            raise
        known = ", ".join(form.name for form in form_table().forms)
        raise InputError(
            f"{name}: in no form that is known; expected the output of one of {known}; or a table of runs, "
            ".csv, .json or .yaml"
        ) from None


def _of_measurements(name: str, measured: Measurements) -> Read:
    """Runs that are read already."""
    runs = []
    for run in measured.runs:
        data = run.model_dump(exclude_none=True)
        sides = {}
        if run.decode is not None:
            both = {"prefill": run.model_dump(), "decode": run.decode.model_dump()}
            sides = {
                f"{side}_{name}": one.get("dp" if name == "workers" else name)
                for side, one in both.items()
                for name in ("tp", "ep", "attention_dp", "workers")
            }
        fields = {key: data[key] for key in ASKED if key in data} | sides
        fields |= {key: value for key, value in data["environment"].items() if key in ASKED}
        metrics = {key: value for key, value in run.metrics.given().items() if key in FIGURES}
        runs.append(MeasuredRow(run.id, fields, metrics, run.assumptions))
    rejected = tuple((one.id, one.reason) for one in measured.rejected)
    return Read(name, "runs", tuple(runs), dict(measured.unused), missing_of(runs), rejected)
