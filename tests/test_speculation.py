"""Speculative decoding: limits, what a step checks and gives, what drafting costs, where it stops to pay."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mantile.estimates.estimate import Estimate
from mantile.estimates.sweep import sweep
from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.verification.verify import verify
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook

Make = Callable[..., Estimate]
R1: dict[str, Any] = {
    **{"model": "deepseek-r1", "accelerator": "b200-sxm", "framework": "sglang", "tp": 8},
    **{"weights_dtype": "fp8-block", "input_tokens": 1024, "output_tokens": 1024},
}


def value(made: Estimate, identifier: str) -> float:
    """A figure of the base scenario."""
    return float(made.values()[made.figure(identifier)])


def codes(made: Estimate, group: str) -> set[str]:
    """Codes of the errors or alerts of the base scenario."""
    return {check["code"] for check in made.results()["checks"][group]}


# --- limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"request_rate": 2.0, "concurrency": None},
        {"batching": "static"},
        {"pp": 2, "tp": 4},
        {"decode": {"tp": 4, "dp": 2}, "tp": 2},
        {"model": "deepseek-r1", "accelerator": "b200-sxm"},
        {"model": "qwen3.5-397b-a17b", "accelerator": "b200-sxm"},
    ],
)
def test_no_drafts_are_as_without_speculation(make: Make, more: dict[str, Any]) -> None:
    """Whatever is stated beside it."""
    without = make(**more).results()
    none = make(speculation="none", draft_tokens=5, acceptance_rate=0.5, **more).results()
    assert none["tokens_per_step"] == none["draft_gain"] == 1
    for name, figure in without.items():
        if isinstance(figure, float):
            assert none[name] == pytest.approx(figure, rel=1e-12), name


@pytest.mark.parametrize("drafts", [1, 3, 8])
def test_drafts_that_nobody_accepts_only_cost(make: Make, drafts: int) -> None:
    """And if all are accepted a step gives all of them."""
    plain = make(**R1).results()["tpot_s"]
    asked = {**R1, "speculation": "mtp", "draft_tokens": drafts}
    none = make(**asked, acceptance_rate=0)
    assert none.results()["tokens_per_step"] == 1 and none.results()["tpot_s"] > plain
    assert "DRAFTS_BRING_NOTHING" in codes(none, "alerts")
    every = make(**asked, acceptance_rate=1, acceptance_decline=1)
    assert every.results()["tokens_per_step"] == drafts + 1
    assert make(**asked, acceptance_length=9).results()["tokens_per_step"] == drafts + 1
    assert every.results()["tpot_s"] < plain


@pytest.mark.parametrize(("rate", "decline", "drafts"), [(0.85, 0.85, 3), (0.6, 1, 5), (0.95, 0.7, 8)])
def test_tokens_of_a_step_are_those_that_are_drawn(
    make: Make, rate: float, decline: float, drafts: int
) -> None:
    """Draft by draft, until one is rejected; the model's own comes behind."""
    dice, total, steps = random.Random(3), 0, 60_000
    for _ in range(steps):
        chance, given_tokens = rate, 1
        while given_tokens <= drafts and dice.random() < chance:
            given_tokens += 1
            chance *= decline
        total += given_tokens
    made = make(speculation="eagle", draft_tokens=drafts, acceptance_rate=rate, acceptance_decline=decline)
    assert value(made, "speculation.emitted") == pytest.approx(total / steps, rel=0.01)


# --- what a step does ---------------------------------------------------------------------------------------


def test_a_step_checks_drafts_and_the_token_before(make: Make) -> None:
    """FLOPs of all products; weights and cache are read once."""
    asked = {"speculation": "n-gram", "draft_tokens": 3, "acceptance_length": 2}
    made, plain = make(**asked), make()
    for module in ("qkv", "ffn_up", "lm_head", "attention"):
        assert value(made, f"decode.{module}.flops") == pytest.approx(
            4 * value(plain, f"decode.{module}.flops")
        )
    assert value(made, "decode.ffn_up.weight_bytes") == value(plain, "decode.ffn_up.weight_bytes")
    assert value(made, "decode.attention.cache_bytes") == value(plain, "decode.attention.cache_bytes")
    assert value(made, "serving.tpot") == pytest.approx(
        (value(made, "serving.decode_step") + value(made, "serving.stall")) / 2
    )


