"""A notebook as a script: each `# %%` begins a cell in Jupyter (jupytext), VS Code or Spyder.

python workbooks/notebook.py [FOLDER]
"""

# %% A scenario, and what one can ask of its estimate
import sys
from pathlib import Path

import mantile as mt

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()

scenario = mt.Scenario(
    model="llama-3.1-8b", accelerator="h100-sxm", tp=1, input_tokens=1024, output_tokens=128, concurrency=16
)
estimate = mt.estimate(scenario)
print(estimate)
print(
    f"TPOT {estimate.tpot * 1e3:.2f} ms, USD {estimate.usd_per_million_output_tokens:.2f} per million tokens"
)

# %% All headline metrics, in SI units; to_frame() alone has labels and units as well
print(estimate.to_frame().iloc[:, -1])

# %% One figure: how it is worked out, and from what
tpot = estimate["serving.tpot"]
print(tpot.value, tpot.unit, tpot.formula, tpot.words)
for term in tpot.precedents:
    print("  ", term.id, term.value, term.unit)

# %% Another plan, and one that cannot be: it has no latency, but reasons
print(mt.estimate(scenario.replace(tp=4)))
too_big = mt.estimate(scenario.replace(model="llama-3.3-70b"))
print(too_big.tpot, [check["code"] for check in mt.plan(too_big)["checks"]["errors"]])

# %% Every combination of two fields, as a table
table = mt.sweep(scenario, tp=[1, 2, 4, 8], concurrency=range(8, 65, 8))
best = table.nsmallest(3, "usd_per_million_tokens_output")
print(best[["tp", "concurrency", "tpot_s", "usd_per_million_tokens_output"]])

# %% What the results follow from most
print(mt.drivers(estimate).head(5))

# %% The workbook: every number is a live formula
print(mt.lint(estimate.to_excel(FOLDER / "notebook.xlsx")))
