"""Comparisons with measured runs: tables of others, gates, summaries, charts, and what calibrate refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from mantile.cli import app
from mantile.estimates.estimate import estimate
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.library.scenario import parse_scenario
from mantile.measured.correct import residuals
from mantile.measured.gates import Gate, judged
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.measured.metric_columns import metric_column, why_unread
from mantile.measured.metrics import errors_in_units
from mantile.measured.reconcile import reconcile
from mantile.measured.report.write import report_book, write_report, write_table
from mantile.measured.runs import Measurements, parse_run
from mantile.measured.spellings import find_accelerator, find_model, weight_formats

HEADS = (
    "gpu_model,num_gpus,model_name,backend,quantization,input_seq_len,output_seq_len,max_concurrency,"
    "tensor_parallel,mean_ttft_s,tpot_ms,e2e_latency_s,output_throughput"
)
HEADS_OF_OURS = (
    *("model", "accelerator", "framework", "input_tokens", "output_tokens", "concurrency", "tp"),
    *("weights_gb", "kv_tokens", "peak_memory_gb", "tpot_ms"),
)
ROWS = (
    "NVIDIA H100 80GB HBM3,4,meta-llama/Llama-3.1-8B-Instruct,vLLM,FP8,1024,512,16,4,0.31,13.5,7.2,1100",
    "H100,2,meta-llama/Llama-3.1-8B-Instruct,vLLM,INT4-AWQ,1024,512,16,2,0.21,9.5,5.2,1500",
    "Q99,8,meta-llama/Llama-3.1-8B-Instruct,vLLM,bf16,1024,512,16,8,0.21,9.5,5.2,1500",
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table in the columns of others, one of whose accelerators there is not."""
    path = tmp_path / "theirs.csv"
    path.write_text("\n".join((HEADS, *ROWS)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("held", ["fast", "[1]"])
def test_a_time_in_seconds_that_is_no_number(table: Path, held: str) -> None:
    """Of the first row too, by which the form of a table is told."""
    told = table.read_text(encoding="utf-8").replace(",0.31,", f",{held},")
    table.write_text(told, encoding="utf-8")
    (first, _) = load_measurements(table).rejected
    assert f"mean_ttft_s: holds '{held}'; expected a number" in first.reason
    listed = table.with_suffix(".yaml")
    listed.write_text("- {mean_ttft_s: [1], tpot_s: {a: 1}}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"theirs\.yaml"):
        load_measurements(listed)


def test_a_table_under_other_names(table: Path) -> None:
    """Columns by the names of others, seconds where they say so, throughput of the deployment."""
    measured = load_measurements(table)
    first, second = measured.runs
    assert (first.model, first.accelerator, first.framework, first.tp) == (
        "llama-3.1-8b",
        "h100-sxm",
        "vllm",
        4,
    )
    assert (first.input_tokens, first.output_tokens, first.concurrency) == (1024, 512, 16)
    assert first.metrics.given() == pytest.approx(
        {"ttft_s": 0.31, "tpot_s": 0.0135, "e2e_s": 7.2, "output_tokens_per_s": 1100}
    )
    assert second.weights_dtype == "int4"
    assert [one.id for one in measured.rejected] == ["record 3"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *((word, "int4") for word in ("int4", "awq", "GPTQ", "w4a16", "INT4-AWQ", "awq_int4", "int4_wo")),
        *((word, "int8") for word in ("int8", "w8a8", "int8-sq", "SmoothQuant")),
        *((word, "int8-g128") for word in ("gptq-int8", "int8 (GPTQ)", "GPTQ 8-bit", "w8a16")),
        *((word, "int4-g64") for word in ("4-bit", "mlx-4bit")),
        *((word, word.lower()) for word in ("mxfp4", "NVFP4", "fp8")),
    ],
)
def test_words_for_weights(word: str, expected: str) -> None:
    """A width beside a way of quantising counts."""
    found = weight_formats("llama-3.1-8b", find_accelerator("h100"), "vllm", word, "", [])
    assert found["weights_dtype"] == expected


def test_a_width_beside_a_format() -> None:
    """The format counts."""
    for word in ("w8a8-fp8", "FP8_W8A8", "fp8 (w8a16)"):
        found = weight_formats("llama-3.1-8b", find_accelerator("h100"), "vllm", word, "", [])
        assert found == {"weights_dtype": "fp8"}, word


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm"),
        ("H100-SXM5-80GB", "h100-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb-sxm"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("NVIDIA B300 SXM6 AC", "b300-sxm"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("RTX4090", "rtx-4090"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("NVIDIA GH200 480GB", None),  # 96 GB of its own: ours has 144
        ("Tesla V100-SXM2-16GB", None),
        ("A10G", None),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", None),
    ],
)
def test_names_of_accelerators(name: str, expected: str | None) -> None:
    """As drivers, clusters and tables have them; a part with other memory is another."""
    if expected is None:
        with pytest.raises(InputError, match="unknown accelerator"):
            find_accelerator(name)
    else:
        assert find_accelerator(name).id == expected


def test_names_of_engines_and_models() -> None:
    """With blanks, underscores and releases."""
    names = ("tensorrt_llm", "SGLang 0.5.4", "vLLM-v1", "llama.cpp-2024")
    engines = [load_library().framework(name).id for name in names]
    assert engines == ["trtllm", "sglang", "vllm", "llama.cpp-2024"]
    for name in ("Llama 3.1 8B Instruct", "llama3.1:8b", "x/Meta-Llama-3.1-8B-Instruct-quantized.w4a16"):
        assert find_model(name).id == "llama-3.1-8b"


def test_what_a_table_lacks_is_named(table: Path) -> None:
    """Of the form that it is nearest to, by the names of others too."""
    table.write_text(table.read_text(encoding="utf-8").replace("backend", "x"), encoding="utf-8")
    with pytest.raises(InputError, match=r"it lacks of a table of serving runs: framework \(backend\)"):
        load_measurements(table)


@pytest.mark.parametrize(
    "load", [{"request_rate": 2.5}, pytest.param({"sessions": 4}, marks=pytest.mark.exhaustive)]
)
def test_runs_without_a_concurrency(load: dict[str, float], tmp_path: Path) -> None:
    """First in a file, beside others, in the table, the report and a correction; arrivals say throughput, so
    that none is worked out of times."""
    case = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "framework": "vllm", "source": "mine"}
    case |= {"input_tokens": 512, "output_tokens": 128, "metrics": {"tpot_s": 0.008, "ttft_s": 0.05}}
    runs = [case | load | {"id": "open"}, case | {"concurrency": 4, "id": "closed"}]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs), encoding="utf-8")
    found = reconcile(load_measurements(path))
    opened, closed = found.table.to_dict("records")
    assert (opened["concurrency"], closed["concurrency"]) == (None, 4)
    assert np.isnan(opened["throughput_measured"]) and closed["throughput_derived"] > 0
    assert list(found.groups()["concurrency"]) == ["4"]
    write_report(found, tmp_path / "report.xlsx")
    write_table(found, tmp_path / "runs.csv")
    shown = CliRunner().invoke(app, ["reconcile", str(path)])
    told = "2.5/s" if "request_rate" in load else "sessions"
    assert shown.exit_code == 0 and told in shown.output and "None" not in shown.output
    assert list(residuals(load_measurements(path).runs)["id"]) == ["closed"]


