"""Types that have no reader of ours, with random dimensions: what is read of their classes against torch.

The counts of the other side are those of torch: parameters, the cache after a prompt, and FlopCounterMode.
"""

from __future__ import annotations

import copy
import json
import random
import warnings
from typing import Any

import pytest

from mantile.equations.plan import mentions
from mantile.estimates.estimate import estimate
from mantile.graph.quantity import Literal, Node
from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.ir.modules import MatMul, Recurrence
from mantile.library.architecture import Model
from mantile.library.from_code import process, recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.scenario import Scenario

TYPES = (
    "afmoe", "apertus", "arcee", "aria_text", "bamba", "biogpt", "bitnet", "bloom", "cohere2_moe", "ctrl",
    "cwm", "diffllama", "doge", "dots1", "emu3", "ernie4_5", "ernie4_5_moe", "exaone4",
    "exaone_moe", "falcon_h1", "flex_olmo", "flint", "fuyu", "git", "got_ocr2", "gpt-sw3", "gpt_neo",
    "gpt_neox_japanese", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoehybrid",
    "granitemoeshared", "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "hyperclovax",
    "internlm3", "iquestcoder", "jais2", "kolibri1", "lfm2", "lfm2_moe", "lfm3",
    "mellum", "minimax", "minimax_m3_vl_text", "moss_transcribe_diarize", "mpt", "nanochat", "olmo",
    "olmo_hybrid", "olmoe", "opt", "persimmon", "phi4_multimodal", "seed_oss", "smollm3", "solar_open",
    "vaultgemma", "xglm", "zaya",
)  # fmt: skip
STATED: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1], "mamba_n_heads": 4, "mamba_d_head": "auto", "mamba_chunk_size": 64},
    "granitemoehybrid": {
        "num_hidden_layers": 3,
        "layer_types": ["linear_attention", "linear_attention", "full_attention"],
        "mamba_n_heads": 4,
        "mamba_d_head": "auto",
        "mamba_chunk_size": 64,
    },
    "lfm2_moe": {"num_hidden_layers": 4, "layer_types": ["conv", "conv", "full_attention", "conv"]},
    "minimax": {"block_size": 61},
    "zaya": {"num_experts_per_tok": 1},
}
"""Fields that a type needs besides, or has other than `small_config` has them.

Chunks are as long as the prompt: what a class passes on between chunks is left out on purpose.
"""
TOKENS = 61
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.transformers,
    pytest.mark.skipif(not process.can_record(), reason="torch and transformers build the classes"),
]


def small_config(model_type: str) -> dict[str, Any]:
    """The defaults of a class with small random dimensions, the same in every run."""
    import transformers

    chance = random.Random(model_type)
    heads, size = chance.choice((4, 6, 8)), chance.choice((8, 12, 16))
    groups = chance.choice([count for count in (1, 2, heads // 2, heads) if heads % count == 0])
    layers, inner = chance.choice((3, 4, 5)), chance.choice((72, 88, 104))
    wanted = {
        **dict.fromkeys(("hidden_size", "n_embd", "d_model", "word_embed_proj_dim"), heads * size),
        **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), heads),
        **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), layers),
        **dict.fromkeys(("intermediate_size", "ffn_dim"), inner),
        **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 512),
        **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 6),
        **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace", "bos_token_id"), 1),
        **dict.fromkeys(("n_inner", "pad_token_id"), None),
        "num_key_value_heads": groups,
        "head_dim": size,
        "vocab_size": chance.choice((97, 101, 113)),
        "moe_intermediate_size": 26,
        "n_shared_experts": 1,
        "shared_intermediate_size": 34,
        "shared_expert_intermediate_size": 30,
        "num_experts_per_tok": 2,
        "sliding_window": 200,
        "global_attn_every_n_layers": 2,
        "eos_token_id": 2,
        "tie_word_embeddings": chance.random() < 0.5,
    }
    fields: dict[str, Any] = json.loads(
        json.dumps(transformers.CONFIG_MAPPING[model_type]().to_dict(), default=str)
    )
    fields |= {name: value for name, value in wanted.items() if name in fields} | {"model_type": model_type}
    lists = ("layer_types", "mlp_layer_types", "layers_block_type", "rope_parameters", "rope_scaling")
    plain = {
        name: value for name, value in fields.items() if name not in lists or not isinstance(value, list)
    }
    return plain | STATED.get(model_type, {})


