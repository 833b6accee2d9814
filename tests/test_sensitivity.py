"""Sensitivity and sweep, on What-if.

Each column is the estimate with that input, and only what follows from it is worked out again.
"""

from __future__ import annotations

import itertools
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from live import as_written, few
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.sensitivity import RANGE, SensitivityInput, results
from mantile.equations.sweep import CHART_METRIC
from mantile.equations.variation import MOST_CHARACTERS
from mantile.estimates import points as estimate_points
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sensitivity import selected, sensitivity
from mantile.graph.quantity import NOT_KNOWN, Input, Quantity
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.sheets.folding import WHAT_IF
from mantile.workbook.sheets.sensitivity import FIRST_RESULT, HIGH, LOW
from mantile.workbook.sheets.sweep import SWEEP
from mantile.workbook.write import write_workbook

BASE: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 256,
    "concurrency": 16,
}
STANDARD = BASE | {"model": "llama-3.3-70b", "tp": 8, "input_tokens": 2048}
MODELS: tuple[dict[str, Any], ...] = (
    {},
    {"model": "llama-3.1-8b", "decode": {"tp": 2}},
    {"request_rate": 4.0},
    {"model": "mixtral-8x7b", "tp": 2, "draft_tokens": 3},
)


def made(**fields: Any) -> Estimate:
    """An estimate of the base with changes."""
    scenario = parse_scenario(BASE | fields, "scenario")
    return estimate(scenario, library=few(("h100-sxm", "h200-sxm")))


@cache
def laid_out(number: int) -> tuple[EstimateBook, list[dict[Any, Any]]]:
    """A workbook and the native values of all its columns."""
    book = lay_out(made(**MODELS[number]))
    return book, book.values(book.generated_inputs())


def table(book: EstimateBook, values: list[dict[Any, Any]], sheet: str, row: int, column: int) -> float:
    """What a cell shows."""
    cell = book.sheets[sheet].cells[row, column]
    assert cell.expression is not None
    return plain(values[cell.scenario][cell.expression])


def again(found: Estimate, driver: SensitivityInput, share: float) -> dict[str, float]:
    """The results with an input scaled by hand, without any of the workbook's figures."""
    inputs = found.inputs(0)
    figure = driver.figure
    if isinstance(figure, Input):
        value = float(inputs[figure.id]) * share
        changed: dict[str, Any] = {figure.id: max(1.0, float(int(value + 1e-9))) if figure.integer else value}
        if driver.at_most_one:
            changed[figure.id] = min(1.0, value)
        if figure.id == "inputs.pue":
            changed[figure.id] = max(1.0, value)
    else:
        kind = driver.id.rpartition(".")[2]
        reached = found.equations.prefill_workers.efficiency
        changed = {
            item.id: min(item.value * share, 1.0)
            if driver.at_most_one
            else max(item.value * share, float(driver.at_least_one))
            for item in reached.figures[kind]
            if isinstance(item.value, int | float)
        }
    values = found.program.run(inputs | changed)
    return {name: plain(values[result.figure]) for name, result in results(found.equations).items()}


def plain(value: object) -> float:
    """A figure; not a number where it is not known."""
    return math.nan if value == NOT_KNOWN else float(value)  # type: ignore[arg-type]


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(MODELS)))
def test_each_end_of_a_driver_is_the_estimate_with_it(number: int) -> None:
    """TTFT, TPOT and cost at the lower and the higher end, in the units of the table."""
    book, values = laid_out(number)
    found = book.estimate
    rows = {identifier: row for row, identifier in book.sheets[WHAT_IF].ids.items()}
    seen = 0
    for driver in selected(sensitivity(found), found):
        if driver.status == "price" or (
            len(found.equations.workers) > 1 and not driver.id.startswith("inputs.")
        ):
            continue  # of one side of two; the price is tested below
        for offset, sign in enumerate((-1, 1)):
            expected = again(found, driver, 1 + sign * driver.range_percent / 100)
            for place, (name, scale) in enumerate((("ttft", 1e3), ("tpot", 1e3), ("usd", 1.0))):
                shown = table(book, values, WHAT_IF, rows[driver.id], FIRST_RESULT + 2 * place + offset)
                wanted = pytest.approx(expected[name] * scale, rel=1e-9, nan_ok=True)
                assert plain(shown) == wanted, (driver.id, name, sign)
                seen += 1
    assert seen >= 6 * (2 if len(found.equations.workers) > 1 else 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [0, 1])
