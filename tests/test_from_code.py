"""Architectures read from the code of a class: what is seen, what is refused, agreement with our readers."""

from __future__ import annotations

import copy
import json
import os
import re
import warnings
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import coverage_of_types
import pytest
from small_models import CONFIGS, wide

from mantile.estimates.estimate import estimate
from mantile.ir.build import build_ir
from mantile.ir.counts import caches, describe, kv_bytes_per_token, parameters
from mantile.library.architecture import Architecture, Model
from mantile.library.dump import add_model
from mantile.library.errors import InputError
from mantile.library.from_code import process, read_from_code, recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.unread import unknown_fields
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario

DATA = Path(__file__).parent / "data"
RECORDED = DATA / "recorded_exaone_moe.json"
FAMILIES = DATA / "recorded_families.json"  # classes of CONFIGS made wide, as seen
MODELS = DATA / "models_from_code"  # what `mantile list models add` makes of the configs in it
ANEW = "MANTILE_RECORD" in os.environ  # write what is on file anew
needs_classes = pytest.mark.skipif(
    not process.can_record(), reason="torch and transformers build the classes; a recording of one is here"
)
Fields = dict[str, Any]


@pytest.fixture
def recorded() -> tuple[Fields, Fields]:
    """A small config of EXAONE MoE, and what its class was seen to do."""
    data = json.loads(RECORDED.read_text(encoding="utf-8"))
    return data["config"], data["recording"]


def on_file() -> dict[str, tuple[Fields, Fields]]:
    """Every recording that is on file: the config, and what its class was seen to do."""
    apart = json.loads(RECORDED.read_text(encoding="utf-8"))
    families = json.loads(FAMILIES.read_text(encoding="utf-8"))
    return {family: (wide(CONFIGS[family]), seen) for family, seen in families.items()} | {
        "exaone_moe": (apart["config"], apart["recording"])
    }


def put_on_file(anew: dict[str, Fields]) -> None:
    """Write recordings, by family, in place of those on file."""
    apart = {"config": on_file()["exaone_moe"][0], "recording": anew["exaone_moe"]}
    families = {family: seen for family, seen in anew.items() if family != "exaone_moe"}
    RECORDED.write_text(json.dumps(apart) + "\n", encoding="utf-8")
    FAMILIES.write_text(json.dumps(families, separators=(",", ":")) + "\n", encoding="utf-8")


def read(config: Fields, recording: Fields) -> Architecture:
    """A recording as an architecture."""
    return read_recording(recording, Config("config.json", config["model_type"], config))


def model_of(architecture: Architecture) -> Model:
    """A model with an architecture."""
    return Model(id="small", name="small", source="test", architecture=architecture)


def ir_of(architecture: Architecture) -> Any:
    """The modules of an architecture."""
    return build_ir(model_of(architecture))


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


def test_what_the_config_leaves_out_is_a_default_of_the_class(recorded: tuple[Fields, Fields]) -> None:
    """Only fields of the config are in the config, and no fact names a field that only has its number."""
    config, seen = recorded
    del config["moe_intermediate_size"]
    config["bos_token_id"] = seen["config"]["bos_token_id"] = 10  # as large as a head
    facts = read(config, seen).facts
    assert facts["expert_size"].source.endswith("moe_intermediate_size by default of the class")
    assert facts["ffn_size"].source.endswith("intermediate_size in the config")
    assert facts["head_dim"].value == 10
    assert "bos_token_id" not in facts["head_dim"].source


def test_what_the_config_calls_otherwise_is_no_default(recorded: tuple[Fields, Fields]) -> None:
    """A class may take a dimension from a field that it has under another name, in a section of its own."""
    config, seen = recorded
    del config["moe_intermediate_size"]
    config["sparse"] = {"sparse_expert_width": 26, "beam_width": 26}
    assert read(config, seen).facts["expert_size"].source.endswith(", sparse_expert_width in the config")


