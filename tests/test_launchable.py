"""What a search proposes is accepted by `launch`, in weights that somebody publishes for the accelerator."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from conftest import few_of
from live import exit_status

import mantile
from mantile.estimates.launch import launch
from mantile.library.checkpoints import publishers
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.launch_line import says
from mantile.library.launch_table import launch_tables
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.search.hardware_first import fits
from mantile.search.launchable import NO_LAUNCH_LINE, accepted
from mantile.search.optimize import ask, plan_of, prepared
from mantile.search.search import Search
from mantile.search.space import Space

LOAD: dict[str, Any] = {"input_tokens": 1024, "output_tokens": 256, "concurrency": 32}


def space_of(model: str, chip: str, most: int = 8, search: tuple[str, ...] = (), **over: Any) -> Space:
    """What is looked at of a model on an accelerator."""
    return prepared(ask(LOAD | {"model": model, "accelerator": chip}, "cost", [], most, over, (), search))[0]


def weights_of(space: Space) -> dict[str, set[str]]:
    """Data types of weights that are looked at, by framework."""
    rows = space.plans()[["framework", "weights_dtype"]].drop_duplicates()
    return {name: set(of["weights_dtype"]) for name, of in rows.groupby("framework")}


@pytest.mark.parametrize(
    ("model", "chip", "listed"),
    [
        ("deepseek-r1", "b200-sxm", {"fp8-block", "nvfp4"}),
        ("deepseek-r1", "mi355x", {"fp8-block", "mxfp4"}),
        ("deepseek-r1", "tpu7x", {"fp8-block"}),
        ("gpt-oss-120b", "h100-sxm", {"mxfp4"}),
        ("gpt-oss-120b", "mi355x", {"mxfp4"}),
        ("llama-3.3-70b", "mi300x", {"bf16", "fp8"}),
        ("llama-3.3-70b", "mi355x", {"bf16", "fp8", "mxfp4"}),
        ("llama-3.3-70b", "b200-sxm", {"bf16", "fp8", "nvfp4"}),
    ],
)
def test_weights_are_those_that_somebody_publishes_for_the_maker(
    model: str, chip: str, listed: set[str]
) -> None:
    """The checkpoint of another maker of accelerators is proposed by nothing."""
    proposed = weights_of(space_of(model, chip))
    assert set().union(*proposed.values()) == listed
    first = space_of(model, chip).plans().iloc[0]["weights_dtype"]
    assert first == load_model(model).architecture.choices["weights_dtype"].value


def test_a_checkpoint_that_is_made_for_an_engine_is_not_proposed_for_another() -> None:
    """Those of Red Hat are for vLLM and SGLang."""
    proposed = weights_of(space_of("phi-4", "h100-sxm"))
    assert "fp8" in proposed["vllm"] and "fp8" in proposed["sglang"] and proposed["trtllm"] == {"bf16"}


def test_weights_of_workers_apart_are_published_for_both() -> None:
    """Decode workers of another maker leave what its accelerators have too."""
    over = {"decode_accelerator": ["mi355x", "h200-sxm"]}
    pairs = space_of("deepseek-r1", "b200-sxm", 2, ("disaggregated",), **over).pairs()
    kinds = pairs.groupby("decode_accelerator")["weights_dtype"].agg(set).to_dict()
    assert kinds == {"mi355x": {"fp8-block"}, "h200-sxm": {"fp8-block", "nvfp4"}}


def test_engines_are_those_that_launch_starts(library: Library) -> None:
    """Others are looked at where somebody names them."""
    names = {name for _, name in space_of("llama-3.3-70b", "m3-ultra").formats}
    assert names == set(launch_tables()) and names < {one.id for one in library.frameworks}
    named = space_of("llama-3.3-70b", "m3-ultra", framework=["mlx"]).plans()
    assert set(named["framework"]) == {"mlx"} and set(named["weights_dtype"]) == {"int4-g64"}


def test_the_kv_cache_is_in_a_format_of_the_engine() -> None:
    """q8_0 is one of llama.cpp alone, whoever asks for it."""
    over = {"kv_dtype": ["bf16", "q8_0"], "framework": ["sglang", "vllm", "trtllm", "llama.cpp"]}
    found = mantile.optimize(model="llama-3.1-8b", accelerator="h100-sxm", over=over, gpus_max=1, **LOAD)
    kept = found.to_frame()
    assert set(kept[kept["kv_dtype"] == "q8_0"]["framework"]) == {"llama.cpp"}
    assert set(kept[kept["kv_dtype"] == "bf16"]["framework"]) == set(over["framework"])


def test_attention_dp_is_for_models_with_experts_or_latents() -> None:
    """Groups of a dense model are replicas; asked for by name, an engine that cannot be told is out."""
    degrees = {
        model: space_of(model, "h100-sxm").degrees["attention_dp"]
        for model in ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite")
    }
    assert degrees["llama-3.1-8b"] == (1,)
    assert degrees["mixtral-8x7b"] == degrees["deepseek-v2-lite"] == (1, 2, 4, 8)
    over: dict[str, Any] = {"attention_dp": [1, 2], "framework": ["vllm"], "tp": [1], "pp": [1]}
    found = mantile.optimize(model="llama-3.1-8b", accelerator="h100-sxm", over=over, gpus_max=2, **LOAD)
    assert set(found.to_frame()["attention_dp"]) == {1}
    assert {*found.found.infeasible} == {NO_LAUNCH_LINE}


def test_a_way_that_an_engine_calls_experimental_is_for_who_asks() -> None:
    """llama.cpp splits a model by layers, by tensors where somebody states TP; never by both."""
    alone: dict[str, Any] = {"framework": ["llama.cpp"]}
    usual = space_of("llama-3.3-70b", "rtx-4090", 4, **alone).plans()
    assert set(usual["tp"]) == {1} and set(usual["pp"]) == {1, 2, 4}
    asked = space_of("llama-3.3-70b", "rtx-4090", 4, tp=[1, 2, 4], **alone).plans()
    assert set(asked["tp"]) == {1, 2, 4}
    kept = asked[accepted(asked, load_model("llama-3.3-70b"), mantile.load_library())]
    assert set(kept["tp"]) == {1, 2, 4} and not ((kept["tp"] > 1) & (kept["pp"] > 1)).any()
    [machine] = fits("rtx-4090", 2, models=["llama-3.3-70b"]).models
    assert machine.plan["framework"] != "llama.cpp" or machine.plan["pp"] == 2


def test_a_change_of_the_format_stands_in_the_title() -> None:
    """As in the workbook, where it follows the cells; nothing is said of the checkpoint's own."""
    fixed: dict[str, Any] = {
        "accelerator": "h100-sxm",
        "framework": "vllm",
        "gpus_max": 1,
        "kv_dtype": "bf16",
    }
    for weights, words in (("fp8", "fp8 instead of bf16"), ("bf16", "bf16")):
        found = mantile.optimize(model="llama-3.1-8b", weights_dtype=weights, **fixed, **LOAD)
        assert found.title.startswith(f"Take H100 SXM · TP1 · {words}, bf16 KV · vllm: ")
        assert found.scenario.variants[0].name == f"H100 SXM · TP1 · {words} · vllm"
        assert found.notes == ()


