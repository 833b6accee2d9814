"""Choices as people ask for them: what a terminal shows, what is written, auto, prefill apart from decode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from live import exit_status, few

from mantile.equations.measures import measure
from mantile.estimates.estimate import estimate
from mantile.library.errors import InputError
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.search.auto import chosen
from mantile.search.optimize import optimize
from mantile.workbook.layout import lay_out

ASKED = ("--isl", "1000", "--osl", "200", "--concurrency", "16", "--framework", "vllm", "--gpus-max", "2")
SMALL = ("optimize", "llama-3.1-8b", *ASKED, "--accelerator", "h100-sxm,l40s")


def test_the_answer_is_shown_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The winner and why, every other candidate with its cause, and what was out."""
    assert exit_status(*SMALL, "--tpot-max", "0.02") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Take ") and "USD per million output tokens" in shown
    assert "the best of those that keep every limit" in shown and "LIMIT_TPOT_S" in shown
    head = shown[: shown.index("plans tried")]
    assert max(map(len, head.splitlines())) <= 90


def test_nothing_that_keeps_a_limit_tells_the_nearest_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(*SMALL, "--tpot-max", "0.0001") == 1
    assert "The nearest miss is " in capsys.readouterr().out


def test_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of all plans, the scenario of the winner, and what starts it."""
    monkeypatch.chdir(tmp_path)
    assert exit_status(*SMALL, "-o", "plans.csv") == 0
    table = pd.read_csv("plans.csv")
    assert table["rank"].iloc[0] == 1 and set(table["accelerator"]) == {"h100-sxm", "l40s"}
    assert exit_status(*SMALL, "-o", "best.yaml", "--launch", "start", "--kubernetes") == 0
    scenario = load_scenario("best.yaml")
    assert scenario.decision is not None and scenario.accelerator == table["accelerator"].iloc[0]
    assert "vllm serve" in Path("start/launch.sh").read_text(encoding="utf-8")
    assert [*yaml.safe_load_all(Path("start/kubernetes.yaml").read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("-o", "best.pdf"), "ends in .xlsx, .yaml or .csv"),
        (("--launch", "no/such/folder"), "expected a folder"),
        (("--objective", "speed of light"), "unknown measure"),
        (("--objective", "-1*cost"), "weights above 0"),
        (("--limit", "tpot_s>=1"), "expected <="),
        (("--limit", "tpot"), "MEASURE<=NUMBER"),
        (("--makers", "nobody"), "unknown maker"),
        (("--search", "everything"), "disaggregated"),
        (("--gpus-max", "0"), "gpus_max"),
    ],
)
def test_what_is_refused(more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(*SMALL, *more) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["optimize", "size"])
def test_gpus_are_the_most_that_a_plan_may_have(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Under each of its names, as its help says; one is one, and what holds is told."""
    told = []
    line = (command, "llama-3.1-8b", *ASKED[:-2], "--accelerator", "h100-sxm")
    for flag in ("--gpus", "--num-gpus", "--gpus-max"):
        assert exit_status(*line, flag, "2", "--json") == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] == told[2] and told[0]["cap"] == {"gpus_max": 2}
    assert told[0]["tried"] > 8
    assert exit_status(*line, "--gpus", "1", "--json") == 0
    one = json.loads(capsys.readouterr().out)
    plans = one.get("candidates") or one["tiers"].values()
    assert {plan["metrics"]["accelerators"] for plan in plans} == {1}
    assert exit_status(*line, "--gpus", "1") == 0
    assert "At most 1 GPU (--gpus-max)." in capsys.readouterr().out


def test_auto_takes_no_plan_with_a_wait_of_minutes_where_another_keeps_the_limit() -> None:
    """Where none does it takes the nearest, and says by how much it misses."""
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "l4", "tp": "auto", "dp": "auto"}
    fields |= {"input_tokens": 8000, "output_tokens": 300, "concurrency": 40}
    made, found = chosen(fields, "auto")
    results = estimate(parse_scenario(made, "auto")).results()
    assert results["ttft_p95_s"] <= 10 and "TTFT, p95 ≤ 10.0 s by default" in found.words
    assert found.found.infeasible["LIMIT_TTFT_P95_S"] > 0
    made, found = chosen(fields | {"concurrency": 400}, "auto")
    assert not found.has_winner and "comes nearest: TTFT, p95 ≤ 10.0 s is missed by" in found.words
    waits = found.found.plans["ttft_p95_s"]
    assert estimate(parse_scenario(made, "auto")).results()["ttft_p95_s"] == pytest.approx(waits.min())


