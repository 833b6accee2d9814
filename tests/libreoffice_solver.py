"""Goal Seek and Solver of LibreOffice on a workbook: run by a Python that has `uno`.

    python3 libreoffice_solver.py FILE.xlsx TASK.json PROFILE

The task names measured values to type, a factor for Goal Seek, and factors for Solver; what comes out is
printed as JSON. Cells are found by the ids on Efficiency, as a person finds them by their labels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import uno
from com.sun.star.sheet import SolverConstraint
from com.sun.star.sheet.SolverConstraintOperator import GREATER_EQUAL, LESS_EQUAL
from libreoffice_office import opened

BASE, SHARED, IDS = 7, 6, 5  # columns
ROWS = 600
SOLVER = "com.sun.star.comp.Calc.SwarmSolver"  # the one that is not linear and needs no Java
ERROR = "measured.error_of_all"


def worked(document: Any, context: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Type, seek, solve, look."""
    document.calculateAll()
    sheet = document.Sheets.getByName("Efficiency")
    rows: dict[str, int] = {}
    for row in range(ROWS):
        rows.setdefault(sheet.getCellByPosition(IDS, row).String, row)

    def cell(identifier: str, column: int = BASE) -> Any:
        return sheet.getCellByPosition(column, rows[identifier])

    for name, value in task["measured"].items():
        cell(f"measured.{name}").Value = value
    seen: dict[str, Any] = {"error": [cell(ERROR, SHARED).Value]}

    factor = task["goal_seek"]
    variable = cell(f"efficiency.{factor}.override")
    variable.Value = cell(f"measured.in_use.{factor}").Value
    sought = document.seekGoal(cell("measured.ratio.tpot").CellAddress, variable.CellAddress, "1")
    variable.Value = sought.Result
    seen["sought"] = {"value": variable.Value, "ratio": cell("measured.ratio.tpot").Value}
    variable.String = ""
    seen["error"].append(cell(ERROR, SHARED).Value)

    cells = {name: cell(f"efficiency.{name}.override") for name in task["solver"]}
    for name, each in cells.items():
        each.Value = cell(f"measured.in_use.{name}").Value
    solver = context.ServiceManager.createInstanceWithContext(SOLVER, context)
    solver.Document = document
    solver.Objective = cell(ERROR, SHARED).CellAddress
    solver.Maximize = False
    solver.Variables = tuple(each.CellAddress for each in cells.values())
    constraints = []
    for name, each in cells.items():
        for bound, operator in (("lowest", GREATER_EQUAL), ("highest", LESS_EQUAL)):
            constraint = SolverConstraint()
            constraint.Left, constraint.Operator = each.CellAddress, operator
            at = cell(f"measured.{bound}.{name}", SHARED).CellAddress
            constraint.Right = uno.Any("com.sun.star.table.CellAddress", at)
            constraints.append(constraint)
    solver.Constraints = tuple(constraints)
    solver.solve()
    for each, value in zip(cells.values(), solver.Solution, strict=True):
        each.Value = value
    seen["solved"] = {name: each.Value for name, each in cells.items()}
    seen["error"].append(cell(ERROR, SHARED).Value)
    return seen


if __name__ == "__main__":
    with opened(sys.argv[1], sys.argv[3]) as (document, context):
        print(json.dumps(worked(document, context, json.loads(Path(sys.argv[2]).read_text()))))
