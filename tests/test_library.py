"""Profiles, models, scenarios and configs: what is read, what is refused, and how the refusal reads."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from small_models import CONFIGS as SMALL

from mantile.estimates.estimate import Estimate
from mantile.ir.build import build_ir
from mantile.library import compiled
from mantile.library.architecture import Model
from mantile.library.documents import MAX_BYTES, load, parse_json, parse_yaml, read_text, validate
from mantile.library.efficiency import EfficiencyProfile, profile_keys
from mantile.library.errors import InputError
from mantile.library.facts import VISION_FACTS, fact_kind
from mantile.library.huggingface import parse_config, read_config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.models import load_model, model_ids
from mantile.library.profile_facts import STATUSES, check_sources
from mantile.library.profiles import (
    FOLDERS,
    Accelerator,
    Library,
    data_folder,
    load_library,
    shelf,
    with_accelerator,
)
from mantile.library.scenario import Scenario, load_scenario, parse_scenario

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 1000,
}
SCENARIO: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 4,
}
CHIP = data_folder("profiles") / "accelerators" / "h100-sxm.yaml"

# --- YAML and JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e15", 1e15),
        ("4.8e12", 4.8e12),
        ("1E-3", 1e-3),
        (".5", 0.5),
        ("-2.", -2.0),
        ("+.inf", math.inf),
        ("12", 12),
        ("-3", -3),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-11-21", "2026-11-21"),
        ("~", None),
        ("null", None),
        ("", None),
        ('"1e3"', "1e3"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """YAML 1.1, which PyYAML follows, reads 4.8e12 as a text, `no` as false and 12:30 as 750."""
    found = parse_yaml(f"field: {text}", "file.yaml")["field"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb:\n  c: 2\n  c: 3\n",
            r"file\.yaml, line 4, column 3: not valid YAML: the key 'c' is given twice",
        ),
        ("a: [1, 2\nb: 3\n", r"file\.yaml, line 2, column \d+: not valid YAML"),
        ("a: 1\n\tb: 2\n", r"file\.yaml, line 2, column \d+: not valid YAML"),
        ("a: *unknown\n", r"file\.yaml, line 1, column 4: not valid YAML: found undefined alias"),
        (
            "a: !!python/object/apply:os.getcwd []\n",
            r"file\.yaml, line 1: .*os\.getcwd.: expected a text, a number",
        ),
        ("a: \x00\n", r"file\.yaml: not valid YAML"),
    ],
)
def test_a_yaml_mistake_is_told_by_line(text: str, message: str) -> None:
    """Duplicate keys included; nothing is constructed but plain data."""
    with pytest.raises(InputError, match=message):
        parse_yaml(text, "file.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": }', r"config\.json, line 2, column 7: not valid JSON"),
        ("", r"config\.json, line 1, column 1"),
        ('{"a": 1, "a": 2}', r"config\.json: the key 'a' is given twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_json_mistake_is_told_by_line(text: str, message: str) -> None:
    """Line and column; a key given twice would silently lose one of the values."""
    with pytest.raises(InputError, match=message):
        parse_json(text, "config.json")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Missing, not text, or of a size no honest file has."""
    with pytest.raises(InputError, match=r"absent\.yaml: No such file"):
        load(Model, tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(InputError, match=r"binary\.yaml: not UTF-8 text \(byte 3\)"):
        read_text(tmp_path / "binary.yaml")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match=r"large\.yaml: 16,777,217 bytes; expected at most 16,777,216"):
        read_text(tmp_path / "large.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(InputError, match=r"list\.yaml: expected a mapping of fields, found list"):
        load(Model, tmp_path / "list.yaml")


# --- what we ship -------------------------------------------------------------------------------------------


def _mappings_with(data: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(data, dict):
        return ([data] if key in data else []) + [
            found for value in data.values() for found in _mappings_with(value, key)
        ]
    return [found for item in data for found in _mappings_with(item, key)] if isinstance(data, list) else []


class Anything(BaseModel, extra="allow"):
    """A document of whatever fields."""


def test_what_we_ship_needs_no_guard() -> None:
    """Files of ours are read without the checks that those of strangers get, so each passes them here."""
    files = [path for kind in ("profiles", "models") for path in data_folder(kind).rglob("*.yaml")]
    assert len(files) > 500
    for path in files:
        validate(Anything, parse_yaml(read_text(path), path.name), path.name)


def test_the_library_is_read_once() -> None:
    assert load_library() is load_library(()) is load_library(pins=())


@pytest.mark.parametrize(
    "path",
    sorted(data_folder("profiles").rglob("*.yaml")),
    ids=lambda path: path.relative_to(data_folder("profiles")).as_posix(),
)
def test_every_figure_of_a_profile_has_source_date_and_status(path: Path) -> None:
    """Walks the files as they lie there, not the objects, so that no reader's default can hide a gap.

    Older versions included.
    """
    data = parse_yaml(path.read_text(encoding="utf-8"), path.name)
    others = [other for figure in _mappings_with(data, "others") for other in figure["others"]]
    for other in others:
        assert other.keys() == {"value", "source"} and len(other["source"]) >= 2, other
    figures = [figure for figure in _mappings_with(data, "value") if figure not in others]
    assert figures or path.parent.name in ("frameworks", "profiles", "hosts", "runtimes")
    for figure in figures:
        assert len(figure["source"]) >= 3, figure
        assert len(figure["date"]) == 10, figure
        assert figure["date"][:2] == "20", figure
        assert figure["status"] in STATUSES, figure
        assert figure.get("confidence", "high") in {"high", "medium", "low"}, figure
    if not figures:
        listed = next(
            (
                data[name]
                for name in ("datatypes", "recipes", "runs", "resources", "releases", "publishers", "forms")
                if name in data
            ),
            [data],
        )
        assert all(len(item["source"]) >= 3 for item in listed)
    if path.parent.name == "versions":
        assert f"{data['id']}@{data['version']}" == path.stem
    elif path.parent.name != "profiles":
        assert (
            data[{"hosts": "hardware_id", "runtimes": "runtime_id"}.get(path.parent.name, "id")] == path.stem
        )


@pytest.mark.parametrize("name", model_ids())
def test_every_fact_of_a_model_has_origin_and_source(name: str) -> None:
    """And the file says where it was read and when.

    Every figure of the model stands in the file: no reader's default hides a gap.
    """
    data = parse_yaml((data_folder("models") / f"{name}.yaml").read_text(encoding="utf-8"), name)
    facts = [fact for fact in _mappings_with(data, "value") if "query" not in fact]
    model = load_model(name).architecture
    vision = model.vision.facts if model.vision is not None else {}
    assert len(facts) == len(model.facts) + len(model.choices) + len(vision)
    assert all(fact_kind(fact) is not None for fact in model.facts) and vision.keys() <= VISION_FACTS.keys()
    for fact in facts:
        assert fact["origin"] in {"config", "default", "derived", "code"}, fact
        assert fact["source"], fact
    assert data["source"]
    assert len(data["date"]) == 10
    seen = {fact["origin"] for fact in facts} >= {"code"}
    assert (model.model_type in FAMILIES) != seen or model.model_type == "gemma4"
    assert {
        "norms",
        "norm",
        "activation",
        "position_embedding",
        "tensor_names",
        "weights_dtype",
    } <= model.choices.keys()


def test_the_library_is_consistent(library: Library) -> None:
    """Every accelerator has a system it usually comes in.

    Every number format has a peak that falls back to bf16.
    """
    assert {system.accelerator for system in library.systems} == {item.id for item in library.accelerators}
    for chip in library.accelerators:
        assert library.usual_system(chip.id).accelerator == chip.id
        assert chip.system is None or library.usual_system(chip.id).id == chip.system
    assert len(library.accelerators) >= 52 and len(library.systems) >= 73 and len(library.prices) >= 30
    assert {item.id for item in library.frameworks} == {
        "vllm",
        "sglang",
        "trtllm",
        "llama.cpp",
        "llama.cpp-2024",
        "mlx",
        "exo",
        "atom",
    }
    for kind in ("accelerators", "systems", "prices", "frameworks", "efficiency"):
        names = [item.id for item in getattr(library, kind)]
        assert len(names) == len(set(names)), kind
    without = [profile for profile in library.efficiency if profile.key != "global"]
    with pytest.raises(ValueError, match=r"global\.yaml"):
        Library.model_validate(library.model_dump() | {"efficiency": without})
    usual = library.usual_system("h100-sxm")
    with pytest.raises(ValueError, match=r"unknown system 'hgx-h100'"):
        Library.model_validate(
            library.model_dump() | {"systems": [system for system in library.systems if system is not usual]}
        )
    wrong = [
        chip.model_copy(update={"system": "hgx-b200"}) if chip.id == "h100-sxm" else chip
        for chip in library.accelerators
    ]
    with pytest.raises(
        ValueError, match=r"accelerator h100-sxm: field system: expected a system .* found 'hgx-b200'"
    ):
        Library.model_validate(library.model_dump() | {"accelerators": wrong})


def test_the_fallback_chain_is_from_wide_to_specific(library: Library) -> None:
    """Eight levels.

    Every profile of the library is of one of them, and the last that holds for its own case.
    """
    chip, system = library.accelerator("dgx-spark-gb10"), library.system("spark-10gbe")
    case = {
        "framework": "vllm",
        "generation": chip.generation,
        "accelerator": chip.id,
        "topology": system.topology,
        "link": system.link,
    }
    assert profile_keys(case) == [
        "global",
        "global/vllm",
        chip.generation,
        f"{chip.generation}/vllm",
        f"topology/{system.topology}",
        chip.id,
        f"{chip.id}/vllm",
        f"link/{system.link}",
    ]
    assert profile_keys({"framework": "vllm", "accelerator": None}) == ["global", "global/vllm"]
    for profile in library.efficiency:
        assert profile.key == profile_keys(profile.case)[-1]
        assert profile.level.of_links == (profile.key.startswith(("topology/", "link/")))


@pytest.mark.parametrize(
    "case",
    [
        {"generation": "hopper", "accelerator": "h100-sxm"},
        {"topology": "mesh", "framework": "vllm"},
        {"topology": "mesh", "link": "ethernet-10g"},
    ],
)
def test_a_profile_is_of_one_level(case: dict[str, str]) -> None:
    """Fields that no level has together are refused, by name."""
    with pytest.raises(ValueError, match=rf"{' and '.join(case)}: expected one of framework, generation, "):
        EfficiencyProfile.model_validate({"id": "odd", "version": "1", "factors": (), **case})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unit: TFLOP/s", "unit: GFLOP/s", r"expected a figure in TFLOP/s, found GFLOP/s"),
        ("unit: GiB", "unit: GB", r"memory_capacity: expected a figure in GiB, found GB"),
        ("status: secondary", "status: guessed", r"field peak_bf16\.status: expected one of 'datasheet'"),
        ("vendor: NVIDIA", "seller: NVIDIA", r"field vendor: Field required"),
        (
            "vendor: NVIDIA",
            "vendor: NVIDIA\ncolour: green",
            r"field colour: there is no such field; known: ",
        ),
        ("date: 2026", "date: someday", r"field peak_bf16\.date"),
    ],
)
def test_a_wrong_profile_is_told_by_file_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A figure in the wrong unit would be a thousand times off, and nothing would look wrong."""
    text = CHIP.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "chip.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=rf"chip\.yaml: .*{message}"):
        load(Accelerator, tmp_path / "chip.yaml")


@pytest.mark.parametrize(
    "path",
    [path for folder in FOLDERS for path in sorted((data_folder("profiles") / folder).glob("*.yaml"))],
    ids=lambda path: path.relative_to(data_folder("profiles")).as_posix(),
)
def test_a_status_says_what_its_source_holds(path: Path) -> None:
    """A datasheet has a title, a place in it and an address; what was read elsewhere has its chain; all were
    read."""
    data = parse_yaml(path.read_text(encoding="utf-8"), path.name)
    for fact in _mappings_with(data, "status"):
        source = fact["source"]
        assert not re.search(r"memory of|from memory|recalled", f"{source} {fact.get('note')}")
        if fact["status"] == "datasheet":
            title, place, address = source.split("; ")
            assert len(title) > 5 and " " in place and address.startswith("https://"), source
            assert fact["date"] >= "2026-08-21", "nobody read one before"
        elif fact["status"] == "secondary":
            assert all(", citing " in link for link in source.split("; ")), source
    check_sources(load(FOLDERS[path.parent.name], path), path.name)


@pytest.mark.parametrize(
    ("status", "source", "message"),
    [
        ("datasheet", "NVIDIA H100 datasheet", "status datasheet: expected the maker's document as 'title; "),
        ("datasheet", "H100 datasheet; https://nvidia.com/h100", "status datasheet: expected"),
        ("datasheet", "H100 datasheet; page 2; nvidia.com/h100", "status datasheet: expected"),
        ("secondary", "aiconfigurator", "status secondary: expected the chain as 'who says it, citing whom'"),
        ("secondary", "a page, citing NVIDIA; another page", "status secondary: expected"),
        ("assumed", "guessed", "status assumed: expected the reason"),
        ("assumed", "NVIDIA H100 datasheet, from memory", "expected something that was read"),
    ],
)
def test_a_source_that_does_not_keep_the_promise_of_its_status_is_refused(
    tmp_path: Path, status: str, source: str, message: str
) -> None:
    """With file, field and what was expected; a skeleton of one's own is asked the same."""
    text = (
        CHIP.read_text(encoding="utf-8").replace("id: h100-sxm", "id: mine").replace("system: hgx-h100\n", "")
    )
    fact = f'tdp: {{value: 700, unit: W, source: "{source}", date: 2026-11-23, status: {status}}}'
    (tmp_path / "mine.yaml").write_text(re.sub(r"(?m)^tdp: .*$", fact, text), encoding="utf-8")
    with pytest.raises(InputError, match=rf"mine\.yaml: field tdp\.source: .*{re.escape(message)}"):
        with_accelerator(load_library(), tmp_path / "mine.yaml")


