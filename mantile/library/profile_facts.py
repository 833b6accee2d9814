"""What profiles are made of: facts with their source, under an id and a version."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from mantile.library.documents import Strict

Status = Literal["measured", "fitted", "datasheet", "assumed", "defined"]
Confidence = Literal["high", "medium", "low"]
Topology = Literal["switch", "mesh", "pcie", "torus", "network", "single"]


class OtherStatement(Strict):
    """What another source states for the same fact."""

    value: float | str
    source: str = Field(min_length=2)


class ProfileFact(Strict):
    """A fact of a profile and why to believe it.

    `value` is in `unit`. It is None where the thing does not exist or nobody states it.
    """

    value: float | None = Field(ge=0, allow_inf_nan=False)
    unit: str
    source: str = Field(min_length=3)
    date: date
    status: Status
    confidence: Confidence | None = None
    note: str = ""
    others: tuple[OtherStatement, ...] = ()


class Profile(Strict):
    """What all profiles have: an id, as the file is called, and a version, which changes with any fact."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9.-]+$")
