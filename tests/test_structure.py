"""The structure of a model is edited: in a file, in a cell of the workbook, on the page; with its reason."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from live import Typed, exit_status, few, loaded, place

from mantile.cli.flags import override
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.overrides import shared_overrides
from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import load_model
from mantile.library.scenario import Override, apply_model_overrides, parse_scenario
from mantile.library.structure import OVERRIDE
from mantile.roundtrip.compare import compare
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.read import read_cells
from mantile.workbook.write import write_workbook

DENSE, TIED, PLAIN, MIXTURE = "llama-3.1-8b", "llama-3.2-1b", "gpt2", "mixtral-8x7b"
HIDDEN, FFN, VOCABULARY, LAYERS = 4096, 14336, 128256, 32  # of the dense model
UPCYCLED = {"layers.attention.moe": 16, "experts": 8, "experts_per_token": 2, "expert_size": FFN}
LINEAR = {"linear_key_heads": 16, "linear_value_heads": 32, "linear_key_dim": 128}
LINEAR |= {"linear_value_dim": 128, "linear_chunk": 64, "conv_kernel": 4}

# Model, facts that are overridden, and by how many parameters it grows.
SIZES: tuple[tuple[str, dict[str, int], int], ...] = (
    (DENSE, {"tied_embeddings": 1}, -VOCABULARY * HIDDEN),
    (TIED, {"tied_embeddings": 0}, VOCABULARY * 2048),
    (DENSE, {"ffn_input_matrices": 1}, -LAYERS * HIDDEN * FFN),
    (PLAIN, {"ffn_input_matrices": 2}, 12 * 768 * (3072 + 1) - 12 * 768 + 12 * 3072),
    (MIXTURE, {"ffn_input_matrices": 1}, -LAYERS * 8 * HIDDEN * FFN),
    (DENSE, {"qkv_bias": 1}, LAYERS * (4096 + 1024 + 1024)),
    (DENSE, {"output_bias": 1, "ffn_bias": 1}, LAYERS * (HIDDEN + FFN + FFN + HIDDEN)),
    (DENSE, {"head_bias": 1}, VOCABULARY),
    (MIXTURE, {"experts": 16}, LAYERS * 8 * (3 * HIDDEN * FFN + HIDDEN)),
    (MIXTURE, {"experts_per_token": 4}, 0),
    (MIXTURE, {"shared_expert_size": 1024}, LAYERS * 3 * HIDDEN * 1024),
    (MIXTURE, {"layers.attention.ffn": 8, "ffn_size": FFN}, -8 * (7 * 3 * HIDDEN * FFN + 8 * HIDDEN)),
    (DENSE, UPCYCLED, 16 * (7 * 3 * HIDDEN * FFN + 8 * HIDDEN)),
    (DENSE, UPCYCLED | {"layers.attention.moe": 32}, 32 * (7 * 3 * HIDDEN * FFN + 8 * HIDDEN)),
    (DENSE, {"layers.sliding.ffn": 16, "sliding_window": 1024}, 0),
)
# Model, facts that are overridden, and KV bytes of a token: in all layers, and without those of windows.
CACHES: tuple[tuple[str, dict[str, int], int, int], ...] = (
    (DENSE, {"layers": 8}, 8 * 4096, 8 * 4096),
    (DENSE, {"layers": 8, "layers.sliding.ffn": 4, "sliding_window": 1024}, 8 * 4096, 4 * 4096),
    ("mistral-7b", {"layers.full.ffn": 8}, 32 * 4096, 8 * 4096),
    (DENSE, {"kv_heads": 4}, 32 * 2048, 32 * 2048),
    (DENSE, {"layers.linear.ffn": 24} | LINEAR, 8 * 4096, 8 * 4096),
    (MIXTURE, {"layers.sliding.moe": 8, "sliding_window": 1024}, 32 * 4096, 24 * 4096),
)
# What no model can have together, and what is said.
REFUSED: tuple[tuple[str, dict[str, float], str], ...] = (
    (DENSE, {"tied_embeddings": 2}, "from 0 to 1, found 2"),
    (DENSE, {"ffn_input_matrices": 3}, "from 1 to 2, found 3"),
    (DENSE, {"ffn_input_matrices": 1.5}, "expected a whole number"),
    (DENSE, {"qkv_bias": -1}, "expected at least 0 (found -1)"),
    (DENSE, {"kv_heads": 7}, "does not divide the 32 attention heads"),
    (DENSE, {"experts": 8}, "either leave it out, or say which layers are a mixture"),
    (DENSE, {"experts": 8, "layers.attention.moe": 4}, "expected model.experts_per_token, model.expert_size"),
    (DENSE, UPCYCLED | {"layers.attention.moe": 33}, "expected 1 to 32 of the 32 attention + ffn layers"),
    (DENSE, {"layers.sliding.ffn": 4}, "expected model.sliding_window beside it"),
    (DENSE, {"layers.mamba.ffn": 4}, "with a mixer of attention, full, sliding, linear and an FFN of ffn"),
    (DENSE, {"layers.ffn": 4}, "expected model.layers.MIXER.FFN"),
    (DENSE, {"mamba_heads": 4}, "no layer of llama-3.1-8b reads it"),
    (DENSE, {"ffn_matrices": 2}, "expected a whole number for one of model.layers"),
    (MIXTURE, {"experts": 1}, "is more than the 1 experts"),
    ("deepseek-v2-lite", {"layers.full.moe": 4}, "attention over keys and values"),
)
FIELDS: dict[str, Any] = {
    "model": DENSE,
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}


def listed(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Facts as overrides of a scenario."""
    return [{"id": f"model.{name}", "value": value, "reason": "we know"} for name, value in facts.items()]


