"""The comparison on What-if: scenarios side by side, changes against the base, who is best at what."""

from __future__ import annotations

from collections.abc import Iterable

from xlsxwriter.utility import xl_col_to_name

from mantile.equations.compare import (
    CONFIGURATION,
    FITS,
    HEADLINES,
    Comparison,
    Line,
    compare,
)
from mantile.equations.ready_columns import name_of
from mantile.graph.operations import table_format
from mantile.graph.quantity import Input, Quantity
from mantile.workbook import charts, style
from mantile.workbook.book import ACROSS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.cases import add_folded_head, fold
from mantile.workbook.sheets.frame import add_part, fits_on_page, needed_height, scenario_heads, thirds

COMPARISON = "Comparison"
_UNIT, _BETTER, _BASE = 1, 2, 3  # columns; the last is that of the base's values
_CHARTS_END = 11  # column up to which charts reach
_HEIGHT = 17  # of a line
_HOW_TO_USE = "type a name over row 4 of Inputs to use this column"
# Formats of the front sheets, by line, where they are not the digits of a metric; texts have none.
_FORMS = {
    "accelerators": "whole",
    "memory_share": "percent1",
    FITS: "yes",
    "output_tokens_per_s": "rate",
    "output_tokens_per_s_per_accelerator": "rate",
    "prefill_mfu": "percent1",
    "decode_mbu": "percent1",
    "decode_network_share": "percent1",
    "usd_per_hour": "money",
    "power": "kw",
    "usd_per_million_output": "money",
    "usd_per_month": "bill",
    "price": "money",
    "break_even": "money",
}
_CHART_FORMS = {
    "output_tokens_per_s_per_accelerator": '[=0]"";[<10]0.00;#,##0',
    "usd_per_million_output": '[=0]"";[<1]0.000;#,##0.00',
}
_SMALL = style.Style(size=style.SMALL)
_NUMBER = style.Style(size=style.SMALL, form="#,##0.00", align="right")
_COUNT = _NUMBER.but(form="0")


def last_column(book: EstimateBook) -> int:
    """The last column of the comparison; 0 where there is nothing to compare."""
    return _column(book.side_by_side) if book.columns > 1 else 0


def add_comparison(book: EstimateBook, sheet: Sheet, row: int, last: int, counted: Quantity | None) -> int:
    """Lay out the part from a row on; the row after it. None of a single scenario.

    Args:
        counted: how many scenarios have a name; None without ready columns.
    """
    return row if book.columns == 1 else _Comparison(book, sheet, counted).lay_out(row, last)


