"""The Plan sheet: which accelerator holds what, and which messages they exchange."""

from __future__ import annotations

from mantile.equations.display import LETTERS, number_in
from mantile.equations.placement import (
    BAND,
    Line,
    Placement,
    SentMessage,
    beyond,
    messages,
    placement,
    shown,
    title,
)
from mantile.equations.workers import Workers
from mantile.graph.quantity import Quantity
from mantile.workbook import style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning, needed_height, room_on_page

FIRST_GPU = 2
LAST = FIRST_GPU + BAND - 1
_ROW = 20
_CELL = style.Style(align="center", right=(style.THIN, style.WHITE), bottom=(style.THIN, style.WHITE))
_SENT = ("MB each", "number", "us each")
_PREFILL, _DECODE = 2, 6  # columns of messages: by which algorithm, then what `_SENT` says


def plan_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out a grid for each scenario, and for decode workers of their own, each with its messages."""
    sheet = book.add_sheet(
        Sheet(
            "Plan",
            "workings",
            "Which accelerator holds what, and what they send each other. Live: change a degree of "
            "parallelism and the grid recolours.",
        )
    )
    sheet.widths = [160, 264, *([98] * BAND)]
    add_title_rows(book, sheet, "Plan", LAST, master)
    sheet.heights[2] = 8
    row = 3
    for scenario in range(book.side_by_side):
        for workers in book.estimate.equations.workers:
            row = _grid(book, sheet, row, scenario, workers)
        row = _messages(book, sheet, row, scenario)
    sheet.print_area = (0, 0, row - 1, LAST)
    sheet.one_page = room_on_page(sheet, row - 1) >= 0
    sheet.freeze = (3, 1)
    return sheet


def _grid(book: EstimateBook, sheet: Sheet, row: int, scenario: int, workers: Workers) -> int:
    """The accelerators of some workers in a scenario, in bands of eight; the row after them."""
    equations = book.estimate.equations
    prefix = f"placement.{scenario}"
    start = f"{LETTERS[scenario]}{'' if scenario else ' · base'}: "
    if len(equations.workers) > 1:
        prefill = workers is equations.prefill_workers
        start += "prefill workers, " if prefill else "decode workers, "
        prefix += "" if prefill else ".decode"
    look = style.Style(size=12, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, row, 0, title(workers, prefix, start), look, scenario=scenario)
    sheet.heights[row] = 26
    row += 1
    values = book.estimate_values[scenario]
    places = placement(workers, equations.ir, prefix, shown(workers, values))
    look = style.Style(size=9.5, colour=style.GREY, align="right")
    book.add_quantity(sheet, row - 1, LAST, beyond(workers, places, prefix), look, scenario=scenario)
    mark_beginning(sheet, row - 1, LAST, "!", style.ALERT)
    capacity = number_in(float(values[workers.hardware.memory_capacity]), "B", "GB")
    for first in range(0, len(places.accelerators), BAND):
        row = _band(book, sheet, row, scenario, places, first, capacity)
    sheet.heights[row] = 14
    return row + 1


def _band(
    book: EstimateBook, sheet: Sheet, row: int, scenario: int, places: Placement, first: int, capacity: float
) -> int:
    """Eight accelerators side by side; after the first eight in short form.

    Args:
        capacity: GB of an accelerator, the length of a full bar.
    """
    start = row + 1
    head = row if first else row - 1  # the title above
    sheet.set_text(row, 0, "slice", style.HEADER)
    sheet.set_text(row, 1, "rule", style.HEADER)
    look = style.HEADER.but(align="center", form=style.FRONT["gpu"])
    for column, accelerator in enumerate(places.accelerators[first : first + BAND], FIRST_GPU):
        book.add_constant(sheet, row, column, accelerator, look)
    lines = [line for line in places.lines if (line.short if first else not line.only_short)]
    rows = {line.name: below for below, line in enumerate(lines, start)}
    for line in lines:
        _line(book, sheet, rows[line.name], scenario, line, first)
    last = start + len(lines) - 1
    slices = max(rows[line.name] for line in lines if not line.memory)
    _stages(sheet, start, slices, rows["used"], rows["stage"])
    _bars(sheet, last, capacity)
    _unused(sheet, rows["used"], last)
    sheet.heights[last + 1] = 6
    sheet.blocks.append((head, last + 1))
    return last + 2


def _line(book: EstimateBook, sheet: Sheet, row: int, scenario: int, line: Line, first: int) -> None:
    """One property of eight accelerators; the last line is the sum of memory."""
    total = line.name == "sum"
    edge = {"top": (style.THIN, style.INK)} if total else {}
    if line.memory:
        look = style.value("GB").but(align="center", form=style.FRONT["held"])
    else:
        form = '[=1]"●";"–"' if line.form == "used" else style.FRONT.get(line.form, line.form)
        look = _CELL.but(form=form)
    if total:
        look = look.but(bold=True, **edge)
    sheet.set_text(row, 0, line.label, style.LABEL.but(bold=total, **edge))
    sheet.set_text(row, 1, line.rule, style.SOURCE.but(**edge))
    for column, figure in enumerate(line.figures[first : first + BAND], FIRST_GPU):
        book.add_quantity(sheet, row, column, figure, look, scenario=scenario)
    sheet.heights[row] = 22


def _stages(sheet: Sheet, first: int, last: int, used: int, stage: int) -> None:
    """A colour for each pipeline stage.

    Args:
        used, stage: rows that say whether an accelerator is in use, and its stage.
    """
    for number, colour in enumerate(style.STAGES):
        criteria = f"=AND(C${used + 1}=1,MOD(C${stage + 1},{len(style.STAGES)})={number})"
        rule = {"type": "formula", "criteria": criteria, "format": style.Style(fill=colour)}
        sheet.conditional.append(((first, FIRST_GPU, last, LAST), rule))


def _bars(sheet: Sheet, row: int, capacity: float) -> None:
    """Bars of used memory."""
    rule = {
        "type": "data_bar",
        "bar_solid": True,
        "data_bar_2010": True,
        "bar_color": style.CAPACITY_BAR,
        "min_type": "num",
        "max_type": "num",
        "min_value": 0,
        "max_value": round(capacity, 3),
    }
    sheet.conditional.append(((row, FIRST_GPU, row, LAST), rule))


def _unused(sheet: Sheet, used: int, last: int) -> None:
    """What an accelerator holds that is not in use is not seen."""
    look = style.Style(colour=style.WHITE)
    rule = {"type": "formula", "criteria": f"=C${used + 1}=0", "format": look}
    sheet.conditional.append(((used + 1, FIRST_GPU, last, LAST), rule))


def _messages(book: EstimateBook, sheet: Sheet, row: int, scenario: int) -> int:
    """Every kind of message of both phases; the row after them."""
    sheet.set_text(row, 0, "Messages of an accelerator", style.SECTION_HEAD)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    heads = ("message", "between", "prefill by", *_SENT, "decode by", *_SENT)
    for column, head in enumerate(heads):
        sheet.set_text(row + 1, column, head, style.HEADER if column < 2 else style.HEADER_RIGHT)
    kinds = messages(book.estimate.equations)
    for below, message in enumerate(kinds, row + 2):
        sheet.set_text(below, 0, message.label, style.LABEL)
        between = message.between.partition(";")[0]
        sheet.set_text(below, 1, between, style.SOURCE)
        sheet.heights[below] = max(_ROW, needed_height(between, style.SOURCE, sheet.widths[1]))
        for column, sent in ((_PREFILL, message.prefill), (_DECODE, message.decode)):
            if sent is not None:
                _sent(sheet, below, column, sent, scenario)
    last = row + 2 + len(kinds)
    sheet.blocks.append((row, last))
    sheet.heights[last] = 14
    return last + 1


def _sent(sheet: Sheet, row: int, column: int, sent: SentMessage, scenario: int) -> None:
    """How a message is sent in a phase."""
    figures = (
        (sent.algorithm, style.TEXT_VALUE.but(colour=style.LINK)),
        (sent.size, style.table("megabytes", colour=style.LINK)),
        (sent.number, style.table("bill", colour=style.LINK)),
        (sent.time, style.table("watts")),
    )
    for at, (figure, look) in enumerate(figures, column):
        if figure is not None:
            sheet.set_formula(row, at, figure, look, scenario=scenario)