def test_errors_in_units() -> None:
    """Mean and root mean square in the unit, ends as fractions; what was not measured does not count."""
    found = errors_in_units(np.array([10.0, 20.0, np.nan, 5.0]), np.array([11.0, 17.0, 3.0, np.nan]))
    assert found == pytest.approx(
        {"mae": 2.0, "rmse_in_units": (10 / 2) ** 0.5, "least": -0.15, "largest": 0.1}
    )
    assert np.isnan(errors_in_units(np.array([np.nan]), np.array([1.0]))["mae"])


def test_gates() -> None:
    """A gate that nothing was measured for is not passed; a bias counts either way."""
    errors = {"tpot": {"mape": 0.08, "bias": -0.2}}
    gates = [Gate.parse(text) for text in ("decode=10", "decode=5%", "decode.bias=15", "memory=5")]
    assert [one.passed for one in judged(gates, errors)] == [True, False, False, False]
    for wrong in ("decode", "decode=-1", "speed=5", "decode.best=5", "decode=nan"):
        with pytest.raises(InputError, match="--gate"):
            Gate.parse(wrong)


@pytest.mark.exhaustive
def test_files_and_status(table: Path, tmp_path: Path) -> None:
    """The table holds rows without an answer, the text what is shown; the status that of the gates."""
    rows, text = tmp_path / "rows.csv", tmp_path / "summary.txt"
    asked = ["reconcile", str(table), "-o", str(rows), "-o", str(text), "--gate", "decode=1000,ttft=0.1"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 1, shown.output
    assert "beyond" in shown.output
    found = list(csv.DictReader(rows.read_text(encoding="utf-8").splitlines()))
    assert [(row["tp"], row["ep"], row["gpus"]) for row in found[:2]] == [("4", "1", "4"), ("2", "1", "2")]
    assert found[2]["id"] == "record 3"
    assert "unknown accelerator" in found[2]["reason"]
    assert not found[0]["reason"]
    assert "2 of 3 runs predicted" in text.read_text(encoding="utf-8")
    passed = CliRunner().invoke(app, ["reconcile", str(table), "--gate", "decode=1000", "--json"])
    assert passed.exit_code == 0, passed.output
    told: dict[str, Any] = json.loads(passed.output)
    assert told["gates"][0]["passed"]
    assert told["feasibility"] == {"ran": 2, "false_negatives": 0}
    assert told["in_units"]["tpot"]["mae"] > 0


@pytest.mark.exhaustive
def test_charts_of_errors(table: Path, tmp_path: Path) -> None:
    """The same picture each time, with a title for each metric and group."""
    pytest.importorskip("matplotlib")
    from mantile.cli.output.error_charts import draw_errors

    compared = reconcile(load_measurements(table), source="theirs.csv")
    drawn = [tmp_path / name for name in ("a.svg", "b.svg")]
    for path in drawn:
        draw_errors(compared, path)
    first, second = (path.read_text(encoding="utf-8") for path in drawn)
    assert first == second
    for title in ("TPOT by TP", "TTFT by framework", "Throughput by input/output tokens", "End to end"):
        assert title in first


def test_calibrate_refuses_what_reconcile_refuses(tmp_path: Path) -> None:
    """A plan that cannot be is a misreading of its record, one that does not fit has no time: neither
    compares with them, nor fits to them."""
    path = tmp_path / "runs.csv"
    path.write_text(
        "id,model,accelerator,framework,input_tokens,output_tokens,concurrency,tp,ep,tpot_ms\n"
        "right,gpt-oss-20b,h100-sxm,vllm,1024,128,8,2,2,6\n"
        "wrong,gpt-oss-20b,h100-sxm,vllm,1024,128,8,2,4,6\n"
        "large,llama-3.1-405b,h100-sxm,vllm,1024,128,8,1,1,6\n",
        encoding="utf-8",
    )
    measured = load_measurements(path)
    compared = reconcile(measured)
    possible = match_runs(measured.runs).possible()
    assert [run.run.id for run in possible.runs] == list(compared.modes()["aggregated"]["id"]) == ["right"]
    assert {one.id: one.reason for one in possible.rejected} == {
        one.id: one.reason for one in compared.unanswered()
    }
    assert [one.id for one in possible.rejected] == ["wrong", "large"]


def test_measured_memory_is_compared(tmp_path: Path) -> None:
    """Memory of an accelerator in bytes or GB, KV tokens of a rank: each beside its figure, and a gate."""
    path = tmp_path / "runs.csv"
    case: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "framework": "vllm"}
    case |= {"input_tokens": 1024, "output_tokens": 128, "concurrency": 8, "tp": 1}
    asked, made = ",".join(map(str, case.values())), estimate(parse_scenario(case, "test"))
    weights, tokens, peak = (
        made[name].value for name in ("memory.weights", "startup.kv_tokens", "startup.peak")
    )
    lines = (f"{asked},{weights / 1e9},{tokens},{peak * 1.25 / 1e9},8", f"{asked},,,,8")
    path.write_text("\n".join((",".join(HEADS_OF_OURS), *lines)) + "\n", encoding="utf-8")
    found = reconcile(load_measurements(path)).metrics()
    assert {name: round(found[name]["bias"], 9) for name in ("weights", "kv_tokens", "peak_memory")} == {
        "weights": 0,
        "kv_tokens": 0,
        "peak_memory": -0.2,
    }
    assert found["peak_memory"]["n"] == 1
    assert [one.passed for one in judged([Gate.parse("memory=21"), Gate.parse("memory=19")], found)] == [
        True,
        False,
    ]
    with pytest.raises(InputError, match="peak_memory_bytes or peak_memory_gb, not both"):
        parse_run(
            {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 8, "output_tokens": 8}
            | {"concurrency": 1, "metrics": {"peak_memory_gb": 1, "peak_memory_bytes": 1e9}},
            "twice",
        )


