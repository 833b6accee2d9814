"""The Sweep sheet: one or two inputs of the base scenario over lists of values, as live columns or as values of the native engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, log2
from typing import Any

from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import GIGA, KILO, MILLI
from mantile.estimate.estimate import Estimate, at_points
from mantile.estimate.variation import Variation, Variations
from mantile.graph.evaluate import Program
from mantile.graph.quantity import (
    InCase,
    Input,
    Node,
    Quantity,
    absolute,
    join,
    minimum,
    substitute,
    text,
    where,
)
from mantile.library.errors import InputError, unknown
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import describe, figures_of, work_out
from mantile.workbook.sheets.frame import add_title_rows

MOST_LIVE, MOST = 40, 2000  # points as live columns; points at all
_HEAD, _NOW = 21, 23  # rows of the table of points: its head, the live scenario; the points follow
_FIRST_CASE = 3  # column of the first point of the workings, behind label, unit and id
_CURVES = 4  # so many values of the second input get a curve of their own
_CHART = (470, 300)
_DIGITS = {
    "ttft": "#,##0.0",
    "tpot": "0.00",
    "interactivity": "#,##0.0",
    "tokens": "#,##0",
    "per_accelerator": "#,##0.0",
    "memory": "#,##0.0",
    "fits": '[=1]"yes";[=0]"no"',
    "usd": "#,##0.000",
    "power": "#,##0.0",
}


@dataclass(frozen=True)
class Sweep:
    """Where the points stand on the sheet, for charts.

    Args:
        curves: first and last row of each curve.
        labels, x, y: columns of the values of the first field, of interactivity, and of output tokens per second and accelerator.
        now: row of the live scenario.
        words: the fields, as the workbook calls them.
        note: whether stored points still are those of the live scenario; None where points are formulas.
    """

    curves: tuple[tuple[int, int], ...]
    labels: int
    x: int
    y: int
    now: int
    words: str
    note: Quantity | None


def usual(made: Estimate) -> dict[str, tuple[Any, ...]]:
    """What is swept unless the scenario says otherwise: the load, by doublings; where requests arrive at a rate, by shares of it."""
    values = made.columns[0].values
    rate = float(values.get("request_rate") or 0)
    if rate:
        return {
            "request_rate": tuple(round(rate * share, 6) for share in (0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1))
        }
    return {
        "concurrency": tuple(
            2**power for power in range(max(6, ceil(log2(float(values["concurrency"]))) + 3) + 1)
        )
    }


def grid(over: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values of fields. The first field runs fastest: its values are a curve."""
    *outer, inner = reversed(list(over))
    return [
        {inner: value} | dict(zip(outer, others, strict=True))
        for others in product(*(over[field] for field in outer))
        for value in over[inner]
    ]


def sweep_sheet(book: EstimateBook, master: Quantity) -> Sweep:
    """Lay out the Sweep sheet.

    Raises:
        InputError: for an unknown field, a value it cannot have, or more points than a workbook holds.
    """
    made = book.estimate
    over = made.scenario.sweep or usual(made)
    named = made.equations.inputs.named()
    for field in over:
        if field not in named:
            raise InputError(f"sweep: {unknown('input', field, named)}")
    points, inner = grid(over), next(iter(over))
    if len(points) > MOST:
        raise InputError(
            f"sweep: {len(points):,} points; expected at most {MOST:,} in a workbook; `mantile sweep` has no such limit"
        )
    live = bool(made.scenario.sweep) and len(points) <= MOST_LIVE
    words = " and ".join(named[field].label.lower() for field in over)
    how = (
        "Every point is worked out by the formulas below and follows the inputs."
        if live
        else "Points are values of the native engine as generated; the first line is live."
    )
    sheet = book.add_sheet(Sheet("Sweep", "outputs", f"The base scenario over {words}. {how}"))
    table = _Table(book, sheet, tuple(over), points, at_points(made, points))
    last = max(table.last, 13)
    sheet.widths = [250, 92, 92, *([92] * (last - 2))]
    add_title_rows(book, sheet, "Sweep", last, master)
    sheet.heights |= {2: 6, _HEAD: 34, _HEAD + 1: 4}
    table.head()
    table.now()
    top = table.live() if live else table.stored()
    each = len(over[inner])
    curves = tuple((top + start, top + start + each - 1) for start in range(0, len(points), each))[:_CURVES]
    found = Sweep(
        curves,
        1 + list(over).index(inner),
        table.at["interactivity"],
        table.at["per_accelerator"],
        _NOW,
        words,
        table.note,
    )
    _charts(sheet, found, table)
    sheet.freeze, sheet.repeat_rows = (2, 1), (0, 1)
    sheet.print_area = (0, 0, table.row - 1, len(sheet.widths) - 1)
    return found


