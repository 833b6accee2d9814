"""The Capacity sheet: demand by hour, cash by year of buying, renting and calling an API, what decides it.

What is asked is typed here, in yellow cells; Finance, on Calculation, works it out. All else leads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mantile.equations.capacity import NO_POINT, DemandCells, point, shown
from mantile.equations.tables import OfSubject
from mantile.equations.typed import Faults
from mantile.graph.quantity import Input, Named, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning

_SHEET = "Capacity"
_LABEL, _UNIT, _FIRST, _HOURS = 0, 1, 2, 24  # columns
_LAST = _FIRST + _HOURS - 1
_HALF = _FIRST + _HOURS // 2
_WIDTHS = (178, 88, *([43] * _HOURS))
_INPUTS, _CHART_ROWS, _DEMAND, _HOUR = 4, 11, 17, 31  # rows
_ROW = 20  # its height
_PURPOSE = (
    "Type over yellow cells: demand, limits and prices. Everything else follows, worked out at Finance; "
    "cash out is negative, before tax."
)
_CASH = (
    ("Electricity while nothing runs", "energy_idle"),
    ("Electricity that follows load", "energy_load"),
    ("Colocation", "colocation"),
    ("Staff", "staff"),
    ("Upkeep", "upkeep"),
)
_CASH_AT_START = {"buy": "bought.0", "rent": "nothing", "api": "nothing"}
_CASH_LATER = {"buy": "cash.buy.*", "rent": "cash.rent.*", "api": "year.*.api"}
_TITLES = ("title", "title_used", "title_even", "title_back")
_TOLD = ("told.enough", "told.carried", "told.money", "told.saved")
_RESTS_ON = {
    "rate": "rate",
    "day": "asked.profile",
    "growth": "asked.growth",
    "spares": "asked.spares",
    "machine": "asked.purchase",
    "rent": "asked.rent",
    "api": "asked.api_output",
    "power": "idle",
    "residual": "asked.residual",
}
"""What the answer rests on, in words, and the figure of each."""
_OPTIONS = (("buy", "Buy"), ("rent", "Rent"), ("api", "API"))
_COLOURS = {"buy": style.COMPUTE, "rent": style.SECOND, "api": style.MEMORY}
_RATE = "[>=1000]#,##0;#,##0.0"
# Programs put the sign of a section whose condition is another than "below 0" themselves.
_MONEY = '[<=-99999500]#,##0,,"M";[<0]"−"#,##0,;#,##0,'
_BILLIONS = "[>=9999950]#,##0,;#,##0.0,"
_PERCENT = ("growth", "busiest", "discount_rate", "residual", "upkeep", "swing")
_IF_ZERO = {
    "requests_per_day": "of users",
    "ttft_p95": "no limit",
    "tpot": "no limit",
    "e2e_p95": "no limit",
    "purchase": "library",
    "rent": "scenario",
    "api_output": "not known",
    "colocation": "none",
}
"""What a 0 in these cells means."""
_SMALL = style.Style(size=style.SMALL)
_BAR = {
    "type": "data_bar",
    "bar_solid": True,
    "data_bar_2010": True,
    "bar_color": style.CAPACITY_BAR,
    "min_type": "num",
    "max_type": "num",
    "min_value": 0,
    "max_value": 1.9,
}


def add_capacity_sheet(book: EstimateBook) -> None:
    """Give the sheet its place, with the cells of demand and prices; none without a demand."""
    found = book.estimate.equations.capacity
    if found is None:
        return
    sheet = book.add_sheet(Sheet(_SHEET, "front", _PURPOSE))
    sheet.widths, sheet.default_height = [*_WIDTHS], _ROW
    book.own_inputs[found.profile.id] = found.profile  # a text, which no override can be
    for row, (name, figure) in enumerate(_asked(found), _INPUTS):
        _typed(book, sheet, row, _UNIT, figure, _input_look(name, figure))
        sheet.ids[row] = figure.id
    look = style.value("1", role="input").but(form="0", size=style.SMALL)
    for hour, share in enumerate(found.shares):
        _typed(book, sheet, _HOUR + 1, _FIRST + hour, share, look)


def _asked(found: DemandCells) -> Iterator[tuple[str, Input]]:
    """What is asked, in the order of the sheet."""
    yield "profile", found.profile
    yield from found.cells.items()


def _input_look(name: str, figure: Input) -> style.Style:
    is_text = isinstance(figure.value, str)
    look = style.value(figure.unit, is_text=is_text, role="input", integer=figure.integer)
    if name in _PERCENT:
        return look.but(form="0.0%")
    if is_text or figure.integer:
        return look
    form = "#,##0.####" if figure.unit in ("s", "1") else "#,##0.00" if figure.unit != "number" else "#,##0"
    return look.but(form=f'{form};-{form};"{_IF_ZERO[name]}"' if name in _IF_ZERO else form)


def _typed(book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Input, look: style.Style) -> None:
    """A cell in which something of all scenarios is typed; a formula stands there until then."""
    value = book.estimate.inputs(0).get(figure.id, figure.value)
    cell = Cell(look, entry=figure)
    if figure.follows is not None:
        cell.style = look.but(colour=style.INK)
        cell.expression, cell.follows = figure.follows, (figure.id, 0)
    elif isinstance(value, str):
        cell.text = value
    elif value is not None:
        cell.number = float(value)
    sheet.set_cell(row, column, cell)
    book.register(figure, CellAddress(sheet.name, row, column, absolute=True))
    for scenario in range(book.columns):
        book.input_cells[figure.id, scenario] = (sheet.name, row, column)


def capacity_sheet(book: EstimateBook, master: Quantity, faults: Faults) -> None:
    """Fill the sheet of a scenario that asks for capacity.

    Args:
        faults: cells that cannot be, without which nobody knows what the demand costs.
    """
    cells, found = book.estimate.equations.capacity, book.estimate.equations.rows.of("capacity")
    assert cells is not None
    rows = book.estimate.equations.rows
    kept = [rows[f"capacity.{name}"] for name in _TITLES]
    titles = shown(kept, faults)
    sheet = book.sheets[_SHEET]
    sheet.freeze, sheet.repeat_rows = (3, 1), (0, 1)
    add_title_rows(book, sheet, _SHEET, _LAST, master)
    title = style.Style(size=14, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, 2, _LABEL, titles[0], title)
    mark_beginning(sheet, 2, _LABEL, "!", style.ALERT)
    sheet.heights[2] = 26
    _labels(book, sheet, cells)
    row = _by_hour(book, sheet, found, titles[1])
    second = row + 1
    row = _by_year(book, sheet, found, titles[2:], second)
    row = _assumptions(book, sheet, found, row + 1)
    sheet.blocks, sheet.breaks = [(0, second - 1), (second, row)], [second]
    sheet.print_area = (0, 0, row, _LAST)
    _pictures(book, sheet, found, titles[2:], row + 2)
    for at, figure in enumerate(
        (*(rows[f"capacity.{name}"] for name in _TOLD), *kept), 2 + max(at for at, _ in sheet.cells)
    ):
        book.add_quantity(sheet, at, _LABEL, figure, _SMALL)


def _section(sheet: Sheet, row: int, text: str, first: int = _LABEL, last: int = _LAST) -> None:
    sheet.set_text(row, first, text, style.SECTION_HEAD)
    sheet.set_style(row, first, last, style.SECTION_HEAD)


def _labels(book: EstimateBook, sheet: Sheet, found: DemandCells) -> None:
    """What is typed beside the labels, each with its unit."""
    _section(sheet, _INPUTS - 1, "What is asked", last=_UNIT)
    for row, (_, figure) in enumerate(_asked(found), _INPUTS):
        unit = figure.unit.replace("/accelerator", "")
        no_unit = figure.unit in ("1", "number", "replica", "1/year")
        text = figure.label if no_unit else f"{figure.label}, {unit}"
        sheet.set_text(row, _LABEL, text, style.LABEL.but(size=style.SMALL))


def _head(sheet: Sheet, row: int, texts: Sequence[tuple[int, str]], last: int = _LAST) -> None:
    for column, text in texts:
        look = style.HEADER if column == _LABEL else style.HEADER_RIGHT.but(form="@", size=style.SMALL)
        sheet.set_text(row, column, text, look)
    sheet.set_style(row, 0, last, style.HEADER)


def _line(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    label: str,
    figures: Sequence[Named],
    form: str,
    first: int = _FIRST,
    step: int = 1,
    bold: bool = False,
) -> None:
    look = style.LABEL.but(bold=bold, size=style.SMALL)
    if (row, _LABEL) not in sheet.cells:
        sheet.set_text(row, _LABEL, label, look)
    number = style.Style(form=form, size=style.SMALL, bold=bold, align="right")
    for place, figure in enumerate(figures):
        link = book.link_to(figure)
        shown = book.displayed(figure, figure.unit)
        sheet.set_formula(row, first + place * step, shown, number, link=link)


def _by_hour(book: EstimateBook, sheet: Sheet, found: OfSubject, title: Quantity) -> int:
    """The rows of the hours, below the chart of demand; the row after them."""
    _head(sheet, _HOUR, [(0, "hour of the day"), (1, "day"), *((_FIRST + h, str(h)) for h in range(_HOURS))])
    sheet.set_text(_HOUR + 1, _LABEL, "Demand, 100 is the peak", style.LABEL.but(size=style.SMALL))
    sheet.ids[_HOUR + 1] = "capacity.hour.share"
    spared = found["carried_without_spares"]
    rows: tuple[tuple[str, Named | None, Sequence[Named], str], ...] = (
        ("Requests per second", found["mean"], found.all("hour.*.requests"), _RATE),
        ("Replicas needed", None, found.all("hour.*.needed"), "#,##0"),
        ("In service, with spares", found["in_service"], (found["in_service"],) * _HOURS, "#,##0"),
        ("Utilisation", found["utilisation_mean"], found.all("hour.*.utilisation"), "0%"),
        ("All carry, requests/s", found["carried"], (found["carried"],) * _HOURS, _RATE),
        ("Without the spares", spared, (spared,) * _HOURS, _RATE),
    )
    for row, (label, day, figures, form) in enumerate(rows, _HOUR + 2):
        _line(book, sheet, row, label, figures, form)
        if day is not None:
            _line(book, sheet, row, label, (day,), form, _UNIT, bold=True)
    bar = _HOUR + 5
    sheet.conditional.append(((bar, _FIRST, bar, _LAST), _BAR))
    row = _HOUR + 2 + len(rows)
    book.add_quantity(sheet, row, _LABEL, title, style.PURPOSE)
    return row + 1


def _by_year(book: EstimateBook, sheet: Sheet, found: OfSubject, titles: Sequence[Quantity], row: int) -> int:
    """Replicas and cash by year, with the sums of money in thousands; the row after them."""
    step, first = 2, _FIRST + 1  # columns of two hours each
    later, last = first + step, first + 7 * step
    money = book.currency.named("thousand USD")
    _section(sheet, row, f"Buy, rent or API: cash in {money}", last=last)
    _section(sheet, row, "What buying saves, and what moves it", last + 1)
    heads = [(0, "out is negative"), (first, "start")]
    heads += [(first + year * step, f"year {year}") for year in range(1, 6)] + [(first + 6 * step, "NPV")]
    heads += [(last, "a M tokens")]
    _head(sheet, row + 1, heads, last)
    row += 2
    top = row
    _line(book, sheet, row, "Peak, requests/s", found.all("year.*.peak"), _RATE, later, step)
    _line(book, sheet, row + 1, "Replicas, with spares", found.all("year.*.replicas"), "#,##0", later, step)
    _line(book, sheet, row + 2, "Output tokens, billions", found.all("year.*.output"), _BILLIONS, later, step)
    row += 3
    _line(book, sheet, row, "Purchases", found.all("bought.*"), _MONEY, first, step)
    _line(book, sheet, row + 1, "Residual value", found.all("residual.*"), _MONEY, later, step)
    row += 2
    for label, name in _CASH:
        _line(book, sheet, row, label, found.all(f"year.*.{name}"), _MONEY, later, step)
        row += 1
    _line(book, sheet, row, "Depreciation, no cash", found.all("year.*.depreciation"), _MONEY, later, step)
    row += 1
    best = {
        "type": "formula",
        "criteria": f"=AND(ISNUMBER($N{row + 1}),$N{row + 1}=MAX($N${row + 1}:$N${row + 3}))",
        "format": style.Style(fill=style.BEST, bold=True),
    }
    sheet.conditional.append(((row, 0, row + 2, last), best))
    for option, label in (
        ("buy", "Buy, purchases and residual in"),
        ("rent", "Rent, staff in"),
        ("api", "API"),
    ):
        flows = (found[_CASH_AT_START[option]], *found.all(_CASH_LATER[option]), found[f"npv.{option}"])
        _line(book, sheet, row, label, flows, _MONEY, first, step, bold=True)
        _line(book, sheet, row, label, (found[f"price.{option}"],), "#,##0.00", last, bold=True)
        row += 1
    _line(book, sheet, row, "Bought, ahead of rent", found.all("ahead.*"), _MONEY, first, step)
    _line(
        book,
        sheet,
        row + 1,
        "A M tokens, both ways",
        [found[f"price.{o}_all"] for o, _ in _OPTIONS],
        "#,##0.000",
        first,
        step,
    )
    for place, (_, name) in enumerate(_OPTIONS):
        look = style.Style(size=style.SMALL, colour=style.GREY, align="left")
        sheet.set_text(row + 1, first + place * step + 1, name, look)
    book.add_quantity(sheet, row + 2, _LABEL, titles[1], style.PURPOSE)
    book.add_quantity(sheet, row + 3, _LABEL, titles[0], style.PURPOSE)
    _line(book, sheet, top, "", (found["saving"],), _MONEY, _LAST, bold=True)
    sheet.set_text(top, last + 1, f"Buying saves, NPV, {money}", style.LABEL.but(size=style.SMALL, bold=True))
    sheet.charts.append((top + 1, last + 1, _tornado(book, sheet, found, row + 30)))
    return row + 4


def _tornado(book: EstimateBook, sheet: Sheet, found: OfSubject, row: int) -> charts.Chart:
    """What moves the saving, the largest first; its data from a row on, below what is printed."""
    sheet.set_text(row - 1, _LABEL, "Chart data (live, not printed): what moves the saving", _SMALL)
    names = found.all("ranked_name.*")
    for at, name in enumerate(names, row):
        sheet.set_formula(at, _LABEL, name, _SMALL)
    for column, of in enumerate(("ranked_by.*", "ranked_worse.*"), _FIRST):
        for at, figure in enumerate(found.all(of), row):
            sheet.set_formula(at, column, book.currency.convert(figure), _SMALL)
    for column, of in enumerate(("ranked_room", "ranked_room_worse"), _FIRST + 2):
        sheet.set_formula(row, column, book.currency.convert(found[of]), _SMALL)
    last = row + len(names) - 1

    def data(of: int) -> charts.Range:
        return (_SHEET, row, of, last, of)

    return charts.tornado(
        "What buying saves more or less with each driver higher or lower, the largest first",
        data(_LABEL),
        [
            (style.COMPUTE, style.COMPUTE, data(_FIRST)),
            (style.MEMORY, style.MEMORY_TEXT, data(_FIRST + 1)),
        ],
        [data(_FIRST + 2), data(_FIRST + 3)],
        (344, 260),
        form='+#,##0,;"−"#,##0,;""',
    )


def _assumptions(book: EstimateBook, sheet: Sheet, found: OfSubject, row: int) -> int:
    """What it rests on, numbered, each with where it comes from; the last row."""
    _section(sheet, row, "Assumptions, and where each came from when the file was made")
    for number, (words, of) in enumerate(_RESTS_ON.items(), 1):
        at, figure = row + number, found[of]
        sheet.set_text(at, _LABEL, f"C-{number:02d}", style.Style(size=style.SMALL, colour=style.GREY))
        book.add_quantity(sheet, at, _UNIT, book.estimate.equations.rows[f"capacity.told.{words}"], _SMALL)
        source, assumed = "worked out at Finance", False
        if isinstance(figure, Input):
            assumed = figure.status == "assumed"
            source = "! assumed" if assumed else figure.source
            if assumed and figure.value == 0 and figure.id.endswith((".purchase", ".rent")):
                source, assumed = "library, by the price basis", False
        look = style.Style(size=style.SMALL, colour=style.ALERT if assumed else style.GREY, align="right")
        sheet.set_text(at, _LAST, source, look)
    return row + len(_RESTS_ON) + 1


def _pictures(
    book: EstimateBook, sheet: Sheet, found: OfSubject, titles: Sequence[Quantity], row: int
) -> None:
    """Charts of demand, break-even and cash, with their data below what is printed."""
    row = max(row, 1 + max(at for at, _ in sheet.cells))
    sheet.set_text(row, _LABEL, "Chart data (live, not printed)", _SMALL)
    book.add_constant(sheet, row, _UNIT, NO_POINT, _SMALL)
    data = _Data(book, sheet, row + 1)
    width = int(sum(_WIDTHS[_FIRST:]))
    _section(
        sheet,
        _DEMAND,
        "Demand by hour, requests/s; lines: what all replicas carry, and all but the spares",
        _FIRST,
    )

    def hours(at: int) -> charts.Range:
        return (_SHEET, at, _FIRST, at, _LAST)

    calm, busy = (
        data.row(f"{name} hours", found.all(f"hour.*.{key}"))
        for name, key in (("Calm", "calm"), ("Busiest", "busy"))
    )
    chart = charts.demand(
        "Requests per second by hour, the busiest in dark; what all replicas carry, and dashed all "
        "but the spares",
        hours(_HOUR),
        [(style.ACTIVATIONS, hours(calm)), (style.COMPUTE, hours(busy))],
        [(style.NAVY, False, hours(_HOUR + 6)), (style.GREY, True, hours(_HOUR + 7))],
        (width, (_HOUR - _DEMAND - 1) * _ROW),
        (0.0, 0.04, 1.0, 0.94),  # an hour above its column
    )
    sheet.charts.append((_DEMAND + 1, _FIRST, chart))
    size = (width // 2 - 8, _CHART_ROWS * _ROW)
    _section(
        sheet,
        _INPUTS - 1,
        "USD per million output tokens over mean utilisation; dashed: now",
        _FIRST,
        _HALF - 1,
    )
    sheet.charts.append((_INPUTS, _FIRST, _break_even(found, data, size)))
    _section(sheet, _INPUTS - 1, book.currency.named("Spent so far, thousand USD, by year"), _HALF)
    sheet.charts.append((_INPUTS, _HALF, _spent(found, data, size)))
    for at, figure in enumerate(titles, _INPUTS + _CHART_ROWS):
        sheet.set_formula(at, _FIRST, figure, style.PURPOSE.but(size=style.SMALL))


class _Data:
    """Rows of chart data, one below the other."""

    def __init__(self, book: EstimateBook, sheet: Sheet, row: int) -> None:
        self.book, self.sheet, self.next = book, sheet, row

    def row(self, label: str, figures: Sequence[Named]) -> int:
        """Figures side by side, none where one is not known; the row."""
        at, self.next = self.next, self.next + 1
        self.sheet.set_text(at, _LABEL, label, _SMALL)
        for column, figure in enumerate(figures, _FIRST):
            shown = self.book.currency.convert(figure) if figure.unit.startswith("USD") else figure
            self.sheet.set_formula(at, column, point(figure, shown), _SMALL)
        return at

    def points(self, label: str, figures: Sequence[Named]) -> charts.Range:
        """The same as a range."""
        at = self.row(label, figures)
        return (_SHEET, at, _FIRST, at, _FIRST + len(figures) - 1)


def _break_even(found: OfSubject, data: _Data, size: tuple[int, int]) -> charts.Chart:
    """USD of a million output tokens over mean utilisation: buy and rent as curves, the API as a line."""
    used, of_api, busy = found.all("use.*"), found["price.api"], found["utilisation_mean"]
    shown = {option: found.all(f"curve.{option}.*") for option, _ in _OPTIONS[:2]}
    use = data.points("Mean utilisation", used)
    curves = {option: data.points(f"{name}, USD/M", shown[option]) for option, name in _OPTIONS[:2]}
    api = data.points("API, USD/M", (of_api,) * len(used))
    now = data.points("Now: mean utilisation", (busy,))
    at = {
        name: data.points(f"Break-even: {name}", (found[f"break_even.{name}"],))
        for name in ("rent_against_api", "buy_against_api")
    }
    api_at = data.points("API at break-even", (of_api,))
    marks: list[tuple[str | None, str, charts.Range, charts.Range]] = [
        (None, _COLOURS[name.partition("_")[0]], place, api_at) for name, place in at.items()
    ]
    start = data.points("Start of curves", used[:1])
    for option, name in _OPTIONS[:2]:
        marks.append((None, _COLOURS[option], now, data.points(f"{name} now", (found[f"price.{option}"],))))
        there = data.points(f"{name} at the start", shown[option][:1])
        marks.append((name, _COLOURS[option], start, there))
    marks.append(("API", style.MEMORY, start, api_at))
    now_twice = data.points("Now, twice", (busy,) * 2)
    height = data.points("From 0 up", (found["number.0"], shown["rent"][0]))
    return charts.options(
        "USD of a million output tokens over mean utilisation, bought, rented and called; points where they "
        "cost the same, and those at the utilisation there is, the dashed line",
        [
            *((_COLOURS[option], False, use, points) for option, points in curves.items()),
            (style.MEMORY, True, use, api),
            (style.NAVY, True, now_twice, height),
        ],
        marks,
        (
            charts.point_axis("mean utilisation", "0%", min=0, max=1),
            charts.point_axis("", "General", min=0),
        ),
        size,
        (0.08, 0.04, 0.89, 0.74),
    )


def _spent(found: OfSubject, data: _Data, size: tuple[int, int]) -> charts.Chart:
    """What each option has paid so far, at the end of each year."""
    numbers = found.all("number.*")
    years = data.points("Year", numbers)
    last = data.points("Last year", numbers[-1:])
    lines, marks = [], []
    for option, name in _OPTIONS:
        colour = _COLOURS[option]
        spent = found.all(f"spent.{option}.*")
        points = data.points(f"Spent, {name}", spent)
        end = data.points(f"Spent, {name}, at the end", spent[-1:])
        lines.append((colour, option == "api", years, points))
        mark: tuple[str | None, str, charts.Range, charts.Range] = (name, colour, last, end)
        marks.append(mark)
    return charts.options(
        "Cash spent so far by year, bought, rented and called",
        lines,
        marks,
        (charts.point_axis("year", "0", min=0, max=5.5), charts.point_axis("", "#,##0,", min=0)),
        size,
        (0.12, 0.04, 0.85, 0.74),
    )
