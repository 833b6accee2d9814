"""Predictions that can be compared: random deployments against neighbours that differ in one thing.

.ci/relations.py says what must hold and where, `python .ci/comparisons.py` prints a table of millions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import comparisons
import numpy as np
import pytest
import relations
from deployments import TPOT, Deployments, Graphs, Serving, draw

from mantile.library.profiles import Library

CHIPS = "a better chip"  # what a chip reaches of its datasheet differs: see test_dominance.py
EXACT = 1e-5  # a relation of no larger tolerance has no exception
ALL, LINE = (
    0.001,
    0.03,
)  # shares of all comparisons, and of those of a line, that waits in closed form may miss
FEW = 5  # comparisons that a line may miss, however few they are


def check(library: Library, cases: int, models: Sequence[str], least: int) -> None:
    """Hardly any comparison is violated, none of those that are exact, and no law."""
    table = comparisons.run(cases, models, library=library)
    table = {key: line for key, line in table.items() if key[0] != CHIPS}
    told = "\n".join(comparisons.lines(table))
    compared, violated = (
        sum(getattr(line, what) for line in table.values()) for what in ("compared", "violated")
    )
    assert compared > least and violated <= ALL * compared, told
    for (name, _), line in table.items():
        exact = name == comparisons.LAW or line.tolerance <= EXACT
        assert line.violated <= (0 if exact else max(FEW, LINE * line.compared)), told


def test_neighbours_compare_as_they_must(library: Library) -> None:
    """Experts, in all ways of serving."""
    check(library, 160, ["qwen3-30b-a3b"], least=40_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["llama-3.3-70b", "deepseek-v3.2", "jamba-v0.1", "gemma-3-27b"])
def test_so_do_those_of_other_models(library: Library, model: str) -> None:
    """Dense, latent, recurrent and sliding attention."""
    check(library, 800, [model], least=180_000)


def test_a_relation_that_does_not_hold_is_told(library: Library) -> None:
    """The wrong way round each comparison is violated; the table says so and gives the deployment."""
    graphs, dice = Graphs(library), np.random.default_rng(1)
    d = draw(graphs("llama-3.1-8b", Serving(False, False)), library, dice, 50)
    right = next(item for item in relations.of_hardware() if item.name == "more of all speeds")
    tables: list[comparisons.Table] = [{}, {}]
    for table, expected in zip(tables, ("<=", ">="), strict=True):
        turned = replace(right, expected={TPOT: expected}, tolerance=0)
        comparisons.compare(d, graphs, [turned], table)
    kept, broken = (table[right.name, TPOT] for table in tables)
    assert kept.compared == broken.compared == 50 and kept.violated == 0
    assert broken.violated >= 45  # where steps wait for the host, no faster chip helps
    assert broken.example.startswith("llama-3.1-8b, aggregated: accelerator=") and " -> " in broken.example


KINDS = {
    "the host bounds steps full of prompts": (
        "qwen3-30b-a3b, aggregated: accelerator=gb300-nvl72 framework=trtllm tp=4 cp=2 weights_dtype=bf16 "
        "kv_dtype=fp8 input_tokens=1106 output_tokens=8 concurrency=1416 token_budget=512"
    ),
    "int8 slower than the 16 bits of attention": (
        "qwen3-30b-a3b, aggregated: accelerator=gb300-nvl72 framework=trtllm tp=2 attention_dp=2 ep=2 "
        "weights_dtype=int8 kv_dtype=bf16 input_tokens=32535 output_tokens=37 concurrency=3 "
        "token_budget=16384 max_requests=43 prompts_per_slot=1 scheduler=whole-prompts length_range_ratio=0"
    ),
    "a benchmark that is one burst": (
        "gemma-3-27b, aggregated: accelerator=h200-sxm framework=vllm tp=1 weights_dtype=bf16 kv_dtype=bf16 "
        "input_tokens=1345 output_tokens=9 concurrency=972 token_budget=2048 prompts_per_slot=1 "
        "scheduler=mixed"
    ),
    "equal lengths without a second token": (
        "llama-3.3-70b, aggregated: accelerator=a100-40gb-sxm framework=trtllm tp=1 dp=2 cp=2 "
        "weights_dtype=int4 kv_dtype=bf16 input_tokens=9884 output_tokens=1 concurrency=36 "
        "token_budget=2048 scheduler=prefill-first length_range_ratio=0"
    ),
    "a cache on the host, few requests in decode": (
        "llama-3.3-70b, disaggregated: accelerator=b300-sxm framework=vllm tp=1 weights_dtype=fp8 "
        "kv_dtype=bf16 offload_kv=20 input_tokens=9469 output_tokens=59 concurrency=1302 token_budget=2048 "
        "max_requests=152 length_range_ratio=1 decode_accelerator=a100-80gb-sxm decode_tp=1 decode_dp=4"
    ),
    "a step that is flat, then bound by FLOPs": (
        "gemma-3-27b, disaggregated: accelerator=b300-sxm framework=sglang tp=2 dp=8 weights_dtype=int8 "
        "kv_dtype=fp8 input_tokens=17770 output_tokens=2532 concurrency=1059 token_budget=16384 "
        "decode_accelerator=b300-sxm decode_tp=2 decode_dp=3"
    ),
    "more micro-batches than stages": (
        "llama-3.3-70b, disaggregated: accelerator=b200-sxm framework=vllm tp=1 pp=3 weights_dtype=nvfp4 "
        "kv_dtype=fp8 microbatches=4 input_tokens=1317 output_tokens=111 concurrency=1819 "
        "token_budget=16384 scheduler=prefill-first kv_admission=guaranteed length_range_ratio=1 "
        "decode_accelerator=b200-sxm decode_tp=1 decode_pp=3 decode_dp=1"
    ),
    "less than one request in decode": (
        "mixtral-8x7b, disaggregated, at a rate: accelerator=h100-sxm framework=sglang tp=1 "
        "weights_dtype=fp8 kv_dtype=bf16 input_tokens=13990 output_tokens=125 token_budget=512 "
        "decode_accelerator=h100-sxm decode_tp=1 decode_dp=3 request_rate=0.963627"
    ),
    "all slots taken": (
        "nemotron-3-nano, aggregated, at a rate: accelerator=gb200-nvl72 framework=vllm tp=4 dp=3 "
        "attention_dp=8 ep=4 weights_dtype=nvfp4 kv_dtype=fp8 offload_weights=5 offload_kv=20 "
        "input_tokens=3922 output_tokens=1321 token_budget=2048 load_duration=60 request_rate=184.0469"
    ),
}
"""Deployments in which a law was broken, by its cause."""


def told(text: str, graphs: Graphs) -> Deployments:
    """The one deployment that a table of comparisons tells."""
    head, _, fields = text.partition(": ")
    model, _, way = head.partition(", ")
    serving = Serving("disaggregated" in way, "rate" in way)
    equations = graphs(model, serving)
    stated = dict(item.split("=") for item in fields.split())
    stated |= {"batching": "continuous", "dp": stated.get("dp", "1")}
    if serving.apart:
        stated["serving"] = "disaggregated"
    inputs = {name: equations.default(name, 1) for name in equations.inputs if name.startswith("inputs.")}
    for name, value in stated.items():
        number = value.replace(".", "").isdigit()
        inputs[f"inputs.{name}"] = np.array([float(value) if number else value], None if number else object)
    return Deployments(equations, inputs, equations.figures(inputs), np.random.default_rng(1))


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(cause, marks=() if cause.startswith(("the host", "int8")) else pytest.mark.exhaustive)
        for cause in KINDS
    ],
)
def test_no_deployment_breaks_a_law(library: Library, cause: str) -> None:
    """Each of these did, for a cause of its own."""
    table: comparisons.Table = {}
    d = told(KINDS[cause], Graphs(library))
    assert (d.figures["checks.invalid"] == 0).all()
    comparisons.by_themselves(d, table)
    assert len(table) > 20 and not any(line.violated for line in table.values()), comparisons.lines(table)
