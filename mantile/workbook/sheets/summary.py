"""The Summary sheet: the run's selectors, the answer in tiles, what limits it, and how far one may trust it: one page."""

from __future__ import annotations

from mantile.equations.checks import TOLERANCE, Verdict
from mantile.equations.constant import GIGA, KILO, MILLI, TERA
from mantile.equations.display import grouped
from mantile.equations.forward import Pass, group_names
from mantile.equations.inputs import DECODE, Workload
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block
from mantile.equations.stamp import Stamp
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    InCase,
    Input,
    Node,
    Quantity,
    all_of,
    as_node,
    equal,
    index,
    join,
    match,
    minimum,
    nth_largest,
    span,
    text,
    where,
)
from mantile.graph.sentence import sentence
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.sensitivity import SensitivitySheet
from mantile.workbook.sheets.sweep import SweepSheet
from mantile.workbook.sheets.workings import typed

FIRST, LAST = 1, 9
SELECTORS = (
    (
        "accelerator",
        "system",
        "framework",
        "weights_dtype",
        "activation_dtype",
        "kv_dtype",
        "batching",
        "price_basis",
        "utilisation",
    ),
    ("tp", "pp", "dp", "ep", "attention_dp", "cp", "input_tokens", "output_tokens", "concurrency"),
)
_HEIGHTS = {
    0: 36,
    1: 22,
    2: 8,
    3: 19,
    4: 21,
    5: 19,
    6: 21,
    7: 10,
    8: 18,
    9: 17,
    10: 36,
    11: 17,
    12: 32,
    13: 16,
    14: 20,
    15: 10,
    16: 22,
    30: 6,
    31: 22,
    45: 6,
    46: 22,
    47: 18,
    48: 18,
    49: 18,
}
_CHART = (442, 232)
_DATA = 53
_SHOWN = 8
LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)


def select(book: EstimateBook) -> Sheet:
    """Make the sheet with the selectors, the cells in which the base scenario's inputs are typed."""
    sheet = book.add_sheet(Sheet("Summary", "front"))
    sheet.widths = [12, *([152] * 9)]
    sheet.heights = dict(_HEIGHTS)
    sheet.default_height = 20
    inputs: Workload = book.estimate.equations.inputs
    chosen = book.estimate.inputs(0)
    found = inputs.named()
    small = style.Style(size=8.5, colour=style.GREY, valign="bottom")
    apart = len(book.estimate.equations.workers) > 1

    def selector(row: int, column: int, figure: Input) -> None:
        form = style.FRONT["percent"] if figure is inputs.utilisation else None
        look = style.value(
            figure.unit, is_text=isinstance(figure.value, str), role="input", integer=figure.integer
        ).but(align="left", indent=1)
        typed(book, sheet, row, column, figure, 0, look.but(form=form) if form else look)

    for row, names in zip((3, 5), SELECTORS, strict=True):
        rated = bool(
            chosen.get("inputs.request_rate")
        )  # the load is then the rate, and concurrency follows from it
        shown = [
            "request_rate" if name == "concurrency" and rated else name for name in names if name in found
        ]
        for column, name in enumerate(shown, FIRST):
            second = found.get(f"{DECODE}{name}") if apart else None
            sheet.set_text(
                row,
                column,
                found[name].label
                + ("" if second is None else ", prefill; decode" if row > 3 else ", prefill"),
                small,
            )
            selector(row + 1, column, found[name])
            if second is not None and row > 3:
                selector(row + 2, column, second)
    if apart:
        sheet.heights[7] = sheet.heights[6]
        sheet.set_text(7, FIRST + 6, "decode workers on  ", small.but(align="right", valign="vcenter"))
        for column, name in enumerate(("accelerator", "system"), FIRST + 7):
            selector(7, column, found[f"{DECODE}{name}"])
    return sheet


