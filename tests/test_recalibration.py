"""Measured values typed into a workbook.

What the Calibration sheet says of them, and the workbook whose profiles were fitted to them.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import edit, few

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.library.template import Template
from mantile.measured.calibrate_workbook import calibrate_workbook
from mantile.roundtrip.edits import edited
from mantile.verification.engines import soffice
from mantile.verification.verify import verify
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import Cells, File, open_file, typed_inputs
from mantile.workbook.references import Formula
from mantile.workbook.write import build_workbook

BASE = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "date": "2026-11-21",
}
VARIANTS = {"variants": [{"name": "busy", "concurrency": 64}]}
TEMPLATE = Template.model_validate({"drivers": 2})  # a smaller What-if
SLOWER, LATER = 1.2, 1.15  # measured over predicted: TPOT, and TTFT of the base


def small() -> Library:
    """Of two accelerators."""
    return few(("h100-sxm", "l40s"))


@pytest.fixture(scope="module")
def made() -> Estimate:
    """A small model on one accelerator, in two scenarios."""
    return estimate(parse_scenario(BASE | VARIANTS, "scenario"), library=small(), template=TEMPLATE)


@pytest.fixture(scope="module")
def workbook(made: Estimate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its workbook, nothing typed."""
    return build_workbook(made, tmp_path_factory.mktemp("typed") / "run.xlsx")


@pytest.fixture(scope="module")
def typed(made: Estimate, workbook: Path) -> Path:
    """The same, in which somebody typed that both scenarios are a fifth slower than predicted, and a TTFT."""
    tpot = [float(made.results(column)["tpot_s"]) * 1e3 * SLOWER for column in (0, 1)]

    def change(book: Any) -> None:
        for column, value in enumerate(tpot):
            _cell(book, "Efficiency", "measured.tpot", 8 + column).value = value
        _cell(book, "Efficiency", "measured.ttft").value = float(made.results()["ttft_s"]) * 1e3 * LATER

    return edit(workbook, workbook.with_name("typed.xlsx"), change)


def _cell(book: Any, sheet: str, identifier: str, column: int = 8) -> Any:
    found = next(
        row for row in range(5, book[sheet].max_row + 1) if book[sheet].cell(row, 6).value == identifier
    )
    return book[sheet].cell(found, column)


def _figures(file: File, column: int) -> dict[str, float]:
    """The rows of the Calibration sheet, as the cells say."""
    values = file.book.values(typed_inputs(file)[0])[column]
    sections = file.book.estimate.equations.rows.sections("measured")
    return {figure.id: float(values[figure]) for section in sections[1:] for figure in section.figures()}


@pytest.mark.exhaustive
def test_nothing_typed_is_nothing_off(made: Estimate, workbook: Path) -> None:
    """Empty cells are no error values; the sheet follows the rules."""
    values = made.values()
    assert [
        float(values[figure])
        for section in made.equations.rows.sections("measured")[2:]
        for figure in section.figures()
    ] == [0.0] * 13
    assert lint(workbook) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(workbook)
    assert all(
        not _cell(book, "Efficiency", f"measured.{name}", column).protection.locked
        and _cell(book, "Efficiency", f"measured.{name}").value is None
        for name in ("ttft", "ttft_p50", "tpot", "output_tokens_per_s")
        for column in (8, 9)
    )
    place = book.defined_names["calibration_error"].attr_text
    assert _cell(book, "Efficiency", "measured.error_of_all", 7).coordinate == place.partition("!")[
        2
    ].replace("$", "")
    both = _cell(book, "Efficiency", "measured.error_of_all", 7).value
    assert re.search(r"SUM\(H(\d+):I\1\)", both), both


@pytest.fixture(scope="module")
def typed_file(typed: Path) -> File:
    """It as read."""
    return open_file(typed)


@pytest.mark.exhaustive
def test_typed_values_are_compared(typed: Path, typed_file: File) -> None:
    """Ratios and errors as worked out by hand; verification takes the values for edited inputs."""
    report = verify(typed)
    assert report.ok
    assert {edit["id"] for edit in report.inputs} == {
        "measured.tpot",
        "measured.ttft",
    }
    base, busy = _figures(typed_file, 0), _figures(typed_file, 1)
    assert base["measured.ratio.tpot"] == pytest.approx(1 / SLOWER) == busy["measured.ratio.tpot"]
    assert base["measured.ratio.ttft"] == pytest.approx(1 / LATER)
    assert base["measured.ratio.output_tokens_per_s"] == 0 == busy["measured.ratio.ttft"]
    assert base["measured.error"] == pytest.approx(math.log(SLOWER) ** 2 + math.log(LATER) ** 2)
    assert busy["measured.error"] == pytest.approx(math.log(SLOWER) ** 2)


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_typed_values_in_libreoffice(typed: Path) -> None:
    """The second engine agrees."""
    assert verify(typed, "libreoffice").ok