def test_older_versions_show_the_words_that_their_sources_keep() -> None:
    """They said datasheet of what nobody had read in one."""
    old = shelf("accelerators").load("a10@2026-11-21")
    assert (old.memory_bandwidth.status, old.host_bandwidth.status) == ("assumed", "secondary")
    assert old.memory_bandwidth.value == load_library().accelerator("a10").memory_bandwidth.value


# --- scenarios ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_tokens": -5}, r"field input_tokens: .*at least 1 \(found -5\)"),
        ({"input_tokens": 0}, r"field input_tokens: .*\(found 0\)"),
        ({"output_tokens": 0}, r"field output_tokens: .*\(found 0\)"),
        ({"output_tokens": 12.5}, r"field output_tokens: .*\(found 12\.5\)"),
        ({"concurrency": 0}, r"field concurrency: .*\(found 0\)"),
        ({"concurrency": "many"}, r"field concurrency: .*\(found 'many'\)"),
        ({"concurrency": True}, r"field concurrency: .*\(found True\)"),
        ({"tp": 1025}, r"field tp: .*at most 1,024"),
        ({"pp": 9}, r"field pp: .*at most 8"),
        ({"serving": "apart"}, r"field serving: expected one of 'aggregated' or 'disaggregated'"),
        ({"decode": {"input_tokens": 5}}, r"field decode\.input_tokens: there is no such field"),
        ({"utilisation": 0}, r"field utilisation: .*at least 0\.001"),
        ({"batching": "dynamic"}, r"field batching: expected one of 'continuous' or 'static'"),
        ({"temprature": 1}, r"field temprature: there is no such field; did you mean "),
        ({"accelerator": None}, r"accelerator is missing"),
        ({"model": None}, r"field model"),
        ({"isl": 7}, r"field input_tokens: given twice, once as isl"),
        ({"variants": [{"tp": 0}]}, r"field variants\.0\.tp"),
        (
            {"variants": [{"overrides": [{"id": "model.layers", "value": 2}]}]},
            r"variants\.0\.overrides: a fact of the model is shared",
        ),
        ({"overrides": [{"id": "hardware.memory_bandwidth"}]}, r"field overrides\.0\.value: Field required"),
    ],
)
def test_a_wrong_scenario_is_told_by_field(change: dict[str, Any], message: str) -> None:
    """Before anything is worked out."""
    with pytest.raises(InputError, match=rf"^plan\.yaml: .*{message}"):
        parse_scenario(SCENARIO | change, "plan.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accelerator": "h100sx"}, r"unknown accelerator 'h100sx'; did you mean h100-sxm"),
        ({"accelerator": "zither"}, r"unknown accelerator 'zither'; known: a10, a100-40gb-pcie"),
        ({"system": "hgx-h10"}, r"unknown system 'hgx-h10'; did you mean hgx-h100"),
        ({"decode": {"accelerator": "h300"}}, r"unknown accelerator 'h300'"),
        ({"framework": "vlm"}, r"unknown framework 'vlm'; did you mean vllm"),
        ({"model": "llama-3.1-8"}, r"unknown model 'llama-3\.1-8'; did you mean llama-3\.1-8b"),
        ({"kv_dtype": "int4"}, r"unknown kv data type 'int4'; did you mean int8 or int4-kv"),
        ({"weights_dtype": "fp9"}, r"unknown weights data type 'fp9'; did you mean fp8"),
        ({"attention_dtype": "fp9"}, r"unknown weights data type 'fp9'; did you mean fp8"),
        ({"head_dtype": "same"}, r"unknown weights data type 'same'"),
        ({"experts_dtype": "fp8"}, r"scenario: field experts_dtype: llama-3\.1-8b has no experts"),
        ({"image_tokens": 5}, r"scenario: field image_tokens: llama-3\.1-8b has no vision tower"),
        (
            {"variants": [{"experts_dtype": "fp8"}]},
            r"variant 1: field experts_dtype: llama-3\.1-8b has no experts",
        ),
        (
            {"overrides": [{"id": "hardware.memory_bandwith", "value": 1}]},
            r"did you mean hardware\.memory_bandwidth",
        ),
        (
            {"overrides": [{"id": "model.layer", "value": 1}]},
            r"expected a whole number for one of model\.layers",
        ),
        (
            {"overrides": [{"id": "model.layers", "value": 1.5}]},
            r"model\.layers = 1\.5: expected a whole number",
        ),
        (
            {"overrides": [{"id": "model.layers", "value": 0}]},
            r"layers: expected a whole number of at least 1",
        ),
        (
            {"variants": [{"accelerator": "h300"}]},
            r"variant 1: field accelerator: unknown accelerator 'h300'",
        ),
    ],
)
def test_an_unknown_name_brings_the_nearest_ones(
    make: Callable[..., Estimate], change: dict[str, Any], message: str
) -> None:
    """Whatever the name is of: accelerators, systems, formats, figures."""
    with pytest.raises(InputError, match=message):
        make(**(SCENARIO | {"tp": 1} | change))


