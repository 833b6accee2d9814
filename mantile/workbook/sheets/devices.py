"""Unlike devices as a part of Layers: who holds which layers, whether each fits, what sets the pace."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.devices import SPLIT_WORDS, Devices
from mantile.graph.quantity import Node, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_part, needed_height

# Words of the picture that colours follow, as devices.eq has them.
BUSIEST, INFERRED_WORD, NOT_USED, NO_LAYERS = "busiest", "inferred", "not used", "no layers"
IN_USE, NO_LINK = "in use", "none"
_NAME, _NUMBER, _FIRST = 0, 1, 2  # columns
_BOX_WIDTH = 160  # pixels of a box of the picture, and of a link beside it
_PARTS = ("compute", "memory", "network", "overhead")
_COLOURS = {
    "compute": style.COMPUTE,
    "memory": style.MEMORY,
    "network": style.NETWORK,
    "overhead": style.OVERHEAD,
}
_HEADS = (
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
_LINK_TO = _FIRST + len(_HEADS) - 1  # column
_WORDS = style.Style(size=9.5, indent=1)
_EDGE = (style.THIN, style.SECOND)
_BOX = style.Style(size=9.5, align="center_across")
_LINK = style.Style(size=9.5, align="center_across")
_NO_PLAN = (
    "A grid of slices is of equal accelerators. Other splits stand above; another first device is chosen on "
    "What-if; others are variants of the scenario."
)


def devices_part(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """Draw them from a row on, in the columns that the sheet has."""
    found = book.estimate.equations.devices
    assert found is not None
    note = "Layers, memory and links are cells of Inputs. Times of one pass; decode by what binds its layers."
    row = add_part(sheet, start := row, "Devices", note, len(sheet.widths) - 1)
    _finding(book, sheet, row)
    table = row + 2
    row = _table(book, sheet, found, table)
    sheet.blocks.append((start, row))
    row = _topology(book, sheet, found, row + 1)
    if found.devices[0].workers.inputs.links is not None:
        row = _links(book, sheet, found, row + 1)
    row = _chart(sheet, found, table + 1, row + 1)
    _splits(book, sheet, row)


def _said(book: EstimateBook, identifier: str) -> Node:
    """What a cell of this part has: the expression of a row that stands nowhere else."""
    return book.estimate.equations.rows[identifier].body


def _finding(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """What it comes to, in words."""
    sheet.set_formula(
        row, 0, _said(book, "devices.shown.finding"), style.Style(size=14, bold=True, colour=style.NAVY)
    )
    sheet.heights[row] = 26


def _head(sheet: Sheet, row: int, name: str, heads: tuple[str, ...]) -> None:
    """Names of columns: of the first, and from the figures on; the last is of words."""
    sheet.set_text(row, _NAME, name, style.HEADER)
    for column, head in enumerate(heads, _FIRST):
        is_words = column == _FIRST + len(heads) - 1
        look = style.HEADER.but(indent=1) if is_words else style.HEADER_WRAP
        sheet.set_text(row, column, head, look)
        needed = needed_height(head, look, sheet.widths[column])
        sheet.heights[row] = max(sheet.heights.get(row, 20), needed)
    sheet.set_style(row, 0, len(sheet.widths) - 1, style.HEADER)


def _table(book: EstimateBook, sheet: Sheet, found: Devices, top: int) -> int:
    """A row for each device, and what all hold; the row after them."""
    _head(sheet, top, "device", _HEADS)
    row = top
    whole, tenth = style.table("whole"), style.table("ms2")
    for row, device in enumerate(found.devices, top + 1):
        place = device.number - 1
        decode, prefill = (found.stages[phase][place] for phase in ("decode", "prefill"))
        own = f"{device.prefix}shown"
        way = own if device.link is None else f"{device.link.home}.shown"
        sheet.set_formula(row, _NAME, device.workers.rows["hardware.name"], style.ROW_LABEL)
        sheet.set_text(row, _NUMBER, str(device.number), style.table("whole").but(align="center"))
        figures: list[tuple[Node, style.Style]] = [
            (_said(book, f"{own}.count"), whole),
            (_said(book, f"{own}.layers"), whole.but(bold=True)),
            (_said(book, f"{own}.which"), whole.but(align="right")),
            (book.displayed(device.workers.rows["memory.used"], "GB"), tenth),
            (book.displayed(device.workers.rows["memory.usable"], "GB"), tenth),
            *((book.displayed(decode.parts[part], "ms"), tenth) for part in _PARTS),
            (book.displayed(decode.time, "ms"), tenth.but(bold=True)),
            (book.displayed(prefill.time, "ms"), tenth),
            (_said(book, f"{own}.room"), whole),
            (_said(book, f"{way}.way"), _WORDS),
        ]
        for column, (figure, look) in enumerate(figures, _FIRST):
            sheet.set_formula(row, column, figure, look)
    total = row + 1
    look = style.emphasised(whole, 1)
    sheet.set_text(total, _NAME, "All devices", style.emphasised(style.ROW_LABEL, 1))
    for column, name in enumerate(("counted", "layers"), _FIRST):
        sheet.set_formula(total, column, _said(book, f"devices.shown.{name}"), look)
    sheet.set_style(total, 0, len(sheet.widths) - 1, look)
    return total + 1


def _topology(book: EstimateBook, sheet: Sheet, found: Devices, row: int) -> int:
    """Devices as boxes of cells, three side by side, with the link to the next between them.

    Colours follow the words in the cells.
    """
    words = "Topology: the busiest link brown, a stated one green, an inferred one dashed, an unused one grey"
    sheet.set_text(row, _NAME, words, style.SECTION_HEAD)
    wide = ceil(_BOX_WIDTH / sheet.widths[_FIRST])
    boxes = ((_NAME, _NUMBER), *((_FIRST + n * wide, _FIRST + (n + 1) * wide - 1) for n in (1, 3)))
    sheet.heights[row], sheet.heights[row + 1] = 22, 6
    for place, device in enumerate(found.devices):
        band, across = divmod(place, len(boxes))
        top, (first, last) = row + 2 + band * 4, boxes[across]
        own = f"{device.prefix}shown.box"
        fill = style.STAGES[place % len(style.STAGES)]
        looks = (_BOX.but(bold=True, size=11, colour=style.NAVY), _BOX, _BOX)
        for below, (name, look) in enumerate(zip(("", "_layers", "_memory"), looks, strict=True)):
            line = _said(book, f"{own}{name}")
            edges = {
                "top": _EDGE if below == 0 else None,
                "bottom": _EDGE if below == len(looks) - 1 else None,
            }
            sheet.set_formula(top + below, first, line, look.but(fill=fill, **edges))
            sheet.set_style(top + below, first, last, look.but(fill=fill, **edges))
        empty = _has(NO_LAYERS, top + 1, first)
        rule = {"type": "formula", "criteria": empty, "format": style.Style(fill=style.PANEL)}
        sheet.conditional.append(((top, first, top + 2, last), rule))
        if device.link is None:
            continue
        start, end = last + 1, last + wide
        for below, name in enumerate(("kind", "line", "details")):
            look = _LINK.but(colour=style.NETWORK_TEXT if below == 1 else style.INK, bold=below < 2)
            sheet.set_formula(top + below, start, _said(book, f"{device.link.home}.shown.{name}"), look)
            sheet.set_style(top + below, start, end, look)
        _link_colours(sheet, top, start, end)
        sheet.heights[top + 3] = 10
    last_row = row + 2 + (len(found.devices) - 1) // len(boxes) * 4 + 3
    sheet.blocks.append((row, last_row))
    return last_row


def _links(book: EstimateBook, sheet: Sheet, found: Devices, row: int) -> int:
    """Every two devices: bandwidth above the diagonal, below it whether anything goes over the link."""
    words = "Links: GB/s above the diagonal, a wave where inferred; below it whether anything goes over them"
    sheet.set_text(row, _NAME, words, style.SECTION_HEAD)
    top, count = row + 1, len(found.devices)
    sheet.set_formula(top, _NAME, _said(book, "devices.shown.links"), style.HEADER)
    middle = style.table("whole").but(align="center")
    for device in found.devices:
        at = device.number
        sheet.set_text(top, at + 1, str(at), style.HEADER.but(align="center"))
        sheet.set_formula(top + at, _NAME, device.workers.rows["hardware.name"], style.ROW_LABEL)
        sheet.set_text(top + at, _NUMBER, str(at), middle)
        sheet.set_text(top + at, at + 1, "", middle.but(fill=style.PANEL))
        for other in range(at + 1, count + 1):
            home = next(link.home for link in found.links if link.ends == (at, other))
            sheet.set_formula(top + at, other + 1, _said(book, f"{home}.shown.reached"), middle)
            sheet.set_formula(top + other, at + 1, _said(book, f"{home}.shown.used"), middle)
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


def _chart(sheet: Sheet, found: Devices, first: int, row: int) -> int:
    """Decode on each device by what binds its layers; the row after it.

    Args:
        first: the row of the first device.
    """
    last, of_parts = first + len(found.devices) - 1, _FIRST + _HEADS.index(f"{_PARTS[0]}, ms")
    series = [
        (_COLOURS[part], (sheet.name, first, column, last, column))
        for column, part in enumerate(_PARTS, of_parts)
    ]
    chart = charts.bars(
        "Decode: milliseconds of the layers of each device by what binds them",
        (sheet.name, first, _NAME, last, _NAME),
        series,
        "ms",
        (900, 200),
        (0.18, 0.04, 0.8, 0.8),
    )
    title = "Decode, ms of the layers: compute blue, memory orange, network green, overhead grey"
    sheet.set_text(row, _NAME, title, style.SECTION_HEAD)
    sheet.charts.append((row + 1, _NAME, chart))
    sheet.blocks.append((row, row + 12))
    return row + 13


def _splits(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """What other ways to split the layers give."""
    _head(sheet, row, "split of the layers", ("step, ms", "prefill, ms", "fits", "layers of the devices"))
    graph, tenth = book.estimate.equations, style.table("ms2")
    now = (graph.serving.tpot_parts[0], graph.prefill.time)
    splits: list[tuple[str, Sequence[Quantity], str]] = [("as it is now", now, "devices.shown")]
    for way, words in SPLIT_WORDS.items():
        of_way = [graph.rows[f"devices.other.{way}.{name}"] for name in ("step", "through")]
        splits.append((f"split {words}", of_way, f"devices.other.{way}.shown"))
    for at, (name, times, own) in enumerate(splits, row + 1):
        sheet.set_text(at, _NAME, name, style.ROW_LABEL.but(bold=at == row + 1))
        figures = (
            *((book.displayed(time, "ms"), tenth) for time in times),
            (_said(book, f"{own}.possible"), style.table("whole").but(align="right")),
            (_said(book, f"{own}.split"), _WORDS),
        )
        for column, (figure, look) in enumerate(figures, _FIRST):
            sheet.set_formula(at, column, figure, look)
    last = row + len(splits) + 2
    sheet.set_text(last, _NAME, _NO_PLAN, style.Style(size=9.5, colour=style.GREY))
    sheet.blocks.append((row, last))
