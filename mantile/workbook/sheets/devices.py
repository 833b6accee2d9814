"""The Devices sheet: who holds which layers, whether each fits, which device and link set the pace."""

from __future__ import annotations

from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.devices import Devices
from mantile.equations.devices_told import (
    BUSIEST,
    IN_USE,
    INFERRED_WORD,
    NO_LAYERS,
    NO_LINK,
    NOT_USED,
    box_told,
    device_told,
    finding,
    link_told,
    preset_told,
    splits_told,
    totals,
)
from mantile.graph.quantity import Node, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

DEVICES_SHEET = "Devices"
_WIDTHS = (44, 250, 64, 64, 82, 92, 92, 78, 78, 78, 78, 78, 84, 92, 260)
_LAST = len(_WIDTHS) - 1
_FINDING, _TABLE = 3, 6  # rows
_PARTS = ("compute", "memory", "network", "overhead")
_COLOURS = {
    "compute": style.COMPUTE,
    "memory": style.MEMORY,
    "network": style.NETWORK,
    "overhead": style.OVERHEAD,
}
_HEADS = (
    "stage",
    "device",
    "count",
    "layers",
    "which",
    "used, GB",
    "usable, GB",
    *(f"{part}, ms" for part in _PARTS),
    "decode, ms",
    "prefill, ms",
    "KV room, req.",
    "link to the next",
)
_BOXES = ((1, 1), (5, 7), (11, 13))  # columns of the boxes of the picture; links stand between them
_EDGE = (style.THIN, style.SECOND)
_BOX = style.Style(size=9.5, align="center_across")
_LINK = style.Style(size=9.5, align="center_across")
_NO_PLAN = (
    "The sheet Plan is left out: its grid is of equal accelerators. Other splits stand above; another first "
    "device is chosen on What-if; others are variants of the scenario."
)
DEVICES_PURPOSE = (
    "Devices that are not alike, one behind the other. Layers, memory and links are cells of Inputs; decode "
    "and prefill are times of one pass, decode split by what binds its layers."
)


def devices_sheet(book: EstimateBook, master: Quantity) -> None:
    """Add the sheet; none of a deployment of equal accelerators."""
    found = book.estimate.equations.devices
    if found is None:
        return
    sheet = book.sheets[DEVICES_SHEET]
    sheet.widths, sheet.freeze, sheet.repeat_rows = [*_WIDTHS], (2, 2), (0, 1)
    sheet.one_page_wide = True
    add_title_rows(book, sheet, DEVICES_SHEET, _LAST, master)
    _finding(book, sheet, found)
    row = _table(book, sheet, found)
    row = _topology(book, sheet, found, row + 1)
    if found.devices[0].workers.inputs.links is not None:
        row = _links(sheet, found, row + 1)
    _chart(sheet, found, row + 1)
    _splits(book, sheet, found, row + 14)


def _finding(book: EstimateBook, sheet: Sheet, found: Devices) -> None:
    """What it comes to, in words."""
    graph = book.estimate.equations
    numbers = graph.prefill_workers.plan.stages.numbers
    words = finding(found, numbers, graph.serving.output_tokens_per_s, graph.inputs.pp)
    sheet.set_formula(_FINDING, 0, words, style.Style(size=14, bold=True, colour=style.NAVY))
    sheet.heights[_FINDING] = 26


def _head(sheet: Sheet, row: int, heads: tuple[str, ...]) -> None:
    for column, head in enumerate(heads):
        left = column in (1, len(heads) - 1)
        sheet.set_text(row, column, head, style.HEADER if left else style.HEADER_RIGHT)
    sheet.set_style(row, 0, _LAST, style.HEADER)


