"""Scenario columns that somebody typed to the right of those there are.

On Inputs the next free column takes a heading and values; a cell left as it is or empty follows the base.
Override cells stand in the same column of Efficiency and Hardware, measured values at Calibration.
Formulas may have been copied across from the column before: they follow as it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.display import LETTERS, SIDE_BY_SIDE
from mantile.equations.override import OVERRIDE
from mantile.graph.quantity import Input, Named
from mantile.library.errors import InputError
from mantile.workbook.book import FIRST, HEAD_ROW
from mantile.workbook.cell_diff import is_formula
from mantile.workbook.read import File, coerced, place_of
from mantile.workbook.references import link_to_typed, only_reference, plain
from mantile.workbook.sheets.free_column import NAME

MOST = SIDE_BY_SIDE  # scenario columns of a workbook
_LETTER = re.compile(r"^[A-H](\s*·\s*base)?\s*\n\s*|\s+$")  # before and after the name in a heading


@dataclass
class AddedColumn:
    """A scenario column that was typed.

    Args:
        name: its heading.
        values: of every input that scenarios have apart, by id, what it follows included.
        stated: ids of the inputs whose cells hold something of their own.
        edits: those cells, as `typed_inputs` lists them.
    """

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    stated: set[str] = field(default_factory=set)
    edits: list[dict[str, Any]] = field(default_factory=list)


def added_columns(file: File, typed: Sequence[Mapping[str, Any]]) -> list[AddedColumn]:
    """The scenarios typed beside those of a workbook, left to right.

    Args:
        typed: inputs as they stand in the file, for each scenario there is.

    Raises:
        InputError: naming the cell, for a column without heading, one too many, or a cell that is neither an
            input nor a formula copied across.
    """
    if file.book.estimate.template.formula_text:
        _require_nothing_behind_texts(file)
        return []
    values, columns = list(typed), []
    for number in range(file.book.columns, MOST + 1):
        if number == file.book.columns and _is_as_prepared(file):
            break
        if not any(_cells(file, sheet, FIRST + number) for sheet in _sheets(file)):
            break
        columns.append(_Column(file, number, values).read())
        values.append(columns[-1].values)
    return columns


def _is_as_prepared(file: File) -> bool:
    """Whether the column for a further scenario holds nothing but what a workbook has there."""
    column = FIRST + file.book.columns
    for sheet in _sheets(file):
        for row, content in _cells(file, sheet, column).items():
            place = file.places.in_book(sheet, row, column)
            cell = None if place is None else file.book.sheets[place[0]].cells.get(place[1:])
            if place is None or cell is None:
                return False
            as_made = file.is_as_printed(place) if cell.expression is not None else content == cell.text
            if not as_made:
                return False
    return True


def _require_nothing_behind_texts(file: File) -> None:
    """Refuse a column behind formulas as text, which stand where a scenario would be added."""
    column = FIRST + file.book.columns + 1
    for sheet in _sheets(file):
        for row in sorted(_cells(file, sheet, column)):
            raise InputError(
                f"{file.path}: {place_of(sheet, row, column)}: expected nothing here: "
                "scenarios are added where a template shows no formulas"
            )


def _sheets(file: File) -> tuple[str, ...]:
    """The sheets on which a column is a scenario.

    Those that the template or another version leaves out are not among them.
    """
    names = file.book.estimate.equations.sheets
    return tuple(name for name in names if name in file.book.sheets and name in file.contents)


def _cells(file: File, sheet: str, column: int) -> dict[int, Any]:
    """What stands in a column of a sheet, by its row in the file, but for tables."""
    rows = {row: content for (row, at), content in file.contents[sheet].items() if at == column}
    places = {row: file.places.in_book(sheet, row, column) for row in rows}
    return {
        row: content
        for row, content in rows.items()
        if (place := places[row]) is None or not file.book.sheets[place[0]].is_in_table(place[1], column)
    }


class _Column:
    """One column being read.

    Args:
        number: of its scenario.
        values: of the inputs of the scenarios before it.
    """

    def __init__(self, file: File, number: int, values: Sequence[Mapping[str, Any]]) -> None:
        self.file, self.number, self.values = file, number, values
        self.column = FIRST + number
        own = [
            (figure, address)
            for figure in file.book.estimate.equations.all_inputs()
            if (address := file.book.addresses.get(figure)) is not None
            and address.column is None
            and not figure.fixed
        ]
        places = {figure: file.places.in_file(address.sheet, address.row, FIRST) for figure, address in own}
        self.inputs = {place[:2]: figure for figure, place in places.items() if place is not None}
        self.lacking = [figure.id for figure, place in places.items() if place is None]
        measured = file.book.estimate.equations.measured
        self.measured = {figure.id for figure in measured.values()}
        head = file.places.in_file("Inputs", HEAD_ROW, FIRST)
        self.head_row = HEAD_ROW if head is None else head[1]

    def read(self) -> AddedColumn:
        added = AddedColumn(self._heading())
        chosen: dict[str, Any] = {identifier: (identifier, 0) for identifier in self.lacking}
        for sheet in _sheets(self.file):
            cells = _cells(self.file, sheet, self.column)
            rows = {row: content for row, content in cells.items() if row != self.head_row}
            self._require_inputs(sheet, rows)
            computed = any(is_formula(content) for content in rows.values())
            for (of, row), figure in self.inputs.items():
                if of == sheet:
                    chosen[figure.id] = self._chosen(sheet, row, figure, rows.get(row), computed)
        for identifier, value in chosen.items():
            if not isinstance(value, tuple):
                added.values[identifier] = value
            elif (
                value[1] < self.number and value[0] in self.values[value[1]]
            ):  # else both follow their defaults
                added.values[identifier] = self.values[value[1]][value[0]]
        for (sheet, row), figure in self.inputs.items():
            content = self.file.contents[sheet].get((row, self.column))
            if content is not None and not is_formula(content):
                added.stated.add(figure.id)
                added.edits.append(self._edit(sheet, row, figure, added))
        return added

    def _require_inputs(self, sheet: str, rows: Mapping[int, Any]) -> None:
        for row, content in rows.items():
            if (sheet, row) not in self.inputs and not self._copied(sheet, row, content):
                expected = "expected nothing here, or what stands in the column before copied across"
                raise self._wrong(sheet, row, content, expected)

    def _edit(self, sheet: str, row: int, figure: Input, added: AddedColumn) -> dict[str, Any]:
        return {
            "id": figure.id,
            "cell": place_of(sheet, row, self.column),
            "scenario": added.name,
            "generated": None,
            "found": added.values[figure.id],
        }

    def _heading(self) -> str:
        heads = self.file.contents["Inputs"]
        content, before = (heads.get((self.head_row, column)) for column in (self.column, self.column - 1))
        cell = place_of("Inputs", self.head_row, self.column)
        if self.number >= MOST:
            raise InputError(
                f"{self.file.path}: {cell}: a scenario too many; expected at most {MOST} columns"
            )
        name = "" if content is None or is_formula(content) else _name(content)
        if name == NAME:  # values were typed below it
            return f"Scenario {LETTERS[self.number]}"
        if not name or (before is not None and name == _name(before)):
            raise InputError(
                f"{self.file.path}: {cell}: holds {content!r:.60}; expected a heading of its own for the "
                "scenario that is typed in this column"
            )
        return name

    def _copied(self, sheet: str, row: int, content: Any) -> bool:
        """Whether a cell holds what stands in the column before, as copying across gives it."""
        before = self.file.contents[sheet].get((row, self.column - 1))
        if is_formula(before) and is_formula(content):
            origin, target = (f"{xl_col_to_name(at)}{row + 1}" for at in (self.column - 1, self.column))
            from openpyxl.formula.translate import Translator  # which few files need

            moved = Translator(before, origin=origin).translate_formula(target)
            return plain(moved) == plain(content)
        return bool(content == before)

    def _chosen(self, sheet: str, row: int, figure: Input, content: Any, computed: bool) -> Any:
        """A value, or as a pair the input and scenario whose value it takes; of its own scenario its default.

        Args:
            computed: whether the sheet works the column out: an empty override then means the library's
                figure.
        """
        if content is None:
            if figure.id in self.measured or (figure.id.endswith(OVERRIDE) and computed):
                return None  # what was measured is never taken over
            return (figure.id, 0)
        if not is_formula(content):
            return coerced(figure, content, f"{self.file.path}: {place_of(sheet, row, self.column)}")
        target = plain(content).replace("$", "")
        typed = self.file.cell_name(*self.file.book.input_cells[figure.id, 0])
        of_base = f"{xl_col_to_name(FIRST)}{row + 1}"
        links = (f"={plain(link_to_typed(cell))}".replace("$", "") for cell in (typed, of_base))
        if target in (f"={of_base}", f"={plain(typed)}", *links):
            return (figure.id, 0)
        used = self.file.book.used.get(figure)
        before = None if used is None else self._column_of(sheet, used, content)
        if before in range(self.number):
            return (figure.id, before)
        if figure.follows is not None and self._column_of(sheet, figure.follows, content) == self.number:
            return (figure.id, self.number)
        expected = "expected a value, nothing, or the formula of the column before copied across"
        raise self._wrong(sheet, row, content, expected)

    def _column_of(self, sheet: str, figure: Named, content: Any) -> int | None:
        """The scenario of which a cell repeats a figure, None where it does not."""
        address = self.file.book.addresses[figure]
        place = self.file.places.in_file(address.sheet, address.row, FIRST)
        reference = only_reference(content, sheet)
        if place is None or reference is None or (reference.sheet, reference.row) != place[:2]:
            return None
        return reference.column - FIRST

    def _wrong(self, sheet: str, row: int, content: Any, expected: str) -> InputError:
        place = self.file.places.in_book(sheet, row, self.column)
        identifier = None if place is None else self.file.book.sheets[place[0]].ids.get(place[1])
        name = f"{place_of(sheet, row, self.column)}{f' ({identifier})' if identifier else ''}"
        return InputError(f"{self.file.path}: {name}: holds {content!r:.60}; {expected}")


def _name(content: Any) -> str:
    return _LETTER.sub("", str(content).replace("\u00a0", " ").strip()).strip()