def test_a_scenario_file_reads_with_the_engines_spellings(tmp_path: Path) -> None:
    """ISL, OSL and the flags of serving engines are the same fields."""
    file = tmp_path / "plan.yaml"
    file.write_text(
        "model: llama-3.1-8b\naccelerator: h100-sxm\nisl: 10\nosl: 20\nmax_concurrency: "
        "3\ntensor_parallel_size: 2\n"
        "kv_cache_dtype: fp8\nmax_num_batched_tokens: 4096\n"
        "date: 2026-11-21\nvariants: [{name: two, tp: 4}]\n"
    )
    scenario = load_scenario(str(file))
    assert (scenario.input_tokens, scenario.output_tokens, scenario.concurrency, scenario.tp) == (
        10,
        20,
        3,
        2,
    )
    assert (scenario.kv_dtype, scenario.token_budget, scenario.date) == ("fp8", 4096, "2026-11-21")
    assert scenario.variants[0].tp == 4


def test_a_variant_follows_the_base_where_it_says_nothing(make: Callable[..., Estimate]) -> None:
    """And activations follow its own weights where the chip multiplies in that format."""
    made = make(kv_dtype="fp8", variants=[{"tp": 4}, {"weights_dtype": "fp8", "dp": 2, "tp": 2}])
    base, narrower, eighth = (column.values for column in made.columns)
    assert narrower == base | {"tp": 4}
    assert (base["attention_dtype"], base["ffn_dtype"]) == ("same", "same")
    assert [made.results(column)["head_dtype"] for column in range(3)] == ["bf16"] * 3
    assert eighth == base | {"tp": 2, "dp": 2, "weights_dtype": "fp8"}
    assert [made.results(column)["activation_dtype"] for column in range(3)] == ["bf16", "bf16", "fp8"]
    assert [column.name for column in made.columns] == ["TP8", "TP4", "2 × TP2"]