def test_remarks_raise_one_alert(recorded: tuple[Fields, Fields]) -> None:
    """A step that is priced as something near it, and a dimension that the class fills in; else none."""
    config, seen = recorded
    quiet = estimated(read(config, seen))
    assert "MODEL_HAS_REMARKS" not in {alert["code"] for alert in quiet.results()["checks"]["alerts"]}
    assert "remarks" not in describe(ir_of(read(config, seen)))
    del config["moe_intermediate_size"]
    architecture = read(config, seen)
    first, *others = architecture.blocks["moe"].steps
    steps = (first.model_copy(update={"remark": "priced as another"}), *others)
    moe = architecture.blocks["moe"].model_copy(update={"steps": steps})
    changed = architecture.model_copy(update={"blocks": architecture.blocks | {"moe": moe}})
    made, remarks = estimated(changed), describe(ir_of(changed))["remarks"]
    (alert,) = [one for one in made.results()["checks"]["alerts"] if one["code"] == "MODEL_HAS_REMARKS"]
    assert alert["left"] == len(remarks) == 3  # of shared experts too
    assert remarks[0]["remark"] == "priced as another"
    assert remarks[1]["of"] == "Expert size"
    assert remarks[1]["remark"].endswith("by default of the class")


def test_it_is_written_as_a_document_and_read_back(recorded: tuple[Fields, Fields]) -> None:
    """Nothing but the document is needed afterwards."""
    architecture = read(*recorded)
    again = Architecture.model_validate(json.loads(architecture.model_dump_json()))
    assert describe(ir_of(again), 61, True) == describe(ir_of(architecture), 61, True)


def forget(seen: Fields, module: str) -> None:
    """As if a module had not run."""
    seen["events"] = [event for event in seen["events"] if event["module"] != module]
    next(one for one in seen["parameters"] if one["name"] == f"{module}.weight")["run"] = False


def only_looks_at_images(seen: Fields) -> None:
    """As if a text did not run the last layer."""
    inside = "model.layers.4."
    seen["events"] = [one for one in seen["events"] if not f"{one['module']}.".startswith(inside)]
    for one in seen["parameters"]:
        one["run"] = one["run"] and not one["name"].startswith(inside)
    seen["caches"][4] = {"class": ""}


def longer_embedding(seen: Fields) -> None:
    """As if the embedding had rows besides, of images say, that a checkpoint stores by themselves."""
    table = next(one for one in seen["parameters"] if one["name"] == "model.embed_tokens.weight")
    table["shape"][0] += 9
    table["stored"] = [[f"model.{name}", [55, 48]] for name in ("embedding", "new_embedding")]


def stored_in_one(seen: Fields) -> None:
    """As if a checkpoint had gate and up of the dense FFN in one tensor, half of which each of them is."""
    for one in seen["parameters"]:
        if one["name"] in ("model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"):
            one["stored"] = [["model.layers.0.mlp.gate_up.weight", one["shape"]]]


def estimated(architecture: Architecture, **plan: int) -> Any:
    """An estimate with a scenario that any model can be asked."""
    fields = {"model": "small", "accelerator": "h100-sxm", "input_tokens": 300, "output_tokens": 20}
    return estimate(parse_scenario(fields | {"concurrency": 2} | plan, "scenario"), model_of(architecture))


@pytest.mark.parametrize("plan", [{"tp": 1}, {"tp": 1, "attention_dp": 2, "ep": 2}], ids=["one", "two"])
@pytest.mark.parametrize(
    ("change", "more"),
    [(only_looks_at_images, 0), (longer_embedding, 9 * 48), (stored_in_one, 0)],
    ids=["layers that no text runs", "an embedding that is longer than the head", "two of one tensor"],
)
def test_what_is_read_is_estimated(
    recorded: tuple[Fields, Fields], change: Any, more: int, plan: dict[str, int]
) -> None:
    """Nothing that is stored is lost, and what the modules, the tensors and the ranks have adds up."""
    config, seen = recorded
    before = parameters(ir_of(read(*copy.deepcopy(recorded))))
    change(seen)
    made, ours = estimated(read(config, seen), **plan), parameters(ir_of(read(config, seen)))
    assert coverage_of_types.does_not_add_up(made) == []
    assert made.ttft is not None
    assert made.tpot is not None
    assert ours["total"] == before["total"] + more == made["tensors.parameters"].value
    assert ours["embedding"] == before["embedding"] + more


