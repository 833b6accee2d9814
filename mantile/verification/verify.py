"""Does the file say what the engine says? Every formula recomputed, every text compared, every edit named."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from mantile.equations.display import LETTERS
from mantile.graph.quantity import Apply, Input, Named, Node, Quantity, Span
from mantile.library.errors import InputError
from mantile.library.gc_paused import gc_paused
from mantile.library.signing import Verdict
from mantile.verification.engines import (
    Values,
    has_formualizer,
    soffice,
    with_formualizer,
    with_formulas,
    with_libreoffice,
)
from mantile.verification.report import Report, Reports, SheetReport
from mantile.verification.severity import ANSWER, SHOWN
from mantile.verification.shown import shown_differences
from mantile.verification.signatures import read_signatures
from mantile.workbook.book import ACROSS, FIRST
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.cell_diff import diff_cells, is_formula, shortened
from mantile.workbook.made import Made, made
from mantile.workbook.package_part import column_number
from mantile.workbook.places import Place
from mantile.workbook.read import File, open_file, place_of, typed_beside, typed_inputs
from mantile.workbook.references import Reference, plain, with_references

TOLERANCE = 1e-9
_SHOWN = 200  # mismatches listed; all are counted
_OF_PRINTING = ("Print_Titles", "Print_Area", "Sheet_Title")  # as gnumeric names them, on a sheet
_CHOSEN = ("maximum", "minimum")
_TERMS = ("add", "subtract", "where", "if_error", *_CHOSEN)
_SUM = re.compile(r"=x(?:[+-]x)+")  # whose references are written so

Engine = Literal["formulas", "libreoffice", "formualizer"]


@gc_paused()
def verify(
    path: str | Path, engine: Engine = "formulas", trusted: Mapping[bytes, str] | None = None
) -> Report:
    """Recompute a workbook with another engine and compare it by cell with ours on the inputs in the file.

    A file that another version made is held against what it says that it was made with, and against what its
    own formulas give. One of 0.18 or before does not say, and never verifies.

    Args:
        path: the workbook, as generated, edited, or re-saved by LibreOffice or openpyxl.
        engine: "formulas" (the Python package), "libreoffice" (headless, recalculation forced) or
            "formualizer" (compiled, the fastest; an extra of its own).
        trusted: public keys and their names, of `mantile.library.signing.read_trusted`: one of them has to
            have signed.

    Raises:
        InputError: if the file is not a Mantile workbook, an input cell holds what it cannot be, or the
            engine is not installed.

    Example:
        mantile.verify("run.xlsx").ok
    """
    if engine not in get_args(Engine):
        raise InputError(f"engine {engine!r}; expected {', '.join(get_args(Engine))}")
    return verify_file(open_file(Path(path)), engine, trusted)


def verify_file(
    file: File, engine: Engine = "formulas", trusted: Mapping[bytes, str] | None = None
) -> Report:
    """The same of a workbook that is open.

    Raises:
        InputError: if an input cell holds what it cannot be, or the engine is not installed.

    Example:
        verify_file(open_file(Path("run.xlsx"))).ok
    """
    return _Verification(file, engine, trusted).run()


@gc_paused()
def verify_with_all(path: str | Path, trusted: Mapping[bytes, str] | None = None) -> Reports:
    """The same with every engine that is installed, each on its own.

    Args:
        path, trusted: as of `verify`.

    Raises:
        InputError: if the file is not a Mantile workbook, or an input cell holds what it cannot be.

    Example:
        verify_with_all("run.xlsx").engines["formualizer"].ok
    """
    file = open_file(Path(path))
    reports = Reports(str(path))
    installed = {"formulas": True, "libreoffice": soffice() is not None, "formualizer": has_formualizer()}
    for engine, is_there in installed.items():
        if not is_there:
            reports.not_installed.append(engine)
            continue
        verification = _Verification(file, engine, trusted)
        try:
            reports.engines[engine] = verification.run()
        except InputError as error:
            reports.refused[engine] = str(error)
    return reports


class _Verification:
    """One file against what it should say."""

    def __init__(self, file: File, engine: str, trusted: Mapping[bytes, str] | None = None) -> None:
        self.file, self.book, self.engine = file, file.book, engine
        self.inputs, edits = typed_inputs(file)
        edits += typed_beside(file)
        self.diff = diff_cells(file)
        self.report = Report(
            path=str(file.path),
            engine=engine,
            model=file.book.estimate.model.pin,
            digest=file.book.bundle.digest,
            protected=file.book.bundle.data["format"] > 1,
            signature=_signature(file, trusted),
            inputs=edits,
            other_version=file.untold("recomputed"),
            made_by=file.book.bundle.generator if file.other_version else None,
        )
        self.report.formulas, self.report.overwritten = self.diff.formulas, self.diff.overwritten
        if not file.other_version:
            self.report.names, self.report.visibility = edited_names(file), edited_sheets(file)
            self.report.shown = [*shown_differences(file, self.diff), *_stored_truth(file)]
        elif file.made is not None:
            self.report.inputs = _typed_over(file, file.made, edits)
            self.report.visibility = edited_sheets(file)
            self.report.shown = [_text_or_format(item) for item in self.diff.labels]
        names = file.contents if file.other_version else file.book.sheets
        self.sheets = {
            name: SheetReport(name, cells=len(file.contents[name])) for name in names if name in file.contents
        }
        differing = (self.diff.formulas, self.diff.overwritten, self.diff.labels)
        self.touched = {item["cell"] for items in differing for item in items}

    def run(self) -> Report:
        self._count_edits()
        recomputed = self._recomputed()
        self.report.stored_values = self._holds_values()
        if self.file.other_version:
            self._compare_with_itself(recomputed)
        else:
            self._compare(recomputed)
        self.report.signatures = read_signatures(self.file, self.native[ACROSS])
        self.report.sheets = [asdict(sheet) for sheet in self.sheets.values()]
        report = self.report
        for item in (*report.inputs, *report.formulas, *report.overwritten, *report.mismatches):
            report.labels[item["cell"]] = self._label(item)
        return report

    @cached_property
    def _figures(self) -> dict[str, Named]:
        """Figures and inputs by their ids."""
        return {**self.book.estimate.equations.figures, **self.file.inputs}

    def _label(self, item: dict[str, Any]) -> str:
        """The label of the figure in a cell, else its id, and its scenario where there are several."""
        figure = self._figures.get(item["id"])
        sheet, cell = item["cell"].split("!")
        names = [self.file.scenario_name(column) for column in range(self.book.columns)]
        column = column_number(cell.rstrip("0123456789")) - 1 - FIRST
        if "scenario" in item:
            column = names.index(item["scenario"]) if item["scenario"] in names else -1
        is_shared = isinstance(figure, Input) and figure.shared
        own = len(names) > 1 and 0 <= column < len(names) and not is_shared
        own = own and ("scenario" in item or sheet in self.book.estimate.equations.sheets)
        scenario = f"scenario {LETTERS[column]} ({names[column]})" if own else ""
        label = item["id"] if figure is None else figure.label
        return ", ".join(filter(None, (label, scenario)))

    @cached_property
    def native(self) -> list[dict[Node, Any]]:
        """Our values on the inputs in the file, by scenario and further case, and last across them."""
        texts = self._words()
        return self.book.values([given | texts for given in self.inputs])

    def _count_edits(self) -> None:
        report = self.report
        for item in (*report.inputs, *report.formulas, *report.overwritten):
            self.sheets.setdefault(_sheet_of(item), SheetReport(_sheet_of(item)))  # one that is gone
        for edit in report.inputs:
            self.sheets[_sheet_of(edit)].edited_inputs += 1
        for item in report.formulas:
            self.sheets[_sheet_of(item)].edited_formulas += 1
        for item in report.overwritten:
            self.sheets[_sheet_of(item)].overwritten += 1

    def _recomputed(self) -> Values:
        """Every cell of the file as the engine works it out."""
        file, strange = self.file, list(self._strange())
        if self.engine == "libreoffice":
            if strange:
                sheet, row, column = strange[0]
                raise InputError(
                    f"{file.path}: {place_of(*strange[0])}: holds {file.contents[sheet][row, column]!r:.80}, "
                    "which is no formula of this workbook and may reach out of it; LibreOffice is not given "
                    "the file. Verify it with formulas or formualizer, which are handed cells alone"
                )
            return with_libreoffice(file.path)
        names = tuple(name for name in file.contents if name in self.sheets)
        engine = with_formualizer if self.engine == "formualizer" else with_formulas
        return engine(file.cells, names, [place for place in strange if place[0] in names])

    def _strange(self) -> Iterator[Place]:
        """Formulas that no engine is handed: where none belong, or of what ours do not have."""
        other = self.file.other_version
        sheets = self.file.contents if other else self.book.sheets
        for name, cells in self.file.contents.items():
            for (row, column), content in cells.items():
                if is_formula(content):
                    belongs = other or self._belongs((name, row, column))
                    as_printed = belongs and not other and not self._is_touched((name, row, column))
                    if not as_printed and not (belongs and _calculable(content, sheets)):
                        yield name, row, column

    def _belongs(self, place: Place) -> bool:
        """Whether the book has something in a cell of the file."""
        here = self.file.places.in_book(*place)
        sheet = None if here is None else self.book.sheets.get(here[0])
        return here is not None and sheet is not None and here[1:] in sheet.cells

    def _holds_values(self) -> bool:
        """Whether the program that saved the file calculates.

        What openpyxl writes has no values, but for a few cells with links.
        """
        formulas = [place for place in self._formula_places()]
        stored = self.file.cells.stored
        return 2 * sum(stored[name].get((row, column)) is not None for name, row, column in formulas) > len(
            formulas
        )

    def _formula_places(self) -> Iterator[Place]:
        for name in self.sheets:
            for (row, column), content in self.file.contents[name].items():
                if is_formula(content):
                    yield name, row, column

    def _compare(self, recomputed: Values) -> None:
        """Every formula against our value of it, which follows from the inputs alone."""
        native = self.native
        for sheet, row, column, cell in self.book.formulas():
            self.sheets[sheet.name].formulas += 1
            place = self.file.places.in_file(sheet.name, row, column)
            if place is None or not is_formula(self.file.content(sheet.name, row, column)):
                continue
            assert cell.expression is not None
            values = native[cell.scenario]
            expected, scale = values[cell.expression], scale_of(cell.expression, values)
            self.sheets[sheet.name].compared += 1
            identifier = sheet.ids.get(row, "")
            self._judge(place, identifier, expected, scale, recomputed, self.engine)
            if self.report.stored_values and not self._is_touched(place):
                self._judge(place, identifier, expected, scale, self.file.cells.stored, "stored value")

    def _is_touched(self, place: Place) -> bool:
        """Whether somebody changed what stands in a cell."""
        return bool(self.touched) and place_of(*place) in self.touched

    def _words(self) -> dict[str, Any]:
        """Words that formulas look up, as they stand in the file: whether they are ours is said elsewhere."""
        found = {}
        for key, address in self.book.words().items():
            if self.file.places.in_file(address.sheet, address.row, address.column or 0) is not None:
                content = self.file.content(address.sheet, address.row, address.column or 0)
                found[key] = 0.0 if content is None else content
        return found

    def _compare_with_itself(self, recomputed: Values) -> None:
        """Every number stored in the file against what the formulas of the file make of the others."""
        ids = self.file.places.file_ids
        for place in self._formula_places():
            self.sheets[place[0]].formulas += 1
            if self.report.stored_values:
                self.sheets[place[0]].compared += 1
                entry = ids.get(place[:2])
                scale = self._size_of_terms(place, recomputed)
                identifier, value = "" if entry is None else entry.id, _at(recomputed, place)
                self._judge(place, identifier, value, scale, self.file.cells.stored, "stored value")

    def _size_of_terms(self, place: Place, values: Values) -> float:
        """The size of the largest cell that a formula adds or takes away, if it does nothing else."""
        sizes = [0.0]

        def term(reference: Reference) -> str:
            cell = reference.sheet, reference.row, reference.column
            here = _at(values, cell)
            sizes.append(_size(self.file.contents.get(cell[0], {}).get(cell[1:]) if here is None else here))
            return "x"

        is_sum = _SUM.fullmatch(with_references(self.file.contents[place[0]][place[1:]], place[0], term))
        return max(sizes) if is_sum else 0.0

    def _judge(
        self, place: Place, identifier: str, expected: Any, scale: float, values: Values, source: str
    ) -> None:
        """Compare one value of the file, and count and list it where it differs."""
        sheet, report = self.sheets[place[0]], self.report
        value = _at(values, place)
        if values is self.file.cells.stored and isinstance(expected, str) and isinstance(value, str):
            error = difference(_SIGNS.sub("", expected), _SIGNS.sub("", value))
        else:
            error = difference(expected, value, scale)
        if error > TOLERANCE:
            sheet.mismatches += 1
            if len(report.mismatches) < _SHOWN:
                report.mismatches.append(
                    {
                        "cell": place_of(*place),
                        "id": identifier,
                        "source": source,
                        "expected": _json(expected),
                        "found": _json(value),
                        "relative_error": _json(error),
                    }
                )
        elif math.isfinite(error):
            sheet.max_relative_error = max(sheet.max_relative_error, error)


def _calculable(formula: str, sheets: Container[str]) -> bool:
    """Whether an engine is handed a formula that is not as generated."""
    from mantile.workbook.lint import calculable  # which few files need, and imports openpyxl

    return calculable(formula, sheets)


def edited_names(file: File) -> list[dict[str, Any]]:
    """Defined names against those of the bundle.

    Those that lead elsewhere, are gone, belong to one sheet, or are new.
    """
    edits = []
    left = {name.lower(): name for name in file.book.names}
    for name, scope, text in file.cells.package.names:
        if name.lower().startswith("_xl") or (scope is not None and name in _OF_PRINTING):
            continue  # print areas, filters and the like, which programs add
        shown = f"{name} on sheet {scope}" if scope is not None else name
        if scope is None:
            left.pop(name.lower(), None)
        generated = file.book.names.get(name.lower())
        if scope is not None or generated is None or not _leads_there(file, generated, f"={text}"):
            edits.append({"name": shown, "generated": generated, "found": _json(f"={text}")})
    return edits + [
        {"name": name, "generated": file.book.names[name], "found": None} for name in left.values()
    ]


def _leads_there(file: File, generated: str, text: str) -> bool:
    if file.places.as_laid_out:
        return plain(text) == plain(generated)
    return file.places.file_formula("", text) == file.places.book_formula("", generated)


def _signature(file: File, trusted: Mapping[bytes, str] | None) -> Verdict:
    """What the signature of a file is worth: of what it was made from, and of the digests of its rows.

    A file of 0.18 or before has no digests.
    """
    bundle = file.book.bundle.verdict(trusted)
    if file.made is None or bundle.status == "unsigned":
        return bundle
    rows = file.made.verdict(trusted)
    if rows == bundle or not bundle.ok:
        return bundle
    why = rows.why or "the digests of its rows are not signed by the same key"
    return replace(bundle, status="does not hold", why=why)


def _typed_over(file: File, made: Made, edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Inputs of a file of another version that hold something else than as made.

    Args:
        edits: those that this version knows, with their ids.
    """
    known = {edit["cell"]: edit for edit in edits}
    found = []
    for item in made.typed_over(file.contents):
        cell = place_of(item.sheet, *item.place)
        told = known.get(cell, {"cell": cell, "id": item.id})
        found.append(told | {"generated": item.held, "found": item.found})
    return found