class _Table:
    """The points, one below the other: values of the fields, then the results."""

    def __init__(
        self,
        book: EstimateBook,
        sheet: Sheet,
        fields: tuple[str, ...],
        points: list[dict[str, Any]],
        inputs: list[dict[str, Any]],
    ) -> None:
        self.book, self.sheet, self.fields, self.points, self.inputs = book, sheet, fields, points, inputs
        equations = book.estimate.equations
        served, held, money = equations.serving, equations.decode_workers.memory, equations.cost
        self.named = equations.inputs.named()
        self.results: dict[str, tuple[str, Node]] = {  # head and what stands below it
            "ttft": ("TTFT, ms", served.ttft * MILLI),
            "tpot": ("TPOT, ms", served.tpot * MILLI),
            "interactivity": ("tokens/s per user", served.interactivity),
            "tokens": ("output tokens/s", served.output_tokens_per_s),
            "per_accelerator": (
                "output tokens/s per accelerator",
                served.output_tokens_per_s_per_accelerator,
            ),
            "memory": ("memory used, GB", held.used / GIGA),
            "fits": ("fits", held.fits),
            "usd": (book.money.named("USD per M output tokens"), book.money.of(money.usd_per_million_output)),
            "power": ("power, kW", money.power / KILO),
        }
        self.figures = {name: figures_of(body)[0] for name, (_, body) in self.results.items()}
        self.at = {name: 1 + len(fields) + place for place, name in enumerate(self.results)}
        self.last = len(fields) + len(self.results)
        self.row = _NOW
        self.note: Quantity | None = None

    def head(self) -> None:
        """Heads of the columns."""
        for column, words in enumerate(
            (
                "point",
                *(self.named[field].label for field in self.fields),
                *(head for head, _ in self.results.values()),
            )
        ):
            self.sheet.set_text(_HEAD, column, words, style.HEADER_WRAP if column else style.HEADER)

    def now(self) -> None:
        """The live scenario."""
        bold = style.LABEL.but(bold=True, fill=style.PANEL)
        self.sheet.set_text(self.row, 0, "now, live", bold)
        for column, field in enumerate(self.fields, 1):
            self.sheet.set_formula(
                self.row,
                column,
                InCase(self.named[field], 0),
                self._look(field).but(colour=style.LINK, fill=style.PANEL),
                scenario=ACROSS,
            )
        for name, figure in self.figures.items():
            self.sheet.set_formula(
                self.row,
                self.at[name],
                self._of(name, InCase(figure, 0)),
                self._form(name).but(bold=True, fill=style.PANEL),
                scenario=ACROSS,
                link=self.book.link_to(figure),
            )
        self.row += 1

    def stored(self) -> int:
        """Points as the native engine works them out; above them the scenario as it was then, and whether the live one still is that.

        Returns the row of the first point.
        """
        sheet, estimate = self.sheet, self.book.estimate
        program = Program([body for _, body in self.results.values()])
        sheet.set_text(self.row, 0, "now, as generated", style.SOURCE)
        base = estimate.inputs(0)
        values = program.run(base)
        same: list[Node] = []
        sheet.set_text(self.row + 1, 0, "still so", style.SOURCE)
        for name, (head, body) in self.results.items():
            then = Input(
                f"sweep.generated.{name}",
                f"As generated, {head}",
                "1",
                float(values[body]),
                shared=True,
                fixed=True,
            )
            self.book.add_constant(
                sheet, self.row, self.at[name], then, self._form(name).but(colour=style.GREY)
            )
            if name in ("ttft", "tpot", "usd"):
                still = absolute(
                    self._of(name, InCase(self.figures[name], 0)) - then
                ) <= TOLERANCE * absolute(then)
                flag = Quantity(f"sweep.same.{name}", f"Still so, {head}", "flag", where(still, 1, 0))
                same.append(flag)
                self.book.add_quantity(
                    sheet,
                    self.row + 1,
                    self.at[name],
                    flag,
                    self._form(name).but(colour=style.GREY, form=style.FRONT["same"]),
                    scenario=ACROSS,
                )
        self.row += 2
        self.note = Quantity(
            "sweep.note",
            "Points as generated",
            "1",
            where(
                minimum(*same) > 0,
                "✓ points are those of this scenario",
                "! inputs changed: points are as generated",
            ),
        )
        self.book.add_quantity(
            sheet,
            _HEAD - 2,
            0,
            self.note,
            style.Style(size=10, bold=True, colour=style.PASS),
            scenario=ACROSS,
        )
        sheet.conditional.append(
            (
                (_HEAD - 2, 0, _HEAD - 2, 0),
                {
                    "type": "text",
                    "criteria": "begins with",
                    "value": "!",
                    "format": style.Style(colour=style.ALERT, bold=True),
                },
            )
        )
        first = self.row
        again = program.partial(
            base, {name for inputs in self.inputs for name in inputs if inputs[name] != base.get(name)}
        )
        for number, (point, inputs) in enumerate(zip(self.points, self.inputs, strict=True), 1):
            values = again(inputs)
            sheet.set_text(self.row, 0, self._called(number, point), style.SOURCE)
            for column, field in enumerate(self.fields, 1):
                value = point[field]
                sheet.set_cell(
                    self.row,
                    column,
                    Cell(
                        self._look(field).but(colour=style.GREY),
                        text=value if isinstance(value, str) else None,
                        number=None if isinstance(value, str) else float(value),
                    ),
                )
            for name, (_, body) in self.results.items():
                shown = float(values[body])
                sheet.set_cell(
                    self.row,
                    self.at[name],
                    Cell(self._form(name).but(colour=style.GREY), number=shown if shown == shown else None),
                )
            self.row += 1
        return first

    def live(self) -> int:
        """Points as formulas: below the table a column for each, with every figure that follows from the swept inputs.

        Returns the row of the first point.
        """
        book, sheet, made = self.book, self.sheet, self.book.estimate
        base = made.inputs(0)
        varied = [
            figure
            for figure in self.named.values()
            if any(inputs[figure.id] != base[figure.id] for inputs in self.inputs) or figure in self._swept
        ]
        twins = {
            figure: replace(figure, id=f"sweep.{figure.id}", label=f"{figure.label} · swept")
            for figure in varied
        }
        variation = Variations(made.equations, self.figures).vary(twins, "sweep.", " · swept")
        cases = [
            book.add_case(
                sheet, _FIRST_CASE + place, {twin.id: inputs[figure.id] for figure, twin in twins.items()}
            )
            for place, inputs in enumerate(self.inputs)
        ]
        first = self.row
        for number, case in enumerate(cases, 1):
            if len(self.fields) > 1:  # live as well: the second field may be typed over
                outer = self._swept[1]
                value = InCase(twins[outer], case)
                named = join(
                    f"{outer.label} ",
                    value if isinstance(outer.value, str) else text(value, "0" if outer.integer else "0.00"),
                )
                sheet.set_formula(self.row, 0, named, style.SOURCE, scenario=ACROSS)
            else:
                sheet.set_text(self.row, 0, f"point {number}", style.SOURCE)
            for column, figure in enumerate(self._swept, 1):
                sheet.set_formula(
                    self.row,
                    column,
                    InCase(twins[figure], case),
                    self._look(self.fields[column - 1]),
                    scenario=ACROSS,
                )
            for name in self.results:
                sheet.set_formula(
                    self.row,
                    self.at[name],
                    self._of(name, variation.at(name, case)),
                    self._form(name),
                    scenario=ACROSS,
                )
            self.row += 1
        self._workings(twins, variation, {_FIRST_CASE + place: case for place, case in enumerate(cases)})
        return first

    @property
    def _swept(self) -> tuple[Input, ...]:
        return tuple(self.named[field] for field in self.fields)

    def _called(self, number: int, point: Mapping[str, Any]) -> str:
        """The name of a stored point: the value of the second field, after which its curve is called."""
        _, *outer = point
        return f"{self.named[outer[0]].label} {point[outer[0]]}" if outer else f"point {number}, as generated"

    def _workings(self, twins: Mapping[Input, Input], variation: Variation, cases: Mapping[int, int]) -> None:
        book, sheet = self.book, self.sheet
        last = max(*cases, self.last)
        sheet.widths += [92] * max(0, last + 1 - len(sheet.widths))
        self.row += 1
        for column, words in enumerate(
            (
                "workings of every point",
                "unit",
                "as on",
                *(f"point {number}" for number in range(1, len(cases) + 1)),
            )
        ):
            sheet.set_text(
                self.row, column, words, style.HEADER if column < _FIRST_CASE else style.HEADER_RIGHT
            )
        self.row += 1
        for figure, twin in twins.items():
            book.register(twin, CellAddress("Sweep", self.row))
            describe(sheet, self.row, twin, figure.label)
            sheet.set_text(
                self.row, 2, "the swept input" if figure in self._swept else "follows from it", style.SOURCE
            )
            for column, case in cases.items():
                if figure in self._swept:
                    book.add_input(sheet, self.row, column, twin, case)
                    continue
                value = book.inputs(case)[twin.id]
                is_text = isinstance(value, str)
                look = style.value(twin.unit, is_text=is_text, role="fixed", integer=twin.integer)
                sheet.set_cell(
                    self.row,
                    column,
                    Cell(
                        look,
                        text=value if is_text else None,
                        number=None if is_text else float(value),
                        scenario=case,
                    ),
                )
            self.row += 1
        for name, rows in variation.rows.items():
            sheet.blocks.append((self.row, self.row + len(rows) - 1))
            for original, made in rows:
                work_out(book, sheet, self.row, original, made, cases)
                sheet.set_text(self.row, 2, name, style.SOURCE)
                self.row += 1

    def _look(self, field: str) -> style.Style:
        figure = self.named[field]
        return style.value(figure.unit, is_text=isinstance(figure.value, str), integer=figure.integer)

    def _form(self, name: str) -> style.Style:
        return style.VALUE.but(form=";".join(f"{part}_)_)" for part in _DIGITS[name].split(";")))

    def _of(self, name: str, figure: Node) -> Node:
        """A result of another case in the unit of its column."""
        return substitute(self.results[name][1], {self.figures[name]: figure})


