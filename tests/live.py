"""Edits of a workbook, made up and followed: what every test of liveness does."""

from __future__ import annotations

import contextlib
import gc
import io
import math
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from mantile.cli import main
from mantile.graph.quantity import Input
from mantile.library.profiles import Library, load_library
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.verify import TOLERANCE, difference, scale_of
from mantile.workbook.book import FIRST, NOT_AVAILABLE
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.read import Cells, File, read_cells
from mantile.workbook.references import Formula
from mantile.workbook.write import write_workbook

FEW = (
    "a100-80gb-sxm",
    "b200-sxm",
    "dgx-spark-gb10",
    "gb200-nvl72",
    "h100-sxm",
    "l40s",
    "m3-ultra",
    "mi300x",
    "rtx-4090",
    "tpu-v5e",
)


@cache
def few(ids: tuple[str, ...] = FEW) -> Library:
    """The library with some of its accelerators, here of every topology, and what belongs to them.

    Workbooks are half the size.
    """
    whole = load_library()
    chips = [chip for chip in whole.accelerators if chip.id in ids]
    systems = [system for system in whole.systems if system.accelerator in ids]
    assert ids != FEW or {system.topology for system in systems} == {
        system.topology for system in whole.systems
    }
    known = {*ids, *(chip.generation for chip in chips), *(system.link for system in systems), None}
    return Library.model_validate(
        whole.model_dump()
        | {
            "accelerators": [chip.model_dump() for chip in chips],
            "systems": [system.model_dump() for system in systems],
            "prices": [price.model_dump() for price in whole.prices if price.id in ids],
            "efficiency": [
                profile.model_dump()
                for profile in whole.efficiency
                if {profile.accelerator, profile.generation, profile.link} <= known
            ],
        }
    )


