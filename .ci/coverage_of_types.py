"""Which text-generating types of the class library are answered: by a reader of ours, from code, or not.

Run by hand; needs torch and transformers: python .ci/coverage_of_types.py [TYPE ...]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import warnings
from collections import Counter
from typing import Any

from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.from_code import recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.huggingface.other_kinds import refuse_other_kinds

READER, CODE, OTHER, REFUSED = "by a reader", "from code", "refused by what it is", "refused otherwise"
_SECTIONS = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
_TEXT = {"text_config": {"rope_parameters": _SECTIONS}}
_HEAD = {"head_dim": 128}
_HYBRID = {"layer_types": ["linear_attention", "full_attention"] * 16}
_INDEXED = {
    "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048,
    "indexer_compress_ratio": 16,
}
_ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 1e4}
_COMPASS = {"rope_parameters": {"full_attention": _ROPE}}
VALID: dict[str, dict[str, Any]] = {
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_attention_heads": 16}},
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "cohere_compass": {"text_config": _COMPASS},
    "cohere_compass_text": _COMPASS,
    "dbrx": {"attn_config": {"rope_theta": 5e5, "kv_n_heads": 8, "clip_qkv": 8}},
    "dots1": {"n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2},
    "glm46v": _TEXT, "glm4v": _TEXT, "glmga": _TEXT,
    "granitemoehybrid": _HYBRID,
    "hunyuan_v1_dense": _HEAD, "hunyuan_v1_moe": _HEAD, "hunyuan_vl": {"text_config": _HEAD | {"rope_parameters": _ROPE | {"mrope_section": [16, 16, 16, 16]}}},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 8},
    "chameleon": {"vocabulary_map": {"<image>": 4}},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense"] + ["sparse"] * 31, "num_experts_per_tok": 6, "n_routed_experts": 64, "n_shared_experts": 2}},
    "granite4_vision": {"downsample_rate": "4/8", "deepstack_layer_map": [[-19, 9], [-13, 6]]},
    "perception_lm": {"vision_config": {"architecture": "vit_base_patch16_224", "model_args": {"embed_dim": 768}}},
    "step3p7": {"text_config": {"layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 11 + ["full_attention"], "sliding_window": 512}},
    "qwen4_exp": {"text_config": _INDEXED}, "qwen4_exp_text": _INDEXED,
}
"""Fields to add where the defaults of a class are none that it runs with."""


def config_of(model_type: str) -> dict[str, Any]:
    """The defaults of a class, as a config.json."""
    import transformers

    fields = VALID.get(model_type, {})
    config = transformers.CONFIG_MAPPING[model_type](**fields).to_dict()
    data: dict[str, Any] = json.loads(json.dumps(config, default=str))
    return data | {"model_type": model_type}


def answer(model_type: str) -> tuple[str, str, str]:
    """A type, how it is answered, and what was counted or why it is refused."""
    if model_type in FAMILIES:
        return model_type, READER, ""
    signal.alarm(120)
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        refuse_other_kinds({"model_type": model_type}, model_type)
    except InputError as error:
        return model_type, OTHER, str(error)
    try:
        config = config_of(model_type)
        seen = recorder.record({"config": config, "folder": ""})
        architecture = read_recording(seen, Config(model_type, model_type, config))
        ir = build_ir(Model(id="m", name="m", source="", architecture=architecture))
        counts = describe(ir, 61, False)
    except Exception as error:
        return model_type, REFUSED, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    kv = counts["kv_bytes_per_token"]["all_layers"]
    return model_type, CODE, f"{counts['parameters']['total'] / 1e9:.2f}B, {kv} KV bytes per token"


def main() -> None:
    """Print every type, then the counts."""
    from transformers.models.auto import modeling_auto

    found = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES | modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    counts: Counter[str] = Counter()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for model_type, how, why in pool.imap(answer, sys.argv[1:] or sorted(found), chunksize=1):
            counts[how] += 1
            print(f"{model_type:28} {how:22} {why}", flush=True)
    decoders = counts.total() - counts[OTHER]
    answered = counts[READER] + counts[CODE]
    print(counts, f"{answered} of {decoders} decoders, {answered / max(decoders, 1):.1%}")


if __name__ == "__main__":
    main()
