"""The tiles of the Summary sheet: does it fit, how fast is it, how much in total, what does it cost."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.display import or_not_known, told
from mantile.equations.metrics import (
    DECODE_MBU,
    E2E,
    INTERACTIVITY,
    JOULES_PER_OUTPUT_TOKEN,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    PREFILL_MFU,
    REQUESTS_PER_S,
    TPOT,
    TTFT,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.graph.operations import table_format
from mantile.graph.quantity import Node, Quantity
from mantile.graph.sentence import sentence
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.summary_charts import CHART_DATA, add_all

_QUESTIONS, _LABEL, _NUMBER, _LINE, _DEFINITION, _SECOND, _OTHER = 8, 9, 10, 11, 12, 13, 14  # rows
_ENDS = (2, 5, 7)  # last columns of questions
_PARTS = ("long", "number", "range.short", "range.low", "range.high")  # of texts; they stand below the page
_RANGE_OF_MEMORY = 5  # column of its words among those of the others; texts of the head stand in its own


@dataclass(frozen=True)
class _Tile:
    """A tile: a large number with its texts, and a second number.

    Args:
        column: where it stands.
        key: of its texts.
        figure, unit, form: the large number, the unit in which it is shown and its format.
        definition: below it, unless there is one that follows the scenario.
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
    other: Node
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
    for tile in _tiles(book):
        look = style.TILE.but(size=style.SMALL, bold=True, colour=style.NAVY, top=(style.THICK, style.NAVY))
        cell = Cell(look.but(right=_edge(tile.column)), text=questions.get(tile.column))
        sheet.set_cell(_QUESTIONS, tile.column, cell)
        _numbers(book, sheet, tile)
        _texts(book, sheet, tile)
        column = _RANGE_OF_MEMORY if tile.key == "memory_used" else tile.column
        add_all(book, sheet, CHART_DATA + 2, column, f"tile.{tile.key}.range")
        found = (f"tile.{tile.key}.{part}" for part in _PARTS)
        there = (part for part in found if f"summary.{part}" in book.estimate.equations.rows)
        for row, part in enumerate(there, CHART_DATA + 3):
            add_all(book, sheet, row, tile.column, part)
    fail = style.Style(colour=style.FAIL, bold=True)
    rule = {"type": "cell", "criteria": "==", "value": 0, "format": fail}
    sheet.conditional.append(((_NUMBER, 1, _NUMBER, 1), rule))


def _tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    return (*_fit_tiles(book), *_speed_tiles(book), *_total_tiles(book), *_cost_tiles(book))


def _fit_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    equations = book.estimate.equations
    possible = book.estimate.equations.rows["checks.possible"]
    return (
        _Tile(
            column=1,
            key="fits",
            label="Fits, and is possible",
            figure=possible,
            unit=possible.unit,
            form=style.FRONT["yes"],
            second="Room for KV cache",
            other=equations.decode_workers.rows["memory.capacity_sequences"],
            other_form=style.FRONT["sequences"],
        ),
        _metric(
            book,
            MEMORY_PER_ACCELERATOR,
            column=2,
            key="memory_used",
            label=MEMORY_PER_ACCELERATOR.label,
            second="of which weights",
            other=equations.fullest["memory.weights"],
            other_form=_headline_form(MEMORY_PER_ACCELERATOR),
            other_unit=MEMORY_PER_ACCELERATOR.display_unit,
        ),
    )


def _speed_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    equations = book.estimate.equations
    return (
        _metric(
            book,
            TTFT,
            column=3,
            second="Prefill compute, MFU",
            other=equations.headlines[PREFILL_MFU],
            other_form=style.FRONT["percent"],
        ),
        _metric(
            book,
            TPOT,
            column=4,
            label="Time per token, TPOT",
            second="Decode bandwidth, MBU",
            other=equations.headlines[DECODE_MBU],
            other_form=style.FRONT["percent"],
        ),
        _metric(
            book,
            E2E,
            column=5,
            second="Interactivity",
            other=equations.headlines[INTERACTIVITY],
            other_form=style.FRONT["per_user"],
        ),
    )


