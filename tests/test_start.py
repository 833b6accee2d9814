"""Does the server start? vLLM's own rules worked out here once more, over usual models and accelerators."""

from __future__ import annotations

import json
import shlex
from itertools import product
from typing import Any

import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.cli.application import app
from mantile.estimates.launch import DoesNotFit
from mantile.estimates.start import _room, start

MODELS = (
    *("llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-8b", "gpt-oss-120b", "gpt-oss-20b"),
    *("qwen3.5-27b", "mistral-nemo-12b", "qwen3-30b-a3b", "phi-4"),
)
CARDS = ("rtx-4090", "rtx-pro-6000-bw", "l40s", "h100-sxm", "h200-sxm", "a100-80gb-sxm")
LOAD: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 256, "concurrency": 8}


def of(estimate: mt.Estimate, name: str) -> float:
    return float(estimate.values()[estimate.equations.fullest[name]])


@pytest.mark.parametrize("model", MODELS)
def test_no_line_is_refused(model: str) -> None:
    """The longest request of the line, the model's own without a flag, has room."""
    for card in CARDS:
        made = mt.estimate(model=model, accelerator=card, **LOAD)
        if not made.results()["fits"]:
            continue
        try:
            line = mt.launch_files(made.scenario)["launch.sh"].partition("exec ")[2].replace("\\\n", " ")
        except DoesNotFit as error:
            assert "refuses to start" in str(error), card
            continue
        words = shlex.split(line)
        flags = {word: words[at + 1] for at, word in enumerate(words[:-1]) if word.startswith("--")}
        own = int(made.values()[made.equations.figures["model.max_positions"]])
        longest = int(flags.get("--max-model-len", own))
        assert sum(LOAD[name] for name in ("input_tokens", "output_tokens")) <= longest <= own
        stated = {
            field: float(flags[flag])
            for flag, field in (
                ("--gpu-memory-utilization", "gpu_memory_utilization"),
                ("--max-num-seqs", "max_requests"),
            )
            if flag in flags
        }
        at_length = mt.estimate(
            model=model,
            accelerator=card,
            input_tokens=longest - 1,
            output_tokens=1,
            concurrency=1,
            **{name: int(value) if name == "max_requests" else value for name, value in stated.items()},
        )
        assert of(at_length, "startup.request") <= of(at_length, "memory.kv_room"), (card, line)


def test_the_largest_length_is_the_largest() -> None:
    """With twice of it the server is refused; without a flag too."""
    made = mt.estimate(model="llama-3.1-8b", accelerator="rtx-4090", **LOAD)
    found = start(made)
    assert found is not None and found.verdict == "refuses" and "131,072 tokens" in found.message
    [longest] = [one.fields["max_model_len"] for one in found.helps if "max_model_len" in one.fields]
    for length, verdict in ((longest, "starts"), (2 * longest, "refuses")):
        again = start(mt.estimate(model="llama-3.1-8b", accelerator="rtx-4090", max_model_len=length, **LOAD))
        assert again is not None and again.verdict == verdict, length


def test_what_helps_helps() -> None:
    """Every change that is named leads to a server that is not refused for the same reason."""
    for model, card in product(("llama-3.1-8b", "qwen3.5-27b", "gpt-oss-120b"), CARDS):
        made = mt.estimate(model=model, accelerator=card, max_requests=256, **LOAD)
        found = start(made) if made.results()["fits"] else None
        for one in () if found is None else found.helps:
            again = start(mt.estimate(made.scenario.replace(**one.fields)))
            assert again is not None and again.message != found.message, (model, card, one)


def test_slots_of_a_model_with_states() -> None:
    """qwen3.5-27b on one RTX PRO 6000: 1,024 slots by default are more than there are states for."""
    made = mt.estimate(model="qwen3.5-27b", accelerator="rtx-pro-6000-bw", **LOAD)
    found = start(made)
    assert found is not None and found.verdict == "refuses" and "1,024 batch slots" in found.message
    line = mt.launch_line(made.scenario.replace(**found.helps[0].fields))
    assert "--max-num-seqs" in line
    fewer = start(mt.estimate(made.scenario.replace(max_requests=32)))
    assert fewer is not None and "slots" not in fewer.message


