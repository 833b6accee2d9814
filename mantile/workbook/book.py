"""A workbook before it is written: sheets of cells, each formula cell holding the expression it shows.

The writer prints these expressions, the native engine computes them, and verification compares a file with
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal, cast

from xlsxwriter.utility import xl_col_to_name

from mantile.graph.evaluate import Program
from mantile.graph.excel import Cells, formula
from mantile.graph.quantity import (
    Cases,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    Table,
    Value,
    Words,
    ancestors,
)
from mantile.workbook.charts import Chart
from mantile.workbook.style import Style
from mantile.workbook.style import value as value_style

Family = Literal["front", "inputs", "workings", "outputs", "control"]
KEYS = 1  # column of the keys of things, where other rows say what they are
SHARED, FIRST = 6, 7  # columns: values shared by all scenarios, then one per scenario
HEADS = ("section", "quantity", "unit", "how it is worked out", "source", "id")  # of sheets of workings
HEAD = 2  # rows over a block of workings: air and its title
HEAD_ROW = 3  # of sheets of workings, with the names of their columns
LINKED_IN = "Linked in"  # the section of rows that repeat figures of other sheets
ANSWERS = "Answers"  # the section of rows that repeat, at the top, what the sheet or part comes to
REPEATING = (LINKED_IN, ANSWERS)
OF_LETTER = " · "  # between the letter of a scenario and what its column of a group holds
NOT_AVAILABLE = "=NA()"  # in place of a number that nobody knows: what follows from it is an error too
A4, A3 = 9, 8  # sizes of paper
ACROSS = -1  # as a cell's scenario: its expression names the scenarios itself


@dataclass(frozen=True)
class CellAddress:
    """Where a figure stands: at a fixed place, or in columns of the scenarios, of which it says the first."""

    sheet: str
    row: int
    column: int | None = None
    absolute: bool = False
    first: int = FIRST


@dataclass(frozen=True)
class Case:
    """A further column of the base scenario in a part of a sheet, where some figures are worked out again.

    It says where the column stands, and has the inputs of its own.
    """

    sheet: str
    column: int
    part: str
    inputs: dict[str, Any]


@dataclass(slots=True)
class Cell:
    """What stands in a cell.

    `expression` is printed and computed for `scenario`: one of the columns, behind them a further case, or
    ACROSS, which looks across all of them. `entry` is the input that a user may type here. `reference` is
    printed instead of the expression where a cell repeats the cell in which the input is typed, such as the
    selector on Summary. Until somebody types over it a cell may follow: `follows` says which input of which
    scenario. `note` shows when the pointer rests on the cell, `tip` where the cell is selected. A `number`
    that nobody knows is NaN, and stands in the file as `NOT_AVAILABLE`.
    """

    style: Style
    text: str | None = None
    number: float | None = None
    expression: Node | None = None
    scenario: int = 0
    entry: Input | None = None
    reference: str | None = None
    follows: tuple[str, int] | None = None
    link: str | None = None
    note: str | None = None
    room: Room | None = None
    tip: str = ""


@dataclass(frozen=True)
class Room:
    """Room for free text.

    Args:
        title, message: shown where the cell is selected.
        most: characters that may be typed.
    """

    title: str
    message: str
    most: int


@dataclass
class Sheet:
    """A sheet: cells and everything about them that is not a value.

    Args:
        ids, sections: of rows; the cell of a section may hold only as much of its title as can be seen.
        tables: first and last row of each, and its first column: its columns are no scenarios.
        answers: rows at the top of the sheet or of a part, always open, that repeat figures.
        parts: rows of their heads.
        folded_columns: those of tables that are folded away.
        folds: first and last row of every group that is folded away until somebody opens its outline. Excel
            opens none on a protected sheet, so a sheet with folds is not protected: its formulas ask before
            they are typed over.
        breaks: first rows of blocks before which a page ends whatever it holds; the sheet is then printed at
            the smallest scale at which its texts can be read. Other pages end where blocks say.
    """

    name: str
    family: Family
    purpose: str = ""
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    widths: list[float] = field(default_factory=list)
    heights: dict[int, float] = field(default_factory=dict)
    freeze: tuple[int, int] | None = None
    autofilter: tuple[int, int, int, int] | None = None
    protected: bool = True
    folds: list[tuple[int, int]] = field(default_factory=list)
    repeat_rows: tuple[int, int] | None = None
    paper: int | None = None  # 8 is A3, 9 is A4; by default what the sheet fits
    one_page: bool = False
    one_page_wide: bool = False
    breaks: list[int] = field(default_factory=list)
    print_area: tuple[int, int, int, int] | None = None
    charts: list[tuple[int, int, Chart]] = field(default_factory=list)
    conditional: list[tuple[tuple[int, int, int, int], dict[str, Any]]] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    links: dict[Node, CellAddress] = field(default_factory=dict)
    answers: dict[Named, int] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    sections: dict[int, str] = field(default_factory=dict)
    tables: list[tuple[int, int, int]] = field(default_factory=list)
    folded_columns: list[int] = field(default_factory=list)
    default_height: float | None = 18  # None: as high as the text in a row needs

    def set_cell(self, row: int, column: int, cell: Cell) -> None:
        """Place a cell; a place is used once."""
        if (row, column) in self.cells:
            raise AssertionError(f"{self.name}: two cells at {xl_col_to_name(column)}{row + 1}")
        self.cells[row, column] = cell

    def set_text(self, row: int, column: int, text: str, style: Style, link: str | None = None) -> None:
        """A label. Always written as text, whatever it begins with."""
        self.set_cell(row, column, Cell(style, text=text, link=link))

    def set_formula(
        self,
        row: int,
        column: int,
        expression: Node,
        style: Style,
        scenario: int = 0,
        link: str | None = None,
    ) -> None:
        """A live cell for a scenario."""
        self.set_cell(row, column, Cell(style, expression=expression, scenario=scenario, link=link))

    def unfold(self, row: int) -> None:
        """Open a row, and the head of its block, where an outline folds them away."""
        head = next((start for start, last in self.blocks if start <= row <= last), row)
        for place in (*range(head, min(head + HEAD, row)), row):
            for fold in [fold for fold in self.folds if fold[0] <= place <= fold[1]]:
                self.folds.remove(fold)
                parts = (fold[0], place - 1), (place + 1, fold[1])
                self.folds += [(first, last) for first, last in parts if first <= last]

    def is_in_table(self, row: int, column: int) -> bool:
        """Whether a cell belongs to a table, in which columns are no scenarios."""
        return any(first <= row <= last and column >= start for first, last, start in self.tables)

    def set_style(self, row: int, first: int, last: int, style: Style) -> None:
        """Empty cells that carry a style."""
        for column in range(first, last + 1):
            if (row, column) not in self.cells:
                self.set_cell(row, column, Cell(style))


@dataclass(frozen=True)
class Document:
    """What a file says of itself.

    Args:
        title: of the file's properties.
        comment: of the file's properties: which program made it, from what.
        footer: on the right of each page, before its number.
        company: on the left of each page, before the name of the file.
        opens_on: the sheet that is shown first.
        palette: colours by those of ours that they replace.
        made_on: the day on which it was made, as 2026-11-23; today where it is not said.
        hidden: texts that no reader is meant to see, by the name of their sheet.
    """

    title: str
    comment: str
    footer: str
    company: str = ""
    opens_on: str | None = None
    palette: Mapping[str, str] = field(default_factory=dict)
    made_on: str | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)


class Book:
    """Sheets, with the places of the figures that stand on them.

    Args:
        document: what the file says of itself.
        columns: scenarios, each with a column of its own on sheets of workings.
    """

    def __init__(self, document: Document, columns: int = 1) -> None:
        self.document = document
        self.columns = columns
        self.sheets: dict[str, Sheet] = {}
        self.addresses: dict[Node, CellAddress] = {}
        self.input_cells: dict[tuple[str, int], tuple[str, int, int]] = {}
        self.cells: dict[Input, Input] = {}  # what stands for the cell of an input, wherever that is
        self.used: dict[Named, Quantity] = {}  # what formulas read of an input
        self.own_inputs: dict[str, Input] = {}  # inputs that belong to the workbook, not to the equations
        self.names: dict[str, str] = {}
        self.cases: list[Case] = []
        self._blocks: dict[Span, tuple[CellAddress, CellAddress]] = {}
        self._printed: dict[int, str] | None = None  # formulas by their cell, once all figures stand

    def all_stand(self) -> None:
        """Say that every figure has its place: formulas stay what they are from now on."""
        self._printed = {}

    def library_choices(self, entry: Input) -> Span | None:
        """The block of cells that an input is chosen from; None for inputs with a list of their own."""
        return None

    def add_case(self, sheet: Sheet, column: int, part: str, inputs: dict[str, Any]) -> int:
        """A further case of the base scenario in a column of a part; what its cells take as `scenario`."""
        self.cases.append(Case(sheet.name, column, part, inputs))
        return self.columns + len(self.cases) - 1

    def inputs(self, column: int) -> dict[str, Any]:
        """Inputs as generated of a scenario or further case."""
        return {} if column < self.columns else self.cases[column - self.columns].inputs

    def add_sheet(self, sheet: Sheet) -> Sheet:
        """Append a sheet."""
        self.sheets[sheet.name] = sheet
        return sheet

    def register(self, figure: Named, address: CellAddress) -> None:
        """Say where a figure stands; only once."""
        if figure in self.addresses:
            raise AssertionError(f"{figure.id} stands in two places")
        self.addresses[figure] = address

    def add_quantity(
        self,
        sheet: Sheet,
        row: int,
        column: int,
        figure: Quantity,
        style: Style,
        scenario: int = 0,
        link: str | None = None,
    ) -> None:
        """A quantity at a place of its own, on sheets that are not in scenario columns."""
        self.register(figure, CellAddress(sheet.name, row, column))
        sheet.set_cell(row, column, Cell(style, expression=figure.body, scenario=scenario, link=link))

    def add_constant(
        self, sheet: Sheet, row: int, column: int, figure: Input, style: Style, value: Value | None = None
    ) -> None:
        """A fixed number or text that formulas refer to; its own value unless another is given."""
        self.register(figure, CellAddress(sheet.name, row, column, absolute=True))
        value = figure.value if value is None else value
        is_text = isinstance(value, str)
        sheet.set_cell(
            row,
            column,
            Cell(style, text=str(value) if is_text else None, number=None if is_text else float(value or 0)),
        )

    def add_input(self, sheet: Sheet, row: int, column: int, figure: Input, case: int | None = None) -> None:
        """A cell in which an input of the workbook itself is typed.

        It is of all scenarios, or of a further case, whose value it then has.
        """
        value = figure.value if case is None else self.inputs(case)[figure.id]
        look = value_style(figure.unit, is_text=isinstance(value, str), role="input", integer=figure.integer)
        sheet.set_cell(
            row,
            column,
            Cell(
                look,
                text=value if isinstance(value, str) else None,
                number=None if isinstance(value, str) else float(value or 0),
                scenario=case or 0,
                entry=figure,
            ),
        )
        if case is None:
            self.register(figure, CellAddress(sheet.name, row, column, absolute=True))
        self.own_inputs[figure.id] = figure
        self.input_cells[figure.id, case or 0] = (sheet.name, row, column)

    def link_to(self, figure: Named, column: int = 0) -> str:
        """A link to a figure among the answers of its sheet, else to its own row, which is then open."""
        address = self.addresses[figure]
        sheet = self.sheets[address.sheet]
        row = sheet.answers.get(figure, address.row)
        sheet.unfold(row)
        letter = xl_col_to_name(address.first + column if address.column is None else address.column)
        return f"internal:'{sheet.name}'!{letter}{row + 1}"

    def link_to_part(self, part: str) -> str:
        """A link to the head of a part of a sheet."""
        sheet = next(sheet for sheet in self.sheets.values() if part in sheet.parts)
        return f"internal:'{sheet.name}'!A{sheet.parts[part] + 1}"

    def reference_to(self, figure: Named, column: int, sheet: str | None, linked: bool = True) -> str:
        """The reference to a figure from a sheet, for one scenario.

        Absolute with a sheet name where `sheet` is None.
        """
        local = self.sheets[sheet].links.get(figure) if sheet and linked else None
        address = local or self.place_of(figure)
        if address is None:
            raise AssertionError(f"{figure.id} stands nowhere")
        letter = self.column_letter(address, column)
        if sheet is None:
            letter = letter.removeprefix("$")
            return f"='{address.sheet}'!${letter}${address.row + 1}"
        place = f"${letter}${address.row + 1}" if address.absolute else f"{letter}{address.row + 1}"
        return place if address.sheet == sheet else f"{_quoted(address.sheet)}!{place}"

    def place_of(self, figure: Named) -> CellAddress | None:
        """Where formulas read a figure; None where it stands nowhere yet."""
        stands = self.used.get(figure, figure)
        if isinstance(figure, Input):
            stands = self.cells.get(figure, stands)
        return self.addresses.get(stands)

    def planned(self, sheet: str, case: int) -> Cells:
        """Cells as formulas of a sheet see them before all figures stand."""
        return _Planned(self, sheet, case)

    def column_letter(self, address: CellAddress, column: int) -> str:
        """The column of a figure as a scenario or further case sees it, as letters.

        The base's as seen by a case stays.
        """
        letter = _letters(self.column_of(address, column))
        is_base = address.column is None and column >= self.columns
        return (
            f"${letter}" if is_base and address.sheet != self.cases[column - self.columns].sheet else letter
        )

    def column_of(self, address: CellAddress, column: int) -> int:
        """The column of a figure as a scenario or further case sees it.

        A case sees the base scenario's figures, but for its own.
        """
        if address.column is not None:
            return address.column
        if column < self.columns:
            return address.first + max(column, 0)
        case = self.cases[column - self.columns]
        return case.column if address.sheet == case.sheet else address.first

    def block(self, members: Span) -> tuple[CellAddress, CellAddress]:
        """Where the first and the last figure of a span stand.

        The others are between them, below or beside each other.
        """
        if members not in self._blocks:
            addresses = [
                self.addresses[self.cells.get(cast(Input, member), member)] for member in members.members
            ]
            first = addresses[0]
            block = {
                (
                    address.sheet,
                    address.column is None and address.absolute,
                    address.row - step,
                    address.column,
                )
                for step, address in enumerate(addresses)
            }
            if len(block) > 1:
                row = {
                    (address.sheet, address.row, (address.column or 0) - step)
                    for step, address in enumerate(addresses)
                }
                if len(row) > 1 or first.column is None:
                    ends = f"{members.members[0].id} … {members.members[-1].id}"
                    raise AssertionError(f"{ends} stand neither below nor beside each other")
            self._blocks[members] = (first, addresses[-1])
        return self._blocks[members]

    def formula_text(self, sheet: Sheet, cell: Cell) -> str:
        """The formula text of a cell."""
        if self._printed is None:
            return self._formula_text(sheet, cell)
        if id(cell) not in self._printed:
            self._printed[id(cell)] = self._formula_text(sheet, cell)
        return self._printed[id(cell)]

    def _formula_text(self, sheet: Sheet, cell: Cell) -> str:
        assert cell.expression is not None
        if cell.reference is not None:
            return f"={cell.reference}"
        if isinstance(cell.expression, Input | Quantity):  # a link leads straight to the figure's own row
            of = cell.scenario if cell.follows is None else cell.follows[1]
            return "=" + self.reference_to(cell.expression, of, sheet.name, linked=False)
        return formula(cell.expression, _Cells(self, sheet.name, cell.scenario))

    @cached_property
    def program(self) -> list[Program]:
        """For each scenario and further case, and last across them, the program of every expression shown."""
        roots: list[list[Node]] = [[] for _ in range(self.columns + len(self.cases) + 1)]
        for sheet in self.sheets.values():
            for cell in sheet.cells.values():
                if cell.expression is not None:
                    roots[cell.scenario].append(cell.expression)
        for node in ancestors(*roots[ACROSS]):
            for one in node.each() if isinstance(node, Cases) else (node,):
                if isinstance(one, InCase):
                    roots[one.case].append(one.figure)
        programs: dict[tuple[Node, ...], Program] = {}  # the cases of one variation show the same
        for nodes in roots:
            if tuple(nodes) not in programs:
                programs[tuple(nodes)] = Program(nodes)
        return [programs[tuple(nodes)] for nodes in roots]

    def values(self, inputs: list[dict[str, Any]]) -> list[dict[Node, Any]]:
        """Native values of every expression.

        Args:
            inputs: of each scenario; of each further case too, or they are as generated.

        Returns:
            Values in each scenario and further case, and last those across them.
        """
        *programs, across = self.program
        values = [program.run(given) for program, given in zip(programs, self.given(inputs), strict=True)]
        return [*values, across.run({}, values)]

    def words(self) -> dict[str, CellAddress]:
        """Where words stand that formulas look up, by their keys."""
        program = self.program[0]
        return {
            key: replace(self.addresses[figure], column=HEADS.index(words.what))
            for words in program.words
            for key, figure in zip(words.keys, words.members, strict=True)
        }

    def given(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """All that the values of each scenario and further case follow from.

        A case has the base's inputs, but for its own.
        """
        cases = inputs[self.columns :] or [case.inputs for case in self.cases]
        return [*inputs[: self.columns], *(inputs[0] | case for case in cases)]

    def generated_inputs(self) -> list[dict[str, Any]]:
        """Inputs as generated of every scenario and further case."""
        return [self.inputs(column) for column in range(self.columns + len(self.cases))]

    def formulas(self) -> Iterable[tuple[Sheet, int, int, Cell]]:
        """Every formula cell."""
        for sheet in self.sheets.values():
            for (row, column), cell in sorted(sheet.cells.items()):
                if cell.expression is not None:
                    yield sheet, row, column, cell


@dataclass(frozen=True)
class _Cells:
    """Addresses as one sheet and scenario see them."""

    book: Book
    sheet: str
    column: int

    def cell(self, node: Input | Quantity) -> str:
        return self.book.reference_to(node, self.column, self.sheet)

    def across(self, node: InCase) -> str:
        return self.book.reference_to(node.figure, node.case, self.sheet)

    def beside(self, node: Cases) -> str:
        first, *_, last = map(self.across, (*node.each()[:1], *node.each()[-1:]))
        return f"{first}:{last.rpartition('!')[2]}"  # of one cell too: IronCalc counts in ranges only

    def range(self, members: Span) -> str:
        first, last = self.book.block(members)
        elsewhere = (
            first.sheet != self.sheet and first.column is not None
        )  # the same block, wherever it is copied to
        fixed = "$" if first.absolute or elsewhere else ""
        text = ":".join(
            f"{fixed}{self.book.column_letter(address, self.column)}{fixed}{address.row + 1}"
            for address in (first, last)
        )
        return text if first.sheet == self.sheet else f"{_quoted(first.sheet)}!{text}"

    def grid(self, figures: Table) -> str:
        first = self.book.addresses[figures.members[0]]
        row, column = first.row + figures.places[-1][0], (first.column or 0) + figures.width - 1
        text = f"${_letters(first.column or 0)}${first.row + 1}:${_letters(column)}${row + 1}"
        return text if first.sheet == self.sheet else f"{_quoted(first.sheet)}!{text}"

    def words(self, node: Words) -> str:
        first, last = self.book.block(node.span)
        letter = xl_col_to_name(HEADS.index(node.what))
        text = f"${letter}${first.row + 1}:${letter}${last.row + 1}"
        return text if first.sheet == self.sheet else f"{_quoted(first.sheet)}!{text}"

    def lies_in_a_row(self, members: Span) -> bool:
        first, last = self.book.block(members)
        return first.row == last.row and first.column != last.column


class _Planned(_Cells):
    """The same before all figures stand, with places that are as long.

    Ids of figures of a part with cases begin with its name.
    """

    def cell(self, node: Input | Quantity) -> str:
        return super().cell(node) if self.book.place_of(node) is not None else self._later(node)

    def range(self, members: Span) -> str:
        if all(member in self.book.addresses for member in members.members):
            return super().range(members)
        return ":".join(map(self._later, (members.members[0], members.members[-1])))

    def lies_in_a_row(self, members: Span) -> bool:
        return False

    def _later(self, node: Named) -> str:
        part = self.book.cases[self.column - self.book.columns].part.lower()
        return "E1234" if node.id.startswith(f"{part}.") else "Checks!$H$1234"


@cache
def _letters(column: int) -> str:
    return str(xl_col_to_name(column))


@cache
def _quoted(sheet: str) -> str:
    return sheet if sheet.isidentifier() else f"'{sheet}'"


def reference(sheet: str, row: int, column: int) -> str:
    """An absolute reference to a cell of another sheet."""
    return f"{_quoted(sheet)}!${xl_col_to_name(column)}${row + 1}"
