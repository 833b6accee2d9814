"""The gallery: what stands in workbooks/ can be run, is small enough and is told in its README."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from conftest import few_of

from mantile.estimates.estimate import estimate
from mantile.library.scenario import load_scenario
from mantile.workbook.layout import lay_out

GALLERY = Path(__file__).resolve().parents[1] / "workbooks"
SCENARIOS = sorted(path.stem for path in GALLERY.glob("*.yaml") if path.stem != "accuracy")


@pytest.mark.parametrize("name", few_of(SCENARIOS, *SCENARIOS[:2]))
def test_a_scenario_of_the_gallery_can_be_run(name: str) -> None:
    """No check fails in any column, no load is saturated, a price is known, and the workbook is small.

    It has at most 25,000 formulas, 32,000 where requests arrive at a rate: a step with all slots taken is
    then worked out in every column too.
    """
    made = estimate(load_scenario(str(GALLERY / f"{name}.yaml")))
    for column in range(len(made.columns)):
        found = made.results(column)
        assert not found["checks"]["errors"], (name, found["name"])
        assert {alert["code"] for alert in found["checks"]["alerts"]} <= {
            "REPLICA_CROSSES_DOMAINS",
            "STAGE_CROSSES_DOMAINS",
            "PRICE_OLD",
        }, (name, found["name"])
    most = 37_000 if made.scenario.open_loop else 28_000  # both kinds of workers, each with power by load
    assert sum(1 for _ in lay_out(made).formulas()) <= most


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_readme_of_the_gallery_tells_of_it(name: str) -> None:
    """With the file, the workbook, the picture and the command; each of them is there."""
    told = (GALLERY / "README.md").read_text(encoding="utf-8")
    for part in (f"({name}.yaml)", f"({name}.xlsx)", f"({name}.png)", f"mantile build workbooks/{name}.yaml"):
        assert part in told
    assert all((GALLERY / f"{name}.{suffix}").is_file() for suffix in ("yaml", "xlsx", "png"))


@pytest.mark.exhaustive
def test_the_script_runs(tmp_path: Path) -> None:
    """Built, changed, built again, verified, compared, imported and audited from Python."""
    results = runpy.run_path(str(GALLERY / "from_python.py"))["main"](tmp_path)
    assert list(results.loc["inputs.concurrency"])[2:] == [64, 64, 64]  # behind label and unit
    assert {path.name for path in tmp_path.iterdir()} == {"before.xlsx", "after.xlsx", "audit.csv"}
