"""Sheets of workings: a row is a quantity, a column is a scenario, one formula per row.

Columns: section, quantity, unit, how it is worked out, source, id, the value shared by all scenarios, then
one per scenario. What the sheet or a part of it comes to stands first. Figures of other sheets are linked in
once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter

from mantile.equations.display import LETTERS, origin
from mantile.equations.graph import CALCULATION, EFFICIENCY, IR
from mantile.equations.override import OVERRIDE
from mantile.graph.quantity import (
    Input,
    Line,
    Named,
    Node,
    Quantity,
    Section,
    Span,
    Table,
    expression,
    precedents,
    same_in_all_cases,
)
from mantile.graph.sentence import sentence
from mantile.workbook import style
from mantile.workbook.book import (
    ANSWERS,
    FIRST,
    HEAD,
    HEAD_ROW,
    HEADS,
    LINKED_IN,
    REPEATING,
    SHARED,
    Cell,
    CellAddress,
    Family,
    Room,
    Sheet,
    reference,
)
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.references import link_to_typed
from mantile.workbook.sheets.answers import answers
from mantile.workbook.sheets.cases import value_cell
from mantile.workbook.sheets.folding import INPUTS_SHEET, OUTLINED, folded, folded_blocks, rows_in_use
from mantile.workbook.sheets.folding import LIBRARY as LIBRARY_SHEETS
from mantile.workbook.sheets.frame import add_part, add_title_rows, column_heads, needed_height
from mantile.workbook.sheets.free_column import add_free_cell, add_free_head
from mantile.workbook.sheets.lines import Lines
from mantile.workbook.sheets.ready_columns import add_names, add_ready_head, follow_base
from mantile.workbook.sheets.tables import add_columns, add_heads, add_row, first_column
from mantile.workbook.text_width import cut_to, height, letters

_NARROWEST = (58, 206, 62, 294, 96, 180)  # widths of these columns
_OF_LIBRARY = (58, 214, 46, 292, 80, 206)  # on sheets of the library, whose labels and ids are long
_BELOW_OTHERS = (50, 200, 88, 236, 92, 188)  # below parts of another kind, which have more columns
_SHARES = (0, 0.12, 0, 0.2, 0, 0.68)  # that they have of what is left of the screen
_SCENARIO, _ALL_SCENARIOS = 108, 88  # widths of columns of values
LIBRARY = ("library.", "system.")  # before the ids of datasheet figures
_FACTS = "hardware."  # before those of the chosen ones
_GUARDS = ("typed.", "stamp.")  # before ids of rows about cells: the heads of their blocks say all of them
_MESSAGE, _MESSAGE_LINES = "typed.message", 6  # the first input that cannot be, in words; lines it may take
_ROW = 18  # least height of a row
_LOOKS = [style.SECTION, style.ROW_LABEL, style.UNIT, style.SENTENCE, style.SOURCE, style.IDENTIFIER]
_LAST_FILTER = 5  # column
HOW = 3  # column of how a figure is worked out, and of why one was overridden
WHY = Room(
    "Why",
    "Why this figure is overridden, at most 120 characters for a scenario; A: and B: tell scenarios "
    "apart. mantile import keeps it with the override.",
    500,
)


@dataclass(frozen=True)
class Front:
    """Parts of another kind above the workings of a sheet, in their columns.

    Args:
        widths: that they need of the columns behind the base scenario.
        draw: them from a row on; it gives the row after them.
    """

    widths: tuple[float, ...]
    draw: Callable[[Sheet, int], int]


def workings(
    book: EstimateBook,
    name: str,
    family: Family,
    purpose: str,
    sections: tuple[Section, ...],
    master: Quantity,
    linked: bool = True,
    shared: bool = False,
    once: bool = False,
    parts: Mapping[str, str] | None = None,
    front: Front | None = None,
    names: Quantity | None = None,
) -> Sheet:
    """Lay out blocks of quantities on a sheet of their own.

    Args:
        parts: what stands beside the heads of parts.
        front: parts of another kind that stand above them.
        linked: whether figures of other sheets get a block of links; without it formulas refer to them
            directly.
        shared: whether a value of all scenarios stands there that no section has.
        once: whether what is the same in all scenarios stands there once, as shared inputs do.
        names: how many columns have a name, where ready ones are named on this sheet.
    """
    sheet = book.add_sheet(Sheet(name, family, purpose))
    shared = shared or any(_has_shared(section) for section in sections)
    narrowest = _OF_LIBRARY if name in LIBRARY_SHEETS else _NARROWEST
    if front is None:
        sheet.widths = _widths(narrowest, book.side_by_side, shared)
    else:
        sheet.widths = [*_BELOW_OTHERS, _ALL_SCENARIOS, *([_SCENARIO] * book.side_by_side)]
    sheet.widths += [_SCENARIO] * (book.columns - book.side_by_side)
    of_front = () if front is None else front.widths
    for column, wide in enumerate(of_front, FIRST + 1):
        sheet.widths[column : column + 1] = [max([wide, *sheet.widths[column : column + 1]])]
    last = FIRST + book.columns - 1
    printed = FIRST + max(book.side_by_side - 1, len(of_front))
    add_title_rows(book, sheet, name, printed, master)
    sheet.heights |= {2: 6, 3: 36}
    for column, head in enumerate(HEADS):
        sheet.set_text(3, column, head, style.HEADER)
    sheet.set_text(3, SHARED, "all\u00a0\u00a0\nscenarios\u00a0\u00a0" if shared else "", style.HEADER_WRAP)
    for index, head in enumerate(column_heads(book)):
        if index not in book.ready:
            sheet.set_text(3, FIRST + index, head.replace("  ", "\u00a0\u00a0"), style.HEADER_WRAP)
        elif names is None:
            add_ready_head(sheet, 3, FIRST + index, index, style.HEADER_WRAP)
    if names is not None:
        add_names(book, sheet, names)
    for section in sections:
        if section.heads is not None:
            add_heads(book, sheet, HEAD_ROW, section.heads)
    heads = (
        cell.text or "" if (cell := sheet.cells.get((HEAD_ROW, column))) is not None else ""
        for column in range(len(sheet.widths))
    )
    needed = (
        needed_height(head, style.HEADER_WRAP, width) for head, width in zip(heads, sheet.widths, strict=True)
    )
    sheet.heights[HEAD_ROW] = max(sheet.heights[HEAD_ROW], *needed)
    sheet.freeze = (4, 2)

    row = HEAD_ROW + 1
    if front is not None:
        row = front.draw(sheet, row)
    if not parts:
        row = _answers(book, sheet, row, sections, last)
    imports = _imports(sections) if linked else ()
    if imports:
        start = row
        row = _head(
            sheet,
            row,
            LINKED_IN,
            "from sheets to the left; green = link, purple edge = efficiency factor",
            last,
        )
        for figure in imports:
            _labels(sheet, row, LINKED_IN, figure, figure.id)
            for index in range(book.columns):
                _value(book, sheet, row, FIRST + index, figure, index, link=True)
            sheet.links[figure] = CellAddress(name, row)
            row += 1
        sheet.blocks.append((start, row - 1))
        if name in OUTLINED:
            sheet.folds.append((row - len(imports), row - 1))
    used = rows_in_use(book.estimate) if name in LIBRARY_SHEETS else set()
    same = same_in_all_cases(
        *(figure for section in sections for figure in section.figures()) if once else ()
    )
    is_folded: dict[int, bool] = {}
    for part, group in groupby(sections, key=attrgetter("part")):
        blocks = tuple(group)
        if parts:
            row = _part(book, sheet, row, part, parts[part], blocks, last)
        for section, joined, after in folded_blocks(name, blocks, used):
            is_folded |= dict(enumerate([joined] * HEAD + folded(name, section, used), row))
            row = _block(book, sheet, row, section, last, after, same)
    _fold(sheet, is_folded)
    levels = next((section.heads for section in sections if section.heads is not None), None)
    if levels is not None:
        places = [book.addresses[figure] for figure in used if figure in book.addresses]
        in_use = {place.column for place in places if place.sheet == name}
        first = first_column(book)
        sheet.folded_columns = [
            column for column in range(first, first + levels.width) if column not in in_use
        ]
    free = FIRST + book.columns
    if book.has_free_column and any(at == free and not sheet.is_in_table(row, at) for row, at in sheet.cells):
        add_free_head(book, sheet)
    if name in LIBRARY_SHEETS:
        sheet.autofilter = (HEAD_ROW, 0, row - 1, _LAST_FILTER)
    first, end = _printed_rows(name, sheet)
    sheet.print_area = (first, 0, end, printed)
    sheet.repeat_rows = (0 if first else HEAD_ROW, HEAD_ROW)
    return sheet


def _printed_rows(name: str, sheet: Sheet) -> tuple[int, int]:
    """The first and the last row that are printed: what the sheet comes to. All else is for the screen."""
    heads: dict[str, tuple[int, int]] = {}
    for block in reversed(sheet.blocks):
        head = sheet.cells.get((block[0] + 1, 0))
        heads |= {} if head is None else {str(head.text): block}
    if name == IR:
        return 0, sheet.breaks[0] - 1
    if name == INPUTS_SHEET:
        return 0, heads["Constants"][0] - 1
    if name in (EFFICIENCY, CALCULATION):
        return heads["What is reached" if name == EFFICIENCY else "Serving"]
    return 0, heads[ANSWERS][1]


def _widths(narrowest: tuple[int, ...], columns: int, shared: bool) -> list[float]:
    """Widths with which the values of the scenarios are seen on a laptop beside what they are."""
    values = [_ALL_SCENARIOS if shared else 4, *([_SCENARIO] * columns)]
    spare = max(0, style.SCREEN - sum(narrowest) - sum(values))
    return [*(int(width + share * spare) for width, share in zip(narrowest, _SHARES, strict=True)), *values]


def _part(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    name: str,
    purpose: str,
    blocks: tuple[Section, ...],
    last: int,
) -> int:
    """The head of a part, with what it comes to; the row after that."""
    first = add_part(sheet, row, name, purpose, last)
    after = _answers(book, sheet, first, blocks, last)
    sheet.blocks = [block for block in sheet.blocks if block[0] < row] + [(row, after - 1)]
    return after


def _answers(book: EstimateBook, sheet: Sheet, row: int, sections: tuple[Section, ...], last: int) -> int:
    """What the sheet or a part of it comes to, at its top; the row after it."""
    rows = answers(book, sheet.name, sections)
    if not rows:
        return row
    definitions = {figure: metric.definition for metric, figure in book.estimate.equations.headlines.items()}
    note = "what the rows below come to, live, in the units that people quote"
    start = row
    row = _head(sheet, row, ANSWERS, note, last)
    for figure, unit, shown in rows:
        _labels(sheet, row, ANSWERS, figure, figure.id, how=definitions.get(figure, ""), unit=unit)
        sheet.answers[figure] = row
        for column in range(book.columns):
            value = book.estimate_values[column].get(figure)
            look = style.value(unit, is_text=isinstance(value, str)).but(bold=True)
            if figure.id.startswith(_FACTS) and unit != "flag" and not isinstance(value, str):
                look = style.zero_as_dash(look)  # nobody states it, or there is none
            if isinstance(value, str):
                look = look.but(wrap=True)
                needed = needed_height(value, look, sheet.widths[FIRST + column])
                sheet.heights[row] = max(sheet.heights[row], needed)
            sheet.set_cell(row, FIRST + column, Cell(look, expression=shown, scenario=column))
        row += 1
    sheet.blocks.append((start, row - 1))
    return row


def _fold(sheet: Sheet, rows: Mapping[int, bool]) -> None:
    """Fold rows away, in groups of those that stand together."""
    for is_folded, group in groupby(range(min(rows), max(rows) + 1), key=lambda row: rows.get(row, False)):
        places = list(group)
        if is_folded:
            sheet.folds.append((places[0], places[-1]))


def _imports(sections: tuple[Section, ...]) -> tuple[Named, ...]:
    own = {figure for section in sections for figure in section.figures()}
    imports: dict[Named, None] = {}
    for section in sections:
        for figure in section.figures():
            if isinstance(figure, Quantity) and not isinstance(figure.body, Input | Quantity):
                in_spans = {member for member in _span_members(figure)}
                for other in precedents(figure):
                    empty = isinstance(other, Input) and other.value is None  # a link to it would say 0
                    if other not in own and other not in in_spans and not empty:
                        imports[other] = None
    return tuple(imports)


def _span_members(figure: Quantity) -> set[Named]:
    return {member for node in expression(figure.body) if isinstance(node, Span) for member in node.members}


def _has_shared(section: Section) -> bool:
    return any(isinstance(figure, Input) and figure.shared for figure in section.figures())


def _head(
    sheet: Sheet,
    row: int,
    title: str,
    note: str,
    last: int,
) -> int:
    """The head of a block below some air; the row after it."""
    sheet.heights |= {row: 3, row + 1: 20}
    sheet.set_text(row + 1, 0, title, style.BLOCK_HEAD)
    seen = cut_to(note, style.BLOCK_NOTE.size, sum(sheet.widths[HOW : last + 1]))
    sheet.set_text(row + 1, HOW, seen, style.BLOCK_NOTE)
    sheet.set_style(row + 1, 1, last, style.BLOCK_HEAD)
    return row + HEAD


def _block(
    book: EstimateBook, sheet: Sheet, row: int, section: Section, last: int, after: str, same: Container[Node]
) -> int:
    """The rows of a block; the row after it.

    Args:
        after: what follows the note of its head.
        same: figures that stand once, for all scenarios.
    """
    start = row
    row = _head(sheet, row, section.title, section.note + after, last)
    if section.columns:
        add_columns(book, sheet, row, section)
        row += 1
    sheet.blocks.append((start, row + len(section.rows) - 1))
    lines = Lines(book, sheet, row - 1, section) if section.over else None
    for index, entry in enumerate(section.rows):
        total = section.total if index == len(section.rows) - 1 else 0
        if isinstance(entry, Table):
            _line_of_table(book, sheet, row, section, entry)
            row += 1
            continue
        if isinstance(entry, Line):
            assert lines is not None
            _labels(sheet, row, section.title, entry.figures[0], entry.id, how=entry.how, label=entry.label)
            lines.add(row, entry)
            row += 1
            continue
        figure, beside = entry if isinstance(entry, tuple) else (entry, None)
        _labels(sheet, row, section.title, figure, figure.id, total, reasons(book, figure))
        if isinstance(figure, Input):
            _input(book, sheet, row, figure)
        elif figure in same:
            book.register(figure, CellAddress(sheet.name, row, SHARED, absolute=True))
            _value(book, sheet, row, SHARED, figure, 0, total=total)
        else:
            book.register(figure, CellAddress(sheet.name, row))
            for column in range(book.columns):
                _value(book, sheet, row, FIRST + column, figure, column, total=total)
            if figure.id == _MESSAGE:
                sheet.heights[row] = max(sheet.heights[row], height(_MESSAGE_LINES, style.TEXT_VALUE.size))
        if isinstance(beside, Table):
            add_row(book, sheet, row, beside)
        elif beside is not None:
            book.add_constant(
                sheet, row, SHARED, beside, style.value(beside.unit, is_text=True, role="fixed")
            )
        if total:
            sheet.set_style(row, 0, last, style.emphasised(style.VALUE, total))
        row += 1
    return row


def _line_of_table(book: EstimateBook, sheet: Sheet, row: int, section: Section, figures: Table) -> None:
    """A row of a table by itself."""
    unit = style.shown_unit(figures.members[0].unit)
    texts = ("", figures.label, unit, figures.note, "", figures.id)
    if section.columns:  # the key says which it is
        texts = ("", "", "", figures.note, "", "")
    sheet.heights[row] = _ROW
    for column, (text, look) in enumerate(zip(texts, _LOOKS, strict=True)):
        if text:
            sheet.set_text(row, column, text, look)
            sheet.heights[row] = max(sheet.heights[row], needed_height(text, look, sheet.widths[column]))
    sheet.ids[row], sheet.sections[row] = figures.id, section.title
    add_row(book, sheet, row, figures, keyed=bool(section.columns))


def _labels(
    sheet: Sheet,
    row: int,
    title: str,
    figure: Named,
    identifier: str,
    total: int = 0,
    how: str = "",
    unit: str = "",
    label: str = "",
) -> None:
    worked_out, source = _how(figure)
    is_override = identifier.endswith(OVERRIDE)
    of_model = isinstance(figure, Input) and identifier.startswith("model.") and not figure.fixed
    if title in REPEATING or identifier.startswith(_GUARDS):  # their own rows say it
        worked_out = source = ""
    how, source = how or worked_out, "‹ type why" if is_override else source
    styles = _LOOKS
    if total:
        styles = [style.emphasised(item, total).but(bold=item is style.ROW_LABEL) for item in styles]
    shown = style.shown_unit(unit or figure.unit)
    label = label or (figure.label.replace(" in use", "") if title == ANSWERS else figure.label)
    section = title if title in REPEATING else ""  # else its head says it
    texts = (section, label, shown, how, source, identifier)
    for column, (text, look) in enumerate(zip(texts, styles, strict=True)):
        if not text and not total:
            continue
        if (is_override or of_model) and column == HOW:
            sheet.set_cell(row, column, Cell(style.reason(look), text=text, room=WHY))
        else:
            sheet.set_text(row, column, text, look)
    sheet.ids[row], sheet.sections[row] = identifier, title
    surely = _letters(tuple(sheet.widths[: len(_LOOKS)]))
    long = [place for place, text in enumerate(texts) if len(text) > surely[place] or "\n" in text]
    heights = [needed_height(texts[place], styles[place], sheet.widths[place]) for place in long]
    sheet.heights[row] = max([_ROW, *heights])


@cache
def _letters(widths: tuple[float, ...]) -> tuple[int, ...]:
    """How many letters have room in one line of the columns of labels, whichever letters they are."""
    return tuple(letters(look.size, pixels) for look, pixels in zip(_LOOKS, widths, strict=True))


def reasons(book: EstimateBook, figure: Named) -> str:
    """Why an override was set, for each scenario that sets it."""
    if not any(column.overrides for column in book.estimate.columns):
        return ""
    return " · ".join(
        f"{LETTERS[index]}: {override.reason}"
        for index, column in enumerate(book.estimate.columns)
        for override in column.overrides
        if figure.id == f"{override.id}{OVERRIDE}"
        or (isinstance(figure, Input) and figure.id == override.id and index == 0)
    )


def _how(figure: Named) -> tuple[str, str]:
    if isinstance(figure, Quantity):
        return sentence(figure), figure.source
    return origin(figure)


def _input(book: EstimateBook, sheet: Sheet, row: int, figure: Input) -> None:
    is_text = isinstance(figure.value, str)
    if figure.shared:
        look = style.value(
            figure.unit, is_text=is_text, role="fixed" if figure.fixed else "input", integer=figure.integer
        )
        if figure.id == "checks.tolerance":
            look = look.but(form=style.number_format("tolerance"))
        if figure.value == 0 and figure.id.startswith(LIBRARY) and not figure.fixed:
            look = style.zero_as_dash(look)  # nobody states it, or there is none
        place = book.input_cells.get((figure.id, 0))
        if figure.fixed:
            book.add_constant(sheet, row, SHARED, figure, look)
        elif place is not None:  # typed on a sheet in front
            link = style.value(figure.unit, is_text=is_text, role="link", integer=figure.integer)
            typed_there = link_to_typed(reference(*place))
            shown = Cell(link, expression=book.typed_cell(figure), reference=typed_there)
            sheet.set_cell(row, SHARED, shown)
            if figure not in book.used:  # else what is used of it has a row of its own
                sheet.links[figure] = CellAddress(sheet.name, row, SHARED, absolute=True)
        else:
            book.register(figure, CellAddress(sheet.name, row, SHARED, absolute=True))
            sheet.set_cell(
                row, SHARED, _entry(figure, look, book.estimate.inputs(0).get(figure.id, figure.value))
            )
            for column in range(book.columns):
                book.input_cells[figure.id, column] = (sheet.name, row, SHARED)
        return
    book.register(figure, CellAddress(sheet.name, row))
    if figure.fixed:
        look = style.value(figure.unit, role="fixed")
        for column in range(book.columns):
            sheet.set_cell(row, FIRST + column, value_cell(look, book.stamps[column][figure.id], column))
        return
    look = style.value(figure.unit, is_text=is_text, role="input", integer=figure.integer)
    add_free_cell(book, sheet, row, figure, look)
    for column in range(book.columns):
        place = book.input_cells.get((figure.id, column))
        if place is not None:  # the base scenario's cell is a selector on Summary; this one links to it
            sheet.set_cell(
                row,
                FIRST + column,
                Cell(
                    style.value(figure.unit, is_text=is_text, role="link", integer=figure.integer),
                    expression=book.typed_cell(figure),
                    scenario=column,
                    reference=link_to_typed(reference(*place)),
                ),
            )
            continue
        typed(book, sheet, row, FIRST + column, figure, column, look)


def typed(
    book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Input, of: int, look: style.Style
) -> None:
    """The cell in which an input of a scenario is typed. Until then it may hold a formula: what the base
    states holds for a variant, and an input with a default follows that.
    """
    scenario, base = book.estimate.columns[of], book.estimate.columns[0]
    value = book.estimate.inputs(of).get(figure.id, figure.value)
    name = figure.id.removeprefix("inputs.")
    stated = name in scenario.given or any(f"{item.id}{OVERRIDE}" == figure.id for item in scenario.overrides)
    cell = Cell(look.but(colour=style.INK), scenario=of, entry=figure)
    follows_itself = figure.follows is not None and name not in base.given
    follows_itself = follows_itself and figure.id not in book.estimate.inputs(0)
    if of in book.ready and not follows_itself and not figure.id.startswith("measured."):
        follow_base(book, cell, figure)
    elif stated or figure.value is None or figure in book.taken_inputs:
        cell = _entry(figure, look, value, of)
    elif figure.follows is not None and name not in base.given and figure.id in book.estimate.inputs(of):
        cell = _entry(figure, look, value, of)  # as the model is published for the framework
    elif figure.follows is not None and figure.id not in book.estimate.inputs(of):
        cell.expression, cell.follows = figure.follows, (figure.id, of)  # or it is without that of the base
    elif of and value == book.estimate.inputs(0).get(figure.id, figure.value):
        cell.expression, cell.follows = figure, (figure.id, 0)
        if figure not in book.used:  # else what is used of it has a row of its own
            cell.reference = link_to_typed(reference(*book.input_cells[figure.id, 0]))
    else:
        cell = _entry(figure, look, value, of)
    sheet.set_cell(row, column, cell)
    book.input_cells[figure.id, of] = (sheet.name, row, column)


def _entry(figure: Input, look: style.Style, value: object, column: int = 0) -> Cell:
    cell = Cell(look, entry=figure, scenario=column)
    if isinstance(value, str):
        cell.text = value
    elif isinstance(value, int | float):
        cell.number = float(value)
    return cell


def _value(
    book: EstimateBook,
    sheet: Sheet,
    row: int,
    column: int,
    figure: Named,
    of: int,
    link: bool = False,
    total: int = 0,
) -> None:
    is_text = isinstance(book.estimate_values[of].get(figure), str)
    if link:
        look = style.value(figure.unit, is_text=is_text, role="link")
        expression: Node = figure
    else:
        assert isinstance(figure, Quantity)
        expression = figure.body
        look = style.value(
            figure.unit,
            is_text=is_text,
            role="link"
            if isinstance(figure.body, Input | Quantity)
            and figure.body in book.addresses
            and book.addresses[figure.body].sheet != sheet.name
            else "calculation",
        )
    if isinstance(figure, Quantity) and figure.factor:
        look = look.but(left=(style.THICK, style.FACTOR_EDGE), bold=True)
    if total:
        look = style.emphasised(look, total)
    if figure.id == _MESSAGE:
        look = look.but(wrap=True)
    sheet.set_cell(row, column, Cell(look, expression=expression, scenario=of))
