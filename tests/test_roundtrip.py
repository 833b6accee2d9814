"""Back from an edited workbook.

Whatever is typed comes back as numbers, formula by formula, or is refused by cell and id.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from live import TOGETHER, Typed, as_written, exit_status, few, loaded, place, possible_value, typed_into
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter

from mantile.equations.signature import SIGNATURE
from mantile.equations.sweep import CHART_METRIC
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import ancestors, children
from mantile.library.dump import dump_scenario
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.library.template import Template
from mantile.roundtrip.import_workbook import Imported, import_workbook
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.engines import recalculate, soffice, with_formulas
from mantile.verification.verify import TOLERANCE, difference, scale_of, verify
from mantile.workbook.book import ACROSS, FIRST
from mantile.workbook.bundle import GENERATOR, read_bundle
from mantile.workbook.cell_diff import diff_cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.read import File, open_file, read_cells, typed_inputs
from mantile.workbook.sheets.log import DATE, DIGEST, NAME
from mantile.workbook.sheets.sensitivity import input_of
from mantile.workbook.write import write_workbook

SETS = 2  # of edits, for each of the four workbooks below
EDITS = 42  # in a set: 336 in all
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 5632,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
EXPERTS = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
BASE = {
    "model": "small",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
    "date": "2026-11-21",
}
ASKED: dict[str, dict[str, Any]] = {
    "variants": BASE
    | {
        "overrides": [
            {"id": "efficiency.step_host", "value": 700},
            {"id": "cost.life", "value": 5, "reason": "the auditor's"},
        ],
        "variants": [
            {"name": "A100", "accelerator": "a100-80gb-sxm", "token_budget": 4096},
            {"name": "bare", "without": ["efficiency.step_host"], "weights_dtype": "fp8"},
        ],
    },
    "experts": BASE
    | {
        "framework": "sglang",
        "ep": 2,
        "measured": {"tpot_ms": 9},
        "variants": [{"name": "int4", "experts_dtype": "int4"}],
    },
    "apart": BASE
    | {
        "decode": {"tp": 4, "accelerator": "b200-sxm"},
        "variants": [{"name": "as prefill", "decode": {"tp": 2, "accelerator": "h100-sxm"}}],
    },
    "single": BASE
    | {"overrides": [{"id": "efficiency.step_host", "value": 700}], "measured": {"tpot_ms": 9}},
    "swept": BASE | {"sweep": {"concurrency": [1, 8, 64]}},
    "grid": BASE | {"sweep": {"concurrency": [1, 8], "tp": [1, 2]}},
    "rated": {key: value for key, value in BASE.items() if key != "concurrency"}
    | {"request_rate": 90, "variants": [{"name": "calm", "request_rate": 30}]},
}
TEMPLATE = Template.model_validate({"drivers": 4})  # a smaller What-if
LIBRARY = few(("a100-80gb-sxm", "b200-sxm", "h100-sxm", "l40s"))
libreoffice = pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")


def _estimate(kind: str) -> Estimate:
    config = parse_config(CONFIG | (EXPERTS if kind == "experts" else {}), "config.json")
    return estimate(
        parse_scenario(ASKED[kind], "scenario"),
        Model(id="small", name="Small", source="test", architecture=config),
        LIBRARY,
        template=TEMPLATE,
    )


@pytest.fixture(scope="module")
def files() -> Callable[[str], File]:
    """Workbooks by kind, as they are read once written."""
    made: dict[str, File] = {}

    def of(kind: str) -> File:
        if kind not in made:
            made[kind] = as_written(lay_out(_estimate(kind)))
        return made[kind]

    return of


def _saved(source: Path, target: Path, typed: Typed) -> Path:
    book = loaded(source)
    for (sheet, row, column), value in typed.items():
        book[sheet].cell(row + 1, column + 1).value = value
    book.save(target)
    return target


def _row(book: EstimateBook, identifier: str) -> tuple[str, int]:
    address = next(
        address for figure, address in book.addresses.items() if getattr(figure, "id", "") == identifier
    )
    return address.sheet, address.row


def _imported(file: File, monkeypatch: pytest.MonkeyPatch) -> Imported:
    monkeypatch.setattr("mantile.roundtrip.import_workbook.open_file", lambda path: file)
    return import_workbook(file.path)


def _edits(book: EstimateBook, dice: random.Random) -> tuple[Typed, set[str]]:
    """Cells typed into and the kinds of edit.

    Inputs of any column, shared figures, overrides, measured values, and a column of one's own.
    """
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    groups: dict[str, list[tuple[str, int]]] = {}
    for identifier, column in sorted(book.input_cells):
        figure = inputs[identifier]
        if (figure.shared and column) or identifier.endswith(TOGETHER) or identifier.startswith(SIGNATURE):
            continue
        if identifier in ("model.ffn_input_matrices", "model.tied_embeddings"):
            continue  # decides which tensors there are: in test_structure.py
        if identifier == "model.sliding_window" and not figure.value:
            continue  # a window where there was none: engines then have a policy of their own
        kind = (
            "override"
            if figure.value is None and not identifier.startswith("measured")
            else identifier.partition(".")[0]
        )
        sheet, row, at = book.input_cells[identifier, column]
        groups.setdefault("following" if book.sheets[sheet].cells[row, at].follows else kind, []).append(
            (identifier, column)
        )
    groups["added"] = [
        (identifier, book.columns)
        for identifier in sorted(
            book.estimate.equations.inputs.named()[name].id
            for name in ("accelerator", "input_tokens", "tp", "kv_dtype", "utilisation")
        )
    ]
    groups["added"] += [
        (identifier, book.columns)
        for identifier in ("efficiency.step_host.override", "hardware.tdp.override", "measured.tpot")
    ]
    typed: Typed = {}
    kinds: set[str] = set()
    while len(typed) < EDITS:
        kind = dice.choice(sorted(groups))
        identifier, column = dice.choice(groups[kind])
        typed[place(book, identifier, column)] = possible_value(inputs[identifier], dice)
        kinds.add(kind)
    if "added" in kinds:
        typed["Inputs", 3, FIRST + book.columns] = "a column of one's own"
    return typed, kinds


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return bool(left == right)
    return math.isclose(left, right, rel_tol=1e-12) or (math.isnan(left) and math.isnan(right))


def _require_same(file: File, made: Estimate) -> None:
    """Every figure of every column the workbook has, as its cells say, is that of an estimate."""
    then = file.book.values(typed_inputs(file)[0])
    for column in range(file.book.columns):
        now = made.values(column)
        wrong = {
            figure.id: (then[column][figure], now[made.figure(figure.id)])
            for figure in file.book.estimate.equations.quantities()
            if figure in then[column]
            and not figure.id.endswith(("_told", "offer_number"))  # what the library tells, before and after
            and not figure.id.startswith("typed.state.")  # what was edited in this file
            and not _same(then[column][figure], now[made.figure(figure.id)])
        }
        assert not wrong, (column, list(wrong.items())[:3])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kind", few_of([kind for kind in ASKED if kind not in ("single", "swept", "grid")], "variants")
)
def test_whatever_is_typed_comes_back(
    kind: str, files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sets of edits of every kind: read, written as YAML, built again.

    Every figure of every column to 1e-12.
    """
    dice = random.Random(f"round trip of {kind}")
    reached: set[str] = set()
    for number in range(SETS):
        typed, kinds = _edits(files(kind).book, dice)
        reached |= kinds
        file = typed_into(files(kind), typed)
        found = _imported(file, monkeypatch)
        cells = {change["cell"] for change in found.changes}
        missing = [
            cell
            for cell, value in typed.items()
            if cell != ("Inputs", 3, FIRST + file.book.columns)
            and f"{cell[0]}!{get_column_letter(cell[2] + 1)}{cell[1] + 1}" not in cells
            and files(kind).contents[cell[0]].get(cell[1:]) != value
        ]
        assert not missing, "every edit is listed with its cell"
        bundle = read_bundle(found.write(tmp_path / f"{number}.yaml", bundle=True))
        made = bundle.estimate()
        _require_same(file, made)
        assert len(made.columns) == file.book.columns + len(found.added)
        for change in found.changes:
            if change["id"] in file.book.own_inputs:
                if input_of(change["id"]):
                    assert found.scenario.sensitivity[input_of(change["id"])] == change["to"]
                elif change["id"] == CHART_METRIC:  # what a chart shows is no part of a scenario
                    assert change["cell"] in {item["cell"] for item in found.left_out}
                else:
                    other = found.scenario.alternative
                    assert other is not None and change["to"] in (other.accelerator, other.usd_per_hour)
        (tmp_path / "alone.yaml").write_text(
            dump_scenario(found.scenario.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8"
        )
        assert load_scenario(str(tmp_path / "alone.yaml")) == found.scenario
    assert reached >= {
        "inputs",
        "override",
        "measured",
        "scheduler",
        "model",
        "following",
        "added",
        "cost",
        "sensitivity",
    }


@pytest.mark.exhaustive
def test_points_of_a_sweep_come_back(files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch) -> None:
    """One field: any point may be typed over.

    Two: a value wherever it stands, else the grid has a hole and the cell is named.
    """
    file = files("swept")
    sheet, row, column = file.book.input_cells[
        "sweep.inputs.concurrency", 3 + file.book.columns + 1
    ]  # behind the case of the alternative and low and high of the sensitivity
    found = _imported(typed_into(file, {(sheet, row, column): 16}), monkeypatch)
    assert found.scenario.sweep == {"concurrency": (1, 16, 64)}
    assert [change["to"] for change in found.changes] == [16]
    file = files("grid")
    cells = [
        file.book.input_cells["sweep.inputs.tp", case]
        for case in range(3 + file.book.columns, 3 + file.book.columns + 4)
    ]
    assert [file.contents[sheet][row, column] for sheet, row, column in cells] == [1, 1, 2, 2]
    assert _imported(typed_into(file, dict.fromkeys(cells[2:], 4)), monkeypatch).scenario.sweep == {
        "concurrency": (1, 8),
        "tp": (1, 4),
    }
    with pytest.raises(
        InputError, match=r"What-if!\w+ \(sweep\.inputs\.tp\): holds 4.*change the value wherever it stands"
    ):
        _imported(typed_into(file, {cells[3]: 4}), monkeypatch)


def _filled_right(file: File, columns: int = 1) -> Typed:
    """What Excel's fill-right writes into the next columns of every sheet of workings, but for tables."""
    typed: Typed = {}
    for sheet in file.book.estimate.equations.sheets:
        last = FIRST + file.book.columns - 1
        for (row, column), content in file.contents[sheet].items():
            filled = column == last and row > 3 and not file.book.sheets[sheet].is_in_table(row, column)
            for step in range(1, columns + 1) if filled else ():
                here, there = (f"{get_column_letter(at + 1)}{row + 1}" for at in (last, last + step))
                moved = isinstance(content, str) and content.startswith("=")
                typed[sheet, row, last + step] = (
                    Translator(content, origin=here).translate_formula(there) if moved else content
                )
    for step in range(1, columns + 1):
        typed["Inputs", 3, FIRST + file.book.columns + step - 1] = (
            f"{'ABCDEFGH'[file.book.columns + step - 1]} \n filled {step}"
        )
    return typed


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["formulas", pytest.param("libreoffice", marks=libreoffice)])
def test_filled_columns_are_what_engines_make_of_them(
    engine: str, files: Callable[[str], File], tmp_path: Path
) -> None:
    """Two columns copied across all sheets and edited.

    Another engine's figures in them are those of the imported scenario.
    """
    book = files("single").book
    source = write_workbook(book, tmp_path / "run.xlsx")
    typed = _filled_right(files("single"), 2)
    typed |= {
        place(book, "inputs.tp", 1): 4,
        place(book, "inputs.concurrency", 2): 40,
        place(book, "inputs.output_tokens", 0): 77,
        place(book, "efficiency.step_host.override", 1): None,
        place(book, "efficiency.step_host.override", 2): 333,
        place(book, "cost.life"): 7,
    }
    edited = _saved(source, tmp_path / "edited.xlsx", typed)
    found = import_workbook(edited)
    assert found.added == ("filled 1", "filled 2") and [column.name for column in found.estimate.columns][
        1:
    ] == ["filled 1", "filled 2"]
    assert [len(column.overrides) for column in found.estimate.columns] == [2, 1, 2]
    if engine == "formulas":
        values = with_formulas(read_cells(edited), tuple(book.sheets))
    else:
        again = recalculate(edited, tmp_path)
        values = read_cells(again).stored
        assert import_workbook(again).scenario == found.scenario
    equations = found.estimate.equations
    judged: set[Any] = {
        check.result for check in equations.checks.checks
    }  # on Checks, where columns cannot be filled
    for node in ancestors(*equations.quantities()):
        if judged.intersection(children(node)):
            judged.add(node)
    compared = 0
    for column in range(3):
        mine = found.estimate.values(column)
        for figure in equations.quantities():
            address = book.addresses.get(book.estimate.figure(figure.id))
            if (
                address is not None
                and address.column is None
                and address.sheet in equations.sheets
                and figure not in judged
                and not figure.id.startswith("typed.state.")  # nothing is edited in the scenario
            ):
                error = difference(
                    mine[figure],
                    values[address.sheet].get((address.row, FIRST + column)),
                    scale_of(figure, mine),
                )
                assert error <= TOLERANCE, (
                    column,
                    figure.id,
                    mine[figure],
                    values[address.sheet].get((address.row, FIRST + column)),
                )
                compared += 1
    assert compared > 3 * 700


