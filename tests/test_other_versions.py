"""Workbooks of other versions, and those whose rows stand elsewhere.

Of a file of another version inputs are read by id; whether its formulas were edited cannot be told.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import few_of
from live import as_written, edit, exit_status, few, loaded, place, typed_into
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.cli.output.verification import print_report
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.library.scenario_fields import FORMER_IDS
from mantile.library.signing import new_key, read_trusted
from mantile.roundtrip.compare import compare
from mantile.roundtrip.import_workbook import import_workbook
from mantile.server.page.files import told_of
from mantile.server.page.state import State
from mantile.verification.engines import with_formulas
from mantile.verification.verify import verify, verify_file
from mantile.workbook.book import FIRST
from mantile.workbook.bundle import Bundle
from mantile.workbook.cell_diff import CellDiff, diff_cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
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
    return estimate(parse_scenario(ASKED, "scenario"), model, few(("h100-sxm", "a100-80gb-sxm")))


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


def _differs(diff: CellDiff) -> dict[str, list[dict[str, Any]]]:
    return {name: items for name, items in vars(diff).items() if items}


@pytest.fixture(scope="module")
def old(made: Estimate) -> File:
    """A workbook of 0.12.0 as somebody left it: an input and a formula typed over, a formula edited."""
    data = Bundle.of(made).data | {"generator": "mantile 0.12.0"}
    file = as_written(lay_out(made, Bundle(data, "bundle")))
    seen, ttft = (
        (*_row(file.book, identifier), FIRST) for identifier in ("hardware.memory_seen", "serving.ttft")
    )
    formula = file.contents[seen[0]][seen[1:]]
    typed = {seen: f"=10*({formula[1:]})", ttft: 0.01, file.book.input_cells["inputs.concurrency", 0]: 16}
    found = typed_into(file, typed)
    return replace(found, cells=replace(found.cells, stored={name: {} for name in found.contents}))


WORDS = "whether formulas were edited cannot be told; make it anew"


def test_a_file_of_another_version_never_agrees(old: File, capsys: pytest.CaptureFixture[str]) -> None:
    """For people, for programs and on the page: who made it, and that it cannot be told."""
    report = verify_file(old)
    found = report.to_dict()
    assert not report.ok and not found["ok"] and found["other_version"].startswith("made by mantile 0.12.0: ")
    assert WORDS in found["other_version"] and not found["stored_values_compared"]
    assert [(item["id"], item["found"]) for item in report.inputs] == [("inputs.concurrency", 16)]
    print_report(report, old.path)
    text = " ".join(capsys.readouterr().out.split())
    assert WORDS in text and "agree" not in text
    told = told_of(found, {"refused": ""}, "old.xlsx", State({}))
    assert not told["ok"] and told["title"] == f"old.xlsx: {found['other_version']}"


LATER = "mantile 0.99.0"


@pytest.fixture(scope="module")
def later(made: Estimate, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EstimateBook]:
    """A workbook of another version that says what it was made with."""
    book = lay_out(made, Bundle(Bundle.of(made).data | {"generator": LATER}, "bundle"))
    return write_workbook(book, tmp_path_factory.mktemp("later") / "later.xlsx"), book


def test_a_file_of_another_version_that_says_what_it_was_made_with(
    later: tuple[Path, EstimateBook], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also as openpyxl saves it, and with a row moved: by its own digests and its own formulas."""
    path, book = later
    report = verify(path)
    assert report.ok and report.made_by == LATER and report.other_version is None
    assert sum(sheet["compared"] for sheet in report.sheets) >= len(list(book.formulas())) > 10_000
    print_report(report, path)
    said = " ".join(capsys.readouterr().out.split())
    assert f"agrees with the digests of its rows that {LATER} stored" in said and "unsigned: " in said
    assert verify(edit(path, tmp_path / "saved.xlsx", lambda _: None)).ok


def _at(book: EstimateBook, identifier: str, scenario: int) -> str:
    sheet, row = _row(book, identifier)
    return f"{sheet}!{xl_rowcol_to_cell(row, FIRST + scenario)}"


