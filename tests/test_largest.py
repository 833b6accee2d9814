"""The largest model that fits accelerators and keeps the limits, and its plan."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asking import Client
from live import exit_status

import mantile
from mantile.ir.build import build_ir
from mantile.ir.counts import parameters
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.search.largest import SPEED, LargestModel

LOAD: dict[str, Any] = {"input_tokens": 1024, "output_tokens": 128, "concurrency": 2}
CARD: dict[str, Any] = {"accelerator": "l40s", "framework": "vllm"}
ASKED: dict[str, Any] = {
    "runtime_id": "vllm",
    "hardware": {"gpus": [{"sku": "l40s", "count": 1}]},
    "workload": {"context_tokens": 1024, "output_tokens": 128, "concurrency": 2},
    "objective": "largest_model",
}
MODELS = ["qwen3-0.6b", "llama-3.1-8b", "phi-4", "qwen3-32b", "llama-3.3-70b"]


def size_of(found: LargestModel) -> int:
    """Parameters of the answer; 0 where there is none."""
    return found.winner.parameters if found.winner is not None else 0


def total(model: str) -> int:
    """All parameters of a model."""
    return int(parameters(build_ir(load_model(model)))["total"])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("gpus", "limits"), [(1, {}), (2, {"tpot": 0.02}), (1, {"tpot": 0.012})])
def test_it_is_the_largest_of_the_models_that_a_search_finds_a_plan_for(
    gpus: int, limits: dict[str, float]
) -> None:
    found = mantile.largest_model(**CARD, **LOAD, gpus_max=gpus, limits=limits, models=MODELS)
    plans = {}
    for model in MODELS:
        try:
            one = mantile.optimize(
                model=model, **CARD, **LOAD, gpus_max=gpus, limits=limits, objective=SPEED, host_memory=0
            )
        except InputError:
            continue
        if one.winner is not None:
            plans[model] = one.winner
    best = max(plans, key=total)
    assert found.winner is not None and found.winner.best.question.model.id == best
    assert found.winner.best.winner is not None
    assert found.winner.best.winner.plan == plans[best].plan
    sizes = [one.parameters for one in found.models]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == total(best)
    larger = {model for model in MODELS if total(model) > total(best)}
    assert larger <= {one.model for one in found.too_large}
    assert all(one.why for one in found.too_large) and load_model(best).name in found.words


@pytest.mark.exhaustive
def test_more_accelerators_hold_no_smaller_model_and_tighter_limits_no_larger() -> None:
    asked: dict[str, Any] = {**CARD, **LOAD, "models": MODELS}
    one, two = (mantile.largest_model(**asked, gpus_max=count) for count in (1, 2))
    tight = mantile.largest_model(**asked, gpus_max=2, limits={"tpot": 0.008})
    assert size_of(two) >= size_of(one) > 0 and size_of(tight) <= size_of(two)
    none = mantile.largest_model(**asked, gpus_max=1, limits={"tpot": 1e-6})
    assert none.winner is None and "TPOT" in none.words and none.to_dict()["winner"] is None


def test_the_command_line_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--gpu", "l40s", "--framework", "vllm", "--gpus", "1", "--isl", "1024", "--osl", "128"]
    flags += ["--concurrency", "2", "--objective", "largest_model"]
    few = MODELS[2:]
    assert exit_status("optimize", ",".join(few), *flags, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    own = mantile.largest_model(**CARD, **LOAD, gpus_max=1, models=few)
    assert printed == json.loads(json.dumps(own.to_dict()))
    assert exit_status("optimize", ",".join(few), *flags) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(own.words) and "larger models do not do; the smallest is" in out


@pytest.mark.exhaustive
def test_http_answers_for_the_whole_catalogue() -> None:
    """The body of an estimate without a model; as the library, and with its figures."""
    own = mantile.largest_model(**CARD, **LOAD, gpus_max=1)
    assert own.winner is not None
    with Client() as client:
        found = client.answer("/v1/estimate", ASKED)
        assert found["model_id"] == own.winner.best.question.model.id
        assert found["explanations"][0].startswith(own.words) and found["feasibility"] == "in_vram"
        configs = found["recommended_configs"]
        assert [one["model_id"] for one in configs] == [one.best.question.model.id for one in own.models]
        assert found["estimate"]["tpot_s"] == pytest.approx(configs[0]["metrics"]["tpot_s"], rel=1e-9)


def test_http_refuses_what_the_objective_chooses() -> None:
    """With the field, and what is expected."""
    with Client() as client:
        for change, field, words in (
            ({"model_id": "llama-3.1-8b"}, "model_id", "expected it left out"),
            ({"plan": {"tp": 1}}, "plan", "expected it left out"),
            ({"hardware": {"gpus": [{"sku": "l40s"}, {"sku": "rtx-4090"}]}}, "hardware.gpus", "of one kind"),
        ):
            problem = client.refused("/v1/estimate", ASKED | change)
            assert problem["field"] == field and words in problem["detail"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["all", "--gpu", "l40s"], "all: expected a model; --objective largest-model looks at all"),
        (["phi-4", "--objective", "largest-model"], "accelerator: .*expected an id, such as h100-sxm"),
        (["nosuch", "--objective", "largest-model", "--gpu", "l40s"], "nosuch"),
    ],
)
def test_what_cannot_be_asked_says_what_can(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status("optimize", *words, "--isl", "1024", "--osl", "128") == 2
    assert re.search(expected, " ".join(capsys.readouterr().err.split()))


def test_a_model_that_is_stated_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="model: largest-model chooses it; expected models"):
        mantile.largest_model(model="phi-4", **CARD, **LOAD)
    with pytest.raises(InputError, match=r"expected `mantile optimize all`.*mantile.largest_model"):
        mantile.optimize(model="phi-4", **CARD, **LOAD, objective="largest-model")
