"""What a file's cells say beside what its bundle would emit.

Formulas that differ, constants typed over them, notes typed where nothing is worked out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from mantile.equations.ready_columns import NAME
from mantile.graph.quantity import Input, Quantity
from mantile.library.errors import InputError
from mantile.workbook.appearance import Appearance
from mantile.workbook.book import FIRST, NOT_AVAILABLE, Cell, Sheet
from mantile.workbook.places import Place
from mantile.workbook.read import File, place_of
from mantile.workbook.references import Formula, Reference, plain, with_references

AS_MADE = "another content, of which the file has a digest"
"""In place of what a row of a file of another version held."""
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
    """

    formulas: list[dict[str, Any]] = field(default_factory=list)
    overwritten: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)


def diff_cells(file: File, added: int = 0) -> CellDiff:
    """Every formula's text and every fixed content against what the bundle emits.

    Nothing is recomputed, inputs are not looked at. A file that another version made is held against what it
    says that it was made with, row by row; one that does not say lists nothing.

    Args:
        added: scenario columns that somebody typed, which are judged by `added_columns`.
    """
    return _of_other_version(file) if file.other_version else _Differ(file, added).run()


def _of_other_version(file: File) -> CellDiff:
    """Rows of a file that are not as it says they were made; of each the first cell that may differ."""
    diff = CellDiff()
    if file.made is None:
        return diff
    looks = Appearance(file.cells.package)
    diff.formulas += [
        {"cell": f"{name}!A1", "id": "", "generated": AS_MADE, "found": None}
        for name in file.made.missing(file.contents)
    ]
    for row in file.made.differences(file.contents, lambda name, at: looks.sheet(name).looks[at].form):
        cells = {} if row.row is None else _row(file, row.sheet, row.row)
        numbers = {at: held for at, held in cells.items() if is_formula(held) or not isinstance(held, str)}
        at, found = _odd(row.sheet, numbers or cells)
        item = {"cell": place_of(row.sheet, row.row or 0, at), "id": row.id, "generated": AS_MADE}
        item["found"] = shortened(found)
        kind = diff.labels if not row.content else diff.formulas if is_formula(found) else diff.overwritten
        kind.append(item)
    return diff


def _odd(name: str, cells: dict[int, Any]) -> tuple[int, Any]:
    """The cell of a row that does what the fewest others do, else the first: one formula is copied across."""

    def across(at: int, held: Any) -> Any:
        def written(reference: Reference) -> str:
            return f"{reference.sheet}!{reference.row}.{reference.dollar}{reference.column - at}"

        return with_references(held, name, written) if is_formula(held) else None

    kinds = {at: across(at, held) for at, held in cells.items()}
    counts = Counter(kinds.values())
    at = min(cells, key=lambda at: (counts[kinds[at]], kinds[at] is not None), default=0)
    return at, cells.get(at)


def _row(file: File, name: str, row: int) -> dict[int, Any]:
    """What stands in a row, by column."""
    return {at: held for (of, at), held in sorted(file.contents[name].items()) if of == row}


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


class _Differ:
    """One pass over a file."""

    def __init__(self, file: File, added: int) -> None:
        self.file, self.book, self.places = file, file.book, file.places
        self.diff = CellDiff()
        next_column = FIRST + self.book.columns
        self.added = range(next_column, next_column + added)
        self.used = {
            (address.sheet, address.row, address.column): figure
            for figure, address in self.book.addresses.items()
            if address.column is not None
        }

    def run(self) -> CellDiff:
        for name, sheet in self.book.sheets.items():
            here = self.file.contents.get(name, {}) if self.file.as_laid_out else {}
            for (row, column), cell in sheet.cells.items():
                plain_text = cell.text is not None and cell.expression is None
                if plain_text and type(found := here.get((row, column))) is str and found == cell.text:
                    continue  # most cells are texts, and as they were
                self._cell(sheet, row, column, cell)
            for row, column, content in self._others(name, sheet):
                self._other(sheet, row, column, content)
        return self.diff

    def _cell(self, sheet: Sheet, row: int, column: int, cell: Cell) -> None:
        """A cell of the book."""
        if self.added and self._in_added_column(sheet.name, row, column):
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
        elif (cell.entry is not None and (cell.room is None or cell.entry is NAME)) or _same_constant(
            cell, content
        ):
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
        return diff.formulas if changed else diff.labels if is_label else diff.overwritten

    def _others(self, name: str, sheet: Sheet) -> Iterator[tuple[int, int, Any]]:
        """Cells of a sheet of the file that are none of the book's."""
        for (row, column), content in self.file.contents.get(name, {}).items():
            if self.file.as_laid_out and (row, column) in sheet.cells:
                continue
            place = self.places.in_book(name, row, column)
            has_cell = place is not None and place[1:] in self.book.sheets[place[0]].cells
            here = row if place is None else place[1]
            if not has_cell and str(content).strip() and not self._in_added_column(name, here, column):
                yield row, column, content

    def _in_added_column(self, name: str, row: int, column: int) -> bool:
        is_scenario = column in self.added and name in self.book.estimate.equations.sheets
        return is_scenario and not self.book.sheets[name].is_in_table(row, column)

    def _other(self, sheet: Sheet, row: int, column: int, content: Any) -> None:
        place = (sheet.name, row, column)
        left_empty = self.used.get(self.places.in_book(*place) or place)
        item = {
            "cell": place_of(*place),
            "id": self._id_in_file(place),
            "generated": left_empty.value if isinstance(left_empty, Input) else None,  # 0, nobody states it
            "found": shortened(content),
        }
        added = self.diff.notes if left_empty is None else self.diff.overwritten
        (self.diff.formulas if is_formula(content) else added).append(item)

    def _id_in_file(self, place: Place) -> str:
        here = self.places.in_book(*place)
        entry = self.places.file_ids.get(place[:2])
        if entry is not None:
            return entry.id
        return "" if here is None else self.book.sheets[here[0]].ids.get(here[1], "")


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