# --- configs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("llama-3.3-70b", "llama-3.3-70b"),
        ("Llama_3.3_70B", "llama-3.3-70b"),
        ("llama-3-3-70b", "llama-3.3-70b"),
        ("DeepSeek_V3", "deepseek-v3"),  # an id, and the beginning of others
        ("QWEN3-NEXT", "qwen3-next-80b"),
    ],
)
def test_a_model_is_found_however_its_id_is_spelt(given: str, meant: str) -> None:
    """Case does not matter, _ . and - are the same, and a beginning is enough where it is clear."""
    assert load_model(given).id == meant


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("Llama_3.1", "expected one of llama-3.1-405b, llama-3.1-70b, llama-3.1-8b"),
        ("olmo-3", "unknown model 'olmo-3'; did you mean olmo-3.1-32b"),  # another version
        ("", "unknown model ''"),
        ("-", "unknown model '-'"),
    ],
)
def test_a_spelling_that_is_not_clear_is_refused_with_what_could_be_meant(given: str, told: str) -> None:
    """Never guessed."""
    with pytest.raises(InputError) as raised:
        load_model(given)
    assert told in str(raised.value)


@pytest.mark.parametrize("model_type", ["nemotron-nas", "quantum_llama", "LLAMA", "mixtral_v9"])
def test_an_architecture_we_do_not_know_is_refused_by_name(model_type: str) -> None:
    """Never guessed from fields that happen to be there."""
    with pytest.raises(InputError) as raised:
        parse_config(LLAMA | {"model_type": model_type}, "config.json")
    told = str(raised.value)
    assert told.startswith(
        f"config.json: model_type '{model_type}' is not supported by a reader of ours, and "
    )
    assert "mantile[transformers]" in told
    assert told.partition("supported: ")[2].split(", ") == list(FAMILIES)
    with pytest.raises(InputError, match=rf"^config\.json: .*text_config\.model_type.*'{model_type}'"):
        parse_config(
            {"model_type": "llava", "text_config": LLAMA | {"model_type": model_type}, "vision_config": {}},
            "config.json",
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"hidden_size": ...},
            r"field hidden_size is missing; model_type 'llama' needs a whole number from 1 to \d+",
        ),
        ({"num_hidden_layers": ...}, r"field num_hidden_layers is missing"),
        ({"intermediate_size": ...}, r"field intermediate_size is missing"),
        ({"vocab_size": ...}, r"field vocab_size is missing"),
        ({"hidden_size": "64"}, r"field hidden_size: expected a whole number from 1 to \d+, found '64'"),
        ({"hidden_size": -64}, r"field hidden_size: .*found -64"),
        ({"hidden_size": True}, r"field hidden_size: .*found True"),
        ({"num_hidden_layers": 10**6}, r"field num_hidden_layers: expected a whole number from 1 to 10000"),
        (
            {"hidden_size": 65},
            r"hidden_size 65 is not a multiple of num_attention_heads 8 and head_dim is not given",
        ),
        (
            {"num_key_value_heads": 16},
            r"kv_heads: 16 \(num_key_value_heads\) is more than the 8 attention heads",
        ),
        ({"attention_bias": 1}, r"field attention_bias: expected true or false, found 1"),
        ({"tie_word_embeddings": "no"}, r"field tie_word_embeddings: expected true or false"),
        (
            {"torch_dtype": "float64"},
            r"field torch_dtype: expected one of bfloat16, float16, float32, found 'float64'",
        ),
        (
            {"quantization_config": {"quant_method": "abacus"}},
            r"field quantization_config\.quant_method: expected one of fp8, .*'abacus'",
        ),
        ({"quantization_config": 8}, r"field quantization_config: expected a mapping"),
        ({"model_type": ...}, r"field model_type is missing or not a text; supported: llama"),
        ({"model_type": 3}, r"field model_type is missing or not a text"),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": "one"},
            r"field max_window_layers: expected a whole number",
        ),
        (
            {"model_type": "qwen2", "layer_types": ["full_attention"]},
            r"field layer_types: expected a list of 2 texts",
        ),
        (
            {"model_type": "qwen2", "layer_types": ["full_attention", "none"]},
            r"field layer_types: .*each one of sliding_attention, full_attention",
        ),
    ],
)
def test_a_wrong_config_is_told_by_field(change: dict[str, Any], message: str) -> None:
    """`...` stands for a field left out."""
    config = {key: value for key, value in (LLAMA | change).items() if value is not ...}
    with pytest.raises(InputError, match=rf"^config\.json: .*{message}"):
        parse_config(config, "config.json")


