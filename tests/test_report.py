"""Measured runs on the command line.

What reconcile and calibrate print, write and refuse, and the report workbook.
"""

from __future__ import annotations

import csv
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
import test_cli
import yaml
from test_cli import refused

from mantile.library.documents import load
from mantile.library.dump import dump_profile
from mantile.library.efficiency import EfficiencyProfile
from mantile.library.profiles import Library, load_library
from mantile.measured.load import load_measurements
from mantile.measured.reconcile import Reconciliation, reconcile
from mantile.measured.report.write import write_report
from mantile.measured.runs import Measurements
from mantile.workbook.book import Book, Document, Sheet
from mantile.workbook.style import Style
from mantile.workbook.write import write_workbook

run = test_cli.run
FIGURES = {"mape", "median", "p90", "bias", "symmetric", "n"}
ERRORS = [0.91, 1.06, 1.21, 0.97, 1.41, 1.01, 0.83, 1.11]  # predicted ÷ measured of the runs made here


def records(slower: float = 1.0) -> list[dict[str, Any]]:
    """Eight runs of a small model: TPOT as predicted ÷ ERRORS, TTFT as predicted on all but the last."""
    asked: list[dict[str, Any]] = [
        {
            "id": f"r{place}",
            "model": "llama-3.1-8b",
            "accelerator": "h100-sxm",
            "tp": 1 + place // 4,
            "input_tokens": 922,
            "output_tokens": 922,
            "concurrency": 2 ** (place % 4 + 1),
            "prompts_per_slot": 10,
            "source": "made for a test",
            "date": "2026-11-20",
        }
        for place in range(8)
    ]
    table = compared([record | {"metrics": {"tpot_s": 1.0}} for record in asked]).table
    for record, error, (_, row) in zip(asked, ERRORS, table.iterrows(), strict=True):
        record["metrics"] = {
            "tpot_s": slower * float(row["tpot_predicted"]) / error,
            "ttft_s": float(row["ttft_predicted"]),
        }
    del asked[-1]["metrics"]["ttft_s"]
    return asked


def compared(runs: list[dict[str, Any]]) -> Reconciliation:
    """Records as they are predicted."""
    from mantile.measured.runs import parse_run

    return reconcile(
        Measurements(tuple(parse_run(record, str(record["id"])) for record in runs)),
        source="made.yaml",
    )


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    """The records, made once."""
    return records()


@pytest.fixture
def file(made: list[dict[str, Any]], tmp_path: Path) -> Path:
    """The records as a file."""
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump({"runs": made}))
    return path


def test_json_of_reconcile(run: Any, file: Path) -> None:
    """The public keys, and errors that are those put in."""
    found = run("reconcile", str(file), "--json").data
    assert (found["rows"], found["answered"], found["unanswered"]) == (8, 8, [])
    assert {"tpot", "ttft", "throughput"} <= set(found["metrics"])
    for figures in (*found["metrics"].values(), *found["modes"]["aggregated"]["metrics"].values()):
        assert set(figures) >= FIGURES
    tpot = found["metrics"]["tpot"]
    assert tpot["n"] == 8
    assert tpot["mape"] == pytest.approx(sum(abs(error - 1) for error in ERRORS) / 8)
    assert tpot["bias"] == pytest.approx(sum(ERRORS) / 8 - 1)
    assert tpot["symmetric"] == pytest.approx(math.exp(sum(abs(math.log(error)) for error in ERRORS) / 8) - 1)
    assert found["metrics"]["ttft"]["n"] == 7
    assert found["metrics"]["ttft"]["mape"] == pytest.approx(0, abs=1e-9)
    assert found["groups"]["parallelism"]["TP2"]["tpot"]["n"] == 4
    assert found["worst"][0]["id"] == "r4"