def test_effects_mean_one_thing_everywhere(number: int) -> None:
    """The live effect on Assumptions is the change between both ends on What-if.

    It is also what `sensitivity` says.

    Also where decode workers have factors of their own, and for a price, whose effect is in proportion.
    """
    book, values = laid_out(number)
    effects = {item.input.id: item.effects for item in sensitivity(book.estimate)}
    rows = {identifier: row for row, identifier in book.sheets["Audit"].ids.items()}
    ends = {identifier: row for row, identifier in book.sheets[WHAT_IF].ids.items()}
    base = {
        key: plain(book.estimate_values[0][result.figure])
        for key, result in results(book.estimate.equations).items()
    }
    live = [identifier for identifier in rows if identifier in ends]
    assert len(live) == 8
    for identifier, row in rows.items():
        if identifier not in effects:  # checks, and what sources are chosen from
            continue
        for column, (key, scale) in enumerate((("ttft", 1e3), ("tpot", 1e3), ("usd", 1.0))):
            cell = book.sheets["Audit"].cells[row, 9 + column]
            if identifier not in live:
                effect = effects[identifier][key]
                assert effect is None or cell.number == round(effect, 6)
                continue
            assert cell.expression is not None
            if effects[identifier][key] is None:
                assert values[cell.scenario][cell.expression] == NOT_KNOWN
                continue
            shown = plain(values[cell.scenario][cell.expression])
            assert shown == pytest.approx(effects[identifier][key], rel=1e-8, abs=3e-9)
            low, high = (
                table(book, values, WHAT_IF, ends[identifier], FIRST_RESULT + 2 * column + end)
                for end in (0, 1)
            )
            change = (high - low) / (base[key] * scale) if base[key] else 0.0
            assert shown == pytest.approx(change, rel=1e-6, abs=3e-9)


def test_a_factor_of_prefill_workers_does_not_move_decode() -> None:
    """Though both kinds of workers read it from the same profile: only through the requests it passes on."""
    found = made(decode={"tp": 2})
    effects = {item.input.id: item for item in sensitivity(found)}
    mine, theirs = (effects[f"{prefix}efficiency.gemm_bandwidth"] for prefix in ("", "decode."))
    assert abs(mine.effects["tpot"]) < 1e-4 and theirs.effects["tpot"] < -0.01
    item = theirs.input
    inputs = found.inputs(0)
    for end, sign in (("low", -1), ("high", 1)):
        share = 1 + sign * item.range_percent / 100
        value = float(found.values()[item.figure]) * share
        other = float(
            found.program.run(inputs | {f"{item.id}.override": value})[found.equations.serving.tpot]
        )
        base = float(found.values()[found.equations.serving.tpot])
        assert (other < base) == (end == "high")


@pytest.mark.exhaustive
def test_a_price_moves_the_cost_alone() -> None:
    book, values = laid_out(0)
    row = next(row for row, identifier in book.sheets[WHAT_IF].ids.items() if identifier == "cost.price")
    base = {
        name: float(book.estimate_values[0][result.figure])
        for name, result in results(book.estimate.equations).items()
    }
    assert [
        table(book, values, WHAT_IF, row, column) / (base["usd"]) for column in (10, 11)
    ] == pytest.approx([0.8, 1.2])
    assert [table(book, values, WHAT_IF, row, column) for column in (6, 7)] == pytest.approx(
        [base["ttft"] * 1e3] * 2
    )


