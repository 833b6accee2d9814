"""Drift: the right alarm, in the right month, and no other."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mantile.cli import main
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.measured import drift as module
from mantile.measured.drift import drift
from mantile.measured.reconcile import reconcile
from mantile.measured.recorded import record_of
from mantile.measured.runs import Measurements, Run, parse_run
from mantile.records.store import Stored, add, stored

LOADS = (1, 2, 4)


def runs(framework: str) -> list[dict[str, Any]]:
    """Runs that are measured as they are predicted, and the memory that is predicted."""
    asked = [
        {
            "id": f"{framework}{load}",
            "model": "llama-3.1-8b",
            "accelerator": "rtx-4090",
            "framework": framework,
            "input_tokens": 512,
            "output_tokens": 64,
            "concurrency": load,
            "source": "made for a test",
        }
        for load in LOADS
    ]
    made = [parse_run({**one, "metrics": {"tpot_s": 1.0, "ttft_s": 1.0}}, "r") for one in asked]
    table = reconcile(Measurements(tuple(made))).table.set_index("id")
    memory = module._predicted_memory(made, load_library())
    return [
        {
            **one,
            "tpot": float(table.loc[one["id"], "tpot_predicted"]),
            "ttft": float(table.loc[one["id"], "ttft_predicted"]),
            "memory": memory[str(one["id"])],
        }
        for one in asked
    ]


@pytest.fixture(scope="module")
def predicted() -> dict[str, list[dict[str, Any]]]:
    """Runs of two engines, predicted once."""
    return {framework: runs(framework) for framework in ("llama.cpp", "vllm")}


def records(
    made: list[dict[str, Any]], month: str, tpot: float = 1, ttft: float = 1, memory: float = 1
) -> list[Stored]:
    """Records of a month, slower or larger than predicted by factors."""
    found = []
    for day, one in enumerate(made, 1):
        fields = {name: value for name, value in one.items() if name not in ("tpot", "ttft", "memory")}
        run: Run = parse_run(
            {
                **fields,
                "metrics": {"tpot_s": tpot * one["tpot"], "ttft_s": ttft * one["ttft"]},
                "environment": {"framework_version": "1.0"},
                "date": f"{month}-{day:02}",
            },
            "r",
        )
        found.append(stored(record_of(run, metrics={"memory_peak_bytes": memory * one["memory"]})))
    return found


@pytest.mark.parametrize(
    ("slower", "alarms"),
    [
        ({"tpot": 1.15}, ["decode"]),
        ({"tpot": 0.85}, ["decode"]),
        ({"tpot": 1.11, "ttft": 1.17, "memory": 1.06}, []),
        ({"ttft": 1.15}, []),
        ({"ttft": 1.2}, ["ttft"]),
        ({"memory": 1.08}, ["memory"]),
    ],
    ids=str,
)
def test_the_right_alarm_and_no_other(
    slower: dict[str, float], alarms: list[str], predicted: dict[str, list[dict[str, Any]]]
) -> None:
    """A slow-down of 15 % is one of decode; the other engine, and the month before, raise none."""
    measured = [
        *records(predicted["llama.cpp"], "2026-10"),
        *records(predicted["llama.cpp"], "2026-11", **slower),
        *records(predicted["vllm"], "2026-11", memory=1.5),
    ]
    found = drift(measured)
    assert [(alarm["framework"], alarm["month"], alarm["metric"]) for alarm in found.alarms] == [
        ("llama.cpp", "2026-11", metric) for metric in alarms
    ]
    (old, new), (other,) = (
        found.groups["llama-3.1-8b", "rtx-4090", engine, "1.0"] for engine in ("llama.cpp", "vllm")
    )
    for metric, name in (("decode", "tpot"), ("ttft", "ttft"), ("memory", "memory")):
        assert old.shifts[metric] == pytest.approx(0, abs=1e-9)
        assert new.shifts[metric] == pytest.approx(slower.get(name, 1) - 1, abs=1e-9)
    assert other.shifts["memory"] is None, "an engine that takes its share at once"


def test_what_is_over_is_no_alarm(predicted: dict[str, list[dict[str, Any]]]) -> None:
    """An older month that was slow stands there, and raises none."""
    measured = [
        *records(predicted["vllm"], "2026-11"),
        *records(predicted["vllm"], "2026-09", tpot=1.5),
    ]
    found = drift(measured)
    assert not found.alarms
    (periods,) = found.groups.values()
    assert [(period.month, round(period.shifts["decode"] or 0, 3)) for period in periods] == [
        ("2026-09", 0.5),
        ("2026-11", 0.0),
    ]
    with pytest.raises(InputError, match="limit speed: expected one of decode, ttft, memory"):
        drift(measured, {"speed": 0.1})
    with pytest.raises(InputError, match="records: no records in it"):
        drift([])


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run a command in the folder: its status and what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mantile", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out + told.err

    return run


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
def test_command(
    predicted: dict[str, list[dict[str, Any]]], tmp_path: Path, say: Callable[..., tuple[int, str]]
) -> None:
    """Status 1 on an alarm, limits that may be set, JSON, and a report that verifies."""
    add(tmp_path / "records.db", records(predicted["vllm"], "2026-10"))
    assert say("records", "drift", "records.db")[0] == 0
    add(tmp_path / "records.db", records(predicted["vllm"], "2026-11", tpot=1.15))
    status, text = say("records", "drift", "records.db", "--json", "-o", "drift.xlsx")
    data = json.loads(text)
    assert status == 1 and [alarm["metric"] for alarm in data["alarms"]] == ["decode"]
    assert data["alarms"][0]["shift"] == pytest.approx(0.15) and data["limits"]["memory"] == 0.07
    assert [month["month"] for month in data["groups"][0]["months"]] == ["2026-10", "2026-11"]
    status, text = say("records", "drift", "records.db")
    assert status == 1 and "alarm: llama-3.1-8b on rtx-4090 with vllm 1.0, 2026-11: decode +15.0 %" in text
    assert say("records", "drift", "records.db", "--limit", "decode=16")[0] == 0
    assert say("records", "drift", "records.db", "--limit", "decode=x")[0] == 2
    status, text = say("records", "drift", "records.db", "--retrain", "new", "--json")
    (file,) = json.loads(text)["profiles"]
    assert status == 1 and "vllm 1.0" in Path(file).read_text()
    assert say("records", "drift", "records.db", "--profile", file)[0] == 0, "as fast as the new version says"
    assert say("records", "drift", "records.db", "--retrain", "new")[0] == 2, "a version is never overwritten"
    status, text = say("list", "profiles", "diff", file, file, "--json")
    assert status == 0 and json.loads(text)["differences"] == []
    base = Path(file).name.partition("@")[0]
    known = load_library().efficiency
    if any(profile.id == base for profile in known):
        status, text = say("list", "profiles", "diff", base, file, "--json")
        differences = json.loads(text)["differences"]
        assert status == 0 and differences and all(one["a"] != one["b"] for one in differences)
    import openpyxl

    shown, formulas = (
        openpyxl.load_workbook(tmp_path / "drift.xlsx", data_only=values)["Drift"] for values in (True, False)
    )
    cells = [cell for row in shown.iter_rows() for cell in row if cell.value in ("alarm", "within")]
    assert [cell.value for cell in cells] == ["alarm", "within"]
    for cell, limit in zip(cells, ("G5", "H5"), strict=True):  # both follow the cell of their limit
        live = str(formulas[cell.coordinate].value).replace("$", "")
        assert live.startswith("=IF(") and limit in live and "ABS(" in live
