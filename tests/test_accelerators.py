"""Every accelerator of the library.

A model that fits is answered on each, and a dropdown reaches them all.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.profiles import load_library
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.engines import soffice
from mantile.verification.verify import TOLERANCE, difference, scale_of, verify
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import read_cells
from mantile.workbook.write import write_workbook

ALL = [item.id for item in load_library().accelerators]
SAMPLE = ("t4", "mi300x", "tpu-v5p", "groq-lpu-v1", "m3-ultra")
# What a chip needs to hold a model at all: gpt2 and no runtime reserve in 230 MB, four bits in the smaller
# ones.
SMALL: dict[str, dict[str, Any]] = {
    "groq-lpu-v1": {
        "model": "gpt2",
        "tp": 4,
        "token_budget": 64,
        "input_tokens": 200,
        "output_tokens": 20,
        "concurrency": 1,
        "overrides": [
            {"id": f"efficiency.{name}", "value": 0, "reason": "no operating system on the chip"}
            for name in ("runtime_reserve", "communication_reserve", "graph_memory", "sampler_copies")
        ],
    },
    **{
        chip: {"weights_dtype": "q4_k_m"}
        for chip in ("t4", "rtx-4080", "rtx-5080", "rtx-5070-ti", "rtx-5060-ti-16gb")
    },
    "arc-b580": {"weights_dtype": "q4_k_m", "framework": "llama.cpp"},
    "tpu-v5e": {"weights_dtype": "int4"},
}
SHORT = [{"id": "model.layers", "value": 2, "reason": "a short list of layers"}]


def _fields(accelerator: str) -> dict[str, Any]:
    fields = {
        "model": "llama-3.1-8b",
        "accelerator": accelerator,
        "input_tokens": 1000,
        "output_tokens": 100,
        "concurrency": 2,
    }
    frameworks = [each for each in load_library().frameworks if _vendor(accelerator) in each.vendors]
    if frameworks and "vllm" not in [each.id for each in frameworks]:
        fields["framework"] = frameworks[0].id
    return fields | SMALL.get(accelerator, {})


def _vendor(accelerator: str) -> str:
    return load_library().accelerator(accelerator).vendor


def _estimate(fields: dict[str, Any]) -> Estimate:
    return estimate(parse_scenario(fields, "scenario"))


def test_there_are_72_with_a_system_each() -> None:
    """The list the library promises."""
    assert len(ALL) == len(set(ALL)) == 72
    assert {load_library().usual_system(item).accelerator for item in ALL} == set(ALL)


@pytest.mark.parametrize("accelerator", ALL)
def test_a_model_that_fits_is_answered_without_an_error(accelerator: str) -> None:
    """Fits, in a time that is a number, and no error check fails.

    No framework here runs on chips that have their maker's programs only.
    """
    found = _estimate(_fields(accelerator)).results()
    if _vendor(accelerator) in ("Groq", "Cerebras"):
        assert [check["code"] for check in found["checks"]["errors"]] == ["FRAMEWORK_UNSUPPORTED"]
        assert found["feasibility"] == "invalid" and found["tpot_s"] is found["e2e_s"] is None
        return
    assert found["feasibility"] == "fits", found["checks"]["errors"]
    assert 0 < found["tpot_s"] < found["e2e_s"] < 3600
    assert found["checks"]["errors"] == []


@pytest.mark.exhaustive
def test_the_dropdown_switches_among_them_live(tmp_path: Path) -> None:
    """One workbook, its accelerator cell set to each of a sample.

    All cells are as the native engine has them, and the answers differ.
    """
    book = lay_out(_estimate(_fields("h100-sxm") | {"tp": 2, "overrides": SHORT}))
    path = write_workbook(book, tmp_path / "run.xlsx")
    assert lint(path) == []
    typed = book.input_cells["inputs.accelerator", 0]
    generated = book.estimate.inputs(0)
    tpot = book.estimate.equations.serving.tpot
    answers = set()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # of the package and what it is built on
        model = CompiledSheets(read_cells(path).contents)
        for accelerator in SAMPLE:
            solution = model.calculate(book.sheets, {typed: accelerator})
            native = book.values([generated | {"inputs.accelerator": accelerator}])
            answers.add(round(float(native[0][tpot]), 9))
            for sheet_, row, column, cell in book.formulas():
                expected, found = (
                    native[cell.scenario][cell.expression],  # type: ignore[index]
                    solution[sheet_.name, row, column],
                )
                error = difference(
                    expected,
                    found,
                    scale_of(cell.expression, native[cell.scenario]),  # type: ignore[arg-type]
                )
                assert error <= TOLERANCE, (accelerator, sheet_.name, row + 1, column + 1, expected, found)
    assert len(answers) == len(SAMPLE)


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_libreoffice_follows_the_dropdown(tmp_path: Path) -> None:
    """The cells of two scenarios set to two accelerators, and the file recalculated."""
    variants = [{"name": "another", "tp": 2, "concurrency": 1}]
    book = lay_out(_estimate(_fields("h100-sxm") | {"tp": 2, "overrides": SHORT, "variants": variants}))
    chosen = SAMPLE[1:3]
    path = write_workbook(book, tmp_path / "run.xlsx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
        opened = openpyxl.load_workbook(path)
        for number, accelerator in enumerate(chosen):
            sheet, row, column = book.input_cells["inputs.accelerator", number]
            opened[sheet].cell(row + 1, column + 1).value = accelerator
        opened.save(path)
    report = verify(path, "libreoffice").to_dict()
    assert report["ok"], (report["mismatches"][:3], report["edited"]["formulas"][:3])
    typed_over = len(chosen) - 1  # cells of variants that followed the base
    assert report["compared"] == report["formulas"] - typed_over and report["max_relative_error"] <= 1e-9
    assert {item["found"] for item in report["edited"]["inputs"]} == set(chosen)