def interactivity(
    sweep: Sweep, size: tuple[int, int], plot: tuple[float, float, float, float]
) -> charts.Chart:
    """Output tokens per second and accelerator against tokens per second of a user: a curve for each value of the second field, and where we are."""

    def column(rows: tuple[int, int], at: int) -> charts.Range:
        return ("Sweep", rows[0], at, rows[1], at)

    return charts.curves(
        f"Output tokens per second and accelerator against tokens per second of a user, over {sweep.words}; the large mark is the live scenario",
        [(column(rows, sweep.x), column(rows, sweep.y)) for rows in sweep.curves],
        [
            (
                charts.cell("Sweep", row, sweep.labels),
                ("Sweep", row, sweep.x, row, sweep.x),
                ("Sweep", row, sweep.y, row, sweep.y),
            )
            for row in _marked(*sweep.curves[0])
        ]
        + [
            (
                charts.cell("Sweep", row, 0),
                ("Sweep", row, sweep.x, row, sweep.x),
                ("Sweep", row, sweep.y, row, sweep.y),
            )
            for _, row in sweep.curves[1:]
        ],
        (
            ("Sweep", sweep.now, sweep.x, sweep.now, sweep.x),
            ("Sweep", sweep.now, sweep.y, sweep.now, sweep.y),
        ),
        size,
        plot,
    )


