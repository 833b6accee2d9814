"""Architectures read from the code of a class: what is seen, what is refused, agreement with our readers."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_models import CONFIGS

from mantile.ir.build import build_ir
from mantile.ir.counts import caches, describe, kv_bytes_per_token, parameters
from mantile.library.architecture import Architecture, Model
from mantile.library.errors import InputError
from mantile.library.from_code import process, read_from_code, recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.unread import unknown_fields

RECORDED = Path(__file__).parent / "data" / "recorded_exaone_moe.json"
FAMILIES = Path(__file__).parent / "data" / "recorded_families.json"  # classes of CONFIGS, as seen
needs_classes = pytest.mark.skipif(
    not process.can_record(), reason="torch and transformers build the classes; a recording of one is here"
)
Fields = dict[str, Any]


@pytest.fixture
def recorded() -> tuple[Fields, Fields]:
    """A small config of EXAONE MoE, and what its class was seen to do."""
    data = json.loads(RECORDED.read_text(encoding="utf-8"))
    return data["config"], data["recording"]


def read(config: Fields, recording: Fields) -> Architecture:
    """A recording as an architecture."""
    return read_recording(recording, Config("config.json", config["model_type"], config))


def ir_of(architecture: Architecture) -> Any:
    """The modules of an architecture."""
    return build_ir(Model(id="small", name="small", source="test", architecture=architecture))


def test_layers_heads_windows_and_experts_are_seen(recorded: tuple[Fields, Fields]) -> None:
    """Counted by hand: 48 channels, 6 heads of 10 over 3 KV heads, 8 experts of 26, 2 of them a token."""
    architecture = read(*recorded)
    ir = ir_of(architecture)
    attention = 48 * (60 + 30 + 30) + 60 * 48 + 2 * 10 + 48
    dense = 3 * 48 * 88 + 48
    routed, shared = 3 * 48 * 26, 3 * 48 * 26
    total = 101 * 48 + 48 + 5 * attention + dense + 4 * (48 * 8 + 8 * routed + shared + 48)
    assert parameters(ir)["total"] == total
    assert parameters(ir)["active"] == total - 4 * 6 * routed
    assert kv_bytes_per_token(ir) == {"all_layers": 5 * 2 * 60, "beyond_window": 2 * 60}
    assert architecture.sequence() == [
        ("sliding", "ffn"),
        ("sliding", "moe"),
        ("sliding", "moe"),
        ("attention", "moe"),
        ("sliding", "moe"),
    ]
    assert architecture.value("tied_embeddings") == 1
    assert architecture.value("sliding_window") == 16
    assert {entry.get("sliding") for entry in caches(ir)} == {16, None}


def test_every_fact_says_that_it_was_seen(recorded: tuple[Fields, Fields]) -> None:
    """Provenance is the code of the class, and the field of the config that holds the number."""
    architecture = read(*recorded)
    assert {fact.origin for fact in architecture.facts.values()} == {"code"}
    assert "ExaoneMoeForCausalLM" in architecture.facts["expert_size"].source
    assert "moe_intermediate_size in the config" in architecture.facts["expert_size"].source


def test_it_is_written_as_a_document_and_read_back(recorded: tuple[Fields, Fields]) -> None:
    """Nothing but the document is needed afterwards."""
    architecture = read(*recorded)
    again = Architecture.model_validate(json.loads(architecture.model_dump_json()))
    assert describe(ir_of(again), 61, True) == describe(ir_of(architecture), 61, True)


def forget(seen: Fields, module: str) -> None:
    """As if a module had not run."""
    seen["events"] = [event for event in seen["events"] if event["module"] != module]
    next(one for one in seen["parameters"] if one["name"] == f"{module}.weight")["run"] = False


def between(seen: Fields) -> Fields:
    """A product outside the layers, after which the last layer runs on."""
    last = next(event for event in reversed(seen["events"]) if event["module"].startswith("model.layers.4."))
    seen["events"].append(
        next(event for event in seen["events"] if event["kind"] == "product") | {"module": "model.extra"}
    )
    return dict(last)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda config, seen: config.update(num_experts=16), "num_experts is 16"),
        (lambda config, seen: config.update(num_hidden_layers=6), "num_hidden_layers is 6"),
        (lambda config, seen: seen["lists"].clear(), "no list of layers"),
        (lambda config, seen: seen["caches"].pop(), "4 of its 5 layers have a cache"),
        (
            lambda config, seen: forget(seen, "model.layers.2.self_attn.k_proj"),
            "reads self_attn.k_proj.weight",
        ),
        (lambda config, seen: seen["events"].append(between(seen)), "runs between the layers"),
    ],
)
def test_what_would_be_a_guess_is_refused(recorded: tuple[Fields, Fields], change: Any, words: str) -> None:
    """The class must run with the dimensions that the config states, and nothing that it does may be lost."""
    config, seen = recorded
    change(config, seen)
    with pytest.raises(InputError, match=words):
        read(config, seen)


def test_without_the_libraries_the_way_out_is_named(
    recorded: tuple[Fields, Fields], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra, and what can be read without it."""
    monkeypatch.setattr("mantile.library.from_code.can_record", lambda: False)
    with pytest.raises(InputError, match=r"mantile\[transformers\].*llama"):
        read_from_code(Config("config.json", "exaone_moe", recorded[0]))


