"""What people type: whatever cells hold, the workbook says nothing false, and names the cell."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.estimate.estimate import estimate
from mantile.library.scenario import parse_scenario
from mantile.verify.engines import soffice
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

ASKED = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "date": "2026-11-21",
    "variants": [{"name": "fp8", "weights_dtype": "fp8"}],
}
PYTHONS = ("/usr/bin/python3", "/usr/lib/libreoffice/program/python")
SCRIPT = Path(__file__).with_name("libreoffice_edits.py")
EMPTY, ERROR = None, "=1/0"

# What is typed into the cell of an input: the sentence about it.
WRONG: tuple[tuple[str, Any, str], ...] = (
    (
        "inputs.tp",
        "two",
        "Tensor parallel, Summary!B7 holds 'two'; expected a whole number from 1 to 1,024 in rank",
    ),
    (
        "inputs.tp",
        0,
        "Tensor parallel, Summary!B7 holds '0'; expected a whole number from 1 to 1,024 in rank",
    ),
    ("inputs.tp", -2, "Tensor parallel, Summary!B7 holds '-2'; expected"),
    ("inputs.tp", 2.5, "Tensor parallel, Summary!B7 holds '2.5'; expected a whole number"),
    ("inputs.tp", "2", "Tensor parallel, Summary!B7 holds '2'; expected a whole number"),
    ("inputs.tp", ERROR, "Tensor parallel, Summary!B7 holds an error; expected a whole number"),
    ("inputs.pp", 9, "Pipeline parallel, Summary!C7 holds '9'; expected a whole number from 1 to 8 in stage"),
    (
        "inputs.dp",
        1e12,
        "Data parallel, Summary!D7 holds '1000000000000'; expected a whole number from 1 to 1,024",
    ),
    (
        "inputs.input_tokens",
        "1,024",
        "Input tokens, Summary!H7 holds '1,024'; expected a whole number from 1",
    ),
    ("inputs.output_tokens", 0, "Output tokens, Summary!I7 holds '0'; expected a whole number from 1"),
    ("inputs.concurrency", -8, "Concurrency, Summary!J7 holds '-8'; expected a whole number from 1"),
    ("inputs.concurrency", "many", "Concurrency, Summary!J7 holds 'many'; expected a whole number from 1"),
    ("inputs.accelerator", "h100", "Accelerator, Summary!B5 holds 'h100'; expected a10, a100-40gb-pcie"),
    ("inputs.accelerator", 100, "Accelerator, Summary!B5 holds '100'; expected a10"),
    ("inputs.system", "hgx", "System, Summary!C5 holds 'hgx'; expected default"),
    ("inputs.framework", "vLLM 2", "Framework, Summary!D5 holds 'vLLM 2'; expected"),
    ("inputs.weights_dtype", "int3", "Weights, Summary!E5 holds 'int3'; expected bf16"),
    ("inputs.kv_dtype", 8, "KV cache, Summary!G5 holds '8'; expected one of bf16, fp16, fp8"),
    (
        "inputs.batching",
        "dynamic",
        "Batching, Summary!H5 holds 'dynamic'; expected one of continuous, static",
    ),
    (
        "inputs.price_basis",
        "spot",
        "Price basis, Summary!I5 holds 'spot'; expected one of cloud, rental, owned",
    ),
    ("inputs.utilisation", 70, "Utilisation, Summary!J5 holds '70'; expected a number from 0.001 to 1"),
    ("inputs.utilisation", "0,7", "Utilisation, Summary!J5 holds '0,7'; expected a number from 0.001 to 1"),
    ("inputs.utilisation", 0, "Utilisation, Summary!J5 holds '0'; expected a number from 0.001 to 1"),
    ("inputs.pue", 0.9, "holds '0.9'; expected a number from 1 to 5"),
    ("inputs.hours_per_day", 25, "holds '25'; expected a number from 0.01 to 24 in h/day"),
    ("inputs.electricity_price", "12 ct", "holds '12 ct'; expected a number from 0 to 10 in USD/kWh"),
    ("inputs.token_budget", 0, "holds '0'; expected a whole number from 1 to 10,000,000 in token"),
    ("model.layers", EMPTY, "Layers (Model): expected a whole number from 1 to 100,000,000 in layer"),
    ("model.layers", "all", "Layers (Model): expected a whole number from 1"),
    ("model.hidden_size", 0, "Hidden size (Model): expected a whole number from 1"),
)
# What is typed into the cell of an override, and the check that fails.
OVERRIDES = (
    ("efficiency.gemm_compute.override", "70%", "OVERRIDE_INVALID"),
    ("efficiency.gemm_compute.override", -0.5, "OVERRIDE_INVALID"),
    ("efficiency.gemm_compute.override", 70, "EFFICIENCY_ABOVE_ONE"),
    ("efficiency.gemm_compute.override", 0, "EFFICIENCY_NOT_POSITIVE"),
    ("efficiency.step_host.override", "fast", "OVERRIDE_INVALID"),
    ("efficiency.step_host.override", ERROR, "OVERRIDE_INVALID"),
    ("hardware.memory_capacity.override", 0, "MEMORY_EXCEEDED"),
    ("hardware.memory_capacity.override", "80 GB", "OVERRIDE_INVALID"),
)
# Plans that can be typed but cannot be, and the check that says why.
PLANS = (
    (("inputs.tp", 3), "HEADS_NOT_DIVISIBLE"),
    (("inputs.tp", 64), "HEADS_NOT_DIVISIBLE"),
    (("inputs.ep", 2), "EP_WITHOUT_EXPERTS"),
    (("inputs.pp", 8), ""),
    (("inputs.input_tokens", 200_000), "CONTEXT_EXCEEDS_MODEL"),
    (("inputs.concurrency", 1_000_000), ""),
    (("inputs.system", "hgx-b200"), "SYSTEM_MISMATCH"),
    (("inputs.offload_weights", 10), ""),
)


@cache
def python_with_uno() -> str | None:
    """A Python that speaks with LibreOffice."""
    for python in PYTHONS:
        if (
            Path(python).exists()
            and not subprocess.run([python, "-c", "import uno"], capture_output=True).returncode
        ):
            return python
    return None


@cache
def made() -> EstimateBook:
    """The book of the scenario."""
    return lay_out(estimate(parse_scenario(ASKED, "test")))


def place(identifier: str) -> tuple[str, str]:
    """The cell in which an input of the base is typed."""
    sheet, row, column = made().input_cells[identifier, 0]
    return sheet, xl_rowcol_to_cell(row, column)


@pytest.mark.parametrize("field", [item.input.id for item in made().estimate.equations.typed.inputs])
def test_every_input_has_a_guard(field: str) -> None:
    """What its cell holds as generated can be; what cannot be counts as a fault and is not used."""
    one = made().estimate
    typed = next(item for item in one.equations.typed.inputs if item.input.id == field)
    values = one.values()
    assert values[typed.valid] == 1 and values[typed.used] == values[typed.input] == values[typed.held]
    is_text = isinstance(typed.input.value, str)
    low, high = typed.input.minimum, typed.input.maximum
    numbers = () if is_text or low is None or high is None else (low - 1, high + 1, "1")
    for wrong in numbers or ("nothing like it",):
        found = one.program.run(one.inputs(0) | {typed.cell.id: wrong})
        assert found[typed.valid] == 0 and found[typed.used] == values[typed.held]
        assert found[one.equations.checks.possible] == 0
        assert found[one.equations.checks.reason] == "INPUT_INVALID"


class _Seen:
    """What the workbook says after an edit, beside what it says as generated."""

    def __init__(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        self.texts: dict[str, str] = now["texts"]
        self.errors = [place for place in now["errors"] if place not in then["errors"]]
        codes = made().sheets["Checks"].ids.items()
        self.failed = {
            code
            for row, code in codes
            if now["texts"][f"Checks!H{row + 1}"] != then["texts"][f"Checks!H{row + 1}"]
        }
        self.title, self.plan, self.verdict = (self.texts[f"Summary!{cell}"] for cell in ("B1", "B2", "J1"))
        self.tiles = [self.texts[f"Summary!{column}11"] for column in "CDEFGHIJ"]
        self.message = self.texts["Checks!A7"]
        self.listed = [self.texts[f"Log!C{row}"] for row in range(5, 22)]


def looked_at(profile: Path) -> list[dict[str, Any]]:
    """What LibreOffice makes of all edits; first and last of none."""
    book = made()
    path = write_workbook(book, profile / "run.xlsx")
    chips = [chip.id for chip in book.estimate.library.accelerators]
    deleted = [(item.input.id, EMPTY) for item in book.estimate.equations.typed.inputs]
    wrong = [(identifier, what) for identifier, what, _ in (*WRONG, *OVERRIDES)]
    others = [edit for edit, _ in PLANS] + [("inputs.accelerator", chip) for chip in chips]
    edits = [[[*place(identifier), what]] for identifier, what in (*deleted, *wrong, *others)]
    look = [
        ["Summary", cell] for cell in ("B1", "B2", "J1", "J2", *(f"{column}11" for column in "BCDEFGHIJ"))
    ]
    look += [["Checks", "A7"], *(["Checks", f"H{row + 1}"] for row in book.sheets["Checks"].ids)]
    look += [["Log", f"C{row}"] for row in range(5, 22)]
    (profile / "task.json").write_text(json.dumps({"look": look, "edits": edits}))
    python = python_with_uno()
    assert python is not None
    told = subprocess.run(
        [python, str(SCRIPT), str(path), str(profile / "task.json"), str(profile / "office")],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert told.returncode == 0, told.stderr
    found: list[dict[str, Any]] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.mark.exhaustive
@pytest.mark.skipif(
    soffice() is None or python_with_uno() is None, reason="LibreOffice with Python is not installed"
)
def test_edits_as_people_make_them(tmp_path: Path) -> None:
    """No wrong statement, and no error value without a failed check that names the cell."""
    book, found = made(), looked_at(tmp_path)
    then, *seen, again = found
    assert again == then, "the edits were put back"
    after = iter(_Seen(then, one) for one in seen)
    assert len(seen) > 120

    def refused(one: _Seen, sentence: str, errors: int) -> None:
        assert one.title.endswith(": not possible, INPUT_INVALID") or "DIMENSION_INVALID" in one.title, (
            one.title
        )
        assert sentence in one.plan and sentence in one.message and one.verdict.startswith("✗"), sentence
        assert set(one.tiles[1:]) == {"not known"}, (sentence, one.tiles)
        assert len(one.errors) <= errors, (sentence, one.errors)

    for item in book.estimate.equations.typed.inputs:
        one = next(after)
        label, cell = item.input.label, "!".join(place(item.input.id))
        refused(one, f"{label}, {cell} holds ''; expected {item.input.expected}", 0)
        assert f"{label}, {cell}" in one.listed, (label, one.listed)
    for identifier, what, sentence in WRONG:
        one = next(after)
        dimension = identifier.startswith("model.")
        refused(one, sentence, 20 if dimension else 2 if what == ERROR else 0)
        assert ("DIMENSION_INVALID" if dimension else "INPUT_INVALID") in one.failed
    for identifier, what, code in OVERRIDES:
        one = next(after)
        assert code in one.failed and one.verdict.startswith("✗"), (identifier, what, one.failed)
        assert any("!".join(place(identifier)) in line for line in one.listed) or what == ERROR
    for _, code in PLANS:
        one = next(after)
        assert not one.errors and (code in one.failed and code in one.title if code else "ms to" in one.title)
    for chip in book.estimate.library.accelerators:
        one = next(after)
        assert all(error.startswith("Sweep!") for error in one.errors), (chip.id, one.errors)
        assert chip.name in one.title
        if "not possible" in one.title:
            assert one.title.rpartition(", ")[2] in one.failed or "insufficient_memory" in one.title
            assert set(one.tiles[1:7]) == {"not known"}
        else:
            assert "ms to first token" in one.title
            assert (one.tiles[6] == "not known") == ("PRICE_UNKNOWN" in one.failed), (chip.id, one.tiles)
            assert (one.tiles[7] == "not known") == ("POWER_UNKNOWN" in one.failed), (chip.id, one.tiles)