def summary_sheet(
    book: EstimateBook, verdict: Verdict, made: Stamp, sensitivity: SensitivitySheet, sweep: SweepSheet
) -> None:
    """Fill the Summary sheet."""
    sheet = book.sheets["Summary"]
    equations = book.estimate.equations
    served, inputs = equations.serving, equations.inputs
    sheet.set_formula(
        0,
        FIRST,
        join(
            f"{book.estimate.model.name} on ",
            _machines(book),
            ": ",
            grouped(served.ttft * MILLI),
            " ms to first token, ",
            text(served.interactivity, "0"),
            " tokens/s per user",
        ),
        style.SUMMARY_TITLE,
    )
    workload = join(
        text(inputs.input_tokens, "#,##0"),
        " tokens in, ",
        text(inputs.output_tokens, "#,##0"),
        " out, ",
        text(inputs.concurrency, "#,##0"),
        " concurrent requests · ",
    )
    shape = Quantity("summary.workload", "Workload", "1", workload)
    book.add_quantity(sheet, _DATA + 1, FIRST, shape, style.Style(size=9))
    apart = equations.prefill_workers.ranks.disaggregated
    plans = [
        _degrees(equations.prefill_workers),
        *([] if apart is None else [_degrees(equations.decode_workers, apart > 0)]),
    ]
    sheet.set_formula(
        1,
        FIRST,
        join(
            shape,
            inputs.weights_dtype,
            " · ",
            *plans,
            "· ",
            inputs.framework,
            " · ",
            inputs.batching,
            " batching",
        ),
        style.PURPOSE,
    )
    sheet.set_formula(0, LAST, verdict.headline, style.MASTER, scenario=ACROSS, link="internal:'Checks'!A1")
    sheet.conditional.append(
        (
            (0, LAST, 0, LAST),
            {
                "type": "text",
                "criteria": "begins with",
                "value": "✗",
                "format": style.Style(colour=style.FAIL, bold=True),
            },
        )
    )
    sheet.set_formula(
        1,
        LAST,
        join(verdict.alerts, " · ", InCase(verdict.stamp, 0)),
        style.BACK,
        scenario=ACROSS,
        link="internal:'Log'!A1",
    )
    _tiles(book, sheet)
    _heading(sheet, 16, "What limits it")
    for column, (limit, colour) in enumerate(style.BOUND_TEXTS.items(), 6):
        sheet.cells[16, column] = Cell(
            style.SECTION_HEAD.but(size=9.5, colour=colour, align="right"), text=f"■ {limit}"
        )
    _heading(sheet, 31, "How far from the limits, and what would change it")
    _charts(book, sheet)
    _outlook(book, sheet, sensitivity, sweep)
    _footer(book, sheet, verdict, made)
    sheet.print_area = (0, FIRST, 49, LAST)
    sheet.one_page = True


def _machines(book: EstimateBook) -> Node:
    """How many accelerators of which name; those that prefill, then those that decode, where they are apart."""
    first, second = book.estimate.equations.prefill_workers, book.estimate.equations.decode_workers
    each = [join(text(side.ranks.deployment, "0"), " × ", side.hardware.name) for side in (first, second)]
    apart = first.ranks.disaggregated
    return each[0] if apart is None else join(each[0], where(apart > 0, join(" → ", each[1]), ""))


def _degrees(side: Workers, shown: Node | None = None) -> Node:
    """The degrees of parallelism above 1 in a few letters, and a space; behind an arrow and only where `shown`, if that is given."""

    def only(condition: Node, words: Node | str) -> Node:
        return where(condition if shown is None else all_of(shown, condition), words, "")

    names = {"tp": "TP", "attention_dp": "DPA", "cp": "CP", "ep": "EP", "pp": "PP", "dp": "DP"}
    each = {words: getattr(side.inputs, name) for name, words in names.items()}
    arrow = [] if shown is None else [where(shown, "→ ", "")]
    above = [only(degree > 1, join(words, text(degree, "0"), " ")) for words, degree in each.items()]
    return join(*arrow, *above, only(side.ranks.deployment <= 1, "one accelerator "))


