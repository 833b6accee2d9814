"""A workbook file back to what it was made from: bundle, inputs as they stand now, texts of its formulas.

Reads files as XlsxWriter, LibreOffice and openpyxl leave them. Nothing in a file is executed.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.worksheet.worksheet import Worksheet

from mantile.graph.quantity import Input
from mantile.library.documents import parse_json
from mantile.library.errors import InputError
from mantile.workbook.bundle import BUNDLE_SHEET, GENERATOR, Bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.package import Package, letters, open_package
from mantile.workbook.sheets.workings import HEADS

_ID = HEADS.index("id")  # column of the ids of rows
LARGEST = 1e15  # of any input in its unit: products of several stay numbers
Contents = dict[str, dict[tuple[int, int], Any]]


class Formula(str):
    """The text of a formula that stands in a cell: `=1+1` as text is not one."""


@dataclass
class Cells:
    """What a file holds, whatever it is of: formulas or constants by sheet and cell, and the values as stored."""

    contents: Contents
    stored: Contents
    package: Package = field(default_factory=Package)
    workbook: openpyxl.Workbook = field(default_factory=openpyxl.Workbook)


@dataclass
class File:
    """An opened workbook and the book it should be."""

    path: Path
    book: EstimateBook
    cells: Cells

    @property
    def contents(self) -> Contents:
        """Formulas or constants by sheet and cell."""
        return self.cells.contents

    @property
    def cached(self) -> Contents:
        """The values stored in the file."""
        return self.cells.stored


def open_file(path: Path) -> File:
    """Open a workbook and lay out anew what its bundle says it should be.

    Raises:
        InputError: if it is no workbook, is truncated, or was not made by Mantile, or by a version that laid it out otherwise.
    """
    cells = read_cells(path)
    contents = cells.contents
    if BUNDLE_SHEET not in contents:
        raise InputError(
            f"{path}: sheet {BUNDLE_SHEET} is missing: not a workbook made by Mantile, or its bundle was removed"
        )
    chunks = contents.pop(BUNDLE_SHEET)
    if any(isinstance(chunk, Formula) for chunk in chunks.values()):
        raise InputError(f"{path}: sheet {BUNDLE_SHEET}: holds a formula; expected the text of the bundle")
    text = "".join(str(chunks[key]) for key in sorted(chunks))
    name = f"{path}: sheet {BUNDLE_SHEET}"
    bundle = Bundle.parse(parse_json(text, name), name)
    book = lay_out(bundle.estimate(), bundle)
    missing = [name for name in book.sheets if name not in contents]
    if missing:
        raise InputError(f"{path}: sheet {missing[0]} is missing; expected {', '.join(book.sheets)}")
    if bundle.generator != GENERATOR and _moved(book, contents):
        raise InputError(
            f"{path}: made by {bundle.generator}, which laid it out otherwise than {GENERATOR}: expected a workbook of this version; read it with "
            "the version that made it"
        )
    return File(path, book, cells)


def _moved(book: EstimateBook, contents: Contents) -> bool:
    """Whether ids of rows stand on other rows than they would."""
    places = {
        (name, row): identifier
        for name, sheet in book.sheets.items()
        for row, identifier in sheet.ids.items()
        if (row, _ID) in sheet.cells and sheet.cells[row, _ID].text == identifier
    }
    known = set(places.values())
    return any(
        contents[name].get((row, _ID)) in known - {identifier} for (name, row), identifier in places.items()
    )


def read_cells(path: Path) -> Cells:
    """All cells of a workbook, whoever wrote it.

    Raises:
        InputError: if it is no workbook, or one that no reader should be handed; see `open_package`.
    """
    package = open_package(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving; we only read
            workbook = openpyxl.load_workbook(path)
    except Exception as error:  # openpyxl raises whatever the broken part of a file provokes
        raise InputError(f"{path}: cannot be read as a workbook: {type(error).__name__}: {error}") from error
    contents: Contents = {}
    stored: Contents = {}
    for sheet in workbook.worksheets:
        assert isinstance(sheet, Worksheet)
        found = contents[sheet.title] = {
            (cell.row - 1, cell.column - 1): _content(cell)
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None
        }
        values = package.stored.get(sheet.title, {})
        stored[sheet.title] = values | {
            place: value for place, value in found.items() if not isinstance(value, Formula)
        }
    return Cells(contents, stored, package, workbook)


def _content(cell: Any) -> Any:
    """A constant, or a formula. A text that only looks like one stays a text."""
    if cell.data_type != "f":
        return cell.value
    match cell.value:
        case str() as text:
            return Formula(text)
        case ArrayFormula() as array:
            return Formula(f"{{{array.text}}}")
        case table:
            return Formula(
                f"{{=TABLE({getattr(table, 'r1', None) or ''},{getattr(table, 'r2', None) or ''})}}"
            )


def typed_inputs(file: File) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Inputs as they stand in the file, per scenario and then per further case, and a list of those that were edited.

    Raises:
        InputError: for a cell whose content its input cannot be, such as a text where a number belongs.
    """
    book = file.book
    values: list[dict[str, Any]] = []
    edited: list[dict[str, Any]] = []
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    names = [
        *(column.name for column in book.estimate.columns),
        *("a point of the sweep" for _ in book.cases),
    ]
    for column, name in enumerate(names):
        generated = book.inputs(column)
        mine: dict[str, Any] = {} if column < book.columns else dict(generated)
        for (identifier, of), (sheet, row, place) in book.input_cells.items():
            if of != column:
                continue
            figure = inputs[identifier]
            expected = generated.get(identifier, figure.value)
            found = file.contents[sheet].get((row, place))
            cell = book.sheets[sheet].cells[row, place]
            address = f"{sheet}!{_address(row, place)}"
            if (
                cell.follows is not None
                and isinstance(found, Formula)
                and plain(found) == plain(book.formula_text(book.sheets[sheet], cell))
            ):
                followed, scenario = cell.follows
                values_there = [*values, mine][scenario]
                if followed in values_there:  # else it follows its default
                    mine[identifier] = values_there[followed]
                continue
            value = coerced(figure, found, f"{file.path}: {address}")
            mine[identifier] = value
            if not same(value, expected) and (column == 0 or not figure.shared):
                edited.append(
                    {
                        "id": identifier,
                        "cell": address,
                        "scenario": name,
                        "generated": expected,
                        "found": value,
                    }
                )
            elif cell.expression is not None:
                edited.append(
                    {
                        "id": identifier,
                        "cell": address,
                        "scenario": name,
                        "generated": book.formula_text(book.sheets[sheet], cell),
                        "found": value,
                    }
                )
        values.append(mine)
    return values, edited


