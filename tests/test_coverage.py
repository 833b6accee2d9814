"""Whether measured runs lie inside the 80 % ranges that estimates state for them."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.cli import app
from mantile.library.scenario import parse_scenario
from mantile.measured.coverage import RANGES
from mantile.measured.load import load_measurements
from mantile.measured.reconcile import reconcile
from mantile.measured.report.write import report_book

LLAMA: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "framework": "vllm",
    "input_tokens": 512,
    "output_tokens": 256,
}
CLOSED = LLAMA | {"concurrency": 8, "prompts_per_slot": 10}
CASES: dict[str, dict[str, Any]] = {
    "known": CLOSED | {"accelerator": "h100-sxm"},
    "slow": CLOSED | {"accelerator": "gaudi3", "tp": 2},
    "other chip": CLOSED | {"accelerator": "a100-80gb-sxm"},
    "one user": LLAMA | {"accelerator": "rtx-4090", "framework": "llama.cpp", "concurrency": 1},
    "over": LLAMA | {"accelerator": "h100-sxm", "request_rate": 500},
    "large": CLOSED | {"model": "llama-3.1-70b", "accelerator": "rtx-4090"},
}
OFF = {
    "known": {"ttft_s": 1.1, "tpot_s": 1.1, "e2e_s": 1.1, "output_tokens_per_s": 0.9},
    "slow": {"ttft_s": 5.0, "tpot_s": 4.0, "e2e_s": 1.3, "output_tokens_per_s": 0.8},
    "other chip": {"tpot_s": 1.25, "output_tokens_per_s": 0.8, "e2e_s": 0.2},
    "one user": {"prefill_tokens_per_s": 0.9, "tpot_s": 1.1},
}
"""Measured ÷ predicted of runs that are compared."""
OF_RANGE = {"ttft_s": "ttft", "tpot_s": "tpot", "e2e_s": "e2e", "output_tokens_per_s": "throughput"}
OF_RANGE |= {"prefill_tokens_per_s": "prefill_rate"}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """What an estimate of each case says."""
    return {name: mt.estimate(parse_scenario(case, name)).results() for name, case in CASES.items()}


@pytest.fixture
def runs(answers: dict[str, dict[str, Any]], tmp_path: Path) -> Path:
    """Six runs, measured as OFF says; and a record that does not say how many requests were in flight."""
    metrics = {
        name: {metric: off * answers[name][metric] for metric, off in OFF[name].items()}
        if name in OFF
        else {"ttft_s": 0.5, "tpot_s": 0.02}
        for name in CASES
    }
    records = [
        case | {"id": name, "source": "mine", "metrics": metrics[name]} for name, case in CASES.items()
    ]
    records.append(LLAMA | {"id": "silent", "accelerator": "h100-sxm", "metrics": {"tpot_s": 0.01}})
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def by_hand(answers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Runs with a range and those inside it, by metric and by evidence, from estimates of one run each."""
    found: dict[str, dict[str, Any]] = {}
    for name, measured in OFF.items():
        for metric, off in measured.items():
            ends = answers[name]["range_80"][OF_RANGE[metric]]
            inside = ends["p10"] <= off * answers[name][metric] <= ends["p90"]
            compared = next(key for key, of in RANGES.items() if of == OF_RANGE[metric])
            of_metric = found.setdefault(compared, {"n": 0, "inside": 0, "by_evidence": {}})
            words = of_metric["by_evidence"].setdefault(answers[name]["evidence"], {"n": 0, "inside": 0})
            for counts in (of_metric, words):
                counts["n"] += 1
                counts["inside"] += inside
    return found


