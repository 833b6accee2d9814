"""Inputs that follow other figures until somebody types over them.

In scenario files, natively, and in cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import as_written, edit, typed_into

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, ancestors
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.edits import edited
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.verify import verify
from mantile.workbook.layout import lay_out
from mantile.workbook.read import typed_inputs
from mantile.workbook.write import write_workbook

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 8,
}


def ask(**fields: Any) -> Estimate:
    """An 8B model on one H100 unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


@pytest.mark.parametrize(
    ("fields", "activations"),
    [
        ({}, "bf16"),
        ({"weights_dtype": "fp8"}, "fp8"),
        ({"weights_dtype": "int4"}, "bf16"),
        ({"weights_dtype": "fp8", "accelerator": "a100-80gb-sxm"}, "bf16"),
        ({"weights_dtype": "fp8", "activation_dtype": "bf16"}, "bf16"),
        ({"model": "qwen3-32b-fp8"}, "fp8"),
        ({"model": "qwen3-32b-fp8", "accelerator": "a100-80gb-sxm"}, "bf16"),
        ({"model": "qwen3-32b-awq"}, "fp16"),
    ],
)
def test_activations_follow_the_weights_where_the_chip_multiplies_in_their_format(
    fields: dict[str, Any], activations: str
) -> None:
    """Until a scenario states them; a checkpoint states its own beside its own weights."""
    assert ask(**fields).results()["activation_dtype"] == activations


def test_a_variant_follows_its_own_figures_unless_the_base_states_a_value() -> None:
    """A variant with another chip has the activations of that chip; what the base states holds for it too."""
    other = {"accelerator": "a100-80gb-sxm"}
    free = ask(weights_dtype="fp8", variants=[other])
    assert [free.results(column)["activation_dtype"] for column in (0, 1)] == ["fp8", "bf16"]
    stated = ask(weights_dtype="fp8", activation_dtype="fp8", variants=[other])
    assert [stated.results(column)["activation_dtype"] for column in (0, 1)] == ["fp8", "fp8"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_variant_without_a_value_of_the_base_follows_its_own(concurrency: int) -> None:
    """The cell holds the formula of its default: neither the base's value nor that of a graph without one."""
    rate = {"name": "rate", "request_rate": 1.0, "without": ["inputs.concurrency"]}
    book = lay_out(ask(concurrency=concurrency, variants=[rate]))
    sheet, *place = book.input_cells["inputs.concurrency", 1]
    assert book.sheets[sheet].cells[place[0], place[1]].follows == ("inputs.concurrency", 1)
    given, edits = typed_inputs(as_written(book))
    assert edits == [] and "inputs.concurrency" not in given[1]


@pytest.mark.exhaustive
def test_a_cell_follows_until_it_is_typed_over(tmp_path: Path) -> None:
    """Weights typed as fp8 take the activations along, in the file and in what is imported.

    Activations typed stay.
    """
    made = ask(variants=[{"name": "two", "tp": 2}])
    book = lay_out(made)
    file, cells = as_written(book), book.input_cells
    weights = {cells["inputs.weights_dtype", 0]: "fp8"}
    both = weights | {cells["inputs.activation_dtype", 0]: "bf16"}

    first = edited(typed_into(file, weights)).scenario
    assert first.activation_dtype is None
    found = estimate(first)
    assert [found.results(column)["activation_dtype"] for column in (0, 1)] == ["fp8", "fp8"]

    def type_in(opened: Any) -> None:
        for (sheet, row, column), value in both.items():
            opened[sheet].cell(row + 1, column + 1, value)

    path = edit(write_workbook(book, tmp_path / "run.xlsx"), tmp_path / "edited.xlsx", type_in)
    assert verify(path).ok
    again = import_workbook(path)
    assert again.scenario.activation_dtype == "bf16"
    assert again.scenario.variants[0].activation_dtype == "fp8", "the variant's cell still follows"
    assert [again.estimate.results(column)["activation_dtype"] for column in (0, 1)] == ["bf16", "fp8"]


def test_nothing_that_is_followed_follows_from_its_input() -> None:
    """No circle, also with decode workers and requests that arrive at a rate."""
    made = ask(decode={"tp": 2}, request_rate=2)
    followers = [figure for figure in made.equations.all_inputs() if figure.follows is not None]
    assert {figure.id for figure in followers} >= {"inputs.activation_dtype", "inputs.decode_tp"}
    for figure in followers:
        assert isinstance(figure, Input) and figure.follows is not None
        assert figure not in set(ancestors(figure.follows)), figure.id


def test_some_cases_of_an_array_may_follow() -> None:
    """None in an array stands for a case that states nothing."""
    figures = ask().equations.figures
    activations = figures["inputs.activation_dtype"]
    stated = np.array([None, "bf16", None], dtype=object)
    weights = np.array(["fp8", "fp8", "bf16"])
    inputs = ask().inputs(0) | {"inputs.activation_dtype": stated, "inputs.weights_dtype": weights}
    assert list(Program([activations]).run(inputs)[activations]) == ["fp8", "bf16", "bf16"]
