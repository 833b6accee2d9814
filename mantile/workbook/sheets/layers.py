"""The Layers sheet: one layer of each kind step by step, then every layer of a pass."""

from __future__ import annotations

from mantile.equations.forward import group_names
from mantile.equations.layers import LIMITS, LayerNumber, Layers, LayerSteps, Line, Step, layers
from mantile.graph.quantity import Quantity
from mantile.ir.modules import Layer
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

CHART_ROWS = 17
# Columns of the steps of a layer.
TIME, START, SHARE, BOUND, SPLIT, FLOPS, READ, SENT = 2, 3, 4, 5, 6, 10, 11, 12
_HEADS = (
    "part",
    "time, us",
    "start, us",
    "share",
    "bound by",
    *(f"{limit}, us" for limit in LIMITS),
    "FLOPs",
    "bytes",
    "sent, bytes",
)
# Columns of the list of layers, by phase: start and time.
LISTED = {"prefill": 3, "decode": 5}
_LAST = 12
_GANTT = 7  # where the charts of a whole pass stand, beside the list
_GANTT_ROWS = 20  # two charts, their titles and the heads fill a page


Places = dict[Layer, dict[str, tuple[int, int]]]


def layers_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out the Layers sheet for the base scenario."""
    equations = book.estimate.equations
    sheet = book.add_sheet(
        Sheet(
            "Layers",
            "workings",
            "Where in the model the time goes, for the base scenario, on one rank. A layer leads to its "
            "steps, a step to its block on Prefill or Decode.",
        )
    )
    sheet.widths = [178, 128, 84, 84, 84, 84, *([84] * 7)]
    add_title_rows(book, sheet, "Layers", _LAST, master)
    sheet.heights[2], sheet.repeat_rows = 6, (0, 1)
    shown = layers(equations)
    row = CHART_ROWS + 3
    places: Places = {}
    for layer, phases in shown.steps.items():
        places[layer] = {}
        for name, steps in phases.items():
            start = row
            row = _steps(book, sheet, row, layer, name, steps)
            places[layer][name] = (start + 2, row - 1)
            row += 1
    row = _List(book, sheet, shown, places).lay_out(row)
    main = max(shown.steps, key=lambda layer: int(layer.count.value or 0))
    for name in shown.passes:
        _chart(book, sheet, name, shown.steps[main][name], places[main][name])
    sheet.print_area = (0, 0, row - 1, _LAST)
    return sheet


def _steps(book: EstimateBook, sheet: Sheet, row: int, layer: Layer, name: str, steps: LayerSteps) -> int:
    """The steps of one layer in one phase; the row after them."""
    ir = book.estimate.equations.ir
    start = row
    sheet.set_text(
        row,
        0,
        f"{name}, one layer" if len(ir.layers) == 1 else f"{name}, one {layer.name} layer",
        style.HEADER,
    )
    for column, head in enumerate(_HEADS, 1):
        sheet.set_text(row, column, head, style.HEADER if column == 1 else style.HEADER_RIGHT)
    row += 1
    bold = {"bold": True, "fill": style.PANEL}
    sheet.set_text(row, 0, "Whole layer", style.LABEL.but(**bold))
    book.add_quantity(sheet, row, TIME, steps.time, style.value("us").but(**bold))
    sheet.set_style(row, 1, _LAST, style.LABEL.but(**bold))
    for step in steps.steps:
        row += 1
        _step(book, sheet, row, step)
    sheet.conditional.append(
        (
            (start + 2, SHARE, row, SHARE),
            {
                "type": "data_bar",
                "bar_solid": True,
                "data_bar_2010": True,
                "bar_color": style.SHARE_BAR,
                "min_type": "num",
                "max_type": "num",
                "min_value": 0,
                "max_value": 1,
            },
        )
    )
    sheet.blocks.append((start, row))
    return row + 1


def _step(book: EstimateBook, sheet: Sheet, row: int, step: Step) -> None:
    """Time, start, share, what binds, time by limit in us; FLOPs and bytes on a rank."""
    us, block = style.value("us"), step.block
    green = us.but(colour=style.LINK)
    book.add_constant(sheet, row, 0, step.name, style.LABEL.but(indent=1))
    group = "messages" if block.network else group_names(book.estimate.equations.ir)[block.group]
    sheet.set_text(row, 1, group, style.SOURCE)
    book.add_quantity(sheet, row, TIME, step.time, green, link=book.link_to(block.layer_time))
    book.add_quantity(sheet, row, START, step.start, us)
    sheet.set_formula(row, SHARE, step.share, style.VALUE.but(form="0%_)_)"))
    sheet.set_formula(row, BOUND, step.bound, style.TEXT_VALUE.but(colour=style.LINK, size=9))
    for column, limit in enumerate(LIMITS, SPLIT):
        if limit in step.parts:
            sheet.set_formula(row, column, step.parts[limit], green)
    amounts = ((FLOPS, step.flops, "FLOP"), (READ, step.read, "B"), (SENT, step.sent, "B"))
    for column, figure, unit in amounts:
        if figure is not None:
            look = style.value(unit).but(colour=style.LINK, form='[=0]"–"_)_);##0.0E+0_)_)')
            sheet.set_formula(row, column, figure, look)


class _List:
    """The list of what a pass goes through, from step overhead to the LM head, with start and time in ms.

    Args:
        places: the first and last row of the steps of a layer of each kind, by phase.
    """

    def __init__(self, book: EstimateBook, sheet: Sheet, shown: Layers, places: Places) -> None:
        self.book, self.sheet, self.shown, self.places = book, sheet, shown, places
        self.looks = {
            name: style.value("us").but(form=style.FRONT[form] + "_)_)")
            for name, form in (("prefill", "ms2"), ("decode", "ms3"))
        }
        self.row = 0

    def lay_out(self, row: int) -> int:
        """Fill the list from a row; the row after it."""
        self.row = row
        sheet = self.sheet
        top = style.HEADER.but(bottom=None)
        for column, head in ((0, ""), *((column, name) for name, column in LISTED.items())):
            sheet.set_text(self.row, column, head, top)
        sheet.set_style(self.row, 0, _GANTT - 1, top)
        self.row += 1
        for column, head in enumerate(
            ("a whole pass", "number of its kind", "stage", "start, ms", "time, ms", "start, ms", "time, ms")
        ):
            sheet.set_text(self.row, column, head, style.HEADER if column < 2 else style.HEADER_RIGHT)
        self.row += 1
        first = self.row
        for line in self.shown.lines:
            self._line(line)
        last = self.row - 1
        bold = {"bold": True, "fill": style.PANEL, "top": (style.THIN, style.INK)}
        sheet.set_text(self.row, 0, "Whole pass", style.LABEL.but(**bold))
        for name, figure in self.shown.passes.items():
            self.book.add_quantity(
                sheet, self.row, LISTED[name] + 1, figure, self.looks[name].but(colour=style.LINK, **bold)
            )
        sheet.set_style(self.row, 0, _GANTT - 1, style.LABEL.but(**bold))
        self.row += 1
        self.sheet.blocks += [(row, first + 2 * _GANTT_ROWS), (first + 2 * _GANTT_ROWS + 1, self.row - 1)]
        self._gantt(first, last)
        return max(self.row, row + 2 * _GANTT_ROWS + 4)

    def _line(self, line: Line) -> None:
        if line.layer is None:
            self.sheet.set_text(self.row, 0, line.label, style.LABEL)
        else:
            self._number(line.layer)
        for name, timing in line.timings.items():
            column, look = LISTED[name], self.looks[name]
            self.book.add_quantity(self.sheet, self.row, column, timing.start, look)
            if line.layer is not None:
                link = f"internal:'Layers'!A{self.places[line.layer.layer][name][0]}"
            else:
                assert timing.source is not None
                look, link = look.but(colour=style.LINK), self.book.link_to(timing.source)
            self.book.add_quantity(self.sheet, self.row, column + 1, timing.time, look, link=link)
        self.row += 1

    def _number(self, layer: LayerNumber) -> None:
        """Which layer it is, and on which stage."""
        look = style.LABEL.but(form='"Layer "0', indent=1)
        self.book.add_constant(self.sheet, self.row, 0, layer.number, look)
        if layer.of_kind is not layer.number:
            look = style.SOURCE.but(form=f'"{layer.layer.name} "0', align="left")
            self.book.add_constant(self.sheet, self.row, 1, layer.of_kind, look)
        self.book.add_quantity(self.sheet, self.row, 2, layer.stage, style.value("number", role="fixed"))

    def _gantt(self, first: int, last: int) -> None:
        """A timeline of a whole pass for each phase, beside the list."""
        row = first - 2
        colours = {"prefill": style.COMPUTE, "decode": style.MEMORY}
        look = style.Style(size=10.5, bold=True, indent=1)
        for name, column in LISTED.items():
            self.book.add_quantity(self.sheet, row, _GANTT, self.shown.titles[name], look)
            chart = charts.timeline(
                f"Timeline of a whole {name} pass: every layer as a bar from its start",
                ("Layers", first, 0, last, 0),
                ("Layers", first, column, last, column),
                [(colours[name], ("Layers", first, column + 1, last, column + 1))],
                (500, 18 * _GANTT_ROWS - 24),
                (0.18, 0.02, 0.78, 0.90),
                unit="ms",
            )
            self.sheet.charts.append((row + 1, _GANTT, chart))
            row += _GANTT_ROWS + 1


def _chart(book: EstimateBook, sheet: Sheet, name: str, steps: LayerSteps, rows: tuple[int, int]) -> None:
    """The steps of a layer as a timeline, at the top of the sheet."""
    first, last = rows
    row, column = 3, 0 if name == "prefill" else 6
    book.add_quantity(sheet, row, column, steps.title, style.Style(size=10.5, bold=True))
    chart = charts.timeline(
        f"Timeline of one layer in {name}: each step as a bar from its start, coloured by what limits it",
        ("Layers", first, 0, last, 0),
        ("Layers", first, START, last, START),
        [
            (style.BOUND_COLOURS[limit], ("Layers", first, at, last, at))
            for at, limit in enumerate(LIMITS, SPLIT)
        ],
        (600, 300),
        (0.16, 0.03, 0.80, 0.84),
    )
    sheet.charts.append((row + 1, column, chart))
