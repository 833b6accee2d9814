"""Source and status on Assumptions are those of the figure in use, whatever is typed."""

from __future__ import annotations

from typing import Any

import pytest
from live import as_written, few, place
from test_trace import paths_of

from mantile.equations.assumption import TYPED_SOURCE
from mantile.equations.metrics import USD_PER_MILLION_OUTPUT_TOKENS
from mantile.estimates.estimate import estimate
from mantile.estimates.sensitivity import sensitivity_inputs
from mantile.library.profile_facts import OWN_PRICE
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.workings import HOW

CHIPS = ("h100-sxm", "b200-sxm")
FIELDS: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 4,
    "input_tokens": 2000,
    "output_tokens": 300,
    "concurrency": 32,
    "date": "2026-11-21",
}
SOURCE, STATUS = 3, 4  # columns
FIGURE_STATUS, SAID, KEY = 4, 5, 9  # columns of the figures of the library in use
LIBRARY = few(CHIPS)

Typed = dict[tuple[str, int, int], Any]


def _made(**fields: Any) -> EstimateBook:
    return lay_out(estimate(parse_scenario(FIELDS | fields, "test"), library=LIBRARY))


def _shown(book: EstimateBook, typed: Typed) -> dict[str, tuple[str, str]]:
    """Status and source of each row of Assumptions, by id, after cells are typed over."""
    return _told(book, CompiledSheets(as_written(book).contents).calculate(book.sheets, typed))


def _told(book: EstimateBook, solution: Any) -> dict[str, tuple[str, str]]:
    """The same of all formulas worked out."""
    sheet = book.sheets["Audit"]
    return {
        identifier: (
            str(solution[sheet.name, row, STATUS]),
            str(solution[sheet.name, row, SOURCE]),
        )
        for row, identifier in sheet.ids.items()
        if not identifier.startswith("trace.figure.")  # what the others are chosen from
        if (row, SOURCE) in sheet.cells and sheet.cells[row, SOURCE].expression is not None
    }


def _figures(book: EstimateBook, solution: Any) -> dict[str, tuple[str, str]]:
    """Status and source of each figure of the library in use, as the table below Assumptions has them."""
    sheet = book.sheets["Audit"]
    keys = {row: cell.text for (row, column), cell in sheet.cells.items() if column == KEY and cell.text}
    return {
        key: (str(solution.get((sheet.name, row, FIGURE_STATUS))), str(solution[sheet.name, row, SAID]))
        for row, key in keys.items()
        if (sheet.name, row, SAID) in solution and sheet.cells[row, SAID].expression is not None
    }


@pytest.mark.exhaustive
def test_origins_are_those_of_the_row_in_use() -> None:
    """Typed for another accelerator, they are what a workbook of that says; so are effects of Sensitivity."""
    book = _made()
    model, chip = CompiledSheets(as_written(book).contents), CHIPS[1]
    typed: tuple[Typed, ...] = ({}, {place(book, "inputs.accelerator"): chip})
    before, after = (_told(book, model.calculate(book.sheets, cells)) for cells in typed)
    other = _shown(_made(accelerator=chip), {})
    changed = {identifier for identifier in after if after[identifier] != before[identifier]}
    assert "cost.price" in changed
    assert {key: after[key] for key in other} == other


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
    model = CompiledSheets(as_written(book).contents)

    def shown(typed: Typed) -> dict[str, tuple[str, str]]:
        return _told(book, model.calculate(book.sheets, typed))

    told = shown({})
    assert told["inputs.concurrency"] == ("given", "as asked")
    assert told["inputs.utilisation"][0] == "assumed"
    assert {item.id: item.status for item in sensitivity_inputs(book.estimate)}["inputs.pue"] == "assumed"
    assert shown({place(book, "inputs.pue"): 1.5})["inputs.pue"][0] == "typed"
    prices = (told["cost.price"], shown({place(book, "inputs.price_basis"): "rental"})["cost.price"])
    assert prices[0] != prices[1] and all(status.startswith("secondary") for status, _ in prices)


@pytest.mark.parametrize("basis", ["cloud", "rental", "owned"])
def test_a_price_that_is_typed_is_ones_own(basis: str) -> None:
    """Neither provider nor day of the price in the library is told of it."""
    made = estimate(parse_scenario(FIELDS | {"price_basis": basis}, "test"), library=LIBRARY)
    price = "purchase" if basis == "owned" else basis
    parts = {part: made.figure(f"cost.offer_{part}") for part in ("provider", "region", "day", "own")}
    before = made.values()
    after = made.program.run(made.inputs(0) | {f"hardware.price_{price}.override": 99.0})
    assert before[parts["own"]] == 0 and before[parts["provider"]] != OWN_PRICE
    assert after[parts["own"]] == 1 and after[parts["provider"]] == OWN_PRICE == after[parts["region"]]
    assert after[parts["day"]] == "not known"


def _price(book: EstimateBook, model: CompiledSheets, typed: Typed) -> tuple[str, str, str, str]:
    """Status and source of the price on Assumptions, and those that the trace ends in."""
    solution = model.calculate(book.sheets, typed)
    path = paths_of(book, solution)[USD_PER_MILLION_OUTPUT_TOKENS]
    return (*_told(book, solution)["cost.price"], path[-2][4], path[-1][1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("basis", ["cloud", "owned"])
def test_a_price_of_ones_own_has_nobody_elses_status(basis: str) -> None:
    """Typed into the cell of its override; on Assumptions and in the trace."""
    book, price = _made(price_basis=basis), "purchase" if basis == "owned" else basis
    model = CompiledSheets(as_written(book).contents)
    status, source, *traced = _price(book, model, {})
    assert status.startswith("secondary") and traced[0] == status and source != TYPED_SOURCE
    sheet, row, column = place(book, f"hardware.price_{price}.override")
    edits = {(sheet, row, column): 99.0, (sheet, row, HOW): "our offer"}
    assert _price(book, model, edits) == ("override", "our offer") * 2


def test_the_sheet_of_a_base_alone() -> None:
    """Every origin is a formula of the base's column."""
    book = _made()
    sheet = book.sheets["Audit"]
    others = ("override.", "trace.figure.")
    rows = [row for row, identifier in sheet.ids.items() if "." in identifier[1:] and identifier.islower()]
    rows = [row for row in rows if not sheet.ids[row].startswith(others)]
    assert rows and all(
        sheet.cells[row, column].expression is not None for row in rows for column in (SOURCE, STATUS)
    )