@pytest.mark.parametrize(
    ("column", "place"),
    [
        *((name, ("output_tokens_per_s_per_accelerator", 1)) for name in (
            "throughput_tokens_per_sec_per_gpu", "out_tok_s_gpu", "output_tput_per_gpu",
            "tokens_per_s_per_gpu", "Output Throughput (tok/s/GPU)", "throughput_per_gpu", "tps_per_gpu",
        )),
        *((name, ("output_tokens_per_s", 1)) for name in (
            "output_throughput", "Output token throughput (tok/s)", "tokens_per_second", "throughput_tok_s",
        )),
        *((name, ("ttft_s", 1e-3)) for name in ("Mean TTFT (ms)", "avg_ttft_ms", "time_to_first_token_ms")),
        *((name, ("tpot_s", 1)) for name in ("tpot_sec", "mean_tpot_s", "time_per_output_token_seconds")),
        *((name, ("tpot_p50_s", 1e-3)) for name in ("median_tpot_ms", "tpot_p50_ms", "P50 TPOT [ms]")),
        ("e2e_latency_sec", ("e2e_s", 1)),
        ("prefill_throughput", ("prefill_tokens_per_s", 1)),
        ("peak_memory_gb", ("peak_memory_bytes", 1e9)),
    ],
)  # fmt: skip
def test_names_of_measured_columns(column: str, place: tuple[str, float]) -> None:
    """Their words say the metric and the unit."""
    assert metric_column(column) == place


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("mean_itl_ms", "not TPOT"),
        ("inter_token_latency_ms", "not TPOT"),
        ("P99 ITL (ms)", "not TPOT"),
        ("total_token_throughput", "input and output"),
        ("tput_per_gpu", "input and output"),
        ("request_throughput", "requests"),
        ("tokens/s/user", "one user"),
        ("throughput", "unit"),
        ("ttft", "unit"),
        ("p99_ttft_ms", "not among"),
        ("gpu_temperature", "not known"),
    ],
)
def test_columns_that_hold_no_metric(column: str, why: str) -> None:
    """Each says why it is not read."""
    assert why in why_unread(column)


