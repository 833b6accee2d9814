"""The `formulas` package with each distinct formula pattern compiled once.

A workbook has few patterns: =H10/H12 and =H30/H32 differ in the cells they read, not in what they do. Uses
parts of the package that are not its public API, which is why its version is pinned; tests hold the results
against its own model.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import formulas
from formulas.cell import Cell
from formulas.ranges import Ranges
from schedula.utils.dsp import DispatchPipe

from mantile.workbook.read import Contents
from mantile.workbook.references import REFERENCE, Formula, reference_of


class PatternCell(Cell):  # type: ignore[misc]  # the package has no types
    """A formula cell that runs a function compiled for another cell of the same pattern."""

    def __init__(
        self,
        place: Ranges,
        function: Callable[..., Any],
        order: list[int],
        ranges: list[Any],
    ) -> None:
        super().__init__(None, None)
        _put(self, place)
        self._arguments = [ranges[index].ranges for index in order]
        self.inputs = OrderedDict((ranges[index].ranges[0]["name"], None) for index in order)
        self._function = function
        self.func = self._run

    @property
    def __name__(self) -> str:
        """Unique, or the package searches long for a free name."""
        return f"pattern of {self.output}"

    def compile(self, references: Any = None, context: Any = None) -> PatternCell:
        return self

    def _run(self, *values: Any) -> Any:
        arguments = []
        for ranges, value in zip(self._arguments, values, strict=True):
            argument = Ranges(ranges)
            argument.values.update(value.values)
            arguments.append(argument)
        return self._function(*arguments)


def _put(cell: Cell, place: Ranges) -> Cell:
    """A cell where it stands; the package would work the place out again for each."""
    cell.range, cell.output = place, place.ranges[0]["name"]
    return cell


class CompiledModel(formulas.ExcelModel):  # type: ignore[misc]
    """An `ExcelModel` that compiles each pattern once.

    Args:
        contents: of the sheets' cells, as they were read.
    """

    def __init__(self, contents: Contents) -> None:
        super().__init__()
        self._contents = contents
        self._patterns: dict[tuple[Any, ...], tuple[Callable[..., Any], list[int]]] = {}
        self._ranges: dict[tuple[str, str], Any] = {}
        self._read: Mapping[str, set[tuple[int, int]]] = {}

    def pushes(self, *worksheets: Any, context: Any = None) -> Any:
        """As the package does; what no formula of these sheets refers to is not looked at."""
        self._read = _read_by_formulas({sheet.title: self._contents[sheet.title] for sheet in worksheets})
        return super().pushes(*worksheets, context=context)

    def push(self, worksheet: Any, context: Any) -> Any:
        """As the package does, but only cells that compute or are computed with: most cells are labels."""
        worksheet, context = self.add_sheet(worksheet, context)
        references, formula_references = self.references, self.formula_references(context)
        context = {"external_links": self.external_links(context)} | context
        contents, read = self._contents[worksheet.title], self._read.get(worksheet.title, set())
        computed = {place for place, content in contents.items() if isinstance(content, Formula)}
        rows, columns = worksheet.max_row, worksheet.max_column  # beyond them is nothing to compute with
        read = {(row, column) for row, column in read if row < rows and column < columns}
        for row, column in sorted(computed | read):
            cell = worksheet.cell(row + 1, column + 1)
            compiled = self.compile_cell(cell, context, references, formula_references)
            self.add_cell(compiled, context, self.formula_ranges(context))
        return self

    def compile_cell(self, cell: Any, context: Any, references: Any, formula_references: Any) -> Any:
        """As the package does, but for formulas of a known pattern, and without rounding to 15 decimals."""
        text = cell.value
        if cell.data_type in ("n", "s") and text is not None and cell.coordinate not in formula_references:
            return _put(Cell(None, text, check_formula=False), self._range(cell.coordinate, context))
        if cell.data_type != "f" or not isinstance(text, str) or cell.coordinate in formula_references:
            return super().compile_cell(cell, context, references, formula_references)
        numbers: dict[str, int] = {}
        shapes: list[tuple[int, int]] = []

        def replace(match: re.Match[str]) -> str:
            if match["text"] is not None:
                return match["text"]
            plain = match.group().replace("$", "")
            if plain not in numbers:
                numbers[plain] = len(numbers)
                area = reference_of(match, "")
                height = area.last_row - area.row if match["c2"] else -1
                shapes.append((height, area.last_column - area.column))
            return f"#{numbers[plain]}"

        key = (REFERENCE.sub(replace, text), *shapes)
        ranges = [self._range(reference, context) for reference in numbers]
        if key in self._patterns:
            function, order = self._patterns[key]
            return PatternCell(self._range(cell.coordinate, context), function, order, ranges)
        compiled = super().compile_cell(cell, context, references, formula_references)
        names = [part.ranges[0]["name"] for part in ranges]
        arguments = list(compiled.func.inputs) if compiled.func is not None else []
        if arguments and sorted(arguments) == sorted(names):
            self._patterns[key] = (_straight(compiled.func.func), [names.index(name) for name in arguments])
        return compiled

    def _range(self, reference: str, context: Any) -> Any:
        """What a reference of a sheet means; each is read many times."""
        key = (context["sheet"], reference)
        if key not in self._ranges:
            self._ranges[key] = Ranges().push(reference, context=context)
        return self._ranges[key]


# Of a step of a formula: whatever has more is left to the package. What solves cycles is of no use here, and
# extra inputs are among the inputs.
_STEP_KEYS = {"type", "inputs", "outputs", "function", "wait_inputs", "index", "solve_cycle", "extra_inputs"}


def _straight(pipe: Any) -> Callable[..., Any]:
    """The steps of a compiled formula one after the other.

    The package's scheduler, which takes most of the time, is left out.

    A formula is a handful of calls of the package's own functions whose order never changes. If one raises,
    or a step is not a plain call, the package runs the formula itself.
    """
    if not isinstance(pipe, DispatchPipe):
        return pipe  # type: ignore[no-any-return]
    nodes, defaults = pipe.dsp.nodes, pipe.dsp.default_values
    waiting = [node for node in nodes.values() if node["type"] == "function"]
    if len(pipe.outputs) != 1 or any(set(node) - _STEP_KEYS or len(node["outputs"]) != 1 for node in waiting):
        return pipe  # type: ignore[no-any-return]
    slots = {name: place for place, name in enumerate((*pipe.inputs, *defaults))}
    constants = [figure["value"] for figure in defaults.values()]
    steps: list[tuple[Callable[..., Any], list[int]]] = []
    while waiting:
        ready = next((node for node in waiting if all(name in slots for name in node["inputs"])), None)
        if ready is None:
            return pipe  # type: ignore[no-any-return]
        waiting.remove(ready)
        steps.append((ready["function"], [slots[name] for name in ready["inputs"]]))
        slots[ready["outputs"][0]] = len(slots)
    if len(slots) != len(pipe.inputs) + len(constants) + len(steps) or pipe.outputs[0] not in slots:
        return pipe  # type: ignore[no-any-return]
    result_slot = slots[pipe.outputs[0]]
    filters = nodes[pipe.outputs[0]].get(
        "filters", ()
    )  # a reference that INDEX gives becomes what stands there

    def run(*arguments: Any) -> Any:
        values = [*arguments, *constants]
        try:
            for function, places in steps:
                values.append(function(*[values[place] for place in places]))
            result = values[result_slot]
            for value_filter in filters:
                result = value_filter(result)
        except Exception:
            return pipe(*arguments)
        return result

    return run


def _read_by_formulas(contents: Contents) -> Mapping[str, set[tuple[int, int]]]:
    """Row and column, from 0, of every cell that a formula of these sheets refers to, by sheet."""
    read: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for sheet, cells in contents.items():
        for content in cells.values():
            if isinstance(content, Formula):
                for match in REFERENCE.finditer(content):
                    if match["text"] is None:
                        area = reference_of(match, sheet)
                        read[area.sheet] |= {
                            (row, column)
                            for row in range(area.row, area.last_row + 1)
                            for column in range(area.column, area.last_column + 1)
                        }
    return read
