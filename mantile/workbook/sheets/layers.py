"""The Layers sheet: where the time goes, and on which accelerators.

First one layer of each kind by what its steps belong to, for both phases on one page; then a part with the
plan, or with what unlike devices hold. Steps and what charts show stand below what is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, islice
from typing import Any

from mantile.equations.layers import LIMITS, PHASES, End, Group, Layers, PhaseMatrix, Step, layers
from mantile.equations.placement import BAND
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Quantity
from mantile.ir.modules import Layer
from mantile.ir.words import layer_words
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.devices import devices_part
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning, needed_height, room_on_page
from mantile.workbook.sheets.plan import plan_part
from mantile.workbook.text_width import cut_to, width

_COUNT = 44  # width of a column in pixels
_LABEL, _AIR = 150, 8  # least width of the first column, and what it has beside its longest text
_ROOM = 1306  # of the page, at the smallest scale
_MOST = 70  # of a column of a phase
_NARROW = 52  # below it a head has no air behind it
_BARS = 26  # pixels of the bars above the numbers of a row
_TIMELINE_ROWS, _LIMIT_ROWS = 22, 4
_ROW, _SPARE = 18, 15  # height of a row, and of what a page keeps free
_STEP, _AXIS = 13, 48  # least height of a step in a timeline, and what its axis and edges take
_US = '[=0]"–";[<100]0.0;#,##0'
_MS = '[=0]"–";[<10]0.00;#,##0.0'
_SHARE = '[=0]"–";[<0.01]"< 1%";0%'
_STEP_HEADS = _TIME, _BOUND, _START, _SENT = ("us", "bound", "start", "B")  # B: sent
_BOLD = 1.05  # width of bold letters against others
_RANGE = style.Style(bold=True, colour=style.NAVY, valign="bottom")
_DATA = style.Style(size=9.5, colour=style.GREY)


def layers_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out the Layers sheet for the base scenario."""
    sheet = book.add_sheet(
        Sheet(
            "Layers",
            "workings",
            "Where the time goes, for the base scenario, on one rank; then which accelerator holds what. A "
            "number leads to its block in Prefill or Decode.",
        )
    )
    shown = layers(book.estimate.equations, book.estimate_values[0])
    return _Layers(book, sheet, shown).lay_out(master)


