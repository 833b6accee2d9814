"""Other engines that recalculate a workbook: the `formulas` package, formualizer and headless LibreOffice."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError
from mantile.workbook.package_part import column_number
from mantile.workbook.read import Cells, Contents, read_cells
from mantile.workbook.references import Formula, references

Place = tuple[str, int, int]
Values = dict[str, dict[tuple[int, int], Any]]

_NAME = "book.xlsx"  # to the package, whatever the file is called
_KEY = re.compile(r"^'\[[^\]]*\](?P<sheet>[^']+)'!(?P<cell>[A-Z]{1,3}[0-9]+)$")
_ERRORS = {"Div": "#DIV/0!", "Na": "#N/A", "Name": "#NAME?"}  # of formualizer, where not spelled as they are
_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
 <item oor:path="/org.openoffice.Office.Calc/Formula/Load">
  <prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
 <item oor:path="/org.openoffice.Setup/L10N">
  <prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{language}</value></prop></item>
</oor:items>
"""


def with_formulas(
    cells: Cells, sheets: tuple[str, ...], without: Iterable[Place] = (), fast: bool = True
) -> Values:
    """Every formula of a workbook as the `formulas` package works it out.

    Args:
        cells: the workbook as read; the package would read it again, and follow names and links.
        sheets: names of the sheets to work out.
        without: formulas that no engine is handed; the value stored with each stands in its place.
        fast: compile each distinct formula pattern once; off, the package's own model is used as it is.
    """
    contents = _handed(cells, without)
    if not fast:
        with _quiet():
            return _with_stock_model(contents, sheets)
    from mantile.verification.compiled_formulas import CompiledSheets

    values: Values = {sheet: {} for sheet in sheets}
    for (sheet, row, column), value in CompiledSheets(contents).calculate(sheets).items():
        if sheet in values:
            values[sheet][row, column] = value
    return values


def _handed(cells: Cells, without: Iterable[Place]) -> Contents:
    """What an engine is handed: the stored value in place of some formulas."""
    contents = {sheet: dict(of_sheet) for sheet, of_sheet in cells.contents.items()}
    for sheet, row, column in without:
        del contents[sheet][row, column]
        stored = cells.stored[sheet].get((row, column))
        if stored is not None:
            contents[sheet][row, column] = stored
    return contents


def with_formualizer(cells: Cells, sheets: tuple[str, ...], without: Iterable[Place] = ()) -> Values:
    """Every formula of a workbook as formualizer works it out, which is handed cells and no file.

    Args:
        cells: the workbook as read.
        sheets: names of the sheets to work out; other sheets are not handed over.
        without: formulas that no engine is handed; the value stored with each stands in its place.

    Raises:
        InputError: if formualizer is not installed.
    """
    if not has_formualizer():
        raise InputError(
            "formualizer is not installed; it comes with the extra of its name: "
            "pip install 'mantile[formualizer]'"
        )
    contents = _handed(cells, without)
    table = formualizer_table(contents, sheets)
    table.evaluate_all()
    return formualizer_values(table, contents, sheets)


def formualizer_table(contents: Contents, sheets: tuple[str, ...]) -> Any:
    """A workbook of formualizer that holds the formulas of these sheets and the cells that they read."""
    import formualizer

    read = _read_by_formulas(contents, sheets)
    table = formualizer.Workbook(mode=formualizer.WorkbookMode.Ephemeral)
    for name in sheets:  # all, before any formula refers to one
        table.add_sheet(name)
    for name in sheets:
        sheet = table.sheet(name)
        for row, column in read[name]:
            content = contents[name].get((row, column))
            if content is not None and not isinstance(content, Formula):
                sheet.set_value(row + 1, column + 1, content)
        for (row, column), content in contents[name].items():
            if isinstance(content, Formula):
                with contextlib.suppress(RuntimeError):  # what it cannot parse has no value
                    sheet.set_formula(row + 1, column + 1, str(content))
    return table


def formualizer_values(table: Any, contents: Contents, sheets: tuple[str, ...]) -> Values:
    """What the formulas of a workbook of formualizer came to when it was last evaluated."""
    import formualizer

    values: Values = {}
    for name in sheets:
        height, width = _extent(contents[name])
        found = table.sheet(name).get_values(formualizer.RangeAddress(name, 1, 1, height, width))
        values[name] = {
            (row, column): _value_of(found[row][column])
            for (row, column), content in contents[name].items()
            if isinstance(content, Formula)
        }
    return values