@pytest.mark.exhaustive
def test_the_new_workbook_is_nearer(typed: Path, typed_file: File) -> None:
    """New versions of profiles, fitted with their ranges; the old workbook stays as it was."""
    before, file = typed.read_bytes(), typed_file
    then = [_figures(file, column) for column in (0, 1)]
    target = typed.with_name("typed-calibrated.xlsx")
    found = calibrate_workbook(typed)
    assert typed.read_bytes() == before
    report = verify(target)
    assert report.ok and report.inputs == []

    new = open_file(target)
    now = [_figures(new, column) for column in (0, 1)]
    for old, fresh in zip(then, now, strict=True):
        assert fresh["measured.error"] < old["measured.error"] / 3
        assert old["measured.ratio.tpot"] < fresh["measured.ratio.tpot"] < 1.1
    assert then[0]["measured.ratio.ttft"] < now[0]["measured.ratio.ttft"] < 1.1
    assert now[0]["measured.predicted.tpot"] / now[0]["measured.ratio.tpot"] == pytest.approx(
        then[0]["measured.predicted.tpot"] * SLOWER
    )  # measured: the same

    old_library, new_library = file.book.estimate.library, new.book.estimate.library
    versions = {profile.id: profile.version for profile in old_library.efficiency}
    changed = [profile for profile in new_library.efficiency if versions.get(profile.id) != profile.version]
    assert [f"{profile.id}@{profile.version}" for profile in changed] == found.to_dict()["profiles"] != []
    for profile in changed:
        assert (
            profile.fit is not None
            and profile.fit.source == "typed.xlsx"
            and profile.fit.runs == found.runs == 2
        )
        assert all(moved.low < moved.change < moved.high for moved in profile.fit.moved)
    assert new_library.accelerators == old_library.accelerators
    with pytest.raises(InputError, match="never overwritten"):
        calibrate_workbook(typed)


@pytest.fixture(scope="module")
def opened(workbook: Path) -> File:
    """The workbook as read."""
    return open_file(workbook)


Edits = dict[tuple[str, str, int], Any]


def _typed_into(file: File, edits: Edits) -> File:
    """The file with cells changed, by sheet, id and column; without an id, by the cell's address."""
    contents = {name: dict(cells) for name, cells in file.contents.items()}
    for (sheet, what, column), value in edits.items():
        rows = {
            identifier: row for row, identifier in file.book.sheets[sheet].ids.items()
        }  # a figure's own row stands below its link
        place = (rows[what], column - 1) if what in rows else (int(what[1:]) - 1, column - 1)
        contents[sheet][place] = value
    return replace(file, cells=replace(file.cells, contents=contents))


@pytest.mark.exhaustive
def test_edits_are_carried_over(opened: File) -> None:
    """The scenario and library of an edited workbook give the cells as they stand, each in its own column."""
    file = _typed_into(
        opened,
        {
            ("Summary", "H7", 8): 700,
            ("Inputs", "inputs.concurrency", 9): 3,
            ("Inputs", "inputs.weights_dtype", 9): "fp8",
            ("Efficiency", "efficiency.step_host.override", 8): 900,
            ("Efficiency", "efficiency.launch_scale.override", 9): 0.5,
            ("IR", "model.layers", 7): 16,
            ("Efficiency", "measured.ttft_p50", 9): 88.8,
        },
    )
    now = edited(file)
    made = estimate(now.scenario, file.book.estimate.model, file.book.estimate.library)
    cells = typed_inputs(file)[0]
    for column, wanted in enumerate(cells[: file.book.columns]):
        mine = {figure.id: figure.value for figure in made.equations.all_inputs()} | made.inputs(column)
        assert {
            key: value
            for key, value in wanted.items()
            if key not in file.book.own_inputs and mine[key] != value
        } == {}
    base, variant = (made.results(column) for column in (0, 1))
    assert (
        base["input_tokens"],
        variant["input_tokens"],
        variant["concurrency"],
        variant["weights_dtype"],
    ) == (700, 700, 3, "fp8")
    assert (base["activation_dtype"], variant["activation_dtype"]) == ("bf16", "fp8")  # follows the weights
    assert [{override.id for override in column.overrides} for column in made.columns] == [
        {"model.layers", "efficiency.step_host"},
        {"efficiency.launch_scale"},
    ]
    then = file.book.values(cells)
    for column in (0, 1):
        assert float(made.values(column)[made.equations.serving.tpot]) == pytest.approx(
            float(then[column][file.book.estimate.equations.serving.tpot])
        )


