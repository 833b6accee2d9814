"""The Layers sheet: one layer of each kind step by step, then every layer of a pass with its start and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from mantile.equations.collectives import sums_after, sums_inside
from mantile.equations.constant import MICRO, MILLI
from mantile.equations.display import grouped
from mantile.equations.forward import Pass, group_names
from mantile.equations.plan import scope
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    floor,
    index,
    join,
    match,
    maximum,
    span,
    sum_range,
    text,
    where,
)
from mantile.ir.modules import Layer, Module
from mantile.workbook import charts, style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows

LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
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


@dataclass(frozen=True)
class _Kind:
    """One layer of a kind: the rows of its steps by phase, their times, and the whole."""

    layer: Layer
    rows: dict[str, tuple[int, int]]
    names: dict[str, tuple[Input, ...]]
    times: dict[str, tuple[Quantity, ...]]
    whole: dict[str, Quantity]


def steps_of_layer(
    phase: Pass, layer: Layer, after: tuple[Module, ...], inside: tuple[Module, ...]
) -> list[tuple[str, Block]]:
    """The blocks of one layer in execution order, messages after mixer and FFN, and where a mixer needs a sum inside."""
    blocks = {block.id: block for block in phase.blocks}
    steps: list[tuple[str, Block]] = []
    for module in layer.modules:
        steps.append((module.short, blocks[module.id]))
        if module in inside:
            steps.append((f"{module.short} sum", blocks["inner_reduce"]))
        elif module in after:
            steps.append(
                (
                    f"messages {1 + sum(block.id == 'all_reduce' for _, block in steps)}",
                    phase.after[scope(module)],
                )
            )
    return steps


def part_of(block: Block, limit: str) -> Node | None:
    """The share of one execution of a block that a limit accounts for, in seconds; None where it never does."""
    if limit == OVERHEAD:
        return block.launch
    return limited(
        block, limit, block.layer_time if block.launch is None else block.layer_time - block.launch
    )


def layers_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out the Layers sheet for the base scenario."""
    equations = book.estimate.equations
    sheet = book.add_sheet(
        Sheet(
            "Layers",
            "workings",
            "Where in the model the time goes, for the base scenario, on one rank. A layer leads to its steps, "
            "a step to its block on Prefill or Decode.",
        )
    )
    sheet.widths = [178, 128, 84, 84, 84, 84, *([84] * 7)]
    add_title_rows(book, sheet, "Layers", _LAST, master)
    sheet.heights[2], sheet.repeat_rows = 6, (0, 1)
    phases = {"prefill": equations.prefill, "decode": equations.decode}
    row = CHART_ROWS + 3
    kinds: list[_Kind] = []
    for number, layer in enumerate(equations.ir.layers):
        for name in phases:
            if len(kinds) == number:
                kinds.append(_Kind(layer, {}, {}, {}, {}))
            row = _steps(book, sheet, row, number, kinds[-1], name, phases[name]) + 1
    row = _List(book, sheet, kinds, phases).lay_out(row)
    main = max(kinds, key=lambda kind: int(kind.layer.count.value or 0))
    for name in phases:
        _chart(book, sheet, main, name)
    sheet.print_area = (0, 0, row - 1, _LAST)
    return sheet


