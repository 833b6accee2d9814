"""The audit of a workbook: it leaves out nothing that is worked out, and works nothing out itself."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import Typed, exit_status, few, loaded, place
from openpyxl.utils import range_boundaries

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.audit import ROW, Audit, audit
from mantile.workbook.layout import lay_out
from mantile.workbook.read import open_file, typed_inputs
from mantile.workbook.sheets.log import NAME
from mantile.workbook.write import build_workbook

FIELDS = {
    "title": "=HYPERLINK(1)",
    "date": "2026-11-21",
    "model": "llama-3.2-1b",
    "accelerator": "l40s",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
    "overrides": [
        {"id": "efficiency.step_host", "value": 900, "reason": "+ timed"},
        {"id": "model.layers", "value": 12, "reason": "short"},
        {"id": "cost.life", "value": 5},
    ],
    "variants": [
        {"name": "@busy", "concurrency": 64, "overrides": [{"id": "hardware.memory_bandwidth", "value": 800}]}
    ],
}


FREE = {(name, "J") for name in ("Inputs", "Hardware", "Efficiency")}
"""The column that stands ready for a third scenario, which is none yet."""


@pytest.fixture(scope="module")
def made() -> Estimate:
    """Two scenarios with overrides of every kind."""
    return estimate(parse_scenario(FIELDS, "scenario"), library=few())


@pytest.fixture(scope="module")
def workbook(made: Estimate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its workbook, edited.

    An input, an override, a following cell, a formula, a constant over one, a signature.
    """
    path = build_workbook(made, tmp_path_factory.mktemp("audit") / "run.xlsx")
    laid = lay_out(made)
    sign = next(row for (row, _), cell in laid.sheets["Audit"].cells.items() if cell.text == "Prepared by")
    typed: Typed = {
        place(laid, "inputs.concurrency"): 6,
        place(laid, "efficiency.step_row.override", 1): 3,
        place(laid, "inputs.tp", 1): 1,
        ("Audit", sign, NAME): "A. Person",
        ("Calculation", laid.addresses[made.equations.serving.e2e].row, 7): "=H9",
        ("Calculation", laid.addresses[made.equations.serving.tpot].row, 7): 1,
    }
    book = loaded(path)
    for (sheet, row, column), value in typed.items():
        book[sheet].cell(row + 1, column + 1).value = value
    book.save(path)
    return path


@pytest.fixture(scope="module")
def found(workbook: Path) -> Audit:
    """The audit of it."""
    return audit(workbook)


@pytest.mark.exhaustive
def test_every_formula_has_a_row(workbook: Path, found: Audit) -> None:
    """Every formula cell of the file stands in a row once, with its text or that of the first scenario."""
    book = loaded(workbook)
    covered: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found.rows:
        left, top, right, bottom = range_boundaries(row["cell"])
        for cells in book[row["sheet"]].iter_rows(top, bottom, left, right):
            for cell in cells:
                assert covered.setdefault((row["sheet"], cell.coordinate), row) is row, "twice"
    formulas = {
        (sheet.title, cell.coordinate): cell.value
        for sheet in book.worksheets
        for cells in sheet.iter_rows()
        for cell in cells
        if cell.data_type == "f" and (sheet.title, cell.column_letter) not in FREE
    }
    assert len(formulas) > 3000 and set(formulas) <= set(covered)
    for place_, text in formulas.items():
        if covered[place_]["cell"].partition(":")[0] == place_[1]:
            assert covered[place_]["formula"] == text
    assert all(tuple(row) == ROW and len(row["values"]) == 2 for row in found.rows)
    assert {row["sheet"] for row in found.rows} == {sheet.title for sheet in book.worksheets} - {"_bundle"}


@pytest.mark.exhaustive
def test_rows_say_what_the_engine_says(workbook: Path, found: Audit) -> None:
    """Values of both scenarios on the inputs as edited.

    Labels, units, sections, sources and status; edits with what was there.
    """
    file = open_file(workbook)
    values = [file.book.estimate.program.run(given) for given in typed_inputs(file)[0]]
    rows = {(row["sheet"], row["id"]): row for row in found.rows if row["section"] != "Linked in"}
    for figure in file.book.estimate.equations.quantities():
        address = file.book.addresses.get(figure)
        of_cell = figure.id.startswith("typed.state.")
        if (
            address is not None
            and not of_cell  # what was edited in this file
            and address.column is None
            and address.sheet in file.book.estimate.equations.sheets
            and figure.id not in ("serving.tpot",)
        ):
            row = rows[address.sheet, figure.id]
            expected = [values[column][figure] for column in (0, 1)]
            assert (
                row["values"] == [value if isinstance(value, str) else float(value) for value in expected]
                and row["label"] == figure.label
            )
            assert row["how"] and row["status"] == "worked out"
    e2e, tpot, row = (
        rows["Calculation", "serving.e2e"],
        rows["Calculation", "serving.tpot"],
        rows["Hardware", "library.l40s.memory_bandwidth"],
    )
    assert e2e["formula"] == "=H9" and e2e["edited"].startswith("H") and " was =" in e2e["edited"]
    assert tpot["values"][0] == 1 and tpot["formula"] == "" and " was =" in tpot["edited"]
    assert (
        row["values"] == [864.0, 864.0]
        and row["status"] == "secondary"
        and row["source"]
        and row["unit"] == "GB/s"
        and row["section"] == "Accelerators"
    )
    assert rows["Summary", "inputs.concurrency"]["edited"] == "J7 was 4" and rows[
        "Summary", "inputs.concurrency"
    ]["values"] == [6.0, None]
    edited = [(row["sheet"], row["id"], row["edited"]) for row in found.rows if row["edited"]]
    assert len(edited) == 6, edited