@pytest.mark.parametrize(
    ("conditions", "answered"),
    [
        (["--where", "tp=2"], 4),
        (["--where", "tp=2 concurrency=2,4"], 2),
        (["--where", "tp=2", "concurrency!=2"], 3),
        (["--where", "system=h100-sxm", "--where", "precision=bf16"], 8),
        (["framework=vllm", "tp!=2"], 4),
    ],
)
def test_conditions(run: Any, file: Path, conditions: list[str], answered: int) -> None:
    """Several in one value, repeated, or behind the file.

    What a record leaves out is what it is by default.
    """
    assert run("reconcile", str(file), *conditions, "--json").data["answered"] == answered


def test_text_of_reconcile(run: Any, file: Path) -> None:
    """Errors in percent, groups, extremes; nothing on stderr where it is no terminal."""
    ran = run("reconcile", str(file))
    assert (ran.status, ran.err) == (0, "")
    for words in (
        "8 of 8 runs predicted",
        "TPOT",
        "throughput",
        "best by TPOT",
        "worst by TPOT",
        "parallelism",
        "+41.0",
    ):
        assert words in ran.out, ran.out


def test_a_broken_record_is_reported_and_skipped(
    run: Any, made: list[dict[str, Any]], tmp_path: Path
) -> None:
    """One that is no measured run, and one of a model that nobody knows."""
    bad = [
        made[0] | {"id": "negative", "metrics": {"tpot_s": -1}},
        made[0] | {"id": "stranger", "model": "no-such-model"},
    ]
    (tmp_path / "some.json").write_text(json.dumps([*made, *bad]))
    ran = run("reconcile", "some.json")
    assert ran.status == 0, ran.err
    for words in (
        "8 of 10 runs predicted",
        "negative",
        "at least",
        "stranger",
        "no-such-model",
    ):
        assert words in ran.out, ran.out
    found = run("reconcile", "some.json", "--json").data
    assert (found["rows"], found["answered"]) == (10, 8)
    assert {item["id"] for item in found["unanswered"]} == {"negative", "stranger"}


def test_wrong_input(run: Any, file: Path, tmp_path: Path) -> None:
    """Exit status 2 and a message that says what was expected; nothing is written."""
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "lost.yaml").write_text(
        yaml.safe_dump({"runs": [yaml.safe_load(file.read_text())["runs"][0] | {"model": "no-such-model"}]})
    )
    before = {path.name for path in tmp_path.iterdir()}
    refused(run("reconcile", str(file), "--where", "precison=bf16"), "precison", "precision")
    refused(run("reconcile", str(file), "--where", "tp"), "tp", "field=value")
    refused(run("reconcile", str(file), "--where", "tp=4"), "no run with tp=4")
    refused(run("reconcile", "empty.csv"), "empty.csv", "no measured runs")
    refused(run("reconcile", "other.csv"), "other.csv", "expected")
    refused(run("reconcile", "lost.yaml"), "none of 1 runs", "no-such-model")
    refused(run("reconcile", "missing.csv"), "missing.csv", "no such file")
    refused(run("reconcile", str(file), "-o", "report.pdf"), "report.pdf", ".xlsx, .csv, .txt")
    refused(run("reconcile", str(file), "-o", "nowhere/report.xlsx"), "no folder nowhere")
    refused(run("reconcile", "other.csv", "-o", "other.csv"), "these are the measurements")
    refused(run("calibrate", str(file), "--factor", "no_such_factor"), "no_such_factor")
    refused(
        run("calibrate", str(file), "--cross-validate", "colour"),
        "colour",
        "one of config, model, system, framework",
    )
    assert {path.name for path in tmp_path.iterdir()} == before