def _total_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    equations = book.estimate.equations
    return (
        _metric(
            book,
            OUTPUT_TOKENS_PER_S,
            column=6,
            key="throughput",
            form=table_format(OUTPUT_TOKENS_PER_S.large_digits),
            second="Requests",
            other=equations.headlines[REQUESTS_PER_S],
            other_form=style.FRONT["per_second"],
        ),
        _metric(
            book,
            OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
            column=7,
            key="per_accelerator",
            label="Per accelerator",
            form=table_format(OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.large_digits),
            second="Tokens per second",
            other=equations.rows.node("all_tokens"),
            other_form=style.FRONT["total"],
        ),
    )


def _cost_tiles(book: EstimateBook) -> tuple[_Tile, ...]:
    headlines = book.estimate.equations.headlines
    return (
        _metric(
            book,
            USD_PER_MILLION_OUTPUT_TOKENS,
            column=8,
            key="cost",
            label=book.currency.named("USD per M output tokens"),
            form=style.FRONT["usd"],
            second="All accelerators",
            other=headlines[USD_PER_HOUR],
            other_form=style.FRONT["usd_hour"],
        ),
        _metric(
            book,
            POWER,
            column=9,
            second="Energy",
            other=headlines[JOULES_PER_OUTPUT_TOKEN],
            other_form=style.FRONT["joule"],
        ),
    )


def _metric(
    book: EstimateBook,
    metric: Metric,
    column: int,
    second: str,
    other: Node,
    other_form: str,
    *,
    key: str = "",
    label: str = "",
    form: str = "",
    other_unit: str = "",
) -> _Tile:
    """A tile whose large number is a headline metric.

    Args:
        key: where it is not the attribute of the metric.
        label: where it is not that of the quantity.
        form: where it is not number and unit.
    """
    figure = metric.of(book.estimate.equations.figures)
    return _Tile(
        column=column,
        key=key or metric.attribute,
        label=label or figure.label,
        figure=figure,
        unit=metric.display_unit,
        form=form or _headline_form(metric),
        second=second,
        other=other,
        other_form=other_form,
        definition=metric.definition,
        other_unit=other_unit,
    )


def _headline_form(metric: Metric) -> str:
    return style.amount(metric.large_digits, metric.display_unit)


def _numbers(book: EstimateBook, sheet: Sheet, tile: _Tile) -> None:
    """The large number, which leads to its row and says how it is worked out, and the second number.

    A time is told in words where it is a long one.
    """
    figure, rows = tile.figure, book.estimate.equations.rows
    look = style.TILE.but(right=_edge(tile.column), bold=True, colour=style.NAVY)
    large = look.but(size=22, form=book.currency.number_format(tile.form))
    note = f"{figure.label}: {sentence(figure)}\n\n{figure.id}, on {book.addresses[figure].sheet}"
    time = f"summary.tile.{tile.key}.number"
    shown = told(figure, rows[time]) if time in rows else or_not_known(book.displayed(figure, tile.unit))
    cell = Cell(large, expression=shown, link=book.link_to(figure), note=note)
    sheet.set_cell(_NUMBER, tile.column, cell)
    other = tile.other
    if isinstance(other, Quantity):
        other = book.displayed(other, tile.other_unit or other.unit)
    small = look.but(size=11, form=book.currency.number_format(tile.other_form))
    sheet.set_formula(_OTHER, tile.column, or_not_known(other), small)


def _texts(book: EstimateBook, sheet: Sheet, tile: _Tile) -> None:
    """What stands around the numbers: a fixed text, unless there is one that follows the scenario."""
    look = style.TILE.but(right=_edge(tile.column))
    small = look.but(size=style.SMALL, wrap=True, valign="top")
    sheet.set_text(_LABEL, tile.column, tile.label, look)
    for row, part, text, style_of in (
        (_LINE, "", "", look.but(colour=style.INK)),
        (_DEFINITION, ".definition", tile.definition, small),
        (_SECOND, ".second", tile.second, look),
    ):
        name, rows = f"summary.tile.{tile.key}{part}", book.estimate.equations.rows
        if name in rows:
            book.add_quantity(sheet, row, tile.column, rows[name], style_of)
        else:
            sheet.set_text(row, tile.column, text, style_of)


def _edge(column: int) -> tuple[int, str] | None:
    return (style.THICK, style.WHITE) if column in _ENDS else None
