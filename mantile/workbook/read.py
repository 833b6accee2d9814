"""A workbook file back to what it was made from: bundle, inputs as they stand now, texts of its formulas.

Reads files as XlsxWriter, LibreOffice and openpyxl leave them, of this version and of older ones. Nothing in
a file is executed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from mantile.equations.ready_columns import NAME
from mantile.equations.signature import SIGNATURE
from mantile.graph.quantity import Input
from mantile.library.documents import parse_json
from mantile.library.errors import InputError, quoted
from mantile.library.typed_numbers import plain_number
from mantile.workbook.book import FIRST
from mantile.workbook.bundle import BUNDLE_SHEET, GENERATOR, Bundle
from mantile.workbook.estimate_book import TAKEN, EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.made import Made
from mantile.workbook.package import Package, open_package
from mantile.workbook.package_part import letters
from mantile.workbook.places import Place, Places, typed_id
from mantile.workbook.references import Formula, one_cell, plain

LARGEST = 1e15  # of any input in its unit: products of several stay numbers
Contents = dict[str, dict[tuple[int, int], Any]]


@dataclass
class Cells:
    """What a file holds: formulas or constants by sheet and cell, and the values as stored."""

    contents: Contents
    stored: Contents
    package: Package = field(default_factory=Package)


@dataclass
class File:
    """An opened workbook and the book it should be.

    `made` is what it says that it was made with; files of 0.18 and before do not say. Methods take the sheet,
    row and column at which a cell stands in the book, and find it in the file by its id.
    """

    path: Path
    book: EstimateBook
    cells: Cells
    made: Made | None = None

    @property
    def contents(self) -> Contents:
        """Formulas or constants by sheet and cell, as they stand in the file."""
        return self.cells.contents

    @cached_property
    def other_version(self) -> bool:
        """Whether another version of Mantile made it."""
        return self.book.bundle.generator != GENERATOR

    def untold(self, done: str) -> str | None:
        """What cannot be told of a file of another version that does not say what it was made with.

        Args:
            done: what was done with the file.
        """
        if not self.other_version or self.made is not None:
            return None
        return (
            f"made by {self.book.bundle.generator:.60}: {done}; whether formulas were edited cannot be told; "
            "make it anew (mantile import, then mantile build)"
        )

    @cached_property
    def as_laid_out(self) -> bool:
        """Whether every cell of the book stands in the file where the book has it."""
        return self.places.as_laid_out

    @cached_property
    def places(self) -> Places:
        """Where the cells of the book stand in the file."""
        names = {name: text for name, scope, text in self.cells.package.names if scope is None}
        return Places(self.book, self.contents, names, self.other_version)

    def content(self, sheet: str, row: int, column: int) -> Any:
        """A formula or constant; None if the cell is empty or the file has none."""
        return self._at(self.cells.contents, sheet, row, column)

    def stored(self, sheet: str, row: int, column: int) -> Any:
        """The value stored with a cell."""
        return self._at(self.cells.stored, sheet, row, column)

    def cell_name(self, sheet: str, row: int, column: int) -> str:
        """A cell as people write it, where it stands in the file."""
        return place_of(*(self.places.in_file(sheet, row, column) or (sheet, row, column)))

    def is_as_printed(self, place: Place) -> bool:
        """Whether the file has the formula of the book in a cell of the book.

        It reads the same figures and does the same with them.
        """
        sheet, content = self.book.sheets[place[0]], self.content(*place)
        return isinstance(content, Formula) and self._same(
            place, self.book.formula_text(sheet, sheet.cells[place[1:]]), content
        )

    def follows(self, place: Place) -> tuple[str, int] | None:
        """The input, and its scenario, whose value a cell takes because it repeats it; None if not."""
        content, cell = self.content(*place), self.book.sheets[place[0]].cells[place[1:]]
        if not isinstance(content, Formula):
            return None
        if cell.follows is not None and self.is_as_printed(place):
            return cell.follows
        repeated = self.places.repeated(self.file_sheet(place), content) if self.other_version else None
        return None if repeated is None else self._input_at(repeated)

    def file_sheet(self, place: Place) -> str:
        """The sheet of the file on which a cell of the book stands; another version may have another."""
        there = self.places.in_file(*place)
        return place[0] if there is None else there[0]

    def _input_at(self, place: Place) -> tuple[str, int] | None:
        """The input and the scenario whose value a cell of the book shows, typed there or linked."""
        if place in self._typed_at:
            return self._typed_at[place]
        row, scenario = self.places.book_ids.get(place[:2]), place[2] - FIRST
        identifier = "" if row is None else typed_id(row.id)
        is_input = identifier in self.inputs and 0 <= scenario < self.book.columns
        return (identifier, scenario) if is_input else None

    def lacks(self, place: Place) -> bool:
        """Whether the file has no cell for what stands there in the book; another version, no such column."""
        there = self.places.in_file(*place)
        return there is None or (self.other_version and (there[0], there[2]) not in self._columns)

    @cached_property
    def _columns(self) -> frozenset[tuple[str, int]]:
        """Columns in which something stands, with their sheets."""
        return frozenset((name, column) for name, cells in self.contents.items() for _, column in cells)

    def typed_name(self, scenario: int) -> str:
        """The name that was typed over a ready column; nothing of others."""
        place = self.book.input_cells.get((NAME.id, scenario))
        name = None if place is None else self.content(*place)
        return "" if name is None or isinstance(name, Formula) else str(name)

    @cached_property
    def unnamed(self) -> frozenset[int]:
        """Ready columns without a name: what stands in them does not count."""
        return frozenset(column for column in self.book.ready if not self.typed_name(column))

    def scenario_name(self, scenario: int) -> str:
        """What a scenario, or a further case, is called."""
        columns = self.book.estimate.columns
        if scenario < len(columns):
            return self.typed_name(scenario) or columns[scenario].name
        part = self.book.cases[scenario - len(columns)].part
        return "a point of the sweep" if part == "Sweep" else f"a case of {part}"

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """All inputs by id: those of the graph, and those of the workbook itself."""
        return {
            figure.id: figure for figure in self.book.estimate.equations.all_inputs()
        } | self.book.own_inputs

    @cached_property
    def generated(self) -> list[dict[str, Any]]:
        """Inputs as generated, of every scenario and further case."""
        return self.book.generated_inputs()

    @cached_property
    def _typed_at(self) -> dict[Place, tuple[str, int]]:
        """Inputs by the cells in which they are typed; those all scenarios share are the base's."""
        return {place: entry for entry, place in reversed(self.book.input_cells.items())}

    def _same(self, place: Place, expected: str, content: Formula) -> bool:
        if self.places.as_laid_out:
            return content == expected or plain(content) == plain(expected)
        formula = self.places.file_formula(self.file_sheet(place), one_cell(content))
        generated = self.places.book_formula(place[0], one_cell(expected))
        return formula == generated

    def _at(self, contents: Contents, sheet: str, row: int, column: int) -> Any:
        if self.as_laid_out:
            return contents[sheet].get((row, column)) if sheet in contents else None
        place = self.places.in_file(sheet, row, column)
        return None if place is None else contents.get(place[0], {}).get(place[1:])