def test_who_asks_for_weights_that_nobody_publishes_gets_them_with_a_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In Python, JSON, on the terminal and where a scenario leaves its degrees to be chosen."""
    note = "mxfp4: no checkpoint of DeepSeek-R1 for B200 SXM and vLLM is known"
    asked: dict[str, Any] = {"accelerator": "b200-sxm", "framework": "vllm", "weights_dtype": "mxfp4"}
    fixed: dict[str, Any] = {"pp": 1, "attention_dp": 1, "ep": 1, "dp": 1, "kv_dtype": "fp8"}
    found = mantile.optimize(model="deepseek-r1", **asked, **fixed, **LOAD)
    assert found.notes == (note,) and found.to_dict()["notes"] == [note] and f". {note}. " in found.words
    assert "mxfp4 instead of fp8-block" in found.title
    flags = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", value)]
    flags += ["--isl", "1024", "--osl", "256", "--concurrency", "32", "--pp", "1", "--attention-dp", "1"]
    for command in ("optimize", "size"):
        assert exit_status(command, "deepseek-r1", *flags) == 0
        assert f"{note}." in capsys.readouterr().out.replace("\n", " ")
    made = mantile.optimize(
        model="llama-3.1-8b", accelerator="mi300x", framework="vllm", weights_dtype="nf4", **fixed, **LOAD
    )
    [said] = made.notes
    assert said.endswith("; --quantization makes it of bf16 when the server starts")


@pytest.mark.parametrize(
    ("chip", "weights", "named"),
    [
        ("h100-sxm", "fp8", "nvidia/Llama-3.3-70B-Instruct-FP8"),
        ("mi300x", "fp8", "amd/Llama-3.3-70B-Instruct-FP8-KV"),
        ("mi355x", "mxfp4", "amd/Llama-3.3-70B-Instruct-MXFP4-Preview"),
        ("b200-sxm", "mxfp4", "MODEL_PATH"),
        ("h100-sxm", "nf4", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_launch_names_the_checkpoint_of_the_maker(chip: str, weights: str, named: str) -> None:
    fields = LOAD | {"model": "llama-3.3-70b", "accelerator": chip, "weights_dtype": weights, "tp": 8}
    scenario = parse_scenario(fields, "scenario")
    assert launch(mantile.estimate(scenario)).servers[0].model == named
    if named != "MODEL_PATH":
        assert mantile.launch_line(scenario).startswith(f"vllm serve {named} ")


def test_offload_of_any_size_is_said_and_read_as_it_was() -> None:
    """vLLM counts in GiB."""
    model = load_model("llama-3.1-8b").architecture
    sizes = [tenths / 10 for tenths in range(1, 4000, 7)]
    for name in ("vllm", "sglang"):
        assert all(says(launch_tables()[name], {"offload_weights": size}, model) for size in sizes)


def test_publishers_name_accelerators_and_engines_of_the_library(library: Library) -> None:
    """And organisations whose checkpoints some model has, in data types that they have."""
    places = {place for chip in library.accelerators for place in chip.places}
    listed = {
        (one.hub_id.partition("/")[0], one.weights_dtype)
        for name in model_ids()
        for one in load_model(name).formats
    }
    for one in publishers():
        assert set(one.on) <= places and set(one.engines) <= {of.id for of in library.frameworks}
        assert {(one.id, weights) for weights in one.weights} <= listed
        assert one.id in {owner for owner, _ in listed} and (one.on or one.engines)


def proposals(seed: int) -> tuple[Search, pd.DataFrame]:
    """Plans of a model on an accelerator drawn at random, some with a part of the weights on the host."""
    draw = random.Random(seed)
    library = mantile.load_library()
    chips = [one for one in library.accelerators if not one.own_software]
    maker = draw.choice(["NVIDIA", "NVIDIA", "AMD", "Apple", "Google", "Intel", "AWS"])
    chip = draw.choice([one.id for one in chips if one.vendor == maker])
    apart = ("disaggregated",) if draw.random() < 0.3 else ()
    most = draw.choice([1, 4, 8] if apart else [1, 8, 16, 72])
    over: dict[str, Any] = {"kv_dtype": ["bf16", "fp8", "q8_0"]} if draw.random() < 0.3 else {}
    over |= {"tp": [1, 2, 4], "attention_dp": [1, 2]} if draw.random() < 0.3 else {}
    asked = LOAD | {"model": draw.choice(model_ids()), "accelerator": chip}
    question = ask(asked, "cost", [], most, over, (), apart)
    space, _, evaluator = prepared(question)
    search = Search(evaluator, space, question.objective, (), searches_load=False)
    plans = search.replicas_of(space)
    if apart:
        plans = pd.concat([plans, space.pairs().assign(serving="disaggregated")], ignore_index=True)
    plans["offload_weights"] = [draw.choice([0.0, 0.0, round(draw.uniform(0.1, 60), 1)]) for _ in plans.index]
    return search, plans


@pytest.mark.parametrize("seed", few_of(range(16), 0, 1))
def test_launch_accepts_what_is_proposed_and_refuses_what_is_not(seed: int) -> None:
    """Of plans that keep the rules some, and some of those that are out because `launch` refuses them."""
    search, plans = proposals(seed)
    codes = search.rules(plans)["code"].to_numpy(object)
    for proposed, rows in ((True, plans[codes == ""]), (False, plans[codes == NO_LAUNCH_LINE])):
        for row in rows.sample(min(len(rows), 8), random_state=seed).to_dict("records"):
            assert refusal(search, row) == "" if proposed else refusal(search, row), row


def refusal(search: Search, row: Mapping[str, Any]) -> str:
    """Why `launch` refuses a plan, though it would have room; empty if it does not."""
    plan, model = plan_of(row), search.evaluator.model
    decode = {name.removeprefix(DECODE): plan.pop(name) for name in [*plan] if name.startswith(DECODE)}
    fields = LOAD | {"model": model.id} | plan | ({"decode": decode} if decode else {})
    try:
        launch(mantile.estimate(parse_scenario(fields, "scenario"), model), anyway=True)
    except InputError as error:
        return str(error)
    return ""
