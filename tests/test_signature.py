"""Signatures: they hold for the digest typed until something changes, and are no edits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live import as_written, edit, few, typed_into
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.cli import main
from mantile.equations.signature import CHANGED_SINCE, HOLDS, NOT_SIGNED
from mantile.estimates.estimate import estimate
from mantile.library.scenario import parse_scenario
from mantile.library.template import Template
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.report import Report
from mantile.verification.signatures import read_signatures
from mantile.verification.verify import verify
from mantile.workbook.book import SHARED
from mantile.workbook.cell_diff import diff_cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.read import typed_inputs
from mantile.workbook.sheets.log import DATE, DIGEST, NAME
from mantile.workbook.write import write_workbook

FIELDS = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
    "variants": [{"name": "two", "tp": 2}],
}


@pytest.fixture(scope="module")
def book() -> EstimateBook:
    """A small workbook of two scenarios."""
    return lay_out(estimate(parse_scenario(FIELDS, "two"), library=few(("h100-sxm",))))


@pytest.fixture(scope="module")
def one() -> EstimateBook:
    """A smaller one."""
    template = Template.model_validate({"drivers": 2})
    scenario = parse_scenario({key: value for key, value in FIELDS.items() if key != "variants"}, "one")
    return lay_out(estimate(scenario, library=few(("h100-sxm", "b200-sxm")), template=template))


@pytest.fixture(scope="module")
def written(one: EstimateBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file."""
    return write_workbook(one, tmp_path_factory.mktemp("signed") / "run.xlsx")


def statuses(book: EstimateBook, typed: dict[str, Any], edits: dict[str, Any] | None = None) -> list[Any]:
    """What stands beside the three lines, by our engine."""
    inputs = book.generated_inputs()
    inputs[0] |= {f"signature.{key}": value for key, value in typed.items()}
    once = {figure.id for figure, cell in book.addresses.items() if cell.column == SHARED}
    for scenario in inputs if once & (edits or {}).keys() else inputs[1:]:  # a cell of all is one cell
        scenario |= edits or {}
    across = book.values(inputs)[-1]
    lines = (figure for figure in book.addresses if re.fullmatch(r"signature\.\w+\.status", figure.id))
    return [across[figure.body] for figure in lines]


@pytest.mark.exhaustive
def test_a_signature_holds_for_the_digest_until_something_changes(book: EstimateBook) -> None:
    """Of any scenario; a name alone, or a digest alone, signs nothing."""
    signed = {"reviewed.name": "A. Reviewer", "reviewed.digest": book.digest}
    assert statuses(book, {}) == [NOT_SIGNED] * 3
    assert statuses(book, signed) == [NOT_SIGNED, HOLDS, NOT_SIGNED]
    assert statuses(book, signed | {"reviewed.digest": "0000 0000"})[1] == CHANGED_SINCE
    assert statuses(book, {"reviewed.name": "A. Reviewer"}) == [NOT_SIGNED] * 3
    assert statuses(book, {"reviewed.digest": book.digest}) == [NOT_SIGNED] * 3
    for typed in (
        {"inputs.concurrency": 9.0},
        {"inputs.pue": 2.0},
        {"cost.host_share": 3.0},
        {"hardware.tdp.override": 500.0},
    ):
        assert statuses(book, signed, typed)[1] == CHANGED_SINCE, f"{typed} changes what was signed"


