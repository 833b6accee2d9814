"""One part of a workbook file, read by expat: counted, judged, and what the others need of it kept.

Most elements of a file are those of cells, so these are looked at first and build nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from xml.parsers import expat

from mantile.library.clock import Clock
from mantile.library.errors import InputError

MAX_CELLS, MAX_AREA = (
    600_000,
    1_000_000,
)  # that stand in a file, with its rows; that lie between the first and the last of each sheet
MAX_FORMULAS = 100_000
MAX_SHARED = 2_000_000  # characters of formulas that cells share, written out for each of them
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
_SHORT = min(_TEXTS.values())  # no text of so many characters is too long
_OF_CELLS = {"c", "f", "v", "is", "si", "t", "r"}
_CHAIN = "calcChain"  # the part in which Excel keeps the order of its cells, whose addresses it repeats
_RUN_PROPERTIES = {"color", "strike", "sz", "rFont", "vertAlign", "vanish"}
"""What may set a word of a text apart from the font of its cell."""
_ESCAPE = re.compile("_x005F_(?=x[0-9A-Fa-f]{4}_)")
"""What stands for the first character of a text such as _x0041_, which programs read as the letter A."""
_FORMULAS = {"f", "formula", "formula1", "formula2", "definedName"}
_ADDRESS = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
_ADDRESSES = 65_536  # of which it is remembered where they stand: sheets have many in common
# [1]Sheet!A1, 'folder/[other.xlsx]Sheet'!A1 and program|topic!item, outside of texts.
_OUTSIDE = re.compile(r"\[[^\[\]]*\][^\[\]!(),;\"]*!|\|")

Place = tuple[int, int]


class Formula(str):
    """The text of a formula that stands in a cell: `=1+1` as text is not one."""


class _Tags(dict[str, str]):
    """Names of elements without their namespaces, each worked out once."""

    def __missing__(self, name: str) -> str:
        tag = self[name] = name.rpartition(" ")[2]
        return tag


class _Numbers(dict[str, int]):
    """Numbers of styles, each read once; -1 for what is none."""

    def __missing__(self, text: str) -> int:
        is_number = text.isdigit() and len(text) <= len(str(MAX_OTHERS))
        number = self[text] = int(text) if is_number else -1
        return number


@dataclass
class Counts:
    """What is counted over all parts of a file, and the texts that its cells share.

    Args:
        texts: shared ones, and by their numbers what single words of them look like (`text_runs`).
    """

    path: Path
    elements: int = 0
    others: int = 0
    cells: int = 0
    formulas: int = 0
    area: int = 0
    shared: int = 0
    texts: list[str] = field(default_factory=list)
    text_runs: dict[int, list[Element]] = field(default_factory=dict)
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(str(self.path))

    def refuse(self, message: str) -> InputError:
        """What is raised for a file that is refused."""
        return InputError(f"{self.path}: {message}")


class Part:
    """One part while it is read, in chunks.

    Cells are found under their row and column from 0: `contents` has formulas and constants, `stored` the
    values beside formulas, `looks` the numbers of styles, `cell_runs` what single words look like. Texts that
    cells share are read before.
    """

    def __init__(self, counts: Counts, name: str) -> None:
        self.counts, self.name = counts, name
        self.relations: dict[str, tuple[str, str, bool]] = {}
        self.types: list[tuple[str, str]] = []
        self.sheets: list[tuple[str, str, str]] = []
        self.names: list[tuple[str, str | None, str]] = []
        self.root: Element | None = None
        self.contents: dict[Place, Any] = {}
        self.stored: dict[Place, Any] = {}
        self.looks: dict[Place, int] = {}
        self.cell_runs: dict[Place, list[Element]] = {}
        self._tags, self._styles = _Tags(), _Numbers()
        self._elements = 0  # since the last chunk
        self._row = self._column = self._last_row = self._last_column = 0
        self._text: list[str] = []
        self._scope: str | None = None
        self._defined = ""
        self._open: list[Element] = []
        self._has_cells = True
        self._inside = 0  # how deep inside of a cell or a shared text
        self._cell: Place | None = None
        self._kind, self._formula_of = "n", {"": ""}
        self._said = self._inline = ""
        self._written: str | None = None
        self._phonetic = False
        self._runs: list[Element] = []
        self._sharing: dict[str, tuple[str, str]] = {}
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.StartDoctypeDeclHandler = self._doctype

    def refuse(self, message: str) -> InputError:
        """What is raised for a part that is refused."""
        return self.counts.refuse(f"part {self.name}: {message}")

    def feed(self, chunk: bytes, last: bool = False) -> None:
        """Read on.

        Raises:
            InputError: for what is no XML, or more of it or other than a workbook has a use for.
        """
        try:
            self._parser.Parse(chunk, last)
        except (expat.ExpatError, ValueError, LookupError) as error:  # an encoding that nobody knows
            if isinstance(error, InputError):
                raise
            raise self.refuse(f"expected XML: {error}") from error
        self._limit()
        self.counts.clock.check()
        if last:
            self.counts.area += self._last_row * self._last_column
            self._area(f"{self._last_row:,} rows and {self._last_column:,} columns")

    def _area(self, what: str) -> None:
        if self.counts.area > MAX_AREA:
            raise self.refuse(
                f"{what} make an area of {self.counts.area:,} cells; expected at most {MAX_AREA:,} in all "
                "sheets together"
            )

    def _doctype(self, *_: Any) -> None:
        raise self.refuse("declares a document type or entities (<!DOCTYPE); expected plain XML")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = self._tags[name]
        self._elements += 1
        if self._text:
            self._text.clear()
        if tag == "c" and self._has_cells:
            self._begin_cell(attributes)
            self._inside += 1
        elif self._inside:
            self._inside += 1
            if tag == "f":
                self._begin_formula(attributes)
            elif tag != "v":
                self._begin_text(tag, attributes)
        elif tag == "si":
            self._inside = 1
            self.counts.texts.append("")
        else:
            self._build(tag, attributes)

    def _limit(self) -> None:
        """Refuse too many elements; cells have a limit of their own."""
        counts, depth = self.counts, len(self._open) + self._inside
        counts.elements += self._elements
        self._elements = 0
        if counts.elements > MAX_ELEMENTS or counts.others > MAX_OTHERS or depth > MAX_DEPTH:
            raise self.refuse(
                f"XML of {counts.elements:,} elements, {counts.others:,} of them not of cells, "
                f"{depth:,} deep; expected at most {MAX_ELEMENTS:,}, {MAX_OTHERS:,} and {MAX_DEPTH:,}"
            )

    def _begin_formula(self, attributes: dict[str, str]) -> None:
        self._written, self._formula_of = "", attributes
        self.counts.formulas += 1
        if self.counts.formulas > MAX_FORMULAS:
            raise self.refuse(f"more than {MAX_FORMULAS:,} formulas in the file; expected at most that many")

    def _begin_text(self, tag: str, attributes: dict[str, str]) -> None:
        """An element of a text that stands in a cell, or that several cells share."""
        if tag not in _OF_CELLS:
            self.counts.others += 1
            self._other(tag, attributes)
        self._limit()
        self._phonetic = self._phonetic or tag == "rPh"
        if tag == "rPr":
            self._runs.append(Element(tag))
        elif self._runs and tag in _RUN_PROPERTIES:
            self._runs[-1].append(Element(tag, attributes))

    def _build(self, tag: str, attributes: dict[str, str]) -> None:
        """Keep an element that is not of a cell."""
        if tag not in _OF_CELLS:
            self.counts.others += tag != "row"
            self._other(tag, attributes)
        tags = self._tags
        element = Element(tag, {tags[key]: value for key, value in attributes.items()})
        if self._open:
            self._open[-1].append(element)
        else:
            self.root, self._has_cells = element, tag != _CHAIN
        self._open.append(element)
        self._limit()

    def _other(self, tag: str, attributes: dict[str, str]) -> None:
        """What is not part of a cell."""
        for key, value in attributes.items():
            self.counts.others += value.count(" ") if key == "sqref" else 0
            if len(value) > MAX_ATTRIBUTE:
                raise self.refuse(
                    f"{tag} {key}: {len(value):,} characters; expected at most {MAX_ATTRIBUTE:,}"
                )
        match tag:
            case "row":
                self.counts.cells += 1
                if self.counts.cells > MAX_CELLS:
                    raise self._too_many()
                self._row, self._column = self._whole(attributes.get("r"), self._row + 1), 0
            case "mergeCell" | "hyperlink":  # readers go through every cell of these
                self.counts.area += _area_of(attributes.get("ref", ""))
                self.counts.others += (
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
                self._defined, self._scope = attributes.get("name", ""), attributes.get("localSheetId")

    def _whole(self, text: str | None, otherwise: int) -> int:
        if text is None:
            return otherwise
        if not text.isdigit() or not 0 < int(text[:8]) <= _LAST_ROW:
            raise self.refuse(f"row {text!r:.60}; expected 1 to {_LAST_ROW:,}")
        return int(text)

    def _too_many(self) -> InputError:
        return self.refuse(f"more than {MAX_CELLS:,} rows and cells in the file; expected at most that many")

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        counts = self.counts
        counts.cells += 1
        if counts.cells > MAX_CELLS:
            raise self._too_many()
        address = attributes.get("r")
        cell = (self._row - 1, self._column) if address is None else _place(address)
        if cell is None:
            raise self.refuse(f"cell {address!r:.60}; expected an address such as A1")
        self._cell = cell
        row, column = cell
        row += 1
        column += 1
        self._row, self._column = row, column
        if row > self._last_row:
            self._last_row = row
        if column > self._last_column:
            self._last_column = column
        if row > _LAST_ROW or column > _LAST_COLUMN or cell in self.looks:
            raise self.refuse(
                f"{self._at('c')} stands {'twice' if cell in self.looks else 'outside of any sheet'}"
            )
        self._kind = attributes.get("t", "n")
        self._said = self._inline = ""
        self._written = None
        look = self.looks[cell] = self._styles[attributes.get("s", "0")]
        if look < 0:
            raise self.refuse(f"{self._at('c')}: style {attributes['s']!r:.60}; expected a number")

    def _end(self, name: str) -> None:
        tag, text = self._tags[name], ""
        if self._text:
            text = self._text[0] if len(self._text) == 1 else "".join(self._text)
            self._text.clear()
            if len(text) > _SHORT or tag in _FORMULAS:
                self._judge(tag, text)
        if not self._inside:
            self._open.pop().text = text
            if tag == "definedName":
                self.names.append((self._defined, self._scope, text))
            return
        self._inside -= 1
        if tag == "v":
            self._said = text
        elif tag == "c":
            self._end_cell()
        elif tag == "f":
            self._written = text
        elif tag == "t" and not self._phonetic:
            if self._cell is not None:
                self._inline += text
            elif self.counts.texts:
                self.counts.texts[-1] += text
        elif tag == "rPh":
            self._phonetic = False
        elif tag == "si" and self._runs:
            self.counts.text_runs[len(self.counts.texts) - 1] = self._runs
            self._runs = []

    def _judge(self, tag: str, text: str) -> None:
        """Refuse a text that is too long, and a formula that leads out of the file."""
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

    def _end_cell(self) -> None:
        """Keep the formula or constant of a cell, and the value beside a formula."""
        cell, kind, said = self._cell, self._kind, self._said
        assert cell is not None
        if self._runs:
            self.cell_runs[cell], self._runs = self._runs, []
        if self._written is not None:
            self.contents[cell] = self._formula(self._written)
            if said:
                self.stored[cell] = self._value(said)
        elif kind == "s" and said:
            text = self._shared_text(said)
            self.contents[cell] = _ESCAPE.sub("_", text) if "_x" in text else text
        elif kind == "inlineStr":
            self.contents[cell] = self._inline
        elif said:
            number = self._value(said)
            is_whole = kind == "n" and said.strip().lstrip("-+").isdigit()
            self.contents[cell] = int(said) if is_whole else number

    def _shared_text(self, said: str) -> str:
        """The text of a number, and what its words look like."""
        assert self._cell is not None
        texts, runs = self.counts.texts, self.counts.text_runs
        number = int(said) if said.isdecimal() or said.strip().isdecimal() else -1
        if not 0 <= number < len(texts):
            raise self.refuse(
                f"{self._at('v')}: text {said!r:.60} of {len(texts):,} shared ones; expected one of them"
            )
        if number in runs:
            self.cell_runs[self._cell] = runs[number]
        return texts[number]

    def _formula(self, written: str) -> Formula:
        """The formula of a cell, as if it stood there by itself."""
        text, given = f"={written}", self._formula_of
        match given.get("t"):
            case "array":
                return Formula(f"{{{text}}}")
            case "dataTable":
                return Formula(f"{{=TABLE({given.get('r1', '')},{given.get('r2', '')})}}")
            case "shared":
                here, number = f"{letters(self._column)}{self._row}", given.get("si", "")
                if number not in self._sharing:
                    self._sharing[number] = (text, here)
                    return Formula(text)
                first, origin = self._sharing[number]
                self.counts.shared += len(first)
                if self.counts.shared > MAX_SHARED:
                    raise self.refuse(
                        f"formulas that cells share make more than {MAX_SHARED:,} characters; expected at "
                        "most that many"
                    )
                self.counts.clock.check()
                return Formula(_translator(first, origin).translate_formula(here))
        return Formula(text)

    def _at(self, tag: str) -> str:
        return (
            f"cell {letters(self._cell[1] + 1)}{self._cell[0] + 1}"
            if self._cell is not None and tag in _OF_CELLS
            else tag
        )

    def _value(self, text: str) -> Any:
        """A value by the type its cell states."""
        if self._kind == "s":
            return self._shared_text(text)
        if self._kind not in ("n", "b"):
            return text
        try:
            number = math.nan if "_" in text else float(text)  # which Python takes for a number
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.refuse(f"{self._at('v')}: holds {text!r:.60}; expected a number")
        return bool(number) if self._kind == "b" else number


def reaches_out(formula: str) -> bool:
    """Whether a formula refers to another workbook or program."""
    if "[" not in formula and "|" not in formula:
        return False
    return any(_OUTSIDE.search(part) for part in formula.split('"')[::2])


@lru_cache(64)
def _translator(formula: str, cell: str) -> Any:
    """What writes a formula that cells share for each of them: it is cut into its parts once."""
    from openpyxl.formula.translate import Translator

    return Translator(formula, cell)


@lru_cache(maxsize=_ADDRESSES)
def _place(address: str) -> Place | None:
    """Row and column from 0 of an address such as A1; None for what is none."""
    match = _ADDRESS.fullmatch(address)
    return None if match is None else (int(match[2]) - 1, column_number(match[1]) - 1)


@cache
def column_number(text: str) -> int:
    """A column's number from 1 of its letters."""
    number = 0
    for letter in text:
        number = number * 26 + ord(letter) - 64
    return number


@cache
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