BENCHMARK: dict[str, Any] = {
    "gpu_model": "h100", "framework": "vllm", "model": "llama-3.1-8b", "precision": "bf16",
    "input_seq_len": 1024, "output_seq_len": 512, "concurrency": 16, "tensor_parallel": 1,
}  # fmt: skip


def _benchmark(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "benchmark.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(BENCHMARK | rows[0]))
        writer.writeheader()
        writer.writerows(BENCHMARK | row for row in rows)
    return path


def test_a_throughput_that_was_measured_is_compared(tmp_path: Path) -> None:
    """Not one that latencies come to, which is called derived wherever it stands."""
    times = {"ttft_sec": 0.08, "tpot_sec": 0.009}
    rate = {"throughput_tokens_per_sec_per_gpu": 1234.5, "colour": "red", "mean_itl_ms": 9}
    path = _benchmark(tmp_path, times | rate, times | dict.fromkeys(rate, ""))
    measured = load_measurements(path)
    assert measured.unused == {"colour": "not known", "mean_itl_ms": why_unread("mean_itl_ms")}
    assert why_unread("mean_itl_ms") != "not known"
    found = reconcile(measured, source=path.name)
    stated, derived = found.table.to_dict("records")
    assert stated["throughput_measured"] == 1234.5 and np.isnan(stated["throughput_derived"])
    assert np.isnan(derived["throughput_measured"]) and derived["throughput_derived"] > 0
    assert stated["throughput_ratio"] == pytest.approx(stated["throughput_predicted"] / 1234.5)
    assert found.metrics()["throughput"]["derived"] == 1
    shown = CliRunner().invoke(app, ["reconcile", str(path)])
    assert "Throughput, 1 of 2 derived" in shown.output and "colour" in shown.output
    assert "not TPOT" in shown.output
    book = report_book(found)
    texts = {name: {cell.text for cell in book.sheets[name].cells.values()} for name in ("Runs", "Summary")}
    assert "measured or derived" in texts["Runs"] and "Throughput, 1 of 2 derived" in texts["Summary"]


def test_a_throughput_that_times_do_not_allow_is_named(tmp_path: Path) -> None:
    """16 requests of 512 tokens cannot bring so many: input tokens are counted, or all accelerators."""
    times = {"ttft_sec": 0.08, "tpot_sec": 0.009, "throughput_tokens_per_sec_per_gpu": 5000}
    found = reconcile(load_measurements(_benchmark(tmp_path, times)))
    assert any("input tokens may be counted" in note for note in found.assumptions())


def test_medians_alone_are_compared_with_medians(tmp_path: Path) -> None:
    """A table without means has results, and says so; one that times chunks alone says what it lacks."""
    path = _benchmark(tmp_path, {"tpot_p50_ms": 9, "ttft_p50_ms": 80})
    found = reconcile(load_measurements(path)).metrics()
    assert set(found) == {"tpot_p50", "ttft_p50"} and found["tpot_p50"]["n"] == 1
    shown = CliRunner().invoke(app, ["reconcile", str(path)])
    assert shown.exit_code == 0 and "medians alone" in " ".join(shown.output.split())
    case = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 512, "output_tokens": 64}
    spread = case | {"concurrency": 8, "input_spread": 0.5, "output_spread": 0.9}
    row = reconcile(Measurements((parse_run(spread | {"tpot_p50_ms": 9}, "r"),))).table.iloc[0]
    assert row["tpot_p50_predicted"] < row["tpot_predicted"]
    with pytest.raises(InputError, match="mean_itl_ms: time between chunks"):
        load_measurements(_benchmark(tmp_path, {"mean_itl_ms": 9}))