def made(facts: dict[str, Any], **fields: Any) -> Estimate:
    """An estimate of a model with facts overridden."""
    return estimate(
        parse_scenario(FIELDS | fields | {"overrides": listed(facts)}, "scenario"),
        library=few(("h100-sxm", "l40s")),
    )


@pytest.mark.parametrize(("model", "facts", "growth"), SIZES, ids=str)
def test_parameters_follow_structure(model: str, facts: dict[str, int], growth: int) -> None:
    """In the tensors, and in the graph, which counts them by its modules too."""
    before = load_model(model)
    stated = tuple(Override(**item) for item in listed(facts))
    after = apply_model_overrides(before, stated, "scenario")
    counts = [parameters(build_ir(one))["total"] for one in (before, after)]
    assert counts[1] - counts[0] == growth
    one = made(facts, model=model, weights_dtype="bf16")
    values, figures = one.values(), one.equations.figures
    assert values[figures["model.parameters"]] == values[figures["tensors.parameters"]] == counts[1]


@pytest.mark.parametrize(("model", "facts", "whole", "beyond"), CACHES, ids=str)
def test_kv_cache_follows_the_kinds_of_layers(
    model: str, facts: dict[str, int], whole: int, beyond: int
) -> None:
    """Bytes of a token in all layers, and in those that look back without limit."""
    stated = tuple(Override(**item) for item in listed(facts))
    changed = apply_model_overrides(load_model(model), stated, "scenario")
    found = kv_bytes_per_token(build_ir(changed))
    assert (found["all_layers"], found["beyond_window"]) == (whole, beyond)


def test_layers_of_another_kind_are_spread_evenly() -> None:
    """They stand in place of others, so that the number of layers stays."""
    facts = {"layers": 8, "layers.sliding.ffn": 4, "sliding_window": 1024}
    stated = tuple(Override(**item) for item in listed(facts))
    architecture = apply_model_overrides(load_model(DENSE), stated, "scenario").architecture
    assert [mixer for mixer, _ in architecture.sequence()] == ["attention", "sliding"] * 4
    fact = architecture.facts["layers.sliding.ffn"]
    assert (fact.value, fact.origin, fact.source) == (4, OVERRIDE, "we know; not in the config")


@pytest.mark.parametrize(("model", "facts", "said"), REFUSED, ids=str)
def test_what_no_model_can_have_is_refused(model: str, facts: dict[str, float], said: str) -> None:
    stated = tuple(Override(**item) for item in listed(facts))
    with pytest.raises(InputError, match=r"scenario: overrides") as error:
        apply_model_overrides(load_model(model), stated, "scenario")
    assert said in str(error.value)


def test_a_config_that_contradicts_itself_is_refused_with_both_readings() -> None:
    """Experts in a dense type: the model is dense, or the type is wrong."""
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "num_hidden_layers": 2,
        "intermediate_size": 5504,
        "vocab_size": 32000,
        "num_local_experts": 8,
    }
    with pytest.raises(InputError, match=r"either the model is dense .* or it is a mixture"):
        parse_config(config, "config.json")