class _Comparison:
    """The part while it is laid out, and the rows in which its lines stand."""

    def __init__(self, book: EstimateBook, sheet: Sheet, counted: Quantity | None) -> None:
        self.book, self.sheet = book, sheet
        self.heads = scenario_heads(book)[: book.side_by_side]
        self.last = last_column(book)
        self.figures: Comparison = compare(
            book.estimate.equations,
            [f"{letter[0]} · {name}" for letter, name in self.heads],
            book.estimate_values[: book.side_by_side],
            book.currency,
            book.ready,
            counted,
        )
        self.of = self.figures.rows
        self.rows: dict[Line, int] = {}

    def lay_out(self, row: int, last: int) -> int:
        """The finding, charts, rows by section; folded away what they follow from. The row after it."""
        purpose = "Changes are against A; = is less than half a percent. The best that fit stand on green."
        top, row = row, add_part(self.sheet, row, COMPARISON, purpose, last, _UNIT)
        finding, chart_rows = row, self.book.side_by_side + 4  # LibreOffice breaks labels in lower charts
        row = table = finding + chart_rows + 2
        self._heads(row)
        row += 2
        for lines in self.figures.sections.values():
            self._section(row, lines)
            row += len(lines)
        if not fits_on_page(self.sheet, top, row):
            self.sheet.breaks.append(table)
        data = first = add_folded_head(self.sheet, row, "What the comparison follows from", last)
        data = self._scenarios(data)
        data = self._rankings(data)
        data = self._finding(finding, data)
        data = self._charts(finding + 1, chart_rows * 18, data)
        fold(self.sheet, first, data)
        self._conditions()
        return data

    def _heads(self, row: int) -> None:
        sheet = self.sheet
        top, bottom = style.HEADER_RIGHT.but(bottom=None), style.HEADER_RIGHT
        for column, head in ((0, "quantity"), (_UNIT, "unit"), (_BETTER, "better")):
            sheet.set_text(row + 1, column, head, style.HEADER)
        grey = bottom.but(size=style.SMALL, bold=False, colour=style.GREY)
        for scenario, (letter, name) in enumerate(self.heads):
            sheet.set_text(row, _column(scenario), letter, top)
            if scenario in self.book.ready:
                live = name_of(scenario, _HOW_TO_USE)
                sheet.set_formula(row + 1, _column(scenario), live, style.HEADER_WRAP, scenario=ACROSS)
            else:
                sheet.set_text(row + 1, _column(scenario), name, style.HEADER_WRAP)
            if scenario:
                sheet.set_text(row + 1, _column(scenario) + 1, "vs A", grey)
        sheet.set_text(row + 1, self.last, "best", bottom)
        sheet.set_style(row, 0, self.last, top)
        pixels = sheet.widths[_BASE]
        names = (_HOW_TO_USE if at in self.book.ready else name for at, (_, name) in enumerate(self.heads))
        needed = (needed_height(name, style.HEADER_WRAP, pixels) for name in names)
        sheet.heights[row + 1] = max(18, *needed)

    def _section(self, row: int, lines: tuple[Line, ...]) -> None:
        """The rows of a section, below a line."""
        for below, line in enumerate(lines, row):
            self.rows[line], self.sheet.heights[below] = below, _HEIGHT
            self._row(below, line, None if below > row else (style.THIN, style.HAIRLINE))

    def _row(self, row: int, line: Line, edge: tuple[int, str] | None) -> None:
        """Labels, the value of every scenario, its change against the base, and who is best."""
        book, sheet = self.book, self.sheet
        unit = style.shown_unit(line.shown_unit or line.unit)
        unit = "" if unit == "1" else unit
        labels = ((line.label, style.LABEL), (unit, style.UNIT), (line.better, style.UNIT))
        for column, (text, look) in enumerate(labels):
            if text:
                sheet.set_text(row, column, text, look.but(top=edge))
        look = _look(line).but(top=edge)
        grey = style.table("change", size=style.SMALL, colour=style.GREY, top=edge)
        for scenario, column in enumerate(map(_column, range(self.book.side_by_side))):
            link = book.link_to(line.subject, scenario)
            value = self.of.rows[f"compare.{line.key}.{scenario}"]
            book.add_quantity(sheet, row, column, value, look, scenario=ACROSS, link=link)
            if scenario and line.changes:
                self._put(row, column + 1, [f"{line.key}.change.{scenario}"], grey)
        look = style.TEXT_VALUE.but(bold=True, top=edge)
        if line.better is not None:
            self._put(row, self.last, [f"{line.key}.letter"], look)
        if edge is not None:
            sheet.set_style(row, 0, self.last, look)
        sheet.ids[row] = f"compare.{line.identifier}"

    def _put(self, row: int, column: int, names: Iterable[str], look: style.Style, label: str = "") -> None:
        """Figures beside each other from a column on, and what is said before them."""
        if label:
            self.sheet.set_text(row, 0, label, _SMALL)
        for at, figure in enumerate((self.of[name] for name in names), column):
            if isinstance(figure, Quantity):
                self.book.add_quantity(self.sheet, row, at, figure, look, scenario=ACROSS)
            else:
                self.book.add_constant(self.sheet, row, at, figure, look)

    def _each(self, name: str, first: int = 0) -> list[str]:
        """Names of a figure of all scenarios, which are counted from a number."""
        return [f"{name}.{scenario}" for scenario, _ in enumerate(self.heads, first)]

    def _scenarios(self, row: int) -> int:
        """What is said of scenarios side by side; the next free row."""
        self.label_row = row + 3
        for below, name in enumerate(("number", "letter", "name", "label"), row):
            self._put(below, _BASE, self._each(name), _SMALL, name)
        return self.label_row + 1

    def _rankings(self, row: int) -> int:
        """What scenarios are ranked by, and who is best; the next free row."""
        after = _BASE + self.book.side_by_side
        heads = ((0, "ranked by"), (1, "best"), (2, "up to, from"))
        for column, label in (*heads, *enumerate(("with a place", "alike", "if none is best"), after)):
            self.sheet.set_text(row, column, label, _SMALL)
        for line in self.figures.lines:
            if line.better is None:
                continue
            row += 1
            self._put(row, _BASE, self._each(f"{line.key}.key", 1), _NUMBER, line.label)
            self._put(row, after, (f"{line.key}.{name}" for name in ("placed", "alike", "none")), _COUNT)
            self._put(row, 1, [f"{line.key}.best"], _COUNT)
            if line.metric in HEADLINES:
                self._put(row, 2, [f"{line.key}.limit"], _NUMBER)
        return row + 1

    def _finding(self, row: int, data: int) -> int:
        """Who is best most often, as a heading; its data stand from row `data` on. The next free row."""
        sheet = self.sheet
        self._put(data, _BASE, self._each("won", 1), _COUNT, "headline results at which it is best")
        self._put(data + 1, 1, ["most", "sharing"], _COUNT, "most of them, whose, and how many share it")
        self._put(data + 1, _BASE, ["ahead"], _SMALL)
        self._put(data + 2, _BASE, ["who"], _SMALL)
        self._put(row, 0, ["title"], style.Style(size=14, bold=True, colour=style.NAVY))
        caption = "headline results: TTFT, TPOT, tokens per accelerator, cost per token"
        grey = style.Style(size=style.SMALL, colour=style.GREY, align="right")
        sheet.set_text(row, _CHARTS_END, caption, grey)
        sheet.heights[row] = 24
        return data + 3

    def _charts(self, row: int, height: int, data: int) -> int:
        """Three charts under live titles; their series stand from row `data` on. The next free row."""
        sheet, form = self.sheet, _NUMBER.but(form="0.0%")
        self._put(data, 1, ["least"], _NUMBER.but(form="0.000"), "least gain told")
        drawn = [line for line in self.figures.lines if line.chart]
        for (start, width), line in zip(thirds(sheet, _CHARTS_END), drawn, strict=True):
            best, others = data + 1, data + 2
            self._put(best, 1, [f"{line.key}.gain"], form, f"{line.chart}: the best, and its gain")
            self._put(best, _BASE, self._each(f"{line.key}.chart", 1), _NUMBER)
            self._put(others, 1, [f"{line.key}.words"], form, f"{line.chart}: the others")
            self._put(others, _BASE, self._each(f"{line.key}.others", 1), _NUMBER)
            self._put(row, start, [f"{line.key}.title"], style.Style(size=10.5, bold=True))
            chart = charts.singled_out(
                f"{line.chart} of every scenario, the best in blue",
                self._across(self.label_row),
                self._across(others),
                self._across(best),
                _chart_form(line),
                (width, height),
                (140 / width, 0.02, 1 - 200 / width, 0.96),
            )
            sheet.charts.append((row + 1, start, chart))
            data += 2
        return data + 1

    def _across(self, row: int) -> charts.Range:
        """The cells of all scenarios in a row of chart data."""
        return (self.sheet.name, row, _BASE, row, _BASE + self.book.side_by_side - 1)

    def _conditions(self) -> None:
        """Colours that follow the numbers: what does not fit, the best, changes, what limits."""
        fits = next(row for of, row in self.rows.items() if of.key == FITS)
        fail = style.Style(colour=style.FAIL, bold=True)
        rule = {"type": "cell", "criteria": "==", "value": 0, "stop_if_true": True, "format": fail}
        self.sheet.conditional.append(((fits, _BASE, fits, self.last), rule))
        for scenario in range(self.book.side_by_side):
            self._conditions_of(scenario, fits)

    def _conditions_of(self, scenario: int, fits: int) -> None:
        """The colours of one scenario. Rows of conditions are those of the first line."""
        first = min(self.rows.values())
        configured = max(row for of, row in self.rows.items() if of in self.figures.sections[CONFIGURATION])
        line, column = first + 1, _column(scenario)
        best, base, better = map(xl_col_to_name, (self.last, _BASE, _BETTER))
        value, change = xl_col_to_name(column), xl_col_to_name(column + 1)
        # What stands in the column of the letter.
        named = f"INDEX(${base}{line}:${best}{line},MAX(1,2*(CODE(${best}{line})-64)-2))"
        equals = f"ABS(N({value}{line})-N({named}))<=1E-8*ABS(N({named}))"
        width = 2 if scenario else 1
        fit = f"${value}${fits + 1}"
        fit = f"N({fit})" if scenario in self.book.ready else fit
        self._rule(column, f"{fit}=0", style.Style(colour=style.MUTE), width, stop=True)
        self._rule(
            column,
            f'AND(ISNUMBER(${value}{line}),LEN(${best}{line})>0,${best}{line}<>"=",${best}{line}<>"–",{equals})',
            style.Style(fill=style.BEST, bold=True),
        )
        self._rule(
            column,
            f"{value}{line}<>${base}{line}",
            style.Style(bold=True, colour=style.NAVY),
            end=configured,
        )
        for colour, up, down in ((style.BETTER, "higher", "lower"), (style.WORSE, "lower", "higher")):
            if scenario:
                self._rule(
                    column + 1,
                    f'AND(ISNUMBER({change}{line}),OR(AND(${better}{line}="{up}",{change}{line}>=0.005),'
                    f'AND(${better}{line}="{down}",{change}{line}<=-0.005)))',
                    style.Style(colour=colour),
                )
        for limit, colour in style.BOUND_TEXTS.items():
            self._rule(column, f'{value}{line}="{limit}"', style.Style(colour=colour))

    def _rule(
        self,
        column: int,
        criteria: str,
        look: style.Style,
        width: int = 1,
        stop: bool = False,
        end: int | None = None,
    ) -> None:
        """A colour where a formula holds, in rows of some columns: all, or those up to an end."""
        rule = {"type": "formula", "criteria": f"={criteria}", "format": look, "stop_if_true": stop}
        first, last = min(self.rows.values()), max(self.rows.values()) if end is None else end
        self.sheet.conditional.append(((first, column, last, column + width - 1), rule))


def _column(scenario: int) -> int:
    """Where the values of a scenario stand; its changes are to the right of them."""
    return _BASE + max(0, 2 * scenario - 1)


def _look(line: Line) -> style.Style:
    """The look of a line's values.

    That of inputs follows from what they are, that of metrics from their digits.
    """
    if line.key in _FORMS:
        return style.table(_FORMS[line.key])
    if line.metric is not None:
        return style.VALUE.but(form=style.amount(line.metric.digits))
    if isinstance(line.body, Input) and not isinstance(line.body.value, str):
        return style.table("whole" if line.body.integer else "ms2")
    return style.TEXT_VALUE


def _chart_form(line: Line) -> str:
    """The format of the labels in a chart; a 0 has none."""
    if line.key in _CHART_FORMS:
        return _CHART_FORMS[line.key]
    return table_format(0 if line.metric is None else line.metric.large_digits)
