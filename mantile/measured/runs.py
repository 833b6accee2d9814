"""Measured runs: what was asked, what came out, where and by whom. One record is a case of a scenario file with its metrics.

runs:
  - id: r0001
    model: llama-3.3-70b
    accelerator: h100-sxm
    tp: 8
    input_tokens: 922
    output_tokens: 922
    concurrency: 16
    waves: 10
    metrics: {ttft_s: 0.21, tpot_s: 0.0147}
    environment: {framework_version: 0.11.0}
    source: our own run
    date: 2026-11-20
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mantile.library.documents import Strict, parse_json, parse_yaml, read_text, validate
from mantile.library.errors import InputError
from mantile.library.scenario import Case, Name, Scenario, Text

Seconds = Annotated[float | None, Field(gt=0, le=1e6, allow_inf_nan=False)]
Rate = Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)]
Words = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f]*$")]


class Metrics(Strict):
    """What a run reports, in seconds and tokens per second; means unless they say otherwise.

    `prefill_s` is the time of a prompt's pass alone. `output_tokens_per_s` is that of the whole deployment.
    """

    ttft_s: Seconds = None
    ttft_p50_s: Seconds = None
    ttft_p95_s: Seconds = None
    tpot_s: Seconds = None
    tpot_p50_s: Seconds = None
    e2e_s: Seconds = None
    prefill_s: Seconds = None
    output_tokens_per_s: Rate = None
    output_tokens_per_s_per_accelerator: Rate = None

    @model_validator(mode="after")
    def _some(self) -> Metrics:
        if not self.given():
            raise ValueError(f"expected at least one of {', '.join(Metrics.model_fields)}")
        return self

    def given(self) -> dict[str, float]:
        """The metrics there are."""
        return {name: value for name in Metrics.model_fields if (value := getattr(self, name)) is not None}


class Environment(Strict):
    """What a run ran on, as far as it is told."""

    framework_version: Words | None = None
    image: Words | None = None
    driver: Words | None = None
    flags: Words | None = None
    note: Words | None = None


class Run(Case):
    """One measured run: a case of a scenario with its model, its metrics and where they come from.

    `assumptions` is what reading it from another format took for granted.
    """

    id: Text
    model: Name
    metrics: Metrics
    environment: Environment = Environment()
    source: Words
    date: Words | None = None
    status: Literal["measured"] = "measured"
    measured: None = None  # type: ignore[assignment]  # a scenario's; a run has metrics
    assumptions: tuple[str, ...] = ()

    @field_validator("date", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return value if value is None else str(value)  # YAML reads 2026-11-20 as a date

    def scenario(self) -> Scenario:
        """What was asked, as a scenario."""
        fields = {name: getattr(self, name) for name in self.model_fields_set & set(Case.model_fields)}
        return Scenario(model=self.model, **fields)


@dataclass(frozen=True)
class RejectedRun:
    """A record that could not be read, or not be answered, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Measurements:
    """The runs of a file, and its records that are none."""

    runs: tuple[Run, ...]
    broken: tuple[RejectedRun, ...] = ()


RECORDS = (".yaml", ".yml", ".json")


def load_measurements(path: Path) -> Measurements:
    """Measured runs from a file: .csv, .json or .yaml, in our own form or one that dialects.py knows.

    A record that is wrong is set aside with its reason; a file of none that is right is an error.

    Raises:
        InputError: naming the file, if it cannot be read or is in no form we know.
    """
    from mantile.measured.dialects import dialect

    text = read_text(path)
    if path.suffix.lower() == ".csv":
        records = list(_rows(text, path))
    elif path.suffix.lower() in RECORDS:
        records = list(
            _documents(
                parse_json(text, str(path))
                if path.suffix.lower() == ".json"
                else parse_yaml(text, str(path)),
                path,
            )
        )
    else:
        raise InputError(f"{path}: expected a .csv, .json or .yaml file of measured runs")
    if not records:
        raise InputError(f"{path}: no measured runs in it")
    read = dialect(records[0], str(path))
    runs: list[Run] = []
    broken: list[RejectedRun] = []
    seen: set[str] = set()
    for number, record in enumerate(records, 1):
        name = str(record.get("id") or record.get("row_id") or f"record {number}")
        try:
            for run in read(record, name):
                if run.id in seen:
                    raise InputError(f"the id {run.id} is given twice")
                seen.add(run.id)
                runs.append(run)
        except InputError as error:
            broken.append(RejectedRun(name, str(error).splitlines()[0].removeprefix(f"{name}: ")))
    if not runs:
        raise InputError(
            f"{path}: none of its {len(records)} records is a measured run; the first: {broken[0].id}: {broken[0].reason}"
        )
    return Measurements(tuple(runs), tuple(broken))


def own(record: dict[str, Any], name: str) -> Iterable[Run]:
    """A record in our own form; in a table the metrics and the environment are columns."""
    record = {key: value for key, value in record.items() if value not in ("", None)}
    for field, kind in (("metrics", Metrics), ("environment", Environment)):
        mine = {key: record.pop(key) for key in list(record) if key in kind.model_fields}
        if mine:
            record[field] = mine | dict(record.get(field) or {})
    return [validate(Run, {"id": name, "source": "not stated"} | record, name)]


def _rows(text: str, path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table; what reads as a number is one."""
    reader = csv.DictReader(StringIO(text), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                row = {
                    str(key): value if value is not None else ""
                    for key, value in row.items()
                    if key is not None
                }
            yield {key: value.strip() if key in _TEXTS else _value(value) for key, value in row.items()}
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not a table: {error}") from error


_TEXTS = {
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
}  # 0.10 is not 0.1


def _value(text: str) -> Any:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _documents(data: Any, path: Path) -> Iterator[dict[str, Any]]:
    """The records of a document: a list, a mapping with `runs`, or one record."""
    records = data.get("runs", [data]) if isinstance(data, dict) else data
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InputError(f"{path}: expected a list of runs, or a mapping with the field runs")
    yield from records
