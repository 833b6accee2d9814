"""The Layers sheet: one layer step by step, then every layer of a pass with its start, time and modules."""

from __future__ import annotations

from mantile.equations.constants import MICRO, MILLI
from mantile.equations.forward import Pass
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.graph.quantity import Input, Node, Quantity, added, element, join, maximum, position, span, text, total, where, whole
from mantile.workbook import charts, style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.sheets.furniture import furnish

CHART_ROWS = 15
_SHORT = {"attention_norm": "norm 1", "ffn_norm": "norm 2", "qkv": "QKV", "rope": "RoPE", "attention": "attention",
          "output": "output", "ffn_up": "FFN up", "activation": "activation", "ffn_down": "down", "qk_norm": "QK norm"}  # fmt: skip
# Columns of the list: one per step, the small kernels together.
_SMALL_STEPS = ("norm 1", "QK norm", "RoPE", "norm 2")
LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)


def steps_of_layer(phase: Pass) -> list[tuple[str, Block]]:
    """The blocks of one layer in execution order, an all-reduce after attention and after the FFN."""
    reduce = next(block for block in phase.blocks if block.id == "all_reduce")
    steps: list[tuple[str, Block]] = []
    for block in phase.blocks:
        if block.per_layer and not block.network:
            steps.append(("gate + up" if block.label == "FFN gate + up" else _SHORT[block.id], block))
            if block.id in ("output", "ffn_down"):
                steps.append((f"all-reduce {1 if block.id == 'output' else 2}", reduce))
    return steps


def _columns(steps: list[tuple[str, Block]]) -> list[tuple[str, list[int]]]:
    """Heads of the list's module columns and the steps each stands for."""
    small = [index for index, (name, _) in enumerate(steps) if name in _SMALL_STEPS]
    others = [(name, [index]) for index, (name, _) in enumerate(steps) if name not in _SMALL_STEPS]
    return [("norms, RoPE", small), *others]


def part_of(block: Block, limit: str) -> Node | None:
    """The share of one execution of a block that a limit accounts for, in seconds; None where it never does."""
    if limit == OVERHEAD:
        return block.launch
    return limited(block, limit, block.layer_time if block.launch is None else block.layer_time - block.launch)


def layers_sheet(book: Book, master: Quantity) -> Sheet:
    """Lay out the Layers sheet for the base scenario."""
    equations = book.estimate.equations
    sheet = book.add(Sheet("Layers", "workings", "Where in the model the time goes, for the base scenario. Times of steps lead "
                           "to their blocks on Prefill and Decode."))  # fmt: skip
    steps = {phase.phase.id: steps_of_layer(phase) for phase in (equations.prefill, equations.decode)}
    last = 6 + len(_columns(steps["decode"]))
    sheet.widths = [150, 66, 66, *([84] * (last - 2))]
    furnish(book, sheet, "Layers", last, master)
    sheet.heights[2] = 6
    made = {phase: _steps(book, sheet, phase, found) for phase, found in steps.items()}
    row = _list(book, sheet, CHART_ROWS + len(steps["decode"]) + 7, steps, made, last)
    _charts(book, sheet, steps, made)
    sheet.print_area = (0, 0, row - 1, last)
    return sheet


