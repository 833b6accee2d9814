"""An override has a value, a default, its reason and an effect.

They stand on Assumptions, on the Log and in an audit.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from live import Typed, few, loaded, place

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sensitivity import sensitivity_inputs
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.audit import audit
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

FIELDS: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}
OVERRIDES: list[dict[str, Any]] = [
    # 0.55 is what profiles of AMD's generations state, by no measurement of an H100.
    {"id": "efficiency.gemm_compute", "value": 0.55, "reason": "timed by us"},
    {"id": "hardware.memory_bandwidth", "value": 3000, "reason": "STREAM"},
    {"id": "model.layers", "value": 12, "reason": "pruned"},
    {"id": "cost.life", "value": 5, "reason": "our books"},
]
BUSY = {"name": "busy", "concurrency": 64, "overrides": [{"id": "hardware.tdp", "value": 500}]}


def with_overrides(overrides: list[dict[str, Any]], **fields: Any) -> Estimate:
    """An estimate on an H100."""
    scenario = parse_scenario(FIELDS | fields | {"overrides": overrides}, "scenario")
    return estimate(scenario, library=few())


@cache
def laid_out() -> tuple[EstimateBook, list[dict[Any, Any]]]:
    """A workbook with overrides of every kind, one of them of the second scenario alone, and its values."""
    book = lay_out(with_overrides(OVERRIDES, variants=[BUSY]))
    return book, book.values(book.generated_inputs())


def shown(sheet: str) -> list[list[Any]]:
    """What the rows of a sheet show: numbers, texts, and the values of formulas."""
    book, values = laid_out()
    rows: dict[int, list[Any]] = {}
    for (row, _), cell in sorted(book.sheets[sheet].cells.items()):
        value: Any = cell.text if cell.number is None else cell.number
        if cell.expression is not None:
            value = values[cell.scenario][cell.expression]
        elif cell.text is None and cell.number is None:
            for identifier, figure in book.addresses.items():
                if figure.sheet == sheet and (figure.row, figure.column) == (row, _):
                    value = values[0][identifier]
        rows.setdefault(row, []).append(value)
    return [cells for cells in rows.values() if any(cells)]


def results(made: Estimate) -> tuple[float, float, float]:
    """TTFT in ms, TPOT in ms, USD per million output tokens."""
    found = made.results()
    return 1000 * found["ttft_s"], 1000 * found["tpot_s"], found["usd_per_million_tokens"]["output"]


def test_the_source_of_a_factor_is_the_profile_that_the_chain_leads_to() -> None:
    """On an H100 it is a measurement of an H100, whatever figures other profiles have.

    An override says so itself.
    """
    figures = {item.id: item for item in sensitivity_inputs(with_overrides([]))}
    assert figures["efficiency.gemm_compute"].status == "measured"
    assert "CDNA" not in figures["efficiency.gemm_compute"].source
    overridden = {item.id: item for item in sensitivity_inputs(with_overrides(OVERRIDES))}
    item = overridden["efficiency.gemm_compute"]
    assert (item.status, item.source) == ("override", "override: timed by us")
    assert overridden["efficiency.launch_scale"].source == figures["efficiency.launch_scale"].source


def test_an_override_of_a_factor_on_assumptions() -> None:
    """Value, the default of the fallback chain, changed, source and status, in the row of the factor."""
    plain = with_overrides([])
    default = float(plain.values()[plain.figure("efficiency.gemm_compute.ffn")])
    row = next(row for row in shown("Audit") if str(row[1:2]).startswith("['A large matrix product"))
    assert (row[5], row[7], row[8]) == (0.55, pytest.approx(default), 1)
    assert default != 0.55
    assert row[3:5] == ["A: timed by us · B: timed by us", "override"], "what stands beside the cell"


def test_every_override_on_assumptions() -> None:
    """Each has a row of its own.

    With value, unit, default, changed, source, status and effect: results with over without it.
    """
    rows = {row[1]: row for row in shown("Audit") if str(row[0]).startswith("O-")}
    expected = {
        "Memory bandwidth": (3000, "GB/s", 3350, "override: STREAM"),
        "GEMM compute efficiency": (0.55, "1", 0.6, "override: timed by us"),
        "Layers": (12, "layer", 16, "override: pruned"),
        "Economic life": (5, "year", 4, "override: our books"),
        "Power limit": (500, "W", 700, "override: no reason given"),
    }
    assert len(rows) == len(expected)
    for name, (value, unit, default, source) in expected.items():
        row = next(row for label, row in rows.items() if name in label)
        assert (row[5], row[6].strip()) == (value, unit), name
        assert row[8] == 1 and row[3:5] == [source, "override"], name
        if name != "GEMM compute efficiency":
            assert row[7] == pytest.approx(default), name
    with_all, without = (
        results(with_overrides([item for item in OVERRIDES if item["id"] != left_out]))
        for left_out in ("", "hardware.memory_bandwidth")
    )
    effects = [after / before - 1 for after, before in zip(with_all, without, strict=True)]
    row = next(row for label, row in rows.items() if "Memory bandwidth" in label)
    assert row[9:12] == pytest.approx(effects, abs=1e-6)
    assert effects[1] > 0.03
    assert "B" in next(label for label in rows if "Power limit" in label)


@pytest.mark.exhaustive
def test_without_overrides_there_is_no_block_of_them() -> None:
    """Assumptions then ends with its remarks."""
    sheet = lay_out(with_overrides([])).sheets["Audit"]
    assert not [cell for cell in sheet.cells.values() if (cell.text or "").startswith("O-")]


def test_every_override_on_the_log() -> None:
    """What changed with value and default, why, and the results before and after."""
    rows = {
        str(row[1]).split(" ")[1]: row for row in shown("Audit") if str(row[1:2]).startswith("['override: ")
    }
    assert set(rows) == {item["id"] for item in (*OVERRIDES, *BUSY["overrides"])}
    row = rows["hardware.memory_bandwidth"]
    assert row[1:4:2] == ["override: hardware.memory_bandwidth = 3000 GB/s, default 3350", "STREAM"]
    with_all, without = (
        results(with_overrides([item for item in OVERRIDES if item["id"] != left_out]))
        for left_out in ("", "hardware.memory_bandwidth")
    )
    assert row[5:11:2] == pytest.approx(without) and row[6:12:2] == pytest.approx(with_all)
    assert rows["model.layers"][1].endswith("model.layers = 12 layer, default 16")
    assert rows["hardware.tdp"][1] == "override: hardware.tdp = 500 W, default 700, scenario B"


@pytest.mark.exhaustive
def test_overrides_of_an_audit(tmp_path: Path) -> None:
    """Source, default and effect of each.

    One that was typed since is attributed to the file it was typed into.
    """
    book, _ = laid_out()
    path = write_workbook(book, tmp_path / "run.xlsx")
    typed: Typed = {place(book, "efficiency.step_row.override"): 30}
    workbook = loaded(path)
    for (sheet, row, column), value in typed.items():
        workbook[sheet].cell(row + 1, column + 1).value = value
    workbook.save(path)
    found = audit(path)
    overrides = {(item["id"], item["scenario"][0]): item for item in found.overrides}
    assert all(item["source"] == "override" for item in overrides.values())
    bandwidth, typed_since = (
        overrides["hardware.memory_bandwidth", "A"],
        overrides["efficiency.step_row", "A"],
    )
    assert bandwidth["replaces"] == pytest.approx(3350) and bandwidth["tpot"] > 0.03
    assert overrides["model.layers", "a"]["tpot"] < 0 and overrides["cost.life", "a"]["ttft"] == 0
    assert typed_since["provenance"] == "typed into run.xlsx" and typed_since["tpot"] > 0
    assumptions = {item["id"]: item for item in found.assumptions}
    step_row, compute = assumptions["efficiency.step_row"], assumptions["efficiency.gemm_compute"]
    assert (step_row["source"], step_row["status"]) == ("override: typed into run.xlsx", "override")
    assert step_row["changed"] and step_row["default"] == step_row["as_generated"]
    assert (compute["source"], compute["status"]) == ("override: timed by us", "override")
    assert not compute["changed"] and compute["default"] != compute["as_generated"] == 0.55
