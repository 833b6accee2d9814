"""Launch lines of engines as scenarios, and back: lines of the engines' own documents mean what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import test_cli

import mantile as mt
from mantile.library.documents import parse_yaml
from mantile.library.launch import MEMORY
from mantile.library.launch_line import ENGINE_FIELDS
from mantile.library.launch_table import LaunchFlag, LaunchTable, launch_tables
from mantile.library.scenario_fields import SCENARIO_FIELDS

LOAD: dict[str, Any] = {
    "accelerator": "h200-sxm",
    "input_tokens": 300,
    "output_tokens": 100,
    "concurrency": 8,
}


def memory(share: float) -> dict[str, float]:
    """Overrides that a share of memory stands for."""
    return {MEMORY: share}


# From documents of the engines, of publishers of models and of makers of chips: line, fields, overrides.
LINES: dict[str, tuple[str, dict[str, Any], dict[str, float]]] = {
    "experts over 8 ranks": (
        "VLLM_ALL2ALL_BACKEND=pplx VLLM_USE_DEEP_GEMM=1 \\\n  vllm serve deepseek-ai/DeepSeek-V3-0324 \\\n"
        "  --tensor-parallel-size 1 \\   # one rank\n  --data-parallel-size 8 \\  # eight groups\n"
        "  --enable-expert-parallel   \n",
        {"model": "deepseek-ai/DeepSeek-V3-0324", "attention_dp": 8, "ep": 8},
        {},
    ),
    "the first of two nodes": (
        "VLLM_ALL2ALL_BACKEND=deepep_low_latency vllm serve deepseek-ai/DeepSeek-V3-0324 "
        "--tensor-parallel-size 1 --enable-expert-parallel --data-parallel-size 16 "
        "--data-parallel-size-local 8 --data-parallel-address 192.168.1.100 "
        "--data-parallel-rpc-port 13345 --api-server-count=8",
        {"model": "deepseek-ai/DeepSeek-V3-0324", "attention_dp": 16, "ep": 16},
        {},
    ),
    "tensor and expert parallel": (
        "vllm serve deepseek-ai/DeepSeek-R1-0528 --trust-remote-code --tensor-parallel-size 8 "
        "--enable-expert-parallel",
        {"model": "deepseek-r1", "tp": 8, "ep": 8},
        {},
    ),
    "a longest context": (
        "vllm serve Qwen/Qwen3-Coder-480B-A35B-Instruct --max-model-len 32000 --enable-expert-parallel "
        "--tensor-parallel-size 8 --enable-auto-tool-choice --tool-call-parser qwen3_coder",
        {"model": "qwen3-coder-480b-a35b", "tp": 8, "ep": 8, "max_model_len": 32000},
        {},
    ),
    "a container": (
        "docker run --runtime nvidia --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface "
        '--env "HUGGING_FACE_HUB_TOKEN=<secret>" -p 8000:8000 --ipc=host vllm/vllm-openai:latest '
        "--model mistralai/Mistral-7B-v0.1",
        {"model": "mistral-7b"},
        {},
    ),
    "a container with the model alone": (
        "docker run --rm --gpus all --user 2000:0 -p 8000:8000 vllm/vllm-openai:latest "
        "meta-llama/Llama-3.1-8B-Instruct",
        {"model": "llama-3.1-8b"},
        {},
    ),
    "two stages": (
        "vllm serve gpt2 --tensor-parallel-size 4 --pipeline-parallel-size 2",
        {"model": "gpt2", "tp": 4, "pp": 2},
        {},
    ),
    "the module, with a checkpoint of a maker": (
        "python3 -m vllm.entrypoints.openai.api_server --model nvidia/Llama-3.1-8B-Instruct-FP8 "
        "--trust-remote-code",
        {"model": "llama-3.1-8b", "weights_dtype": "fp8"},
        {},
    ),
    "SGLang on two ranks": (
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --tp 2",
        {"model": "llama-3-8b", "tp": 2},
        {},
    ),
    "replicas behind a router": (
        "python -m sglang_router.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct "
        "--dp 2 --tp 2",
        {"model": "llama-3-8b", "tp": 2, "dp": 2},
        {},
    ),
    "less memory": (
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct "
        "--mem-fraction-static 0.7",
        {"model": "llama-3-8b"},
        memory(0.7),
    ),
    "prediction layers": (
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3-0324 "
        "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 2 --tp 8",
        {"model": "deepseek-ai/DeepSeek-V3-0324", "tp": 8, "speculation": "eagle", "draft_tokens": 1},
        {},
    ),
    "smaller chunks": (
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct "
        "--chunked-prefill-size 4096",
        {"model": "llama-3-8b", "token_budget": 4096},
        {},
    ),
    "ranks on two nodes": (
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --tp 4 "
        "--dist-init-addr sgl-dev-0:50000 --nnodes 2 --node-rank 0",
        {"model": "llama-3-8b", "tp": 4},
        {},
    ),
    "all-to-all": (
        "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --moe-a2a-backend deepep "
        "--moe-runner-backend deep_gemm --tp 8 --ep 8",
        {"model": "deepseek-v3", "tp": 8, "ep": 8, "moe_backend": "deep_gemm"},
        {},
    ),
    "a container of SGLang": (
        "docker run --gpus all --shm-size 32g -p 30000:30000 -v ~/.cache/huggingface:/root/.cache/hf "
        '--env "HF_TOKEN=<secret>" --ipc=host lmsysorg/sglang:latest python3 -m sglang.launch_server '
        "--model-path meta-llama/Llama-3.1-8B-Instruct --host 0.0.0.0 --port 30000",
        {"model": "llama-3.1-8b"},
        {},
    ),
    "attention-DP": (
        "python -m sglang.launch_server --model deepseek-ai/DeepSeek-V3.2-Exp --tp 8 --dp 8 "
        "--enable-dp-attention",
        {"model": "deepseek-ai/DeepSeek-V3.2-Exp", "attention_dp": 8},
        {},
    ),
    "groups of several ranks": (
        "python -m sglang.launch_server --model deepseek-ai/DeepSeek-V3 --enable-dp-attention --tp 16 --dp 2",
        {"model": "deepseek-v3", "tp": 8, "attention_dp": 2},
        {},
    ),
    "TensorRT-LLM": (
        'trtllm-serve "TinyLlama/TinyLlama-1.1B-Chat-v1.0"',
        {"model": "tinyllama-1.1b"},
        {},
    ),
    "within a job": (
        "srun -N 2 -w [NODES] --output=benchmark_2node.log --ntasks 16 --ntasks-per-node=8 --mpi=pmix "
        '--container-image=<CONTAINER_IMG> bash -c "trtllm-llmapi-launch trtllm-serve '
        "deepseek-ai/DeepSeek-V3 --max_batch_size 161 --max_num_tokens 1160 --tp_size 16 --ep_size 4 "
        '--kv_cache_free_gpu_memory_fraction 0.95 --config ./config.yml"',
        {"model": "deepseek-v3", "tp": 16, "ep": 4, "max_requests": 161, "token_budget": 1160},
        memory(0.95),
    ),
    "a checkpoint in FP8": (
        "trtllm-serve nvidia/Llama-3.3-70B-Instruct-FP8 --host 0.0.0.0 --port 8000 "
        "--extra_llm_api_options ${EXTRA_LLM_API_FILE}",
        {"model": "llama-3.3-70b", "weights_dtype": "fp8"},
        {},
    ),
    "a file that is not here": (
        "./llama-server -m models/7B/ggml-model.gguf -c 2048",
        {"model": "models/7B/ggml-model.gguf"},
        {},
    ),
    "a container of llama.cpp": (
        "docker run -p 8080:8080 -v /path/to/models:/models ghcr.io/ggml-org/llama.cpp:server "
        "-m /models/7B/ggml-model-q4_0.gguf --port 8080 --host 0.0.0.0 -n 512",
        {"model": "/models/7B/ggml-model-q4_0.gguf"},
        {},
    ),
    "a repository of files": (
        "llama-server -hf ggml-org/gpt-oss-20b-GGUF --ctx-size 0 --jinja -ub 2048 -b 2048",
        {"model": "gpt-oss-20b"},
        {},
    ),
    "a kind of file": (
        "llama-server -hf ggml-org/GLM-4.7-Flash-GGUF:Q4_K_M",
        {"model": "glm-4.7-flash", "weights_dtype": "q4_k_m"},
        {},
    ),
}
# Not of a document: what those leave out.
OWN: dict[str, tuple[str, dict[str, Any], dict[str, float]]] = {
    "vLLM, all it can be told": (
        "numactl -N 0 vllm serve Qwen/Qwen3-30B-A3B -tp=2 -dp 2 --max_num_seqs 64 "
        "--max-num-batched-tokens 16K --kv-cache-dtype fp8_e5m2 "
        "--gpu-memory-utilization 0.90 -q fp8 --cpu-offload-gb 10 --no-enable-chunked-prefill > log 2>&1 &",
        {
            "model": "qwen3-30b-a3b",
            "tp": 2,
            "attention_dp": 2,
            "max_requests": 128,
            "token_budget": 16384,
            "kv_dtype": "fp8",
            "weights_dtype": "fp8",
            "offload_weights": 10.737418,
            "scheduler": "whole-prompts",
        },
        memory(0.9),
    ),
    "SGLang, weights on the host in GiB of each rank": (
        "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 --cpu-offload-gb 4",
        {"model": "qwen3-8b", "tp": 2, "offload_weights": 4.294967},
        {},
    ),
    "drafts in JSON": (
        "vllm serve deepseek-ai/DeepSeek-R1 -tp 8 "
        '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\'',
        {"model": "deepseek-r1", "tp": 8, "speculation": "mtp", "draft_tokens": 2},
        {},
    ),
    "drafts by keys": (
        "vllm serve Qwen/Qwen3-8B --speculative-config.method eagle3 --speculative-config.model x/y "
        "--speculative-config.num_speculative_tokens 5",
        {"model": "qwen3-8b", "speculation": "eagle", "draft_tokens": 5},
        {},
    ),
    "replicas of a dense model": (
        "vllm serve Qwen/Qwen3-8B -dp 2 --dtype half",
        {"model": "qwen3-8b", "dp": 2, "weights_dtype": "fp16"},
        {},
    ),
    "settings of TensorRT-LLM": (
        "trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size 8 --ep_size 8 --max_batch_size 32 "
        "--set enable_attention_dp=true --set kv_cache_config.dtype=fp8 --enable_chunked_prefill",
        {
            "model": "deepseek-r1",
            "attention_dp": 8,
            "ep": 8,
            "max_requests": 256,
            "kv_dtype": "fp8",
            "scheduler": "mixed",
        },
        {},
    ),
    "llama.cpp on two cards": (
        "CUDA_VISIBLE_DEVICES=0,1 llama-server -hf unsloth/Qwen3-8B-GGUF:Q8_0 -ngl 99 -sm layer -ts 1,1 "
        "-np 4 -ctk q8_0 -ctv q8_0 -fa on",
        {
            "model": "qwen3-8b",
            "weights_dtype": "q8_0",
            "pp": 2,
            "microbatches": 1,
            "max_requests": 4,
            "kv_dtype": "q8_0",
        },
        {},
    ),
}


STARTS = {
    "vllm": "vllm serve ",
    "sglang": "python3 -m sglang.launch_server --model-path ",
    "trtllm": "trtllm-serve ",
    "llama.cpp": "llama-server -",
}


def figures(fields: Any) -> dict[str, float]:
    return {override["id"]: float(override["value"]) for override in fields.get("overrides", ())}


@pytest.mark.parametrize("name", [*LINES, *OWN])
def test_a_line_means_what_it_says_and_is_written_again(name: str) -> None:
    """What is read of a line is what is read of the line that is written of it."""
    line, expected, overrides = (LINES | OWN)[name]
    first = mt.read_launch(line, **LOAD)
    assert figures(first.fields) == overrides
    own = {key: first.fields[key] for key in first.fields if key not in ("framework", "overrides", *LOAD)}
    assert own == expected
    written = mt.launch_line(mt.Scenario(**first.fields))
    assert mt.read_launch(written, **LOAD).fields == first.fields
    assert written.startswith(STARTS[first.framework])
    assert not first.missing


def test_there_are_lines_of_every_engine() -> None:
    assert len(LINES) >= 20
    assert {mt.read_launch(line).framework for line, _, _ in LINES.values()} == set(launch_tables())


def test_what_no_field_stands_for_is_told() -> None:
    """Listed with its meaning, and what is secret is named without its value."""
    launch = mt.read_launch(
        "HF_TOKEN=hidden vllm serve Qwen/Qwen3-32B --enforce-eager --api-key hidden "
        "--fully-sharded-loras --enable-dbo",
        **LOAD,
    )
    assert [remark.flag for remark in launch.not_modelled] == ["--fully-sharded-loras", "--enable-dbo"]
    assert launch.fields["enforce_eager"] == "on"
    assert launch.ignored == ("HF_TOKEN", "--api-key")
    assert "hidden" not in str(launch)
    assert [remark.flag for remark in launch.defaults] == ["--gpu-memory-utilization"]
    assert not mt.read_launch("vllm serve Qwen/Qwen3-32B --gpu-memory-utilization 0.9").defaults
    assert mt.read_launch("vllm serve Qwen/Qwen3-32B").missing == (
        "accelerator",
        "input_tokens",
        "output_tokens",
        "concurrency",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ollama run llama3", "starts no engine that Mantile has a table of"),
        ("vllm serve 'Qwen/Qwen3-32B", "expected quotes in pairs"),
        ("vllm serve -tp 2", "no model"),
        ("vllm serve Qwen/Qwen3-32B --tensor-paralel-size 2", "did you mean --tensor-parallel-size"),
        (
            "vllm serve Qwen/Qwen3-32B --xyzzy",
            "--xyzzy: no flag of vLLM that Mantile knows; --ignore-unknown",
        ),
        ("vllm serve Qwen/Qwen3-32B -tp 0", "-tp 0: expected a whole number from 1 to 1,024, found 0"),
        ("vllm serve Qwen/Qwen3-32B -tp $TP", r"expected a whole number from 1 to 1,024, found \$TP"),
        ("vllm serve Qwen/Qwen3-32B -tp", "-tp: expected a value, found the end of the line"),
        (
            "vllm serve Qwen/Qwen3-32B --gpu-memory-utilization 90",
            "expected a number from 0.05 to 1, found 90",
        ),
        ("vllm serve Qwen/Qwen3-32B --kv-cache-dtype int3", "--kv-cache-dtype int3: expected one of auto"),
        ("vllm serve Qwen/Qwen3-32B extra", "extra: expected a flag of vLLM"),
        ("vllm serve Qwen/Qwen3-32B --speculative-config '{}'", "--speculative-config: what drafts tokens"),
        ("vllm serve Qwen/Qwen3-32B --max-model-len 399", "the server refuses requests of 400 tokens"),
        ("vllm serve nobody/nothing -dp 2", "groups of a model with experts share them"),
        (
            "python -m sglang.launch_server --model x/y --tp 8 --dp 3 --enable-dp-attention",
            "a divisor of the 8",
        ),
        ("python -m sglang.launch_server --model x/y --disaggregation-mode decode", "servers of their own"),
        ("llama-server -hf ggml-org/gpt-oss-20b-GGUF -ngl 10", "at least all 24 layers"),
        ("llama-server -hf ggml-org/gpt-oss-20b-GGUF -ctk q8_0", "expected -ctv q8_0 beside it"),
        ("llama-server -hf ggml-org/gpt-oss-20b-GGUF -ctk q8_0 -ctv q4_0", "the same as -ctk q8_0"),
        ("llama-server -hf ggml-org/gpt-oss-20b-GGUF --rpc a:1", "a pipeline over other machines"),
        ("llama-server -hf x/unheard-of-GGUF", "unknown model"),
        ("LLAMA_ARG_CTX_SIZE=8 llama-server -hf ggml-org/gpt-oss-20b-GGUF", "LLAMA_ARG_CTX_SIZE: a variable"),
        ("llama-server -hf ggml-org/gpt-oss-20b-GGUF -ngl ²", "-ngl ²: expected a whole number, auto or all"),
        (f"vllm serve Qwen/Qwen3-32B -tp {'9' * 5000}", "expected a whole number from 1 to 1,024"),
        (f"vllm serve {'x/' * 1000}", "expected at most 1,000 characters"),
        ("x " * 60_000, "120,000 characters; expected at most 100,000"),
        ("bash -c \"it's 'x y\"", "starts no engine"),
    ],
)
def test_what_would_be_answered_wrongly_is_refused(line: str, message: str) -> None:
    with pytest.raises(mt.InputError, match=message):
        mt.read_launch(line, **LOAD)


def test_variables_and_switches_that_are_off() -> None:
    """Variables of the engine may change anything; a switch that is off says nothing."""
    line = "VLLM_USE_DEEP_GEMM=1 OMP_NUM_THREADS=8 vllm serve Qwen/Qwen3-30B-A3B"
    launch = mt.read_launch(f"{line} --no-enforce-eager --enable-expert-parallel=False -tp 2", **LOAD)
    assert [remark.flag for remark in launch.not_modelled] == ["VLLM_USE_DEEP_GEMM"]
    assert launch.ignored == ("OMP_NUM_THREADS", "--no-enforce-eager", "--enable-expert-parallel")
    assert "ep" not in launch.fields


def test_unknown_flags_are_passed_over_if_asked_for() -> None:
    launch = mt.read_launch("vllm serve Qwen/Qwen3-32B --new-thing 7 -tp 2 --other", True, **LOAD)
    assert launch.ignored == ("--new-thing", "--other")
    assert launch.fields["tp"] == 2


def test_a_configuration_file_is_read(tmp_path: Path) -> None:
    """What the line itself says goes before it."""
    config = tmp_path / "config.yml"
    config.write_text(
        "enable_attention_dp: true\nmax_batch_size: 512\nkv_cache_config:\n  dtype: fp8\n"
        "  free_gpu_memory_fraction: 0.8\nstream_interval: 10\nmoe_config:\n  backend: DEEPGEMM\n"
    )
    line = (
        f"trtllm-serve deepseek-ai/DeepSeek-R1 --max_batch_size 64 --tp_size 8 --ep_size 8 --config {config}"
    )
    launch = mt.read_launch(line, **LOAD)
    assert launch.fields["attention_dp"] == launch.fields["ep"] == 8
    assert launch.fields["max_requests"] == 64 * 8
    assert launch.fields["kv_dtype"] == "fp8"
    assert launch.fields["moe_backend"] == "DEEPGEMM"
    assert not launch.not_modelled
    flags = tmp_path / "flags.yaml"
    flags.write_text("tensor-parallel-size: 4\nenable-expert-parallel: true\nasync-scheduling: false\n")
    fields = mt.read_launch(f"vllm serve Qwen/Qwen3-30B-A3B -tp 2 --config {flags}", **LOAD).fields
    assert (fields["tp"], fields["ep"]) == (2, 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"framework": "mlx"}, "framework mlx: no table of its flags; expected one of llama.cpp"),
        ({"sequence_parallel": "on"}, "no flag of vLLM says sequence_parallel on"),
        ({"model": "qwen3-30b-a3b", "tp": 4, "ep": 2}, "no flag of vLLM says ep 2"),
        ({"framework": "trtllm", "dp": 2}, "no flag of TensorRT-LLM says dp 2"),
        ({"decode_tp": 4}, "lines of their own"),
    ],
)
def test_no_line_says_less_than_the_scenario(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(mt.InputError, match=message):
        mt.launch_line(mt.Scenario(**({"model": "qwen3-8b"} | LOAD | fields)))


@pytest.mark.parametrize("table", launch_tables().values(), ids=lambda table: str(table.id))
def test_tables_hold_together(table: LaunchTable) -> None:
    """No name twice, sentences that end, fields that an engine is told, values that a field may have."""
    assert table.by_name
    assert table.of_fact("model")
    assert all(table.find(default.flag) for default in table.defaults)
    for flag in (flag for group in table.groups for flag in group.flags):
        assert not flag.not_modelled or flag.not_modelled.endswith("."), flag.name
        assert not flag.refused.endswith("."), flag.name
        if flag.field is None:
            continue
        assert flag.field in ENGINE_FIELDS, flag.name
        declared = SCENARIO_FIELDS[flag.field]
        for value in filter(None, (*flag.values.values(), flag.stands_for)):
            if declared.role:
                assert mt.load_library().datatype(value, declared.role).id == value, flag.name
            else:
                assert value in declared.choices, flag.name


def test_a_flag_means_one_thing() -> None:
    with pytest.raises(mt.InputError, match="--x: expected one of field, fact, ignored"):
        LaunchFlag(names=("--x",), field="tp", ignored=True)
    with pytest.raises(mt.InputError, match="--x: expected stands_for exactly where it takes no value"):
        LaunchFlag(names=("--x",), field="tp", takes="none")


run = test_cli.run


# --- the command --------------------------------------------------------------------------------------------

CASE = ("--accelerator", "h100-sxm", "--isl", "1024", "--osl", "128", "--concurrency", "2000")


def test_the_command_writes_a_scenario(run: Any, tmp_path: Path) -> None:
    """Which the other commands take; a load beyond the engine's own limits is bounded by them."""
    path = tmp_path / "chat.yaml"
    line = "vllm serve Qwen/Qwen3-32B -tp 2 --enforce-eager --fully-sharded-loras"
    ran = run("import", line, *CASE, "-o", str(path), "--set", "efficiency.gemm_compute=0.7")
    assert ran.status == 0, ran.err
    assert f"{path}: written: model qwen3-32b" in ran.out
    assert "--fully-sharded-loras: both sides" in ran.out
    scenario = mt.load_scenario(str(path))
    assert (scenario.tp, scenario.concurrency, scenario.max_requests) == (2, 2000, 1024)
    assert scenario.enforce_eager == "on"
    assert [override.id for override in scenario.overrides] == ["efficiency.gemm_compute"]
    assert path.read_text().startswith(
        "# from a launch line of vllm\n# not modelled:\n#   --fully-sharded-loras:"
    )
    assert all(len(text) <= 80 for text in path.read_text().splitlines())


