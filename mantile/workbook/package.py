"""The zip file that a workbook is, looked through as a stream before anything builds objects of it.

A file comes from anywhere. Refused is what unpacks to more than it says or than a workbook has any use for,
what runs code or reaches out to other files and programs, and what two programs would read in two ways.
"""

from __future__ import annotations

import contextlib
import copy
import math
import posixpath
import re
import zipfile
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element
from xml.parsers import expat

from mantile.library.errors import InputError

MAX_FILE, MAX_PART, MAX_UNPACKED, MAX_PARTS = 64 * 2**20, 64 * 2**20, 128 * 2**20, 2_000
MAX_CELLS, MAX_AREA = (
    300_000,
    1_000_000,
)  # that stand in a file, with its rows; that lie between the first and the last of each sheet
MAX_FORMULAS = 50_000
MAX_ELEMENTS, MAX_OTHERS = (
    2_000_000,
    200_000,
)  # of XML; of these, what is neither part of a cell nor of a text
MAX_DEPTH, MAX_ATTRIBUTE = 100, 250_000
_TEXTS = {
    "f": 8_192,
    "oddHeader": 1_000,
    "oddFooter": 1_000,
    "evenHeader": 1_000,
    "evenFooter": 1_000,
    "firstHeader": 1_000,
    "firstFooter": 1_000,
}
_MAX_TEXT = 32_767  # characters, as in Excel
_OF_CELLS = {"c", "f", "v", "is", "si", "t", "r"}
RUN_PROPERTIES = {"color", "strike", "sz", "rFont", "vertAlign", "vanish"}
"""What may set a word of a text apart from the font of its cell."""
_FORMULAS = {"f", "formula", "formula1", "formula2", "definedName"}
_ADDRESS = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_LAST = (1_048_576, 16_384)
_WORKBOOK = "xl/workbook.xml"
_MAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
_REFUSED = {
    "vbaProject": "macros",
    "xlMacrosheet": "macros",
    "xlIntlMacrosheet": "macros",
    "attachedToolbars": "macros",
    "dialogsheet": "a dialog sheet",
    "externalLink": "links to other files",
    "externalLinkPath": "links to other files",
    "oleObject": "an embedded object",
    "package": "an embedded object",
    "control": "a control",
    "activeXControlBinary": "a control",
    "connections": "connections to outside data",
    "queryTable": "connections to outside data",
    "webextension": "a web add-in",
    "webextensiontaskpanes": "a web add-in",
    "aFChunk": "a file of another kind",
}
# [1]Sheet!A1, 'folder/[other.xlsx]Sheet'!A1 and program|topic!item, outside of texts.
_OUTSIDE = re.compile(r"\[[^\[\]]*\][^\[\]!(),;\"]*!|\|")


class Formula(str):
    """The text of a formula that stands in a cell: `=1+1` as text is not one."""


@dataclass
class Package:
    """What a look through the file found.

    `sheets` are names and whether they show, `names` the defined names (name, sheet they are limited to,
    text), `contents` the formulas and constants of the sheets with cells, by sheet and by row and column from
    0, and `stored` the values saved beside formulas, in the same way. `looks` are
    the numbers of the styles of cells in the same way, and `runs` what single words of a cell look like.
    `trees` are the parts of the file without cells and shared texts, by name; tags and attributes without
    namespaces. `relations` are the links of each part (kind, target, whether it lies outside), `sheet_parts`
    the parts of the sheets.
    """

    sheets: dict[str, str] = field(default_factory=dict)
    names: list[tuple[str, str | None, str]] = field(default_factory=list)
    contents: dict[str, dict[tuple[int, int], Any]] = field(default_factory=dict)
    stored: dict[str, dict[tuple[int, int], Any]] = field(default_factory=dict)
    looks: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    runs: dict[str, dict[tuple[int, int], list[Element]]] = field(default_factory=dict)
    trees: dict[str, Element] = field(default_factory=dict)
    relations: dict[str, dict[str, tuple[str, str, bool]]] = field(default_factory=dict)
    sheet_parts: dict[str, str] = field(default_factory=dict)

    def target(self, part: str, identifier: str) -> str:
        """The part that a relation of a part leads to; the target as it is where that lies outside."""
        _, target, outside = self.relations.get(part, {}).get(identifier, ("", "", True))
        return target if outside else resolved(part, target)


