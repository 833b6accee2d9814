"""What a file shows otherwise than its bundle would, beside texts, numbers and formulas.

The bundle's own file is made anew without contents, and both are read by one reader. So what two programs
only write otherwise is no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from mantile.verification.severity import ANSWER, COSMETIC, SHOWN, Severity
from mantile.verification.shown_cells import (
    Finding,
    area_name,
    grouped,
    look_differences,
    ranges,
    run_differences,
)
from mantile.verification.shown_charts import chart_differences, matched
from mantile.workbook.appearance import (
    Appearance,
    Area,
    Cell,
    Drawn,
    Line,
    Rule,
    SheetAppearance,
    Validation,
    area_of,
    counted,
)
from mantile.workbook.book import Cell as BookCell
from mantile.workbook.book import Sheet
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.cell_diff import CellDiff
from mantile.workbook.looks import Look
from mantile.workbook.package import own_package
from mantile.workbook.package_part import column_number, letters
from mantile.workbook.read import File
from mantile.workbook.references import Formula, plain, references
from mantile.workbook.style import Style
from mantile.workbook.write import frame, rows_of

_COLUMN_KINDS = {1: "label", 2: "unit", 3: "explanation", 4: "source", 5: "id"}
_PROPERTIES = {
    "title": "title of the file",
    "creator": "author of the file",
    "description": "comment of the file",
}
_CLAIM = re.compile("mantile|bundle", re.IGNORECASE)
"""What a comment says of itself: which program made the file, from what."""
_POINTS = 0.75  # of a pixel
_NO_SIZE = 1.0  # points of a row, or signs of a column: less is hidden
_SQUEEZED = 0.25  # of the size as generated: what is smaller shows nothing


def shown_differences(file: File, diff: CellDiff) -> list[dict[str, Any]]:
    """All that a file shows otherwise, each with `sheet`, `cell`, `kind`, `severity`, `expected` and `found`.

    Args:
        diff: what its cells say otherwise, of which changed labels and added texts are listed too.
    """
    return list(_Comparison(file, diff).run())


class _Comparison:
    """One file beside a new one of its bundle."""

    def __init__(self, file: File, diff: CellDiff) -> None:
        self.file, self.book, self.diff, self.places = file, file.book, diff, file.places
        self.found = Appearance(file.cells.package)
        self.names = [name for name in file.book.sheets if name in file.contents]
        self._rows: dict[str, dict[int, Line]] = {}

    def run(self) -> Iterator[dict[str, Any]]:
        yield from self._texts()
        yield from self._workbook()
        yield from self._order()
        for name in self.names:
            sheet, expected, found = self.book.sheets[name], self.expected.sheet(name), self.found.sheet(name)
            for part in (
                self._looks,
                self._merged,
                self._inputs,
                self._rules,
                self._about,
                self._hidden,
            ):
                for area, finding in part(sheet, expected, found):
                    yield _item(name, area, finding)
            for drawn, finding in self._drawn(sheet, expected, found):
                yield _item(name, drawn.area[:2] * 2, finding)

    @cached_property
    def _frame(self) -> tuple[Appearance, dict[Style, Look]]:
        stream, styles = frame(self.book)
        appearance = Appearance(own_package(stream))
        looks = appearance.sheet(BUNDLE_SHEET).looks
        return appearance, {style: looks[row, 0] for style, row in styles.items()}

    @property
    def expected(self) -> Appearance:
        """What the bundle would show."""
        return self._frame[0]

    def _texts(self) -> Iterator[dict[str, Any]]:
        """Labels that were changed, and texts where the bundle has nothing."""
        for item in self.diff.labels:
            sheet, cell = item["cell"].split("!")
            column = column_number(cell.rstrip("0123456789")) - 1
            kind = _COLUMN_KINDS.get(column, "text") if item["id"] else "text"
            yield _named(sheet, cell, (kind, SHOWN, item["generated"], item["found"]))
        for item in self.diff.notes:
            if item["generated"] is None and not self._is_room(item["cell"]):
                sheet, cell = item["cell"].split("!")
                severity = SHOWN if self._is_inside(sheet, cell) else COSMETIC
                yield _named(sheet, cell, ("text added", severity, "", item["found"]))

    def _is_room(self, place: str) -> bool:
        """Whether a cell is there for a text to be typed, such as a line on which somebody signs."""
        name, cell = place.split("!")
        here = self.book.sheets[name].cells.get(_row_and_column(cell))
        return here is not None and here.style.unlocked

    def _is_inside(self, name: str, cell: str) -> bool:
        """Whether a cell lies among those of the book, where its text is taken for part of it."""
        cells = self.book.sheets[name].cells
        row, column = _row_and_column(cell)
        return row <= max(at for at, _ in cells) and column <= max(at for _, at in cells)

    def _workbook(self) -> Iterator[dict[str, Any]]:
        for name, value in self.found.calculation.items():
            yield _named("", "", ("calculation", ANSWER, "", f"{name} {value}"))
        if self.found.tabs_hidden:
            yield _named("", "", ("hidden sheet names", SHOWN, "", "the names of the sheets do not show"))
        if self.found.from_1904:
            words = "counted from 1904: each date shows four years later"
            yield _named("", "", ("date system", SHOWN, "counted from 1900", words))
        if self.found.structure_protected:
            yield _named("", "", ("protection of the workbook", COSMETIC, "", "sheets cannot move"))
        for part in self.found.unused:
            yield _named("", "", ("unused part", COSMETIC, "", part))
        for key, before in self.expected.properties.items():
            after = self.found.properties[key]
            if after != before:
                # Title and comment say what the file is: another one may be false. Programs drop them.
                is_claim = key == "title" or _CLAIM.search(after.replace(before, "")) is not None
                severity = SHOWN if after and is_claim and key != "creator" else COSMETIC
                yield _named("", "", (_PROPERTIES[key], severity, before, after))

    def _order(self) -> Iterator[dict[str, Any]]:
        order = [name for name in self.file.cells.package.sheets if name in self.book.sheets]
        if order != self.names:
            place = next(at for at, (a, b) in enumerate(zip(order, self.names, strict=True)) if a != b)
            yield _named(
                order[place], "", ("order of sheets", COSMETIC, ", ".join(self.names), ", ".join(order))
            )

    def _looks(
        self, sheet: Sheet, _: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area, Finding]]:
        """Cells with something in them."""
        styles, kinds = self._frame[1], self._judged
        looks = {id(cell.style): styles[cell.style] for cell in _one_of_each_style(sheet)}
        contents, stands = self.file.contents[sheet.name], self.places.as_laid_out
        cells: dict[Finding, list[Cell]] = {}
        for here, cell in sheet.cells.items():
            at = here if stands else self._cell(sheet.name, here)
            if at is None or (at not in contents and cell.entry is None):
                continue
            look = found.looks.get(at)
            if look is None:
                continue
            expected = looks[id(cell.style)]
            key = (id(expected), id(look))
            findings = kinds.get(key)
            if findings is None:
                findings = kinds[key] = look_differences(expected, look)
            for finding in findings:
                if expected.form != Look.form or not self._is_inherited(sheet.name, at, look, finding):
                    cells.setdefault(finding, []).append(at)
        for at, runs in found.runs.items():
            own = found.looks.get(at, Look())
            for finding in run_differences(own, runs, self.found.looks.colour):
                cells.setdefault(finding, []).append(at)
        for finding, places in cells.items():
            for area in grouped(places):
                yield area, finding

    def _is_inherited(self, name: str, at: Cell, look: Look, finding: Finding) -> bool:
        """Whether a formula without a number format has that of the one cell it reads, as of LibreOffice."""
        content = self.file.contents[name].get(at)
        if finding[0] != "number format" or not isinstance(content, Formula):
            return False
        read = {(one.sheet, (one.row, one.column)) for one in references([content], name)}
        return len(read) == 1 and all(
            sheet in self.names and self.found.sheet(sheet).looks.get(cell, Look()).form == look.form
            for sheet, cell in read
        )

    @cached_property
    def _judged(self) -> dict[tuple[int, int], tuple[Finding, ...]]:
        """Differences of pairs of looks: there are few pairs and many cells."""
        return {}

    def _hidden(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area, Finding]]:
        contents = self.file.contents[sheet.name]
        charts = [drawn.area for drawn in found.drawn if drawn.kind == "chart"]
        rows = {row for row, _ in contents} | {row for area in charts for row in range(area[0], area[2] + 1)}
        columns = {column for _, column in contents}
        columns |= {column for area in charts for column in range(area[1], area[3] + 1)}
        for axis, numbers, lines in ((0, rows, found.rows), (1, columns, found.columns)):
            severities: dict[Severity, list[int]] = {}
            for number in numbers:
                line = lines.get(number) or Line(None, found.rows_hidden and axis == 0, False)
                before = self._line_of_book(sheet.name, expected, axis, number)
                if _is_hidden(line, before) and not (before is not None and before.hidden):
                    folded = before is not None and before.grouped
                    filtered = axis == 0 and self._is_filtered(sheet, found, number)
                    severities.setdefault(COSMETIC if folded or filtered else SHOWN, []).append(number)
            for severity, hidden in severities.items():
                for first, last in ranges(hidden):
                    kind = "hidden column" if axis else "hidden row"
                    area = (0, first, -1, last) if axis else (first, 0, last, -1)
                    yield area, (kind, severity, "", "not to be seen")

    def _line_of_book(self, name: str, expected: SheetAppearance, axis: int, number: int) -> Line | None:
        if axis:
            return expected.columns.get(number)
        here = self.places.in_book(name, number, 0)
        return None if here is None else self._rows_of_book(here[0]).get(here[1])

    def _rows_of_book(self, name: str) -> dict[int, Line]:
        if name not in self._rows:
            self._rows[name] = {
                row.number: Line(row.height * _POINTS, row.folded, row.folded or row.sign)
                for row in rows_of(self.book.sheets[name])
            }
        return self._rows[name]

    def _is_filtered(self, sheet: Sheet, found: SheetAppearance, row: int) -> bool:
        """Whether a filter hides a row, where the book has a filter."""
        own = sheet.autofilter is not None
        return own and found.filtered is not None and found.filtered[0] < row <= found.filtered[2]

    def _merged(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area, Finding]]:
        before = {self._area(sheet.name, area) for area in expected.merged}
        for area in sorted(found.merged - before):
            yield area, ("merged cells", SHOWN, "", "one cell in place of several")

    def _inputs(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area, Finding]]:
        """What may be typed, links and comments: one of each to a cell."""
        name = sheet.name
        parts = ("validations", "links", "comments")
        if self.places.as_laid_out and all(getattr(expected, of) == getattr(found, of) for of in parts):
            return
        for kind, ours, theirs in (
            (
                "validation",
                self._validations(name, expected.validations, True),
                self._validations(name, found.validations, False),
            ),
            (
                "link",
                {cell: self._link(name, one, True) for cell, one in expected.links.items()},
                {cell: self._link(name, one, False) for cell, one in found.links.items()},
            ),
            ("comment", expected.comments, found.comments),
        ):
            before = {self._cell(name, cell): one for cell, one in ours.items()}
            cells: dict[tuple[str, str], list[Cell]] = {}
            for cell in before.keys() | theirs.keys():
                if cell is not None and before.get(cell, "") != theirs.get(cell, ""):
                    cells.setdefault((before.get(cell, ""), theirs.get(cell, "")), []).append(cell)
            for pair, places in sorted(cells.items(), key=lambda item: min(item[1])):
                what = _out_of_file(pair[1]) if kind == "link" else kind
                severity = COSMETIC if kind == "link" and not pair[1] else SHOWN
                for area in grouped(places):
                    yield area, (what, severity, *pair)

    def _validations(self, name: str, of: Mapping[Cell, Validation], own: bool) -> dict[Cell, str]:
        """Each in words, once where many cells share it."""
        distinct = {id(one): one for one in of.values()}
        words = {key: self._validation(name, one, own) for key, one in distinct.items()}
        return {cell: words[id(one)] for cell, one in of.items()}

    def _validation(self, name: str, validation: Validation, own: bool) -> str:
        bounds = [self._spelled(name, bound, own) for bound in validation.rule[2:]]
        guard = "" if validation.guarded else "not enforced"
        return " · ".join(word for word in (*validation.rule[:2], *bounds, guard, *validation.words) if word)

    def _link(self, name: str, target: str, own: bool) -> str:
        return self._spelled(name, target, own) if target.startswith("#") else target

    def _rules(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area, Finding]]:
        """Conditional formatting."""
        if self.places.as_laid_out and expected.rules == found.rules:
            return
        before = {
            (self._rule(sheet.name, rule, True), self._cell(sheet.name, cell)): rule
            for rule, cell in counted(expected.rules)
        }
        after = {(self._rule(sheet.name, rule, False), cell): rule for rule, cell in counted(found.rules)}
        kept = {cell for _, cell in before.keys() & after.keys()}
        for ours, theirs, is_new in ((before, after, False), (after, before, True)):
            cells: dict[tuple[str, Severity], list[Cell]] = {}
            for key, rule in ours.items():
                if key not in theirs and key[1] is not None:
                    # Gnumeric keeps one of several rules of a cell, and no bars.
                    has_text = rule.look.colour is not None or rule.look.form is not None
                    severity = SHOWN if is_new or (has_text and key[1] not in kept) else COSMETIC
                    cells.setdefault((key[0], severity), []).append(key[1])
            for (spelled, severity), places in cells.items():
                for area in grouped(places):
                    yield (
                        area,
                        ("conditional format", severity, *(("", spelled) if is_new else (spelled, ""))),
                    )

    def _rule(self, name: str, rule: Rule, own: bool) -> str:
        look = rule.look
        changes = [f"text {look.colour}" if look.colour else "", f"fill {look.fill}" if look.fill else ""]
        changes += ["other numbers" if look.form else "", "struck" if look.struck else ""]
        asks = [self._spelled(name, part, own) for part in rule.asks]
        return ", ".join(part for part in (" ".join(filter(None, asks)), *changes) if part)

    def _about(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Area | None, Finding]]:
        """What holds for a whole sheet."""
        yield from ((None, finding) for finding in _view(found))
        if expected.protected and not found.protected:
            yield None, ("protection", COSMETIC, "protected", "not protected")
        if found.footer and found.footer.lower() != expected.footer.lower():
            yield None, ("footer", SHOWN, expected.footer, found.footer)
        yield from self._printed(sheet.name)

    def _printed(self, name: str) -> Iterator[tuple[Area | None, Finding]]:
        """What is printed of a sheet, and on each page of it."""
        ours, theirs = self.expected.printed, self.found.printed
        before, after = ours.get((name, "Print_Area"), ""), theirs.get((name, "Print_Area"), "")
        if before and after and before != after:
            inside, printed = area_of(before), [area_of(part) for part in after.split(",")]
            lost = [
                cell
                for cell in self.file.contents[name]
                if (here := self.places.in_book(name, *cell)) is not None
                and _lies_in(here[1:], inside)
                and not any(_lies_in(cell, one) for one in printed)
            ]
            if lost or self.places.as_laid_out:
                yield printed[0], ("print area", SHOWN if lost else COSMETIC, before, after)
        elif before != after:
            yield None, ("print area", SHOWN if after else COSMETIC, before, after)
        before, after = ours.get((name, "Print_Titles"), ""), theirs.get((name, "Print_Titles"), "")
        if before != after and self.places.as_laid_out:
            yield None, ("print titles", COSMETIC, before, after)

    def _drawn(
        self, sheet: Sheet, expected: SheetAppearance, found: SheetAppearance
    ) -> Iterator[tuple[Drawn, Finding]]:
        """Charts, and what lies over cells that the book does not have."""
        for drawn in found.drawn:
            if drawn.chart is None:
                yield drawn, (drawn.kind, SHOWN, "", drawn.text or f"over {area_name(drawn.area)}")
        ours, theirs = (
            [drawn for drawn in one.drawn if drawn.chart is not None] for one in (expected, found)
        )
        for one, other in matched(ours, theirs, self._leads_there):
            if one is None and other is not None:
                yield other, ("chart added", SHOWN, "", f"over {area_name(other.area)}")
            elif other is None and one is not None:
                yield one, ("chart removed", SHOWN, f"over {area_name(one.area)}", "")
            elif one is not None and other is not None:
                assert one.chart is not None
                assert other.chart is not None
                for finding in chart_differences(one.chart, other.chart, self._leads_there):
                    yield other, finding
                yield from self._moved(sheet.name, one, other)

    def _moved(self, name: str, expected: Drawn, found: Drawn) -> Iterator[tuple[Drawn, Finding]]:
        """A chart that lies elsewhere: it may cover what stands in cells, or be too small to be seen."""
        area, after = self._area(name, expected.area), found.area
        if area == after:
            return
        covered = [
            cell for cell in self.file.contents[name] if _lies_in(cell, after) and not _lies_in(cell, area)
        ]
        small = (
            after[2] - after[0] < (area[2] - area[0]) * _SQUEEZED
            or after[3] - after[1] < (area[3] - area[1]) * _SQUEEZED
        )
        severity = SHOWN if covered or small else COSMETIC
        yield found, ("chart moved", severity, f"over {area_name(area)}", f"over {area_name(after)}")

    def _cell(self, name: str, cell: Cell) -> Cell | None:
        """Where a cell of the book stands in the file."""
        place = self.places.in_file(name, *cell)
        return None if place is None else place[1:]

    def _area(self, name: str, area: Area) -> Area:
        """Where a range of the book stands in the file."""
        first, last = self._cell(name, area[:2]), self._cell(name, area[2:])
        return area if first is None or last is None else (*first, *last)

    def _spelled(self, name: str, text: str, own: bool) -> str:
        """A formula of a rule in one spelling, with ids in place of rows where rows have moved."""
        if self.places.as_laid_out:
            return plain(text)
        return plain((self.places.book_formula if own else self.places.file_formula)(name, text))

    def _leads_there(self, expected: str, found: str) -> bool:
        return self._spelled("", expected, True) == self._spelled("", found, False)


def _one_of_each_style(sheet: Sheet) -> Iterable[BookCell]:
    """Cells of all styles: there are few styles and many cells."""
    return {id(cell.style): cell for cell in sheet.cells.values()}.values()


def _row_and_column(cell: str) -> tuple[int, int]:
    """Of a cell as people write it, both from 0."""
    column = cell.rstrip("0123456789")
    return int(cell.removeprefix(column)) - 1, column_number(column) - 1


def _is_hidden(line: Line, before: Line | None) -> bool:
    size = before.size if before is not None else None
    least = _NO_SIZE if size is None else min(_NO_SIZE, size * _SQUEEZED)
    return line.hidden or (line.size is not None and line.size < least)


def _view(found: SheetAppearance) -> Iterator[Finding]:
    """How a whole sheet shows its cells."""
    if found.formulas_shown:
        yield "formulas shown", SHOWN, "", "formulas in place of values"
    if found.zeros_hidden:
        yield "hidden zeros", SHOWN, "", "zeros are not shown"
    if found.picture:
        yield "picture", SHOWN, "", "behind the cells"


def _out_of_file(target: str) -> str:
    return "link out of the file" if target and not target.startswith("#") else "link"


def _lies_in(cell: Cell, area: Area) -> bool:
    return area[0] <= cell[0] <= area[2] and area[1] <= cell[1] <= area[3]


def _item(sheet: str, area: Area | None, finding: Finding) -> dict[str, Any]:
    if area is None:
        name = ""
    elif area[3] < 0:
        name = f"{area[0] + 1}:{area[2] + 1}"
    elif area[2] < 0:
        name = f"{letters(area[1] + 1)}:{letters(area[3] + 1)}"
    else:
        name = area_name(area)
    return _named(sheet, name, finding)


def _named(sheet: str, cell: str, finding: Finding) -> dict[str, Any]:
    kind, severity, expected, found = finding
    return {
        "sheet": sheet,
        "cell": cell,
        "kind": kind,
        "severity": severity,
        "expected": expected,
        "found": found,
    }
