"""Where the cells of a book stand in a file whose rows may have moved.

Rows of workings are found by the id in their id column, other rows by their labels. So a workbook is read in
which somebody inserted rows, or which another version laid out otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.override import OVERRIDE
from mantile.equations.ready_columns import NAME
from mantile.equations.typed import OF_CLASS, USED
from mantile.graph.quantity import Input
from mantile.library.scenario_fields import FORMER_IDS
from mantile.workbook.book import FIRST, HEADS, REPEATING, SHARED, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.references import Formula, Reference, only_reference, with_references
from mantile.workbook.sheets.folding import WHAT_IF

Row = tuple[str, int]
Place = tuple[str, int, int]
_Texts = tuple[tuple[int, str], ...]
Contents = Mapping[str, Mapping[tuple[int, int], Any]]

_ID = re.compile(r"[a-z]\w*(?:\.[^\s.]+)+")
_FORMER = re.compile(rf"(?<![^.])(?:{'|'.join(map(re.escape, FORMER_IDS))})(?![^.])")
_LONGEST = 10_000  # rows of a range that are looked at one by one


@dataclass(frozen=True)
class RowId:
    """What an id column says of a row.

    Args:
        linked: the row repeats a figure of another sheet.
    """

    id: str
    linked: bool


@dataclass(frozen=True)
class _Labels:
    """The fixed texts of a row, and the ids of figures that its cells repeat, with their columns."""

    texts_at: _Texts = ()
    figures_at: _Texts = ()

    def and_text(self, column: int, text: str) -> _Labels:
        return replace(self, texts_at=(*self.texts_at, (column, text)))

    def and_figure(self, column: int, identifier: str | None) -> _Labels:
        return (
            self if identifier is None else replace(self, figures_at=(*self.figures_at, (column, identifier)))
        )

    def all(self) -> _Texts:
        return self.texts_at + self.figures_at

    def figures(self) -> _Texts:
        return self.figures_at

    def texts(self) -> _Texts:
        return self.texts_at

    def label(self) -> _Texts:
        return self.texts_at[:1]

    def label_with_unit(self) -> _Texts:
        return self.texts_at[:2] if [column for column, _ in self.texts_at[:2]] == [0, 1] else ()


class Places:
    """The rows of a book and those of a file.

    Args:
        book: what the file should hold.
        contents: what it holds.
        names: its defined names and what they lead to.
        other_version: it was made by another version: what it lacks is not taken for what stands in its
            place.
    """

    def __init__(
        self, book: EstimateBook, contents: Contents, names: Mapping[str, str], other_version: bool
    ) -> None:
        self.book, self.contents, self.other_version = book, contents, other_version
        id_columns = {name: id_column(sheet) for name, sheet in book.sheets.items()}
        self.book_ids = dict(_book_ids(book, id_columns))
        former = {name: HEADS.index("id") for name in contents if other_version and name not in book.sheets}
        self.file_ids = dict(_file_ids(contents, id_columns | former, other_version))
        self.shared = {
            figure.id
            for figure, address in book.addresses.items()
            if isinstance(figure, Input) and address.column == SHARED
        }
        self.as_laid_out = not other_version and self._unmoved()
        self.rows: dict[Row, Row] = {} if self.as_laid_out else self._rows()
        self.book_rows = {there: here for here, there in self.rows.items()}
        self.cells: dict[Place, Place] = {} if self.as_laid_out else dict(self._selectors(names))
        self.book_cells = {there: here for here, there in self.cells.items()}

    def in_file(self, sheet: str, row: int, column: int) -> Place | None:
        """Where a cell of the book stands in the file; None where the file has no such row."""
        if self.as_laid_out:
            return sheet, row, column
        if (sheet, row, column) in self.cells:
            return self.cells[sheet, row, column]
        there = self.rows.get((sheet, row))
        return None if there is None else (*there, column)

    def in_book(self, sheet: str, row: int, column: int) -> Place | None:
        """Which cell of the book a cell of the file is; None where the book has no such row."""
        if self.as_laid_out:
            return sheet, row, column
        if (sheet, row, column) in self.book_cells:
            return self.book_cells[sheet, row, column]
        here = self.book_rows.get((sheet, row))
        return None if here is None else (*here, column)

    @cached_property
    def unknown(self) -> dict[str, Row]:
        """Ids of the file that the book does not have, and where they stand."""
        book_ids = {entry.id for entry in self.book_ids.values()}
        return {entry.id: row for row, entry in self.file_ids.items() if entry.id not in book_ids}

    @cached_property
    def reordered(self) -> dict[str, list[tuple[int, int]]]:
        """By sheet, rows with ids in another order than in the book: where they should stand and do.

        Rows that were put in between change no order.
        """
        found: dict[str, list[tuple[int, int]]] = {}
        for name in self.book.sheets:
            pairs = sorted(
                (row, there[1])
                for (sheet, row), there in self.rows.items()
                if sheet == there[0] == name
                and self.book_ids.get((sheet, row), 0) == self.file_ids.get(there, 1)
            )
            moved = [
                pair for pair, at in zip(pairs, sorted(at for _, at in pairs), strict=True) if pair[1] != at
            ]
            found |= {name: moved} if moved else {}
        return found

    def book_formula(self, sheet: str, formula: str) -> str:
        """A formula of the book with ids in place of rows."""
        return with_references(formula, sheet, self._book_reference)

    def file_formula(self, sheet: str, formula: str) -> str:
        """A formula of the file with ids in place of rows.

        The same as `book_formula` gives where both read the same cells.
        """
        return with_references(formula, sheet, self._file_reference)

    def repeated(self, sheet: str, content: Any) -> Place | None:
        """The cell of the book that a formula of the file repeats, if it does nothing else."""
        reference = only_reference(content, sheet) if isinstance(content, Formula) else None
        return None if reference is None else self.in_book(reference.sheet, reference.row, reference.column)

    def _unmoved(self) -> bool:
        """Whether every id that the book knows stands where the book has it.

        So must every label of sheets without ids.
        """
        entries = {(sheet, entry) for (sheet, _), entry in self.book_ids.items()}
        with_ids = {sheet for sheet, _ in self.book_ids}
        return all(
            self.book_ids.get((sheet, row)) == entry or (sheet, entry) not in entries
            for (sheet, row), entry in self.file_ids.items()
        ) and all(
            self.contents[name].get(place) == cell.text
            for name, sheet in self.book.sheets.items()
            if name not in with_ids and name in self.contents
            for place, cell in sheet.cells.items()
            if cell.text and cell.entry is None and cell.expression is None
        )

    def _rows(self) -> dict[Row, Row]:
        rows = self._rows_by_id()
        for name, sheet in self.book.sheets.items():
            if name in self.contents:
                rows |= self._rows_by_label(name, sheet, rows)
        return rows

    def _rows_by_id(self) -> dict[Row, Row]:
        there: dict[tuple[str, RowId], Row] = {}
        anywhere: dict[str, Row] = {}
        for (sheet, row), entry in self.file_ids.items():
            there.setdefault((sheet, entry), (sheet, row))
            if not entry.linked:
                anywhere.setdefault(entry.id, (sheet, row))
        rows: dict[Row, Row] = {}
        for (sheet, row), entry in self.book_ids.items():
            place = there.get((sheet, entry))
            if place is None and self.other_version and not entry.linked:
                place = anywhere.get(entry.id)  # its figure may have stood on another sheet
            if place is not None:
                rows[sheet, row] = place
        if not self.other_version:  # an id that somebody typed over
            taken = set(rows.values())
            lost = [row for row in self.book_ids if row not in rows and row not in taken]
            rows |= {row: row for row in lost if self.book_ids.get(row) != self.file_ids.get(row)}
        return rows

    def _rows_by_label(self, name: str, sheet: Sheet, by_id: Mapping[Row, Row]) -> dict[Row, Row]:
        """Rows without an id, by the figures that they repeat and their labels.

        The others go by the order in which they stand.
        """
        taken = {row for other, row in by_id.values() if other == name}
        ours = {
            row: labels
            for row, labels in self._book_labels(sheet).items()
            if (name, row) not in self.book_ids
        }
        theirs = {
            row: labels
            for row, labels in self._file_labels(name).items()
            if row not in taken and not (self.other_version and (name, row) in self.file_ids)
        }
        if not self.other_version and _in_place(ours, theirs):
            return {(name, row): (name, row) for row in ours}
        matches: dict[int, int] = {}
        keys = [_Labels.all, _Labels.figures, _Labels.texts]
        if name in ("Audit", "Capacity"):  # their rows begin with what is checked, or asked
            keys.append(_Labels.label)
        if name == WHAT_IF:  # and here with what is varied
            keys.append(_Labels.label_with_unit)
        for key in keys:
            matches |= _matched(ours, theirs, key, matches)
        used = set(matches.values())
        left = [row for row in sorted(ours) if row not in matches]
        right = [row for row in sorted(theirs) if row not in used]
        matcher = SequenceMatcher(None, [ours[row] for row in left], [theirs[row] for row in right], False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal" or (kind == "replace" and not self.other_version):
                matches |= dict(zip(left[a:b], right[c:d], strict=False))
        return {(name, row): (name, other) for row, other in matches.items()}

    def _book_labels(self, sheet: Sheet) -> dict[int, _Labels]:
        """What tells the rows of a sheet of the book from each other; a number in a list does not."""
        rows: dict[int, _Labels] = {}
        for (row, column), cell in sorted(sheet.cells.items()):
            labels = rows.get(row, _Labels())
            if cell.expression is not None and cell.entry is None:
                formula = self.book.formula_text(sheet, cell)
                labels = labels.and_figure(column, self._figure(sheet.name, formula, self.book_ids))
            elif cell.text and cell.entry is None and not cell.text.isdigit():
                labels = labels.and_text(column, cell.text)
            elif cell.number is None and cell.entry is None and cell.expression is None:
                continue  # only a style
            rows[row] = labels
        return rows

    def _file_labels(self, name: str) -> dict[int, _Labels]:
        """What tells the rows of a sheet of the file from each other."""
        rows: dict[int, _Labels] = {}
        for (row, column), content in sorted(self.contents[name].items()):
            labels = rows.get(row, _Labels())
            if isinstance(content, Formula):
                labels = labels.and_figure(column, self._figure(name, content, self.file_ids))
            elif isinstance(content, str) and content and not content.isdigit():
                labels = labels.and_text(column, content)
            rows[row] = labels
        return rows

    def _figure(self, sheet: str, formula: str, ids: Mapping[Row, RowId]) -> str | None:
        """The id of the figure that a formula repeats, if it does nothing else."""
        reference = only_reference(formula, sheet)
        entry = None if reference is None else ids.get((reference.sheet, reference.row))
        return None if entry is None else entry.id

    def _selectors(self, names: Mapping[str, str]) -> Iterator[tuple[Place, Place]]:
        """Cells in which inputs are typed, of sheets without ids: where the row of the input leads, or its
        defined name. And names of ready columns, which stand at the heads of columns.
        """
        fields = {
            figure.id: f"in_{field}" for field, figure in self.book.estimate.equations.inputs.named().items()
        }
        addresses = {
            figure.id: address for figure, address in self.book.addresses.items() if isinstance(figure, Input)
        }
        for (identifier, scenario), place in self.book.input_cells.items():
            address = addresses.get(identifier)
            if identifier == NAME.id and place[:2] not in self.rows and place[0] in self.contents:
                yield place, place
            if scenario or place[:2] in self.book_ids or address is None or identifier not in fields:
                continue
            linking = self.rows.get((address.sheet, address.row))
            content = None if linking is None else self.contents[linking[0]].get((linking[1], FIRST))
            named = names.get(fields[identifier], "")
            for sheet, text in ((address.sheet, content), (address.sheet, Formula(f"={named}"))):
                reference = only_reference(text, sheet) if isinstance(text, Formula) else None
                if reference is not None and (reference.sheet, reference.row) not in self.file_ids:
                    yield place, (reference.sheet, reference.row, reference.column)
                    break

    def _book_reference(self, reference: Reference) -> str:
        def token(sheet: str, row: int, column: int) -> str:
            entry = self.book_ids.get((sheet, row))
            return self._token(entry, (sheet, row, column), column, reference.dollar)

        def counts(sheet: str, row: int) -> bool:
            return (sheet, row) in self.rows or (sheet, row) in self.book_ids

        return _written(reference, token, counts)

    def _file_reference(self, reference: Reference) -> str:
        contents = self.contents.get(reference.sheet, {})
        columns = range(reference.column, reference.last_column + 1)

        def token(sheet: str, row: int, column: int) -> str:
            place = self.in_book(sheet, row, column)
            entry = self.file_ids.get((sheet, row))
            if place is not None and (entry is None or entry.id in self.unknown):
                entry = self.book_ids.get(place[:2], entry)  # an id that somebody typed over
            return self._token(entry, place, column, reference.dollar)

        def counts(sheet: str, row: int) -> bool:
            return (sheet, row) in self.book_rows or any((row, column) in contents for column in columns)

        return _written(reference, token, counts)

    def _token(self, entry: RowId | None, place: Place | None, column: int, dollar: str) -> str:
        """A cell by its id and column, or by its place in the book where it has none."""
        letter = str(xl_col_to_name(column))
        if entry is not None:
            shared = entry.id in self.shared and (entry.linked or column == SHARED)
            return f"[{entry.id}]" if shared else f"[{entry.id}]{dollar}{letter}"
        return "[?]" if place is None else f"[{place[0]}!{xl_col_to_name(place[2])}{place[1] + 1}]"


def _written(reference: Reference, token: Any, counts: Any) -> str:
    """A reference by the tokens of its cells; of a range those of every row that counts."""
    sheet, first, last = reference.sheet, reference.column, reference.last_column

    def row(number: int) -> str:
        start = token(sheet, number, first)
        return str(start) if first == last else f"{start}:{token(sheet, number, last)}"

    if reference.row == reference.last_row:
        return row(reference.row)
    if reference.last_row - reference.row > _LONGEST:
        return "[?]"
    numbers = range(reference.row, reference.last_row + 1)
    return "{" + ",".join(row(number) for number in numbers if counts(sheet, number)) + "}"


def _book_ids(book: EstimateBook, columns: Mapping[str, int | None]) -> Iterator[tuple[Row, RowId]]:
    for name, sheet in book.sheets.items():
        column = columns[name]
        for row, identifier in sheet.ids.items():
            if column is not None and (cell := sheet.cells.get((row, column))) and cell.text == identifier:
                section = sheet.cells.get((row, 0))
                yield (name, row), RowId(identifier, section is not None and section.text in REPEATING)


def id_column(sheet: Sheet) -> int | None:
    """The column in which a sheet says the ids of its rows."""
    columns = Counter(
        column
        for column in range(SHARED + 1)
        for row, identifier in sheet.ids.items()
        if (cell := sheet.cells.get((row, column))) is not None and cell.text == identifier
    )
    return columns.most_common(1)[0][0] if columns else None


def _file_ids(
    contents: Contents, columns: Mapping[str, int | None], other_version: bool
) -> Iterator[tuple[Row, RowId]]:
    for name, cells in contents.items():
        column = columns.get(name)
        if column is None:
            continue
        for (row, at), text in cells.items():
            if (
                at == column
                and isinstance(text, str)
                and not isinstance(text, Formula)
                and _ID.fullmatch(text)
            ):
                identifier = _present_id(text) if other_version else text
                yield (name, row), RowId(identifier, cells.get((row, 0)) in REPEATING)


def _present_id(identifier: str) -> str:
    """The id that a row has today; copies of inputs, such as those of a case, are renamed with them."""
    return _FORMER.sub(lambda former: FORMER_IDS[former[0]], identifier)


def typed_id(identifier: str) -> str:
    """The id of an input in place of that of what is used of it."""
    if not identifier.startswith(USED):
        return identifier
    name = identifier.removeprefix(USED)
    if name.startswith(OF_CLASS):
        return f"classes.{name.removeprefix(OF_CLASS)}"
    return f"{name}{OVERRIDE}" if "." in name else f"inputs.{name}"


def _matched(
    ours: Mapping[int, _Labels],
    theirs: Mapping[int, _Labels],
    key: Callable[[_Labels], _Texts],
    matches: Mapping[int, int],
) -> dict[int, int]:
    """Rows, of those not matched yet, whose key stands once on either side."""
    used = set(matches.values())
    left = _once({row: key(labels) for row, labels in ours.items() if row not in matches})
    right = _once({row: key(labels) for row, labels in theirs.items() if row not in used})
    return {row: right[labels] for labels, row in left.items() if labels in right}


def _in_place(ours: Mapping[int, _Labels], theirs: Mapping[int, _Labels]) -> bool:
    """Whether no row was moved, whatever was typed over its labels."""
    changed = {row for row, labels in ours.items() if theirs.get(row) != labels}
    there = {theirs[row] for row in changed & theirs.keys()} - {_Labels()}
    return ours.keys() == theirs.keys() and there.isdisjoint(ours[row] for row in changed)


def _once(rows: Mapping[int, _Texts]) -> dict[_Texts, int]:
    counts = Counter(rows.values())
    return {labels: row for row, labels in rows.items() if labels and counts[labels] == 1}