def test_runs_that_do_not_fit_or_are_overloaded_are_not_compared(tmp_path: Path) -> None:
    """They are counted by reason, in words too; memory is compared all the same."""
    case = {"framework": "vllm", "input_tokens": 512, "output_tokens": 256, "source": "mine"}
    times = {"ttft_s": 0.5, "tpot_s": 0.02}
    small = case | {"model": "llama-3.1-8b", "accelerator": "h100-sxm"}
    large = case | {"model": "llama-3.1-70b", "accelerator": "rtx-4090", "concurrency": 4}
    runs = [
        small | {"id": "fine", "concurrency": 4, "metrics": times},
        small | {"id": "over", "request_rate": 500, "metrics": times},
        large | {"id": "large", "metrics": times},
        large | {"id": "padded", "tp": 3, "metrics": times | {"weights_gb": 48}},
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs), encoding="utf-8")
    found = reconcile(load_measurements(path))
    told = found.to_dict()
    assert told["excluded"] == {"INSUFFICIENT_MEMORY": 2, "OVERLOADED": 1}
    assert (told["rows"], told["answered"], told["metrics"]["tpot"]["n"]) == (4, 1, 1)
    assert told["metrics"]["weights"]["n"] == 1 and told["feasibility"]["false_negatives"] == 2
    assert list(found.groups()["model"]) == ["llama-3.1-8b", "llama-3.1-70b"]
    large_row = found.table.set_index("id").loc["large"]
    assert np.isnan(large_row["ttft_predicted"]) and large_row["feasibility"] == "insufficient_memory"
    shown = CliRunner().invoke(app, ["reconcile", str(path), "-o", str(tmp_path / "runs.csv")])
    assert "4 of 4 runs predicted, 3 not compared" in shown.output
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines()))
    assert "said not to fit" in rows[2]["reason"] and not rows[0]["reason"]
    path.write_text(json.dumps(runs[1:3]), encoding="utf-8")
    none = CliRunner().invoke(app, ["reconcile", str(path), "--json"])
    assert json.loads(none.output)["excluded"] == {"INSUFFICIENT_MEMORY": 1, "OVERLOADED": 1}