def edit(source: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """A copy of a workbook with a change, as openpyxl saves it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
        book = openpyxl.load_workbook(source)
        change(book)
        book.save(target)
    return target


Typed = dict[
    tuple[str, int, int], Any
]  # by sheet, row and column from 0, what somebody types there; None empties the cell


def as_written(book: EstimateBook) -> File:
    """A workbook as it is read once written, without the writing."""
    contents: dict[str, dict[tuple[int, int], Any]] = {}
    for name, sheet in book.sheets.items():
        found = {
            place: (Formula(NOT_AVAILABLE) if math.isnan(cell.number) else cell.number)
            if cell.number is not None
            else cell.text
            or (Formula(book.formula_text(sheet, cell)) if cell.expression is not None else None)
            for place, cell in sheet.cells.items()
        }
        contents[name] = {place: content for place, content in found.items() if content is not None}
    return File(Path("run.xlsx"), book, Cells(contents, {}))


def loaded(path: Path) -> Any:
    """A workbook opened by openpyxl, for editing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
        return openpyxl.load_workbook(path)


def exit_status(*arguments: str) -> int:
    """The exit status of a command run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["mantile", *arguments])
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def typed_into(file: File, typed: Typed) -> File:
    """The file with cells changed."""
    contents = {name: dict(cells) for name, cells in file.contents.items()}
    for (sheet, row, column), value in typed.items():
        contents[sheet].pop((row, column), None)
        typed_value = Formula(value) if isinstance(value, str) and value.startswith("=") else value
        contents[sheet] |= {(row, column): typed_value} if value is not None else {}
    return replace(file, cells=replace(file.cells, contents=contents))


def place(book: EstimateBook, identifier: str, column: int = 0) -> tuple[str, int, int]:
    """Where an input of a scenario is typed; in a column that is still free, beside the others."""
    if (identifier, column) in book.input_cells:
        return book.input_cells[identifier, column]
    address = book.addresses[book.estimate.figure(identifier)]
    return address.sheet, address.row, FIRST + column if address.column is None else address.column


def random_value(figure: Input, dice: random.Random) -> Any:
    """Something an input may be set to."""
    if figure.unit == "%":
        return dice.randint(int(figure.minimum or 0), int(figure.maximum or 0))
    if figure.choices:
        return dice.choice(figure.choices)
    if figure.unit == "date":
        return dice.randint(int(figure.minimum or 0), int(figure.maximum or 0))
    if figure.id.startswith("model.") and (figure.maximum or 0) < 10:  # yes or no, or matrices
        return float(dice.randint(int(figure.minimum or 0), int(figure.maximum or 0)))
    if figure.id.startswith("model."):
        return float(max(1, round(float(figure.value or 500) * dice.uniform(0.5, 2))))
    if figure.integer:
        return float(round(10 ** dice.uniform(0, 4)))
    if figure.value is None:  # an override, in the unit of its cell
        fraction = figure.unit == "1"
        return (
            round(dice.uniform(0.1, 1), 3)
            if fraction
            else round(round(10 ** dice.uniform(0, 3), 2) + 0.003, 3)
        )  # no ties where a text shows one digit
    if not figure.value:  # what nobody states, or nothing is asked of
        return round(dice.uniform(0, 50), 3)
    value = round(float(figure.value) * dice.uniform(0.3, 2), 4) + 0.00003  # no ties of whole percents
    return round(value, 5)  # as somebody types it: of what has 17 digits, engines join 15 or all to a text


TOGETHER = (
    ".pair_bandwidth",
    ".torus_axes",
    ".domains",
    ".scale_out_bandwidth",
    "model.attention_heads",
    "model.kv_heads",
    "model.experts_per_token",
    "model.experts",
)
"""How the ids of figures end that mean something only together: one typed alone may be refused."""


def possible_value(figure: Input, dice: random.Random) -> Any:
    """Something an input may be set to, within its range."""
    for _ in range(100):
        value = random_value(figure, dice)
        if isinstance(value, str) or not figure.outside(value):
            return value
    return round(dice.uniform(figure.minimum or 0, figure.maximum or 1), 3)


def follow_edits(book: EstimateBook, folder: Path, sets: int, seed: str) -> tuple[set[str], set[str]]:
    """Write a workbook, make sets of one to eight edits of all kinds, compare every formula after each.

    Returns:
        The inputs edited, and the kinds of input there are.
    """
    path = write_workbook(book, folder / "run.xlsx")
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    editable = sorted(identifier for identifier, column in book.input_cells if column == 0)
    groups: dict[str, list[str]] = {}
    for identifier in editable:
        kind_of_input = "override" if identifier.endswith(".override") else identifier.split(".")[0]
        groups.setdefault(kind_of_input, []).append(identifier)
    dice = random.Random(seed)
    own = [identifier for identifier in editable if inputs[identifier].follows is None]
    generated = {identifier: inputs[identifier].value for identifier in own} | book.estimate.inputs(0)
    touched: set[str] = set()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.ExitStack() as after,
    ):
        warnings.simplefilter("ignore")  # of the package and what it is built on
        model = CompiledSheets(read_cells(path).contents)
        after.callback(gc.enable)
        gc.disable()  # little is garbage, and looking for it all the time costs a sixth
        for number in range(sets):
            if number % 16 == 0:
                gc.collect()
            names = {dice.choice(groups[dice.choice(sorted(groups))]) for _ in range(dice.randint(1, 8))}
            edits = {
                name: random_value(inputs[name], dice) for name in sorted(names)
            }  # sorted: sets have no order of their own
            touched |= set(edits)
            typed = {book.input_cells[name, 0]: value for name, value in edits.items()}
            solution = model.calculate(book.sheets, typed)
            native = book.values([generated | edits])
            for sheet_, row, column, cell in book.formulas():
                if (sheet_.name, row, column) in typed:
                    continue  # what is typed over a formula stands there in its place
                expected = native[cell.scenario][cell.expression]  # type: ignore[index]
                found = solution[sheet_.name, row, column]
                error = difference(
                    expected,
                    found,
                    scale_of(cell.expression, native[cell.scenario]),  # type: ignore[arg-type]
                )
                assert error <= TOLERANCE, (number, edits, sheet_.name, row + 1, column + 1, expected, found)
    return touched, set(groups)
