"""Verification: what it proves, what it must catch, and files as other programs leave them."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import few_of
from live import edit, few

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import NOT_KNOWN
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.engines import recalculate, soffice, with_formualizer, with_formulas
from mantile.verification.verify import difference, verify, verify_with_all
from mantile.workbook.book import FIRST
from mantile.workbook.cell_diff import CellDiff, diff_cells
from mantile.workbook.lint import lint
from mantile.workbook.read import open_file, read_cells
from mantile.workbook.references import Formula
from mantile.workbook.write import build_workbook

libreoffice = pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")

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
BASE = {
    "model": "small",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
}
VARIANTS = {"variants": [{"name": "A100", "accelerator": "a100-80gb-sxm"}]}


def _estimate(fields: dict[str, Any], library: Library | None = None, **config: Any) -> Estimate:
    architecture = parse_config(CONFIG | config, "config.json")
    model = Model(id="small", name="Small", source="test", architecture=architecture)
    return estimate(parse_scenario(fields, "scenario"), model, library)


def _workbook(fields: dict[str, Any], path: Path, library: Library | None = None) -> Path:
    return build_workbook(_estimate(fields, library), path)


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workbook: a model of three layers, some of the accelerators."""
    return _workbook(BASE, tmp_path_factory.mktemp("one") / "run.xlsx", few())


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with two scenarios and all accelerators."""
    return _workbook(BASE | VARIANTS, tmp_path_factory.mktemp("two") / "run.xlsx")


def _corrupt(workbook: Path, target: Path) -> Path:
    """A copy with one stored value of Calculation changed and its formula as it was."""
    with zipfile.ZipFile(workbook) as source, zipfile.ZipFile(target, "w") as out:
        sheets = re.findall(r'<sheet name="([^"]+)"', source.read("xl/workbook.xml").decode())
        part = f"xl/worksheets/sheet{sheets.index('Calculation') + 1}.xml"
        for item in source.infolist():
            data = source.read(item)
            if item.filename == part:
                data, count = re.subn(rb"(<f>H\d+\+H\d+</f><v>)([0-9.E-]+)", rb"\g<1>9.9", data, count=1)
                assert count == 1
            out.writestr(item, data)
    return target


def _cell(book: Any, sheet: str, identifier: str, column: int = 8) -> Any:
    found = next(
        row for row in range(5, book[sheet].max_row + 1) if book[sheet].cell(row, 6).value == identifier
    )
    return book[sheet].cell(found, column)


@pytest.mark.parametrize("name", few_of(["workbook", "variants"], "workbook"))
def test_a_generated_workbook_verifies(name: str, request: pytest.FixtureRequest) -> None:
    """Every formula cell compared, to 1e-9, and with the stored values too."""
    report = verify(request.getfixturevalue(name)).to_dict()
    assert report["ok"] and report["stored_values_compared"]
    assert report["compared"] == report["formulas"] > 2000
    assert report["max_relative_error"] <= 1e-9
    assert not any(report["edited"].values())
    assert set(report["edited"]) == {"inputs", "formulas", "overwritten", "names", "sheets", "shown"}


@pytest.mark.exhaustive
def test_a_generated_workbook_keeps_the_rules(variants: Path) -> None:
    assert lint(variants) == []


@pytest.mark.exhaustive
def test_figures_that_nobody_knows_are_errors_in_cells_and_null_elsewhere(tmp_path: Path) -> None:
    """A request rate on a plan that does not fit.

    No batch slot, so tokens per second are not known, also as the file was made.
    """
    fields = BASE | {"accelerator": "rtx-4090", "tp": 1, "concurrency": None, "request_rate": 1}
    too_large = _estimate(fields, few(), num_hidden_layers=9, intermediate_size=500_000)
    assert too_large.results(0)["output_tokens_per_s"] is None
    path = build_workbook(too_large, tmp_path / "run.xlsx")
    file = open_file(path)
    shown = [
        place
        for place, entry in file.places.file_ids.items()
        if entry.id in ("metrics.output_tokens_per_s", "stamp.metrics.output_tokens_per_s")
    ]
    assert len(shown) >= 2
    for sheet, row in shown:
        assert file.stored(sheet, row, FIRST) == NOT_KNOWN
    assert diff_cells(file) == CellDiff()
    report = verify(path)
    assert report.ok, report.to_dict()
    assert not report.inputs


@pytest.mark.exhaustive
def test_compiled_patterns_equal_the_stock_model(workbook: Path) -> None:
    """The fast model against the package's own, cell by cell."""
    file = open_file(workbook)
    book, sheets = file.book, tuple(file.book.sheets)
    fast, stock = with_formulas(file.cells, sheets), with_formulas(file.cells, sheets, fast=False)
    compared = 0
    for sheet, row, column, _ in book.formulas():
        one, other = fast[sheet.name][row, column], stock[sheet.name][row, column]
        if isinstance(one, str):
            assert one == other
        else:
            assert float(one) == pytest.approx(
                float(other), rel=1e-12, abs=1e-15
            )  # stock rounds constants to 15 decimals
        compared += 1
    assert compared > 1500


