"""A workbook in which somebody types: its front page stays true, in the units that people say."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from live import few
from office import asked_of_office, needs_office
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.display import long_time
from mantile.equations.metrics import E2E, TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS, Metric
from mantile.estimates.estimate import estimate
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import Literal
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.versions import version
from mantile.workbook.book import ACROSS
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

BASE: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
LOADS: tuple[dict[str, Any], ...] = (
    {},
    {"inputs.concurrency": 2_000},
    {"inputs.concurrency": 100_000},
    {"inputs.concurrency": 100_000, "inputs.input_tokens": 120_000},
    {"inputs.concurrency": 1_000_000, "inputs.input_tokens": 120_000},
    {"inputs.output_tokens": 1},
    {"inputs.compute_speed": 0.001, "inputs.concurrency": 1},
    {"hardware.price_cloud.override": 900_000.0},
)
IMPOSSIBLE: tuple[dict[str, Any], ...] = (
    {"inputs.tp": 3},
    {"inputs.ep": 2},
    {"inputs.cp": 3},
    {"inputs.attention_dp": 3},
    {"inputs.tp": 64},
    {"inputs.input_tokens": 1_000_000},
    {"inputs.output_tokens": 130_000},
    {"inputs.concurrency": -1},
)
CASES: dict[str, dict[str, Any]] = {
    "one": {},
    "not possible": {"tp": 3},
    "three": {"variants": [{"name": "two", "tp": 2}, {"name": "three", "tp": 3}]},
    "apart": {"decode": {"tp": 2}},
    "calibrated": {"measured": {"ttft_ms": 60}},
    "capacity": {
        "capacity": {"users": 200, "requests_per_user": 36, "purchase": 30_000, "rent": 2.5, "years": 2}
    },
}
# What a person would write in another way: without signs between thousands, times in too small a unit.
_BARE = re.compile(r"(?<![\d.,·#-])\d{4,}(?![\d-])")
_LONG = re.compile(r"\d,\d{3},\d{3}(\.\d+)? ms|\d{2},\d{3}(\.\d+)? ms to first|\d,\d{3}(\.\d+)? s\b")
_ERROR = re.compile(r"#[A-Z]|Err:")


@cache
def made(case: str = "one") -> EstimateBook:
    """A workbook with few accelerators."""
    return lay_out(estimate(parse_scenario(BASE | CASES[case], case), library=few(("h100-sxm", "mi300x"))))


def front(book: EstimateBook, typed: dict[str, Any]) -> dict[tuple[int, int], Any]:
    """What Summary shows after an edit, by row and column; charts apart."""
    given = book.generated_inputs()
    given[0] |= typed
    values = book.values(given)
    return {
        place: values[cell.scenario][cell.expression]
        for place, cell in book.sheets["Summary"].cells.items()
        if cell.expression is not None and place[0] < 52
    }


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (10.04, "10.0 s"),
        (24.9, "24.9 s"),
        (119.94, "119.9 s"),
        (120, "2.0 min"),
        (7199, "120.0 min"),
        (7200, "2.0 h"),
        (109_496, "30.4 h"),
        (1e7, "2,777.8 h"),
    ],
)
def test_long_times_are_told_in_the_unit_that_people_say(seconds: float, words: str) -> None:
    """In cells and, by the same words, in Python and on the terminal."""
    assert evaluate(long_time(Literal(seconds))) == words
    assert TTFT.text(seconds) == words


@pytest.mark.parametrize("typed", LOADS)
def test_numbers_of_the_front_page_are_written_as_people_write_them(typed: dict[str, Any]) -> None:
    """Tiles hold numbers up to two minutes, then words; sentences have signs between thousands."""
    book = made()
    shown = front(book, typed)
    texts = {place: text for place, text in shown.items() if isinstance(text, str)}
    assert not [text for text in texts.values() if _BARE.search(text) and "mantile " not in text.lower()]
    assert not [text for text in texts.values() if _LONG.search(text)]
    given = book.generated_inputs()
    given[0] |= typed
    values = book.values(given)[0]

    def seconds(metric: Metric) -> Any:
        return values[metric.of(book.estimate.equations.figures)]

    for column, metric, scale in ((3, TTFT, 1e3), (4, TPOT, 1e3), (5, E2E, 1)):
        time, tile = seconds(metric), shown[10, column]
        if isinstance(time, str):
            assert tile == time
        elif time >= 120:
            assert tile == metric.text(time) and tile.endswith((" min", " h"))
        else:
            assert tile == pytest.approx(time * scale, rel=1e-12)
    if not isinstance(seconds(TTFT), str) and seconds(TTFT) >= 10:
        assert f": {TTFT.text(seconds(TTFT))} to first token" in texts[0, 1]


def test_money_of_a_million_is_told_in_millions() -> None:
    """By the number format of its cells, and in Python."""
    tiles = made().sheets["Summary"].cells
    assert tiles[10, 8].style.form.endswith('"$"#,##0.00,," M"')
    assert tiles[14, 8].style.form.endswith('"$"#,##0.00,," M per hour"')
    assert USD_PER_MILLION_OUTPUT_TOKENS.text(3_374_000) == "3.37 M USD"


@pytest.mark.parametrize("typed", IMPOSSIBLE)
def test_a_code_stands_beside_a_sentence(typed: dict[str, Any]) -> None:
    """Below a title with the code of a reason the same line says what does not hold, or names the cell."""
    book = made()
    shown = front(book, typed)
    title, plan = shown[0, 1], shown[1, 1]
    assert ": not possible, " in title
    code = title.rpartition(", ")[2]
    labels = {str(label.id).removeprefix("checks.label."): label.value for label in _labels(book)}
    if code in labels:
        assert plan == f"Does not hold: {labels[code]}"
    elif code == "insufficient_memory":
        assert plan == f"Does not hold: {labels['MEMORY_EXCEEDED']}"
    else:
        assert code == "INPUT_INVALID" and "Summary!" in plan and "; expected " in plan


def _labels(book: EstimateBook) -> tuple[Any, ...]:
    return book.estimate.equations.checks.labels


def test_no_chart_of_the_front_page_has_a_finding_without_a_plan() -> None:
    """Titles over charts without points say that nobody knows."""
    shown = front(made(), {"inputs.tp": 3})
    for place in ((17, 1), (17, 4), (17, 7), (32, 4), (32, 7)):
        assert str(shown[place]).endswith("not known"), place


@pytest.mark.parametrize("case", CASES)
def test_the_log_of_a_round_trip_states_the_checks_of_the_file(case: str) -> None:
    """As many pass, of as many."""
    book = made(case)
    cell = book.sheets["Summary"].cells[0, 9]
    verdict = str(book.values(book.generated_inputs())[cell.scenario][cell.expression])
    passed, _, count, *_ = version(book.estimate).checks.split()
    found = re.match(r"[✓✗] (\d+) of (\d+) checks (pass|FAIL)$", verdict)
    assert found is not None and found[2] == count
    assert int(passed) == (int(count) - int(found[1]) if found[3] == "FAIL" else int(found[1]))


def test_a_cell_of_the_workbook_that_cannot_be_is_told_in_every_scenario() -> None:
    """Natively as in the sheet, where all scenarios see one cell; else an edited file would not verify."""
    swing = "sensitivity.swing.inputs.input_tokens"
    book = made()
    sheet, row, _ = book.input_cells[swing, 0]
    inputs = book.generated_inputs()
    inputs[0] |= {swing: -5}
    across = book.values(inputs)[ACROSS]
    fault = next(figure for figure in book.addresses if getattr(figure, "id", "") == "sensitivity.fault")
    address = book.addresses[fault]
    assert address.column is not None
    words = across[book.sheets[sheet].cells[address.row, address.column].expression]
    assert words.endswith(f"!D{row + 1} holds '-5'; expected a whole number from 0 to 90")
    given = made("three").given([inputs[0], *made("three").generated_inputs()[1:]])
    assert [of[swing] for of in given[: made("three").columns]] == [-5, -5, -5]


@pytest.mark.exhaustive
@needs_office
def test_no_error_value_stands_under_a_check_that_there_is_none(tmp_path: Path) -> None:
    """An error typed over any formula of the workings: the front page shows none, or a check fails."""
    book = made()
    path = write_workbook(book, tmp_path / "run.xlsx")
    workings = ("Inputs", "Hardware", "Efficiency", "IR", "Calculation")
    cells = [
        [sheet.name, xl_rowcol_to_cell(row, column)]
        for sheet, row, column, cell in book.formulas()
        if sheet.name in workings and cell.entry is None
    ][::6]
    look = [["Summary", xl_rowcol_to_cell(row, column)] for row, column in front(book, {})]
    task = {"look": look, "edits": [[[*cell, "=1/0"]] for cell in cells]}
    then, *seen, again = asked_of_office("libreoffice_edits.py", path, task, tmp_path)
    assert again == then and len(seen) > 80
    denied = {}
    for cell, one in zip(cells, seen, strict=True):
        errors = {place: text for place, text in one["texts"].items() if _ERROR.match(text)}
        if errors and not one["texts"]["Summary!J1"].startswith("✗"):
            denied["!".join(cell)] = errors
    assert denied == {}