def sign(source: Path, target: Path, book: EstimateBook, **more: Any) -> Path:
    """The file with a signature as somebody types it; `more` by cells, such as Summary_C5."""

    def change(workbook: Any) -> None:
        log = workbook["Audit"]
        row = next(cell.row for cell in log["B"] if cell.value == "Approved by")
        for column, value in ((NAME, "C. Director"), (DATE, "2026-12-01"), (DIGEST, book.digest)):
            log.cell(row, column + 1).value = value
        for name, value in more.items():
            sheet, _, cell = name.partition("_")
            workbook[sheet][cell] = value

    return edit(source, target, change)


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command line: its exit status, and what it prints."""

    def ran(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["mantile", *arguments])
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), capsys.readouterr().out
        return 0, capsys.readouterr().out

    return ran


@pytest.mark.exhaustive
def test_open_and_verify_name_who_signed(
    one: EstimateBook,
    written: Path,
    tmp_path: Path,
    command: Command,
) -> None:
    """A signature is no edit; it stays with the workbook; the engine agrees on what it is."""
    signed = sign(written, tmp_path / "signed.xlsx", one)
    report = verify(signed, "formualizer")
    assert report.ok and not report.inputs and not report.mismatches
    (signature,) = report.signed()
    assert signature["holds"] and signature["name"] == "C. Director" and signature["date"] == "2026-12-01"
    status, out = command("open", str(signed))
    assert (
        status == 0 and f"signed    approved by C. Director on 2026-12-01, digest {one.digest}: holds" in out
    )
    assert {item["found"] for item in import_workbook(signed).left_out} >= {"C. Director", one.digest}


@pytest.mark.exhaustive
def test_a_signature_falls_with_an_edit_and_with_a_formula(
    one: EstimateBook,
    written: Path,
    tmp_path: Path,
    command: Command,
) -> None:
    """An edit is named beside it; a digest that is worked out, so as always to hold, is an edited formula."""
    sheet, row, column = one.input_cells["inputs.concurrency", 0]
    cell = xl_rowcol_to_cell(row, column)
    edited = sign(written, tmp_path / "edited.xlsx", one, **{f"{sheet}_{cell}": 5})
    status, out = command("verify", str(edited), "--engine", "formualizer")
    assert status == 0 and "changed since it was signed" in out
    log = one.sheets["Audit"]
    line = next(row for (row, _), cell in log.cells.items() if cell.text == "Approved by")
    forged = sign(written, tmp_path / "forged.xlsx", one, **{f"Audit_E{line + 1}": f"=E{line - 3}"})
    report = verify(forged, "formualizer")
    assert not report.ok and [item["cell"] for item in report.formulas] == [f"Audit!E{line + 1}"]
    assert not any(signature["holds"] for signature in report.signed())


def typed_signature(book: EstimateBook, **more: Any) -> dict[tuple[str, int, int], Any]:
    """What somebody types who approves."""
    line = book.input_cells["signature.approved.name", 0][1]
    texts = {NAME: "C. Director", DATE: 46357, DIGEST: book.digest} | more.pop("log", {})
    return {("Audit", line, column): text for column, text in texts.items()} | more.pop("cells", {})


@pytest.mark.exhaustive
def test_a_signature_is_read_and_is_no_edit(one: EstimateBook) -> None:
    """With its date, which may be typed as one; an edit fells it, and so does a formula in its place."""
    file = as_written(one)

    def signed(**more: Any) -> tuple[dict[str, Any], list[str], list[str]]:
        typed = typed_into(file, typed_signature(one, **more))
        values, edits = typed_inputs(typed)
        (signature,) = read_signatures(typed, one.values(values)[-1])
        diff = diff_cells(typed)
        assert not diff.overwritten and not diff.labels
        return signature, [edit["id"] for edit in edits], [item["cell"] for item in diff.formulas]

    signature, edits, formulas = signed()
    assert (signature["name"], signature["date"], signature["status"]) == ("C. Director", "2026-12-01", HOLDS)
    assert not edits and not formulas
    signature, edits, _ = signed(cells={one.input_cells["inputs.concurrency", 0]: 5})
    assert signature["status"] == CHANGED_SINCE and edits == ["inputs.concurrency"]
    signature, _, formulas = signed(log={DIGEST: "=E20"})
    assert signature["status"] == NOT_SIGNED and len(formulas) == 1


def test_a_report_says_whether_signatures_hold() -> None:
    """Not of a file that does not verify, nor where an input was edited that the formula does not look at."""
    signature = {"role": "Approved by", "status": HOLDS}
    edited, broken = {"id": "library.h100-sxm.tdp"}, {"sheet": "Calculation", "mismatches": 1}
    for report, stands in (
        (Report("run.xlsx", "formulas", signatures=[signature]), True),
        (Report("run.xlsx", "formulas", signatures=[signature | {"status": CHANGED_SINCE}]), False),
        (Report("run.xlsx", "formulas", signatures=[signature], inputs=[edited]), False),
        (Report("run.xlsx", "formulas", signatures=[signature], sheets=[broken]), False),
    ):
        assert [item["holds"] for item in report.signed()] == [stands]


@pytest.mark.exhaustive
def test_the_sign_off_is_unlocked_and_says_what_to_type(book: EstimateBook, one: EstimateBook) -> None:
    """On every workbook, with its own digest."""
    for laid in (book, one):
        cells = [cell for cell in laid.sheets["Audit"].cells.values() if cell.room and cell.entry is not None]
        assert len(cells) == 6 and all(cell.style.unlocked and cell.style.form == "@" for cell in cells)
        assert sum(laid.digest in cell.room.message for cell in cells if cell.room) == 3
