"""Outputs of benchmarks, whatever wrote them: recognised by content, units right, the rest named."""

from __future__ import annotations

import json
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mantile
from mantile.cli.application import app
from mantile.library.errors import InputError
from mantile.measured.client_lines import read_client
from mantile.measured.forms import form_table
from mantile.measured.load import load_measurements
from mantile.measured.read_runs import read_runs
from mantile.measured.reading import ASKED, FIGURES, MeasuredRow, Read, stated
from mantile.measured.reconcile import reconcile

VLLM: dict[str, Any] = {
    **{"date": "20260901-120000", "backend": "vllm", "model_id": "Qwen/Qwen3-32B", "tokenizer_id": "x"},
    **{"num_prompts": 64, "request_rate": "inf", "max_concurrency": 4, "duration": 20.0, "completed": 60},
    **{"failed": 4, "total_input_tokens": 60_000, "total_output_tokens": 12_000, "request_throughput": 3.0},
    **{"output_throughput": 600.0, "total_token_throughput": 3600.0, "mean_ttft_ms": 80.0},
    **{"median_ttft_ms": 70.0, "std_ttft_ms": 9.0, "p95_ttft_ms": 120.0, "mean_tpot_ms": 6.5},
    **{"median_tpot_ms": 6.4, "mean_itl_ms": 13.0, "colour": "red"},
}
VLLM_TEXT = """INFO starting
============ Serving Benchmark Result ============
Successful requests:                     60
Maximum request concurrency:             4
Total input tokens:                      60000
Total generated tokens:                  12000
Output token throughput (tok/s):         600.0
---------------Time to First Token----------------
Mean TTFT (ms):                          80.0
P99 TTFT (ms):                           150.0
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          6.5
==================================================
"""
SGLANG = {
    **{"backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": 16},
    **{"random_input_len": 1000, "random_output_len": 100, "random_range_ratio": 0.5, "completed": 32},
    **{"total_input_tokens": 24_000, "total_output_tokens": 2_400, "total_output_tokens_retokenized": 1},
    **{"output_throughput": 500.0, "mean_ttft_ms": 50.0, "mean_tpot_ms": 8.0, "mean_e2e_latency_ms": 900.0},
    **{"concurrency": 12.3},
}
TRTLLM = {
    "engine": {
        "model": "m/M",
        "version": "1.1",
        "dtype": "bfloat16",
        "quantization": None,
        "backend": "Pytorch",
    },
    "world_info": {"tp_size": 4, "pp_size": 1, "ep_size": 1, "max_batch_size": 256},
    "request_info": {"num_requests": 80, "avg_num_concurrent_requests": 7.6, "avg_input_length": 900},
    "performance": {"system_output_throughput_tok_s": 400.0, "avg_request_latency_ms": 1500},
    "streaming_metrics": {"avg_ttft_ms": 30.0, "tpot_percentiles": {"p50": 7.0, "minimum": 1}},
}
LLAMA_KEYS = (
    "build_commit,build_number,gpu_info,model_filename,model_type,type_k,n_gpu_layers,n_prompt,n_gen,n_depth,"
    "avg_ns,avg_ts"
)
LLAMA_ROWS = (
    "abc,7000,NVIDIA GeForce RTX 4090,dir/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf,llama 8B,f16,99,512,0,0,"
    "50000000,10000",
    "abc,7000,NVIDIA GeForce RTX 4090,dir/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf,llama 8B,f16,99,0,64,0,"
    "500000000,125",
    "abc,7000,NVIDIA GeForce RTX 4090,dir/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf,llama 8B,f16,12,0,64,0,"
    "900000000,60",
)
LLAMA_SQL = "CREATE TABLE IF NOT EXISTS llama_bench (build_commit TEXT);\n" + "\n".join(
    f"INSERT INTO llama_bench ({LLAMA_KEYS}) VALUES ('" + row.replace(",", "', '") + "');"
    for row in LLAMA_ROWS
)
LLAMA_MD = """
| model                  |     size | params | backend | ngl |            test |          t/s |
| ---------------------- | -------: | -----: | ------- | --: | --------------: | -----------: |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA    |  99 |           pp512 | 10000.0 ± 9.0 |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA    |  99 |  tg64 @ d4096   |   125.0 ± 0.3 |

build: abc (7000)
"""
GENAI = {
    "time_to_first_token": {"unit": "s", "avg": 0.25, "p90": 0.5},
    "inter_token_latency": {"unit": "ms", "avg": 11.0},
    "request_latency": {"unit": "ms", "avg": 2000.0},
    "output_sequence_length": {"unit": "tokens", "avg": 100.5},
    "input_config": {"perf_analyzer": {"stimulus": {"concurrency": 6}}, "model_names": ["a/B"]},
}
AIPERF = """Metric,avg,p99
Time to First Token (ms),400.0,"1,200.5"
Inter Token Latency (ms),20.0,25.0
Request Latency (ms),6000.0,7000.0
Output Sequence Length (tokens),300.0,310.0

Metric,Value
Output Token Throughput (tokens/sec),1000.0
Request Count,40


Endpoint,GPU_Index,GPU_Name,Metric,avg,p99
h:1,0,NVIDIA L40S,NVIDIA GPU Power Usage (W),300.0,310.0
h:1,1,NVIDIA L40S,NVIDIA GPU Power Usage (W),200.0,310.0
"""
OF_REQUESTS = {
    "time_to_first_token_ms": (100.0, "ms"),
    "inter_token_latency_ms": (9.0, "ms"),
    "request_latency": (2.5, "s"),
    "output_tokens_per_second": (640.0, ""),
}