@pytest.mark.exhaustive
def test_edited_inputs_are_followed_and_named(variants: Path, tmp_path: Path) -> None:
    """An edit of selectors, an assumption, an override, a following cell: recomputed, listed, fine."""

    def change(book: Any) -> None:
        book["Summary"]["B7"] = 1
        book["Summary"]["H7"] = 700
        _cell(book, "Efficiency", "efficiency.gemm_bandwidth.override", 9).value = 0.5
        _cell(book, "Calculation", "cost.life", 7).value = 5
        _cell(book, "Inputs", "inputs.concurrency", 9).value = 3

    report = verify(edit(variants, tmp_path / "edited.xlsx", change)).to_dict()
    assert report["ok"] and not report["stored_values_compared"]
    assert report["compared"] == report["formulas"] - 1  # the following cell holds a number now
    edits = {(item["id"], item["found"]) for item in report["edited"]["inputs"]}
    assert edits == {
        ("inputs.tp", 1),
        ("inputs.input_tokens", 700),
        ("efficiency.gemm_bandwidth.override", 0.5),
        ("cost.life", 5),
        ("inputs.concurrency", 3),
    }


@pytest.mark.exhaustive
def test_a_corrupted_stored_value_is_caught(workbook: Path, tmp_path: Path) -> None:
    """The formula is untouched; only the number that a previewer would show is wrong."""
    target = _corrupt(workbook, tmp_path / "corrupt.xlsx")
    report = verify(target).to_dict()
    assert not report["ok"]
    assert [item["source"] for item in report["mismatches"]] == ["stored value"]


TAMPERED: list[tuple[Callable[[Any], None], str]] = [
    (lambda book: setattr(_cell(book, "Calculation", "serving.tpot"), "value", "=H10"), "formulas"),
    (
        lambda book: setattr(
            _cell(book, "Calculation", "decode.ffn_up.flops"),
            "value",
            str(_cell(book, "Calculation", "decode.ffn_up.flops").value).replace("*", "+", 1),
        ),
        "formulas",
    ),
    (lambda book: setattr(_cell(book, "Calculation", "prefill.time"), "value", 0.001), "overwritten"),
    (lambda book: setattr(_cell(book, "Inputs", "constant.flops_per_mac", 7), "value", 3), "overwritten"),
    (lambda book: setattr(book["Calculation"]["K3"], "value", "=1/3"), "formulas"),
]
"""Changes of a file, and where verification lists each."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        change if number == 0 else pytest.param(*change, marks=pytest.mark.exhaustive)
        for number, change in enumerate(TAMPERED)
    ],
    ids=[
        "changed formula",
        "broken operator",
        "constant over formula",
        "changed definition",
        "formula where none belongs",
    ],
)
def test_tampering_is_caught(
    workbook: Path, tmp_path: Path, change: Callable[[Any], None], kind: str
) -> None:
    """Each kind of tampering fails verification and is named with its cell."""
    report = verify(edit(workbook, tmp_path / "bad.xlsx", change)).to_dict()
    assert not report["ok"]
    assert len(report["edited"][kind]) == 1 and report["edited"][kind][0]["cell"]


@pytest.mark.exhaustive
def test_a_broken_operator_in_a_live_branch_changes_values_too(workbook: Path, tmp_path: Path) -> None:
    """The comparison of values alone sees it as well."""

    def change(book: Any) -> None:
        cell = _cell(book, "Calculation", "serving.e2e")
        cell.value = str(cell.value).replace("+", "-", 1)

    report = verify(edit(workbook, tmp_path / "bad.xlsx", change)).to_dict()
    assert any(item["id"] == "serving.e2e" and item["source"] == "formulas" for item in report["mismatches"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a workbook", "expected an .xlsx workbook"),
        (None, "truncated"),
    ],
)
def test_what_is_no_workbook_is_refused(
    workbook: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    """A clear error, not a traceback."""
    path = tmp_path / "broken.xlsx"
    path.write_bytes(workbook.read_bytes()[:5000] if content is None else content)
    with pytest.raises(InputError, match=message):
        verify(path)


@pytest.mark.exhaustive
def test_inputs_that_cannot_be_are_refused_by_cell(workbook: Path, tmp_path: Path) -> None:
    """A text where a number belongs, an empty selector, a foreign workbook."""
    with pytest.raises(InputError, match=r"Summary!H7 \(inputs.input_tokens\): holds 'many'"):
        verify(
            edit(workbook, tmp_path / "a.xlsx", lambda book: setattr(book["Summary"]["H7"], "value", "many"))
        )
    with pytest.raises(InputError, match=r"Summary!B5 \(inputs.accelerator\): the cell is empty"):
        verify(
            edit(workbook, tmp_path / "b.xlsx", lambda book: setattr(book["Summary"]["B5"], "value", None))
        )
    foreign = tmp_path / "c.xlsx"
    openpyxl.Workbook().save(foreign)
    with pytest.raises(InputError, match="_bundle is missing"):
        verify(foreign)


@pytest.mark.exhaustive
@libreoffice
def test_libreoffice_agrees_and_really_recalculates(workbook: Path, tmp_path: Path) -> None:
    """The same through LibreOffice; a stored value it echoed instead of recalculating would show."""
    assert verify(workbook, "libreoffice").to_dict()["ok"]
    typed = edit(
        workbook, tmp_path / "edited.xlsx", lambda book: setattr(book["Summary"]["J7"], "value", 100)
    )
    resaved = recalculate(typed, tmp_path)
    report = verify(resaved).to_dict()
    edited = report["edited"]
    assert [*report["mismatches"], *edited["formulas"], *edited["overwritten"]] == []
    assert report["stored_values_compared"] and report["compared"] == report["formulas"]
    assert [item["id"] for item in edited["inputs"]] == ["inputs.concurrency"]


@pytest.mark.exhaustive
@libreoffice
def test_libreoffice_catches_a_wrong_stored_value(workbook: Path, tmp_path: Path) -> None:
    """If recalculation were not forced, the corrupted value would come back and differ."""
    target = _corrupt(workbook, tmp_path / "corrupt.xlsx")
    sources = {item["source"] for item in verify(target, "libreoffice").to_dict()["mismatches"]}
    assert sources == {"stored value"}


def test_a_long_range_is_read_as_far_as_the_sheet_goes(tmp_path: Path) -> None:
    """Cells beyond the last row are not made, however many a formula refers to."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"], book.active["B2"] = 3, "=SUM(A1:A90000)", "=B1*2"
    book.save(tmp_path / "long.xlsx")
    cells = read_cells(tmp_path / "long.xlsx")
    values = with_formulas(cells, ("Sheet",))
    assert (values["Sheet"][0, 1], values["Sheet"][1, 1]) == (3, 6)
    assert max(row for row, _ in cells.contents["Sheet"]) == 1


