"""What an auditor asks of a workbook, in flat lists.

Every figure with its cell, origin and value, every assumption, override, edit and check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mantile.equations.display import LETTERS
from mantile.equations.sensitivity import JUDGED
from mantile.estimates.overrides import SOURCE, OverrideInUse, overrides, shared_overrides
from mantile.estimates.sensitivity import MEANING, sensitivity, sensitivity_inputs
from mantile.graph.quantity import Input, Named, Node, Quantity
from mantile.graph.sentence import sentence
from mantile.library.brief import Brief
from mantile.library.documents import json_text
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.version import __version__
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, SHARED, Cell, Sheet
from mantile.workbook.cell_diff import diff_cells, is_formula
from mantile.workbook.plain_table import Table, write_csv, write_tables
from mantile.workbook.read import File, open_file, same, typed_inputs
from mantile.workbook.sheets.assumptions import statement

ROW = (
    "sheet",
    "cell",
    "id",
    "label",
    "unit",
    "section",
    "how",
    "source",
    "status",
    "values",
    "formula",
    "edited",
)


@dataclass(frozen=True, repr=False)
class Audit(Brief):
    """A workbook taken apart.

    Values are worked out anew from the inputs in its cells, in the units of the cells.

    Args:
        facts: workbook, title, model, model_version, date, generator, other_version (what cannot be told of a
            workbook that another version made; None for one of this), audited_with, bundle_format, digest
            (SHA-256), and what effects mean.
        scenarios: their names, base first, each behind the letter of its column.
        rows: with the keys of `ROW`: `cell` is a cell or a range of scenarios, `values` one for each scenario
            (None where it has none), `formula` the text in the first cell, `edited` what stood in the cells
            of the row that were changed.
        assumptions: `number`, `statement`, `id`, `value`, `unit`, `default` (without an override),
            `as_generated`, `changed`, `source`, `status`,
            `range_percent`, and the relative change of `ttft`, `tpot` and `usd`, the cost per token, from the
            low to the high end of that range, as generated.
        overrides: `id`, `scenario`, `cell`, `value`, `unit`, `replaces`, `source`, `provenance`, `reason`,
            and the relative change of `ttft`, `tpot` and `usd` from what it replaces to its value.
        edits: every cell that was changed: `kind` (input, formula, overwritten, label, note), `cell`, `id`,
            `from` and `to`; of a workbook that another version made inputs only.
        checks: `code`, `label`, `kind`, `rule`, `left`, `right`, `unit`, and `passed`, for each `scenario`.
    """

    facts: dict[str, Any]
    scenarios: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    assumptions: tuple[dict[str, Any], ...]
    overrides: tuple[dict[str, Any], ...]
    edits: tuple[dict[str, Any], ...]
    checks: tuple[dict[str, Any], ...]

    @property
    def ok(self) -> bool:
        """Whether this version made the workbook and no formula was edited or typed over."""
        tampered = any(edit["kind"] in ("formula", "overwritten") for edit in self.edits)
        return not tampered and self.facts["other_version"] is None

    def to_dict(self) -> dict[str, Any]:
        """As one object, for .json."""
        parts = {
            name: list(getattr(self, name))
            for name in ("scenarios", "rows", "assumptions", "overrides", "edits", "checks")
        }
        return {**self.facts, **parts}

    def tables(self) -> dict[str, Table]:
        """As tables by sheet, the rows in the first but one."""
        return {
            "Audit": Table(("what", "says"), (190, 700), [tuple(item) for item in self.facts.items()]),
            "Rows": self.row_table(),
            "Assumptions": _table(
                self.assumptions,
                {
                    "number": 60,
                    "statement": 420,
                    "id": 220,
                    "value": 110,
                    "unit": 60,
                    "default": 110,
                    "as_generated": 110,
                    "changed": 70,
                    "source": 380,
                    "status": 80,
                    "range_percent": 100,
                    **dict.fromkeys(JUDGED, 80),
                },
            ),
            "Overrides": _table(
                self.overrides,
                {
                    "id": 240,
                    "scenario": 140,
                    "cell": 120,
                    "value": 100,
                    "unit": 80,
                    "replaces": 110,
                    "source": 80,
                    "provenance": 220,
                    "reason": 340,
                    **dict.fromkeys(JUDGED, 80),
                },
            ),
            "Edits": _table(
                self.edits, {"kind": 90, "cell": 150, "id": 260, "scenario": 140, "from": 300, "to": 300}
            ),
            "Checks": _table(
                self.checks,
                {
                    "code": 230,
                    "label": 340,
                    "kind": 70,
                    "scenario": 140,
                    "left": 130,
                    "rule": 80,
                    "right": 130,
                    "unit": 90,
                    "passed": 70,
                },
            ),
        }

    def write(self, path: str | Path) -> Path:
        """Write all of it as .xlsx or .json, or the table of rows as .csv.

        Raises:
            InputError: if the name ends otherwise or the file cannot be written; nothing half-written stays
                behind.
        """
        path = Path(path)
        match path.suffix.lower():
            case ".xlsx":
                return write_tables(
                    self.tables(),
                    path,
                    f"Audit of {self.facts['title']}",
                    f"bundle {self.facts['digest'][:8]}",
                )
            case ".csv":
                return write_csv(self.row_table(), path)
            case ".json":
                with replacing(path) as temporary:
                    temporary.write_text(json_text(self.to_dict()) + "\n", encoding="utf-8")
                return path
        raise InputError(f"{path}: expected a file name that ends in .xlsx, .csv or .json")

    def row_table(self) -> Table:
        """The rows, one column for the values of each scenario."""
        before, after = ROW[: ROW.index("values")], ROW[ROW.index("values") + 1 :]
        widths = (90, 110, 230, 230, 70, 130, 380, 200, 90, *([110] * len(self.scenarios)), 330, 240)
        return Table(
            (*before, *self.scenarios, *after),
            widths,
            [
                (*(row[key] for key in before), *row["values"], *(row[key] for key in after))
                for row in self.rows
            ],
        )


def _table(items: Sequence[Mapping[str, Any]], widths: Mapping[str, int]) -> Table:
    return Table(
        tuple(widths), tuple(widths.values()), [tuple(item[key] for key in widths) for item in items]
    )


def audit(path: str | Path) -> Audit:
    """Take a workbook apart, edited or not.

    Raises:
        InputError: naming file and cell, if the file is no workbook of ours or an input cell holds what it
            cannot be.

    Example:
        mantile.audit("run.xlsx").write("audit.csv")    # every row of every sheet
    """
    file = open_file(Path(path))
    book, estimates = file.book, file.book.estimate
    inputs, typed = typed_inputs(file)
    values = book.values(inputs)
    edits = _edits(file, typed)
    scenarios = tuple(f"{LETTERS[index]}: {file.scenario_name(index)}" for index in range(book.columns))
    facts = {
        "workbook": str(path),
        "title": estimates.title,
        "model": estimates.model.hub_id or estimates.model.id,
        "model_version": estimates.model.version or None,
        "date": book.date,
        "why": estimates.scenario.why,
        "generator": book.bundle.generator,
        "other_version": file.untold("inputs read, results worked out anew"),
        "audited_with": f"mantile {__version__}",
        "bundle_format": book.bundle.data["format"],
        "digest": book.bundle.digest,
        "effects": MEANING,
    }
    return Audit(
        facts,
        scenarios,
        tuple(_Rows(file, inputs, values, edits).read()),
        tuple(_assumptions(file, inputs[0], values[0])),
        tuple(_overrides(file, inputs)),
        tuple(edits),
        tuple(_checks(file, values)),
    )


def _edits(file: File, typed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    texts = diff_cells(file)
    edits = [("input", edit) for edit in typed]
    for kind, items in (
        ("formula", texts.formulas),
        ("overwritten", texts.overwritten),
        ("label", texts.labels),
        ("note", texts.notes),
    ):
        edits += [(kind, item) for item in items]
    return [
        {
            "kind": kind,
            "cell": item["cell"],
            "id": item["id"],
            "scenario": item.get("scenario", ""),
            "from": item["generated"],
            "to": item["found"],
        }
        for kind, item in edits
    ]


class _Rows:
    """The rows of all sheets.

    Figures in their columns of scenarios, then every other cell that holds a number or a formula.
    """

    def __init__(
        self,
        file: File,
        inputs: Sequence[Mapping[str, Any]],
        values: Sequence[Mapping[Node, Any]],
        edits: Sequence[Mapping[str, Any]],
    ) -> None:
        self.file, self.book, self.inputs, self.values = file, file.book, inputs, values
        self.was = {edit["cell"]: edit["from"] for edit in edits}
        self.addresses = {
            (address.sheet, address.row, address.column): figure
            for figure, address in file.book.addresses.items()
            if isinstance(figure, Input | Quantity) and address.first == FIRST
        }
        self.on_lines = {
            (address.sheet, address.row, address.first + column): figure
            for figure, address in file.book.addresses.items()
            if isinstance(figure, Input | Quantity) and address.first != FIRST
            for column in range(file.book.columns)
        }

    def read(self) -> Iterator[dict[str, Any]]:
        workings = self.book.estimate.equations.sheets
        for sheet in self.book.sheets.values():
            links = {
                address.row: figure
                for figure, address in sheet.links.items()
                if isinstance(figure, Input | Quantity)
            }
            figures: dict[int, dict[int, Cell]] = {}
            for (row, column), cell in sorted(sheet.cells.items()):
                is_free = sheet.name in workings and column == FIRST + self.book.columns
                if (is_free and not sheet.is_in_table(row, column)) or self.file.lacks(
                    (sheet.name, row, column)
                ):
                    continue  # a scenario that may be added is none yet
                if (
                    _works(cell)
                    or (sheet.name, row, column) in self.addresses
                    or (sheet.name, row, column) in self.on_lines
                    or (cell.number is not None and sheet.name in workings)
                ):
                    figures.setdefault(row, {})[column] = cell
            for row, cells in figures.items():
                is_table = sheet.name not in workings or sheet.is_in_table(row, FIRST)
                own = [] if is_table else list(range(FIRST, FIRST + self.book.columns))
                if own and all(column in cells for column in own):
                    yield self._row(
                        sheet, row, own, self.addresses.get((sheet.name, row, None), links.get(row))
                    )
                    cells = {column: cell for column, cell in cells.items() if column not in own}
                across = self.addresses.get(
                    (sheet.name, row, None)
                )  # where scenarios stand side by side on another sheet, such as Checks
                for column, cell in cells.items():
                    here = across if isinstance(across, Quantity) and cell.expression is across.body else None
                    figure = self.addresses.get((sheet.name, row, column), here)
                    on_line = self.on_lines.get((sheet.name, row, column), figure)
                    yield self._row(sheet, row, [column], on_line)

    def _row(self, sheet: Sheet, row: int, columns: Sequence[int], figure: Named | None) -> dict[str, Any]:
        cells = [sheet.cells[row, column] for column in columns]
        shown = figure if figure is not None else _named(cells[0])
        places = [self.file.cell_name(sheet.name, row, column) for column in columns]
        first, last = places[0], places[-1]
        content = self.file.content(sheet.name, row, columns[0])
        values: list[Any] = [None] * self.book.columns
        for column, cell in zip(columns, cells, strict=True):
            value = self._value(sheet, row, column, cell)
            everywhere = cell.scenario == ACROSS or (
                (column == SHARED or sheet.is_in_table(row, column))
                and row in sheet.ids
                and sheet.name in self.book.estimate.equations.sheets
                and (sheet.name, row, column) not in self.on_lines
            )
            values = (
                [value] * len(values)
                if everywhere
                else [value if index == cell.scenario else old for index, old in enumerate(values)]
            )
        section, label = _words(sheet, row, columns[0])
        return {
            "sheet": sheet.name,
            "cell": (first if first == last else f"{first}:{last.partition('!')[2]}").partition("!")[2],
            "id": shown.id if shown is not None else sheet.ids.get(row, ""),
            "label": shown.label if shown is not None else label,
            "unit": style.shown_unit(shown.unit) if shown is not None else "",
            "section": section,
            "how": (sentence(shown) if isinstance(shown, Quantity) else shown.note)
            if shown is not None
            else "",
            "source": shown.source if shown is not None else "",
            "status": "worked out" if isinstance(shown, Quantity) or shown is None else shown.status,
            "values": values,
            "formula": content if is_formula(content) else "",
            "edited": "; ".join(
                f"{place.partition('!')[2]} was {_shown(self.was[place])}"
                for place in places
                if place in self.was
            ),
        }

    def _value(self, sheet: Sheet, row: int, column: int, cell: Cell) -> Any:
        if cell.entry is not None:
            return self.inputs[cell.scenario].get(cell.entry.id)
        content = self.file.content(sheet.name, row, column)
        if cell.expression is None or (content is not None and not is_formula(content)):
            return content
        value = self.values[cell.scenario][cell.expression]
        return value if isinstance(value, str) else float(value)


def _works(cell: Cell) -> bool:
    """Whether a cell is worked out or typed, not a label."""
    return cell.expression is not None or cell.entry is not None


def _named(cell: Cell) -> Named | None:
    if cell.entry is not None:
        return cell.entry
    return cell.expression if isinstance(cell.expression, Input | Quantity) else None


def _words(sheet: Sheet, row: int, column: int) -> tuple[str, str]:
    """The section of a row and what it is called.

    On sheets of workings as their columns say, elsewhere the nearest labels above and to the left.
    """

    def label(place: tuple[int, int]) -> str:
        cell = sheet.cells.get(place)
        return cell.text or "" if cell is not None and not _works(cell) else ""

    if row in sheet.sections and column >= SHARED:
        return sheet.sections[row], label((row, 1))
    above = next(filter(None, (label((up, column)) for up in range(row - 1, -1, -1))), "")
    left = next(filter(None, (label((row, at)) for at in range(column - 1, -1, -1))), "")
    return (above, left) if left else ("", above)


def _shown(value: Any) -> str:
    return "empty" if value is None else f"{value:.12g}" if isinstance(value, int | float) else str(value)


def _assumptions(
    file: File, inputs: Mapping[str, Any], values: Mapping[Node, Any]
) -> Iterator[dict[str, Any]]:
    """What the base scenario takes on trust; the source of a figure with an override is the override."""
    book = file.book
    own = {item.id: item for item in overrides(book.estimate, 0, inputs)}
    reasons = {identifier: item.reason or _provenance(item, file) for identifier, item in own.items()}
    origins = {item.id: item for item in sensitivity_inputs(book.estimate, reasons)}
    for number, item in enumerate(sensitivity(book.estimate), 1):
        figure, override = item.input.figure, own.get(item.input.id)
        now, then = float(values[figure]), float(book.estimate_values[0][figure])
        yield {
            "number": f"A-{number:02d}",
            "statement": statement(item.input),
            "id": item.input.id,
            "value": now,
            "unit": style.shown_unit(figure.unit),
            "default": then if override is None else override.without[figure],
            "as_generated": then,
            "changed": not same(now, then),
            "source": origins[item.input.id].source,
            "status": origins[item.input.id].status,
            "range_percent": item.input.range_percent,
            **item.effects,
        }


def _overrides(file: File, inputs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Figures that a scenario states itself: those of the bundle with reasons, and those typed since."""
    book = file.book
    for item in shared_overrides(book.estimate, inputs[0]):
        address = book.addresses[item.cell]
        cell = file.cell_name(address.sheet, address.row, address.column or SHARED)
        yield _override(item, "all", cell, file)
    for number in range(book.columns):
        if number in file.unnamed:
            continue
        for item in overrides(book.estimate, number, inputs[number]):
            cell = file.cell_name(*book.input_cells[item.cell.id, number])
            yield _override(item, f"{LETTERS[number]}: {file.scenario_name(number)}", cell, file)


