"""A record of a measured run: what it holds, and the id that follows from it.

The id is the SHA-256 of the record as canonical JSON, so that a record that was changed is another one. A
record has no place for prompts, answers, addresses or names of machines: its texts are those of a run and of
a short list of fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from mantile.library.documents import Strict, parse_json, validate
from mantile.library.errors import InputError, quoted

KIND = "run record"
"""What signatures call it."""

Utc = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.]*$", max_length=60)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]*$")]
Figure = Annotated[float, Field(allow_inf_nan=False)]

DEGREES = ("tp", "pp", "dp", "ep", "attention_dp", "cp")
_LISTS = 20_000  # characters of a record
_PRIVATE_PATH = re.compile(r"^(/|~|[A-Za-z]:[\\/]|\\\\|file:)|(^|[\\/])\.\.([\\/]|$)")


def place_named(run: Mapping[str, Any]) -> str | None:
    """What is wrong with a field of a run that names a folder of a machine; None where none does."""
    for field in ("model", "draft_model", "accelerator"):
        if _PRIVATE_PATH.search(str(run.get(field) or "")):
            return (
                f"field {field}: expected an id, or a path relative to the folder of the records: "
                "a record names no folder of a machine"
            )
    return None


class Environment(Strict):
    """What the run ran on, beyond what its run says; None where nobody told.

    `host` is a hash with a salt that never leaves the machine that measured: it tells two machines apart and
    names neither. `flags` are settings of the server that shape its speed.
    """

    host: Annotated[str | None, Field(pattern=r"^[0-9a-f]{16}$")] = None
    os: Short | None = None
    python: Short | None = None
    driver: Short | None = None
    cuda: Short | None = None
    accelerators: tuple[Short, ...] = ()
    flags: dict[Key, bool | int | float | Short] = Field(default_factory=dict)


class Sweep(Strict):
    """The sweep that a run is a point of."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    point: Short


class Record(Strict):
    """A measured run and all that was measured beside it.

    Args:
        format: of the record.
        timestamp_utc: when the run ended, 2026-11-26T03:15:00Z.
        run: the run in the form that `reconcile` reads: fields of a scenario, metrics, environment, source.
        metrics: further figures by name in SI units, the unit in the name: ttft_p99_s, requests_failed.
        telemetry: figures sampled meanwhile, by device: host, gpu0.
        env: what it ran on.
        sweep: None for a run that is no point of one.
    """

    format: Literal[1] = 1
    timestamp_utc: Utc
    run: dict[str, Any]
    metrics: dict[Key, Figure] = Field(default_factory=dict)
    telemetry: dict[Key, dict[Key, Figure]] = Field(default_factory=dict)
    env: Environment = Environment()
    sweep: Sweep | None = None

    @field_validator("run")
    @classmethod
    def _names_no_place(cls, run: dict[str, Any]) -> dict[str, Any]:
        """A path of one machine would say who measured."""
        wrong = place_named(run)
        if wrong is not None:
            raise ValueError(wrong)
        return run

    @property
    def id(self) -> str:
        """SHA-256 of its canonical JSON, in hexadecimal."""
        return digest_of(self.text)

    @property
    def text(self) -> str:
        """Its canonical JSON: sorted keys, no blanks, and nothing that is not stated."""
        return canonical(self.model_dump(mode="json", exclude_defaults=True) | {"format": self.format})

    def flat(self) -> dict[str, Any]:
        """The record as one mapping, for other programs: run_id, timestamp_utc, model_id, runtime_id,
        hardware_id, quant, context_tokens, output_tokens, concurrency, parallelism, metrics, env. What the
        record does not say is None."""
        run = self.run
        environment = dict(run.get("environment") or {})
        release = environment.get("framework_version")
        rate = {"request_rate": run["request_rate"]} if run.get("request_rate") else {}
        telemetry = {
            f"{device}.{name}": value
            for device, figures in self.telemetry.items()
            for name, value in figures.items()
        }
        return {
            "run_id": self.id,
            "timestamp_utc": self.timestamp_utc,
            "model_id": run.get("model"),
            "runtime_id": " ".join(filter(None, (run.get("framework"), release))) or None,
            "hardware_id": run.get("accelerator"),
            "quant": run.get("weights_dtype"),
            "context_tokens": run.get("input_tokens"),
            "output_tokens": run.get("output_tokens"),
            "concurrency": run.get("concurrency"),
            "parallelism": {name: run[name] for name in DEGREES if run.get(name)},
            "metrics": {**(run.get("metrics") or {}), **self.metrics, **rate, **telemetry},
            "env": {**environment, **self.env.model_dump(mode="json", exclude_defaults=True)},
        }


def canonical(data: Mapping[str, Any]) -> str:
    """JSON of one form only.

    >>> canonical({"b": 1.5, "a": [True, None]})
    '{"a":[true,null],"b":1.5}'
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def parse_record(text: str, identifier: str, name: str) -> Record:
    """A record as a database or a table holds it.

    Args:
        text: canonical JSON.
        identifier: under which it is held.
        name: stands for the database in errors.

    Raises:
        InputError: naming the record, if it was changed since it was written, or is none.
    """
    place = f"{name}: record {identifier[:12]}"
    found = digest_of(text)
    if found != identifier:
        raise InputError(
            f"{place}: it was changed: its content is that of {found[:12]}; expected a record as it was "
            "written: take it out, or import it again from an export"
        )
    if len(text) > _LISTS:
        raise InputError(f"{place}: {len(text):,} characters; expected at most {_LISTS:,}")
    record = validate(Record, parse_json(text, place), place)
    if record.text != text:
        raise InputError(f"{place}: {quoted(text[:20])}...: expected canonical JSON")
    return record
