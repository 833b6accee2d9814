"""The checks on the Audit sheet: every check with both sides, and the verdict that stands on each sheet."""

from __future__ import annotations

from mantile.equations.checks import Check, Verdict
from mantile.equations.display import LETTERS, SIDE_BY_SIDE
from mantile.graph.quantity import Quantity
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.audit import CHECKS, LAST
from mantile.workbook.sheets.frame import add_part, mark_beginning, needed_height
from mantile.workbook.sheets.ready_columns import add_ready_head
from mantile.workbook.text_width import cut_to

_RULE, _GO_TO, _KIND, _CODE, _UNIT = 2, 3, 4, 5, 6  # columns; results stand where scenarios do
HEADS = ("no.", "check", "rule", "left side, on", "kind", "reason code", "unit")
_SIDES = ("left", "right", "off by")
_SIGNS = {"exactly": "= exactly", "within": "= to 1E-9", "at most": "≤", "at least": "≥"}
_HEIGHT = 20  # of a row


def last_column(columns: int) -> int:
    """The last column of the part, behind a result of each scenario and the sides of those side by side."""
    return FIRST + columns + 2 * min(columns, SIDE_BY_SIDE)


def add_checks(book: EstimateBook, sheet: Sheet, row: int, verdict: Verdict) -> int:
    """Every check with both sides, and the verdict that stands on each sheet; the row after them."""
    note = (
        "every check states both sides. A failed error check turns the master red on every sheet; "
        "an alert asks for attention only"
    )
    last = max(LAST, last_column(book.columns))
    start = row
    row = add_part(sheet, row, CHECKS, note, LAST)
    _tiles(book, sheet, row, verdict)
    _heads(book, sheet, row + 4)
    sheet.blocks.append((start, row + 4))
    row = _groups(book, sheet, row + 5, verdict, last)
    sheet.heights |= {row: 8}
    _totals(book, sheet, row + 1, verdict, last)
    return row + 3


def _tiles(book: EstimateBook, sheet: Sheet, row: int, verdict: Verdict) -> None:
    """What all checks say together."""
    tile = style.TILE.but(top=(style.THICK, style.NAVY), size=style.SMALL, bold=True, colour=style.NAVY)
    big = style.TILE.but(size=16, bold=True, colour=style.INK)
    note = style.TILE.but(size=style.SMALL)
    sheet.heights |= {row: 17, row + 1: 30, row + 2: 20, row + 3: 18, row + 4: 22}
    for column, head in ((0, "ERROR CHECKS"), (3, "ALERTS"), (5, "AS GENERATED")):
        sheet.set_text(row, column, head, tile)
    book.add_quantity(sheet, row + 1, 0, verdict.headline, big.but(colour=style.PASS), scenario=ACROSS)
    mark_beginning(sheet, row + 1, 0, "✗", style.FAIL)
    book.add_quantity(sheet, row + 1, 3, verdict.alerts, big, scenario=ACROSS)
    book.add_quantity(sheet, row + 1, 5, verdict.stamp, big, scenario=ACROSS)
    sheet.set_text(row + 2, 0, "", note)
    form = '[=1]"master check: none failed";"master check: failed"'
    book.add_quantity(sheet, row + 2, 1, verdict.master, note.but(indent=0, form=form), scenario=ACROSS)
    sheet.set_text(row + 2, 3, "an alert asks for attention only", note)
    sheet.set_text(row + 2, 5, "live results against those stored when the file was made", note)
    book.add_quantity(sheet, row + 3, 0, verdict.inputs, style.Style(size=style.SMALL), scenario=ACROSS)
    for at, look in ((row, tile), (row + 1, big), (row + 2, note)):
        sheet.set_style(at, 0, LAST, look)


def _heads(book: EstimateBook, sheet: Sheet, row: int) -> None:
    for column, head in enumerate(HEADS):
        sheet.set_text(row, column, head, style.HEADER)
    for column, (letter, scenario) in enumerate(zip(LETTERS, book.estimate.columns, strict=False), FIRST):
        told = cut_to(f"{letter} · {scenario.name}", style.HEADER.size, sheet.widths[column])
        if column - FIRST in book.ready:
            add_ready_head(sheet, row, column, column - FIRST, style.HEADER)
            continue
        sheet.set_text(row, column, "result" if book.columns == 1 else told, style.HEADER)
    for letter, column in zip(LETTERS, _sides(book), strict=False):
        of = "" if book.columns == 1 else f"{letter} · "
        for place, side in enumerate(_SIDES if letter == LETTERS[0] else _SIDES[:2]):
            sheet.set_text(row, column + place, f"{of}{side}", style.HEADER_RIGHT)


def _sides(book: EstimateBook) -> list[int]:
    """The first column of the sides of each scenario; behind those of the base stands their difference."""
    first = FIRST + book.columns
    return [first, *(first + 1 + 2 * scenario for scenario in range(1, book.side_by_side))]


