"""Requests that arrive at a rate.

What follows agrees with a closed loop of as many requests, and waits with a simulated single server.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import Any

import pytest

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.scenario import parse_scenario
from mantile.verification.verify import verify
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook

ASKED: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 512,
}


def ask(**fields: Any) -> Estimate:
    """A 70B service on eight H100 unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({}, 0.5),
        ({}, 2),
        ({}, 4),
        ({"model": "gpt-oss-120b", "accelerator": "b200-sxm", "tp": 1}, 8),
        ({"dp": 2}, 6),
    ],
)
def test_as_many_in_flight_as_a_closed_loop_needs(fields: dict[str, Any], rate: float) -> None:
    """A closed loop with the requests that follow from a rate serves that rate.

    Its TPOT is the one stated.
    """
    opened = ask(**fields, request_rate=rate).results()
    assert opened["requests_per_s"] == pytest.approx(rate)
    assert opened["load_state"] == "stable" and 0 < opened["load"] < 0.8
    closed = [
        ask(**fields, concurrency=opened["concurrency"] + more).results()
        for more in (-1, 2)
        if opened["concurrency"] + more > 0
    ]
    assert closed[0]["requests_per_s"] * 0.93 <= rate <= closed[-1]["requests_per_s"] * 1.07
    assert opened["tpot_s"] == pytest.approx(closed[-1]["tpot_s"], rel=0.12)


@pytest.mark.parametrize("share", [0.1, 0.6])
@pytest.mark.parametrize(
    "fields", [{}, {"model": "gpt-oss-120b", "accelerator": "b200-sxm", "tp": 1}], ids=["dense", "experts"]
)
def test_the_step_at_a_rate_is_that_of_the_requests_that_decode(fields: dict[str, Any], share: float) -> None:
    """The step time in closed form is that of the Decode part with as many requests typed into it."""
    at_rate = ask(**fields, request_rate=1)
    limit = float(at_rate.values()[at_rate.figure("load.limit")])
    inputs = at_rate.inputs(0) | {"inputs.request_rate": share * limit}
    settled = at_rate.program.run(inputs)
    decoding = float(settled[at_rate.figure("load.decoding")])
    typed = at_rate.program.run(inputs | {"inputs.concurrency": decoding})
    step = float(typed[at_rate.figure("decode.time")])
    assert float(settled[at_rate.figure("load.step")]) == pytest.approx(step, rel=0.01)
    batch = float(settled[at_rate.figure("memory.batch")])
    assert batch == pytest.approx(decoding, rel=0.1, abs=1)


def test_more_requests_wait_longer_until_none_more_are_served() -> None:
    """Load, TPOT and waits rise with the rate.

    Beyond what can be served it is said so, and throughput stays.
    """
    rates = (0.5, 2, 4, 5, 20)
    found = [ask(request_rate=rate).results() for rate in rates]
    for name in ("load", "tpot_s", "ttft_s", "ttft_p95_s"):
        assert [result[name] for result in found] == sorted(result[name] for result in found), name
    assert found[-1]["load_state"] == "overloaded" and found[-1]["requests_per_s"] < 20
    assert "SATURATED" in {alert["code"] for alert in found[-1]["checks"]["alerts"]}
    assert "SATURATED" not in {alert["code"] for alert in found[1]["checks"]["alerts"]}


@pytest.mark.parametrize("rate", [1.2, 2.4])
def test_waits_are_those_of_a_single_server(rate: float) -> None:
    """Mean wait of random arrivals at a server, and p95 of TTFT with it.

    The server takes a prompt's time for each.
    """
    made = ask(input_tokens=8000, output_tokens=16, request_rate=rate, concurrency=4)
    values = made.values()
    service = float(values[made.figure("serving.prefill_service")])
    dice, clock, free, waits = random.Random(7), 0.0, 0.0, []
    for _ in range(200_000):
        clock += dice.expovariate(rate)
        waits.append(max(0.0, free - clock))
        free = max(free, clock) + service
    assert 0.2 < rate * service < 0.97
    assert float(values[made.figure("load.wait")]) == pytest.approx(sum(waits) / len(waits), rel=0.06)
    late = sorted(waits)[int(0.95 * len(waits))]
    rest = float(values[made.figure("serving.ttft")]) - float(values[made.figure("load.wait")])
    assert float(values[made.figure("serving.ttft_p95")]) == pytest.approx(rest + late, rel=0.1)
    assert math.isclose(float(values[made.figure("load.prompts")]), rate * service)