_SORTED = 2  # rows in each other's place may be edits; more are a sorted sheet


def open_file(path: Path) -> File:
    """Open a workbook and lay out anew what its bundle says it should be.

    Raises:
        InputError: if it is no workbook, is truncated, or was not made by Mantile.
    """
    cells = read_cells(path)
    contents = cells.contents
    if BUNDLE_SHEET not in contents:
        raise InputError(
            f"{path}: sheet {BUNDLE_SHEET} is missing: not a workbook made by Mantile, or its bundle was "
            "removed"
        )
    texts = _texts(contents.pop(BUNDLE_SHEET), path)
    name = f"{path}: sheet {BUNDLE_SHEET}"
    bundle = Bundle.parse(parse_json(texts[0], name), name)
    made = Made.parse(texts[1], f"{name}, column B") if texts[1] else None
    file = File(path, lay_out(bundle.estimate(), bundle), cells, made)
    missing = [name for name in file.book.sheets if name not in contents]
    if missing and not file.other_version:
        _require_names(file, missing)
        raise InputError(f"{path}: sheet {missing[0]} is missing; expected {', '.join(file.book.sheets)}")
    _require_order(file)
    return file


def _require_order(file: File) -> None:
    """Refuse a file of which a sheet was sorted: formulas that are as they were read other rows.

    Where rows were moved by hand programs let formulas follow, and all is well.
    """
    if file.other_version or file.as_laid_out:
        return
    moved = {name: rows for name, rows in file.places.reordered.items() if len(rows) > _SORTED}
    if moved and any(
        file.content(sheet.name, row, column) == file.book.formula_text(sheet, cell)
        and not file.is_as_printed((sheet.name, row, column))
        for sheet, row, column, cell in file.book.formulas()
    ):
        name, rows = next(iter(moved.items()))
        row, there = rows[0]
        raise InputError(
            f"{file.path}: rows of {name} were sorted: {file.places.book_ids[name, row].id} of row {row + 1} "
            f"stands in row {there + 1}, and {len(rows) - 1:,} more; expected the order in which they were "
            "made, as formulas go by it: undo the sorting, or type the edits into the file as it was"
        )


