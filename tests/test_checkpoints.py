"""Bytes of the weights of checkpoints: of every model that we ship, and of files that were counted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from conftest import few_of

from mantile.estimates.estimate import Estimate
from mantile.ir.counts import parameters
from mantile.library.models import load_model, model_ids

Make = Callable[..., Estimate]

SERVED: dict[str, object] = {
    "accelerator": "b300-sxm",
    "framework": "sglang",  # pads nothing
    "tp": 1,
    "input_tokens": 128,
    "output_tokens": 16,
    "concurrency": 1,
}
# Bytes of a parameter, by what a name says: scales, and what stays in 16 bit, come on top.
NAMED = {"nvfp4": (0.55, 0.72), "mxfp4": (0.5, 0.7), "awq": (0.52, 0.75), "fp8": (1.0, 1.1)}
# The same of models whose name says nothing, and whose checkpoint is quantised all the same.
SILENT = {
    "deepseek-r1": (1.0, 1.01),
    "deepseek-v3": (1.0, 1.01),
    "deepseek-v3.1": (1.0, 1.01),
    "deepseek-v3.2": (1.0, 1.01),
    "deepseek-v4-flash": (0.5, 0.6),
    "deepseek-v4-pro": (0.5, 0.6),
    "devstral-2-123b": (1.0, 1.05),
    "devstral-small-2-24b": (1.0, 1.1),
    "gpt-oss-120b": (0.5, 0.7),
    "gpt-oss-20b": (0.5, 0.7),
    "kimi-k2": (1.0, 1.01),
    "kimi-k2.5": (0.5, 0.6),
    "mimo-v2-flash": (1.0, 1.01),
    "minimax-m2.5": (1.0, 1.01),
    "minimax-m2.7": (1.0, 1.01),
}
SIXTEEN_BIT = (2.0, 2.0)


def weights(made: Estimate) -> float:
    """Bytes of all weights of a model on one accelerator; layers that predict tokens are not among them."""
    return float(made.values()[made.equations.prefill_workers.rows["memory.weights"]])


def expected(name: str) -> tuple[float, float]:
    """Least and most bytes of a parameter of a model that we ship."""
    said = next((limits for format, limits in NAMED.items() if name.endswith(f"-{format}")), None)
    return said or SILENT.get(name, SIXTEEN_BIT)


def _one_of_each_size() -> list[str]:
    """A model of every size that a parameter may have."""
    return [*{expected(name): name for name in model_ids()}.values()]


@pytest.mark.parametrize("name", few_of(dict.fromkeys([*_one_of_each_size(), *SILENT]), *_one_of_each_size()))
def test_a_model_has_the_bytes_that_its_name_says(make: Make, name: str) -> None:
    """A checkpoint named after a format is not in 16 bit, and what is in 16 bit is not named otherwise."""
    made = make(**SERVED | {"model": name})
    least, most = expected(name)
    assert least <= weights(made) / parameters(made.equations.ir)["total"] <= most


@cache
def counted(shared_data: Path) -> dict[str, int]:
    """Bytes of quantised checkpoints, counted tensor by tensor, by folder of their config."""
    with (shared_data / "checkpoint_bytes.csv").open(newline="", encoding="utf-8") as file:
        return {row["folder"]: int(row["weight_bytes"]) for row in csv.DictReader(file)}


@pytest.mark.exhaustive
def test_models_that_we_ship_have_the_bytes_that_were_counted(make: Make, shared_data: Path) -> None:
    """Where their checkpoint was counted: within 0.1 %."""
    by_folder = counted(shared_data)
    folders = {name: load_model(name).hub_id.replace("/", "--") for name in model_ids()}
    both = {name: folder for name, folder in folders.items() if folder in by_folder}
    off = {
        name: weights(make(**SERVED | {"model": name})) / by_folder[folder] - 1
        for name, folder in both.items()
    }
    assert len(both) >= 10
    assert {name: error for name, error in off.items() if abs(error) > 0.001} == {}


@pytest.mark.exhaustive
def test_bytes_of_checkpoints_are_those_that_were_counted(make: Make, shared_data: Path) -> None:
    """Read from their configs: all of them within 0.1 %."""
    off = {}
    for folder, size in counted(shared_data).items():
        made = make(**SERVED | {"model": str(shared_data / "configs2" / folder)})
        off[folder] = weights(made) / size - 1
    assert len(off) >= 33
    assert {folder: error for folder, error in off.items() if abs(error) > 0.001} == {}


LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 4096,
    "tie_word_embeddings": False,
}
KEPT = ["lm_head", "model.layers.0.mlp*", "*.self_attn.k_proj", "*.self_attn.o_proj"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint in fp8 whose first FFN, keys and attention output are in 16 bit."""
    folder = tmp_path_factory.mktemp("mixed")
    quantisation = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": KEPT}
    config = json.dumps(LLAMA | {"quantization_config": quantisation})
    (folder / "config.json").write_text(config, encoding="utf-8")
    return str(folder)


def test_bytes_are_those_of_every_tensor(make: Make, mixed: str) -> None:
    """And a pass reads what lies in memory."""
    made = make(**SERVED | {"model": mixed})
    hidden, kv, inner = 512, 128, 1024
    narrow = 6 * (hidden * hidden + kv * hidden) + 5 * 3 * hidden * inner
    wide = 6 * (hidden * hidden + kv * hidden) + 3 * hidden * inner + 2 * 4096 * hidden + 13 * hidden
    assert weights(made) == narrow + 2 * wide
    values = made.values()
    read = sum(
        values[block.reads] * (values[block.repeats] if block.repeats is not None else 1)
        for block in made.equations.decode.blocks
        if block.reads is not None and block.module is not None and block.module.tensors
    )
    assert read == narrow + 2 * (wide - 4096 * hidden - 13 * hidden)


@pytest.mark.parametrize(
    ("asked", "bits"),
    [
        ({}, {"attention": 8, "attention.bf16": 16, "ffn": 8, "ffn.bf16": 16, "embedding": 16, "head": 16}),
        (
            {"weights_dtype": "q4_k_m"},
            {
                "attention": 4.8,
                "attention.bf16": 4.8,
                "ffn": 4.8,
                "ffn.bf16": 4.8,
                "embedding": 4.5,
                "head": 6.5625,
            },
        ),
        ({"ffn_dtype": "nvfp4"}, {"attention": 8, "attention.bf16": 16, "ffn": 4.5, "ffn.bf16": 4.5}),
    ],
)
def test_what_is_kept_apart_follows_its_class(
    make: Make, mixed: str, asked: dict[str, str], bits: dict[str, float]
) -> None:
    """A matrix is kept as in the checkpoint while its class is; embedding and head follow the weights."""
    made = make(**SERVED | {"model": mixed} | asked)
    values, stored = made.values(), made.equations.prefill_workers.formats.stored
    assert {name: values[stored[name].bytes] * 8 for name in bits} == pytest.approx(bits)


def test_files_of_llama_cpp_have_the_bytes_that_are_published(make: Make) -> None:
    """Meta-Llama-3.1-8B-Instruct in GGUF, bartowski: 4.92 GB in Q4_K_M, 5.73 in Q5_K_M, 8.54 in Q8_0."""
    for kind, gigabytes in (("q4_k_m", 4.92), ("q5_k_m", 5.73), ("q8_0", 8.54)):
        made = make(**SERVED | {"model": "llama-3.1-8b", "weights_dtype": kind})
        assert weights(made) / 1e9 == pytest.approx(gigabytes, rel=0.003), kind
