"""What a reader of a file sees beside texts and numbers, in a form in which programs that save it agree.

Rows and columns, rules, links, comments, charts and whatever lies over the cells. Rows and columns are
counted from 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from xml.etree.ElementTree import Element

from mantile.library.errors import InputError
from mantile.workbook.chart_form import ChartForm, chart_form
from mantile.workbook.looks import Look, Looks, RuleLook
from mantile.workbook.package import Package
from mantile.workbook.package_part import column_number
from mantile.workbook.references import plain

Cell = tuple[int, int]
Area = tuple[int, int, int, int]
"""First row, first column, last row, last column."""

_CORNER = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]+)")
_FOOTER_CODES = re.compile(
    r'&(?:[LCR](?:[0-9A-F]{6})?|"[^"]*"|K[0-9A-Fa-f]{6}|K[0-9A-Fa-f]{2}[+-][0-9]{3}|[0-9]+|[BIUESXY])'
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.$:])[0-9]+(?:\.[0-9]*)?(?:[Ee][+-]?[0-9]+)?(?![A-Za-z0-9_(:!.])")
_ON = ("1", "true", "on")
_PROPERTIES = ("title", "creator", "description")
_PRINTED = ("Print_Area", "Print_Titles")  # as gnumeric names them; in files of others behind _xlnm.
_TEXT_RULES = ("beginsWith", "endsWith", "containsText", "notContainsText")
_FARTHEST = 1e9  # of a place in a drawing
_NO_LENGTH = 9_525  # of 914,400 to an inch: a pixel
_MANY = 4_096  # rows of a range whose cells are named one by one
_FEW_COLUMNS = 16  # of a range that long
_NOTE = "Note"


@dataclass(frozen=True)
class Line:
    """A row or a column: its size as the file gives it, and whether it is in a group that can be folded."""

    size: float | None
    hidden: bool
    grouped: bool


@dataclass(frozen=True)
class Validation:
    """What may be typed into a cell, and what is said of it."""

    rule: tuple[str, ...]
    guarded: bool
    words: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """A rule of conditional formatting: what it asks, and what it changes."""

    asks: tuple[str, ...]
    look: RuleLook


@dataclass(frozen=True)
class Drawn:
    """Something that lies over cells: what it is, from which cell to which, and the text in it."""

    kind: str
    area: Area
    text: str = ""
    chart: ChartForm | None = None


@dataclass
class SheetAppearance:
    """One sheet. `looks` has the style of each cell that the file has."""

    looks: dict[Cell, Look] = field(default_factory=dict)
    runs: dict[Cell, list[Element]] = field(default_factory=dict)
    rows: dict[int, Line] = field(default_factory=dict)
    columns: dict[int, Line] = field(default_factory=dict)
    rows_hidden: bool = False
    merged: set[Area] = field(default_factory=set)
    validations: dict[Cell, Validation] = field(default_factory=dict)
    rules: dict[Rule, set[Area]] = field(default_factory=dict)
    links: dict[Cell, str] = field(default_factory=dict)
    comments: dict[Cell, str] = field(default_factory=dict)
    drawn: list[Drawn] = field(default_factory=list)
    filtered: Area | None = None
    protected: bool = False
    formulas_shown: bool = False
    zeros_hidden: bool = False
    picture: bool = False
    footer: str = ""


@contextmanager
def _readable(package: Package, what: str) -> Iterator[None]:
    """Refuse what no program writes: a number that is none, a style or a colour that there is not."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OverflowError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{package.clock.name}: {what}: how it looks cannot be read: {error!s:.100}; expected what a "
            "spreadsheet program saved"
        ) from error