def _override(item: OverrideInUse, scenario: str, cell: str, file: File) -> dict[str, Any]:
    """An override; what it replaces is a number, or a text where several figures differ."""
    by_figure = [
        f"{figure.id} {value:.12g}" for figure, value in zip(item.figures, item.defaults, strict=True)
    ]
    return {
        "id": item.id,
        "scenario": scenario,
        "cell": cell,
        "value": item.value,
        "unit": style.shown_unit(item.cell.unit),
        "replaces": item.default if len(set(item.defaults)) == 1 else "; ".join(by_figure),
        "source": SOURCE,
        "provenance": _provenance(item, file),
        "reason": item.reason,
        **item.effects,
    }


def _provenance(item: OverrideInUse, file: File) -> str:
    return "scenario of the bundle" if item.stated else f"typed into {file.path.name}"


def _checks(file: File, values: Sequence[Mapping[Node, Any]]) -> Iterator[dict[str, Any]]:
    book = file.book
    for number in range(book.columns):
        if number in file.unnamed:
            continue
        for check in book.estimate.equations.checks.checks:
            results = values[number]
            yield {
                "code": check.code,
                "label": check.label,
                "kind": "error" if check.error else "alert",
                "scenario": f"{LETTERS[number]}: {file.scenario_name(number)}",
                "left": float(results[check.left]),
                "rule": check.rule,
                "right": float(results[check.right]),
                "unit": style.shown_unit(check.left.unit),
                "passed": bool(results[check.result]),
            }
