"""Source and status on Assumptions are those of the figure in use, whatever is typed."""

from __future__ import annotations

from typing import Any

import pytest
from live import as_written, few, place

from mantile.estimate.estimate import estimate
from mantile.estimate.sensitivity import sensitivity_inputs
from mantile.library.profile_facts import OWN_PRICE
from mantile.library.scenario import parse_scenario
from mantile.verify.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.workings import HOW

CHIPS = ("h100-sxm", "b200-sxm", "mi355x")
FIELDS: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 4,
    "input_tokens": 2000,
    "output_tokens": 300,
    "concurrency": 32,
    "date": "2026-11-21",
}
SOURCE, STATUS = 7, 8  # columns
LIBRARY = few(CHIPS)


def _made(**fields: Any) -> EstimateBook:
    return lay_out(estimate(parse_scenario(FIELDS | fields, "test"), library=LIBRARY))


def _shown(book: EstimateBook, typed: dict[tuple[str, int, int], Any]) -> dict[str, tuple[str, str]]:
    """Status and source of each row of Assumptions, by id, after cells are typed over."""
    solution = CompiledSheets(as_written(book).contents).calculate(book.sheets, typed)
    sheet = book.sheets["Assumptions"]
    return {
        identifier: (
            str(solution[sheet.name, row, STATUS]),
            str(solution[sheet.name, row, SOURCE]),
        )
        for row, identifier in sheet.ids.items()
        if (row, SOURCE) in sheet.cells and sheet.cells[row, SOURCE].expression is not None
    }


@pytest.mark.exhaustive
def test_origins_are_those_of_the_row_in_use() -> None:
    """Typed for another accelerator, they are what a workbook of that says; so are effects of Sensitivity."""
    book = _made()
    before = _shown(book, {})
    for chip in CHIPS[1:]:
        after = _shown(book, {place(book, "inputs.accelerator"): chip})
        other = _shown(_made(accelerator=chip), {})
        changed = {identifier for identifier in after if after[identifier] != before[identifier]}
        assert "cost.price" in changed
        assert {key: after[key] for key in other} == other, chip


@pytest.mark.exhaustive
def test_an_override_says_so_with_its_reason() -> None:
    """Also one that is typed, with the reason that is typed beside it."""
    book = _made()
    sheet, row, column = place(book, "efficiency.gemm_compute.override")
    told = _shown(book, {(sheet, row, column): 0.5, (sheet, row, HOW): "timed by us"})
    assert told["efficiency.gemm_compute"] == ("override", "timed by us")
    stated = {"id": "efficiency.gemm_compute", "value": 0.5, "reason": "timed by us"}
    assert _shown(_made(overrides=[stated]), {})["efficiency.gemm_compute"][0] == "override"


@pytest.mark.exhaustive
def test_inputs_say_whether_anyone_asked_for_them() -> None:
    """As asked, assumed since nobody did, or typed since."""
    book = _made()
    told = _shown(book, {})
    assert told["inputs.concurrency"] == ("given", "as asked")
    assert told["inputs.utilisation"][0] == "assumed"
    assert {item.id: item.status for item in sensitivity_inputs(book.estimate)}["inputs.pue"] == "assumed"
    assert _shown(book, {place(book, "inputs.pue"): 1.5})["inputs.pue"][0] == "typed"
    prices = (told["cost.price"], _shown(book, {place(book, "inputs.price_basis"): "rental"})["cost.price"])
    assert prices[0] != prices[1] and all(status.startswith("secondary") for status, _ in prices)


@pytest.mark.parametrize("basis", ["cloud", "rental", "owned"])
def test_a_price_typed_over_that_of_the_library_is_ones_own(basis: str) -> None:
    """Neither provider nor day of the former price is told of it; another accelerator has its own again."""
    made = estimate(parse_scenario(FIELDS | {"price_basis": basis}, "test"), library=LIBRARY)
    price = "purchase" if basis == "owned" else basis
    parts = {part: made.figure(f"cost.offer_{part}") for part in ("provider", "region", "day", "own")}
    before = made.values()
    after = made.program.run(made.inputs(0) | {f"library.h100-sxm.price_{price}": 99.0})
    assert before[parts["own"]] == 0 and before[parts["provider"]] != OWN_PRICE
    assert after[parts["own"]] == 1 and after[parts["provider"]] == OWN_PRICE == after[parts["region"]]
    assert after[parts["day"]] == "not known"
    other = made.program.run(
        made.inputs(0) | {f"library.h100-sxm.price_{price}": 99.0, "inputs.accelerator": "b200-sxm"}
    )
    assert other[parts["own"]] == 0


def test_the_sheet_of_a_base_alone() -> None:
    """Every origin is a formula of the base's column."""
    book = _made()
    sheet = book.sheets["Assumptions"]
    rows = [row for row, identifier in sheet.ids.items() if not identifier.startswith("override.")]
    assert rows and all(
        sheet.cells[row, column].expression is not None for row in rows for column in (SOURCE, STATUS)
    )