def _heading(sheet: Sheet, row: int, words: str) -> None:
    sheet.set_text(row, FIRST, words, style.SECTION_HEAD)
    sheet.set_style(row, FIRST + 1, LAST, style.SECTION_HEAD)


def _tiles(book: EstimateBook, sheet: Sheet) -> None:
    equations = book.estimate.equations
    served, held, inputs = equations.serving, equations.decode_workers.memory, equations.inputs
    prefill, decode = equations.prefill, equations.decode
    floor_ttft, floor_tpot = (equations.figures[f"floor.{name}"] for name in ("ttft", "tpot"))
    capacity, money = equations.decode_workers.hardware.memory_capacity, equations.cost

    def tile(
        column: int,
        label: str,
        number: Node,
        form: str,
        line: Node,
        definition: str | Node,
        second: str,
        other: Node,
        other_form: str,
        anchor: Quantity,
    ) -> None:
        edge = (style.THICK, style.WHITE) if column in (2, 5, 7) else None
        look = style.TILE.but(right=edge)
        sheet.set_text(9, column, label, look)
        large = look.but(
            size=22, bold=True, colour=style.NAVY, form=book.currency.number_format(style.FRONT[form])
        )
        sheet.set_cell(
            10,
            column,
            Cell(
                large,
                expression=number,
                link=book.link_to(anchor),
                note=f"{anchor.label}: {sentence(anchor)}\n\n{anchor.id}, on {book.addresses[anchor].sheet}",
            ),
        )
        sheet.set_formula(11, column, line, look.but(colour=style.INK))
        small = look.but(size=8, wrap=True, valign="top")
        if isinstance(definition, str):
            sheet.set_text(12, column, definition, small)
        else:
            sheet.set_formula(12, column, definition, small)
        sheet.set_text(13, column, second, look)
        sheet.set_formula(
            14,
            column,
            other,
            look.but(
                size=11,
                bold=True,
                colour=style.NAVY,
                form=book.currency.number_format(style.FRONT[other_form]),
            ),
        )

    for column, question in (
        (1, "DOES IT FIT?"),
        (3, "HOW FAST FOR ONE USER?"),
        (6, "HOW MUCH IN TOTAL?"),
        (8, "WHAT DOES IT COST?"),
    ):
        sheet.set_text(
            8,
            column,
            question,
            style.TILE.but(size=8.5, bold=True, colour=style.NAVY, top=(style.THICK, style.NAVY)),
        )
    for column in range(FIRST, LAST + 1):
        edge = (style.THICK, style.WHITE) if column in (2, 5, 7) else None
        look = style.TILE.but(
            size=8.5, bold=True, colour=style.NAVY, top=(style.THICK, style.NAVY), right=edge
        )
        if (8, column) in sheet.cells:
            sheet.cells[8, column].style = look
        else:
            sheet.set_cell(8, column, Cell(look))
    tile(
        1,
        "Fits in memory",
        held.fits,
        "yes",
        join(equations.checks.feasibility, ": ", text(held.used / held.usable, "0%"), " of usable"),
        join("usable: ", text(held.usable / capacity, "0.0%"), " of ", text(capacity / GIGA, "0.0"), " GB"),
        "Room for KV cache",
        held.capacity_sequences,
        "sequences",
        held.fits,
    )
    sheet.conditional.append(
        (
            (10, 1, 10, 1),
            {
                "type": "cell",
                "criteria": "==",
                "value": 0,
                "format": style.Style(colour=style.FAIL, bold=True),
            },
        )
    )
    tile(
        2,
        "Memory per accelerator",
        held.used / GIGA,
        "GB1",
        join("KV cache ", text(held.kv / GIGA, "0.0"), " GB"),
        "weights, KV cache, activations and runtime, fullest one",
        "of which weights",
        held.weights / GIGA,
        "GB1",
        held.used,
    )
    bands = equations.evidence.bands

    def likely(metric: str, factor: Node, form: str, unit: str = "") -> Node:
        low, _, high = bands[metric]
        return join(
            "80 %: ", grouped(low * factor, form, "0.00"), " to ", grouped(high * factor, form, "0.00"), unit
        )

    one: Node = as_node(1)
    tile(
        3,
        "Time to first token, TTFT",
        served.ttft * MILLI,
        "ms",
        likely("ttft", MILLI, "#,##0", " ms"),
        join("arrival to first token, mean, queueing included; floor ", text(floor_ttft * MILLI, "0"), " ms"),
        "Prefill compute used, MFU",
        prefill.mfu,
        "percent",
        served.ttft,
    )
    tile(
        4,
        "Time per token, TPOT",
        served.tpot * MILLI,
        "ms1",
        likely("tpot", MILLI, "0.0", " ms"),
        join("mean gap between tokens of one request; floor ", text(floor_tpot * MILLI, "0.0"), " ms"),
        "Decode bandwidth used, MBU",
        decode.mbu,
        "percent",
        served.tpot,
    )
    tile(
        5,
        "End to end",
        served.e2e,
        "s2",
        join(text(served.ttft / served.e2e, "0%"), " of it to the first token"),
        "TTFT and one TPOT for every further token",
        "Interactivity",
        served.interactivity,
        "per_user",
        served.e2e,
    )
    tile(
        6,
        "Output tokens per second",
        served.output_tokens_per_s,
        "whole",
        likely("throughput", one, "#,##0"),
        join("whole deployment, ", text(inputs.concurrency, "#,##0"), " requests in flight"),
        "Requests",
        served.requests_per_s,
        "per_second",
        served.output_tokens_per_s,
    )
    tile(
        7,
        "Per accelerator",
        served.output_tokens_per_s_per_accelerator,
        "whole",
        join("accelerators: ", text(served.accelerators, "#,##0")),
        "output tokens per second and accelerator",
        "Tokens per second",
        served.total_tokens_per_s,
        "total",
        served.output_tokens_per_s_per_accelerator,
    )
    tile(
        8,
        book.currency.named("USD per million output tokens"),
        book.currency.convert(money.usd_per_million_output),
        "usd",
        join(inputs.price_basis, " price, utilisation ", text(inputs.utilisation, "0%")),
        "cost per hour ÷ output tokens, at the utilisation stated",
        "All accelerators",
        book.currency.convert(money.usd_per_hour),
        "usd_hour",
        money.usd_per_million_output,
    )
    tile(
        9,
        "Power in the building",
        money.power / KILO,
        "kilowatt",
        join("accelerators: ", text(served.accelerators, "#,##0"), ", PUE ", text(inputs.pue, "0.00")),
        "accelerators with their share of host and building, mean",
        "Energy",
        money.joules_per_output_token,
        "joule",
        money.power,
    )