def test_a_type_that_nobody_has_is_refused_with_its_nearest(
    recorded: tuple[Fields, Fields], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in model_type, and the types of the library that are called alike."""
    answer = {"unknown": "transformers 5", "types": ["bert", "exaone4", "exaone_moe"]}
    monkeypatch.setattr("mantile.library.from_code.can_record", lambda: True)
    monkeypatch.setattr("mantile.library.from_code.record", lambda *_: answer)
    with pytest.raises(InputError, match=r"transformers 5 has no class of it \(it has exaone_moe, exaone4\)"):
        read_from_code(Config("config.json", "exaone_mo", recorded[0]))


def test_key_heads_that_do_not_divide_the_heads_are_refused() -> None:
    """Five KV heads of six: no class runs it."""
    config = {**CONFIGS["llama"], "num_attention_heads": 6, "num_key_value_heads": 5, "head_dim": 8}
    with pytest.raises(InputError, match=r"kv_heads: 5 .* does not divide the 6 attention heads"):
        parse_config(config, "config.json")


def test_fields_of_labels_and_angles_are_known_as_a_whole() -> None:
    """A class knows id2label, not each label; of a section it knows each field."""
    data = {"id2label": {"0": "LABEL_0"}, "text_config": {"hidden_size": 8, "mtp": 1}, "other": 2}
    known = {"id2label", "text_config", "hidden_size"}
    assert unknown_fields(data, known) == {"text_config.mtp": "1", "other": "2"}


# --- with torch and transformers ----------------------------------------------------------------------------

# What the class itself counts otherwise than serving engines keep it, or names otherwise than checkpoints do.
OTHERWISE = {
    "falcon, grouped": {"kv"},  # the class keeps a copy of the keys for every query head
    "llama4_text": {"kv"},  # a chunk is a mask in the class
    "llama4": {"kv"},
    "kimi_linear": {"names"},  # the class calls the FFN of the first layer otherwise
    "kimi_k25": {"shapes", "names"},  # query, key and value of its tower
    "qwen3_vl_moe": {"shapes"},  # experts input by output in checkpoints
}
REFUSED = ("deepseek_v4",)  # its products of groups are none of our steps


def comparable(description: Fields) -> dict[str, Any]:
    """What two ways of reading a config must agree in."""
    shapes: Counter[tuple[int, ...]] = Counter()
    for tensor in description["tensors"]:
        shapes[tuple(tensor["shape"])] += tensor["count"]
    counts = {key: value for key, value in description["parameters"].items()}
    return {
        "parameters": counts,
        "layers": description["layers"],
        "kv": description["kv_bytes_per_token"],
        "linear": description["prefill_flops"]["linear"],
        "square": description["prefill_flops"]["attention_full_square"],
        "shapes": shapes,
        "names": {re.sub(r"\b\d+\b", "{}", tensor["name"]) for tensor in description["tensors"]},
    }


@pytest.mark.parametrize("family", ["deepseek_v32", "qwen3_next", "jamba", "gpt_oss"])
def test_our_readers_agree_with_what_was_recorded(family: str) -> None:
    """Latent attention with an indexer, delta rules, Mamba, windows and experts with biases."""
    seen = json.loads(FAMILIES.read_text(encoding="utf-8"))[family]
    ours = describe(ir_of(parse_config(copy.deepcopy(CONFIGS[family]), "config.json")), 61, True)
    assert comparable(describe(ir_of(read(CONFIGS[family], seen)), 61, True)) == comparable(ours)


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("family", [family for family in CONFIGS if family not in REFUSED])
def test_our_readers_agree_with_the_code(family: str) -> None:
    """Parameters, shapes, names, KV bytes and FLOPs: two ways to read a config that share nothing."""
    config = copy.deepcopy(CONFIGS[family])
    ours = describe(ir_of(parse_config(copy.deepcopy(config), "config.json")), 61, True)
    if config["model_type"] == "kimi_k2":  # which transformers knows by another name
        config["model_type"] = "deepseek_v3"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorder.record({"config": copy.deepcopy(config), "folder": ""})
    theirs = describe(ir_of(read(config, seen)), 61, True)
    left, right = comparable(ours), comparable(theirs)
    differing = {key for key in left if left[key] != right[key]}
    assert differing == OTHERWISE.get(family, set()), {key: (left[key], right[key]) for key in differing}


TWO_MIXERS = {
    "model_type": "longcat_flash",
    **{
        "hidden_size": 48,
        "num_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "vocab_size": 101,
    },
    **{"q_lora_rank": 20, "kv_lora_rank": 24, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "head_dim": 8},
    **{"v_head_dim": 10, "ffn_hidden_size": 72, "n_routed_experts": 6, "zero_expert_num": 0, "moe_topk": 2},
    "expert_ffn_hidden_size": 26,
}
IN_ONE_MATRIX = {
    **{"model_type": "dbrx", "d_model": 48, "n_heads": 6, "n_layers": 2, "vocab_size": 101},
    "attn_config": {"kv_n_heads": 2, "rope_theta": 5e5, "clip_qkv": 8},
    "ffn_config": {"hidden_size": 48, "ffn_hidden_size": 26, "moe_num_experts": 6, "moe_top_k": 2},
}
NO_CACHE = {"model_type": "openai-gpt", "n_embd": 48, "n_head": 6, "n_layer": 2, "vocab_size": 101}
LOOKS_AT_IMAGES = {
    "model_type": "mllama",
    "text_config": {
        **{"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 3},
        **{"intermediate_size": 72, "vocab_size": 101, "cross_attention_layers": [1], "pad_token_id": 0},
    },
}


def record(config: Fields) -> Fields:
    """What a class does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recorder.record({"config": copy.deepcopy(config), "folder": ""})


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize(
    ("config", "layers", "kv"),
    [
        (TWO_MIXERS, 2 * [("attention", "moe"), ("attention_2", "ffn")], 2 * 2 * 2 * (24 + 8)),
        (IN_ONE_MATRIX, 2 * [("attention", "moe")], 2 * 2 * 2 * 2 * 8),
        (NO_CACHE, 2 * [("attention", "ffn")], 2 * 2 * 2 * 48),
        (LOOKS_AT_IMAGES, [("attention", "ffn"), ("not_run",), ("attention", "ffn")], 2 * 2 * 2 * 2 * 8),
    ],
    ids=["two mixers in a layer", "experts in one matrix", "no cache", "layers not run"],
)
def test_layers_that_are_built_otherwise(config: Fields, layers: list[Any], kv: int) -> None:
    """Blocks of each layer, and the KV bytes of a token, counted by hand."""
    architecture = read(config, record(config))
    assert architecture.sequence() == layers
    assert kv_bytes_per_token(ir_of(architecture))["all_layers"] == kv


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
def test_experts_that_stand_in_one_matrix_are_told_apart() -> None:
    """Two of six are used."""
    counts = parameters(ir_of(read(IN_ONE_MATRIX, record(IN_ONE_MATRIX))))
    routed = 3 * 6 * 26 * 48
    layer = 48 * (48 + 2 * 2 * 8) + 48 * 48 + 2 * 48 + 48 * 6 + routed
    assert counts["total"] == 2 * 101 * 48 + 48 + 2 * layer
    assert counts["active"] == counts["total"] - 2 * 4 * routed // 6


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("model_type", ["voxtral", "qwen2_audio", "granite_speech"])
def test_what_hears_is_read_with_its_tower_beside_the_decoder(model_type: str) -> None:
    """A text does not run the tower for sound: it is stored, and no step of the decoder."""
    import transformers

    config = json.loads(json.dumps(transformers.CONFIG_MAPPING[model_type]().to_dict(), default=str))
    ir = ir_of(read(config, record(config)))
    size = parameters(ir)
    assert size["vision"] > 100e6
    assert not any("audio" in tensor.name for tensor in ir.tensors())
    assert size["active_without_input_embedding"] <= size["total"] - size["vision"]


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "rwkv", "hidden_size": 64, "num_hidden_layers": 2}, "no layer was seen to look back"),
        ({"model_type": "recurrent_gemma", "num_hidden_layers": 3}, "what it keeps .* was not seen"),
    ],
)
def test_what_is_kept_or_chosen_unseen_is_refused(config: Fields, words: str) -> None:
    """States that no cache holds."""
    with pytest.raises(InputError, match=words):
        read(config, record(config))
