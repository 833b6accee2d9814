"""Single users of llama.cpp, MLX and EXO on consumer hardware.

Published speeds, and all rows of the shared table where it is present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.profiles import load_library
from mantile.library.scenario import parse_scenario
from mantile.measured.load import load_measurements
from mantile.measured.metrics import errors
from mantile.measured.reconcile import reconcile

LLAMA: dict[str, Any] = {"model": "llama-3.1-8b", "framework": "llama.cpp", "concurrency": 1}
FAMILIES = {"Apple": r"m\d-", "Spark": "dgx-spark", "Strix Halo": "ryzen", "NVIDIA": ""}
"""Beginnings of the accelerators' ids; those of NVIDIA are the rest."""
UNSTEADY = r"c0(?:21[1-4]|32[7-9]|330|17[5-8]|29[5-8])-pp"
"""Prompts of 16-bit weights on A100 SXM and L40S: at a tenth to a third of the speed of their 4-bit ones."""
DECODE_ERROR, PROMPT_ERROR = 0.08, 0.15  # of the mean


def ask(**fields: Any) -> Estimate:
    """Llama-3-8B, one user."""
    return estimate(parse_scenario(LLAMA | fields, "test"))


@pytest.mark.parametrize(
    ("generated", "measured"), [(512, 130.58), (1024, 127.74), (4096, 119.44), (8192, 110.66)]
)
def test_an_rtx_4090_writes_as_fast_as_published(generated: int, measured: float) -> None:
    """Llama-3-8B Q4_K_M from an empty context.

    Tokens per second of XiongjieDai/GPU-Benchmarks-on-LLM-Inference, May 2024.
    """
    made = ask(
        accelerator="rtx-4090",
        framework="llama.cpp-2024",
        input_tokens=1,
        output_tokens=generated,
    )
    assert made.results()["interactivity_tokens_per_s"] == pytest.approx(measured, rel=0.05)


def test_prefill_on_a_spark_and_decode_on_a_mac_gain_as_much_as_published() -> None:
    """EXO, Llama-3.1-8B fp16, a prompt of 8k and 32 tokens.

    The split was 2.8 times as fast as the Mac and 1.9 times as fast as the Spark.
    """
    fields = {
        "framework": "exo",
        "weights_dtype": "fp16",
        "head_dtype": "fp16",
        "activation_dtype": "fp16",
        "input_tokens": 8192,
        "output_tokens": 32,
        "token_budget": 8192,
    }
    mac, spark = (
        ask(accelerator=chip, **fields)["serving.e2e"].value for chip in ("m3-ultra", "dgx-spark-gb10")
    )
    both = ask(accelerator="dgx-spark-gb10", decode={"accelerator": "m3-ultra"}, **fields)
    split = both["serving.e2e"].value  # of the cell: no link between the two is in the library
    assert (
        mac == pytest.approx(6.42, rel=0.1)
        and spark == pytest.approx(4.34, rel=0.1)
        and split == pytest.approx(2.32, rel=0.1)
    )
    assert mac / split == pytest.approx(2.8, rel=0.1)


def test_formats_are_those_of_the_files_that_a_framework_reads() -> None:
    """GGUF's by default, with a head in Q6_K; experts in MXFP4 stay; what is stated holds."""
    lengths = {"accelerator": "rtx-4090", "input_tokens": 512, "output_tokens": 128}

    def formats(**fields: Any) -> list[Any]:
        asked = ask(**lengths | fields).results()
        return [asked[f"{name}_dtype"] for name in ("weights", "embedding", "head")]

    assert formats() == ["q4_k_m", "q4_k", "q6_k"]
    assert formats(weights_dtype="q8_0") == ["q8_0", "q8_0", "q8_0"]
    experts = ask(**lengths | {"model": "gpt-oss-20b"}).columns[0].values
    assert (experts["weights_dtype"], experts["attention_dtype"]) == ("mxfp4", "q8_0")
    assert formats(framework="vllm") == ["bf16", "bf16", "bf16"]


def test_a_framework_multiplies_in_formats_that_it_has() -> None:
    """Tensor cores for fp4 are of no use to llama.cpp; quantised weights run in int8 where that is faster."""
    lengths = {"accelerator": "rtx-5090", "input_tokens": 512, "output_tokens": 128, "weights_dtype": "nvfp4"}
    single, served = ask(**lengths), ask(**lengths | {"framework": "vllm"})
    assert single["inputs.activation_dtype"].value == "bf16"
    assert served["inputs.activation_dtype"].value == "nvfp4"
    typed = ask(**lengths, activation_dtype="nvfp4")
    for made, peak in ((single, 838e12), (typed, 838e12), (served, 1676e12)):
        assert made["hardware.ffn.linear_peak"].value == pytest.approx(peak)
    apple = ask(**lengths | {"accelerator": "m3-ultra"})  # without a peak in int8
    assert apple["hardware.ffn.linear_peak"].value == pytest.approx(28.6e12)


def test_a_prompt_in_parts_reads_the_weights_in_each() -> None:
    """A prompt of four times 512 tokens reads the experts four times as often as one of 512."""
    fields = {"model": "gpt-oss-120b", "accelerator": "dgx-spark-gb10", "output_tokens": 32}
    short, long = (ask(input_tokens=tokens, **fields) for tokens in (512, 2048))
    row = "prefill.experts_up.weight_bytes"
    assert long[row].value == pytest.approx(4 * short[row].value)
    whole = [ask(input_tokens=tokens, **fields | {"framework": "vllm"})[row].value for tokens in (512, 2048)]
    assert whole[1] == pytest.approx(whole[0], rel=0.01)


