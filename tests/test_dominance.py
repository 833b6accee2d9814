"""A chip that is at least as good in every figure of its datasheet is hardly ever slower."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from conftest import Make
from relations import datasheets

from mantile.graph.evaluate import Program
from mantile.library.profiles import Library

METRICS = ("serving.ttft", "serving.tpot", "serving.output_tokens_per_s", "prefill.time")
MODELS = {"llama-3.1-8b": (1,), "llama-3.3-70b": (4, 8), "qwen3-30b-a3b": (1, 2)}
CASES = 60
SLOWER, SHARE = 1.02, 0.02  # by more than 2 %, in at most 2 % of the comparisons
MEASURED = (
    "cdna3",
    "hopper",
)  # kernels of MI300X take longer to start than those of H100 and H200: runs say so


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("framework", "model"),
    [("vllm", "llama-3.1-8b"), ("sglang", "llama-3.3-70b"), ("trtllm", "qwen3-30b-a3b")],
)
def test_a_better_chip_is_hardly_ever_slower(
    library: Library, make: Make, framework: str, model: str
) -> None:
    """TTFT, TPOT, tokens per second and prefill on random workloads. TPOT is compared where as many requests
    run at once: more memory runs more of them, and each then more slowly.

    Chips of two generations of which runs say so are left out.
    """
    generation = {chip.id: chip.generation for chip in library.accelerators}
    dice = np.random.default_rng(3)
    sheets = datasheets(library)
    slower, compared = dict.fromkeys(METRICS, 0), dict.fromkeys(METRICS, 0)
    made = make(model=model, framework=framework, tp=1)
    names = (*METRICS, "memory.batch", "checks.invalid", "memory.fits")
    program = Program([made.figure(name) for name in names])
    case = {
        "inputs.input_tokens": np.round(np.exp(dice.uniform(np.log(64), np.log(32_768), CASES))),
        "inputs.output_tokens": np.round(np.exp(dice.uniform(np.log(16), np.log(2048), CASES))),
        "inputs.concurrency": np.round(np.exp(dice.uniform(0, np.log(256), CASES))),
        "inputs.tp": dice.choice(MODELS[model], CASES).astype(float),
        "inputs.weights_dtype": dice.choice(["bf16", "fp8"], CASES),
    }
    found = {}
    for chip in sheets:
        where = {"inputs.accelerator": chip, "inputs.system": library.usual_system(chip).id}
        values = program.sweep(
            made.inputs(0) | {name: np.full(CASES, text) for name, text in where.items()} | case
        )
        found[chip] = {name: np.broadcast_to(values[made.figure(name)], CASES) for name in names}
    for better, other in permutations(sheets, 2):
        if (sheets[better] < sheets[other]).any() or (sheets[better] == sheets[other]).all():
            continue
        if (generation[better], generation[other]) == MEASURED:
            continue
        one, two = found[better], found[other]
        both = np.logical_and.reduce(
            [(values["checks.invalid"] == 0) & (values["memory.fits"] > 0) for values in (one, two)]
        )
        for metric in METRICS:
            ratio = one[metric] / two[metric]
            if metric == "serving.output_tokens_per_s":
                ratio = 1 / ratio
            rows = both & (one["memory.batch"] == two["memory.batch"]) if "tpot" in metric else both
            compared[metric] += int(rows.sum())
            slower[metric] += int((rows & (ratio > SLOWER)).sum())
    shares = {metric: slower[metric] / compared[metric] for metric in METRICS}
    assert min(compared.values()) > 5_000
    assert max(shares.values()) < SHARE, shares


def test_a_chip_that_nobody_measured_is_not_faster_than_its_relative(library: Library, make: Make) -> None:
    """MI300X is better than MI250X in every figure of its datasheet. Launches were measured on it alone:
    those of MI250X are no shorter, and no decode step of it is, with as many requests in the batch."""
    sheets = datasheets(library)
    assert (sheets["mi300x"] >= sheets["mi250x"]).all()
    for framework in ("vllm", "sglang"):
        made = make(model="llama-3.3-70b", framework=framework, tp=8)
        figures = [made.figure(name) for name in ("decode.time", "memory.batch")]
        cases = {"inputs.concurrency": np.array([1.0, 8, 64, 256]), "inputs.input_tokens": np.full(4, 1000.0)}
        steps = {}
        for chip in ("mi300x", "mi250x"):
            where = {"inputs.accelerator": chip, "inputs.system": library.usual_system(chip).id}
            values = made.program.sweep(made.inputs(0) | where | cases)
            steps[chip], batch = (np.broadcast_to(values[figure], 4) for figure in figures)
            assert (batch == cases["inputs.concurrency"]).all()
        assert (steps["mi300x"] <= steps["mi250x"]).all(), (framework, steps)
