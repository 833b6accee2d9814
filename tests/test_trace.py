"""The trace on Audit: from each headline result in at most six steps to a figure behind it, edits or not."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from live import as_written, edit, few, loaded, place, typed_into

from mantile.equations.display import HOW
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    POWER,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.estimates.estimate import estimate
from mantile.graph.quantity import Input
from mantile.library.scenario import parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.severity import SHOWN
from mantile.verification.verify import verify
from mantile.workbook.book import HEADS, KEYS
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

METRICS = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, MEMORY_PER_ACCELERATOR, POWER, USD_PER_MILLION_OUTPUT_TOKENS)
MOST_STEPS = 6
NOTHING = "–"
STEP, NAME, VALUE, ID, STATUS = range(5)  # columns
CHIPS = ("h100-sxm", "b200-sxm", "mi355x")
FIELDS: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 4,
    "input_tokens": 2000,
    "output_tokens": 300,
    "concurrency": 32,
}
KINDS: dict[str, dict[str, Any]] = {
    "dense": FIELDS,
    "experts": FIELDS | {"model": "mixtral-8x7b", "weights_dtype": "fp8", "ep": 2},
    "workers": FIELDS | {"serving": "disaggregated", "decode": {"accelerator": "b200-sxm", "tp": 2}},
    "rate": FIELDS | {"concurrency": None, "request_rate": 1.0},
}
Steps = list[dict[int, Any]]


@cache
def _book(kind: str = "dense") -> EstimateBook:
    stated = {name: value for name, value in KINDS[kind].items() if value is not None}
    return lay_out(estimate(parse_scenario(stated, "test"), library=few(CHIPS)))


def paths_of(book: EstimateBook, shown: dict[tuple[str, int, int], Any]) -> dict[Metric, Steps]:
    """What each path shows, step by step, the source last."""
    sheet = book.sheets["Audit"]
    row = next(row for (row, column), cell in sheet.cells.items() if cell.text == "Trace" and not column) + 2
    paths: dict[Metric, Steps] = {}
    for metric in METRICS:
        paths[metric] = []
        while True:
            texts = {column: sheet.cells[row, column].text for column in range(5)}
            paths[metric].append(
                {column: shown.get(("Audit", row, column), texts[column]) for column in texts}
            )
            row += 1
            if texts[STEP] == "source":
                break
    return paths


def _native(book: EstimateBook, edits: dict[str, Any] | None = None) -> dict[tuple[str, int, int], Any]:
    """The values of all formulas of Audit after edits of the base scenario."""
    values = book.values([book.estimate.inputs(0) | (edits or {})])
    return {
        ("Audit", row, column): values[cell.scenario][cell.expression]
        for (row, column), cell in book.sheets["Audit"].cells.items()
        if cell.expression is not None
    }


def _value(book: EstimateBook, identifier: str, edits: dict[str, Any] | None = None) -> Any:
    values = book.values([book.estimate.inputs(0) | (edits or {})])[0]
    return values[book.estimate.figure(identifier)]


@pytest.mark.parametrize("kind", few_of(KINDS, "dense"))
def test_a_path_leads_from_a_result_to_a_source(kind: str) -> None:
    """The first step is the result, the last a row of the library or an input, with who states it."""
    book = _book(kind)
    paths = paths_of(book, _native(book))
    ids = {identifier for sheet in book.sheets.values() for identifier in sheet.ids.values()}
    ids |= {figure.id for figure in book.addresses if isinstance(figure, Input)}  # of tables
    for metric, (*steps, source) in paths.items():
        assert len(steps) - 1 <= MOST_STEPS
        value = metric.of(book.estimate.equations.figures)
        assert steps[0][VALUE] == pytest.approx(metric.shown(_value(book, value.id)), rel=1e-12)
        taken = [step[ID] for step in steps if step[ID] != NOTHING]
        assert taken[0] == value.id and set(taken) <= ids, "every step names a row that there is"
        assert steps[-1][STATUS] not in ("", NOTHING, None) and source[NAME] not in ("", NOTHING, None)


@pytest.mark.parametrize("kind", ["dense", pytest.param("experts", marks=pytest.mark.exhaustive)])
def test_the_path_of_tpot_is_that_of_the_bound_in_force(kind: str) -> None:
    """Worked out here once more: the limit that takes most of the step, the module that takes most of that,
    its bytes over the bandwidth that it reaches, and that as a share of the library's figure."""
    book = _book(kind)
    equations, values = book.estimate.equations, book.estimate_values[0]
    result, step, bound, module, rate, figure, _ = paths_of(book, _native(book))[TPOT]
    assert result[VALUE] > step[VALUE] > bound[VALUE] > module[VALUE]
    times = {limit: float(values[part]) for limit, part in equations.decode.parts.items()}
    limit = max(times, key=times.__getitem__)
    assert limit == "memory" and bound[ID] == f"decode.bound.{limit}"
    assert bound[VALUE] == pytest.approx(times[limit] * 1e3, rel=1e-12)
    parts = {part.id: float(values[part]) for part in equations.decode.shares[limit].figures}
    assert module[ID] == max(parts, key=parts.__getitem__)
    block = next(block for block in equations.decode.blocks if block.id == module[ID].rpartition(".")[2])
    assert block.repeats is not None and block.bytes is not None
    size = values[block.bytes] * values[block.repeats]
    assert module[VALUE] * 1e-3 * rate[VALUE] * 1e9 == pytest.approx(size, rel=1e-9)
    assert figure[ID] == "library.h100-sxm.memory_bandwidth"
    assert figure[VALUE] == _value(book, figure[ID]) == 3350
    assert rate[STATUS] == f"{100 * rate[VALUE] / figure[VALUE]:.0f}% of the figure below"


