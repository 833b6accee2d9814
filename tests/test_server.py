"""The server: every endpoint of the list with the bodies that it names, and answers that are the engine's."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from asking import Client
from packages import Parts

import mantile
from mantile.cli import main
from mantile.estimates.messages import MESSAGES
from mantile.library.scenario import parse_scenario
from mantile.records.store import read
from mantile.server import pool as pools
from mantile.server.documents import in_fields
from mantile.server.settings import Settings

CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
WORKLOAD = {"context_tokens": 1024, "output_tokens": 128, "concurrency": 8}
LAYER = {
    "model_id": "llama_3.3_70b",
    "hardware_config": "nvidia_h100_80gb",
    "layer_type": "attention",
    "batch_size": 8,
    "seq_length": 2048,
    "dtype": "bf16",
    "tensor_parallel": 4,
    "context_parallel": 1,
    "sequence_parallel": False,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """One server for all that do not ask for settings of their own."""
    with Client() as running:
        yield running


# --- what there is ------------------------------------------------------------------------------------------


def test_hardware_and_models_are_the_library(client: Client) -> None:
    """Ids of configurations with their figures; names that others use are among the aliases."""
    found = client.get("/hardware").json()
    library = mantile.load_library()
    assert {chip.id for chip in library.accelerators} < set(found["configs"]) == set(found["details"])
    assert found["details"]["nvl72-gb200"]["accelerators"] == 72
    assert "nvidia_nvl72_rack" in found["details"]["nvl72-gb200"]["aliases"]
    memory = library.accelerator("h100-sxm").memory_capacity.value
    assert memory is not None
    assert found["details"]["h100-sxm"]["memory_capacity_bytes"] == memory * 2**30
    models = client.get("/models").json()["models"]
    assert next(one for one in models if one["model_id"] == "llama-3.3-70b")["layers"] == 80


@pytest.mark.parametrize("start", ["/v1", "/api/estimator/v1"])
def test_the_catalog_is_there_twice(client: Client, start: str) -> None:
    """Under both names; a figure that no document states is null."""
    runtimes = client.get(f"{start}/catalog/runtimes").json()["runtimes"]
    vllm = next(one for one in runtimes if one["runtime_id"] == "vllm")
    assert vllm["version"] and vllm["scheduler"]["kind"] and "fp8" in vllm["supported_formats"]
    assert "FLASHINFER" in vllm["kernel_flags"]["attention_backend"]
    assert next(one for one in runtimes if one["runtime_id"] == "mlx")["cuda"] is None
    hardware = client.get(f"{start}/catalog/hardware-profiles").json()["hardware_profiles"]
    assert {"h100-sxm", "hgx-h100"} <= {one["hardware_id"] for one in hardware}
    formats = client.get(f"{start}/catalog/quantizations").json()["quantizations"]
    assert next(one for one in formats if one["quantization_id"] == "fp8")["bits"] == 8


def test_layers_say_what_shapes_allow(client: Client) -> None:
    """Degrees are those that the planner's checks on shapes let pass."""
    found = client.get("/api/layers", params={"model_id": "llama_3.3_70b"}).json()
    assert found["attention"]["count"] == found["feedforward"]["count"] == 80
    assert found["attention"]["available_parallelism"]["tensor_parallel"] == [1, 2, 4, 8, 16, 32, 64]
    assert 7 in found["feedforward"]["available_parallelism"]["tensor_parallel"]
    assert found["feedforward"]["available_parallelism"]["expert_parallel"] == [1]
    (qkv, *_) = found["attention"]["specs"]
    assert qkv["tensors"][0]["shape"] == [8192, 8192]
    assert {one["module"] for one in found["embedding"]["specs"]} == {"embedding", "lm_head"}
    lost = client.get("/api/layers", params={"model_id": "no-such-model"})
    assert (lost.status_code, lost.json()["field"]) == (422, "model_id")


