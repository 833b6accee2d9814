"""The plan as a part of Layers: which accelerator holds what, and which messages they exchange."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.display import LETTERS, number_in
from mantile.equations.placement import (
    BAND,
    Line,
    Placement,
    SentMessage,
    messages,
    room,
)
from mantile.equations.topology import (
    BUSIEST,
    DOMAINS_SHOWN,
    NOT_USED,
    Domain,
    accelerators_told,
    domains,
    domains_told,
    finding,
    links_told,
    state,
    traffic,
    transfer_told,
    transferred,
)
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, Node, Quantity
from mantile.workbook import style
from mantile.workbook.book import Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_part, mark_beginning

FIRST_GPU = 2
_ROW = 18
_HELD, _TOLD, _DOMAIN, _STATE, _FIGURE = 98, 260, 55, 100, 58  # pixels that columns have together
_CELL = style.Style(align="left", indent=1, form="0", bottom=(style.THIN, style.WHITE))
_SHORT_HEAD = style.HEADER.but(bottom=None)  # a rule could not be made quiet
_LINE = style.Style(size=9.5, colour=style.NETWORK_TEXT)
_WITHIN, _BETWEEN = ("━" * 5, _LINE), ("━", _LINE.but(align="fill"))  # the second one as wide as its cell
_SENT = ("MB each", "number", "us each")
_WORDS = style.SOURCE.but(wrap=False)
_MEMORY = style.Style(align="left", indent=1, form=style.FRONT["held"])
_BOX = style.Style(size=9.5, align="left", form="0", bottom=(style.THIN, style.WHITE))
_RULES = 3  # columns of rules


def plan_part(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """Draw a grid and a picture for each scenario, and for decode workers of their own, with messages.

    Behind them, in short, the accelerators that there may be after an edit.
    """
    note = "Live: change a degree of parallelism on Summary and the grid recolours. Slices are from – to."
    sheet.blocks.append((row, row + 1))
    row, equations = add_part(sheet, row, "Plan", note, len(sheet.widths) - 1), book.estimate.equations
    behind: list[tuple[int, Placement]] = []
    rules: dict[str, str] = {}
    for scenario in range(min(len(book.asked.columns), book.side_by_side)):
        drawn = _Drawn(book, sheet, scenario)
        for workers in equations.workers:
            row, places = _grid(book, sheet, row, scenario, workers)
            rules |= {line.label: line.rule for line in places.lines if not line.memory}
            row = drawn.picture(row, workers, places.accelerators[:DOMAINS_SHOWN])
            if places.further:
                behind.append((scenario, places))
        row = _messages(book, sheet, row, scenario)
    row = _rules(sheet, row, rules)
    for scenario, places in behind:
        row = _further(book, sheet, row, scenario, places)


def _columns(sheet: Sheet, pixels: float) -> int:
    """How many columns of the sheet have that width together."""
    return ceil(pixels / sheet.widths[FIRST_GPU])


def _own(sheet: Sheet, row: int, step: int, first: int = FIRST_GPU) -> str:
    """What stands in a row in the first of the columns that belong together, as a rule of any of them asks.

    The others are empty. Rules are written for the first column of all.

    Args:
        step: how many belong together.
    """
    start, end = (f"{xl_col_to_name(column)}${row + 1}" for column in (first - step + 1, first))
    return end if step == 1 else f"SUM({start}:{end})"


def _start(book: EstimateBook, scenario: int, workers: Workers) -> tuple[str, str]:
    """What ids of a set of accelerators of a scenario end with, and what its titles begin with."""
    equations = book.estimate.equations
    start = f"{LETTERS[scenario]}{'' if scenario else ' · base'}: "
    if len(equations.workers) == 1:
        return f"{scenario}", start
    prefill = workers is equations.prefill_workers
    return (
        f"{scenario}{'' if prefill else '.decode'}",
        f"{start}{'prefill' if prefill else 'decode'} workers, ",
    )


def _grid(
    book: EstimateBook, sheet: Sheet, row: int, scenario: int, workers: Workers
) -> tuple[int, Placement]:
    """The first eight accelerators of some workers in a scenario: the row after, and what they hold."""
    equations = book.estimate.equations
    name, start = _start(book, scenario, workers)
    values = book.estimate_values[scenario]
    last = room(workers, equations.rows, values) - 1
    places = Placement(workers, f"placement.{name}", BAND, last, start)
    look = style.Style(size=12, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, row, 0, places["title"], look, scenario=scenario)
    sheet.heights[row] = 26
    look = style.Style(size=9.5, colour=style.GREY, align="right")
    right = len(sheet.widths) - 1
    book.add_quantity(sheet, row, right, places["beyond"], look, scenario=scenario)
    mark_beginning(sheet, row, right, "!", style.ALERT)
    capacity = number_in(float(values[workers.rows["hardware.memory_capacity"]]), "B", "GB")
    row = _band(book, sheet, row + 1, scenario, places, capacity)
    sheet.heights[row] = 6
    return row + 1, places


def _band(
    book: EstimateBook, sheet: Sheet, row: int, scenario: int, places: Placement, capacity: float
) -> int:
    """Eight accelerators side by side; the row after them.

    Args:
        capacity: GB of an accelerator, the length of a full bar.
    """
    start = row + 1
    sheet.set_text(row, 0, "slice of GPU", style.HEADER)
    look = style.HEADER.but(align="left", indent=1)
    step, last_column = _columns(sheet, _HELD), _last(sheet)
    for column, accelerator in zip(_gpus(sheet), places.accelerators, strict=True):
        book.add_constant(sheet, row, column, accelerator, look)
    sheet.set_style(row, 1, last_column, style.HEADER)
    rows = {line.name: below for below, line in enumerate(places.lines, start)}
    for line in places.lines:
        _line(book, sheet, rows[line.name], scenario, line)
    last = start + len(places.lines) - 1
    slices = max(rows[line.name] for line in places.lines if not line.memory)
    used = _own(sheet, rows["used"], step)
    _stages(sheet, (start, FIRST_GPU, slices, last_column), f"{used}=1", _own(sheet, rows["stage"], step))
    _bars(sheet, last, capacity)
    _quiet(sheet, (rows["used"] + 1, FIRST_GPU, last, last_column), f"{used}=0")
    sheet.blocks.append((row - 1, last + 1))
    return last + 1


def _line(book: EstimateBook, sheet: Sheet, row: int, scenario: int, line: Line) -> None:
    """One property of eight accelerators; the last line is the sum of memory."""
    total = line.name == "sum"
    edge = {"top": (style.THIN, style.INK)} if total else {}
    plain = _CELL.but(form='[=1]"●";"–"' if line.name == "used" else "#,##0")
    look = _MEMORY if line.memory else plain
    if total:
        look = look.but(bold=True, **edge)
    label = f"{line.label}, GB" if line.memory else line.label
    sheet.set_text(row, 0, label, style.LABEL.but(bold=total, **edge))
    _side_by_side(book, sheet, row, scenario, line.figures, look)
    sheet.set_style(row, 1, _last(sheet), look)
    sheet.heights[row] = _ROW


def _gpus(sheet: Sheet) -> range:
    """The first columns of accelerators side by side."""
    return range(FIRST_GPU, _last(sheet) + 1, _columns(sheet, _HELD))


def _last(sheet: Sheet) -> int:
    """The last column of accelerators."""
    return FIRST_GPU + BAND * _columns(sheet, _HELD) - 1


def _side_by_side(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    scenario: int,
    figures: Sequence[Quantity],
    look: style.Style,
) -> None:
    """A figure for each accelerator, or for each stage."""
    for column, figure in zip(_gpus(sheet), figures, strict=False):
        book.add_quantity(sheet, row, column, figure, look, scenario=scenario)


def _stages(sheet: Sheet, cells: tuple[int, int, int, int], used: str, stage: str) -> None:
    """A colour for each pipeline stage.

    Args:
        used: what holds where the first cell is in use; `stage` what says its stage.
    """
    for number, colour in enumerate(style.STAGES):
        criteria = f"=AND({used},MOD({stage},{len(style.STAGES)})={number})"
        _rule(sheet, cells, criteria, style.Style(fill=colour))


def _rule(sheet: Sheet, cells: tuple[int, int, int, int], criteria: str, look: style.Style) -> None:
    sheet.conditional.append((cells, {"type": "formula", "criteria": criteria, "format": look}))


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
    sheet.conditional.append(((row, FIRST_GPU, row, _last(sheet)), rule))


def _quiet(sheet: Sheet, cells: tuple[int, int, int, int], criteria: str) -> None:
    """Nothing is seen of cells of what is not in use."""
    _rule(sheet, cells, f"={criteria}", style.Style(colour=style.WHITE, fill=style.WHITE))


class _Drawn:
    """The picture of a scenario: domains as boxes of cells, and lines for the links.

    Whether a box or a line is seen, and its colour, follow what stands in the cells.
    """

    def __init__(self, book: EstimateBook, sheet: Sheet, scenario: int) -> None:
        self.book, self.sheet, self.scenario = book, sheet, scenario
        self.step = _columns(sheet, _DOMAIN)
        self.first = FIRST_GPU + _columns(sheet, _TOLD)
        self.state = self.first + DOMAINS_SHOWN * self.step
        self.time = self.state + _columns(sheet, _STATE)
        graph = book.estimate.equations
        self.traffic = {
            id(workers): traffic(
                graph.rows,
                workers,
                graph.prefill if workers is graph.prefill_workers else graph.decode,
                f"topology.{_start(book, scenario, workers)[0]}",
            )
            for workers in graph.workers
        }
        self.transfer: Quantity | None = None
        apart = graph.prefill_workers.ranks.disaggregated
        if apart is not None:
            figures = graph.figures
            self.transfer = transferred(apart, figures["serving.transfer_time"], f"topology.{scenario}")

    @property
    def times(self) -> list[Node]:
        """Of all links."""
        found: list[Node] = [time for each in self.traffic.values() for time in (each.inside, each.outside)]
        return found if self.transfer is None else [*found, self.transfer]

    def picture(self, row: int, workers: Workers, numbers: Sequence[Input]) -> int:
        """The boxes of some workers; the row after them.

        Args:
            numbers: of domains, which are those of the first accelerators.
        """
        book, sheet, scenario, found = self.book, self.sheet, self.scenario, self.traffic[id(workers)]
        graph = book.estimate.equations
        of_prefill = workers is graph.prefill_workers
        if self.transfer is None:
            sheet.set_formula(row, 0, finding(found), style.SECTION_HEAD, scenario=scenario)
        else:
            words = f"Topology of {'prefill' if of_prefill else 'decode'} workers"
            sheet.set_text(row, 0, words, style.SECTION_HEAD)
        sheet.set_style(row, 1, _last(sheet), style.SECTION_HEAD)
        phase = "prefill" if of_prefill else "step"
        for column, head in (
            (0, "machines and links"),
            (FIRST_GPU, "what they are; GB/s of an accelerator"),
            (self.state, f"messages, ms of a {phase}"),
        ):
            sheet.set_text(row + 1, column, head, style.HEADER)
        sheet.set_style(row + 1, 0, _last(sheet), style.HEADER)
        top = row + 2
        prefix = f"topology.{_start(book, scenario, workers)[0]}"
        self._boxes(top, domains(workers, numbers, prefix))
        inside, outside = links_told(graph.rows, workers)
        labels: list[tuple[str, Node | str, str, Quantity | None]] = [
            ("Domains", domains_told(workers), "", None),
            ("Accelerators in use", accelerators_told(workers), "TP ranks", found.ranks),
            ("Stage of the first", "colour = stage", "ranks of a stage", found.stage),
            ("Stage of the last", "", "stage to stage", found.stages),
            ("Links inside domains", inside, "", found.inside),
            ("Network between domains", outside, "", found.outside),
        ]
        if self.transfer is not None and of_prefill:
            figures = graph.figures
            way = transfer_told(figures["serving.transfer_bandwidth"], figures["serving.transfer_network"])
            labels.append(("KV cache to decode workers", way, "", self.transfer))
        for below, (label, told, words, time) in enumerate(labels, top):
            sheet.set_text(below, 0, label, style.LABEL)
            if isinstance(told, str):
                sheet.set_text(below, FIRST_GPU, told, _WORDS)
            else:
                sheet.set_formula(below, FIRST_GPU, told, _WORDS, scenario=scenario)
            if time is not None:
                if words:
                    sheet.set_text(below, self.state, words, _WORDS)
                else:
                    self._link(below, top + 1, time)
                book.add_quantity(sheet, below, self.time, time, style.table("sent"), scenario=scenario)
            sheet.heights[below] = _ROW
        last = top + len(labels)
        sheet.blocks.append((row, last))
        sheet.heights[last] = 14
        return last + 1

    def _boxes(self, top: int, shown: list[Domain]) -> None:
        """Domains side by side: name, accelerators in use, the first and the last stage."""
        sheet = self.sheet
        for number, domain in enumerate(shown):
            column = self.first + number * self.step
            sheet.set_text(top, column, f"domain {number}", _BOX.but(bold=True, colour=style.NAVY))
            for below, figure in enumerate((domain.count, domain.first, domain.last), top + 1):
                self.book.add_quantity(sheet, below, column, figure, _BOX, scenario=self.scenario)
        cells = (top, self.first, top + 3, self.first + len(shown) * self.step - 1)
        count, stage_of = (_own(sheet, row, self.step, self.first) for row in (top + 1, top + 2))
        _quiet(sheet, cells, f"{count}=0")
        _stages(sheet, cells, f"{count}>0", stage_of)

    def _link(self, row: int, count: int, time: Quantity) -> None:
        """A line below the boxes, and what is said of it.

        Args:
            count: the row of accelerators in use by domain.
        """
        sheet, first, last = self.sheet, self.first, self.state - 1
        within = row == count + 3
        for column in range(first, last + 1, self.step if within else 1):
            sheet.set_text(row, column, *(_WITHIN if within else _BETWEEN))
        at, second = _own(sheet, count, self.step, first), xl_col_to_name(first + self.step)
        hidden = {
            count + 3: f"{at}<=1",
            count + 4: f"OR({at}=0,${second}${count + 1}=0)",
        }
        _quiet(sheet, (row, first, row, last), hidden.get(row, f"{at}=0"))
        said = f"${xl_col_to_name(self.state)}${row + 1}"
        for word, colour in ((BUSIEST, style.ALERT), (NOT_USED, style.GREY)):
            look = style.Style(colour=colour, bold=word == BUSIEST)
            _rule(sheet, (row, first, row, self.state), f'={said}="{word}"', look)
        look = _WORDS.but(colour=style.NETWORK_TEXT)
        sheet.set_formula(row, self.state, state(time, self.times), look, scenario=self.scenario)


def _further(book: EstimateBook, sheet: Sheet, row: int, scenario: int, places: Placement) -> int:
    """Accelerators behind the first eight, eight side by side, in short; the row after them.

    What each stage holds stands above them. Nothing is seen of what is not in use.
    """
    book.add_quantity(sheet, row, 0, places["further"], style.SECTION_HEAD, scenario=scenario)
    last_column, step = _last(sheet), _columns(sheet, _HELD)
    sheet.set_style(row, 1, last_column, style.SECTION_HEAD)
    sheet.heights[row] = 22
    top = row + 1
    first_stage = top + 5  # the row of stages of accelerators 8 to 15, on which all of it stands
    sheet.set_text(top, 0, "held by each of a stage", _SHORT_HEAD)
    for number, column in zip(places.stages, _gpus(sheet), strict=False):
        sheet.set_text(top, column, f"stage {number}", _SHORT_HEAD.but(indent=1))
    sheet.set_style(top, 1, last_column, _SHORT_HEAD)
    text = _CELL.but(form=style.FRONT["text"])
    for below, (label, figures, look) in enumerate(
        (
            ("Layers", places.of_stages("stage_layers"), text),
            ("Weights, KV cache, GB", places.of_stages("stage_held"), _MEMORY),
            ("Used, GB", places.of_stages("stage_used"), _MEMORY),
        ),
        top + 1,
    ):
        _short(book, sheet, below, scenario, label, figures, look)
    _quiet(sheet, (top, 0, top + 3, last_column), f"$C${first_stage + 1}<0")
    at = top + 4
    for first in range(0, len(places.further), BAND):
        band = slice(first, first + BAND)
        sheet.set_text(at, 0, "slice of GPU", _SHORT_HEAD)
        look = _SHORT_HEAD.but(align="left", indent=1)
        for column, accelerator in zip(_gpus(sheet), places.further[band], strict=False):
            book.add_constant(sheet, at, column, accelerator, look)
        sheet.set_style(at, 1, last_column, _SHORT_HEAD)
        lines = [
            ("Pipeline stage", places.of_further("stage_in_use"), _CELL),
            ("Replica, group, TP rank", places.of_further("place_in_use"), text),
        ]
        if experts := places.of_further("experts_in_use"):
            lines.append(("Experts", experts, text))
        for below, (label, figures, look) in enumerate(lines, at + 1):
            _short(book, sheet, below, scenario, label, figures[band], look)
        last, stage = at + len(lines), _own(sheet, at + 1, step)
        _quiet(sheet, (at, 0, last, 1), f"$C${at + 2}<0")
        _quiet(sheet, (at, FIRST_GPU, last, last_column), f"{stage}<0")
        _stages(sheet, (at + 1, FIRST_GPU, last, last_column), f"{stage}>=0", stage)
        sheet.heights[last + 1] = 6
        sheet.blocks.append((row if not first else at, last + 1))
        at = last + 2
    return at


def _short(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    scenario: int,
    label: str,
    figures: tuple[Quantity, ...],
    look: style.Style,
) -> None:
    """A line of accelerators, or of stages, side by side."""
    sheet.set_text(row, 0, label, style.LABEL)
    _side_by_side(book, sheet, row, scenario, figures, look)
    sheet.heights[row] = _ROW


def _messages(book: EstimateBook, sheet: Sheet, row: int, scenario: int) -> int:
    """Every kind of message of both phases; the row after them."""
    sheet.set_text(row, 0, "Messages of an accelerator", style.SECTION_HEAD)
    sheet.set_style(row, 1, _last(sheet), style.SECTION_HEAD)
    first, step = FIRST_GPU + _columns(sheet, _TOLD), _columns(sheet, _FIGURE)
    sheet.set_text(row + 1, 0, "message", style.HEADER)
    sheet.set_text(row + 1, FIRST_GPU, "between", style.HEADER)
    for number, head in enumerate(("prefill by", *_SENT, "decode by", *_SENT)):
        sheet.set_text(row + 1, first + number * step, head, style.HEADER_RIGHT)
    sheet.set_style(row + 1, 1, _last(sheet), style.HEADER)
    kinds = messages(book.estimate.equations)
    for below, message in enumerate(kinds, row + 2):
        sheet.set_text(below, 0, message.label, style.LABEL)
        sheet.set_text(below, FIRST_GPU, message.between.partition(";")[0], _WORDS)
        sheet.heights[below] = _ROW
        for number, sent in ((0, message.prefill), (1 + len(_SENT), message.decode)):
            if sent is not None:
                _sent(sheet, below, first + number * step, step, sent, scenario)
    last = row + 2 + len(kinds)
    sheet.blocks.append((row, last))
    sheet.heights[last] = 14
    return last + 1


def _sent(sheet: Sheet, row: int, column: int, step: int, sent: SentMessage, scenario: int) -> None:
    """How a message is sent in a phase, a figure every so many columns."""
    figures = (
        (sent.algorithm, style.TEXT_VALUE.but(colour=style.LINK)),
        (sent.size, style.table("megabytes", colour=style.LINK)),
        (sent.number, style.table("bill", colour=style.LINK)),
        (sent.time, style.table("watts")),
    )
    for number, (figure, look) in enumerate(figures):
        if figure is not None:
            sheet.set_formula(row, column + number * step, figure, look, scenario=scenario)


def _rules(sheet: Sheet, row: int, rules: Mapping[str, str]) -> int:
    """By which rule each slice follows from the number of an accelerator; the row after them."""
    sheet.set_text(row, 0, "Rules of the slices", style.SECTION_HEAD)
    sheet.set_style(row, 1, _last(sheet), style.SECTION_HEAD)
    wide = list(accumulate(sheet.widths, initial=0.0))
    columns = [bisect(wide, number * wide[-1] / _RULES) - (not number) for number in range(_RULES)]
    texts = [f"{label}: {rule}" for label, rule in rules.items()]
    for number, text in enumerate(texts):
        below, across = divmod(number, len(columns))
        sheet.set_text(row + 1 + below, columns[across], text, _WORDS)
    last = row + 1 + (len(texts) - 1) // len(columns)
    sheet.blocks.append((row, last + 1))
    return last + 2
