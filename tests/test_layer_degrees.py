"""Degrees of one kind of layer: FFNs over fewer ranks than attention, an embedding that each rank holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from asking import Client
from conftest import DEFAULTS, Make
from live import exit_status, few

import mantile
from mantile import optimize
from mantile.estimates.launch import launch
from mantile.library.errors import InputError
from mantile.library.launch import read_launch
from mantile.library.scenario import parse_scenario
from mantile.search.question import plan_name, plan_of
from mantile.verification.verify import verify

SAME = ("ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s", "memory_per_accelerator_bytes")
MODELS = ("llama-3.3-70b", "deepseek-v3.1")
WIDE: dict[str, Any] = {"accelerator": "gb200-nvl72", "system": "gb200-nvl72", "concurrency": 4}


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        ({"tp": 8}, {"ffn_tp": 8}),
        ({"tp": 8}, {"ffn_tp": 0, "embedding_tp": 0}),
        ({"tp": 8}, {"embedding_tp": 8}),
        ({"tp": 2, "attention_dp": 4}, {"ffn_tp": 8}),
        ({"tp": 8, "sequence_parallel": "on"}, {"ffn_tp": 8}),
        ({"tp": 1}, {"ffn_tp": 1, "embedding_tp": 1}),
    ],
)
def test_what_follows_without_is_the_same_stated(make: Make, fields: dict[str, Any], stated: Any) -> None:
    base = make(model="qwen3-32b", **fields).results()
    other = make(model="qwen3-32b", **fields, **stated).results()
    assert {key: other[key] for key in SAME} == pytest.approx({key: base[key] for key in SAME}, rel=1e-12)


def test_groups_of_ranks_hold_copies_of_ffns(make: Make) -> None:
    """Memory by the columns that a rank holds, and fewer ranks are slower: each works on all tokens."""
    ffns = 80 * 3 * 8192 * 28672 * 2
    found = {ffn: make(**WIDE, tp=8, ffn_tp=ffn).results() for ffn in (1, 2, 4, 8)}
    for ffn, one in found.items():
        more = one["memory_parts"]["weights"] - found[8]["memory_parts"]["weights"]
        assert more == pytest.approx(ffns * (1 / ffn - 1 / 8), rel=1e-9)
    times = [(found[ffn]["ttft_s"], found[ffn]["tpot_s"]) for ffn in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)


def test_an_ffn_of_one_rank_needs_no_message(make: Make) -> None:
    """Messages after attention and the embedding stay."""
    made = make(**WIDE, tp=8, ffn_tp=1)
    values, figures = made.values(), made.equations.figures
    assert values[figures["decode.ffn_sum.time"]] == 0
    assert values[figures["decode.all_reduce.count"]] == 81
    some = make(**WIDE, tp=8, ffn_tp=2)
    assert some.values()[some.equations.figures["decode.ffn_sum.time"]] > 0


@pytest.mark.parametrize("model", MODELS)
def test_an_embedding_that_each_rank_holds(make: Make, model: str) -> None:
    """Its rows are on every rank, and no sum follows it."""
    split = make(**WIDE, model=model, tp=8)
    whole = make(**WIDE, model=model, tp=8, embedding_tp=1)
    facts = whole.model.architecture
    size = facts.value("vocabulary") * facts.value("hidden_size") * 2
    more = whole.results()["memory_parts"]["weights"] - split.results()["memory_parts"]["weights"]
    assert more == pytest.approx(size * 7 / 8, rel=1e-9)
    counts = [one.values()[one.equations.figures["decode.all_reduce.count"]] for one in (split, whole)]
    assert counts[0] - counts[1] == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"ffn_tp": 3}, "FFN_TP_NOT_POSSIBLE"),
        ({"ffn_tp": 16}, "FFN_TP_NOT_POSSIBLE"),
        ({"embedding_tp": 2}, "EMBEDDING_TP_NOT_POSSIBLE"),
        ({"embedding_tp": 16}, "EMBEDDING_TP_NOT_POSSIBLE"),
    ],
)
def test_degrees_that_no_ranks_have_are_refused(make: Make, fields: dict[str, Any], code: str) -> None:
    made = make(**WIDE, tp=8, **fields).results()
    assert code in [one["code"] for one in made["checks"]["errors"]] and made["tpot_s"] is None


@pytest.mark.exhaustive
def test_the_workbook_holds_them(tmp_path: Path) -> None:
    fields = DEFAULTS | WIDE | {"model": "deepseek-v3.1", "tp": 8, "ffn_tp": 2, "embedding_tp": 1}
    made = mantile.estimate(parse_scenario(fields, "scenario"), library=few((fields["accelerator"],)))
    assert verify(made.to_excel(tmp_path / "a.xlsx")).ok


WIDER = "per-layer-type"
LOAD: dict[str, Any] = {"input_tokens": 2000, "output_tokens": 200, "concurrency": 32}
SPARSE: dict[str, Any] = {"model": "mimo-v2-flash", "accelerator": "b200-sxm", "framework": "sglang"}


def test_a_search_tries_ffns_over_other_ranks() -> None:
    """The best plan is never worse than without; a plan says TP of its FFNs in its name, and is launched."""
    over = {"weights_dtype": ["fp8-block"], "kv_dtype": ["bf16"], "pp": [1]}
    plain = optimize(**SPARSE, **LOAD, gpus_max=4, over=over)
    asked = optimize(**SPARSE, **LOAD, gpus_max=4, over=over, search=(WIDER,))
    assert plain.found.ranked["score"].iloc[0] >= asked.found.ranked["score"].iloc[0] - 1e-12
    own = asked.found.plans[asked.found.plans["ffn_tp"] == 0].drop(columns=["ffn_tp", "rank"])
    pd.testing.assert_frame_equal(
        own.reset_index(drop=True), plain.found.plans.drop(columns="rank").reset_index(drop=True)
    )
    others = asked.found.plans[asked.found.plans["ffn_tp"] > 0]
    assert set(others["ffn_tp"]) == {1} and set(others["tp"]) == {1} and (others["attention_dp"] > 1).all()
    plan = plan_of(others.iloc[0].to_dict())
    assert plan["ffn_tp"] == 1 and "FFN TP1" in plan_name(plan, asked.question.model, asked.question.library)
    scenario = parse_scenario({"model": SPARSE["model"], **LOAD, **plan}, "plan")
    [server] = launch(mantile.estimate(scenario)).servers
    assert ("--moe-dense-tp-size", "1") in [(flag.flag, flag.value) for flag in server.flags]
    assert not [remark for remark in server.not_expressed if "ffn_tp" in remark.flag]
    assert any("SGLang" in note and "FFN" in note for note in asked.notes)
    for one in asked.scenario.variants:
        ffn_tp = asked.scenario.ffn_tp if one.ffn_tp is None else one.ffn_tp
        assert bool(ffn_tp) == ("FFN TP" in one.name), "none has that of the winner"


def test_without_a_launch_line_the_plan_is_named_and_has_no_rank() -> None:
    """No flag of vLLM says it: no such plan is in the answer, and the best of them is told beside it."""
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "framework": "vllm"}
    over = {"weights_dtype": ["bf16"], "kv_dtype": ["bf16"], "pp": [1]}
    plain = optimize(**fields, **LOAD, gpus_max=4, over=over, objective="tpot")
    asked = optimize(**fields, **LOAD, gpus_max=4, over=over, objective="tpot", search=(WIDER,))
    assert asked.winner is not None and plain.winner is not None
    assert asked.winner.plan == plain.winner.plan and asked.winner.name == plain.winner.name
    assert set(asked.found.plans["ffn_tp"]) == {0} and asked.found.infeasible["NO_LAUNCH_LINE"] > 0
    [note] = [note for note in asked.notes if "no launch line" in note]
    assert "vLLM" in note and "FFN TP" in note


def test_a_model_of_experts_alone_has_no_ffns_to_divide() -> None:
    fields: dict[str, Any] = {"model": "qwen3-30b-a3b", "accelerator": "h100-sxm", "framework": "vllm"}
    asked = optimize(**fields, **LOAD, gpus_max=4, search=(WIDER,))
    assert "ffn_tp" not in asked.found.plans and any("no dense FFN" in note for note in asked.notes)


def test_a_stated_degree_is_not_searched() -> None:
    with pytest.raises(InputError, match=r"ffn_tp: stated, and per-layer-type searches it; expected one"):
        optimize(**SPARSE, **LOAD, gpus_max=4, ffn_tp=2, search=(WIDER,))


@pytest.mark.parametrize(
    ("model", "flags", "ffn_tp"),
    [
        ("mimo-v2-flash", "--tp 4 --dp 4 --enable-dp-attention", 1),
        ("deepseek-r1", "--tp 8 --dp 8 --enable-dp-attention --moe-a2a-backend deepep", 1),
        ("deepseek-r1", "--tp 8 --dp 8 --enable-dp-attention", None),  # shared experts stay over all ranks
        ("deepseek-r1", "--tp 8", None),  # ranks share out their tokens
        ("llama-3.1-8b", "--tp 4", None),
    ],
)
def test_the_flag_of_an_engine_is_read_where_it_means_the_same(
    model: str, flags: str, ffn_tp: int | None
) -> None:
    hub = {"mimo-v2-flash": "XiaomiMiMo/MiMo-V2-Flash", "deepseek-r1": "deepseek-ai/DeepSeek-R1"}
    name = hub.get(model, "meta-llama/Llama-3.1-8B-Instruct")
    line = f"python -m sglang.launch_server --model-path {name} {flags} --moe-dense-tp-size 1"
    read = read_launch(line)
    assert read.fields.get("ffn_tp") == ffn_tp
    told = [remark.flag for remark in read.not_modelled] + [*read.ignored]
    assert ("--moe-dense-tp-size" in told) == (ffn_tp is None)


def test_the_command_line_and_http_search_it_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """One question, one answer: `--per-layer-type`, and `search` of a request."""
    plan = {"weights_dtype": ["fp8-block"], "kv_dtype": ["bf16"], "pp": [1], "ep": [1]}
    typed = [word for name, values in plan.items() for word in ("--over", f"{name}={values[0]}")]
    load = ("--isl", "2000", "--osl", "200", "--concurrency", "32", "--gpus", "4", "--json")
    chip = ("--gpu", "b200-sxm", "--framework", "sglang")
    assert exit_status("optimize", "mimo-v2-flash", *chip, *load, *typed, "--per-layer-type") == 0
    printed = json.loads(capsys.readouterr().out)
    with Client() as client:
        asked = {"scenario": SPARSE | LOAD, "over": plan, "gpus_max": 4, "search": [WIDER]}
        answered = client.answer("/v1/optimize", asked)
        assert client.refused("/v1/optimize", asked | {"search": ["layers"]})["field"].startswith("search")
    assert answered["winner"]["plan"] == printed["winner"]["plan"] and answered["notes"] == printed["notes"]
    assert any("TP of FFNs" in note for note in printed["notes"])
