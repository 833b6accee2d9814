"""The Checks sheet: every check with both sides, and the verdict that stands on each sheet."""

from __future__ import annotations

from mantile.equations.checks import Check, Verdict
from mantile.equations.display import LETTERS
from mantile.workbook import style
from mantile.workbook.book import ACROSS, FIRST, CellAddress, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning, needed_height
from mantile.workbook.text_width import cut_to

_SIDE = 104  # width of a side of a further scenario
HEADS = ("no.", "check", "left", "right", "unit", "difference", "rule")
_OF_BASE = {"left": "A · left", "right": "A · right", "difference": "A · difference"}
_SIGNS = {"exactly": "= exactly", "within": "= within 1E-9", "at most": "≤", "at least": "≥"}


def checks_sheet(book: EstimateBook, verdict: Verdict) -> Sheet:
    """Lay out the Checks sheet; its place in the book is kept by the caller."""
    sheet = book.sheets["Checks"]
    sheet.purpose = (
        "Every check states both sides. A failed error check turns the master red on every sheet; "
        "an alert asks for attention only."
    )
    last = FIRST + book.columns + 2
    sheet.widths = [30, 292, 104, 104, 86, 114, 84, *([76] * book.columns), 44, 82, 168]
    sheet.widths += [_SIDE] * 2 * (book.side_by_side - 1)
    add_title_rows(book, sheet, "Checks", last, verdict.headline)
    sheet.heights |= {2: 6, 3: 17, 4: 30, 5: 20, 6: 18, 7: 22}
    sheet.default_height = 20
    _tiles(book, sheet, verdict, last)
    _heads(book, sheet, last)
    row = _groups(book, sheet, verdict, last)
    sheet.heights |= {row: 8}
    _totals(book, sheet, row + 1, verdict, last)
    sheet.print_area = (0, 0, row + 2, last)
    return sheet


def _tiles(book: EstimateBook, sheet: Sheet, verdict: Verdict, last: int) -> None:
    """What all checks say together."""
    tile = style.TILE.but(top=(style.THICK, style.NAVY), size=style.SMALL, bold=True, colour=style.NAVY)
    big = style.TILE.but(size=16, bold=True, colour=style.INK)
    note = style.TILE.but(size=style.SMALL)
    for column, head in ((0, "ERROR CHECKS"), (2, "ALERTS"), (5, "AS GENERATED")):
        sheet.set_text(3, column, head, tile)
    book.add_quantity(sheet, 4, 0, verdict.headline, big.but(colour=style.PASS), scenario=ACROSS)
    mark_beginning(sheet, 4, 0, "✗", style.FAIL)
    book.add_quantity(sheet, 4, 2, verdict.alerts, big, scenario=ACROSS)
    book.add_quantity(sheet, 4, 5, verdict.stamp, big, scenario=ACROSS)
    sheet.set_text(5, 0, "", note)
    form = '[=1]"master check: none failed";"master check: failed"'
    book.add_quantity(sheet, 5, 1, verdict.master, note.but(indent=0, form=form), scenario=ACROSS)
    sheet.set_text(5, 2, "an alert asks for attention and does not fail the book", note)
    sheet.set_text(5, 5, "live results against those stored when the file was made", note)
    book.add_quantity(sheet, 6, 0, verdict.inputs, style.Style(size=style.SMALL), scenario=ACROSS)
    for row, look in ((3, tile), (4, big), (5, note)):
        sheet.set_style(row, 0, last, look)


def _heads(book: EstimateBook, sheet: Sheet, last: int) -> None:
    heads = HEADS if book.columns == 1 else tuple(_OF_BASE.get(head, head) for head in HEADS)
    for column, head in enumerate(heads):
        sheet.set_text(7, column, head, style.HEADER_RIGHT if column in (2, 3, 5) else style.HEADER)
    for column, (letter, scenario) in enumerate(zip(LETTERS, book.estimate.columns, strict=False), FIRST):
        told = cut_to(f"{letter} · {scenario.name}", style.HEADER.size, sheet.widths[column])
        name = "result" if book.columns == 1 else told
        sheet.set_text(7, column, name, style.HEADER)
    for column, head in enumerate(("kind", "go to", "reason code"), last - 2):
        sheet.set_text(7, column, head, style.HEADER)
    for letter, column in zip(LETTERS[1 : book.side_by_side], range(last + 1, last + 99, 2), strict=False):
        for place, side in enumerate(("left", "right")):
            sheet.set_text(7, column + place, f"{letter} · {side}", style.HEADER_RIGHT)
    sheet.freeze, sheet.repeat_rows = (8, 2), (0, 7)


def _groups(book: EstimateBook, sheet: Sheet, verdict: Verdict, last: int) -> int:
    """All checks, numbered, group by group; the row after them."""
    row, number = 8, 0
    for group in dict.fromkeys(check.group for check in verdict.checks):
        sheet.set_text(row, 0, group, style.BLOCK_HEAD)
        sheet.set_style(row, 1, last, style.BLOCK_HEAD)
        row += 1
        for check in (check for check in verdict.checks if check.group == group):
            number += 1
            _line(book, sheet, row, number, check, last)
            row += 1
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
        fixed = style.emphasised(style.value("number", role="fixed"), 1)
        book.add_constant(sheet, below, 3, counted, fixed)
        sheet.set_text(below, 4, "in all", style.emphasised(style.UNIT, 1).but(bold=False))
        book.register(figure, CellAddress(sheet.name, below))
        left = style.emphasised(style.value("number"), 1).but(align="left")
        for scenario in range(book.columns):
            sheet.set_formula(below, FIRST + scenario, figure.body, left, scenario=scenario)
        sheet.set_style(below, 0, last, look)


def _line(book: EstimateBook, sheet: Sheet, row: int, number: int, check: Check, last: int) -> None:
    sheet.set_text(row, 0, str(number), style.SOURCE)
    sheet.set_text(row, 1, check.label, style.ROW_LABEL)
    look = style.value(check.left.unit, role="link")
    sheet.set_formula(row, 2, check.left, look)
    sheet.set_formula(row, 3, check.right, look)
    for scenario in range(1, book.side_by_side):
        column = last - 1 + 2 * scenario
        sheet.set_formula(row, column, check.left, look, scenario=scenario)
        sheet.set_formula(row, column + 1, check.right, look, scenario=scenario)
    sheet.set_text(row, 4, style.shown_unit(check.left.unit), style.UNIT)
    book.add_quantity(sheet, row, 5, check.difference, style.value(check.left.unit))
    sheet.set_text(row, 6, _SIGNS[check.rule], style.UNIT)
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
    sheet.set_text(row, last - 2, "error" if check.error else "alert", style.UNIT)
    address = book.addresses[check.left]
    sheet.set_text(row, last - 1, f"{address.sheet} ›", style.UNIT, link=book.link_to(check.left))
    codes = {str(code.value): code for code in book.estimate.equations.checks.codes}
    if check.code in codes:
        book.add_constant(sheet, row, last, codes[check.code], style.IDENTIFIER)
    else:
        sheet.set_text(row, last, check.code, style.IDENTIFIER)
    sheet.ids[row] = check.code
    texts = ((check.label, style.ROW_LABEL, 1), (check.code, style.IDENTIFIER, last))
    needed = (needed_height(text, look, sheet.widths[column]) for text, look, column in texts)
    sheet.heights[row] = max(sheet.default_height or 0, *needed)