def test_cards_in_a_row_work_on_parts_of_a_prompt_at_once() -> None:
    """Four parts of 512 tokens go through two cards in five steps of a card, not in eight."""
    fields = {"accelerator": "rtx-4090", "output_tokens": 1, "input_tokens": 2048}
    one, two = ask(**fields), ask(**fields, pp=2, microbatches=1)
    gain = one["serving.prefill_through"].value / two["serving.prefill_through"].value
    assert gain == pytest.approx(8 / 5, rel=0.1)
    longer = ask(**fields | {"input_tokens": 8192}, pp=2, microbatches=1)  # four fillings of the pipeline
    assert longer["serving.prefill_fills"].value == 4


def test_what_a_shared_memory_leaves_to_the_accelerator() -> None:
    """Three quarters of a Mac by default: 4 bit of 235B are more than a Mac with 128 GiB has for its GPU."""
    mac = ask(
        accelerator="m4-max", model="qwen3-235b-a22b", framework="mlx", input_tokens=128, output_tokens=128
    )
    share = mac["efficiency.memory_usable"].value
    assert mac["memory.usable"].value == pytest.approx(0.75 * share * 128 * 2**30)
    assert mac["checks.feasibility"].value == "insufficient_memory"


@pytest.mark.parametrize("chip", ["groq-lpu-v1", "cerebras-wse3"])
def test_a_chip_without_a_framework_is_refused(chip: str) -> None:
    """No framework of the library runs on them: an error with its code, and no times that look usable."""
    for framework in ("vllm", "llama.cpp"):
        made = ask(accelerator=chip, framework=framework, input_tokens=128, output_tokens=128)
        results = made.results()
        assert results["feasibility"] == "invalid" and results["tpot_s"] is None
        assert "FRAMEWORK_UNSUPPORTED" in str(results["checks"])


def test_heads_are_padded_where_the_compiler_does() -> None:
    """32 heads over 12 chips of AWS are 3 on each; over 12 of another maker they are refused."""
    fields = {"framework": "vllm", "input_tokens": 128, "output_tokens": 128, "tp": 12}
    padded = ask(accelerator="inferentia2", **fields)
    assert padded["checks.feasibility"].value == "fits" and padded["plan.heads"].value == 3
    assert ask(accelerator="gb200-nvl72", **fields)["checks.feasibility"].value == "invalid"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["consumer.csv", "consumer2_public.csv"])
def test_rows_of_the_shared_tables(shared_data: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Single users, by family of chips: decode within 8 %, prompts within 15 % in the mean.

    Nothing was fitted to the second table but Llama-2-7B and gpt-oss-20b on Strix Halo. Its rows of RTX 4090
    and M1 Max contradict one another: the same model runs at 216 to 335 tokens per second.
    """
    conditions = ["framework=llama.cpp,llama.cpp-2024", "concurrency=1"]
    table = reconcile(load_measurements(shared_data / name), conditions).table
    steady = table[~table["id"].str.match(UNSTEADY)]
    found = dict(_errors(steady))
    with capsys.disabled():
        for (family, metric), figures in found.items():
            print(f"\n{name}, {family}, {metric}: {figures['n']} runs, {100 * figures['mape']:.1f} %", end="")
    if name == "consumer.csv":
        assert len(steady) > 500
        for (_, metric), figures in found.items():
            assert figures["mape"] <= (DECODE_ERROR if metric == "tpot" else PROMPT_ERROR)
        band = load_library().evidence.band("tpot", "pair")
        measured = 1 / steady["tpot_ratio"].dropna()
        assert ((measured >= band.p10) & (measured <= band.p90)).mean() >= 0.8
    else:
        assert found["Strix Halo", "tpot"]["mape"] <= DECODE_ERROR
        assert found["Spark", "tpot"]["mape"] <= DECODE_ERROR


def test_single_users_are_evidence_of_a_single_user(shared_data: Path) -> None:
    """Their runs of llama.cpp, builds of early 2024 with those since, are counted as the table has them."""
    runs = load_measurements(shared_data / "consumer.csv").runs
    timed = [run for run in runs if str(run.framework).startswith("llama.cpp") and run.metrics.tpot_s]
    evidence = load_library().evidence
    counted = {pair.accelerator: pair.runs for pair in evidence.pairs if pair.single_user}
    assert counted == Counter(run.accelerator for run in timed)
    for kind in ("vendor", "family", "format"):
        seen = [one for one in evidence.seen if (one.kind, one.framework) == (kind, "llama.cpp")]
        assert sum(one.runs for one in seen) == len(timed) == 394


def _errors(table: pd.DataFrame) -> Iterator[tuple[tuple[str, str], dict[str, float]]]:
    left = table
    for family, start in FAMILIES.items():
        chosen = left["accelerator"].str.match(start)
        for metric in ("tpot", "prefill"):
            figures = errors(left[chosen][f"{metric}_ratio"].to_numpy(float))
            if figures["n"]:
                yield (family, metric), figures
        left = left[~chosen]
