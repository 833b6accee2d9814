"""Load beyond what a deployment can serve, and prompts in the steps of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Make, few_of
from test_floors import CASES, anything

from mantile.graph.evaluate import Program
from mantile.library.profiles import Library

LIMITS = ("SLOTS_EXCEEDED", "STEPS_EXCEEDED", "PEAK_EXCEEDED", "TTFT_BELOW_PREFILL")
SMALL = {"model": "llama-3.1-8b", "tp": 1, "input_tokens": 2000, "output_tokens": 20}


@pytest.mark.parametrize(
    "model", few_of(["llama-3.1-8b", "deepseek-v3.2", "mixtral-8x7b", "jamba-v0.1"], "deepseek-v3.2")
)
def test_nothing_is_served_that_slots_steps_and_peaks_do_not_allow(
    library: Library, make: Make, model: str
) -> None:
    """Little's law at the batch, tokens against steps, FLOPs against the peak: on any plan and workload."""
    made = make(model=model, tp=1)
    results = {check.code: check.result for check in made.equations.checks.checks if check.code in LIMITS}
    assert set(results) == set(LIMITS)
    values = Program(list(results.values())).sweep(anything(library, made, seed=23))
    for code, result in results.items():
        held = np.broadcast_to(values[result], CASES)
        assert held.all(), (code, np.flatnonzero(held == 0))


def test_throughput_stays_once_prompts_fill_every_step(make: Make) -> None:
    """More requests wait longer; they neither serve more than the chip computes nor fewer than before."""
    served = [make(**SMALL, concurrency=requests).results() for requests in (128, 256, 1024, 4096)]
    rates = np.array([result["output_tokens_per_s"] for result in served])
    assert rates.max() / rates.min() < 1.001
    waits = [result["ttft_s"] for result in served]
    assert waits == sorted(waits) and waits[-1] == pytest.approx(4096 / (rates[-1] / 20), rel=0.05)
    steps = {result["tpot_s"] for result in served}
    assert max(steps) / min(steps) < 1.01  # a slot that waits for its prefill takes no part in a step
    flops = rates.max() / 20 * 2 * 2020 * 7.5e9
    assert flops < 989e12


@pytest.mark.parametrize("waves", [0, 1, 10])
def test_a_benchmark_serves_no_more_than_its_slots(make: Make, waves: float) -> None:
    """1,000 requests on 64 slots: what 64 slots alone serve, however long the warm-up burst waits."""
    more = make(**SMALL, concurrency=1000, max_requests=64, prompts_per_slot=waves).results()
    alone = make(**SMALL, concurrency=64, prompts_per_slot=waves).results()
    assert more["output_tokens_per_s"] == pytest.approx(alone["output_tokens_per_s"], rel=1e-9)


def test_an_overload_lasts_as_long_as_it_is_said_to(make: Make) -> None:
    """The last to arrive waits for all that were not served; the mean request half of that."""
    fields: dict[str, Any] = SMALL | {"concurrency": None, "output_tokens": 200}
    limit = float((made := make(**fields, request_rate=1)).values()[made.figure("load.limit")])
    below, above, shorter = (
        make(**fields, request_rate=limit * load, load_duration=seconds).results()
        for load, seconds in ((0.7, 3600), (1.5, 3600), (1.5, 600))
    )
    assert not below["checks"]["errors"] and below["ttft_s"] < 2
    for result, seconds in ((above, 3600), (shorter, 600)):
        assert [error["code"] for error in result["checks"]["errors"]] == ["OVERLOADED"]
        load = result["load"]
        assert result["ttft_s"] == pytest.approx(seconds / 2 * load - seconds / 2, rel=0.05)
        assert result["ttft_p95_s"] == pytest.approx(0.95 * seconds * (load - 1), rel=0.11)  # as if lognormal
    assert above["output_tokens_per_s"] == pytest.approx(shorter["output_tokens_per_s"], rel=1e-9)


