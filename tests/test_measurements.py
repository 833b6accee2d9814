"""Measured runs: our own records and those of others.

What reading them takes for granted, what is set aside, and errors against predictions.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mantile.estimates.estimate import estimate
from mantile.graph.evaluate import Program
from mantile.library.documents import load
from mantile.library.errors import InputError
from mantile.library.profiles import data_folder
from mantile.library.scenario import parse_scenario
from mantile.measured.cross_validation import folds
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.measured.metrics import errors
from mantile.measured.recipes import Match, Recipes
from mantile.measured.reconcile import reconcile
from mantile.measured.runs import Environment, Measurements, Metrics, Run
from mantile.measured.template import run_template

OWN: dict[str, Any] = {
    "id": "r1",
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 922,
    "output_tokens": 461,
    "concurrency": 16,
    "prompts_per_slot": 10,
    "metrics": {"ttft_s": 0.21, "tpot_s": 0.0147},
    "environment": {"framework_version": "0.11.0"},
    "source": "our own run",
    "date": "2026-11-20",
}
SERVING: dict[str, Any] = {
    "row_id": "s1",
    "source": "InferenceMAX/InferenceX via somebody",
    "source_ref": "commit 1",
    "measured_on": "2026-02-01",
    "framework": "vllm",
    "framework_version": "0.19.0",
    "image": "vllm/vllm-openai:v0.19.0",
    "model": "meta-llama/Llama-3.3-70B-Instruct",
    "system": "h100_sxm",
    "gpus": "8",
    "precision": "fp8",
    "moe_precision": "",
    "kv_dtype": "bf16",
    "mode": "agg",
    "isl": "1024",
    "osl": "512",
    "concurrency": "16.0",
    "tp": "8.0",
    "pp": "1",
    "ep": "1.0",
    "dp_attention": "1.0",
    "ttft_ms": "61.3",
    "tpot_ms": "7.24",
    "median_ttft_ms": "50",
    "median_tpot_ms": "",
    "out_tok_s_gpu": "",
    "spec_decode": "none",
    "len_sampling": "uniform[0.8L,L] mean 0.9L",
    "notes": "",
}
AGG: dict[str, Any] = {
    "hw": "b200-trt",
    "framework": "trt",
    "precision": "fp4",
    "model": "nvidia/DeepSeek-R1-0528-NVFP4-v2",
    "isl": 1024,
    "osl": 1024,
    "conc": 64,
    "tp": 4,
    "ep": 4,
    "dp_attention": "false",
    "mean_ttft": 0.95,
    "mean_tpot": 0.0131,
    "median_ttft": 0.4,
    "output_tput_per_gpu": 1100.5,
    "date": "2026-02-03",
    "disagg": False,
    "spec_decoding": "none",
    "image": "nvcr.io/tensorrt-llm:1.2",
}
BENCH: dict[str, Any] = {
    "model": "Meta-Llama-3-8B",
    "system": "RTX 4090",
    "quant": "Q4_K_M",
    "framework": "llama.cpp",
    "gpus": "1",
    "batch": "1",
    "depth": "0",
    "gen_len": "1024",
    "prompt_len": "512",
    "pp_tok_s": "6000",
    "tg_tok_s": "127.7",
    "source": "a table",
    "row_id": "c1",
}


ASKED = {key: OWN[key] for key in ("model", "accelerator", "input_tokens", "output_tokens", "concurrency")}


def table(folder: Path, rows: Sequence[dict[str, Any]]) -> Measurements:
    """Rows as a .csv file, read."""
    path = folder / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return load_measurements(path)


def document(folder: Path, data: Any, name: str = "runs.yaml") -> Measurements:
    """Records as a .yaml or .json file, read."""
    path = folder / name
    path.write_text(yaml.safe_dump(data) if name.endswith(".yaml") else json.dumps(data), encoding="utf-8")
    return load_measurements(path)


def one(found: Measurements) -> Run:
    """The only run; none is set aside."""
    assert not found.rejected
    (run,) = found.runs
    return run


def served(folder: Path, **changes: Any) -> Run:
    """A row of a table of serving runs, read."""
    return one(table(folder, [SERVING | changes]))


# --- our own records ----------------------------------------------------------------------------------------


def test_a_record_of_ours_is_read_from_any_file(tmp_path: Path) -> None:
    """YAML, JSON, with or without `runs` above it, and a table whose columns are the metrics."""
    read = [
        document(tmp_path, data, name)
        for data, name in (
            ({"runs": [OWN]}, "a.yaml"),
            ([OWN], "b.yaml"),
            (OWN, "c.yaml"),
            ({"runs": [OWN]}, "d.json"),
        )
    ]
    flat = (
        {key: value for key, value in OWN.items() if key not in ("metrics", "environment")}
        | OWN["metrics"]
        | OWN["environment"]
    )
    read.append(table(tmp_path, [flat | {"tp": "", "ttft_p95_s": ""}]))
    runs = [one(found) for found in read]
    assert all(run == runs[0] for run in runs)
    run = runs[0]
    assert run.metrics.given() == {"ttft_s": 0.21, "tpot_s": 0.0147}
    assert (run.date, run.environment.framework_version, run.status, run.assumptions) == (
        "2026-11-20",
        "0.11.0",
        "measured",
        (),
    )
    scenario = run.scenario()
    assert (scenario.model, scenario.input_tokens, scenario.prompts_per_slot, scenario.tp) == (
        "llama-3.1-8b",
        922,
        10,
        None,
    )


@pytest.mark.parametrize("form", ["yaml", "csv"])
def test_the_template_is_a_file_of_measured_runs(tmp_path: Path, form: str) -> None:
    """The same run in both forms; times may be in milliseconds, every metric is told of."""
    text = run_template(form)
    (tmp_path / f"runs.{form}").write_text(text)
    run = one(load_measurements(tmp_path / f"runs.{form}"))
    assert run.metrics.given() == {"ttft_s": 0.21, "tpot_s": 0.0147}
    assert (run.tp, run.environment.framework_version) == (8, "0.11.0")
    if form == "yaml":
        assert all(f"{name}:" in text for name in (*Metrics.model_fields, *Environment.model_fields))
    other = text.replace("tpot_s", "tpot_ms").replace("0.0147", "14.7")
    (tmp_path / f"ms.{form}").write_text(other)
    assert one(load_measurements(tmp_path / f"ms.{form}")).metrics == run.metrics


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metrics": {}}, "expected at least one of ttft_s, "),
        ({"output_tokens": None}, "output_tokens is missing"),
        ({"metrics": {"tpot_s": 0}}, "metrics.tpot_s"),
        ({"metrics": {"tpot_s": -1}}, "metrics.tpot_s"),
        ({"metrics": {"tpot_s": math.inf}}, "metrics.tpot_s"),
        ({"metrics": {"tpot_ms": 3, "tpot_s": 0.003}}, "expected tpot_s or tpot_ms, not both"),
        ({"concurrency": 0, "colour": "red"}, "field colour: there is no such field"),
        ({"colour": "red", "concurrency": 0}, "field concurrency: "),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 2.5}, "concurrency"),
        ({"input_tokens": "long"}, "input_tokens"),
        ({"colour": "red"}, "colour"),
        ({"status": "guessed"}, "status"),
        ({"id": "r1"}, "the id r1 is given twice"),
    ],
)
def test_a_broken_record_is_set_aside_with_its_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    """The others are read all the same; one line, without the name again."""
    found = document(tmp_path, [OWN, OWN | {"id": "r2"} | changes])
    assert [run.id for run in found.runs] == ["r1"]
    (broken,) = found.rejected
    assert broken.id == ("r1" if "id" in changes else "r2")
    assert reason in broken.reason and "\n" not in broken.reason and not broken.reason.startswith("r2")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("runs.txt", "a", r"expected a \.csv, \.json, \.yaml or \.db file"),
        ("runs.csv", "", "no measured runs in it"),
        ("runs.csv", "a,b\n", "no measured runs in it"),
        (
            "runs.csv",
            "a,b\n1,2\n",
            "not a form of measured runs that is known.*accelerator.*tpot_s.*isl.*tg_tok_s",
        ),
        ("runs.json", "[]", "no measured runs"),
        ("runs.json", "[1]", "expected a list of runs"),
        ("runs.json", '{"runs": 3}', "expected a list of runs"),
        ("runs.yaml", "a: [1", "not valid YAML"),
        ("runs.json", '[{"a": 1}]', "not a form of measured runs"),
        ("runs.csv", 'a,b\n"1,2\n', r"runs\.csv"),
        (
            "runs.yaml",
            "- {model: m, accelerator: x, input_tokens: 1, output_tokens: 1, concurrency: 1}",
            "none of its 1 records is a measured run; the first: record 1: ",
        ),
    ],
)
def test_a_file_of_no_form_we_know_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    """By its name, with what was expected."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_measurements(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


