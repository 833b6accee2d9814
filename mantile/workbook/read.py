"""A workbook file back to what it was made from: bundle, inputs as they stand now, texts of its formulas.

Reads files as XlsxWriter, LibreOffice and openpyxl leave them. Nothing in a file is executed.
"""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.worksheet.worksheet import Worksheet

from mantile.estimation import Estimate, estimate
from mantile.graph.quantity import Input
from mantile.library.architecture import Model
from mantile.library.documents import parse_json, validate
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.workbook.book import BUNDLE_SHEET, Book
from mantile.workbook.layout import lay_out

MAX_FILE, MAX_UNPACKED = 64 * 2**20, 512 * 2**20


@dataclass
class File:
    """An opened workbook: formulas or constants by cell, the values it stores, and the book it should be."""

    path: Path
    book: Book
    contents: dict[str, dict[tuple[int, int], Any]]
    cached: dict[str, dict[tuple[int, int], Any]]


def open_file(path: Path) -> File:
    """Open a workbook and lay out anew what its bundle says it should be.

    Raises:
        InputError: if it is no workbook, is truncated, or was not made by Mantile.
    """
    require_workbook(path)
    contents = read_cells(path, stored=False)
    if BUNDLE_SHEET not in contents:
        raise InputError(f"{path}: sheet {BUNDLE_SHEET} is missing: not a workbook made by Mantile, or its bundle was removed")
    chunks = contents.pop(BUNDLE_SHEET)
    text = "".join(str(chunks[key]) for key in sorted(chunks))
    book = lay_out(_rebuild(text, f"{path}: sheet {BUNDLE_SHEET}"))
    missing = [name for name in book.sheets if name not in contents]
    if missing:
        raise InputError(f"{path}: sheet {missing[0]} is missing; expected {', '.join(book.sheets)}")
    cached = read_cells(path, stored=True)
    return File(path, book, contents, cached)


def require_workbook(path: Path) -> None:
    """Refuse what is no workbook of sane size before anything is unpacked.

    Raises:
        InputError: saying what was found instead.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_FILE:,}")
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
            if unpacked > MAX_UNPACKED:
                raise InputError(f"{path}: unpacks to {unpacked:,} bytes; expected at most {MAX_UNPACKED:,}")
            if "xl/workbook.xml" not in archive.namelist():
                raise InputError(f"{path}: expected an .xlsx workbook, found another kind of zip file")
            if archive.testzip() is not None:
                raise InputError(f"{path}: expected an .xlsx workbook, found a damaged one")
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile) as error:
        raise InputError(f"{path}: expected an .xlsx workbook, found something else or a truncated file ({error})") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def read_cells(path: Path, stored: bool) -> dict[str, dict[tuple[int, int], Any]]:
    """Contents of all cells by sheet, row and column from 0: formulas, or with `stored` the values saved beside them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving; we only read
            workbook = openpyxl.load_workbook(path, data_only=stored)
    except Exception as error:  # openpyxl raises whatever the broken part of a file provokes
        raise InputError(f"{path}: cannot be read as a workbook: {type(error).__name__}: {error}") from error
    found: dict[str, dict[tuple[int, int], Any]] = {}
    for sheet in workbook.worksheets:
        assert isinstance(sheet, Worksheet)
        found[sheet.title] = {
            (cell.row - 1, cell.column - 1): cell.value for row in sheet.iter_rows() for cell in row if cell.value is not None
        }
    return found


def _rebuild(text: str, name: str) -> Estimate:
    data = parse_json(text, name)
    if not isinstance(data, dict) or not {"format", "scenario", "model", "library"} <= set(data):
        raise InputError(f"{name}: the bundle is damaged; expected format, scenario, model and library")
    if data["format"] != 1:
        raise InputError(f"{name}: bundle format {data['format']!r}; this version reads format 1")
    scenario = parse_scenario(data["scenario"], name)
    return estimate(scenario, validate(Model, data["model"], name), validate(Library, data["library"], name), name)


def typed_inputs(file: File) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Inputs as they stand in the file, per scenario and then per further case, and a list of those that were edited.

    Raises:
        InputError: for a cell whose content its input cannot be, such as a text where a number belongs.
    """
    book = file.book
    values: list[dict[str, Any]] = []
    edited: list[dict[str, Any]] = []
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own
    names = [*(column.name for column in book.estimate.columns), *("a point of the sweep" for _ in book.cases)]
    for column, name in enumerate(names):
        generated = book.inputs(column)
        mine: dict[str, Any] = {} if column < book.columns else dict(generated)
        for (identifier, of), (sheet, row, place) in book.entries.items():
            if of != column:
                continue
            figure = inputs[identifier]
            expected = generated.get(identifier, figure.value)
            found = file.contents[sheet].get((row, place))
            cell = book.sheets[sheet].cells[row, place]
            address = f"{sheet}!{_address(row, place)}"
            if cell.follows is not None and found == f"={cell.reference}":
                mine[identifier] = [*values, mine][cell.follows[1]][cell.follows[0]]
                continue
            value = _coerced(figure, found, f"{file.path}: {address}")
            mine[identifier] = value
            if not same(value, expected) and (column == 0 or not figure.shared):
                edited.append({"id": identifier, "cell": address, "scenario": name, "generated": expected, "found": value})
            elif cell.reference is not None:
                edited.append({"id": identifier, "cell": address, "scenario": name, "generated": f"={cell.reference}", "found": value})
        values.append(mine)
    return values, edited


def _coerced(figure: Input, found: Any, where: str) -> Any:
    if found is None:
        if figure.value is None:
            return None
        raise InputError(f"{where} ({figure.id}): the cell is empty; expected {_expected(figure)}")
    if isinstance(found, str) and found.startswith("="):
        raise InputError(f"{where} ({figure.id}): holds a formula; expected {_expected(figure)}")
    if isinstance(figure.value, str):
        known = {str(choice).lower(): choice for choice in figure.choices}
        if str(found).lower() not in known:
            raise InputError(f"{where} ({figure.id}): holds {found!r:.60}; expected {_expected(figure)}")
        return known[str(found).lower()]
    if isinstance(found, str):
        try:
            return float(found.strip())
        except ValueError:
            raise InputError(f"{where} ({figure.id}): holds {found!r:.60}; expected {_expected(figure)}") from None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InputError(f"{where} ({figure.id}): holds {found!r:.60}; expected {_expected(figure)}")
    return float(found)


def _expected(figure: Input) -> str:
    if isinstance(figure.value, str):
        return "one of " + ", ".join(str(choice) for choice in figure.choices)
    return f"a number{'' if figure.unit == '1' else f' in {figure.unit}'}"


def same(left: Any, right: Any) -> bool:
    """Whether a cell still holds what was written to it; files keep sixteen digits."""
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return bool(left == right)
    return bool(abs(left - right) <= 1e-12 * max(abs(left), abs(right)))


def _address(row: int, column: int) -> str:
    return f"{openpyxl.utils.get_column_letter(column + 1)}{row + 1}"