def test_coverage_is_what_counting_by_hand_gives(answers: dict[str, dict[str, Any]], runs: Path) -> None:
    """Ranges of one estimate a run; rows that do not fit, are overloaded or lack what decides do not
    count."""
    expected = by_hand(answers)
    assert (expected["tpot"]["n"], expected["tpot"]["inside"]) == (4, 3)
    assert len(expected["tpot"]["by_evidence"]) == 3 and expected["e2e"]["inside"] == 2
    found = reconcile(load_measurements(runs))
    assert found.coverage() == expected == found.to_dict()["coverage"]
    told = found.to_dict()
    assert told["excluded"] == {"OVERLOADED": 1, "INSUFFICIENT_MEMORY": 1, "NOT_PREDICTED": 1}
    assert told["answered"] + sum(told["excluded"].values()) == told["rows"] == 7
    assert [reason for reason in told["reasons"] if "concurrency" in reason]


def test_tables_have_the_ranges_and_what_is_inside(
    answers: dict[str, dict[str, Any]], runs: Path, tmp_path: Path
) -> None:
    """Beside what was measured; in the report a formula says whether it is inside."""
    path = tmp_path / "all.csv"
    shown = CliRunner().invoke(app, ["reconcile", str(runs), "-o", str(path)])
    assert shown.exit_code == 0 and "80 % range of" in shown.output
    rows = {row["id"]: row for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())}
    ends = answers["slow"]["range_80"]
    for what, percentile in (("low", "p10"), ("high", "p90")):
        row = rows["slow"]
        assert float(row[f"tpot_{what}"]) == pytest.approx(ends["tpot"][percentile])
        assert float(row[f"throughput_{what}"]) == pytest.approx(ends["throughput"][percentile] / 2)
    assert (rows["slow"]["tpot_inside"], rows["known"]["tpot_inside"]) == ("False", "True")
    assert rows["slow"]["evidence"] == answers["slow"]["evidence"]
    assert not rows["over"]["tpot_inside"] and not rows["large"]["tpot_inside"]
    assert not rows["large"]["tpot_high"] and not rows["known"]["prefill_inside"]
    sheet = report_book(reconcile(load_measurements(runs))).sheets["Runs"]
    heads = [cell.text for (line, _), cell in sorted(sheet.cells.items()) if line == 4]
    assert heads.count("inside") == heads.count("low") == len(RANGES)


def test_words_from_twenty_runs_on(tmp_path: Path, answers: dict[str, dict[str, Any]]) -> None:
    """Too narrow or too wide is said of twenty runs and more, and of no fewer."""
    tpot = answers["known"]["tpot_s"]
    path = tmp_path / "many.csv"
    for outside, words in ((8, "60 %: too narrow"), (4, "80 %"), (0, "100 %: too wide")):
        lines = [
            f"llama-3.1-8b,h100-sxm,vllm,512,256,8,10,{tpot * (2 if n < outside else 1)}" for n in range(20)
        ]
        fields = "model,accelerator,framework,input_tokens,output_tokens,concurrency,prompts_per_slot,tpot_s"
        path.write_text("\n".join((fields, *lines)) + "\n", encoding="utf-8")
        shown = CliRunner().invoke(app, ["reconcile", str(path)], env={"COLUMNS": "160"}).output
        assert words in shown and ("too" in words) == ("too narrow" in shown or "too wide" in shown)
        path.write_text("\n".join((fields, *lines[1:])) + "\n", encoding="utf-8")
        fewer = CliRunner().invoke(app, ["reconcile", str(path)], env={"COLUMNS": "160"}).output
        assert "too narrow" not in fewer and "too wide" not in fewer


def test_a_range_that_nobody_knows_does_not_count(tmp_path: Path) -> None:
    """A median has no range, nor has a metric that was not measured."""
    path = tmp_path / "medians.json"
    record = CASES["known"] | {"id": "one", "source": "mine", "metrics": {"tpot_p50_s": 0.01}}
    path.write_text(json.dumps([record]), encoding="utf-8")
    found = reconcile(load_measurements(path))
    assert found.coverage() == {} and not math.isnan(found.table["tpot_low"][0])
    assert found.metrics()["tpot_p50"]["n"] == 1