def test_a_rate_and_prompts_of_a_table_are_read(tmp_path: Path) -> None:
    """Requests that arrive at a rate are not all in flight; inf is no rate. A run of ours takes the names of
    others too."""
    times = {"ttft_ms": 80, "tpot_ms": 9, "num_prompts": 160}
    rows = [times | {"request_rate": rate} for rate in ("inf", "2.5", "")]
    closed, opened, silent = load_measurements(_benchmark(tmp_path, *rows)).runs
    assert (closed.request_rate, opened.request_rate, silent.request_rate) == (None, 2.5, None)
    assert closed.prompts_per_slot == 10
    own = tmp_path / "own.csv"
    own.write_text(
        "model,accelerator,input_tokens,output_tokens,concurrency,throughput_tokens_per_sec_per_gpu\n"
        "llama-3.1-8b,h100-sxm,512,128,8,900\n",
        encoding="utf-8",
    )
    (run,) = load_measurements(own).runs
    assert run.metrics.output_tokens_per_s_per_accelerator == 900


BENCHMARK_COLUMNS = (
    *("gpu_model", "framework", "precision", "input_seq_len", "output_seq_len", "tensor_parallel"),
    *("expert_parallel", "concurrency", "throughput_tokens_per_sec_per_gpu", "ttft_sec", "tpot_sec"),
    "e2e_latency_sec",
)
OF_PREDICTIONS = (
    *("predicted_throughput_per_gpu", "predicted_ttft_sec", "predicted_tpot_sec"),
    "predicted_e2e_latency_sec",
    *("throughput_abs_error", "throughput_pct_error", "ttft_abs_error", "ttft_pct_error"),
    *("tpot_abs_error", "tpot_pct_error", "e2e_latency_abs_error", "e2e_latency_pct_error"),
)


