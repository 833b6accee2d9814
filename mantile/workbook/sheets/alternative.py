"""The alternative on What-if: the base scenario on an accelerator that is chosen there, beside it."""

from __future__ import annotations

from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.alternative import NAMES, Alternative, alternative, how_to_keep, typed
from mantile.equations.display import LETTERS, Shown
from mantile.equations.override import OVERRIDE
from mantile.equations.ready_columns import NAME
from mantile.estimates.alternative import first_alternative
from mantile.graph.quantity import Input, Quantity
from mantile.workbook import style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import add_folded_head, add_label, add_varied_row, fold
from mantile.workbook.sheets.frame import add_part, mark_beginning

ALTERNATIVE = "Alternative"
_UNITS = style.UNIT.but(wrap=False)
_LABEL, _UNIT, _A, _B, _CHANGE, _NOTE, _LAST = 0, 1, 3, 5, 6, 7, 11  # names reach to the left of A's and B's
_PURPOSE = (
    "The base scenario, A, on another accelerator, B: choose it in the yellow cell; all beside it follows."
)
_PURPOSE_OF_DEVICES = (
    "The base scenario, A, with another accelerator, B, as its first device: choose it in the yellow cell."
)
_OTHERS = "Other devices, their layers where the cells of Inputs hold them, and stated links are those of A."
_APART = (
    "B stands in its usual system and has the figures of the library: what was typed over figures of A's "
    "hardware, prices and efficiency does not hold for it.",
    "Model, workload, framework, formats and degrees of parallelism are those of A.",
)


def add_alternative(book: EstimateBook, sheet: Sheet, row: int, last: int) -> int:
    """Lay out the part from a row on; the row after it. None where the library has no other accelerator."""
    chosen = first_alternative(book.estimate)
    if chosen is None:
        return row
    alike = book.estimate.equations.devices is None
    row = add_part(sheet, row, ALTERNATIVE, _PURPOSE if alike else _PURPOSE_OF_DEVICES, last, _UNIT)
    asked = book.estimate.scenario.alternative
    price = None if asked is None else asked.usd_per_hour
    inputs = typed(book.estimate.equations)
    case = book.add_case(sheet, _B, ALTERNATIVE, {inputs[0].id: chosen, inputs[1].id: price})
    cells = book.planned(sheet.name, case)
    figures = alternative(book.estimate.equations, inputs, case, book.currency, cells)
    row = _findings(book, sheet, figures, row + 1)
    row = _inputs(book, sheet, figures, case, row + 1)
    row = _results(book, sheet, figures, row)
    if book.ready:
        keep = _how_to_keep(book, figures, case)
        book.add_quantity(sheet, row, _LABEL, keep, style.SOURCE.but(wrap=False), scenario=ACROSS)
        row += 1
    return _workings(book, sheet, figures, case, row, last)


def _how_to_keep(book: EstimateBook, figures: Alternative, case: int) -> Quantity:
    """What to type so that the first ready column is the alternative."""
    column = book.ready[0]

    def cells(*identifiers: str) -> str:
        places = [book.input_cells[identifier, column] for identifier in identifiers]
        return " and ".join(f"{sheet}!{xl_rowcol_to_cell(row, at)}" for sheet, row, at in places)

    accelerators = (workers.inputs.accelerator.id for workers in book.estimate.equations.workers)
    basis = (f"hardware.price_{name}{OVERRIDE}" for name in ("cloud", "rental"))
    return how_to_keep(figures, case, LETTERS[column], cells(NAME.id), cells(*accelerators), cells(*basis))


def _findings(book: EstimateBook, sheet: Sheet, figures: Alternative, row: int) -> int:
    """What it comes to, in words; the row after it."""
    found = [*figures.figures("Finding")]
    for below, finding in enumerate(found, row):
        look = style.Style(size=14, bold=True, colour=style.NAVY) if below == row else style.Style(size=11)
        book.add_quantity(sheet, below, _LABEL, finding, look, scenario=ACROSS)
        sheet.heights[below] = 26 if below == row else 20
    mark_beginning(sheet, row, _LABEL, "!", style.FAIL)
    mark_beginning(sheet, row + 1, _LABEL, "!", style.FAIL)
    mark_beginning(sheet, row + 1, _LABEL, "✓", style.PASS)
    return row + len(found)