# --- estimates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tp": 2, "request_rate": 3, "shared_prefix": 200},
        {"model": "deepseek-r1", "accelerator": "h200-sxm", "tp": 8, "ep": 8, "decode": {"tp": 8, "dp": 2}},
    ],
)
def test_an_estimate_is_that_of_the_command_line_to_the_digit(
    client: Client,
    fields: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Asked twice: what the second estimate of a structure keeps from the first changes no digit."""
    path = tmp_path / "scenario.json"
    path = path.with_suffix(".yaml")
    path.write_text(json.dumps(CHAT | fields), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["mantile", "estimate", str(path), "--json"])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = json.loads(capsys.readouterr().out)
    assert not stop.value.code
    for _ in range(2):
        found = client.answer("/v1/estimate", {"scenario": CHAT | fields, "recommend": 0})
        assert found["estimate"].items() <= printed.items()
        assert (found["sentence"], found["remedies"]) == (printed["sentence"], printed["remedies"])
    other = client.answer("/v1/estimate", {"scenario": CHAT | fields | {"concurrency": 9}})["estimate"]
    assert other == mantile.estimate(parse_scenario(CHAT | fields | {"concurrency": 9}, "other")).to_dict()


def test_an_estimate_tells_figures_limits_and_plans(client: Client) -> None:
    """The body of the list: figures are those of the estimate in the units of their names."""
    asked = {
        "model_id": "llama_3.1_8b",
        "runtime_id": "vllm",
        "hardware": {"gpus": [{"gpu_id": "nvidia_h100_80gb", "count": 2}], "ram_gb": 512, "cpu": "EPYC"},
        "workload": WORKLOAD,
        "objective": "tpot",
        "recommend": 2,
    }
    found = client.answer("/api/estimator/v1/estimate", asked)
    whole, figures = found["estimate"], found["estimates"]
    assert found["feasibility"] == "in_vram" and found["hardware"]["accelerator"] == "h100-sxm"
    assert figures["decode_toks_sec"] == whole["range_80"]["throughput"]
    assert figures["ttft_ms"]["p95"] == whole["ttft_p95_s"] * 1e3
    prefill, ram = figures["prefill_toks_sec"], figures["ram_peak_gb"]
    assert prefill["p10"] < whole["prefill_tokens_per_s"] < prefill["p90"]
    slow = figures["ttft_ms"]["p90"] / figures["ttft_ms"]["mean"]
    assert whole["prefill_tokens_per_s"] / prefill["p10"] == pytest.approx(slow)  # as far off as TTFT
    cost, speed = figures["usd_per_million_output_tokens"], figures["interactivity_toks_sec"]
    output = figures["decode_toks_sec"]
    price = whole["usd_per_million_tokens"]["output"] * whole["output_tokens_per_s"]
    assert [cost[end] for end in ("p10", "p90")] == pytest.approx(
        [price / output[end] for end in ("p90", "p10")]
    )
    assert speed["p10"] * figures["tpot_ms"]["p90"] == pytest.approx(1000)
    assert ram["p10"] < ram["p50"] == whole["ram_peak_bytes"] * 1e-9 < ram["p90"]
    assert figures["vram_peak_gb"]["p10"] <= figures["vram_peak_gb"]["p50"] <= figures["vram_peak_gb"]["p90"]
    for phase in ("prefill", "decode"):
        shares = [one["percent"] for one in found["bottlenecks"] if one["phase"] == phase]
        assert sum(shares) == pytest.approx(100) and shares == sorted(shares, reverse=True)
    first, second = found["recommended_configs"]
    assert (first["rank"], second["rank"]) == (1, 2)
    assert first["metrics"]["tpot_s"] <= second["metrics"]["tpot_s"]
    assert first["metrics"]["tpot_s"] == pytest.approx(whole["tpot_s"], rel=1e-9)
    assert any("[AUTO]" in words for words in found["explanations"])
    assert any("cpu" in words and "told back" in words for words in found["explanations"])
    again = mantile.estimate(parse_scenario(found["scenario"], "told")).to_dict()
    assert again == whole


def test_what_does_not_fit_says_by_how_much_and_what_would_help(client: Client) -> None:
    """The three classes, of one model on one card: unknown host memory is never assumed."""
    card = {
        "model_id": "llama_3.3_70b",
        "runtime_id": "vllm",
        "hardware": {"hardware_id": "rtx 4090"},
        "workload": WORKLOAD | {"concurrency": 1},
        "recommend": 1,
    }
    without = client.answer("/v1/estimate", card)
    assert without["feasibility"] == "insufficient_memory"
    assert without["reasons"][0]["code"] == "MEMORY_EXCEEDED"
    assert set(without["estimates"]["ttft_ms"].values()) == {None} and not without["bottlenecks"]
    assert any("ram_gb" in words for words in without["explanations"])
    assert not any(words.startswith("TTFT") for words in without["explanations"])  # it has none
    hosted = client.answer("/v1/estimate", card | {"hardware": {"hardware_id": "rtx 4090", "ram_gb": 256}})
    assert hosted["feasibility"] == "runs_with_offload"
    assert hosted["scenario"]["offload_weights"] > 0 and hosted["estimates"]["ttft_ms"]["mean"] > 0
    assert len(hosted["recommended_configs"]) == 1
    assert not any("No other plan has a rank" in words for words in hosted["explanations"])  # there are some
    words = r"Model exceeds VRAM by ([\d.]+) GB of each accelerator, so ([\d.]+) GB of weights .*host memory"
    said = re.match(words, hosted["explanations"][0])
    assert said is not None and float(said[2]) == pytest.approx(
        hosted["scenario"]["offload_weights"], abs=0.06
    )
    stated = {**hosted["scenario"], "offload_weights": 0.0, "offload_kv": 0.0}
    check = client.answer("/v1/estimate", {"scenario": stated})["estimate"]["checks"]["errors"][0]
    assert float(said[1]) == pytest.approx((check["left"] - check["right"]) * 1e-9, abs=0.06)
    assert without["explanations"][0].startswith("Model exceeds VRAM by ")
    fewer = client.answer(
        "/v1/estimate", card | {"model_id": "llama-3.1-8b", "plan": {"tp": 1}, "recommend": 0}
    )
    assert fewer["feasibility"] == "in_vram" and fewer["recommended_configs"] == []


def test_unlike_accelerators_share_the_layers(client: Client) -> None:
    """Several kinds of accelerators are devices of one pipeline, joined by the link that is named."""
    asked = {
        "model_id": "llama-3.1-8b",
        "runtime_id": "exo",
        "hardware": {"gpus": [{"gpu_id": "dgx-spark"}, {"gpu_id": "m3-ultra"}], "interconnect": "10g"},
        "workload": WORKLOAD | {"concurrency": 1},
    }
    answer = client.answer("/v1/estimate", asked)
    devices = answer["estimate"]["devices"]
    told = " ".join(answer["explanations"])
    for one in devices:
        assert f"{one['layers'] or 'No'} layers run on {one['name']}" in told
    assert [one["accelerator"] for one in devices] == ["dgx-spark-gb10", "m3-ultra"]
    assert devices[0]["link"]["kind"] == "10gbe"
    ways = client.answer("/v1/estimate", asked | {"objective": "throughput"})["recommended_configs"]
    assert ways[0]["name"] == "prefill on dgx-spark-gb10, decode on m3-ultra"
    assert len(ways) == 3 and ways[0]["plan"]["decode"]["accelerator"] == "m3-ultra"
    rates = [one["metrics"]["output_tokens_per_s"] for one in ways]
    assert rates == sorted(rates, reverse=True) and ways[1]["reason"]


def test_layers_without_room_run_on_the_cpu(client: Client) -> None:
    """As llama.cpp has it; a CPU that we do not know, or another engine, is told back."""
    asked: dict[str, Any] = {
        "model_id": "llama-3.3-70b",
        "runtime_id": "llama_cpp",
        "hardware": {"gpus": [{"gpu_id": "rtx 4090"}], "cpu": "Ryzen 9 9950X"},
        "workload": WORKLOAD | {"concurrency": 1},
        "recommend": 0,
    }
    answer = client.answer("/v1/estimate", asked)
    cpu, gpu = answer["estimate"]["devices"]
    assert answer["feasibility"] == "runs_with_offload" and cpu["layers"] > 0 < gpu["layers"]
    said = rf"Model exceeds VRAM by [\d.]+ GB of each accelerator, so {cpu['layers']} layers run on Ryzen 9"
    assert re.match(said, answer["explanations"][0])
    assert not any("told back" in text for text in answer["explanations"])
    other = client.answer("/v1/estimate", asked | {"hardware": asked["hardware"] | {"cpu": "abacus"}})
    assert other["feasibility"] == "insufficient_memory"
    assert any("cpu ('abacus') is told back" in text for text in other["explanations"])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("ram", "feasibility"), [(8, "insufficient_memory"), (64, "runs_with_offload")])
def test_layers_on_a_cpu_need_room_in_memory(client: Client, ram: float, feasibility: str) -> None:
    """What the host has, not what the library says of the CPU."""
    asked = {
        "model_id": "llama-3.3-70b",
        "runtime_id": "llama.cpp",
        "hardware": {"hardware_id": "rtx 4090", "cpu": "Ryzen 9 9950X", "ram_gb": ram},
        "workload": WORKLOAD | {"concurrency": 1},
        "recommend": 0,
    }
    assert client.answer("/v1/estimate", asked)["feasibility"] == feasibility


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"model_id": "gpt-5"}, "model_id", None),
        ({"runtime_id": "no-such"}, "runtime_id", None),
        ({"hardware": {"hardware_id": "h999"}}, "hardware.hardware_id", None),
        ({"hardware": {}}, "hardware", None),
        (
            {"hardware": {"gpus": [{"gpu_id": "h100"}], "interconnect": "string"}},
            "hardware.interconnect",
            None,
        ),
        ({"workload": None}, "model_id", None),
        ({"workload": WORKLOAD | {"concurrency": 0}}, "workload.concurrency", None),
        ({"objective": "beauty"}, "objective", None),
        ({"objective": "0*cost+1*e2e"}, "objective", None),
        ({"plan": {"tp": 3}, "recommend": 0}, None, "HEADS_NOT_DIVISIBLE"),
        ({"plan": {"speed": 3}, "recommend": 0}, "plan.speed", None),
        ({"plan": {"tensor_parallel_size": "x"}, "recommend": 0}, "plan.tensor_parallel_size", None),
        ({"plan": {"decode": {"tp": 0}}, "recommend": 0}, "plan.decode.tp", None),
        ({"colour": "blue"}, "colour", None),
    ],
)
def test_wrong_estimates_name_the_field(
    client: Client, change: dict[str, Any], field: str | None, code: str | None
) -> None:
    """A problem with field, and with the reason code of a plan that cannot be."""
    asked: dict[str, Any] = {
        "model_id": "llama-3.1-8b",
        "hardware": {"hardware_id": "h100-sxm"},
        "workload": WORKLOAD,
    }
    problem = client.refused("/v1/estimate", asked | change)
    assert (problem["field"], problem["code"]) == (field, code), problem


# --- layers -------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_metrics_of_a_layer_are_rows_of_the_graph(client: Client) -> None:
    """Each row has the id and the value that the engine gives it; kinds and the rest add up to the pass."""
    found = client.answer("/config/layer-metrics", LAYER)
    made = mantile.estimate(parse_scenario(found["scenario"], "told"))
    rows = [row for phase in ("prefill", "decode") for one in found[phase]["modules"] for row in one["rows"]]
    assert len(rows) > 40 and all(made[row["id"]].value == row["value"] for row in rows)
    assert {one["module"] for one in found["decode"]["modules"]} == {"qkv", "rope", "attention", "output"}
    system = client.answer(
        "/config/system-metrics",
        {
            "model_id": "llama_3.3_70b",
            "hardware_config": "nvidia_h100_80gb",
            "batch_size": 8,
            "input_seq": 2048,
            "output_seq": 256,
            "layers": {
                "attention": {"tensor_parallel": 4, "context_parallel": 1, "dtype": "bf16"},
                "feedforward": {"tensor_parallel": 4, "sequence_parallel": False, "dtype": "fp8"},
                "norm": {},
                "embedding": {},
            },
        },
    )
    assert system["scenario"]["ffn_dtype"] == "fp8" and system["scenario"]["attention_dtype"] == "bf16"
    for phase in ("prefill", "decode"):
        kinds = sum(kind[phase]["time_s"] for kind in system["layers"].values())
        others = sum(one["time_s"] for one in system["others"][phase])
        assert kinds + others == pytest.approx(system["phases"][phase]["time_s"], rel=1e-9)
    assert system["estimate"] == mantile.estimate(parse_scenario(system["scenario"], "told")).to_dict()


def test_ffns_over_more_ranks_are_groups_of_attention(client: Client) -> None:
    """A rack has the accelerators of its domain, and degrees that differ become attention-DP."""
    body = {
        "model_id": "llama-3.3-70b",
        "hardware_config": "nvidia_nvl72_rack",
        "input_seq": 512,
        "output_seq": 8,
    }
    layers = {"attention": {"tensor_parallel": 2}, "feedforward": {"tensor_parallel": 8}}
    found = client.answer("/config/system-metrics", body | {"layers": layers})
    assert (found["scenario"]["tp"], found["scenario"]["attention_dp"]) == (2, 4)
    assert found["scenario"]["system"] == "nvl72-gb200"
    for layers in ({"feedforward": {"tensor_parallel": 3}}, {"attention": {"tensor_parallel": 5}}):
        assert client.refused("/config/system-metrics", body | {"layers": layers})["code"] in (
            "FFN_NOT_DIVISIBLE",
            "HEADS_NOT_DIVISIBLE",
        )
    layers = {"attention": {"tensor_parallel": 8}, "feedforward": {"tensor_parallel": 4}}
    found = client.answer("/config/system-metrics", body | {"layers": layers})
    assert (found["scenario"]["tp"], found["scenario"]["ffn_tp"]) == (8, 4)
    layers = {"attention": {"tensor_parallel": 8}, "feedforward": {"tensor_parallel": 3}}
    problem = client.refused("/config/system-metrics", body | {"layers": layers})
    assert problem["code"] == "PLAN_NOT_EXPRESSIBLE"
    assert problem["field"] == "layers.feedforward.tensor_parallel"


def test_a_system_without_room_has_no_times(client: Client) -> None:
    """As its estimate has none: a kind of layer by itself may have room."""
    body = {"model_id": "llama-3.1-405b", "hardware_config": "h100", "input_seq": 512, "output_seq": 8}
    found = client.answer("/config/system-metrics", body)
    assert found["estimate"]["ttft_s"] is None
    assert (found["layers"], found["others"], found["phases"]) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"tensor_parallel": 3}, None, "HEADS_NOT_DIVISIBLE"),
        ({"sequence_parallel": 2}, "sequence_parallel", "PLAN_NOT_EXPRESSIBLE"),
        ({"layer_type": "norm", "dtype": "fp8"}, "dtype", "PLAN_NOT_EXPRESSIBLE"),
        ({"layer_type": "convolution"}, "layer_type", None),
        ({"dtype": "fp7"}, "dtype", None),
        ({"seq_length": 10_000_000}, None, "CONTEXT_EXCEEDS_MODEL"),
        ({"hardware_config": "nvidia_nothing"}, "hardware_config", None),
        ({"model_id": "no-such"}, "model_id", None),
    ],
)
def test_layers_that_cannot_be_are_refused_with_their_code(
    client: Client, change: dict[str, Any], field: str | None, code: str | None
) -> None:
    """Codes are those of the planner, or that of degrees that no plan has."""
    problem = client.refused("/config/layer-metrics", LAYER | change)
    assert (problem["field"], problem["code"]) == (field, code), problem


# --- searches, records, config.json -------------------------------------------------------------------------


def test_a_search_answers_as_the_library_does(client: Client) -> None:
    """Names of accelerators in any spelling; limits in SI units."""
    workload = {key: value for key, value in CHAT.items() if key != "accelerator"}
    over = {"framework": ["vllm"], "weights_dtype": ["fp8"], "kv_dtype": ["fp8"]}
    chips = {"gpu": ["H100", "l40s"]}
    asked = {"scenario": workload, "over": over | chips, "limits": {"tpot": 0.04}, "gpus_max": 1, "plans": 3}
    found = client.answer("/v1/optimize", asked)
    over = {
        "accelerator": ["h100-sxm", "l40s"],
        "framework": ["vllm"],
        "weights_dtype": ["fp8"],
        "kv_dtype": ["fp8"],
    }
    own = mantile.optimize(**workload, over=over, limits={"tpot": 0.04}, gpus_max=1, plans=3)
    assert found == json.loads(json.dumps(own.to_dict()))
    assert found["default_limits"] == {"ttft_p95_s": 10.0} and found["cap"] == {"gpus_max": 1}
    assert [*found["asked_accelerators"]] == ["h100-sxm", "l40s"]
    prices = {"H100": 3.5}
    found = client.answer(
        "/v1/optimize", asked | {"scenario": workload | {"prices": prices}, "default_limits": False}
    )
    paid = {one["plan"]["accelerator"]: one["metrics"]["usd_per_hour"] for one in found["candidates"]}
    assert paid == {"h100-sxm": 3.5, "l40s": 0.79} and found["default_limits"] == {}
    typed = {"overrides": [{"id": "hardware.price_cloud", "value": 2.0}]}
    refused = client.refused("/v1/optimize", asked | {"scenario": workload | typed})
    assert refused["field"] == "overrides" and "a price for each" in refused["detail"]
    problem = client.refused("/v1/optimize", asked | {"over": {"accelerator": ["x.yaml"]}})
    assert problem["field"] == "accelerator" and "names a file" in problem["detail"]
    for change, field in (
        ({"objective": "beauty"}, "objective"),
        ({"limits": {"tppot": 1}}, "limits"),
        ({"over": {"framework": ["no-such"]}}, "framework"),
    ):
        assert client.refused("/v1/optimize", asked | change)["field"] == field


def test_a_sweep_is_streamed_and_bounded(client: Client) -> None:
    """Lines of JSON or CSV, a line for each point, as `mantile sweep` has them."""
    over = {"tp": [1, 2], "concurrency": [4, 8, 16]}
    found = client.post("/v1/sweep", {"scenario": CHAT, "over": over})
    assert found.headers["content-type"] == "application/x-ndjson" and found.headers["x-points"] == "6"
    rows = [json.loads(line) for line in found.text.splitlines()]
    table = mantile.sweep(parse_scenario(CHAT, "chat"), **over)
    assert [row["tpot_s"] for row in rows] == [*table["tpot_s"]]
    as_csv = client.post("/v1/sweep", {"scenario": CHAT, "over": over, "format": "csv"}).text.splitlines()
    assert len(as_csv) == 7 and as_csv[0].startswith("tp,concurrency,")
    many = {"concurrency": [*range(1, 401)], "input_tokens": [*range(1, 401)]}
    assert (
        "expected at most 100,000" in client.refused("/v1/sweep", {"scenario": CHAT, "over": many})["detail"]
    )
    parts = {"concurrency": [*range(1, 51)], "input_tokens": [*range(100, 150)]}
    lines = client.post("/v1/sweep", {"scenario": CHAT, "over": parts}).text.splitlines()
    assert len(lines) == 2500 and json.loads(lines[-1])["input_tokens"] == 149  # of two parts


@pytest.mark.exhaustive
def test_a_measured_run_is_stored_and_says_what_it_would_change(tmp_path: Path) -> None:
    """In the file that was named; the next server has it. Nothing of the library changes."""
    run = CHAT | {
        "id": "ours-1",
        "framework": "vllm",
        "metrics": {"tpot_ms": 8.4, "ttft_s": 0.07},
        "source": "our own run",
    }
    with Client(records=tmp_path / "runs.db") as client:
        found = client.answer("/v1/calibrate", run)
        assert found["stored"] and found["new"] and found["would_change"]["runs"] == 1
        before, after = (found["would_change"][key]["tpot_s"]["mape"] for key in ("before", "after"))
        assert found["would_change"]["moved"] and after < before
        again = client.answer("/v1/calibrate", run)
        assert not again["new"] and again["id"] == found["id"]
        assert client.refused("/v1/calibrate", run | {"metrics": {"speed": 1}})["field"] == "metrics.speed"
        assert client.answer("/v1/estimate", {"scenario": CHAT})["estimate"]["tpot_s"] > 0
    with Client(records=tmp_path / "runs.db") as client:
        stored = client.get("/api/estimator/v1/calibrate").json()
    assert stored["total"] == 1 and stored["runs"][0]["metrics"]["ttft_s"] == 0.07
    assert stored["runs"][0]["id"] == found["id"] == read(tmp_path / "runs.db")[0].id
    assert stored["runs"][0]["metrics"]["tpot_s"] == pytest.approx(0.0084)


def test_a_config_is_described(client: Client) -> None:
    """As `mantile list models ir` does; nothing of it is executed."""
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
        "max_position_embeddings": 131072,
    }
    found = client.post("/v1/ir?tensors=true&tokens=100", config)
    assert found.status_code == 200 and found.json()["parameters"]["total"] == 1_235_814_400
    assert found.json()["tensors"] and found.json()["prefill_flops"]["tokens"] == 100
    assert "model_type" in client.refused("/v1/ir", {"hidden_size": 3})["detail"]
    assert client.refused("/v1/ir", content=b"{", headers={"content-type": "application/json"})["detail"]


# --- workbooks ----------------------------------------------------------------------------------------------


SMALL = CHAT | {"template": "executive"}  # its workbook has fewer sheets
NAMED = SMALL | {"title": 'a/..\\<b>"'}


def test_a_workbook_of_what_cannot_be_is_refused(client: Client) -> None:
    """By its field."""
    assert client.refused("/v1/workbooks", {"scenario": CHAT | {"tp": 0}})["field"] == "tp"


@pytest.mark.exhaustive
def test_a_workbook_is_that_of_the_library_and_a_tampered_one_is_reported(
    client: Client, tmp_path: Path
) -> None:
    """To the byte, saved under the title as far as a name of a file may have it.

    A number typed over a formula fails verification, under the name that was sent.
    """
    answered = client.post("/v1/workbooks", {"scenario": NAMED})
    assert answered.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20..%20b.xlsx"
    built = answered.content
    own = tmp_path / "own.xlsx"
    mantile.build_workbook(mantile.estimate(parse_scenario(NAMED, "own")), own)
    assert own.read_bytes() == built
    parts = Parts(own)
    parts.sub(parts.sheet("Calculation"), "<f>[^<]*</f>", "")
    parts.save(own)
    files = {"file": ("../../<script>alert(1)</script>.xlsx", own.read_bytes())}
    found = client.request("POST", "/v1/workbooks/verify", files=files).json()
    assert found["ok"] is False and found["edited"]["overwritten"][0]["cell"].startswith("Calculation!")
    refused = client.request("POST", "/v1/workbooks/import", files=files)
    assert refused.status_code == 422 and "Calculation!" in refused.json()["detail"]
    assert str(client.app.state.folder) not in refused.text and "<" not in refused.text


@pytest.mark.exhaustive
def test_a_workbook_goes_round(client: Client) -> None:
    """Built, verified, read back and compared over HTTP."""
    built = [client.post("/v1/workbooks", {"scenario": SMALL | {"tp": tp}}).content for tp in (1, 2)]
    files = {"file": ("run.xlsx", built[0])}
    verified = client.request("POST", "/v1/workbooks/verify", files=files).json()
    assert verified["ok"] and verified["compared"] > 2000
    imported = client.request("POST", "/v1/workbooks/import", files=files).json()
    assert imported["workbook"] == "run.xlsx" and imported["changes"] == []
    assert imported["estimate"]["tpot_s"] == mantile.estimate(parse_scenario(CHAT, "chat")).tpot
    pair = {"a": ("one.xlsx", built[0]), "b": ("two.xlsx", built[1])}
    compared = client.request("POST", "/v1/workbooks/compare", files=pair).json()
    assert compared["differ"] and (compared["a"], compared["b"]) == ("one.xlsx", "two.xlsx")
    assert compared["inputs"][0]["id"] == "inputs.tp"


# --- the schema ---------------------------------------------------------------------------------------------


def test_the_schema_has_examples_and_problems(client: Client) -> None:
    """Bodies have examples, answers in JSON their keys, and what is no answer has the form of problems."""
    found = client.get("/openapi.json").json()
    schemas = found["components"]["schemas"]
    assert "HTTPValidationError" not in json.dumps(found)
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            assert "application/problem+json" in operation["responses"]["422"]["content"], (method, path)
            told = operation["responses"]["200"].get("content", {}).get("application/json")
            assert told is None or told["schema"]["required"], path
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                schema = (
                    schemas[content["schema"]["$ref"].rpartition("/")[2]]
                    if "$ref" in content["schema"]
                    else {}
                )
                assert schema.get("examples") or "example" in content, path
    wanted = {
        *("/hardware", "/models", "/api/layers", "/config/layer-metrics", "/config/system-metrics"),
        *("/v1/estimate", "/v1/calibrate", "/v1/optimize", "/v1/sweep", "/v1/ir", "/v1/workbooks"),
        *(f"/v1/workbooks/{name}" for name in ("verify", "import", "compare")),
        *(f"/v1/catalog/{name}" for name in ("models", "runtimes", "hardware-profiles", "quantizations")),
    }
    assert wanted <= set(found["paths"])


# --- limits of jobs -----------------------------------------------------------------------------------------


def test_settings_travel_to_further_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As text in the environment."""
    from mantile.server.app import ENVIRONMENT, from_environment, told

    settings = Settings(rate=5, hosts=("a", "b"), records=tmp_path / "runs.db", hub=True)
    monkeypatch.setenv(ENVIRONMENT, told(settings))
    assert from_environment().state.settings == settings
    assert pools.Pool(settings).settings is settings


def test_messages_name_fields_where_the_command_line_has_flags(client: Client) -> None:
    """Of every check that can raise one, and in an answer; what the command line prints stays as it is."""
    told = [in_fields(message) for message in (one.shown for one in MESSAGES.values())]
    assert len(told) > 60 and not [text for text in told if "--" in text]
    asked = {
        "model_id": "llama-3.1-405b",
        "hardware": {"gpus": [{"gpu_id": "h100-sxm"}]},
        "workload": WORKLOAD,
        "plan": {"tp": 1},
        "recommend": 0,
    }
    answer = client.answer("/v1/estimate", asked)
    assert "(weights_dtype, kv_dtype)" in answer["reasons"][0]["message"]
    assert "(--weights-dtype, --kv-dtype)" in answer["estimate"]["checks"]["errors"][0]["message"]
