"""The nearest measured run: of a run's own scenario it is that run, and it follows every cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import measured_runs
import pytest
from live import edit
from typer.testing import CliRunner

from mantile.cli import app
from mantile.estimates.estimate import estimate
from mantile.graph.quantity import Quantity
from mantile.library.profiles import Library
from mantile.library.runs import MOST, NOTHING_NEAR, REACH, MeasuredRuns
from mantile.measured.load import load_measurements
from mantile.verification.engines import soffice
from mantile.verification.verify import verify
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook

RUNS = {run.id: run for run in load_measurements(measured_runs.MEASURED).runs}
IDS = sorted(run.id for run in RUNS.values() if run.metrics.tpot_s is not None)
BASE: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}


def _found(**fields: Any) -> dict[str, Any]:
    found = estimate(**(BASE | fields)).results()["nearest_run"]
    assert isinstance(found, dict)
    return found


def test_the_runs_are_those_we_ship_as_estimated_now(library: Library) -> None:
    """profiles/runs.yaml is what .ci/measured_runs.py writes: facts exactly, estimates to their digits."""
    now, stored = measured_runs.measured_runs(), library.measured
    assert stored.estimated_by == now.estimated_by and len(stored.runs) == len(IDS)
    for run, made in zip(stored.runs, now.runs, strict=True):
        assert run.model_dump(exclude={"estimated"}) == made.model_dump(exclude={"estimated"})
        known, worked_out = (item.estimated.model_dump(exclude_none=True) for item in (run, made))
        assert known == pytest.approx(worked_out, rel=1e-3), run.id
    dates = [run.date for run in stored.runs if run.date[:1].isdigit()]
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("identifier", IDS[::20])
def test_of_its_own_scenario_a_run_is_the_nearest(identifier: str) -> None:
    """At distance 0, with nothing that differs; of runs of the same case the newest."""
    run = RUNS[identifier]
    found = estimate(run.scenario()).results()["nearest_run"]
    assert found["distance"] == 0 and found["differs"] == {}
    assert found["words"].endswith(" · here · all alike")
    other = RUNS[found["id"]]
    assert other is run or (other.date or "") >= (run.date or "")
    assert (other.model, other.accelerator, other.concurrency) == (
        run.model,
        run.accelerator,
        run.concurrency,
    )
    measured, given = found["measured"], other.metrics.given()
    assert measured == {name: given.get(name) for name in measured}
    assert found["source"] == other.source and found["date"] == other.date


def test_what_differs_is_told_and_counted() -> None:
    """By hand: another format of weights, of the cache, and doublings of the tokens."""
    found = _found()
    assert (found["id"], found["model"], found["framework"]) == ("s03236", "llama-3.3-70b", "vllm")
    assert found["differs"] == {
        "weights_dtype": ["bf16", "fp8"],
        "kv_dtype": ["bf16", "fp8"],
        "input_tokens": [2048, 7373],
        "output_tokens": [256, 922],
    }
    assert found["distance"] == pytest.approx(2 + 0.25 + (1.84805 + 1.84861) / 8, abs=1e-4)
    assert found["words"].endswith(" · here · bf16 · KV bf16 · 2,048 in · 256 out")
    assert 0 < found["measured"]["tpot_s"] != found["estimated"]["tpot_s"] > 0


def test_it_follows_accelerator_and_degrees() -> None:
    asked = {"weights_dtype": "fp8", "kv_dtype": "fp8"}
    ids = [_found(**asked, **more)["id"] for more in ({}, {"accelerator": "b200-sxm"}, {"tp": 2})]
    assert len(set(ids)) == 3
    assert _found(**asked, accelerator="b200-sxm")["accelerator"] == "b200-sxm"
    assert _found(**asked, tp=2)["differs"].get("plan") is None


def test_a_model_that_nobody_measured_says_so() -> None:
    """Runs of its kind stand in, not too many; the name and the size are among what differs."""
    made = estimate(**(BASE | {"model": "phi-4", "tp": 1}))
    found = made.results()["nearest_run"]
    assert found["differs"]["model"] == ["phi-4", found["model"]]
    assert found["distance"] > 1 and "active_parameters" in found["differs"]
    assert " · phi-4 · 14.7 B active" in found["words"]
    assert f"nearest.key.{MOST}" in made.equations.figures
    assert f"nearest.key.{MOST + 1}" not in made.equations.figures


def test_a_plan_that_cannot_be_has_one() -> None:
    made = estimate(**(BASE | {"tp": 1, "accelerator": "rtx-4090"}))
    found = made.results()
    assert not found["fits"] and found["tpot_s"] is None
    assert found["nearest_run"]["id"] in RUNS


def test_a_library_without_runs_has_none(library: Library) -> None:
    """As those of workbooks of earlier versions; nothing of it stands on Summary then."""
    bare = library.model_copy(update={"measured": MeasuredRuns()})
    made = estimate(**BASE, library=bare)
    assert made.results()["nearest_run"] is None
    assert not any(name.startswith("nearest.") for name in made.equations.figures)
    assert "nearest" not in " ".join(
        cell.text or "" for cell in lay_out(made).sheets["Summary"].cells.values()
    )


def test_one_of_each_accelerator_and_framework_comes_first(library: Library) -> None:
    runs = library.measured.runs
    near = library.measured.near("nobody's", "dense", 14e9)
    in_reach = [
        run for run in runs if run.family == "dense" and 14e9 / REACH < run.active_parameters < 14e9 * REACH
    ]
    pairs = {(run.accelerator, run.framework) for run in in_reach}
    assert len(near) == MOST and {run.family for run in near} == {"dense"}
    assert {(run.accelerator, run.framework) for run in near} == pairs
    assert near == tuple(run for run in runs if run in near)


def test_runs_of_a_model_of_the_same_size_stand_beside_its_own(library: Library) -> None:
    """For chips and engines of which it has none."""
    runs = library.measured.runs
    near = library.measured.near("llama-2-7b", "dense", 6.7e9)
    own = [run for run in runs if run.model == "llama-2-7b"]
    others = [run for run in near if run.model != "llama-2-7b"]
    assert all(run in near for run in own) and {run.model for run in others} == {"llama-3.1-8b"}
    assert len({(run.accelerator, run.framework) for run in near}) == len(others) + len(own)
    assert library.measured.near("nobody's", "dense", 5e8) == ()


@pytest.mark.parametrize(
    ("fields", "accelerator"),
    [
        ({"framework": "trtllm"}, "h100-sxm"),  # runs of it are of vLLM, and of B200 with TensorRT-LLM
        ({"framework": "sglang", "concurrency": 512, "input_tokens": 100}, "h100-sxm"),
        ({"model": "llama-2-7b", "tp": 1}, "h100-sxm"),  # its own runs are of an RTX 5090 and others
        ({"model": "deepseek-r1"}, "h100-sxm"),
        ({"accelerator": "mi300x", "framework": "vllm"}, "h100-sxm"),
        ({"accelerator": "rtx-4090", "framework": "llama.cpp"}, None),
        ({"model": "phi-4", "accelerator": "mi300x", "tp": 1}, None),
    ],
)
def test_the_accelerator_weighs_more_than_engine_plan_and_lengths(
    fields: dict[str, Any], accelerator: str | None
) -> None:
    """Beyond the limit nothing is near, which is said."""
    made = estimate(**(BASE | fields))
    found = made.results()["nearest_run"]
    assert (found and found["accelerator"]) == accelerator
    assert made.equations.nearest
    values = made.values()
    if found is None:
        assert values[made.equations.rows.node("nearest.words")] == "Nothing near was measured"
        assert values[made.equations.rows["nearest.id"]] == NOTHING_NEAR
        assert values[made.equations.rows["nearest.distance"]] > 24


def test_of_another_kind_or_size_nothing_is_near() -> None:
    """The graph has no candidates then; Summary and the command line say it."""
    made = estimate(**(BASE | {"model": "qwen3-0.6b", "tp": 1}))
    assert not made.equations.nearest and made.results()["nearest_run"] is None
    texts = [cell.text or "" for cell in lay_out(made).sheets["Summary"].cells.values()]
    assert "Nothing near was measured" in texts
    asked = ["estimate", "qwen3-0.6b", "--accelerator", "h100-sxm", "--all", "--isl", "64", "--osl", "64"]
    assert "Nothing near was measured" in CliRunner().invoke(app, [*asked, "--concurrency", "1"]).output


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_an_edited_workbook_has_another_nearest_run(tmp_path: Path) -> None:
    """Accelerator and TP typed over on Summary: LibreOffice, formulas and a new build agree."""
    asked = BASE | {"weights_dtype": "fp8", "kv_dtype": "fp8"}
    made = estimate(**asked)
    book, path = lay_out(made), build_workbook(made, tmp_path / "run.xlsx")
    assert lint(path) == []
    changes = {"accelerator": "b200-sxm", "tp": 2}

    def type_over(opened: Any) -> None:
        for name, value in changes.items():
            sheet, row, column = book.input_cells[f"inputs.{name}", 0]
            opened[sheet].cell(row + 1, column + 1).value = value

    edited = edit(path, tmp_path / "edited.xlsx", type_over)
    for engine in ("formulas", "libreoffice"):
        report = verify(edited, engine)
        assert report.ok and not report.to_dict()["mismatches"], engine
    again = estimate(**(asked | changes))
    assert again.results()["nearest_run"]["id"] != made.results()["nearest_run"]["id"]
    assert again.results()["nearest_run"]["accelerator"] == "b200-sxm"


@pytest.mark.exhaustive
def test_the_line_of_summary_leads_to_the_block() -> None:
    book = lay_out(estimate(**BASE))
    address = book.addresses[_line(book)]
    cell = book.sheets[address.sheet].cells[address.row, address.column or 0]
    place, _, row = (cell.link or "").rpartition("A")
    assert place == "internal:'Calculation'!"
    assert book.sheets["Calculation"].cells[int(row) - 1, 0].text == "Nearest measured run"


def _line(book: EstimateBook) -> Quantity:
    """The line of Summary."""
    found = [figure for figure in book.addresses if figure.id == "summary.nearest"]
    assert len(found) == 1 and isinstance(found[0], Quantity)
    return found[0]


def test_many_cases_have_the_run_of_each() -> None:
    """Swept at once, degrees in texts included, as one by one."""
    made = estimate(**BASE)
    assert made.equations.nearest
    place = made.equations.rows["nearest.place"]
    degrees = [1, 2, 4, 8]
    swept = made.program.sweep(made.inputs(0) | {"inputs.tp": degrees}, [place])[place]
    assert list(swept) == [estimate(**(BASE | {"tp": tp})).values()[place] for tp in degrees]
    assert len(set(swept)) > 1
