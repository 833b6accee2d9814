"""The IR in whole numbers: equal to what the real model classes give, and every fact with where it comes from."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest

from mantile.estimation import Estimate
from mantile.ir.counts import describe, kv_bytes_per_token, parameters, prefill_flops, tensor_list
from mantile.ir.dense import build_ir
from mantile.ir.modules import ModelGraph
from mantile.library.architecture import Architecture, Model
from mantile.library.errors import InputError
from mantile.library.huggingface import FAMILIES, parse_config, read_config
from mantile.library.models import load_model, model_ids

# Counted on the model classes of transformers 5.23 without weights: parameters, parameters without the input embedding (all where
# it is tied), KV bytes per token in bf16, the same beyond the window, linear and square attention FLOPs at 128 tokens, tensors.
COUNTED = (
    ("llama-2-7b", 6_738_415_616, 6_607_343_616, 524_288, 524_288, 1_691_411_808_256, 8_589_934_592, 291),
    ("llama-2-70b", 68_976_648_192, 68_714_504_192, 327_680, 327_680, 17_590_575_431_680, 42_949_672_960, 723),
    ("llama-3.1-8b", 8_030_261_248, 7_504_924_672, 131_072, 131_072, 1_921_192_558_592, 8_589_934_592, 291),
    ("llama-3.1-70b", 70_553_706_496, 69_503_033_344, 327_680, 327_680, 17_792_438_894_592, 42_949_672_960, 723),
    ("llama-3.1-405b", 405_853_388_800, 403_752_042_496, 516_096, 516_096, 103_359_461_720_064, 135_291_469_824, 1_137),
    ("llama-3.2-1b", 1_235_814_400, 1_235_814_400, 32_768, 32_768, 316_351_184_896, 2_147_483_648, 146),
    ("llama-3.2-3b", 3_212_749_824, 3_212_749_824, 114_688, 114_688, 822_419_128_320, 5_637_144_576, 254),
    ("llama-3.3-70b", 70_553_706_496, 69_503_033_344, 327_680, 327_680, 17_792_438_894_592, 42_949_672_960, 723),
    ("mistral-7b", 7_241_732_096, 7_110_660_096, 131_072, 0, 1_820_260_827_136, 8_589_934_592, 291),
    ("mistral-7b-v0.3", 7_248_023_552, 7_113_805_824, 131_072, 131_072, 1_821_066_133_504, 8_589_934_592, 291),
    ("qwen2.5-7b", 7_615_616_512, 7_070_619_136, 57_344, 57_344, 1_809_993_170_944, 6_576_668_672, 339),
    ("qwen3-8b", 8_190_735_360, 7_568_405_504, 147_456, 147_456, 1_937_432_903_680, 9_663_676_416, 399),
    ("qwen3-32b", 32_762_123_264, 31_984_210_944, 262_144, 262_144, 8_187_784_724_480, 34_359_738_368, 707),
    ("tinyllama-1.1b", 1_100_048_384, 1_034_512_384, 22_528, 22_528, 264_811_577_344, 2_952_790_016, 201),
    ("starcoder2-7b", 7_173_923_840, 7_173_923_840, 65_536, 0, 1_836_098_519_040, 9_663_676_416, 515),
    ("qwen3-0.6b", 596_049_920, 596_049_920, 114_688, 114_688, 152_572_002_304, 3_758_096_384, 310),
)
GIVEN: dict[str, dict[str, Any]] = {
    "starcoder2-7b": {
        "model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432, "num_attention_heads": 36,
        "num_hidden_layers": 32, "num_key_value_heads": 4, "sliding_window": 4096, "vocab_size": 49152, "use_bias": True,
    },
    "qwen3-0.6b": {
        "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "vocab_size": 151936, "tie_word_embeddings": True, "attention_bias": False,
    },
}  # fmt: skip
DENSE = ("llama", "mistral", "qwen2", "qwen3", "starcoder2")


def graph_of(architecture: Architecture, name: str = "model") -> ModelGraph:
    """The IR of an architecture."""
    return build_ir(Model(id=name, name=name, source="test", architecture=architecture))


def counted(ir: ModelGraph) -> tuple[int, ...]:
    """The figures of the table above."""
    size, kv, flops = parameters(ir), kv_bytes_per_token(ir), prefill_flops(ir, 128)
    return (size["total"], size["active_without_input_embedding"], kv["all_layers"], kv["beyond_window"], flops["linear"],
            flops["attention_full_square"], sum(tensor["count"] for tensor in tensor_list(ir)))  # fmt: skip


@pytest.mark.parametrize(("name", "figures"), [(name, figures) for name, *figures in COUNTED])
def test_a_model_is_exactly_as_large_as_its_class_says(name: str, figures: list[int]) -> None:
    """Exactly, not nearly: one bias or norm too few shows."""
    ir = graph_of(parse_config(GIVEN[name], name)) if name in GIVEN else build_ir(load_model(name))
    assert counted(ir) == tuple(figures)


def test_every_model_we_ship_is_in_the_table() -> None:
    """A model without a counted total would be unproven."""
    assert set(model_ids()) | set(GIVEN) == {name for name, *_ in COUNTED}


def test_the_graph_of_an_estimate_counts_the_same_as_the_ir(make: Callable[..., Estimate]) -> None:
    """Parameters by tensors and by the architecture's own formula, in the live graph."""
    for name, total, *_ in COUNTED:
        if name in GIVEN:
            continue
        made = make(model=name, tp=1, accelerator="b200-sxm")
        values = made.values()
        assert values[made.figure("tensors.parameters")] == total
        assert values[made.figure("model.parameters")] == total


