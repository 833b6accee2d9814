"""What profiles are made of: figures with their source, under an id and a version."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from mantile.library.documents import Strict

Status = Literal["measured", "fitted", "datasheet", "assumed", "defined"]
Confidence = Literal["high", "medium", "low"]
Topology = Literal["switch", "mesh", "pcie", "torus", "network", "single"]


class Other(Strict):
    """A figure that another source states for the same thing."""

    value: float | str
    source: str = Field(min_length=2)


class Figure(Strict):
    """One figure and why to believe it.

    `value` is None where the thing does not exist or nobody states it.
    """

    value: float | None = Field(ge=0, allow_inf_nan=False)
    unit: str
    source: str = Field(min_length=3)
    date: date
    status: Status
    confidence: Confidence | None = None
    note: str = ""
    others: tuple[Other, ...] = ()


class Profile(Strict):
    """What all profiles have: an id as the file is called, and a version that changes with any figure."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9.-]+$")