def _require_names(file: File, missing: list[str]) -> None:
    """Refuse a file in which sheets of ours go by other names, with both names of each.

    A sheet is known by its texts: most of them stand where they should.
    """
    others = [name for name in file.contents if name not in file.book.sheets]
    renamed = []
    for name in missing:
        texts = {place: cell.text for place, cell in file.book.sheets[name].cells.items() if cell.text}
        same = {
            other: sum(file.contents[other].get(place) == text for place, text in texts.items())
            for other in others
        }
        other = max(same, key=same.__getitem__, default=None)
        if other is not None and 2 * same[other] > len(texts):
            renamed.append(f"{name} is called {quoted(other)}")
    if renamed:
        raise InputError(
            f"{file.path}: sheets were renamed: {', '.join(renamed)}; expected their own names, which "
            "formulas of the file follow when they are given back"
        )


def _texts(chunks: dict[tuple[int, int], Any], path: Path) -> tuple[str, str]:
    """The bundle and what the file was made with, as the hidden sheet has them in its two columns."""
    if any(isinstance(chunk, Formula) for chunk in chunks.values()):
        raise InputError(f"{path}: sheet {BUNDLE_SHEET}: holds a formula; expected the text of the bundle")
    columns: tuple[list[str], list[str]] = ([], [])
    for (_, column), chunk in sorted(chunks.items()):
        columns[min(column, 1)].append(str(chunk))
    return "".join(columns[0]), "".join(columns[1])


def read_cells(path: Path) -> Cells:
    """All cells of a workbook, whoever wrote it.

    Raises:
        InputError: if it is no workbook, or one that no reader should be handed; see `open_package`.
    """
    package = open_package(path)
    contents = package.contents
    stored = {
        sheet: package.stored.get(sheet, {})
        | {place: value for place, value in cells.items() if not isinstance(value, Formula)}
        for sheet, cells in contents.items()
    }
    return Cells(contents, stored, package)