def test_a_window_on_some_layers_makes_two_kinds_of_layer() -> None:
    """Qwen's switch: layers below max_window_layers attend to everything."""
    config = LLAMA | {
        "model_type": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 9,
        "num_hidden_layers": 5,
    }
    architecture = parse_config(config | {"max_window_layers": 3}, "config.json")
    assert architecture.sequence() == [("full", "ffn")] * 3 + [("sliding", "ffn")] * 2
    assert (
        architecture.blocks["sliding"].uses == {"window": "sliding_window"}
        and architecture.blocks["full"].uses == {}
    )
    for layers, window in ((0, 9), (5, 0)):
        alike = parse_config(config | {"max_window_layers": layers}, "config.json")
        assert len(alike.blocks) == 2 and alike.value("sliding_window") == window


def test_a_config_may_be_named_by_file_or_folder(tmp_path: Path) -> None:
    """And the model is then called as the folder is."""
    folder = tmp_path / "My Model"
    folder.mkdir()
    with pytest.raises(InputError, match=r"My Model: has no config\.json; it is empty; expected the config"):
        load_model(str(folder))
    (folder / "config.json").write_text(json.dumps(LLAMA))
    for name in (folder, folder / "config.json"):
        assert load_model(str(name)).id == "my-model"
        assert read_config(name) == parse_config(LLAMA, "config.json")
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json, line 1, column 2: not valid JSON"):
        load_model(str(folder))