def _table(book: EstimateBook, sheet: Sheet, found: Devices) -> int:
    """A row for each device, and what all hold; the row after them."""
    _head(sheet, _TABLE, _HEADS)
    before = book.estimate.equations.prefill_workers.plan.stages.before
    row = _TABLE
    whole, tenth = style.table("whole"), style.table("ms2")
    for row, device in enumerate(found.devices, _TABLE + 1):
        place, memory = device.number - 1, device.workers.memory
        decode, prefill = (found.stages[phase][place] for phase in ("decode", "prefill"))
        told = device_told(device, before[place])
        sheet.set_text(row, 0, str(device.number), style.table("whole").but(align="center"))
        sheet.set_formula(row, 1, device.workers.hardware.name, style.ROW_LABEL)
        sheet.set_formula(row, 2, told.count, whole)
        sheet.set_formula(row, 3, told.layers, whole.but(bold=True))
        sheet.set_formula(row, 4, told.which, style.table("whole").but(align="right"))
        sheet.set_formula(row, 5, book.displayed(memory.used, "GB"), tenth)
        sheet.set_formula(row, 6, book.displayed(memory.usable, "GB"), tenth)
        for column, part in enumerate(_PARTS, 7):
            sheet.set_formula(row, column, book.displayed(decode.parts[part], "ms"), tenth)
        sheet.set_formula(row, 11, book.displayed(decode.time, "ms"), tenth.but(bold=True))
        sheet.set_formula(row, 12, book.displayed(prefill.time, "ms"), tenth)
        sheet.set_formula(row, 13, told.room, style.table("whole"))
        sheet.set_formula(row, _LAST, told.way, style.Style(size=9.5))
    total = row + 1
    look = style.emphasised(whole, 1)
    sheet.set_text(total, 1, "All devices", style.emphasised(style.ROW_LABEL, 1))
    count, layers = totals(found, book.estimate.equations.prefill_workers.ranks.counted)
    sheet.set_formula(total, 2, count, look)
    sheet.set_formula(total, 3, layers, look)
    sheet.set_style(total, 0, _LAST, look)
    return total + 1


def _topology(book: EstimateBook, sheet: Sheet, found: Devices, row: int) -> int:
    """Devices as boxes of cells, three side by side, with the link to the next between them.

    Colours follow the words in the cells.
    """
    words = "Topology: the busiest link brown, a stated one green, an inferred one dashed, an unused one grey"
    sheet.set_text(row, 1, words, style.SECTION_HEAD)
    sheet.heights[row], sheet.heights[row + 1] = 22, 6
    before = book.estimate.equations.prefill_workers.plan.stages.before
    for place, device in enumerate(found.devices):
        band, across = divmod(place, len(_BOXES))
        top, (first, last) = row + 2 + band * 4, _BOXES[across]
        told = box_told(found, device, before[place])
        fill = style.STAGES[place % len(style.STAGES)]
        looks = (_BOX.but(bold=True, size=11, colour=style.NAVY), _BOX, _BOX)
        for below, (line, look) in enumerate(zip((told.name, told.layers, told.figures), looks, strict=True)):
            edges = {
                "top": _EDGE if below == 0 else None,
                "bottom": _EDGE if below == len(looks) - 1 else None,
            }
            sheet.set_formula(top + below, first, line, look.but(fill=fill, **edges))
            sheet.set_style(top + below, first, last, look.but(fill=fill, **edges))
        empty = _has(NO_LAYERS, top + 1, first)
        rule = {"type": "formula", "criteria": empty, "format": style.Style(fill=style.PANEL)}
        sheet.conditional.append(((top, first, top + 2, last), rule))
        if told.rate is None or told.line is None or told.details is None:
            continue
        start, end = last + 1, (_BOXES[across + 1][0] if across + 1 < len(_BOXES) else _LAST + 1) - 1
        for below, line in enumerate((told.rate, told.line, told.details)):
            look = _LINK.but(colour=style.NETWORK_TEXT if below == 1 else style.INK, bold=below < 2)
            sheet.set_formula(top + below, start, line, look)
            sheet.set_style(top + below, start, end, look)
        _link_colours(sheet, top, start, end)
        sheet.heights[top + 3] = 10
    last_row = row + 2 + (len(found.devices) - 1) // len(_BOXES) * 4 + 3
    sheet.blocks.append((row, last_row))
    return last_row