def _steps(book: Book, sheet: Sheet, phase: str, steps: list[tuple[str, Block]]) -> tuple[list[Quantity], Quantity]:
    """The table of one layer's steps: time, start, and the time by limit, in us."""
    head = CHART_ROWS + 3
    first = 1 if phase == "prefill" else 7
    if phase == "prefill":
        sheet.text(head, 0, "", style.HEADER.but(bottom=None))
        sheet.text(head + 1, 0, "one layer, us", style.HEADER)
    for column, words in enumerate(("time", "start", *LIMITS), first):
        sheet.text(head, column, phase if column == first else "", style.HEADER.but(bottom=None))
        sheet.text(head + 1, column, words, style.HEADER_RIGHT)
    us = style.value("us")
    green = us.but(colour=style.LINK)
    times: list[Quantity] = []
    starts: list[Quantity] = []
    for index, (name, block) in enumerate(steps):
        row = head + 2 + index
        if phase == "prefill":
            book.fix(sheet, row, 0, Input(f"layers.name.{index}", f"Step {index}", "1", name, shared=True, fixed=True), style.LABEL)
        time = Quantity(f"layers.step.{phase}.{index}", f"Time of {name}", "us", block.layer_time * MICRO)
        book.place(sheet, row, first, time, green, link=book.anchor(block.layer_time))
        start = Quantity(f"layers.start.{phase}.{index}", f"Start of {name}", "us",
                         starts[-1] + times[-1] if starts else time - time)  # fmt: skip
        book.place(sheet, row, first + 1, start, us)
        times.append(time)
        starts.append(start)
        for offset, limit in enumerate(LIMITS):
            part = part_of(block, limit)
            if part is not None:
                sheet.formula(row, first + 2 + offset, part * MICRO, green)
    row = head + 2 + len(steps)
    if phase == "prefill":
        sheet.text(row, 0, "One layer", style.emphasised(style.LABEL, 1))
    whole_layer = Quantity(f"layers.layer.{phase}", f"One layer, {phase}", "us", total(span(times)))
    book.place(sheet, row, first, whole_layer, style.emphasised(us, 1))
    sheet.band(row, first + 1, first + 5, style.emphasised(us, 1))
    return times, whole_layer


def _list(book: Book, sheet: Sheet, row: int, steps: dict[str, list[tuple[str, Block]]],
          made: dict[str, tuple[list[Quantity], Quantity]], last: int) -> int:  # fmt: skip
    equations = book.estimate.equations
    phases = {"prefill": equations.prefill, "decode": equations.decode}
    top = style.HEADER.but(bottom=None)
    for column, words in ((0, ""), (3, "prefill"), (5, "decode"), (7, "decode by module, us; bar = share of a layer")):
        sheet.text(row, column, words, top)
    sheet.band(row, 0, last, top)
    row += 1
    heads = ("layers", "listed", "stage", "start, ms", "time, ms", "start, ms", "time, ms")
    for column, head in enumerate((*heads, *(name for name, _ in _columns(steps["decode"])))):
        sheet.text(row, column, head, style.HEADER if column == 0 else style.HEADER_RIGHT)
    row += 1
    ms = {"prefill": style.value("us").but(form=style.FRONT["ms2"] + "_)_)"), "decode": style.value("us").but(form=style.FRONT["ms3"] + "_)_)")}
    us = style.value("us")
    columns = {"prefill": 3, "decode": 5}

    def put(name: str, column: int, unit: str, body: Node, look: style.Style) -> Quantity:
        figure = Quantity(f"layers.{name}.{column}", f"{name}, column {column}", unit, body)
        book.place(sheet, row, column, figure, look)
        return figure

    bold = {"bold": True, "fill": style.PANEL, "top": (style.THIN, style.HAIRLINE)}
    sheet.text(row, 0, "Whole pass", style.LABEL.but(**bold))
    for phase, result in phases.items():
        put("pass", columns[phase] + 1, "ms", result.time * MILLI, ms[phase].but(colour=style.LINK, **bold))
    sheet.band(row, 0, last, style.LABEL.but(**bold))
    row += 1

    previous: dict[str, tuple[Quantity, Quantity]] = {}

    def once(name: str, label: str, time: dict[str, Node]) -> None:
        nonlocal row
        sheet.text(row, 0, label, style.LABEL)
        for phase, body in time.items():
            column = columns[phase]
            lasts = put(name, column + 1, "ms", body * MILLI, ms[phase].but(colour=style.LINK))
            begin = previous[phase][0] + previous[phase][1] if phase in previous else lasts - lasts
            previous[phase] = (put(name, column, "ms", begin, ms[phase]), lasts)
        row += 1

    def block(phase: Pass, identifier: str) -> Block:
        return next(found for found in phase.blocks if found.id == identifier)

    once("step", "Step overhead", {phase: result.module_times[-1] for phase, result in phases.items()})
    once("embedding", "Embedding, all-reduce", {phase: block(result, "embedding").time + block(result, "all_reduce").layer_time
                                                for phase, result in phases.items()})  # fmt: skip
    sheet.text(row, 0, "One layer", style.LABEL.but(**bold))
    each = {phase: put("one", columns[phase] + 1, "ms", made[phase][1] / MICRO * MILLI, ms[phase].but(**bold)) for phase in phases}
    times = made["decode"][0]
    modules = [put("one", 7 + index, "us", added([times[step] for step in members]), us.but(**bold))
               for index, (_, members) in enumerate(_columns(steps["decode"]))]  # fmt: skip
    sheet.band(row, 0, last, style.LABEL.but(**bold))
    row += 1
    sheet.text(row, 0, "Share of a layer", style.LABEL.but(indent=1))
    for index, module in enumerate(modules):
        put("share", 7 + index, "1", module / made["decode"][1], style.VALUE.but(form="0%_)_)"))
    row += 1

    first_row = row
    for number in range(1, equations.ir.model.architecture.layers.value + 1):
        layer = Input(f"layers.number.{number}", f"Layer {number}", "number", number, shared=True, fixed=True)
        book.fix(sheet, row, 0, layer, style.LABEL.but(form='"Layer "0', indent=1))
        listed = put(f"listed.{number}", 1, "flag", where(layer <= equations.ir.facts.layers, 1, 0), style.LEVEL.but(form='"●"_)_);;"–"_)_)'))
        put(f"stage.{number}", 2, "number", whole((layer - 1) / equations.plan.layers), style.value("number", role="fixed"))
        for phase in phases:
            column = columns[phase]
            begin = put(f"layer.{number}", column, "ms", previous[phase][0] + previous[phase][1], ms[phase])
            previous[phase] = (begin, put(f"layer.{number}", column + 1, "ms", listed * each[phase], ms[phase]))
        for index, module in enumerate(modules):
            put(f"layer.{number}", 7 + index, "us", listed * module, us)
        row += 1
    highest = max(float(book.estimate_values[0][found.layer_time]) for _, found in steps["decode"]) * 1e6
    sheet.conditional.append(((first_row, 7, row - 1, last), {
        "type": "data_bar", "bar_solid": True, "data_bar_2010": True, "bar_color": style.SHARE_BAR, "min_type": "num",
        "max_type": "num", "min_value": 0, "max_value": round(1.9 * highest, 3)}))  # fmt: skip
    once("final_norm", "Final norm", {phase: block(result, "final_norm").time for phase, result in phases.items()})
    once("lm_head", "LM head", {phase: block(result, "lm_head").time for phase, result in phases.items()})
    once("p2p", "Stage to stage", {phase: block(result, "p2p").time for phase, result in phases.items()})
    return row