class Appearance:
    """All sheets of a file, each read when it is asked for."""

    def __init__(self, package: Package) -> None:
        self.package = package
        with _readable(package, "xl/styles.xml"):
            self.looks = Looks(package)
        self._sheets: dict[str, SheetAppearance] = {}
        self._charts: dict[str, ChartForm] = {}

    def sheet(self, title: str) -> SheetAppearance:
        """A sheet by its name."""
        if title not in self._sheets:
            with self.package.clock as clock, _readable(self.package, f"sheet {title!r:.40}"):
                clock.check()
                self._sheets[title] = _SheetReader(self, title).read()
        return self._sheets[title]

    def chart(self, name: str) -> ChartForm:
        """A chart by the name of its part, read once however often it is shown."""
        if name not in self._charts:
            self._charts[name] = chart_form(self.package.trees.get(name, Element("none")))
        return self._charts[name]

    @cached_property
    def _workbook(self) -> Element:
        return self.package.trees["xl/workbook.xml"]

    @property
    def from_1904(self) -> bool:
        """Whether days are counted from 1904, so that each date shows as one four years later."""
        settings = self._workbook.find("workbookPr")
        return settings is not None and settings.get("date1904", "0") in _ON

    @property
    def structure_protected(self) -> bool:
        """Whether sheets cannot be added, moved or shown."""
        protection = self._workbook.find("workbookProtection")
        return protection is not None and protection.get("lockStructure", "0") in _ON

    @cached_property
    def printed(self) -> dict[tuple[str, str], str]:
        """Areas that are printed, and rows and columns on each page, by sheet and name, without the sheet."""
        return {
            (sheet, name.removeprefix("_xlnm.")): ",".join(
                part.rpartition("!")[2].replace("$", "") for part in text.split(",")
            )
            for name, sheet, text in self.package.names
            if sheet is not None and name.removeprefix("_xlnm.") in _PRINTED and "#REF!" not in text
        }

    @cached_property
    def properties(self) -> dict[str, str]:
        """Title, author (`creator`) and comment (`description`) of the file; empty where it has none."""
        part = next(
            (
                self.package.target("", identifier)
                for identifier, (kind, _, _) in self.package.relations.get("", {}).items()
                if kind.endswith("/core-properties")
            ),
            "",
        )
        tree = self.package.trees.get(part, Element("none"))
        return {name: _spaced(tree.findtext(name) or "") for name in _PROPERTIES}

    @property
    def unused(self) -> list[str]:
        """Parts that no other part refers to."""
        met, waiting = {"[Content_Types].xml"}, [""]
        while waiting:
            part = waiting.pop()
            if part not in met:
                met.add(part)
                links = self.package.relations.get(part, {})
                waiting += [self.package.target(part, identifier) for identifier in links]
        return sorted(self.package.relations.keys() - met)

    @cached_property
    def calculation(self) -> dict[str, str]:
        """How the file wants to be calculated, where that is not as usual."""
        settings = self._workbook.find("calcPr")
        given = {} if settings is None else dict(settings.attrib)
        usual = {"calcMode": ("auto",), "fullPrecision": _ON}
        return {
            name: given[name] for name, values in usual.items() if given.get(name, values[0]) not in values
        }

    @property
    def tabs_hidden(self) -> bool:
        """Whether the names of the sheets do not show."""
        views = self._workbook.iterfind("bookViews/workbookView")
        return any(view.get("showSheetTabs", "1") not in _ON for view in views)


_WIDE = 255  # columns that a sheet of ours may have: frames say how wide they are, without cells


