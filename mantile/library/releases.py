"""Releases of serving engines, and the days on which they came out."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from mantile.library.documents import Strict, load_ours
from mantile.library.errors import InputError, near, quoted
from mantile.library.ids import words
from mantile.library.places import data_folder

_RELEASE = re.compile(r"(?:(?P<engine>[A-Za-z][\w. -]*?)(?:\s+|\s*==\s*|@))?v?(?P<version>b?\d[\w.+-]*)")
_CALLED = {"tensorrt-llm": "trtllm", "tensorrt": "trtllm", "trt-llm": "trtllm"}


class ReleasesOf(Strict):
    """Releases of a framework as one source tells their days, in UTC."""

    framework: str
    source: str
    status: Literal["datasheet", "secondary"]
    date: datetime.date
    days: dict[str, datetime.date]


class Releases(Strict):
    """All that are known; of a release that two sources tell the first counts."""

    releases: tuple[ReleasesOf, ...]


@cache
def known_releases() -> Mapping[str, Mapping[str, tuple[datetime.date, str]]]:
    """By framework and release, from old to new: its day, and who says so."""
    found: dict[str, dict[str, tuple[datetime.date, str]]] = {}
    for listed in load_ours(Releases, data_folder("profiles") / "releases.yaml").releases:
        of_framework = found.setdefault(listed.framework, {})
        for version, day in listed.days.items():
            of_framework.setdefault(version, (day, listed.source))
    return {name: dict(sorted(one.items(), key=lambda item: item[1][0])) for name, one in found.items()}


def release_day(text: str, framework: str | None = None) -> datetime.date | None:
    """The day of a release such as vllm 0.11.0; None for a text that names none.

    >>> release_day("vLLM v0.10.0")
    datetime.date(2025, 7, 24)

    Args:
        framework: whose release a text without a name means.

    Raises:
        InputError: for an engine or a release that nobody told us of, with what is known.
    """
    found = _RELEASE.fullmatch(text.strip())
    if found is None:
        return None
    known = known_releases()
    name = found["engine"] or framework
    if name is None:
        raise InputError(f"expected the engine before its release, as in vllm {found['version']}")
    engine = _engine(name)
    if engine not in known:
        raise InputError(
            f"no days of releases of {quoted(name)} are known, those of {', '.join(known)} are; expected a "
            "day such as 2026-11-23"
        )
    releases = known[engine]
    if found["version"] not in releases:
        newest, (day, _) = list(releases.items())[-1]
        raise InputError(
            f"no day of {engine} {found['version']:.40} is known; {near(found['version'], releases)[:120]}; "
            f"the newest known is {newest} of {day}: expected one of them, or the day"
        )
    return releases[found["version"]][0]


def _engine(name: str) -> str:
    """Our id of an engine, however it is spelled."""
    ids = {words(one): one for one in known_releases()}
    ids |= {words(spelling): one for spelling, one in _CALLED.items()}
    return ids.get(words(name), name)
