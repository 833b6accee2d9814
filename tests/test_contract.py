"""Requests as clients send them, word for word: the files of tests/contract, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from asking import Client
from typer.testing import CliRunner

import mantile
from mantile.cli.application import app
from mantile.library import machines

FOLDER = Path(__file__).parent / "contract"
PERCENTILES = {"p10", "p50", "p90"}


def body(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as running:
        yield running


@pytest.fixture(scope="module")
def estimated(client: Client) -> dict[str, Any]:
    """The answer to the estimate on a host by its id."""
    answer: dict[str, Any] = client.answer("/v1/estimate", body("estimate"))
    return answer


def test_ids_of_requests_stand_in_the_lists(client: Client) -> None:
    hardware = client.get("/hardware").json()["details"].values()
    aliases = {alias for one in hardware for alias in one["aliases"]}
    assert {"nvidia_gb200_single", "nvidia_h100_80gb", "nvidia_nvl72_rack"} <= aliases
    models = client.get("/models").json()["models"]
    assert {"llama_3.3_70b", "tinyllama_1.1b"} <= {alias for one in models for alias in one["aliases"]}
    assert "dual-4090-epyc" in [one["hardware_id"] for one in client.get("/v1/catalog/hosts").json()["hosts"]]
    runtimes = client.get("/v1/catalog/runtimes").json()["runtimes"]
    (runtime,) = (one for one in runtimes if one["runtime_id"] == "vllm-0.6.4-cuda12.4")
    assert (runtime["framework"], runtime["version"], runtime["cuda"]) == ("vllm", "0.6.4", ["12.4"])


def test_degrees_by_kind_of_layer(client: Client) -> None:
    """Norms and embedding of degree 1 are replicated; all else is as the plan with that."""
    asked = body("system-metrics")
    found = client.answer("/config/system-metrics", asked)
    assert found["scenario"]["embedding_tp"] == 1
    split = json.loads(json.dumps(asked))
    split["layers"]["embedding"]["tensor_parallel"] = 8
    other = client.answer("/config/system-metrics", split)
    parts = [one["estimate"]["memory_parts"]["weights"] for one in (found, other)]
    assert parts[0] - parts[1] == pytest.approx(128256 * 8192 * 2 * 7 / 8, rel=1e-9)
    alone = mantile.estimate(
        model="llama-3.3-70b",
        accelerator="gb200-nvl72",
        system="nvl72-gb200",
        tp=8,
        batching="static",
        input_tokens=2048,
        output_tokens=128,
        concurrency=1,
        embedding_tp=1,
    )
    assert (found["estimate"]["ttft_s"], found["estimate"]["tpot_s"]) == (alone.ttft, alone.tpot)
    assert set(found["layers"]) == {"attention", "feedforward", "norm", "embedding"}


def test_a_layer_at_the_context_of_its_model(client: Client) -> None:
    found = client.answer("/config/layer-metrics", body("layer-metrics"))
    assert found["feasibility"] == "fits" and found["prefill"]["time_s"] > 0 < found["decode"]["time_s"]
    longer = body("layer-metrics") | {"seq_length": 2049}
    assert client.refused("/config/layer-metrics", longer)["code"] == "CONTEXT_EXCEEDS_MODEL"


def test_an_estimate_has_every_figure_that_is_asked_for(estimated: dict[str, Any]) -> None:
    assert estimated["feasibility"] in ("in_vram", "with_offload", "runs_with_offload", "insufficient_memory")
    figures = estimated["estimates"]
    for name in (
        "decode_toks_sec",
        "prefill_toks_sec",
        "ttft_ms",
        "latency_ms",
        "vram_peak_gb",
        "ram_peak_gb",
    ):
        band = figures[name]
        assert set(band) >= PERCENTILES, name
        assert band["p10"] <= band["p50"] <= band["p90"], (name, band)
    assert figures["ttft_ms"]["p95"] >= figures["ttft_ms"]["p50"] > 0
    assert figures["vram_peak_gb"]["p50"] < 25.8 and figures["ram_peak_gb"]["p50"] < 256
    shares = [one for one in estimated["bottlenecks"] if one["phase"] == "decode"]
    assert sum(one["percent"] for one in shares) == pytest.approx(100)
    assert any("GB" in sentence for sentence in estimated["explanations"])


def test_what_is_recommended_first_is_what_a_person_would_take(estimated: dict[str, Any]) -> None:
    """int4 in GPU memory, with graphs for its seats alone; not fp8 with most of it behind PCIe. Each with its
    range.
    """
    first, *others = estimated["recommended_configs"]
    assert first["plan"]["weights_dtype"] == "int4" and first["feasibility"] == "in_vram"
    assert 21 < first["metrics"]["output_tokens_per_s"] < 34
    for one in (first, *others):
        assert set(one["range_80"]["throughput"]) >= PERCENTILES


def test_the_same_host_inline(client: Client, estimated: dict[str, Any]) -> None:
    """Figures of a known card are those of its datasheet; what differs is said."""
    inline = client.answer("/v1/estimate", body("estimate") | {"hardware": body("host")})
    for key in ("feasibility", "estimates"):
        assert inline[key] == estimated[key]
    assert any("82 stated, 165.2 TFLOP/s" in text for text in inline["explanations"])


def test_a_card_that_is_not_in_the_library(client: Client) -> None:
    """With its figures it is estimated, without a price; without them it is refused."""
    card = {"sku": "RTX 9090", "count": 2, "vram_gb": 48, "mem_bw_gbps": 2016, "fp16_tflops": 330}
    asked = body("estimate") | {"model_id": "llama-3.1-8b", "hardware": {"gpus": [card]}, "recommend": 1}
    found = client.answer("/v1/estimate", asked)
    assert found["estimates"]["usd_per_million_output_tokens"] is None
    assert any("RTX 9090 is not in the library" in text for text in found["explanations"])
    known = client.answer("/v1/estimate", asked | {"hardware": {"gpus": [{"sku": "RTX 4090", "count": 2}]}})
    assert found["estimates"]["decode_toks_sec"]["p50"] > 1.3 * known["estimates"]["decode_toks_sec"]["p50"]
    del card["mem_bw_gbps"]
    problem = client.refused("/v1/estimate", asked)
    assert "mem_bw_gbps" in problem["detail"]


def test_a_run_as_it_was_sent(client: Client, tmp_path: Path) -> None:
    """Stored without what is not known, and what it would change is said, or why nothing."""
    with Client(records=tmp_path / "runs.db") as own:
        found = own.answer("/v1/calibrate", body("run") | {"prompt": "a secret"})
        assert found["stored"] and (found["would_change"] or found["reason"])
        told = own.get("/v1/calibrate").text
        assert "secret" not in told
        (run,) = own.get("/v1/calibrate").json()["runs"]
    assert (run["model"], run["accelerator"], run["tp"], run["weights_dtype"]) == (
        "llama-3.1-70b",
        "rtx-4090",
        2,
        "int4",
    )
    metrics = run["metrics"]
    assert (metrics["ttft_p50_s"], metrics["ttft_p95_s"]) == pytest.approx((0.42, 0.69))
    assert (metrics["output_tokens_per_s"], metrics["prefill_tokens_per_s"]) == (168, 1650)
    assert metrics["peak_memory_bytes"] == pytest.approx(22.9e9)
    reconciled = mantile.reconcile(mantile.load_measurements(FOLDER / "run.json"))
    assert reconciled.to_dict()["rows"] == 1
    imported = CliRunner().invoke(
        app, ["records", "import", str(tmp_path / "own.db"), str(FOLDER / "run.json")]
    )
    assert imported.exit_code == 0, imported.output


def test_hosts_and_runtimes_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over HTTP where the server keeps records, and by a file; another record of that id is refused."""
    host = body("host") | {"hardware_id": "my-host", "ram_gb": 64}
    runtime = {"runtime_id": "our-vllm", "engine": "vLLM", "version": "0.10.0"}
    with Client() as without:
        without.refused("/v1/catalog/hosts", host, status=403)
    with Client(records=tmp_path / "runs.db") as own:
        for _ in range(2):
            assert own.answer("/v1/catalog/hosts", host) == {"id": "my-host", "stored": True}
        own.refused("/v1/catalog/hosts", host | {"ram_gb": 128})
        own.refused("/v1/catalog/hosts", host | {"hardware_id": "../up"})
        own.answer("/v1/catalog/runtimes", runtime)
        asked = body("estimate") | {"model_id": "llama-3.1-8b", "recommend": 0, "plan": {"tp": 2}}
        asked |= {"hardware": {"hardware_id": "my-host"}, "runtime_id": "our-vllm"}
        found = own.answer("/v1/estimate", asked)
        assert found["hardware"]["ram_gb"] == 64 and found["runtime_id"] == "vllm"
    monkeypatch.setattr(machines, "user_folder", lambda: tmp_path / "user")
    for command, data in (("hardware", host), ("profiles", runtime)):
        file = tmp_path / f"{command}.json"
        file.write_text(json.dumps(data))
        added = CliRunner().invoke(app, ["list", command, "add", str(file)])
        assert added.exit_code == 0, added.output
    assert machines.hosts()["my-host"].ram_gb == 64 and machines.runtimes()["our-vllm"].engine == "vLLM"


def test_a_config_that_contradicts_itself_is_refused_with_both_readings() -> None:
    """Experts in a dense type: neither of the two is estimated as if the other were not there."""
    from mantile.library.errors import InputError
    from mantile.library.huggingface import parse_config

    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_hidden_layers": 2,
        "num_key_value_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "torch_dtype": "bfloat16",
    }
    assert parse_config(config | {"num_local_experts": 1}, "config.json").value("experts") == 0
    with pytest.raises(InputError) as refused:
        parse_config(config | {"num_local_experts": 8}, "config.json")
    said = str(refused.value)
    assert "dense and num_local_experts is wrong" in said and "mixture and model_type is wrong" in said