def typed_inputs(file: File) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Inputs as they stand in the file, per scenario and then per further case.

    Also a list of those that were edited.

    An input that follows its default has no value here. One that the file of another version does not have is
    as by default.

    Raises:
        InputError: for a cell whose content its input cannot be, such as a text where a number belongs.
    """
    book = file.book
    cells: list[list[tuple[str, Place]]] = [[] for _ in range(book.columns + len(book.cases))]
    for (identifier, scenario), place in book.input_cells.items():
        cells[scenario].append((identifier, place))
    values: list[dict[str, Any]] = []
    edited: list[dict[str, Any]] = []
    for scenario, here in enumerate(cells):
        values.append({} if scenario < book.columns else dict(book.inputs(scenario)))
        edits = [
            edit
            for identifier, place in here
            if not _is_taken(file, place)
            for edit in _typed(file, identifier, scenario, place, values)
        ]
        if file.other_version:
            edits = _without_defaults(file, scenario, values[scenario], edits)
        edited += edits
    for identifier, place in cells[0]:  # these follow a plan, whose own cells come first
        if _is_taken(file, place):
            edited += _typed(file, identifier, 0, place, values)
    return values, edited


def _is_taken(file: File, place: Place) -> bool:
    """Whether a cell of the base follows the plan that a decision takes, as generated."""
    follows = file.book.sheets[place[0]].cells[place[1:]].follows
    return follows is not None and follows[1] == TAKEN


def typed_beside(file: File) -> list[dict[str, Any]]:
    """What was typed into the column that stands ready for a further scenario.

    As `typed_inputs` lists edits. A file of another version may have no such column.
    """
    if file.other_version:
        return []
    book, column = file.book, FIRST + file.book.columns
    edits: list[dict[str, Any]] = []
    for name in book.estimate.equations.sheets:
        if name not in book.sheets:
            continue
        sheet = book.sheets[name]
        for (row, at), cell in sheet.cells.items():
            if at != column or cell.entry is None:
                continue
            content = file.content(name, row, at)
            if content is None or isinstance(content, Formula):
                continue
            edits.append(
                {
                    "id": cell.entry.id,
                    "cell": file.cell_name(name, row, at),
                    "scenario": "a further one",
                    "generated": None if cell.expression is None else book.formula_text(sheet, cell),
                    "found": content,
                }
            )
    return edits


def _typed(
    file: File, identifier: str, scenario: int, place: Place, values: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Read the cell of an input into the values of its scenario; if it was edited, say so."""
    figure, typed, generated = file.inputs[identifier], values[scenario], file.generated[scenario]
    sheet = file.book.sheets[place[0]]
    cell, content = sheet.cells[place[1:]], file.content(*place)
    followed = file.follows(place)
    if followed is not None:
        value = file.book.followed(followed, values)
        if value is not None:  # else it follows its default
            typed[identifier] = value
        return
    if file.lacks(place) or (file.other_version and isinstance(content, Formula)):
        typed |= {identifier: generated[identifier]} if identifier in generated else {}
        return
    value = coerced(figure, content, f"{file.path}: {file.cell_name(*place)}")
    before = generated.get(identifier, figure.value)
    if isinstance(before, float) and same(value, before):
        value = before  # some programs save fifteen digits
    typed[identifier] = value
    had_value = identifier in generated or figure.follows is None
    differs = had_value and not same(value, before) and not (scenario and figure.shared)
    differs = differs and not identifier.startswith(SIGNATURE)  # who signs changes nothing
    if differs or cell.expression is not None:
        yield {
            "id": identifier,
            "cell": file.cell_name(*place),
            "scenario": file.scenario_name(scenario),
            "generated": before if differs else file.book.formula_text(sheet, cell),
            "found": value,
        }


