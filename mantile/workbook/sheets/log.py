"""The log on the Audit sheet: what was generated, the results then and now, and room for signatures."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.display import LETTERS, in_ms
from mantile.equations.metrics import Metric, worked_out_id
from mantile.equations.sensitivity import JUDGED
from mantile.equations.signature import HOLDS, NOT_SIGNED, SignOff
from mantile.equations.since import Followed, followed, followed_input
from mantile.equations.stamp import EDITS, STAMPED, Stamp, unchanged
from mantile.equations.trace import Trace
from mantile.estimates.overrides import by_scenario
from mantile.graph.quantity import NOT_KNOWN, Input, Named, Node, Value
from mantile.library.since import Changed
from mantile.workbook import style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Room, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.audit import LAST, LOG
from mantile.workbook.sheets.frame import add_part, mark_beginning, needed_height
from mantile.workbook.sheets.trace import add_trace

_METRICS = tuple(JUDGED.values())
_BEFORE = 5  # column of the first result before a change; after it stands the same result after it
_RULE = (style.THIN, style.FAINT)
_LINE = style.Style(bottom=_RULE)
ROLE, DATE, NAME, DIGEST, STATUS, REMARKS = 1, 2, 3, 4, 5, 9  # columns of the lines on which somebody signs
_MOST = 60  # characters of a name
_WHAT, _WHY, _CHECKS = 1, 3, 4  # columns of versions
_WAS, _NOW, _CHANGE = 4, 5, 6  # columns of what differs from the workbook before
_OF_OTHERS = 2  # edits that are named of each further scenario
_ROW = 26  # least height of a row of words


def add_log(
    book: EstimateBook, sheet: Sheet, row: int, stamp: Stamp, signatures: SignOff, found: Trace
) -> int:
    """Versions, overrides, the live file, room for signatures, the trace; the row after them."""
    note = (
        "what changed, why, and what it did to the answer. The last row is this file, recalculated: "
        "it differs from the stamp once an input is edited"
    )
    start = row
    row = add_part(sheet, row, LOG, note, LAST)
    sheet.breaks.append(start)
    row = _heads(sheet, row)
    row = _versions(book, sheet, row, stamp)
    row = _overrides(book, sheet, row)
    _live(book, sheet, row, stamp)
    row = _edits(book, sheet, row + 1, stamp)
    row = _since(book, sheet, row + 1)
    row = _sign_off(book, sheet, row + 1, signatures)
    return add_trace(book, sheet, row + 2, LAST, found)


def _heads(sheet: Sheet, row: int) -> int:
    """Heads in two lines, a result over what it was before and after; the row after them."""
    sheet.heights |= {row: 20, row + 1: 20}
    for column, head in enumerate(("version", "what changed", "date", "why", "checks")):
        sheet.set_text(row, column, "", style.HEADER.but(bottom=None))
        sheet.set_text(row + 1, column, head, style.HEADER)
    for place, metric in enumerate(_METRICS):
        for column, (top, text) in enumerate((("", "before"), (metric.head, "after")), _BEFORE + 2 * place):
            sheet.set_text(row, column, top, style.HEADER_RIGHT.but(bottom=None))
            sheet.set_text(row + 1, column, text, style.HEADER_RIGHT)
    return row + 2


def _versions(book: EstimateBook, sheet: Sheet, row: int, stamp: Stamp) -> int:
    """A row for every version with the results before and after it; the last is the one generated here."""
    scenario = book.estimate.scenario
    before: tuple[Value | None, ...] = (None, None, None)
    for number, version in enumerate(scenario.versions, 1):
        results = (version.ttft_ms, version.tpot_ms, version.usd_per_million)
        after = tuple(result or NOT_KNOWN for result in results)
        date = version.date or "not dated"
        _words(sheet, row, (str(number), version.what, date, version.why, version.checks))
        for place, (then, now) in enumerate(zip(before, after, strict=True)):
            look = _look(_METRICS[place]).but(bottom=_RULE)
            _number(sheet, row, _BEFORE + 2 * place, then, look.but(colour=style.GREY))
            _number(sheet, row, _BEFORE + 2 * place + 1, now, look)
        before = after
        row += 1
    this, date = str(len(scenario.versions) + 1), book.date or "not dated"
    _words(sheet, row, (this, f"generated: {book.estimate.title}", date, scenario.why, ""))
    for place, (then, stored) in enumerate(zip(before, _results(stamp.stored), strict=True)):
        look = _look(_METRICS[place]).but(bottom=_RULE)
        _number(sheet, row, _BEFORE + 2 * place, then, look.but(colour=style.GREY))
        sheet.set_formula(row, _BEFORE + 2 * place + 1, _shown(book, stored), look)
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
        _words(sheet, row, ("", what, "", item.reason, ""))
        for place, (key, metric) in enumerate(JUDGED.items()):
            look = _look(metric).but(bottom=_RULE, colour=style.GREY)
            for column, result in enumerate((item.before[key], item.after[key]), _BEFORE + 2 * place):
                _number(sheet, row, column, NOT_KNOWN if result is None else metric.shown(result), look)
        row += 1
    return row


def _live(book: EstimateBook, sheet: Sheet, row: int, stamp: Stamp) -> None:
    """This file, recalculated: before is the stamp of generation, after the live result."""
    bold = style.Style(bold=True, fill=style.PANEL, top=(style.THIN, style.INK))
    texts = ("live", "this file, recalculated", "", "before = as generated, after = live")
    for column, text in enumerate(texts):
        sheet.set_text(row, column, text, bold.but(bold=not column))
    book.add_quantity(
        sheet, row, 4, unchanged(stamp, book.columns), bold.but(colour=style.PASS), scenario=ACROSS
    )
    mark_beginning(sheet, row, 4, "!", style.ALERT)
    both = zip(_results(stamp.stored), _results(stamp.figures), strict=True)
    for place, (stored, figure) in enumerate(both):
        look = _look(_METRICS[place]).but(fill=style.PANEL, top=(style.THIN, style.INK))
        column = _BEFORE + 2 * place
        sheet.set_formula(row, column, _shown(book, stored), look.but(colour=style.GREY))
        sheet.set_formula(row, column + 1, _shown(book, figure), look.but(colour=style.LINK))


def _edits(book: EstimateBook, sheet: Sheet, row: int, stamp: Stamp) -> int:
    """What was edited since in each scenario, and how much; the row after it."""
    rows, grey = stamp.rows, style.HEADER.but(bottom=_RULE)
    texts = ("edits", "cell that holds something else", "", "as generated", "now")
    for column, text in enumerate(texts):
        sheet.set_text(row, column, text, grey)
    sheet.set_style(row, 0, LAST, grey)
    sheet.heights[row] = 20
    scenarios = [*enumerate(LETTERS[: book.side_by_side])]
    for place, letter in scenarios:
        for number in range(1, _OF_OTHERS + 1 if place else EDITS + 1):
            row += 1
            sheet.heights[row] = 18
            sheet.set_text(row, 0, letter if len(scenarios) > 1 else "", _LINE)
            for column, what in ((_WHAT, "cell"), (_WHY, "was"), (_CHECKS, "now")):
                words = rows[f"stamp.edit.{number}.{what}"]
                sheet.set_formula(row, column, words, _LINE.but(colour=style.LINK), scenario=place)
            sheet.set_style(row, 0, LAST, _LINE)
    row += 1
    sheet.set_text(row, _WHAT, "in all, each marked where it was typed", _LINE)
    for place, letter in scenarios:
        look = style.VALUE.but(bottom=_RULE, colour=style.LINK, form=f'"{letter}: "0')
        sheet.set_formula(row, _CHECKS + place, rows["stamp.edit.count"], look, scenario=place)
    sheet.set_style(row, 0, LAST, _LINE)
    return row + 1


def _since(book: EstimateBook, sheet: Sheet, row: int) -> int:
    """What differs from the workbook before: inputs as they were and are, results live; the row after it."""
    before = book.estimate.scenario.since
    if before is None:
        return row
    day = f" of {before.made_on}" if before.made_on else ""
    title = f"Since {before.workbook}{day}, by {before.made_by}, digest {before.digest}"
    sheet.set_text(row, 0, title, style.SECTION_HEAD)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    row += 1
    heads = {_WHAT: "what differs", 3: "id", _WAS: "was", _NOW: "is", _CHANGE: "change"}
    for column, head in heads.items():
        sheet.set_text(row, column, head, style.HEADER_RIGHT if column >= _WAS else style.HEADER)
    sheet.set_style(row, 0, LAST, style.HEADER)
    for change in before.inputs:
        row += 1
        _changed(book, sheet, row, change)
    if not before.inputs or before.more:
        row += 1
        words = f"and {before.more} more" if before.more else "no input"
        sheet.set_text(row, _WHAT, words, _LINE)
        sheet.set_style(row, 0, LAST, _LINE)
    for line in followed(book.estimate.equations, before.results):
        row += 1
        _result(book, sheet, row, line)
    return row + 2


def _changed(book: EstimateBook, sheet: Sheet, row: int, change: Changed) -> None:
    """An input that differs, as it was and as it was made."""
    figure = book.estimate.equations.figures.get(change.id)
    label = {"model": "Model", "name": "Name"}.get(change.id) if figure is None else figure.label
    of = f", scenario {change.scenario}" if change.scenario and book.columns > 1 else ""
    sheet.set_text(row, _WHAT, f"{label or change.id}{of}", _LINE)
    sheet.set_text(row, 3, change.id, style.IDENTIFIER.but(bottom=_RULE, wrap=False))
    unit = "1" if figure is None else figure.unit
    was, now = change.was, change.now
    if isinstance(was, float) and isinstance(now, float):
        whole = isinstance(figure, Input) and figure.integer
        look = style.value(unit, integer=whole).but(bottom=_RULE, size=style.SMALL)
        if unit == "1":
            look = look.but(form="#,##0" if was % 1 == now % 1 == 0 else "0.000")
        line = followed_input(row, f"{label or change.id}{of}", unit, was, now)
        book.add_constant(sheet, row, _WAS, line.was, look)
        book.add_constant(sheet, row, _NOW, line.now, look)
        moved = style.table("effect").but(bottom=_RULE)
        book.add_quantity(sheet, row, _CHANGE, line.change, moved, scenario=ACROSS)
    else:
        for column, value in ((_WAS, was), (_NOW, now)):
            text = "none" if value is None else f"{value:g}" if isinstance(value, float) else value
            sheet.set_text(row, column, text, style.TEXT_VALUE.but(bottom=_RULE, size=style.SMALL))
    sheet.set_style(row, 0, LAST, _LINE)
    sheet.heights[row] = 18


def _result(book: EstimateBook, sheet: Sheet, row: int, line: Followed) -> None:
    """A result of the base scenario: that of the workbook before, and live."""
    result = line.result
    unit = style.shown_unit(result.shown_unit)
    label = f"{result.label}, {unit}" if unit not in result.label else result.label
    sheet.set_text(row, _WHAT, label, _LINE)
    behind = worked_out_id(result.figure.id)
    sheet.set_text(row, 3, behind, style.IDENTIFIER.but(bottom=_RULE, wrap=False))
    look = style.VALUE.but(form=style.amount(result.digits or 0), bottom=_RULE)
    book.add_constant(sheet, row, _WAS, line.was, look.but(colour=style.GREY))
    book.add_quantity(sheet, row, _NOW, line.now, look.but(colour=style.LINK), scenario=ACROSS)
    book.add_quantity(
        sheet, row, _CHANGE, line.change, style.table("effect").but(bottom=_RULE), scenario=ACROSS
    )
    sheet.set_style(row, 0, LAST, _LINE)
    sheet.heights[row] = 18


def _sign_off(book: EstimateBook, sheet: Sheet, row: int, signatures: SignOff) -> int:
    """Lines on which somebody signs, and whether each signature holds; the last row."""
    title = "Sign-off: holds until an input or result changes"
    sheet.set_text(row, 0, title, style.SECTION_HEAD)
    book.add_constant(sheet, row, DIGEST, signatures.digest, style.SECTION_HEAD)
    small = style.SECTION_HEAD.but(bold=False, size=style.SMALL, colour=style.GREY)
    sheet.set_text(row, NAME, "digest of this file  ", small.but(align="right"))
    look = small.but(form='0" changed";;"as made"', align="left")
    book.add_quantity(sheet, row, STATUS, signatures.edited, look, scenario=ACROSS)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    heads = {
        ROLE: "role",
        DATE: "date",
        NAME: "name",
        DIGEST: "digest",
        STATUS: "signature",
        REMARKS: "remarks",
    }
    for column, head in heads.items():
        sheet.set_text(row + 1, column, head, style.HEADER)
    sheet.set_style(row + 1, 0, LAST, style.HEADER)
    line = style.Style(bottom=(style.THIN, style.GREY), valign="bottom")
    yellow = line.but(unlocked=True, colour=style.INPUT, fill=style.INPUT_FILL)
    rooms = {
        NAME: Room("Name", "Who signs this workbook as it is: name, and function where it matters.", _MOST),
        DATE: Room("Date", "The day of the signature.", _MOST),
        DIGEST: Room(
            "Digest", f"Type the digest of this file: {book.digest}. It signs what was made.", _MOST
        ),
    }
    for below, of in enumerate(signatures.lines, row + 2):
        sheet.set_text(below, ROLE, of.role, line)
        for column, figure in ((NAME, of.name), (DIGEST, of.typed)):
            look = yellow.but(form="@")
            sheet.set_cell(below, column, Cell(look, entry=figure, room=rooms[column]))
            book.register(figure, CellAddress(sheet.name, below, column, absolute=True))
            book.own_inputs[figure.id] = figure
            book.input_cells[figure.id, 0] = (sheet.name, below, column)
        sheet.set_cell(below, REMARKS, Cell(yellow))
        sheet.set_cell(below, DATE, Cell(yellow.but(form="yyyy-mm-dd", align="left"), room=rooms[DATE]))
        book.add_quantity(sheet, below, STATUS, of.status, line.but(bold=True), scenario=ACROSS)
        for sign, colour in ((HOLDS[0], style.PASS), ("!", style.ALERT), (NOT_SIGNED, style.GREY)):
            mark_beginning(sheet, below, STATUS, sign, colour)
        sheet.set_style(below, 0, LAST, line)
        sheet.heights[below] = 32
    return row + 1 + len(signatures.lines)


def _results(figures: Sequence[Named]) -> tuple[Named, ...]:
    """Those of the figures of a stamp that inputs are judged by."""
    return tuple(figures[STAMPED.index(metric)] for metric in _METRICS)


def _look(metric: Metric) -> style.Style:
    return style.VALUE.but(form=style.amount(metric.digits))


def _shown(book: EstimateBook, figure: Named) -> Node:
    """Times in ms; the cost in US dollars, as versions before this one state it."""
    return in_ms(figure) if figure.unit == "s" else figure


def _words(sheet: Sheet, row: int, texts: tuple[str, ...]) -> None:
    look = _LINE.but(wrap=True)
    for column, text in enumerate(texts):
        sheet.set_text(row, column, text, look)
    heights = (needed_height(text, look, width) for text, width in zip(texts, sheet.widths, strict=False))
    sheet.heights[row] = max(_ROW, *heights)


def _number(sheet: Sheet, row: int, column: int, value: Value | None, look: style.Style) -> None:
    """A result; a dash where there was none yet."""
    if isinstance(value, float | int):
        sheet.set_cell(row, column, Cell(look, number=value))
    else:
        sheet.set_text(row, column, value or "–", look.but(form=style.TEXT_VALUE.form, align="right"))