def open_package(path: Path) -> Package:
    """Look through a file, and refuse it if it is no plain workbook of sane size.

    Raises:
        InputError: naming file and part, and what was expected instead.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_FILE:,}")
        with path.open("rb") as file:
            if file.read(8) == bytes.fromhex("D0CF11E0A1B11AE1"):
                raise InputError(
                    f"{path}: expected an .xlsx workbook, found one that is encrypted with a password, or of "
                    "Excel 97: save it as .xlsx without a password"
                )
        with zipfile.ZipFile(path) as archive:
            return _Reader(path, archive).read()
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile, zlib.error, NotImplementedError) as error:
        raise InputError(
            f"{path}: expected an .xlsx workbook, found something else or a truncated file ({error})"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def own_package(stream: IO[bytes]) -> Package:
    """The same of a file that we have just written."""
    with zipfile.ZipFile(stream) as archive:
        return _Reader(Path("book.xlsx"), archive).read()


class _Reader:
    """One look through an archive; the counts are of the whole file."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        self.unpacked = self.elements = self.others = self.cells = self.formulas = self.area = 0
        self.stored: dict[str, dict[tuple[int, int], Any]] = {}
        self.texts: list[str] = []
        self.text_runs: dict[int, list[Element]] = {}

    def refuse(self, message: str) -> InputError:
        return InputError(f"{self.path}: {message}")

    def read(self) -> Package:
        items = self.archive.infolist()
        self._entries(items)
        parts = {item.filename: self._part(item) for item in items if not item.is_dir()}
        return self._package(parts)

    def _entries(self, items: list[zipfile.ZipInfo]) -> None:
        """The table of contents, before anything is unpacked."""
        if len(items) > MAX_PARTS:
            raise self.refuse(f"{len(items):,} parts; expected at most {MAX_PARTS:,}")
        if sum(item.file_size for item in items) > MAX_UNPACKED:
            raise self.refuse(
                f"unpacks to {sum(item.file_size for item in items):,} bytes; expected at most "
                f"{MAX_UNPACKED:,}"
            )
        names: set[str] = set()
        end, before = 0, ""
        for item in sorted(items, key=lambda item: item.header_offset):
            name = item.filename
            if name.lower() in names:
                raise self.refuse(f"part {name} stands in the file twice")
            names.add(name.lower())
            if item.header_offset < end:
                raise self.refuse(f"parts {before} and {name} overlap in the file")
            end, before = item.header_offset + 30 + len(name) + item.compress_size, name
            if name.startswith("/") or "\\" in name or ".." in name.split("/"):
                raise self.refuse(f"part {name!r:.80} lies outside of the file")
            if item.flag_bits & 1:
                raise self.refuse(f"part {name} is encrypted; expected a workbook without a password")
            if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.refuse(
                    f"part {name} is packed by method {item.compress_type}; expected deflated or stored"
                )
        if _WORKBOOK not in (item.filename for item in items):
            raise self.refuse("expected an .xlsx workbook, found another kind of zip file")

    def _chunks(self, item: zipfile.ZipInfo) -> Generator[bytes, None, None]:
        """A part as it really unpacks.

        Zipfile believes the size in the header, so it is given a size that no part has.
        """
        believed = copy.copy(item)
        believed.file_size = 2 * MAX_PART
        size = 0
        with self.archive.open(believed) as stream:
            while chunk := stream.read(2**16):
                size += len(chunk)
                self.unpacked += len(chunk)
                if size > MAX_PART or self.unpacked > MAX_UNPACKED:
                    raise self.refuse(
                        f"part {item.filename} unpacks to more than {min(MAX_PART, MAX_UNPACKED):,} bytes, "
                        f"or with the others to more than {MAX_UNPACKED:,}"
                    )
                yield chunk
        if size != item.file_size:
            raise self.refuse(
                f"part {item.filename} unpacks to {size:,} bytes and not to the {item.file_size:,} that the "
                "file says"
            )

    def _part(self, item: zipfile.ZipInfo) -> _Part:
        part = _Part(self, item.filename)
        with contextlib.closing(self._chunks(item)) as chunks:
            head = next(chunks, b"")
            # A picture may be anything. But what begins like XML is some reader's XML, whatever it is called.
            plain = item.filename.lower().endswith((".xml", ".rels", ".vml")) or head.lstrip(
                b"\x00\t\r\n \xef\xbb\xbf\xfe\xff"
            )[:1] in (b"<", b"")
            if plain:
                part.feed(head)
            for chunk in chunks:
                if plain:
                    part.feed(chunk)
            if plain and head:
                part.feed(b"", last=True)
        return part

    def _package(self, parts: dict[str, _Part]) -> Package:
        """What the parts say of each other."""
        for name, part in parts.items():
            for kind, target, external in part.relations.values():
                word = kind.rpartition("/")[2]
                if word in _REFUSED or (external and word != "hyperlink"):
                    raise self.refuse(
                        f"part {name}: {_REFUSED.get(word, 'a link to another file')} ({target!r:.80}); "
                        "expected a workbook without"
                    )
        books = (
            [
                posixpath.normpath(target.lstrip("/"))
                for kind, target, _ in parts["_rels/.rels"].relations.values()
                if kind.endswith("/officeDocument")
            ]
            if "_rels/.rels" in parts
            else []
        )
        types = parts["[Content_Types].xml"].types if "[Content_Types].xml" in parts else []
        if any("macroenabled" in kind.lower() or "vbaproject" in kind.lower() for _, kind in types):
            raise self.refuse("macros (xl/vbaProject.bin, as in an .xlsm file); expected a workbook without")
        if books != [_WORKBOOK] or any(kind == _MAIN and name != f"/{_WORKBOOK}" for name, kind in types):
            raise self.refuse(
                f"the workbook is said to be {', '.join(books) or 'nowhere'}; expected {_WORKBOOK} and no "
                "other"
            )
        book = parts[_WORKBOOK]
        relations = (
            parts["xl/_rels/workbook.xml.rels"].relations if "xl/_rels/workbook.xml.rels" in parts else {}
        )
        package = Package()
        for title, state, identifier in book.sheets:
            if title.lower() in (sheet.lower() for sheet in package.sheets):
                raise self.refuse(f"sheet {title!r:.60} stands in the workbook twice")
            kind, target, _ = relations.get(identifier, ("", "", False))
            place = resolved(_WORKBOOK, target)
            if place not in parts:
                raise self.refuse(f"sheet {title!r:.60} is missing: there is no part {target or identifier}")
            package.sheets[title] = state
            package.sheet_parts[title] = place
            self._cells_of(package, title, parts[place])
            if kind.endswith("/worksheet"):
                package.contents[title] = parts[place].contents
        for name, part in parts.items():
            package.relations[_owner(name)] = package.relations.get(_owner(name), {}) | part.relations
            if part.root is not None:
                package.trees[name] = part.root
        titles = list(package.sheets)
        for name, scope, text in book.names:
            where = (
                titles[int(scope)]
                if scope is not None and scope.isdigit() and int(scope) < len(titles)
                else scope
            )
            package.names.append((name, where, text))
        return package

    def _cells_of(self, package: Package, title: str, part: _Part) -> None:
        """What the cells of a sheet look like and hold, with texts in place of the numbers of shared ones."""
        stored = self.stored.get(part.name, {})
        for cell, number in part.shared.items():
            if number >= len(self.texts):
                raise part.refuse(f"text {number} of {len(self.texts):,} shared ones; expected one of them")
            if cell in stored:
                stored[cell] = self.texts[number]
            if cell in part.contents and part.contents[cell] is None:
                part.contents[cell] = self.texts[number].replace("x005F_", "")  # what Excel puts before _x
            if number in self.text_runs:
                part.cell_runs[cell] = self.text_runs[number]
        package.stored[title], package.looks[title] = stored, part.looks
        package.runs[title] = part.cell_runs


