"""The tiles of the Summary sheet: does it fit, how fast is it, how much in total, what does it cost."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.summary import tiles
from mantile.graph.quantity import Quantity
from mantile.graph.sentence import sentence
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook

_QUESTIONS, _LABEL, _NUMBER, _LINE, _DEFINITION, _SECOND, _OTHER = 8, 9, 10, 11, 12, 13, 14  # rows
_ENDS = (2, 5, 7)  # last columns of questions


@dataclass(frozen=True)
class _Tile:
    """A tile: a large number with its texts, and a second number.

    Args:
        column: where it stands.
        key: of its texts.
        figure, unit, form: the large number, the unit in which it is shown and its format.
        definition: where it is the same in every workbook.
        second: what the second number is.
        other, other_form: the second number, in its own unit.
        other_unit: the unit in which that is shown, where it is another one.
    """

    column: int
    key: str
    label: str
    figure: Quantity
    unit: str
    form: str
    second: str
    other: Quantity
    other_form: str
    definition: str = ""
    other_unit: str = ""


def add_tiles(book: EstimateBook, sheet: Sheet) -> None:
    """Lay out the tiles under the questions they answer."""
    questions = {
        1: "DOES IT FIT?",
        3: "HOW FAST FOR ONE USER?",
        6: "HOW MUCH IN TOTAL?",
        8: "WHAT DOES IT COST?",
    }
    texts = tiles(book.estimate.equations)
    for tile in _tiles(book):
        look = style.TILE.but(size=8.5, bold=True, colour=style.NAVY, top=(style.THICK, style.NAVY))
        cell = Cell(look.but(right=_edge(tile.column)), text=questions.get(tile.column))
        sheet.set_cell(_QUESTIONS, tile.column, cell)
        _numbers(book, sheet, tile)
        _texts(book, sheet, tile, texts[tile.key].line, texts[tile.key].definition)
    fail = style.Style(colour=style.FAIL, bold=True)
    rule = {"type": "cell", "criteria": "==", "value": 0, "format": fail}
    sheet.conditional.append(((_NUMBER, 1, _NUMBER, 1), rule))


def _tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    return (*_fit_tiles(book), *_speed_tiles(book), *_total_tiles(book), *_cost_tiles(book))


def _fit_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    memory = book.estimate.equations.decode_workers.memory
    return (
        _Tile(
            column=1,
            key="fits",
            label="Fits in memory",
            figure=memory.fits,
            unit=memory.fits.unit,
            form="yes",
            second="Room for KV cache",
            other=memory.capacity_sequences,
            other_form="sequences",
        ),
        _Tile(
            column=2,
            key="memory",
            label="Memory per accelerator",
            figure=memory.used,
            unit="GB",
            form="GB1",
            definition="weights, KV cache, activations and runtime, fullest one",
            second="of which weights",
            other=memory.weights,
            other_form="GB1",
            other_unit="GB",
        ),
    )


def _speed_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    equations = book.estimate.equations
    serving = equations.serving
    return (
        _Tile(
            column=3,
            key="ttft",
            label="Time to first token, TTFT",
            figure=serving.ttft,
            unit="ms",
            form="ms",
            second="Prefill compute used, MFU",
            other=equations.prefill.mfu,
            other_form="percent",
        ),
        _Tile(
            column=4,
            key="tpot",
            label="Time per token, TPOT",
            figure=serving.tpot,
            unit="ms",
            form="ms1",
            second="Decode bandwidth used, MBU",
            other=equations.decode.mbu,
            other_form="percent",
        ),
        _Tile(
            column=5,
            key="e2e",
            label="End to end",
            figure=serving.e2e,
            unit="s",
            form="s2",
            definition="TTFT and one TPOT for every further token",
            second="Interactivity",
            other=serving.interactivity,
            other_form="per_user",
        ),
    )


def _total_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    serving = book.estimate.equations.serving
    return (
        _Tile(
            column=6,
            key="throughput",
            label="Output tokens per second",
            figure=serving.output_tokens_per_s,
            unit=serving.output_tokens_per_s.unit,
            form="whole",
            second="Requests",
            other=serving.requests_per_s,
            other_form="per_second",
        ),
        _Tile(
            column=7,
            key="per_accelerator",
            label="Per accelerator",
            figure=serving.output_tokens_per_s_per_accelerator,
            unit=serving.output_tokens_per_s_per_accelerator.unit,
            form="whole",
            definition="output tokens per second and accelerator",
            second="Tokens per second",
            other=serving.total_tokens_per_s,
            other_form="total",
        ),
    )


def _cost_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    cost = book.estimate.equations.cost
    return (
        _Tile(
            column=8,
            key="cost",
            label=book.currency.named("USD per million output tokens"),
            figure=cost.usd_per_million_output,
            unit=cost.usd_per_million_output.unit,
            form="usd",
            definition="cost per hour ÷ output tokens, at the utilisation stated",
            second="All accelerators",
            other=cost.usd_per_hour,
            other_form="usd_hour",
        ),
        _Tile(
            column=9,
            key="power",
            label="Power in the building",
            figure=cost.power,
            unit="kW",
            form="kilowatt",
            definition="accelerators with their share of host and building, mean",
            second="Energy",
            other=cost.joules_per_output_token,
            other_form="joule",
        ),
    )


def _numbers(book: EstimateBook, sheet: Sheet, tile: _Tile) -> None:
    """The large number, which leads to its row and says how it is worked out, and the second number."""
    figure = tile.figure
    look = style.TILE.but(right=_edge(tile.column), bold=True, colour=style.NAVY)
    large = look.but(size=22, form=book.currency.number_format(style.FRONT[tile.form]))
    note = f"{figure.label}: {sentence(figure)}\n\n{figure.id}, on {book.addresses[figure].sheet}"
    shown = book.displayed(figure, tile.unit)
    cell = Cell(large, expression=shown, link=book.link_to(figure), note=note)
    sheet.set_cell(_NUMBER, tile.column, cell)
    other = book.displayed(tile.other, tile.other_unit or tile.other.unit)
    small = look.but(size=11, form=book.currency.number_format(style.FRONT[tile.other_form]))
    sheet.set_formula(_OTHER, tile.column, other, small)


def _texts(
    book: EstimateBook, sheet: Sheet, tile: _Tile, line: Quantity, definition: Quantity | None
) -> None:
    look = style.TILE.but(right=_edge(tile.column))
    sheet.set_text(_LABEL, tile.column, tile.label, look)
    book.add_quantity(sheet, _LINE, tile.column, line, look.but(colour=style.INK))
    small = look.but(size=8, wrap=True, valign="top")
    if definition is None:
        sheet.set_text(_DEFINITION, tile.column, tile.definition, small)
    else:
        book.add_quantity(sheet, _DEFINITION, tile.column, definition, small)
    sheet.set_text(_SECOND, tile.column, tile.second, look)


def _edge(column: int) -> tuple[int, str] | None:
    return (style.THICK, style.WHITE) if column in _ENDS else None