def test_ranks_share_what_no_text_runs_as_what_it_runs(recorded: tuple[Fields, Fields]) -> None:
    """The projections of attention, which are called as those of other layers are."""
    config, seen = recorded
    only_looks_at_images(seen)
    (idle,) = read(config, seen).blocks["not_run"].steps
    shapes = {one.name.split(".")[-2]: one.shape for one in idle.tensors if one.matrix}
    assert shapes["q_proj"] == ("attention_heads*head_dim", "hidden_size")
    assert shapes["k_proj"] == shapes["v_proj"] == ("kv_heads*head_dim", "hidden_size")
    assert shapes["o_proj"] == ("hidden_size", "attention_heads*head_dim")


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
        (lambda config, seen: config.update(first_k_dense_replace=200), "is 200, and there are 5 layers"),
        (
            lambda config, seen: seen["config"].update(max_position_embeddings=10**12),
            r"max_positions is 1,000,000,000,000 .* at most 100,000,000",
        ),
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


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            "StrictDataclassClassValidationError: Class validation error for validator 'validate_heads':\n"
            "    ValueError: hidden_size (100) is no multiple of the heads (7).\n    more",
            "ValueError: hidden_size (100) is no multiple of the heads (7).",
        ),
        (
            "ValidationError: 2 validation errors for SmallConfig\nhidden_size\n"
            "  Input should be a valid integer\n    For further information see\nlayers\n  Field required",
            "hidden_size: Input should be a valid integer",
        ),
        ("RuntimeError: one line\x07", "RuntimeError: one line"),
        ("KeyError: 'what'\n", "KeyError: 'what'"),
        ("ValueError:", "ValueError:"),
        ("ValueError: " + 99 * "long ", ("ValueError: " + 99 * "long ")[:200]),
    ],
)
def test_an_error_of_a_class_is_one_line(error: str, line: str) -> None:
    """Its first line that says what is wrong; those of pydantic have headings above it."""
    assert process.meaning(error) == line


TIMM = (
    "ImportError: \nThe wrapper requires PIL, which was not found:\n`pip install pillow`. Restart.\n\n"
    "The wrapper requires timm, which was not found:\n`pip install timm`. Restart.\n"
)


@pytest.mark.parametrize(
    ("error", "packages"),
    [
        (TIMM, ["pillow", "timm"]),
        ("ModuleNotFoundError: No module named 'mamba_ssm.ops'", ["mamba_ssm"]),
        ("ImportError: cannot import name 'this' from 'that'", []),
        ("ValueError: `pip install timm` is no way out", []),
    ],
)
def test_packages_that_a_class_needs_are_named(error: str, packages: list[str]) -> None:
    """All of them, as pip calls them."""
    assert process.missing(error) == packages


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
    "falcon, grouped": {"kv", "ranks"},  # the class keeps a copy of the keys for every query head
    "llama4_text": {"kv", "ranks"},  # a chunk is a mask in the class
    "llama4": {"kv", "ranks"},
    "kimi_linear": {"names"},  # the class calls the FFN of the first layer otherwise
    "kimi_k25": {"shapes", "names"},  # query, key and value of its tower
    "qwen3_vl_moe": {"shapes"},  # experts input by output in checkpoints
}


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


BOTH = ("deepseek_v32", "qwen3_next", "jamba", "gpt_oss", "olmo2", "nemotron_h")
"""On file, and read by readers of ours."""


@pytest.mark.parametrize("family", BOTH)
def test_our_readers_agree_with_what_was_recorded(family: str) -> None:
    """Latent attention with an indexer, delta rules, Mamba, windows and experts with biases."""
    config, seen = on_file()[family]
    ours = describe(ir_of(parse_config(copy.deepcopy(config), "config.json")), 61, True)
    assert comparable(describe(ir_of(read(config, seen)), 61, True)) == comparable(ours)