def _without_defaults(
    file: File, scenario: int, typed: dict[str, Any], edits: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A value where this version has a formula is no edit if the version of the file worked it out.

    Where both come to the same the input follows.
    """
    stated = {edit["id"]: edit for edit in edits}
    defaults = {
        figure: stated[figure.id]
        for figure in file.book.estimate.equations.all_inputs()
        if figure.follows is not None and figure.id in stated
    }
    if scenario >= file.book.columns or not defaults:
        return edits
    left = {identifier: value for identifier, value in typed.items() if identifier not in stated}
    given = left | {edit["id"]: edit["found"] for edit in edits if edit not in defaults.values()}
    values = file.book.estimate.program.run(given)
    for figure, edit in defaults.items():
        if _is_default(figure, edit["found"], values[figure]):
            typed.pop(figure.id)
            stated.pop(figure.id)
    return list(stated.values())


def followed_inputs(
    file: File, values: Sequence[Mapping[str, Any]], edits: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Inputs that do not follow their default in this version, or that were stated or edited in the file."""
    edited = {edit["id"] for edit in edits}
    following = {
        figure.id
        for figure in file.book.estimate.equations.all_inputs()
        if figure.follows is not None and figure.id not in edited
    }
    return [
        {
            identifier: value
            for identifier, value in typed.items()
            if identifier not in following or identifier in file.generated[scenario]
        }
        for scenario, typed in enumerate(values)
    ]


def _is_default(figure: Input, value: Any, default: Any) -> bool:
    """Whether a value is the default; that of a whole number may have been rounded."""
    if isinstance(value, str) or isinstance(default, str):
        return bool(value == default)
    return abs(value - default) < 1 if figure.integer else same(value, float(default))


def coerced(figure: Input, content: Any, where: str) -> Any:
    """What a cell holds as a value of its input: texts of numbers as numbers, choices in their own spelling.

    Raises:
        InputError: naming the cell, if the input cannot be that.
    """
    if figure.id.startswith(SIGNATURE):
        return "" if content is None or isinstance(content, Formula) else str(content)
    if figure is NAME and not isinstance(content, Formula):
        return "" if content is None else str(content)
    if content is None:
        if figure.value is None:
            return None
        raise InputError(f"{where} ({figure.id}): the cell is empty; expected {_expected(figure)}")
    if isinstance(content, Formula):
        raise InputError(
            f"{where} ({figure.id}): holds the formula {content!r:.60}; expected {_expected(figure)}"
        )
    if isinstance(figure.value, str):
        if content in figure.choices:  # two of which may differ in case alone
            return content
        choices = {str(choice).lower(): choice for choice in figure.choices}
        if str(content).lower() not in choices:
            raise InputError(f"{where} ({figure.id}): holds {content!r:.60}; expected {_expected(figure)}")
        return choices[str(content).lower()]
    try:
        number = (
            math.nan
            if isinstance(content, bool) or not isinstance(content, str | int | float)
            else _pasted(content, f"{where} ({figure.id})")
            if isinstance(content, str)
            else float(content)
        )
    except InputError:
        raise
    except (ValueError, OverflowError):
        number = math.nan
    if not abs(number) < LARGEST:  # NaN is not, either
        raise InputError(f"{where} ({figure.id}): holds {content!r:.60}; expected {_expected(figure)}")
    return number


def _pasted(text: str, where: str) -> float:
    """The number that a text was pasted for: 1,024 and 70% and 0,65, full-width digits, blanks around it.

    Raises:
        InputError: for a text that can be read in two ways.
        ValueError: for one that is no number.
    """
    plain = normalize("NFKC", text).strip()
    number, percent = plain.removesuffix("%").rstrip(), plain.endswith("%")
    try:
        number = plain_number(number)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if "_" in number:
        raise ValueError(number)
    return float(number) / 100 if percent else float(number)


def _expected(figure: Input) -> str:
    if figure is NAME:
        return "a name"
    if isinstance(figure.value, str):
        return "one of " + ", ".join(str(choice) for choice in figure.choices)
    return f"a number under {LARGEST:g}{'' if figure.unit == '1' else f' in {figure.unit}'}"


def same(left: Any, right: Any) -> bool:
    """Whether a cell still holds what was written to it; files keep sixteen digits."""
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return bool(left == right)
    return bool(abs(left - right) <= 1e-12 * max(abs(left), abs(right)))


def place_of(sheet: str, row: int, column: int) -> str:
    """A cell as people write it; row and column from 0."""
    return f"{sheet}!{letters(column + 1)}{row + 1}"
