"""From Python: build a workbook, change the scenario, build again, verify, compare, read into pandas.

python workbooks/from_python.py [FOLDER]
"""

import sys
from pathlib import Path

import pandas as pd

import mantile as mt

HERE = Path(__file__).resolve().parent


def main(folder: Path) -> pd.DataFrame:
    """Everything above, in a folder; all figures of the second workbook."""
    scenario = mt.load_scenario(str(HERE / "llama-3.3-70b-h100.yaml"))
    mt.estimate(scenario).to_excel(folder / "before.xlsx")

    busier = scenario.replace(concurrency=64, why="four times the load")
    mt.estimate(busier).to_excel(folder / "after.xlsx")
    assert mt.verify(folder / "after.xlsx").ok

    changed = mt.compare(folder / "before.xlsx", folder / "after.xlsx")
    print(changed.to_dict()["inputs"])

    edited = mt.import_workbook(folder / "after.xlsx")  # after somebody edited it; nobody did here
    assert edited.changes == ()
    results = edited.estimate.to_frame(all=True)  # every figure by id, a column for each scenario
    print(results.loc[["serving.ttft", "serving.tpot", "serving.output_tokens_per_s"]])

    mt.audit(folder / "after.xlsx").write(folder / "audit.csv")  # every row of every sheet
    print(pd.read_csv(folder / "audit.csv", comment=None).shape)
    return results


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
