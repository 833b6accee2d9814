"""The Plan sheet: which accelerator holds what, and which messages they exchange."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.display import LETTERS, number_in
from mantile.equations.placement import (
    BAND,
    Further,
    Line,
    Placement,
    SentMessage,
    beyond,
    further,
    messages,
    placement,
    room,
    title,
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
from mantile.workbook.sheets.frame import add_title_rows, mark_beginning, needed_height, room_on_page

FIRST_GPU = 2
LAST = FIRST_GPU + BAND - 1
_ROW = 20
_CELL = style.Style(align="center", right=(style.THIN, style.WHITE), bottom=(style.THIN, style.WHITE))
_SHORT_HEAD = style.HEADER.but(bottom=None)  # a rule could not be made quiet
_LINE = style.Style(size=9.5, align="center", colour=style.NETWORK_TEXT)
_WITHIN, _BETWEEN = ("━" * 6, _LINE), ("━", _LINE.but(align="fill"))  # the second one as wide as its cell
_SENT = ("MB each", "number", "us each")
_PREFILL, _DECODE = 2, 6  # columns of messages: by which algorithm, then what `_SENT` says


def plan_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out a grid and a picture for each scenario, and for decode workers of their own, with messages.

    Behind them, in short, the accelerators that there may be after an edit; of these are printed those that
    are in use when the workbook is made.
    """
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
    row, equations = 3, book.estimate.equations
    behind: list[tuple[int, Further, int]] = []
    for scenario in range(book.side_by_side):
        drawn = _Drawn(book, scenario)
        for workers in equations.workers:
            row, places, more = _grid(book, sheet, row, scenario, workers)
            row = drawn.picture(sheet, row, workers, places.accelerators[:DOMAINS_SHOWN])
            if more is not None:
                used = int(book.estimate_values[scenario][workers.ranks.deployment])
                behind.append((scenario, more, used))
        row = _messages(book, sheet, row, scenario)
    printed = row - 1
    for scenario, more, used in behind:
        row = _further(book, sheet, row, scenario, more)
        printed = row - 1 if used > BAND else printed
    sheet.print_area = (0, 0, printed, LAST)
    sheet.one_page = room_on_page(sheet, printed) >= 0
    sheet.freeze = (3, 1)
    return sheet


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
) -> tuple[int, Placement, Further | None]:
    """The first eight accelerators of some workers in a scenario: the row after, they, and others."""
    equations = book.estimate.equations
    name, start = _start(book, scenario, workers)
    prefix = f"placement.{name}"
    look = style.Style(size=12, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, row, 0, title(workers, prefix, start), look, scenario=scenario)
    sheet.heights[row] = 26
    values = book.estimate_values[scenario]
    places, most = placement(workers, equations.ir, prefix, BAND), room(workers, values)
    more = further(workers, equations.ir, prefix, start, most - 1) if most > BAND else None
    last = places.accelerators[-1] if more is None else more.numbers[-1]
    look = style.Style(size=9.5, colour=style.GREY, align="right")
    book.add_quantity(sheet, row, LAST, beyond(workers, last, prefix), look, scenario=scenario)
    mark_beginning(sheet, row, LAST, "!", style.ALERT)
    capacity = number_in(float(values[workers.hardware.memory_capacity]), "B", "GB")
    row = _band(book, sheet, row + 1, scenario, places, capacity)
    sheet.heights[row] = 6
    return row + 1, places, more


def _band(
    book: EstimateBook, sheet: Sheet, row: int, scenario: int, places: Placement, capacity: float
) -> int:
    """Eight accelerators side by side; the row after them.

    Args:
        capacity: GB of an accelerator, the length of a full bar.
    """
    start = row + 1
    sheet.set_text(row, 0, "slice", style.HEADER)
    sheet.set_text(row, 1, "rule", style.HEADER)
    look = style.HEADER.but(align="center", form=style.FRONT["gpu"])
    for column, accelerator in enumerate(places.accelerators, FIRST_GPU):
        book.add_constant(sheet, row, column, accelerator, look)
    rows = {line.name: below for below, line in enumerate(places.lines, start)}
    for line in places.lines:
        _line(book, sheet, rows[line.name], scenario, line)
    last = start + len(places.lines) - 1
    slices = max(rows[line.name] for line in places.lines if not line.memory)
    used, stage = rows["used"], rows["stage"]
    _stages(sheet, (start, FIRST_GPU, slices, LAST), f"C${used + 1}=1", stage)
    _bars(sheet, last, capacity)
    _quiet(sheet, (used + 1, FIRST_GPU, last, LAST), f"C${used + 1}=0")
    sheet.blocks.append((row - 1, last + 1))
    return last + 1


