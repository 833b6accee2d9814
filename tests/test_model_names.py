"""What people hand over as a model: names as they are typed, paths, pages of the hub, what is no decoder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any

import pytest
from asking import Client
from small_models import CONFIGS
from typer.testing import CliRunner

from mantile.cli.application import app
from mantile.cli.flags import scenario as typed
from mantile.estimates.sweep import Grids, grids
from mantile.library import hub
from mantile.library.errors import InputError
from mantile.library.hub import HubName, fetch_config, hub_name
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.families import FAMILIES
from mantile.library.huggingface.other_kinds import _KIND_OF
from mantile.library.launch import read_launch
from mantile.library.launch_line import launch_line
from mantile.library.machines import engine_of
from mantile.library.model_names import Named, taken_for_granted
from mantile.library.models import known_models, load_model, model_ids
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, merge_fields
from mantile.measured.dialects import flat
from mantile.measured.rows import Row
from mantile.measured.runs import parse_run
from mantile.measured.spellings import find_accelerator
from mantile.search.question import ask
from mantile.server.documents import fields_of
from mantile.server.hardware import configuration
from mantile.server.page.answers import answer as on_page
from mantile.server.page.state import State

LLAMA = CONFIGS["llama"]

# --- names --------------------------------------------------------------------------------------------------

# Ids that the lists of supported models of vLLM and SGLang give as examples, of models we ship.
OF_ENGINES = {
    "CohereLabs/c4ai-command-r-v01": "command-r",
    "EleutherAI/gpt-j-6b": "gpt-j-6b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "Qwen/Qwen1.5-MoE-A2.7B-Chat": "qwen1.5-moe-a2.7b",
    "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "qwen3-next-80b",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo-v2-flash",
    "ai21labs/Jamba-v0.1": "jamba-v0.1",
    "allenai/OLMo-2-1124-7B-Instruct": "olmo-2-7b",
    "deepseek-ai/DeepSeek-R1": "deepseek-r1",
    "google/gemma-3-1b-it": "gemma-3-1b",
    "meta-llama/Llama-2-70b-hf": "llama-2-70b",
    "meta-llama/Llama-3.2-1B-Instruct": "llama-3.2-1b",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama-4-scout",
    "meta-llama/Meta-Llama-3.1-405B-Instruct": "llama-3.1-405b",
    "meta-llama/Meta-Llama-3.1-70B": "llama-3.1-70b",
    "microsoft/Phi-3.5-MoE-instruct": "phi-3.5-moe",
    "microsoft/Phi-4": "phi-4",
    "mistral-community/Mixtral-8x22B-v0.1": "mixtral-8x22b",
    "mistralai/Mistral-7B-Instruct-v0.1": "mistral-7b",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
    "moonshotai/Kimi-K2-Instruct": "kimi-k2",
    "moonshotai/Kimi-Linear-48B-A3B-Base": "kimi-linear-48b-a3b",
    "nvidia/Nemotron-H-56B-Base-8K": "nemotron-h-56b",
    "openai-community/gpt2": "gpt2",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "zai-org/GLM-5": "glm-5",
}
TYPED = {
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
    "meta-llama/llama-3.1-8b": "llama-3.1-8b",
    "Meta-Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "meta-llama/Llama-2-70b-chat-hf": "llama-2-70b",
    "llama3.1:8b": "llama-3.1-8b",
    "llama3:8b": "llama-3-8b",
    "gemma3:12b": "gemma-3-12b",
    "gpt-oss:20b": "gpt-oss-20b",
    "phi4:latest": "phi-4",
    "deepseek-r1:671b": "deepseek-r1",
    "deepseek-r1:7b": "qwen2.5-7b",
    "deepseek-r1:70b": "llama-3.3-70b",
    "https://ollama.com/library/llama3.1:8b": "llama-3.1-8b",
    "meta-llama/Llama-3.1-8B/": "llama-3.1-8b",
    "deepseek-r1-distill-qwen-32b": "qwen2.5-32b",
    "Qwen/Qwen2.5-Coder-32B-Instruct": "qwen2.5-32b",
    "THUDM/GLM-Z1-9B-0414": "glm-4-9b-0414",
    "deepseek-ai/DeepSeek-Coder-V2-Instruct": "deepseek-v2",
    "Qwen/Qwen3.6-27B": "qwen3.5-27b",
    "llama3.3": "llama-3.3-70b",
    "Llama-3.3-70B": "llama-3.3-70b",
    "Qwen2.5-7B-Instruct": "qwen2.5-7b",
    "gemma-3-27b": "gemma-3-27b",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-r1",
}


@pytest.mark.parametrize(("given", "meant"), (OF_ENGINES | TYPED).items())
def test_names_people_type_are_found(given: str, meant: str) -> None:
    """Without a network."""
    assert load_model(given).id == meant


def test_every_name_of_ours_stands_for_itself() -> None:
    """No two entries go by the same name."""
    for identifier, hub_id in known_models().hub_ids.items():
        for name in (identifier, identifier.upper(), hub_id, hub_id.lower(), hub_id.partition("/")[2]):
            assert known_models().find(name) == Named(identifier), name
    assert known_models().hub_ids.keys() == set(model_ids())


def test_a_tuned_variant_says_what_it_takes_for_granted() -> None:
    """Its own config was not read. Another spelling of the same model is the entry itself."""
    ours, tuned = load_model("llama-3.1-8b"), load_model("meta-llama/Llama-3.1-8B-Instruct")
    assert tuned.architecture == ours.architecture and tuned != ours
    assert tuned.source.startswith(
        f"{ours.source}; asked for as meta-llama/Llama-3.1-8B-Instruct: taken to have"
    )
    assert load_model("meta-llama/Llama-3.1-8B") == load_model("LLAMA_3.1-8B") == ours


def test_checkpoints_in_other_data_types_say_what_they_are(cut_off: dict[str, Path]) -> None:
    """Those that an entry lists, and those whose name says it; those that have an entry are that."""
    asked = load_model("nvidia/Llama-3.3-70B-Instruct-FP4")
    assert taken_for_granted(asked.source) == (
        "asked for as nvidia/Llama-3.3-70B-Instruct-FP4: a checkpoint of llama-3.3-70b with nvfp4 weights"
    )
    assert asked.id == "llama-3.3-70b" and load_model("Qwen3-14B-AWQ").id == "qwen3-14b"
    assert load_model("Qwen/Qwen3-32B-FP8").id == "qwen3-32b-fp8"
    asked = load_model("deepseek-ai/DeepSeek-R1-0528")
    assert asked.source.endswith("; asked for as deepseek-ai/DeepSeek-R1-0528, which the entry lists")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("qwen3", "is not clear: expected one of qwen3-0.6b, qwen3-1.7b, "),
        ("mixtral", "is not clear: expected one of mixtral-8x22b, mixtral-8x7b"),
        (
            "mistral-7b-v0.4",
            "mistral-7b-v0.4 is not in the library. Mistral-7B-Instruct-v0.3 is of the same family and size",
        ),
        (
            "Qwen3.8-27B",
            "Qwen3.8-27B is not in the library. Qwen3.5-27B is of the same family and size: if the "
            "architecture is the same, give qwen3.5-27b",
        ),
        (
            "qwen3-32b-exl2",
            "model 'qwen3-32b-exl2': no data type of the library is called exl2; give qwen3-32b with "
            "weights_dtype (known: awq-g32",
        ),
        (
            "unsloth/Qwen3-32B-GGUF:UD-Q4_K_XL",
            "no data type of the library is called q4_k_xl; give qwen3-32b with weights_dtype (did you mean "
            "q4_k_m",
        ),
        ("Qwen/Qwen3-32B-GGUF", "no data type of the library is called gguf; give qwen3-32b with"),
        (
            "some-lab/Strange-GGUF:Q8_0",
            "expected that file, or the model it was made from, with weights_dtype",
        ),
        ("gpt-4o", "its weights and dimensions are not published"),
        ("anthropic/claude-opus-4", "its weights and dimensions are not published"),
        ("whisper-large-v3", "its name says that it is an audio model"),
        ("bge-m3", "its name says that it is an encoder"),
        ("falconet", "unknown model 'falconet'; did you mean falcon-7b?"),
        ("strange", "unknown model 'strange'; `mantile list models` shows those that we ship"),
        (
            "https://github.com/meta-llama/llama",
            "expected an id, a model's page on the Hugging Face hub, or a",
        ),
        ("qwen", "unknown model 'qwen'; "),
    ],
)
def test_what_is_not_ours_is_told_with_what_comes_near(given: str, told: str) -> None:
    """Another version or another data type is another model."""
    with pytest.raises(InputError) as raised:
        load_model(given)
    assert told in str(raised.value)


# --- every door ---------------------------------------------------------------------------------------------

CHECKPOINTS = {
    "zai-org/GLM-5.2-FP8": ("glm-5.2", "fp8-block"),
    "glm-5.2": ("glm-5.2", None),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("qwen3-235b-a22b", None),
    "nvidia/Llama-3.3-70B-Instruct-FP4": ("llama-3.3-70b", "nvfp4"),
    "Llama-3.1-8B-Instruct-FP8": ("llama-3.1-8b", "fp8"),
    "llama-3.1-8b-bnb-4bit": ("llama-3.1-8b", "nf4"),
    "Llama-2-7B-Chat-GPTQ": ("llama-2-7b", "int4"),
    "Qwen3-14B-AWQ": ("qwen3-14b", "int4"),
    "qwen2.5:14b-instruct-q4_K_M": ("qwen2.5-14b", "q4_k_m"),
    "bartowski/Llama-3.2-3B-Instruct-GGUF:Q8_0": ("llama-3.2-3b", "q8_0"),
    "deepseek-ai/DeepSeek-V3": ("deepseek-v3", None),
    "DeepSeek-V3-FP8": ("deepseek-v3", None),
    "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8": ("qwen3-235b-a22b", "fp8-block"),
}
"""Names, the model that each means, and the data type of the weights that it says."""
ASKED: dict[str, Any] = {
    "accelerator": "h200-sxm",
    "framework": "vllm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 512,
    "concurrency": 8,
    "framework_support": "own build",
}


def python(name: str, **more: Any) -> tuple[str, str | None]:
    """As `mantile.estimate` reads it."""
    scenario = Scenario(model=name, **(ASKED | more))
    return load_model(scenario.model).id, scenario.weights_dtype


def command_line(name: str, **more: Any) -> tuple[str, str | None]:
    """As `mantile estimate` reads it."""
    scenario, _, _ = typed(name, ASKED | more)
    return load_model(scenario.model).id, scenario.weights_dtype


def server(name: str, **more: Any) -> tuple[str, str | None]:
    """As HTTP and the page read it."""
    fields, model = fields_of({"model": name} | ASKED | more, False)
    return model.id, fields.get("weights_dtype")


def line(name: str, **more: Any) -> tuple[str, str | None]:
    """As `mantile import` reads a launch line."""
    fields = read_launch(f"vllm serve {name}", **more).fields
    return fields["model"], fields.get("weights_dtype")


def table(name: str, **more: Any) -> tuple[str, str | None]:
    """As `mantile reconcile` and `records import` read a run."""
    run = parse_run({"model": name, "tpot_s": 0.02} | ASKED | more, "r1")
    return load_model(run.model).id, run.weights_dtype


@pytest.mark.parametrize("door", [python, command_line, server, line, table])
def test_a_name_is_the_same_model_in_every_door(door: Callable[..., tuple[str, str | None]]) -> None:
    """With the data type of the checkpoint, unless another is stated."""
    assert {name: door(name) for name in CHECKPOINTS} == CHECKPOINTS
    assert door("zai-org/GLM-5.2-FP8", weights_dtype="nvfp4") == ("glm-5.2", "nvfp4")


def test_a_model_given_beside_a_launch_line() -> None:
    """The path in the line says nothing; the name beside it says the data type, whatever the flags load."""
    fields = read_launch("vllm serve /models/it --quantization fp8", model="zai-org/GLM-5.2-FP8").fields
    assert (fields["model"], fields["weights_dtype"]) == ("glm-5.2", "fp8-block")


def test_a_flat_record_of_a_checkpoint() -> None:
    """Its `quant` goes before what the name says."""
    record = {
        "model_id": "zai-org/GLM-5.2-FP8",
        "runtime_id": "vllm 0.11.0",
        "hardware_id": "NVIDIA H200",
        "context_tokens": 2048,
        "output_tokens": 512,
        "concurrency": 8,
        "metrics": {"tpot_s": 0.02},
    }
    for stated, stored in (({}, "fp8-block"), ({"quant": "NVFP4"}, "nvfp4")):
        (run,) = flat(Row(record | stated), "r1")
        assert (run.model, run.weights_dtype, run.accelerator) == ("glm-5.2", stored, "h200-sxm")


def test_another_model_leaves_the_data_type_of_the_first_behind() -> None:
    """It came with its name; what was stated stays."""
    first = Scenario(model="zai-org/GLM-5.2-FP8", **ASKED)
    assert first.replace(model="llama-3.1-8b").weights_dtype is None
    assert first.replace(model="Qwen3-14B-AWQ").weights_dtype == "int4"
    swept = grids(first, {"model": ["llama-3.1-8b", "Qwen3-14B-AWQ"], "tp": [1]})
    assert isinstance(swept, Grids)
    assert [part.inputs["inputs.weights_dtype"] for part in swept.parts] == ["bf16", "int4"]
    stated = Scenario(model="zai-org/GLM-5.2-FP8", weights_dtype="nvfp4", **ASKED)
    assert stated.replace(model="llama-3.1-8b").weights_dtype == "nvfp4"


def test_a_result_says_by_which_checkpoint_it_was_asked_for() -> None:
    """On the command line; its launch line names the checkpoint again."""
    flags = ("--gpu", "h200", "--tp", "8", "--isl", "2k", "--osl", "512", "--concurrency", "8")
    shown = CliRunner().invoke(app, ["estimate", "zai-org/GLM-5.2-FP8", *flags])
    told = " ".join(shown.output.split())
    assert "asked for as zai-org/GLM-5.2-FP8: a checkpoint of glm-5.2 with fp8-block weights" in told
    scenario = Scenario(model="zai-org/GLM-5.2-FP8", **ASKED)
    assert launch_line(scenario).startswith("vllm serve zai-org/GLM-5.2-FP8 ")


def test_requests_and_the_page_say_it_too() -> None:
    """With the figures of the checkpoint."""
    said = "asked for as zai-org/GLM-5.2-FP8: a checkpoint of glm-5.2 with fp8-block weights."
    body = {
        "model_id": "zai-org/GLM-5.2-FP8",
        "hardware": {"gpus": [{"sku": "NVIDIA H200", "count": 8}]},
        "workload": {"context_tokens": 2048, "output_tokens": 512, "concurrency": 8},
        "plan": {"tp": 8},
        "recommend": 0,
    }
    with Client() as client:
        answered = client.answer("/v1/estimate", body)
    assert answered["model_id"] == "glm-5.2" and answered["scenario"]["weights_dtype"] == "fp8-block"
    assert f"GLM-5.2: {said}" in answered["explanations"]
    shown = on_page(State({"model": "zai-org/GLM-5.2-FP8"} | ASKED))
    values = shown.estimate.columns[0].values
    assert (shown.estimate.model.id, values["weights_dtype"]) == ("glm-5.2", "fp8-block")
    assert State({"model": "zai-org/GLM-5.2-FP8"} | ASKED).by_auto().fields["ep"] == "auto"


def test_data_types_to_choose_from_go_before_that_of_the_name() -> None:
    """They are a statement too."""
    load = {"input_tokens": 2048, "output_tokens": 512, "concurrency": 8, "accelerator": "h200-sxm"}
    fields = merge_fields({"model": "zai-org/GLM-5.2-FP8"}, load, "optimize")
    assert fields["weights_dtype"] == "fp8-block"
    question = ask(fields, "cost", [], 8, {"weights_dtype": ("nvfp4", "bf16")})
    assert question.over["weights_dtype"] == ("nvfp4", "bf16") and "weights_dtype" not in question.fields


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("H100", "h100-sxm"),
        ("h100-sxm5", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("AMD Instinct MI300X OAM", "mi300x"),
    ],
)
def test_an_accelerator_is_the_same_in_every_door(name: str, chip: str) -> None:
    """As people, drivers and tables call it."""
    library = load_library()
    found = (
        library.accelerator(name).id,
        find_accelerator(name).id,
        configuration(name, library, "here").fields["accelerator"],
        fields_of({"model": "llama-3.1-8b"} | ASKED | {"accelerator": name}, False)[0]["accelerator"],
    )
    assert set(found) == {chip}


def test_engines_and_data_types_by_their_other_names() -> None:
    """One list of names for flags, requests and tables."""
    library = load_library()
    for name in ("vLLM", "vLLM-v1", "vllm 0.11.0", "dynamo-vllm"):
        assert library.framework(name).id == "vllm" == engine_of(name, library)["framework"]
    for name in ("tensorrt-llm", "TensorRT-LLM", "trtllm", "TRT-LLM", "trt", "dynamo-trt"):
        assert library.framework(name).id == "trtllm"
    assert library.framework("SGLang").id == "sglang" and library.framework("llama-cpp").id == "llama.cpp"
    with pytest.raises(InputError, match="unknown framework 'vllmx'; did you mean vllm"):
        library.framework("vllmx")
    names = {"fp8_e4m3": "fp8", "FP8": "fp8", "BF16": "bf16", "bfloat16": "bf16", "q4_K_M": "q4_k_m",
             "w8a16": "int8-g128", "smoothquant": "int8", "AWQ": "int4", "mlx-4bit": "int4-g64"}  # fmt: skip
    for name, kind in names.items():
        assert library.datatype(name, "weights").id == library.format_in(name).id == kind


# --- paths and pages ----------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes files into the folder where the command runs."""
    monkeypatch.chdir(tmp_path)

    def write(**files: Any) -> Path:
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_json", ".json").replace("_gguf", ".gguf")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path

    return write


