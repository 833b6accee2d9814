"""All computation slower, all links slower: one input each."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mantile.equations.hardware import Hardware
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.scenario import parse_scenario

DENSE = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "pp": 2,
    "input_tokens": 4096,
    "output_tokens": 128,
    "concurrency": 32,
}
EXPERTS = DENSE | {"model": "gpt-oss-120b", "pp": 1, "tp": 4, "attention_dp": 4, "ep": 16}
LINKS = ("link_bandwidth", "pair_bandwidth", "scale_out_bandwidth")
RESULTS = ("serving.ttft", "serving.tpot", "serving.output_tokens_per_s")


def made(fields: dict[str, Any], **more: Any) -> Estimate:
    """An estimate of a scenario with more fields."""
    return estimate(parse_scenario(fields | more, "test"))


def numbers(of: Estimate, ids: str) -> dict[str, float]:
    """Figures whose ids match, those that are numbers."""
    values = of.values()
    return {
        identifier: float(values[figure])
        for identifier, figure in of.equations.figures.items()
        if re.fullmatch(ids, identifier) and not isinstance(values[figure], str)
    }


def halved(of: Estimate, names: tuple[str, ...]) -> dict[str, Any]:
    """Overrides that halve facts of the hardware, in the units of their cells."""
    hardware, values = of.equations.prefill_workers.hardware, of.values()
    assert isinstance(hardware, Hardware)
    cells = {overridable.id: overridable for overridable in hardware.overridable}
    return {
        "overrides": [
            {"id": f"hardware.{name}", "value": 0.5 * float(values[cells[f"hardware.{name}"].defaults[0]])}
            for name in names
        ]
    }


@pytest.mark.parametrize("fields", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_all_links_half_as_fast(fields: dict[str, Any]) -> None:
    """As if every datasheet said half; fixed times and what needs no link stay as they are."""
    usual, slow = made(fields), made(fields, network_speed=0.5)
    by_datasheet = made(fields, **halved(usual, LINKS))
    for result in RESULTS:
        assert numbers(slow, result) == pytest.approx(numbers(by_datasheet, result), rel=1e-12)
    before, after = (numbers(one, r"network\..*per_byte") for one in (usual, slow))
    assert before == pytest.approx({name: value / 2 for name, value in after.items()}, rel=1e-12)
    assert sum(value > 0 for value in after.values()) >= 5
    unmoved = r"network\..*latency|(prefill|decode)\..*(compute|memory)_time"
    assert numbers(usual, unmoved) == numbers(slow, unmoved) != {}


@pytest.mark.parametrize("fields", [DENSE, EXPERTS], ids=["dense", "experts"])
def test_all_computation_half_as_fast(fields: dict[str, Any]) -> None:
    """Every compute time doubles, of whatever operation; launches, memory and messages stay as they are.

    Products of experts also move rows in memory, which takes as long as before.
    """
    usual, slow = made(fields), made(fields, compute_speed=0.5)
    before, after = (numbers(one, r"(prefill|decode)\..*compute_time") for one in (usual, slow))
    for name, value in before.items():
        if ".experts_" in name:
            assert 1.5 * value < after[name] < 2 * value
        else:
            assert after[name] == pytest.approx(2 * value, rel=1e-12)
    assert len(after) > 10
    unmoved = r"network\..*|(prefill|decode)\..*launch_time|decode\.attention\.memory_time"
    assert numbers(usual, unmoved) == numbers(slow, unmoved) != {}
    assert (
        numbers(slow, "serving.ttft")["serving.ttft"] > 1.2 * numbers(usual, "serving.ttft")["serving.ttft"]
    )


def test_slower_links_do_not_matter_where_there_are_none() -> None:
    """One accelerator sends nothing."""
    alone = {"model": "llama-3.1-8b", "accelerator": "h100-sxm"} | {
        name: DENSE[name] for name in ("input_tokens", "output_tokens", "concurrency")
    }
    for result in RESULTS:
        assert numbers(made(alone), result) == numbers(made(alone, network_speed=0.01), result)
