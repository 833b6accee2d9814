"""What was edited since a workbook was made: counted on Edits, listed on Log, live."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from mantile.equations.stamp import NONE
from mantile.estimate.estimate import estimate
from mantile.library.scenario import parse_scenario
from mantile.verify.verify import verify
from mantile.workbook.book import FIRST
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
    names += ["token_budget", "pue", "hours_per_day"]
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