FIELDS = (
    *LLAMA,
    "head_dim",
    "max_position_embeddings",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "use_bias",
    "hidden_act",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "layer_types",
    "num_experts",
    "num_nextn_predict_layers",
)


def test_every_family_has_a_small_config() -> None:
    """So that the configs made up below reach into each of them, alone or inside a vision-language model."""
    texts = [config.get("text_config", config) for config in SMALL.values()]
    assert {config["model_type"] for config in (*SMALL.values(), *texts)} >= FAMILIES.keys()
    for name, config in SMALL.items():
        assert parse_config(config, "config.json").model_type == config["model_type"], name


def test_a_missing_longest_context_is_the_default_of_the_class() -> None:
    """A missing key is not null and no reason to refuse a config.

    Every class has a figure, or no such thing.
    """
    for name, config in SMALL.items():
        text = {
            key: value
            for key, value in config.get("text_config", config).items()
            if key not in ("max_position_embeddings", "n_positions")
        }
        architecture = parse_config(
            config | {"text_config": text} if "text_config" in config else text, "config.json"
        )
        assert (
            "max_positions" not in architecture.facts
            or architecture.facts["max_positions"].origin == "default"
        ), name


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=5),
    st.integers(-(2**70), 2**70),
    st.integers(0, 70),
    st.floats(),
    st.sampled_from(
        [
            "bfloat16",
            "float32",
            {"quant_method": "fp8"},
            {"quant_method": None, "weight_block_size": 3},
            {"a": [{}]},
            [],
        ]
    ),
)


