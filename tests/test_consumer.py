"""Single users of llama.cpp, MLX and EXO on consumer hardware.

Published speeds, and all rows of the shared table where it is present.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mantile.estimate.estimate import Estimate, estimate
from mantile.library.scenario import parse_scenario
from mantile.measured.load import load_measurements
from mantile.measured.metrics import errors
from mantile.measured.reconcile import Reconciliation, reconcile

LLAMA: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "framework": "llama.cpp",
    "token_budget": 512,
    "concurrency": 1,
}


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
        weights_dtype="q4_k_m",
        head_dtype="q4_k_m",
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


@pytest.mark.exhaustive
def test_rows_of_the_shared_table(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Decode of single users on accelerators of the library.

    NVIDIA is within 7 % in the mean, Apple within 14 %.
    """
    found = reconcile(load_measurements(shared_data / "consumer.csv"), ["framework=llama.cpp"])
    nvidia, apple = (_decode(found, apple) for apple in (False, True))
    with capsys.disabled():
        for name, figures in (("NVIDIA", nvidia), ("Apple", apple)):
            print(
                (
                    f"\n{name}: {figures['n']} runs, decode {100 * figures['mape']:.1f} % mean, "
                    f"{100 * figures['median']:.1f} % median error"
                ),
                end="",
            )
    assert nvidia["n"] > 100 and nvidia["mape"] <= 0.07
    assert apple["n"] > 40 and apple["mape"] <= 0.14


def _decode(found: Reconciliation, apple: bool) -> dict[str, float]:
    alone = found.table[
        (found.table["concurrency"] == 1) & (found.table["accelerator"].str.match(r"m\d-") == apple)
    ]
    return errors(alone["tpot_ratio"].to_numpy(float))