def _text_or_format(item: dict[str, Any]) -> dict[str, Any]:
    """A row of a file of another version of which a text or a number format is another one."""
    sheet, _, cell = item["cell"].partition("!")
    about = {"kind": "text or number format", "severity": SHOWN, "expected": item["generated"]}
    return {"sheet": sheet, "cell": cell, **about, "found": str(item["found"])}


def _stored_truth(file: File) -> Iterator[dict[str, Any]]:
    """That a file of this version says of itself what it was made with, for versions to come.

    The digests are made anew from a fresh layout: in an unsigned file anybody can make those that it carries.
    Values by id would not do: most formulas (What-if, Audit, Layers, Summary) show no figure of
    the graph under its id, and an edit that changes no result is an edit too.
    """
    if file.made is None or file.made.unsigned != made(file.book):
        about = {"kind": "digests", "severity": ANSWER, "expected": "of what it was made with"}
        yield {"sheet": BUNDLE_SHEET, "cell": "B1", **about, "found": "others" if file.made else "none"}


def edited_sheets(file: File) -> list[dict[str, Any]]:
    """Sheets that were hidden, and sheets that were added."""
    ours = file.made.rows if file.made is not None else file.book.sheets
    states = [
        (name, "visible" if name in ours else None, state)
        for name, state in file.cells.package.sheets.items()
    ]
    return [
        {"sheet": name, "generated": generated, "found": state}
        for name, generated, state in states
        if name != BUNDLE_SHEET and state != generated
    ]


