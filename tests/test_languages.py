"""Workbooks in other languages of Excel: texts hold the same numbers."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import openpyxl
import pytest

from mantile.estimates.estimate import estimate
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import Literal, rounded
from mantile.library.scenario import load_scenario
from mantile.verification.engines import recalculate, soffice
from mantile.verification.verify import verify
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.read import read_cells
from mantile.workbook.write import build_workbook

_SIGNS = re.compile(r"(?<=\d)[.,](?=\d)")
WORKBOOKS = Path(__file__).resolve().parents[1] / "workbooks"


def test_numbers_in_texts() -> None:
    """So many decimals, thousands apart, rounded half away from zero."""
    shown = {
        (12.0, 1): "12.0",
        (12.34, 1): "12.3",
        (12.35, 1): "12.4",
        (0.1 + 0.2, 2): "0.30",
        (131_072.4, 0): "131,072",
        (131_072.44, 1): "131,072.4",
        (2.5, 0): "3",
        (-0.04, 1): "0.0",
        (-1.25, 1): "-1.3",
        (100.0, 0): "100",
    }
    for (value, digits), expected in shown.items():
        assert evaluate(rounded(Literal(value), digits)) == expected, (value, digits)


@pytest.mark.exhaustive
@pytest.mark.skipif(soffice() is None, reason="LibreOffice is not installed")
def test_texts_of_another_language_differ_in_the_signs_of_numbers(tmp_path: Path) -> None:
    """Recalculated by a program that writes 1.234,5 for 1,234.5: no text has another number or unit.

    The file, as that program saved it, verifies.
    """
    path = build_workbook(
        estimate(load_scenario(WORKBOOKS / "llama-3.3-70b-h100.yaml")), tmp_path / "book.xlsx"
    )
    saved = recalculate(path, tmp_path / "there", "de-DE")
    assert verify(saved).ok
    there = read_cells(saved).stored
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving
        here = openpyxl.load_workbook(path, data_only=True)
    texts = others = 0
    for sheet in here.worksheets:
        if sheet.title == BUNDLE_SHEET:
            continue
        for cells in sheet.iter_rows():
            for cell in cells:
                if not isinstance(cell.value, str):
                    continue
                found = there[sheet.title].get((cell.row - 1, cell.column - 1))
                texts += 1
                if found != cell.value:
                    others += 1
                    assert _SIGNS.sub("", str(found)) == _SIGNS.sub("", cell.value), cell.coordinate
    assert texts > 10_000
    assert 20 < others < 500, "the language was not that of the program, or more than signs changed"
