"""The sheet Groups: errors by what runs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.graph.quantity import Named
from mantile.measured.metrics import ERROR_FIGURES
from mantile.measured.reconcile import GROUPS, ErrorsByMetric
from mantile.measured.report.contents import Report, add_heads, add_title_rows, edge_above
from mantile.measured.report.errors import add_errors, error_formulas, heads
from mantile.measured.report.runs import RunCells, add_value
from mantile.workbook import style
from mantile.workbook.book import Sheet

FIGURES = tuple(figure for figure in ERROR_FIGURES if figure != "rmse")
_TOP = 5  # first row of data
_LABELS: list[float] = [104, 190, 96]  # widths of kind, key and mode
_WIDE = 1 + len(FIGURES)  # columns of a metric


@dataclass(frozen=True)
class Group:
    """Runs of one mode that have one thing in common.

    Args:
        kind: what they have in common, one of GROUPS; `key` which.
        errors: of each metric that was measured; `runs` how many there are.
    """

    kind: str
    key: Any
    mode: str
    errors: ErrorsByMetric
    runs: int


@dataclass(frozen=True)
class GroupCells:
    """What stands in the row of a group: its key, and errors by metric and figure."""

    key: Named
    errors: Mapping[str, Mapping[str, Named]]


def groups_of(report: Report, kind: str) -> list[Group]:
    """The groups of a kind, those of each mode together, the largest first; concurrencies in order."""
    groups: list[Group] = []
    for mode, part in report.modes.items():
        sizes = part[kind].value_counts()
        order = {key: (key,) if kind == "concurrency" else (-sizes[key], str(key)) for key in sizes.index}
        groups += [
            Group(
                kind=kind,
                key=key,
                mode=mode,
                errors=report.reconciliation.metrics(part[part[kind] == key]),
                runs=int(sizes[key]),
            )
            for key in sorted(sizes.index, key=lambda key, order=order: order[key])  # type: ignore[misc]
        ]
    return groups


def groups_sheet(report: Report, cells: RunCells, groups: list[Group]) -> list[GroupCells]:
    """Fill the sheet Groups; what stands in the row of each group."""
    sheet = report.book.sheets["Groups"]
    add_title_rows(
        sheet,
        "The same errors by what runs have in common, each mode by itself. Live formulas over Runs; * "
        "stored as generated.",
        _LABELS + [width for _ in report.metrics for width in (56, *[66] * len(FIGURES))],
        (_TOP, 3),
    )
    for place, metric in enumerate(report.metrics):
        for column in range(_WIDE):
            edge = (style.THIN, style.HAIRLINE) if not column else None
            title = metric.label if not column else ""
            sheet.set_text(
                _TOP - 2, len(_LABELS) + place * _WIDE + column, title, style.BLOCK_HEAD.but(left=edge)
            )
    titles = ["group", "", "mode", *heads(FIGURES) * len(report.metrics)]
    add_heads(sheet, _TOP - 1, titles, range(len(_LABELS), len(titles)))
    before = [None, *groups]
    rows = [
        _group_row(report, sheet, row, group, cells, last is None or last.kind != group.kind)
        for row, (last, group) in enumerate(zip(before, groups, strict=False), _TOP)
    ]
    for place in range(len(report.metrics)):
        column = len(_LABELS) + 1 + place * _WIDE
        sheet.conditional.append(((_TOP, column, _TOP + len(groups) - 1, column), _MAPE_BAR))
    return rows


def _group_row(
    report: Report, sheet: Sheet, row: int, group: Group, cells: RunCells, first: bool
) -> GroupCells:
    """A row of the sheet.

    Args:
        first: whether it is the first of its kind.
    """
    colour = style.NAVY if first else style.MUTE
    sheet.set_text(row, 0, group.kind, edge_above(style.SECTION.but(bold=first, colour=colour), first))
    number = not isinstance(group.key, str)
    look = style.VALUE.but(form="0", align="left") if number else style.ROW_LABEL
    value = float(group.key) if number else group.key
    name = f"group.{row}"
    key = add_value(report.book, sheet, row, 1, f"{name}.{group.kind}", value, edge_above(look, first))
    mode = add_value(report.book, sheet, row, 2, f"{name}.mode", group.mode, edge_above(style.UNIT, first))
    conditions = (cells.spans[group.kind], key, cells.spans["mode"], mode)
    errors = {
        metric.name: add_errors(
            report,
            sheet,
            (row, len(_LABELS) + place * _WIDE),
            error_formulas(cells, metric, conditions, name),
            group.errors.get(metric.name),
            FIGURES,
            first,
        )
        for place, metric in enumerate(report.metrics)
    }
    return GroupCells(key, errors)


def all_groups(report: Report) -> list[Group]:
    """The groups of every kind, in the order of the sheet."""
    return [group for kind in GROUPS for group in groups_of(report, kind)]


_MAPE_BAR: dict[str, Any] = {
    "type": "data_bar",
    "data_bar_2010": True,
    "bar_solid": True,
    "bar_color": style.SHARE_BAR,
    "min_type": "num",
    "max_type": "num",
    "min_value": 0,
    "max_value": 0.8,
    "bar_no_border": True,
}