def scale_of(node: Node, values: dict[Node, Any]) -> float:
    """The size a result is judged against: its own, or that of the terms it is the sum or difference of.

    The larger of 0 and a difference is judged as the difference is: what rounding leaves of two sizes that
    cancel is 0 in one engine and 1e-16 of them in another.
    """
    if isinstance(node, Span):
        return max(_size(values.get(member)) for member in node.members)
    size = _size(values.get(node))
    if isinstance(node, Quantity):
        return max(size, scale_of(node.body, values) if not isinstance(node.body, Quantity) else 0.0)
    if isinstance(node, Apply) and node.operation in _TERMS:
        chosen = node.operation in _CHOSEN
        terms = [argument for argument in node.arguments if chosen or not isinstance(argument, Quantity)]
        sizes = [_size(values.get(argument)) for argument in node.arguments]
        return max([size, *sizes, *(scale_of(argument, values) for argument in terms)])
    if isinstance(node, Apply) and node.operation == "index" and isinstance(node.arguments[0], Span):
        place = _size(values.get(node.arguments[1]))
        members = node.arguments[0].members
        if 1 <= place <= len(members):
            return max(size, scale_of(members[int(place) - 1], values))
    return size


def difference(expected: Any, actual: Any, scale: float = 0.0) -> float:
    """Relative difference; infinite where one is a text, an error or missing and the other is not."""
    if _error(expected):
        return 0.0 if _error(actual) else math.inf
    if isinstance(expected, str):
        return 0.0 if _as_text(actual) == _as_text(expected) else math.inf
    value = _number(expected)
    if math.isnan(value):
        return 0.0 if _error(actual) else math.inf
    other = _number(actual)
    if math.isnan(other):
        return math.inf
    if value == other:
        return 0.0
    return abs(value - other) / max(abs(value), abs(other), scale)