class _Part:
    """One part read by expat: counted, judged, and what the others need of it kept."""

    def __init__(self, reader: _Reader, name: str) -> None:
        self.reader, self.name = reader, name
        self.relations: dict[str, tuple[str, str, bool]] = {}
        self.types: list[tuple[str, str]] = []
        self.sheets: list[tuple[str, str, str]] = []
        self.names: list[tuple[str, str | None, str]] = []
        self.depth = self.row = self.column = self.last_row = self.last_column = 0
        self.cell: tuple[int, int] | None = None
        self.kind, self.formula = "n", False
        self.seen: set[tuple[int, int]] = set()
        self.text: list[str] = []
        self.scope: str | None = None
        self.defined = ""
        self.root: Element | None = None
        self.open: list[Element] = []
        self.unbuilt = 0  # how deep inside of a cell or a shared text
        self.phonetic = False
        self.shared: dict[tuple[int, int], int] = {}
        self.contents: dict[tuple[int, int], Any] = {}
        self.formulas: dict[str, tuple[str, str]] = {}
        self.formula_of: dict[str, str] = {}
        self.said = self.written = self.inline = ""
        self.looks: dict[tuple[int, int], int] = {}
        self.runs: list[Element] = []
        self.cell_runs: dict[tuple[int, int], list[Element]] = {}
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.StartDoctypeDeclHandler = self._doctype

    def refuse(self, message: str) -> InputError:
        return self.reader.refuse(f"part {self.name}: {message}")

    def feed(self, chunk: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except (expat.ExpatError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise self.refuse(f"expected XML: {error}") from error
        if last:
            self.reader.area += self.last_row * self.last_column
            self._area(f"{self.last_row:,} rows and {self.last_column:,} columns")
            self.seen = set()

    def _area(self, what: str) -> None:
        if self.reader.area > MAX_AREA:
            raise self.refuse(
                f"{what} make an area of {self.reader.area:,} cells; expected at most {MAX_AREA:,} in all "
                "sheets together"
            )

    def _doctype(self, *_: Any) -> None:
        raise self.refuse("declares a document type or entities (<!DOCTYPE); expected plain XML")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        reader, self.depth = self.reader, self.depth + 1
        tag = name.rpartition(" ")[2]
        reader.elements += 1
        if tag == "c":
            self._cell(attributes)
        elif tag not in _OF_CELLS:
            reader.others += tag != "row"
            self._other(tag, attributes)
        elif tag == "f":
            self.formula, self.formula_of = True, attributes
            reader.formulas += 1
            if reader.formulas > MAX_FORMULAS:
                raise self.refuse(
                    f"more than {MAX_FORMULAS:,} formulas in the file; expected at most that many"
                )
        if reader.elements > MAX_ELEMENTS or reader.others > MAX_OTHERS or self.depth > MAX_DEPTH:
            raise self.refuse(
                f"XML of {reader.elements:,} elements, {reader.others:,} of them not of cells, "
                f"{self.depth:,} deep; expected at most {MAX_ELEMENTS:,}, {MAX_OTHERS:,} and {MAX_DEPTH:,}"
            )
        self._build(tag, attributes)
        self.text = []

    def _build(self, tag: str, attributes: dict[str, str]) -> None:
        """Keep an element, unless it is of a cell or of a text that several cells share."""
        if self.unbuilt or tag in ("c", "si"):
            self.unbuilt += 1
            if tag == "si":
                self.reader.texts.append("")
            self.phonetic = self.phonetic or tag == "rPh"
            if tag == "rPr":
                self.runs.append(Element(tag))
            elif self.runs and tag in RUN_PROPERTIES:
                self.runs[-1].append(Element(tag, attributes))
            return
        element = Element(tag, {key.rpartition(" ")[2]: value for key, value in attributes.items()})
        if self.open:
            self.open[-1].append(element)
        else:
            self.root = element
        self.open.append(element)

    def _other(self, tag: str, attributes: dict[str, str]) -> None:
        """What is not part of a cell."""
        for key, value in attributes.items():
            self.reader.others += value.count(" ") if key == "sqref" else 0
            if len(value) > MAX_ATTRIBUTE:
                raise self.refuse(
                    f"{tag} {key}: {len(value):,} characters; expected at most {MAX_ATTRIBUTE:,}"
                )
        match tag:
            case "row":
                self._count()
                self.row, self.column = self._whole(attributes.get("r"), self.row + 1), 0
            case "mergeCell" | "hyperlink":  # readers go through every cell of these
                self.reader.area += _area_of(attributes.get("ref", ""))
                self.reader.others += (
                    9 if tag == "mergeCell" else 0
                )  # and are ten times slower at it than at others
                self._area(f"the {tag} {attributes.get('ref', '')!r:.60}: cells")
            case "Relationship":
                self.relations[attributes.get("Id", "")] = (
                    attributes.get("Type", ""),
                    attributes.get("Target", ""),
                    attributes.get("TargetMode", "").lower() == "external",
                )
            case "Override":
                self.types.append((attributes.get("PartName", ""), attributes.get("ContentType", "")))
            case "Default":
                self.types.append(("", attributes.get("ContentType", "")))
            case "sheet":
                identifier = next((value for key, value in attributes.items() if key.endswith(" id")), "")
                self.sheets.append(
                    (attributes.get("name", ""), attributes.get("state", "visible"), identifier)
                )
            case "definedName":
                self.defined, self.scope = attributes.get("name", ""), attributes.get("localSheetId")

    def _whole(self, text: str | None, otherwise: int) -> int:
        if text is None:
            return otherwise
        if not text.isdigit() or not 0 < int(text[:8]) <= _LAST[0]:
            raise self.refuse(f"row {text!r:.60}; expected 1 to {_LAST[0]:,}")
        return int(text)

    def _count(self) -> None:
        self.reader.cells += 1
        if self.reader.cells > MAX_CELLS:
            raise self.refuse(
                f"more than {MAX_CELLS:,} rows and cells in the file; expected at most that many"
            )

    def _cell(self, attributes: dict[str, str]) -> None:
        self._count()
        address = attributes.get("r")
        if address is None:
            self.column += 1
        else:
            match = _ADDRESS.fullmatch(address)
            if match is None:
                raise self.refuse(f"cell {address!r:.60}; expected an address such as A1")
            self.row, self.column = int(match[2]), column_number(match[1])
        self.cell = (self.row - 1, self.column - 1)
        if self.row > _LAST[0] or self.column > _LAST[1] or self.cell in self.seen:
            raise self.refuse(
                f"{self._at('c')} stands {'twice' if self.cell in self.seen else 'outside of any sheet'}"
            )
        self.seen.add(self.cell)
        self.last_row, self.last_column = max(self.last_row, self.row), max(self.last_column, self.column)
        self.kind, self.formula = attributes.get("t", "n"), False
        self.said = self.written = self.inline = ""
        look = attributes.get("s", "0")
        if not look.isdigit() or len(look) > len(str(MAX_OTHERS)):
            raise self.refuse(f"{self._at('c')}: style {look!r:.60}; expected a number")
        self.looks[self.cell] = int(look)

    def _data(self, text: str) -> None:
        self.text.append(text)

    def _end(self, name: str) -> None:
        self.depth -= 1
        tag, text = name.rpartition(" ")[2], "".join(self.text)
        if self.unbuilt:
            self.unbuilt -= 1
            self._end_of_cell(tag, text)
        else:
            self.open.pop().text = text
        if not self.text:
            return
        self.text = []
        if len(text) > _TEXTS.get(tag, _MAX_TEXT):
            raise self.refuse(
                f"{self._at(tag)}: a text of {len(text):,} characters; expected at most "
                f"{_TEXTS.get(tag, _MAX_TEXT):,}"
            )
        if tag in _FORMULAS and reaches_out(text):
            raise self.refuse(
                f"{self._at(tag)}: {text!r:.80} refers to another file or program; expected a workbook "
                "without links"
            )
        if tag == "v" and self.cell is not None:
            value = self._value(text)
            if self.formula:
                self.reader.stored.setdefault(self.name, {})[self.cell] = value
        elif tag == "definedName":
            self.names.append((self.defined, self.scope, text))

    def _end_of_cell(self, tag: str, text: str) -> None:
        """Keep what a cell or a shared text says, and what words of it look like."""
        if tag == "t" and not self.phonetic:
            if self.cell is not None:
                self.inline += text
            elif self.reader.texts:
                self.reader.texts[-1] += text
        elif tag == "f":
            self.written = text
        elif tag == "rPh":
            self.phonetic = False
        elif tag == "v" and self.cell is not None:
            self.said = text
            if self.kind == "s" and text.strip().isdigit():
                self.shared[self.cell] = int(text)
        elif tag == "c":
            self._keep()
        if tag in ("c", "si") and self.runs:
            if tag == "si":
                self.reader.text_runs[len(self.reader.texts) - 1] = self.runs
            elif self.cell is not None:
                self.cell_runs[self.cell] = self.runs
            self.runs = []

    def _keep(self) -> None:
        """Keep the formula or constant of a cell that ends."""
        assert self.cell is not None
        if self.formula:
            self.contents[self.cell] = self._formula()
        elif self.kind == "inlineStr":
            self.contents[self.cell] = self.inline
        elif not self.said:
            return
        elif self.kind == "s":
            self.contents[self.cell] = None  # until all texts are read
        elif self.kind == "n":
            is_whole = self.said.strip().lstrip("-+").isdigit()
            self.contents[self.cell] = int(self.said) if is_whole else float(self.said)
        else:
            self.contents[self.cell] = self._value(self.said)

    def _formula(self) -> Formula:
        """The formula of a cell, as if it stood there by itself."""
        given, text = self.formula_of, f"={self.written}"
        match given.get("t"):
            case "array":
                return Formula(f"{{{text}}}")
            case "dataTable":
                return Formula(f"{{=TABLE({given.get('r1', '')},{given.get('r2', '')})}}")
            case "shared":
                here, number = f"{letters(self.column)}{self.row}", given.get("si", "")
                if number not in self.formulas:
                    self.formulas[number] = (text, here)
                    return Formula(text)
                from openpyxl.formula.translate import Translator

                first, origin = self.formulas[number]
                return Formula(Translator(first, origin).translate_formula(here))
        return Formula(text)

    def _at(self, tag: str) -> str:
        return (
            f"cell {letters(self.cell[1] + 1)}{self.cell[0] + 1}"
            if self.cell is not None and tag in _OF_CELLS
            else tag
        )

    def _value(self, text: str) -> Any:
        """A value by the type its cell states."""
        if self.kind not in ("n", "b"):
            return text
        try:
            number = math.nan if "_" in text else float(text)  # which Python takes for a number
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.refuse(f"{self._at('v')}: holds {text!r:.60}; expected a number")
        return bool(number) if self.kind == "b" else number


def resolved(part: str, target: str) -> str:
    """The name of the part that a target of another part leads to."""
    if target.startswith("/"):
        return posixpath.normpath(target.lstrip("/"))
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))


