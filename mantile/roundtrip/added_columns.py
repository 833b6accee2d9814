"""Scenario columns that somebody typed to the right of those there are.

On Inputs the next free column takes a heading and values; a cell left empty follows the base. Override cells stand in the same column of Efficiency
and Hardware, measured values in that of Calibration. Formulas may have been copied across from the column before: they follow as it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openpyxl.formula.translate import Translator
from xlsxwriter.utility import xl_col_to_name

from mantile.equations.override import OVERRIDE
from mantile.graph.quantity import Input, Named
from mantile.library.errors import InputError
from mantile.workbook.book import FIRST
from mantile.workbook.cell_diff import is_formula, place_of
from mantile.workbook.read import File, coerced, plain

MOST = 8  # scenario columns of a workbook
_HEAD_ROW = 3
_LETTER = re.compile(r"^[A-H](\s*·\s*base)?\s*\n\s*|\s+$")  # before and after the name in a heading


@dataclass
class AddedColumns:
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


def added_columns(file: File, typed: Sequence[Mapping[str, Any]]) -> list[AddedColumns]:
    """The scenarios typed beside those of a workbook, left to right.

    Args:
        typed: inputs as they stand in the file, for each scenario there is.

    Raises:
        InputError: naming the cell, for a column without heading, one too many, or a cell that is neither an input nor a formula copied across.
    """
    if file.book.estimate.template.formula_text:  # its formulas as text stand where a scenario would be added
        behind = FIRST + file.book.columns + 1
        for sheet in _sheets(file):
            for row, column in sorted(file.contents[sheet]):
                if column == behind:
                    raise InputError(
                        f"{file.path}: {place_of(sheet, row, column)}: expected nothing here: "
                        "scenarios are added where a template shows no formulas"
                    )
        return []
    known, found = list(typed), []
    for number in range(file.book.columns, MOST + 1):
        if not any(column == FIRST + number for sheet in _sheets(file) for _, column in file.contents[sheet]):
            break
        reader = _Column(file, number, known)
        found.append(reader.read())
        known.append(found[-1].values)
    return found


def _sheets(file: File) -> tuple[str, ...]:
    """The sheets on which a column is a scenario, but for those that the template leaves out."""
    return tuple(name for name in file.book.estimate.equations.sheets if name in file.book.sheets)


class _Column:
    """One column being read.

    Args:
        number: of its scenario.
        known: values of the inputs of the scenarios before it.
    """

    def __init__(self, file: File, number: int, known: Sequence[Mapping[str, Any]]) -> None:
        self.file, self.number, self.known = file, number, known
        self.place = FIRST + number
        self.inputs: dict[tuple[str, int], Input] = {}
        for figure in file.book.estimate.equations.all_inputs():
            address = file.book.addresses.get(figure)
            if address is not None and address.column is None and not figure.fixed:
                self.inputs[address.sheet, address.row] = figure
        self.measured = {figure.id for figure in file.book.estimate.equations.measured.values.values()}

    def read(self) -> AddedColumns:
        made = AddedColumns(self._heading())
        chosen: dict[str, Any] = {}
        for sheet in _sheets(self.file):
            contents = self.file.contents[sheet]
            rows = {
                row: content
                for (row, column), content in contents.items()
                if column == self.place and row != _HEAD_ROW
            }
            for row, content in rows.items():
                if (sheet, row) not in self.inputs and not self._copied(sheet, row, content):
                    raise self._wrong(
                        sheet,
                        row,
                        content,
                        "expected nothing here, or what stands in the column before copied across",
                    )
            computed = any(is_formula(content) for content in rows.values())
            for (of, row), figure in self.inputs.items():
                if of == sheet:
                    chosen[figure.id] = self._chosen(sheet, row, figure, rows.get(row), computed)
        for identifier, value in chosen.items():
            if not isinstance(value, tuple):
                made.values[identifier] = value
            elif (
                value[1] < self.number and value[0] in self.known[value[1]]
            ):  # else both follow their defaults
                made.values[identifier] = self.known[value[1]][value[0]]
        for (sheet, row), figure in self.inputs.items():
            content = self.file.contents[sheet].get((row, self.place))
            if content is not None and not is_formula(content):
                made.stated.add(figure.id)
                made.edits.append(
                    {
                        "id": figure.id,
                        "cell": place_of(sheet, row, self.place),
                        "scenario": made.name,
                        "generated": None,
                        "found": made.values[figure.id],
                    }
                )
        return made

    def _heading(self) -> str:
        content = self.file.contents["Inputs"].get((_HEAD_ROW, self.place))
        cell = place_of("Inputs", _HEAD_ROW, self.place)
        if self.number >= MOST:
            raise InputError(
                f"{self.file.path}: {cell}: a scenario too many; expected at most {MOST} columns"
            )
        name = "" if content is None or is_formula(content) else _name(content)
        before = self.file.contents["Inputs"].get((_HEAD_ROW, self.place - 1))
        if not name or (before is not None and name == _name(before)):
            raise InputError(
                f"{self.file.path}: {cell}: holds {content!r:.60}; expected a heading of its own for the scenario that is typed in this column"
            )
        return name

    def _copied(self, sheet: str, row: int, content: Any) -> bool:
        before = self.file.contents[sheet].get((row, self.place - 1))
        if is_formula(before) and is_formula(content):
            moved = Translator(before, origin=f"{xl_col_to_name(self.place - 1)}{row + 1}").translate_formula(
                f"{xl_col_to_name(self.place)}{row + 1}"
            )
            return plain(moved) == plain(content)
        return bool(content == before)

    def _chosen(self, sheet: str, row: int, figure: Input, content: Any, computed: bool) -> Any:
        """A value, or as a pair the input and scenario whose value it takes; of its own scenario its default."""
        if content is None:
            if figure.id in self.measured or (figure.id.endswith(OVERRIDE) and computed):
                return None  # what was measured is never taken over; where the sheet works the column out, empty means the library's figure
            return (figure.id, 0)
        if not is_formula(content):
            return coerced(figure, content, f"{self.file.path}: {place_of(sheet, row, self.place)}")
        told = plain(content).replace("$", "")
        place = self.file.book.input_cells[figure.id, 0]
        if told in (f"={xl_col_to_name(FIRST)}{row + 1}", f"={plain(place_of(*place))}"):
            return (figure.id, 0)
        if figure.follows is not None and self._follows_default(sheet, row, figure.follows, content):
            return (figure.id, self.number)
        raise self._wrong(
            sheet,
            row,
            content,
            "expected a value, nothing, or the formula of the column before copied across",
        )

    def _follows_default(self, sheet: str, row: int, default: Named, content: Any) -> bool:
        """Whether a cell holds the formula of the input's default, as this column has it."""
        base = f"={self.file.book.reference_to(default, 0, sheet, linked=False)}"
        moved = Translator(base, origin=f"{xl_col_to_name(FIRST)}{row + 1}").translate_formula(
            f"{xl_col_to_name(self.place)}{row + 1}"
        )
        return plain(moved).replace("$", "") == plain(content).replace("$", "")

    def _wrong(self, sheet: str, row: int, content: Any, expected: str) -> InputError:
        identifier = self.file.book.sheets[sheet].ids.get(row)
        return InputError(
            f"{self.file.path}: {place_of(sheet, row, self.place)}{f' ({identifier})' if identifier else ''}: holds {content!r:.60}; {expected}"
        )


def _name(content: Any) -> str:
    return _LETTER.sub("", str(content).replace("\u00a0", " ").strip()).strip()
