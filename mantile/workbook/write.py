"""A laid-out workbook to an .xlsx file, the same bytes every time."""

from __future__ import annotations

import datetime
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from mantile.estimate.estimate import Estimate
from mantile.graph.quantity import Input, Node
from mantile.library.errors import InputError
from mantile.workbook import style
from mantile.workbook.book import Book, Cell, Sheet
from mantile.workbook.bundle import BUNDLE_SHEET, CHUNK
from mantile.workbook.layout import lay_out
from mantile.workbook.style import Style

# A fixed moment, so that the same scenario gives the same bytes.
_CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
_PAGE_WIDTH, _PAGE_HEIGHT = (
    940,
    640,
)  # pixels of an A4 landscape page inside its margins at 100 %, with some to spare
_MARGINS = {"left": 0.39, "right": 0.39, "top": 0.39, "bottom": 0.55}


def build_workbook(estimate: Estimate, path: str | Path) -> Path:
    """Write the workbook of an estimate.

    Raises:
        InputError: if the path does not end in .xlsx or cannot be written. Nothing half-written stays behind.
    """
    return write_workbook(lay_out(estimate), Path(path))


def write_workbook(book: Book, path: Path) -> Path:
    """Write a laid-out workbook; the file appears complete or not at all."""
    if path.suffix != ".xlsx":
        raise InputError(f"{path}: expected a name that ends in .xlsx")
    try:
        handle, temporary = tempfile.mkstemp(suffix=".xlsx", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # XlsxWriter only warns where it leaves something out
            _Writer(book).write(Path(temporary))
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot write: {error.strerror}") from error
        raise
    return path


class _Worksheet(Worksheet):  # type: ignore[misc]
    """A sheet whose formulas are written as they are: none uses a function that files name otherwise than users do (the rules see to it),
    and XlsxWriter's search of each formula for the 29 such names takes a tenth of a build."""

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        return formula.removeprefix("=")


class _Writer:
    """One run of XlsxWriter over a book."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.formats: dict[Style, Any] = {}
        self.colours = style.recoloured(book.estimate.template.palette.model_dump(exclude_none=True))
        self.values = book.values(book.generated_inputs())

    def write(self, path: Path) -> None:
        workbook = xlsxwriter.Workbook(
            str(path), {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
        )
        self.workbook = workbook
        workbook.set_properties(
            {
                "title": self.book.estimate.title,
                "author": "Mantile",
                "created": _CREATED,
                "comments": self.book.imprint,
            }
        )
        workbook.set_calc_mode("auto")
        for sheet in self.book.sheets.values():
            self._sheet(sheet)
        self._bundle()
        for name, place in self.book.names.items():
            if workbook.define_name(name, place) == -1:
                raise AssertionError(f"{name} is not a name Excel takes")
        workbook.get_worksheet_by_name("Summary").activate()
        workbook.close()

    def _format(self, look: Style) -> Any:
        if look not in self.formats:
            self.formats[look] = self.workbook.add_format(self._coloured(look.properties()))
        return self.formats[look]

    def _coloured(self, thing: Any) -> Any:
        """Anything made of words of XlsxWriter's, with the template's colours in place of ours."""
        if isinstance(thing, str):
            return self.colours.get(thing, thing)
        if isinstance(thing, dict):
            return {key: self._coloured(part) for key, part in thing.items()}
        return [self._coloured(part) for part in thing] if isinstance(thing, list) else thing

    def _sheet(self, sheet: Sheet) -> None:
        written = self.workbook.add_worksheet(sheet.name, worksheet_class=_Worksheet)
        written.hide_gridlines(2)
        written.set_tab_color(self._coloured(style.TABS[sheet.family]))
        written.set_default_row(sheet.default_height * 0.75)
        for column, width in enumerate(sheet.widths):
            written.set_column_pixels(column, column, width)
        for row, height in sheet.heights.items():
            written.set_row_pixels(row, height)
        for (row, column), cell in sorted(sheet.cells.items()):
            self._cell(written, sheet, row, column, cell)
        for place, rule in sheet.conditional:
            look = rule.get("format")
            rule = self._coloured({key: part for key, part in rule.items() if key != "format"})
            rule |= {"format": self._conditional(look)} if look is not None else {}
            written.conditional_format(*place, rule)
        for row, column, chart in sheet.charts:
            self._chart(written, row, column, chart)
        if sheet.freeze:
            written.freeze_panes(*sheet.freeze)
        written.protect(
            "",
            {
                "select_locked_cells": True,
                "select_unlocked_cells": True,
                "format_columns": True,
                "format_rows": True,
            },
        )
        written.ignore_errors({"number_stored_as_text": "A1:XFD1048576", "formula_unlocked": "A1:XFD1048576"})
        self._page(written, sheet)

    def _cell(self, written: Any, sheet: Sheet, row: int, column: int, cell: Cell) -> None:
        look = self._format(cell.style)
        if cell.link:
            written.write_url(row, column, cell.link, look, string=cell.text or " ")
        if cell.expression is not None:
            written.write_formula(row, column, self.book.formula_text(sheet, cell), look, self._cached(cell))
        elif cell.number is not None:
            written.write_number(row, column, cell.number, look)
        elif cell.text:
            written.write_string(row, column, cell.text, look)
        else:
            written.write_blank(row, column, None, look)
        if cell.note is not None:
            look_of_note = {
                "author": "Mantile",
                "width": 330,
                "height": 96,
                "font_size": 9,
                "color": self._coloured(style.PANEL),
            }
            written.write_comment(row, column, cell.note, look_of_note)
        if cell.entry is not None:
            self._validation(written, row, column, cell.entry)

    def _cached(self, cell: Cell) -> Any:
        value = self.values[cell.scenario][_node(cell)]
        if isinstance(value, str):
            return value
        if value != value:
            return "#N/A"
        return float(value)

    def _validation(self, written: Any, row: int, column: int, entry: Input) -> None:
        rule: dict[str, Any] = {
            "input_title": entry.label[:32],
            "input_message": entry.note[:250],
            "error_title": "Not possible",
            "ignore_blank": entry.value is None,
        }
        members = self.book.library_choices(entry)
        if members is not None:
            first, last = (
                self.book.reference_to(member, 0, None)
                for member in (members.members[0], members.members[-1])
            )
            rule |= {
                "validate": "list",
                "source": f"{first}:{last.rpartition('!')[2]}",
                "error_message": "Choose from the list.",
            }
        elif entry.choices:
            rule |= {
                "validate": "list",
                "source": [str(choice) for choice in entry.choices],
                "error_message": "Choose from the list.",
            }
        else:
            low = entry.minimum if entry.minimum is not None else -1e300
            high = entry.maximum if entry.maximum is not None else 1e300
            rule |= {
                "validate": "integer" if entry.integer else "decimal",
                "criteria": "between",
                "minimum": low,
                "maximum": high,
                "error_message": f"Expected {'a whole number' if entry.integer else 'a number'} "
                + (f"from {low:,} to {high:,}" if entry.maximum is not None else f"of at least {low:,}")
                + (f", in {style.shown_unit(entry.unit)}" if entry.unit != "1" else "")
                + ".",
            }
        written.data_validation(row, column, row, column, rule)

    def _conditional(self, look: Style) -> Any:
        properties: dict[str, Any] = {"font_color": look.colour, "bold": look.bold}
        if look.fill:
            properties |= {"bg_color": look.fill}
            if look == Style(fill=look.fill):
                properties = {"bg_color": look.fill}
        return self.workbook.add_format(self._coloured(properties))

    def _chart(self, written: Any, row: int, column: int, chart: Any) -> None:
        made = self.workbook.add_chart(chart.kind)
        for series in chart.series:
            made.add_series(self._coloured(series))
        made.set_title({"none": True})
        made.set_x_axis(self._coloured(chart.x_axis))
        made.set_y_axis(self._coloured(chart.y_axis))
        made.set_legend(self._coloured(chart.legend))
        made.set_size({"width": chart.size[0], "height": chart.size[1]})
        x, y, width, height = chart.plot
        made.set_plotarea(
            {"layout": {"x": x, "y": y, "width": width, "height": height}, "fill": {"none": True}}
        )
        made.set_chartarea({"border": {"none": True}, "fill": {"none": True}})
        written.insert_chart(row, column, made, {"object_position": 1, "description": chart.alt})

    def _page(self, written: Any, sheet: Sheet) -> None:
        written.set_landscape()
        written.set_paper(9)
        written.set_margins(**_MARGINS)
        written.center_horizontally()
        grey, company = f"&8&K{style.GREY[1:]}", self.book.estimate.template.company.replace("&", "&&")
        left = " · ".join(part for part in (company, "&F", sheet.name) if part)
        written.set_footer(f"&L{grey}{left}&R{grey}bundle {self.book.digest} · page &P of &N")
        if sheet.repeat_rows:
            written.repeat_rows(*sheet.repeat_rows)
        if sheet.print_area:
            written.print_area(*sheet.print_area)
        if sheet.one_page:
            written.fit_to_pages(1, 1)
            return
        scale = min(1.0, _PAGE_WIDTH / sum(sheet.widths))
        written.set_print_scale(int(scale * 100))
        written.set_h_pagebreaks(self._breaks(sheet, _PAGE_HEIGHT / scale))

    def _breaks(self, sheet: Sheet, page: float) -> list[int]:
        """Rows before which a page ends, so that no block is cut that fits on a page."""

        def height(first: int, last: int) -> float:
            return sum(sheet.heights.get(row, sheet.default_height) for row in range(first, last + 1))

        breaks: list[int] = []
        head = height(*sheet.repeat_rows) if sheet.repeat_rows else 0
        used = height(0, sheet.blocks[0][0] - 1) if sheet.blocks else 0
        for first, last in sheet.blocks:
            block = height(first, last)
            if used + block > page and block <= page - head:
                breaks.append(first)
                used = head
            used += block
            while used > page:
                used -= page - head
        return breaks

    def _bundle(self) -> None:
        written = self.workbook.add_worksheet(BUNDLE_SHEET)
        text = self.book.bundle.text
        for row, start in enumerate(range(0, len(text), CHUNK)):
            written.write_string(row, 0, text[start : start + CHUNK])
        written.protect("")
        written.very_hidden()


def _node(cell: Cell) -> Node:
    assert cell.expression is not None
    return cell.expression