def plain(text: str) -> str:
    """A formula without the spaces and quotes round sheet names that other programs add, outside its texts."""
    parts = text.split('"')
    return '"'.join(
        part if index % 2 else part.replace(" ", "").replace("'", "") for index, part in enumerate(parts)
    )


def coerced(figure: Input, found: Any, where: str) -> Any:
    """What a cell holds as a value of its input: texts of numbers as numbers, choices in their own spelling.

    Raises:
        InputError: naming the cell, if the input cannot be that.
    """
    if found is None:
        if figure.value is None:
            return None
        raise InputError(f"{where} ({figure.id}): the cell is empty; expected {_expected(figure)}")
    if isinstance(found, Formula):
        raise InputError(
            f"{where} ({figure.id}): holds the formula {found!r:.60}; expected {_expected(figure)}"
        )
    if isinstance(figure.value, str):
        known = {str(choice).lower(): choice for choice in figure.choices}
        if str(found).lower() not in known:
            raise InputError(f"{where} ({figure.id}): holds {found!r:.60}; expected {_expected(figure)}")
        return known[str(found).lower()]
    try:
        number = (
            math.nan if isinstance(found, bool) or not isinstance(found, str | int | float) else float(found)
        )
    except (ValueError, OverflowError):
        number = math.nan
    if not abs(number) < LARGEST:  # NaN is not, either
        raise InputError(f"{where} ({figure.id}): holds {found!r:.60}; expected {_expected(figure)}")
    return number


def _expected(figure: Input) -> str:
    if isinstance(figure.value, str):
        return "one of " + ", ".join(str(choice) for choice in figure.choices)
    return f"a number under {LARGEST:g}{'' if figure.unit == '1' else f' in {figure.unit}'}"


def same(left: Any, right: Any) -> bool:
    """Whether a cell still holds what was written to it; files keep sixteen digits."""
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return bool(left == right)
    return bool(abs(left - right) <= 1e-12 * max(abs(left), abs(right)))


def _address(row: int, column: int) -> str:
    return f"{letters(column + 1)}{row + 1}"
