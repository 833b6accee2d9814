"""Workbooks whose rows stand elsewhere.

Made by 0.6.0, by a version that laid them out otherwise, or with rows inserted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from live import as_written, edit, exit_status, few, loaded, typed_into

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.library.scenario_fields import FORMER_IDS
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.verify import verify
from mantile.workbook import cell_diff, history
from mantile.workbook.book import FIRST
from mantile.workbook.bundle import Bundle
from mantile.workbook.cell_diff import CellDiff, diff_cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.normal_form import normal_form
from mantile.workbook.read import File, open_file, typed_inputs
from mantile.workbook.references import REFERENCE, Formula
from mantile.workbook.write import write_workbook

DATA = Path(__file__).parent / "data"
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
ASKED: dict[str, Any] = {
    "model": "small",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
    "variants": [{"name": "A100", "accelerator": "a100-80gb-sxm"}],
}
TPOT, KV = "serving.tpot", "memory.kv"


@pytest.fixture(scope="module")
def made() -> Estimate:
    """A small model on some of the accelerators, two scenarios."""
    model = Model(id="small", name="Small", source="test", architecture=parse_config(CONFIG, "config.json"))
    return estimate(parse_scenario(ASKED, "scenario"), model, few())


def _moved(text: str, sheet: str, name: str, at: int) -> str:
    """A formula after a row was inserted in a sheet, as spreadsheet programs write it."""

    def reference(match: re.Match[str]) -> str:
        if match["text"] is not None or (match["sheet"] or sheet).strip("'") != name:
            return match.group()
        return re.sub(r"\d+(?=$|:)", lambda row: str(int(row[0]) + (int(row[0]) > at)), match.group())

    return REFERENCE.sub(reference, text)


def _inserted(file: File, name: str, at: int) -> File:
    """The file after somebody inserted a row in a sheet."""
    contents = {
        sheet: {
            place: Formula(_moved(content, sheet, name, at)) if isinstance(content, Formula) else content
            for place, content in cells.items()
        }
        for sheet, cells in file.contents.items()
    }
    contents[name] = {
        (row + (row >= at), column): content for (row, column), content in contents[name].items()
    }
    return replace(file, cells=replace(file.cells, contents=contents))


def _insert(path: Path, name: str, at: int) -> None:
    """The same in a file."""
    book = loaded(path)
    for sheet in book.worksheets:
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"):
            cell.value = _moved(cell.value, sheet.title, name, at)
    for defined in book.defined_names.values():
        defined.value = _moved(defined.value, "", name, at)
    book[name].insert_rows(at + 1)
    book.save(path)


def _row(book: EstimateBook, identifier: str) -> tuple[str, int]:
    address = book.addresses[book.estimate.figure(identifier)]
    return address.sheet, address.row


def _read(written: EstimateBook, made: Estimate) -> File:
    """A book as it is read by somebody who lays it out anew."""
    return replace(as_written(written), book=lay_out(made, written.bundle))


def _of_version(made: Estimate, version: str = "mantile 0.5.0") -> EstimateBook:
    data = Bundle.of(made).data | {"generator": version}
    return lay_out(made, Bundle(data, "bundle"))


def _differs(diff: CellDiff) -> dict[str, list[dict[str, Any]]]:
    return {name: items for name, items in vars(diff).items() if items}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    [
        "deepseek-r1-gb200-nvl72-0.6.0",
        "llama-3.1-8b-edited-0.6.0",
        "llama-3.1-8b-disaggregated-0.6.0",
        "billion-tokens-a-day-0.7.0",
        "gpt-oss-120b-b200-mi355x-0.8.0",
        "llama-3.3-70b-h100-0.9.0",
        "chat-8b-rtx-4090-0.12.0",
    ],
)
def test_workbooks_of_older_versions_verify(name: str) -> None:
    """Every value recomputed; every formula is today's, or is listed with the reason why it was changed.

    Those of a sheet that was laid out anew and only repeat a figure that stands elsewhere are in no list.
    Least is compared of disaggregated files of 0.6.0: requests in decode were found in another way.
    """
    found = verify(DATA / f"{name}.xlsx").to_dict()
    assert found["ok"], found["edited"] | {"mismatches": found["mismatches"]}
    assert found["other_version"]["made_by"] == f"mantile {name.rpartition('-')[2]}"
    apart = (found["other_version"][kind] for kind in ("worked_out_otherwise", "not_compared", "unknown"))
    assert found["compared"] + sum(map(len, apart)) > 0.92 * found["formulas"] > 6000
    anew = [
        item
        for item in found["other_version"]["not_compared"]
        if item["cell"].startswith(("Layers!", "Plan!"))
    ]
    otherwise = len(found["other_version"]["worked_out_otherwise"]) + len(anew)
    assert found["compared"] > 0.6 * (found["formulas"] - otherwise)
    edits = {item["id"]: item["found"] for item in found["edited"]["inputs"]}
    assert edits == (EDITED if "edited" in name else {})
    assert not found["edited"]["names"] and not [
        identifier for identifier in found["other_version"]["unknown"] if identifier.startswith("inputs.")
    ]


EDITED: dict[str, Any] = {
    # no edit: 0.6.0 took another range for a figure with an override
    "sensitivity.swing.efficiency.gemm_compute": 30,
    "inputs.concurrency": 24,
    "library.h100-sxm.memory_bandwidth": 3000,
    "sensitivity.swing.inputs.utilisation": 40,
    "measured.tpot": 11.5,
    "efficiency.step_host.override": 900,
}


@pytest.mark.exhaustive
def test_an_edited_workbook_of_0_6_0_is_imported() -> None:
    """Inputs, an override, a figure of the library, a percentage, a measured value and an added scenario."""
    found = import_workbook(DATA / "llama-3.1-8b-edited-0.6.0.xlsx")
    added = {"inputs.tp": 2, "inputs.input_tokens": 4096}
    assert {item["id"]: item["to"] for item in found.changes} == EDITED | added
    assert (found.made_by, found.added) == ("mantile 0.6.0", ("long prompts",))
    # figures of a factor that has no rows today, what a lone prompt takes, and its range as a driver
    assert [item["found"] for item in found.left_out] == [1, 1.442, 15]
    base, two, three = (found.scenario, *found.scenario.variants)
    assert (base.concurrency, base.measured.tpot_ms) == (24, 11.5)
    assert base.sensitivity == {"inputs.utilisation": 40, "efficiency.gemm_compute": 30}
    assert [(item.id, item.value) for item in two.overrides] == [("efficiency.step_host", 900)]
    assert (three.name, three.tp, three.input_tokens) == ("long prompts", 2, 4096)
    assert found.estimate.library.accelerator("h100-sxm").memory_bandwidth.value == 3000


def test_inputs_that_were_renamed_are_found_under_their_former_ids() -> None:
    """And what was typed into one is an edit of the input that it is today."""
    file = open_file(DATA / "llama-3.1-8b-edited-0.6.0.xlsx")
    texts = {text for cells in file.contents.values() for text in cells.values() if isinstance(text, str)}
    assert {"inputs.waves", "inputs.batch_wait"} <= texts
    rows = {entry.id: row for row, entry in file.places.file_ids.items() if not entry.linked}
    assert set(FORMER_IDS.values()) - {"inputs.engine_release"} <= set(rows)  # a dense model has no experts
    sheet, row = rows["inputs.prompts_per_slot"]
    _, edits = typed_inputs(typed_into(file, {(sheet, row, FIRST): 12}))
    assert [edit["found"] for edit in edits if edit["id"] == "inputs.prompts_per_slot"] == [12]


@pytest.mark.exhaustive
def test_a_load_that_0_6_0_settled_is_no_edit() -> None:
    """The concurrency at a request rate was worked out when the file was made."""
    found = import_workbook(DATA / "llama-3.1-8b-disaggregated-0.6.0.xlsx")
    assert (found.changes, found.scenario.concurrency, found.scenario.request_rate) == ((), None, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("column", "value"), [(9, 6), (9, 7), (8, 3)])
def test_a_concurrency_typed_beside_the_settled_one_is_an_edit(
    tmp_path: Path, column: int, value: int
) -> None:
    """One request more than 0.6.0 settled on was typed by somebody."""
    name = "llama-3.1-8b-disaggregated-0.6.0"

    def typed(book: Any) -> None:
        row = next(row for row in book["Inputs"].iter_rows() if row[5].value == "inputs.concurrency")
        row[column - 1].value = value

    path = edit(DATA / f"{name}.xlsx", tmp_path / "typed.xlsx", typed)
    assert [change["to"] for change in import_workbook(path).changes] == [value]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("sheet", "row"),
    few_of(
        [
            ("Inputs", 20),
            ("Memory", 60),
            ("Serving", 30),
            ("Sensitivity", 40),
            ("Hardware", 4),
            ("Summary", 3),
            ("Plan", 6),
        ],
        ("Serving", 30),
        ("Summary", 3),
    ),
)
def test_inserted_rows_are_no_edits(made: Estimate, sheet: str, row: int) -> None:
    """Every cell is found, by its id or its label, and what it reads as well."""
    before = as_written(lay_out(made))
    file = _inserted(before, sheet, row)
    assert before.places.as_laid_out and not file.places.as_laid_out
    assert _differs(diff_cells(file)) == {}
    assert typed_inputs(file) == typed_inputs(before)
    assert not file.places.unknown and not file.places.lacking


@pytest.mark.exhaustive
def test_inserted_rows_verify(made: Estimate, tmp_path: Path) -> None:
    """As a file, by another engine; an edit is named by the cell in which it stands."""
    path = write_workbook(lay_out(made), tmp_path / "moved.xlsx")
    for sheet, row in (("Inputs", 12), ("Decode", 100), ("Summary", 3)):
        _insert(path, sheet, row)
    book = loaded(path)
    book["Summary"]["J8"] = 32  # a row further down than it was
    book.save(path)
    found = verify(path)
    assert not [*found.mismatches, *found.formulas, *found.overwritten], found.to_dict()
    assert [(item["id"], item["cell"], item["found"]) for item in found.inputs] == [
        ("inputs.concurrency", "Summary!J8", 32)
    ]
    assert import_workbook(path).scenario.concurrency == 32


@pytest.mark.exhaustive
def test_a_formula_that_reads_the_row_beside_is_caught(made: Estimate) -> None:
    """After a row was inserted the text of the old place reads another figure."""
    before = as_written(lay_out(made))
    sheet, row = _row(before.book, TPOT)
    file = _inserted(before, sheet, 6)
    old = before.contents[sheet][row, FIRST]
    assert old != file.contents[sheet][row + 1, FIRST]
    found = diff_cells(typed_into(file, {(sheet, row + 1, FIRST): old}))
    assert [(item["id"], item["cell"]) for item in found.formulas] == [(TPOT, f"{sheet}!H{row + 2}")]


@pytest.mark.exhaustive
def test_a_number_typed_into_an_inserted_row_is_caught(made: Estimate) -> None:
    """A sum over the block takes it in."""
    before = as_written(lay_out(made))
    row, first = next(
        (row, int(match[1]))
        for (row, column), content in sorted(before.contents["Memory"].items())
        if column == FIRST and isinstance(content, Formula) and (match := re.match(r"=SUM\(H(\d+):", content))
    )
    file = _inserted(before, "Memory", first)
    assert _differs(diff_cells(file)) == {}
    found = diff_cells(typed_into(file, {("Memory", first, FIRST): 1e9}))
    assert [item["cell"] for item in found.formulas] == [f"Memory!H{row + 2}"]
    assert [item["cell"] for item in found.notes] == [f"Memory!H{first + 1}"]


@pytest.mark.exhaustive
def test_ids_that_were_exchanged_are_caught(made: Estimate) -> None:
    """Two inputs would take each other's values, were it not for the formulas that read them."""
    file = as_written(lay_out(made))
    (sheet, one), (_, two) = (_row(file.book, f"inputs.{name}") for name in ("input_tokens", "output_tokens"))
    ids = {(sheet, one, 5): "inputs.output_tokens", (sheet, two, 5): "inputs.input_tokens"}
    found = diff_cells(typed_into(file, ids))
    assert found.formulas and found.labels