def _charts(book: Book, sheet: Sheet, steps: dict[str, list[tuple[str, Block]]],
            made: dict[str, tuple[list[Quantity], Quantity]]) -> None:  # fmt: skip
    head = CHART_ROWS + 5
    count = len(steps["decode"])
    names = [figure for figure in book.homes if isinstance(figure, Input) and figure.id.startswith("layers.name.")]
    titles = {"prefill": (3, 0), "decode": (3, 8)}
    for phase, first in (("prefill", 1), ("decode", 7)):
        row, column = titles[phase]
        times = span(made[phase][0])
        longest = element(span(names), position(maximum(times), times))
        one = Quantity(f"layers.title.{phase}", "Title", "1", join(
            f"{phase.capitalize()}: one layer takes ", text(made[phase][1], "0"), " us, the longest step (", longest, ") ",
            text(maximum(times), "0.0"), " us"))  # fmt: skip
        book.place(sheet, row, column, one, style.Style(size=10.5, bold=True))
        sheet.charts.append((row + 1, column, charts.timeline(
            f"Timeline of one layer in {phase}: each step as a bar from its start, coloured by what limits it",
            ("Layers", head, 0, head + count - 1, 0), ("Layers", head, first + 1, head + count - 1, first + 1),
            [(style.BOUND_COLOURS[limit], ("Layers", head, first + 2 + index, head + count - 1, first + 2 + index))
             for index, limit in enumerate(LIMITS)], (640, 252), (0.16, 0.03, 0.80, 0.84))))  # fmt: skip

