"""Logs of servers that did not start: the cause that comes first, what was taken, and what helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.answers.start_log import Diagnosis
from mantile.cli.application import app
from mantile.measured.start_logs import CAUSES, log_text, read_start_log

GIB = 2.0**30
VLLM = """
(APIServer pid=1) INFO [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore pid=7) INFO [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='{model}', \
speculative_config=None, max_seq_len={length}, download_dir=None, tensor_parallel_size={tp}, \
pipeline_parallel_size=1, quantization=None, kv_cache_dtype=auto
(EngineCore pid=7) INFO [gpu_model_runner.py:2602] Starting to load model {model}...
"""
LOADED = (
    "(EngineCore pid=7) INFO [gpu_model_runner.py:2653] Model loading took {weights} GiB and 3.1 seconds\n"
)
LLAMA_8B = VLLM.format(model="meta-llama/Llama-3.1-8B-Instruct", length=131072, tp=1)

LOGS: dict[str, tuple[str, str, str, str]] = {
    "vllm length": (
        LLAMA_8B
        + LOADED.format(weights="14.99")
        + "INFO [gpu_worker.py:298] Available KV cache memory: 4.67 GiB\n"
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (4.67 GiB). Based on the "
        "available memory, the estimated maximum model length is 38256. Try increasing it\n",
        "rtx-4090",
        "length",
        "--max-model-len 38256",
    ),
    "vllm weights": (
        VLLM.format(model="openai/gpt-oss-120b", length=131072, tp=1)
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.58 GiB. GPU 0 has a total "
        "capacity of 23.64 GiB of which 1.02 GiB is free.\n",
        "rtx-4090",
        "weights",
        "",
    ),
    "vllm no cache": (
        LLAMA_8B
        + LOADED.format(weights="14.99")
        + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n",
        "rtx-4080",
        "no_cache",
        "",  # 0.93 of 16 GiB is less than the weights alone
    ),
    "vllm no cache, with more": (
        LLAMA_8B
        + LOADED.format(weights="14.99")
        + "INFO args: {'gpu_memory_utilization': 0.65}\n"
        + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n",
        "rtx-4090",
        "no_cache",
        "--gpu-memory-utilization 0.68",
    ),
    "vllm slots": (
        VLLM.format(model="Qwen/Qwen3.5-27B", length=262144, tp=1)
        + LOADED.format(weights="51.2")
        + "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (556). Lower max_num_seqs\n",
        "rtx-pro-6000-bw",
        "slots",
        "--max-num-seqs 556",
    ),
    "vllm not free": (
        LLAMA_8B + "ValueError: Free memory on device (18.10/23.64 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 21.28 GiB). Decrease GPU memory utilization\n",
        "rtx-4090",
        "not_free",
        "--gpu-memory-utilization 0.76",  # 18.10 of 23.64 GiB
    ),
    "vllm sampler": (
        LLAMA_8B
        + LOADED.format(weights="14.99")
        + "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Try\n",
        "rtx-4090",
        "sampler",
        "--max-num-seqs 64",
    ),
    "vllm capture": (
        LLAMA_8B
        + LOADED.format(weights="14.99")
        + "INFO Available KV cache memory: 4.67 GiB\nINFO GPU KV cache size: 38,256 tokens\n"
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 10%\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB.\n",
        "rtx-4090",
        "capture",
        "--max-num-seqs 64",
    ),
    "sglang no cache": (
        "[2025-11-02] server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B-Instruct', tp_size=1, "
        "mem_fraction_static=0.6)\n[2025-11-02] Load weight begin. avail mem=23.10 GB\n"
        "[2025-11-02] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=8.05 GB, "
        "mem usage=15.05 GB.\nsglang RuntimeError: Not enough memory. Please try to increase "
        "--mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.6\n",
        "rtx-4090",
        "no_cache",
        "--mem-fraction-static 0.63",
    ),
    "llama.cpp weights": (
        "llama_model_load: general.name str = Llama 3.3 70B Instruct\n"
        "load_tensors: offloading 80 repeating layers to GPU\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 40543.12 MiB on device 0: cudaMalloc failed: "
        "out of memory\nllama_model_load: error loading model: unable to allocate CUDA0 buffer\n",
        "rtx-4090",
        "weights",
        "",
    ),
    "ollama host": (
        "ollama run llama3.3\n"
        "Error: model requires more system memory (34.8 GiB) than is available (19.2 GiB)\n",
        "rtx-4090",
        "host",
        "",
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_cause_is_named(name: str) -> None:
    """The right cause, in words; the flag that helps first."""
    text, card, cause, flag = LOGS[name]
    log = read_start_log(text)
    stated = {"accelerator": card} | (
        {"model": "llama-3.3-70b"} if name.startswith(("ollama", "llama.cpp")) else {}
    )
    found = Diagnosis(log, stated)
    assert log.cause == cause and CAUSES[cause] and found.sentence.endswith(".")
    assert not flag or found.helps[0].words == flag
    assert name != "vllm length" or len(found.helps) == 1  # fp8 halves 16 GiB, and 4.67 are free
    assert found.to_dict()["cause"] == cause
    if cause == "weights":
        assert found.ways and not found.answer.possible


def test_what_was_taken_stands_beside_the_estimate() -> None:
    """Sizes in bytes, tokens as a number; the estimate within a tenth."""
    found = Diagnosis(read_start_log(LOGS["vllm capture"][0]), {"accelerator": "rtx-4090"})
    took, predicted = found.log.took, found.predicted
    assert took["weights"] == 14.99 * GIB and took["kv_cache"] == 4.67 * GIB and took["kv_tokens"] == 38256
    for part in ("weights", "kv_cache", "kv_tokens"):
        assert predicted[part] == pytest.approx(took[part], rel=0.1), part


def test_a_log_without_an_error_is_a_server_that_started() -> None:
    text = LLAMA_8B + LOADED.format(weights="14.99") + "INFO Application startup complete.\n"
    found = Diagnosis(read_start_log(text), {"accelerator": "h100-sxm"})
    assert not found.log.cause and not found.helps and "started" in found.sentence


def test_buffers_of_llama_cpp_are_added_up() -> None:
    text = (
        "llama_model_loader: general.name str = Llama 3.1 8B\n"
        "load_tensors: CUDA0 model buffer size =  4403.49 MiB\n"
        "load_tensors: CUDA1 model buffer size = 100.00 MiB\n"
        "load_tensors: CPU_Mapped model buffer size = 281.81 MiB\n"
        "llama_kv_cache: CUDA0 KV buffer size = 512.00 MiB\n"
        "llama_context: CUDA0 compute buffer size = 560.00 MiB\n"
    )
    log = read_start_log(text)
    assert log.took["weights"] == pytest.approx((4403.49 + 100) * 2**20)
    assert log.took["kv_cache"] == 512 * 2**20 and log.took["other"] == 560 * 2**20


def test_the_command(tmp_path: Path) -> None:
    """A file or stdin; what is missing is asked for; a text of no engine is refused."""
    file = tmp_path / "server.log"
    file.write_text(LOGS["vllm length"][0], encoding="utf-8")
    ran = CliRunner().invoke(app, ["why", str(file), "--gpu", "rtx-4090"])
    assert ran.exit_code == 0 and "--max-model-len 38256" in ran.stdout and "14.99" not in ran.stdout
    piped = CliRunner().invoke(app, ["why", "-", "--gpu", "rtx-4090", "--json"], input=LOGS["vllm length"][0])
    assert json.loads(piped.stdout)["cause"] == "length"
    unknown = CliRunner().invoke(app, ["why", str(file)])
    assert isinstance(unknown.exception, mt.InputError) and "--gpu" in str(unknown.exception)
    file.write_text("hello\n", encoding="utf-8")
    wrong = CliRunner().invoke(app, ["why", str(file), "--gpu", "rtx-4090"])
    assert isinstance(wrong.exception, mt.InputError) and "no line" in str(wrong.exception)


def test_logs_as_they_are() -> None:
    """Colours, Windows' lines, ranks, several starts, words of other engines, wrong bytes, long lines."""
    text = LOGS["vllm length"][0]
    plain = read_start_log(text)
    coloured = text.replace("max_seq_len=", "max_seq_len=\x1b[0m").replace("took ", "took \x1b[32m")
    ranks = "".join(f"(Worker_TP{rank} pid=1) {line}\n" for line in text.splitlines() for rank in range(4))
    started = LLAMA_8B + "INFO Application startup complete.\n" + "INFO GET /health\n" * 1000
    wrong = log_text(b"\xff" + text.encode())
    others = (coloured, text.replace("\n", "\r\n"), text * 2, started + text, text + "sglang TRTLLM\n", wrong)
    for other in (*others, log_text(text.encode("utf-16"))):
        read = read_start_log(other)
        assert (read.cause, read.took, read.fields) == (plain.cause, plain.took, plain.fields), other[:100]
    assert read_start_log(ranks).took == plain.took
    assert read_start_log(text + "9" * 100_000 + "To serve " * 50_000 + "1.2.3 GiB\n").cause == "length"


def test_memory_runs_out_while_it_serves() -> None:
    text = LLAMA_8B + "INFO Application startup complete.\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    found = Diagnosis(read_start_log(text), {"accelerator": "rtx-4090"})
    assert found.log.cause == "serving" and "started" in found.sentence
    assert found.helps and not any(one.sure for one in found.helps)


def test_names_of_cards_and_models() -> None:
    """A card is known by the driver's name; of what is not known the error says the flag."""
    text = LOGS["vllm length"][0]
    assert (
        Diagnosis(read_start_log(text + "NVIDIA GeForce RTX 4090\n"), {}).made.scenario.accelerator
        == "rtx-4090"
    )
    for log, stated, flag in (
        (text.replace("Llama-3.1-8B", "Nobody-13B"), {"accelerator": "rtx-4090"}, "--model"),
        (text + "NVIDIA GeForce RTX 9999\n", {}, "--gpu"),
    ):
        with pytest.raises(mt.InputError, match=flag):
            Diagnosis(read_start_log(log), stated)


def test_a_rank_of_sglang_counts_once() -> None:
    line = "TP{} KV Cache is allocated. #tokens: 1000, K size: 2.00 GB, V size: 2.00 GB\n"
    text = "sglang server_args=ServerArgs(tp_size=2)\n" + line.format(0) + line.format(1)
    assert read_start_log(text).took["kv_cache"] == 4 * GIB
