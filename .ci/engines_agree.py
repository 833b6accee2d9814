"""Sets of one to eight edits of a small workbook, and every formula as each engine works it out then.

    python .ci/engines_agree.py --edits 10000                               hours
    python .ci/engines_agree.py --edits 500 --engines formulas,formualizer
    python .ci/engines_agree.py --edits 10000 --seconds 3600                as many as an hour allows

What the native engine gives is what the others are held against, to 1e-9. Prints a table: sets, edits,
formulas compared, differences, and the largest; exit status 1 where two engines differ.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from live import few, random_value  # noqa: E402
from office import python_with_uno  # noqa: E402

from mantile.estimates.estimate import estimate  # noqa: E402
from mantile.library.architecture import Model  # noqa: E402
from mantile.library.huggingface import parse_config  # noqa: E402
from mantile.library.scenario import parse_scenario  # noqa: E402
from mantile.library.template import Template  # noqa: E402
from mantile.verification.compiled_formulas import Area, CompiledSheets  # noqa: E402
from mantile.verification.engines import formualizer_table, formualizer_values  # noqa: E402
from mantile.verification.verify import TOLERANCE, difference, scale_of  # noqa: E402
from mantile.workbook.estimate_book import EstimateBook  # noqa: E402
from mantile.workbook.layout import lay_out  # noqa: E402
from mantile.workbook.read import read_cells  # noqa: E402
from mantile.workbook.references import Formula  # noqa: E402
from mantile.workbook.write import write_workbook  # noqa: E402

Place = tuple[str, int, int]
Typed = dict[Place, Any]
Engine = Callable[[Typed], Callable[[Place], Any]]
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 5504,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}
FIELDS = {"accelerator": "h100-sxm", "tp": 2, "input_tokens": 1000, "output_tokens": 100, "concurrency": 10}


def dense() -> Model:
    """A dense model of two layers."""
    return Model(id="dense", name="dense", source="test", architecture=parse_config(CONFIG, "config.json"))


def small_book() -> EstimateBook:
    """One scenario of a dense model, the library of two accelerators, two drivers on What-if."""
    library = few(("h100-sxm", "mi300x"))
    scenario = parse_scenario({"model": "dense"} | FIELDS, "scenario")
    return lay_out(estimate(scenario, dense(), library=library, template=Template(drivers=2)))


class _Followed(CompiledSheets):
    """The `formulas` package, which works out again only what reads a cell that holds something else."""

    def __init__(self, contents: Any, sheets: Iterable[str]) -> None:
        super().__init__(contents)
        self._base = self.calculate(sheets)
        self._arguments = {
            node: self._argument(node, self._base, {})
            for ready in self._order
            for node in ready
            if isinstance(node, Area)
        }
        self._readers: dict[Place, list[Area]] = defaultdict(list)
        for area in self._arguments:
            for row in range(area.row, area.last_row + 1):
                for column in range(area.column, area.last_column + 1):
                    self._readers[area.sheet, row, column].append(area)

    def follow(self, typed: Typed) -> dict[Place, Any]:
        """Values of all formulas with these cells typed."""
        values: dict[Place, Any] = {}
        arguments: dict[Area, Any] = {}
        known: dict[tuple[Any, ...], Any] = {}
        others = {area for place in typed for area in self._readers.get(place, ())}
        for ready in self._order:
            columns: dict[int, list[Place]] = defaultdict(list)
            for node in ready:
                if isinstance(node, Area):
                    again = node in others
                    arguments[node] = self._argument(node, values, typed) if again else self._arguments[node]
                elif node in typed:
                    values[node] = typed[node]
                elif others.isdisjoint(self._formulas[node][1]):
                    values |= {node: self._base[node]} if node in self._base else {}
                else:
                    columns[id(self._formulas[node][0])].append(node)
            for places in columns.values():
                self._run(places, arguments, values, known)
                others.update(
                    area
                    for place in places
                    if _other(self._base.get(place), values.get(place))
                    for area in self._readers.get(place, ())
                )
        return values


def _other(before: Any, now: Any) -> bool:
    return type(before) is not type(now) or bool(before != now)


def _formulas(book: EstimateBook, path: Path) -> Engine:
    model = _Followed(read_cells(path).contents, book.sheets)
    number = 0

    def values(typed: Typed) -> Callable[[Place], Any]:
        nonlocal number
        number += 1
        # now and then all of it
        return (model.follow(typed) if number % 25 else model.calculate(book.sheets, typed)).get

    return values


def _formualizer(book: EstimateBook, path: Path) -> Engine:
    contents, sheets = read_cells(path).contents, tuple(book.sheets)
    table = formualizer_table(contents, sheets)

    def set_cell(place: Place, content: Any) -> None:
        sheet, (row, column) = table.sheet(place[0]), place[1:]
        if isinstance(content, Formula):
            sheet.set_formula(row + 1, column + 1, str(content))
        else:
            sheet.set_value(row + 1, column + 1, content)

    def values(typed: Typed) -> Callable[[Place], Any]:
        for place, what in typed.items():
            set_cell(place, what)
        table.evaluate_all()
        found = formualizer_values(table, contents, sheets)
        for place in typed:
            set_cell(place, contents[place[0]].get(place[1:]))
        return lambda place: found[place[0]].get(place[1:])

    return values


@contextmanager
def _libreoffice(path: Path, folder: Path) -> Iterator[Engine]:
    python = python_with_uno()
    if python is None:
        raise SystemExit("no Python here speaks with LibreOffice")
    script = ROOT / "tests" / "libreoffice_values.py"
    office = subprocess.Popen(
        [python, str(script), str(path), str(folder / "office")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert office.stdin is not None and office.stdout is not None

    def values(typed: Typed) -> Callable[[Place], Any]:
        edits = [[*place, what] for place, what in typed.items()]
        print(json.dumps(edits), file=office.stdin, flush=True)
        found = json.loads(office.stdout.readline())  # type: ignore[union-attr]
        errors = {(name, *place) for name, sheet in found.items() for place in map(tuple, sheet["errors"])}

        def value(place: Place) -> Any:
            return "#VALUE!" if place in errors else found[place[0]]["rows"][place[1]][place[2]]

        return value

    try:
        yield values
    finally:
        office.stdin.close()
        office.wait(120)


@dataclass
class Agreement:
    """How one engine compares to the native one."""

    compared: int = 0
    different: int = 0
    most: float = 0.0
    seconds: float = 0.0
    shown: list[str] = field(default_factory=list)

    def add(self, error: float, told: str) -> None:
        """One formula."""
        self.compared += 1
        self.most = max(self.most, error)
        if error > TOLERANCE:
            self.different += 1
            if len(self.shown) < 20:
                self.shown.append(told)


def sets_of_edits(book: EstimateBook, seed: str) -> Iterator[tuple[dict[str, Any], Typed]]:
    """Inputs with what they are set to, and the same by cell; kinds of input come equally often."""
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    groups: dict[str, list[str]] = {}
    for name in sorted(identifier for identifier, column in book.input_cells if column == 0):
        kind = "override" if name.endswith(".override") else name.split(".")[0]
        groups.setdefault(kind, []).append(name)
    kinds, dice = sorted(groups), random.Random(seed)
    while True:
        names = {dice.choice(groups[dice.choice(kinds)]) for _ in range(dice.randint(1, 8))}
        edits = {name: random_value(inputs[name], dice) for name in sorted(names)}
        yield edits, {book.input_cells[name, 0]: value for name, value in edits.items()}


def agree(
    engines: list[str], edits: int, seconds: float, seed: str, folder: Path
) -> tuple[int, int, dict[str, Agreement]]:
    """Make edits, work them out by each engine, compare.

    Returns:
        Sets, edits, and of each engine what was compared.
    """
    book = small_book()
    path = write_workbook(book, folder / "run.xlsx")
    inputs = {figure.id: figure for figure in book.estimate.equations.all_inputs()} | book.own_inputs
    generated = {
        name: inputs[name].value
        for name, column in book.input_cells
        if column == 0 and inputs[name].follows is None
    } | book.estimate.inputs(0)
    found = {name: Agreement() for name in ("native", *engines)}
    formulas = list(book.formulas())
    sets = made = 0
    ends = time.monotonic() + seconds
    with ExitStack() as stack:
        run: dict[str, Engine] = {}
        if "formulas" in engines:
            run["formulas"] = _formulas(book, path)
        if "formualizer" in engines:
            run["formualizer"] = _formualizer(book, path)
        if "libreoffice" in engines:
            run["libreoffice"] = stack.enter_context(_libreoffice(path, folder))
        for changed, typed in sets_of_edits(book, seed):
            if made >= edits or time.monotonic() > ends:
                break
            started = time.monotonic()
            native = book.values([generated | changed])
            expected = [
                (
                    (sheet.name, row, column),
                    native[cell.scenario][cell.expression],  # type: ignore[index]
                    scale_of(cell.expression, native[cell.scenario]),  # type: ignore[arg-type, index]
                )
                for sheet, row, column, cell in formulas
                if (sheet.name, row, column) not in typed
            ]
            found["native"].seconds += time.monotonic() - started
            for name, engine in run.items():
                started = time.monotonic()
                value = engine(typed)
                found[name].seconds += time.monotonic() - started
                for place, wanted, scale in expected:
                    error = difference(wanted, value(place), scale)
                    if error:
                        told = f"set {sets} {changed}: {place}: {wanted!r}, {name} {value(place)!r}"
                        found[name].add(error, told)
                    else:
                        found[name].compared += 1
            sets, made = sets + 1, made + len(changed)
            if sets % 50 == 0:
                print(table(sets, made, found), flush=True)
    return sets, made, found


def table(sets: int, edits: int, found: dict[str, Agreement]) -> str:
    """What was found, as a table."""
    rows = [
        f"| {name} | {sets:,} | {edits:,} | {one.compared:,} | {one.different:,} | {one.most:.1e} "
        f"| {one.seconds / max(1, sets):.2f} |"
        for name, one in found.items()
    ]
    head = "| engine | sets | edits | formulas compared | different | largest difference | s a set |"
    return "\n".join((head, "|---|---:|---:|---:|---:|---:|---:|", *rows))


def main() -> None:
    """Run, print the table and the first differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=500, help="at least so many in all")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--engines", default="formulas,formualizer,libreoffice")
    parser.add_argument("--seed", default="0")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sets, made, found = agree(
            given.engines.split(","), given.edits, given.seconds, given.seed, Path(folder)
        )
    for one in found.values():
        print(*one.shown, sep="\n")
    print(table(sets, made, found))
    raise SystemExit(any(one.different for one in found.values()))


if __name__ == "__main__":
    main()