_LONG_NUMBER = re.compile(r"\d+\.\d{15,}")
_SMALL_NUMBER = re.compile(r"\b\d(?:\.\d+)?e-0\d\b")
_SIGNS = re.compile(r"(?<=\d)[.,'’\u00a0\u202f](?=\d)")
"""Signs in numbers, of thousands and of decimals: texts that a program stored have those of its language."""


def _as_text(value: Any) -> str:
    """A text without what programs change: they drop blanks at its ends, gnumeric writes 2.36 in a text
    with the digits of its longer numbers, and `formulas` 0.000001 as 1e-06.
    """
    text = str("" if value is None else value).strip()
    text = _SMALL_NUMBER.sub(lambda number: f"{Decimal(number[0]):f}", text)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.15g}", text)


def _sheet_of(item: dict[str, Any]) -> str:
    return str(item["cell"].partition("!")[0])


def _at(values: Values, place: Place) -> Any:
    return values.get(place[0], {}).get(place[1:])


def _number(value: Any) -> float:
    """A value of a cell as a number; NaN for texts, errors and empty cells."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _size(value: Any) -> float:
    if value is None or isinstance(value, str | list) or math.isnan(float(value)):
        return 0.0
    return abs(float(value))


_ERROR = re.compile(r"#[A-Z0/_]+[!?]?|Err:\d+")
"""Error values as engines and files write them, such as #DIV/0! or #N/A."""


def _error(value: Any) -> bool:
    if isinstance(value, float):
        return False
    return type(value).__name__ in ("XlError",) or _ERROR.fullmatch(str(value)) is not None


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