def on_a_rank(architecture: Architecture, tp: int) -> dict[str, float]:
    """What a rank holds, works out and sums with others where `tp` of them share a model."""
    fields = {"model": "small", "accelerator": "h100-sxm", "input_tokens": 2000, "output_tokens": 100}
    scenario = parse_scenario(fields | {"concurrency": 16, "tp": tp}, "scenario")
    found: Counter[str] = Counter()
    for node, value in estimate(scenario, model_of(architecture)).values().items():
        of, _, rest = getattr(node, "id", "").partition(".")
        name, _, module = rest.partition(".")
        if rest in ("weights", "kv_bytes_per_request", "all_reduce.count", "inner_reduce.count"):
            found[f"{of}.{rest}"] += value
        elif name in ("state_values", "conv_channels"):
            found[name] += value
        elif module == "macs":
            found[f"{of}.macs"] += value
        elif name == "inner_reduce" and module == "message_bytes":
            found[f"{of}.inner_bytes"] += value
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("tp", [2, 4, 8])
@pytest.mark.parametrize("family", BOTH)
def test_ranks_share_what_was_recorded_as_our_readers_say(family: str, tp: int) -> None:
    """Weights, states, convolutions, their products and sums, also where ranks are more than heads.

    Heads and groups of state space mixers, keys and values of delta rules, channels of Mamba 1 with a sum
    inside, a norm over all heads of queries and keys (olmo2), and one of each group of heads (nemotron_h).
    """
    config, seen = on_file()[family]
    ours = on_a_rank(parse_config(copy.deepcopy(config), "config.json"), tp)
    assert on_a_rank(read(config, seen), tp) == ours
    assert ("prefill.inner_reduce.count" in ours) == (family in ("jamba", "olmo2"))


PLANS = ({"tp": 1}, {"tp": 4}, {"tp": 4, "ep": 4}, {"tp": 1, "attention_dp": 4, "ep": 4})
NEAR = 0.05  # relative: of TTFT and TPOT


def furthest(ours: Architecture, theirs: Architecture) -> float:
    """The largest difference of TTFT or TPOT under any plan, relative to our reader's."""
    apart = []
    for plan in PLANS:
        if "ep" in plan and "experts" not in ours.facts:
            continue
        fields = {"model": "small", "accelerator": "h100-sxm", "input_tokens": 4000, "output_tokens": 200}
        scenario = parse_scenario(fields | {"concurrency": 64} | plan, "scenario")
        left, right = (estimate(scenario, model_of(one)) for one in (ours, theirs))
        for one, other in ((left.ttft, right.ttft), (left.tpot, right.tpot)):
            assert one is not None and other is not None, plan
            apart.append(abs(other / one - 1))
    return max(apart)


@pytest.mark.parametrize("family", BOTH)
def test_estimates_of_what_was_recorded_are_those_of_our_readers(family: str) -> None:
    """TTFT and TPOT, on one rank, on four, with experts apart, and with tokens that are sent to them."""
    config, seen = on_file()[family]
    assert furthest(parse_config(copy.deepcopy(config), "config.json"), read(config, seen)) < NEAR


PUBLISHED = {
    **{"olmoe": (6.92e9, 1e7), "granitemoe": (3.3e9, 1e8), "lfm2": (1.17e9, 1e7), "minimax": (456e9, 1e9)},
    "falcon-h1": (1_554_859_392, 1),
}
"""Parameters of the models in the folder as their makers state them, and one of the last digit stated."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_on_file_have_the_parameters_that_are_published(name: str) -> None:
    """The configs hold the dimensions of published models."""
    stated, digit = PUBLISHED[name]
    total = parameters(build_ir(load_model(str(MODELS / f"{name}.yaml"))))["total"]
    assert abs(total - stated) <= digit / 2


def record(config: Fields) -> Fields:
    """What a class does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recorder.record({"config": copy.deepcopy(config), "folder": ""})


def read_twice(config: Fields) -> tuple[Architecture, Architecture]:
    """A config as our reader reads it, and as its class does."""
    ours = parse_config(copy.deepcopy(config), "config.json")
    if config["model_type"] == "kimi_k2":  # which transformers knows by another name
        config = config | {"model_type": "deepseek_v3"}
    return ours, read(config, record(config))


@pytest.mark.exhaustive
@needs_classes
@pytest.mark.transformers
def test_recordings_on_file_are_what_the_classes_do() -> None:
    """Recorded anew, each is the same: no test stands on what a recorder no longer sees."""
    anew = {family: json.loads(json.dumps(record(config))) for family, (config, _) in on_file().items()}
    if ANEW:
        put_on_file(anew)
    for family, (_, seen) in on_file().items():
        if seen["library"] != anew[family]["library"]:
            pytest.skip(f"recorded with {seen['library']}")
        assert {key for key in anew[family] if anew[family][key] != seen.get(key)} == set(), family


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("config", sorted((MODELS / "configs").glob("*.json")), ids=lambda path: path.stem)
def test_models_on_file_are_what_their_configs_give(config: Path, tmp_path: Path) -> None:
    """Added anew, each is the same."""
    written = add_model(str(config), tmp_path, date(2026, 11, 24))
    kept = MODELS / written.name
    if ANEW:
        kept.write_bytes(written.read_bytes())
    made, there = load_model(str(written)).architecture, load_model(str(kept)).architecture
    library = made.facts["hidden_size"].source.partition(" of ")[2].partition(",")[0]
    if library not in there.facts["hidden_size"].source:
        pytest.skip(f"made otherwise than with {library}")
    assert made == there


