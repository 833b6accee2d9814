"""The Plan sheet: which accelerator holds what, and which messages they exchange, live in every degree of parallelism."""

from __future__ import annotations

from mantile.equations.constant import GIGA, MICRO
from mantile.equations.forward import Pass
from mantile.equations.placement import BAND, Placement, placement, shown
from mantile.equations.workers import Workers
from mantile.graph.quantity import Quantity, all_of, join, text, where
from mantile.workbook import style
from mantile.workbook.book import LETTERS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

FIRST_GPU = 2
LAST = FIRST_GPU + BAND - 1
_CELL = style.Style(align="center", right=(style.THIN, style.WHITE), bottom=(style.THIN, style.WHITE))


def plan_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out a grid for each scenario, and for decode workers where they are apart, each with its messages."""
    sheet = book.add_sheet(
        Sheet(
            "Plan",
            "workings",
            "Which accelerator holds what, and what they send each other. Live: change a degree of parallelism and the "
            "grid recolours.",
        )
    )
    sheet.widths = [170, 220, *([118] * BAND)]
    add_title_rows(book, sheet, "Plan", LAST, master)
    sheet.heights[2] = 8
    row = 3
    equations = book.estimate.equations
    for column in range(book.columns):
        for side in equations.workers:
            row = _grid(book, sheet, row, column, side)
        row = _messages(book, sheet, row, column)
    sheet.print_area = (0, 0, row - 1, LAST)
    sheet.one_page = row < 70
    return sheet


def _grid(book: EstimateBook, sheet: Sheet, row: int, column: int, side: Workers) -> int:
    equations = book.estimate.equations
    inputs, held, ranks = side.inputs, side.memory, side.ranks
    who = (
        ""
        if len(equations.workers) == 1
        else "prefill workers, "
        if side is equations.prefill_workers
        else "decode workers, "
    )
    prefix = f"placement.{column}" if side is equations.prefill_workers else f"placement.{column}.decode"
    title = Quantity(
        f"{prefix}.title",
        "Title",
        "1",
        join(
            f"{LETTERS[column]}{' · base' if column == 0 else ''}: {who}",
            "TP ",
            text(inputs.tp, "0"),
            " × groups ",
            text(ranks.groups, "0"),
            " × stages ",
            text(inputs.pp, "0"),
            " × replicas ",
            text(inputs.dp, "0"),
            "; ",
            text(held.used / GIGA, "0.0"),
            " GB used on the fullest accelerator",
        ),
    )
    book.add_quantity(
        sheet, row, 0, title, style.Style(size=12, bold=True, colour=style.NAVY), scenario=column
    )
    sheet.heights[row] = 26
    row += 1
    places = placement(side, equations.ir, prefix, shown(side, book.estimate_values[column]))
    capacity = float(book.estimate_values[column][side.hardware.memory_capacity]) / 1e9
    for band in range(0, len(places.accelerators), BAND):
        row = _band(book, sheet, row, column, places, band, capacity)
    sheet.heights[row] = 14
    return row + 1


def _band(
    book: EstimateBook, sheet: Sheet, row: int, column: int, places: Placement, first: int, capacity: float
) -> int:
    """Eight accelerators side by side; after the first eight in short form."""
    head = row if first else row - 1  # the title above
    sheet.set_text(row, 0, "slice", style.HEADER)
    sheet.set_text(row, 1, "rule", style.HEADER)
    for index in range(BAND):
        book.add_constant(
            sheet,
            row,
            FIRST_GPU + index,
            places.accelerators[first + index],
            style.HEADER.but(align="center", form=style.FRONT["gpu"]),
        )
    row += 1
    start = row
    shown_lines = [line for line in places.lines if (line.short if first else not line.only_short)]
    at: dict[str, int] = {}
    for line in shown_lines:
        memory = line.memory
        look = (
            style.value("GB").but(align="center", form=style.FRONT["held"])
            if memory
            else _CELL.but(
                form='[=1]"●";"–"' if line.form == "used" else style.FRONT.get(line.form, line.form)
            )
        )
        last = line.name == "sum"
        if last:
            look = look.but(bold=True, top=(style.THIN, style.INK))
        edge = {"top": (style.THIN, style.INK)} if last else {}
        sheet.set_text(row, 0, line.label, style.LABEL.but(bold=last, **edge))
        sheet.set_text(row, 1, line.rule, style.SOURCE.but(**edge))
        for index in range(BAND):
            book.add_quantity(
                sheet, row, FIRST_GPU + index, line.figures[first + index], look, scenario=column
            )
        sheet.heights[row] = 22
        at[line.name] = row
        row += 1
    end = max(at[line.name] for line in shown_lines if not line.memory)
    for number, colour in enumerate(style.STAGES):
        sheet.conditional.append(
            (
                (start, FIRST_GPU, end, LAST),
                {
                    "type": "formula",
                    "criteria": f"=AND(C${at['used'] + 1}=1,MOD(C${at['stage'] + 1},{len(style.STAGES)})={number})",
                    "format": style.Style(fill=colour),
                },
            )
        )
    sheet.conditional.append(
        (
            (row - 1, FIRST_GPU, row - 1, LAST),
            {
                "type": "data_bar",
                "bar_solid": True,
                "data_bar_2010": True,
                "bar_color": style.CAPACITY_BAR,
                "min_type": "num",
                "max_type": "num",
                "min_value": 0,
                "max_value": round(capacity, 3),
            },
        )
    )
    sheet.conditional.append(
        (
            (at["used"] + 1, FIRST_GPU, row - 1, LAST),
            {
                "type": "formula",
                "criteria": f"=C${at['used'] + 1}=0",
                "format": style.Style(colour=style.WHITE),
            },
        )
    )
    sheet.heights[row] = 6
    sheet.blocks.append((head, row))
    return row + 1


def _messages(book: EstimateBook, sheet: Sheet, row: int, column: int) -> int:
    """Every kind of message of both phases: over which links, how large, how often, how long."""
    equations = book.estimate.equations
    start = row
    sheet.set_text(row, 0, "Messages of an accelerator", style.SECTION_HEAD)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    row += 1
    for place, head in enumerate(
        (
            "message",
            "between",
            "prefill by",
            "MB each",
            "number",
            "us each",
            "decode by",
            "MB each",
            "number",
            "us each",
        )
    ):
        sheet.set_text(row, place, head, style.HEADER if place < 2 else style.HEADER_RIGHT)
    row += 1
    phases: tuple[tuple[Pass, int], ...] = ((equations.prefill, 2), (equations.decode, 6))
    kinds = [block for block in equations.prefill.blocks if block.network]
    for block in kinds:
        sheet.set_text(row, 0, block.label, style.LABEL)
        sheet.set_text(row, 1, block.section.note, style.SOURCE)
        for phase, place in phases:
            same = next(other for other in phase.blocks if other.id == block.id)
            rows = {figure.id.rsplit(".", 1)[1]: figure for figure in same.section.figures()}
            sent = all_of(rows["count"] > 0, rows["layer_time"] > 0)  # by a lone rank none is
            if "algorithm" in rows:
                sheet.set_formula(
                    row,
                    place,
                    where(sent, rows["algorithm"], "–"),
                    style.TEXT_VALUE.but(colour=style.LINK),
                    scenario=column,
                )
            size = rows.get("message_bytes", same.bytes)
            if size is not None:
                sheet.set_formula(
                    row,
                    place + 1,
                    where(sent, size, 0),
                    style.table("megabytes", colour=style.LINK),
                    scenario=column,
                )
            sheet.set_formula(
                row,
                place + 2,
                where(sent, rows["count"], 0),
                style.table("bill", colour=style.LINK),
                scenario=column,
            )
            sheet.set_formula(
                row,
                place + 3,
                where(sent, rows["layer_time"], 0) * MICRO,
                style.table("watts"),
                scenario=column,
            )
        row += 1
    sheet.blocks.append((start, row))
    sheet.heights[row] = 14
    return row + 1
