"""The measured runs we ship.

The page of accuracy is made from them, and they were not picked for being predicted well.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mantile.library.profiles import Library
from mantile.measured.accuracy import BY_GROUP, accuracy_page, marked_lines, short_table, table_by_group
from mantile.measured.load import load_measurements
from mantile.measured.metrics import errors
from mantile.measured.reconcile import Reconciliation, reconcile
from mantile.measured.runs import Environment, Measurements, Metrics, Run

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "workbooks" / "accuracy.yaml"
PAGE = RUNS.with_suffix(".md")
NEAR = 0.025  # between the errors of the selection and of all public runs
DIGITS = 6e-4  # metrics are entered with four


@pytest.fixture(scope="module")
def measured() -> Measurements:
    """The runs we ship."""
    return load_measurements(RUNS)


@pytest.fixture(scope="module")
def reconciled(measured: Measurements) -> Reconciliation:
    """The same beside what is predicted."""
    return reconcile(measured, source=RUNS.name)


def _combination(run: Run) -> tuple[str, str | None, str | None]:
    return run.model, run.accelerator, run.framework


def _combinations(runs: list[Run]) -> pd.Series:
    return pd.Series([_combination(run) for run in runs]).value_counts()


# --- the file -----------------------------------------------------------------------------------------------


def test_every_record_is_read_and_says_where_it_comes_from(measured: Measurements) -> None:
    assert not measured.rejected
    assert all(run.status == "measured" and "not stated" not in run.source for run in measured.runs)
    text = RUNS.read_text(encoding="utf-8")
    assert text.count("status: measured") == len(measured.runs) == text.count(" source: ")
    assert not re.search(r"(?<![\w/.:])/\w+/", text)  # no path of a machine


def test_the_selection_is_broad(measured: Measurements, library: Library) -> None:
    served = [run for run in measured.runs if run.metrics.ttft_s is not None]
    assert len(measured.runs) >= 140
    assert len({run.model for run in served}) >= 7
    assert len({run.accelerator for run in served}) >= 6
    assert len({run.framework for run in served}) >= 4
    assert {library.accelerator(str(run.accelerator)).vendor for run in measured.runs} >= {
        "NVIDIA",
        "AMD",
        "Apple",
    }
    assert sum((run.attention_dp or 1) > 1 and run.decode is None for run in served) >= 3
    assert sum((run.ep or 1) > 1 and run.decode is None for run in served) >= 10
    assert _combinations(list(measured.runs)).min() >= 2
    case = [
        run.model_dump_json(exclude={"id", "metrics", "environment", "source", "date", "assumptions"})
        for run in measured.runs
        if run.metrics.tpot_s
    ]
    assert len(set(case)) >= 0.95 * len(case)  # a few were measured twice


@pytest.mark.exhaustive
def test_nearly_all_are_answered(reconciled: Reconciliation) -> None:
    assert len(reconciled.table) >= 0.99 * reconciled.rows, reconciled.rejected
    ratios = reconciled.table[["tpot_ratio", "ttft_ratio", "throughput_ratio", "prefill_ratio"]].to_numpy(
        float
    )
    assert (np.isnan(ratios) | (np.isfinite(ratios) & (ratios > 0))).all()


# --- the page of accuracy -----------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_the_page_says_what_the_runs_come_to(reconciled: Reconciliation) -> None:
    """All that follows from the runs we ship; the rows of all public runs stay as they were made."""
    page = PAGE.read_text(encoding="utf-8")
    assert accuracy_page(page, reconciled) == page
    assert len(marked_lines(page, "short")) == 2 + 6


@pytest.mark.exhaustive
def test_the_page_says_what_all_public_runs_come_to(reconciled: Reconciliation, public: Measurements) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert accuracy_page(page, reconciled, reconcile(public)) == page


def test_readme_says_what_the_page_says() -> None:
    """The five rows, in one place generated, in the other copied."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in marked_lines(PAGE.read_text(encoding="utf-8"), "short"):
        assert line in readme


@pytest.mark.exhaustive
def test_rows_of_the_table_add_up(reconciled: Reconciliation) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table_by_group(reconciled)]
    assert {len(row) for row in rows} == {2 + len(BY_GROUP)}
    count = {row[0]: int(row[1]) for row in rows[2:]}
    names = list(count)
    assert names[0] == "all aggregated runs" and len(names) == len(rows) - 2
    table = reconciled.table
    served = table[(table["mode"] == "aggregated") & table["ttft_measured"].notna()]
    for field in ("framework", "accelerator", "model"):
        assert sum(count[name] for name in served[field].unique()) == count["all aggregated runs"]
    assert names[-3:] == ["disaggregated", "single user, NVIDIA: decode", "single user, Apple: decode"]
    assert count["disaggregated"] == (table["mode"] == "disaggregated").sum()
    prompts = table["prefill_measured"].notna().sum()
    assert count["all aggregated runs"] + sum(count[name] for name in names[-3:]) + prompts == len(table)


def test_a_table_of_one_run_is_worked_out_by_hand() -> None:
    run = Run(
        id="one",
        model="llama-3.3-70b",
        accelerator="h100-sxm",
        tp=8,
        input_tokens=922,
        output_tokens=922,
        concurrency=16,
        prompts_per_slot=10,
        metrics=Metrics(tpot_s=0.01),
        environment=Environment(),
        source="made up",
    )
    reconciled = reconcile(Measurements((run,)))
    error = 100 * (float(reconciled.table["tpot_predicted"][0]) / 0.01 - 1)
    size, sign = f"{abs(error):.1f}", "+" if error > 0 else "−"
    cells = f"1 | {size} % | {size} % | {sign}{size} % | – | – | – |"
    lines = table_by_group(reconciled)
    assert lines[2] == f"| all aggregated runs | {cells}"
    assert [line.split(" | ")[0] for line in lines[3:]] == ["| vllm", "| h100-sxm", "| llama-3.3-70b"]
    row = f"| runs in this repository, aggregated | 1 | {size} / {size} % | – | – |"
    assert short_table(reconciled)[2:] == [row]


# --- beside all public runs ---------------------------------------------------------------------------------


def _serving(table: pd.DataFrame) -> np.ndarray:
    return table[(table["mode"] == "aggregated") & table["ttft_measured"].notna()]["tpot_ratio"].to_numpy(
        float
    )


@pytest.fixture(scope="module")
def public(shared_data: Path) -> Measurements:
    """All public serving runs."""
    return load_measurements(shared_data / "silicon_public.csv")


@pytest.mark.exhaustive
def test_the_selection_is_no_easier_than_the_rest(reconciled: Reconciliation, public: Measurements) -> None:
    whole = reconcile(Measurements(public.runs), ["mode=aggregated"])
    ours, theirs = (errors(_serving(table)) for table in (reconciled.table, whole.table))
    assert ours["n"] < 0.1 * theirs["n"]
    assert ours["mape"] == pytest.approx(theirs["mape"], abs=NEAR)


def test_the_runs_are_as_published(measured: Measurements, public: Measurements) -> None:
    published = {run.id: run for run in public.runs}
    for run in measured.runs:
        if run.metrics.ttft_s is None:
            continue
        other = published[run.id]
        assert run.metrics.given() == pytest.approx(other.metrics.given(), rel=DIGITS), run.id
        for field in (
            "model",
            "accelerator",
            "framework",
            "input_tokens",
            "output_tokens",
            "concurrency",
            "source",
            "date",
        ):
            assert getattr(run, field) == getattr(other, field), (run.id, field)
    asked = {_combination(run) for run in public.runs}
    assert set(_combinations(list(measured.runs)).index) >= asked
