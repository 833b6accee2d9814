"""A book to an .xlsx file, the same bytes every time. All workbooks we write come from here."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.utility import xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from mantile.estimates.estimate import Estimate
from mantile.graph.quantity import Input
from mantile.library.dates import day_of, today
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.workbook import style
from mantile.workbook.book import A3, A4, NOT_AVAILABLE, Book, Cell, Room, Sheet
from mantile.workbook.bundle import Bundle
from mantile.workbook.charts import Chart
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.made import made
from mantile.workbook.style import Style

CHUNK = 32_000  # characters of a hidden text in one cell; Excel's limit is 32,767
_AS_THEY_ARE = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
_PAGE_WIDTH, _PAGE_HEIGHT = (
    985,
    713,
)  # pixels of A4 landscape inside its margins at 100 %; LibreOffice draws columns wider
_SPARE = 1.06  # what is to spare
_LEAST_ZOOM = 80  # percent
_FULL = 0.9  # share of a page from which a block that would be cut begins on the next one
_BEGINNING = 3  # rows that stay together: air, the head of a block, its first row; more where a part begins
_WIDER = 2**0.5  # A3 against A4, on both sides
_MARGINS = {"left": 0.39, "right": 0.39, "top": 0.25, "bottom": 0.45}
_PROTECTED = {
    "select_locked_cells": True,
    "select_unlocked_cells": True,
    "format_columns": True,
    "format_rows": True,
    "autofilter": True,
    "sort": True,
    "objects": True,  # charts can be selected, copied and formatted
}
_ALL_CELLS = "A1:XFD1048576"
_FORMULA = {
    "validate": "custom",
    "value": "=0",
    "error_type": "warning",
    "error_title": "A worked-out cell",
    "error_message": "What is typed here replaces a formula: it no longer follows the inputs. "
    "Overrides are typed into yellow cells.",
}
_FIXED = {
    "validate": "custom",
    "value": "=0",
    "error_title": "A fixed figure",
    "error_message": "It is of the library, or was stored when the file was made. "
    "Overrides are typed into yellow cells.",
}


def build_workbook(estimate: Estimate, path: str | Path, sign: str | Path | None = None) -> Path:
    """Write the workbook of an estimate.

    Args:
        sign: file of a private key: what the workbook is made from, and its rows, are signed with it.

    Raises:
        InputError: if the path does not end in .xlsx or cannot be written, or the key is none.
            Nothing half-written stays behind.

    Example:
        mantile.build_workbook(estimate, "built.xlsx")    # as estimate.to_excel("built.xlsx")
    """
    bundle = None if sign is None else Bundle.of(estimate).signed(Path(sign))
    return write_workbook(lay_out(estimate, bundle), Path(path), None if sign is None else Path(sign))


def write_workbook(book: Book, path: Path, key: Path | None = None) -> Path:
    """Write a book; the file appears complete or not at all.

    Args:
        key: a private key, with which the rows are signed.

    Raises:
        InputError: if the path does not end in .xlsx or cannot be written, or the key is none.
    """
    if path.suffix != ".xlsx":
        raise InputError(f"{path}: expected a name that ends in .xlsx")
    with replacing(path) as temporary:
        _Writer(book, temporary, key).write()
    return path


class _Worksheet(Worksheet):  # type: ignore[misc]
    """A sheet whose formulas are written as they are.

    XlsxWriter searches each formula for 29 functions that files name otherwise than users do, which takes a
    tenth of a build. None of ours uses one: the linter sees to it.
    """

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        return formula.removeprefix("=")


class _Writer:
    """One run of XlsxWriter over a book."""

    def __init__(self, book: Book, path: Path, key: Path | None = None) -> None:
        self.book, self.key = book, key
        self.workbook = xlsxwriter.Workbook(str(path), _AS_THEY_ARE)
        self.formats: dict[Style, Any] = {}
        self.rule_formats: dict[Style, Any] = {}
        self.values = book.values(book.generated_inputs())

    def write(self) -> None:
        document = self.book.document
        self.workbook.set_properties(
            {
                "title": document.title,
                "author": "Mantile",
                "created": _midnight(document.made_on),
                "comments": document.comment,
            }
        )
        self.workbook.set_calc_mode("auto")
        for sheet in self.book.sheets.values():
            self._sheet(sheet)
        for name, text in document.hidden.items():
            self._hidden(name, text)
        for name, place in self.book.names.items():
            if self.workbook.define_name(name, place) == -1:
                raise AssertionError(f"{name} is not a name Excel takes")
        if document.opens_on is not None:
            self.workbook.get_worksheet_by_name(document.opens_on).activate()
        try:
            self.workbook.close()
        except FileCreateError as error:
            raise error.args[0] from None  # the OSError that it stands for

    def _sheet(self, sheet: Sheet) -> None:
        worksheet = self.workbook.add_worksheet(sheet.name, worksheet_class=_Worksheet)
        worksheet.hide_gridlines(2)
        worksheet.set_zoom(screen_zoom(sheet))
        worksheet.set_tab_color(self._recoloured(style.TABS[sheet.family]))
        if sheet.default_height is not None:
            worksheet.set_default_row(sheet.default_height * 0.75)
        for column, width in enumerate(sheet.widths):
            options = {"level": 1, "hidden": True} if column in sheet.folded_columns else {}
            if column - 1 in sheet.folded_columns and not options:
                options["collapsed"] = True
            worksheet.set_column_pixels(column, column, width, None, options)
        self._rows(worksheet, sheet)
        self._cells(worksheet, sheet)
        self._tips(worksheet, sheet)
        for place, rule in (*sheet.conditional, *self._edited(sheet)):
            _require_written(worksheet.conditional_format(*place, self._conditional(rule)))
        for row, column, chart in sheet.charts:
            self._chart(worksheet, row, column, chart)
        if sheet.freeze:
            worksheet.freeze_panes(*sheet.freeze)
        if sheet.autofilter:
            worksheet.autofilter(*sheet.autofilter)
        if sheet.folds:
            self._guard(worksheet, sheet)
        elif sheet.protected:
            worksheet.protect("", _PROTECTED)
        worksheet.ignore_errors({"number_stored_as_text": _ALL_CELLS, "formula_unlocked": _ALL_CELLS})
        self._page(worksheet, sheet)

    def _edited(self, sheet: Sheet) -> Iterator[tuple[tuple[int, int, int, int], dict[str, Any]]]:
        """Rules that mark each cell that holds something else than as generated.

        A rule holds what its cell held; a cell that follows held a formula.
        """
        for (row, column), cell in sheet.cells.items():
            if cell.entry is None or cell.room is not None:
                continue
            here = xl_rowcol_to_cell(row, column)
            held = _held(cell)
            differs = f"=OR(ISBLANK({here}),{here}<>{held})" if held else f"=NOT(ISBLANK({here}))"
            if cell.expression is not None:
                differs = f"=NOT(_xlfn.ISFORMULA({here}))"
            yield (row, column, row, column), {"type": "formula", "criteria": differs, "format": style.EDITED}

    def _rows(self, worksheet: Any, sheet: Sheet) -> None:
        worksheet.outline_settings(True, False, True, False)
        for row in rows_of(sheet):
            options = {"level": 1, "hidden": True} if row.folded else {}
            if row.sign:
                options["collapsed"] = True
            worksheet.set_row_pixels(row.number, row.height, None, options)

    def _guard(self, worksheet: Any, sheet: Sheet) -> None:
        """Guard a sheet that is not protected: formulas ask before they are typed over, numbers refuse."""
        cells = [(place, cell) for place, cell in sheet.cells.items() if cell.entry is None]
        fixed = [(place, cell.number) for place, cell in cells if cell.number is not None and not cell.tip]
        unknown = [place for place, number in fixed if math.isnan(number)]  # a formula in the file
        for rule, guarded in (
            (_FORMULA, [place for place, cell in cells if cell.expression is not None] + unknown),
            (_FIXED, [place for place, number in fixed if not math.isnan(number)]),
        ):
            areas = [
                (first, column, last, column)
                for column in sorted({column for _, column in guarded})
                for first, last in _runs(row for row, at in guarded if at == column)
            ]
            if areas:
                others = {"other_cells": [list(area) for area in areas[1:]]}
                _require_written(worksheet.data_validation(*areas[0], rule | others))

    def _cells(self, worksheet: Any, sheet: Sheet) -> None:
        for (row, column), cell in sorted(sheet.cells.items()):
            self._cell(worksheet, sheet, row, column, cell)

    def _cell(self, worksheet: Any, sheet: Sheet, row: int, column: int, cell: Cell) -> None:
        look = self._format(cell.style)
        if cell.link:
            _require_written(worksheet.write_url(row, column, cell.link, look, string=cell.text or " "))
        if cell.expression is not None:
            text = self.book.formula_text(sheet, cell)
            _require_written(worksheet.write_formula(row, column, text, look, self._stored(cell)))
        elif cell.number is not None and math.isnan(cell.number):
            _require_written(worksheet.write_formula(row, column, NOT_AVAILABLE, look, "#N/A"))
        elif cell.number is not None:
            _require_written(worksheet.write_number(row, column, cell.number, look))
        elif cell.text:
            _require_written(worksheet.write_string(row, column, cell.text, look))
        else:
            _require_written(worksheet.write_blank(row, column, None, look))
        self._about(worksheet, row, column, cell)

    def _tips(self, worksheet: Any, sheet: Sheet) -> None:
        """What is told where a fixed figure is selected, each text once for all cells that share it.

        No two rules may be of one cell, so these refuse what is typed, too.
        """
        cells: dict[str, list[list[int]]] = {}
        tips = {place: cell.tip for place, cell in sheet.cells.items() if cell.tip}
        for (row, column), tip in sorted(tips.items()):
            cells.setdefault(tip, []).append([row, column, row, column])
        for tip, (first, *others) in cells.items():
            rule = _FIXED | {"input_message": tip, "other_cells": others}
            _require_written(worksheet.data_validation(*first, rule))

    def _about(self, worksheet: Any, row: int, column: int, cell: Cell) -> None:
        """What is told of a cell beside its content."""
        if cell.note is not None:
            options = {"author": "Mantile", "width": 330, "height": 96, "font_size": 9, "color": style.PANEL}
            _require_written(worksheet.write_comment(row, column, cell.note, self._recoloured(options)))
        if cell.entry is not None and cell.room is None:
            rule = self._validation(cell.entry)
            _require_written(worksheet.data_validation(row, column, row, column, rule))
        if cell.room is not None:
            _require_written(worksheet.data_validation(row, column, row, column, _free(cell.room)))

    def _stored(self, cell: Cell) -> Any:
        """The value stored with a formula, for readers that do not calculate."""
        value = self.values[cell.scenario][cell.expression]  # type: ignore[index]
        if isinstance(value, str):
            return value
        return "#N/A" if math.isnan(value) else float(value)

    def _validation(self, entry: Input) -> dict[str, Any]:
        """What may be typed into the cell of an input."""
        rule: dict[str, Any] = {
            "input_title": entry.label[:32],
            "input_message": entry.note[:250],
            "error_title": "Not possible",
            "ignore_blank": entry.value is None,
        }
        members = self.book.library_choices(entry)
        if members is not None:
            ends = members.members[0], members.members[-1]
            first, last = (self.book.reference_to(member, 0, None) for member in ends)
            return rule | _one_of(f"{first}:{last.rpartition('!')[2]}")
        if entry.choices:
            return rule | _one_of([str(choice) for choice in entry.choices])
        return rule | _between(entry)

    def _format(self, look: Style) -> Any:
        if look not in self.formats:
            self.formats[look] = self.workbook.add_format(self._recoloured(look.properties()))
        return self.formats[look]

    def _recoloured(self, thing: Any) -> Any:
        """Anything made of words of XlsxWriter's, with the palette's colours in place of ours."""
        if isinstance(thing, str):
            return self.book.document.palette.get(thing, thing)
        if isinstance(thing, dict):
            return {key: self._recoloured(part) for key, part in thing.items()}
        return [self._recoloured(part) for part in thing] if isinstance(thing, list) else thing

    def _conditional(self, rule: dict[str, Any]) -> dict[str, Any]:
        """A rule of conditional formatting, its style as XlsxWriter takes it.

        Only what differs from the cell's own.
        """
        look = rule.get("format")
        if look is None:
            return dict(self._recoloured(rule))
        if look not in self.rule_formats:
            properties: dict[str, Any] = {"font_color": look.colour, "bold": look.bold}
            if look.fill:
                properties = {} if look == Style(fill=look.fill) else properties
                properties |= {"bg_color": look.fill}
            self.rule_formats[look] = self.workbook.add_format(self._recoloured(properties))
        plain = self._recoloured({key: part for key, part in rule.items() if key != "format"})
        return {**plain, "format": self.rule_formats[look]}

    def _chart(self, worksheet: Any, row: int, column: int, chart: Chart) -> None:
        drawn = self.workbook.add_chart(chart.kind)
        for series in chart.series:
            drawn.add_series(self._recoloured(series))
        if chart.lines:
            over = self.workbook.add_chart({"type": "line"})
            for series in chart.lines:
                over.add_series(self._recoloured(series))
            drawn.combine(over)
        drawn.set_title({"none": True})
        drawn.set_x_axis(self._recoloured(chart.x_axis))
        drawn.set_y_axis(self._recoloured(chart.y_axis))
        if chart.kind["type"] == "line":
            drawn.show_blanks_as("span")  # XlsxWriter cannot say "gap", and LibreOffice then draws 0
        drawn.show_hidden_data()  # a chart never loses a series to a folded row
        drawn.set_legend(self._recoloured(chart.legend))
        drawn.set_size({"width": chart.size[0], "height": chart.size[1]})
        x, y, width, height = chart.plot
        layout = {"x": x, "y": y, "width": width, "height": height}
        drawn.set_plotarea({"layout": layout, "fill": {"none": True}})
        drawn.set_chartarea({"border": {"none": True}, "fill": {"none": True}})
        options = {"object_position": 1, "description": chart.alt}
        _require_written(worksheet.insert_chart(row, column, drawn, options))

    def _page(self, worksheet: Any, sheet: Sheet) -> None:
        worksheet.set_landscape()
        worksheet.set_paper(sheet.paper or (A4 if _fits_a4(sheet) else A3))
        worksheet.set_margins(**_MARGINS)
        worksheet.center_horizontally()
        document = self.book.document
        grey = f"&K{style.GREY[1:]}"  # in the size of the workbook's font, which print scales
        left = " · ".join(part for part in (document.company.replace("&", "&&"), "&F", sheet.name) if part)
        worksheet.set_footer(f"&L{grey}{left}&R{grey}{document.footer} · page &P of &N")
        if sheet.repeat_rows:
            worksheet.repeat_rows(*sheet.repeat_rows)
        if sheet.print_area:
            worksheet.print_area(*sheet.print_area)
        tight = _fits_a4(sheet) and printed_width(sheet) * style.PRINTED > _PAGE_WIDTH
        if not sheet.breaks and (sheet.one_page or sheet.one_page_wide or tight):
            worksheet.fit_to_pages(1, 1 if sheet.one_page else 0)
            return
        worksheet.set_print_scale(print_scale(sheet)[0])
        worksheet.set_h_pagebreaks(page_breaks(sheet))

    def _hidden(self, name: str, text: str) -> None:
        worksheet = self.workbook.add_worksheet(name)
        texts = [text]
        if isinstance(self.book, EstimateBook):
            rows = made(self.book)
            texts.append((rows if self.key is None else rows.signed(self.key)).text)
        for column, of_column in enumerate(texts):
            for row, start in enumerate(range(0, len(of_column), CHUNK)):
                _require_written(worksheet.write_string(row, column, of_column[start : start + CHUNK]))
        worksheet.protect("")
        worksheet.very_hidden()


class _Frame(_Writer):
    """All of a book but its rows and what its cells say.

    On a sheet of their own stand empty cells in each of its styles.
    """

    def __init__(self, book: Book, stream: BytesIO) -> None:
        self.book = book
        self.workbook = xlsxwriter.Workbook(stream, _AS_THEY_ARE | {"in_memory": True})
        self.formats, self.rule_formats = {}, {}
        self.styles: dict[Style, int] = {}

    def _cells(self, worksheet: Any, sheet: Sheet) -> None:
        looks = {id(cell.style): cell.style for cell in sheet.cells.values()}  # few, and slow to tell apart
        for look in looks.values():
            self.styles.setdefault(look, len(self.styles))
        for (row, column), cell in sheet.cells.items():
            if cell.note is not None or cell.entry is not None or cell.room is not None:
                self._about(worksheet, row, column, cell)
            if cell.link:
                worksheet.write_url(row, column, cell.link, self._format(cell.style), string=" ")

    def _rows(self, worksheet: Any, sheet: Sheet) -> None:
        """Only where charts take their places from them: they are many, and `rows_of` tells all of them."""
        if sheet.charts:
            super()._rows(worksheet, sheet)

    def _hidden(self, name: str, text: str) -> None:
        worksheet = self.workbook.add_worksheet(name)
        for look, row in self.styles.items():
            worksheet.write_blank(row, 0, None, self._format(look))


def frame(book: Book) -> tuple[BytesIO, dict[Style, int]]:
    """A file of all that a book shows beside its rows and what its cells say, made in a fraction of the time.

    Returns:
        The file, and the rows in which its hidden sheet has an empty cell in each style of the book.
    """
    stream = BytesIO()
    writer = _Frame(book, stream)
    writer.write()
    return stream, writer.styles


def _midnight(day: str | None) -> datetime.datetime:
    """The beginning of a day: the same book gives the same bytes."""
    return datetime.datetime.fromisoformat(day or today()).replace(tzinfo=datetime.timezone.utc)


def _require_written(status: int | None) -> None:
    """XlsxWriter returns a number below 0 where it leaves something out."""
    if status:
        raise AssertionError(f"XlsxWriter left something out: {status}")


def _one_of(source: str | list[str]) -> dict[str, Any]:
    return {"validate": "list", "source": source, "error_message": "Choose from the list."}


def _free(room: Room) -> dict[str, Any]:
    """Text of a length that may be typed."""
    return {
        "validate": "length",
        "criteria": "<=",
        "value": room.most,
        "input_title": room.title,
        "input_message": room.message,
        "error_title": "Too long",
        "error_message": f"Expected at most {room.most} characters.",
    }


def _held(cell: Cell) -> str:
    """What a cell that is typed into holds as generated, as formulas say it; "" nothing."""
    if cell.number is not None:
        return f"{cell.number:.16G}"
    return '"' + cell.text.replace('"', '""') + '"' if cell.text else ""


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of every unbroken run of numbers."""
    ordered = sorted(numbers)
    starts = [number for place, number in enumerate(ordered) if not place or ordered[place - 1] < number - 1]
    ends = [
        number
        for place, number in enumerate(ordered)
        if place == len(ordered) - 1 or ordered[place + 1] > number + 1
    ]
    yield from zip(starts, ends, strict=True)


