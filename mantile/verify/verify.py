"""Does the file say what the engine says? Every formula recomputed, every text compared, every edit named."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mantile.graph.quantity import Apply, Node, Quantity, Span
from mantile.library.errors import InputError
from mantile.verify.engines import Place, Values, with_formulas, with_libreoffice
from mantile.workbook.book import Sheet
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.cell_diff import diff_cells, place_of, shortened
from mantile.workbook.lint import calculable
from mantile.workbook.read import File, Formula, open_file, plain, typed_inputs

TOLERANCE = 1e-9
_SHOWN = 200  # mismatches listed; all are counted


@dataclass
class SheetReport:
    """What was found on one sheet."""

    sheet: str
    cells: int = 0
    formulas: int = 0
    compared: int = 0
    max_relative_error: float = 0.0
    edited_inputs: int = 0
    edited_formulas: int = 0
    overwritten: int = 0
    mismatches: int = 0


@dataclass
class Report:
    """What was found in a file.

    `mismatches` compare the engine with ours, and the stored values with ours; `names` are defined names and `visibility` sheets that
    are not as generated.
    """

    path: str
    engine: str
    sheets: list[dict[str, Any]] = field(default_factory=list)
    mismatches: list[dict[str, Any]] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    formulas: list[dict[str, Any]] = field(default_factory=list)
    overwritten: list[dict[str, Any]] = field(default_factory=list)
    names: list[dict[str, Any]] = field(default_factory=list)
    visibility: list[dict[str, Any]] = field(default_factory=list)
    stored_values: bool = True

    @property
    def ok(self) -> bool:
        """Edited inputs are fine, and names and sheets added in the open.

        Edited formulas, constants over formulas, differing values, handles that lead elsewhere and hidden sheets are not.
        """
        led_astray = [item for item in self.names if item["generated"] is not None]
        hidden = [item for item in self.visibility if item["found"] != "visible"]
        return not (
            self.formulas
            or self.overwritten
            or led_astray
            or hidden
            or any(sheet["mismatches"] for sheet in self.sheets)
        )

    def to_dict(self) -> dict[str, Any]:
        """What `mantile verify --json` prints."""
        return {
            "ok": self.ok,
            "engine": self.engine,
            "cells": sum(sheet["cells"] for sheet in self.sheets),
            "formulas": sum(sheet["formulas"] for sheet in self.sheets),
            "compared": sum(sheet["compared"] for sheet in self.sheets),
            "max_relative_error": max((sheet["max_relative_error"] for sheet in self.sheets), default=0.0),
            "stored_values_compared": self.stored_values,
            "mismatches": self.mismatches,
            "edited": {
                "inputs": self.inputs,
                "formulas": self.formulas,
                "overwritten": self.overwritten,
                "names": self.names,
                "sheets": self.visibility,
            },
            "sheets": self.sheets,
        }


def verify(path: str | Path, engine: Literal["formulas", "libreoffice"] = "formulas") -> Report:
    """Recompute a workbook with another engine and compare it, cell by cell, with ours on the inputs in the file.

    Args:
        path: the workbook, as generated, edited, or re-saved by LibreOffice or openpyxl.
        engine: "formulas" (the Python package) or "libreoffice" (headless, recalculation forced).

    Raises:
        InputError: if the file is not a Mantile workbook, or an input cell holds what it cannot be.
    """
    file = open_file(Path(path))
    book = file.book
    report = Report(str(path), engine)
    sheets = {name: SheetReport(name, cells=len(file.contents[name])) for name in book.sheets}
    inputs, report.inputs = typed_inputs(file)
    for edit in report.inputs:
        sheets[edit["cell"].partition("!")[0]].edited_inputs += 1
    texts = diff_cells(file)
    report.formulas, report.overwritten = texts.formulas, texts.overwritten + texts.labels
    for item in report.formulas:
        sheets[item["cell"].partition("!")[0]].edited_formulas += 1
    for item in report.overwritten:
        sheets[item["cell"].partition("!")[0]].overwritten += 1
    report.names, report.visibility = edited_names(file), edited_sheets(file)

    native = book.values(inputs)
    touched = {item["cell"] for item in report.formulas + report.overwritten}
    strange = _strange(file, touched)
    match engine:
        case "formulas":
            other = with_formulas(
                file.cells, tuple(book.sheets), [place for place in strange if place[0] in book.sheets]
            )
        case "libreoffice":
            if strange:
                sheet_name, row, column = strange[0]
                raise InputError(
                    f"{path}: {place_of(sheet_name, row, column)}: holds {file.contents[sheet_name][row, column]!r:.80}, which is no formula of "
                    "this workbook and may reach out of it; LibreOffice is not given the file. Verify it with formulas"
                )
            other = with_libreoffice(file.path)
        case _:
            raise InputError(f"engine {engine!r}; expected formulas or libreoffice")
    formulas = list(book.formulas())
    stored = sum(file.cached[sheet.name].get((row, column)) is not None for sheet, row, column, _ in formulas)
    report.stored_values = 2 * stored > len(formulas)  # openpyxl saves none, but for a few cells with links
    for sheet, row, column, cell in formulas:
        expected = native[cell.scenario][cell.expression]  # type: ignore[index]
        found = sheets[sheet.name]
        found.formulas += 1
        if not isinstance(file.contents[sheet.name].get((row, column)), Formula):
            continue
        scale = scale_of(cell.expression, native[cell.scenario])  # type: ignore[arg-type]
        _compare(report, found, sheet, row, column, expected, scale, other, engine)
        found.compared += 1
        if report.stored_values and place_of(sheet.name, row, column) not in touched:
            _compare(report, found, sheet, row, column, expected, scale, file.cached, "stored value")
    report.sheets = [asdict(item) for item in sheets.values()]
    return report


def edited_names(file: File) -> list[dict[str, Any]]:
    """Defined names against those of the bundle: one that leads elsewhere or is gone, one of a sheet's own in its place, and new ones."""
    found = []
    wanted = {name.lower(): (name, text) for name, text in file.book.names.items()}
    for name, scope, text in file.cells.package.names:
        if name.lower().startswith("_xl"):
            continue  # print areas, filters and the like, which programs add
        given = f"{name} on sheet {scope}" if scope is not None else name
        _, generated = (
            wanted.pop(name.lower(), ("", None)) if scope is None else ("", file.book.names.get(name.lower()))
        )
        if scope is not None or generated is None or plain(f"={text}") != plain(generated):
            found.append({"name": given, "generated": generated, "found": _json(f"={text}")})
    return found + [{"name": name, "generated": text, "found": None} for name, text in wanted.values()]


