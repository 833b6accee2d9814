"""What was edited since a workbook was made: counted on Edits, listed on Log, live."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from live import as_written, place
from openpyxl import load_workbook

from mantile.equations.stamp import NONE
from mantile.estimates.estimate import estimate
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.verify import verify
from mantile.workbook.book import FIRST, SHARED
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import build_workbook

SCENARIO: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "overrides": [{"id": "efficiency.gemm_compute", "value": 0.6, "reason": "measured"}],
    "variants": [{"name": "four", "tp": 4}],
}
MOST = 8  # edits that Log lists


@pytest.fixture(scope="module")
def book() -> EstimateBook:
    return lay_out(estimate(parse_scenario(SCENARIO, "edits")))


def _listed(book: EstimateBook, values: dict[str, Any], scenario: int = 0) -> tuple[float, list[list[str]]]:
    """How many cells a scenario finds edited, and the list of them."""
    inputs = book.generated_inputs()
    inputs[scenario] = inputs[scenario] | values
    found = book.values(inputs)[scenario]
    sheet = book.sheets["Edits"]
    results = {
        identifier: found[cell.expression]
        for row, identifier in sheet.ids.items()
        if (cell := sheet.cells.get((row, FIRST + scenario))) is not None and cell.expression is not None
    }
    names = ("cell", "was", "now")
    rows = [[results[f"stamp.edit.{place}.{name}"] for name in names] for place in range(1, MOST + 1)]
    return results["stamp.edit.count"], [row for row in rows if row[0] != "–"]


def _order(book: EstimateBook) -> list[str]:
    """Ids of inputs in the order in which they stand on Edits."""
    ids = book.sheets["Edits"].ids.values()
    return [one.removeprefix("stamp.").removesuffix(".now") for one in ids if one.endswith(".now")]


def test_nothing_is_edited_as_generated(book: EstimateBook) -> None:
    assert [_listed(book, {}, scenario) for scenario in (0, 1)] == [(0, []), (0, [])]


def test_every_edit_is_listed_with_its_cell(book: EstimateBook) -> None:
    """An input, a text, an override that is taken back and one that is set; results need not differ."""
    edits = {
        "inputs.tp": 1,
        "inputs.price_basis": "rental",
        "efficiency.gemm_compute.override": None,
        "efficiency.step_host.override": 500,
        "inputs.pue": 1.31,
    }
    count, rows = _listed(book, edits)
    assert count == len(edits)
    found = {cell: (was, now) for cell, was, now in rows}
    sheets = [cell.rpartition(", ")[2].partition("!")[0] for cell in found]
    assert sheets == [book.input_cells[name, 0][0] for name in sorted(edits, key=_order(book).index)]
    assert {(2, 1), ("cloud", "rental"), (1.3, 1.31), (0.6, NONE), (NONE, 500)} == set(found.values())
    assert _listed(book, {"inputs.tp": 2}) == (0, [])


def test_more_edits_than_log_has_room_for(book: EstimateBook) -> None:
    names = [entry for entry in ("tp", "pp", "dp", "cp", "input_tokens", "output_tokens", "concurrency")]
    names += ["token_budget", "electricity_price", "hours_per_day"]
    inputs = book.generated_inputs()[1]
    count, rows = _listed(book, {f"inputs.{name}": inputs[f"inputs.{name}"] + 1 for name in names}, 1)
    assert (count, len(rows)) == (len(names), MOST)


@pytest.mark.exhaustive
def test_an_edit_that_moves_no_result_is_seen(tmp_path: Path) -> None:
    """The file agrees with the engine, and says itself that an input was changed."""
    path = build_workbook(estimate(parse_scenario(SCENARIO, "edits")), tmp_path / "run.xlsx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # extensions that openpyxl leaves out
        workbook = load_workbook(path)
    sheet, cell = workbook.defined_names["in_tp"].attr_text.replace("$", "").replace("'", "").split("!")
    workbook[sheet][cell].value = 1
    workbook.save(path)
    found = verify(path)
    assert found.ok, found.to_dict()
    assert [edit["found"] for edit in found.inputs] == [1]


SHARED_EDITS = {"cost.life": 5.0, "model.vocabulary": 1000.0, "offer.most_days": 30.0}


def test_an_edit_of_a_cell_of_all_scenarios_counts_once(book: EstimateBook) -> None:
    """In the base, behind edits of its own cells; each such cell stands once on Edits."""
    inputs = book.generated_inputs()
    inputs = [values | SHARED_EDITS for values in inputs]
    inputs[0] |= {"inputs.pue": 1.31}
    inputs[1] |= {"inputs.pue": 1.32, "inputs.token_budget": 4096}
    values = book.values(inputs)
    sheet = book.sheets["Edits"]
    rows = {identifier: row for row, identifier in sheet.ids.items()}

    def said(identifier: str, scenario: int) -> Any:
        cell = sheet.cells[rows[identifier], FIRST + scenario]
        return values[scenario][cell.expression]

    assert [said("stamp.edit.count", scenario) for scenario in (0, 1)] == [4, 2]
    listed = [
        [said(f"stamp.edit.{number}.cell", scenario).partition(",")[0] for number in range(1, 6)]
        for scenario in (0, 1)
    ]
    assert listed[1][2:] == ["–"] * 3
    labels = {book.estimate.figure(name).label for name in ("inputs.pue", *SHARED_EDITS)}
    assert set(listed[0]) == {label.partition(",")[0] for label in labels} | {"–"}
    assert [said(f"stamp.edit.{number}.now", 0) for number in range(1, 5)][1:] != ["–"] * 3
    for identifier in SHARED_EDITS:
        row = rows[f"stamp.{identifier}.now"]
        assert (row, SHARED) in sheet.cells and (row, FIRST) not in sheet.cells


@pytest.mark.exhaustive
def test_a_spreadsheet_program_counts_and_lists_them_alike(book: EstimateBook) -> None:
    """Those of a scenario's own cells, then those of all, until there are no more."""
    edits = SHARED_EDITS | {"inputs.electricity_price": 0.31}
    typed = {place(book, name): value for name, value in edits.items()}
    solution = CompiledSheets(as_written(book).contents).calculate(book.sheets, typed)
    sheet = book.sheets["Edits"]
    rows = {identifier: row for row, identifier in sheet.ids.items()}
    count, *now = (
        solution["Edits", rows[name], FIRST]
        for name in ("stamp.edit.count", *(f"stamp.edit.{number}.now" for number in range(1, 6)))
    )
    assert count == len(edits) and set(now) == {*edits.values(), "–"}
    of_four = [
        solution["Edits", rows[f"stamp.edit.{name}"], FIRST + 1] for name in ("count", "1.now", "2.now")
    ]
    assert of_four == [1, 0.31, "–"], "it follows the base where nothing of its own is typed"