def _between(entry: Input) -> dict[str, Any]:
    """The range of a number that may be typed, and what is said of another."""
    low = entry.minimum if entry.minimum is not None else -1e300
    high = entry.maximum if entry.maximum is not None else 1e300
    number = "a whole number" if entry.integer else "a number"
    bounds = f"from {low:,} to {high:,}" if entry.maximum is not None else f"of at least {low:,}"
    if entry.unit == "date":
        number, bounds = "a day", f"from {day_of(low)} to {day_of(high)}"
    unit = f", in {style.shown_unit(entry.unit)}" if entry.unit not in ("1", "date") else ""
    return {
        "validate": "integer" if entry.integer else "decimal",
        "criteria": "between",
        "minimum": low,
        "maximum": high,
        "error_message": f"Expected {number} {bounds}{unit}.",
    }


def printed_width(sheet: Sheet) -> float:
    """Pixels of the columns that are printed, at 100 %."""
    first, last = (0, len(sheet.widths) - 1) if sheet.print_area is None else sheet.print_area[1::2]
    return sum(sheet.widths[first : last + 1])


def _fits_a4(sheet: Sheet) -> bool:
    """Whether the smallest text keeps its size on A4."""
    return printed_width(sheet) * style.PRINTED <= _PAGE_WIDTH * _SPARE