def _groups(book: EstimateBook, sheet: Sheet, row: int, verdict: Verdict, last: int) -> int:
    """All checks, numbered, group by group; the row after them."""
    number = 0
    for group in dict.fromkeys(check.group for check in verdict.checks):
        sheet.set_text(row, 0, group, style.BLOCK_HEAD)
        sheet.set_style(row, 1, last, style.BLOCK_HEAD)
        sheet.heights[row] = _HEIGHT
        start, row = row, row + 1
        for check in (check for check in verdict.checks if check.group == group):
            number += 1
            _line(book, sheet, row, number, check)
            row += 1
        sheet.blocks.append((start, row - 1))
    return row


def _totals(book: EstimateBook, sheet: Sheet, row: int, verdict: Verdict, last: int) -> None:
    """How many error checks pass and alerts are clear, of how many."""
    look = style.emphasised(style.LABEL, 1)
    for below, (label, figure, counted) in enumerate(
        (
            ("Error checks that pass", verdict.passed, verdict.error_count),
            ("Alerts that are clear", verdict.clear, verdict.alert_count),
        ),
        row,
    ):
        sheet.set_text(below, 1, label, look)
        sheet.set_text(below, _CODE, "of", style.emphasised(style.UNIT, 1).but(bold=False, align="right"))
        fixed = style.emphasised(style.value("number", role="fixed"), 1)
        if isinstance(counted, Quantity):
            each = verdict.of_each[below - row]
            book.add_constant(sheet, below, _GO_TO, each, fixed.but(align="left", form='0" each"'))
            book.add_quantity(sheet, below, _UNIT, counted, fixed.but(align="left"), scenario=ACROSS)
            if verdict.in_all is not None and below == row:
                book.add_quantity(sheet, below, _KIND, verdict.in_all, fixed, scenario=ACROSS)
        else:
            book.add_constant(sheet, below, _UNIT, counted, fixed.but(align="left"))
        book.register(figure, CellAddress(sheet.name, below))
        left = style.emphasised(style.value("number"), 1).but(align="left")
        for scenario in range(book.columns):
            sheet.set_formula(below, FIRST + scenario, figure.body, left, scenario=scenario)
        sheet.set_style(below, 0, last, look)
        sheet.heights[below] = _HEIGHT


def _line(book: EstimateBook, sheet: Sheet, row: int, number: int, check: Check) -> None:
    sheet.set_text(row, 0, str(number), style.SOURCE)
    labels = {str(label.value): label for label in book.estimate.equations.checks.labels}
    if check.label in labels:
        book.add_constant(sheet, row, 1, labels[check.label], style.ROW_LABEL)
    else:
        sheet.set_text(row, 1, check.label, style.ROW_LABEL)
    sheet.set_text(row, _RULE, _SIGNS[check.rule], style.UNIT)
    look = style.value(check.left.unit, role="link")
    base, *others = _sides(book)
    for scenario, column in enumerate((base, *others)):
        sheet.set_formula(row, column, check.left, look, scenario=scenario)
        sheet.set_formula(row, column + 1, check.right, look, scenario=scenario)
    book.add_quantity(sheet, row, base + 2, check.difference, style.value(check.left.unit))
    sheet.set_text(row, _UNIT, style.shown_unit(check.left.unit), style.UNIT)
    book.register(check.result, CellAddress(sheet.name, row))
    form = "check" if check.error else "alert"
    for column in range(book.columns):
        cell = (row, FIRST + column, row, FIRST + column)
        sheet.set_formula(
            row, FIRST + column, check.result.body, style.front(form, colour=style.PASS), scenario=column
        )
        bad = (
            style.Style(colour=style.FAIL, fill=style.FAIL_FILL, bold=True)
            if check.error
            else style.Style(colour=style.ALERT, fill=style.ALERT_FILL, bold=True)
        )
        sheet.conditional.append((cell, {"type": "cell", "criteria": "==", "value": 0, "format": bad}))
    sheet.set_text(row, _KIND, "error" if check.error else "alert", style.UNIT)
    address = book.addresses[check.left]
    told = cut_to(f"{address.sheet} › {check.left.label}", style.UNIT.size, sheet.widths[_GO_TO])
    sheet.set_text(row, _GO_TO, told, style.UNIT, link=book.link_to(check.left))
    codes = {str(code.value): code for code in book.estimate.equations.checks.codes}
    if check.code in codes:
        book.add_constant(sheet, row, _CODE, codes[check.code], style.IDENTIFIER)
    else:
        sheet.set_text(row, _CODE, check.code, style.IDENTIFIER)
    sheet.ids[row] = check.code
    texts = ((check.label, style.ROW_LABEL, 1), (check.code, style.IDENTIFIER, _CODE))
    needed = (needed_height(text, look, sheet.widths[column]) for text, look, column in texts)
    sheet.heights[row] = max(_HEIGHT, *needed)