def counted(config: dict[str, Any]) -> tuple[int, int, int]:
    """Parameters, FLOPs of a prompt, and bytes that a token leaves in the cache, as torch counts them."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    of_class = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            of_class, attn_implementation="eager", experts_implementation="batched_mm"
        ).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad(), torch.device("meta"):
        output = model(input_ids=torch.zeros(1, TOKENS, dtype=torch.long), use_cache=True)
    kept = 0
    for layer in getattr(output.past_key_values, "layers", None) or ():
        for name in ("keys", "values"):
            tensor = getattr(layer, name, None)
            kept += tensor.numel() * 2 // TOKENS if isinstance(tensor, torch.Tensor) else 0
    return sum(one.numel() for one in model.parameters()), counter.get_total_flops(), kept


@pytest.mark.parametrize("model_type", sorted({*TYPES[::6], *STATED}))
def test_a_type_without_reader_is_counted_as_torch_counts_it(model_type: str) -> None:
    """Parameters and KV bytes exactly, FLOPs within 1 %; what was read proves names and shapes by itself."""
    assert model_type not in FAMILIES
    config = small_config(model_type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total, flops, kept = counted(config)
        seen = recorder.record({"config": copy.deepcopy(config), "folder": ""})
    architecture = read_recording(seen, Config("config.json", model_type, config))
    ir = build_ir(Model(id="small", name="small", source="test", architecture=architecture))
    ours = describe(ir, TOKENS, False)
    assert ours["parameters"]["total"] == total
    assert ours["kv_bytes_per_token"]["all_layers"] == kept
    prefill = ours["prefill_flops"]
    counted_by_us = prefill["linear"] + prefill["attention_full_square"] + prefill["other"]
    assert abs(counted_by_us / flops - 1) < 0.01


HYBRIDS = ("bamba", "falcon_h1", "granitemoehybrid", "lfm2_moe", "lfm3", "minimax", "olmo_hybrid")


@pytest.mark.parametrize("model_type", HYBRIDS)
def test_ranks_share_what_a_mixer_with_a_state_is_made_of(model_type: str) -> None:
    """Its matrices, the state or the convolution's inputs that it keeps, and its products."""
    config = small_config(model_type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorder.record({"config": copy.deepcopy(config), "folder": ""})
    architecture = read_recording(seen, Config("config.json", model_type, config))
    ir = build_ir(Model(id="small", name="small", source="test", architecture=architecture))
    shared = [width.total for width in ir.widths]
    works = [module.operation for module in ir.modules if module.kind == "linear"]
    sizes = [
        size for work in works for name in ("inputs", "outputs", "state", "conv", "macs", "width")
        if isinstance(size := getattr(work, name, None), Node) and size is not ir.facts["hidden_size"]
    ]  # fmt: skip
    assert {type(work) for work in works} >= {MatMul, Recurrence}
    assert all(isinstance(size, Literal) or any(mentions(size, one) for one in shared) for size in sizes)


@pytest.mark.parametrize("model_type", ["olmo", "nanochat"])
def test_norms_without_weights_are_estimated(model_type: str) -> None:
    """A rank holds no vector of them."""
    config = small_config(model_type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorder.record({"config": copy.deepcopy(config), "folder": ""})
    architecture = read_recording(seen, Config("config.json", model_type, config))
    model = Model(id="small", name="small", source="test", architecture=architecture)
    fields = {"accelerator": "h100-sxm", "input_tokens": 300, "output_tokens": 100, "concurrency": 2}
    made = estimate(Scenario(model="small", **fields), model)
    assert made["tensors.final_vectors"].value == 0
    assert made.memory_per_accelerator is not None
