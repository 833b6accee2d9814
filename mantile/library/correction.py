"""A correction: what measured runs leave over of the physics, as multipliers of results.

A file of it is written by `mantile calibrate --multipliers` and named by `correction` of a scenario. It is
small: for each metric a step for each group of runs and a few steps along what was asked, all logarithms, and
how far runs that were not fitted lie from it. Nothing of it needs the program that fitted it. Steps along
what was asked may hold everywhere, also for models and accelerators that nobody measured, with frameworks
that somebody did; then groups have none of their own.
"""

from __future__ import annotations

import hashlib
from math import log
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict, json_text, load, validate
from mantile.library.fields import Real, Text
from mantile.library.places import data_folder

NO_CORRECTION = "none"
MOST_CHANGE = 2.0
"""A multiplier lies between one over this and this."""
MOST_STEPS = 16
MOST_GROUPS = 2_000

CorrectedMetric = Literal["tpot", "ttft", "e2e", "prefill", "weights", "kv_tokens", "peak_memory"]
Asked = Literal[
    "concurrency",
    "input_tokens",
    "output_tokens",
    "ranks",
    "engine_date",
    "launch_share",
    "compute_share",
    "memory_share",
    "network_share",
    "stall_share",
]
"""What steps go along: what was asked, the day of the engine, what share of a decode step each limit has, and
what share of TPOT the prompts of others."""
SHIPPED = "shipped"
"""The correction that comes with the library, and its file."""
SHIPPED_FILE = data_folder("profiles") / "correction.yaml"
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Step = Annotated[Real, Field(ge=-log(MOST_CHANGE), le=log(MOST_CHANGE))]


class Group(Strict):
    """Runs of one model on one accelerator with one framework.

    `step` is the logarithm of the median of measured ÷ predicted that is left of them; `newest` the day of
    the newest run, None where no run has one.
    """

    model: str
    accelerator: str
    framework: str
    runs: int = Field(ge=1)
    newest: Day | None = None
    step: Step


class Along(Strict):
    """Steps along what was asked, or what follows from it: from each value on, its logarithm of a multiplier
    holds."""

    what: Asked
    starts: tuple[Real, ...] = Field(min_length=2, max_length=MOST_STEPS)
    steps: tuple[Step, ...] = Field(min_length=2, max_length=MOST_STEPS)

    @model_validator(mode="after")
    def _ordered(self) -> Along:
        if len(self.starts) != len(self.steps):
            raise ValueError(f"expected as many steps as starts, {len(self.starts)}; found {len(self.steps)}")
        if self.starts[0] != 0 or any(
            low >= high for low, high in zip(self.starts, self.starts[1:], strict=False)
        ):
            raise ValueError("starts: expected 0 and then larger and larger numbers")
        return self


class Corrected(Strict):
    """The correction of one metric.

    `low` and `high` are logarithms of the tenth and ninetieth percentile of measured ÷ corrected, of runs
    whose configuration was not fitted. `everywhere`: the steps along hold for all models and accelerators,
    and count by how many runs of the framework were fitted, and those of groups are 0; else they count by how
    many runs of the kind were fitted.
    """

    metric: CorrectedMetric
    everywhere: bool = False
    groups: tuple[Group, ...] = Field(min_length=1, max_length=MOST_GROUPS)
    along: tuple[Along, ...] = ()
    low: Annotated[Real, Field(ge=-5, le=0)]
    high: Annotated[Real, Field(ge=0, le=5)]

    @model_validator(mode="after")
    def _once(self) -> Corrected:
        keys = [(group.model, group.accelerator, group.framework) for group in self.groups]
        if len(set(keys)) < len(keys):
            raise ValueError("groups: expected each model, accelerator and framework once")
        if len({one.what for one in self.along}) < len(self.along):
            raise ValueError("along: expected each of what was asked once")
        if self.everywhere and any(group.step for group in self.groups):
            raise ValueError("groups: expected steps of 0 where those along hold everywhere")
        return self


class Correction(Strict):
    """Multipliers of results, fitted to measured runs.

    `digest` is that of the content; a file that was changed since is refused unless it leaves the digest out.

    Raises:
        InputError: for a digest that is not that of the content.
    """

    id: Text
    version: Text
    source: Text
    metrics: tuple[Corrected, ...] = Field(min_length=1)
    digest: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Correction:
        if len({one.metric for one in self.metrics}) < len(self.metrics):
            raise ValueError("metrics: expected each metric once")
        if self.digest and self.digest != self.worked_out:
            raise ValueError(
                "digest: the correction was changed since it was fitted; expected "
                f"{self.worked_out}, or no digest: then it is one of your own"
            )
        return self

    @property
    def worked_out(self) -> str:
        """The digest of the content: the first 16 characters of the SHA-256 of its JSON."""
        data = self.model_dump(mode="json", exclude={"digest"})
        for metric in data["metrics"]:
            if not metric["everywhere"]:
                del metric["everywhere"]  # a field that older files do not have
        return hashlib.sha256(json_text(data).encode()).hexdigest()[:16]

    def sealed(self) -> Correction:
        """The same with its digest."""
        data = self.model_dump(mode="json", exclude={"digest"})
        return validate(Correction, data | {"digest": self.worked_out}, self.id)


def load_correction(path: Path = SHIPPED_FILE) -> Correction:
    """A correction from its file; the one that is shipped where none is named.

    Raises:
        InputError: naming the file and the field that is wrong.

    Example:
        load_correction(Path("correction.yaml")).version
    """
    return load(Correction, path)