@pytest.mark.exhaustive
@libreoffice
def test_a_file_of_libreoffice_comes_back_and_verifies(files: Callable[[str], File], tmp_path: Path) -> None:
    """Inputs, sign-off and a note typed, saved by LibreOffice.

    Verified there, imported, built and verified again.
    """
    book = files("single").book
    sign = next(
        row for (row, column), cell in book.sheets["Audit"].cells.items() if cell.text == "Reviewed by"
    )
    typed = {
        place(book, "inputs.kv_dtype"): "fp8",
        place(book, "efficiency.step_host.override"): 500,
        ("Audit", sign, NAME): "A. Reviewer",
        ("Audit", sign, DATE): "2026-12-01",
        ("Layers", 400, 30): "ask about this",
    }
    edited = recalculate(
        _saved(write_workbook(book, tmp_path / "run.xlsx"), tmp_path / "edited.xlsx", typed), tmp_path
    )
    report = verify(edited)
    edits = [*report.mismatches, *report.formulas, *report.overwritten]
    assert not edits and report.stored_values, "signatures and notes are nobody's formulas"
    found = import_workbook(edited)
    assert {item["found"] for item in found.left_out} == {"A. Reviewer", "2026-12-01", "ask about this"}
    assert {(change["id"], change["to"]) for change in found.changes} == {
        ("inputs.kv_dtype", "fp8"),
        ("efficiency.step_host.override", 500),
    }
    _require_same(open_file(edited), found.estimate)


