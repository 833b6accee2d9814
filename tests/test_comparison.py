"""Two files side by side: exactly what was changed is found, and nothing else."""

from __future__ import annotations

import json
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import pytest
from live import as_written, exit_status, few, loaded, place, typed_into

from mantile.equations.constant import ONE_REQUEST
from mantile.estimates import structure
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.compare import compare
from mantile.workbook.book import FIRST
from mantile.workbook.bundle import Bundle, write_bundle
from mantile.workbook.layout import lay_out
from mantile.workbook.write import build_workbook

BASE: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "accelerator": "l40s",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}
TWO = BASE | {"variants": [{"name": "busy", "concurrency": 64}]}


def _made(**fields: Any) -> Estimate:
    return estimate(parse_scenario(BASE | fields, "scenario"), library=few())


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbook of the base."""
    return build_workbook(_made(), tmp_path_factory.mktemp("comparison") / "run.xlsx")


@pytest.mark.exhaustive
def test_the_same_is_the_same(workbook: Path, tmp_path: Path) -> None:
    """A workbook, its bundle and its estimate."""
    made = _made()
    for other in (workbook, write_bundle(Bundle.of(made), tmp_path / "b.yaml")):
        assert not compare(made, other).differ


@pytest.mark.exhaustive
def test_two_workbooks_are_read_side_by_side(workbook: Path, tmp_path: Path) -> None:
    """As one after the other; what cannot be read is said, and the process beside ends with the call."""
    a, b = workbook, build_workbook(_made(concurrency=8), tmp_path / "8.xlsx")
    found = compare(a, b, side_by_side=True)
    assert found.differ and found == compare(a, b)
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"no workbook")
    for pair in ((a, broken), (broken, a)):
        with pytest.raises(InputError, match=r"broken\.xlsx"):
            compare(*pair, side_by_side=True)
    assert not active_children()


@pytest.mark.exhaustive
def test_a_process_beside_that_dies_costs_nothing_but_time(
    workbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    class Dead:
        """A process that ends before it sends anything."""

        def __init__(self, args: tuple[Any, ...], **_: Any) -> None:
            self.there = args[0]

        def start(self) -> None:
            self.there.close()

        kill = join = start

    context = get_context("spawn")
    monkeypatch.setattr(context, "Process", Dead)
    assert not compare(workbook, workbook, side_by_side=True).differ


def test_exactly_the_change_is_found() -> None:
    """An input, an override, a figure of the library.

    Each alone, with results that follow from it and none that do not.
    """
    plain = _made()
    life = {"id": "cost.life", "value": 7, "reason": "our books"}
    found = compare(plain, _made(concurrency=8, overrides=[life]))
    assert found.inputs == (
        {"id": "cost.life", "scenario": None, "a": 4, "b": 7.0, "why": "user override in B: our books"},
        {"id": "inputs.concurrency", "scenario": "A", "a": 4, "b": 8},
    )
    assert found.formulas == ()
    heads = {item["id"]: item for item in found.headlines}
    before, after = (
        float(made.values()[made.equations.serving.tpot]) for made in (plain, _made(concurrency=8))
    )
    assert heads["metrics.tpot"] == {
        "id": "metrics.tpot",
        "scenario": "A",
        "unit": "s",
        "a": before,
        "b": after,
        "relative": after / before - 1,
    }
    assert "memory.used" in heads and "hardware.memory_capacity" not in heads
    changed = {item["id"] for item in (*found.headlines, *found.results)}
    assert not changed & {"prefill.ffn_up.flops", "plan.accelerators", "model.parameters"}
    library = few().model_dump()
    next(chip for chip in library["accelerators"] if chip["id"] == "mi300x")["memory_bandwidth"]["value"] = (
        5000
    )
    elsewhere = compare(plain, estimate(plain.scenario, plain.model, type(few()).model_validate(library)))
    assert [item["id"] for item in elsewhere.inputs] == [
        "library.mi300x.memory_bandwidth"
    ] and elsewhere.headlines == elsewhere.results == ()


def test_scenarios_and_figures_that_only_one_has() -> None:
    """A column more, another model."""
    found = compare(_made(), _made(variants=TWO["variants"]))
    assert found.inputs == ({"id": "name", "scenario": "B", "a": None, "b": "busy"},) and not (
        found.formulas or found.results
    )
    other = compare(_made(), _made(model="qwen1.5-moe-a2.7b"))
    only = {item["id"]: (item["a"] is None, item["b"] is None) for item in other.formulas}
    assert only["decode.experts_up.time"] == (True, False) and only["decode.ffn_up.time"] == (False, True)
    assert {item["a"] for item in other.formulas if item["a"]}.isdisjoint(
        {item["b"] for item in other.formulas if item["a"] == item["b"]}
    )
    assert {"model.layers", "model.experts"} <= {item["id"] for item in other.inputs}


def test_a_formula_that_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by id, whether the graph has another or somebody typed it."""
    made = _made()
    file = as_written(lay_out(made))
    row = file.book.addresses[made.equations.serving.tpot].row
    cell = f"Calculation!H{row + 1}"
    edited = typed_into(file, {("Calculation", row, FIRST): "=H10+1", place(file.book, "inputs.tp"): 2})
    monkeypatch.setattr("mantile.roundtrip.compare.open_file", lambda path: edited)
    found = compare(made, "edited.xlsx")
    then = file.contents["Calculation"][row, FIRST]
    assert found.formulas == ({"id": "serving.tpot", "cell": cell, "a": then, "b": "=H10+1"},)
    assert [item["id"] for item in found.inputs] == ["inputs.tp"] and found.b == "edited.xlsx"
    monkeypatch.undo()
    structure._made.cache_clear()
    whole = _made()
    structure._made.cache_clear()  # no other estimate has the formula that is changed now
    object.__setattr__(whole.equations.serving.e2e, "body", whole.equations.serving.e2e.body + ONE_REQUEST)
    changed = compare(made, whole)
    assert [item["id"] for item in changed.formulas] == ["serving.e2e"] and changed.formulas[0][
        "b"
    ].startswith(changed.formulas[0]["a"])


@pytest.mark.exhaustive
def test_on_the_command_line(workbook: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1 and one JSON object where something differs; flags are for models."""
    book = loaded(workbook)
    book["Summary"]["J7"] = 5
    book.save(tmp_path / "edited.xlsx")
    assert exit_status("compare", str(workbook), str(tmp_path / "edited.xlsx"), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (
        found["inputs"] == [{"id": "inputs.concurrency", "scenario": "A", "a": 4, "b": 5}]
        and found["differ"] is True
    )
    parts = {"a", "b", "differ", "inputs", "formulas", "headlines", "results", "other_versions"}
    assert set(found) == parts
    bundles = [
        write_bundle(Bundle.of(_made(concurrency=concurrency)), tmp_path / f"{concurrency}.json")
        for concurrency in (4, 5)
    ]
    assert exit_status("compare", *map(str, bundles)) == 1
    out = capsys.readouterr().out
    assert "Inputs: 1" in out and "TPOT, ms" in out and "B ÷ A − 1" in out
    flags = ("--accelerator", "l40s", "--isl", "1000", "--osl", "100", "--concurrency", "4")
    assert exit_status("compare", "llama-3.2-1b", "llama-3.2-1b", *flags) == 0
    assert exit_status("compare", str(workbook), str(workbook), "--tp", "2") == 2
    assert "flags are for models" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"nothing\.xlsx"):
        compare(tmp_path / "nothing.xlsx", workbook)
