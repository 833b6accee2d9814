"""The Compare sheet: scenarios side by side, what each changes against the base, and which is best at what, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.checks import INVALID, TOLERANCE
from mantile.equations.constant import GIGA, KILO, MILLI
from mantile.equations.inputs import DECODE
from mantile.equations.roofline import NETWORK
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    all_of,
    count_where,
    equal,
    index,
    join,
    match,
    maximum,
    minimum,
    precedents,
    span,
    substitute,
    sum_of,
    sum_range,
    text,
    where,
)
from mantile.library.scenario import CLASS_DTYPES, SAME
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows, scenario_heads

_BASE = 4  # column of the base's values
_LABELS, _BEST = (104, 220, 96, 54), 48  # widths
_HEADER, _FIRST = 3, 5  # rows
_HEIGHT, _GAP = 20, 6
_ASKED = "Configuration"
_DEGREES = ("tp", "pp", "dp", "ep", "attention_dp", "cp")
_CONFIGURATION = (
    "serving",
    *(f"{prefix}{name}" for name in ("accelerator", "framework", *_DEGREES) for prefix in ("", DECODE)),
    "weights_dtype",
    *CLASS_DTYPES,
    "kv_dtype",
    "price_basis",
    "concurrency",
    "request_rate",
    "input_tokens",
    "output_tokens",
)
# Inputs that say nothing at these values: their row is left out where no scenario has another.
_PLAIN = {
    **dict.fromkeys((*_DEGREES, *(f"{DECODE}{name}" for name in _DEGREES)), 1),
    **dict.fromkeys(CLASS_DTYPES, SAME),
    "request_rate": 0,
}
_SMALL = style.Style(size=9)
_NUMBER = style.Style(size=9, form="#,##0.00", align="right", shrink=True)
_COUNT = _NUMBER.but(form="0")


def figures_of(body: Node) -> tuple[Named, ...]:
    """What an expression is made of, but for definitions, which are the same in every scenario."""
    found = (body,) if isinstance(body, Input | Quantity) else precedents(body)
    return tuple(figure for figure in found if not (isinstance(figure, Input) and figure.fixed))


@dataclass(frozen=True, eq=False)
class Line:
    """What a row shows.

    Args:
        body: of one scenario.
        form: a format of the front sheets; empty for texts.
        better: the direction that is; "neither" has changes only, None not even those.
        chart: what its chart is called and the format of the values there.
        headline: whether the sheet's finding counts it.
    """

    label: str
    unit: str
    body: Node
    form: str = ""
    better: Literal["lower", "higher", "neither"] | None = None
    chart: tuple[str, str] | None = None
    headline: bool = False

    @property
    def ranked(self) -> bool:
        """Whether one scenario can be better than another."""
        return self.better in ("lower", "higher")

    @property
    def figures(self) -> tuple[Named, ...]:
        """What it is made of, but for definitions."""
        return figures_of(self.body)


@dataclass(frozen=True, eq=False)
class _Row:
    """A line in its place, and its value in every scenario."""

    line: Line
    row: int
    values: tuple[Quantity, ...]


@dataclass(frozen=True)
class _Best:
    """Who is best in a row: the number of the first who is, 0 where none is ahead, and of a headline for every scenario whether it is."""

    number: Quantity
    each: tuple[Node, ...]


@dataclass(frozen=True)
class _Scenarios:
    """What is said of scenarios side by side: their numbers from 1, letters, names, whether they fit, and how charts call them."""

    numbers: tuple[Input, ...]
    letters: Span
    names: Span
    fits: tuple[Quantity, ...]
    labels: charts.Range


def compare_sheet(book: EstimateBook, master: Quantity) -> Sheet:
    """Lay out the Compare sheet of a workbook with several scenarios."""
    sheet = book.add_sheet(
        Sheet(
            "Compare",
            "outputs",
            "Changes are against A; = is less than half a percent. The best of the scenarios that fit are bold on green, "
            "the first of them named at the right.",
        )
    )
    last = _column(book.columns)
    pair = max(
        144, min(280, 700 // (book.columns - 1))
    )  # what the page leaves to a scenario, as far as numbers need it and eyes can follow
    change = round(pair * 0.36)
    sheet.widths = [*_LABELS, pair - change, *((pair - change, change) * (book.columns - 1)), _BEST]
    sheet.default_height = _HEIGHT
    add_title_rows(book, sheet, "Compare", last, master)
    _heads(book, sheet, last)
    row, rows = _FIRST, []
    for section, lines in _sections(book).items():
        sheet.heights[row] = _GAP
        row += 1
        for number, line in enumerate(lines):
            rows.append(_row(book, sheet, row, section, line, number == 0, last))
            row += 1
    chart_rows = book.columns + 4  # LibreOffice breaks labels in lower charts
    finding, below = row, row + 1 + chart_rows
    sheet.print_area = (0, 0, below, last)
    sheet.one_page = True
    sheet.freeze = (_FIRST, 2)
    known, free = _scenarios(book, sheet, below + 3, rows)
    best, free = _best(book, sheet, free, rows, known)
    for found, ahead in best.items():
        letter = where(ahead.number > 0, index(known.letters, maximum(1, ahead.number)), "=")
        sheet.cells[found.row, last] = Cell(
            sheet.cells[found.row, last].style, expression=letter, scenario=ACROSS
        )
    free = _finding(book, sheet, finding, free, known, best, last)
    _charts(book, sheet, finding + 1, chart_rows * _HEIGHT, free, known, best)
    _conditions(book, sheet, rows, last)
    return sheet


def _column(scenario: int) -> int:
    """Where the values of a scenario stand; its changes are to the right of them, and the best to the right of all."""
    return _BASE + max(0, 2 * scenario - 1)


def _heads(book: EstimateBook, sheet: Sheet, last: int) -> None:
    top, bottom = style.HEADER_RIGHT.but(bottom=None), style.HEADER_RIGHT.but(shrink=True)
    for column, head in enumerate(("section", "quantity", "unit", "better")):
        sheet.set_text(_HEADER + 1, column, head, style.HEADER)
    for scenario, (letter, name) in enumerate(scenario_heads(book)):
        sheet.set_text(_HEADER, _column(scenario), letter, top)
        sheet.set_text(_HEADER + 1, _column(scenario), name, bottom)
        if scenario:
            sheet.set_text(
                _HEADER + 1, _column(scenario) + 1, "vs A", bottom.but(size=9, bold=False, colour=style.GREY)
            )
    sheet.set_text(_HEADER + 1, last, "best", bottom)
    sheet.set_style(_HEADER, 0, last, top)
    sheet.heights[_HEADER - 1] = _GAP


def _sections(book: EstimateBook) -> dict[str, tuple[Line, ...]]:
    """The rows, by what they are about."""
    equations = book.estimate.equations
    served, money, held, paid = (
        equations.serving,
        equations.cost,
        equations.decode_workers.memory,
        book.currency,
    )
    prefill, decode = equations.prefill, equations.decode
    fits = minimum(*(side.memory.fits for side in equations.workers))
    apart = ", decode" if len(equations.workers) > 1 else ""
    return {
        _ASKED: _configuration(book),
        "Memory": (
            Line(f"Used per accelerator{apart}", "GB", held.used / GIGA, "one", "lower"),
            Line(f"Share of usable memory{apart}", "%", held.used / held.usable, "percent1", "lower"),
            Line("Room for sequences", "sequence", held.capacity_sequences, "whole", "higher"),
            Line(
                "Fits, and the plan is possible",
                "yes/no",
                where(equal(equations.checks.feasibility, INVALID), 0, fits),
                "yes",
            ),
        ),
        "Latency": (
            Line("Time to first token, TTFT", "ms", served.ttft * MILLI, "one", "lower", headline=True),
            Line(
                "Time per output token, TPOT",
                "ms",
                served.tpot * MILLI,
                "ms2",
                "lower",
                ("TPOT, ms", "#,##0.0"),
                headline=True,
            ),
            Line("End to end", "s", served.e2e, "ms2", "lower"),
            Line("Interactivity", "token/s/user", served.interactivity, "one", "higher"),
        ),
        "Throughput": (
            Line("Output tokens per second", "token/s", served.output_tokens_per_s, "rate", "higher"),
            Line(
                "Output tokens per accelerator",
                "token/s/acc",
                served.output_tokens_per_s_per_accelerator,
                "rate",
                "higher",
                ("Output tokens/s per accelerator", '[=0]"";[<10]0.00;#,##0'),
                headline=True,
            ),
            Line("Requests per second", "request/s", served.requests_per_s, "ms2", "higher"),
        ),
        "Limits": (
            Line("Prefill is limited by", "1", prefill.bottleneck),
            Line("Decode is limited by", "1", decode.bottleneck),
            Line("Prefill compute used, MFU", "%", prefill.mfu, "percent1", "neither"),
            Line("Decode bandwidth used, MBU", "%", decode.mbu, "percent1", "neither"),
            Line("Network share of decode", "%", decode.parts[NETWORK] / decode.time, "percent1", "neither"),
        ),
        "Cost": (
            Line(
                "Per hour, all accelerators",
                paid.named("USD/h"),
                paid.convert(money.usd_per_hour),
                "money",
                "lower",
            ),
            Line("Power in the building", "kW", money.power / KILO, "kw", "lower"),
            Line(
                "Per million output tokens",
                paid.named("USD/Mtoken"),
                paid.convert(money.usd_per_million_output),
                "money",
                "lower",
                (paid.named("USD per M output tokens"), '[=0]"";[<1]0.000;#,##0.00'),
                headline=True,
            ),
            Line(
                "Per month, all accelerators",
                paid.named("USD/month"),
                paid.convert(money.usd_per_month),
                "bill",
                "lower",
            ),
        ),
    }


def _configuration(book: EstimateBook) -> tuple[Line, ...]:
    inputs = book.estimate.equations.inputs.named()
    found = [Line("Accelerators", "accelerator", book.estimate.equations.serving.accelerators, "whole")]
    scenarios = book.estimate_values
    for name in _CONFIGURATION:
        if name in inputs and (
            name not in _PLAIN or any(values[inputs[name]] != _PLAIN[name] for values in scenarios)
        ):
            figure = inputs[name]
            form = "" if isinstance(figure.value, str) else "whole" if figure.integer else "ms2"
            found.append(Line(figure.label, style.shown_unit(figure.unit), figure, form))
    return tuple(found)


def _row(
    book: EstimateBook, sheet: Sheet, row: int, section: str, line: Line, first: bool, last: int
) -> _Row:
    """Labels, the value of every scenario, and its change against the base."""
    edge = (style.THIN, style.HAIRLINE) if first else None
    head = style.Style(size=9.5, bold=True, colour=style.NAVY) if first else style.SECTION
    better = str(line.better) if line.ranked else ""
    for column, (words, look) in enumerate(
        ((section, head), (line.label, style.ROW_LABEL), (line.unit, style.UNIT), (better, style.UNIT))
    ):
        sheet.set_text(row, column, words, look.but(top=edge))
    look = style.table(line.form) if line.form else style.TEXT_VALUE.but(shrink=True)
    values: list[Quantity] = []
    for scenario in range(book.columns):
        body = substitute(line.body, {figure: InCase(figure, scenario) for figure in line.figures})
        value = Quantity(f"compare.{row}.{scenario}", line.label, "1", body)
        book.add_quantity(
            sheet,
            row,
            _column(scenario),
            value,
            look.but(top=edge),
            scenario=ACROSS,
            link=book.link_to(line.figures[0], scenario),
        )
        values.append(value)
        if scenario and line.better:
            change = where(minimum(value, values[0]) > 0, value / values[0] - 1, "–")
            sheet.set_formula(
                row,
                _column(scenario) + 1,
                change,
                style.table("change", size=9, colour=style.GREY, top=edge, shrink=True),
                scenario=ACROSS,
            )
    sheet.set_style(row, 0, last, style.TEXT_VALUE.but(bold=True, top=edge))
    sheet.ids[row] = f"compare.{line.figures[0].id}"
    return _Row(line, row, tuple(values))


def _scenarios(book: EstimateBook, sheet: Sheet, row: int, rows: list[_Row]) -> tuple[_Scenarios, int]:
    """Below what is printed, facts of the scenarios side by side; the next free row."""
    sheet.set_text(
        row, 0, "Chart data (live, not printed)", style.Style(size=9, bold=True, colour=style.GREY)
    )
    heads = scenario_heads(book)
    contents: dict[str, Sequence[str | int]] = {
        "number": range(1, len(heads) + 1),
        "letter": [letter[0] for letter, _ in heads],
        "name": [f"{letter[0]} · {name}" for letter, name in heads],
    }
    fixed: dict[str, tuple[Input, ...]] = {}
    for kind, values in contents.items():
        row += 1
        sheet.set_text(row, 1, kind, _SMALL)
        fixed[kind] = tuple(
            Input(f"compare.{kind}.{scenario}", kind, "1", value, shared=True, fixed=True)
            for scenario, value in enumerate(values)
        )
        for scenario, figure in enumerate(fixed[kind]):
            book.add_constant(sheet, row, _BASE + scenario, figure, _SMALL)
    row += 1
    sheet.set_text(row, 1, "label", _SMALL)
    fits = next(found.values for found in rows if found.line.form == "yes")
    for scenario, (name, fit) in enumerate(zip(fixed["name"], fits, strict=True)):
        sheet.set_formula(
            row, _BASE + scenario, where(fit > 0, name, join(name, ", does not fit")), _SMALL, scenario=ACROSS
        )
    labels = ("Compare", row, _BASE, row, _BASE + len(heads) - 1)
    return _Scenarios(fixed["number"], span(fixed["letter"]), span(fixed["name"]), fits, labels), row + 1


def _best(
    book: EstimateBook, sheet: Sheet, row: int, rows: list[_Row], known: _Scenarios
) -> tuple[dict[_Row, _Best], int]:
    """What scenarios are ranked by, and who is best; the next free row.

    What does not fit, or nobody states, comes last. A billionth per place makes the first of equals the first in every engine.
    """
    for column, words in ((1, "ranked by"), (2, "best"), (3, "up to, from")):
        sheet.set_text(row, column, words, _SMALL)
    best: dict[_Row, _Best] = {}
    for found in (found for found in rows if found.line.ranked):
        row += 1
        lower = found.line.better == "lower"
        sheet.set_text(row, 1, found.line.label, _SMALL)
        keys = []
        for value, number, fit in zip(found.values, known.numbers, known.fits, strict=True):
            body = (
                where(all_of(value > 0, fit > 0), value * (1 + number * TOLERANCE), 1 / TOLERANCE)
                if lower
                else where(fit > 0, value * (1 - number * TOLERANCE), 0)
            )
            keys.append(Quantity(f"compare.{found.row}.key.{number.value}", "Ranked by", "1", body))
            book.add_quantity(sheet, row, _BASE + len(keys) - 1, keys[-1], _NUMBER, scenario=ACROSS)
        block = span(keys)
        alike = maximum(block) - minimum(block) <= known.numbers[-1] * TOLERANCE * maximum(block)
        first = Quantity(
            f"compare.{found.row}.best",
            "Number of the best",
            "1",
            where(alike, 0, match(minimum(block) if lower else maximum(block), block)),
        )
        book.add_quantity(sheet, row, 2, first, _COUNT, scenario=ACROSS)
        best[found] = _Best(first, ())
        if not found.line.headline:
            continue
        limit = Quantity(
            f"compare.{found.row}.limit",
            "Best up to" if lower else "Best from",
            "1",
            where(first > 0, minimum(block) * (1 + known.numbers[-1] * TOLERANCE), 0)
            if lower
            else where(first > 0, maximum(block) * (1 - known.numbers[-1] * TOLERANCE), 1 / TOLERANCE),
        )
        book.add_quantity(sheet, row, 3, limit, _NUMBER, scenario=ACROSS)
        best[found] = _Best(first, tuple(key <= limit if lower else key >= limit for key in keys))
    return best, row + 1


def _finding(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    data: int,
    known: _Scenarios,
    best: dict[_Row, _Best],
    last: int,
) -> int:
    """Who is best most often, as a heading; what that takes stands from row `data` on. Returns the next free row."""
    judged = [ahead for found, ahead in best.items() if found.line.headline]
    won = [
        Quantity(
            f"compare.won.{number.value}",
            "Results at which it is best",
            "1",
            sum_of([where(ahead.each[scenario], 1, 0) for ahead in judged]),
        )
        for scenario, number in enumerate(known.numbers)
    ]
    sheet.set_text(data, 1, "headline results at which it is best", _SMALL)
    for scenario, figure in enumerate(won):
        book.add_quantity(sheet, data, _BASE + scenario, figure, _COUNT, scenario=ACROSS)
    most = Quantity("compare.most", "Most results", "1", maximum(span(won)))
    sharing = Quantity("compare.sharing", "Best equally often", "1", count_where(span(won), most))
    ahead = Quantity("compare.ahead", "Best most often", "1", index(known.names, match(most, span(won))))
    who = Quantity(
        "compare.who",
        "Who leads",
        "1",
        where(sharing > 1, join(text(sharing, "0"), " scenarios lead"), join(ahead, " leads")),
    )
    sheet.set_text(data + 1, 1, "most of them, whose, and how many share it", _SMALL)
    book.add_quantity(sheet, data + 1, 2, most, _COUNT, scenario=ACROSS)
    book.add_quantity(sheet, data + 1, _BASE, ahead, _SMALL, scenario=ACROSS)
    book.add_quantity(sheet, data + 2, 2, sharing, _COUNT, scenario=ACROSS)
    book.add_quantity(sheet, data + 2, _BASE, who, _SMALL, scenario=ACROSS)
    words = join(who, " in ", text(most, "0"), " headline results")
    sheet.set_formula(
        row,
        0,
        where(most > 0, words, "No scenario is ahead of the others"),
        style.SECTION_HEAD,
        scenario=ACROSS,
    )
    sheet.set_text(
        row,
        last,
        "headline results: TTFT, TPOT, tokens per accelerator, cost per token",
        style.SECTION_HEAD.but(size=9, bold=False, colour=style.GREY, align="right"),
    )
    sheet.set_style(row, 1, last, style.SECTION_HEAD)
    sheet.heights |= {row: 34, row + 1: 28}
    return data + 3


def _charts(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    height: int,
    data: int,
    known: _Scenarios,
    best: dict[_Row, _Best],
) -> None:
    """Three charts under live titles, each with a series of the best and one of the others from row `data` on."""
    edges = [sum(sheet.widths[:column]) for column in range(len(sheet.widths) + 1)]
    thirds = [edges[-1] * part / 3 for part in range(4)]
    starts = [min((abs(edge - third), column) for column, edge in enumerate(edges))[1] for third in thirds]
    least = Input("compare.least", "Least gain told", "1", 0.005, shared=True, fixed=True)
    sheet.set_text(data, 1, "least gain told", _SMALL)
    book.add_constant(sheet, data, 2, least, _NUMBER.but(form="0.000"))

    def across(line: int) -> charts.Range:
        return ("Compare", line, _BASE, line, _BASE + book.columns - 1)

    charted = [(found, ahead.number, found.line.chart) for found, ahead in best.items() if found.line.chart]
    for start, end, (found, chosen, (title, form)) in zip(starts[:-1], starts[1:], charted, strict=True):
        side = "below" if found.line.better == "lower" else "above"
        base, series = found.values[0], []
        for scenario, (value, number, fit) in enumerate(
            zip(found.values, known.numbers, known.fits, strict=True)
        ):
            series.append(
                Quantity(
                    f"compare.{found.row}.chart.{number.value}",
                    title,
                    "1",
                    where(equal(chosen, number), value, 0),
                )
            )
            book.add_quantity(sheet, data + 1, _BASE + scenario, series[-1], _NUMBER, scenario=ACROSS)
            sheet.set_formula(data + 2, _BASE + scenario, value * fit - series[-1], _NUMBER, scenario=ACROSS)
        ratio = sum_range(span(series)) / base
        gain = Quantity(
            f"compare.{found.row}.gain",
            "Gain against the base",
            "1",
            where(all_of(chosen > 0, base > 0), 1 - ratio if side == "below" else ratio - 1, 0),
        )
        words = Quantity(
            f"compare.{found.row}.words",
            "Gain in words",
            "1",
            where(gain >= least, join(", ", text(gain, "0%"), f" {side} A"), " is best"),
        )
        for line, head, figure in (
            (data + 1, "the best, and its gain", gain),
            (data + 2, "the others", words),
        ):
            sheet.set_text(line, 1, f"{title}: {head}", _SMALL)
            book.add_quantity(sheet, line, 2, figure, _NUMBER.but(form="0.0%"), scenario=ACROSS)
        named = where(chosen > 0, join(index(known.names, maximum(1, chosen)), words), "none is ahead")
        sheet.set_formula(
            row, start, join(f"{title}: ", named), style.Style(size=10.5, bold=True), scenario=ACROSS
        )
        width = round(edges[end] - edges[start]) - 14
        sheet.charts.append(
            (
                row + 1,
                start,
                charts.singled_out(
                    f"{title} of every scenario, the best in blue",
                    known.labels,
                    across(data + 2),
                    across(data + 1),
                    form,
                    (width, height),
                    (140 / width, 0.02, 1 - 200 / width, 0.96),
                ),
            )
        )
        data += 2


def _conditions(book: EstimateBook, sheet: Sheet, rows: list[_Row], last: int) -> None:
    """Colours that follow the numbers: what does not fit, the best, changes for better and worse, what limits."""
    first, end = rows[0].row, rows[-1].row
    fits = next(found.row for found in rows if found.line.form == "yes")

    def rule(column: int, last_column: int, criteria: str, look: style.Style, stop: bool = False) -> None:
        sheet.conditional.append(
            (
                (first, column, end, last_column),
                {"type": "formula", "criteria": f"={criteria}", "format": look, "stop_if_true": stop},
            )
        )

    sheet.conditional.append(
        (
            (fits, _BASE, fits, last),
            {
                "type": "cell",
                "criteria": "==",
                "value": 0,
                "stop_if_true": True,
                "format": style.Style(colour=style.FAIL, bold=True),
            },
        )
    )
    best, base, line = xl_col_to_name(last), xl_col_to_name(_BASE), first + 1
    for scenario in range(book.columns):
        column = _column(scenario)
        value, change = xl_col_to_name(column), xl_col_to_name(column + 1)
        named = f"INDEX(${base}{line}:${best}{line},MAX(1,2*(CODE(${best}{line})-64)-2))"  # what stands in the column of the letter
        equals = f"ABS({value}{line}-{named})<=1E-8*ABS({named})"
        rule(
            column,
            column + (scenario > 0),
            f"${value}${fits + 1}=0",
            style.Style(colour=style.MUTE),
            stop=True,
        )
        rule(
            column,
            column,
            f'AND(LEN(${best}{line})>0,${best}{line}<>"=",{equals})',
            style.Style(fill=style.BEST, bold=True),
        )
        rule(
            column,
            column,
            f'AND($A{line}="{_ASKED}",{value}{line}<>${base}{line})',
            style.Style(bold=True, colour=style.NAVY),
        )
        for colour, up, down in ((style.BETTER, "higher", "lower"), (style.WORSE, "lower", "higher")):
            if scenario:
                rule(
                    column + 1,
                    column + 1,
                    f'AND(ISNUMBER({change}{line}),OR(AND($D{line}="{up}",{change}{line}>=0.005),'
                    f'AND($D{line}="{down}",{change}{line}<=-0.005)))',
                    style.Style(colour=colour),
                )
        for limit, colour in style.BOUND_TEXTS.items():
            rule(column, column, f'{value}{line}="{limit}"', style.Style(colour=colour))
