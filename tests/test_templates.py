"""Templates: which sheets and rows a workbook shows, in whose name and colours.

Its numbers are the same in all of them.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from live import few, loaded

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sensitivity import sensitivity
from mantile.library.errors import InputError
from mantile.library.profiles import data_folder
from mantile.library.scenario import parse_scenario
from mantile.library.template import load_template
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.verify import verify
from mantile.workbook.book import FIRST
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import COLLECTING, WORKINGS, lint
from mantile.workbook.write import build_workbook

BASE: dict[str, Any] = {
    "model": "qwen3-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 256,
    "concurrency": 16,
    "date": "2026-11-21",
}
OWN = """\
about: ours
company: Q & A Ltd
title: Capacity plan
palette: {navy: "#5A1846", compute: "#7A0019"}
"""


def made(**fields: Any) -> Estimate:
    """An estimate of the base with changes."""
    return estimate(parse_scenario(BASE | fields, "scenario"), library=few(("h100-sxm", "l40s")))


def part(path: Path, name: str) -> str:
    """The text of a part of a workbook file."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def test_every_template_we_ship_is_read_and_says_what_it_is_for() -> None:
    names = {path.stem for path in data_folder("templates").glob("*.yaml")}
    assert names == {"standard", "executive", "audit"}
    assert all(load_template(name).about for name in names)
    assert load_template("standard").model_dump(exclude={"about"}) == type(
        load_template("standard")
    )().model_dump(exclude={"about"})


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["executive", "audit"])
def test_a_template_changes_no_number_and_keeps_the_rules(name: str, tmp_path: Path) -> None:
    """Lint is clean, another engine agrees, and the results are those of the standard workbook."""
    standard, other = made(), made(template=name)
    path = build_workbook(other, tmp_path / "run.xlsx")
    assert not lint(path)
    assert other.results() == standard.results()
    assert not import_workbook(path).changes
    if name == "audit":  # its formulas stand where a scenario would be added
        book = loaded(path)
        book["Inputs"].cell(4, FIRST + 3, "one more")
        book.save(path)
        with pytest.raises(InputError, match=r"Inputs!J4: expected nothing here"):
            import_workbook(path)
    if name == "executive":  # the other has formulas of the standard one
        assert verify(path).ok


@pytest.mark.exhaustive
def test_executives_see_what_they_decide_by() -> None:
    """The sheets named and those their formulas need; nothing leads to a sheet that is not there."""
    book = lay_out(made(template="executive", variants=[{"name": "TP2", "tp": 2}]))
    assert {"Summary", "What-if", "Audit"} <= set(book.sheets)
    assert "Layers" not in book.sheets
    text = {
        name: " ".join(
            book.formula_text(sheet, cell) for cell in sheet.cells.values() if cell.expression is not None
        )
        for name, sheet in book.sheets.items()
    }
    named = {
        found for formulas in text.values() for found in re.findall(r"([A-Z][a-z]+(?:-if)?)'?!", formulas)
    }
    assert named <= set(book.sheets)
    links = {
        str(cell.link).removeprefix("internal:'").partition("'")[0]
        for sheet in book.sheets.values()
        for cell in sheet.cells.values()
        if cell.link
    }
    assert links <= set(book.sheets)
    assert {place.removeprefix("=").partition("!")[0].strip("'") for place in book.names.values()} <= set(
        book.sheets
    )