# --- tables of serving runs ---------------------------------------------------------------------------------


def test_numbers_of_a_json_row_may_be_texts(tmp_path: Path) -> None:
    """As they are in a table of commas."""
    rows = [SERVING | {"isl": "1024", "osl": "100", "row_id": "a"}]
    (run,) = document(tmp_path, rows, "theirs.json").runs
    assert (run.input_tokens, run.output_tokens) == (922, 90)  # of 0.8 to 1 times so many


def test_a_row_of_a_serving_table(tmp_path: Path) -> None:
    """Milliseconds become seconds, lengths their means, names ours; what that assumes is said."""
    run = served(tmp_path, source="somebody's table")
    assert (run.id, run.model, run.accelerator, run.framework, run.tp, run.concurrency) == (
        "s1",
        "llama-3.3-70b",
        "h100-sxm",
        "vllm",
        8,
        16,
    )
    assert (run.input_tokens, run.output_tokens, run.prompts_per_slot, run.weights_dtype, run.kv_dtype) == (
        922,
        461,
        None,
        "fp8",
        "bf16",
    )
    assert run.metrics.given() == pytest.approx({"ttft_s": 0.0613, "tpot_s": 0.00724, "ttft_p50_s": 0.05})
    assert (run.source, run.date) == ("somebody's table, commit 1", "2026-02-01")
    assert (run.environment.framework_version, run.environment.image) == (
        "0.19.0",
        "vllm/vllm-openai:v0.19.0",
    )
    assert any("0.9 of it on average" in note for note in run.assumptions)
    assert (
        not run.overrides
        and run.decode is None
        and run.engine_release is None
        and run.length_range_ratio is None
    )
    alike = served(tmp_path, len_sampling="fixed")
    assert (alike.input_tokens, alike.output_tokens, alike.length_range_ratio) == (1024, 512, 0)


