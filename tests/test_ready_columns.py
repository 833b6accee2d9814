"""Ready columns: scenarios typed in the workbook follow the base, and count once they have a name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from live import as_written, edit, few, typed_into
from office import asked_of_office, needs_office
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.ready_columns import NAME
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import Input, Quantity
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.audit import audit
from mantile.roundtrip.edits import edited
from mantile.roundtrip.import_workbook import import_workbook
from mantile.search.question import workload_of
from mantile.verification.verify import verify
from mantile.workbook import read
from mantile.workbook.book import ACROSS, FIRST, HEAD_ROW, Cell
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import File, typed_inputs
from mantile.workbook.write import write_workbook

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "overrides": [{"id": "efficiency.gemm_compute", "value": 0.6, "reason": "measured"}],
    "variants": [{"name": "two", "tp": 2}],
}
LOW, HIGH = 2, 3  # the ready columns
_ABOUT_CELLS = ("typed.", "stamp.")  # before ids of figures about what cells held


def ask(**fields: Any) -> Estimate:
    """An 8B model on one H100 and on two, and two ready columns, unless it says otherwise."""
    return estimate(parse_scenario(ASKED | {"ready_columns": 2} | fields, "ready"), library=few())


@pytest.fixture(scope="module")
def book() -> EstimateBook:
    return lay_out(ask())


@pytest.fixture(scope="module")
def built(book: EstimateBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_workbook(book, tmp_path_factory.mktemp("ready") / "run.xlsx")


Typed = dict[tuple[str, int], Any]
"""What is typed, by the input and its scenario."""


def after(book: EstimateBook, typed: Typed) -> File:
    """The workbook with cells typed over."""
    return typed_into(as_written(book), {book.input_cells[cell]: value for cell, value in typed.items()})


def on_disk(book: EstimateBook, built: Path, target: Path, typed: Typed) -> Path:
    """The same as openpyxl saves it."""

    def change(cells: Any) -> None:
        for cell, value in typed.items():
            sheet, row, column = book.input_cells[cell]
            cells[sheet].cell(row + 1, column + 1).value = value

    return edit(built, target, change)


def results(book: EstimateBook, typed: Typed) -> list[dict[str, Any]]:
    """Values by id of each scenario, and last those across them, after an edit."""
    bodies = {figure.body: figure.id for figure in book.addresses if isinstance(figure, Quantity)}
    return [
        {bodies[node]: value for node, value in of.items() if node in bodies}
        | {node.id: value for node, value in of.items() if isinstance(node, Quantity)}
        for of in book.values(typed_inputs(after(book, typed))[0])
    ]


def require_equal(found: dict[str, Any], wanted: Estimate, column: int) -> None:
    """Every figure of an estimate has the same value, but for those about what cells held."""
    figures = wanted.equations.quantities()
    for figure in figures:
        if figure.id.startswith(_ABOUT_CELLS) or figure.id not in found:
            continue
        value, other = found[figure.id], wanted.values(column)[figure]
        if isinstance(value, str) or isinstance(other, str):
            assert value == other, figure.id
        else:
            assert math.isclose(float(value), float(other), rel_tol=1e-12) or value == other, figure.id
    assert sum(figure.id in found for figure in figures) > 1000


FIELDS: list[dict[str, Any]] = [
    {},
    {"concurrency": 64},
    {"tp": 2, "accelerator": "a100-80gb-sxm", "weights_dtype": "fp8", "kv_dtype": "fp8"},
    {"pp": 2, "output_tokens": 512},
    {"input_tokens": 4096, "system": "hgx-h100", "price_basis": "rental"},
]


@pytest.mark.parametrize("fields", FIELDS)
def test_a_named_column_is_the_variant_with_the_fields_typed(
    book: EstimateBook, fields: dict[str, Any]
) -> None:
    """In the engine, and once it is read back and built anew."""
    typed = {(f"inputs.{field}", HIGH): value for field, value in fields.items()}
    typed |= {(NAME.id, HIGH): "high"}
    wanted = ask(variants=[*ASKED["variants"], {"name": "high", **fields}], ready_columns=1)
    found = results(book, typed)
    for column, of in ((0, 0), (1, 1), (HIGH, 2)):
        require_equal(found[column], wanted, of)
    back = edited(after(book, typed))
    assert back.scenario.variants == wanted.scenario.variants
    assert back.scenario == wanted.scenario
    assert back.named == ("high",)
    assert not back.left


def test_cells_follow_what_is_typed_over_the_base(book: EstimateBook) -> None:
    """Inputs and overrides, set or not, until somebody types over them; measured values are of the base."""
    for (identifier, column), (sheet, row, at) in book.input_cells.items():
        if column not in book.ready or at == FIRST - 1 or identifier == NAME.id:
            continue
        cell = book.sheets[sheet].cells[row, at]
        if identifier.startswith("measured."):
            assert cell.expression is None, identifier
        else:
            assert cell.follows in ((identifier, 0), (identifier, column)), identifier
    typed: Typed = {
        ("inputs.concurrency", 0): 32,
        ("efficiency.gemm_compute.override", 0): 0.5,
        ("efficiency.gemm_bandwidth.override", 0): 0.7,
        ("inputs.concurrency", LOW): 4,
        (NAME.id, LOW): "low",
        (NAME.id, HIGH): "high",
    }
    overrides = [
        {"id": "efficiency.gemm_compute", "value": 0.5, "reason": "x"},
        {"id": "efficiency.gemm_bandwidth", "value": 0.7, "reason": "x"},
    ]
    more = {"concurrency": 32, "overrides": overrides}
    wanted = ask(**more, variants=[{"name": "low", "concurrency": 4}, {"name": "high"}], ready_columns=0)
    found = results(book, typed)
    for column, of in ((0, 0), (LOW, 1), (HIGH, 2)):
        require_equal(found[column], wanted, of)
    back = edited(after(book, typed)).scenario
    low, high = back.variants[1:]
    assert (low.name, low.concurrency, high.name) == ("low", 4, "high")
    assert not (low.overrides or low.without or high.overrides or high.without)
    assert back.ready_columns == 0


def test_formats_of_an_own_figure_stay_what_they_are_when_read_back(book: EstimateBook) -> None:
    """Activations follow the weights of their own column, whatever is typed over those of the base."""
    cell = book.sheets["Inputs"].cells[book.input_cells["inputs.activation_dtype", HIGH][1:]]
    assert cell.follows == ("inputs.activation_dtype", HIGH)
    typed: Typed = {("inputs.activation_dtype", 0): "fp8", ("inputs.tp", HIGH): 2, (NAME.id, HIGH): "high"}
    back = edited(after(book, typed)).scenario
    require_equal(results(book, typed)[HIGH], estimate(back, library=few()), 2)


def _compared(book: EstimateBook, typed: Typed) -> dict[str, list[Any]]:
    """The rows of the comparison by id, without changes: a value of each scenario."""
    values = book.values(typed_inputs(after(book, typed))[0])[ACROSS]
    sheet = book.sheets["What-if"]
    columns = [3, *range(4, 3 + 2 * book.columns - 1, 2)]

    def shown(cell: Cell) -> Any:
        return cell.text if cell.expression is None else values[cell.expression]

    first = min(row for row, identifier in sheet.ids.items() if identifier.startswith("compare."))
    rows = {"head": first - 1} | {
        identifier: row for row, identifier in sheet.ids.items() if identifier.startswith("compare.")
    }
    return {identifier: [shown(sheet.cells[row, at]) for at in columns] for identifier, row in rows.items()}


def test_results_show_once_a_column_has_a_name(book: EstimateBook) -> None:
    without = _compared(book, {("inputs.tp", HIGH): 4})
    head = without.pop("head")
    assert head[LOW] == head[HIGH] == "type a name over row 4 of Inputs to use this column"
    assert all(values[LOW] == values[HIGH] == "–" for values in without.values())
    named = _compared(book, {("inputs.tp", HIGH): 4, (NAME.id, HIGH): "high"})
    assert named.pop("head")[LOW:] == [head[LOW], "high"]
    assert named["compare.inputs.tp"] == [1, 2, "–", 4]
    assert all(values[LOW] == "–" != values[HIGH] for values in named.values())
    assert {identifier: values[:2] for identifier, values in named.items()} == {
        identifier: values[:2] for identifier, values in without.items()
    }


def test_who_leads_is_asked_of_columns_with_a_name(book: EstimateBook) -> None:
    """A column that would lead does so once it has one; a column like all others makes all alike."""
    quick: Typed = {("inputs.tp", HIGH): 8}
    assert "D" not in str(results(book, quick)[ACROSS]["compare.ttft.letter"])
    assert results(book, quick | {(NAME.id, HIGH): "quick"})[ACROSS]["compare.ttft.letter"] == "D"
    same: Typed = {("inputs.tp", 1): 1}
    assert results(book, same)[ACROSS]["compare.ttft.letter"] == "="
    assert results(book, same | {(NAME.id, LOW): "same"})[ACROSS]["compare.ttft.letter"] == "="


WRONG: list[Typed] = [
    {("inputs.tp", HIGH): 3},
    {("inputs.concurrency", HIGH): 1e9},
    {("inputs.tp", HIGH): -1},
    {("efficiency.gemm_compute.override", HIGH): 7},
]


@pytest.mark.parametrize("typed", WRONG)
def test_a_column_without_a_name_fails_no_check(book: EstimateBook, typed: Typed) -> None:
    """Nor is it counted, nor does a signature know of it; with a name it is, and does."""
    seen = results(book, {})[ACROSS]
    without = results(book, typed)[ACROSS]
    said = ("checks.master", "checks.headline", "checks.alerts", "checks.stamp", "signature.edited")
    assert [without[name] for name in said] == [seen[name] for name in said]
    assert without["checks.master"] == 1
    assert without["scenario.counted"] == 2
    named = results(book, typed | {(NAME.id, HIGH): "high"})[ACROSS]
    assert named["checks.master"] == 0
    assert named["checks.error_count"] == seen["checks.error_count"] / 2 * 3
    assert named["checks.stamp"] == "changed since generation"
    assert named["signature.edited"] >= 2


def test_a_name_alone_is_an_edit_and_the_only_one(book: EstimateBook) -> None:
    found = results(book, {(NAME.id, LOW): "low"})
    assert [of["stamp.edit.all"] for of in found[:4]] == [0, 0, 1, 0]
    assert found[ACROSS]["signature.edited"] == 1
    assert found[ACROSS]["checks.master"] == 1
    assert "No input of a scenario was edited. A ready column was named." in found[ACROSS]["checks.inputs"]
    assert "typed over" not in found[ACROSS]["checks.inputs"]


def test_what_follows_is_no_edit_and_the_list_names_what_was_typed(book: EstimateBook) -> None:
    """Typing over the base makes no edit of what follows; what is typed over tells what it followed."""
    found = results(book, {("inputs.concurrency", 0): 16, ("inputs.tp", HIGH): 4, (NAME.id, HIGH): "high"})
    assert [of["stamp.edit.count"] for of in found[:4]] == [1, 0, 0, 1]
    sheet, row, column = book.input_cells["inputs.tp", HIGH]
    listed = [found[HIGH][f"stamp.edit.1.{name}"] for name in ("cell", "was", "now")]
    assert listed == [f"Tensor parallel, {sheet}!{xl_rowcol_to_cell(row, column)}", 1, 4]


def test_typed_by_openpyxl_it_is_read_back_and_verified(
    book: EstimateBook, built: Path, tmp_path: Path
) -> None:
    """`formulas` agrees with our engine; the cells are named; what counts for nothing is left out."""
    assert lint(built) == []
    fields = {"tp": 2, "concurrency": 64, "kv_dtype": "fp8"}
    typed: Typed = {(f"inputs.{field}", HIGH): value for field, value in fields.items()}
    typed |= {(NAME.id, HIGH): "high", ("inputs.tp", LOW): 4, ("efficiency.gemm_compute.override", HIGH): 0.5}
    path = on_disk(book, built, tmp_path / "typed.xlsx", typed)
    report = verify(path)
    assert report.ok
    assert {
        edit["id"]: edit["scenario"] for edit in report.inputs if edit["scenario"] == "high"
    } == dict.fromkeys(
        (NAME.id, "inputs.tp", "inputs.concurrency", "inputs.kv_dtype", "efficiency.gemm_compute.override"),
        "high",
    )
    sheet, row, column = book.input_cells["inputs.tp", LOW]
    unnamed = f"{sheet}!{xl_rowcol_to_cell(row, column)}"
    assert report.labels[unnamed] == "Tensor parallel, scenario C (ready C)"
    imported = import_workbook(path)
    assert imported.added == ("high",)
    assert [item["cell"] for item in imported.left_out] == [unnamed]
    variant = imported.scenario.variants[1]
    assert variant.model_dump(exclude_defaults=True, exclude_none=True, exclude={"overrides"}) == {
        "name": "high",
        **fields,
    }
    assert [(item.id, item.value) for item in variant.overrides] == [("efficiency.gemm_compute", 0.5)]
    assert imported.scenario.ready_columns == 1
    require_equal(results(book, typed)[HIGH], imported.estimate, 2)
    found = audit(path)
    assert {check["scenario"] for check in found.checks} == {"A: TP1", "B: two", "D: high"}
    assert len(found.edits) == len(typed)


def test_a_later_version_reads_names_and_edits(
    book: EstimateBook, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: Typed = {("inputs.tp", HIGH): 4, (NAME.id, HIGH): "high", ("inputs.tp", LOW): 2}
    path = on_disk(book, built, tmp_path / "typed.xlsx", typed)
    monkeypatch.setattr(read, "GENERATOR", "mantile 99.0.0")
    report = verify(path)
    assert report.ok
    assert {(edit["id"], edit["scenario"], edit["found"]) for edit in report.inputs} == {
        ("inputs.tp", "high", 4),
        (NAME.id, "high", "high"),
        ("inputs.tp", "ready C", 2),
    }
    scenario = import_workbook(path).scenario
    assert [(variant.name, variant.tp) for variant in scenario.variants] == [("two", 2), ("high", 4)]
    assert scenario.ready_columns == 1


def test_a_name_is_typed_and_not_worked_out(book: EstimateBook) -> None:
    with pytest.raises(
        InputError, match=r"Inputs!K4 \(scenario.name\): holds the formula .* expected a name"
    ):
        edited(after(book, {(NAME.id, HIGH): "=I4"}))


def test_an_unedited_workbook_is_the_scenario_that_it_was_made_from(built: Path) -> None:
    imported = import_workbook(built)
    assert imported.scenario == ask().scenario
    assert not (imported.changes or imported.left_out or imported.added)


@needs_office
@pytest.mark.exhaustive
def test_libreoffice_recalculates_it_as_the_engine_does(
    book: EstimateBook, built: Path, tmp_path: Path
) -> None:
    typed: Typed = {("inputs.tp", HIGH): 4, ("inputs.concurrency", HIGH): 64, (NAME.id, HIGH): "high"}
    typed |= {("inputs.tp", LOW): 3, ("efficiency.gemm_compute.override", 0): 0.5}
    assert verify(on_disk(book, built, tmp_path / "typed.xlsx", typed), "libreoffice").ok

    def at(identifier: str, column: int) -> list[str]:
        sheet, row, place = book.input_cells[identifier, column]
        return [sheet, xl_rowcol_to_cell(row, place)]

    master = ["Inputs", xl_rowcol_to_cell(0, max(at for row, at in book.sheets["Inputs"].cells if row == 0))]
    look = [master, ["Calculation", xl_rowcol_to_cell(HEAD_ROW, FIRST + HIGH)], at("inputs.tp", LOW)]
    wrong = [*at("inputs.tp", HIGH), 3]
    edits = [[wrong], [wrong, [*at(NAME.id, HIGH), "high"]], [[*at("inputs.tp", LOW), 2]]]
    then, *seen, again = asked_of_office(
        "libreoffice_edits.py", built, {"look": look, "edits": edits}, tmp_path
    )
    texts = [
        [found["texts"][f"{sheet}!{cell}"].strip() for sheet, cell in look] for found in (then, *seen, again)
    ]
    passing = texts[0][0]
    assert passing.startswith("✓")
    assert texts[0][1:] == texts[1][1:] == texts[4][1:] == ["D · ready", "1"]
    assert texts[1][0] == passing
    assert texts[2][0].startswith("✗")
    assert texts[2][1] == "D · high"
    assert texts[3] == [passing, "D · ready", "2"]
    assert [found["errors"] for found in (*seen, again)] == [then["errors"]] * 4


def test_seven_are_the_most_and_lint_knows_them(tmp_path: Path) -> None:
    path = write_workbook(lay_out(ask(variants=[], ready_columns=7)), tmp_path / "seven.xlsx")
    assert lint(path) == []
    for fields in ({"ready_columns": 7}, {"ready_columns": 8, "variants": []}, {"ready_columns": -1}):
        with pytest.raises(InputError, match="ready_columns"):
            ask(**fields)
    decision = {"objective": "tpot", "weights": {}, "limits": [], "take": 1}
    with pytest.raises(InputError, match="ready_columns"):
        ask(decision=decision)


def test_a_workbook_without_ready_columns_has_nothing_of_them() -> None:
    """Estimates have the scenarios that were asked for, whatever stands ready."""
    book = lay_out(ask(ready_columns=0))
    assert NAME not in book.addresses
    assert book.has_free_column
    assert not any(
        isinstance(cell.entry, Input) and cell.entry is NAME
        for sheet in book.sheets.values()
        for cell in sheet.cells.values()
    )
    assert [column.name for column in ask().columns] == ["TP1", "two"]
    assert ask().to_dict()["variants"] == ask(ready_columns=0).to_dict()["variants"]


def test_the_alternative_says_what_to_type_to_keep_it(book: EstimateBook) -> None:
    said = results(book, {})[ACROSS]["alternative.keep"]
    for identifier in (NAME.id, "inputs.accelerator"):
        sheet, row, column = book.input_cells[identifier, LOW]
        assert f"{sheet}!{xl_rowcol_to_cell(row, column)}" in said
    chosen = results(book, {("alternative.accelerator", book.columns): "l40s"})[ACROSS]["alternative.keep"]
    assert "l40s" in chosen


def test_a_search_asks_for_no_ready_columns() -> None:
    """The columns of its workbook are plans."""
    assert "ready_columns" not in workload_of(ASKED | {"ready_columns": 2}, "ready")