def guidellm() -> str:
    def of_strategy(strategy: dict[str, Any]) -> dict[str, Any]:
        metrics: dict[str, Any] = {
            name: {
                "successful": {"mean": mean, "median": mean, "percentiles": {"p90": 2 * mean, "p01": 0.1}},
                "total": {"mean": 9e9},
            }
            for name, (mean, _) in OF_REQUESTS.items()
        }
        metrics["request_totals"] = {"successful": 50, "errored": 0, "incomplete": 3}
        config = {"strategy": strategy, "backend": {"model": "a/B"}}
        return {"type_": "generative_benchmark", "config": config, "metrics": metrics}

    strategies: list[dict[str, Any]] = [
        {"type_": "concurrent", "streams": 16},
        {"type_": "constant", "rate": 2.5},
        {"type_": "synchronous"},
    ]
    return json.dumps({"metadata": {"v": 1}, "benchmarks": [*map(of_strategy, strategies)]})


INFERENCEX: dict[str, Any] = {
    **{"hardware": "gb200", "framework": "dynamo-trt", "model": "dsr1", "precision": "fp4", "conc": 512},
    **{"spec_method": "none", "disagg": True, "is_multinode": True, "isl": 8192, "osl": 1024, "ep": None},
    **{"prefill_tp": 4, "prefill_ep": 4, "prefill_dp_attention": True, "prefill_num_workers": 3},
    **{"decode_tp": 8, "decode_ep": 8, "decode_dp_attention": False, "decode_num_workers": 2},
    **{"num_prefill_gpu": 12, "num_decode_gpu": 16, "date": "2026-04-11"},
    "metrics": {"mean_ttft": 2.5, "mean_tpot": 0.0125, "output_tput_per_gpu": 1000.0, "tput_per_gpu": 9.0},
}
TOTAL = {"prefill_num_workers": 0, "decode_num_workers": 0, "num_prefill_gpu": 36, "num_decode_gpu": 36}
RATES = {"output_tput_per_gpu": 271.222, "input_tput_per_gpu": 2169.774, "mean_ttft": 0.24}
OLD = INFERENCEX | TOTAL | {"prefill_tp": 36, "decode_tp": 36, "isl": 1024, "metrics": RATES}
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a/B"} 3
vllm:generation_tokens_total{engine="0",model_name="a/B"} 1000
vllm:generation_tokens_total{engine="1",model_name="a/B"} 3000
vllm:request_success_total{engine="0",finished_reason="stop",model_name="a/B"} 40
vllm:time_to_first_token_seconds_sum{engine="0",model_name="a/B"} 10
vllm:time_to_first_token_seconds_count{engine="0",model_name="a/B"} 10
vllm:time_to_first_token_seconds_sum{engine="1",model_name="a/B"} 5
vllm:time_to_first_token_seconds_count{engine="1",model_name="a/B"} 30
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="a/B"} 10
vllm:inter_token_latency_seconds_sum{engine="0",model_name="a/B"} 39.6
vllm:inter_token_latency_seconds_count{engine="0",model_name="a/B"} 3960
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="1000",model_name="a/B"} 1.0
"""


def text_of(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


def read(folder: Path, data: Any, name: str = "x.log", **fields: Any) -> Read:
    path = folder / name
    path.write_text(text_of(data), encoding="utf-8")
    (found,) = read_runs(path, **fields)
    return found


def one(folder: Path, data: Any, **fields: Any) -> MeasuredRow:
    (run,) = read(folder, data, **fields).runs
    return run


FORMS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "vLLM JSON": (
        "vllm",
        VLLM,
        {
            **{"model": "Qwen/Qwen3-32B", "input_tokens": 1000, "output_tokens": 200, "prompts": 64},
            **{"prompts_per_slot": 16, "concurrency": 4, "failed": 4, "request_rate": None, "tp": None},
            **{"ttft_s": 0.08, "ttft_p50_s": 0.07, "ttft_p95_s": 0.12, "tpot_s": 0.0065, "itl_s": 0.013},
            **{"output_tokens_per_s": 600, "total_tokens_per_s": 3600, "date": "2026-09-01"},
        },
    ),
    "vLLM, two runs appended": ("vllm", f"{text_of(VLLM)}\n{text_of(VLLM)}", {"tpot_s": 0.0065}),
    "vLLM text": (
        "vllm",
        VLLM_TEXT,
        {"input_tokens": 1000, "ttft_s": 0.08, "ttft_p99_s": 0.15, "output_tokens_per_s": 600, "model": None},
    ),
    "SGLang": (
        "sglang",
        SGLANG,
        {
            **{"framework": "sglang", "input_tokens": 750, "input_tokens_asked": 1000, "e2e_s": 0.9},
            **{"length_range_ratio": 0.5, "concurrency": 16, "in_flight": 12.3, "prompts": 32},
        },
    ),
    "TensorRT-LLM": (
        "trtllm-bench",
        TRTLLM,
        {
            **{"framework": "trtllm", "tp": 4, "weights_dtype": "bfloat16", "concurrency": 8, "e2e_s": 1.5},
            **{"tpot_s": None, "tpot_p50_s": 0.007, "prompts": 80, "output_tokens": None},
        },
    ),
    "llama-bench CSV": (
        "llama-bench",
        "\n".join([LLAMA_KEYS, *LLAMA_ROWS]),
        {
            **{"model": "Meta-Llama-3.1-8B-Instruct", "weights_dtype": "Q4_K_M", "concurrency": 1},
            **{"prefill_tokens_per_s": 10_000, "prefill_s": 0.05, "tpot_s": None, "output_tokens": None},
        },
    ),
    "llama-bench SQL": (
        "llama-bench",
        LLAMA_SQL,
        {"prefill_s": 0.05, "accelerator": "NVIDIA GeForce RTX 4090"},
    ),
    "llama-bench Markdown": (
        "llama-bench",
        LLAMA_MD,
        {"model": None, "accelerator": None, "weights_dtype": "q4_k_m", "framework_version": 7000},
    ),
    "genai-perf": (
        "aiperf",
        GENAI,
        {
            **{"model": "a/B", "concurrency": 6, "ttft_s": 0.25, "ttft_p90_s": 0.5, "tpot_s": 0.011},
            **{"output_tokens": 100.5, "itl_s": None},
        },
    ),
    "aiperf CSV": (
        "aiperf",
        AIPERF,
        {
            **{"ttft_s": 0.4, "ttft_p99_s": 1.2005, "output_tokens_per_s": 1000, "prompts": 40},
            **{"accelerator": "NVIDIA L40S", "gpus": 2, "power_w": 250, "concurrency": None},
        },
    ),
    "guidellm": (
        "guidellm",
        guidellm(),
        {
            **{"model": "a/B", "concurrency": 16, "ttft_s": 0.1, "ttft_p90_s": 0.2, "e2e_s": 2.5},
            **{"prompts": 50, "output_tokens_per_s": 640, "request_rate": None},
        },
    ),
    "InferenceX": (
        "inferencex",
        [INFERENCEX],
        {
            **{"prefill_workers": 3, "prefill_tp": 1, "prefill_attention_dp": 4, "prefill_ep": 4, "gpus": 28},
            **{"decode_workers": 2, "decode_tp": 8, "decode_attention_dp": 1, "ttft_s": 2.5, "tp": None},
            **{"input_tokens": 7373, "input_tokens_asked": 8192, "output_tokens_per_s": 16_000},
        },
    ),
    "a page of vLLM": (
        "vllm-metrics",
        PAGE,
        {
            **{"model": "a/B", "ttft_s": 0.375, "tpot_s": 0.01, "kv_tokens": 16_000, "kv_dtype": None},
            **{"concurrency": None, "output_tokens_per_s": None},
        },
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_in_our_fields(name: str, tmp_path: Path) -> None:
    """By its content, whatever the file is called; what nobody knows is None, and never 0."""
    form, data, expected = FORMS[name]
    found = read(tmp_path, data, "picture.png.csv" if "CSV" not in name else "x")
    assert found.form == form
    run = found.runs[0].to_dict()
    flat = run | run["metrics"]
    assert {key: flat[key] for key in expected} == pytest.approx(expected)
    assert list(run["metrics"]) == list(FIGURES) and set(ASKED) < set(run)
    assert 0 not in run["metrics"].values()


def test_runs_of_one_file(tmp_path: Path) -> None:
    """Several loads, several rows; a stream is a rate of prompts, of tokens, or neither."""
    loads = [
        (run.fields.get("concurrency"), run.fields.get("request_rate"))
        for run in read(tmp_path, guidellm()).runs
    ]
    assert loads == [(16, None), (None, 2.5), (1, None)]
    prompt, generated, partly = read(tmp_path, "\n".join([LLAMA_KEYS, *LLAMA_ROWS])).runs
    assert prompt.metrics.keys() == {"prefill_s", "prefill_tokens_per_s"}
    assert generated.metrics == {"tpot_s": 1 / 125} and not generated.excluded
    assert "n_gpu_layers is 12" in partly.excluded
    assert read(tmp_path, LLAMA_MD).runs[1].fields["depth_tokens"] == 4096
    both = read(tmp_path, "\n".join([LLAMA_KEYS, LLAMA_ROWS[0].replace("512,0,0", "512,128,0")])).runs[0]
    assert both.metrics == {"e2e_s": 0.05}


def test_what_is_not_used_and_what_is_missing_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, VLLM)
    assert set(found.unread) == {"tokenizer_id", "std_ttft_ms", "colour"}
    assert found.missing == (
        *("accelerator", "framework", "weights_dtype", "tp", "framework_version", "kv_dtype"),
        "length_range_ratio",
    )
    assert "accelerator (--gpu)" in found.runs[0].excluded and "model" not in found.runs[0].excluded
    nested = set(read(tmp_path, guidellm()).unread)
    assert {"metrics.request_latency.total.*", "metadata.*", "metrics.request_totals.incomplete"} <= nested
    assert {"engine.backend", "streaming_metrics.tpot_percentiles.minimum"} <= set(
        read(tmp_path, TRTLLM).unread
    )
    assert not any("unit" in key for key in read(tmp_path, GENAI).unread)


def test_figures_that_are_none(tmp_path: Path) -> None:
    """A TTFT of 0, a run in which nothing succeeded, chunks of several tokens, agents, rates of GPUs."""
    fake = one(tmp_path, VLLM | {"mean_ttft_ms": 0.0})
    assert "ttft_s" not in fake.metrics and any("ttft_s is 0" in note for note in fake.notes)
    none = VLLM | {"completed": 0, "total_input_tokens": 0, "total_output_tokens": 0}
    assert one(tmp_path, none).excluded == "no request succeeded"
    chunks = PAGE.replace("} 3960", "} 400")  # gaps of ten tokens
    assert "tpot_s" not in one(tmp_path, chunks).metrics
    assert "trace" in one(tmp_path, [INFERENCEX | {"scenario_type": "trace"}]).excluded
    old = one(tmp_path, [OLD])
    assert (old.fields["prefill_gpus"], old.fields["decode_gpus"]) == (4, 32)
    assert "4 accelerators prefill and 32 decode" in old.excluded
    at_once = one(tmp_path, VLLM | {"max_concurrency": None})
    assert (at_once.fields["concurrency"], at_once.fields["prompts_per_slot"]) == (64, 1)


def test_what_is_stated_fills_what_the_file_leaves_out(tmp_path: Path) -> None:
    """By flags, by the line of the server and by that of the client; the file itself counts more."""
    fields = one(tmp_path, VLLM, accelerator="h100", tp=4, model="qwen3-32b", concurrency=99).fields
    assert (fields["accelerator"], fields["tp"], fields["model"]) == ("h100", 4, "qwen3-32b")
    assert fields["concurrency"] == 4
    server = "vllm serve Qwen/Qwen3-32B -tp 2 --kv-cache-dtype fp8 --max-num-seqs 64"
    client = (
        "vllm bench serve --random-input-len 1024 --random-output-len=256 --random-range-ratio 0.2 "
        "--max-concurrency 16 --num-prompts 160"
    )
    text = (
        VLLM_TEXT.replace("Total", "Ttl")
        .replace("Maximum", "Mxm")
        .replace("Ttl generated", "Total generated")
    )
    run = one(tmp_path, text, launched=server, client=client, accelerator="h100")
    assert not run.excluded and run.fields["tp"] == 2 and run.fields["kv_dtype"] == "fp8"
    assert (run.fields["input_tokens"], run.fields["prompts_per_slot"]) == (1024, 10)
    assert run.fields["length_range_ratio"] == pytest.approx(1 / 3)  # 0.8 N to 1.2 N
    (tmp_path / "run.txt").write_text(text, encoding="utf-8")
    beside = stated(server, client, accelerator="h100")
    (measured,) = load_measurements(tmp_path / "run.txt", beside=beside).runs
    assert (measured.max_requests, measured.kv_dtype, measured.accelerator) == (64, "fp8", "h100-sxm")
    assert measured.weights_dtype is None and measured.prompts_per_slot == 10


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vllm bench serve", {"input_tokens_asked": 1024, "prompts": 1000, "request_rate": float("inf")}),
        ("vllm bench serve --request-rate 2", {"request_rate": 2, "concurrency": None}),
        ("vllm bench serve --dataset-name sharegpt", {"input_tokens_asked": None, "prompts": 1000}),
        ("python -m sglang.bench_serving --num-prompts 8", {"input_tokens_asked": None, "prompts": 8}),
        (
            "python -m sglang.bench_serving --dataset-name random",
            {"ratio_meaning": "below", "range_ratio": 0},
        ),
        (
            "guidellm benchmark --rate-type concurrent --rate 16 --data prompt_tokens=512,output_tokens=64",
            {"concurrency": 16, "input_tokens_asked": 512, "output_tokens_asked": 64, "request_rate": None},
        ),
        ("trtllm-bench --model m throughput --concurrency -1 --tp 4", {"concurrency": None, "tp": 4}),
        ("aiperf profile --isl 128 --osl 32 --concurrency 4", {"input_tokens_asked": 128, "concurrency": 4}),
    ],
)
def test_lines_of_clients(line: str, expected: dict[str, Any]) -> None:
    found = read_client(line)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("curl x", "vllm bench serve"),
        ("vllm bench serve --num-prompts x", "number"),
        ("vllm bench serve --num-prompts inf", "whole number"),
        ("guidellm benchmark --rate-type concurrent --rate inf", "whole number"),
        ("guidellm run --profile kind=concurrent,streams=1.2.3", "number"),
    ],
)
def test_lines_of_clients_that_are_wrong(line: str, words: str) -> None:
    with pytest.raises(InputError, match=f"client line.*{words}"):
        read_client(line)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (json.dumps(VLLM)[:200].encode(), "not valid JSON.*expected the whole output of a benchmark"),
        (b"\x89PNG\x00\xff", "not UTF-8 text.*expected the output of a benchmark"),
        (b" \n", "nothing at all; expected the output of a benchmark"),
        (b"hello: world\n", "expected the output of one of .*llama-bench"),
    ],
)
def test_a_bad_file_is_named(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.out"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"bad.out.*{words}"):
        read_runs(path)
    (tmp_path / "good.json").write_text(json.dumps(VLLM))
    bad, good = read_runs(tmp_path)
    assert not bad.runs and bad.rejected and len(good.runs) == 1


def test_folders_and_archives_in_one_command(tmp_path: Path) -> None:
    """200 files, and the same packed; one of them is broken, and named."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(199):
        (folder / f"{number:03}").write_text(json.dumps(VLLM | {"mean_tpot_ms": 5 + number}))
    (folder / "999").write_text("{")
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w") as packed,
        tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar,
    ):
        for file in sorted(folder.iterdir()):
            packed.write(file, file.name)
            tar.add(file, file.name)
    table = tmp_path / "all.csv"
    flags = ["--gpu", "h100", "--tp", "2", "--weights-dtype", "bf16", "--engine", "vllm"]
    shown = CliRunner().invoke(app, ["measured", str(folder), *flags, "-o", str(table), "--json"])
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.output)["read"]
    assert len(told) == 200 and sum(len(one["runs"]) for one in told) == 199
    assert "expected the whole output" in told[-1]["rejected"][0]["reason"]
    for archive in ("a.zip", "a.tar.gz"):
        assert [len(one.runs) for one in read_runs(tmp_path / archive)] == [*[1] * 199, 0]
    again = load_measurements(table).runs  # what measured writes, reconcile reads
    assert len(again) == 199 and again[3].metrics.tpot_s == pytest.approx(8e-3)
    at_rate = VLLM | {"max_concurrency": None, "request_rate": 2}
    (folder / "000").write_text(json.dumps(at_rate))
    shown = CliRunner().invoke(app, ["measured", str(folder / "000"), *flags[:6], "-o", str(table)])
    (run,) = load_measurements(table).runs
    assert (run.request_rate, run.concurrency, run.framework) == (2, None, "vllm")
    assert "000: vllm, 1 runs" in shown.output and "all.csv: written" in shown.output
    measured = load_measurements(folder, beside=stated(accelerator="h100", tp=2, weights_dtype="bf16"))
    assert len(measured.runs) == 199 and [one.id for one in measured.rejected] == ["999"]


