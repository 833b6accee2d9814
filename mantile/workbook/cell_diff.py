"""What a file's cells say beside what its bundle would emit: formulas that differ, constants typed over them, notes typed where nothing is worked out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from openpyxl.utils import get_column_letter

from mantile.graph.quantity import Input, Quantity
from mantile.library.errors import InputError
from mantile.workbook.book import FIRST, Cell, Sheet
from mantile.workbook.read import File, Formula, plain

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
    """Every formula's text and every fixed content against what the bundle emits. Nothing is recomputed, inputs are not looked at.

    Args:
        added: scenario columns that somebody typed, which are judged by `added_columns`.
    """
    found = CellDiff()
    next_column = FIRST + file.book.columns
    used = {
        (address.sheet, address.row, address.column)
        for address in file.book.addresses.values()
        if address.column is not None
    }
    for name, sheet in file.book.sheets.items():
        contents = file.contents[name]
        for (row, column), cell in sheet.cells.items():
            content = contents.get((row, column))
            if cell.expression is not None:
                expected = file.book.formula_text(sheet, cell)
                if is_formula(content):
                    if plain(content) != plain(expected):
                        found.formulas.append(_item(sheet, row, column, cell, expected, content))
                elif cell.entry is None:  # typing over a following input is an edit of that input
                    found.overwritten.append(_item(sheet, row, column, cell, expected, content))
            elif cell.entry is None and not _same_constant(cell, content):
                generated = cell.number if cell.number is not None else cell.text
                item = _item(sheet, row, column, cell, generated, content)
                if is_formula(content):
                    found.formulas.append(item)
                elif cell.style.unlocked:  # room to sign
                    found.notes.append(item)
                else:
                    (
                        found.overwritten
                        if cell.number is not None or (name, row, column) in used
                        else found.labels
                    ).append(item)
        for (row, column), content in contents.items():
            if name in file.book.estimate.equations.sheets and next_column <= column < next_column + added:
                continue
            if (row, column) not in sheet.cells and str(content).strip():
                (found.formulas if is_formula(content) else found.notes).append(
                    _item(sheet, row, column, None, None, content)
                )
    return found


def require_own_formulas(file: File, items: Iterable[dict[str, Any]]) -> None:
    """Refuse a workbook in which formulas were edited or typed over.

    Args:
        items: formulas and overwritten cells, as `compare_texts` finds them.

    Raises:
        InputError: naming each cell with its id, what it holds and what it held.
    """
    lines = []
    for item in items:
        held = f"{str(item['generated'])!r:.130}" if item["generated"] is not None else "nothing"
        what = "an edited formula" if is_formula(item["found"]) else "a constant there"
        lines.append(
            f"{file.path}: {item['cell']}{' (' + item['id'] + ')' if item['id'] else ''}: holds {str(item['found'])!r:.60} instead of {held}; "
            f"{what} cannot be carried over: set it back"
        )
    if lines:
        raise InputError(
            "\n".join(
                [
                    *lines[:_LISTED],
                    *([f"{file.path}: and {len(lines) - _LISTED:,} more"] if len(lines) > _LISTED else []),
                ]
            )
        )


def is_formula(content: Any) -> TypeGuard[Formula]:
    """Whether a cell holds a formula, and not a text that looks like one."""
    return isinstance(content, Formula)


def place_of(sheet: str, row: int, column: int) -> str:
    """A cell as people write it; row and column from 0."""
    return f"{sheet}!{get_column_letter(column + 1)}{row + 1}"


def _item(
    sheet: Sheet, row: int, column: int, cell: Cell | None, generated: Any, found: Any
) -> dict[str, Any]:
    shown = cell.expression.id if cell is not None and isinstance(cell.expression, Input | Quantity) else ""
    return {
        "cell": place_of(sheet.name, row, column),
        "id": sheet.ids.get(row, shown),
        "generated": generated,
        "found": shortened(found),
    }


def shortened(content: Any) -> Any:
    """What a cell holds, as a report shows it: texts without end are cut."""
    if not isinstance(content, str) or len(content) <= _LONG:
        return content
    return type(content)(f"{content[:_LONG]}… ({len(content):,} characters)")


def _same_constant(cell: Cell, found: Any) -> bool:
    if is_formula(found):
        return False
    if cell.number is not None:
        return isinstance(found, int | float) and abs(found - cell.number) <= 1e-12 * abs(cell.number)
    if cell.text:
        return str(found) == cell.text
    return found is None or found == " "
