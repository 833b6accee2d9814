"""Corrections: files of multipliers, their rows beside the results, and how they are fitted."""

from __future__ import annotations

import json
from datetime import date
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.cli import app
from mantile.estimates.catalogue import differences
from mantile.library.correction import Correction, load_correction
from mantile.library.dates import serial
from mantile.library.dump import dump_yaml
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.measured import correct
from mantile.measured.runs import parse_run

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "framework": "vllm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
GROUP = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "framework": "vllm", "runs": 30}
STATED: dict[str, Any] = {
    "id": "mine",
    "version": "2026-11-26",
    "source": "made up",
    "metrics": [
        {
            "metric": "tpot",
            "groups": [GROUP | {"newest": "2026-11-01", "step": 0.1}],
            "along": [{"what": "concurrency", "starts": [0, 8, 64], "steps": [-0.02, 0.01, 0.05]}],
            "low": -0.1,
            "high": 0.12,
        }
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A correction of TPOT."""
    made = Correction.model_validate(STATED).sealed()
    path = tmp_path / "mine.yaml"
    path.write_text(dump_yaml(made.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    return path


def test_correction_stands_beside_the_result(file: Path) -> None:
    """Physics stays what it was; the multiplier follows runs and steps, and is 1 where there are none."""
    without = mt.estimate(mt.Scenario(**ASKED))
    elsewhere = [{"accelerator": "h200-sxm"}, {"framework": "sglang"}, {"batching": "static"}]
    corrected = mt.estimate(mt.Scenario(**ASKED, correction=str(file), variants=elsewhere))
    assert corrected.tpot == without.tpot
    assert "correction.version" not in without.equations.figures
    found = corrected.results(0)["correction"]["tpot"]
    multiplier = exp(30 / 40 * (0.1 + 0.01))
    assert found["multiplier"] == pytest.approx(multiplier, rel=1e-12)
    assert found["p50"] == pytest.approx(without.tpot * multiplier, rel=1e-12)
    assert found["p10"] == pytest.approx(found["p50"] * exp(-0.1), rel=1e-12)
    assert (found["runs"], found["newest"]) == (30, "2026-11-01")

    for column, changed in enumerate(elsewhere, 1):
        other = corrected.results(column)
        assert other["correction"]["tpot"]["multiplier"] == 1, changed
        assert other["correction"]["tpot"]["runs"] == 0
        assert other["correction"]["tpot"]["p10"] == other["range_80"]["tpot"]["p10"]


def test_memory_is_corrected_too(tmp_path: Path) -> None:
    """In its own unit; where no run is behind it, the range of start-up logs holds."""
    path = tmp_path / "memory.yaml"
    of_memory = {"metric": "peak_memory", "groups": [GROUP | {"step": 0.1}], "low": -0.01, "high": 0.02}
    path.write_text(dump_yaml(STATED | {"metrics": [of_memory]}), encoding="utf-8")
    made = mt.estimate(mt.Scenario(**ASKED, correction=str(path), variants=[{"accelerator": "h200-sxm"}]))
    found = made.results()["correction"]["peak_memory"]
    assert found["p50"] == pytest.approx(made.results()["peak_memory_bytes"] * exp(0.075), rel=1e-12)
    other = made.results(1)
    assert other["correction"]["peak_memory"]["p90"] == other["memory_range_80"]["peak_memory"]["p90"]
    assert made.equations.figures["correction.peak_memory.p50"].unit == "B"


@pytest.mark.exhaustive
def test_learns_memory() -> None:
    """A server that takes a tenth more than is said, whatever is asked of it: one step, no others."""
    pytest.importorskip("sklearn")
    asked = [
        ASKED | {"tp": tp, "concurrency": many} for tp in (1, 2, 4) for many in (1, 2, 4, 8, 16, 32, 64, 128)
    ]
    made = [mt.estimate(mt.Scenario(**one)).results()["peak_memory_bytes"] for one in asked]
    runs = [
        parse_run(one | {"id": str(n), "metrics": {"peak_memory_bytes": peak * 1.1}}, "run")
        for n, (one, peak) in enumerate(zip(asked, made, strict=True))
    ]
    learned = correct.learn(runs)
    assert learned.correction is not None
    (one,) = learned.correction.metrics
    assert (one.metric, one.along) == ("peak_memory", ())
    assert one.groups[0].step == pytest.approx(log(1.1), abs=1e-5)


@pytest.mark.exhaustive
def test_correction_is_live_in_the_workbook(file: Path, tmp_path: Path) -> None:
    """The rows follow edits; the workbook verifies, lints and is read back without the file.

    So do those of the day of the engine.
    """
    book = tmp_path / "run.xlsx"
    mt.estimate(mt.Scenario(**ASKED, correction=str(file), engine_date="2026-11-26")).to_excel(book)
    file.unlink()
    assert mt.verify(book).ok
    assert not mt.lint(book)
    again = mt.import_workbook(book)
    assert again.estimate["correction.tpot.multiplier"].value == pytest.approx(exp(0.0825), rel=1e-12)
    assert again.scenario.engine_date == serial(date(2026, 11, 26))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"digest": "0" * 16}, "digest: the correction was changed since it was fitted"),
        ({"metrics": []}, "metrics"),
        ({"metrics": [STATED["metrics"][0] | {"low": 0.1}]}, "low"),
        (
            {"metrics": [STATED["metrics"][0] | {"groups": [GROUP | {"step": 3}]}]},
            "step",
        ),
        (
            {
                "metrics": [
                    STATED["metrics"][0]
                    | {"along": [{"what": "concurrency", "starts": [1, 8], "steps": [0, 0]}]}
                ]
            },
            "starts: expected 0",
        ),
    ],
)
def test_wrong_corrections_are_refused(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    """An error names the file and the field."""
    path = tmp_path / "wrong.yaml"
    path.write_text(dump_yaml(STATED | change), encoding="utf-8")
    with pytest.raises(InputError, match=expected) as error:
        load_correction(path)
    assert "wrong.yaml" in str(error.value)


def test_corrections_are_compared(file: Path, tmp_path: Path) -> None:
    """Step by step; with a profile there is nothing to compare."""
    changed = [STATED["metrics"][0] | {"groups": [GROUP | {"newest": "2026-11-01", "step": 0.2}]}]
    other = tmp_path / "other.yaml"
    other.write_text(dump_yaml(STATED | {"version": "2026-12-01", "metrics": changed}), encoding="utf-8")
    found = differences("profiles", str(file), str(other))["differences"]
    assert found == [
        {
            "field": "tpot.step[llama-3.1-8b/h100-sxm/vllm]",
            "a": 0.1,
            "b": 0.2,
            "source_a": "mine 2026-11-26: made up",
            "source_b": "mine 2026-12-01: made up",
        }
    ]
    assert differences("profiles", str(file), str(file))["differences"] == []
    with pytest.raises(InputError, match="expected two efficiency profiles or two corrections"):
        differences("profiles", str(file), "hopper")


def _hopper() -> dict[str, Any]:
    (found,) = [profile for profile in load_library().efficiency if profile.id == "hopper"]
    return found.model_dump(mode="json", exclude_none=True)


def test_a_profile_of_a_file_is_compared_with_the_current_one(tmp_path: Path) -> None:
    """That of the same id, wherever the file lies."""
    path = tmp_path / "hopper@99.yaml"
    path.write_text(dump_yaml(_hopper()), encoding="utf-8")
    shown = CliRunner().invoke(app, ["list", "profiles", "diff", str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output) == {"a": str(path), "b": "hopper", "differences": []}


def test_a_correction_is_never_overwritten(file: Path, tmp_path: Path) -> None:
    """Said before anything is fitted."""
    runs, before = tmp_path / "runs.yaml", file.read_bytes()
    runs.write_text("runs: []\n", encoding="utf-8")
    shown = CliRunner().invoke(app, ["calibrate", "--multipliers", str(runs), "-o", str(file)])
    assert "mine.yaml: there is such a file already; it is never overwritten" in str(shown.exception)
    assert file.read_bytes() == before


def test_a_file_that_is_not_there() -> None:
    """A scenario that names one is refused, whatever its name."""
    with pytest.raises(
        InputError, match=r"expected none, shipped or a file of mantile calibrate --multipliers, found 'mine'"
    ):
        mt.estimate(mt.Scenario(**ASKED, correction="mine"))


@pytest.mark.exhaustive
def test_the_shipped_correction_holds_for_models_that_nobody_measured(tmp_path: Path) -> None:
    """With frameworks that somebody did; physics × multiplier, and the range of the result moves with it."""
    shipped = load_correction()
    assert shipped.digest == shipped.worked_out
    (one,) = shipped.metrics
    assert one.everywhere and {group.step for group in one.groups} == {0}
    asked = ASKED | {"model": "qwen3-14b", "accelerator": "h100-sxm", "tp": 2, "concurrency": 64}
    variants = [{"framework": "llama.cpp", "tp": 1}]
    made = mt.estimate(mt.Scenario(**asked, correction="shipped", variants=variants))
    found = made.results(0)
    corrected = found["correction"]["tpot"]
    assert corrected["runs"] == 0 and corrected["multiplier"] != 1
    assert corrected["p50"] == pytest.approx(found["tpot_s"] * corrected["multiplier"], rel=1e-12)
    assert corrected["p10"] == pytest.approx(
        found["range_80"]["tpot"]["p10"] * corrected["multiplier"], rel=1e-12
    )
    assert made.results(1)["correction"]["tpot"]["multiplier"] == 1, "no run of this framework"
    made.to_excel(tmp_path / "run.xlsx")
    assert mt.verify(tmp_path / "run.xlsx").ok


@pytest.mark.parametrize(("alike", "holds"), [(True, True), (False, False)])
def test_steps_that_hold_everywhere(alike: bool, holds: bool) -> None:
    """Where messages take much of a step, runs are faster than estimated: in all models, or slower in every
    second one. Each kind has a level of its own, which moves with the days: it is not learned."""
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    noise = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for model in range(6):
        for accelerator in range(4):
            for day in range(3):
                level = noise.normal(0, 0.02) + 0.05 * (model % 3 - 1) - 0.03 * day
                for number in range(20):
                    share = number / 20
                    left = (-0.1 if share > 0.5 else 0.0) * (1 if alike or model % 2 else -1)
                    rows.append(
                        {
                            "model": f"m{model}",
                            "accelerator": f"a{accelerator}",
                            "framework": "f",
                            "group": f"m{model}/a{accelerator}/f",
                            "date": f"2026-0{1 + 3 * day}-01",
                            correct.DAY: float("nan"),
                            "fold": (model + number) % 5,
                            "tpot": level + left + noise.normal(0, 0.01),
                            **{what: float(1 + number % 7) for what in correct.ASKED},
                            **dict.fromkeys(correct.SHARES, 0.0),
                            "network_share": share,
                        }
                    )
    table = pd.DataFrame(rows)
    splits, _ = correct.judged_everywhere("tpot", table)
    assert [split.left_out for split in splits][:3] == ["model", "accelerator", "configuration"]
    of_models = splits[0]
    assert (of_models.corrected[0] < 0.9 * of_models.without[0]) == holds
    assert (of_models.worst[0] <= correct.WORSE) == holds
    fit = correct.fitted_everywhere(table, "tpot")
    assert {group.step for group in fit.groups} == {0}
    if holds:
        (along,) = [along for along in fit.along if along.what == "network_share"]
        below, above = np.array(along.steps)[np.searchsorted(along.starts, [0.4, 0.6]) - 1]
        assert above - below == pytest.approx(-0.1, abs=0.02)


def _runs(change: Any, seed: int = 0, releases: dict[str, float] | None = None) -> list[Any]:
    """Runs whose TPOT is what is predicted times a change of concurrency, with noise; and times that of the
    releases of the engine, which take turns."""
    noise = np.random.default_rng(seed)
    made = []
    for tp in (1, 2, 4):
        for concurrency in (1, 2, 4, 8, 16, 32, 64, 128):
            for output in (128, 512):
                asked = ASKED | {"tp": tp, "concurrency": concurrency, "output_tokens": output}
                factor = change(concurrency) * exp(noise.normal(0, 0.01))
                if releases:
                    release = list(releases)[len(made) // 2 % len(releases)]
                    asked = asked | {"environment": {"framework_version": release}}
                    factor *= releases[release]
                made.append((asked, factor))
    predicted = correct.residuals(
        [
            parse_run(asked | {"metrics": {"tpot_s": 1}, "id": str(n)}, "run")
            for n, (asked, _) in enumerate(made)
        ]
    ).set_index("id")["tpot"]
    return [
        parse_run(
            asked
            | {"id": str(n), "metrics": {"tpot_s": factor * exp(-predicted[str(n)])}, "date": "2026-11-02"},
            "run",
        )
        for n, (asked, factor) in enumerate(made)
    ]


@pytest.mark.exhaustive
def test_learns_what_physics_leaves() -> None:
    """A server that is a fifth slower, more so with many requests, is corrected; its range holds four in
    five of the runs that were not fitted."""
    pytest.importorskip("sklearn")
    learned = correct.learn(_runs(lambda concurrency: 1.2 if concurrency < 32 else 1.3))
    (judged,) = learned.judged
    assert judged.kept
    assert judged.without[0] > 0.15 > 3 * judged.corrected[0]  # few runs count for little
    assert 0.6 <= judged.covered <= 0.95
    assert learned.correction is not None
    (one,) = learned.correction.metrics
    assert one.groups[0].newest == "2026-11-02"
    (along,) = [along for along in one.along if along.what == "concurrency"]
    assert list(along.steps) == sorted(along.steps)
    assert along.steps[-1] - along.steps[0] == pytest.approx(log(1.3 / 1.2), abs=0.02)


@pytest.mark.parametrize(("later", "holds"), [(0.2, True), (0.0, False)])
def test_what_does_not_hold_for_later_runs_is_left_out(later: float, holds: bool) -> None:
    """Runs of a year, a fifth slower than estimated; in the second half they may be as estimated."""
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    count = 120
    days = pd.date_range("2026-01-01", periods=count).strftime("%Y-%m-%d")
    table = pd.DataFrame(
        {
            "date": days,
            "group": "m/a/f",
            "model": "m",
            "accelerator": "a",
            "framework": "f",
            "tpot": [0.2 if number < count / 2 else later for number in range(count)],
            "fold": [number % 4 for number in range(count)],
            correct.DAY: float("nan"),
            **{what: [float(1 + number % 7) for number in range(count)] for what in correct.ASKED},
        }
    )
    days_cut, no_worse = correct.judged_later("tpot", table)
    assert days_cut == 2 and (no_worse == 2) == holds
    judged, _ = correct.judge("tpot", table)
    assert judged.kept == holds and bool(correct.learned_from("tpot", table).groups) == holds


@pytest.mark.exhaustive
def test_learns_that_a_release_is_faster(tmp_path: Path) -> None:
    """By the day of the release, not that of the run; the workbook follows a day that is typed."""
    pytest.importorskip("sklearn")
    learned = correct.learn(_runs(lambda concurrency: 1, releases={"0.8.0": 1.3, "0.10.0": 1.0}))
    assert learned.correction is not None
    (along,) = [along for along in learned.correction.metrics[0].along if along.what == "engine_date"]
    old, new = (serial(day) for day in (date(2025, 3, 18), date(2025, 7, 24)))
    assert along.starts[0] == 0 and old < along.starts[1] < new
    assert along.steps[1] - along.steps[0] == pytest.approx(-log(1.3), abs=0.05)

    path = tmp_path / "mine.yaml"
    path.write_text(
        dump_yaml(learned.correction.model_dump(mode="json", exclude_none=True)), encoding="utf-8"
    )
    days = [{"engine_date": "vllm 0.8.0"}, {"engine_date": "2026-11-01"}]
    asked = mt.estimate(mt.Scenario(**ASKED | days[0], correction=str(path), variants=days[1:]))
    multipliers = [asked.results(column)["correction"]["tpot"]["multiplier"] for column in (0, 1)]
    assert multipliers[0] > 1.1 * multipliers[1]
    undated = mt.estimate(mt.Scenario(**ASKED, correction=str(path)))
    assert undated.results(0)["correction"]["tpot"]["multiplier"] == multipliers[1]
    asked.to_excel(tmp_path / "run.xlsx")
    assert mt.verify(tmp_path / "run.xlsx").ok


@pytest.mark.exhaustive
def test_learns_nothing_from_noise() -> None:
    """Runs that are as predicted get no correction."""
    pytest.importorskip("sklearn")
    learned = correct.learn(_runs(lambda concurrency: 1.0))
    assert learned.correction is None or learned.judged[0].corrected[0] < learned.judged[0].without[0]
    with pytest.raises(InputError, match="expected at least 20"):
        correct.learn(_runs(lambda concurrency: 1.0)[:5])


def test_a_request_names_no_file() -> None:
    """A server reads no file of a correction for whoever asks."""
    from mantile.server.documents import scenario_of

    assert scenario_of(ASKED | {"correction": "none"}, hub=False)[0].correction == "none"
    with pytest.raises(InputError, match=r"field correction: '/etc/passwd' names a file; expected none"):
        scenario_of(ASKED | {"correction": "/etc/passwd"}, hub=False)
