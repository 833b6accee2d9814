"""Edits of a workbook, made up and followed: what every test of liveness does."""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from pathlib import Path
from typing import Any

import openpyxl

from mantile.graph.quantity import Input
from mantile.patterns import PatternModel
from mantile.verification import TOLERANCE, difference, scale_of
from mantile.workbook.book import Book
from mantile.workbook.write import write_workbook


def random_value(figure: Input, dice: random.Random) -> Any:
    """Something an input may be set to."""
    if figure.choices:
        return dice.choice(figure.choices)
    if figure.id.startswith("model."):
        return float(max(1, round(float(figure.value or 500) * dice.uniform(0.5, 2))))
    if figure.integer:
        return float(round(10 ** dice.uniform(0, 4)))
    if figure.value is None:  # an override, in the unit of its cell
        fraction = figure.unit == "1"
        return round(dice.uniform(0.1, 1), 3) if fraction else round(10 ** dice.uniform(0, 3), 2) + 0.003  # no ties where a text shows one digit
    return round(float(figure.value) * dice.uniform(0.3, 2), 4)


def follow_edits(book: Book, folder: Path, sets: int, seed: str) -> tuple[set[str], set[str]]:
    """Write a workbook, make sets of one to eight edits over all kinds of input, and compare every formula cell after each.

    Returns:
        The inputs edited, and the kinds of input there are.
    """
    path = write_workbook(book, folder / "run.xlsx")
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()}
    editable = sorted(identifier for identifier, column in book.entries if column == 0)
    groups: dict[str, list[str]] = {}
    for identifier in editable:
        kind_of_input = "override" if identifier.endswith(".override") else identifier.split(".")[0]
        groups.setdefault(kind_of_input, []).append(identifier)
    dice = random.Random(seed)
    generated = {identifier: inputs[identifier].value for identifier in editable} | book.estimate.inputs(0)
    touched: set[str] = set()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # of the package and what it is built on
        model = PatternModel().loads(str(path)).finish(circular=False)
        for number in range(sets):
            names = {dice.choice(groups[dice.choice(sorted(groups))]) for _ in range(dice.randint(1, 8))}
            edits = {name: random_value(inputs[name], dice) for name in sorted(names)}  # sorted: sets have no order of their own
            touched |= set(edits)
            keys = {}
            for name, value in edits.items():
                sheet, row, column = book.entries[name, 0]
                keys[f"'[run.xlsx]{sheet.upper()}'!{openpyxl.utils.get_column_letter(column + 1)}{row + 1}"] = value
            solution = model.calculate(inputs=keys)
            native = book.values([generated | edits])
            for sheet_, row, column, cell in book.formulas():
                key = f"'[run.xlsx]{sheet_.name.upper()}'!{openpyxl.utils.get_column_letter(column + 1)}{row + 1}"
                expected = native[cell.column][cell.expression]  # type: ignore[index]
                found = solution[key].value.ravel()[0]
                error = difference(expected, found, scale_of(cell.expression, native[cell.column]))  # type: ignore[arg-type]
                assert error <= TOLERANCE, (number, edits, sheet_.name, row + 1, column + 1, expected, found)
    return touched, set(groups)