class _Layers:
    """The sheet while it is laid out.

    Args:
        shown: what it shows.
    """

    def __init__(self, book: EstimateBook, sheet: Sheet, shown: Layers) -> None:
        self.book, self.sheet, self.shown = book, sheet, shown
        self.count = len(shown.heads)
        self.columns = max(2 * self.count + 3, 2 * BAND)  # some between the phases, and two an accelerator
        self.last = 1 + self.columns
        self.values = book.estimate_values[0]
        self.row = 0
        self.timeline_rows = _TIMELINE_ROWS

    def first(self, phase: str) -> int:
        """The first column of a phase."""
        return 2 if phase == "prefill" else self.last - self.count

    def lay_out(self, master: Quantity) -> Sheet:
        """Everything from top to bottom; what charts show stands below what is printed."""
        sheet, shown = self.sheet, self.shown
        ranges = Program(list(shown.ranges.values())).run(self.book.inputs(0))
        texts = [str(ranges[words]) for words in shown.ranges.values()]
        label = max(_LABEL, *(int(_BOLD * width(text, _RANGE.size) + _AIR) for text in texts))
        wide = min(_MOST, (_ROOM - label - _COUNT) // self.columns)
        sheet.widths = [label, _COUNT, *([wide] * self.columns)]
        add_title_rows(self.book, sheet, "Layers", self.last, master)
        del sheet.cells[0, 0]
        self.book.add_quantity(sheet, 0, 0, shown.title, style.SHEET_TITLE)
        self._key(2)
        self._heads(3)
        self.row = 5
        self._ends(shown.before)
        rows = {layer: self._group(layer) for layer in shown.phases["prefill"].groups}
        self._ends(shown.after)
        if self.book.estimate.equations.ir.prediction:
            self._prediction()
        self._pass()
        self.row += 1
        charts_at = self.row
        self._room_for_timelines()
        after = self.row + 3 + self.timeline_rows + _LIMIT_ROWS
        sheet.blocks.append((self.row, after - 1))
        of_plan = plan_part if self.book.estimate.equations.devices is None else devices_part
        of_plan(self.book, sheet, after)
        self._data(max(row for row, _ in sheet.cells) + 2, rows, charts_at)
        sheet.print_area = (0, 0, after - 1, self.last)
        sheet.freeze = (2, 2)
        return sheet

    def _room_for_timelines(self) -> None:
        """As much as the page leaves; where steps do not fit, a page of their own with a row for each."""
        steps = sum(step.timings["decode"].start is not None for step in self.shown.steps)
        left = int((room_on_page(self.sheet, self.row + 2 + _LIMIT_ROWS) - _SPARE) / _ROW)
        self.timeline_rows = min(left, _TIMELINE_ROWS)
        if left * _ROW < steps * _STEP + _AXIS:
            self.timeline_rows = max(_TIMELINE_ROWS, steps + _AXIS // _ROW)
            self.sheet.breaks.append(self.row)

    def _key(self, row: int) -> None:
        """What numbers and bars are, and the colours of the limits."""
        note = "One layer of each group in us, below it all of them in ms. Bars: what binds the steps."
        self.sheet.set_text(row, 0, note, style.Style(size=9.5, colour=style.GREY))
        for place, limit in enumerate(reversed(LIMITS)):
            look = style.Style(size=9.5, align="right", colour=style.BOUND_TEXTS[limit])
            self.sheet.set_text(row, self.last - 2 * place, f"■ {limit}", look)
        self.sheet.heights[row] = 20

    def _heads(self, row: int) -> None:
        top = style.HEADER.but(bottom=None)
        self.sheet.set_style(row, 0, 1, top)
        self.sheet.set_text(row + 1, 0, "group of layers", style.HEADER)
        self.sheet.set_text(row + 1, 1, "count", style.HEADER_RIGHT)
        for phase, matrix in self.shown.phases.items():
            first = self.first(phase)
            self.book.add_quantity(self.sheet, row, first, matrix.title, top)
            self.sheet.set_style(row, first + 1, first + self.count, top)
            for column, head in enumerate(self.shown.heads, first):
                narrow = self.sheet.widths[column] < _NARROW
                look = style.HEADER.but(align="right", size=style.SMALL) if narrow else style.HEADER_RIGHT
                if phase == "prefill":
                    self.book.add_constant(self.sheet, row + 1, column, head, look)
                else:
                    self.sheet.set_text(row + 1, column, str(head.value), look)
            self.sheet.set_text(row + 1, first + self.count, "layer", style.HEADER_RIGHT)

    def _ends(self, ends: tuple[End, ...]) -> None:
        """What runs once: a row of one number for each phase."""
        for end in ends:
            line = {"bottom": (style.THIN, style.FAINT)}
            self.sheet.set_text(
                self.row,
                0,
                cut_to(end.label, style.LABEL.size, self.sheet.widths[0]),
                style.LABEL.but(colour=style.GREY, **line),
            )
            self.sheet.set_text(self.row, 1, "1", style.TEXT_VALUE.but(colour=style.GREY, **line))
            for phase, (time, source) in end.times.items():
                column = self.first(phase) + self.count
                look = _value(_US, colour=style.LINK, **line)
                if isinstance(time, Input):
                    self.book.add_constant(self.sheet, self.row, column, time, look.but(colour=style.GREY))
                else:
                    link = None if source is None else self.book.link_to(source)
                    self.book.add_quantity(self.sheet, self.row, column, time, look, link=link)
                self.sheet.set_style(self.row, self.first(phase), column - 1, style.LABEL.but(**line))
            self.sheet.heights[self.row] = 19
            self.row += 1

    def _group(self, layer: Layer) -> int:
        """Equal layers: one of them, and all together. The row of the one."""
        sheet, row = self.sheet, self.row
        sheet.set_formula(row, 0, self.shown.ranges[layer], _RANGE)
        many = style.value("layer").but(form='#,##0" ×"_)', bold=True, colour=style.NAVY, valign="bottom")
        sheet.set_formula(row, 1, layer.count, many, link=self.book.link_to(layer.count))
        words, look = (
            layer_words(layer),
            style.Style(size=9.5, colour=style.GREY, fill=style.PANEL, wrap=True),
        )
        sheet.set_text(row + 1, 0, words, look)
        sheet.set_text(row + 1, 1, "all, ms", style.Style(size=9.3, colour=style.GREY, fill=style.PANEL))
        sheet.heights |= {row: 20 + _BARS, row + 1: max(20, needed_height(words, look, sheet.widths[0]))}
        for phase, matrix in self.shown.phases.items():
            self._cells(phase, matrix.groups[layer])
        sheet.blocks.append((row, row + 1))
        self.row += 2
        return row

    def _cells(self, phase: str, group: Group) -> None:
        """One layer by column, and below all layers of the group."""
        sheet, row, first = self.sheet, self.row, self.first(phase)
        below = {"fill": style.PANEL}
        for place, (cell, everywhere) in enumerate(zip(group.cells, group.all_cells, strict=True)):
            look = _value(_US, colour=style.LINK, valign="bottom")
            if isinstance(cell, Input):
                self.book.add_constant(sheet, row, first + place, cell, look.but(colour=style.GREY))
            else:
                self.book.add_quantity(
                    sheet, row, first + place, cell, look, link=self._block(phase, group, place)
                )
            if everywhere is not None:
                self.book.add_quantity(sheet, row + 1, first + place, everywhere, _value(_MS, **below))
        column = first + self.count
        self.book.add_quantity(sheet, row, column, group.time, _value(_US, bold=True, valign="bottom"))
        self.book.add_quantity(sheet, row + 1, column, group.all_time, _value(_MS, bold=True, **below))
        sheet.set_style(row + 1, first, column, _value(_MS, **below))

    def _block(self, phase: str, group: Group, place: int) -> str:
        """A link to the longest step of a column in a layer of a group."""
        kind = next(k for k, g in self.shown.phases[phase].groups.items() if g is group)
        at = list(self.shown.phases[phase].groups).index(kind)
        head = self.shown.heads[place].value
        timings = [
            step.timings[phase]
            for step in self.shown.steps
            if step.column.value == head and step.within[at].value
        ]
        longest = max(timings, key=lambda timing: float(self.values[timing.block.layer_time]))
        return self.book.link_to(longest.block.layer_time)

    def _prediction(self) -> None:
        """A prediction layer that the checkpoint holds and no pass runs."""
        look = style.LABEL.but(colour=style.GREY)
        self.sheet.set_text(self.row, 0, "Prediction layers (MTP)", look)
        for phase in PHASES:
            words = style.TEXT_VALUE.but(colour=style.GREY, size=9.5)
            self.sheet.set_text(self.row, self.first(phase) + self.count, self._drafting, words)
        self.sheet.heights[self.row] = 19
        self.row += 1

    @property
    def _drafting(self) -> str:
        """Where the time of drafting stands, or that there is none."""
        drafts = "speculation" in self.book.estimate.equations.rows.features
        return "under Drafter, where they draft" if drafts else "not run: no speculation"

    def _pass(self) -> None:
        """The whole pass by column, its shares, and whether everything shown adds up to it."""
        sheet, row, shown = self.sheet, self.row, self.shown
        above = {"top": (style.THIN, style.INK)}
        below = {"bottom": (style.DOUBLE, style.INK)}
        sheet.set_text(row, 0, "Whole pass, ms", style.LABEL.but(bold=True, **above))
        layers_look = style.value("layer").but(bold=True, **above)
        total = self.book.estimate.equations.ir.total_layers
        sheet.set_formula(row, 1, total, layers_look, link=self.book.link_to(total))
        sheet.set_text(row + 1, 0, "Share of the pass", style.LABEL.but(**below))
        sheet.set_style(row + 1, 1, 1, style.LABEL.but(**below))
        for phase, matrix in shown.phases.items():
            first = self.first(phase)
            bold = _value(_MS, bold=True, **above)
            last = first + self.count
            for place, figure in enumerate(matrix.columns, first):
                self.book.add_quantity(sheet, row, place, figure, bold)
            self.book.add_quantity(sheet, row, last, matrix.time, bold.but(colour=style.LINK))
            for place, share in enumerate(matrix.shares, first):
                sheet.set_formula(row + 1, place, share, _value(_SHARE, bold=place == last, **below))
            sheet.conditional.append(((row + 1, first, row + 1, last - 1), _bar(style.SHARE_BAR)))
            self._check(row + 2, phase, matrix)
        sheet.heights |= {row: 22, row + 1: 22, row + 2: 20}
        self.row += 3

    def _check(self, row: int, phase: str, matrix: PhaseMatrix) -> None:
        """Whether groups, ends and overhead sum to the pass."""
        look = style.Style(size=9.5, bold=True, colour=style.PASS)
        self.sheet.set_formula(row, self.first(phase), matrix.sums, look)
        mark_beginning(self.sheet, row, self.first(phase), "✗", style.FAIL)

    # --- charts and what they show -----------------------------------------------------------------

    def _data(self, row: int, rows: Mapping[Layer, int], charts_at: int) -> None:
        """The steps and what charts show, from a row; the charts."""
        sheet, shown = self.sheet, self.shown
        sheet.set_text(row, 0, "Steps and chart data (live, not printed)", style.SECTION_HEAD)
        sheet.set_style(row, 1, self.last, style.SECTION_HEAD)
        self.row = row + 1
        if shown.order is not None:
            sheet.set_text(self.row, 0, "layers as made", _DATA)
            self.book.add_quantity(sheet, self.row, 1, shown.order, _DATA)
            self.row += 1
        for phase, matrix in shown.phases.items():
            sheet.set_text(self.row, 0, f"sum shown, {phase}, ms", _DATA)
            self.book.add_quantity(sheet, self.row, 2, matrix.shown, _value("0.000"))
            self.row += 1
        self._limits(charts_at + 2 + self.timeline_rows)
        for layer, at in rows.items():
            self._bars(layer, at)
        first = self.row + 2
        columns = self._steps(first)
        timeline = sum(step.timings["decode"].start is not None for step in shown.steps)
        for phase in PHASES:
            self._timeline(phase, charts_at, first, first + timeline - 1, columns[phase])

    def _limits(self, at: int) -> None:
        """What binds the passes, as two bars of 100 %."""
        sheet, first = self.sheet, self.row
        for phase, matrix in self.shown.phases.items():
            sheet.set_text(self.row, 0, phase, _DATA)
            for column, limit in enumerate(LIMITS, 2):
                sheet.set_formula(self.row, column, matrix.limits[limit], _value("0.0%"))
            self.row += 1
        sheet.set_text(at, 0, "What bounds the passes", style.SECTION_HEAD)
        sheet.set_style(at, 1, self.last, style.SECTION_HEAD)
        inks = {"compute": style.WHITE}
        chart = charts.split(
            "Shares of prefill and decode that compute, memory, network and overhead take",
            ("Layers", first, 0, first + 1, 0),
            [
                (
                    style.BOUND_COLOURS[limit],
                    inks.get(limit, style.INK),
                    ("Layers", first, at_, first + 1, at_),
                )
                for at_, limit in enumerate(LIMITS, 2)
            ],
            (int(sum(sheet.widths)) - 16, _ROW * _LIMIT_ROWS - 14),
            (0.08, 0.04, 0.90, 0.92),
        )
        sheet.charts.append((at + 1, 0, chart))

    def _bars(self, layer: Layer, at: int) -> None:
        """The bars above the numbers of a group: four rows of data, a chart for each phase."""
        sheet, first_row = self.sheet, self.row
        for limit in LIMITS:
            sheet.set_text(self.row, 0, f"{layer.name}, {limit}"[:40], _DATA)
            for phase, matrix in self.shown.phases.items():
                for (place, of), figure in matrix.groups[layer].bars.items():
                    if of == limit:
                        self.book.add_quantity(
                            sheet, self.row, self.first(phase) + place, figure, _value("0.0")
                        )
            self.row += 1
        for phase in PHASES:
            first, last = self.first(phase), self.first(phase) + self.count - 1
            chart = charts.columns(
                f"Time of one layer by group of steps in {phase}, {layer.name}, coloured by what binds",
                [
                    (
                        style.BOUND_COLOURS[limit],
                        ("Layers", first_row + place, first, first_row + place, last),
                    )
                    for place, limit in enumerate(LIMITS)
                ],
                (int(sheet.widths[first]) * self.count, _BARS),
            )
            sheet.charts.append((at, first, chart))

    def _steps(self, row: int) -> dict[str, dict[str, int]]:
        """Every step once, from a row on; the columns of each phase by their heads."""
        shown, sheet = self.shown, self.sheet
        free = count(2)
        look = style.HEADER.but(align="left", shrink=True)
        within = [f"in {place}" for place in range(1, len(shown.steps[0].within) + 1)]
        for column, head in zip((0, 1, *islice(free, len(within))), ("step", "of", *within), strict=True):
            sheet.set_text(row - 1, column, head, look)
        columns = {phase: dict(zip((*_STEP_HEADS, *LIMITS), free, strict=False)) for phase in PHASES}
        for phase, heads in columns.items():
            sheet.set_text(row - 2, min(heads.values()), phase, _DATA.but(bold=True))
            for head, column in heads.items():
                sheet.set_text(row - 1, column, head, look)
        for at, step in enumerate(shown.steps, row):
            self._step(at, step, columns)
        self.row = row + len(shown.steps)
        return columns

    def _step(self, row: int, step: Step, columns: Mapping[str, Mapping[str, int]]) -> None:
        """One step in both phases."""
        self.book.add_constant(self.sheet, row, 0, step.name, _DATA)
        self.book.add_constant(self.sheet, row, 1, step.column, _DATA.but(shrink=True))
        for column, flag in enumerate(step.within, 2):
            self.book.add_constant(self.sheet, row, column, flag, _DATA)
        for phase, timing in step.timings.items():
            at, link = columns[phase], self.book.link_to(timing.block.layer_time)
            look, bound = _value("0.0", colour=style.LINK), _DATA.but(colour=style.LINK, shrink=True)
            self.book.add_quantity(self.sheet, row, at[_TIME], timing.time, look, link=link)
            self.book.add_quantity(self.sheet, row, at[_BOUND], timing.bound, bound)
            if timing.start is not None:
                self.book.add_quantity(self.sheet, row, at[_START], timing.start, _value("0.0"))
            if timing.sent is not None:
                look = _value("##0.0E+0", colour=style.LINK)
                self.sheet.set_formula(row, at[_SENT], timing.sent, look)
            for limit, part in timing.parts.items():
                self.book.add_quantity(self.sheet, row, at[limit], part, _value("0.0"))

    def _timeline(self, phase: str, at: int, first: int, last: int, columns: Mapping[str, int]) -> None:
        """The steps of a layer of the largest group as a timeline."""
        sheet = self.sheet

        def steps(column: int) -> charts.Range:
            return ("Layers", first, column, last, column)

        left = 0 if phase == "prefill" else self.first("decode")
        right = 2 + self.count if phase == "prefill" else self.last
        self.book.add_quantity(sheet, at, left, self.shown.phases[phase].layer_title, style.SECTION_HEAD)
        sheet.set_style(at, left + 1, right, style.SECTION_HEAD)
        chart = charts.timeline(
            f"Timeline of one layer in {phase}: each step as a bar from its start, by what limits it",
            steps(0),
            steps(columns[_START]),
            [(style.BOUND_COLOURS[limit], steps(columns[limit])) for limit in LIMITS],
            (int(sum(sheet.widths[left : right + 1])) - 8, _ROW * self.timeline_rows - 8),
            (0.20, 0.02, 0.76, 0.88),
        )
        sheet.charts.append((at + 1, left, chart))


def _value(form: str, **changes: Any) -> style.Style:
    """A number at the right, with air behind it."""
    return style.aired(form, **changes)


def _bar(colour: str) -> dict[str, Any]:
    """Data bars from 0 to twice the whole, so that they leave room for the number."""
    return {
        "type": "data_bar",
        "bar_solid": True,
        "data_bar_2010": True,
        "bar_color": colour,
        "min_type": "num",
        "max_type": "num",
        "min_value": 0,
        "max_value": 1,
    }