GAP = {"source": "NVIDIA AIConfigurator gap-analysis", "len_sampling": "fixed (assumed)"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"prompts_per_slot": 10, "input_tokens": 922, "length_range_ratio": None}),
        ({"len_sampling": ""}, {"prompts_per_slot": 10, "input_tokens": 922}),
        ({"source": "mine"}, {"prompts_per_slot": None, "input_tokens": 922}),
        ({"source": "mine", "len_sampling": ""}, {"prompts_per_slot": None, "input_tokens": 1024}),
        ({"source": "mine", "notes": "80 prompts; all fine"}, {"prompts_per_slot": 5}),
        ({"source": "mine", "notes": "16 prompts at once"}, {"prompts_per_slot": 1}),
        ({"len_sampling": "actual mean lengths; drawn from 1 to 2x the mean"}, {"length_range_ratio": 1}),
        ({"len_sampling": "ShareGPT, actual means"}, {"input_tokens": 1024, "p95_output_ratio": 2.5}),
        (GAP | {"framework": "trtllm"}, {"prompts_per_slot": 10, "max_requests": 15}),
        (GAP | {"framework": "sglang"}, {"prompts_per_slot": 10, "max_requests": None}),
        (GAP | {"framework": "trtllm", "source": "mine"}, {"max_requests": None, "length_range_ratio": 0}),
        ({"source": "AWS Neuron SDK tables", "len_sampling": "fixed"}, {"batching": "static"}),
        ({"gpus": "16"}, {"dp": 2}),
        ({"concurrency": 3000, "framework": "trtllm", "tp": 1, "dp_attention": 8}, {"max_requests": None}),
        ({"concurrency": 30000, "framework": "trtllm", "tp": 1, "dp_attention": 8}, {"max_requests": 16384}),
        (
            {"concurrency": 1000, "system": "a100-80gb-sxm", "source": "mine"},
            {"max_requests": 256, "token_budget": 2048},
        ),
    ],
)
def test_the_client_is_as_the_record_says(
    tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What one benchmark does is no rule for another, whose records do not say it."""
    run = served(tmp_path, **changes)
    assert {name: getattr(run, name) for name in expected} == expected


def test_a_measured_plan_was_possible() -> None:
    """Heads that do not divide were padded, which is said; what cannot be at all is not answered."""
    found = reconcile(Measurements(runs_of({"tp": 3}, {"ep": 2})))
    assert list(found.table["id"]) == ["r0"] and found.table["feasibility"][0] == "padded"
    assert any("HEADS_NOT_DIVISIBLE" in note for note in found.assumptions())
    assert found.to_dict()["reasons"] == {"the plan is not possible: EP_NOT_DIVISOR, EP_WITHOUT_EXPERTS": 1}


def test_throughput_alone_is_that_of_a_full_batch(tmp_path: Path) -> None:
    """All prompts are handed over at once: their number is the concurrency; the engine limits the batch."""
    offline = {"ttft_ms": "", "tpot_ms": "", "median_ttft_ms": "", "out_tok_s_gpu": "900", "source": "mine"}
    run = served(tmp_path, **offline, framework="trtllm", concurrency=30000, len_sampling="fixed")
    assert (run.prompts_per_slot, run.max_requests, run.concurrency) == (0, 2048, 30000)
    assert run.metrics.given() == {"output_tokens_per_s_per_accelerator": 900}
    found = reconcile(Measurements((run,)))
    assert found.metrics().keys() == {"throughput"} and found.table["throughput_predicted"].gt(0).all()


def test_accelerators_that_are_no_multiple_of_the_plan_are_refused(tmp_path: Path) -> None:
    found = table(tmp_path, [SERVING, SERVING | {"row_id": "s2", "gpus": "12"}])
    assert "gpus is 12, which is no multiple of the 8 ranks" in found.rejected[0].reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spec_decode": "eagle3"}, "spec_decode is eagle3"),
        ({"model": "nobody/knows-7b"}, "unknown model"),
        ({"system": "quantum"}, "unknown accelerator"),
        ({"precision": "int3"}, "precision is 'int3'"),
        ({"concurrency": ""}, "field concurrency is empty"),
        ({"ttft_ms": "", "tpot_ms": "", "median_ttft_ms": ""}, "at least one of"),
        ({"row_id": "s1"}, "the id s1 is given twice"),
    ],
)
def test_a_broken_row_is_set_aside_with_its_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    """A table with a row that is none of ours is read all the same."""
    found = table(tmp_path, [SERVING, SERVING | {"row_id": "s2"} | changes])
    assert [run.id for run in found.runs] == ["s1"]
    assert [broken.id for broken in found.rejected] == ["s1" if "row_id" in changes else "s2"]
    assert reason in found.rejected[0].reason


R1 = {
    "model": "deepseek-ai/DeepSeek-R1-0528",
    "system": "b200_sxm",
    "precision": "fp8",
    "moe_precision": "fp8_block",
    "source": "somebody",
}
ASIDE = {"mode": "disagg", "gpus": "", "framework": "dynamo-trt"}


@pytest.mark.parametrize(
    ("changes", "plan"),
    [
        ({"tp": 8}, (8, 1, 1, 1)),
        ({"tp": 8, "ep": 8}, (8, 1, 8, 1)),
        ({"tp": 8, "ep": 0}, (8, 1, 1, 1)),
        ({"tp": 4, "pp": 2}, (4, 2, 1, 1)),
        ({"tp": 8, "ep": 8, "dp_attention": "true"}, (1, 1, 8, 8)),
        ({"tp": 8, "ep": 1, "dp_attention": "true"}, (1, 1, 1, 8)),
        ({"tp": 8, "ep": 8, "dp_attention": "8.0"}, (1, 1, 8, 8)),
        ({"tp": 8, "ep": 1, "dp_attention": "false"}, (8, 1, 1, 1)),
        ({"tp": 1, "ep": 1, "dp_attention": "true", "gpus": 16, **ASIDE | {"gpus": "16"}}, (1, 1, 16, 16)),
        ({**ASIDE, "tp": 12}, (1, 1, 8, 8)),
        ({**ASIDE, "tp": 20}, (1, 1, 16, 16)),
        ({**ASIDE, "tp": 8, "ep": 8}, (8, 1, 8, 1)),
    ],
)
def test_a_plan_is_what_a_table_says_of_a_worker(
    tmp_path: Path, changes: dict[str, Any], plan: tuple[int, ...]
) -> None:
    """TP, PP, EP and attention-DP.

    In a sum of widths the decode worker is the largest power of two, its experts over all ranks.
    """
    run = served(tmp_path, **R1 | changes)
    assert (run.tp, run.pp, run.ep, run.attention_dp) == plan
    if "mode" in changes:
        assert run.decode is not None and run.scenario().disaggregated
        assert (run.decode.tp, run.decode.pp, run.decode.ep, run.decode.attention_dp) == plan
        assert run.framework == "trtllm"


def test_a_worker_that_is_not_stated_is_not_guessed(tmp_path: Path) -> None:
    """DeepSeek-R1 does not fit on one accelerator."""
    found = table(tmp_path, [SERVING, SERVING | R1 | ASIDE | {"row_id": "s2", "tp": 1}])
    assert "the worker of a disaggregated run is not stated" in found.rejected[0].reason


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"precision": "bf16"}, {"weights_dtype": "bf16"}),
        ({"precision": "fp8"}, {"weights_dtype": "fp8"}),
        ({"precision": "fp8", "model": "deepseek-ai/DeepSeek-R1-0528"}, {"weights_dtype": "fp8-block"}),
        ({"precision": "fp4"}, {"weights_dtype": "nvfp4", "attention_dtype": None}),
        (
            {"precision": "fp4", "model": "nvidia/DeepSeek-R1-0528-FP4"},
            {"weights_dtype": "nvfp4", "attention_dtype": "bf16"},
        ),
        (
            {"precision": "fp4", "model": "deepseek-r1", "system": "mi355x"},
            {"weights_dtype": "mxfp4", "attention_dtype": "bf16"},
        ),
        ({"precision": "fp4", "model": "openai/gpt-oss-120b"}, {"weights_dtype": None}),
        ({"precision": "mxfp4", "model": "openai/gpt-oss-120b"}, {"weights_dtype": None}),
        ({"precision": "fp8", "model": "openai/gpt-oss-20b"}, {"weights_dtype": None}),
        ({"precision": "fp8", "model": "mixtral-8x7b", "framework": "trtllm"}, {"weights_dtype": "fp8"}),
        ({"precision": "int8"}, {"weights_dtype": "int8"}),
        ({"precision": "W8A8"}, {"weights_dtype": "int8"}),
        ({"precision": "w4a16"}, {"weights_dtype": "int4"}),
        ({"precision": "AWQ"}, {"weights_dtype": "int4", "head_dtype": None}),
        ({"precision": "gptq int4"}, {"weights_dtype": "int4"}),
        ({"precision": "int4_awq"}, {"weights_dtype": "int4"}),
        ({"precision": "fp8 block"}, {"weights_dtype": "fp8-block"}),
        ({"precision": "nvfp4 (modelopt)"}, {"weights_dtype": "nvfp4"}),
        ({"precision": "bitsandbytes nf4"}, {"weights_dtype": "nf4"}),
        ({"precision": "Q4_K_M"}, {"weights_dtype": "q4_k_m", "head_dtype": "q6_k"}),
        ({"model": "meta-llama/Llama-4-Scout-17B-16E-Instruct"}, {"model": "llama-4-scout"}),
        ({"model": "mistralai/Mixtral-8x7B-Instruct-v0.1"}, {"model": "mixtral-8x7b"}),
        ({"model": "zai-org/GLM-4.7"}, {"model": "glm-4.6"}),
        ({"kv_dtype": "fp8_likely"}, {"kv_dtype": "fp8"}),
        ({"kv_dtype": ""}, {"kv_dtype": "bf16"}),
        ({"system": "gb200"}, {"accelerator": "gb200-nvl72"}),
        ({"system": "mi300x"}, {"accelerator": "mi300x"}),
        ({"system": "NVIDIA A100 80GB"}, {"accelerator": "a100-80gb-sxm"}),
    ],
)
def test_words_for_formats_and_machines(
    tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What fp8 and fp4 mean depends on the model and the maker.

    A checkpoint that is published so is left as it is.
    """
    run = served(tmp_path, **{"source": "somebody"} | changes)
    assert {name: getattr(run, name) for name in expected} == expected


def test_engines_of_their_time(tmp_path: Path) -> None:
    """Of models with experts: before December 2025 early releases, since May 2026 current ones.

    Those between them are neither; so are those without a date.
    """
    gpt = {"model": "openai/gpt-oss-120b", "precision": "fp4"}
    assert served(tmp_path, **gpt, measured_on="2025-11-30").engine_release == "before 2025-12"
    assert served(tmp_path, **gpt, measured_on="2025-12-01").engine_release == "2025-12 to 2026-04"
    assert served(tmp_path, **gpt, measured_on="2026-04-30").engine_release == "2025-12 to 2026-04"
    assert served(tmp_path, **gpt, measured_on="2026-05-01").engine_release is None
    assert served(tmp_path, **gpt, measured_on="").engine_release == "2025-12 to 2026-04"
    assert served(tmp_path, measured_on="2025-11-30").engine_release is None


# --- how servers were started -------------------------------------------------------------------------------


def test_recipes_are_found_by_what_was_run(tmp_path: Path) -> None:
    """Flags of the benchmark's scripts, in runs of the benchmark only, and what they stand for is said."""
    sglang = R1 | {"framework": "sglang", "tp": 8, "source": SERVING["source"], "measured_on": "2026-01-20"}
    slow, fast = served(tmp_path, **sglang), served(tmp_path, **sglang, concurrency=4)
    assert (slow.receive_interval, fast.receive_interval, slow.token_budget, slow.kv_dtype) == (
        30,
        10,
        32_768,
        "fp8",
    )
    assert "flags of the server as in the benchmark's public scripts" in slow.assumptions
    assert not any(note.startswith("KV cache") for note in slow.assumptions)
    assert served(tmp_path, **sglang | {"tp": 4}).token_budget == 8192
    amd = served(tmp_path, **sglang | {"system": "mi300x"})
    assert (amd.receive_interval, amd.kv_dtype, amd.token_budget) == (1, "bf16", 196_608)
    elsewhere = served(tmp_path, **sglang | {"source": "somebody", "source_ref": "else"})
    assert elsewhere.receive_interval is elsewhere.token_budget is None
    llama = {"framework": "trtllm", "tp": 4, "osl": 1024}
    assert [served(tmp_path, **llama | more).batch_wait_steps for more in ({}, {"osl": 512}, {"tp": 8})] == [
        20,
        None,
        None,
    ]
    prompt = R1 | {"framework": "trtllm", "tp": 8, "source": SERVING["source"], "concurrency": 100}
    assert served(tmp_path, **prompt).token_budget == 1216  # 100 + 1024 + 64 = 1188, in steps of 64
    attention = served(tmp_path, **prompt, ep=8, dp_attention="true")
    assert (attention.attention_dp, attention.receive_interval) == (8, 60)


@pytest.mark.parametrize(
    ("day", "warm"), [("2026-01-26", False), ("2026-01-27", True), ("2026-08-01", True), ("", False)]
)
def test_a_harness_that_warms_up_pays_no_cold_start(tmp_path: Path, day: str, warm: bool) -> None:
    """Since a date; by an override that a report shows with its reason."""
    run = served(tmp_path, measured_on=day)
    assert [(item.id, item.value) for item in run.overrides] == (
        [("efficiency.cold_start", 0)] if warm else []
    )


def test_experts_were_over_all_ranks_whatever_the_table_says(tmp_path: Path) -> None:
    """MiniMax-M2.5: the script has no option for attention-DP and turns expert parallel on."""
    minimax = {"model": "MiniMaxAI/MiniMax-M2.5", "precision": "fp8", "tp": 4, "ep": 1}
    run = served(tmp_path, **minimax, dp_attention="4.0")
    assert (run.tp, run.ep, run.attention_dp, run.kv_dtype) == (4, 4, 1, "bf16")
    assert any("experts over all ranks" in note for note in run.assumptions)
    plain = served(tmp_path, **minimax)
    assert (plain.tp, plain.ep, plain.attention_dp) == (4, 4, 1)
    blackwell = {"system": "b200_sxm", "measured_on": "2026-04-10"}
    late = served(tmp_path, **minimax | blackwell)
    assert (late.tp, late.ep, late.attention_dp, late.kv_dtype) == (4, 1, 1, "fp8")
    again = served(tmp_path, **minimax | blackwell, dp_attention="true")
    assert (again.tp, again.ep, again.attention_dp) == (4, 4, 1)
    fp4 = served(tmp_path, **minimax | {"precision": "fp4", "system": "b200_sxm"})
    assert (fp4.tp, fp4.ep) == (4, 1)


@pytest.mark.parametrize(
    ("match", "holds"),
    [
        ({}, True),
        ({"model": ["deepseek-r1"]}, True),
        ({"model": ["glm-5"]}, False),
        ({"accelerator": ["b200-sxm", "h200-sxm"]}, True),
        ({"accelerator": ["h100-sxm"]}, False),
        ({"framework": "sglang"}, True),
        ({"framework": "vllm"}, False),
        ({"precision": "fp8"}, True),
        ({"precision": "fp4"}, False),
        ({"lengths": [1024, 1024]}, True),
        ({"lengths": [1024, 8192]}, False),
        ({"concurrency": [16, 16]}, True),
        ({"concurrency": [17, 99]}, False),
        ({"concurrency": [1, 15]}, False),
        ({"tp": [8, 8]}, True),
        ({"tp": [1, 7]}, False),
        ({"attention_dp": False}, True),
        ({"attention_dp": True}, False),
        ({"dates": ["2026-01-01", "2026-01-31"]}, True),
        ({"dates": ["2026-01-16", "2026-01-31"]}, False),
        ({"dates": ["2025-01-01", "2026-01-14"]}, False),
        ({"framework": "sglang", "tp": [1, 4]}, False),
    ],
)
def test_a_recipe_holds_where_all_it_states_does(match: dict[str, Any], holds: bool) -> None:
    """What is not stated holds for all; spans include their ends."""
    fields = {
        "model": "deepseek-r1",
        "accelerator": "b200-sxm",
        "framework": "sglang",
        "concurrency": 16,
        "tp": 8,
        "attention_dp": 1,
    }
    assert (
        Match.model_validate(match).holds(
            fields, {"precision": "fp8", "isl": 1024, "osl": 1024, "measured_on": "2026-01-15T08:00"}
        )
        is holds
    )


def test_every_recipe_says_where_it_was_read() -> None:
    """And sets something."""
    recipes = load(Recipes, data_folder("profiles") / "recipes.yaml").recipes
    assert len(recipes) > 20
    assert all(recipe.source and recipe.set.model_dump(exclude_none=True) for recipe in recipes)


# --- InferenceMAX -------------------------------------------------------------------------------------------


def test_records_of_inferencemax(tmp_path: Path) -> None:
    """Seconds stay seconds, hw loses its framework.

    Plan, formats and flags as in tables of the same benchmark.
    """
    groups = AGG | {"dp_attention": "true", "tp": 8, "ep": 8, "conc": 512, "mean_ttft": 2.5}
    found = document(
        tmp_path, [AGG, groups, AGG | {"spec_decoding": "mtp"}, AGG | {"hw": "b999-trt"}], "agg_bmk.json"
    )
    first, second, drafted = found.runs
    assert (drafted.speculation, drafted.draft_tokens, drafted.acceptance_rate) == ("mtp", 3, 0.7)
    assert first.speculation is None
    assert (first.model, first.accelerator, first.framework, first.concurrency) == (
        "deepseek-r1",
        "b200-sxm",
        "trtllm",
        64,
    )
    assert (first.tp, first.ep, first.attention_dp, first.decode) == (4, 4, 1, None)
    assert (first.weights_dtype, first.attention_dtype, first.kv_dtype) == ("nvfp4", "bf16", "fp8")
    assert (first.input_tokens, first.output_tokens, first.prompts_per_slot) == (922, 922, 10)
    assert first.metrics.given() == pytest.approx(
        {"ttft_s": 0.95, "tpot_s": 0.0131, "ttft_p50_s": 0.4, "output_tokens_per_s_per_accelerator": 1100.5}
    )
    assert first.token_budget == 1152  # 64 + 1024 + 64
    assert [item.id for item in first.overrides] == ["efficiency.cold_start"]
    assert (first.date, first.environment.image) == ("2026-02-03", "nvcr.io/tensorrt-llm:1.2")
    assert (second.tp, second.ep, second.attention_dp, second.receive_interval) == (1, 8, 8, 60)
    assert second.metrics.ttft_s == 2.5
    (other,) = found.rejected
    assert "b999" in other.reason
    assert len({run.id for run in found.runs}) == 3


APART = AGG | {
    "hw": "gb200",
    "framework": "dynamo-trt",
    "disagg": True,
    "is_multinode": True,
    **{"num_prefill_gpu": 12, "prefill_num_workers": 3, "prefill_tp": 4, "prefill_ep": 1},
    **{"num_decode_gpu": 16, "decode_num_workers": 2, "decode_tp": 1, "decode_ep": 8},
    **{"prefill_dp_attention": "false", "decode_dp_attention": "true"},
    "tput_per_gpu": 900,
}


def test_workers_of_inferencex_are_read_on_both_sides(tmp_path: Path) -> None:
    """Worker counts, widths and attention-DP of each side; throughput is that of a GPU that decodes. On the
    site figures stand under metrics, and those of one node count its GPUs twice."""
    unstated = APART | {"prefill_num_workers": 0, "decode_num_workers": 0}
    found = document(tmp_path, [APART, unstated], "agg_bmk.json")
    (run,) = found.runs
    assert (run.tp, run.ep, run.attention_dp, run.dp) == (4, 1, 1, 3)
    assert run.decode is not None and run.scenario().disaggregated and not run.overrides
    assert (run.decode.tp, run.decode.ep, run.decode.attention_dp, run.decode.dp) == (1, 8, 8, 2)
    assert run.metrics.output_tokens_per_s == pytest.approx(1100.5 * 16)
    assert run.metrics.output_tokens_per_s_per_accelerator is None
    assert "expected how many prefill workers there are" in found.rejected[0].reason
    assert list(found.unused) == ["is_multinode", "tput_per_gpu"]
    times = ("mean_ttft", "mean_tpot", "median_ttft", "output_tput_per_gpu")
    moved = {key: APART[key] for key in APART if key not in (*times, "hw", "tp", "ep", "spec_decoding")}
    moved |= {"model": "dsr1", "dp_attention": "", "hardware": "gb200", "spec_method": "none"}
    moved["metrics"] = {key: APART[key] for key in times} | {"mean_itl": 1.9}
    site = document(tmp_path, [moved, moved | {"disagg": False, "id": "b"}], "benchmarks.json")
    assert site.runs[0].metrics == run.metrics and site.runs[0].decode == run.decode
    together = site.runs[1]
    assert (together.tp, together.attention_dp, together.dp, together.decode) == (1, 8, None, None)
    assert together.metrics.output_tokens_per_s_per_accelerator == 1100.5
    assert "TPOT" in site.unused["metrics.mean_itl"] and "spec_method" not in site.unused


# --- llama-bench --------------------------------------------------------------------------------------------


def test_rows_of_llama_bench(tmp_path: Path) -> None:
    """Generation and the prompt are runs of their own; one after the other on several cards."""
    two = BENCH | {
        "row_id": "c2",
        "gpus": "2",
        "depth": "4096",
        "quant": "F16",
        "system": "Apple M2 Ultra 76-Core GPU 192GB",
    }
    none = BENCH | {"row_id": "c3", "tg_tok_s": "", "pp_tok_s": ""}
    found = table(tmp_path, [BENCH, two, none])
    generated, prompt, deep = found.runs
    assert (generated.id, prompt.id, deep.id) == ("c1-tg", "c1-pp", "c2-tg")
    assert (generated.model, generated.accelerator, generated.framework) == (
        "llama-3.1-8b",
        "rtx-4090",
        "llama.cpp",
    )
    assert any("has the shapes of llama-3.1-8b" in note for note in generated.assumptions)
    assert (generated.weights_dtype, generated.head_dtype, generated.concurrency) == ("q4_k_m", "q6_k", 1)
    assert (generated.input_tokens, generated.output_tokens) == (1, 1024)
    assert generated.metrics.given() == {"tpot_s": pytest.approx(1 / 127.7)}
    assert (prompt.input_tokens, prompt.output_tokens) == (512, 1)
    assert prompt.metrics.given() == {"prefill_s": pytest.approx(512 / 6000)}
    assert (deep.accelerator, deep.pp, deep.input_tokens, deep.weights_dtype) == ("m2-ultra", 2, 4096, "fp16")
    assert not generated.prompts_per_slot and [broken.id for broken in found.rejected] == ["c3"]
    behind = table(tmp_path, [BENCH, BENCH | {"row_id": "c4", "depth": "4096", "tg_tok_s": ""}])
    assert "behind tokens in the KV cache" in behind.rejected[0].reason
    awq = table(tmp_path, [BENCH | {"framework": "vLLM 0.15", "quant": "AWQ"}]).runs[0]
    assert (awq.weights_dtype, awq.head_dtype) == ("int4", None)


def test_prefill_is_read_and_shown_as_tokens_per_second() -> None:
    """Of our own form as well; the table has both."""
    (run,) = runs_of({"metrics": {"prefill_tokens_per_s": 9220}})
    row = reconcile(Measurements((run,))).table.iloc[0]
    assert row["prefill_measured"] == pytest.approx(0.1)
    assert row["prefill_tokens_per_s_measured"] == pytest.approx(9220)
    assert row["prefill_tokens_per_s_predicted"] * row["prefill_predicted"] == pytest.approx(922)


def test_errors_are_given_by_source() -> None:
    """The name of a table or benchmark, before the place in it."""
    found = reconcile(Measurements(runs_of({"source": "A, row 1"}, {"source": "A, row 2"}, {"source": "B"})))
    groups = found.groups()["source"]
    assert {name: metrics["tpot"]["n"] for name, metrics in groups.items()} == {"A": 2, "B": 1}
    assert list(found.table["reference"]) == ["row 1", "row 2", ""]


# --- errors and parts ---------------------------------------------------------------------------------------


def test_errors_are_what_hands_work_out() -> None:
    """Of ratios predicted over measured; what is not measured does not count."""
    found = errors(np.array([0.5, 1.0, 1.1, 2.0, np.nan, np.inf, 0.0]))
    assert found["n"] == 4
    assert found["mape"] == pytest.approx((0.5 + 0 + 0.1 + 1) / 4)
    assert found["median"] == pytest.approx(0.3)
    assert found["p90"] == pytest.approx(0.5 + 0.7 * 0.5)
    assert found["bias"] == pytest.approx((-0.5 + 0 + 0.1 + 1) / 4)
    assert found["symmetric"] == pytest.approx(math.exp((2 * math.log(2) + math.log(1.1)) / 4) - 1)
    assert found["rmse"] == pytest.approx(math.sqrt((0.25 + 0.01 + 1) / 4))
    none = errors(np.array([np.nan]))
    assert none["n"] == 0 and math.isnan(none["mape"])


def runs_of(*changes: dict[str, Any]) -> tuple[Run, ...]:
    """Our record with changes, each with an id of its own."""
    return tuple(
        Run.model_validate(OWN | {"id": f"r{number}"} | change) for number, change in enumerate(changes)
    )


def test_predictions_stand_beside_what_was_measured() -> None:
    """Ratios, and throughput that mean TTFT and TPOT come to.

    Also runs that cannot be answered, and those a condition leaves out.
    """
    runs = runs_of(
        {},
        {"tp": 2, "metrics": {"tpot_s": 0.01}},
        {"ep": 2},
        {"model": "nobody-7b"},
        {"framework": "sglang", "metrics": {"ttft_p50_s": 0.1}},
    )
    found = reconcile(Measurements(runs))
    assert (found.rows, list(found.table["id"])) == (5, ["r0", "r1", "r4"])
    reasons = {broken.id: broken.reason for broken in found.rejected}
    assert "unknown model" in reasons["r3"] and "the plan is not possible" in reasons["r2"]
    first = found.table.iloc[0]
    assert first["tpot_ratio"] == pytest.approx(first["tpot_predicted"] / 0.0147)
    (batch,) = match_runs(runs[:1]).batches
    ramp = batch.equations.figures["serving.ramp"]
    loaded = float(np.max(Program([ramp]).sweep(batch.inputs)[ramp]))
    assert 0.9 < loaded < 1  # 10 prompts a slot
    in_flight = loaded * 16  # of the run's own times, which are near those predicted
    assert first["throughput_derived"] == pytest.approx(in_flight * 461 / (0.21 + 460 * 0.0147), rel=2e-3)
    predicted = batch.predict()
    assert first["tpot_predicted"] == pytest.approx(float(predicted[batch.outputs()["tpot_s"]][0]), rel=1e-12)
    assert math.isnan(found.table.iloc[1]["ttft_ratio"]) and math.isnan(found.table.iloc[2]["tpot_ratio"])
    metrics = found.metrics()
    assert (metrics["tpot"]["n"], metrics["ttft"]["n"], metrics["ttft_p50"]["n"]) == (2, 1, 1)
    assert set(found.groups()["framework"]) == {"vllm", "sglang"} and set(found.groups()["parallelism"]) == {
        "TP1",
        "TP2",
    }
    only = reconcile(Measurements(runs), ["tp=2"])
    assert list(only.table["id"]) == ["r1"] and only.rows == 1
    assert list(
        reconcile(Measurements(runs), ["model!=nobody-7b", "framework=sglang,trtllm"]).table["id"]
    ) == ["r4"]
    with pytest.raises(InputError, match="no run with tp=77"):
        reconcile(Measurements(runs), ["tp=77"])
    with pytest.raises(InputError, match="unknown field 'colour'"):
        reconcile(Measurements(runs), ["colour=red"])
    with pytest.raises(InputError, match="expected field=value"):
        reconcile(Measurements(runs), ["tp"])


def test_throughput_of_a_deployment_is_shared_by_all_its_accelerators() -> None:
    """Those of decode workers too.

    And what no run reports follows from TTFT and TPOT of aggregated runs only.
    """
    total = {"metrics": {"output_tokens_per_s": 900.0}}
    apart = {"tp": 2, "decode": {"tp": 4}}
    table = reconcile(
        Measurements(
            runs_of(total | {"tp": 2}, total | apart, apart | {"metrics": {"ttft_s": 1, "tpot_s": 0.01}})
        )
    ).table.set_index("id")
    accelerators = estimate(parse_scenario(ASKED | apart, "apart")).results()["accelerators"]
    assert accelerators >= 6
    assert table["throughput_measured"]["r0"] == pytest.approx(900 / 2)
    assert table["throughput_measured"]["r1"] == pytest.approx(900 / accelerators)
    assert math.isnan(table["throughput_derived"]["r2"])


def test_folds_keep_what_belongs_together() -> None:
    """Every run once.

    Concurrencies of a configuration, runs of a model, runs of a system never on both sides.
    """
    changes = [
        {
            "model": model,
            "accelerator": chip,
            "framework": framework,
            "tp": tp,
            "concurrency": load,
            "metrics": {"tpot_s": 0.01 * load},
        }
        for model in ("llama-3.1-8b", "qwen3-32b", "gpt-oss-120b")
        for chip in ("h100-sxm", "b200-sxm")
        for framework in ("vllm", "sglang")
        for tp in (1, 2)
        for load in (1, 8, 64)
    ]
    runs = runs_of(*changes)
    keys = {
        "config": lambda run: (run.model, run.accelerator, run.framework, run.tp),
        "model": lambda run: run.model,
        "system": lambda run: run.accelerator,
    }
    for by, key in keys.items():
        parts = folds(runs, by)  # type: ignore[arg-type]
        assert len(parts) == {"config": 5, "model": 3, "system": 2}[by]
        assert (np.sum(parts, axis=0) == 1).all()
        assert all(part.any() and not part.all() for part in parts)
        for part in parts:
            kept, others = (
                {key(run) for run, aside in zip(runs, part, strict=True) if aside is wanted}
                for wanted in (np.True_, np.False_)
            )
            assert not kept & others, by
    sizes = [part.sum() for part in folds(runs, "config")]
    assert max(sizes) - min(sizes) <= 3
    assert [list(part) for part in folds(runs, "config")] == [list(part) for part in folds(runs, "config")]
