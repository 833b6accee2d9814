"""The fields of a scenario: one table from which schema, flags, inputs and the reference page follow."""

from __future__ import annotations

from typing import Any

import pytest

from mantile.library.errors import InputError
from mantile.library.scenario import Deployment, Scenario, parse_scenario

BASE = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}


@pytest.fixture(scope="module")
def base() -> Scenario:
    return parse_scenario({**BASE, "variants": [{"tp": 2}]}, "plan.yaml")


def test_replace_is_checked_like_a_file_and_keeps_variants(base: Scenario) -> None:
    assert (
        base.replace(tp=4).tp
        == base.replace(tp_size=4).tp
        == base.replace(**{"tensor-parallel-size": 4}).tp
        == 4
    )
    assert base.replace(tp=4).variants == base.variants and base.tp == 8
    assert base.replace(tp=None).tp is None
    assert base.replace(variants=()).variants == ()


def test_replace_takes_fields_of_decode_workers(base: Scenario) -> None:
    assert base.replace(decode_tp=4, decode_workers=2).decode == Deployment(tp=4, dp=2)
    apart = base.replace(decode=Deployment(tp=4, cp=2))
    assert apart.replace(decode_tp_size=8).decode == Deployment(tp=8, cp=2)
    assert apart.replace(decode=None).decode is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tp": -4}, r"field tp: .*greater than or equal to 1 \(found -4\)"),
        ({"concurency": 4}, r"field concurency: there is no such field; did you mean concurrency"),
        ({"decode_tpp": 4}, r"field decode\.tpp: there is no such field; did you mean .*tp"),
        ({"variants": [{"out_tokens": 4}]}, r"field variants\.0\.out_tokens: .*did you mean output_tokens"),
        ({"accelerator": None}, "accelerator is missing"),
        ({"isl": 1, "input_len": "long"}, r"field input_tokens: .*\(found 'long'\)"),
    ],
)
def test_replace_refuses_what_a_file_may_not_hold(
    base: Scenario, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"^scenario: {message}"):
        base.replace(**fields)