def _charts(book: EstimateBook, sheet: Sheet) -> None:
    equations = book.estimate.equations
    sheet.set_text(
        _DATA, FIRST, "Chart data (live, not printed)", style.Style(size=9, bold=True, colour=style.GREY)
    )
    row = _split_chart(book, sheet, _DATA + 3)
    row = _memory_chart(book, sheet, row + 2)
    row = _module_chart(book, sheet, row + 2, equations.prefill, 4)
    row = _module_chart(book, sheet, row + 2, equations.decode, 7)
    _roofline_chart(book, sheet, row + 2)


def _outlook(book: EstimateBook, sheet: Sheet, sensitivity: SensitivitySheet, sweep: SweepSheet) -> None:
    """Throughput against speed for a user, and what moves the cost, or TPOT where there is no price."""
    served = book.estimate.equations.serving
    _title(
        book,
        sheet,
        32,
        4,
        "curve",
        join(
            "Now ",
            text(served.interactivity, "0"),
            " tokens/s per user, ",
            grouped(served.output_tokens_per_s_per_accelerator),
            " per accelerator",
        ),
    )
    if sweep.note is not None:
        sheet.cells[31, LAST] = Cell(
            style.SECTION_HEAD.but(size=9.5, colour=style.GREY, align="right", bold=False),
            expression=sweep.note,
            scenario=ACROSS,
        )
    sheet.charts.append((33, 4, sweep.interactivity(_CHART, (0.115, 0.03, 0.85, 0.74))))
    result = (
        "usd"
        if float(book.estimate_values[0][book.estimate.equations.cost.usd_per_million_output]) > 0
        else "tpot"
    )
    sheet.set_formula(
        32, 7, sensitivity.figures.rankings[result].title, style.Style(size=10.5, bold=True), scenario=ACROSS
    )
    words = {"usd": book.currency.named("USD per million output tokens"), "tpot": "TPOT"}[result]
    sheet.charts.append((33, 7, sensitivity.tornado(result, words, _CHART)))


