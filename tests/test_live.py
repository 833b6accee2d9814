"""Live, proved: after any edit of any input the formulas give what the native engine gives."""

from __future__ import annotations

import math
import random
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import TOGETHER, few, follow_edits, loaded, possible_value, random_value

from mantile.equations.signature import SIGNATURE
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.architecture import Model
from mantile.library.huggingface import parse_config
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.engines import recalculate, soffice
from mantile.verification.verify import TOLERANCE, difference, scale_of, verify, verify_with_all
from mantile.workbook.book import FIRST
from mantile.workbook.bundle import read_bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import read_cells
from mantile.workbook.write import build_workbook, write_workbook

CONFIGS: dict[str, dict[str, Any]] = {
    "gated": {
        "model_type": "llama",
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "attention_bias": True,
    },
    "normed": {
        "model_type": "qwen3",
        "head_dim": 96,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "use_sliding_window": True,
        "max_window_layers": 0,
        "sliding_window": 700,
    },
    "plain": {"model_type": "starcoder2", "num_key_value_heads": 1, "sliding_window": None},
}
LIBRARY = few(("b200-sxm", "h100-sxm", "h200-sxm", "l40s"))
SETS = 7  # of edits, for each of the three workbooks
FEWER = 3  # for each of the others
SERVED: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": {"shared_prefix": 500, "prefixes": 900, "prefix_host": 10},
    "deepseek-v3": {"tp": 8},
    "llama-4-scout": {"input_tokens": 10_000, "image_tokens": 800},
}
OWN_FILES = Path(__file__).parent / "data" / "models_from_code"
READ_FROM_CODE: dict[str, dict[str, Any]] = {"bailing-hybrid": {"tp": 4, "ep": 2}}
"""A model read from the code of its classes, in `OWN_FILES`, and how it is served."""


def _book(kind: str) -> EstimateBook:
    config = {
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "num_hidden_layers": 2,
        "intermediate_size": 5504,
        "vocab_size": 32000,
        "max_position_embeddings": 8192,
    } | CONFIGS[kind]
    model = Model(id=kind, name=kind, source="test", architecture=parse_config(config, "config.json"))
    fields = {
        "model": kind,
        "accelerator": "h100-sxm",
        "tp": 2,
        "input_tokens": 1000,
        "output_tokens": 100,
        "concurrency": 10,
    }
    return lay_out(estimate(parse_scenario(fields, "scenario"), model, LIBRARY))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", CONFIGS)
def test_formulas_follow_every_edit(kind: str, tmp_path: Path) -> None:
    """Generated sets of one to eight edits over all inputs; every formula cell compared after each."""
    touched, kinds = follow_edits(_book(kind), tmp_path, SETS, kind)
    assert kinds == {
        "inputs",
        "network",
        "scheduler",
        "evidence",
        "cost",
        "offer",
        "model",
        "measured",
        "override",
        "sensitivity",
        "signature",
        "sweep",
    }
    assert len(touched) > min(60, 2.5 * SETS), "the sets should reach across all kinds of inputs"


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", SERVED)
def test_workbooks_of_other_architectures_are_as_live(model: str, tmp_path: Path) -> None:
    """Experts, latent attention, windows, chunks, recurrent states, vision.

    Built, linted, verified, small enough, and edited.
    """
    layers = {
        f"model.{name}": 2 for name in load_model(model).architecture.groups().values()
    }  # the list of layers is not what is tested
    fields = {
        "model": model,
        "accelerator": "h200-sxm",
        "tp": 4,
        "input_tokens": 3000,
        "output_tokens": 200,
        "concurrency": 12,
    } | SERVED[model]
    path = build_workbook(estimate(parse_scenario(fields, "scenario")), tmp_path / "whole.xlsx")
    assert lint(path) == []
    report = verify(path).to_dict()
    assert (
        report["ok"]
        and report["compared"] == report["formulas"] < 20_000
        and report["max_relative_error"] <= TOLERANCE
    )
    short = fields | {
        "overrides": [
            {"id": identifier, "value": count, "reason": "a short list of layers"}
            for identifier, count in layers.items()
        ]
    }
    touched, _ = follow_edits(
        lay_out(estimate(parse_scenario(short, "scenario"), library=LIBRARY)), tmp_path, FEWER, model
    )
    assert len(touched) > min(25, 2.5 * FEWER), "the sets should reach across all kinds of inputs"


