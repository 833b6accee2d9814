"""What came before a workbook: its earlier versions, and what differs from the one before."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from mantile.library.documents import Strict
from mantile.library.fields import Name, Text


class Version(Strict):
    """A version of a workbook before this one.

    When it was made, what it was, why, and its results for the base scenario, as far as they were known.
    """

    date: Annotated[Text | None, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = None
    what: Text
    why: Text
    checks: Text = ""
    ttft_ms: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    tpot_ms: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    usd_per_million: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None


class Changed(Strict):
    """An input that differs from the workbook before; None where it has no value of its own.

    Args:
        scenario: its letter; None where all share the input.
    """

    id: Name
    scenario: Annotated[str, StringConstraints(pattern=r"^[A-H]$")] | None = None
    was: float | Name | None = None
    now: float | Name | None = None


class Since(Strict):
    """The workbook before this one, and what differs from it.

    Args:
        inputs: that differ; `more` are not listed.
        results: of its base scenario by the name of the metric, None where nobody knew one.
    """

    workbook: Text
    digest: Text
    made_on: Text | None = None
    made_by: Text
    inputs: Annotated[tuple[Changed, ...], Field(max_length=100)] = ()
    more: Annotated[int, Field(ge=0)] = 0
    results: dict[Text, Annotated[float, Field(allow_inf_nan=False)] | None] = Field(default_factory=dict)