_SMALL = style.Style(size=9)
_NUMBER = style.Style(size=9, form="#,##0.000", align="right")


def _title(book: EstimateBook, sheet: Sheet, row: int, column: int, name: str, body: Node) -> None:
    book.add_quantity(
        sheet,
        row,
        column,
        Quantity(f"summary.title.{name}", "Chart title", "1", body),
        style.Style(size=10.5, bold=True),
    )


def _split_chart(book: EstimateBook, sheet: Sheet, row: int) -> int:
    equations = book.estimate.equations
    phases = {"Prefill": equations.prefill, "Decode": equations.decode}
    for column, limit in enumerate(LIMITS, 2):
        sheet.set_text(row, column, limit, _SMALL)
    for offset, (name, phase) in enumerate(phases.items(), 1):
        sheet.set_text(row + offset, FIRST, name, _SMALL)
        for column, limit in enumerate(LIMITS, 2):
            sheet.set_formula(row + offset, column, phase.parts[limit] / phase.time, _NUMBER)
    both = join(
        "Prefill is limited by ", equations.prefill.bottleneck, ", decode by ", equations.decode.bottleneck
    )
    _title(book, sheet, 17, 1, "split", both)
    labels = (style.WHITE, style.INK, style.INK, style.INK)
    sheet.charts.append(
        (
            18,
            1,
            charts.split(
                "Share of prefill and decode time by compute, memory, network and overhead",
                ("Summary", row + 1, 1, row + 2, 1),
                [
                    (
                        style.BOUND_COLOURS[limit],
                        labels[index],
                        ("Summary", row + 1, 2 + index, row + 2, 2 + index),
                    )
                    for index, limit in enumerate(LIMITS)
                ],
                (442, 98),
                (0.12, 0.04, 0.86, 0.92),
            ),
        )
    )
    return row + 2


def _memory_chart(book: EstimateBook, sheet: Sheet, row: int) -> int:
    held, hardware = (
        book.estimate.equations.decode_workers.memory,
        book.estimate.equations.decode_workers.hardware,
    )
    parts = (
        ("weights", held.weights, style.NAVY),
        ("KV cache", held.kv, style.MEMORY),
        ("activations", held.activations + held.logits, style.ACTIVATIONS),
        ("runtime", held.reserve, style.OVERHEAD),
        ("free", held.free, style.WHITE),
        ("reserve", held.outside, style.RESERVE),
    )
    series = []
    for column, (name, part, colour) in enumerate(parts, 2):
        amount = Quantity(f"summary.memory.{name}", name, "GB", part / GIGA)
        book.add_quantity(sheet, row + 1, column, amount, _NUMBER)
        sheet.set_formula(row, column, join(f"{name} ", text(amount, "0.0")), _SMALL)
        series.append(
            (colour, charts.cell("Summary", row, column), ("Summary", row + 1, column, row + 1, column))
        )
    _title(
        book,
        sheet,
        23,
        1,
        "memory",
        join(
            text(held.used / GIGA, "0.0"),
            " of ",
            text(hardware.memory_capacity / GIGA, "0.0"),
            " GB used: room for ",
            grouped(held.capacity_sequences),
            " sequences",
        ),
    )
    sheet.charts.append(
        (
            24,
            1,
            charts.stack(
                "Memory of the fullest accelerator: weights, KV cache, activations, runtime, free and reserve against capacity",
                series,
                (442, 118),
                (0.03, 0.04, 0.94, 0.42),
            ),
        )
    )
    return row + 1