def _inputs(book: EstimateBook, sheet: Sheet, figures: Alternative, case: int, row: int) -> int:
    """What is typed, and what both are; the row after it."""
    for column, head in ((_LABEL, "result"), (_UNIT, "unit")):
        sheet.set_text(row, column, head, style.HEADER)
    for column, head in ((_A, "A · base"), (_B, "B"), (_CHANGE, "B against A")):
        sheet.set_text(row, column, head, style.HEADER_RIGHT)
    sheet.set_style(row, _LABEL, _LAST, style.HEADER)
    row += 1
    base = book.estimate.equations.inputs.accelerator
    _typed(book, sheet, row, figures.accelerator, case)
    sheet.set_formula(row, _A, base, style.value("1", is_text=True, role="link"))
    row += 1
    _typed(book, sheet, row, figures.price, case)
    for name in NAMES:
        row += 1
        sheet.set_text(row, _LABEL, name, style.LABEL)
        for column, of in ((_A, "a"), (_B, "b")):
            figure = figures[f"{of}.{name.lower()}"]
            book.add_quantity(sheet, row, column, figure, style.TEXT_VALUE, scenario=ACROSS)
    mark_beginning(sheet, row, _B, "!", style.FAIL)
    return row + 1


def _typed(book: EstimateBook, sheet: Sheet, row: int, figure: Input, case: int) -> None:
    """A cell in which something of the alternative is typed."""
    value = book.inputs(case)[figure.id]
    is_text = isinstance(value, str)
    look = style.value(figure.unit, is_text=is_text, role="input")
    number = None if is_text or value is None else float(value)
    sheet.set_text(row, _LABEL, figure.label, style.LABEL.but(bold=True))
    sheet.set_text(row, _UNIT, "" if is_text else style.shown_unit(figure.unit), _UNITS)
    sheet.set_text(row, _NOTE, figure.note, style.SOURCE.but(wrap=False))
    text = value if is_text else None
    sheet.set_cell(row, _B, Cell(look, text=text, number=number, scenario=case, entry=figure))
    sheet.ids[row] = figure.id
    book.register(figure, CellAddress(sheet.name, row))
    book.own_inputs[figure.id] = figure
    book.input_cells[figure.id, case] = (sheet.name, row, _B)


def _results(book: EstimateBook, sheet: Sheet, figures: Alternative, row: int) -> int:
    """Results of both and the change; the row after them."""
    for result in figures.results.values():
        _result(book, sheet, row, figures, result)
        row += 1
    for text in _APART if book.estimate.equations.devices is None else (*_APART, _OTHERS):
        sheet.set_text(row, _LABEL, text, style.SOURCE.but(wrap=False))
        row += 1
    return row


def _result(book: EstimateBook, sheet: Sheet, row: int, figures: Alternative, result: Shown) -> None:
    base, other, change = (figures[f"{name}.{result.key}"] for name in ("a", "b", "change"))
    sheet.set_text(row, _LABEL, result.label, style.LABEL)
    own = result.figure.unit
    unit = own if own.startswith("USD") else result.shown_unit  # of an hour, a month or tokens
    sheet.set_text(row, _UNIT, style.shown_unit(result.currency.named(unit)), _UNITS)
    look = style.VALUE.but(form=style.amount(result.digits or 0))
    link = book.link_to(result.figure)
    book.add_quantity(sheet, row, _A, base, look.but(colour=style.LINK), scenario=ACROSS, link=link)
    book.add_quantity(sheet, row, _B, other, look.but(bold=True), scenario=ACROSS)
    book.add_quantity(sheet, row, _CHANGE, change, style.table("effect"), scenario=ACROSS)


def _workings(book: EstimateBook, sheet: Sheet, figures: Alternative, case: int, row: int, last: int) -> int:
    """Figures of B, in the order of the workbook, folded away; the row after them."""
    first = add_folded_head(sheet, row, "Figures of B", last)
    row = first
    for constant in figures.constants:
        add_label(sheet, row, constant, constant.label)
        look = style.value(constant.unit, is_text=isinstance(constant.value, str), role="fixed")
        book.add_constant(sheet, row, _B, constant, look)
        row += 1
    for cell in (figures.accelerator, figures.price):
        book.store_place(cell, figures.guards.places[cell.id], case)
    for guard in figures.guards.rows:
        add_label(sheet, row, guard, guard.label)
        look = style.value(guard.unit, is_text=guard.unit == "1")
        if isinstance(guard, Quantity):
            book.register(guard, CellAddress(sheet.name, row))
            sheet.set_formula(row, _B, guard.body, look, scenario=case)
        else:
            book.add_constant(sheet, row, _B, guard, look, book.stamps[0].get(guard.id))
        row += 1
    for figure in figures.figures("There", "Reason", "Words"):
        add_label(sheet, row, figure, figure.label)
        look = style.value(figure.unit, is_text=figure.unit == "1")
        book.add_quantity(sheet, row, _B, figure, look, scenario=ACROSS)
        row += 1
    for used in figures.figures("Used"):
        book.register(used, CellAddress(sheet.name, row))
        add_label(sheet, row, used, used.label)
        look = style.value(used.unit, is_text=used.unit == "1")
        sheet.set_formula(row, _B, used.body, look, scenario=case)
        row += 1
    for original, varied in figures.variation.rows:
        add_varied_row(book, sheet, row, original, varied, {_B: case})
        row += 1
    fold(sheet, first, row)
    return row
