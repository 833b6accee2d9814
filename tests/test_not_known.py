"""What cannot be and what nobody knows: no number of it anywhere, and the numbers back where it is mended."""

from __future__ import annotations

import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Make
from live import as_written, edit, few, place
from office import asked_of_office, needs_office
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.cli import main
from mantile.equations.metrics import (
    DECODE_MBU,
    DECODE_MFU,
    INTERACTIVITY,
    ITL_P50,
    ITL_P90,
    ITL_P95,
    ITL_P99,
    METRICS,
    TPOT,
    TTFT,
    metrics_of,
)
from mantile.equations.sweep import CHOSEN
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sweep import Digest, grid
from mantile.graph.quantity import NOT_KNOWN, Quantity
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.verify import verify
from mantile.workbook.book import FIRST, SHARED
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook, write_workbook

SMALL = {"model": "llama-3.1-8b", "tp": 1}
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "HEADS_NOT_DIVISIBLE": (SMALL | {"tp": 3}, {"tp": 2}),
    "REPLICA_EXCEEDS_SYSTEM": (SMALL | {"tp": 16, "accelerator": "rtx-4090"}, {"tp": 8}),
    "EP_WITHOUT_EXPERTS": (SMALL | {"tp": 2, "ep": 2}, {"ep": 1}),
    "KV_HEADS_NOT_DIVISIBLE": (SMALL | {"tp": 6}, {"tp": 4}),
    "CONTEXT_EXCEEDS_MODEL": (SMALL | {"input_tokens": 200_000, "concurrency": 1}, {"input_tokens": 500}),
    "MEMORY_EXCEEDED": ({"tp": 1}, {"tp": 8}),
    "NO_LINK_BETWEEN_WORKERS": (
        SMALL | {"accelerator": "v100-sxm2-32gb", "decode": {"accelerator": "rtx-4090"}},
        {"accelerator": "h100-sxm"},
    ),
}
"""Fields of plans that cannot be, by the reason; and those that mend them."""


def faulty(code: str) -> dict[str, Any]:
    """A scenario with a fault and a workload of its own."""
    made = random.Random(f"{code} 0")
    load = {
        "input_tokens": made.randint(1, 5000),
        "output_tokens": made.choice((1, 2, 300)),
        "concurrency": made.choice((1, 7, 64)),
        "batching": made.choice(("continuous", "continuous", "static"))
        if "decode" not in FAULTS[code][0]
        else "continuous",
    }
    return load | FAULTS[code][0]


def of_plan(made: Estimate) -> dict[str, Any]:
    """The metrics of a plan as readers of its workbook see them, by attribute."""
    figures, values = made.equations.figures, made.values()
    return {metric.attribute: values[metric.of(figures)] for metric in metrics_of(figures) if metric.of_plan}


def numbers_in(results: Any) -> list[float]:
    """All numbers of nested results."""
    if isinstance(results, dict):
        return [number for part in results.values() for number in numbers_in(part)]
    return [] if results is None else [float(results)]


