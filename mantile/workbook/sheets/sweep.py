"""The sweep on What-if: one or two inputs of the base scenario over lists of values, live or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.equations.display import Shown
from mantile.equations.sweep import (
    ACROSS as SPEED,
)
from mantile.equations.sweep import (
    CHARTED,
    CHOSEN,
    NO_POINT,
    UP,
    Live,
    Point,
    choice,
    live,
    now,
    results,
    stored,
    stored_point,
    title_across,
    varied_inputs,
)
from mantile.estimates.points import SweepPoints, point_values, sweep_points
from mantile.graph.quantity import Input, Named, Quantity, Value
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import add_label, add_varied_row, fold, value_cell
from mantile.workbook.sheets.frame import add_part, mark_beginning

SWEEP = "Sweep"
_NOTE, _HEAD, _NOW = 17, 18, 20  # rows below the titles of charts: note, head, live scenario, then points
_FIRST_CASE = 2  # column of the first point of the workings, behind ids
_SECOND, _LAST = 4, 11  # column of the second chart, and up to which charts reach
_CURVES = 4  # so many values of the second input get a curve of their own
_CHART_HEIGHT = 300
_FEW, _MARKED = 4, 6  # points of which each carries its value; so many carry theirs at most
_TEXT_SIZE = (0.09, 0.09)  # width and height of a value, as shares of a chart
_PLOT = (0.15, 0.04, 0.82, 0.72)


class SweepPart:
    """The part: charts, the live scenario, the points; and behind live points their workings.

    Attributes:
        row: while it is laid out the next row, then the row after it.

    Raises:
        InputError: for an unknown field, a value it cannot have, or more points than a workbook holds.
    """

    def __init__(self, book: EstimateBook, sheet: Sheet, row: int, last: int) -> None:
        self.book, self.sheet, estimate = book, sheet, book.estimate
        self.asked: SweepPoints = sweep_points(estimate)
        named = estimate.equations.inputs.named()
        self.swept: tuple[Input, ...] = tuple(named[field] for field in self.asked.over)
        self.words = " and ".join(figure.label.lower() for figure in self.swept)
        self.results: dict[str, Shown] = results(estimate.equations, book.currency)
        self.columns = {key: 1 + len(self.swept) + place for place, key in enumerate(self.results)}
        # What charts show stands right of what is printed.
        self.charted = {key: last + 2 + place for place, key in enumerate(CHARTED)}
        self.choice = choice(self.results)
        self.places: dict[int, tuple[float, float]] = {}  # of points in the chart, by row
        self.note: Quantity | None = None  # whether stored points still are those of the live scenario
        how = (
            "Every point is worked out by the formulas below and follows the inputs."
            if self.asked.live
            else "Points are values of the native engine as generated; the first line is live."
        )
        purpose = f"The base scenario over {self.words}. {how}"
        self.top = add_part(sheet, row, SWEEP, purpose, last, 1) + 1
        self.head, self.now = self.top + _HEAD, self.top + _NOW
        sheet.heights |= {self.top - 1: 6, self.head: 50, self.head + 1: 4}
        self.row = self.now
        self._lay_out()

    def _lay_out(self) -> None:
        self._heads()
        self._now()
        self.chosen: list[Quantity] = []  # of points, for the titles of charts
        self.up: list[Named] = []
        first = self._live() if self.asked.live else self._stored()
        length = len(next(iter(self.asked.over.values())))
        starts = range(first, first + len(self.asked.points), length)
        self.curves = tuple((start, start + length - 1) for start in starts)[:_CURVES]
        self._charts()

    def _heads(self) -> None:
        heads = ("point", *(figure.label for figure in self.swept))
        for column, head in enumerate((*heads, *(result.label for result in self.results.values()))):
            self.sheet.set_text(self.head, column, head, style.HEADER_WRAP if column else style.HEADER)
        small = style.Style(size=style.SMALL, bold=True, colour=style.GREY)
        first = min(self.charted.values())
        self.sheet.set_text(self.head - 2, first, "Chart data (live, not printed)", small)
        self.sheet.set_text(self.head - 1, first, NO_POINT.label, small.but(bold=False))
        self.book.add_constant(self.sheet, self.head - 1, first + 2, NO_POINT, small.but(bold=False))
        for key, column in self.charted.items():
            head = self.results[key].label if key in self.results else self.choice.metric.label
            self.sheet.set_text(self.head, column, head, style.HEADER_WRAP)
        self.book.own_lists[self.choice.metric.id] = self.choice.listed
        for row, figure in enumerate(self.choice.choices, self.top):
            self.book.add_constant(self.sheet, row, first, figure, small.but(bold=False))
        self.book.add_quantity(
            self.sheet, self.top, first + 2, self.choice.place, small.but(bold=False), scenario=ACROSS
        )

    def _charted(self, point: Point) -> None:
        """What charts show of a point."""
        for key, value in point.charted.items():
            look = style.aired("#,##0.00", size=style.SMALL)
            self.book.add_quantity(self.sheet, self.row, self.charted[key], value, look, scenario=ACROSS)

    def _now(self) -> None:
        """The live scenario."""
        self.here = point = now(self.swept, self.results, self.choice)
        panel = {"fill": style.PANEL}
        self.sheet.set_text(self.row, 0, "now, live", style.LABEL.but(bold=True, **panel))
        for column, (figure, value) in enumerate(zip(self.swept, point.fields, strict=True), 1):
            look = _input_look(figure).but(colour=style.LINK, **panel)
            self.book.add_quantity(self.sheet, self.row, column, value, look, scenario=ACROSS)
        for key, value in point.results.items():
            self.book.add_quantity(
                self.sheet,
                self.row,
                self.columns[key],
                value,
                _result_look(self.results[key]).but(bold=True, **panel),
                scenario=ACROSS,
                link=self.book.link_to(self.results[key].figure),
            )
        self._charted(point)
        self.row += 1

    def _stored(self) -> int:
        """Points as values; above them the scenario as it was then, and whether it still is that.

        Returns:
            the row of the first point.
        """
        base, points = point_values(self.book.estimate, self.results, self.asked.inputs)
        self._place(self.now, base)
        self._as_generated(base)
        first = self.row
        for number, (point, values) in enumerate(zip(self.asked.points, points, strict=True), 1):
            self._stored_point(number, point, values)
        return first

    def _as_generated(self, values: Mapping[str, Value]) -> None:
        """The scenario as it was when the points were worked out, and whether it still is so."""
        book, sheet, figures = self.book, self.sheet, stored(self.results, self.here, values)
        sheet.set_text(self.row, 0, "now, as generated", style.SOURCE)
        for key, then in figures.then.items():
            look = _result_look(self.results[key]).but(colour=style.GREY)
            book.add_constant(sheet, self.row, self.columns[key], then, look)
        self.row += 1
        sheet.set_text(self.row, 0, "still so", style.SOURCE)
        for key, flag in figures.same.items():
            look = _result_look(self.results[key]).but(colour=style.GREY, form=style.FRONT["same"])
            book.add_quantity(sheet, self.row, self.columns[key], flag, look, scenario=ACROSS)
        self.row += 1
        self.note = figures.note
        look = style.Style(size=10, bold=True, colour=style.PASS)
        book.add_quantity(sheet, self.top + _NOTE, 0, figures.note, look, scenario=ACROSS)
        mark_beginning(sheet, self.top + _NOTE, 0, "!", style.ALERT)

    def _place(self, row: int, values: Mapping[str, Value]) -> None:
        """Where a point lies in the chart of throughput against speed."""
        x, y = values["interactivity"], values["per_accelerator"]
        if not isinstance(x, str) and not isinstance(y, str):
            self.places[row] = float(x), float(y)

    def _stored_point(self, number: int, point: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """A point as values, behind the value of the second field, by which its curve is called."""
        sheet, fields = self.sheet, [point[field] for field in self.asked.over]
        self._place(self.row, values)
        curve = [f"{figure.label} {value}" for figure, value in zip(self.swept, fields, strict=True)][1:]
        sheet.set_text(self.row, 0, curve[0] if curve else f"point {number}, as generated", style.SOURCE)
        for column, (figure, value) in enumerate(zip(self.swept, fields, strict=True), 1):
            look = _input_look(figure).but(colour=style.GREY)
            sheet.set_cell(self.row, column, value_cell(look, value))
        made = stored_point(number, self.results, values, self.choice)
        for key, result in made.results.items():
            look = _result_look(self.results[key]).but(colour=style.GREY)
            self.book.add_constant(sheet, self.row, self.columns[key], result, look)
            if key in self.charted and not isinstance(values[key], str):
                small = look.but(size=style.SMALL)
                sheet.set_cell(self.row, self.charted[key], value_cell(small, values[key]))
        small = style.aired("#,##0.00", size=style.SMALL)
        self.book.add_quantity(sheet, self.row, self.charted[CHOSEN], made.chosen, small, scenario=ACROSS)
        self.chosen.append(made.chosen)
        self.up.append(made.results[UP])
        self.row += 1

    def _live(self) -> int:
        """Points as formulas: below the table a column for each, with every figure that follows from them.

        Returns:
            the row of the first point.
        """
        estimate = self.book.estimate
        base = estimate.inputs(0)
        inputs = varied_inputs(
            [
                figure
                for figure in estimate.equations.inputs.named().values()
                if figure in self.swept
                or any(point.get(figure.id) != base.get(figure.id) for point in self.asked.inputs)
            ]
        )
        cases = {
            _FIRST_CASE + place: self.book.add_case(
                self.sheet,
                _FIRST_CASE + place,
                SWEEP,
                {varied.id: point[figure.id] for figure, varied in inputs.items()},
            )
            for place, point in enumerate(self.asked.inputs)
        }
        numbers = tuple(cases.values())
        cells = self.book.planned(self.sheet.name, numbers[0])
        figures = live(estimate.equations, self.swept, inputs, self.results, self.choice, numbers, cells)
        self.chosen += [point.charted[CHOSEN] for point in figures.points]
        self.up += [point.results[UP] for point in figures.points]
        first = self.row
        for number, point in enumerate(figures.points, 1):
            self._live_point(number, point)
        self._workings(figures, cases)
        return first

    def _live_point(self, number: int, point: Point) -> None:
        book, sheet = self.book, self.sheet
        if point.name is None:
            sheet.set_text(self.row, 0, f"point {number}", style.SOURCE)
        else:
            book.add_quantity(sheet, self.row, 0, point.name, style.SOURCE, scenario=ACROSS)
        for column, (figure, value) in enumerate(zip(self.swept, point.fields, strict=True), 1):
            book.add_quantity(sheet, self.row, column, value, _input_look(figure), scenario=ACROSS)
        for key, value in point.results.items():
            look = _result_look(self.results[key])
            book.add_quantity(sheet, self.row, self.columns[key], value, look, scenario=ACROSS)
        self._charted(point)
        self.row += 1

    def _workings(self, figures: Live, cases: Mapping[int, int]) -> None:
        """Inputs that vary and all that follows from them, a column for each point."""
        book, sheet = self.book, self.sheet
        self.row += 1
        points = (f"point {number}" for number in range(1, len(cases) + 1))
        for column, head in enumerate(("workings of every point", "", *points)):
            look = style.HEADER_RIGHT if column in cases else style.HEADER
            sheet.set_text(self.row, column, head, look)
        self.row += 1
        for figure, varied in figures.inputs.items():
            self._varied_input(figure, varied, cases)
            self.row += 1
        first = self.row
        for original, varied_figure in figures.variation.rows:
            add_varied_row(book, sheet, self.row, original, varied_figure, cases)
            self.row += 1
        fold(sheet, first, self.row)

    def _varied_input(self, figure: Input, varied: Input, cases: Mapping[int, int]) -> None:
        """The values of an input: to be typed where it is swept, fixed where it follows from one that is."""
        book, sheet, swept = self.book, self.sheet, figure in self.swept
        book.register(varied, CellAddress(sheet.name, self.row))
        add_label(sheet, self.row, varied, figure.label)
        if figure.unit != "1":
            sheet.set_text(self.row, 1, style.shown_unit(figure.unit), style.UNIT)
        for column, case in cases.items():
            if swept:
                book.add_input(sheet, self.row, column, varied, case)
            else:
                value = book.inputs(case)[varied.id]
                look = style.value(
                    varied.unit, is_text=isinstance(value, str), role="fixed", integer=varied.integer
                )
                sheet.set_cell(self.row, column, value_cell(look, value, case))

    def interactivity(self, size: tuple[int, int], plot: tuple[float, float, float, float]) -> charts.Chart:
        """Output tokens per second and accelerator against tokens per second of a user.

        A curve for each value of the second field, and where we are.
        """
        x, y = self.charted[SPEED], self.charted[UP]

        def column(first: int, last: int, at: int) -> charts.Range:
            return (self.sheet.name, first, at, last, at)

        # Points of the first curve carry the first field's value; other curves the second's, at their end.
        marked = [(row, 1) for row in self._marked(*self.curves[0])] + [
            (last, 0) for _, last in self.curves[1:]
        ]
        return charts.curves(
            "Output tokens per second and accelerator against tokens per second of a user, "
            f"over {self.words}; the large mark is the live scenario",
            [(column(first, last, x), column(first, last, y)) for first, last in self.curves],
            [
                (charts.cell(self.sheet.name, row, at), column(row, row, x), column(row, row, y))
                for row, at in marked
            ],
            (column(self.now, self.now, x), column(self.now, self.now, y)),
            size,
            plot,
        )

    def _marked(self, first: int, last: int) -> list[int]:
        """Rows of the points that carry their value: every second one, from the end.

        Of stored points that lie close together only one, and none beside the live scenario as generated.
        """
        rows = [self.now, *range(last, first - 1, -2 if last - first > _FEW else -1)]
        most = [max((place[axis] for place in self.places.values()), default=0) or 1 for axis in (0, 1)]
        marked: list[int] = []
        for row in rows:
            place = self.places.get(row)
            near = (self.places[other] for other in marked if other in self.places)
            if place is None or not any(_close(place, other, most) for other in near):
                marked.append(row)
        return [row for row in marked if row != self.now][:_MARKED]

    def _charts(self) -> None:
        """Charts above the table: a metric over the first field, throughput against interactivity."""
        book, sheet = self.book, self.sheet
        bold = style.Style(size=10.5, bold=True)
        book.add_input(sheet, self.top, 0, self.choice.metric)
        cell = sheet.cells[self.top, 0]
        cell.style = cell.style.but(align="left", bold=True, indent=1)
        book.add_quantity(
            sheet, self.top, 1, self.choice.title(self.chosen, self.words), bold, scenario=ACROSS
        )
        book.add_quantity(sheet, self.top, _SECOND, title_across(self.up), bold, scenario=ACROSS)
        left, right = (
            (int(sum(sheet.widths[first:last])) - 14, _CHART_HEIGHT)
            for first, last in ((0, _SECOND), (_SECOND, _LAST + 1))
        )
        sheet.charts.append((self.top + 1, 0, self._over(left)))
        sheet.charts.append((self.top + 1, _SECOND, self.interactivity(right, _PLOT)))

    def _over(self, size: tuple[int, int]) -> charts.Chart:
        """The metric that is chosen over the first field."""
        name, at, (first, last) = self.sheet.name, self.charted[CHOSEN], self.curves[0]
        return charts.lines(
            f"The metric that is chosen above over {self.words}",
            (name, first, 1, last, 1),
            [(name, start, at, end, at) for start, end in self.curves],
            size,
            _PLOT,
        )


def _close(one: tuple[float, float], other: tuple[float, float], most: Sequence[float]) -> bool:
    """Whether the texts at two points of a chart would lie on each other."""
    return all(
        abs(a - b) < share * end for a, b, share, end in zip(one, other, _TEXT_SIZE, most, strict=True)
    )


def _input_look(figure: Input) -> style.Style:
    return style.value(figure.unit, is_text=isinstance(figure.value, str), integer=figure.integer)


def _result_look(of: Shown) -> style.Style:
    """The look of a result; whether a plan can be is told in words."""
    return (
        style.TEXT_VALUE.but(size=style.SMALL)
        if of.digits is None
        else style.VALUE.but(form=style.amount(of.digits))
    )
