"""Quantisation blocks as published checkpoints state them, to the data type of each class of matrices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from mantile import estimate
from mantile.library.architecture import Block, Fact
from mantile.library.errors import InputError
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.quantisation import MOST_KINDS, Stored, stored
from mantile.library.profiles import load_library

DENSE = [["attention", "ffn"]] * 8
MIXED = [["attention", "ffn"]] * 2 + [["attention", "moe"]] * 8
MOE = [["attention", "moe"]] * 8
HYBRID = ([["gated_delta", "moe"]] * 3 + [["attention", "moe"]]) * 4
NEMOTRON = [["mamba2"], ["moe"], ["attention"], ["moe"]] * 2
LATENT = [["latent_attention", "moe"]] * 8

SIZES = {
    "hidden_size": 7168,
    "attention_heads": 128,
    "kv_heads": 16,
    "head_dim": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "linear_key_heads": 16,
    "linear_value_heads": 64,
    "linear_key_dim": 128,
    "linear_value_dim": 128,
    "mamba_heads": 64,
    "mamba_head_dim": 64,
    "ffn_size": 18432,
}

FLOAT8 = {
    "num_bits": 8,
    "type": "float",
    "strategy": "channel",
    "dynamic": False,
    "symmetric": True,
    "group_size": None,
}
TOKEN8 = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
FLOAT4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
MX4 = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
KV8 = {"dynamic": False, "num_bits": 8, "type": "float"}


def kept(config: Config, layers: Any, shared: bool = False, **facts: int) -> Stored:
    """How a checkpoint of these blocks is stored; blocks are called after their kind."""
    known = {name: Fact(value=value, origin="config", source="") for name, value in (SIZES | facts).items()}
    if shared:
        known["shared_expert_size"] = Fact(value=2048, origin="config", source="")
    blocks = {kind: Block(kind=kind) for layer in layers for kind in layer}
    return stored(config, blocks, [tuple(layer) for layer in layers], known)


def choices(config: Config, layers: Any, shared: bool = False) -> dict[str, Any]:
    """What a checkpoint of these blocks is stored in."""
    return kept(config, layers, shared).choices


def found(
    data: dict[str, Any], layers: list[list[str]], shared: bool = False, sidecar: Any = None
) -> dict[str, str]:
    """Data types without their sources, weights_dtype as `weights`; an embedding in 16 bit is left out."""
    config = Config("config.json", "llama", data, sidecar=sidecar)
    types = {
        name.removesuffix("_dtype"): choice.value
        for name, choice in choices(config, layers, shared).items()
        if name != "file"
    }
    if types.get("embedding") == "bf16":
        del types["embedding"]
    return types


def compressed(
    weights: Any, activations: Any = None, ignore: Any = ("lm_head",), **more: Any
) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": group},
        "ignore": list(ignore),
        **more,
    }


def modelopt(algorithm: str, **more: Any) -> dict[str, Any]:
    return {"quant_method": "modelopt", "quant_algo": algorithm, "producer": {"name": "modelopt"}, **more}


CASES = {
    "none": (None, DENSE, {"weights": "bf16"}),
    "fp8 block (DeepSeek-V3)": (
        {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
        },
        LATENT,
        {"weights": "fp8-block", "head": "bf16", "activation": "fp8"},
    ),
    "fp8 per tensor (Devstral 2)": (
        {
            "quant_method": "fp8",
            "activation_scheme": "static",
            "weight_block_size": None,
            "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"],
        },
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8"},
    ),
    "fp8, router named like a matrix (MiniMax-M2)": (
        {
            "quant_method": "fp8",
            "fmt": "float8_e4m3fn",
            "weight_block_size": [128, 128],
            "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"],
        },
        MOE,
        {"weights": "fp8-block", "head": "bf16", "activation": "fp8"},
    ),
    "fbgemm_fp8, attention and outer layers kept (Llama-3.1-405B-FP8)": (
        {
            "quant_method": "fbgemm_fp8",
            "activation_scale_ub": 1200.0,
            "modules_to_not_convert": [
                "lm_head",
                "model.layers.0.mlp.down_proj",
                "model.layers.0.mlp.gate_proj",
                "model.layers.0.mlp.up_proj",
                *(f"model.layers.{layer}.self_attn.{part}_proj" for layer in range(8) for part in "qkvo"),
            ],
        },
        DENSE,
        {"weights": "fp8", "attention": "bf16", "head": "bf16", "activation": "fp8"},
    ),
    "mxfp4 (gpt-oss)": (
        {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
        },
        MOE,
        {"weights": "mxfp4", "attention": "bf16", "head": "bf16"},
    ),
    "mxfp8": (
        {"quant_method": "mxfp8"},
        DENSE,
        {"weights": "fp8-mx", "head": "bf16", "activation": "fp8-mx"},
    ),
    "ModelOpt FP8 without quant_method": (
        {
            "quant_algo": "FP8",
            "config_groups": {"group_0": {"targets": ["Linear"]}},
            "ignore": ["lm_head"],
            "producer": {"name": "modelopt"},
            "kv_cache_scheme": "FP8",
        },
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8", "kv": "fp8"},
    ),
    "mixed compressed-tensors over an fp4 original (DeepSeek-V4 requantised)": (
        {
            "quant_method": "compressed-tensors",
            "format": "mixed-precision",
            "ignore": [],
            "config_groups": {
                "group_0": {
                    "targets": ["re:.*attn.*(fused_wqa_wkv|wq_b|wo_a|wo_b)$"],
                    "input_activations": TOKEN8,
                    "weights": {**FLOAT8, "strategy": "block", "block_structure": [128, 128]},
                },
                "group_1": {
                    "targets": ["re:.*ffn.*(gate|up|down)_proj$"],
                    "weights": FLOAT4,
                    "input_activations": FLOAT4,
                },
            },
        },
        [["compressed_attention", "moe"]] * 4,
        {"weights": "nvfp4", "attention": "fp8-block", "head": "bf16", "activation": "nvfp4"},
    ),
    "ModelOpt NVFP4, attention kept": (
        modelopt("NVFP4", ignore=["*self_attn*", "lm_head", "*mlp.gate.*"], kv_cache_scheme=None),
        MOE,
        {"weights": "nvfp4", "attention": "bf16", "head": "bf16", "activation": "nvfp4"},
    ),
    "ModelOpt NVFP4, linear attention kept, the most of attention (Qwen3.5)": (
        modelopt("NVFP4", ignore=["model.layers.*.linear_attn*", "lm_head", "mtp*"]),
        HYBRID,
        {"weights": "nvfp4", "attention": "bf16", "head": "bf16", "activation": "nvfp4"},
    ),
    "ModelOpt NVFP4, dense layers and shared experts kept": (
        modelopt(
            "NVFP4", ignore=["model.layers.0.mlp*", "model.layers.1.mlp*", "*.mlp.shared_experts*", "lm_head"]
        ),
        MIXED,
        {"weights": "nvfp4", "ffn": "bf16", "head": "bf16", "activation": "nvfp4"},
    ),
    "ModelOpt NVFP4, of attention only the output (DeepSeek-V3.1-NVFP4)": (
        modelopt(
            "NVFP4",
            ignore=[
                "lm_head",
                *(
                    f"model.layers.{layer}.self_attn.{name}"
                    for layer in range(8)
                    for name in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj")
                ),
            ],
        ),
        LATENT,
        {"weights": "nvfp4", "head": "bf16", "activation": "nvfp4"},
    ),
    "ModelOpt W4A8": (
        modelopt("W4A8_NVFP4_FP8"),
        DENSE,
        {"weights": "nvfp4", "head": "nvfp4", "activation": "fp8"},
    ),
    "ModelOpt W4A16 AWQ": (
        {
            "quantization": {
                "quant_algo": "W4A16_AWQ",
                "group_size": 128,
                "has_zero_point": False,
                "exclude_modules": ["lm_head"],
            }
        },
        DENSE,
        {"weights": "int4", "head": "bf16", "activation": "bf16"},
    ),
    "ModelOpt, KV cache only": (
        modelopt("NO_QUANT", kv_cache_scheme=KV8),
        DENSE,
        {"weights": "bf16", "head": "bf16", "kv": "fp8"},
    ),
    "ModelOpt, KV cache in int8 only": (
        modelopt("NO_QUANT", kv_cache_quant_algo="INT8"),
        DENSE,
        {"weights": "bf16", "head": "bf16", "kv": "int8"},
    ),
    "compressed-tensors, KV cache in int8": (
        compressed(FLOAT8, TOKEN8, kv_cache_scheme={"num_bits": 8, "type": "int"}),
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8", "kv": "int8"},
    ),
    "compressed-tensors, KV cache in int4": (
        compressed(FLOAT8, TOKEN8, kv_cache_scheme={"num_bits": 4, "type": "int"}),
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8", "kv": "int4-kv"},
    ),
    "ModelOpt MIXED_PRECISION (Nemotron 3)": (
        modelopt(
            "MIXED_PRECISION",
            kv_cache_scheme=KV8,
            ignore=[],
            quantized_layers={
                **{
                    f"backbone.layers.{layer}.mixer.{part}_proj": {"quant_algo": "FP8"}
                    for layer in (0, 4)
                    for part in ("in", "out")
                },
                **{
                    f"backbone.layers.{layer}.mixer.shared_experts.{part}_proj": {"quant_algo": "FP8"}
                    for layer in (1, 3, 5, 7)
                    for part in ("up", "down")
                },
                **{
                    f"backbone.layers.{layer}.mixer.experts.{expert}.{part}_proj": {
                        "quant_algo": "NVFP4",
                        "group_size": 16,
                    }
                    for layer in (1, 3, 5, 7)
                    for expert in range(3)
                    for part in ("up", "down")
                },
            },
        ),
        NEMOTRON,
        {
            "weights": "nvfp4",
            "attention": "bf16",
            "ffn": "fp8",
            "head": "bf16",
            "activation": "nvfp4",
            "kv": "fp8",
        },
    ),
    "fp8 with NVFP4 experts (DeepSeek-V4-NVFP4)": (
        {
            "quant_method": "fp8",
            "weight_block_size": [128, 128],
            "scale_fmt": "ue8m0",
            "moe_quant_algo": "NVFP4",
        },
        LATENT,
        {
            "weights": "nvfp4",
            "attention": "fp8-block",
            "ffn": "fp8-block",
            "head": "bf16",
            "activation": "nvfp4",
        },
    ),
    "int4 experts (Kimi K2)": (
        compressed(
            INT4,
            ignore=[
                "lm_head",
                "re:.*self_attn.*",
                "re:.*shared_experts.*",
                "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
            ],
            format="pack-quantized",
            kv_cache_scheme=None,
        ),
        [["latent_attention", "ffn"], *LATENT],
        {"weights": "int4-g32", "attention": "bf16", "ffn": "bf16", "head": "bf16", "activation": "bf16"},
    ),
    "mxfp4 experts (Kimi K3)": (
        compressed(
            MX4,
            ignore=["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*lm_head.*"],
            format="mxfp4-pack-quantized",
        ),
        LATENT,
        {"weights": "mxfp4", "attention": "bf16", "ffn": "bf16", "head": "bf16", "activation": "bf16"},
    ),
    "w8a8 float": (
        compressed(FLOAT8, TOKEN8, kv_cache_scheme=KV8),
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8", "kv": "fp8"},
    ),
    "w8a8 float, LM head not ignored": (
        compressed(FLOAT8, TOKEN8, ignore=[]),
        DENSE,
        {"weights": "fp8", "head": "fp8", "activation": "fp8"},
    ),
    "float in blocks": (
        compressed({**FLOAT8, "strategy": "block", "block_structure": [128, 128]}, TOKEN8),
        DENSE,
        {"weights": "fp8-block", "head": "bf16", "activation": "fp8"},
    ),
    "w8a8 int": (
        compressed(INT8, {**INT8, "strategy": "token", "dynamic": True}),
        DENSE,
        {"weights": "int8", "head": "bf16", "activation": "int8"},
    ),
    "w4a16 by channel": (
        compressed({**INT4, "strategy": "channel", "group_size": None}),
        DENSE,
        {"weights": "int4", "head": "bf16", "activation": "bf16"},
    ),
    "nvfp4 w4a4": (
        compressed(FLOAT4, {**FLOAT4, "dynamic": "local"}),
        DENSE,
        {"weights": "nvfp4", "head": "bf16", "activation": "nvfp4"},
    ),
    "named groups beside a class": (
        {
            "quant_method": "compressed-tensors",
            "ignore": ["lm_head"],
            "config_groups": {
                "group_0": {"targets": ["Linear"], "weights": FLOAT8, "input_activations": TOKEN8},
                "group_1": {
                    "targets": ["re:.*experts\\.\\d+\\.(gate|up|down)_proj"],
                    "weights": FLOAT4,
                    "input_activations": FLOAT4,
                },
            },
        },
        LATENT,
        {"weights": "nvfp4", "attention": "fp8", "ffn": "fp8", "head": "bf16", "activation": "nvfp4"},
    ),
    "awq": (
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
        DENSE,
        {"weights": "int4", "head": "bf16", "activation": "bf16"},
    ),
    "gptq": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": True},
        DENSE,
        {"weights": "awq-g32", "head": "bf16", "activation": "bf16"},
    ),
    "gptq, 8 bit in groups": (
        {"quant_method": "gptq", "bits": 8, "group_size": 128},
        DENSE,
        {"weights": "int8-g128", "head": "bf16", "activation": "bf16"},
    ),
    "bitsandbytes, double quantisation": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        DENSE,
        {"weights": "nf4-dq", "head": "bf16", "activation": "bf16"},
    ),
    "Quark, fp8 with int8 KV cache": (
        {
            "quant_method": "quark",
            "exclude": ["lm_head"],
            "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}},
            "kv_cache_quant_config": {"*k_proj": {"output_tensors": {"dtype": "int8"}}},
        },
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "bf16", "kv": "int8"},
    ),
    "Quark, fp8 with fp8 KV cache (Llama-3.1-FP8-KV)": (
        {
            "quant_method": "quark",
            "exclude": ["lm_head"],
            "global_quant_config": {
                "weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                "input_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
            },
            "kv_cache_quant_config": {"*k_proj": {"output_tensors": {"dtype": "fp8_e4m3"}}},
        },
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8", "kv": "fp8"},
    ),
    "Quark, mxfp4 with attention in fp8 (MI355X)": (
        {
            "quant_method": "quark",
            "exclude": ["lm_head"],
            "global_quant_config": {
                "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32},
                "input_tensors": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32},
            },
            "layer_quant_config": {
                "*self_attn*": {
                    "weight": {"dtype": "fp8_e4m3", "qscheme": "per_channel"},
                    "input_tensors": None,
                }
            },
        },
        MOE,
        {"weights": "mxfp4", "attention": "fp8", "head": "bf16", "activation": "mxfp4"},
    ),
    "AutoRound, some modules left out and LM head in 8 bit": (
        {
            "quant_method": "auto-round",
            "bits": 4,
            "group_size": 128,
            "data_type": "int",
            "extra_config": {
                **{f"model.layers.{layer}.self_attn": {"bits": 16} for layer in range(8)},
                "lm_head": {"bits": 8},
            },
        },
        DENSE,
        {"weights": "int4", "attention": "bf16", "head": "int8", "activation": "bf16"},
    ),
    "torchao by class": (
        {
            "quant_method": "torchao",
            "quant_type": {
                "default": {"_type": "Float8DynamicActivationFloat8WeightConfig", "_data": {}, "_version": 1}
            },
        },
        DENSE,
        {"weights": "fp8", "head": "bf16", "activation": "fp8"},
    ),
    "torchao by function": (
        {
            "quant_method": "torchao",
            "quant_type": "int4_weight_only",
            "quant_type_kwargs": {"group_size": 64},
        },
        DENSE,
        {"weights": "int4-g64", "head": "bf16", "activation": "bf16"},
    ),
    "MLX, 4 bit but for the LM head and a module left out": (
        {"group_size": 64, "bits": 4, "lm_head": {"bits": 6}, "model.layers.0.mlp.down_proj": False},
        DENSE,
        {"weights": "int4-g64", "embedding": "int4-g64", "head": "int6-g64", "activation": "bf16"},
    ),
    "gptq, 8 bit with LM head, attention left out": (
        {"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": True, "dynamic": {"-:.*attn.*": {}}},
        DENSE,
        {"weights": "int8", "attention": "bf16", "head": "int8", "activation": "bf16"},
    ),
    "gptq of some modules": (
        {
            "quant_method": "gptq",
            "bits": 4,
            "modules_in_block_to_quantize": [["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]],
        },
        DENSE,
        {"weights": "int4", "attention": "bf16", "head": "bf16", "activation": "bf16"},
    ),
    "bitsandbytes, 4 bit": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        DENSE,
        {"weights": "nf4", "head": "bf16", "activation": "bf16"},
    ),
    "bitsandbytes, 8 bit": (
        {"load_in_8bit": True, "llm_int8_skip_modules": None},
        DENSE,
        {"weights": "int8", "head": "bf16", "activation": "int8"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_classes_of_published_forms(name: str) -> None:
    quantisation, layers, expected = CASES[name]
    shared = "ffn" in expected and "moe" in layers[-1]
    assert found({"dtype": "bfloat16", "quantization_config": quantisation}, layers, shared) == expected


def test_every_type_is_in_the_library() -> None:
    library = load_library()
    for _, _, expected in CASES.values():
        for kind, name in expected.items():
            library.datatype(name, {"activation": "activations", "kv": "kv"}.get(kind, "weights"))
    assert library.datatype("Q4_K_M", "weights").id == "q4_k_m"
    assert library.datatype("F16", "weights").id == "fp16"


def test_experts_are_read_no_faster_than_their_weights_are_widened() -> None:
    """In 16-bit products of 4-bit weights the same bytes a second on H100 and H200, whose memory is faster.

    No limit where memory is slower, where weights are not narrower, and where products run in their format.
    """

    def figures(chip: str, dtype: str, **fields: Any) -> tuple[float, float]:
        made = estimate(
            model="gpt-oss-120b",
            accelerator=chip,
            tp=8,
            weights_dtype=dtype,
            input_tokens=1000,
            output_tokens=100,
            concurrency=8,
            **fields,
        )
        memory = made["efficiency.fraction.moe_bandwidth"].value * made["hardware.memory_bandwidth"].value
        return float(made["efficiency.rate.moe_bytes"].value), float(memory)

    rates = {
        (chip, dtype): figures(chip, dtype, experts_dtype=dtype)
        for chip in ("h100-sxm", "h200-sxm")
        for dtype in ("mxfp4", "int4")
    }
    assert len({reached for reached, _ in rates.values()}) == 1
    assert all(reached < memory for reached, memory in rates.values())
    for chip, dtype in (("h200-sxm", "bf16"), ("b200-sxm", "mxfp4"), ("h20-sxm", "fp8"), ("l40s", "int4")):
        reached, memory = figures(chip, dtype, experts_dtype=dtype)
        assert reached == memory, (chip, dtype)
    early = figures("h200-sxm", "int4", experts_dtype="int4", engine_release="before 2025-12")[0]
    assert early < rates["h200-sxm", "int4"][0]


def test_mlx_states_it_at_the_top() -> None:
    """Experts are called switch_mlp there."""
    data = {
        "quantization": {"group_size": 64, "bits": 4, "model.layers.3.mlp.switch_mlp.up_proj": {"bits": 8}}
    }
    found = kept(Config("config.json", "qwen3_moe", data), MOE, experts=8, expert_size=512)
    assert found.choices["weights_dtype"].value == found.choices["head_dtype"].value == "int4-g64"
    assert found.choices["file"].value == "MLX"
    assert found.layers[3] == ("attention", "moe_int8-g64")
    assert found.blocks["moe_int8-g64"].stored == {"expert_up": "int8-g64"}


def test_sidecar_alone() -> None:
    """Some checkpoints state nothing in config.json."""
    sidecar = {
        "quantization": {
            "quant_algo": "NVFP4",
            "kv_cache_quant_algo": "FP8",
            "group_size": 16,
            "exclude_modules": ["lm_head", *(f"model.layers.{layer}.mlp.gate" for layer in range(8))],
        }
    }
    assert found({}, MOE, sidecar=sidecar) == {
        "weights": "nvfp4",
        "head": "bf16",
        "activation": "nvfp4",
        "kv": "fp8",
    }


def test_two_files_that_contradict_each_other_are_refused() -> None:
    """One may say less than the other."""
    stated = {"quantization_config": modelopt("NVFP4", ignore=["lm_head"], kv_cache_scheme=KV8)}

    def read(**more: Any) -> dict[str, str]:
        return found(stated, DENSE, sidecar={"quantization": {"exclude_modules": ["lm_head"], **more}})

    alone = found(stated, DENSE)
    assert read(quant_algo="NVFP4", kv_cache_quant_algo="FP8") == alone
    assert read(quant_algo="NVFP4") == alone
    with pytest.raises(InputError, match=r"NVFP4, KV cache fp8; but hf_quant_config.json: .*FP8, KV cache"):
        read(quant_algo="FP8")
    with pytest.raises(InputError, match=r"NVFP4, KV cache fp8; but hf_quant_config.json.* KV cache int8"):
        read(quant_algo="NVFP4", kv_cache_quant_algo="INT8")


def test_expert_dtype_beside_the_block() -> None:
    """DeepSeek-V4 keeps its routed experts in mxfp4 and says so outside of quantization_config."""
    data = {
        "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }
    assert found(data, LATENT, shared=True) == {
        "weights": "mxfp4",
        "attention": "fp8-block",
        "ffn": "fp8-block",
        "head": "bf16",
        "activation": "fp8",
    }


def test_nested_config_is_seen_from_the_decoder() -> None:
    """quantization_config may stand at the top or in text_config; the 16-bit type likewise."""
    top = {
        "torch_dtype": "float16",
        "text_config": {"num_hidden_layers": 8},
        "quantization_config": {"quant_method": "awq", "bits": 4},
    }
    for data in (
        top,
        {
            **top,
            "quantization_config": None,
            "text_config": {"quantization_config": top["quantization_config"]},
        },
    ):
        text = Config("config.json", "llava", data).section("text_config", "llama")
        classes = {name: choice.value for name, choice in choices(text, DENSE).items()}
        ends = {"head_dtype": "fp16", "embedding_dtype": "fp16"}
        assert classes == {"weights_dtype": "int4", "activation_dtype": "fp16"} | ends


def test_matrices_that_are_kept_apart_are_named_in_their_block() -> None:
    """A class has the data type of most of its weights; layers that differ are of a kind of their own."""
    ignored = ["lm_head", "re:.*self_attn\\.o_proj", "model.layers.0.mlp"]
    config = Config("config.json", "llama", {"quantization_config": modelopt("FP8", ignore=ignored)})
    found = kept(config, DENSE)
    assert found.layers == [("attention", "ffn_bf16"), *[("attention", "ffn")] * 7]
    assert {name: block.stored for name, block in found.blocks.items()} == {
        "attention": {"o": "bf16"},
        "ffn": {},
        "ffn_bf16": {"gate": "bf16", "up": "bf16", "down": "bf16"},
    }


def test_rare_kinds_of_layers_count_as_the_most_common() -> None:
    """A checkpoint that keeps every layer otherwise would make a workbook of nothing but blocks."""
    parts = [[f"model.layers.{layer}.self_attn.{part}_proj" for part in "qkvo"[:layer]] for layer in range(5)]
    ignored = [name for names in parts for name in names]
    config = Config("config.json", "llama", {"quantization_config": modelopt("FP8", ignore=ignored)})
    found = kept(config, DENSE)
    assert len({name for layer in found.layers for name in layer if "attention" in name}) == MOST_KINDS
    assert found.layers.count(("attention", "ffn")) >= 4


def test_dense_ffn_beside_experts_is_told_from_them() -> None:
    """Gemma 4: mlp is the dense FFN, the experts stand beside it."""
    ignored = ["lm_head", "model.language_model.layers.*.mlp*", "model.language_model.layers.*.self_attn*"]
    config = Config("config.json", "gemma4", {"quantization_config": modelopt("NVFP4", ignore=ignored)})
    found = kept(config, MOE, shared=True, branch_norms=1, experts=8, expert_size=512).choices
    assert {name: choice.value for name, choice in found.items()} | {"activation_dtype": ""} == {
        "weights_dtype": "nvfp4",
        "ffn_dtype": "bf16",
        "attention_dtype": "bf16",
        "head_dtype": "bf16",
        "embedding_dtype": "bf16",
        "activation_dtype": "",
    }


def test_a_tied_head_is_quantised_as_the_embedding_is() -> None:
    """The checkpoint holds one matrix, which a scheme of linear layers does not name."""
    config = Config("config.json", "llama", {"quantization_config": modelopt("FP8")})
    found = kept(config, DENSE, tied_embeddings=1).choices
    assert found["head_dtype"].value == "bf16" and "embedding_dtype" not in found


def test_a_file_without_a_list_of_what_is_left_out_says_so() -> None:
    found = choices(Config("config.json", "llama", {"quantization_config": modelopt("FP8")}), DENSE)
    assert "no list of modules left out" in found["head_dtype"].source
    listed = {"quantization_config": modelopt("FP8", ignore=["lm_head"])}
    found = choices(Config("config.json", "llama", listed), DENSE)
    assert "no list" not in found["head_dtype"].source


def test_a_class_partly_left_out_has_the_type_of_its_majority_and_says_so() -> None:
    ignored = [f"model.layers.{layer}.self_attn" for layer in range(3)]
    config = Config("config.json", "llama", {"quantization_config": modelopt("FP8", ignore=ignored)})
    classes, layers = choices(config, DENSE), kept(config, DENSE).layers
    assert layers.count(("attention_bf16", "ffn")) == 3
    assert "attention_dtype" not in classes
    assert "38% of attention is in 16 bit" in classes["weights_dtype"].source
    ignored += [f"model.layers.{layer}.self_attn" for layer in (3, 4)]
    config = Config("config.json", "llama", {"quantization_config": modelopt("FP8", ignore=ignored)})
    attention = choices(config, DENSE)["attention_dtype"]
    assert attention.value == "bf16"
    assert "38% of attention is in fp8" in attention.source


@pytest.mark.parametrize(
    ("quantisation", "field", "supported"),
    [
        ({"quant_method": "hqq"}, "quantization_config.quant_method", "compressed-tensors"),
        ({"quant_method": "quark"}, "global_quant_config", "mapping"),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp6_e3m2"}}},
            "global_quant_config.weight.dtype",
            "int4",
        ),
        ({"quant_method": "auto-round", "bits": 2}, "bits", "4 or 8"),
        ({"quant_method": "torchao", "quant_type": "uintx"}, "quant_type", "float8weightonly"),
        ({"quant_method": "torchao"}, "quant_type", "its class"),
        ({"bits": 2, "group_size": 64}, "bits", "8 bit in groups of 32"),
        ({"quant_method": None}, "quantization_config.quant_method", "bitsandbytes"),
        ({"quant_method": 8}, "quantization_config.quant_method", "text"),
        ([], "quantization_config", "mapping"),
        ("fp8", "quantization_config", "mapping"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "weight_block_size", "[128, 128]"),
        ({"quant_method": "fp8", "weight_block_size": float("nan")}, "weight_block_size", "list"),
        ({"quant_method": "fp8", "fmt": "e5m2"}, "fmt", "e4m3"),
        ({"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, "modules_to_not_convert", "list"),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["re:(?!x)(.*)*x"]},
            "modules_to_not_convert",
            "safely",
        ),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["re:[x"]},
            "modules_to_not_convert",
            "regular expression",
        ),
        ({"quant_method": "awq", "bits": 3}, "bits", "4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 48}, "group_size", "128"),
        ({"quant_method": "gptq", "bits": 2}, "bits", "4 or 8"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down.*": {"bits": 8}}}, "dynamic", "leave out"),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit", "load_in_8bit"),
        (modelopt("FP6"), "quant_algo", "NVFP4"),
        (modelopt("NVFP4", kv_cache_quant_algo="NVFP4"), "kv_cache_quant_algo", "FP8"),
        (
            modelopt("NVFP4", kv_cache_scheme={"num_bits": 4, "type": "float"}),
            "kv_cache_scheme",
            "num_bits 8",
        ),
        (modelopt("MIXED_PRECISION"), "quantized_layers", "mapping"),
        (
            modelopt("MIXED_PRECISION", quantized_layers={"lm_head": {"quant_algo": "INT3"}}),
            "quantized_layers.lm_head.quant_algo",
            "NVFP4",
        ),
        (compressed({**INT4, "num_bits": 3}), "weights.num_bits", "4 or 8"),
        (compressed({**FLOAT4, "group_size": 64}), "weights.group_size", "16"),
        (compressed(FLOAT8, {**TOKEN8, "num_bits": 6}), "input_activations.num_bits", "8"),
        (compressed(FLOAT8, sparsity_config={"format": "sparse-24-bitmask"}), "sparsity_config", "dense"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, "config_groups", "mapping"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"targets": ["Conv1D"], "weights": INT8}},
            },
            "targets",
            "Linear",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_field(quantisation: Any, field: str, supported: str) -> None:
    with pytest.raises(InputError) as error:
        found({"quantization_config": quantisation}, DENSE)
    assert field in str(error.value)
    assert supported in str(error.value)


@pytest.mark.exhaustive
def test_any_json_ends_in_an_answer_or_an_input_error() -> None:
    """Every field of every form replaced by values of the wrong kind."""
    values: list[Any] = [None, True, -1, 10**30, 0.5, float("nan"), "", "x", [], [None], ["*"], {}, {"x": 1}]

    def replaced(data: Any) -> Iterator[Any]:
        if isinstance(data, dict):
            for key in list(data):
                for value in values:
                    yield {**data, key: value}
                yield from ({**data, key: inner} for inner in replaced(data[key]))

    for quantisation, layers, _ in CASES.values():
        for data in replaced(json.loads(json.dumps(quantisation))):
            with suppress(InputError):
                found({"quantization_config": data}, layers[:2])