@pytest.mark.parametrize("code", FAULTS)
def test_a_plan_that_cannot_be_has_no_number_and_has_them_back_once_mended(
    code: str, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python, JSON, on a terminal and in a sweep; the reason stands beside it."""
    fields = faulty(code)
    made = make(**fields)
    assert code in {check["code"] for check in made.to_dict()["checks"]["errors"]}
    assert set(of_plan(made).values()) == {NOT_KNOWN}
    results = made.to_dict()
    for metric in METRICS:
        if metric.of_plan and metric.key.partition(".")[0] in results:
            assert getattr(made, metric.attribute) is None
            assert not numbers_in(results[metric.key.partition(".")[0]]), metric.key
    assert not numbers_in(results["range_80"])
    table = next(grid(made.scenario, {"concurrency": [fields.get("concurrency", 16), 3]}).tables())
    digest = Digest()
    digest.add(table)
    columns = [metric.column for metric in METRICS if metric.of_plan and metric.column in table]
    assert table[columns].isna().all(axis=None)
    assert digest.to_dict() | {"points": 0} == {"points": 0, "feasible": 0, "pareto": [], "best": {}}

    mended = make(**fields | {"output_tokens": 20} | FAULTS[code][1])
    unknown = [name for name, value in of_plan(mended).items() if isinstance(value, str)]
    assert not unknown, unknown


def test_a_single_output_token_has_no_time_per_further_token(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor what follows from it; all else is known, everywhere."""
    asked = ["llama-3.1-8b", "--accelerator", "h100-sxm", "--isl", "500", "--osl", "1", "--concurrency", "4"]
    made = make(model="llama-3.1-8b", tp=1, input_tokens=500, output_tokens=1, concurrency=4)
    none = {name for name, value in of_plan(made).items() if value == NOT_KNOWN}
    gaps = (TPOT, INTERACTIVITY, DECODE_MFU, DECODE_MBU, ITL_P50, ITL_P90, ITL_P95, ITL_P99)
    assert none == {metric.attribute for metric in gaps}
    assert made.tpot is None and made.e2e == pytest.approx(made.ttft)
    for command in (
        ["estimate", *asked],
        ["sweep", *asked, "--over", "concurrency=4,8"],
        ["explain", "metrics.tpot", *asked],
        ["explain", "serving.tpot", *asked],
    ):
        monkeypatch.setattr(sys, "argv", ["mantile", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, command
    told = capsys.readouterr().out
    assert NOT_KNOWN in told and re.search(r"\berror\b", told) is None


def test_nobody_knows_a_price_that_is_not_stated(make: Make) -> None:
    """All that costs is not known; power is, and nothing is 0."""
    made = make(model="llama-3.1-8b", accelerator="groq-lpu-v1", tp=8, price_basis="rental")
    values = made.values()
    assert isinstance(values[made.figure("cost.price")], str)
    costs = {name: value for name, value in of_plan(made).items() if "usd" in name}
    assert len(costs) >= 6 and set(costs.values()) == {NOT_KNOWN}
    for figure, value in values.items():
        identifier = str(getattr(figure, "id", ""))
        if re.fullmatch(r"cost\.(price|hourly|usd_\w+|tokens_per_usd|by\.rental)", identifier):
            assert value == NOT_KNOWN, identifier


@pytest.mark.exhaustive
def test_the_sheets_say_so_verify_agrees_and_an_edit_brings_the_numbers_back(tmp_path: Path) -> None:
    """The base cannot be, and a variant can: Summary, What-if, names; then TP is typed anew."""
    scenario = parse_scenario(
        {
            "model": "llama-3.1-8b",
            "accelerator": "h100-sxm",
            "tp": 3,
            "input_tokens": 500,
            "output_tokens": 50,
            "concurrency": 4,
            "variants": [{"name": "two", "tp": 2}],
            "sweep": {"tp": [2, 3, 4]},
        },
        "test",
    )
    made = estimate(scenario, library=few(("h100-sxm", "l40s")))
    path = build_workbook(made, tmp_path / "faulty.xlsx")
    assert not lint(path)
    found = verify(path)
    assert found.ok, found.to_dict()["mismatches"]
    book = lay_out(made)
    values = book.values(book.generated_inputs())
    seen = {
        figure.id: values[-1][figure.body]
        for figure, address in book.addresses.items()
        if address.sheet == "What-if" and isinstance(figure, Quantity) and figure.body in values[-1]
    }
    assert seen["compare.ttft.0"] == NOT_KNOWN and isinstance(seen["compare.ttft.1"], float)
    assert seen["compare.ttft.letter"] == "B" and seen["compare.won.2"] == 4 and seen["compare.won.1"] == 0
    assert seen["sweep.point.2.ttft"] == NOT_KNOWN and seen["sweep.point.2.plan"] == "invalid"
    assert isinstance(seen["sweep.point.1.ttft"], float) and isinstance(seen["sweep.point.3.usd"], float)
    assert math.isnan(seen[f"sweep.point.2.{CHOSEN}.charted"])

    def type_tp(edited: Any) -> None:
        sheet, cell = book.names["in_tp"].removeprefix("=").replace("$", "").replace("'", "").split("!")
        edited[sheet][cell] = 2

    mended = edit(path, tmp_path / "mended.xlsx", type_tp)
    again = verify(mended)
    assert again.ok, again.to_dict()["mismatches"]
    inputs = book.generated_inputs()
    inputs[0] = inputs[0] | {"inputs.tp": 2}
    after = book.values(inputs)[0]
    for metric in (TTFT, TPOT):
        number = after[metric.of(made.equations.figures)]
        assert number == values[1][metric.of(made.equations.figures)]


PREDICTED = ("ttft", "ttft_p50", "tpot", "output_tokens_per_s")
PER_DAY = ("electricity_per_day", "tokens_per_day")
NO_ROOM = "hardware.memory_capacity.override", 5.0


def _told(engine: str, folder: Path, edits: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """What Calibration and Cost say by id after edits of the base: answers of Cost by their id alone."""
    asked = SMALL | {
        "accelerator": "h100-sxm",
        "input_tokens": 500,
        "output_tokens": 50,
        "concurrency": 4,
        "measured": {"ttft_ms": 30, "tpot_ms": 8},
        "variants": [{"name": "two", "tp": 2, "measured": {"ttft_ms": None, "tpot_ms": None}}],
    }
    made = estimate(parse_scenario(asked, "test"), library=few(("h100-sxm",)))
    book = lay_out(made)
    cells = {}
    for name in ("Calculation", "Efficiency"):
        sheet = book.sheets[name]
        for row, identifier in sorted(sheet.ids.items(), reverse=True):  # what stands first on a sheet counts
            column = SHARED if identifier == "measured.error_of_all" else FIRST
            if (row, column) in sheet.cells and sheet.cells[row, column].expression is not None:
                cells[identifier] = (name, row, column)
    if engine == "office":
        task = {
            "look": [[sheet, xl_rowcol_to_cell(row, column)] for sheet, row, column in cells.values()],
            "edits": [
                [
                    [sheet, xl_rowcol_to_cell(row, column), value]
                    for identifier, value in edits
                    for sheet, row, column in (place(book, identifier),)
                ]
            ],
        }
        path = write_workbook(book, folder / "run.xlsx")
        texts = asked_of_office("libreoffice_edits.py", path, task, folder)[1]["texts"]
        return dict(zip(cells, texts.values(), strict=True))
    if engine == "formulas":
        typed = {place(book, identifier): value for identifier, value in edits}
        solution = CompiledSheets(as_written(book).contents).calculate(book.sheets, typed)
        return {identifier: solution[cell] for identifier, cell in cells.items()}
    inputs = book.generated_inputs()
    inputs[0] = inputs[0] | dict(edits)
    values = book.values(inputs)
    return {
        identifier: values[cell.scenario][cell.expression]
        for identifier, (sheet, row, column) in cells.items()
        for cell in (book.sheets[sheet].cells[row, column],)
    }


@pytest.mark.parametrize(
    "engine",
    [
        "native",
        pytest.param("formulas", marks=pytest.mark.exhaustive),
        pytest.param("office", marks=[pytest.mark.exhaustive, needs_office]),
    ],
)
@pytest.mark.parametrize("edit", [NO_ROOM, ("inputs.tp", 3)], ids=["no room", "no structure"])
def test_a_plan_that_cannot_be_is_neither_predicted_nor_paid(
    engine: str, edit: tuple[str, Any], tmp_path: Path
) -> None:
    """Calibration compares nothing with what was measured, and a day takes and brings nothing known."""
    told = _told(engine, tmp_path, (edit,))
    for identifier in (
        *(f"measured.predicted.{name}" for name in PREDICTED),
        *(f"metrics.{name}" for name in PER_DAY),
        "measured.error",
        "measured.error_of_all",
    ):
        assert told[identifier] == NOT_KNOWN, identifier
    ratios = {str(told[f"measured.ratio.{name}"]).strip() for name in PREDICTED}
    assert ratios <= {"0", "0.0", "–"}, "no ratio; its number format has a dash for 0"
    missing = {name for name in PREDICTED if str(told[f"measured.missing.{name}"]).strip() in ("1", "1.0")}
    assert missing == {"ttft", "tpot"}


def test_a_plan_that_can_be_is_predicted() -> None:
    """Compared with what was measured; what was not counts as no error."""
    told = _told("native", Path(), ())
    assert told["measured.ratio.tpot"] > 0 == told["measured.ratio.output_tokens_per_s"]
    assert not any(told[f"measured.missing.{name}"] for name in PREDICTED)
    assert 0 < told["measured.error"] == told["measured.error_of_all"]
    assert told["metrics.electricity_per_day"] > 0 < told["metrics.tokens_per_day"]


def test_a_figure_that_nobody_states_is_a_dash_at_the_head_of_hardware(make: Make) -> None:
    """Its cell holds 0; a flag of 0 says no, and what is stated is shown."""
    book = lay_out(make(accelerator="gb200-nvl72", tp=8))
    sheet = book.sheets["Hardware"]
    rows = {name: row for row, name in reversed(sheet.ids.items()) if sheet.sections[row] == "Answers"}
    values = book.estimate_values[0]
    shown = {
        name: (values[book.estimate.figure(name)], sheet.cells[row, FIRST].style.form)
        for name, row in rows.items()
    }
    numbers = {name: told for name, told in shown.items() if not isinstance(told[0], str)}
    assert {name for name, (value, _) in numbers.items() if value == 0} >= {
        "hardware.host_memory",
        "hardware.idle",
    }
    for name, (value, form) in numbers.items():
        assert form.count(";") == (0 if name == "hardware.native" else 2), (name, form)
        assert value or '"–"' in form, name