def test_measured_stands_beside_predicted(tmp_path: Path) -> None:
    """What is set aside is named with its reason and counted, as is what has no prediction."""
    path = tmp_path / "out"
    none = VLLM | {"completed": 0}
    path.write_text("\n".join(map(json.dumps, [VLLM, none, VLLM | {"max_concurrency": 1}])))
    flags = ["--gpu", "h100", "--tp", "2", "--model", "qwen3-32b", "--weights-dtype", "bf16"]
    shown = CliRunner().invoke(app, ["reconcile", str(path), *flags, "--json"])
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.output)
    assert told["metrics"]["tpot"]["n"] == 2 and told["metrics"]["throughput"]["n"] == 2
    assert told["unanswered"] == [{"id": "record 2", "reason": "no request succeeded"}]
    assert "not TPOT" in told["unused_columns"]["mean_itl_ms"] and "colour" in told["unused_columns"]
    assert "framework is taken to be vllm: the file does not say it" in told["assumptions"]
    path.write_text(json.dumps([INFERENCEX, OLD]))
    found = load_measurements(path)
    (run,), (apart,) = found.runs, found.rejected
    assert run.decode is not None and (run.dp, run.attention_dp, run.decode.dp, run.decode.tp) == (3, 4, 2, 8)
    assert reconcile(found).answered == 1 and "32 decode" in apart.reason