def test_the_command_prints_json_and_scenarios(run: Any) -> None:
    line = "vllm serve /models/mine -tp 2 --port 80"
    data = run("import", line, "--accelerator", "h100-sxm", "--model", "qwen3-8b", "--json").data
    assert data["scenario"] == {
        "model": "qwen3-8b",
        "framework": "vllm",
        "tp": 2,
        "accelerator": "h100-sxm",
    }
    assert data["missing"] == ["input_tokens", "output_tokens", "concurrency"]
    assert data["ignored"] == ["--port"]
    assert data["not_modelled"] == []
    ran = run("import", line)
    assert parse_yaml(ran.out, "stdout") == {"model": "/models/mine", "framework": "vllm", "tp": 2}
    assert "# missing: accelerator (--accelerator), input_tokens (--input-tokens)," in ran.out


def test_the_command_refuses_what_is_wrong(run: Any, tmp_path: Path) -> None:
    """With exit status 2, and nothing is written."""
    path = tmp_path / "chat.yaml"
    ran = run("import", "vllm serve Qwen/Qwen3-32B --bogus -tp 0", "-o", str(path))
    assert ran.status == 2
    assert "--bogus: no flag of vLLM" in ran.err
    assert "-tp 0: expected a whole number" in ran.err
    assert not path.exists()
    assert run("import", "vllm serve gpt2", "-o", "chat.txt").status == 2