def test_drafts_touch_more_experts(make: Make) -> None:
    """As so many more tokens would; of a draft layer the batch alone."""
    asked = {**R1, "concurrency": 8}
    made, plain = make(**asked, speculation="mtp", draft_tokens=3), make(**asked)
    four_times = make(**asked | {"concurrency": 32})
    assert value(made, "decode.coverage") == pytest.approx(value(four_times, "decode.coverage"))
    assert value(made, "draft.decode.coverage") == pytest.approx(value(plain, "decode.coverage"))


def test_a_step_without_drafts_is_the_step_of_the_same_batch(make: Make) -> None:
    """That drafts are compared with."""
    made, plain = make(**R1, speculation="mtp"), make(**R1)
    assert value(made, "decode.draft.plain") == pytest.approx(value(plain, "decode.time"), rel=1e-12)


@pytest.mark.parametrize("model", ["deepseek-r1", "qwen3.5-397b-a17b", "glm-4.6", "nemotron-3-super-nvfp4"])
def test_a_prediction_layer_is_as_large_as_its_tensors(make: Make, model: str) -> None:
    """On one rank, but for copies of embedding and LM head, which engines share with the model's."""
    asked = {**R1, "model": model, "tp": 1, "weights_dtype": "bf16"}
    made = make(**asked, speculation="mtp")
    held = describe(build_ir(load_model(model)), with_tensors=True)["multi_token_prediction"]
    size = sum(
        float(np.prod(tensor["shape"])) * tensor["count"]
        for tensor in held["tensors"]
        if "embed" not in tensor["name"] and "head.weight" not in tensor["name"]
    )
    assert value(made, "memory.draft_layer") == pytest.approx(2 * size, rel=0.01)
    plain = make(**asked)
    assert value(made, "memory.all_weights") - value(plain, "memory.all_weights") == pytest.approx(
        value(made, "memory.draft_layer")
    )


def test_a_draft_model_reads_the_cache_that_a_rank_keeps(make: Make) -> None:
    """Context parallelism spreads the drafter's cache: what a rank does not keep it cannot read."""
    asked = {"accelerator": "h100-sxm", "speculation": "draft-model", "draft_tokens": 4, "tp": 4}
    asked |= {"draft_model": "llama-3.2-1b", "input_tokens": 8192}
    alone, spread = make(**asked, cp=1), make(**asked, cp=2)
    for figure in ("decode.draft.cache", "memory.draft_kv"):
        assert value(spread, figure) == pytest.approx(value(alone, figure) / 2)


def test_a_draft_model_is_taken_by_its_name(make: Make) -> None:
    """Size, layers and cache; a larger one costs more, in time and memory."""
    asked = {"speculation": "draft-model", "acceptance_length": 3}
    small, large = make(**asked, draft_model="llama-3.2-1b"), make(**asked, draft_model="llama-3.1-8b")
    assert value(small, "inputs.draft_parameters") == pytest.approx(1.2358, rel=1e-3)
    assert value(small, "inputs.draft_layers") == 16
    assert value(small, "inputs.draft_kv_channels") == 16 * 2 * 8 * 64
    assert small.results()["tpot_s"] < large.results()["tpot_s"]
    weights = [value(made, "memory.weights") for made in (small, large)]
    assert weights[0] < weights[1] < weights[0] + 2 * 8.1e9 / 8


def test_an_acceptance_by_position_is_summed(make: Make) -> None:
    """As engines report it; of fewer draft tokens only theirs."""
    shares = [0.85, 0.61, 0.38]
    made = make(speculation="eagle", acceptance_by_position=shares)
    assert made.results()["tokens_per_step"] == pytest.approx(2.84)
    assert value(made, "inputs.draft_tokens") == 3
    fewer = make(speculation="eagle", acceptance_by_position="0.85,0.61,0.38", draft_tokens=2)
    assert fewer.results()["tokens_per_step"] == pytest.approx(2.46)
    for wrong, words in (([0.5, 0.6], "shares that fall"), ([1.2], "at most 1")):
        with pytest.raises(InputError, match=words):
            make(speculation="eagle", acceptance_by_position=wrong)


def test_what_cannot_draft_is_no_plan(make: Make) -> None:
    """A model without prediction layers, a draft model that nobody names, an acceptance that nobody knows."""
    for asked, code in (
        ({"speculation": "mtp"}, "NO_PREDICTION_LAYER"),
        ({"speculation": "draft-model", "acceptance_length": 2}, "NO_DRAFT_MODEL"),
        ({"speculation": "n-gram"}, "ACCEPTANCE_UNKNOWN"),
    ):
        made = make(**asked)
        assert codes(made, "errors") == {code} and made.results()["tpot_s"] is None
    assert "ACCEPTANCE_ASSUMED" in codes(make(speculation="eagle"), "alerts")
    assert "ACCEPTANCE_ASSUMED" not in codes(make(speculation="eagle", acceptance_length=2.2), "alerts")