@pytest.mark.parametrize("engine", ["native", pytest.param("formulas", marks=pytest.mark.exhaustive)])
def test_another_accelerator_that_is_typed_is_named_with_its_bandwidth_and_source(engine: str) -> None:
    """Also as a spreadsheet program works the file out."""
    book = _book()
    if engine == "native":
        results = [_native(book), _native(book, {"inputs.accelerator": "b200-sxm"})]
    else:
        model, cell = CompiledSheets(as_written(book).contents), place(book, "inputs.accelerator")
        results = [model.calculate(book.sheets, typed) for typed in ({}, {cell: "b200-sxm"})]
    before, after = (paths_of(book, result) for result in results)
    for paths, chip in ((before, "h100-sxm"), (after, "b200-sxm")):
        *_, figure, source = paths[TPOT]
        row = f"library.{chip}.memory_bandwidth"
        fact = book.estimate.figure(row)
        status, _, stated = fact.source.partition(": ")  # type: ignore[union-attr]
        assert (figure[NAME], figure[ID]) == (f"Memory bandwidth, {chip}, GB/s", row)
        assert figure[VALUE] == _value(book, row) and figure[STATUS] == status
        assert source[NAME].startswith(stated)
        assert paths[POWER][-2][ID] == f"library.{chip}.tdp"
        assert paths[USD_PER_MILLION_OUTPUT_TOKENS][-2][ID] == f"library.{chip}.price_cloud"


def test_the_path_changes_with_what_binds() -> None:
    """A prompt alone on a small share of a model waits for launches, an override stands for the library, and
    a plan that cannot be has no path."""
    book = _book()
    few_bytes = {"inputs.concurrency": 1, "inputs.input_tokens": 10, "inputs.tp": 8}
    slow_launch = {"efficiency.gemm_launch.override": 400.0}
    launches = paths_of(book, _native(book, few_bytes | slow_launch))[TPOT]
    assert launches[2][ID] == "decode.bound.overhead"
    assert launches[-2][ID] == "efficiency.gemm_launch.override" and launches[-2][VALUE] == 400
    assert launches[-2][STATUS] == "override"
    links = paths_of(book, _native(book, {"hardware.link_bandwidth.override": 0.5}))[TPOT]
    assert links[1][ID] == "serving.stall" and links[2][ID] == "prefill.bound.network", "prompts take longest"
    assert links[4][ID] == "prefill.all_reduce.layer_time" and links[-2][VALUE] == 0.5
    impossible = paths_of(book, _native(book, {"inputs.tp": 7}))
    for metric in (TTFT, TPOT, OUTPUT_TOKENS_PER_S):
        assert {step[ID] for step in impossible[metric][1:-1]} == {NOTHING}
    unknown = paths_of(book, _native(book, {"inputs.accelerator": "mi355x"}))[USD_PER_MILLION_OUTPUT_TOKENS]
    assert unknown[0][VALUE] == "not known" and not isinstance(unknown[-2][VALUE], float)


