"""What input and output tokens cost by the accelerator time they take: it adds up, and follows."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Make

from mantile.equations.checks import Check
from mantile.estimates.estimate import Estimate

CASES: dict[str, dict[str, Any]] = {
    "dense": {},
    "pipeline, half used": {"tp": 4, "pp": 2, "utilisation": 0.5},
    "experts": {"model": "gpt-oss-120b", "tp": 2, "ep": 2},
    "static": {"batching": "static"},
    "one token": {"output_tokens": 1},
    "long prompts": {"input_tokens": 32_000, "output_tokens": 2},
    "at a rate": {"request_rate": 2.0, "concurrency": None},
    "apart": {"decode": {"tp": 4}},
    "apart, on two kinds": {"tp": 4, "decode": {"tp": 8, "accelerator": "h200-sxm"}},
    "owned": {"price_basis": "owned", "utilisation": 0.3},
}


def by_time(made: Estimate) -> tuple[float, float]:
    """USD per million input and output tokens."""
    costs = made.to_dict()["usd_per_million_tokens"]
    return costs["input_by_time"], costs["output_by_time"]


@pytest.mark.parametrize("name", CASES)
def test_input_and_output_tokens_pay_every_hour(name: str, make: Make) -> None:
    """By the tokens of an hour at the utilisation stated, as a reader of the results works them out."""
    fields = {key: value for key, value in CASES[name].items() if value is not None}
    made = make(**fields)
    results = made.to_dict()
    of_input, of_output = by_time(made)
    assert of_input > 0 and of_output > 0
    hours = results["requests_per_s"] * 3600 * fields.get("utilisation", 1.0) / 1e6
    base = made.columns[0].values
    paid = hours * (base["input_tokens"] * of_input + base["output_tokens"] * of_output)
    assert paid == pytest.approx(results["usd_per_hour"], rel=1e-12)
    assert of_input < results["usd_per_million_tokens"]["input"], "all that an hour costs is more"
    assert "COST_NOT_PAID" not in {check["code"] for check in results["checks"]["errors"]}


def test_each_kind_pays_for_the_time_it_takes(make: Make) -> None:
    """Prompts of a replica, and decode steps that all requests of the batch share."""
    made = make()
    values = {figure.id: value for figure, value in made.values().items() if hasattr(figure, "id")}
    prompt = values["serving.prefill_service"]
    output = 256 * values["serving.decode_step"] / values["memory.batch"]
    of_input, of_output = by_time(made)
    assert 2048 * of_input / (256 * of_output) == pytest.approx(prompt / output)


def test_prefill_workers_are_paid_by_input_tokens_alone(make: Make) -> None:
    """Whatever the time of a prompt is: a dearer decode worker makes outputs dearer only."""
    fields = {"decode": {"tp": 8}}
    made, dearer = (
        make(**fields, overrides=[*more])
        for more in ([], [{"id": "decode.hardware.price_cloud", "value": 9.0, "reason": "an offer"}])
    )
    (of_input, of_output), (same, more) = by_time(made), by_time(dearer)
    assert same == pytest.approx(of_input) and more == pytest.approx(of_output * 9.0 / 2.95)


def test_what_moves_it(make: Make) -> None:
    """More requests share a step: outputs cost less, prompts as much time as before. Half the use: twice."""
    few, many, idle = make(concurrency=4), make(concurrency=64), make(concurrency=4, utilisation=0.5)
    assert by_time(many)[1] < 0.5 * by_time(few)[1]
    assert by_time(idle) == pytest.approx([2 * cost for cost in by_time(few)])


def test_without_a_price_nobody_knows_it(make: Make) -> None:
    """Null, and the check that both add up has nothing to say."""
    made = make(accelerator="tpu7x", tp=8)
    assert made.to_dict()["usd_per_hour"] is None and by_time(made) == (None, None)
    assert "COST_NOT_PAID" not in {check["code"] for check in made.to_dict()["checks"]["errors"]}


def test_the_check_fails_where_they_do_not_add_up(make: Make) -> None:
    """Its sides are rows of the Cost part: what tokens pay, and what an hour costs."""
    equations = make().equations
    check = next(check for check in equations.checks.checks if check.code == "COST_NOT_PAID")
    assert isinstance(check, Check) and check.error
    assert {check.left.id, check.right.id} == {"token_cost.paid", "token_cost.owed"}
    assert check.left in equations.figures.values() and check.right in equations.figures.values()
