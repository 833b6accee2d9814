"""The command line: exit status, messages and the keys of --json, which are public."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import mantile
from mantile.cli import app, main
from mantile.cli.application import FORMER
from mantile.cli.flags import flagged
from mantile.cli.output.tables import new_table, open_console
from mantile.equations.text import FOLDER, read, subjects

CASE = ("--accelerator", "h100-sxm", "--input-tokens", "1024", "--output-tokens", "128", "--concurrency", "8")
SCENARIO = """\
title: 70B chat service
model: llama-3.3-70b
accelerator: h100-sxm
tp: 8
isl: 2048
osl: 256
concurrency: 16
overrides:
  - {id: efficiency.gemm_compute, value: 0.7, reason: measured here}
variants:
  - {name: 2 x TP4, tp: 4, dp: 2}
"""
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 131072,
}


class Ran:
    """What a command printed and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def data(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert self.status == 0, self.err

        def refuse(constant: str) -> float:
            raise AssertionError(f"{constant} is not JSON")

        found = json.loads(self.out, parse_constant=refuse)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["mantile", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        shown = capsys.readouterr()
        return Ran(status, shown.out, shown.err)

    return command


def refused(ran: Ran, *words: str) -> None:
    """Exit status 2, a plain message with these words, no traceback, nothing on stdout."""
    assert ran.status == 2, (ran.out, ran.err)
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert all(line.startswith("mantile: ") for line in ran.err.splitlines()), ran.err
    for word in words:
        assert word in ran.err, ran.err


def process(arguments: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own, away from the checkout."""
    root = str(Path(mantile.__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, "-m", "mantile", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": root, **environment},
        encoding="utf-8",
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("line", "unbuffered"),
    [
        ("list models", "1"),
        ("list models --json", ""),
        ("list quantities --format csv", "1"),
        ("--help", ""),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(line: str, unbuffered: str, tmp_path: Path) -> None:
    """As `mantile ... | head -1` does: whoever of us or of the libraries writes, the status is 0."""
    root = str(Path(mantile.__file__).resolve().parents[1])
    with subprocess.Popen(
        [sys.executable, "-m", "mantile", *line.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root, "PYTHONUNBUFFERED": unbuffered},
    ) as ran:
        assert ran.stdout is not None and ran.stderr is not None
        ran.stdout.close()
        said = ran.stderr.read()
    assert (ran.returncode, said) == (0, b"")


def test_a_command_imports_what_it_needs_alone(tmp_path: Path) -> None:
    """What takes long to import waits for a command that needs it; `.ci/benchmarks.py` measures how long."""
    heavy = process(["--version"], tmp_path, PYTHONPROFILEIMPORTTIME="1").stderr
    for module in ("numpy", "pydantic", "yaml", "xlsxwriter", "openpyxl", "formulas", "pint"):
        assert f"| {module}\n" not in heavy.replace("|   ", "| "), f"--version imports {module}"
    asked = ["estimate", "llama-3.1-8b", *CASE]
    heavy = process(asked, tmp_path, PYTHONPROFILEIMPORTTIME="1").stderr
    for module in ("pandas", "scipy", "xlsxwriter", "openpyxl", "formulas", "pint", "matplotlib"):
        assert f" {module}\n" not in heavy, f"an estimate imports {module}"


def test_version_and_help(run: Any) -> None:
    assert run("--version").out == f"mantile {mantile.__version__}\n"
    for command in (
        "build",
        "estimate",
        "verify",
        "explain",
    ):
        assert run(command, "--help").status == 0


def test_commands_can_be_held_in_mind(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 20, in five groups; the help of each, and of what stands in one, has at most 40 lines."""
    monkeypatch.setenv("COLUMNS", "80")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    panels = Counter(command.rich_help_panel for command in commands.values())
    assert len(commands) <= 20 and len(panels) == 5, panels
    shown = run("--help").out
    assert all(f"\n{panel}:\n" in shown for panel in panels)
    for path in [(name,) for name in commands] + [
        path for path, _ in commands_of(typer.main.get_command(app))
    ]:
        lines = run(*path, "--help").out.splitlines()
        assert len(lines) <= 40 and max(map(len, lines)) <= 80, (path, len(lines))
        assert lines[-1].startswith("--help-all: ") or len(path) < 3, path


@pytest.mark.parametrize(
    ("former", "rest"),
    [
        ("audit", "run.xlsx"),
        ("correct", "runs.csv"),
        ("drift", "records.db"),
        ("find", "all-reduce"),
        ("from-command", "'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100-sxm"),
        ("from-trace", "requests.csv"),
        ("guide", "cheapest"),
        ("hardware", "show h100-sxm --json"),
        ("hardware", "list --json"),
        ("init", "chat.txt"),
        ("ir", "llama-3.1-8b --json"),
        ("keys", "list nobody.pub"),
        ("lint", "--rules"),
        ("models", "diff llama-3.1-8b mistral-7b"),
        ("open", "run.xlsx"),
        ("plan", f"llama-3.3-70b {' '.join(CASE)}"),
        ("profiles", "list"),
        ("trace", "tpot"),
        ("trace", "tpot --depth 1 --dependents --json"),
    ],
)
def test_a_former_name_says_what_it_is_called_now(run: Any, tmp_path: Path, former: str, rest: str) -> None:
    """It answers as the new words do, and one line more on stderr; help and completion do not have it."""
    (tmp_path / "requests.csv").write_text("arrival,input_tokens,output_tokens\n0,600,200\n1.5,6000,300\n")
    now = FORMER[former]
    before, after = (run(*words, *shlex.split(rest)) for words in ([former], now.split()))
    assert (before.status, before.out) == (after.status, after.out)
    assert before.err == f"mantile: {former!r} is now {now!r}\n{after.err}"
    assert f"\n  {former} " not in run("--help").out
    if former == "plan":
        assert before.status == 1  # it does not fit


def test_every_former_name_leads_to_a_command() -> None:
    """Of the program, to no former one."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert all(now.split()[0] in commands and former not in commands for former, now in FORMER.items())


def test_import_says_which_form_it_read(run: Any, tmp_path: Path) -> None:
    """Of a launch line, of a trace; flags are for the first."""
    (tmp_path / "requests.csv").write_text("arrival,input_tokens,output_tokens\n0,600,200\n1.5,6000,300\n")
    assert "from a launch line of vllm" in run("import", "vllm serve Qwen/Qwen3-32B -tp 2").out
    assert "requests.csv: 2 requests" in run("import", "requests.csv").err
    refused(run("import", "requests.csv", "--tp", "2"), "flags are for a launch line")
    refused(run("import", "run.xlsx", "-o", "run.yaml"), "run.xlsx", "no such file")
    refused(run("import", "requests.csv", "--bundle", "-o", "load.yaml"), "--bundle", "workbook")


def test_lists_are_narrowed_by_words(run: Any) -> None:
    """Of a kind, of a part of the library, of all; without its word too."""
    models = run("list", "models", "mixtral", "--json").data["models"]
    assert models and all("mixtral" in row["id"] and row["meaning"] == row["hub_id"] for row in models)
    assert run("list", "models", "list", "mixtral", "--json").data["models"] == models
    assert {row["kind"] for row in run("list", "all-reduce", "--json").data["found"]} >= {"quantities"}
    assert run("list", "all", "all-reduce", "--json").out == run("list", "all-reduce", "--json").out
    refused(run("list", "acelerators"), "did you mean accelerators")
    refused(run("list", "systems", "nothing-has-this"), "mantile list systems")
    assert run("config").out == run("config", "show").out


def test_a_workbook_of_a_plan_that_does_not_fit_says_that_once(run: Any) -> None:
    built = run("build", "llama-3.3-70b", *CASE, "-o", "run.xlsx").out.splitlines()[1]
    assert built.split(", ")[0] == "  TP1: latency and throughput not known" and "does not fit (" in built


def test_public_names() -> None:
    for name in mantile.__all__:
        assert getattr(mantile, name) is not None
    assert set(mantile.__all__) <= set(dir(mantile))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        mantile.nonsense  # noqa: B018


# --- estimate -----------------------------------------------------------------------------------------------


def test_estimate_json(run: Any) -> None:
    result = run("estimate", "llama-3.1-8b", *CASE, "--json").data
    keys = {
        "ttft_s",
        "tpot_s",
        "e2e_s",
        "output_tokens_per_s",
        "output_tokens_per_s_per_accelerator",
        "interactivity_tokens_per_s",
        "memory_per_accelerator_bytes",
        "memory_capacity_bytes",
        "kv_capacity_sequences",
        "batch",
        "fits",
        "bottleneck",
        "mfu",
        "mbu",
        "checks",
        "system",
        "feasibility",
        "power_w",
        "joules_per_output_token",
        "usd_per_hour",
        "usd_per_million_tokens",
    }
    assert keys <= set(result)
    assert set(result["bottleneck"]) == set(result["mfu"]) == set(result["mbu"]) == {"prefill", "decode"}
    assert result["checks"] == {"errors": [], "alerts": []}
    assert result["fits"] is True and result["feasibility"] == "fits"
    assert (result["system"], result["accelerators"]) == ("hgx-h100", 1)
    assert set(result["usd_per_million_tokens"]) == {
        "output",
        "input",
        "blended",
        "input_by_time",
        "output_by_time",
    }
    assert "variants" not in result
    assert (result["input_tokens"], result["output_tokens"], result["concurrency"]) == (1024, 128, 8)


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, with its flags of a scenario."""
    for name, one in getattr(command, "commands", {}).items():
        yield from commands_of(one, (*path, name))
    if not hasattr(command, "commands"):
        yield path, flagged(command)


def test_no_flag_has_two_meanings() -> None:
    """Of a command every spelling belongs to one option."""
    found = [*commands_of(typer.main.get_command(app))]
    assert len(found) > 30  # those of groups included
    for path, command in found:
        spelt = [name for option in command.params for name in (*option.opts, *option.secondary_opts)]
        twice = [name for name, count in Counter(spelt).items() if count > 1]
        assert not twice, (path, twice)


def test_aliases_of_flags(run: Any) -> None:
    long = run(
        "estimate",
        "llama-3.1-8b",
        *CASE,
        "--tp",
        "2",
        "--kv-dtype",
        "fp8",
        "--token-budget",
        "4096",
        "--json",
    )
    short = run(
        "estimate",
        "llama-3.1-8b",
        "--accelerator",
        "h100-sxm",
        "--isl",
        "1024",
        "--osl",
        "128",
        "--max-concurrency",
        "8",
        "--tensor-parallel-size",
        "2",
        "--kv-cache-dtype",
        "fp8",
        "--max-num-batched-tokens",
        "4096",
        "--json",
    )
    assert long.data == short.data


def test_flags_of_data_types_and_images(run: Any) -> None:
    """One for each class of matrices the model has; the others are refused."""
    case = (*CASE, "--tp", "8", "--accelerator", "b200-sxm")
    mixed = run(
        "estimate",
        "deepseek-v3",
        *case,
        "--attention-dtype",
        "bf16",
        "--ffn-dtype",
        "fp8",
        "--experts-dtype",
        "nvfp4",
        "--head-dtype",
        "fp8",
        "--json",
    ).data
    assert [mixed[f"{name}_dtype"] for name in ("attention", "ffn", "experts", "head")] == [
        "bf16",
        "fp8",
        "nvfp4",
        "fp8",
    ]
    plain = run("estimate", "deepseek-v3", *case, "--json").data
    assert (plain["weights_dtype"], plain["experts_dtype"], plain["head_dtype"]) == (
        "fp8-block",
        "same",
        "bf16",
    )
    assert mixed["memory_per_accelerator_bytes"] < plain["memory_per_accelerator_bytes"]
    assert "image_tokens" not in plain
    image = run("estimate", "qwen3-vl-8b", *CASE, "--image-tokens", "600", "--json").data
    assert image["image_tokens"] == 600
    assert image["ttft_s"] > run("estimate", "qwen3-vl-8b", *CASE, "--json").data["ttft_s"]
    assert "experts_dtype" not in image


def test_estimate_for_people(run: Any, tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(SCENARIO)
    ran = run("estimate", "chat.yaml")
    assert ran.status == 0
    for word in ("70B chat service", "TP8", "2 x TP4", "TTFT", "TPOT", "tokens/s", "GB"):
        assert word in ran.out
    assert "\x1b" not in ran.out


def test_scenario_file_with_variants(run: Any, tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(SCENARIO)
    result = run("estimate", "chat.yaml", "--json").data
    assert result["name"] == "TP8"
    assert [variant["name"] for variant in result["variants"]] == ["2 x TP4"]
    assert result["variants"][0]["accelerators"] == 8


def test_flags_override_a_scenario_file(run: Any, tmp_path: Path) -> None:
    """A flag replaces the field, however the file spells it, and its own override of the same figure."""
    (tmp_path / "chat.yaml").write_text(SCENARIO)
    result = run("estimate", "chat.yaml", "--input-tokens", "512", "--name", "short", "--json").data
    assert (result["input_tokens"], result["output_tokens"], result["name"]) == (512, 256, "short")
    replaced = run(
        "explain",
        "efficiency.gemm_compute.override",
        "chat.yaml",
        "--set",
        "efficiency.gemm_compute=0.5",
        "--json",
    ).data
    assert replaced["value"] == 0.5
    kept = run(
        "explain",
        "efficiency.gemm_compute.override",
        "chat.yaml",
        "--set",
        "efficiency.interference=1",
        "--json",
    ).data
    assert kept["value"] == 0.7


def test_scenario_completed_by_flags(run: Any, tmp_path: Path) -> None:
    (tmp_path / "part.yml").write_text("model: llama-3.1-8b\naccelerator: h100-sxm\n")
    assert (
        run("estimate", "part.yml", "--isl", "100", "--osl", "10", "--concurrency", "1", "--json").data[
            "input_tokens"
        ]
        == 100
    )


def test_set_changes_facts_of_the_model(run: Any) -> None:
    assert (
        run("explain", "model.layers", "llama-3.1-8b", *CASE, "--set", "model.layers=16", "--json").data[
            "value"
        ]
        == 16
    )


def test_a_plan_that_does_not_fit_is_an_answer(run: Any) -> None:
    ran = run("estimate", "llama-3.3-70b", *CASE)
    assert ran.status == 1
    assert "does not fit on one H100 SXM" in ran.out and "Ways out" in ran.out
    assert "MEMORY_EXCEEDED" in run("estimate", "llama-3.3-70b", *CASE, "--all").out
    result = json.loads(run("estimate", "llama-3.3-70b", *CASE, "--json").out)
    assert result["fits"] is False
    assert "MEMORY_EXCEEDED" in [check["code"] for check in result["checks"]["errors"]]


def test_a_plan_beyond_its_system_is_an_answer(run: Any) -> None:
    """A reason code, not a refusal: 64 machines of eight are all that the library joins."""
    ran = run("estimate", "llama-3.1-8b", *CASE, "--tp", "1024")
    assert ran.status == 1
    assert "REPLICA_EXCEEDS_SYSTEM" in ran.out
    result = json.loads(
        run("estimate", "llama-3.1-8b", *CASE, "--tp", "8", "--pp", "8", "--cp", "16", "--json").out
    )
    assert result["feasibility"] == "invalid" and result["accelerators"] == 1024
    assert [check["code"] for check in result["checks"]["errors"]] == ["REPLICA_EXCEEDS_SYSTEM"]
    joined = run("estimate", "llama-3.1-8b", *CASE, "--tp", "8", "--pp", "8", "--cp", "8", "--json").data
    assert joined["feasibility"] == "fits" and joined["checks"]["errors"] == []


def test_config_json_and_folder(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    by_folder, by_file = (
        run("estimate", "my-model", *CASE, "--json").data,
        run("estimate", "my-model/config.json", *CASE, "--json").data,
    )
    assert by_folder == by_file
    assert by_folder["model"] == "my-model"


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("llama-3.1-8", *CASE), ("unknown model 'llama-3.1-8'", "llama-3.1-8b")),
        (("=cmd|' /C calc'!A0", *CASE), ("unknown model", "=cmd")),
        (
            ("llama-3.1-8b", *CASE, "--accelerator", "a100"),
            ("accelerator 'a100' is not clear", "a100-80gb-sxm"),
        ),
        (("llama-3.1-8b", *CASE, "--framework", "vlm"), ("unknown framework 'vlm'", "vllm")),
        (("llama-3.1-8b", *CASE, "--weights-dtype", "fp9"), ("data type 'fp9'", "fp8")),
        (("llama-3.1-8b", *CASE, "--input-tokens", "-5"), ("field input_tokens", "-5")),
        (("llama-3.1-8b", *CASE, "--output-tokens", "0"), ("field output_tokens", "(found 0)")),
        (("llama-3.1-8b", *CASE, "--concurrency", "0"), ("field concurrency",)),
        (("llama-3.1-8b", *CASE, "--batching", "sometimes"), ("field batching", "continuous", "static")),
        (("llama-3.1-8b", *CASE, "--tp", "1025"), ("field tp", "1025")),
        (("llama-3.1-8b", *CASE, "--tp", "8", "--pp", "9"), ("field pp", "9")),
        (("llama-3.1-8b", *CASE, "--system", "hgx-h10"), ("unknown system 'hgx-h10'", "hgx-h100")),
        (("llama-3.1-8b", *CASE, "--date", "yesterday"), ("field date", "yesterday")),
        (("llama-3.1-8b", *CASE, "--set", "efficiency.gemm_compute"), ("--set", "ID=VALUE")),
        (("llama-3.1-8b", *CASE, "--set", "efficiency.gemm_compute=nan"), ("--set", "ID=VALUE")),
        (
            ("llama-3.1-8b", *CASE, "--set", "efficiency.gem_compute=1"),
            ("unknown figure", "efficiency.gemm_compute"),
        ),
        (("llama-3.1-8b", "--input-tokens", "9"), ("--accelerator", "--output-tokens", "--concurrency")),
        (
            ("llama-3.1-8b", *CASE, "--experts-dtype", "fp8"),
            ("field experts_dtype", "llama-3.1-8b has no experts"),
        ),
        (
            ("llama-3.1-8b", *CASE, "--image-tokens", "5"),
            ("field image_tokens", "llama-3.1-8b has no vision tower"),
        ),
        (("llama-3.1-8b", *CASE, "--attention-dtype", "fp9"), ("data type 'fp9'", "fp8")),
        (("nowhere.yaml",), ("nowhere.yaml", "No such file")),
        (("nowhere/config.json", *CASE), ("nowhere/config.json", "No such file")),
    ],
)
@pytest.mark.parametrize("command", ["estimate", "build"])
def test_wrong_arguments(
    run: Any, tmp_path: Path, command: str, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    output = ("-o", "run.xlsx") if command == "build" else ()
    refused(run(command, *arguments, *output), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model: llama-3.1-8b\n  accelerator: [\n", ("line 2", "not valid YAML")),
        ("model: a\nmodel: b\n", ("line 2", "given twice")),
        ("- a list\n", ("expected a mapping", "list")),
        ("", ("expected a mapping",)),
        (SCENARIO.replace("tp: 8", "tensor: 8", 1), ("field tensor",)),
        (SCENARIO.replace("isl: 2048", "isl: 2048.5"), ("field input_tokens", "2048.5")),
        (SCENARIO.replace("isl: 2048\n", ""), ("input_tokens is missing",)),
        (SCENARIO.replace("tp: 4,", "tp: 5, pp: 9,"), ("field variants.0.pp", "9")),
        (SCENARIO.replace("70B chat service", '"a\\x1b[31mb"'), ("field title",)),
    ],
)
def test_wrong_scenarios(run: Any, tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    refused(run("build", "bad.yaml", "-o", "run.xlsx"), "bad.yaml", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"model_type": "llama",\n oops}', ("line 2", "not valid JSON")),
        ('{"hidden_size": 1}', ("field model_type",)),
        (json.dumps(CONFIG | {"model_type": "unheard-of"}), ("'unheard-of' is not supported", "llama")),
        (
            json.dumps({key: value for key, value in CONFIG.items() if key != "num_hidden_layers"}),
            ("field num_hidden_layers is missing",),
        ),
        (json.dumps(CONFIG | {"hidden_size": "wide"}), ("field hidden_size", "'wide'")),
        (json.dumps(CONFIG | {"vocab_size": -1}), ("field vocab_size", "-1")),
        ('{"model_type": "llama", "hidden_size": NaN}', ("hidden_size",)),
        ("[" * 100_000, ("not valid JSON",)),
    ],
)
def test_wrong_configs(run: Any, tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    (tmp_path / "config.json").write_text(text)
    refused(run("list", "models", "ir", "config.json", "--json"), "config.json", *words)
    refused(run("estimate", "config.json", *CASE), "config.json", *words)


def test_files_that_are_not_text(run: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    refused(run("estimate", "bad.yaml"), "bad.yaml", "not UTF-8")


def test_usage_errors(run: Any) -> None:
    for arguments in (
        ("nonsense",),
        ("estimate", "llama-3.1-8b", "--isl", "many"),
        ("build", "llama-3.1-8b", *CASE),
        ("verify", "x.xlsx", "--engine", "abacus"),
    ):
        ran = run(*arguments)
        assert ran.status == 2
        assert ran.err.startswith("mantile: ") and ran.err.count("\n") <= 2
        assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("explain", "serving.tpt"), ("unknown quantity 'serving.tpt'", "serving.tpot")),
        (("explain", "nothing.like.it", "--depth", "1"), ("unknown quantity",)),
        (("list", "models", "show", "llama-3.1-8"), ("unknown model", "llama-3.1-8b")),
        (("list", "hardware", "show", "h101"), ("unknown accelerator", "h100-sxm")),
        (("list", "profiles", "show", "hoper"), ("unknown efficiency profile", "hopper")),
        (("verify", "nowhere.xlsx"), ("nowhere.xlsx", "no such file")),
        (("verify", "--rules", "nowhere.xlsx"), ("nowhere.xlsx", "no such file")),
    ],
)
def test_wrong_names(run: Any, command: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(run(*command), *words)


@pytest.mark.exhaustive
def test_processes_exit_as_promised(tmp_path: Path) -> None:
    wrong = process(["estimate", "no-such-model", *CASE], tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("mantile: unknown model 'no-such-model'")
    fine = process(["explain", "serving.tpot"], tmp_path, PYTHONIOENCODING="ascii")
    assert fine.returncode == 0, fine.stderr


# --- explain, trace, ir and the library ---------------------------------------------------------------------


def test_explain(run: Any) -> None:
    ran = run("explain", "serving.tpot")
    assert ran.status == 0
    for word in (
        "Time per output token, TPOT",
        "serving.tpot",
        "=serving.decode_step+serving.stall",
        "built-in example",
        "decode step + prefill stall per token",
        "serving.decode_step",
        "Llama-3.1-8B",
    ):
        assert word in ran.out
    assert "built-in example" not in run("explain", "serving.tpot", "llama-3.1-8b", *CASE).out


def test_a_time_is_told_in_the_size_that_people_say(run: Any) -> None:
    """The exact one stands beside it; a trace is the same tree in JSON."""
    value = run("explain", "serving.tpot", "--json").data["value"]
    assert f"{value * 1e3:.6g} ms ({value:.6g} s)" in run("explain", "serving.tpot").out
    tree = run("explain", "serving.tpot", "--depth", "1", "--format", "json").data
    assert (tree["id"], tree["value"]) == ("serving.tpot", value)
    assert sum(branch["value"] for branch in tree["branches"]) == pytest.approx(value, rel=1e-12)
    assert f"serving.tpot = {value * 1e3:.6g} ms" in run("explain", "serving.tpot", "--depth", "1").out


def test_a_number_is_whole_where_a_column_in_the_middle_went(run: Any, monkeypatch: Any) -> None:
    """The column that goes first need not be the last one."""
    monkeypatch.setenv("COLUMNS", "80")
    table = new_table("id", "unit", "A", "B", "B ÷ A − 1", right=(2, 3, 4), drop=(1,))
    row = "hardware.memory_bandwidth12", "B/s", "3,350,000,000,000", "4,800,000,000,000", "+43.28%"
    table.add_row(*row)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        open_console().print(table)
    assert all(cell in out.getvalue() for cell in (row[0], *row[2:]))
    assert "no room at 80 columns for: unit" in out.getvalue()


def test_jobs_are_rows_too(run: Any, monkeypatch: Any) -> None:
    """`list jobs` breaks a line between words, as a shell goes on with it; in other forms it has tables."""
    monkeypatch.setenv("COLUMNS", "80")
    job = run("list", "jobs", "cheapest", "--json").data["jobs"][0]
    said = run("list", "jobs", "cheapest").out
    assert max(map(len, said.splitlines())) <= 80
    assert " ".join(said.replace("\\\n", " ").split()[-len(job["command"].split()) :]) == job["command"]
    assert run("list", "jobs", "cheapest", "--format", "csv").out.startswith("how do I,command\n")


def test_explain_adds_up(run: Any) -> None:
    explained = run("explain", "serving.tpot", "--json").data
    file, number = explained["place"].split(":")
    assert (FOLDER / file).read_text("utf-8").splitlines()[int(number) - 1].startswith("tpot ")
    assert explained["unit"] == "s"
    assert sum(term["value"] for term in explained["precedents"]) == pytest.approx(
        explained["value"], rel=1e-12
    )
    assert explained["value"] == run("estimate", "llama-3.1-8b", *CASE, "--json").data["tpot_s"]
    assert {"serving.generation", "serving.interactivity"} <= {term["id"] for term in explained["dependents"]}


def test_explain_an_input(run: Any) -> None:
    explained = run("explain", "model.layers", "--json").data
    assert (explained["value"], explained["formula"], explained["status"]) == (32, "", "config")
    assert "num_hidden_layers" in explained["source"]


@pytest.mark.exhaustive
def test_explain_everything() -> None:
    """Every figure of an estimate can be explained."""
    from mantile.estimates.estimate import estimate
    from mantile.estimates.explain import explain
    from mantile.library.scenario import parse_scenario

    made = estimate(
        parse_scenario(
            {
                "model": "deepseek-v3.2",
                "accelerator": "h100-sxm",
                "input_tokens": 9,
                "output_tokens": 9,
                "concurrency": 1,
            },
            "test",
        )
    )
    shared = ("library.", "system.", "datatype.")
    alike = [name for name in made.equations.figures if name.startswith(shared)]
    others = [name for name in made.equations.figures if not name.startswith(shared)]
    assert len(alike) > 1500 and len(others) > 1500
    for names, every in ((alike, 499), (others, 97)):
        for identifier in names[::every]:
            found = explain(made, identifier).to_dict()
            assert found["id"] == identifier
            assert found["how"] or found["formula"] or found["source"], identifier


def test_trace(run: Any) -> None:
    shallow, deep = (
        run("explain", "serving.tpot", "--depth", "1"),
        run("explain", "serving.tpot", "--depth", "4"),
    )
    assert shallow.status == deep.status == 0
    assert "decode.time" not in shallow.out
    assert "decode.time" in deep.out
    near, far = (run("explain", "serving.tpot", "--dependents", "--depth", depth) for depth in ("1", "2"))
    assert "serving.generation" in near.out and "serving.e2e" not in near.out
    assert "serving.e2e" in far.out


def test_a_factor_with_a_figure_for_each_use_is_explained_and_traced(run: Any) -> None:
    """An id that `--set` takes is known to `explain` too, and to its tree.

    Also where several figures stand for it.
    """
    uses = [f"efficiency.gemm_compute.{use}" for use in ("attention", "ffn", "head")]
    explained = run("explain", "efficiency.gemm_compute", "--json").data
    assert [term["id"] for term in explained["precedents"]] == explained["members"] == uses
    below = run("explain", "efficiency.gemm_compute", "--depth", "2")
    above = run("explain", "efficiency.gemm_compute", "--depth", "2", "--dependents")
    assert below.status == above.status == 0
    assert all(f"─ {use} = 0.78 " in ran.out for use in uses for ran in (below, above))
    assert "efficiency.gemm_compute.override" in below.out and "rate.gemm_flops" not in below.out
    assert "efficiency.fraction.gemm_compute.ffn" in above.out


def test_trace_expands_each_figure_once(run: Any) -> None:
    ran = run("explain", "serving.ttft", "--depth", "99")
    again = [line for line in ran.out.splitlines() if " prefill.time =" in line]
    assert len(again) > 1
    assert sum("shown elsewhere" not in line for line in again) == 1


def test_an_estimate_says_what_a_name_takes_for_granted(run: Any) -> None:
    """A reader of the first line sees another name than was typed."""
    load = (
        "--accelerator",
        "h100-sxm",
        "--input-tokens",
        "500",
        "--output-tokens",
        "9",
        "--concurrency",
        "1",
    )
    distilled = run("estimate", "deepseek-r1:7b", *load).out
    assert "Qwen2.5-7B: asked for as deepseek-ai/DeepSeek-R1-Distill-Qwen-7B, which the entry" in distilled
    assert "asked for as" not in run("estimate", "llama3.1:8b", *load).out


def test_ir_json(run: Any) -> None:
    found = run("list", "models", "ir", "llama-3.1-8b", "--json").data
    assert set(found["parameters"]) == {
        "total",
        "active",
        "active_without_input_embedding",
        "embedding",
        "vision",
    }
    assert found["parameters"]["total"] == 8_030_261_248
    assert found["layers"] == 32
    assert found["kv_bytes_per_token"] == {"all_layers": 131_072, "beyond_window": 131_072}
    assert "tensors" not in found
    assert "prefill_flops" not in found
    found = run("list", "models", "ir", "llama-3.1-8b", "--json", "--tensors", "--tokens", "100").data
    assert set(found["prefill_flops"]) == {"tokens", "linear", "attention_full_square", "other"}
    assert {"name", "shape", "count"} == set(found["tensors"][0])
    assert any("{}" in tensor["name"] for tensor in found["tensors"])


def test_ir_for_people(run: Any) -> None:
    ran = run("list", "models", "ir", "qwen2.5-7b", "--tensors", "--tokens", "100")
    assert ran.status == 0
    for word in (
        "qwen2",
        "hidden_size",
        "QKV projection",
        "model.layers.{}.self_attn.q_proj.weight",
        "152,064 × 3,584",
    ):
        assert word in ran.out


@pytest.mark.parametrize(
    ("kind", "identifier"), [("models", "qwen3-8b"), ("hardware", "h100-sxm"), ("profiles", "global")]
)
def test_library(run: Any, kind: str, identifier: str) -> None:
    listed = run("list", kind, "--json").data[kind]
    assert identifier in [row["id"] for row in listed]
    table = run("list", kind)
    assert table.status == 0
    assert identifier in table.out
    shown = run("list", kind, "show", identifier)
    assert shown.status == 0
    assert "source" in shown.out
    assert run("list", kind, "show", identifier, "--json").data["id"] == identifier


def test_models_differ_field_by_field(run: Any, tmp_path: Path) -> None:
    """Facts, layers, counts and tensors that differ, and none that do not.

    A config.json stands for a model.
    """
    found = run("list", "models", "diff", "llama-3.1-8b", "mistral-7b", "--json").data
    assert (found["a"], found["b"]) == ("llama-3.1-8b", "mistral-7b")
    fields = {item["field"]: (item["a"], item["b"]) for item in found["differences"]}
    assert fields["facts.vocabulary"] == (128_256, 32_000)
    assert fields["parameters.total"] == (8_030_261_248, 7_241_732_096)
    assert fields["tensor.lm_head.weight 128256 × 4096"] == (1, None)
    assert fields["tensor.lm_head.weight 32000 × 4096"] == (None, 1)
    assert not {"facts.layers", "facts.hidden_size", "layers"} & fields.keys()
    for word in ("facts.vocabulary", "128,256", "32,000"):
        assert word in run("list", "models", "diff", "llama-3.1-8b", "mistral-7b").out
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    mixed = run("list", "models", "diff", "config.json", "deepseek-v3", "--json").data["differences"]
    assert {"layers.attention + ffn", "layers.attention + moe", "facts.experts"} <= {
        item["field"] for item in mixed
    }
    assert run("list", "models", "diff", "llama-3.1-8b", "llama-3.1-8b", "--json").data["differences"] == []
    assert "are the same" in run("list", "models", "diff", "llama-3.1-8b", "llama-3.1-8b").out
    refused(run("list", "models", "diff", "llama-3.1-8b", "llama-3.1-8"), "unknown model", "llama-3.1-8b")


def test_ir_of_a_mixture(run: Any) -> None:
    """Kinds of layer, their order, active parameters, and what predicts further tokens apart."""
    found = run("list", "models", "ir", "deepseek-v3", "--json", "--tensors").data
    assert found["parameters"]["total"] == 671_026_404_352
    assert found["parameters"]["active"] < found["parameters"]["total"] / 10
    assert [(group["blocks"], group["count"]) for group in found["layer_groups"]] == [
        (["attention", "ffn"], 3),
        (["attention", "moe"], 58),
    ]
    assert found["order"] == ["attention.ffn"] * 3 + ["attention.moe"] * 58
    assert found["multi_token_prediction"]["parameters"] > 10**10
    told = run("list", "models", "ir", "deepseek-v3").out
    for word in ("attention + moe", "multi-token prediction", "mla", "Shared expert"):
        assert word in told


def test_the_list_of_models_tells_total_and_active(run: Any) -> None:
    rows = {row["id"]: row for row in run("list", "models", "list", "--json").data["models"]}
    assert rows["mixtral-8x7b"]["parameters"] == 46_702_792_704
    assert rows["mixtral-8x7b"]["active"] == 12_879_925_248
    assert rows["llama-3.1-8b"]["active"] == rows["llama-3.1-8b"]["parameters"]
    assert run("list", "models", "show", "mixtral-8x7b", "--json").data["layers"] == [
        {"layer": "attention + moe", "times": 32}
    ]


def test_hardware_lists_si_and_quotes(run: Any) -> None:
    row = next(
        row for row in run("list", "hardware", "list", "--json").data["hardware"] if row["id"] == "h100-sxm"
    )
    assert row["memory_capacity_bytes"] == 80 * 2**30
    assert row["memory_bandwidth_bytes_per_s"] == 3350e9
    assert "3,350" in run("list", "hardware", "list").out
    assert run("list", "hardware", "show", "hgx-h100", "--json").data["id"] == "hgx-h100"


# --- workbooks ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook as the command line writes it."""
    folder = tmp_path_factory.mktemp("built")
    made = process(["build", "llama-3.1-8b", *CASE, "-o", "run.xlsx"], folder)
    assert made.returncode == 0, made.stderr
    for word in ("run.xlsx", "TTFT", "TPOT", "tokens/s", "fits"):
        assert word in made.stdout
    assert [path.name for path in folder.iterdir()] == ["run.xlsx"]
    return folder / "run.xlsx"


def opened(path: Path) -> Any:
    """A workbook in openpyxl, which warns of every extension it does not know."""
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* extension is not supported", UserWarning)
        return load_workbook(path)


@pytest.mark.exhaustive
def test_build_writes_a_plan_that_does_not_fit(run: Any, tmp_path: Path) -> None:
    ran = run("build", "llama-3.3-70b", *CASE, "-o", "big.xlsx")
    assert ran.status == 1
    assert "does not fit" in ran.out
    assert "MEMORY_EXCEEDED" in ran.out
    assert (tmp_path / "big.xlsx").stat().st_size > 10_000


@pytest.mark.exhaustive
def test_build_twice_gives_the_same_bytes(run: Any, workbook: Path, tmp_path: Path) -> None:
    assert run("build", "llama-3.1-8b", *CASE, "-o", "again.xlsx").status == 0
    assert (tmp_path / "again.xlsx").read_bytes() == workbook.read_bytes()


@pytest.mark.exhaustive
def test_build_refuses_places_it_cannot_write(run: Any, tmp_path: Path) -> None:
    refused(run("build", "llama-3.1-8b", *CASE, "-o", "run.xls"), "run.xls", ".xlsx")
    refused(run("build", "llama-3.1-8b", *CASE, "-o", "nowhere/run.xlsx"), "nowhere")
    (tmp_path / "folder.xlsx").mkdir()
    refused(run("build", "llama-3.1-8b", *CASE, "-o", "folder.xlsx"), "folder.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.xlsx"]


def test_a_failed_build_leaves_the_old_file(run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.xlsx").write_text("precious")
    refused(run("build", "llama-3.1-8b", *CASE, "--tp", "1025", "-o", "run.xlsx"), "field tp")
    assert (tmp_path / "run.xlsx").read_text() == "precious"


@pytest.mark.exhaustive
def test_names_from_outside_are_text(run: Any, tmp_path: Path) -> None:
    """A model, title or column that begins like a formula is written as text."""
    folder = tmp_path / "=HYPERLINK(1)"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    scenario = {
        "model": folder.name,
        "title": "=1+1",
        "name": "+cmd",
        "accelerator": "h100-sxm",
        "input_tokens": 9,
        "output_tokens": 9,
        "concurrency": 1,
        "why": "@SUM(1)",
    }
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(scenario))
    assert run("build", "bad.yaml", "-o", "run.xlsx").status == 0
    texts = set()
    for sheet in opened(tmp_path / "run.xlsx"):
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and cell.value in ("=1+1", "+cmd", "@SUM(1)", "=HYPERLINK(1)"):
                    assert cell.data_type == "s", (sheet.title, cell.coordinate)
                    texts.add(cell.value)
    assert "=1+1" in texts


@pytest.mark.exhaustive
def test_verify(run: Any, workbook: Path) -> None:
    ran = run("verify", str(workbook), "--json")
    assert ran.err == ""
    report = ran.data
    assert {"cells", "formulas", "compared", "max_relative_error", "mismatches", "edited"} <= set(report)
    assert set(report["edited"]) == {"inputs", "formulas", "overwritten", "names", "sheets", "shown"}
    assert report["ok"] is True
    assert report["engine"] == "formulas"
    assert report["compared"] > 1000
    assert report["max_relative_error"] <= 1e-9


@pytest.mark.exhaustive
def test_verify_for_people_says_what_was_edited(run: Any, workbook: Path, tmp_path: Path) -> None:
    """An overwritten formula fails verification and is named."""
    book = opened(workbook)
    sheet = book["Calculation"]
    cell = next(
        cell for row in sheet.iter_rows(min_col=8, max_col=8) for cell in row if cell.data_type == "f"
    )
    cell.value = 1
    book.save(tmp_path / "edited.xlsx")
    ran = run("verify", "edited.xlsx")
    assert ran.status == 1, ran.out
    assert "Calculation" in ran.out
    assert "overwritten" in ran.out
    assert "digest" in ran.out and "unprotected" not in ran.out


def test_verify_refuses_other_files(run: Any, tmp_path: Path) -> None:
    from openpyxl import Workbook

    (tmp_path / "text.xlsx").write_text("not a zip")
    refused(run("verify", "text.xlsx"), "text.xlsx")
    Workbook().save(tmp_path / "other.xlsx")
    refused(run("verify", "other.xlsx"), "other.xlsx")


@pytest.mark.exhaustive
@pytest.mark.parametrize("former", ["open", "lint", "audit"])
def test_former_names_read_a_workbook(run: Any, workbook: Path, former: str) -> None:
    """With the same answer as the new words."""
    rest = [str(workbook), *(["-o", "audit.json"] if former == "audit" else [])]
    before, after = (run(*words, *rest) for words in ([former], FORMER[former].split()))
    assert before.status == after.status == 0 and before.out == after.out != ""
    assert before.err == f"mantile: {former!r} is now {FORMER[former]!r}\n"


@pytest.mark.exhaustive
def test_lint(run: Any, workbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("verify", "--rules", str(workbook))
    assert ran.status == 0, ran.out
    assert "no findings" in ran.out
    monkeypatch.setattr("mantile.workbook.lint.lint", lambda file: [])  # found once is enough
    assert run("verify", "--rules", str(workbook), "--json").data == {"findings": []}


def test_the_text_of_the_equations_is_checked(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("verify", "--model")
    assert ran.status == 0, ran.out
    assert "rows of" in ran.out and "every row can be made" in ran.out
    of_files = dict(subjects())
    goodput = (
        (FOLDER / "goodput.eq").read_text("utf-8").replace("serving.requests_per_s", "serving.request_per_s")
    )
    never = "[goodput] Never | when nothing_has_this\nnever  Never [1] = half\n"
    never = f"{never}\nover goodput.nobody = it + half\n"
    of_files["goodput"] = read(f"define spare(x) = x\n{goodput}\n{never}", "goodput.eq")
    for module in ("lint_text", "tables"):
        monkeypatch.setattr(f"mantile.equations.{module}.subjects", lambda: of_files)
    monkeypatch.setattr("mantile.equations.lint_text._STRUCTURES", {"one": ("llama-3.1-8b", {})})
    ran = run("verify", "--model", "--json")
    findings = json.loads(ran.out)["findings"]
    assert ran.status == 1 and "goodput.eq: nobody uses spare(...)" in findings
    place = 2 + goodput[: goodput.index("serving.request_per_s")].count("\n")
    line = f"goodput.eq:{place}: no row serving.request_per_s; did you mean serving.requests_per_s?"
    assert any(finding.startswith(line) for finding in findings)
    place = 4 + goodput.count("\n")
    assert f"goodput.eq:{place}: no structure makes goodput.never" in findings
    assert f"goodput.eq:{place + 2}: no structure makes goodput.nobody" in findings


@pytest.mark.exhaustive
def test_lint_lists_its_rules(run: Any, workbook: Path) -> None:
    rules = {entry["rule"]: entry["meaning"] for entry in run("verify", "--rules", "--json").data["rules"]}
    printed = run("verify", "--rules").out
    assert "magic-number" in rules
    assert all(name in printed and meaning in printed for name, meaning in rules.items())
    refused(run("verify"), "FILE")
    refused(run("verify", str(workbook), "--model"), "no FILE")
    refused(run("verify", str(workbook), "--rules", "--about"), "stand alone")
    refused(run("verify", str(workbook), "--audit"), "missing --output")
    refused(run("verify", str(workbook), "--audit", "-o", "audit.json", "--json"), "--json", "-o audit.json")
    refused(run("verify", str(workbook), "--rules", "--all"), "--all")


@pytest.mark.parametrize(("columns", "beside"), [("80", False), ("120", True)])
def test_what_an_id_means_is_told_whatever_the_terminal(
    run: Any, monkeypatch: pytest.MonkeyPatch, columns: str, beside: bool
) -> None:
    """Beside it, or below it where there is no room; an id is never split."""
    monkeypatch.setenv("COLUMNS", columns)
    found = run("list", "llama-3.3-70b", "--json").data["found"]
    assert len(found) == len({(one["kind"], one["id"]) for one in found}), "each once"
    lines = run("list", "all-reduce").out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    place = next(
        at for at, line in enumerate(lines) if "efficiency.all_reduce_latency_scale.global/exo" in line
    )
    assert ("all-reduce latency scale" in lines[place]) == beside
    assert beside or "all-reduce latency scale" in lines[place + 1]


def test_a_switch_needs_no_value(run: Any) -> None:
    """As engines have it: bare it is on, wherever it stands; with a value it is that."""
    plan = ["qwen2.5-0.5b", "--gpu", "h100", "--osl", "64", "--concurrency", "1", "--json"]
    for words, value in (
        (["--enforce-eager", "--isl", "100"], "on"),
        (["--isl", "100", "--disable-cuda-graph"], "on"),
        (["--enforce-eager", "no", "--isl", "100"], "off"),
        (["--enforce-eager=true", "--isl", "100"], "on"),
    ):
        assert run("estimate", *plan, *words).data["enforce_eager"] == value
    words = ["--isl", "100", "--async-scheduling", "--sequence-parallel", "off"]
    told = run("estimate", "--enforce-eager", *plan, *words).data
    names = ("enforce_eager", "async_scheduling", "sequence_parallel")
    assert [told[name] for name in names] == ["on", "on", "off"]
    refused(run("estimate", *plan, "--isl", "100", "--enforce-eager=maybe"), "enforce_eager", "'off' or 'on'")
