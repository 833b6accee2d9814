"""What a file's cells say beside what its bundle would emit.

Formulas that differ, constants typed over them, notes typed where nothing is worked out. Of a file that
another version made also what that version worked out otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

from mantile.equations.altered import NOT_BEHIND_RESULTS
from mantile.graph.quantity import Input, Quantity
from mantile.library.errors import InputError
from mantile.workbook.book import FIRST, HEAD_ROW, NOT_AVAILABLE, Cell, Sheet
from mantile.workbook.history import counts_edits_otherwise, why_changed
from mantile.workbook.looks import Looks
from mantile.workbook.normal_form import normal_form
from mantile.workbook.places import Place
from mantile.workbook.read import File, place_of
from mantile.workbook.references import Formula, plain
from mantile.workbook.sheets.folding import EDITS_SHEET

STAMP = "stamp."  # before the ids of results as they were when the file was made
_LONG = 1000  # characters of a cell that a report shows
_LISTED = 20  # cells that an error names


@dataclass
class CellDiff:
    """Cells that do not hold what the bundle would emit, each with `cell`, `id`, `generated` and `found`.

    Args:
        formulas: formulas that differ, and formulas where none belong.
        overwritten: constants over formulas, changed numbers, and changed texts that formulas refer to.
        labels: other fixed texts that were changed.
        notes: what was typed where nothing is worked out: sign-off lines, free cells.
        worked_out_otherwise: what another version that made the file worked out otherwise, with `why`.
        not_compared: cells of sheets without ids that this other version laid out otherwise.
    """

    formulas: list[dict[str, Any]] = field(default_factory=list)
    overwritten: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    worked_out_otherwise: list[dict[str, Any]] = field(default_factory=list)
    not_compared: list[dict[str, Any]] = field(default_factory=list)


def diff_cells(file: File, added: int = 0) -> CellDiff:
    """Every formula's text and every fixed content against what the bundle emits.

    Nothing is recomputed, inputs are not looked at.

    Args:
        added: scenario columns that somebody typed, which are judged by `added_columns`.
    """
    return _Differ(file, added).run()


def require_own_formulas(file: File, items: Iterable[dict[str, Any]]) -> None:
    """Refuse a workbook in which formulas were edited or typed over.

    Args:
        items: formulas and overwritten cells, as `diff_cells` finds them.

    Raises:
        InputError: naming each cell with its id, what it holds and what it held.
    """
    lines = []
    for item in items:
        name = f"{item['cell']}{' (' + item['id'] + ')' if item['id'] else ''}"
        before = f"{str(item['generated'])!r:.130}" if item["generated"] is not None else "nothing"
        what = "an edited formula" if is_formula(item["found"]) else "a constant there"
        lines.append(
            f"{file.path}: {name}: holds {str(item['found'])!r:.60} instead of {before}; "
            f"{what} cannot be carried over: set it back"
        )
    if lines:
        more = len(lines) - _LISTED
        rest = [f"{file.path}: and {more:,} more"] if more > 0 else []
        raise InputError("\n".join([*lines[:_LISTED], *rest]))


def is_formula(content: Any) -> TypeGuard[Formula]:
    """Whether a cell holds a formula, and not a text that looks like one."""
    return isinstance(content, Formula)


def shortened(content: Any) -> Any:
    """What a cell holds, as a report shows it: texts without end are cut."""
    if not isinstance(content, str) or len(content) <= _LONG:
        return content
    return type(content)(f"{content[:_LONG]}… ({len(content):,} characters)")


_PLACE = re.compile(r"(?P<name>.*), \w+!\$?[A-Z]{1,3}\$?\d+(:\$?[A-Z]{1,3}\$?\d+)?")


def _names_another_place(item: Mapping[str, Any]) -> bool:
    """Whether two texts say of one thing where it stands: rows move between versions."""
    texts = (item["generated"], item["found"])
    found = [_PLACE.fullmatch(text) for text in texts if isinstance(text, str)]
    names = [match["name"] for match in found if match is not None]
    return len(names) == len(texts) and names[0] == names[1]


class _Differ:
    """One pass over a file."""

    def __init__(self, file: File, added: int) -> None:
        self.file, self.book, self.places = file, file.book, file.places
        self.diff = CellDiff()
        next_column = FIRST + self.book.columns
        self.added = range(next_column, next_column + added)
        self.used = {
            (address.sheet, address.row, address.column)
            for address in self.book.addresses.values()
            if address.column is not None
        }

    def run(self) -> CellDiff:
        for name, sheet in self.book.sheets.items():
            here = self.file.contents.get(name, {}) if self.file.as_laid_out else {}
            for (row, column), cell in sheet.cells.items():
                plain_text = cell.text is not None and cell.expression is None
                if plain_text and type(found := here.get((row, column))) is str and found == cell.text:
                    continue  # most cells are texts, and as they were
                if not (self.file.other_version and self.file.lacks((name, row, column))):
                    self._cell(sheet, row, column, cell)
            for row, column, content in self._others(name, sheet):
                self._other(sheet, row, column, content)
        return self.diff

    def _cell(self, sheet: Sheet, row: int, column: int, cell: Cell) -> None:
        """A cell of the book."""
        if self.added and self._in_added_column(sheet.name, column):
            return
        content = self.file.content(sheet.name, row, column)
        if cell.expression is not None:
            if is_formula(content):
                place = (sheet.name, row, column)
                follows = cell.entry is not None and self.file.follows(place) is not None
                if follows or self.file.is_as_printed(place):
                    return
            elif cell.entry is not None:  # typing over a following input is an edit of that input
                return
            generated: Any = self.book.formula_text(sheet, cell)
        elif (cell.entry is not None and cell.room is None) or _same_constant(cell, content):
            return
        else:
            generated = cell.number if cell.number is not None else cell.text
        item = {
            "cell": self.file.cell_name(sheet.name, row, column),
            "id": _id(sheet, row, cell),
            "generated": generated,
            "found": shortened(content),
        }
        self._kind((sheet.name, row, column), cell, item).append(item)

    def _kind(self, place: Place, cell: Cell, item: dict[str, Any]) -> list[dict[str, Any]]:
        """The list in which a cell that differs belongs."""
        diff = self.diff
        changed = is_formula(item["found"])
        is_label = cell.expression is None and cell.number is None and place not in self.used
        if cell.style.unlocked and not changed and cell.expression is None:
            return diff.notes  # room to sign
        if self.file.other_version:
            own = self._is_own_row(item) or self._is_own_count(item)
            if (is_label and not changed) or _names_another_place(item) or own:
                return []  # what another version called it, or where it stood there
            if place[:2] not in self.places.book_ids or self._is_other_copy(place, item):
                return diff.not_compared
            there = self.file.file_sheet(place)
            return self._judged(there, item, diff.formulas if changed else diff.overwritten)
        return diff.formulas if changed else diff.labels if is_label else diff.overwritten

    def _is_own_row(self, item: Mapping[str, Any]) -> bool:
        """Whether a number is the row of the file in which a table of figures begins."""
        place = self.book.first_rows.get(item["id"])
        there = None if place is None else self.places.in_file(*place)
        return there is not None and item["found"] == there[1] + 1

    def _is_own_count(self, item: Mapping[str, Any]) -> bool:
        """Whether a number is how many tables of a kind the file has: those that it lacks are not in
        it."""
        if re.fullmatch(r"altered(?:\.others)?\.tables", str(item["id"])) is None:
            return False
        edits = self.book.sheets[EDITS_SHEET]
        of_others = {
            name: edits.sections[row].endswith(NOT_BEHIND_RESULTS) for row, name in edits.ids.items()
        }
        lacking = sum(
            name.startswith("altered.differs.") and of_others[name] == of_others[item["id"]]
            for name in self.places.lacking
        )
        return bool(item["found"] == item["generated"] - lacking)

    def _is_other_copy(self, place: Place, item: dict[str, Any]) -> bool:
        """Whether a formula of a further case differs only in which figures have a copy for the case."""
        if place[0] in self.book.estimate.equations.sheets or not is_formula(item["found"]):
            return False
        places, there = self.places, self.file.file_sheet(place)
        formula = places.as_of_base(places.file_formula(there, item["found"]))
        generated = places.as_of_base(places.book_formula(place[0], str(item["generated"])))
        return normal_form(formula) == normal_form(generated) is not None

    def _others(self, name: str, sheet: Sheet) -> Iterator[tuple[int, int, Any]]:
        """Cells of a sheet of the file that are none of the book's."""
        for (row, column), content in self.file.contents.get(name, {}).items():
            if self.file.as_laid_out and (row, column) in sheet.cells:
                continue
            place = self.places.in_book(name, row, column)
            has_cell = place is not None and place[1:] in self.book.sheets[place[0]].cells
            if not has_cell and str(content).strip() and not self._in_added_column(name, column):
                yield row, column, content

    def _in_added_column(self, name: str, column: int) -> bool:
        return column in self.added and name in self.book.estimate.equations.sheets

    def _other(self, sheet: Sheet, row: int, column: int, content: Any) -> None:
        place = (sheet.name, row, column)
        item = {"cell": place_of(*place), "id": self._id_in_file(place), "generated": None}
        item["found"] = shortened(content)
        if not self.file.other_version:
            (self.diff.formulas if is_formula(content) else self.diff.notes).append(item)
        elif is_formula(content):
            if item["id"] not in self.places.unknown and not self._stands_elsewhere(sheet.name, content):
                self._other_formula(place, item)
        elif self._is_unlocked(place):
            self.diff.notes.append(item)

    def _other_formula(self, place: Place, item: dict[str, Any]) -> None:
        """A formula of another version where the book has none.

        A link that it needed, or a figure in another column.
        """
        entry = self.places.file_ids.get(place[:2])
        if entry is None:
            needs_id = place[0] in self.book.estimate.equations.sheets and place[1] > HEAD_ROW
            (self.diff.formulas if needs_id else self.diff.not_compared).append(item)
        elif not (entry.linked and self.places.repeats(place, item["found"])):
            self._judged(place[0], item, self.diff.formulas).append(item)

    def _judged(self, name: str, item: dict[str, Any], edited: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Where a cell with an id belongs that another version filled otherwise.

        Changed on purpose since, or edited. `name` is its sheet in the file.
        """
        generator = self.book.bundle.generator
        if counts_edits_otherwise(item["id"] or "", generator):
            return self.diff.not_compared
        why = why_changed(item["id"], self.places.file_formula(name, str(item["found"])), generator)
        if item["id"].startswith(STAMP) and isinstance(item["found"], int | float):
            why = f"the result when {generator} made the file"
        if why is None:
            return edited
        item["why"] = why
        return self.diff.worked_out_otherwise

    def _stands_elsewhere(self, name: str, content: Formula) -> bool:
        """Whether the book has the same formula in another cell of the sheet."""
        return (name, self.places.file_formula(name, content)) in self._formulas_without_ids

    @cached_property
    def _formulas_without_ids(self) -> set[tuple[str, str]]:
        return {
            (sheet.name, self.places.book_formula(sheet.name, self.book.formula_text(sheet, cell)))
            for sheet, row, _, cell in self.book.formulas()
            if (sheet.name, row) not in self.places.book_ids
        }

    def _id_in_file(self, place: Place) -> str:
        here = self.places.in_book(*place)
        entry = self.places.file_ids.get(place[:2])
        if entry is not None:
            return entry.id
        return "" if here is None else self.book.sheets[here[0]].ids.get(here[1], "")

    def _is_unlocked(self, place: Place) -> bool:
        number = self.file.cells.package.looks.get(place[0], {}).get(place[1:])
        return number is not None and not self._looks.cell(number).locked

    @cached_property
    def _looks(self) -> Looks:
        return Looks(self.file.cells.package)


def _id(sheet: Sheet, row: int, cell: Cell) -> str:
    shown = cell.expression.id if isinstance(cell.expression, Input | Quantity) else ""
    return sheet.ids.get(row, shown)


def _same_constant(cell: Cell, content: Any) -> bool:
    if cell.number is not None and math.isnan(cell.number):
        return is_formula(content) and plain(content) == NOT_AVAILABLE
    if is_formula(content):
        return False
    if cell.number is not None:
        return isinstance(content, int | float) and abs(content - cell.number) <= 1e-12 * abs(cell.number)
    if cell.text:
        return str(content) == cell.text
    return content is None or content == " "
