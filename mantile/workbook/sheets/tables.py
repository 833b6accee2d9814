"""Tables of the library on sheets of workings: a row a thing, a column a fact, sources behind all facts."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.display import HOW, SIDE_BY_SIDE, origin
from mantile.graph.quantity import Input, Named, Section, Table
from mantile.workbook import style
from mantile.workbook.book import FIRST, SHARED, Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import cut, needed_height

_LOOKS = (style.ROW_LABEL, style.UNIT, style.SENTENCE, style.SOURCE, style.IDENTIFIER)
_FACT, _WORDS = 96, 130  # widths of columns
_LEVEL, _SMALL = 88, 9.5  # width of a column of a row of a table, and size of its figures
_FREE, _GAP = 108, 24  # widths of columns between scenarios and tables
_TOLD = 250  # letters of a source that are told where its figure is selected
_ROW = 18
_MARKS = {"measured": "◆", "fitted": "≈", "datasheet": "▤", "secondary": "○", "assumed": "?"}
_NOBODY = "no source"


@dataclass(frozen=True)
class Facts:
    """The figures of a table, by fact and thing, both in the order of the sheet."""

    of: dict[str, dict[str, Input]]

    @property
    def things(self) -> tuple[str, ...]:
        """What the rows are about: the first fact is stated of each."""
        return tuple(next(iter(self.of.values())))

    def in_use(self, used: Container[Named]) -> list[bool]:
        """Whether a figure of a thing is in use, for each thing."""
        return [any(figures.get(thing) in used for figures in self.of.values()) for thing in self.things]


def facts(section: Section) -> Facts:
    """The figures of a block that is a table, by what their labels say."""
    found: dict[str, dict[str, Input]] = {}
    for figure in section.figures():
        assert isinstance(figure, Input)
        fact, _, thing = figure.label.rpartition(section.table)
        found.setdefault(fact, {})[thing] = figure
    return Facts(found)


def add_table(book: EstimateBook, sheet: Sheet, row: int, section: Section) -> int:
    """Place the rows of a table, under its block head; the row after them."""
    table = facts(section)
    first = next(iter(table.of.values()))
    things = {thing: row + 1 + number for number, thing in enumerate(table.things)}
    for thing, at in things.items():
        figure = first[thing]
        texts = (thing, "·", *origin(figure), figure.id.rpartition(".")[0])
        for column, (text, look) in enumerate(zip(texts, _LOOKS, strict=True), start=1):
            sheet.set_text(at, column, text, look)
            needed = needed_height(text, look, sheet.widths[column])
            sheet.heights[at] = max(sheet.heights.get(at, _ROW), needed)
        sheet.ids[at], sheet.sections[at] = texts[-1], section.title
    told = [fact for fact, figures in table.of.items() if _has_words(figures, first)]
    columns = [SHARED, *range(start := first_column(book), start + len(table.of) - 1)]
    behind = columns[-1] + 1
    height = 20.0
    for column, (fact, figures) in zip(columns, table.of.items(), strict=True):
        unit = next(iter(figures.values())).unit
        head = fact if unit in ("1", "flag") else f"{fact}, {style.shown_unit(unit)}"
        at_words = behind + 2 * told.index(fact) if fact in told else None
        widen(sheet, column, _FACT)
        sheet.set_text(row, column, head, style.HEADER_WRAP)
        height = max(height, needed_height(head, style.HEADER_WRAP, _FACT))
        for thing, figure in figures.items():
            book.add_constant(sheet, things[thing], column, figure, _look(figure))
            if at_words is not None:
                sheet.words[things[thing], column] = {HOW: at_words, "source": at_words + 1}
                for place, text in enumerate(origin(figure), at_words):
                    sheet.set_text(things[thing], place, text, style.SOURCE.but(wrap=False))
        for place, what in enumerate(("what is known", "source"), at_words or 0):
            if at_words is not None:
                widen(sheet, place, _WORDS)
                sheet.set_text(row, place, f"{fact}: {what}", style.HEADER_WRAP)
    sheet.set_cell(row, 0, Cell(style.HEADER_WRAP))
    sheet.heights[row] = height
    sheet.tables.append((row, row + len(things), 0))
    return row + 1 + len(things)


def add_row(book: EstimateBook, sheet: Sheet, row: int, figures: Table) -> None:
    """Place a row of a table behind the scenarios, each figure with how it is known; what is in use stands
    out.
    """
    first, last = first_column(book), FIRST + book.columns - 1
    for figure, (_, column) in zip(figures.members, figures.places, strict=True):
        mark = _MARKS.get(figure.status, "")
        look = _look(figure).but(colour=style.GREY, size=_SMALL)
        form = ";".join(f'{part}" {mark}"' for part in look.form.split(";")) if mark else look.form
        look = look.but(form=form, wrap=False, bold=figures.in_use is None and bool(mark))
        book.add_constant(sheet, row, first + column, figure, look)
        if mark:
            sheet.cells[row, first + column].tip = cut(figure.source, _TOLD)
        widen(sheet, first + column, _LEVEL)
    sheet.tables.append((row, row, first))
    if figures.in_use is not None:
        at = book.addresses[figures.in_use].row + 1
        of_scenarios = f"${xl_col_to_name(FIRST)}${at}:${xl_col_to_name(last)}${at}"
        used = style.Style(bold=True, colour=style.INK, fill=style.USED)
        rule = {"type": "formula", "criteria": f"=COUNTIF({of_scenarios},COLUMN()-{first})>0", "format": used}
        sheet.conditional.append(((row, first, row, first + figures.width - 1), rule))


def add_heads(book: EstimateBook, sheet: Sheet, row: int, heads: Table) -> None:
    """Place what stands over the columns of tables behind the scenarios."""
    first = first_column(book)
    sheet.widths += [_FREE]  # where a further scenario is typed
    sheet.widths += [_GAP] * (first - len(sheet.widths))
    for figure, (_, column) in zip(heads.members, heads.places, strict=True):
        book.add_constant(sheet, row, first + column, figure, style.HEADER_WRAP)
        widen(sheet, first + column, _LEVEL)


def first_column(book: EstimateBook) -> int:
    """Behind all columns in which scenarios may stand or be typed: these are copied across whole sheets."""
    return FIRST + max(SIDE_BY_SIDE, book.columns) + 1


def _has_words(figures: dict[str, Input], first: dict[str, Input]) -> bool:
    """Whether what is known of a fact differs from thing to thing."""
    return any(
        (figure.status != "defined" or figure.source == _NOBODY)
        and origin(figure)[1] != origin(first[thing])[1]
        for thing, figure in figures.items()
    )


def _look(figure: Input) -> style.Style:
    is_text = isinstance(figure.value, str)
    look = style.value(figure.unit, is_text=is_text, role="fixed", integer=figure.integer)
    return style.zero_as_dash(look) if figure.value == 0 and figure.unit not in ("1", "flag") else look


def widen(sheet: Sheet, column: int, width: float) -> None:
    """Make room for a column behind those that a sheet has."""
    sheet.widths += [width] * (column + 1 - len(sheet.widths))