def test_a_path_that_exists_goes_before_a_hub_id(here: Callable[..., Path]) -> None:
    """Also before one of ours; and any .json is a config."""
    here(Qwen__Qwen3__config_json=LLAMA, other_json=LLAMA, UPPER_json=LLAMA)
    (Path("Qwen") / "Qwen3").rename("Qwen/Qwen3-8B")
    assert load_model("Qwen/Qwen3-8B").source == "Qwen3-8B given by the user"
    assert load_model("other.json").id == "other" and load_model("./Qwen/Qwen3-8B/").id == "qwen3-8b"
    Path("UPPER.json").rename("UPPER.JSON")
    assert load_model("UPPER.JSON").id == "upper"
    Path("llama-3.1-8b").mkdir()
    assert load_model("llama-3.1-8b").version, "our ids mean the same in every folder"


@pytest.mark.parametrize(
    ("files", "given", "told"),
    [
        (
            {"m__model_gguf": ""},
            "m",
            "m: holds GGUF files of llama.cpp and no config.json; expected one of them (model.gguf",
        ),
        ({"m__notes_json": {}}, "m", "m: has no config.json; it holds notes.json; expected the config.json"),
        ({"m__inner__config_json": LLAMA}, "m", "expected one inside: inner/config.json"),
        ({"m__snapshots__1__config_json": LLAMA}, "m", "expected one inside: snapshots/1/config.json"),
        (
            {"model_gguf": ""},
            "model.gguf",
            "model.gguf: ends inside its header",
        ),
        ({"notes": ""}, "./notes", "notes: expected a .json file such as config.json, a folder"),
        ({}, "./nothing", "nothing: No such file or folder; expected a config.json, or its folder"),
        ({}, "../nothing/config.json", "config.json: No such file or folder"),
        ({}, "~/nothing", "nothing: No such file or folder"),
        ({}, "nothing.gguf", "nothing.gguf: No such file or folder; expected a .gguf file"),
        (
            {"m__config_json": LLAMA, "m__modules_json": []},
            "m",
            "an embedding model, as modules.json beside it says",
        ),
        ({"m__config_json": {"model_type": "lama"}}, "m", "; did you mean llama or llama4?; supported: "),
        (
            {"m__config_json": {"architectures": ["Qwen2ForCausalLM"]}},
            "m",
            '"qwen2" by the class that it names',
        ),
        (
            {"m__config_json": {k: v for k, v in LLAMA.items() if k != "hidden_size"} | {"hidden_sise": 64}},
            "m",
            "field hidden_size is missing (there is hidden_sise)",
        ),
        (
            {"params_json": {"dim": 4096, "n_layers": 32}},
            "params.json",
            "in the form of Mistral's params.json, but",
        ),
        (
            {"m__adapter_config_json": {"peft_type": "LORA", "base_model_name_or_path": "some-lab/base"}},
            "m",
            "m: adapter_config.json: an adapter of the kind LORA, not a model: its weights come on top of "
            "those of 'some-lab/base'",
        ),
        (
            {"m__model_index_json": {"_class_name": "StableDiffusionXLPipeline"}},
            "m",
            "m: model_index.json: a diffusion model for images, video or sound",
        ),
        (
            {"m__config_json": LLAMA, "m__config_sentence_transformers_json": {}},
            "m",
            "an embedding model, as config_sentence_transformers.json beside it says; it writes no tokens",
        ),
    ],
)
def test_a_path_that_is_no_config_is_told_by_what_it_is(
    here: Callable[..., Path], files: dict[str, Any], given: str, told: str
) -> None:
    here(**files)
    with pytest.raises(InputError) as raised:
        load_model(given)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://huggingface.co/some-lab/Tiny-1.1",
        "https://huggingface.co/some-lab/Tiny-1.1/",
        "https://huggingface.co/some-lab/Tiny-1.1/tree/main",
        "https://huggingface.co/some-lab/Tiny-1.1/blob/main/config.json?download=true",
        "https://huggingface.co/some-lab/Tiny-1.1/discussions/3#4",
        "http://www.huggingface.co/some-lab/Tiny-1.1?library=transformers",
        "HuggingFace.co/some-lab/Tiny-1.1",
        "hf.co/some-lab/Tiny-1.1",
        "hf://some-lab/Tiny-1.1",
        "some-lab/Tiny-1.1",
    ],
)
def test_the_page_of_a_model_is_its_hub_id(address: str) -> None:
    assert hub_name(address) == HubName("some-lab/Tiny-1.1")