def _from_code(model: str, short: bool = False) -> Estimate:
    """A model read from code; short: with two layers of each kind, as the list of them is not tested."""
    own = OWN_FILES / f"{model}.yaml"
    named = str(own) if own.exists() else model
    fields = {
        "model": named,
        "accelerator": "h200-sxm",
        "input_tokens": 3000,
        "output_tokens": 200,
        "concurrency": 12,
        "date": "2026-11-21",
    } | READ_FROM_CODE[model]
    if short:
        layers = load_model(named).architecture.groups().values()
        fields["overrides"] = [{"id": f"model.{name}", "value": 2, "reason": "short"} for name in layers]
    return estimate(parse_scenario(fields, "scenario"), library=LIBRARY if short else None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", READ_FROM_CODE)
def test_workbooks_of_models_read_from_code_are_as_live(model: str, tmp_path: Path) -> None:
    """Built, linted, verified by all engines that are installed, and edited."""
    made = _from_code(model)
    assert {fact.origin for fact in made.model.architecture.facts.values()} == {"code"}
    path = build_workbook(made, tmp_path / "whole.xlsx")
    assert lint(path) == []
    reports = verify_with_all(path)
    assert not reports.refused
    assert soffice() is None or "libreoffice" in reports.engines
    for engine, found in reports.engines.items():
        report = found.to_dict()
        assert report["ok"] and report["compared"] == report["formulas"] < 20_000, engine
        assert report["max_relative_error"] <= TOLERANCE, engine
    touched, kinds = follow_edits(lay_out(_from_code(model, short=True)), tmp_path, FEWER, model)
    assert "model" in kinds
    assert len(touched) > min(25, 2.5 * FEWER), "the sets should reach across all kinds of inputs"


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize("model", READ_FROM_CODE)
def test_libreoffice_says_of_an_edited_workbook_what_a_fresh_one_says(model: str, tmp_path: Path) -> None:
    """Inputs, figures of the model and overrides typed; LibreOffice's figures against those of a new build.

    The new one is built from what is read back from the edited file.
    """
    dice = random.Random(model)
    book = lay_out(_from_code(model, short=True))
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    alone = sorted(
        identifier
        for identifier, column in book.input_cells
        if column == 0 and not identifier.endswith(TOGETHER) and not identifier.startswith(SIGNATURE)
    )
    facts = [
        identifier
        for identifier in alone
        if identifier.startswith("model.") and not identifier.startswith("model.layers")
    ]  # the list of layers is made with the workbook
    overrides = [identifier for identifier in alone if identifier.endswith(".override")]
    chosen = [*dice.sample(facts, 4), *dice.sample(overrides, 3), "inputs.accelerator", "inputs.tp"]
    chosen += ["inputs.input_tokens", "inputs.concurrency", "inputs.weights_dtype"]
    opened = loaded(write_workbook(book, tmp_path / "run.xlsx"))
    for name in chosen:
        sheet, row, column = book.input_cells[name, 0]
        opened[sheet].cell(row + 1, column + 1).value = possible_value(inputs[name], dice)
    opened.save(tmp_path / "edited.xlsx")
    again = recalculate(tmp_path / "edited.xlsx", tmp_path)
    stored = read_cells(again).stored
    found = import_workbook(again)
    assert {change["id"] for change in found.changes} <= set(chosen)
    assert len(found.changes) >= 9, "an edit is seen, unless it is what stood there"
    fresh = read_bundle(found.write(tmp_path / "run.json", bundle=True)).estimate()
    values = fresh.values()
    compared = 0
    for figure in book.estimate.equations.quantities():
        address = book.addresses.get(figure)
        told = figure.id.startswith("typed.state.") or figure.id.endswith(("_told", "offer_number"))
        if address is None or address.column is not None or told:
            continue  # no cell of its own; what was edited in the file, what the library tells
        theirs = stored[address.sheet].get((address.row, FIRST))
        mine = fresh.figure(figure.id)
        error = difference(values[mine], theirs, scale_of(mine, values))
        assert error <= TOLERANCE, (figure.id, values[mine], theirs)
        compared += 1
    assert compared > 700


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_libreoffice_follows_edits_of_the_file(tmp_path: Path) -> None:
    """The file itself edited, recalculated by LibreOffice, read back and compared."""
    dice = random.Random(7)
    for number in range(2):
        book = _book(dice.choice(list(CONFIGS)))
        path = write_workbook(book, tmp_path / f"run{number}.xlsx")
        inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
        names = dice.sample(sorted(identifier for identifier, column in book.input_cells if column == 0), 6)
        names += ["inputs.tp", "inputs.accelerator", "inputs.weights_dtype"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
            opened = openpyxl.load_workbook(path)
            for name in dict.fromkeys(names):
                sheet, row, column = book.input_cells[name, 0]
                opened[sheet].cell(row + 1, column + 1).value = random_value(inputs[name], dice)
            opened.save(path)
        report = verify(path, "libreoffice").to_dict()
        assert report["ok"], (number, names, report["mismatches"][:3], report["edited"]["formulas"][:3])
        assert report["compared"] == report["formulas"] and report["max_relative_error"] <= 1e-9
        assert math.isfinite(report["max_relative_error"])
