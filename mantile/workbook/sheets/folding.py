"""Which rows of a sheet of workings stand open, and which are folded away behind an outline.

What a block comes to stands open, the way there is folded. Of the library what scenarios of the workbook use
stands open: rows of other accelerators, systems and profiles stay in the file, since one may choose them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.override import OVERRIDE
from mantile.estimate.estimate import Estimate
from mantile.graph.quantity import Apply, Input, Named, Node, Quantity, Section, Span, expression

LIBRARY = ("Hardware", "Efficiency")
"""Sheets with what the library states."""
FOLDED = (*LIBRARY, "Memory", "Network", "Prefill", "Decode", "Serving", "Cost")
"""Sheets whose blocks fold."""


def rows_in_use(estimate: Estimate) -> set[Named]:
    """The figures of the library that some scenario looks up, as the inputs are when the file is made."""
    used: set[Named] = set()
    for column in range(len(estimate.columns)):
        values = estimate.values(column)
        for figure in estimate.equations.quantities():
            for members, place in _lookups(figure):
                position = values.get(place)
                if isinstance(position, int | float) and 1 <= position <= len(members.members):
                    used.add(members.members[int(position) - 1])
        for workers in estimate.equations.workers:
            for factor in workers.efficiency.in_use.values():
                used |= {factor.library_figure(quantity, values) for quantity in factor.by_user.values()}
    return used


def _lookups(figure: Quantity) -> Iterator[tuple[Span, Node]]:
    for node in expression(figure.body):
        if isinstance(node, Apply) and node.operation == "index":
            members, place = node.arguments
            if isinstance(members, Span):
                yield members, place


def folded(sheet: str, section: Section, used: set[Named]) -> list[bool]:
    """For each row of a block, whether it is folded away.

    Args:
        used: figures of the library that are in use.
    """
    rows = [entry[0] if isinstance(entry, tuple) else entry for entry in section.rows]
    if sheet not in FOLDED:
        return [False] * len(rows)
    looks_up = sheet == "Hardware" and any(row in used for row in rows)
    return [not _stands_open(row, used, looks_up) for row in rows]


def _stands_open(row: Named, used: set[Named], looks_up: bool) -> bool:
    """What may be typed, and figures in use with what the library states of them."""
    if isinstance(row, Input):
        return row.id.endswith(OVERRIDE) or row.status == "assumed" or (row in used and not row.fixed)
    return row.factor or looks_up
