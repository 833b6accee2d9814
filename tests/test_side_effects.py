"""Calls of the library leave the process as it was.

A notebook, a server or another library lives in it as well.
"""

from __future__ import annotations

import gc
import locale
import logging
import os
import random
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import formulas
import numpy as np
import pytest
import scipy.sparse  # these two add filters of warnings when they are imported first
import scipy.special
from live import few, loaded

import mantile
from mantile.estimates.estimate import estimate
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.verification.engines import soffice
from mantile.workbook.lint import lint

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 5632,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
SCENARIO = {
    "model": "small",
    "accelerator": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
}
SETTINGS = {"schedula": logging.INFO, "formulas": logging.DEBUG, "openpyxl": logging.NOTSET}
assert formulas  # what it sets when it is imported is not ours


def _process() -> dict[str, Any]:
    """What a call could change for everybody else in the process."""
    loggers = [logging.root, *(logging.getLogger(name) for name in sorted(logging.root.manager.loggerDict))]
    settings = {
        logger.name: (logger.level, logger.disabled, logger.propagate, [*logger.handlers])
        for logger in loggers
    }
    return {
        "loggers": {name: how for name, how in settings.items() if how != (logging.NOTSET, False, True, [])},
        "logging": logging.root.manager.disable,
        "warnings": (
            [*warnings.filters],
            warnings.showwarning,
            scipy.special.geterr(),
            scipy.sparse.__name__,
        ),
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0, gc.get_debug()),
        "streams": (sys.stdout, sys.stderr, sys.__stderr__),
        "numpy": (np.geterr(), np.get_printoptions()),
        "folder": (Path.cwd(), dict(os.environ)),
        "random": (random.getstate(), np.random.get_state()[1].tolist()),
        "limits": (sys.getrecursionlimit(), sys.gettrace(), locale.setlocale(locale.LC_ALL)),
        "signals": {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("collecting", [True, False])
def test_the_process_is_as_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture, collecting: bool) -> None:
    """After an estimate, a workbook written, linted, verified, edited, imported and refused."""
    for name, level in SETTINGS.items():
        caplog.set_level(level, logger=name)
    enabled = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        before = _process()
        model = Model(
            id="small", name="Small", source="test", architecture=parse_config(CONFIG, "config.json")
        )
        made = estimate(parse_scenario(SCENARIO, "scenario"), model, few(("h100-sxm", "l40s")))
        path = mantile.build_workbook(made, tmp_path / "run.xlsx")
        assert _process() == before
        assert lint(path) == [] and mantile.verify(path).ok
        assert _process() == before
        if not collecting:  # the rest is the same with and without
            return
        if soffice() is not None:
            assert mantile.verify(path, "libreoffice").ok
        book = loaded(path)
        book["Summary"]["J7"] = 32
        book.save(path)
        assert mantile.import_workbook(path).scenario.concurrency == 32
        book["Summary"]["J7"] = "many"
        book.save(path)
        with pytest.raises(mantile.InputError):
            mantile.verify(path)
        assert _process() == before
    finally:
        (gc.enable if enabled else gc.disable)()