@pytest.mark.parametrize("scenario", [0, 1])
@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("formulas", lambda cell: f"{cell.value}*1.1"),
        ("formulas", lambda cell: f"{cell.value}+0"),
        ("overwritten", lambda cell: 0.0205),
        ("shown", None),
    ],
    ids=["formula", "formula of equal value", "number", "format"],
)
def test_edits_of_a_file_of_another_version_are_named(
    later: tuple[Path, EstimateBook], tmp_path: Path, kind: str, typed: Any, scenario: int
) -> None:
    """By its own digests, in every column; import refuses what changes formulas."""
    path, book = later
    sheet, _, place = _at(book, TPOT, scenario).partition("!")

    def change(file: Any) -> None:
        cell = file[sheet][place]
        if typed is None:
            cell.number_format = "0"
        else:
            cell.value = typed(cell)

    edited = edit(path, tmp_path / "edited.xlsx", change)
    report = verify(edited)
    found = report.to_dict()["edited"]
    assert not report.ok
    assert {name: len(items) for name, items in found.items() if items} == {kind: 1}
    assert found[kind][0].get("id", TPOT) == TPOT and found[kind][0]["cell"].endswith(place[1:])
    if kind != "shown":
        with pytest.raises(InputError, match=re.escape(TPOT)):
            import_workbook(edited)


def test_what_else_was_edited_in_a_file_of_another_version(
    later: tuple[Path, EstimateBook], tmp_path: Path
) -> None:
    """A label, an input of each column, a sheet that was hidden, the digests themselves."""
    path, book = later
    sheet, row = _row(book, TPOT)
    cells = [place(book, "inputs.concurrency", scenario) for scenario in (0, 1)]

    def change(file: Any) -> None:
        file[sheet].cell(row + 1, 2).value = "Another"
        for number, (name, at, column) in enumerate(cells):
            file[name].cell(at + 1, column + 1).value = 16 + number
        file["Hardware"].sheet_state = "hidden"

    report = verify(edit(path, tmp_path / "edited.xlsx", change))
    assert not report.ok and not report.formulas and not report.overwritten
    assert [(item["id"], item["found"]) for item in report.inputs] == [
        ("inputs.concurrency", 16),
        ("inputs.concurrency", 17),
    ]
    assert [item["kind"] for item in report.shown] == ["text or number format"]
    assert [item["sheet"] for item in report.visibility] == ["Hardware"]

    with pytest.raises(InputError, match="column B"):
        verify(edit(path, tmp_path / "cut.xlsx", lambda file: setattr(file["_bundle"]["B1"], "value", "{}")))


def test_a_signature_is_of_the_digests_too(made: Estimate, tmp_path: Path) -> None:
    """Else whoever changes formulas makes the digests anew, and says that another version made the file."""
    pytest.importorskip("cryptography")
    key = tmp_path / "me.key"
    new_key(key)
    bundle = Bundle(Bundle.of(made).data | {"generator": LATER}, "bundle").signed(key)
    path = write_workbook(lay_out(made, bundle), tmp_path / "signed.xlsx", key)
    trusted = read_trusted(tmp_path / "me.pub")
    assert verify(path, trusted=trusted).ok and verify(path).signature.status == "unknown key"
    changes = ('"signature"', '"other"'), ('"rows":{"Summary":"', '"rows":{"Summary":"A')
    for number, (was, now) in enumerate(changes):
        file = loaded(path)
        cells = [row[1] for row in file["_bundle"].iter_rows() if row[1].value]
        assert any(was in cell.value for cell in cells)
        for cell in cells:
            cell.value = cell.value.replace(was, now)
        changed = tmp_path / f"changed{number}.xlsx"
        file.save(changed)
        report = verify(changed)
        assert not report.ok and report.signature.status == "does not hold", was


def test_the_digests_of_a_file_are_held_against_it(made: Estimate, tmp_path: Path) -> None:
    """Of this version too, for the next one: whoever changes them is named."""
    path = write_workbook(lay_out(made), tmp_path / "made.xlsx")

    def change(file: Any) -> None:
        cell = file["_bundle"]["B1"]
        cell.value = str(cell.value).replace('"Inputs":5', '"Inputs":4')

    report = verify(edit(path, tmp_path / "changed.xlsx", change))
    assert not report.ok and [item["kind"] for item in report.shown] == ["digests"]


def test_numbers_that_the_formulas_of_an_old_file_do_not_give_are_named(old: File) -> None:
    """By cell and id; what a formula gives is what it makes of the other numbers of the file."""
    values = with_formulas(old.cells, tuple(old.contents))
    stored = {
        name: {
            place: values[name].get(place) if isinstance(content, Formula) else content
            for place, content in cells.items()
        }
        for name, cells in old.contents.items()
    }
    recalculated = replace(old, cells=replace(old.cells, stored=stored))
    found = verify_file(recalculated)
    assert not found.ok and not found.mismatches, found.mismatches[:3]
    assert sum(sheet["compared"] for sheet in found.sheets) > 2000
    sheet, row = _row(old.book, TPOT)
    stored[sheet][row, FIRST] *= 1 + 1e-8
    found = verify_file(recalculated)
    assert [(item["id"], item["cell"]) for item in found.mismatches] == [(TPOT, f"{sheet}!H{row + 1}")]


