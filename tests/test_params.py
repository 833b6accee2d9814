"""Mistral's params.json: the same model as its config.json, in its own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mantile.ir.build import build_ir
from mantile.ir.counts import parameters
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.unread import why_unread
from mantile.library.models import load_model

DENSE: dict[str, Any] = {
    "dim": 4096,
    "n_layers": 32,
    "head_dim": 128,
    "hidden_dim": 14336,
    "n_heads": 32,
    "n_kv_heads": 8,
    "rope_theta": 1000000.0,
    "norm_eps": 1e-05,
    "vocab_size": 32000,
}
EXPERTS = DENSE | {"moe": {"num_experts_per_tok": 2, "num_experts": 8}}
TOWER = {
    "hidden_size": 1024,
    "num_channels": 3,
    "image_size": 1540,
    "max_image_size": 1540,
    "patch_size": 14,
    "rope_theta": 10000.0,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "adapter_bias": False,
    "mm_projector_id": "patch_merge",
    "spatial_merge_size": 2,
    "add_pre_mm_projector_layer_norm": True,
    "image_token_id": 10,
    "image_break_token_id": 12,
    "image_end_token_id": 13,
}
SMALL = DENSE | {"dim": 5120, "n_layers": 40, "hidden_dim": 32768, "vocab_size": 131072}


def written(folder: Path, params: dict[str, Any]) -> str:
    (folder / "params.json").write_text(json.dumps(params), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(("params", "name"), [(DENSE, "mistral-7b-v0.3"), (EXPERTS, "mixtral-8x7b")])
def test_it_is_the_model_that_config_json_says(params: dict[str, Any], name: str, tmp_path: Path) -> None:
    """Mistral 7B but for the vocabulary of v0.3, and Mixtral."""
    vocabulary = load_model(name).architecture.value("vocabulary")
    model = load_model(written(tmp_path, params | {"vocab_size": vocabulary}))
    left = {"max_positions"}  # not stated in params.json
    for found, expected in (
        (model.architecture.facts, load_model(name).architecture.facts),
        (model.architecture.choices, load_model(name).architecture.choices),
    ):
        values = {key: fact.value for key, fact in found.items() if key not in left}
        assert values == {key: fact.value for key, fact in expected.items() if key not in left}
    assert model.architecture.stack == load_model(name).architecture.stack
    assert model.architecture.facts["hidden_size"].source == "dim"
    unread = model.architecture.unread or {}
    assert {path for path, value in unread.items() if why_unread(path, value) is None} == set()


def test_a_tower_stands_beside_the_decoder(tmp_path: Path) -> None:
    """Mistral Small 3.1, of 24.01 B parameters; fp8 is that of the decoder's matrices."""
    params = SMALL | {"vision_encoder": TOWER, "yarn": {"factor": 16}}
    model = load_model(written(tmp_path, params | {"quantization": {"qformat_weight": "fp8_e4m3"}}))
    assert parameters(build_ir(model))["total"] == 24_011_361_280
    choices = {key: choice.value for key, choice in model.architecture.choices.items()}
    assert (choices["weights_dtype"], choices["head_dtype"]) == ("fp8", "bf16")
    assert choices["activation_dtype"] == "fp8"
    assert model.architecture.vision is not None
    assert model.architecture.vision.facts["layers"].source == "vision_encoder.num_hidden_layers"
    unread = model.architecture.unread or {}
    assert {path for path, value in unread.items() if why_unread(path, value) is None} == set()
    assert {"yarn", "norm_eps", "rope_theta"} <= set(unread)


@pytest.mark.parametrize(
    ("window", "layers", "length"), [(4096, 32, 4096), ([None, 1024, 1024, 1024], 24, 1024), (None, 0, 0)]
)
def test_windows(window: Any, layers: int, length: int) -> None:
    """No word of one is none; a list is repeated over the layers."""
    params = DENSE | ({} if window is None else {"sliding_window": window})
    found = parse_config(params, "params.json")
    assert found.value("sliding_window") == length
    windowed = [
        layer
        for layer in found.sequence()
        if found.blocks[layer[0]].uses.get("window") and found.value("sliding_window")
    ]
    assert len(windowed) == layers


@pytest.mark.parametrize(
    ("params", "what"),
    [
        (DENSE | {"model_type": "mamba"}, "model_type is another: .* give the config.json"),
        (
            {key: value for key, value in DENSE.items() if key != "hidden_dim"},
            "hidden_dim is missing: .* give the config.json",
        ),
        (DENSE | {"kv_lora_rank": 512}, "kv_lora_rank is not read .* give the config.json"),
        (DENSE | {"multimodal": {"x": 1}}, "multimodal is not read .* give the config.json"),
        (DENSE | {"moe": {"expert_hidden_dim": 64}}, "moe.expert_hidden_dim is not read"),
        (DENSE | {"moe": 8}, "field moe: expected a mapping"),
        (DENSE | {"moe": {"num_experts_per_tok": 2}}, "field moe.num_experts is missing"),
        (DENSE | {"sliding_window": [4096, 1024]}, "field sliding_window: expected a length"),
        (DENSE | {"sliding_window": [4096, None, None]}, "field sliding_window: .* evenly"),
        (DENSE | {"dim": "x"}, "field dim: expected a whole number"),
        (DENSE | {"n_kv_heads": 64}, "n_kv_heads"),
        (SMALL | {"vision_encoder": TOWER | {"mm_projector_id": ""}}, "vision_encoder.mm_projector_id"),
        (SMALL | {"vision_encoder": 3}, "vision_encoder.mm_projector_id"),
        (SMALL | {"vision_encoder": TOWER | {"patch_size": -1}}, "field vision_encoder.patch_size"),
        (DENSE | {"quantization": {"qformat_weight": "fp4"}}, "quantization"),
    ],
)
def test_what_is_not_read_is_refused_in_its_own_words(params: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=f"params.json: .*{what}"):
        parse_config(params, "params.json")