# A fact of a cell, its model, and other fields: what is typed says what an estimate with the override says.
LIVE: tuple[tuple[dict[str, int], dict[str, Any]], ...] = (
    ({"tied_embeddings": 1}, {}),
    ({"tied_embeddings": 1}, {"pp": 2}),
    ({"tied_embeddings": 0}, {"model": TIED, "tp": 2}),
    ({"ffn_input_matrices": 1}, {"tp": 2}),
    ({"ffn_input_matrices": 2}, {"model": PLAIN, "input_tokens": 500}),
    ({"ffn_input_matrices": 1, "experts": 16, "experts_per_token": 4}, {"model": MIXTURE, "tp": 4}),
    ({"ffn_input_matrices": 1}, {"model": "deepseek-v2-lite"}),
    ({"ffn_input_matrices": 1}, {"model": "gpt-oss-20b"}),
    ({"experts": 16}, {"model": MIXTURE}),  # does not fit
)
OF_MODEL = ("memory.", "model.parameters", "model.active_parameters", "tensors.parameters", "serving.t")


@pytest.mark.parametrize(("facts", "fields"), LIVE, ids=str)
def test_a_cell_says_what_a_file_says(facts: dict[str, int], fields: dict[str, Any]) -> None:
    """Memory, parameters and times, in the graph."""
    before, after = made({}, **fields), made(facts, **fields)
    typed = before.program.run(before.inputs(0) | {f"model.{name}": one for name, one in facts.items()})
    compared = [
        (typed[figure], after.values()[after.equations.figures[name]])
        for name, figure in before.equations.figures.items()
        if name.startswith(OF_MODEL) and figure in typed and name in after.equations.figures
    ]
    assert len(compared) > 50
    for cell, file in compared:
        assert cell == file if isinstance(cell, str) else float(cell) == pytest.approx(float(file), rel=1e-9)


@cache
def book_of(model: str) -> EstimateBook:
    """The workbook of a model."""
    return lay_out(made({}, model=model, concurrency=2))


def shown(book: EstimateBook, model: CompiledSheets, facts: dict[str, Any]) -> dict[str, Any]:
    """What formulas show after facts are typed, by the id of the row, in the base; and texts of the IR."""
    typed: Typed = {place(book, f"model.{name}"): value for name, value in facts.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package and what it is built on
        solution = model.calculate(book.sheets, typed)
    found: dict[str, Any] = {"ir": []}
    for sheet, row, column, cell in book.formulas():
        if cell.scenario == 0 and hasattr(cell.expression, "id"):
            found.setdefault(cell.expression.id, solution[sheet.name, row, column])
        if sheet.name == "IR":
            found["ir"].append(solution[sheet.name, row, column])
    return found


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        (DENSE, {"tied_embeddings": 1, "ffn_input_matrices": 1, "layers": 24}),
        (MIXTURE, {"ffn_input_matrices": 1, "experts": 4}),
    ],
)
def test_formulas_follow_what_is_typed(model: str, facts: dict[str, int], tmp_path: Path) -> None:
    """By the package that compiles the formulas of the file; the IR says which modules it touches."""
    book = book_of(model)
    compiled = CompiledSheets(read_cells(write_workbook(book, tmp_path / "run.xlsx")).contents)
    found, file = shown(book, compiled, facts), made(facts, model=model, concurrency=2)
    for name in ("model.parameters", "tensors.parameters", "memory.used"):
        assert found[name] == pytest.approx(float(file.values()[file.figure(name)]), rel=1e-9), name
    assert found["ir"].count("user override") >= 3 and "✗ not the tensor list" not in found["ir"]
    assert "user override" not in shown(book, compiled, {})["ir"]


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("ffn_input_matrices", 3, "expected a whole number from 1 to 2"),
        ("ffn_input_matrices", 1.5, "expected a whole number from 1 to 2"),
        ("tied_embeddings", -1, "expected a whole number from 0 to 1"),
        ("tied_embeddings", "yes", "expected a whole number from 0 to 1"),
        ("qkv_bias", 1, "expected 0, as generated: a scenario file changes it"),
        ("layers", -4, "expected a whole number from 1"),
    ],
)
def test_what_cannot_be_typed_makes_the_plan_impossible(name: str, wrong: Any, expected: str) -> None:
    """And the message names the cell. A fact that decides which tensors there are is changed in a file."""
    book = book_of(DENSE)
    rows, inputs = book.estimate.equations.rows, book.generated_inputs()
    values = book.values([inputs[0] | {f"model.{name}": wrong}])[0]
    assert (values[rows["checks.possible"]], values[rows["checks.reason"]]) == (0, "DIMENSION_INVALID")
    label = book.estimate.equations.ir.facts[name].label
    assert f"{label}, IR!G" in values[rows["checks.message"]]
    assert (
        f"holds '{wrong:g}'; {expected}"
        if isinstance(wrong, float)
        else f"holds '{wrong}'; {expected}" in values[rows["checks.message"]]
    )


