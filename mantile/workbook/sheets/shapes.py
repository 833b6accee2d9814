"""A part of the IR sheet: every tensor with its shape as numbers, its data type and its bytes."""

from __future__ import annotations

from mantile.equations.ir import IrSheet, TensorRow
from mantile.graph.quantity import Literal, Named, Node
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import add_part
from mantile.workbook.text_width import cut_to

_NUMBER, _MODULE, _FORMAT, _TENSOR, _LAYERS, _VALUES, _COPIES, _SIZE = 0, 1, 2, 3, 6, 7, 8, 9  # columns
_SIZES = 5  # columns for dimensions: of a convolution over time there are five
_EACH, _BYTES = _SIZE + _SIZES, _SIZE + _SIZES + 1
_HEADS = {
    _NUMBER: "no.",
    _MODULE: "module",
    _FORMAT: "format",
    _TENSOR: "tensor, n for an index",
    _LAYERS: "layers",
    _VALUES: "values, all",
    _COPIES: "copies",
    _EACH: "B each",
    _BYTES: "bytes, all",
}
_LINE = {"bottom": (style.THIN, style.FAINT)}
_TEXT = style.Style(size=9.5).but(**_LINE)
_WHOLE = style.aired("#,##0", colour=style.LINK, **_LINE)


def shapes_part(
    book: EstimateBook, sheet: Sheet, row: int, shown: IrSheet, links: list[tuple[Cell, Named]]
) -> int:
    """Draw it from a row on, for the base scenario; the row after it.

    Args:
        links: cells and what they shall lead to once it stands.
    """
    note = (
        "Every tensor as it is stored: how often, its dimensions, format and bytes. Values lead to Tensors."
    )
    sheet.blocks.append((row, row + 3))
    row = add_part(sheet, row, "Shapes", note, _BYTES)
    sizes = {_SIZE + number: f"size {number + 1}" for number in range(_SIZES)}
    for column, head in (_HEADS | sizes).items():
        left = column in (_MODULE, _FORMAT, _TENSOR)
        sheet.set_text(row, column, head, style.HEADER if left else style.HEADER_RIGHT)
    sheet.set_style(row, 0, _BYTES, style.HEADER)
    names = {of.number: str(of.name.value) for of in (*shown.rows, *shown.apart)}
    before = 0
    for tensor in shown.tensors:
        row += 1
        if tensor.module != before:
            before = tensor.module
            look = style.aired("0", colour=style.MUTE, size=9.5, **_LINE)
            sheet.set_cell(row, _NUMBER, Cell(look, number=before))
            name = cut_to(names[before], _TEXT.size, sheet.widths[_MODULE])
            sheet.set_text(row, _MODULE, name, _TEXT.but(colour=style.GREY))
        _tensor(book, sheet, row, tensor)
        links.append((sheet.cells[row, _VALUES], tensor.values))
        sheet.set_style(row, 0, _BYTES, _TEXT)
    return row + 1


def _tensor(book: EstimateBook, sheet: Sheet, at: int, row: TensorRow) -> None:
    """One tensor."""
    name = row.tensor.name.replace("{}", "n")
    note = ", no parameter" if row.tensor.buffer else ""
    room = sum(sheet.widths[_TENSOR:_LAYERS])
    sheet.set_text(at, _TENSOR, cut_to(f"{name}{note}", _TEXT.size, room), _TEXT)
    figures = {_LAYERS: row.tensor.layers, _COPIES: row.tensor.copies} | dict(enumerate(row.shape, _SIZE))
    for column, figure in figures.items():
        if figure is not None:
            _number(sheet, at, column, figure)
    sheet.set_formula(at, _VALUES, row.values, _WHOLE)
    if isinstance(row.dtype, str):
        sheet.set_text(at, _FORMAT, row.dtype, _TEXT)
    else:
        sheet.set_formula(at, _FORMAT, row.dtype, _TEXT.but(colour=style.LINK))
    sheet.set_formula(at, _EACH, row.size, style.aired("0.0###", colour=style.LINK, **_LINE))
    book.add_quantity(sheet, at, _BYTES, row.bytes, style.aired("#,##0", **_LINE))


def _number(sheet: Sheet, row: int, column: int, figure: Node) -> None:
    """A dimension, live unless it is a plain 1."""
    if isinstance(figure, Literal):
        sheet.set_cell(row, column, Cell(_WHOLE, number=float(figure.value)))
    else:
        sheet.set_formula(row, column, figure, _WHOLE)