def test_auto_is_the_plan_that_optimize_finds(capsys: pytest.CaptureFixture[str]) -> None:
    """It stands where auto did; why is told; what is not left open stays."""
    fields = {
        "model": "llama-3.1-8b", "accelerator": "l40s", "tp": "auto", "dp": "auto",
        "input_tokens": 1000, "output_tokens": 200, "concurrency": 64,
    }  # fmt: skip
    made, found = chosen(fields, "auto")
    best = optimize(
        model="llama-3.1-8b", accelerator="l40s", framework="vllm", weights_dtype="bf16", kv_dtype="bf16",
        pp=1, cp=1, attention_dp=1, ep=1, input_tokens=1000, output_tokens=200, concurrency=64,
    )  # fmt: skip
    assert best.winner is not None and found.winner is not None
    assert (made["tp"], made["dp"]) == (best.winner.plan["tp"], best.winner.plan["dp"])
    assert parse_scenario(made, "auto").framework is None
    asked = ("estimate", "llama-3.1-8b", "--accelerator", "l40s", "--tp", "auto", *ASKED[:6])
    assert exit_status(*asked) == 0
    assert capsys.readouterr().err.startswith("[AUTO] Take L40S")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"input_tokens": "auto"}, "auto holds for"),
        ({"tp": "auto", "variants": [{"tp": "auto"}]}, "in the base"),
        ({"tp": "auto", "concurrency": None}, "concurrency is missing"),
        ({"tp": "auto", "accelerator": None}, "accelerator is missing"),
    ],
)
def test_where_auto_says_nothing(fields: dict[str, object], words: str) -> None:
    base = {
        "model": "llama-3.1-8b",
        "accelerator": "l40s",
        "input_tokens": 9,
        "output_tokens": 9,
        "concurrency": 1,
    }
    with pytest.raises(InputError, match=words):
        chosen({key: value for key, value in (base | fields).items() if value is not None}, "auto")


@pytest.mark.parametrize("load", [{"concurrency": 32}, {}])
def test_prefill_and_decode_apart_are_searched_too(load: dict[str, int]) -> None:
    """Plans with both on the same workers are as without; others are what an estimate says of them."""
    asked = {
        "model": "llama-3.1-8b", "input_tokens": 2000, "output_tokens": 100, "framework": "vllm",
        "kv_dtype": "bf16", "weights_dtype": "bf16", "accelerator": "h100-sxm", "pp": 1, "gpus_max": 3,
        "objective": "tpot",
        "limits": {"ttft_p95": 5.0}, "library": few(("h100-sxm",)),
    }  # fmt: skip
    together = optimize(**asked, **load)
    both = optimize(**asked, **load, search=["disaggregated"])
    plans = both.found.plans
    assert set(plans["serving"]) == {"aggregated", "disaggregated"}
    same = plans[plans["serving"] == "aggregated"].sort_values(["tp", "attention_dp", "dp"])
    alone = together.found.plans.sort_values(["tp", "attention_dp", "dp"])
    assert same["tpot_s"].to_numpy() == pytest.approx(alone["tpot_s"].to_numpy(), rel=1e-12)
    assert both.found.tried == len(plans) + sum(
        count for code, count in both.found.infeasible.items() if not code.startswith("LIMIT")
    )
    apart = next(plan for plan in both.candidates if plan.plan.get("serving") == "disaggregated")
    decode = {
        key.removeprefix("decode_"): value for key, value in apart.plan.items() if key.startswith("decode_")
    }
    fields = {key: value for key, value in apart.plan.items() if not key.startswith("decode_")}
    base = {"model": "llama-3.1-8b", "input_tokens": 2000, "output_tokens": 100, **load}
    alone_again = estimate(
        parse_scenario(base | fields | {"decode": decode}, "apart"), library=asked["library"]
    )
    assert apart.results["tpot_s"] == pytest.approx(alone_again.results()["tpot_s"], rel=1e-12)
    assert " → " in apart.name and measure("tpot").metric.label == "TPOT"


def test_size_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "--users",
        "16",
        "--isl",
        "1000",
        "--osl",
        "200",
        "--tpot",
        "0.04",
        "--accelerator",
        "l40s,h100-sxm",
    )
    assert exit_status("size", "llama-3.1-8b", *asked, "--framework", "vllm", "--gpus-max", "2") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("minimum", "good", "best", "memory of all accelerators together"))


@pytest.mark.exhaustive
def test_capacity_has_its_sheets() -> None:
    """What the front says is what the workings come to."""
    scenario = load_scenario(str(Path(__file__).parents[1] / "workbooks/capacity-llama-3.3-70b-b200.yaml"))
    book = lay_out(estimate(scenario, library=few(("b200-sxm", "h100-sxm"))))
    assert "Finance" in book.sheets["Calculation"].parts and "Capacity" in book.sheets
    values = book.values(book.generated_inputs())
    titles = [
        values[cell.scenario][cell.expression]
        for (row, column), cell in book.sheets["Capacity"].cells.items()
        if cell.expression is not None and row < 4 and column == 0
    ]
    assert any("replicas carry the peak" in str(title) for title in titles)


@pytest.mark.parametrize("field", ["kv_dtype", "weights_dtype", "system", "framework", "accelerator"])
def test_a_name_that_the_library_lacks_is_refused(field: str) -> None:
    """Fixed or listed; other spellings of a name that there is are that name."""
    asked: dict[str, Any] = {"model": "gpt-oss-20b", "accelerator": "h100-sxm"}
    asked |= {"input_tokens": 500, "output_tokens": 50, "concurrency": 4}
    rest = {name: value for name, value in asked.items() if name != field}
    with pytest.raises(InputError, match="'nothing'"):
        optimize(gpus_max=1, **asked | {field: "nothing"})
    with pytest.raises(InputError, match="'nothing'"):
        optimize(gpus_max=1, over={field: ["nothing"]}, **rest)
    if field == "kv_dtype":
        assert optimize(gpus_max=1, **asked, kv_dtype="fp8_e4m3").scenario.kv_dtype == "fp8"