def _module_chart(book: EstimateBook, sheet: Sheet, row: int, phase: Pass, place: int) -> int:
    """Time by group of modules, sorted live: groups, then their order, then the sorted series.

    The key is the time with a billionth of it per place added, so that groups of equal time keep an order in every engine, and a
    billionth of a billionth of a second, so that those without any time do.
    """
    name = phase.phase.id
    for column, head in enumerate((f"{name}: group", "number", "key, s"), FIRST):
        sheet.set_text(row, column, head, _SMALL)
    used = {figure.value for figure in phase.times.groups}
    groups = [label for label in group_names(book.estimate.equations.ir).values() if label in used]
    names, keys = [], []
    for number, label in enumerate(groups, 1):
        line = row + number
        named = Input(
            f"summary.{name}.group.{number}", f"Group {number}", "1", label, shared=True, fixed=True
        )
        order = Input(
            f"summary.{name}.number.{number}", f"Number {number}", "number", number, shared=True, fixed=True
        )
        book.add_constant(sheet, line, 1, named, _SMALL)
        book.add_constant(sheet, line, 2, order, _NUMBER.but(form="0"))
        names.append(named)
        key = Quantity(
            f"summary.{name}.key.{number}",
            "Key",
            "s",
            phase.times.of(named) * (1 + order * TOLERANCE) + order * TOLERANCE * TOLERANCE,
        )
        book.add_quantity(sheet, line, 3, key, _NUMBER.but(form="0.000000"))
        keys.append(key)
    row += len(groups) + 1
    for column, head in enumerate(
        (f"{name}: sorted", "rank", "entry", *(f"{limit}, ms" for limit in LIMITS), "group"), FIRST
    ):
        sheet.set_text(row, column, head, _SMALL)
    entries: list[Quantity] = []
    shown = min(_SHOWN, len(groups))
    for number in range(1, shown + 1):
        line = row + number
        rank = Input(
            f"summary.{name}.rank.{number}", f"Rank {number}", "number", number, shared=True, fixed=True
        )
        book.add_constant(sheet, line, 2, rank, _NUMBER.but(form="0"))
        entry = Quantity(
            f"summary.{name}.entry.{number}",
            "Entry",
            "number",
            match(nth_largest(span(keys), rank), span(keys)),
        )
        book.add_quantity(sheet, line, 3, entry, _NUMBER.but(form="0"))
        entries.append(entry)
        group = Quantity(f"summary.{name}.sorted.{number}", "Group", "1", index(span(names), entry))
        book.add_quantity(sheet, line, 8, group, _SMALL)
        spent = index(span(keys), entry)
        sheet.set_formula(
            line, 1, where(spent > TOLERANCE, join(group, "   ", text(spent * MILLI, "0.00")), "–"), _SMALL
        )
        for column, limit in enumerate(LIMITS, 4):
            if phase.shares[limit].figures:
                sheet.set_formula(line, column, phase.shares[limit].of(group) * MILLI, _NUMBER)
    first, second = (index(span(names), entry) for entry in entries[:2])
    share = (index(span(keys), entries[0]) + index(span(keys), entries[1])) / phase.time
    both = Quantity(f"summary.{name}.two_largest", "Two largest", "1", share)
    book.add_quantity(sheet, row + shown + 1, 3, both, _NUMBER)
    sheet.set_text(row + shown + 1, 1, "share of the two largest", _SMALL)
    head = "Prefill, " if name == "prefill" else "Decode step, "
    _title(
        book,
        sheet,
        17,
        place,
        name,
        join(
            head, text(phase.time * MILLI, "0.0"), " ms: ", first, " and ", second, " take ", text(both, "0%")
        ),
    )
    sheet.charts.append(
        (
            18,
            place,
            charts.bars(
                f"{name.capitalize()} time by group of modules in ms, largest first, coloured by what limits it",
                ("Summary", row + 1, 1, row + shown, 1),
                [
                    (style.BOUND_COLOURS[limit], ("Summary", row + 1, 4 + offset, row + shown, 4 + offset))
                    for offset, limit in enumerate(LIMITS)
                ],
                "ms",
                _CHART,
                (0.345, 0.03, 0.62, 0.85),
            ),
        )
    )
    return row + shown + 1