def test_products_of_a_step_with_prompts_are_those_of_a_step_with_as_many_tokens(make: Make) -> None:
    """A product of weights does not know whether a token is of a prompt: one more step, of all tokens."""
    asked = {"model": "llama-3.1-8b", "tp": 1, "input_tokens": 512, "output_tokens": 128}
    few = make(**asked, concurrency=64)
    values = few.values()
    at = {name: values[few.figure(name)] for name in few.equations.figures if name.startswith("mixed.")}
    together = float(few.values()[few.figure("serving.prompts_together")])
    assert together == 1
    many = make(**asked | {"input_tokens": 1, "output_tokens": 127}, concurrency=64 + 512)
    for module in ("qkv", "output", "ffn_up", "ffn_down"):
        name = f"decode.{module}.layer_time"
        alone, joint = (float(made.values()[made.figure(name)]) for made in (few, many))
        assert at[f"mixed.{module}"] == pytest.approx(32 * (joint - alone), rel=1e-9, abs=1e-12), module


def test_many_short_prompts_read_the_weights_once(make: Make) -> None:
    """DeepSeek-R1 at 128 tokens in and out, 1,024 requests: each step carries eight prompts.

    They cost what a chunk of their 1,024 tokens costs, not eight passes over all experts.
    """
    made = make(
        model="deepseek-r1", accelerator="h200-sxm", input_tokens=128, output_tokens=128, concurrency=1024
    )
    values = made.values()
    one = {name: float(values[made.figure(name)]) for name in ("serving.prefill_service", "serving.stall")}
    assert one["serving.stall"] < 8 * one["serving.prefill_service"] / 3


FULL = {"model": "llama-3.1-8b", "tp": 1, "input_tokens": 2000, "output_tokens": 2000, "concurrency": 400}


def test_a_parked_cache_moves_there_and_back_once(make: Make) -> None:
    """No cache is read in every step: what is stopped goes over the link twice in a request's life."""

    def figures(**fields: Any) -> dict[str, float]:
        made = make(**FULL | fields)
        values = made.values()
        names = (
            "decode.host.time",
            "decode.rank_requests",
            "memory.stopped",
            "memory.redone",
            "serving.tpot",
        )
        return {name: float(values[made.figure(name)]) for name in names}

    without, parked, streamed = figures(), figures(swap_space=20), figures(offload_kv=20)
    assert without["decode.host.time"] == 0 and without["memory.redone"] == without["memory.stopped"] > 0.1
    assert parked["memory.stopped"] == without["memory.stopped"] and parked["memory.redone"] == 0
    once = 2 * 2000 * 131072 / (0.88 * 64e9)  # keys and values of a prompt of llama-3.1-8b, PCIe 5
    expected = parked["memory.stopped"] * once * parked["decode.rank_requests"] / 2000
    assert parked["decode.host.time"] == pytest.approx(expected, rel=0.05)
    assert parked["serving.tpot"] < without["serving.tpot"] < streamed["serving.tpot"]


def test_a_parking_place_changes_nothing_where_memory_suffices(make: Make) -> None:
    """And one that is too small parks a part."""
    few = FULL | {"concurrency": 20}
    assert make(**few, kv_swap=50).results()["tpot_s"] == make(**few).results()["tpot_s"]
    again = [
        float((made := make(**FULL, kv_swap=room)).values()[made.figure("memory.redone")])
        for room in (0, 0.5, 1, 20)
    ]
    assert again == sorted(again, reverse=True) and again[0] > again[1] > again[2] > again[3] == 0


def test_a_rate_on_a_plan_without_room_has_a_number_in_every_cell(make: Make) -> None:
    """Weights fill the memory of the decode workers: that does not fit, and nothing is an error value."""
    usable = [{"id": "decode.efficiency.memory_usable", "value": 0.5, "reason": "test"}]
    made = make(model="gpt-oss-120b", tp=1, concurrency=None, request_rate=5, decode={}, overrides=usable)
    values = made.values()
    figures = [values[figure] for figure in made.equations.quantities()]
    assert not [value for value in figures if not isinstance(value, str) and not np.isfinite(value)]
    assert made.results()["ttft_s"] is None


def test_a_plan_that_is_overloaded_does_not_say_that_it_fits(make: Make) -> None:
    """`feasibility` tells memory and plan alone; the verdict says overloaded where requests pile up."""
    fields: dict[str, Any] = SMALL | {"concurrency": None, "output_tokens": 200}
    over, calm = (make(**fields, request_rate=rate) for rate in (1e4, 0.01))
    assert (over.results()["feasibility"], over.results()["verdict"]) == ("fits", "overloaded")
    assert calm.results()["verdict"] == "fits"
    assert "overloaded OVERLOADED" in repr(over) and "overloaded" not in repr(calm)