@pytest.mark.parametrize("number", [0, 1])
def test_the_most_consequential_come_first_and_the_charts_are_sorted(number: int) -> None:
    """Drivers by how much they move a result; bars of every tornado by the distance between their ends."""
    book, values = laid_out(number)
    largest = [item.largest for item in sensitivity(book.estimate)]
    assert largest == sorted(largest, reverse=True)
    for name in ("ttft", "tpot", "usd"):
        ends, changes = (
            {
                figure.id: float(values[-1][figure.body])
                for figure in book.addresses
                if isinstance(figure, Quantity)
                and figure.id.startswith(tuple(f"sensitivity.{name}.{kind}." for kind in kinds))
            }
            for kinds in (("better", "worse"), ("low", "high", "entry"))
        )
        entries = [int(changes[f"sensitivity.{name}.entry.{rank}"]) for rank in range(1, 9)]
        spreads = [
            abs(changes[f"sensitivity.{name}.high.{entry}"] - changes[f"sensitivity.{name}.low.{entry}"])
            for entry in entries
        ]
        assert sorted(entries) == list(range(1, 9))
        assert all(one >= other * (1 - 1e-7) for one, other in itertools.pairwise(spreads))
        for rank, entry in enumerate(entries, 1):
            both = (
                changes[f"sensitivity.{name}.low.{entry}"],
                changes[f"sensitivity.{name}.high.{entry}"],
                0.0,
            )
            assert (ends[f"sensitivity.{name}.better.{rank}"], ends[f"sensitivity.{name}.worse.{rank}"]) == (
                min(both),
                max(both),
            )
        assert all(
            ends[f"sensitivity.{name}.better.{rank}"] <= 0 <= ends[f"sensitivity.{name}.worse.{rank}"]
            for rank in range(1, 9)
        )


def test_a_percentage_that_cannot_be_is_named_and_its_driver_not_known() -> None:
    """Formulas and engine say the same; all other drivers stay, and put back it is as it was."""
    book, _ = laid_out(0)
    cells = {of: place for (of, _), place in book.input_cells.items() if of.startswith(RANGE)}
    model = CompiledSheets(as_written(book).contents)
    names = [name for name in cells if name.endswith(("inputs.input_tokens", "cost.price"))]
    assert len(names) == 2
    rows = range(min(row for _, row, _ in cells.values()), max(row for _, row, _ in cells.values()) + 1)

    def lines(typed: dict[tuple[str, int, int], Any]) -> dict[int, list[Any]]:
        found = model.calculate([WHAT_IF], typed)
        return {row: [found[WHAT_IF, row, column] for column in range(LOW, 12)] for row in rows}

    generated = lines({})
    for name, wrong in itertools.product(names, ("many", -5, 91, 2.5)):
        place, label = cells[name], book.own_inputs[name].label
        found = model.calculate([WHAT_IF], {place: wrong})
        words = f"! {label}, What-if!{xl_rowcol_to_cell(*place[1:])} holds '{wrong}'; expected a whole number"
        assert words in [text[: len(words)] for text in found.values() if isinstance(text, str)], name
        now = lines({place: wrong})
        assert now[place[1]][:2] == [NOT_KNOWN] * 2 and NOT_KNOWN in now[place[1]][2:], (name, wrong)
        assert {row for row in rows if now[row] != generated[row]} == {place[1]}
        inputs = book.generated_inputs()
        inputs[0] |= {name: wrong}
        values = book.values(inputs)
        for column in range(LOW, 12):
            cell = book.sheets[WHAT_IF].cells[place[1], column]
            native = values[cell.scenario][cell.expression]  # type: ignore[index]
            shown = now[place[1]][column - LOW]
            assert shown == (native if isinstance(native, str) else pytest.approx(native, rel=1e-9)), column
    assert lines({cells[names[0]]: book.own_inputs[names[0]].value}) == generated


@pytest.mark.exhaustive
def test_one_formula_per_row_and_no_more_rows_than_follow(tmp_path: Path) -> None:
    """Low and high hold the same formula; every row there is needed; the rules hold."""
    book, _ = laid_out(1)
    sheet = book.sheets[WHAT_IF]
    low, high = (get_column_letter(column + 1) for column in (LOW, HIGH))
    for row, identifier in sheet.ids.items():
        if identifier.startswith("sensitivity."):
            one, two = (book.formula_text(sheet, sheet.cells[row, column]) for column in (LOW, HIGH))
            assert Translator(one, origin=f"{low}{row + 1}").translate_formula(f"{high}{row + 1}") == two
    path = write_workbook(book, tmp_path / "run.xlsx")
    assert not lint(path)


