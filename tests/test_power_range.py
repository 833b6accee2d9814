"""The range of power: of what was measured, else not known with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Make
from live import few

from mantile.estimates.estimate import estimate
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.verification.verify import verify

ENDS = ("p10", "p50", "p90")
NVL: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-nvl", "framework": "vllm", "tp": 1}
RATE: dict[str, Any] = {"input_tokens": 512, "output_tokens": 256, "concurrency": None, "request_rate": 5}


def test_power_has_the_range_of_measured_gpus(make: Make, library: Library) -> None:
    """As far off as the GPUs of the runs were; the runs that it rests on lie in it."""
    made = make(**NVL, **RATE).results()
    [entry] = library.evidence.power
    band = made["range_80"]["power"]
    assert [band[end] / made["power_w"] for end in ENDS] == pytest.approx(
        [entry.p10, entry.p50, entry.p90], rel=1e-12
    )
    assert band["p10"] < band["p50"] < band["p90"]
    measured = 359.36  # W of the GPU at 5 requests/s, of the source that the entry names
    values, figures = (of := make(**NVL, **RATE)).values(), of.equations.figures
    drawn = values[figures["cost.draw"]]
    assert entry.p10 < measured / drawn < entry.p90
    assert made["power_range_basis"].startswith("GPUs measured at request rates, 21 runs of vllm")


@pytest.mark.parametrize(
    "fields",
    [
        {"framework": "sglang"},
        {"accelerator": "h100-sxm"},
        {"request_rate": None, "concurrency": 8},
        {"decode": {"tp": 1, "dp": 1}, "handover_bandwidth": 50},
    ],
)
def test_what_nobody_measured_is_not_known_with_the_reason(make: Make, fields: dict[str, Any]) -> None:
    made = make(**{**NVL, **RATE, **fields}).results()
    assert made["power_w"] > 0 and made["range_80"]["power"] == dict.fromkeys(ENDS)
    assert made["power_range_basis"] == (
        "not known: power of GPUs was measured at request rates alone, of h100-nvl with vllm (21 runs)"
    )


def test_a_plan_that_cannot_be_has_no_range_of_power(make: Make) -> None:
    made = make(**{**NVL, **RATE, "model": "llama-3.1-405b"}).results()
    assert made["range_80"]["power"] == dict.fromkeys(ENDS)


@pytest.mark.exhaustive
def test_the_workbook_holds_it(tmp_path: Path) -> None:
    """Beside scenarios of which nobody measured it."""
    others = [{"name": "no rate", "request_rate": 0, "concurrency": 8}, {"accelerator": "h100-sxm"}]
    rate = {name: value for name, value in RATE.items() if value is not None}
    scenario = parse_scenario(NVL | rate | {"variants": others}, "scenario")
    made = estimate(scenario, library=few(("h100-nvl", "h100-sxm")))
    assert verify(made.to_excel(tmp_path / "a.xlsx")).ok