def _owner(name: str) -> str:
    """The part whose relations a part holds; itself where it holds none."""
    folder, _, file = name.rpartition("/")
    is_relations = folder.endswith("_rels") and file.endswith(".rels")
    return posixpath.join(folder.removesuffix("_rels"), file.removesuffix(".rels")) if is_relations else name


def reaches_out(formula: str) -> bool:
    """Whether a formula refers to another workbook or program."""
    return any(_OUTSIDE.search(part) for part in formula.split('"')[::2])


def column_number(text: str) -> int:
    """A column's number from 1 of its letters."""
    number = 0
    for letter in text:
        number = number * 26 + ord(letter) - 64
    return number


def letters(number: int) -> str:
    """A column's letters of its number from 1."""
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


def _area_of(reference: str) -> int:
    """How many cells a reference such as A1:C3 covers; one for a single cell."""
    first, _, last = reference.replace("$", "").partition(":")
    corners = _ADDRESS.fullmatch(first), _ADDRESS.fullmatch(last or first)
    if corners[0] is None or corners[1] is None:
        return MAX_AREA + 1 if ":" in reference else 1
    return (abs(int(corners[1][2]) - int(corners[0][2])) + 1) * (
        abs(column_number(corners[1][1]) - column_number(corners[0][1])) + 1
    )