def test_what_is_worked_out_again_is_light() -> None:
    """Steps stand in the formulas that read them, of which none is longer than the rules allow."""
    book = lay_out(estimate(parse_scenario(STANDARD, "scenario")))
    sheet = book.sheets[WHAT_IF]
    cells = [cell for cell in sheet.cells.values() if cell.expression is not None]
    texts = [book.formula_text(sheet, cell) for cell in cells]
    assert len(texts) <= 2_075 and len(sheet.cells) <= 3_800, (len(texts), len(sheet.cells))
    assert 300 < max(len(text) for text in texts if "&" not in text) <= MOST_CHARACTERS
    assert all(len(sheet.cells[row, 0].text or "") for row in sheet.ids), "every row says what it is"


@pytest.mark.exhaustive
def test_a_swing_can_be_typed_and_stated() -> None:
    """A scenario may state it; a typed one changes both ends."""
    stated = lay_out(made(sensitivity={"inputs.concurrency": 50}))
    row = next(
        row for row, identifier in stated.sheets[WHAT_IF].ids.items() if identifier == "inputs.concurrency"
    )
    values = stated.values(stated.generated_inputs())
    assert [table(stated, values, WHAT_IF, row, column) for column in (LOW, HIGH)] == [8, 24]
    given = stated.generated_inputs()
    given[0] |= {"sensitivity.swing.inputs.concurrency": 25}
    values = stated.values(given)
    assert [table(stated, values, WHAT_IF, row, column) for column in (LOW, HIGH)] == [12, 20]


# --- Sweep --------------------------------------------------------------------------------------------------


def row_of_now(book: EstimateBook) -> int:
    """The row of the live scenario, above the points."""
    cells = book.sheets[WHAT_IF].cells
    return next(row for (row, column), cell in cells.items() if cell.text == "now, live" and not column)