SEEN = (
    *OTHERWISE,
    *("deepseek_v2", "gemma3", "gemma4", "glm_moe_dsa", "gpt2", "gpt_bigcode", "gptj", "llama", "mamba2"),
    *("mimo_v2_flash", "mixtral", "phi3", "qwen2_5_vl", "qwen3_5_moe", "stablelm", "starcoder2, no bias"),
)
"""Families that are read anew, beside those on file: a kind of attention, FFN, mixer or tower each."""


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("family", SEEN)
def test_our_readers_agree_with_the_code(family: str) -> None:
    """Parameters, shapes, names, KV bytes, FLOPs, ranks: two ways to read a config that share nothing."""
    left, right = (
        comparable(describe(ir_of(one), 61, True)) | {"ranks": on_a_rank(one, 4)}
        for one in read_twice(CONFIGS[family])
    )
    differing = {key for key in left if left[key] != right[key]}
    assert differing == OTHERWISE.get(family, set()), {key: (left[key], right[key]) for key in differing}


FURTHER = {
    "falcon, grouped": 0.55,  # the class keeps a copy of the keys for every query head
    "llama4_text": 0.75,  # a chunk is a mask in the class: attention looks at all tokens
    "llama4": 0.75,
}


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("family", SEEN)
def test_estimates_of_our_readers_agree_with_those_of_the_code(family: str) -> None:
    """TTFT and TPOT of wide models; those that are further apart are so for a reason that is known."""
    apart = furthest(*read_twice(wide(CONFIGS[family])))
    assert (NEAR < apart < FURTHER[family]) if family in FURTHER else apart < NEAR


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
def test_experts_may_be_as_many_as_they_are_wide() -> None:
    """Eight of eight channels, beside a shared expert of eight: no product of it is a router."""
    config = CONFIGS["qwen3_next"] | dict.fromkeys(
        ("num_experts", "moe_intermediate_size", "shared_expert_intermediate_size"), 8
    )
    theirs = read(config, record(config))
    assert on_a_rank(theirs, 4) == on_a_rank(parse_config(copy.deepcopy(config), "config.json"), 4)
    assert sum(step.work == "routing" for step in theirs.blocks["moe"].steps) == 1


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
@pytest.mark.parametrize("latent", [22, 26], ids=["narrow", "as wide as an expert"])
def test_experts_that_work_in_a_latent(latent: int) -> None:
    """Two projections around them; what is moved, multiplied, kept and summed is as our reader has it."""
    config = CONFIGS["nemotron_h"] | {"moe_latent_size": latent, "moe_intermediate_size": 26}
    ours, theirs = read_twice(config)
    assert theirs.value("latent_size") == latent
    left, right = (
        comparable(describe(ir_of(one), 61, True)) | {"ranks": on_a_rank(one, 4)} for one in (ours, theirs)
    )
    assert left == right
    assert furthest(*read_twice(wide(config) | {"moe_latent_size": 512})) < NEAR


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
ZERO_EXPERTS = {"zero_expert_num": 3, "moe_topk": 3}
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
    """Two of six are used; ranks share all of them, by expert and by column."""
    architecture = read(IN_ONE_MATRIX, record(IN_ONE_MATRIX))
    for plan in ({"tp": 2}, {"tp": 2, "ep": 2}, {"tp": 1, "attention_dp": 2, "ep": 2}):
        made = estimated(architecture, **plan)
        assert coverage_of_types.does_not_add_up(made) == []
        assert made["tensors.experts"].value == 3 * 6 * 26 * 48 / 2
    counts = parameters(ir_of(architecture))
    routed = 3 * 6 * 26 * 48
    layer = 48 * (48 + 2 * 2 * 8) + 48 * 48 + 2 * 48 + 48 * 6 + routed
    assert counts["total"] == 2 * 101 * 48 + 48 + 2 * layer
    assert counts["active"] == counts["total"] - 2 * 4 * routed // 6


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
def test_experts_without_weights_are_no_work() -> None:
    """Three of nine experts hand a token on: two of the three that are chosen have weights on average."""
    config = {**TWO_MIXERS, **ZERO_EXPERTS}
    architecture, without = (read(one, record(one)) for one in (config, TWO_MIXERS))
    assert architecture.value("experts_per_token") == 2
    assert "3 of 9 experts are chosen" in architecture.facts["experts_per_token"].source
    ours, theirs = (describe(ir_of(one), 61, False) for one in (architecture, without))
    routers = 2 * 3 * 48  # two layers, three scores more
    assert ours["parameters"]["total"] == theirs["parameters"]["total"] + routers
    assert ours["parameters"]["active"] == theirs["parameters"]["active"] + routers
    assert ours["prefill_flops"]["linear"] == theirs["prefill_flops"]["linear"] + 2 * 61 * routers
    assert coverage_of_types.does_not_add_up(estimated(architecture, tp=2, ep=2)) == []
    with pytest.raises(InputError, match="4 of 6 experts and 3 without weights are no whole number"):
        read(config | {"moe_topk": 4}, record(config | {"moe_topk": 4}))