def test_all_examples(shared_data: Path) -> None:
    """Each of the examples beside the project has its form, and every figure is in the range of its unit."""
    folder = shared_data / "field" / "formats"
    reads = {Path(one.file).name: one for one in mantile.read_runs(folder)}
    forms = {name: one.form for name, one in reads.items()}
    assert forms["aiperf.csv"] == forms["genai-perf.json"] == "aiperf" and "not read" not in forms.values()
    assert len(reads) == 16 and sum(len(one.runs) for one in reads.values()) == 26
    for name, found in reads.items():
        for run in found.runs:
            assert run.metrics, name
            assert (
                1e-3 < run.metrics.get("tpot_s", 0.01) < 0.1 and 0.01 < run.metrics.get("ttft_s", 0.1) < 5
            ), name


def test_the_table_of_forms_is_as_documented() -> None:
    """mantile/measured/README.md has a line for each form, made of the table."""
    text = (Path(mantile.__file__).parent / "measured" / "README.md").read_text(encoding="utf-8")
    documented = [line for line in text.splitlines() if line.startswith("| `")]
    assert documented == [form.documented for form in form_table().forms]


def test_what_would_make_an_answer_wrong_is_set_apart(tmp_path: Path) -> None:
    """Predictions are no measurements; attention-DP divides the ranks; drafts; prompts after a context."""
    header = "model,isl,osl,concurrency,tokens/s/gpu,tokens/s/user,num_total_gpus,tp\nm,1,1,1,1,1,1,1\n"
    with pytest.raises(InputError, match="predictions of aiconfigurator, no measurements"):
        read(tmp_path, header)
    server = {
        "tp_size": 8,
        "dp_size": 4,
        "enable_dp_attention": True,
        "model_path": "dsr1",
        "quantization": "fp8",
    }
    run = one(tmp_path, SGLANG | {"server_info": server}, accelerator="h200")
    assert (run.fields["tp"], run.fields["attention_dp"], run.excluded) == (2, 4, "")
    (placed,) = load_measurements(tmp_path / "x.log", beside=stated(accelerator="h200")).runs
    assert (placed.tp, placed.attention_dp, placed.weights_dtype) == (2, 4, "fp8-block")
    drafted = SGLANG | {"accept_length": 2.5, "server_info": server}
    assert "tokens were drafted (2.5 a step)" in one(tmp_path, drafted, accelerator="h200").excluded
    deep = LLAMA_ROWS[0].replace("512,0,0", "512,0,4096")
    assert "behind tokens in the KV cache" in one(tmp_path, f"{LLAMA_KEYS}\n{deep}").excluded