def test_table_round_trip(run: Any, file: Path, tmp_path: Path) -> None:
    """The .csv holds every run with all digits."""
    data = run("reconcile", str(file), "-o", "table.csv", "--json").data
    with (tmp_path / "table.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["id"] for row in rows] == [f"r{place}" for place in range(8)]
    ratios = [float(row["tpot_predicted"]) / float(row["tpot_measured"]) for row in rows]
    assert ratios == pytest.approx(ERRORS, rel=1e-12)
    assert sum(abs(ratio - 1) for ratio in ratios) / 8 == pytest.approx(
        data["metrics"]["tpot"]["mape"], rel=1e-12
    )
    assert rows[-1]["ttft_measured"] == ""


def test_own_table_is_read(run: Any, made: list[dict[str, Any]], tmp_path: Path) -> None:
    """Our own form as a .csv: metrics are columns."""
    flat = [
        {key: value for key, value in record.items() if key != "metrics"} | record["metrics"]
        for record in made
    ]
    with (tmp_path / "own.csv").open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    assert run("reconcile", "own.csv", "--json").data["metrics"]["tpot"]["mape"] == pytest.approx(
        sum(abs(error - 1) for error in ERRORS) / 8
    )


def cells(sheet: Any, head: str, metric: str) -> list[Any]:
    """The cells of a column of Runs, by its head and the metric above it."""
    first = next(cell.column for cell in sheet[4] if cell.value and str(cell.value).startswith(metric))
    column = next(cell.column for cell in sheet[5] if cell.column >= first and cell.value == head)
    return [sheet.cell(row, column) for row in range(6, sheet.max_row + 1)]


@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
def test_report(run: Any, file: Path, tmp_path: Path) -> None:
    """The live errors of Summary are those of --json, recalculated here from the cells of Runs.

    Texts are never formulas.
    """
    data = yaml.safe_load(file.read_text())
    data["runs"][0] |= {"id": "=1+1", "source": '=HYPERLINK("https://example.invalid")'}
    file.write_text(yaml.safe_dump(data))
    found = run("reconcile", str(file), "-o", "report.xlsx", "-o", "table.csv", "--json").data
    first = (tmp_path / "report.xlsx").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    formulas, values = (
        openpyxl.load_workbook(tmp_path / "report.xlsx", data_only=stored) for stored in (False, True)
    )
    assert formulas.sheetnames == [
        "Summary",
        "Charts",
        "Groups",
        "Best and worst",
        "Runs",
        "Not answered",
        "Assumptions",
    ]
    runs = formulas["Runs"]
    measured, predicted, error = (cells(runs, head, "TPOT") for head in ("measured", "predicted", "error"))
    ratio = cells(runs, "ratio", "TPOT")
    assert [cell.value for cell in ratio] == [
        f"={after.coordinate}/{before.coordinate}" for before, after in zip(measured, predicted, strict=True)
    ]
    assert [cell.value for cell in error] == [f"={cell.coordinate}-1" for cell in ratio]
    off = [abs(after.value / before.value - 1) for before, after in zip(measured, predicted, strict=True)]
    mape = sum(off) / len(off)
    assert mape == pytest.approx(found["metrics"]["tpot"]["mape"], rel=1e-12)
    assert formulas["Summary"]["B6"].value == "TPOT"
    assert "SUMIFS(Runs!" in formulas["Summary"]["E6"].value
    assert values["Summary"]["E6"].value == pytest.approx(mape, rel=1e-12)
    assert values["Summary"]["H6"].value == pytest.approx(found["metrics"]["tpot"]["bias"], rel=1e-12)
    assert values["Summary"]["D7"].value == 7
    assert (runs["A6"].value, runs["A6"].data_type) == ("=1+1", "s")
    for sheet in values:
        assert not [
            cell.coordinate
            for row in sheet.iter_rows()
            for cell in row
            if cell.data_type == "e" or str(cell.value).startswith("#")
        ]
    with (tmp_path / "table.csv").open(newline="") as lines:
        row = next(csv.DictReader(lines))
    assert row["id"] == "'=1+1" and row["source"].startswith("'=HYPERLINK")  # no formula where it is opened
    run("reconcile", str(file), "-o", "report.xlsx")
    assert (tmp_path / "report.xlsx").read_bytes() == first


@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
def test_errors_by_group_are_those_of_json(made: list[dict[str, Any]], tmp_path: Path) -> None:
    """The formulas of Groups come to what NumPy works out.

    A metric that was not measured has no error, nor 0.
    """
    reconciliation = compared(made)
    sheet = openpyxl.load_workbook(write_report(reconciliation, tmp_path / "report.xlsx"), data_only=True)[
        "Groups"
    ]
    heads = {"MAPE": "mape", "median *": "median", "p90 *": "p90", "bias": "bias", "symmetric": "symmetric"}
    rows, names = 0, {"TPOT": "tpot", "TTFT": "ttft", "Throughput, derived": "throughput"}
    for row in sheet.iter_rows(min_row=6):
        kind, key, _, *_ = (cell.value for cell in row)
        key = key.replace(" in, ", "/").removesuffix(" out") if kind == "lengths" else key
        metrics, metric = reconciliation.groups()[kind][str(key)], ""
        for cell, title, head in zip(row[3:], sheet[4][3:], sheet[5][3:], strict=True):
            metric = names[title.value] if title.value else metric
            figures = metrics.get(metric, {"n": 0} | dict.fromkeys(heads.values()))
            expected = figures["n" if head.value == "runs" else heads[head.value]]
            assert cell.value == (None if expected is None else pytest.approx(expected, rel=1e-12, abs=1e-12))
        rows += 1
    assert rows == sum(len(groups) for groups in reconciliation.groups().values())


@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
def test_boxes_are_those_of_the_runs(made: list[dict[str, Any]], tmp_path: Path) -> None:
    """Each metric has its charts; cells of a box are the percentiles of its runs' errors."""
    reconciliation = compared(made)
    book = openpyxl.load_workbook(write_report(reconciliation, tmp_path / "report.xlsx"), data_only=True)
    table = reconciliation.table[reconciliation.table["mode"] == "aggregated"]
    rows = [row for row in book["Charts"].iter_rows(values_only=True) if str(row[1]).startswith("TP ")]
    for name in reconciliation.metrics(table):
        known = table[table[f"{name}_ratio"].notna()]
        for key in sorted(known["tp"].unique()):
            off = known[known["tp"] == key][f"{name}_ratio"].to_numpy() - 1
            row = rows.pop(0)
            median, low, high = np.percentile(off, [50, 25, 75])
            assert row[1] == f"TP {key}   {len(off)}"
            assert row[2:5] == pytest.approx((median, median - low, high - median), abs=1e-12)
    assert not rows
    drawn = [name for name in zipfile.ZipFile(tmp_path / "report.xlsx").namelist() if "charts/chart" in name]
    measured = len(reconciliation.metrics(table))
    assert len(drawn) == 6 + 3 * measured + 2 * (measured - 1)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")
def test_report_recalculates(made: list[dict[str, Any]], tmp_path: Path) -> None:
    """Another engine works out every formula of a report to the value it carries."""
    from mantile.verification.engines import soffice, with_libreoffice

    if soffice() is None:
        pytest.skip("LibreOffice is not installed")
    apart = [made[0] | {"id": "apart", "decode": {"tp": 2}, "metrics": {"tpot_s": 0.01}}]
    path = write_report(compared([*made, *apart]), tmp_path / "report.xlsx")
    worked = with_libreoffice(path)
    formulas, values = (openpyxl.load_workbook(path, data_only=stored) for stored in (False, True))
    compared_cells = 0
    for sheet in formulas:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type != "f":
                    continue
                stored, found = (
                    values[sheet.title][cell.coordinate].value,
                    worked[sheet.title].get((cell.row - 1, cell.column - 1)),
                )
                compared_cells += 1
                if isinstance(stored, float | int):
                    assert found == pytest.approx(stored, rel=1e-9, abs=1e-12), (
                        sheet.title,
                        cell.coordinate,
                        cell.value,
                    )
                else:
                    assert (found or "") == (stored or ""), (sheet.title, cell.coordinate, cell.value)
    assert compared_cells > 200
    extremes = values["Best and worst"]
    assert any(cell.value is None for cell in extremes["M"][5:15])  # the run without a TTFT


@pytest.mark.exhaustive
def test_calibrate(run: Any, tmp_path: Path) -> None:
    """A fit improves the runs and says how sure it is.

    It writes profiles that estimate and reconcile take, and never overwrites.
    """
    slow = records(slower=1.5)
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump({"runs": slow}))
    ran = run("calibrate", "slow.yaml", "--cross-validate", "config")
    assert ran.status == 0, ran.err
    for words in (
        "8 runs",
        "not seen, by config",
        "80 % interval",
        "Only 8 runs",
        "cannot be told from no change",
        "--profile calibrated",
    ):
        assert words in ran.out, ran.out
    files = sorted((tmp_path / "calibrated").iterdir())
    assert files
    pins = [argument for file in files for argument in ("--profile", str(file))]
    before, after = (
        run("reconcile", "slow.yaml", "--json", *more).data["metrics"]["tpot"]["mape"] for more in ([], pins)
    )
    assert after < 0.6 * before
    profile = load(EfficiencyProfile, files[0])
    assert profile.fit is not None and profile.fit.runs == 8 and profile.fit.moved
    assert files[0].name == f"{profile.id}@{profile.version}.yaml"
    assert profile in load_library((str(files[0]),)).efficiency
    assert (
        run(
            "estimate", "llama-3.1-8b", *test_cli.CASE, "--profile", f"calibrated/{files[0].name}", "--json"
        ).status
        == 0
    )
    content = files[0].read_bytes()
    refused(run("calibrate", "slow.yaml"), files[0].name, "never overwritten")
    assert files[0].read_bytes() == content
    assert sorted((tmp_path / "calibrated").iterdir()) == files


