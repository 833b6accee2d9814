"""What changed since the workbook before: inputs as they were and are, results live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import edit, few
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import Quantity
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.library.template import Template
from mantile.roundtrip.import_workbook import import_workbook
from mantile.roundtrip.since import Before, following, since_workbook
from mantile.workbook.bundle import Bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import build_workbook

FIELDS = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 100,
    "concurrency": 8,
}
LIBRARY = few(("h100-sxm", "b200-sxm"))
TEMPLATE = Template.model_validate({"drivers": 2})


def made(**fields: Any) -> Estimate:
    """A small estimate."""
    return estimate(parse_scenario(FIELDS | fields, "since"), library=LIBRARY, template=TEMPLATE)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook, and what was typed into it afterwards: twice the requests."""
    folder = tmp_path_factory.mktemp("since")
    build_workbook(made(), folder / "first.xlsx")
    sheet, row, column = lay_out(made()).input_cells["inputs.concurrency", 0]

    def change(workbook: Any) -> None:
        workbook[sheet][xl_rowcol_to_cell(row, column)] = 16

    return edit(folder / "first.xlsx", folder / "before.xlsx", change)


def block(book: EstimateBook) -> dict[str, tuple[Any, Any, Any]]:
    """Results before, now and the change, as the Log has them."""
    across = book.values(book.generated_inputs())[-1]
    parts: dict[str, dict[str, Any]] = {}
    for figure in book.addresses:
        if figure.id.startswith("since.") and not figure.id.startswith("since.input."):
            _, name, part = figure.id.split(".")
            value = across[figure.body] if isinstance(figure, Quantity) else figure.value
            parts.setdefault(name, {})[part] = value
    return {name: (part["was"], part["now"], part["change"]) for name, part in parts.items()}


def test_the_next_version_says_what_differs() -> None:
    """Inputs as they were and are, results live, with their change."""
    old = made(concurrency=16)
    new = following(made(accelerator="b200-sxm", pue=1.1), Before("before.xlsx", old, Bundle.of(old)))
    changes = new.scenario.since
    assert changes is not None and changes.workbook == "before.xlsx" and not changes.more
    assert {change.id: (change.was, change.now) for change in changes.inputs} == {
        "inputs.accelerator": ("h100-sxm", "b200-sxm"),
        "inputs.concurrency": (16, 8),
        "inputs.pue": (1.3, 1.1),
    }
    book = lay_out(new)
    said = block(book)
    was, now, change = said["tpot"]
    assert was == pytest.approx(1e3 * old.tpot) and now == pytest.approx(1e3 * new.tpot)
    assert change == pytest.approx(new.tpot / old.tpot - 1) and change != 0
    assert new.scenario.why == "changed since before.xlsx: inputs.accelerator, inputs.concurrency, inputs.pue"
    assert [version.tpot_ms for version in new.scenario.versions] == [pytest.approx(1e3 * old.tpot)]
    texts = {cell.text for cell in book.sheets["Audit"].cells.values()}
    assert {"Accelerator", "inputs.pue", "b200-sxm"} <= texts
    assert any(text and text.startswith("Since before.xlsx of ") for text in texts)


def test_what_nobody_knew_has_no_change() -> None:
    """A plan that could not be beside one that can."""
    old = made(tp=3)
    said = block(lay_out(following(made(), Before("before.xlsx", old, Bundle.of(old)))))
    assert said["tpot"][0] == said["tpot"][2] == "not known" and said["tpot"][1] > 0
    assert said["memory_per_accelerator"][2] != "not known"


@pytest.mark.exhaustive
def test_it_travels_with_the_workbook(before: Path, tmp_path: Path) -> None:
    """In its bundle, so that verification lays out the same. Of the one before edits count."""
    new = since_workbook(made(tp=2), before)
    assert new.scenario.since is not None
    assert {change.id: change.was for change in new.scenario.since.inputs}["inputs.concurrency"] == 16
    again = Bundle.of(new).estimate()
    assert again.scenario.since == new.scenario.since and block(lay_out(again)) == block(lay_out(new))


@pytest.mark.exhaustive
def test_an_import_is_a_version_as_well(before: Path, tmp_path: Path) -> None:
    """What was typed by hand stands in the Log of the workbook that is built from it."""
    imported = import_workbook(before)
    changes = imported.scenario.since
    assert changes is not None
    assert [(change.id, change.was, change.now) for change in changes.inputs] == [
        ("inputs.concurrency", 8, 16)
    ]
    assert changes.results["tpot"] == pytest.approx(made().tpot)
    assert imported.write(tmp_path / "new.yaml", bundle=True).read_text().count("inputs.concurrency") == 2


def test_no_other_file_will_do(tmp_path: Path) -> None:
    """An error names the file."""
    (tmp_path / "old.xlsx").write_bytes(b"no workbook")
    with pytest.raises(InputError, match=r"old\.xlsx"):
        since_workbook(made(), tmp_path / "old.xlsx")