@pytest.mark.exhaustive
def test_a_rate_is_live_in_the_workbook(tmp_path: Path) -> None:
    """A column at a rate and one at a concurrency in one workbook: no rule broken, every cell recomputed."""
    closed = {"request_rate": 0, "concurrency": 48, "prompts_per_slot": 10}
    made = ask(model="llama-3.1-8b", tp=1, request_rate=3, variants=[closed | {"name": "closed"}])
    file = tmp_path / "rate.xlsx"
    build_workbook(made, file)
    assert lint(file) == []
    assert verify(file).ok
    assert made.results(1)["load_state"] == "closed loop"
    plain = ask(model="llama-3.1-8b", tp=1, **closed).results()
    for name in ("ttft_s", "tpot_s", "ttft_p50_s", "ttft_p95_s", "e2e_p95_s", "requests_per_s"):
        assert made.results(1)[name] == pytest.approx(plain[name], rel=1e-12), name


def test_a_scenario_needs_a_rate_or_a_concurrency() -> None:
    """One of the two is missing where neither is given."""
    with pytest.raises(InputError, match="concurrency is missing"):
        ask()


def test_a_concurrency_beside_a_rate_is_the_most_that_may_be_in_flight() -> None:
    """Where the rate needs more, so many are kept in flight; where it needs fewer, the rate holds."""
    kept, most, free = ask(concurrency=4), ask(concurrency=4, request_rate=4), ask(request_rate=4)
    for name in ("ttft_s", "tpot_s", "requests_per_s", "e2e_p95_s"):
        assert most.results()[name] == kept.results()[name], name
    assert most.results()["requests_per_s"] < free.results()["requests_per_s"] == 4
    roomy = ask(concurrency=200, request_rate=4).results()
    assert roomy["requests_per_s"] == 4
    # what a prompt adds to a step is that of a batch of all places
    assert roomy["ttft_s"] == pytest.approx(free.results()["ttft_s"], rel=0.03)


@pytest.mark.parametrize("scheduler", ["mixed", "prefill-first"])
def test_who_arrives_at_any_time_waits_for_steps_not_for_the_lag_of_a_closed_loop(scheduler: str) -> None:
    """Half the running step, the one scheduled ahead, the rest of one's own; never more than the factor."""
    made = ask(request_rate=2, scheduler=scheduler)
    lag, ahead = float(made["serving.lag_in_use"].value), 1.5
    assert ahead <= lag <= ahead + 1
    assert (lag == ahead) == (scheduler == "prefill-first")
    closed = ask(concurrency=8)
    assert closed.results()["ttft_s"] == ask(concurrency=8, request_rate=0).results()["ttft_s"]
    least = ask(request_rate=2, overrides=[{"id": "efficiency.step_lag", "value": 0.2, "reason": "test"}])
    assert float(least["serving.lag_in_use"].value) == pytest.approx(0.2)


YI: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 7168,
    "intermediate_size": 20480,
    "num_hidden_layers": 60,
    "num_attention_heads": 56,
    "num_key_value_heads": 8,
    "vocab_size": 64000,
    "max_position_embeddings": 4096,
}


@pytest.mark.exhaustive
def test_open_loop_runs_with_cached_prompts(shared_data: Path) -> None:
    """19 stages of vLLM; a prompt is found whole but for its last block. Nothing is fitted."""
    errors: dict[str, list[float]] = {"ttft_mean": [], "tpot_true": [], "e2e_mean": []}
    with (shared_data / "open_loop_public.csv").open(encoding="utf-8") as file:
        stages = [row for row in csv.DictReader(file) if row["stage"] != "-1"]
    for row in stages:
        dense = row["precision"] != "FP8"
        name = row["model"] if dense else "meta-llama/Llama-4-Scout-17B-16E-Instruct"
        fields: dict[str, Any] = {
            "model": "small" if "Yi" in name else name,
            "accelerator": "h100-sxm",
            "framework": "vllm",
            "tp": int(row["tp"]),
            "input_tokens": round(float(row["isl_measured_mean"])),
            "output_tokens": int(row["osl_max_tokens"]),
            "request_rate": float(row["rate_rps"]),
            "concurrency": int(row["max_num_seqs"]),
            "max_requests": int(row["max_num_seqs"]),
            "token_budget": int(row["max_num_batched_tokens"]),
            "gpu_memory_utilization": float(row["gpu_memory_utilization"]),
            "prefix_hit_rate": 1,
        } | ({} if dense else {"weights_dtype": "fp8", "activation_dtype": "fp8"})
        yi = Model(id="small", name="Yi", source="test", architecture=parse_config(YI, "config.json"))
        told = estimate(parse_scenario(fields, "test"), yi if "Yi" in name else None).results()
        for measured, found in errors.items():
            ours = told[f"{measured.split('_')[0]}_s"]
            found.append(abs(1000 * ours / float(row[f"measured_{measured}_ms"]) - 1))
    means = {name: sum(found) / len(found) for name, found in errors.items()}
    assert len(stages) == 19
    assert means["ttft_mean"] < 0.19 and means["tpot_true"] < 0.08 and means["e2e_mean"] < 0.08, means