def points(book: EstimateBook, values: list[dict[Any, Any]]) -> list[dict[str, Any]]:
    """The lines of the table of points after the live one: TTFT and TPOT in ms."""
    sheet = book.sheets[WHAT_IF]
    fields = len(book.estimate.scenario.sweep) or 1
    found = []
    row = row_of_now(book) + 1
    while (row, fields + 1) in sheet.cells:
        line: dict[str, Any] = {"row": row}
        for name, column in (("ttft", fields + 1), ("tpot", fields + 2), ("usd", fields + 7)):
            cell = sheet.cells[row, column]
            line[name] = (
                cell.number if cell.expression is None else float(values[cell.scenario][cell.expression])
            )
        if sheet.cells[row, 0].text != "still so":
            found.append(line)
        row += 1
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("sweep", "live"),
    [
        ({"tp": [1, 2], "input_tokens": [128, 4096]}, True),
        ({"framework": ["vllm", "sglang"], "accelerator": ["h200-sxm", "h100-sxm"]}, True),
        ({"weights_dtype": ["bf16", "fp8"]}, False),
    ],
)
def test_a_point_is_the_estimate_with_that_input(
    sweep: dict[str, list[Any]], live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows from a field by default follows in a sweep too, with points as formulas or as values."""
    if not live:
        monkeypatch.setattr(estimate_points, "MOST_LIVE", 0)
    book = lay_out(made(sweep=sweep))
    values = book.values(book.generated_inputs())
    found = points(book, values)
    first, *rest = sweep
    expected = [
        {first: one} | dict(zip(rest, [other], strict=False))
        for other in (sweep[rest[0]] if rest else [None])
        for one in sweep[first]
    ]
    lines = found if live else found[1:]
    assert len(lines) == len(expected) and any(case.part == SWEEP for case in book.cases) == live
    curves = [series["values"] for series in book.sheets[WHAT_IF].charts[-1][2].series]
    drawn = [
        row for _, start, _, end, _ in curves for row in range(start, end + 1) if row != row_of_now(book)
    ]
    assert sorted(set(drawn)) == [line["row"] for line in lines], (
        "curves go through all points and nothing else"
    )
    for line, point in zip(lines, expected, strict=True):
        result = made(**point).results()
        wanted = (result["ttft_s"] * 1e3, result["tpot_s"] * 1e3, result["usd_per_million_tokens"]["output"])
        assert (line["ttft"], line["tpot"], line["usd"]) == pytest.approx(wanted, rel=1e-9), point


@pytest.mark.exhaustive
@pytest.mark.parametrize("sweep", [{}, {"tp": [1, 2], "input_tokens": [128, 4096]}])
def test_a_chart_follows_the_metric_that_is_chosen(sweep: dict[str, list[Any]]) -> None:
    """Its points are the column of the metric, which its title names; the first for none of the list."""
    book = lay_out(made(sweep=sweep) if sweep else made())
    sheet = book.sheets[WHAT_IF]
    _, top, at = book.input_cells[CHART_METRIC, 0]
    [entry] = [figure for figure in book.own_inputs.values() if figure.id == CHART_METRIC]
    heads = ((cell.text, at) for at, cell in sheet.cells.items() if cell.text in entry.choices)
    columns = {text: column for text, (row, column) in sorted(heads, reverse=True) if row > top + 10}
    series = sheet.charts[-2][2].series
    for typed in (*entry.choices, "none of the list"):
        given = book.generated_inputs()
        given[0] |= {CHART_METRIC: typed}
        values = book.values(given)
        metric = typed if typed in entry.choices else entry.choices[0]
        title = sheet.cells[top, at + 1]
        assert str(values[title.scenario][title.expression]).startswith(f"{metric} over ")
        for _, first, column, last, _ in (one["values"] for one in series):
            for row in range(first, last + 1):
                shown, cell = sheet.cells[row, column], sheet.cells[row, columns[metric]]
                value = cell.number if cell.expression is None else values[cell.scenario][cell.expression]
                assert values[shown.scenario][shown.expression] == value, (typed, row)
    assert len(columns) == len(entry.choices)


@pytest.mark.exhaustive
def test_a_chart_without_points_says_so() -> None:
    """Of plans that cannot be no point is drawn, and the titles say that nobody knows any."""
    book = lay_out(made(sweep={"tp": [3, 5]}))
    values, sheet = book.values(book.generated_inputs()), book.sheets[WHAT_IF]
    _, top, _ = book.input_cells[CHART_METRIC, 0]
    titles = [
        str(values[cell.scenario][cell.expression])
        for (row, column), cell in sheet.cells.items()
        if row == top and 0 < column < 10 and cell.expression is not None
    ]
    assert len(titles) == 2 and all(title.endswith(": not known at any point") for title in titles)


@pytest.mark.exhaustive
def test_stored_points_say_when_they_are_no_longer_those_of_the_scenario() -> None:
    book, values = laid_out(0)
    note = next(figure for figure in book.addresses if figure.id == "sweep.note")
    assert str(values[-1][note]).startswith("✓")
    given = book.generated_inputs()
    given[0] |= {"inputs.tp": 2}
    assert str(book.values(given)[-1][note]).startswith("!")


@pytest.mark.exhaustive
def test_arrivals_at_a_rate_are_swept_by_the_rate() -> None:
    """Every point with the concurrency that follows from its rate."""
    book, values = laid_out(2)
    lines = points(book, values)[1:]
    rates = [4 * share for share in (0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1)]
    for line, rate in zip(lines, rates, strict=True):
        assert line["ttft"] == pytest.approx(made(request_rate=rate).results()["ttft_s"] * 1e3, rel=1e-9)


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({"colour": [1]}, "unknown input 'colour'"),
        ({"concurrency": list(range(1, 2500))}, "2,499 items; expected at most 2,000"),
        ({"concurrency": ["many"]}, "concurrency"),
        ({"accelerator": ["h100-sxmm"]}, "h100-sxm"),
        ({"tp": [1], "pp": [1], "dp": [1]}, "at most 2"),
        ({"tp": []}, "at least 1"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(sweep: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lay_out(made(sweep=sweep))


@pytest.mark.exhaustive
def test_points_can_be_typed(tmp_path: Path) -> None:
    """A typed point is worked out by its column; the rules hold for a book with live points."""
    book = lay_out(made(sweep={"concurrency": [1, 16]}))
    given = book.generated_inputs()
    given[-1] |= {"sweep.inputs.concurrency": 64}
    assert points(book, book.values(given))[1]["tpot"] == pytest.approx(
        made(concurrency=64).results()["tpot_s"] * 1e3, rel=1e-9
    )
    assert not lint(write_workbook(book, tmp_path / "run.xlsx"))


def test_a_workbook_without_room_still_names_two_drivers(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding names two: with none the workbook could not be made."""
    monkeypatch.setattr(sys.modules["mantile.estimates.sensitivity"], "MOST_ROWS", 1)
    made = make()
    assert len(selected(sensitivity(made), made)) == 2