class _SheetReader:
    """One sheet of a file."""

    def __init__(self, file: Appearance, title: str) -> None:
        self.file, self.package, self.title = file, file.package, title
        self.part = self.package.sheet_parts[title]
        self.tree = self.package.trees.get(self.part, Element("worksheet"))

    def read(self) -> SheetAppearance:
        package, tree = self.package, self.tree
        table, looks = self.file.looks, package.looks.get(self.title, {})
        used = max((column for _, column in looks), default=0)
        views, form = tree.findall("sheetViews/sheetView"), tree.find("sheetFormatPr")
        protection = tree.find("sheetProtection")
        return SheetAppearance(
            looks={cell: table.cell(number) for cell, number in looks.items()},
            runs=package.runs.get(self.title, {}),
            rows=dict(self._rows()),
            columns=dict(self._columns(used)),
            rows_hidden=form is not None and form.get("zeroHeight", "0") in _ON,
            merged={area_of(one.get("ref", "")) for one in tree.iterfind("mergeCells/mergeCell")},
            validations=dict(self._validations()),
            rules=self._rules(),
            links=dict(self._links()),
            comments=dict(self._comments()),
            drawn=sorted(self._drawn(), key=lambda drawn: drawn.area),
            filtered=self._filtered(),
            protected=protection is not None and protection.get("sheet", "0") in _ON,
            formulas_shown=any(view.get("showFormulas", "0") in _ON for view in views),
            zeros_hidden=any(view.get("showZeros", "1") not in _ON for view in views),
            picture=tree.find("picture") is not None,
            footer=self._footer(),
        )

    def _rows(self) -> Iterator[tuple[int, Line]]:
        row = 0
        for element in self.tree.iterfind("sheetData/row"):
            row = int(element.get("r", str(row + 1)))
            yield row - 1, _line(element, "ht")

    def _columns(self, used: int) -> Iterator[tuple[int, Line]]:
        for element in self.tree.iterfind("cols/col"):
            first, last = int(element.get("min", "1")), int(element.get("max", "1"))
            for column in range(first - 1, min(last, max(used, _WIDE) + 1)):
                yield column, _line(element, "width")

    def _validations(self) -> Iterator[tuple[Cell, Validation]]:
        for element in self.tree.iter("dataValidation"):
            kind = element.get("type", "none")
            bounds = [_formula(element.find(name)) for name in ("formula1", "formula2")]
            operator = "" if kind in ("list", "custom", "none") else element.get("operator", "between")
            if not operator.lower().endswith("between"):
                bounds = bounds[:1]  # LibreOffice states a second one of 0
            words = [element.get(name, "") for name in ("promptTitle", "prompt", "errorTitle", "error")]
            is_guarded = element.get("showErrorMessage", "0") in _ON
            validation = Validation(
                (kind, operator, *bounds),
                is_guarded and element.get("errorStyle", "stop") == "stop",
                tuple(_spaced(word) for word in words),
            )
            for cell in _cells(_places(element)):
                yield cell, validation

    def _rules(self) -> dict[Rule, set[Area]]:
        rules: dict[Rule, set[Area]] = {}
        table = self.file.looks
        for block in self.tree.iter("conditionalFormatting"):
            for element in block.iterfind("cfRule"):
                kind = element.get("type", "expression")
                inner, number = element.find("dxf"), element.get("dxfId")
                if kind == "dataBar" and number is None and element.find("dataBar/cfvo/f") is not None:
                    continue
                if element.get("id") is not None and kind == "dataBar":
                    continue  # of the newer kind, which tells more of a bar that is there anyhow
                if inner is not None:
                    look = table.rule(inner)
                else:
                    look = (
                        table.rules[int(number)] if number and int(number) < len(table.rules) else RuleLook()
                    )
                rules.setdefault(Rule(_asks(kind, element), look), set()).update(_places(block))
        return rules

    def _links(self) -> Iterator[tuple[Cell, str]]:
        for element in self.tree.iterfind("hyperlinks/hyperlink"):
            target = self.package.relations.get(self.part, {}).get(element.get("id", ""), ("", "", True))[1]
            location = element.get("location", "")
            if not target.startswith("#"):
                target = f"{target}#{location}" if location else target
            for cell in _cells([area_of(element.get("ref", ""))]):
                yield cell, target.replace("'", "").replace("$", "")

    def _comments(self) -> Iterator[tuple[Cell, str]]:
        for part in self._targets("comments"):
            for element in part.iterfind("commentList/comment"):
                text = element.find("text")
                said = "".join(piece.text or "" for piece in ([] if text is None else text.iter("t")))
                first = area_of(element.get("ref", ""))
                yield first[:2], _spaced(said)

    def _drawn(self) -> Iterator[Drawn]:
        for relation, (kind, target, outside) in self.package.relations.get(self.part, {}).items():
            name = self.package.target(self.part, relation)
            tree = self.package.trees.get(name)
            if outside or tree is None:
                continue
            if kind.endswith("/drawing"):
                for anchor in tree:
                    if anchor.tag.endswith("Anchor"):
                        yield from self._anchored(name, anchor)
            elif kind.endswith("/vmlDrawing"):
                yield from _vml(tree)
            elif kind.endswith(("/table", "/pivotTable", "/slicer", "/timeline")):
                yield Drawn(kind.rpartition("/")[2], area_of(tree.get("ref", "A1")), target)

    def _anchored(self, part: str, anchor: Element) -> Iterator[Drawn]:
        place = _anchor_area(anchor)
        text = "".join(piece.text or "" for piece in anchor.iter("t"))
        charts = [self._chart(part, chart) for chart in anchor.iter("chart") if chart.get("id")]
        for chart in charts:
            yield Drawn("chart", place, chart=chart)
        for tag, kind in (("pic", "picture"), ("sp", "shape"), ("cxnSp", "shape"), ("contentPart", "ink")):
            if next(anchor.iter(tag), None) is not None:
                yield Drawn("text box" if tag == "sp" and text else kind, place, text)
                return
        if not charts:
            yield Drawn("object", place, text)

    def _chart(self, part: str, chart: Element) -> ChartForm:
        return self.file.chart(self.package.target(part, chart.get("id", "")))

    def _targets(self, word: str) -> Iterator[Element]:
        for relation, (kind, _, _) in self.package.relations.get(self.part, {}).items():
            tree = self.package.trees.get(self.package.target(self.part, relation))
            if kind.endswith(f"/{word}") and tree is not None:
                yield tree

    def _filtered(self) -> Area | None:
        """The area of a filter that is in use, which hides rows."""
        element = self.tree.find("autoFilter")
        in_use = element is not None and element.find("filterColumn") is not None
        return area_of(element.get("ref", "")) if in_use and element is not None else None

    def _footer(self) -> str:
        texts = [element.text or "" for element in self.tree.iterfind("headerFooter/*")]
        return "".join(_FOOTER_CODES.sub("", text) for text in texts).replace(" ", "").strip()


