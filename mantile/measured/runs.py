"""Measured runs: what was asked, what was measured, where and by whom.

A record is a case of a scenario file with its metrics, in a .yaml file:

runs:
  - id: r0001
    model: llama-3.3-70b
    accelerator: h100-sxm
    tp: 8
    input_tokens: 922
    output_tokens: 922
    concurrency: 16
    prompts_per_slot: 10
    metrics: {ttft_s: 0.21, tpot_s: 0.0147}
    environment: {framework_version: 0.11.0}
    source: our own run
    date: 2026-11-20
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mantile.library.brief import Brief
from mantile.library.documents import Strict, validate
from mantile.library.fields import Name, Text
from mantile.library.scenario import Case, Scenario, in_unit
from mantile.library.scenario_fields import REQUIRED

Seconds = Annotated[float | None, Field(ge=1e-9, le=1e6, allow_inf_nan=False)]
Bytes = Annotated[float | None, Field(ge=1, le=1e15, allow_inf_nan=False)]
Tokens = Annotated[float | None, Field(ge=1, le=1e12, allow_inf_nan=False)]
Rate = Annotated[float | None, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]
Phrase = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f]*$")]


class Metrics(Strict):
    """What a run reports: times in seconds, throughput in tokens per second; means unless the name says p50
    or p95.

    `prefill_s` is the time of the prefill pass alone, `prefill_tokens_per_s` its prompt ÷ that time.
    `output_tokens_per_s` is that of the whole deployment. `weights_bytes` and `peak_memory_bytes` are of the
    fullest accelerator, `kv_tokens` those for which the KV cache of a rank has room; bytes may be in GB.
    """

    ttft_s: Seconds = None
    ttft_p50_s: Seconds = None
    ttft_p95_s: Seconds = None
    tpot_s: Seconds = None
    tpot_p50_s: Seconds = None
    e2e_s: Seconds = None
    prefill_s: Seconds = None
    prefill_tokens_per_s: Rate = None
    output_tokens_per_s: Rate = None
    output_tokens_per_s_per_accelerator: Rate = None
    weights_bytes: Bytes = None
    kv_tokens: Tokens = None
    peak_memory_bytes: Bytes = None

    @model_validator(mode="before")
    @classmethod
    def _in_seconds(cls, given: Any) -> Any:
        """Times may be in milliseconds, memory in GB: ttft_ms, peak_memory_gb and so on."""
        in_seconds = in_unit(given, Metrics.model_fields, "_s", "_ms", 1e-3)
        return in_unit(in_seconds, Metrics.model_fields, "_bytes", "_gb", 1e9)

    @model_validator(mode="after")
    def _at_least_one(self) -> Metrics:
        if not self.given():
            raise ValueError(f"expected at least one of {', '.join(Metrics.model_fields)}")
        return self

    def given(self) -> dict[str, float]:
        """The metrics that were measured, by name."""
        return {name: value for name in Metrics.model_fields if (value := getattr(self, name)) is not None}


class Environment(Strict):
    """What a run ran on, as far as its source says."""

    framework_version: Phrase | None = None
    image: Phrase | None = None
    driver: Phrase | None = None
    flags: Phrase | None = None
    note: Phrase | None = None


class Run(Case):
    """One measured run: a case of a scenario with its model, its metrics and where they come from.

    `assumptions` says what was assumed where the source of the run does not say it.
    """

    id: Text
    model: Name
    metrics: Metrics
    environment: Environment = Environment()
    source: Phrase
    date: Phrase | None = None
    status: Literal["measured"] = "measured"
    measured: None = None  # type: ignore[assignment]  # a scenario's; a run has metrics
    assumptions: tuple[str, ...] = ()

    @field_validator("date", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return value if value is None else str(value)  # YAML reads 2026-11-20 as a date

    @model_validator(mode="after")
    def _complete(self) -> Run:
        for name in REQUIRED:
            rated = name == "concurrency" and (self.request_rate or self.sessions)
            if getattr(self, name) is None and not rated:
                raise ValueError(f"{name} is missing")
        return self

    def scenario(self) -> Scenario:
        """What was asked, as a scenario."""
        fields = {name: getattr(self, name) for name in self.model_fields_set & set(Case.model_fields)}
        return Scenario(model=self.model, **fields)


METRIC_COLUMNS = {
    *Metrics.model_fields,
    *(f"{key.removesuffix('_s')}_ms" for key in Metrics.model_fields if key.endswith("_s")),
    *(f"{key.removesuffix('_bytes')}_gb" for key in Metrics.model_fields if key.endswith("_bytes")),
}
"""Names of metrics, in any unit that they may be in."""


def parse_run(record: dict[str, Any], name: str) -> Run:
    """A record in our own form, from a file or from a row of a table, to a run.

    Args:
        record: fields of a run; metrics and environment may also stand among them, as the columns of a table.
        name: the id of a record that has none; it stands for the record in errors.

    Raises:
        InputError: naming the field that is wrong and what was expected.
    """
    fields = {key: value for key, value in record.items() if value not in ("", None)}
    names = {"metrics": METRIC_COLUMNS, "environment": {*Environment.model_fields}}
    for group, known in names.items():
        columns = {key: fields.pop(key) for key in list(fields) if key in known}
        if columns:
            fields[group] = columns | dict(fields.get(group) or {})
    return validate(Run, {"id": name, "source": "not stated"} | fields, name)


@dataclass(frozen=True)
class RejectedRun:
    """A record that could not be read or predicted, and why."""

    id: str
    reason: str


@dataclass(frozen=True, repr=False)
class Measurements(Brief):
    """The runs of a file, the records that could not be read as one, and the columns that nobody read, with
    the reason."""

    runs: tuple[Run, ...]
    rejected: tuple[RejectedRun, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)