def _line(book: EstimateBook, sheet: Sheet, row: int, scenario: int, line: Line) -> None:
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
    for column, figure in enumerate(line.figures, FIRST_GPU):
        book.add_quantity(sheet, row, column, figure, look, scenario=scenario)
    sheet.heights[row] = 22


def _stages(sheet: Sheet, cells: tuple[int, int, int, int], used: str, stage: int) -> None:
    """A colour for each pipeline stage.

    Args:
        used: what holds where the first cell is in use; `stage` the row of its stage.
    """
    for number, colour in enumerate(style.STAGES):
        criteria = f"=AND({used},MOD(C${stage + 1},{len(style.STAGES)})={number})"
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
    sheet.conditional.append(((row, FIRST_GPU, row, LAST), rule))


def _quiet(sheet: Sheet, cells: tuple[int, int, int, int], criteria: str) -> None:
    """Nothing is seen of cells of what is not in use."""
    _rule(sheet, cells, f"={criteria}", style.Style(colour=style.WHITE, fill=style.WHITE))


class _Drawn:
    """The picture of a scenario: domains as boxes of cells, and lines for the links.

    Whether a box or a line is seen, and its colour, follow what stands in the cells.
    """

    def __init__(self, book: EstimateBook, scenario: int) -> None:
        self.book, self.scenario = book, scenario
        graph = book.estimate.equations
        self.traffic = {
            id(workers): traffic(
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

    def picture(self, sheet: Sheet, row: int, workers: Workers, numbers: Sequence[Input]) -> int:
        """The boxes of some workers; the row after them.

        Args:
            numbers: of domains, which are those of the first accelerators.
        """
        book, scenario, found = self.book, self.scenario, self.traffic[id(workers)]
        graph = book.estimate.equations
        of_prefill = workers is graph.prefill_workers
        if self.transfer is None:
            sheet.set_formula(row, 0, finding(found), style.SECTION_HEAD, scenario=scenario)
        else:
            words = f"Topology of {'prefill' if of_prefill else 'decode'} workers"
            sheet.set_text(row, 0, words, style.SECTION_HEAD)
        sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
        sheet.set_text(row + 1, 0, "machines and links", style.HEADER)
        sheet.set_text(row + 1, 1, "what they are; GB/s of an accelerator", style.HEADER)
        sheet.set_style(row + 1, FIRST_GPU, LAST - 2, style.HEADER)
        sheet.set_text(row + 1, LAST - 1, "messages", style.HEADER)
        sheet.set_text(row + 1, LAST, f"ms of a {'prefill' if of_prefill else 'step'}", style.HEADER_RIGHT)
        top = row + 2
        prefix = f"topology.{_start(book, scenario, workers)[0]}"
        self._boxes(sheet, top, domains(workers, numbers, prefix))
        inside, outside = links_told(workers)
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
                sheet.set_text(below, 1, told, style.SOURCE)
            else:
                sheet.set_formula(below, 1, told, style.SOURCE.but(wrap=False), scenario=scenario)
            if time is not None:
                if words:
                    sheet.set_text(below, LAST - 1, words, style.SOURCE)
                else:
                    self._link(sheet, below, top + 1, time)
                book.add_quantity(sheet, below, LAST, time, style.table("sent"), scenario=scenario)
            sheet.heights[below] = _ROW
        last = top + len(labels)
        sheet.blocks.append((row, last))
        sheet.heights[last] = 14
        return last + 1

    def _boxes(self, sheet: Sheet, top: int, shown: list[Domain]) -> None:
        """Domains side by side: name, accelerators in use, the first and the last stage."""
        last = FIRST_GPU + len(shown) - 1
        stage = _CELL.but(form=style.FRONT["stage"])
        for column, domain in enumerate(shown, FIRST_GPU):
            name = f"domain {column - FIRST_GPU}"
            sheet.set_text(top, column, name, _CELL.but(bold=True, colour=style.NAVY))
            for below, (figure, look) in enumerate(
                ((domain.count, _CELL), (domain.first, stage), (domain.last, stage)), top + 1
            ):
                self.book.add_quantity(sheet, below, column, figure, look, scenario=self.scenario)
        cells = (top, FIRST_GPU, top + 3, last)
        _quiet(sheet, cells, f"C${top + 2}=0")
        _stages(sheet, cells, f"C${top + 2}>0", top + 2)

    def _link(self, sheet: Sheet, row: int, count: int, time: Quantity) -> None:
        """A line below the boxes, and what is said of it.

        Args:
            count: the row of accelerators in use by domain.
        """
        first, last = FIRST_GPU, FIRST_GPU + DOMAINS_SHOWN - 1
        within = row == count + 3
        for column in range(first, last + 1):
            sheet.set_text(row, column, *(_WITHIN if within else _BETWEEN))
        at = f"C${count + 1}"
        hidden = {
            count + 3: f"{at}<=1",
            count + 4: f"OR({at}=0,$D${count + 1}=0)",
        }
        _quiet(sheet, (row, first, row, last), hidden.get(row, f"{at}=0"))
        for word, colour in ((BUSIEST, style.ALERT), (NOT_USED, style.GREY)):
            look = style.Style(colour=colour, bold=word == BUSIEST)
            _rule(sheet, (row, first, row, LAST - 1), f'=$I${row + 1}="{word}"', look)
        look = style.SOURCE.but(colour=style.NETWORK_TEXT, wrap=False)
        sheet.set_formula(row, LAST - 1, state(time, self.times), look, scenario=self.scenario)


def _further(book: EstimateBook, sheet: Sheet, row: int, scenario: int, more: Further) -> int:
    """Accelerators behind the first eight, eight side by side, in short; the row after them.

    What each stage holds stands above them. Nothing is seen of what is not in use.
    """
    book.add_quantity(sheet, row, 0, more.title, style.SECTION_HEAD, scenario=scenario)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    sheet.heights[row] = 22
    top = row + 1
    first_stage = top + 4  # the row of stages of accelerators 8 to 15, on which all of it stands
    sheet.set_text(top, 0, "stage", _SHORT_HEAD)
    sheet.set_text(top, 1, "held by each accelerator of it", _SHORT_HEAD)
    for number in range(len(more.layers)):
        sheet.set_text(top, FIRST_GPU + number, f"stage {number}", _SHORT_HEAD.but(align="center"))
    held = style.value("GB").but(align="center", form=style.FRONT["held"])
    for below, (label, rule, figures, look) in enumerate(
        (
            ("Layers", "from – to, in order of stages", more.layers, _CELL.but(form=style.FRONT["text"])),
            ("Used", "GB", more.used, held),
        ),
        top + 1,
    ):
        _short(book, sheet, below, scenario, (label, rule), figures, look)
    _quiet(sheet, (top, 0, top + 2, LAST), f"$C${first_stage + 1}<0")
    at = top + 3
    text = _CELL.but(form=style.FRONT["text"])
    for first in range(0, len(more.numbers), BAND):
        band = slice(first, first + BAND)
        sheet.set_text(at, 0, "slice", _SHORT_HEAD)
        sheet.set_text(at, 1, "rule", _SHORT_HEAD)
        look = _SHORT_HEAD.but(align="center", form=style.FRONT["gpu"])
        for column, accelerator in enumerate(more.numbers[band], FIRST_GPU):
            book.add_constant(sheet, at, column, accelerator, look)
        lines = [
            (("Pipeline stage", "number; colour = stage"), more.stage, _CELL.but(form=style.FRONT["stage"])),
            (("Replica, group, TP rank", "as for the first eight"), more.place, text),
        ]
        if more.experts:
            lines.append((("Experts", "experts ÷ EP, by rank in its stage"), more.experts, text))
        for below, (labels, figures, look) in enumerate(lines, at + 1):
            _short(book, sheet, below, scenario, labels, figures[band], look)
        last = at + len(lines)
        _quiet(sheet, (at, 0, last, 1), f"$C${at + 2}<0")
        _quiet(sheet, (at, FIRST_GPU, last, LAST), f"C${at + 2}<0")
        _stages(sheet, (at + 1, FIRST_GPU, last, LAST), f"C${at + 2}>=0", at + 1)
        sheet.heights[last + 1] = 6
        sheet.blocks.append((row if not first else at, last + 1))
        at = last + 2
    return at


def _short(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    scenario: int,
    labels: tuple[str, str],
    figures: tuple[Quantity, ...],
    look: style.Style,
) -> None:
    """A line of accelerators, or of stages, side by side."""
    sheet.set_text(row, 0, labels[0], style.LABEL)
    sheet.set_text(row, 1, labels[1], style.SOURCE)
    for column, figure in enumerate(figures, FIRST_GPU):
        book.add_quantity(sheet, row, column, figure, look, scenario=scenario)
    sheet.heights[row] = _ROW


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