def _write(path: Path, rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([BENCHMARK_COLUMNS, *rows])
    return path


def test_a_benchmark_names_machine_and_engine_at_once(tmp_path: Path) -> None:
    """b200-trt is a B200 with TensorRT-LLM; fp4 is the format of the checkpoint, KV that of the scripts."""
    row = ("b200-trt", "b200-trt", "fp4", 1024, 1024, 2, 1, 16, 2000, 0.06, 0.005, 5.2)
    path = _write(tmp_path / "runs.csv", [row, ("H100", "vllm", *row[2:])])
    first, second = load_measurements(path, model="gpt-oss-120b").runs
    assert (first.accelerator, first.framework, first.tp) == ("b200-sxm", "trtllm", 2)
    assert (first.weights_dtype, first.kv_dtype) == (None, "fp8")
    assert (second.accelerator, second.kv_dtype) == ("h100-sxm", "bf16")
    for model in ("qwen3-235b-a22b-nvfp4", "deepseek-v3.1-nvfp4"):
        assert load_measurements(path, model=model).runs[0].weights_dtype is None
    with pytest.raises(InputError, match="--model states it"):
        load_measurements(path)
    with pytest.raises(InputError, match="--model is for a table that names none"):
        load_measurements(_benchmark(tmp_path, {"ttft_sec": 0.1}), model="gpt-oss-120b")


def test_a_table_of_a_benchmark(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """gpt-oss-120b on B200 in the columns of a benchmark that names no model: every row is answered or named,
    and the table of runs has predictions and errors under the names of benchmarks."""
    with (shared_data / "silicon_public.csv").open(encoding="utf-8") as file:
        public = [
            row
            for row in csv.DictReader(file)
            if (row["model"], row["system"], row["mode"]) == ("openai/gpt-oss-120b", "b200_sxm", "agg")
        ][:249]
    rows: list[Sequence[Any]] = []
    for row in public:
        engine = {"trtllm": "trt"}.get(row["framework"], row["framework"])
        groups = float(row["dp_attention"]) if row["dp_attention"][:1].isdigit() else 1
        ttft, tpot = float(row["ttft_ms"]) / 1e3, float(row["tpot_ms"]) / 1e3
        lengths = [int(row["isl"]), int(row["osl"])]
        plan = [int(float(row["tp"]) * max(1, groups)), int(float(row["ep"])), int(float(row["concurrency"]))]
        times = [ttft, tpot, ttft + (lengths[1] - 1) * tpot]
        rows.append(
            [f"b200-{engine}", engine, row["precision"], *lengths, *plan, row["out_tok_s_gpu"], *times]
        )
    rows.append(["q99", *rows[0][1:]])
    path, table, text = _write(tmp_path / "runs.csv", rows), tmp_path / "all.csv", tmp_path / "summary.txt"
    asked = ["reconcile", str(path), "--model", "gpt-oss-120b"]
    shown = CliRunner().invoke(app, [*asked, "-o", str(table), "-o", str(text), "--json"])
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.output)
    assert told["rows"] == 250 == told["answered"] + len(told["unanswered"])
    assert [one["id"] for one in told["unanswered"]] == ["record 250"]
    throughput = told["metrics"]["throughput"]
    assert throughput["n"] - throughput["derived"] == sum(bool(row["out_tok_s_gpu"]) for row in public)
    with capsys.disabled():
        for name, figures in told["metrics"].items():
            print(f"\n{name}: {figures['n']} runs, MAPE {100 * figures['mape']:.1f} %", end="")
    found = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert tuple(name for name in found[0] if name in OF_PREDICTIONS) == OF_PREDICTIONS
    assert [one["id"] for one in found] == [f"record {number}" for number in range(1, 251)]
    first = {name: float(cell) for name, cell in found[0].items() if name in OF_PREDICTIONS and cell}
    measured = rows[0][9]
    assert first["ttft_abs_error"] == pytest.approx(abs(first["predicted_ttft_sec"] - measured))
    assert first["ttft_pct_error"] == pytest.approx(100 * (first["predicted_ttft_sec"] / measured - 1))
    compared = [bool(one["throughput_pct_error"]) for one in found[:249]]
    assert compared == [bool(row["out_tok_s_gpu"]) for row in public]
    summary = text.read_text(encoding="utf-8")
    for words in ("MAPE", "RMSE", "framework", "parallelism", "lengths", "best by TPOT", "worst by TPOT"):
        assert words in summary
    chosen = CliRunner().invoke(app, [*asked, "--where", "framework=trtllm"])
    assert "where framework=trtllm: 1" in chosen.output and "of 250 runs" in chosen.output
