"""From Python: build a workbook, change the scenario, build again, verify, compare, read the results into pandas.

python workbooks/from_python.py [FOLDER]
"""

import sys
from pathlib import Path

import pandas as pd

from mantile import audit, build_workbook, compare, estimate, import_workbook, load_scenario, verify

HERE = Path(__file__).resolve().parent


def main(folder: Path) -> pd.DataFrame:
    """Everything above, in a folder; the results of the second workbook, one row a scenario."""
    scenario = load_scenario(str(HERE / "llama-3.3-70b-h100.yaml"))
    build_workbook(estimate(scenario), folder / "before.xlsx")

    busier = scenario.model_copy(update={"concurrency": 64, "why": "four times the load"})
    build_workbook(estimate(busier), folder / "after.xlsx")
    assert verify(folder / "after.xlsx").ok

    changed = compare(folder / "before.xlsx", folder / "after.xlsx")
    print(changed.to_dict()["inputs"])

    found = import_workbook(folder / "after.xlsx")  # after somebody edited it; nobody did here
    assert found.changes == ()
    results = pd.DataFrame([found.estimate.results(column) for column in range(len(found.estimate.columns))])
    print(results[["name", "ttft_s", "tpot_s", "output_tokens_per_s"]])

    audit(folder / "after.xlsx").write(folder / "audit.csv")  # every row of every sheet
    print(pd.read_csv(folder / "audit.csv", comment=None).shape)
    return results


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