def test_description_and_modules_are_those_of_the_model() -> None:
    """The public keys, and modules in execution order."""
    ir = graph_of(parse_config(GIVEN["starcoder2-7b"], "starcoder2"))
    told = describe(ir, tokens=16, with_tensors=True)
    assert set(told) == {
        "id",
        "model_type",
        "parameters",
        "layers",
        "kv_bytes_per_token",
        "facts",
        "modules",
        "prefill_flops",
        "tensors",
    }
    assert [module["id"] for module in told["modules"]] == [
        "embedding", "attention_norm", "qkv", "rope", "attention", "output", "ffn_norm", "ffn_up", "activation", "ffn_down",
        "final_norm", "lm_head",
    ]  # fmt: skip
    assert sum(module["count"] for module in told["modules"]) == 9 * 32 + 3
    assert told["prefill_flops"]["attention_full_square"] == 4 * 16 * 16 * 4608 * 32
    assert sum(prod(tensor["shape"]) * tensor["count"] for tensor in told["tensors"]) == told["parameters"]["total"]
    assert json.loads(json.dumps(told)) == told
    qwen3 = build_ir(load_model("qwen3-8b"))
    assert [module.id for module in qwen3.modules][2:5] == ["qkv", "qk_norm", "rope"]


# --- the whole reference table ----------------------------------------------------------------------------------------------


def test_every_dense_model_of_the_reference_table_is_reproduced(shared_data: Path) -> None:
    """Read from its config.json: totals, tensors by name and shape, KV bytes and FLOPs; prints model, figure, equal."""
    with (shared_data / "models_truth.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model_type"] in DENSE and row["status"] == "ok"]
    tensors = json.loads((shared_data / "models_tensors.json").read_text(encoding="utf-8"))
    assert len(rows) >= 17
    table, wrong = [], []
    for row in rows:
        ir = graph_of(read_config(shared_data / "configs" / f"{row['model_id'].replace('/', '--')}.json"))
        size, kv, flops, listed = parameters(ir), kv_bytes_per_token(ir), prefill_flops(ir, 128), tensor_list(ir)
        long = prefill_flops(ir, 2048)
        compared: dict[str, tuple[object, object]] = {
            "layers": (ir.model.architecture.layers.value, int(row["layers"])),
            "parameters": (size["total"], int(row["total_params"])),
            "active parameters": (size["active"], int(row["active_params"])),
            "without input embedding": (size["active_without_input_embedding"], int(row["active_text_no_input_emb"])),
            "embedding": (size["embedding"], int(row["input_emb_params"])),
            "tied": (ir.model.architecture.tied_embeddings.value, int(row["tied"] == "True")),
            "KV bytes": (kv["all_layers"], int(row["kv_bytes_per_token_bf16"])),
            "KV bytes beyond window": (kv["beyond_window"], int(row["kv_bytes_per_token_beyond_window"])),
            "linear FLOPs at 128": (flops["linear"], int(row["linear_flops_seq128"])),
            "attention FLOPs at 128": (flops["attention_full_square"], int(row["attn_core_flops_seq128"])),
            "attention FLOPs at 2048": (long["attention_full_square"], int(row["attn_core_flops_seq2048"])),
            "FLOPs at 2048": (long["linear"] + long["attention_full_square"] + long["other"], int(row["flops_seq2048"])),
            "tensors": (sum(tensor["count"] for tensor in listed), int(row["n_ckpt_tensors"])),
            "tensor names and shapes": (sorted((tensor["name"], tensor["shape"], tensor["count"]) for tensor in listed),
                                        sorted((name, shape, count) for name, shape, count in tensors[row["model_id"]])),
        }  # fmt: skip
        for figure, (ours, theirs) in compared.items():
            table.append(f"{row['model_id']:<42} {figure:<26} {'equal' if ours == theirs else 'DIFFERS'}")
            if ours != theirs:
                wrong.append((row["model_id"], figure, ours, theirs))
    print("\n" + "\n".join(table))
    assert not wrong