@settings(max_examples=100)
@given(st.data())
def test_any_config_is_an_architecture_or_an_input_error(data: st.DataObject) -> None:
    """Null, texts, huge numbers, NaN and nested values.

    Never another exception, never a figure out of range.
    """
    config = SMALL[data.draw(st.sampled_from(sorted(SMALL)))]
    part = data.draw(
        st.sampled_from([name for name in ("", "text_config", "vision_config") if not name or name in config])
    )
    fields = config[part] if part else config
    names = st.sampled_from(sorted({*FIELDS, *fields} - {"model_type"}))
    changed = fields | data.draw(st.dictionaries(names, odd, max_size=4))
    for name in data.draw(st.sets(names, max_size=2)):
        changed.pop(name, None)
    config = config | {part: changed} if part else changed
    try:
        architecture = parse_config(config, "config.json")
    except InputError as error:
        assert str(error).startswith("config.json: ")
        return
    text = config.get("text_config", config)
    stated = text.get("n_layer", text.get("num_hidden_layers"))
    assert stated is None or len(architecture.sequence()) == stated
    assert architecture.value("hidden_size") >= 1
    assert architecture.value("kv_heads") <= architecture.value("attention_heads")
    assert architecture.value("experts_per_token") <= architecture.value("experts")
    for name, fact in architecture.facts.items():
        assert fact.source, name
        assert 0 <= fact.value <= 2**40, name
    ir = build_ir(Model(id="odd", name="odd", source="test", architecture=architecture))
    assert [module.id for module in ir.modules][-1] == "lm_head"


# --- the hub ------------------------------------------------------------------------------------------------


class Refusal(Exception):
    """What the library of the hub raises."""


ERRORS = {
    name: type(name, (Refusal,), {})
    for name in ("GatedRepoError", "RepositoryNotFoundError", "EntryNotFoundError", "HfHubHTTPError")
}
ERRORS["LocalEntryNotFoundError"] = type("LocalEntryNotFoundError", (ERRORS["EntryNotFoundError"],), {})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A hub that holds these files, as {name: content}; an exception in place of a content is raised."""
    files: dict[str, Any] = {}
    verbosity = [30]

    def download(hub_id: str, file: str, revision: str) -> str:
        assert revision == "main"
        content = files.get(f"{hub_id}/{file}", ERRORS["EntryNotFoundError"]("no such file"))
        if isinstance(content, Exception):
            raise content
        path = tmp_path / hub_id / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    modules: dict[str, dict[str, Any]] = {
        "huggingface_hub": {
            "hf_hub_download": download,
            "list_repo_files": lambda hub_id, revision: [
                name.removeprefix(f"{hub_id}/")
                for name, content in files.items()
                if not isinstance(content, Exception)
            ],
        },
        "huggingface_hub.errors": ERRORS,
        "huggingface_hub.utils": {},
        "huggingface_hub.utils.logging": {
            "get_verbosity": lambda: verbosity[-1],
            "set_verbosity": verbosity.append,
        },
    }
    monkeypatch.setattr("mantile.library.hub._answers", lambda asked: True)
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    yield files
    assert verbosity[-1] == 30  # nothing that outlasts a call


def test_a_hub_id_is_read_from_the_hub(hub: dict[str, Any]) -> None:
    """Its config, and what lies beside it about quantisation; a model we ship is ours, without asking."""
    hub["some-lab/Tiny-1.1/config.json"] = LLAMA
    model = load_model("some-lab/Tiny-1.1")
    assert (model.id, model.name, model.hub_id) == ("tiny-1.1", "Tiny-1.1", "some-lab/Tiny-1.1")
    assert model.architecture == parse_config(LLAMA, "config.json")
    hub["some-lab/Tiny-1.1/hf_quant_config.json"] = {"quantization": {"quant_algo": "FP8"}}
    assert load_model("some-lab/Tiny-1.1").architecture.choices["weights_dtype"].value == "fp8"
    assert load_model("deepseek-ai/DeepSeek-V3") == load_model("deepseek-v3")
    hub["some-lab/Tiny-1.1/hf_quant_config.json"] = ERRORS["LocalEntryNotFoundError"]()
    with pytest.raises(InputError, match="may say how it is quantised"):
        load_model("some-lab/Tiny-1.1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ERRORS["GatedRepoError"](), "gated on the hub: accept its terms on its page, then log in"),
        (ERRORS["RepositoryNotFoundError"](), "not on the hub, or private"),
        (
            ERRORS["EntryNotFoundError"](),
            r"on the hub: has no config\.json; it is empty; expected the config",
        ),
        (
            ERRORS["LocalEntryNotFoundError"](),
            "the hub cannot be reached, and its config is not in the hub's cache: download "
            r"https://huggingface\.co/some-lab/tiny/resolve/main/config\.json and give its path",
        ),
        (
            ERRORS["HfHubHTTPError"]("503 busy\nTraceback"),
            "reading it from the hub failed: 503 busy; download https",
        ),
        (OSError(28, "No space left on device"), "reading it from the hub failed: .*No space left"),
        ("{", r"some-lab/tiny/config\.json, line 1, column 2: not valid JSON"),
        ({"model_type": "abacus"}, r"some-lab/tiny/config\.json: model_type 'abacus' is not supported"),
    ],
)
def test_what_the_hub_refuses_is_told(hub: dict[str, Any], content: Any, message: str) -> None:
    """Each reason in a line, with what to do."""
    hub["some-lab/tiny/config.json"] = content
    with pytest.raises(InputError, match=rf"^some-lab/tiny.*{message.removeprefix('some-lab/tiny')}"):
        load_model("some-lab/tiny")


def test_without_the_hubs_library_a_hub_id_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install; a name of another form is an unknown model."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        InputError, match=r"^some-lab/tiny: not a model we ship; .*pip install 'mantile\[hub\]'"
    ):
        load_model("some-lab/tiny")
    for name in ("a/b/c", "-lab/tiny", "some-lab/"):
        with pytest.raises(InputError, match="unknown model"):
            load_model(name)


@settings(max_examples=33)
@given(
    st.recursive(
        odd,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    )
)
def test_any_scenario_is_read_or_an_input_error(data: Any) -> None:
    """Whatever a YAML file may hold, whole or as one field."""
    for given_data in (
        data,
        SCENARIO | {"variants": data},
        SCENARIO | {"overrides": data},
        SCENARIO | {"date": data},
    ):
        try:
            scenario = parse_scenario(given_data, "plan.yaml")
        except InputError as error:
            assert str(error).startswith("plan.yaml: ")
        else:
            assert scenario.concurrency is not None
            assert scenario.concurrency >= 1


def test_validation_tells_every_problem_at_once() -> None:
    """One run, one list of what to mend."""
    with pytest.raises(InputError) as raised:
        facts = {
            "layers": {"value": -1, "origin": "guess"},
            "hidden_size": {"value": 1.5, "source": "here", "origin": "config"},
        }
        validate(
            Model,
            {"id": "", "architecture": {"model_type": 3, "facts": facts, "blocks": {"a": {"kind": "b"}}}},
            "model.yaml",
        )
    lines = str(raised.value).splitlines()
    assert len(lines) > 10
    assert any("architecture.facts.layers.origin" in line for line in lines)
    assert all(line.startswith("model.yaml: field ") for line in lines)


def test_a_fitted_factor_says_which_framework_it_saw(library: Library) -> None:
    """In its source, or by the profile that it stands in; one fitted for no framework is a framework's."""
    names = ("vLLM", "SGLang", "TensorRT-LLM", "ATOM", "llama.cpp", "EXO", "MLX")
    silent = [
        (profile.key, factor.factor, factor.format or factor.kv)
        for profile in library.efficiency
        for factor in profile.factors
        if factor.status == "fitted" and not profile.framework
        if not any(name in factor.source for name in names)
    ]
    assert not silent


