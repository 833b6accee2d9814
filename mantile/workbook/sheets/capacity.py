"""The Capacity sheet: demand by hour, cash by year of buying, renting and calling an API, what decides it."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.capacity import Capacity
from mantile.graph.quantity import Named, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning

_SHEET = "Capacity"
_LABEL, _FIRST, _HOURS = 0, 2, 24
_CHART, _TABLE = 4, 17  # rows
_PURPOSE = "Every number is a link to Finance, where demand, prices and assumptions are typed over."
_CASH = (
    ("Electricity while nothing runs", "energy_idle"),
    ("Electricity that follows load", "energy_load"),
    ("Colocation", "colocation"),
    ("Staff", "staff"),
    ("Upkeep", "upkeep"),
)
_MONEY = '#,##0,;"−"#,##0,;"–"'


def capacity_sheet(book: EstimateBook, master: Quantity) -> None:
    """Lay out the sheet of a scenario that asks for capacity."""
    found = book.estimate.equations.capacity
    assert found is not None
    sheet = book.add_sheet(Sheet(_SHEET, "front", _PURPOSE))
    sheet.widths = [220, 90, *([46] * _HOURS)]
    sheet.one_page = True
    sheet.freeze, sheet.repeat_rows = (3, 1), (0, 1)
    last = _FIRST + _HOURS - 1
    add_title_rows(book, sheet, _SHEET, last, master)
    title = style.Style(size=14, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, 2, _LABEL, found.titles[0], title)
    mark_beginning(sheet, 2, _LABEL, "!", style.ALERT)
    sheet.heights[2] = 26
    row = _by_hour(book, sheet, found)
    row = _by_year(book, sheet, found, row + 1)
    row = _drivers(book, sheet, found, row + 1)
    sheet.print_area = (0, 0, row, last)


def _head(sheet: Sheet, row: int, texts: Sequence[tuple[int, str]], last: int) -> None:
    for column, text in texts:
        sheet.set_text(row, column, text, style.HEADER if column < _FIRST else style.HEADER_RIGHT)
    sheet.set_style(row, 0, last, style.HEADER)


def _line(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    label: str,
    unit: str,
    figures: Sequence[Named],
    form: str,
    first: int = _FIRST,
    step: int = 1,
    bold: bool = False,
) -> None:
    sheet.set_text(row, _LABEL, label, style.LABEL.but(bold=bold))
    sheet.set_text(row, 1, unit, style.UNIT)
    look = style.aired(form, size=style.SMALL, bold=bold)
    for place, figure in enumerate(figures):
        link = book.link_to(figure)
        shown = book.displayed(figure, figure.unit)
        sheet.set_formula(row, first + place * step, shown, look, link=link)


def _by_hour(book: EstimateBook, sheet: Sheet, found: Capacity) -> int:
    """The chart of demand with what replicas carry, and its rows; the row after them."""
    sheet.set_text(
        3,
        _LABEL,
        "Demand by hour; above it what all replicas carry, and all but the spares",
        style.SECTION_HEAD,
    )
    sheet.set_style(3, _LABEL, _FIRST + _HOURS - 1, style.SECTION_HEAD)
    hours = found.hours
    last = _FIRST + _HOURS - 1
    _head(sheet, _TABLE, [(0, "hour of the day"), *((_FIRST + h, str(h)) for h in range(_HOURS))], last)
    rows: tuple[tuple[str, str, Sequence[Named], str], ...] = (
        ("Requests", "request/s", hours["requests"], "#,##0.0"),
        ("All replicas carry", "request/s", (found.carried[0],) * _HOURS, "#,##0.0"),
        ("Without the spares", "request/s", (found.carried[1],) * _HOURS, "#,##0.0"),
        ("Replicas needed", "replica", hours["needed"], "#,##0"),
        ("In service", "replica", (found.in_service,) * _HOURS, "#,##0"),
        ("Utilisation", "%", hours["utilisation"], "0%"),
    )
    for row, (label, unit, figures, form) in enumerate(rows, _TABLE + 1):
        _line(book, sheet, row, label, unit, figures, form)

    def cells(row: int) -> charts.Range:
        return (_SHEET, row, _FIRST, row, last)

    width, left = sum(map(int, sheet.widths)), sum(map(int, sheet.widths[:_FIRST]))
    chart = charts.lines(
        "Requests per second by hour of the day, what all replicas carry, and all but the spares",
        cells(_TABLE),
        [cells(_TABLE + row) for row in (1, 2, 3)],
        (width, 230),
        (left / width, 0.04, 1 - left / width, 0.84),  # an hour above its column
    )
    sheet.charts.append((_CHART, _LABEL, chart))
    row = _TABLE + len(rows) + 1
    book.add_quantity(sheet, row, _LABEL, found.titles[1], style.PURPOSE)
    return row + 1


def _by_year(book: EstimateBook, sheet: Sheet, found: Capacity, row: int) -> int:
    """Replicas and cash by year; the row after them."""
    last, step, first = _FIRST + _HOURS - 1, 3, _FIRST + 3  # columns of the hours, three for a year
    money = book.currency.named("kUSD")
    sheet.set_text(row, _LABEL, "Buy, rent or API", style.SECTION_HEAD)
    sheet.set_style(row, _LABEL, last, style.SECTION_HEAD)
    heads = [(0, "cash, out is negative"), (1, "unit"), (first, "start")]
    heads += [(first + year * step, f"year {year}") for year in range(1, 6)] + [(first + 6 * step, "NPV")]
    _head(sheet, row + 1, heads, last)
    row += 2
    later = first + step
    _line(book, sheet, row, "Peak", "request/s", found.peak, "#,##0.0", later, step)
    _line(book, sheet, row + 1, "Replicas, with spares", "replica", found.replicas, "#,##0", later, step)
    _line(book, sheet, row + 2, "Output tokens", "G tokens", found.parts["output"], "#,##0.0,", later, step)
    row += 3
    for label, name in _CASH:
        _line(book, sheet, row, label, money, found.parts[name], _MONEY, later, step)
        row += 1
    for option, label in (("buy", "Buy, with purchases and residual"), ("rent", "Rent"), ("api", "API")):
        flows = (*found.cash[option], found.npv[option])
        _line(book, sheet, row, label, money, flows, _MONEY, first, step, bold=True)
        row += 1
    book.add_quantity(sheet, row, _LABEL, found.titles[2], style.PURPOSE)
    return row + 1


def _drivers(book: EstimateBook, sheet: Sheet, found: Capacity, row: int) -> int:
    """What moves the saving; the last row."""
    money = book.currency.named("kUSD")
    sheet.set_text(row, _LABEL, "What buying saves against renting, and what moves it", style.SECTION_HEAD)
    sheet.set_style(row, _LABEL, _FIRST + _HOURS - 1, style.SECTION_HEAD)
    _line(book, sheet, row + 1, "Buying saves", money, (found.saving,), _MONEY, _FIRST + 3, bold=True)
    _line(book, sheet, row + 2, "Drivers higher by", "%", (found.cells["swing"],), "0%", _FIRST + 3)
    for place, (name, figure) in enumerate(found.moves.items(), row + 3):
        label = f"{name.capitalize()} higher moves it by"
        _line(book, sheet, place, label, money, (figure,), _MONEY, _FIRST + 3)
    return row + 3 + len(found.moves)