@pytest.mark.exhaustive
def test_a_row_given_twice_is_caught(made: Estimate) -> None:
    """The second of two rows with one id belongs to nobody."""
    file = as_written(lay_out(made))
    sheet, _ = _row(file.book, TPOT)
    last = max(row for row, _ in file.contents[sheet]) + 1
    found = diff_cells(typed_into(file, {(sheet, last, 5): TPOT, (sheet, last, FIRST): "=1"}))
    assert [item["cell"] for item in found.formulas] == [f"{sheet}!H{last + 1}"]


@pytest.mark.exhaustive
def test_an_older_workbook_may_lack_rows_and_have_others(made: Estimate) -> None:
    """They are listed, not refused; an input that it lacks is as by default."""
    book = _of_version(made)
    for identifier, name in (("inputs.token_budget", "inputs.budget"), (KV, "memory.cache")):
        sheet, row = _row(book, identifier)
        book.sheets[sheet].cells[row, 5].text = name
    file = _read(book, made)
    assert file.places.unknown.keys() == {"inputs.budget", "memory.cache"}
    assert file.places.lacking.keys() == {"inputs.token_budget", KV}
    values, edits = typed_inputs(file)
    assert not edits and values[0]["inputs.token_budget"] == made.inputs(0)["inputs.token_budget"]


