"""What servers print of their memory when they start, against estimates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from live import exit_status

from mantile.estimates.estimate import estimate
from mantile.measured.startup_errors import reconcile_startups
from mantile.measured.startups import NEEDED, StartUps, is_startup_table, load_startups

TABLE = "memory_logs_public.csv"

ROW = {
    "id": "one",
    "source": "a test",
    "framework": "vllm",
    "version": "0.10.2",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "quantisation": "bf16",
    "accelerator": "H100-SXM",
    "tp": "1",
    "memory_fraction": "0.9",
    "max_model_len": "8192",
    "kv_dtype": "auto",
    "weights_gib_per_gpu": "15",
    "kv_gib_per_gpu": "50",
    "kv_tokens": "400000",
    "activation_gib": "1.5",
    "oom": "no",
}


def _table(path: Path, *rows: dict[str, str]) -> Path:
    file = path / "logs.csv"
    lines = [",".join(ROW), *(",".join({**ROW, **row}.values()) for row in rows)]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_row_is_read_as_a_scenario_of_its_longest_requests(tmp_path: Path) -> None:
    file = _table(tmp_path, {}, {"id": "two", "model": "nobody/knows-it"})
    assert is_startup_table(file) and set(ROW) >= NEEDED
    read = load_startups(file)
    server = read.servers[0]
    scenario = server.scenario
    assert (scenario.model, scenario.accelerator, scenario.framework) == ("llama-3.1-8b", "h100-sxm", "vllm")
    assert scenario.input_tokens + scenario.output_tokens == 8192
    assert server.measured["weights"] == 15 * 2**30
    assert server.measured["peak_memory"] == (15 + 50 + 1.5) * 2**30
    assert server.outgrown is False
    assert [run.id for run in read.rejected] == ["two"]


def test_errors_are_those_of_the_estimate(tmp_path: Path) -> None:
    read = load_startups(_table(tmp_path, {}))
    found = reconcile_startups(read)
    of_one = estimate(read.servers[0].scenario)
    values = of_one.values()
    weights = float(values[of_one.equations.figures["memory.weights"]])
    assert found.metrics()["weights"]["bias"] == pytest.approx(weights / (15 * 2**30) - 1)
    wrong = {"false_positives": 0, "false_negatives": 0}
    assert found.verdicts() == {"of": 1, "right": 1, "outgrown": 0, "outgrown_right": 0} | wrong
    assert set(found.to_dict()) >= {"rows", "answered", "metrics", "groups", "verdicts"}


def test_a_table_of_servers_is_reconciled_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For people and as JSON; a row that cannot be read is named."""
    file = _table(tmp_path, {}, {"id": "two", "model": "nobody/knows-it"})
    assert exit_status("reconcile", str(file)) == 0
    told = capsys.readouterr().out
    assert "1 of 2 servers estimated" in told and "verdicts right: 1 of 1" in told
    assert "worst by Peak memory" in told and "unknown model" in told
    assert exit_status("reconcile", str(file), "--json") == 0
    found = reconcile_startups(load_startups(file)).to_dict()
    assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(json.dumps(found["metrics"]))


def test_without_its_accelerator_nothing_is_predicted_that_fills_it(tmp_path: Path) -> None:
    """What is known of a server whose log names no accelerator: weights, and caches that are asked for."""
    found = reconcile_startups(
        load_startups(
            _table(
                tmp_path,
                {"accelerator": ""},
                {"id": "two", "accelerator": "", "framework": "llama.cpp", "model": "Qwen2.5-1.5B (1.54 B)"},
            )
        )
    )
    assert [set(row.predicted) for row in found.servers] == [
        {"weights", "activations"},
        {"weights", "activations", "peak_memory"},
    ]


def test_tokens_are_requests_at_their_full_length() -> None:
    """Without windows, tokens that fit do not depend on the length of a request."""
    tokens = [
        estimate(
            model="llama-3.1-8b",
            accelerator="h100-sxm",
            input_tokens=length,
            output_tokens=1,
            concurrency=8,
        ).results()["kv_capacity_tokens"]
        for length in (500, 5000)
    ]
    assert tokens[0] == pytest.approx(tokens[1], rel=1e-9)


