"""What a framework cannot run by its documents is refused, in a file, in a cell and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live import as_written, few, place

from mantile.equations.metrics import TPOT
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.library.support import WAYS
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.book import FIRST
from mantile.workbook.layout import lay_out

ROOT = Path(__file__).resolve().parents[1]
ASKED = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 512, "output_tokens": 64}
ASKED |= {"concurrency": 4}
EXPERTS = {"model": "mixtral-8x7b", "tp": 8}
REFUSED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "llama.cpp with nvfp4": ({"framework": "llama.cpp", "weights_dtype": "nvfp4"}, {"FRAMEWORK_FORMAT"}),
    "llama.cpp TP8 EP8": (EXPERTS | {"framework": "llama.cpp", "ep": 8}, {"FRAMEWORK_PARALLELISM"}),
    "EXO with attention-DP": (
        EXPERTS | {"framework": "exo", "tp": 1, "attention_dp": 8},
        {"FRAMEWORK_PARALLELISM"},
    ),
    "TensorRT-LLM with q4_k_m": ({"framework": "trtllm", "weights_dtype": "q4_k_m"}, {"FRAMEWORK_FORMAT"}),
    "vLLM on a Mac": ({"accelerator": "m3-ultra"}, {"FRAMEWORK_UNSUPPORTED"}),
    "TensorRT-LLM on a V100": (
        {"framework": "trtllm", "accelerator": "v100-sxm2-32gb"},
        {"FRAMEWORK_CHIP"},
    ),
    "TensorRT-LLM with nvfp4 on Hopper": (
        {"framework": "trtllm", "weights_dtype": "nvfp4"},
        {"FRAMEWORK_FORMAT"},
    ),
    "SGLang with GGUF on AMD": (
        {"framework": "sglang", "accelerator": "mi300x", "weights_dtype": "q4_k_m"},
        {"FRAMEWORK_FORMAT"},
    ),
    "llama.cpp with an fp8 cache": ({"framework": "llama.cpp", "kv_dtype": "fp8"}, {"FRAMEWORK_FORMAT"}),
    "SGLang with a cache of llama.cpp's": (
        {"framework": "sglang", "kv_dtype": "q8_0"},
        {"FRAMEWORK_FORMAT"},
    ),
    "llama.cpp, prefill and decode apart": (
        {"framework": "llama.cpp", "decode": {"tp": 1}},
        {"FRAMEWORK_DISAGGREGATED", "DECODE_FRAMEWORK_DISAGGREGATED"},
    ),
    "decode workers of TensorRT-LLM on a V100": (
        {"decode": {"accelerator": "v100-sxm2-32gb", "framework": "trtllm"}},
        {"DECODE_FRAMEWORK_CHIP"},
    ),
    "ATOM with a pipeline": (
        {"framework": "atom", "accelerator": "mi355x", "pp": 2},
        {"FRAMEWORK_PARALLELISM"},
    ),
}
RUNS: dict[str, dict[str, Any]] = {
    "TensorRT-LLM with nvfp4 on Blackwell": {
        "framework": "trtllm",
        "accelerator": "b200-sxm",
        "weights_dtype": "nvfp4",
    },
    "vLLM with GGUF": {"weights_dtype": "q4_k_m"},
    "SGLang with GGUF on NVIDIA": {"framework": "sglang", "weights_dtype": "q4_k_m"},
    "llama.cpp over four cards": {"framework": "llama.cpp", "weights_dtype": "q4_k_m", "tp": 2, "pp": 2},
    "nobody says it of EXO": EXPERTS | {"framework": "exo", "weights_dtype": "nvfp4"},
}


def ask(**fields: Any) -> Estimate:
    """An estimate of a small scenario."""
    return estimate(parse_scenario(ASKED | fields, "scenario"))


def codes(made: Estimate) -> set[str]:
    """Codes of what is wrong that have to do with the framework."""
    found = made.results()["checks"]["errors"]
    return {error["code"] for error in found if "FRAMEWORK" in error["code"]}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_framework_cannot_run_is_refused(what: str) -> None:
    """With its code, without a latency; a build of one's own is taken to run all but another maker's chip."""
    fields, expected = REFUSED[what]
    made = ask(**fields)
    results = made.results()
    assert codes(made) == expected and results["feasibility"] == "invalid"
    assert results["ttft_s"] is results["tpot_s"] is results["e2e_s"] is None
    own = ask(**fields, framework_support="own build")
    assert codes(own) == expected & {"FRAMEWORK_UNSUPPORTED"}
    if "FRAMEWORK_UNSUPPORTED" not in expected:
        message = results["checks"]["errors"][0]["message"]
        assert "support." in message and "framework_support: own build" in message
        assert "https://" in message or "citing" in message


@pytest.mark.parametrize("what", RUNS)
def test_what_it_runs_or_nobody_speaks_of_is_answered(what: str) -> None:
    """The neighbours of what is refused: another chip, another format, a framework without a statement."""
    assert not codes(ask(**RUNS[what]))


@pytest.mark.exhaustive
def test_the_refusal_follows_the_cells() -> None:
    """In the workbook as another program works it out: framework and format typed, then taken back."""
    fields = ASKED | {"weights_dtype": "nvfp4", "framework_support": "documented"}
    short = [{"id": "model.layers", "value": 2, "reason": "a short list of layers"}]
    made = estimate(
        parse_scenario(fields | {"overrides": short}, "scenario"), None, few(("h100-sxm", "l40s"))
    )
    book = lay_out(made)
    sheets = CompiledSheets(as_written(book).contents)
    verdict, reason, latency = (
        (book.addresses[figure].sheet, book.addresses[figure].row, FIRST)
        for figure in (
            made.equations.rows["checks.feasibility"],
            made.equations.rows["checks.reason"],
            made.equations.headlines[TPOT],
        )
    )
    for typed, words in (
        ({}, "fits"),
        ({"inputs.framework": "llama.cpp"}, "invalid"),
        ({"inputs.framework": "llama.cpp", "inputs.framework_support": "own build"}, "fits"),
        ({"inputs.framework": "llama.cpp", "inputs.weights_dtype": "q4_k_m"}, "fits"),
        ({"inputs.framework": "trtllm", "inputs.weights_dtype": "q4_k_m"}, "invalid"),
    ):
        cells = {place(book, name): value for name, value in typed.items()}
        found = sheets.calculate(book.sheets, cells)
        assert found[verdict] == words, typed
        assert (found[reason] == "FRAMEWORK_FORMAT") == (words == "invalid")
        assert isinstance(found[latency], str) == (words == "invalid")


def measured() -> Iterator[tuple[str, dict[str, Any]]]:
    """Measured runs that come with the program: those of the accuracy report and of the library."""
    accuracy = yaml.safe_load((ROOT / "workbooks" / "accuracy.yaml").read_text(encoding="utf-8"))
    for run in accuracy["runs"]:
        yield run["id"], run
    for seen in load_library().measured.runs:
        yield seen.id, seen.model_dump()


def test_no_measured_run_is_refused(library: Library) -> None:
    """A run that somebody timed is evidence that it runs: no statement says otherwise."""
    generation = {chip.id: chip.generation for chip in library.accelerators}
    families = {kind.id: kind.family for kind in library.datatypes}
    cannot = {
        f"{framework.id}/{subject}"
        for framework in library.frameworks
        for statement in framework.support
        if statement.says == "cannot"
        for subject in statement.subjects(library.generations())
    }
    seen = set()
    for name, run in measured():
        framework, chip = run["framework"], generation[run["accelerator"]]
        degrees = run.get("degrees") or run
        subjects = [f"weights/{families[run[key]]}" for key in ("weights_dtype",) if run.get(key) in families]
        subjects += [f"kv/{families[run['kv_dtype']]}"] if run.get("kv_dtype") in families else []
        subjects += [way for way in WAYS if (degrees.get(way) or 1) > 1] if isinstance(degrees, dict) else []
        subjects += ["disaggregated"] if run.get("decode") or run.get("serving") == "disaggregated" else []
        asked = {f"{framework}/chip/{chip}"}
        asked |= {f"{framework}/{subject}{place}" for subject in subjects for place in ("", f"/{chip}")}
        assert not asked & cannot, name
        seen.add((framework, chip))
    assert len(seen) >= 15


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "workbooks").glob("*.yaml")))
def test_no_scenario_of_the_gallery_is_refused(name: str) -> None:
    """Read, not laid out: in any column."""
    if name == "accuracy":
        return
    made = estimate(load_scenario(str(ROOT / "workbooks" / f"{name}.yaml")))
    for column in range(len(made.columns)):
        errors = {error["code"] for error in made.results(column)["checks"]["errors"]}
        assert not any("FRAMEWORK" in code for code in errors), (name, errors)


def test_statements_name_what_there_is(library: Library) -> None:
    """Makers and generations of the library; each statement with a release, a source and a day."""
    generations = library.generations()
    places = {*generations, *(chip for chips in generations.values() for chip in chips)}
    for framework in library.frameworks:
        for statement in framework.support:
            assert set(statement.places) <= places, framework.id
        assert bool(framework.release) == bool(framework.support), framework.id


def test_statements_that_contradict_one_another_are_refused(library: Library) -> None:
    """So are a family that no data type has, and a statement about nothing."""
    data = library.model_dump()
    vllm = next(each for each in data["frameworks"] if each["id"] == "vllm")
    about = {"source": "a test", "date": "2026-11-25", "status": "secondary"}
    for statement, message in (
        ({"says": "cannot", "weights": ["gguf"], "on": ["hopper"]}, "both runs and cannot"),
        ({"says": "cannot", "weights": ["gguff"]}, "no data type is a 'gguff'"),
        ({"says": "cannot", "on": ["hopper"]}, "expected one of weights, kv, ways, chips"),
    ):
        frameworks = [
            each | {"support": (*each["support"], about | statement)} if each is vllm else each
            for each in data["frameworks"]
        ]
        with pytest.raises(ValueError, match=message):
            Library.model_validate(data | {"frameworks": frameworks})


def test_a_word_that_is_no_support_is_refused() -> None:
    """With the words it may be."""
    with pytest.raises(InputError, match="documented"):
        ask(framework_support="any")


def test_latents_that_are_kept_in_full_are_so_in_the_model_too() -> None:
    """An early llama.cpp expands them to heads: the plan can be, and its cache is as large as that."""
    asked = {"model": "deepseek-r1", "accelerator": "mi300x", "tp": 8, "weights_dtype": "bf16"}
    now, then = (ask(**asked, framework=name) for name in ("llama.cpp", "llama.cpp-2024"))
    assert now.results()["checks"]["errors"] == then.results()["checks"]["errors"] == []
    kept, expanded = (made["memory.kv_bytes_per_token"].value for made in (now, then))
    assert expanded * 8 / kept == pytest.approx(128 * (192 + 128) / 576)