def _steps(
    book: EstimateBook, sheet: Sheet, row: int, number: int, kind: _Kind, name: str, phase: Pass
) -> int:
    """The steps of one layer in one phase: time, start, share, what binds, time by limit in us; FLOPs and bytes on a rank."""
    ir = book.estimate.equations.ir
    us, called = style.value("us"), group_names(ir)
    green = us.but(colour=style.LINK)
    start = row
    sheet.set_text(
        row,
        0,
        f"{name}, one layer" if len(ir.layers) == 1 else f"{name}, one {kind.layer.name} layer",
        style.HEADER,
    )
    for column, words in enumerate(_HEADS, 1):
        sheet.set_text(row, column, words, style.HEADER if column == 1 else style.HEADER_RIGHT)
    row += 1
    everything = row
    steps = steps_of_layer(phase, kind.layer, sums_after(ir), sums_inside(ir))
    names: list[Input] = []
    times: list[Quantity] = []
    for short, block in steps:
        row += 1
        names.append(
            Input(
                f"layers.name.{number}.{name}.{len(names)}",
                f"Step {len(names)}",
                "1",
                short,
                shared=True,
                fixed=True,
            )
        )
        book.add_constant(sheet, row, 0, names[-1], style.LABEL.but(indent=1))
        sheet.set_text(row, 1, "messages" if block.network else called[block.group], style.SOURCE)
        times.append(
            Quantity(
                f"layers.step.{number}.{name}.{len(times)}",
                f"Time of {short}",
                "us",
                block.layer_time * MICRO,
            )
        )
        book.add_quantity(sheet, row, TIME, times[-1], green, link=book.link_to(block.layer_time))
        sent = block.layer_time > 0  # messages are, but for those of a lone rank
        sheet.set_formula(
            row,
            BOUND,
            where(sent, block.bound, "–") if block.network else block.bound,
            style.TEXT_VALUE.but(colour=style.LINK, size=9),
        )
        for column, limit in enumerate(LIMITS, SPLIT):
            part = part_of(block, limit)
            if part is not None:
                sheet.set_formula(row, column, part * MICRO, green)
        for column, figure, unit in (
            (FLOPS, block.flops, "FLOP"),
            (SENT if block.network else READ, block.bytes, "B"),
        ):
            if figure is not None:
                sheet.set_formula(
                    row,
                    column,
                    where(sent, figure, 0) if block.network else figure,
                    style.value(unit).but(colour=style.LINK, form='[=0]"–"_)_);##0.0E+0_)_)'),
                )
    whole_layer = Quantity(
        f"layers.layer.{number}.{name}", f"One layer, {kind.layer.name}, {name}", "us", sum_range(span(times))
    )
    bold = {"bold": True, "fill": style.PANEL}
    sheet.set_text(everything, 0, "Whole layer", style.LABEL.but(**bold))
    book.add_quantity(sheet, everything, TIME, whole_layer, us.but(**bold))
    sheet.set_style(everything, 1, _LAST, style.LABEL.but(**bold))
    before: Node | None = None
    for line, time in enumerate(times, everything + 1):
        begin = Quantity(
            f"layers.start.{number}.{name}.{line}",
            f"Start of step {line}",
            "us",
            time - time if before is None else before,
        )
        book.add_quantity(sheet, line, START, begin, us)
        sheet.set_formula(line, SHARE, time / whole_layer, style.VALUE.but(form="0%_)_)"))
        before = begin + time
    sheet.conditional.append(
        (
            (everything + 1, SHARE, row, SHARE),
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
    kind.rows[name], kind.names[name] = (everything + 1, row), tuple(names)
    kind.times[name], kind.whole[name] = tuple(times), whole_layer
    sheet.blocks.append((start, row))
    return row + 1


class _List:
    """The list of what a pass goes through, from step overhead and embedding to the LM head, with start and time in ms."""

    def __init__(self, book: EstimateBook, sheet: Sheet, kinds: list[_Kind], phases: dict[str, Pass]) -> None:
        self.book, self.sheet, self.kinds, self.phases = book, sheet, kinds, phases
        self.looks = {
            name: style.value("us").but(form=style.FRONT[form] + "_)_)")
            for name, form in (("prefill", "ms2"), ("decode", "ms3"))
        }
        self.ends: dict[str, tuple[Quantity, Quantity]] = {}
        self.row = 0

    def lay_out(self, row: int) -> int:
        """Fill the list from a row; the row after it."""
        self.row = row
        sheet, equations = self.sheet, self.book.estimate.equations
        top = style.HEADER.but(bottom=None)
        for column, words in ((0, ""), *((column, name) for name, column in LISTED.items())):
            sheet.set_text(self.row, column, words, top)
        sheet.set_style(self.row, 0, _GANTT - 1, top)
        self.row += 1
        for column, words in enumerate(
            ("a whole pass", "number of its kind", "stage", "start, ms", "time, ms", "start, ms", "time, ms")
        ):
            sheet.set_text(self.row, column, words, style.HEADER if column < 2 else style.HEADER_RIGHT)
        self.row += 1
        first = self.row
        self._once(
            "step", "Step overhead", {name: phase.times.figures[-1] for name, phase in self.phases.items()}
        )
        if equations.ir.vision is not None:
            self._once("vision", "Vision tower", {"prefill": self._block("prefill", "vision").time})
        self._once(
            "embedding",
            "Embedding, its messages",
            {
                name: self._block(name, "embedding").time + phase.after["attention"].layer_time
                for name, phase in self.phases.items()
            },
        )
        self._layers()
        for end in equations.ir.modules:
            if end.layers is None and end.id != "embedding":
                self._once(end.id, end.label, {name: self._block(name, end.id).time for name in self.phases})
        for identifier, label in (
            ("context", "Context exchange"),
            ("host", "Host memory"),
            ("p2p", "Stage to stage"),
        ):
            if any(found.id == identifier for found in equations.decode.blocks):
                self._once(
                    identifier, label, {name: self._block(name, identifier).time for name in self.phases}
                )
        last = self.row - 1
        bold = {"bold": True, "fill": style.PANEL, "top": (style.THIN, style.INK)}
        sheet.set_text(self.row, 0, "Whole pass", style.LABEL.but(**bold))
        for name, phase in self.phases.items():
            figure = Quantity(f"layers.pass.{name}", f"Whole pass, {name}", "ms", phase.time * MILLI)
            self.book.add_quantity(
                sheet, self.row, LISTED[name] + 1, figure, self.looks[name].but(colour=style.LINK, **bold)
            )
        sheet.set_style(self.row, 0, _GANTT - 1, style.LABEL.but(**bold))
        self.row += 1
        self.sheet.blocks += [(row, first + 2 * _GANTT_ROWS), (first + 2 * _GANTT_ROWS + 1, self.row - 1)]
        self._gantt(first, last)
        return max(self.row, row + 2 * _GANTT_ROWS + 4)

    def _block(self, name: str, identifier: str) -> Block:
        return next(found for found in self.phases[name].blocks if found.id == identifier)

    def _line(self, identifier: str, name: str, time: Node, look: style.Style, link: str) -> None:
        column = LISTED[name]
        before = self.ends.get(name)
        lasts = Quantity(f"layers.{identifier}.{name}.time", f"Time, {identifier}, {name}", "ms", time)
        begin = Quantity(
            f"layers.{identifier}.{name}.start",
            f"Start, {identifier}, {name}",
            "ms",
            lasts - lasts if before is None else before[0] + before[1],
        )
        self.book.add_quantity(self.sheet, self.row, column, begin, self.looks[name])
        self.book.add_quantity(self.sheet, self.row, column + 1, lasts, look, link=link)
        self.ends[name] = (begin, lasts)

    def _once(self, identifier: str, label: str, times: dict[str, Node]) -> None:
        self.sheet.set_text(self.row, 0, label, style.LABEL)
        for name, time in times.items():
            figure = (
                self._block(name, identifier).time
                if identifier not in ("step", "embedding")
                else self.phases[name].time
            )
            self._line(
                identifier,
                name,
                time * MILLI,
                self.looks[name].but(colour=style.LINK),
                self.book.link_to(figure),
            )
        self.row += 1

    def _layers(self) -> None:
        equations = self.book.estimate.equations
        places = {kind.layer.blocks: kind for kind in self.kinds}
        numbers: dict[str, Iterator[int]] = {kind.layer.name: count(1) for kind in self.kinds}
        for number, blocks in enumerate(equations.ir.model.architecture.sequence(), 1):
            kind = places[blocks]
            layer = Input(
                f"layers.number.{number}", f"Layer {number}", "number", number, shared=True, fixed=True
            )
            self.book.add_constant(
                self.sheet, self.row, 0, layer, style.LABEL.but(form='"Layer "0', indent=1)
            )
            of_kind = layer
            if len(self.kinds) > 1:
                of_kind = Input(
                    f"layers.of_kind.{number}",
                    f"Number of its kind, layer {number}",
                    "number",
                    next(numbers[kind.layer.name]),
                    shared=True,
                    fixed=True,
                )
                self.book.add_constant(
                    self.sheet,
                    self.row,
                    1,
                    of_kind,
                    style.SOURCE.but(form=f'"{kind.layer.name} "0', align="left"),
                )
            stage = Quantity(
                f"layers.stage.{number}",
                f"Stage of layer {number}",
                "number",
                floor((layer - 1) / equations.decode_workers.plan.layers),
            )
            self.book.add_quantity(self.sheet, self.row, 2, stage, style.value("number", role="fixed"))
            for name in self.phases:
                one = kind.whole[name] / MICRO * MILLI
                self._line(
                    f"layer.{number}",
                    name,
                    where(of_kind <= kind.layer.count, one, 0),
                    self.looks[name],
                    f"internal:'Layers'!A{kind.rows[name][0]}",
                )
            self.row += 1

    def _gantt(self, first: int, last: int) -> None:
        row = first - 2
        for name, column in LISTED.items():
            title = Quantity(
                f"layers.title.pass.{name}",
                "Title",
                "1",
                join(
                    f"{name.capitalize()}, a whole pass: ", text(self.phases[name].time * MILLI, "0.0"), " ms"
                ),
            )
            self.book.add_quantity(
                self.sheet, row, _GANTT, title, style.Style(size=10.5, bold=True, indent=1)
            )
            self.sheet.charts.append(
                (
                    row + 1,
                    _GANTT,
                    charts.timeline(
                        f"Timeline of a whole {name} pass: every layer as a bar from its start",
                        ("Layers", first, 0, last, 0),
                        ("Layers", first, column, last, column),
                        [
                            (
                                style.COMPUTE if name == "prefill" else style.MEMORY,
                                ("Layers", first, column + 1, last, column + 1),
                            )
                        ],
                        (500, 18 * _GANTT_ROWS - 24),
                        (0.18, 0.02, 0.78, 0.90),
                        unit="ms",
                    ),
                )
            )
            row += _GANTT_ROWS + 1


_GANTT_ROWS = 20  # two charts, their titles and the heads fill a page


def _chart(book: EstimateBook, sheet: Sheet, kind: _Kind, name: str) -> None:
    """The steps of a layer as a timeline, at the top of the sheet."""
    first, last = kind.rows[name]
    row, column = 3, 0 if name == "prefill" else 6
    times = span(kind.times[name])
    longest = index(span(kind.names[name]), match(maximum(times), times))
    called = "one layer" if len(book.estimate.equations.ir.layers) == 1 else f"one {kind.layer.name} layer"
    title = Quantity(
        f"layers.title.{name}",
        "Title",
        "1",
        join(
            f"{name.capitalize()}: {called} takes ",
            grouped(kind.whole[name]),
            " us, the longest step (",
            longest,
            ") ",
            grouped(maximum(times), "#,##0.0", "0.0"),
            " us",
        ),
    )
    book.add_quantity(sheet, row, column, title, style.Style(size=10.5, bold=True))
    sheet.charts.append(
        (
            row + 1,
            column,
            charts.timeline(
                f"Timeline of one layer in {name}: each step as a bar from its start, coloured by what limits it",
                ("Layers", first, 0, last, 0),
                ("Layers", first, START, last, START),
                [
                    (style.BOUND_COLOURS[limit], ("Layers", first, SPLIT + index, last, SPLIT + index))
                    for index, limit in enumerate(LIMITS)
                ],
                (600, 300),
                (0.16, 0.03, 0.80, 0.84),
            ),
        )
    )