@pytest.mark.exhaustive
def test_an_override_emptied_or_changed_in_the_base_alone(opened: File) -> None:
    """A variant keeps what its own cells say, also where a scenario file would have it follow the base."""
    overrides = [
        {"id": "efficiency.step_host", "value": 700},
        {"id": "efficiency.launch_scale", "value": 0.5},
    ]
    old = opened.book.estimate
    book = lay_out(
        estimate(
            parse_scenario(BASE | VARIANTS | {"overrides": overrides}, "scenario"), old.model, old.library
        )
    )
    contents = {
        name: {
            place: cell.number
            if cell.number is not None
            else cell.text
            if cell.text is not None
            else Formula(book.formula_text(sheet, cell))
            if cell.expression is not None
            else None
            for place, cell in sheet.cells.items()
        }
        for name, sheet in book.sheets.items()
    }
    file = _typed_into(
        File(Path("run.xlsx"), book, Cells(contents, {})),
        {
            ("Efficiency", "efficiency.step_host.override", 8): 800,
            ("Efficiency", "efficiency.launch_scale.override", 9): None,
        },
    )
    now = edited(file)
    found = [
        {override.id: override.value for override in column.overrides}
        for column in estimate(now.scenario, old.model, old.library).columns
    ]
    assert found == [
        {"efficiency.step_host": 800, "efficiency.launch_scale": 0.5},
        {"efficiency.step_host": 700},
    ]


TPOT = ("Efficiency", "measured.tpot", 8)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({}, r"run\.xlsx: sheet Efficiency: no measured value"),
        (
            {TPOT: 9, ("Calculation", "serving.e2e", 8): Formula("=1+1")},
            r"Calculation!H\d+ \(serving\.e2e\): holds '=1\+1' instead of",
        ),
        (
            {TPOT: 9, ("Calculation", "serving.e2e", 8): 1.5},
            r"Calculation!H\d+ \(serving\.e2e\): holds '1\.5' instead of",
        ),
        ({TPOT: -9}, r"Efficiency!H\d+ \(measured\.tpot\): holds -9; expected a number from 1e-09 to "),
        ({TPOT: "9 ms"}, r"Efficiency!H\d+ \(measured\.tpot\)"),
        ({TPOT: 9, ("Summary", "B7", 2): 2.5}, r"\(inputs\.tp\): holds 2\.5; expected a whole number"),
        ({TPOT: 9, ("Summary", "B7", 2): 3}, "the plan is not possible"),
    ],
    ids=["nothing", "formula", "overwritten", "negative", "words", "fraction", "plan"],
)
def test_what_cannot_be_calibrated_is_named(
    opened: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: Edits, words: str
) -> None:
    """File and cell or field; nothing is written."""
    monkeypatch.setattr(
        "mantile.measured.calibrate_workbook.open_file", lambda path: _typed_into(opened, edits)
    )
    with pytest.raises(InputError, match=words):
        calibrate_workbook(tmp_path / "run.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_bundle_is_named(tmp_path: Path) -> None:
    """As in verification."""
    book = openpyxl.Workbook()
    book.create_sheet("_bundle")["A1"] = '{"format": 1}'
    book.save(tmp_path / "run.xlsx")
    with pytest.raises(InputError, match=r"run\.xlsx: sheet _bundle"):
        calibrate_workbook(tmp_path / "run.xlsx")


@pytest.mark.exhaustive
def test_workers_apart_and_throughput_alone(tmp_path: Path) -> None:
    """Decode workers of their own and a typed throughput, which the fit follows.

    A scenario file may hold what was measured.
    """
    fields = BASE | {"decode": {"tp": 2}, "measured": {"output_tokens_per_s": 900}}
    made = estimate(parse_scenario(fields, "scenario"), library=small(), template=TEMPLATE)
    source = build_workbook(made, tmp_path / "apart.xlsx")
    found = calibrate_workbook(source, tmp_path / "new.xlsx")
    before, after = (
        figures["output_tokens_per_s_per_accelerator"] for figures in (found.before, found.after)
    )
    assert made.values()[made.equations.measured["output_tokens_per_s"]] == 900
    predicted = float(made.values()[made.equations.rows["serving.output_tokens_per_s"]])
    assert before["bias"] == pytest.approx(predicted / 900 - 1) and before["bias"] > 0.05
    assert found.runs == 1 and after["symmetric"] < before["symmetric"] * 0.7
    assert (tmp_path / "new.xlsx").is_file()