def _roofline_chart(book: EstimateBook, sheet: Sheet, row: int) -> int:
    equations = book.estimate.equations
    hardware, reached, kinds = (
        equations.decode_workers.hardware,
        equations.decode_workers.efficiency,
        equations.decode_workers.formats,
    )
    peak_line = equations.decode.peak
    products = next(name for name in ("ffn", "attention") if name in kinds.classes)
    for column, head in enumerate(
        ("roofline", "FLOP per byte", "peak, TFLOP/s", "FLOP per byte", "reached, TFLOP/s"), FIRST
    ):
        sheet.set_text(row, column, head, _SMALL)
    ends = [
        Input(f"summary.roof.{name}", name, "1", value, shared=True, fixed=True)
        for name, value in (("left", 1), ("right", 10_000))
    ]
    roofs = (
        (peak_line, hardware.memory_bandwidth, 2),
        (reached[f"gemm_flops.{products}"], reached[f"gemm_bytes.{products}"], 4),
    )
    for peak, bandwidth, column in roofs:
        xs: list[Node] = [ends[0], peak / bandwidth, ends[1]]
        for offset, x in enumerate(xs, 1):
            if isinstance(x, Input):
                if column == 2:
                    book.add_constant(sheet, row + offset, column, x, _NUMBER)
                else:
                    sheet.set_formula(row + offset, column, x, _NUMBER)
            else:
                sheet.set_formula(row + offset, column, x, _NUMBER)
            sheet.set_formula(row + offset, column + 1, minimum(peak, x * bandwidth) / TERA, _NUMBER)
    row += 5
    points = []
    for phase, marker in ((equations.prefill, "circle"), (equations.decode, "diamond")):
        blocks = [block for block in phase.blocks if block.flops is not None and block.bytes is not None]
        times = {block.id: float(book.estimate_values[0][block.time]) for block in blocks}
        total = float(book.estimate_values[0][phase.time])
        largest = max(times, key=lambda identifier: times[identifier])
        cores = [block for block in blocks if block.group == "attention"]
        core = max(cores, key=lambda block: times[block.id]).id if cores else None
        for block in blocks:
            if times[block.id] < 0.05 * total and not (phase is equations.decode and block.id == core):
                continue
            shown = block.id == largest or (phase is equations.decode and block.id == core)
            words = {"ffn": "FFN", "experts": "experts", "attention": "attention"}.get(
                block.group, block.label.split(" ")[0]
            )
            label = words if phase is equations.decode and block.id == core else f"{phase.phase.id} {words}"
            points.append((row, label if shown else None, marker, block))
            sheet.set_text(row, 1, f"{phase.phase.id}: {block.label}", _SMALL)
            _point(book, sheet, row, block)
            row += 1
    _title(
        book,
        sheet,
        32,
        1,
        "roofline",
        join(
            "Peak ",
            grouped(peak_line / TERA),
            " TFLOP/s, memory ",
            grouped(hardware.memory_bandwidth / GIGA),
            " GB/s",
        ),
    )
    base = points[0][0] - 5
    sheet.charts.append(
        (
            33,
            1,
            charts.roofline(
                "Roofline of one accelerator: reached TFLOP/s against arithmetic intensity; circles prefill, diamonds decode; "
                "the dashed line is what matrix products reach",
                [
                    (
                        ("Summary", base + 1, 2, base + 3, 2),
                        ("Summary", base + 1, 3, base + 3, 3),
                        style.INK,
                        False,
                    ),
                    (
                        ("Summary", base + 1, 4, base + 3, 4),
                        ("Summary", base + 1, 5, base + 3, 5),
                        "#B8C1C9",
                        True,
                    ),
                ],
                [
                    (
                        label,
                        ("Summary", place, 2, place, 2),
                        ("Summary", place, 3, place, 3),
                        style.COMPUTE if marker == "circle" else style.MEMORY,
                        marker,
                        "below" if marker == "circle" else "right",
                    )
                    for place, label, marker, _ in points
                ],
                _CHART,
                (0.105, 0.03, 0.86, 0.74),
            ),
        )
    )
    return row


