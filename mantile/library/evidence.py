"""What was measured, and how far predictions may be off by how much of it bears on a case."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from mantile.library.documents import Strict

EVIDENCE_LEVELS = {
    "unseen": "no serving runs of the framework on chips of this maker",
    "framework": "serving runs of the framework on other chips, models or formats",
    "pair": "serving runs of this chip, framework, kind of model and format",
    "apart": "disaggregated serving: TPOT measured, the rest not",
}
"""How much was measured that bears on a case, from the least to the most. The last holds for all
disaggregated serving, whatever was measured of its framework and accelerator."""

BAND_METRICS: tuple[Literal["tpot", "ttft", "throughput"], ...] = ("tpot", "ttft", "throughput")
"""The metrics whose error is stated."""


class Pair(Strict):
    """An accelerator and a framework of which serving runs were measured; `single_user` if these had one
    request at a time."""

    accelerator: str
    framework: str
    runs: int = Field(ge=1)
    single_user: bool = False


class Seen(Strict):
    """A kind of chip, model or format of which serving runs of a framework were measured.

    `kind` is vendor, the maker of the chip; family, the kind of model (`ModelGraph.family`); or format, that
    of most weights.
    """

    kind: Literal["vendor", "family", "format"]
    framework: str
    name: str
    runs: int = Field(ge=1)


class Band(Strict):
    """Percentiles of measured ÷ predicted, of runs in groups that were left out of a fit; each group has the
    same weight."""

    metric: Literal["tpot", "ttft", "throughput"]
    level: Literal["unseen", "framework", "pair", "apart"]
    p10: float = Field(gt=0)
    p50: float = Field(gt=0)
    p90: float = Field(gt=0)


class Drawn(Strict):
    """Percentiles of measured ÷ estimated power of a GPU, in runs at a request rate below saturation of an
    accelerator and a framework; each model and format has the same weight."""

    accelerator: str
    framework: str
    runs: int = Field(ge=1)
    p10: float = Field(gt=0)
    p50: float = Field(gt=0)
    p90: float = Field(gt=0)


class Changed(Strict):
    """How much TPOT of the same configuration changed between two days, with one framework.

    Percentiles of the change of its logarithm over the root of the months between, each configuration with
    the same weight. `last` is the newest day of them.
    """

    framework: str
    configurations: int = Field(ge=1)
    first: date
    last: date
    p10: float = Field(ge=-2, le=0)
    p50: float = Field(ge=-2, le=2)
    p90: float = Field(ge=0, le=2)


class EvidenceBase(Strict):
    """What was measured, and how far predictions may be off by how much of it bears on a case."""

    source: str = "no evidence given"
    pairs: tuple[Pair, ...] = (Pair(accelerator="none", framework="none", runs=1),)
    seen: tuple[Seen, ...] = ()
    bands: tuple[Band, ...] = tuple(
        Band.model_validate({"metric": metric, "level": level, "p10": 0.5, "p50": 1, "p90": 2})
        for metric in BAND_METRICS
        for level in EVIDENCE_LEVELS
    )

    power: tuple[Drawn, ...] = ()
    power_source: str = ""
    drift: tuple[Changed, ...] = ()
    drift_source: str = ""

    def band(self, metric: str, level: str) -> Band:
        """The percentiles of a metric at a level."""
        return next(band for band in self.bands if (band.metric, band.level) == (metric, level))
