"""The Shapes sheet: every tensor with its shape as numbers, its data type and its bytes."""

from __future__ import annotations

from mantile.equations.ir import IrSheet, TensorRow
from mantile.graph.quantity import Literal, Node, Quantity
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_title_rows
from mantile.workbook.text_width import cut_to

_WIDTHS = (34, 256, 330, 48, 56)  # module, its name, tensor, layers, copies
_SIZE = 76  # of a dimension
_LAST = (132, 84, 64, 136)  # values, format, bytes of a value, bytes
_HEADS = ("no.", "module", "tensor, n for an index", "layers", "copies")
_LAST_HEADS = ("values, all", "format", "B each", "bytes, all")
_LINE = {"bottom": (style.THIN, style.FAINT)}
_TEXT = style.Style(size=9.5).but(**_LINE)
_WHOLE = style.aired("#,##0", colour=style.LINK, **_LINE)


def fill_shapes(book: EstimateBook, shown: IrSheet, master: Quantity) -> None:
    """Lay out the Shapes sheet for the base scenario."""
    sheet = book.sheets["Shapes"]
    sheet.purpose = (
        "Every tensor as it is stored: its dimensions, how often it is there, its data type and bytes. "
        "Values lead to Tensors."
    )
    most = max(len(row.shape) for row in shown.tensors)
    sheet.widths = [*_WIDTHS, *([_SIZE] * most), *_LAST]
    last = len(sheet.widths) - 1
    add_title_rows(book, sheet, "Shapes", last, master)
    sheet.heights[2] = 6
    sizes = [f"size {number}" for number in range(1, most + 1)]
    for column, head in enumerate((*_HEADS, *sizes, *_LAST_HEADS)):
        left = column in (1, 2) or head == "format"
        sheet.set_text(3, column, head, style.HEADER if left else style.HEADER_RIGHT)
    names = {row.number: str(row.name.value) for row in (*shown.rows, *shown.apart)}
    for at, row in enumerate(shown.tensors, 4):
        _tensor(book, sheet, at, row, names[row.module], len(_WIDTHS) + most)
        sheet.set_style(at, 0, last, _TEXT)
    sheet.print_area = (0, 0, 3 + len(shown.tensors), last)
    sheet.one_page_wide = True
    sheet.freeze, sheet.repeat_rows = (4, 3), (0, 3)
    sheet.autofilter = (3, 0, 3 + len(shown.tensors), last)


def _tensor(book: EstimateBook, sheet: Sheet, at: int, row: TensorRow, module: str, then: int) -> None:
    """One tensor.

    Args:
        then: the column after its dimensions.
    """
    sheet.set_cell(at, 0, Cell(style.aired("0", colour=style.MUTE, size=9.5, **_LINE), number=row.module))
    sheet.set_text(at, 1, cut_to(module, _TEXT.size, sheet.widths[1]), _TEXT.but(colour=style.GREY))
    name = row.tensor.name.replace("{}", "n")
    note = ", no parameter" if row.tensor.buffer else ""
    sheet.set_text(at, 2, cut_to(f"{name}{note}", _TEXT.size, sheet.widths[2]), _TEXT)
    figures = {3: row.tensor.layers, 4: row.tensor.copies} | dict(enumerate(row.shape, len(_WIDTHS)))
    for column, figure in figures.items():
        if figure is not None:
            _number(sheet, at, column, figure)
    sheet.set_formula(at, then, row.values, _WHOLE, link=book.link_to(row.values))
    linked = _TEXT.but(colour=style.LINK)
    if isinstance(row.dtype, str):
        sheet.set_text(at, then + 1, row.dtype, _TEXT)
    else:
        sheet.set_formula(at, then + 1, row.dtype, linked)
    sheet.set_formula(at, then + 2, row.size, style.aired("0.0###", colour=style.LINK, **_LINE))
    book.add_quantity(sheet, at, then + 3, row.bytes, style.aired("#,##0", **_LINE))


def _number(sheet: Sheet, row: int, column: int, figure: Node) -> None:
    """A dimension, live unless it is a plain 1."""
    if isinstance(figure, Literal):
        sheet.set_cell(row, column, Cell(_WHOLE, number=float(figure.value)))
    else:
        sheet.set_formula(row, column, figure, _WHOLE)
