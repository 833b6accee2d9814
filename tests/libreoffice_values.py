"""Values of all cells of a workbook after sets of edits, from one LibreOffice; the Python has `uno`.

    python3 libreoffice_values.py FILE.xlsx PROFILE

Each line that is read is a set of edits as JSON, a list of [sheet, row, column, what is typed], rows and
columns from 0. Each line that is written has, by sheet, the rows of values from its first cell, and the cells
that show an error as [row, column]. Afterwards the cells hold again what they held.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from libreoffice_edits import ERRORS, type_into
from libreoffice_office import opened


def _values(document: Any) -> dict[str, Any]:
    """Rows of values, and places of errors, by sheet."""
    found = {}
    for name in document.Sheets.ElementNames:
        sheet = document.Sheets.getByName(name)
        cursor = sheet.createCursor()
        cursor.gotoEndOfUsedArea(False)
        end = cursor.RangeAddress
        area = sheet.getCellRangeByPosition(0, 0, end.EndColumn, end.EndRow)
        errors = [
            [row, column]
            for part in sheet.queryFormulaCells(ERRORS).RangeAddresses
            for row in range(part.StartRow, part.EndRow + 1)
            for column in range(part.StartColumn, part.EndColumn + 1)
        ]
        found[name] = {"rows": area.getDataArray(), "errors": errors}
    return found


def main(path: str, profile: str) -> None:
    """Edit, calculate, tell, put back, until there is nothing more to read."""
    with opened(path, profile) as (document, _):
        document.enableAutomaticCalculation(False)
        document.calculateAll()
        for line in sys.stdin:
            edits = json.loads(line)
            cells = [document.Sheets.getByName(name).getCellByPosition(c, r) for name, r, c, _ in edits]
            before = [cell.getFormula() for cell in cells]
            for cell, (*_, what) in zip(cells, edits, strict=True):
                type_into(cell, what)
            document.calculate()
            print(json.dumps(_values(document)), flush=True)
            for cell, content in zip(cells, before, strict=True):
                cell.setFormula(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