def test_cells_of_a_column_mean_what_they_say(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty follows the base.

    References to the base do too; measured values never; an override emptied where the sheet is filled means
    the library's.
    """
    book = files("variants").book
    third = [
        place(book, name, 3)
        for name in (
            "inputs.output_tokens",
            "inputs.token_budget",
            "inputs.accelerator",
            "inputs.concurrency",
        )
    ]
    typed: Typed = {
        ("Inputs", 3, FIRST + 3): " D  \n\u00a0 mine ",
        place(book, "inputs.output_tokens"): 55,
        third[0]: f"=H{third[0][1] + 1}",
        third[1]: f"=$H${third[1][1] + 1}",
        third[2]: "=Summary!$B$5",
        third[3]: "12",
        place(book, "measured.tpot"): 8,
    }
    column = _imported(typed_into(files("variants"), typed), monkeypatch).estimate.columns[3]
    assert (column.name, column.given) == ("mine", ("concurrency",))
    assert [
        column.values[name] for name in ("output_tokens", "token_budget", "accelerator", "concurrency")
    ] == [55, 8192, "h100-sxm", 12]
    assert {item.id for item in column.overrides} == {
        "efficiency.step_host",
        "cost.life",
    } and column.measured.given() == {}
    filled = _filled_right(files("variants"))
    emptied = _imported(typed_into(files("variants"), filled), monkeypatch).estimate.columns[3]
    assert {item.id for item in emptied.overrides} == {"cost.life"}


@pytest.mark.exhaustive
def test_a_cell_typed_over_stands_for_itself(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it says what it followed; and nothing typed is nothing changed."""
    file = files("variants")
    assert (
        _imported(file, monkeypatch).scenario == file.book.estimate.scenario
        and _imported(file, monkeypatch).changes == ()
    )
    found = _imported(typed_into(file, {place(file.book, "inputs.concurrency", 1): 8}), monkeypatch)
    assert found.scenario.variants[0].concurrency == 8 and found.scenario.variants[1].concurrency is None


@pytest.mark.exhaustive
def test_the_concurrency_of_an_open_loop_follows_until_it_is_typed(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows from the rate, also after an edit, in the file and in what is imported.

    Once typed it stays.
    """
    file = files("rated")
    assert not any("inputs.concurrency" in given for given in typed_inputs(file)[0])
    typed = {
        place(file.book, "inputs.output_tokens"): 300,
        ("Inputs", 3, FIRST + 2): "more",
        place(file.book, "inputs.request_rate", 2): 200,
    }
    found = _imported(typed_into(file, typed), monkeypatch)
    assert not any("concurrency" in column.given for column in found.estimate.columns)
    before = [file.book.estimate.results(column)["concurrency"] for column in (0, 1)]
    after = [found.estimate.results(column)["concurrency"] for column in range(3)]
    assert after[0] > before[0] and after[2] > after[0], "longer outputs, and a hundred times the rate"
    typed[place(file.book, "inputs.concurrency")] = 7
    found = _imported(typed_into(file, typed), monkeypatch)
    typed_over = [found.estimate.results(column)["concurrency"] for column in range(2)]
    assert typed_over == [7, after[1]], "the variant's cell still follows"


def _at(identifier: str, value: Any, column: int = 0) -> Callable[[EstimateBook], Typed]:
    return lambda book: {place(book, identifier, column): value}


def _figure(identifier: str, value: Any, column: int = 0) -> Callable[[EstimateBook], Typed]:
    return lambda book: {(*_row(book, identifier), FIRST + column): value}


def _added(more: Callable[[EstimateBook], Typed], heading: Any = "mine") -> Callable[[EstimateBook], Typed]:
    return lambda book: {("Inputs", 3, FIRST + book.columns): heading} | more(book)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            _figure("serving.tpot", "=H10"),
            r"Calculation!H\d+ \(serving\.tpot\): holds '=H10' instead of '=.*'; an edited formula",
        ),
        (
            _figure("serving.tpot", 0.01, 1),
            r"Calculation!I\d+ \(serving\.tpot\): holds '0\.01' instead of '=.*'; a constant there",
        ),
        (_figure("serving.tpot", None), r"Calculation!H\d+ \(serving\.tpot\): holds 'None' instead of"),
        (
            lambda book: {(*_row(book, "constant.flops_per_mac"), 6): 3},
            r"Inputs!G\d+ \(constant\.flops_per_mac\): holds '3' instead of '2\.0'",
        ),
        (lambda book: {("Layers", 400, 3): "=1+1"}, r"Layers!D401: holds '=1\+1' instead of nothing"),
        (
            _at("inputs.concurrency", "=16*2"),
            r"Summary!\w+ \(inputs\.concurrency\): holds the formula '=16\*2'; expected a number",
        ),
        (
            _at("inputs.concurrency", "=H5", 1),
            r"Inputs!I\d+ \(inputs\.concurrency\): holds the formula '=H5'",
        ),
        (
            _at("inputs.accelerator", "h900"),
            r"Summary!B5 \(inputs\.accelerator\): holds 'h900'; expected one of a100",
        ),
        (_at("inputs.input_tokens", None), r"Summary!H7 \(inputs\.input_tokens\): the cell is empty"),
        (
            _at("inputs.tp", 2.5),
            r"Summary!B7 \(inputs\.tp\): holds 2\.5; expected a whole number from 1 to 1,024",
        ),
        (
            _at("inputs.utilisation", 3),
            r"Summary!\w+ \(inputs\.utilisation\): holds 3; expected a number from 0\.001 to 1",
        ),
        (
            _at("efficiency.step_host.override", -1, 1),
            r"Efficiency!I\d+ \(efficiency\.step_host\.override\): holds -1; expected a number from 0",
        ),
        (
            _at("library.h100-sxm.memory_capacity", 0),
            r"Hardware!\w+ \(library\.h100-sxm\): holds '0' instead of '80.*set it back",
        ),
        (
            _at("system.hgx-h100.pair_bandwidth", 50),
            r"Hardware!\w+ \(system\.hgx-h100\): holds '50' instead of '0.*set it back",
        ),
        (_at("model.kv_heads", 64), r"IR!G\d+ \(model\.kv_heads\): .*more than the 32 attention heads"),
        (_at("model.layers", 2.5), r"IR!G\d+ \(model\.layers\): holds 2\.5; expected a whole number"),
        (
            _added(_at("inputs.tp", 4, 3), "C  \nbare  "),
            r"Inputs!K4: holds 'C  \\nbare  '; expected a heading of its own",
        ),
        (
            _added(_at("inputs.tp", "=H13*2", 3)),
            r"Inputs!K\d+ \(inputs\.tp\): holds '=H13\*2'; expected a value, nothing, or the formula",
        ),
        (_added(_at("inputs.tp", "four", 3)), r"Inputs!K\d+ \(inputs\.tp\): holds 'four'; expected a number"),
        (
            _added(_figure("serving.tpot", 0.01, 3)),
            (
                r"Calculation!K\d+ \(serving\.tpot\): holds 0\.01; expected nothing here, or what stands in "
                r"the column before"
            ),
        ),
        (
            _added(_figure("serving.tpot", "=J1", 3)),
            r"Calculation!K\d+ \(serving\.tpot\): holds '=J1'; expected nothing here",
        ),
        (
            _added(lambda book: {("Inputs", 900, FIRST + 3): "a note"}),
            r"Inputs!K901.*: holds 'a note'; expected nothing here",
        ),
        (
            lambda book: {("Inputs", 3, FIRST + number): f"scenario {number}" for number in range(3, 9)},
            r"Inputs!P4: a scenario too many; expected at most 8",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_carried_is_refused_by_cell(
    files: Callable[[str], File],
    monkeypatch: pytest.MonkeyPatch,
    typed: Callable[[EstimateBook], Typed],
    words: str,
) -> None:
    """The cell, the id, what it holds and what was expected."""
    file = files("variants")
    with pytest.raises(InputError, match=r"run\.xlsx: .*" + words):
        _imported(typed_into(file, typed(file.book)), monkeypatch)


@pytest.mark.exhaustive
def test_a_fact_that_makes_another_projection_the_widest_comes_back(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two experts hand back twice the hidden size.

    With 20,000 channels that is more than their 22,528 columns.

    The formulas of the workbook, the native engine and an estimate built anew have the same width and the
    same memory.
    """
    file = files("experts")
    assert file.book.estimate.values(0)[file.book.estimate.figure("memory.ffn_width")] == 22_528
    typed = {place(file.book, "model.hidden_size"): 20_000}
    found = _imported(typed_into(file, typed), monkeypatch)
    made = read_bundle(found.write(tmp_path / "run.yaml", bundle=True)).estimate()
    _require_same(typed_into(file, typed), made)
    values = CompiledSheets(file.contents).calculate(["Calculation"], typed)
    for name, expected in (("memory.ffn_width", 40_000), ("memory.mixer_width", 1_280)):
        sheet, row = _row(file.book, name)
        assert values[sheet, row, FIRST] == made.values(0)[made.figure(name)] == expected


@pytest.mark.exhaustive
def test_a_scenario_is_written_only_where_it_suffices(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A library or model that is not the one installed needs a bundle.

    Nothing is written then.
    """
    file = files("variants")
    plain = _imported(file, monkeypatch)
    with pytest.raises(InputError, match=r"no model 'small'|unknown model|small.*\n.*expected --bundle"):
        plain.write(tmp_path / "run.yaml")
    with pytest.raises(InputError, match=r"run\.json: expected a file name that ends in \.yaml, or --bundle"):
        plain.write(tmp_path / "run.json")
    monkeypatch.setattr(
        sys.modules["mantile.estimates.estimate"], "load_model", lambda name: file.book.estimate.model
    )
    other = LIBRARY.model_dump()
    next(chip for chip in other["accelerators"] if chip["id"] == "h100-sxm")["memory_bandwidth"]["value"] = (
        3000
    )
    monkeypatch.setattr(
        sys.modules["mantile.estimates.estimate"],
        "load_library",
        lambda pins=(): type(LIBRARY).model_validate(other),
    )
    with pytest.raises(
        InputError,
        match=r"are not those of run\.xlsx: hardware\.memory_bandwidth of scenario TP2 would be another: "
        r"expected --bundle",
    ):
        plain.write(tmp_path / "run.yaml")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys.modules["mantile.estimates.estimate"], "load_library", lambda pins=(): LIBRARY)
    _require_same(
        file,
        estimate(load_scenario(str(plain.write(tmp_path / "run.yaml"))), file.book.estimate.model, LIBRARY),
    )


def test_the_written_scenario_is_for_people(
    files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the documentation, and only what was asked for."""
    file = files("variants")
    found = _imported(
        typed_into(
            file, {place(file.book, "inputs.tp", 1): 1, place(file.book, "inputs.framework"): "trtllm"}
        ),
        monkeypatch,
    )
    (before,) = found.scenario.versions
    verdict = file.book.sheets["Audit"].cells[5, 0].expression
    said = file.book.values(file.book.generated_inputs())[ACROSS][verdict]
    assert said == f"✓ {before.checks.removesuffix('pass')}checks pass"
    assert before.ttft_ms == pytest.approx(file.book.estimate.results()["ttft_s"] * 1e3)
    assert found.scenario.since is not None
    plain = found.scenario.model_copy(update={"versions": (), "since": None})
    assert (
        dump_scenario(plain.model_dump(mode="json", exclude_defaults=True))
        == """\
date: '2026-11-21'
why: 'edited in run.xlsx: inputs.framework, inputs.tp'
model: small
accelerator: h100-sxm
framework: trtllm
tp: 2
input_tokens: 500
output_tokens: 100
concurrency: 8
overrides:
- {id: efficiency.step_host, value: 700.0}
- {id: cost.life, value: 5.0, reason: the auditor's}
variants:
- {name: A100, accelerator: a100-80gb-sxm, tp: 1, token_budget: 4096}
- name: bare
  weights_dtype: fp8
  without: [efficiency.step_host]
"""
    )


@pytest.mark.exhaustive
def test_signatures_and_notes_are_not_edits(files: Callable[[str], File]) -> None:
    """What is typed on the sign-off lines overwrites nothing; a formula there still counts."""
    file = files("variants")
    sign = next(
        row for (row, column), cell in file.book.sheets["Audit"].cells.items() if cell.text == "Approved by"
    )
    texts = diff_cells(
        typed_into(
            file,
            {
                ("Audit", sign, NAME): "A. Boss",
                ("Audit", sign, DIGEST): 7,
                ("Audit", sign, DATE): "=TODAY()",
                ("Summary", 16, 1): "Mine",
            },
        )
    )
    assert [item["found"] for item in texts.notes] == ["A. Boss", 7]
    assert [item["cell"] for item in texts.formulas] == [f"Audit!C{sign + 1}"] and [
        item["cell"] for item in texts.labels
    ] == ["Summary!B17"]
    assert texts.overwritten == []


@pytest.mark.exhaustive
def test_import_on_the_command_line(
    files: Callable[[str], File], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What changed is printed; what cannot be carried is exit status 2, the cell on stderr and no file."""
    book = files("single").book
    edited = _saved(
        write_workbook(book, tmp_path / "run.xlsx"),
        tmp_path / "edited.xlsx",
        {place(book, "library.l40s.tdp"): 300},
    )
    assert (
        exit_status("import", str(edited), "-o", str(tmp_path / "run.yaml")) == 2
        and not (tmp_path / "run.yaml").exists()
    )
    assert "(library.l40s): holds '300' instead of" in capsys.readouterr().err
    edited = _saved(
        tmp_path / "run.xlsx", tmp_path / "edited.xlsx", {place(book, "hardware.tdp.override"): 300}
    )
    assert exit_status("import", str(edited), "-o", str(tmp_path / "run.yaml"), "--bundle") == 0
    assert "hardware.tdp.override" in capsys.readouterr().out
    assert exit_status("import", str(edited), "-o", str(tmp_path / "run.json"), "--bundle", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["written"], [change["to"] for change in found["changes"]]) == (
        "bundle",
        str(tmp_path / "run.json"),
        [300],
    )


def test_json_of_an_import(files: Callable[[str], File], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change with id, cell, scenario, from and to."""
    file = files("variants")
    found = _imported(
        typed_into(file, {place(file.book, "inputs.tp"): 4, place(file.book, "cost.life"): 5.5}),
        monkeypatch,
    ).to_dict()
    sheet, row, _ = place(file.book, "cost.life")
    assert json.loads(json.dumps(found)) == {
        "workbook": "run.xlsx",
        "added": [],
        "left_out": [],
        "made_by": GENERATOR,
        "unknown": [],
        "lacking": [],
        "other_version": None,
        "changes": [
            {"id": "inputs.tp", "cell": "Summary!B7", "scenario": "TP2", "from": 2, "to": 4},
            {
                "id": "cost.life",
                "cell": f"{sheet}!G{row + 1}",
                "scenario": "TP2",
                "from": 5,
                "to": 5.5,
            },
        ],
    }


@pytest.mark.exhaustive
def test_a_variant_with_another_framework_has_data_types_of_its_own(tmp_path: Path) -> None:
    """As the model is published for that framework, and beside the weights that the variant asks for."""
    fields = {"model": "llama-3.1-8b", "accelerator": "m3-ultra", "framework": "llama.cpp"}
    fields |= {"input_tokens": 1024, "output_tokens": 128, "concurrency": 1}
    fields["variants"] = [
        {"name": f"{framework} {name}", "framework": framework} | weights
        for framework in ("mlx", "vllm")
        for name, weights in (
            ("published", {}),
            ("16 bit", {"weights_dtype": "bf16"}),
            ("a file", {"weights_dtype": "q4_k_m"}),
        )
    ]
    made = estimate(parse_scenario(fields, "scenario"), library=few(("m3-ultra",)))
    assert verify(made.to_excel(tmp_path / "run.xlsx")).ok
