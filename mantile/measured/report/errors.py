"""A row of errors of a metric over runs that have something in common, as formulas over the sheet Runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    at_least,
    count_where,
    exponential,
    sum_where,
)
from mantile.measured.metrics import ERROR_FIGURES, ComparedMetric
from mantile.measured.report.contents import COUNT, PERCENT, SIGNED, Report, edge_above
from mantile.measured.report.runs import RunCells, add_value
from mantile.workbook import style
from mantile.workbook.book import Sheet

STORED = ("median", "p90", "rmse")
"""Errors that the functions of our workbooks cannot work out by group: they are stored as numbers, marked
with a star."""

Conditions = Sequence[Node]
"""Columns of Runs and what their cells must be, in pairs."""


def heads(figures: Sequence[str]) -> list[str]:
    """Heads of a row of errors, the number of runs first."""
    return ["runs", *(ERROR_FIGURES[figure] + (" *" if figure in STORED else "") for figure in figures)]


def error_formulas(
    cells: RunCells, metric: ComparedMetric, conditions: Conditions, name: str
) -> dict[str, Quantity]:
    """The errors of a metric over the runs for which all conditions hold, and `n`, the number of them.

    Args:
        name: tells their ids from those of other rows.
    """
    columns = {what: cells.spans[f"{metric.name}_{what}"] for what in ("|error|", "error", "|ln ratio|")}

    def quantity(figure: str, body: Node) -> Quantity:
        return Quantity(f"errors.{name}.{metric.name}.{figure}", f"{figure}: {metric.label}", "1", body)

    runs = quantity("n", count_where(columns["|error|"], at_least(0), *conditions))
    means = {what: sum_where(column, *conditions) / runs for what, column in columns.items()}
    bodies = {
        "mape": means["|error|"],
        "bias": means["error"],
        "symmetric": exponential(means["|ln ratio|"]) - 1,
    }
    return {"n": runs} | {figure: quantity(figure, body) for figure, body in bodies.items()}


def add_errors(
    report: Report,
    sheet: Sheet,
    place: tuple[int, int],
    formulas: Mapping[str, Quantity],
    stored: Mapping[str, float] | None,
    figures: Sequence[str],
    edge: bool = False,
) -> dict[str, Named]:
    """Number of runs and errors of a metric in a row of cells.

    Args:
        place: row and first column.
        formulas: from `error_formulas`.
        stored: the errors as numbers; None where there is no run, and so no error.
        figures: which errors stand in the row.
        edge: whether a thin rule stands above.

    Returns:
        What stands in the cells, by error.
    """
    row, first = place
    shown: dict[str, Named] = {}
    for column, figure in enumerate(("n", *figures), first):
        form = COUNT if figure == "n" else SIGNED if figure == "bias" else PERCENT
        look = edge_above(style.VALUE.but(form=form, bold=figure == "mape"), edge)
        if figure == "n" or (stored is not None and figure in formulas):
            report.book.add_quantity(sheet, row, column, formulas[figure], look)
            shown[figure] = formulas[figure]
        elif stored is not None:
            name = f"{formulas['n'].id}.{figure}"
            grey = look.but(colour=style.GREY)
            shown[figure] = add_value(report.book, sheet, row, column, name, stored[figure], grey)
        else:
            sheet.set_style(row, column, column, look)
    return shown