def _links(sheet: Sheet, found: Devices, row: int) -> int:
    """Every two devices: bandwidth above the diagonal, below it whether anything goes over the link."""
    words = "Links: GB/s above the diagonal, a wave where inferred; below it whether anything goes over them"
    sheet.set_text(row, 1, words, style.SECTION_HEAD)
    top, count = row + 1, len(found.devices)
    sheet.set_formula(top, 1, preset_told(found), style.HEADER)
    middle = style.table("whole").but(align="center")
    for device in found.devices:
        at = device.number
        sheet.set_text(top, at + 1, str(at), style.HEADER.but(align="center"))
        sheet.set_text(top + at, 0, str(at), middle)
        sheet.set_formula(top + at, 1, device.workers.hardware.name, style.ROW_LABEL)
        sheet.set_text(top + at, at + 1, "", middle.but(fill=style.PANEL))
        for other in range(at + 1, count + 1):
            reached, used = link_told(found, at, other)
            sheet.set_formula(top + at, other + 1, reached, middle)
            sheet.set_formula(top + other, at + 1, used, middle)
            for word, colour in (
                (BUSIEST, style.ALERT),
                (IN_USE, style.NETWORK_TEXT),
                (NOT_USED, style.GREY),
                (NO_LINK, style.GREY),
            ):
                look = style.Style(colour=colour, bold=word in (BUSIEST, IN_USE))
                rule = {"type": "formula", "criteria": _has(word, top + other, at + 1), "format": look}
                for cell in ((top + at, other + 1), (top + other, at + 1)):
                    sheet.conditional.append(((*cell, *cell), rule))
    sheet.set_style(top, 0, count + 1, style.HEADER)
    sheet.blocks.append((row, top + count))
    return top + count + 1


def _link_colours(sheet: Sheet, top: int, first: int, last: int) -> None:
    """Colours of the line, and of what is said of the busiest one."""
    for word, row, colour, rows in (
        (BUSIEST, top + 2, style.ALERT, (top, top + 2)),
        (NOT_USED, top + 2, style.GREY, (top, top + 2)),
        (INFERRED_WORD, top, style.GREY, (top + 1, top + 1)),
    ):
        look = style.Style(colour=colour, bold=word == BUSIEST)
        rule = {"type": "formula", "criteria": _has(word, row, first), "format": look}
        sheet.conditional.append(((rows[0], first, rows[1], last), rule))


def _has(word: str, row: int, column: int) -> str:
    """Whether a cell has a word, as a rule asks."""
    return f'=ISNUMBER(SEARCH("{word}",{xl_rowcol_to_cell(row, column, True, True)}))'


def _chart(sheet: Sheet, found: Devices, row: int) -> None:
    """Decode on each device by what binds its layers."""
    first, last = _TABLE + 1, _TABLE + len(found.devices)
    series = [
        (_COLOURS[part], (sheet.name, first, column, last, column)) for column, part in enumerate(_PARTS, 7)
    ]
    chart = charts.bars(
        "Decode: milliseconds of the layers of each device by what binds them",
        (sheet.name, first, 1, last, 1),
        series,
        "ms",
        (900, 200),
        (0.18, 0.04, 0.8, 0.8),
    )
    title = "Decode, ms of the layers: compute blue, memory orange, network green, overhead grey"
    sheet.set_text(row, 1, title, style.SECTION_HEAD)
    sheet.charts.append((row + 1, 1, chart))


def _splits(book: EstimateBook, sheet: Sheet, found: Devices, row: int) -> None:
    """What other ways to split the layers give."""
    heads = (
        "",
        "split of the layers",
        *("",) * 9,
        "step, ms",
        "prefill, ms",
        "fits",
        "layers of the devices",
    )
    _head(sheet, row, heads)
    graph, tenth = book.estimate.equations, style.table("ms2")
    names: list[Node | str] = ["as it is now", *(split.name for split in found.other_splits.values())]
    times = [
        (book.displayed(graph.serving.tpot_parts[0], "ms"), book.displayed(graph.prefill.time, "ms")),
        *(
            (book.displayed(split.step, "ms"), book.displayed(split.through, "ms"))
            for split in found.other_splits.values()
        ),
    ]
    told = splits_told(found, graph.checks.possible)
    for at, (name, (step, through), split) in enumerate(zip(names, times, told, strict=True), row + 1):
        look = style.ROW_LABEL.but(bold=at == row + 1)
        if isinstance(name, str):
            sheet.set_text(at, 1, name, look)
        else:
            sheet.set_formula(at, 1, name, look)
        sheet.set_formula(at, 11, step, tenth)
        sheet.set_formula(at, 12, through, tenth)
        sheet.set_formula(at, 13, split.fits, style.table("whole").but(align="right"))
        sheet.set_formula(at, _LAST, split.layers, style.Style(size=9.5))
    sheet.set_text(row + len(names) + 2, 1, _NO_PLAN, style.Style(size=9.5, colour=style.GREY))