class Row(NamedTuple):
    """A row whose height or place in an outline is stated; pixels."""

    number: int
    height: float
    folded: bool
    sign: bool


def rows_of(sheet: Sheet) -> Iterator[Row]:
    """Heights of rows, and outlines: the sign that opens a group stands on the row above it."""
    folded = {row for first, last in sheet.folds for row in range(first, last + 1)}
    signs = {first - 1 for first, _ in sheet.folds}
    for row in sorted({*sheet.heights, *folded, *signs}):
        height = sheet.heights.get(row, sheet.default_height or 20)
        yield Row(row, height, row in folded, row in signs)


def screen_zoom(sheet: Sheet) -> int:
    """The zoom in percent at which a sheet is seen whole on a laptop, if its texts can still be read then."""
    return max(_LEAST_ZOOM, min(100, int(100 * style.SCREEN / printed_width(sheet))))


def print_scale(sheet: Sheet) -> tuple[int, float]:
    """The scale of print in percent, and the pixels of a page's height at 100 % that it gives.

    A sheet that is too wide for A4 at the smallest scale at which its texts can be read prints on A3.
    """
    larger = 1 if sheet.paper == A4 or _fits_a4(sheet) else _WIDER
    scale = min(style.PRINTED, _PAGE_WIDTH * larger / printed_width(sheet))
    return int(scale * 100), _PAGE_HEIGHT * larger / scale