def _read_by_formulas(contents: Contents, sheets: tuple[str, ...]) -> dict[str, set[tuple[int, int]]]:
    """Cells of each sheet that formulas refer to: an eighth of them, most are labels."""
    areas = (
        area
        for name in sheets
        for area in references(
            (content for content in contents[name].values() if isinstance(content, Formula)), name
        )
    )
    read: dict[str, set[tuple[int, int]]] = {name: set() for name in sheets}
    extents = {name: _extent(contents[name]) for name in sheets}
    for area in areas:
        if area.sheet in extents:  # as much of a range as the sheet has cells
            height, width = extents[area.sheet]
            top, bottom = sorted((area.row, area.last_row))
            left, right = sorted((area.column, area.last_column))
            rows, columns = range(top, min(bottom + 1, height)), range(left, min(right + 1, width))
            read[area.sheet].update((row, column) for row in rows for column in columns)
    return read


def has_formualizer() -> bool:
    """Whether formualizer is installed."""
    return importlib.util.find_spec("formualizer") is not None


def _extent(cells: Mapping[tuple[int, int], Any]) -> tuple[int, int]:
    """Rows and columns from the first to the last that is filled; one at least."""
    return (
        1 + max((row for row, _ in cells), default=0),
        1 + max((column for _, column in cells), default=0),
    )


def _value_of(found: Any) -> Any:
    """A value of formualizer, errors as Excel writes them."""
    if not isinstance(found, dict):
        return found
    kind = str(found.get("kind"))
    return _ERRORS.get(kind, f"#{kind.upper()}!")


def _with_stock_model(contents: Contents, sheets: tuple[str, ...]) -> Values:
    """The same by the package's own model, whose workbook holds only these cells."""
    import formulas
    import openpyxl
    from formulas.excel import BOOK

    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, of_sheet in contents.items():
        sheet = workbook.create_sheet(name)
        for (row, column), content in of_sheet.items():
            cell = sheet.cell(row + 1, column + 1, content)
            if isinstance(content, str) and not isinstance(content, Formula):
                cell.data_type = "s"  # a text, whatever it begins with
    model = formulas.ExcelModel()
    model.books[_NAME.upper()] = {BOOK: workbook, "references": {}, "external_links": {}}
    _, context = model.add_book(context={"directory": "", "filename": _NAME})
    model.pushes(*(workbook[sheet] for sheet in sheets), context=context)
    return _values(model.finish(circular=False).calculate(), sheets)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings, progress bars and log lines of the package's own model, in the whole process.

    Afterwards all is as before, unless other threads changed it too: servers do not use that model.
    """
    logger = logging.getLogger("schedula")
    level = logger.level
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _values(solution: Any, sheets: tuple[str, ...]) -> Values:
    """The package's results by sheet and cell."""
    import numpy as np

    names = {name.upper(): name for name in sheets}
    values: Values = {name: {} for name in sheets}
    for key, ranges in solution.items():
        match = _KEY.match(str(key))
        if match is not None and match["sheet"] in names:
            value = np.asarray(ranges.value, dtype=object).ravel()[0]
            values[names[match["sheet"]]][_coordinates(match["cell"])] = value
    return values


def soffice() -> str | None:
    """The LibreOffice program, if there is one."""
    return shutil.which("soffice") or shutil.which("libreoffice")


def with_libreoffice(path: Path) -> Values:
    """Every cell of a workbook as LibreOffice works it out, recalculation forced.

    Without the forcing profile LibreOffice would only echo the values stored in the file.

    Raises:
        InputError: if LibreOffice is not installed or cannot convert the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        return read_cells(recalculate(path, Path(folder))).stored


def recalculate(path: Path, folder: Path, language: str = "en-US") -> Path:
    """Let LibreOffice open, recalculate and save a workbook into a folder.

    Args:
        language: of its user, such as "de-DE": texts get the sign for decimals of it.
    """
    program = soffice()
    if program is None:
        raise InputError("LibreOffice is not installed; expected soffice or libreoffice on the PATH")
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(
        _RECALCULATE.format(language=language), encoding="utf-8"
    )
    out = folder / "recalculated"
    try:
        done = subprocess.run(
            [
                program,
                f"-env:UserInstallation={profile.resolve().as_uri()}",
                "--headless",
                "--norestore",
                "--convert-to",
                "xlsx",
                "--outdir",
                str(out),
                str(path.resolve()),
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{path}: LibreOffice was not done with it after {error.timeout:.0f} seconds"
        ) from error
    converted = out / f"{path.stem}.xlsx"
    if not converted.exists():
        raise InputError(
            f"{path}: LibreOffice could not recalculate it: {(done.stderr or done.stdout).strip()[-300:]}"
        )
    return converted


def _coordinates(address: str) -> tuple[int, int]:
    letters = address.rstrip("0123456789")
    return int(address[len(letters) :]) - 1, column_number(letters) - 1
