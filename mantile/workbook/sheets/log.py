"""The Log sheet: what was generated, the results then and now, and room for signatures."""

from __future__ import annotations

from mantile.equations.constant import MILLI
from mantile.equations.stamp import Stamp
from mantile.estimate.overrides import by_scenario
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import Input, Literal, Node, Quantity, where
from mantile.workbook import style
from mantile.workbook.book import LETTERS, Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

_HEADS = (("TTFT, ms", MILLI), ("TPOT, ms", MILLI), ("USD/M", None))
_BEFORE = 5  # column of the first result before a change; after it stands the same result after it


def log_sheet(book: EstimateBook, made: Stamp, master: Quantity) -> Sheet:
    """Lay out the Log sheet: versions before this one, this one, its overrides, the live file; room for signatures."""
    sheet = book.add_sheet(
        Sheet(
            "Log",
            "control",
            "What changed, why, and what it did to the answer. The last row is this file, "
            "recalculated: it differs from the stamp once an input is edited.",
        )
    )
    sheet.widths = [64, 92, 330, 360, 150, *([80] * 6)]
    sheet.default_height = 26
    last = _BEFORE + 5
    add_title_rows(book, sheet, "Log", last, master)
    sheet.heights |= {2: 6, 3: 20, 4: 20}
    for column, head in enumerate(("version", "date", "what changed", "why", "checks")):
        sheet.set_text(3, column, "", style.HEADER.but(bottom=None))
        sheet.set_text(4, column, head, style.HEADER)
    for place, (head, _) in enumerate(_HEADS):
        for offset, (top, words) in enumerate((("", "before"), (head, "after"))):
            sheet.set_text(3, _BEFORE + 2 * place + offset, top, style.HEADER_RIGHT.but(bottom=None))
            sheet.set_text(4, _BEFORE + 2 * place + offset, words, style.HEADER_RIGHT)
    row = _versions(book, sheet, 5, made)
    row = _overrides(book, sheet, row)
    _live(sheet, row, made)

    row += 2
    sheet.set_text(row, 0, "Sign-off", style.SECTION_HEAD)
    sheet.set_style(row, 1, last, style.SECTION_HEAD)
    for column, head in ((0, "role"), (2, "name"), (3, "remarks"), (4, "date"), (6, "signature")):
        sheet.set_text(row + 1, column, head, style.HEADER)
    sheet.set_style(row + 1, 0, last, style.HEADER)
    for offset, role in enumerate(("Prepared by", "Reviewed by", "Approved by"), row + 2):
        rule = style.Style(bottom=(style.THIN, style.GREY), valign="bottom", unlocked=True)
        sheet.set_text(offset, 0, role, rule.but(unlocked=False))
        sheet.set_style(offset, 1, last, rule)
        sheet.heights[offset] = 32
    sheet.print_area = (0, 0, row + 4, last)
    return sheet


_RULE = (style.THIN, style.FAINT)
_LINE = style.Style(bottom=_RULE)
_FORMS = ("#,##0.0_)_)", "#,##0.00_)_)", "#,##0.000_)_)")


def _versions(book: EstimateBook, sheet: Sheet, row: int, made: Stamp) -> int:
    """A row for every version with the results before and after it; the last is the one generated here."""
    scenario = book.estimate.scenario
    before: tuple[float | None, ...] = (None, None, None)
    for number, version in enumerate(scenario.versions, 1):
        after = (version.ttft_ms, version.tpot_ms, version.usd_per_million)
        _words(
            sheet, row, (str(number), version.date or "not dated", version.what, version.why, version.checks)
        )
        for place, (then, now) in enumerate(zip(before, after, strict=True)):
            look = style.VALUE.but(form=_FORMS[place], bottom=_RULE)
            _number(sheet, row, _BEFORE + 2 * place, then, look.but(colour=style.GREY))
            _number(sheet, row, _BEFORE + 2 * place + 1, now, look)
        before = after
        row += 1
    _words(
        sheet,
        row,
        (
            str(len(scenario.versions) + 1),
            scenario.date or "not dated",
            f"generated: {book.estimate.title}",
            scenario.why,
            "",
        ),
    )
    for place, (_, factor) in enumerate(_HEADS):
        look = style.VALUE.but(form=_FORMS[place], bottom=_RULE)
        _number(sheet, row, _BEFORE + 2 * place, before[place], look.but(colour=style.GREY))
        sheet.set_formula(row, _BEFORE + 2 * place + 1, _scaled(_stored(made)[place], factor), look)
    return row + 1