def page_breaks(sheet: Sheet) -> list[int]:
    """Rows before which a page ends: those that are stated, and so that no block is cut that fits on one."""
    return list(_page_breaks(sheet, print_scale(sheet)[1]))


def _with_stated(sheet: Sheet) -> list[tuple[int, int]]:
    """The blocks of a sheet, and from each stated end of a page where none begins the rows up to the next."""
    starts = [first for first, _ in sheet.blocks]
    end = max((row for row, _ in sheet.cells), default=0) + 1
    stated = [row for row in sheet.breaks if row not in starts]
    return sorted(
        [*sheet.blocks, *((row, min((s for s in starts if s > row), default=end) - 1) for row in stated)]
    )


def _page_breaks(sheet: Sheet, page: float) -> Iterator[int]:
    folded = {row for first, last in sheet.folds for row in range(first, last + 1)}

    def height(first: int, last: int) -> float:
        rows = (row for row in range(first, last + 1) if row not in folded)
        return sum(sheet.heights.get(row, sheet.default_height or 0) for row in rows)

    head = height(*sheet.repeat_rows) if sheet.repeat_rows else 0
    start, _, end, _ = sheet.print_area or (0, 0, max((row for row, _ in sheet.cells), default=0), 0)
    blocks = [block for block in _with_stated(sheet) if start <= block[0] <= end]
    used = height(start, blocks[0][0] - 1) if blocks else 0
    used += head if start else 0
    for first, last in blocks:
        shown = [row for row in range(first, last + 1) if row not in folded]
        block = height(first, last)
        heads = next((place for place, row in enumerate(shown) if row in sheet.ids), 0)
        alone = bool(shown) and used + height(first, shown[: max(_BEGINNING, heads + 1)][-1]) > page
        full = used > _FULL * page or not sheet.repeat_rows  # nobody reads a rest without heads
        is_cut = used + block > page and block <= page - head and full
        if first > start and (first in sheet.breaks or alone or is_cut):
            yield first
            used = head
        for row in shown:  # a row is never cut
            high = height(row, row)
            used = (head if used + high > page else used) + high