@pytest.mark.exhaustive
def test_every_step_leads_to_a_row_or_to_what_it_was_chosen_from(tmp_path: Path) -> None:
    """Links of the file lead to cells that hold something, and stay true after edits."""
    book = _book()
    file = loaded(write_workbook(book, tmp_path / "run.xlsx"))
    log, links = file["Audit"], 0
    for row in log.iter_rows():
        for cell in row:
            is_id = cell.column == ID + 1 and cell.font.name == "Consolas"
            if cell.hyperlink is None or not is_id:
                continue
            sheet, _, target = cell.hyperlink.location.replace("'", "").partition("!")
            found = file[sheet][target]
            assert found.value is not None, (cell.coordinate, cell.hyperlink.location)
            links += 1
            if sheet != "Audit":
                beside = [other.value for other in file[sheet][found.row]]
                assert cell.data_type == "f" or cell.value in beside
    paths = paths_of(book, _native(book))
    assert links > sum(len(path) - 1 for path in paths.values())


def test_a_figure_names_its_source_where_it_is_selected() -> None:
    """By the number of a row that has the source in full; what nobody states has neither cell nor source."""
    book = _book()
    figures = {(at.sheet, at.row, at.column): figure for figure, at in book.addresses.items()}
    for name in ("Hardware", "Efficiency"):
        cells = book.sheets[name].cells
        sources = {
            cell.text: cells[row, HEADS.index(HOW)].text
            for (row, column), cell in cells.items()
            if column == KEYS and (cell.text or "").startswith("source ")
        }
        assert len(set(sources.values())) == len(sources) > 40
        told = {at: cell.tip for at, cell in cells.items() if "source " in cell.tip[-10:]}
        assert len(told) > 80
        for (row, column), tip in told.items():
            source = sources[tip.rpartition(" · ")[2]]
            figure = figures[name, row, column]
            assert isinstance(figure, Input) and figure.source == source
            assert tip.startswith(source.partition(": ")[0]) and len(tip) <= 255
    nobody = book.addresses[book.estimate.figure("system.hgx-h100.pair_bandwidth")]
    assert (nobody.row, nobody.column) not in book.sheets[nobody.sheet].cells


@pytest.mark.exhaustive
def test_another_source_that_is_typed_is_told_and_changes_no_answer(tmp_path: Path) -> None:
    """The trace repeats what stands in the file; verification names the cell, once."""
    book, source = _book(), "NVIDIA H100 datasheet; page 2; https://nvidia.com"
    text = f"datasheet 2026-12: {source}"
    sources = book.estimate.equations.prefill_workers.hardware.sources
    number = sources.number(book.estimate.figure("library.h100-sxm.memory_bandwidth").source)
    address, column = book.addresses[sources.keys[number - 1]], HEADS.index(HOW)
    file = typed_into(as_written(book), {(address.sheet, address.row, column): text})
    shown = CompiledSheets(file.contents).calculate(book.sheets, {})
    assert paths_of(book, shown)[TPOT][-1][NAME] == source

    def change(workbook: Any) -> None:
        workbook[address.sheet].cell(address.row + 1, column + 1).value = text

    path = edit(write_workbook(book, tmp_path / "run.xlsx"), tmp_path / "edited.xlsx", change)
    report = verify(path)
    assert report.mismatches == []
    assert [item["found"] for item in report.shown if item["severity"] == SHOWN] == [text]
