"""What profiles are made of: facts under an id and a version, each with a source that keeps what its status
promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mantile.library.documents import Document, Strict
from mantile.library.errors import InputError
from mantile.library.fields import Figure
from mantile.library.versions import Versioned

Status = Literal["datasheet", "secondary", "measured", "fitted", "assumed", "defined"]
STATUSES: dict[Status, str] = {
    "datasheet": "read in a document of its maker: title; page, table, section or figure; URL",
    "secondary": "read elsewhere: who says it, citing whom",
    "measured": "timed or weighed, by whom the source says",
    "fitted": "to measured serving runs",
    "assumed": "nobody states it, or nobody who states it was read: source or note gives the reason",
    "defined": "true by definition",
}
"""What each status promises of the source beside it."""
_SOURCES: dict[Status, tuple[str, str]] = {
    "datasheet": (
        r"[^;]{6,}; (?:page|table|section|figure) [^;]+; https?://\S+",
        "the maker's document as 'title; page, table, section or figure; URL'",
    ),
    "secondary": (
        r"[^;]+, citing [^;]+(?:; [^;]+, citing [^;]+)*",
        "the chain as 'who says it, citing whom' or 'citing nobody', '; ' between several",
    ),
    "assumed": (r"\S+ \S.*", "the reason in words, there or in the note"),
}
_RECALLED = re.compile(r"\bfrom memory\b|\brecalled\b", re.IGNORECASE)
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

    value: Annotated[Figure, Field(ge=0)] | None
    unit: str
    source: str = Field(min_length=3)
    date: date
    status: Status
    confidence: Confidence | None = None
    note: str = ""
    others: tuple[OtherStatement, ...] = ()


OWN_PRICE = "typed by hand"
"""In place of the provider of a price that somebody typed over that of the library."""


class PriceFact(ProfileFact):
    """A price, of which more is to be said. What nobody states is None.

    Args:
        provider: who asks it.
        region: where it holds.
        term: the contract on which it holds.
        date: the day on which it was read, or of which it is.
        others: what others ask.
    """

    provider: str | None = Field(default=None, min_length=2)
    region: str | None = Field(default=None, min_length=2)
    term: str | None = Field(default=None, min_length=2)


class Profile(Versioned):
    """What all profiles have."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    version: str = Field(pattern=r"^[A-Za-z0-9.-]+$")


def check_sources(profile: BaseModel, name: str) -> None:
    """Whether every source of a profile holds what the status beside it promises, and all is said of prices.

    Versions and bundles of before 0.10.0 are not asked: they stay as they were.

    Args:
        profile: of any kind, with facts or figures of factors.
        name: stands for the file in errors.

    Raises:
        InputError: a line for each field that breaks a promise, with what is expected.

    Example:
        check_sources(load(Accelerator, path), str(path))
        # my-chip.yaml: field tdp.source: status datasheet: expected the maker's document as ...
    """
    broken = [
        f"{name}: field {field}.source: {problem} (found {fact.source!r:.80})"
        for field, fact in _sourced(profile)
        if (problem := _problem(fact))
    ] + [
        f"{name}: field {field}: says nothing of {part}; expected a text, or null where nobody states it"
        for field, fact in _sourced(profile)
        if isinstance(fact, PriceFact)
        for part in ("provider", "region", "term")
        if part not in fact.model_fields_set
    ]
    if broken:
        raise InputError("\n".join(broken))


def as_promised(profile: Document) -> Document:
    """An older version of a profile with the status words that its sources keep.

    Before 0.10.0 "datasheet" said no more than that somebody states a figure. Where no document of the maker
    is named, it becomes "secondary", or "assumed" where nothing was read.
    """
    kept = {
        field: fact.model_copy(
            update={"status": "assumed" if _RECALLED.search(f"{fact.source} {fact.note}") else "secondary"}
        )
        for field, fact in _sourced(profile)
        if fact.status == "datasheet" and _problem(fact)
    }
    return profile.model_copy(update=kept)


def _sourced(profile: BaseModel) -> Iterator[tuple[str, Any]]:
    """What has a status, by field."""
    for field in type(profile).model_fields:
        value = getattr(profile, field)
        for place, item in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
            if hasattr(item, "status") and hasattr(item, "source"):
                yield field if place is None else f"{field}.{place}", item


def _problem(fact: Any) -> str | None:
    """What the source of a fact lacks that its status promises."""
    said = " ".join(filter(None, (fact.source, getattr(fact, "note", ""))))
    if _RECALLED.search(said):
        return "expected something that was read; what is remembered is assumed, with its reason"
    pattern, expected = _SOURCES.get(fact.status, (".*", ""))
    stated = said if fact.status == "assumed" else fact.source
    return None if re.fullmatch(pattern, stated) else f"status {fact.status}: expected {expected}"
