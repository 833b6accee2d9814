"""The decision on What-if: plans that were found as live columns, ranked by what is wanted within limits.

Every limit, weight and price is a cell. The base scenario is one of the plans: a cell says which.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.decide import TAKE, Decided, Judged, decide, tell_taken
from mantile.equations.typed import Typed
from mantile.graph.quantity import Input, Quantity
from mantile.library.decision import Decision
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Cell, CellAddress, Sheet, reference
from mantile.workbook.estimate_book import TAKEN, EstimateBook
from mantile.workbook.sheets.cases import add_folded_head, fold
from mantile.workbook.sheets.frame import add_part, fits_on_page, mark_beginning

DECISION = "Decision"
_NAME, _RANK, _NUMBER, _FIRST = 0, 1, 2, 3  # columns of the ranking
_LIMIT = 2  # of the table of measures
_BARS, LAST = 11, 18  # bars reach over two columns
_ROW, _AXIS = 32, 22  # heights of a plan and of the axis below them
_CODES = 16  # rows of reason codes
_BESIDE = (
    "accelerators",
    "ttft_p95_s",
    "tpot_s",
    "interactivity_tokens_per_s",
    "output_tokens_per_s_per_accelerator",
    "usd_per_million_tokens_output",
)  # measures that stand beside a plan
_PURPOSE = (
    "Which plan to run. Change what is wanted, a limit, a price or a factor: ranks, winner and reasons "
    "follow. Plans beyond these were looked at once, by the program."
)
_FORMS = {
    "low": style.VALUE.but(form=style.amount(3)),
    "high": style.VALUE.but(form=style.amount(3)),
    "behind": style.table("percent1"),
    "error": style.table("percent1"),
    "lost": style.Style(size=9.5),
}
_UNITS = ("ms", "s", "kW")  # that a label does not say
_BY_RANK = ("low", "high", "", "", "behind", "error", "told", "lost")
_HEADS = ("80 % from", "to", "bar: 80 %", "", "behind", "error of it", "difference", "why it lost")


def choice(book: EstimateBook) -> Decided | None:
    """The figures of the part; None of a scenario without a decision."""
    asked = book.estimate.scenario.decision
    return None if asked is None else decide(book.estimate.equations, asked, book.columns - 1, book.currency)


def add_decision(
    book: EstimateBook, sheet: Sheet, row: int, last: int, figures: Decided | None, own: Sequence[Typed]
) -> int:
    """Lay out the part from a row on; the row after it. None of a scenario without a decision."""
    asked = book.estimate.scenario.decision
    if asked is None or figures is None:
        return row
    book.own_lists |= figures.lists
    top = row
    row = add_part(sheet, row, DECISION, _PURPOSE, last, _RANK)
    row = _findings(book, sheet, figures, row + 1)
    followed = tell_taken(figures["taken"], figures.guards.valid[TAKE], own, len(figures.numbers))
    row = _asked(book, sheet, figures, asked, followed[-1], row + 1)
    row = _ranking(book, sheet, figures, plans := row + 1)
    row = _search(book, sheet, figures, asked, searched := row + 1)
    row = _prices(book, sheet, figures, asked, prices := row + 1)
    row = _measures(book, sheet, figures, row + 1)
    if not fits_on_page(sheet, top, row):
        sheet.breaks.append(prices)
    book.store_places((cell, figures.guards.places[cell.id]) for cell in figures.typed)
    first = add_folded_head(sheet, row, "What ranks and reasons follow from", last)
    row = _workings(book, sheet, figures, followed[:-1], first)
    _bars(book, sheet, figures, plans)
    row = _picture(book, sheet, figures, asked, searched + 1, row)
    fold(sheet, first, row)
    _take(book, figures)
    return row


def _findings(book: EstimateBook, sheet: Sheet, figures: Decided, row: int) -> int:
    """What it comes to, in words; the row after it."""
    look = style.Style(size=14, bold=True, colour=style.NAVY)
    book.add_quantity(sheet, row, _NAME, figures["title"], look, scenario=ACROSS)
    mark_beginning(sheet, row, _NAME, "!", style.FAIL)
    book.add_quantity(sheet, row + 1, _NAME, figures["reason"], style.Style(size=11), scenario=ACROSS)
    sheet.heights |= {row: 26, row + 1: 20}
    return row + 2


def _asked(
    book: EstimateBook, sheet: Sheet, figures: Decided, asked: Decision, taken_said: Quantity, row: int
) -> int:
    """What is wanted, and which plan the base scenario is; the row after it."""
    small = style.Style(size=style.SMALL, colour=style.GREY, valign="bottom")
    sheet.set_text(row, _NAME, "objective", small)
    _typed(book, sheet, row + 1, _NAME, figures.objective)
    sheet.set_text(row, _RANK, "plan taken", small)
    _typed(book, sheet, row + 1, _RANK, figures.take)
    note = style.SOURCE.but(wrap=False)
    book.add_quantity(sheet, row + 1, _RANK + 1, taken_said, note, scenario=ACROSS)
    mark_beginning(sheet, row + 1, _RANK + 1, "!", style.FAIL)
    sheet.set_text(row + 2, _NAME, "two plans beside each other", small)
    for column, figure in enumerate(figures.pair, _RANK):
        _typed(book, sheet, row + 2, column, figure)
    book.add_quantity(sheet, row + 2, _RANK + 2, figures["apart.told"], note, scenario=ACROSS)
    mark_beginning(sheet, row + 2, _RANK + 2, "!", style.ALERT)
    words = f"Searched: {asked.searched}; {asked.plans:,} plans, by {asked.made_by}."
    sheet.set_text(row + 3, _NAME, words, note)
    sheet.heights |= {row: 18, row + 1: 21, row + 2: 21, row + 3: 20}
    return row + 4


def _typed(book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Input) -> None:
    """A cell in which something of the choice is typed; an empty one says that there is none."""
    value = figure.value
    is_text = isinstance(value, str)
    look = style.value(figure.unit, is_text=is_text, role="input", integer=figure.integer)
    number = None if is_text or value is None else float(value)
    cell = Cell(look, text=str(value) if is_text else None, number=number, entry=figure)
    sheet.set_cell(row, column, cell)
    book.register(figure, CellAddress(sheet.name, row, column, absolute=True))
    book.own_inputs[figure.id] = figure
    book.input_cells[figure.id, 0] = (sheet.name, row, column)
    sheet.ids.setdefault(row, figure.id)


def _heads(sheet: Sheet, row: int, heads: Sequence[str], words: Sequence[int] = ()) -> None:
    """Heads of a table.

    Args:
        words: columns that hold words.
    """
    for column, head in enumerate(heads):
        if head:
            look = style.HEADER if column in (_NAME, *words) else style.HEADER_RIGHT
            sheet.set_text(row, column, head, look)
    sheet.set_style(row, 0, LAST, style.HEADER)


def _key_measures(figures: Decided) -> tuple[Judged, ...]:
    """The measures that stand beside a plan."""
    return tuple(of for key in _BESIDE for of in figures.judged if of.key == key)


def _ranking(book: EstimateBook, sheet: Sheet, figures: Decided, head: int) -> int:
    """The plans with their ranks, what they reach, and why they lost; the row after them."""
    shown = _key_measures(figures)
    columns = [book.currency.named(_head(of)) for of in shown]
    lost = _FIRST + len(shown) + len(_HEADS)
    _heads(sheet, head, ["plan", "rank", "no.", *columns, *_HEADS], (lost,))
    row = head
    for plan, number in enumerate(figures.numbers, 1):
        row, look = head + plan, style.table("whole")
        book.add_quantity(sheet, row, _NAME, figures[f"{plan}.name"], style.ROW_LABEL, scenario=ACROSS)
        book.add_quantity(sheet, row, _RANK, figures[f"{plan}.rank"], look.but(bold=True), scenario=ACROSS)
        book.add_constant(sheet, row, _NUMBER, number, look)
        for column, of in enumerate(shown, _FIRST):
            value = figures[f"{plan}.value.{of.key}"]
            sheet.set_formula(row, column, value, _look(of), scenario=ACROSS)
        for column, name in enumerate(_BY_RANK, _FIRST + len(shown)):
            if name:
                form = _FORMS.get(name, style.TEXT_VALUE)
                book.add_quantity(sheet, row, column, figures[f"{plan}.{name}"], form, scenario=ACROSS)
        sheet.heights[row] = _ROW
    _colours(sheet, head + 1, row)
    sheet.heights[row + 1] = _AXIS
    return row + 2


def _head(of: Judged) -> str:
    metric = of.measure.metric
    if of.unit == "accelerator":
        return "chips"
    return metric.short_heading or f"{metric.label}, {style.shown_unit(of.unit)}"


def _look(of: Judged) -> style.Style:
    if of.measure.metric.display_unit == "%":
        return style.table("percent1")
    return style.VALUE.but(form=style.amount(of.measure.metric.digits))


def _colours(sheet: Sheet, first: int, last: int) -> None:
    """The winner on green, plans without a rank in grey."""
    area = (first, 0, last, LAST)
    best = {
        "type": "formula",
        "criteria": f"=$B{first + 1}=1",
        "format": style.Style(fill=style.BEST, bold=True),
    }
    none = {
        "type": "formula",
        "criteria": f"=ISTEXT($B{first + 1})",
        "format": style.Style(colour=style.MUTE),
    }
    sheet.conditional += [(area, best), (area, none)]


def _section(sheet: Sheet, row: int, title: str) -> None:
    """The head of a table, over all of the part."""
    sheet.set_text(row, 0, title, style.SECTION_HEAD)
    sheet.set_style(row, 1, LAST, style.SECTION_HEAD)
    sheet.heights[row] = 28


def _prices(book: EstimateBook, sheet: Sheet, figures: Decided, asked: Decision, row: int) -> int:
    """The price at which another plan would cost what the winner does; the row after it."""
    title = "For another plan to cost no more per token than the winner, its price per accelerator must be"
    _section(sheet, row, title)
    by = f"or a factor, as {asked.made_by} found when it searched"
    _heads(sheet, row + 1, ("plan", "", "now, USD/h", "must be", "by", by), (5,))
    amount = style.VALUE.but(form=style.amount(2))
    prices = {"price": amount, "price_due": amount, "price_change": style.table("effect")}
    first = row + 2
    for row, plan in enumerate(_plans(figures), first):
        sheet.set_formula(row, _NAME, figures[f"{plan}.name"], style.LABEL, scenario=ACROSS)
        for column, (name, look) in enumerate(prices.items(), 2):
            book.add_quantity(sheet, row, column, figures[f"{plan}.{name}"], look, scenario=ACROSS)
        look = style.SOURCE.but(wrap=False)
        book.add_quantity(sheet, row, 2 + len(prices), figures[f"{plan}.by"], look, scenario=ACROSS)
    return row + 1


def _plans(figures: Decided) -> range:
    return range(1, len(figures.numbers) + 1)


def _measures(book: EstimateBook, sheet: Sheet, figures: Decided, row: int) -> int:
    """Measures with limit and weight, and what every plan reaches; the row after them."""
    _section(sheet, row, "Limits, weights, and what every plan reaches")
    numbers = [f"plan {plan}" for plan in _plans(figures)]
    _heads(sheet, row + 1, ("measure", "unit", "limit", "holds", "weight", "counts", *numbers), (1,))
    first = row + 2
    for row, of in enumerate(figures.judged, first):
        book.add_constant(sheet, row, _NAME, of.label, style.LABEL)
        if of.unit in _UNITS:
            sheet.set_text(row, 1, of.unit, style.UNIT)
        _typed(book, sheet, row, _LIMIT, of.limit)
        book.add_quantity(
            sheet, row, _LIMIT + 1, figures[f"{of.key}.said"], style.TEXT_VALUE, scenario=ACROSS
        )
        _typed(book, sheet, row, _LIMIT + 2, of.weight)
        weighs = figures[f"{of.key}.weighs"]
        book.add_quantity(sheet, row, _LIMIT + 3, weighs, style.table("ms2"), scenario=ACROSS)
        for column, plan in enumerate(_plans(figures), _LIMIT + 4):
            value = figures[f"{plan}.value.{of.key}"]
            book.add_quantity(sheet, row, column, value, _look(of), scenario=ACROSS)
        _mark_missed(sheet, row, of, len(figures.numbers))
    book.add_constant(sheet, row + 1, _NAME, figures.labels[-1], style.LABEL)
    note = "choose this as objective: logarithms of the measures are weighted and summed"
    sheet.set_text(row + 1, _LIMIT, note, style.SOURCE.but(wrap=False))
    return row + 2


def _mark_missed(sheet: Sheet, row: int, of: Judged, plans: int) -> None:
    """What misses its limit is amber, and so is what nobody knows."""
    value = xl_rowcol_to_cell(row, _LIMIT + 4)
    limit = xl_rowcol_to_cell(row, _LIMIT, col_abs=True)
    sign = ">" if of.measure.lower else "<"
    beyond = f"AND(N({limit})>0,OR(ISTEXT({value}),N({value}){sign}{limit}))"
    look = style.Style(fill=style.ALERT_FILL, colour=style.ALERT)
    rule = {"type": "formula", "criteria": f"={beyond}", "format": look}
    sheet.conditional.append(((row, _LIMIT + 4, row, _LIMIT + 3 + plans), rule))


def _search(book: EstimateBook, sheet: Sheet, figures: Decided, asked: Decision, row: int) -> int:
    """What the search looked at: a picture of its plans, and how many broke which rule; the row after it."""
    title = f"{asked.plans:,} plans were looked at; stored, by {asked.made_by}: a limit that is edited since"
    _section(sheet, row, f"{title} recounts only the plans listed here")
    by_size = sorted(asked.infeasible.items(), key=lambda item: (-item[1], item[0]))
    for below, (code, count) in enumerate(by_size[:_CODES], row + 1):
        sheet.set_text(below, _NAME, code, style.ROW_LABEL)
        sheet.set_cell(below, 1, Cell(style.table("whole"), number=float(count)))
    return row + _CODES + 2


def _picture(
    book: EstimateBook, sheet: Sheet, figures: Decided, asked: Decision, above: int, row: int
) -> int:
    """Speed against throughput of the plans that were looked at; their data, which are stored, from a row on.

    Args:
        above: the row at which the picture stands.

    Returns:
        The row after the data.
    """
    small = style.Style(size=9.5)
    kinds = [[plan for plan in asked.shown if plan.front is front] for front in (True, False)]
    kinds[0].sort(key=lambda plan: plan.speed)
    ranges = []
    for plans, title in zip(kinds, ("on the front", "other plans"), strict=True):
        begin = row
        for plan in plans:
            sheet.set_text(row, _NAME, f"{title}: {plan.accelerator} {plan.plan}", small)
            for column, number in enumerate((plan.speed, plan.throughput), _FIRST):
                sheet.set_cell(row, column, Cell(small, number=number))
            row += 1
        ranges.append(
            [(sheet.name, begin, column, max(begin, row - 1), column) for column in (_FIRST, _FIRST + 1)]
        )
    winner = [book.addresses[figures[name]] for name in ("speed", "rate")]
    at: list[charts.Range] = [
        (sheet.name, place.row, place.column or 0, place.row, place.column or 0) for place in winner
    ]
    if not kinds[0]:
        return row
    limit, top = row, max(plan.throughput for plan in asked.shown)
    for height in (0.0, top):
        sheet.set_text(row, _NAME, "the speed that limits ask for", small)
        sheet.set_formula(row, _FIRST, figures["limit_speed"], small, scenario=ACROSS)
        sheet.set_cell(row, _FIRST + 1, Cell(small, number=height))
        row += 1
    chart = charts.front(
        "Speed for one user against throughput: plans, those that no other beats, the winner, the limit",
        (ranges[0][0], ranges[0][1]),
        (ranges[1][0], ranges[1][1]),
        (at[0], at[1]),
        ((sheet.name, limit, _FIRST, row - 1, _FIRST), (sheet.name, limit, _FIRST + 1, row - 1, _FIRST + 1)),
        (900, 300),
        (0.08, 0.03, 0.9, 0.80),
    )
    sheet.charts.append((above, _FIRST + 3, chart))
    return row


def _bars(book: EstimateBook, sheet: Sheet, figures: Decided, head: int) -> None:
    """The ranges that hold 80 % of outcomes, a bar beside each plan; a gap stands where it is expected."""

    count = len(figures.numbers)

    def across(name: str) -> charts.Range:
        ends = [book.addresses[figures[f"{plan}.{name}"]] for plan in (1, count)]
        return (sheet.name, ends[0].row, ends[0].column or 0, ends[1].row, ends[1].column or 0)

    height = count * _ROW + _AXIS
    series = [
        (colour, across(f"bar.{kind}.{part}"))
        for kind, colour in (("best", style.COMPUTE), ("other", style.OVERHEAD))
        for part in ("below", "above")
    ]
    chart = charts.ranges(
        "The range of what is wanted that holds 80 % of outcomes, of each plan; the winner in blue",
        (sheet.name, head + 1, _NUMBER, head + count, _NUMBER),
        across("bar.begin"),
        series,
        (round(sum(sheet.widths[_BARS : _BARS + 2])), height),
        count * _ROW / height,
    )
    sheet.charts.append((head + 1, _BARS, chart))


def _workings(
    book: EstimateBook, sheet: Sheet, figures: Decided, followed: Sequence[Quantity], row: int
) -> int:
    """What ranks and reasons follow from; the row after it.

    Args:
        followed: what says whether the base scenario is the plan that is taken.
    """
    small = style.Style(size=9.5)
    for constant in figures.constants:
        if constant in book.addresses:
            continue
        sheet.set_text(row, _NAME, constant.label, small)
        book.add_constant(sheet, row, _FIRST, constant, small)
        row += 1
    (section,) = figures.rows.sections("decide", "Choice")
    for figure in section.figures():
        if figure in book.addresses or not isinstance(figure, Quantity):
            continue
        sheet.set_text(row, _NAME, figure.label, small)
        book.add_quantity(sheet, row, _FIRST, figure, small, scenario=ACROSS)
        row += 1
    for guard in figures.guards.rows:
        sheet.set_text(row, _NAME, guard.label, small)
        if isinstance(guard, Quantity):
            book.register(guard, CellAddress(sheet.name, row, _FIRST, absolute=True))
            sheet.set_formula(row, _FIRST, guard.body, small)
        else:
            book.add_constant(sheet, row, _FIRST, guard, small, book.stamps[0].get(guard.id))
        row += 1
    for figure in followed:
        sheet.set_text(row, _NAME, figure.label, small)
        book.add_quantity(sheet, row, _FIRST, figure, small, scenario=ACROSS)
        row += 1
    row = _of_measures(book, sheet, figures, row)
    return _of_plans(book, sheet, figures, row)


def _of_measures(book: EstimateBook, sheet: Sheet, figures: Decided, row: int) -> int:
    """Of every measure its limit and which plans miss it."""
    small = style.Style(size=9.5)
    for of in figures.judged:
        sheet.set_text(row, _NAME, f"{of.label.value}: limit, limited, weight, without, missed by", small)
        names = [f"{of.key}.{name}" for name in ("bound", "limited", "own", "none")]
        names += [f"{plan}.missed.{of.key}" for plan in _plans(figures)]
        for column, name in enumerate(names, _FIRST):
            book.add_quantity(sheet, row, column, figures[name], small, scenario=ACROSS)
        row += 1
    return row


def _of_plans(book: EstimateBook, sheet: Sheet, figures: Decided, row: int) -> int:
    """Of every plan the figures that have no place yet, side by side."""
    small = style.Style(size=9.5)
    for column, plan in enumerate(_plans(figures), _FIRST + 4):
        book.add_quantity(sheet, row, column, figures[f"sorted.{plan}"], small, scenario=ACROSS)
    sheet.set_text(row, _NAME, "keys, the best first", small)
    row += 1
    for of_plans in zip(*map(figures.of_plan, _plans(figures)), strict=True):
        if of_plans[0] in book.addresses:
            continue
        sheet.set_text(row, _NAME, of_plans[0].label, small)
        for column, figure in enumerate(of_plans, _FIRST + 4):
            book.add_quantity(sheet, row, column, figure, small, scenario=ACROSS)
        row += 1
    return row


def _take(book: EstimateBook, figures: Decided) -> None:
    """Let cells of the base scenario follow those of the plan that is taken, until somebody types there."""
    taken = book.addresses[figures["taken"]]
    chosen = reference(taken.sheet, taken.row, taken.column or 0)
    for figure in book.taken_inputs:
        sheet, row, column = book.input_cells[figure.id, 0]
        cell = book.sheets[sheet].cells[row, column]
        used = book.addresses[book.used[figure]]
        begin, end = (
            reference(used.sheet, used.row, book.column_of(used, plan)) for plan in (1, book.columns - 1)
        )
        cell.text = cell.number = None
        cell.expression, cell.follows = book.typed_cell(figure), (figure.id, TAKEN)
        cell.reference = f"INDEX({begin}:{end.rpartition('!')[2]},1,{chosen})"
