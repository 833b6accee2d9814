"""The `formulas` package with each distinct formula pattern compiled once, and without its scheduler.

A workbook has few patterns: =H10/H12 and =H30/H32 differ in the cells they read, not in what they do. The
package parses the text of a pattern and gives the functions it is made of; here they are called in the order
in which cells need each other. Uses parts of the package that are not its public API, which is why its
version is pinned; tests hold the results against its own model.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import schedula
from formulas import Parser
from formulas.errors import FormulaError
from formulas.functions import COMPILING
from formulas.ranges import Ranges
from formulas.tokens.function import Function
from formulas.tokens.operand import Error, Range
from formulas.tokens.operator import Operator

from mantile.workbook.package_part import letters
from mantile.workbook.references import REFERENCE, Formula, reference_of

Place = tuple[str, int, int]
Contents = Mapping[str, Mapping[tuple[int, int], Any]]
Step = tuple[Callable[..., Any], list[int], bool]

_EMPTY = schedula.EMPTY
_EXTRA = {COMPILING: False}  # what functions ask for beside their arguments
# Functions of the package that work out each value of a column on its own, as it does for array formulas.
_EACH = {"IF", "IFERROR", "ISNUMBER", "ISERROR", "ABS", "EXP", "LN", "INT", "MOD", "ROUND", "ROUNDUP"}
_OF_RANGES = " ,:@"  # operators
_MANY = 2  # formulas that are worth a column
_PATTERNS = 4_096  # kept for the next workbook, which has most of them too: a standard one has some 700
_BY_PLACE = "INDEX"  # makes a reference of every cell of the range it is handed, unless it is handed values


class Area(NamedTuple):
    """A cell or a range that formulas read; rows and columns from 0."""

    sheet: str
    row: int
    column: int
    last_row: int
    last_column: int


@dataclass(frozen=True)
class Pattern:
    """What formulas of one text do, but for the cells they read.

    Args:
        steps: functions of the package, each with the places of its arguments among the cells read, the
            constants and the results so far, and whether a column of values gives a column of results.
        values_only: places among the cells read that no function needs as references.
    """

    constants: list[Any]
    steps: list[Step]
    values_only: tuple[int, ...]

    def run(self, arguments: list[Any]) -> Any:
        """The value of a formula whose references have these values."""
        values = [*arguments, *self.constants]
        for function, places, _ in self.steps:
            values.append(function(*[values[place] for place in places]))
        return _result(values[-1])

    def run_many(self, rows: list[list[Any]]) -> list[Any]:
        """The values of several formulas; functions that go value by value are handed columns.

        Args:
            rows: of each formula, the values of the cells that it reads.

        Raises:
            ValueError: if a column does not give one value for each.
        """
        count = len(rows)
        values: list[Any] = [*map(list, zip(*rows, strict=True)), *self.constants]
        for function, places, of_each in self.steps:
            given = [values[place] for place in places]
            columns = [*map(_column, given)] if of_each else [None]
            if not any(isinstance(value, _VARYING) for value in given):
                values.append([function(*given)] * count)
            elif not any(column is None for column in columns):
                result = function(*columns)
                if np.shape(result) != (count, 1):
                    raise ValueError(f"{np.shape(result)}; expected {count} rows of 1")
                values.append(result)
            else:
                parts = [_parts(value, count) for value in given]
                values.append([function(*row) for row in zip(*parts, strict=True)])
        return [*map(_result, _parts(values[-1], count))]


_VARYING = (list, np.ndarray)
"""Types of what differs from formula to formula: values of each, or a column of them."""


def _column(value: Any) -> Any:
    """Values as a column, None where there is not one of each formula; a constant as it is."""
    if not isinstance(value, list):
        return value
    column = np.empty((len(value), 1), object)
    for number, part in enumerate(value):
        inner = part.value if isinstance(part, Ranges) else part
        if np.size(inner) != 1:
            return None
        column[number, 0] = inner.flat[0] if isinstance(inner, np.ndarray) else inner
    return column


def _parts(value: Any, count: int) -> Any:
    """What each of several formulas has of a value."""
    if isinstance(value, np.ndarray):
        return [value[number : number + 1] for number in range(count)]
    return value if isinstance(value, list) else [value] * count


def _result(value: Any) -> Any:
    """What a formula shows that came to a value."""
    inner = value.value if isinstance(value, Ranges) else value
    if not isinstance(inner, np.ndarray):
        return _shown(inner)
    return _shown(inner.item() if inner.size == 1 else _corner(inner))


def _shown(value: Any) -> Any:
    """What a formula shows that came to a value: 0 where that is an empty cell."""
    return 0.0 if value is _EMPTY else value


def _corner(value: Any) -> Any:
    """What the package shows in one cell of a result of several."""
    return Ranges().set_value(_named("", 0, 0, 0, 0), value).value[0, 0]


class _Steps:
    """Takes tokens in the order in which the package's parser puts them, and makes a pattern of them.

    Stands in place of the package's builder, which makes a graph of each formula.
    """

    def __init__(self, match: Any = None) -> None:
        self.tokens: list[Any] = []
        self.places: list[Any] = []
        self.constants: list[Any] = []
        self.steps: list[tuple[Callable[..., Any], list[Any], bool]] = []
        self.references: set[int] = set()

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Any:
        return self.tokens[index]

    def pop(self) -> Any:
        return self.tokens.pop()

    def finish(self) -> None:
        """Nothing is left to do at the end of a formula."""

    def append(self, token: Any) -> None:
        """A token whose arguments came before it."""
        if isinstance(token, Operator | Function):
            count = token.get_n_args
            first = len(self.tokens) - count
            if first < 0:
                raise FormulaError
            taken, places = self.tokens[first:], self.places[first:]
            del self.tokens[first:], self.places[first:]
            token.update_input_tokens(*taken)
            place = ("step", self._step(token, places))
        elif isinstance(token, Range):
            place = ("cell", _NUMBERS[token.name])
        else:
            self.constants.append(token.compile())
            place = ("constant", len(self.constants) - 1)
        self.tokens.append(token)
        self.places.append(place)

    def _step(self, token: Any, places: list[Any]) -> int:
        function, extra = token.compile(), []
        if isinstance(function, dict):
            extra = [_EXTRA[name] for name in function.get("extra_inputs", ())]
            function = function["function"]
        before = [("constant", len(self.constants) + number) for number in range(len(extra))]
        self.constants += extra
        is_function, name = isinstance(token, Function), token.name.upper()
        of_each = name in _EACH if is_function else name not in _OF_RANGES
        by_place = is_function and name == _BY_PLACE
        self.references |= {number for kind, number in places[by_place:] if kind == "cell"}
        self.steps.append((function, [*before, *places], of_each))
        return len(self.steps) - 1

    def pattern(self, cells: int) -> Pattern:
        """What was taken, as a pattern that reads so many cells or ranges."""
        first = {"cell": 0, "constant": cells, "step": cells + len(self.constants)}
        steps = [
            (function, [first[kind] + number for kind, number in places], of_each)
            for function, places, of_each in self.steps
        ]
        if self.places[0][0] != "step":  # a reference or a constant alone
            kind, number = self.places[0]
            steps = [(_same, [first[kind] + number], False)]
        return Pattern(self.constants, steps, tuple({*range(cells)} - self.references))


def _same(value: Any) -> Any:
    return value


class _Parser(Parser):  # type: ignore[misc]  # the package has no types
    ast_builder = _Steps


# What stands for the references of a pattern, in their order. Excel takes 255 arguments at most.
_PLACEHOLDERS = [f"{letters(number + 1)}1" for number in range(1_000)]
_NUMBERS = {name: number for number, name in enumerate(_PLACEHOLDERS)}


class CompiledSheets:
    """Sheets of formulas that the package evaluates, each pattern compiled once.

    Args:
        contents: formulas and constants by sheet and cell.

    Example:
        CompiledSheets(read_cells(path).contents).calculate(["Sheet"])["Sheet", 0, 1]
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = {sheet: dict(cells) for sheet, cells in contents.items()}
        self._extent = {
            sheet: (
                max((row for row, _ in cells), default=-1),
                max((column for _, column in cells), default=-1),
            )
            for sheet, cells in contents.items()
        }
        self._areas: dict[tuple[str, str], Area] = {}
        self._patterns: dict[str, Pattern | None] = {}
        self._formulas: dict[Place, tuple[Pattern | None, list[Area]]] = {}
        self._order: list[Sequence[Place | Area]] = []
        self._ordered: tuple[str, ...] | None = None

    def calculate(self, sheets: Iterable[str], typed: Mapping[Place, Any] | None = None) -> dict[Place, Any]:
        """Values of all formulas of some sheets and of those that they read; none for what is circular.

        Args:
            typed: constants in place of what stands in cells; None empties a cell.
        """
        if self._ordered != tuple(sheets := tuple(sheets)):
            self._order, self._ordered = self._in_order(sheets), sheets
        values: dict[Place, Any] = {}
        arguments: dict[Area, Any] = {}
        known: dict[tuple[Any, ...], Any] = {}
        typed = {place: _EMPTY if value is None else value for place, value in (typed or {}).items()}
        with np.errstate(all="ignore"):  # of this thread alone
            for ready in self._order:
                columns: dict[int, list[Place]] = defaultdict(list)
                for node in ready:
                    if isinstance(node, Area):
                        arguments[node] = self._argument(node, values, typed)
                    elif node in typed:
                        values[node] = typed[node]
                    else:
                        columns[id(self._formulas[node][0])].append(node)
                for places in columns.values():
                    self._run(places, arguments, values, known)
        return values

    def _run(
        self,
        places: list[Place],
        arguments: Mapping[Area, Any],
        values: dict[Place, Any],
        known: dict[tuple[Any, ...], Any],
    ) -> None:
        """Work out formulas of one pattern that do not need each other.

        Many read the same as others, in another column: `known` has what these came to.
        """
        pattern = self._formulas[places[0]][0]
        if pattern is None:
            return
        keys: dict[Place, tuple[Any, ...]] = {}
        unknown: dict[tuple[Any, ...], list[Any]] = {}
        for place in places:
            read = [arguments[area] for area in self._formulas[place][1]]
            if None not in read:
                key = keys[place] = (id(pattern), *map(_told_apart, read))
                if key not in known:
                    for number in pattern.values_only:
                        read[number] = read[number].value
                    unknown[key] = read
        if len(unknown) >= _MANY:
            with contextlib.suppress(Exception):  # one by one, then
                known |= zip(unknown, pattern.run_many([*unknown.values()]), strict=True)
                unknown = {}
        for key, read in unknown.items():
            with contextlib.suppress(Exception):  # a function that cannot leaves its cell without a value
                known[key] = pattern.run(read)
        values |= {place: known[key] for place, key in keys.items() if key in known}

    def _in_order(self, sheets: Iterable[str]) -> list[Sequence[Place | Area]]:
        """Formulas and the references they have, those together that need only what came before."""
        waiting = [
            (sheet, *place)
            for sheet in sheets
            for place, content in self._contents.get(sheet, {}).items()
            if isinstance(content, Formula)
        ]
        needs: dict[Place | Area, list[Any]] = {place: [] for place in waiting}
        while waiting:
            place = waiting.pop()
            self._formulas[place] = self._compiled(place)
            references = needs[place] = self._formulas[place][1]
            for reference in references:
                if reference not in needs:
                    needs[reference] = inside = list(self._formulas_in(reference))
                    new = [other for other in inside if other not in needs]
                    needs |= {other: [] for other in new}
                    waiting += new
        sorter = TopologicalSorter(needs)
        with contextlib.suppress(CycleError):  # what is not part of a circle has values nevertheless
            sorter.prepare()
        order: list[Sequence[Place | Area]] = []
        while ready := sorter.get_ready():
            order.append(ready)
            sorter.done(*ready)
        return order

    def _compiled(self, place: Place) -> tuple[Pattern | None, list[Area]]:
        """The pattern of a formula, None if it is none that the package can evaluate, and what it reads."""
        references: dict[Area, int] = {}

        def replaced(match: re.Match[str]) -> str:
            if match[0][0] == '"':
                return match[0]
            area = self._area(match, place[0])
            return _PLACEHOLDERS[references.setdefault(area, len(references))]

        text = REFERENCE.sub(replaced, self._contents[place[0]][place[1:]])
        if text not in self._patterns:
            self._patterns[text] = _pattern(text, len(references))
        return self._patterns[text], list(references)

    def _area(self, match: re.Match[str], sheet: str) -> Area:
        """What a reference means; as much of a range as the sheet has cells: nothing stands beyond."""
        key = (sheet, match[0])
        if key not in self._areas:
            there = reference_of(match, sheet)
            rows, columns = self._extent.get(there.sheet, (-1, -1))
            self._areas[key] = Area(
                sheet=there.sheet,
                row=there.row,
                column=there.column,
                last_row=max(min(there.last_row, rows), there.row),
                last_column=max(min(there.last_column, columns), there.column),
            )
        return self._areas[key]

    def _formulas_in(self, reference: Area) -> Iterable[Place]:
        cells = self._contents.get(reference.sheet, {})
        for row in range(reference.row, reference.last_row + 1):
            for column in range(reference.column, reference.last_column + 1):
                if isinstance(cells.get((row, column)), Formula):
                    yield reference.sheet, row, column

    def _argument(self, reference: Area, values: Mapping[Place, Any], typed: Mapping[Place, Any]) -> Any:
        """The values of a range as the package hands them on; None where one has none."""
        name, cells = reference.sheet, self._contents.get(reference.sheet, {})
        first, last = reference.column, reference.last_column
        area = np.empty((reference.last_row - reference.row + 1, last - first + 1), object)
        for row in range(reference.row, reference.last_row + 1):
            for column in range(first, last + 1):
                content = cells.get((row, column), _EMPTY)
                if typed and (name, row, column) in typed:
                    content = typed[name, row, column]
                elif isinstance(content, Formula):
                    if (name, row, column) not in values:
                        return None
                    content = values[name, row, column]
                elif isinstance(content, str):
                    content = Error.errors.get(content, content)
                area[row - reference.row, column - first] = content
        place = _named(name, reference.row, first, reference.last_row, last)
        argument = Ranges((place,), {place["name"]: (place, area)})
        argument._value = area
        return argument


def _told_apart(argument: Any) -> Any:
    """What tells an argument of a formula from others: the value of a cell with its type, or the range."""
    value = argument.value
    return (type(value[0, 0]), value[0, 0]) if value.size == 1 else id(argument)


def _named(sheet: str, row: int, column: int, last_row: int, last_column: int) -> dict[str, Any]:
    """A range as the package describes it."""
    first, last = letters(column + 1), letters(last_column + 1)
    name = f"{first}{row + 1}"
    if (row, column) != (last_row, last_column):
        name = f"{name}:{last}{last_row + 1}"
    return {
        "sheet_id": sheet,
        "name": f"{sheet}!{name}",
        "ref": name,
        "c1": first,
        "c2": last,
        "n1": column + 1,
        "n2": last_column + 1,
        "r1": str(row + 1),
        "r2": str(last_row + 1),
    }


@lru_cache(_PATTERNS)
def _pattern(text: str, cells: int) -> Pattern | None:
    """The package's reading of a formula whose references are placeholders; None if it has none."""
    try:
        _, builder = _Parser(True).ast(text)
        return builder.pattern(cells)  # type: ignore[no-any-return]
    except Exception:
        return None