@pytest.mark.exhaustive
def test_lists_of_an_audit(made: Estimate, found: Audit) -> None:
    """Assumptions, overrides with what they replace, edits, checks with both sides, and what the file is."""
    overrides = {(item["id"], item["scenario"][0]): item for item in found.overrides}
    assert set(overrides) == {
        ("model.layers", "a"),
        ("cost.life", "a"),
        ("efficiency.step_host", "A"),
        ("efficiency.step_host", "B"),
        ("hardware.memory_bandwidth", "B"),
        ("efficiency.step_row", "B"),
    }
    assert (overrides["model.layers", "a"]["value"], overrides["model.layers", "a"]["replaces"]) == (12, 16)
    assert (
        overrides["hardware.memory_bandwidth", "B"]["replaces"] == pytest.approx(864)
        and overrides["cost.life", "a"]["replaces"] == 4
    )
    assert overrides["efficiency.step_host", "A"]["reason"] == "+ timed"
    assert overrides["efficiency.step_row", "B"]["provenance"] == "typed into run.xlsx"
    assert sorted(item["kind"] for item in found.edits) == [
        "formula",
        "input",
        "input",
        "input",
        "note",
        "overwritten",
    ]
    assert len(found.checks) == 2 * len(made.equations.checks.checks)
    assert all({"code", "left", "right", "passed"} <= set(check) for check in found.checks)
    assert found.assumptions[0]["number"] == "A-01" and [
        item["id"] for item in found.assumptions if item["changed"]
    ] == ["inputs.concurrency"]
    assert (
        len(found.facts["digest"]) == 64
        and found.facts["date"] == "2026-11-21"
        and found.facts["generator"].startswith("mantile ")
    )


@pytest.mark.exhaustive
def test_files_of_an_audit(
    workbook: Path, found: Audit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plain values in all three forms, nothing that executes, pages one wide; the same bytes twice."""
    assert (
        exit_status(
            "verify",
            "--audit",
            str(workbook),
            *(part for form in ("xlsx", "csv", "json") for part in ("-o", str(tmp_path / f"a.{form}"))),
        )
        == 1  # a formula was edited
    )
    assert f"{len(found.rows):,} rows" in capsys.readouterr().out
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["rows"] == json.loads(
        json.dumps(found.to_dict()["rows"]).replace("NaN", "null")
    )
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        head, *lines = list(csv.reader(file))
    assert head[9:11] == ["A: TP1", "B: @busy"] and len(lines) == len(found.rows)
    assert not any(text[:1] in ("=", "@", "+") for line in lines for text in line)
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book.sheetnames == ["Audit", "Rows", "Assumptions", "Overrides", "Edits", "Checks"]
    assert not any(
        cell.data_type == "f" for sheet in book.worksheets for cells in sheet.iter_rows() for cell in cells
    )
    assert all(
        sheet.page_setup.orientation == "landscape"
        and sheet.page_setup.fitToWidth in (None, 1)
        and sheet.page_setup.fitToHeight == 0
        and sheet.sheet_properties.pageSetUpPr.fitToPage
        for sheet in book.worksheets
    )
    assert (
        "=HYPERLINK(1)" in [cells[1].value for cells in book["Audit"].iter_rows()]
        and len(list(book["Rows"].iter_rows())) == len(found.rows) + 1
    )
    found.write(tmp_path / "b.xlsx")
    assert (tmp_path / "b.xlsx").read_bytes() == (tmp_path / "a.xlsx").read_bytes()


@pytest.mark.exhaustive
def test_what_cannot_be_audited_is_named(workbook: Path, found: Audit, tmp_path: Path) -> None:
    """And nothing is written."""
    with pytest.raises(InputError, match=r"a\.txt: expected a file name that ends in"):
        found.write(tmp_path / "a.txt")
    with pytest.raises(InputError, match="there is no folder"):
        found.write(tmp_path / "none" / "a.csv")
    with pytest.raises(InputError, match=r"none\.xlsx"):
        audit(tmp_path / "none.xlsx")
    assert list(tmp_path.iterdir()) == []