# --- where it stops to pay ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {"speculation": "n-gram", "acceptance_length": 1.6, "tp": 4, "weights_dtype": "fp8"},
        {**R1, "speculation": "mtp", "draft_tokens": 1, "acceptance_rate": 0.6},
        {"speculation": "eagle", "draft_tokens": 5, "acceptance_rate": 0.6},
    ],
)
def test_the_batch_at_which_it_stops_to_pay(make: Make, asked: dict[str, Any]) -> None:
    """Against a search over batches; the nearer the batch, the nearer the figure."""
    low, high = 1.0, 4096.0
    for _ in range(14):
        middle = (low * high) ** 0.5
        pays = make(**asked | {"concurrency": round(middle)}).results()["draft_gain"] > 1
        low, high = (middle, high) if pays else (low, middle)
    for near, error in ((1.15, 0.12), (0.4, 0.45), (3, 0.4)):
        found = make(**asked | {"concurrency": round(low * near)}).results()["break_even_batch"]
        assert found == pytest.approx(low, rel=error), near


@given(
    method=st.sampled_from(["mtp", "eagle", "n-gram", "draft-model"]),
    drafts=st.integers(1, 8),
    rate=st.floats(0, 1),
    concurrency=st.sampled_from([1, 7, 64, 700]),
    model=st.sampled_from(["deepseek-r1", "qwen3.5-397b-a17b", "glm-4.6"]),
)
@settings(max_examples=8, deadline=None)
def test_no_step_beats_its_floor(
    make: Make, method: str, drafts: int, rate: float, concurrency: int, model: str
) -> None:
    """Nor does a larger acceptance make it slower; time by module adds up to the pass."""
    asked = {**R1, "model": model, "speculation": method, "draft_tokens": drafts, "concurrency": concurrency}
    asked |= {"draft_parameters": 1.0, "draft_layers": 20, "draft_kv_channels": 10_000.0}
    made, more = make(**asked, acceptance_rate=rate), make(**asked, acceptance_rate=(1 + rate) / 2)
    assert value(made, "serving.tpot") >= value(made, "floor.tpot") > 0
    assert value(more, "serving.tpot") <= value(made, "serving.tpot") * (1 + 1e-9)
    parts = sum(
        float(number)
        for figure, number in made.values().items()
        if str(getattr(figure, "id", "")).startswith("decode.bound.") and isinstance(number, float)
    )
    assert parts == pytest.approx(value(made, "decode.time"))
    assert 1 <= value(made, "speculation.emitted") <= drafts + 1


def test_it_can_be_swept(make: Make) -> None:
    """Points are estimates, though the scenario itself does not speculate."""
    fields = {**R1, "concurrency": 16}
    table = sweep(
        parse_scenario(fields, "scenario"), {"speculation": ["none", "mtp"], "draft_tokens": [1, 3]}
    )
    assert len(table) == 4
    for _, point in table.iterrows():
        made = make(**fields, speculation=point["speculation"], draft_tokens=int(point["draft_tokens"]))
        assert point["tpot_s"] == made.results()["tpot_s"]


@pytest.mark.exhaustive
def test_a_workbook_holds_drafts_beside_a_rate(make: Make, tmp_path: Path) -> None:
    """Adapters, prefixes and experts too: rows of the step of one request stand once, formulas are short."""
    fields = {"request_rate": 2, "prefix_hit_rate": 0.4, "ttft_limit": 2, "lora_adapters": 4, "lora_rank": 16}
    fields |= {"speculation": "n-gram", "draft_tokens": 3, "acceptance_length": 1.8}
    path = build_workbook(make(model="mixtral-8x7b", tp=2, **fields), tmp_path / "run.xlsx")
    assert not lint(path)
    assert verify(path).ok


# --- beside measured runs -----------------------------------------------------------------------------------


def test_public_runs_with_prediction_layers(shared_data: Path) -> None:
    """One acceptance for all: the table states none."""
    runs = [run for run in load_measurements(shared_data / "silicon_public.csv").runs if run.speculation]
    errors: list[float] = []
    for batch in match_runs(runs).batches:
        field = "tpot_s"
        predicted = batch.predict()[batch.outputs()[field]]
        errors += list(np.abs(predicted / batch.measured[field] - 1))
    assert len(errors) == 131
    assert np.mean(errors) < 0.115 and np.median(errors) < 0.105
