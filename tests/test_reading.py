"""Cells as files spell them: one look through a file finds what openpyxl finds."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from xml.etree.ElementTree import Element

import openpyxl
import pytest
import xlsxwriter
from openpyxl.styles.colors import COLOR_INDEX
from openpyxl.styles.numbers import BUILTIN_FORMATS
from openpyxl.worksheet.formula import ArrayFormula

from mantile.library.errors import InputError
from mantile.workbook.looks import Looks
from mantile.workbook.number_formats import NUMBERED
from mantile.workbook.package import Package
from mantile.workbook.package_part import Formula
from mantile.workbook.read import read_cells

ROWS = """
<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>-2.5E-300</v></c>
<c r="C1" t="b"><v>1</v></c><c r="D1" t="e"><v>#N/A</v></c></row>
<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c>
<c r="C2" t="s"><v>2</v></c><c r="D2" t="s"><v>3</v></c></row>
<row r="3"><c r="A3" t="inlineStr"><is><t>plain</t></is></c>
<c r="B3" t="inlineStr"><is><r><rPr><b/></rPr><t>two </t></r><r><t>runs</t></r></is></c>
<c r="C3" t="str"><v>=text</v></c><c r="D3" t="inlineStr"><is><t>=1+1</t></is></c></row>
<row r="4"><c r="A4"><f t="shared" ref="A4:A6" si="0">A1*$B$1+Other!A1</f><v>3</v></c>
<c r="B4"><f t="array" ref="B4:B5">A1:A2*2</f><v>2</v></c>
<c r="C4" t="str"><f>"a"&amp;"&lt;"</f><v>a&lt;</v></c></row>
<row r="5"><c r="A5"><f t="shared" si="0"/><v>4</v></c><c r="B5"><v>7</v></c><c r="C5"><f>1+1</f></c></row>
<row><c r="A6"><f t="shared" si="0"></f><v>4</v></c><c><v>8</v></c><c s="1"/><c t="s"><v>4</v></c></row>
<row r="8"><c r="C8" t="b"><v>0</v></c><c r="D8" t="n"><v>12345678901234567890</v></c></row>
"""
SHARED = (
    "<si><t>one</t></si><si><r><rPr><b/></rPr><t>r</t></r><r><t>ich</t></r></si>"
    '<si><t xml:space="preserve"> _x005F_x0041_ </t></si>'
    "<si><t>kana</t><rPh sb='0' eb='1'><t>spoken</t></rPh></si><si><t></t></si>"
)


def written(path: Path, rows: str = ROWS) -> Path:
    """A workbook of two sheets, one with these rows."""
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("Sheet").write(0, 0, "a text, so that there are shared ones", book.add_format())
        book.add_worksheet("Other").write(0, 0, 5)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    sheet, texts = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
    parts[sheet] = re.sub(
        r"<sheetData>.*</sheetData>", lambda _: f"<sheetData>{rows}</sheetData>", parts[sheet]
    )
    parts[texts] = re.sub(r"(<sst[^>]*>).*</sst>", lambda match: f"{match[1]}{SHARED}</sst>", parts[texts])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_every_kind_of_cell(tmp_path: Path) -> None:
    """Numbers, texts, formulas that cells share or that fill several: as openpyxl reads them."""
    path = written(tmp_path / "kinds.xlsx")
    found = read_cells(path)
    expected = {
        (cell.row - 1, cell.column - 1): cell
        for row in openpyxl.load_workbook(path)["Sheet"].iter_rows()
        for cell in row
        if cell.value is not None
    }
    cells = found.contents["Sheet"]
    assert cells.keys() == expected.keys() and len(cells) == 23
    for place, cell in expected.items():
        value = cell.value
        text = f"{{{value.text}}}" if isinstance(value, ArrayFormula) else value
        assert cells[place] == text and isinstance(cells[place], type(text)), place
        assert isinstance(cells[place], Formula) == (cell.data_type == "f"), place
    assert (cells[4, 0], cells[5, 0]) == ("=A2*$B$1+Other!A2", "=A3*$B$1+Other!A3")
    assert found.contents["Other"] == {(0, 0): 5}
    stored = found.stored["Sheet"]
    assert (stored[3, 0], stored[3, 2], stored[0, 0]) == (3, "a<", 1) and (4, 2) not in stored


@pytest.mark.parametrize("value", ["nan", "1e999", "one", "1_0", "0x10", ""])
def test_what_is_no_number(tmp_path: Path, value: str) -> None:
    """Refused by cell; a cell of nothing is empty."""
    path = written(tmp_path / "odd.xlsx", f'<row r="1"><c r="A1"><v>{value}</v></c></row>')
    if not value:
        assert read_cells(path).contents["Sheet"] == {}
        return
    with pytest.raises(InputError, match=r"cell A1: holds .* expected a number"):
        read_cells(path)


def test_order_of_calculation(tmp_path: Path) -> None:
    """Excel keeps the order of its cells in a part of its own: addresses of several sheets are equal."""
    path = written(tmp_path / "order.xlsx")
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            "xl/calcChain.xml", f'<calcChain xmlns="{main}"><c r="A1" i="1"/><c r="A1" i="2"/></calcChain>'
        )
    assert read_cells(path).contents["Other"] == {(0, 0): 5}


def test_numbered_looks() -> None:
    """Formats and colours that styles name by a number alone are those of openpyxl.

    But for format 44, of which it has lost what divides it.
    """
    ours, theirs = dict(NUMBERED), dict(BUILTIN_FORMATS)
    assert ours.pop(44).replace(";", "") == theirs.pop(44)
    assert ours == theirs
    looks = Looks(Package())
    for number, colour in enumerate(COLOR_INDEX):
        assert looks.colour(Element("color", indexed=str(number))) == colour[-6:]
    assert looks.colour(Element("color", indexed=str(len(COLOR_INDEX)))) is None
