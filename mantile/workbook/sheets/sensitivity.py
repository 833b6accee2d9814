"""The Sensitivity sheet: what the results hang on, each driver taken lower and higher, with every figure on the way to the results."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import GIGA, MICRO, MILLI
from mantile.estimate.sensitivity import Driver, results
from mantile.estimate.variation import Variation, Variations
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    absolute,
    floor,
    index,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
    span,
    substitute,
    text,
    where,
)
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import work_out
from mantile.workbook.sheets.frame import add_title_rows, cut

# Columns of the table of drivers; those of low and high are also the columns of all figures worked out again.
_BASE, _SWING, LOW, HIGH, _FIRST_RESULT, _SOURCE = 2, 3, 4, 5, 6, 12
_LAST = _SOURCE
_ROOM = (5, 6)  # of the sorted rows: ends of unseen bars
_WIDER = 1.5
_CHART_ROWS = 15
_BOTH = ("low", "high")
_SWINGS = "sensitivity.swing."  # before the id of a driver, that of its percentage
_HUNDRED = Input(
    "sensitivity.percent",
    "Percent",
    "1",
    100,
    "per cent, to the hundred",
    "definition",
    "defined",
    shared=True,
    fixed=True,
)
_SIGN = Input("sensitivity.sign", "Side", "1", 0, "−1 lower, 1 higher", "definition", "defined", fixed=True)
_SMALL = style.Style(size=9)
_NUMBER = style.Style(size=9, form="#,##0.0000", align="right")


@dataclass(frozen=True)
class Sensitivity:
    """Where the tornado of a result stands, and the live change of results between the ends of each driver's range.

    Args:
        titles: the finding, by result.
        rows: first and last row of sorted labels, better and worse, which stand in the first columns, by result.
        spreads: change of each result from the low to the high end, over the base, by id of the driver.
    """

    titles: dict[str, Quantity]
    rows: dict[str, tuple[int, int]]
    spreads: dict[str, dict[str, Node]]


@dataclass(frozen=True)
class _Result:
    """A result as the sheet shows it: what it is called, its unit, and the figure in that unit."""

    label: str
    unit: str
    figure: Quantity
    body: Node

    def of(self, figure: Node) -> Node:
        """The same of another case."""
        return substitute(self.body, {self.figure: figure})


@dataclass(frozen=True)
class _Line:
    """A driver on the sheet: its row in the table, percent, value, and what follows from it."""

    driver: Driver
    name: str
    row: int
    swing: Input
    value: Quantity
    variation: Variation
    made: dict[Named, Quantity]


def sensitivity_sheet(book: EstimateBook, master: Quantity, chosen: list[Driver]) -> Sensitivity:
    """Lay out the Sensitivity sheet with these drivers."""
    sheet = book.add_sheet(
        Sheet(
            "Sensitivity",
            "outputs",
            "What the results of the base scenario hang on: each driver lower and higher by the percentage typed, "
            "all else as it is. Every figure on the way stands below.",
        )
    )
    sheet.widths = [270, 86, 92, 72, 118, 118, *([92] * 6), 300]
    add_title_rows(book, sheet, "Sensitivity", _LAST, master)
    sheet.heights[2] = 6
    top = _CHART_ROWS + 4
    cases = [book.add_case(sheet, column, {_SIGN.id: sign}) for column, sign in ((LOW, -1), (HIGH, 1))]
    shown_results = _shown(book)
    variations = Variations(book.estimate.equations, results(book.estimate))
    lines = [_line(book, variations, driver, top + 4 + place) for place, driver in enumerate(chosen)]
    _table(book, sheet, top, shown_results, lines, cases)
    row = _blocks(book, sheet, top + 6 + len(lines), lines, cases)
    found = _sorted(book, sheet, row + 2, shown_results, lines, cases)
    for place, (name, result) in enumerate(shown_results.items()):
        at = (0, 4, 9)[place]
        book.add_quantity(
            sheet, 3, at, found.titles[name], style.Style(size=10.5, bold=True), scenario=ACROSS
        )
        sheet.charts.append((4, at, tornado(result.label, found.rows[name], (500, 18 * (_CHART_ROWS - 1)))))
    sheet.freeze, sheet.repeat_rows = (2, 1), (0, 1)
    sheet.print_area = (0, 0, row - 1, _LAST)
    return found


def tornado(result: str, rows: tuple[int, int], size: tuple[int, int]) -> charts.Chart:
    """The tornado of sorted rows: labels, then better and worse."""
    first, last = rows
    return charts.tornado(
        f"Change of {result} at the low and high end of each driver, largest first",
        ("Sensitivity", first, 0, last, 0),
        [
            (colour, label, ("Sensitivity", first, column, last, column))
            for column, (colour, label) in enumerate(
                ((style.COMPUTE, style.COMPUTE), (style.MEMORY, style.MEMORY_TEXT)), 1
            )
        ],
        [("Sensitivity", first, column, last, column) for column in _ROOM],
        size,
    )


def driver_of(identifier: str) -> str:
    """The driver whose percentage an input is; nothing for other inputs."""
    return identifier.removeprefix(_SWINGS) if identifier.startswith(_SWINGS) else ""


def _shown(book: EstimateBook) -> dict[str, _Result]:
    found = results(book.estimate)
    return {
        "ttft": _Result("TTFT", "ms", found["ttft"], found["ttft"] * MILLI),
        "tpot": _Result("TPOT", "ms", found["tpot"], found["tpot"] * MILLI),
        "usd": _Result(
            book.money.named("USD per M tokens"), book.money.code, found["usd"], book.money.of(found["usd"])
        ),
    }


def _line(book: EstimateBook, variations: Variations, driver: Driver, row: int) -> _Line:
    name = (
        driver.id.removeprefix("inputs.").removeprefix("cost.").removeprefix("efficiency.").replace(".", "_")
    )
    known = book.estimate.scenario.sensitivity.get(driver.id, driver.swing)
    swing = Input(
        f"{_SWINGS}{driver.id}",
        f"Lower and higher by, {driver.label}",
        "%",
        known,
        "percent of the value of the base scenario",
        "assumed",
        shared=True,
        integer=True,
        minimum=0,
        maximum=90,
        name="swing",
    )
    percent = _HUNDRED + _SIGN * swing

    def scaled(figure: Named) -> Node:
        if isinstance(figure, Input) and figure.integer:
            return maximum(floor(figure * percent / _HUNDRED), 1)
        body = figure * (percent / _HUNDRED)
        return minimum(body, 1) if driver.at_most_one else maximum(body, 1) if driver.at_least_one else body

    made: dict[Named, Quantity] = {
        figure: Quantity(
            f"sensitivity.{name}.value{place or ''}",
            f"{figure.label} · varied{f', {driver.label}' if driver.figure is not figure else ''}",
            figure.unit,
            scaled(figure),
        )
        for place, figure in enumerate(driver.figures)
    }
    variation = variations.vary(made, f"sensitivity.{name}.", f" · {driver.label}")
    return _Line(driver, name, row, swing, made[driver.figure], variation, made)


def shown(figure: Node, unit: str) -> tuple[Node, str, str]:
    """A figure in the unit people quote, that unit, and its format as text."""
    match unit:
        case "s":
            return figure * MICRO, "us", "0.0"
        case "B":
            return figure / GIGA, "GB", "0.0"
        case "B/s":
            return figure / GIGA, "GB/s", "0"
        case "1" | "USD/h" | "USD/kWh" | "request/s":
            return figure, unit, "0.00"
        case _:
            return figure, unit, "#,##0"


def _table(
    book: EstimateBook,
    sheet: Sheet,
    top: int,
    shown_results: dict[str, _Result],
    lines: list[_Line],
    cases: list[int],
) -> None:
    """Drivers with their values and the results at both ends, below the base."""
    head = style.HEADER.but(bottom=None)
    sheet.set_style(top, 0, _LAST, head)
    for column, words in enumerate(
        ("driver", "unit", "base", "± percent", "lower", "higher", *(_BOTH * 3), "source")
    ):
        sheet.set_text(
            top + 1, column, words, style.HEADER if column in (0, 1, _SOURCE) else style.HEADER_RIGHT
        )
    row = top + 2
    bold = style.LABEL.but(bold=True, fill=style.PANEL)
    small = style.VALUE.but(size=9, colour=style.GREY, fill=style.PANEL)
    sheet.set_text(row, 0, "As it is", bold)
    book.register(_SIGN, CellAddress("Sensitivity", row))
    for column, sign, case in zip((LOW, HIGH), (-1, 1), cases, strict=True):
        sheet.set_cell(
            row, column, Cell(small.but(form='[=-1]"lower"_)_);"higher"_)_)'), number=sign, scenario=case)
        )
    book.add_constant(sheet, row, _SWING, _HUNDRED, small.but(form='"of "0_)_)'))
    for place, (name, result) in enumerate(shown_results.items()):
        column = _FIRST_RESULT + 2 * place + 1
        sheet.cells[top, column] = Cell(
            style.HEADER_RIGHT.but(bottom=None), text=f"{result.label}, {result.unit}"
        )
        sheet.set_formula(
            row,
            column,
            result.of(InCase(result.figure, 0)),
            _form(name, "base ").but(bold=True, fill=style.PANEL),
            scenario=ACROSS,
            link=book.link_to(result.figure),
        )
    sheet.set_style(row, 1, _LAST, bold)
    sheet.heights[row + 1] = 4
    for line in lines:
        row, figure = line.row, line.driver.figure
        base, unit, _ = shown(InCase(figure, 0), figure.unit)
        sheet.set_text(row, 0, line.driver.label, style.LABEL)
        sheet.set_text(row, 1, style.shown_unit(unit), style.UNIT)
        look = style.value(unit, integer=isinstance(figure, Input) and figure.integer)
        sheet.set_formula(
            row, _BASE, base, look.but(colour=style.LINK), scenario=ACROSS, link=book.link_to(figure)
        )
        book.add_input(sheet, row, _SWING, line.swing)
        for column, case in zip((LOW, HIGH), cases, strict=True):
            sheet.set_formula(
                row, column, shown(InCase(line.value, case), figure.unit)[0], look, scenario=ACROSS
            )
        for place, (name, result) in enumerate(shown_results.items()):
            for offset, case in enumerate(cases):
                sheet.set_formula(
                    row,
                    _FIRST_RESULT + 2 * place + offset,
                    result.of(line.variation.at(name, case)),
                    _form(name),
                    scenario=ACROSS,
                )
        sheet.set_text(
            row,
            _SOURCE,
            cut(f"{line.driver.status}: {line.driver.source}", 54),
            style.SOURCE.but(shrink=False),
        )
        sheet.ids[row] = line.driver.id


def _form(name: str, words: str = "") -> style.Style:
    form = {"ttft": "#,##0.0_)_)", "tpot": "0.00_)_)", "usd": "#,##0.000_)_)"}[name]
    return style.VALUE.but(form=f'"{words}"{form}' if words else form)


def _blocks(book: EstimateBook, sheet: Sheet, row: int, lines: list[_Line], cases: list[int]) -> int:
    """For every driver the figures that follow from it, in the order of the workbook, at both ends of its range."""
    for line in lines:
        start = row
        sheet.heights |= {row: 6, row + 1: 21}
        row += 1
        sheet.set_text(row, 0, line.driver.label, style.BLOCK_HEAD)
        sheet.set_text(
            row,
            _FIRST_RESULT,
            "what follows from it, up to the results; all other figures are those of the base scenario",
            style.BLOCK_NOTE,
        )
        sheet.set_style(row, 1, _LAST, style.BLOCK_HEAD)
        row += 1
        rows = [(original, figure, "the driver") for original, figure in line.made.items()]
        rows += [
            (original, figure, f"as on {name}")
            for name, pairs in line.variation.rows.items()
            for original, figure in pairs
        ]
        sheet.blocks.append((start, row + len(rows) - 1))
        for original, figure, words in rows:
            work_out(book, sheet, row, original, figure, dict(zip((LOW, HIGH), cases, strict=True)))
            sheet.set_text(row, _FIRST_RESULT, figure.id, style.IDENTIFIER.but(shrink=False))
            sheet.set_text(row, _SOURCE, words, style.SOURCE)
            row += 1
    return row


def _change(result: Node, base: Node) -> Node:
    """The relative change of a result; none where engines differ by as much."""
    return where(absolute(result - base) > TOLERANCE * base, result / base - 1, 0)


def _sorted(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    shown_results: dict[str, _Result],
    lines: list[_Line],
    cases: list[int],
) -> Sensitivity:
    """For each result the drivers by the spread between the ends of their range, and their better and worse side: what the charts show."""
    sheet.set_text(
        row, 0, "Chart data (live, not printed)", style.Style(size=9, bold=True, colour=style.GREY)
    )
    row += 1
    titles: dict[str, Quantity] = {}
    places: dict[str, tuple[int, int]] = {}
    spreads: dict[str, dict[str, Node]] = {}

    def put(line: int, column: int, figure: Quantity, look: style.Style = _NUMBER) -> Quantity:
        book.add_quantity(sheet, line, column, figure, look, scenario=ACROSS)
        return figure

    wider = Input(
        "sensitivity.wider", "Bars and their labels over bars", "1", _WIDER, shared=True, fixed=True
    )
    book.add_constant(sheet, row - 1, _ROOM[0], wider, _NUMBER)
    sheet.set_text(row - 1, _ROOM[1], "× longest bars: room for labels", _SMALL)
    for column, words in ((0, "driver with its range"), (2, "number"), (_LAST, "driver")):
        sheet.set_text(row, column, words, _SMALL)
    names, heads, numbers = [], [], []
    for number, line in enumerate(lines, 1):
        # A billionth more: engines do not agree on which way a number half way between two is rounded.
        ends = [
            text(value * (1 + TOLERANCE), form)
            for value, _, form in (shown(InCase(line.value, case), line.driver.figure.unit) for case in cases)
        ]
        ranged = join(f"{line.driver.label} ", ends[0], " – ", ends[1])
        names.append(
            put(row + number, 0, Quantity(f"sensitivity.label.{number}", "Label", "1", ranged), _SMALL)
        )
        heads.append(
            Input(
                f"sensitivity.head.{number}",
                f"Head {number}",
                "1",
                line.driver.label,
                shared=True,
                fixed=True,
            )
        )
        book.add_constant(sheet, row + number, _LAST, heads[-1], _SMALL)
        numbers.append(
            Input(
                f"sensitivity.number.{number}", f"Number {number}", "number", number, shared=True, fixed=True
            )
        )
        book.add_constant(sheet, row + number, 2, numbers[-1], _NUMBER.but(form="0"))
    for place, (result, known) in enumerate(shown_results.items()):
        at, label, base = 3 + 3 * place, known.label, InCase(known.figure, 0)
        for offset, words in enumerate((f"{label}, lower", "higher", "key")):
            sheet.set_text(row, at + offset, words, _SMALL)
        ends_of, keys = {}, []
        for number, line in enumerate(lines, 1):
            low, high = (
                put(
                    row + number,
                    at + offset,
                    Quantity(
                        f"sensitivity.{result}.{end}.{number}",
                        "Change",
                        "1",
                        _change(line.variation.at(result, case), base),
                    ),
                )
                for offset, (end, case) in enumerate(zip(_BOTH, cases, strict=True))
            )
            ends_of[number] = (low, high)
            order = (
                numbers[number - 1] * TOLERANCE
            )  # keeps drivers of equal weight in one order in every engine
            keys.append(
                put(
                    row + number,
                    at + 2,
                    Quantity(
                        f"sensitivity.{result}.key.{number}",
                        "Key",
                        "1",
                        absolute(high - low) * (1 + order) + order * TOLERANCE,
                    ),
                )
            )
            spreads.setdefault(line.driver.id, {})[result] = high - low
        below = row + len(lines) + 2 + place * (len(lines) + 3)
        for offset, words in enumerate(
            (f"{label}: sorted", "better", "worse", "rank", "entry", "room", "room")
        ):
            sheet.set_text(below, offset, words, _SMALL)
        entries, sides_of = [], []
        for rank in range(1, len(lines) + 1):
            ranked = Input(
                f"sensitivity.{result}.rank.{rank}", f"Rank {rank}", "number", rank, shared=True, fixed=True
            )
            book.add_constant(sheet, below + rank, 3, ranked, _NUMBER.but(form="0"))
            found = match(nth_largest(span(keys), ranked), span(keys))
            entry = put(
                below + rank,
                4,
                Quantity(f"sensitivity.{result}.entry.{rank}", "Entry", "number", found),
                _NUMBER.but(form="0"),
            )
            entries.append(entry)
            put(
                below + rank,
                0,
                Quantity(f"sensitivity.{result}.name.{rank}", "Name", "1", index(span(names), entry)),
                _SMALL,
            )
            sides = [index(span([ends_of[number][side] for number in ends_of]), entry) for side in (0, 1)]
            sides_of.append(
                (
                    put(
                        below + rank,
                        1,
                        Quantity(f"sensitivity.{result}.better.{rank}", "Better", "1", minimum(*sides, 0)),
                    ),
                    put(
                        below + rank,
                        2,
                        Quantity(f"sensitivity.{result}.worse.{rank}", "Worse", "1", maximum(*sides, 0)),
                    ),
                )
            )
        for column, longest, bars in zip(_ROOM, (minimum, maximum), zip(*sides_of, strict=True), strict=True):
            put(
                below + 1,
                column,
                Quantity(f"sensitivity.{result}.room.{column}", "Room", "1", longest(span(bars)) * wider),
            )
        places[result] = (below + 1, below + len(lines))
        first, second = (index(span(heads), entry) for entry in entries[:2])
        titles[result] = Quantity(
            f"sensitivity.title.{result}", "Finding", "1", join(first, " and ", second, f" move {label} most")
        )
    return Sensitivity(titles, places, spreads)