def test_other_pages_of_the_hub() -> None:
    """A revision is kept, a model of ours is ours, what is no model is refused."""
    assert hub_name("https://huggingface.co/some-lab/tiny/tree/v2/sub") == HubName("some-lab/tiny", "v2")
    assert load_model("https://huggingface.co/deepseek-ai/DeepSeek-V3/tree/main") == load_model("deepseek-v3")
    assert load_model("https://huggingface.co/gpt2") == load_model("gpt2")
    for address in ("https://huggingface.co/datasets/a/b", "https://huggingface.co", "hf.co/spaces/a/b"):
        with pytest.raises(InputError, match=r"expected the page of a model: https://huggingface\.co/org"):
            load_model(address)
    assert hub_name("llama-3.1-8b") is None and hub_name("a/b/c") is None


# --- without a network --------------------------------------------------------------------------------------


NO_SUCH_FILE = object()  # what the cache says of a file that the model is known not to have


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """A machine without a network: only what is in this cache is there, by organisation/model/file."""
    cache: dict[str, Path] = {}

    class LocalEntryNotFoundError(Exception):
        """As the library of the hub has it."""

    def cached(hub_id: str, file: str, revision: str) -> str | object | None:
        if "--" in hub_id:
            raise ValueError("Cannot have --")
        path = cache.get(f"{hub_id}/{file}")
        return NO_SUCH_FILE if path == Path() else path and str(path)

    def address(hub_id: str, file: str, revision: str) -> str:
        return f"https://mirror.example/{hub_id}/resolve/{revision}/{file}"

    def refuse() -> None:
        raise OSError("no route")

    names = ("GatedRepoError", "RepositoryNotFoundError", "EntryNotFoundError", "HfHubHTTPError")
    errors = {name: type(name, (Exception,), {}) for name in names}
    modules: dict[str, dict[str, Any]] = {
        "huggingface_hub": {
            "try_to_load_from_cache": cached,
            "hf_hub_url": address,
            "get_session": refuse,
        },
        "huggingface_hub.errors": {**errors, "LocalEntryNotFoundError": LocalEntryNotFoundError},
        "huggingface_hub.utils": {},
        "huggingface_hub.utils.logging": {"get_verbosity": lambda: 30, "set_verbosity": lambda level: None},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    return cache


def test_a_network_that_never_answers_is_not_waited_for(
    cut_off: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is still silent when it is said what to do."""
    answers, answered = Event(), Event()
    monkeypatch.setattr(hub, "_answers", lambda asked: answers.wait(600) and answered.set())
    with pytest.raises(InputError) as raised:
        load_model("nvidia/Llama-3.1-8B-Instruct-FP8-x")
    assert not answered.is_set()
    answers.set()
    told = str(raised.value)
    assert (
        "the hub cannot be reached, and its config is not in the hub's cache: download https://hugg" in told
    )
    assert "/resolve/main/config.json and give its path" in told


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_the_environment_says_that_the_hub_is_not_asked(
    cut_off: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    """Nothing is tried then; what lies in the cache is read."""
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(hub, "_answers", lambda asked: pytest.fail("a connection was tried"))
    with pytest.raises(InputError, match=rf"^some-lab/tiny: {variable} is set, and its config is not in the"):
        load_model("some-lab/tiny")
    for name, content in (
        ("config.json", LLAMA),
        ("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}}),
    ):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        cut_off[f"some-lab/tiny/{name}"] = tmp_path / name
    assert load_model("some-lab/tiny").architecture.choices["weights_dtype"].value == "fp8"
    cut_off["some-lab/tiny/hf_quant_config.json"] = Path()
    assert load_model("some-lab/tiny").architecture.choices["weights_dtype"].value != "fp8"
    del cut_off["some-lab/tiny/hf_quant_config.json"]
    with pytest.raises(
        InputError, match=rf"{variable} is set, and a hf_quant_config\.json there may say how"
    ):
        fetch_config(HubName("some-lab/tiny"), "hf_quant_config.json")


def test_whether_the_hub_answers(cut_off: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Any answer to the request of a download is one, a refusal too; a connection without a word is not."""
    asked: list[tuple[str, float]] = []
    outcome: list[Exception] = []

    class Session:
        """As the library of the hub has it, with the user's proxy and certificates."""

        def head(self, address: str, timeout: float) -> int:
            asked.append((address, timeout))
            if outcome:
                raise outcome[0]
            return 404

    monkeypatch.setattr("huggingface_hub.get_session", Session)
    assert hub._answers(HubName("some-lab/tiny", "v2"))
    assert asked == [("https://mirror.example/some-lab/tiny/resolve/v2/config.json", hub._PATIENCE)]
    outcome.append(TimeoutError("no word"))
    assert not hub._answers(HubName("some-lab/tiny"))
    assert hub._offline(HubName("some-lab/tiny")) == "the hub cannot be reached"
    outcome.clear()
    assert hub._offline(HubName("some-lab/tiny")) == ""


def test_an_id_that_the_hub_cannot_have_is_an_error_of_the_input(cut_off: dict[str, Path]) -> None:
    """The library of the hub has rules of its own for ids."""
    with pytest.raises(InputError, match=r"^some--lab/tiny: not an id that the hub can have: Cannot have --"):
        load_model("some--lab/tiny")


def test_what_is_of_somebody_else_or_another_revision_is_not_ours(cut_off: dict[str, Path]) -> None:
    """Only the hub can say what it is; without it, ours is told as what comes nearest."""
    for given, asked in (
        ("unsloth/Llama-3.3-70B-Instruct", "unsloth/Llama-3.3-70B-Instruct/resolve/main"),
        ("https://huggingface.co/meta-llama/Llama-3.3-70B-Instruct/tree/v2", "70B-Instruct/resolve/v2"),
    ):
        with pytest.raises(InputError) as raised:
            load_model(given)
        assert f"{asked}/config.json" in str(raised.value)
        assert str(raised.value).endswith("the nearest that we ship is llama-3.3-70b")
    for given, nearest in (
        ("some-lab/Llama-3.3-70B-Instruct-FP8", "llama-3.3-70b: give that with weights_dtype fp8"),
        ("Qwen/Qwen3.8-27B", "if the architecture is the same, give qwen3.5-27b"),
    ):
        with pytest.raises(InputError, match=f"{nearest}$"):
            load_model(given)


# --- what is no decoder -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"model_type": "t5"}, "model_type 't5': an encoder-decoder, which reads with one stack"),
        ({"model_type": "new_kind", "is_encoder_decoder": True}, "model_type 'new_kind': an encoder-decoder"),
        (
            {"model_type": "whisper", "is_encoder_decoder": True},
            "model_type 'whisper': an audio model; expected",
        ),
        (
            {"model_type": "qwen2_5_omni"},
            "a decoder that also hears, .*; expected a config.json with its text_config",
        ),
        (
            {"model_type": "bert"},
            "model_type 'bert': an encoder, as embeddings, rerankers and classifiers use",
        ),
        ({"model_type": "clip"}, "model_type 'clip': a vision model without a decoder"),
        ({"model_type": "Dream"}, "model_type 'Dream': a diffusion language model"),
        ({"_class_name": "UNet2DConditionModel"}, "'UNet2DConditionModel' of a diffusion model for images"),
        ({"_diffusers_version": "0.30"}, "a diffusion model for images, video or sound; expected"),
        (
            {"peft_type": "LORA"},
            "an adapter of the kind LORA, not a model: .* a base model that it does not name",
        ),
        (
            LLAMA | {"architectures": ["LlamaModel"]},
            "'LlamaModel': its checkpoint has none and generates no tokens",
        ),
        (
            LLAMA | {"architectures": ["LlamaForSequenceClassification"]},
            "'LlamaForSequenceClassification': its checkpoint has none and generates no tokens",
        ),
    ],
)
def test_what_is_no_decoder_is_refused_by_what_it_is(config: dict[str, Any], told: str) -> None:
    """Not as a model type that nobody knows; and with what to give instead."""
    with pytest.raises(InputError, match=rf"^config\.json: .*{told}"):
        parse_config(config, "config.json")


def test_decoders_are_not_taken_for_anything_else() -> None:
    """Every model type that is read, and classes that write tokens."""
    assert not set(_KIND_OF) & set(FAMILIES)
    for classes in (["LlamaForCausalLM"], ["GPT2LMHeadModel"], [], None, ["LlamaModel", "LlamaForCausalLM"]):
        assert parse_config(LLAMA | {"architectures": classes}, "config.json").model_type == "llama"
    assert parse_config(LLAMA | {"is_encoder_decoder": False}, "config.json").value("layers") == 5


def test_embedding_models_of_the_hub_are_told_by_their_name(cut_off: dict[str, Path]) -> None:
    """Their configs are those of decoders."""
    with pytest.raises(InputError, match=r"^Qwen/Qwen3-Embedding-8B: named as an embedding model"):
        load_model("Qwen/Qwen3-Embedding-8B")