def test_a_table_of_runs_is_read_by_the_same_door(tmp_path: Path) -> None:
    """Its columns are those of others or our own; what it lacks is stated by flags and lines."""
    table = "model,quantization,backend,isl,osl,conc,throughput_tokens_per_sec_per_gpu,tpot_p50_ms,colour\n"
    table += "llama-3.1-8b,bf16,vllm,512,64,8,900,7.5,red\n"
    path = tmp_path / "runs.csv"
    path.write_text(table)
    (found,) = read_runs(path, accelerator="h100", tp=2)
    (run,) = found.runs
    assert found.form == "runs" and list(found.unread) == ["colour"]
    assert run.metrics == {"tpot_p50_s": 0.0075, "output_tokens_per_s_per_accelerator": 900}
    beside = stated("vllm serve Qwen/Qwen3-32B -tp 4 --max-num-seqs 7", accelerator="h100")
    (placed,) = load_measurements(path, beside=beside).runs
    assert (placed.tp, placed.max_requests) == (4, 7)
    with pytest.raises(InputError, match="--weights-dtype is for a table that names none"):
        read_runs(path, accelerator="h100", tp=2, weights_dtype="fp8")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO llama_bench (build_commit) VALUES ('" + "a''" * 50_000,
        "|\n" * 100_000,
        "==a" + "=" * 100_000 + "x",
        json.dumps(VLLM | {"errors": [{"a": 1}] * 50_000}),
        '{"a":' * 500 + "1" + "}" * 500,
        "Metric,avg\n" + "a" + " " * 100_000 + "x,1\n",
    ],
)
def test_hostile_texts_end_soon(text: str, tmp_path: Path) -> None:
    """Read, or refused by name, within seconds."""
    path = tmp_path / "x.txt"
    path.write_text(text)
    begun = time.process_time()
    try:
        read_runs(path)
    except InputError as error:
        assert "x.txt" in str(error)
    assert time.process_time() - begun < 5