def test_ironcalc_works_out_what_we_do(workbook: Path, tmp_path: Path) -> None:
    """Every formula of a file without stored values, where the package is installed."""
    ironcalc = pytest.importorskip("ironcalc")
    bare = tmp_path / "bare.xlsx"
    with zipfile.ZipFile(workbook) as source, zipfile.ZipFile(bare, "w") as target:
        for item in source.infolist():
            target.writestr(item, re.sub(rb"(?<=</f>)<v>[^<]*</v>", b"", source.read(item)))
    model = ironcalc.load_from_xlsx(str(bare), "en", "UTC", "en")
    model.evaluate()
    file = open_file(workbook)
    numbers = {name: number for number, name in enumerate(file.cells.package.sheets)}
    count = 0
    for sheet, row, column in _formulas(file):
        expected = file.stored(sheet, row, column)
        found = model.get_cell_value(numbers[sheet], row + 1, column + 1)
        assert difference("" if expected is None else expected, found) <= 1e-9, (sheet, row, column)
        count += 1
    assert count > 4000


def _edited(workbook: Path, target: Path) -> Path:
    """A copy with inputs as somebody would change them, without stored values."""

    def change(book: Any) -> None:
        book["Summary"]["J7"].value = 100
        book["Summary"]["B7"].value = 4

    return edit(workbook, target, change)


@pytest.mark.exhaustive
def test_all_engines_agree_and_each_catches_a_wrong_formula(tmp_path: Path) -> None:
    """On two scenarios as generated: rankings with ties, look-ups along rows, percentages in texts."""
    two = _workbook(BASE | {"variants": [{"name": "TP4", "tp": 4}]}, tmp_path / "run.xlsx", few())
    file = open_file(two)
    texts = {str(content) for cells in file.contents.values() for content in cells.values()}
    assert any(re.search(r"INDEX\(\$D\$\d+:\$E\$\d+,1,", text) for text in texts)
    for engine in ("formulas", "formualizer"):
        report = verify(two, engine).to_dict()  # type: ignore[arg-type]
        assert report["ok"] and report["compared"] == report["formulas"] > 4000, report["mismatches"][:5]
        assert report["max_relative_error"] < 1e-12
    _, row, column = next(
        (name, row, column) for name, row, column in _formulas(file) if name == "Calculation"
    )
    wrong = edit(
        two,
        tmp_path / "wrong.xlsx",
        lambda book: setattr(book["Calculation"].cell(row + 1, column + 1), "value", "=1+1E+9"),
    )
    report = verify(wrong, "formualizer").to_dict()
    assert not report["ok"] and {item["source"] for item in report["mismatches"]} == {"formualizer"}