def edited_sheets(file: File) -> list[dict[str, Any]]:
    """Sheets that were hidden, and sheets that were added."""
    states = [
        (name, "visible" if name in file.book.sheets else None, state)
        for name, state in file.cells.package.sheets.items()
    ]
    return [
        {"sheet": name, "generated": generated, "found": state}
        for name, generated, state in states
        if name != BUNDLE_SHEET and state != generated
    ]


def _strange(file: File, touched: set[str]) -> list[Place]:
    """Formulas that no engine is handed: on sheets of somebody else's, where none belong, or of what ours do not have."""
    sheets = file.book.sheets
    return [
        (name, row, column)
        for name, cells in file.contents.items()
        for (row, column), found in cells.items()
        if isinstance(found, Formula)
        and (name not in sheets or place_of(name, row, column) in touched)
        and not ((row, column) in getattr(sheets.get(name), "cells", ()) and calculable(found, sheets))
    ]


def _compare(
    report: Report,
    counted: SheetReport,
    sheet: Sheet,
    row: int,
    column: int,
    expected: Any,
    scale: float,
    values: Values,
    source: str,
) -> None:
    found = values.get(sheet.name, {}).get((row, column))
    error = difference(expected, found, scale)
    if error > TOLERANCE:
        counted.mismatches += 1
        if len(report.mismatches) < _SHOWN:
            report.mismatches.append(
                {
                    "cell": place_of(sheet.name, row, column),
                    "id": sheet.ids.get(row, ""),
                    "source": source,
                    "expected": _json(expected),
                    "found": _json(found),
                    "relative_error": _json(error),
                }
            )
    elif math.isfinite(error):
        counted.max_relative_error = max(counted.max_relative_error, error)


def scale_of(node: Node, values: dict[Node, Any]) -> float:
    """The size a result is judged against: its own, or that of the terms it is the sum or difference of."""
    if isinstance(node, Span):
        return max(_size(values.get(member)) for member in node.members)
    size = _size(values.get(node))
    if isinstance(node, Quantity):
        return max(size, scale_of(node.body, values) if not isinstance(node.body, Quantity) else 0.0)
    if isinstance(node, Apply) and node.operation in _TERMS:
        return max(
            [
                size,
                *(
                    scale_of(argument, values)
                    for argument in node.arguments
                    if not isinstance(argument, Quantity)
                ),
                *(_size(values.get(argument)) for argument in node.arguments),
            ]
        )
    return size


_TERMS = ("add", "subtract", "where", "if_error", "maximum", "minimum")


def _size(value: Any) -> float:
    return (
        0.0
        if value is None or isinstance(value, str | list) or math.isnan(float(value))
        else abs(float(value))
    )


def difference(expected: Any, found: Any, scale: float = 0.0) -> float:
    """Relative difference; infinite where one is a text, an error or missing and the other is not."""
    if isinstance(expected, str):
        return 0.0 if str("" if found is None else found) == expected else math.inf
    value = float(expected)
    if math.isnan(value):
        return 0.0 if _error(found) else math.inf
    if isinstance(found, bool) or type(found).__name__ == "bool_":
        found = float(found)
    try:
        other = float(found)
    except (TypeError, ValueError):
        return math.inf
    if value == other:
        return 0.0
    return abs(value - other) / max(abs(value), abs(other), scale)


def _error(found: Any) -> bool:
    return type(found).__name__ in ("XlError",) or str(found).startswith("#")


def _json(value: Any) -> Any:
    if isinstance(value, str):
        return str(shortened(value))
    if value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else str(number)