def test_words_where_numbers_are_expected(tmp_path: Path) -> None:
    """Are left out, with a word on each; what remains is read."""
    wrong = {"completed": "many", "max_concurrency": -3, "mean_ttft_ms": [], "mean_tpot_ms": float("inf")}
    run = one(tmp_path, VLLM | wrong | {"model_id": 7})
    assert not {"completed", "ttft_s", "tpot_s"} & {*run.fields, *run.metrics}
    assert any("completed is 'many': expected a number" in note for note in run.notes)
    assert run.metrics["output_tokens_per_s"] == 600 and run.fields["concurrency"] == 64
    traced = one(tmp_path, SGLANG | {"request_rate": "trace", "max_concurrency": None, "concurrency": None})
    assert "concurrency" not in traced.fields and "request_rate (--" in traced.excluded


# --- figures that nobody measured, and files that are broken ------------------------------------------------


def test_a_number_is_never_made_of_something_else(tmp_path: Path) -> None:
    """Yes is no 1, a cap of 0 is none, and a number too large for a float is no traceback."""
    run = one(tmp_path, VLLM | {"mean_tpot_ms": True, "mean_ttft_ms": 10**400, "tensor_parallel_size": 0})
    assert not {"tpot_s", "ttft_s"} & run.metrics.keys() and "tp" not in run.fields
    assert run.to_dict()["tp"] is None and "tp (--tp)" in run.excluded
    uncapped = one(tmp_path, VLLM | {"max_concurrency": 0, "request_rate": 2.0})
    assert "concurrency" not in uncapped.fields and uncapped.fields["request_rate"] == 2


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        (VLLM_TEXT.replace("6.5", "6,25"), "6,25"),
        (VLLM_TEXT.replace("600.0", "1.600,5"), "1.600,5"),
        (LLAMA_MD.replace("10000.0", "10000,0"), "10000,0"),
    ],
)
def test_decimal_commas_are_refused(text: str, figure: str, tmp_path: Path) -> None:
    """6.250 and 6,250 beside one could be 6.25 or 6250: the record is refused, and says why."""
    try:
        rejected = [reason for _, reason in read(tmp_path, text).rejected]
    except InputError as error:
        rejected = [str(error)]
    assert len(rejected) == 1 and f"{figure}: a decimal comma; expected a decimal point" in rejected[0]
    grouped = one(tmp_path, VLLM_TEXT.replace("600.0", "1,600.5"))
    assert grouped.metrics["output_tokens_per_s"] == 1600.5


