"""Live, proved: after any edit of any input the formulas give what the native engine gives."""

from __future__ import annotations

import math
import os
import random
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import follow_edits, random_value

from mantile.estimate.estimate import estimate
from mantile.library.architecture import Model
from mantile.library.huggingface import parse_config
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario
from mantile.verify.engines import soffice
from mantile.verify.verify import TOLERANCE, verify
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
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
EVERY = (
    "MANTILE_EVERY" in os.environ
)  # all of it: 400 sets of edits; without, a fifth, as the checks of a commit have a quarter of an hour
SETS = 67 if EVERY else 12  # of edits, for each of the three workbooks
FEWER = 29 if EVERY else 5  # for each of the seven others: as many in all
SERVED: dict[str, dict[str, Any]] = {
    "deepseek-v3": {"tp": 8},
    "gpt-oss-120b": {"weights_dtype": "mxfp4"},
    "qwen3-next-80b": {},
    "gemma-2-27b": {
        "input_tokens": 6000,
        "turns": 3,
        "shared_prefix": 500,
        "prefixes": 900,
        "prefix_host": 10,
    },
    "llama-4-scout": {"input_tokens": 10_000, "image_tokens": 800},
    "nemotron-3-nano": {"tp": 2},
    "kimi-k2.5": {"tp": 8, "image_tokens": 500},
}


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
    return lay_out(estimate(parse_scenario(fields, "scenario"), model))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", CONFIGS)
def test_formulas_follow_every_edit(kind: str, tmp_path: Path) -> None:
    """Generated sets of one to eight edits over all inputs; every formula cell compared after each."""
    touched, kinds = follow_edits(_book(kind), tmp_path, SETS, kind)
    assert kinds == {
        "inputs",
        "library",
        "system",
        "datatype",
        "efficiency",
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
    }
    assert len(touched) > min(60, 2.5 * SETS), "the sets should reach across all kinds of inputs"


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", SERVED if EVERY else list(SERVED)[::2])
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
        and report["compared"] == report["formulas"] < 16_000
        and report["max_relative_error"] <= TOLERANCE
    )
    short = fields | {
        "overrides": [
            {"id": identifier, "value": count, "reason": "a short list of layers"}
            for identifier, count in layers.items()
        ]
    }
    touched, _ = follow_edits(lay_out(estimate(parse_scenario(short, "scenario"))), tmp_path, FEWER, model)
    assert len(touched) > min(25, 2.5 * FEWER), "the sets should reach across all kinds of inputs"


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_libreoffice_follows_edits_of_the_file(tmp_path: Path) -> None:
    """The file itself edited, recalculated by LibreOffice, read back and compared."""
    dice = random.Random(7)
    for number in range(10 if EVERY else 2):
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
