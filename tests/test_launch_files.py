"""Files that start a deployment: what they say is what the scenario says, and they are well formed."""

from __future__ import annotations

import math
import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_cli
import yaml

import mantile as mt
from mantile.estimates.launch import DoesNotFit, Launch, launch
from mantile.estimates.launch_files import files_of
from mantile.estimates.yaml_text import Noted, yaml_text
from mantile.library.launch import MEMORY
from mantile.library.launch_line import ENGINE_FIELDS
from mantile.library.launch_server import cluster
from mantile.library.launch_table import launch_tables
from mantile.library.scenario_fields import SCENARIO_FIELDS

run = test_cli.run
ENGINES = ("vllm", "sglang", "trtllm", "llama.cpp")
LOAD: dict[str, Any] = {
    "accelerator": "h200-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 24,
}
LINES = ("launch.sh", "launch-others.sh")


def started(**fields: Any) -> Launch:
    return launch(mt.estimate(mt.Scenario(**(LOAD | fields))))


def files(kubernetes: bool = False, **fields: Any) -> dict[str, str]:
    return files_of(started(**fields), kubernetes)


def written(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


# --- what is written is read as the scenario --------------------------------------------------------------


def drawn(engine: str, seed: int) -> dict[str, Any]:
    """A scenario of the library at random; one in some may be none that the engine can be told."""
    pick = random.Random(f"{engine} {seed}")
    model = pick.choice(["llama-3.1-8b", "llama-3.3-70b", "qwen3-30b-a3b", "gpt-oss-20b", "deepseek-r1"])
    fields: dict[str, Any] = {"model": model, "framework": engine, "dp": pick.choice([1, 1, 2, 3, 6])}
    experts = model in ("qwen3-30b-a3b", "gpt-oss-20b", "deepseek-r1")
    fields["tp"] = 8 if model == "deepseek-r1" else pick.choice([1, 2, 4])
    fields["pp"] = pick.choice([1, 1, 1, 2])
    fields["concurrency"] = pick.choice([8, 24, 600])
    if engine == "llama.cpp":
        fields |= {"microbatches": 1} if fields["pp"] > 1 else {}
        fields |= {"tp": 1} if fields["pp"] > 1 else {}
        fields["weights_dtype"] = pick.choice(["q4_k_m", "q8_0", "bf16"])
        fields["kv_dtype"] = pick.choice(["bf16", "q8_0"])
    else:
        fields["kv_dtype"] = pick.choice(["bf16", "fp8"])
        if experts and pick.random() < 0.5:
            fields |= {"attention_dp": fields["tp"], "tp": 1} if engine != "sglang" else {"attention_dp": 2}
        ranks = fields["tp"] * fields.get("attention_dp", 1)
        if experts and pick.random() < 0.6:
            fields["ep"] = ranks
        if model.startswith("llama") and pick.random() < 0.4:
            fields["weights_dtype"] = "fp8"
        fields |= {"token_budget": pick.choice([2048, 8192, 16384])} if pick.random() < 0.5 else {}
        fields |= {"max_model_len": 4096} if pick.random() < 0.5 else {}
    if pick.random() < 0.4:
        fields["max_requests"] = 16 * fields.get("attention_dp", 1)
    share = {"vllm": "gpu_memory_utilization", "sglang": "mem_fraction_static"}.get(engine)
    if share and pick.random() < 0.4:
        fields[share] = 0.85
    return fields


def assert_read_back(engine: str, seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """What is written of a scenario is read as its fields; whether it was not refused."""
    fields = drawn(engine, seed)
    scenario = mt.Scenario(**(LOAD | fields))
    estimate = mt.estimate(scenario)
    try:
        made = launch(estimate, anyway=True)
    except mt.InputError as error:
        assert "FRAMEWORK_" in str(error) or "no flag of" in str(error) or "machines" in str(error), error
        return False
    (server,) = made.servers
    texts = files_of(made)
    written(texts, folder)
    monkeypatch.chdir(folder)
    for name in filter(LINES.__contains__, texts):
        read = mt.read_launch(texts[name]).fields
        got = dict(read) | {"dp": read.get("dp", 1) * server.copies}
        shares = {override["id"]: override["value"] for override in read.get("overrides", ())}
        for share in ("gpu_memory_utilization", "mem_fraction_static"):
            if share in fields:
                assert shares == {MEMORY: fields.pop(share)}
        unsaid = {remark.flag.partition(" ")[0] for remark in server.not_expressed}
        own = mt.load_model(str(fields["model"])).architecture.choices["weights_dtype"].value
        defaults = {key: declared.default for key, declared in SCENARIO_FIELDS.items()}
        defaults |= {"weights_dtype": own, "microbatches": 0}
        wrong = {
            key: (value, got.get(key, defaults.get(key)))
            for key, value in fields.items()
            if key in (*ENGINE_FIELDS, "model", "framework") and key not in unsaid
            if got.get(key, defaults.get(key)) != value
            and not (key == "max_model_len" and engine == "llama.cpp")
        }
        assert not wrong, (name, wrong)
        more = {key for key in got if key in ENGINE_FIELDS and key not in fields}
        assert more <= {"token_budget", "max_requests"}, more
        if "token_budget" in more:
            assert got["token_budget"] == 8192
        if "max_requests" in more:
            assert any(flag.field == "concurrency" for flag in server.flags)
            batch, groups = estimate.results()["batch"], fields.get("attention_dp", 1)
            assert batch <= got["max_requests"] < batch + groups
    return True


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_written_is_read_as_the_scenario(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random scenarios of the library; most of them can be launched."""
    launched = [assert_read_back(engine, seed, tmp_path, monkeypatch) for seed in range(8)]
    assert sum(launched) >= 4


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ENGINES)
def test_many_are_read_as_their_scenarios(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = [assert_read_back(engine, seed, tmp_path, monkeypatch) for seed in range(8, 68)]
    assert sum(launched) >= 30


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "llama-3.3-70b", "tp": 4, "dp": 2, "kv_dtype": "fp8"},
        {"model": "qwen3-30b-a3b", "framework": "sglang", "tp": 2, "attention_dp": 2, "ep": 4},
        {"model": "llama-3.3-70b", "framework": "trtllm", "tp": 4, "weights_dtype": "fp8", "kv_dtype": "fp8"},
        {"model": "llama-3.1-8b", "framework": "llama.cpp", "concurrency": 4},
    ],
    ids=lambda fields: str(fields.get("framework", "vllm")),
)
def test_the_line_is_estimated_as_the_scenario(
    fields: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same latencies and throughput, to the last bit."""
    texts = files(**fields)
    written(texts, tmp_path)
    monkeypatch.chdir(tmp_path)
    read = mt.read_launch(
        texts["launch.sh"], **(LOAD | {k: fields[k] for k in ("concurrency",) if k in fields})
    )
    again = mt.estimate(mt.Scenario(**read.fields))
    first = mt.estimate(mt.Scenario(**(LOAD | fields)))
    assert (again.ttft, again.tpot, again.output_tokens_per_s) == (
        first.ttft,
        first.tpot,
        first.output_tokens_per_s,
    )


def test_a_scenario_with_every_field_of_the_plan_stated_is_launched() -> None:
    """Defaults that are stated are no flags, and nothing is said of them."""
    stated = {name: 1 for name in ("tp", "pp", "dp", "ep", "attention_dp", "cp")}
    plan: dict[str, Any] = {
        **stated,
        "tp": 2,
        "system": "hgx-h200",
        "framework": "vllm",
        "serving": "aggregated",
        "weights_dtype": "bf16",
        "kv_dtype": "bf16",
        "offload_weights": 0,
        "offload_kv": 0,
        "scheduler": "default",
        "speculation": "none",
    }
    text = mt.launch_files(mt.Scenario(model="llama-3.3-70b", **(LOAD | plan)))["launch.sh"]
    command = text[text.index("exec ") :].replace(" \\\n ", "").split()
    assert command == [
        *("exec", "vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "--tensor-parallel-size", "2"),
        *("--max-num-batched-tokens", "8192", "--host", "0.0.0.0", "--port", "8000"),
    ]


def test_a_load_beyond_the_limit_of_the_engine_raises_it() -> None:
    """Where the estimate has more requests at once than the engine takes; each group has its own."""
    fields = {"model": "gpt-oss-20b", "attention_dp": 2, "input_tokens": 100, "output_tokens": 50}
    few, many = (files(**fields, concurrency=count)["launch.sh"] for count in (2048, 3001))
    assert "--max-num-seqs" not in few
    assert "  --max-num-seqs 1501 \\\n" in many
    assert mt.read_launch(many).fields["max_requests"] == 3002


DRAFTS: dict[str, dict[str, Any]] = {
    "vllm mtp": {
        "framework": "vllm",
        "model": "deepseek-r1",
        "tp": 8,
        "speculation": "mtp",
        "draft_tokens": 1,
    },
    "sglang mtp": {"framework": "sglang", "model": "deepseek-r1", "tp": 8, "speculation": "mtp"},
    "trtllm mtp": {"framework": "trtllm", "model": "deepseek-r1", "tp": 8, "speculation": "mtp"},
    "trtllm eagle": {"framework": "trtllm", "model": "llama-3.1-8b", "speculation": "eagle"},
    "vllm draft model": {
        **{"framework": "vllm", "model": "llama-3.3-70b", "tp": 4, "speculation": "draft-model"},
        **{"draft_model": "llama-3.2-1b", "acceptance_rate": 0.7, "draft_tokens": 4},
    },
}


@pytest.mark.parametrize("name", DRAFTS)
def test_drafts_are_written_and_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what drafts, where that is a checkpoint of its own."""
    fields = DRAFTS[name]
    texts = files(**fields)
    written(texts, tmp_path)
    monkeypatch.chdir(tmp_path)
    read = mt.read_launch(texts["launch.sh"]).fields
    assert (read["speculation"], read["draft_tokens"]) == (
        fields["speculation"],
        fields.get("draft_tokens", 3),
    )
    everything = "".join(texts.values())
    if name == "trtllm eagle":
        options = yaml.safe_load(texts["extra-options.yaml"])["speculative_config"]
        model = "DRAFT_MODEL_PATH"
        assert options == {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": model}
        assert f"#   {model}: " in texts["launch.sh"]
    elif name == "vllm draft model":
        assert "--speculative-config.model meta-llama/Llama-3.2-1B" in everything
    else:
        assert "DRAFT_MODEL_PATH" not in everything
    if name == "sglang mtp":
        assert (
            "--speculative-algorithm NEXTN" in everything and "--speculative-num-draft-tokens 4" in everything
        )


# --- each flag has an origin --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_every_flag_is_traced(engine: str) -> None:
    """To a field that the scenario has, or to the service, and to a document with a day."""
    plan = {"tp": 1} if engine == "llama.cpp" else {"tp": 2, "kv_dtype": "fp8"}
    made = started(model="llama-3.1-8b", framework=engine, **plan)
    text = files_of(made)["launch.sh"]
    line = text[text.index("exec ") :]
    for flag in made.flags():
        assert flag["field"] is None or all(
            name in SCENARIO_FIELDS or name == "model" for name in flag["field"].split(", ")
        ), flag
        assert "https://" in flag["source"] and "(2026-" in flag["source"], flag
        assert flag["flag"] == "model" or flag["flag"] in line or flag["flag"] in str(files_of(made)), flag
    words = {word for word in line.split() if word.startswith("-") and word != "-m"}
    assert words <= {flag["flag"] for flag in made.flags()}


def test_what_no_flag_says_is_listed() -> None:
    fields = {"sequence_parallel": "on", "prefix_hit_rate": 0.5, "price_basis": "owned"}
    text = files(
        model="llama-3.1-8b", tp=2, overrides=[{"id": "efficiency.gemm_compute", "value": 0.7}], **fields
    )
    told = text["launch.sh"].partition("# not expressed:")[2].partition("\nset -eu")[0]
    told = " ".join(told.replace("#", " ").split())
    assert "sequence_parallel on: no flag of vLLM stands for it" in told
    assert "efficiency.gemm_compute 0.7: a figure of the estimate, not of the engine" in told
    assert "prefix_hit_rate 0.5" in told and "price_basis owned" in told


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        ({"model": "llama-3.3-70b", "framework": "llama.cpp", "tp": 2}, "ORGANISATION"),
        ({"model": "qwen3-8b", "framework": "trtllm", "weights_dtype": "int8"}, "MODEL_PATH"),
    ],
)
def test_a_checkpoint_that_is_not_known_is_a_blank(fields: dict[str, Any], model: str) -> None:
    """And the file says so."""
    text = files(**fields)["launch.sh"]
    assert f"#   {model}: " in text.partition("# fill in:")[2]
    assert model in text[text.index("exec ") :]


def test_a_model_of_ones_own_is_a_blank(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,'
        '"num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, '
        '"tie_word_embeddings": true,'
        '"torch_dtype": "bfloat16", "max_position_embeddings": 131072}'
    )
    text = files(model=str(config), tp=2)["launch.sh"]
    assert "vllm serve MODEL_PATH" in text and "#   MODEL_PATH: " in text


def test_a_tuned_model_keeps_its_name() -> None:
    """Where the scenario gives an id of the hub, it is that which is served."""
    name = "meta-llama/Llama-3.1-8B-Instruct"
    text = files(model=name)["launch.sh"]
    assert f"exec vllm serve {name} " in text
    assert mt.load_model(mt.read_launch(text).fields["model"]).id == "llama-3.1-8b"


@pytest.mark.parametrize("framework", ["vllm", "llama.cpp"])
def test_classes_of_requests_at_a_rate_are_launched(framework: str) -> None:
    """Lengths follow from the classes; nobody says how many requests are at work at once."""
    classes = [{"name": "chat", "input_tokens": 300, "output_tokens": 100}]
    scenario = mt.Scenario(
        model="llama-3.1-8b", accelerator="h200-sxm", framework=framework, request_rate=2, classes=classes
    )
    text = mt.launch_files(scenario)["launch.sh"]
    assert "--max-num-seqs" not in text and " -np " not in text
    assert "classes chat" in text
    assert ("slots and context: at a rate" in text) == (framework == "llama.cpp")


# --- more than one server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_workers_apart_have_lines_of_their_own(framework: str, tmp_path: Path) -> None:
    """Each of its own plan, and a router that knows all of them."""
    made = started(model="llama-3.3-70b", framework=framework, tp=2, dp=3, decode_tp=4, decode_dp=2)
    texts = files_of(made)
    assert {"prefill.sh", "decode.sh", "router.sh"} <= texts.keys()
    assert [(server.role, server.copies, server.accelerators) for server in made.servers] == [
        ("prefill", 3, 2),
        ("decode", 2, 4),
    ]
    for server in made.servers:
        line = replace(server, service=()).words("", "", "")
        assert mt.read_launch(" ".join(line)).fields["tp"] == server.accelerators
    hosts = texts["router.sh"] + texts.get("router.yaml", "")
    assert all(f"PREFILL_{n}" in hosts for n in (1, 2, 3)) and "PREFILL_4" not in hosts
    assert "DECODE_2" in hosts and "DECODE_3" not in hosts
    if framework == "trtllm":
        options = yaml.safe_load(texts["prefill-options.yaml"])
        assert options["disable_overlap_scheduler"] is True
        assert options["cache_transceiver_config"] == {"backend": "UCX", "max_tokens_in_buffer": 1200}
        assert yaml.safe_load(texts["router.yaml"])["context_servers"]["num_instances"] == 3
    with pytest.raises(mt.InputError, match=r"--kubernetes: no document of .* workers of their own"):
        files_of(made, kubernetes=True)


def test_ranks_over_machines() -> None:
    """Each engine as its documents have it."""
    groups = files(model="deepseek-r1", attention_dp=16, ep=16)
    assert "--data-parallel-start-rank" not in groups["launch.sh"]
    assert '--data-parallel-start-rank "$((NODE_RANK * 8))"' in groups["launch-others.sh"]
    stages = files(model="llama-3.1-405b", tp=8, pp=2)
    assert '--node-rank "$NODE_RANK"' in stages["launch.sh"] and "--headless" in stages["launch-others.sh"]
    both = files(model="llama-3.1-405b", framework="sglang", tp=16)["launch.sh"]
    assert '--dist-init-addr "$HEAD_ADDRESS:20000"' in both and "--nnodes 2" in both
    slurm = files(model="llama-3.1-405b", framework="trtllm", tp=16)["launch.sh"]
    assert "exec srun -N 2" in slurm.replace(" \\\n ", "") and "trtllm-llmapi-launch trtllm-serve" in slurm
    trays = started(model="llama-3.1-405b", accelerator="gb200-nvl72", tp=8).servers[0]
    assert (trays.machines, trays.accelerators) == (2, 4)


# --- files are well formed ----------------------------------------------------------------------------------

KUBERNETES: dict[str, dict[str, Any]] = {
    "Deployment": {"model": "llama-3.3-70b", "tp": 4, "dp": 2},
    "replicas": {"model": "llama-3.3-70b", "tp": 8, "dp": 3},
    "options": {"model": "llama-3.3-70b", "framework": "trtllm", "tp": 4, "dp": 2, "kv_dtype": "fp8"},
    "AMD": {"model": "llama-3.3-70b", "framework": "sglang", "tp": 4, "accelerator": "mi300x"},
    "one process": {"model": "llama-3.1-8b", "framework": "llama.cpp", "dp": 2},
    "groups on machines": {"model": "deepseek-r1", "attention_dp": 16, "ep": 16},
    "ranks on machines": {"model": "llama-3.1-405b", "framework": "sglang", "tp": 16, "dp": 2},
}


@pytest.mark.parametrize("name", KUBERNETES)
def test_a_manifest_has_all_that_a_cluster_needs(name: str) -> None:
    """Kinds, fields that point at one another, probes, accelerators and memory."""
    made = started(**KUBERNETES[name])
    (server,) = made.servers
    documents = list(yaml.safe_load_all(files_of(made, kubernetes=True)["kubernetes.yaml"]))
    by_kind = {document["kind"]: document for document in documents}
    several = server.machines > 1
    main = by_kind["LeaderWorkerSet" if several else "Deployment"]
    assert main["apiVersion"] == ("leaderworkerset.x-k8s.io/v1" if several else "apps/v1")
    assert by_kind["Service"]["apiVersion"] == "v1"
    assert {document["metadata"]["name"] for document in documents} == {main["metadata"]["name"]}
    spec = main["spec"]
    assert spec["replicas"] == server.copies
    if several:
        assert spec["leaderWorkerTemplate"]["size"] == server.machines
        template = spec["leaderWorkerTemplate"]["leaderTemplate"]
        pods = [template["spec"], spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]]
        labels = template["metadata"]["labels"] | {
            "leaderworkerset.sigs.k8s.io/name": main["metadata"]["name"]
        }
    else:
        template = spec["template"]
        pods, labels = [template["spec"]], template["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert by_kind["Service"]["spec"]["selector"].items() <= labels.items()
    fields = KUBERNETES[name]
    degrees = [fields.get(degree, 1) for degree in ("tp", "pp", "dp", "attention_dp")]
    assert server.accelerators * server.machines * server.copies == math.prod(degrees)
    made = mt.estimate(mt.Scenario(**(LOAD | fields)))
    of_a_rank = made["startup.ram"].value
    assert server.ram == pytest.approx(of_a_rank * server.accelerators)
    if server.machines * server.copies == 1:
        assert server.ram == pytest.approx(made.to_dict()["ram_peak_bytes"])
    plugin = "amd.com/gpu" if server.chip.vendor == "AMD" else "nvidia.com/gpu"
    port = server.table.server.listening.port
    for pod in pods:
        (container,) = pod["containers"]
        resources = container["resources"]
        assert resources["limits"] == {plugin: str(server.accelerators)}
        assert resources["requests"]["memory"].endswith("G")
        asked, ram = int(resources["requests"]["memory"][:-1]) * 1e9, server.ram
        assert ram <= asked <= ram + 1e9
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", ())}
        assert volumes.keys() == mounts.keys()
        if server.table.id != "llama.cpp":
            assert mounts["shared-memory"] == "/dev/shm"
            assert volumes["shared-memory"]["emptyDir"]["medium"] == "Memory"
        if server.settings:
            config = by_kind["ConfigMap"]
            assert volumes["options"]["configMap"]["name"] == config["metadata"]["name"]
            assert yaml.safe_load(config["data"]["extra-options.yaml"])["kv_cache_config"]["dtype"] == "fp8"
            assert f"{mounts['options']}/extra-options.yaml" in container["args"]
    first = pods[0]["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert first[probe]["httpGet"] == {"path": "/health", "port": port}
        assert first[probe]["periodSeconds"] > 0
    assert first["ports"] == [{"containerPort": port}]
    assert by_kind["Service"]["spec"]["ports"][0]["targetPort"] == port
    if not several:
        words = [*first.get("command", ["llama-server"]), *first["args"]]
        assert all(isinstance(word, str) for word in words)
        line = server.words("", "", "")
        assert [word.removeprefix("/config/") for word in words] == line


@pytest.mark.parametrize("name", [*KUBERNETES, "apart"])
def test_commands_are_read_by_a_shell(name: str, tmp_path: Path) -> None:
    """They ask for what they lack, and run nothing else than the engine."""
    apart = {"model": "llama-3.3-70b", "tp": 4, "dp": 2, "decode_tp": 4}
    texts = files(**KUBERNETES.get(name, apart))
    written(texts, tmp_path)
    engine = tmp_path / "bin"
    engine.mkdir()
    for program in ("vllm", "python", "python3", "trtllm-serve", "llama-server"):
        (engine / program).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (engine / program).chmod(0o755)
    values = {"HEAD_ADDRESS": "10.0.0.1", "NODE_RANK": "1", "VLLM_NIXL_SIDE_CHANNEL_HOST": "10.0.0.2"}
    for file in (file for file in texts if file.endswith(".sh")):
        environment = {"PATH": f"{engine}:{os.environ['PATH']}"}
        ran = subprocess.run(
            ["sh", str(tmp_path / file)], env=environment | values, capture_output=True, text=True, check=True
        )
        assert ran.stderr == "" and "$" not in ran.stdout
        if "NODE_RANK" in texts[file].partition("set -eu")[2]:
            without = subprocess.run(
                ["sh", str(tmp_path / file)], env=environment, capture_output=True, text=True, check=False
            )
            assert without.returncode != 0 and "HEAD_ADDRESS" in without.stderr
        assert all(
            len(line) <= 80 or "https://" in line or "{" in line
            for line in texts[file].splitlines()
            if line[0] == "#"
        )
    if name == "groups on machines":
        assert "--data-parallel-start-rank\n8\n" in ran.stdout


@pytest.mark.parametrize(
    "data",
    [
        {"a": {"b": [1, True, None, 0.5]}, "no": "yes", "x y": "1.0"},
        {"list": [{"name": "on", "deep": {"value": "a: b"}}, "- x", "--flag", "#", "a:b", "{json: 1}"]},
        {"text": "first\n  second\n", "empty": "", "none": [], "path": "/dev/shm", "0.0.0.0": "0.0.0.0"},
        {"date": "2026-11-25", "number": "8192", "nan": ".nan", "é": "→", "colon": "a:"},
    ],
)
def test_yaml_is_read_as_what_was_written(data: Any) -> None:
    assert yaml.safe_load(yaml_text(data)) == data
    noted = {key: Noted(value, "a note: of it") for key, value in data.items()}
    assert yaml.safe_load(yaml_text(noted)) == data


def test_what_is_known_of_servers_holds_together() -> None:
    """Every engine of the tables has a container for some maker with a plugin, and an endpoint of health."""
    assert set(launch_tables()) == set(ENGINES)
    for table in launch_tables().values():
        assert table.server.listening.health.startswith("/")
        assert str(table.server.listening.port) in table.server.listening.words
        assert any(cluster().resource(image.maker) for image in table.server.images)
        assert bool(table.server.options) == any(
            not flag.name.startswith("-") for group in table.groups for flag in group.flags
        )
    systems = {system.id for system in mt.load_library().systems}
    assert all(host.system in systems for host in cluster().hosts)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"framework": "llama.cpp", "weights_dtype": "nvfp4"}, "FRAMEWORK_FORMAT.*own build.*--framework"),
        ({"framework": "trtllm", "weights_dtype": "q4_k_m"}, "FRAMEWORK_FORMAT"),
        ({"framework": "trtllm", "accelerator": "v100-sxm2-32gb"}, "FRAMEWORK_CHIP"),
        ({"framework": "llama.cpp", "attention_dp": 2}, "FRAMEWORK_PARALLELISM"),
        ({"framework": "llama.cpp", "decode_tp": 2}, "FRAMEWORK_DISAGGREGATED"),
        ({"framework": "mlx", "accelerator": "m3-ultra"}, "framework mlx: no table of its flags"),
        (
            {"model": "qwen3-30b-a3b", "tp": 4, "ep": 2},
            "no flag of vLLM says ep 2 .a line means 1.; expected",
        ),
        ({"cp": 2, "tp": 2}, "no flag of vLLM says cp 2"),
        ({"offload_kv": 3, "tp": 2}, "no flag of vLLM says offload_kv 3"),
        ({"framework": "llama.cpp", "tp": 16, "weights_dtype": "bf16", "tp_padding": "padded"}, "2 machines"),
        (
            {"decode_tp": 2, "decode_framework": "sglang"},
            "decode.framework sglang: no document says how it takes over",
        ),
    ],
)
def test_what_cannot_be_launched_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    scenario = mt.Scenario(**(LOAD | {"model": "llama-3.1-8b"} | fields))
    with pytest.raises(mt.InputError, match=message) as refused:
        mt.launch_files(scenario, anyway=True)
    assert not isinstance(refused.value, DoesNotFit)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"accelerator": "gaudi3"}, "no container of vLLM for .*; expected the command alone"),
        (
            {"framework": "trtllm", "model": "llama-3.1-405b", "tp": 16},
            "no document of TensorRT-LLM .* 2 machines",
        ),
    ],
)
def test_a_manifest_that_nobody_documents_is_refused(fields: dict[str, Any], message: str) -> None:
    scenario = mt.Scenario(**(LOAD | {"model": "llama-3.1-8b", "tp": 2} | fields))
    assert mt.launch_files(scenario, anyway=True)
    with pytest.raises(mt.InputError, match=f"--kubernetes: {message}"):
        mt.launch_files(scenario, kubernetes=True, anyway=True)


def test_a_plan_that_does_not_fit_is_refused_unless_it_is_wanted_anyway() -> None:
    scenario = mt.Scenario(**(LOAD | {"model": "llama-3.3-70b"}))
    with pytest.raises(DoesNotFit, match="MEMORY_EXCEEDED") as refused:
        mt.launch_files(scenario)
    assert [error["code"] for error in refused.value.errors] == ["MEMORY_EXCEEDED"]
    text = mt.launch_files(scenario, anyway=True)["launch.sh"]
    assert "# ! by the estimate this plan does not work:\n# ! MEMORY_EXCEEDED: " in text


# --- the command --------------------------------------------------------------------------------------------

CASE = ("--accelerator", "h200-sxm", "--isl", "1000", "--osl", "200", "--concurrency", "24")


def test_the_command_writes_files(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ran = run(
        *("launch", "llama-3.3-70b", *CASE, "--tp", "4", "--framework", "trtllm", "--kv-dtype", "fp8"),
        *("--kubernetes", "-o", str(folder)),
    )
    assert ran.status == 0, ran.err
    names = {"launch.sh", "extra-options.yaml", "kubernetes.yaml"}
    assert {path.name for path in folder.iterdir()} == names
    assert os.access(folder / "launch.sh", os.X_OK)
    assert "not expressed:" in ran.out and "next: kubectl apply -f" in ran.out


def test_the_command_prints_json(run: Any) -> None:
    data = run("launch", "llama-3.1-8b", *CASE, "--tp", "2", "--json").data
    assert set(data) == {"files", "flags", "servers", "checks"}
    tp = next(flag for flag in data["flags"] if flag["field"] == "tp")
    assert tp == {
        "server": "server",
        "flag": "--tensor-parallel-size",
        "value": "2",
        "field": "tp",
        "source": "vLLM, Engine Arguments; section ParallelConfig; "
        "https://docs.vllm.ai/en/latest/configuration/engine_args/ (2026-11-24)",
    }
    assert data["servers"][0]["ram_per_machine_bytes"] > 0


def test_the_command_refuses_with_its_exit_status(run: Any, tmp_path: Path) -> None:
    """1: the plan does not work; 2: it cannot be launched, or there is nowhere to write to."""
    folder = tmp_path / "out"
    ran = run("launch", "llama-3.3-70b", *CASE, "-o", str(folder))
    assert ran.status == 1 and "MEMORY_EXCEEDED" in ran.out and not folder.exists()
    ran = run("launch", "llama-3.3-70b", *CASE, "--json")
    assert ran.status == 1
    assert run("launch", "llama-3.3-70b", *CASE, "--anyway", "-o", str(folder)).status == 0
    ran = run("launch", "llama-3.1-8b", *CASE, "--framework", "trtllm", "--weights-dtype", "q4_k_m")
    assert ran.status == 2 and "FRAMEWORK_FORMAT" in ran.err
    assert run("launch", "llama-3.1-8b", *CASE, "-o", str(tmp_path / "no" / "where")).status == 2
    assert run("launch", "llama-3.1-8b", *CASE, "-o", str(folder / "launch.sh")).status == 2
