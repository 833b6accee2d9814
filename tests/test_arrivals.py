"""Requests that arrive at a rate.

What follows agrees with a closed loop of as many requests, and waits with a simulated single server.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from mantile.estimate.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.verify.verify import verify
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
    """The step time in closed form is that of the Decode sheet with as many requests typed into it."""
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
    """Mean and 95th percentile of the wait of random arrivals at a server.

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
    assert float(values[made.figure("load.wait_p95")]) == pytest.approx(late, rel=0.25)
    assert math.isclose(float(values[made.figure("load.prompts")]), rate * service)


@pytest.mark.exhaustive
def test_a_rate_is_live_in_the_workbook(tmp_path: Path) -> None:
    """A column at a rate and one at a concurrency in one workbook: no rule broken, every cell recomputed."""
    closed = {"request_rate": 0, "concurrency": 48, "prompts_per_slot": 10}
    crowded = {
        "request_rate": 0,
        "concurrency": 64,
        "token_budget": 512,
        "output_tokens": 32,
    }  # prompts fill every step
    made = ask(
        model="llama-3.1-8b",
        tp=1,
        request_rate=3,
        variants=[closed | {"name": "closed"}, crowded | {"name": "crowded"}],
    )
    file = tmp_path / "rate.xlsx"
    build_workbook(made, file)
    assert lint(file) == []
    report = verify(file)
    assert report.ok
    assert made.results(1)["load_state"] == "closed loop"
    for column, fields in ((1, closed), (2, crowded)):
        plain = ask(model="llama-3.1-8b", tp=1, **fields).results()
        for name in ("ttft_s", "tpot_s", "ttft_p50_s", "ttft_p95_s", "e2e_p95_s", "requests_per_s"):
            assert made.results(column)[name] == pytest.approx(plain[name], rel=1e-12), name


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
    assert roomy["ttft_s"] == pytest.approx(free.results()["ttft_s"], rel=0.02)