def test_what_a_file_says_goes_before_a_flag_in_predictions_too(tmp_path: Path) -> None:
    """measured and reconcile take the same data type: that of the file."""
    text = json.dumps(
        TRTLLM | {"engine": TRTLLM["engine"] | {"model": "Qwen/Qwen3-32B", "quantization": "FP8"}}
    )
    text = text.replace("avg_input_length", 'avg_output_length": 90, "avg_input_length')
    run = one(tmp_path, text, accelerator="h100", weights_dtype="bf16", concurrency=4)
    assert run.fields["weights_dtype"].lower() == "fp8"
    beside = stated(accelerator="h100", weights_dtype="bf16", concurrency=4)
    (measured,) = load_measurements(tmp_path / "x.log", beside=beside).runs
    assert measured.weights_dtype == "fp8"


def test_a_broken_archive_does_not_take_the_other_files_with_it(tmp_path: Path) -> None:
    """It is named with its reason; alone it is an error."""
    (tmp_path / "good.json").write_text(json.dumps(VLLM))
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.json", json.dumps(VLLM) * 50)
    data = bytearray(path.read_bytes())
    data[60:90] = b"\xff" * 30
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.zip: not an archive that can be read"):
        read_runs(path)
    good, bad = read_runs(tmp_path / "good.json", path)
    assert len(good.runs) == 1 and not bad.runs and "not an archive" in bad.rejected[0][1]