PUBLISHED_OF_ZERO = {"total": 560e9, "active_without_input_embedding": 27e9}
"""LongCat-Flash, technical report of Meituan: in all, and active on average."""


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
def test_experts_without_weights_are_counted_as_published() -> None:
    """The defaults of the class are the dimensions of LongCat-Flash; within 1 %.

    Its layers are alike: one and two of them tell what all have.
    """
    config = coverage_of_types.config_of("longcat_flash")
    short = [config | {"num_layers": layers} for layers in (1, 2)]
    one, two = (parameters(ir_of(read(of, record(of)))) for of in short)
    counted = {name: one[name] + (config["num_layers"] - 1) * (two[name] - one[name]) for name in one}
    assert {name: round(counted[name] / one, 2) for name, one in PUBLISHED_OF_ZERO.items()} == {
        "total": 1.0,
        "active_without_input_embedding": 1.01,
    }


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


NEED_MORE = {"fast_vlm", "gemma3n", "perception_lm"}  # timm, which need not be there
NOT_ANSWERED = NEED_MORE | {
    *("cpmant", "ernie4_5_vl_moe", "idefics", "jetmoe", "recurrent_gemma"),
    *("reformer", "rwkv", "unlimited_ocr", "xlnet"),
}
"""Types that write text and are refused; all others are answered, or refused by what they are."""


@needs_classes
@pytest.mark.exhaustive
@pytest.mark.transformers
def test_every_type_that_is_read_is_estimated() -> None:
    """With the defaults of its class, on one rank and on several: no error, and everything adds up."""
    types = [name for name in coverage_of_types.types() if name != "longcat_flash"]  # has a test of its own
    asked = types[::12]
    found = list(coverage_of_types.answers(asked))
    assert {name: why for name, how, why in found if how == coverage_of_types.CRASHED} == {}
    refused = {name for name, how, _ in found if how == coverage_of_types.REFUSED}
    assert refused <= NOT_ANSWERED and refused >= NOT_ANSWERED & {*asked} - NEED_MORE
    answered = sum(how in (coverage_of_types.CODE, coverage_of_types.READER) for _, how, _ in found)
    assert answered > (120 + 62) * len(asked) / len(types), "from code, and by readers"


@needs_classes
@pytest.mark.transformers
def test_fields_that_the_code_asks_for_are_known() -> None:
    """Those of its class of configs, and one that only its modelling code reads; no others."""
    fields = {"hidden_size": 64, "head_dim": 8, "num_hidden_layers": 1, "nobody_asks": 1}
    known = record({"model_type": "falcon_h1", **fields})["known"]
    assert {*fields} - {*known} == {"nobody_asks"}
    assert record({"model_type": "falcon_h1", "num_hidden_layers": 1})["known"] == [
        name for name in known if name != "head_dim"
    ]


@pytest.mark.exhaustive
@needs_classes
@pytest.mark.transformers
@pytest.mark.parametrize("model_type", ["mllama", "molmo2", "dbrx"])
def test_some_types_that_are_read_are_estimated(model_type: str) -> None:
    """Layers not run, an embedding in parts, experts in one matrix."""
    assert [how for _, how, _ in coverage_of_types.answers([model_type])] == [coverage_of_types.CODE]
