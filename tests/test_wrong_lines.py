"""Wrong command lines, made of the table of fields: refused in a line or two, with fault and way out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mantile.cli import main
from mantile.cli.flags import field_flag
from mantile.library.scenario_fields import SCENARIO_FIELDS

RIGHT = (
    *("estimate", "llama-3.1-8b", "--accelerator", "h100-sxm"),
    *("--input-tokens", "1024", "--output-tokens", "128", "--concurrency", "8"),
)
WAY_OUT = re.compile(
    r"expected|did you mean|known:|lists|such as|leave|give|state|use |needs|see |must|only|there is no"
)
MOST = 300


def _without(flag: str) -> tuple[str, ...]:
    """The right line without a flag and its value."""
    if flag not in RIGHT:
        return RIGHT
    at = RIGHT.index(flag)
    return (*RIGHT[:at], *RIGHT[at + 2 :])


def wrong_lines() -> Iterator[tuple[str, ...]]:
    """Each flag without a value, misspelt, with a text for a number, out of range, with no choice of its."""
    for name, declared in SCENARIO_FIELDS.items():
        flag = field_flag(name)
        line = _without(flag)
        if set(declared.choices) != {"on", "off"}:  # these need no value
            yield (*line, flag)
        yield (*line, f"{flag}x", "1")
        if declared.choices or declared.listed:
            yield (*line, flag, "no-such-thing")
        elif declared.kind in (int, float) and not declared.is_day:
            yield (*line, flag, "many")
            if declared.least is not None:
                yield (*line, flag, str(declared.least - 1))
            if declared.most is not None:
                yield (*line, flag, f"{declared.most * 10:.0f}")
        elif declared.is_day:
            yield (*line, flag, "yesterday")


LINES = [*wrong_lines()][:MOST]


def _refuse(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mantile", *line])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "", (line, err)
    assert 1 <= len(err.splitlines()) <= 2 and "Traceback" not in err, (line, err)
    assert WAY_OUT.search(err), (line, err)


def test_there_are_enough_lines() -> None:
    """Of every field."""
    assert len(LINES) >= MOST - 60 and {line[-1] for line in LINES} & {"many", "no-such-thing"}


@pytest.mark.parametrize("line", LINES[:: len(LINES) // 8], ids=" ".join)
def test_a_wrong_line_is_refused(
    line: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Some of each kind."""
    monkeypatch.chdir(tmp_path)
    _refuse(line, capsys, monkeypatch)
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_every_wrong_line_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit status 2, one or two lines, a way out; nothing is written."""
    monkeypatch.chdir(tmp_path)
    for line in LINES:
        _refuse(line, capsys, monkeypatch)
    assert not list(tmp_path.iterdir())
