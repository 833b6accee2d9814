"""EXO's model cards and shards: names that it lists are models we ship, in the format that the name says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mantile as mt
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.mlx_names import in_format
from mantile.library.models import load_model


def ask(**fields: Any) -> mt.Estimate:
    return mt.estimate(
        mt.Scenario(framework="exo", input_tokens=512, output_tokens=64, concurrency=1, **fields)
    )


# exo-explore/exo, resources/inference_model_cards: layers, hidden size, storage_size.in_bytes; November 2026.
# Those that are whole GiB state GiB for what are GB; others mix 1000 and 1024 in other ways.
_GIB = 2**30 / 1e9
CARDS: dict[str, tuple[int, int, float]] = {
    "mlx-community/Llama-3.3-70B-Instruct-4bit": (80, 8192, 40652242944),
    "mlx-community/Meta-Llama-3.1-8B-Instruct-8bit": (32, 4096, 8954839040),
    "mlx-community/Meta-Llama-3.1-8B-Instruct-bf16": (32, 4096, 16882073600),
    "mlx-community/Qwen3-30B-A3B-4bit": (48, 2048, 17612931072),
    "mlx-community/Qwen3-235B-A22B-Instruct-2507-8bit": (94, 4096, 268435456000 / _GIB),
    "mlx-community/Qwen3-Coder-480B-A35B-Instruct-4bit": (62, 6144, 289910292480 / _GIB),
    "mlx-community/GLM-4.5-Air-8bit": (46, 4096, 122406567936 / _GIB),
    "mlx-community/MiniMax-M2.5-6bit": (62, 3072, 185826705408),
    "mlx-community/DeepSeek-V3.1-4bit": (61, 7168, 405874409472 / _GIB),
    "mlx-community/Kimi-K2-Instruct-4bit": (61, 7168, 620622774272 / _GIB),
}
CARDS["mlx-community/Kimi-K2-Thinking"] = (61, 7168, 706522120192 / _GIB)
CARDS |= {
    "TrevorJS/gemma-4-E2B-it-uncensored": (35, 1536, 3580765126),
    "microsoft/Phi-3-mini-4k-instruct": (32, 3072, 7620000000),
    "mlx-community/DeepSeek-V4-Flash-mxfp4-bf16": (43, 4096, 161870016377),
    "mlx-community/GLM-4.7-4bit": (91 + 1, 5120, 198556925568),  # the card counts layers from 0
    "mlx-community/GLM-4.7-8bit-gs32": (91 + 1, 5120, 396963397248),
    "mlx-community/GLM-4.7-Flash-5bit": (47, 2048, 22548578304 / _GIB),
    "mlx-community/Llama-3.1-Nemotron-Nano-4B-v1.1-4bit": (32, 3072, 2538706944),
    "mlx-community/MiniMax-M2.1-3bit": (61 + 1, 3072, 100086644736),
    "mlx-community/NVIDIA-Nemotron-Nano-9B-v2-4bits": (56, 4480, 5002791936),
    "mlx-community/Nemotron-3-Ultra-550B-A55B-4bit": (108, 8192, 346976565922),
    "mlx-community/Qwen3-Coder-Next-4bit": (48, 2048, 45644286500),
    "mlx-community/Qwen3.5-2B-MLX-8bit": (24, 2048, 2662787264),
    "mlx-community/Step-3.5-Flash-4bit": (45, 4096, 114572190076),
    "mlx-community/gemma-4-e4b-it-4bit": (42, 2560, 5216992212),
}
FEW = ("mlx-community/Meta-Llama-3.1-8B-Instruct-8bit",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.exhaustive) for name in CARDS]
)
def test_a_card_of_exo_is_a_model_that_we_ship(name: str) -> None:
    """Layers and width equal, bytes of the weights within 5 %."""
    layers, width, stored = CARDS[name]
    model = load_model(name)
    assert model.architecture.value("hidden_size") == width
    made = ask(model=name, accelerator="m3-ultra")
    assert made.values()[made.equations.ir.total_layers] == layers
    held = made.values()[made.equations.prefill_workers.rows["memory.weights"]]
    assert held == pytest.approx(stored, rel=0.05), f"{held / stored - 1:+.1%}"


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("mlx-community/gpt-oss-120b-MXFP4-Q8", "mxfp4"),
        ("mlx-community/NVIDIA-Nemotron-3-Nano-30B-A3B-MLX-6Bit", "int6-g64"),
        ("mlx-community/Qwen3-Next-80B-A3B-Thinking-8bit", "int8-g64"),
        ("mlx-community/GLM-5.1", "bf16"),
        ("TrevorJS/gemma-4-E2B-it-uncensored", "int4-g64"),
        ("microsoft/Phi-3-mini-4k-instruct", "bf16"),
        ("mlx-community/DeepSeek-V4-Flash-mxfp4-bf16", "bf16"),
        ("mlx-community/GLM-4.7-6bit", "int6-g64"),
        ("mlx-community/GLM-4.7-8bit-gs32", "int8-g32-bias"),
        ("mlx-community/GLM-4.7-Flash-5bit", "int5-g64"),
        ("mlx-community/Llama-3.1-Nemotron-8B-UltraLong-1M-Instruct-4bit", "int4-g64"),
        ("mlx-community/Llama-3.1-Nemotron-Nano-4B-v1.1-4bit", "int4-g64"),
        ("mlx-community/MiniMax-M2.1-3bit", "int3-g64"),
        ("mlx-community/NVIDIA-Nemotron-Nano-9B-v2-4bits", "int4-g64"),
        ("mlx-community/Nemotron-3-Ultra-550B-A55B-4bit", "int4-g32-bias"),
        ("mlx-community/Qwen3-Coder-Next-4bit", "int4-g64"),
        ("mlx-community/Qwen3.5-2B-MLX-8bit", "int8-g64"),
        ("mlx-community/Step-3.5-Flash-4bit", "int4-g64"),
        ("mlx-community/gemma-4-e4b-it-4bit", "int4-g64"),
    ],
)
def test_a_name_of_mlx_says_the_format(name: str, format: str) -> None:
    model = load_model(name)
    assert model.architecture.choices["weights_dtype"].value == format
    said = ("asked for", "format that the name", "format of the checkpoint")
    assert any(words in model.source for words in said) or model.hub_id == name


def test_a_checkpoint_of_mlx_by_name_is_what_its_config_says(shared_data: Path) -> None:
    """The same formats as are read of the config of such a checkpoint."""
    config = json.loads((shared_data / "configs" / "meta-llama--Meta-Llama-3.1-8B.json").read_text())
    read = parse_config(config | {"quantization": {"group_size": 64, "bits": 4}}, "config.json", None, None)
    named = in_format(load_model("llama-3.1-8b").architecture, "4bit")
    assert {name: one.value for name, one in named.choices.items()} == {
        name: one.value for name, one in read.choices.items()
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize(("macs", "measured"), [(4, 28.3)])
def test_kimi_on_macs_is_as_fast_as_measured(macs: int, measured: float) -> None:
    """What EXO and LM Studio reached on four M3 Ultra (28 tokens/s) has 16-bit weights beside its experts.

    In 4 bit throughout, as other checkpoints of MLX are, it would be 40 % faster than that.
    """
    asked = {"accelerator": "m3-ultra", "system": "mac-m3-ultra-tb5-rdma", "tp": macs}
    speed = 1 / ask(model="mlx-community/Kimi-K2-Thinking", **asked).tpot
    plain = 1 / ask(model="mlx-community/Kimi-K2-Instruct-4bit", **asked).tpot
    print(f"Kimi-K2-Thinking: {speed:.1f} of {measured} tokens/s, {speed / measured - 1:+.0%}")
    print(f"in 4 bit throughout: {plain:.1f}, {plain / measured - 1:+.0%}")
    assert speed == pytest.approx(measured, rel=0.15)
    assert plain > 1.3 * measured


def test_a_name_that_we_have_no_model_for_asks_the_hub() -> None:
    with pytest.raises(InputError, match=r"Some-Model-4bit"):
        load_model("mlx-community/Some-Model-4bit")


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("Jundot/Qwen3.6-27B-oQ8-mtp", "give qwen3.5-27b in another data type, the nearest of which is "),
        ("TheDrainFlorist/Qwen3.5-397B-A17B-VQ-2.2bpw", "in another data type; MLX's here have more bits"),
        ("mlx-community/GLM-5.1-DQ4plus-q8", "nearest of which is weights_dtype int4-g64"),
        ("mlx-community/Kimi-K2.6-mlx-DQ3_K_M-q8", "nearest of which is weights_dtype int3-g64"),
    ],
)
def test_a_mix_that_no_document_states_is_refused(name: str, way_out: str) -> None:
    """With what is not known, and two ways out: its config, or the model in another data type."""
    with pytest.raises(InputError, match=r"does not say which weights have how many bits") as raised:
        load_model(name)
    assert way_out in str(raised.value)


def test_experts_alone_are_in_4_bit_beside_bf16() -> None:
    types = {
        kind: choice.value
        for kind, choice in load_model(
            "mlx-community/DeepSeek-V4-Flash-mxfp4-bf16"
        ).architecture.choices.items()
        if kind.endswith("_dtype")
    }
    assert {kind for kind, value in types.items() if value == "mxfp4"} == {"experts_dtype"}
    assert set(types.values()) == {"mxfp4", "bf16"}


@pytest.mark.parametrize(
    ("fields", "kind", "layers"),
    [
        ({"accelerator": "m3-ultra", "tp": 2}, "TensorShardMetadata", [(0, 32), (0, 32)]),
        ({"accelerator": "m3-ultra", "pp": 3}, "PipelineShardMetadata", [(0, 11), (11, 22), (22, 32)]),
        ({"accelerator": "h100-sxm", "pp": 2, "tp": 2}, "", []),
        pytest.param(
            {"devices": [{"accelerator": "rtx-4090", "layers": 20}, {"layers": 0}, {"layers": 12}]},
            "PipelineShardMetadata",
            [(0, 20), (20, 32)],
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_shards_are_spelt_as_exo_does(fields: dict[str, Any], kind: str, layers: Any) -> None:
    """Half-open ranges that are all layers together; ranks from 0."""
    found = mt.plan(ask(model="llama-3.1-8b", **fields))["shards"]
    assert [(one["start_layer"], one["end_layer"]) for one in found] == layers
    assert [one["device_rank"] for one in found] == [*range(len(layers))]
    assert {(one["shard"], one["world_size"], one["n_layers"]) for one in found} <= {(kind, len(layers), 32)}