def test_calibrate_one_factor(run: Any, file: Path) -> None:
    """Only the factor asked for moves; --json says how far."""
    found = run("calibrate", str(file), "--factor", "launch_scale@framework", "-o", "out", "--json").data
    assert [item["factor"] for item in found["moved"]] == ["launch_scale"]
    assert found["moved"][0]["low"] < found["moved"][0]["change"] < found["moved"][0]["high"]
    assert len(found["files"]) == len(found["profiles"]) == 1
    assert {"runs", "before", "after", "out_of_sample"} <= set(found)


def test_profiles_survive_being_written(library: Library, tmp_path: Path) -> None:
    """Every profile we ship is the same after it was written and read."""
    for profile in library.efficiency:
        odd = profile.factors[0].model_copy(update={"source": 'a "quoted": text, with \\ and # and é'})
        for made in (
            profile,
            profile.model_copy(update={"factors": (odd, *profile.factors[1:]), "version": "1.10"}),
        ):
            path = tmp_path / "profile.yaml"
            path.write_text(dump_profile(made), encoding="utf-8")
            assert load(EfficiencyProfile, path) == made


@pytest.mark.exhaustive
def test_public_runs(shared_data: Path) -> None:
    """Every row of the table is read or told why not; its errors are those of the accuracy page."""
    measured = load_measurements(shared_data / "silicon_public.csv")
    assert len(measured.runs) + len(measured.rejected) == 3244


def test_a_workbook_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where XlsxWriter would leave a text out, as it is too long for a cell, there is no file."""
    book = Book(Document(title="long", comment="", footer=""))
    sheet = book.add_sheet(Sheet("Long", "front", widths=[100]))
    sheet.set_text(0, 0, "x" * 40_000, Style())
    with pytest.raises(AssertionError, match="left something out"):
        write_workbook(book, tmp_path / "long.xlsx")
    assert list(tmp_path.iterdir()) == []