@pytest.mark.exhaustive
def test_each_command_says_that_a_file_is_of_another_version(
    made: Estimate, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ends with 1, but for import: one that does not say what it was made with."""
    monkeypatch.setattr("mantile.workbook.write.made", lambda book: SimpleNamespace(text=""))
    data = Bundle.of(made).data | {"generator": "mantile 0.12.0"}
    path = str(write_workbook(lay_out(made, Bundle(data, "bundle")), tmp_path / "old.xlsx"))
    audit, bundle = str(tmp_path / "a.json"), str(tmp_path / "x.json")
    for status, command in (
        (1, ("verify", path)),
        (1, ("open", path)),
        (1, ("audit", path, "-o", audit)),
        (0, ("import", path, "-o", bundle, "--bundle")),
        (1, ("compare", bundle, path)),
    ):
        assert exit_status(*command) == status
        text = " ".join(capsys.readouterr().out.split())
        assert "made by mantile 0.12.0: " in text and WORDS in text, text
    assert text.endswith("no difference of inputs")
    assert WORDS in json.loads(Path(audit).read_text(encoding="utf-8"))["other_version"]
    compared = compare(bundle, path)
    assert compared.differ and WORDS in compared.to_dict()["other_versions"]["b"]


EDITED: dict[str, Any] = {
    "inputs.concurrency": 24,
    "hardware.memory_bandwidth.override": 3000,
    "measured.tpot": 11.5,
    "efficiency.step_host.override": 900,
}


@pytest.mark.exhaustive
def test_an_edited_workbook_of_0_6_0_is_imported() -> None:
    """Inputs, an override, a figure of the library (as an override), a measured value and an added scenario.

    What is not read is named: cells without ids of a sheet that was laid out anew, a factor that is gone.
    """
    found = import_workbook(DATA / "llama-3.1-8b-edited-0.6.0.xlsx")
    added = {"inputs.tp": 2, "inputs.input_tokens": 4096}
    assert {item["id"]: item["to"] for item in found.changes} == EDITED | added
    assert (found.made_by, found.added) == ("mantile 0.6.0", ("long prompts",))
    assert {"sensitivity.swing.inputs.utilisation", "inputs.compute_speed"} <= {*found.lacking}
    assert "inputs.tp" not in found.lacking and "memory.kv" not in found.lacking
    assert {"efficiency.prefill_alone.global", "efficiency.prefill_alone.h100-sxm/vllm"} <= {*found.unknown}
    assert found.other_version is not None and found.other_version.startswith("made by mantile 0.6.0: ")
    base, two, three = (found.scenario, *found.scenario.variants)
    assert (base.concurrency, base.measured.tpot_ms) == (24, 11.5)
    assert [(item.id, item.value) for item in two.overrides] == [("efficiency.step_host", 900)]
    assert (three.name, three.tp, three.input_tokens) == ("long prompts", 2, 4096)
    assert ("hardware.memory_bandwidth", 3000) in [(item.id, item.value) for item in base.overrides]


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
@pytest.mark.parametrize(
    ("sheet", "row"),
    few_of(
        [
            ("Inputs", 20),
            ("Calculation", 60),
            ("Calculation", 30),
            ("What-if", 80),
            ("Hardware", 4),
            ("Summary", 3),
            ("Layers", 6),
        ],
        ("Calculation", 30),
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
    assert not file.places.unknown


@pytest.mark.exhaustive
def test_inserted_rows_verify(made: Estimate, tmp_path: Path) -> None:
    """As a file, by another engine; an edit is named by the cell in which it stands."""
    path = write_workbook(lay_out(made), tmp_path / "moved.xlsx")
    for sheet, row in (("Inputs", 12), ("Calculation", 100), ("Summary", 3)):
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
        for (row, column), content in sorted(before.contents["Calculation"].items())
        if column == FIRST and isinstance(content, Formula) and (match := re.match(r"=SUM\(H(\d+):", content))
    )
    file = _inserted(before, "Calculation", first)
    assert _differs(diff_cells(file)) == {}
    found = diff_cells(typed_into(file, {("Calculation", first, FIRST): 1e9}))
    assert [item["cell"] for item in found.formulas] == [f"Calculation!H{row + 2}"]
    assert [item["cell"] for item in found.notes] == [f"Calculation!H{first + 1}"]


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