def test_a_table_that_measured_wrote_is_the_same_load(tmp_path: Path) -> None:
    """How lengths are drawn and prompts a slot are read back; the lengths are means already, whatever the
    name of the file says of a benchmark."""
    ratio = VLLM | {"random_range_ratio": 0.2}
    (tmp_path / "InferenceX.json").write_text(json.dumps([INFERENCEX | {"disagg": False}]))
    (tmp_path / "vllm.json").write_text(json.dumps(ratio))
    client = "vllm bench serve --random-input-len 1024 --random-range-ratio 0.2"
    flags = ["--gpu", "h100", "--tp", "2", "--weights-dtype", "bf16", "--engine", "vllm"]
    for name, told in (("vllm.json", {"client": client}), ("InferenceX.json", {})):
        table = tmp_path / "all.csv"
        lines = [part for key, line in told.items() for part in (f"--{key}", line)]
        shown = CliRunner().invoke(app, ["measured", str(tmp_path / name), *flags, *lines, "-o", str(table)])
        assert shown.exit_code == 0, shown.output
        beside = stated(**told, accelerator="h100", tp=2, weights_dtype="bf16", framework="vllm")
        before, after = (
            load_measurements(path, beside=stated_or_none).runs[0]
            for path, stated_or_none in ((tmp_path / name, beside), (table, None))
        )
        for field in ("input_tokens", "output_tokens", "prompts_per_slot"):
            assert getattr(before, field) == getattr(after, field), (name, field)
        assert after.length_range_ratio == (before.length_range_ratio or pytest.approx(0.2))


def test_multipliers_are_fitted_to_what_flags_state_as_well(tmp_path: Path) -> None:
    """A file that names no accelerator is read with the one that is stated."""
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps(VLLM))
    line = ["calibrate", str(path), "--multipliers", "-o", str(tmp_path / "c.yaml")]
    assert "not stated: accelerator" in str(CliRunner().invoke(app, line).exception)
    shown = CliRunner().invoke(app, [*line, "--gpu", "h100", "--tp", "2", "--weights-dtype", "bf16"])
    assert "not stated" not in shown.output + str(shown.exception)


def test_a_rate_of_several_engines_is_no_sum(tmp_path: Path) -> None:
    """Of two data-parallel ranks tokens are added up; a share, a length of drafts and a cache are not."""
    lines = [
        'sglang:num_running_reqs{dp_rank="%d"} 1',
        'sglang:time_to_first_token_seconds_sum{dp_rank="%d"} 4',
        'sglang:time_to_first_token_seconds_count{dp_rank="%d"} 8',
        'sglang:generation_tokens_total{dp_rank="%d"} 800',
        'sglang:num_requests_total{dp_rank="%d"} 8',
        'sglang:cache_hit_rate{dp_rank="%d"} 0.75',
        'sglang:max_total_num_tokens{dp_rank="%d"} 50000',
    ]
    run = one(tmp_path, "\n".join(line % rank for rank in (0, 1) for line in lines) + "\n")
    assert (run.fields["prefix_hit_rate"], run.metrics["kv_tokens"]) == (0.75, 50_000)
    assert (run.fields["completed"], run.fields["output_tokens"]) == (16, 100)
    assert run.metrics["ttft_s"] == 0.5


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("RedHatAI/Llama-3.1-8B-Instruct-FP8", "fp8"),
        ("openai/gpt-oss-120b", "mxfp4"),
        ("Qwen/Qwen3-32B", None),
    ],
)
def test_the_name_of_a_checkpoint_says_its_data_type(name: str, word: str | None, tmp_path: Path) -> None:
    """A flag goes before it; weights in 16 bits may have been quantised by the server."""
    run = one(tmp_path, VLLM | {"model_id": name})
    assert run.fields.get("weights_dtype") == word and ("--weights-dtype" in run.excluded) == (word is None)
    stating = one(tmp_path, VLLM | {"model_id": name}, weights_dtype="bf16")
    assert stating.fields["weights_dtype"] == "bf16"