@pytest.mark.exhaustive
def test_auditors_get_every_formula_as_text_and_every_driver(tmp_path: Path) -> None:
    """Beside each row of the workings the formula of its base column; it is a text and is not executed."""
    other = made(template="audit", variants=[{"name": "TP2", "tp": 2}])
    book = lay_out(other)
    column = FIRST + 2
    seen = 0
    for name in WORKINGS:
        if name in COLLECTING or name not in book.sheets:
            continue
        sheet = book.sheets[name]
        for (row, at), cell in sheet.cells.items():
            if at == FIRST and cell.expression is not None and row in sheet.ids:
                assert sheet.cells[row, column].text == book.formula_text(sheet, cell)
                seen += 1
    assert seen > 1000
    moving = [item.input for item in sensitivity(other) if item.largest > 0]
    assert (
        sum(identifier in {item.id for item in moving} for identifier in book.sheets["What-if"].ids.values())
        == len(moving)
        > 20
    )
    path = build_workbook(made(template="audit"), tmp_path / "run.xlsx")
    shown = loaded(path)["Calculation"]
    texts = [shown.cell(row, FIRST + 2) for row in range(5, 60) if shown.cell(row, FIRST + 2).value]
    assert texts and all(cell.data_type == "s" and str(cell.value).startswith("=") for cell in texts)


@pytest.mark.exhaustive
def test_a_template_of_ones_own(tmp_path: Path) -> None:
    """Name, title and colours, in the file and in its bundle: verification needs no template file."""
    file = tmp_path / "ours.yaml"
    file.write_text(OWN, encoding="utf-8")
    path = build_workbook(made(template=str(file)), tmp_path / "run.xlsx")
    file.unlink()
    book = loaded(path)
    texts = [str(cell.value) for cell in book["Summary"]["B"]]
    head = next(row for row, text in enumerate(texts) if "LLM INFERENCE" in text)
    assert book.properties.title == "Capacity plan" == texts[head + 1]
    assert texts[head].startswith("Q & A LTD") and "Q &amp;&amp; A Ltd" in part(
        path, "xl/worksheets/sheet2.xml"
    )
    styles, chart = part(path, "xl/styles.xml"), part(path, "xl/charts/chart1.xml")
    assert "5A1846" in styles and "17365D" not in styles and "7A0019" in chart and "234E9A" not in chart
    report = verify(path)
    assert report.ok and not report.formulas


@pytest.mark.exhaustive
def test_another_currency_on_the_front_sheets(tmp_path: Path) -> None:
    """Amounts times the rate, which stands on the Cover; workings stay in dollars."""
    file = tmp_path / "ours.yaml"
    file.write_text('currency: {code: EUR, symbol: "€", per_usd: 0.92}', encoding="utf-8")
    other = made(template=str(file), sweep={"concurrency": [4, 16]}, variants=[{"name": "TP2", "tp": 2}])
    book = lay_out(other)
    values = book.values(book.generated_inputs())
    usd = other.results()["usd_per_million_tokens"]["output"]

    def shown(sheet: str, wanted: str) -> list[float]:
        """Numbers on the rows that begin with these words."""
        cells = book.sheets[sheet].cells
        rows = {
            row
            for (row, column), cell in cells.items()
            if column < 2 and cell.text is not None and wanted in cell.text
        }
        found = [
            values[cell.scenario].get(cell.expression)
            for (row, _), cell in cells.items()
            if row in rows and cell.expression is not None
        ]
        return [value for value in found if isinstance(value, float)]

    assert float(values[0][book.sheets["Summary"].cells[10, 8].expression]) == pytest.approx(usd * 0.92)
    assert usd * 0.92 == pytest.approx(
        next(value for value in shown("What-if", "Per million output tokens") if value > 0), rel=1e-9
    )
    assert any(value == pytest.approx(usd * 0.92) for value in shown("What-if", "now, live"))
    assert any(value == pytest.approx(usd * 0.92) for value in shown("What-if", "As it is"))
    path = build_workbook(made(template=str(file)), tmp_path / "run.xlsx")
    assert not lint(path) and verify(path).ok and "€" in part(path, "xl/styles.xml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sheets: [Sumary]", "unknown sheet 'Sumary'; did you mean Summary"),
        ("palette: {navy: blue}", "palette.navy"),
        ("drivers: 1", "drivers"),
        ("colour: red", "colour"),
        ("[1]", "ours.yaml"),
    ],
)
def test_a_template_that_cannot_be_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(words)):
        lay_out(made(template=str(file)))


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(InputError, match="unknown template 'exekutive'; did you mean executive"):
        made(template="exekutive")
