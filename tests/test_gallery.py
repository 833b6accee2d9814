"""The gallery: what stands in workbooks/ can be run, is small enough and is told in its README."""

from __future__ import annotations

import json
import runpy
import warnings
from pathlib import Path

import openpyxl
import pytest
from conftest import few_of

from mantile.estimates.estimate import estimate
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.verification.engines import with_formulas
from mantile.verification.verify import TOLERANCE, difference
from mantile.workbook.bundle import BUNDLE_SHEET, Bundle
from mantile.workbook.layout import lay_out
from mantile.workbook.read import read_cells
from mantile.workbook.references import Formula

GALLERY = Path(__file__).resolve().parents[1] / "workbooks"
MOST = {"deepseek-r1-gb200-nvl72": 28_000, "billion-tokens-a-day": 37_000}
"""The most formulas of the largest workbooks; at a rate a step with all slots taken is worked out too."""
SMALL = 1e-6  # beside which rounding of what cancels out is nothing
SCENARIOS = sorted(path.stem for path in GALLERY.glob("*.yaml") if path.stem != "accuracy")


@pytest.mark.parametrize("name", few_of(SCENARIOS, *SCENARIOS[:2]))
def test_a_scenario_of_the_gallery_can_be_run(name: str) -> None:
    """No check fails in any column, no load is saturated, a price is known, and the largest are small."""
    made = estimate(load_scenario(str(GALLERY / f"{name}.yaml")))
    for column in range(len(made.columns)):
        found = made.results(column)
        assert not found["checks"]["errors"], (name, found["name"])
        assert {alert["code"] for alert in found["checks"]["alerts"]} <= {
            "REPLICA_CROSSES_DOMAINS",
            "STAGE_CROSSES_DOMAINS",
            "PRICE_OLD",
        }, (name, found["name"])
    if name in MOST:
        assert sum(1 for _ in lay_out(made).formulas()) <= MOST[name]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_readme_of_the_gallery_tells_of_it(name: str) -> None:
    """With the file, the workbook, the picture and the command; each of them is there."""
    told = (GALLERY / "README.md").read_text(encoding="utf-8")
    for part in (f"({name}.yaml)", f"({name}.xlsx)", f"({name}.png)", f"mantile build workbooks/{name}.yaml"):
        assert part in told
    assert all((GALLERY / f"{name}.{suffix}").is_file() for suffix in ("yaml", "xlsx", "png"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_workbook_of_the_gallery_is_what_its_scenario_says(name: str) -> None:
    """It opens, holds a bundle that nobody changed, and that bundle has the scenario that lies beside it.

    It is that of the last release: what it holds besides may be other than what is built today.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it does not know
        sheet = openpyxl.load_workbook(GALLERY / f"{name}.xlsx", read_only=True)[BUNDLE_SHEET]
    text = "".join(str(row[0]) for row in sheet.iter_rows(values_only=True))
    bundle = Bundle.parse(json.loads(text), name)
    stated = load_scenario(str(GALLERY / f"{name}.yaml"))
    kept = parse_scenario(bundle.data["scenario"], name)
    for field in ("model", "accelerator", "title"):
        assert getattr(kept, field) == getattr(stated, field), field


@pytest.mark.exhaustive
def test_another_engine_works_out_what_a_workbook_of_the_gallery_stores() -> None:
    """Every formula of the standard one."""
    cells = read_cells(GALLERY / "llama-3.3-70b-h100.xlsx")
    found = with_formulas(cells, tuple(cells.contents))
    compared = 0
    for sheet, values in found.items():
        for place, value in values.items():
            if isinstance(cells.contents[sheet].get(place), Formula):
                stored = cells.stored[sheet].get(place)
                assert difference(stored, value, SMALL) <= TOLERANCE, (sheet, place)
                compared += 1
    assert compared > 8000


@pytest.mark.exhaustive
def test_the_script_runs(tmp_path: Path) -> None:
    """Built, changed, built again, verified, compared, imported and audited from Python."""
    results = runpy.run_path(str(GALLERY / "from_python.py"))["main"](tmp_path)
    assert list(results.loc["inputs.concurrency"])[2:] == [64, 64, 64]  # behind label and unit
    assert {path.name for path in tmp_path.iterdir()} == {"before.xlsx", "after.xlsx", "audit.csv"}