def _point(book: EstimateBook, sheet: Sheet, row: int, block: Block) -> None:
    assert block.flops is not None and block.bytes is not None
    sheet.set_formula(row, 2, block.flops / block.bytes, _NUMBER)
    sheet.set_formula(row, 3, block.flops / block.layer_time / TERA, _NUMBER)


def _footer(book: EstimateBook, sheet: Sheet, verdict: Verdict, made: Stamp) -> None:
    equations = book.estimate.equations
    line = style.Style(size=9.5)
    for column, head in ((1, "How good is the evidence"), (4, "Checks"), (7, "As generated")):
        sheet.set_text(46, column, head, style.SECTION_HEAD)
    sheet.set_style(46, FIRST, LAST, style.SECTION_HEAD)
    sheet.set_formula(
        47,
        1,
        join(
            "Efficiency profile ",
            equations.prefill_workers.efficiency.profile,
            ", wider ones where it is silent",
        ),
        line,
    )
    sheet.set_formula(48, 1, join("Ranges above: four in five runs, ", equations.evidence.name), line)
    sheet.set_text(49, 1, "Assumptions, with what moves the answer most, are numbered on Assumptions", line)
    sheet.set_formula(47, 4, join(verdict.headline, "; ", verdict.alerts), line, scenario=ACROSS)
    served = equations.serving
    floor_ttft, floor_tpot = (equations.figures[f"floor.{name}"] for name in ("ttft", "tpot"))
    sheet.set_formula(
        48,
        4,
        join(
            "Above the independent floor: TTFT ",
            text(minimum(served.ttft / floor_ttft, 1 / TOLERANCE), "0.0"),
            " ×, TPOT ",
            text(minimum(served.tpot / floor_tpot, 1 / TOLERANCE), "0.0"),
            " ×",
        ),
        line,
    )
    sheet.set_formula(
        49,
        4,
        where(
            equal(verdict.master, 1),
            "Every formula cell can be recomputed: mantile verify FILE.xlsx",
            "Failing checks are listed on Checks with their reason",
        ),
        line,
        scenario=ACROSS,
    )
    sheet.set_formula(
        47,
        7,
        join(
            "TTFT ",
            text(made.stored[0] * MILLI, "0"),
            " ms · TPOT ",
            text(made.stored[1] * MILLI, "0.0"),
            " ms · ",
            grouped(made.stored[2]),
            " tokens/s",
        ),
        line,
    )
    sheet.set_formula(48, 7, join("Live results: ", verdict.stamp), line)
    sheet.set_text(49, 7, book.imprint, line)
