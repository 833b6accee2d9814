"""Break-even prices: typed into the file, they make scenarios cost the same."""

from __future__ import annotations

from typing import Any

import pytest
from live import as_written, few, place

from mantile.equations.compare import Line, compare
from mantile.estimates.estimate import estimate
from mantile.graph.quantity import NOT_KNOWN
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.folding import WHAT_IF

CHIPS = ("h100-sxm", "h200-sxm", "mi355x")
FIELDS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 16,
    "variants": [
        {"name": "H200", "accelerator": "h200-sxm", "tp": 2},
        {"name": "no price", "accelerator": "mi355x"},
    ],
}
DISAGGREGATED: dict[str, Any] = FIELDS | {
    "serving": "disaggregated",
    "decode": {"accelerator": "h200-sxm", "tp": 2},
    "variants": [{"name": "H200", "accelerator": "h200-sxm"}],
}


def _line(book: EstimateBook, key: str) -> Line:
    compared = compare(
        book.estimate.equations, list("ABC")[: book.columns], book.estimate_values, book.currency
    )
    return next(line for line in compared.lines if line.key == key)


def _shown(book: EstimateBook, solution: Any, key: str) -> list[Any]:
    """What the comparison shows of a row in every scenario."""
    sheet = book.sheets[WHAT_IF]
    row = next(row for row, id in sheet.ids.items() if id == f"compare.{_line(book, key).identifier}")
    return [solution[WHAT_IF, row, 3 + max(0, 2 * column - 1)] for column in range(book.columns)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(FIELDS, id="aggregated"),
        pytest.param(DISAGGREGATED, id="disaggregated", marks=pytest.mark.exhaustive),
    ],
)
def test_at_its_break_even_price_a_scenario_costs_what_the_base_does(fields: dict[str, Any]) -> None:
    """The price is typed into the overrides of each scenario and every formula worked out again: with decode
    workers of both kinds, and where nobody states a price."""
    book = lay_out(estimate(parse_scenario(fields, "test"), library=few(CHIPS)))
    model = CompiledSheets(as_written(book).contents)
    before = model.calculate(book.sheets, {})
    prices, break_even = _shown(book, before, "price"), _shown(book, before, "break_even")
    assert break_even[0] == pytest.approx(prices[0], rel=1e-12)
    assert all(0.1 < price < 100 for price in break_even), "known wherever the base's cost is"
    if fields is FIELDS:
        assert prices[2] == NOT_KNOWN
    typed = {
        place(book, f"{workers}hardware.price_cloud.override", column): price
        for column, price in enumerate(break_even)
        for workers in (("", "decode.") if "decode" in fields else ("",))
    }
    cost = _shown(book, model.calculate(book.sheets, typed), "usd_per_million_output")
    assert cost == pytest.approx([cost[0]] * len(cost), rel=1e-9)
    assert cost[0] == pytest.approx(_shown(book, before, "usd_per_million_output")[0], rel=1e-9)


@pytest.mark.exhaustive
def test_without_a_price_of_the_base_there_is_no_break_even() -> None:
    """It is said, not shown as 0."""
    book = lay_out(estimate(parse_scenario(FIELDS | {"accelerator": "mi355x"}, "test"), library=few(CHIPS)))
    shown = _shown(book, CompiledSheets(as_written(book).contents).calculate(book.sheets, {}), "break_even")
    assert shown == [NOT_KNOWN] * 3