def _formulas(file: Any) -> list[tuple[str, int, int]]:
    return [
        (name, *place)
        for name, cells in file.contents.items()
        for place, content in sorted(cells.items())
        if isinstance(content, Formula)
    ]


@pytest.mark.exhaustive
def test_all_that_are_installed_report(
    workbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with the shape of its own, also on edited inputs; one that is not there is no failure."""
    monkeypatch.setattr(sys.modules["mantile.verification.verify"], "soffice", lambda: None)
    found = verify_with_all(_edited(workbook, tmp_path / "edited.xlsx")).to_dict()
    assert found["ok"] and found["not_installed"] == ["libreoffice"] and not found["refused"]
    assert list(found["engines"]) == ["formulas", "formualizer"]
    for engine, report in found["engines"].items():
        assert report["engine"] == engine and report["ok"] and not report["stored_values_compared"]
        assert len(report["edited"]["inputs"]) == 2
    found = verify_with_all(_corrupt(workbook, tmp_path / "corrupt.xlsx")).to_dict()
    assert not found["ok"] and not any(report["ok"] for report in found["engines"].values())


def test_an_engine_that_is_missing_names_what_to_install(
    workbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["mantile.verification.engines"], "has_formualizer", lambda: False)
    with pytest.raises(InputError, match=r"pip install 'mantile\[formualizer\]'"):
        verify(workbook, "formualizer")
    with pytest.raises(InputError, match=r"expected formulas, libreoffice, formualizer"):
        verify(workbook, "excel")  # type: ignore[arg-type]


def test_sheets_of_formulas_beside_what_no_engine_can_work_out() -> None:
    """Circles, broken formulas and what needs them have no value; all else has, in columns or alone."""
    texts = {
        (row, 1): f'=IF(A{row + 1}>2,A{row + 1}/2,1)&"x"' for row in range(6)
    }  # of one pattern, beside each other
    texts |= {(0, 2): "=C2", (1, 2): "=C1+1", (2, 2): "=C1*2", (3, 2): "=A1+", (4, 2): "=C4", (5, 2): "=1/A7"}
    cells: dict[tuple[int, int], Any] = {place: Formula(text) for place, text in texts.items()}
    cells |= {(row, 0): row for row in range(6)}
    values = CompiledSheets({"S": cells}).calculate(["S"], {("S", 5, 0): 9})
    assert [values["S", row, 1] for row in range(6)] == ["1x", "1x", "1x", "1.5x", "2x", "4.5x"]
    assert [row for row in range(6) if ("S", row, 2) in values] == [5]
    assert str(values["S", 5, 2]) == "#DIV/0!"


def test_formualizer_is_handed_no_formula_that_could_reach_out(tmp_path: Path) -> None:
    """The value stored with it stands in its place; what it cannot parse has no value."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["A2"], book.active["A3"] = '=WEBSERVICE("http://x")', "=A4+2", "=A2+"
    book.active["A4"] = 5
    book.save(tmp_path / "run.xlsx")
    values = with_formualizer(read_cells(tmp_path / "run.xlsx"), ("Sheet",), [("Sheet", 0, 0)])["Sheet"]
    assert values == {(1, 0): 7, (2, 0): None}


def test_a_verification_leaves_the_process_to_other_threads() -> None:
    """Who imports scipy meanwhile gets scipy, and what others print is printed."""
    code = """
import sys
from mantile.verification import engines
from mantile.workbook.read import Cells
from mantile.workbook.references import Formula

class Seen:
    faults, printed = set(), sys.stderr

    def find_spec(self, *module):  # is asked at every import, as another thread may look at any time
        scipy = sys.modules.get("scipy")
        Seen.faults |= {"stderr"} if sys.stderr is not self.printed else set()
        Seen.faults |= {"scipy"} if scipy is not None and scipy.__spec__ is None else set()

sys.meta_path.insert(0, Seen())
cells = {"Sheet": {(0, 0): 1, (0, 1): Formula("=MAX(A1,2)")}}
values = engines.with_formulas(Cells(cells, {"Sheet": {}}), ("Sheet",))
assert values["Sheet"][0, 1] == 2 and not Seen.faults, (values, Seen.faults)
import scipy.optimize
assert scipy.optimize.brentq(lambda x: x - 1, 0, 3) == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
