"""Edits as people make them, typed into a workbook in LibreOffice: run by a Python that has `uno`.

    python3 libreoffice_edits.py FILE.xlsx EDITS.json PROFILE

EDITS.json holds cells to look at, as [sheet, cell], and edits, each a list of [sheet, cell, what is
typed]: null deletes, "=..." is a formula. For each the workbook is recalculated, what it says is kept, and
the cells get back what they held. Printed as JSON, for the workbook as it is, for each edit, and at the end
again: texts by cell, and the places of error values. A sheet that EDITS.json names as "deleted" is then taken
out, and there is one more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from libreoffice_office import opened

ERRORS = 4  # com.sun.star.sheet.FormulaResult


def type_into(cell: Any, what: Any) -> None:
    """Type a number, a text or a formula, or delete what is there."""
    if what is None:
        cell.clearContents(1 | 2 | 4 | 16)  # values, dates, texts, formulas
    elif isinstance(what, str) and what.startswith("="):
        cell.setFormula(what)
    elif isinstance(what, str):
        cell.setString(what)
    else:
        cell.setValue(what)


def seen(document: Any, wanted: list[list[str]]) -> dict[str, Any]:
    """What the workbook says: texts of the cells that are asked for, and where errors are."""
    document.calculate()
    sheets = document.Sheets
    errors = []
    for name in sheets.ElementNames:
        ranges = sheets.getByName(name).queryFormulaCells(ERRORS)
        errors += [
            f"{name}!{part.split('.')[-1]}" for part in ranges.RangeAddressesAsString.split(";") if part
        ]
    texts = {
        f"{sheet}!{cell}": sheets.getByName(sheet).getCellRangeByName(cell).String for sheet, cell in wanted
    }
    return {"errors": errors, "texts": texts}


def main(path: str, task: str, profile: str) -> None:
    """Open, edit, look, put back."""
    asked = json.loads(Path(task).read_text())
    with opened(path, profile) as (document, _):
        document.calculateAll()
        for name in document.Sheets.ElementNames:
            document.Sheets.getByName(name).unprotect("")  # as anybody can
        found = [seen(document, asked["look"])]
        for edit in asked["edits"]:
            cells = [document.Sheets.getByName(sheet).getCellRangeByName(cell) for sheet, cell, _ in edit]
            before = [cell.getFormula() for cell in cells]
            for cell, (_, _, what) in zip(cells, edit, strict=True):
                type_into(cell, what)
            found.append(seen(document, asked["look"]))
            for cell, content in zip(cells, before, strict=True):
                cell.setFormula(content)
        document.calculate()
        found.append(seen(document, asked["look"]))
        if asked.get("deleted"):
            document.Sheets.removeByName(asked["deleted"])
            left = [place for place in asked["look"] if place[0] != asked["deleted"]]
            found.append(seen(document, left))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