def test_memory_that_the_system_uses_too() -> None:
    """A DGX Spark: 0.92 of its memory is not free; the share that is starts."""
    asked = {"model": "nemotron-3-super-nvfp4", "accelerator": "dgx-spark-gb10", **LOAD}
    found = start(mt.estimate(**asked))
    assert found is not None and found.verdict == "refuses" and "102 GiB are free" in found.message
    assert found.helps[0].fields == {"gpu_memory_utilization": 0.85}
    again = start(mt.estimate(**asked, gpu_memory_utilization=0.85))
    assert again is None or "beside the system" not in again.message


def test_other_engines_start_and_take_shorter_requests() -> None:
    """SGLang does not refuse: it says up to which length; llama.cpp has other rules."""
    for engine, told in (("sglang", "turned away"), ("llama.cpp", None)):
        found = start(mt.estimate(model="llama-3.1-8b", accelerator="rtx-4090", framework=engine, **LOAD))
        assert (found is None) == (told is None)
        assert found is None or (found.verdict == "starts" and told in found.message)


def test_a_length_that_is_stated_and_refused_is_an_error() -> None:
    """Exit status 1 of `estimate` and `launch`, the reason in words, and no line; --anyway writes it."""
    asked = ["llama-3.1-8b", "--gpu", "rtx-4090", "--isl", "1k", "--osl", "256", "--concurrency", "8"]
    asked += ["--max-model-len", "131072"]
    ran = CliRunner().invoke(app, ["estimate", *asked, "--json"])
    found = json.loads(ran.stdout)
    assert ran.exit_code == 1 and found["starts"]["verdict"] == "refuses"
    assert found["starts"]["helps"][0]["fields"]["max_model_len"] < 38_283 and "refuses" in found["sentence"]
    refused = CliRunner().invoke(app, ["launch", *asked])
    assert refused.exit_code == 1 and "exec" not in refused.stdout
    assert "--max-model-len 131072" in CliRunner().invoke(app, ["launch", *asked, "--anyway"]).stdout


def test_three_verdicts() -> None:
    """Refused only where even more room than is known of is too little; states of slots by blocks."""
    asked = {"model": "llama-3.1-8b", "accelerator": "rtx-4090", **LOAD}
    for length, verdict in ((26_112, "starts"), (40_000, "borderline"), (52_224, "refuses")):
        found = start(mt.estimate(**asked, max_model_len=length))
        assert found is not None and found.verdict == verdict, length
    states = {"model": "qwen3.5-27b", "accelerator": "rtx-pro-6000-bw", **LOAD}
    for fields, verdict in (
        ({"max_requests": 400}, "starts"),  # 556 were printed as the most, of 0.95 of the memory
        ({"max_requests": 600}, "borderline"),
        ({"enforce_eager": "on"}, "starts"),
    ):
        found = start(mt.estimate(**states, **fields))
        assert found is not None and found.verdict == verdict, fields


def test_windows_keep_the_tokens_of_a_step() -> None:
    """gemma-4-31b, 4,096 tokens a step: 6.82 GiB were printed, of 32,768 tokens; windows alone: 3.28."""
    made = mt.estimate(model="gemma-4-31b", accelerator="h200-sxm", token_budget=4096, **LOAD)
    room = _room(made, 32_768)
    assert room.need < 6.82 * 2**30 < room.most


def test_a_class_of_long_requests_is_let_in() -> None:
    """No length is proposed that turns requests of the load away."""
    classes = [
        {"name": "chat", "share": 0.9, "input_tokens": 1000, "output_tokens": 100},
        {"name": "long", "share": 0.1, "input_tokens": 30_000, "output_tokens": 3000},
    ]
    made = mt.estimate(model="llama-3.1-8b", accelerator="rtx-4090", concurrency=8, classes=classes)
    found = start(made)
    assert found is not None and found.verdict == "refuses"
    assert all(one.fields.get("max_model_len", 33_000) >= 33_000 for one in found.helps)