def _marked(first: int, last: int) -> list[int]:
    """Rows of the points that carry their value: every second one, from the end."""
    return list(range(last, first - 1, -2 if last - first > 4 else -1))[:6]


def _charts(sheet: Sheet, sweep: Sweep, table: _Table) -> None:
    """Three charts above the table: TPOT and cost over the first field, throughput against interactivity."""
    plot = (0.10, 0.04, 0.87, 0.72)
    first = sweep.curves[0]
    for column, words, chart in (
        (0, f"TPOT in ms over {sweep.words}", _over(sweep, table, "tpot", first, plot)),
        (4, "Throughput per accelerator against speed for a user", interactivity(sweep, _CHART, plot)),
        (9, table.results["usd"][0], _over(sweep, table, "usd", first, plot)),
    ):
        sheet.set_text(3, column, words, style.Style(size=10.5, bold=True))
        sheet.charts.append((4, column, chart))


def _over(
    sweep: Sweep, table: _Table, name: str, first: tuple[int, int], plot: tuple[float, float, float, float]
) -> charts.Chart:
    at = table.at[name]
    return charts.lines(
        f"{table.results[name][0]} over {sweep.words}",
        ("Sweep", first[0], sweep.labels, first[1], sweep.labels),
        [("Sweep", rows[0], at, rows[1], at) for rows in sweep.curves],
        _CHART,
        plot,
    )