def test_our_models_hold_the_facts_of_their_configs(shared_data: Path) -> None:
    """models/ was entered from these files; values must not drift from them."""
    compared = 0
    for name in model_ids():
        model = load_model(name)
        file = shared_data / "configs" / f"{model.hub_id.replace('/', '--')}.json"
        if file.is_file():
            assert model.architecture == read_config(file), name
            compared += 1
    assert compared >= 12


def test_every_other_architecture_of_the_reference_table_is_refused(shared_data: Path) -> None:
    """A config we do not cover is never read as one we do."""
    for file in sorted((shared_data / "configs").glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.get("model_type") not in FAMILIES:
            with pytest.raises(InputError, match=r"model_type '.*' is not supported; supported: llama, mistral"):
                parse_config(data, file.name)


# --- provenance -------------------------------------------------------------------------------------------------------------

MINIMAL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "vocab_size": 50,
}


@pytest.mark.parametrize(("family", "change", "fact", "value", "origin", "source"), [
    ("llama", {}, "head_dim", 16, "derived", "hidden_size ÷ num_attention_heads"),
    ("llama", {"head_dim": 24}, "head_dim", 24, "config", "head_dim"),
    ("llama", {"head_dim": None}, "head_dim", 16, "derived", "hidden_size ÷"),
    ("qwen3", {}, "head_dim", 128, "default", "qwen3 class default"),
    ("qwen3", {"head_dim": None}, "head_dim", 16, "derived", "hidden_size ÷"),
    ("llama", {}, "kv_heads", 4, "derived", "as many as attention heads"),
    ("llama", {"num_key_value_heads": None}, "kv_heads", 4, "derived", "as many as attention heads"),
    ("mistral", {"num_attention_heads": 16}, "kv_heads", 8, "default", "mistral class default"),
    ("mistral", {"num_key_value_heads": None}, "kv_heads", 4, "derived", "as many as attention heads"),
    ("starcoder2", {}, "kv_heads", 2, "default", "starcoder2 class default"),
    ("llama", {}, "tied_embeddings", 0, "default", "llama class default"),
    ("llama", {"tie_word_embeddings": True}, "tied_embeddings", 1, "config", "tie_word_embeddings"),
    ("starcoder2", {}, "tied_embeddings", 1, "default", "starcoder2 class default"),
    ("starcoder2", {"tie_word_embeddings": False}, "tied_embeddings", 0, "config", "tie_word_embeddings"),
    ("qwen2", {"num_key_value_heads": 2}, "qkv_bias", 1, "default", "always have a bias"),
    ("qwen2", {"num_key_value_heads": 2}, "output_bias", 0, "default", "no bias on the output projection"),
    ("llama", {}, "qkv_bias", 0, "default", "llama class default of attention_bias"),
    ("llama", {"attention_bias": True}, "output_bias", 1, "config", "attention_bias"),
    ("llama", {"mlp_bias": True}, "ffn_bias", 1, "config", "mlp_bias"),
    ("starcoder2", {}, "ffn_bias", 1, "default", "starcoder2 class default of use_bias"),
    ("starcoder2", {}, "norm_bias", 1, "default", "LayerNorm has a bias"),
    ("starcoder2", {}, "ffn_input_matrices", 1, "default", "plain FFN"),
    ("qwen3", {"num_key_value_heads": 2}, "qk_norm", 1, "default", "RMSNorm of every query and key head"),
    ("mistral", {"num_key_value_heads": 2}, "sliding_window", 4096, "default", "mistral class default"),
    ("mistral", {"num_key_value_heads": 2, "sliding_window": None}, "sliding_window", 0, "config", "sliding_window is null"),
    ("mistral", {"num_key_value_heads": 2, "sliding_window": 99}, "sliding_window", 99, "config", "sliding_window"),
    ("qwen2", {"num_key_value_heads": 2, "sliding_window": 99}, "sliding_window", 0, "default", "use_sliding_window is false"),
    ("qwen2", {"num_key_value_heads": 2, "sliding_window": 99, "use_sliding_window": True, "max_window_layers": 0},
    "sliding_window", 99,
     "config", "sliding_window"),
    ("starcoder2", {}, "sliding_window", 0, "default", "no sliding window"),
    ("llama", {"sliding_window": 99}, "sliding_window", 0, "default", "no sliding window"),
    ("llama", {}, "max_positions", 2048, "default", "llama class default"),
    ("llama", {}, "weights_dtype", "bf16", "default", "llama class default of torch_dtype"),
    ("llama", {"torch_dtype": "float16"}, "weights_dtype", "fp16", "config", "torch_dtype"),
    ("llama", {"dtype": "float16", "torch_dtype": "bfloat16"}, "weights_dtype", "fp16", "config", "dtype"),
    ("llama", {"quantization_config": {"quant_method": "fp8"}}, "weights_dtype", "fp8", "config", "quantization_config"),
    ("llama", {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "weights_dtype", "fp8-block",
    "config",
     "quantization_config"),
])  # fmt: skip
def test_a_fact_says_where_it_comes_from(
    family: str, change: dict[str, Any], fact: str, value: object, origin: str, source: str
) -> None:
    """A missing key is not null, defaults differ by class, and some biases are stated nowhere."""
    kv = {"num_key_value_heads": 2} if family in ("qwen2", "qwen3") else {}
    found = getattr(parse_config(MINIMAL | {"model_type": family} | kv | change, "config.json"), fact)
    assert (found.value, found.origin) == (value, origin)
    assert source in found.source


def test_tensors_follow_the_facts() -> None:
    """Tied heads are stored once; a bias adds its vectors; a plain FFN has no gate."""

    def names(family: str, **change: object) -> set[str]:
        config = MINIMAL | {"model_type": family, "num_key_value_heads": 2} | change
        return {
            tensor["name"].removeprefix("model.layers.{}.")
            for tensor in tensor_list(graph_of(parse_config(config, "config.json")))
        }

    plain = names("llama")
    assert names("llama", tie_word_embeddings=True) == plain - {"lm_head.weight"}
    assert names("llama", attention_bias=True) - plain == {f"self_attn.{part}_proj.bias" for part in "qkvo"}
    assert names("qwen2") - plain == {f"self_attn.{part}_proj.bias" for part in "qkv"}
    assert names("qwen3") - plain == {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}
    assert names("llama", mlp_bias=True) - plain == {f"mlp.{part}_proj.bias" for part in ("gate", "up", "down")}
    assert {name for name in names("starcoder2") if name.startswith("mlp.")} == {
        "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias",
    }  # fmt: skip
    assert plain == names("mistral")


def test_an_overridden_fact_says_what_it_was(make: Callable[..., Estimate]) -> None:
    """And the loaded model stays as it was."""
    made = make(overrides=[{"id": "model.layers", "value": 40, "reason": "half of it"}])
    fact = made.equations.ir.model.architecture.layers
    assert (fact.value, fact.origin) == (40, "override")
    assert fact.source == "half of it; was 80 (num_hidden_layers)"
    assert made.model.architecture.layers.value == 80
    assert made.equations.ir.facts.layers.status == "override"
