"""What was edited since a workbook was made: counted on Inputs, listed on Audit, live."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formulas import Parser
from live import as_written, few, place, typed_into
from openpyxl import load_workbook
from schedula import EMPTY
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.checks import TYPED_OVER
from mantile.equations.stamp import stamp
from mantile.equations.typed import NONE
from mantile.estimates.estimate import estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.verify import verify
from mantile.workbook.book import ACROSS, FIRST
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.places import typed_id
from mantile.workbook.read import typed_inputs
from mantile.workbook.write import build_workbook, write_workbook

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
MOST = 8  # edits of the base that Audit lists


@pytest.fixture(scope="module")
def book() -> EstimateBook:
    return lay_out(estimate(parse_scenario(SCENARIO, "edits"), library=few()))


def _listed(book: EstimateBook, values: dict[str, Any], scenario: int = 0) -> tuple[float, list[list[str]]]:
    """How many cells a scenario finds edited, and the list of them."""
    inputs = book.generated_inputs()
    inputs[scenario] = inputs[scenario] | values
    found = book.values(inputs)[scenario]
    sheet = book.sheets["Inputs"]
    results = {
        identifier: found[cell.expression]
        for row, identifier in sheet.ids.items()
        if (cell := sheet.cells.get((row, FIRST + scenario))) is not None and cell.expression is not None
    }
    names = ("cell", "was", "now")
    rows = [[results[f"stamp.edit.{place}.{name}"] for name in names] for place in range(1, MOST + 1)]
    return results["stamp.edit.count"], [row for row in rows if row[0] != "–"]


def _said(book: EstimateBook, typed: dict[tuple[str, int], Any]) -> tuple[list[float], str, str]:
    """Edits by scenario, the sentence on Audit, and whether inputs are as generated, once a file was edited.

    Args:
        typed: by input and scenario.
    """
    cells = {place(book, identifier, column): value for (identifier, column), value in typed.items()}
    values = book.values(typed_inputs(typed_into(as_written(book), cells))[0])
    rows = {identifier: row for row, identifier in book.sheets["Inputs"].ids.items()}
    at = rows["stamp.edit.count"]
    counts = [
        values[column][book.sheets["Inputs"].cells[at, FIRST + column].expression]
        for column in range(book.columns)
    ]
    checks = book.sheets["Audit"].cells
    sentence, status = (values[ACROSS][checks[cell].expression] for cell in ((7, 0), (5, 5)))
    return counts, sentence.partition("range. ")[2] or sentence, status


_EDITED = ("OR(ISBLANK(", "NOT(ISBLANK(", "NOT(_xlfn.ISFORMULA(")
"""What rules begin with that mark cells which were typed over."""
CHANGED, AS_GENERATED = "changed since generation", "as generated"


@pytest.mark.parametrize(
    ("typed", "counts", "sentence"),
    [
        ({}, [0, 0], "No input of a scenario was edited."),
        (
            {("inputs.tp", 1): 2},
            [0, 1],
            "B: Edited: Tensor parallel, Inputs!I10 held 4, holds 2. ",
        ),
        (
            {("inputs.concurrency", 0): 16},
            [1, 0],
            "A: Edited: Concurrency, Summary!J7 held 8, holds 16. ",
        ),
        (
            {("inputs.concurrency", 0): 16, ("inputs.concurrency", 1): 8},
            [1, 1],
            "A: Edited: Concurrency, Summary!J7 held 8, holds 16. "
            "B: Edited: Concurrency, Inputs!I{} held 16, holds 8. ",
        ),
        (
            {("inputs.framework", 0): "sglang"},
            [1, 0],
            "A: Edited: Framework, Summary!D5 held vllm, holds sglang. ",
        ),
        (
            {("inputs.concurrency", 0): -16},
            [1, 0],
            "A: Concurrency, Summary!J7 holds '-16'; expected a whole number from 1 to 1,000,000. A: Edited: "
            "Concurrency, Summary!J7 held 8, holds -16. ",
        ),
    ],
)
def test_what_was_typed_is_named_in_its_scenario_and_no_cell_that_follows(
    book: EstimateBook, typed: dict[tuple[str, int], Any], counts: list[int], sentence: str
) -> None:
    """In every column: cells of B that follow A, and inputs whose default follows another, are no edits."""
    row = book.input_cells["inputs.concurrency", 1][1] + 1
    status = CHANGED if typed else AS_GENERATED
    assert _said(book, typed) == (counts, sentence.format(row), status)


@pytest.mark.parametrize("scenario", [0, 1])
def test_audit_names_what_was_edited_in_each_scenario(book: EstimateBook, scenario: int) -> None:
    """Beside its letter, with what the cell held and holds; of the other scenario it names nothing."""
    typed = {
        place(book, identifier, scenario): value
        for identifier, value in {"inputs.concurrency": 31, "inputs.tp": 1}.items()
    }
    values = book.values(typed_inputs(typed_into(as_written(book), typed))[0])
    sheet = book.sheets["Audit"]
    listed: dict[str | None, list[list[Any]]] = {}
    for row in range(sheet.parts["Log"], max(row for row, _ in sheet.cells)):
        cells = [sheet.cells.get((row, column)) for column in (1, 3, 4)]
        if (head := sheet.cells.get((row, 0))) is not None and head.text in ("A", "B"):
            told = [values[cell.scenario][cell.expression] for cell in cells if cell is not None]
            listed.setdefault(head.text, []).extend([told] if told[0] != "–" else [])
    of = "AB"[scenario]
    cell = xl_rowcol_to_cell(*book.input_cells["inputs.concurrency", scenario][1:])
    assert [item[1:] for item in listed[of]] == [[[2, 4][scenario], 1], [8, 31]]
    assert listed[of][1][0].endswith(f"!{cell}") and not listed["AB".replace(of, "")]


def test_every_yellow_cell_counts_in_its_scenario(book: EstimateBook) -> None:
    """Inputs, overrides, measured values, dimensions and assumptions."""
    graph = book.estimate.equations
    found = stamp(graph)
    count, everything, told, cell_of_first = (
        found.rows[f"stamp.edit.{name}"] for name in ("count", "all", "told", "1.cell")
    )
    guards = {item.input: item.cell for item in graph.typed.inputs}
    entries = [item.input for item in (*found.own, *found.shared)]
    program = Program([count, everything, told, cell_of_first])
    then = [program.run(given) for given in book.given(book.generated_inputs())[: book.columns]]
    seen = set()
    for (identifier, column), (sheet, row, at) in book.input_cells.items():
        figure = graph.figures.get(identifier)
        if not isinstance(figure, Input) or figure not in entries or (figure.shared and column):
            continue  # the cell of what is shared is that of the base
        was, seen = then[column][figure], seen | {figure}
        value = "another" if isinstance(was, str) else 0.0137 if math.isnan(was) else was * 1.5 + 1
        now = program.vary(then[column], {guards.get(figure, figure): value})
        said, cell = (identifier, column), f"{sheet}!{xl_rowcol_to_cell(row, at)}"
        assert now[count] == 1, said
        assert now[everything] >= 1 and then[column][everything] == 0, said
        assert cell in now[told], (said, now[told])
        assert now[cell_of_first].endswith(f", {cell}"), said
    assert seen == {figure for figure in entries if not figure.fixed}, "locked facts of the model apart"


def _order(book: EstimateBook) -> list[str]:
    """Ids of inputs in the order in which their lines stand on Inputs and Edits."""
    ids = [one for name in ("Inputs",) for one in book.sheets[name].ids.values()]
    return [typed_id(one) for one in ids if one.startswith("typed.used.")]


def test_a_figure_that_is_no_input_is_not_denied(book: EstimateBook) -> None:
    """A figure of the library, locked, that somebody typed over all the same."""
    checks = book.sheets["Audit"].cells
    figure = book.estimate.figure("library.h100-sxm.memory_bandwidth")
    assert isinstance(figure, Input) and figure.fixed
    for factor, said in ((1, ""), (0.9, TYPED_OVER)):
        inputs = [values | {figure.id: figure.value * factor} for values in book.generated_inputs()]
        values = book.values(inputs)[ACROSS]
        sentence, status = (values[checks[cell].expression] for cell in ((7, 0), (5, 5)))
        assert sentence.endswith(f"No input of a scenario was edited.{said}") and status == (
            CHANGED if said else AS_GENERATED
        )


def test_each_cell_that_is_typed_into_shows_that_it_was(book: EstimateBook, tmp_path: Path) -> None:
    """By a rule that holds once the cell holds something else, in every column; of followers too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data bars
        file = load_workbook(write_workbook(book, tmp_path / "rules.xlsx"))
    judged = followers = 0
    for name, sheet in book.sheets.items():
        rules = {
            str(area.sqref): rule.formula[0]
            for area in file[name].conditional_formatting
            for rule in area.rules
            if rule.type == "expression" and rule.formula[0].startswith(_EDITED)
        }
        for (row, column), cell in sheet.cells.items():
            if cell.entry is None or cell.room is not None:
                continue
            here = xl_rowcol_to_cell(row, column)
            if cell.expression is not None:
                assert rules[here] == f"NOT(_xlfn.ISFORMULA({here}))", "it follows until somebody types"
                followers += 1
                continue
            rule = Parser().ast(f"={rules[here]}")[1].compile()
            held: Any = cell.text if cell.number is None else cell.number
            cases = ((held, False), ("another", True), (0.0137, True), (None, held is not None))
            for typed, differs in cases:
                given = [held if one != here.replace("$", "") else typed for one in rule.inputs]
                found = rule(*(EMPTY if one is None else one for one in given))
                assert bool(np.ravel(found)[0]) is differs, (name, here, typed)
            judged += 1
    assert judged > 250 and followers > 30


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
    path = build_workbook(estimate(parse_scenario(SCENARIO, "edits"), library=few()), tmp_path / "run.xlsx")
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
    sheet = book.sheets["Inputs"]
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
        row = rows[f"typed.{identifier}"]
        assert sheet.cells[row, FIRST].expression is not None and (row, FIRST + 1) not in sheet.cells


@pytest.mark.exhaustive
def test_a_spreadsheet_program_counts_and_lists_them_alike(book: EstimateBook) -> None:
    """Those of a scenario's own cells, then those of all, until there are no more."""
    edits = SHARED_EDITS | {"inputs.electricity_price": 0.31}
    typed = {place(book, name): value for name, value in edits.items()}
    solution = CompiledSheets(as_written(book).contents).calculate(book.sheets, typed)
    sheet = book.sheets["Inputs"]
    rows = {identifier: row for row, identifier in sheet.ids.items()}
    count, *now = (
        solution["Inputs", rows[name], FIRST]
        for name in ("stamp.edit.count", *(f"stamp.edit.{number}.now" for number in range(1, 6)))
    )
    assert count == len(edits) and set(now) == {*edits.values(), "–"}
    of_four = [
        solution["Inputs", rows[f"stamp.edit.{name}"], FIRST + 1] for name in ("count", "1.now", "2.now")
    ]
    assert of_four == [0, "–", "–"], "a cell that follows the base is no edit"