@pytest.fixture
def changed(made: Estimate) -> tuple[EstimateBook, str]:
    """A book of an older version with another formula for TPOT."""
    book = _of_version(made)
    sheet, row = _row(book, TPOT)
    for column in range(book.columns):
        cell = book.sheets[sheet].cells[row, FIRST + column]
        assert cell.expression is not None
        cell.expression = cell.expression + cell.expression
    return book, f"{sheet}!H{row + 1}"


@pytest.mark.exhaustive
def test_a_formula_changed_on_purpose_is_told(
    made: Estimate, changed: tuple[EstimateBook, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both values and the reason.

    What follows from it agrees, since it follows from the value in the file.
    """
    change = history.Change((0, 6), r"serving\.tpot", ".*", "halved")
    monkeypatch.setattr(history, "CHANGES", (change,))
    path = write_workbook(changed[0], tmp_path / "old.xlsx")
    loaded(path).save(path)  # without stored values, which are not those of the formula put in here
    found = verify(path)
    assert found.ok and found.other_version is not None, found.to_dict()
    items = [
        item
        for item in found.other_version.worked_out_otherwise
        if not item["id"].startswith(cell_diff.STAMP)
    ]
    assert [(item["id"], item["cell"], item["why"]) for item in items][:1] == [(TPOT, changed[1], "halved")]
    assert all(item["value"] == pytest.approx(2 * item["expected"], rel=1e-9) for item in items)
    assert len(items) == changed[0].columns


@pytest.mark.exhaustive
def test_a_formula_that_nobody_changed_on_purpose_is_an_edit(
    made: Estimate, changed: tuple[EstimateBook, str]
) -> None:
    """Also in an older file; and a change made before the file was is none of its reasons."""
    file = _read(changed[0], made)
    assert [item["cell"] for item in diff_cells(file).formulas][:1] == [changed[1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "CHANGES", (history.Change((0, 5), ".*", ".*", "before"),))
        assert [item["cell"] for item in diff_cells(file).formulas][:1] == [changed[1]]


@pytest.mark.exhaustive
def test_edits_of_a_workbook_of_0_6_0_are_caught() -> None:
    """Also of formulas that were changed since: what is typed there is neither today's nor that of 0.6.0."""
    file = open_file(DATA / "deepseek-r1-gb200-nvl72-0.6.0.xlsx")
    rows = {entry.id: row for row, entry in file.places.file_ids.items() if not entry.linked}
    edits = {
        TPOT: "{}*0.9",
        "memory.ffn_width": "{}*2",
        "memory.activation_width": "=1",
        "serving.ttft": 0.01,
        "memory.mixer_width": 1000,
    }
    typed = {}
    for identifier, content in edits.items():
        sheet, row = rows[identifier]
        before = file.contents[sheet][row, FIRST]
        typed[sheet, row, FIRST] = content.format(before) if isinstance(content, str) else content
    diff = diff_cells(typed_into(file, typed))
    assert {item["id"] for item in diff.formulas} == {TPOT, "memory.ffn_width", "memory.activation_width"}
    assert {item["id"] for item in diff.overwritten} == {"serving.ttft", "memory.mixer_width"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("identifier", "content", "kind"),
    [
        (TPOT, "=1", "formulas"),
        (TPOT, 0.01, "overwritten"),
        ("constant.flops_per_mac", 3, "overwritten"),
    ],
)
def test_edits_of_an_older_workbook_are_caught(
    made: Estimate, identifier: str, content: Any, kind: str
) -> None:
    """By cell and id, as in one of ours."""
    file = _inserted(_read(_of_version(made), made), "Serving", 5)
    address = file.book.addresses[made.figure(identifier)]
    place = file.places.in_file(
        address.sheet, address.row, FIRST if address.column is None else address.column
    )
    assert place is not None
    found = vars(diff_cells(typed_into(file, {place: content})))
    assert [item["id"] for item in found[kind]] == [identifier]


@pytest.mark.exhaustive
def test_a_formula_in_a_row_without_an_id_is_caught(made: Estimate) -> None:
    """No version works anything out in such a row."""
    file = _read(_of_version(made), made)
    sheet, row = _row(file.book, TPOT)
    found = diff_cells(typed_into(file, {(sheet, row, 5): None}))
    assert f"{sheet}!H{row + 1}" in [item["cell"] for item in found.formulas]


@pytest.mark.exhaustive
def test_the_command_names_what_is_unknown(
    made: Estimate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verify and import, for people."""
    book = _of_version(made)
    sheet, row = _row(book, "serving.bubble")
    for name, other in book.sheets.items():
        for (at, column), cell in other.cells.items():
            if column == 5 and cell.text == "serving.bubble" and name == sheet and at == row:
                cell.text = "serving.slowest"
    path = write_workbook(book, tmp_path / "old.xlsx")
    assert exit_status("verify", str(path)) == 0
    shown = capsys.readouterr().out
    assert (
        "made by mantile 0.5.0" in shown
        and "does not have, recomputed and not compared: serving.slowest" in shown
    )
    assert exit_status("import", str(path), "-o", str(tmp_path / "x.yaml"), "--bundle") == 0
    assert "ids that this version does not have: serving.slowest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("=[a]H*([b]H*[c]H)", "=[c]H*[a]H*[b]H"),
        ("=[a]H-([b]H-[c]H)", "=[a]H+[c]H-[b]H"),
        ("=[a]H/([b]H/[c]H)", "=[a]H*[c]H/[b]H"),
        ("=MAX([a]H,MAX([b]H,1))", "=MAX(1.0,[b]H,[a]H)"),
        ("=[a]H*1*[b]H", "=[b]H*[a]H"),
        ("=0+[a]H/1", "=[a]H"),
        ("=INDEX([a]H,1,[b]H)", "=CHOOSE([b]H,[a]H)"),
        ('=IF([a]H=1,"x (",{[a]H,[b]H})', '=IF(1=[a]H,"x (",{[a]H,[b]H})'),
    ],
)
def test_formulas_that_say_the_same(one: str, other: str) -> None:
    """In another order, or with other brackets."""
    assert normal_form(one) == normal_form(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("=[a]H-[b]H", "=[b]H-[a]H"),
        ("=[a]H/[b]H", "=[b]H/[a]H"),
        ("=[a]H^[b]H", "=[b]H^[a]H"),
        ("=[a]H*[b]H+[c]H", "=[a]H*([b]H+[c]H)"),
        ("=INDEX([a]H,[b]H)", "=INDEX([b]H,[a]H)"),
        ("=INDEX([a]H,[b]H)", "=CHOOSE([a]H,[b]H)"),
        ("=INDEX([a]H:[c]H,[b]H)", "=CHOOSE([b]H,[a]H:[c]H)"),
        ("=[a]H-[b]H-[c]H", "=[a]H-([b]H-[c]H)"),
        ("=-[a]H^2", "=-([a]H^2)"),
        ("=[a]H&[b]H", "=[b]H&[a]H"),
        ("=[a]H", "=[a]I"),
        ("=1/[a]H", "=[a]H"),
        ("=0-[a]H", "=[a]H"),
        ("=[a]H*[a]H", "=[a]H"),
        ("=[a]H<[b]H", "=[b]H<[a]H"),
    ],
)
def test_formulas_that_say_something_else(one: str, other: str) -> None:
    """Order and brackets that change the result, or another cell."""
    assert normal_form(one) != normal_form(other)


def test_what_is_no_formula_has_no_form() -> None:
    """Nor has one nested deeper than any of ours."""
    assert normal_form("=[a]H*") is None and normal_form("=" + "(" * 4000 + "1" + ")" * 4000) is None


@pytest.mark.exhaustive
def test_rows_in_which_tables_begin_are_those_of_the_file(made: Estimate) -> None:
    """Another version says where its own tables stood; another number there is an edit."""
    file = _inserted(_read(_of_version(made, "mantile 0.14.0"), made), "Hardware", 3)
    moved = {}
    for figure, address in file.book.addresses.items():
        if file.book.first_rows.get(figure.id, ("",))[0] == "Hardware":
            sheet, row, column = file.places.in_file(address.sheet, address.row, FIRST - 1) or ("", 0, 0)
            moved[sheet, row, column] = file.contents[sheet][row, column] + 1
    assert len(moved) > 1
    assert not diff_cells(typed_into(file, moved)).overwritten
    wrong = {place: number + 1 for place, number in moved.items()}
    assert len(diff_cells(typed_into(file, wrong)).overwritten) == len(moved)
