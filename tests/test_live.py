"""Live, proved: after any edit of any input the formulas give what the native engine gives."""

from __future__ import annotations

import contextlib
import io
import math
import random
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from mantile.engines import soffice
from mantile.estimation import estimate
from mantile.graph.quantity import Input
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.verification import TOLERANCE, difference, scale_of, verify
from mantile.workbook.book import Book
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

CONFIGS: dict[str, dict[str, Any]] = {
    "gated": {"model_type": "llama", "num_key_value_heads": 8, "tie_word_embeddings": False, "attention_bias": True},
    "normed": {"model_type": "qwen3", "head_dim": 96, "num_key_value_heads": 2, "tie_word_embeddings": True,
               "use_sliding_window": True, "max_window_layers": 0, "sliding_window": 700},
    "plain": {"model_type": "starcoder2", "num_key_value_heads": 1, "sliding_window": None},
}  # fmt: skip
SETS = 67  # of edits, for each of the three workbooks


def _book(kind: str) -> Book:
    config = {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 2, "intermediate_size": 5504, "vocab_size": 32000,
              "max_position_embeddings": 8192} | CONFIGS[kind]  # fmt: skip
    model = Model(id=kind, name=kind, source="test", architecture=parse_config(config, "config.json"))
    fields = {"model": kind, "accelerator": "h100-sxm", "tp": 2, "input_tokens": 1000, "output_tokens": 100, "concurrency": 10}
    return lay_out(estimate(parse_scenario(fields, "scenario"), model))


def _random_value(figure: Input, dice: random.Random) -> Any:
    if figure.choices:
        return dice.choice(figure.choices)
    if figure.id.startswith("model."):
        return float(max(1, round(float(figure.value or 500) * dice.uniform(0.5, 2))))
    if figure.integer:
        return float(round(10 ** dice.uniform(0, 4)))
    if figure.value is None:  # an override, in the unit of its cell
        fraction = figure.unit == "1"
        return round(dice.uniform(0.1, 1), 3) if fraction else round(10 ** dice.uniform(0, 3), 2)
    return round(float(figure.value) * dice.uniform(0.3, 2), 4)


@pytest.mark.parametrize("kind", CONFIGS)
def test_formulas_follow_every_edit(kind: str, tmp_path: Path) -> None:
    """Generated sets of one to eight edits over all inputs; every formula cell compared after each."""
    from mantile.patterns import PatternModel

    book = _book(kind)
    path = write_workbook(book, tmp_path / "run.xlsx")
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()}
    editable = sorted(identifier for identifier, column in book.entries if column == 0)
    groups: dict[str, list[str]] = {}
    for identifier in editable:
        kind_of_input = "override" if identifier.endswith(".override") else identifier.split(".")[0]
        groups.setdefault(kind_of_input, []).append(identifier)
    dice = random.Random(kind)
    generated = {identifier: inputs[identifier].value for identifier in editable} | book.estimate.inputs(0)
    touched: set[str] = set()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # of the package and what it is built on
        model = PatternModel().loads(str(path)).finish(circular=False)
        for number in range(SETS):
            names = {dice.choice(groups[dice.choice(sorted(groups))]) for _ in range(dice.randint(1, 8))}
            edits = {name: _random_value(inputs[name], dice) for name in names}
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
    assert set(groups) == {"inputs", "library", "datatype", "efficiency", "model", "override"}
    assert len(touched) > 60, "the sets should reach across all kinds of inputs"


@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_libreoffice_follows_edits_of_the_file(tmp_path: Path) -> None:
    """The file itself edited, recalculated by LibreOffice, read back and compared."""
    dice = random.Random(7)
    for number in range(10):
        book = _book(dice.choice(list(CONFIGS)))
        path = write_workbook(book, tmp_path / f"run{number}.xlsx")
        inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()}
        names = dice.sample(sorted(identifier for identifier, column in book.entries if column == 0), 6)
        names += ["inputs.tp", "inputs.accelerator", "inputs.weights_dtype"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
            opened = openpyxl.load_workbook(path)
            for name in dict.fromkeys(names):
                sheet, row, column = book.entries[name, 0]
                opened[sheet].cell(row + 1, column + 1).value = _random_value(inputs[name], dice)
            opened.save(path)
        report = verify(path, "libreoffice").to_dict()
        assert report["ok"], (number, names, report["mismatches"][:3], report["edited"]["formulas"][:3])
        assert report["compared"] == report["formulas"] and report["max_relative_error"] <= 1e-9
        assert math.isfinite(report["max_relative_error"])
