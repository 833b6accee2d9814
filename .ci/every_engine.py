"""What each engine that is installed here works out for every formula of a workbook, beside what is stored.

    python .ci/every_engine.py run.xlsx
    NODE_PATH=node_modules python .ci/every_engine.py run.xlsx     after npm install hyperformula

The stored values are the native engine's. Engines: `formulas`, formualizer, LibreOffice (`soffice`), Gnumeric
(`ssconvert`), IronCalc (its package) and HyperFormula (`node`). Exit status 1 where one differs by more than
1e-9.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mantile.verification.engines import soffice, with_formualizer, with_formulas, with_libreoffice
from mantile.verification.verify import TOLERANCE, difference, scale_of
from mantile.workbook.read import Cells, open_file, read_cells, typed_inputs
from mantile.workbook.references import Formula

Values = dict[str, dict[tuple[int, int], Any]]
HYPERFORMULA = """
const {HyperFormula} = require('hyperformula');
const sheets = JSON.parse(require('fs').readFileSync(0));
const engine = HyperFormula.buildFromSheets(sheets, {licenseKey: 'gpl-v3', maxRows: 100000});
const found = {};
for (const name of engine.getSheetNames()) {
  found[name] = engine.getSheetValues(engine.getSheetId(name)).map(row => row.map(
    value => value !== null && typeof value === 'object' ? String(value.value) : value));
}
process.stdout.write(JSON.stringify(found));
"""


def without_values(path: Path, target: Path) -> Path:
    """A copy whose formulas have no stored values."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for item in source.infolist():
            copy.writestr(item, re.sub(rb"(?<=</f>)<v>[^<]*</v>", b"", source.read(item)))
    return target


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing written to the standard output, also by what is not Python: IronCalc lists every empty cell."""
    sys.stdout.flush()
    before = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def by_gnumeric(path: Path, folder: Path) -> Values:
    saved = folder / "gnumeric.xlsx"
    subprocess.run(["ssconvert", "--recalc", path, saved], check=True, capture_output=True)
    return read_cells(saved).stored


def by_ironcalc(path: Path, cells: Cells, folder: Path) -> Values:
    ironcalc = importlib.import_module("ironcalc")
    with quiet():
        model = ironcalc.load_from_xlsx(str(without_values(path, folder / "bare.xlsx")), "en", "UTC", "en")
    model.evaluate()
    return {
        sheet: {
            place: model.get_cell_value(number, place[0] + 1, place[1] + 1)
            for place, content in cells.contents[sheet].items()
            if isinstance(content, Formula)
        }
        for number, sheet in enumerate(cells.package.sheets)
        if sheet in cells.contents
    }


def by_hyperformula(cells: Cells) -> Values:
    sheets = {}
    for sheet, contents in cells.contents.items():
        width = max((column for _, column in contents), default=0) + 1
        rows = [[None] * width for _ in range(max((row for row, _ in contents), default=0) + 1)]
        for (row, column), content in contents.items():
            is_text = isinstance(content, str) and not isinstance(content, Formula)
            rows[row][column] = f"'{content}" if is_text else content
        sheets[sheet] = rows
    run = subprocess.run(
        ["node", "-e", HYPERFORMULA], input=json.dumps(sheets), capture_output=True, text=True, check=True
    )
    return {
        sheet: {(row, column): value for row, line in enumerate(lines) for column, value in enumerate(line)}
        for sheet, lines in json.loads(run.stdout).items()
    }


def engines(path: Path, cells: Cells, folder: Path) -> dict[str, Callable[[], Values] | None]:
    """How each works a file out; None for one that is not installed."""
    names = tuple(cells.contents)
    node = shutil.which("node")
    has_hyperformula = (
        node and not subprocess.run([node, "-e", "require('hyperformula')"], capture_output=True).returncode
    )
    return {
        "formulas": lambda: with_formulas(cells, names),
        "formualizer": lambda: with_formualizer(cells, names),
        "LibreOffice": (lambda: with_libreoffice(path)) if soffice() else None,
        "Gnumeric": (lambda: by_gnumeric(path, folder)) if shutil.which("ssconvert") else None,
        "IronCalc": (lambda: by_ironcalc(path, cells, folder))
        if importlib.util.find_spec("ironcalc")
        else None,
        "HyperFormula": (lambda: by_hyperformula(cells)) if has_hyperformula else None,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workbook", type=Path)
    path = parser.parse_args().workbook
    file = open_file(path)
    cells = file.cells
    words = {key: file.content(at.sheet, at.row, at.column or 0) for key, at in file.book.words().items()}
    native = file.book.values([given | words for given in typed_inputs(file)[0]])
    places = []
    for sheet, row, column, cell in file.book.formulas():
        values = native[cell.scenario]
        places.append((sheet.name, (row, column), scale_of(cell.expression, values)))
    print(f"{path.name}: {len(places):,} formulas")
    differs = False
    with tempfile.TemporaryDirectory() as folder:
        for name, work_out in engines(path, cells, Path(folder)).items():
            if work_out is None:
                print(f"{name:<13} not installed")
                continue
            found = work_out()
            errors = []
            for sheet, place, scale in places:
                stored = cells.stored[sheet].get(place)
                error = difference("" if stored is None else stored, found[sheet].get(place), scale)
                errors.append((error, sheet, place, stored, found[sheet].get(place)))
            wrong = [each for each in errors if not each[0] <= TOLERANCE]
            largest = max(each[0] for each in errors if each[0] <= TOLERANCE)
            agree = len(errors) - len(wrong)
            print(f"{name:<13} {agree:,} agree, at most {largest:.1g} apart; {len(wrong)} differ")
            for _, sheet, (row, column), stored, value in wrong[:6]:
                print(f"    {sheet} row {row + 1} column {column + 1}: stored {stored!r}, {name} {value!r}")
            differs = differs or bool(wrong)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