def test_what_is_of_another_kind_is_told_in_plain_words() -> None:
    """Each field of a scenario with a number, text, list or mapping in its place: no word of a library."""
    plain = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 9, "output_tokens": 9}
    odd: tuple[Any, ...] = (
        5,
        "x",
        "",
        [],
        [1],
        ["x"],
        [{"a": 1}],
        {"a": 1},
        {"a": {"b": 2}},
        [[]],
        math.inf,
        math.nan,
    )
    cases = [{name: value} for name in Scenario.model_fields for value in odd]
    cases += [
        {"devices": value, "links": links}
        for value in odd
        for links in ({"preset": "mesh"}, {"between": 5}, {"between": [5]}, {"between": [{"a": 1}]}, 5)
    ]
    refused = 0
    for case in cases:
        try:
            parse_scenario(plain | {"concurrency": 1} | case, "a.yaml")
        except InputError as error:
            refused += 1
            assert "Input should" not in str(error) and "exclude_none" not in str(error), (case, str(error))
    assert refused > len(cases) / 2
    for case, told in (
        ({"overrides": 5}, "field overrides: expected a list (found 5)"),
        ({"decode": 5}, "field decode: expected names with values, as in {name: value} (found 5)"),
        ({"devices": "x"}, "field devices: expected a list (found 'x')"),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            parse_scenario(plain | {"concurrency": 1} | case, "a.yaml")


def test_a_wheel_holds_what_profiles_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the digest of a text: one that was changed since is read as YAML."""
    folder = Path(__file__).resolve().parents[1] / "profiles"
    held = json.loads(compiled.compile_profiles(folder))
    monkeypatch.setattr(compiled, "_compiled", lambda: held)
    text = (folder / "accelerators" / "h100-sxm.yaml").read_text()
    assert compiled.compiled(text) == parse_yaml(text, "h100-sxm.yaml")
    assert compiled.compiled(text.replace("H100", "H1OO")) is None
    assert len(held) > 250
    older = next((folder / "accelerators" / "versions").glob("*.yaml")).read_text()
    assert compiled.compiled(older) is None


def test_every_profile_that_we_ship_is_of_an_accelerator_that_there_is() -> None:
    """One of somebody's own may be of an accelerator that only a file has."""
    library = load_library()
    known = {chip.id for chip in library.accelerators} | {None}
    assert {profile.accelerator for profile in library.efficiency} <= known
