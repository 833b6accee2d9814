"""Wrong command lines, made of the table of fields: one or two lines that name the fault and a way out."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import exit_status

from mantile.library.fields import ScenarioField
from mantile.library.scenario import SCENARIO_FIELDS

RIGHT = {"accelerator": "h100-sxm", "input_tokens": "1000", "output_tokens": "100", "concurrency": "4"}
WAY_OUT = re.compile(r"expected|did you mean|known:|choose|one of|should be|see |--help", re.IGNORECASE)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _values(declared: ScenarioField) -> Iterator[str]:
    """Values that a field cannot have."""
    if declared.choices or declared.listed:
        first = declared.choices[0] if declared.choices else "h100-sxm"
        yield from (f"{first}q", "=1+1", "\u202ex")
        return
    if declared.kind is str:
        return
    yield from ("many", "nan", "1,2,3,4", "[1]")
    if declared.kind is int and not declared.is_day:
        yield "1.5"
    if declared.least is not None:
        yield f"{declared.least - 1:g}"
    if declared.most is not None:
        yield f"{declared.most * 2 + 1:g}"


def _lines() -> list[tuple[str, list[str]]]:
    """What is wrong, and a command line that is right but for that."""
    made: list[tuple[str, list[str]]] = []
    flags = {_flag(name) for name in SCENARIO_FIELDS}
    for name, declared in SCENARIO_FIELDS.items():
        given = {_flag(key): value for key, value in RIGHT.items()}
        for value in _values(declared):
            made.append((name, [part for pair in (given | {_flag(name): value}).items() for part in pair]))
        misspelt = _flag(name)[:-2] + _flag(name)[-1] + _flag(name)[-2]
        if misspelt not in flags:
            made.append((misspelt, [*(part for pair in given.items() for part in pair), misspelt, "1"]))
    return made


LINES = _lines()
SAMPLE = random.Random(20).sample(range(len(LINES)), 20)


def _check(lines: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for place, (name, words) in enumerate(lines):
        command = ("estimate", "build")[place % 2]
        status = exit_status(command, "llama-3.2-1b", *words, *(("-o", "run.xlsx") if place % 2 else ()))
        out, told = capsys.readouterr()
        short = name.lstrip("-").replace("-", "_")[:8]
        if (
            status != 2
            or out
            or not 1 <= len(told.splitlines()) <= 2
            or not WAY_OUT.search(told)
            or short not in told.replace("-", "_")
            or "Traceback" in told
            or len(told) > 2500  # all that it may be
            or "\u202e" in told
        ):
            wrong.append((status, words[-4:], out[:80], told))
    assert not wrong, "\n".join(map(str, wrong))
    assert list(Path().iterdir()) == []


def test_wrong_lines_name_the_fault_and_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, nothing on stdout, nothing written."""
    monkeypatch.chdir(tmp_path)
    _check([LINES[place] for place in SAMPLE], capsys)


@pytest.mark.exhaustive
def test_all_wrong_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong kinds, out of range, misspelt flags and values of every field."""
    assert len(LINES) > 300
    monkeypatch.chdir(tmp_path)
    _check(LINES, capsys)