def test_parts_of_memory_are_all_of_it() -> None:
    found = estimate(
        model="qwen3-30b-a3b", accelerator="h100-sxm", tp=2, input_tokens=900, output_tokens=90, concurrency=8
    ).results()
    assert sum(found["memory_parts"].values()) == pytest.approx(found["memory_per_accelerator_bytes"])


@pytest.fixture(scope="module")
def public(shared_data: Path) -> StartUps:
    file = shared_data / TABLE
    if not file.exists():
        pytest.skip(f"{TABLE} is not here")
    return load_startups(file)


WEIGHTS = {"vllm": 0.024, "sglang": 0.016, "llama.cpp": 0.027, "trtllm": 0.005, "exo": 0.015}
PEAK = {"vllm": 0.065, "llama.cpp": 0.025, "mlx": 0.015, "trtllm": 0.05}
KV_TOKENS = {"vllm": (0.255, 0.07), "sglang": (0.115, 0.015)}
RIGHT_VERDICTS = 0.915


@pytest.mark.exhaustive
def test_start_up_figures_of_real_servers(public: StartUps) -> None:
    """Errors that were reached, with a little room."""
    found = reconcile_startups(public)
    by_framework = found.groups()["framework"]
    assert len(found.servers) >= 106
    for framework, most in WEIGHTS.items():
        assert by_framework[framework]["weights"]["mape"] < most, framework
    for framework, most in PEAK.items():
        assert by_framework[framework]["peak_memory"]["mape"] < most, framework
    for framework, (mean, median) in KV_TOKENS.items():
        errors = by_framework[framework]["kv_tokens"]
        assert errors["mape"] < mean and errors["median"] < median, framework
    verdicts = found.verdicts()
    assert verdicts["right"] >= RIGHT_VERDICTS * verdicts["of"]


def _values(**fields: object) -> dict[str, float]:
    found = estimate(
        **{"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 900, "output_tokens": 100}
        | {"concurrency": 4}
        | fields
    )
    values = found.values()
    return {
        name: float(values[figure])
        for name, figure in found.equations.figures.items()
        if name.startswith(("memory.", "startup.", "runtime.", "hardware.memory_seen"))
        and not isinstance(values[figure], str)
    }


def _share(value: float) -> list[dict[str, object]]:
    return [{"id": "efficiency.memory_usable", "value": value, "reason": "test"}]


def test_a_share_of_memory_means_what_the_framework_means() -> None:
    """vLLM: of all memory, for all it needs. SGLang: of free memory, for weights and KV cache. TensorRT-LLM:
    of what is left, for the KV cache."""
    vllm = _values(framework="vllm", overrides=_share(0.8))
    seen = vllm["hardware.memory_seen"]
    taken = sum(vllm[f"memory.{part}"] for part in ("weights", "activations", "reserve", "kv_room"))
    assert taken == pytest.approx(0.8 * seen)
    sglang = _values(framework="sglang", overrides=_share(0.8))
    free = seen - sglang["runtime.context"] - sglang["runtime.communication"]
    assert sglang["memory.weights"] + sglang["memory.kv_room"] == pytest.approx(0.8 * free)
    trtllm = _values(framework="trtllm", overrides=_share(0.8))
    left = seen - sum(trtllm[f"memory.{part}"] for part in ("weights", "activations", "reserve"))
    assert trtllm["memory.kv_room"] == pytest.approx(0.8 * left)


def test_windows_kept_in_full_leave_room_for_fewer_tokens() -> None:
    """Five of six layers of Gemma 3 look back 1,024 tokens: room grows by less than that share."""
    fields = {"model": "gemma-3-27b", "input_tokens": 30_000, "tp": 2}
    saved, full = (_values(cache_policy=policy, **fields) for policy in ("saved", "full-windows"))
    assert saved["memory.kv_room"] == full["memory.kv_room"]
    grown = saved["startup.kv_tokens"] / full["startup.kv_tokens"]
    length = 30_100
    assert grown == pytest.approx(62 * length / (10 * length + 52 * 1024))


def test_kernels_of_mxfp4_pad_experts() -> None:
    """gpt-oss-120b takes 64.4 GiB in vLLM with Triton kernels, 63.5 in TensorRT-LLM, 60.8 as stored."""
    for framework, gib in (("vllm", 64.38), ("trtllm", 63.52), ("sglang", 60.77)):
        weights = _values(model="gpt-oss-120b", framework=framework)["memory.weights"]
        assert weights / 2**30 == pytest.approx(gib, rel=0.005), framework