def test_what_is_typed_comes_back_with_the_reason_beside_it(tmp_path: Path) -> None:
    """As an override of the scenario that `import` writes."""
    book = book_of(DENSE)
    path = write_workbook(book, tmp_path / "run.xlsx")
    workbook = loaded(path)
    sheet, row, column = place(book, "model.tied_embeddings")
    workbook[sheet].cell(row + 1, column + 1).value = 1
    workbook[sheet].cell(row + 1, 4).value = "our finetune shares them"
    workbook.save(path)
    [item] = import_workbook(path).scenario.overrides
    assert (item.id, item.value, item.reason) == ("model.tied_embeddings", 1, "our finetune shares them")


def test_a_fact_is_marked_with_its_reason() -> None:
    """On IR, in the quantity, and among the overrides with what it does."""
    one = made(UPCYCLED | {"qkv_bias": 1})
    fact = one.equations.ir.facts["qkv_bias"]
    assert fact.status == OVERRIDE and fact.source == "user override: we know; was 0 (attention_bias)"
    book = lay_out(one)
    texts = {cell.text for cell in book.sheets["IR"].cells.values() if cell.text}
    assert any(text.startswith("user override: we") for text in texts)
    assert "user override" in {cell.text for cell in book.sheets["IR"].cells.values()}
    items = {item.id: item for item in shared_overrides(one)}
    assert set(items) == {f"model.{name}" for name in (*UPCYCLED, "qkv_bias")}
    layers = items["model.layers.attention.moe"]
    assert (layers.value, layers.default) == (16, 0)
    plain = made({"qkv_bias": 1}).results()["tpot_s"]
    assert layers.before["tpot"] == pytest.approx(plain)
    assert layers.effects["tpot"] == pytest.approx(one.results()["tpot_s"] / plain - 1)
    assert items["model.experts"].effects["tpot"] is None, "of the layers, not of their facts"


def test_a_comparison_names_facts_first_with_their_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two estimates, and of two files on the command line."""
    found = compare(made({}), made({"tied_embeddings": 1} | UPCYCLED)).inputs
    facts = {item["id"]: item for item in found if item["id"].startswith("model.")}
    assert [item["id"] for item in found[: len(facts)]] == list(facts)
    tied, layers = facts["model.tied_embeddings"], facts["model.layers.attention.moe"]
    assert (tied["a"], tied["b"], tied["why"]) == (0, 1, "user override in B: we know")
    assert (layers["a"], layers["b"], layers["why"]) == (None, 16, "user override in B: we know")
    command = (
        "model: llama-3.1-8b\naccelerator: h100-sxm\ninput_tokens: 9\noutput_tokens: 9\nconcurrency: 1\n"
    )
    other = f"{command}overrides:\n  - {{id: model.qkv_bias, value: 1, reason: a finetune}}\n"
    for name, text in (("a", command), ("b", other)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert exit_status("compare", *(str(tmp_path / f"{name}.yaml") for name in "ab")) == 1
    assert "user override in B: a finetune" in capsys.readouterr().out


def test_fields_of_experts_belong_to_a_model_that_was_made_a_mixture() -> None:
    """And those of an embedding of its own not to one whose embedding is the head."""
    assert made(UPCYCLED, experts_dtype="fp8").results()["fits"]
    with pytest.raises(InputError, match="has no experts"):
        made({}, experts_dtype="fp8")
    with pytest.raises(InputError, match="has no embedding beside its LM head"):
        made({"tied_embeddings": 1}, embedding_dtype="bf16")


def test_a_reason_on_the_command_line() -> None:
    """Behind the number, where there is one."""
    usual = {"id": "model.layers", "value": 30.0, "reason": "set on the command line"}
    assert override("model.layers=30") == override(" model.layers = 30 ") == usual
    assert override("model.layers=30  pruned by us") == usual | {"reason": "pruned by us"}
    with pytest.raises(InputError, match="expected ID=VALUE"):
        override("model.layers=many of them")