def _line(element: Element, size: str) -> Line:
    given = element.get(size)
    grouped = int(element.get("outlineLevel", "0")) > 0 or element.get("collapsed", "0") in _ON
    return Line(None if given is None else float(given), element.get("hidden", "0") in _ON, grouped)


def _asks(kind: str, element: Element) -> tuple[str, ...]:
    """What a rule asks of a cell."""
    formulas = [_formula(formula) for formula in element if formula.tag in ("formula", "f")]
    if kind in _TEXT_RULES:
        quoted = re.findall('"([^"]*)"', formulas[0]) if formulas else []
        return kind, quoted[-1] if quoted else element.get("text", "")
    if kind in ("dataBar", "colorScale", "iconSet"):
        bounds = [f"{bound.get('type', '')} {bound.get('val', '')}" for bound in element.iter("cfvo")]
        return (kind, *bounds) if kind == "iconSet" else (kind,)
    operator = element.get("operator", "") if kind == "cellIs" else ""
    details = [element.get(name, "") for name in ("rank", "percent", "bottom")] if kind == "top10" else []
    return (kind, operator, *formulas, *details)


def _formula(element: Element | None) -> str:
    """A formula of a rule as programs agree on it."""
    if element is None:
        return ""
    inner = element.find("f")
    text = ((element.text if inner is None else inner.text) or "").strip()
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return _NUMBER.sub(lambda number: f"{float(number[0]):.12g}", plain(text))


def _places(element: Element) -> list[Area]:
    """Where a rule holds."""
    inner = element.find("sqref")
    text = element.get("sqref") or ("" if inner is None else inner.text or "")
    return [area_of(place) for place in text.split()]


@lru_cache(maxsize=_MANY)
def area_of(text: str) -> Area:
    """A range such as A1:C3 as numbers; A1 for what is none."""
    corners = [(int(row) - 1, column_number(letters) - 1) for letters, row in _CORNER.findall(text.upper())]
    first, last = (corners[0], corners[-1]) if corners else ((0, 0), (0, 0))
    return min(first[0], last[0]), min(first[1], last[1]), max(first[0], last[0]), max(first[1], last[1])


def _cells(areas: list[Area]) -> Iterator[Cell]:
    """The cells of ranges; of a very large one its corners.

    Programs unite columns: what counts is how long a range is, unless it is very wide as well.
    """
    for top, left, bottom, right in areas:
        height, width = bottom - top + 1, right - left + 1
        if height > _MANY or height * width > _FEW_COLUMNS * _MANY:
            yield from ((top, left), (bottom, right))
        else:
            yield from ((row, column) for row in range(top, bottom + 1) for column in range(left, right + 1))


def _anchor_area(anchor: Element) -> Area:
    start, end = anchor.find("from"), anchor.find("to")
    if start is None:
        return 0, 0, 0, 0
    first = _number(start, "row"), _number(start, "col")
    if end is None:
        return *first, *first
    # What ends where a row or a column begins does not lie over it.
    last = (_number(end, name) - (_number(end, f"{name}Off") < _NO_LENGTH) for name in ("row", "col"))
    return _area_between(first, tuple(last))


def _area_between(first: Cell, last: tuple[int, ...]) -> Area:
    return *first, max(first[0], last[0]), max(first[1], last[1])


def _number(element: Element, name: str) -> int:
    child = element.find(name)
    if child is None:
        return 0
    number = float(child.text or 0)
    if not abs(number) < _FARTHEST:  # NaN is not, either
        raise ValueError(f"{name} {child.text!r:.40}; expected a number of a row or a column")
    return int(number)


def _vml(tree: Element) -> Iterator[Drawn]:
    """Old shapes: boxes of comments that always show, and others than of comments."""
    for shape in tree.iter():
        data = shape.find("ClientData")
        if data is None:
            continue
        row, column = _number(data, "Row"), _number(data, "Column")
        kind = data.get("ObjectType", "")
        if kind != _NOTE or data.find("Visible") is not None:
            text = " ".join("".join(part.itertext()) for part in shape.iter("div"))
            yield Drawn("shown comment" if kind == _NOTE else "shape", (row, column, row, column), text)


@lru_cache(maxsize=_MANY)
def _spaced(text: str) -> str:
    return re.sub(r"(?:_x000[aAdD]_|\s)+", " ", text).strip()


def counted(rules: dict[Rule, set[Area]]) -> Counter[tuple[Rule, Cell]]:
    """Rules by the cells in which they hold."""
    return Counter((rule, cell) for rule, areas in rules.items() for cell in set(_cells(sorted(areas))))
