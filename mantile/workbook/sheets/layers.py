"""The Layers sheet: one layer of each kind step by step, then every layer of a pass with its start, time and parts."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.collectives import sums_after, sums_inside
from mantile.equations.constants import MICRO, MILLI
from mantile.equations.forward import Pass, group_names
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block, limited
from mantile.equations.sharding import scope
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    element,
    join,
    maximum,
    position,
    span,
    sum_where,
    text,
    total,
    where,
    whole,
)  # fmt: skip
from mantile.ir.modules import Layer, Module
from mantile.workbook import charts, style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.sheets.furniture import furnish

CHART_ROWS = 17
LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
# Columns of the step table: name, group, then six for each phase; of the list: the same block.
_FIRST = {"prefill": 2, "decode": 8}
_PARTS = {"projections": "projections", "attention": "core, state", "ffn": "FFN", "experts": "experts", "small": "small kernels",
          "all_reduce": "messages"}  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """One layer of a kind in the step table: where its rows are and what they hold."""

    layer: Layer
    row: int
    names: tuple[Input, ...]
    groups: tuple[Input, ...]
    steps: tuple[Block, ...]
    times: dict[str, list[Quantity]]
    whole: dict[str, Quantity]


def steps_of_layer(phase: Pass, layer: Layer, after: tuple[Module, ...], inside: tuple[Module, ...]) -> list[tuple[str, Block]]:
    """The blocks of one layer in execution order, messages after mixer and FFN, and where a mixer needs a sum inside."""
    blocks = {block.id: block for block in phase.blocks}
    steps: list[tuple[str, Block]] = []
    for module in layer.modules:
        steps.append((module.short, blocks[module.id]))
        if module in inside:
            steps.append((f"{module.short} sum", blocks["inner_reduce"]))
        elif module in after:
            steps.append((f"messages {1 + sum(block.id == 'all_reduce' for _, block in steps)}", phase.after[scope(module)]))
    return steps


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
    sheet.widths = [190, 112, *([78] * 12)]
    last = len(sheet.widths) - 1
    furnish(book, sheet, "Layers", last, master)
    sheet.heights[2] = 6
    phases = {"prefill": equations.prefill, "decode": equations.decode}
    head = CHART_ROWS + 3
    for phase, first in _FIRST.items():
        for column, words in enumerate(("time", "start", *LIMITS), first):
            sheet.text(head, column, phase if column == first else "", style.HEADER.but(bottom=None))
            sheet.text(head + 1, column, words, style.HEADER_RIGHT)
    for column, words in enumerate(("one layer, us", "part")):
        sheet.text(head, column, "", style.HEADER.but(bottom=None))
        sheet.text(head + 1, column, words, style.HEADER)
    kinds: list[_Kind] = []
    row = head + 2
    for number, layer in enumerate(equations.ir.layers):
        kinds.append(_kind(book, sheet, row, number, layer, phases))
        row = kinds[-1].row + len(kinds[-1].steps) + 2
    row = _list(book, sheet, row + 1, kinds, phases, last)
    _charts(book, sheet, max(kinds, key=lambda kind: int(kind.layer.count.value or 0)))
    sheet.print_area = (0, 0, row - 1, last)
    return sheet


def _kind(book: Book, sheet: Sheet, row: int, number: int, layer: Layer, phases: dict[str, Pass]) -> _Kind:
    """The steps of one layer: time, start, and the time by limit, in us."""
    us = style.value("us")
    green = us.but(colour=style.LINK)
    ir = book.estimate.equations.ir
    called = group_names(ir)
    steps = {name: steps_of_layer(phase, layer, sums_after(ir), sums_inside(ir)) for name, phase in phases.items()}
    names: list[Input] = []
    groups: list[Input] = []
    times: dict[str, list[Quantity]] = {name: [] for name in phases}
    starts: dict[str, list[Quantity]] = {name: [] for name in phases}
    sheet.text(row, 0, layer.name, style.LABEL.but(bold=True, fill=style.PANEL))
    for index, (short, block) in enumerate(steps["decode"]):
        line = row + 1 + index
        names.append(Input(f"layers.name.{number}.{index}", f"Step {index}", "1", short, shared=True, fixed=True))
        book.fix(sheet, line, 0, names[-1], style.LABEL.but(indent=1))
        label = called[block.group]
        groups.append(Input(f"layers.group.{number}.{index}", f"Group {index}", "1", label, shared=True, fixed=True))
        book.fix(sheet, line, 1, groups[-1], style.SOURCE)
        for name, first in _FIRST.items():
            block = steps[name][index][1]
            time = Quantity(f"layers.step.{number}.{name}.{index}", f"Time of {short}", "us", block.layer_time * MICRO)
            book.place(sheet, line, first, time, green, link=book.anchor(block.layer_time))
            start = Quantity(f"layers.start.{number}.{name}.{index}", f"Start of {short}", "us",
                             starts[name][-1] + times[name][-1] if starts[name] else time - time)  # fmt: skip
            book.place(sheet, line, first + 1, start, us)
            times[name].append(time)
            starts[name].append(start)
            for offset, limit in enumerate(LIMITS):
                part = part_of(block, limit)
                if part is not None:
                    sheet.formula(line, first + 2 + offset, part * MICRO, green)
    everything = {}
    for name, first in _FIRST.items():
        everything[name] = Quantity(f"layers.layer.{number}.{name}", f"One layer, {layer.name}, {name}", "us", total(span(times[name])))
        book.place(sheet, row, first, everything[name], us.but(bold=True, fill=style.PANEL))
    sheet.band(row, 1, 13, style.LABEL.but(fill=style.PANEL))
    decode_steps = tuple(block for _, block in steps["decode"])
    return _Kind(layer, row + 1, tuple(names), tuple(groups), decode_steps, times, everything)


def _list(book: Book, sheet: Sheet, row: int, kinds: list[_Kind], phases: dict[str, Pass], last: int) -> int:
    equations = book.estimate.equations
    called = group_names(equations.ir)
    used = [name for name in _PARTS if any(figure.value == called[name] for kind in kinds for figure in kind.groups)]
    top = style.HEADER.but(bottom=None)
    for column, words in ((0, ""), (4, "prefill"), (6, "decode"), (8, "decode by part, us; bar = share of a layer")):
        sheet.text(row, column, words, top)
    sheet.band(row, 0, last, top)
    row += 1
    heads = ("layers", "made of", "listed", "stage", "start, ms", "time, ms", "start, ms", "time, ms")
    parts: list[Input] = []
    for column, head in enumerate((*heads, *(_PARTS[name] for name in used))):
        sheet.text(row, column, head, style.HEADER if column < 2 else style.HEADER_RIGHT)
    row += 1
    sheet.text(row, 0, "as the steps call them", style.SOURCE)
    for index, name in enumerate(used):
        parts.append(Input(f"layers.part.{index}", f"Part {index}", "1", called[name], shared=True, fixed=True))
        book.fix(sheet, row, 8 + index, parts[-1], style.SOURCE.but(align="right"))
    row += 1
    ms = {"prefill": style.value("us").but(form=style.FRONT["ms2"] + "_)_)"), "decode": style.value("us").but(form=style.FRONT["ms3"] + "_)_)")}
    us = style.value("us")
    columns = {"prefill": 4, "decode": 6}

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
    if equations.ir.vision is not None:
        once("vision", "Vision tower", {"prefill": block(equations.prefill, "vision").time})
    once("embedding", "Embedding, its messages", {phase: block(result, "embedding").time + result.after["attention"].layer_time
                                                  for phase, result in phases.items()})  # fmt: skip
    each: list[dict[str, Quantity]] = []
    modules: list[list[Quantity]] = []
    for number, kind in enumerate(kinds):
        sheet.text(row, 0, "One layer" if len(kinds) == 1 else f"One layer, {kind.layer.name}", style.LABEL.but(**bold))
        each.append({phase: put(f"one.{number}", columns[phase] + 1, "ms", kind.whole[phase] / MICRO * MILLI, ms[phase].but(**bold))
                     for phase in phases})  # fmt: skip
        times = span(kind.times["decode"])
        modules.append([put(f"one.{number}", 8 + index, "us", sum_where(times, span(kind.groups), part), us.but(**bold))
                        for index, part in enumerate(parts)])  # fmt: skip
        sheet.band(row, 0, last, style.LABEL.but(**bold))
        row += 1
        sheet.text(row, 0, "Share of a layer", style.LABEL.but(indent=1))
        for index, module in enumerate(modules[-1]):
            put(f"share.{number}", 8 + index, "1", module / kind.whole["decode"], style.VALUE.but(form="0%_)_)"))
        row += 1

    first_row = row
    places = {kind.layer.blocks: number for number, kind in enumerate(kinds)}
    counted = [0] * len(kinds)
    for number, blocks in enumerate(equations.ir.model.architecture.sequence(), 1):
        place = places[blocks]
        counted[place] += 1
        layer = Input(f"layers.number.{number}", f"Layer {number}", "number", number, shared=True, fixed=True)
        book.fix(sheet, row, 0, layer, style.LABEL.but(form='"Layer "0', indent=1))
        of_kind = layer
        if len(kinds) > 1:
            form = f'"{kinds[place].layer.name} "0'
            of_kind = Input(f"layers.of_kind.{number}", f"Number of its kind, layer {number}", "number", counted[place], shared=True, fixed=True)
            book.fix(sheet, row, 1, of_kind, style.SOURCE.but(form=form, align="left"))
        listed = put(f"listed.{number}", 2, "flag", where(of_kind <= kinds[place].layer.count, 1, 0), style.LEVEL.but(form='"●"_)_);;"–"_)_)'))
        put(f"stage.{number}", 3, "number", whole((layer - 1) / equations.decoders.plan.layers), style.value("number", role="fixed"))
        for phase in phases:
            column = columns[phase]
            begin = put(f"layer.{number}", column, "ms", previous[phase][0] + previous[phase][1], ms[phase])
            previous[phase] = (begin, put(f"layer.{number}", column + 1, "ms", listed * each[place][phase], ms[phase]))
        for index, module in enumerate(modules[place]):
            put(f"layer.{number}", 8 + index, "us", listed * module, us)
        row += 1
    highest = max(float(book.estimate_values[0][found.layer_time]) for kind in kinds for found in kind.steps) * 1e6
    sheet.conditional.append(((first_row, 8, row - 1, 7 + len(used)), {
        "type": "data_bar", "bar_solid": True, "data_bar_2010": True, "bar_color": style.SHARE_BAR, "min_type": "num",
        "max_type": "num", "min_value": 0, "max_value": round(1.9 * highest, 3)}))  # fmt: skip
    for end in equations.ir.modules:
        if end.layers is None and end.id != "embedding":
            once(end.id, end.label, {phase: block(result, end.id).time for phase, result in phases.items()})
    for identifier, label in (("context", "Context exchange"), ("host", "Host memory")):
        if any(found.id == identifier for found in equations.decode.blocks):
            once(identifier, label, {phase: block(result, identifier).time for phase, result in phases.items()})
    once("p2p", "Stage to stage", {phase: block(result, "p2p").time for phase, result in phases.items()})
    return row


def _charts(book: Book, sheet: Sheet, kind: _Kind) -> None:
    head, count = kind.row, len(kind.steps)
    for phase, first in _FIRST.items():
        row, column = 3, 0 if phase == "prefill" else 7
        times = span(kind.times[phase])
        longest = element(span(kind.names), position(maximum(times), times))
        called = "one layer" if len(book.estimate.equations.ir.layers) == 1 else f"one {kind.layer.name} layer"
        one = Quantity(f"layers.title.{phase}", "Title", "1", join(
            f"{phase.capitalize()}: {called} takes ", text(kind.whole[phase], "0"), " us, the longest step (", longest, ") ",
            text(maximum(times), "0.0"), " us"))  # fmt: skip
        book.place(sheet, row, column, one, style.Style(size=10.5, bold=True))
        sheet.charts.append((row + 1, column, charts.timeline(
            f"Timeline of one layer in {phase}: each step as a bar from its start, coloured by what limits it",
            ("Layers", head, 0, head + count - 1, 0), ("Layers", head, first + 1, head + count - 1, first + 1),
            [(style.BOUND_COLOURS[limit], ("Layers", head, first + 2 + index, head + count - 1, first + 2 + index))
             for index, limit in enumerate(LIMITS)], (600, 300), (0.16, 0.03, 0.80, 0.84))))  # fmt: skip