def _overrides(book: EstimateBook, sheet: Sheet, row: int) -> int:
    """Every override with its reason, and the results without and with it."""
    estimate = book.estimate
    for columns, item in by_scenario(estimate):
        unit = f" {item.cell.unit}" if item.cell.unit != "1" else ""
        letters = ", ".join(LETTERS[column] for column in columns)
        scenarios = "" if len(columns) == len(estimate.columns) else f", scenario {letters}"
        defaults = " to ".join(dict.fromkeys(f"{end:g}" for end in (min(item.defaults), max(item.defaults))))
        what = f"override: {item.id} = {item.value:g}{unit}, default {defaults}{scenarios}"
        _words(sheet, row, ("", "", what, item.reason, ""))
        for place, ((_, factor), key) in enumerate(zip(_HEADS, item.before, strict=True)):
            look = style.VALUE.but(form=_FORMS[place], bottom=_RULE, colour=style.GREY)
            for column, result in enumerate((item.before[key], item.after[key]), _BEFORE + 2 * place):
                _number(sheet, row, column, float(evaluate(_scaled(Literal(result), factor))), look)
        row += 1
    return row


def _live(sheet: Sheet, row: int, made: Stamp) -> None:
    """This file, recalculated: before is the stamp of generation, after the live result."""
    bold = style.Style(bold=True, fill=style.PANEL, top=(style.THIN, style.INK))
    plain = bold.but(bold=False)
    for column, words in enumerate(
        ("live", "", "this file, recalculated", "before = stamp of generation, after = live result")
    ):
        sheet.set_text(row, column, words, plain if column else bold)
    sheet.set_formula(
        row, 4, where(made.unchanged.result > 0, "✓ unchanged", "! changed"), bold.but(colour=style.PASS)
    )
    sheet.conditional.append(
        (
            (row, 4, row, 4),
            {
                "type": "text",
                "criteria": "begins with",
                "value": "!",
                "format": style.Style(colour=style.ALERT, bold=True),
            },
        )
    )
    for place, (_, factor) in enumerate(_HEADS):
        look = style.VALUE.but(form=_FORMS[place], fill=style.PANEL, top=(style.THIN, style.INK))
        sheet.set_formula(
            row, _BEFORE + 2 * place, _scaled(_stored(made)[place], factor), look.but(colour=style.GREY)
        )
        sheet.set_formula(
            row, _BEFORE + 2 * place + 1, _scaled(_figures(made)[place], factor), look.but(colour=style.LINK)
        )


def _figures(made: Stamp) -> tuple[Quantity, ...]:
    """TTFT, TPOT and cost, live."""
    return (made.figures[0], made.figures[1], made.figures[-1])


def _stored(made: Stamp) -> tuple[Input, ...]:
    """TTFT, TPOT and cost, as generated."""
    return (made.stored[0], made.stored[1], made.stored[-1])


def _scaled(figure: Node, factor: Input | None) -> Node:
    return figure if factor is None else figure * factor


def _words(sheet: Sheet, row: int, words: tuple[str, ...]) -> None:
    for column, text in enumerate(words):
        sheet.set_text(row, column, text, _LINE.but(shrink=True))


def _number(sheet: Sheet, row: int, column: int, value: float | None, look: style.Style) -> None:
    if value is None:
        sheet.set_text(row, column, "–", look.but(form=style.TEXT_VALUE.form, align="right"))
    else:
        sheet.set_cell(row, column, Cell(look, number=value))
